"""The lower bound never falls: a thousand random iterations and a hundred random fits, over all options."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from catalogue import overlapping, posterior_of, rows_of
from covariance_types import TYPES
from sklearn.exceptions import ConvergenceWarning

from sklearn_lrvb import LRVBGaussianMixture
from sklearn_lrvb.gaussian.e_step.coordinates import MAX_AMPLIFICATION
from sklearn_lrvb.gaussian.posterior.variational_posterior import VariationalPosterior
from sklearn_lrvb.mixture.e_step import e_step
from sklearn_lrvb.mixture.model import DegenerateComponentError

N_ITERATIONS = 6


def random_rows(rng, n_features):
    """Few rows of a random kind, and a scale of their own."""
    n_samples = rng.choice([3, 5, 8, 15, 30])
    X = rng.normal(size=(n_samples, n_features))
    match rng.choice(["normal", "clusters", "repeated", "outliers", "dependent", "units"]):
        case "clusters":
            X += 6.0 * rng.normal(size=(3, n_features))[rng.integers(3, size=n_samples)]
        case "repeated":
            X = np.round(X[rng.integers(max(2, n_samples // 3), size=n_samples)])
        case "outliers":
            X = rng.standard_t(1.5, size=X.shape)
        case "dependent":  # variances of up to 1e16 apart
            X[:, -1] = X[:, 0] + 10.0 ** rng.uniform(-8, 0) * X[:, -1]
        case "units":
            X *= 10.0 ** rng.uniform(-8, 8, n_features)
    scale = 10.0 ** rng.choice([0.0, 0.0, rng.uniform(-60, 60)])
    offset = rng.choice([0.0, 0.0, 10.0 ** rng.uniform(0, 8)])
    return scale * (X + offset), scale


def random_prior(rng, X, scale, covariance_type):
    """Arguments of a proper prior, each from very weak to very strong, or its default."""
    n_features = X.shape[1]
    variances = scale**2 * 10.0 ** rng.uniform(-6, 6) * np.ones(n_features)
    given = {
        "weight_concentration_prior": 10.0 ** rng.uniform(-6, 6),
        "mean_precision_prior": 10.0 ** rng.uniform(-8, 6),
        "mean_prior": X[rng.integers(len(X))],
        "degrees_of_freedom_prior": n_features - 1 + 10.0 ** rng.uniform(-2, 6),
        "covariance_prior": TYPES[covariance_type].prior(np.diag(variances)),
    }
    chosen = {name: value for name, value in given.items() if rng.random() < 0.4}
    kinds = ["dirichlet_process", "dirichlet_distribution"]
    return {"weight_concentration_prior_type": str(rng.choice(kinds)), **chosen}


def random_case(seed):
    """Rows, their weights or None, and a mixture, from a seed."""
    rng = np.random.default_rng(seed)
    X, scale = random_rows(rng, rng.choice([1, 2, 3, 5]))
    covariance_type = str(rng.choice(["full", "tied", "diag", "spherical"]))
    prior = str(rng.choice(["learned", "learned", "fixed", "flat"]))
    solver = str(rng.choice(["newton", "newton", "coordinate_ascent"]))
    may_move = prior != "flat" and solver == "newton"
    mixture = LRVBGaussianMixture(
        n_components=int(min(len(X), rng.choice([1, 2, 3, 5]))),
        covariance_type=covariance_type,
        prior=prior,
        solver=solver,
        factorization=str(rng.choice(["joint", "independent"])),
        reg_covar=float(rng.choice([0.0, 1e-6, 1e-3, 1e-6 * scale**2, scale**2])),
        init_params=str(rng.choice(["k-means++", "random", "random_from_data"])),
        moves=[None, "auto", "merge", "search"][rng.integers(4 if may_move else 2)],
        tol=10.0 ** rng.uniform(-9, -2),
        max_iter=int(rng.choice([20, 300])),
        random_state=seed,
        **(random_prior(rng, X, scale, covariance_type) if prior != "flat" else {}),
    )
    weights = rng.exponential(size=len(X)) * 10.0 ** rng.uniform(-1, 3) + 0.5
    return X, weights if rng.random() < 0.3 else None, mixture


def fitted_or_none(mixture, X, weights):
    """The mixture, fitted; or None where the prior does not suit these rows, or a component degenerates."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings(
            "ignore", "reg_covar=.* is large for these data|A covariance matrix of .* columns"
        )
        try:
            return mixture.fit(X, sample_weight=weights)
        except ValueError as error:
            expected = "ill-defined", "no proper posterior", "is empty"
            assert any(words in str(error) for words in expected)
            return None


def state_of(mixture, X, weights):
    """The rows of a fit, and the posterior at its end."""
    return rows_of(mixture, X, weights), posterior_of(mixture)


def round_off(posterior, lower_bound, rows):
    """The most that round-off can change the lower bound by."""
    amplification = MAX_AMPLIFICATION + posterior.amplification
    if rows.n_samples <= rows.n_features:
        # The fit was made in the span of the rows. Here the covariance of X is rounded outside of it too,
        # where it is small, and whitening amplifies that twice.
        amplification += posterior.amplification**2
    return np.finfo(float).eps * amplification * (abs(lower_bound) + rows.total_weight)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 300, 100))
@pytest.mark.filterwarnings("ignore:Columns of X", "ignore:Components have shrunk")
def test_no_iteration_from_a_random_start_lowers_the_bound(first):
    n_iterated = 0
    for seed in range(first, first + 100):
        X, weights, mixture = random_case(seed)
        if fitted_or_none(mixture.set_params(max_iter=0), X, weights) is None:
            continue
        rows, posterior = state_of(mixture, X, weights)
        result = e_step(rows, posterior)
        for _ in range(N_ITERATIONS):
            try:
                posterior = posterior.m_step(result.moments)
            except DegenerateComponentError:
                break
            before, result = result, e_step(rows, posterior)
            fall = before.lower_bound - result.lower_bound
            allowed = round_off(posterior, result.lower_bound, rows)
            assert fall <= allowed, f"seed {seed}: {fall:.3g} nats, round-off {allowed:.1g}, {mixture}"
            n_iterated += 1
    assert n_iterated > 80 * N_ITERATIONS


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 100, 50))
@pytest.mark.filterwarnings("ignore:Columns of X", "ignore:Components have shrunk")
def test_no_random_fit_lowers_its_bound(first):
    n_converged = 0
    for seed in range(first, first + 50):
        X, weights, mixture = random_case(seed)
        if fitted_or_none(mixture, X, weights) is None:
            continue
        assert np.all(np.diff(mixture.lower_bounds_) >= 0), f"seed {seed}: {mixture}"
        rows, posterior = state_of(mixture, X, weights)
        result = e_step(rows, posterior)
        allowed = round_off(posterior, result.lower_bound, rows)
        assert abs(mixture.lower_bound_ - result.lower_bound) <= allowed, f"seed {seed}: {mixture}"
        if mixture.converged_:
            gain = e_step(rows, posterior.m_step(result.moments)).lower_bound - result.lower_bound
            # Iterations alone stop where the last one gained less than tol; the next may gain a little more.
            most = mixture.tol if mixture.solver == "newton" else 2.0 * mixture.tol
            assert -allowed <= gain <= most + allowed, f"seed {seed}: {gain:.3g} nats, {mixture}"
            n_converged += 1
    assert n_converged > 30


@pytest.mark.parametrize("scale", [1e-30, 1e-40, 1e-60])
@pytest.mark.parametrize("reg_covar", [1e-3, 1e-6])
@pytest.mark.parametrize("covariance_type", ["full", "diag"])
def test_noise_that_dwarfs_the_rows_does_not_reach_empty_components(covariance_type, reg_covar, scale):
    # The noise is up to 1e117 of the prior's variances: a responsibility of 1e-100 for it is not negligible.
    X = scale * np.random.default_rng(0).normal(size=(30, 2))
    mixture = LRVBGaussianMixture(
        n_components=3,
        covariance_type=covariance_type,
        reg_covar=reg_covar,
        init_params="random_from_data",
        random_state=0,
    )
    with pytest.warns(UserWarning, match="is large for these data"):
        mixture.fit(X)
    assert mixture.converged_
    assert mixture.n_occupied_ == 1
    rows, posterior = state_of(mixture, X, None)
    after = posterior.m_step(e_step(rows, posterior).moments)
    assert e_step(rows, after).lower_bound == pytest.approx(mixture.lower_bound_, rel=1e-13)


@pytest.mark.slow
@pytest.mark.parametrize("solver", ["newton", "coordinate_ascent"])
def test_a_fit_ends_unconverged_where_iterations_lose(solver, monkeypatch):
    """The M-step moves the means too far, as if rounding had decided them."""
    with_statistics = VariationalPosterior._with_statistics

    def displaced(posterior, *arguments):
        after = with_statistics(posterior, *arguments)
        return replace(after, centred_means=after.centred_means + 0.1)

    monkeypatch.setattr(VariationalPosterior, "_with_statistics", displaced)
    mixture = LRVBGaussianMixture(n_components=2, solver=solver, random_state=0, tol=1e-6, moves=None)
    with pytest.warns(ConvergenceWarning):
        mixture.fit(overlapping())
    assert not mixture.converged_
    assert np.all(np.diff(mixture.lower_bounds_) >= 0)
    rows, posterior = state_of(mixture, overlapping(), None)
    assert e_step(rows, posterior).lower_bound == pytest.approx(mixture.lower_bound_, rel=1e-13)
