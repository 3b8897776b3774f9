"""Rows of X in blocks: the only file that knows how X is stored and how blocks are scheduled.

A block is handed out centred, in float64 and feature-major, (n_features, n_rows): reductions over
rows then run along contiguous memory, and nothing of the size of X is ever copied. Blocks depend
on their size alone and come back in row order, so results depend on ``n_jobs`` by round-off at most.
"""

import collections
import functools
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
from joblib import effective_n_jobs
from scipy.linalg import solve_triangular
from threadpoolctl import ThreadpoolController

from sklearn_lrvb.symmetric_matrices import cholesky_factor

_BLOCK_BYTES = 2**20  # of the arrays that are made of one block: they stay in cache
_MIN_ROWS = 256  # below this, matrix products lose to their overhead
_MAX_ROWS = 2**14


_thread_pools = functools.cache(ThreadpoolController)  # finding the libraries takes a millisecond


def blas_threads(n_jobs):
    """Context in which BLAS uses as many threads as ``n_jobs`` asks for, in joblib's reading.

    BLAS threads of its own choosing slow small products down, and collapse on a busy machine.
    """
    return _thread_pools().limit(limits=effective_n_jobs(n_jobs), user_api="blas")


def openmp_threads(number):
    """Context in which OpenMP uses so many threads; as many as it likes where None."""
    return _thread_pools().limit(limits=number, user_api="openmp")


def rows_of_size(n_numbers, least=_MIN_ROWS):
    """Rows a block holds so that ``n_numbers`` for each stay in cache; at least ``least``."""
    return min(max(_BLOCK_BYTES // (8 * n_numbers), least), _MAX_ROWS)


def slices(n_rows, size):
    """Consecutive slices of at most ``size`` rows that cover ``range(n_rows)``."""
    return [slice(start, min(start + size, n_rows)) for start in range(0, n_rows, size)]


@dataclass(frozen=True)
class RowTotals:
    """Sums over all rows x = R v, each as often as it counts; nearly dependent columns lose no digits in v.

    Attributes
    ----------
    root : (n_features, n_features), R, lower triangular, with R R' the scatter of x but for round-off
    weight : float, of the rows
    sums : (n_features,), of v
    scatter : (n_features, n_features), of v v'
    """

    root: np.ndarray
    weight: float
    sums: np.ndarray
    scatter: np.ndarray

    def seen_through(self, whitener, center):
        """Sum of y y' with y = W (x - center): (P, P), (P,) -> (P, P)."""
        own_center = solve_triangular(self.root, center, lower=True)
        crossed = np.outer(self.sums, own_center)
        scatter = self.scatter - crossed - crossed.T + self.weight * np.outer(own_center, own_center)
        turn = whitener @ self.root
        return turn @ scatter @ turn.T


@dataclass(frozen=True)
class CentredRows:
    """X seen from ``origin``: everything inside is measured from there.

    Attributes
    ----------
    X : array of shape (n_samples, n_features), any float dtype; not copied
    origin : float64 array of shape (n_features,)
    n_jobs : int or None, threads over blocks, as in joblib
    weights : float64 array of shape (n_samples,), how often each row counts; None for once
    """

    X: np.ndarray
    origin: np.ndarray
    n_jobs: int | None = None
    weights: np.ndarray | None = None

    @classmethod
    def around_mean(cls, X, n_jobs=None, weights=None):
        """Centre X at its mean, accumulated in float64 block by block."""
        rows = cls(X, X[0].astype(np.float64), n_jobs, weights)
        # The second pass removes the rounding of the first one's sums.
        return rows._recentred()._recentred()

    def _recentred(self):
        sums = sum(self.map(lambda selected, block: self.weighted(block, selected).sum(axis=1)))
        return replace(self, origin=self.origin + sums / self.total_weight)

    @property
    def total_weight(self):
        """How many rows there are, counted by weight."""
        return self.n_samples if self.weights is None else float(self.weights.sum())

    def weighted(self, values, selected):
        """Values of selected rows (..., n) times how often these count."""
        return values if self.weights is None else values * self.weights[selected]

    @property
    def n_samples(self):
        return self.X.shape[0]

    @property
    def n_features(self):
        return self.X.shape[1]

    @functools.cached_property
    def totals(self):
        """`RowTotals`, from two passes at first need; None where the columns are dependent."""
        root = cholesky_factor(self._totals_through(np.eye(self.n_features))[1])
        if root is None:
            return None
        whitener = solve_triangular(root, np.eye(self.n_features), lower=True)
        return RowTotals(root, self.total_weight, *self._totals_through(whitener))

    def _totals_through(self, whitener):
        """Sums of v and of v v' with v = W x."""

        def one_block(selected, block):
            rows = whitener @ block
            weighted = self.weighted(rows, selected)
            return weighted.sum(axis=1), weighted @ rows.T

        sums = scatter = 0.0
        for block_sums, block_scatter in self.map(one_block):
            sums, scatter = sums + block_sums, scatter + block_scatter
        return sums, scatter

    def block(self, rows):
        """One centred block, (n_features, n_rows), C-contiguous float64."""
        centred = np.empty((self.n_features, rows.stop - rows.start))
        np.subtract(self.X[rows].T, self.origin[:, None], out=centred)
        return centred

    def map(self, function, block_rows=None):
        """Yield ``function(rows, block)`` for every block, in row order.

        Threads where ``n_jobs`` asks for them, then one BLAS thread each.
        """
        blocks = slices(self.n_samples, block_rows or rows_of_size(2 * self.n_features))

        def call(rows):
            return function(rows, self.block(rows))

        n_threads = min(effective_n_jobs(self.n_jobs), len(blocks))
        if n_threads == 1:
            yield from map(call, blocks)
            return
        with blas_threads(1):
            yield from _threaded(call, blocks, n_threads)


def _threaded(function, items, n_threads):
    """Results of ``function`` in the order of ``items``, few of them waiting at a time."""
    waiting = collections.deque()
    with ThreadPoolExecutor(n_threads) as pool:
        for item in items:
            waiting.append(pool.submit(function, item))
            if len(waiting) > 2 * n_threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
