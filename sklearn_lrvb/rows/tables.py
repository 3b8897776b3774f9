"""A user's table as an array of numbers, with NaN where a value is masked; columns of others are named."""

import datetime

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import check_array
from sklearn.utils.validation import _check_sample_weight, _get_feature_names

TIMES = datetime.date, datetime.timedelta, np.datetime64, np.timedelta64


def as_numbers(X, check, missing=np.nan):
    """What one of scikit-learn's checks makes of a table.

    Parameters
    ----------
    X : array-like or data frame
    check : callable (X) -> array of floats
    missing : float, default=nan
        What takes the place of a value that is masked.

    Raises
    ------
    ValueError
        Where columns are words; they are named.
    TypeError
        Where columns are dates, durations or other objects; they are named.
    """
    X = unmasked(X, missing)
    refuse_times(X)
    try:
        return check(X)
    except (TypeError, ValueError) as error:
        is_type = isinstance(error, TypeError)
        others = _columns_of_others(X) if is_type or "could not convert" in str(error) else []
        if not others:
            raise
        raise (TypeError if is_type else ValueError)(
            f"{error}, in column(s) {named(others, _get_feature_names(X))} of X, which takes numbers. Drop "
            "these columns, or encode them as numbers, for example with sklearn.preprocessing.OneHotEncoder."
        ) from error


def unmasked(X, missing=np.nan):
    """A masked array of NumPy's as array with another value where it is masked; anything else as it is."""
    if not isinstance(X, np.ma.MaskedArray):
        return X
    if X.dtype.kind in "biuUS":  # Words may be numbers.
        X = X.astype(object if X.dtype.kind in "US" else np.float64)
    return X.filled(missing) if X.dtype.kind in "fcO" else X.data


def refuse_masked(sample_weight):
    """Raise ValueError where weights are masked."""
    n_masked = np.ma.count_masked(sample_weight) if isinstance(sample_weight, np.ma.MaskedArray) else 0
    if n_masked:
        raise ValueError(
            f"{n_masked} of {sample_weight.size} sample weights are masked, but every row needs one. (a) "
            "Pass sample_weight.filled(0): such rows do not count. (b) Drop these rows."
        )


def checked_weights(sample_weight, X):
    """Sample weights as a float64 array, finite, non-negative and not all zero; None stays None.

    Parameters
    ----------
    sample_weight : array-like of shape (n_samples,) or None
    X : array of shape (n_samples, ...), whose rows they weight

    Raises
    ------
    ValueError
        Where a weight is masked, not finite or negative, or all are zero.
    """
    if sample_weight is None:
        return None
    refuse_masked(sample_weight)
    weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    if not weights.any():
        raise ValueError("Sample weights must contain at least one non-zero number.")
    return weights


def counted(X, sample_weight, has_holes):
    """Which rows count, as bool array or None for all; and their weights, or None for once each.

    Rows of weight zero do not count, nor do rows without any value.

    Parameters
    ----------
    X : array (n_rows, n_features) of float64 or float32
    sample_weight : float64 array (n_rows,), none of them negative; or None
    has_holes : bool, whether values may be missing
    """
    kept = ~np.isnan(X).all(axis=1) if has_holes else None
    if sample_weight is not None:
        kept = sample_weight > 0 if kept is None else kept & (sample_weight > 0)
    if kept is not None and kept.all():
        kept = None
    weights = sample_weight if sample_weight is None or kept is None else sample_weight[kept]
    return kept, None if weights is None or np.all(weights == 1) else weights


def refuse_times(X):
    """Raise TypeError where columns of a table are dates or durations, or objects with some among them."""
    table = X if hasattr(X, "dtype") or hasattr(X, "dtypes") else np.asarray(X)
    is_numeric = isinstance(table, np.ndarray) and table.dtype.kind in "biufc"
    if is_numeric or len(getattr(table, "shape", ())) != 2:
        return
    dtypes = table.dtypes if hasattr(table, "dtypes") else [table.dtype] * table.shape[1]
    columns = getattr(table, "iloc", table)
    times = [
        number
        for number, dtype in enumerate(dtypes)
        if _is_time(dtype) or (_kind(dtype) == "O" and any(isinstance(v, TIMES) for v in columns[:, number]))
    ]
    if times:
        raise TypeError(
            f"Column(s) {named(times, _get_feature_names(X))} of X are dates or durations, whose numbers "
            "depend on how they are stored. Drop them, or turn them into numbers of a unit of your choice, "
            "such as days since a first day."
        )


def _is_time(dtype):
    """Whether a dtype, of NumPy, pandas or polars, is that of dates or durations."""
    if hasattr(dtype, "is_temporal"):  # of polars
        return dtype.is_temporal()
    return _kind(dtype) in "mM"


def _kind(dtype):
    """The kind of a dtype in NumPy's letters, of categories that of their values; "" of other libraries."""
    categories = getattr(dtype, "categories", None)
    return getattr(getattr(categories, "dtype", dtype), "kind", "")


def _columns_of_others(X):
    """Numbers of the columns of a table that cannot be converted to numbers: list of int."""
    if issparse(X):  # It is refused as it is.
        return []
    table = X if hasattr(X, "iloc") else np.asarray(X, dtype=object)
    if table.ndim != 2:
        return []
    columns = getattr(table, "iloc", table)
    return [number for number in range(table.shape[1]) if not _is_convertible(columns[:, [number]])]


def _is_convertible(table):
    """Whether a table can be converted to numbers."""
    try:
        check_array(table, dtype=np.float64, ensure_all_finite=False)
    except (TypeError, ValueError):
        return False
    return True


def named(columns, names):
    """The first of some columns, for an error message.

    Parameters
    ----------
    columns : sequence of int
    names : array of str or None, of all columns
    """
    first = ", ".join(str(k) if names is None else f"{k} ({str(names[k])!r})" for k in columns[:5])
    return first + ", ..." * (len(columns) > 5)
