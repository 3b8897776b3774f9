"""What single rows do to the posterior of a mixture of latent classes.

With F the features of a row and r its responsibilities, the influence of its weight on a target with
coefficients C = J M^-1 is sum_k r_k C_k.F. All classes have the same features.
"""

import numpy as np

from sklearn_lrvb.answers.responses import BlockResponses, BlockStatistics, ResponsesOfRows
from sklearn_lrvb.family_mixture.frames import ClassFrames
from sklearn_lrvb.mixture.responsibilities import expect_of_counted, normalized
from sklearn_lrvb.rows import Workload


class InfluenceFunctions:
    """Influence of a row's weight on several targets.

    Parameters
    ----------
    posterior : ClassPosterior
    coefficients : (d, D), rows of J M^-1
    """

    def __init__(self, posterior, coefficients):
        self._posterior, self._coefficients = posterior, coefficients
        self._frames, self._by_class = ClassFrames(posterior), posterior.array(coefficients)
        self.n_functions = len(coefficients)
        n_features = posterior.prior.n_features
        self.workload = Workload(2 * n_features + 2 * self.n_functions, 0, n_features)

    def __reduce__(self):
        return type(self), (self._posterior, self._coefficients)

    def values(self, block, out):
        """Influence of the weights of a block of n rows, written to (n, d)."""
        expectation = expect_of_counted(self._frames, block)
        features = expectation.framed.features
        total = np.zeros((self.n_functions, features.shape[1]))
        for k, r in enumerate(expectation.responsibilities):
            total += r * (self._by_class[:, k] @ features)
        out[...] = total.T

    def gradients(self, block, out):
        """There are none: categories and counts do not move by small amounts."""
        raise ValueError(
            "perturb='location' asks how a row's numbers move the fit, and rows of a table hold categories "
            "and counts too: use perturb='weight'."
        )


class ClassStatistics(BlockStatistics):
    """What rows of a block add to the sums, where no other row's assignment responds."""

    def sums(self, weights):
        """Changes of the sums, with weights of the rows by class, (K, n): (n, K, W)."""
        return weights.T[:, :, None] * self._framed.features.T[:, None]


class ClassResponses(BlockResponses):
    """The same where all assignments respond."""

    def sums(self, weights):
        """R^-1 M^-1 H q, given the q of the rows, (K, n): (n, K, W)."""
        posterior = self._posterior
        columns = np.arange(weights.shape[1])
        response = self._response(np.arange(posterior.n_coefficients), weights, columns)
        return posterior.array(posterior.complete_information.solve(response).T)


class ClassResponsesOfRows(ResponsesOfRows):
    """Responses of many rows, block by block."""

    def without_rows(self, framed, used):
        return ClassResponses(self.frames, framed, used, self._information, self._inverse)

    def resting(self, framed):
        return ClassStatistics(self.frames, framed)

    def scores_at(self, expectation, statistics, left_out):
        prior, rows = self.posterior.prior, expectation.framed
        changed = self.posterior.sums + statistics.sums(left_out)  # (n, K, W)
        changed[..., 0] = np.maximum(changed[..., 0], 0.0)
        is_proper = prior.are_proper(changed)
        changed[~is_proper] = 1.0  # any sums that are proper
        expected = [
            family.expected(part) for family, part in zip(prior.families, prior.split(changed), strict=True)
        ]
        statistics_after = prior.joined(prior.weights.expected_log(changed[..., 0]), expected)
        densities = np.einsum("nkw,wn->kn", statistics_after, rows.features) + rows.log_base
        return np.where(is_proper.all(axis=1), normalized(densities)[1], np.nan)
