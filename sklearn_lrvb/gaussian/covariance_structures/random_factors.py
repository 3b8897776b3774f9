"""Factors of random precisions: smooth functions of normal variables, with their derivatives.

A random precision in the whitened coordinates of its group, T = L L' with a mean near I, is made from a
normal change B of the same shape, the response of the precision to linear response's normal coefficients.
What is drawn is described by its *normal* (the change) and its *factor* (L). The density of T follows from
that of B by the derivative of the one in the other.

Precisions that are numbers have `GammaFactors`, and matrices `BartlettFactors`, with L upper triangular. Then
column j of L is a regression on earlier coordinates: with y ~ N(0, T^-1) and z_j standard normal,

    L_jj y_j = z_j - sum_{i<j} L_ij y_i.

If T is a Wishart matrix with nu degrees of freedom, divided by nu, then the entries of L are independent
(Bartlett),

    L_ij ~ N(0, 1/nu) for i < j,        L_jj^2 ~ chi^2_{nu - (P - 1 - j)} / nu,      j = 0, 1, ...

Linear response gives a normal change B of T, with variances s_ij, and the relative variance r_j of the
variance of feature j. Where values are missing, 2/s_jj, 1/s_ij and 2/r_j are the numbers of rows (the prior's
included) that tell the residual variance 1/L_jj^2, the coefficient L_ij, and the variance of a feature. Rows
that show feature j but not i are the share kappa_ij of the latter. They tell the residual variance together
with the variance that y_i explains: the larger L_ij, the less is left. So

    L_ij = B_ij,        L_jj^2 = t_j (1 + sum_{i<j} kappa_ij L_ij^2),        kappa_ij = 1 - r_j / (2 s_ij),

where t_j is a quantile of a gamma variable, in place of the normal B_jj, with

    mean m_j = 1 - (P - 1 - j) r_j / 2,        variance m_j s_jj.

A Wishart matrix has s_ij = 1/nu and s_jj = r_j = 2/nu, so that L is Bartlett's. The inverse map is
B_ij = L_ij, and B_jj by the gamma distribution function of t_j = L_jj^2 / (1 + sum_{i<j} kappa_ij L_ij^2).
"""

from abc import ABC, abstractmethod

import numpy as np

from sklearn_lrvb.distributions.copula_margins import GammaVariables
from sklearn_lrvb.distributions.special_functions import SMALLEST_GAMMA


class RandomFactors(ABC):
    """Factors L of random precisions L L' in their own coordinates; the mean is I where no value is missing.

    Arrays are (n, S, ...) for n draws, S precision groups, and the shape of a structure's statistic.

    Parameters
    ----------
    deviations : (S, ...), standard deviations of the changes
    degrees_of_freedom : (S,), c
    relative_variances : (S, P) or (S, Q), of the features' variances, by linear response
    """

    @abstractmethod
    def __init__(self, deviations, degrees_of_freedom, relative_variances):
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
    def changes(self, factors):
        """The normal changes of given factors, (n, S, ...): the inverse of `factors`."""

    @abstractmethod
    def log_derivatives(self, changes, factors):
        """log|d T / d B| of unique entries, (n, S)."""

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


class GammaFactors(RandomFactors):
    """Square roots of gamma variables, (n, S, Q)."""

    def __init__(self, deviations, degrees_of_freedom, relative_variances):
        del degrees_of_freedom, relative_variances
        self._variables = GammaVariables(deviations, np.ones_like(deviations), deviations)

    @staticmethod
    def wishart(generator, degrees_of_freedom, inverse_scales):
        shapes = np.broadcast_to(0.5 * degrees_of_freedom[..., None], inverse_scales.shape)
        return np.sqrt(2.0 * gamma_draws(generator, shapes) / inverse_scales)

    def factors(self, changes):
        return np.sqrt(self._variables.values(changes))

    def changes(self, factors):
        return self._variables.normals(np.square(factors))

    def log_derivatives(self, changes, factors):
        values = np.square(factors)
        log_derivatives = self._variables.log_derivatives(changes, values) + np.log(values)
        return log_derivatives.sum(axis=2)

    def slopes(self, changes, factors, slopes_of_factors):
        slopes_of_logs = 0.5 * factors * slopes_of_factors + 1.0  # L = exp(log(T)/2), dT/dlog(T) = T.
        return self._variables.slopes(changes, np.square(factors), slopes_of_logs)


# Least mean of t_j, relative to its mean under a Wishart distribution.
_LEAST_RELATIVE_PIVOT = 0.5
# Least pivot, relative to the squares of its row: smaller ones are raised to it, because L L' would be
# singular to working precision. Only components without rows are drawn so wide, and the likelihood of the
# rows does not depend on how wide. So a ratio of densities is nearly the same at the raised pivot.
_SMALLEST_PIVOT = 1e-12


class BartlettFactors(RandomFactors):
    """Upper triangular factors, with a positive diagonal, of random matrices: (n, S, P, P)."""

    def __init__(self, deviations, degrees_of_freedom, relative_variances):
        variances, place = np.square(deviations), np.arange(deviations.shape[1])
        later = place[::-1]  # P - 1 - j
        least = _LEAST_RELATIVE_PIVOT * (1.0 - later / degrees_of_freedom[:, None])
        means = np.maximum(1.0 - 0.5 * later * relative_variances, least)
        spreads = _diagonal(deviations)
        self._variables = GammaVariables(spreads, means, np.sqrt(means) * spreads)
        shares = np.maximum(1.0 - 0.5 * relative_variances[:, None, :] / variances, 0.0)
        self._missing_shares = np.triu(shares, 1)  # kappa
        self._earlier = place.astype(float)

    @staticmethod
    def wishart(generator, degrees_of_freedom, inverse_scales):
        later = np.arange(inverse_scales.shape[-1])[::-1]
        factors = np.triu(generator.standard_normal(inverse_scales.shape), 1)
        shapes = 0.5 * (degrees_of_freedom[..., None] - later)
        _diagonal(factors)[...] = np.sqrt(2.0 * gamma_draws(generator, shapes))
        upper = np.linalg.cholesky(inverse_scales).swapaxes(-1, -2)
        return _regular(np.linalg.solve(upper, factors))

    def factors(self, changes):
        factors = np.triu(changes, 1)
        pivots = self._variables.values(_diagonal(changes)) * self._total_variances(factors)
        _diagonal(factors)[...] = np.sqrt(pivots)
        return _regular(factors)

    def _total_variances(self, factors):
        """1 + sum_{i<j} kappa_ij L_ij^2, (n, S, P)."""
        return 1.0 + np.einsum("sij,nsij->nsj", self._missing_shares, np.square(factors))

    def changes(self, factors):
        changes = np.triu(factors, 1)
        totals = self._total_variances(changes)
        changes += changes.swapaxes(-1, -2)
        _diagonal(changes)[...] = self._variables.normals(np.square(_diagonal(factors)) / totals)
        return changes

    def log_derivatives(self, changes, factors):
        pivots, totals = np.square(_diagonal(factors)), self._total_variances(factors)
        log_derivatives = self._variables.log_derivatives(_diagonal(changes), pivots / totals)
        # |dT/d(L_ij, log L_jj^2)| = prod_j L_jj^(j + 2)
        log_derivatives += (0.5 * self._earlier + 1.0) * np.log(pivots)
        return log_derivatives.sum(axis=2)

    def slopes(self, changes, factors, slopes_of_factors):
        pivots, totals = np.square(_diagonal(factors)), self._total_variances(factors)
        of_logs = (
            0.5 * (_diagonal(factors) * _diagonal(slopes_of_factors) + self._earlier) + 1.0
        )  # log L_jj^2
        of_totals = (2.0 * of_logs / totals)[..., None, :]
        slopes = np.triu(slopes_of_factors, 1) + of_totals * self._missing_shares * factors
        slopes += slopes.swapaxes(-1, -2)
        _diagonal(slopes)[...] = self._variables.slopes(_diagonal(changes), pivots / totals, of_logs)
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
