"""Checks of the caller's matrices in linear response; their errors name the argument."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from sklearn_lrvb.symmetric_matrices import round_off, scaled_to_unit_diagonal, symmetrized

# Largest asymmetry and negative eigenvalue that count as round-off, in units of V's standard deviations.
SYMMETRY_TOLERANCE = 1e-8


def finite_matrix(name: str, array: Any) -> NDArray[np.float64]:
    """``array`` as a float64 matrix, (m, n).

    Raises
    ------
    ValueError
        It is no real matrix, or not finite.
    """
    given = array.toarray() if sparse.issparse(array) else np.asarray(array)
    if np.iscomplexobj(given):
        raise ValueError(f"{name} must be real, but has dtype {given.dtype}.")
    matrix = given.astype(np.float64)
    if matrix.ndim != 2:
        raise ValueError(f"{name} must be a matrix, but has {matrix.ndim} dimensions, shape {matrix.shape}.")
    if not np.all(np.isfinite(matrix)):
        first = tuple(map(int, np.argwhere(~np.isfinite(matrix))[0]))
        raise ValueError(f"{name} must be finite, but {name}{list(first)} is {matrix[first]}.")
    return matrix


def square_matrix(name: str, array: Any) -> NDArray[np.float64]:
    """`finite_matrix` with as many columns as rows."""
    matrix = finite_matrix(name, array)
    require_shape(name, matrix, 2 * (len(matrix),), "it must be square, one row and column per statistic")
    return matrix


def require_shape(name, array, shape, reason):
    """Raise a ValueError for an array of another shape; ``reason`` says why this one is expected."""
    if array.shape != shape:
        raise ValueError(f"{name} has shape {array.shape}, but {reason}: expected {shape}.")


def symmetric(name: str, matrix: NDArray[np.float64], deviations: NDArray[np.float64]) -> NDArray[np.float64]:
    """``matrix`` with an asymmetry of round-off size removed, (D, D).

    Parameters
    ----------
    deviations : ndarray of shape (D,)
        Standard deviations of V, the units in which asymmetry counts.

    Raises
    ------
    ValueError
        The matrix is not symmetric; names the two entries that differ most.
    """
    scaled = matrix * np.outer(deviations, deviations)
    asymmetry = np.abs(scaled - scaled.T)
    if asymmetry.max(initial=0.0) > SYMMETRY_TOLERANCE * (1.0 + np.abs(scaled).max(initial=0.0)):
        i, j = map(int, np.unravel_index(asymmetry.argmax(), asymmetry.shape))
        raise ValueError(
            f"{name} must be symmetric, as a matrix of second derivatives, but {name}[{i}, {j}] = "
            f"{matrix[i, j]:.6g} and {name}[{j}, {i}] = {matrix[j, i]:.6g}. (a) Check which block was "
            f"transposed. (b) If it is round-off, pass ({name} + {name}.T) / 2."
        )
    return symmetrized(matrix)


def covariance_roots(name, stack, members=None):
    """Roots R of covariances, R R' = V, by the eigenvectors of their correlations: (n, b, b) -> (n, b, b).

    Parameters
    ----------
    members : int ndarray of shape (n, b), default=None
        Which statistics every block holds, for the error message.

    Raises
    ------
    ValueError
        A block is not symmetric and positive semidefinite.
    """
    variances = np.einsum("nii->ni", stack)
    correlations, scale = scaled_to_unit_diagonal(stack)
    asymmetry = np.abs(correlations - correlations.transpose(0, 2, 1)).max(axis=(1, 2), initial=0.0)
    values, vectors = np.linalg.eigh(symmetrized(correlations))
    lowest = values.min(axis=1, initial=0.0)
    is_asymmetric = asymmetry > SYMMETRY_TOLERANCE
    bad = np.flatnonzero(is_asymmetric | (lowest < -SYMMETRY_TOLERANCE) | np.any(variances < 0, axis=1))
    if bad.size:
        first = int(bad[0])
        which = name if members is None else f"{name} (statistics {', '.join(map(str, members[first]))})"
        what = (
            f"its asymmetry is {asymmetry[first]:.2g}"
            if is_asymmetric[first]
            else f"its smallest eigenvalue is {lowest[first]:.2g}"
        )
        raise ValueError(
            f"{which} must be a covariance, symmetric and positive semidefinite, but {what} in units of its "
            f"standard deviations (smallest variance {variances[first].min():.2g})."
        )
    roots = np.sqrt(np.where(values > round_off(stack.shape[-1]), values, 0.0))
    return scale[:, :, None] * vectors * roots[:, None, :]
