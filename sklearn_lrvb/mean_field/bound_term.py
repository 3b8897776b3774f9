"""Terms whose names and axes are resolved: their derivatives, dense and sparse.

*Conventions.* An argument of a term is one statistic of a factor, with a letter for every axis that it has in
the term. Several of its own axes may run along the same letter, as those of a matrix in a trace, and an axis
may run over given positions; ``positions`` says then which entries of the factor's flat vector are meant.
"""

import functools
import math
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Axis:
    """What an axis stands for: positions along it, as a function of the index along another axis."""

    letter: str
    index: np.ndarray


@dataclass(frozen=True, eq=False)
class Argument:
    """One statistic in a term.

    Attributes
    ----------
    factor, statistic : str
    letters : str
        Those of its axes in the term, all different.
    shape : tuple of int
        Sizes of these axes.
    positions : int ndarray of this shape, or None
        Positions in the factor's flat vector. None means all entries of the statistic in their own shape.
    """

    factor: str
    statistic: str
    letters: str
    shape: tuple[int, ...]
    positions: np.ndarray | None

    def read(self, factor, parameters):
        """The entries of the factor's parameters that the term is about, in `shape`."""
        if self.positions is None:
            return factor.entries(parameters, self.statistic)
        return parameters.reshape(-1)[self.positions]

    def add(self, factor, parameters, values):
        """Add ``values``, which broadcast to `shape`, to these entries of the parameters in place."""
        if self.positions is None:
            view = factor.entries(parameters, self.statistic)
            view += values
            return
        values = np.broadcast_to(values, self.shape).ravel()
        totals = np.bincount(self.positions.ravel(), values, minlength=factor.size)
        parameters += totals.reshape(parameters.shape)

    def flat_positions(self, factor):
        """`positions`, also where all entries are meant."""
        if self.positions is None:
            return factor.positions(self.statistic).reshape(self.shape)
        return self.positions


def bound_argument(factor, name, statistic, letters, at, axes):
    """An `Argument` from the letters of a statistic's axes.

    Parameters
    ----------
    factor : Factor
    name, statistic : str
    letters : str
        Of the statistic's axes, of which those of the copies are one if positions are given.
    at : tuple of int arrays, or None
        Positions of copies.
    axes : dict, letter -> Axis
        Letters that depend on another one.
    """
    shape = factor.statistic_shape(statistic)
    if at is None and len(set(letters)) == len(letters) and not set(letters) & set(axes):
        return Argument(name, statistic, letters, shape, None)
    n_lead = 0 if at is None else len(factor.lead)
    own_letters = [*(letters[0] for _ in range(n_lead)), *letters[1 if n_lead else 0 :]]
    indices = [*(at or ()), *(np.arange(size) for size in shape[n_lead:])]
    for place, letter in enumerate(own_letters):
        if letter in axes:
            own_letters[place] = axes[letter].letter
            indices[place] = indices[place][axes[letter].index]
    final = "".join(dict.fromkeys(own_letters))
    flat = factor.positions(statistic).reshape(shape)
    places = [aligned(index, letter, final) for letter, index in zip(own_letters, indices, strict=True)]
    positions = flat[tuple(places)]
    positions.flags.writeable = False
    return Argument(name, statistic, final, positions.shape, positions)


@dataclass(frozen=True, eq=False)
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

    def derivative(self, read, targets, over=""):
        """The derivative in the target arguments' statistics, with the others at their means.

        Parameters
        ----------
        read : callable, Argument -> ndarray
        targets : tuple of Argument
            Of different factors. The derivative in none is the value of the term.
        over : str, default=""
            A letter that the term does not have, if statistics have a first axis of draws.

        Returns
        -------
        letters : str
            That of draws, and those of the targets, each once.
        derivative : ndarray
            With an axis for every letter, of size one where the derivative is the same for all positions.
        """
        letters = over + "".join(dict.fromkeys("".join(target.letters for target in targets)))
        operands = [(self.letters, self.coefficient)]
        operands += [
            (over + argument.letters, read(argument))
            for argument in self.arguments
            if argument not in targets
        ]
        known = "".join(own for own, _ in operands)
        if not known:
            return letters, np.full((1,) * len(letters), math.prod(float(array) for _, array in operands))
        output = "".join(letter for letter in letters if letter in known)
        return letters, aligned(_contract(operands, output), output, letters)

    def second_derivative(self, read, pair, *sides):
        """Rows, columns and values of H between the statistics of two arguments, which broadcast.

        Parameters
        ----------
        read : callable, Argument -> ndarray
        pair : tuple of Argument
        *sides : (Factor, int, int)
            Of the rows and of the columns: the argument's factor, where its statistics start, and the size.
        """
        letters, values = self.derivative(read, pair)
        rows, columns = (
            aligned(argument.flat_positions(factor).astype(index_type(size)), argument.letters, letters)
            + index_type(size)(start)
            for argument, (factor, start, size) in zip(pair, sides, strict=True)
        )
        return rows, columns, values


def axes_of(arguments):
    """Letters of some arguments, each once and in order, with their sizes: dict."""
    return {letter: size for own in arguments for letter, size in zip(own.letters, own.shape, strict=True)}


def index_type(size):
    """Type of positions in an array of this size."""
    return np.int32 if size < 2**31 else np.int64


def aligned(array, own, letters):
    """An array with axes ``own``, all different, as one with an axis for each of the letters."""
    order = sorted(range(len(own)), key=lambda axis: letters.index(own[axis]))
    return array.transpose(order)[tuple(slice(None) if letter in own else None for letter in letters)]


def _contract(operands, output):
    """einsum of (letters, array) pairs into the letters of ``output``."""
    if len(operands) == 1 and operands[0][0] == output:
        return operands[0][1]
    expression = ",".join(letters for letters, _ in operands) + "->" + output
    arrays = [array for _, array in operands]
    path = _contraction_path(expression, tuple(array.shape for array in arrays))
    return np.einsum(expression, *arrays, optimize=list(path))


@functools.lru_cache(maxsize=4096)
def _contraction_path(expression, shapes):
    """Order of the pairwise contractions, computed once for every expression and its sizes."""
    arrays = [np.broadcast_to(0.0, shape) for shape in shapes]
    return tuple(np.einsum_path(expression, *arrays, optimize="greedy")[0])
