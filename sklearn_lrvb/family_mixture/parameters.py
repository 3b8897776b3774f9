"""The parameters that draws of classes stand for: values, joint density, and Gibbs sampling from them."""

from functools import cached_property

import numpy as np

from sklearn_lrvb.families.scalars import log_probabilities, stick_logits
from sklearn_lrvb.family_mixture.draws import ClassDraws, Scalars
from sklearn_lrvb.family_mixture.likelihood import ClassLikelihood
from sklearn_lrvb.family_mixture.targets import ClassTargets, names_in_draws, values_of_draws
from sklearn_lrvb.sampling.draws import DrawnParameters
from sklearn_lrvb.sampling.likelihood import (
    log_likelihood,
    log_likelihood_and_moments,
    moments_of_random_assignments,
)


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

    @staticmethod
    def draws_at(posterior, other):
        scalars, weights = Scalars(posterior), other.prior.weights.mean(other.counts)
        pairs = zip(posterior.prior.families, posterior.parts, other.parts, strict=True)
        parts = [family.scalars_at(family.values(there)[None], here) for family, here, there in pairs]
        return ClassDraws(scalars.joined(stick_logits(np.log(weights)[None]), parts))

    @cached_property
    def log_weights(self):
        """(n, K)"""
        return log_probabilities(self._scalars.split(self.draws.scalars)[0])

    @property
    def log_shares(self):
        """The same: the weights sum to one."""
        return self.log_weights

    def reported(self):
        """Draws of the weights, and of every column's values by its name, (n, K, q): dict of ndarray."""
        found, target = {"weights": self.weights}, ClassTargets(self.posterior, self.origin)["tables"]
        values, places = target.joined(self.values(), 2), target.columns_of_entries()[:, 0]
        for place, name in enumerate(names_in_draws(self.posterior.prior.columns)):
            found[name] = values[..., places == place]
        return found

    def flat(self, name):
        """A flat target by its name, (n, d)."""
        return values_of_draws(ClassTargets(self.posterior, self.origin)[name], self)

    @cached_property
    def statistics(self):
        """T, log weights first: (n, K, W)."""
        return self._scalars.statistics(self.draws.scalars)

    def values(self):
        """What is reported of the columns, by family: list of (n, K, c, q)."""
        return self._scalars.values(self.draws.scalars)

    # The joint density with the rows, its slopes, and an iteration of Gibbs sampling.

    def likelihood(self, log_weights):
        return ClassLikelihood(self.posterior, self.draws, log_weights)

    def log_joint(self, rows):
        log_prior, _ = self._scalars.log_prior(self.draws.scalars)
        return log_prior + log_likelihood(rows, self)

    def log_joint_and_slopes(self, rows):
        """log p(X, theta), (n,), and its slopes in the scalars, ClassDraws."""
        scalars, drawn = self._scalars, self.draws.scalars
        log_prior, slopes = scalars.log_prior(drawn)
        log_likelihoods, sums = log_likelihood_and_moments(rows, self)
        return log_prior + log_likelihoods, ClassDraws(slopes + scalars.pulled_back(drawn, sums))

    def prior_slopes(self):
        prior, drawn = self.posterior.prior, self.draws.scalars
        scores = [prior.number(name) * self._scalars.prior_score(drawn, name) for name in prior.numbers]
        return np.transpose(scores)

    def given_random_assignments(self, rows, seed, generator):
        sums = moments_of_random_assignments(rows, self, seed)
        return ClassDraws(self._scalars.given(sums, generator)), sums[..., 0]

    # The order of the classes, and how far they are from those of a fit.

    def divergences_from(self, posterior):
        """As of all parameters. Rows are the fit's classes at what is reported of them."""
        prior, pairs = posterior.prior, list(zip(posterior.prior.families, posterior.parts, strict=True))
        ones = np.ones(posterior.n_components)
        features = prior.joined(ones, [family.mean_features(part) for family, part in pairs])[:, 1:]
        of_fit = Scalars(posterior).statistics(self.draws_at(posterior, posterior).scalars)[0, :, 1:]
        of_draws = features @ self.statistics[..., 1:].swapaxes(1, 2)
        return 2.0 * (np.einsum("kw,kw->k", features, of_fit)[:, None] - of_draws)

    def reordered(self, orders):
        return ClassDraws(self._scalars.reordered(self.draws.scalars, orders))
