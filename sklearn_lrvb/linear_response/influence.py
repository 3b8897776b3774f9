"""Responses of posterior means to the data: linear response to infinitesimal noise (paper, Equation 14)."""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from sklearn_lrvb.linear_response.array_checks import (
    finite_matrix,
    require_shape,
    square_matrix,
    symmetric,
)
from sklearn_lrvb.linear_response.schur_complement import NuisanceResponse


def linear_response_influence(
    Sigma_alpha: ArrayLike,
    H_alpha_x: ArrayLike,
    H_alpha_z: "ArrayLike | sparse.sparray | sparse.spmatrix",
    V_z: "ArrayLike | sparse.sparray | sparse.spmatrix",
    H_z_x: "ArrayLike | sparse.sparray | sparse.spmatrix",
    S_x: ArrayLike,
    H_z: "ArrayLike | sparse.sparray | sparse.spmatrix | None" = None,
) -> NDArray[np.float64]:
    """Influence scores d E[alpha] / d x of observed data x, without refitting (paper, Equation 14).

    The printed equation is corrected (see the errata in `sklearn_lrvb.linear_response`): it should read
    Sigma_alpha (H_alpha_x + H_alpha_z (I - V_z H_z)^-1 V_z H_z_x) S_x.

    Parameters
    ----------
    Sigma_alpha : array-like of shape (d, d)
        LRVB covariance of alpha, from `schur_linear_response_covariance`.

    H_alpha_x : array-like of shape (d, n_x)
        Mixed second derivatives of the expected log joint in the means of alpha and of the statistics of x.

    H_alpha_z : array-like or scipy.sparse of shape (d, n_z)
        The same for alpha and the nuisance variables.

    V_z : array-like of shape (n_z, n_z), or (n_blocks, b, b), or scipy.sparse
        Covariance of z under q, as in `schur_linear_response_covariance`.

    H_z_x : array-like or scipy.sparse of shape (n_z, n_x)
        Mixed second derivatives in z and the statistics of x.

    S_x : array-like of shape (n_x, m)
        Derivatives of the statistics of x in x: the limit of Cov(statistics, x*) / epsilon (paper,
        Equation 12). For the statistics (x, x^2) of a number it is the column (1, 2 x).

    H_z : None, or as V_z, default=None
        Hessian in z's mean parameters; None is zero.

    Returns
    -------
    influence : ndarray of shape (d, m)
        Exact derivatives d E[alpha] / d x of the fixed point, in units of alpha per unit of x.

    Raises
    ------
    ValueError
        Shapes do not fit, numbers are not finite, or a matrix is not symmetric.
    IndefiniteInformationError
        The fixed point is no strict local optimum in z at fixed alpha. It is a ValueError.

    See Also
    --------
    schur_linear_response_covariance : The first argument.

    Examples
    --------
    The mean of x = (1, 3) with known precision 1 and a flat prior is alpha. Its expected log density is
    alpha (x_1 + x_2) - alpha^2; there are no nuisance variables, and each x moves the mean by 1/2:

    >>> import numpy as np
    >>> from sklearn_lrvb.linear_response import linear_response_influence
    >>> nothing = np.zeros((1, 0)), np.zeros((0, 0)), np.zeros((0, 2))
    >>> linear_response_influence([[0.5]], np.ones((1, 2)), *nothing, S_x=np.eye(2))
    array([[0.5, 0.5]])
    """
    Sigma_alpha = square_matrix("Sigma_alpha", Sigma_alpha)
    Sigma_alpha = symmetric("Sigma_alpha", Sigma_alpha, _inverse_deviations(Sigma_alpha))
    n_alpha = len(Sigma_alpha)
    S_x, H_alpha_x = finite_matrix("S_x", S_x), finite_matrix("H_alpha_x", H_alpha_x)
    n_x = len(S_x)
    require_shape(
        "H_alpha_x", H_alpha_x, (n_alpha, n_x), f"alpha has {n_alpha} statistics and S_x has {n_x} rows"
    )
    nuisance = NuisanceResponse(V_z, H_z)
    H_alpha_z = nuisance.coupling("H_alpha_z", H_alpha_z, n_alpha)
    H_z_x = nuisance.coupling("H_z_x", H_z_x, n_x, transposed=True)
    return Sigma_alpha @ ((H_alpha_x + nuisance.between(H_alpha_z, H_z_x.T)) @ S_x)


def _inverse_deviations(covariance):
    """1/sd of every statistic, 0 where it is 0: the asymmetry of a covariance is that of its correlations."""
    variance = np.diag(covariance)
    return np.where(variance > 0, 1.0 / np.sqrt(np.where(variance > 0, variance, 1.0)), 0.0)
