"""Symmetric matrices as vectors, in the one place that knows the order of their entries.

``svec`` is an isometry: <svec(A), svec(B)> = trace(A B). Entries run row by row over the upper
triangle, the order of ``numpy.triu_indices``, which is also the order in which the unique entries
of precision matrices are reported to the user.
"""

import contextlib
import functools

import numpy as np
from scipy.linalg import lapack


@functools.lru_cache(maxsize=64)
def upper_triangle(n_features):
    """Row and column numbers of the upper triangle, in the order used throughout."""
    return np.triu_indices(n_features)


@functools.lru_cache(maxsize=64)
def _isometry_weights(n_features):
    """1 on the diagonal's entries, sqrt(2) on the others."""
    row, column = upper_triangle(n_features)
    return np.where(row == column, 1.0, np.sqrt(2.0))


def unique_entries(matrices):
    """Upper triangle of symmetric matrices, unscaled: (..., P, P) -> (..., P(P+1)/2)."""
    row, column = upper_triangle(matrices.shape[-1])
    return matrices[..., row, column]


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


def smat(vectors, n_features):
    """Inverse of `svec`: (..., P(P+1)/2) -> (..., P, P), symmetric to the last digit."""
    return from_unique_entries(vectors / _isometry_weights(n_features), n_features)


def symmetrized(matrices):
    """Symmetric part, symmetric to the last digit: (..., P, P) -> (..., P, P)."""
    return 0.5 * (matrices + matrices.swapaxes(-1, -2))


def inverse_root(matrices):
    """R upper triangular with R R' = matrix^-1, of positive definite ones: (..., P, P) -> (..., P, P).

    Raises ``numpy.linalg.LinAlgError`` where a matrix is not positive definite.
    """
    factors = np.linalg.cholesky(matrices)
    identities = np.broadcast_to(np.eye(matrices.shape[-1]), matrices.shape)
    return np.linalg.solve(factors, identities).swapaxes(-1, -2)


def log_determinant_of_triangular(triangles):
    """log of the product of the diagonal: (..., P, P) -> (...)."""
    return np.log(np.einsum("...pp->...p", triangles)).sum(axis=-1)


def symmetric_kronecker_square(matrices):
    """S_ik S_jl + S_il S_jk at [ij, kl]: (..., P, P) -> (..., P^2, P^2).

    The covariance of x x' for x normal around 0, and of a Wishart matrix but for its degrees of freedom.
    """
    products = np.einsum("...ik,...jl->...ijkl", matrices, matrices)
    n_entries = matrices.shape[-1] ** 2
    return (products + products.swapaxes(-1, -2)).reshape(*matrices.shape[:-2], n_entries, n_entries)


def cholesky_equilibrated(matrix):
    """Lower Cholesky factor, and that of the matrix scaled to unit diagonal; None, None where there is none.

    Scaling first makes the factor's accuracy independent of the coordinates' units.
    """
    diagonal = np.diag(matrix)
    if not (np.all(np.isfinite(matrix)) and np.all(diagonal > 0)):
        return None, None
    scale = np.sqrt(diagonal)
    # LAPACK itself: what surrounds it in scipy.linalg.cholesky takes longer than a small factor
    scaled, failed = lapack.dpotrf(matrix / np.outer(scale, scale), lower=True)
    if failed:
        return None, None
    scaled = np.ascontiguousarray(scaled)
    return scale[:, None] * scaled, scaled


def cholesky_factor(matrix):
    """Lower Cholesky factor, or None where the matrix is singular to working precision, in any units.

    A pivot of the scaled matrix is the share of a coordinate's variance that those before it leave over.
    """
    factor, scaled = cholesky_equilibrated(matrix)
    if factor is None or np.diag(scaled).min() ** 2 < _singular_below(len(factor)):
        return None
    return factor


def _singular_below(size):
    """Squared pivots of a matrix of unit diagonal that rounding alone could leave over."""
    return 10 * size * np.finfo(float).eps


def cholesky_factors(matrices):
    """`cholesky_factor` of each of a stack, at once where all have one: (n, P, P) -> list."""
    diagonal = np.einsum("npp->np", matrices)
    if np.all(diagonal > 0) and np.all(np.isfinite(matrices)):
        scale = np.sqrt(diagonal)
        with contextlib.suppress(np.linalg.LinAlgError):
            scaled = np.linalg.cholesky(matrices / (scale[:, :, None] * scale[:, None, :]))
            if np.einsum("npp->np", scaled).min() ** 2 >= _singular_below(matrices.shape[-1]):
                return list(scale[:, :, None] * scaled)
    return [cholesky_factor(matrix) for matrix in matrices]
