"""Memory that is freed between two blocks, and kept for the next one.

Dask starts worker processes with MALLOC_TRIM_THRESHOLD_=65536, by which the C library returns freed memory to
the system as soon as it can. A pass makes and frees a megabyte for every block, which then has to be mapped,
and zeroed by the kernel, again and again: a pass over 10 million rows took 2.4 times as long.
"""

import contextlib
import ctypes
import os
import threading

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # Parameters of mallopt in the GNU C library.
_KEPT_BYTES = 2**26  # Far more than a block takes, and far less than a chunk.
_LARGEST_MMAP_THRESHOLD = 2**25
_DEFAULT_MMAP_THRESHOLD = 2**17

_lock = threading.Lock()
_n_inside = 0


@contextlib.contextmanager
def steady_allocator():
    """Context in which the C library keeps the memory of a block for the next one.

    It does nothing unless the environment asks for an early return, and the library is GNU's. Afterwards the
    setting of the environment holds again.
    """
    global _n_inside
    mallopt, threshold = _mallopt(), _threshold_of_environment()
    if mallopt is None or threshold is None or threshold >= _KEPT_BYTES:
        yield
        return
    with _lock:
        _n_inside += 1
        if _n_inside == 1:
            mallopt(_TRIM_THRESHOLD, _KEPT_BYTES)
            mallopt(_MMAP_THRESHOLD, _LARGEST_MMAP_THRESHOLD)
    try:
        yield
    finally:
        with _lock:
            _n_inside -= 1
            if _n_inside == 0:
                mallopt(_TRIM_THRESHOLD, threshold)
                mallopt(_MMAP_THRESHOLD, _DEFAULT_MMAP_THRESHOLD)


def _threshold_of_environment():
    """Number of free bytes above which memory is to be returned, if the environment says so; else None."""
    with contextlib.suppress(ValueError):
        return int(os.environ.get("MALLOC_TRIM_THRESHOLD_", ""))
    return None


def _mallopt():
    """The C library's function, or None where it has none."""
    try:
        return ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return None
