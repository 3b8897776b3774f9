"""What changes of the prior do to the posterior, to first order and without refitting.

A hyperparameter h changes q's natural parameters. At fixed sums that moves the expected statistics by
beta_e (`ColumnFamily.effects_of_prior`), and the responsibilities respond until beta = M^-1 R^-1 beta_e. What
is reported moves by J_S R^-1 (beta - beta_e), and by its own direct change at fixed sums.

Where a hyperparameter u is learned, the mean c of its own prior is what changes. That moves the slope of F
in log u by t = s u/c^2, and the source is Q I^-1 t in place of R^-1 beta_e (`learned_prior`).
"""

import numpy as np

from sklearn_lrvb.family_mixture.prior import WEIGHT_CONCENTRATION


class PriorChanges:
    """Changes of every hyperparameter, of some size, and what they do directly.

    Parameters
    ----------
    posterior : ClassPosterior
    sizes : (m,), of the changes

    Attributes
    ----------
    names : tuple of str, the hyperparameters that this mixture has
    in_words, direction : as `MixtureModel.changes_of_prior` says
    concentration : (m,), changes of that of the weights
    statistics, intercepts : (m, D) and (m, K), changes of the expected statistics at fixed sums
    values : list of (m, K, c, q), changes of what is reported of every family at fixed sums
    """

    def __init__(self, posterior, sizes):
        self._posterior, prior = posterior, posterior.prior
        self.names, self.direction = prior.hyperparameters, np.arange(len(sizes))
        self.in_words = [f"{name} doubled" for name in self.names]
        self.concentration = np.where(self.direction == self.names.index(WEIGHT_CONCENTRATION), sizes, 0.0)
        self._learned_names, self._of_learned = (), np.zeros((len(sizes), 0))  # t, (m, L).
        if (learned := prior.learned) is not None:
            slopes = learned.shape * prior.learned_values / np.square(learned.means)
            self._learned_names = learned.names
            self._of_learned = sizes[:, None] * slopes * (np.array(self.names)[:, None] == learned.names)
        log_weights = prior.weights.expected_log_sensitivity(posterior.counts)
        statistics, values = [], []
        for family, sums in zip(prior.families, posterior.parts, strict=True):
            by_name = [self._effects(family, sums, name) for name in self.names]
            for effects, which in zip((statistics, values), zip(*by_name, strict=True), strict=True):
                effects.append(sizes[:, None, None, None] * np.stack(which))
        self.values = values
        changes = prior.joined(np.outer(self.concentration, log_weights), statistics)
        self.statistics = changes.swapaxes(1, 2).reshape(len(sizes), -1)
        self.intercepts = self.statistics[:, : posterior.n_labels]

    def sources(self, some):
        """R^-1 beta_e of some of the changes, a slice, and Q I^-1 t of learned ones: (D, n)."""
        information, sources = self._posterior.learned_information
        direct = self._posterior.complete_information.solve(self.statistics[some].T)
        return direct + sources @ (self._of_learned[some] / information).T

    def _effects(self, family, sums, name):
        """Direct effects on a family, zeros where it has no such hyperparameter: (K, c, b), (K, c, q)."""
        if name in family.hyperparameters and name not in self._learned_names:
            return family.effects_of_prior(sums, name)
        return np.zeros_like(sums), np.zeros_like(family.values(sums))


def changes_of_prior(posterior):
    """The moves by which the importance of the prior is read: every hyperparameter is doubled.

    Parameters
    ----------
    posterior : ClassPosterior
    """
    values = map(posterior.prior.hyperparameter, posterior.prior.hyperparameters)
    return PriorChanges(posterior, np.log(2.0) * np.array(list(values)))


def prior_sensitivity(uncertainty, name):
    """d E[target] / d hyperparameter, by name: dict of (d,).

    Parameters
    ----------
    uncertainty : PosteriorUncertainty
    name : str, of the target
    """
    target, posterior = uncertainty.targets[name], uncertainty.fitted.posterior
    changes = PriorChanges(posterior, np.ones(len(posterior.prior.hyperparameters)))
    (solved,) = uncertainty.solutions(len(changes.names), changes.sources)
    gradients = target.responses(solved) + target.beyond_coefficients(changes, slice(None))
    return dict(zip(changes.names, gradients, strict=True))


def covariance_of_learned(uncertainty):
    """Covariance of the logarithms of the learned hyperparameters by linear response, (L, L).

    Parameters
    ----------
    uncertainty : PosteriorUncertainty
    """
    information, sources = uncertainty.fitted.posterior.learned_information
    (solved,) = uncertainty.solutions(len(information), lambda some: sources[:, some] / information[some])
    return np.diag(1.0 / information) + solved @ sources / information
