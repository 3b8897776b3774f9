"""Observed = complete - missing information, M = R^-1 - G, and what is asked of its inverse.

*Conventions.* R = T T' is the covariance of the parameters were the latent variables known (the
mean-field answer): a dense block on a few coordinates, diagonal on the rest. G is what not knowing them
loses. All work is done on the scaled system

    S = I - T' G T,        M = T^-T S T^-1,        M^-1 = T S^-1 T',

whose eigenvalues lie in (0, 1] at a strict local optimum: one minus the fractions of missing
information, which are the linear rates of coordinate ascent. M^-1 is the linear response
covariance (Eq. nuisance_lrvb_est, eliminated by hand; Louis' formula).
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import LinAlgError, cholesky, eigh, solve_triangular


class IndefiniteInformationError(ValueError):
    """The observed information is not positive definite: no strict local optimum."""


@dataclass(frozen=True)
class CompleteInformation:
    """R^-1, through the root T of R = T T'.

    Attributes
    ----------
    dense_index : int array (b,), coordinates that share a dense block
    dense_root : (b, b), lower Cholesky factor of R on those coordinates
    root : (D,), square root of R's diagonal; its entries at ``dense_index`` are not used
    """

    dense_index: np.ndarray
    dense_root: np.ndarray
    root: np.ndarray

    def _scaled(self, array, dense):
        scaled = self.root[:, None] * array
        scaled[self.dense_index] = dense(array[self.dense_index])
        return scaled

    def times_root(self, array):
        """T array, (D, m)."""
        return self._scaled(array, lambda block: self.dense_root @ block)

    def times_root_transposed(self, array):
        """T' array, (D, m)."""
        return self._scaled(array, lambda block: self.dense_root.T @ block)

    def solve_root_transposed(self, array):
        """T^-T array, (D, m)."""
        scaled = array / self.root[:, None]
        scaled[self.dense_index] = solve_triangular(
            self.dense_root, array[self.dense_index], lower=True, trans="T"
        )
        return scaled


class ObservedInformation:
    """M = R^-1 - G, dense ("primal"), with M^-1 and its root.

    Parameters
    ----------
    complete : CompleteInformation, R^-1 of size D
    missing : array (D, D), G, symmetric positive semidefinite; overwritten

    Notes
    -----
    Memory D^2; Cholesky D^3/3 flops, at first need.
    """

    def __init__(self, complete, missing):
        self.complete = complete
        half = complete.times_root_transposed(missing)
        scaled = complete.times_root_transposed(np.ascontiguousarray(half.T))
        self._scaled = np.eye(len(scaled)) - 0.5 * (scaled + scaled.T)

    def __len__(self):
        return len(self._scaled)

    def __getstate__(self):
        return {"complete": self.complete, "_scaled": self._scaled}  # the factor is cheap beside its size

    @cached_property
    def _cholesky(self):
        """Lower factor of S, or None where S is not safely positive definite."""
        try:
            factor = cholesky(self._scaled, lower=True)
        except LinAlgError:
            return None
        smallest_pivot = np.diag(factor).min() ** 2
        return factor if smallest_pivot > 10 * len(factor) * np.finfo(float).eps else None

    @property
    def is_positive_definite(self):
        """Whether q is a strict local optimum, to working precision."""
        return self._cholesky is not None

    def smallest_eigenvalue(self):
        """Smallest eigenvalue of S and its unit eigenvector v, (D,); in the coordinates of M it is T v."""
        values, vectors = eigh(self._scaled, subset_by_index=[0, 0])
        return values[0], vectors[:, 0]

    def _require_positive_definite(self):
        if not self.is_positive_definite:
            value, _ = self.smallest_eigenvalue()
            raise IndefiniteInformationError(
                f"The observed information is not positive definite: its smallest eigenvalue is "
                f"{value:.1e} of the complete information."
            )

    def covariance_root(self):
        """Y (D, D) with Y' Y = M^-1: its rows are directions, to be mapped like any other.

        Raises
        ------
        IndefiniteInformationError
            Where M is not positive definite.
        """
        self._require_positive_definite()
        root = self.complete.times_root(solve_triangular(self._cholesky, np.eye(len(self)), lower=True).T)
        return np.ascontiguousarray(root.T)

    def newton_step(self, gradient, floor=1e-3):
        """R^-1 |M|^-1 gradient, and the Newton decrement sqrt(gradient' |M|^-1 gradient).

        Where M is indefinite |M| takes the eigenvalues of S by their magnitude, ``floor`` at least, so
        that the step leaves a saddle and never descends.

        Parameters
        ----------
        gradient : (D,)
        """
        scaled = self.complete.times_root_transposed(gradient[:, None])
        if self.is_positive_definite:
            half = solve_triangular(self._cholesky, scaled, lower=True)
            step = solve_triangular(self._cholesky, half, lower=True, trans="T")
        else:
            values, vectors = eigh(self._scaled)
            step = vectors @ ((vectors.T @ scaled) / np.maximum(np.abs(values), floor)[:, None])
        decrement = np.sqrt(max(np.vdot(scaled, step), 0.0))
        return self.complete.solve_root_transposed(step)[:, 0], decrement


class MatrixFreeInformation:
    """M = R^-1 - G through products G v alone: conjugate gradients on S.

    Parameters
    ----------
    complete : CompleteInformation, R^-1 of size D
    missing_product : callable, (D,) -> G v (D,)
    max_products : int, a step is cut short after so many

    Attributes
    ----------
    is_positive_definite : bool, False once a direction of negative curvature was met
    """

    def __init__(self, complete, missing_product, max_products=50):
        self.complete = complete
        self.is_positive_definite = True
        self._missing_product = missing_product
        self._max_products = max_products

    def _scaled_product(self, vector):
        moved = self._missing_product(self.complete.times_root(vector[:, None])[:, 0])
        return vector - self.complete.times_root_transposed(moved[:, None])[:, 0]

    def newton_step(self, gradient, tolerance=1e-2):
        """R^-1 M^-1 gradient and the Newton decrement, to a relative ``tolerance`` of the residual.

        Stops where the curvature is not positive, with what it has: the gradient at least (a plain
        sweep), always a direction of ascent. The decrement is then one from below.

        Parameters
        ----------
        gradient : (D,)
        """
        residual = self.complete.times_root_transposed(gradient[:, None])[:, 0]
        scaled, step, direction = residual, np.zeros_like(residual), residual
        squared = start = residual @ residual
        for _ in range(self._max_products):
            if squared <= tolerance**2 * start or squared == 0.0:
                break
            product = self._scaled_product(direction)
            curvature = direction @ product
            if not curvature > np.finfo(float).eps * (direction @ direction):
                self.is_positive_definite = False
                if not step.any():
                    step = residual
                break
            length = squared / curvature
            step = step + length * direction
            residual = residual - length * product
            previous, squared = squared, residual @ residual
            direction = residual + squared / previous * direction
        decrement = np.sqrt(max(scaled @ step, 0.0))
        return self.complete.solve_root_transposed(step[:, None])[:, 0], decrement
