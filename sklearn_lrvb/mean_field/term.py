"""Terms of a log joint that is linear in the statistics of every factor (paper, Equation 3).

A term is a coefficient array times one statistic of each of a few factors, summed over all axes. Its axes are
named by letters as in ``numpy.einsum``: axes with the same letter have the same index. `bound_term` has what
becomes of it in a model.
"""

from __future__ import annotations

import string
from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from sklearn_lrvb.mean_field.arguments import floats
from sklearn_lrvb.mean_field.bound_term import Axis, BoundTerm, bound_argument
from sklearn_lrvb.mean_field.factor import named_entry


class Term:
    """One term of a log joint: the sum over all axes of coefficient times the product of the statistics.

    Parameters
    ----------
    coefficient : float, array-like or sparse matrix
        A scalar stands for an array of that value. Of a sparse matrix (two axes) only the entries that are
        not zero are ever stored or computed, for example a table of counts. A read-only copy is kept.
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
    at : dict, name of a factor -> int array-like of shape (n,), default=None
        Positions of copies: the factor's axis of copies is replaced by one of length n that runs over them,
        as a[group[n]] in a textbook: with ``at={"a": group}``, ``Term(y, "a.value", subscripts="n,n")`` is
        the sum of y[n] a[group[n]]. Copies may occur any number of times. Where copies have several axes,
        give a tuple with an array for each of them.

    Attributes
    ----------
    coefficient : ndarray, or scipy.sparse.coo_array
        As given, and read-only.
    statistics : tuple of str
        As given.
    subscripts : str or None
        As given.
    at : dict
        As given, as tuples of read-only arrays.

    Raises
    ------
    ValueError
        The coefficient is no number, for example because it was forgotten, or positions are no whole
        numbers. Whether a term fits the factors is checked when the model is built.

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

    Observations y with unit noise of groups with effects a, each observation in one group; the part that is
    linear in a:

    >>> group, y = [0, 0, 1, 2, 2, 2], [0.2, 0.4, 1.1, -0.3, 0.1, 0.5]
    >>> Term(y, "a.value", subscripts="n,n", at={"a": group})
    Term(a.value [n,n], coefficient of shape (6,), at a)
    """

    def __init__(
        self,
        coefficient: ArrayLike | sparse.sparray | sparse.spmatrix,
        *statistics: str,
        subscripts: str | None = None,
        at: Mapping[str, ArrayLike | tuple[ArrayLike, ...]] | None = None,
    ) -> None:
        if isinstance(coefficient, str):
            raise ValueError(
                f"A term's coefficient comes first, as in Term(1.0, {coefficient!r}); it is missing."
            )
        self.coefficient = _coefficient(coefficient)
        self.statistics = statistics
        self.subscripts = subscripts
        self.at = _positions_of_copies(at)

    def __repr__(self) -> str:
        product = " * ".join(map(str, self.statistics)) or "constant"
        subscripts = f" [{self.subscripts}]" if self.subscripts is not None else ""
        shape = self.coefficient.shape
        stored = f"{self.coefficient.nnz} entries" if sparse.issparse(self.coefficient) else "coefficient"
        at = f", at {', '.join(self.at)}" if self.at else ""
        return f"Term({product}{subscripts}, {stored} of shape {shape}{at})"


def _coefficient(given):
    """A read-only copy of the coefficient, as an array or as entries of a sparse matrix."""
    if sparse.issparse(given):
        matrix = sparse.coo_array(given, copy=True)
        matrix.data = floats("A term's coefficient", matrix.data)
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
        matrix.data.flags.writeable = False
        return matrix
    array = floats("A term's coefficient", given).copy()
    array.flags.writeable = False
    return array


def _positions_of_copies(at):
    """``at`` with a tuple of read-only int arrays for every factor."""
    if at is None:
        return {}
    if not isinstance(at, Mapping):
        raise ValueError(f"at is a dict, name of a factor -> positions of its copies; got {at!r}.")
    positions = {name: [] for name in at}
    for name, given in at.items():
        for axis in given if isinstance(given, tuple) else (given,):
            try:
                array = np.array(axis)
            except ValueError:  # Its lists have different lengths.
                array = np.array(None)
            if array.ndim != 1 or array.dtype.kind not in "iu" or np.ma.is_masked(axis):
                raise ValueError(
                    f"at[{name!r}] must be a vector of whole numbers, the copy of {name!r} for every entry, "
                    f"or a tuple of these for copies with several axes; got {axis!r}."
                )
            array = array.astype(np.intp)
            array.flags.writeable = False
            positions[name].append(array)
    return {name: tuple(arrays) for name, arrays in positions.items()}


def bind(term, factors):
    """Check a term against the factors of a model, and resolve its names and axes: BoundTerm.

    Parameters
    ----------
    term : Term
    factors : dict, name -> Factor

    Raises
    ------
    ValueError
        It is no term, a name is unknown, a factor occurs twice, or axes and sizes do not fit.
    """
    if not isinstance(term, Term):
        raise ValueError("it is not a Term; write Term(coefficient, 'factor.statistic', ...).")
    values = term.coefficient.data if sparse.issparse(term.coefficient) else term.coefficient
    if not np.all(np.isfinite(values)):
        n_wrong = np.count_nonzero(~np.isfinite(values))
        raise ValueError(
            f"{n_wrong} of {values.size} coefficients are nan or infinite. (a) Check the numbers. (b) Scale "
            "the data, if they are extreme."
        )
    statistics = {}  # By factor.
    for label in term.statistics:
        name, statistic = resolve_statistic(label, factors)
        if name in statistics:
            raise ValueError(
                f"the log joint must be linear in each factor's statistics, but factor {name!r} occurs "
                f"twice ({name}.{statistics[name]} times {name}.{statistic}): use the statistic that is "
                f"their product, such as 'mu.outer' instead of mu.value times mu.value, or split the factor."
            )
        statistics[name] = statistic
    _check_positions(term.at, statistics, factors)
    # The axes of copies become one where ``at`` says which copies they are.
    leads = [(len(term.at[name][0]),) if name in term.at else factors[name].lead for name in statistics]
    entries = [factors[name].family.statistics[statistic] for name, statistic in statistics.items()]
    shapes = [(*lead, *shape) for lead, shape in zip(leads, entries, strict=True)]
    letters, *groups = _axes(term, shapes, any(len(shape) > 1 for shape in entries))
    sizes = _sizes(term, groups, shapes)
    _check_coefficient(term, letters, sizes, shapes)
    axes, letters, coefficient = _coefficient_axes(term.coefficient, letters, groups)
    arguments = tuple(
        bound_argument(factors[name], name, statistic, group, term.at.get(name), axes)
        for (name, statistic), group in zip(statistics.items(), groups, strict=True)
    )
    return BoundTerm(coefficient, letters, arguments)


def _check_positions(at, names, factors):
    """Check that ``at`` names factors of the term, and copies that they have."""
    for name, positions in at.items():
        if name not in names:
            raise ValueError(f"at names {name!r}, which is no factor of this term.")
        lead = factors[name].lead
        if len(positions) != len(lead):
            raise ValueError(
                f"at[{name!r}] has positions along {len(positions)} axes of copies, but {name!r} has "
                f"{len(lead)}; Factor(family, copies=n) has copies."
            )
        lengths = {len(array) for array in positions}
        if len(lengths) > 1:
            raise ValueError(f"at[{name!r}] has arrays of different lengths, {sorted(lengths)}.")
        for array, size in zip(positions, lead, strict=True):
            wrong = array[(array < 0) | (array >= size)]
            if wrong.size:
                raise ValueError(
                    f"at[{name!r}] has position {wrong[0]}, but the copies of {name!r} are 0 to {size - 1}."
                )


def _coefficient_axes(coefficient, letters, groups):
    """The coefficient as a dense array, with its letters, and what other letters stand for: dict.

    The entries of a sparse matrix are one axis, on which the two axes of the matrix depend.
    """
    if not sparse.issparse(coefficient):
        return {}, letters[: coefficient.ndim], coefficient  # A scalar has none of the letters.
    rows, columns, data = coefficient.row, coefficient.col, coefficient.data
    first, second = letters
    if first == second:
        on_diagonal = rows == columns
        rows, columns, data = rows[on_diagonal], columns[on_diagonal], data[on_diagonal]
    used = set("".join([letters, *groups]))
    entry = next(letter for letter in string.ascii_letters if letter not in used)
    axes = {
        letter: Axis(entry, index.astype(np.intp)) for letter, index in ((first, rows), (second, columns))
    }
    return axes, entry, data


def resolve_statistic(name, factors):
    """(factor, statistic) of "factor.statistic", or of "factor" where its family has one statistic."""
    if not isinstance(name, str):
        raise ValueError(f"a statistic is named by a string, such as 'factor.statistic'; got {name!r}.")
    factor, statistic = named_entry(name, factors)
    family = factors[factor].family
    if statistic not in family.statistics:
        listed = ", ".join(f"{factor}.{known}" for known in family.statistics)
        raise ValueError(f"{name!r} names no statistic of {type(family).__name__}; it has {listed}.")
    return factor, statistic


def _axes(term, shapes, has_matrix):
    """Letters of the coefficient, then of every statistic; ``has_matrix`` if one has several axes itself.

    Without subscripts no axis is shared. A ValueError where a scalar coefficient may mean that some are.
    """
    if term.subscripts is not None:
        if not isinstance(term.subscripts, str):
            raise ValueError(f"subscripts are a string such as ',nk,k'; got {term.subscripts!r}.")
        groups = term.subscripts.replace(" ", "").split(",")
        if len(groups) != 1 + len(shapes):
            raise ValueError(
                f"the subscripts have {len(groups)} groups, expected {1 + len(shapes)}: the coefficient's "
                f"axes, then those of {len(shapes)} statistics."
            )
        wrong = set("".join(groups)) - set(string.ascii_letters)
        if wrong:
            raise ValueError(f"subscripts are letters and commas, got {min(wrong)!r}.")
        return groups
    n_axes = sum(map(len, shapes))
    if n_axes > len(string.ascii_letters):
        raise ValueError(
            f"the statistics have {n_axes} axes, more than the {len(string.ascii_letters)} letters."
        )
    letters = iter(string.ascii_letters)
    groups = ["".join(next(letters) for _ in shape) for shape in shapes]
    if term.coefficient.ndim == 0 and (has_matrix or sum(map(bool, shapes)) > 1):
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
    if not shape:
        only = set(letters) - set(sizes)
        if only:
            raise ValueError(
                f"the scalar coefficient gives the axis {min(only)!r} no size, and no statistic has it."
            )
        return
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
