"""Rows that come in parts, one after the other or in many places, and never all at once.

Every part is an array with a number. A first pass surveys all parts: their lengths and checksums, the mean,
the variances and the range of the columns, and the first value that is no number. A later pass makes
`ArrayRows` of every part, goes through its blocks, and adds up. It compares checksums, so that rows that
change are noticed.

The parts are here the batches of a source, anything that can be gone through again and again: one batch is
kept at a time. `dask_rows` has the chunks of a Dask collection.
"""

import functools
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from sklearn.utils import check_array
from sklearn.utils.validation import _get_feature_names

from sklearn_lrvb.rows.array_rows import ArrayRows, Rows, has_holes, rows_of_array
from sklearn_lrvb.rows.blocks import added, untracked
from sklearn_lrvb.rows.tables import as_numbers, counted, refuse_masked


@dataclass(frozen=True)
class Problem:
    """The first value of X, or of its weights, that cannot be used.

    Attributes
    ----------
    part, row : int, number of the part, and of the row in it
    what : str, what is wrong there
    """

    part: int
    row: int
    what: str


@dataclass(frozen=True)
class Survey:
    """The result of the first pass over some consecutive parts; those of later parts are added with ``+``.

    Attributes
    ----------
    lengths : int array (m,), number of rows of each part
    counted : int array (m,), how many of these have a positive weight and a value
    weights : float array (m,), their weights together
    seen : (P,), weight of the rows that have a value in a column
    checksums : uint64 array (m,)
    mean, squares : (P,), mean of the values, and sums of the squares of their differences from it
    smallest, largest : (P,), of all values
    has_holes : bool, whether values are missing
    problem : Problem or None
    """

    lengths: np.ndarray
    counted: np.ndarray
    weights: np.ndarray
    seen: np.ndarray
    checksums: np.ndarray
    mean: np.ndarray
    squares: np.ndarray
    smallest: np.ndarray
    largest: np.ndarray
    has_holes: bool = False
    problem: Problem | None = None

    @cached_property
    def starts(self):
        """Number of the first row of every part among the rows that count, (m,)."""
        return np.cumsum(self.counted) - self.counted

    def __add__(self, later):
        problem = self.problem
        if problem is None and later.problem is not None:
            problem = replace(later.problem, part=len(self.lengths) + later.problem.part)
        ours, theirs = self.seen, later.seen
        share = np.divide(theirs, ours + theirs, out=np.zeros_like(theirs), where=theirs > 0)
        with np.errstate(over="ignore", invalid="ignore"):  # Values that are too large are refused later.
            shift = later.mean - self.mean
            mean = self.mean + share * shift
            squares = self.squares + later.squares + ours * share * np.square(shift)
        return Survey(
            np.concatenate([self.lengths, later.lengths]),
            np.concatenate([self.counted, later.counted]),
            np.concatenate([self.weights, later.weights]),
            ours + theirs,
            np.concatenate([self.checksums, later.checksums]),
            mean,
            squares,
            np.minimum(self.smallest, later.smallest),
            np.maximum(self.largest, later.largest),
            self.has_holes or later.has_holes,
            problem,
        )


def survey_of_part(X, sample_weight=None):
    """`Survey` of one part.

    Parameters
    ----------
    X : array (n_rows, n_features) of float64 or float32
    sample_weight : float64 array (n_rows,) or None
    """
    problem = _problem(X, sample_weight)
    kept, weights = counted(X, sample_weight, has_holes(X))
    if problem is not None:  # No row counts then.
        kept, weights = slice(0), None
    rows = rows_of_array(X if kept is None else X[kept], np.zeros(X.shape[1]), None, weights)
    seen = mean = squares = np.zeros(X.shape[1])
    smallest, largest = rows.ranges()
    if rows.n_samples:
        # Values that are too large are refused later.
        with np.errstate(over="ignore", invalid="ignore"):
            rows = rows.around_mean()
            mean, seen = rows.origin, np.broadcast_to(rows.seen_weight, mean.shape).astype(np.float64)
            squares = np.where(seen > 0, rows.variances * seen, 0.0)
    return Survey(
        lengths=np.array([len(X)]),
        counted=np.array([rows.n_samples]),
        weights=np.array([float(rows.total_weight)]),
        seen=seen,
        checksums=np.array([checksum(X, sample_weight)], dtype=np.uint64),
        mean=mean,
        squares=squares,
        smallest=smallest.astype(np.float64),
        largest=largest.astype(np.float64),
        has_holes=rows.has_holes,
        problem=problem,
    )


def checked_for_holes(X, sample_weight, name):
    """Whether values of a part are missing.

    Parameters
    ----------
    X, sample_weight : as in `survey_of_part`
    name : str, what to call the part

    Raises
    ------
    ValueError
        Where a value is infinite, or a weight is no number of rows.
    """
    problem = _problem(X, sample_weight)
    if problem is not None:
        raise ValueError(f"{problem.what} at row {problem.row} of {name}.")
    return has_holes(X)


def _problem(X, sample_weight):
    """The first value of a part that cannot be used: Problem or None."""
    weights = np.zeros(len(X)) if sample_weight is None else sample_weight
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(X.sum(dtype=np.float64)) and np.isfinite(weights.sum()) and np.all(weights >= 0):
            return None
        is_bad = np.isinf(X).any(axis=1) | ~np.isfinite(weights) | (weights < 0)
    rows = np.flatnonzero(is_bad)
    if not rows.size:  # The sum alone has overflowed.
        return None
    row = int(rows[0])
    bad = np.flatnonzero(np.isinf(X[row]))
    if not bad.size:
        return Problem(0, row, f"sample_weight is {weights[row]:g}, which is no number of rows,")
    return Problem(0, row, f"Input X contains infinity in column {bad[0]}")


def checksum(X, sample_weight=None):
    """A number that changes with the number of rows, and with values of X or of its weights."""
    total = _sum_of_bits(X) + 5 * len(X)
    return (total if sample_weight is None else total + 3 * _sum_of_bits(sample_weight)) % 2**64


def _sum_of_bits(array):
    """Sum of the bits as integers of 32 bits, of which each is part of one number only.

    So it does not depend on the order in memory, which may change as a chunk travels or is written to disk.
    Sums of integers of 64 bits wrap around, and stay the same where an even number of rows changes its sign.
    """
    return int(array.ravel(order="K").view(np.uint32).sum(dtype=np.uint64))


class ChangedRowsError(ValueError):
    """Rows are not what they were in the first pass."""


@dataclass(frozen=True)
class Part:
    """Some of the rows, as a pass gets them.

    Attributes
    ----------
    X : array (n_rows, n_features) of float64 or float32
    sample_weight : float64 array (n_rows,) or None
    name : str, what to call it in a message
    checksum : int, of the first pass
    first : int, number of its first row among the rows that count
    has_holes : bool, whether values may be missing, if only in rows that do not count
    """

    X: np.ndarray
    sample_weight: np.ndarray | None
    name: str
    checksum: int
    first: int
    has_holes: bool

    def rows(self, origin, n_jobs=None):
        """Its rows that count, measured from an origin: `ArrayRows`.

        Raises
        ------
        ChangedRowsError
            Where they are not those of the first pass.
        """
        if checksum(self.X, self.sample_weight) != self.checksum:
            raise ChangedRowsError(
                f"X changed between two passes over it, first in {self.name}: a fit reads X many times, and "
                "needs the same rows every time. (a) If X is made by random numbers or read from a file that "
                "is being written, store it first. (b) If it is a Dask collection, persist it."
            )
        kept, weights = self.counted()
        X = self.X if kept is None else self.X[kept]
        known = None if self.has_holes else False
        return rows_of_array(X, origin, n_jobs, weights, self.first, known)

    def counted(self):
        """Which rows count, and their weights (`counted`)."""
        return counted(self.X, self.sample_weight, self.has_holes)


def _total_of_part(function, origin, n_jobs, workload, part, along=None):
    """Sum of ``function(block)`` over the blocks of a part; None where it has no rows."""
    rows = part.rows(origin, n_jobs)
    if along is not None and along.shape[0] != rows.n_samples:  # It runs along rows that do not count, too.
        if along.shape[0] != len(part.X):
            raise ValueError(
                f"In {part.name}, X has {len(part.X)} rows, but what runs along X, such as init_params or "
                f"groups, has {along.shape[0]}: both must be partitioned in the same way."
            )
        along = along[part.counted()[0]]
    return rows.total(function, workload, along)


def _mapped_of_part(function, origin, n_jobs, workload, part):
    """``function(block)`` of all blocks of a part: list."""
    return part.rows(origin, n_jobs).map(function, workload)


def _rows_at(positions, origin, part):
    """Numbers of the rows at the positions in a part (`Rows.at`), and these rows: (n,), (n, P).

    Parameters
    ----------
    positions : dict of float arrays by the names of parts
    """
    index, rows = part.rows(origin).at(positions[part.name])
    return index, rows.X


def _counted_rows(origin, part):
    """The rows of a part that count, and their weights: (n, P), (n,)."""
    rows = part.rows(origin)
    weights = rows.sample_weight
    return rows.X, np.ones(rows.n_samples) if weights is None else weights


def _chosen_rows(index, part):
    """Some rows of a part, and their weights: (n, P), (n,).

    Parameters
    ----------
    index : dict of int arrays by the names of parts, numbers of rows within the part
    """
    own = index[part.name]
    return part.X[own], np.ones(len(own)) if part.sample_weight is None else part.sample_weight[own]


def _which_count(part):
    """Whether the rows of a part count, bool array (n,)."""
    kept = part.counted()[0]
    return np.ones(len(part.X), dtype=bool) if kept is None else kept


class PartedRows(Rows):
    """Rows that come in parts, of which those without a value or of weight zero do not count.

    Parameters
    ----------
    origin : (n_features,) or None
        None is the mean of the rows.
    n_jobs : int or None
        Threads over the blocks of a part, where passes are made in this process.
    least_rows : int, default=1
        Least number of rows, whether or not they count.
    on_pass : callable, default=None
        Called without arguments after every pass.
    """

    is_in_memory = False

    def __init__(self, origin, n_jobs, least_rows=1, on_pass=None):
        self._given_origin = origin
        self.n_jobs = self._n_jobs_of_part = n_jobs
        self._least_rows = least_rows
        self._on_pass = on_pass

    @abstractmethod
    def _surveyed(self):
        """The first pass: `Survey`, or None where there is no part."""

    @abstractmethod
    def name_of_part(self, number):
        """What to call a part in a message."""

    @abstractmethod
    def _summed(self, function, along=None):
        """Sum of ``function(part, rows of along or None)`` over all parts."""

    @abstractmethod
    def _listed(self, function):
        """``function(part)`` of all parts in their order: list."""

    def _passed(self):
        if self._on_pass is not None:
            self._on_pass()

    @functools.cached_property
    def survey(self):
        """`Survey` of all parts, by a pass at first need.

        Raises
        ------
        ValueError
            Where there are too few rows, a value is infinite, or a weight is no number of rows.
        """
        survey = self._surveyed()
        if survey is None:
            raise ValueError("X has no rows: the source yields no batch, or the collection no chunk.")
        problem = survey.problem
        if problem is not None:
            row = problem.row + int(survey.lengths[: problem.part].sum())
            raise ValueError(
                f"{problem.what} at row {problem.row} of {self.name_of_part(problem.part)}, which is row "
                f"{row} of X. Values must be finite numbers, and NaN "
                "where they are missing."
            )
        n_rows = int(survey.lengths.sum())
        if n_rows < self._least_rows:
            raise ValueError(
                f"Found array with {n_rows} sample(s) (shape=({n_rows}, {len(survey.mean)})) while a minimum "
                f"of {self._least_rows} is required."
            )
        if not survey.counted.any():
            raise ValueError(
                "Sample weights must contain at least one non-zero number, of a row with a value."
            )
        return survey

    @property
    def origin(self):
        return self.survey.mean if self._given_origin is None else self._given_origin

    @property
    def n_samples(self):
        return int(self.survey.counted.sum())

    @property
    def n_given(self):
        return int(self.survey.lengths.sum())

    @property
    def total_weight(self):
        return float(self.survey.weights.sum())

    @property
    def has_holes(self):
        return self.survey.has_holes

    @property
    def n_patterns(self):
        """An upper bound on the number of different patterns of holes."""
        return min(self.n_samples, 2 ** min(self.n_features, 30)) if self.has_holes else 0

    @property
    def seen_weight(self):
        return self.survey.seen if self.has_holes else self.total_weight

    @functools.cached_property
    def variances(self):
        survey = self.survey
        return survey.squares / self.seen_weight + np.square(survey.mean - self.origin)

    def ranges(self):
        return self.survey.smallest, self.survey.largest

    def counted(self):
        return self

    def which_count(self):
        return np.concatenate(self._listed(_which_count))

    def around_mean(self):
        # So few rows take less memory than a matrix of all features.
        return self.in_memory() if self.n_samples <= self.n_features else self

    def chosen(self, index):
        ends = np.cumsum(self.survey.lengths)
        of_parts = np.split(index, np.searchsorted(index, ends[:-1]))
        own = {
            self.name_of_part(number): numbers - start
            for number, (numbers, start) in enumerate(zip(of_parts, ends - self.survey.lengths, strict=True))
        }
        return self._joined(functools.partial(_chosen_rows, own))

    def in_memory(self):
        return self._joined(functools.partial(_counted_rows, self.origin))

    def _joined(self, function):
        """The rows and weights that a function makes of every part, brought together: ArrayRows."""
        X, weights = map(np.concatenate, zip(*self._listed(function), strict=True))
        return rows_of_array(X, self.origin, self.n_jobs, None if np.all(weights == 1) else weights)

    def total(self, function, workload=None, along=None):
        of_part = functools.partial(_total_of_part, function, self.origin, self._n_jobs_of_part, workload)
        return self._summed(of_part, along)

    def map(self, function, workload=None):
        of_part = functools.partial(_mapped_of_part, function, self.origin, self._n_jobs_of_part, workload)
        return [result for results in self._listed(of_part) for result in results]

    def each(self, function, shape=(), dtype=np.float64, workload=None, tracked=untracked):
        of_array = functools.partial(
            ArrayRows.each, function=function, shape=shape, dtype=dtype, workload=workload
        )
        return self.by_array(of_array, shape, dtype, tracked)

    def at(self, positions):
        survey = self.survey
        ends = np.cumsum(survey.weights)
        # Positions on the very end of the last part with rows belong to it.
        owner = np.minimum(np.searchsorted(ends, positions, side="right"), np.flatnonzero(survey.counted)[-1])
        own = {
            self.name_of_part(number): positions[owner == number] - begin
            for number, begin in enumerate(ends - survey.weights)
        }
        index, X = zip(*self._listed(functools.partial(_rows_at, own, self.origin)), strict=True)
        return np.concatenate(index), rows_of_array(np.concatenate(X), self.origin, self.n_jobs)

    def _rows_along(self, number, along):
        """The rows of a part in an array along the rows that count, or along all rows; None stays None."""
        if along is None:
            return None
        lengths = self.survey.lengths if along.shape[0] == self.n_given else self.survey.counted
        stop = int(lengths[: number + 1].sum())
        return along[stop - int(lengths[number]) : stop]

    def _described(self, number):
        """The attributes of a part that the first pass has found: name, checksum, first and has_holes."""
        survey = self.survey
        checksum, first = int(survey.checksums[number]), int(survey.starts[number])
        # The survey is about rows that count: rows without any value are among the others.
        has_holes = survey.has_holes or bool(survey.counted[number] < survey.lengths[number])
        return self.name_of_part(number), checksum, first, has_holes


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


class BatchRows(PartedRows):
    """The rows of a source of batches.

    Parameters
    ----------
    X : the source: a callable, a sequence of tables, or another iterable
    origin, n_jobs, least_rows, on_pass : as in `PartedRows`
    """

    def __init__(self, X, origin, n_jobs, least_rows=1, on_pass=None):
        super().__init__(origin, n_jobs, least_rows, on_pass)
        self.X = X
        self.dtype = np.dtype(np.float64)  # until the first pass

    @property
    def n_features(self):
        return len(self.survey.mean if self._given_origin is None else self._given_origin)

    def name_of_part(self, number):
        return f"batch {number}"

    def _batches(self):
        """Yield the rows of every batch, float64 or float32, and their weights or None; checked."""
        n_features, names = None if self._given_origin is None else len(self._given_origin), None
        for number, batch in enumerate(_started(self.X)):
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

    def reweighted(self, factors):
        source = functools.partial(_reweighted_batches, self.X, factors)
        return BatchRows(source, self.origin, self.n_jobs, self._least_rows, self._on_pass)

    def _surveyed(self):
        surveys = []
        for X, weights in self._batches():
            self.dtype = X.dtype
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
        for number, (X, weights) in enumerate(self._batches()):
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
            total = added(total, function(part, self._rows_along(number, along)))
        return total

    def _listed(self, function):
        return [function(part) for part in self._parts()]

    def by_array(self, function, shape=(), dtype=np.float64, tracked=untracked):
        return np.concatenate([np.empty((0, *shape), dtype), *self._results(function)])

    def by_array_into(self, out, function):
        """The results of `by_array`, written into an array with a row for every row, batch by batch."""
        start = 0
        for result in self._results(function):
            out[start : start + len(result)] = result
            start += len(result)
        return out

    def _results(self, function):
        """Yield a function of the rows of every batch, rows of weight zero and all."""
        first = 0
        for number, (X, weights) in enumerate(self._batches()):
            has_holes = checked_for_holes(X, weights, self.name_of_part(number))
            if len(X):
                rows = rows_of_array(X, self.origin, self.n_jobs, weights, first, has_holes)
                yield function(rows, tracked=untracked)
            first += len(X)


def _reweighted_batches(source, factors):
    """Yield the batches of a source, whose rows count as often as the factors (n_given,) say."""
    start = 0
    for number, batch in enumerate(_started(source)):
        X, weights = _checked(batch, number)
        own = np.asarray(factors[start : start + len(X)], dtype=np.float64)
        yield X, own if weights is None else weights * own
        start += len(X)


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
