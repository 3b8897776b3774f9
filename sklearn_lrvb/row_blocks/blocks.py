"""Blocks of rows, how many rows they have, and the progress through them.

A block is centred, in float64 and feature-major, (n_features, n_rows): reductions over rows then run along
contiguous memory.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

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
    """Sum of the rows, each as often as it counts, (n_features,)."""
    return block.weighted(block.rows).sum(axis=1)
