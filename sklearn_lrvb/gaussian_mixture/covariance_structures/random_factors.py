"""Factors of random precisions: smooth functions of normal variables, with their derivatives.

A random precision in the frame of its group, T = L L' with E T = I, is made from a normal change B of the
same shape, the response of the precision to linear response's normal coefficients. What is drawn is described
by its *normal* (the change) and its *factor* (L). The density of T follows from that of B by the derivative
of the one in the other.

`GammaFactors` are those of precisions that are numbers; `bartlett` has those of matrices.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from sklearn_lrvb.exponential_families.log_gamma import stirling_remainder
from sklearn_lrvb.exponential_families.quantiles import SMALLEST_GAMMA, gamma_quantile

_LOG_2_PI = np.log(2.0 * np.pi)


class RandomFactors(ABC):
    """Factors L of random precisions L L' in their own frames, which have the mean I.

    Arrays are (n, S, ...) for n draws, S precision groups, and the shape of a structure's statistic.

    Parameters
    ----------
    deviations : (S, ...), standard deviations of the changes, and of the precisions
    degrees_of_freedom : (S,), c

    Attributes
    ----------
    mean_square_map : (S, ...)
        A with E(v) = A' E(w), where w are the squares of the entries of L^-T u and v those of independent u
        with the mean 0: how large u has to be for L^-T u to have given variances.
    """

    mean_square_map: np.ndarray

    @abstractmethod
    def __init__(self, deviations, degrees_of_freedom):
        pass

    @staticmethod
    @abstractmethod
    def wishart(generator, degrees_of_freedom, inverse_scales):
        """Factors of Wishart matrices of given inverse scales; of gamma variables, of these rates times two.

        Parameters
        ----------
        generator : numpy.random.Generator
        degrees_of_freedom : (n, S), of the Wishart matrices; twice the shape of gamma variables
        inverse_scales : (n, S, ...)

        Returns
        -------
        factors : (n, S, ...)
        """

    @abstractmethod
    def factors(self, changes):
        """Factors of normal changes with mean 0, (n, S, ...)."""

    @abstractmethod
    def log_derivatives(self, changes, factors):
        """log|d T / d B| of unique entries, summed over the groups: (n,)."""

    @abstractmethod
    def slopes(self, changes, factors, slopes_of_factors):
        """d/dB of f(L(B)) + log|d T / d B|, for the unique entries of B.

        Parameters
        ----------
        changes, factors : (n, S, ...)
        slopes_of_factors : (n, S, ...), df/dL; entries where L is zero are not read

        Returns
        -------
        slopes : (n, S, ...), symmetric where the statistic is
        """


def gamma_draws(generator, shapes):
    """Gamma variables of some shapes, at least 1e-100 of their mean like `gamma_quantile`: (...) -> (...)."""
    return np.maximum(generator.standard_gamma(shapes), SMALLEST_GAMMA * shapes)


@dataclass(frozen=True)
class GammaVariables:
    """Gamma variables t that are quantiles of normal variables b.

    Attributes
    ----------
    scale : (...), standard deviations of b
    mean, deviation : (...), of t
    """

    scale: np.ndarray
    mean: np.ndarray
    deviation: np.ndarray

    def values(self, normals):
        """t at b, (n, ...)."""
        return gamma_quantile(normals / self.scale, self.mean, self.deviation)

    @property
    def _shape(self):
        return np.square(self.mean / self.deviation)

    @property
    def harmonic_mean(self):
        """1 / E(1/t), or a number below zero where that is infinite, (...)."""
        return self.mean - np.square(self.deviation) / self.mean

    def log_derivatives(self, normals, values):
        """log dt/db, by the densities of b and t: (n, ...)."""
        shape, relative = self._shape, values / self.mean - 1.0
        is_near = np.abs(relative) < 0.5
        log_relative = np.where(
            is_near, np.log1p(np.where(is_near, relative, 0.0)), np.log(values / self.mean)
        )
        # The log density of t without the parts that cancel: shape log shape - shape - log Gamma(shape).
        constant = 0.5 * (np.log(shape) - _LOG_2_PI) - stirling_remainder(shape)
        log_density = constant + shape * (log_relative - relative) - np.log(values)
        return -0.5 * (np.square(normals / self.scale) + _LOG_2_PI) - np.log(self.scale) - log_density

    def slopes(self, normals, values, slopes_of_logs):
        """d/db of f(log t) + log dt/db, from df/dlog t: (n, ...)."""
        shape = self._shape
        log_slopes = np.exp(self.log_derivatives(normals, values)) / values  # d log t / db
        # log dt/db = -b^2/(2 scale^2) + log t - shape (log t - t/mean) + constant.
        own = 1.0 + shape * (values / self.mean - 1.0)
        return (slopes_of_logs + own) * log_slopes - normals / np.square(self.scale)


class GammaFactors(RandomFactors):
    """Square roots of gamma variables, (n, S, Q)."""

    def __init__(self, deviations, degrees_of_freedom):
        del degrees_of_freedom
        self._variables = GammaVariables(deviations, np.ones_like(deviations), deviations)
        self.mean_square_map = self._variables.harmonic_mean

    @staticmethod
    def wishart(generator, degrees_of_freedom, inverse_scales):
        shapes = np.broadcast_to(0.5 * degrees_of_freedom[..., None], inverse_scales.shape)
        return np.sqrt(2.0 * gamma_draws(generator, shapes) / inverse_scales)

    def factors(self, changes):
        return np.sqrt(self._variables.values(changes))

    def log_derivatives(self, changes, factors):
        return self._variables.log_derivatives(changes, np.square(factors)).sum(axis=(1, 2))

    def slopes(self, changes, factors, slopes_of_factors):
        slopes_of_logs = 0.5 * factors * slopes_of_factors  # L = exp(log(T)/2).
        return self._variables.slopes(changes, np.square(factors), slopes_of_logs)
