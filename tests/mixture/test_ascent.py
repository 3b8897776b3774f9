"""The fit: the bound never falls, every solver finds the same optimum, and Newton's finds it soon."""

import collections
import pickle
import warnings

import numpy as np
import pytest
from catalogue import (
    COVARIANCE_TYPES,
    INFORMATION,
    MODELS,
    SOLVERS,
    few_of,
    fitted,
    formed_information,
    mixture,
    model_id,
    models_in_turn,
    newton_decrement,
    overlapping,
    rows_around_mean,
    set_sizes,
    solvers_of,
    three_blobs,
    use_information,
)
from sklearn.exceptions import ConvergenceWarning

from benchmarks.problems.clusters import PROBLEMS
from sklearn_lrvb import LRVBGaussianMixture
from sklearn_lrvb.estimators import gaussian_mixture as estimator_module
from sklearn_lrvb.estimators.gaussian_arguments import resolve_prior
from sklearn_lrvb.gaussian import information
from sklearn_lrvb.linear_response.solvers import DualInformation, PrimalInformation
from sklearn_lrvb.mixture.ascent import Ascent
from sklearn_lrvb.mixture.e_step import e_step

catalogue = pytest.mark.parametrize("model", few_of(MODELS), ids=model_id)
some_models = pytest.mark.parametrize("model", few_of(MODELS), ids=model_id)


@models_in_turn(
    few_of(MODELS),
    "way",
    [(*start, solver) for start in (("kmeans", 3), ("random", 2)) for solver in SOLVERS],
)
def test_lower_bound_never_falls(model, way):
    init_params, n_components, solver = way
    estimator = mixture(model, n_components, solver=solver, init_params=init_params, max_iter=60, tol=1e-8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        estimator.fit(three_blobs())
    bounds = np.array(estimator.lower_bounds_)
    assert len(bounds) == estimator.n_iter_ > 3
    assert np.diff(bounds).min() > -1e-11 * abs(bounds[-1])
    assert bounds[-1] == estimator.lower_bound_


@some_models
def test_newton_and_coordinate_ascent_meet(model):
    iterations = mixture(model, solver="coordinate_ascent", tol=1e-12, max_iter=20_000).fit(overlapping())
    newton_fit = fitted(model)
    distance = np.abs(iterations.posterior_mean_ - newton_fit.posterior_mean_) / newton_fit.posterior_std_
    assert distance.max() < 1e-4
    assert newton_fit.n_iter_ < iterations.n_iter_ / 2


@models_in_turn(few_of(MODELS), "information", INFORMATION)
def test_every_solver_of_the_information_ends_at_the_same_optimum(model, information, monkeypatch):
    information = information if information in solvers_of(model) else "primal"
    use_information(information, monkeypatch)
    estimator = mixture(model).fit(overlapping())
    assert estimator.converged_
    expected = fitted(model)
    distance = np.abs(estimator.posterior_mean_ - expected.posterior_mean_) / expected.posterior_std_
    assert distance.max() < 1e-6
    np.testing.assert_allclose(estimator.posterior_std_, expected.posterior_std_, rtol=1e-6)
    formed = {"primal": PrimalInformation, "dual": DualInformation, "matrix_free": type(None)}[information]
    assert isinstance(formed_information(estimator), formed)


@catalogue
def test_converged_means_at_the_optimum(model):
    estimator = mixture(model, tol=1e-3, max_iter=100).fit(overlapping())
    assert estimator.converged_
    assert newton_decrement(estimator) < 1e-6
    distance = np.abs(estimator.posterior_mean_ - fitted(model).posterior_mean_)
    assert (distance / estimator.posterior_std_).max() < 1e-5


def test_decrement_is_the_distance_in_standard_deviations_and_its_half_square_the_gain():
    model = {**MODELS[0], "solver": "coordinate_ascent"}
    estimator = mixture(model, tol=1e-3).fit(overlapping())
    best = fitted(MODELS[0])
    gain = best.lower_bound_ - estimator.lower_bound_
    assert 0.5 * newton_decrement(estimator) ** 2 == pytest.approx(gain, rel=0.05)
    difference = estimator.posterior_mean_ - best.posterior_mean_
    assert newton_decrement(estimator) > np.abs(difference / best.posterior_std_).max()


@pytest.mark.slow
def test_iteration_counts_of_a_hard_problem():
    # two clouds 1.5 sd apart: iterations need hundreds of steps
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 2))
    X[:2000, 0] += 1.5
    X[:2000, 1] *= 0.7
    estimator = mixture(MODELS[0], tol=1e-3).fit(X)
    assert estimator.n_iter_ <= 25
    iterations = mixture(MODELS[0], tol=1e-9, solver="coordinate_ascent").fit(X)
    assert iterations.n_iter_ > 300
    distance = np.abs(iterations.posterior_mean_ - estimator.posterior_mean_) / estimator.posterior_std_
    assert distance.max() < 0.01


@pytest.mark.parametrize("solver", SOLVERS)
def test_max_iter_is_kept_and_said(solver):
    for max_iter in (1, 3, 7):
        estimator = mixture(MODELS[0], max_iter=max_iter, solver=solver, init_params="random")
        with pytest.warns(ConvergenceWarning, match="increase max_iter"):
            estimator.fit(overlapping())
        assert estimator.n_iter_ == max_iter
        assert not estimator.converged_


@pytest.mark.parametrize("solver", SOLVERS)
def test_no_iterations_give_the_start(solver):
    estimator = mixture(MODELS[0], max_iter=0, solver=solver).fit(overlapping())
    assert estimator.n_iter_ == 0
    assert estimator.lower_bounds_ == []
    assert np.isfinite(estimator.lower_bound_)
    assert estimator.lower_bound_ < fitted(MODELS[0]).lower_bound_


def test_one_component_needs_one_step():
    estimator = mixture({"prior": "flat"}, 1).fit(overlapping())
    assert estimator.n_iter_ == 1
    assert estimator.converged_


def test_zero_tolerance_ends_at_round_off():
    estimator = mixture(MODELS[0], tol=0.0).fit(overlapping())
    assert estimator.converged_
    assert newton_decrement(estimator) < 1e-8


def test_a_flat_ridge_is_not_taken_for_the_optimum():
    # four components on one cloud: the smallest eigenvalue is 3e-4, and the quadratic model fails
    X = np.random.default_rng(0).normal(size=(400, 2))
    estimator = mixture({"prior": "flat"}, 4, init_params="random", tol=1e-3, warm_start=True).fit(X)
    first = estimator.lower_bound_
    assert estimator.fit(X).lower_bound_ - first < 1e-3


@pytest.mark.slow
def test_newton_fits_under_the_flat_prior_where_iterations_do():
    # the bound is unbounded as a component empties: larger steps must not run up there
    rng = np.random.default_rng(1)
    X = rng.normal(size=(600, 2)) + 0.8 * rng.normal(size=(3, 2))[rng.integers(3, size=600)]
    outcomes = {}
    for solver, tol in (("newton", 1e-3), ("coordinate_ascent", 1e-9)):
        for seed in range(8):
            try:
                parameters = {"random_state": seed, "solver": solver, "tol": tol, "max_iter": 5000}
                LRVBGaussianMixture(n_components=4, prior="flat", **parameters).fit(X)
                outcomes[solver, seed] = True
            except ValueError:
                outcomes[solver, seed] = False
    fits = [outcomes["coordinate_ascent", seed] for seed in range(8)]
    assert 0 < sum(fits) < 8  # both outcomes are seen
    for seed in range(8):
        assert outcomes["newton", seed] >= outcomes["coordinate_ascent", seed]


@some_models
def test_a_fit_cut_short_has_converged_where_half_its_squared_decrement_is_below_tol(model):
    def cut_short(tol):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return mixture(model, tol=tol, max_iter=2).fit(overlapping())

    gain_to_come = 0.5 * newton_decrement(cut_short(1e-9)) ** 2
    assert gain_to_come > 1e-8
    assert cut_short(1.5 * gain_to_come).converged_
    assert not cut_short(0.7 * gain_to_come).converged_


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_a_step_that_leads_too_far_is_halved(covariance_type):
    rows = rows_around_mean(overlapping(), None, None)
    prior = resolve_prior(mixture({"covariance_type": covariance_type}), rows)
    ascent = Ascent(rows, 1e-9, 100)
    labels = (overlapping()[:, 0] > 1.3).astype(int)
    fit = ascent.start_from(np.eye(2)[labels], prior).with_information(rows)
    step = next(
        step
        for step in 2.0 ** np.arange(1, 5)[:, None] * fit.direction
        if e_step(rows, fit.posterior.after_step(step)).lower_bound < fit.lower_bound
    )
    moved = ascent._along(fit, step, 0.0)
    assert moved.lower_bound > fit.lower_bound
    assert moved.n_iter == 1


def start_at_a_saddle(monkeypatch, offsets=0.0):
    """Two equal components, or nearly: a stationary point that no gradient leaves."""

    def start(rows, n_components, *_):
        sides = np.outer(offsets * np.ones(rows.n_samples), (-1.0) ** np.arange(n_components))
        return 1 / n_components + sides

    monkeypatch.setattr(estimator_module, "starting_responsibilities", start)
    return {"weight_concentration_prior_type": "dirichlet_distribution"}


@pytest.mark.parametrize("information", INFORMATION)
def test_a_saddle_is_left(information, monkeypatch):
    use_information(information, monkeypatch)
    estimator = mixture(start_at_a_saddle(monkeypatch)).fit(overlapping())
    assert estimator.converged_
    assert newton_decrement(estimator) < 1e-6
    assert np.diff(estimator.lower_bounds_).min() > -1e-9
    assert estimator.lower_bounds_[-1] > estimator.lower_bounds_[0] + 1
    assert estimator.posterior_std_.min() > 0


@pytest.mark.parametrize("information", INFORMATION)
def test_a_fit_whose_last_step_ends_at_a_saddle_has_not_converged(information, monkeypatch):
    # the residual is zero there, so that a Newton step by products alone meets no negative curvature
    use_information(information, monkeypatch)
    estimator = mixture(start_at_a_saddle(monkeypatch), max_iter=1)
    with pytest.warns(ConvergenceWarning):
        estimator.fit(overlapping())
    assert not estimator.converged_
    assert np.ptp(estimator.means_, axis=0).max() < 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("offset", [1e-11, 1e-9, 1e-7, 1e-5])
@pytest.mark.parametrize("information", INFORMATION)
def test_negative_curvature_at_the_end_is_no_optimum(information, offset, monkeypatch):
    # so near the saddle that the decrement alone is that of an optimum, or of one a step away
    use_information(information, monkeypatch)
    offsets = np.linspace(-offset, offset, len(overlapping()))
    model = start_at_a_saddle(monkeypatch, offsets)
    estimator = mixture(model).fit(overlapping())
    assert estimator.converged_
    assert newton_decrement(estimator) < 1e-6
    assert estimator.lower_bounds_[-1] > estimator.lower_bounds_[0] + 1
    assert estimator.posterior_std_.min() > 0


def test_iterations_end_at_a_saddle_and_it_is_named(monkeypatch):
    estimator = mixture(start_at_a_saddle(monkeypatch), solver="coordinate_ascent").fit(overlapping())
    with pytest.raises(
        ValueError, match=r"smallest eigenvalue .* is -.*, mostly in the \w+ of components 0 and 1"
    ):
        estimator.posterior_std_


def test_a_saddle_is_left_without_a_matrix_too(monkeypatch):
    # twins that never part: rows know no difference between the first two components
    use_information("matrix_free", monkeypatch)
    X = three_blobs(450)
    start = np.random.default_rng(0).dirichlet(np.ones(3), size=450)
    start[:, 1] = start[:, 0]
    start /= start.sum(axis=1, keepdims=True)
    model = {"weight_concentration_prior_type": "dirichlet_distribution", "init_params": start}
    estimator = mixture(model, 3, tol=1e-3).fit(X)
    assert np.abs(estimator.means_[0] - estimator.means_[1]).max() > 0.1
    assert estimator.converged_
    assert estimator.means_std_.min() > 0


@pytest.mark.slow
@pytest.mark.parametrize(("prior", "most"), [("learned", 10), ("fixed", 5)])
def test_an_optimum_shows_in_few_products_where_a_matrix_would_cost_more(prior, most, monkeypatch):
    passes = collections.Counter()

    def counting(name):
        known = getattr(information.observed_information, name)

        def counted(*arguments, **keywords):
            passes[name] += 1
            return known(*arguments, **keywords)

        return counted

    for name in ("missing_information", "missing_information_product"):
        monkeypatch.setattr(information.observed_information, name, counting(name))

    problem = PROBLEMS["twenty-diagonal"]
    X = problem.simulate()
    model = {"n_components": 20, "covariance_type": "diag", "prior": prior}
    estimator = LRVBGaussianMixture(**model, random_state=0).fit(X)
    assert estimator.converged_
    assert passes["missing_information"] == 0
    assert 0 < passes["missing_information_product"] <= most
    for _ in range(2):
        assert estimator.posterior_std_.min() > 0
        assert np.isfinite(estimator.influence(X[:5])).all()
    assert passes["missing_information"] == 1
    assert newton_decrement(estimator) < 1e-6


@pytest.mark.slow
def test_the_decrement_travels_where_the_matrix_is_too_large_to(monkeypatch):
    set_sizes(monkeypatch, pickled_bytes=0)
    problem = PROBLEMS["twenty-diagonal"]
    X = problem.simulate()
    estimator = LRVBGaussianMixture(n_components=20, covariance_type="diag", random_state=0).fit(X)
    there = pickle.loads(pickle.dumps(estimator))
    assert 0 < newton_decrement(there) < 1e-6
    with pytest.raises(ValueError, match="needs the training rows"):
        there.posterior_std_


@pytest.mark.parametrize("model", MODELS[:6], ids=model_id)
def test_a_fit_that_ends_at_max_iter_within_tol_has_converged(model):
    whole = fitted(model)
    short = mixture(model, tol=0.1).set_params(max_iter=whole.n_iter_ - 1).fit(overlapping())
    assert short.n_iter_ == whole.n_iter_ - 1
    assert short.converged_
    assert 0.5 * newton_decrement(short) ** 2 < short.tol
    with pytest.warns(ConvergenceWarning):
        stopped = mixture(model).set_params(max_iter=3).fit(overlapping())
    assert not stopped.converged_
