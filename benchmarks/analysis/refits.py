"""Refits after one row was moved, and the derivatives by finite differences that influence is checked with.

A refit starts at the optimum for the original rows and takes Newton's steps with the matrix that was factored
there. The matrix decides how soon it arrives, not where: the steps end where an iteration over the moved rows
leaves the posterior as it is.
"""

import copy
from itertools import islice

import numpy as np

from benchmarks.harness.inside import PARAMETERS, RefitFromOptimum

GROUPS = PARAMETERS
_DIFFERENCES = {1: 8 / 12, -1: -8 / 12, 2: -1 / 12, -2: 1 / 12}  # central, of fourth order
_MOVE = 0.001  # in the least standard deviation of a component's coordinate given all others
_LAST_STEP = 1e-10  # in posterior standard deviations; smaller steps would be rounding errors
_MOST_STEPS = 20


class Refits:
    """Fits to rows of which one is moved a little.

    Parameters
    ----------
    mixture : LRVBGaussianMixture, fitted to convergence
    X : (n_samples, n_features), its rows

    Attributes
    ----------
    count : int, refits so far
    largest_last_step : float, largest last step of any refit, in posterior standard deviations
    """

    def __init__(self, mixture, X):
        self._mixture, self._X = mixture, X.copy()
        self._from_optimum = RefitFromOptimum(mixture)
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
        for distance, means in islice(self._from_optimum.steps(X), _MOST_STEPS):
            if distance < _LAST_STEP:
                self.count += 1
                self.largest_last_step = max(self.largest_last_step, distance)
                return means()
        raise RuntimeError(
            f"A refit still moves by {distance:.1e} posterior standard deviations after {_MOST_STEPS} steps. "
            "Was the first fit at its optimum? Its error bars would warn."
        )

    def _moved(self, row):
        moved = self._X.copy()
        moved[row] += self._moves
        return moved

    def refit(self, row):
        """A refit with one row moved: posterior means, {group: (d,)}."""
        return self._refitted(self._moved(row))

    def fit(self, row):
        """The same as a user would do it: a copy of the mixture, fitted on from where it was."""
        return copy.copy(self._mixture).set_params(warm_start=True).fit(self._moved(row))

    def distance_from_fit(self, row):
        """Largest difference between `refit` and `fit` in any parameter, in posterior standard deviations."""
        flat = np.concatenate(list(self.refit(row).values()))
        return float(np.max(np.abs(flat - self.fit(row).posterior_mean_) / self._mixture.posterior_std_))


def influences(mixture, X, group):
    """d E[theta] / d x_n by linear response, unique entries: (n_samples, d, n_features)."""
    found = mixture.influence(X, target=group)
    if group == "precisions":
        above, below = np.triu_indices(X.shape[1])
        found = found[:, :, above, below]
    return found.reshape(len(X), -1, X.shape[1])
