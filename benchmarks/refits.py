"""Refits after one row has moved, and the derivatives that they make: what influence is checked by.

A refit starts at the optimum for the rows as they were, and takes Newton's steps with the matrix that was
factored there. That decides how soon it arrives, not where: the steps end where a sweep over the moved rows
leaves the posterior as it is.
"""

import copy
from dataclasses import replace

import numpy as np

from sklearn_lrvb.gaussian_mixture.e_step.e_step import e_step
from sklearn_lrvb.gaussian_mixture.information.observed_information import step, sweep_residual
from sklearn_lrvb.gaussian_mixture.uncertainty.targets import PARAMETERS, ParameterMap
from sklearn_lrvb.row_blocks import CentredRows

GROUPS = PARAMETERS
_DIFFERENCES = {1: 8 / 12, -1: -8 / 12, 2: -1 / 12, -2: 1 / 12}  # central, of fourth order
_MOVE = 0.001  # of the least standard deviation of a component's coordinate given all others
_LAST_STEP = 1e-10  # posterior standard deviations; the step after it would be round-off
_MOST_STEPS = 20


class _Rows(CentredRows):
    """Rows whose sweeps stay in the components' own frames, where least is lost to round-off."""

    totals = None


class Refits:
    """Fits to rows of which one is moved a little.

    Parameters
    ----------
    mixture : LRVBGaussianMixture, fitted to convergence
    X : (n_samples, n_features), its rows

    Attributes
    ----------
    count : int, refits so far
    largest_last_step : float, of all of them, in posterior standard deviations
    """

    def __init__(self, mixture, X):
        self._mixture, self._X = mixture, X.copy()
        self._optimum = mixture._uncertainty.map
        self._information = mixture._uncertainty.source.information(1)
        self._moves = _MOVE / np.sqrt(mixture.precisions_.diagonal(axis1=1, axis2=2).max(axis=0))
        self.count = 0
        self.largest_last_step = 0.0

    def derivatives(self, selected):
        """d E[theta] / d x_n of some rows, in every coordinate: {group: (n, d, n_features)}."""
        n_features = self._X.shape[1]
        found = [[self._derivative(row, column) for column in range(n_features)] for row in selected]
        return {
            group: np.array([[columns[group] for columns in row] for row in found]).transpose(0, 2, 1)
            for group in GROUPS
        }

    def _derivative(self, row, column):
        home, move = self._X[row, column], self._moves[column]
        total = dict.fromkeys(GROUPS, 0.0)
        for moves, weight in _DIFFERENCES.items():
            self._X[row, column] = home + moves * move
            for group, values in self._refitted(self._X).items():
                total[group] = total[group] + weight / move * values
        self._X[row, column] = home
        return total

    def _refitted(self, X):
        """Posterior means at the optimum for these rows: {group: (d,)}."""
        rows = _Rows(X, self._optimum.origin, self._mixture.n_jobs)
        posterior = replace(self._optimum.posterior)  # without what earlier sweeps left in its cache
        for _ in range(_MOST_STEPS):
            residual = sweep_residual(posterior, e_step(rows, posterior).moments)
            direction, distance = self._information.newton_step(residual)
            posterior = step(posterior, direction)
            if distance < _LAST_STEP:
                break
        else:
            raise RuntimeError(
                f"A refit still moves by {distance:.1e} posterior standard deviations after {_MOST_STEPS} "
                "steps: was the first fit at its optimum (newton_decrement_)?"
            )
        self.count += 1
        self.largest_last_step = max(self.largest_last_step, float(distance))
        parameters = ParameterMap(posterior, rows.origin)
        return {group: parameters.flat(group, parameters.value(group)) for group in GROUPS}

    def _moved(self, row):
        moved = self._X.copy()
        moved[row] += self._moves
        return moved

    def refit(self, row):
        """A refit with one row moved: posterior means, {group: (d,)}."""
        return self._refitted(self._moved(row))

    def fit(self, row):
        """The same as a user would have it: a copy of the mixture, fitted on from where it was."""
        return copy.copy(self._mixture).set_params(warm_start=True).fit(self._moved(row))

    def distance_from_fit(self, row):
        """Largest difference between these two in any parameter, in posterior standard deviations."""
        flat = np.concatenate(list(self.refit(row).values()))
        return float(np.max(np.abs(flat - self.fit(row).posterior_mean_) / self._mixture.posterior_std_))


def influences(mixture, X, group):
    """d E[theta] / d x_n by linear response, unique entries: (n_samples, d, n_features)."""
    found = mixture.influence(X, target=group)
    if group == "precisions":
        above, below = np.triu_indices(X.shape[1])
        found = found[:, :, above, below]
    return found.reshape(len(X), -1, X.shape[1])
