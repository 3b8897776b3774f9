"""A user's table as encoded rows: in memory, in batches, or on Dask.

A table in memory is encoded once. Rows in parts are described by a first pass over them, and every later pass
encodes a part when it needs it, so that memory holds one part at a time.
"""

import contextlib
import functools
import operator

import numpy as np
from sklearn.utils.validation import validate_data

from sklearn_lrvb.mixed_tables.given_columns import given_table
from sklearn_lrvb.mixed_tables.table import described, described_part
from sklearn_lrvb.rows.array_rows import ArrayRows
from sklearn_lrvb.rows.given_rows import (
    checked_weights,
    divided,
    first_batch,
    is_dask,
    is_source,
    weights_of_part,
)
from sklearn_lrvb.rows.parts import BatchRows


def described_table(estimator, X, sample_weight):
    """What the columns of a training table are: TableColumns. It sets the estimator's number and names of
    features.

    Parameters
    ----------
    estimator : LRVBLatentClassMixture, which says the types of columns
    X : table, source of batches or Dask data frame
    sample_weight : array-like (n_samples,) or None
    """
    if is_dask(X):
        from sklearn_lrvb.mixed_tables.dask_tables import described_collection

        return described_collection(estimator, X, sample_weight)
    if is_source(X):
        _refuse_weights(sample_weight)
        validate_data(estimator, first_batch(X), skip_check_array=True, reset=True)
        batches = enumerate(map(divided, X() if callable(X) else X))
        parts = (part_of_table(f"Batch {n}", *batch, estimator.columns) for n, batch in batches)
        return functools.reduce(operator.add, parts).checked()
    columns = described(X, estimator.columns, checked_weights(sample_weight, X))
    validate_data(estimator, X, skip_check_array=True, reset=True)
    return columns


def part_of_table(name, rows, sample_weight, kinds):
    """What a part of a table, named in errors, tells of its columns: TableColumns, not yet checked."""
    with _named_in_errors(name):
        weights = weights_of_part(sample_weight, rows.shape[0])
        wrong = [] if weights is None else np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
        if len(wrong):
            raise ValueError(
                f"sample_weight is {weights[wrong[0]]:g} in row {wrong[0]}, which is no number of rows, and "
                f"so in {len(wrong)} row(s). Correct it, or pass 0, and the row does not count."
            )
        return described_part(rows, kinds, weights)


@contextlib.contextmanager
def _named_in_errors(name):
    """Errors of a part of X begin with its name."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{name} of X: {error}") from error


def rows_of_table(estimator, columns, X, sample_weight=None, is_training=False):
    """The rows that a user has passed, encoded, also those that do not count: Rows.

    Parameters
    ----------
    estimator : LRVBLatentClassMixture, which has the number and the names of the features
    columns : TableColumns
    X, sample_weight : what the user has passed
    is_training : bool, whether a fit asks, which needs two rows
    """
    unknown, least = estimator.unknown, 2 if is_training else 1
    origin = np.zeros(len(columns.columns))
    if is_dask(X):
        from sklearn_lrvb.mixed_tables.dask_tables import encoded_rows

        return encoded_rows(estimator, columns, X, sample_weight, unknown, least)
    if is_source(X):
        _refuse_weights(sample_weight)
        batches = functools.partial(_encoded_batches, X, columns, unknown)
        return BatchRows(X, batches, origin, estimator.n_jobs, least, None)
    if not is_training:
        given_table(X)  # scikit-learn counts columns, and does not say of one axis what to do.
        validate_data(estimator, X, skip_check_array=True, reset=False)
    weights = checked_weights(sample_weight, X)
    encoded = columns.encoded(X, unknown, True if weights is None else weights > 0)
    if len(encoded) < least:
        raise ValueError(
            f"Found array with {len(encoded)} sample(s) (shape={encoded.shape}) while a minimum of {least} "
            "is required."
        )
    return EncodedRows(encoded, origin, estimator.n_jobs, weights)


class EncodedRows(ArrayRows):
    """Rows whose blocks keep NaN where a value is missing: there are no patterns to sort by."""

    def which_count(self):
        kept = ~np.isnan(self.X).all(axis=1)
        return kept if self.sample_weight is None else kept & (self.sample_weight > 0)

    def counted(self):
        kept = self.which_count()
        if not kept.any():
            raise ValueError(
                f"X has no value: all are missing in its {self.n_samples} rows of positive weight."
            )
        return self if kept.all() else self.chosen(np.flatnonzero(kept))


def _refuse_weights(sample_weight):
    if sample_weight is not None:
        raise ValueError(
            "sample_weight goes with the batches: let X yield pairs (rows, weights), and pass no "
            "sample_weight."
        )


def _encoded_batches(X, columns, unknown):
    for number, batch in enumerate(X() if callable(X) else X):
        rows, weights = divided(batch)
        with _named_in_errors(f"Batch {number}"):
            weights = weights_of_part(weights, rows.shape[0])
            encoded = columns.encoded(rows, unknown, True if weights is None else weights > 0)
        yield encoded, weights
