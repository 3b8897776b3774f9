"""The missing information as a sum over pairs of components.

diag(r) - r r' = sum_{k<l} r_k r_l (e_k - e_l)(e_k - e_l)', so the missing information is a sum over pairs of
one Gram matrix each, of h_k - h_l with weights r_k r_l >= 0. It is accumulated from monomials of z, the rows
in the frame of the product of the two Gaussians. That product is at least as concentrated as either of the
two in every direction, so that the change from its frame to theirs loses no digits. Where all components are
near each other and of similar shape, the frame of the product of all of them serves every pair.

An object here holds one pair, or all pairs if they share their monomials. It has the components ``k`` and
``l`` (two numbers, or two arrays); ``moments`` of a block of rows with weights r_k r_l, to be added over
blocks; and ``add_to``, which adds the pairs' contribution to G, given the moments of all rows.
`information.missing_information` makes the pass over the rows.

*Conventions.* The monomials of a row y are the products z_i z_j, i <= j, of z = (1, y), row by row:
(1, y, y_1 y_1, y_1 y_2, ...), F = (P + 1)(P + 2)/2 of them. Their Gram matrix has F(F + 1)/2 entries, but
only C(P + 4, 4) distinct ones.
"""

import functools
from dataclasses import dataclass
from math import comb

import numpy as np
from scipy.linalg import solve_triangular

from sklearn_lrvb.row_blocks import rows_of_size, slices
from sklearn_lrvb.symmetric_matrices import (
    from_unique_entries,
    svec,
    unique_entries,
    upper_triangle,
)

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


# Sorting the rows by their pair pays where fewer weights than this share are not zero (measured).
_SORT_BELOW_SHARE = 0.5
# Cost of forming one number of a row, in flops of a matrix product: for one pair, and for all (measured).
_FLOPS_PER_NUMBER = 40, 60
_MATRIX_BYTES = 2**18  # Size of the matrices that are transformed at once, so that they stay in cache.
# Largest factor by which the rounding of a moment may grow on the way to the components' frames, to 1e4 eps
# of the complete information; otherwise the frame of all components is not used.
_LARGEST_AMPLIFICATION = 1e4


def _add_blocks(matrix, rows, columns, block):
    """Add a block to a matrix, given the slices to which the block's rows and columns belong."""
    top = 0
    for row in rows:
        bottom, left = top + row.stop - row.start, 0
        for column in columns:
            right = left + column.stop - column.start
            matrix[row, column] += block[top:bottom, left:right]
            left = right
        top = bottom


def _add_contribution(missing, slices_of_both, maps, gram):
    """Add the contribution of two components with a precision each to the missing information (D, D).

    Parameters
    ----------
    slices_of_both : two lists of slices of D, of either component's coefficients
    maps : two callables, from sums of z's monomials to sums of a component's features, (m, F) -> (m, F)
    gram : (F, F), Gram matrix of the monomials
    """
    in_frames = [np.ascontiguousarray(features(gram).T) for features in maps]  # (features, monomials)
    for features, own_slices, half in zip(maps, slices_of_both, in_frames, strict=True):
        own = features(half)
        _add_blocks(missing, own_slices, own_slices, 0.5 * (own + own.T))
    mixed = -maps[1](in_frames[0])
    _add_blocks(missing, slices_of_both[0], slices_of_both[1], mixed)
    _add_blocks(missing, slices_of_both[1], slices_of_both[0], mixed.T)


class _ProductFrame:
    """z = R (x - c), with Q R the QR factorization of some components' stacked whiteners.

    R' R is the sum of their E Lambda, and y_k = Q_k z + W_k (c - m_k), the rows Q_k of Q being a contraction.
    """

    def __init__(self, posterior, components):
        n_features = posterior.n_features
        whiteners, centred_means = posterior.whiteners[components], posterior.centred_means[components]
        Q, self._whitener = np.linalg.qr(whiteners.reshape(-1, n_features))
        gaps = centred_means - centred_means[0]
        # The center c minimizes the sum of the squared distances |W_k (c - m_k)|^2.
        step = solve_triangular(self._whitener, Q.T @ np.einsum("kpq,kq->kp", whiteners, gaps).ravel())
        self._center = centred_means[0] + step
        self._turns = Q.reshape(whiteners.shape)
        self._shifts = np.einsum("kpq,kq->kp", whiteners, step - gaps)
        self._covariance_cholesky = posterior.covariance_cholesky[components]
        self._origins = posterior.second_moment_origin[components]

    def whiten(self, block):
        """z, (P, n) -> (P, n)."""
        return self._whitener @ (block - self._center[:, None])

    @property
    def maps(self):
        """Maps from sums of z's monomials to sums of features, one for each component."""
        return [_QuadraticMap(*own) for own in zip(self._turns, self._shifts, self._origins, strict=True)]

    @property
    def amplification(self):
        """Factor by which rounding of a quartic moment grows from z's frame to the components' frames."""
        back = self._whitener @ self._covariance_cholesky
        squared = np.square(np.matmul(back, self._shifts[:, :, None])).mean(axis=(1, 2))
        spread = np.linalg.norm(back, ord=2, axis=(1, 2))
        contraction = np.linalg.norm(self._turns, ord=2, axis=(1, 2))
        return (contraction.max() ** 2 * np.max(spread**2 + squared)) ** 2


@functools.lru_cache(maxsize=2)
def _triangle(size):
    """Indices of a symmetric matrix's entries in its upper triangle, and of the triangle in the matrix."""
    row, column = upper_triangle(size)
    return from_unique_entries(np.arange(row.size), size).astype(np.intp).ravel(), row * size + column


class _QuadraticMap:
    """Map from sums of (1, z)(1, z)', as upper triangles, to sums of the features at y = turn z + shift."""

    def __init__(self, turn, shift, origin):
        n_features = len(shift)
        self._extended = np.eye(1 + n_features)
        self._extended[1:] = np.hstack([shift[:, None], turn])
        linear = np.ones(1 + n_features)
        self._scale = np.concatenate([linear, np.sqrt(0.5) * svec(np.ones_like(origin))])
        self._origin = self._scale * np.concatenate([np.zeros_like(linear), unique_entries(origin)])

    def __call__(self, monomials):
        """(m, F) -> (m, F)."""
        size = len(self._extended)
        from_triangle, to_triangle = _triangle(size)
        features = np.empty(monomials.shape)
        for some in slices(len(monomials), max(1, _MATRIX_BYTES // (8 * size**2))):
            own = features[some]
            matrices = np.take(monomials[some], from_triangle, axis=1).reshape(-1, size) @ self._extended.T
            matrices = self._extended @ matrices.reshape(-1, size, size)
            # mode="clip" lets numpy write to ``out`` without a buffer.
            np.take(matrices.reshape(-1, size**2), to_triangle, axis=1, out=own, mode="clip")
            own *= self._scale
            own -= monomials[some, :1] * self._origin
        return features


class FullPair:
    """Two components with a covariance matrix each, in the frame of their product."""

    def __init__(self, posterior, k, l):
        self.k, self.l = k, l
        self._slices = [
            posterior.structure.layout.coefficient_slices(k),
            posterior.structure.layout.coefficient_slices(l),
        ]
        self._frame = _ProductFrame(posterior, [k, l])
        self._quartic = quartic_moments(posterior.n_features)

    @staticmethod
    def flops(structure):
        """Flops for every ambiguous row, and for every pair."""
        n_features, n_monomials = structure.n_features, structure.layout.n_component_features
        return quartic_moments(n_features).flops_per_row, 40 * n_monomials * n_features**3

    def moments(self, block, weights):
        """Moments of a centred block (P, n), given weights (n,)."""
        return self._quartic.moments(self._frame.whiten(block), weights)

    def add_to(self, missing, moments):
        """Add the pair's share to the missing information (D, D), given `moments` of all rows."""
        _add_contribution(missing, self._slices, self._frame.maps, self._quartic.gram(moments))


class AllFullPairs:
    """Every pair of components with a covariance matrix each, in the frame of the product of all of them."""

    def __init__(self, posterior):
        n_components = posterior.n_components
        self.k, self.l = np.triu_indices(n_components, 1)
        self._slices = [posterior.structure.layout.coefficient_slices(k) for k in range(n_components)]
        self._frame = _ProductFrame(posterior, np.arange(n_components))
        self._quartic = MomentsOfManyWeights(posterior.n_features, len(self.k))

    @classmethod
    def if_accurate(cls, posterior, pairs_of_a_row):
        """All pairs, or None where `FullPair` for each is cheaper, or the common frame would lose digits."""
        n_pairs, n_features = comb(posterior.n_components, 2), posterior.n_features
        n_monomials, n_cubics = comb(n_features + 2, 2), comb(n_features + 3, 3)
        for_one, for_all = _FLOPS_PER_NUMBER
        one = for_one * 2 * n_monomials + quartic_moments(n_features).flops_per_row
        numbers = n_cubics + n_monomials + n_pairs * (1 + n_features)
        if for_all * numbers + 2 * n_pairs * comb(n_features + 4, 4) > pairs_of_a_row() * one:
            return None
        pairs = cls(posterior)
        return pairs if pairs._frame.amplification < _LARGEST_AMPLIFICATION else None

    def moments(self, block, weights):
        """Moments of a centred block (P, n), given weights (m, n)."""
        if np.count_nonzero(weights) < _SORT_BELOW_SHARE * weights.size:
            # In sorted order, few pairs have weights in any slab of rows, and only those are computed.
            order = np.argsort(weights.argmax(axis=0), kind="stable")
            block, weights = np.take(block, order, axis=1), np.take(weights, order, axis=1)
        return self._quartic.moments(self._frame.whiten(block), weights)

    def add_to(self, missing, moments):
        """Add the pairs' contributions to the missing information (D, D), given `moments` of all rows."""
        maps = self._frame.maps
        for number, (k, l) in enumerate(zip(self.k, self.l, strict=True)):
            gram = self._quartic.gram(moments, number)
            _add_contribution(missing, [self._slices[k], self._slices[l]], [maps[k], maps[l]], gram)


class ScalePair:
    """Two components with diagonal or spherical precisions: z = R (x - c) with monomials (1, z, s(z))."""

    def __init__(self, posterior, k, l):
        self.k, self.l = k, l
        whiteners, centred_means = posterior.whiteners[[k, l]], posterior.centred_means[[k, l]]
        self._structure = posterior.structure
        self._slices = [
            posterior.structure.layout.coefficient_slices(k),
            posterior.structure.layout.coefficient_slices(l),
        ]
        self._whitener = np.sqrt(np.square(whiteners).sum(axis=0))
        turns = whiteners / self._whitener
        # Positions are measured from the first component, so that no digits are lost where means are close.
        step = np.square(turns[1]) * (centred_means[1] - centred_means[0])
        self._center = centred_means[0] + step
        shifts = whiteners * np.stack([step, step - (centred_means[1] - centred_means[0])])
        self._maps = [
            functools.partial(_mapped, self._structure.monomial_map(*side))
            for side in zip(turns, shifts, posterior.second_moment_origin[[k, l]], strict=True)
        ]

    @staticmethod
    def flops(structure):
        """Flops for every ambiguous row, and for every pair."""
        n_monomials = structure.layout.n_component_features
        return n_monomials**2, 10 * n_monomials**3

    def moments(self, block, weights):
        """Moments of a centred block (P, n), given weights (n,)."""
        rows = self._whitener[:, None] * (block - self._center[:, None])
        weighted = np.concatenate([np.ones((1, rows.shape[1])), rows, self._structure.statistic(rows)])
        weighted *= np.sqrt(weights)
        return weighted @ weighted.T

    def add_to(self, missing, moments):
        """Add the pair's share to the missing information (D, D), given `moments` of all rows."""
        _add_contribution(missing, self._slices, self._maps, moments)


def _mapped(matrix, rows):
    """A matrix times every row: (F, F), (m, F) -> (m, F)."""
    return rows @ matrix.T


class TiedPair:
    """Two components with one precision: z = W (x - c), c halfway between their means.

    With d half the distance in the shared frame, y_k = z + d and y_l = z - d. The linear coefficients differ
    between the components, the quadratic ones do not, and s(y_k) - s(y_l) is linear in z.
    """

    def __init__(self, posterior, k, l):
        self.k, self.l = k, l
        self._structure = structure = posterior.structure
        self._whiteners, centred_means = posterior.whiteners, posterior.centred_means
        gap = centred_means[l] - centred_means[k]
        self._center = centred_means[k] + 0.5 * gap
        half = structure.transformed(self._whiteners, 0.5 * gap[None])[0]
        layout = structure.layout
        own_k, own_l = layout.coefficient_slices(k), layout.coefficient_slices(l)
        self._slices = (*own_k[:2], *own_l[:2], own_k[2])
        identity = np.eye(posterior.n_features)
        sides = (structure.statistic_by_row(identity + sign * half[:, None]) for sign in (1.0, -1.0))
        quadratic = structure.quadratic_features(np.subtract(*sides)).T
        linear = np.hstack([half[:, None], identity])
        intercept = np.eye(1, 1 + posterior.n_features)
        shifted = np.hstack([half[:, None], -identity])
        zeros = np.zeros((len(quadratic), 1))
        self._map = np.vstack([intercept, linear, -intercept, shifted, np.hstack([zeros, quadratic])])

    @staticmethod
    def flops(structure):
        """Flops for every ambiguous row, and for every pair."""
        return (1 + structure.n_features) ** 2, 4 * structure.n_quadratic**2 * structure.n_features

    def moments(self, block, weights):
        """Moments of a centred block (P, n), given weights (n,)."""
        weighted = np.empty((1 + len(block), block.shape[1]))
        weighted[0] = 1.0
        self._structure.whiten_into(self._whiteners, self._center, block, weighted[1:])
        weighted *= np.sqrt(weights)
        return weighted @ weighted.T

    def add_to(self, missing, moments):
        """Add the pair's share to the missing information (D, D), given `moments` of all rows."""
        contribution = self._map @ moments @ self._map.T
        _add_blocks(missing, self._slices, self._slices, 0.5 * (contribution + contribution.T))
