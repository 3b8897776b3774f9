"""Wishart distribution of a precision matrix Lambda (P, P), with nu > P - 1 degrees of freedom.

Its density is proportional to |Lambda|^((nu - P - 1)/2) exp(-trace(A Lambda)/2) with the inverse scale A, and
E Lambda = nu A^-1. The class takes natural parameters.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import digamma, gammaln, zeta
from sklearn.utils import check_random_state

from sklearn_lrvb.distributions.wishart import (
    expected_log_determinant,
    half_degrees_of_freedom,
    log_determinant_excess_variance,
    log_partition,
)
from sklearn_lrvb.mean_field.exponential_families.family import (
    ExponentialFamily,
    Moments,
    Seed,
    refuse,
    refuse_indefinite,
    require_count,
)
from sklearn_lrvb.mean_field.exponential_families.matrices import (
    from_root,
    inverse_root,
    log_determinant_of_triangular,
    symmetric_kronecker_square,
)
from sklearn_lrvb.symmetric_matrices import symmetrized

_LOG_2 = math.log(2.0)


@dataclass(frozen=True)
class Wishart(ExponentialFamily):
    """Wishart family of a matrix; statistics ``value`` Lambda (P, P) and ``log_det`` log|Lambda| ().

    Natural parameters (-A/2, (nu - P - 1)/2) with nu degrees of freedom and the inverse scale A.

    Parameters
    ----------
    n_features : int
        P, at least 1.

    See Also
    --------
    ExponentialFamily : Shapes, errors and an example of every method.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_lrvb.mean_field.exponential_families import Wishart
    >>> family = Wishart(2)
    >>> natural = family.natural_parameters(degrees_of_freedom=5.0, inverse_scale=2.0 * np.eye(2))
    >>> family.mean_parameters(natural).round(4)  # nu A^-1, E log|Lambda|
    array([2.5   , 0.    , 0.    , 2.5   , 1.1259])
    >>> family.sample(natural, n_draws=3, random_state=0).shape
    (3, 2, 2)
    """

    n_features: int

    def __post_init__(self) -> None:
        require_count("n_features", self.n_features)

    @property
    def statistics(self) -> dict[str, tuple[int, ...]]:
        """``value`` Lambda (P, P) and ``log_det`` log|Lambda| ()."""
        return {"value": (self.n_features, self.n_features), "log_det": ()}

    def natural_parameters(
        self, degrees_of_freedom: ArrayLike, inverse_scale: ArrayLike
    ) -> NDArray[np.float64]:
        """Natural parameters (-A/2, (nu - P - 1)/2), flat: (...), (..., P, P) -> (..., P^2 + 1).

        Parameters
        ----------
        degrees_of_freedom : array-like of shape (...)
            Above P - 1.
        inverse_scale : array-like of shape (..., P, P)
            A, symmetric positive definite, in squared units of the features; the mean is nu A^-1.

        Returns
        -------
        natural : ndarray of shape (..., P^2 + 1)
            Those of every copy.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn_lrvb.mean_field.exponential_families import Wishart
        >>> Wishart(2).natural_parameters(degrees_of_freedom=5.0, inverse_scale=2.0 * np.eye(2))
        array([-1., -0., -0., -1.,  1.])
        """
        half_freedom = 0.5 * np.subtract(degrees_of_freedom, self.n_features + 1.0)
        return self.pack(np.multiply(-0.5, inverse_scale), half_freedom)

    def _split(self, natural):
        """nu (...), and A (..., P, P)."""
        natural = np.asarray(natural, dtype=float)
        value = natural[..., :-1].reshape(*natural.shape[:-1], self.n_features, self.n_features)
        return 2.0 * natural[..., -1] + self.n_features + 1.0, -2.0 * symmetrized(value)

    def _root(self, natural):
        """nu, R upper triangular with R R' = A^-1, and log|A|."""
        degrees_of_freedom, inverse_scale = self._split(natural)
        root = inverse_root(inverse_scale)
        return degrees_of_freedom, root, -2.0 * log_determinant_of_triangular(root)

    def _scale(self, natural):
        """nu, and W = A^-1."""
        degrees_of_freedom, root, _ = self._root(natural)
        return degrees_of_freedom, from_root(root)

    def log_partition(self, natural: ArrayLike) -> NDArray[np.float64] | np.float64:
        """nu/2 (P log 2 - log|A|) + log Gamma_P(nu/2): (..., D) -> (...)."""
        degrees_of_freedom, _, log_det = self._root(natural)
        return log_partition(degrees_of_freedom, log_det, self.n_features)

    def mean_parameters(self, natural: ArrayLike) -> NDArray[np.float64]:
        """nu A^-1 and E log|Lambda|, flat: (..., D) -> (..., D)."""
        degrees_of_freedom, root, log_det = self._root(natural)
        mean = degrees_of_freedom[..., None, None] * from_root(root)
        expected_log_det = expected_log_determinant(degrees_of_freedom, log_det, self.n_features)
        return np.concatenate(
            [mean.reshape(*degrees_of_freedom.shape, -1), np.asarray(expected_log_det)[..., None]], axis=-1
        )

    def covariance(self, natural: ArrayLike) -> NDArray[np.float64]:
        """V, with Cov(Lambda_ij, Lambda_kl) = nu (W_ik W_jl + W_il W_jk) and W = A^-1: (..., D, D)."""
        degrees_of_freedom, scale = self._scale(natural)
        lead, n_entries = degrees_of_freedom.shape, self.n_features**2
        crossed = 2.0 * scale.reshape(*lead, n_entries)
        covariance = np.empty((*lead, n_entries + 1, n_entries + 1))
        covariance[..., :-1, :-1] = degrees_of_freedom[..., None, None] * symmetric_kronecker_square(scale)
        covariance[..., :-1, -1] = covariance[..., -1, :-1] = crossed
        covariance[..., -1, -1] = self._log_determinant_variance(degrees_of_freedom)
        return covariance

    def variances(self, natural: ArrayLike) -> NDArray[np.float64]:
        """nu (W_ii W_jj + W_ij^2) of Lambda_ij, and that of log|Lambda|."""
        degrees_of_freedom, scale = self._scale(natural)
        diagonal = np.einsum("...pp->...p", scale)
        of_entries = diagonal[..., :, None] * diagonal[..., None, :] + scale**2
        of_entries *= degrees_of_freedom[..., None, None]
        of_log_det = self._log_determinant_variance(degrees_of_freedom)[..., None]
        return np.concatenate([of_entries.reshape(*degrees_of_freedom.shape, -1), of_log_det], axis=-1)

    def covariance_product(self, natural: ArrayLike, vectors: ArrayLike) -> NDArray[np.float64]:
        """With h = trace(B Lambda) + c log|Lambda|, Cov(Lambda, h) = 2 nu W B W + 2 c W.

        It takes P^3 steps a column, instead of P^4.
        """
        degrees_of_freedom, scale = self._scale(natural)
        scale = scale[..., None, :, :]
        columns = np.moveaxis(np.asarray(vectors, dtype=float), -1, -2)
        n_features, of_log_det = self.n_features, columns[..., -1]
        matrices = symmetrized(columns[..., :-1].reshape(*columns.shape[:-1], n_features, n_features))
        freedom = 2.0 * degrees_of_freedom[..., None, None, None]
        response = freedom * (scale @ matrices @ scale) + 2.0 * of_log_det[..., None, None] * scale
        log_det = 2.0 * np.einsum("...pq,...pq->...", scale, matrices)
        log_det = log_det + self._log_determinant_variance(degrees_of_freedom)[..., None] * of_log_det
        flat = response.reshape(*response.shape[:-2], -1)
        return np.moveaxis(np.concatenate([flat, log_det[..., None]], axis=-1), -2, -1)

    def _log_determinant_variance(self, degrees_of_freedom):
        """Var log|Lambda|: (...) -> (...)."""
        explained = 2.0 * self.n_features / degrees_of_freedom
        halves = half_degrees_of_freedom(degrees_of_freedom, self.n_features)
        return explained + log_determinant_excess_variance(halves)

    @property
    def derived(self) -> dict[str, tuple[int, ...]]:
        """``covariance`` Lambda^-1 (P, P)."""
        return {"covariance": (self.n_features, self.n_features)}

    def derived_moments(self, natural: ArrayLike) -> Moments:
        """Those of an inverse Wishart matrix: E Lambda^-1 = A / (nu - P - 1), infinite unless nu > P + 1."""
        degrees_of_freedom, inverse_scale = self._split(natural)
        lead, n_entries = degrees_of_freedom.shape, self.n_features**2
        excess = (degrees_of_freedom - self.n_features - 1.0)[..., None, None]
        flat = inverse_scale.reshape(*lead, n_entries)
        mean = np.where(excess[..., 0] > 0, flat / np.where(excess[..., 0] > 0, excess[..., 0], 1.0), np.inf)
        safe = np.where(excess > 0, excess, np.inf)
        unit = np.eye(n_entries).reshape(2 * (self.n_features,) + (n_entries,))
        symmetric_units = 0.5 * (unit + unit.swapaxes(0, 1)).reshape(n_entries, n_entries)
        cross = np.concatenate([-2.0 * symmetric_units / safe, -2.0 * flat[..., None] / safe**2], axis=-1)
        products = 2.0 * flat[..., :, None] * flat[..., None, :]
        products = products + excess * symmetric_kronecker_square(inverse_scale)
        exists = excess > 2.0
        divisor = np.where(exists, (excess + 1.0) * excess**2 * (excess - 2.0), 1.0)
        return mean, cross, np.where(exists, products / divisor, np.inf)

    def derived_of(self, value: ArrayLike) -> NDArray[np.float64]:
        """Lambda^-1, flat: (..., P, P) -> (..., P^2)."""
        inverse = np.linalg.inv(np.asarray(value, dtype=float))
        return inverse.reshape(*inverse.shape[:-2], -1)

    def check_domain(self, natural: NDArray[np.float64]) -> None:
        """The inverse scale must be positive definite and the degrees of freedom above P - 1."""
        degrees_of_freedom, inverse_scale = self._split(natural)
        too_few = ~(degrees_of_freedom > self.n_features - 1)
        message = f"the degrees of freedom {{}} are not above P - 1 = {self.n_features - 1}"
        refuse(degrees_of_freedom[..., None], too_few[..., None], message, ["log_det"])
        refuse_indefinite(inverse_scale, "the inverse scale", "value")

    def default_natural_parameters(self) -> NDArray[np.float64]:
        """Those of P + 1 degrees of freedom and E Lambda = I, (D,)."""
        degrees_of_freedom = self.n_features + 1.0
        return np.append(-0.5 * degrees_of_freedom * np.eye(self.n_features), 0.0)

    def coordinates_of(self, natural: NDArray[np.float64], value: ArrayLike) -> NDArray[np.float64]:
        """Bartlett's triangle T, logs of its diagonal first: Lambda = L T T' L' with L L' = A^-1."""
        frame = self._frame(natural)
        whitened = np.linalg.solve(frame, np.asarray(value, dtype=float))
        whitened = np.linalg.solve(frame, whitened.swapaxes(-1, -2))
        triangle = np.linalg.cholesky(symmetrized(whitened))
        row, column = np.tril_indices(self.n_features, k=-1)
        diagonal = np.log(np.einsum("...pp->...p", triangle))
        return np.concatenate([diagonal, triangle[..., row, column]], axis=-1)

    def from_coordinates(self, natural: NDArray[np.float64], coordinates: ArrayLike) -> NDArray[np.float64]:
        """Lambda of Bartlett's triangle: (..., P (P + 1) / 2) -> (..., P, P)."""
        coordinates, n_features = np.asarray(coordinates, dtype=float), self.n_features
        triangle = np.zeros((*coordinates.shape[:-1], n_features, n_features))
        np.einsum("...pp->...p", triangle)[...] = np.exp(coordinates[..., :n_features])
        row, column = np.tril_indices(n_features, k=-1)
        triangle[..., row, column] = coordinates[..., n_features:]
        return from_root(self._frame(natural) @ triangle)

    def log_volume(self, coordinates: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sum of (P + 1 - i) log T_ii, i from 0: T has T_ii^(P - i) for volume, and its logs one more."""
        n_features = self.n_features
        return coordinates[..., :n_features] @ np.arange(n_features + 1.0, 1.0, -1.0)

    def coordinate_moments(self, natural: ArrayLike) -> Moments:
        """Those of Bartlett's triangle: independent entries, T_ii^2 chi squared and T_ij standard normal.

        As A changes by -2 H, L becomes L (I + M) with M_ii = (L' H L)_ii, and 2 (L' H L)_ij below, which
        moves E log T_ii by M_ii, and E T_ij by M_ij E T_jj.
        """
        degrees_of_freedom, _ = self._split(natural)
        lead, n_features = degrees_of_freedom.shape, self.n_features
        half = half_degrees_of_freedom(degrees_of_freedom, n_features)
        row, column = np.tril_indices(n_features, k=-1)
        mean_log = 0.5 * (digamma(half) + _LOG_2)
        mean = np.concatenate([mean_log, np.zeros((*lead, len(row)))], axis=-1)
        frame = self._frame(natural)
        # (L' H L)_ij is the sum of L_ki H_kl L_lj, with the symmetric part of H.
        products = np.einsum("...ki,...lj->...ijkl", frame, frame)
        products = 0.5 * (products + products.swapaxes(-1, -2)).reshape(*lead, n_features, n_features, -1)
        diagonal_mean = np.exp(0.5 * _LOG_2 + gammaln(half + 0.5) - gammaln(half))
        below = 2.0 * products[..., row, column, :] * diagonal_mean[..., column, None]
        of_scale = np.concatenate([np.einsum("...iik->...ik", products), below], axis=-2)
        variances = 0.25 * zeta(2.0, half)
        of_freedom = np.concatenate([2.0 * variances, np.zeros((*lead, len(row)))], axis=-1)
        variances = np.concatenate([variances, np.ones((*lead, len(row)))], axis=-1)
        covariance = variances[..., None] * np.eye(variances.shape[-1])
        return mean, np.concatenate([of_scale, of_freedom[..., None]], axis=-1), covariance

    def _frame(self, natural):
        """L lower triangular with L L' = A^-1: (..., P, P)."""
        return np.linalg.cholesky(self._scale(natural)[1])

    def sample(self, natural: ArrayLike, n_draws: int, random_state: Seed = None) -> NDArray:
        """Draws of Lambda by Bartlett's factor: natural parameters (..., D) -> (n_draws, ..., P, P)."""
        rng = check_random_state(random_state)
        degrees_of_freedom, root, _ = self._root(natural)
        shape = (n_draws, *degrees_of_freedom.shape)
        triangle = np.tril(rng.normal(size=(*shape, self.n_features, self.n_features)), k=-1)
        freedom = degrees_of_freedom[..., None] - np.arange(self.n_features)
        squares = rng.chisquare(np.broadcast_to(freedom, (*shape, self.n_features)))
        np.einsum("...pp->...p", triangle)[...] = np.sqrt(squares)
        return from_root(root @ triangle)

    def statistics_of(self, value: ArrayLike) -> NDArray[np.float64]:
        """(Lambda, log|Lambda|), flat: (..., P, P) -> (..., D)."""
        value = np.asarray(value, dtype=float)
        _, log_det = np.linalg.slogdet(value)
        return np.concatenate([value.reshape(*value.shape[:-2], -1), log_det[..., None]], axis=-1)
