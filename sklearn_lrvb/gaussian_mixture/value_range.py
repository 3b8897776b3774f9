"""The range of values in which a fit and its error bars neither overflow nor underflow.

A fit is equivariant in the units of the columns, but what it reports is not: variances of covariances and of
precisions are fourth powers of the unit and of its reciprocal. So values beyond the range are refused rather
than scaled inside.
"""

import numpy as np

# Largest absolute value of X, and reciprocal of the smallest spread of a column. Fourth powers, and sums of
# them over rows of any weight, are then far from the ends of float64.
LARGEST_VALUE = 1e70

# Largest sum of weights. The mean-field variances of log weights are one over the counts, but one over their
# squares in the direction in which all counts change together: a relative one over the sum of the weights.
LARGEST_TOTAL_WEIGHT = 1e15

_REMEDY = "Change its unit: multiply it by a constant, or use sklearn.preprocessing.StandardScaler."


def check_largest(X):
    """Raise ValueError where values are too large.

    Parameters
    ----------
    X : array of shape (n_samples, n_features), finite
    """
    if X.dtype == np.float32 or not max(X.max(), -X.min()) > LARGEST_VALUE:  # float32 ends at 3e38.
        return
    largest = np.maximum(X.max(axis=0), -X.min(axis=0))
    column = int(largest.argmax())
    raise ValueError(
        f"Column {column} of X has values of up to {largest[column]:.3g} in size, beyond {LARGEST_VALUE:g}: "
        f"variances or their error bars would overflow. (a) {_REMEDY} (b) Drop it where it is constant."
    )


def check_smallest(rows, variances):
    """Raise ValueError where a column that is not constant varies too little.

    Parameters
    ----------
    rows : CentredRows
    variances : array, of the columns or of all together; squares may have underflowed in them
    """
    if variances.min() >= LARGEST_VALUE**-2:
        return
    smallest, largest = rows.ranges()
    spread = np.asarray(largest, dtype=float) - smallest
    is_constant = spread <= 4 * np.finfo(float).eps * np.abs(rows.origin)
    column = int(np.where(is_constant, np.inf, spread).argmin())
    if not is_constant[column] and spread[column] < 1.0 / LARGEST_VALUE:
        raise ValueError(
            f"Column {column} of X varies by {spread[column]:.3g} only, less than {1.0 / LARGEST_VALUE:g}: "
            f"precisions or their error bars would overflow. (a) {_REMEDY} (b) Drop it."
        )


def check_total_weight(total):
    """Raise ValueError where weights count more rows than float64 can tell one from."""
    if total > LARGEST_TOTAL_WEIGHT:
        raise ValueError(
            f"sample_weight sums to {total:.3g} rows, beyond {LARGEST_TOTAL_WEIGHT:g}: float64 cannot tell "
            "one row more or less. Divide the weights by a constant, so that they count rows."
        )


def check_number(name, value, least, most):
    """Raise ValueError where an argument without units is outside the range in which digits are left."""
    if not least <= value <= most:
        raise ValueError(
            f"{name} is {value:.3g}; it must be between {least:g} and {most:g}, because numbers that depend "
            "on it would overflow or lose all digits. Less extreme values have the same effect."
        )


def check_argument(name, largest, smallest=None):
    """Raise ValueError where a parameter of the fit is too large or too small.

    Parameters
    ----------
    name : str
    largest : float, its largest size in units of X
    smallest : float or None, its smallest such size
    """
    if largest > LARGEST_VALUE:
        raise ValueError(
            f"{name} is {largest:.3g} in units of X, beyond {LARGEST_VALUE:g}: change these units."
        )
    if smallest is not None and smallest < 1.0 / LARGEST_VALUE:
        raise ValueError(
            f"{name} is {smallest:.3g} in units of X, less than {1.0 / LARGEST_VALUE:g}: change these units."
        )
