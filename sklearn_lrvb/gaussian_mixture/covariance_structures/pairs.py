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
"""

import functools
from math import comb

import numpy as np
from scipy.linalg import solve_triangular

from sklearn_lrvb.gaussian_mixture.covariance_structures.quartic_moments import (
    MomentsOfManyWeights,
    quartic_moments,
)
from sklearn_lrvb.row_blocks import slices
from sklearn_lrvb.symmetric_matrices import (
    from_unique_entries,
    svec,
    unique_entries,
    upper_triangle,
)

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
