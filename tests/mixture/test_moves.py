"""Moves between optima: each raises the bound, surplus components leave, and no other fit is touched."""

import itertools
import warnings

import numpy as np
import pytest
from catalogue import (
    COVARIANCE_TYPES,
    WITH_LEARNED_PRIOR,
    WITH_NOISE,
    WITHOUT_NOISE,
    few_of,
    half_of,
    mixture,
    model_id,
    models_in_turn,
    newton_decrement,
    overlapping,
    posterior_of,
    prior_of,
    rows_around_mean,
    three_blobs,
    type_of,
)
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import BayesianGaussianMixture

from sklearn_lrvb import LRVBGaussianMixture
from sklearn_lrvb.gaussian.e_step.coordinates import OwnCoordinates, posterior_from_responsibilities
from sklearn_lrvb.gaussian.fitting.component_statistics import ComponentStatistics
from sklearn_lrvb.mixture.ascent import Ascent
from sklearn_lrvb.mixture.e_step import e_step, expect
from sklearn_lrvb.mixture.model import DegenerateComponentError, occupied
from sklearn_lrvb.mixture.moves import Move, MoveProposals, Moves, assignment_sums

PROPER = [
    model for model in (*half_of(WITHOUT_NOISE), *WITH_LEARNED_PRIOR, *WITH_NOISE) if model["prior"] != "flat"
]
catalogue = pytest.mark.parametrize("model", PROPER, ids=model_id)
some_models = pytest.mark.parametrize("model", few_of(PROPER), ids=model_id)
ACTIVE = ("auto", "merge", "search")
STICKS = {"weight_concentration_prior_type": "dirichlet_process"}


def counts_of(estimator):
    return posterior_of(estimator).counts


def surplus(model, moves, X, n_components=10, **parameters):
    return mixture(model, n_components, moves=moves, tol=1e-3, **parameters).fit(X)


# What a pass over the rows tells.


def state(model, weighted=False, n_components=5, n_iterations=3):
    """A fit on its way, from responsibilities at random."""
    X = three_blobs(200)
    rng = np.random.default_rng(1)
    rows = rows_around_mean(X, None, rng.uniform(0.2, 3.0, len(X)) if weighted else None)
    prior = prior_of(mixture(model, n_components), rows)
    start = posterior_from_responsibilities(rows, prior, rng.dirichlet(np.full(n_components, 0.5), len(X)))
    ascent = Ascent(rows, 1e-3, 100)
    fit = ascent.start_at(start)
    for _ in range(n_iterations):
        fit = ascent._iterated_once(fit)
    return rows, fit


@catalogue
@pytest.mark.parametrize("weighted", [False, True])
def test_sums_over_assignments_are_their_definitions(model, weighted):
    rows, fit = state(model, weighted)
    pairs, deleted = np.array([[0, 3], [4, 1]]), np.array([2, 4])
    sums = assignment_sums(rows, fit.posterior, pairs, deleted)
    block = rows.block(slice(0, rows.n_samples))
    r, w = expect(OwnCoordinates(fit.posterior), block).responsibilities, block.counts
    for (k, l), found in zip(pairs, sums.entropy_losses, strict=True):
        share = r[k] / (r[k] + r[l])
        binary = -share * np.log(share) - (1 - share) * np.log1p(-share)
        assert found == pytest.approx(w @ ((r[k] + r[l]) * binary), rel=1e-9)
    for k, kept, taken in zip(deleted, sums.log_kept, sums.taken_over, strict=True):
        others = np.delete(r, k, axis=0).sum(axis=0)
        assert kept == pytest.approx(w @ np.log(others), rel=1e-8)
        expected = np.einsum("n,n,ln->l", w, r[k] / others, r)
        expected[k] = 0.0
        np.testing.assert_allclose(taken, expected, rtol=1e-8)


@catalogue
@pytest.mark.parametrize(("weighted", "n_iterations"), [(False, 1), (True, 30)])
def test_a_deletion_gains_what_it_promises(model, weighted, n_iterations):
    rows, fit = state(model, weighted, n_iterations=n_iterations)
    proposals, weights = MoveProposals(rows, fit), fit.posterior.prior.weights
    components = np.arange(5)
    sums = assignment_sums(rows, fit.posterior, np.zeros((0, 2), dtype=int), components)
    counts = fit.e_step_result.moments.counts + sums.taken_over
    counts[components, components] = 0.0
    promised = proposals.deletion_gains(components, sums.log_kept, sums.taken_over)
    for k in components:
        without = ComponentStatistics(fit.posterior).emptied(k)
        posterior = without.m_step(e_step(rows, without, without=k).moments)
        if model["prior"] == "fixed":  # What is learned follows the component.
            np.testing.assert_allclose(posterior.label_counts, counts[k], rtol=1e-9, atol=1e-9)
        in_order = posterior.reordered(weights.of_components.best_order(posterior.counts))
        gained = e_step(rows, in_order).lower_bound - fit.e_step_result.lower_bound
        assert gained > promised[k] - 1e-9


@catalogue
def test_the_iteration_confirms_every_proposal(model):
    rows, fit = state(model, n_components=7, n_iterations=15)
    proposals = list(Moves().proposals(rows, fit, at_fixed_point=True))
    assert proposals
    for move in proposals:
        posterior = Moves().in_order(move.posterior)
        assert e_step(rows, posterior).lower_bound > fit.lower_bound
        assert len(posterior.counts) == 7
        assert posterior.label_counts.sum() == pytest.approx(rows.total_weight, rel=1e-9)


def test_a_move_that_does_not_raise_the_bound_is_not_made(monkeypatch):
    def one_component_for_all(self, rows, fit, at_fixed_point=False):
        yield Move("ruin", fit.posterior.reordered([0, 0, 0]))

    fits = []
    for proposals in (lambda *_, **__: iter(()), one_component_for_all):
        monkeypatch.setattr(Moves, "proposals", proposals)
        fits.append(mixture(PROPER[0], 3, moves="merge").fit(three_blobs()))
    assert fits[0].lower_bounds_ == fits[1].lower_bounds_
    assert fits[1].n_occupied_ == 3


class OfGivenPosteriors(Moves):
    """Moves that refuse a posterior."""

    def in_order(self, posterior):
        if posterior is None:
            raise DegenerateComponentError("no posterior")
        return posterior


def test_a_degenerate_move_does_not_hide_those_after_it():
    rows, fit = state(PROPER[0])
    ascent = Ascent(rows, 1e-3, 100, moves=OfGivenPosteriors())
    void, iteration = Move("void", None), Move("iteration", fit.next_posterior)
    assert ascent._first_that_gains(fit, [void, iteration, void]).posterior is fit.next_posterior
    assert ascent._first_that_gains(fit, [void, void]) is None

    def nothing_to_propose():
        raise DegenerateComponentError("no state")
        yield

    assert ascent._first_that_gains(fit, nothing_to_propose()) is None


def test_a_degenerate_deletion_does_not_hide_the_moves_after_it(monkeypatch):
    def names(fit):
        return [move.name.split()[0] for move in Moves().proposals(rows, fit, at_fixed_point=True)]

    def refused(posterior, moments):
        raise DegenerateComponentError("no posterior")

    rows, fit = state({**STICKS, "prior": "fixed"}, n_components=7, n_iterations=30)
    none = np.zeros((0, 2), dtype=int), np.zeros(0)
    monkeypatch.setattr(MoveProposals, "_promising_pairs", lambda self: none)
    assert names(fit) == ["deleted", "sorted", "merged"]
    monkeypatch.setattr(type(fit.posterior), "m_step", refused)
    assert names(fit) == ["sorted", "merged"]


def test_merges_of_two_empty_components_are_not_looked_at(monkeypatch):
    rows, fit = state(STICKS, n_components=60, n_iterations=30)
    full = occupied(fit.next_posterior.counts)
    assert 1 < np.count_nonzero(full) < 20
    known, seen = ComponentStatistics.merge_gains, []

    def spied(self, pairs):
        seen.append(pairs)
        return known(self, pairs)

    monkeypatch.setattr(ComponentStatistics, "merge_gains", spied)
    list(MoveProposals(rows, fit).merges_or_deletion())
    expected = [pair for pair in itertools.combinations(range(60), 2) if full[list(pair)].any()]
    np.testing.assert_array_equal(seen[0], expected)


def test_components_collapse_as_long_as_their_merges_are_defined(monkeypatch):
    rows, fit = state(PROPER[0])
    known, made = ComponentStatistics.merge_gains, []

    def undefined_after_two(self, pairs):
        made.append(len(pairs))
        return known(self, pairs) if len(made) < 3 else np.full(len(pairs), -np.inf)

    monkeypatch.setattr(ComponentStatistics, "merge_gains", undefined_after_two)
    for move in MoveProposals(rows, fit).collapses():
        assert np.isfinite(e_step(rows, move.posterior).lower_bound)
    assert made == [10, 6, 3]


# Fits.


@pytest.mark.slow
@models_in_turn(few_of(PROPER), "moves", ACTIVE)
def test_surplus_components_leave(model, moves):
    X = three_blobs(400)
    plain = surplus(model, None, X)
    fit = surplus(model, moves, X)
    assert fit.converged_
    assert fit.lower_bound_ > plain.lower_bound_ - 0.05  # of which the order of sticks may cost a little
    bounds = np.array(fit.lower_bounds_)
    assert len(bounds) == fit.n_iter_
    assert np.diff(bounds).min() > -1e-11 * abs(bounds[-1])
    assert fit.means_.shape == plain.means_.shape
    assert fit.covariances_.shape == plain.covariances_.shape
    assert fit.n_occupied_ == np.count_nonzero(counts_of(fit) >= 0.5)
    assert fit.posterior_std_.min() > 0
    assert newton_decrement(fit) < 1e-6
    if moves != "auto" and model["covariance_type"] in ("full", "diag") and not model.get("noise"):
        assert fit.n_occupied_ == 3


@pytest.mark.slow
@some_models
def test_an_empty_component_is_at_its_prior(model):
    sparse = {**model, "weight_concentration_prior": 1e-3}
    fit = surplus(sparse, "merge", three_blobs(400))
    empty = counts_of(fit) < 1e-6
    assert empty.sum() == 10 - fit.n_occupied_
    np.testing.assert_allclose(fit.means_[empty] - fit.mean_prior_, 0.0, atol=1e-5)
    np.testing.assert_allclose(fit.mean_precision_[empty], fit.mean_precision_prior_, rtol=1e-5)
    if not type_of(model).is_shared:
        prior_covariance = fit.covariance_prior_ / fit.degrees_of_freedom_prior_
        found = fit.covariances_[empty]
        np.testing.assert_allclose(
            found, np.broadcast_to(prior_covariance, found.shape), rtol=1e-4, atol=1e-6
        )
    if model["covariance_type"] == "full" and model["prior"] == "fixed":
        # Student's t with one degree of freedom has no variance
        assert np.isinf(fit.means_std_[empty]).all()


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
@pytest.mark.parametrize("X", [three_blobs(), overlapping()], ids=["three", "two"])
def test_a_fit_without_surplus_is_the_same_to_the_last_bit(covariance_type, X):
    n_components = 3 if X.shape[1] == 3 else 2
    plain, auto = (
        mixture({"covariance_type": covariance_type}, n_components, moves=moves, tol=1e-3).fit(X)
        for moves in (None, "auto")
    )
    assert counts_of(plain).min() > X.shape[1] + 1
    assert auto.lower_bounds_ == plain.lower_bounds_
    np.testing.assert_array_equal(auto.posterior_mean_, plain.posterior_mean_)


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
@pytest.mark.parametrize(("shape", "n_first"), [((10, 2), 5), ((7, 3), 3), ((40, 60), 20), ((40, 60), 8)])
@pytest.mark.filterwarnings("ignore:A covariance matrix of")
def test_few_rows_are_no_sign_of_a_surplus(covariance_type, shape, n_first):
    X = np.random.default_rng(0).normal(size=shape)
    X[n_first:] += 6.0
    model = LRVBGaussianMixture(
        n_components=2, covariance_type=covariance_type, prior="fixed", random_state=0
    )
    plain, auto = (clone(model).set_params(moves=moves).fit(X) for moves in (None, "auto"))
    assert plain.n_occupied_ == 2
    assert auto.lower_bounds_ == plain.lower_bounds_


def wide_clusters(n_clusters):
    """Rows in 60 features, where few rows determine one variance."""
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(n_clusters, 60))
    return centers[np.arange(200) % n_clusters] + rng.normal(size=(200, 60))


@pytest.mark.slow
@pytest.mark.parametrize("n_clusters", [1, 3])
def test_surplus_components_leave_a_wide_table_where_each_has_one_variance(n_clusters):
    X = wide_clusters(n_clusters)
    plain, auto = (surplus({"covariance_type": "spherical"}, moves, X, 8) for moves in (None, "auto"))
    assert auto.converged_
    assert auto.n_occupied_ == n_clusters
    assert auto.lower_bound_ > plain.lower_bound_ + 100


def test_moves_do_not_wait_until_components_of_one_cluster_stop_to_exchange_rows():
    fit = surplus({"covariance_type": "spherical"}, "merge", wide_clusters(1), 8, max_iter=30)
    assert fit.converged_
    assert fit.n_occupied_ == 1
    assert np.diff(fit.lower_bounds_).min() >= 0


def test_merge_acts_where_every_component_has_rows_enough():
    X = np.random.default_rng(0).normal(size=(1000, 10))
    X[:500, 0] += 6.0
    auto, merge = (
        LRVBGaussianMixture(n_components=8, prior="fixed", random_state=0, max_iter=max_iter, moves=moves)
        for max_iter, moves in ((25, "auto"), (100, "merge"))
    )
    with pytest.warns(ConvergenceWarning):
        auto.fit(X)
    assert counts_of(auto).min() > 11
    assert auto.n_occupied_ == 8
    assert merge.fit(X).n_occupied_ == 2
    assert merge.lower_bound_ > auto.lower_bound_ + 150


@pytest.mark.parametrize("moves", ACTIVE)
@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_fits_with_moves_do_not_depend_on_units(moves, covariance_type):
    X = three_blobs(300)
    settings = {"covariance_type": covariance_type, "reg_covar": 0.0}
    one, other = (surplus(settings, moves, Y) for Y in (X, 1e-7 * X + 1e-4))
    assert one.n_iter_ == pytest.approx(other.n_iter_, abs=5)
    jacobian = 300 * 3 * np.log(1e-7)
    assert other.lower_bound_ + jacobian == pytest.approx(one.lower_bound_, abs=1e-4)
    np.testing.assert_allclose(np.sort(counts_of(one)), np.sort(counts_of(other)), rtol=1e-3, atol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("moves", ACTIVE)
def test_fits_with_moves_are_reproducible_whatever_the_threads(moves):
    X = three_blobs(1200)
    one, again, threads = (surplus(PROPER[0], moves, X, n_jobs=n_jobs) for n_jobs in (1, 1, 2))
    assert one.lower_bounds_ == again.lower_bounds_
    np.testing.assert_allclose(one.lower_bound_, threads.lower_bound_, rtol=1e-12)
    np.testing.assert_allclose(one.means_, threads.means_, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("moves", ACTIVE)
@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_a_weight_is_the_row_repeated(moves, covariance_type):
    X = three_blobs(150)
    times = np.random.default_rng(0).integers(0, 4, len(X))
    settings = {"covariance_type": covariance_type}
    weighted = mixture(settings, 8, moves=moves, tol=1e-3).fit(X, sample_weight=times)
    repeated = mixture(settings, 8, moves=moves, tol=1e-3).fit(np.repeat(X, times, axis=0))
    assert weighted.lower_bound_ == pytest.approx(repeated.lower_bound_, abs=1e-5)
    np.testing.assert_allclose(counts_of(weighted), counts_of(repeated), rtol=1e-4, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("moves", ("auto", "merge"))
def test_max_iter_is_kept(moves):
    for max_iter in (1, 12, 24, 26):
        estimator = mixture(PROPER[0], 10, moves=moves, max_iter=max_iter, init_params="random")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            assert estimator.fit(three_blobs()).n_iter_ <= max_iter
        assert len(estimator.lower_bounds_) == estimator.n_iter_


@pytest.mark.slow
@pytest.mark.parametrize("moves", ACTIVE)
def test_several_starts_with_moves_are_never_worse_than_one(moves):
    X = load_iris().data
    for seed in range(3):
        one, three = (
            LRVBGaussianMixture(n_components=8, random_state=seed, moves=moves, n_init=n).fit(X)
            for n in (1, 3)
        )
        assert three.lower_bound_ > one.lower_bound_ - 1e-9


def test_moves_are_named_and_counted(capsys):
    fit = surplus(PROPER[0], "merge", three_blobs(), verbose=1, verbose_interval=10_000)
    said = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert said[0] == "Initialization 0"
    assert said[-1] == "Initialization converged."
    moves = [line.split("\t") for line in said[1:-1]]
    assert moves
    for step, name in moves:
        assert 1 <= int(step.removeprefix("Iteration ")) <= fit.n_iter_
        assert name.strip().startswith(("merged components", "deleted component", "sorted the components"))


@pytest.mark.slow
def test_error_bars_of_a_table_s_columns():
    # ten components for one column at a time, as in a transformer of tables: each default fit has error bars
    rng = np.random.default_rng(0)
    columns = {
        "normal": rng.normal(50.0, 10.0, 800),
        "two": np.concatenate([rng.normal(-3.0, 1.0, 300), rng.normal(2.0, 1.0, 500)]),
        "lognormal": rng.lognormal(3.0, 0.8, 800),
        "exponential": rng.exponential(100.0, 800),
        "integers": rng.integers(17, 91, 800).astype(float),
    }
    for name, column in columns.items():
        fit = LRVBGaussianMixture(n_components=10, weight_concentration_prior=1e-3, random_state=0)
        fit.fit(column[:, None])
        assert fit.converged_, name
        assert fit.means_std_.min() > 0, name
        assert fit.n_occupied_ <= 6, name


def stacked():
    """Three Gaussians above each other, as in scikit-learn's example of the concentration prior."""
    rng = np.random.default_rng(2)
    layers = zip((200, 500, 200), (-0.7, 0.0, 0.7), (0.7, 0.5, 0.5), strict=True)
    return np.vstack([rng.normal(size=(n, 2)) * np.sqrt([v, 0.1]) + [0, y] for n, y, v in layers])


# Any two of the three are together.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("weights", "concentration", "seed"),
    [
        ("dirichlet_process", 1e-3, 0),
        ("dirichlet_process", 1.0, 6),
        ("dirichlet_distribution", 1e-3, 6),
        ("dirichlet_distribution", 1.0, 0),
    ],
)
def test_moves_are_no_worse_than_iterations_on_stacked_gaussians(weights, concentration, seed):
    # components on their way out used to mislead larger steps here
    X = stacked()
    model = {
        "weight_concentration_prior_type": weights,
        "weight_concentration_prior": concentration,
        "init_params": "random",
        "mean_precision_prior": 0.8,
        "reg_covar": 0.0,
    }
    parameters = {"n_components": 6, "random_state": seed, **model}
    iterations = LRVBGaussianMixture(solver="coordinate_ascent", tol=1e-9, max_iter=20_000, **parameters).fit(
        X
    )
    ours = LRVBGaussianMixture(max_iter=1000, **parameters).fit(X)
    assert ours.lower_bound_ > iterations.lower_bound_ - 1e-3


def test_all_components_may_be_one_where_no_two_should_be():
    X = stacked()
    prior = {"weight_concentration_prior_type": "dirichlet_distribution", "weight_concentration_prior": 1e-3}
    start = np.eye(6)[np.repeat([0, 1, 2], [200, 500, 200])]
    plain = mixture({**prior, "reg_covar": 0.0}, 6, init_params=start, mean_precision_prior=0.8).fit(X)
    assert plain.n_occupied_ == 3
    model = {**prior, "reg_covar": 0.0, "mean_precision_prior": 0.8, "init_params": lambda *_: start}
    moved = mixture(model, 6).fit(X)
    assert moved.n_occupied_ == 1
    assert moved.lower_bound_ > plain.lower_bound_ + 10


# Where moves cannot be made.


@pytest.mark.slow
@pytest.mark.parametrize("moves", ("merge", "search"))
@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"solver": "coordinate_ascent"}, "iterations alone"),
        ({"prior": "flat"}, "no posterior under prior='flat'"),
        ({"init_params": np.eye(3)[np.arange(300) % 3]}, "init_params is an array of responsibilities"),
        ({"warm_start": True}, "warm_start=True keeps"),
    ],
    ids=["solver", "prior", "start", "warm start"],
)
def test_what_moves_cannot_serve_is_refused_with_the_reason(moves, settings, reason):
    X = three_blobs()
    estimator = LRVBGaussianMixture(n_components=3, moves=moves, **settings)
    with pytest.raises(ValueError, match=f"moves='{moves}' cannot be made: .*{reason}.*Use moves='auto'"):
        estimator.fit(X)
    assert not hasattr(estimator, "means_")
    auto, none = (
        LRVBGaussianMixture(n_components=3, moves=choice, random_state=0, **settings).fit(X)
        for choice in ("auto", None)
    )
    assert auto.lower_bounds_ == none.lower_bounds_


@pytest.mark.slow
def test_a_continued_fit_keeps_its_components_in_their_places():
    X = three_blobs()
    estimator = LRVBGaussianMixture(n_components=8, moves=None, warm_start=True, random_state=0, max_iter=5)
    with pytest.warns(ConvergenceWarning):
        estimator.fit(X)
    means = estimator.set_params(max_iter=3000, moves=None).fit(X).means_
    with pytest.warns(ConvergenceWarning):
        estimator.set_params(max_iter=5, warm_start=False).fit(X)
    np.testing.assert_array_equal(
        estimator.set_params(max_iter=3000, moves="auto", warm_start=True).fit(X).means_, means
    )


def test_a_fit_of_scikit_learn_keeps_its_components_in_their_places():
    X = load_iris().data
    theirs = BayesianGaussianMixture(n_components=8, random_state=0, max_iter=3000, tol=1e-9).fit(X)
    ours = LRVBGaussianMixture.from_sklearn(theirs, X)
    assert np.abs(ours.weights_ - theirs.weights_).max() < 0.05
