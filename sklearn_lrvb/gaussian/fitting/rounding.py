"""Variance of the measurement error of columns that have few or repeated values.

The likelihood of a normal component is unbounded if its rows all have the same value. Where the typical
covariance of components is learned, one such component would drive it to zero, and b0 with it. So a
measurement error with a known variance is assumed in two kinds of columns:

* Columns with few different values, at most half as many as rows. The standard deviation of the error is a
  tenth of delta/sqrt(12), that of rounding to multiples of delta, the smallest gap between two values. The
  whole rounding error would join the two values of a column of zeros and ones.
* Columns with an atom, one value that at least 5 % of the rows have, and at least three rows. The standard
  deviation of the error is then at least a hundredth of the column's.
"""

import functools
import math
from dataclasses import dataclass

import numpy as np

from sklearn_lrvb.rows import Workload

# Variance of the error in units of delta^2: a hundredth of that of rounding, 1/12.
_SHARE_OF_ROUNDING = 1e-2 / 12.0
# Largest number of values of a column with few values. A normal column rounded to multiples of 0.004 standard
# deviations has about as many.
_MOST_VALUES = 2048
# A value is an atom if at least this share of the rows have it, and at least so many rows, as two rows may
# agree by chance. The standard deviation of the error is then at least this share of the column's.
_SHARE_OF_AN_ATOM, _LEAST_ROWS, _LEAST_DEVIATION = 0.05, 3.0, 1e-2


@dataclass(frozen=True)
class ValueCounts:
    """How often each value occurs in a column, in a set of rows; ``+`` joins the counts of two sets.

    If there are more than `_MOST_VALUES` values, only the most frequent ones are kept, and the count of the
    most frequent one that is left out is subtracted from theirs (Agarwal et al., 2012, Mergeable summaries).
    However many sets are joined, a count is too low by less than 1/`_MOST_VALUES` of all rows.

    Attributes
    ----------
    values, counts : (m,), ascending values
    are_all : bool, whether no value was left out
    """

    values: np.ndarray
    counts: np.ndarray
    are_all: bool

    @classmethod
    def of(cls, values, weights, are_all=True):
        """Counts of values in any order with weights, 0 where a value is missing; None for weights of 1."""
        if weights is None:
            values, counts = np.unique(values, return_counts=True)
        else:
            values, index = np.unique(values, return_inverse=True)
            counts = np.bincount(index, weights)
        next_count = np.sort(counts)[:-_MOST_VALUES].max(initial=0)
        kept = counts > next_count
        return cls(values[kept], counts[kept] - next_count, are_all and next_count == 0)

    def __add__(self, other):
        values, counts = np.append(self.values, other.values), np.append(self.counts, other.counts)
        return self.of(values, counts, self.are_all and other.are_all)


def rounding_of(rows):
    """Variances of the error of every column: (P,), zero for columns with many values and no atom.

    Parameters
    ----------
    rows : Rows
    """
    count, eps = functools.partial(_value_counts, rows.n_samples), 8.0 * np.finfo(rows.dtype).eps
    columns, variances = rows.total(count, Workload(per_row=4)), np.zeros(rows.n_features)
    seen = np.broadcast_to(rows.seen_weight, rows.n_features)
    few = (_SHARE_OF_AN_ATOM - 1.0 / _MOST_VALUES) * seen  # Counts may be too low.
    atoms = [
        own.values[:0] if own.are_all else own.values[own.counts > least]
        for own, least in zip(columns, few, strict=True)
    ]
    exact = rows.total(functools.partial(_counts_of, atoms)) if any(map(len, atoms)) else atoms
    for column, (own, of_atoms) in enumerate(zip(columns, exact, strict=True)):
        if not len(own.values):
            continue
        if own.are_all and 2 <= len(own.values) <= 0.5 * seen[column]:
            gaps, size = np.diff(own.values), np.abs(own.values + rows.origin[column]).max()
            step = gaps[gaps > eps * size].min(initial=gaps.max())  # Smaller ones are round-off.
            variances[column] = _SHARE_OF_ROUNDING * step**2
        if np.append(own.counts, of_atoms).max() >= _least_of_an_atom(seen[column]):
            variances[column] = max(variances[column], _LEAST_DEVIATION**2 * rows.variances[column])
    return variances


def _least_of_an_atom(n_rows):
    """Smallest number of rows with the same value that make this value an atom."""
    return max(_SHARE_OF_AN_ATOM * n_rows, _LEAST_ROWS)


def _value_counts(n_samples, block):
    """List of the `ValueCounts` of the columns of a block, without values for a column that needs no error.

    This is known at once only if the block has all rows, each once: then a column needs no error if it has
    more than half as many values as rows, and no atom.
    """
    rows, n = block.rows, block.rows.shape[1]
    if block.missing is not None:
        return list(map(ValueCounts.of, rows, block.weighted(block.seen)))
    needed = np.ones(len(rows), dtype=bool)
    if n == n_samples and block.sample_weight is None:
        ordered, least = np.sort(rows, axis=1), math.ceil(_least_of_an_atom(n))
        needed = (ordered[:, least - 1 :] == ordered[:, : n - least + 1]).any(axis=1)
        needed |= 1 + (ordered[:, 1:] != ordered[:, :-1]).sum(axis=1) <= 0.5 * n
    none = ValueCounts(np.zeros(0), np.zeros(0), False)
    return [
        ValueCounts.of(own, block.sample_weight) if is_needed else none
        for own, is_needed in zip(rows, needed, strict=True)
    ]


def _counts_of(values, block):
    """Number of rows of a block that have each of the given values: one array per column, in and out."""
    weights = block.weighted(block.seen)
    return [np.equal.outer(*pair) @ own for *pair, own in zip(values, block.rows, weights, strict=True)]
