"""The solver of the observed information that uses products G v alone: conjugate gradients on S.

The conventions and the interface are those of `observed_information`, the iterations those of `krylov`.
"""

from collections.abc import Callable
from functools import cached_property
from numbers import Integral
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError
from scipy.sparse.linalg import ArpackNoConvergence

from sklearn_lrvb.linear_response.complete_information import CompleteInformation
from sklearn_lrvb.linear_response.krylov import (
    conjugate_gradients,
    inverse_square_root_columns,
    smallest_eigenpair,
)
from sklearn_lrvb.linear_response.observed_information import (
    Definiteness,
    NewtonStep,
    ObservedInformation,
    ResponseRoutes,
    Route,
)
from sklearn_lrvb.symmetric_matrices import gram_root, round_off

_COLUMN_BYTES = 2**26  # Size of the right-hand sides that share their products.
# Relative residual of a random direction at which a negative eigenvalue would have been detected.
_PROBE_TOLERANCE = 1e-2
_REMEDY = "The observed information is close to singular: use the primal or the dual solver."


class MatrixFreeInformation(ObservedInformation):
    """M through products G v alone, by conjugate gradients on S.

    Parameters
    ----------
    complete : CompleteInformation
        R^-1, of size D.
    missing_product : callable, ndarray (D, m) -> ndarray (D, m)
        Product of G with the columns of an array. The data that it uses, such as training rows, must stay in
        memory.
    tolerance : float, default=1e-11
        Relative residual of a solution.
    max_products : int, default=1000
        Products that a solution may take.
    max_step_products : int, default=50
        Products after which a Newton step or a probe is cut short.

    See Also
    --------
    ObservedInformation : What every method takes and returns, with examples.

    Notes
    -----
    It needs a few times D numbers of memory for every column. Covariances take one solution a column.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_lrvb.linear_response import CompleteInformation, MatrixFreeInformation
    >>> missing = np.diag([0.5, 0.0, 0.9])
    >>> complete = CompleteInformation.from_root(np.eye(3))
    >>> information = MatrixFreeInformation(complete, lambda array: missing @ array)
    >>> information.definiteness(effort=10).value
    'positive definite'
    >>> information.solve(np.ones((3, 1))).round(9).T
    array([[ 2.,  1., 10.]])
    """

    name = "matrix_free"
    holds_rows = True

    def __init__(
        self,
        complete: CompleteInformation,
        missing_product: Callable[[NDArray[np.float64]], NDArray[np.float64]],
        tolerance: float = 1e-11,
        max_products: int = 1000,
        max_step_products: int = 50,
    ) -> None:
        super().__init__(complete)
        self._missing_product = missing_product
        self._tolerance = tolerance
        self._max_products = max_products
        self._max_step_products = max_step_products

    @property
    def nbytes(self) -> int:
        """Size in bytes of R^-1, without the data to which ``missing_product`` refers."""
        return self.complete.nbytes

    def _missing_scaled(self, array):
        """T' G T array."""
        return self.complete.times_root_transposed(self._missing_product(self.complete.times_root(array)))

    def _scaled_product(self, array):
        """S array."""
        return array - self._missing_scaled(array)

    @cached_property
    def _smallest(self):
        try:
            return smallest_eigenpair(self._scaled_product, len(self), self._max_products)
        except ArpackNoConvergence:
            raise LinAlgError(
                f"Whether the fixed point is a strict local optimum could not be decided in "
                f"{self._max_products} iterations of Lanczos' method. {_REMEDY}"
            ) from None

    def smallest_eigenvalue(self) -> tuple[float, NDArray[np.float64]]:
        """The smallest eigenvalue of S, from above and to 1e-6, and its unit eigenvector v, (D,)."""
        return self._smallest

    def definiteness(self, effort: Literal["probe", "proof"] | int = "proof") -> Definiteness:
        """Whether M is positive definite, that is whether the fixed point is a strict local optimum.

        Parameters
        ----------
        effort : {"probe", "proof"} or int, default="proof"
            "proof" computes the smallest eigenvalue of S, once. An integer is a number of products with a
            random direction, which has a part in every eigenvector: conjugate gradients that converge have
            met no negative curvature, so that almost surely there is none. "probe" is ``max_step_products``.

        Returns
        -------
        Definiteness
            UNDECIDED where the products do not suffice for a relative residual of 1e-2.

        Raises
        ------
        ValueError
            Unknown effort.
        numpy.linalg.LinAlgError
            The eigenvalue did not converge, as M is close to singular ("proof").
        """
        if effort == "proof":
            is_positive = self._smallest[0] > round_off(len(self))
            return Definiteness.POSITIVE_DEFINITE if is_positive else Definiteness.INDEFINITE
        if effort == "probe":
            effort = self._max_step_products
        if not isinstance(effort, Integral):
            raise ValueError(f"effort={effort!r} is neither 'probe', 'proof' nor a number of products.")
        direction = np.random.default_rng(0).normal(size=(len(self), 1))
        _, residual, is_convex = conjugate_gradients(
            self._scaled_product, direction, _PROBE_TOLERANCE, effort
        )
        if not is_convex:
            return Definiteness.INDEFINITE
        return Definiteness.POSITIVE_DEFINITE if residual <= _PROBE_TOLERANCE else Definiteness.UNDECIDED

    def newton_step(self, gradient: NDArray[np.float64], tolerance: float = 1e-2) -> NewtonStep:
        """Newton's step in the sufficient statistics, R^-1 M^-1 gradient, to a relative residual.

        At negative curvature the iteration stops and returns its present step, always a direction of ascent:
        at least the gradient, which is a plain sweep. The decrement is then a lower bound.

        Parameters
        ----------
        gradient : ndarray of shape (D,)
        tolerance : float, default=1e-2
            Relative residual.

        Returns
        -------
        NewtonStep
            Its ``definiteness`` is INDEFINITE where negative curvature was met, and UNDECIDED otherwise.
        """
        scaled = self.complete.times_root_transposed(gradient[:, None])
        step, _, is_convex = conjugate_gradients(
            self._scaled_product, scaled, tolerance, self._max_step_products
        )
        shown = Definiteness.UNDECIDED if is_convex else Definiteness.INDEFINITE
        return self._as_newton_step(scaled, step, shown)

    def response_route(self, n_targets: int, routes: ResponseRoutes[Route]) -> Route:
        """The route `by_solutions`."""
        return routes.by_solutions(self)

    def _column_batches(self, index):
        """Parts of an index whose columns share their products."""
        at_once = max(1, _COLUMN_BYTES // (8 * len(self)))
        for start in range(0, len(index), at_once):
            yield slice(start, start + at_once)

    def _scaled_system(self):
        system = np.eye(len(self))
        for columns in self._column_batches(system):
            system[:, columns] = self._scaled_product(np.ascontiguousarray(system[:, columns]))
        return system

    def _solve_scaled(self, scaled):
        solution, residual, is_convex = conjugate_gradients(
            self._scaled_product, scaled, self._tolerance, self._max_products
        )
        if not is_convex:
            self._refuse()
        self._require_convergence(residual)
        return solution

    def _require_convergence(self, residual):
        if residual > self._tolerance:
            raise LinAlgError(
                f"The iteration left a relative residual of {residual:.1e} after {self._max_products} "
                f"products, tolerance {self._tolerance:.1e}. {_REMEDY}"
            )

    def _covariance_root(self, index):
        gram = np.empty((len(index), len(index)))
        for part in self._column_batches(index):
            columns = self.complete.root_rows(index[part])
            gram[:, part] = self.complete.times_root(self._solve_scaled(columns))[index]
        return gram_root(gram)

    def _inverse_root_times(self, scaled):
        root, change = inverse_square_root_columns(
            self._scaled_product, scaled, self._tolerance, self._max_products
        )
        self._require_convergence(change)
        return root
