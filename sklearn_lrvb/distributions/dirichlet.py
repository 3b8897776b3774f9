"""Dirichlet distribution of probabilities pi, with the sufficient statistics log pi.

The functions take the concentration alpha, whose last axis runs over the K categories. A beta distribution is
the Dirichlet distribution of (v, 1 - v).
"""

import numpy as np
from scipy.special import digamma, gammaln, zeta

from sklearn_lrvb.distributions.special_functions import CANCELS_FROM, log_gamma_rise, stirling_remainder

# Total concentration below which the log gamma functions are subtracted from each other: their own rounding,
# which stays when their large parts cancel, is then less than 1e-12 in all. (`CANCELS_FROM` is lower, because
# a Wishart distribution has as many of them as features.)
_SUBTRACTED_BELOW = 1000.0


def log_partition(concentration):
    """log of the integral of prod pi_k^(alpha_k - 1) over the simplex: (..., K) -> (...).

    The large parts x log x - x of the log gamma functions cancel. Where they are so large that digits would
    be lost, they are left out from the start.
    """
    total = concentration.sum(axis=-1, keepdims=True)
    if total.max(initial=0.0) < _SUBTRACTED_BELOW:
        return gammaln(concentration).sum(axis=-1) - gammaln(total)[..., 0]
    # The sum of the others is not the total less one's own, which would cancel for a share close to one.
    others = concentration @ (1.0 - np.eye(concentration.shape[-1]))
    leading = ((0.5 - concentration) * np.log1p(others / concentration)).sum(axis=-1)
    remainders = stirling_remainder(np.concatenate([concentration, total], axis=-1))
    n_free = concentration.shape[-1] - 1
    leading -= 0.5 * n_free * np.log(total[..., 0] / (2.0 * np.pi))
    return leading + remainders[..., :-1].sum(axis=-1) - remainders[..., -1]


def log_density_of_logit(log_stick, log_rest, a, b):
    """Log density of the logit of v ~ Beta(a, b), from log v and log(1 - v): (..., m) each -> (..., m)."""
    return a * log_stick + b * log_rest - log_partition(np.stack([a, b], axis=-1))


def expected_log(concentration):
    """Mean parameters E log pi = grad A: (..., K) -> (..., K)."""
    return digamma(concentration) - digamma(concentration.sum(axis=-1, keepdims=True))


def covariance_of_log(concentration):
    """V = Cov(log pi) = hess A: (..., K) -> (..., K, K)."""
    covariance = np.empty((*concentration.shape, concentration.shape[-1]))
    # The trigamma function is zeta(2, x).
    covariance[...] = -zeta(2.0, concentration.sum(axis=-1))[..., None, None]
    diagonal = np.einsum("...kk->...k", covariance)
    diagonal += zeta(2.0, concentration)
    return covariance


def prior_log_partition(concentration):
    """`log_partition`, or 0 where all concentrations are 0: the improper flat prior on log pi."""
    return 0.0 if np.all(concentration == 0) else log_partition(concentration)


def expectations(concentration, prior_concentration, prior_constant):
    """E log pi, and KL(Dirichlet(alpha) || Dirichlet(alpha_0)) in nats: (..., K) -> (..., K), (...).

    Parameters
    ----------
    concentration, prior_concentration : (..., K) and (K,), alpha and alpha_0
    prior_constant : float, `prior_log_partition` of alpha_0; that of a flat prior counts as 0
    """
    total = concentration.sum(axis=-1, keepdims=True)
    shapes = np.concatenate([concentration, total], axis=-1)
    digammas = digamma(shapes)
    mean_log = digammas[..., :-1] - digammas[..., -1:]
    rise, prior_total = concentration - prior_concentration, prior_concentration.sum()
    terms = rise * mean_log
    if prior_total >= CANCELS_FROM:  # The two log partition functions would cancel.
        of_total = log_gamma_rise(prior_total, rise.sum(axis=-1))
        return mean_log, (terms - log_gamma_rise(prior_concentration, rise)).sum(axis=-1) + of_total
    if total.max() >= _SUBTRACTED_BELOW:
        return mean_log, terms.sum(axis=-1) - log_partition(concentration) + prior_constant
    log_gammas = gammaln(shapes)
    terms -= log_gammas[..., :-1]
    return mean_log, terms.sum(axis=-1) + (log_gammas[..., -1] + prior_constant)
