"""Wishart distribution of a precision matrix Lambda (P x P), degrees of freedom nu > P - 1.

Density proportional to |Lambda|^((nu - P - 1)/2) exp(-trace(A Lambda)/2); the inverse scale A
enters through its log determinant alone. E Lambda = nu A^-1.
"""

import numpy as np
from scipy.special import digamma, multigammaln, polygamma


def _half_degrees_of_freedom(degrees_of_freedom, n_features):
    """(nu - i)/2 for i = 0..P-1: (...) -> (..., P)."""
    return 0.5 * (np.asarray(degrees_of_freedom)[..., None] - np.arange(n_features))


def log_partition(degrees_of_freedom, log_det_inverse_scale, n_features):
    """log of the integral of |Lambda|^((nu - P - 1)/2) exp(-trace(A Lambda)/2)."""
    nu = np.asarray(degrees_of_freedom, dtype=float)
    return 0.5 * nu * (n_features * np.log(2.0) - log_det_inverse_scale) + multigammaln(0.5 * nu, n_features)


def expected_log_determinant(degrees_of_freedom, log_det_inverse_scale, n_features):
    """E log|Lambda|, mean parameter of the statistic log|Lambda|."""
    return (
        digamma(_half_degrees_of_freedom(degrees_of_freedom, n_features)).sum(axis=-1)
        + n_features * np.log(2.0)
        - log_det_inverse_scale
    )


def log_determinant_excess_variance(degrees_of_freedom, n_features):
    """Var log|Lambda| - 2 P/nu: what log|Lambda| varies beyond its regression on Lambda."""
    half = _half_degrees_of_freedom(degrees_of_freedom, n_features)
    return polygamma(1, half).sum(axis=-1) - 2.0 * n_features / np.asarray(degrees_of_freedom)


def expected_log_density(
    degrees_of_freedom, log_det_inverse_scale, expected_log_det, expected_trace, n_features
):
    """E log density of a Wishart(nu, A) where E log|Lambda| and E trace(A Lambda) are given."""
    return (
        0.5 * (degrees_of_freedom - n_features - 1) * expected_log_det
        - 0.5 * expected_trace
        - log_partition(degrees_of_freedom, log_det_inverse_scale, n_features)
    )
