"""The rows of a Dask array or data frame, wherever their chunks are.

What a user passes becomes an array first, or is refused. Then every pass is a graph of its own: a task for
every group of small chunks, and a tree that combines their results, whose shape depends on the chunks alone,
so that results do not depend on which worker is done first. Functions travel once to every worker, as a task
that they depend on: so they are made again if a worker is lost.

Dask is imported by whoever has made the collection. This file is imported then, and not before.
"""

import contextlib
import copy
import ctypes
import functools
import os
import string
import uuid

import dask
import dask.array as da
import numpy as np
from dask import core, delayed
from dask.delayed import Delayed

from sklearn_lrvb.rows.blocks import untracked
from sklearn_lrvb.rows.given_rows import named, refuse_masked, refuse_times, unmasked
from sklearn_lrvb.rows.parts import Part, PartedRows, all_rows_of_part
from sklearn_lrvb.rows.threads import blas_threads

_FLOATS = (np.dtype(np.float64), np.dtype(np.float32))
# A task takes chunks together up to this size. A task takes the scheduler a millisecond, in which a worker
# passes over some 400 kB; larger groups would bring together chunks that lie on different workers.
_GROUP_BYTES = 2**23
_ERRORS_OF_A_LOST_CLUSTER = {
    "CommClosedError",
    "ClosedClientError",
    "CancelledError",
    "FutureCancelledError",
    "TimeoutError",
}
_COMBINED_AT_ONCE = 16  # Results that a task of the tree combines.

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # Parameters of mallopt in the GNU C library ...
_DEFAULT_MMAP_THRESHOLD = 2**17  # ... and what the second one is.
_KEPT_BYTES = 2**26  # Free memory that is kept: far more than a block takes, and far less than a chunk.


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
    X = X if X.dtype in _FLOATS else X.map_blocks(_as_numbers, dtype=np.float64)
    is_masked = isinstance(X._meta, np.ma.MaskedArray)
    return X.map_blocks(unmasked, dtype=X.dtype, meta=np.empty((0, 0), X.dtype)) if is_masked else X


def _as_numbers(chunk):
    """A chunk as float64, of objects too, but not where these are dates or durations."""
    refuse_times(chunk)
    return chunk.astype(np.float64)


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


class DaskRows(PartedRows):
    """The rows of a Dask array.

    Parameters
    ----------
    X : dask.array.Array (n_samples, n_features) of float64 or float32, from `float_array`
    sample_weight : dask.array.Array (n_samples,) of float64 with the chunks of X, or None
    origin, n_jobs, least_rows, on_pass : as in `PartedRows`
    """

    is_lazy = True
    part_name = "chunk"

    def __init__(self, X, sample_weight, origin, n_jobs, least_rows=1, on_pass=None):
        super().__init__(origin, n_jobs, least_rows, on_pass)
        self.X, self.dtype, self.n_features = X, X.dtype, X.shape[1]
        self._sample_weight = sample_weight
        self._n_jobs_of_part = 1  # Dask runs tasks in parallel.

    def reweighted(self, factors):
        if not isinstance(factors, da.Array):
            factors = da.from_array(factors, chunks=(tuple(self.survey.lengths.tolist()),))
        weights = factors
        if self._sample_weight is not None:  # Chunks go together, also where their lengths are not known.
            weights = da.map_blocks(np.multiply, self._sample_weight, factors, dtype=np.float64)
        return DaskRows(self.X, weights, self.origin, self.n_jobs, self._least_rows, self._on_pass)

    # Passes.

    @functools.cached_property
    def _chunks(self):
        """The tasks that make the chunks of X and of its weights, and the keys of every chunk's two results.

        Without weights the second key is None.
        """
        tasks, keys = _tasks_and_keys(self.X)
        weights = [None] * len(keys)
        if self._sample_weight is not None:
            tasks_of_weights, weights = _tasks_and_keys(self._sample_weight)
            tasks = {**tasks, **tasks_of_weights}
        return tasks, [list(pair) for pair in zip(keys, weights, strict=True)]

    def _lengths(self):
        """Number of rows of every chunk as floats, NaN where it is not known before a survey."""
        lengths = np.array(self.X.chunks[0], dtype=float)
        is_surveyed = np.isnan(lengths).any() and "survey" in vars(self)
        return self.survey.lengths.astype(float) if is_surveyed else lengths

    def _groups(self):
        """Consecutive chunks that a task takes together: list of lists of numbers."""
        sizes = np.maximum(self._lengths(), 1) * self.n_features * self.dtype.itemsize
        groups, size = [], np.inf
        for number, own in enumerate(np.nan_to_num(sizes, nan=np.inf)):
            if size + own > _GROUP_BYTES:
                groups.append([])
                size = 0.0
            groups[-1].append(number)
            size += own
        return groups

    def _reduced(self, combine, function, along=None):
        # Tasks are written one by one, in the form that all versions of Dask take, because a `dask.delayed`
        # call takes longer than the scheduler needs for the task. They have names of their own, so that no
        # scheduler takes the result of another pass for that of this one.
        tasks, chunks = self._chunks
        tasks, name = dict(tasks), f"lrvb-pass-{uuid.uuid4().hex}"

        def add(task):
            key = (name, len(tasks))
            tasks[key] = task
            return key

        if isinstance(along, da.Array):
            if not np.isnan(along.shape[0]):
                lengths = tuple(self.survey.lengths.tolist())
                along = along.rechunk((lengths, *[-1] * (along.ndim - 1)))
            tasks_of_along, keys = _tasks_and_keys(along)
            tasks.update(tasks_of_along)
            chunks = [[*chunk, key] for chunk, key in zip(chunks, keys, strict=True)]
        elif along is not None:
            chunks = [[*chunk, add(self._rows_along(number, along))] for number, chunk in enumerate(chunks)]
        function = add(function)  # As a task it travels once to every worker.
        results = [
            add((functools.partial(_of_group, combine, numbers), function, [chunks[n] for n in numbers]))
            for numbers in self._groups()
        ]
        combined = functools.partial(_combined, combine)
        while len(results) > 1:
            starts = range(0, len(results), _COMBINED_AT_ONCE)
            results = [add((combined, results[start : start + _COMBINED_AT_ONCE])) for start in starts]
        return self._computed(results[0], tasks)

    def _computed(self, key, tasks):
        """The result of a pass, by the scheduler that Dask is set to."""
        try:
            with blas_threads(1):  # Of this process, whose threads Dask may use.
                (result,) = dask.compute(Delayed(key, tasks))
        except Exception as error:
            if _is_lost(error):
                why = str(error).partition("\n")[0]
                raise RuntimeError(
                    f"The Dask cluster was lost in a pass over X ({type(error).__name__}: {why}). Nothing "
                    "was changed. Connect to a cluster, make X there, and call again."
                ) from error
            raise
        self._passed()
        return result

    # Results with a row for each row.

    def by_array(self, function, shape=(), dtype=np.float64, tracked=untracked):
        axes = string.ascii_lowercase[1 : 1 + len(shape)]
        weights = [] if self._sample_weight is None else [self._sample_weight, "a"]
        lengths = self._lengths()
        # Before a survey, rows of chunks of unknown length are counted within the chunk.
        first = np.nan_to_num(np.cumsum(lengths) - lengths).astype(np.intp)
        return da.blockwise(
            _each_of_chunk,
            "a" + axes,
            self.X,
            "az",
            da.from_array(first, chunks=1),
            "a",
            *weights,
            new_axes=dict(zip(axes, shape, strict=True)),
            concatenate=True,
            align_arrays=False,
            dtype=dtype,
            meta=np.empty((0,) * (1 + len(shape)), dtype),
            # As a task of its own it travels once to every worker.
            function=delayed(function, pure=False, traverse=False),
            origin=self.origin,
            of_no_rows=np.empty((0, *shape), dtype),
        )


def _tasks_and_keys(array):
    """The tasks that make the chunks of an array, dict; and the keys of these, list."""
    graph, keys = array.__dask_graph__(), list(core.flatten(array.__dask_keys__()))
    optimized = dict(array.__dask_optimize__(graph, array.__dask_keys__()))
    # Of chunks that are there already nothing would be left.
    return optimized if optimized.keys() >= set(keys) else dict(graph), keys


def _is_lost(error):
    """Whether an error says that there is no scheduler, or no worker, to ask any more."""
    names = {one.__name__ for one in type(error).__mro__}
    # Before 2025, a client that is closed raises an Exception of no class of its own.
    is_closed = str(error).startswith("Tried sending message after closing")
    return is_closed or bool(names & _ERRORS_OF_A_LOST_CLUSTER)


# Tasks.


@contextlib.contextmanager
def _steady_allocator():
    """Context in which the C library, where it is GNU's, keeps the memory of a block for the next one.

    Dask starts worker processes with MALLOC_TRIM_THRESHOLD_=65536, by which freed memory goes back to the
    system as soon as it can. A pass makes and frees a megabyte for every block, which the kernel then has to
    map and to zero again and again: fits of "plane-five" and "many-rows-ten" took 1.6 and 1.7 times as long.
    Afterwards the setting of the environment holds again; for tasks that still run, that is slower at worst.
    """
    threshold, mallopt = os.environ.get("MALLOC_TRIM_THRESHOLD_", ""), None
    with contextlib.suppress(AttributeError, OSError, TypeError):
        mallopt = ctypes.CDLL(None).mallopt
    if mallopt is None or not threshold.isdigit() or int(threshold) >= _KEPT_BYTES:
        yield
        return
    mallopt(_TRIM_THRESHOLD, _KEPT_BYTES)
    mallopt(_MMAP_THRESHOLD, _KEPT_BYTES // 2)
    try:
        yield
    finally:
        mallopt(_TRIM_THRESHOLD, int(threshold))
        mallopt(_MMAP_THRESHOLD, _DEFAULT_MMAP_THRESHOLD)


def _combined(combine, results):
    """Results of other tasks combined, which stay as they are: Dask may need them again."""
    return functools.reduce(combine, results[1:], copy.deepcopy(results[0]))


@_steady_allocator()
def _of_group(combine, numbers, function, chunks):
    """A function of the chunks of a group, whose numbers are given, combined."""
    parts = (Part(number, np.asarray(X), *own) for number, (X, *own) in zip(numbers, chunks, strict=True))
    return functools.reduce(combine, map(function, parts))


@_steady_allocator()
def _each_of_chunk(X, first, sample_weight=None, *, function, origin, of_no_rows):
    rows = all_rows_of_part("a chunk of X", X, sample_weight, origin, 1, int(first[0]))
    return function(rows, tracked=untracked) if len(X) else of_no_rows
