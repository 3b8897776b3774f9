"""Terms of a log joint that is linear in the statistics of every factor (Eq. nat_param_sum_of_theta_prods).

A term is a coefficient array times one statistic of each of a few factors, summed over all axes. Its axes are
named by letters as in ``numpy.einsum``: axes with the same letter have the same index.
"""

import functools
import string
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike


class Term:
    """One term of a log joint: the sum over all axes of coefficient times the product of the statistics.

    Parameters
    ----------
    coefficient : float or array-like
        A scalar stands for an array of that value. A read-only copy is kept.
    *statistics : str
        "factor.statistic" of different factors, or "factor" alone where its family has one statistic. A term
        without statistics is a constant of the log joint.
    subscripts : str, default=None
        Axes in the notation of ``numpy.einsum``, for example "np,nk,kq,kpq": first those of the coefficient,
        then those of every statistic. A factor with copies has the axis of the copies first. By default the
        axes of the coefficient are those of the statistics, one statistic after the other, and no two
        statistics share one. A scalar coefficient needs subscripts wherever that is ambiguous, that is with
        two or more statistics that have axes, or with a matrix: ",n,n" multiplies copy n of one and copy n
        of the other, ",n,m" all pairs; ",pp" is a trace, ",pq" a sum over all entries.

    Attributes
    ----------
    coefficient : ndarray
        As given, and read-only.
    statistics : tuple of str
        As given.
    subscripts : str or None
        As given.

    Raises
    ------
    ValueError
        The coefficient is no number, for example because it was forgotten. Whether a term fits the factors
        is checked when the model is built.

    Notes
    -----
    The constants of the densities may be left out, as they change nothing but the lower bound. With all of
    them, and a proper prior, it is a lower bound on the log evidence.

    Examples
    --------
    The parts of the log likelihood of n normal observations with sum s that depend on their mean:

    >>> from sklearn_lrvb.mean_field import Term
    >>> n, s = 10, 3.5
    >>> terms = [Term(-0.5 * n, "mu.square", "tau.value"), Term(s, "mu.value", "tau.value")]
    >>> terms[1]
    Term(mu.value * tau.value, coefficient of shape ())
    """

    def __init__(self, coefficient: ArrayLike, *statistics: str, subscripts: str | None = None) -> None:
        if isinstance(coefficient, str):
            raise ValueError(
                f"A term's coefficient comes first, as in Term(1.0, {coefficient!r}); it is missing."
            )
        try:
            self.coefficient = np.array(coefficient, dtype=float)
        except (TypeError, ValueError):
            raise ValueError(
                f"A term's coefficient is a number or an array of numbers; got {coefficient!r}."
            ) from None
        self.coefficient.flags.writeable = False
        self.statistics = statistics
        self.subscripts = subscripts

    def __repr__(self) -> str:
        product = " * ".join(map(str, self.statistics)) or "constant"
        subscripts = f" [{self.subscripts}]" if self.subscripts is not None else ""
        return f"Term({product}{subscripts}, coefficient of shape {self.coefficient.shape})"


@dataclass(frozen=True)
class Argument:
    """One statistic in a term, with a letter for each of its axes."""

    factor: str
    statistic: str
    letters: str


@dataclass(frozen=True)
class BoundTerm:
    """A term whose names, axes and sizes have been checked against the factors of a model.

    Attributes
    ----------
    coefficient : ndarray
    letters : str
        The axes of the coefficient.
    arguments : tuple of Argument
    """

    coefficient: np.ndarray
    letters: str
    arguments: tuple[Argument, ...]

    def find(self, factor):
        """The argument that is a statistic of this factor, or None."""
        return next((argument for argument in self.arguments if argument.factor == factor), None)

    def add_derivative(self, means, targets, derivative):
        """Add the derivative in the target arguments' statistics, with the others at their means.

        Parameters
        ----------
        means : callable, Argument -> ndarray
        targets : tuple of Argument
            Of different factors. The derivative in none is the value of the term.
        derivative : ndarray
            The axes of the targets, one target after the other. It is added to in place.
        """
        operands = [(self.letters, self.coefficient)]
        operands += [(a.letters, means(a)) for a in self.arguments if a not in targets]
        known = set("".join(letters for letters, _ in operands))
        axes = "".join(target.letters for target in targets)
        output = "".join(letter for letter in dict.fromkeys(axes) if letter in known)
        broadcast = "".join(letter for letter in dict.fromkeys(axes) if letter not in known)
        # A repeated letter makes the view a diagonal, as entries off it do not occur in the term.
        view = np.einsum(f"{axes}->{broadcast}{output}", derivative) if axes else derivative
        view += _contract(operands, output)


def _contract(operands, output):
    """einsum of (letters, array) pairs into the letters of ``output``."""
    expression = ",".join(letters for letters, _ in operands) + "->" + output
    arrays = [array for _, array in operands]
    path = _contraction_path(expression, tuple(array.shape for array in arrays))
    return np.einsum(expression, *arrays, optimize=list(path))


@functools.lru_cache(maxsize=4096)
def _contraction_path(expression, shapes):
    """Order of the pairwise contractions, computed once for every expression and its sizes."""
    arrays = [np.broadcast_to(0.0, shape) for shape in shapes]
    return tuple(np.einsum_path(expression, *arrays, optimize="greedy")[0])


def bind(term, number, factors):
    """Check a term against the factors of a model, and resolve its names and axes: BoundTerm.

    Parameters
    ----------
    term : Term
    number : int
        Position of the term in the model's list, for error messages.
    factors : dict, name -> Factor

    Raises
    ------
    ValueError
        A name is unknown, a factor occurs twice, or axes and sizes do not fit.
    """
    try:
        if not isinstance(term, Term):
            raise ValueError("it is not a Term; write Term(coefficient, 'factor.statistic', ...).")
        return _bind(term, factors)
    except ValueError as error:
        raise ValueError(f"terms[{number}] = {term!r}: {error}") from None


def _bind(term, factors):
    """`bind` without the position of the term in the errors."""
    if not np.all(np.isfinite(term.coefficient)):
        n_wrong = np.count_nonzero(~np.isfinite(term.coefficient))
        raise ValueError(f"{n_wrong} of {term.coefficient.size} coefficients are nan or infinite.")
    names = [resolve_statistic(name, factors) for name in term.statistics]
    _refuse_powers(names)
    shapes = [factors[factor].statistic_shape(statistic) for factor, statistic in names]
    matrices = [len(factors[factor].family.statistics[statistic]) > 1 for factor, statistic in names]
    letters, *groups = _axes(term, shapes, matrices)
    sizes = _sizes(term, groups, shapes)
    if term.coefficient.ndim:
        _check_coefficient(term, letters, sizes, shapes)
    else:
        only = set(letters) - set(sizes)
        if only:
            raise ValueError(
                f"the scalar coefficient gives the axis {min(only)!r} no size, and no statistic has it."
            )
        letters = ""
    arguments = tuple(Argument(*name, group) for name, group in zip(names, groups, strict=True))
    return BoundTerm(term.coefficient, letters, arguments)


def resolve_statistic(name, factors):
    """(factor, statistic) of "factor.statistic", or of "factor" where its family has one statistic."""
    if not isinstance(name, str):
        raise ValueError(f"a statistic is named by a string, such as 'factor.statistic'; got {name!r}.")
    factor, dot, statistic = name.partition(".")
    if factor not in factors:
        raise ValueError(f"there is no factor {factor!r}; the factors are {', '.join(factors)}.")
    known = list(factors[factor].family.statistics)
    if not dot and len(known) == 1:
        return factor, known[0]
    if statistic not in known:
        listed = ", ".join(f"{factor}.{name}" for name in known)
        raise ValueError(
            f"{name!r} names no statistic of {type(factors[factor].family).__name__}; it has {listed}."
        )
    return factor, statistic


def _refuse_powers(names):
    """Raise a ValueError for a factor that occurs twice: such a product is a statistic of its own."""
    for i, (factor, statistic) in enumerate(names):
        for other_factor, other in names[:i]:
            if factor == other_factor:
                raise ValueError(
                    f"the log joint must be linear in each factor's statistics, but factor {factor!r} occurs "
                    f"twice ({factor}.{other} times {factor}.{statistic}): use the statistic that is their "
                    f"product, such as 'mu.outer' instead of mu.value times mu.value, or split the factor."
                )


def _axes(term, shapes, matrices):
    """Letters of the coefficient, then of every statistic.

    ``matrices`` says which statistics have several axes apart from that of the copies.
    """
    if term.subscripts is None:
        return _default_axes(term, shapes, matrices)
    if not isinstance(term.subscripts, str):
        raise ValueError(f"subscripts are a string such as ',nk,k'; got {term.subscripts!r}.")
    groups = term.subscripts.replace(" ", "").split(",")
    if len(groups) != 1 + len(shapes):
        raise ValueError(
            f"the subscripts have {len(groups)} groups, expected {1 + len(shapes)}: the coefficient's axes, "
            f"then those of {len(shapes)} statistics."
        )
    wrong = set("".join(groups)) - set(string.ascii_letters)
    if wrong:
        raise ValueError(f"subscripts are letters and commas, got {min(wrong)!r}.")
    return groups


def _default_axes(term, shapes, matrices):
    """Letters with no axis shared. A ValueError where a scalar coefficient may mean that some are."""
    n_axes = sum(map(len, shapes))
    if n_axes > len(string.ascii_letters):
        raise ValueError(
            f"the statistics have {n_axes} axes, more than the {len(string.ascii_letters)} letters."
        )
    letters = iter(string.ascii_letters)
    groups = ["".join(next(letters) for _ in shape) for shape in shapes]
    ambiguous = sum(map(bool, shapes)) > 1 or any(matrices)
    if term.coefficient.ndim == 0 and ambiguous:
        listed = ", ".join(f"{name} {shape}" for name, shape in zip(term.statistics, shapes, strict=True))
        everything = ",".join(["", *groups])
        raise ValueError(
            f"a scalar coefficient does not fix which axes of {listed} belong together. Give subscripts: "
            f"{everything!r} sums over all combinations; a letter that is shared matches axes, as in ',n,n' "
            f"(copy n of one with copy n of the other, where ',n,m' takes all pairs) or ',pp' (a trace)."
        )
    return ["".join(groups), *groups]


def _sizes(term, groups, shapes):
    """Size of every letter's axis, from the statistics: dict."""
    sizes = {}
    for name, letters, shape in zip(term.statistics, groups, shapes, strict=True):
        if len(letters) != len(shape):
            raise ValueError(
                f"subscripts {letters!r} name {len(letters)} axes, but {name} has shape {shape}."
            )
        for letter, size in zip(letters, shape, strict=True):
            if sizes.setdefault(letter, size) != size:
                raise ValueError(f"axis {letter!r} has size {sizes[letter]}, but {size} in {name} {shape}.")
    return sizes


def _check_coefficient(term, letters, sizes, shapes):
    """Check the coefficient's shape against its letters; a letter that no statistic has is summed over."""
    shape = term.coefficient.shape
    expected = tuple(sizes.get(letter, size) for letter, size in zip(letters, shape, strict=False))
    if len(letters) != len(shape) or expected != shape:
        wanted = ", ".join(f"{letter}={sizes.get(letter, 'any')}" for letter in letters)
        listed = ", ".join(f"{name} {of}" for name, of in zip(term.statistics, shapes, strict=True)) or "none"
        raise ValueError(
            f"the coefficient has shape {shape}, expected axes ({wanted}) from the statistics {listed}."
        )
    for letter, size in zip(letters, shape, strict=True):
        first = shape[letters.index(letter)]
        if first != size:
            raise ValueError(
                f"axis {letter!r} of the coefficient has size {first}, but also {size}: {shape}."
            )
