"""The expected log joint, a multilinear function of the factors' mean parameters, and its derivatives.

*Conventions.* ``means`` is a dict, name of the factor -> mean parameters in the factor's shape. Derivatives
loop over the terms that have the factor, never over copies, and terms of a few numbers are computed together
(`Monomials`).
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from sklearn_lrvb.mean_field.bound_term import aligned
from sklearn_lrvb.mean_field.monomials import Monomials, is_short


@dataclass(frozen=True)
class LogJoint:
    """E_q log p(x, theta) of independent factors.

    Attributes
    ----------
    factors : dict, name -> Factor
    terms : tuple of BoundTerm
        The log joint is their sum.
    """

    factors: dict
    terms: tuple

    @cached_property
    def _short_and_long_terms(self):
        """Terms that are computed as monomials, and those that are not."""
        short, long = [], []
        for term in self.terms:
            (short if is_short(term, self.factors) else long).append(term)
        return short, long

    @property
    def _long_terms(self):
        return self._short_and_long_terms[1]

    @cached_property
    def _monomials(self):
        return Monomials(self.factors, self._short_and_long_terms[0])

    @cached_property
    def _terms_of(self):
        """The long terms that have a factor, each with its argument: dict, name -> list."""
        terms = {name: [] for name in self.factors}
        for term in self._long_terms:
            for argument in term.arguments:
                terms[argument.factor].append((term, argument))
        return terms

    @cached_property
    def starts(self):
        """Start of every factor's statistics in the flat vector of the model: dict."""
        sizes = [factor.size for factor in self.factors.values()]
        return dict(zip(self.factors, np.cumsum([0, *sizes[:-1]]).tolist(), strict=True))

    @cached_property
    def size(self):
        """Number of statistics of all factors."""
        return sum(factor.size for factor in self.factors.values())

    def has(self, name, statistic):
        """Whether a statistic occurs in a term."""
        wanted = name, statistic
        arguments = (argument for term in self.terms for argument in term.arguments)
        return any((argument.factor, argument.statistic) == wanted for argument in arguments)

    @cached_property
    def coupled(self):
        """Names of the factors that share a term with each: dict, name -> set."""
        coupled = {name: set() for name in self.factors}
        for term in self.terms:
            names = {argument.factor for argument in term.arguments}
            for name in names:
                coupled[name] |= names - {name}
        return coupled

    def _reader(self, means):
        """Function from an argument of a term to the means of its entries."""
        return lambda argument: argument.read(self.factors[argument.factor], means[argument.factor])

    def value(self, means):
        """E_q log p(x, theta) in nats, a float."""
        read = self._reader(means)
        long = sum(term.derivative(read, ())[1] for term in self._long_terms)
        return float(long + self._monomials.value(means))

    def natural_parameters(self, means, name):
        """eta_j = d E_q log p / d m_j (Eq. nat_param_sum_of_theta_prods), in the factor's shape."""
        factor, read = self.factors[name], self._reader(means)
        natural = np.zeros(factor.shape)
        for term, argument in self._terms_of[name]:
            argument.add(factor, natural, term.derivative(read, (argument,))[1])
        self._monomials.add_natural_parameters(means, name, natural)
        return natural

    @cached_property
    def n_hessian_entries(self):
        """Largest number of entries of H above its diagonal blocks that are not zero."""
        return sum(
            int(np.prod([size for _, size in _axes_of(pair)])) for term in self.terms for pair in _pairs(term)
        )

    def hessian(self, means):
        """H (Eq. h_definition), a sparse array of shape (size, size); it is zero within one factor."""
        read = self._reader(means)
        rows, columns, values = [], [], []
        for entries in self._monomials.hessian_entries(means, self.starts):
            for part, own in zip((rows, columns, values), entries, strict=True):
                part.append(own)
        for term in self._long_terms:
            for pair in _pairs(term):
                letters, derivative = term.derivative(read, pair)
                shape = tuple(dict(_axes_of(pair)).values())
                row, column = (self._positions(argument, letters) for argument in pair)
                for part, entries in ((rows, row), (columns, column), (values, derivative)):
                    part.append(np.broadcast_to(entries, shape).reshape(-1))
        if not values:
            return sparse.csr_array((self.size, self.size))
        # Arrays are released as soon as possible: this is where linear response takes the most memory.
        index = np.int32 if self.size < 2**31 else np.int64
        rows = np.concatenate(rows, dtype=index, casting="same_kind")
        columns = np.concatenate(columns, dtype=index, casting="same_kind")
        values = np.concatenate(values)
        upper = sparse.csr_array((values, (rows, columns)), shape=(self.size, self.size))
        del rows, columns, values
        upper.eliminate_zeros()
        return upper + upper.T

    def _positions(self, argument, letters):
        """Positions of an argument's entries in the flat vector of the model, with axes for all letters."""
        factor = self.factors[argument.factor]
        index = np.int32 if self.size < 2**31 else np.int64
        positions = argument.flat_positions(factor).astype(index) + index(self.starts[argument.factor])
        return aligned(positions, argument.letters, letters)


def _pairs(term):
    """Pairs of arguments of a term."""
    arguments = term.arguments
    return [(arguments[i], arguments[j]) for j in range(len(arguments)) for i in range(j)]


def _axes_of(pair):
    """Letters of two arguments, each once, with their sizes, in order."""
    return list(
        {letter: size for own in pair for letter, size in zip(own.letters, own.shape, strict=True)}.items()
    )
