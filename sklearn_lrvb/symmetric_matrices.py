"""Symmetric matrices: as vectors, their factors, and the one rule of numerical rank.

*Vectors.* ``svec`` is an isometry: <svec(A), svec(B)> = trace(A B). Entries run row by row over the upper
triangle, the order of ``numpy.triu_indices``, which is also the order in which the unique entries of
precision matrices are reported to the user.

*Rank.* A matrix is factored after scaling to unit diagonal. A squared pivot of the scaled matrix is the share
of a coordinate's variance that the coordinates before it leave unexplained, in any units of measurement; a
matrix with a squared pivot below `round_off` counts as singular.
"""

import contextlib
import functools
import math

import numpy as np
from scipy.linalg import lapack

# Largest difference across the diagonal of a user's matrix that counts as round-off, in units of the roots of
# the diagonal: that of inverses and products in float32.
_EPS = np.finfo(float).eps
_ASYMMETRY = 1e-6


@functools.lru_cache(maxsize=64)
def upper_triangle(n_features):
    """Row and column indices of the upper triangle, in the order used throughout."""
    return np.triu_indices(n_features)


@functools.lru_cache(maxsize=64)
def _isometry_weights(n_features):
    """1 for the entries on the diagonal, sqrt(2) for the others."""
    row, column = upper_triangle(n_features)
    return np.where(row == column, 1.0, np.sqrt(2.0))


def unique_entries(matrices):
    """Upper triangle of symmetric matrices, unscaled: (..., P, P) -> (..., P(P+1)/2)."""
    n_features = matrices.shape[-1]
    row, column = upper_triangle(n_features)
    flat = matrices.reshape(*matrices.shape[:-2], n_features**2)
    return np.take(flat, row * n_features + column, axis=-1)  # One index is faster than two.


def from_unique_entries(entries, n_features):
    """Inverse of `unique_entries`."""
    row, column = upper_triangle(n_features)
    matrices = np.empty((*entries.shape[:-1], n_features, n_features))
    matrices[..., row, column] = entries
    matrices[..., column, row] = entries
    return matrices


def svec(matrices):
    """Isometric vector of symmetric matrices: (..., P, P) -> (..., P(P+1)/2)."""
    return unique_entries(matrices) * _isometry_weights(matrices.shape[-1])


def packed_triangle(matrix):
    """Lower triangle of a matrix row by row, to store it in half the memory: (D, D) -> (D(D+1)/2,)."""
    return matrix[np.tril_indices(len(matrix))]


def from_packed_triangle(triangle):
    """Inverse of `packed_triangle` for symmetric matrices: (D(D+1)/2,) -> (D, D), exactly symmetric."""
    size = (math.isqrt(8 * len(triangle) + 1) - 1) // 2
    row, column = np.tril_indices(size)
    matrix = np.empty((size, size))
    matrix[row, column] = triangle
    matrix[column, row] = triangle
    return matrix


def symmetrized(matrices):
    """Symmetric part, exactly symmetric: (..., P, P) -> (..., P, P)."""
    return 0.5 * (matrices + matrices.swapaxes(-1, -2))


def asymmetric_entry(matrices):
    """Index of the entry of (..., P, P) furthest from the one across the diagonal; None within round-off.

    Round-off is relative to the roots of the diagonal, so that the units of the coordinates do not matter.
    """
    roots = np.sqrt(np.abs(np.einsum("...pp->...p", matrices)))
    excess = np.abs(matrices - matrices.swapaxes(-1, -2))
    excess -= _ASYMMETRY * roots[..., :, None] * roots[..., None, :]
    return np.unravel_index(np.argmax(excess), excess.shape) if np.any(excess > 0) else None


def round_off(size):
    """Squared pivots and eigenvalues, of a matrix of this size and of order one, that count as zero.

    Factoring a matrix of unit diagonal in float64 changes its pivots by a small multiple of size * eps; the
    factor 10 is a margin over that.
    """
    return 10 * size * _EPS


def scaled_to_unit_diagonal(matrices):
    """Symmetric matrices divided by the roots of their diagonals, and these: (..., P, P), (..., P).

    A root is 1 where the diagonal is not positive: a caller that needs positive variances sees it in the
    scaled matrix.
    """
    diagonal = np.einsum("...pp->...p", matrices)
    scale = np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    products = scale[..., :, None] * scale[..., None, :]
    return np.divide(matrices, products, out=products), scale


def is_numerically_singular(factors):
    """Whether some squared pivot is round-off, for Cholesky factors (..., P, P) of matrices of order one."""
    return np.einsum("...pp->...p", factors).min() ** 2 < round_off(factors.shape[-1])


def cholesky_equilibrated(matrix):
    """Lower Cholesky factor (P, P), or None where the matrix has none; nearly singular ones have one.

    The matrix is scaled to unit diagonal first, so that the accuracy does not depend on the coordinates'
    units.
    """
    if not np.isfinite(matrix).all():
        return None
    scaled, scale = scaled_to_unit_diagonal(matrix)
    # LAPACK is called directly, as the checks of scipy.linalg.cholesky take longer than a small factor.
    factor, failed = lapack.dpotrf(scaled, lower=True)
    return None if failed else scale[:, None] * np.ascontiguousarray(factor)


def cholesky_factors(matrices):
    """Lower Cholesky factors, NaN where a matrix is singular to working precision: (n, P, P) -> (n, P, P).

    Whether it is does not depend on the coordinates' units.
    """
    with contextlib.suppress(np.linalg.LinAlgError):
        factors = np.linalg.cholesky(matrices)
        # Relative to the diagonal: Cholesky's method makes the same rounding errors in all units.
        squared_pivots = np.square(factors.diagonal(axis1=1, axis2=2))
        if (squared_pivots / matrices.diagonal(axis1=1, axis2=2)).min() > round_off(factors.shape[-1]):
            return factors
    if len(matrices) == 1:
        return np.full(matrices.shape, np.nan)
    return np.concatenate([cholesky_factors(matrix[None]) for matrix in matrices])


def gram_root(gram):
    """Z with Z' Z = gram, for matrices that are positive semidefinite up to round-off: (..., n, n).

    Z is the symmetric root of the correlations times the standard deviations: columns in any units keep
    their digits. It is a continuous function of the matrix, whatever signs the eigenvectors have.
    """
    correlations, scale = scaled_to_unit_diagonal(symmetrized(gram))
    values, vectors = np.linalg.eigh(correlations)
    roots = np.sqrt(np.maximum(values, 0.0))[..., None, :]
    return (vectors * roots) @ vectors.swapaxes(-1, -2) * scale[..., None, :]
