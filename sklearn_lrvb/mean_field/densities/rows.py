"""Rows of data, or copies of a factor, in terms: their letters, weights, and the components they belong to.

*Conventions.* Rows have the letter "n", or "na..." for copies of several axes; components that a categorical
factor chooses the letter "k", and entries of vectors "p" and "q".
"""

from dataclasses import dataclass

import numpy as np

from sklearn_lrvb.exponential_families import Categorical
from sklearn_lrvb.mean_field.densities.density import required_factor
from sklearn_lrvb.mean_field.term import Term


@dataclass(frozen=True)
class Rows:
    """What a density is a sum over.

    Attributes
    ----------
    shape : tuple of int
        (n,), or that of a factor's copies.
    n_components : int or None
        Number of components that a categorical factor chooses from.
    """

    shape: tuple[int, ...]
    n_components: int | None = None

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
            return "n", {name: np.asarray(at)}
        letters = self.letters_of(lead)
        if letters is None:
            raise ValueError(
                f"{name!r} has copies {lead} for {self}: say by at=... which copy every row has."
            )
        return letters, {}

    def __str__(self):
        return " x ".join(map(str, self.shape)) + " rows" if np.prod(self.shape) > 1 else "1 row"


def spread(values, shape, what):
    """Known values as an array of this shape. A ValueError where they do not broadcast to it."""
    values = np.asarray(values, dtype=float)
    try:
        return np.broadcast_to(values, shape)
    except ValueError:
        raise ValueError(f"{what} has shape {values.shape}, which does not fit {shape}.") from None


def row_term(coefficients, statistics, at):
    """A term of coefficients (letters, array) and statistics (name, letters), rows summed if possible."""
    letters = "".join(dict.fromkeys("".join(own for _, own in statistics)))
    kept = [letter for letter in letters if any(letter in own for own, _ in coefficients)]
    expression = ",".join(own for own, _ in coefficients) + "->" + "".join(kept)
    coefficient = np.einsum(expression, *(array for _, array in coefficients), optimize=True)
    names = [name for name, _ in statistics]
    subscripts = ",".join(["".join(kept), *(own for _, own in statistics)])
    return Term(coefficient, *names, subscripts=subscripts, at=at)


def case_weights(weights, n_rows):
    """How many rows each row counts as, (n_rows,); one without weights. A ValueError for other numbers."""
    weights = np.ones(n_rows) if weights is None else np.asarray(weights, dtype=float)
    if weights.shape != (n_rows,) or not np.all((weights >= 0) & np.isfinite(weights)):
        raise ValueError(f"weights must be {n_rows} finite numbers of at least 0; got shape {weights.shape}.")
    return weights


def data_rows(values, n_axes=1):
    """Data as an array of floats, a row for each. A ValueError where they are none, or not finite."""
    values = np.asarray(values, dtype=float)
    if values.ndim != n_axes:
        expected = "(n,)" if n_axes == 1 else "(n, P)"
        raise ValueError(f"the data have shape {values.shape}, expected {expected}.")
    is_wrong = ~np.isfinite(values.reshape(len(values), -1)).all(axis=1)
    if np.any(is_wrong):
        raise ValueError(
            f"{np.count_nonzero(is_wrong)} of {len(values)} rows of the data are nan or infinite, the first "
            f"is row {np.argmax(is_wrong)}. Leave them out, or give them any number and the weight 0."
        )
    return values


def chosen_rows(factors, given, n_rows):
    """The statistics that choose the component of every row, and the `Rows`."""
    if given is None:
        return [], Rows((n_rows,))
    factor = required_factor(factors, given, Categorical)
    if factor.lead != (n_rows,):
        raise ValueError(f"{given!r} has copies {factor.lead}, expected one for each of {n_rows} rows.")
    return [(f"{given}.indicator", "nk")], Rows((n_rows,), factor.family.n_categories)
