"""The largest amount of memory that an answer may take, and the error where it would take more."""

import os

_LEAST_LIMIT = 2e9  # Bytes that may be taken on any machine.
_SHARE_OF_MACHINE = 0.5


def memory_limit():
    """Bytes that one answer may take: half of the machine's memory, or 2 GB if that is more or unknown."""
    try:
        machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # Not every system says.
        machine = 0.0
    return max(_LEAST_LIMIT, _SHARE_OF_MACHINE * machine)


def require_memory(n_bytes, what, remedies):
    """Raise a MemoryError where ``what`` would take more bytes than the limit.

    Parameters
    ----------
    n_bytes : float
    what : str
        Subject of the error's sentence.
    remedies : list of str
        What to ask for instead; lettered if there are several.
    """
    limit = memory_limit()
    if n_bytes <= limit:
        return
    if len(remedies) > 1:
        remedies = [f"({letter}) {remedy}" for letter, remedy in zip("abcdef", remedies, strict=False)]
    raise MemoryError(
        f"{what} would need {n_bytes / 1e9:.1f} GB, more than {limit / 1e9:.0f} GB (half of this machine's "
        f"memory, or 2 GB). {' '.join(remedies)}"
    )
