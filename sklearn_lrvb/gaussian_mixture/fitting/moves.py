"""Moves between optima: merges and deletions of components, and their best order.

Surplus components empty over hundreds of sweeps, and neither plain nor accelerated sweeps ever join two
components that share one cluster. A move does either at once. It proposes another q, and the fit continues
from there if the exact lower bound, which the next E-step finds, is higher than before. `ascent` makes the
moves proposed here; `search` proposes splits and trial merges at the end of a fit.

*Mathematics.* Let r be the responsibilities at q, and q' optimal for them. If a move turns r into r+, and q+
is optimal for r+, a sweep at q+ finds a lower bound of at least L(r+) = L(r) + gain, and L(r) is at least
the bound that the sweep at q found. So the sweep accepts every move whose gain is positive. An emptied
component returns to its prior; K does not change.

A deletion gives the rows of component k to the other labels in proportion to their responsibilities; its gain
is at least

    sum_n w_n log(1 - r_nk) + [KL_k - KL_empty] + log Z_w(N') - sum_l N'_l E log pi_l + KL_w,

with KL_k the contribution of component k to the divergence of q from the prior, KL_empty that of an empty
component, KL_w that of the weights, N'_k = 0 and
N'_l = N_l + sum_n w_n r_nk r_nl/(1 - r_nk) for the others. (The terms of the weights are compared with those
of the best q(pi) for the present counts, which any sweep gains.)

The gain of a merge follows from the lower bound as a function of the components' statistics. Conjugacy makes
it a sum of closed forms,

    L(r) = log Z_w(N) + sum over precision groups of log Z(c, A) - (P/2) sum_k log tau_k + H(r) + constants,

with Z_w and Z the integrals over weights and precisions (`log_evidence` of the weight prior and of the
covariance structure), H(r) the entropy of the assignments, and the complete statistics of component k (prior
and known noise included)

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

import functools
import itertools
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import xlogy

from sklearn_lrvb.gaussian_mixture.e_step.e_step import e_step
from sklearn_lrvb.gaussian_mixture.e_step.frames import frames_of
from sklearn_lrvb.gaussian_mixture.e_step.responsibilities import expect, normalized
from sklearn_lrvb.gaussian_mixture.posterior.degenerate_components import DegenerateComponentError
from sklearn_lrvb.gaussian_mixture.posterior.tails import NU_WITHOUT_ROWS
from sklearn_lrvb.gaussian_mixture.posterior.variational_posterior import VariationalPosterior, occupied
from sklearn_lrvb.row_blocks import batches

LEAST_GAIN = 1e-3  # Gain of the lower bound, in nats, above which a move is worth a sweep.
# Gain above which a change of the components' order is worth the sweeps that follow it, up to 170.
_LEAST_GAIN_OF_ORDER = 0.5
# A pass over the rows evaluates only the most promising merges, this many pairs for every component, and the
# most promising deletions, this many in all.
_PAIRS_PER_COMPONENT = 2
_MAX_DELETIONS = 3
# Merges of more than two components are tried only where at most this many components are occupied, because
# their stages together have K^3/6 pairs.
_MAX_COLLAPSED = 32


@dataclass(frozen=True)
class Move:
    """A proposed continuation of a fit.

    Attributes
    ----------
    name : str, what happens to which components
    posterior : VariationalPosterior, from which the fit continues
    """

    name: str
    posterior: VariationalPosterior


@dataclass(frozen=True)
class Moves:
    """The rules by which a fit may make moves.

    Attributes
    ----------
    only_with_surplus : bool
        Whether moves wait until some component has fewer than P + 1 rows, too few for a covariance matrix of
        its own, and less than half an equal share of all rows. Without such a component, the fit is the same
        as without moves. Where an equal share is less than twice the rows that a covariance needs, P + 1 or,
        for "spherical", 2, a component with few rows is no sign of a surplus, and moves wait until some
        component is empty.
    searches : bool
        Whether rounds of splits and trial merges follow when the fit has reached an optimum (`search`).
    """

    only_with_surplus: bool = False
    searches: bool = False

    def may_act(self, posterior):
        """Whether moves are to be proposed from a state of the fit."""
        if not self.only_with_surplus:
            return True
        counts, structure = posterior.counts, posterior.structure
        half_a_share = 0.5 * counts.mean()
        if half_a_share >= 1 + structure.n_dimensions / structure.power:
            return bool(counts.min() < min(1 + structure.n_dimensions, half_a_share))
        return not occupied(counts).all()

    def in_order(self, posterior):
        """The posterior with its components in their best order, if moves may act."""
        if not self.may_act(posterior):
            return posterior
        order = posterior.prior.weights.of_components.best_order(posterior.counts)
        is_in_order = np.array_equal(order, np.arange(len(order)))
        return posterior if is_in_order else posterior.reordered(order)

    def proposals(self, rows, fit, at_fixed_point=False):
        """Yield moves from a state of the fit, the best first.

        Parameters
        ----------
        rows : Rows
        fit : Fit
        at_fixed_point : bool
            Whether sweeps have nothing left to gain. Merges of many components are then proposed too.

        Yields
        ------
        Move
        """
        if fit.posterior.n_components == 1 or not self.may_act(fit.posterior):
            return
        proposals = MoveProposals(rows, fit)
        yield from proposals.merges_or_deletion()
        yield from proposals.order()
        if at_fixed_point:
            yield from proposals.collapses()


class MoveProposals:
    """The moves from one state of the fit that promise to raise the lower bound.

    Parameters
    ----------
    rows : Rows
    fit : Fit

    Attributes
    ----------
    divergence_saved : (K,), fall of the divergence of q from the prior when a component returns to its prior
    """

    def __init__(self, rows, fit):
        self._rows, self._fit = rows, fit
        self._statistics = ComponentStatistics(fit.next_posterior)
        self.divergence_saved = own_divergences(fit.posterior) - divergence_of_emptied(fit.posterior)

    def merges_or_deletion(self):
        """Yield merges that gain; if there are none, the deletion that gains most."""
        pairs, gains = self._promising_pairs()
        deleted = self._promising_deletions()
        if not (len(pairs) or len(deleted)):
            return
        sums = assignment_sums(self._rows, self._fit.posterior, pairs, deleted)
        merges = self._merges(pairs, gains, sums.entropy_losses)
        yield from merges
        if merges or not len(deleted):
            return
        counts = self._fit.e_step_result.moments.counts + sums.taken_over
        counts[np.arange(len(deleted)), deleted] = 0.0
        gains = sums.log_kept + self.divergence_saved[deleted] + self.changes_of_weights(counts)
        if gains.max() > LEAST_GAIN:
            component = int(deleted[gains.argmax()])
            without = emptied(self._fit.posterior, component)
            moments = e_step(self._rows, without, without=component).moments
            try:
                deletion = Move(f"deleted component {component}", without.m_step(moments))
            except DegenerateComponentError:
                return
            yield deletion

    def _promising_pairs(self):
        """Pairs whose merge may gain, and their gains before entropy is subtracted.

        Pairs of two empty components are left out. Of many components most pairs are of this kind, and
        including them changed none of 324 fits with 8 to 60 components.
        """
        n_components = self._fit.posterior.n_components
        pairs = np.stack(np.triu_indices(n_components, 1), axis=1)
        pairs = pairs[occupied(self._fit.next_posterior.counts)[pairs].any(axis=1)]
        gains = self._statistics.merge_gains(pairs)
        best = np.argsort(-gains, kind="stable")[: _PAIRS_PER_COMPONENT * n_components]
        best = best[gains[best] > LEAST_GAIN]
        return pairs[best], gains[best]

    def _promising_deletions(self):
        """Components whose deletion may gain, by an estimate.

        It assumes that the rows' scores fall by one nat for every expected row of the component, the least
        possible, and that its rows go to the other labels in proportion to their counts.
        """
        counts = self._fit.e_step_result.moments.counts
        others = counts.sum() - counts
        n_components = self._fit.posterior.n_components
        of_components = counts[:n_components]
        may = np.flatnonzero((others > 0)[:n_components] & (self.divergence_saved > of_components))
        after = counts * (1.0 + counts[may] / others[may])[:, None]
        after[np.arange(len(may)), may] = 0.0
        gains = self.divergence_saved[may] - counts[may] + self.changes_of_weights(after)
        best = np.argsort(-gains, kind="stable")[:_MAX_DELETIONS]
        return may[best[gains[best] > LEAST_GAIN]]

    def changes_of_weights(self, counts):
        """Gains by the best q(pi) for other expected counts, (n, L) -> (n,).

        They are relative to the gain of the best q(pi) for the present counts, which any sweep makes.
        """
        present = self._fit.e_step_result.moments.counts
        log_weights = self._fit.posterior.expectations.log_weights
        return self._statistics.gains_of_weights(counts, present) - (counts - present) @ log_weights

    def _merges(self, pairs, gains, losses):
        """The disjoint merges that gain more than they lose of entropy, all at once, then the best alone."""
        net, chosen = gains - losses, []
        for i in np.argsort(-net, kind="stable"):
            if net[i] > LEAST_GAIN and not set(pairs[i]) & {k for j in chosen for k in pairs[j]}:
                chosen.append(i)
        proposed = [pairs[chosen[:1]]] if chosen else []
        if len(chosen) > 1:
            together = self._statistics.merge_gains(pairs[None, chosen])[0] - losses[chosen].sum()
            proposed = [pairs[chosen], *proposed] if together > net[chosen[0]] else proposed
        return [
            Move(
                f"merged components {', '.join(f'{k} and {l}' for k, l in merged)}",
                self._statistics.merged_posterior(merged),
            )
            for merged in proposed
        ]

    def collapses(self):
        """Yield the best state that is reached by merging two components at a time, if it gains.

        Even where merging any two components loses, merging three or all of them may gain. Components are
        merged one after the other, always the two that gain most or lose least, and the best of all stages is
        proposed.
        """
        posterior, gain = self._fit.next_posterior, 0.0
        stages = []  # The gain without entropy, the posterior, and the groups merged.
        groups = {k: (k,) for k in np.flatnonzero(occupied(posterior.counts))}  # By where their rows are.
        while 1 < len(groups) <= _MAX_COLLAPSED:
            statistics = ComponentStatistics(posterior)
            pairs = np.array(list(itertools.combinations(groups, 2)))
            gains = statistics.merge_gains(pairs)
            best = gains.argmax()
            if not np.isfinite(gains[best]):
                break
            first, second = pairs[best]
            gain, posterior = gain + gains[best], statistics.merged_posterior(pairs[[best]])
            groups[first] = groups.pop(first) + groups.pop(second)
            stages.append((gain, posterior, [group for group in groups.values() if len(group) > 1]))
        if not stages or max(gain for gain, _, _ in stages) <= LEAST_GAIN:
            return
        merged = [groups[-1] for _, _, groups in stages]  # The one that is new.
        losses = assignment_sums(self._rows, self._fit.posterior, merged, ()).entropy_losses
        loss_of = dict(zip(merged, losses, strict=True))
        gains = [gain - sum(loss_of[group] for group in groups) for gain, _, groups in stages]
        _, posterior, groups = stages[int(np.argmax(gains))]
        if max(gains) > LEAST_GAIN:
            names = "; ".join(", ".join(str(k) for k in sorted(group)) for group in groups)
            yield Move(f"merged components {names}", posterior)

    def order(self):
        """Yield the posterior with its components in their best order if that gains enough."""
        posterior = self._fit.next_posterior
        weights, counts = posterior.prior.weights.of_components, posterior.counts
        order = weights.best_order(counts)
        gain = weights.log_evidence(counts[order]) - weights.log_evidence(counts)
        if gain > _LEAST_GAIN_OF_ORDER:
            yield Move("sorted the components by their counts", posterior.reordered(order))


@dataclass(frozen=True)
class AssignmentSums:
    """Sums over the rows, each times its sample weight.

    Attributes
    ----------
    entropy_losses : (n_groups,), entropy of the assignments that is lost if a group of components is merged
    log_kept : (n_deleted,), sum of log(1 - r_k), by which the rows' scores fall if component k is deleted
    taken_over : (n_deleted, L), sum of r_k r_l/(1 - r_k), rows of component k that then go to label l
    """

    entropy_losses: np.ndarray
    log_kept: np.ndarray
    taken_over: np.ndarray


def assignment_sums(rows, posterior, groups, deleted):
    """One pass over the rows.

    Parameters
    ----------
    rows : Rows
    posterior : VariationalPosterior
    groups : sequence of int sequences, components that may be merged
    deleted : int sequence (n_deleted,), components that may be deleted one by one

    Returns
    -------
    sums : AssignmentSums
    """
    frames = frames_of(posterior, rows)
    function = functools.partial(_sums_of_block, frames, groups, deleted)
    return AssignmentSums(*rows.total(function, frames.workload))


def _sums_of_block(frames, groups, deleted, block):
    """The attributes of `AssignmentSums`, summed over a block."""
    expectation = expect(frames, block)
    r, n_labels = expectation.responsibilities, len(expectation.responsibilities)
    entropy_losses = block.weighted(_entropy_losses(r, groups)).sum(axis=1)
    log_kept, taken_over = np.zeros(len(deleted)), np.zeros((len(deleted), n_labels))
    for i, k in enumerate(deleted):
        others, log_normalizer = normalized(np.delete(expectation.log_densities, k, axis=0))
        log_kept[i] = block.weighted(log_normalizer - expectation.log_normalizer).sum()
        taken_over[i, np.arange(n_labels) != k] = block.weighted(others * r[k]).sum(axis=1)
    return entropy_losses, log_kept, taken_over


def _entropy_losses(responsibilities, groups):
    """s log s - sum over a group of r_k log r_k, with s the sum of its r_k: (L, n) -> (n_groups, n)."""
    own = xlogy(responsibilities, responsibilities)
    losses = np.empty((len(groups), responsibilities.shape[1]))
    for loss, group in zip(losses, groups, strict=True):
        group = np.asarray(group)
        merged = responsibilities[group].sum(axis=0)
        np.subtract(xlogy(merged, merged), own[group].sum(axis=0), out=loss)
    return losses


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
        covariance_cholesky = structure.composed(whiteners, posterior.covariance_cholesky)
        self._scatter = posterior.effective_degrees_of_freedom[structure.statistic_axes] * structure.gram(
            covariance_cholesky
        )
        self._log_evidence = self._log_evidence_of_precisions(
            self._scatter, posterior.effective_degrees_of_freedom
        )

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

    def counts_after(self, merges):
        """Counts of the labels after disjoint merges, (n, m, 2) -> (n, L)."""
        return _sums_after(self._posterior.label_counts, merges)

    def gains_of_weights(self, counts, present):
        """Changes of log Z_w from present counts to others, both in their best order: (..., L) -> (...)."""
        weights = self._prior.weights
        after, before = (
            weights.log_evidence(np.take_along_axis(of, weights.best_order(of), axis=-1))
            for of in (counts, present)
        )
        return after - before

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
        return replace(after, scale_sums=_sums_after(posterior.scale_sums, pairs[None])[0], tails=tails)


def _sums_after(sums, merges):
    """Sums over the rows of every label after disjoint merges, (n, m, 2) -> (n, ...)."""
    after = np.repeat(sums[None], len(merges), axis=0)
    rows, (first, second) = np.arange(len(merges))[:, None], np.moveaxis(merges, -1, 0)
    after[rows, first] += after[rows, second]
    after[rows, second] = 0.0
    return after


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
    after = replace(posterior, centred_means=centred_means, covariance_cholesky=covariance_cholesky)
    if posterior.tails is None:
        return after
    scale_sums = posterior.scale_sums.copy()
    scale_sums[components] = 0.0
    return replace(after, scale_sums=scale_sums, tails=posterior.tails.replaced(components, NU_WITHOUT_ROWS))


def divergence_of_emptied(posterior):
    """Contribution of a component without rows to the divergence of q from the prior.

    It is zero, except with independent factors of means and precisions: the factors of the prior are joint,
    so that no such q equals it. Own degrees of freedom have minus the log of the prior's largest density.
    """
    has_own_tails = posterior.tails is not None and posterior.tails.are_per_component
    if not (posterior.prior.independent or has_own_tails):
        return 0.0
    n_components = posterior.n_components
    counts = np.zeros(n_components)
    counts[-1] = 0.0 if posterior.structure.has_own_precisions else posterior.counts.sum()
    return own_divergences(replace(emptied(posterior, slice(None)), counts=counts))[0]


def own_divergences(posterior):
    """Contributions of what is every component's own to the divergence from the prior, (K,).

    A precision that all components share, or degrees of freedom, are not counted.
    """
    of_components = posterior.divergences.means
    if posterior.structure.has_own_precisions:
        of_components = of_components + posterior.divergences.precisions
    if posterior.tails is not None:
        of_components = of_components + posterior.tails.negative_log_priors()
    return of_components


def _prior_cholesky(prior):
    """The Cholesky factor of E(Lambda)^-1 = C0/nu0 under the prior, in the shape of one group."""
    return prior.covariance_cholesky[0] / np.sqrt(prior.degrees_of_freedom)
