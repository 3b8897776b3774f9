"""Scales of rows under draws, where components have Student's t distribution.

Given its component and the parameters, a row of squared distance delta that shows P features has the scale

    u ~ Gamma((nu + P)/2, (nu + delta)/2).

*Conventions.* K components, d draws, n rows of a block.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import digamma, gammaincinv, ndtri

from sklearn_lrvb.sampling.random_assignments import LEAST_PROBABILITY

N_UNIFORMS_OF_GAMMA = 3  # Uniform numbers that one gamma variable takes.
_OF_SCALES = 2**40  # The first repetition of a stream that scales are drawn by: labels have smaller ones.


@dataclass(frozen=True)
class ScalesUnderDraws:
    """Scales of the rows of a block, given the component and the parameters.

    Attributes
    ----------
    shape : (K, d, 1) or (K, d, n)
    rate : (K, d, n)
    """

    shape: np.ndarray
    rate: np.ndarray

    @property
    def mean(self):
        """E u, (K, d, n)."""
        return self.shape / self.rate

    def expected_log_minus_mean(self):
        """E log u - E u, (K, d, n)."""
        return digamma(self.shape) - np.log(self.rate) - self.mean

    def drawn(self, assigned, uniforms):
        """The scales of rows in the components that they are assigned to, and one where in none of them.

        (K, d, n), ones and zeros, and uniform numbers (3, d, n) -> (d, n)
        """
        shape, rate = (np.einsum("kdn,kdn->dn", assigned, own) for own in self._by_component())
        is_in = rate > 0
        scales = gamma_variables(np.where(is_in, shape, 1.0), uniforms) / np.where(is_in, rate, 1.0)
        return np.where(is_in, scales, 1.0)

    def multiply_by_drawn(self, times, block, stream):
        """Write sums of drawn scales of complete rows over how often these are assigned, (K, d, n).

        A sum of gamma variables of one rate is a gamma variable.
        """
        if block.sample_weight is None:
            times *= self.drawn(times, _uniforms(block, stream, times.shape[1]))
            return
        # A row that counts several times may be in several components.
        for k, (own, shape, rate) in enumerate(zip(times, *self._by_component(), strict=True)):
            uniforms, some = _uniforms(block, stream, len(own), k), own > 0
            own[some] = gamma_variables(shape[some] * own[some], uniforms[:, some]) / rate[some]

    def _by_component(self):
        """Shapes and rates of the scales, (K, d, n) each."""
        return np.broadcast_to(self.shape, self.rate.shape), self.rate


def _uniforms(block, stream, n_draws, component=0):
    """Uniform numbers by which scales of complete rows are drawn, (3, d, n)."""
    first = _OF_SCALES + N_UNIFORMS_OF_GAMMA * component
    repetitions = range(first, first + N_UNIFORMS_OF_GAMMA)
    return np.stack([stream.numbers_of_block(n_draws, block, repetition) for repetition in repetitions])


def gamma_variables(shapes, uniforms):
    """Standard gamma variables of some shapes, each by three uniform numbers of its own: (...), (3, ...).

    The first two are one attempt of G. Marsaglia and W. W. Tsang, "A simple method for generating gamma
    variables", ACM Transactions on Mathematical Software 26 (2000), 363-372. Where it is rejected, a quantile
    by the third number takes its place, which costs ten times as much.
    """
    normal, accepting, other = np.maximum(uniforms, LEAST_PROBABILITY)
    normal = ndtri(normal)
    size = np.maximum(shapes, 1.0) - 1.0 / 3.0
    cubes = (1.0 + normal / np.sqrt(9.0 * size)) ** 3
    is_positive = (cubes > 0.0) & (shapes >= 1.0)
    safe = np.where(is_positive, cubes, 1.0)
    log_ratios = 0.5 * np.square(normal) + size * (1.0 - safe + np.log(safe))
    rejected = ~(is_positive & (np.log(accepting) < log_ratios))
    variables = size * safe
    variables[rejected] = gammaincinv(np.broadcast_to(shapes, size.shape)[rejected], other[rejected])
    return variables
