"""Densities of counts, waiting times, events and categories."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.special import gammaln

from sklearn_lrvb.mean_field.arguments import broadcast
from sklearn_lrvb.mean_field.densities.density import (
    Density,
    data_rows,
    likelihood,
    required_factor,
    row_term,
)
from sklearn_lrvb.mean_field.exponential_families import Beta, Dirichlet, Gamma
from sklearn_lrvb.mean_field.term import Term


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
    counts = data_rows(y, least=0.0, whole=True)
    exposures = broadcast("exposure", exposure, counts.shape, above=0.0)
    constant = counts * np.log(exposures) - gammaln(counts + 1.0)

    def build(factors, rows):
        factor = required_factor(factors, rate, Gamma)
        return _terms_of_rows(rows, rate, factor, at, constant, {"log": counts, "value": -exposures})

    return likelihood("poisson_likelihood", counts, {"rate": rate}, weights, given, build)


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
    times = data_rows(y, least=0.0)

    def build(factors, rows):
        factor = required_factor(factors, rate, Gamma)
        return _terms_of_rows(rows, rate, factor, at, 0.0, {"log": np.ones(len(times)), "value": -times})

    return likelihood("exponential_likelihood", times, {"rate": rate}, weights, given, build)


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
    events = data_rows(y, least=0.0, whole=True)
    if np.any(events > 1):
        raise ValueError(f"y must be zeros and ones; got {np.max(events):.6g} at {np.argmax(events)}.")

    def build(factors, rows):
        factor = required_factor(factors, probability, Beta)
        coefficients = {"log": events, "log_complement": 1.0 - events}
        return _terms_of_rows(rows, probability, factor, at, 0.0, coefficients)

    return likelihood("bernoulli_likelihood", events, {"probability": probability}, weights, given, build)


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
    categories = data_rows(y, least=0.0, whole=True)

    def build(factors, rows):
        factor = required_factor(factors, probabilities, Dirichlet)
        n_categories = factor.family.n_categories
        if np.any(categories >= n_categories):
            raise ValueError(
                f"the data of {probabilities!r} are categories 0 to {n_categories - 1}; got "
                f"{np.max(categories):.6g} at {np.argmax(categories)}."
            )
        entries = np.ones(len(categories)), (np.arange(len(categories)), categories.astype(int))
        indicator = sparse.csr_array(entries, shape=(len(categories), n_categories))
        return _terms_of_rows(rows, probabilities, factor, at, 0.0, {"log": indicator})

    named = {"probabilities": probabilities}
    return likelihood("categorical_likelihood", categories, named, weights, given, build)


def _terms_of_rows(rows, name, factor, at, constant, coefficients):
    """Terms of a density that is linear in the statistics of one factor: sum_n w_n [h_n + sum_i c_ni T_i].

    Parameters
    ----------
    rows : Rows
    name : str
    factor : Factor
    at : int array-like, or None
        The copy of the factor that every row has.
    constant : float or ndarray of shape (n,)
        h.
    coefficients : dict, statistic -> ndarray of shape (n,), or sparse matrix (n, K)
        c.
    """
    letters, positions = rows.lead(name, factor.lead, at)
    terms = [Term(np.sum(rows.weights * constant))]
    for statistic, coefficient in coefficients.items():
        moments = [*rows.chosen, (f"{name}.{statistic}", letters + "v" * (coefficient.ndim - 1))]
        if sparse.issparse(coefficient):
            matrix = sparse.coo_array(coefficient.multiply(rows.coefficients[:, None]))
            axes = ",".join(["nv", *(of for _, of in moments)])
            terms.append(Term(matrix, *(of for of, _ in moments), subscripts=axes, at=positions))
        else:
            terms.append(row_term([("n", rows.coefficients * coefficient)], moments, positions))
    return terms
