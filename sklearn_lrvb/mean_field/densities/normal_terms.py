"""Normal densities of numbers whose mean is linear in factors: a residual of a constant and linear parts."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from sklearn_lrvb.exponential_families import Gamma, GaussianChain, MultivariateNormal, UnivariateNormal
from sklearn_lrvb.mean_field.arguments import floats, numbers, spread
from sklearn_lrvb.mean_field.densities.density import described, is_of, required_factor
from sklearn_lrvb.mean_field.densities.rows import row_term
from sklearn_lrvb.mean_field.term import Term

LOG_2_PI = np.log(2.0 * np.pi)


@dataclass(frozen=True, eq=False)
class Linear:
    """A part of a linear predictor: a design times the variable of a normal factor.

    Parameters
    ----------
    name : str
        A factor of a normal family: `UnivariateNormal`, `MultivariateNormal` or `GaussianChain`.
    design : array-like of shape (n,) or (n, P), default=None
        What multiplies the variable: a number for every row, or the features of a vector of P coefficients.
        None is one.
    at : int array-like of shape (n,), default=None
        The copy of the factor that every row has. By default a factor with copies has one for every row, a
        chain a step for every row, and a factor without copies is the same for all.

    Examples
    --------
    The predictor x'beta + a[group], of features and groups:

    >>> import numpy as np
    >>> from sklearn_lrvb.mean_field import Linear
    >>> x, group = np.ones((3, 2)), [0, 0, 1]
    >>> predictor = [Linear("beta", x), Linear("a", at=group)]
    """

    name: str
    design: ArrayLike | None = None
    at: ArrayLike | None = None

    def __repr__(self) -> str:
        named = {"design": self.design, "at": self.at}
        return described(
            "Linear", self.name, **{key: value for key, value in named.items() if value is not None}
        )


@dataclass(frozen=True, eq=False)
class _Part:
    """One part of a residual, sign times design times a statistic of a normal factor.

    Attributes
    ----------
    name : str
    coefficient : ndarray
        Sign and design, with the letters ``own``.
    own : str
    value, second : str
        The statistics of first and second moments.
    letters, second_letters : str
        Their axes.
    at : dict
        Positions of the factor's copies.
    """

    name: str
    coefficient: np.ndarray
    own: str
    value: str
    letters: str
    second: str
    second_letters: str
    at: dict


def linear_part(factors, linear, sign, rows):
    """The `_Part` of a `Linear`."""
    factor = required_factor(factors, linear.name, UnivariateNormal, MultivariateNormal, GaussianChain)
    family, name = factor.family, linear.name
    is_vector = is_of(family, MultivariateNormal)
    if isinstance(family, GaussianChain):
        lead, positions = _chain_letters(name, factor, linear.at, rows)
    else:
        lead, positions = rows.lead(name, factor.lead, linear.at)
    design, own = np.array(float(sign)), ""
    if linear.design is not None:
        own = rows.letters + "p" * is_vector
        expected = (*rows.shape, family.n_features) if is_vector else rows.shape
        design = sign * numbers(f"the design of {name!r}", linear.design, expected)
    elif is_vector:
        raise ValueError(
            f"{name!r} is a vector of {family.n_features} coefficients: give it a design (n, P)."
        )
    value, second = list(family.statistics)[:2]
    vector, pair = ("p", "pq") if is_vector else ("", "")
    return _Part(name, design, own, value, lead + vector, second, lead + pair, positions)


def _chain_letters(name, factor, at, rows):
    if factor.lead or at is not None or (factor.family.n_steps,) != rows.shape:
        raise ValueError(
            f"the chain {name!r} has {factor.family.n_steps} steps and copies {factor.lead}, expected one "
            f"step for each of {rows}. Rows that are missing are those of weight 0."
        )
    return "n", {}


@dataclass(frozen=True, eq=False)
class _Precision:
    """The precision of a number, known or a factor.

    Attributes
    ----------
    coefficients : list of (letters, ndarray)
        What is known of it.
    value, log : list of (statistic, letters)
        What is not, and its logarithm.
    log_constant : ndarray
        The logarithm of what is known, for every row.
    at : dict
        Positions of the factor's copies.
    """

    coefficients: list
    value: list
    log: list
    log_constant: np.ndarray
    at: dict


def number_precision(factors, precision, at, rows):
    """The `_Precision` from numbers or the name of a factor."""
    if not isinstance(precision, str):
        known = spread("the precision", precision, rows.shape, above=0.0)
        return _Precision([(rows.letters, known)], [], [], np.log(known), {})
    factor = required_factor(factors, precision, Gamma)
    letters, positions = rows.lead(precision, factor.lead, at)
    value, log = (f"{precision}.value", letters), (f"{precision}.log", letters)
    return _Precision([], [value], [log], np.zeros(rows.shape), positions)


def normal_terms(rows, constant, parts, precision):
    """Terms of sum_n w_n [log(tau) / 2 - log(2 pi) / 2 - tau r_n^2 / 2], r_n a constant plus the parts.

    Parameters
    ----------
    rows : Rows
    constant : ndarray of shape (n,)
    parts : list of _Part
    precision : _Precision
    """
    n, at, chosen = rows.letters, precision.at, rows.chosen
    base = [(n, rows.coefficients), *precision.coefficients]
    terms = [Term(0.5 * np.sum(rows.weights * (precision.log_constant - LOG_2_PI)))]
    if precision.log:
        terms.append(row_term([(n, 0.5 * rows.coefficients)], [*chosen, *precision.log], at))
    terms.append(row_term([*base, (n, -0.5 * constant**2)], [*chosen, *precision.value], at))
    for place, part in enumerate(parts):
        first = part.own, part.coefficient
        again = part.own.replace("p", "q"), part.coefficient
        linear = (f"{part.name}.{part.value}", part.letters)
        square = (f"{part.name}.{part.second}", part.second_letters)
        products = [
            ([(n, -constant), first], [linear], {}),
            ([("", np.array(-0.5)), first, again], [square], {}),
        ]
        for other in parts[:place]:
            if other.name == part.name:
                raise ValueError(
                    f"{part.name!r} occurs twice in a normal density: its copies would need a joint factor."
                )
            own = other.own.replace("p", "q"), other.coefficient
            others = f"{other.name}.{other.value}", other.letters.replace("p", "q")
            products.append(([("", np.array(-1.0)), first, own], [linear, others], other.at))
        for coefficients, moments, of_other in products:
            statistics = [*chosen, *moments, *precision.value]
            terms.append(row_term([*base, *coefficients], statistics, {**at, **part.at, **of_other}))
    return terms


def predictor(mean):
    """The constant, and the linear parts, of a mean: number, array, name, `Linear` or a list of these."""
    constant, parts = 0.0, []
    for item in mean if _is_list_of_parts(mean) else [mean]:
        if isinstance(item, str):
            parts.append(Linear(item))
        elif isinstance(item, Linear):
            parts.append(item)
        else:
            constant = constant + floats("the known part of the mean", item)
    return constant, parts


def _is_list_of_parts(mean):
    """Whether a mean is a list of parts, and no list of numbers that stands for an array."""
    return isinstance(mean, list | tuple) and any(isinstance(item, str | Linear) for item in mean)
