"""Rows of data in terms: their letters, weights, and the components that they belong to.

*Conventions.* Rows have the letter "n", components that a categorical factor chooses the letter "k", and
entries of vectors "p" and "q".
"""

import numpy as np

from sklearn_lrvb.exponential_families import Categorical, GaussianChain
from sklearn_lrvb.mean_field.densities.density import required_factor
from sklearn_lrvb.mean_field.term import Term


def lead_letters(name, factor, at, n_rows, component):
    """Letters of a factor's copies, and its entry of ``at``."""
    if at is not None and not isinstance(factor.family, GaussianChain):
        if np.shape(at) != (n_rows,):
            raise ValueError(
                f"at of {name!r} has shape {np.shape(at)}, expected a copy for each of {n_rows} rows."
            )
        return "n", {name: np.asarray(at)}
    if not factor.lead:
        return "", {}
    if component is not None and factor.lead == (component,):
        return "k", {}
    if factor.lead != (n_rows,):
        raise ValueError(
            f"{name!r} has copies {factor.lead} for {n_rows} rows: say by at=... which copy every row has."
        )
    return "n", {}


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


def data_rows(values):
    """Data as a vector of floats. A ValueError where they are none, or not finite."""
    values = np.asarray(values, dtype=float)
    if values.ndim != 1 or not np.all(np.isfinite(values)):
        raise ValueError(f"the data must be a vector of finite numbers; got shape {values.shape}.")
    return values


def indicator_of(factors, given, n_rows):
    """The statistic of the components that rows belong to, and their number; None, None without."""
    if given is None:
        return None, None
    factor = required_factor(factors, given, Categorical)
    if factor.lead != (n_rows,):
        raise ValueError(f"{given!r} has copies {factor.lead}, expected one for each of {n_rows} rows.")
    return (f"{given}.indicator", "nk"), factor.family.n_categories
