"""Interrupts, as by Ctrl-C: the estimator is as it was, and what is asked again has the same answer."""

import copy
import functools
import pickle
import signal
import threading
import time

import numpy as np
import pytest
from catalogue import assert_equal_to_rounding, mixture, overlapping, set_sizes
from sklearn.base import clone
from threadpoolctl import threadpool_info

from sklearn_lrvb import LRVBGaussianMixture
from sklearn_lrvb.rows import ArrayRows, blas_threads, threads

N_INTERRUPTS = 2  # Of each fit, at random times.


def with_signals(test):
    """Mark a test that interrupts itself."""
    # An interrupt in a weak reference's callback gets no further than a report by Python.
    reported = "ignore:(?s).*KeyboardInterrupt:pytest.PytestUnraisableExceptionWarning"
    no_timers = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="Windows has no timer signals.")
    return pytest.mark.filterwarnings(reported)(no_timers(test))


@pytest.fixture
def interrupted():
    """Callable that returns a fresh estimator after an interrupt of a method that takes some seconds."""

    def interrupt(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    rng = np.random.default_rng()  # Times differ from run to run in any case.

    def call(fresh, method, seconds):
        while True:
            estimator = fresh()
            try:
                try:
                    signal.setitimer(signal.ITIMER_REAL, rng.uniform(1e-6, seconds))
                    method(estimator)
                finally:
                    signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt:
                return estimator
            except RuntimeError as error:
                # The locks of Python's own threads may raise this while an interrupt passes through them.
                if not isinstance(error.__context__, KeyboardInterrupt):
                    raise
                return estimator
            seconds /= 2  # It was over before.

    yield call
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def small_blocks(monkeypatch):
    """Passes over 120 rows in several blocks, and few scans."""
    set_sizes(monkeypatch, least_rows=32, block_bytes=2**10, seconds_of_chains=0)


def duration(function):
    started = time.perf_counter()
    function()
    return time.perf_counter() - started


def blas_numbers():
    return [(pool["filepath"], pool["num_threads"]) for pool in threadpool_info()]


def public(estimator):
    """All fitted attributes that are kept, by name."""
    return {name: value for name, value in vars(estimator).items() if name.endswith("_")}


def assert_same_fit(one, other):
    assert vars(one).keys() == vars(other).keys()
    for name, value in public(one).items():
        assert_equal_to_rounding(value, public(other)[name], name)
    assert_equal_to_rounding(one.means_std_, other.means_std_)


MODELS = {
    "newton": {},
    "iterations": {"solver": "coordinate_ascent"},
    "threads": {"n_jobs": 2},
    "starts": {"n_init": 3, "init_params": "random_from_data"},
    "search": {"moves": "search"},
    "flat": {"prior": "flat", "covariance_type": "diag"},
}


@pytest.mark.slow
@with_signals
@pytest.mark.parametrize("name", MODELS)
def test_an_interrupted_fit_leaves_the_estimator_as_it_was(name, interrupted, small_blocks):
    X, others = overlapping(120), overlapping(60, seed=1)[:, :1]
    new = mixture(MODELS[name])
    numbers = blas_numbers()
    fitted, last = clone(new).fit(X), clone(new).fit(others)
    seconds = duration(lambda: clone(new).fit(X))
    for _ in range(N_INTERRUPTS):
        estimator = interrupted(lambda: clone(new), lambda estimator: estimator.fit(X), seconds)
        assert blas_numbers() == numbers
        # An interrupt after the last step finds the fit complete.
        if hasattr(estimator, "means_"):
            assert_same_fit(estimator, fitted)
        else:
            assert vars(estimator) == vars(new)
        assert_same_fit(estimator.fit(X), fitted)
        again = interrupted(lambda: copy.deepcopy(last), lambda estimator: estimator.fit(X), seconds)
        assert blas_numbers() == numbers
        assert_same_fit(again, last if again.n_features_in_ == 1 else fitted)


@pytest.mark.slow
@with_signals
def test_an_interrupted_continuation_leaves_the_estimator_as_it_was(interrupted):
    X = overlapping()
    with pytest.warns(UserWarning):
        start = mixture({"warm_start": True}, max_iter=3, init_params="random").fit(X)
    start.max_iter = 1000
    full = copy.deepcopy(start).fit(X)
    seconds = duration(lambda: copy.deepcopy(start).fit(X))
    for _ in range(N_INTERRUPTS):
        estimator = interrupted(
            lambda: copy.deepcopy(start), lambda estimator: estimator.fit_predict(X), seconds
        )
        is_last = estimator.lower_bound_ == start.lower_bound_
        assert_same_fit(estimator.fit(X) if is_last else estimator, full)


QUESTIONS = {
    "posterior_std_": lambda estimator: estimator.posterior_std_,
    "posterior_covariance_": lambda estimator: estimator.posterior_covariance_,
    "loo_score_samples": lambda estimator: estimator.loo_score_samples(overlapping(100)),
    "influence": lambda estimator: estimator.influence(overlapping(100)),
    "sample": lambda estimator: estimator.posterior(random_state=0, method="lrvb").sample(9)["precisions"],
    "posterior_check": lambda estimator: (
        estimator.posterior_check(
            overlapping(100), sample_weight=None, n_draws=100, random_state=0
        ).mean_shift
    ),
    "exact": lambda estimator: estimator.posterior(overlapping(100), random_state=0, method="exact").sample(
        9
    )["means"],
    "more draws": lambda estimator: estimator.posterior(
        overlapping(100), random_state=0, method="exact"
    ).sample(250)["means"],
    "sandwich": lambda estimator: estimator.posterior(overlapping(100), method="sandwich").covariance(
        "means"
    ),
    "groups": lambda estimator: estimator.posterior(
        overlapping(100), method="sandwich", groups=np.arange(100) // 5
    ).covariance("means"),
    "bootstrap": lambda estimator: estimator.posterior(
        overlapping(100),
        method="bootstrap",
        sample_weight=None,
        n_draws=5,
        random_state=0,
        groups=np.arange(100) // 5,
    ).covariance("means"),
    "deciding_rows": lambda estimator: (
        estimator.deciding_rows(
            overlapping(100), conclusion="weight[0]", threshold=estimator.weights_[0] - 0.02
        ).confirmed
    ),
    "partition_posterior": lambda estimator: (
        estimator.partition_posterior(
            overlapping(100), sample_weight=None, n_draws=5, method="lrvb", random_state=0
        ).affinity
    ),
    "pickle": lambda estimator: pickle.loads(pickle.dumps(estimator)).means_std_,
}


@functools.cache
def asked():
    """A fit, and the answers to all questions of it."""
    fit = mixture({"solver": "coordinate_ascent", "n_jobs": 2}).fit(overlapping(100))
    return fit, {name: question(copy.deepcopy(fit)) for name, question in QUESTIONS.items()}


@pytest.mark.slow
@with_signals
@pytest.mark.filterwarnings("ignore:Exact posterior, not converged")
@pytest.mark.parametrize("name", QUESTIONS)
def test_interrupted_questions_have_the_same_answer_afterwards(name, interrupted, small_blocks):
    fit, answers = asked()
    numbers = blas_numbers()
    seconds = duration(lambda: QUESTIONS[name](copy.deepcopy(fit)))
    other = np.random.default_rng().choice(list(QUESTIONS))
    estimator = interrupted(lambda: copy.deepcopy(fit), QUESTIONS[name], seconds)
    assert blas_numbers() == numbers
    assert vars(estimator).keys() == vars(fit).keys()
    for again in (other, name):
        assert_equal_to_rounding(QUESTIONS[again](estimator), answers[again], f"{name}, then {again}")


# Threads.


def test_an_interrupt_drops_the_blocks_that_wait(small_blocks):
    rows = ArrayRows(overlapping(), np.zeros(2), n_jobs=2)
    gate, begun = threading.Event(), []
    opening = threading.Timer(0.05, gate.set)

    def work(block):
        begun.append(block.start)
        if block.start:
            gate.wait(10)
        return block.rows

    def interrupting(results, n_blocks):
        yield next(iter(results))
        opening.start()
        raise KeyboardInterrupt

    n_threads = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        rows.each(work, (2,), tracked=interrupting)
    opening.join()
    assert len(begun) <= 3  # The first block, and those that the two threads were working on.
    assert threading.active_count() == n_threads


@pytest.mark.parametrize("n_calls", range(12))
def test_numbers_of_threads_are_restored_after_an_interrupt_at_any_call(n_calls, monkeypatch):
    class Pool:
        user_api = "blas"

        def __init__(self):
            self.number = 4

        @property
        def num_threads(self):
            interrupt()
            return self.number

        def set_num_threads(self, number):
            interrupt()
            self.number = number
            interrupt()

    left = [n_calls]

    def interrupt():
        left[0] -= 1
        if left[0] == 0:
            raise KeyboardInterrupt

    pools = [Pool(), Pool()]
    monkeypatch.setattr(threads, "_thread_pools", lambda: type("Pools", (), {"lib_controllers": pools}))
    try:
        with blas_threads(1):
            assert [pool.number for pool in pools] == [1, 1]
    except KeyboardInterrupt:
        assert left[0] <= 0
    assert [pool.number for pool in pools] == [4, 4]


def test_a_context_of_threads_that_ends_late_changes_nothing():
    numbers = blas_numbers()
    inner = blas_threads(3)
    with blas_threads(2):
        inner.__enter__()
    assert blas_numbers() == numbers
    inner.__exit__(None, None, None)
    assert blas_numbers() == numbers


def test_a_fit_is_set_in_one_step():
    """No other state can be seen from the outside: the attributes are those of one fit or of the other."""
    states = []

    class Watched(LRVBGaussianMixture):
        def __setattr__(self, name, value):
            if self is estimator:
                states.append(name)
            super().__setattr__(name, value)

    estimator = None
    estimator = Watched(n_components=2, random_state=0)
    estimator.fit(overlapping()).fit(overlapping(60)[:, :1])
    assert states == ["__dict__", "__dict__"]
