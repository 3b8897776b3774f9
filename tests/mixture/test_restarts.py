"""Several starts: their kinds, which of them are run to the end, and failures made up for."""

import contextlib
import io
import re
from dataclasses import dataclass, field
from math import ceil

import numpy as np
import pytest
from catalogue import COVARIANCE_TYPES, mixture, three_blobs
from sklearn.datasets import load_iris

from sklearn_lrvb import LRVBGaussianMixture
from sklearn_lrvb.estimators.callbacks import NO_TASK, Lines, Progress
from sklearn_lrvb.gaussian.fitting.starts import StartKind, kinds_of_starts
from sklearn_lrvb.mixture.model import DegenerateComponentError
from sklearn_lrvb.mixture.multi_start import MultiStart


@dataclass(frozen=True)
class Bound:
    """All that the multi-start search knows of a fit."""

    number: int
    lower_bound: float
    converged: bool = True
    stopped: bool = False


@dataclass
class FakeAscent:
    """Fits whose bounds are given: when tried, and at the end; None fails."""

    tried: list
    ends: list
    finished: list = field(default_factory=list)

    def start_at(self, number):
        return Bound(number, -np.inf)

    def trial(self, fit):
        return self._at(fit.number, self.tried[fit.number])

    def in_best_order(self, fit):
        return fit

    def coordinate_ascent(self, fit):
        return self.newton(fit)

    def newton(self, fit):
        self.finished.append(fit.number)
        return self._at(fit.number, self.ends[fit.number])

    def _at(self, number, bound):
        if bound is None:
            raise DegenerateComponentError(f"start {number}")
        return Bound(number, bound)


def multi_start(tried, ends, accelerated=True):
    ascent = FakeAscent(tried, ends)
    starts = [lambda ascent, number=number: ascent.start_at(number) for number in range(len(ends))]
    multi_start = MultiStart(ascent, accelerated, Progress(Lines(0, 1), NO_TASK))
    best = multi_start.best(starts)
    assert multi_start.optima == {number: Bound(number, ends[number]) for number in multi_start.optima}
    return ascent, best


def test_the_first_and_the_better_half_of_the_others_are_finished():
    ascent, best = multi_start(
        tried=[None, 10.0, 50.0, 30.0, 20.0, 40.0], ends=[0.0, 90.0, 60.0, 70.0, 80.0, 50.0]
    )
    assert ascent.finished == [0, 2, 5, 3]
    assert best == Bound(3, 70.0)


def test_starts_near_the_best_are_finished_too():
    ascent, best = multi_start(tried=[None, 50.0, 41.0, 39.0, 38.0], ends=[10.0, 50.0, 48.0, 52.0, 53.0])
    assert ascent.finished == [0, 1, 2]
    assert best == Bound(1, 50.0)
    ascent, best = multi_start(tried=[None, 50.0, 41.0, 40.5, 40.0], ends=[10.0, 50.0, 48.0, 52.0, 53.0])
    assert ascent.finished == [0, 1, 2, 3]
    assert best == Bound(3, 52.0)


def test_one_start_is_not_tried():
    ascent, best = multi_start(tried=[None], ends=[1.0])
    assert (ascent.finished, best) == ([0], Bound(0, 1.0))


def test_all_starts_of_plain_iterations_are_finished():
    ascent, best = multi_start(tried=[None] * 4, ends=[1.0, 2.0, 4.0, 3.0], accelerated=False)
    assert sorted(ascent.finished) == [0, 1, 2, 3]
    assert best == Bound(2, 4.0)


def test_failures_are_made_up_for():
    ascent, best = multi_start(
        tried=[None, 30.0, None, 20.0, 10.0, 0.0], ends=[None, None, 0.0, 50.0, 60.0, 40.0]
    )
    assert ascent.finished == [0, 1, 3, 4, 5]
    assert best == Bound(4, 60.0)
    with pytest.raises(DegenerateComponentError, match="start 1"):
        multi_start(tried=[None, 3.0, None], ends=[None, None, None])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("covariance_type", "init_params", "solver", "moves"),
    [
        ("full", "random", "newton", "auto"),
        ("full", "random", "newton", None),
        ("tied", "kmeans", "newton", "auto"),
        ("tied", "random", "newton", None),
        ("diag", "random", "coordinate_ascent", "auto"),  # Iterations alone make no moves.
        ("spherical", "kmeans", "newton", None),
    ],
)
def test_several_starts_are_never_worse_than_one(covariance_type, solver, init_params, moves):
    X = three_blobs(150)
    model = {"covariance_type": covariance_type, "solver": solver, "init_params": init_params, "tol": 1e-5}
    model["moves"] = moves
    gains = []
    for seed in (1, 2):
        one, four = (
            mixture(model, 5, max_iter=3000, n_init=n_init).set_params(random_state=seed).fit(X)
            for n_init in (1, 4)
        )
        assert four.converged_
        gains.append(four.lower_bound_ - one.lower_bound_)
    assert min(gains) > -1e-9
    if (init_params, covariance_type, moves) == ("random", "full", None):
        assert max(gains) > 0.1


def printed_bounds(X, model, n_components, **parameters):
    """The lower bounds that a fit prints of its starts: as they were tried, and at the ends."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        mixture(model, n_components, verbose=2, verbose_interval=1000, **parameters).fit(X)
    said = re.findall(r"Initialization (tried|converged|did not).*lower bound (\S+)\.\n", printed.getvalue())
    tried = [float(bound) for word, bound in said if word == "tried"]
    return np.array(tried), np.array([float(bound) for word, bound in said if word != "tried"])


@pytest.mark.slow
@pytest.mark.parametrize("init_params", ["kmeans", "random"])
def test_the_ends_said_in_the_documentation(init_params):
    tried, ends = printed_bounds(three_blobs(200), {"init_params": init_params}, 2, n_init=7)
    assert len(tried) == 6
    n_near = np.count_nonzero(tried > ends.max() - 10.0)
    assert len(ends) == 1 + max(ceil(6 / 2), n_near)


# The starts of the default differ in kind.

EVEN = {"weight_concentration_prior_type": "dirichlet_distribution", "weight_concentration_prior": 1.0}


@pytest.mark.slow
def test_several_starts_find_what_k_means_does_not():
    """The best three clusters of the irises, of 39, 49 and 62 flowers, are not near those of k-means."""
    X = load_iris().data
    for seed in range(2):
        one, several = (
            mixture(EVEN, 3, prior="fixed", n_init=n_init).set_params(random_state=seed).fit(X)
            for n_init in (1, 12)
        )
        assert one.lower_bound_ < -330.0
        assert several.lower_bound_ > -328.7
        assert several.n_occupied_ == 3


def test_only_the_first_start_is_that_of_one():
    X = three_blobs() * [1.0, 100.0, 1.0]
    others, ends = printed_bounds(X, EVEN, 3, n_init=8, max_iter=0)  # The bounds at the starts.
    alone = printed_bounds(X, EVEN, 3, max_iter=0)[1]
    assert ends[0] == alone[0]
    assert len({ends[0], *others}) == 8
    np.testing.assert_array_equal(printed_bounds(X, EVEN, 3, n_init=8, max_iter=0, n_jobs=2)[0], others)


@pytest.mark.parametrize("init_params", ["k-means++", "random", "random_from_data"])
def test_a_kind_that_is_chosen_is_that_of_all_starts(init_params):
    assert kinds_of_starts(init_params, 3, 5) == [StartKind(init_params)] * 5


def test_further_starts_bring_sticks_into_their_best_order():
    """k-means numbers the clusters at random; the bound is highest where the largest one comes first."""
    X = np.random.default_rng(0).normal(size=(140, 2)) + 8.0 * (np.arange(140) < 40)[:, None]
    for n_init, least in ((1, 1), (2, 6)):
        fits = [mixture({}, 2, n_init=n_init).set_params(random_state=seed).fit(X) for seed in range(6)]
        n_sorted = sum(fit.weights_[0] > fit.weights_[1] for fit in fits)
        assert least <= n_sorted
        assert n_init == 2 or n_sorted < 6


def incomplete(X):
    return np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.nan, X)


CASES = {
    "missing": (incomplete, {}),
    "batches": (lambda X: [X[:90], X[90:]], {}),
    "constant": (lambda X: np.column_stack([X, np.full(len(X), 0.1)]), {}),  # A constant column.
    # Fewer rows than columns.
    "wide": (lambda X: X[:12] @ np.random.default_rng(0).normal(size=(3, 20)), {}),
    "flat": (lambda X: X, {"prior": "flat"}),
    "iterations": (lambda X: X, {"solver": "coordinate_ascent", "max_iter": 3000}),
    "one component": (lambda X: X, {"n_components": 1}),
}


# Each case has one type with a matrix, and one without.
@pytest.mark.parametrize(
    ("name", "covariance_type"),
    [(name, kind) for i, name in enumerate(CASES) for kind in COVARIANCE_TYPES[i % 2 :: 2]],
)
@pytest.mark.filterwarnings(
    "ignore:Columns of X", "ignore:Components have shrunk", "ignore:A covariance matrix of"
)
def test_all_kinds_start_all_fits(covariance_type, name):
    changed, parameters = CASES[name]
    X = changed(three_blobs(200))
    model = mixture({"covariance_type": covariance_type}, **{"n_components": 3, **parameters})
    bounds = [model.set_params(n_init=n_init).fit(X).lower_bound_ for n_init in (1, 5)]
    assert model.converged_
    assert bounds[1] >= bounds[0] - 1e-9 * abs(bounds[0])


@pytest.mark.filterwarnings("ignore:Number of distinct clusters:sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:Columns of X", "ignore:Components have shrunk")
def test_several_starts_of_fewer_distinct_rows_than_components():
    X = np.repeat([[0.0, 0.0], [1.0, 1.0]], 10, axis=0)
    assert mixture({}, 3, n_init=6).fit(X).n_occupied_ == 2
    assert mixture({}, 3, n_init=6).fit(np.ones((20, 2))).n_occupied_ == 1


@pytest.mark.slow
def test_equal_ends_are_told_apart_by_their_starts_and_not_by_round_off():
    # Several starts end in the same optimum, with its components in other orders.
    rng = np.random.default_rng(6)
    X = rng.normal(size=(48, 2))
    X[:24] += [3.5, 1.0]
    X = X[rng.permutation(48)]
    model = {"weight_concentration_prior_type": "dirichlet_distribution", "moves": "merge"}
    mixtures = [
        LRVBGaussianMixture(n_components=5, n_init=6, max_iter=300, random_state=0, **model).fit(rows)
        for rows in (X, [X[:17], X[17:18], X[18:40], X[40:]])
    ]
    np.testing.assert_allclose(mixtures[0].weights_, mixtures[1].weights_, rtol=1e-6)
