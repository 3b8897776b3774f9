"""Anderson's acceleration of the iterations, and the number of steps that are still to go.

*Conventions.* Sufficient statistics s of several q are compared by their differences from those of one, q_0,
in units of its mean-field standard deviations: x = T'(s - s_0), where R = T T' is the inverse of the
complete information at q_0. In these coordinates an iteration contracts by a symmetric matrix, I - S, whose
slowest directions are spanned by a few differences of successive x (`anderson_mixing`). `ascent` decides
which proposals are taken.
"""

import numpy as np

from sklearn_lrvb.anderson_mixing import AndersonMixing

# Distance from the fixed point, in mean-field standard deviations, at which acceleration ends.
FIXED_POINT_TOLERANCE = 1e-9

# Newton's method takes over where the iterations still to go are estimated at more than this many times the
# cost of a Newton step. The margin is needed because acceleration gathers speed, so that its rate so far
# overstates the iterations to go, and because Newton's method takes two or three steps, not one.
_NEWTON_MARGIN = 2.5

# Share of the cost of a Newton step that accelerated iterations must have cost before it is taken, so that a
# failure at most triples their cost. Over 108 default fits of small tables shares of 0.3 and 0.5 took the
# same time, and 1 took 10 % more. Where the iterations before acceleration were counted too, heavy tails in
# 20 columns with missing values took 1.5 times as long.
_SHARE_OF_ITERATIONS = 0.5

_RATE_STEPS = 5  # Number of steps over which the rate of convergence is estimated.
# Number of steps in which the distance must halve; otherwise the iterations have stalled.
_STALLED_STEPS = 10


class Acceleration:
    """Combinations of the last iterations (`AndersonMixing`), in the statistics of the posteriors."""

    def __init__(self):
        self._distances, self._n_iterations = [], 0
        self._mixing = AndersonMixing()
        self._reference = None  # The posterior from whose statistics differences are taken.
        self._points = {}  # Of the posteriors that the fit may be at next.

    def record(self, distance):
        """Note the distance of a state from the fixed point, in mean-field standard deviations."""
        self._distances.append(distance)
        self._mixing.step()

    def steps_to_go(self, distance):
        """Number of steps until ``distance`` at the rate of the last ones; infinite if they diverge."""
        over = min(_RATE_STEPS, len(self._distances) - 1)
        if over < 1:
            return np.inf
        now, before = self._distances[-1], self._distances[-1 - over]
        if not 0 < now < before:
            return 0.0 if now <= distance else np.inf
        return max(0.0, np.log(now / distance) / np.log(before / now) * over)

    def newton_pays(self, price):
        """Whether a Newton step at the price of ``price`` iterations is cheaper than those still to go."""
        is_due = self._n_iterations >= _SHARE_OF_ITERATIONS * price
        return is_due and self.steps_to_go(FIXED_POINT_TOLERANCE) > _NEWTON_MARGIN * price

    def has_stalled(self):
        """Whether the distance has not halved for a while."""
        recent = self._distances[-_STALLED_STEPS:]
        return len(recent) == _STALLED_STEPS and 2.0 * min(recent) > recent[0]

    def proposal(self, posterior, next_posterior):
        """The posterior that the last iterations lead to, or None.

        Parameters
        ----------
        posterior : posterior of a mixture, the state
        next_posterior : posterior of a mixture, the state after an iteration

        Raises
        ------
        DegenerateComponentError
            Where the combination is not the statistics of any proper posterior.
        """
        self._n_iterations += 1
        if self._reference is None:
            self._reference = posterior
            self._complete = posterior.model.information(posterior).complete
        point = self._points[posterior] if posterior in self._points else self._point(posterior)
        next_point = self._point(next_posterior)
        self._points = {next_posterior: next_point}
        combined = self._mixing.combination(point, next_point - point)
        if combined is None:
            return None
        proposed = self._reference.after_step(self._complete.solve_root_transposed(combined[:, None])[:, 0])
        if proposed.counts.min() > 0:  # Otherwise a count was raised to zero, and the point is another.
            self._points[proposed] = combined
        return proposed

    def _point(self, posterior):
        statistics = self._reference.difference(posterior)
        return self._complete.times_root_transposed(statistics[:, None])[:, 0]

    def reject(self):
        """Discard the history after a proposal that was no improvement, and pause for some iterations."""
        self._mixing.reject()
        self._reference, self._points = None, {}

    def accept(self):
        """Allow proposals at every step again, after one that was an improvement."""
        self._mixing.accept()
