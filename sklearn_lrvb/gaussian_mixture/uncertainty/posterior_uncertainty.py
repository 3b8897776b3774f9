"""Posterior covariances, standard deviations and influence coefficients at one fitted posterior."""

import contextlib
import itertools
import sys
import warnings
from dataclasses import replace
from functools import cached_property

import numpy as np

from sklearn_lrvb.gaussian_mixture.e_step.e_step import e_step
from sklearn_lrvb.gaussian_mixture.information.cost_model import solver_costs
from sklearn_lrvb.gaussian_mixture.information.observed_information import (
    complete_information,
    observed_information,
)
from sklearn_lrvb.gaussian_mixture.uncertainty.influence_functions import robust_covariance
from sklearn_lrvb.gaussian_mixture.uncertainty.leave_one_out import leave_one_out_scores
from sklearn_lrvb.gaussian_mixture.uncertainty.posterior_draws import PosteriorDraws
from sklearn_lrvb.gaussian_mixture.uncertainty.row_covariances import ResponsesOfRows
from sklearn_lrvb.gaussian_mixture.uncertainty.target_covariances import (
    covariance,
    n_coordinates,
    n_coordinates_at_once,
    variance,
)
from sklearn_lrvb.gaussian_mixture.uncertainty.targets import PARAMETERS, Targets
from sklearn_lrvb.linear_response import (
    MAX_DENSE_SIZE,
    IndefiniteInformationError,
    indefinite_information_error,
)
from sklearn_lrvb.row_blocks import blas_threads, slices

_FAR_FROM_OPTIMUM = 0.1  # posterior standard deviations
_PICKLED_BYTES = 2**26  # a larger matrix is not formed just to be pickled
_SOURCE_BYTES = 2**25  # of right-hand sides solved at once
_RECOMPUTED = {"parameter_covariance", "parameter_std"}


def _read_only(array):
    """What is cached must not be written to by the user."""
    array.setflags(write=False)
    return array


def frames_inside_the_package():
    """``stacklevel`` that attributes a warning to the first caller outside."""
    frame, level = sys._getframe(1), 1
    while frame.f_globals.get("__name__", "").startswith(("sklearn_lrvb.", "functools", "sklearn.base")):
        frame, level = frame.f_back, level + 1
    return level


class PosteriorUncertainty:
    """What linear response says at a fitted posterior; results are cached at first use.

    Where the fit did not need the information matrix it is formed at first need, and the decrement found.
    Until then the training rows are kept, by reference; pickling does both and leaves the rows behind. The
    matrix-free solver needs the rows every time: they are kept as long as it is the one in use.

    Parameters
    ----------
    fit : Fit
    rows : CentredRows, the training rows
    iterations : str, how far the fit went, for error messages
    """

    def __init__(self, fit, rows, iterations):
        self.map = Targets(fit.posterior, rows.origin)
        # without the information, whose products hold on to the rows
        self._fit = replace(fit, information=None, direction=None)
        self._rows = rows
        self._n_samples = rows.n_samples
        self._n_jobs = rows.n_jobs
        self._iterations = iterations
        self._information = None  # primal or dual
        self._std = {}
        self._decrement = None if np.isnan(fit.decrement) else fit.decrement
        self._warned = False
        if fit.information is not None and not fit.information.holds_rows:
            self._keep(fit.information)

    def _keep(self, information):
        self._information, self._rows = information, None

    def __getstate__(self):
        state = {name: value for name, value in vars(self).items() if name not in _RECOMPUTED}
        state["_rows"] = None
        if self._rows is not None:
            with contextlib.suppress(ValueError, MemoryError):  # said at first use instead
                state["_information"] = self._formed_to_pickle()
                state["_decrement"] = self.decrement
        return state

    def _formed_to_pickle(self):
        """The information, formed while the rows are here, if a pickle can carry it."""
        costs = self._costs()
        bytes_per_row = 8 * costs.n_columns * self.map.posterior.centred_means.size
        bytes_of = {
            "primal": 8 * costs.n_coefficients**2,
            "dual": 8 * costs.n_columns**2 + bytes_per_row,
        }
        by_cost = costs.costs(n_targets=1)
        light = [solver for solver, size in bytes_of.items() if size <= _PICKLED_BYTES and solver in by_cost]
        if not light:
            return None
        return self._formed(self._training_rows(), 1, min(light, key=by_cost.get))

    def _costs(self):
        result = self._fit.e_step_result
        return solver_costs(
            self._n_samples,
            self.map.posterior.structure,
            result.n_alternatives,
            result.n_ambiguous_pairs,
        )

    def _training_rows(self, rows=None):
        """The rows of the fit, kept or given, if they are what they were."""
        kept = rows is None
        rows = self._rows if kept else rows
        if rows is None:
            raise ValueError(
                "This needs the training rows, which do not travel with a pickled or copied estimator and "
                "are let go once the information matrix is formed. Pass them, as in "
                "get_posterior_covariance(..., X=X), use it before pickling, or fit again."
            )
        now = e_step(rows, self.map.posterior).lower_bound
        if not np.isclose(now, self._fit.lower_bound, rtol=1e-9, atol=1e-9):
            what = "X was changed in place after fit" if kept else "X is not what the mixture was fitted to"
            remedy = (
                "Fit again." if kept else "Pass the training rows, and their sample_weight if they had one."
            )
            raise ValueError(
                f"{what}: the lower bound at the fitted posterior was {self._fit.lower_bound:.6f} and is now "
                f"{now:.6f}. {remedy}"
            )
        return rows

    def _formed(self, rows, n_targets, solver):
        sizes = {"primal": self._size, "dual": self._fit.e_step_result.n_alternatives}
        if sizes.get(solver, 0) > MAX_DENSE_SIZE:
            raise MemoryError(self._too_large_message(f"The {solver} solver", sizes[solver]))
        with blas_threads(self._n_jobs):
            return observed_information(rows, self.map.posterior, self._fit.e_step_result, n_targets, solver)

    @property
    def _size(self):
        """D, unknowns of the whole system."""
        return self.map.posterior.structure.n_coefficients

    def _too_large_message(self, what, size):
        posterior = self.map.posterior
        return (
            f"{what} of {posterior.n_components} components in {posterior.n_features} features has {size} "
            f"unknowns, a matrix of {8 * size**2 / 2**30:.1f} GiB; up to {MAX_DENSE_SIZE} are solved. (a) "
            "Ask for less: means and weights, or standard deviations, alone. (b) Reduce the features first, "
            "for example with PCA in a pipeline. (c) Lower n_components."
        )

    def _solver(self, n_targets, solver=None, rows=None):
        """The observed information, positive definite, for about ``n_targets`` solutions."""
        if rows is not None:
            rows = self._training_rows(rows)
        information = self._information
        if information is None or solver not in (None, information.name):
            information = self._formed(rows or self._training_rows(), n_targets, solver)
            if solver is None and not information.holds_rows:
                self._keep(information)
        if self._decrement is None:
            self._decrement = information.newton_step(self._fit.residual)[1]
        try:
            information.require_positive_definite()
        except IndefiniteInformationError as error:
            raise self._indefinite_error(error) from None
        self._warn_far_from_optimum()
        return information

    @property
    def path(self):
        """Lower bounds after every step of the fit."""
        return self._fit.path

    @property
    def decrement(self):
        """Distance of the fit from its optimum in posterior standard deviations."""
        if self._decrement is None:
            information = self._information or self._formed(self._training_rows(), 1, "matrix_free")
            self._decrement = information.newton_step(self._fit.residual)[1]
        return self._decrement

    def _warn_far_from_optimum(self):
        if self._decrement > _FAR_FROM_OPTIMUM and not self._warned:
            self._warned = True
            warnings.warn(
                f"The fit is {self._decrement:.2g} posterior standard deviations away from its "
                f"optimum ({self._iterations}), so the linear response at it is rough. Use "
                "solver='newton', lower tol, or raise max_iter.",
                UserWarning,
                stacklevel=frames_inside_the_package(),
            )

    def _indefinite_error(self, error):
        """The error in terms of the mixture: which parameters of which components it is about."""
        structure = self.map.posterior.structure
        intercepts, linear, quadratic = (np.square(part) for part in structure.split(error.direction))
        totals = {"intercept": intercepts.sum(), "linear": linear.sum(), "quadratic": quadratic.sum()}
        kind = next(t.name for t in self.map.theta if t.block == max(totals, key=totals.get))
        kind = kind.replace("_", " ")
        share = intercepts + linear.sum(axis=1)
        if structure.n_precision_groups == structure.n_components:
            share += quadratic.sum(axis=1)
        most = np.sort(np.argsort(share)[::-1][:2])
        pair = " and ".join(str(k) for k in most)
        return indefinite_information_error(
            error.smallest_eigenvalue,
            error.direction,
            subject="The posterior covariance is undefined, as the fit",
            where=f"mostly in the {kind} of component{'s' * (len(most) > 1)} {pair}",
            remedies=[
                f"The fit stopped early ({self._iterations}; {self._decrement:.2g} posterior standard "
                "deviations from the optimum): raise max_iter, or use solver='newton'.",
                f"Components {pair} coincide or share one cluster: lower n_components, raise n_init, or "
                "change random_state.",
            ],
        )

    @property
    def _mean_field_information(self):
        """The inverse of q's own covariance of the coefficients."""
        posterior = self.map.posterior
        return complete_information(posterior, posterior.degrees_of_freedom)

    def _require_size(self, n_coordinates):
        if n_coordinates > MAX_DENSE_SIZE:
            raise MemoryError(self._too_large_message("The posterior covariance", n_coordinates))

    def covariance(self, names, method, solver=None, rows=None):
        """Posterior covariance of the flat targets, (d, d); "sandwich" needs the training rows."""
        if method == "sandwich":
            return self._robust_covariance(names, solver, rows)
        targets = [self.map[name] for name in names]
        size = n_coordinates(targets)
        self._require_size(size)
        if method == "mean_field":
            return covariance(targets, self._mean_field_information)
        information = self._solver(size, solver, rows)
        with blas_threads(self._n_jobs):
            return covariance(targets, information)

    def _robust_covariance(self, targets, solver, rows):
        size = sum(self.map[target].size for target in targets)
        if size > MAX_DENSE_SIZE:
            raise MemoryError(self._too_large_message("The robust covariance", size))
        information = self._solver(size, solver, rows)
        batches = itertools.chain.from_iterable(self.coefficients(target, information) for target in targets)
        with blas_threads(self._n_jobs):
            return robust_covariance(rows, self.map.posterior, batches, size)

    def of_rows(self, rows, function):
        """``function(rows, posterior, responses of these rows)``, each in blocks (`row_uncertainty`)."""
        posterior = self.map.posterior
        information = self._solver(min(self._size, rows.n_samples * posterior.n_components))
        with blas_threads(self._n_jobs):
            responses = ResponsesOfRows(information, posterior, rows.n_samples)
            return function(rows, posterior, responses)

    def leave_one_out_scores(self, rows, training_rows):
        """Scores of rows without each of them; those that count must be the training rows."""
        self._training_rows(training_rows)
        return self.of_rows(rows, leave_one_out_scores)

    @cached_property
    def parameter_covariance(self):
        """Covariance of theta, (D, D)."""
        return _read_only(self.covariance(PARAMETERS, "lrvb"))

    def std(self, target):
        """LRVB standard deviations, in the shape of the attribute."""
        return self.map[target].shaped(self.flat_std(target))

    def flat_std(self, name):
        """LRVB standard deviations of a flat target, (d,)."""
        if name not in self._std:
            target = self.map[name]
            size = n_coordinates_at_once(target)
            self._require_size(size)
            information = self._solver(size)
            with blas_threads(self._n_jobs):
                self._std[name] = _read_only(np.sqrt(variance(target, information)))
        return self._std[name]

    def flat_mean_field_std(self, name):
        """Standard deviations under q itself of a flat target, (d,)."""
        target = self.map[name]
        self._require_size(n_coordinates_at_once(target))
        return np.sqrt(variance(target, self._mean_field_information))

    @cached_property
    def parameter_std(self):
        """Standard deviations of theta, (D,)."""
        return _read_only(np.concatenate([self.flat_std(target) for target in PARAMETERS]))

    def draws(self, n_draws, random_state):
        """Draws of the posterior (`posterior_draws`), target -> (n_draws, *shape of the attribute)."""
        information = self._solver(self._size)  # of every coefficient the variance counts
        with blas_threads(self._n_jobs):
            return PosteriorDraws(self.map, information).draw(n_draws, random_state)

    def coefficients(self, name, information=None):
        """Yield rows of J M^-1, (n, D): influence functions of a flat target, batch by batch."""
        target = self.map[name]

        def sources(batch):
            return target.transposed_responses(np.eye(batch.stop - batch.start, target.size, batch.start))

        return self.solutions(target.size, sources, information)

    def coefficients_of_combinations(self, name, combinations):
        """The same of linear combinations of a flat target, (n, d)."""
        target = self.map[name]
        return self.solutions(
            len(combinations), lambda batch: target.transposed_responses(combinations[batch])
        )

    def solutions(self, n_sources, sources, information=None):
        """Yield M^-1 of sources as rows (n, D), batch by batch: how the coefficients respond.

        Parameters
        ----------
        sources : callable, slice of ``range(n_sources)`` -> (D, n)
        """
        information = information or self._solver(n_sources)
        for batch in slices(n_sources, max(1, _SOURCE_BYTES // (8 * self._size))):
            with blas_threads(self._n_jobs):
                solved = information.solve(sources(batch))
            yield solved.T
