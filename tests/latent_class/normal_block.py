"""Normal columns with one covariance matrix as a family of the engine of products of conjugate families."""

import numpy as np
from scipy.special import digamma, gammaln, polygamma

from sklearn_lrvb.families.base import ColumnFamily

LOG_2, LOG_2_PI = np.log(2.0), np.log(2.0 * np.pi)


class NormalBlock(ColumnFamily):
    """P columns that are one: x ~ normal(mu, Lambda^-1) under a normal-Wishart prior.

    Features of a row are 1, x, and x_p x_q for p <= q. What is computed of draws and new rows is left out.

    Parameters
    ----------
    mean_precision, degrees_of_freedom : float, b0 and nu0
    mean, covariance : (P,) and (P, P), m0 and the inverse C0 of the Wishart's scale
    """

    hyperparameters, estimates = {}, {}

    def __init__(self, mean_precision, mean, degrees_of_freedom, covariance):
        self.P = len(mean)
        super().__init__(np.arange(self.P), np.ones(self.P))
        self.n_columns = 1
        self.upper = np.triu_indices(self.P)
        self.n_features = 1 + self.P + len(self.upper[0])
        self.b0, self.m0, self.nu0 = mean_precision, mean, degrees_of_freedom
        self.second0 = covariance + mean_precision * np.outer(mean, mean)

    def features(self, values):
        return np.concatenate(
            [np.ones((1, values.shape[1])), values, values[self.upper[0]] * values[self.upper[1]]]
        )[None]

    def posterior(self, sums):
        """tau (...), m (..., P), c (...) and the inverse scale A (..., P, P)."""
        tau, freedom = self.b0 + sums[..., 0], self.nu0 + sums[..., 0]
        mean = (self.b0 * self.m0 + sums[..., 1 : 1 + self.P]) / tau[..., None]
        second = np.empty((*tau.shape, self.P, self.P))
        second[..., self.upper[0], self.upper[1]] = second[..., self.upper[1], self.upper[0]] = sums[
            ..., 1 + self.P :
        ]
        scatter = self.second0 + second - tau[..., None, None] * mean[..., :, None] * mean[..., None, :]
        return tau, mean, freedom, scatter

    def statistics(self, log_determinant, square, linear, precision):
        """The statistics of the features, given log|Lambda|, mu' Lambda mu, Lambda mu and Lambda."""
        first = 0.5 * (log_determinant - square - self.P * LOG_2_PI)
        p, q = self.upper
        entries = -np.where(p == q, 0.5, 1.0) * precision[..., p, q]
        return np.concatenate([first[..., None], linear, entries], axis=-1)

    def expected(self, sums):
        tau, mean, freedom, scatter = self.posterior(sums)
        precision = freedom[..., None, None] * np.linalg.inv(scatter)
        linear = np.einsum("...pq,...q->...p", precision, mean)
        square = self.P / tau + np.einsum("...p,...p->...", linear, mean)
        half = 0.5 * (freedom[..., None] - np.arange(self.P))
        log_determinant = digamma(half).sum(axis=-1) + self.P * LOG_2 - np.linalg.slogdet(scatter)[1]
        return self.statistics(log_determinant, square, linear, precision)

    def covariance_root(self, sums):
        """In coordinates in which m is 0 and E Lambda the identity, mapped back to the statistics of x."""
        roots = np.empty((*sums.shape[:-1], self.n_features, self.n_features))
        points = np.random.default_rng(0).normal(size=(self.P, self.n_features))
        for place in np.ndindex(sums.shape[:-1]):
            tau, mean, freedom, scatter = self.posterior(sums[place])
            factor = np.linalg.cholesky(scatter / freedom)
            # Of the same density f_x.T_x = f_y.T_y, so that T_x = M' T_y where f_y = M f_x.
            x = mean[:, None] + factor @ points
            maps = np.linalg.solve(self.features(x)[0].T, self.features(points)[0].T)
            half = 0.5 * (freedom - np.arange(self.P))
            is_square = np.append(np.zeros(1 + self.P), self.upper[0] == self.upper[1]).astype(bool)
            variances = np.full(self.n_features, 1.0 / freedom)
            variances[is_square] = 0.5 / freedom
            variances[1 : 1 + self.P] = 1.0 / tau
            variances[0] = 0.25 * polygamma(1, half).sum() + 0.5 * self.P / tau**2
            covariance = np.diag(variances)
            covariance[0, is_square] = covariance[is_square, 0] = -0.5 / freedom
            roots[place] = maps @ np.linalg.cholesky(covariance)
        return roots

    def log_evidence(self, sums):
        of_rows = 0.5 * self.P * LOG_2_PI * sums[..., 0]
        return self._log_partition(sums) - self._log_partition(np.zeros_like(sums)) - of_rows

    def _log_partition(self, sums):
        tau, _, freedom, scatter = self.posterior(sums)
        half = 0.5 * (freedom[..., None] - np.arange(self.P))
        log_partition = 0.5 * freedom * (self.P * LOG_2 - np.linalg.slogdet(scatter)[1])
        return log_partition + gammaln(half).sum(axis=-1) - 0.5 * self.P * np.log(tau)


def not_asked(self, *arguments):
    raise AssertionError("Fits, error bars of the weights and influence on them do not ask for this.")


# Everything else is abstract, and not asked here.
for name in NormalBlock.__abstractmethods__:
    setattr(NormalBlock, name, not_asked)
NormalBlock.__abstractmethods__ = frozenset()
