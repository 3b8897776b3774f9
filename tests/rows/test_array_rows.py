"""Blocks cover the rows once, in order, centred and in float64; totals and maps are those of all rows."""

import functools
import math
import operator
import pickle
import threading

import numpy as np
import pytest
from catalogue import rows_around_mean, set_sizes
from joblib import parallel_config
from scipy.sparse import csr_array
from threadpoolctl import threadpool_info, threadpool_limits

from sklearn_lrvb import rows as row_passes
from sklearn_lrvb.rows import ArrayRows, RowBlock, Workload, batches, rows_of_array
from sklearn_lrvb.rows.blocks import added
from sklearn_lrvb.rows.parts import BatchRows


@pytest.fixture(params=[np.float64, np.float32])
def X(request):
    return (np.random.default_rng(0).normal(size=(1000, 3)) + 1e4).astype(request.param)


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks of ten rows, whatever is made of them."""
    set_sizes(monkeypatch, most_rows=10)


def itself(block):
    return block


# Blocks.


@pytest.mark.parametrize("size", [1, 7, 999, 1000, 5000])
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_blocks_cover_the_rows_in_order(X, size, n_jobs, monkeypatch):
    set_sizes(monkeypatch, most_rows=size)
    origin = np.array([1e4, -3.0, 0.5])
    weights = np.arange(1000.0)
    blocks = list(ArrayRows(X, origin, n_jobs, weights).map(itself))
    assert [block.start for block in blocks] == [0, *(block.stop for block in blocks[:-1])]
    rows = np.concatenate([block.rows for block in blocks], axis=1)
    np.testing.assert_array_equal(rows.T, X.astype(np.float64) - origin)
    assert rows.dtype == np.float64
    np.testing.assert_array_equal(np.concatenate([block.sample_weight for block in blocks]), weights)


def test_blocks_are_contiguous_over_rows(X):
    block = ArrayRows(X, np.zeros(3)).block(slice(10, 20))
    assert block.rows.shape == (3, 10)
    assert block.rows.flags.c_contiguous
    assert (block.start, block.stop, block.n_rows) == (10, 20, 10)


def test_few_rows_are_centred_once_for_all_passes(X):
    rows = ArrayRows(X, np.full(3, 1e4)).centred_once()
    (first,), (second,) = rows.map(itself), rows.map(itself)
    assert second is first
    with pytest.raises(ValueError, match="read-only"):
        first.rows[0, 0] = 1.0
    np.testing.assert_array_equal(first.with_one[0], 1.0)
    np.testing.assert_array_equal(first.with_one[1:], first.rows)
    # Other weights and another origin have blocks of their own, and a pickle has none.
    (weighted,), (moved,) = rows.reweighted(np.arange(1000.0)).map(itself), rows.around_mean().map(itself)
    np.testing.assert_array_equal(weighted.counts, np.arange(1000.0))
    np.testing.assert_allclose(moved.rows.mean(axis=1), 0.0, atol=1e-12)
    assert len(pickle.dumps(rows)) < X.nbytes + 2_000


@pytest.mark.parametrize(("n_rows", "keeps"), [(1000, False), (9_000, True)])
def test_rows_are_not_kept_unasked_nor_if_they_are_many(n_rows, keeps):
    rows, everything = ArrayRows(np.zeros((n_rows, 5)), np.zeros(5)), slice(0, n_rows)
    rows = rows.centred_once() if keeps else rows
    assert rows.block(everything) is not rows.block(everything)


@pytest.mark.parametrize("weights", [None, np.array([0.5, 2.0])])
def test_a_block_weights_values_by_how_often_its_rows_count(weights):
    block = RowBlock(np.array([[1.0, 2.0]]), weights)
    counts = [1.0, 1.0] if weights is None else weights
    np.testing.assert_array_equal(block.counts, counts)
    np.testing.assert_array_equal(
        block.weighted(np.array([[3.0, 5.0]])), [[3.0 * counts[0], 5.0 * counts[1]]]
    )


def test_rows_of_a_block_stay_in_cache_and_are_worth_a_product():
    sizes = [row_passes.rows_in_cache(p) for p in (1, 2, 25, 100, 784, 10_000)]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] == 512
    assert all(8 * p * n <= 2**20 for p, n in zip((1, 2, 25, 100), sizes, strict=False))


def test_batches_fit_into_memory_and_hold_one_item_at_least():
    for n, bytes_each in ((0, 8), (10, 8), (1000, 2**20), (3, 2**30)):
        parts = batches(n, bytes_each)
        assert [i for part in parts for i in range(n)[part]] == list(range(n))
        assert all(
            part.stop - part.start == 1 or (part.stop - part.start) * bytes_each <= 2**25 for part in parts
        )


def test_the_caller_gets_blocks_as_large_as_memory_allows(X):
    rows = ArrayRows(X, np.zeros(3))
    assert [block.n_rows for block in rows.blocks(8)] == [1000]
    assert {block.n_rows for block in rows.blocks(2**23)} == {4}


# The origin.


def test_mean_is_accurate_from_a_far_first_row():
    X = np.random.default_rng(0).normal(size=(20_000, 1))
    X[0] = 1e12
    assert rows_around_mean(X).origin[0] == pytest.approx(math.fsum(X[:, 0]) / len(X), rel=1e-15)


def test_mean_is_accurate_far_from_zero():
    X = np.random.default_rng(0).normal(size=(20_000, 2)) + 1e9
    exact = 1e9 + (X - 1e9).mean(axis=0)
    np.testing.assert_allclose(rows_around_mean(X).origin, exact, rtol=3e-16)


# The verbs.


class Products:
    """Something that adds itself."""

    def __init__(self, values):
        self.values = values

    def __add__(self, other):
        return Products(self.values + other.values)


def nested_sums(block):
    rows = block.rows
    early = rows.sum(axis=1) if block.start < 500 else None
    return rows.sum(axis=1), [block.n_rows, early], Products(rows @ rows.T), None


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_total_adds_arrays_numbers_and_objects_however_nested(n_jobs, small_blocks):
    X = np.random.default_rng(0).integers(-9, 9, size=(1000, 3)).astype(float)
    sums, counted, products, nothing = ArrayRows(X, np.zeros(3), n_jobs).total(nested_sums)
    np.testing.assert_array_equal(sums, X.sum(axis=0))
    assert counted[0] == 1000
    np.testing.assert_array_equal(counted[1], X[:500].sum(axis=0))
    np.testing.assert_array_equal(products.values, X.T @ X)
    assert nothing is None


def weighted_sums(block, own):
    own = own.toarray() if hasattr(own, "toarray") else own
    return block.rows @ own


@pytest.mark.parametrize("kind", [np.asarray, csr_array])
def test_a_function_gets_its_blocks_rows_of_what_runs_along(kind, small_blocks):
    rng = np.random.default_rng(0)
    X, along = rng.normal(size=(105, 3)), rng.uniform(size=(105, 2))
    found = ArrayRows(X, np.zeros(3)).total(weighted_sums, along=kind(along))
    np.testing.assert_allclose(found, X.T @ along, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_results_for_each_row_are_at_the_places_of_the_rows(X, n_jobs, small_blocks):
    rows = ArrayRows(X, np.zeros(3), n_jobs)
    np.testing.assert_array_equal(rows.each(operator.attrgetter("rows"), (3,)), X.astype(float))


@pytest.mark.parametrize("lengths", [None, (3, 4), (1, 0, 2, 4)])
def test_a_position_between_two_rows_is_in_the_later_one(lengths):
    """So positions say the same of rows with weights, and of these rows as often as they count."""
    rng = np.random.default_rng(0)
    X, weights = rng.normal(size=(7, 2)), np.array([2.0, 1.0, 0.0, 3.0, 1.0, 1.0, 2.0])
    rows = rows_of_array(X, np.zeros(2), sample_weight=weights).counted()
    if lengths is not None:
        parts = [slice(end - length, end) for end, length in zip(np.cumsum(lengths), lengths, strict=True)]
        batches = [(X[part], weights[part]) for part in parts]
        rows = BatchRows(batches, lambda: batches, np.zeros(2), 1)
    index, some = rows.at(np.arange(10.0))
    repeated = np.repeat(X, weights.astype(int), axis=0)
    np.testing.assert_array_equal(some.X, repeated)
    np.testing.assert_array_equal(index, [0, 0, 1, 2, 2, 2, 3, 4, 5, 5])  # among those that count
    np.testing.assert_array_equal(some.at(np.arange(10.0))[1].X, repeated)


def test_threads_change_no_bit_of_a_total(small_blocks):
    X = np.random.default_rng(0).normal(size=(1005, 3))
    one, two = (ArrayRows(X, np.zeros(3), n_jobs).total(nested_sums) for n_jobs in (1, 2))
    np.testing.assert_array_equal(one[0], two[0])
    np.testing.assert_array_equal(one[2].values, two[2].values)


def write_rows(factor, block, out):
    out[...] = factor * block.rows.T


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_what_is_written_lands_at_the_places_of_the_rows(n_jobs, small_blocks, tmp_path):
    X = np.random.default_rng(0).normal(size=(105, 3))
    out = np.memmap(tmp_path / "out", dtype=float, mode="w+", shape=(105, 4, 3))
    ArrayRows(X, np.zeros(3), n_jobs).write(functools.partial(write_rows, 2.0), out[:, 1])
    np.testing.assert_array_equal(out[:, 1], 2.0 * X)
    assert not out[:, [0, 2, 3]].any()


# Threads.


def test_threads_use_one_blas_thread_each(small_blocks):
    rows = ArrayRows(np.ones((100, 2)), np.zeros(2), n_jobs=2)

    def blas_threads(*_):
        return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]

    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        assert 2 in before
        for pools in rows.map(blas_threads):
            assert all(number == 1 for number in pools)
        assert blas_threads() == before


@pytest.mark.slow
@pytest.mark.parametrize(
    ("workload", "threads"),
    [(None, False), (Workload(6, product=50), True), (Workload(6, product=49), False)],
)
def test_threads_are_for_large_products(workload, threads, small_blocks, monkeypatch):
    set_sizes(monkeypatch, product_for_threads=50)
    rows = ArrayRows(np.zeros((1000, 3)), np.zeros(3), n_jobs=2)

    def blas_and_thread(block):
        pools = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
        return {pool["num_threads"] for pool in pools}, threading.current_thread()

    with threadpool_limits(2, user_api="blas"):
        calls = rows.map(blas_and_thread, workload)
    assert all(numbers == {1} for numbers, _ in calls)
    assert all((thread is not threading.main_thread()) == threads for _, thread in calls)


def test_joblib_context_is_respected(small_blocks):
    rows = ArrayRows(np.ones((100, 2)), np.zeros(2))
    with parallel_config(backend="threading", n_jobs=2):
        assert len(list(rows.map(itself))) == 10


def test_an_error_in_a_block_reaches_the_caller(small_blocks):
    def fail(block):
        if block.start == 50:
            raise ArithmeticError("block 50")

    for n_jobs in (1, 2):
        with pytest.raises(ArithmeticError, match="block 50"):
            list(ArrayRows(np.ones((100, 2)), np.zeros(2), n_jobs).map(fail))


def failing_between_blocks(items, n_items):
    yield next(iter(items))
    raise ArithmeticError


@pytest.mark.parametrize(
    "verb",
    [
        lambda rows: rows.each(operator.attrgetter("rows"), (2,), tracked=failing_between_blocks),
        lambda rows: rows.write(
            lambda block, out: None, np.empty(rows.n_samples), tracked=failing_between_blocks
        ),
    ],
    ids=["each", "write"],
)
def test_after_an_error_between_blocks_no_thread_is_left(verb, small_blocks):
    """Also while its traceback, and with it every frame on the way, is kept."""
    with threadpool_limits(2, user_api="blas"):
        before, n_threads = threadpool_info(), threading.active_count()
        with pytest.raises(ArithmeticError) as kept:
            verb(ArrayRows(np.ones((100, 2)), np.zeros(2), n_jobs=2))
        assert threadpool_info() == before
        assert threading.active_count() == n_threads
    assert kept.tb is not None


def test_sums_of_different_dtypes_are_added_up():
    # Whole numbers of rows that count once, and then shares of rows with weights.
    whole, shares = np.array([1, 2]), np.array([0.5, 0.25])
    np.testing.assert_array_equal(added(whole, shares), [1.5, 2.25])
    single = added(np.ones(2, dtype=np.float32), np.full(2, 1e-12))
    np.testing.assert_array_equal(single, 1.0 + 1e-12)
    np.testing.assert_array_equal(whole, [1, 2])
