"""Two components with a covariance matrix each: their contribution to the missing information.

The contribution is a Gram matrix of h_k - h_l with weights r_k r_l >= 0. It is accumulated from monomials of
z, the rows in the whitened coordinates of the product of the two Gaussians. That product is at least as
concentrated as either of the two in every direction, so that the change from its coordinates to theirs loses
no digits.

*Conventions.* The monomials of a row z are the products u_i u_j, i <= j, of u = (1, z), row by row:
(1, z, z_1 z_1, z_1 z_2, ...), F = (P + 1)(P + 2)/2 of them. `information.missing_information` makes the pass
over the rows.
"""

import functools
import itertools
from functools import cached_property

import numpy as np
from scipy.linalg import solve_triangular

from sklearn_lrvb.rows import slices
from sklearn_lrvb.symmetric_matrices import from_unique_entries, svec, unique_entries, upper_triangle

_MATRIX_BYTES = 2**18  # Size of the matrices that are transformed at once, so that they stay in cache.
# Number of coordinates up to which `QuarticMoments` has one group, and the largest size of one of several:
# smaller groups repeat fewer moments, in products that are less efficient (measured from 5 to 100 features).
_LARGEST_ALONE, _LARGEST_OF_SEVERAL = 20, 9


class QuarticMoments:
    """Weighted sums of u_i u_j u_k u_l over rows u, from which the monomials' Gram matrix is made.

    Few of the matrix' entries are distinct: a sixth, where there are many features. The coordinates are
    divided into groups, the monomials into blocks: those of u_i in one group and u_j in the same group or a
    later one. With i <= j <= k <= l, the sum is found in the product of the block of u_i u_j and of all
    monomials whose coordinates are in the group of u_j or later. One group is one symmetric product.

    Parameters
    ----------
    size : int, number of coordinates
    """

    def __init__(self, size):
        n_groups = 1 if size <= _LARGEST_ALONE else -(-size // _LARGEST_OF_SEVERAL)
        group = np.arange(size) * n_groups // size
        row, column = upper_triangle(size)
        by_block = np.lexsort((group[column], group[row]))
        row, column = row[by_block], column[by_block]
        n_monomials, self._size = len(row), size
        # Monomials of one u_i that stand together: i, the u_j, and their places.
        runs = itertools.pairwise([*np.flatnonzero(np.diff(row, prepend=-1)), n_monomials])
        self._runs = [(row[i], slice(column[i], column[j - 1] + 1), slice(i, j)) for i, j in runs]
        # The place of u_i u_j, and where the moments of its row in a product start, at [i, j].
        self._places, self._starts = np.zeros((2, size, size), dtype=np.intp)
        self._places[row, column] = np.arange(n_monomials)
        self._products, n_moments = [], 0
        first_of_block = np.flatnonzero(np.diff(group[row] * n_groups + group[column], prepend=-1))
        for start, stop in itertools.pairwise([*first_of_block, n_monomials]):
            block, first = slice(start, stop), np.searchsorted(group[row], group[column[start]])
            starts = n_moments + (n_monomials - first) * np.arange(stop - start)
            self._starts[row[block], column[block]] = starts - first
            self._products.append((block, slice(first, n_monomials)))
            n_moments += (stop - start) * (n_monomials - first)

    def sums(self, rows):
        """Products of blocks of monomials, to be added over blocks of rows: (size, n) -> list of arrays."""
        monomials = np.empty((self._size * (self._size + 1) // 2, rows.shape[1]))
        for i, partners, run in self._runs:
            np.multiply(rows[i], rows[partners], out=monomials[run])
        return [monomials[block] @ monomials[later].T for block, later in self._products]

    def gram(self, sums):
        """The monomials' Gram matrix, (F, F), in the order of `upper_triangle`."""
        if len(sums) == 1:  # One block has this order.
            return sums[0]
        return np.concatenate([products.ravel() for products in sums])[self._places_in_gram]

    @cached_property
    def _places_in_gram(self):
        """Where the moment of every entry of the Gram matrix stands in the products, one after the other."""
        row, column = upper_triangle(self._size)
        index = np.empty(2 * (len(row),), dtype=np.int32)
        for some in slices(len(row), max(1, _MATRIX_BYTES // (8 * len(row)))):
            i, j = row[some, None], column[some, None]
            first, last = np.minimum(i, row), np.maximum(j, column)
            inner = np.maximum(i, row), np.minimum(j, column)
            second, third = np.minimum(*inner), np.maximum(*inner)
            index[some] = self._starts[first, second] + self._places[third, last]
        return index


class FullPair:
    """Sums over rows in z = R (x - c), with Q R the QR factorization of the components' stacked whiteners.

    R' R is the sum of both E Lambda, and y_k = Q_k z + W_k (c - m_k), the rows Q_k of Q being a contraction.

    Parameters
    ----------
    posterior : VariationalPosterior
    k, l : int, the components
    quartic : QuarticMoments of 1 + P coordinates, the same for all pairs
    """

    def __init__(self, posterior, k, l, quartic):
        self._slices = [posterior.structure.layout.slices_of(component) for component in (k, l)]
        whiteners, centred_means = posterior.whiteners[[k, l]], posterior.centred_means[[k, l]]
        turns, self._whitener = np.linalg.qr(whiteners.reshape(-1, posterior.n_features))
        gaps = centred_means - centred_means[0]
        # The center c minimizes the sum of the squared distances |W_k (c - m_k)|^2.
        step = solve_triangular(self._whitener, turns.T @ np.einsum("kpq,kq->kp", whiteners, gaps).ravel())
        self._center = centred_means[0] + step
        self._turns = turns.reshape(whiteners.shape)
        self._shifts = np.einsum("kpq,kq->kp", whiteners, step - gaps)
        self._origins = posterior.second_moment_origin[[k, l]]
        self._quartic = quartic

    def moments(self, rows, weights):
        """What `QuarticMoments.sums` makes of some rows, to be added over blocks.

        (P, n), (n,) -> list of arrays
        """
        extended = np.ones((1 + len(rows), rows.shape[1]))
        np.matmul(self._whitener, rows - self._center[:, None], out=extended[1:])
        extended *= weights**0.25  # Products of four of them have the weight.
        return self._quartic.sums(extended)

    def add_to(self, missing, moments):
        """Add the pair's share to the missing information (D, D), given `moments` of all rows."""
        sides = list(zip(self._turns, self._shifts, self._origins, strict=True))
        gram = self._quartic.gram(moments)
        # Sums of features times monomials, (F, F).
        halves = [np.ascontiguousarray(_features(gram, *side).T) for side in sides]
        for side, own_slices, half in zip(sides, self._slices, halves, strict=True):
            own = _features(half, *side)
            _add_blocks(missing, own_slices, own_slices, 0.5 * (own + own.T))
        mixed = -_features(halves[0], *sides[1])
        _add_blocks(missing, *self._slices, mixed)
        _add_blocks(missing, *self._slices[::-1], mixed.T)


def _add_blocks(matrix, rows, columns, block):
    """Add a block to a matrix, given the slices to which the block's rows and columns belong.

    An index in their place would take twice as long.
    """
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
