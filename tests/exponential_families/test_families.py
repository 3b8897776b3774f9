"""The functions of families: gradients and Hessians of log partitions, against differences and scipy."""

import numpy as np
import pytest
from scipy.special import betaln, gammaln

from sklearn_lrvb.exponential_families import dirichlet, wishart

CONCENTRATIONS = [np.array([0.3, 1.0, 4.0]), np.array([2.0, 900.0]), np.array([5.0])]


def central_difference(function, point, step):
    """Jacobian by central differences, one column a coordinate."""
    columns = []
    for direction in np.eye(len(point)):
        above, below = function(point + step * direction), function(point - step * direction)
        columns.append((above - below) / (2 * step))
    return np.stack(columns, axis=-1)


@pytest.mark.parametrize("concentration", CONCENTRATIONS, ids=len)
def test_dirichlet_mean_parameters_are_the_gradient(concentration):
    gradient = central_difference(dirichlet.log_partition, concentration, 1e-5)
    np.testing.assert_allclose(dirichlet.expected_log(concentration), gradient, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("concentration", CONCENTRATIONS, ids=len)
def test_dirichlet_covariance_is_the_hessian(concentration):
    hessian = central_difference(dirichlet.expected_log, concentration, 1e-4)
    np.testing.assert_allclose(dirichlet.covariance_of_log(concentration), hessian, rtol=1e-6, atol=1e-9)


def test_dirichlet_broadcasts_over_leading_axes():
    stacked = np.array([[0.3, 2.0], [7.0, 1.5]])
    for function in (dirichlet.log_partition, dirichlet.expected_log, dirichlet.covariance_of_log):
        each = np.stack([function(row) for row in stacked])
        np.testing.assert_array_equal(function(stacked), each)


def test_beta_partition():
    np.testing.assert_allclose(dirichlet.log_partition(np.array([2.5, 0.7])), betaln(2.5, 0.7), rtol=1e-14)


def test_dirichlet_divergence():
    concentration, prior = np.array([3.0, 0.5, 9.0]), np.array([1.0, 2.0, 0.5])
    assert dirichlet.kl_divergence(
        prior, dirichlet.expected_log(prior), prior, dirichlet.prior_log_partition(prior)
    ) == pytest.approx(0.0, abs=1e-14)
    rng = np.random.default_rng(0)
    draws = rng.dirichlet(concentration, size=400_000)
    log_ratio = ((concentration - prior) * np.log(draws)).sum(axis=1)
    log_ratio += dirichlet.log_partition(prior) - dirichlet.log_partition(concentration)
    noise = log_ratio.std() / np.sqrt(len(draws))
    assert (
        abs(
            log_ratio.mean()
            - dirichlet.kl_divergence(
                concentration,
                dirichlet.expected_log(concentration),
                prior,
                dirichlet.prior_log_partition(prior),
            )
        )
        < 4 * noise
    )


@pytest.mark.parametrize("n_features", [1, 3])
def test_wishart_log_determinant_is_the_derivative_in_the_degrees_of_freedom(n_features):
    # The natural parameter of log|Lambda| is (nu - P - 1)/2.
    nu, log_det, step = n_features + 2.3, 0.7, 1e-5
    above, below = (wishart.log_partition(nu + s, log_det, n_features) for s in (step, -step))
    expected = wishart.expected_log_determinant(nu, log_det, n_features)
    assert (above - below) / step == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("n_features", [1, 3])
def test_wishart_excess_variance_is_what_lambda_leaves_unexplained(n_features):
    nu = n_features + 2.3
    second = [
        wishart.expected_log_determinant(nu + s, 0.7, n_features) for s in (1e-4, -1e-4)
    ]  # d^2 A / d((nu - P - 1)/2)^2
    variance = (second[0] - second[1]) / 1e-4
    excess = wishart.log_determinant_excess_variance(nu, n_features)
    assert excess == pytest.approx(variance - 2 * n_features / nu, rel=1e-6)
    assert excess > 0


def test_wishart_in_one_dimension_is_a_gamma():
    nu, inverse_scale, value = 3.4, 2.5, 0.8
    log_gamma_density = (
        0.5 * nu * np.log(0.5 * inverse_scale)
        - gammaln(0.5 * nu)
        + (0.5 * nu - 1) * np.log(value)
        - 0.5 * inverse_scale * value
    )
    unnormalized = 0.5 * (nu - 2) * np.log(value) - 0.5 * inverse_scale * value
    density = unnormalized - wishart.log_partition(nu, np.log(inverse_scale), 1)
    assert density == pytest.approx(log_gamma_density, rel=1e-13)
