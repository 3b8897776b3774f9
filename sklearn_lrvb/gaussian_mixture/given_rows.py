"""Rows as users pass them to a fit or to a question: checked, and as `CentredRows`.

A table in memory is checked by scikit-learn. Rows in parts (batches, Dask collections) are checked by the
first pass over them, except for what their description tells.
"""

import functools
import sys
from dataclasses import replace

import numpy as np
from sklearn.utils import assert_all_finite
from sklearn.utils.validation import validate_data

from sklearn_lrvb.caller_warnings import warn_caller
from sklearn_lrvb.gaussian_mixture.arguments import check_largest, checked_counts, checked_weights
from sklearn_lrvb.gaussian_mixture.fitting.starts import (
    checked_dask_responsibilities,
    checked_responsibilities,
)
from sklearn_lrvb.row_blocks import has_holes, rows_around_mean, rows_of_array
from sklearn_lrvb.row_blocks.parts import Batches, BatchRows
from sklearn_lrvb.row_blocks.tables import as_numbers, named

_SOURCE_OF_FUNCTION = "What init_params returns"  # at the start of an error message


def is_dask(X):
    """Whether X is a Dask collection: then Dask has been imported by whoever made it."""
    return "dask" in sys.modules and sys.modules["dask"].is_dask_collection(X)


def given_rows(estimator, X, sample_weight=None, reset=False, least_rows=1, on_pass=None):
    """The rows that a user has passed.

    Parameters
    ----------
    estimator : estimator that gets, or has, the number and the names of the features
    X, sample_weight : what the user has passed
    reset : bool, whether the number and names of the features are taken from X
    least_rows : int, least number of rows
    on_pass : callable without arguments, called after every pass over rows in parts

    Returns
    -------
    given : GivenTable, GivenBatches or GivenCollection

    Raises
    ------
    ValueError
        On bad input, as far as it is seen without a pass over rows in parts.
    """
    in_parts = GivenCollection if is_dask(X) else GivenBatches if Batches.is_source(X) else None
    return (in_parts or GivenTable)(estimator, X, sample_weight, reset, least_rows, on_pass)


def warn_of_weights_as_y(y, sample_weight):
    """Warn where y, which is ignored, holds numbers that may have been meant as weights.

    Labels are whole numbers or words. Targets of a regression are no reason to call the mixture with y, but
    look like weights where none is negative.

    Parameters
    ----------
    y, sample_weight : what the user has passed
    """
    if sample_weight is not None or y is None or is_dask(y):
        return
    try:
        values = np.asarray(y)
    except ValueError:  # It is no array.
        return
    if values.ndim != 1 or values.dtype.kind != "f":
        return
    if np.all((values >= 0) & (values < np.inf)) and np.any(values % 1 > 0):
        warn_caller(
            "y is ignored, but holds non-negative numbers that are no labels. If they are weights of the "
            "rows, pass them by name: sample_weight=... If not, leave y out."
        )


def require_table(X, owner):
    """Raise ValueError where rows are not in memory.

    Parameters
    ----------
    X : what a user has passed as rows
    owner : str, what needs them in memory, at the start of the message
    """
    if is_dask(X) or Batches.is_source(X):
        what = f"a Dask {type(X).__name__}" if is_dask(X) else "a source of batches"
        raise ValueError(
            f"{owner} takes rows in memory, but X is {what}: pass some of the rows, for example "
            "X[::1000].compute() of a Dask array, or one batch."
        )


class GivenTable:
    """Rows in memory, or mapped from a file; the parameters are those of `given_rows`.

    Attributes
    ----------
    X : array (n_rows, n_features) of float64 or float32
    """

    is_in_memory = True

    def __init__(self, estimator, X, sample_weight, reset, least_rows, on_pass):
        # The values are checked here, to learn by the same pass whether some are missing.
        check = functools.partial(
            validate_data,
            estimator,
            dtype=[np.float64, np.float32],
            ensure_min_samples=least_rows,
            ensure_all_finite=False,
            reset=reset,
        )
        self.X = as_numbers(X, check)
        self._has_holes = _checked_for_holes(self.X, estimator)
        self._names = _names_of(estimator)
        self._n_jobs, self._sample_weight = estimator.n_jobs, sample_weight

    def to_fit(self):
        """The rows that count, measured from their mean: CentredRows."""
        X, weights = self._counted()
        if not self._has_holes:
            check_largest(X)
            return rows_around_mean(X, self._n_jobs, weights, holes_known=False)
        rows = rows_around_mean(X, self._n_jobs, weights)
        check_columns(rows, self._names)
        check_largest(np.stack(rows.ranges()))
        return rows

    @property
    def which_count(self):
        """The rows that count, and their weights (`checked_counts`)."""
        return checked_counts(self._sample_weight, self.X, self._has_holes)

    def _counted(self):
        """The rows of positive weight that have a value, and their weights."""
        kept, weights = self.which_count
        return self.X if kept is None else self.X[kept], weights

    def numbers(self):
        """The numbers of the rows that count, int array."""
        kept = self.which_count[0]
        return np.arange(len(self.X)) if kept is None else np.flatnonzero(kept)

    def responsibilities(self, rows, init_params, n_components, random_state, completion=None):
        """Responsibilities that a user has passed, or that a user's function makes: array (n_samples, K).

        Parameters
        ----------
        rows : CentredRows, from `to_fit`
        init_params : array-like with a row for every row of X, or callable
        n_components, random_state : of the fit
        completion : Completion of rows with holes, of which a user's function gets none; else None
        """
        if callable(init_params):
            complete = rows if completion is None else completion.completed(rows)
            made = init_params(complete.X, n_components, random_state)
            return checked_responsibilities(made, rows.n_samples, n_components, _SOURCE_OF_FUNCTION)
        checked = checked_responsibilities(init_params, len(self.X), n_components, "init_params")
        kept = self.which_count[0]
        return checked if kept is None else checked[kept]

    def counted_around(self, origin):
        """The rows that count, measured from an origin: CentredRows."""
        X, weights = self._counted()
        return rows_of_array(X, origin, self._n_jobs, weights, holes_known=None if self._has_holes else False)

    def around(self, origin, weighted=False):
        """All rows, measured from an origin, with their weights or without: CentredRows."""
        rows = rows_of_array(self.X, origin, self._n_jobs, holes_known=self._has_holes)
        return replace(rows, sample_weight=checked_weights(self._sample_weight, self.X)) if weighted else rows


def _checked_for_holes(X, estimator):
    """Whether values of an array are missing; a ValueError where one is infinite."""
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(X.sum(dtype=np.float64)):
            return False
    assert_all_finite(X, allow_nan=True, estimator_name=type(estimator).__name__, input_name="X")
    return has_holes(X)


def _names_of(estimator):
    """The names of the features that an estimator has seen, or None."""
    return getattr(estimator, "feature_names_in_", None)


def check_columns(rows, names):
    """Raise ValueError where a column has no value.

    Parameters
    ----------
    rows : CentredRows with holes
    names : array of str or None, of the columns
    """
    empty = np.flatnonzero(rows.seen_weight == 0)
    if empty.size:
        raise ValueError(
            f"X has {empty.size} column(s) without any value in the rows that count: "
            f"{named(empty, names)}. Drop them: nothing can be said about them."
        )


class _GivenParts:
    """Rows in parts; `_around` makes `PartedRows` of an origin."""

    is_in_memory = False

    def __init__(self, least_rows, names):
        self._least_rows, self._names = least_rows, names

    def to_fit(self):
        """The rows that count, measured from their mean: CentredRows."""
        rows = self._around(None)
        n_rows = rows.n_given
        if n_rows < self._least_rows:
            raise ValueError(
                f"Found array with {n_rows} sample(s) (shape=({n_rows}, {rows.n_features})) while a minimum "
                f"of {self._least_rows} is required."
            )
        if rows.has_holes:
            check_columns(rows, self._names)
        check_largest(np.stack(rows.ranges()))
        # So few rows take less memory than a matrix of all features.
        return rows.in_memory() if rows.n_samples <= rows.n_features else rows

    def responsibilities(self, rows, init_params, n_components, random_state, completion=None):
        """As `GivenTable.responsibilities`; an array on Dask stays there, and X has its holes."""
        del completion
        made, source = init_params, "init_params"
        if callable(init_params):
            made, source = init_params(self.X, n_components, random_state), _SOURCE_OF_FUNCTION
        if rows.is_in_memory:
            parted = self._around(None)
            checked = checked_responsibilities(made, parted.n_given, n_components, source)
            return checked[parted.which_count()]
        if rows.is_lazy and is_dask(made):
            return checked_dask_responsibilities(made, rows, n_components, source)
        return checked_responsibilities(made, rows.n_given, n_components, source)

    def numbers(self):
        """The numbers of the rows that count, int array."""
        return np.flatnonzero(self._around(None).which_count())

    def counted_around(self, origin):
        """The rows that count, measured from an origin: CentredRows."""
        return self._around(origin)

    def around(self, origin, weighted=False):
        """All rows, measured from an origin: CentredRows."""
        return self._around(origin)


class GivenBatches(_GivenParts):
    """A source of batches; the parameters are those of `given_rows`.

    Attributes
    ----------
    X : the source
    """

    def __init__(self, estimator, X, sample_weight, reset, least_rows, on_pass):
        if sample_weight is not None:
            raise ValueError(
                "sample_weight goes with the batches: let X yield pairs (rows, weights), and pass no "
                "sample_weight."
            )
        self.X, batches = X, Batches(X)
        validate_data(estimator, batches.first(), skip_check_array=True, reset=reset)
        super().__init__(least_rows, _names_of(estimator))
        self._around = lambda origin: BatchRows(batches, origin, estimator.n_jobs, on_pass)


class GivenCollection(_GivenParts):
    """A Dask array or data frame; the parameters are those of `given_rows`.

    Attributes
    ----------
    X : dask.array.Array of float64 or float32
    """

    def __init__(self, estimator, X, sample_weight, reset, least_rows, on_pass):
        from sklearn_lrvb.row_blocks.dask_rows import DaskRows, float_array, template, weight_array

        validate_data(estimator, template(X), skip_check_array=True, reset=reset)
        super().__init__(least_rows, _names_of(estimator))
        self.X = array = float_array(X)
        weights = weight_array(sample_weight, array)
        self._around = lambda origin: DaskRows(array, weights, origin, estimator.n_jobs, on_pass)
