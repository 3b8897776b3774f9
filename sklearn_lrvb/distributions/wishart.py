"""Wishart distribution of a precision matrix Lambda (P, P), with nu > P - 1 degrees of freedom.

Its density is proportional to |Lambda|^((nu - P - 1)/2) exp(-trace(A Lambda)/2) with the inverse scale A, and
E Lambda = nu A^-1. The functions take nu and log|A|, all that they need of A.
"""

import functools
import math

import numpy as np
from scipy.special import digamma, gammaln, zeta

from sklearn_lrvb.distributions.special_functions import log_gamma_rise

_LOG_2, _LOG_PI = math.log(2.0), math.log(math.pi)


@functools.lru_cache(maxsize=64)
def _range(n_features):
    """0, ..., P - 1 as floats, (P,)."""
    return np.arange(float(n_features))


def half_degrees_of_freedom(degrees_of_freedom, n_features):
    """(nu - i)/2 for i = 0..P-1: (...) -> (..., P)."""
    return 0.5 * (np.asarray(degrees_of_freedom)[..., None] - _range(n_features))


def log_partition(degrees_of_freedom, log_det_inverse_scale, n_features):
    """nu/2 (P log 2 - log|A|) + log Gamma_P(nu/2), from nu (...) and log|A| (...): (...).

    It is the log of the integral of |Lambda|^((nu - P - 1)/2) exp(-trace(A Lambda)/2) over the positive
    definite matrices.
    """
    nu = np.asarray(degrees_of_freedom, dtype=float)
    log_gamma = gammaln(half_degrees_of_freedom(nu, n_features)).sum(axis=-1)
    log_gamma += 0.25 * n_features * (n_features - 1) * _LOG_PI
    return 0.5 * nu * (n_features * _LOG_2 - log_det_inverse_scale) + log_gamma


def expected_log_determinant(degrees_of_freedom, log_det_inverse_scale, n_features):
    """E log|Lambda|, the mean parameter of log|Lambda|, from nu (...) and log|A| (...): (...)."""
    of_unit_scale = multivariate_digamma(degrees_of_freedom, n_features) + n_features * _LOG_2
    return of_unit_scale - log_det_inverse_scale


def multivariate_digamma(degrees_of_freedom, n_features):
    """Derivative of log Gamma_P(nu/2) in nu/2, which is E log|A Lambda/2|: (...) -> (...)."""
    return digamma(half_degrees_of_freedom(degrees_of_freedom, n_features)).sum(axis=-1)


def log_determinant_excess_variance(degrees_of_freedom, n_features):
    """Var log|Lambda| - 2 P/nu, its variance around the regression on Lambda: (...) -> (...)."""
    half = half_degrees_of_freedom(degrees_of_freedom, n_features)
    trigamma = zeta(2.0, half)
    return trigamma.sum(axis=-1) - 2.0 * n_features / np.asarray(degrees_of_freedom)


def kl_divergence(
    degrees_of_freedom, mean_log_determinant, prior_degrees_of_freedom, scale_divergence, n_features
):
    """KL(Wishart(nu, A) || Wishart(nu_0, C)) in nats, with terms that are rounded relative to nu - nu_0.

    Parameters
    ----------
    degrees_of_freedom : array (...), nu
    mean_log_determinant : array (...), E log|A Lambda/2|, `multivariate_digamma` of nu
    prior_degrees_of_freedom : float, nu_0
    scale_divergence : array (...)
        trace(R) - log|R| - P with R = (nu/nu_0) A^-1 C, which is the identity where the means agree.
    n_features : int, P
    """
    prior_half, rise = 0.5 * prior_degrees_of_freedom, 0.5 * (degrees_of_freedom - prior_degrees_of_freedom)
    starts = prior_half - 0.5 * _range(n_features)
    log_gammas = log_gamma_rise(starts, rise[..., None]).sum(axis=-1)
    growth = n_features * (prior_half * np.log1p(rise / prior_half) - rise)
    return prior_half * scale_divergence + rise * mean_log_determinant - log_gammas + growth
