"""Normal densities of vectors: a residual of a constant and of vectors, and a precision of several kinds."""

from dataclasses import dataclass

import numpy as np

from sklearn_lrvb.exponential_families import Gamma, MultivariateNormal, Wishart
from sklearn_lrvb.mean_field.arguments import numbers, positive_definite
from sklearn_lrvb.mean_field.densities.density import is_of, required_factor
from sklearn_lrvb.mean_field.densities.normal_terms import LOG_2_PI
from sklearn_lrvb.mean_field.densities.rows import row_term
from sklearn_lrvb.mean_field.term import Term


@dataclass(frozen=True, eq=False)
class _VectorPart:
    """A normal vector in a residual, with its sign.

    Attributes
    ----------
    name : str
    sign : float
    lead : str
        Letters of its copies.
    at : dict
        Positions of its copies.
    """

    name: str
    sign: float
    lead: str
    at: dict


def vector_part(factors, linear, sign, n_features, rows):
    """The `_VectorPart` of a `Linear` without a design."""
    factor = required_factor(factors, linear.name, MultivariateNormal)
    if linear.design is not None:
        raise ValueError(f"{linear.name!r} is part of the mean of a vector, in which it has no design.")
    _require_features(linear.name, factor, n_features)
    return _VectorPart(linear.name, sign, *rows.lead(linear.name, factor.lead, linear.at))


def _require_features(name, factor, n_features):
    if factor.family.n_features != n_features:
        raise ValueError(
            f"{name!r} has {factor.family.n_features} features, expected {n_features} as the vectors."
        )


@dataclass(frozen=True, eq=False)
class _VectorPrecision:
    """The precision matrix of a vector.

    Attributes
    ----------
    pair : str
        "pq", or "pp" for a diagonal one: letters of the two vectors that it stands between.
    coefficients : list of (letters, ndarray)
        What is known of it.
    value, log_det : list of (statistic, letters)
        What is not, and a statistic that is summed to the logarithm of its determinant,
    log_det_factor : float
        times this number.
    log_det_constant : float or ndarray
        The logarithm of the determinant of what is known, for all rows or for every row.
    """

    pair: str
    coefficients: list
    value: list
    log_det: list
    log_det_factor: float = 1.0
    log_det_constant: float | np.ndarray = 0.0


def vector_precision(factors, precision, n_features, rows):
    """The `_VectorPrecision` from numbers or the name of a factor."""
    if not isinstance(precision, str):
        return _known(precision, n_features, rows)
    factor = required_factor(factors, precision, Gamma, Wishart)
    if is_of(factor.family, Wishart):
        _require_features(precision, factor, n_features)
        letters, _ = rows.lead(precision, factor.lead, None)
        value, log_det = (f"{precision}.value", letters + "pq"), (f"{precision}.log_det", letters)
        return _VectorPrecision("pq", [], [value], [log_det])
    letters, is_diagonal = _gamma_letters(precision, factor, n_features, rows)
    value, log = (f"{precision}.value", letters), (f"{precision}.log", letters)
    return _VectorPrecision("pp", [], [value], [log], 1.0 if is_diagonal else float(n_features))


def _known(precision, n_features, rows):
    matrix = numbers("the precision", precision)
    if matrix.ndim == 0:
        matrix = matrix * np.eye(n_features)
    square = n_features, n_features
    if matrix.shape not in (square, (*rows.shape, *square)):
        raise ValueError(
            f"the precision has shape {matrix.shape}, expected a number, a matrix {square}, or a matrix for "
            f"each of {rows}. Numbers for the entries of a vector are the matrix np.diag(numbers)."
        )
    matrix = positive_definite("the precision", matrix, n_features)
    letters = rows.letters if matrix.ndim > 2 else ""
    log_det = np.linalg.slogdet(matrix)[1]
    return _VectorPrecision("pq", [(letters + "pq", matrix)], [], [], log_det_constant=log_det)


def _gamma_letters(name, factor, n_features, rows):
    """Letters of the copies of a `Gamma` factor, and whether each entry of a vector has its own."""
    lead = factor.lead
    whole = rows.letters_of(lead)
    entries = rows.letters_of(lead[:-1]) if lead[-1:] == (n_features,) else None
    if whole is None and entries is None:
        raise ValueError(
            f"{name!r} has copies {lead}, expected none or one for each of {rows}, or (..., "
            f"{n_features}) with one for each entry."
        )
    if whole is not None and entries is not None:
        raise ValueError(
            f"the copies {lead} of {name!r} may belong to the vectors or to their {n_features} entries: give "
            "it copies of both, or a copy of the vector's factor more."
        )
    return (whole, False) if entries is None else (entries + "p", True)


def vector_normal_terms(rows, constant, parts, precision):
    """Terms of sum_n w_n [log|L| / 2 - P log(2 pi) / 2 - r_n' L r_n / 2], r_n a constant plus the parts.

    Parameters
    ----------
    rows : Rows
    constant : ndarray of shape (n, P)
    parts : list of _VectorPart
    precision : _VectorPrecision
        L.
    """
    n, (first, second), chosen = rows.letters, precision.pair, rows.chosen
    log_density = precision.log_det_constant - constant.shape[-1] * LOG_2_PI
    terms = [Term(0.5 * np.sum(rows.weights * log_density))]
    if precision.log_det:
        half = n, 0.5 * precision.log_det_factor * rows.coefficients
        terms.append(row_term([half], [*chosen, *precision.log_det], None))
    left, right = (n + first, constant), (n + second, constant)
    products = [([("", np.array(-0.5)), left, right], [], {})]
    for place, part in enumerate(parts):
        value = f"{part.name}.value", part.lead + second
        outer = f"{part.name}.outer", part.lead + precision.pair
        products.append(([("", np.array(-part.sign)), left], [value], part.at))
        products.append(([("", np.array(-0.5))], [outer], part.at))
        for other in parts[:place]:
            if other.name == part.name:
                raise ValueError(f"{part.name!r} occurs twice in a normal density of vectors.")
            others = f"{other.name}.value", other.lead + first
            sign = "", np.array(-part.sign * other.sign)
            products.append(([sign], [value, others], {**part.at, **other.at}))
    for coefficients, moments, at in products:
        known = [(n, rows.coefficients), *precision.coefficients, *coefficients]
        terms.append(row_term(known, [*chosen, *moments, *precision.value], at))
    return terms
