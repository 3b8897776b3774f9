"""What users pass as rows: a table in memory, a source of batches, or a Dask collection; as `Rows`.

A table in memory is checked by scikit-learn, and so is every batch, as it comes. The numbers of rows in parts
(batches, Dask collections) are checked by the first pass over them. Columns that are no numbers are named in
errors. Values that are masked are missing.
"""

import datetime
import functools
import sys
from collections.abc import Iterator, Sequence

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import assert_all_finite, check_array
from sklearn.utils.validation import _check_sample_weight, _get_feature_names, validate_data

from sklearn_lrvb.rows.array_rows import has_missing, rows_of_array
from sklearn_lrvb.rows.parts import BatchRows

# What an object has that scikit-learn takes for one table.
_OF_TABLES = ("__array__", "__dataframe__", "shape", "keys", "read")

TIMES = datetime.date, datetime.timedelta, np.datetime64, np.timedelta64


def is_dask(X):
    """Whether X is a Dask collection: then Dask has been imported by whoever made it."""
    return "dask" in sys.modules and sys.modules["dask"].is_dask_collection(X)


def is_source(X):
    """Whether X is a source of batches: a callable, a sequence of tables, or another iterable."""
    if any(hasattr(X, name) for name in _OF_TABLES) or isinstance(X, (str, bytes)):
        return False
    if isinstance(X, Sequence):
        return len(X) > 0 and np.ndim(divided(X[0])[0]) == 2 and hasattr(divided(X[0])[0], "shape")
    return callable(X) or hasattr(X, "__iter__")


def given_rows(estimator, X, sample_weight=None, origin=None, reset=False, on_pass=None):
    """The rows that a user has passed, also those that do not count: Rows.

    Parameters
    ----------
    estimator : estimator that gets, or has, the number and the names of the features
    X, sample_weight : what the user has passed
    origin : (n_features,), what the rows are measured from; None for a fit: zero, until
        `around_mean` measures them from their mean
    reset : bool, whether the number and names of the features are taken from X
    on_pass : callable without arguments, called after every pass over rows in parts

    Raises
    ------
    ValueError
        On bad input, as far as it is seen without a pass over rows in parts.
    """
    n_jobs, least_rows = estimator.n_jobs, 2 if origin is None else 1
    if is_dask(X):
        from sklearn_lrvb.rows.dask_rows import DaskRows, float_array, template, weight_array

        validate_data(estimator, template(X), skip_check_array=True, reset=reset)
        X = float_array(X)
        weights = weight_array(sample_weight, X)
        rows = DaskRows(X, weights, origin, n_jobs, least_rows, on_pass)
    elif is_source(X):
        if sample_weight is not None:
            raise ValueError(
                "sample_weight goes with the batches: let X yield pairs (rows, weights), and pass no "
                "sample_weight."
            )
        validate_data(estimator, first_batch(X), skip_check_array=True, reset=reset)
        batches = functools.partial(_checked_batches, X, None if origin is None else len(origin))
        rows = BatchRows(X, batches, origin, n_jobs, least_rows, on_pass)
    else:
        rows = _rows_of_table(estimator, X, sample_weight, origin, least_rows, reset)
    # scikit-learn knows the number after a fit alone, and not where arrays were set by hand.
    if origin is not None and rows.n_features != len(origin):
        raise ValueError(
            f"X has {rows.n_features} features, but {type(estimator).__name__} is expecting {len(origin)} "
            "features as input."
        )
    return rows


def _rows_of_table(estimator, X, sample_weight, origin, least_rows, reset):
    """The rows of a table in memory: ArrayRows.

    Their values are checked here, to learn by the same pass whether some are missing.
    """
    check = functools.partial(
        validate_data,
        estimator,
        dtype=[np.float64, np.float32],
        ensure_min_samples=least_rows,
        ensure_all_finite=False,
        reset=reset,
    )
    X = as_numbers(X, check)
    with np.errstate(over="ignore", invalid="ignore"):
        is_finite = np.isfinite(X.sum(dtype=np.float64))
    if not is_finite:
        assert_all_finite(X, allow_nan=True, estimator_name=type(estimator).__name__, input_name="X")
    weights, is_incomplete = checked_weights(sample_weight, X), not is_finite and has_missing(X)
    origin = np.zeros(X.shape[1]) if origin is None else origin
    return rows_of_array(X, origin, estimator.n_jobs, weights, is_incomplete=is_incomplete)


def require_table(X, owner):
    """Raise ValueError where rows are not in memory.

    Parameters
    ----------
    X : what a user has passed as rows
    owner : str, what needs them in memory, at the start of the message
    """
    if is_dask(X) or is_source(X):
        what = f"a Dask {type(X).__name__}" if is_dask(X) else "a source of batches"
        raise ValueError(
            f"{owner} takes rows in memory, but X is {what}: pass some of the rows, for example "
            "X[::1000].compute() of a Dask array, or one batch."
        )


# Batches.


def _started(source):
    """An iterator over the batches of a source, from the first one on."""
    if isinstance(source, Iterator):
        raise ValueError(
            f"X is a {type(source).__name__}, which can be gone through once only, and a fit makes some "
            "twenty passes. (a) Pass a function that starts it anew, such as lambda: read_batches(path). "
            "(b) Pass an object whose __iter__ does. (c) Pass a list of arrays or of memory maps."
        )
    return iter(source() if callable(source) else source)


def divided(batch):
    """The rows of a batch as they come, and their weights or None."""
    return batch if isinstance(batch, tuple) and len(batch) == 2 else (batch, None)


def first_batch(source):
    """The first batch of a source as it comes, without its weights."""
    for batch in _started(source):
        return divided(batch)[0]
    raise ValueError("X yields no batch, so that there are no rows.")


def _checked_batches(source, n_features):
    """Yield the rows of every batch of a source, float64 or float32, and their weights or None; checked.

    Parameters
    ----------
    source : callable, sequence of tables, or another iterable
    n_features : int or None, the number of columns of the mixture, if it is known
    """
    names = None
    for number, batch in enumerate(_started(source)):
        X, weights = _checked(batch, number)
        own_names = _get_feature_names(divided(batch)[0])
        names = own_names if number == 0 else names
        if names is not None and own_names is not None and list(names) != list(own_names):
            raise ValueError(
                f"Batch {number} of X has the columns {_first_of(own_names)}, but batch 0 has "
                f"{_first_of(names)}: all batches must have the same columns in the same order."
            )
        if n_features not in (None, X.shape[1]):
            other = "batch 0" if number else "the mixture"
            raise ValueError(
                f"Batch {number} of X has {X.shape[1]} columns, but {other} has {n_features}: all "
                "batches must have the same columns."
            )
        n_features = X.shape[1]
        yield X, weights


def _checked(batch, number):
    """The rows of a batch, float64 or float32, and their weights as float64 or None."""
    X, weights = divided(batch)
    check = functools.partial(
        check_array, dtype=[np.float64, np.float32], ensure_all_finite=False, ensure_min_samples=0, copy=False
    )
    try:
        X = as_numbers(X, check)
        weights = weights_of_part(weights, len(X))
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"Batch {number} of X: {error}") from error
    return X, weights


def weights_of_part(weights, n_rows):
    """Weights of the rows of a part as float64 array, whose values are not checked; None stays None."""
    refuse_masked(weights)
    if weights is None:
        return None
    weights = check_array(
        weights, dtype=np.float64, ensure_2d=False, ensure_all_finite=False, ensure_min_samples=0
    )
    if weights.shape != (n_rows,):
        raise ValueError(f"its weights have shape {weights.shape}, but it has {n_rows} rows.")
    return weights


def _first_of(names):
    """The first names of columns, for an error message."""
    return ", ".join(map(str, names[:5])) + ", ..." * (len(names) > 5)


# Tables.


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
