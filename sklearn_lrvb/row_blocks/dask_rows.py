"""The rows of a Dask array or data frame, wherever their chunks are.

Every pass is a graph of its own: a task for every group of small chunks, and a tree of sums whose shape
depends on the chunks alone, so that results do not depend on which worker is done first. Functions travel
once to every worker, as a task that they depend on: so they are made again if a worker is lost.

Dask is imported by whoever has made the collection. This file is imported then, and not before.
"""

import copy
import functools
import string

import dask
import dask.array as da
import numpy as np
from dask import delayed

from sklearn_lrvb.row_blocks.array_rows import ArrayRows
from sklearn_lrvb.row_blocks.blocks import added, untracked
from sklearn_lrvb.row_blocks.parted_rows import Part, PartedRows
from sklearn_lrvb.row_blocks.surveys import require_finite, survey_of_part
from sklearn_lrvb.row_blocks.threads import blas_threads

# A task takes chunks together up to this size. A task takes the scheduler a millisecond, in which a worker
# passes over some 200 kB; larger groups would bring together chunks that lie on different workers.
_GROUP_BYTES = 2**23
_SUMMED_AT_ONCE = 16  # Sums that a task of the tree adds up.


class DaskRows(PartedRows):
    """The rows of a Dask array.

    Parameters
    ----------
    X : dask.array.Array (n_samples, n_features) of float64 or float32, whose columns are in one chunk
    sample_weight : dask.array.Array (n_samples,) of float64 with the chunks of X, or None
    origin, n_jobs, on_pass : as in `PartedRows`
    """

    is_lazy = True

    def __init__(self, X, sample_weight=None, origin=None, n_jobs=None, on_pass=None):
        super().__init__(origin, n_jobs, on_pass)
        self._X = X
        self._sample_weight = sample_weight

    @property
    def dtype(self):
        return self._X.dtype

    @property
    def n_features(self):
        return self._X.shape[1]

    def name_of_part(self, number):
        return f"chunk {number}"

    # Passes.

    @functools.cached_property
    def _chunks(self):
        """Every chunk of X, and its weights or None: list of pairs of Delayed."""
        chunks = self._X.to_delayed().ravel().tolist()
        if self._sample_weight is None:
            return [(chunk, None) for chunk in chunks]
        return list(zip(chunks, self._sample_weight.to_delayed().tolist(), strict=True))

    @functools.cached_property
    def _groups(self):
        """Consecutive chunks that a task takes together: list of ranges."""
        lengths = np.array(self._X.chunks[0], dtype=float)
        if np.isnan(lengths).any():
            lengths = self.survey.lengths if "survey" in vars(self) else np.full(len(lengths), np.inf)
        sizes = np.maximum(lengths, 1) * self.n_features * self.dtype.itemsize
        groups, size = [], np.inf
        for number, own in enumerate(sizes):
            if size + own > _GROUP_BYTES:
                groups.append([])
                size = 0.0
            groups[-1].append(number)
            size += own
        return groups

    def _surveyed(self):
        node = delayed(_survey_of_group, pure=False)
        chunks = [[self._chunks[number] for number in group] for group in self._groups]
        survey = self._computed(_tree([node(*_unzipped(group)) for group in chunks]))
        if np.isnan(self._X.chunks[0]).any():
            vars(self).pop("_groups")  # Now the lengths are known, by which small chunks are grouped.
        return survey

    def _summed(self, function, along=None):
        return self._computed(_tree(list(self._calls(_sum_of_group, function, along))))

    def _listed(self, function, by_part=None):
        lists = self._computed(delayed(list)(list(self._calls(_list_of_group, function, by_part=by_part))))
        return [result for results in lists for result in results]

    def _calls(self, of_group, function, along=None, by_part=None):
        """Yield Delayed calls of a function for every group of parts, or for those with a first argument."""
        function = delayed(function, pure=False, traverse=False)
        call = delayed(of_group, pure=False, traverse=True)
        along_chunks = None if along is None else self._chunks_along(along)
        for group in self._groups:
            if by_part is not None:
                group = [number for number in group if number in by_part]
                if not group:
                    continue
            described = [self._described(number) for number in group]
            further = None
            if along_chunks is not None:
                further = [along_chunks(number) for number in group]
            elif by_part is not None:
                further = [by_part[number] for number in group]
            yield call(function, described, *_unzipped([self._chunks[number] for number in group]), further)

    def _chunks_along(self, along):
        """Function of the number of a part -> its rows of an array that runs along the rows."""
        if isinstance(along, da.Array):
            lengths = tuple(self.survey.lengths.tolist())
            if not np.isnan(along.shape[0]) and along.chunks != (lengths, along.shape[1:]):
                along = along.rechunk((lengths, -1))
            return along.to_delayed().ravel().tolist().__getitem__
        return lambda number: along[self.place_along(number, along)]

    def _computed(self, node):
        """The value of a Delayed, by the scheduler that Dask is set to."""
        try:
            with blas_threads(1):  # Of this process, whose threads Dask may use.
                (result,) = dask.compute(node)
        except Exception as error:
            if _is_lost(error):
                raise RuntimeError(
                    f"The Dask cluster was lost in a pass over X ({type(error).__name__}: {error}). Nothing "
                    "was changed. Connect to a cluster, make X there, and call again."
                ) from error
            raise
        self._passed()
        return result

    @property
    def _n_jobs_of_part(self):
        return 1  # Dask runs tasks in parallel.

    # Results with a row for each row.

    def each(self, function, shape=(), dtype=np.float64, tracked=untracked):
        axes = string.ascii_lowercase[1 : 1 + len(shape)]
        weights = [] if self._sample_weight is None else [self._sample_weight, "a"]
        return da.blockwise(
            _each_of_chunk,
            "a" + axes,
            self._X,
            "az",
            *weights,
            new_axes=dict(zip(axes, shape, strict=True)),
            concatenate=True,
            align_arrays=False,
            dtype=dtype,
            meta=np.empty((0,) * (1 + len(shape)), dtype),
            # As a task of its own it travels once to every worker.
            function=delayed(function, pure=False, traverse=False),
            origin=self.origin,
            shape=shape,
        )


def _unzipped(chunks):
    """Pairs of a chunk and its weights, as a list of chunks and one of weights."""
    return [chunk for chunk, _ in chunks], [weights for _, weights in chunks]


def _tree(results):
    """A Delayed that adds up Delayed results in a fixed order."""
    call = delayed(_sum_of_results, pure=False)
    while True:
        results = [
            call(results[start : start + _SUMMED_AT_ONCE])
            for start in range(0, len(results), _SUMMED_AT_ONCE)
        ]
        if len(results) == 1:
            return results[0]


def _is_lost(error):
    """Whether an error says that there is no scheduler, or no worker, to ask any more."""
    names = {one.__name__ for one in type(error).__mro__}
    return bool(names & {"CommClosedError", "CancelledError", "FutureCancelledError", "TimeoutError"})


# Tasks.


def _sum_of_results(results):
    """Sum of results of other tasks, which stay as they are: Dask may need them again."""
    return functools.reduce(added, results[1:], copy.deepcopy(results[0]))


def _survey_of_group(chunks, weights):
    surveys = map(survey_of_part, map(np.asarray, chunks), weights)
    return functools.reduce(added, surveys)


def _parts_of_group(described, chunks, weights):
    for attributes, chunk, weight in zip(described, chunks, weights, strict=True):
        yield Part(np.asarray(chunk), weight, *attributes)


def _sum_of_group(function, described, chunks, weights, along):
    parts = _parts_of_group(described, chunks, weights)
    if along is None:
        return functools.reduce(added, map(function, parts))
    return functools.reduce(
        added, (function(part, along=own) for part, own in zip(parts, along, strict=True))
    )


def _list_of_group(function, described, chunks, weights, arguments):
    parts = _parts_of_group(described, chunks, weights)
    if arguments is None:
        return [function(part) for part in parts]
    return [function(argument, part=part) for argument, part in zip(arguments, parts, strict=True)]


def _each_of_chunk(X, sample_weight=None, *, function, origin, shape):
    require_finite(X, sample_weight, "a chunk of X")
    if not len(X):
        return np.empty((0, *shape))
    return function(ArrayRows(X, origin, 1, sample_weight), tracked=untracked)
