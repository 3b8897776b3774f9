"""Draws of mixtures with noise, against densities by scipy, sums over all labels, and linear response."""

import copy
import functools
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from catalogue import (
    COVARIANCE_TYPES,
    WEIGHT_PRIORS,
    mixture,
    model_id,
    models_in_turn,
    overlapping,
    types_in_turn,
    unique_of_draws,
)
from covariance_types import TYPES
from exact_evidence import (
    Prior,
    clusters,
    log_evidence_by_number,
    log_evidence_by_occupied,
    number_probabilities,
)
from incomplete_rows import incomplete
from sampling_problems import (
    THETA,
    Problem,
    labels_and_probabilities,
    log_evidence,
    mean_of_the_mixture,
    problem,
)
from scipy.special import logsumexp

from sklearn_lrvb import number_of_clusters
from sklearn_lrvb.gaussian.sampling.parameters import log_derivative_of_precisions
from sklearn_lrvb.sampling import labels
from sklearn_lrvb.sampling.chains import N_CHAINS, Scans, start_of_chains
from sklearn_lrvb.sampling.labels import are_in_order, evidence_of_all_copies
from sklearn_lrvb.sampling.number_evidence import log_prior_factor

# Densities high enough that noise has rows: numbers that suit tests, and not clean rows.
pytestmark = pytest.mark.filterwarnings("ignore:noise=.*above the log density:UserWarning")

# Every covariance type with both kinds of weights, with and without known noise on x.
NOISY = [
    {
        "covariance_type": covariance_type,
        "prior": "fixed",
        "factorization": "joint",
        "weight_concentration_prior_type": weights,
        "reg_covar": 0.05 * ((i + j) % 2),
        "noise": -6.0,
    }
    for i, covariance_type in enumerate(COVARIANCE_TYPES)
    for j, weights in enumerate(WEIGHT_PRIORS)
]
PRIOR_ATTRIBUTES = "degrees_of_freedom_prior_", "mean_precision_prior_", "covariance_prior_", "mean_prior_"
every_type = pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
every_weights = pytest.mark.parametrize("weights", WEIGHT_PRIORS)


def with_outliers(n_samples=600, n_outliers=60):
    """Two clusters and rows that are spread evenly."""
    X = overlapping(n_samples)
    X[: n_samples // 2] += [6.0, -1.0]
    return np.concatenate([X, np.random.default_rng(4).uniform(-12, 16, (n_outliers, 2))])


@functools.cache
def _fitted(items):
    return mixture(dict(items)).fit(with_outliers())


def fitted(model):
    """A fit of two components to `with_outliers()`, shared between tests."""
    return _fitted(tuple(model.items()))


def log_derivative_of_parameters(case, draws):
    """log|d (mu, Lambda) / d (u, T)|, (n,)."""
    posterior = case.sampler.posterior
    structure = posterior.structure
    whiteners = structure.layout.per_component(-structure.log_determinants(posterior.covariance_cholesky))
    factors = structure.log_determinants(draws.factors)
    factors = np.broadcast_to(factors, (len(draws), case.n_components))
    return log_derivative_of_precisions(posterior) - 0.5 * (whiteners.sum() + factors.sum(axis=1))


@pytest.mark.slow
@models_in_turn(NOISY, "n_components", [1, 2, 3])
def test_the_joint_density_is_scipys_and_has_the_slopes_of_its_differences(model, n_components):
    case = problem(model, n_components, weighted=n_components != 2)
    sampler, rows = case.sampler, case.rows
    draws = sampler.copula.draws(case.responses(3))
    expected = case.log_joint(draws) + log_derivative_of_parameters(case, draws)
    np.testing.assert_allclose(sampler.parameters(draws).log_joint(rows), expected, rtol=1e-10)
    normals = sampler.density.normals(sampler.copula.responses_of(draws))
    slopes = sampler.log_ratios_and_slopes(rows, normals)[1]
    for i, step in enumerate(1e-4 * np.eye(normals.shape[1])):
        ends = [sampler.log_ratios_and_slopes(rows, moved)[0] for moved in (normals + step, normals - step)]
        np.testing.assert_allclose(slopes[:, i], (ends[0] - ends[1]) / 2e-4, atol=2e-6)


@pytest.mark.slow
@every_type
def test_rows_with_missing_values_have_the_likelihood_of_what_they_show(covariance_type):
    # The noise component of a row is that of the features it shows: far out, nothing else counts.
    X = np.tile(1e4, (4, 3))
    X[1:, 0], X[2:, 1], X[3:, 2] = np.nan, np.nan, np.nan
    rows = np.concatenate([incomplete(), X[:3]])
    model = {"covariance_type": covariance_type, "noise": -9.0, "reg_covar": 0.0}
    case = Problem(model, 2, rows)
    parameters = case.sampler.draws(3, np.random.RandomState(0))
    found = case.sampler.log_likelihood(case.rows, parameters)[:, -3:]
    of_rows = case.mixture.score_samples(X[:3]) - case.mixture.score_samples(X[:1])
    expected = -9.0 + of_rows + parameters.log_weights[:, -1:]
    np.testing.assert_allclose(found, expected, atol=1e-6)
    # The slopes, at rows with missing values.
    draws, step = parameters.draws, 1e-6
    _, all_slopes = parameters.log_joint_and_slopes(case.rows)
    for name in ("log_stick", "log_rest", "scaled_means"):
        slopes = getattr(all_slopes, name)
        values = []
        for sign in (1.0, -1.0):
            moved = {own: getattr(draws, own).copy() for own in vars(draws)}
            moved[name][:, 0] += sign * step
            own = parameters.with_draws(type(draws)(**moved))
            values.append(own.log_joint(case.rows))
        expected = np.reshape(slopes[:, 0], (3, -1)).sum(axis=1)
        np.testing.assert_allclose((values[0] - values[1]) / (2.0 * step), expected, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("model", NOISY, ids=model_id)
def test_draws_have_nearly_the_moments_reported(model):
    estimator = fitted(model)
    draws = estimator.posterior(random_state=0, method="lrvb").sample(4000)
    np.testing.assert_allclose(draws["weights"].sum(axis=1), 1.0, atol=1e-14)
    flat = [draws["weights"], draws["means"].reshape(4000, -1), unique_of_draws(model, draws["precisions"])]
    covariance = estimator.posterior(method="lrvb").covariance(["weights", "means", "precisions"])
    scale = np.sqrt(np.diag(covariance))
    found = np.cov(np.hstack(flat).T)
    np.testing.assert_allclose((found - covariance) / np.outer(scale, scale), 0.0, atol=0.12)
    weights = np.append(estimator.weights_, estimator.noise_weight_)
    np.testing.assert_allclose((flat[0].mean(axis=0) - weights) / scale[:3], 0.0, atol=0.15)


@pytest.mark.slow
@pytest.mark.parametrize("model", NOISY[1:7:5], ids=["full", "spherical"])
def test_error_bars_are_those_of_the_exact_posterior(model):
    estimator, X = fitted(model), with_outliers()
    assert estimator.posterior_check(X, random_state=0).state == "good"
    exact = estimator.posterior(X, method="exact", random_state=0).covariance(["weights", "means"])
    expected = estimator.posterior(method="lrvb").covariance(["weights", "means"])
    np.testing.assert_allclose(np.sqrt(np.diag(expected) / np.diag(exact)), 1.0, atol=0.08)


def of_few_rows(covariance_type, weights, n_components):
    """Rows of one or two clusters with two far away, that are noise: Problem."""
    rows = np.random.default_rng(3).normal(size=(7, 1))
    if n_components == 2:
        rows[4:] += 10.0
    model = {
        "covariance_type": covariance_type,
        "weight_concentration_prior_type": weights,
        "reg_covar": 0.05 * (weights == WEIGHT_PRIORS[0]),
        "noise": -6.0,
        "covariance_prior": TYPES[covariance_type].prior(np.array([[9.0]])),
        "mean_prior": [4.0 * (n_components - 1)],
        "degrees_of_freedom_prior": 12.0,
        "mean_precision_prior": 0.1,
        "weight_concentration_prior": 1.5,
        "init_params": np.eye(n_components + 1)[[0] * 4 + [n_components - 1] * 3 + [n_components] * 2],
    }
    return Problem(model, n_components, np.concatenate([rows, [[40.0], [-60.0]]]))


@pytest.mark.parametrize("n_components", [1, 2])
@every_weights
@every_type
def test_the_evidence_is_the_sum_over_all_labels(covariance_type, weights, n_components):
    case = of_few_rows(covariance_type, weights, n_components)
    draws, sampled = case.sampler.importance(case.rows, 4000, np.random.RandomState(0))
    total, error = evidence_of_all_copies(draws, sampled, are_in_order(draws))
    assert error < 0.04
    assert total == pytest.approx(log_evidence(case.mixture, case.X), abs=0.03 + 4 * error)


@pytest.mark.slow
@pytest.mark.parametrize(("covariance_type", "weights"), types_in_turn(WEIGHT_PRIORS))
def test_chains_have_the_mean_of_the_sum_over_all_labels(covariance_type, weights):
    # Clusters, and noise, near each other: chains visit all modes.
    model = {
        "covariance_type": covariance_type,
        "weight_concentration_prior_type": weights,
        "reg_covar": 0.05 * (weights == WEIGHT_PRIORS[0]),
        "noise": -3.2,
        "degrees_of_freedom_prior": 3.0,
        "weight_concentration_prior": 1.5,
    }
    X = np.random.default_rng(3).normal(size=(8, 1))
    X[-3:] += [[1.5], [4.0], [-5.0]]
    case = Problem(model, 2, X)
    scans, by_scan = Scans(case.sampler, case.rows, 0, 1), []
    draws, _ = start_of_chains(case.sampler, case.rows, N_CHAINS, np.random.RandomState(0))
    for number in range(1, 61):
        (*_, draws), _ = scans.scan(draws, number)
        parameters = case.sampler.parameters(draws)
        by_scan.append((np.exp(parameters.log_weights[:, :2]) * parameters.means[:, :, 0]).sum(axis=1))
    values = np.array(by_scan[20:])
    expected = mean_of_the_mixture(case.mixture, case.X)
    assert values.mean() == pytest.approx(expected, abs=4.5 * values.mean(axis=0).std() / np.sqrt(N_CHAINS))


@models_in_turn(NOISY, "n_components", [2, 3, 2])
def test_exchanged_components_get_their_numbers_back_and_noise_keeps_its_weight(model, n_components):
    case = problem(model, n_components, 500)
    parameters = case.sampler.draws(40, np.random.RandomState(0))
    rng = np.random.default_rng(1)
    orders = np.array([rng.permutation(n_components) for _ in range(40)])
    draws = parameters.reordered(orders)
    exchanged = parameters.with_draws(draws)
    by_component = np.take_along_axis(parameters.log_weights, orders, axis=1)
    np.testing.assert_allclose(exchanged.log_weights[:, :-1], by_component, rtol=1e-7)
    np.testing.assert_allclose(exchanged.log_weights[:, -1], parameters.log_weights[:, -1], rtol=1e-7)
    found, _ = labels.closest_orders(exchanged, exchanged.posterior, np.ones(n_components, dtype=bool))
    back = parameters.with_draws(exchanged.reordered(found))
    for target in (*THETA, "weights", "covariances"):
        np.testing.assert_allclose(back.flat(target), parameters.flat(target), rtol=1e-7, atol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("covariance_type", ["full", "spherical"])
def test_numbers_of_clusters_have_the_probabilities_of_sums_over_all_labels(covariance_type):
    prior, X = Prior(covariance_type, 1, noise=-4.5), clusters(8, 1, 4.0)
    X[0] = -15.0
    found = number_of_clusters(
        prior.fit(X, 2), X, n_components=[1, 2, 3], another_prior=False, random_state=0
    )
    expected = log_evidence_by_number(X, prior, 3)
    np.testing.assert_allclose(found.scores["probability"], number_probabilities(expected), atol=0.03)
    by_occupied, numbers = log_evidence_by_occupied(X, prior, 3), np.arange(1, 4)
    parts = by_occupied - log_prior_factor(numbers, numbers, prior.concentration, 8, True)
    ways = log_prior_factor(numbers[:, None], numbers, prior.concentration, 8, True)
    np.testing.assert_allclose(logsumexp(parts + ways, axis=1), expected, rtol=1e-12)


@pytest.mark.slow
@every_weights
def test_derivatives_in_the_concentration_are_those_of_the_evidence(weights):
    # One cluster: with sticks and without, pi_0 has the prior Beta(a, a).
    case = of_few_rows("full", weights, 1)
    parameters, sampled = case.sampler.importance(case.rows, 20_000, np.random.RandomState(0))
    found = sampled.weights @ parameters.prior_slopes()[:, 0]
    prior = case.sampler.posterior.prior.weights
    evidences = []
    for factor in (np.exp(1e-4), np.exp(-1e-4)):
        moved = copy.copy(case.mixture._fitted.posterior)
        moved.prior = replace(moved.prior, weights=prior.with_concentration(1.5 * factor))
        twin = SimpleNamespace(
            _fitted=SimpleNamespace(posterior=moved),
            **{name: getattr(case.mixture, name) for name in PRIOR_ATTRIBUTES},
        )
        evidences.append(log_evidence(twin, case.X))
    assert found == pytest.approx((evidences[0] - evidences[1]) / 2e-4, abs=0.05)


@pytest.mark.slow
@every_type
def test_rows_are_completed_as_if_they_belonged_to_the_clusters(covariance_type):
    model = {"covariance_type": covariance_type, "noise": -6.0}
    X = with_outliers()
    X[::7, 1] = np.nan
    estimator = mixture(model).fit(X)
    rows = np.array([[-7.0, np.nan], [-11.0, np.nan], [3.0, np.nan]])
    proba = estimator.predict_proba(rows)
    assert np.all(proba[:2, -1] > 0.9)
    values, deviations = estimator.impute(rows, return_std=True)
    if not TYPES[covariance_type].is_matrix:
        shares = proba[:, :-1] / proba[:, :-1].sum(axis=1, keepdims=True)
        np.testing.assert_allclose(values[:, 1], shares @ estimator.means_[:, 1], rtol=1e-9)
    copies = estimator.sample_imputations(rows, n_imputations=4000, random_state=0)[:, :, 1]
    np.testing.assert_allclose((copies.mean(axis=0) - values[:, 1]) / deviations[:, 1], 0.0, atol=0.1)
    np.testing.assert_allclose(copies.std(axis=0), deviations[:, 1], rtol=0.1)


@pytest.mark.slow
def test_the_probability_to_be_noise_is_the_sum_over_all_labels():
    case = of_few_rows("diag", WEIGHT_PRIORS[1], 1)
    found = case.mixture.partition_posterior(
        case.X, n_draws=2000, method="exact", random_state=0, max_rows=1000
    )
    all_labels, probabilities = labels_and_probabilities(case.mixture, case.X)
    np.testing.assert_allclose(found.affinity[:, -1], probabilities @ (all_labels == 1), atol=0.03)
    assert found.labels.tolist() == 7 * [0] + 2 * [-1]
    assert found.has_noise and found.n_clusters == 1 and found.cluster_sizes.tolist() == [7]
    assert found.affinity.shape == (9, 2) and found.stability.shape == (2,)
    np.testing.assert_array_equal(found.certainty, found.affinity[np.arange(9), found.labels])
    assert "1 cluster. Noise: 2 of 9 rows." in found.verdict


def test_noise_that_the_search_has_not_seen_is_noise():
    X = np.concatenate([[[900.0, -900.0]], with_outliers(600, 0)])
    estimator = mixture({"noise": -14.0}).fit(X)
    found = estimator.partition_posterior(X, n_draws=50, method="lrvb", max_rows=100, random_state=0)
    assert 0 not in found.sampled_rows and np.all(found.sampled_labels >= 0)
    assert found.labels[0] == -1 and found.certainty[0] == 1.0
    np.testing.assert_array_equal(found.labels == -1, estimator.predict(X) == -1)
    assert found.stability[-1] == 1.0


def test_a_row_in_doubt_between_clusters_is_not_noise():
    # In the middle of three equal clusters, and not in the sample: in each of them in a third of the draws.
    cosine, sine = np.cos(2.0 * np.pi / 3.0), np.sin(2.0 * np.pi / 3.0)
    turn = np.array([[cosine, sine], [-sine, cosine]])
    first = np.random.default_rng(0).normal(size=(100, 2)) + [4.0, 0.0]
    X = np.concatenate([np.zeros((1, 2)), first, first @ turn, first @ turn @ turn])
    estimator = mixture({"covariance_type": "spherical", "noise": -30.0}, 3).fit(X)
    found = estimator.partition_posterior(X, n_draws=200, method="lrvb", max_rows=60, random_state=1)
    assert 0 not in found.sampled_rows and found.affinity[0].max() < 0.45
    assert found.labels[0] >= 0
