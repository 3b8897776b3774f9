"""Blocks of rows: how large they are, what a function of a block gets, and how results are added up.

A block is centred, in float64 and feature-major, (n_features, n_rows): reductions over rows then run along
contiguous memory.

Rows with missing values go by in an order in which those of one pattern of missing values follow each other
(`PatternOrder`). What has to be computed for a pattern is then computed once or twice in a pass, however many
rows have it.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

# The arrays that a function makes of one block take this much at most, so that they stay in cache ...
_BLOCK_BYTES = 2**20
# ... unless that leaves fewer rows than this: matrix products of fewer lose more to their overhead.
_MIN_ROWS = 512
_MAX_ROWS = 2**14  # More rows gain nothing, and would leave threads without work.
_BATCH_BYTES = 2**25  # memory for work that is done in batches (`batches`)


# A callable (items, number of items) -> the same items, which notices how many of them are done. The number
# is a callable where it may rise.
Tracked = Callable[[Iterable, int | Callable[[], int]], Iterable]


def untracked(items, n_items):
    """The items, while nobody wants to know how many of them are done."""
    return items


def slices(n, size):
    """Consecutive slices of at most ``size`` items that cover ``range(n)``."""
    starts = range(0, n, size)
    return list(map(slice, starts, [*starts[1:], n]))


def batches(n, bytes_each):
    """Consecutive slices that cover ``range(n)``, each of so many items as fit into 32 MiB; at least one.

    This is the one rule for work whose temporary arrays would not fit into memory for all items at once.

    Parameters
    ----------
    n : int, number of items
    bytes_each : int, temporary memory for one item
    """
    return slices(n, rows_in_batch(bytes_each))


def rows_in_batch(bytes_each):
    """Number of items in one of the `batches`."""
    return max(1, _BATCH_BYTES // max(1, bytes_each))


class Workload(NamedTuple):
    """How much a function makes of a block, at its largest: by this, blocks are cut and go to threads.

    Attributes
    ----------
    per_row : int, float64 numbers that it makes of a row
    per_pattern : int, those of a pattern of missing values; None: per_row * n_features // 2
    product : int, rows of the matrices whose products take most of its time; None for the number of features
    """

    per_row: int
    per_pattern: int | None = None
    product: int | None = None


def rows_in_cache(numbers_per_row, least=None):
    """Rows in a block that stays in cache with so many float64 numbers a row; at least ``least``."""
    least = _MIN_ROWS if least is None else least
    return min(max(_BLOCK_BYTES // (8 * numbers_per_row), least), _MAX_ROWS)


@dataclass(frozen=True)
class MissingValues:
    """The missing values of a block's rows, which are ordered by their patterns.

    Attributes
    ----------
    is_missing : bool (g, n_features), the different patterns: which values are not there
    pattern : int array (n_rows,), ascending, the pattern of every row; every pattern has rows
    """

    is_missing: np.ndarray
    pattern: np.ndarray

    @property
    def starts(self):
        """The first row of every pattern, int array (g,)."""
        return np.searchsorted(self.pattern, np.arange(len(self.is_missing)))

    @property
    def lengths(self):
        """Number of rows of every pattern, int array (g,)."""
        return np.bincount(self.pattern, minlength=len(self.is_missing))

    def by_row(self, values):
        """What belongs to the patterns, for every row: (..., g) -> (..., n_rows)."""
        return np.repeat(values, self.lengths, axis=-1)

    def sums(self, values):
        """Sums over the rows of every pattern: (..., n_rows) -> (..., g)."""
        return np.add.reduceat(values, self.starts, axis=-1)

    def selected(self, index):
        """The missing values of some of the rows, ascending int array."""
        used, pattern = np.unique(self.pattern[index], return_inverse=True)
        return MissingValues(self.is_missing[used], pattern)


@dataclass(eq=False)
class RowBlock:
    """Some consecutive rows, and all that belongs to them.

    Attributes
    ----------
    rows : float64 array of shape (n_features, n_rows), C-contiguous, measured from the origin
    sample_weight : float64 array of shape (n_rows,), how often each row counts; None for once
    start : int, place of the first row in the order in which passes go through all rows
    order : int array of shape (n_rows,), numbers of the rows, where that is not their order; else None
    missing : MissingValues, which are zero in ``rows``; None where all values are there
    index : slice or int array, where the rows are in the array that they are taken from
    with_one : (1 + n_features, n_rows), the rows after a row of ones; None to make it
    """

    rows: np.ndarray
    sample_weight: np.ndarray | None = None
    start: int = 0
    order: np.ndarray | None = None
    missing: MissingValues | None = None
    index: slice | np.ndarray | None = None
    with_one: np.ndarray | None = None

    def __post_init__(self):
        self.n_rows = self.rows.shape[1]
        if self.with_one is None:
            self.with_one = np.concatenate([np.ones((1, self.n_rows)), self.rows])
        self.stop = self.start + self.n_rows  # place of the last row, plus one

    @property
    def numbers(self):
        """Numbers of the rows among all rows, int array (n_rows,)."""
        return np.arange(self.start, self.stop) if self.order is None else self.order

    @property
    def seen(self):
        """Which values are there, as ones and zeros, (n_features, n_rows)."""
        return (
            np.ones_like(self.rows)
            if self.missing is None
            else 1.0 - self.missing.by_row(self.missing.is_missing.T)
        )

    @property
    def without_value(self):
        """Places of the rows without any value, int array: they do not count."""
        if self.missing is not None:
            return np.flatnonzero(self.missing.by_row(self.missing.is_missing.all(axis=1)))
        some = np.flatnonzero(np.isnan(self.rows[0]))  # Rows of tables keep NaN.
        return some[np.isnan(self.rows[:, some]).all(axis=0)]

    @property
    def counts(self):
        """How often each row counts, (n_rows,)."""
        return np.ones(self.n_rows) if self.sample_weight is None else self.sample_weight

    def selected(self, index):
        """Some of the rows, ascending int array."""
        weights = None if self.sample_weight is None else self.sample_weight[index]
        missing = None if self.missing is None else self.missing.selected(index)
        return RowBlock(self.rows[:, index], weights, 0, self.numbers[index], missing)

    def weighted(self, values):
        """Values of the rows (..., n_rows) times how often these count."""
        return values if self.sample_weight is None else values * self.sample_weight


def added(total, part):
    """Sum of the results of a function for two blocks; ``total`` is used up.

    Parameters
    ----------
    total, part : arrays, numbers, objects with ``+``, or None for nothing; or tuples or lists of these
    """
    if total is None or part is None:
        return part if total is None else total
    if isinstance(total, (tuple, list)):
        return type(total)(added(*both) for both in zip(total, part, strict=True))
    if isinstance(total, np.ndarray) and total.dtype == np.result_type(total, part):
        total += part
        return total
    return total + part


def sum_of_rows(block):
    """Sum of the rows' values that are there, each as often as it counts, (n_features,)."""
    return block.weighted(block.rows).sum(axis=1)


def sum_of_squares(block):
    """Sum of the squares of the rows' values, each row as often as it counts, (n_features,)."""
    return block.weighted(np.square(block.rows)).sum(axis=1)


def sum_of_seen(block):
    """How often every feature was seen, (n_features,)."""
    return block.weighted(block.seen).sum(axis=1)


@dataclass(frozen=True)
class PatternOrder:
    """An order of rows: complete ones first, then by number of missing values, those of one pattern together.

    Attributes
    ----------
    order : int array (n_rows,), numbers of the rows
    is_missing : bool (g, n_features), the different patterns of incomplete rows
    starts : int array (g + 1,), the place where the rows of every pattern begin, and the number of rows
    """

    order: np.ndarray
    is_missing: np.ndarray
    starts: np.ndarray

    @classmethod
    def of(cls, X):
        """The order of the rows of an array, (n_rows, n_features) with NaN where a value is not there."""
        is_missing = np.isnan(X)
        n_missing = is_missing.sum(axis=1)
        incomplete = np.flatnonzero(n_missing)
        is_missing, n_missing = is_missing[incomplete], n_missing[incomplete]
        _, first, pattern = np.unique(_keys(is_missing), return_index=True, return_inverse=True)
        by_missing_values = np.argsort(n_missing[first], kind="stable")
        place = np.empty_like(by_missing_values)
        place[by_missing_values] = np.arange(len(by_missing_values))
        pattern = place[pattern.ravel()]
        complete = np.setdiff1d(np.arange(len(X)), incomplete, assume_unique=True)
        lengths = np.bincount(pattern, minlength=len(first))
        return cls(
            np.concatenate([complete, incomplete[np.argsort(pattern, kind="stable")]]),
            is_missing[first[by_missing_values]],
            len(complete) + np.concatenate([[0], np.cumsum(lengths)]),
        )

    @property
    def n_complete(self):
        """Number of rows without missing values."""
        return int(self.starts[0])

    def places(self, rows_at_once, patterns_at_once):
        """Slices of the order, of complete rows or of incomplete ones, with so many rows and patterns."""
        n_rows, places = len(self.order), []
        for start in range(0, self.n_complete, rows_at_once):
            places.append(slice(start, min(start + rows_at_once, self.n_complete)))
        start = self.n_complete
        while start < n_rows:
            last = min(self._pattern_at(start) + patterns_at_once, len(self.is_missing))
            stop = min(start + rows_at_once, int(self.starts[last]))
            places.append(slice(start, stop))
            start = stop
        return places

    def _pattern_at(self, place):
        return int(np.searchsorted(self.starts, place, side="right")) - 1

    def missing(self, place):
        """`MissingValues` of the rows in a slice of the order; None where they are complete."""
        if place.start < self.n_complete:
            return None
        first, last = self._pattern_at(place.start), self._pattern_at(place.stop - 1)
        ends = np.clip(self.starts[first : last + 2], place.start, place.stop)
        return MissingValues(
            self.is_missing[first : last + 1], np.repeat(np.arange(last + 1 - first), np.diff(ends))
        )


def _keys(is_missing):
    """Numbers that are equal for equal patterns: bool (n, n_features) -> (n,)."""
    n_features = is_missing.shape[1]
    if n_features < 64:  # Integers are sorted faster than bytes.
        return is_missing @ (1 << np.arange(n_features))
    bits = np.packbits(is_missing, axis=1)
    return bits.view(f"V{bits.shape[1]}").ravel()
