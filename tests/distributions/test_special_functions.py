"""Quantile functions have the moments asked for, keep to their range, and lose no digits in either tail."""

import numpy as np
import pytest
from numpy.polynomial.hermite_e import hermegauss
from scipy import stats
from scipy.special import polygamma

from sklearn_lrvb.distributions.special_functions import (
    _LARGE_BETA_SHAPE,
    _LARGE_GAMMA_SHAPE,
    beta_quantile,
    beta_quantile_pair,
    beta_size,
    gamma_quantile,
    inverse_gamma_quantile,
    negative_gamma_quantile,
    normal_quantile,
)

Z = np.linspace(-6, 6, 25)
FAMILIES = {
    normal_quantile: (-3.0, 2.0),
    gamma_quantile: (3.0, 1.2),
    negative_gamma_quantile: (-3.0, 1.2),
    beta_quantile: (0.3, 0.12),
}
families = pytest.mark.parametrize("quantile", FAMILIES, ids=lambda quantile: quantile.__name__)


@families
def test_they_have_the_mean_and_the_standard_deviation(quantile):
    mean, deviation = FAMILIES[quantile]
    z, weights = hermegauss(80)
    x, weights = quantile(z, mean, deviation), weights / weights.sum()
    assert weights @ x == pytest.approx(mean, rel=1e-7)
    assert weights @ (x - mean) ** 2 == pytest.approx(deviation**2, rel=1e-5)


@families
@pytest.mark.parametrize("shrink", [1e-4, 1e-8, 1e-12, 1e-20])
def test_they_end_in_the_normal_limit(quantile, shrink):
    mean, deviation = FAMILIES[quantile]
    change = quantile(Z, mean, shrink * deviation) - mean
    np.testing.assert_allclose(change, shrink * deviation * Z, atol=30 * shrink**2 + 2e-15, rtol=0)


def test_they_are_those_of_scipy():
    p = stats.norm.cdf(Z[Z < 0])
    for shape in (0.3, 2.0, 55.0, 3e4):
        x = gamma_quantile(Z, 2.0, 2.0 / np.sqrt(shape))
        scale = 2.0 / shape
        np.testing.assert_allclose(x[Z < 0], stats.gamma.ppf(p, shape, scale=scale), rtol=1e-11)
        np.testing.assert_allclose(x[Z > 0][::-1], stats.gamma.isf(p, shape, scale=scale), rtol=1e-11)
        x, q = inverse_gamma_quantile(Z, shape, 5.0), stats.invgamma(shape, scale=5.0)
        np.testing.assert_allclose(x[Z < 0], q.ppf(p), rtol=1e-10)
        np.testing.assert_allclose(x[Z > 0][::-1], q.isf(p), rtol=1e-10)
    for a, b in ((0.3, 2.0), (40.0, 3.0), (5e3, 7e3)):
        v, rest = beta_quantile_pair(Z, a, b)
        np.testing.assert_allclose(v[Z < 0], stats.beta.ppf(p, a, b), rtol=1e-10)
        np.testing.assert_allclose(v[Z > 0][::-1], stats.beta.isf(p, a, b), rtol=1e-10)
        np.testing.assert_allclose(rest[::-1], beta_quantile_pair(Z, b, a)[0], rtol=1e-10)


def test_expansions_meet_the_inverses_where_they_take_over():
    deviation = 1.0 / np.sqrt(_LARGE_GAMMA_SHAPE)
    before, after = (gamma_quantile(Z, 1.0, deviation * (1 + change)) for change in (1e-9, -1e-9))
    np.testing.assert_allclose((before - 1) / deviation, (after - 1) / deviation, atol=1e-7)
    shapes = np.array([1.0, 3.0]) * _LARGE_BETA_SHAPE
    deviation = stats.beta.std(*shapes)
    before, after = (beta_quantile_pair(Z, *(shapes * (1 + change)))[0] for change in (-1e-9, 1e-9))
    np.testing.assert_allclose((before - 0.25) / deviation, (after - 0.25) / deviation, atol=1e-7)


@pytest.mark.parametrize("size", 10.0 ** np.arange(-8, 31, 2))
def test_extreme_parameters_stay_in_range(size):
    for mean in (1e-12, 1e-3, 0.5, 1 - 1e-3, 1 - 1e-12):
        v, rest = beta_quantile_pair(Z, mean * size, (1 - mean) * size)
        assert np.all((v >= 0) & (v <= 1) & (rest >= 0) & (rest <= 1))
        assert np.all(np.diff(v) >= 0)
        np.testing.assert_allclose(v + rest, 1, atol=1e-8)
        x = beta_quantile(Z, mean, 1.0 / np.sqrt(size))
        assert np.all((x >= 0) & (x <= 1) & (np.diff(x, prepend=0) >= 0))
    for x in (gamma_quantile(Z, 2.0, 2.0 / np.sqrt(size)), inverse_gamma_quantile(Z, size, 2.0)):
        assert np.all(np.isfinite(x) & (x > 0) & (np.diff(x, prepend=0) >= 0))
    np.testing.assert_array_equal(inverse_gamma_quantile(Z, size, 0.0), 0)


def test_a_beta_variable_cannot_vary_more_than_zero_or_one():
    # The probability of a value near 1 is 0.3, that of a value near 0 is 0.7.
    assert beta_quantile(stats.norm.ppf(0.6), 0.3, 2.0) == pytest.approx(0, abs=1e-12)
    assert beta_quantile(stats.norm.ppf(0.8), 0.3, 2.0) == pytest.approx(1, abs=1e-12)


def test_a_beta_variables_size_follows_from_its_logits_variance():
    a, b = (grid.ravel() for grid in np.meshgrid(10.0 ** np.arange(-9, 13, 3), 10.0 ** np.arange(-9, 13, 3)))
    variance = polygamma(1, a) + polygamma(1, b)
    np.testing.assert_allclose(beta_size(a, b, variance), 1, rtol=1e-12)
    for times in (1.5, 1e3, 1e8):
        size = beta_size(a, b, times * variance)
        np.testing.assert_allclose(
            polygamma(1, size * a) + polygamma(1, size * b), times * variance, rtol=1e-11
        )
