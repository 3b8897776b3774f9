"""Posterior mean, standard deviation and central intervals of every entry of a target.

`FamilyMargins` are those of a distribution with a given mean and standard deviation. Its family is the one
that q itself has for the entry, or one close to it (`Target.quantile`): weights are beta, minus log weights
gamma. A kind of mixture may have margins of its own (`MixtureModel.own_margins`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import stdtrit


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
