"""Gamma distribution of a positive number x, with the sufficient statistics x and log x."""

from dataclasses import dataclass, field

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike, NDArray

from sklearn_lrvb.exponential_families.family import refuse
from sklearn_lrvb.exponential_families.wishart import Wishart


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
    >>> from sklearn_lrvb.exponential_families import Gamma
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
        >>> from sklearn_lrvb.exponential_families import Gamma
        >>> Gamma().natural_parameters(shape=3.0, rate=2.0)
        array([-2.,  2.])
        """
        return self.pack(np.negative(rate), np.subtract(shape, 1.0))

    def check_domain(self, natural: NDArray[np.float64]) -> None:
        """Shape and rate must be positive."""
        rate, shape = -natural[..., :1], 1.0 + natural[..., 1:]
        refuse(rate, ~(rate > 0), "the rate {} is not positive", ["value"])
        refuse(shape, ~(shape > 0), "the shape {} is not positive", ["log"])

    def sample(
        self, natural: ArrayLike, n_draws: int, random_state: int | RandomState | None = None
    ) -> NDArray:
        """Draws of x: natural parameters (..., 2) -> (n_draws, ...)."""
        return super().sample(natural, n_draws, random_state)[..., 0, 0]

    def statistics_of(self, value: ArrayLike) -> NDArray[np.float64]:
        """(x, log x): (...) -> (..., 2)."""
        value = np.asarray(value, dtype=float)
        return np.stack([value, np.log(value)], axis=-1)
