"""What a first pass finds out about rows that come in parts: chunks of a Dask array, or batches of a source.

One pass finds the lengths and checksums of the parts, the mean, the variances and the range of the columns,
and the first value that is no number. Later passes compare checksums, so that rows that change are noticed.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from sklearn_lrvb.row_blocks.array_rows import ArrayRows


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
    counted : int array (m,), how many of these have a positive weight
    weights : float array (m,), their weights together
    checksums : uint64 array (m,)
    mean, squares : (P,), mean of the rows, and sums of the squares of their differences from it
    smallest, largest : (P,), of all values
    problem : Problem or None
    """

    lengths: np.ndarray
    counted: np.ndarray
    weights: np.ndarray
    checksums: np.ndarray
    mean: np.ndarray
    squares: np.ndarray
    smallest: np.ndarray
    largest: np.ndarray
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
        ours, theirs = self.total_weight, later.total_weight
        share = theirs / (ours + theirs) if theirs else 0.0
        shift = later.mean - self.mean
        return Survey(
            np.concatenate([self.lengths, later.lengths]),
            np.concatenate([self.counted, later.counted]),
            np.concatenate([self.weights, later.weights]),
            np.concatenate([self.checksums, later.checksums]),
            self.mean + share * shift,
            self.squares + later.squares + ours * share * np.square(shift),
            np.minimum(self.smallest, later.smallest),
            np.maximum(self.largest, later.largest),
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
    kept, weights = counted(sample_weight)
    rows = X if kept is None else X[kept]
    found = {
        "lengths": np.array([n_rows]),
        "checksums": np.array([checksum(X, sample_weight)], dtype=np.uint64),
        "problem": problem,
    }
    if problem is not None or not len(rows):
        nothing, infinite = np.zeros(n_features), np.full(n_features, np.inf)
        return Survey(
            counted=np.zeros(1, dtype=int),
            weights=np.zeros(1),
            mean=nothing,
            squares=nothing,
            smallest=infinite,
            largest=-infinite,
            **found,
        )
    with np.errstate(over="ignore", invalid="ignore"):  # Values that are too large are refused afterwards.
        centred = ArrayRows.around_mean(rows, None, weights)
        squares = centred.variances * centred.total_weight
    smallest, largest = centred.ranges()
    return Survey(
        counted=np.array([len(rows)]),
        weights=np.array([centred.total_weight]),
        mean=centred.origin,
        squares=squares,
        smallest=smallest.astype(np.float64),
        largest=largest.astype(np.float64),
        **found,
    )


def require_finite(X, sample_weight, name):
    """Raise ValueError where a value of a part is not finite, or a weight is no number of rows.

    Parameters
    ----------
    X, sample_weight : as in `survey_of_part`
    name : str, what to call the part
    """
    problem = _problem(X, sample_weight)
    if problem is not None:
        raise ValueError(f"{problem.what} at row {problem.row} of {name}.")


def _problem(X, sample_weight):
    """The first value of a part that cannot be used: Problem or None."""
    weights = np.zeros(len(X)) if sample_weight is None else sample_weight
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(X.sum(dtype=np.float64)) and np.isfinite(weights.sum()) and np.all(weights >= 0):
            return None
        is_bad = ~np.isfinite(X).all(axis=1) | ~np.isfinite(weights) | (weights < 0)
    rows = np.flatnonzero(is_bad)
    if not rows.size:  # The sum alone has overflowed.
        return None
    row = int(rows[0])
    bad = np.flatnonzero(~np.isfinite(X[row]))
    if not bad.size:
        return Problem(0, row, f"sample_weight is {weights[row]:g}, which is no number of rows,")
    what = "NaN" if np.isnan(X[row, bad[0]]) else "infinity"
    return Problem(0, row, f"Input X contains {what} in column {bad[0]}")


def counted(sample_weight):
    """Which rows count, as bool array or None for all; and their weights, or None for once each."""
    if sample_weight is None:
        return None, None
    kept = sample_weight > 0
    weights = sample_weight[kept]
    return None if kept.all() else kept, None if np.all(weights == 1) else weights


def checksum(X, sample_weight=None):
    """A number that changes with any value of X or of its weights: the sum of their bits as integers."""
    total = _sum_of_bits(X)
    return total if sample_weight is None else (3 * _sum_of_bits(sample_weight) + total) % 2**64


def _sum_of_bits(array):
    as_bytes = array.ravel(order="K").view(np.uint8)
    whole = as_bytes.size // 8 * 8
    rest = int.from_bytes(as_bytes[whole:].tobytes(), "little")
    return (int(as_bytes[:whole].view(np.uint64).sum()) + rest) % 2**64
