"""Normal densities of numbers whose mean is linear in factors: a residual of a constant and linear parts."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from sklearn_lrvb.exponential_families import (
    Gamma,
    GaussianChain,
    MultivariateNormal,
    UnivariateNormal,
    Wishart,
)
from sklearn_lrvb.mean_field.arguments import floats, numbers, positive_definite, spread
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


def normal_likelihood(
    y: ArrayLike,
    mean: "str | Linear | ArrayLike | Sequence",
    precision: "str | ArrayLike",
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
    >>> from sklearn_lrvb.exponential_families import Gamma, MultivariateNormal
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
    values = data_rows(y)
    constant, parts = predictor(mean)
    residual = values - spread("the known part of the mean", constant, values.shape)

    def build(factors, rows):
        own = [linear_part(factors, part, -1.0, rows) for part in parts]
        of_precision = number_precision(factors, precision, precision_at, rows)
        return normal_terms(rows, residual, own, of_precision)

    text = described("normal_likelihood", values, mean=mean, precision=precision)
    return likelihood(text, len(values), weights, given, build)


def multivariate_normal_likelihood(
    X: ArrayLike,
    mean: "str | Linear | ArrayLike | Sequence",
    precision: "str | ArrayLike",
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
    values = data_rows(X, n_axes=2)
    constant, parts = predictor(mean)
    residual = values - spread("the known part of the mean", constant, values.shape)

    def build(factors, rows):
        n_features = values.shape[1]
        own = [vector_part(factors, part, -1.0, n_features, rows) for part in parts]
        of_precision = vector_precision(factors, precision, n_features, rows)
        return vector_normal_terms(rows, residual, own, of_precision)

    text = described("multivariate_normal_likelihood", values, mean=mean, precision=precision)
    return likelihood(text, len(values), weights, given, build)


def normal_prior(
    name: str, mean: "str | Linear | ArrayLike | Sequence", precision: "str | ArrayLike"
) -> Density:
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
        if is_of(factor.family, MultivariateNormal):
            return _vector_prior(factors, name, factor, mean, precision)
        rows = Rows(factor.lead or (1,), np.ones(factor.lead or (1,)))
        constant, parts = predictor(mean)
        own = [linear_part(factors, Linear(name), 1.0, rows)]
        own += [linear_part(factors, part, -1.0, rows) for part in parts]
        residual = -spread(f"the mean of {name!r}", constant, rows.shape)
        of_precision = number_precision(factors, precision, None, rows)
        return normal_terms(rows, residual, own, of_precision)

    return Density(described("normal_prior", name, mean=mean, precision=precision), build)


def _vector_prior(factors, name, factor, mean, precision):
    rows, n_features = Rows(factor.lead, np.ones(factor.lead)), factor.family.n_features
    constant, parts = predictor(mean)
    own = [vector_part(factors, Linear(name), 1.0, n_features, rows)]
    own += [vector_part(factors, part, -1.0, n_features, rows) for part in parts]
    residual = -spread(f"the mean of {name!r}", constant, (*rows.shape, n_features))
    of_precision = vector_precision(factors, precision, n_features, rows)
    return vector_normal_terms(rows, residual, own, of_precision)
