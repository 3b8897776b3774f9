"""Terms of a log joint that is linear in the statistics of every factor (Eq. nat_param_sum_of_theta_prods).

A term is a coefficient array times one statistic of each of a few factors, summed over all axes. Its axes are
letters, as in ``numpy.einsum``: a letter that several groups share is one index, the Kronecker delta.
"""

import functools
import string
from dataclasses import dataclass

import numpy as np


class Term:
    """One term of a log joint: the sum over all axes of coefficient times the product of the statistics.

    Parameters
    ----------
    coefficient : float or array
        A scalar stands for an array of that value. A copy is kept, read-only.
    *statistics : str
        "factor.statistic" of different factors, or "factor" alone where its family has one statistic. Without
        any, the term is a constant of the log joint.
    subscripts : str, default=None
        Axes in the notation of ``numpy.einsum``, for example "np,nk,kq,kpq": first those of the coefficient,
        then those of every statistic. A factor with copies has the axis of the copies first. By default the
        axes of the coefficient are those of the statistics, one statistic after the other, and no two
        statistics share one. A scalar coefficient needs them wherever that is ambiguous, that is with two or
        more statistics that have axes, or with a matrix: ",n,n" goes with copy n of one and copy n of the
        other, ",n,m" with all pairs; ",pp" is a trace, ",pq" a sum over all entries.

    Raises
    ------
    ValueError
        Where the coefficient is no number, as when it is forgotten. Whether a term fits the factors shows
        when the model is built.

    Notes
    -----
    Constants of the densities are worth writing: with all of them, and a proper prior, the lower bound of
    the fit is one on the log evidence.

    Examples
    --------
    The log likelihood of n normal observations of sum s, but for its constants and its square:

    >>> n, s = 10, 3.5
    >>> terms = [Term(-0.5 * n, "mu.square", "tau.value"), Term(s, "mu.value", "tau.value")]
    """

    def __init__(self, coefficient, *statistics, subscripts=None):
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

    def __repr__(self):
        product = " * ".join(map(str, self.statistics)) or "constant"
        subscripts = f" [{self.subscripts}]" if self.subscripts is not None else ""
        return f"Term({product}{subscripts}, coefficient of shape {self.coefficient.shape})"


@dataclass(frozen=True)
class Argument:
    """One statistic in a term, its axes named by letters."""

    factor: str
    statistic: str
    letters: str


@dataclass(frozen=True)
class BoundTerm:
    """A term whose names, axes and sizes fit the factors of a model.

    Attributes
    ----------
    coefficient : array
    letters : str, the coefficient's axes
    arguments : tuple of Argument
    """

    coefficient: np.ndarray
    letters: str
    arguments: tuple

    def find(self, factor):
        """The argument that is a statistic of this factor, or None."""
        return next((argument for argument in self.arguments if argument.factor == factor), None)

    def add_derivative(self, means, targets, derivative):
        """Add the derivative in the target arguments' statistics, the others at their means.

        Parameters
        ----------
        means : callable, Argument -> array
        targets : tuple of Argument, of different factors; none is the value of the term
        derivative : array, the axes of the targets one after the other; added to in place
        """
        operands = [(self.letters, self.coefficient)]
        operands += [(a.letters, means(a)) for a in self.arguments if a not in targets]
        known = set("".join(letters for letters, _ in operands))
        axes = "".join(target.letters for target in targets)
        output = "".join(letter for letter in dict.fromkeys(axes) if letter in known)
        broadcast = "".join(letter for letter in dict.fromkeys(axes) if letter not in known)
        # a repeated letter makes the view a diagonal: what is off it does not occur in the term
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
    """Order of the pairwise contractions, found once for every expression and its sizes."""
    arrays = [np.broadcast_to(0.0, shape) for shape in shapes]
    return tuple(np.einsum_path(expression, *arrays, optimize="greedy")[0])


def bind(term, number, factors):
    """Fit a term to the factors of a model.

    Parameters
    ----------
    term : Term
    number : int, its place in the model, for messages
    factors : dict, name -> Factor

    Raises
    ------
    ValueError
        Where a name is unknown, a factor occurs twice, or axes and sizes do not fit.
    """
    try:
        if not isinstance(term, Term):
            raise ValueError("not a Term; write Term(coefficient, 'factor.statistic', ...).")
        return _bind(term, factors)
    except ValueError as error:
        raise ValueError(f"terms[{number}] = {term!r}: {error}") from None


def _bind(term, factors):
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
    """ "factor.statistic" or "factor" -> (factor, statistic), where the factor has just one."""
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
    """Each factor once: a product of two statistics of one factor is a statistic of its own."""
    for i, (factor, statistic) in enumerate(names):
        for other_factor, other in names[:i]:
            if factor == other_factor:
                raise ValueError(
                    f"the log joint must be linear in each factor's statistics, but factor {factor!r} occurs "
                    f"twice ({factor}.{other} times {factor}.{statistic}): use the statistic that is their "
                    f"product, such as 'mu.outer' instead of mu.value times mu.value, or split the factor."
                )


def _axes(term, shapes, matrices):
    """Letters of the coefficient, then of every statistic; ``matrices`` says which are, but for copies."""
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
    """No axis shared; refused where a scalar coefficient may well mean that some are."""
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
            f"a scalar coefficient does not say which axes of {listed} belong together. Give subscripts: "
            f"{everything!r} sums over all combinations; a letter that is shared matches axes, as in ',n,n' "
            f"(copy n of one with copy n of the other, where ',n,m' takes all pairs) or ',pp' (a trace)."
        )
    return ["".join(groups), *groups]


def _sizes(term, groups, shapes):
    """Letter -> size, from the statistics."""
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
    """The coefficient's shape against its letters; a letter of its own is summed over."""
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
