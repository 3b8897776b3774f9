"""Components that have shrunk onto a single value of a column.

The likelihood of a normal density has no limit as its standard deviation goes to zero at a value that many
rows share. Only the prior holds it. So a column of few values, or one that is often zero, makes clusters by
itself: they are probable, and nothing in the fit says that the density is the wrong one.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sklearn_lrvb.mixture.model import occupied
from sklearn_lrvb.mixture.prediction import responsibilities_of_rows
from sklearn_lrvb.mixture.search import sampled

SAMPLE_ROWS = 2048  # Rows, evenly spaced, that tell what values a column has.

# A component is at a single value where this share of its rows has it. Of rounded measurements that is where
# the standard deviation is less than that of the rounding, 0.29 steps: what is seen is the rounding alone.
_SHARE_OF_ONE_VALUE = 0.9

# Its standard deviation is then less than this part of the column's: else it has not shrunk, and the column
# has the same value nearly everywhere.
_SHRUNK = 1 / 3

# In smaller tables, and in components of fewer rows, measurements have few values, too.
LEAST_ROWS_OF_TABLE, _LEAST_ROWS = 30, 5


@dataclass(frozen=True)
class SingleValue:
    """A component, and the value of a column that it is at."""

    component: int
    column: int
    value: float


class ColumnNote(NamedTuple):
    """What is doubtful about columns, a sentence, and which they are, by number."""

    text: str
    columns: tuple[int, ...] = ()


def sample_of(rows, n_rows=SAMPLE_ROWS):
    """The rows in memory, or so many of them, evenly spaced, that together count as much: ArrayRows."""
    sample = sampled(rows, n_rows)
    return sample if sample.is_in_memory else sample.in_memory()


def single_values(sample, posterior, deviations):
    """The components that have shrunk onto a single value of a column: list of SingleValue.

    Parameters
    ----------
    sample : ArrayRows, from `sample_of` the training rows
    posterior : posterior of a mixture
    deviations : float array (K, P)
        Standard deviations of the components, NaN where a column is not normal in them.
    """
    held = np.flatnonzero(occupied(posterior.counts))
    if len(held) < 2 or sample.total_weight < LEAST_ROWS_OF_TABLE:
        return []
    is_narrow = deviations[held] <= _SHRUNK * np.sqrt(sample.around_mean().variances)
    columns = np.flatnonzero(is_narrow.any(axis=0))
    if not len(columns):
        return []
    shares = responsibilities_of_rows(sample, posterior)[:, held]
    if sample.sample_weight is not None:
        shares *= sample.sample_weight[:, None]
    least, found = _LEAST_ROWS * max(1.0, sample.total_weight / SAMPLE_ROWS), []
    for column in columns:
        seen = ~np.isnan(sample.X[:, column])
        values, index = np.unique(sample.X[seen, column], return_inverse=True)
        for place in np.flatnonzero(is_narrow[:, column]):
            of_values = np.bincount(index, shares[seen, place])
            total, first = of_values.sum(), int(of_values.argmax())
            if total >= least and of_values[first] >= _SHARE_OF_ONE_VALUE * total:
                found.append(SingleValue(int(held[place]), int(column), float(values[first])))
    return found


def note_of_single_values(found, names):
    """Which components are at single values, and what that means: ColumnNote.

    Parameters
    ----------
    found : list of SingleValue, one at least
    names : sequence of str, (P,), of the columns
    """
    by_column = {}
    for one in found:
        by_column.setdefault(one.column, []).append(f"component {one.component} at {one.value:.6g}")
    listed = [f"{names[column]!r} ({listed_first(own)})" for column, own in by_column.items()]
    text = (
        f"Components have shrunk onto single values of {listed_first(listed)}. A normal density has no limit "
        "there, and such clusters may not be real, however probable they are."
    )
    return ColumnNote(text, tuple(by_column))


def listed_first(things):
    """The first five of some words, with commas, and how many there are besides."""
    return ", ".join(things[:5]) + f" and {len(things) - 5} more" * (len(things) > 5)
