"""Moves between optima where components have Student's t distributions."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from catalogue import COVARIANCE_TYPES, mixture, posterior_of, rows_around_mean, set_sizes, type_of
from covariance_types import TYPES
from scipy.optimize import minimize_scalar
from scipy.special import gammaln
from scipy.stats import expon

from sklearn_lrvb.estimators.gaussian_arguments import resolve_prior
from sklearn_lrvb.gaussian.e_step.coordinates import OwnCoordinates
from sklearn_lrvb.gaussian.fitting.component_statistics import (
    ComponentStatistics,
)
from sklearn_lrvb.gaussian.fitting.core import core_of
from sklearn_lrvb.gaussian.posterior.tails import ScaledWeights
from sklearn_lrvb.mixture.ascent import Ascent
from sklearn_lrvb.mixture.e_step import e_step, expect
from sklearn_lrvb.mixture.moves import MoveProposals, Moves, assignment_sums
from sklearn_lrvb.mixture.search import RowsOfComponents, Search, splits

TAILS = (4.0, "student", "student_by_component")
MODELS = [
    {
        "covariance_type": covariance_type,
        "tails": tails,
        "factorization": "independent" if (i + j) % 2 else "joint",
        "reg_covar": 0.05 * (i % 2),
        "noise": -20.0 if j == 1 else None,
        "weight_concentration_prior_type": "dirichlet_process" if i < 2 else "dirichlet_distribution",
    }
    for (i, covariance_type), (j, tails) in itertools.product(enumerate(COVARIANCE_TYPES), enumerate(TAILS))
    if not (TYPES[covariance_type].is_shared and tails == "student_by_component")
]


def model_name(model):
    return f"{model['covariance_type']}-{model['tails']}-{model['factorization']}"


catalogue = pytest.mark.parametrize("model", MODELS, ids=model_name)


def heavy_clusters(nu, n_samples, n_features=2, seed=0, distance=5.0):
    """Three clusters of Student's t distributions, and the numbers of their rows' clusters."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n_samples) % 3
    centers = distance * np.eye(3, n_features)
    X = rng.normal(size=(n_samples, n_features)) * np.sqrt(nu / rng.chisquare(nu, size=(n_samples, 1)))
    return X @ (np.eye(n_features) + 0.3 * rng.normal(size=2 * (n_features,))) + centers[labels], labels


def prior_of(model, n_components, rows):
    core = None if model["noise"] is None else core_of(rows)
    return resolve_prior(mixture(model, n_components), rows, core=core)


def state(model, n_components=5, n_iterations=4, start=None, distance=3.0):
    """A fit on its way; without a start, from responsibilities at random."""
    X, labels = heavy_clusters(3.0, 200, distance=distance)
    rng = np.random.default_rng(1)
    rows = rows_around_mean(X, None, rng.uniform(0.2, 3.0, len(X)))
    prior = prior_of(model, n_components, rows)
    shares = rng.dirichlet(np.full(n_components, 0.5), len(X)) if start is None else start(labels)
    if model["noise"] is not None:
        shares = np.column_stack([shares, np.zeros(len(X))])
    ascent = Ascent(rows, 1e-3, 100)
    fit = ascent.start_from(shares, prior)
    for _ in range(n_iterations):
        fit = ascent._iterated_once(fit)
    return rows, fit


# What a move makes of the statistics, and what it gains.


@catalogue
def test_a_merge_keeps_the_scales_of_all_rows(model):
    # the M-step from the rows of two components, weighted by the scales that they have in either; learned
    # hyperparameters follow it
    rows, fit = state({**model, "prior": "fixed"})
    posterior = fit.posterior
    coordinates = OwnCoordinates(posterior)
    block = rows.block(slice(0, rows.n_samples))
    expectation = expect(coordinates, block)
    weights = expectation.weights(block.weighted(expectation.responsibilities))
    counted, scaled, of_logs = weights.counted.copy(), weights.scaled.copy(), weights.log_scale_sums.copy()
    for array in (counted, scaled, of_logs):
        array[3] += array[1]
        array[1] = 0.0
    moments = coordinates.moments(expectation.represented, ScaledWeights(counted, scaled, of_logs))
    expected = posterior.m_step(posterior.with_prior(moments))
    merged = ComponentStatistics(fit.next_posterior).merged_posterior(np.array([[3, 1]]))
    for name in ("label_counts", "scale_sums", "centred_means", "covariance_cholesky", "mean_precision"):
        np.testing.assert_allclose(getattr(merged, name), getattr(expected, name), rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(merged.tails.nu, expected.tails.nu, rtol=1e-6)


@catalogue
def test_merges_gain_at_least_what_they_promise(model):
    rows, fit = state(model)
    pairs = np.array(list(itertools.permutations(range(5), 2)))
    statistics = ComponentStatistics(fit.next_posterior)
    promised = statistics.merge_gains(pairs) - assignment_sums(rows, fit.posterior, pairs, ()).entropy_losses
    gained = [
        e_step(rows, Moves().in_order(statistics.merged_posterior(pair[None]))).lower_bound - fit.lower_bound
        for pair in pairs
    ]
    assert np.all(gained > promised - 1e-8)


@catalogue
def test_what_components_add_to_the_divergence_is_all_of_it(model):
    _, fit = state(model)
    posterior, divergences = fit.posterior, fit.posterior.divergences
    shared = divergences.weights
    if type_of(model).is_shared:
        shared += divergences.precisions[0]
    if model["tails"] == "student":
        shared += posterior.tails.negative_log_prior()
    shared -= posterior.prior.learned.bound(posterior.prior)
    assert ComponentStatistics(posterior).own_divergences.sum() + shared == pytest.approx(
        divergences.total, rel=1e-10
    )


def best_tails(count, log_sum):
    """Largest contribution of one nu to the lower bound, its prior included, given its rows' sums."""

    def contribution(log_nu):
        nu = np.exp(log_nu)
        of_rows = count * (0.5 * nu * np.log(0.5 * nu) - gammaln(0.5 * nu)) + 0.5 * nu * log_sum
        return of_rows + expon(scale=10.0).logpdf(nu) + log_nu

    found = minimize_scalar(lambda log_nu: -contribution(log_nu), bounds=(-3.0, 9.0), method="bounded")
    return -found.fun


@pytest.mark.parametrize("model", [m for m in MODELS if m["tails"] == TAILS[2]], ids=model_name)
def test_own_degrees_of_freedom_gain_what_the_best_ones_for_all_rows_do(model):
    rows, fit = state(model)
    block = rows.block(slice(0, rows.n_samples))
    expectation = expect(OwnCoordinates(fit.posterior), block)
    counted = block.weighted(expectation.responsibilities)
    counts, sums = counted.sum(axis=1), expectation.weights(counted).log_scale_sums
    pairs, posterior = np.array([[0, 1], [4, 2]]), fit.next_posterior
    known = replace(posterior, tails=replace(posterior.tails, n_fitted=0))
    gains, without = (ComponentStatistics(q).merge_gains(pairs) for q in (posterior, known))
    for pair, gain in zip(pairs, gains - without, strict=True):
        apart = sum(best_tails(counts[k], sums[k]) for k in pair)
        assert gain == pytest.approx(
            best_tails(counts[pair].sum(), sums[pair].sum()) + best_tails(0, 0) - apart
        )


@catalogue
def test_light_tails_have_the_gains_of_normal_components(model):
    rows, fit = state({**model, "tails": 1e9})
    pairs = np.array(list(itertools.combinations(range(5), 2)))
    posterior = fit.next_posterior
    normal = replace(
        posterior,
        prior=prior_of({**model, "tails": "normal"}, 5, rows),
        scale_sums=None,
        tails=None,
    )
    gains, expected = (ComponentStatistics(q).merge_gains(pairs) for q in (posterior, normal))
    np.testing.assert_allclose(gains, expected, rtol=1e-5)


@catalogue
def test_deletions_gain_at_least_what_they_promise(model):
    rows, fit = state(model)
    proposals, components = MoveProposals(rows, fit), np.arange(5)
    sums = assignment_sums(rows, fit.posterior, np.zeros((0, 2), dtype=int), components)
    promised = proposals.deletion_gains(components, sums.log_kept, sums.taken_over)
    for k in components:
        without = ComponentStatistics(fit.posterior).emptied(k)
        posterior = Moves().in_order(without.m_step(e_step(rows, without, without=k).moments))
        assert e_step(rows, posterior).lower_bound - fit.lower_bound > promised[k] - 1e-8


@catalogue
def test_splits_gain_at_least_what_they_promise(model):
    # two of three clusters in one component, and a fit that has found its degrees of freedom
    joined = np.eye(4)[[0, 1, 1]]
    rows, fit = state(model, 4, n_iterations=40, start=lambda labels: joined[labels], distance=12.0)
    search = Search(rows, fit)
    found = splits(RowsOfComponents(rows, fit.posterior), fit.next_posterior, np.arange(2))
    promised = [search.gain_of_split(split, 2) for split in found]
    assert max(promised) > 5
    before = e_step(rows, Moves().in_order(fit.next_posterior)).lower_bound
    for split, gain in zip(found, promised, strict=True):
        posterior = Moves().in_order(search.after([split], [2]).posterior)
        assert e_step(rows, posterior).lower_bound - before > gain - 0.5


# The whole search.


@pytest.mark.slow
@pytest.mark.parametrize("moves", ["auto", "search"])
@pytest.mark.parametrize("model", MODELS[::2], ids=model_name)
def test_surplus_components_leave_clusters_of_heavy_tails(model, moves):
    X, labels = heavy_clusters(3.0, 300, distance=8.0)
    # Under a learned prior parts of a cluster with rows enough may stay parts. With tails of their own the
    # bound prefers them as often as not: in four of six such tables.
    if moves == "auto" or model["tails"] == "student_by_component":
        model = {**model, "prior": "fixed"}
    found = mixture(model, 8, moves=moves).fit(X)
    start = {"init_params": lambda *_: np.eye(8 + (model["noise"] is not None))[labels]}
    truth = mixture(model, 8, moves=None, **start).fit(X)
    assert found.n_occupied_ == truth.n_occupied_ == 3
    assert found.lower_bound_ > truth.lower_bound_ - 0.5  # The order of components is worth so much.
    assert np.diff(found.lower_bounds_).min() > -1e-9
    assert found.converged_


@pytest.mark.slow
@pytest.mark.parametrize(("tails", "seed"), [("student", 28), ("student_by_component", 13)])
def test_a_component_takes_over_the_rows_far_out_from_another(tails, seed, monkeypatch):
    # from light tails, a broad component takes the rows far out, and the degrees of freedom are of the cores
    set_sizes(monkeypatch, first_nu=30.0)
    X, labels = heavy_clusters(3.0, 300, distance=8.0, seed=seed)
    found = mixture({"tails": tails}, 8, moves="merge").fit(X)
    truth = mixture({"tails": tails}, 8, moves=None, init_params=lambda *_: np.eye(8)[labels]).fit(X)
    assert found.n_occupied_ == 3
    assert found.lower_bound_ > truth.lower_bound_ - 0.5


@pytest.mark.parametrize("nu", [0.5, 30.0])
def test_a_fit_does_not_depend_on_where_degrees_of_freedom_start(nu, monkeypatch):
    X, labels = heavy_clusters(4.0, 300, seed=2)
    settings = {"tails": "student", "init_params": np.eye(3)[labels]}
    one = mixture(settings, 3).fit(X)
    set_sizes(monkeypatch, first_nu=nu)
    other = mixture(settings, 3).fit(X)
    assert other.lower_bounds_[0] != one.lower_bounds_[0]
    assert other.tails_ == pytest.approx(one.tails_, rel=1e-6)
    np.testing.assert_allclose(other.means_, one.means_, atol=1e-6)


def test_fits_of_heavy_tails_keep_max_iter():
    X, _ = heavy_clusters(3.0, 200)
    for max_iter in (25, 40):
        estimator = mixture({"tails": "student"}, 8, max_iter=max_iter, tol=1e12)
        assert estimator.fit(X).n_iter_ <= max_iter


def test_empty_components_have_the_degrees_of_freedom_of_the_prior():
    X, _ = heavy_clusters(3.0, 300, distance=8.0)
    found = mixture({"tails": "student_by_component", "weight_concentration_prior": 1e-3}, 6).fit(X)
    empty = posterior_of(found).counts < 1e-6
    assert empty.sum() == 3
    np.testing.assert_allclose(found.tails_[empty], 10.0, rtol=1e-4)  # The prior's mode of log nu.


def test_a_continued_fit_has_the_degrees_of_freedom_that_are_asked_for():
    X, labels = heavy_clusters(3.0, 200)
    start = {"init_params": np.eye(3)[labels]}
    fresh = mixture({"tails": 9.0}, 3, **start).fit(X)
    continued = mixture({"tails": 3.0}, 3, warm_start=True, **start).fit(X)
    continued.set_params(tails=9.0).fit(X)
    assert continued.tails_ == 9.0
    np.testing.assert_allclose(continued.means_, fresh.means_, atol=1e-6)
    with pytest.raises(ValueError, match=r"tails=9\.0; now .*tails='student'"):
        continued.set_params(tails="student").fit(X)
