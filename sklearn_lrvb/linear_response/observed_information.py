"""Observed = complete - missing information, M = R^-1 - G, and what is asked of its inverse.

*Conventions.* R = T T' is the covariance of the parameters were the latent variables known (the
mean-field answer, `CompleteInformation`). G is what not knowing them loses. All work is done on the
scaled system

    S = I - T' G T,        M = T^-T S T^-1,        M^-1 = T S^-1 T',

whose eigenvalues lie in (0, 1] at a strict local optimum: one minus the fractions of missing
information, which are the linear rates of coordinate ascent. M^-1 is the linear response
covariance (Eq. nuisance_lrvb_est; Louis' formula).

Three solvers answer the same questions, and differ in how they know G:

* `PrimalInformation`: G itself, (D, D); Cholesky of S.
* `DualInformation`: a root of it, G = B B' with m columns, through products and m x m kernels;
  S^-1 = I + T' B (I - B' R B)^-1 B' T, Cholesky of I - B' R B. B is never formed.
* `MatrixFreeInformation`: products G v; conjugate gradients on S, that is, preconditioned by R.

Which is cheapest is for `solver_choice` to say.
"""

from functools import cached_property

import numpy as np
from scipy.linalg import LinAlgError, blas, cholesky, eigh, lapack, solve_triangular
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from sklearn_lrvb.linear_response.krylov import (
    conjugate_gradients,
    inverse_square_root_product,
)

_COLUMN_BYTES = 2**26  # of right-hand sides that share their products
_EIGENVALUE_TOLERANCE = 1e-6  # of the smallest eigenvalue by Lanczos' method
_PROBED = 1e-2  # relative residual of a random direction, by which a negative eigenvalue has shown
_LANCZOS_FACTOR = 6  # of its columns to eigenvectors, a method of some 30 products a column
_LANCZOS_TOLERANCE = 1e-11
# Where sweeps leave a saddle, a step goes as far as lets the fastest direction grow by this factor: of
# 1,880 fits 89 ended below plain sweeps with the inverse of |S| in place of `sums_of_sweeps`, 47 with these.
_GROWTH = 3.0
_LEAST_CURVATURE = 1e-3  # negative, of S: a step stands for some thousand sweeps at most


class IndefiniteInformationError(ValueError):
    """The observed information is not positive definite: no strict local optimum.

    Attributes
    ----------
    smallest_eigenvalue : float, of S
    direction : (D,), its direction in units of the mean-field standard deviations
    names : sequence of str (D,), what the direction's entries are, or None where that is not known here
    """

    def __init__(self, message, smallest_eigenvalue=None, direction=None):
        super().__init__(message)
        self.smallest_eigenvalue = smallest_eigenvalue
        self.direction = direction
        self.names = None


def indefinite_information_error(eigenvalue, direction, deviations):
    """The error that names the smallest eigenvalue of S and the largest entries of its direction, (D,)."""
    direction = direction / np.where(deviations > 0, deviations, 1.0)
    largest = [int(i) for i in np.argsort(-np.abs(direction))[:4] if direction[i]]
    entries = ", ".join(f"[{i}]: {direction[i]:+.2g}" for i in largest)
    return IndefiniteInformationError(
        "The fixed point is unstable, no strict local optimum: the smallest eigenvalue of the observed "
        f"information is {eigenvalue:.2g} of the complete information (stable: above 0 by more than "
        f"round-off), in a direction with the largest entries {entries} (mean-field standard deviations). "
        "(a) It was not iterated to the end. (b) It is a saddle, for example two equal components: start "
        "elsewhere.",
        float(eigenvalue),
        direction,
    )


class ObservedInformation:
    """What all solvers answer, in terms of the few operations on S that each of them knows.

    A solver has a ``name``, ``_solve`` (S^-1 X), ``_half`` (any Z with Z'Z = X' S^-1 X) or what is built on
    it, ``_root`` (S^-1/2 X, the symmetric root), ``newton_step``, ``smallest_eigenvalue`` and
    ``is_positive_definite``.

    Parameters
    ----------
    complete : CompleteInformation, R^-1 of size D
    """

    def __init__(self, complete):
        self.complete = complete

    def __len__(self):
        return len(self.complete)

    def proves_positive_definite(self):
        """`is_positive_definite`, to the end of doubt."""
        return self.is_positive_definite

    def seems_positive_definite(self):
        """`is_positive_definite`, after a look around where it was not looked at yet."""
        return self.is_positive_definite

    def require_positive_definite(self):
        """Raise where there is no covariance to report.

        Raises
        ------
        IndefiniteInformationError
            Names the smallest eigenvalue of S and the largest entries of its direction.
        """
        if self.proves_positive_definite():
            return
        value, vector = self.smallest_eigenvalue()
        direction = self.complete.times_root(vector[:, None])[:, 0]
        raise indefinite_information_error(value, direction, self.complete.deviations)

    def solve(self, sources):
        """M^-1 sources, the response to perturbations: (D, m) -> (D, m)."""
        self.require_positive_definite()
        scaled = self.complete.times_root_transposed(sources)
        return self.complete.times_root(self._solve(scaled))

    def covariance_root(self, index=None):
        """Y with Y' Y = M^-1[index, index]: rows that are directions, to be mapped like any other.

        Parameters
        ----------
        index : int array (m,) or None
            A subspace of coordinates; None is all of them, in order.

        Returns
        -------
        root : (number of rows, m)
        """
        self.require_positive_definite()
        return self._half_on(np.arange(len(self)) if index is None else index)

    def covariance(self, index=None):
        """M^-1[index, index], symmetric to the last digit."""
        root = self.covariance_root(index)
        return root.T @ root

    def standard_deviations(self, targets):
        """Root diagonal of targets' M^-1 targets: (D, m) -> (m,)."""
        self.require_positive_definite()
        return np.linalg.norm(self._half(self.complete.times_root_transposed(targets)), axis=0)

    def correlated(self, normals):
        """A normals with A A' = M^-1: standard normal columns become draws, (D, m) -> (D, m).

        A = T S^-1/2 is the same whatever the solver.
        """
        self.require_positive_definite()
        return self.complete.times_root(self._root(normals))

    def _half_on(self, index):
        return self._half(self.complete.root_rows(index))

    def _finish_step(self, scaled_gradient, step):
        """R^-1 T step, and the Newton decrement."""
        decrement = np.sqrt(max(np.vdot(scaled_gradient, step), 0.0))
        return self.complete.solve_root_transposed(step)[:, 0], decrement


def round_off(size):
    """Eigenvalues of S (of this size) up to which it counts as singular."""
    return 10 * size * np.finfo(float).eps


class _FactoredInformation(ObservedInformation):
    """What the two solvers share that factor one symmetric matrix, of which the lower triangle counts."""

    def __init__(self, complete, matrix):
        super().__init__(complete)
        self._matrix = matrix

    def __getstate__(self):
        cached = {"_cholesky", "_spectrum"}  # cheap beside their size
        return {name: value for name, value in vars(self).items() if name not in cached}

    @cached_property
    def _cholesky(self):
        """Lower factor, or None where the matrix is not positive definite to working precision."""
        if not len(self._matrix):
            return self._matrix
        try:
            factor = cholesky(self._matrix, lower=True)
        except LinAlgError:
            return None
        return factor if np.diag(factor).min() ** 2 > round_off(len(factor)) else None

    @property
    def is_positive_definite(self):
        """Whether q is a strict local optimum, to working precision."""
        return self._cholesky is not None

    def newton_step(self, gradient):
        """R^-1 M^-1 gradient, and the Newton decrement sqrt(gradient' M^-1 gradient).

        Where M is indefinite `sums_of_sweeps` of S stands in for its inverse, so that the step leaves a
        saddle the way sweeps do and never descends.

        Parameters
        ----------
        gradient : (D,)
        """
        scaled = self.complete.times_root_transposed(gradient[:, None])
        step = self._solve(scaled) if self.is_positive_definite else self._solve_like_sweeps(scaled)
        return self._finish_step(scaled, step)

    def _solve_lower(self, right):
        return solve_triangular(self._cholesky, right, lower=True) if len(right) else right

    def _solve_upper(self, right):
        return solve_triangular(self._cholesky, right, lower=True, trans="T") if len(right) else right


class PrimalInformation(_FactoredInformation):
    """M from the matrix G.

    Parameters
    ----------
    complete : CompleteInformation, R^-1 of size D
    missing : array (D, D), G, symmetric; overwritten

    Notes
    -----
    Memory 2 D^2, and as much again for roots and solutions of that size; D^3/3 flops at first need, then D^2
    a column.
    """

    name = "primal"

    def __init__(self, complete, missing):
        complete.scale_in_place(missing)
        np.negative(missing, out=missing)
        np.einsum("ii->i", missing)[...] += 1.0
        super().__init__(complete, missing)

    def smallest_eigenvalue(self):
        """Smallest eigenvalue of S and its unit eigenvector v, (D,); in the coordinates of M it is T v."""
        values, vectors = eigh(self._matrix, subset_by_index=[0, 0])
        return values[0], vectors[:, 0]

    def _half(self, scaled):
        return self._solve_lower(scaled)

    def _half_on(self, index):
        if 3 * len(index) < len(self):
            return super()._half_on(index)
        inverse = np.tril(lapack.dtrtri(self._cholesky, lower=True)[0])  # a third of the flops
        return np.ascontiguousarray(self.complete.times_root(inverse.T)[index].T)

    def _solve(self, scaled):
        return self._solve_upper(self._solve_lower(scaled))

    def _root(self, normals):
        if _LANCZOS_FACTOR * normals.shape[1] < len(self):

            def product(vector):  # transposed to the order that BLAS takes without a copy
                return blas.dsymv(1.0, self._matrix.T, vector[:, 0], lower=0)[:, None]

            root, change = _lanczos_root(product, normals, _LANCZOS_TOLERANCE, len(self))
            if change <= _LANCZOS_TOLERANCE:
                return root
        values, vectors = eigh(self._matrix)
        return vectors @ ((vectors.T @ normals) / np.sqrt(values)[:, None])

    def _solve_like_sweeps(self, scaled):
        values, vectors = eigh(self._matrix)
        return vectors @ (sums_of_sweeps(values)[:, None] * (vectors.T @ scaled))


def gram_root(gram):
    """Z with Z' Z = gram, which is symmetric and positive semidefinite but for round-off.

    By the symmetric root of its correlations: columns in any units keep their digits, and no sign is open.
    """
    scale = np.sqrt(np.maximum(np.diag(gram), 0.0))
    scale = np.where(scale > 0, scale, 1.0)
    values, vectors = eigh(0.5 * (gram + gram.T) / np.outer(scale, scale))
    return vectors @ (np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T) * scale


def _lanczos_root(product, normals, tolerance, max_products):
    """S^-1/2 normals column by column, and the largest relative size of a last change."""
    columns, changes = zip(
        *(inverse_square_root_product(product, vector, tolerance, max_products) for vector in normals.T),
        strict=True,
    )
    return np.stack(columns, axis=1), max(changes)


def sums_of_sweeps(eigenvalues):
    """How far sweeps lead along the eigenvectors of S, in units of the first: sum_{i<n} (1 - s)^i.

    A sweep multiplies the gradient by 1 - S. Without a negative eigenvalue n is unlimited, and the sums are
    1/s. With one the point ahead is a saddle, and n is as large as lets the direction in which sweeps leave
    it fastest grow threefold: a step then goes where sweeps go.

    Parameters
    ----------
    eigenvalues : array (D,), s, at most one

    Returns
    -------
    sums : array (D,), at least one
    """
    smallest = np.min(eigenvalues)
    if smallest > 0:
        return 1.0 / eigenvalues
    n_sweeps = max(np.log(_GROWTH) / np.log1p(max(-smallest, _LEAST_CURVATURE)), 1.0)
    below_one = np.minimum(eigenvalues, 1.0 - np.finfo(float).eps)
    is_flat = np.abs(below_one) < np.finfo(float).eps
    sums = -np.expm1(n_sweeps * np.log1p(-below_one)) / np.where(is_flat, 1.0, below_one)
    return np.where(is_flat, n_sweeps, sums)


class MatrixFactor:
    """A root of the missing information that is given as a matrix: what `DualInformation` asks of one.

    Parameters
    ----------
    complete : CompleteInformation, R^-1 of size D
    root : (D, m), B with G = B B'
    """

    def __init__(self, complete, root):
        self._complete = complete
        self._root = root

    def kernel(self):
        """B' R B, (m, m), symmetric."""
        half = self._complete.times_root_transposed(self._root)
        return half.T @ half

    def responses(self, index):
        """B' R[:, index], (m, len(index))."""
        return self.transposed_product(self._complete.times_root(self._complete.root_rows(index)))

    def product(self, weights):
        """B weights: (m, c) -> (D, c)."""
        return self._root @ weights

    def transposed_product(self, array):
        """B' array: (D, c) -> (m, c)."""
        return self._root.T @ array


class DualInformation(_FactoredInformation):
    """M from a root of G, G = B B', that has few columns.

    Parameters
    ----------
    complete : CompleteInformation, R^-1 of size D
    factor : B of shape (D, m): `MatrixFactor`, or whatever has its four methods

    Notes
    -----
    Memory 2 m^2; m^3/3 flops beside the kernel.
    """

    name = "dual"

    def __init__(self, complete, factor):
        kernel = factor.kernel()
        super().__init__(complete, np.eye(len(kernel)) - kernel)
        self.factor = factor

    def half(self, responses):
        """z with z'z what B adds to targets' covariance beyond R, given B' R targets: (m, c) -> (m, c)."""
        self.require_positive_definite()
        return self._solve_lower(responses)

    def half_transposed(self, halves):
        """(I - B' R B)^-1 B' R targets from `half` of these: (m, c) -> (m, c)."""
        return self._solve_upper(halves)

    @cached_property
    def _spectrum(self):
        """Eigenvalues 1 - s^2 and vectors of I - B' R B."""
        return np.linalg.eigh(self._matrix)

    def smallest_eigenvalue(self):
        """Smallest eigenvalue of S and its unit eigenvector v, (D,); in the coordinates of M it is T v."""
        values, vectors = self._spectrum
        if not len(values) or values[0] >= 1.0:
            return 1.0, np.eye(1, len(self))[0]
        return values[0], self._spread(vectors[:, :1])[:, 0] / np.sqrt(1.0 - values[0])

    def _spread(self, weights):
        """T' B weights."""
        return self.complete.times_root_transposed(self.factor.product(weights))

    def _gather(self, scaled):
        """B' T scaled."""
        return self.factor.transposed_product(self.complete.times_root(scaled))

    def _half(self, scaled):
        return np.concatenate([scaled, self._solve_lower(self._gather(scaled))])

    def _half_on(self, index):
        known = self.complete.covariance_root(index)
        return np.concatenate([known, self._solve_lower(self.factor.responses(index))])

    def _solve(self, scaled):
        if not len(self._matrix):
            return scaled
        return scaled + self._spread(self._solve_upper(self._solve_lower(self._gather(scaled))))

    def _spectral(self, function, scaled):
        """function(S) scaled, for a function with function(1) = 1."""
        if not len(self._matrix):
            return scaled
        values, vectors = self._spectrum
        seen = 1.0 - values > np.finfo(float).eps
        values, vectors = values[seen], vectors[:, seen]
        shares = (function(values) - 1.0) / (1.0 - values)
        return scaled + self._spread(vectors @ (shares[:, None] * (vectors.T @ self._gather(scaled))))

    def _root(self, normals):
        return self._spectral(lambda eigenvalues: 1.0 / np.sqrt(eigenvalues), normals)

    def _solve_like_sweeps(self, scaled):
        return self._spectral(sums_of_sweeps, scaled)


class MatrixFreeInformation(ObservedInformation):
    """M through products G v alone: conjugate gradients on S.

    Parameters
    ----------
    complete : CompleteInformation, R^-1 of size D
    missing_product : callable, (D, m) -> G array (D, m)
    tolerance : float, relative residual of a solution
    max_products : int, of a solution; a Newton step is cut short after ``max_step_products``

    Notes
    -----
    Memory some D floats a column. Whatever ``missing_product`` holds on to, training rows for example, must
    stay. Covariances take one solution a column.

    Attributes
    ----------
    is_positive_definite : bool, False once a direction of negative curvature was met.
        `proves_positive_definite` computes the smallest eigenvalue to make sure, as every covariance does.
    """

    name = "matrix_free"

    def __init__(self, complete, missing_product, tolerance=1e-11, max_products=1000, max_step_products=50):
        super().__init__(complete)
        self.is_positive_definite = True
        self._missing_product = missing_product
        self._tolerance = tolerance
        self._max_products = max_products
        self._max_step_products = max_step_products

    def _missing_scaled(self, array):
        """T' G T array."""
        return self.complete.times_root_transposed(self._missing_product(self.complete.times_root(array)))

    def _scaled_product(self, array):
        return array - self._missing_scaled(array)

    @cached_property
    def _smallest(self):
        if len(self) == 1:
            return self._scaled_product(np.ones((1, 1)))[0, 0], np.ones(1)
        # as the largest of 2 I - S, of order one, it converges long before the smallest of S, near zero
        operator = LinearOperator(
            2 * (len(self),),
            matvec=lambda v: v.ravel() + self._missing_scaled(v.reshape(-1, 1))[:, 0],
            dtype=float,
        )
        start = np.random.default_rng(0).normal(size=len(self))
        try:
            values, vectors = eigsh(
                operator, k=1, which="LA", v0=start, tol=_EIGENVALUE_TOLERANCE, maxiter=self._max_products
            )
        except ArpackNoConvergence:
            raise LinAlgError(
                f"Whether the fixed point is stable could not be decided in {self._max_products} iterations "
                "of Lanczos' method: the observed information is close to singular. Use the primal or the "
                "dual solver."
            ) from None
        return 2.0 - values[0], vectors[:, 0]

    def smallest_eigenvalue(self):
        """Smallest eigenvalue of S, from above and to 1e-6, and its unit eigenvector v, (D,)."""
        return self._smallest

    def proves_positive_definite(self):
        """Whether the smallest eigenvalue, computed at the first call, is positive beyond round-off."""
        stable = self.is_positive_definite and self._smallest[0] > round_off(len(self))
        self.is_positive_definite = bool(stable)
        return self.is_positive_definite

    def seems_positive_definite(self):
        """Whether a random direction, which has a part in all, leads to none of negative curvature."""
        self._probe(self._max_step_products)
        return self.is_positive_definite

    def shows_positive_definite(self, n_products):
        """Whether ``n_products`` suffice for a random direction to show that no curvature is negative."""
        residual = self._probe(n_products)
        return self.is_positive_definite and residual <= _PROBED

    def _probe(self, n_products):
        """Solve for a random direction; what is left of it, relatively."""
        probe = np.random.default_rng(0).normal(size=(len(self), 1))
        _, residual, is_convex = conjugate_gradients(self._scaled_product, probe, _PROBED, n_products)
        self.is_positive_definite = self.is_positive_definite and is_convex
        return residual

    def _solve(self, scaled):
        solution, residual, is_convex = conjugate_gradients(
            self._scaled_product, scaled, self._tolerance, self._max_products
        )
        if not is_convex:
            self.is_positive_definite = False
            self.require_positive_definite()
        self._require_convergence(residual)
        return solution

    def _require_convergence(self, residual):
        if residual > self._tolerance:
            raise LinAlgError(
                f"Conjugate gradients left a relative residual of {residual:.1e} after {self._max_products} "
                f"products, tolerance {self._tolerance:.1e}: the observed information is close to singular. "
                "Use the primal or the dual solver."
            )

    def standard_deviations(self, targets):
        """Root diagonal of targets' M^-1 targets: (D, m) -> (m,)."""
        self.require_positive_definite()
        scaled = self.complete.times_root_transposed(targets)
        return np.sqrt(np.maximum(np.einsum("dm,dm->m", scaled, self._solve(scaled)), 0.0))

    def _half_on(self, index):
        index = np.asarray(index)
        gram = np.empty((len(index), len(index)))
        at_once = max(1, _COLUMN_BYTES // (8 * len(self)))
        for start in range(0, len(index), at_once):
            columns = self.complete.root_rows(index[start : start + at_once])
            gram[:, start : start + at_once] = self.complete.times_root(self._solve(columns))[index]
        return gram_root(gram)

    def _root(self, normals):
        root, change = _lanczos_root(self._scaled_product, normals, self._tolerance, self._max_products)
        self._require_convergence(change)
        return root

    def newton_step(self, gradient, tolerance=1e-2):
        """R^-1 M^-1 gradient and the Newton decrement, to a relative ``tolerance`` of the residual.

        Stops where the curvature is not positive, with what it has: the gradient at least (a plain
        sweep), always a direction of ascent. The decrement is then one from below.

        Parameters
        ----------
        gradient : (D,)
        """
        scaled = self.complete.times_root_transposed(gradient[:, None])
        step, _, is_convex = conjugate_gradients(
            self._scaled_product, scaled, tolerance, self._max_step_products
        )
        self.is_positive_definite = self.is_positive_definite and is_convex
        return self._finish_step(scaled, step)
