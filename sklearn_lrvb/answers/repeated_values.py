"""Values that many rows share: columns of few values, spikes, and grids that are coarse for a component.

A density cannot hold a value that many rows share. Where a component shrinks onto it, the density has no
limit, and the evidence is not to be compared with that of other models.
"""

from dataclasses import dataclass

import numpy as np

from sklearn_lrvb.answers.normal_scores import LEAST_ROWS

# A column has few values if there are so many at most, and each has so many rows on average.
MOST_VALUES, _ROWS_OF_A_VALUE = 10, 10
# A value is a spike in a component if nine tenths of its rows have it, or half of them and the other rows
# look continuous: there are five at least, and their effective number of values is seven, or seven tenths of
# their own number. Where rounding puts half of the rows on one value, the others have fewer values.
_NEARLY_ALL, _SHARE_IN_COMPONENT = 0.9, 0.5
_OTHER_ROWS, _OTHER_VALUES, _OTHERS_DIFFER = 5, 7, 0.7
# It is a spike in a column if a tenth of the rows have it, and three times as many as have any of the four
# next values on either side.
_SHARE_IN_COLUMN, _TIMES_NEIGHBOURS, _NEIGHBOURS = 0.1, 3.0, 4
_GROSS_SHARE = 0.3  # Of a spike that comes before all else.
# A grid is coarse if the rows of a component have effectively fewer values. Steps of one standard deviation
# leave 3.5 values.
_COARSE = 3.5


@dataclass(frozen=True)
class RepeatedValue:
    """A value, or several, that many rows share.

    Attributes
    ----------
    kind : {'few values', 'spike', 'coarse'}
    component : int or None, that which has the spike or the coarse grid; None for all rows
    column : int
    value : float, the most frequent one
    share : float, of the component's rows, or of all, that have it, in the first draw of the labels
    n_values : int, different values of the column
    """

    kind: str
    component: int | None
    column: int
    value: float
    share: float
    n_values: int

    @property
    def is_gross(self):
        """Whether evidences of densities mean nothing beside it."""
        return self.kind == "few values" or (self.kind == "spike" and self.share >= _GROSS_SHARE)

    def sentence(self, names):
        """What was found, str, given the names of the columns."""
        name, where = repr(names[self.column]), f"component {self.component}"
        share = f"{100 * self.share:.0f} % of its rows are {self.value:.6g}"
        if self.kind == "few values":
            return f"Column {name} has {self.n_values} values, and is not normal."
        if self.kind == "coarse":
            return f"Column {name} is measured in steps as large as {where} is wide."
        if self.component is None:
            return f"Column {name} has a spike: {share}."
        return f"{where.capitalize()} is a spike in column {name}: {share}."


def repeated_values(X, labels, is_normal, n_components):
    """What is found of it, at most one for a column, few values first: list of RepeatedValue.

    Parameters
    ----------
    X : (n, P), NaN where a value is missing
    labels : int array (n,), components of the rows, -1 for noise
    is_normal : bool (P,), the columns that are looked at
    n_components : int
    """
    found = [
        _in_column(X[:, column], labels, n_components, int(column)) for column in np.flatnonzero(is_normal)
    ]
    found = [own for own in found if own is not None]
    kinds = "few values", "spike", "coarse"
    return sorted(found, key=lambda own: (kinds.index(own.kind), -own.share))


def _in_column(column_values, labels, n_components, column):
    """RepeatedValue, or None."""
    seen = ~np.isnan(column_values)
    values, index, counts = np.unique(column_values[seen], return_inverse=True, return_counts=True)
    n_values, n_rows = len(values), int(seen.sum())
    if n_values < 2 or counts.max() < 3:
        return None
    first = int(counts.argmax())
    of_all = None, column, float(values[first]), float(counts[first] / n_rows), n_values
    if n_values <= MOST_VALUES and n_rows >= _ROWS_OF_A_VALUE * n_values:
        return RepeatedValue("few values", *of_all)
    by_component = np.zeros((n_components, n_values))
    is_in = labels[seen] >= 0
    np.add.at(by_component, (labels[seen][is_in], index[is_in]), 1.0)
    in_component = _in_component(by_component, values, column)
    if in_component is not None:
        return in_component
    neighbours = counts[max(first - _NEIGHBOURS, 0) : first + _NEIGHBOURS + 1]
    next_count = np.sort(neighbours)[-2]
    is_spike = counts[first] >= max(_SHARE_IN_COLUMN * n_rows, _TIMES_NEIGHBOURS * next_count, LEAST_ROWS)
    return RepeatedValue("spike", *of_all) if is_spike else None


def _in_component(by_component, values, column):
    """A spike in a component, or else a coarse grid: RepeatedValue, or None.

    `by_component` is the number of rows of each component that have each of the values, (K, v).
    """
    places, totals = by_component.argmax(axis=1), by_component.sum(axis=1)
    each = np.arange(len(places)), places
    largest, others = by_component[each], by_component.copy()
    others[each] = 0.0
    n_others = others.sum(axis=1)
    look_continuous = _effective_number(others) >= np.minimum(_OTHER_VALUES, _OTHERS_DIFFER * n_others)
    least = np.where(look_continuous & (n_others >= _OTHER_ROWS), _SHARE_IN_COMPONENT, _NEARLY_ALL)
    # Of 20 rows at least: a few equal rows of a small component are no spike.
    is_spike = largest >= least * np.maximum(totals, LEAST_ROWS)
    is_coarse = (_effective_number(by_component) < _COARSE) & (totals >= LEAST_ROWS)
    shares = largest / np.maximum(totals, 1.0)
    for kind, is_found in (("spike", is_spike), ("coarse", is_coarse)):
        if is_found.any():
            k = int(np.where(is_found, shares, -1.0).argmax())
            return RepeatedValue(kind, k, column, float(values[places[k]]), float(shares[k]), len(values))
    return None


def _effective_number(counts):
    """Effective number of values, by the rows that have each (inverse Simpson index): (..., v) -> (...)."""
    return np.square(counts.sum(axis=-1)) / np.maximum(np.square(counts).sum(axis=-1), 1.0)
