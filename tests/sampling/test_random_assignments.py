"""Random assignments: their distribution, and random numbers that depend on the row and the draw alone."""

import numpy as np
import pytest
from scipy import stats

from sklearn_lrvb.rows import RowBlock
from sklearn_lrvb.sampling.random_assignments import (
    UniformStream,
    assign_at_random,
)


def densities(n_components, n_draws, n_rows, seed=0):
    """Relative densities with some that are next to nothing, (K, n_draws, n)."""
    logs = 3.0 * np.random.default_rng(seed).normal(size=(n_components, 1, n_rows))
    logs[0, :, : n_rows // 4] -= 400.0
    return np.exp(np.repeat(logs, n_draws, axis=1))


def assigned(relative, weights=None, start=0, seed=7):
    """How often every row is assigned to every component, (K, n_draws, n)."""
    counts = np.log(relative)
    block = RowBlock(np.zeros((1, relative.shape[2])), weights, start)
    assign_at_random(counts, block, UniformStream(seed, 0))
    return counts


@pytest.mark.slow
@pytest.mark.parametrize("weight", [None, 1, 5, 8, 9, 700])
@pytest.mark.parametrize("n_components", [1, 2, 4])
def test_counts_are_multinomial(n_components, weight):
    relative = densities(n_components, 4000, 8)
    weights = None if weight is None else np.full(8, float(weight))
    counts = assigned(relative, weights)
    n_trials = weight or 1
    np.testing.assert_array_equal(counts.sum(axis=0), n_trials)
    assert np.all(counts == np.round(counts))
    assert np.all(counts >= 0)
    shares = relative[:, 0] / relative[:, 0].sum(axis=0)
    for row in range(8):
        for k in range(n_components):
            p = shares[k, row]
            mean, sd = counts[k, :, row].mean(), np.sqrt(n_trials * p * (1 - p))
            assert abs(mean - n_trials * p) <= 5 * sd / np.sqrt(4000) + 1e-9
        expected = n_trials * (np.diag(shares[:, row]) - np.outer(shares[:, row], shares[:, row]))
        centred = counts[:, :, row] - n_trials * shares[:, row, None]
        products = centred[:, None] * centred[None]
        error = 5 * products.std(axis=2) / np.sqrt(4000) + n_trials * 2e-3
        assert np.all(np.abs(products.mean(axis=2) - expected) < error)


def test_binomial_numbers_have_their_distribution():
    relative = np.exp(np.array([0.3, 1.1]))[:, None, None] * np.ones((2, 20_000, 1))
    share = relative[0, 0, 0] / relative[:, 0, 0].sum()
    for weight in (5, 50):  # one by one, and at once
        counts = assigned(relative, np.array([float(weight)]))[0, :, 0]
        bins = np.arange(weight + 2)
        found, expected = np.histogram(counts, bins)[0], 20_000 * stats.binom(weight, share).pmf(bins[:-1])
        enough = expected > 20
        statistic = (np.square(found - expected) / expected)[enough].sum()
        assert stats.chi2.sf(statistic, enough.sum() - 1) > 1e-3


@pytest.mark.parametrize("weighted", [False, True])
def test_blocks_of_rows_do_not_show(weighted):
    relative = densities(3, 40, 60)
    weights = np.random.default_rng(1).integers(1, 50, 60).astype(float) if weighted else None
    whole = assigned(relative, weights)
    for cut in (1, 17, 32):
        parts = [
            assigned(relative[:, :, own], None if weights is None else weights[own], own.start)
            for own in (slice(0, cut), slice(cut, 60))
        ]
        np.testing.assert_array_equal(np.concatenate(parts, axis=2), whole)


def test_two_components_are_assigned_as_several_are():
    relative = densities(2, 40, 60)
    nowhere = np.full((1, 40, 60), 1e-300)
    several = assigned(np.concatenate([relative, nowhere]))
    np.testing.assert_array_equal(assigned(relative), several[:2])
    assert not several[2].any()


def test_streams_are_uniform_and_independent():
    stream = UniformStream(3, 0)
    numbers = stream.numbers(48, 0, 500)
    assert stats.kstest(numbers.ravel(), "uniform").pvalue > 1e-3
    correlations = np.corrcoef(numbers) - np.eye(48)
    assert np.abs(correlations).max() < 5 / np.sqrt(500)
    lag = np.corrcoef(numbers[:, :-1].ravel(), numbers[:, 1:].ravel())[0, 1]
    assert abs(lag) < 5 / np.sqrt(numbers.size)
    np.testing.assert_array_equal(UniformStream(3, 16).numbers(32, 0, 500), numbers[16:])
    np.testing.assert_array_equal(stream.numbers(48, 100, 7), numbers[:, 100:107])
    for other in (UniformStream(4, 0).numbers(48, 0, 500), stream.numbers(48, 0, 500, repetition=1)):
        assert not np.any(other == numbers)


def test_rows_in_any_order_have_numbers_of_their_own():
    stream, rows = UniformStream(3, 0), np.arange(500)
    numbers = stream.numbers_of_rows(48, rows, 3)
    flat = numbers.transpose(1, 2, 0).reshape(-1, len(rows))
    assert stats.kstest(flat.ravel(), "uniform").pvalue > 1e-3
    correlations = np.corrcoef(flat) - np.eye(len(flat))
    assert np.abs(correlations).max() < 6 / np.sqrt(500)
    some = np.array([77, 3, 401])
    np.testing.assert_array_equal(stream.numbers_of_rows(48, some, 3), numbers[some])
    np.testing.assert_array_equal(UniformStream(3, 16).numbers_of_rows(32, rows, 3), numbers[:, 16:])
    in_order = stream.numbers(48, 0, 500)
    for other in (UniformStream(4, 0).numbers_of_rows(48, rows, 3), stream.numbers_of_rows(48, rows, 3, 1)):
        assert not np.intersect1d(other, numbers).size
    assert not np.intersect1d(in_order, numbers).size
