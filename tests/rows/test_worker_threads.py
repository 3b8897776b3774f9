"""A function of many items on threads: results in order, and no thread that is left or waited for in vain."""

import threading

import pytest

from sklearn_lrvb.rows.threads import in_order

N_THREADS = 2


def test_results_come_in_the_order_of_the_items():
    second = threading.Event()

    def function(item):
        if item == 0:
            assert second.wait(10)
        second.set()
        return item**2

    assert list(in_order(function, list(range(50)), N_THREADS)) == [item**2 for item in range(50)]


def test_few_results_wait_at_a_time():
    begun = []
    results = in_order(begun.append, list(range(50)), N_THREADS)
    next(results)
    assert len(begun) <= 2 * N_THREADS + 1
    results.close()
    assert len(begun) <= 2 * N_THREADS + 1


def test_the_first_error_in_the_order_of_the_items_is_raised():
    later = threading.Event()

    def function(item):
        if item == 0:
            assert later.wait(10)
            raise ArithmeticError("first")
        later.set()
        raise ValueError("later")

    n_threads = threading.active_count()
    with pytest.raises(ArithmeticError, match="first"):
        list(in_order(function, list(range(50)), N_THREADS))
    assert threading.active_count() == n_threads


@pytest.mark.parametrize("begins", [True, False])
def test_a_thread_whose_start_is_interrupted_is_not_waited_for_in_vain(begins, monkeypatch):
    start, calls, ended = threading.Thread.start, [], []

    def interrupted_start(thread):
        calls.append(thread)
        if begins or len(calls) < N_THREADS:
            start(thread)
        if len(calls) == N_THREADS:
            raise KeyboardInterrupt

    def work():
        monkeypatch.setattr(threading.Thread, "start", interrupted_start)
        with pytest.raises(KeyboardInterrupt):
            list(in_order(abs, list(range(50)), N_THREADS))
        ended.append(True)

    caller = threading.Thread(target=work, daemon=True)
    n_threads = threading.active_count()
    caller.start()
    caller.join(10)
    assert ended
    assert threading.active_count() == n_threads
