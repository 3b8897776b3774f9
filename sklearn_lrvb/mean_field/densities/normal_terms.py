"""Normal densities of numbers whose mean is linear in factors: a residual of a constant and linear parts."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from sklearn_lrvb.exponential_families import Gamma, GaussianChain, MultivariateNormal, UnivariateNormal
from sklearn_lrvb.mean_field.densities.density import described, is_of, required_factor
from sklearn_lrvb.mean_field.densities.rows import lead_letters, row_term

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


def linear_part(factors, linear, sign, n_rows, component):
    """The `_Part` of a `Linear`; ``component`` is the size of the axis "k", or None."""
    factor = required_factor(factors, linear.name, UnivariateNormal, MultivariateNormal, GaussianChain)
    family, name, at = factor.family, linear.name, linear.at
    is_vector = is_of(family, MultivariateNormal)
    lead, positions = lead_letters(name, factor, at, n_rows, component)
    if isinstance(family, GaussianChain):
        lead, positions = _chain_letters(name, factor, at, n_rows)
    design, own = np.array(float(sign)), ""
    if linear.design is not None:
        design, own = sign * np.asarray(linear.design, dtype=float), "np" if is_vector else "n"
        expected = (n_rows, family.n_features) if is_vector else (n_rows,)
        if design.shape != expected:
            raise ValueError(f"the design of {name!r} has shape {design.shape}, expected {expected}.")
    elif is_vector:
        raise ValueError(
            f"{name!r} is a vector of {family.n_features} coefficients: give it a design (n, P)."
        )
    statistics = list(family.statistics)
    vector = "p" if is_vector else ""
    second = "pq" if is_vector else ""
    return _Part(name, design, own, statistics[0], lead + vector, statistics[1], lead + second, positions)


def _chain_letters(name, factor, at, n_rows):
    if factor.lead or at is not None or factor.family.n_steps != n_rows:
        raise ValueError(
            f"the chain {name!r} has {factor.family.n_steps} steps and copies {factor.lead}, expected one "
            f"step for each of {n_rows} rows. Rows that are missing are those of weight 0."
        )
    return "n", {}


def normal_terms(factors, constant, parts, precision, weights, given):
    """Terms of sum_n w_n [log(tau) / 2 - log(2 pi) / 2 - tau r_n^2 / 2], r_n a constant plus the parts.

    Parameters
    ----------
    constant : ndarray of shape (n,)
    parts : list of _Part
    precision : tuple (coefficient letters and array, statistics of tau, of log tau, constant log, at)
    weights : ndarray of shape (n,)
    given : tuple (name, letters) of the indicator of components, or None
    """
    tau_coefficient, tau, log_tau, log_constant, tau_at = precision
    chosen = [given] if given else []
    base = [("n", weights), *tau_coefficient]
    terms = [row_term([("n", -0.5 * LOG_2_PI * weights + 0.5 * weights * log_constant)], chosen, None)]
    if log_tau:
        terms.append(row_term([("n", 0.5 * weights)], [*chosen, *log_tau], tau_at))
    terms.append(row_term([*base, ("n", -0.5 * constant**2)], [*chosen, *tau], tau_at))
    for place, part in enumerate(parts):
        first = part.own, part.coefficient
        again = part.own.replace("p", "q"), part.coefficient
        at = {**tau_at, **part.at}
        linear = [(f"{part.name}.{part.value}", part.letters)]
        square = [(f"{part.name}.{part.second}", part.second_letters)]
        terms.append(row_term([*base, ("n", -constant), first], [*chosen, *linear, *tau], at))
        terms.append(row_term([*base, ("", np.array(-0.5)), first, again], [*chosen, *square, *tau], at))
        for other in parts[:place]:
            if other.name == part.name:
                raise ValueError(
                    f"{part.name!r} occurs twice in a normal density: its copies would need a joint factor."
                )
            own = other.own.replace("p", "q"), other.coefficient
            letters = other.letters.replace("p", "q")
            both = [*linear, (f"{other.name}.{other.value}", letters)]
            terms.append(
                row_term(
                    [*base, ("", np.array(-1.0)), first, own], [*chosen, *both, *tau], {**at, **other.at}
                )
            )
    return terms


def known_precision(factors, precision, at, n_rows, component):
    """What `normal_terms` needs to know of a precision: numbers, or a factor."""
    if not isinstance(precision, str):
        numbers = np.broadcast_to(np.asarray(precision, dtype=float), (n_rows,))
        if not np.all((numbers > 0) & np.isfinite(numbers)):
            raise ValueError(f"The precision must be positive and finite; got {np.min(numbers):.4g}.")
        return [("n", numbers)], [], [], np.log(numbers), {}
    factor = required_factor(factors, precision, Gamma)
    letters, positions = lead_letters(precision, factor, at, n_rows, component)
    return [], [(f"{precision}.value", letters)], [(f"{precision}.log", letters)], 0.0, positions


def predictor(mean):
    """The constant, and the linear parts, of a mean: number, array, name, `Linear` or a list of these."""
    constant, parts = 0.0, []
    for item in mean if isinstance(mean, list | tuple) else [mean]:
        if isinstance(item, str):
            parts.append(Linear(item))
        elif isinstance(item, Linear):
            parts.append(item)
        else:
            constant = constant + np.asarray(item, dtype=float)
    return constant, parts
