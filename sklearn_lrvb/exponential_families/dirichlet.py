"""Dirichlet distribution of probabilities pi, sufficient statistics log pi.

The natural parameter is the concentration alpha, up to a constant. A beta distribution is the
Dirichlet distribution of (v, 1 - v). The last axis runs over the K categories.
"""

import numpy as np
from scipy.special import digamma, gammaln, polygamma


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
