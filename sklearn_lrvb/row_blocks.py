"""Passes over the rows of X, as two verbs. No other file knows how X is stored or how blocks are scheduled.

* A *total* adds up the small results of a function over blocks of rows (`CentredRows.total`).
* A *map* collects results that have a row each (`CentredRows.map`, `CentredRows.concatenated`, and
  `CentredRows.write` for results that go straight into a given array).

The functions are pure and can be pickled without the rows: functions of a module, `functools.partial` of
these over picklable arguments, or objects with ``__call__``; never closures over rows. They get everything
that belongs to some rows from the `RowBlock`. How many rows a block has is decided here alone: a caller says
how many numbers its function makes of a row.

A block is centred, in float64 and feature-major, (n_features, n_rows): reductions over rows then run along
contiguous memory, and nothing of the size of X is ever copied. Blocks depend on their size alone and come
back in row order, so results depend on ``n_jobs`` by round-off at most.
"""

import collections
import contextlib
import functools
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
from joblib import effective_n_jobs
from scipy.linalg import solve_triangular
from threadpoolctl import ThreadpoolController

from sklearn_lrvb.symmetric_matrices import cholesky_factor

# The arrays that a function makes of one block take this much at most, so that they stay in cache ...
_BLOCK_BYTES = 2**20
# ... unless that leaves fewer rows than this: matrix products of fewer lose more to their overhead.
_MIN_ROWS = 512
_MAX_ROWS = 2**14  # More rows gain nothing, and would leave threads without work.
_BATCH_BYTES = 2**25  # memory for work that is done in batches (`batches`)


# A callable (items, number of items) -> the same items, which notices how many of them are done.
Tracked = Callable[[Iterable, int], Iterable]


def untracked(items, n_items):
    """The items, while nobody wants to know how many of them are done."""
    return items


_thread_pools = functools.cache(ThreadpoolController)  # Finding the libraries takes a millisecond.


def blas_threads(n_jobs):
    """Context in which BLAS uses as many threads as ``n_jobs`` asks for, in joblib's reading.

    Left to itself, BLAS slows small products down by its threads, and collapses on a busy machine.
    """
    return _threads(effective_n_jobs(n_jobs), "blas")


def openmp_threads(number):
    """Context in which OpenMP uses so many threads; as many as it likes where None."""
    return contextlib.nullcontext() if number is None else _threads(number, "openmp")


@contextlib.contextmanager
def _threads(number, user_api):
    """Context in which some libraries use so many threads.

    Unlike threadpoolctl's own context, which changes the numbers before it is entered, it restores them after
    an interrupt at any point, also at one while they are changed or restored.
    """
    pools = [pool for pool in _thread_pools().lib_controllers if pool.user_api == user_api]
    changed = [(pool, pool.num_threads) for pool in pools if pool.num_threads != number]
    try:
        for pool, _ in changed:
            pool.set_num_threads(number)
        yield
    finally:
        try:
            _restore(changed)
        except BaseException:
            _restore(changed)
            raise


def _restore(changed):
    """Give thread pools their numbers of threads: list of (pool, number)."""
    for pool, number in changed:
        pool.set_num_threads(number)


def slices(n, size):
    """Consecutive slices of at most ``size`` items that cover ``range(n)``."""
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def batches(n, bytes_each):
    """Consecutive slices that cover ``range(n)``, each of so many items as fit into 32 MiB; at least one.

    This is the one rule for work whose temporary arrays would not fit into memory for all items at once.

    Parameters
    ----------
    n : int, number of items
    bytes_each : int, temporary memory for one item
    """
    return slices(n, max(1, _BATCH_BYTES // bytes_each))


def rows_of_size(numbers_per_row, least=None):
    """Rows in a block that stays in cache with so many float64 numbers a row; at least ``least``."""
    least = _MIN_ROWS if least is None else least
    return min(max(_BLOCK_BYTES // (8 * numbers_per_row), least), _MAX_ROWS)


@dataclass(frozen=True)
class RowBlock:
    """Some consecutive rows, and all that belongs to them.

    Attributes
    ----------
    rows : float64 array of shape (n_features, n_rows), C-contiguous, measured from the origin
    sample_weight : float64 array of shape (n_rows,), how often each row counts; None for once
    start : int, number of the first row among all rows
    """

    rows: np.ndarray
    sample_weight: np.ndarray | None = None
    start: int = 0

    @property
    def n_rows(self):
        return self.rows.shape[1]

    @property
    def stop(self):
        """Number of the last row among all rows, plus one."""
        return self.start + self.n_rows

    @property
    def counts(self):
        """How often each row counts, (n_rows,)."""
        return np.ones(self.n_rows) if self.sample_weight is None else self.sample_weight

    def weighted(self, values):
        """Values of the rows (..., n_rows) times how often these count."""
        return values if self.sample_weight is None else values * self.sample_weight


@dataclass(frozen=True)
class TotalScatter:
    """Second moments of all rows x = R v, each as often as it counts.

    They are kept as moments of v, in which nearly dependent columns of X lose no digits.

    Attributes
    ----------
    root : (n_features, n_features), R, lower triangular, with R R' the scatter of x up to round-off
    total_weight : float, how many rows there are
    sums : (n_features,), sum of v
    scatter : (n_features, n_features), sum of v v'
    """

    root: np.ndarray
    total_weight: float
    sums: np.ndarray
    scatter: np.ndarray

    def whitened(self, whitener, center):
        """Sum of y y' with y = W (x - center): (P, P), (P,) -> (P, P)."""
        own_center = solve_triangular(self.root, center, lower=True)
        crossed = np.outer(self.sums, own_center)
        about_center = (
            self.scatter - crossed - crossed.T + self.total_weight * np.outer(own_center, own_center)
        )
        turn = whitener @ self.root
        return turn @ about_center @ turn.T


@dataclass(frozen=True)
class CentredRows:
    """The rows of X, measured from ``origin``: so is everything that is computed from them.

    Attributes
    ----------
    X : array of shape (n_samples, n_features), any float dtype; not copied
    origin : float64 array of shape (n_features,)
    n_jobs : int or None, threads over blocks, as in joblib
    sample_weight : float64 array of shape (n_samples,), how often each row counts; None for once
    """

    X: np.ndarray
    origin: np.ndarray
    n_jobs: int | None = None
    sample_weight: np.ndarray | None = None

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
        """How many rows there are, each as often as it counts."""
        return self.n_samples if self.sample_weight is None else float(self.sample_weight.sum())

    @property
    def n_samples(self):
        return self.X.shape[0]

    @property
    def n_features(self):
        return self.X.shape[1]

    @functools.cached_property
    def variances(self):
        """Variances of the columns around the origin, (n_features,): by a pass at first need."""
        return self.total(_sum_of_squares) / self.total_weight

    @functools.cached_property
    def total_scatter(self):
        """`TotalScatter`, by two passes at first need; None where the columns are dependent."""
        root = cholesky_factor(self._moments_through(np.eye(self.n_features))[1])
        if root is None:
            return None
        whitener = solve_triangular(root, np.eye(self.n_features), lower=True)
        return TotalScatter(root, self.total_weight, *self._moments_through(whitener))

    def _moments_through(self, whitener):
        """Sums of v and of v v' with v = W x."""
        return self.total(functools.partial(_moments_of_block, whitener))

    def selected(self, index, sample_weight=None):
        """Some of the rows, (n,) int array or slice, with weights of their own: CentredRows."""
        return replace(self, X=self.X[index], sample_weight=sample_weight)

    def block(self, place):
        """The rows in one slice, as `RowBlock`."""
        centred = np.empty((self.n_features, place.stop - place.start))
        np.subtract(self.X[place].T, self.origin[:, None], out=centred)
        weights = None if self.sample_weight is None else self.sample_weight[place]
        return RowBlock(centred, weights, place.start)

    def blocks(self, bytes_each, tracked=untracked):
        """Yield blocks to the caller itself, as large as `batches` allows.

        For work that cannot go to where the rows are, because it makes passes over rows of its own.
        """
        places = batches(self.n_samples, bytes_each)
        return map(self.block, tracked(places, len(places)))

    # The two verbs.

    def total(self, function, numbers_per_row=None, along=None):
        """Sum of ``function(block)`` over all blocks.

        Parameters
        ----------
        function : callable
            Its results are arrays, numbers, objects with ``+``, or None for nothing to add; or tuples or
            lists of these. Arrays are added into, so they must be the function's own.
        numbers_per_row, along : as in `map`
        """
        return functools.reduce(_added, self.map(function, numbers_per_row, along))

    def map(self, function, numbers_per_row=None, along=None):
        """Yield ``function(block)`` for every block, in row order.

        A bounded number of results waits at a time. Blocks go to threads where ``n_jobs`` asks for them, with
        one BLAS thread each. Callers that may fail between two results close the generator: until then its
        threads wait, and BLAS has one.

        Parameters
        ----------
        function : callable
        numbers_per_row : int
            How many float64 numbers the function makes of a row, at its largest; by default twice the row.
        along : array or sparse array with a row for every row of X
            The function then gets its block's rows of it as second argument.
        """
        if along is None:
            return self._in_order(lambda place: function(self.block(place)), numbers_per_row)
        return self._in_order(lambda place: function(self.block(place), along[place]), numbers_per_row)

    def concatenated(self, function, numbers_per_row=None, tracked=untracked):
        """The results of `map` as one array, whose last axis runs over the rows.

        Parameters
        ----------
        function, numbers_per_row : as in `map`
        tracked : Tracked, through which the blocks are gone
        """
        n_blocks = len(self._places(numbers_per_row))
        with contextlib.closing(self.map(function, numbers_per_row)) as parts:
            return np.concatenate(list(tracked(parts, n_blocks)), axis=-1)

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


def _added(total, part):
    """Sum of two results of a function of blocks (`CentredRows.total`); ``total`` is used up."""
    if total is None or part is None:
        return part if total is None else total
    if isinstance(total, (tuple, list)):
        return type(total)(_added(*both) for both in zip(total, part, strict=True))
    if isinstance(total, np.ndarray):
        total += part
        return total
    return total + part


# Functions of a block.


def sum_of_rows(block):
    """Sum of the rows, each as often as it counts, (n_features,)."""
    return block.weighted(block.rows).sum(axis=1)


def _sum_of_squares(block):
    """Sum of the squares of the rows' features, each row as often as it counts, (n_features,)."""
    return block.weighted(np.square(block.rows)).sum(axis=1)


def _moments_of_block(whitener, block):
    """Sums of v and of v v' with v = W x."""
    rows = whitener @ block.rows
    weighted = block.weighted(rows)
    return weighted.sum(axis=1), weighted @ rows.T
