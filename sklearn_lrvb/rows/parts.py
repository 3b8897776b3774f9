"""Rows that come in parts, one after the other or in many places, and never all at once.

Every part is an array with a number. A first pass surveys all parts: their lengths and checksums, the mean,
the variances and the range of the columns, and the first value that is no number. A later pass makes
`ArrayRows` of every part, goes through its blocks, and adds up. It compares checksums, so that rows that
change are noticed. Every pass is one call of `PartedRows._reduced`: a function of each part, whose results
are combined in the order of the parts.

The parts are here the batches of a source, anything that can be gone through again and again: one batch is
kept at a time. `dask_rows` has the chunks of a Dask collection.
"""

import functools
import operator
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from sklearn_lrvb.rows.array_rows import ArrayRows, Rows, counted, has_missing, rows_of_array
from sklearn_lrvb.rows.blocks import added, untracked


@dataclass(frozen=True)
class Survey:
    """The result of the first pass over some consecutive parts; those of later parts are added with ``+``.

    Attributes
    ----------
    lengths : int array (m,), number of rows of each part
    counted : int array (m,), how many of these have a positive weight and a value
    weights : float array (m,), their weights together
    checksums : uint64 array (m,)
    seen : (P,), weight of the rows that have a value in a column
    mean, squares : (P,), mean of the values, and sums of the squares of their differences from it
    smallest, largest : (P,), of all values
    has_missing : bool, whether values are missing in rows of positive weight
    problem : None, or the first value of X, or of its weights, that cannot be used: number of the part,
        number of the row in it, and what is wrong there
    """

    lengths: np.ndarray
    counted: np.ndarray
    weights: np.ndarray
    checksums: np.ndarray
    seen: np.ndarray
    mean: np.ndarray
    squares: np.ndarray
    smallest: np.ndarray
    largest: np.ndarray
    has_missing: bool
    problem: tuple[int, int, str] | None

    def __add__(self, later):
        share = np.divide(
            later.seen, self.seen + later.seen, out=np.zeros_like(self.seen), where=later.seen > 0
        )
        with np.errstate(over="ignore", invalid="ignore"):  # Values that are too large are refused later.
            shift = later.mean - self.mean
            mean = self.mean + share * shift
            squares = self.squares + later.squares + self.seen * share * np.square(shift)
        return Survey(
            np.concatenate([self.lengths, later.lengths]),
            np.concatenate([self.counted, later.counted]),
            np.concatenate([self.weights, later.weights]),
            np.concatenate([self.checksums, later.checksums]),
            self.seen + later.seen,
            mean,
            squares,
            np.minimum(self.smallest, later.smallest),
            np.maximum(self.largest, later.largest),
            self.has_missing or later.has_missing,
            self.problem or later.problem,
        )


class Part(NamedTuple):
    """Some of the rows, as a pass gets them.

    Attributes
    ----------
    number : int
    X : array (n_rows, n_features) of float64 or float32
    sample_weight : float64 array (n_rows,) or None
    along : array or sparse array with a row for every row, or for every row that counts; or None
    """

    number: int
    X: np.ndarray
    sample_weight: np.ndarray | None
    along: Any = None


def survey_of_part(part):
    """`Survey` of one part."""
    number, X, sample_weight, _ = part
    problem = _problem(X, sample_weight)
    kept, weights = counted(X, sample_weight, has_missing(X))
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
        checksums=np.array([checksum(X, sample_weight)], dtype=np.uint64),
        seen=seen,
        mean=mean,
        squares=squares,
        smallest=smallest.astype(np.float64),
        largest=largest.astype(np.float64),
        has_missing=rows.has_missing,
        problem=None if problem is None else (number, *problem),
    )


def all_rows_of_part(name, X, sample_weight, origin, n_jobs, first):
    """The rows of a part, also those that do not count, without a survey: ArrayRows.

    Parameters
    ----------
    name : str, what to call the part
    X, sample_weight, origin, n_jobs, first : as in `ArrayRows`

    Raises
    ------
    ValueError
        Where a value is infinite, or a weight is no number of rows.
    """
    problem = _problem(X, sample_weight)
    if problem is not None:
        row, what = problem
        raise ValueError(f"{what} at row {row} of {name}.")
    return rows_of_array(X, origin, n_jobs, sample_weight, first)


def _problem(X, sample_weight):
    """The first row of a part with a value that cannot be used, and what is wrong there; or None."""
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
        return row, f"sample_weight is {weights[row]:g}, which is no number of rows,"
    return row, f"Input X contains infinity in column {bad[0]}"


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
class SurveyedParts:
    """What a later pass knows of the parts; it travels to where they are.

    Attributes
    ----------
    survey : Survey
    origin : float64 array (n_features,), what rows are measured from
    n_jobs : int or None, threads over the blocks of a part
    part_name : str, what to call a part in a message
    """

    survey: Survey
    origin: np.ndarray
    n_jobs: int | None
    part_name: str

    def rows(self, part):
        """The rows of a part that count: `ArrayRows`.

        Raises
        ------
        ChangedRowsError
            Where they are not those of the first pass.
        """
        survey, (number, X, sample_weight, _) = self.survey, part
        if checksum(X, sample_weight) != survey.checksums[number]:
            raise ChangedRowsError(
                f"X changed between two passes over it, first in {self.part_name} {number}: a fit reads X "
                "many times, and needs the same rows every time. (a) If X is made by random numbers or read "
                "from a file that is being written, store it first. (b) If it is a Dask collection, persist "
                "it."
            )
        # The survey is about rows of positive weight: rows without any value are among the others.
        may_have_missing_values = survey.has_missing or bool(survey.counted[number] < survey.lengths[number])
        kept, weights = counted(X, sample_weight, may_have_missing_values)
        first = int(survey.counted[:number].sum())
        X = X if kept is None else X[kept]
        return rows_of_array(
            X, self.origin, self.n_jobs, weights, first, None if may_have_missing_values else False
        )


def _total_of_part(parts, function, workload, part):
    """Sum of ``function(block)`` over the blocks of a part; None where it has no rows."""
    rows, along = parts.rows(part), part.along
    if along is not None and along.shape[0] != rows.n_samples:  # It runs along rows that do not count, too.
        if along.shape[0] != len(part.X):
            raise ValueError(
                f"In {parts.part_name} {part.number}, X has {len(part.X)} rows, but what runs along X, such "
                f"as init_params or groups, has {along.shape[0]}: both must be partitioned in the same way."
            )
        along = along[_which_count(part)]
    return rows.total(function, workload, along)


def _mapped_of_part(parts, function, workload, part):
    """``function(block)`` of all blocks of a part: list."""
    return parts.rows(part).map(function, workload)


def _rows_at(parts, positions, part):
    """Numbers of the rows at some positions in a part (`Rows.at`), and these rows: (n,), (n, P).

    Parameters
    ----------
    positions : list of float arrays, of every part
    """
    index, rows = parts.rows(part).at(positions[part.number])
    return index, rows.X


def _counted_rows(parts, part):
    """The rows of a part that count, and their weights: (n, P), (n,)."""
    rows = parts.rows(part)
    return _weighted(rows.X, rows.sample_weight)


def _chosen_rows(index, part):
    """Some rows of a part, and their weights: (n, P), (n,).

    Parameters
    ----------
    index : list of int arrays, of every part, numbers of rows within it
    """
    own = index[part.number]
    return _weighted(part.X[own], None if part.sample_weight is None else part.sample_weight[own])


def _weighted(X, sample_weight):
    return X, np.ones(len(X)) if sample_weight is None else sample_weight


def _which_count(part):
    """Whether the rows of a part count, bool array (n,)."""
    kept, _ = counted(part.X, part.sample_weight, has_missing=True)
    return np.ones(len(part.X), dtype=bool) if kept is None else kept


def _list_of(function, part):
    """The result of a function of a part, as a list: lists of consecutive parts are joined by ``+``."""
    return [function(part)]


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
    part_name = "part"  # What to call a part in a message.

    def __init__(self, origin, n_jobs, least_rows=1, on_pass=None):
        self._given_origin = origin
        self.n_jobs = self._n_jobs_of_part = n_jobs
        self._least_rows = least_rows
        self._on_pass = on_pass

    @abstractmethod
    def _reduced(self, combine, function, along=None):
        """Results of a function of all parts, combined: one pass over the rows; None where there is no part.

        Parameters
        ----------
        combine : callable (result, later result) -> result
            Not commutative; it may change the first result.
        function : callable (Part), which has its rows of along
        along : array, sparse array or Dask array with a row for every row, or for every row that counts
        """

    def _passed(self):
        if self._on_pass is not None:
            self._on_pass()

    def _listed(self, function):
        """The results of a function of all parts: list."""
        return self._reduced(operator.add, functools.partial(_list_of, function))

    @functools.cached_property
    def survey(self):
        """`Survey` of all parts, by a pass at first need.

        Raises
        ------
        ValueError
            Where there are too few rows, a value is infinite, or a weight is no number of rows.
        """
        survey = self._reduced(added, survey_of_part)
        if survey is None:
            raise ValueError("X has no rows: the source yields no batch, or the collection no chunk.")
        if survey.problem is not None:
            number, row, what = survey.problem
            raise ValueError(
                f"{what} at row {row} of {self.part_name} {number}, which is row "
                f"{row + int(survey.lengths[:number].sum())} of X. Values must be finite numbers, and NaN "
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
    def _parts(self):
        return SurveyedParts(self.survey, self.origin, self._n_jobs_of_part, self.part_name)

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
    def has_missing(self):
        return self.survey.has_missing

    @property
    def n_patterns(self):
        """An upper bound on the number of different patterns of missing values."""
        return min(self.n_samples, 2 ** min(self.n_features, 30)) if self.has_missing else 0

    @property
    def seen_weight(self):
        return self.survey.seen if self.has_missing else self.total_weight

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

    def in_memory(self):
        return self._joined(functools.partial(_counted_rows, self._parts))

    def chosen(self, index):
        starts = np.cumsum(self.survey.lengths) - self.survey.lengths
        members = np.split(index, np.searchsorted(index, starts[1:]))
        own = [numbers - start for numbers, start in zip(members, starts, strict=True)]
        return self._joined(functools.partial(_chosen_rows, own))

    def _joined(self, function):
        """The rows and weights that a function makes of every part, brought together: ArrayRows."""
        X, weights = map(np.concatenate, zip(*self._listed(function), strict=True))
        return rows_of_array(X, self.origin, self.n_jobs, None if np.all(weights == 1) else weights)

    def at(self, positions):
        ends = np.cumsum(self.survey.weights)
        # Positions on the very end of the last part with rows belong to it.
        last = np.flatnonzero(self.survey.counted)[-1]
        owner = np.minimum(np.searchsorted(ends, positions, side="right"), last)
        own = [positions[owner == number] - begin for number, begin in enumerate(ends - self.survey.weights)]
        index, X = zip(*self._listed(functools.partial(_rows_at, self._parts, own)), strict=True)
        return np.concatenate(index), rows_of_array(np.concatenate(X), self.origin, self.n_jobs)

    def total(self, function, workload=None, along=None):
        return self._reduced(added, functools.partial(_total_of_part, self._parts, function, workload), along)

    def map(self, function, workload=None):
        return self._reduced(
            operator.add, functools.partial(_mapped_of_part, self._parts, function, workload)
        )

    def each(self, function, shape=(), dtype=np.float64, workload=None, tracked=untracked):
        of_array = functools.partial(
            ArrayRows.each, function=function, shape=shape, dtype=dtype, workload=workload
        )
        return self.by_array(of_array, shape, dtype, tracked)

    def _rows_along(self, number, along):
        """The rows of a part in an array along the rows that count, or along all rows; None stays None."""
        if along is None:
            return None
        lengths = self.survey.lengths if along.shape[0] == self.n_given else self.survey.counted
        stop = int(lengths[: number + 1].sum())
        return along[stop - int(lengths[number]) : stop]


class BatchRows(PartedRows):
    """The rows of a source of batches.

    Parameters
    ----------
    X : the source, as the user has passed it
    batches : callable () -> iterable
        The rows of every batch, float64 or float32, and their weights, float64 or None, the same every time.
    origin, n_jobs, least_rows, on_pass : as in `PartedRows`
    """

    part_name = "batch"

    def __init__(self, X, batches, origin, n_jobs, least_rows=1, on_pass=None):
        super().__init__(origin, n_jobs, least_rows, on_pass)
        self.X, self._batches = X, batches
        self.dtype = np.dtype(np.float64)  # until the first pass

    @property
    def n_features(self):
        return len(self.origin)

    def _reduced(self, combine, function, along=None):
        n_batches = len(self.survey.lengths) if "survey" in vars(self) else None
        result, number = None, -1
        for number, (X, weights) in enumerate(self._batches()):
            if number == n_batches:
                break
            own = function(Part(number, X, weights, self._rows_along(number, along)))
            result = own if number == 0 else combine(result, own)
            self.dtype = X.dtype
        if n_batches not in (None, number + 1):
            more = "more than" if number == n_batches else f"only {number + 1} of"
            raise ChangedRowsError(
                f"X yields {more} the {n_batches} batches of the first pass. A fit reads X many times, and "
                "needs the same rows every time."
            )
        self._passed()
        return result

    def reweighted(self, factors):
        batches = functools.partial(_reweighted_batches, self._batches, factors)
        return BatchRows(self.X, batches, self.origin, self.n_jobs, self._least_rows, self._on_pass)

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
            rows = all_rows_of_part(f"batch {number}", X, weights, self.origin, self.n_jobs, first)
            if len(X):
                yield function(rows, tracked=untracked)
            first += len(X)


def _reweighted_batches(batches, factors):
    """Yield batches whose rows count as often as the factors (n_given,) say."""
    start = 0
    for X, weights in batches():
        own = np.asarray(factors[start : start + len(X)], dtype=np.float64)
        yield X, own if weights is None else weights * own
        start += len(X)
