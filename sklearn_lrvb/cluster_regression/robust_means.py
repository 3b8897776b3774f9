"""Means of an outcome in the clusters whatever its distribution: a test, and a check of a distribution.

If an outcome tells about the columns of X through the cluster alone, its mean given X is sum_k r_k mu_k, with
the probabilities r of the clusters that do not know of it. So least squares of the outcome on r has the means
for coefficients. Where all means are equal, errors of r do not matter: the test that they are needs neither a
distribution of the outcome nor the uncertainty of the clusters. Estimates by a distribution are surer, if it
is right.

*Conventions.* n rows, L labels, q values of an outcome: one, or indicators of its categories but the first.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import chdtrc, fdtrc

from sklearn_lrvb.answers.groups import summed_by_group


@dataclass(frozen=True)
class RobustMeans:
    """Means by least squares, given the mean of the covariates.

    Attributes
    ----------
    means : (L, q), in scaled units
    covariance : (L, q, L, q)
    n_clusters : int, K
    """

    means: np.ndarray
    covariance: np.ndarray
    n_clusters: int

    @classmethod
    def of(cls, step, alone, codes):
        """Of a second step with an outcome, the same without it, and groups of its rows (n,) or None."""
        data, n_labels = step.data, step.model.n_labels
        probabilities = alone.model.row_terms(
            alone.maximum.parameters, alone.data.log_densities, alone.data.matrix
        ).probabilities
        Z = np.concatenate([probabilities.T, data.matrix[:, 1:]], axis=1)  # Covariates have mean zero.
        y = step.model.outcome.values(data.y)
        weighted = Z * data.weights[:, None]
        inverse = np.linalg.pinv(weighted.T @ Z, hermitian=True)
        coefficients = inverse @ weighted.T @ y
        scores = ((weighted @ inverse)[:, :n_labels, None] * (y - Z @ coefficients)[:, None]).reshape(
            len(Z), -1
        )
        if codes is None:  # A weight counts as so many rows.
            meat = (scores / data.weights[:, None]).T @ scores
        else:
            sums = summed_by_group(scores.T, codes, codes.max() + 1).of_all()
            meat = sums.T @ sums
        size = n_labels, y.shape[1]
        return cls(coefficients[:n_labels], meat.reshape(*size, *size), step.labels.n_clusters)

    def p_value(self, freedom):
        """That the clusters have the same means; NaN with fewer degrees of freedom than contrasts."""
        K, q = self.n_clusters, self.means.shape[1]
        contrasts = np.eye(K)[1:] - np.eye(K)[:1]
        values = (contrasts @ self.means[:K]).ravel()
        covariance = np.einsum("ak,kplq,bl->apbq", contrasts, self.covariance[:K, :, :K], contrasts)
        covariance = covariance.reshape(len(values), -1)
        square = float(values @ np.linalg.pinv(covariance, hermitian=True) @ values)
        size, rest = (K - 1) * q, freedom - (K - 1) * q + 1.0
        if np.isinf(freedom):
            return float(chdtrc(size, square))
        return float(fdtrc(size, rest, square * rest / (freedom * size))) if rest > 0 else np.nan
