"""What the moves between optima ask of normal components: merged and emptied ones, and what they gain.

*Mathematics.* The lower bound is a function of the components' complete sufficient statistics, prior and
known noise included (`mixtures.moves`). Conjugacy makes it a sum of closed forms,

    L(r) = log Z_w(N) + sum over precision groups of log Z(c, A) - (P/2) sum_k log tau_k + H(r) + constants,

with Z_w and Z the integrals over weights and precisions (`log_evidence` of the weight prior and of the
covariance structure), H(r) the entropy of the assignments, and the statistics of component k

    tau_k = b0 + U_k,    d_k = m_k - m0,    c = nu0 + power N_k,    A_k = c E(Lambda_k)^-1,

U_k being N_k, or the sum of the rows' expected scales where they have any (`posterior.tails`). Every row then
keeps q(u | z) as it moves, so that the statistics of two components add up. In the component that holds both,
q(u) is a mixture of two, whose entropy is at least their average. So the gain is a lower bound of what the
move gains. The component that holds the rows of both components k and l has

    N = N_k + N_l,    U = U_k + U_l,    d = (tau_k d_k + tau_l d_l)/tau,    A = A_k + A_l - C0 + between,
    between = (tau_k tau_l s(d_k - d_l) - b0 tau_k s(d_k) - b0 tau_l s(d_l))/tau,

and the other one returns to its prior. With "tied" covariances, ``between`` is added to the one A, and
nothing else changes. `ComponentStatistics` works in the frame of the prior, where C0 is the identity and
every A_k is at least the identity: sums of them are well conditioned whatever the units of the rows.
"""

from dataclasses import replace
from functools import cached_property

import numpy as np

from sklearn_lrvb.gaussian.posterior.tails import NU_WITHOUT_ROWS
from sklearn_lrvb.mixture.model import Components, occupied, sums_after
from sklearn_lrvb.mixture.search import counts_after
from sklearn_lrvb.rows import batches


class ComponentStatistics(Components):
    """The components of a posterior, by their complete sufficient statistics under a conjugate prior.

    Parameters
    ----------
    posterior : VariationalPosterior
    """

    def __init__(self, posterior):
        super().__init__(posterior)
        self._prior, self._structure = posterior.prior, posterior.structure
        self.splits_add_up = self._structure.has_own_precisions

    @property
    def has_surplus(self):
        """Whether some component has so few rows that it may be one too many.

        It has fewer than P + 1 rows, too few for a covariance matrix of its own, and less than half an equal
        share of all rows. Where an equal share is less than twice the rows that a covariance needs, P + 1 or,
        for "spherical", 2, a component with few rows is no sign of a surplus, and an empty one is.
        """
        counts, structure = self._posterior.counts, self._structure
        half_a_share = 0.5 * counts.mean()
        if half_a_share >= 1 + structure.n_dimensions / structure.power:
            return bool(counts.min() < min(1 + structure.n_dimensions, half_a_share))
        return not occupied(counts).all()

    # Divergences from the prior.

    @property
    def own_divergences(self):
        """As of all components. A precision that all share, or degrees of freedom, are not counted."""
        posterior = self._posterior
        divergences = posterior.divergences.means
        if self._structure.has_own_precisions:
            divergences = divergences + posterior.divergences.precisions
        if posterior.tails is not None:
            divergences = divergences + posterior.tails.negative_log_priors()
        return divergences

    @property
    def divergence_of_emptied(self):
        """Contribution of a component without rows to the divergence of q from the prior.

        It is zero, except with independent factors of means and precisions: the factors of the prior are
        joint, so that no such q equals it. Own degrees of freedom have minus the log of the prior's largest
        density.
        """
        posterior = self._posterior
        has_own_tails = posterior.tails is not None and posterior.tails.are_per_component
        if not (self._prior.independent or has_own_tails):
            return 0.0
        counts = np.zeros(posterior.n_components)
        counts[-1] = 0.0 if self._structure.has_own_precisions else posterior.counts.sum()
        return ComponentStatistics(replace(self.emptied(slice(None)), counts=counts)).own_divergences[0]

    def divergence_of_padding(self, padded):
        """By how much the divergence of q from the prior grows by one empty component, its weight apart."""
        divergence, tails = self.divergence_of_emptied, self._posterior.tails
        if tails is not None:
            divergence -= tails.negative_log_prior() - padded.tails.negative_log_prior()
        return divergence

    # Merges.

    @cached_property
    def _whiteners_of_prior(self):
        return self._structure.whiteners(self._prior.covariance_cholesky)

    @cached_property
    def _means(self):
        """d in the frame of the prior, (K, P)."""
        return self._structure.transformed(
            self._whiteners_of_prior, self._posterior.centred_means - self._prior.mean
        )

    @cached_property
    def _squares(self):
        return self._structure.statistic_by_row(self._means.T)

    @cached_property
    def _scatter(self):
        """A in the frame of the prior, (S, ...)."""
        structure, posterior = self._structure, self._posterior
        covariance_cholesky = structure.composed(self._whiteners_of_prior, posterior.covariance_cholesky)
        freedom = posterior.effective_degrees_of_freedom[structure.statistic_axes]
        return freedom * structure.gram(covariance_cholesky)

    @cached_property
    def _log_evidence(self):
        return self._log_evidence_of_precisions(self._scatter, self._posterior.effective_degrees_of_freedom)

    def merge_gains(self, merges):
        """Gain of the lower bound by each merge, without the entropy of the assignments that is lost.

        Parameters
        ----------
        merges : int array (n, 2), or (n, m, 2) for as many disjoint merges at once

        Returns
        -------
        gains : (n,), -inf where a merged covariance is singular to working precision
        """
        merges = merges if merges.ndim == 3 else merges[:, None]
        n_numbers = max(self._posterior.n_components, merges.shape[1] * np.size(self._structure.identity))
        gains = np.empty(len(merges))
        for batch in batches(len(merges), 8 * n_numbers):
            gains[batch] = self._gains(merges[batch])
        return np.where(np.isnan(gains), -np.inf, gains)

    def _gains(self, merges):
        structure, least, pairs = self._structure, self._prior.mean_precision, merges.reshape(-1, 2)
        first, second = self._posterior.mean_precision[pairs.T]
        gains = 0.5 * structure.n_dimensions * np.log(first / (first + second - least) * (second / least))
        if self._posterior.tails is not None:
            gains += self._posterior.tails.merged(self._posterior.counts, pairs)[1]
        if structure.has_own_precisions:
            merged = self._log_evidence_of_precisions(*self._merged(pairs))
            freedom = np.array([self._prior.degrees_of_freedom])
            emptied = self._log_evidence_of_precisions(structure.identity[None], freedom)
            gains += merged + emptied - self._log_evidence[pairs].sum(axis=1)
        gains = gains.reshape(merges.shape[:2]).sum(axis=1)
        if not structure.has_own_precisions:
            between = self._between(pairs)
            between = between.reshape(*merges.shape[:2], *between.shape[1:]).sum(axis=1)
            freedom = np.repeat(self._posterior.effective_degrees_of_freedom, len(merges))
            gains += self._log_evidence_of_precisions(self._scatter + between, freedom) - self._log_evidence
        return gains + self.gains_of_weights(self.counts_after(merges), self._posterior.label_counts)

    def _log_evidence_of_precisions(self, scatter, effective_degrees_of_freedom):
        """log Z(c, A), NaN where A is singular to working precision: (n, ...), (n,) -> (n,)."""
        structure, complement = self._structure, self._prior.complement
        log_det_scatter = structure.log_determinants(structure.cholesky(scatter)) / structure.power
        counts = (effective_degrees_of_freedom - self._prior.degrees_of_freedom) / structure.power
        log_det_scatter += complement.log_determinant(
            complement.inverse_scale(counts) / complement.prior_variance
        )
        return structure.wisharts.log_evidence(
            effective_degrees_of_freedom, log_det_scatter, self._prior.independent
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
            (of_first * (of_second / together))[structure.statistic_axes] * apart
            - (least * of_first / together)[structure.statistic_axes] * self._squares[first]
            - (least * of_second / together)[structure.statistic_axes] * self._squares[second]
        )

    def merged_posterior(self, pairs):
        """q where the first component of every disjoint pair replaces both; the second is at its prior."""
        posterior, prior, structure = self._posterior, self._prior, self._structure
        centred_means, least, (first, second) = posterior.centred_means.copy(), prior.mean_precision, pairs.T
        of_first, of_second = posterior.mean_precision[pairs.T][:, :, None]
        sums = of_first * centred_means[first] + of_second * centred_means[second] - least * prior.mean
        centred_means[first] = sums / (of_first + of_second - least)
        centred_means[second] = prior.mean
        if structure.has_own_precisions:
            scatter, freedom = self._merged(pairs)
        else:
            scatter = self._scatter + self._between(pairs).sum(axis=0)
            freedom = posterior.effective_degrees_of_freedom
        in_units_of_prior = structure.cholesky(scatter / freedom[structure.statistic_axes])
        merged = structure.composed(prior.covariance_cholesky, in_units_of_prior)
        if structure.has_own_precisions:
            covariance_cholesky = posterior.covariance_cholesky.copy()
            covariance_cholesky[first] = merged
            covariance_cholesky[second] = _prior_cholesky(prior)
        else:
            covariance_cholesky = merged
        after = replace(
            posterior,
            counts=self.counts_after(pairs[None])[0, : posterior.n_components],
            centred_means=centred_means,
            covariance_cholesky=covariance_cholesky,
        )
        if posterior.tails is None:
            return after
        nu = posterior.tails.merged(posterior.counts, pairs)[0]
        tails = posterior.tails.replaced(first, nu).replaced(second, NU_WITHOUT_ROWS)
        return replace(after, scale_sums=sums_after(posterior.scale_sums, pairs[None])[0], tails=tails)

    # Components at their prior, and in two parts.

    def emptied(self, components):
        """q with the means and precisions of some components at their prior, and the counts as they were.

        A precision that all components share stays.
        """
        posterior, prior = self._posterior, self._prior
        centred_means, covariance_cholesky = posterior.centred_means.copy(), posterior.covariance_cholesky
        centred_means[components] = prior.mean
        if self._structure.has_own_precisions:
            covariance_cholesky = covariance_cholesky.copy()
            covariance_cholesky[components] = _prior_cholesky(prior)
        after = replace(posterior, centred_means=centred_means, covariance_cholesky=covariance_cholesky)
        if posterior.tails is None:
            return after
        scale_sums = posterior.scale_sums.copy()
        scale_sums[components] = 0.0
        tails = posterior.tails.replaced(components, NU_WITHOUT_ROWS)
        return replace(after, scale_sums=scale_sums, tails=tails)

    def after_split(self, split, second):
        """As of all components. Those that share a precision take that of the two parts."""
        posterior, parts = self._posterior, split.halves
        centred_means, covariance_cholesky = posterior.centred_means.copy(), parts.covariance_cholesky
        both = [split.component, second]
        centred_means[both] = parts.centred_means
        if self._structure.has_own_precisions:
            covariance_cholesky = posterior.covariance_cholesky.copy()
            covariance_cholesky[both] = parts.covariance_cholesky
        scale_sums, tails = posterior.scale_sums, posterior.tails
        if tails is not None:
            scale_sums = scale_sums.copy()
            scale_sums[both] = scale_sums[split.component] * parts.scale_sums / parts.scale_sums.sum()
            tails = tails.replaced(second, tails.nu[split.component])
        return replace(
            posterior,
            counts=counts_after(split, second, posterior.counts[None])[0],
            centred_means=centred_means,
            covariance_cholesky=covariance_cholesky,
            scale_sums=scale_sums,
            tails=tails,
        )

    def on_trial(self, component):
        """The posterior after a merge into one component, whose fitted degrees of freedom begin low."""
        posterior, tails = self._posterior, self._posterior.tails
        return posterior if tails is None else replace(posterior, tails=tails.heavier(component))


def _prior_cholesky(prior):
    """The Cholesky factor of E(Lambda)^-1 = C0/nu0 under the prior, in the shape of one group."""
    return prior.covariance_cholesky[0] / np.sqrt(prior.degrees_of_freedom)
