"""Posterior mean, standard deviation and central intervals of every entry of a target.

`FamilyMargins` are those of a distribution with a given mean and standard deviation. Its family is the one
that q itself has for the entry, or one close to it (`Target.quantile`): weights are beta, minus log weights
gamma. A model may have margins of its own (`MixtureModel.own_margins`).

*Moments that do not exist.* A component with few rows leaves its scale to the prior, which may be so vague
that a variance has no variance or mean, nor a mean one (`Target.has_moments`). Strictly that is so for every
component that may lose its rows, with whatever probability. Here it is where the rows that the component has
under q, or under any one draw of the exact posterior, are too few: a number that is reported is of draws all
of which have enough. Quantiles always exist.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit


@dataclass(frozen=True)
class Margins:
    """Margins of entries; every other class of margins has the same three.

    Attributes
    ----------
    mean, deviation : (d,)
    interval : callable, probability -> limits of the central intervals, (d,) each
    """

    mean: np.ndarray
    deviation: np.ndarray
    interval: Callable


def margins_of_entry(margins, entry):
    """The margins of one entry alone: Margins of arrays (1,)."""

    def interval(probability):
        return tuple(limit[[entry]] for limit in margins.interval(probability))

    return Margins(margins.mean[[entry]], margins.deviation[[entry]], interval)


def with_moments_that_exist(margins, target, counts):
    """Margins of a target that say where there is no mean or variance, given expected rows (n, K).

    The mean of a positive entry is infinite there, that of another one NaN.
    """
    has_mean, has_variance = target.has_moments(counts)
    if has_variance.all():
        return margins
    mean = np.where(has_mean, margins.mean, np.where(target.is_positive(), np.inf, np.nan))
    return Margins(mean, np.where(has_variance, margins.deviation, np.inf), margins.interval)


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
        """Limits of the central intervals, (d,) each; both the mean where the deviation is zero."""
        z = -stdtrit(self.degrees_of_freedom, 0.5 * (1.0 - probability))
        limits = np.repeat(self.mean[None], 2, axis=0)
        for where, family in self.families:
            uncertain = where & (self.deviation > 0)
            limits[:, uncertain] = family(
                np.array([[-z], [z]]), self.mean[uncertain], self.deviation[uncertain]
            )
        return limits[0], limits[1]
