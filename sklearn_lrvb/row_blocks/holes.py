"""Values that are not there, and the order of rows in which those of one pattern of holes follow each other.

What has to be computed for a pattern is then computed once or twice in a pass, however many rows have it.
"""

from dataclasses import dataclass

import numpy as np

_COLUMNS_OF_A_KEY = 64  # Patterns of so many columns are integers, which are sorted faster than bytes.


@dataclass(frozen=True)
class Holes:
    """The holes of a block's rows, which are ordered by their patterns.

    Attributes
    ----------
    hidden : bool (g, n_features), the different patterns: which values are not there
    pattern : int array (n_rows,), ascending, the pattern of every row; every pattern has rows
    """

    hidden: np.ndarray
    pattern: np.ndarray

    @property
    def starts(self):
        """The first row of every pattern, int array (g,)."""
        return np.searchsorted(self.pattern, np.arange(len(self.hidden)))

    @property
    def lengths(self):
        """Number of rows of every pattern, int array (g,)."""
        return np.bincount(self.pattern, minlength=len(self.hidden))

    def by_row(self, values):
        """What belongs to the patterns, for every row: (..., g) -> (..., n_rows)."""
        return np.repeat(values, self.lengths, axis=-1)

    def sums(self, values):
        """Sums over the rows of every pattern: (..., n_rows) -> (..., g)."""
        return np.add.reduceat(values, self.starts, axis=-1)

    def selected(self, index):
        """The holes of some of the rows, ascending int array."""
        used, pattern = np.unique(self.pattern[index], return_inverse=True)
        return Holes(self.hidden[used], pattern)


@dataclass(frozen=True)
class PatternOrder:
    """An order of rows: complete ones first, then by number of holes, those of one pattern together.

    Attributes
    ----------
    order : int array (n_rows,), numbers of the rows
    hidden : bool (g, n_features), the different patterns of incomplete rows
    starts : int array (g + 1,), the place where the rows of every pattern begin, and the number of rows
    """

    order: np.ndarray
    hidden: np.ndarray
    starts: np.ndarray

    @classmethod
    def of(cls, X):
        """The order of the rows of an array, (n_rows, n_features) with NaN where a value is not there."""
        hidden = np.isnan(X)
        n_hidden = hidden.sum(axis=1)
        incomplete = np.flatnonzero(n_hidden)
        hidden, n_hidden = hidden[incomplete], n_hidden[incomplete]
        _, first, pattern = np.unique(_keys(hidden), return_index=True, return_inverse=True)
        by_holes = np.argsort(n_hidden[first], kind="stable")
        place = np.empty_like(by_holes)
        place[by_holes] = np.arange(len(by_holes))
        pattern = place[pattern.ravel()]
        complete = np.setdiff1d(np.arange(len(X)), incomplete, assume_unique=True)
        lengths = np.bincount(pattern, minlength=len(first))
        return cls(
            np.concatenate([complete, incomplete[np.argsort(pattern, kind="stable")]]),
            hidden[first[by_holes]],
            len(complete) + np.concatenate([[0], np.cumsum(lengths)]),
        )

    @property
    def n_complete(self):
        """Number of rows without holes."""
        return int(self.starts[0])

    def places(self, rows_at_once, patterns_at_once):
        """Slices of the order, of complete rows or of incomplete ones, with so many rows and patterns."""
        n_rows, places = len(self.order), []
        for start in range(0, self.n_complete, rows_at_once):
            places.append(slice(start, min(start + rows_at_once, self.n_complete)))
        start = self.n_complete
        while start < n_rows:
            last = min(self._pattern_at(start) + patterns_at_once, len(self.hidden))
            stop = min(start + rows_at_once, int(self.starts[last]))
            places.append(slice(start, stop))
            start = stop
        return places

    def _pattern_at(self, place):
        return int(np.searchsorted(self.starts, place, side="right")) - 1

    def holes(self, place):
        """`Holes` of the rows in a slice of the order; None where they are complete."""
        if place.start < self.n_complete:
            return None
        first, last = self._pattern_at(place.start), self._pattern_at(place.stop - 1)
        ends = np.clip(self.starts[first : last + 2], place.start, place.stop)
        return Holes(self.hidden[first : last + 1], np.repeat(np.arange(last + 1 - first), np.diff(ends)))


def _keys(hidden):
    """Numbers that are equal for equal patterns: bool (n, n_features) -> (n,)."""
    bits = np.packbits(hidden, axis=1)
    width = _COLUMNS_OF_A_KEY // 8 if bits.shape[1] * 8 <= _COLUMNS_OF_A_KEY else bits.shape[1]
    padded = np.zeros((len(bits), width), dtype=np.uint8)
    padded[:, : bits.shape[1]] = bits
    return padded.view(np.uint64 if width * 8 == _COLUMNS_OF_A_KEY else f"V{width}").ravel()
