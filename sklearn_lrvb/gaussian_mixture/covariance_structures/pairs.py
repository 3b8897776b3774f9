"""What two components do not know of each other's rows: their share of the missing information.

diag(r) - r r' = sum_{k<l} r_k r_l (e_k - e_l)(e_k - e_l)', so the missing information is a sum over pairs of
components of one Gram matrix with weights r_k r_l >= 0. It is accumulated from monomials of z, the rows in
the frame of the product of the two Gaussians: that is at least as tight as either in every direction, so that
taking it over into theirs loses no digits. Where all components are near each other and of like shape, the
frame of the product of all of them serves every pair.

A class holds pairs that share their monomials: components ``k`` and ``l`` (two numbers, or two arrays),
``moments`` of a block of rows with weights r_k r_l, to be added over blocks, and ``add_to`` for their sum.
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

_SPARSE = 0.5  # share of weights that are not zero below which sorting the rows pays
_FLOPS_PER_NUMBER = 40, 60  # formed of a row, for one pair and for all of them (measured)
_MATRIX_BYTES = 2**18  # of matrices at once: in cache
# What rounding of a moment in the frame of all components may grow by: 1e4 eps of the complete information.
_AMPLIFICATION = 1e4


def _add_blocks(matrix, rows, columns, block):
    """Add a block to a matrix, its rows and columns standing in several slices of it."""
    top = 0
    for row in rows:
        bottom, left = top + row.stop - row.start, 0
        for column in columns:
            right = left + column.stop - column.start
            matrix[row, column] += block[top:bottom, left:right]
            left = right
        top = bottom


def _add_share(missing, places, maps, gram):
    """Add the share of two components with a group each to the missing information (D, D).

    Parameters
    ----------
    places : slices of D, of either component
    maps : callables, from sums of z's monomials to those of either component's features, (m, F) -> (m, F)
    gram : (F, F), of the monomials
    """
    in_frames = [np.ascontiguousarray(features(gram).T) for features in maps]  # (features, monomials)
    for features, place, half in zip(maps, places, in_frames, strict=True):
        own = features(half)
        _add_blocks(missing, place, place, 0.5 * (own + own.T))
    mixed = -maps[1](in_frames[0])
    _add_blocks(missing, places[0], places[1], mixed)
    _add_blocks(missing, places[1], places[0], mixed.T)


class _ProductFrame:
    """z = R (x - c), with Q R the factorization of some components' whiteners, one above the other.

    R' R is the sum of their E Lambda, and y_k = Q_k z + W_k (c - m_k), the rows Q_k of Q being a contraction.
    """

    def __init__(self, posterior, components):
        n_features = posterior.n_features
        whiteners, centred_means = posterior.whiteners[components], posterior.centred_means[components]
        Q, self._whitener = np.linalg.qr(whiteners.reshape(-1, n_features))
        gaps = centred_means - centred_means[0]
        # c minimises the sum of all squared distances
        step = solve_triangular(self._whitener, Q.T @ np.einsum("kpq,kq->kp", whiteners, gaps).ravel())
        self._center = centred_means[0] + step
        self._turns = Q.reshape(whiteners.shape)
        self._shifts = np.einsum("kpq,kq->kp", whiteners, step - gaps)
        self._roots = posterior.covariance_cholesky[components]
        self._origins = posterior.second_moment_origin[components]

    def whiten(self, block):
        """z, (P, n) -> (P, n)."""
        return self._whitener @ (block - self._center[:, None])

    @property
    def maps(self):
        """From sums of z's monomials to those of the components' features, one map each."""
        return [_QuadraticMap(*side) for side in zip(self._turns, self._shifts, self._origins, strict=True)]

    @property
    def amplification(self):
        """What rounding of a quartic moment may grow by, taken from z to any of the components' frames."""
        back = self._whitener @ self._roots
        squared = np.square(np.matmul(back, self._shifts[:, :, None])).mean(axis=(1, 2))
        spread = np.linalg.norm(back, ord=2, axis=(1, 2))
        contraction = np.linalg.norm(self._turns, ord=2, axis=(1, 2))
        return (contraction.max() ** 2 * np.max(spread**2 + squared)) ** 2


@functools.lru_cache(maxsize=2)
def _triangle(size):
    """Where a symmetric matrix's entries stand among those of its upper triangle, and these among all."""
    row, column = upper_triangle(size)
    return from_unique_entries(np.arange(row.size), size).astype(np.intp).ravel(), row * size + column


class _QuadraticMap:
    """Sums of h for y = turn z + shift, from those of z's monomials, the upper triangle of (1, z)(1, z)'."""

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
            np.take(matrices.reshape(-1, size**2), to_triangle, axis=1, out=own, mode="clip")  # unbuffered
            own *= self._scale
            own -= monomials[some, :1] * self._origin
        return features


class FullPair:
    """Two components with a covariance matrix each, in the frame of their product."""

    def __init__(self, posterior, k, l):
        self.k, self.l = k, l
        self._places = [posterior.structure.coefficient_slices(k), posterior.structure.coefficient_slices(l)]
        self._frame = _ProductFrame(posterior, [k, l])
        self._quartic = quartic_moments(posterior.n_features)

    def moments(self, block, weights):
        """Of a centred block (P, n), weights (n,)."""
        return self._quartic.moments(self._frame.whiten(block), weights)

    def add_to(self, missing, moments):
        """Add the pair's share to the missing information (D, D), given `moments` of all rows."""
        _add_share(missing, self._places, self._frame.maps, self._quartic.gram(moments))


class AllFullPairs:
    """Every pair of components with a covariance matrix each, in the frame of the product of all of them."""

    def __init__(self, posterior):
        n_components = posterior.n_components
        self.k, self.l = np.triu_indices(n_components, 1)
        self._places = [posterior.structure.coefficient_slices(k) for k in range(n_components)]
        self._frame = _ProductFrame(posterior, np.arange(n_components))
        self._quartic = MomentsOfManyWeights(posterior.n_features, len(self.k))

    @classmethod
    def if_accurate(cls, posterior, pairs_of_a_row):
        """All pairs, or None where a row's own ones are cheaper one by one or digits would be lost."""
        n_pairs, n_features = comb(posterior.n_components, 2), posterior.n_features
        n_monomials, n_cubics = comb(n_features + 2, 2), comb(n_features + 3, 3)
        for_one, for_all = _FLOPS_PER_NUMBER
        one = for_one * 2 * n_monomials + quartic_moments(n_features).flops_per_row
        numbers = n_cubics + n_monomials + n_pairs * (1 + n_features)
        if for_all * numbers + 2 * n_pairs * comb(n_features + 4, 4) > pairs_of_a_row() * one:
            return None
        pairs = cls(posterior)
        return pairs if pairs._frame.amplification < _AMPLIFICATION else None

    def moments(self, block, weights):
        """Of a centred block (P, n), weights (m, n)."""
        if np.count_nonzero(weights) < _SPARSE * weights.size:
            # rows of the same pair become neighbours, where few other pairs have weight
            order = np.argsort(weights.argmax(axis=0), kind="stable")
            block, weights = np.take(block, order, axis=1), np.take(weights, order, axis=1)
        return self._quartic.moments(self._frame.whiten(block), weights)

    def add_to(self, missing, moments):
        """Add the pairs' shares to the missing information (D, D), given `moments` of all rows."""
        maps = self._frame.maps
        for number, (k, l) in enumerate(zip(self.k, self.l, strict=True)):
            gram = self._quartic.gram(moments, number)
            _add_share(missing, [self._places[k], self._places[l]], [maps[k], maps[l]], gram)


class ScalePair:
    """z = R (x - c) with one stretch for every feature; monomials (1, z, s(z))."""

    def __init__(self, posterior, k, l):
        self.k, self.l = k, l
        whiteners, centred_means = posterior.whiteners[[k, l]], posterior.centred_means[[k, l]]
        self._structure = posterior.structure
        self._places = [posterior.structure.coefficient_slices(k), posterior.structure.coefficient_slices(l)]
        self._whitener = np.sqrt(np.square(whiteners).sum(axis=0))
        turns = whiteners / self._whitener
        # measured from the first component, as digits allow
        step = np.square(turns[1]) * (centred_means[1] - centred_means[0])
        self._center = centred_means[0] + step
        shifts = whiteners * np.stack([step, step - (centred_means[1] - centred_means[0])])
        self._maps = [
            functools.partial(_mapped, self._structure.monomial_map(*side))
            for side in zip(turns, shifts, posterior.second_moment_origin[[k, l]], strict=True)
        ]

    def moments(self, block, weights):
        """Of a centred block (P, n), weights (n,)."""
        rows = self._whitener[:, None] * (block - self._center[:, None])
        weighted = np.concatenate([np.ones((1, rows.shape[1])), rows, self._structure.statistic(rows)])
        weighted *= np.sqrt(weights)
        return weighted @ weighted.T

    def add_to(self, missing, moments):
        """Add the pair's share to the missing information (D, D), given `moments` of all rows."""
        _add_share(missing, self._places, self._maps, moments)


def _mapped(matrix, rows):
    """A matrix times every row: (F, F), (m, F) -> (m, F)."""
    return rows @ matrix.T


class TiedPair:
    """z = W (x - c), c halfway: y_k y_k' - y_l y_l' = 2 (z d' + d z') is linear in z = y_k - d = y_l + d."""

    def __init__(self, posterior, k, l):
        self.k, self.l = k, l
        n_features = posterior.n_features
        whitener, centred_means = posterior.whiteners[0], posterior.centred_means
        self._whitener = whitener
        self._center = centred_means[k] + 0.5 * (centred_means[l] - centred_means[k])
        half = 0.5 * (whitener @ (centred_means[l] - centred_means[k]))
        own_k, own_l = posterior.structure.coefficient_slices(k), posterior.structure.coefficient_slices(l)
        self._places = (*own_k[:2], *own_l[:2], own_k[2])
        identity = np.eye(n_features)
        crossed = np.einsum("zp,q->zpq", identity, half)
        quadratic = np.sqrt(2.0) * svec(crossed + crossed.transpose(0, 2, 1)).T
        linear = np.hstack([half[:, None], identity])
        intercept = np.eye(1, 1 + n_features)
        shifted = np.hstack([half[:, None], -identity])
        nothing = np.zeros((len(quadratic), 1))
        self._map = np.vstack([intercept, linear, -intercept, shifted, np.hstack([nothing, quadratic])])

    def moments(self, block, weights):
        """Of a centred block (P, n), weights (n,)."""
        rows = self._whitener @ (block - self._center[:, None])
        weighted = np.concatenate([np.ones((1, rows.shape[1])), rows])
        weighted *= np.sqrt(weights)
        return weighted @ weighted.T

    def add_to(self, missing, moments):
        """Add the pair's share to the missing information (D, D), given `moments` of all rows."""
        share = self._map @ moments @ self._map.T
        _add_blocks(missing, self._places, self._places, 0.5 * (share + share.T))
