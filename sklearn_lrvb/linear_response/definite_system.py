"""Solutions of S x = b for a symmetric S of eigenvalues at most one, where it is positive definite, or flat.

Of a sparse S, rows with few entries are eliminated by a sparse factorization, and what is left, in which
nearly all entries are filled in, by a dense one: a sparse factorization of that would be many times slower.

Eigenvalues that are zero up to a tolerance belong to *flat* directions. They are left out of the solution,
which is exact for right sides that have no part along them.
"""

import numpy as np
from scipy import sparse
from scipy.linalg import lapack, solve_triangular
from scipy.sparse.linalg import eigsh, splu

from sklearn_lrvb.row_blocks import batches
from sklearn_lrvb.symmetric_matrices import round_off, symmetrized

_DENSE_BELOW = 100  # Size below which the eigenvalues of a sparse matrix are computed faster as a dense one.
_FEW_ENTRIES = 8  # Rows with no more entries than this are eliminated first in any case,
_ONE_IN = 50  # and those with an entry in more than one in so many columns in no case.
_DENSE_UP_TO = 4000  # Number of other rows from which more are eliminated first.
_N_POWER_STEPS = 3  # Steps of the inverse iteration that looks for a flat direction.
_MARGIN = 10.0  # Eigenvalues are computed where the smallest one may be this close to the tolerance.


class NotPositiveDefiniteError(Exception):
    """S has an eigenvalue that is not positive, or zero to working precision.

    Attributes
    ----------
    smallest_eigenvalue : float
    direction : ndarray of shape (n,)
        Its eigenvector.
    """

    def __init__(self, smallest_eigenvalue, direction):
        super().__init__(smallest_eigenvalue, direction)
        self.smallest_eigenvalue = smallest_eigenvalue
        self.direction = direction


class DefiniteSystem:
    """S (n, n), factored.

    Parameters
    ----------
    matrix : sparse or dense array of shape (n, n)
        Symmetric.
    flat_below : float, default=None
        Largest size of eigenvalues that count as zero, if it is above their round-off. None refuses them.

    Attributes
    ----------
    flat : ndarray of shape (n, n_flat)
        Unit vectors along the flat directions.

    Raises
    ------
    NotPositiveDefiniteError
        S has a negative eigenvalue, or one that is zero to working precision where ``flat_below`` is None.
    """

    def __init__(self, matrix, flat_below=None):
        self._first, self._last = _elimination_order(matrix)
        self.size = matrix.shape[0]
        self.flat = np.empty((self.size, 0))
        self._eigen = None
        if flat_below is not None:
            flat_below = max(flat_below, 2.0 * round_off(self.size))
        try:
            dense = self._eliminate_first(matrix)
            self._cholesky = _stable_cholesky(dense, self.size)
            if flat_below is not None and self._may_be_flat(flat_below):
                raise np.linalg.LinAlgError
        except np.linalg.LinAlgError:
            if flat_below is None or not self._leave_out_flat_directions(matrix, flat_below):
                raise NotPositiveDefiniteError(*smallest_eigenpair(matrix)) from None

    @staticmethod
    def n_dense_rows(matrix):
        """Number of rows that would be eliminated by a dense factorization."""
        return len(_elimination_order(matrix)[1])

    def _eliminate_first(self, matrix):
        """The dense Schur complement of the last rows."""
        first, last = self._first, self._last
        if not first.size:
            return _dense(matrix)
        self._coupling = sparse.csr_array(matrix[last][:, first])
        self._sparse = stable_factor(sparse.csc_array(matrix[first][:, first]))
        if self._sparse is None:
            raise np.linalg.LinAlgError
        dense = matrix[last][:, last].toarray()
        for chunk in batches(last.size, 8 * first.size):
            columns = np.ascontiguousarray(self._coupling[chunk].toarray().T)
            dense[:, chunk] -= self._coupling @ self._sparse.solve(columns)
        return symmetrized(dense)

    def _may_be_flat(self, flat_below):
        """Whether the smallest eigenvalue may be at most ``flat_below``, by inverse iteration."""
        vector = np.random.RandomState(0).normal(size=(self.size, 1))
        eigenvalue = np.inf
        for _ in range(_N_POWER_STEPS if self.size else 0):
            vector /= np.linalg.norm(vector)
            solution = self.solve(vector)
            eigenvalue = 1.0 / np.linalg.norm(solution)
            vector = solution
        return eigenvalue <= _MARGIN * flat_below

    def _leave_out_flat_directions(self, matrix, flat_below):
        """Decompose the Schur complement. Returns whether nothing but flat directions is in the way."""
        try:
            dense = self._eliminate_first(matrix)
        except np.linalg.LinAlgError:  # The flat direction may be one of the first rows alone.
            if self.size > _DENSE_UP_TO:
                return False
            self._first, self._last = np.arange(0), np.arange(self.size)
            dense = self._eliminate_first(matrix)
        values, vectors = np.linalg.eigh(dense)
        whole = np.zeros((self.size, len(values)))
        whole[self._last] = vectors
        if self._first.size:
            whole[self._first] = -self._sparse.solve(np.ascontiguousarray(self._coupling.T @ vectors))
        lengths = np.linalg.norm(whole, axis=0)
        if values[0] < -flat_below * lengths[0] ** 2:
            return False
        is_flat = values <= flat_below * lengths**2
        self._eigen = values[~is_flat], vectors[:, ~is_flat]
        self.flat = np.linalg.qr(whole[:, is_flat])[0]
        return True

    def _solve_last(self, right):
        if self._eigen is not None:
            values, vectors = self._eigen
            return vectors @ ((vectors.T @ right) / values[:, None])
        half = solve_triangular(self._cholesky, right, lower=True, check_finite=False)
        return solve_triangular(self._cholesky, half, lower=True, trans=1, check_finite=False)

    def _forms_of_last(self, right):
        if self._eigen is not None:
            values, vectors = self._eigen
            half = (vectors.T @ right) / np.sqrt(values)[:, None]
        else:
            half = solve_triangular(self._cholesky, right, lower=True, check_finite=False)
        return np.einsum("ij,ij->j", half, half)

    def solve(self, right):
        """S^-1 b: (n, m) -> (n, m)."""
        first, last = self._first, self._last
        if not first.size:
            return self._solve_last(right) if last.size else np.empty(right.shape)
        solution = np.empty(right.shape)
        of_first = self._sparse.solve(np.ascontiguousarray(right[first]))
        if last.size:
            solution[last] = self._solve_last(right[last] - self._coupling @ of_first)
            of_first -= self._sparse.solve(np.ascontiguousarray(self._coupling.T @ solution[last]))
        solution[first] = of_first
        return solution

    def quadratic_forms(self, right):
        """b' S^-1 b for every column: (n, m) -> (m,)."""
        first, last = self._first, self._last
        forms = np.zeros(right.shape[1])
        if first.size:
            own = np.ascontiguousarray(right[first])
            of_first = self._sparse.solve(own)
            forms += np.einsum("ij,ij->j", own, of_first)
            right = right[last] - self._coupling @ of_first
        return forms + self._forms_of_last(right) if last.size else forms


def _stable_cholesky(dense, size):
    """Lower Cholesky factor. A LinAlgError where the matrix is not positive definite beyond round-off."""
    factor, failed = lapack.dpotrf(dense.T, lower=True)
    if failed or (len(dense) and np.diag(factor).min() ** 2 < round_off(size)):
        raise np.linalg.LinAlgError
    return factor


def _dense(matrix):
    return matrix.toarray() if sparse.issparse(matrix) else matrix


def _elimination_order(matrix):
    """Rows that are eliminated first, and the others.

    Of a dense matrix none is. Otherwise ever more rows are, until the dense factorization of the others takes
    a few seconds, or nothing but rows with many entries is left.
    """
    n = matrix.shape[0]
    is_first = np.zeros(n, dtype=bool)
    if sparse.issparse(matrix):
        n_entries, few = np.diff(sparse.csr_array(matrix).indptr), _FEW_ENTRIES
        while True:
            is_first = n_entries <= few
            if n - np.count_nonzero(is_first) <= _DENSE_UP_TO or few * _ONE_IN > n:
                break
            few *= 2
    return np.flatnonzero(is_first), np.flatnonzero(~is_first)


def stable_factor(matrix):
    """Sparse factorization of a symmetric matrix, or None where it is not positive definite."""
    try:
        factor = splu(
            matrix, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True}
        )
    except RuntimeError:  # SuperLU raises it for an exactly singular matrix.
        return None
    # Without exchanges of rows the pivots have the signs of the eigenvalues.
    is_symmetric_order = np.array_equal(factor.perm_r, factor.perm_c)
    is_positive = factor.U.diagonal().min() >= round_off(matrix.shape[0])
    return factor if is_symmetric_order and is_positive else None


def smallest_eigenpair(matrix):
    """Smallest eigenvalue of a symmetric matrix and its eigenvector."""
    if matrix.shape[0] < _DENSE_BELOW:
        values, vectors = np.linalg.eigh(_dense(matrix))
    else:
        values, vectors = eigsh(matrix, k=1, which="SA", v0=np.ones(matrix.shape[0]))
    return values[0], vectors[:, 0]
