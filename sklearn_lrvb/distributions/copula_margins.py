"""Beta and gamma variables that are quantiles of normal variables: the margins of a Gaussian copula.

A variable is the quantile of its distribution at the probability of a normal variable b with mean 0. Its
density follows from that of b by the derivative of the one in the other.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import polygamma

from sklearn_lrvb.distributions.dirichlet import log_density_of_logit
from sklearn_lrvb.distributions.special_functions import (
    beta_size,
    gamma_quantile,
    log_beta_quantile_pair,
    normal_of_gamma,
    normal_of_log_beta,
    stirling_remainder,
)

_LOG_2_PI = np.log(2.0 * np.pi)
_NEWTON_STEPS = 30


@dataclass(frozen=True)
class BetaVariables:
    """Beta variables v, given as log v and log(1 - v), whose logits have the standard deviations of b.

    Attributes
    ----------
    scale : (m,), standard deviations of b
    a, b : (m,), parameters of v
    """

    scale: np.ndarray
    a: np.ndarray
    b: np.ndarray

    @classmethod
    def of_share(cls, a, b, deviations):
        """Variables with the mean of Beta(a, b), whose logits have given standard deviations: (m,) each."""
        size = beta_size(a, b, np.square(deviations))
        return cls(deviations, size * a, size * b)

    def logs(self, normals):
        """log v and log(1 - v) at b, (n, m) each."""
        return log_beta_quantile_pair(normals / self.scale, self.a, self.b)

    def normals(self, log_stick, log_rest):
        """b at log v and log(1 - v), (n, m)."""
        return self.scale * normal_of_log_beta(log_stick, log_rest, self.a, self.b)

    def log_derivatives(self, normals, log_stick, log_rest):
        """log of the derivative of logit v in b, by the densities of both: (n, m)."""
        log_density = log_density_of_logit(log_stick, log_rest, self.a, self.b)
        return _log_normal_density(normals, self.scale) - log_density

    def slopes(self, normals, log_stick, log_rest, of_stick, of_rest):
        """d/db of f + log(d logit v / db), from df/dlog v and df/dlog(1 - v): (n, m)."""
        # log(d logit v / db) = -b^2/(2 scale^2) less the log density of logit v.
        log_derivatives = self.log_derivatives(normals, log_stick, log_rest)
        slopes = (of_stick - self.a) * np.exp(log_derivatives + log_rest)
        slopes -= (of_rest - self.b) * np.exp(log_derivatives + log_stick)
        return slopes - normals / np.square(self.scale)


@dataclass(frozen=True)
class GammaVariables:
    """Gamma variables t.

    Attributes
    ----------
    scale : (...), standard deviations of b
    mean, deviation : (...), of t
    """

    scale: np.ndarray
    mean: np.ndarray
    deviation: np.ndarray

    @classmethod
    def of_mean(cls, mean, deviations_of_logs):
        """Variables with given means, whose logarithms have given standard deviations: (m,) each."""
        shape = _shape_of_log_variance(np.square(deviations_of_logs))
        return cls(deviations_of_logs, mean, mean / np.sqrt(shape))

    def values(self, normals):
        """t at b, (n, ...)."""
        return gamma_quantile(normals / self.scale, self.mean, self.deviation)

    def normals(self, values):
        """b at t, (n, ...)."""
        return self.scale * normal_of_gamma(values, self.mean, self.deviation)

    @property
    def _shape(self):
        return np.square(self.mean / self.deviation)

    def log_derivatives(self, normals, values):
        """log(d log t / db), by the densities of b and log t: (n, ...)."""
        shape, relative = self._shape, values / self.mean - 1.0
        is_near = np.abs(relative) < 0.5
        log_relative = np.where(
            is_near, np.log1p(np.where(is_near, relative, 0.0)), np.log(values / self.mean)
        )
        # The log density of log t without what cancels: shape log shape - shape - log Gamma(shape).
        constant = 0.5 * (np.log(shape) - _LOG_2_PI) - stirling_remainder(shape)
        return _log_normal_density(normals, self.scale) - constant - shape * (log_relative - relative)

    def slopes(self, normals, values, slopes_of_logs):
        """d/db of f(log t) + log(d log t / db), from df/dlog t: (n, ...)."""
        # log(d log t / db) = -b^2/(2 scale^2) - shape (log t - t/mean) + constant.
        own = self._shape * (values / self.mean - 1.0)
        log_slopes = np.exp(self.log_derivatives(normals, values))
        return (slopes_of_logs + own) * log_slopes - normals / np.square(self.scale)


def _log_normal_density(normals, scale):
    return -0.5 * (np.square(normals / scale) + _LOG_2_PI) - np.log(scale)


def _shape_of_log_variance(variance):
    """Shape of gamma variables whose logarithms have a given variance, by Newton's method: (m,) -> (m,)."""
    log_shape = -np.log(variance) + np.log1p(0.5 * variance)
    for _ in range(_NEWTON_STEPS):
        shape = np.exp(log_shape)
        own = polygamma(1, shape)
        log_shape -= np.log(own / variance) * own / (shape * polygamma(2, shape))
    return np.exp(log_shape)
