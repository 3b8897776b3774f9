"""Blocks cover the rows once, in order, centred and in float64, with any number of threads."""

import math

import numpy as np
import pytest
from joblib import parallel_config
from threadpoolctl import threadpool_info, threadpool_limits

from sklearn_lrvb import row_blocks
from sklearn_lrvb.row_blocks import CentredRows


@pytest.fixture(params=[np.float64, np.float32])
def X(request):
    return (np.random.default_rng(0).normal(size=(1000, 3)) + 1e4).astype(request.param)


def collected(rows, size=None):
    parts = list(rows.map(lambda selected, block: (selected, block), size))
    assert [part.start for part, _ in parts] == sorted(part.start for part, _ in parts)
    return np.concatenate([block for _, block in parts], axis=1)


@pytest.mark.parametrize("size", [None, 1, 7, 999, 1000, 5000])
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_blocks_cover_the_rows_in_order(X, size, n_jobs):
    origin = np.array([1e4, -3.0, 0.5])
    blocks = collected(CentredRows(X, origin, n_jobs), size)
    np.testing.assert_array_equal(blocks.T, X.astype(np.float64) - origin)
    assert blocks.dtype == np.float64


def test_mean_is_accurate_from_a_far_first_row():
    X = np.random.default_rng(0).normal(size=(20_000, 1))
    X[0] = 1e12
    assert CentredRows.around_mean(X).origin[0] == pytest.approx(math.fsum(X[:, 0]) / len(X), rel=1e-15)


def test_blocks_are_contiguous_over_rows(X):
    block = CentredRows(X, np.zeros(3)).block(slice(10, 20))
    assert block.shape == (3, 10)
    assert block.flags.c_contiguous


def test_mean_is_accurate_far_from_zero():
    X = np.random.default_rng(0).normal(size=(20_000, 2)) + 1e9
    exact = 1e9 + (X - 1e9).mean(axis=0)
    np.testing.assert_allclose(CentredRows.around_mean(X).origin, exact, rtol=3e-16)


def test_threads_use_one_blas_thread_each():
    rows = CentredRows(np.ones((100, 2)), np.zeros(2), n_jobs=2)

    def blas_threads(*_):
        return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]

    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        assert 2 in before
        for pools in rows.map(blas_threads, 10):
            assert all(number == 1 for number in pools)
        assert blas_threads() == before


def test_joblib_context_is_respected():
    rows = CentredRows(np.ones((100, 2)), np.zeros(2))
    with parallel_config(backend="threading", n_jobs=2):
        assert len(list(rows.map(lambda *_: None, 10))) == 10


def test_an_error_in_a_block_reaches_the_caller():
    def fail(selected, _):
        if selected.start == 50:
            raise ArithmeticError("block 50")

    for n_jobs in (1, 2):
        with pytest.raises(ArithmeticError, match="block 50"):
            list(CentredRows(np.ones((100, 2)), np.zeros(2), n_jobs).map(fail, 10))


def test_rows_of_size_stays_in_cache_and_worth_a_product():
    sizes = [row_blocks.rows_of_size(p) for p in (1, 2, 25, 100, 784, 10_000)]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] == 256
    assert all(8 * p * n <= 2**21 for p, n in zip((1, 2, 25, 100, 784), sizes, strict=False))
