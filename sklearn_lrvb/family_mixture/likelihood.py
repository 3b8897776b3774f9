"""The likelihood of rows under draws of latent classes, its slopes, and Gibbs sweeps."""

from dataclasses import dataclass

import numpy as np

from sklearn_lrvb.family_mixture.draws import Scalars
from sklearn_lrvb.family_mixture.frames import values_of
from sklearn_lrvb.rows import Workload, slices
from sklearn_lrvb.sampling.likelihood import (
    LikelihoodOfDraws,
)
from sklearn_lrvb.sampling.random_assignments import DRAWS_OF_STREAM, assign_at_random

_NUMBERS_PER_ROW = 256  # Log densities of a row that are computed at once: those of a block stay in cache.


class ClassLikelihood(LikelihoodOfDraws):
    """The log densities of rows under some draws.

    Parameters
    ----------
    posterior : ClassPosterior
    draws : ClassDraws
    log_weights : (n, K)
    """

    def __init__(self, posterior, draws, log_weights):
        self._prior = posterior.prior
        self._statistics = Scalars(posterior).statistics(draws.scalars)
        self._statistics[..., 0] = log_weights
        n_labels, n_features = self._statistics.shape[1:]
        streams = max(1, _NUMBERS_PER_ROW // (n_labels * DRAWS_OF_STREAM))
        self._at_once = min(len(draws), streams * DRAWS_OF_STREAM)
        self.workload = Workload(2 * n_features + 3 * n_labels * self._at_once, 0, n_features)

    def in_batches(self, block):
        values = values_of(block)
        rows, log_base = RowsOfClasses(self._prior.features(values)), self._prior.log_base(values)
        for batch in slices(len(self._statistics), self._at_once):
            statistics = np.ascontiguousarray(self._statistics[batch].swapaxes(0, 1))
            yield batch, rows, statistics @ rows.features + log_base


@dataclass(frozen=True)
class RowsOfClasses:
    """Rows of a block, by their features (W, n)."""

    features: np.ndarray

    def sums(self, weights):
        """Sums of weight times the features: (K, d, n) -> (d, K, W)."""
        return (weights @ self.features.T).swapaxes(0, 1)

    def assigned_sums(self, log_densities, block, stream):
        """The same of rows that are assigned at random: (d, K, W)."""
        assign_at_random(log_densities, block, stream)
        return self.sums(log_densities)
