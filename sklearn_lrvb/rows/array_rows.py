"""Rows measured from an origin, wherever they are, and the rows of an array.

Almost all that is computed from rows is one of three verbs.

* A *total* adds up the small results of a function of a block of rows (`Rows.total`).
* Results of a *map* are brought together from all blocks: few of them, such as ambiguous rows alone
  (`Rows.map`).
* A result with a row for *each* row is computed where the rows are, by a function of a block
  (`Rows.each`) or by a function that makes passes over rows in memory (`Rows.by_array`).

Rows of an array have two more: `ArrayRows.write` lets a function fill the caller's array block by block, and
`ArrayRows.blocks` hands the blocks to the caller.

The functions are pure and can be pickled without the rows: functions of a module, `functools.partial` of
these over picklable arguments, or objects with ``__call__``; never closures over rows. They get everything
that belongs to some rows from the `RowBlock`. How many rows a block has is decided in this folder alone: a
caller says how much its function makes of them (`Workload`).

*Arrays*, in memory or mapped from a file, may be complete or have missing values, as NaN. Nothing of their
size is ever copied. Blocks depend on their size alone and come back in row order, so results do not depend on
``n_jobs``. Passes go through rows with missing values in an order in which those of one pattern of missing
values follow each other (`PatternOrder`); results are put back into the order of the rows. A block has
complete rows alone, or incomplete ones alone. `parts` has rows that are never all at once.
"""

import contextlib
import functools
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

import numpy as np
from joblib import effective_n_jobs

from sklearn_lrvb.rows.blocks import (
    PatternOrder,
    RowBlock,
    Workload,
    added,
    rows_in_batch,
    rows_in_cache,
    slices,
    sum_of_rows,
    sum_of_seen,
    sum_of_squares,
    untracked,
)
from sklearn_lrvb.rows.threads import blas_threads, in_order

# Rows of the matrices that a function of a block multiplies, from which on blocks go to threads. With smaller
# ones a pass is made of NumPy calls of some 10 microseconds, between which threads wait for the interpreter.
# On two cores, iterations of the fit took 1.3 to 2.7 times as long with two threads at 2 to 10 features, 0.9
# to 1.3 times at 25, 0.7 to 1.2 times at 50 and 100 (1.0 or more on a busy machine), and 0.7 to 0.9 times at
# 200. Where the products are of second moments, as for leverage, it was 1.0 to 1.4 times at 10 features, and
# 0.5 to 0.7 times at 25.
_LEAST_PRODUCT_FOR_THREADS = 50

_MOST_NUMBERS_KEPT = 2**15  # Of rows that are centred once, which stay in memory: 256 KiB.


class Rows(ABC):
    """Rows of X, measured from ``origin``: so is everything that is computed from them.

    After `counted`, rows of weight zero and rows without any value are no part of them.

    Attributes
    ----------
    origin : float64 array of shape (n_features,)
    X : the rows as they are given: array, source of batches, or Dask array
    n_samples, n_features : int
    n_given : int
        Number of rows in results with a row for each. Rows in parts include those that do not count even
        after `counted`; rows of an array do not, so that it is ``n_samples``.
    total_weight : float, how many rows there are, each as often as it counts
    seen_weight : float or (n_features,), how many of these have a value in a column
    variances : (n_features,), of the columns around the origin
    has_missing : bool, whether values are missing; in blocks they are zero, and the block says where
    n_patterns : int, number of different patterns of missing values, or an upper bound
    dtype : numpy.dtype, float64 or float32, in which X is stored
    n_jobs : int or None, threads over blocks, as in joblib
    """

    is_in_memory = True  # Whether they are an array, in memory or mapped from a file.
    is_lazy = False  # Whether results with a row for each row are computed later, where the rows are.

    @abstractmethod
    def total(self, function, workload=None, along=None):
        """Sum of ``function(block)`` over all blocks.

        Parameters
        ----------
        function : callable
            Its results are arrays, numbers, objects with ``+``, or None for nothing to add; or tuples or
            lists of these. Arrays are added into, so they must be the function's own.
        workload : Workload or None, default=None
            How much the function makes of a block. None is twice the numbers of its rows.
        along : array or sparse array with a row for every row
            The function then gets its block's rows of it as second argument.
        """

    @abstractmethod
    def map(self, function, workload=None):
        """``function(block)`` of all blocks in row order, as a list.

        Parameters
        ----------
        function : callable, whose results are small together
        workload : as in `total`
        """

    @abstractmethod
    def each(self, function, shape=(), dtype=np.float64, workload=None, tracked=untracked):
        """Results of a function of a block that have a row for every row, rows first: (n_given, *shape).

        Parameters
        ----------
        function : callable (RowBlock) -> array (*shape reversed, n_rows)
        shape : tuple of int
        dtype : of the results
        workload : as in `total`
        tracked : Tracked, through which the blocks are gone, where the results are computed at once
        """

    @abstractmethod
    def by_array(self, function, shape=(), dtype=np.float64, tracked=untracked):
        """Like `each`, but the function gets `ArrayRows` and makes its own passes over them.

        Parameters
        ----------
        function : callable (ArrayRows, tracked=...) -> array (n_rows, *shape)
        shape, dtype, tracked : as in `each`
        """

    @abstractmethod
    def at(self, positions):
        """The rows at given cumulative weights.

        Parameters
        ----------
        positions : float array (n,), ascending, at least zero and below ``total_weight``
            Each picks the row at which the sum of the weights first exceeds it.

        Returns
        -------
        index : int array (n,), the numbers of the rows
        rows : ArrayRows, of weight one
        """

    @abstractmethod
    def chosen(self, index):
        """Some of the rows, with their weights: ArrayRows.

        Parameters
        ----------
        index : int array (n,), ascending, their numbers among the rows that were given
        """

    @abstractmethod
    def counted(self):
        """The rows of positive weight that have a value: Rows.

        Raises
        ------
        ValueError
            Where there is none.
        """

    @abstractmethod
    def reweighted(self, factors):
        """The same rows, each of which counts so many times as often: Rows.

        Parameters
        ----------
        factors : float array (n_given,), not negative; rows of factor zero may stay, with weight zero
        """

    def centred_once(self):
        """The same rows, for many passes between which X does not change: few rows are centred only once."""
        return self

    @abstractmethod
    def which_count(self):
        """Whether every row that was given has a positive weight and a value, bool array (n_given,)."""

    @abstractmethod
    def around_mean(self):
        """The same rows, measured from the mean of the values in every column: Rows."""

    @abstractmethod
    def ranges(self):
        """Smallest and largest value of every column, (n_features,) each."""

    @abstractmethod
    def in_memory(self):
        """All rows as `ArrayRows`; for few rows."""

    def thinned(self, n_rows):
        """Some `n_rows` evenly spaced rows, each of weight one: ArrayRows."""
        spacing = self.total_weight / n_rows
        return self.at(spacing * (np.arange(n_rows) + 0.5))[1]


@dataclass(eq=False)
class ArrayRows(Rows):
    """The rows of an array, measured from ``origin``.

    Attributes
    ----------
    X : array of shape (n_samples, n_features), any float dtype; not copied
    origin : float64 array of shape (n_features,)
    n_jobs : int or None, threads over blocks, as in joblib
    sample_weight : float64 array of shape (n_samples,), how often each row counts; None for once
    first : int, number of the first row, where these are a part of other rows
    patterns : PatternOrder of rows with missing values; None where all values are there
    keeps_block : bool, whether passes keep the block of all rows, if these are few
    """

    X: np.ndarray
    origin: np.ndarray
    n_jobs: int | None = None
    sample_weight: np.ndarray | None = None
    first: int = 0
    patterns: PatternOrder | None = None
    keeps_block: bool = False

    def __post_init__(self):
        self.n_samples, self.n_features = self.X.shape
        self.n_given, self.dtype = self.n_samples, self.X.dtype
        self.has_missing = self.patterns is not None
        self.n_patterns = len(self.patterns.is_missing) if self.has_missing else 0
        self.total_weight = self.n_samples if self.sample_weight is None else float(self.sample_weight.sum())
        self._kept = None  # The block of all rows.

    def __getstate__(self):
        return {**vars(self), "_kept": None}

    @functools.cached_property
    def seen_weight(self):
        return self.total(sum_of_seen) if self.has_missing else self.total_weight

    @property
    def means(self):
        """Means of the columns' values, measured from the origin: by a pass, (n_features,)."""
        sums, seen = self.total(sum_of_rows), self.seen_weight
        return np.divide(sums, seen, out=np.zeros_like(sums), where=np.greater(seen, 0))

    @functools.cached_property
    def variances(self):
        return self.total(sum_of_squares) / self.seen_weight

    def ranges(self):
        smallest = np.fmin.reduce(self.X, axis=0, initial=np.inf)
        return smallest, np.fmax.reduce(self.X, axis=0, initial=-np.inf)

    def counted(self):
        kept, weights = counted(self.X, self.sample_weight, self.has_missing)
        if kept is None:
            return replace(self, sample_weight=weights)
        if not kept.any():
            which = "" if self.sample_weight is None else " of positive weight"
            raise ValueError(f"X has no value: it contains NaN alone in all {self.n_samples} rows{which}.")
        return self.selected(kept, weights)

    def reweighted(self, factors):
        weights = factors if self.sample_weight is None else self.sample_weight * factors
        return replace(self, sample_weight=np.asarray(weights, dtype=np.float64))

    def centred_once(self):
        return replace(self, keeps_block=self.X.size <= _MOST_NUMBERS_KEPT)

    def which_count(self):
        kept, _ = counted(self.X, self.sample_weight, self.has_missing)
        return np.ones(self.n_samples, dtype=bool) if kept is None else kept

    def around_mean(self):
        rows = replace(self, origin=np.nan_to_num(self.X[0].astype(np.float64)))
        for _ in range(2):  # The second pass removes the rounding of the first one's sums.
            seen = rows.seen_weight  # With missing values it takes a pass, and is the same from any origin.
            rows = replace(rows, origin=rows.origin + rows.means)
            rows.seen_weight = seen
        return rows

    def selected(self, index, sample_weight=None):
        """Some of the rows, with weights of their own: ArrayRows.

        Parameters
        ----------
        index : int array (n,) or bool array (n_samples,)
        sample_weight : array (n,) or None
        """
        # Some rows of a table with missing values may have none.
        is_incomplete = None if self.has_missing else False
        return rows_of_array(
            self.X[index], self.origin, self.n_jobs, sample_weight, self.first, is_incomplete
        )

    def at(self, positions):
        if self.sample_weight is None:
            index = positions.astype(np.intp)
        else:
            index = np.searchsorted(np.cumsum(self.sample_weight), positions, side="right")
        index = np.minimum(index, self.n_samples - 1)
        return self.first + index, self.selected(index)

    def chosen(self, index):
        return self.selected(index, None if self.sample_weight is None else self.sample_weight[index])

    def in_memory(self):
        return self

    # Passes over blocks, which are slices of the order in which passes go through the rows.

    def total(self, function, workload=None, along=None):
        with self._results(functools.partial(self._of_block, function, along), workload) as results:
            return functools.reduce(added, results, None)

    def map(self, function, workload=None):
        with self._results(functools.partial(self._of_block, function, None), workload) as results:
            return list(results)

    def each(self, function, shape=(), dtype=np.float64, workload=None, tracked=untracked):
        out = np.empty((self.n_samples, *shape), dtype)
        with self._results(functools.partial(self._put, function, out), workload, tracked) as results:
            for _ in results:
                pass
        return out

    def by_array(self, function, shape=(), dtype=np.float64, tracked=untracked):
        return function(self, tracked=tracked)

    def write(self, function, out, workload=None, tracked=untracked):
        """Call ``function(block, out=...)`` for every block, to fill its rows of ``out``.

        Parameters
        ----------
        function : callable, which writes an entry of ``out`` for every row of the block
        out : array (n_samples, ...), may be a memmap
        workload, tracked : as in `each`
        """
        with self._results(functools.partial(self._written, function, out), workload, tracked) as results:
            for _ in results:
                pass

    def blocks(self, bytes_each, tracked=untracked):
        """Yield blocks to the caller itself, as large as `batches` allows.

        For work that cannot go to where the rows are, because it makes passes over rows of its own.
        """
        places = self._places(rows_in_batch(bytes_each), per_pattern=0)
        return map(self.block, tracked(places, len(places)))

    def block(self, place):
        """The rows in one slice of the order, as `RowBlock`."""
        is_kept = self.keeps_block and place.stop - place.start == self.n_samples
        if is_kept and self._kept is not None:
            return self._kept
        index = self.patterns.order[place] if self.has_missing else place
        with_one = np.empty((1 + self.n_features, place.stop - place.start))
        with_one[0], centred = 1.0, with_one[1:]
        np.subtract(self.X[index].T, self.origin[:, None], out=centred)
        weights = None if self.sample_weight is None else self.sample_weight[index]
        order, missing, start = None, None, self.first + place.start
        if self.has_missing:
            order, missing = self.first + index, self.patterns.missing(place)
        if missing is not None:
            centred[missing.by_row(missing.is_missing.T)] = 0.0
        block = RowBlock(centred, weights, start, order, missing, index, with_one)
        if is_kept:
            with_one.flags.writeable = centred.flags.writeable = False
            self._kept = block
        return block

    def _places(self, n_rows, per_pattern):
        """Slices of the order, of at most `n_rows` rows.

        Their patterns are limited so that `per_pattern` numbers for each of them fit in a batch.
        """
        if not self.has_missing:
            return slices(self.n_samples, n_rows)
        return self.patterns.places(n_rows, rows_in_batch(8 * max(per_pattern, 1)))

    def _results(self, call, workload, tracked=None):
        """Context with an iterator over ``call(place)`` of all blocks in their order.

        A bounded number of results waits at a time. Blocks go to threads where ``n_jobs`` asks for them and
        they pay, with one BLAS thread each.
        """
        per_row, per_pattern, product = workload or Workload(2 * self.n_features)
        if per_pattern is None:
            per_pattern = per_row * self.n_features // 2
        places = self._places(rows_in_cache(per_row), per_pattern)
        n_threads = min(effective_n_jobs(self.n_jobs), len(places)) if len(places) > 1 else 1
        if n_threads == 1:
            results = map(call, places)
            return contextlib.nullcontext(results if tracked is None else tracked(results, len(places)))
        is_large = (product or self.n_features) >= _LEAST_PRODUCT_FOR_THREADS
        return _threaded(call, places, n_threads if is_large else 1, tracked)

    def _of_block(self, function, along, place):
        """A function of the block at one place, and of the block's rows of what runs along."""
        block = self.block(place)
        return function(block) if along is None else function(block, along[block.index])

    def _put(self, function, out, place):
        """Put the results of a function of the block at one place, rows last, to its rows of ``out``."""
        block = self.block(place)
        out[block.index] = function(block).T

    def _written(self, function, out, place):
        """Have a function write the results of the block at one place."""
        block = self.block(place)
        if not self.has_missing:
            function(block, out=out[block.index])
            return
        part = np.empty((block.n_rows, *out.shape[1:]), out.dtype)
        function(block, out=part)
        out[block.index] = part


@contextlib.contextmanager
def _threaded(call, places, n_threads, tracked):
    """Context with an iterator over ``call(place)``, with one BLAS thread each.

    The products of a block are too small for threads of BLAS, which can take ten times as long.
    """
    with contextlib.ExitStack() as stack:
        stack.enter_context(blas_threads(1))
        results = map(call, places)
        if n_threads > 1:
            results = stack.enter_context(contextlib.closing(in_order(call, places, n_threads)))
        yield results if tracked is None else tracked(results, len(places))


def rows_of_array(X, origin, n_jobs=None, sample_weight=None, first=0, is_incomplete=None):
    """The rows of an array, whether or not values are missing: ArrayRows.

    Parameters
    ----------
    X, origin, n_jobs, sample_weight, first : as in `ArrayRows`
    is_incomplete : bool or None, default=None
        Whether values are missing; None where the caller does not know, so that X is searched.
    """
    if is_incomplete is None:
        is_incomplete = has_missing(X)
    return ArrayRows(X, origin, n_jobs, sample_weight, first, PatternOrder.of(X) if is_incomplete else None)


def has_missing(X):
    """Whether values of an array are missing."""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isnan(X.sum(dtype=np.float64)) and np.isnan(X).any())


def counted(X, sample_weight, has_missing):
    """Which rows count, as bool array or None for all; and their weights, or None for once each.

    Rows of weight zero do not count, nor do rows without any value.

    Parameters
    ----------
    X : array (n_rows, n_features) of float64 or float32
    sample_weight : float64 array (n_rows,), none of them negative; or None
    has_missing : bool, whether values may be missing
    """
    kept = ~np.isnan(X).all(axis=1) if has_missing else None
    if sample_weight is not None:
        kept = sample_weight > 0 if kept is None else kept & (sample_weight > 0)
    if kept is not None and kept.all():
        kept = None
    weights = sample_weight if sample_weight is None or kept is None else sample_weight[kept]
    return kept, None if weights is None or np.all(weights == 1) else weights
