"""Tables on Dask as encoded rows: every partition is described, and encoded, where it is."""

import functools
import operator

import dask
import dask.array as da
import numpy as np
import pandas as pd
from sklearn.utils.validation import validate_data

from sklearn_lrvb.mixed_tables.given_tables import part_of_table
from sklearn_lrvb.rows.dask_rows import DaskRows, float_array, is_frame, weight_array


def _meta(X):
    """An empty table with the columns of a collection."""
    if is_frame(X):
        return X._meta
    if isinstance(X, da.Array) and X.ndim == 2:
        return np.empty((0, X.shape[1]))
    raise ValueError(
        f"X is a Dask {type(X).__name__}: pass a dask.dataframe.DataFrame, or a dask.array.Array."
    )


def described_collection(estimator, X, sample_weight):
    """What the columns of a collection are, by a pass over its partitions: TableColumns."""
    validate_data(estimator, _meta(X), skip_check_array=True, reset=True)
    X = _with_whole_rows(X)
    weights = weight_array(sample_weight, X.to_dask_array() if is_frame(X) else X)
    parts = np.ravel(X.to_delayed()).tolist()
    of_parts = [None] * len(parts) if weights is None else weights.to_delayed().tolist()
    described = [
        dask.delayed(part_of_table)(f"Chunk {number}", part, own, estimator.columns)
        for number, (part, own) in enumerate(zip(parts, of_parts, strict=True))
    ]
    return functools.reduce(operator.add, dask.compute(*described)).checked()


def encoded_rows(estimator, columns, X, sample_weight, unknown, least_rows):
    """The rows of a collection, each partition encoded where it is: DaskRows."""
    validate_data(estimator, _meta(X), skip_check_array=True, reset=False)
    X, names = _with_whole_rows(X), [f"x{k}" for k in range(len(columns.columns))]
    # Weights are not at hand where a partition is encoded: then no row tells of categories without rows.
    given = columns, unknown, sample_weight is None
    if is_frame(X):
        meta = pd.DataFrame({name: np.empty(0) for name in names})
        encoded = X.map_partitions(_encoded_frame, *given, names, meta=meta)
    else:
        chunks = (X.chunks[0], (len(names),))
        encoded = X.map_blocks(_encoded_array, *given, dtype=np.float64, chunks=chunks)
    encoded = float_array(encoded)
    weights = weight_array(sample_weight, encoded)
    return DaskRows(encoded, weights, np.zeros(len(names)), estimator.n_jobs, least_rows, None)


def _with_whole_rows(X):
    """A collection none of whose chunks has a part of the columns only."""
    return X if is_frame(X) else X.rechunk({1: -1})


def _encoded_frame(part, columns, unknown, counts, names):
    return pd.DataFrame(columns.encoded(part, unknown, counts), columns=names, index=part.index)


def _encoded_array(block, columns, unknown, counts):
    return columns.encoded(block, unknown, counts)
