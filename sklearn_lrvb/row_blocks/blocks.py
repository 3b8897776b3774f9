"""Blocks of rows, how many rows they have, and the progress through them.

A block is centred, in float64 and feature-major, (n_features, n_rows): reductions over rows then run along
contiguous memory.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from sklearn_lrvb.row_blocks.holes import Holes

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
    return slices(n, rows_in_batch(bytes_each))


def rows_in_batch(bytes_each):
    """Number of items in one of the `batches`."""
    return max(1, _BATCH_BYTES // bytes_each)


class RowNumbers(int):
    """How many float64 numbers a function makes of a row; and, as an attribute, of a pattern of holes.

    Parameters
    ----------
    of_row, of_pattern : int
    """

    def __new__(cls, of_row, of_pattern):
        numbers = super().__new__(cls, of_row)
        numbers.of_pattern = of_pattern
        return numbers

    def __getnewargs__(self):
        return int(self), self.of_pattern


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
    start : int, place of the first row in the order in which passes go through all rows
    order : int array of shape (n_rows,), numbers of the rows, where that is not their order; else None
    holes : Holes, the values that are not there, which are zero in ``rows``; None where all are there
    """

    rows: np.ndarray
    sample_weight: np.ndarray | None = None
    start: int = 0
    order: np.ndarray | None = None
    holes: Holes | None = None

    @property
    def n_rows(self):
        return self.rows.shape[1]

    @property
    def stop(self):
        """Place of the last row, plus one."""
        return self.start + self.n_rows

    @property
    def numbers(self):
        """Numbers of the rows among all rows, int array (n_rows,)."""
        return np.arange(self.start, self.stop) if self.order is None else self.order

    @property
    def seen(self):
        """Which values are there, as ones and zeros, (n_features, n_rows)."""
        return np.ones_like(self.rows) if self.holes is None else 1.0 - self.holes.by_row(self.holes.hidden.T)

    @property
    def counts(self):
        """How often each row counts, (n_rows,)."""
        return np.ones(self.n_rows) if self.sample_weight is None else self.sample_weight

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
    if isinstance(total, np.ndarray):
        total += part
        return total
    return total + part


def sum_of_rows(block):
    """Sum of the rows' values that are there, each as often as it counts, (n_features,)."""
    return block.weighted(block.rows).sum(axis=1)


def sum_of_seen(block):
    """How often every feature was seen, (n_features,)."""
    return block.weighted(block.seen).sum(axis=1)
