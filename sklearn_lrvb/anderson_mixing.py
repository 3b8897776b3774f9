"""Anderson's acceleration of a fixed-point iteration, for any coordinates of its states.

*Conventions.* A state x has the residual F(x) - x, where F is the iteration. A few differences of the last
states and residuals span the slowest directions of a linear iteration; the state that they predict to have
the smallest residual is proposed in place of the next one. The caller decides whether it is an improvement.
"""

import numpy as np
from scipy.linalg import lapack

_MAX_DIFFERENCES = 10  # Number of differences that are combined, if they fit into ``_HISTORY_BYTES``.
_HISTORY_BYTES = 2**26

# Reciprocal condition number below which the differences count as linearly dependent.
_DEPENDENT_BELOW = 1e-10
_MAX_PAUSE = 7  # Largest number of plain steps after a rejected proposal.


class AndersonMixing:
    """Combinations of the last steps, proposed in place of the next one.

    A rejected proposal is followed by plain steps, about twice as many each time. So the acceleration costs
    little where it does not help.
    """

    def __init__(self):
        self._pause = self._pause_left = 0
        self._points, self._residuals = [], []

    def step(self):
        """Note that a step has been made."""
        self._pause_left -= 1

    def combination(self, point, residual):
        """The state that the last ones lead to, (D,), or None.

        Parameters
        ----------
        point, residual : ndarrays of shape (D,)
            The present state, and its change by a step.
        """
        kept = int(np.clip(_HISTORY_BYTES // (16 * len(point)), 2, _MAX_DIFFERENCES))
        self._points = [*self._points[-kept:], point]
        self._residuals = [*self._residuals[-kept:], residual]
        if len(self._points) == 1 or self._pause_left > 0:
            return None
        steps, changes = np.diff(self._points, axis=0).T, np.diff(self._residuals, axis=0).T
        # The coefficients of smallest norm that combine the changes to the residual. LAPACK is called
        # directly, because its wrappers take longer than factoring some ten columns.
        size, n_changes = changes.shape
        right = np.zeros((max(size, n_changes), 1))
        right[:size, 0] = residual
        pivots, n_work = np.zeros(n_changes, dtype=np.int32), 64 * (n_changes + 1) + size
        coefficients = lapack.dgelsy(changes, right, pivots, _DEPENDENT_BELOW, n_work)[1][:n_changes, 0]
        return point + residual - (steps + changes) @ coefficients

    def reject(self):
        """Discard the history after a proposal that was no improvement, and pause for some steps."""
        self._pause = min(2 * self._pause + 1, _MAX_PAUSE)
        self._pause_left = self._pause
        self._points, self._residuals = [], []

    def accept(self):
        """Allow proposals at every step again, after one that was an improvement."""
        self._pause = 0
