"""Rows as users pass them to a fit or to a question: checked, and as `Rows`.

A table in memory is checked by scikit-learn. Rows in parts (batches, Dask collections) are checked by the
first pass over them, except for what their description tells.
"""

import functools
import sys
from collections.abc import Sequence

import numpy as np
from sklearn.utils import assert_all_finite
from sklearn.utils.validation import validate_data

from sklearn_lrvb.rows.array_rows import has_holes, rows_of_array
from sklearn_lrvb.rows.parts import BatchRows, divided, first_batch
from sklearn_lrvb.rows.tables import as_numbers, checked_weights

# What an object has that scikit-learn takes for one table.
_OF_TABLES = ("__array__", "__dataframe__", "shape", "keys", "read")


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
        rows = BatchRows(X, origin, n_jobs, least_rows, on_pass)  # Batches are checked as they come.
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
    weights, is_holed = checked_weights(sample_weight, X), not is_finite and has_holes(X)
    origin = np.zeros(X.shape[1]) if origin is None else origin
    return rows_of_array(X, origin, estimator.n_jobs, weights, is_holed=is_holed)


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
