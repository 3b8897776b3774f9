"""Dirichlet distribution of probabilities pi, with the sufficient statistics log pi.

The class takes natural parameters. The last axis runs over the K categories. A beta distribution is the
Dirichlet distribution of (v, 1 - v).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp, softmax
from sklearn.utils import check_random_state

from sklearn_lrvb.distributions.dirichlet import covariance_of_log, expected_log, log_partition
from sklearn_lrvb.distributions.special_functions import beta_quantile, negative_gamma_quantile
from sklearn_lrvb.mean_field.exponential_families.family import (
    ExponentialFamily,
    Moments,
    Seed,
    refuse,
    require_count,
)
from sklearn_lrvb.symmetric_matrices import symmetrized


@dataclass(frozen=True)
class Dirichlet(ExponentialFamily):
    """Dirichlet family of probabilities pi; statistic ``log`` log pi (K,).

    Natural parameters alpha - 1 with the concentration alpha.

    Parameters
    ----------
    n_categories : int
        K, at least 1.

    See Also
    --------
    ExponentialFamily : Shapes, errors and an example of every method.

    Examples
    --------
    >>> from sklearn_lrvb.mean_field.exponential_families import Dirichlet
    >>> family = Dirichlet(2)
    >>> natural = family.natural_parameters([2.0, 1.0])
    >>> family.mean_parameters(natural)  # E log pi
    array([-0.5, -1.5])
    >>> family.sample(natural, n_draws=3, random_state=0).sum(axis=1).round(12)
    array([1., 1., 1.])
    """

    n_categories: int

    def __post_init__(self) -> None:
        require_count("n_categories", self.n_categories)

    @property
    def statistics(self) -> dict[str, tuple[int, ...]]:
        """``log`` log pi, (K,)."""
        return {"log": (self.n_categories,)}

    @property
    def variable(self) -> str:
        """``probability``."""
        return "probability"

    def natural_parameters(self, concentration: ArrayLike) -> NDArray[np.float64]:
        """Natural parameters alpha - 1 from the concentration: (..., K) -> (..., K).

        Parameters
        ----------
        concentration : array-like of shape (..., K)
            Positive, one number for every category.

        Returns
        -------
        natural : ndarray of shape (..., K)
            Those of every copy.

        Examples
        --------
        The uniform distribution of three probabilities:

        >>> from sklearn_lrvb.mean_field.exponential_families import Dirichlet
        >>> Dirichlet(3).natural_parameters([1.0, 1.0, 1.0])
        array([0., 0., 0.])
        """
        return np.asarray(concentration, dtype=float) - 1.0

    def _concentration(self, natural):
        """alpha (..., K)."""
        return 1.0 + np.asarray(natural, dtype=float)

    def log_partition(self, natural: ArrayLike) -> NDArray[np.float64] | np.float64:
        """Log of the multivariate beta function of alpha: (..., K) -> (...)."""
        return log_partition(self._concentration(natural))

    def mean_parameters(self, natural: ArrayLike) -> NDArray[np.float64]:
        """E log pi: (..., K) -> (..., K)."""
        return expected_log(self._concentration(natural))

    def covariance(self, natural: ArrayLike) -> NDArray[np.float64]:
        """Cov(log pi): (..., K) -> (..., K, K)."""
        return covariance_of_log(self._concentration(natural))

    @property
    def derived(self) -> dict[str, tuple[int, ...]]:
        """``probability`` pi (K,)."""
        return {"probability": (self.n_categories,)}

    def derived_moments(self, natural: ArrayLike) -> Moments:
        """E pi = p = alpha / alpha_0, (delta_kl - p_k) / alpha_0, and (diag(p) - p p') / (alpha_0 + 1)."""
        concentration = 1.0 + np.asarray(natural, dtype=float)
        total = concentration.sum(axis=-1)
        mean = concentration / total[..., None]
        identity, total = np.eye(self.n_categories), total[..., None, None]
        covariance = mean[..., :, None] * (identity - mean[..., None, :]) / (total + 1.0)
        return mean, (identity - mean[..., :, None]) / total, symmetrized(covariance)

    @property
    def quantiles(self) -> dict[str, Callable]:
        """Of beta variables, and of negative gamma variables for the logs."""
        return {"probability": beta_quantile, "log": negative_gamma_quantile}

    def derived_of(self, value: ArrayLike) -> NDArray[np.float64]:
        """The probabilities themselves: (..., K) -> (..., K)."""
        return np.asarray(value, dtype=float)

    def check_domain(self, natural: NDArray[np.float64]) -> None:
        """Every concentration must be positive."""
        concentration = self._concentration(natural)
        refuse(concentration, ~(concentration > 0), "the concentration {} is not positive", self.owners)

    def default_natural_parameters(self) -> NDArray[np.float64]:
        """Those of the uniform distribution on the simplex, (K,)."""
        return np.zeros(self.n_categories)

    def coordinates_of(self, natural: NDArray[np.float64], value: ArrayLike) -> NDArray[np.float64]:
        """Logs of the probabilities over the last one: (..., K) -> (..., K - 1)."""
        logs = np.log(value)
        return logs[..., :-1] - logs[..., -1:]

    def from_coordinates(self, natural: NDArray[np.float64], coordinates: ArrayLike) -> NDArray[np.float64]:
        """The probabilities of these log-odds: (..., K - 1) -> (..., K)."""
        coordinates = np.asarray(coordinates, dtype=float)
        logs = np.concatenate([coordinates, np.zeros((*coordinates.shape[:-1], 1))], axis=-1)
        return softmax(logs, axis=-1)

    def log_volume(self, coordinates: NDArray[np.float64]) -> NDArray[np.float64]:
        """The sum of the logs of all probabilities: (..., K - 1) -> (...)."""
        total = np.logaddexp(logsumexp(coordinates, axis=-1), 0.0)
        return coordinates.sum(axis=-1) - (coordinates.shape[-1] + 1) * total

    def coordinate_moments(self, natural: ArrayLike) -> Moments:
        """Those of the logs of the probabilities over the last one, differences of statistics."""
        n_free = self.n_categories - 1
        return self._linear_coordinates(natural, np.eye(n_free, n_free + 1) - np.eye(1, n_free + 1, n_free))

    def sample(self, natural: ArrayLike, n_draws: int, random_state: Seed = None) -> NDArray:
        """Draws of pi: natural parameters (..., K) -> (n_draws, ..., K)."""
        rng, concentration = check_random_state(random_state), self._concentration(natural)
        shape = (n_draws, *concentration.shape)
        # A gamma variable of shape a is one of shape a + 1 times u^(1/a), with u uniform. Its log does not
        # underflow where a is small.
        log_gamma = np.log(rng.standard_gamma(np.broadcast_to(concentration + 1.0, shape)))
        log_gamma += np.log(rng.uniform(size=shape)) / concentration
        return np.exp(log_gamma - logsumexp(log_gamma, axis=-1, keepdims=True))

    def statistics_of(self, value: ArrayLike) -> NDArray[np.float64]:
        """log pi: (..., K) -> (..., K)."""
        return np.log(value)
