"""Rows measured from an origin, wherever they are: what every pass over them is made of.

All that is computed from rows is one of three verbs.

* A *total* adds up the small results of a function of a block of rows (`CentredRows.total`).
* *Gathered* results are brought together from all blocks: few of them, such as ambiguous rows alone.
* A result with a row for *each* row is computed where the rows are (`CentredRows.each`).

The functions are pure and can be pickled without the rows: functions of a module, `functools.partial` of
these over picklable arguments, or objects with ``__call__``; never closures over rows. They get everything
that belongs to some rows from the `RowBlock`. How many rows a block has is decided in this folder alone: a
caller says how many numbers its function makes of a row.

`array_rows` has the rows of an array, `parts` those of a source of batches, and `dask_rows` those of a Dask
collection, which share `PartedRows`.
"""

import functools
from abc import ABC, abstractmethod

import numpy as np

from sklearn_lrvb.row_blocks.blocks import sum_of_rows, untracked


class CentredRows(ABC):
    """Rows of X, measured from ``origin``: so is everything that is computed from them.

    Rows of weight zero are no part of them.

    Attributes
    ----------
    origin : float64 array of shape (n_features,)
    n_samples, n_features : int
    total_weight : float, how many rows there are, each as often as it counts
    dtype : numpy.dtype, float64 or float32, in which X is stored
    n_jobs : int or None, threads over blocks, as in joblib
    """

    is_in_memory = True  # Whether they are an array, in memory or mapped from a file.
    is_lazy = False  # Whether results with a row for each row are computed later, where the rows are.
    has_holes = False  # Whether values are missing. In blocks they are zero, and the block says where.

    @property
    @abstractmethod
    def n_samples(self):
        """Number of rows."""

    @property
    @abstractmethod
    def n_features(self):
        """Number of columns."""

    @property
    @abstractmethod
    def total_weight(self):
        """How many rows there are, each as often as it counts."""

    @property
    @abstractmethod
    def dtype(self):
        """The type in which X is stored."""

    @abstractmethod
    def total(self, function, numbers_per_row=None, along=None, product_size=None):
        """Sum of ``function(block)`` over all blocks.

        Parameters
        ----------
        function : callable
            Its results are arrays, numbers, objects with ``+``, or None for nothing to add; or tuples or
            lists of these. Arrays are added into, so they must be the function's own.
        numbers_per_row : int or RowNumbers
            How many float64 numbers the function makes of a row, at its largest; by default twice the row.
        along : array or sparse array with a row for every row
            The function then gets its block's rows of it as second argument.
        product_size : int
            Rows of the matrices whose products take most of the function's time; by default the number of
            features. Blocks go to threads where it is large.
        """

    @abstractmethod
    def gathered(self, function, numbers_per_row=None, product_size=None):
        """``function(block)`` of all blocks in row order, as a list.

        Parameters
        ----------
        function : callable, whose results are small together
        numbers_per_row, product_size : as in `total`
        """

    @abstractmethod
    def each(self, function, shape=(), dtype=np.float64, tracked=untracked):
        """Results that have a row for every row, rows first.

        Parameters
        ----------
        function : callable (ArrayRows, tracked=...) -> array (n_rows, *shape)
        shape : tuple of int
        dtype : of the results
        tracked : Tracked, through which the blocks are gone, where the results are computed at once
        """

    @abstractmethod
    def at(self, positions):
        """The rows at some positions along the line on which every row is as long as it counts.

        Parameters
        ----------
        positions : float array (n,), ascending, at least zero and below ``total_weight``

        Returns
        -------
        index : int array (n,), the numbers of the rows
        rows : ArrayRows, of weight one
        """

    @abstractmethod
    def ranges(self):
        """Smallest and largest value of every column, (n_features,) each."""

    @functools.cached_property
    def variances(self):
        """Variances of the columns around the origin, (n_features,): by a pass at first need."""
        return self.total(_sum_of_squares) / self.seen_weight

    @property
    def seen_weight(self):
        """How many rows have a value in a column, each as often as it counts: float, or (n_features,)."""
        return self.total_weight

    @property
    def n_patterns(self):
        """Number of different patterns of holes, or an upper bound: int."""
        return min(self.n_samples, 2 ** min(self.n_features, 30)) if self.has_holes else 0

    @property
    def means(self):
        """Means of the columns' values, measured from the origin: by a pass, (n_features,)."""
        return self.total(sum_of_rows) / self.seen_weight

    def in_memory(self):
        """All rows as `ArrayRows`; for few rows."""
        return self

    def thinned(self, n_rows):
        """Some `n_rows` evenly spaced rows, each of weight one: ArrayRows."""
        spacing = self.total_weight / n_rows
        return self.at(spacing * (np.arange(n_rows) + 0.5))[1]


def _sum_of_squares(block):
    """Sum of the squares of the rows' values, each row as often as it counts, (n_features,)."""
    return block.weighted(np.square(block.rows)).sum(axis=1)
