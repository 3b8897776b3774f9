"""H between one factor and others, in blocks of its copies.

A factor may have millions of copies, such as the indicators of a mixture. What it adds to the information of
other factors is a sum over copies, for which only one block of them is needed at a time.

*Conventions.* A block of H has a row for every statistic of some copies, and a column for every joint
statistic that they share a term with, the *active* ones.
"""

from dataclasses import dataclass, replace
from math import prod

import numpy as np
from scipy import sparse

from sklearn_lrvb.mean_field.bound_term import BoundTerm, axes_of
from sklearn_lrvb.mean_field.factor import with_copies
from sklearn_lrvb.rows import batches

BYTES_PER_ENTRY = 75.0  # Memory for each entry of a block while it is built.

# Share of entries that are not zero from which a block is a dense array: products with it are then faster.
# Above some size it also has to take no more memory than its entries do.
_DENSE_FROM, _DENSE_UP_TO = 0.03, 2**28
_BYTES_OF_DENSE = 16.0  # Memory for each entry of a dense block while it is built.


@dataclass(frozen=True)
class CouplingBlock:
    """H between some copies of a factor and the other factors.

    Attributes
    ----------
    copies : slice
        Along the first axis of copies; slice(None) for a factor without copies.
    matrix : dense or sparse array of shape (n_rows, n_active)
    active : int ndarray of shape (n_active,)
        Positions of the columns among the joint statistics.
    """

    copies: slice
    matrix: np.ndarray | sparse.csr_array
    active: np.ndarray


class Coupling:
    """H between a factor and others. It is kept if it is one block, and computed for each question otherwise.

    Attributes
    ----------
    n_block_entries : int
        Number of second derivatives in a block.

    Parameters
    ----------
    factors : dict, name -> Factor
    name : str
    starts : dict, name -> int
        Of the other factors among the joint statistics.
    short : sparse array of shape (size of the factor, number of joint statistics)
        What is known of H already.
    terms : list of BoundTerm
        Terms that have the factor, of which the rest is the sum.
    read : callable, Argument -> ndarray
    """

    def __init__(self, factors, name, starts, short, terms, read):
        self._factors, self._name, self._starts, self._read = factors, name, starts, read
        self._short = sparse.csr_array(short)
        self._terms = [_TermOfCopies(term, factors, name) for term in terms]
        factor = factors[name]
        n_first = factor.lead[0] if factor.lead else 1
        n_entries = sum(prod(axes_of(pair).values()) for term in terms for pair in self._pairs(term))
        self._slices = list(batches(n_first, max(int(BYTES_PER_ENTRY * n_entries / n_first), 1)))
        self.n_block_entries = n_entries * self._slices[0].stop // n_first
        self._only_block = None

    def _pairs(self, term):
        own = term.find(self._name)
        return [(own, other) for other in term.arguments if other.factor in self._starts]

    def blocks(self):
        """Yield every `CouplingBlock`, in the order of the copies."""
        if len(self._slices) > 1:
            yield from map(self._block, self._slices)
            return
        if self._only_block is None:
            self._only_block = self._block(self._slices[0])
        yield self._only_block

    def _block(self, copies):
        chunk = with_copies(self._factors[self._name], copies)
        n_joint = self._short.shape[1]
        n_each = chunk.size // (chunk.lead[0] if chunk.lead else 1)
        short = sparse.coo_array(self._short[copies.start * n_each : copies.stop * n_each])
        entries = [(short.row, short.col, short.data)]
        for term in self._terms:
            part = term.part(copies, chunk)
            for pair in self._pairs(part):
                other = pair[1].factor
                of_other = self._factors[other], self._starts[other], n_joint
                entries.append(part.second_derivative(self._read, pair, (chunk, 0, chunk.size), of_other))
        is_active = np.zeros(n_joint, dtype=bool)
        for _, columns, _ in entries:
            is_active[columns] = True
        shape = chunk.size, np.count_nonzero(is_active)
        matrix = _summed(entries, np.cumsum(is_active) - 1, shape)
        return CouplingBlock(copies if chunk.lead else slice(None), matrix, np.flatnonzero(is_active))


class _TermOfCopies:
    """A term, and where each copy of a factor occurs in it."""

    def __init__(self, term, factors, name):
        self._name, own = name, term.find(name)
        self._letter = own.letters[0] if factors[name].lead else None
        self._order = self._copies = None
        if own.positions is not None and factors[name].lead:
            n_each = factors[name].size // factors[name].lead[0]
            copies = own.positions.reshape(own.shape[0], -1)[:, 0] // n_each
            self._order = np.argsort(copies, kind="stable")
            self._copies, self._n_each = copies[self._order], n_each
        arguments = []
        for argument in term.arguments:
            if argument is not own and self._letter is not None and self._letter in argument.letters:
                argument = replace(argument, positions=argument.flat_positions(factors[argument.factor]))
            arguments.append(argument)
        self._term = BoundTerm(term.coefficient, term.letters, tuple(arguments))

    def part(self, copies, chunk):
        """The term at some copies, the factor of which has become ``chunk``."""
        if self._letter is None:
            return self._term
        if self._order is None:
            indices = np.arange(copies.start, copies.stop)
        else:
            indices = self._order[slice(*np.searchsorted(self._copies, [copies.start, copies.stop]))]
        coefficient = self._term.coefficient
        for axis, letter in enumerate(self._term.letters):
            if letter == self._letter:
                coefficient = coefficient.take(indices, axis=axis)
        arguments = tuple(self._taken(argument, indices, copies, chunk) for argument in self._term.arguments)
        return BoundTerm(coefficient, self._term.letters, arguments)

    def _taken(self, argument, indices, copies, chunk):
        """An argument at some indices along the letter of the copies."""
        is_own = argument.factor == self._name
        if is_own and argument.positions is None:
            return replace(argument, shape=chunk.statistic_shape(argument.statistic))
        if self._letter not in argument.letters:
            return argument
        positions = argument.positions.take(indices, axis=argument.letters.index(self._letter))
        if is_own:
            positions = positions - copies.start * self._n_each
        return replace(argument, shape=positions.shape, positions=positions)


def _summed(entries, numbers, shape):
    """A matrix from entries (rows, columns, values), of which the columns have other numbers in it."""
    flat = [[part.ravel() for part in np.broadcast_arrays(*each)] for each in entries]
    rows, columns, values = map(np.concatenate, zip(*flat, strict=True))
    most = max(BYTES_PER_ENTRY * len(values), _DENSE_UP_TO)
    if len(values) >= _DENSE_FROM * prod(shape) and _BYTES_OF_DENSE * prod(shape) <= most:
        places = rows.astype(np.int64) * shape[1] + numbers[columns]
        matrix = np.bincount(places, values, minlength=prod(shape)).reshape(shape)
        is_sparse = np.count_nonzero(matrix) < _DENSE_FROM * matrix.size
        return sparse.csr_array(matrix) if is_sparse else matrix
    matrix = sparse.csr_array((values, (rows, numbers[columns])), shape=shape)
    matrix.eliminate_zeros()
    return matrix
