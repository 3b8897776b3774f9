"""Estimates with error bars, and their intervals: symmetric, or of shares and of their differences.

A kind of intervals has `limits(values, covariance, quantile)`: estimates (m,), their covariance (m, m) and a
quantile of the normal or Student's t distribution make lower and upper limits, two of (m,).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, ndtri, stdtrit


@dataclass(frozen=True)
class Quantities:
    """Estimates of one kind.

    Attributes
    ----------
    names : list of str, such as "slope[1,age]"
    values : (m,)
    covariance : (m, m)
    intervals : Symmetric, LogOdds, OfShares or OfDifferences
    freedom : float, degrees of freedom of Student's t
    """

    names: list
    values: np.ndarray
    covariance: np.ndarray
    intervals: Any
    freedom: float = np.inf

    @property
    def deviations(self):
        """Standard deviations, (m,)."""
        return np.sqrt(np.maximum(np.diag(self.covariance), 0.0))

    def interval(self, probability):
        """Lower and upper limits of central intervals: two of (m,)."""
        tail = 0.5 + 0.5 * probability
        return self.limits(ndtri(tail) if np.isinf(self.freedom) else stdtrit(self.freedom, tail))

    def limits(self, quantile):
        """The same, given the quantile."""
        return self.intervals.limits(self.values, self.covariance, quantile)


class Symmetric:
    """So many standard deviations to both sides."""

    def limits(self, values, covariance, quantile):
        half = quantile * np.sqrt(np.maximum(np.diag(covariance), 0.0))
        return values - half, values + half


class LogOdds:
    """Symmetric in the log odds of shares."""

    def limits(self, values, covariance, quantile):
        value = np.clip(values, 1e-300, 1.0 - 1e-16)
        half = quantile * np.sqrt(np.maximum(np.diag(covariance), 0.0)) / (value * (1.0 - value))
        log_odds = np.log(value) - np.log1p(-value)
        return expit(log_odds - half), expit(log_odds + half)


@dataclass(frozen=True)
class OfShares:
    """Wilson's intervals: all shares that are as many of their own standard deviations from the estimate.

    The variance of a share p of some rows is p (1 - p) by their number (E. B. Wilson, Journal of the American
    Statistical Association 22 (1927), 209-212), and what else there is at the estimate, as clusters are
    uncertain. So a share of zero has an upper limit.

    Attributes
    ----------
    rows : (m,), of which shares are: counts by the design effect
    """

    rows: np.ndarray

    def limits(self, values, covariance, quantile):
        square = quantile**2
        rest = np.maximum(np.diag(covariance) - values * (1.0 - values) / self.rows, 0.0)
        a, b = 1.0 + square / self.rows, values + 0.5 * square / self.rows
        root = np.sqrt(np.maximum(np.square(b) - a * (np.square(values) - square * rest), 0.0))
        return np.clip((b - root) / a, 0.0, 1.0), np.clip((b + root) / a, 0.0, 1.0)


@dataclass(frozen=True)
class OfDifferences:
    """Of differences of shares, from the limits of these (G. Y. Zou and A. Donner, Statistics in Medicine 27
    (2008), 1693-1702).

    Attributes
    ----------
    shares : Quantities
    one, other : int arrays (m,), the places of the shares that are compared
    """

    shares: Quantities
    one: np.ndarray
    other: np.ndarray

    def limits(self, values, covariance, quantile):
        lower, upper = self.shares.limits(quantile)
        down, up = self.shares.values - lower, upper - self.shares.values
        variances, one, other = np.diag(self.shares.covariance), self.one, self.other
        sizes = np.sqrt(np.maximum(variances[one] * variances[other], 1e-300))
        correlations = self.shares.covariance[one, other] / sizes

        def joint(a, b):
            return np.sqrt(np.maximum(np.square(a) + np.square(b) - 2.0 * correlations * a * b, 0.0))

        low, high = values - joint(down[one], up[other]), values + joint(up[one], down[other])
        return np.clip(low, -1.0, 1.0), np.clip(high, -1.0, 1.0)
