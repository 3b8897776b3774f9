"""What draws of the parameters of any mixture have in common.

*Conventions.* n draws, L labels: the components, and the noise component if there is one; B breaks of the
stick by which weights are drawn (`weight_priors`).
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np

from sklearn_lrvb.sampling.likelihood import (
    log_likelihood,
    log_likelihood_and_moments,
    moments_of_random_assignments,
)


@dataclass(frozen=True)
class Entries:
    """The name of one entry of the parameters, or of the difference of two.

    Attributes
    ----------
    text : str, such as "mean[1,x0] - mean[0,x0]"
    terms : tuple of (str, int, float), of every entry its target, its flat position and its sign
    """

    text: str
    terms: tuple


@dataclass(frozen=True)
class DrawArrays:
    """Base of dataclasses of arrays, or of other such dataclasses, whose first axis is that of draws."""

    def __len__(self):
        return len(getattr(self, fields(self)[0].name))

    def __getitem__(self, index):
        return type(self)(*(getattr(self, field.name)[index] for field in fields(self)))

    def replaced(self, index, others):
        """A copy in which the draws at ``index``, an int array, are ``others``."""
        return type(self)(
            *(_replaced(getattr(self, each.name), index, getattr(others, each.name)) for each in fields(self))
        )

    @staticmethod
    def concatenated(parts):
        """All draws of some parts, which are of one class and have arrays alone."""
        arrays = ([getattr(part, field.name) for part in parts] for field in fields(parts[0]))
        return type(parts[0])(*map(np.concatenate, arrays))


def _replaced(arrays, index, others):
    if isinstance(arrays, DrawArrays):
        return arrays.replaced(index, others)
    replaced = arrays.copy()
    replaced[index] = others
    return replaced


class DrawnParameters(ABC):
    """The parameters that draws stand for.

    Parameters
    ----------
    posterior : posterior, in whose coordinates the draws are
    origin : (P,), from where the posterior's positions are measured
    draws : DrawArrays, with ``log_stick`` and ``log_rest`` (n, B), log v and log(1 - v) of every break
    """

    def __init__(self, posterior, origin, draws):
        self.posterior, self.origin, self.draws = posterior, origin, draws

    def with_draws(self, draws):
        """The parameters that other draws of the same posterior stand for."""
        return type(self)(self.posterior, self.origin, draws)

    @cached_property
    def log_weights(self):
        """log pi of all labels; the weights need not sum to one: (n, L)."""
        return self.posterior.prior.weights.log_weights(self.draws.log_stick, self.draws.log_rest)

    @property
    def log_shares(self):
        """log pi of weights that are scaled to sum to one: (n, L)."""
        return self.posterior.prior.weights.log_shares(self.draws.log_stick, self.draws.log_rest)

    @property
    def weights(self):
        """pi, scaled to sum to one: (n, L)."""
        return np.exp(self.log_shares)

    @staticmethod
    @abstractmethod
    def draws_at(posterior, other):
        """What another posterior reports, as one draw in the coordinates of the first: DrawArrays."""

    @abstractmethod
    def reported(self):
        """Draws in the shapes of the estimator's attributes, by target: dict of ndarray."""

    @abstractmethod
    def flat(self, target):
        """A target, by its name (`targets`), with every entry once: (n, d)."""

    def require_moments(self, target, values):  # noqa: B027  (most targets have moments)
        """Raise an error where draws of a target, flat values (n, d), say that it has no moments."""

    @property
    def log_symmetry(self):
        """log of the prior that Gibbs iterations have, over `log_prior`, up to a constant: (n,).

        They differ where a prior depends on the order of the components, over which iterations average.
        """
        return np.zeros(len(self.draws))

    # The joint density with the rows.

    def completed(self, generator):
        """Draws of a copula's `of_components_with_rows`, with the rest drawn: DrawnParameters.

        Components that hold no rows are drawn from their prior given the others. The joint density of the
        result is one of the others, and neither it nor its slopes have the density of those. Where a copula
        describes all components, they are these draws themselves.

        Parameters
        ----------
        generator : numpy.random.Generator or RandomState
        """
        return self

    @abstractmethod
    def likelihood(self, log_weights):
        """The log densities of rows under the draws, given log weights (n, L): a `LikelihoodOfDraws`."""

    @abstractmethod
    def log_prior(self):
        """log p(theta), all constants included: (n,)."""

    @abstractmethod
    def slopes_of_log_joint(self, sums):
        """Derivatives of log p(X, theta) in what draws hold: DrawArrays.

        Parameters
        ----------
        sums : (n, L, F), of responsibility times the statistics of the rows
        """

    def log_joint(self, rows):
        """log p(X, theta), all constants included: (n,)."""
        return log_likelihood(rows, self) + self.log_prior()

    def log_joint_and_slopes(self, rows):
        """The same, and its derivatives in what draws hold: (n,), DrawArrays."""
        log_likelihoods, sums = log_likelihood_and_moments(rows, self)
        return log_likelihoods + self.log_prior(), self.slopes_of_log_joint(sums)

    @abstractmethod
    def prior_slopes(self):
        """Derivatives of the log prior density in the logarithms of the prior's ``numbers``: (n, m)."""

    # An iteration of Gibbs sampling.

    def given_random_assignments(self, rows, seed, generator):
        """Draws of the parameters given labels of the rows, which are drawn given the parameters.

        Parameters
        ----------
        rows : Rows, each of which counts a whole number of times
        seed : int, of the labels, which do not depend on the blocks of rows
        generator : numpy.random.Generator, of the parameters

        Returns
        -------
        draws : DrawArrays
        counts : (n, L), how often rows have each label
        """
        return self.given_sums(moments_of_random_assignments(rows, self, seed), generator)

    @abstractmethod
    def given_sums(self, sums, generator):
        """The same, given sums of the statistics over the rows with each label, (n, L, F)."""

    def after_metropolis_step(self, rows, generator):
        """Draws after a step of the parameters that Gibbs sampling leaves as they are, if there are any."""
        return self.draws

    def after_gibbs(self, rows, generator):
        """Draws after an iteration of Gibbs sampling, and how often rows have each label: as before."""
        moved = self.with_draws(self.after_metropolis_step(rows, generator))
        return moved.given_random_assignments(rows, int(generator.integers(2**63)), generator)

    # The order of the components.

    @abstractmethod
    def divergences_from(self, posterior):
        """Kullback and Leibler's divergences, doubled, of the components from those of a fit: (n, K, K).

        Rows are the fit's components, over whose densities the expectation is; columns are those of the
        draws. Weights are not in them.

        Parameters
        ----------
        posterior : posterior of as many components, measured from the same origin: the fit
        """

    @abstractmethod
    def reordered(self, orders):
        """The draws whose component k is component ``orders[:, k]``, int array (n, K): DrawArrays."""
