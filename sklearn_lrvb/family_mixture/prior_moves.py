"""What changes of the prior do to the posterior, to first order and without refitting.

A number h of the prior changes q's natural parameters. At fixed sums that moves the expected statistics by
beta_e (`ColumnFamily.effects_of_prior`), and the responsibilities respond until beta = M^-1 R^-1 beta_e. What
is reported moves by J_S R^-1 (beta - beta_e), and by its own direct change at fixed sums.
"""

import numpy as np

from sklearn_lrvb.family_mixture.prior import WEIGHT_CONCENTRATION


class PriorResponse:
    """Direct effects of the numbers of the prior.

    Parameters
    ----------
    posterior : ClassPosterior

    Attributes
    ----------
    names : tuple of str, the numbers that this mixture has
    """

    def __init__(self, posterior):
        self._posterior, prior = posterior, posterior.prior
        self.names = prior.numbers
        self._of_statistics, self._of_values = [], []
        for name in self.names:
            of_weights = np.zeros(posterior.n_components)
            if name == WEIGHT_CONCENTRATION:
                of_weights = prior.weights.expected_log_sensitivity(posterior.counts)
            parts = [
                _effects(family, part, name)
                for family, part in zip(prior.families, posterior.parts, strict=True)
            ]
            self._of_statistics.append(
                posterior.vector(prior.joined(of_weights, [part for part, _ in parts]))
            )
            self._of_values.append([values for _, values in parts])

    def sources(self, numbers):
        """R^-1 beta_e of some of the numbers, int array (n,): (D, n)."""
        direct = np.array([self._of_statistics[number] for number in numbers]).T
        return self._posterior.complete_information.solve(direct)

    def beyond_coefficients(self, target, numbers):
        """Changes of a target in addition to its response to beta, (n, d)."""
        direct = np.array([self._of_statistics[number] for number in numbers])
        if target.name == "tables":
            values = [
                np.stack([self._of_values[number][i] for number in numbers])
                for i in range(len(self._of_values[0]))
            ]
            return target.joined(values, 2).reshape(len(numbers), -1) - target.responses(direct)
        is_of_weights = np.array(
            [self.names[number] == WEIGHT_CONCENTRATION for number in numbers], dtype=float
        )
        return target.beyond_coefficients(is_of_weights, direct[:, : self._posterior.n_labels])


def _effects(family, sums, name):
    """Direct effects on a family, zeros where the number is of another one: (K, c, b), (K, c, q)."""
    if name in family.hyperparameters:
        return family.effects_of_prior(sums, name)
    return np.zeros_like(sums), np.zeros_like(family.values(sums))


class MovesOfPrior:
    """The moves by which the importance of the prior is read: every number is doubled, to first order.

    Parameters
    ----------
    posterior : ClassPosterior
    """

    def __init__(self, posterior):
        self._response = PriorResponse(posterior)
        self.names = self._response.names
        self.in_words = [f"{name} doubled" for name in self.names]
        self.direction = np.arange(len(self.names))
        self._sizes = np.log(2.0) * np.array([posterior.prior.number(name) for name in self.names])

    def sources(self, some):
        """R^-1 beta_e of some moves, a slice: (D, n)."""
        return self._response.sources(self.direction[some]) * self._sizes[some]

    def beyond_coefficients(self, target, some):
        """Changes of a target in addition to its responses, (n, d)."""
        return self._response.beyond_coefficients(target, self.direction[some]) * self._sizes[some, None]


def prior_sensitivity(uncertainty, name):
    """d E[target] / d number of the prior, by name: dict of (d,).

    Parameters
    ----------
    uncertainty : PosteriorUncertainty
    name : str, of the target
    """
    target, response = uncertainty.targets[name], PriorResponse(uncertainty.fitted.posterior)
    numbers = np.arange(len(response.names))
    (solved,) = uncertainty.solutions(len(numbers), lambda batch: response.sources(numbers[batch]))
    gradients = target.responses(solved) + response.beyond_coefficients(target, numbers)
    return dict(zip(response.names, gradients, strict=True))
