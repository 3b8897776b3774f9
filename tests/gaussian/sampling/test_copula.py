"""Draws of the posterior: their ranges, their moments by linear response, and q's own where that is exact."""

import functools
import warnings

import numpy as np
import pytest
from catalogue import (
    COVARIANCE_TYPES,
    INFORMATION,
    MODELS,
    WEIGHT_PRIORS,
    assert_equal_to_rounding,
    dense,
    few_of,
    fitted,
    mixture,
    model_id,
    overlapping,
    set_sizes,
    uncertainty_of,
    unique_of_draws,
    use_information,
    values_of,
)
from covariance_types import TYPES
from scipy import stats
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from sklearn_lrvb import LRVBGaussianMixture
from sklearn_lrvb.gaussian.covariance_structures.random_factors import BartlettFactors
from sklearn_lrvb.gaussian.sampling.copula import GaussianCopula
from sklearn_lrvb.sampling.sampler import PosteriorSampler

catalogue = pytest.mark.parametrize("model", few_of(MODELS), ids=model_id)
MOST = 5.0  # standard errors of an estimate from draws


def flat(model, draws):
    """theta of every draw, (n, D)."""
    n_draws = len(draws["weights"])
    precisions = unique_of_draws(model, draws["precisions"])
    parts = [np.log(draws["weights"]), draws["means"].reshape(n_draws, -1), precisions]
    if "tails" in draws:
        parts.append(np.log(draws["tails"]).reshape(n_draws, -1))
    return np.hstack(parts)


def assert_moments(x, mean, covariance, slack=0.0):
    """The moments of draws (n, d) are these but for Monte Carlo errors and a relative slack."""
    sd = np.sqrt(np.diag(covariance))
    noise = MOST / np.sqrt(len(x))
    np.testing.assert_allclose((x.mean(axis=0) - mean) / sd, 0, atol=noise + slack)
    error = (np.cov(x.T) - covariance) / np.outer(sd, sd)
    np.testing.assert_allclose(error, 0, atol=np.sqrt(2) * noise + slack)


def assert_drawn_from(x, cdf):
    """Kolmogorov and Smirnov's test."""
    assert stats.kstest(x, cdf).pvalue > 1e-3


def assert_in_range(model, draws, n_components=2, round_off=0.0):
    """On the simplex, positive definite up to round-off, and each other's inverses."""
    assert np.all(draws["weights"] >= 0)
    np.testing.assert_allclose(draws["weights"].sum(axis=1), 1, atol=1e-14)
    assert np.all(np.isfinite(draws["means"]))
    one, other = (
        np.concatenate([dense(model, own, n_components) for own in draws[name]])
        for name in ("precisions", "scales" if "scales" in draws else "covariances")
    )
    np.testing.assert_array_equal(one, one.swapaxes(1, 2))
    np.testing.assert_array_equal(other, other.swapaxes(1, 2))
    values = np.linalg.eigvalsh(one)
    assert np.all(values > -round_off * values[:, -1:])
    others = np.linalg.eigvalsh(other)
    assert np.all(others > -round_off * others[:, -1:])
    values = np.maximum(values, np.finfo(float).eps * values[:, -1:])
    error = np.abs(one @ other - np.eye(one.shape[-1])).max(axis=(1, 2))
    assert np.all(error < 1e-13 * values[:, -1] / values[:, 0])


@catalogue
def test_ranges_and_shapes(model):
    estimator = fitted(model)
    draws = estimator.posterior(random_state=1, method="lrvb").sample(60)
    tails = model.get("tails", "normal")
    names = ["weights", "means", "precisions", "covariances"]
    names += {"normal": [], 4.0: ["scales"]}.get(tails, ["scales", "tails"])
    assert list(draws) == names
    for target, values in draws.items():
        assert values.shape == (60, *np.shape(values_of(estimator, target)))
    assert_in_range(model, draws)
    if tails != "normal":
        nu = draws.get("tails", np.full(60, tails))
        nu = nu.reshape(nu.shape + (1,) * (draws["scales"].ndim - nu.ndim))
        expected = np.where(nu > 2.0, nu / np.where(nu > 2.0, nu - 2.0, 1.0), np.inf)
        np.testing.assert_allclose(draws["covariances"], expected * draws["scales"], rtol=1e-12)


@functools.cache
def _draws(items):
    return fitted(dict(items)).posterior(random_state=2, method="lrvb").sample(2000)


def draws_of(model):
    """2000 draws, shared between tests."""
    return _draws(tuple(model.items()))


@catalogue
def test_draws_have_nearly_the_moments_reported(model):
    # some 80 rows in a component
    estimator = fitted(model)
    draws = flat(model, draws_of(model))
    mean, covariance = estimator.posterior_mean_, estimator.posterior_covariance_
    # The log weight of noise without rows is far from normal.
    others = np.delete(np.arange(len(mean)), [2] if "noise" in model else [])
    assert_moments(draws[:, others], mean[others], covariance[np.ix_(others, others)], slack=0.2)


@functools.cache
def with_many_rows(covariance_type, weights):
    model = {"covariance_type": covariance_type, "weight_concentration_prior_type": weights}
    return model, mixture(model).fit(overlapping(5000))


@pytest.mark.parametrize("weights", WEIGHT_PRIORS)
@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_all_moments_are_those_reported_where_there_are_many_rows(covariance_type, weights):
    model, estimator = with_many_rows(covariance_type, weights)
    draws = flat(model, estimator.posterior(random_state=4, method="lrvb").sample(10_000))
    assert_moments(draws, estimator.posterior_mean_, estimator.posterior_covariance_, slack=0.005)


def few_rows(n_samples=12):
    return np.random.default_rng(5).normal(size=(n_samples, 3)) @ [[2, 0, 0], [1, 1, 0], [0, -1, 0.5]] + 30.0


@pytest.mark.slow
@pytest.mark.parametrize("covariance_type", ["full", "tied"])
def test_matrices_of_one_component_are_wishart(covariance_type):
    # no information is missing, and with 12 rows nothing is nearly normal
    model = {"covariance_type": covariance_type, "prior": "fixed"}
    estimator = mixture(model, n_components=1).fit(few_rows())
    draws = estimator.posterior(random_state=6, method="lrvb").sample(4000)["precisions"].reshape(4000, 3, 3)
    expected, nu = estimator.precisions_.reshape(3, 3), np.ravel(estimator.degrees_of_freedom_)[0]
    for direction in (*np.eye(3), np.array([1.0, -2.0, 0.5]), np.array([0.0, 0.4, 1.0])):
        ratio = np.einsum("p,npq,q->n", direction, draws, direction) / (direction @ expected @ direction)
        assert_drawn_from(nu * ratio, stats.chi2(nu).cdf)
    log_det = np.linalg.slogdet(draws)[1] - np.linalg.slogdet(expected)[1] + 3 * np.log(nu)
    wishart = np.log(stats.chi2.rvs(nu - np.arange(3), size=(4000, 3), random_state=0)).sum(axis=1)
    assert stats.ks_2samp(log_det, wishart).pvalue > 1e-3


@pytest.mark.parametrize("factorization", ["joint", "independent"])
@pytest.mark.parametrize("covariance_type", ["diag", "spherical"])
def test_scales_of_one_component_are_gamma(covariance_type, factorization):
    model = {"covariance_type": covariance_type, "prior": "fixed", "factorization": factorization}
    estimator = mixture(model, n_components=1).fit(few_rows())
    draws = estimator.posterior(random_state=7, method="lrvb").sample(4000)["precisions"]
    c = estimator.degrees_of_freedom_prior_ + 12 * TYPES[covariance_type].power(3)
    for ratio in (draws / estimator.precisions_).reshape(4000, -1).T:
        assert_drawn_from(c * ratio, stats.chi2(c).cdf)


@pytest.mark.slow
@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_means_of_few_rows_have_the_excess_of_students_t(covariance_type):
    model = {"covariance_type": covariance_type, "prior": "fixed"}
    estimator = mixture(model, n_components=1).fit(few_rows(5))
    means = estimator.posterior(random_state=8, method="lrvb").sample(20_000)["means"][:, 0]
    covariance = estimator.posterior(method="lrvb").covariance("means")
    assert_moments(means, estimator.means_[0], covariance)
    without = mixture({**model, "factorization": "independent"}, n_components=1)
    normal = without.fit(few_rows(5)).posterior(method="lrvb").covariance("means")
    assert np.all(np.diag(covariance) > 1.1 * np.diag(normal))  # to be seen


def far_apart(counts=(6, 11, 4)):
    rng = np.random.default_rng(9)
    return np.concatenate([rng.normal(size=(count, 2)) + [50.0 * k, 0] for k, count in enumerate(counts)])


def of_distant_components(**weights):
    """Nothing is uncertain; the default prior would take the distances for a spread."""
    prior = {"covariance_prior": np.eye(2), "mean_precision_prior": 1e-6}
    estimator = mixture(weights, n_components=3, **prior).fit(far_apart())
    assert np.sort(estimator.predict_proba(far_apart()), axis=1)[:, 1].max() < 1e-12
    return estimator


def test_weights_of_distant_components_are_dirichlet():
    estimator = of_distant_components(weight_concentration_prior_type="dirichlet_distribution")
    draws = estimator.posterior(random_state=10, method="lrvb").sample(4000)["weights"]
    alpha = estimator.weight_concentration_
    for k in range(3):
        assert_drawn_from(draws[:, k], stats.beta(alpha[k], alpha.sum() - alpha[k]).cdf)
    assert_drawn_from(draws[:, 0] / (1 - draws[:, 2]), stats.beta(alpha[0], alpha[1]).cdf)


def test_weights_of_distant_components_are_broken_sticks():
    estimator = of_distant_components(weight_concentration_prior=2.0)
    draws = estimator.posterior(random_state=11, method="lrvb").sample(4000)["weights"]
    sticks = np.random.default_rng(0).beta(*estimator.weight_concentration_, size=(4000, 3))
    left = np.cumprod(np.column_stack([np.ones(4000), 1 - sticks[:, :2]]), axis=1)
    expected = sticks * left / (sticks * left).sum(axis=1, keepdims=True)
    for k in range(3):
        assert stats.ks_2samp(draws[:, k], expected[:, k]).pvalue > 1e-3
    assert stats.ks_2samp(draws[:, 0] / draws[:, 2], expected[:, 0] / expected[:, 2]).pvalue > 1e-3


@pytest.mark.parametrize(
    "model",
    [
        own
        for own in MODELS
        if own["weight_concentration_prior_type"] != "dirichlet_process" and "noise" not in own
    ],
    ids=model_id,
)
def test_the_logit_of_two_weights_has_the_variance_reported(model):
    # log pi_0 - log pi_1 is linear in log pi
    uncertainty = uncertainty_of(fitted(model))
    copula = GaussianCopula(uncertainty.targets, uncertainty.source.information(1))
    covariance = fitted(model).posterior(method="lrvb").covariance("log_weights")
    contrast = np.array([1.0, -1.0])
    np.testing.assert_allclose(copula.breaks.scale**2, contrast @ covariance @ contrast, rtol=1e-9)


@pytest.mark.parametrize("weights", WEIGHT_PRIORS)
@pytest.mark.parametrize("concentration", [1e-3, 1.0])
@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_empty_components_are_drawn_from_their_prior(covariance_type, concentration, weights):
    model = {
        "covariance_type": covariance_type,
        "weight_concentration_prior_type": weights,
        "weight_concentration_prior": concentration,
    }
    X = np.concatenate([overlapping(60), overlapping(60) + [40.0, -30.0]])
    r = np.zeros((120, 5))
    r[:60, 1] = r[60:, 3] = 1
    estimator = mixture(model, n_components=5, init_params=r).fit(X)
    assert np.sum(estimator.mean_precision_ < 1.05) == 3  # empty but for the prior's row
    draws = estimator.posterior(random_state=12, method="lrvb").sample(500)
    assert_in_range(model, draws, n_components=5)
    # Student's t, even Cauchy's for matrices: the default prior has as many degrees of freedom as features
    is_shared, size = TYPES[covariance_type].is_shared, TYPES[covariance_type].block_size(2)
    for k in (0, 2, 4):
        c = np.ravel(estimator.degrees_of_freedom_)[0 if is_shared else k]
        freedom = c - size + 1
        scale = np.sqrt(dense(model, estimator.covariances_, 5)[k].diagonal() * c / freedom)
        scaled = (draws["means"][:, k] - estimator.means_[k]) / scale * np.sqrt(estimator.mean_precision_[k])
        for own in scaled.T:
            assert_drawn_from(own, stats.t(freedom).cdf)
    assert estimator.means_std_[[1, 3]].max() < 0.6  # whatever the empty ones do
    np.testing.assert_allclose(draws["weights"].mean(axis=0), estimator.weights_, atol=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_draws_are_in_range_near_the_least_degrees_of_freedom(covariance_type, monkeypatch):
    set_sizes(monkeypatch, seconds_of_chains=0)
    # Precisions of empty components then have pivots that underflow, and are drawn in each other's
    # coordinates.
    X = np.random.default_rng(0).normal(size=(200, 2))
    model = {
        "covariance_type": covariance_type,
        "degrees_of_freedom_prior": 1.05,
        "weight_concentration_prior_type": "dirichlet_distribution",
        "weight_concentration_prior": 1.0,
    }
    estimator = mixture(model, 4).fit(X)
    exact = {"X": X, "n_draws": 200, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # chains that have not converged
        draws = estimator.posterior(method="exact", **exact).sample()
        assert_in_range({"covariance_type": covariance_type}, draws, 4, round_off=1e-14)
        covariance = estimator.posterior(method="exact", **exact).covariance("precisions")
        assert np.isfinite(covariance).all()
    draws = estimator.posterior(random_state=0, method="lrvb").sample(200)
    assert_in_range({"covariance_type": covariance_type}, draws, 4, round_off=1e-14)


def test_the_weight_of_one_component_is_one():
    for weights in WEIGHT_PRIORS:
        estimator = mixture({"weight_concentration_prior_type": weights}, n_components=1).fit(few_rows())
        np.testing.assert_array_equal(
            estimator.posterior(method="lrvb").sample(5)["weights"], np.ones((5, 1))
        )


@pytest.mark.slow
def test_matrices_are_definite_however_little_is_known():
    # variances of features that leave residual variances no degree of freedom
    rng = np.random.default_rng(13)
    for deviations in (np.full((4, 4), 0.8), np.full((4, 4), 0.45), 0.3 * np.ones((4, 4)) - 0.29 * np.eye(4)):
        changes = np.triu(rng.normal(size=(20_000, 1, 4, 4)))
        changes = (changes + np.triu(changes, 1).swapaxes(2, 3)) * deviations
        random_factors = BartlettFactors(deviations[None], np.array([4.0]), np.ones((1, 4)))
        factors = random_factors.factors(changes)[:, 0]
        values = np.linalg.eigvalsh(factors @ factors.swapaxes(1, 2))
        assert np.all(factors.diagonal(0, 1, 2) > 0.0) and np.all(values > -1e-14 * values[:, -1:])
        pivots = np.square(random_factors.factors(changes * np.eye(4))[:, 0].diagonal(0, 1, 2))
        expected = np.maximum(1.0 - 0.5 * np.arange(4)[::-1], 0.5 * np.arange(1, 5) / 4.0)
        error = MOST * pivots.std(axis=0) / np.sqrt(20_000)
        np.testing.assert_array_less(np.abs(pivots.mean(axis=0) - expected), error)


@pytest.mark.slow
@pytest.mark.parametrize("solver", INFORMATION)
def test_every_solver_draws_the_same(solver, monkeypatch):
    model = MODELS[0]
    expected = fitted(model)
    others = expected.posterior(random_state=14, method="lrvb").sample(4000)
    use_information(solver, monkeypatch)
    estimator = mixture(model).fit(overlapping())
    draws = estimator.posterior(random_state=14, method="lrvb").sample(4000)
    for target, values in draws.items():
        np.testing.assert_allclose(values, others[target], rtol=1e-5)
    assert_moments(flat(model, draws), expected.posterior_mean_, expected.posterior_covariance_, slack=0.1)
    few = estimator.posterior(random_state=14, method="lrvb").sample(3)
    for target, values in few.items():
        np.testing.assert_allclose(values, draws[target][:3], rtol=1e-7)


@catalogue
def test_the_normal_copula_has_the_covariance_of_linear_response(model):
    """Responses are linear in the normals, so that their root is their value at the unit vectors."""
    sampler = PosteriorSampler(uncertainty_of(fitted(model)))
    copula = sampler.copula
    root = copula.responses(np.eye(copula.n_normals))
    np.testing.assert_allclose(
        root.T @ root, sampler.density.root @ sampler.density.root.T, rtol=1e-8, atol=1e-10
    )


def test_draws_are_equivariant():
    # to the last digits of the data belong no signs of eigenvectors
    model = {"covariance_type": "full", "reg_covar": 0.0, "tol": 1e-12}
    rows = overlapping()
    draws = mixture(model, 4, max_iter=5000).fit(rows).posterior(random_state=3, method="lrvb").sample(20)
    for scale in (3.0, 0.1):
        scaled = (
            mixture(model, 4, max_iter=5000)
            .fit(scale * rows)
            .posterior(random_state=3, method="lrvb")
            .sample(20)
        )
        for target, power in (("weights", 0), ("means", 1), ("precisions", -2), ("covariances", 2)):
            np.testing.assert_allclose(scaled[target], draws[target] * scale**power, rtol=1e-3)


@pytest.mark.parametrize("model", MODELS[::3], ids=model_id)
def test_draws_depend_on_the_seed_alone(model, monkeypatch):
    estimator = fitted(model)
    draws = estimator.posterior(random_state=15, method="lrvb").sample(40)
    others = estimator.posterior(random_state=16, method="lrvb").sample(40)
    set_sizes(monkeypatch, batch_bytes=2**14)  # some eight
    again = estimator.posterior(random_state=15, method="lrvb").sample(40)
    state, posterior = np.random.RandomState(15), estimator.posterior(method="lrvb")
    two_parts = [posterior.sample(n_draws, random_state=state) for n_draws in (25, 15)]
    for target, values in draws.items():
        assert_equal_to_rounding(again[target], values)
        parts = np.concatenate([part[target] for part in two_parts])
        assert_equal_to_rounding(parts, values)
        assert np.all(np.any(values != others[target], axis=tuple(range(1, values.ndim))))


def test_without_a_seed_the_same_question_has_the_same_answer():
    estimator = fitted(MODELS[0])
    posterior = estimator.posterior(method="lrvb")
    first = posterior.sample()["means"]
    assert first.shape == (1, 2, 2)
    for same in (posterior, estimator.posterior(method="lrvb"), estimator.posterior(random_state=0)):
        np.testing.assert_array_equal(same.sample()["means"] if same.method == "lrvb" else first, first)
    assert np.all(posterior.sample(random_state=1)["means"] != first)


def test_bad_requests_are_refused():
    estimator = fitted(MODELS[0])
    for n_draws in (0, -3, 2.5, "two"):
        with pytest.raises(ValueError, match=f"Invalid value for 'n_draws': {n_draws!r}"):
            estimator.posterior(method="lrvb").sample(n_draws)
    with pytest.raises(NotFittedError):
        LRVBGaussianMixture().posterior(method="lrvb").sample()
    X = np.random.default_rng(0).normal(size=(200, 2))
    # one sweep from random responsibilities: two components on one cloud, not an optimum
    saddle = mixture({"prior": "flat"}, max_iter=1, init_params="random", solver="coordinate_ascent")
    with pytest.warns(ConvergenceWarning):
        saddle.fit(X)
    with pytest.raises(ValueError, match="no strict local optimum"):
        saddle.posterior(method="lrvb").sample()
