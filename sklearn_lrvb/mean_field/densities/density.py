"""Log densities by name, which become terms with all their constants once the factors are known.

They are sums over rows of data, or over copies of a factor. Where a categorical factor chooses the component
of every row, the weights of rows are those of its copies (`Factor.weights`): they count its prior and its
entropy too, and every term that it stands in.

*Conventions.* Rows have the letter "n", or "na..." for copies of several axes; components that a categorical
factor chooses the letter "k", and entries of vectors "p" and "q".
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sklearn_lrvb.mean_field.arguments import numbers
from sklearn_lrvb.mean_field.exponential_families import (
    Beta,
    Categorical,
    Dirichlet,
    Gamma,
    MultivariateNormal,
    UnivariateNormal,
    Wishart,
)
from sklearn_lrvb.mean_field.factor import Factor, case_weights, named_factor
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
    >>> from sklearn_lrvb.mean_field.exponential_families import Gamma
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
        >>> from sklearn_lrvb.mean_field.exponential_families import Beta
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
    """A factor of one of these families.

    Raises
    ------
    ValueError
        It is of another family, or it is not categorical and has weights: these count its statistics, but not
        constants, nor terms in other factors alone, such as the logarithm of a precision.
    """
    factor = named_factor(name, factors)
    if not any(is_of(factor.family, family) for family in families):
        wanted = " or ".join(family.__name__ for family in families)
        raise ValueError(f"{name!r} is of the family {factor.family}, expected {wanted}.")
    if factor.weights is not None and Categorical not in families:
        raise ValueError(
            f"{name!r} has copies with weights, which densities count for categories alone. (a) Give a copy "
            "to each of the members that they stand for. (b) Write the densities that have it as terms."
        )
    return factor


def is_of(family, kind):
    """Whether a family is of a kind, and not of its special case with numbers in place of vectors."""
    return isinstance(family, kind) and not isinstance(family, _OF_NUMBERS.get(kind, ()))


@dataclass(frozen=True, eq=False)
class Rows:
    """What a density is a sum over.

    Attributes
    ----------
    shape : tuple of int
        (n,), or that of a factor's copies.
    weights : ndarray of this shape
        How many rows each of them counts as.
    chosen : list of (statistic, letters)
        The indicator of components, if a categorical factor chooses among some.
    n_components : int or None
        Their number.
    """

    shape: tuple[int, ...]
    weights: np.ndarray
    chosen: list = field(default_factory=list)
    n_components: int | None = None

    @property
    def coefficients(self):
        """What multiplies the rows in terms: their weights, unless the indicator in them carries these."""
        return np.ones(self.shape) if self.chosen else self.weights

    @property
    def letters(self):
        """One for every axis."""
        return "nabcdefgh"[: len(self.shape)]

    def letters_of(self, lead):
        """Letters of copies of this shape: none, one for every component or row; None for other copies."""
        if not lead:
            return ""
        if lead == (self.n_components,):
            return "k"
        return self.letters if lead == self.shape else None

    def lead(self, name, lead, at):
        """Letters of a factor's copies of the shape ``lead``, and its entry of ``at``."""
        if at is not None:
            if len(self.shape) != 1 or np.shape(at) != self.shape:
                raise ValueError(
                    f"at of {name!r} has shape {np.shape(at)}, expected a copy for each of {self}."
                )
            return "n", {name: np.asanyarray(at)}
        letters = self.letters_of(lead)
        if letters is None:
            raise ValueError(
                f"{name!r} has copies {lead} for {self}: say by at=... which copy every row has."
            )
        return letters, {}

    def __str__(self):
        return " x ".join(map(str, self.shape)) + " rows" if np.prod(self.shape) > 1 else "1 row"


def row_term(coefficients, statistics, at):
    """A term of coefficients (letters, array) and statistics (name, letters), rows summed if possible."""
    letters = "".join(dict.fromkeys("".join(own for _, own in statistics)))
    kept = [letter for letter in letters if any(letter in own for own, _ in coefficients)]
    expression = ",".join(own for own, _ in coefficients) + "->" + "".join(kept)
    coefficient = np.einsum(expression, *(array for _, array in coefficients), optimize=True)
    names = [name for name, _ in statistics]
    subscripts = ",".join(["".join(kept), *(own for _, own in statistics)])
    return Term(coefficient, *names, subscripts=subscripts, at=at)


def data_rows(values, n_axes=1, **limits):
    """Data as an array of floats, a row for each. A ValueError where they are none, or not finite."""
    remedy = "Leave such rows out, or give them any number and the weight 0."
    rows = numbers("y" if n_axes == 1 else "X", values, remedy=remedy, **limits)
    if rows.ndim != n_axes:
        expected = "(n,)" if n_axes == 1 else "(n, P)"
        raise ValueError(f"the data have shape {rows.shape}, expected {expected}.")
    return rows


def likelihood(function, values, named, weights, given, build):
    """The `Density` of rows with case weights, which a categorical factor may choose components for.

    Parameters
    ----------
    function : str, by which the user wrote it
    values : ndarray of shape (n, ...), the data
    named : dict, its other arguments that are shown
    weights : array-like of shape (n,), or None
    given : str or None
        Name of the factor.
    build : callable, (factors, `Rows`) -> list of Term
    """
    of_rows = case_weights(weights, (len(values),))
    of_factors = {} if given is None or weights is None else {given: of_rows}
    text = described(function, values, **named)
    return Density(text, lambda factors: build(factors, _rows(factors, given, of_rows)), of_factors)


def _rows(factors, given, weights):
    """The `Rows` of data. A ValueError where their weights are not those of their copies."""
    if given is None:
        return Rows(weights.shape, weights)
    factor = required_factor(factors, given, Categorical)
    if factor.lead != weights.shape:
        raise ValueError(f"{given!r} has copies {factor.lead}, expected one for each of {len(weights)} rows.")
    own = case_weights(factor.weights, factor.lead)
    if not np.array_equal(own, weights):
        row = np.flatnonzero(own != weights)[0]
        raise ValueError(
            f"row {row} has the weight {weights[row]:g}, but its copy of {given!r} has {own[row]:g}, and a "
            f"weight counts all that belongs to a row. (a) Give the same weights to all likelihoods with "
            f"given={given!r}. (b) Repeat rows instead."
        )
    chosen = [(f"{given}.indicator", "nk")]
    return Rows(weights.shape, weights, chosen, factor.family.n_categories)
