"""Fitting q: coordinate ascent, its acceleration, and Newton's method on the sufficient statistics.

With s the sufficient statistics and EM(s) one sweep, Newton's step for s = EM(s) is
R^-1 M^-1 (EM(s) - s) in the current frames: the matrix of the linear response covariance. Its decrement
is the distance to the optimum in posterior standard deviations, half its square the ELBO to be gained.

Accelerated sweeps cost one sweep each and come within round-off of the optimum. That it is one shows in a few
products with the matrix, or in the matrix itself where that costs no more; the covariance forms it at first
need. Newton's steps are taken before that where a matrix is cheaper than the sweeps to go.

Moves between optima (`moves`, `search`) interrupt the climb; each is made only where the bound rises by it.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from sklearn_lrvb.gaussian_mixture.e_step.e_step import EStepResult, e_step
from sklearn_lrvb.gaussian_mixture.fitting.anderson_acceleration import Acceleration
from sklearn_lrvb.gaussian_mixture.fitting.moves import Moves, occupied
from sklearn_lrvb.gaussian_mixture.fitting.search import Search
from sklearn_lrvb.gaussian_mixture.information.cost_model import solver_costs, sweep_cost
from sklearn_lrvb.gaussian_mixture.information.observed_information import (
    complete_information,
    observed_information,
    step,
    sweep_residual,
)
from sklearn_lrvb.gaussian_mixture.posterior.variational_posterior import (
    DegenerateComponentError,
    VariationalPosterior,
)

_LEAST_FIRST_SWEEPS = 4  # before anything else, while sweeps gain most
_MOST_FIRST_SWEEPS = 30  # sweeps granted to find the way to an optimum
_LOCAL_REGIME_SHIFT = 0.03  # of a component's standard deviation
_MOST_HALVINGS = 5
_LEAST_SHARE_KEPT = 0.1  # of any component by one larger step: further out the models of it are void
_TRIAL_STEPS = 20
_NEWTON_MARGIN = (
    5.0  # steps foreseen for one saved: acceleration gathers speed, and Newton takes two or three steps
)
_FIXED_POINT_TOLERANCE = 1e-10  # distance, in mean-field standard deviations, at which acceleration ends
_REUSE_FACTOR_BELOW = (
    0.1  # decrement, in posterior standard deviations, from which the factor at hand serves to the end
)
_SLOW_CONTRACTION = 0.4  # of the decrement left by a Newton step
_POLISHED_DECREMENT = 1e-9  # decrement at which polishing stops: float64 sees no further gain
_ACCEPTED_DECREMENT = (
    1e-8  # decrement that is not polished, and that polishing must reach while it makes progress
)
_POLISHING_STEPS = 5
_NEGATIVE_CURVATURE = 1e-6  # smallest eigenvalue of S, downwards, that is a way out
_ROUND_OFF = 1e-14  # of the lower bound, per unit and row
_STEPS_BETWEEN_LOOKS = 10  # for moves; looking every 5 or 20 steps made no difference over 219 fits
_SWEEPS_AFTER_A_MOVE = 2
_SWEEPS_ON_TRIAL = 5  # that a merge which loses at first has to make up for it


@dataclass(frozen=True)
class Fit:
    """A state of the fit.

    Attributes
    ----------
    posterior : VariationalPosterior
    e_step_result : EStepResult at the posterior
    path : tuple of float, the lower bound at the start and after every step
    n_before : int, steps at the head of the path that earlier fits took
    converged : bool
    finished : bool, converged or nowhere to go
    information : ObservedInformation at the posterior, or None
    direction : Newton's step at the posterior, (D,), or None
    decrement : float, Newton decrement at the posterior, or NaN
    """

    posterior: VariationalPosterior
    e_step_result: EStepResult
    path: tuple
    n_before: int = 0
    converged: bool = False
    finished: bool = False
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
        return sweep_residual(self.posterior, self.e_step_result.moments)

    @cached_property
    def distance(self):
        """From the sweep's fixed point, in mean-field standard deviations."""
        complete = complete_information(self.posterior)
        return np.linalg.norm(complete.times_root_transposed(self.residual[:, None]))

    @cached_property
    def next_posterior(self):
        """The posterior after a sweep."""
        return self.posterior.m_step(self.e_step_result.moments)

    @property
    def is_strict_optimum(self):
        """Whether the information at the posterior is positive definite."""
        return self.information.is_positive_definite


@dataclass(frozen=True)
class NewtonOffer:
    """What a Newton step would cost.

    Attributes
    ----------
    solver : str, the cheapest of the observed information
    n_sweeps : float, its price in sweeps
    """

    solver: str
    n_sweeps: float

    def pays(self, acceleration):
        """Whether it is cheaper than the sweeps to go.

        It is not tried before sweeps have cost as much: where it fails, it at most doubles the cost of a fit.
        """
        tried = acceleration.n_steps >= self.n_sweeps
        return tried and acceleration.steps_to_go(_FIXED_POINT_TOLERANCE) > _NEWTON_MARGIN * self.n_sweeps


@dataclass(frozen=True)
class Ascent:
    """The rows to fit and the rules of the fit.

    Attributes
    ----------
    rows : CentredRows
    tol : float, ELBO still to be gained ("newton") or gained last ("coordinate_ascent")
    max_iter : int, steps of either kind
    on_step : callable(n_iter, gain), told of every step
    moves : Moves or None, which moves between optima `newton` may make
    on_move : callable(n_iter, name), told of every move
    """

    rows: object
    tol: float
    max_iter: int
    on_step: Callable = lambda n_iter, gain: None
    moves: Moves | None = None
    on_move: Callable = lambda n_iter, name: None

    def start(self, posterior, path=()):
        """State before the first step; ``path`` is that of the fit that this one may continue."""
        result = e_step(self.rows, posterior)
        fit = Fit(posterior, result, (result.lower_bound,))
        if path and abs(path[-1] - fit.lower_bound) <= self._round_off(fit):
            path = path[-_MOST_FIRST_SWEEPS - 1 :]
            fit = replace(fit, path=path, n_before=len(path) - 1)
        return fit

    def _accepted(self, fit, posterior, result):
        fell = fit.lower_bound - result.lower_bound
        lower_bound = fit.lower_bound if 0 < fell <= self._round_off(fit) else result.lower_bound
        arrived = Fit(posterior, result, (*fit.path, lower_bound), fit.n_before)
        self.on_step(arrived.n_iter, arrived.gain)
        return arrived

    def _sweep(self, fit):
        return self._accepted(fit, fit.next_posterior, e_step(self.rows, fit.next_posterior))

    def _sweep_in_order(self, fit):
        """A sweep that leaves the components in their best order, where moves may act."""
        posterior = fit.next_posterior if self.moves is None else self.moves.in_order(fit.next_posterior)
        return self._accepted(fit, posterior, e_step(self.rows, posterior))

    def coordinate_ascent(self, fit):
        """Sweeps until the last gain is below ``tol``."""
        while fit.n_iter < self.max_iter and not fit.converged:
            fit = self._sweep(fit)
            fit = replace(fit, converged=abs(fit.gain) < self.tol)
        return fit

    def newton(self, fit):
        """Sweeps, accelerated sweeps, and Newton steps where they pay, until ``tol`` and polished.

        Where the moves include a search, every climb from one of its moves may take ``max_iter`` steps.
        """
        fit = self._newton(fit)
        while self.moves is not None and self.moves.searches and fit.finished:
            moved = self._searched(fit)
            if moved is None:
                break
            fit = replace(self, max_iter=moved.n_iter + self.max_iter)._climb(moved, Acceleration())
        return fit

    def _newton(self, fit):
        acceleration = Acceleration()
        while fit.n_iter < self.max_iter and not self._in_local_regime(fit):
            acceleration.arrive(fit.distance)
            fit = self._sweep_in_order(fit)
        try:
            return self._climb(fit, acceleration)
        except DegenerateComponentError:
            # Under an improper prior the bound rises without limit as a component empties. Larger steps
            # can run up there where sweeps stop at an optimum on the way.
            result = self.coordinate_ascent(fit)
            return self._climb(replace(result, converged=False), Acceleration())

    def _in_local_regime(self, fit):
        """Whether sweeps gain less and less, and move the components little beside their size.

        Larger steps from further out would end in another optimum than sweeps do, as often a worse one as
        a better.
        """
        if fit.n_steps and fit.gain <= self._round_off(fit):
            return True
        if fit.n_steps < _LEAST_FIRST_SWEEPS or fit.n_steps >= _MOST_FIRST_SWEEPS:
            return fit.n_steps >= _MOST_FIRST_SWEEPS
        slows_down = fit.gain < fit.path[-2] - fit.path[-3]
        return slows_down and fit.distance < _LOCAL_REGIME_SHIFT * np.sqrt(self.rows.total_weight)

    def trial(self, fit):
        """A few steps of `newton`, until it is near its optimum or at least it shows where it leads."""
        acceleration, has_looked = Acceleration(), False
        while fit.n_iter < min(self.max_iter, _TRIAL_STEPS) and fit.distance > _REUSE_FACTOR_BELOW:
            try:
                if not self._in_local_regime(fit):
                    fit = self._sweep_in_order(fit)
                elif not has_looked:
                    has_looked = True
                    fit = self._moved(fit) or fit
                else:
                    acceleration.arrive(fit.distance)
                    fit = self._accelerated_sweep(fit, acceleration)
            except DegenerateComponentError:  # `newton` knows what to do
                break
        return self._moved(fit) or fit

    def _climb(self, fit, acceleration):
        """Accelerated sweeps until they stand still; Newton steps there, and before where they pay.

        Moves are looked for at the start, every few steps, where the sweeps stand still, and at the end.
        """
        looked = -np.inf
        while fit.n_iter < self.max_iter:
            if not fit.finished:
                acceleration.arrive(fit.distance)
            is_still = fit.finished or self._stands_still(fit, acceleration)
            if fit.n_iter - looked >= (1 if is_still else _STEPS_BETWEEN_LOOKS):
                looked = fit.n_iter
                moved = self._moved(fit, is_still)
                if moved is not None:
                    fit, acceleration, looked = moved, Acceleration(), -np.inf
                    continue
            if fit.finished:
                break
            fit, acceleration = self._climbing_step(fit, acceleration, is_still)
        return fit

    def _stands_still(self, fit, acceleration):
        """Whether sweeps have nothing left to gain."""
        return fit.distance < _FIXED_POINT_TOLERANCE or (
            acceleration.stalls() and fit.gain <= self._round_off(fit)
        )

    def _climbing_step(self, fit, acceleration, is_still):
        """The state after one sweep, after Newton's steps or at the end; and the acceleration from there."""
        if is_still and self._seems_optimum(fit):
            return self._finished(fit), acceleration
        offer = None if is_still else self._newton_offer(fit)
        if is_still or offer.pays(acceleration):
            return self._newton_phase(fit, offer), Acceleration()
        return self._accelerated_sweep(fit, acceleration), acceleration

    def _moved(self, fit, at_rest=False):
        """The state after the first move on offer that raises the lower bound, and a few sweeps; or None."""
        if self.moves is None or fit.n_iter >= self.max_iter:
            return None
        moved = self._first_accepted(fit, self.moves.proposals(self.rows, fit, at_rest))
        return None if moved is None else self._swept_after_a_move(moved)

    def _first_accepted(self, fit, moves, n_sweeps=0):
        """The state after the first move that raises the bound, together with some sweeps; or None."""
        try:
            return next(filter(None, (self._after_move(fit, move, n_sweeps) for move in moves)), None)
        except DegenerateComponentError:
            return None

    def _after_move(self, fit, move, n_sweeps):
        """The state after a move and some sweeps, or None where the lower bound has not risen by then."""
        posterior = self.moves.in_order(move.posterior)
        result = e_step(self.rows, posterior)
        for _ in range(n_sweeps):
            posterior = posterior.m_step(result.moments)
            result = e_step(self.rows, posterior)
        if not result.lower_bound > fit.lower_bound + self._round_off(fit):
            return None
        moved = self._accepted(fit, posterior, result)
        self.on_move(moved.n_iter, move.name)
        return moved

    def _swept_after_a_move(self, fit):
        for _ in range(_SWEEPS_AFTER_A_MOVE):
            if fit.n_iter < self.max_iter:
                fit = self._sweep_in_order(fit)
        return fit

    def _searched(self, fit):
        """The state after the first split, or merge on trial, that raises the lower bound; or None."""
        if fit.posterior.n_components == 1:
            return None
        search = Search(self.rows, fit)
        moved = self._first_accepted(fit, search.splits())
        return moved or self._first_accepted(fit, search.trial_merges(), _SWEEPS_ON_TRIAL)

    def _accelerated_sweep(self, fit, acceleration):
        """A step of the acceleration; a sweep where there is none, or none that raises the lower bound."""
        try:
            posterior = acceleration.proposal(fit.posterior, fit.next_posterior)
            if posterior is None:
                return self._sweep(fit)
            # Emptying a component in one step is safe under a proper prior, irreversible under the flat one.
            void = posterior.prior.flat and _starves(fit.posterior, posterior)
            moved = None if void else self._evaluated(fit, posterior)
        except DegenerateComponentError:
            moved = None
        if moved is None:
            acceleration.turn_down()
            return self._sweep(fit)
        acceleration.accept()
        return moved

    def _solver_costs(self, fit):
        result = fit.e_step_result
        return solver_costs(
            self.rows.n_samples,
            fit.posterior.structure,
            result.n_alternatives,
            result.n_ambiguous_pairs,
        )

    def _newton_offer(self, fit):
        by_solver = self._solver_costs(fit).newton_costs()
        solver = min(by_solver, key=by_solver.get)
        return NewtonOffer(
            solver, by_solver[solver] / sweep_cost(self.rows.n_samples, fit.posterior.structure)
        )

    def _seems_optimum(self, fit):
        """Whether the end of the sweeps shows as an optimum for less than the matrix would cost."""
        n_products = self._solver_costs(fit).products_for_a_matrix()
        if fit.distance > _FIXED_POINT_TOLERANCE or n_products < 1:
            return False
        information = observed_information(self.rows, fit.posterior, fit.e_step_result, solver="matrix_free")
        return information.shows_positive_definite(n_products)

    def _newton_phase(self, fit, offer=None):
        """Newton and polishing steps to the end, or until sweeps of the price on offer are the better buy.

        That is, where M is indefinite, if they gain more; and where it is not, if the decrement falls no
        faster than a sweep may make it: a component on its way out is halved by every step.
        """
        gain_of_sweeps = offer.n_sweeps * fit.gain if offer else -np.inf
        decrement = np.inf
        while fit.n_iter < self.max_iter and not fit.finished:
            fit = self.with_information(fit, offer and offer.solver)
            if fit.decrement < (
                _ACCEPTED_DECREMENT if fit.distance < _FIXED_POINT_TOLERANCE else _POLISHED_DECREMENT
            ):
                return self._confirm_optimum(fit)
            if fit.is_strict_optimum and self._is_near(fit):
                fit = self._polish(fit)
            elif offer and fit.is_strict_optimum and fit.decrement > _SLOW_CONTRACTION * decrement:
                break
            else:
                decrement = fit.decrement if fit.is_strict_optimum else np.inf
                fit = self._newton_step(fit)
                if decrement == np.inf and fit.gain < gain_of_sweeps:
                    break
        return fit

    def _is_near(self, fit):
        """Whether M hardly changes from here to the optimum."""
        return fit.decrement < _REUSE_FACTOR_BELOW or 0.5 * fit.decrement**2 < self.tol

    def _confirm_optimum(self, fit):
        """The end of the fit at an optimum; from another stationary point, a step up where there is one."""
        proved = fit.information.seems_positive_definite()
        moved = None if proved else self._escape_saddle(fit)
        return self._finished(fit, proved) if moved is None else moved

    def _finished(self, fit, converged=True):
        if not fit.n_iter:  # a step that goes nowhere counts where it is the only one
            fit = replace(fit, path=(*fit.path, fit.lower_bound))
            self.on_step(fit.n_iter, fit.gain)
        return replace(fit, converged=converged, finished=True)

    def _escape_saddle(self, fit):
        """A step along the eigenvector of a negative eigenvalue, or None."""
        information = fit.information
        eigenvalue, eigenvector = information.smallest_eigenvalue()
        if eigenvalue > -_NEGATIVE_CURVATURE:
            return None
        away = information.complete.solve_root_transposed(eigenvector[:, None])[:, 0]
        for halving in range(_MOST_HALVINGS):
            moved = self._try(fit, 0.5**halving * away)
            if moved is not None and moved.gain > self._round_off(fit):
                return moved
        return None

    def with_information(self, fit, solver=None):
        """The same state with the information, the step and the decrement at its posterior."""
        if fit.information is not None:
            return fit
        information = observed_information(self.rows, fit.posterior, fit.e_step_result, solver=solver)
        direction, decrement = information.newton_step(fit.residual)
        return replace(fit, information=information, direction=direction, decrement=decrement)

    def _round_off(self, fit):
        """Differences of the lower bound below this mean nothing."""
        return _ROUND_OFF * (abs(fit.lower_bound) + self.rows.total_weight)

    def _newton_step(self, fit):
        """One safeguarded Newton step; a sweep where no fraction of it raises the lower bound."""
        for halving in range(_MOST_HALVINGS):
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
        return None if _starves(fit.posterior, posterior) else self._evaluated(fit, posterior)

    def _evaluated(self, fit, posterior):
        """The state at a posterior; None where the ELBO falls."""
        result = e_step(self.rows, posterior)
        if not result.lower_bound >= fit.lower_bound - self._round_off(fit):
            return None
        return self._accepted(fit, posterior, result)

    def _polish(self, fit):
        """Steps with the factor at hand; converged once they end where the optimum is.

        Every step shrinks the distance manyfold for the price of one sweep, as it would not if M changed its
        sign on the way. Where they come to a halt before, M at the end tells how well it went.
        """
        start, direction, distance = fit, fit.direction, fit.decrement
        for _ in range(_POLISHING_STEPS):
            if distance < _POLISHED_DECREMENT or fit.n_iter == self.max_iter:
                break
            polished = self._try(fit, direction)
            if polished is None:
                break
            fit = polished
            direction, distance = start.information.newton_step(fit.residual)
        if distance < _POLISHED_DECREMENT and start.information.seems_positive_definite():
            return self._finished(replace(fit, decrement=distance))
        if fit is start:
            fit = self._newton_step(start)
        fit = self.with_information(fit)
        gained = fit.lower_bound - start.lower_bound
        stalled = gained <= self._round_off(fit) and fit.decrement > 0.5 * start.decrement
        arrived = fit.decrement < _ACCEPTED_DECREMENT or stalled or fit.n_iter == self.max_iter
        within_tol = 0.5 * fit.decrement**2 < max(self.tol, self._round_off(fit))
        converged = bool(within_tol and arrived and fit.information.seems_positive_definite())
        return replace(fit, converged=converged, finished=converged)


def _starves(before, after):
    """Whether a component loses most of its rows.

    Under a proper prior that of an empty one means nothing: its count is a tail of its density.
    """
    is_model_of_rows = before.prior.flat | occupied(before.counts)
    return np.any(is_model_of_rows & (after.counts < _LEAST_SHARE_KEPT * before.counts))
