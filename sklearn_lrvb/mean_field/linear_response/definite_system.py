"""Sigma = (V^-1 - H)^-1 for a block diagonal V, which may be singular, and a symmetric H, dense or sparse.

With a root R R' = V it is R S^-1 R', where S = I - R' H R has eigenvalues of at most one. Rows of a sparse S
with few entries are eliminated by a sparse factorization, and what is left, in which nearly all entries are
filled in, by a dense one: a sparse factorization of that would be many times slower. Where the rows with few
entries are those of nuisance variables, what is left is the Schur complement of Equation 11 of the paper.

Eigenvalues that are zero up to a tolerance belong to *flat* directions. They are left out of the solution,
which is exact for right sides that have no part along them.
"""

import numpy as np
from scipy import sparse
from scipy.linalg import lapack, solve_triangular
from scipy.sparse.linalg import eigsh, splu

from sklearn_lrvb.rows import batches
from sklearn_lrvb.symmetric_matrices import (
    is_numerically_singular,
    round_off,
    scaled_to_unit_diagonal,
    symmetrized,
)

# Largest asymmetry and negative eigenvalue that count as round-off, in units of V's standard deviations.
SYMMETRY_TOLERANCE = 1e-8
_DENSE_UP_TO = 4000  # Size up to which S is a dense matrix in any case.
_DENSE_BELOW = 100  # Size below which the eigenvalues of a sparse matrix are computed faster as a dense one.
_FEW_ENTRIES = 8  # Rows with no more entries than this are eliminated first in any case,
_ONE_IN = 50  # and those with an entry in more than one in so many columns in no case.
_MOST_LAST = 4000  # Number of other rows from which more are eliminated first.
_N_POWER_STEPS = 3  # Steps of the inverse iteration that looks for a flat direction.
_MARGIN = 10.0  # Eigenvalues are computed where the smallest one may be this close to the tolerance.


class NotPositiveDefiniteError(Exception):
    """S has an eigenvalue that is not positive, or zero to working precision.

    Attributes
    ----------
    smallest_eigenvalue : float
    direction : ndarray of shape (n,)
        The change of the statistics along its eigenvector, in standard deviations of V.
    """

    def __init__(self, smallest_eigenvalue, direction):
        super().__init__(smallest_eigenvalue, direction)
        self.smallest_eigenvalue = smallest_eigenvalue
        self.direction = direction


class BlockRoot:
    """R with R R' = V, block diagonal.

    Parameters
    ----------
    blocks : iterable of (str, ndarray of shape (n, b, b), int ndarray of shape (n, b) or None)
        The name of some blocks of V for error messages, the blocks, and which statistics each of them is
        about. None is those that follow the ones before.

    Raises
    ------
    ValueError
        A block is not symmetric and positive semidefinite.
    """

    def __init__(self, blocks):
        self._stacks, self._places, self.size = [], [], 0
        for name, stack, members in blocks:
            self._stacks.append(_roots(name, stack, members))
            start, self.size = self.size, self.size + len(stack) * stack.shape[-1]
            self._places.append(slice(start, self.size) if members is None else members.ravel())

    def times(self, array, transposed=False):
        """R times a dense array, or R' times it: (n, m) -> (n, m)."""
        product = np.empty(array.shape)
        for stack, places in zip(self._stacks, self._places, strict=True):
            members, size, _ = stack.shape
            roots = stack.swapaxes(1, 2) if transposed else stack
            own = array[places].reshape(members, size, array.shape[1])
            product[places] = (roots @ own).reshape(members * size, array.shape[1])
        return product

    def deviations(self):
        """Standard deviations of V, (n,)."""
        deviations = np.zeros(self.size)
        for stack, places in zip(self._stacks, self._places, strict=True):
            deviations[places] = np.linalg.norm(stack, axis=2).ravel()
        return deviations

    def system(self, curvature):
        """S = I - R' H R, exactly symmetric; a dense array if H is one or if it is small."""
        if not sparse.issparse(curvature) or self.size <= _DENSE_UP_TO:
            half = self.times(_dense(curvature), transposed=True)
            system = self.times(half.T, transposed=True)
            system += system.T
            system *= -0.5
            system[np.diag_indices_from(system)] += 1.0
            return system
        root = self._sparse()
        scaled = root.T @ curvature @ root
        return sparse.eye_array(self.size, format="csr") - 0.5 * (scaled + scaled.T)

    def _sparse(self):
        parts, numbers = [], np.arange(self.size)
        for stack, places in zip(self._stacks, self._places, strict=True):
            member, row, column = np.nonzero(stack)
            own = numbers[places].reshape(stack.shape[:2])
            parts.append((stack[member, row, column], own[member, row], own[member, column]))
        values, rows, columns = map(np.concatenate, zip(*parts, strict=True))
        return sparse.csr_array((values, (rows, columns)), shape=2 * (self.size,))


def _roots(name, stack, members):
    """Roots of covariances, triangular where all of them are regular: (n, b, b) -> (n, b, b).

    A triangular root keeps a coupling in the first statistics alone in the first coordinates.
    """
    variances = np.einsum("nii->ni", stack)
    correlations, scale = scaled_to_unit_diagonal(stack)
    asymmetry = np.abs(correlations - correlations.transpose(0, 2, 1)).max(axis=(1, 2), initial=0.0)
    is_asymmetric = asymmetry > SYMMETRY_TOLERANCE
    if not is_asymmetric.any():
        try:
            roots = np.linalg.cholesky(correlations)
            if not is_numerically_singular(roots):
                return scale[:, :, None] * roots
        except np.linalg.LinAlgError:
            pass
    values, vectors = np.linalg.eigh(symmetrized(correlations))
    lowest = values.min(axis=1, initial=0.0)
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


class ResponseSystem:
    """Sigma = R S^-1 R' through its products, once `factor` has factored S.

    Parameters
    ----------
    root : BlockRoot
        R, (n, n).
    curvature : sparse or dense array of shape (n, n)
        H, symmetric.

    Attributes
    ----------
    is_dense : bool
        Whether S is a dense matrix.
    n_dense_rows : int
        Number of rows that the dense factorization eliminates.
    """

    def __init__(self, root, curvature):
        self._root, self._matrix = root, root.system(curvature)
        self.size, self.is_dense = root.size, not sparse.issparse(self._matrix)
        self._first, self._last = _elimination_order(self._matrix)
        self.n_dense_rows = len(self._last)

    def factor(self, flat_below=None):
        """Factor S.

        Parameters
        ----------
        flat_below : float, default=None
            Largest size of eigenvalues that count as zero, if it is above their round-off. None refuses them.

        Raises
        ------
        NotPositiveDefiniteError
            S has a negative eigenvalue, or one that is zero to working precision where ``flat_below`` is
            None.
        """
        matrix, self._matrix = self._matrix, None
        self._flat, self._inverse_root = np.empty((self.size, 0)), None
        if flat_below is not None:
            flat_below = max(flat_below, 2.0 * round_off(self.size))
        try:
            dense = self._eliminate_first(matrix)
            self._cholesky = _stable_cholesky(dense, self.size)
            if flat_below is not None and self._may_be_flat(flat_below):
                raise np.linalg.LinAlgError
        except np.linalg.LinAlgError:
            if flat_below is None or not self._leave_out_flat_directions(matrix, flat_below):
                value, vector = _smallest_eigenpair(matrix)
                deviations = self._root.deviations()
                direction = self._root.times(vector[:, None])[:, 0]
                raise NotPositiveDefiniteError(
                    value, direction / np.where(deviations > 0, deviations, 1.0)
                ) from None
        return self

    def flat(self):
        """Changes of the statistics along unit vectors of the flat directions of S: (n, n_flat)."""
        return self._root.times(self._flat)

    def solve(self, right):
        """Sigma b: (n, m) -> (n, m)."""
        return self._root.times(self._solve_scaled(self._root.times(right, transposed=True)))

    def quadratic_forms(self, right):
        """b' Sigma b for every column: (n, m) -> (m,)."""
        scaled, first, last = self._root.times(right, transposed=True), self._first, self._last
        forms = np.zeros(scaled.shape[1])
        if first.size:
            right = np.ascontiguousarray(scaled[first])
            of_first = self._sparse.solve(right)
            forms += np.einsum("ij,ij->j", right, of_first)
            scaled = scaled[last] - self._coupling @ of_first
        half = self._half(scaled)
        return forms + np.einsum("ij,ij->j", half, half)

    def _solve_scaled(self, right):
        """S^-1 b."""
        first, last = self._first, self._last
        if not first.size:
            return self._half(self._half(right), transposed=True)
        solution = np.empty(right.shape)
        of_first = self._sparse.solve(np.ascontiguousarray(right[first]))
        half = self._half(right[last] - self._coupling @ of_first)
        solution[last] = self._half(half, transposed=True)
        of_first -= self._sparse.solve(np.ascontiguousarray(self._coupling.T @ solution[last]))
        solution[first] = of_first
        return solution

    def _half(self, right, transposed=False):
        """W' b, or W b, where W W' is the inverse of the Schur complement of the last rows."""
        if self._inverse_root is not None:
            return (self._inverse_root if transposed else self._inverse_root.T) @ right
        if not len(right):
            return right
        return solve_triangular(self._cholesky, right, lower=True, trans=int(transposed), check_finite=False)

    def _eliminate_first(self, matrix):
        """The dense Schur complement of the last rows."""
        first, last = self._first, self._last
        if not first.size:
            return _dense(matrix)
        self._coupling = sparse.csr_array(matrix[last][:, first])
        self._sparse = _stable_factor(sparse.csc_array(matrix[first][:, first]))
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
            solution = self._solve_scaled(vector)
            eigenvalue = 1.0 / np.linalg.norm(solution)
            vector = solution
        return eigenvalue <= _MARGIN * flat_below

    def _leave_out_flat_directions(self, matrix, flat_below):
        """Decompose the Schur complement. Returns whether nothing but flat directions is in the way."""
        try:
            dense = self._eliminate_first(matrix)
        except np.linalg.LinAlgError:  # The flat direction may be one of the first rows alone.
            if self.size > _MOST_LAST:
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
        self._inverse_root = vectors[:, ~is_flat] / np.sqrt(values[~is_flat])
        self._flat = np.linalg.qr(whole[:, is_flat])[0]
        return True


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
            if n - np.count_nonzero(is_first) <= _MOST_LAST or few * _ONE_IN > n:
                break
            few *= 2
    return np.flatnonzero(is_first), np.flatnonzero(~is_first)


def _dense(matrix):
    return matrix.toarray() if sparse.issparse(matrix) else matrix


def _stable_cholesky(dense, size):
    """Lower Cholesky factor. A LinAlgError where the matrix is not positive definite beyond round-off."""
    factor, failed = lapack.dpotrf(dense.T, lower=True)
    if failed or (len(dense) and np.diag(factor).min() ** 2 < round_off(size)):
        raise np.linalg.LinAlgError
    return factor


def _stable_factor(matrix):
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


def _smallest_eigenpair(matrix):
    """Smallest eigenvalue of a symmetric matrix and its eigenvector."""
    if matrix.shape[0] < _DENSE_BELOW:
        values, vectors = np.linalg.eigh(_dense(matrix))
    else:
        values, vectors = eigsh(matrix, k=1, which="SA", v0=np.ones(matrix.shape[0]))
    return values[0], vectors[:, 0]
