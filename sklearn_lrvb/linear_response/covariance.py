"""Linear response covariance of a mean-field fixed point (paper, Equation 10)."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_lrvb.linear_response.array_checks import (
    covariance_roots,
    finite_matrix,
    require_shape,
    square_matrix,
    symmetric,
)
from sklearn_lrvb.linear_response.complete_information import CompleteInformation
from sklearn_lrvb.linear_response.factored_solvers import PrimalInformation


def linear_response_covariance(V: ArrayLike, H: ArrayLike) -> NDArray[np.float64]:
    """LRVB covariance (I - V H)^-1 V of all statistics (paper, Equation 10).

    Parameters
    ----------
    V : array-like of shape (D, D)
        Covariance of the sufficient statistics under q, positive semidefinite. It is singular where
        statistics are linearly dependent, as for categorical variables or matrices kept whole.

    H : array-like of shape (D, D)
        Hessian of the expected log joint in the mean parameters (paper, Equation 18), symmetric.

    Returns
    -------
    covariance : ndarray of shape (D, D)
        Exactly symmetric, positive semidefinite, in V's units. It is the exact posterior covariance where
        the posterior is multivariate normal (the paper's supplement shows it).

    Raises
    ------
    ValueError
        Shapes do not fit, numbers are not finite, H is not symmetric, or V is no covariance.
    IndefiniteInformationError
        The fixed point is no strict local optimum: I - V H has an eigenvalue that is not positive. It is a
        ValueError that names the eigenvalue and the statistics that its direction is about.

    See Also
    --------
    schur_linear_response_covariance : The same with many nuisance variables.
    linear_response_influence : What single observations contribute.

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
