"""Posterior covariances, standard deviations and influence coefficients at one fitted posterior.

The estimator's methods call `PosteriorUncertainty`. It takes the observed information from
`information_source` and the parameters from `targets`; the formulas are in the other files of this folder.
"""

import functools
import itertools
from functools import cached_property

import numpy as np

from sklearn_lrvb.gaussian_mixture.information.observed_information import complete_information
from sklearn_lrvb.gaussian_mixture.uncertainty.influence_functions import robust_covariance
from sklearn_lrvb.gaussian_mixture.uncertainty.information_source import InformationSource
from sklearn_lrvb.gaussian_mixture.uncertainty.leave_one_out import one_steps
from sklearn_lrvb.gaussian_mixture.uncertainty.margins import FamilyMargins, covariance_margins
from sklearn_lrvb.gaussian_mixture.uncertainty.row_covariances import ResponsesOfRows
from sklearn_lrvb.gaussian_mixture.uncertainty.target_covariances import (
    component_covariances,
    covariance,
    n_coordinates,
    n_coordinates_at_once,
    unit_batches,
    variance,
)
from sklearn_lrvb.gaussian_mixture.uncertainty.targets import PARAMETERS, Covariances
from sklearn_lrvb.row_blocks import batches, untracked


def _read_only(array):
    """The array, protected from writing by the user because it is cached."""
    array.setflags(write=False)
    return array


class PosteriorUncertainty:
    """Linear response at a fitted posterior.

    Standard deviations and the covariance of all parameters are computed at first use and kept.

    Parameters
    ----------
    fitted : FittedMixture
    source : InformationSource

    Attributes
    ----------
    map : Targets
    """

    def __init__(self, fitted, source):
        self.fitted = fitted
        self.source = source
        self.map = fitted.parameters
        self._std = {}

    def to_state(self):
        """Builtins and arrays from which `from_state` rebuilds this object."""
        state = self.source.to_state()
        # Without the information the standard deviations that are known cannot be computed again.
        return {**state, "std": dict(self._std) if state["information"] is None else {}}

    @classmethod
    def from_state(cls, state, fitted):
        """The object that `to_state` described."""
        uncertainty = cls(fitted, InformationSource.from_state(state, fitted))
        uncertainty._std = {target: _read_only(std) for target, std in state["std"].items()}
        return uncertainty

    # Covariances.

    def covariance(self, targets, method, solver=None, rows=None):
        """Posterior covariance of the flat targets, (d, d).

        Parameters
        ----------
        targets : sequence of str
        method : {"lrvb", "mean_field", "sandwich"}
        solver : str or None, the solver of the information; None is the one in use, else the cheapest
        rows : CentredRows or None, the training rows; "sandwich" needs them
        """
        if method == "sandwich":
            return self._robust_covariance(targets, solver, rows)
        targets = [self.map[name] for name in targets]
        information = self._information(method, n_coordinates(targets), solver, rows)
        with self.source.threads():
            return covariance(targets, information)

    def _information(self, method, size, solver=None, rows=None):
        """The inverse covariance of the coefficients, by linear response or under q itself.

        Parameters
        ----------
        method : {"lrvb", "mean_field"}
        size : int, number of coordinates whose covariance is computed at once
        """
        self.source.require_size(size, "The posterior covariance")
        if method == "lrvb":
            return self.source.information(size, solver, rows)
        posterior = self.fitted.posterior
        return complete_information(posterior, posterior.degrees_of_freedom)

    def _robust_covariance(self, targets, solver, rows):
        size = sum(self.map[target].size for target in targets)
        self.source.require_size(size, "The robust covariance")
        information = self.source.information(size, solver, rows)
        coefficients = itertools.chain.from_iterable(
            self.coefficients(target, information) for target in targets
        )
        with self.source.threads():
            return robust_covariance(rows, self.fitted.posterior, coefficients, size)

    @cached_property
    def parameter_covariance(self):
        """Covariance of theta, (D, D)."""
        return _read_only(self.covariance(PARAMETERS, "lrvb"))

    def mean_covariances(self):
        """LRVB covariance of each component's mean by itself, (K, P, P)."""
        means = self.map["means"]
        information = self._information("lrvb", self.fitted.posterior.n_features)
        with self.source.threads():
            return component_covariances(means, information)

    # Standard deviations.

    def std(self, target):
        """LRVB standard deviations, in the shape of the attribute."""
        return _read_only(self.map[target].shaped(self.flat_std(target)))

    def flat_std(self, target, rows=None):
        """LRVB standard deviations of a flat target, (d,).

        Parameters
        ----------
        target : str
        rows : CentredRows or None, the training rows if the caller has them; they are checked
        """
        if rows is not None:
            return self._flat_std(target, "lrvb", rows)
        if target not in self._std:
            self._std[target] = _read_only(self._flat_std(target, "lrvb"))
        return self._std[target]

    def flat_mean_field_std(self, target):
        """Standard deviations under q itself of a flat target, (d,)."""
        return self._flat_std(target, "mean_field")

    def _flat_std(self, name, method, rows=None):
        target = self.map[name]
        information = self._information(method, n_coordinates_at_once(target), rows=rows)
        with self.source.threads():
            return np.sqrt(variance(target, information))

    def missing_shares(self, names, rows):
        """Shares of the information on flat targets that are missing: list of (d,), (d,).

        The first is 1 - V_c/V with V the posterior variance and V_c that if nothing were missing, the second
        the part of it that missing values add to unknown labels. Both are zero where V is.

        Parameters
        ----------
        names : sequence of str
        rows : CentredRows, the training rows; they are checked
        """
        targets = [self.map[name] for name in names]
        size = max(map(n_coordinates_at_once, targets))
        self.source.require_size(size, "The posterior covariance")
        complete = complete_information(self.fitted.posterior)
        observed = self.source.information(size, rows=rows)
        of_labels = self.source.information_of_labels(rows, size) if rows.has_holes else observed
        shares = []
        with self.source.threads():
            for target in targets:
                whole = variance(target, observed)
                known = (variance(target, information) for information in (complete, of_labels))
                shares.append(
                    tuple(
                        np.divide(whole - part, whole, out=np.zeros_like(whole), where=whole > 0)
                        for part in known
                    )
                )
        return shares

    def require_sizes(self, names):
        """Raise MemoryError where the standard deviations of one of these targets need too large a matrix."""
        for name in names:
            self.source.require_size(
                n_coordinates_at_once(self.map[name]), f"The posterior covariance for the {name}"
            )

    def margins(self, name, method, rows=None):
        """Posterior means, standard deviations and intervals of the flat entries of a target.

        Parameters
        ----------
        name : str
        method : {"lrvb", "mean_field"}
        rows : CentredRows or None, the training rows if the caller has them; they are checked

        Returns
        -------
        margins : FamilyMargins or CovarianceMargins
        """
        target = self.map[name]
        if isinstance(target, Covariances):
            information = self._information(method, n_coordinates_at_once(target), rows=rows)
            with self.source.threads():
                return covariance_margins(target, information, unit_batches(target))
        deviation = self.flat_std(name, rows) if method == "lrvb" else self.flat_mean_field_std(name)
        return FamilyMargins(target.flat_value(), deviation, target.quantile, target.on_diagonal())

    @cached_property
    def parameter_std(self):
        """Standard deviations of theta, (D,)."""
        return _read_only(np.concatenate([self.flat_std(target) for target in PARAMETERS]))

    # Rows.

    def of_rows(self, rows, function, shape=(), tracked=untracked):
        """``function(rows, posterior, responses, tracked)`` with the `ResponsesOfRows`, as in `leverage`.

        Parameters
        ----------
        shape : tuple of int, of the result for one row
        """
        posterior, size = self.fitted.posterior, self.source.size
        n_rows = rows.n_samples if rows.is_in_memory else size
        information = self.source.information(min(size, n_rows * posterior.n_components))
        if rows.is_lazy and information.holds_rows:
            raise MemoryError(
                f"The answer for rows on Dask needs a matrix of all {size} unknowns, which is too large: "
                "without it every row would take passes over all training rows. (a) Ask for some rows, in "
                "memory: X[...].compute(). (b) Reduce the features first, for example with PCA."
            )
        with self.source.threads():
            responses = ResponsesOfRows(information, posterior, n_rows)
            function = functools.partial(function, posterior=posterior, responses=responses)
            return rows.each(function, shape, tracked=tracked)

    def one_steps_without_rows(self, rows, training_rows, tracked=untracked):
        """What one step without each row says about its score (`leave_one_out.one_steps`): (n_samples, 3).

        Parameters
        ----------
        rows : CentredRows, the rows to score
        training_rows : CentredRows, which are checked to be those of the fit
        tracked : Tracked, through which the blocks of rows are gone
        """
        self.source.check_training_rows(training_rows)
        return self.of_rows(rows, one_steps, (3,), tracked=tracked)

    # Coefficients of influence functions.

    def coefficients(self, target, information=None, tracked=untracked):
        """Yield rows of J M^-1, (n, D): influence functions of a flat target, batch by batch."""
        target = self.map[target]

        def sources(batch):
            return target.transposed_responses(np.eye(batch.stop - batch.start, target.size, batch.start))

        return self.solutions(target.size, sources, information, tracked)

    def coefficients_of_combinations(self, target, combinations, tracked=untracked):
        """The same of linear combinations of a flat target, (n, d)."""
        target = self.map[target]
        return self.solutions(
            len(combinations),
            lambda batch: target.transposed_responses(combinations[batch]),
            tracked=tracked,
        )

    def solutions(self, n_sources, sources, information=None, tracked=untracked):
        """Yield M^-1 times sources as rows (n, D), batch by batch: the responses of the coefficients.

        Parameters
        ----------
        n_sources : int
        sources : callable, slice of ``range(n_sources)`` -> (D, n)
        tracked : Tracked, through which the batches of sources are gone
        """
        information = information or self.source.information(n_sources)
        places = batches(n_sources, 8 * self.source.size)
        for batch in tracked(places, len(places)):
            with self.source.threads():
                solved = information.solve(sources(batch))
            yield solved.T
