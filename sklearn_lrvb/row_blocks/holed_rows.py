"""The rows of an array in which values are missing, as NaN.

Passes go through them in an order in which rows of one pattern of holes follow each other (`holes`); results
are put back into the order of the rows. A block has complete rows alone, or incomplete ones alone.
"""

import functools
from dataclasses import dataclass

import numpy as np

from sklearn_lrvb.row_blocks.array_rows import ArrayRows
from sklearn_lrvb.row_blocks.blocks import RowBlock, rows_in_batch, sum_of_rows, sum_of_seen
from sklearn_lrvb.row_blocks.holes import PatternOrder


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
