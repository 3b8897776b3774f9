"""Rows as users pass them to a fit or to a question: checked, and as `CentredRows`.

A table in memory is checked by scikit-learn. Rows in parts (batches, Dask collections) are checked by the
first pass over them, except for what their description tells.
"""

import sys
from dataclasses import replace

import numpy as np
from sklearn.utils.validation import validate_data

from sklearn_lrvb.gaussian_mixture.fitting.initialization import (
    checked_dask_responsibilities,
    checked_responsibilities,
)
from sklearn_lrvb.gaussian_mixture.validation import checked_counts, checked_weights
from sklearn_lrvb.gaussian_mixture.value_range import check_largest
from sklearn_lrvb.row_blocks import ArrayRows
from sklearn_lrvb.row_blocks.batch_rows import Batches, BatchRows

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
        self.X = validate_data(
            estimator, X, dtype=[np.float64, np.float32], ensure_min_samples=least_rows, reset=reset
        )
        self._n_jobs, self._sample_weight = estimator.n_jobs, sample_weight

    def to_fit(self):
        """The rows that count, measured from their mean: CentredRows."""
        X, weights = self._counted()
        check_largest(X)
        return ArrayRows.around_mean(X, self._n_jobs, weights)

    def _counted(self):
        """The rows of positive weight, and their weights."""
        kept, weights = checked_counts(self._sample_weight, self.X)
        return self.X if kept is None else self.X[kept], weights

    def numbers(self):
        """The numbers of the rows that count, int array."""
        kept = checked_counts(self._sample_weight, self.X)[0]
        return np.arange(len(self.X)) if kept is None else np.flatnonzero(kept)

    def responsibilities(self, rows, init_params, n_components, random_state):
        """Responsibilities that a user has passed, or that a user's function makes: array (n_samples, K).

        Parameters
        ----------
        rows : CentredRows, from `to_fit`
        init_params : array-like with a row for every row of X, or callable
        n_components, random_state : of the fit
        """
        if callable(init_params):
            made = init_params(rows.X, n_components, random_state)
            return checked_responsibilities(made, rows.n_samples, n_components, _SOURCE_OF_FUNCTION)
        checked = checked_responsibilities(init_params, len(self.X), n_components, "init_params")
        kept = checked_counts(self._sample_weight, self.X)[0]
        return checked if kept is None else checked[kept]

    def counted_around(self, origin):
        """The rows that count, measured from an origin: CentredRows."""
        X, weights = self._counted()
        return ArrayRows(X, origin, self._n_jobs, weights)

    def around(self, origin, weighted=False):
        """All rows, measured from an origin, with their weights or without: CentredRows."""
        rows = ArrayRows(self.X, origin, self._n_jobs)
        return replace(rows, sample_weight=checked_weights(self._sample_weight, self.X)) if weighted else rows


class _GivenParts:
    """Rows in parts; `_around` makes `PartedRows` of an origin."""

    is_in_memory = False

    def __init__(self, least_rows):
        self._least_rows = least_rows

    def to_fit(self):
        """The rows that count, measured from their mean: CentredRows."""
        rows = self._around(None)
        n_rows = rows.n_given
        if n_rows < self._least_rows:
            raise ValueError(
                f"Found array with {n_rows} sample(s) (shape=({n_rows}, {rows.n_features})) while a minimum "
                f"of {self._least_rows} is required."
            )
        if not rows.n_samples:
            raise ValueError("Sample weights must contain at least one non-zero number.")
        check_largest(np.stack(rows.ranges()))
        # So few rows take less memory than a matrix of all features.
        return rows.in_memory() if rows.n_samples <= rows.n_features else rows

    def responsibilities(self, rows, init_params, n_components, random_state):
        """As `GivenTable.responsibilities`; an array on Dask stays there."""
        made, source = init_params, "init_params"
        if callable(init_params):
            made, source = init_params(self.X, n_components, random_state), _SOURCE_OF_FUNCTION
        if rows.is_in_memory:
            return checked_responsibilities(made, rows.n_samples, n_components, source)
        if rows.is_lazy and is_dask(made):
            return checked_dask_responsibilities(made, rows, n_components, source)
        return checked_responsibilities(made, rows.n_given, n_components, source)

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
        super().__init__(least_rows)
        if sample_weight is not None:
            raise ValueError(
                "sample_weight goes with the batches: let X yield pairs (rows, weights), and pass no "
                "sample_weight."
            )
        self.X, batches = X, Batches(X)
        validate_data(estimator, batches.first(), skip_check_array=True, reset=reset)
        self._around = lambda origin: BatchRows(batches, origin, estimator.n_jobs, on_pass)


class GivenCollection(_GivenParts):
    """A Dask array or data frame; the parameters are those of `given_rows`.

    Attributes
    ----------
    X : dask.array.Array of float64 or float32
    """

    def __init__(self, estimator, X, sample_weight, reset, least_rows, on_pass):
        from sklearn_lrvb.row_blocks.dask_collections import float_array, template, weight_array
        from sklearn_lrvb.row_blocks.dask_rows import DaskRows

        super().__init__(least_rows)
        validate_data(estimator, template(X), skip_check_array=True, reset=reset)
        self.X = array = float_array(X)
        weights = weight_array(sample_weight, array)
        self._around = lambda origin: DaskRows(array, weights, origin, estimator.n_jobs, on_pass)
