"""Moments, quantiles and their Monte Carlo errors from the draws of chains, by control variates.

*Control variates.* To first order a parameter is a linear function of one linear combination h = a'e of the
standard normal variables e, with a'a = 1 (`scores` of the copula's density). Let s = e - dr/de be the
negative gradient of the exact posterior's log density in the coordinates e. By partial integration

    E a's = 0,        E h a's = 1

under the exact posterior, whatever its shape. What the draws have instead of 0 and 1 is sampling error, and
most of the error of a mean or a variance is a linear function of it. The draws are therefore weighted such
that both hold (the regression estimator of survey sampling). Where the posterior is nearly normal, a mean is
then known as if there were five to forty times as many draws.
"""

from dataclasses import dataclass

import numpy as np

from sklearn_lrvb.rows import batches
from sklearn_lrvb.sampling.chains import N_CHAINS, N_ISLANDS
from sklearn_lrvb.sampling.draws import Entries

_LEAST_DETERMINANT = 1e-10  # Of the correlations of both variables, below which it is round-off.
_ARRAYS = 8  # Arrays of the size of the draws of some parameters that exist at once.


@dataclass(frozen=True)
class SampledMargins:
    """Posterior mean, standard deviation and central intervals of every entry of a target, as in `margins`.

    Attributes
    ----------
    draws : ChainDraws
    target : str
    mean, deviation : (d,)
    """

    draws: "ChainDraws"
    target: str
    mean: np.ndarray
    deviation: np.ndarray

    def interval(self, probability):
        """Limits of the central intervals, (d,) each."""
        return self.draws.quantiles(self.target, [0.5 * (1.0 - probability), 0.5 * (1.0 + probability)])


class ChainDraws:
    """Draws of chains that follow the exact posterior.

    Parameters
    ----------
    parameters : DrawnParameters, of n draws
    normals : (n, n_responses), e
    slopes : (n, n_responses), dr/de, from which s = e - dr/de
    density : CopulaDensity
    chains : int array (n,), the number of each draw's chain
    """

    def __init__(self, parameters, normals, slopes, density, chains):
        self.parameters, self._density = parameters, density
        self._responses = density.responses(normals)
        self._slopes = density.responses(normals - slopes)
        self._is_of_chain = (chains == np.arange(N_CHAINS)[:, None]).astype(float)

    def __len__(self):
        return len(self.parameters.draws)

    def margins(self, target):
        """`SampledMargins` of a target."""
        return SampledMargins(self, target, *self.moments(target))

    def moments(self, target):
        """Means and standard deviations of a flat target, (d,) each."""
        values = self._values(target)
        means, deviations = np.empty((2, values.shape[1]))
        for some, controls in self._controls(target):
            weights = controls.weights()
            means[some] = (weights * values[:, some]).sum(axis=0)
            deviations[some] = np.sqrt((weights * np.square(values[:, some] - means[some])).sum(axis=0))
        return means, deviations

    def quantiles(self, target, probabilities):
        """Quantiles of a flat target, (number of probabilities, d)."""
        values = self._values(target)
        quantiles = np.empty((len(probabilities), values.shape[1]))
        for some, controls in self._controls(target):
            quantiles[:, some] = _quantiles(values[:, some], controls.weights(), probabilities)
        return quantiles

    def covariance(self, targets):
        """Joint covariance of flat targets, (d, d), with the deviations of `moments`."""
        values = np.concatenate([self._values(target) for target in targets], axis=1)
        values = values - values.mean(axis=0)
        scale = np.sqrt(np.square(values).sum(axis=0))
        values /= np.where(scale > 0, scale, 1.0)
        values *= np.concatenate([self.moments(target)[1] for target in targets])
        return values.T @ values

    def effective(self, target):
        """Independent draws that those of each parameter are worth, without control variates: (d,).

        They are infinitely many of a parameter that is certain.
        """
        values = self._values(target)
        squares = np.square(self._sums_of_chains(values)).sum(axis=0)
        worth = np.square(len(values)) * values.var(axis=0)
        return np.divide(worth, squares, out=np.full_like(worth, np.inf), where=squares != 0)

    def errors(self, target):
        """Monte Carlo standard errors of the means, in standard deviations: (d,).

        They are those by the chains. Where islands of chains differ more than their chains explain, all
        errors of the target are larger by the same factor.
        """
        values = self._values(target)
        sums = np.empty((N_CHAINS, values.shape[1]))
        for some, controls in self._controls(target):
            sums[:, some] = self._sums_of_chains(controls.residuals(values[:, some]))
        by_chain = np.square(sums).sum(axis=0)
        by_island = np.square(sums.reshape(N_ISLANDS, -1, sums.shape[1]).sum(axis=1)).sum(axis=0)
        is_known = by_chain > 0
        ratios = by_island[is_known] / by_chain[is_known] * (N_ISLANDS / (N_ISLANDS - 1))
        inflation = max(1.0, ratios.mean()) if is_known.any() else 1.0
        scale = values.std(axis=0) * len(values)
        return np.sqrt(inflation * by_chain) / np.where(scale > 0, scale, np.inf)

    def _values(self, target):
        """A flat target of all draws, (n, d)."""
        if isinstance(target, Entries):
            return sum(sign * self._values(name)[:, [entry]] for name, entry, sign in target.terms)
        values = self.parameters.flat(target)
        self.parameters.require_moments(target, values)
        return values

    def _sums_of_chains(self, values):
        """Sums over every chain of the distances from the mean of all: (n, d) -> (N_CHAINS, d)."""
        return self._is_of_chain @ (values - values.mean(axis=0))

    def _controls(self, target):
        """Yield slices of a target's flat entries, and the `ControlVariates` of each."""
        first = self._density.scores(target, self._slopes)
        second = first * self._density.scores(target, self._responses) - 1.0
        n_draws, size = first.shape
        for some in batches(size, 8 * _ARRAYS * n_draws):
            yield some, ControlVariates(first[:, some], second[:, some])


class ControlVariates:
    """Two variables of every draw and parameter whose means are zero under the exact posterior.

    A parameter that is certain has variables that are constant, and nothing is corrected.

    Parameters
    ----------
    first, second : (n, d)
    """

    def __init__(self, first, second):
        self._means = first.mean(axis=0), second.mean(axis=0)
        self._first, self._second = first - self._means[0], second - self._means[1]
        self._squares = np.square(self._first).mean(axis=0), np.square(self._second).mean(axis=0)
        self._mixed = (self._first * self._second).mean(axis=0)
        products = self._squares[0] * self._squares[1]
        determinant = products - np.square(self._mixed)
        self._regular = determinant > _LEAST_DETERMINANT * products
        self._determinant = np.where(self._regular, determinant, 1.0)

    def weights(self):
        """Weights of the draws for which both means are zero, or 0 instead of negative ones: (n, d)."""
        weights = np.maximum(self._regressed(1.0, *self._means), 0.0)
        return weights / weights.sum(axis=0)

    def residuals(self, values):
        """What is left of values (n, d), up to a constant, less their regression on both variables."""
        products = [(variable * values).mean(axis=0) for variable in (self._first, self._second)]
        return self._regressed(values, *products)

    def _regressed(self, values, with_first, with_second):
        """Values less their regression on both variables, given mean products with these: (n, d)."""
        first_square, second_square = self._squares
        first = np.where(self._regular, with_first * second_square - with_second * self._mixed, 0.0)
        second = np.where(self._regular, with_second * first_square - with_first * self._mixed, 0.0)
        first, second = first / self._determinant, second / self._determinant
        return values - first * self._first - second * self._second


def _quantiles(values, weights, probabilities):
    """Weighted quantiles of every column, interpolated between the draws: (n, d), (n, d) -> (m, d)."""
    order = np.argsort(values, axis=0)
    values, weights = np.take_along_axis(values, order, axis=0), np.take_along_axis(weights, order, axis=0)
    positions = np.cumsum(weights, axis=0) - 0.5 * weights
    columns = zip(positions.T, values.T, strict=True)
    return np.stack([np.interp(probabilities, own, value) for own, value in columns], axis=1)
