"""Terms with few entries, as one list of monomials in the mean parameters.

A model may have thousands of terms with a few numbers each, for example one for every pair of scalar factors.
Together they are computed some hundred times faster than one by one.

*Conventions.* A monomial is a coefficient times mean parameters of different factors, given by positions in
one vector of all factors that occur. Its last entry is 1, which fills up monomials of fewer parameters.
"""

from functools import cached_property

import numpy as np

from sklearn_lrvb.mean_field.bound_term import aligned

_MOST_ENTRIES = 64  # Largest number of monomials of a term,
_LARGEST_FACTOR = 2048  # and of parameters of a factor, so that the vector of all stays short.


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
    """Monomials of some terms of a log joint.

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
