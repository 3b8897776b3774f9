"""The exact P(K | X) of a mixture with full covariances, by Gibbs sampling of the rows' partition.

With Dirichlet(alpha) weights of K components, t of them occupied, a partition into sets of n_j rows has the
probability W(K, t) prod_j Gamma(n_j + alpha)/Gamma(alpha), where
W(K, t) = K!/(K - t)! Gamma(K alpha)/Gamma(K alpha + N).
Only W knows K. So K is summed out: chains move through partitions weighted by V(t) = sum_K p(K) W(K, t), and
P(K | X) is the mean of p(K) W(K, t)/V(t) over their draws (Miller and Harrison, 2018). Weights, means and
precisions are integrated out, so that a row joins a set by the Student t density of that set.
"""

import numpy as np
from scipy.special import gammaln, logsumexp, multigammaln

from benchmarks.problems.prior_tables import log_number_prior

_SWEEPS_BETWEEN_FRESH_SUMS = 50  # Matrices that are updated by single rows collect rounding errors.


def log_number_weights(n_components, n_samples, concentration):
    """log W(K, t) for K and t of 1, ..., n_components, -inf where t > K: (n_components, n_components)."""
    number = np.arange(1, n_components + 1)
    total = concentration * number
    empty = number[:, None] - number
    log_labellings = gammaln(number + 1)[:, None] - gammaln(np.maximum(empty, 0) + 1)
    log_weights = log_labellings + (gammaln(total) - gammaln(total + n_samples))[:, None]
    return np.where(empty >= 0, log_weights, -np.inf)


def log_joint_weights(n_components, n_samples, concentration):
    """log p(K) W(K, t) for K and t of 1, ..., n_components: (n_components, n_components)."""
    log_weights = log_number_weights(n_components, n_samples, concentration)
    return log_number_prior(n_components)[:, None] + log_weights


def number_probabilities(shares, n_samples, concentration, most=None):
    """P(K | X) for K = 1, ..., most.

    Parameters
    ----------
    shares : (..., n_components), of the draws with t occupied components, of chains whose K is summed out
    most : int, at most n_components, which is the default

    Returns
    -------
    (..., most)
    """
    log_weights = log_joint_weights(np.shape(shares)[-1], n_samples, concentration)
    ratios = np.exp(log_weights - logsumexp(log_weights, axis=0))
    joint = (shares @ ratios.T)[..., :most]
    return joint / joint.sum(axis=-1, keepdims=True)


class PartitionChains:
    """Chains of partitions of the rows of tables that have the same shape and prior, all moved at once.

    Parameters
    ----------
    X : (n_tables, N, P)
    prior : ConjugatePrior
    log_weights : (K,), log V(t) for t = 1, ..., K occupied components, up to a constant
    n_chains : int, of every table
    rng : numpy Generator

    Attributes
    ----------
    labels : (n_tables * n_chains, N), the set of every row
    """

    def __init__(self, X, prior, log_weights, n_chains, rng):
        n_tables, n_samples, n_features = X.shape
        self._prior, self._rng, self._n_components = prior, rng, len(log_weights)
        self._rows = np.repeat(X - prior.mean, n_chains, axis=0)
        self._first = np.arange(n_tables * n_chains) * self._n_components  # a chain's first set of all sets
        self.labels = np.array([self._start(rows) for rows in self._rows])

        # A row joins an empty set by alpha V(t + 1)/V(t), which the empty sets share.
        n_empty = self._n_components - np.arange(1, self._n_components)
        to_more = np.log(prior.concentration / n_empty) + np.diff(log_weights)
        self._log_empty = np.concatenate([[0.0], to_more, [-np.inf]])
        counts = np.arange(n_samples + 1)
        precision, freedom = prior.mean_precision + counts, prior.degrees_of_freedom + counts
        self._log_count = np.log(counts + prior.concentration)
        self._log_norm = multigammaln((freedom + 1) / 2, n_features) - multigammaln(freedom / 2, n_features)
        self._log_norm += 0.5 * n_features * np.log(precision / (precision + 1))

    def _start(self, rows):
        """Labels by the nearest of K random rows: large sets merge much sooner than they split."""
        centers = rows[self._rng.choice(len(rows), self._n_components, replace=False)]
        gaps = (rows[:, None] - centers) / rows.std(axis=0)
        return np.square(gaps).sum(axis=2).argmin(axis=1)

    @property
    def occupied(self):
        """Number of occupied components of every chain's partition, (n_tables * n_chains,)."""
        return (self._counts.reshape(len(self.labels), -1) > 0).sum(axis=1)

    def occupied_draws(self, n_sweeps, n_burn_in):
        """Numbers of occupied components after every sweep that follows the burn-in, (n_chains, n_sweeps)."""
        draws = []
        for sweep in range(n_burn_in + n_sweeps):
            if sweep % _SWEEPS_BETWEEN_FRESH_SUMS == 0:
                self._sum_anew()
            for row in self._rng.permutation(self.labels.shape[1]):
                self._move(row)
            draws.append(self.occupied)
        return np.array(draws[n_burn_in:]).T

    def _sum_anew(self):
        """Of every set: count, sum, and the inverse and log determinant of its matrix.

        The matrix is C0 + b0 m m' + sum (x - m)(x - m)', with rows x and mean m measured from the prior mean.
        """
        member = (self.labels[:, :, None] == np.arange(self._n_components)).astype(float)
        n_features = self._rows.shape[2]
        self._counts = member.sum(axis=1).astype(int).ravel()
        self._sums = np.einsum("cnk,cnp->ckp", member, self._rows).reshape(-1, n_features)
        squares = np.einsum("cnk,cnp,cnq->ckpq", member, self._rows, self._rows, optimize=True)
        means = self._sums / (self._counts + self._prior.mean_precision)[:, None]
        matrices = self._prior.covariance + squares.reshape(-1, n_features, n_features)
        matrices -= self._sums[:, :, None] * means[:, None, :]
        self._inverses, self._log_dets = np.linalg.inv(matrices), np.linalg.slogdet(matrices)[1]

    def _move(self, row):
        """Take a row out of its set in every chain, and draw the set that it joins."""
        x = self._rows[:, row]
        self._change(self._first + self.labels[:, row], x, -1)
        counts = self._counts.reshape(len(x), -1)
        occupied = counts > 0
        log_sizes = np.where(
            occupied, self._log_count[counts], self._log_empty[occupied.sum(axis=1)][:, None]
        )
        noise = -np.log(self._rng.standard_exponential(counts.shape))
        self.labels[:, row] = (self._log_predictive(x) + log_sizes + noise).argmax(axis=1)
        self._change(self._first + self.labels[:, row], x, 1)

    def _log_predictive(self, x):
        """Log density of a row given the rows of every set, up to a constant: (n_chains, K)."""
        precision = self._counts + self._prior.mean_precision
        offsets = np.repeat(x, self._n_components, axis=0) - self._sums / precision[:, None]
        squares = np.einsum("cp,cp->c", offsets, (self._inverses @ offsets[:, :, None])[:, :, 0])
        freedom = self._prior.degrees_of_freedom + self._counts + 1
        log_growth = np.log1p(precision / (precision + 1) * squares)
        log_density = self._log_norm[self._counts] - 0.5 * self._log_dets - 0.5 * freedom * log_growth
        return log_density.reshape(len(x), -1)

    def _change(self, sets, x, sign):
        """Add rows to sets (sign 1), or take them out (-1)."""
        without = self._counts[sets] - (sign < 0)
        precision = without + self._prior.mean_precision
        offsets = x - (self._sums[sets] - (sign < 0) * x) / precision[:, None]
        factor = sign * precision / (precision + 1)
        solved = (self._inverses[sets] @ offsets[:, :, None])[:, :, 0]
        growth = 1 + factor * np.einsum("cp,cp->c", offsets, solved)
        self._inverses[sets] -= (factor / growth)[:, None, None] * solved[:, :, None] * solved[:, None, :]
        self._log_dets[sets] += np.log(growth)
        self._counts[sets] += sign
        self._sums[sets] += sign * x
