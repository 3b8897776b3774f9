"""How many threads numerical libraries use."""

import contextlib
import functools
import threading

from joblib import effective_n_jobs
from threadpoolctl import ThreadpoolController

_thread_pools = functools.cache(ThreadpoolController)  # Finding the libraries takes a millisecond.


class _Entered(threading.local):
    """What the contexts that a thread has open have changed, the innermost last."""

    def __init__(self):
        self.changes = []


_entered = _Entered()


def blas_threads(n_jobs):
    """Context in which BLAS uses as many threads as ``n_jobs`` asks for, in joblib's reading.

    Left to itself, BLAS slows small products down by its threads, and collapses on a busy machine.
    """
    return _threads(effective_n_jobs(n_jobs), "blas")


def openmp_threads(number):
    """Context in which OpenMP uses so many threads; as many as it likes where None."""
    return contextlib.nullcontext() if number is None else _threads(number, "openmp")


@contextlib.contextmanager
def _threads(number, user_api):
    """Context in which some libraries use so many threads.

    Unlike threadpoolctl's own context, which changes the numbers before it is entered, it restores them after
    an interrupt at any point, also at one while they are changed or restored.
    """
    pools = [pool for pool in _thread_pools().lib_controllers if pool.user_api == user_api]
    changed = [(pool, pool.num_threads) for pool in pools if pool.num_threads != number]
    entered = _entered.changes
    try:
        entered.append(changed)
        for pool, _ in changed:
            pool.set_num_threads(number)
        yield
    finally:
        try:
            _leave(changed, entered)
        except BaseException:
            _leave(changed, entered)
            raise


def _leave(changed, entered):
    """Restore the numbers that a context has changed, after those of contexts inside of it.

    After an interrupt the context of a generator may end later than the one around it: what that one has
    restored is not to be changed again.
    """
    while any(one is changed for one in entered):
        for pool, number in entered[-1]:
            pool.set_num_threads(number)
        entered.pop()
