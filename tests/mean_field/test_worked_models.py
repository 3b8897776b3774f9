"""Worked models against exact posteriors and against supplemented EM."""

import numpy as np
import pytest
from mean_field import worked_models
from mean_field.catalogue import random_normal, regression_data

# The location of a multivariate normal (Prop. lrvb_mvn).


@pytest.mark.parametrize("n", [1, 2, 3, 6])
def test_scalar_factors_of_a_normal_are_exact(n):
    mean, precision = random_normal(n, seed=n)
    posterior = worked_models.location_model(mean, precision).fit(tol=1e-13)
    values = [f"x{i}.value" for i in range(n)]
    exact = np.linalg.inv(precision)
    np.testing.assert_allclose([posterior.mean(value) for value in values], mean, rtol=1e-11)
    np.testing.assert_allclose(posterior.covariance(*values), exact, rtol=1e-12, atol=1e-13)
    mean_field = np.diag(posterior.covariance(*values, method="mean_field"))
    np.testing.assert_allclose(mean_field, 1 / np.diag(precision), rtol=1e-12)
    # For normals with one mean, KL(q || p) is half the log of |Sigma| over the product of q's variances.
    gap = 0.5 * (np.linalg.slogdet(precision)[1] - np.log(np.diag(precision)).sum())
    assert posterior.lower_bound == pytest.approx(gap, abs=1e-10)


def test_mean_field_is_badly_wrong_where_linear_response_is_exact():
    covariance = np.full((2, 2), 0.99) + 0.01 * np.eye(2)
    posterior = worked_models.location_model(np.zeros(2), np.linalg.inv(covariance)).fit()
    np.testing.assert_allclose(posterior.covariance("x0.value", "x1.value"), covariance, rtol=1e-12)
    assert posterior.std("x0.value", method="mean_field") < 0.15 * posterior.std("x0.value")


@pytest.mark.parametrize("blocks", [[[0, 1, 2, 3, 4]], [[0, 3], [1, 2, 4]], [[2], [4, 0], [1, 3]]])
def test_blocks_of_a_normal_are_exact(blocks):
    mean, precision = random_normal(5, seed=7)
    blocks = [np.array(block) for block in blocks]
    posterior = worked_models.block_location_model(mean, precision, blocks).fit(tol=1e-13)
    order = np.concatenate(blocks)
    values = [f"x{i}.value" for i in range(len(blocks))]
    exact = np.linalg.inv(precision)[np.ix_(order, order)]
    np.testing.assert_allclose(posterior.covariance(*values), exact, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(np.concatenate([posterior.mean(v) for v in values]), mean[order], rtol=1e-10)


# Unknown noise, against quadrature.


@pytest.mark.parametrize("n", [20, 200])
def test_normal_with_unknown_mean_and_precision(n):
    x, prior = 1.0 + np.random.default_rng(0).normal(size=n), worked_models.Prior()
    exact = worked_models.exact_regression(np.ones((n, 1)), x, prior)
    posterior = worked_models.regression_model(np.ones((n, 1)), x, prior, [[0]]).fit()
    # The error falls like 1/n.
    assert posterior.mean("w0.value") == pytest.approx(
        exact.mean, abs=0.1 * np.sqrt(exact.covariance[0, 0]) / n
    )
    assert posterior.std("w0.value")[0] == pytest.approx(np.sqrt(exact.covariance[0, 0]), rel=1 / n)
    assert posterior.std("tau.value") == pytest.approx(exact.tau_sd, rel=0.02 / n)
    assert posterior.std("tau.value", "mean_field") < exact.tau_sd * (1 - 0.2 / n)
    assert -1 / n < posterior.lower_bound - exact.log_evidence < 0


@pytest.mark.parametrize("blocks", [[[0, 1, 2]], [[0], [1], [2]]], ids=["joint", "split"])
def test_regression_with_unknown_noise(blocks):
    X, y = regression_data(n=150)
    prior = worked_models.Prior()
    exact = worked_models.exact_regression(X, y, prior)
    posterior = worked_models.regression_model(X, y, prior, blocks).fit()
    values = [f"w{i}.value" for i in range(len(blocks))]
    sd = np.sqrt(np.diag(exact.covariance))
    found = posterior.covariance(*values)
    np.testing.assert_array_less(np.abs(found - exact.covariance), 0.02 * np.outer(sd, sd))
    assert posterior.std("tau.value") == pytest.approx(exact.tau_sd, rel=1e-3)
    assert posterior.lower_bound < exact.log_evidence
    if len(blocks) > 1:
        mean_field = np.sqrt(np.diag(posterior.covariance(*values, method="mean_field")))
        assert np.all(mean_field < 0.85 * sd)
    else:
        assert posterior.lower_bound == pytest.approx(exact.log_evidence, abs=0.01)


def test_quadrature_is_right_where_everything_is_known():
    """No data: the prior itself."""
    prior = worked_models.Prior(precision=0.5, shape=3.0, rate=2.0)
    exact = worked_models.exact_regression(np.zeros((1, 2)), np.zeros(1), prior)
    # One observation without leverage, at 0, adds 1/2 to the shape of tau.
    np.testing.assert_allclose(exact.covariance, 2 * np.eye(2), atol=1e-12)
    assert exact.tau_mean == pytest.approx(3.5 / 2, rel=1e-8)
    assert exact.tau_sd == pytest.approx(np.sqrt(3.5) / 2, rel=1e-8)


def test_pumps_against_quadrature():
    posterior = worked_models.pumps_model().fit()
    exact_mean, exact_sd = worked_models.exact_pumps()
    mean, sd = (np.append(f("rates.value"), f("beta.value")) for f in (posterior.mean, posterior.std))
    np.testing.assert_array_less(np.abs(mean - exact_mean), 0.07 * exact_sd)
    np.testing.assert_allclose(sd, exact_sd, rtol=0.05)
    assert posterior.std("beta.value", "mean_field") < 0.85 * exact_sd[-1]


# Supplemented EM (Eq. in app:SEM).


def test_supplemented_em_is_linear_response_for_a_normal():
    supplemented, lrvb, exact = worked_models.normal_case()
    np.testing.assert_allclose(supplemented, lrvb, rtol=1e-11)
    np.testing.assert_allclose(lrvb, exact, rtol=1e-12)


def test_supplemented_em_of_linkage_is_the_inverse_of_the_observed_information():
    estimate, sd, _ = worked_models.linkage_case(1)
    # The estimate of Dempster, Laird and Rubin.
    assert 1 / (1 + np.exp(-estimate)) == pytest.approx(0.6268215, abs=1e-7)
    cells, counts = np.array([0.5, 0.25, 0.25, 0.0]), worked_models.LINKAGE_COUNTS
    slopes = np.array([0.25, -0.25, -0.25, 0.25])

    def log_likelihood(log_odds):
        return counts @ np.log(cells + slopes / (1 + np.exp(-log_odds)))

    step = 1e-3
    curvature = (
        log_likelihood(estimate + step) - 2 * log_likelihood(estimate) + log_likelihood(estimate - step)
    )
    assert sd == pytest.approx(np.sqrt(-(step**2) / curvature), rel=1e-5)


def test_supplemented_em_of_linkage_is_linear_response_with_much_data():
    differences = []
    for multiple in (1, 10, 100):
        _, supplemented, lrvb = worked_models.linkage_case(multiple)
        differences.append(lrvb / supplemented - 1)
    assert 0.001 < differences[0] < 0.01
    np.testing.assert_allclose(differences, differences[0] / np.array([1, 10, 100]), rtol=0.05)
