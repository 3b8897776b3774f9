"""Densities of counts, waiting times, events and categories."""

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.special import gammaln

from sklearn_lrvb.exponential_families import Beta, Dirichlet, Gamma
from sklearn_lrvb.mean_field.arguments import broadcast
from sklearn_lrvb.mean_field.densities.density import (
    Density,
    data_rows,
    described,
    likelihood,
    required_factor,
    row_term,
)
from sklearn_lrvb.mean_field.term import Term


def _of_rows(factors, rows, name, family, at, log_density):
    """Terms of a density that is linear in the statistics of one factor: sum_n w_n [h_n + sum_i c_ni T_i].

    Parameters
    ----------
    log_density : callable, family -> tuple (h of shape (n,), dict, statistic -> ndarray of shape (n,) or \
            sparse matrix (n, K))
    """
    factor = required_factor(factors, name, family)
    letters, positions = rows.lead(name, factor.lead, at)
    constant, coefficients = log_density(factor.family)
    terms = [Term(np.sum(rows.weights * constant))]
    for statistic, coefficient in coefficients.items():
        own = [*rows.chosen, (f"{name}.{statistic}", letters + "v" * (coefficient.ndim - 1))]
        if sparse.issparse(coefficient):
            matrix = sparse.coo_array(coefficient.multiply(rows.coefficients[:, None]))
            axes = ",".join(["nv", *(of for _, of in own)])
            terms.append(Term(matrix, *(of for of, _ in own), subscripts=axes, at=positions))
        else:
            terms.append(row_term([("n", rows.coefficients * coefficient)], own, positions))
    return terms


def _likelihood(text, values, name, family, at, given, weights, log_density):
    def build(factors, rows):
        return _of_rows(factors, rows, name, family, at, log_density)

    return likelihood(text, len(values), weights, given, build)


def poisson_likelihood(
    y: ArrayLike,
    rate: str,
    *,
    exposure: ArrayLike = 1.0,
    at: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    given: str | None = None,
) -> Density:
    """Poisson density of counts with the mean exposure times rate.

    Parameters
    ----------
    y : array-like of shape (n,)
        Counts.
    rate : str
        A `Gamma` factor.
    exposure : array-like of shape (n,), default=1.0
        Positive, for example the time that was watched.
    at, weights, given
        As in `normal_likelihood`: the copy of the rate that every row has, case weights, and the factor that
        chooses among copies.

    Returns
    -------
    density : Density
        To stand in the list of a model's terms.

    Examples
    --------
    >>> from sklearn_lrvb.mean_field import poisson_likelihood
    >>> poisson_likelihood([5, 1, 5], "rates", exposure=[94.3, 15.7, 62.9])
    poisson_likelihood(array(3,), rate='rates')
    """
    rows = data_rows(y, least=0.0, whole=True)
    exposures = broadcast("exposure", exposure, rows.shape, above=0.0)
    constant = rows * np.log(exposures) - gammaln(rows + 1.0)
    text = described("poisson_likelihood", rows, rate=rate)
    values = (constant, {"log": rows, "value": -exposures})
    return _likelihood(text, rows, rate, Gamma, at, given, weights, lambda family: values)


def exponential_likelihood(
    y: ArrayLike,
    rate: str,
    *,
    at: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    given: str | None = None,
) -> Density:
    """Exponential density of positive numbers, such as waiting times.

    Parameters
    ----------
    y : array-like of shape (n,)
        Non-negative.
    rate : str
        A `Gamma` factor.
    at, weights, given
        As in `normal_likelihood`.

    Returns
    -------
    density : Density
        To stand in the list of a model's terms.

    Examples
    --------
    >>> from sklearn_lrvb.mean_field import exponential_likelihood
    >>> exponential_likelihood([0.3, 2.0], "rate")
    exponential_likelihood(array(2,), rate='rate')
    """
    rows = data_rows(y, least=0.0)
    text = described("exponential_likelihood", rows, rate=rate)
    values = (np.zeros(len(rows)), {"log": np.ones(len(rows)), "value": -rows})
    return _likelihood(text, rows, rate, Gamma, at, given, weights, lambda family: values)


def bernoulli_likelihood(
    y: ArrayLike,
    probability: str,
    *,
    at: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    given: str | None = None,
) -> Density:
    """Probability of events that happen (1) or do not (0).

    Parameters
    ----------
    y : array-like of shape (n,)
        Zeros and ones.
    probability : str
        A `Beta` factor.
    at, weights, given
        As in `normal_likelihood`.

    Returns
    -------
    density : Density
        To stand in the list of a model's terms.

    Examples
    --------
    >>> from sklearn_lrvb.mean_field import bernoulli_likelihood
    >>> bernoulli_likelihood([0, 1, 1], "p")
    bernoulli_likelihood(array(3,), probability='p')
    """
    rows = data_rows(y, least=0.0, whole=True)
    if np.any(rows > 1):
        raise ValueError(f"y must be zeros and ones; got {np.max(rows):.6g} at {np.argmax(rows)}.")
    text = described("bernoulli_likelihood", rows, probability=probability)
    values = (np.zeros(len(rows)), {"log": rows, "log_complement": 1.0 - rows})
    return _likelihood(text, rows, probability, Beta, at, given, weights, lambda family: values)


def categorical_likelihood(
    y: ArrayLike,
    probabilities: str,
    *,
    at: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    given: str | None = None,
) -> Density:
    """Probability of observed categories, such as the words of a text.

    Parameters
    ----------
    y : int array-like of shape (n,)
        Categories 0..K-1.
    probabilities : str
        A `Dirichlet` factor of K categories.
    at, weights, given
        As in `normal_likelihood`.

    Returns
    -------
    density : Density
        To stand in the list of a model's terms.

    Examples
    --------
    The words of a topic model, whose topic is z:

    >>> from sklearn_lrvb.mean_field import categorical_likelihood
    >>> categorical_likelihood([3, 0, 3], "topics", given="z")
    categorical_likelihood(array(3,), probabilities='topics')
    """
    rows = data_rows(y, least=0.0, whole=True)

    def log_density(family):
        if np.any(rows >= family.n_categories):
            raise ValueError(
                f"the data of {probabilities!r} are categories 0 to {family.n_categories - 1}; got "
                f"{np.max(rows):.6g} at {np.argmax(rows)}."
            )
        entries = np.ones(len(rows)), (np.arange(len(rows)), rows.astype(int))
        return np.zeros(len(rows)), {"log": sparse.csr_array(entries, shape=(len(rows), family.n_categories))}

    text = described("categorical_likelihood", rows, probabilities=probabilities)
    return _likelihood(text, rows, probabilities, Dirichlet, at, given, weights, log_density)
