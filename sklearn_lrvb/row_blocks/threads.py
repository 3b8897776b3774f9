"""How many threads numerical libraries use."""

import contextlib
import functools

from joblib import effective_n_jobs
from threadpoolctl import ThreadpoolController

_thread_pools = functools.cache(ThreadpoolController)  # Finding the libraries takes a millisecond.


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
    try:
        for pool, _ in changed:
            pool.set_num_threads(number)
        yield
    finally:
        try:
            _restore(changed)
        except BaseException:
            _restore(changed)
            raise


def _restore(changed):
    """Give thread pools their numbers of threads: list of (pool, number)."""
    for pool, number in changed:
        pool.set_num_threads(number)
