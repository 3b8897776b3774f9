"""Krylov methods for a symmetric matrix that is known by its products alone, many columns at a time."""

import numpy as np


def conjugate_gradients(product, right, tolerance, max_products):
    """Solve S x = right column by column; the columns share their products.

    Parameters
    ----------
    product : callable, (D, m) -> S array (D, m)
    right : (D, m)
    tolerance : float, of every column's residual, relative to ``right``
    max_products : int

    Returns
    -------
    solution : (D, m), where the iteration stopped: an ascent direction at any stop
    residual : float, largest relative residual
    is_convex : bool, False where a direction of negative curvature ended the iteration; a column that had
        not moved by then is returned as ``right``
    """
    residual, solution, direction = right.copy(), np.zeros_like(right), right.copy()
    squared = start = np.einsum("dm,dm->m", right, right)
    for _ in range(max_products):
        active = np.flatnonzero(squared > tolerance**2 * start)
        if not active.size:
            break
        moved = direction[:, active]
        image = product(moved)
        curvature = np.einsum("dm,dm->m", moved, image)
        if not np.all(curvature > np.finfo(float).eps * np.einsum("dm,dm->m", moved, moved)):
            still = ~solution.any(axis=0)
            solution[:, still] = right[:, still]
            return solution, _relative(squared, start), False
        length = squared[active] / curvature
        solution[:, active] += length * moved
        residual[:, active] -= length * image
        previous, squared = squared, np.einsum("dm,dm->m", residual, residual)
        direction[:, active] = residual[:, active] + squared[active] / previous[active] * moved
    return solution, _relative(squared, start), True


def _relative(squared, start):
    return float(np.sqrt(np.max(squared / np.where(start > 0, start, 1.0), initial=0.0)))


def inverse_square_root_product(product, vector, tolerance, max_products):
    """S^-1/2 vector by Lanczos' method, (D,), and the relative size of its last change.

    Full reorthogonalisation; memory D floats a product.
    """
    norm = np.linalg.norm(vector)
    if norm == 0:
        return vector, 0.0
    basis, diagonal, off_diagonal = [vector / norm], [], []
    last, change = np.zeros(0), np.inf
    for _ in range(max_products):
        image = product(basis[-1][:, None])[:, 0]
        diagonal.append(basis[-1] @ image)
        for _ in range(2):
            image = image - np.transpose(basis) @ (basis @ image)
        tridiagonal = np.diag(diagonal) + np.diag(off_diagonal, 1) + np.diag(off_diagonal, -1)
        values, vectors = np.linalg.eigh(tridiagonal)
        coordinates = vectors @ (vectors[0] / np.sqrt(np.maximum(values, np.finfo(float).tiny)))
        change = np.linalg.norm(coordinates - np.append(last, 0.0)) / np.linalg.norm(coordinates)
        last, length = coordinates, np.linalg.norm(image)
        if change < tolerance or length < 10 * np.finfo(float).eps or len(basis) == len(vector):
            return norm * (coordinates @ basis), 0.0
        basis.append(image / length)
        off_diagonal.append(length)
    return norm * (last @ basis[: len(last)]), change
