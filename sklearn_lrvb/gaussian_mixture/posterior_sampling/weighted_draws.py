"""Means, standard deviations, quantiles and covariances of parameters, from weighted draws."""

from dataclasses import dataclass

import numpy as np

from sklearn_lrvb.row_blocks import batches

_LEAST_CALIBRATED = 10  # Of fewer draws, two constraints would leave hardly any of their weights.
_ARRAYS = 8  # Arrays of the size of the draws of some parameters that exist at once.


@dataclass(frozen=True)
class SampledMargins:
    """Posterior mean, standard deviation and central intervals of every entry of a target, as in `margins`.

    Attributes
    ----------
    draws : WeightedDraws
    target : str
    mean, deviation : (d,)
    """

    draws: "WeightedDraws"
    target: str
    mean: np.ndarray
    deviation: np.ndarray

    def interval(self, probability):
        """Ends of the central intervals, (d,) each."""
        return self.draws.quantiles(self.target, [0.5 * (1.0 - probability), 0.5 * (1.0 + probability)])


class WeightedDraws:
    """Draws of the parameters with weights.

    Parameters
    ----------
    parameters : DrawnParameters, of n draws
    weights : (n,), which sum to one
    scores : callable or None, default=None
        From the name of a target to its standard scores under the distribution from which the draws come, (n,
        d): linear functions that are standard normal there, exactly. Each parameter's weights are then
        calibrated, so that without them its score would have the mean 0 and the variance 1. Where the weights
        are nearly equal, that removes most of the sampling error (the regression estimator of survey
        sampling, with the score and its square as control variates). Fewer than ten draws are not calibrated.
    """

    def __init__(self, parameters, weights, scores=None):
        self.parameters = parameters
        self._weights = weights
        self._scores = scores

    def moments(self, target):
        """Means and standard deviations of a flat target, (d,) each."""
        values = self.parameters.flat(target)
        means, deviations = np.empty((2, values.shape[1]))
        for some, weights in self._weights_by_entry(target, values.shape):
            means[some] = (weights * values[:, some]).sum(axis=0)
            deviations[some] = np.sqrt((weights * np.square(values[:, some] - means[some])).sum(axis=0))
        return means, deviations

    def margins(self, target):
        """`SampledMargins` of a target."""
        return SampledMargins(self, target, *self.moments(target))

    def quantiles(self, target, probabilities):
        """Quantiles of a flat target, (number of probabilities, d)."""
        values = self.parameters.flat(target)
        quantiles = np.empty((len(probabilities), values.shape[1]))
        for some, weights in self._weights_by_entry(target, values.shape):
            quantiles[:, some] = _quantiles(values[:, some], weights, probabilities)
        return quantiles

    def covariance(self, targets):
        """Joint covariance of flat targets, (d, d), with the deviations of `moments`."""
        values = np.concatenate([self.parameters.flat(target) for target in targets], axis=1)
        values = values - self._weights @ values
        values *= np.sqrt(self._weights)[:, None]
        scale = np.sqrt(np.square(values).sum(axis=0))
        values /= np.where(scale > 0, scale, 1.0)
        deviations = np.concatenate([self.moments(target)[1] for target in targets])
        values *= deviations
        return values.T @ values

    def _weights_by_entry(self, target, shape):
        """Yield slices of a target's flat entries, and the weights of the draws for each of them, (n, d)."""
        n_draws, size = shape
        if self._scores is None or n_draws < _LEAST_CALIBRATED:
            equal = np.broadcast_to(self._weights[:, None], shape)
            yield from ((some, equal[:, some]) for some in batches(size, 8 * _ARRAYS * n_draws))
            return
        scores = self._scores(target)
        for some in batches(size, 8 * _ARRAYS * n_draws):
            yield some, _calibrated(self._weights, scores[:, some])


def _calibrated(weights, scores):
    """Weights that are calibrated by (score, score^2 - 1): (n,), (n, d) -> (n, d).

    Draws count c each, with c as close to 1 as sums of c, c score and c (score^2 - 1) of n, 0 and 0 allow.
    """
    first, second = scores, np.square(scores) - 1.0
    mean_first, mean_second = first.mean(axis=0), second.mean(axis=0)
    first, second = first - mean_first, second - mean_second
    own, other, mixed = (
        (one * two).mean(axis=0) for one, two in ((first, first), (second, second), (first, second))
    )
    determinant = own * other - np.square(mixed)
    # A parameter that is certain has scores of zero, and nothing to calibrate.
    regular = determinant > 0
    determinant = np.where(regular, determinant, 1.0)
    slope_first = np.where(regular, mean_first * other - mean_second * mixed, 0.0) / determinant
    slope_second = np.where(regular, mean_second * own - mean_first * mixed, 0.0) / determinant
    calibrated = weights[:, None] * np.maximum(1.0 - slope_first * first - slope_second * second, 0.0)
    return calibrated / calibrated.sum(axis=0)


def _quantiles(values, weights, probabilities):
    """Weighted quantiles of every column, interpolated between the draws: (n, d), (n, d) -> (m, d)."""
    order = np.argsort(values, axis=0)
    values, weights = np.take_along_axis(values, order, axis=0), np.take_along_axis(weights, order, axis=0)
    positions = np.cumsum(weights, axis=0) - 0.5 * weights
    columns = zip(positions.T, values.T, strict=True)
    return np.stack([np.interp(probabilities, own, value) for own, value in columns], axis=1)
