"""The three solvers of the observed information: two that factor a matrix, and one by products alone.

The conventions and the interface are those of `observed_information`. The primal solver factors S, (D, D),
the dual one factors the smaller I - B' R B, (m, m), and the matrix-free one iterates with products G v.
Krylov methods, which take products with a symmetric matrix alone, are at the end.
"""

from __future__ import annotations

import contextlib
from abc import abstractmethod
from collections.abc import Callable, Mapping
from functools import cached_property
from numbers import Integral
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import LinAlgError, blas, eigh, lapack, solve, solve_triangular
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from sklearn_lrvb.linear_response.complete_information import CompleteInformation
from sklearn_lrvb.linear_response.observed_information import (
    PACKED_SYSTEM,
    Definiteness,
    NewtonStep,
    ObservedInformation,
)
from sklearn_lrvb.rows import batches, slices
from sklearn_lrvb.symmetric_matrices import (
    from_packed_triangle,
    gram_root,
    is_numerically_singular,
    round_off,
)

# Size from which on Lanczos' method finds the smallest eigenvalue in less time than a factorization takes.
_LANCZOS_FROM_SIZE = 1000
_EIGENVALUE_RESTARTS = 50
_EIGENVALUE_TOLERANCE = 1e-6  # Relative tolerance of the smallest eigenvalue by Lanczos' method.
REMAINING = "remaining"  # Name of the shares among the arrays of a dual information.
# Growth of the fastest direction in one step from a saddle. Of 1,880 fits 47 ended below plain iterations;
# with the inverse of |S| in place of `sums_of_iterations`, 89 did.
_SADDLE_GROWTH = 3.0
# Number of products of a step from a saddle. The step is a polynomial of S whose degree is its number of
# iterations; where that is larger, the step is an approximation.
_SADDLE_PRODUCTS = 25
# Least size at which negative eigenvalues of S count, so that a step is at most some 1,000 iterations.
_LEAST_CURVATURE = 1e-3
# Share of the coordinates, over all questions, from which on the inverse is formed: its triangular root takes
# a third of the flops of D triangular solutions, and is kept.
_INVERSE_FROM_SHARE = 1 / 4
_ROWS_AT_ONCE = 256  # Of a matrix that is added to its transpose.
_LEAST_ROOT_BLOCK = 128  # Coordinates of the dual solver's root that are eliminated at once, at least.
# Relative residuals at which conjugate gradients end: of a solution, of a Newton step, and of a random
# direction, at which a negative eigenvalue would have been detected.
_SOLUTION_TOLERANCE = 1e-11
_STEP_TOLERANCE = 1e-2
_PROBE_TOLERANCE = 1e-2
_MAX_PRODUCTS = 1000  # Products that a solution by conjugate gradients may take.
_MAX_STEP_PRODUCTS = 50  # Products after which a Newton step or a probe is cut short.
_REMEDY = "The observed information is close to singular: use the primal or the dual solver."


class _FactoredInformation(ObservedInformation):
    """Base class of the two solvers: one symmetric matrix of order one, whose lower triangle is used."""

    holds_rows = False

    def __init__(self, complete: CompleteInformation, matrix: NDArray[np.float64]) -> None:
        super().__init__(complete)
        self._matrix, self._n_solved = matrix, 0  # And columns of the inverse's root that were solved for.

    def __getstate__(self):
        # These cost less to compute again than to store.
        cached = {"_cholesky", "_whole_root", "_inverse", "_root_blocks", "_factor", "by_other_solver"}
        return {name: value for name, value in vars(self).items() if name not in cached}

    @cached_property
    def _cholesky(self) -> NDArray[np.float64] | None:
        """Lower factor, or None where the matrix is not positive definite to working precision."""
        if not len(self._matrix):
            return self._matrix
        # LAPACK sees the transpose, in its own memory order, and leaves the other triangle as it is.
        transposed, failed = lapack.dpotrf(self._matrix.T, lower=False, clean=True)
        return None if failed or is_numerically_singular(transposed) else transposed.T

    def definiteness(self, effort: Literal["probe", "proof"] | int = "proof") -> Definiteness:
        """Whether M is positive definite, from the Cholesky factor at any effort; never UNDECIDED."""
        return Definiteness.INDEFINITE if self._cholesky is None else Definiteness.POSITIVE_DEFINITE

    @property
    def log_determinant(self) -> float:
        """log|I - T' G T| with T T' = R: minus twice the nats by which a quadratic bound falls short.

        It is zero where no information is missing, else negative. M must be positive definite.
        """
        self.require_positive_definite()
        return float(2.0 * np.log(np.diag(cast(np.ndarray, self._cholesky))).sum())

    def newton_step(self, gradient: NDArray[np.float64]) -> NewtonStep:
        """As of every solver.

        Where M is not positive definite, `sums_of_iterations` of S replaces the inverse of S, so that the
        step leaves a saddle point in the direction of iterations and never descends.
        """
        scaled = self.complete.times_root_transposed(gradient[:, None])
        definiteness = self.definiteness()
        if definiteness is Definiteness.INDEFINITE:
            step = function_times_vector(self._scaled_product, scaled, sums_of_iterations, _SADDLE_PRODUCTS)
        else:
            step = self._solve_scaled(scaled)
        return self._as_newton_step(scaled, step, definiteness)

    @abstractmethod
    def _scaled_product(self, array):
        """S array: (D, 1) -> (D, 1)."""

    # LAPACK is called directly: SciPy's checks take longer than solving with a small factor.

    def _solve_lower(self, right):
        return lapack.dtrtrs(self._cholesky.T, right, lower=False, trans=1)[0] if len(right) else right

    def _solve_both(self, right):
        """Solve with the matrix itself, by both triangles of its factor: (m, c) -> (m, c)."""
        return lapack.dpotrs(self._cholesky.T, right, lower=False)[0]


class PrimalInformation(_FactoredInformation):
    """M from the matrix G.

    It needs 2 D^2 numbers of memory, and D^2 more each for M^-1 and for its root, which are formed where many
    of their columns are asked for, and kept; D^3/3 flops at first need, then D^2 a column.

    Parameters
    ----------
    complete : CompleteInformation
        R^-1, of size D.
    missing : ndarray of shape (D, D)
        G, symmetric. It is overwritten.
    """

    name = "primal"

    def __init__(self, complete: CompleteInformation, missing: NDArray[np.float64]) -> None:
        for view in (missing, missing.T):
            complete.times_root_in_place(view, transposed=True)
        np.negative(missing, out=missing)
        np.einsum("ii->i", missing)[...] += 1.0
        super().__init__(complete, missing)

    @classmethod
    def from_scaled_system(
        cls, complete: CompleteInformation, system: NDArray[np.float64]
    ) -> PrimalInformation:
        """The same from S = I - T' G T, (D, D), of which the lower triangle is used; it is not copied."""
        information = cls.__new__(cls)
        _FactoredInformation.__init__(information, complete, system)
        return information

    def smallest_eigenvalue(self) -> tuple[float, NDArray[np.float64]]:
        """The smallest eigenvalue of S and its unit eigenvector v, (D,); in the coordinates of M, T v."""
        if len(self) >= _LANCZOS_FROM_SIZE:
            with contextlib.suppress(ArpackNoConvergence):
                return smallest_eigenpair(self._scaled_product, len(self), _EIGENVALUE_RESTARTS)
        values, vectors = eigh(self._matrix, subset_by_index=[0, 0])
        return values[0], vectors[:, 0]

    def inverse_for(self, n_targets: int) -> NDArray[np.float64] | None:
        """M^-1 for as many targets as coordinates or more."""
        if n_targets < len(self._matrix):
            return None
        self.require_positive_definite()
        return self._inverse

    def covariance(self, index: ArrayLike | None = None) -> NDArray[np.float64]:
        """M^-1[index, index], exactly symmetric: (m, m)."""
        index = np.arange(len(self._matrix)) if index is None else np.asarray(index)
        if len(index) < _INVERSE_FROM_SHARE * len(self._matrix):
            return super().covariance(index)
        self.require_positive_definite()
        return self._inverse[np.ix_(index, index)]

    @property
    def deviations(self) -> NDArray[np.float64]:
        """Standard deviations by linear response, (D,)."""
        self.require_positive_definite()
        return np.sqrt(np.einsum("ij,ij->j", self._whole_root, self._whole_root))

    @property
    def root(self) -> NDArray[np.float64]:
        """A with A A' = M^-1, that of `correlated`: (D, D)."""
        self.require_positive_definite()
        return self._whole_root.T

    @cached_property
    def _whole_root(self):
        """L^-1 T', a root of M^-1: (D, D)."""
        inverse, _ = lapack.dtrtri(self._cholesky.T, lower=False)  # L^-T, in the memory order of LAPACK.
        self.complete.times_root_in_place(inverse)
        return inverse.T

    @cached_property
    def _inverse(self):
        """M^-1, (D, D), read-only because it is kept."""
        inverse, _ = lapack.dpotri(self._cholesky.T, lower=False)  # One triangle of S^-1; zeros in the other.
        np.einsum("ii->i", inverse)[...] *= 0.5
        self.complete.times_root_in_place(inverse)
        self.complete.times_root_in_place(inverse.T)
        for some in slices(len(inverse), _ROWS_AT_ONCE):
            total = inverse[some, some.start :] + inverse[some.start :, some].T
            inverse[some, some.start :], inverse[some.start :, some] = total, total.T
        inverse.setflags(write=False)
        return inverse

    def _covariance_root(self, index):
        self._n_solved += len(index)
        if self._n_solved < _INVERSE_FROM_SHARE * len(self._matrix):
            return self._solve_lower(self.complete.root_rows(index))
        return self._whole_root[:, index]

    _solve_scaled = _FactoredInformation._solve_both  # The matrix is S.

    def _scaled_system(self):
        return self._matrix

    def _scaled_product(self, array):
        # The transpose has the order that BLAS takes without a copy.
        return blas.dsymv(1.0, self._matrix.T, array[:, 0], lower=0)[:, None]

    def _inverse_root_times(self, scaled):
        return lapack.dtrtrs(self._cholesky.T, scaled, lower=False)[0]


class DualInformation(_FactoredInformation):
    """M from a root of G, G = B B', that has few columns; or from a diagonal besides, G = C + B B'.

    It needs 2 m^2 numbers of memory besides the factor, and m^3/3 flops besides those of the kernel. Draws
    need 3 D m numbers more, which are kept, and 4 D m^2 flops; or D (D + m) numbers and D^2 (D/3 + m) flops
    where 2 m > D.

    Parameters
    ----------
    complete : CompleteInformation
        R^-1, of size D.
    factor : object
        B, (D, m), which need not be formed. ``kernel()`` is B' R B, (m, m), the eigenvalues of which are the
        fractions of missing information, ``responses(index)`` B' R[:, index], ``product(weights)`` B times
        (m, c), and ``transposed_product(array)`` B' times (D, c). ``to_arrays()`` is the dict of the arrays
        from which the caller of `information_from_arrays` rebuilds it.
    remaining : ndarray of shape (D,), default=None
        The shares of R^-1 that C leaves, which `CompleteInformation.remaining` describes; None is all. The
        factor's R is then the inverse of what remains, R^-1 - C.

    Attributes
    ----------
    factor : object
        As given.
    """

    name = "dual"

    def __init__(
        self, complete: CompleteInformation, factor: Any, remaining: NDArray[np.float64] | None = None
    ) -> None:
        kernel = factor.kernel()
        super().__init__(complete, np.eye(len(kernel)) - kernel)
        self.factor = factor
        # With e the roots of the shares that remain, S = diag(e) (I - T' B B' T) diag(e), where T T' is R of
        # what remains.
        self._remaining = remaining
        self._share_roots = np.sqrt(np.ones(len(complete)) if remaining is None else remaining)[:, None]
        self._rest = complete if remaining is None else complete.remaining(remaining)
        self.has_kernels = remaining is None

    @property
    def half_size(self) -> int:
        """Number of rows of `half_of_rows`."""
        return len(self._matrix)

    def half_of_rows(self, label: int, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """A root z of what unknown labels add to the covariances of rows: (half_size, n).

        Products z'z are H' (M^-1 - R) H, with H the features of the rows with a label, also of two labels.

        Parameters
        ----------
        label : int
        rows : ndarray of shape (P, n), as ``factor.responses_to_rows`` takes them
        """
        self.require_positive_definite()
        return self._solve_lower(self.factor.responses_to_rows(label, rows))

    @property
    def log_determinant(self) -> float:
        """As of every solver; C's share of it is that of a diagonal."""
        of_rest = 0.0 if self._remaining is None else float(np.log(self._remaining).sum())
        return super().log_determinant + of_rest

    def smallest_eigenvalue(self) -> tuple[float, NDArray[np.float64]]:
        """The smallest eigenvalue of S and its unit eigenvector v, (D,); in the coordinates of M, T v.

        Where C is not zero, from above and to 1e-6.
        """
        if self._remaining is not None:
            with contextlib.suppress(ArpackNoConvergence):
                return smallest_eigenpair(self._scaled_product, len(self), _EIGENVALUE_RESTARTS)
            lowest, vector = eigh(self._scaled_system(), subset_by_index=[0, 0])
            return lowest[0], vector[:, 0]
        values, vectors = np.linalg.eigh(self._matrix)  # Those of I - B' R B are 1 - s^2.
        if not len(values) or values[0] >= 1.0:
            return 1.0, np.eye(1, len(self))[0]
        return values[0], self._times_columns(vectors[:, :1])[:, 0] / np.sqrt(1.0 - values[0])

    def to_arrays(self) -> dict[str, NDArray]:
        """The arrays of the factor and the ``remaining`` shares, or S in primal form where it is smaller."""
        size, arrays = len(self), self.factor.to_arrays()
        if 8 * size * (size + 1) // 2 < sum(array.nbytes for array in arrays.values()):
            return super().to_arrays()
        return arrays if self._remaining is None else arrays | {REMAINING: self._remaining}

    def _scaled_system(self):
        root = self._times_columns(np.eye(len(self._matrix)))
        system = np.eye(len(self)) - root @ root.T
        return self._share_roots * (self._share_roots * system).T

    def _scaled_product(self, array):
        scaled = self._share_roots * array
        return self._share_roots * (scaled - self._times_columns(self._columns_times(scaled)))

    @property
    def root(self) -> NDArray[np.float64]:
        """A with A A' = M^-1, that of `correlated`: (D, D), by the primal matrix."""
        return PrimalInformation.from_scaled_system(self.complete, self._scaled_system()).root

    def _times_columns(self, weights):
        """T' B weights: (m, c) -> (D, c)."""
        return self._rest.times_root_transposed(self.factor.product(weights))

    def _columns_times(self, scaled):
        """B' T scaled: (D, c) -> (m, c)."""
        return self.factor.transposed_product(self._rest.times_root(scaled))

    def _covariance_root(self, index):
        known = self._rest.covariance_root(index)
        return np.concatenate([known, self._solve_lower(self.factor.responses(index))])

    def _solve_scaled(self, scaled):
        solution = scaled / self._share_roots
        if len(self._matrix):
            weights = self._solve_both(self._columns_times(solution))
            solution += self._times_columns(weights)
        return solution / self._share_roots

    @cached_property
    def _root_blocks(self):
        """L of I - T' B B' T = L L', block by block from the last: its slice, W, W K^-1, and L's own block.

        W are the block's rows of T' B, and K is I less the sum of W' W over all blocks before: elimination of
        these leaves the block I - W K^-1 W'. K is I - B' R B after the last block, and I before the first.
        """
        size, n_columns = len(self), len(self._matrix)
        at_once = size if 2 * n_columns > size else max(n_columns, _LEAST_ROOT_BLOCK)
        rows, kernel, blocks = self._times_columns(np.eye(n_columns)), self._matrix.copy(), []
        for block in reversed(slices(size, at_once)):
            inside = solved = rows[block]
            if block.start:
                kernel += inside.T @ inside
                solved = solve(kernel, inside.T, assume_a="pos").T
            root = np.linalg.cholesky(np.eye(len(inside)) - solved @ inside.T)
            blocks.append((block, inside, solved, root))
        return blocks

    def _inverse_root_times(self, scaled):
        if not len(self._matrix):
            return scaled / self._share_roots
        solution, after = scaled.copy(), np.zeros((len(self._matrix), scaled.shape[1]))
        for block, inside, solved, root in self._root_blocks:
            right = solution[block] + solve_triangular(root, solved @ after, lower=True)
            solution[block] = solve_triangular(root, right, lower=True, trans="T")
            after += inside.T @ solution[block]
        return solution / self._share_roots


def sums_of_iterations(eigenvalues):
    """Length of n iterations from a saddle along eigenvectors of S, relative to one: sum_{i<n} (1 - s)^i.

    An iteration multiplies the gradient by 1 - S. With n iterations, the direction in which they leave the
    saddle fastest grows threefold.

    Parameters
    ----------
    eigenvalues : ndarray of shape (m,)
        s, at most one: some of the eigenvalues of an S that is not positive definite, or approximations.

    Returns
    -------
    sums : ndarray of shape (m,)
        At least one.
    """
    steepest = max(-np.min(eigenvalues), _LEAST_CURVATURE)
    n_iterations = max(np.log(_SADDLE_GROWTH) / np.log1p(steepest), 1.0)
    below_one = np.minimum(eigenvalues, 1.0 - np.finfo(float).eps)
    is_flat = np.abs(below_one) < np.finfo(float).eps
    sums = -np.expm1(n_iterations * np.log1p(-below_one)) / np.where(is_flat, 1.0, below_one)
    return np.where(is_flat, n_iterations, sums)


class MatrixFreeInformation(ObservedInformation):
    """M through products G v alone, by conjugate gradients on S.

    It needs a few times D numbers of memory for every column. Covariances take one solution a column.

    Parameters
    ----------
    complete : CompleteInformation
        R^-1, of size D.
    missing_product : callable, ndarray (D, m) -> ndarray (D, m)
        Product of G with the columns of an array. The data that it uses, such as training rows, must stay in
        memory.
    """

    name = "matrix_free"
    holds_rows = True
    has_determinant = False

    def __init__(
        self,
        complete: CompleteInformation,
        missing_product: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    ) -> None:
        super().__init__(complete)
        self._missing_product = missing_product

    def _scaled_product(self, array):
        """S array."""
        missing = self._missing_product(self.complete.times_root(array))
        return array - self.complete.times_root_transposed(missing)

    @cached_property
    def _smallest(self):
        try:
            return smallest_eigenpair(self._scaled_product, len(self), _MAX_PRODUCTS)
        except ArpackNoConvergence:
            raise LinAlgError(
                f"Whether the fixed point is a strict local optimum could not be decided in "
                f"{_MAX_PRODUCTS} iterations of Lanczos' method. {_REMEDY}"
            ) from None

    def smallest_eigenvalue(self) -> tuple[float, NDArray[np.float64]]:
        """The smallest eigenvalue of S, from above and to 1e-6, and its unit eigenvector v, (D,)."""
        return self._smallest

    def definiteness(self, effort: Literal["probe", "proof"] | int = "proof") -> Definiteness:
        """Whether M is positive definite, that is whether the fixed point is a strict local optimum.

        "proof" computes the smallest eigenvalue of S, once, and raises a LinAlgError where that does not
        converge, as M is close to singular. A number of products is spent on a random direction, which has a
        part in every eigenvector: conjugate gradients that converge have met no negative curvature, so that
        almost surely there is none. It is UNDECIDED where the products do not suffice for a relative
        residual of 1e-2. "probe" is 50 products, as many as a Newton step may take.
        """
        if effort == "proof":
            is_positive = self._smallest[0] > round_off(len(self))
            return Definiteness.POSITIVE_DEFINITE if is_positive else Definiteness.INDEFINITE
        if effort == "probe":
            effort = _MAX_STEP_PRODUCTS
        if not isinstance(effort, Integral):
            raise ValueError(f"effort={effort!r} is neither 'probe', 'proof' nor a number of products.")
        direction = np.random.default_rng(0).normal(size=(len(self), 1))
        _, residual, is_convex = conjugate_gradients(
            self._scaled_product, direction, _PROBE_TOLERANCE, effort
        )
        if not is_convex:
            return Definiteness.INDEFINITE
        return Definiteness.POSITIVE_DEFINITE if residual <= _PROBE_TOLERANCE else Definiteness.UNDECIDED

    def newton_step(self, gradient: NDArray[np.float64]) -> NewtonStep:
        """Newton's step in the sufficient statistics, R^-1 M^-1 gradient, to a relative residual of 1e-2.

        At negative curvature the iteration stops and returns its present step, always a direction of ascent:
        at least the gradient, which is a plain iteration. The decrement is then a lower bound. The
        definiteness is INDEFINITE where negative curvature was met, and UNDECIDED otherwise.
        """
        scaled = self.complete.times_root_transposed(gradient[:, None])
        step, _, is_convex = conjugate_gradients(
            self._scaled_product, scaled, _STEP_TOLERANCE, _MAX_STEP_PRODUCTS
        )
        shown = Definiteness.UNDECIDED if is_convex else Definiteness.INDEFINITE
        return self._as_newton_step(scaled, step, shown)

    def _scaled_system(self):
        system = np.eye(len(self))
        for columns in batches(len(self), 8 * len(self)):
            system[:, columns] = self._scaled_product(np.ascontiguousarray(system[:, columns]))
        return system

    def _solve_scaled(self, scaled):
        solution, residual, is_convex = conjugate_gradients(
            self._scaled_product, scaled, _SOLUTION_TOLERANCE, _MAX_PRODUCTS
        )
        if not is_convex:
            self._refuse()
        self._require_convergence(residual)
        return solution

    def _require_convergence(self, residual):
        if residual > _SOLUTION_TOLERANCE:
            raise LinAlgError(
                f"The iteration left a relative residual of {residual:.1e} after {_MAX_PRODUCTS} "
                f"products, tolerance {_SOLUTION_TOLERANCE:.1e}. {_REMEDY}"
            )

    def _covariance_root(self, index):
        gram = np.empty((len(index), len(index)))
        for part in batches(len(index), 8 * len(self)):  # Columns that share their products.
            columns = self.complete.root_rows(index[part])
            gram[:, part] = self.complete.times_root(self._solve_scaled(columns))[index]
        return gram_root(gram)

    def _inverse_root_times(self, scaled):
        product, most = self._scaled_product, _MAX_PRODUCTS
        pairs = [
            inverse_square_root_product(product, column, _SOLUTION_TOLERANCE, most) for column in scaled.T
        ]
        roots, changes = zip(*pairs, strict=True)
        self._require_convergence(max(changes))
        return np.stack(roots, axis=1)


def information_from_arrays(
    complete: CompleteInformation,
    arrays: Mapping[str, NDArray],
    factor_from_arrays: Callable[[Mapping[str, NDArray]], Any] | None = None,
) -> ObservedInformation:
    """The observed information from the arrays of `ObservedInformation.to_arrays`.

    Parameters
    ----------
    complete : CompleteInformation
        R^-1 of the information whose arrays these are.
    arrays : dict, str -> ndarray
        S in primal form under the key "scaled_triangle", or the arrays of a factor.
    factor_from_arrays : callable
        Rebuilds the factor of a dual information from ``arrays``; it is the inverse of the factor's own
        ``to_arrays``. It is not called for the primal form; None where there is no other.

    Returns
    -------
    information : PrimalInformation or DualInformation
        Its answers equal those of the original to round-off.
    """
    if PACKED_SYSTEM in arrays:
        return PrimalInformation.from_scaled_system(complete, from_packed_triangle(arrays[PACKED_SYSTEM]))
    assert factor_from_arrays is not None
    return DualInformation(complete, factor_from_arrays(arrays), arrays.get(REMAINING))


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
    is_convex = True
    for _ in range(max_products):
        active = np.flatnonzero(squared > tolerance**2 * start)
        if not active.size:
            break
        along = direction[:, active]
        image = product(along)
        curvature = np.einsum("dm,dm->m", along, image)
        is_convex = bool(np.all(curvature > np.finfo(float).eps * np.einsum("dm,dm->m", along, along)))
        if not is_convex:
            at_zero = ~solution.any(axis=0)
            solution[:, at_zero] = right[:, at_zero]
            break
        length = squared[active] / curvature
        solution[:, active] += length * along
        residual[:, active] -= length * image
        previous, squared = squared, np.einsum("dm,dm->m", residual, residual)
        direction[:, active] = residual[:, active] + squared[active] / previous[active] * along
    relative = squared / np.where(start > 0, start, 1.0)
    return solution, float(np.sqrt(np.max(relative, initial=0.0))), is_convex


def inverse_square_root_product(product, vector, tolerance, max_products):
    """S^-1/2 vector by Lanczos' method, (D,), and the relative change by the last product.

    The iteration stops where this is at most ``tolerance``; the change is then returned as 0. It needs D
    numbers of memory for every product, because the basis is kept orthogonal explicitly.
    """
    norm = np.linalg.norm(vector)
    if norm == 0:
        return vector, 0.0
    last, change, space = np.zeros(0), np.inf, np.zeros((0, len(vector)))
    for basis, tridiagonal, is_exhausted in _lanczos(product, vector / norm, max_products):
        space = basis
        coordinates = _first_column(
            tridiagonal, lambda values: 1.0 / np.sqrt(np.maximum(values, np.finfo(float).tiny))
        )
        change = np.linalg.norm(coordinates - np.append(last, 0.0)) / np.linalg.norm(coordinates)
        last = coordinates
        if change < tolerance or is_exhausted:
            change = 0.0
            break
    return norm * (last @ space), change


def function_times_vector(product, vector, function, max_products):
    """A function of S, of its eigenvalues (m,) -> (m,), times a vector (D, 1), from a Krylov space of it.

    The product is exact where ``max_products`` is D.
    """
    norm = np.linalg.norm(vector)
    if norm == 0:
        return vector
    *_, (basis, tridiagonal, _) = _lanczos(product, vector[:, 0] / norm, max_products)
    return norm * (_first_column(tridiagonal, function) @ basis)[:, None]


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
        last, present = basis[m - 1], basis[:m]
        image = product(last[:, None])[:, 0]
        tridiagonal[m - 1, m - 1] = last @ image
        for _ in range(2):  # Orthogonalizing twice keeps the basis orthogonal to round-off.
            image = image - (present @ image) @ present
        length = np.sqrt(image @ image)
        is_exhausted = bool(length < 10 * np.finfo(float).eps) or m == len(start)
        yield present, tridiagonal[:m, :m], is_exhausted
        if is_exhausted or m == size:
            return
        basis[m] = image / length
        tridiagonal[m - 1, m] = tridiagonal[m, m - 1] = length
