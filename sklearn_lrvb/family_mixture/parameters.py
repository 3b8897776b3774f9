"""The parameters that draws of classes stand for: values, joint density with rows, and Gibbs sampling."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sklearn_lrvb.families.scalars import (
    drawn_logits,
    log_logit_density,
    log_probabilities,
    stick_logits,
    stick_slopes,
    sticks,
)
from sklearn_lrvb.family_mixture.coordinates import values_of
from sklearn_lrvb.family_mixture.draws import ClassDraws, Scalars
from sklearn_lrvb.family_mixture.prior import WEIGHT_CONCENTRATION
from sklearn_lrvb.family_mixture.targets import ClassTargets, names_in_draws, values_of_draws
from sklearn_lrvb.rows import Workload, slices
from sklearn_lrvb.sampling.draws import DrawnParameters
from sklearn_lrvb.sampling.likelihood import LikelihoodOfDraws, draws_at_once
from sklearn_lrvb.sampling.random_assignments import assign_at_random

# Steps of Metropolis' algorithm for a learned hyperparameter, in one iteration of Gibbs sampling, and their
# size in standard deviations.
_METROPOLIS_STEPS, _STEP_SIZE = 2, 2.4


class ClassParameters(DrawnParameters):
    """The parameters that draws stand for.

    Parameters
    ----------
    posterior : ClassPosterior
    origin : not used
    draws : ClassDraws
    """

    def __init__(self, posterior, origin, draws):
        super().__init__(posterior, origin, draws)
        self._scalars = Scalars(posterior)
        # Logits of the weights' sticks; and triples of a family, its scalars and its sums under q.
        self._logits, self._parts = self._scalars.split(draws.scalars)
        self._prior = posterior.prior
        # The learned hyperparameters, (n, L), and what they add to the sums of every class, (n, 1, W).
        self._learned = self._prior.learned_values * np.exp(self._scalars.learned(draws.scalars))
        self._offset = self._offset_of(self._learned)

    @staticmethod
    def draws_at(posterior, other):
        scalars, weights = Scalars(posterior), other.prior.weights.mean(other.counts)
        pairs = zip(scalars.families(), other.parts, strict=True)
        parts = [family.scalars_at(family.values(there)[None], here) for (family, here), there in pairs]
        learned = np.log(other.prior.learned_values / posterior.prior.learned_values)
        return ClassDraws(scalars.joined(stick_logits(np.log(weights)[None]), parts, learned[None]))

    def _offset_of(self, learned):
        """What learned hyperparameters add to the sums of every class: (n, L) -> (n, 1, W)."""
        if self._prior.learned is None:
            return np.zeros((len(learned), 1, self._prior.n_features))
        return self._prior.learned.offset(learned)[:, None]

    @cached_property
    def log_weights(self):
        """(n, K)"""
        return log_probabilities(self._logits)

    @property
    def log_shares(self):
        """The same: the weights sum to one."""
        return self.log_weights

    def reported(self):
        """Draws of the weights, and of every column's values by its name, (n, K, q): dict of ndarray."""
        draws, target = {"weights": self.weights}, ClassTargets(self.posterior, self.origin)["tables"]
        values, places = target.joined(self.values(), 2), target.columns_of_entries()[:, 0]
        for place, name in enumerate(names_in_draws(self.posterior.prior.columns)):
            draws[name] = values[..., places == place]
        return draws

    def flat(self, name):
        """A flat target by its name, (n, d)."""
        return values_of_draws(ClassTargets(self.posterior, self.origin)[name], self)

    @cached_property
    def statistics(self):
        """T, log weights first: (n, K, W)."""
        own = [family.statistics_of(part, sums) for family, part, sums in self._parts]
        return self.posterior.prior.joined(self.log_weights, own)

    def values(self):
        """What is reported of the columns, by family: list of (n, K, c, q)."""
        return [family.values_of(part, sums) for family, part, sums in self._parts]

    # The joint density with the rows, its slopes, and an iteration of Gibbs sampling.

    def likelihood(self, log_weights):
        return ClassLikelihood(self.posterior.prior, self.statistics, log_weights)

    def log_prior(self):
        return self._log_prior_and_slopes[0]

    @cached_property
    def _log_prior_and_slopes(self):
        """(n,), and (n, Q) in the scalars."""
        weights = self.posterior.prior.weights
        prior = sticks(weights.concentration(np.zeros(self.posterior.n_components)))
        log_density, by_logit = log_logit_density(self._logits, prior)
        by_family = []
        for family, part, sums in self._parts:
            own, slopes = family.log_prior(part, sums)
            log_density = log_density + own
            by_family.append(slopes)
        of_learned, by_learned = self._log_prior_of_learned
        return log_density + of_learned, self._scalars.joined(by_logit, by_family, by_learned)

    @cached_property
    def _log_prior_of_learned(self):
        """What learned hyperparameters add to the log prior density, (n,), and its slopes in them, (n, L)."""
        learned, offset, n_components = self._prior.learned, self._offset, self.posterior.n_components
        if learned is None:
            return 0.0, np.zeros((len(offset), 0))
        statistics = self.statistics.sum(axis=1)
        log_density = np.einsum("nw,nw->n", offset[:, 0], statistics)
        log_density += learned.log_density(self._learned).sum(axis=1)
        log_density -= n_components * self._prior.log_rises(offset[:, 0]).sum(axis=1)
        distances = statistics - n_components * self._prior.expected_of(offset[:, 0])
        slopes = self._learned * learned.along(distances)
        return log_density, slopes + learned.shape * (1.0 - self._learned / learned.means)

    def slopes_of_log_joint(self, sums):
        pairs = zip(self._parts, self._prior.split(sums + self._offset), strict=True)
        by_family = [family.pulled_back(part, own, slopes) for (family, part, own), slopes in pairs]
        by_logit, nothing = stick_slopes(self._logits, sums[..., 0]), np.zeros_like(self._learned)
        slopes = self._scalars.joined(by_logit, by_family, nothing)
        return ClassDraws(self._log_prior_and_slopes[1] + slopes)

    def prior_slopes(self):
        prior = self.posterior.prior
        names = prior.hyperparameters
        return np.transpose([prior.hyperparameter(name) * self._prior_score(name) for name in names])

    def _prior_score(self, name):
        """Derivative of the log prior density in a hyperparameter, by its name: (n,)."""
        score, learned = np.zeros(len(self.draws)), self._prior.learned
        if name == WEIGHT_CONCENTRATION:
            expected, _ = self._prior.weights.expectations(np.zeros(self.posterior.n_components))
            return (self.log_weights - expected).sum(axis=1)
        if learned is not None and name in learned.names:
            scores = learned.shape * (self._learned / learned.means - 1.0) / learned.means
            return scores[:, learned.names.index(name)]
        for family, part, sums in self._parts:
            if name in family.hyperparameters:
                score = score + family.prior_score(part, sums, name)
        return score

    def given_sums(self, sums, generator):
        prior, learned = self._prior, self._learned_given_sums(sums, generator)
        logits = drawn_logits(np.stack(prior.weights.sticks(sums[..., 0]), axis=-1), generator)
        pairs = zip(self._scalars.families(), prior.split(sums + self._offset_of(learned)), strict=True)
        parts = [family.scalars_given(drawn, own, generator) for (family, own), drawn in pairs]
        logs = np.log(learned / prior.learned_values)
        return ClassDraws(self._scalars.joined(logits, parts, logs)), sums[..., 0]

    def _learned_given_sums(self, sums, generator):
        """Learned hyperparameters after steps of Metropolis' algorithm, given sums over the rows: (n, L).

        The parameters of the classes are integrated out.
        """
        prior, values = self._prior, self._learned
        if prior.learned is None:
            return values
        sizes = _STEP_SIZE / np.sqrt(prior.learned.information_given(prior, self.posterior.sums))
        log_density = self._log_density_of_learned(values, sums)
        for _ in range(_METROPOLIS_STEPS):
            proposed = values * np.exp(sizes * generator.standard_normal(values.shape))
            of_proposed = self._log_density_of_learned(proposed, sums)
            is_taken = np.log1p(-generator.random(values.shape)) < of_proposed - log_density
            values = np.where(is_taken, proposed, values)
            log_density = np.where(is_taken, of_proposed, log_density)
        return values

    def _log_density_of_learned(self, values, sums):
        """F of `learned_prior` for some values and sums: (n, L) and (n, K, W) -> (n, L)."""
        prior, offset = self._prior, self._offset_of(values)
        rises = (prior.log_rises(sums + offset) - prior.log_rises(offset)).sum(axis=1)
        return rises @ prior.learned.member_columns + prior.learned.log_density(values)

    # The order of the classes, and how far they are from those of a fit.

    def divergences_from(self, posterior):
        """As of all parameters. Rows are the fit's classes at what is reported of them."""
        pairs, ones = Scalars(posterior).families(), np.ones(posterior.n_components)
        features = [family.mean_features(part) for family, part in pairs]
        features = posterior.prior.joined(ones, features)[:, 1:]
        fit = ClassParameters(posterior, self.origin, self.draws_at(posterior, posterior))
        own = np.einsum("kw,kw->k", features, fit.statistics[0, :, 1:])
        return 2.0 * (own[:, None] - features @ self.statistics[..., 1:].swapaxes(1, 2))

    def reordered(self, orders):
        log_weights = np.take_along_axis(self.log_weights, orders, axis=1)
        parts = [family.reordered(part, orders, sums) for family, part, sums in self._parts]
        logs = self._scalars.learned(self.draws.scalars)
        return ClassDraws(self._scalars.joined(stick_logits(log_weights), parts, logs))


class ClassLikelihood(LikelihoodOfDraws):
    """The log densities of rows under some draws.

    Parameters
    ----------
    prior : ClassPrior
    statistics : (n, K, W), T of the draws; the first is not used
    log_weights : (n, K)
    """

    def __init__(self, prior, statistics, log_weights):
        self._prior, self._statistics = prior, statistics.copy()
        self._statistics[..., 0] = log_weights
        n_draws, n_labels, n_features = statistics.shape
        self._at_once = draws_at_once(n_labels, n_draws)
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
