"""Weighted moments of degree up to four: the Gram matrix of quadratic monomials.

*Conventions.* The monomials of a row y are the products z_i z_j, i <= j, of z = (1, y), row by row:
(1, y, y_1 y_1, y_1 y_2, ...), F = (P + 1)(P + 2)/2 of them. Their Gram matrix has F(F + 1)/2 entries, but
only C(P + 4, 4) distinct ones. `pairs` uses these moments for components with full covariance matrices.
"""

import functools
from dataclasses import dataclass
from math import comb

import numpy as np

from sklearn_lrvb.row_blocks import rows_of_size, slices
from sklearn_lrvb.symmetric_matrices import from_unique_entries, upper_triangle

# Number of features from which on `DistinctMoments` is faster than one symmetric product (measured).
_DISTINCT_FROM_FEATURES = 18
# Numbers of cubic monomials and of rows below which a product runs at half speed (measured).
_LEAST_CUBICS, _LEAST_ROWS = 64, 512


def _stacked(factors, out):
    """Write products of a row (n,) and others (m, n) one below the other, and return what is written."""
    stop = 0
    for one, others in factors:
        start, stop = stop, stop + len(others)
        np.multiply(one, others, out=out[start:stop])
    return out[:stop]


def monomials(rows):
    """z_i z_j of feature-major rows: (P, n) -> (F, n)."""
    extended = np.concatenate([np.ones((1, rows.shape[1])), rows])
    n_extended = len(extended)
    products = np.empty((n_extended * (n_extended + 1) // 2, rows.shape[1]))
    return _stacked(((row, extended[i:]) for i, row in enumerate(extended)), products)


class GramOfMonomials:
    """Sum of weight * monomials * monomials', as one symmetric product.

    Parameters
    ----------
    n_features : int, P
    """

    def __init__(self, n_features):
        n_monomials = (n_features + 1) * (n_features + 2) // 2
        self.flops_per_row = n_monomials**2

    def moments(self, rows, weights):
        """Moments of one block, to be added over blocks: (P, n), weights (n,) >= 0 -> (F, F)."""
        weighted = monomials(rows)
        weighted *= np.sqrt(weights)
        return weighted @ weighted.T

    def gram(self, moments):
        """The Gram matrix, (F, F), from the moments of all blocks."""
        return moments


@dataclass(frozen=True)
class _Product:
    """Left factors z_i z_j (i <= j), first <= j < stop, against the monomials from z_first z_first on."""

    first: int
    stop: int
    n_rows: int
    suffix: int  # index of the first of those monomials
    offset: int  # start of the product in the flat moments

    @property
    def coordinates(self):
        return range(self.first, self.stop)


class DistinctMoments:
    """The same Gram matrix, from its distinct entries.

    A moment of z_i z_j z_k z_l with i <= j <= k <= l is found in the product of coordinate j: left z_i z_j,
    right z_k z_l. Neighbouring coordinates share a product until there are as many left as there are
    coordinates. Some moments are then repeated, but products of few rows would run at half speed.

    Parameters
    ----------
    n_features : int, P
    """

    def __init__(self, n_features):
        self._n_extended = n_features + 1
        self._n_monomials = (n_features + 1) * (n_features + 2) // 2
        self._products = []
        first = offset = 0
        while first < self._n_extended:
            stop = first + 1
            while stop < self._n_extended and self._left_rows(first, stop) < self._n_extended:
                stop += 1
            suffix = int(self._position(first, first))
            product = _Product(first, stop, self._left_rows(first, stop), suffix, offset)
            self._products.append(product)
            offset += product.n_rows * (self._n_monomials - suffix)
            first = stop
        self._size = offset
        self.flops_per_row = 2 * offset

    @staticmethod
    def _left_rows(first, stop):
        return (stop * (stop + 1) - first * (first + 1)) // 2

    def _position(self, i, j):
        """Index of z_i z_j, i <= j, among the monomials."""
        return i * self._n_extended - i * (i - 1) // 2 + (j - i)

    def moments(self, rows, weights):
        """Moments of one block, to be added over blocks: (P, n), weights (n,) -> (number of moments,)."""
        extended = np.concatenate([np.ones((1, rows.shape[1])), rows])
        right, weighted = monomials(rows), weights * extended
        buffer = np.empty((max(product.n_rows for product in self._products), rows.shape[1]))
        moments = np.empty(self._size)
        for product in self._products:
            left = _stacked(((weighted[j], extended[: j + 1]) for j in product.coordinates), buffer)
            shape = (product.n_rows, self._n_monomials - product.suffix)
            out = moments[product.offset : product.offset + shape[0] * shape[1]].reshape(shape)
            np.matmul(left, right[product.suffix :].T, out=out)
        return moments

    @functools.cached_property
    def _gram_index(self):
        """Index of the moment in every entry of the Gram matrix, (F, F)."""
        start = np.empty(self._n_extended, dtype=np.int32)  # of coordinate j's rows, less its suffix
        width = np.empty_like(start)
        for product in self._products:
            columns = self._n_monomials - product.suffix
            for j in product.coordinates:
                above = self._left_rows(product.first, j)
                start[j], width[j] = product.offset + above * columns - product.suffix, columns
        one, other = (coordinates.astype(np.int32) for coordinates in upper_triangle(self._n_extended))
        index = np.empty(2 * (self._n_monomials,), dtype=np.int32)
        for row, (i, j) in enumerate(zip(one, other, strict=True)):
            first, fourth = np.minimum(one, i), np.maximum(other, j)
            inner = np.maximum(one, i), np.minimum(other, j)
            second, third = np.minimum(*inner), np.maximum(*inner)
            index[row] = start[second] + first * width[second] + self._position(third, fourth)
        return index

    def gram(self, moments):
        """The Gram matrix, (F, F), from the moments of all blocks."""
        return moments[self._gram_index]


@dataclass(frozen=True)
class _CubicProduct:
    """z_i, i < stop, times every weight, against the cubic monomials z_j z_k z_l, first <= j < stop."""

    first: int
    stop: int
    n_cubics: int
    offset: int  # start of the product among the moments of one weight

    @property
    def coordinates(self):
        return range(self.first, self.stop)


class MomentsOfManyWeights:
    """The same Gram matrix for many weights at once, from its distinct entries.

    A moment of z_i z_j z_k z_l with i <= j <= k <= l is found in the product of coordinate j: left every
    weight times z_i, right z_j z_k z_l. Neighbouring coordinates share a product, as in `DistinctMoments`.

    Parameters
    ----------
    n_features : int, P
    n_weights : int, m
    """

    def __init__(self, n_features, n_weights):
        self._n_extended = n_features + 1
        self._n_monomials = (n_features + 1) * (n_features + 2) // 2
        self._n_weights = n_weights
        self._products = []
        first = offset = 0
        while first < self._n_extended:
            stop = first + 1
            while stop < self._n_extended and self._n_cubics(first, stop) < _LEAST_CUBICS:
                stop += 1
            product = _CubicProduct(first, stop, self._n_cubics(first, stop), offset)
            self._products.append(product)
            offset += stop * product.n_cubics
            first = stop
        self._size = offset
        numbers = 2 * self._n_monomials + n_weights * self._n_extended
        self._rows_at_once = rows_of_size(numbers, _LEAST_ROWS)

    def _n_cubics(self, first, stop):
        return comb(self._n_extended - first + 2, 3) - comb(self._n_extended - stop + 2, 3)

    def _suffix(self, j):
        """Index of the monomial z_j z_j, with which those of the coordinates from j on start."""
        return self._n_monomials - comb(self._n_extended - j + 1, 2)

    def _by_product(self, moments):
        """The products and their views of the moments, (stop, m, cubics)."""
        for product in self._products:
            start, size = product.offset, product.stop * product.n_cubics
            part = moments[start * self._n_weights : (start + size) * self._n_weights]
            yield product, part.reshape(product.stop, self._n_weights, product.n_cubics)

    def moments(self, rows, weights):
        """Moments of one block, to be added over blocks: (P, n), weights (m, n) -> (m * number,)."""
        moments = np.zeros(self._n_weights * self._size)
        for some in slices(rows.shape[1], self._rows_at_once):
            present = np.flatnonzero(weights[:, some].any(axis=1))
            if present.size == self._n_weights:
                self._add_moments(moments, slice(None), rows[:, some], weights[:, some])
            elif present.size:
                self._add_moments(moments, present, rows[:, some], weights[present, some])
        return moments

    def _add_moments(self, moments, present, rows, weights):
        extended = np.concatenate([np.ones((1, rows.shape[1])), rows])
        quadratic, weighted = monomials(rows), extended[:, None] * weights
        buffer = np.empty((max(product.n_cubics for product in self._products), rows.shape[1]))
        for product, view in self._by_product(moments):
            left = weighted[: product.stop].reshape(-1, rows.shape[1])
            cubic = _stacked(
                ((extended[j], quadratic[self._suffix(j) :]) for j in product.coordinates), buffer
            )
            view[:, present] += (left @ cubic.T).reshape(product.stop, -1, product.n_cubics)

    @functools.cached_property
    def _gram_index(self):
        """Index of one weight's moment in every entry of the Gram matrix, (F, F)."""
        start = np.empty(self._n_extended, dtype=np.intp)  # of coordinate j's cubics, less its suffix
        width = np.empty_like(start)
        for product in self._products:
            for j in product.coordinates:
                start[j] = product.offset + self._n_cubics(product.first, j) - self._suffix(j)
                width[j] = product.n_cubics
        position = from_unique_entries(np.arange(self._n_monomials), self._n_extended).astype(np.intp)
        pairs = np.stack(upper_triangle(self._n_extended), axis=1)
        index = np.empty(2 * (self._n_monomials,), dtype=np.intp)
        for row, pair in enumerate(pairs):
            i, j, k, l = np.sort(np.hstack([np.broadcast_to(pair, pairs.shape), pairs]), axis=1).T
            index[row] = start[j] + i * width[j] + position[k, l]
        return index

    def gram(self, moments, number):
        """The Gram matrix of one of the weights, (F, F), from the moments of all blocks."""
        own = np.concatenate([view[:, number].ravel() for _, view in self._by_product(moments)])
        return own[self._gram_index]


@functools.lru_cache(maxsize=2)
def quartic_moments(n_features):
    """An object of the faster class for this number of features."""
    return (DistinctMoments if n_features >= _DISTINCT_FROM_FEATURES else GramOfMonomials)(n_features)
