"""What a first pass finds out about rows that come in parts: chunks of a Dask array, or batches of a source.

One pass finds the lengths and checksums of the parts, the mean, the variances and the range of the columns,
and the first value that is no number. Later passes compare checksums, so that rows that change are noticed.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from sklearn_lrvb.row_blocks.array_rows import ArrayRows
from sklearn_lrvb.row_blocks.holed_rows import HoledRows, has_holes


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

    @property
    def total_weight(self):
        """How many rows there are, each as often as it counts."""
        return float(self.weights.sum())

    @cached_property
    def starts(self):
        """Number of the first row of every part among the rows that count, (m,)."""
        return np.cumsum(self.counted) - self.counted

    def row_of(self, problem):
        """Number of the row of a problem among all rows."""
        return int(self.lengths[: problem.part].sum()) + problem.row

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
    n_rows, n_features = X.shape
    problem = _problem(X, sample_weight)
    is_holed = has_holes(X)
    kept, weights = counted(X, sample_weight, is_holed)
    rows = X if kept is None else X[kept]
    is_holed = is_holed and has_holes(rows)
    found = {
        "lengths": np.array([n_rows]),
        "checksums": np.array([checksum(X, sample_weight)], dtype=np.uint64),
        "has_holes": is_holed,
        "problem": problem,
    }
    if problem is not None or not len(rows):
        nothing, infinite = np.zeros(n_features), np.full(n_features, np.inf)
        return Survey(
            counted=np.zeros(1, dtype=int),
            weights=np.zeros(1),
            seen=nothing,
            mean=nothing,
            squares=nothing,
            smallest=infinite,
            largest=-infinite,
            **found,
        )
    with np.errstate(over="ignore", invalid="ignore"):  # Values that are too large are refused afterwards.
        centred = (HoledRows if is_holed else ArrayRows).around_mean(rows, None, weights)
        seen = np.broadcast_to(centred.seen_weight, n_features).astype(np.float64)
        squares = np.where(seen > 0, centred.variances * seen, 0.0)
    smallest, largest = centred.ranges()
    return Survey(
        counted=np.array([len(rows)]),
        weights=np.array([centred.total_weight]),
        seen=seen,
        mean=centred.origin,
        squares=squares,
        smallest=smallest.astype(np.float64),
        largest=largest.astype(np.float64),
        **found,
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


def counted(X, sample_weight, has_holes):
    """Which rows count, as bool array or None for all; and their weights, or None for once each.

    Rows of weight zero do not count, nor do rows without any value.

    Parameters
    ----------
    X, sample_weight : as in `survey_of_part`
    has_holes : bool, whether values may be missing
    """
    kept = ~np.isnan(X).all(axis=1) if has_holes else None
    if sample_weight is not None:
        kept = sample_weight > 0 if kept is None else kept & (sample_weight > 0)
    if kept is not None and kept.all():
        kept = None
    weights = sample_weight if sample_weight is None or kept is None else sample_weight[kept]
    return kept, None if weights is None or np.all(weights == 1) else weights


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
