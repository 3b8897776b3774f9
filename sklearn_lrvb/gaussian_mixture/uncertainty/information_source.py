"""The observed information of a fit: formed at first need, checked, and packed for pickles.

The covariance, the influence and the draws all solve with the observed information M at the end of the fit.
Where the fit has formed M, it is taken from there. Otherwise the training rows are kept, by reference, and M
is formed from them at first need, by the cheapest solver.
"""

import contextlib
from dataclasses import asdict

import numpy as np

from sklearn_lrvb.caller_warnings import warn_caller
from sklearn_lrvb.gaussian_mixture.e_step.e_step import e_step
from sklearn_lrvb.gaussian_mixture.information.columns import AmbiguousColumns
from sklearn_lrvb.gaussian_mixture.information.expected_columns import ExpectedColumns
from sklearn_lrvb.gaussian_mixture.information.observed_information import (
    complete_information,
    estimated_costs,
    observed_information,
)
from sklearn_lrvb.gaussian_mixture.posterior.variational_posterior import statistics_residual
from sklearn_lrvb.gaussian_mixture.uncertainty.fit_course import FitCourse
from sklearn_lrvb.gaussian_mixture.uncertainty.training_rows import TrainingSums
from sklearn_lrvb.linear_response import (
    MAX_DENSE_SIZE,
    IndefiniteInformationError,
    indefinite_information_error,
    information_from_arrays,
)
from sklearn_lrvb.row_blocks import blas_threads

# Distance from the optimum, in posterior standard deviations, above which linear response warns of its error.
_FAR_FROM_OPTIMUM = 0.1
_FORMED_TO_PICKLE_BYTES = 2**26  # Size of the largest matrix that is formed only for a pickle.


class InformationSource:
    """The observed information at a fitted posterior, and the training rows as long as it needs them.

    The rows are released once a matrix is formed. The matrix-free solver passes over them every time, so they
    are kept as long as it is in use.

    Parameters
    ----------
    fitted : FittedMixture
    rows : CentredRows or None, the training rows
    course : FitCourse, for messages
    n_jobs : int or None, threads of matrix factorizations
    training_sums : TrainingSums, by which rows are known as those of the fit
    decrement : float or None, default=None
        The Newton decrement, if it is known; required with ``information`` or ``packed``.
    information : ObservedInformation or None, default=None
        The information at the posterior, if the fit has formed it.
    packed : dict of ndarray or None, default=None
        The information as its ``to_arrays`` packs it; unpacked at first need.
    """

    def __init__(
        self, fitted, rows, course, n_jobs, training_sums, decrement=None, information=None, packed=None
    ):
        self.fitted = fitted
        self._training_sums = training_sums
        self._rows = rows
        self._course = course
        self._n_jobs = n_jobs
        self._matrix = None  # The information by the primal or the dual solver.
        self._packed = packed
        self._decrement = decrement
        self._has_warned = False
        self._keep(information)

    @classmethod
    def of_fit(cls, fitted, fit, rows, course):
        """The source of a finished fit.

        Parameters
        ----------
        fit : Fit
        rows : CentredRows, the training rows
        course : FitCourse
        """
        decrement = None if np.isnan(fit.decrement) else fit.decrement
        sums = TrainingSums.of(fitted.posterior, rows)
        return cls(fitted, rows, course, rows.n_jobs, sums, decrement, fit.information)

    def release_rows(self, result):
        """Form the matrix now, if it is not too large, so that the rows are not needed any more.

        Parameters
        ----------
        result : EStepResult at the posterior
        """
        if self._rows is not None:
            structure, rows = self._posterior.structure, self._rows
            costs = estimated_costs(rows, structure, result)
            solver = costs.cheapest(self.size)
            if solver != "matrix_free":
                information, self._decrement = self._formed((rows, result), self.size, solver)
                self._keep(information)

    def _keep(self, information):
        """Keep a matrix that was formed, and release the rows."""
        if information is not None and not information.holds_rows:
            self._matrix, self._rows = information, None

    def _kept(self):
        """The information that is formed and kept, or None."""
        if self._packed is not None:
            self._matrix, self._packed = unpacked_information(self._packed, self._posterior), None
        return self._matrix

    @property
    def _posterior(self):
        return self.fitted.posterior

    def threads(self):
        """Context in which matrices are factored with as many threads as the fit was allowed."""
        return blas_threads(self._n_jobs)

    # The training rows.

    def check_training_rows(self, rows):
        """Raise ValueError unless these are the rows of the fit."""
        difference = self._training_sums.difference(rows)
        if difference is not None:
            raise ValueError(
                f"X is not what the mixture was fitted to: {difference}. Pass the training rows, and their "
                "sample_weight if they had one."
            )

    def _kept_rows(self):
        """The rows that are kept, which are still those of the fit."""
        if self._rows is None:
            raise ValueError(
                "This needs the training rows, which are not part of a pickled or copied estimator and are "
                "released once the information matrix is formed. (a) Pass them, as in "
                "get_posterior_covariance(..., X=X). (b) Use it before pickling. (c) Fit again."
            )
        difference = self._training_sums.difference(self._rows)
        if difference is not None:
            raise ValueError(f"X was changed in place after fit: {difference}. Fit again.")
        return self._rows

    def _checked(self, rows=None):
        """The rows of the fit, given or kept, and the E-step at them."""
        if rows is None:
            rows = self._kept_rows()
        else:
            self.check_training_rows(rows)
        return rows, e_step(rows, self._posterior)

    # The information.

    def information(self, n_targets, solver=None, rows=None):
        """The observed information, positive definite, to solve for about ``n_targets`` right-hand sides.

        Parameters
        ----------
        n_targets : int
        solver : {"primal", "dual", "matrix_free"} or None, default=None
            None uses the one in use, else the cheapest.
        rows : CentredRows or None, default=None
            The training rows, if the caller has them.

        Returns
        -------
        information : ObservedInformation

        Raises
        ------
        IndefiniteInformationError
            The fit is no strict local optimum. A ValueError.
        ValueError
            The training rows are needed and have been released, or the given rows are not those of the fit.
        MemoryError
            The solver's matrix is too large.
        """
        checked = None if rows is None else self._checked(rows)
        information = self._kept()
        if information is None or solver not in (None, information.name):
            information, self._decrement = self._formed(checked or self._checked(), n_targets, solver)
            if solver is None:
                self._keep(information)
        try:
            information.require_positive_definite()
        except IndefiniteInformationError as error:
            raise self._indefinite_error(error) from None
        self._warn_far_from_optimum()
        return information

    def _formed(self, checked, n_targets, solver):
        """The information from rows and their E-step, and the Newton decrement."""
        rows, result = checked
        if solver == "dual" and rows.has_holes and self._posterior.structure.is_matrix:
            raise ValueError(
                "information_solver='dual' has a column for every row whose component is in doubt, but of "
                "'full' and 'tied' covariances every missing value takes some as well: their matrix would be "
                "the larger one. Use 'primal', 'matrix_free' or 'auto'; or fit 'diag' or 'spherical' "
                "covariances, for which missing values take none."
            )
        sizes = {"primal": self.size, "dual": result.n_alternatives}
        self.require_size(sizes.get(solver, 0), f"The {solver} solver")
        with self.threads():
            information = observed_information(rows, self._posterior, result, n_targets, solver)
        decrement = self._decrement
        if decrement is None:
            decrement = information.newton_step(statistics_residual(self._posterior, result.moments))[1]
        return information, decrement

    @property
    def size(self):
        """Number of unknowns of the whole system, D."""
        return self._posterior.structure.n_coefficients

    def require_size(self, size, what):
        """Raise MemoryError for a matrix of ``size`` unknowns that is too large.

        Parameters
        ----------
        size : int
        what : str, the name of the matrix in the message
        """
        if size > MAX_DENSE_SIZE:
            posterior = self._posterior
            raise MemoryError(
                f"{what} of {posterior.n_components} components in {posterior.n_features} features has "
                f"{size} unknowns, a matrix of {8 * size**2 / 2**30:.1f} GiB; up to {MAX_DENSE_SIZE} are "
                "solved. (a) Ask for means and weights alone: get_posterior_covariance and posterior_summary "
                "take target=['weights', 'means']. (b) Reduce the features first, for example with PCA in a "
                "pipeline. (c) Lower n_components."
            )

    def factored(self):
        """The observed information, by a matrix of all unknowns or the dual one wherever either fits."""
        information = self.information(self.size)
        if information.holds_rows and self.size <= MAX_DENSE_SIZE:
            information = self.information(self.size, "primal")
        return information

    def log_determinant(self):
        """log|I - T' G T| with T T' = R, a float."""
        information = self.factored()
        if information.holds_rows:
            self.require_size(self.size, "The second-order evidence")
        return information.log_determinant

    def information_of_labels(self, rows, n_targets):
        """The observed information if every missing value were known, and its covariance as it is.

        Parameters
        ----------
        rows : CentredRows, the training rows; they are checked
        n_targets : int
        """
        rows, result = self._checked(rows)
        with self.threads():
            return observed_information(rows, self._posterior, result, n_targets, hidden_values=False)

    # How good the optimum is.

    @property
    def decrement(self):
        """Distance of the fit from its optimum, in posterior standard deviations."""
        if self._decrement is None:
            self._decrement = self._formed(self._checked(), 1, "matrix_free")[1]
        return self._decrement

    def _warn_far_from_optimum(self):
        if self._decrement > _FAR_FROM_OPTIMUM and not self._has_warned:
            self._has_warned = True
            warn_caller(
                f"The fit is {self._decrement:.2g} posterior standard deviations away from its "
                f"optimum ({self._course}), so the linear response at it is rough. To come closer, "
                f"{self._course.ways_closer()}."
            )

    def _indefinite_error(self, error):
        """The error in terms of the mixture: it names the parameters and the components concerned."""
        structure = self._posterior.structure
        intercepts, linear, quadratic = (
            np.square(block) for block in structure.layout.split(error.direction)
        )
        totals = {"intercept": intercepts.sum(), "linear": linear.sum(), "quadratic": quadratic.sum()}
        theta = self.fitted.parameters.theta
        kind = next(target.name for target in theta if target.block == max(totals, key=totals.get))
        share = intercepts + linear.sum(axis=1)
        if structure.has_own_precisions:
            share += quadratic.sum(axis=1)
        most = np.sort(np.argsort(share)[::-1][:2])
        pair = " and ".join(str(k) for k in most)
        owners = f"component{'s' * (len(most) > 1)} {pair}"
        return indefinite_information_error(
            error.smallest_eigenvalue,
            error.direction,
            subject="The posterior covariance is undefined, as the fit",
            where=f"mostly in the {kind.replace('_', ' ')} of {owners}",
            remedies=self._remedies(most),
        )

    def _remedies(self, components):
        """What to do about a fit that is no strict optimum, mostly in some components: list of str."""
        course, remedies = self._course, []
        if not (course.converged and course.is_of_newton and self._decrement < _FAR_FROM_OPTIMUM):
            remedies.append(
                f"The fit ended {self._decrement:.2g} posterior standard deviations from an optimum, or at a "
                f"saddle ({course}): {course.ways_closer()}."
            )
        if len(components) > 1:
            pair = " and ".join(str(k) for k in components)
            ways = f"lower n_components, {course.other_starts()}."
            remedies.append(
                f"Components {pair} coincide or share one cluster: {ways}"
                if course.converged
                else f"If that does not help, components {pair} may share one cluster: {ways}"
            )
        return remedies

    # Pickling.

    def to_state(self):
        """Builtins and arrays from which `from_state` makes a source without rows; nothing changes here.

        Where the information is not formed yet, it is formed for the pickle, if a pickle can carry it and the
        rows are still those of the fit. Otherwise the copy asks for the training rows.
        """
        information, decrement = self._matrix, self._decrement
        if self._rows is not None:
            with contextlib.suppress(ValueError, MemoryError):
                information, decrement = self._formed_to_pickle()
        return {
            "course": asdict(self._course),
            "n_jobs": self._n_jobs,
            "training_sums": self._training_sums.sums,
            "decrement": None if decrement is None else float(decrement),
            "information": self._packed if information is None else information.to_arrays(),
        }

    @classmethod
    def from_state(cls, state, fitted):
        """The source that `to_state` described."""
        return cls(
            fitted,
            None,
            FitCourse(**state["course"]),
            state["n_jobs"],
            TrainingSums(fitted.posterior, state["training_sums"]),
            decrement=state["decrement"],
            packed=state["information"],
        )

    def _formed_to_pickle(self):
        """The information, or None where it is too large to be formed for a pickle; and the decrement."""
        checked = rows, result = self._checked()
        structure = self._posterior.structure
        costs = estimated_costs(rows, structure, result)
        bytes_per_row = 8 * costs.n_columns * self._posterior.centred_means.size
        bytes_of = {
            "primal": 8 * costs.n_coefficients**2,
            "dual": 8 * costs.n_columns**2 + bytes_per_row,
        }
        by_cost = costs.costs(n_targets=1)
        small = [
            solver
            for solver, size in bytes_of.items()
            if size <= _FORMED_TO_PICKLE_BYTES and solver in by_cost
        ]
        if small:
            return self._formed(checked, 1, min(small, key=by_cost.get))
        return None, self._formed(checked, 1, "matrix_free")[1]


def unpacked_information(arrays, posterior):
    """The observed information at a posterior, from the arrays of its ``to_arrays``."""
    complete = complete_information(posterior)

    def columns(arrays):
        if "remaining" in arrays:
            return ExpectedColumns.from_arrays(posterior, complete, arrays["remaining"], arrays)
        return AmbiguousColumns.from_arrays(posterior, arrays)

    return information_from_arrays(complete, arrays, columns)
