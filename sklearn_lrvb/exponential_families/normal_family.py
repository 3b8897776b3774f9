"""What all normal families share: their variable x is a statistic, and may be any real numbers."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_lrvb.exponential_families.family import ExponentialFamily


class NormalFamily(ExponentialFamily):
    """Normal families of a vector x, which is their first statistic."""

    def coordinates_of(self, natural: NDArray[np.float64], value: ArrayLike) -> NDArray[np.float64]:
        """x itself."""
        return np.asarray(value, dtype=float)

    def from_coordinates(self, natural: NDArray[np.float64], coordinates: ArrayLike) -> NDArray[np.float64]:
        """x itself."""
        return np.asarray(coordinates, dtype=float)

    def coordinate_moments(
        self, natural: ArrayLike
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Those of x."""
        return self._linear_coordinates(natural, np.eye(self.slices["value"].stop, self.n_statistics))
