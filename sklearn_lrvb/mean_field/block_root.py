"""Roots of the covariance V of independent members, R R' = V, and products with them."""

import numpy as np
from scipy import sparse

from sklearn_lrvb.linear_response.array_checks import covariance_roots
from sklearn_lrvb.symmetric_matrices import is_numerically_singular, scaled_to_unit_diagonal


class BlockRoot:
    """R, block diagonal.

    Parameters
    ----------
    blocks : dict, name of the factor -> ndarray of shape (n, b, b)
        Covariances of its members.
    """

    def __init__(self, blocks):
        self._stacks = [_roots(name, stack) for name, stack in blocks.items()]
        self._ends = np.cumsum([0, *(len(stack) * stack.shape[-1] for stack in self._stacks)])

    def _blockwise(self, array, transposed):
        """R or R' times a dense array (n, m)."""
        product = np.empty(array.shape)
        for stack, start, end in zip(self._stacks, self._ends[:-1], self._ends[1:], strict=True):
            members, size, _ = stack.shape
            roots = stack.swapaxes(1, 2) if transposed else stack
            own = array[start:end].reshape(members, size, array.shape[1])
            product[start:end] = (roots @ own).reshape(end - start, -1)
        return product

    def times(self, array):
        """R times a dense array (n, m)."""
        return self._blockwise(array, transposed=False)

    def transposed_times(self, array):
        """R' times a dense array (n, m)."""
        return self._blockwise(array, transposed=True)

    def deviations(self):
        """Standard deviations, (n,)."""
        parts = [np.linalg.norm(stack, axis=2).ravel() for stack in self._stacks]
        return np.concatenate([np.zeros(0), *parts])

    def information(self, missing, dense):
        """I - R' M R of a sparse symmetric M, as a dense or as a sparse array."""
        if dense:
            half = self.transposed_times(missing.toarray())
            information = self.transposed_times(half.T)
            information += information.T
            information *= -0.5
            information[np.diag_indices_from(information)] += 1.0
            return information
        root = self._sparse()
        scaled = root.T @ missing @ root
        return sparse.eye_array(scaled.shape[0], format="csr") - 0.5 * (scaled + scaled.T)

    def _sparse(self):
        parts = []
        for stack, start in zip(self._stacks, self._ends[:-1], strict=True):
            member, row, column = np.nonzero(stack)
            offset = start + member * stack.shape[-1]
            parts.append((stack[member, row, column], offset + row, offset + column))
        values, rows, columns = map(np.concatenate, zip(*parts, strict=True))
        return sparse.csr_array((values, (rows, columns)), shape=2 * (self._ends[-1],))


def _roots(name, stack):
    """Roots of covariances, triangular where all of them are regular: (n, b, b) -> (n, b, b).

    A triangular root keeps a coupling in the first statistics alone in the first coordinates.
    """
    correlations, scale = scaled_to_unit_diagonal(stack)
    try:
        roots = np.linalg.cholesky(correlations)
    except np.linalg.LinAlgError:
        return covariance_roots(f"V of {name!r}", stack)
    if is_numerically_singular(roots):
        return covariance_roots(f"V of {name!r}", stack)
    return scale[:, :, None] * roots
