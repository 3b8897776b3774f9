"""A state of a fit, and the rules of when to go on in another way or to stop."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from sklearn_lrvb.linear_response.observed_information import Definiteness
from sklearn_lrvb.mixture.e_step import EStepResult
from sklearn_lrvb.mixture.model import occupied

# A fit starts with plain iterations. It makes at least the first number of them, because early iterations
# gain most, and at most the second number before larger steps are tried.
MIN_FIRST_ITERATIONS = 4
MAX_FIRST_ITERATIONS = 30

# Shift of the components in an iteration, in their own standard deviations, below which the fit is in the
# local regime of one optimum. From further out, larger steps may end in another optimum than iterations do.
_LOCAL_REGIME_SHIFT = 0.03

# Newton steps, and accelerated iterations under the flat prior, may not leave a component with less than this
# share of its rows: the quadratic model of the bound is not valid so far out.
_MIN_SHARE_KEPT = 0.1

# Newton's method ends below this decrement, where float64 hardly shows a further gain. It also ends within
# ``tol`` of the optimum where a step neither gains nor halves the decrement.
_LEAST_DECREMENT = 1e-8

# Round-off of the lower bound, relative to its size and the number of rows.
_ROUND_OFF = 1e-14


class AscentStopped(Exception):
    """Ends an ascent at a state because a callback asked for it."""

    def __init__(self, fit):
        super().__init__("A callback stopped the fit.")
        self.fit = replace(fit, stopped=True)


@dataclass
class Fit:
    """A state of the fit, and the rules of when to go on in another way or to stop; nothing of it changes.

    Attributes
    ----------
    posterior : the posterior of a mixture
    e_step_result : EStepResult at the posterior
    path : tuple of float, the lower bound at the start and after every step
    n_before : int, steps at the head of the path that earlier fits took; at most the last 30 of them are kept
    converged : bool
    finished : bool, whether no further step is to be taken
    stopped : bool, whether a callback ended the fit here
    information : ObservedInformation at the posterior, or None
    direction : Newton's step at the posterior, (D,), or None
    decrement : float, Newton decrement at the posterior, or NaN
    definiteness : Definiteness of the information, as far as computing Newton's step has determined it
    lower_bound : float, at the posterior
    n_steps : int, number of steps so far, including those of earlier fits that this one continues
    n_iter : int, number of steps of this fit alone
    is_indefinite : bool, whether negative curvature was met: M is known not to be positive definite
    gain : float, lower bound gained by the last step; infinite before the first
    """

    posterior: object
    e_step_result: EStepResult
    path: tuple
    n_before: int = 0
    converged: bool = False
    finished: bool = False
    stopped: bool = False
    information: object = None
    direction: np.ndarray | None = None
    decrement: float = np.nan
    definiteness: Definiteness = Definiteness.UNDECIDED

    def __post_init__(self):
        self.lower_bound = self.path[-1]
        self.n_steps = len(self.path) - 1
        self.n_iter = self.n_steps - self.n_before
        self.is_indefinite = self.definiteness is Definiteness.INDEFINITE
        self.gain = self.path[-1] - self.path[-2] if self.n_steps else np.inf

    @cached_property
    def residual(self):
        """EM(s) - s, (D,)."""
        return self.posterior.residual(self.e_step_result.moments)

    @cached_property
    def distance(self):
        """Distance from the fixed point of the iterations, in mean-field standard deviations."""
        return self.posterior.distance(self.e_step_result.moments)

    @cached_property
    def next_posterior(self):
        """The posterior after an iteration."""
        return self.posterior.m_step(self.e_step_result.moments)

    def round_off(self, relative=_ROUND_OFF):
        """Differences of the lower bound below this are not significant."""
        return relative * (abs(self.lower_bound) + self.e_step_result.moments.counts.sum())

    @property
    def is_in_local_regime(self):
        """Whether iterations gain less and less, and move the components little relative to their size.

        Larger steps from further out would end in another optimum than iterations do, which is worse as often
        as it is better. One label has one optimum, and a fit whose iterations gain nothing is at one.
        """
        if self.posterior.n_labels == 1 or self.gain <= self.round_off():
            return True
        if self.n_steps < MIN_FIRST_ITERATIONS or self.n_steps >= MAX_FIRST_ITERATIONS:
            return self.n_steps >= MAX_FIRST_ITERATIONS
        gains_less = self.gain < self.path[-2] - self.path[-3]
        return gains_less and self.distance < _LOCAL_REGIME_SHIFT * np.sqrt(
            self.e_step_result.moments.counts.sum()
        )

    def is_at_end(self, last_decrement, tol):
        """Whether the decrement is as small as it gets, given that before the last Newton step."""
        if self.decrement < _LEAST_DECREMENT:
            return True
        has_stalled = self.decrement > 0.5 * last_decrement and self.gain <= self.round_off()
        return has_stalled and self.is_within(tol, self.decrement)

    def is_within(self, tol, distance):
        """Whether half the square of a distance from the optimum is below ``tol``, or below round-off."""
        return 0.5 * distance**2 < max(tol, self.round_off())

    def predicts(self, after, tol):
        """Whether the matrix here serves for a step from ``after``, to where a Newton step has led.

        It was a short step, which has gained what the quadratic model promised.
        """
        if self.is_indefinite or self.information.holds_rows or not self.is_within(tol, self.decrement):
            return False
        promised, gained = 0.5 * self.decrement**2, after.lower_bound - self.lower_bound
        return abs(gained - promised) < 0.5 * promised + self.round_off()

    def with_information(self, rows, solver=None, nearby=None):
        """The same state with the information, the step and the decrement at its posterior.

        Parameters
        ----------
        rows : Rows
        solver : str or None, of the observed information, which counts only where there is none yet
        nearby : ObservedInformation at a posterior so near that it may take its place; or None
        """
        if self.information is not None:
            return self
        information = nearby
        if nearby is None:
            informations = self.posterior.model.information(self.posterior)
            information = informations.observed(rows, self.e_step_result, solver=solver)
        direction, decrement, definiteness = information.newton_step(self.residual)
        return replace(
            self, information=information, direction=direction, decrement=decrement, definiteness=definiteness
        )

    def probed(self):
        """The same state, marked as indefinite where a probe of the information meets negative curvature."""
        if not self.is_indefinite and self.information.definiteness("probe") is Definiteness.INDEFINITE:
            return replace(self, definiteness=Definiteness.INDEFINITE)
        return self

    def loses_most_rows(self, posterior):
        """Whether a component loses most of its rows in one step, to a given posterior.

        Under a proper prior only occupied components are considered: the count of an empty one comes from the
        tail of its density, and may change by any factor.
        """
        counts = self.posterior.counts
        is_considered = self.posterior.prior.flat | occupied(counts)
        return np.any(is_considered & (posterior.counts < _MIN_SHARE_KEPT * counts))
