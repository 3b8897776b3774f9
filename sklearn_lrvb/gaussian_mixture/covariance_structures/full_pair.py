"""Two components with a covariance matrix each: their contribution to the missing information.

The contribution is a Gram matrix of h_k - h_l with weights r_k r_l >= 0. It is accumulated from monomials of
z, the rows in the frame of the product of the two Gaussians. That product is at least as concentrated as
either of the two in every direction, so that the change from its frame to theirs loses no digits.

*Conventions.* The monomials of a row z are the products u_i u_j, i <= j, of u = (1, z), row by row:
(1, z, z_1 z_1, z_1 z_2, ...), F = (P + 1)(P + 2)/2 of them. `information.missing_information` makes the pass
over the rows.
"""

import functools

import numpy as np
from scipy.linalg import solve_triangular

from sklearn_lrvb.row_blocks import slices
from sklearn_lrvb.symmetric_matrices import from_unique_entries, svec, unique_entries, upper_triangle

_MATRIX_BYTES = 2**18  # Size of the matrices that are transformed at once, so that they stay in cache.


class FullPair:
    """Sums over rows in z = R (x - c), with Q R the QR factorization of the components' stacked whiteners.

    R' R is the sum of both E Lambda, and y_k = Q_k z + W_k (c - m_k), the rows Q_k of Q being a contraction.

    Parameters
    ----------
    posterior : VariationalPosterior
    k, l : int, the components
    """

    def __init__(self, posterior, k, l):
        self._slices = [posterior.structure.coefficient_slices(component) for component in (k, l)]
        whiteners, centred_means = posterior.whiteners[[k, l]], posterior.centred_means[[k, l]]
        turns, self._whitener = np.linalg.qr(whiteners.reshape(-1, posterior.n_features))
        gaps = centred_means - centred_means[0]
        # The center c minimizes the sum of the squared distances |W_k (c - m_k)|^2.
        step = solve_triangular(self._whitener, turns.T @ np.einsum("kpq,kq->kp", whiteners, gaps).ravel())
        self._center = centred_means[0] + step
        self._turns = turns.reshape(whiteners.shape)
        self._shifts = np.einsum("kpq,kq->kp", whiteners, step - gaps)
        self._origins = posterior.second_moment_origin[[k, l]]

    def moments(self, rows, weights):
        """The monomials' Gram matrix of some rows, to be added over blocks: (P, n), (n,) -> (F, F)."""
        extended = np.ones((1 + len(rows), rows.shape[1]))
        np.matmul(self._whitener, rows - self._center[:, None], out=extended[1:])
        extended *= weights**0.25  # Products of four of them have the weight.
        size = len(extended)
        weighted, start = np.empty((size * (size + 1) // 2, rows.shape[1])), 0
        for i, row in enumerate(extended):
            stop = start + size - i
            np.multiply(row, extended[i:], out=weighted[start:stop])
            start = stop
        return weighted @ weighted.T

    def add_to(self, missing, moments):
        """Add the pair's share to the missing information (D, D), given `moments` of all rows."""
        sides = list(zip(self._turns, self._shifts, self._origins, strict=True))
        # Sums of features times monomials, (F, F).
        halves = [np.ascontiguousarray(_features(moments, *side).T) for side in sides]
        for side, own_slices, half in zip(sides, self._slices, halves, strict=True):
            own = _features(half, *side)
            _add_blocks(missing, own_slices, own_slices, 0.5 * (own + own.T))
        mixed = -_features(halves[0], *sides[1])
        _add_blocks(missing, *self._slices, mixed)
        _add_blocks(missing, *self._slices[::-1], mixed.T)


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


def _features(monomials, turn, shift, origin):
    """From sums of z's monomials to sums of the features at y = turn z + shift: (m, F) -> (m, F)."""
    size, linear = 1 + len(shift), np.ones(1 + len(shift))
    extended = np.eye(size)  # From (1, z) to (1, y).
    extended[1:] = np.hstack([shift[:, None], turn])
    scale = np.concatenate([linear, np.sqrt(0.5) * svec(np.ones_like(origin))])
    scaled_origin = scale * np.concatenate([np.zeros(size), unique_entries(origin)])
    from_triangle, to_triangle = _triangle(size)
    features = np.empty(monomials.shape)
    for some in slices(len(monomials), max(1, _MATRIX_BYTES // (8 * size**2))):
        own = features[some]
        matrices = np.take(monomials[some], from_triangle, axis=1).reshape(-1, size) @ extended.T
        matrices = extended @ matrices.reshape(-1, size, size)
        # mode="clip" lets numpy write to ``out`` without a buffer.
        np.take(matrices.reshape(-1, size**2), to_triangle, axis=1, out=own, mode="clip")
        own *= scale
        own -= monomials[some, :1] * scaled_origin
    return features


@functools.lru_cache(maxsize=2)
def _triangle(size):
    """Indices of a symmetric matrix's entries in its upper triangle, and of the triangle in the matrix."""
    row, column = upper_triangle(size)
    return from_unique_entries(np.arange(row.size), size).astype(np.intp).ravel(), row * size + column
