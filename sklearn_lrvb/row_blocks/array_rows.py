"""The rows of an array, in memory or mapped from a file, complete or with missing values, as NaN.

Nothing of the size of the array is ever copied. Blocks depend on their size alone and come back in row order,
so results depend on ``n_jobs`` by round-off at most.

Passes go through rows with missing values in an order in which those of one pattern of holes follow each
other (`PatternOrder`); results are put back into the order of the rows. A block has complete rows alone, or
incomplete ones alone.
"""

import collections
import contextlib
import functools
from dataclasses import dataclass, replace

import numpy as np
from joblib import effective_n_jobs

from sklearn_lrvb.row_blocks.blocks import (
    PatternOrder,
    RowBlock,
    RowNumbers,
    added,
    rows_in_batch,
    rows_of_size,
    slices,
    sum_of_rows,
    sum_of_seen,
    untracked,
)
from sklearn_lrvb.row_blocks.centred_rows import CentredRows
from sklearn_lrvb.row_blocks.threads import blas_threads
from sklearn_lrvb.row_blocks.worker_threads import in_order

# Rows of the matrices that a function of a block multiplies, from which on blocks go to threads. With smaller
# ones a pass is made of NumPy calls of some 10 microseconds, between which threads wait for the interpreter.
# On two cores, sweeps of the fit took 1.3 to 2.7 times as long with two threads at 2 to 10 features, 0.9 to
# 1.3 times at 25, 0.7 to 1.2 times at 50 and 100 (1.0 or more on a busy machine), and 0.7 to 0.9 times at
# 200. Where the products are of second moments, as for leverage, it was 1.0 to 1.4 times at 10 features, and
# 0.5 to 0.7 times at 25.
_LEAST_PRODUCT_FOR_THREADS = 50
_BLOCKS_AT_ONCE = 16  # Blocks that a thread takes together, where there are many: it is told less often.


@dataclass(frozen=True)
class ArrayRows(CentredRows):
    """The rows of an array, measured from ``origin``.

    Attributes
    ----------
    X : array of shape (n_samples, n_features), any float dtype; not copied
    origin : float64 array of shape (n_features,)
    n_jobs : int or None, threads over blocks, as in joblib
    sample_weight : float64 array of shape (n_samples,), how often each row counts; None for once
    first : int, number of the first row, where these are a part of other rows
    """

    X: np.ndarray
    origin: np.ndarray
    n_jobs: int | None = None
    sample_weight: np.ndarray | None = None
    first: int = 0

    @classmethod
    def around_mean(cls, X, n_jobs=None, sample_weight=None):
        """Centre X at its mean, accumulated in float64 block by block."""
        rows = cls(X, np.nan_to_num(X[0].astype(np.float64)), n_jobs, sample_weight)
        # The second pass removes the rounding of the first one's sums.
        return rows._recentred()._recentred()

    def _recentred(self):
        return replace(self, origin=self.origin + self.means)

    @property
    def total_weight(self):
        return self.n_samples if self.sample_weight is None else float(self.sample_weight.sum())

    @property
    def n_samples(self):
        return self.X.shape[0]

    @property
    def n_features(self):
        return self.X.shape[1]

    @property
    def dtype(self):
        return self.X.dtype

    def ranges(self):
        return self.X.min(axis=0), self.X.max(axis=0)

    def selected(self, index, sample_weight=None):
        """Some of the rows, (n,) int array or slice, with weights of their own: ArrayRows."""
        return replace(self, X=self.X[index], sample_weight=sample_weight)

    def at(self, positions):
        if self.sample_weight is None:
            index = positions.astype(np.intp)
        else:
            index = np.searchsorted(np.cumsum(self.sample_weight), positions, side="right")
        index = np.minimum(index, self.n_samples - 1)
        return self.first + index, self.selected(index)

    def _numbers(self, place):
        """The rows in a slice of the order in which passes go through them, as an index of X."""
        return place

    def block(self, place):
        """The rows in one slice, as `RowBlock`."""
        centred = np.empty((self.n_features, place.stop - place.start))
        np.subtract(self.X[place].T, self.origin[:, None], out=centred)
        weights = None if self.sample_weight is None else self.sample_weight[place]
        return RowBlock(centred, weights, self.first + place.start)

    def blocks(self, bytes_each, tracked=untracked):
        """Yield blocks to the caller itself, as large as `batches` allows.

        For work that cannot go to where the rows are, because it makes passes over rows of its own.
        """
        places = self._places_of(rows_in_batch(bytes_each), RowNumbers(bytes_each // 8, of_pattern=0))
        return map(self.block, tracked(places, len(places)))

    def total(self, function, numbers_per_row=None, along=None, product_size=None):
        call = self._call(function, along)
        with contextlib.closing(
            self._over_runs(
                lambda run: functools.reduce(added, map(call, run)), numbers_per_row, product_size
            )
        ) as sums:
            return functools.reduce(added, sums)

    def gathered(self, function, numbers_per_row=None, product_size=None):
        return list(self.map(function, numbers_per_row, product_size))

    def each(self, function, shape=(), dtype=np.float64, tracked=untracked):
        return function(self, tracked=tracked)

    def map(self, function, numbers_per_row=None, product_size=None):
        """Yield ``function(block)`` for every block, in row order.

        A bounded number of results waits at a time. Blocks go to threads where ``n_jobs`` asks for them and
        they pay, with one BLAS thread each. Callers that may fail between two results close the generator:
        until then its threads wait, and BLAS has one.

        Parameters
        ----------
        function : callable
        numbers_per_row, product_size : as in `total`
        """
        return self._in_order(self._call(function), numbers_per_row, product_size)

    def _call(self, function, along=None):
        """A function of a place that applies one to the block there."""
        if along is None:
            return lambda place: function(self.block(place))
        return lambda place: function(self.block(place), along[self._numbers(place)])

    def concatenated(self, function, numbers_per_row=None, tracked=untracked, product_size=None):
        """The results of `map` as one array, rows first.

        Parameters
        ----------
        function : callable, whose results have the rows on their last axis
        numbers_per_row, product_size : as in `total`
        tracked : Tracked, through which the blocks are gone
        """
        n_blocks, whole, start = len(self._places(numbers_per_row)), None, 0
        with contextlib.closing(self.map(function, numbers_per_row, product_size)) as parts:
            for part in tracked(parts, n_blocks):
                if whole is None:
                    whole = np.empty((self.n_samples, *part.shape[:-1]), part.dtype)
                stop = start + part.shape[-1]
                whole[self._numbers(slice(start, stop))] = part.T
                start = stop
        return whole

    def write(self, function, out, numbers_per_row=None, tracked=untracked, product_size=None):
        """Call ``function(block, out=...)`` for every block, to fill its rows of ``out``.

        Parameters
        ----------
        function : callable, which writes an entry of ``out`` for every row of the block
        out : array (n_samples, ...), may be a memmap
        numbers_per_row, product_size : as in `map`
        tracked : as in `concatenated`
        """

        def written(place):
            self._write(function, place, out)

        n_blocks = len(self._places(numbers_per_row))
        with contextlib.closing(self._in_order(written, numbers_per_row, product_size)) as calls:
            collections.deque(tracked(calls, n_blocks), maxlen=0)

    def _write(self, function, place, out):
        """Have a function write the results of one block."""
        function(self.block(place), out=out[place])

    def _places(self, numbers_per_row):
        """Slices of all blocks."""
        numbers_per_row = numbers_per_row or 2 * self.n_features
        return self._places_of(rows_of_size(numbers_per_row), numbers_per_row)

    def _places_of(self, n_rows, numbers_per_row):
        """Slices of so many rows, of which each makes so many numbers."""
        del numbers_per_row
        return slices(self.n_samples, n_rows)

    def _in_order(self, call, numbers_per_row, product_size):
        """Yield ``call(place)`` for the places of all blocks."""
        with contextlib.closing(
            self._over_runs(lambda run: list(map(call, run)), numbers_per_row, product_size)
        ) as lists:
            for results in lists:
                yield from results

    def _over_runs(self, call, numbers_per_row, product_size):
        """Yield ``call(places)`` for runs of the places of consecutive blocks; one by one on one thread."""
        places = self._places(numbers_per_row)
        n_threads = min(effective_n_jobs(self.n_jobs), len(places)) if len(places) > 1 else 1
        if n_threads == 1:
            yield from (call([place]) for place in places)
            return
        # The products of a block are too small for threads of BLAS, which can take ten times as long.
        with blas_threads(1):
            if (product_size or self.n_features) < _LEAST_PRODUCT_FOR_THREADS:
                yield from (call([place]) for place in places)
                return
            at_once = max(1, min(_BLOCKS_AT_ONCE, len(places) // (4 * n_threads)))
            yield from in_order(call, [places[run] for run in slices(len(places), at_once)], n_threads)


@dataclass(frozen=True)
class HoledRows(ArrayRows):
    """The rows of an array with holes, measured from ``origin``.

    Attributes
    ----------
    patterns : PatternOrder of X
    """

    patterns: PatternOrder | None = None
    has_holes = True

    def __post_init__(self):
        if self.patterns is None:
            object.__setattr__(self, "patterns", PatternOrder.of(self.X))

    @property
    def n_patterns(self):
        return len(self.patterns.hidden)

    def ranges(self):
        smallest = np.fmin.reduce(self.X, axis=0, initial=np.inf)
        return smallest, np.fmax.reduce(self.X, axis=0, initial=-np.inf)

    @functools.cached_property
    def seen_weight(self):
        return self.total(sum_of_seen)

    @property
    def means(self):
        sums, seen = self.total(sum_of_rows), self.seen_weight
        return np.divide(sums, seen, out=np.zeros_like(sums), where=seen > 0)

    def selected(self, index, sample_weight=None):
        return rows_of_array(self.X[index], self.origin, self.n_jobs, sample_weight, self.first)

    def block(self, place):
        """The rows in one slice of the order, as `RowBlock`."""
        numbers, holes = self._numbers(place), self.patterns.holes(place)
        centred = np.empty((self.n_features, len(numbers)))
        np.subtract(self.X[numbers].T, self.origin[:, None], out=centred)
        if holes is not None:
            centred[holes.by_row(holes.hidden.T)] = 0.0
        weights = None if self.sample_weight is None else self.sample_weight[numbers]
        return RowBlock(centred, weights, self.first + place.start, self.first + numbers, holes)

    def _numbers(self, place):
        return self.patterns.order[place]

    def _write(self, function, place, out):
        numbers = self._numbers(place)
        part = np.empty((len(numbers), *out.shape[1:]), out.dtype)
        function(self.block(place), out=part)
        out[numbers] = part

    def _places_of(self, n_rows, numbers_per_row):
        # By default, what belongs to a pattern has up to half as many numbers for every feature as a row.
        of_pattern = getattr(numbers_per_row, "of_pattern", numbers_per_row * self.n_features // 2)
        n_patterns = rows_in_batch(8 * of_pattern) if of_pattern else n_rows
        return self.patterns.places(n_rows, n_patterns)


def rows_of_array(X, origin, n_jobs=None, sample_weight=None, first=0, holes_known=None):
    """The rows of an array, of the class that fits: ArrayRows.

    Parameters
    ----------
    X, origin, n_jobs, sample_weight, first : as in `ArrayRows`
    holes_known : bool or None, default=None
        Whether values are missing; None where that is not known.
    """
    kind = HoledRows if (has_holes(X) if holes_known is None else holes_known) else ArrayRows
    return kind(X, origin, n_jobs, sample_weight, first)


def rows_around_mean(X, n_jobs=None, sample_weight=None):
    """As `rows_of_array`, measured from the mean of the values in every column."""
    kind = HoledRows if has_holes(X) else ArrayRows
    return kind.around_mean(X, n_jobs, sample_weight)


def has_holes(X):
    """Whether values of an array are missing."""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isnan(X.sum(dtype=np.float64)) and np.isnan(X).any())
