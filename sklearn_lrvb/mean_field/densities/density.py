"""Log densities by name, which become terms with all their constants once the factors are known."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from sklearn_lrvb.exponential_families import (
    Beta,
    Dirichlet,
    Gamma,
    MultivariateNormal,
    UnivariateNormal,
    Wishart,
)
from sklearn_lrvb.mean_field.factor import Factor
from sklearn_lrvb.mean_field.term import Term

# Families of numbers that are special cases of families of vectors, with statistics of other names.
_OF_NUMBERS = {MultivariateNormal: UnivariateNormal, Wishart: Gamma, Dirichlet: Beta}


class Density:
    """A part of a log joint, given by name, as the functions of this module return it.

    It stands in the list of a model's terms. With all densities of a model given in this way, the lower bound
    holds all constants, and is comparable between models.

    Parameters
    ----------
    text : str
        How it was written.
    build : callable, dict of factors -> list of Term
        Its terms, for the factors of a model.
    weights : dict, name of a factor -> ndarray of shape (copies,), default=None
        Of factors whose copies belong to rows with weights: the `Factor.weights` that they get in a model.

    Examples
    --------
    >>> from sklearn_lrvb.exponential_families import Gamma
    >>> from sklearn_lrvb.mean_field import Factor, gamma_prior
    >>> prior = gamma_prior("tau", shape=2.0, rate=1.0)
    >>> prior
    gamma_prior('tau', shape=2.0, rate=1.0)
    >>> prior.terms({"tau": Factor(Gamma())})[0]
    Term(tau.value, coefficient of shape ())
    """

    def __init__(
        self,
        text: str,
        build: Callable[[dict[str, Factor]], list[Term]],
        weights: Mapping[str, NDArray[np.float64]] | None = None,
    ) -> None:
        self._text, self._build, self.weights = text, build, dict(weights or {})

    def __repr__(self) -> str:
        return self._text

    def terms(self, factors: dict[str, Factor]) -> list[Term]:
        """The terms for factors of these shapes.

        Parameters
        ----------
        factors : dict, name -> Factor
            Those of the model.

        Returns
        -------
        terms : list of Term
            Their sum is the log density, with its constants.

        Raises
        ------
        ValueError
            A factor is missing, is of another family, or does not fit the data.

        Examples
        --------
        >>> from sklearn_lrvb.exponential_families import Beta
        >>> from sklearn_lrvb.mean_field import Factor, beta_prior
        >>> len(beta_prior("p", a=1.0, b=2.0).terms({"p": Factor(Beta())}))  # a constant is among them
        3
        """
        return self._build(factors)


def described(function, *arguments, **named):
    """How a density was written, with arrays abridged."""
    shown = [*map(_shown, arguments), *(f"{key}={_shown(value)}" for key, value in named.items())]
    return f"{function}({', '.join(shown)})"


def _shown(argument):
    if isinstance(argument, list | tuple):
        return "[...]"
    if isinstance(argument, np.ndarray) and argument.ndim:
        return f"array{argument.shape}"
    return repr(argument)


def required_factor(factors, name, *families):
    """A factor of one of these families. A ValueError where it is none."""
    if not isinstance(name, str) or name not in factors:
        raise ValueError(f"there is no factor {name!r}; the factors are {', '.join(factors)}.")
    if not any(is_of(factors[name].family, family) for family in families):
        wanted = " or ".join(family.__name__ for family in families)
        raise ValueError(f"{name!r} is of the family {factors[name].family}, expected {wanted}.")
    return factors[name]


def is_of(family, kind):
    """Whether a family is of a kind, and not of its special case with numbers in place of vectors."""
    return isinstance(family, kind) and not isinstance(family, _OF_NUMBERS.get(kind, ()))


def member_terms(name, factor, natural):
    """The log density of a member of the factor's family, for every copy."""
    family = factor.family
    try:
        natural = np.broadcast_to(natural, factor.shape)
    except ValueError:
        raise ValueError(
            f"parameters for copies {np.shape(natural)[:-1]} do not fit the copies {factor.lead} of {name!r}."
        ) from None
    family.check(natural)
    terms = [Term(factor.entries(natural, own), f"{name}.{own}") for own in family.statistics]
    return [*terms, Term(-np.sum(family.log_partition(natural)))]


def with_weights(factors: dict[str, Factor], items: Sequence) -> dict[str, Factor]:
    """Factors with the weights of the rows that their copies belong to."""
    factors = dict(factors)
    for item in items:
        for name, weights in item.weights.items() if isinstance(item, Density) else ():
            if name in factors and factors[name].weights is None and factors[name].lead == weights.shape:
                factors[name] = replace(factors[name], weights=weights)
    return factors


def terms_of(items: Sequence, factors: dict[str, Factor]) -> list[tuple[int, object, object]]:
    """Terms of a list of terms and densities: triples of the item's position, the item, and a term of it."""
    triples = []
    for number, item in enumerate(items):
        try:
            # Coefficients that are not finite are refused, by name.
            with np.errstate(over="ignore", invalid="ignore"):
                terms = item.terms(factors) if isinstance(item, Density) else [item]
        except ValueError as error:
            raise ValueError(f"terms[{number}] = {item!r}: {error}") from None
        triples += [(number, item, term) for term in terms]
    return triples
