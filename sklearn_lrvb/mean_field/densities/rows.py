"""Rows of data, or copies of a factor, in terms: their letters, weights, and the components they belong to.

Where a categorical factor chooses the component of every row, the weights of rows are those of its copies
(`Factor.weights`): they count its prior and its entropy too, and every term that it stands in.

*Conventions.* Rows have the letter "n", or "na..." for copies of several axes; components that a categorical
factor chooses the letter "k", and entries of vectors "p" and "q".
"""

from dataclasses import dataclass, field

import numpy as np

from sklearn_lrvb.exponential_families import Categorical
from sklearn_lrvb.mean_field.arguments import numbers
from sklearn_lrvb.mean_field.densities.density import Density, required_factor
from sklearn_lrvb.mean_field.factor import case_weights
from sklearn_lrvb.mean_field.term import Term


@dataclass(frozen=True, eq=False)
class Rows:
    """What a density is a sum over.

    Attributes
    ----------
    shape : tuple of int
        (n,), or that of a factor's copies.
    weights : ndarray of this shape
        How many rows each of them counts as.
    chosen : list of (statistic, letters)
        The indicator of components, if a categorical factor chooses among some.
    n_components : int or None
        Their number.
    """

    shape: tuple[int, ...]
    weights: np.ndarray
    chosen: list = field(default_factory=list)
    n_components: int | None = None

    @property
    def coefficients(self):
        """What multiplies the rows in terms: their weights, unless the indicator in them carries these."""
        return np.ones(self.shape) if self.chosen else self.weights

    @property
    def letters(self):
        """One for every axis."""
        return "nabcdefgh"[: len(self.shape)]

    def letters_of(self, lead):
        """Letters of copies of this shape: none, one for every component or row; None for other copies."""
        if not lead:
            return ""
        if lead == (self.n_components,):
            return "k"
        return self.letters if lead == self.shape else None

    def lead(self, name, lead, at):
        """Letters of a factor's copies of the shape ``lead``, and its entry of ``at``."""
        if at is not None:
            if len(self.shape) != 1 or np.shape(at) != self.shape:
                raise ValueError(
                    f"at of {name!r} has shape {np.shape(at)}, expected a copy for each of {self}."
                )
            return "n", {name: np.asanyarray(at)}
        letters = self.letters_of(lead)
        if letters is None:
            raise ValueError(
                f"{name!r} has copies {lead} for {self}: say by at=... which copy every row has."
            )
        return letters, {}

    def __str__(self):
        return " x ".join(map(str, self.shape)) + " rows" if np.prod(self.shape) > 1 else "1 row"


def row_term(coefficients, statistics, at):
    """A term of coefficients (letters, array) and statistics (name, letters), rows summed if possible."""
    letters = "".join(dict.fromkeys("".join(own for _, own in statistics)))
    kept = [letter for letter in letters if any(letter in own for own, _ in coefficients)]
    expression = ",".join(own for own, _ in coefficients) + "->" + "".join(kept)
    coefficient = np.einsum(expression, *(array for _, array in coefficients), optimize=True)
    names = [name for name, _ in statistics]
    subscripts = ",".join(["".join(kept), *(own for _, own in statistics)])
    return Term(coefficient, *names, subscripts=subscripts, at=at)


def data_rows(values, n_axes=1, **limits):
    """Data as an array of floats, a row for each. A ValueError where they are none, or not finite."""
    remedy = "Leave such rows out, or give them any number and the weight 0."
    rows = numbers("y" if n_axes == 1 else "X", values, remedy=remedy, **limits)
    if rows.ndim != n_axes:
        expected = "(n,)" if n_axes == 1 else "(n, P)"
        raise ValueError(f"the data have shape {rows.shape}, expected {expected}.")
    return rows


def likelihood(text, n_rows, weights, given, build):
    """The `Density` of rows with case weights, which a categorical factor may choose components for.

    Parameters
    ----------
    text : str
    n_rows : int
    weights : array-like of shape (n_rows,), or None
    given : str or None
        Name of the factor.
    build : callable, (factors, `Rows`) -> list of Term
    """
    of_rows = case_weights(weights, (n_rows,))
    of_factors = {} if given is None or weights is None else {given: of_rows}
    return Density(text, lambda factors: build(factors, _rows(factors, given, of_rows)), of_factors)


def _rows(factors, given, weights):
    """The `Rows` of data. A ValueError where their weights are not those of their copies."""
    if given is None:
        return Rows(weights.shape, weights)
    factor = required_factor(factors, given, Categorical)
    if factor.lead != weights.shape:
        raise ValueError(f"{given!r} has copies {factor.lead}, expected one for each of {len(weights)} rows.")
    own = case_weights(factor.weights, factor.lead)
    if not np.array_equal(own, weights):
        row = np.flatnonzero(own != weights)[0]
        raise ValueError(
            f"row {row} has the weight {weights[row]:g}, but its copy of {given!r} has {own[row]:g}, and a "
            f"weight counts all that belongs to a row. (a) Give the same weights to all likelihoods with "
            f"given={given!r}. (b) Repeat rows instead."
        )
    chosen = [(f"{given}.indicator", "nk")]
    return Rows(weights.shape, weights, chosen, factor.family.n_categories)
