"""Gamma distribution of a positive number x, with the sufficient statistics x and log x."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import digamma

from sklearn_lrvb.distributions.special_functions import (
    gamma_quantile,
    inverse_gamma_quantile,
    log_gamma_rise,
)
from sklearn_lrvb.mean_field.exponential_families.family import Moments, Seed, refuse
from sklearn_lrvb.mean_field.exponential_families.wishart import Wishart


def _negative_moment(shape, rate, power):
    """E x^-power, infinite where it does not exist; the arguments broadcast."""
    exists = shape > power
    log_moment = power * np.log(rate) - log_gamma_rise(np.where(exists, shape - power, 1.0), power)
    return np.where(exists, np.exp(log_moment), np.inf)


def _variance_quantile(normal, mean, deviation):
    """Quantile of an inverse gamma variable of this mean and standard deviation."""
    shape = 2.0 + (mean / deviation) ** 2
    return inverse_gamma_quantile(normal, shape, mean * (shape - 1.0))


def _standard_deviation_quantile(normal, mean, deviation):
    """Quantile of the root of an inverse gamma variable, of this mean and standard deviation.

    With b = shape - 1, 1 + (deviation / mean)^2 is 1 + 1/(4 b) + 1/(32 b^2) and smaller terms.
    """
    excess = 0.125 + (0.5 * mean / deviation) ** 2
    return np.sqrt(inverse_gamma_quantile(normal, 1.0 + excess, (mean**2 + deviation**2) * excess))


@dataclass(frozen=True)
class Gamma(Wishart):
    """Gamma family of a positive number x; statistics ``value`` x () and ``log`` log x ().

    It is the Wishart distribution of one feature without the feature's axes: shape nu/2, rate A/2. Natural
    parameters (-rate, shape - 1).

    See Also
    --------
    ExponentialFamily : Shapes, errors and an example of every method.

    Examples
    --------
    >>> from sklearn_lrvb.mean_field.exponential_families import Gamma
    >>> natural = Gamma().natural_parameters(shape=3.0, rate=2.0)
    >>> Gamma().mean_parameters(natural).round(4)  # E x, E log x
    array([1.5   , 0.2296])
    >>> Gamma().covariance(natural).round(4)
    array([[0.75  , 0.5   ],
           [0.5   , 0.3949]])
    """

    n_features: int = field(default=1, init=False, repr=False)

    @property
    def statistics(self) -> dict[str, tuple[int, ...]]:
        """Scalars ``value`` x and ``log`` log x."""
        return {"value": (), "log": ()}

    def natural_parameters(self, shape: ArrayLike, rate: ArrayLike) -> NDArray[np.float64]:
        """Natural parameters (-rate, shape - 1), which broadcast: (...), (...) -> (..., 2).

        Parameters
        ----------
        shape : array-like of shape (...)
            Shape, positive.
        rate : array-like of shape (...)
            Rate, the inverse of the scale, positive; in one over the unit of x.

        Returns
        -------
        natural : ndarray of shape (..., 2)
            Those of every copy.

        Examples
        --------
        >>> from sklearn_lrvb.mean_field.exponential_families import Gamma
        >>> Gamma().natural_parameters(shape=3.0, rate=2.0)
        array([-2.,  2.])
        """
        return self.pack(np.negative(rate), np.subtract(shape, 1.0))

    def check_domain(self, natural: NDArray[np.float64]) -> None:
        """Shape and rate must be positive."""
        rate, shape = -natural[..., :1], 1.0 + natural[..., 1:]
        refuse(rate, ~(rate > 0), "the rate {} is not positive", ["value"])
        refuse(shape, ~(shape > 0), "the shape {} is not positive", ["log"])

    @property
    def derived(self) -> dict[str, tuple[int, ...]]:
        """Scalars ``variance`` 1/x and ``standard_deviation`` x^(-1/2), where x is a precision."""
        return {"variance": (), "standard_deviation": ()}

    def derived_moments(self, natural: ArrayLike) -> Moments:
        """By E x^(-s) = rate^s Gamma(shape - s) / Gamma(shape), infinite unless the shape is above s."""
        natural = np.asarray(natural, dtype=float)
        rate, shape = -natural[..., :1], 1.0 + natural[..., 1:]
        powers = np.array([1.0, 0.5])
        mean = _negative_moment(shape, rate, powers)
        exists = np.isfinite(mean)
        finite = np.where(exists, mean, 0.0)
        of_rate = -powers * finite / rate
        of_shape = finite * (digamma(np.where(exists, shape - powers, 1.0)) - digamma(shape))
        second = _negative_moment(shape[..., None], rate[..., None], powers[:, None] + powers)
        covariance = second - finite[..., :, None] * finite[..., None, :]
        return mean, np.stack([of_rate, of_shape], axis=-1), covariance

    @property
    def quantiles(self) -> dict[str, Callable]:
        """Of gamma variables, of inverse gamma variables for variances, and of their roots."""
        return {
            "value": gamma_quantile,
            "variance": _variance_quantile,
            "standard_deviation": _standard_deviation_quantile,
        }

    def derived_of(self, value: ArrayLike) -> NDArray[np.float64]:
        """(1/x, x^(-1/2)): (...) -> (..., 2)."""
        value = np.asarray(value, dtype=float)
        return np.stack([1.0 / value, value**-0.5], axis=-1)

    def coordinates_of(self, natural: NDArray[np.float64], value: ArrayLike) -> NDArray[np.float64]:
        """log x: (...) -> (..., 1)."""
        return (np.log(value))[..., None]

    def from_coordinates(self, natural: NDArray[np.float64], coordinates: ArrayLike) -> NDArray[np.float64]:
        """exp u: (..., 1) -> (...)."""
        return np.exp(coordinates)[..., 0]

    def log_volume(self, coordinates: NDArray[np.float64]) -> NDArray[np.float64]:
        """u, the derivative of exp u being itself: (..., 1) -> (...)."""
        return coordinates[..., 0]

    def coordinate_moments(self, natural: ArrayLike) -> Moments:
        """Those of log x, which is a statistic."""
        return self._linear_coordinates(natural, np.array([[0.0, 1.0]]))

    def sample(self, natural: ArrayLike, n_draws: int, random_state: Seed = None) -> NDArray:
        """Draws of x: natural parameters (..., 2) -> (n_draws, ...)."""
        return super().sample(natural, n_draws, random_state)[..., 0, 0]

    def statistics_of(self, value: ArrayLike) -> NDArray[np.float64]:
        """(x, log x): (...) -> (..., 2)."""
        value = np.asarray(value, dtype=float)
        return np.stack([value, np.log(value)], axis=-1)
