"""What two components do not know of each other's rows: their share of the missing information.

diag(r) - r r' = sum_{k<l} r_k r_l (e_k - e_l)(e_k - e_l)', so the missing information is a sum over pairs of
components of one Gram matrix with weights r_k r_l >= 0. It is accumulated from monomials of z, the rows in
the frame of the product of the two Gaussians: that is at least as tight as either in every direction, so that
taking it over into theirs loses no digits.
"""

import numpy as np
from scipy.linalg import solve_triangular

from sklearn_lrvb.exponential_families.symmetric import from_unique_entries, svec
from sklearn_lrvb.gaussian_mixture.covariance_structures.quartic_moments import quartic_moments

_MATRIX_BYTES = 2**21  # of P x P matrices at once: in cache


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


class _OwnSlots:
    """Two components with a slot each: z's monomials make the features of one and of the other.

    Subclasses give ``rows``, ``moments`` of the monomials, their ``_gram`` and ``_features``.
    """

    def __init__(self, structure, k, l):
        self.k, self.l = k, l
        self._places = [structure.places(k), structure.places(l)]

    def add_to(self, missing, moments):
        """Add the pair's share to the missing information (D, D), given `moments` of all rows."""
        gram = self._gram(moments)
        in_frames = [self._features(side, gram) for side in (0, 1)]  # (features, monomials)
        for side, places in enumerate(self._places):
            own = self._features(side, in_frames[side].T)
            _add_blocks(missing, places, places, 0.5 * (own + own.T))
        mixed = -self._features(1, in_frames[0].T).T
        _add_blocks(missing, self._places[0], self._places[1], mixed)
        _add_blocks(missing, self._places[1], self._places[0], mixed.T)


class FullPair(_OwnSlots):
    """z = R (x - c), with Q R the factorization of the two whiteners, one above the other.

    R' R = E Lambda_k + E Lambda_l, and y_k = Q_k z + W_k (c - m_k), the rows Q_k of Q being a contraction.
    """

    def __init__(self, posterior, k, l):
        super().__init__(posterior.structure, k, l)
        n_features = posterior.n_features
        whiteners, offsets = posterior.whiteners[[k, l]], posterior.offsets[[k, l]]
        Q, self._whitener = np.linalg.qr(whiteners.reshape(2 * n_features, n_features))
        gap = offsets[1] - offsets[0]
        # c minimises the sum of both squared distances
        step = solve_triangular(self._whitener, Q[n_features:].T @ (whiteners[1] @ gap))
        self._center = offsets[0] + step
        self._turns = Q[:n_features], Q[n_features:]
        self._shifts = whiteners[0] @ step, whiteners[1] @ (step - gap)
        self._origins = posterior.second_moment_origin[[k, l]]
        self._quartic = quartic_moments(n_features)

    def moments(self, block, weights):
        """Of a centred block (P, n) with weights r_k r_l, to be added over blocks."""
        return self._quartic.moments(self._whitener @ (block - self._center[:, None]), weights)

    def _gram(self, moments):
        return self._quartic.gram(moments)

    def _features(self, side, monomials):
        """Sums of a component's h from those of z's monomials (1, z, z_p z_q): (F, m) -> (F, m)."""
        turn, shift, origin = self._turns[side], self._shifts[side], self._origins[side]
        n_features = len(shift)
        start = 1 + n_features
        counts, turned = monomials[0], turn @ monomials[1:start]
        features = np.empty_like(monomials)
        features[0] = counts
        features[1:start] = turned + counts * shift[:, None]
        at_once = max(1, _MATRIX_BYTES // (8 * n_features**2))
        for chunk in range(0, monomials.shape[1], at_once):
            columns = slice(chunk, chunk + at_once)
            half = np.einsum("pm,q->mpq", turned[:, columns] + 0.5 * counts[columns] * shift[:, None], shift)
            second = turn @ from_unique_entries(monomials[start:, columns].T, n_features) @ turn.T
            second += half
            second += half.transpose(0, 2, 1)
            second -= counts[columns, None, None] * origin
            features[start:, columns] = np.sqrt(0.5) * svec(second).T
        return features


class ScalePair(_OwnSlots):
    """z = R (x - c) with one stretch for every feature; monomials (1, z, s(z))."""

    def __init__(self, posterior, k, l):
        super().__init__(posterior.structure, k, l)
        whiteners, offsets = posterior.whiteners[[k, l]], posterior.offsets[[k, l]]
        self._structure = posterior.structure
        self._whitener = np.sqrt(np.square(whiteners).sum(axis=0))
        turns = whiteners / self._whitener
        # measured from the first component, as digits allow
        step = np.square(turns[1]) * (offsets[1] - offsets[0])
        self._center = offsets[0] + step
        shifts = whiteners * np.stack([step, step - (offsets[1] - offsets[0])])
        self._maps = [
            self._structure.monomial_map(*side)
            for side in zip(turns, shifts, posterior.second_moment_origin[[k, l]], strict=True)
        ]

    def moments(self, block, weights):
        """Of a centred block (P, n) with weights r_k r_l, to be added over blocks."""
        rows = self._whitener[:, None] * (block - self._center[:, None])
        weighted = np.concatenate([np.ones((1, rows.shape[1])), rows, self._structure.statistic(rows)])
        weighted *= np.sqrt(weights)
        return weighted @ weighted.T

    def _gram(self, moments):
        return moments

    def _features(self, side, monomials):
        return self._maps[side] @ monomials


class TiedPair:
    """z = W (x - c), c halfway: y_k y_k' - y_l y_l' = 2 (z d' + d z') is linear in z = y_k - d = y_l + d."""

    def __init__(self, posterior, k, l):
        self.k, self.l = k, l
        n_features = posterior.n_features
        whitener, offsets = posterior.whiteners[0], posterior.offsets
        self._whitener = whitener
        self._center = offsets[k] + 0.5 * (offsets[l] - offsets[k])
        half = 0.5 * (whitener @ (offsets[l] - offsets[k]))
        own_k, own_l = posterior.structure.places(k), posterior.structure.places(l)
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
        """Of a centred block (P, n) with weights r_k r_l, to be added over blocks."""
        rows = self._whitener @ (block - self._center[:, None])
        weighted = np.concatenate([np.ones((1, rows.shape[1])), rows])
        weighted *= np.sqrt(weights)
        return weighted @ weighted.T

    def add_to(self, missing, moments):
        """Add the pair's share to the missing information (D, D), given `moments` of all rows."""
        share = self._map @ moments @ self._map.T
        _add_blocks(missing, self._places, self._places, 0.5 * (share + share.T))
