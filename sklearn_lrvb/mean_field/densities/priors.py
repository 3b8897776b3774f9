"""Prior densities of factors."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln

from sklearn_lrvb.mean_field.arguments import broadcast, numbers, positive_definite
from sklearn_lrvb.mean_field.densities.density import Density, described, required_factor
from sklearn_lrvb.mean_field.densities.normal import LOG_2_PI
from sklearn_lrvb.mean_field.exponential_families import (
    Beta,
    Categorical,
    Dirichlet,
    Gamma,
    GaussianChain,
    Wishart,
)
from sklearn_lrvb.mean_field.term import Term


def _prior(text, name, family, natural):
    """The `Density` of a member of a factor's family, for every copy.

    Parameters
    ----------
    text, name : str
    family : type
    natural : callable, family -> natural parameters, which broadcast over the copies
    """

    def build(factors):
        factor = required_factor(factors, name, family)
        parameters = natural(factor.family)
        try:
            parameters = np.broadcast_to(parameters, factor.shape)
        except ValueError:
            raise ValueError(
                f"parameters for copies {np.shape(parameters)[:-1]} do not fit the copies {factor.lead} of "
                f"{name!r}."
            ) from None
        factor.family.check(parameters)
        return [
            *(Term(factor.entries(parameters, own), f"{name}.{own}") for own in factor.family.statistics),
            Term(-np.sum(factor.counted(factor.family.log_partition(parameters)))),
        ]

    return Density(text, build)


def gamma_prior(name: str, shape: ArrayLike, rate: ArrayLike | str) -> Density:
    """Gamma density of a factor, or of all its copies.

    Parameters
    ----------
    name : str
        A factor of the family `Gamma`.
    shape : array-like of shape (copies...)
        Positive; it broadcasts over copies.
    rate : array-like of shape (copies...), or str
        Positive; or the name of another `Gamma` factor, one for all copies or one for each.

    Returns
    -------
    density : Density
        To stand in the list of a model's terms.

    Examples
    --------
    The hierarchical prior of the rates of ten pumps:

    >>> from sklearn_lrvb.mean_field import gamma_prior
    >>> [gamma_prior("rates", shape=1.802, rate="beta"), gamma_prior("beta", shape=0.1, rate=1.0)]
    [gamma_prior('rates', shape=1.802, rate='beta'), gamma_prior('beta', shape=0.1, rate=1.0)]
    """
    text = described("gamma_prior", name, shape=shape, rate=rate)
    shape = numbers("shape", shape, above=0.0)
    if not isinstance(rate, str):
        rate = numbers("rate", rate, above=0.0)
        return _prior(text, name, Gamma, lambda family: family.natural_parameters(shape, rate))

    def build(factors):
        factor, of_rate = required_factor(factors, name, Gamma), required_factor(factors, rate, Gamma)
        shapes = broadcast("shape", shape, factor.lead)
        letters, letters_of_rate = _letters_of_copies(name, factor, rate, of_rate)
        return [
            Term(shapes - 1.0, f"{name}.log"),
            Term(shapes, f"{rate}.log", subscripts=f"{letters},{letters_of_rate}"),
            Term(-1.0, f"{name}.value", f"{rate}.value", subscripts=f",{letters},{letters_of_rate}"),
            Term(-np.sum(gammaln(shapes))),
        ]

    return Density(text, build)


def beta_prior(name: str, a: ArrayLike, b: ArrayLike) -> Density:
    """Beta density of a factor, or of all its copies.

    Parameters
    ----------
    name : str
        A factor of the family `Beta`.
    a, b : array-like of shape (copies...)
        The two shapes, positive; they broadcast over copies.

    Returns
    -------
    density : Density
        To stand in the list of a model's terms.

    Examples
    --------
    >>> from sklearn_lrvb.mean_field import beta_prior
    >>> beta_prior("p", a=1.0, b=1.0)
    beta_prior('p', a=1.0, b=1.0)
    """
    text = described("beta_prior", name, a=a, b=b)
    a, b = numbers("a", a, above=0.0), numbers("b", b, above=0.0)
    return _prior(text, name, Beta, lambda family: family.natural_parameters(a, b))


def dirichlet_prior(name: str, concentration: ArrayLike) -> Density:
    """Dirichlet density of a factor, or of all its copies.

    Parameters
    ----------
    name : str
        A factor of the family `Dirichlet`.
    concentration : array-like of shape (copies..., K)
        Positive; a number stands for all categories and copies.

    Returns
    -------
    density : Density
        To stand in the list of a model's terms.

    Examples
    --------
    >>> from sklearn_lrvb.mean_field import dirichlet_prior
    >>> dirichlet_prior("topics", 0.1)
    dirichlet_prior('topics', 0.1)
    """

    text = described("dirichlet_prior", name, concentration)
    given = numbers("concentration", concentration, above=0.0)

    def natural(family):
        known = np.full(family.n_categories, given) if given.ndim == 0 else given
        return family.natural_parameters(_of_categories(known, family))

    return _prior(text, name, Dirichlet, natural)


def wishart_prior(name: str, degrees_of_freedom: ArrayLike, inverse_scale: ArrayLike) -> Density:
    """Wishart density of a precision matrix, or of all copies of one.

    Parameters
    ----------
    name : str
        A factor of the family `Wishart`.
    degrees_of_freedom : array-like of shape (copies...)
        Above P - 1.
    inverse_scale : array-like of shape (copies..., P, P)
        Symmetric positive definite; the mean is ``degrees_of_freedom`` times its inverse.

    Returns
    -------
    density : Density
        To stand in the list of a model's terms.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_lrvb.mean_field import wishart_prior
    >>> wishart_prior("Lambda", 4.0, np.eye(2))
    wishart_prior('Lambda', 4.0, array(2, 2))
    """
    text = described("wishart_prior", name, degrees_of_freedom, inverse_scale)
    degrees_of_freedom = numbers("degrees_of_freedom", degrees_of_freedom)
    inverse_scale = numbers("inverse_scale", inverse_scale)

    def natural(family):
        matrices = positive_definite("inverse_scale", inverse_scale, family.n_features)
        return family.natural_parameters(degrees_of_freedom, matrices)

    return _prior(text, name, Wishart, natural)


def random_walk_prior(
    name: str, precision: str | float, *, start_mean: float = 0.0, start_precision: float, memory: float = 1.0
) -> Density:
    """Density of a chain whose steps are normal: x_t+1 ~ normal(memory x_t, 1/precision).

    Parameters
    ----------
    name : str
        A factor of the family `GaussianChain`.
    precision : str or float
        One over the variance of a step: the name of a `Gamma` factor, or known.
    start_mean : float, default=0.0
        Mean of the first x.
    start_precision : float
        One over the variance of the first x.
    memory : float, default=1.0
        Known; 1 is a random walk, and less an autoregression around zero.

    Returns
    -------
    density : Density
        To stand in the list of a model's terms.

    Examples
    --------
    >>> from sklearn_lrvb.mean_field import random_walk_prior
    >>> random_walk_prior("level", precision="drift", start_precision=1e-6)
    random_walk_prior('level', precision='drift', start_precision=1e-06)
    """

    text = described("random_walk_prior", name, precision=precision, start_precision=start_precision)
    start_mean, memory = numbers("start_mean", start_mean, ()), numbers("memory", memory, ())
    start_precision = numbers("start_precision", start_precision, (), above=0.0)
    if not isinstance(precision, str):
        precision = numbers("precision", precision, (), above=0.0)

    def build(factors):
        factor = required_factor(factors, name, GaussianChain)
        n_steps, n_chains = factor.family.n_steps, factor.n_members
        n_moves = n_chains * (n_steps - 1.0)
        if isinstance(precision, str):
            of = required_factor(factors, precision, Gamma)
            letters, letters_of_precision = _letters_of_copies(name, factor, precision, of)
            known, value, axes = 1.0, [f"{precision}.value"], f",{letters_of_precision}"
            log = Term(np.full(of.lead, 0.5 * n_moves / of.n_members), f"{precision}.log")
        else:
            letters, known, value, axes = "abcdef"[: len(factor.lead)], precision, [], ""
            log = Term(0.5 * n_moves * np.log(precision))
        squares = np.r_[memory**2, np.full(n_steps - 2, 1.0 + memory**2), 1.0]
        first = np.eye(1, n_steps)[0]
        return [
            Term(-0.5 * start_precision * first, f"{name}.square", subscripts=f"t,{letters}t"),
            Term(start_precision * start_mean * first, f"{name}.value", subscripts=f"t,{letters}t"),
            Term(0.5 * n_chains * (np.log(start_precision) - LOG_2_PI - start_precision * start_mean**2)),
            Term(-0.5 * n_moves * LOG_2_PI),
            log,
            Term(-0.5 * known * squares, f"{name}.square", *value, subscripts=f"t,{letters}t{axes}"),
            Term(known * memory, f"{name}.product", *value, subscripts=f",{letters}t{axes}"),
        ]

    return Density(text, build)


def categorical_prior(name: str, probabilities: str | ArrayLike, *, at: ArrayLike | None = None) -> Density:
    """Probabilities of the categories of a factor, such as the components that rows belong to.

    Parameters
    ----------
    name : str
        A factor of the family `Categorical`.
    probabilities : str, or array-like of shape (copies..., K)
        The name of a `Dirichlet` factor, one for all copies or one for each, or known probabilities.
    at : int array-like of shape (copies,), default=None
        The copy of the Dirichlet factor that every copy of the categories has, such as the document of every
        word of a topic model.

    Returns
    -------
    density : Density
        To stand in the list of a model's terms.

    Examples
    --------
    >>> from sklearn_lrvb.mean_field import categorical_prior
    >>> categorical_prior("z", "weights")
    categorical_prior('z', 'weights')
    """

    text = described("categorical_prior", name, probabilities)
    if not isinstance(probabilities, str):
        known = np.atleast_1d(numbers("probabilities", probabilities, least=0.0))
        sums = np.atleast_1d(known.sum(axis=-1))
        if not np.allclose(sums, 1.0):
            raise ValueError(f"probabilities must have the sum 1; got {sums[~np.isclose(sums, 1.0)][0]:.4g}.")
        return _prior(
            text, name, Categorical, lambda family: family.natural_parameters(_of_categories(known, family))
        )

    def build(factors):
        factor = required_factor(factors, name, Categorical)
        of = required_factor(factors, probabilities, Dirichlet)
        statistics = f"{name}.indicator", f"{probabilities}.log"
        if at is not None:
            return [Term(1.0, *statistics, subscripts=",nk,nk", at={probabilities: at})]
        if of.lead not in ((), factor.lead):
            raise ValueError(
                f"{probabilities!r} has copies {of.lead} and {name!r} {factor.lead}: say by at=... which of "
                f"them every copy of {name!r} has."
            )
        letters = "abcdef"[: len(factor.lead)]
        return [Term(1.0, *statistics, subscripts=f",{letters}k,{letters if of.lead else ''}k")]

    return Density(text, build)


def _of_categories(known, family):
    """Numbers for all categories of a family. A ValueError where there are more or fewer."""
    if known.shape[-1] != family.n_categories:
        raise ValueError(
            f"there are numbers for {known.shape[-1]} categories, expected {family.n_categories}."
        )
    return known


def _letters_of_copies(name, factor, other_name, other):
    """Letters of the copies of a factor, and of another one with none or one for each of them."""
    letters = "abcdef"[: len(factor.lead)]
    if other.lead not in ((), factor.lead):
        raise ValueError(
            f"{other_name!r} has copies {other.lead}, expected none or {factor.lead} as {name!r}."
        )
    return letters, letters if other.lead else ""
