"""Anderson's acceleration of the sweep, and how far it is from home.

*Conventions.* Sufficient statistics s of several q are compared in the frame of one of them, q_0, and in
units of its mean-field standard deviations: x = T'(s - s_0), R = T T' the complete information's inverse at
q_0. There the sweep contracts by a symmetric matrix, I - S, whose slowest directions a few differences span.
"""

import numpy as np

from sklearn_lrvb.gaussian_mixture.information.observed_information import (
    complete_information,
    statistics_from,
    step,
)

_DEPTH = 10  # differences that are combined
_HISTORY_BYTES = 2**26
_DEPENDENT = 1e-10  # of a difference that others make up for
_LONGEST_REST = 7  # sweeps
_RATE_OVER = 5  # steps
_STALLED_OVER = 10


class Acceleration:
    """Combinations of the last sweeps, proposed in place of the next.

    A proposal that was turned down is followed by plain sweeps, twice as many each time: what the
    acceleration costs where it does not help fades out.

    """

    def __init__(self):
        self._distances = []
        self._pause = self._rest = 0
        self._forget()

    def _forget(self):
        self._frame = None
        self._points, self._residuals = [], []

    def arrive(self, distance):
        """Note the distance of a state from the sweep's fixed point, in mean-field standard deviations."""
        self._distances.append(distance)
        self._rest -= 1

    @property
    def n_steps(self):
        """Steps that were taken so far."""
        return len(self._distances) - 1

    def steps_to_go(self, distance):
        """Steps until ``distance`` at the rate of the last ones; infinite where there is none."""
        over = min(_RATE_OVER, len(self._distances) - 1)
        if over < 1:
            return np.inf
        now, before = self._distances[-1], self._distances[-1 - over]
        if not 0 < now < before:
            return 0.0 if now <= distance else np.inf
        return max(0.0, np.log(now / distance) / np.log(before / now) * over)

    def stalls(self):
        """Whether the distance has not halved for a while."""
        recent = self._distances[-_STALLED_OVER:]
        return len(recent) == _STALLED_OVER and 2.0 * min(recent) > recent[0]

    def proposal(self, posterior, result):
        """Where the last sweeps lead, or None.

        Parameters
        ----------
        posterior, e_step_result : VariationalPosterior, the state and the one after a sweep

        Raises
        ------
        DegenerateComponentError
            Where they lead out of the domain.
        """
        if self._frame is None:
            self._frame, self._complete = posterior, complete_information(posterior)
        point = self._point(posterior)
        residual = self._point(result) - point
        kept = int(np.clip(_HISTORY_BYTES // (16 * len(point)), 2, _DEPTH))
        self._points = [*self._points[-kept:], point]
        self._residuals = [*self._residuals[-kept:], residual]
        if len(self._points) == 1 or self._rest > 0:
            return None
        steps, changes = (np.diff(history, axis=0).T for history in (self._points, self._residuals))
        shares = np.linalg.lstsq(changes, residual, rcond=_DEPENDENT)[0]
        combined = point + residual - (steps + changes) @ shares
        return step(self._frame, self._complete.solve_root_transposed(combined[:, None])[:, 0])

    def _point(self, posterior):
        statistics = statistics_from(self._frame, posterior)
        return self._complete.times_root_transposed(statistics[:, None])[:, 0]

    def turn_down(self):
        """The last proposal was no improvement."""
        self._pause = min(2 * self._pause + 1, _LONGEST_REST)
        self._rest = self._pause
        self._forget()

    def accept(self):
        """The last proposal was taken."""
        self._pause = 0
