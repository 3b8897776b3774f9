"""The ascent of a fit, from a start to an optimum of the lower bound.

*Words.* An iteration is an E-step and an M-step (CAVI). A step is whatever makes the path longer: an
iteration, an accelerated one, a step of Newton's method, or a move to another optimum by a split or a merge.
A fit has finished where no further step is to be taken, and converged if that is at an optimum, within
``tol``. A `Fit` is a state on the way.

Iterations, accelerated iterations and Newton's steps all change the sufficient statistics s of q. EM(s) are
the statistics after one iteration. Newton's step towards s = EM(s) is R^-1 M^-1 (EM(s) - s) for statistics in
the coordinates of q, R^-1 being the complete information and M the observed one (`MixtureInformation`). The
Newton decrement is the distance to the optimum in posterior standard deviations, and half its square the
lower bound that is still to be gained.

Accelerated iterations (`acceleration`) cost one iteration each and come within round-off of a stationary
point. A few matrix-vector products then verify a strict optimum; where forming and factoring M is cheaper
than these products, it is factored instead. Newton's steps are taken before that where they cost less than
the iterations still to go. Moves between optima (`moves`, `search`) interrupt the ascent; each is made only
if it raises the lower bound.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from sklearn_lrvb.linear_response.observed_information import Definiteness
from sklearn_lrvb.mixture.acceleration import FIXED_POINT_TOLERANCE, Acceleration
from sklearn_lrvb.mixture.e_step import e_step
from sklearn_lrvb.mixture.fit import MAX_FIRST_ITERATIONS, MIN_FIRST_ITERATIONS, AscentStopped, Fit
from sklearn_lrvb.mixture.model import DegenerateComponentError
from sklearn_lrvb.mixture.moves import LEAST_GAIN, Moves
from sklearn_lrvb.mixture.search import Search

# Steps after which a start is compared with the others (`MultiStart`), and distance from the fixed point, in
# mean-field standard deviations, below which it is compared earlier.
_TRIAL_STEPS = 20
TRIAL_DISTANCE = 0.1

# First iterations after which moves are tried. In 432 fits to iris, wine and breast cancer with "full",
# "tied" or "diag" covariances, trying after 15 lost 3 nats at most, and after 10 up to 330.
_FIRST_ITERATIONS_BEFORE_MOVES = 15

# Steps after which moves are tried again. Every 5 or 20 steps made no difference over 219 fits.
_STEPS_BETWEEN_MOVES = 10
_ITERATIONS_AFTER_A_MOVE = 2
# Iterations within which a move must have raised the bound that may lower it at first: a merge that loses
# little, or a split whose proposal was fitted to a sample of the rows.
_ITERATIONS_ON_TRIAL = 5
# Merges of components whose rows have scales lose much at first, because the scales of all rows and the
# degrees of freedom have to change: they have more iterations, as long as the loss is less than so many gains
# of the last iteration. After one iteration, the loss was 6 to 30 gains where two clusters of t_3 data were
# merged, and at most one where a component was merged with another that had taken its rows far out.
_MOST_ITERATIONS_ON_TRIAL = 20
_HOPELESS = 4.0

# A step that lowers the bound is tried at this many lengths, each half the last; then an iteration
# replaces it.
_MAX_HALVINGS = 5

# If a matrix costs fewer products than this, it is formed. 8 products verify an optimum in most fits, and
# error bars need the matrix anyway.
_PRODUCTS_OF_A_PROBE = 12

# A Newton step that leaves more than this share of the decrement is too slow to pay. Where it is taken with
# the matrix of the last step, and leaves more than the second share, a new matrix is formed.
_SLOW_CONTRACTION = 0.4
_SLOW_WITHOUT_NEW_MATRIX = 0.1

# Where the smallest eigenvalue of M, relative to the complete information, is below minus this, the state
# is a saddle and is left along the eigenvector, at first by so many mean-field standard deviations.
_NEGATIVE_CURVATURE = 1e-6
_ESCAPE = 8.0


@dataclass(frozen=True)
class Ascent:
    """The rows to fit and the rules of the fit.

    Attributes
    ----------
    rows : Rows
    tol : float
        Lower bound still to be gained (`newton`), or gained by the last iteration (`coordinate_ascent`),
        below which the fit has converged.
    max_iter : int, largest number of steps, iterations and Newton steps alike
    on_step : callable(Fit) -> bool, called after every step; `AscentStopped` is raised where it is true
    moves : Moves or None, which moves between optima `newton` may make
    on_move : callable(n_iter, name), called after every move
    """

    rows: object
    tol: float
    max_iter: int
    on_step: Callable = lambda fit: False
    moves: Moves | None = None
    on_move: Callable = lambda n_iter, name: None

    # Where a fit starts and ends; `AscentInSpan` overrides these.

    def start_from(self, responsibilities, prior):
        """The state before the first step, after an M-step from given responsibilities.

        Parameters
        ----------
        responsibilities : array or sparse array (n_samples, n_labels)
        prior : prior of a mixture
        """
        return self.start_at(prior.model.first_posterior(self.rows, prior, responsibilities))

    def start_at(self, posterior, path=()):
        """The state before the first step, at a posterior.

        Parameters
        ----------
        posterior : posterior of a mixture
        path : sequence of float
            Lower bounds of an earlier fit. They are kept if that fit ended at this posterior.
        """
        result = e_step(self.rows, posterior)
        fit = Fit(posterior, result, (result.lower_bound,))
        if path and abs(path[-1] - fit.lower_bound) <= fit.round_off():
            path = path[-MAX_FIRST_ITERATIONS - 1 :]  # As many as make first iterations unnecessary.
            fit = replace(fit, path=path, n_before=len(path) - 1)
        return fit

    def rows_of(self, fit):
        """The rows on which a state was computed."""
        return self.rows

    def ended(self, fit):
        """The state at the end of the fit, in all features of X."""
        return fit

    # The ascents: by plain iterations, by everything there is, and a few steps of the latter.

    def coordinate_ascent(self, fit):
        """Iterations until the last one changes the lower bound by less than ``tol``, or is not accepted."""
        while fit.n_iter < self.max_iter and not fit.converged:
            before, fit = fit, self._iterated_once(fit)
            if fit.posterior is before.posterior:
                break
            change = fit.e_step_result.lower_bound - before.lower_bound
            fit = replace(fit, converged=bool(abs(change) < self.tol))
        return fit

    def newton(self, fit):
        """Plain and accelerated iterations, and Newton steps where they pay, to the optimum up to round-off.

        Where the moves include a search, the ascent from each of its moves may take ``max_iter`` steps.
        """
        fit, acceleration = self._first_iterations(fit)
        try:
            fit = self._ascended(fit, acceleration)
        except DegenerateComponentError:
            # Under an improper prior the bound rises without limit as a component empties. Iterations may
            # stop at an optimum on the way where larger steps run on.
            at_optimum = self.coordinate_ascent(fit)
            fit = self._ascended(replace(at_optimum, converged=False), Acceleration())
        while self.moves is not None and fit.finished:
            moved = self._searched(fit)
            if moved is None:
                break
            n_before = moved.n_iter if self.moves.searches else 0
            try:
                fit = replace(self, max_iter=n_before + self.max_iter)._ascended(moved, Acceleration())
            except DegenerateComponentError:  # The optimum before the search stands.
                break
        return fit

    def trial(self, fit):
        """A few steps of `newton`, enough to compare the optima that several starts lead to."""
        acceleration, moves_were_tried = Acceleration(), False
        try:
            while fit.n_iter < min(self.max_iter, _TRIAL_STEPS) and fit.distance > TRIAL_DISTANCE:
                if not fit.is_in_local_regime:
                    fit = self._iterated_once(fit, in_order=True)
                elif not moves_were_tried:
                    moves_were_tried = True
                    fit = self._moved(fit) or fit
                else:
                    acceleration.record(fit.distance)
                    fit = self._accelerated_iteration(fit, acceleration)
            return self._moved(fit) or fit
        except DegenerateComponentError:  # `newton` will handle it, if this start is continued.
            return fit

    # The phases of `newton`.

    def _first_iterations(self, fit):
        """The state in the local regime, and the acceleration from there.

        Moves are tried on the way: components that share one cluster may exchange rows for many iterations,
        which gain as much each time.
        """
        acceleration, next_try = Acceleration(), _FIRST_ITERATIONS_BEFORE_MOVES
        while fit.n_iter < self.max_iter and not fit.is_in_local_regime:
            if fit.n_steps >= next_try:
                next_try, moved = np.inf, self._moved(fit)
                if moved is not None:
                    fit, acceleration, next_try = moved, Acceleration(), 0
                    continue
            if fit.n_steps >= MIN_FIRST_ITERATIONS:
                acceleration.record(fit.distance)
            fit = self._iterated_once(fit, in_order=True)
        return fit, acceleration

    def in_best_order(self, fit):
        """The state with the components in the best order, which sticks have, if there are moves."""
        if self.moves is None or fit.stopped or fit.n_iter >= self.max_iter:
            return fit
        posterior = replace(self.moves, only_with_surplus=False).in_order(fit.posterior)
        return fit if posterior is fit.posterior else self._accepted_if_gains(fit, posterior, 0.0) or fit

    def _ascended(self, fit, acceleration):
        """Accelerated iterations up to their fixed point; Newton steps there, and earlier where they pay.

        Moves are tried at the start, every few steps, at the fixed point, and at the end if it is higher.
        """
        last_tried = highest = -np.inf  # Step of the last trial, and lower bound of that at a fixed point.
        while fit.n_iter < self.max_iter:
            if not fit.finished:
                acceleration.record(fit.distance)
            has_stalled = acceleration.has_stalled() and fit.gain <= fit.round_off()
            at_fixed_point = fit.finished or has_stalled or self._is_to_be_verified(fit)
            is_higher = at_fixed_point and fit.lower_bound > highest + LEAST_GAIN
            if is_higher or fit.n_iter - last_tried >= _STEPS_BETWEEN_MOVES:
                last_tried, moved = fit.n_iter, self._moved(fit, at_fixed_point)
                if moved is not None:
                    fit, acceleration, last_tried, highest = moved, Acceleration(), -np.inf, -np.inf
                    continue
                highest = fit.lower_bound if at_fixed_point else highest
            if fit.finished:
                return fit
            if at_fixed_point:
                fit = self._finished(fit) if self._seems_optimum(fit) else self._newton_steps(fit)
                acceleration = Acceleration()
                continue
            solver, price = None, np.inf
            # Its price is computed only if a step at the price of one iteration would pay.
            if acceleration.newton_pays(1.0):
                solver, price = self._newton_price(fit)
            if acceleration.newton_pays(price):
                fit, acceleration = self._newton_steps(fit, solver, price * fit.gain), Acceleration()
            else:
                fit = self._accelerated_iteration(fit, acceleration)
        return fit if fit.finished else self._verified(fit)

    def _newton_price(self, fit):
        """The cheapest solver for a Newton step, and what the step costs with it in iterations."""
        information = fit.posterior.model.information(fit.posterior)
        return information.costs(self.rows, fit.e_step_result).newton_price()

    def _verified(self, fit):
        """The same state after the last step allowed, converged if it is within ``tol`` of an optimum.

        The Newton decrement is at least the distance, so that from further out there is nothing to verify.
        """
        if not fit.is_within(self.tol, fit.distance):
            return fit
        fit = fit.with_information(self.rows_of(fit))
        if not fit.is_within(self.tol, fit.decrement):
            return fit
        fit = fit.probed()
        return replace(fit, converged=not fit.is_indefinite, finished=not fit.is_indefinite)

    def _newton_steps(self, fit, solver=None, gain_of_iterations=None):
        """Newton steps to the end, or until iterations gain more for the same cost.

        Iterations gain more in two cases. M may be indefinite, and a Newton step gain less than the
        iterations of the same cost. Near a saddle these would grow slowly, so that it is left first. Or M is
        definite, but the decrement falls no faster than by iterations: while a component empties, for
        example, every Newton step merely halves its count.

        Parameters
        ----------
        fit : Fit
        solver : str or None, of the observed information; None is the default one
        gain_of_iterations : float or None
            Lower bound that iterations gain at the cost of a step. None where they have nothing left to gain,
            so that Newton's method alone can reach the end.
        """
        least_gain, slow = -np.inf, np.inf
        if gain_of_iterations is not None:
            least_gain, slow = gain_of_iterations, _SLOW_CONTRACTION
        last_decrement = np.inf  # At the start of the last step, if M was definite there.
        nearby = None  # M at the start of the last step, where it serves here too.
        while fit.n_iter < self.max_iter:
            fit = fit.with_information(self.rows, solver, nearby)
            if nearby is not None and fit.decrement > _SLOW_WITHOUT_NEW_MATRIX * last_decrement:
                fit, nearby = replace(fit, information=None), None
                continue
            if fit.is_at_end(last_decrement, self.tol):
                fit = fit.probed()
                away = self._escaped(fit) if fit.is_indefinite else None
                finished = away or self._finished(fit)
                return finished if nearby is None else replace(finished, information=None)
            if not fit.is_indefinite and fit.decrement > slow * last_decrement:
                break
            before, fit = fit, self._along(fit, fit.direction, -fit.round_off()) or self._iterated_once(fit)
            last_decrement = np.inf if before.is_indefinite else before.decrement
            nearby = before.information if before.predicts(fit, self.tol) else None
            if before.is_indefinite and fit.gain < least_gain:
                away = self._escaped(before)
                return away if away is not None and away.lower_bound > fit.lower_bound else fit
            del before  # And its matrix, while the next one is formed.
        return fit

    def _is_to_be_verified(self, fit):
        """Whether it is time to verify an optimum: at the fixed point of the iterations, up to round-off.

        Where a matrix will do it, it is formed as soon as the lower bound can gain no more than about
        ``tol``. A Newton step with it takes less time than the iterations that are left.
        """
        if fit.distance < FIXED_POINT_TOLERANCE:
            return True
        if not fit.is_within(self.tol, fit.distance):
            return False
        return self._misses_information(fit) and self._products_for_a_matrix(fit) < _PRODUCTS_OF_A_PROBE

    def _misses_information(self, fit):
        """Whether some row may belong to several components, or has missing values."""
        return bool(fit.e_step_result.n_alternatives or self.rows.has_missing)

    def _products_for_a_matrix(self, fit):
        """The number of products with M that cost as much as to form and factor it, a float."""
        information = fit.posterior.model.information(fit.posterior)
        return information.costs(self.rows, fit.e_step_result).products_for_a_matrix()

    def _seems_optimum(self, fit):
        """Whether a few products verify that the end of the iterations is a strict optimum.

        False where iterations have stalled short of their fixed point, and where the products leave it
        undecided or would cost more than a factorization. No product is needed where every assignment is
        certain and every value there, so that no information is missing.
        """
        if fit.distance > FIXED_POINT_TOLERANCE:
            return False
        if not self._misses_information(fit):
            return True
        n_products = self._products_for_a_matrix(fit)
        if n_products < _PRODUCTS_OF_A_PROBE:
            return False
        information = fit.posterior.model.information(fit.posterior)
        observed = information.observed(self.rows, fit.e_step_result, solver="matrix_free")
        return observed.definiteness(n_products) is Definiteness.POSITIVE_DEFINITE

    def _finished(self, fit):
        """The same state at the end of the fit, converged unless negative curvature was met there."""
        if not fit.n_iter:  # The fit started at its end. Verifying that counts as a step.
            fit = self._rejected(fit)
        return replace(fit, converged=not fit.is_indefinite, finished=True)

    # Moves between optima.

    def _moved(self, fit, at_fixed_point=False):
        """The state after the first proposed move that raises the bound, and a few iterations; or None."""
        if self.moves is None or fit.n_iter >= self.max_iter:
            return None
        moved = self._first_that_gains(fit, self.moves.proposals(self.rows, fit, at_fixed_point))
        if moved is None:
            return None
        for _ in range(_ITERATIONS_AFTER_A_MOVE):
            if moved.n_iter < self.max_iter:
                moved = self._iterated_once(moved, in_order=True)
        return moved

    def _searched(self, fit):
        """The state after the first split, or trial merge, that raises the lower bound; or None.

        Where rows have scales, trial merges are made without a search too.
        """
        posterior, moved, may_search = fit.posterior, None, self.moves.searches
        has_steps_left = posterior.has_scales and fit.n_iter < self.max_iter
        may_try = may_search or (has_steps_left and self.moves.may_act(posterior))
        if posterior.n_components == 1 or not may_try:
            return None
        search = Search(self.rows, fit)
        if may_search:
            after = self._iterated if search.is_of_a_sample else None
            moved = self._first_that_gains(fit, search.splits(), after)
        after = self._iterated
        if posterior.has_scales:
            after = functools.partial(self._iterated_while_hopeful, fit)
        return moved or self._first_that_gains(fit, search.trial_merges(), after)

    def _iterated(self, posterior):
        """The posterior after as many iterations as a move on trial has."""
        for _ in range(_ITERATIONS_ON_TRIAL):
            posterior = posterior.m_step(e_step(self.rows, posterior).moments)
        return posterior

    def _iterated_while_hopeful(self, fit, posterior):
        """The posterior after iterations that make up for what a merge has lost, as long as they may."""
        lower_bound = -np.inf
        for _ in range(_MOST_ITERATIONS_ON_TRIAL):
            result = e_step(self.rows, posterior)
            gain, lower_bound = result.lower_bound - lower_bound, result.lower_bound
            if not 0.0 < fit.lower_bound - lower_bound < _HOPELESS * gain:
                break
            posterior = posterior.m_step(result.moments)
        return posterior

    def _first_that_gains(self, fit, moves, trial=None):
        """The state after the first move that raises the bound, perhaps after some iterations; or None.

        Parameters
        ----------
        fit : Fit
        moves : iterable of Move
        trial : callable posterior -> posterior, the iterations; or None
        """
        moves = iter(moves)
        while True:
            try:
                move = next(moves, None)
                if move is None:
                    return None
                posterior = self.moves.in_order(move.posterior)
                if trial is not None:
                    posterior = trial(posterior)
                moved = self._accepted_if_gains(fit, posterior, fit.round_off())
            except DegenerateComponentError:
                # The move leads to no posterior, or the generator of moves failed. In the latter case it has
                # ended, and the next round finds no move.
                continue
            if moved is not None:
                self.on_move(moved.n_iter, move.name)
                return moved

    # Single steps.

    def _iterated_once(self, fit, in_order=False):
        """The state after a plain iteration, or the same state where the lower bound falls.

        In exact arithmetic no iteration lowers the bound. A fall by more than round-off, which
        whitening amplifies, shows that the M-step has lost the digits that decide.

        Parameters
        ----------
        fit : Fit
        in_order : bool, whether components are left in their best order, if moves may act
        """
        posterior = fit.next_posterior
        if in_order and self.moves is not None:
            posterior = self.moves.in_order(posterior)
        result = e_step(self.rows, posterior)
        # The comparisons are written so that NaN is a fall.
        if not result.lower_bound >= fit.lower_bound - fit.round_off():
            # So much is far from reached in most fits, and takes longer to compute.
            relative = fit.posterior.model.coordinates(fit.posterior).round_off
            if not result.lower_bound >= fit.lower_bound - fit.round_off(relative):
                return self._rejected(fit)
        return self._accepted(fit, posterior, result)

    def _accelerated_iteration(self, fit, acceleration):
        """A step of the acceleration; a plain iteration where there is none, or where it lowers the bound."""
        try:
            posterior = acceleration.proposal(fit.posterior, fit.next_posterior)
            if posterior is None:
                return self._iterated_once(fit)
            # Emptying a component in one step is safe under a proper prior, irreversible under the flat one.
            is_rejected = posterior.prior.flat and fit.loses_most_rows(posterior)
            moved = None if is_rejected else self._accepted_if_gains(fit, posterior, -fit.round_off())
        except DegenerateComponentError:
            moved = None
        if moved is None:
            acceleration.reject()
            return self._iterated_once(fit)
        acceleration.accept()
        return moved

    def _along(self, fit, step, least_gain):
        """The state after a step, or the largest of some fractions of it, that gains enough; or None."""
        for halving in range(_MAX_HALVINGS):
            try:
                posterior = fit.posterior.after_step(0.5**halving * step)
            except DegenerateComponentError:
                continue
            if fit.loses_most_rows(posterior):
                continue
            moved = self._accepted_if_gains(fit, posterior, least_gain)
            if moved is not None:
                return moved
        return None

    def _escaped(self, fit):
        """The state after a step along the eigenvector of a negative eigenvalue of M, or None."""
        eigenvalue, eigenvector = fit.information.smallest_eigenvalue()
        if eigenvalue > -_NEGATIVE_CURVATURE:
            return None
        complete = fit.information.complete
        away = complete.solve_root_transposed(eigenvector[:, None])[:, 0]
        uphill = complete.times_root_transposed(fit.residual[:, None])[:, 0] @ eigenvector
        return self._along(fit, np.copysign(_ESCAPE, uphill) * away, fit.round_off())

    def _accepted_if_gains(self, fit, posterior, least_gain):
        """The state at a posterior; None where the lower bound gains less than that there."""
        result = e_step(self.rows, posterior)
        rises = result.lower_bound >= fit.lower_bound + least_gain
        return self._accepted(fit, posterior, result) if rises else None

    def _accepted(self, fit, posterior, result):
        """The state at a posterior; a fall of the lower bound by round-off is recorded as no change."""
        lower_bound = max(fit.lower_bound, result.lower_bound)
        return self._reported(Fit(posterior, result, (*fit.path, lower_bound), fit.n_before))

    def _rejected(self, fit):
        """The same state after a step that was not accepted."""
        return self._reported(replace(fit, path=(*fit.path, fit.lower_bound)))

    def _reported(self, fit):
        """The state after a step, which is the last one where a callback asks for that."""
        if self.on_step(fit):
            raise AscentStopped(fit)
        return fit
