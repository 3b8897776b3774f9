"""Fitting q: coordinate ascent, and Newton's method on the sufficient statistics.

With s the sufficient statistics and EM(s) one sweep, Newton's step for s = EM(s) is
R^-1 M^-1 (EM(s) - s) in the current frames: the matrix of the linear response covariance. Its decrement
is the distance to the optimum in posterior standard deviations, half its square the ELBO to be gained.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from sklearn_lrvb.gaussian_mixture.response import (
    observed_information,
    solver_costs,
    step,
    sweep_cost,
    sweep_residual,
)
from sklearn_lrvb.gaussian_mixture.sweep import Sweep, sweep
from sklearn_lrvb.gaussian_mixture.variational_posterior import (
    DegenerateComponentError,
    VariationalPosterior,
)

_FIRST_SWEEPS = 5  # before the first Newton step, where curvature says little
_PATIENCE = 30  # sweeps granted to a bound that gains faster and faster
_HALVINGS = 5
_LEAST_COUNT_KEPT = 0.1  # of any component by one Newton step: further out the quadratic model is void
_POLISHED = 1e-9  # decrement at which polishing stops: float64 sees no further gain
_CLOSE_ENOUGH = 1e-7  # decrement that polishing must reach as long as it makes progress
_POLISHING_STEPS = 5
_ROUND_OFF = 1e-14  # of the lower bound, per unit and row


@dataclass(frozen=True)
class Fit:
    """A state of the fit.

    Attributes
    ----------
    posterior : VariationalPosterior
    swept : Sweep at the posterior
    path : tuple of float, the lower bound at the start and after every step
    n_before : int, steps at the head of the path that earlier fits took
    converged : bool
    information : ObservedInformation at the posterior, or None
    direction : Newton's step at the posterior, (D,), or None
    decrement : float, Newton decrement at the posterior, or NaN
    """

    posterior: VariationalPosterior
    swept: Sweep
    path: tuple
    n_before: int = 0
    converged: bool = False
    information: object = None
    direction: np.ndarray | None = None
    decrement: float = np.nan

    @property
    def lower_bound(self):
        return self.path[-1]

    @property
    def n_steps(self):
        """Steps so far, those of earlier fits that this one continues included."""
        return len(self.path) - 1

    @property
    def n_iter(self):
        """Steps of this fit."""
        return self.n_steps - self.n_before

    @property
    def gain(self):
        """Lower bound gained by the last step."""
        return self.path[-1] - self.path[-2]

    @property
    def residual(self):
        """EM(s) - s, (D,)."""
        return sweep_residual(self.posterior, self.swept.moments)

    @property
    def is_strict_optimum(self):
        """Whether the information at the posterior is positive definite."""
        return self.information.is_positive_definite


@dataclass(frozen=True)
class Ascent:
    """The rows to fit and the rules of the fit.

    Attributes
    ----------
    rows : CentredRows
    tol : float, ELBO still to be gained ("newton") or gained last ("coordinate_ascent")
    max_iter : int, steps of either kind
    on_step : callable(n_iter, gain), told of every step
    """

    rows: object
    tol: float
    max_iter: int
    on_step: Callable = lambda n_iter, gain: None

    def start(self, posterior, path=()):
        """State before the first step; ``path`` is that of the fit that this one may continue."""
        swept = sweep(self.rows, posterior)
        fit = Fit(posterior, swept, (swept.lower_bound,))
        if path and abs(path[-1] - fit.lower_bound) <= self._round_off(fit):
            path = path[-_PATIENCE - 1 :]
            fit = replace(fit, path=path, n_before=len(path) - 1)
        return fit

    def _arrive(self, fit, posterior, swept):
        arrived = Fit(posterior, swept, (*fit.path, swept.lower_bound), fit.n_before)
        self.on_step(arrived.n_iter, arrived.gain)
        return arrived

    def _sweep(self, fit):
        posterior = fit.posterior.moved(fit.swept.moments)
        return self._arrive(fit, posterior, sweep(self.rows, posterior))

    def coordinate_ascent(self, fit):
        """Sweeps until the last gain is below ``tol``."""
        while fit.n_iter < self.max_iter and not fit.converged:
            fit = self._sweep(fit)
            fit = replace(fit, converged=abs(fit.gain) < self.tol)
        return fit

    def newton(self, fit):
        """Sweeps while they pay, then Newton steps until ``tol``, then polishing steps."""
        while fit.n_iter < self.max_iter and not self._newton_pays(fit):
            fit = self._sweep(fit)
        try:
            return self._newton_phase(fit)
        except DegenerateComponentError:
            # Under an improper prior the bound rises without limit as a component empties. Larger steps
            # can run up there where sweeps stop at an optimum on the way.
            swept = self.coordinate_ascent(fit)
            return self._newton_phase(replace(swept, converged=False))

    def _newton_phase(self, fit):
        """Newton steps until ``tol``, then polishing steps."""
        while fit.n_iter < self.max_iter and not fit.converged:
            fit = self.inform(fit)
            if fit.decrement < _POLISHED:  # the end, or a saddle that no step leaves
                return self._stay(fit)
            if fit.is_strict_optimum and 0.5 * fit.decrement**2 < self.tol:
                fit = self._polish(fit)
            else:
                fit = self._newton_step(fit)
        return fit

    def _stay(self, fit):
        """The end of a fit where Newton's step is none; it counts where it is the only one."""
        if not fit.n_iter:
            fit = replace(fit, path=(*fit.path, fit.lower_bound))
            self.on_step(fit.n_iter, fit.gain)
        return replace(fit, converged=fit.information.proves_positive_definite())

    def inform(self, fit):
        """The same state with the information, the step and the decrement at its posterior."""
        if fit.information is not None:
            return fit
        information = observed_information(self.rows, fit.posterior, fit.swept)
        direction, decrement = information.newton_step(fit.residual)
        return replace(fit, information=information, direction=direction, decrement=decrement)

    def _newton_pays(self, fit):
        """Whether a Newton step is due: sweeps have converged, or would take longer to."""
        if fit.n_steps and fit.gain <= self._round_off(fit):
            return True
        if fit.n_steps < _FIRST_SWEEPS:
            return False
        before = fit.path[-2] - fit.path[-3]
        if fit.gain >= before:
            # leaving a plateau: curvature here belongs to the saddle behind, for a while
            return fit.n_steps >= _PATIENCE
        rate = fit.gain / before
        to_gain = fit.gain * rate / (1.0 - rate)
        if to_gain <= self.tol:
            return True
        sweeps_to_go = np.log(to_gain / max(self.tol, np.finfo(float).tiny)) / -np.log(rate)
        return sweeps_to_go > 2.0 * self._sweeps_per_step(fit)

    def _sweeps_per_step(self, fit):
        """Price of a Newton step by the cheapest solver, in sweeps."""
        n_samples, posterior, swept = self.rows.n_samples, fit.posterior, fit.swept
        costs = solver_costs(n_samples, posterior, swept.n_alternatives, swept.n_uncertain_pairs)
        return min(costs.costs(n_targets=1).values()) / sweep_cost(n_samples, posterior)

    def _round_off(self, fit):
        """Differences of the lower bound below this mean nothing."""
        return _ROUND_OFF * (abs(fit.lower_bound) + self.rows.total_weight)

    def _newton_step(self, fit):
        """One safeguarded Newton step; a sweep where no fraction of it raises the lower bound."""
        for halving in range(_HALVINGS):
            moved = self._try(fit, 0.5**halving * fit.direction)
            if moved is not None:
                return moved
        return self._sweep(fit)

    def _try(self, fit, coefficients):
        """The state after ``coefficients``; None where infeasible, too far, or where the ELBO falls."""
        try:
            posterior = step(fit.posterior, coefficients)
        except DegenerateComponentError:
            return None
        if np.any(posterior.counts < _LEAST_COUNT_KEPT * fit.posterior.counts):
            return None
        swept = sweep(self.rows, posterior)
        if not swept.lower_bound >= fit.lower_bound - self._round_off(fit):
            return None
        return self._arrive(fit, posterior, swept)

    def _polish(self, fit):
        """Steps with the factor at hand; converged once they end where the optimum is.

        Within ``tol`` of the optimum M hardly changes: every step shrinks the distance manyfold for the
        price of one sweep. The covariance needs M at the end, where it also tells how well it went.
        """
        start, direction, distance = fit, fit.direction, fit.decrement
        for _ in range(_POLISHING_STEPS):
            if distance < _POLISHED or fit.n_iter == self.max_iter:
                break
            polished = self._try(fit, direction)
            if polished is None:
                break
            fit = polished
            direction, distance = start.information.newton_step(fit.residual)
        if fit is start:
            fit = self._newton_step(start)
        fit = self.inform(fit)
        gained = fit.lower_bound - start.lower_bound
        stalled = gained <= self._round_off(fit) and fit.decrement > 0.5 * start.decrement
        arrived = fit.decrement < _CLOSE_ENOUGH or stalled or fit.n_iter == self.max_iter
        within_tol = 0.5 * fit.decrement**2 < self.tol
        return replace(fit, converged=bool(fit.is_strict_optimum and within_tol and arrived))
