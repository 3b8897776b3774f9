"""Anderson's acceleration of the sweeps, and the number of steps that are still to go.

*Conventions.* Sufficient statistics s of several q are compared in the frame of one of them, q_0, and in
units of its mean-field standard deviations: x = T'(s - s_0), where R = T T' is the inverse of the complete
information at q_0. In these coordinates a sweep contracts by a symmetric matrix, I - S, whose slowest
directions are spanned by a few differences of successive x. `ascent` decides which proposals are taken.
"""

import numpy as np
from scipy.linalg import lapack

from sklearn_lrvb.gaussian_mixture.information.observed_information import complete_information
from sklearn_lrvb.gaussian_mixture.posterior.sufficient_statistics import (
    posterior_after_step,
    statistics_difference,
)

_MAX_DIFFERENCES = 10  # Number of differences that are combined, if they fit into ``_HISTORY_BYTES``.
_HISTORY_BYTES = 2**26

# Reciprocal condition number below which the differences count as linearly dependent.
_DEPENDENT_BELOW = 1e-10
_MAX_PAUSE = 7  # Largest number of plain sweeps after a rejected proposal.
_RATE_STEPS = 5  # Number of steps over which the rate of convergence is estimated.
_STALLED_STEPS = 10  # Number of steps in which the distance must halve; otherwise the sweeps have stalled.


def _least_squares(columns, target):
    """The coefficients of smallest norm that combine columns (D, m) to a target (D,), (m,)."""
    # LAPACK is called directly, because its wrappers take longer than factoring some ten columns.
    size, n_columns = columns.shape
    right = np.zeros((max(size, n_columns), 1))
    right[:size, 0] = target
    pivots, n_work = np.zeros(n_columns, dtype=np.int32), 64 * (n_columns + 1) + size
    solution = lapack.dgelsy(columns, right, pivots, _DEPENDENT_BELOW, n_work)[1]
    return solution[:n_columns, 0]


class Acceleration:
    """Combinations of the last sweeps, proposed in place of the next one.

    A rejected proposal is followed by plain sweeps, about twice as many each time. So the acceleration costs
    little where it does not help.
    """

    def __init__(self):
        self._distances = []
        self._pause = self._pause_left = 0
        self._forget()

    def _forget(self):
        self._frame = None
        self._ahead = []  # Posteriors that the fit may be at next, and their points.
        self._points, self._residuals = [], []

    def record(self, distance):
        """Note the distance of a state from the sweep's fixed point, in mean-field standard deviations."""
        self._distances.append(distance)
        self._pause_left -= 1

    @property
    def n_steps(self):
        """Number of steps so far."""
        return len(self._distances) - 1

    def steps_to_go(self, distance):
        """Number of steps until ``distance`` at the rate of the last ones; infinite if they diverge."""
        over = min(_RATE_STEPS, len(self._distances) - 1)
        if over < 1:
            return np.inf
        now, before = self._distances[-1], self._distances[-1 - over]
        if not 0 < now < before:
            return 0.0 if now <= distance else np.inf
        return max(0.0, np.log(now / distance) / np.log(before / now) * over)

    def has_stalled(self):
        """Whether the distance has not halved for a while."""
        recent = self._distances[-_STALLED_STEPS:]
        return len(recent) == _STALLED_STEPS and 2.0 * min(recent) > recent[0]

    def proposal(self, posterior, next_posterior):
        """The posterior that the last sweeps lead to, or None.

        Parameters
        ----------
        posterior : VariationalPosterior, the state
        next_posterior : VariationalPosterior, the state after a sweep

        Raises
        ------
        DegenerateComponentError
            Where the combination is not the statistics of any proper posterior.
        """
        if self._frame is None:
            self._frame, self._complete = posterior, complete_information(posterior)
        known = [point for ahead, point in self._ahead if ahead is posterior]
        point = known[0] if known else self._point(posterior)
        next_point = self._point(next_posterior)
        self._ahead = [(next_posterior, next_point)]
        residual = next_point - point
        kept = int(np.clip(_HISTORY_BYTES // (16 * len(point)), 2, _MAX_DIFFERENCES))
        self._points = [*self._points[-kept:], point]
        self._residuals = [*self._residuals[-kept:], residual]
        if len(self._points) == 1 or self._pause_left > 0:
            return None
        steps, changes = (np.diff(history, axis=0).T for history in (self._points, self._residuals))
        coefficients = _least_squares(changes, residual)
        combined = point + residual - (steps + changes) @ coefficients
        proposed = posterior_after_step(
            self._frame, self._complete.solve_root_transposed(combined[:, None])[:, 0]
        )
        if proposed.counts.min() > 0:  # Otherwise a count was raised to zero, and the point is another.
            self._ahead.append((proposed, combined))
        return proposed

    def _point(self, posterior):
        statistics = statistics_difference(self._frame, posterior)
        return self._complete.times_root_transposed(statistics[:, None])[:, 0]

    def reject(self):
        """Discard the history after a proposal that was no improvement, and pause for some sweeps."""
        self._pause = min(2 * self._pause + 1, _MAX_PAUSE)
        self._pause_left = self._pause
        self._forget()

    def accept(self):
        """Allow proposals at every step again, after one that was an improvement."""
        self._pause = 0
