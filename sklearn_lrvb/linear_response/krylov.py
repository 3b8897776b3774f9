"""Krylov methods for a symmetric matrix S that is given by its products alone.

`matrix_free_solver` uses them, and `factored_solvers` for functions of S that a factor does not give.
"""

import numpy as np
from scipy.sparse.linalg import LinearOperator, eigsh

_EIGENVALUE_TOLERANCE = 1e-6  # Relative tolerance of the smallest eigenvalue by Lanczos' method.


def smallest_eigenpair(product, size, max_restarts):
    """The smallest eigenvalue of S and its unit eigenvector, (D,), by Lanczos' method.

    Parameters
    ----------
    product : callable, (D, 1) -> S array (D, 1)
        The eigenvalues of S are at most one.
    size : int, D
    max_restarts : int
        Restarts of the iteration, each of some ten products.

    Returns
    -------
    eigenvalue : float
        From above, to a relative error of 1e-6 of its distance from two.
    eigenvector : ndarray of shape (D,)

    Raises
    ------
    scipy.sparse.linalg.ArpackNoConvergence
        The restarts did not suffice.
    """
    if size == 1:
        return product(np.ones((1, 1)))[0, 0], np.ones(1)
    # The largest eigenvalue of 2 I - S, of order one, converges faster than the smallest of S, near zero.
    operator = LinearOperator(
        (size, size), matvec=lambda v: 2.0 * v.ravel() - product(v.reshape(-1, 1))[:, 0], dtype=float
    )
    start = np.random.default_rng(0).normal(size=size)
    values, vectors = eigsh(
        operator, k=1, which="LA", v0=start, tol=_EIGENVALUE_TOLERANCE, maxiter=max_restarts
    )
    return 2.0 - values[0], vectors[:, 0]


def conjugate_gradients(product, right, tolerance, max_products):
    """Solve S x = right column by column; the columns share their products.

    Parameters
    ----------
    product : callable, (D, m) -> S array (D, m)
    right : ndarray of shape (D, m)
    tolerance : float
        Residual of every column, relative to ``right``.
    max_products : int

    Returns
    -------
    solution : ndarray of shape (D, m)
        Where the iteration stopped; right' solution is positive at any stop, for every column.
    residual : float
        Largest relative residual.
    is_convex : bool
        False where a direction of negative curvature ended the iteration. A column that was still at zero
        then is returned as ``right``.
    """
    residual, solution, direction = right.copy(), np.zeros_like(right), right.copy()
    squared = start = np.einsum("dm,dm->m", right, right)
    for _ in range(max_products):
        active = np.flatnonzero(squared > tolerance**2 * start)
        if not active.size:
            break
        own = direction[:, active]
        image = product(own)
        curvature = np.einsum("dm,dm->m", own, image)
        if not np.all(curvature > np.finfo(float).eps * np.einsum("dm,dm->m", own, own)):
            at_zero = ~solution.any(axis=0)
            solution[:, at_zero] = right[:, at_zero]
            return solution, _relative(squared, start), False
        length = squared[active] / curvature
        solution[:, active] += length * own
        residual[:, active] -= length * image
        previous, squared = squared, np.einsum("dm,dm->m", residual, residual)
        direction[:, active] = residual[:, active] + squared[active] / previous[active] * own
    return solution, _relative(squared, start), True


def _relative(squared, start):
    """Largest ratio of norms, from squared norms (m,)."""
    return float(np.sqrt(np.max(squared / np.where(start > 0, start, 1.0), initial=0.0)))


def inverse_square_root_columns(product, columns, tolerance, max_products):
    """S^-1/2 columns by Lanczos' method, one after the other: (D, m) -> (D, m).

    It needs D numbers of memory for every product with one column, because the basis is kept orthogonal
    explicitly.

    Parameters
    ----------
    product : callable, (D, 1) -> S array (D, 1)
    columns : ndarray of shape (D, m), m > 0
    tolerance : float
        Relative change of a result by the last product at which the iteration stops.
    max_products : int
        Largest number of products with every column.

    Returns
    -------
    results : ndarray of shape (D, m)
    change : float
        Largest relative change by a last product; at most ``tolerance`` where all columns converged.
    """
    results, changes = zip(
        *(_inverse_square_root_product(product, column, tolerance, max_products) for column in columns.T),
        strict=True,
    )
    return np.stack(results, axis=1), max(changes)


def _inverse_square_root_product(product, vector, tolerance, max_products):
    """S^-1/2 vector, (D,), and the relative size of its last change, 0 where it converged."""
    norm = np.linalg.norm(vector)
    if norm == 0:
        return vector, 0.0
    last, change, space = np.zeros(0), np.inf, np.zeros((0, len(vector)))
    for basis, tridiagonal, is_exhausted in _lanczos(product, vector / norm, max_products):
        space = basis
        coordinates = _first_column(tridiagonal, _inverse_square_root)
        change = np.linalg.norm(coordinates - np.append(last, 0.0)) / np.linalg.norm(coordinates)
        last = coordinates
        if change < tolerance or is_exhausted:
            change = 0.0
            break
    return norm * (last @ space), change


def _inverse_square_root(eigenvalues):
    return 1.0 / np.sqrt(np.maximum(eigenvalues, np.finfo(float).tiny))


def function_times_vector(product, vector, function, max_products):
    """function(S) vector from a Krylov space of the vector, (D,): exact where ``max_products`` is D.

    Parameters
    ----------
    product : callable, (D, 1) -> S array (D, 1)
    vector : ndarray of shape (D,)
    function : callable, eigenvalues (m,) -> (m,)
    max_products : int
    """
    norm = np.linalg.norm(vector)
    if norm == 0:
        return vector
    *_, (basis, tridiagonal, _) = _lanczos(product, vector / norm, max_products)
    return norm * (_first_column(tridiagonal, function) @ basis)


def _first_column(tridiagonal, function):
    """function(matrix) times the first unit vector, (m,)."""
    values, vectors = np.linalg.eigh(tridiagonal)
    return vectors @ (function(values) * vectors[0])


def _lanczos(product, start, max_products):
    """Yield, after every product, the basis (m, D), S in it (m, m), and whether it is exhausted.

    ``start`` is a unit vector, (D,). The basis is kept orthogonal explicitly.
    """
    size = min(max_products, len(start))
    basis, tridiagonal = np.empty((size, len(start))), np.zeros((size, size))
    basis[0] = start
    for m in range(1, size + 1):
        last, own = basis[m - 1], basis[:m]
        image = product(last[:, None])[:, 0]
        tridiagonal[m - 1, m - 1] = last @ image
        for _ in range(2):  # Orthogonalizing twice keeps the basis orthogonal to round-off.
            image = image - (own @ image) @ own
        length = np.sqrt(image @ image)
        is_exhausted = bool(length < 10 * np.finfo(float).eps) or m == len(start)
        yield own, tridiagonal[:m, :m], is_exhausted
        if is_exhausted or m == size:
            return
        basis[m] = image / length
        tridiagonal[m - 1, m] = tridiagonal[m, m - 1] = length
