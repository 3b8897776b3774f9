"""Dask collections as the arrays that `dask_rows` takes, and what is refused of them."""

import uuid

import dask.array as da
import numpy as np

from sklearn_lrvb.row_blocks.tables import named, refuse_masked, refuse_times, unmasked

_FLOATS = (np.dtype(np.float64), np.dtype(np.float32))


def is_frame(X):
    """Whether a collection is a data frame."""
    return not isinstance(X, da.Array) and hasattr(X, "to_dask_array") and getattr(X, "ndim", 0) == 2


def template(X):
    """An empty table with the columns of a collection, from which their number and names are read.

    Raises
    ------
    ValueError, TypeError
        Where the collection is no table of numbers.
    """
    if is_frame(X):
        refuse_times(X._meta)
        if not len(X.columns):
            raise ValueError("Found array with 0 feature(s), because X has no columns.")
        words = [number for number, dtype in enumerate(X.dtypes) if not _is_numeric(dtype)]
        if words:
            raise ValueError(f"Column(s) {named(words, X.columns)} of X are no numbers. Drop or encode them.")
        return X._meta
    if not isinstance(X, da.Array):
        raise ValueError(
            f"X is a Dask {type(X).__name__}: pass a dask.array.Array, or a dask.dataframe.DataFrame."
        )
    if X.ndim != 2:
        raise ValueError(f"Expected a Dask array with 2 dimensions, rows and columns, but X has {X.ndim}.")
    if np.isnan(X.shape[1]):
        raise ValueError("The number of columns of X is not known. Call X.compute_chunk_sizes() first.")
    if not X.shape[1]:
        raise ValueError(f"Found array with 0 feature(s) (shape={X.shape}) while a minimum of 1 is required.")
    if X.numblocks[1] > 1:
        raise ValueError(
            f"The columns of X are in {X.numblocks[1]} chunks, but a fit needs whole rows: pass "
            "X.rechunk({1: -1}), and persist it, because otherwise every pass rechunks it again."
        )
    if not isinstance(X._meta, np.ndarray):
        raise ValueError(
            f"The chunks of X are of {type(X._meta).__name__}, but a fit needs NumPy arrays: pass "
            "X.map_blocks with a function that converts them."
        )
    refuse_times(np.empty((0, X.shape[1]), X.dtype))
    if np.issubdtype(X.dtype, np.complexfloating):
        raise ValueError("Complex data not supported: X is complex.")
    return np.empty((0, X.shape[1]))


def _is_numeric(dtype):
    """Whether the columns of a dtype, of NumPy or of pandas, are real numbers."""
    return getattr(dtype, "kind", "O") in "biuf"


def float_array(X):
    """A collection for which there is a `template`, as array of float64 or float32."""
    if is_frame(X):
        if len(set(X.dtypes)) > 1 or X.dtypes.iloc[0] not in _FLOATS:
            X = X.astype(np.float64)
        array = X.to_dask_array()
        # Chunks under names of our own: the scheduler may know the user's array of the same frame.
        name = f"lrvb-rows-{uuid.uuid4().hex}"
        X = array.map_blocks(np.asarray, name=name, dtype=array.dtype, meta=array._meta)
    X = X if X.dtype in _FLOATS else X.astype(np.float64)
    is_masked = isinstance(X._meta, np.ma.MaskedArray)
    return X.map_blocks(unmasked, dtype=X.dtype, meta=np.empty((0, 0), X.dtype)) if is_masked else X


def weight_array(sample_weight, X):
    """Weights of the rows as float64 array with the chunks of X; None stays None.

    Parameters
    ----------
    sample_weight : dask collection of one dimension, array-like, or None
    X : dask.array.Array, from `float_array`

    Raises
    ------
    ValueError
        Where they cannot be brought together with the rows of X.
    """
    if sample_weight is None:
        return None
    refuse_masked(sample_weight)
    is_known = not np.isnan(X.chunks[0]).any()
    if hasattr(sample_weight, "to_dask_array"):
        sample_weight = sample_weight.to_dask_array()
    if not isinstance(sample_weight, da.Array):
        weights = np.asarray(sample_weight)
        if not is_known:
            raise ValueError(
                "sample_weight is in memory, but the lengths of the chunks of X are not known. (a) Pass "
                "sample_weight as a Dask array or series with the partitions of X. (b) Call "
                "X.compute_chunk_sizes() first; of a data frame, pass X.to_dask_array(lengths=True)."
            )
        if weights.shape != X.shape[:1]:
            raise ValueError(f"sample_weight has shape {weights.shape}, but X has {X.shape[0]} rows.")
        return da.from_array(weights.astype(np.float64), chunks=(X.chunks[0],))
    if sample_weight.ndim != 1:
        raise ValueError(f"sample_weight must have 1 dimension, but has {sample_weight.ndim}.")
    if isinstance(sample_weight._meta, np.ma.MaskedArray):
        raise ValueError(
            "sample_weight is a masked array on Dask, but every row needs a weight. Pass "
            "dask.array.ma.filled(sample_weight, 0): rows whose weight is masked then do not count."
        )
    weights = sample_weight.astype(np.float64)
    if is_known and not np.isnan(weights.shape[0]):
        if weights.shape != X.shape[:1]:
            raise ValueError(f"sample_weight has {weights.shape[0]} rows, but X has {X.shape[0]}.")
        return weights.rechunk((X.chunks[0],))
    if weights.numblocks != X.numblocks[:1]:
        raise ValueError(
            f"sample_weight has {weights.numblocks[0]} chunks of unknown length, but X has {X.numblocks[0]}: "
            "both must be partitioned in the same way."
        )
    return weights
