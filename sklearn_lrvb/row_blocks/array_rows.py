"""The rows of an array, in memory or mapped from a file.

Nothing of the size of the array is ever copied. Blocks depend on their size alone and come back in row order,
so results depend on ``n_jobs`` by round-off at most.
"""

import collections
import contextlib
import functools
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
from joblib import effective_n_jobs

from sklearn_lrvb.row_blocks.blocks import (
    RowBlock,
    added,
    batches,
    rows_of_size,
    slices,
    sum_of_rows,
    untracked,
)
from sklearn_lrvb.row_blocks.centred_rows import CentredRows
from sklearn_lrvb.row_blocks.threads import blas_threads


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
        rows = cls(X, X[0].astype(np.float64), n_jobs, sample_weight)
        # The second pass removes the rounding of the first one's sums.
        return rows._recentred()._recentred()

    def _recentred(self):
        return replace(self, origin=self.origin + self.total(sum_of_rows) / self.total_weight)

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
        places = batches(self.n_samples, bytes_each)
        return map(self.block, tracked(places, len(places)))

    def total(self, function, numbers_per_row=None, along=None):
        return functools.reduce(added, self.map(function, numbers_per_row, along))

    def gathered(self, function, numbers_per_row=None):
        return list(self.map(function, numbers_per_row))

    def each(self, function, shape=(), dtype=np.float64, tracked=untracked):
        return function(self, tracked=tracked)

    def map(self, function, numbers_per_row=None, along=None):
        """Yield ``function(block)`` for every block, in row order.

        A bounded number of results waits at a time. Blocks go to threads where ``n_jobs`` asks for them, with
        one BLAS thread each. Callers that may fail between two results close the generator: until then its
        threads wait, and BLAS has one.

        Parameters
        ----------
        function : callable
        numbers_per_row, along : as in `total`
        """
        if along is None:
            return self._in_order(lambda place: function(self.block(place)), numbers_per_row)
        return self._in_order(lambda place: function(self.block(place), along[place]), numbers_per_row)

    def concatenated(self, function, numbers_per_row=None, tracked=untracked):
        """The results of `map` as one array, rows first.

        Parameters
        ----------
        function : callable, whose results have the rows on their last axis
        numbers_per_row : as in `total`
        tracked : Tracked, through which the blocks are gone
        """
        n_blocks, whole, start = len(self._places(numbers_per_row)), None, 0
        with contextlib.closing(self.map(function, numbers_per_row)) as parts:
            for part in tracked(parts, n_blocks):
                if whole is None:
                    whole = np.empty((self.n_samples, *part.shape[:-1]), part.dtype)
                stop = start + part.shape[-1]
                whole[start:stop] = part.T
                start = stop
        return whole

    def write(self, function, out, numbers_per_row=None, tracked=untracked):
        """Call ``function(block, out=...)`` for every block, to fill its rows of ``out``.

        Parameters
        ----------
        function : callable, which writes an entry of ``out`` for every row of the block
        out : array (n_samples, ...), may be a memmap
        numbers_per_row : as in `map`
        tracked : as in `concatenated`
        """

        def written(place):
            return function(self.block(place), out=out[place])

        n_blocks = len(self._places(numbers_per_row))
        with contextlib.closing(self._in_order(written, numbers_per_row)) as calls:
            collections.deque(tracked(calls, n_blocks), maxlen=0)

    def _places(self, numbers_per_row):
        """Slices of all blocks."""
        return slices(self.n_samples, rows_of_size(numbers_per_row or 2 * self.n_features))

    def _in_order(self, call, numbers_per_row):
        """Yield ``call(place)`` for the places of all blocks."""
        places = self._places(numbers_per_row)
        n_threads = min(effective_n_jobs(self.n_jobs), len(places))
        if n_threads == 1:
            yield from map(call, places)
            return
        with blas_threads(1):
            yield from _threaded(call, places, n_threads)


def _threaded(function, items, n_threads):
    """Results of ``function`` in the order of ``items``, few of them waiting at a time.

    After an error or an interrupt the items at work are waited for, and those that wait are dropped.
    """
    waiting = collections.deque()
    pool = ThreadPoolExecutor(n_threads)
    try:
        for item in items:
            waiting.append(pool.submit(function, item))
            if len(waiting) > 2 * n_threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)
