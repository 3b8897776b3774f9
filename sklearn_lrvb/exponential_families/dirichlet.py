"""Dirichlet distribution of probabilities pi, sufficient statistics log pi.

The natural parameter is the concentration alpha, up to a constant. A beta distribution is the
Dirichlet distribution of (v, 1 - v). The last axis runs over the K categories.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import digamma, gammaln, logsumexp, polygamma
from sklearn.utils import check_random_state

from sklearn_lrvb.exponential_families.family import ExponentialFamily, refuse


def log_partition(concentration):
    """log of the integral of prod pi_k^(alpha_k - 1) over the simplex: (..., K) -> (...)."""
    return gammaln(concentration).sum(axis=-1) - gammaln(concentration.sum(axis=-1))


def expected_log(concentration):
    """Mean parameters E log pi = grad A: (..., K) -> (..., K)."""
    return digamma(concentration) - digamma(concentration.sum(axis=-1, keepdims=True))


def covariance_of_log(concentration):
    """V = Cov(log pi) = hess A: (..., K) -> (..., K, K)."""
    covariance = np.empty((*concentration.shape, concentration.shape[-1]))
    covariance[...] = -polygamma(1, concentration.sum(axis=-1))[..., None, None]
    diagonal = np.einsum("...kk->...k", covariance)
    diagonal += polygamma(1, concentration)
    return covariance


def kl_divergence(concentration, prior_concentration):
    """KL(Dirichlet(alpha) || Dirichlet(alpha_0)); alpha_0 = 0 is the improper flat prior on log pi.

    The flat prior's normalising constant counts as 1.
    """
    flat = np.all(prior_concentration == 0)
    prior_log_partition = 0.0 if flat else log_partition(prior_concentration)
    drift = ((concentration - prior_concentration) * expected_log(concentration)).sum(axis=-1)
    return drift - log_partition(concentration) + prior_log_partition


@dataclass(frozen=True)
class Dirichlet(ExponentialFamily):
    """Dirichlet family of probabilities pi; statistic ``log`` log pi (K,).

    Natural parameter alpha - 1.

    Parameters
    ----------
    n_categories : int, K
    """

    n_categories: int

    @property
    def statistics(self):
        """``log`` log pi."""
        return {"log": (self.n_categories,)}

    def natural_parameters(self, concentration):
        """alpha - 1: (..., K) -> (..., K)."""
        return np.asarray(concentration, dtype=float) - 1.0

    def log_partition(self, natural):
        """Log of the multivariate beta function of alpha."""
        return log_partition(1.0 + natural)

    def mean_parameters(self, natural):
        """E log pi."""
        return expected_log(1.0 + natural)

    def covariance(self, natural):
        """Cov(log pi)."""
        return covariance_of_log(1.0 + natural)

    def check_domain(self, natural):
        """Every concentration must be positive."""
        for statistic, entries in self.slices.items():
            concentration = 1.0 + natural[..., entries]
            refuse(concentration, ~(concentration > 0), "the concentration {} is not positive", statistic)

    def default_natural_parameters(self):
        """The uniform distribution on the simplex."""
        return np.zeros(self.n_categories)

    def sample(self, natural, n_draws, random_state=None):
        """Draws of pi: (n_draws, ..., K)."""
        log_draws = self._sample_log(natural, n_draws, random_state)
        return np.exp(log_draws)

    def _sample_log(self, natural, n_draws, random_state):
        """Draws of log pi, which do not underflow where a concentration is small."""
        random_state = check_random_state(random_state)
        concentration = 1.0 + natural
        shape = (n_draws, *concentration.shape)
        # a gamma variable of shape a is one of shape a + 1 times u^(1/a)
        log_gamma = np.log(random_state.standard_gamma(np.broadcast_to(concentration + 1.0, shape)))
        log_gamma += np.log(random_state.uniform(size=shape)) / concentration
        return log_gamma - logsumexp(log_gamma, axis=-1, keepdims=True)

    def statistics_of(self, value):
        """log pi: (..., K) -> (..., K)."""
        return np.log(value)
