"""Beta distribution of a probability v, with the sufficient statistics log v and log(1 - v)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, log_expit, logit

from sklearn_lrvb.distributions.special_functions import negative_gamma_quantile
from sklearn_lrvb.mean_field.exponential_families.dirichlet import Dirichlet
from sklearn_lrvb.mean_field.exponential_families.family import Moments, Seed


@dataclass(frozen=True)
class Beta(Dirichlet):
    """Beta family of a probability v; statistics ``log`` log v () and ``log_complement`` log(1 - v) ().

    It is the Dirichlet distribution of (v, 1 - v) with v alone as the variable. Natural parameters
    (a - 1, b - 1).

    See Also
    --------
    ExponentialFamily : Shapes, errors and an example of every method.

    Examples
    --------
    >>> from sklearn_lrvb.mean_field.exponential_families import Beta
    >>> natural = Beta().natural_parameters(a=2.0, b=1.0)
    >>> Beta().mean_parameters(natural)  # E log v, E log(1 - v)
    array([-0.5, -1.5])
    >>> Beta().sample(natural, n_draws=3, random_state=0).shape
    (3,)
    """

    n_categories: int = field(default=2, init=False, repr=False)

    @property
    def statistics(self) -> dict[str, tuple[int, ...]]:
        """Scalars ``log`` log v and ``log_complement`` log(1 - v)."""
        return {"log": (), "log_complement": ()}

    def natural_parameters(self, a: ArrayLike, b: ArrayLike) -> NDArray[np.float64]:  # type: ignore[override]
        """Natural parameters (a - 1, b - 1) from the two shapes, which broadcast: (...), (...) -> (..., 2).

        Parameters
        ----------
        a, b : array-like of shape (...)
            The two shapes, positive; the mean of v is ``a / (a + b)``.

        Returns
        -------
        natural : ndarray of shape (..., 2)
            Those of every copy.

        Examples
        --------
        The uniform distribution has shapes of one:

        >>> from sklearn_lrvb.mean_field.exponential_families import Beta
        >>> Beta().natural_parameters(a=[1.0, 3.0], b=1.0)
        array([[0., 0.],
               [2., 0.]])
        """
        return self.pack(np.subtract(a, 1.0), np.subtract(b, 1.0))

    @property
    def derived(self) -> dict[str, tuple[int, ...]]:
        """Scalar ``probability`` v."""
        return {"probability": ()}

    def derived_moments(self, natural: ArrayLike) -> Moments:
        """Those of the first of the two probabilities (v, 1 - v)."""
        mean, cross_covariance, covariance = super().derived_moments(natural)
        return mean[..., :1], cross_covariance[..., :1, :], covariance[..., :1, :1]

    @property
    def quantiles(self) -> dict[str, Callable]:
        """Of beta variables, and of negative gamma variables for the logs."""
        return {**super().quantiles, "log_complement": negative_gamma_quantile}

    def derived_of(self, value: ArrayLike) -> NDArray[np.float64]:
        """v itself: (...) -> (..., 1)."""
        return np.asarray(value, dtype=float)[..., None]

    def coordinates_of(self, natural: NDArray[np.float64], value: ArrayLike) -> NDArray[np.float64]:
        """Log-odds of v: (...) -> (..., 1)."""
        return (logit(value))[..., None]

    def from_coordinates(self, natural: NDArray[np.float64], coordinates: ArrayLike) -> NDArray[np.float64]:
        """v of log-odds: (..., 1) -> (...)."""
        return expit(coordinates)[..., 0]

    def log_volume(self, coordinates: NDArray[np.float64]) -> NDArray[np.float64]:
        """log v + log(1 - v): (..., 1) -> (...)."""
        return (log_expit(coordinates) + log_expit(-coordinates))[..., 0]

    def coordinate_moments(self, natural: ArrayLike) -> Moments:
        """Those of the log-odds, the difference of the statistics."""
        return self._linear_coordinates(natural, np.array([[1.0, -1.0]]))

    def sample(self, natural: ArrayLike, n_draws: int, random_state: Seed = None) -> NDArray:
        """Draws of v: natural parameters (..., 2) -> (n_draws, ...)."""
        return super().sample(natural, n_draws, random_state)[..., 0]

    def statistics_of(self, value: ArrayLike) -> NDArray[np.float64]:
        """(log v, log(1 - v)): (...) -> (..., 2)."""
        return np.stack([np.log(value), np.log1p(-np.asarray(value))], axis=-1)
