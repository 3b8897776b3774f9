"""Linear response covariance of a mean-field fixed point (Eq. lrvb_est)."""

import numpy as np
from scipy import sparse

from sklearn_lrvb.linear_response.complete_information import CompleteInformation
from sklearn_lrvb.linear_response.observed_information import PrimalInformation

SYMMETRIC = 1e-8  # asymmetry and negative eigenvalues allowed, in units of V's standard deviations


def linear_response_covariance(V, H):
    """LRVB covariance (I - V H)^-1 V of all statistics (Eq. lrvb_est).

    Parameters
    ----------
    V : array-like of shape (D, D)
        Covariance of the sufficient statistics under q, positive semidefinite; singular where statistics are
        linearly dependent, as for categorical variables or matrices kept whole.

    H : array-like of shape (D, D)
        Hessian of the expected log joint in the mean parameters (Eq. h_definition), symmetric.

    Returns
    -------
    covariance : ndarray of shape (D, D)
        Symmetric to the last digit, positive semidefinite, in V's units. Exact where the posterior is
        multivariate normal (Prop. lrvb_mvn).

    Raises
    ------
    ValueError
        Shapes that do not fit, numbers that are not finite, an H that is not symmetric, a V that is not a
        covariance.
    IndefiniteInformationError
        The fixed point is unstable: I - V H has an eigenvalue that is not positive. A ValueError that names
        it, and the statistics it is about.

    Examples
    --------
    Two scalar factors for a normal posterior with precision [[2, 1], [1, 1]]:

    >>> import numpy as np
    >>> from sklearn_lrvb.linear_response import linear_response_covariance
    >>> V = np.diag([0.5, 1.0])
    >>> H = np.array([[0.0, -1.0], [-1.0, 0.0]])
    >>> linear_response_covariance(V, H).round(12)
    array([[ 1., -1.],
           [-1.,  2.]])
    """
    V = square_matrix("V", V)
    H = finite_matrix("H", H)
    require_shape("H", H, V.shape, f"V has shape {V.shape}")
    root = covariance_roots("V", V[None])[0]
    H = symmetric("H", H, np.sqrt(np.maximum(np.diag(V), 0.0)))
    return PrimalInformation(CompleteInformation.from_root(root), H).covariance()


def finite_matrix(name, array):
    """``array`` as float64, (m, n).

    Raises
    ------
    ValueError
        Not a real matrix, or not finite.
    """
    array = array.toarray() if sparse.issparse(array) else np.asarray(array)
    if np.iscomplexobj(array):
        raise ValueError(f"{name} must be real, but has dtype {array.dtype}.")
    array = array.astype(np.float64)
    if array.ndim != 2:
        raise ValueError(f"{name} must be a matrix, but has {array.ndim} dimensions, shape {array.shape}.")
    if not np.all(np.isfinite(array)):
        first = tuple(map(int, np.argwhere(~np.isfinite(array))[0]))
        raise ValueError(f"{name} must be finite, but {name}{list(first)} is {array[first]}.")
    return array


def square_matrix(name, array):
    """`finite_matrix` with as many columns as rows."""
    array = finite_matrix(name, array)
    require_shape(name, array, 2 * (len(array),), "it must be square, one row and column per statistic")
    return array


def require_shape(name, array, shape, reason):
    """Refuse an array of another shape, with the reason for the one expected."""
    if array.shape != shape:
        raise ValueError(f"{name} has shape {array.shape}, but {reason}: expected {shape}.")


def symmetric(name, matrix, deviations):
    """``matrix`` without the round-off of its asymmetry.

    Parameters
    ----------
    deviations : (D,), V's standard deviations, the units in which asymmetry counts
    """
    scaled = matrix * np.outer(deviations, deviations)
    asymmetry = np.abs(scaled - scaled.T)
    if asymmetry.max(initial=0.0) > SYMMETRIC * (1.0 + np.abs(scaled).max(initial=0.0)):
        i, j = map(int, np.unravel_index(asymmetry.argmax(), asymmetry.shape))
        raise ValueError(
            f"{name} must be symmetric, as a matrix of second derivatives, but {name}[{i}, {j}] = "
            f"{matrix[i, j]:.6g} and {name}[{j}, {i}] = {matrix[j, i]:.6g}. Check which block was "
            f"transposed; if it is round-off, pass ({name} + {name}.T) / 2."
        )
    return 0.5 * (matrix + matrix.T)


def covariance_roots(name, stack, members=None):
    """Roots R of covariances, R R' = V, by their correlations: (n, b, b) -> (n, b, b).

    Parameters
    ----------
    members : int array (n, b) or None
        Which statistics every block holds, for error messages.

    Raises
    ------
    ValueError
        Where a block is not symmetric positive semidefinite.
    """
    variances = np.einsum("nii->ni", stack)
    deviations = np.sqrt(np.maximum(variances, 0.0))
    scale = np.where(deviations > 0, deviations, 1.0)
    correlations = stack / (scale[:, :, None] * scale[:, None, :])
    asymmetry = np.abs(correlations - correlations.transpose(0, 2, 1)).max(axis=(1, 2), initial=0.0)
    values, vectors = np.linalg.eigh(0.5 * (correlations + correlations.transpose(0, 2, 1)))
    lowest = values.min(axis=1, initial=0.0)
    bad = np.flatnonzero((asymmetry > SYMMETRIC) | (lowest < -SYMMETRIC) | np.any(variances < 0, axis=1))
    if bad.size:
        first = int(bad[0])
        which = name if members is None else f"{name} (statistics {', '.join(map(str, members[first]))})"
        what = (
            f"its asymmetry is {asymmetry[first]:.2g}"
            if asymmetry[first] > SYMMETRIC
            else f"its smallest eigenvalue is {lowest[first]:.2g}"
        )
        raise ValueError(
            f"{which} must be a covariance, symmetric and positive semidefinite, but {what} in units of its "
            f"standard deviations (smallest variance {variances[first].min():.2g})."
        )
    return scale[:, :, None] * vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
