"""Roots and products of symmetric matrices, for the families of normal and Wishart variables."""

import numpy as np

from sklearn_lrvb.symmetric_matrices import symmetrized


def inverse_root(matrices):
    """R upper triangular with R R' = matrix^-1 of positive definite matrices: (..., P, P) -> (..., P, P).

    Raises ``numpy.linalg.LinAlgError`` where a matrix is not positive definite.
    """
    factors = np.linalg.cholesky(matrices)
    identities = np.broadcast_to(np.eye(matrices.shape[-1]), matrices.shape)
    return np.linalg.solve(factors, identities).swapaxes(-1, -2)


def from_root(roots):
    """R R', exactly symmetric: (..., P, r) -> (..., P, P)."""
    return symmetrized(roots @ roots.swapaxes(-1, -2))


def log_determinant_of_triangular(triangles):
    """log of the product of the diagonal: (..., P, P) -> (...)."""
    return np.log(np.einsum("...pp->...p", triangles)).sum(axis=-1)


def symmetric_kronecker_square(matrices):
    """S_ik S_jl + S_il S_jk at [ij, kl]: (..., P, P) -> (..., P^2, P^2).

    It is the covariance of x x' for x ~ normal(0, S), and, times the degrees of freedom, of a Wishart matrix
    with scale S.
    """
    products = np.einsum("...ik,...jl->...ijkl", matrices, matrices)
    n_entries = matrices.shape[-1] ** 2
    return (products + products.swapaxes(-1, -2)).reshape(*matrices.shape[:-2], n_entries, n_entries)
