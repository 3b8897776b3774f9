"""The rows of a source of batches: anything that can be gone through again and again.

A pass goes through the source once and keeps one batch at a time.
"""

import functools
from collections.abc import Iterator, Sequence

import numpy as np
from sklearn.utils import check_array
from sklearn.utils.validation import _get_feature_names

from sklearn_lrvb.row_blocks.blocks import added, untracked
from sklearn_lrvb.row_blocks.holed_rows import rows_of_array
from sklearn_lrvb.row_blocks.parted_rows import ChangedRowsError, Part, PartedRows
from sklearn_lrvb.row_blocks.surveys import checked_for_holes, survey_of_part
from sklearn_lrvb.row_blocks.tables import as_numbers, refuse_masked

# What an object has that scikit-learn takes for one table.
_OF_TABLES = ("__array__", "__dataframe__", "shape", "keys", "read")


class Batches:
    """A source of batches, which are checked as it is gone through.

    Parameters
    ----------
    source : object for which `is_source` is true
    """

    def __init__(self, source):
        self.source = source

    @staticmethod
    def is_source(X):
        """Whether X is a source of batches: a callable, a sequence of tables, or another iterable."""
        if any(hasattr(X, name) for name in _OF_TABLES) or isinstance(X, (str, bytes)):
            return False
        if isinstance(X, Sequence):
            return len(X) > 0 and np.ndim(_divided(X[0])[0]) == 2 and hasattr(_divided(X[0])[0], "shape")
        return callable(X) or hasattr(X, "__iter__")

    def __iter__(self):
        """Yield the rows of every batch, float64 or float32, and their weights or None."""
        n_features = names = None
        for number, batch in enumerate(self._started()):
            X, weights = _checked(batch, number)
            own_names = _get_feature_names(_divided(batch)[0])
            names = own_names if number == 0 else names
            if names is not None and own_names is not None and list(names) != list(own_names):
                raise ValueError(
                    f"Batch {number} of X has the columns {_listed(own_names)}, but batch 0 has "
                    f"{_listed(names)}: all batches must have the same columns in the same order."
                )
            if n_features not in (None, X.shape[1]):
                raise ValueError(
                    f"Batch {number} of X has {X.shape[1]} columns, but batch 0 has {n_features}: all "
                    "batches must have the same columns."
                )
            n_features = X.shape[1]
            yield X, weights

    def _started(self):
        """An iterator over the batches, from the first one on."""
        source = self.source
        if isinstance(source, Iterator):
            raise ValueError(
                f"X is a {type(source).__name__}, which can be gone through once only, and a fit makes some "
                "twenty passes. (a) Pass a function that starts it anew, such as lambda: read_batches(path). "
                "(b) Pass an object whose __iter__ does. (c) Pass a list of arrays or of memory maps."
            )
        return iter(source() if callable(source) else source)

    def first(self):
        """The first batch as it comes, without its weights."""
        for batch in self._started():
            return _divided(batch)[0]
        raise ValueError("X yields no batch, so that there are no rows.")


def _divided(batch):
    """The rows of a batch as they come, and their weights or None."""
    return batch if isinstance(batch, tuple) and len(batch) == 2 else (batch, None)


def _listed(names):
    """The first names of columns, for an error message."""
    return ", ".join(map(str, names[:5])) + ", ..." * (len(names) > 5)


def _checked(batch, number):
    """The rows of a batch, float64 or float32, and their weights as float64 or None."""
    X, weights = _divided(batch)
    check = functools.partial(
        check_array, dtype=[np.float64, np.float32], ensure_all_finite=False, ensure_min_samples=0, copy=False
    )
    try:
        X = as_numbers(X, check)
        refuse_masked(weights)
        if weights is not None:
            weights = check_array(
                weights, dtype=np.float64, ensure_2d=False, ensure_all_finite=False, ensure_min_samples=0
            )
            if weights.shape != X.shape[:1]:
                raise ValueError(f"its weights have shape {weights.shape}, but it has {len(X)} rows.")
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"Batch {number} of X: {error}") from error
    return X, weights


class BatchRows(PartedRows):
    """The rows of a source of batches.

    Parameters
    ----------
    batches : Batches
    origin, n_jobs, on_pass : as in `PartedRows`
    """

    def __init__(self, batches, origin=None, n_jobs=None, on_pass=None):
        super().__init__(origin, n_jobs, on_pass)
        self._batches = batches
        self._dtype = np.dtype(np.float64)

    @property
    def dtype(self):
        return self._dtype

    @property
    def n_features(self):
        return len(self.survey.mean)

    def name_of_part(self, number):
        return f"batch {number}"

    def _surveyed(self):
        surveys = []
        for X, weights in self._batches:
            self._dtype = X.dtype
            surveys.append(survey_of_part(X, weights))
        self._passed()
        # Pairs of equal size are added, so that many batches take little time.
        while len(surveys) > 1:
            pairs = zip(surveys[::2], [*surveys[1::2], None], strict=False)
            surveys = [one if other is None else one + other for one, other in pairs]
        return surveys[0] if surveys else None

    def _parts(self):
        """Yield all parts, and check that there are as many as in the first pass."""
        number = -1
        for number, (X, weights) in enumerate(self._batches):
            if number == len(self.survey.lengths):
                break
            yield Part(X, weights, *self._described(number))
        if number + 1 != len(self.survey.lengths):
            more = "more than" if number == len(self.survey.lengths) else f"only {number + 1} of"
            raise ChangedRowsError(
                f"X yields {more} the {len(self.survey.lengths)} batches of the first pass. A fit reads X "
                "many times, and needs the same rows every time."
            )
        self._passed()

    def _summed(self, function, along=None):
        total = None
        for number, part in enumerate(self._parts()):
            own = {} if along is None else {"along": along[self.place_along(number, along)]}
            total = added(total, function(part, **own))
        return total

    def _listed(self, function, by_part=None):
        if by_part is None:
            return [function(part) for part in self._parts()]
        return [
            function(by_part[number], part=part)
            for number, part in enumerate(self._parts())
            if number in by_part
        ]

    def each(self, function, shape=(), dtype=np.float64, tracked=untracked):
        return np.concatenate([np.empty((0, *shape), dtype), *self._results(function)])

    def each_into(self, out, function):
        """The results of `each`, written into an array with a row for every row, batch by batch."""
        start = 0
        for result in self._results(function):
            out[start : start + len(result)] = result
            start += len(result)
        return out

    def _results(self, function):
        """Yield a function of the rows of every batch, rows of weight zero and all."""
        for number, (X, weights) in enumerate(self._batches):
            has_holes = checked_for_holes(X, weights, self.name_of_part(number))
            if len(X):
                rows = rows_of_array(X, self.origin, self.n_jobs, weights, holes_known=has_holes)
                yield function(rows, tracked=untracked)
