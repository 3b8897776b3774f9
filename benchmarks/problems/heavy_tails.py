"""Clusters with the tails of Student's t, of known weights, means, scale matrices and degrees of freedom."""

from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from benchmarks.problems.populations import Population, heavy_noise

N_SAMPLES = 1000
_WEIGHTS = {2: [0.6, 0.4], 3: [0.5, 0.3, 0.2]}
_TRIANGLE = [[0.0, 0.0], [1.0, 0.0], [0.5, np.sqrt(0.75)]]
_SPREAD_OF_SHAPES = 0.3  # of the random square roots of scale matrices about the identity


@dataclass(frozen=True)
class HeavyTails:
    """Two or three clusters of multivariate t rows, all pairs of centers equally far apart.

    Attributes
    ----------
    degrees_of_freedom : float, nu, above two
    distance : float, between two centers, in units of the scale of a cluster: about 1 in all directions
    n_components, n_features : int, K = 2 or 3, and P of two or more
    n_samples : int
    """

    degrees_of_freedom: float
    distance: float
    n_components: int = 2
    n_features: int = 2
    n_samples: int = N_SAMPLES

    @property
    def name(self):
        sizes = f"K = {self.n_components}, P = {self.n_features}"
        return f"t_{self.degrees_of_freedom:g}, {self.distance:g} sd, {sizes}"

    @cached_property
    def population(self):
        """The clusters as a Population, whose covariances are nu/(nu - 2) times the scale matrices."""
        K, P = self.n_components, self.n_features
        means = np.zeros((K, P))
        means[:, :2] = self.distance * np.array(_TRIANGLE[:K])
        shapes = np.random.default_rng(0).normal(size=(K, P, P))
        roots = np.eye(P) + _SPREAD_OF_SHAPES / np.sqrt(P) * shapes
        noise = partial(heavy_noise, degrees_of_freedom=self.degrees_of_freedom)
        return Population(np.array(_WEIGHTS[K]), means, np.sqrt(self._covariance_over_scale) * roots, noise)

    @property
    def scales(self):
        """Scale matrices, (K, P, P)."""
        return self.population.covariances / self._covariance_over_scale

    @property
    def _covariance_over_scale(self):
        return self.degrees_of_freedom / (self.degrees_of_freedom - 2.0)

    def simulate(self, data_set):
        """The rows of one data set, (n_samples, P); the same every time."""
        rng = np.random.default_rng([*self.name.encode(), data_set])
        return self.population.draw(rng, self.n_samples)


HEAVY_TAILS = tuple(
    HeavyTails(degrees_of_freedom, distance, n_components, n_features)
    for degrees_of_freedom in (3, 5)
    for n_components in (2, 3)
    for n_features in (2, 5)
    for distance in (3.0, 6.0)
)
