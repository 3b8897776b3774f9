"""Rows measured from an origin, wherever they are: what every pass over them is made of.

All that is computed from rows is one of three verbs.

* A *total* adds up the small results of a function of a block of rows (`CentredRows.total`).
* Results of a *map* are brought together from all blocks: few of them, such as ambiguous rows alone
  (`CentredRows.map`).
* A result with a row for *each* row is computed where the rows are (`CentredRows.each`).

The functions are pure and can be pickled without the rows: functions of a module, `functools.partial` of
these over picklable arguments, or objects with ``__call__``; never closures over rows. They get everything
that belongs to some rows from the `RowBlock`. How many rows a block has is decided in this folder alone: a
caller says how many numbers its function makes of a row.

`array_rows` has the rows of an array, `parts` those of a source of batches, and `dask_rows` those of a Dask
collection, which share `PartedRows`.
"""

from abc import ABC, abstractmethod

import numpy as np

from sklearn_lrvb.row_blocks.blocks import untracked


class CentredRows(ABC):
    """Rows of X, measured from ``origin``: so is everything that is computed from them.

    Rows of weight zero are no part of them.

    Attributes
    ----------
    origin : float64 array of shape (n_features,)
    X : the rows as they are given: array, source of batches, or Dask array
    n_samples, n_features : int
    n_given : int, number of the rows with those that do not count
    total_weight : float, how many rows there are, each as often as it counts
    seen_weight : float or (n_features,), how many of these have a value in a column
    variances : (n_features,), of the columns around the origin
    has_holes : bool, whether values are missing; in blocks they are zero, and the block says where
    n_patterns : int, number of different patterns of holes, or an upper bound
    dtype : numpy.dtype, float64 or float32, in which X is stored
    n_jobs : int or None, threads over blocks, as in joblib
    """

    is_in_memory = True  # Whether they are an array, in memory or mapped from a file.
    is_lazy = False  # Whether results with a row for each row are computed later, where the rows are.

    @abstractmethod
    def total(self, function, numbers=None, along=None):
        """Sum of ``function(block)`` over all blocks.

        Parameters
        ----------
        function : callable
            Its results are arrays, numbers, objects with ``+``, or None for nothing to add; or tuples or
            lists of these. Arrays are added into, so they must be the function's own.
        numbers : RowNumbers, or int for its ``of_row``
            How many float64 numbers the function makes of a row; by default twice the row.
        along : array or sparse array with a row for every row
            The function then gets its block's rows of it as second argument.
        """

    @abstractmethod
    def map(self, function, numbers=None):
        """``function(block)`` of all blocks in row order, as a list.

        Parameters
        ----------
        function : callable, whose results are small together
        numbers : as in `total`
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
    def counted(self):
        """The rows of positive weight that have a value: CentredRows.

        Raises
        ------
        ValueError
            Where there is none.
        """

    @abstractmethod
    def which_count(self):
        """Whether every row that was given has a positive weight and a value, bool array (n_given,)."""

    @abstractmethod
    def around_mean(self):
        """The same rows, measured from the mean of the values in every column: CentredRows."""

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
