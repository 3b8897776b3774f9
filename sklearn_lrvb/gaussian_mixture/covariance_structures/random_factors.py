"""Factors of random precisions: smooth functions of normal variables, with their derivatives.

A random precision in the frame of its group, T = L L' with E T = I, is made from a normal change B of the
same shape, the response of the precision to linear response's normal coefficients. What is drawn is described
by its *normal* (the change) and its *factor* (L). The density of T follows from that of B by the derivative
of the one in the other.

Precisions that are numbers have `GammaFactors`, and matrices `BartlettFactors`. A matrix T with E T = I is
L L', L lower triangular. If T is a Wishart matrix with nu degrees of freedom, divided by nu, then the entries
of L are independent,

    L_ij ~ N(0, 1/nu) for j < i,        L_ii^2 ~ chi^2_{nu - i} / nu,      i = 0, 1, ...

Linear response gives a normal change B of T, with variances s_ij. To first order L_ij is B_ij for j < i, and
L_ii^2 makes up the rest of T_ii, which is to have mean 1 and variance s_ii: a gamma variable with

    mean 1 - sum_{j<i} s_ij,        variance s_ii - 2 sum_{j<i} s_ij^2,

which is chi^2_{nu - i}/nu at a Wishart's own s_ij = 1/nu, s_ii = 2/nu.

The inverse of T = L L' follows from that of L, whose entries below the diagonal are sums of products with the
independent L_ij. Their mean squares, E (L^-1)_ij^2, are the inverse of the matrix diag(g) - (s_ij, j < i), in
which g_i = 1 / E(1/L_ii^2) is the harmonic mean of a pivot.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from sklearn_lrvb.exponential_families.special_functions import (
    SMALLEST_GAMMA,
    gamma_quantile,
    stirling_remainder,
)

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


# Least mean of a pivot L_ii^2, relative to its mean under Bartlett's own decomposition.
_LEAST_RELATIVE_PIVOT = 0.5
# The same for the harmonic mean, of a pivot with the variance of the whole diagonal entry. Where many values
# are hidden it would fall to zero, and the inverses of the matrices would have no mean.
_LEAST_RELATIVE_HARMONIC_MEAN = 0.75
# Least pivot, relative to the squares of its row: smaller ones are raised to it, because L L' would be
# singular to working precision. Only components without rows are drawn so wide, and the likelihood of the
# rows does not depend on how wide. So a ratio of densities is nearly the same at the raised pivot.
_SMALLEST_PIVOT = 1e-12


class BartlettFactors(RandomFactors):
    """Lower triangular factors, with a positive diagonal, of random matrices.

    The matrices have the mean I, and nearly these standard deviations. Arrays are (n, S, P, P).

    Parameters
    ----------
    deviations : (S, P, P), standard deviations of the changes
    degrees_of_freedom : (S,), nu

    Notes
    -----
    With few points, or many hidden values, the squares left of the diagonal can account for nearly all of a
    diagonal entry's mean or variance. The row is then scaled down, so that L_ii^2 keeps at least half of its
    mean under a Wishart distribution, (nu - i)/nu, and most of its harmonic mean. This does not change the
    mean I and the variances on the diagonal; the variances off the diagonal become too small.
    """

    def __init__(self, deviations, degrees_of_freedom):
        variances = np.square(deviations)
        diagonal, below = np.einsum("spp->sp", variances), np.tril(variances, -1)
        self._scale = _row_scale(diagonal, below, degrees_of_freedom)
        below *= self._scale[:, :, None]
        self._pivots = GammaVariables(
            np.sqrt(diagonal),
            1.0 - below.sum(axis=2),
            np.sqrt(diagonal - 2.0 * np.square(below).sum(axis=2)),
        )
        self.mean_square_map = -below
        _diagonal(self.mean_square_map)[...] = self._pivots.harmonic_mean

        rows = np.arange(deviations.shape[1])
        self._later_rows = rows[::-1].astype(float)  # P - 1 - i
        self._log_scale = 0.5 * (rows * np.log(self._scale)).sum(
            axis=1
        )  # log|dL_ij/dB_ij| below the diagonal

    @staticmethod
    def wishart(generator, degrees_of_freedom, inverse_scales):
        size = inverse_scales.shape[-1]
        factors = np.tril(generator.standard_normal(inverse_scales.shape), -1)
        halves = 0.5 * (degrees_of_freedom[..., None] - np.arange(size))
        _diagonal(factors)[...] = np.sqrt(2.0 * gamma_draws(generator, halves))
        # The inverse scale is R R' with R upper triangular, by Cholesky's decomposition in reversed order, so
        # that R^-T is lower triangular.
        reverse = slice(None, None, -1)
        upper = np.linalg.cholesky(inverse_scales[..., reverse, reverse])[..., reverse, reverse]
        return _regular(np.linalg.solve(upper.swapaxes(-1, -2), factors))

    def factors(self, changes):
        factors = np.tril(changes, -1) * np.sqrt(self._scale)[:, :, None]
        _diagonal(factors)[...] = np.sqrt(self._pivots.values(_diagonal(changes)))
        return _regular(factors)

    def log_derivatives(self, changes, factors):
        pivots = np.square(_diagonal(factors))
        found = self._pivots.log_derivatives(_diagonal(changes), pivots)
        found += 0.5 * self._later_rows * np.log(pivots)  # |dT/d(L_ij, L_ii^2)| = prod_i L_ii^(P - 1 - i)
        return (found.sum(axis=2) + self._log_scale).sum(axis=1)

    def slopes(self, changes, factors, slopes_of_factors):
        pivots = np.square(_diagonal(factors))
        slopes = np.tril(slopes_of_factors, -1) * np.sqrt(self._scale)[:, :, None]
        slopes += slopes.swapaxes(-1, -2)
        of_logs = 0.5 * (_diagonal(factors) * _diagonal(slopes_of_factors) + self._later_rows)
        _diagonal(slopes)[...] = self._pivots.slopes(_diagonal(changes), pivots, of_logs)
        return slopes


def _diagonal(matrices):
    """Diagonals, a view: (..., P, P) -> (..., P)."""
    return np.einsum("...pp->...p", matrices)


def _regular(factors):
    """Factors with pivots that are raised to the least one, written over those given, (..., P, P)."""
    squares = np.einsum("...pq,...pq->...p", factors, factors)
    diagonal = _diagonal(factors)
    diagonal[...] = np.maximum(diagonal, np.sqrt(_SMALLEST_PIVOT * squares))
    return factors


def _row_scale(diagonal, below, degrees_of_freedom):
    """Factor of the variances left of the diagonal, row by row, (S, P): 1 except with little information."""
    row = np.arange(diagonal.shape[1])
    own_pivot = (1.0 - row / degrees_of_freedom[:, None])[:, 1:]
    scale, variance = np.ones_like(diagonal), diagonal[:, 1:]
    first, second = below.sum(axis=2)[:, 1:], np.square(below).sum(axis=2)[:, 1:]
    largest = 1.0 - _LEAST_RELATIVE_PIVOT * own_pivot
    of_mean = largest / first
    of_variance = np.sqrt(0.5 * largest * variance / second)
    largest_scale = np.minimum(1.0, np.minimum(of_mean, of_variance))
    # The pivot's mean m = 1 - x first has a harmonic mean of at least `least` if m (m - least) >= variance
    # - 2 x^2 second: at the largest scale x, as for a Wishart matrix, or else up to the smaller root of a
    # quadratic.
    least = _LEAST_RELATIVE_HARMONIC_MEAN * own_pivot - variance
    mean = 1.0 - largest_scale * first
    is_large = mean * (mean - least) >= variance - 2.0 * np.square(largest_scale) * second
    slope, constant = 0.5 * (2.0 - least) * first, np.maximum(1.0 - variance - least, 0.0)
    discriminant = np.square(slope) - (np.square(first) + 2.0 * second) * constant
    root = constant / (slope + np.sqrt(np.maximum(discriminant, 0.0)))
    scale[:, 1:] = np.where(is_large, largest_scale, np.minimum(largest_scale, root))
    return scale
