"""The likelihood of rows under draws of latent classes, its slopes, and Gibbs sweeps."""

from dataclasses import dataclass

import numpy as np

from sklearn_lrvb.family_mixture.draws import ClassDraws, Scalars
from sklearn_lrvb.family_mixture.frames import values_of
from sklearn_lrvb.rows import Workload, slices
from sklearn_lrvb.sampling.likelihood import (
    LikelihoodOfDraws,
    log_likelihood,
    log_likelihood_and_moments,
    moments_of_random_assignments,
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


def log_joint(rows, parameters):
    """log p(X, theta) of draws, (n,)."""
    log_prior, _ = Scalars(parameters.posterior).log_prior(parameters.draws.scalars)
    return log_prior + log_likelihood(rows, parameters)


def log_joint_and_slopes(rows, parameters):
    """log p(X, theta) of draws, (n,), and its slopes in the scalars, ClassDraws."""
    scalars, drawn = Scalars(parameters.posterior), parameters.draws.scalars
    log_density, slopes = scalars.log_prior(drawn)
    log_likelihoods, sums = log_likelihood_and_moments(rows, parameters)
    return log_density + log_likelihoods, ClassDraws(slopes + scalars.pulled_back(drawn, sums))


def prior_slopes(parameters):
    """Derivatives of the log prior density of draws in the logarithms of the prior's numbers: (n, m)."""
    scalars, prior = Scalars(parameters.posterior), parameters.posterior.prior
    scores = [
        prior.number(name) * scalars.prior_score(parameters.draws.scalars, name) for name in prior.numbers
    ]
    return np.transpose(scores)


def draws_given_random_assignments(rows, parameters, seed, generator):
    """A Gibbs sweep, rows assigned at random and draws given that: ClassDraws, counts (n, K)."""
    sums = moments_of_random_assignments(rows, parameters, seed)
    return ClassDraws(Scalars(parameters.posterior).given(sums, generator)), sums[..., 0]


def products_per_row(posterior):
    """About how many multiplications the log densities of a row take under one draw: an int."""
    return posterior.sums.size
