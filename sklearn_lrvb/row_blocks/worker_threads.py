"""A function of many items on threads.

An interrupt, as by Ctrl-C, may come at any instruction of the thread that waits for the results. In the locks
that are written in Python, as those of `concurrent.futures` are, it may leave one taken for which the others
wait for ever. So all that is shared here are queues whose operations are written in C.
"""

import queue
import threading


def in_order(function, items, n_threads):
    """Yield the results of a function in the order of the items, few of which wait at a time.

    After an error or an interrupt the items at work are waited for, and those that wait are dropped.

    Parameters
    ----------
    function : callable
    items : list
    n_threads : int
    """
    given, done, finished = queue.SimpleQueue(), queue.SimpleQueue(), {}
    ahead = 2 * n_threads
    # Daemons, because Python is not to wait at its end for one that an interrupt has kept from beginning.
    threads = [
        threading.Thread(target=_work, args=(function, given, done), daemon=True) for _ in range(n_threads)
    ]
    try:
        for thread in threads:
            thread.start()
        for number in range(len(items) + ahead):
            if number < len(items):
                given.put((number, items[number]))
            if number >= ahead:
                yield _result(number - ahead, done, finished)
    finally:
        try:
            _end(threads, given)
        except BaseException:
            _end(threads, given)
            raise


def _work(function, given, done):
    """Work on items until one is None."""
    while (task := given.get()) is not None:
        number, item = task
        try:
            done.put((number, function(item), None))
        except BaseException as error:
            done.put((number, None, error))


def _result(number, done, finished):
    """The result of an item, as soon as it is there; those of others are kept in a dict."""
    while number not in finished:
        other, *outcome = done.get()
        finished[other] = outcome
    result, error = finished.pop(number)
    try:
        if error is not None:
            raise error
        return result
    finally:
        del error  # Otherwise its traceback and this frame would keep each other.


def _end(threads, given):
    """Have threads end after the items at work."""
    try:
        while True:
            given.get_nowait()
    except queue.Empty:
        pass
    for _ in threads:
        given.put(None)
    for thread in threads:
        if thread.is_alive():
            thread.join()
