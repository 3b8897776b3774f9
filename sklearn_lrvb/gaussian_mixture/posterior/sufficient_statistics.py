"""Sufficient statistics of the components: sums over rows, differences between posteriors, and steps.

*Mathematics.* In the frames of a posterior q, its own complete statistics are N_k, 0 and c s(I)/power. A
sweep is a map EM of the statistics, and q is optimal where EM(s) = s. Differences are taken in the
coordinates of the features h (`covariance_structures`), in which Newton's step is R^-1 M^-1 (EM(s) - s).
"""

from dataclasses import dataclass, replace

import numpy as np


@dataclass(frozen=True)
class Moments:
    """Weighted moments of rows in every component's frame.

    Attributes
    ----------
    counts : (K,), sums of weights
    first : (K, P), sums of weight times y
    second : (S, ...), sums of weight times s(y)
    """

    counts: np.ndarray
    first: np.ndarray
    second: np.ndarray

    def __add__(self, other):
        return Moments(self.counts + other.counts, self.first + other.first, self.second + other.second)

    def __sub__(self, other):
        return Moments(self.counts - other.counts, self.first - other.first, self.second - other.second)


def _own_moments(posterior):
    """Complete moments of q in its own frames."""
    structure = posterior.structure
    scale = structure.expand(posterior.effective_degrees_of_freedom / structure.power)
    return Moments(
        posterior.counts, np.zeros_like(posterior.centred_means), scale * structure.identity_statistic
    )


def statistics_residual(posterior, moments):
    """EM(s) - s, given the complete moments of the E-step at the posterior: (D,)."""
    structure = posterior.structure
    scale = structure.expand(posterior.effective_degrees_of_freedom / structure.power)
    return structure.feature_moments(
        moments.counts - posterior.counts,
        moments.first,
        moments.second - scale * structure.identity_statistic,
        structure.identity_statistic,
    )


def statistics_difference(frame, posterior):
    """Statistics of a posterior less those of the posterior ``frame``, in the frames of the latter: (D,)."""
    structure = posterior.structure
    shift = structure.transformed(frame.whiteners, posterior.centred_means - frame.centred_means)
    relative = structure.composed_triangles(frame.whiteners, posterior.covariance_cholesky)
    covariances = structure.gram(relative)
    scatter = structure.expand(posterior.effective_degrees_of_freedom) * covariances
    own = _own_moments(frame)
    return structure.feature_moments(
        posterior.counts - own.counts,
        posterior.mean_precision[:, None] * shift,
        scatter + structure.sum_of_squares(shift, posterior.mean_precision) - own.second,
        structure.identity_statistic,
    )


def posterior_after_step(posterior, change):
    """The posterior whose statistics differ by ``change``, (D,); counts do not fall below zero.

    Raises
    ------
    DegenerateComponentError
        Where there is no such posterior.
    """
    moved = _own_moments(posterior) + Moments(*posterior.structure.moments(change))
    return posterior.m_step(replace(moved, counts=np.maximum(moved.counts, 0.0)))
