"""Incomplete rows: every pass sees every row once, in blocks of complete rows or of incomplete rows."""

import functools

import numpy as np
import pytest
from catalogue import rows_around_mean

from sklearn_lrvb.rows import Workload, rows_of_array


def with_missing_values(n_rows=400, n_features=4, share=0.3, seed=0):
    """Rows of which some are complete and some have no value at all, (n_rows, n_features)."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_features)) + 100.0
    X[rng.random(X.shape) < share] = np.nan
    X[7] = np.nan
    X[8:12] = rng.normal(size=(4, n_features))
    return X


def seen_values(block):
    """The rows of a block with NaN where nothing was seen, (P, n)."""
    return np.where(block.seen > 0, block.rows, np.nan)


def write_seen_values(block, out):
    out[...] = seen_values(block).T


def weighted_sums(block, along):
    return block.weighted(block.rows) @ along


@pytest.mark.parametrize("n_features", [1, 4, 70])
@pytest.mark.parametrize("workload", [None, Workload(10**5)])
def test_results_are_in_the_order_of_the_rows(n_features, workload):
    X = with_missing_values(700, n_features, share=0.3 / n_features)
    rows = rows_of_array(X, np.full(n_features, 100.0), 2)
    np.testing.assert_array_equal(rows.each(seen_values, (n_features,), workload=workload), X - 100.0)
    out = np.empty((2, *X.shape))
    rows.write(write_seen_values, out[1], workload)
    np.testing.assert_array_equal(out[1], X - 100.0)
    numbers = np.concatenate(rows.map(lambda block: block.numbers, workload))
    np.testing.assert_array_equal(np.sort(numbers), np.arange(len(X)))


def test_blocks_are_of_complete_rows_or_of_ordered_patterns():
    X = with_missing_values()
    for block in rows_of_array(X, np.zeros(4)).map(lambda block: block, Workload(10**4)):
        is_missing = np.isnan(X[block.numbers])
        if block.missing is None:
            assert not is_missing.any()
            continue
        np.testing.assert_array_equal(block.missing.is_missing[block.missing.pattern], is_missing)
        assert np.all(np.diff(block.missing.pattern) >= 0)
        assert np.all(np.diff(block.missing.is_missing.sum(axis=1)) >= 0)
        assert len(np.unique(block.missing.is_missing, axis=0)) == len(block.missing.is_missing)
        assert not block.rows[is_missing.T].any()
        values = np.random.default_rng(0).normal(size=(2, block.n_rows))
        sums = [
            values[:, block.missing.pattern == g].sum(axis=1) for g in range(len(block.missing.is_missing))
        ]
        np.testing.assert_allclose(block.missing.sums(values), np.transpose(sums))


def test_sums_run_along_other_arrays_and_weights():
    X, rng = with_missing_values(), np.random.default_rng(1)
    weights, along = rng.uniform(0.5, 2.0, len(X)), rng.normal(size=(len(X), 3))
    rows = rows_of_array(X, np.ones(4), sample_weight=weights)
    expected = np.nan_to_num(X - 1.0).T @ (weights[:, None] * along)
    np.testing.assert_allclose(rows.total(weighted_sums, along=along), expected)


def test_means_variances_and_ranges_are_those_of_the_values():
    X, weights = with_missing_values(), np.random.default_rng(1).uniform(0.5, 2.0, 400)
    rows = rows_around_mean(X, sample_weight=weights)
    seen = ~np.isnan(X) * weights[:, None]
    means = np.nansum(X * weights[:, None], axis=0) / seen.sum(axis=0)
    np.testing.assert_allclose(rows.origin, means, rtol=1e-14)
    np.testing.assert_allclose(rows.seen_weight, seen.sum(axis=0))
    np.testing.assert_allclose(
        rows.variances, np.nansum(np.square(X - means) * weights[:, None], axis=0) / seen.sum(axis=0)
    )
    np.testing.assert_array_equal(rows.ranges(), [np.nanmin(X, axis=0), np.nanmax(X, axis=0)])
    np.testing.assert_allclose(rows.means, 0.0, atol=1e-12)


def test_some_rows_are_incomplete_only_where_values_are_missing():
    X = with_missing_values()
    rows = rows_of_array(X, np.zeros(4))
    assert rows.has_missing
    assert not rows.selected(np.arange(8, 12)).has_missing
    index, some = rows.at(np.array([8.5, 9.5, 7.5]))
    np.testing.assert_array_equal(index, [8, 9, 7])
    np.testing.assert_array_equal(some.X, X[[8, 9, 7]])
    assert not rows_of_array(np.nan_to_num(X), np.zeros(4)).has_missing
    assert not rows_of_array(np.full((2, 2), 1e308), np.zeros(2)).has_missing


@pytest.mark.parametrize("patterns_at_once", [1, 3, 1000])
def test_few_patterns_fit_into_a_block(patterns_at_once):
    patterns = rows_of_array(with_missing_values(), np.zeros(4)).patterns
    places = patterns.places(50, patterns_at_once)
    np.testing.assert_array_equal(np.concatenate([np.r_[place] for place in places]), np.arange(400))
    for place in places:
        missing = patterns.missing(place)
        assert missing is None or len(missing.is_missing) <= patterns_at_once
    assert patterns.n_complete == np.count_nonzero(~np.isnan(with_missing_values()).any(axis=1))


def test_batches_for_the_caller_keep_the_two_kinds_apart():
    rows = rows_of_array(with_missing_values(), np.zeros(4))
    blocks = list(rows.blocks(2**20))
    assert len(blocks) > 10
    kinds = [block.missing is None for block in blocks]
    assert kinds == sorted(kinds, reverse=True)
    total = functools.reduce(np.add, [block.rows.sum(axis=1) for block in blocks])
    np.testing.assert_allclose(total, np.nansum(rows.X, axis=0))
