"""What single rows do to the posterior of a mixture of latent classes.

With F the features of a row and r its responsibilities, the influence of its weight on a target with
coefficients C = J M^-1 is sum_k r_k C_k.F. All classes have the same features.
"""

import numpy as np

from sklearn_lrvb.answers.influence import InfluenceFunctions
from sklearn_lrvb.answers.responses import ResponsesOfRows
from sklearn_lrvb.mixture.e_step import normalized
from sklearn_lrvb.rows import Workload


class ClassInfluenceFunctions(InfluenceFunctions):
    """Influence of a row's weight on several targets.

    Parameters
    ----------
    posterior : ClassPosterior
    coefficients : (d, D), rows of J M^-1
    """

    def __init__(self, posterior, coefficients):
        super().__init__(posterior, coefficients)
        self._by_class = posterior.array(coefficients)
        n_features = posterior.prior.n_features
        self.workload = Workload(2 * n_features + 2 * self.n_functions, 0, n_features)

    def values_of_label(self, k, represented):
        return self._by_class[:, k] @ represented.features

    def gradients(self, block, out):
        """There are none: categories and counts do not move by small amounts."""
        raise ValueError(
            "perturb='location' asks how a row's numbers move the fit, and rows of a table hold categories "
            "and counts too: use perturb='weight'."
        )


class ClassResponsesOfRows(ResponsesOfRows):
    """Responses of many rows, block by block."""

    def complete_product(self, coordinates, coefficients):
        """As of every model; here of all coordinates."""
        return self.posterior.complete_information.solve(coefficients)

    def scores_at(self, expectation, statistics, left_out):
        posterior, prior, rows = self.posterior, self.posterior.prior, expectation.represented
        coordinates, columns = np.arange(posterior.n_coefficients), np.arange(rows.n_rows)
        changes = statistics.statistics(coordinates, left_out, columns)
        sums = posterior.sums + posterior.array(changes.T)  # (n, K, W)
        sums[..., 0] = np.maximum(sums[..., 0], 0.0)
        statistics_after = prior.expected(sums)
        statistics_after[..., 0] += prior.weights.expected_log(sums[..., 0])
        is_proper = np.isfinite(statistics_after).all(axis=(1, 2))
        statistics_after[~is_proper] = 0.0
        densities = np.einsum("nkw,wn->kn", statistics_after, rows.features) + rows.log_base
        return np.where(is_proper, normalized(densities)[1], np.nan)
