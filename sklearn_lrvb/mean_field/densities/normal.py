"""Normal densities, of data and of factors, of numbers and of vectors.

Each is sum_n w_n [log|L| / 2 - P log(2 pi) / 2 - r_n' L r_n / 2], where the residual r_n is a constant plus
parts that are linear in normal factors, and P is 1 for numbers.

*Conventions.* The entries of r_n have the letters of `_Precision.pair` on the two sides of L: none for a
number, "p" and "q" for a vector, or "p" twice where L is diagonal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from sklearn_lrvb.mean_field.arguments import broadcast, floats, numbers, positive_definite
from sklearn_lrvb.mean_field.densities.density import (
    Density,
    Rows,
    data_rows,
    described,
    is_of,
    likelihood,
    required_factor,
    row_term,
)
from sklearn_lrvb.mean_field.exponential_families import (
    Gamma,
    GaussianChain,
    MultivariateNormal,
    UnivariateNormal,
    Wishart,
)
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


def normal_likelihood(
    y: ArrayLike,
    mean: str | Linear | ArrayLike | Sequence,
    precision: str | ArrayLike,
    *,
    precision_at: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    given: str | None = None,
) -> Density:
    """Normal density of data, with a mean that is linear in normal factors.

    Parameters
    ----------
    y : array-like of shape (n,)
        The data.
    mean : str, Linear, number, array-like of shape (n,), or a list of these
        The mean is their sum: names of factors, `Linear` parts with features or groups, and known offsets.
    precision : str, number or array-like of shape (n,)
        One over the variance: the name of a `Gamma` factor, or known.
    precision_at : int array-like of shape (n,), default=None
        The copy of the precision that every row has.
    weights : array-like of shape (n,), default=None
        Case weights: a row counts as that many equal rows, and not at all with weight 0. None is one. With
        ``given``, the row's category, its prior and its entropy count as often (`Factor.weights`), and all
        likelihoods with the same ``given`` need the same weights. Copies of other factors do not belong to a
        row, but are shared by the rows that it counts as.
    given : str, default=None
        A `Categorical` factor with a copy for every row, which chooses among the copies of the mean's and the
        precision's factors: a mixture.

    Returns
    -------
    density : Density
        To stand in the list of a model's terms.

    Examples
    --------
    Linear regression with unknown noise:

    >>> import numpy as np
    >>> from sklearn_lrvb.mean_field.exponential_families import Gamma, MultivariateNormal
    >>> from sklearn_lrvb.mean_field import (
    ...     Linear, MeanFieldModel, gamma_prior, normal_likelihood, normal_prior
    ... )
    >>> X = np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0], [1.0, 3.0], [1.0, 4.0]])
    >>> y = [0.1, 1.2, 1.9, 3.2, 3.9]
    >>> model = MeanFieldModel(
    ...     {"beta": MultivariateNormal(2), "tau": Gamma()},
    ...     [
    ...         normal_likelihood(y, mean=Linear("beta", X), precision="tau"),
    ...         normal_prior("beta", mean=0.0, precision=0.01),
    ...         gamma_prior("tau", shape=1.0, rate=0.1),
    ...     ],
    ... )
    >>> model.fit().mean("beta.value").round(2)
    array([0.14, 0.96])
    """
    values, named = data_rows(y), {"mean": mean, "precision": precision}
    build = _terms_of_rows(values, mean, precision, precision_at)
    return likelihood("normal_likelihood", values, named, weights, given, build)


def multivariate_normal_likelihood(
    X: ArrayLike,
    mean: str | Linear | ArrayLike | Sequence,
    precision: str | ArrayLike,
    *,
    weights: ArrayLike | None = None,
    given: str | None = None,
) -> Density:
    """Multivariate normal density of rows, or of a mixture of such.

    Parameters
    ----------
    X : array-like of shape (n, P)
        The data.
    mean : str, Linear, array-like of shape (P,) or (n, P), or a list of these
        The mean is their sum: names of `MultivariateNormal` factors, `Linear` parts with the copy that every
        row has and no design, and known offsets.
    precision : str, number, or array-like of shape (P, P) or (n, P, P)
        The name of a `Wishart` factor, or of a `Gamma` factor as in `normal_prior`, or known.
    weights : array-like of shape (n,), default=None
        Case weights, as in `normal_likelihood`.
    given : str, default=None
        A `Categorical` factor with a copy for every row, which chooses among copies of mean and precision.

    Returns
    -------
    density : Density
        To stand in the list of a model's terms.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_lrvb.mean_field import multivariate_normal_likelihood
    >>> multivariate_normal_likelihood(np.zeros((5, 2)), "mu", "Lambda", given="z")
    multivariate_normal_likelihood(array(5, 2), mean='mu', precision='Lambda')
    """
    values, named = data_rows(X, n_axes=2), {"mean": mean, "precision": precision}
    build = _terms_of_rows(values, mean, precision, None)
    return likelihood("multivariate_normal_likelihood", values, named, weights, given, build)


def _terms_of_rows(values, mean, precision, precision_at):
    """Function (factors, rows) that makes the terms of a normal likelihood."""
    constant, parts = _predictor(mean)
    residual = values - broadcast("the known part of the mean", constant, values.shape)
    parts = [(-1.0, part) for part in parts]
    return lambda factors, rows: _normal_terms(factors, rows, residual, parts, precision, precision_at)


def normal_prior(name: str, mean: str | Linear | ArrayLike | Sequence, precision: str | ArrayLike) -> Density:
    """Normal density of a factor, or of all its copies.

    Parameters
    ----------
    name : str
        A factor of the family `UnivariateNormal` or `MultivariateNormal`.
    mean : number, array-like of shape (copies..., shape of x), str, Linear, or a list of these
        Known, or linear in other factors; parts of a list are added. A name is one mean for all copies, or
        one for each. A vector's mean is made of vectors, without designs.
    precision : number, array-like, or str
        Of a number one over its variance. Of a vector a matrix (P, P) or (copies..., P, P), or a number that
        stands for so many times the identity. A name is that of a `Gamma` factor, of which a vector has one
        for all of its entries or a copy for each (automatic relevance), or of a `Wishart` factor. It has no
        copies, or one for each copy of ``name``.

    Returns
    -------
    density : Density
        To stand in the list of a model's terms.

    Examples
    --------
    Group effects around a common mean, with unknown variance:

    >>> from sklearn_lrvb.mean_field import normal_prior
    >>> [normal_prior("a", mean="mu", precision="tau_a"), normal_prior("mu", 0.0, precision=1e-4)]
    [normal_prior('a', mean='mu', precision='tau_a'), normal_prior('mu', mean=0.0, precision=0.0001)]

    Coefficients that vary by group, with unknown mean and covariance:

    >>> normal_prior("slopes", mean="common", precision="Lambda")
    normal_prior('slopes', mean='common', precision='Lambda')
    """

    def build(factors):
        factor = required_factor(factors, name, UnivariateNormal, MultivariateNormal)
        is_vector = is_of(factor.family, MultivariateNormal)
        shape = factor.lead or (() if is_vector else (1,))
        entries = (factor.family.n_features,) if is_vector else ()
        constant, parts = _predictor(mean)
        residual = -broadcast(f"the mean of {name!r}", constant, (*shape, *entries))
        parts = [(1.0, Linear(name)), *((-1.0, part) for part in parts)]
        return _normal_terms(factors, Rows(shape, np.ones(shape)), residual, parts, precision)

    return Density(described("normal_prior", name, mean=mean, precision=precision), build)


def _predictor(mean):
    """The constant, and the `Linear` parts, of a mean: number, array, name, `Linear` or a list of these."""
    # A list of numbers alone stands for an array.
    is_list = isinstance(mean, list | tuple) and any(isinstance(item, str | Linear) for item in mean)
    constant, parts = 0.0, []
    for item in mean if is_list else [mean]:
        if isinstance(item, str):
            parts.append(Linear(item))
        elif isinstance(item, Linear):
            parts.append(item)
        else:
            constant = constant + floats("the known part of the mean", item)
    return constant, parts


def _normal_terms(factors, rows, constant, parts, precision, precision_at=None):
    """The terms of a normal density.

    Parameters
    ----------
    factors : dict, name -> Factor
    rows : Rows
    constant : ndarray of shape (rows...) or (rows..., P)
        Of the residual.
    parts : list of (float, Linear)
        Signs and parts of the residual.
    precision : str, or array-like
    precision_at : int array-like, or None
        The copy of the precision that every row has.
    """
    n, chosen, entries = rows.letters, rows.chosen, constant.shape[len(rows.shape) :]
    if entries:
        precision = _of_vectors(factors, precision, entries[0], rows)
        parts = [_vector_part(factors, *part, precision.pair, entries[0], rows) for part in parts]
    else:
        precision = _of_numbers(factors, precision, precision_at, rows)
        parts = [_number_part(factors, *part, rows) for part in parts]
    log_density = precision.log_det_constant - np.prod(entries) * LOG_2_PI
    terms = [Term(0.5 * np.sum(rows.weights * log_density))]
    if precision.log_det:
        half = n, 0.5 * precision.log_det_factor * rows.coefficients
        terms.append(row_term([half], [*chosen, *precision.log_det], precision.at))
    left, right = ((n + letter, constant) for letter in precision.pair)
    products = [(-0.5, [left, right], [], {})]
    for place, part in enumerate(parts):
        products.append((-1.0, [left, part.design(1)], [part.value(1)], part.at))
        products.append((-0.5, [part.design(0), part.design(1)], [part.second], part.at))
        for other in parts[:place]:
            if other.name == part.name:
                raise ValueError(
                    f"{part.name!r} occurs twice in a normal density: its copies would need a joint factor."
                )
            designs, values = [other.design(0), part.design(1)], [part.value(1), other.value(0)]
            products.append((-1.0, designs, values, {**part.at, **other.at}))
    for factor, coefficients, moments, at in products:
        known = [(n, factor * rows.coefficients), *precision.known, *coefficients]
        terms.append(row_term(known, [*chosen, *moments, *precision.value], {**precision.at, **at}))
    return terms


@dataclass(frozen=True, eq=False)
class _Part:
    """One part of a residual, sign times design times the variable of a normal factor.

    Attributes
    ----------
    name : str
    coefficient : ndarray
        Sign times design.
    rows : str
        Letters of the rows in the design, of which a vector of coefficients has an entry more each.
    has_entries : bool
        Whether the design has these.
    statistic : str
        "factor.statistic" of the variable.
    lead : str
        Letters of the factor's copies.
    second : (statistic, letters)
        The second moments.
    pair : tuple of str
        Letters of the variable's entries on the two sides of L.
    at : dict
        Positions of the factor's copies.
    """

    name: str
    coefficient: np.ndarray
    rows: str
    has_entries: bool
    statistic: str
    lead: str
    second: tuple
    pair: tuple
    at: dict

    def design(self, side):
        """The design on a side of L, with its letters."""
        return self.rows + self.pair[side] * self.has_entries, self.coefficient

    def value(self, side):
        """The variable on a side of L, with its letters."""
        return self.statistic, self.lead + self.pair[side]


def _number_part(factors, sign, linear, rows):
    """The `_Part` of a residual that is a number."""
    factor = required_factor(factors, linear.name, UnivariateNormal, MultivariateNormal, GaussianChain)
    family, name = factor.family, linear.name
    is_vector = is_of(family, MultivariateNormal)
    if not isinstance(family, GaussianChain):
        lead, at = rows.lead(name, factor.lead, linear.at)
    elif factor.lead or linear.at is not None or (family.n_steps,) != rows.shape:
        raise ValueError(
            f"the chain {name!r} has {family.n_steps} steps and copies {factor.lead}, expected one "
            f"step for each of {rows}. Rows that are missing are those of weight 0."
        )
    else:
        lead, at = "n", {}
    coefficient, letters = np.array(sign), ""
    if linear.design is not None:
        expected = (*rows.shape, family.n_features) if is_vector else rows.shape
        coefficient = sign * numbers(f"the design of {name!r}", linear.design, expected)
        letters = rows.letters
    elif is_vector:
        raise ValueError(
            f"{name!r} is a vector of {family.n_features} coefficients: give it a design (n, P)."
        )
    value, second = list(family.statistics)[:2]
    pair = ("p", "q") if is_vector else ("", "")
    moments = f"{name}.{second}", lead + "".join(pair)
    return _Part(name, coefficient, letters, is_vector, f"{name}.{value}", lead, moments, pair, at)


def _vector_part(factors, sign, linear, pair, n_features, rows):
    """The `_Part` of a residual that is a vector."""
    name, factor = linear.name, required_factor(factors, linear.name, MultivariateNormal)
    if linear.design is not None:
        raise ValueError(f"{name!r} is part of the mean of a vector, in which it has no design.")
    _require_features(name, factor, n_features)
    lead, at = rows.lead(name, factor.lead, linear.at)
    moments = f"{name}.outer", lead + "".join(pair)
    return _Part(name, np.array(sign), "", False, f"{name}.value", lead, moments, pair, at)


def _require_features(name, factor, n_features):
    if factor.family.n_features != n_features:
        raise ValueError(
            f"{name!r} has {factor.family.n_features} features, expected {n_features} as the vectors."
        )


@dataclass(frozen=True, eq=False)
class _Precision:
    """The precision L of a number or a vector, known or a factor.

    Attributes
    ----------
    pair : tuple of str
        Letters of the entries that it stands between.
    known : list of (letters, ndarray)
        What is known of it.
    value, log_det : list of (statistic, letters)
        What is not, and a statistic that is summed to the logarithm of its determinant,
    log_det_factor : float
        times this number.
    log_det_constant : float or ndarray
        The logarithm of the determinant of what is known, for all rows or for every row.
    at : dict
        Positions of the factor's copies.
    """

    pair: tuple
    known: list
    value: list
    log_det: list
    log_det_factor: float = 1.0
    log_det_constant: float | np.ndarray = 0.0
    at: dict = field(default_factory=dict)


def _of_numbers(factors, precision, at, rows):
    """The `_Precision` of numbers, from numbers or the name of a factor."""
    if not isinstance(precision, str):
        known = broadcast("the precision", precision, rows.shape, above=0.0)
        return _Precision(("", ""), [(rows.letters, known)], [], [], log_det_constant=np.log(known))
    factor = required_factor(factors, precision, Gamma)
    letters, positions = rows.lead(precision, factor.lead, at)
    value, log = (f"{precision}.value", letters), (f"{precision}.log", letters)
    return _Precision(("", ""), [], [value], [log], at=positions)


def _of_vectors(factors, precision, n_features, rows):
    """The `_Precision` of vectors, from numbers or the name of a factor."""
    if not isinstance(precision, str):
        matrix, square = numbers("the precision", precision), (n_features, n_features)
        if matrix.ndim == 0:
            matrix = matrix * np.eye(n_features)
        if matrix.shape not in (square, (*rows.shape, *square)):
            raise ValueError(
                f"the precision has shape {matrix.shape}, expected a number, a matrix {square}, or a matrix "
                f"for each of {rows}. Numbers for the entries of a vector are the matrix np.diag(numbers)."
            )
        matrix = positive_definite("the precision", matrix, n_features)
        known = (rows.letters if matrix.ndim > 2 else "") + "pq", matrix
        return _Precision(("p", "q"), [known], [], [], log_det_constant=np.linalg.slogdet(matrix)[1])
    factor = required_factor(factors, precision, Gamma, Wishart)
    lead = factor.lead
    if is_of(factor.family, Wishart):
        _require_features(precision, factor, n_features)
        letters, _ = rows.lead(precision, lead, None)
        value, log_det = (f"{precision}.value", letters + "pq"), (f"{precision}.log_det", letters)
        return _Precision(("p", "q"), [], [value], [log_det])
    # Copies of a gamma factor belong to the vectors, or each entry of a vector has its own.
    letters = rows.letters_of(lead)
    of_entries = rows.letters_of(lead[:-1]) if lead[-1:] == (n_features,) else None
    if letters is None and of_entries is None:
        raise ValueError(
            f"{precision!r} has copies {lead}, expected none or one for each of {rows}, or (..., "
            f"{n_features}) with one for each entry."
        )
    if letters is not None and of_entries is not None:
        raise ValueError(
            f"the copies {lead} of {precision!r} may belong to the vectors or to their {n_features} entries: "
            "give it copies of both, or a copy of the vector's factor more."
        )
    log_det_factor = float(n_features)
    if of_entries is not None:
        letters, log_det_factor = of_entries + "p", 1.0
    value, log = (f"{precision}.value", letters), (f"{precision}.log", letters)
    return _Precision(("p", "p"), [], [value], [log], log_det_factor)
