"""Linear response covariance of a mean-field fixed point (paper, Equation 10)."""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from sklearn_lrvb.linear_response.array_checks import (
    SYMMETRY_TOLERANCE,
    covariance_roots,
    finite_matrix,
    require_shape,
    square_matrix,
    symmetric,
)
from sklearn_lrvb.linear_response.complete_information import CompleteInformation
from sklearn_lrvb.linear_response.definite_system import smallest_eigenpair, stable_factor
from sklearn_lrvb.linear_response.observed_information import (
    IndefiniteInformationError,
    indefinite_information_error,
)
from sklearn_lrvb.linear_response.solvers import PrimalInformation


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


def schur_linear_response_covariance(
    V_alpha: ArrayLike,
    H_alpha: ArrayLike,
    H_alpha_z: "ArrayLike | sparse.sparray | sparse.spmatrix",
    V_z: "ArrayLike | sparse.sparray | sparse.spmatrix",
    H_z: "ArrayLike | sparse.sparray | sparse.spmatrix | None" = None,
) -> NDArray[np.float64]:
    """LRVB covariance of alpha, with the nuisance variables z eliminated (paper, Equation 11).

    Parameters
    ----------
    V_alpha : array-like of shape (d, d)
        Covariance of alpha under q, positive semidefinite.

    H_alpha : array-like of shape (d, d)
        Hessian of the expected log joint in alpha's mean parameters, symmetric.

    H_alpha_z : array-like or scipy.sparse of shape (d, n_z)
        Mixed second derivatives in the mean parameters of alpha and of z.

    V_z : array-like of shape (n_z, n_z), or (n_blocks, b, b) with n_z = n_blocks * b, or scipy.sparse
        Covariance of z under q. A stack holds the diagonal blocks of independent variables, in order. A
        sparse matrix is taken apart into its connected blocks. Each block may be singular.

    H_z : None, or as V_z, default=None
        Hessian in z's mean parameters. None is zero, as for variables no two of which meet in a term.

    Returns
    -------
    covariance : ndarray of shape (d, d)
        The alpha block of (I - V H)^-1 V, exactly symmetric, in the units of V_alpha.

    Raises
    ------
    ValueError
        Shapes do not fit (named with their sizes), numbers are not finite, a Hessian is not symmetric, or V
        is no covariance.
    IndefiniteInformationError
        The fixed point is no strict local optimum, in z at fixed alpha or in alpha. It is a ValueError.

    See Also
    --------
    linear_response_covariance : The same of all statistics.
    linear_response_influence : What single observations contribute.

    Notes
    -----
    A stack is never made dense: it needs n_z (b + d) numbers of memory. An H_z costs a sparse factorization.

    Examples
    --------
    The same as eliminating z from the whole covariance:

    >>> import numpy as np
    >>> from sklearn_lrvb.linear_response import (
    ...     linear_response_covariance, schur_linear_response_covariance
    ... )
    >>> V, H = np.eye(3), np.array([[0.0, 0.5, 0.0], [0.5, 0.0, 0.2], [0.0, 0.2, 0.0]])
    >>> linear_response_covariance(V, H)[:1, :1].round(6)
    array([[1.352113]])
    >>> schur_linear_response_covariance(V[:1, :1], H[:1, :1], H[:1, 1:], V[1:, 1:], H[1:, 1:]).round(6)
    array([[1.352113]])
    """
    V_alpha = square_matrix("V_alpha", V_alpha)
    H_alpha = finite_matrix("H_alpha", H_alpha)
    require_shape("H_alpha", H_alpha, V_alpha.shape, f"V_alpha has shape {V_alpha.shape}")
    nuisance = NuisanceResponse(V_z, H_z)
    coupling = nuisance.coupling("H_alpha_z", H_alpha_z, len(H_alpha))
    return linear_response_covariance(V_alpha, H_alpha + nuisance.between(coupling, coupling))


class NuisanceResponse:
    """Sigma_z|alpha = (I - V_z H_z)^-1 V_z, the response of z at fixed alpha, through its products.

    Parameters
    ----------
    V_z, H_z
        As in `schur_linear_response_covariance`.
    """

    def __init__(self, V_z, H_z=None):
        self._covariance = _dense_or_sparse("V_z", V_z)
        self.size = self._covariance.shape[0]
        root = _nuisance_root(self._covariance)
        self._respond = self._independent_response if H_z is None else _stable_response(root, H_z)

    def _independent_response(self, array):
        """Sigma_z|alpha array where H_z is zero."""
        return self._covariance @ array

    def coupling(self, name, array, n_others, transposed=False):
        """Mixed derivatives with z, (n_others, n_z) or transposed, once checked; sparse stays sparse."""
        shape = (self.size, n_others) if transposed else (n_others, self.size)
        finite = _finite_sparse if sparse.issparse(array) else finite_matrix
        array = finite(name, array)
        require_shape(name, array, shape, f"V_z covers {self.size} statistics, the other block {n_others}")
        return array

    def between(self, left, right):
        """left Sigma_z|alpha right': (l, n_z), (r, n_z) -> (l, r)."""
        return _dense(left @ self._respond(right.T))


def _dense(array):
    return array.toarray() if sparse.issparse(array) else array


def _dense_or_sparse(name, matrix):
    """A square matrix, (n, n). A dense one stays dense; a stack of diagonal blocks becomes sparse."""
    if not sparse.issparse(matrix):
        matrix = np.asarray(matrix, dtype=np.float64)
        if matrix.ndim != 3:
            return square_matrix(name, matrix)
        n_blocks, size, _ = matrix.shape
        require_shape(name, matrix, (n_blocks, size, size), "it must be a stack of square blocks")
        if not matrix.size:
            return np.zeros((0, 0))
        pointers = np.arange(n_blocks + 1)
        matrix = sparse.bsr_array((matrix, pointers[:-1], pointers), shape=2 * (n_blocks * size,))
    matrix = _finite_sparse(name, matrix)
    require_shape(name, matrix, 2 * (matrix.shape[0],), "it must be square")
    return matrix if matrix.shape[0] else np.zeros((0, 0))


def _finite_sparse(name, matrix):
    """A copy of a sparse matrix, checked to be finite, without repeated or zero entries."""
    matrix = sparse.csr_array(matrix, dtype=np.float64, copy=True)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()  # Stored zeros would connect blocks.
    if not np.all(np.isfinite(matrix.data)):
        raise ValueError(f"{name} must be finite, but holds NaN or infinity.")
    return matrix


def _nuisance_root(covariance):
    """R with R R' = V_z, by connected blocks. Raises a ValueError where V_z is no covariance."""
    if not sparse.issparse(covariance):
        return covariance_roots("V_z", covariance[None])[0]
    parts = []
    for stack, members in _connected_blocks(covariance):
        size = stack.shape[-1]
        roots = covariance_roots("V_z", stack, members)
        parts.append((roots.ravel(), np.repeat(members, size), np.tile(members, size).ravel()))
    values, rows, columns = map(np.concatenate, zip(*parts, strict=True))
    return sparse.csr_array((values, (rows, columns)), shape=covariance.shape)


def _connected_blocks(matrix):
    """Yield the connected blocks of a sparse matrix, those of one size as a stack.

    Yields
    ------
    stack : ndarray of shape (n, b, b)
    members : int ndarray of shape (n, b)
        Rows of the matrix that every block holds.
    """
    entries = matrix.tocoo()
    _, labels = connected_components(matrix, directed=False)
    order = np.argsort(labels, kind="stable")
    sizes = np.bincount(labels)
    first = np.cumsum(sizes) - sizes  # where every block starts in ``order``
    within = np.empty(len(labels), dtype=int)
    within[order] = np.arange(len(labels)) - first[labels[order]]
    for size in np.unique(sizes):
        chosen = np.flatnonzero(sizes == size)
        position = np.full(len(sizes), -1)
        position[chosen] = np.arange(len(chosen))
        of_size = sizes[labels[entries.row]] == size
        row, column = entries.row[of_size], entries.col[of_size]
        stack = np.zeros((len(chosen), size, size))
        stack[position[labels[row]], within[row], within[column]] = entries.data[of_size]
        yield stack, order[first[chosen][:, None] + np.arange(size)]


def _stable_response(root, H_z):
    """`_response`, with an error that is worded for z alone."""
    try:
        return _response(root, H_z)
    except IndefiniteInformationError as error:
        raise indefinite_information_error(
            error.smallest_eigenvalue,
            error.direction,
            subject="The fixed point in z alone, at fixed alpha (V_z, H_z),",
        ) from None


def _response(root, H_z):
    """Function A -> Sigma_z|alpha A = R S^-1 R' A with S = I - R' H_z R, and R R' = V_z."""
    H_z = _dense_or_sparse("H_z", H_z)
    require_shape("H_z", H_z, root.shape, f"V_z covers {root.shape[0]} statistics")
    if sparse.issparse(root) and sparse.issparse(H_z):
        return _sparse_response(root, H_z)
    root = _dense(root)
    H_z = symmetric("H_z", _dense(H_z), np.linalg.norm(root, axis=1))
    information = PrimalInformation(CompleteInformation.from_root(root), H_z)
    information.require_positive_definite()
    return lambda array: information.solve(_dense(array))


def _sparse_response(root, H_z):
    """`_response` by a sparse factorization of S."""
    coupled = root.T @ H_z @ root
    asymmetry = abs(coupled - coupled.T).max()
    if asymmetry > SYMMETRY_TOLERANCE * (1.0 + abs(coupled).max()):
        raise ValueError(
            "H_z must be symmetric, as a matrix of second derivatives, but differs from its transpose by up "
            f"to {abs(H_z - H_z.T).max():.2g}. (a) Check which block was transposed. (b) If it is round-off, "
            "pass (H_z + H_z.T) / 2."
        )
    scaled = sparse.csc_array(sparse.eye_array(root.shape[0]) - 0.5 * (coupled + coupled.T))
    factor = stable_factor(scaled)
    if factor is None:
        value, vector = smallest_eigenpair(scaled)
        deviations = np.sqrt(np.asarray(root.multiply(root).sum(axis=1)).ravel())
        raise indefinite_information_error(value, root @ vector / np.where(deviations > 0, deviations, 1.0))
    return lambda array: root @ factor.solve(_dense(root.T @ array))
