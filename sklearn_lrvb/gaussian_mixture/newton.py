"""Fitting q: coordinate ascent, and Newton's method on the sufficient statistics.

With s the sufficient statistics and EM(s) one sweep, Newton's step for s = EM(s) is
R^-1 M^-1 (EM(s) - s) in the current frames: the matrix of the linear response covariance. Its decrement
is the distance to the optimum in posterior standard deviations, half its square the ELBO to be gained.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from sklearn_lrvb.gaussian_mixture.response import observed_information, step, sweep_residual
from sklearn_lrvb.gaussian_mixture.sweep import Sweep, sweep
from sklearn_lrvb.gaussian_mixture.variational_posterior import (
    DegenerateComponentError,
    VariationalPosterior,
)

_FIRST_SWEEPS = 5  # before the first Newton step, where curvature says little
_HALVINGS = 5
_POLISHED = 1e-9  # decrement at which polishing stops: float64 sees no further gain
_POLISHING_STEPS = 5
_ROUND_OFF = 1e-14  # of the lower bound, per unit and row


@dataclass(frozen=True)
class Fit:
    """A state of the fit; ``lower_bounds`` has one entry a step taken.

    Attributes
    ----------
    posterior : VariationalPosterior
    swept : Sweep at the posterior
    lower_bounds : list of float
    converged : bool
    information : ObservedInformation at the posterior, or None
    decrement : float, Newton decrement at the posterior, or NaN
    """

    posterior: VariationalPosterior
    swept: Sweep
    lower_bounds: list = field(default_factory=list)
    converged: bool = False
    information: object = None
    decrement: float = np.nan

    @property
    def lower_bound(self):
        return self.swept.lower_bound

    @property
    def n_iter(self):
        return len(self.lower_bounds)

    @property
    def residual(self):
        """EM(s) - s, (K F,)."""
        return sweep_residual(self.posterior, self.swept.moments)

    @property
    def last_gain(self):
        """Lower bound gained by the last step; infinite before the second."""
        if self.n_iter < 2:
            return np.inf
        return self.lower_bounds[-1] - self.lower_bounds[-2]


@dataclass(frozen=True)
class Ascent:
    """The rows to fit and the rules of the fit.

    Attributes
    ----------
    rows : CentredRows
    tol : float, ELBO still to be gained ("newton") or gained last ("coordinate_ascent")
    max_iter : int, steps of either kind
    dense : bool, whether the information matrix may be formed; without it sweeps are all there is
    on_step : callable(n_iter, gain), told of every step
    """

    rows: object
    tol: float
    max_iter: int
    dense: bool = True
    on_step: Callable = lambda n_iter, gain: None

    def start(self, posterior):
        """State before the first step."""
        return Fit(posterior, sweep(self.rows, posterior))

    def _arrive(self, fit, posterior, swept):
        self.on_step(fit.n_iter + 1, swept.lower_bound - fit.lower_bound)
        return Fit(posterior, swept, [*fit.lower_bounds, swept.lower_bound])

    def _sweep(self, fit):
        posterior = fit.posterior.moved(fit.swept.moments)
        return self._arrive(fit, posterior, sweep(self.rows, posterior))

    def coordinate_ascent(self, fit):
        """Sweeps until the last gain is below ``tol``."""
        while fit.n_iter < self.max_iter and not fit.converged:
            before = fit.lower_bound
            fit = self._sweep(fit)
            fit = replace(fit, converged=abs(fit.lower_bound - before) < self.tol)
        return fit

    def newton(self, fit):
        """Sweeps while they pay, then Newton steps until ``tol``, then polishing steps."""
        if not self.dense:
            return self.coordinate_ascent(fit)
        while fit.n_iter < self.max_iter and not self._newton_pays(fit):
            fit = self._sweep(fit)
        while fit.n_iter < self.max_iter and not fit.converged:
            fit = self.inform(fit)
            if fit.information.is_positive_definite and 0.5 * fit.decrement**2 < self.tol:
                fit = replace(self._polish(fit), converged=True)
            else:
                fit = self._newton_step(fit)
        return fit

    def inform(self, fit):
        """The same state with the information matrix and the decrement at its posterior."""
        if fit.information is not None or not self.dense:
            return fit
        information = observed_information(self.rows, fit.posterior)
        _, decrement = information.newton_step(fit.residual)
        return replace(fit, information=information, decrement=decrement)

    def _newton_pays(self, fit):
        """Whether a Newton step is due: sweeps have converged, or would take longer to."""
        if fit.n_iter < _FIRST_SWEEPS:
            return False
        last, before = fit.last_gain, fit.lower_bounds[-2] - fit.lower_bounds[-3]
        if not 0 < last < before:
            return True
        rate = last / before
        to_gain = last * rate / (1.0 - rate)
        if to_gain <= self.tol:
            return True
        sweeps_to_go = np.log(to_gain / max(self.tol, np.finfo(float).tiny)) / -np.log(rate)
        return sweeps_to_go > 2.0 * self._newton_cost(fit.posterior)

    def _newton_cost(self, posterior):
        """Flops of a Newton step over those of a sweep, were every row uncertain."""
        n_components, n_features = posterior.offsets.shape
        n_coefficients = posterior.structure.n_coefficients
        size = n_components * n_coefficients
        gram = self.rows.n_samples * size * (size + n_coefficients)
        # elementwise work counts for about ten times its flops
        one_sweep = self.rows.n_samples * n_components * (4 * n_features**2 + 60 * n_features + 200)
        return (gram + size**3) / one_sweep

    def _newton_step(self, fit):
        """One safeguarded Newton step; a sweep where no fraction of it raises the lower bound."""
        direction, _ = fit.information.newton_step(fit.residual)
        for halving in range(_HALVINGS):
            moved = self._try(fit, 0.5**halving * direction)
            if moved is not None:
                return moved
        return self._sweep(fit)

    def _try(self, fit, coefficients):
        """The state after ``coefficients``, or None where infeasible or where the ELBO falls."""
        try:
            posterior = step(fit.posterior, coefficients)
        except DegenerateComponentError:
            return None
        swept = sweep(self.rows, posterior)
        slack = _ROUND_OFF * (abs(fit.lower_bound) + self.rows.n_samples)
        if not swept.lower_bound >= fit.lower_bound - slack:
            return None
        return self._arrive(fit, posterior, swept)

    def _polish(self, fit):
        """Steps with the factor at hand, until the gradient is round-off.

        Within ``tol`` of the optimum M hardly changes: every step shrinks the distance manyfold for the
        price of one sweep.
        """
        information = fit.information
        for _ in range(_POLISHING_STEPS):
            direction, distance = information.newton_step(fit.residual)
            if distance < _POLISHED or fit.n_iter == self.max_iter:
                break
            polished = self._try(fit, direction)
            if polished is None:
                break
            fit = polished
        return fit
