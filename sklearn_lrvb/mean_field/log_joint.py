"""The expected log joint, a multilinear function of the factors' mean parameters, and its derivatives.

*Conventions.* ``means`` is a dict, name of the factor -> mean parameters in the factor's shape. Derivatives
loop over the terms that have the factor, never over copies, and terms of a few numbers are computed together
(`Monomials`). Terms are linear in sums over the equal members that a copy with a weight stands for, and
derivatives are in the means of these sums: natural parameters do not depend on the copy's own weight.
"""

from functools import cached_property
from itertools import combinations
from math import prod

import numpy as np
from scipy import sparse

from sklearn_lrvb.mean_field.bound_term import aligned, axes_of, index_type
from sklearn_lrvb.mean_field.coupling import Coupling

_MOST_ENTRIES = 64  # Largest number of monomials of a term,
_LARGEST_FACTOR = 2048  # and of parameters of a factor, so that the vector of all stays short.


class LogJoint:
    """E_q log p(x, theta) of independent factors.

    Parameters
    ----------
    factors : dict, name -> Factor
    terms : tuple of BoundTerm
        The log joint is their sum.

    Attributes
    ----------
    factors, terms
        As given.
    coupled : dict, name -> set
        Names of the factors that share a term with each.

    Raises
    ------
    ValueError
        A factor occurs in no term, or two factors with weights share one.
    """

    def __init__(self, factors, terms):
        self.factors, self.terms = factors, terms
        self._weighted = [name for name, factor in factors.items() if factor.weights is not None]
        self.coupled = {name: set() for name in factors}
        self._long_terms, self._terms_of, short = [], {name: [] for name in factors}, []
        for term in terms:
            names = {argument.factor for argument in term.arguments}
            for name in names:
                self.coupled[name] |= names - {name}
            if is_short(term, factors):
                short.append(term)
                continue
            self._long_terms.append(term)
            for argument in term.arguments:
                self._terms_of[argument.factor].append((term, argument))
        self._monomials = Monomials(factors, short)
        self._check()

    def _check(self):
        """Raise ValueError where nothing keeps a factor proper, or weights do not belong together."""
        for name in self.factors:
            if all(term.find(name) is None for term in self.terms):
                raise ValueError(
                    f"Factor {name!r} occurs in no term, so that nothing keeps it proper: add its prior."
                )
        for name in self._weighted:
            others = self.coupled[name].intersection(self._weighted)
            if others:
                raise ValueError(
                    f"{name!r} and {min(others)!r} have copies with weights and share a term, which does not "
                    "say which of the members that they stand for belong together: repeat the rows instead."
                )

    def starts_among(self, names):
        """Start of every factor's statistics where those of the named factors follow each other: dict."""
        ends = np.cumsum([0, *(self.factors[name].size for name in names)]).tolist()
        return dict(zip(names, ends, strict=False))

    def has(self, name, statistic):
        """Whether a statistic occurs in a term."""
        arguments = (argument for term in self.terms for argument in term.arguments)
        return any((argument.factor, argument.statistic) == (name, statistic) for argument in arguments)

    def _counted(self, means):
        """Means of sums over the members that copies stand for, and a function that reads an argument's."""
        counted = {name: self.factors[name].counted(means[name]) for name in self._weighted if name in means}
        means = {**means, **counted}
        return means, lambda argument: argument.read(self.factors[argument.factor], means[argument.factor])

    def value(self, means):
        """E_q log p(x, theta) in nats, a float."""
        means, read = self._counted(means)
        long = sum(term.derivative(read, ())[1] for term in self._long_terms)
        return float(long + self._monomials.value(means))

    def natural_parameters(self, means, name):
        """eta_j = d E_q log p / d m_j (paper, Equation 3), in the factor's shape."""
        means, read = self._counted(means)
        factor = self.factors[name]
        natural = np.zeros(factor.shape)
        for term, argument in self._terms_of[name]:
            argument.add(factor, natural, term.derivative(read, (argument,))[1])
        self._monomials.add_natural_parameters(means, name, natural)
        return natural

    def n_hessian_entries(self, names):
        """Largest number of entries of H among some factors that are not zero."""
        return sum(prod(axes_of(pair).values()) for term in self.terms for pair in _pairs(term, names))

    def hessian(self, means, names):
        """H (paper, Equation 18) of the named factors, one after the other, a sparse array (d, d).

        It is zero within one factor.
        """
        means, read = self._counted(means)
        starts, size = self.starts_among(names), sum(self.factors[name].size for name in names)
        entries = list(self._monomials.hessian_entries(means, starts))
        for term in self._long_terms:
            for pair in _pairs(term, names):
                sides = [(self.factors[of.factor], starts[of.factor], size) for of in pair]
                shape, parts = tuple(axes_of(pair).values()), term.second_derivative(read, pair, *sides)
                entries.append([np.broadcast_to(part, shape).reshape(-1) for part in parts])
        return _symmetric(entries, size)

    def couplings(self, means, names, others):
        """H between each of some factors, which share no term, and others: dict, name -> `Coupling`."""
        means, read = self._counted(means)
        starts, size = self.starts_among([*names, *others]), sum(self.factors[name].size for name in names)
        n_others = sum(self.factors[other].size for other in others)
        short = _symmetric(list(self._monomials.hessian_entries(means, starts)), size + n_others)
        short, of_others = short[:size, size:], self.starts_among(others)
        couplings = {}
        for name in names:
            rows = short[starts[name] : starts[name] + self.factors[name].size]
            terms = [term for term, _ in self._terms_of[name]]
            couplings[name] = Coupling(self.factors, name, of_others, rows, terms, read)
        return couplings


def _symmetric(entries, size):
    """A symmetric sparse array from rows, columns and values of entries on one side of the diagonal.

    The list of entries is emptied: this is where linear response takes the most memory.
    """
    if not entries:
        return sparse.csr_array((size, size))
    rows, columns, values = zip(*entries, strict=True)
    entries.clear()
    rows = np.concatenate(rows, dtype=index_type(size), casting="same_kind")
    columns = np.concatenate(columns, dtype=index_type(size), casting="same_kind")
    values = np.concatenate(values)
    upper = sparse.csr_array((values, (rows, columns)), shape=(size, size))
    del rows, columns, values
    upper.eliminate_zeros()
    return upper + upper.T


def _pairs(term, names):
    """Pairs of arguments of a term that are statistics of some factors, each pair once."""
    return combinations([argument for argument in term.arguments if argument.factor in names], 2)


def is_short(term, factors):
    """Whether a term becomes monomials; not one whose coefficient is read along a diagonal."""
    if len(set(term.letters)) < len(term.letters):
        return False
    small = all(factors[argument.factor].size <= _LARGEST_FACTOR for argument in term.arguments)
    return small and np.prod(_sizes(term)[1], dtype=float) <= _MOST_ENTRIES


def _sizes(term):
    """Letters of a term, each once, and their sizes."""
    sizes = dict(zip(term.letters, term.coefficient.shape, strict=True))
    for argument in term.arguments:
        sizes |= dict(zip(argument.letters, argument.shape, strict=True))
    return "".join(sizes), tuple(sizes.values())


class Monomials:
    """Terms with few entries, as one list of monomials in the mean parameters.

    A model may have thousands of terms with a few numbers each, for example one for every pair of scalar
    factors. Together they are computed some hundred times faster than one by one. A monomial is a coefficient
    times mean parameters of different factors, given by positions in one vector of all factors that occur.
    The last entry of that vector is 1, which fills up monomials of fewer parameters.

    Parameters
    ----------
    factors : dict, name -> Factor
    terms : list of BoundTerm
        Those that `is_short` is true of.
    """

    def __init__(self, factors, terms):
        used = {argument.factor for term in terms for argument in term.arguments}
        self._factors = {name: factor for name, factor in factors.items() if name in used}
        ends = np.cumsum([0, *(factor.size for factor in self._factors.values())]).tolist()
        self._starts, self._one = dict(zip(self._factors, ends, strict=False)), ends[-1]
        most = max((len(term.arguments) for term in terms), default=0)
        coefficients, positions = [], []
        for term in terms:
            own, places = self._entries(term, most)
            coefficients.append(own)
            positions.append(places)
        self._coefficients = np.concatenate([np.zeros(0), *coefficients])
        positions = np.concatenate([np.zeros((0, most), dtype=np.intp), *positions])
        self._positions = list(np.ascontiguousarray(positions.T))

    def _entries(self, term, most):
        """Coefficients (n,) and positions (n, most) of the monomials of a term."""
        letters, sizes = _sizes(term)
        columns = np.full((most, *sizes), self._one, dtype=np.intp)
        for place, argument in enumerate(term.arguments):
            positions = argument.flat_positions(self._factors[argument.factor])
            columns[place, ...] = self._starts[argument.factor] + aligned(
                positions, argument.letters, letters
            )
        coefficient = np.broadcast_to(aligned(term.coefficient, term.letters, letters), sizes).ravel()
        kept = coefficient != 0
        return coefficient[kept], columns.reshape(most, -1).T[kept]

    def _vector(self, means):
        """The mean parameters one after the other, 0 for a factor that is left out of ``means``, and 1."""
        parts = [
            means[name].reshape(-1) if name in means else np.zeros(factor.size)
            for name, factor in self._factors.items()
        ]
        return np.concatenate([*parts, [1.0]])

    def value(self, means):
        """The sum of all monomials."""
        return float(np.sum(_product(self._coefficients, self._positions, self._vector(means))))

    @cached_property
    def _of_factors(self):
        """Positions within each factor, coefficients and the other positions of its monomials: dict."""
        own = {name: ([], [], []) for name in self._factors}
        owners = np.repeat(np.arange(len(self._factors)), [factor.size for factor in self._factors.values()])
        for place, positions in enumerate(self._positions):
            inside = np.flatnonzero(positions < self._one)
            order = inside[np.argsort(owners[positions[inside]], kind="stable")]
            ends = np.searchsorted(owners[positions[order]], np.arange(len(self._factors) + 1))
            others = [other for number, other in enumerate(self._positions) if number != place]
            for number, name in enumerate(self._factors):
                rows = order[ends[number] : ends[number + 1]]
                if rows.size:
                    own[name][0].append(positions[rows] - self._starts[name])
                    own[name][1].append(self._coefficients[rows])
                    own[name][2].append([other[rows] for other in others])
        return {
            name: (
                np.concatenate(positions),
                np.concatenate(coefficients),
                [np.concatenate(column) for column in zip(*others, strict=True)],
            )
            for name, (positions, coefficients, others) in own.items()
            if positions
        }

    def add_natural_parameters(self, means, name, natural):
        """Add the derivative in the mean parameters of a factor to ``natural``, in place."""
        if name in self._of_factors:
            positions, coefficients, others = self._of_factors[name]
            values = _product(coefficients, others, self._vector(means))
            natural += np.bincount(positions, values, minlength=natural.size).reshape(natural.shape)

    def hessian_entries(self, means, starts):
        """Rows, columns and values of H, each pair of parameters of a monomial once.

        Parameters
        ----------
        starts : dict, name -> int
            Of factors in the flat vector that H is about. Entries of other factors are left out.
        """
        vector = self._vector(means)
        targets = np.full(self._one + 1, -1, dtype=np.intp)
        for name, factor in self._factors.items():
            if name in starts:
                own = np.arange(factor.size)
                targets[self._starts[name] + own] = starts[name] + own
        for second in range(len(self._positions)):
            for first in range(second):
                rows, columns = targets[self._positions[first]], targets[self._positions[second]]
                inside = (rows >= 0) & (columns >= 0)
                others = [of[inside] for i, of in enumerate(self._positions) if i not in (first, second)]
                values = _product(self._coefficients[inside], others, vector)
                yield rows[inside], columns[inside], values


def _product(coefficients, positions, vector):
    product = coefficients
    for column in positions:
        product = product * vector[column]
    return product
