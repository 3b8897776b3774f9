"""Moments, quantiles and their Monte Carlo errors from the draws of chains.

With S chains, whose means of a function have the variance V, the mean over all draws has the standard error
sqrt(V/S), however correlated the draws of a chain are. Chains that have not forgotten where they started, or
stay in different modes, have different means, and the error tells so.
"""

from dataclasses import dataclass

import numpy as np

from sklearn_lrvb.sampling.draws import Entries

# Probability beyond each limit of the table's intervals, whose errors are told. Of a standard normal
# variable: the distance between both limits, and the density there; and the distances of a limit from the
# quantiles with half and with twice the probability beyond.
_TAIL, _DEVIATIONS_BETWEEN, _DENSITY_AT_LIMIT = 0.025, 3.919928, 0.0584451
_DEVIATIONS_AROUND = np.array([0.2814387, 0.3151104])


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
    chains : int array (n,), the number of each draw's chain
    """

    def __init__(self, parameters, chains):
        self.parameters = parameters
        self._is_of_chain = (chains == np.unique(chains)[:, None]).astype(float)

    def __len__(self):
        return len(self.parameters.draws)

    def margins(self, target):
        """`SampledMargins` of a target."""
        return SampledMargins(self, target, *self.moments(target))

    def moments(self, target):
        """Means and standard deviations of a flat target, (d,) each."""
        values = self._values(target)
        return values.mean(axis=0), values.std(axis=0)

    def quantiles(self, target, probabilities):
        """Quantiles of a flat target, (number of probabilities, d)."""
        return np.quantile(self._values(target), probabilities, axis=0)

    def covariance(self, targets):
        """Joint covariance of flat targets, (d, d)."""
        values = np.concatenate([self._values(target) for target in targets], axis=1)
        return np.atleast_2d(np.cov(values.T, bias=True))

    def errors(self, target):
        """Monte Carlo standard errors of means, of 95 % limits, and of limits in long tails: (d,) each.

        The unit is the standard deviation of a normal variable with the same interval. Of both limits it is
        the larger error: that of the share of draws beyond the limit, over the density that a normal variable
        has there. The last errors are larger where a tail is longer than that of a normal variable. Errors of
        parameters that are certain, or infinite in some draws, are zero.
        """
        values = self.parameters.flat(target)
        values = np.where(np.isfinite(values).all(axis=0), values, 0.0)
        beyond = np.array([0.5 * _TAIL, _TAIL, 2.0 * _TAIL])
        quantiles = np.quantile(values, [beyond, 1.0 - beyond], axis=0)
        limits, around = quantiles[:, 1], np.abs(np.diff(quantiles, axis=1))
        unit = (limits[1] - limits[0]) / _DEVIATIONS_BETWEEN
        unit[unit == 0.0] = np.inf
        of_shares = map(self._errors_of_means, (values < limits[0], values > limits[1]))
        of_limits = np.stack(list(of_shares)) / _DENSITY_AT_LIMIT
        lengths = (around / _DEVIATIONS_AROUND[:, None] / unit).max(axis=1)
        of_tails = of_limits * np.maximum(lengths, 1.0)
        return self._errors_of_means(values) / unit, of_limits.max(axis=0), of_tails.max(axis=0)

    def _errors_of_means(self, values):
        """Standard errors of the means of some values (n, d): (d,)."""
        sums = self._is_of_chain @ (values - values.mean(axis=0))
        return np.sqrt(np.square(sums).sum(axis=0)) / len(values)

    def _values(self, target):
        """A flat target of all draws, (n, d)."""
        if isinstance(target, Entries):
            return sum(sign * self._values(name)[:, [entry]] for name, entry, sign in target.terms)
        values = self.parameters.flat(target)
        self.parameters.require_moments(target, values)
        return values
