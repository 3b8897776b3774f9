"""The noise that rounding puts on the columns, so that no cluster shrinks onto a value that many rows share.

The density of a normal component is unbounded where rows have the same value. Where the typical covariance
of components is learned, one such component would drive it to zero, and b0 with it. So columns of few
values, half as many as rows at most, and those in which one value has 5 % of the rows and three at least, are
known up to an error. Its standard deviation is a tenth of that of rounding, a uniform error between two
neighbours: the full one would join the two values of a column of zeros and ones.
"""

import functools
import math
from dataclasses import dataclass

import numpy as np

from sklearn_lrvb.rows import Workload

# Variance of the error in units of delta^2: a hundredth of that of a uniform error, delta^2/12.
_SHARE_OF_ROUNDING = 1e-2 / 12.0
_MOST_VALUES = 2048  # That a column of few values has: of a normal one, in steps of 0.004 deviations.
# Share of the rows that have one value from which it is an atom, whatever the grid, and their least number:
# that two rows have the same value is chance. The error is then at least this part of the standard deviation
# of the column.
_SHARE_OF_AN_ATOM, _LEAST_ROWS, _LEAST_DEVIATION = 0.05, 3.0, 1e-2


@dataclass(frozen=True)
class ValueCounts:
    """How often a column has its values: of some rows, which are added to those of others with ``+``.

    Where it has more than `_MOST_VALUES`, the most frequent ones are left, and the count of the next one is
    taken off theirs (Agarwal et al., 2012, Mergeable summaries). In all sums together a value loses less than
    one row in `_MOST_VALUES`.

    Attributes
    ----------
    values, counts : (m,), ascending values
    are_all : bool, whether the column has no other values
    """

    values: np.ndarray
    counts: np.ndarray
    are_all: bool

    @classmethod
    def of(cls, values, weights, are_all=True):
        """Those of values in any order, which count so often, zero for not there; None for once each."""
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
    """Variances of the error of every column: (P,), zero for columns of many values.

    Parameters
    ----------
    rows : Rows
    """
    count, eps = functools.partial(_value_counts, rows.n_samples), 8.0 * np.finfo(rows.dtype).eps
    columns, variances = rows.total(count, Workload(per_row=4)), np.zeros(rows.n_features)
    seen = np.broadcast_to(rows.seen_weight, rows.n_features)
    few = (_SHARE_OF_AN_ATOM - 1.0 / _MOST_VALUES) * seen  # An atom has more, where counts have lost some.
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
    """Number of rows that have a value from which it is an atom."""
    return max(_SHARE_OF_AN_ATOM * n_rows, _LEAST_ROWS)


def _value_counts(n_samples, block):
    """`ValueCounts` of the columns of a block, list; those of no value where that is enough to know.

    Of a block with all rows these have more than half as many values, and none of them often enough.
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
    """How many rows of a block have some values of its columns: arrays to list of arrays."""
    weights = block.weighted(block.seen)
    return [np.equal.outer(*pair) @ own for *pair, own in zip(values, block.rows, weights, strict=True)]
