"""Pareto smoothing: against ArviZ, and where the tail is known."""

import numpy as np
import pytest
from scipy import stats

from sklearn_lrvb.sampling.importance import (
    generalized_pareto_fit,
    generalized_pareto_quantiles,
    pareto_smoothed,
)

# Shape of the tail and number of ratios; k hat and effective number by psislw of arviz-stats 0.8.0.
OF_ARVIZ = [
    (0.1, 40, 0.24269928549548225, 39.00527979811919),
    (0.1, 100, 0.23751436611521567, 98.42587668508791),
    (0.1, 1000, 0.2500337901743212, 986.1515703275774),
    (0.1, 4000, 0.15939149864511037, 3948.4273406396364),
    (0.4, 40, 0.41560338014266973, 21.07650005602517),
    (0.4, 100, 0.4375592575049998, 63.75408165483612),
    (0.4, 1000, 0.5693844394737994, 541.4225613946431),
    (0.4, 4000, 0.4417925224997841, 2493.885196260718),
    (0.7, 40, 0.5823946262025567, 8.243834857578952),
    (0.7, 100, 0.6375748410239475, 24.708274628902007),
    (0.7, 1000, 0.8821556979601591, 51.01669447809508),
    (0.7, 4000, 0.7181164285977225, 358.4399389331173),
    (1.2, 40, 0.8597174905610487, 3.491634692774669),
    (1.2, 100, 0.9790786378755034, 6.121642352691837),
    (1.2, 1000, 1.397220191173776, 3.459233095089457),
    (1.2, 4000, 1.1761251435866913, 11.930488028437427),
]


def log_ratios(shape, n_draws=4000, seed=0):
    """Logarithms of ratios with a tail of this shape."""
    return -shape * np.log(np.random.default_rng(seed).uniform(size=n_draws))


@pytest.mark.parametrize(("shape", "n_draws", "expected_k_hat", "expected_size"), OF_ARVIZ)
def test_weights_are_arvizs(shape, n_draws, expected_k_hat, expected_size):
    smoothed, k_hat = pareto_smoothed(log_ratios(shape, n_draws))
    weights = np.exp(smoothed - smoothed.max())
    assert k_hat == pytest.approx(expected_k_hat, rel=1e-12)
    assert weights.sum() ** 2 / np.square(weights).sum() == pytest.approx(expected_size, rel=1e-12)


def test_the_shape_of_a_tail_is_found():
    for shape in (0.1, 0.5, 1.0):
        found = [pareto_smoothed(log_ratios(shape, 20_000, seed))[1] for seed in range(10)]
        assert np.mean(found) == pytest.approx(shape, abs=0.05)


@pytest.mark.parametrize("shape", [-0.3, 0.0, 0.5])
def test_quantiles_and_fit_are_those_of_scipys_distribution(shape):
    quantiles = generalized_pareto_quantiles(1000, shape, 2.0)
    expected = stats.genpareto(shape, scale=2.0).ppf((np.arange(1000) + 0.5) / 1000)
    np.testing.assert_allclose(quantiles, expected, rtol=1e-12)
    found, scale = generalized_pareto_fit(quantiles)
    assert found == pytest.approx(shape, abs=0.03)
    assert scale == pytest.approx(2.0, rel=0.03)


def test_smoothing_keeps_order_and_all_but_the_tail():
    ratios = log_ratios(0.6) + 500.0
    smoothed, _ = pareto_smoothed(ratios)
    order = np.argsort(ratios)
    np.testing.assert_allclose(smoothed[order[:3810]], ratios[order[:3810]])
    assert np.all(np.diff(smoothed[order]) >= -1e-9)
    assert smoothed.max() <= ratios.max() + 1e-9


def test_ratios_that_say_nothing_of_a_tail():
    equal, k_hat = pareto_smoothed(np.full(500, -3.0))
    np.testing.assert_array_equal(equal, -3.0)
    assert k_hat == -np.inf
    few = log_ratios(0.3, 12)
    np.testing.assert_allclose(pareto_smoothed(few)[0], few)
    assert pareto_smoothed(few)[1] == np.inf
    with_zeros = np.concatenate([log_ratios(0.3, 400), np.full(100, -np.inf)])
    smoothed, k_hat = pareto_smoothed(with_zeros)
    assert np.isfinite(k_hat)
    assert np.all(smoothed[400:] == -np.inf)
