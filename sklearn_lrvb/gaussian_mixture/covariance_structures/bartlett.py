"""Bartlett's decomposition of a Wishart matrix, with the moments of linear response in place of a Wishart's.

A matrix T with E T = I is L L', L lower triangular. If T is a Wishart matrix with nu degrees of freedom,
divided by nu, then the entries of L are independent,

    L_ij ~ N(0, 1/nu) for j < i,        L_ii^2 ~ chi^2_{nu - i} / nu,      i = 0, 1, ...

Linear response gives a normal change B of T, with variances s_ij. To first order L_ij is B_ij for j < i, and
L_ii^2 makes up the rest of T_ii, which is to have mean 1 and variance s_ii: a gamma variable with

    mean 1 - sum_{j<i} s_ij,        variance s_ii - 2 sum_{j<i} s_ij^2,

which is chi^2_{nu - i}/nu at a Wishart's own s_ij = 1/nu, s_ii = 2/nu.

The inverse of T = L L' follows from that of L, whose entries below the diagonal are sums of products with the
independent L_ij. Their mean squares, E (L^-1)_ij^2, are the inverse of the matrix diag(g) - (s_ij, j < i), in
which g_i = 1 / E(1/L_ii^2) is the harmonic mean of a pivot.
"""

import numpy as np

from sklearn_lrvb.gaussian_mixture.covariance_structures.random_factors import (
    GammaVariables,
    RandomFactors,
    gamma_draws,
)

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
