"""Importance sampling: smoothed weights of draws, and the evidence.

*Pareto smoothing.* The largest weights are replaced by quantiles of a generalized Pareto distribution that is
fitted to them: A. Vehtari, D. Simpson, A. Gelman, Y. Yao and J. Gabry, "Pareto smoothed importance sampling",
Journal of Machine Learning Research 25 (2024), 1-58. Its shape is estimated by J. Zhang and M. A. Stephens,
"A new and efficient estimation method for the generalized Pareto distribution", Technometrics 51 (2009),
316-325, and shrunk towards 1/2 by a prior that is worth ten weights.
"""

import numpy as np
from scipy.special import logsumexp

_LEAST_TAIL = 5  # Number of tail weights below which no distribution is fitted to them.
_PRIOR_WEIGHTS, _PRIOR_SHAPE = 10.0, 0.5


def pareto_smoothed(log_ratios):
    """Importance ratios, in logarithms, with a smoothed tail.

    Parameters
    ----------
    log_ratios : (n,), logarithms of the ratios of target and proposal; -inf for a ratio of zero

    Returns
    -------
    log_ratios : (n,), the same, with the largest ones smoothed
    k_hat : float
        Shape of the tail; infinite where there are too few weights to tell. Moments of order 1/k and higher
        do not exist.
    """
    largest = log_ratios.max()
    log_ratios = log_ratios - largest
    n_draws = len(log_ratios)
    n_tail = int(min(n_draws / 5, 3.0 * np.sqrt(n_draws)))
    order = np.argsort(log_ratios, kind="stable")
    tail = order[n_draws - n_tail :]
    k_hat = np.inf
    if n_tail >= _LEAST_TAIL and n_tail < n_draws:
        cutoff = max(log_ratios[order[n_draws - n_tail - 1]], np.log(np.finfo(float).tiny))
        excesses = np.exp(log_ratios[tail]) - np.exp(cutoff)
        if excesses[0] > 0 and excesses[-1] > excesses[0]:
            k_hat, scale = generalized_pareto_fit(excesses)
            smoothed = generalized_pareto_quantiles(n_tail, k_hat, scale) + np.exp(cutoff)
            log_ratios[tail] = np.minimum(np.log(smoothed), 0.0)  # Not above the largest ratio.
        elif excesses[-1] <= excesses[0]:
            k_hat = -np.inf  # The tail is flat: the weights are equal.
    return log_ratios + largest, k_hat


def generalized_pareto_fit(excesses):
    """Shape and scale of the generalized Pareto distribution of positive numbers in ascending order, (n,)."""
    n = len(excesses)
    n_points = 30 + int(np.sqrt(n))
    quartile = excesses[int(n / 4 + 0.5) - 1]
    points = 1.0 - np.sqrt(n_points / (np.arange(1, n_points + 1) - 0.5))
    points = points / (3.0 * quartile) + 1.0 / excesses[-1]
    shapes = np.log1p(-points[:, None] * excesses).mean(axis=1)
    log_likelihood = n * (np.log(-points / shapes) - shapes - 1.0)
    weights = np.exp(log_likelihood - logsumexp(log_likelihood))
    point = weights @ points
    shape = np.log1p(-point * excesses).mean()
    scale = -shape / point
    return (n * shape + _PRIOR_WEIGHTS * _PRIOR_SHAPE) / (n + _PRIOR_WEIGHTS), scale


def generalized_pareto_quantiles(n, shape, scale):
    """Quantiles at (i - 1/2)/n, i = 1..n: (n,)."""
    log_survival = np.log1p(-(np.arange(1, n + 1) - 0.5) / n)
    if abs(shape) < np.finfo(float).eps:
        return -scale * log_survival
    return scale * np.expm1(-shape * log_survival) / shape


def systematic_sample(weights, size, uniform):
    """Places drawn in proportion to weights, (n,), with as little variation as can be: int array (size,)."""
    total = np.cumsum(weights)
    steps = (np.arange(size) + uniform) / size
    return np.minimum(np.searchsorted(total, steps * total[-1]), len(weights) - 1)


# Share of effective draws above which the weights are so equal that the shape of their tail is noise.
_NEARLY_EQUAL = 0.95

# Importance sampling is reliable up to this shape of the weights' tail, from so many effective draws on, and
# with so large a share of them effective.
_LARGEST_K_HAT, _LEAST_EFFECTIVE_DRAWS, _LEAST_EFFECTIVE_SHARE = 0.7, 100, 0.2


class ImportanceWeights:
    """Smoothed weights of draws, and what they say of the evidence.

    Parameters
    ----------
    log_ratios : (n,), log p(X, theta) less the log density of the draw

    Attributes
    ----------
    log_ratios : (n,), as given
    weights : (n,), smoothed, which sum to one
    effective_draws : float, number of equally weighted draws that are worth as much
    k_hat : float, shape of the weights' tail; 0 where they are so nearly equal that it is noise
    are_reliable : bool, whether results can be relied on
    log_evidence : float
        log of the mean smoothed ratio: the part of log p(X) that belongs to the mode of the draws.
    log_evidence_bound : float, mean of the log ratios: a lower bound on log p(X), by Jensen's inequality
    log_evidence_bound_error : float, standard error of the bound, in nats
    """

    def __init__(self, log_ratios):
        smoothed, k_hat = pareto_smoothed(log_ratios)
        n_draws, log_sum = len(log_ratios), logsumexp(smoothed)
        self.log_ratios, self.weights = log_ratios, np.exp(smoothed - log_sum)
        self.effective_draws = float(1.0 / np.square(self.weights).sum())
        self.k_hat = 0.0 if self.effective_draws > _NEARLY_EQUAL * n_draws else float(k_hat)
        least = max(_LEAST_EFFECTIVE_DRAWS, _LEAST_EFFECTIVE_SHARE * n_draws)
        self.are_reliable = bool(self.k_hat <= _LARGEST_K_HAT and self.effective_draws >= least)
        self.log_evidence = float(log_sum - np.log(n_draws))
        self.log_evidence_bound = float(np.mean(log_ratios))
        self.log_evidence_bound_error = float(np.std(log_ratios) / np.sqrt(n_draws))
