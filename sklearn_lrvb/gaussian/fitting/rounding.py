"""The noise that rounding puts on the columns, so that no cluster shrinks onto a value that many rows share.

The density of a normal component is unbounded where rows have the same value. Where the typical covariance
of components is learned, one such component would drive it to zero, and b0 with it. So columns in which at
most half of the values are different, and those in which one value has 5 % of the rows and two at least, are
known up to an error. Its standard deviation is a tenth of that of rounding, a uniform error between two
neighbours: the full one would join the two values of a column of zeros and ones.
"""

import numpy as np

# Variance of the error in units of delta^2: a hundredth of that of a uniform error, delta^2/12.
_SHARE_OF_ROUNDING = 1e-2 / 12.0
# Share of the rows that have one value from which it is an atom, whatever the grid. The error is then at
# least this part of the standard deviation of the column.
_SHARE_OF_AN_ATOM, _LEAST_DEVIATION = 0.05, 1e-2


def rounding_of(sample):
    """Variances of the error of every column: (P,), zero for columns of many values.

    Parameters
    ----------
    sample : ArrayRows, rows that tell what values the columns have
    """
    weights = np.ones(sample.n_samples) if sample.sample_weight is None else sample.sample_weight
    variances, spread = np.zeros(sample.n_features), sample.around_mean().variances
    for column in range(sample.n_features):
        seen = ~np.isnan(sample.X[:, column])
        values, index = np.unique(sample.X[seen, column], return_inverse=True)
        if len(values) < 2:
            continue
        counts = np.bincount(index, weights[seen])
        has_atom = counts.max() >= max(_SHARE_OF_AN_ATOM * counts.sum(), 2.0)
        if len(values) > 0.5 * counts.sum() and not has_atom:
            continue
        gaps = np.diff(values.astype(np.float64))
        eps = 8.0 * np.finfo(sample.dtype).eps * np.abs(values).max()  # Smaller gaps are round-off.
        step = gaps[gaps > eps].min() if gaps.max() > eps else 0.0
        atom = _LEAST_DEVIATION**2 * spread[column] if has_atom else 0.0
        variances[column] = max(_SHARE_OF_ROUNDING * step**2, atom)
    return variances
