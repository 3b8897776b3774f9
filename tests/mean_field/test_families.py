"""The functions of families: gradients and Hessians of log partitions, against differences and scipy."""

import numpy as np
import pytest
from scipy.special import betaln, digamma, gammaln

from sklearn_lrvb.distributions import dirichlet, wishart
from sklearn_lrvb.distributions.special_functions import log_gamma_rise

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
    constant = dirichlet.prior_log_partition(prior)
    assert dirichlet.expectations(prior, prior, constant)[1] == pytest.approx(0.0, abs=1e-14)
    rng = np.random.default_rng(0)
    draws = rng.dirichlet(concentration, size=400_000)
    log_ratio = ((concentration - prior) * np.log(draws)).sum(axis=1)
    log_ratio += dirichlet.log_partition(prior) - dirichlet.log_partition(concentration)
    noise = log_ratio.std() / np.sqrt(len(draws))
    mean_log, divergence = dirichlet.expectations(concentration, prior, constant)
    assert abs(log_ratio.mean() - divergence) < 4 * noise
    np.testing.assert_allclose(mean_log, dirichlet.expected_log(concentration), rtol=1e-14)


@pytest.mark.parametrize("start", [0.3, 40.0, 150.0, 3e5])
@pytest.mark.parametrize("rise", [-0.2, 1e-3, 2.0, 7e4])
def test_rise_of_log_gamma_is_the_integral_of_digamma(start, rise):
    nodes, weights = np.polynomial.legendre.leggauss(60)
    ends = start * np.expm1(np.linspace(0.0, np.log1p(rise / start), 21))  # panels of equal ratios
    middles, halves = 0.5 * (ends[1:] + ends[:-1]), 0.5 * (ends[1:] - ends[:-1])
    points = start + middles[:, None] + halves[:, None] * nodes
    integral = (halves[:, None] * weights * digamma(points)).sum()
    found = log_gamma_rise(np.array([start]), np.array([rise]))[0]
    assert found == pytest.approx(integral, rel=1e-13, abs=1e-13)


@pytest.mark.parametrize("prior", [0.4, 30.0, 2e6])
def test_dirichlet_divergence_of_a_small_step_is_its_curvature(prior):
    # KL(a + d || a) = d' V d / 2 to second order. With large a, log partitions hold no digit of it.
    prior = prior * np.array([1.0, 2.0, 0.5])
    step = 1e-4 * np.sqrt(prior) * np.array([1.0, -0.7, 0.2])
    found = dirichlet.expectations(prior + step, prior, dirichlet.prior_log_partition(prior))[1]
    expected = 0.5 * step @ dirichlet.covariance_of_log(prior) @ step
    assert found == pytest.approx(expected, rel=1e-3, abs=2e-15 + 1e-17 * np.abs(step).sum())


def wishart_divergence(nu, nu_0, scale_divergence, n_features):
    """KL divergence of Wishart distributions with nu and nu_0 degrees of freedom, a float."""
    wisharts = wishart.Wisharts(n_features)
    _, digammas, halves = wisharts.expected_log_determinant(0.0, nu)
    return wisharts.kl_divergence(halves, digammas, 0.5 * nu_0, scale_divergence)


@pytest.mark.parametrize("n_features", [1, 4])
@pytest.mark.parametrize("nu", [6.5, 300.0, 2e6])
def test_wishart_divergence_is_that_of_the_densities(n_features, nu):
    # The divergence by its definition, from log densities in which everything is added up as it comes.
    nu_0, rng = 1.3 * nu, np.random.default_rng(0)
    A, C = (nu * np.cov(rng.normal(size=(n_features, 50))).reshape(n_features, n_features) for _ in "AC")
    log_dets = np.linalg.slogdet(A)[1], np.linalg.slogdet(C)[1]
    mean_log_det = wishart.expected_log_determinant(nu, log_dets[0], n_features)
    traces = n_features * nu, nu * np.trace(np.linalg.solve(A, C))
    densities = [
        0.5 * (freedom - n_features - 1) * mean_log_det
        - 0.5 * trace
        - wishart.log_partition(freedom, log_det, n_features)
        for freedom, log_det, trace in zip((nu, nu_0), log_dets, traces, strict=True)
    ]
    ratio = nu / nu_0 * np.linalg.solve(A, C)
    excess = np.trace(ratio) - np.linalg.slogdet(ratio)[1] - n_features
    found = wishart_divergence(nu, nu_0, excess, n_features)
    assert found == pytest.approx(densities[0] - densities[1], rel=1e-11, abs=1e-14 * nu * np.log(nu))


@pytest.mark.parametrize("nu", [6.5, 300.0, 2e6])
def test_wishart_divergence_of_a_small_step_is_its_curvature(nu):
    # At equal means it is the variance of log|Lambda| around its regression on Lambda that counts.
    step = 1e-3 * np.sqrt(nu)
    found = wishart_divergence(nu + step, nu, 0.0, 3)
    excess = wishart.log_determinant_excess_variance(wishart.half_degrees_of_freedom(nu, 3))
    expected = 0.125 * step**2 * excess
    assert found == pytest.approx(expected, rel=1e-2, abs=2e-14 * (1 + step))


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
    excess = wishart.log_determinant_excess_variance(wishart.half_degrees_of_freedom(nu, n_features))
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
