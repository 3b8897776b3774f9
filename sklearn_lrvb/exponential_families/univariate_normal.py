"""Normal distribution of a number x, with the sufficient statistics x and x^2."""

from dataclasses import dataclass, field

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike, NDArray

from sklearn_lrvb.exponential_families.multivariate_normal import MultivariateNormal


@dataclass(frozen=True)
class UnivariateNormal(MultivariateNormal):
    """Normal family of a number x; statistics ``value`` x () and ``square`` x^2 ().

    It is the multivariate normal of one feature, without the feature's axes. Natural parameters
    (lambda m, -lambda/2) with the mean m and the precision lambda.

    See Also
    --------
    ExponentialFamily : Shapes, errors and an example of every method.

    Examples
    --------
    >>> from sklearn_lrvb.exponential_families import UnivariateNormal
    >>> natural = UnivariateNormal().natural_parameters(mean=3.0, precision=4.0)
    >>> UnivariateNormal().mean_parameters(natural)  # E x, E x^2
    array([3.  , 9.25])
    >>> UnivariateNormal().covariance(natural)
    array([[0.25 , 1.5  ],
           [1.5  , 9.125]])
    """

    n_features: int = field(default=1, init=False, repr=False)

    @property
    def statistics(self) -> dict[str, tuple[int, ...]]:
        """Scalars ``value`` x and ``square`` x^2."""
        return {"value": (), "square": ()}

    def natural_parameters(self, mean: ArrayLike, precision: ArrayLike) -> NDArray[np.float64]:
        """Natural parameters (lambda m, -lambda/2), which broadcast: (...), (...) -> (..., 2).

        Parameters
        ----------
        mean : array-like of shape (...)
            Mean m, in units of x.
        precision : array-like of shape (...)
            Precision lambda, one over the variance, positive.

        Returns
        -------
        natural : ndarray of shape (..., 2)
            Those of every copy.

        Examples
        --------
        >>> from sklearn_lrvb.exponential_families import UnivariateNormal
        >>> UnivariateNormal().natural_parameters(mean=3.0, precision=4.0)
        array([12., -2.])
        """
        return self.pack(np.multiply(precision, mean), np.multiply(-0.5, precision))

    def coordinates_of(self, natural: NDArray[np.float64], value: ArrayLike) -> NDArray[np.float64]:
        """x itself: (...) -> (..., 1)."""
        return (np.asarray(value, dtype=float))[..., None]

    def from_coordinates(self, natural: NDArray[np.float64], coordinates: ArrayLike) -> NDArray[np.float64]:
        """x itself: (..., 1) -> (...)."""
        return np.asarray(coordinates, dtype=float)[..., 0]

    def sample(
        self, natural: ArrayLike, n_draws: int, random_state: int | RandomState | None = None
    ) -> NDArray:
        """Draws of x: natural parameters (..., 2) -> (n_draws, ...)."""
        return super().sample(natural, n_draws, random_state)[..., 0]

    def statistics_of(self, value: ArrayLike) -> NDArray[np.float64]:
        """(x, x^2): (...) -> (..., 2)."""
        return super().statistics_of(np.expand_dims(value, -1))
