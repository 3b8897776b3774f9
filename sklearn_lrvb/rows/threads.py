"""Threads: a function of many items on threads, and how many threads numerical libraries use.

An interrupt, as by Ctrl-C, may come at any instruction of the thread that waits for results. In the locks
that are written in Python, as those of `concurrent.futures` and of joblib's threads are, it may leave one
taken for which the others wait for ever, or threads that never end. So all that is shared here are queues
whose operations are written in C. A pass of short blocks takes a third of the time that it takes by joblib.
"""

import collections
import contextlib
import functools
import queue
import threading

from joblib import effective_n_jobs
from threadpoolctl import ThreadpoolController

_thread_pools = functools.cache(ThreadpoolController)  # Finding the libraries takes a millisecond.
_entered = threading.local()  # What the contexts that a thread has open have changed, the innermost last.


def in_order(function, items, n_threads):
    """Yield the results of a function in the order of the items, few of which wait at a time.

    After an error or an interrupt the items at work are waited for, and those that wait are dropped.

    Parameters
    ----------
    function : callable
    items : list
    n_threads : int
    """
    given, waiting = queue.SimpleQueue(), collections.deque()
    # Daemons, because Python is not to wait at its end for one that an interrupt has kept from beginning.
    threads = [threading.Thread(target=_work, args=(function, given), daemon=True) for _ in range(n_threads)]
    try:
        for thread in threads:
            thread.start()
        for item in items:
            waiting.append(queue.SimpleQueue())
            given.put((item, waiting[-1]))
            if len(waiting) > 2 * n_threads:
                yield _result(waiting.popleft())
        while waiting:
            yield _result(waiting.popleft())
    finally:
        try:
            _end(threads, given)
        except BaseException:
            _end(threads, given)
            raise


def _work(function, given):
    """Work on items until one is None."""
    while (task := given.get()) is not None:
        item, done = task
        try:
            done.put((function(item), None))
        except BaseException as error:
            done.put((None, error))


def _result(done):
    """The result of an item, as soon as it is there."""
    result, error = done.get()
    try:
        if error is not None:
            raise error
        return result
    finally:
        del error  # Otherwise its traceback and this frame would keep each other.


def _end(threads, given):
    """Have threads end after the items at work."""
    with contextlib.suppress(queue.Empty):
        while True:
            given.get_nowait()
    for _ in threads:
        given.put(None)
    for thread in threads:
        if thread.is_alive():
            thread.join()


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
    changed = [
        (pool, pool.num_threads)
        for pool in _thread_pools().lib_controllers
        if pool.user_api == user_api and pool.num_threads != number
    ]
    entered = vars(_entered).setdefault("changes", [])
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
