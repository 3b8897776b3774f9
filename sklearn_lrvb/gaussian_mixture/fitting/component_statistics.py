"""The lower bound as a function of the components' sufficient statistics, and its change by merges.

*Mathematics.* Let q be optimal for responsibilities r. Conjugacy makes the lower bound a sum of closed forms,

    L(r) = log Z_w(N) + sum over precision groups of log Z(c, A) - (P/2) sum_k log tau_k + H(r) + constants,

with Z_w and Z the integrals over weights and precisions (`log_evidence` of the weight prior and of the
covariance structure), H(r) the entropy of the assignments, and the complete statistics of component k (prior
and known noise included)

    tau_k = b0 + N_k,    d_k = m_k - m0,    c = nu0 + power N_k,    A_k = c E(Lambda_k)^-1.

The component that holds the rows of both components k and l has

    N = N_k + N_l,    d = (tau_k d_k + tau_l d_l)/tau,    A = A_k + A_l - C0 + between,
    between = (tau_k tau_l s(d_k - d_l) - b0 tau_k s(d_k) - b0 tau_l s(d_l))/tau,

and the other one returns to its prior. With "tied" covariances, ``between`` is added to the one A, and
nothing else changes.

*Conventions.* All positions and scatters are in the frame of the prior, where C0 is the identity and every
A_k is at least the identity: sums of them are well conditioned whatever the units of the rows.
"""

from dataclasses import replace

import numpy as np

from sklearn_lrvb.row_blocks import batches


class ComponentStatistics:
    """Complete sufficient statistics of all components of a posterior under a conjugate prior.

    Parameters
    ----------
    posterior : VariationalPosterior
    """

    def __init__(self, posterior):
        prior, structure = posterior.prior, posterior.structure
        self._posterior, self._prior, self._structure = posterior, prior, structure
        whiteners = structure.whiteners(prior.covariance_cholesky)
        self._means = structure.transformed(whiteners, posterior.centred_means - prior.mean)
        self._squares = structure.statistic_by_row(self._means.T)
        covariance_cholesky = structure.composed_triangles(whiteners, posterior.covariance_cholesky)
        self._scatter = structure.expand(posterior.effective_degrees_of_freedom) * structure.gram(
            covariance_cholesky
        )
        self._log_evidence = self._log_evidence_of_precisions(
            self._scatter, posterior.effective_degrees_of_freedom
        )

    # Changes of the lower bound by merges.

    def merge_gains(self, pairs):
        """Gain of the lower bound by each merge, without the entropy of the assignments that is lost.

        Parameters
        ----------
        pairs : int array (n, 2)

        Returns
        -------
        gains : (n,), -inf where a merged covariance is singular to working precision
        """
        n_numbers = max(self._posterior.n_components, np.size(self._structure.identity))
        gains = np.empty(len(pairs))
        for batch in batches(len(pairs), 8 * n_numbers):
            gains[batch] = self._gains(pairs[batch])
        return np.where(np.isnan(gains), -np.inf, gains)

    def _gains(self, pairs):
        counts = np.repeat(self._posterior.counts[None], len(pairs), axis=0)
        rows, (first, second) = np.arange(len(pairs)), pairs.T
        counts[rows, first] += counts[rows, second]
        counts[rows, second] = 0.0
        gaussian = self._gains_of_means(pairs) + self._gains_of_precisions(pairs)
        return gaussian + self.gains_of_weights(counts)

    def gain_of_all(self, pairs):
        """Gain of the lower bound by disjoint merges made at once, as in `merge_gains`: a float."""
        if self._structure.has_own_precisions:
            of_precisions = self._gains_of_precisions(pairs).sum()
        else:
            scatter = self._scatter + self._between(pairs).sum(axis=0)
            of_precisions = self._gains_of_shared_precision(scatter)[0]
        of_weights = self.gains_of_weights(self.counts_after(pairs))
        return float(self._gains_of_means(pairs).sum() + of_precisions + of_weights)

    def counts_after(self, pairs):
        """Counts after disjoint merges, (K,)."""
        counts, (first, second) = self._posterior.counts.copy(), pairs.T
        counts[first] += counts[second]
        counts[second] = 0.0
        return counts

    def gains_of_weights(self, counts):
        """Changes of log Z_w to given counts, both in their best order: (..., K) -> (...)."""
        return self._log_evidence_of_weights(counts) - self._log_evidence_of_weights(self._posterior.counts)

    def _log_evidence_of_weights(self, counts):
        """log Z_w with the counts in their best order: (..., K) -> (...)."""
        weights = self._prior.weights
        return weights.log_evidence(np.take_along_axis(counts, weights.best_order(counts), axis=-1))

    def _gains_of_means(self, pairs):
        """Changes of -(P/2) sum_k log tau_k, P being the number of dimensions: (n,)."""
        first, second = self._posterior.mean_precision[pairs.T]
        least = self._prior.mean_precision
        return (
            0.5 * self._structure.n_dimensions * np.log(first / (first + second - least) * (second / least))
        )

    def _gains_of_precisions(self, pairs):
        """Changes of the sum of log Z(c, A), (n,)."""
        if not self._structure.has_own_precisions:
            return self._gains_of_shared_precision(self._scatter + self._between(pairs))
        first, second = pairs.T
        scatter, effective_degrees_of_freedom = self._merged(pairs)
        merged = self._log_evidence_of_precisions(scatter, effective_degrees_of_freedom)
        emptied = self._log_evidence_of_precisions(
            self._structure.identity[None], np.array([self._prior.degrees_of_freedom])
        )
        return merged + emptied - self._log_evidence[first] - self._log_evidence[second]

    def _gains_of_shared_precision(self, scatter):
        effective_degrees_of_freedom = np.repeat(self._posterior.effective_degrees_of_freedom, len(scatter))
        return self._log_evidence_of_precisions(scatter, effective_degrees_of_freedom) - self._log_evidence

    def _log_evidence_of_precisions(self, scatter, effective_degrees_of_freedom):
        """log Z(c, A), NaN where A is singular to working precision: (n, ...), (n,) -> (n,)."""
        structure, complement = self._structure, self._prior.complement
        log_determinants = structure.log_determinants(structure.cholesky(scatter)) / structure.power
        counts = (effective_degrees_of_freedom - self._prior.degrees_of_freedom) / structure.power
        log_determinants += complement.log_determinant(
            complement.inverse_scale(counts) / complement.prior_variance
        )
        return structure.precision_factors.log_evidence(
            effective_degrees_of_freedom, log_determinants, self._prior.independent
        )

    def _merged(self, pairs):
        """A and c of merged components with precisions of their own, (n, ...) and (n,)."""
        first, second = pairs.T
        scatter = (
            self._scatter[first] + self._scatter[second] - self._structure.identity + self._between(pairs)
        )
        counts = self._posterior.counts[pairs].sum(axis=1)
        return scatter, self._prior.degrees_of_freedom + self._structure.power * counts

    def _between(self, pairs):
        """The statistic ``between`` of the module's docstring, (n, ...)."""
        structure, least = self._structure, self._prior.mean_precision
        first, second = pairs.T
        of_first, of_second = self._posterior.mean_precision[pairs.T]
        together = of_first + of_second - least
        apart = structure.statistic_by_row((self._means[first] - self._means[second]).T)
        return (
            structure.expand(of_first * (of_second / together)) * apart
            - structure.expand(least * of_first / together) * self._squares[first]
            - structure.expand(least * of_second / together) * self._squares[second]
        )

    # The posteriors that moves lead to.

    def merged_posterior(self, pairs):
        """q where the first component of every disjoint pair replaces both; the second is at its prior."""
        posterior, structure = self._posterior, self._structure
        centred_means = posterior.centred_means.copy()
        least, (first, second) = self._prior.mean_precision, pairs.T
        of_first, of_second = posterior.mean_precision[pairs.T][:, :, None]
        sums = of_first * centred_means[first] + of_second * centred_means[second] - least * self._prior.mean
        centred_means[first] = sums / (of_first + of_second - least)
        centred_means[second] = self._prior.mean
        if structure.has_own_precisions:
            covariance_cholesky = posterior.covariance_cholesky.copy()
            scatter, effective_degrees_of_freedom = self._merged(pairs)
            covariance_cholesky[first] = self._merged_cholesky(scatter, effective_degrees_of_freedom)
            covariance_cholesky[second] = _prior_cholesky(self._prior)
        else:
            scatter = self._scatter + self._between(pairs).sum(axis=0)
            covariance_cholesky = self._merged_cholesky(scatter, posterior.effective_degrees_of_freedom)
        return replace(
            posterior,
            counts=self.counts_after(pairs),
            centred_means=centred_means,
            covariance_cholesky=covariance_cholesky,
        )

    def _merged_cholesky(self, scatter, effective_degrees_of_freedom):
        """Cholesky factors of A/c in the units of the rows, (n, ...)."""
        structure = self._structure
        own = structure.cholesky(scatter / structure.expand(effective_degrees_of_freedom))
        return structure.composed_triangles(self._prior.covariance_cholesky, own)


def emptied(posterior, components):
    """q with the means and precisions of some components at their prior, and the counts as they were.

    A precision that all components share stays.

    Parameters
    ----------
    components : index of components
    """
    prior, structure = posterior.prior, posterior.structure
    centred_means, covariance_cholesky = posterior.centred_means.copy(), posterior.covariance_cholesky
    centred_means[components] = prior.mean
    if structure.has_own_precisions:
        covariance_cholesky = covariance_cholesky.copy()
        covariance_cholesky[components] = _prior_cholesky(prior)
    return replace(posterior, centred_means=centred_means, covariance_cholesky=covariance_cholesky)


def divergence_of_emptied(posterior):
    """Contribution of a component without rows to the divergence of q from the prior.

    It is zero, except with independent factors of means and precisions: the factors of the prior are joint,
    so that no such q equals it.
    """
    if not posterior.prior.independent:
        return 0.0
    n_components = posterior.n_components
    counts = np.zeros(n_components)
    counts[-1] = 0.0 if posterior.structure.has_own_precisions else posterior.counts.sum()
    return own_divergences(replace(emptied(posterior, slice(None)), counts=counts))[0]


def own_divergences(posterior):
    """Contributions of every component's mean and own precision to the divergence from the prior, (K,).

    A precision that all components share is not counted.
    """
    if posterior.structure.has_own_precisions:
        return posterior.divergences.means + posterior.divergences.precisions
    return posterior.divergences.means


def _prior_cholesky(prior):
    """The Cholesky factor of E(Lambda)^-1 = C0/nu0 under the prior, in the shape of one group."""
    return prior.covariance_cholesky[0] / np.sqrt(prior.degrees_of_freedom)
