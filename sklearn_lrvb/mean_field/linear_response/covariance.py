"""Covariance and influence by linear response, from the derivatives of a mean-field fixed point.

Nuisance variables z need no treatment of their own. Where q(alpha, z) = q(alpha) q(z), the response of alpha
has H_alpha + H_alpha_z (I - V_z H_z)^-1 V_z H_z_alpha in place of H_alpha (paper, Equation 11): that is the
Schur complement which `ResponseSystem` leaves where rows of z have few entries.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from sklearn_lrvb.linear_response.observed_information import indefinite_information_error
from sklearn_lrvb.mean_field.linear_response.definite_system import (
    SYMMETRY_TOLERANCE,
    BlockRoot,
    NotPositiveDefiniteError,
    ResponseSystem,
)
from sklearn_lrvb.symmetric_matrices import symmetrized


def linear_response_covariance(
    V: ArrayLike | sparse.sparray | sparse.spmatrix,
    H: ArrayLike | sparse.sparray | sparse.spmatrix,
    index: ArrayLike | None = None,
) -> NDArray[np.float64]:
    """LRVB covariance (I - V H)^-1 V of all statistics, or of some (paper, Equations 10 and 11).

    Parameters
    ----------
    V : array-like or scipy.sparse of shape (D, D)
        Covariance of the sufficient statistics under q, positive semidefinite. It is singular where
        statistics are linearly dependent, as for categorical variables or matrices kept whole.

    H : array-like or scipy.sparse of shape (D, D)
        Hessian of the expected log joint in the mean parameters (paper, Equation 18), symmetric.

    index : int or bool array-like, default=None
        The statistics that are asked for; the others are nuisance variables. None is all of them, in order.

    Returns
    -------
    covariance : ndarray of shape (d, d)
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
    linear_response_influence : What single observations contribute.

    Notes
    -----
    Where V and H are sparse, neither becomes a dense matrix: statistics that few others depend on are
    eliminated by a sparse factorization, such as the indicators of a mixture, of which there are many.

    Examples
    --------
    Two scalar factors for a normal posterior with precision [[2, 1], [1, 1]]:

    >>> import numpy as np
    >>> from scipy import sparse
    >>> from sklearn_lrvb.mean_field.linear_response import linear_response_covariance
    >>> V = np.diag([0.5, 1.0])
    >>> H = np.array([[0.0, -1.0], [-1.0, 0.0]])
    >>> linear_response_covariance(V, H).round(12)
    array([[ 1., -1.],
           [-1.,  2.]])

    The second alone, from sparse matrices:

    >>> linear_response_covariance(sparse.csr_array(V), sparse.csr_array(H), index=[1]).round(12)
    array([[2.]])
    """
    index, responses = _responses(V, H, index)
    return symmetrized(responses[index])


def linear_response_influence(
    V: ArrayLike | sparse.sparray | sparse.spmatrix,
    H: ArrayLike | sparse.sparray | sparse.spmatrix,
    H_x: ArrayLike | sparse.sparray | sparse.spmatrix,
    S_x: ArrayLike,
    index: ArrayLike | None = None,
) -> NDArray[np.float64]:
    """Influence scores d E[T] / d x of observed data x on the statistics T (paper, Equation 14).

    They are linear response to infinitesimal noise in x, without refitting: (I - V H)^-1 V H_x S_x. The
    printed equation, of statistics alpha with nuisance variables z eliminated, is corrected (see the errata
    in `sklearn_lrvb.linear_response`): it should read
    Sigma_alpha (H_alpha_x + H_alpha_z (I - V_z H_z)^-1 V_z H_z_x) S_x.

    Parameters
    ----------
    V, H : array-like or scipy.sparse of shape (D, D)
        As in `linear_response_covariance`, nuisance variables included.

    H_x : array-like or scipy.sparse of shape (D, n_x)
        Mixed second derivatives of the expected log joint in the means of T and of the statistics of x.

    S_x : array-like of shape (n_x, m)
        Derivatives of the statistics of x in x: the limit of Cov(statistics, x*) / epsilon (paper,
        Equation 12). For the statistics (x, x^2) of a number it is the column (1, 2 x).

    index : int or bool array-like, default=None
        The statistics alpha that are asked for. None is all of them, in order.

    Returns
    -------
    influence : ndarray of shape (d, m)
        Exact derivatives d E[alpha] / d x of the fixed point, in units of alpha per unit of x.

    Raises
    ------
    ValueError, IndefiniteInformationError
        As in `linear_response_covariance`.

    See Also
    --------
    linear_response_covariance : What the data say together.

    Examples
    --------
    The mean of x = (1, 3) with known precision 1 and a flat prior is alpha. Its expected log density is
    alpha (x_1 + x_2) - alpha^2, so that V = 1/2, and each x moves the mean by 1/2:

    >>> import numpy as np
    >>> from sklearn_lrvb.mean_field.linear_response import linear_response_influence
    >>> linear_response_influence([[0.5]], [[0.0]], H_x=np.ones((1, 2)), S_x=np.eye(2))
    array([[0.5, 0.5]])
    """
    of_x, by_x = _finite_matrix("H_x", H_x), _dense(_finite_matrix("S_x", S_x))
    _, responses = _responses(V, H, index)
    shape = len(responses), len(by_x)
    _require_shape("H_x", of_x, shape, f"V has {shape[0]} statistics and S_x has {shape[1]} rows")
    return (of_x.T @ responses).T @ by_x


def _responses(V, H, index):
    """The statistics of an index, (d,), and columns of (I - V H)^-1 V, (D, d), once all has been checked."""
    V, H = _finite_matrix("V", V), _finite_matrix("H", H)
    size, H = V.shape[0], H if sparse.issparse(V) else _dense(H)
    _require_shape("V", V, (size, size), "it must be square, one row and column per statistic")
    _require_shape("H", H, V.shape, f"V has shape {V.shape}")
    H = _symmetric("H", H, np.sqrt(np.maximum(V.diagonal(), 0.0)))
    system = ResponseSystem(BlockRoot(_blocks("V", V)), H)
    try:
        system.factor()
    except NotPositiveDefiniteError as error:
        raise indefinite_information_error(error.smallest_eigenvalue, error.direction) from None
    index = np.arange(size)[slice(None) if index is None else np.asarray(index)]
    units = np.zeros((size, len(index)))
    units[index, np.arange(len(index))] = 1.0
    return index, system.solve(units)


def _finite_matrix(name: str, array: Any) -> Any:
    """A float64 matrix, (m, n). A sparse one stays sparse, without repeated or zero entries.

    Raises
    ------
    ValueError
        It is no real matrix, or not finite.
    """
    given = array if sparse.issparse(array) and array.shape[0] else np.asarray(_dense(array))
    if np.iscomplexobj(given):
        raise ValueError(f"{name} must be real, but has dtype {given.dtype}.")
    if sparse.issparse(given):
        matrix = sparse.csr_array(given, dtype=np.float64, copy=True)
        matrix.sum_duplicates()
        matrix.eliminate_zeros()  # Stored zeros would connect blocks.
        if not np.all(np.isfinite(matrix.data)):
            raise ValueError(f"{name} must be finite, but holds NaN or infinity.")
        return matrix
    matrix = given.astype(np.float64)
    if matrix.ndim != 2:
        raise ValueError(f"{name} must be a matrix, but has {matrix.ndim} dimensions, shape {matrix.shape}.")
    if not np.all(np.isfinite(matrix)):
        first = tuple(map(int, np.argwhere(~np.isfinite(matrix))[0]))
        raise ValueError(f"{name} must be finite, but {name}{list(first)} is {matrix[first]}.")
    return matrix


def _require_shape(name, array, shape, reason):
    """Raise a ValueError for an array of another shape; ``reason`` says why this one is expected."""
    if array.shape != shape:
        raise ValueError(f"{name} has shape {array.shape}, but {reason}: expected {shape}.")


def _symmetric(name, matrix, deviations):
    """A dense or sparse matrix with an asymmetry of round-off size removed, (D, D).

    Parameters
    ----------
    deviations : ndarray of shape (D,)
        Standard deviations of V, the units in which asymmetry counts.

    Raises
    ------
    ValueError
        The matrix is not symmetric; names the two entries that differ most.
    """
    if sparse.issparse(matrix):
        scaled = sparse.diags_array(deviations) @ matrix @ sparse.diags_array(deviations)
    else:
        scaled = deviations[:, None] * matrix * deviations
    asymmetry = abs(scaled - scaled.T)
    if asymmetry.size and asymmetry.max() > SYMMETRY_TOLERANCE * (1.0 + abs(scaled).max()):
        i, j = map(int, np.unravel_index(asymmetry.argmax(), asymmetry.shape))
        raise ValueError(
            f"{name} must be symmetric, as a matrix of second derivatives, but {name}[{i}, {j}] = "
            f"{matrix[i, j]:.6g} and {name}[{j}, {i}] = {matrix[j, i]:.6g}. (a) Check which block was "
            f"transposed. (b) If it is round-off, pass ({name} + {name}.T) / 2."
        )
    return 0.5 * (matrix + matrix.T)


def _blocks(name, matrix):
    """Yield the connected blocks of a matrix for `BlockRoot`, those of one size together.

    A dense matrix is one block.
    """
    if not sparse.issparse(matrix):
        if matrix.size:
            yield name, matrix[None], None
        return
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
        yield name, stack, order[first[chosen][:, None] + np.arange(size)]


def _dense(array):
    return array.toarray() if sparse.issparse(array) else array
