"""Posterior mean, standard deviation and central intervals of every entry of a target.

`FamilyMargins` are those of a distribution with a given mean and standard deviation. Its family is the one
that q itself has for the entry, or one close to it (`Target.quantile`): weights are beta, minus log weights
gamma. A kind of mixture may have margins of its own (`MixtureModel.own_margins`).

*Moments that do not exist.* A component with few rows leaves its scale to the prior, which may be so vague
that a variance has no variance or mean, nor a mean one (`Target.has_moments`). Strictly that is so for every
component that may lose its rows, with whatever probability. Here it is where the rows that the component has
under q, or under any one draw of the exact posterior, are too few: a number that is reported is of draws all
of which have enough. Quantiles always exist.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import stdtrit


@dataclass(frozen=True)
class PartialMargins:
    """Margins of entries, some of which have no mean, or no variance.

    Attributes
    ----------
    of : margins, whose intervals stand
    has_mean, has_variance : bool (d,)
    is_positive : bool (d,), entries whose mean is infinite where there is none; that of others is NaN
    """

    of: Any
    has_mean: np.ndarray
    has_variance: np.ndarray
    is_positive: np.ndarray

    @property
    def mean(self):
        return np.where(self.has_mean, self.of.mean, np.where(self.is_positive, np.inf, np.nan))

    @property
    def deviation(self):
        return np.where(self.has_variance, self.of.deviation, np.inf)

    def interval(self, probability):
        """Ends of the central intervals, (d,) each."""
        return self.of.interval(probability)


def with_moments_that_exist(margins, target, counts):
    """Margins of a target that say where there is no mean or variance, given expected rows (n, K)."""
    has_mean, has_variance = target.has_moments(counts)
    if has_variance.all():
        return margins
    return PartialMargins(margins, has_mean, has_variance, target.is_positive())


@dataclass(frozen=True)
class FamilyMargins:
    """Margins of entries with known means and standard deviations.

    Attributes
    ----------
    mean, deviation : (d,)
    families : sequence of pairs of entries, bool (d,), and their quantile function of `special_functions`
    degrees_of_freedom : float, default=inf
        Those of Student's t, whose quantiles take the place of normal ones where deviations are estimates.
    """

    mean: np.ndarray
    deviation: np.ndarray
    families: Sequence[tuple[np.ndarray, Callable]]
    degrees_of_freedom: float = np.inf

    def interval(self, probability):
        """Ends of the central intervals, (d,) each; both the mean where the deviation is zero."""
        z = -stdtrit(self.degrees_of_freedom, 0.5 * (1.0 - probability))
        ends = np.repeat(self.mean[None], 2, axis=0)
        for where, family in self.families:
            uncertain = where & (self.deviation > 0)
            ends[:, uncertain] = family(
                np.array([[-z], [z]]), self.mean[uncertain], self.deviation[uncertain]
            )
        return ends[0], ends[1]


@dataclass(frozen=True)
class EntryMargins:
    """Those of one entry.

    Attributes
    ----------
    of : margins of a target
    entry : int
    """

    of: Any
    entry: int

    @property
    def mean(self):
        return self.of.mean[[self.entry]]

    @property
    def deviation(self):
        return self.of.deviation[[self.entry]]

    def interval(self, probability):
        """Ends of the central interval, (1,) each."""
        return tuple(end[[self.entry]] for end in self.of.interval(probability))
