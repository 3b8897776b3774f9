"""Rows that come in parts, one after the other or in many places, and never all at once.

`batch_rows` and `dask_rows` say how the parts are come by. Every part is an array with a number; a pass makes
`ArrayRows` of it, goes through its blocks, and adds up.
"""

import functools
from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from sklearn_lrvb.row_blocks.centred_rows import CentredRows
from sklearn_lrvb.row_blocks.holed_rows import rows_of_array
from sklearn_lrvb.row_blocks.surveys import checksum, counted


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
        kept, weights = self.counted
        X = self.X if kept is None else self.X[kept]
        known = None if self.has_holes else False
        return rows_of_array(X, origin, n_jobs, weights, self.first, known)

    @property
    def counted(self):
        """Which rows count, and their weights (`surveys.counted`)."""
        return counted(self.X, self.sample_weight, self.has_holes)


def total_of_part(function, origin, n_jobs, numbers_per_row, product_size, part, along=None):
    """Sum of ``function(block)`` over the blocks of a part; None where it has no rows."""
    rows = part.rows(origin, n_jobs)
    if not rows.n_samples:
        return None
    if along is not None and along.shape[0] != rows.n_samples:  # It runs along rows that do not count, too.
        if along.shape[0] != len(part.X):
            raise ValueError(
                f"In {part.name}, X has {len(part.X)} rows, but init_params has {along.shape[0]}: both must "
                "be partitioned in the same way."
            )
        along = along[part.counted[0]]
    return rows.total(function, numbers_per_row, along, product_size)


def _gathered_of_part(function, origin, n_jobs, numbers_per_row, product_size, part):
    """``function(block)`` of all blocks of a part: list."""
    rows = part.rows(origin, n_jobs)
    return rows.gathered(function, numbers_per_row, product_size) if rows.n_samples else []


def _rows_at(positions, origin, part):
    """Numbers of the rows at some positions in a part (`CentredRows.at`), and these rows: (n,), (n, P)."""
    index, rows = part.rows(origin).at(positions)
    return index, rows.X


def _counted_rows(origin, part):
    """The rows of a part that count, and their weights: (n, P), (n,)."""
    rows = part.rows(origin)
    weights = rows.sample_weight
    return rows.X, np.ones(rows.n_samples) if weights is None else weights


def _which_count(part):
    """Whether the rows of a part count, bool array (n,)."""
    kept = part.counted[0]
    return np.ones(len(part.X), dtype=bool) if kept is None else kept


class PartedRows(CentredRows):
    """Rows that come in parts.

    Parameters
    ----------
    origin : (n_features,) or None, default=None
        None is the mean of the rows.
    n_jobs : int or None, default=None
        Threads over the blocks of a part, where passes are made in this process.
    on_pass : callable, default=None
        Called without arguments after every pass.
    """

    is_in_memory = False

    def __init__(self, origin=None, n_jobs=None, on_pass=None):
        self._given_origin = origin
        self.n_jobs = n_jobs
        self._on_pass = on_pass

    @abstractmethod
    def _surveyed(self):
        """The first pass: `Survey`, or None where there is no part."""

    @abstractmethod
    def name_of_part(self, number):
        """What to call a part in a message."""

    @abstractmethod
    def _summed(self, function, along=None):
        """Sum of ``function(part)`` over all parts; or of ``function(part, rows of along)``."""

    @abstractmethod
    def _listed(self, function, by_part=None):
        """``function(part)`` of all parts in their order: list.

        Where dict ``by_part`` maps numbers of parts to arguments, ``function(argument, part=part)`` of these.
        """

    def _passed(self):
        if self._on_pass is not None:
            self._on_pass()

    @functools.cached_property
    def survey(self):
        """`Survey` of all parts, by a pass at first need.

        Raises
        ------
        ValueError
            Where a value is infinite, or a weight is no number of rows.
        """
        survey = self._surveyed()
        if survey is None:
            raise ValueError("X has no rows: the source yields no batch, or the collection no chunk.")
        problem = survey.problem
        if problem is not None:
            raise ValueError(
                f"{problem.what} at row {problem.row} of {self.name_of_part(problem.part)}, which is row "
                f"{survey.row_of(problem)} of X. LRVBGaussianMixture takes finite numbers, and NaN "
                "where a value is missing."
            )
        if not survey.lengths.any():
            raise ValueError(
                f"Found array with 0 sample(s) (shape=(0, {len(survey.mean)})) while a minimum of 1 is "
                "required."
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
        """Number of all rows, also of those that do not count."""
        return int(self.survey.lengths.sum())

    @property
    def total_weight(self):
        return self.survey.total_weight

    def ranges(self):
        return self.survey.smallest, self.survey.largest

    @functools.cached_property
    def variances(self):
        """Variances of the columns around the origin, (n_features,)."""
        survey = self.survey
        return survey.squares / self.seen_weight + np.square(survey.mean - self.origin)

    @property
    def seen_weight(self):
        return self.survey.seen if self.has_holes else self.total_weight

    @property
    def has_holes(self):
        return self.survey.has_holes

    def at(self, positions):
        survey = self.survey
        ends = np.cumsum(survey.weights)
        owner = np.searchsorted(ends, positions, side="right")
        # Positions on the very end of the last part with rows belong to it.
        owner = np.minimum(owner, np.flatnonzero(survey.counted)[-1])
        begins = ends - survey.weights
        wanted = {int(number): positions[owner == number] - begins[number] for number in np.unique(owner)}
        function = functools.partial(_rows_at, origin=self.origin)
        index, X = zip(*self._listed(function, wanted), strict=True)
        return np.concatenate(index), rows_of_array(np.concatenate(X), self.origin, self.n_jobs)

    def total(self, function, numbers_per_row=None, along=None, product_size=None):
        return self._summed(self._of_part(total_of_part, function, numbers_per_row, product_size), along)

    def gathered(self, function, numbers_per_row=None, product_size=None):
        of_part = self._of_part(_gathered_of_part, function, numbers_per_row, product_size)
        return [result for results in self._listed(of_part) for result in results]

    def _of_part(self, verb, function, numbers_per_row, product_size):
        """One of the verbs as a function of a part."""
        return functools.partial(
            verb, function, self.origin, self._n_jobs_of_part, numbers_per_row, product_size
        )

    def in_memory(self):
        """All rows as `ArrayRows`; for few rows."""
        X, weights = map(
            np.concatenate, zip(*self._listed(functools.partial(_counted_rows, self.origin)), strict=True)
        )
        return rows_of_array(X, self.origin, self.n_jobs, None if np.all(weights == 1) else weights)

    def which_count(self):
        """Whether every row counts, bool array (n_given,)."""
        return np.concatenate(self._listed(_which_count))

    @property
    def _n_jobs_of_part(self):
        return self.n_jobs

    def place_along(self, number, along):
        """The rows of a part in an array along the rows that count, or along all rows: slice."""
        survey = self.survey
        of_all = along.shape[0] == survey.lengths.sum()
        stop = int((survey.lengths if of_all else survey.counted)[: number + 1].sum())
        return slice(stop - int((survey.lengths if of_all else survey.counted)[number]), stop)

    def _described(self, number):
        """The attributes of a part that the first pass has found: name, checksum, first and has_holes."""
        survey = self.survey
        checksum, first = int(survey.checksums[number]), int(survey.starts[number])
        # The survey is about rows that count: rows without any value are among the others.
        has_holes = survey.has_holes or bool(survey.counted[number] < survey.lengths[number])
        return self.name_of_part(number), checksum, first, has_holes
