"""Importance sampling of the exact posterior by draws of the copula."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import logsumexp

from sklearn_lrvb.gaussian_mixture.posterior_sampling.pareto_smoothing import pareto_smoothed

# Share of effective draws above which the weights are so equal that the shape of their tail is noise.
_NEARLY_EQUAL = 0.95

# Importance sampling is reliable up to this shape of the weights' tail, from so many effective draws on, and
# with so large a share of them effective.
_LARGEST_K_HAT, _LEAST_EFFECTIVE_DRAWS, _LEAST_EFFECTIVE_SHARE = 0.7, 100, 0.2


@dataclass(frozen=True)
class ImportanceWeights:
    """Smoothed weights of draws, and what they say of the evidence.

    Attributes
    ----------
    log_ratios : (n,), log p(X, theta) less the log density of the draw
    """

    log_ratios: np.ndarray

    @cached_property
    def _smoothed(self):
        return pareto_smoothed(self.log_ratios)

    @property
    def weights(self):
        """Smoothed weights, which sum to one: (n,)."""
        smoothed = self._smoothed[0]
        return np.exp(smoothed - logsumexp(smoothed))

    @property
    def effective_draws(self):
        """Number of equally weighted draws that are worth as much."""
        return float(1.0 / np.square(self.weights).sum())

    @property
    def k_hat(self):
        """Shape of the weights' tail; 0 where they are so nearly equal that it is noise."""
        nearly_equal = self.effective_draws > _NEARLY_EQUAL * len(self.log_ratios)
        return 0.0 if nearly_equal else float(self._smoothed[1])

    @property
    def are_reliable(self):
        """Whether results can be relied on."""
        least = max(_LEAST_EFFECTIVE_DRAWS, _LEAST_EFFECTIVE_SHARE * len(self.log_ratios))
        return bool(self.k_hat <= _LARGEST_K_HAT and self.effective_draws >= least)

    @property
    def log_evidence(self):
        """log of the mean smoothed ratio: the part of log p(X) that belongs to the mode of the draws."""
        return float(logsumexp(self._smoothed[0]) - np.log(len(self.log_ratios)))

    @property
    def log_evidence_bound(self):
        """Mean of the log ratios: a lower bound on log p(X), by Jensen's inequality."""
        return float(np.mean(self.log_ratios))

    @property
    def log_evidence_bound_error(self):
        """Standard error of `log_evidence_bound`, in nats."""
        return float(np.std(self.log_ratios) / np.sqrt(len(self.log_ratios)))

    def resampled(self, n_draws, random_state):
        """Indices of draws, by systematic resampling, in random order: int array (n_draws,)."""
        steps = (np.arange(n_draws) + random_state.random_sample()) / n_draws
        index = np.searchsorted(np.cumsum(self.weights), steps)
        return random_state.permutation(np.minimum(index, len(self.log_ratios) - 1))
