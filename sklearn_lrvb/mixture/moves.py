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

The gain of a merge follows from the lower bound as a function of the components' statistics,

    L(r) = log Z_w(N) + sum_k log Z(statistics of component k) + H(r) + constants,

with Z_w and Z the integrals over the weights and over the parameters of a component, in closed form by
conjugacy, and H(r) the entropy of the assignments. The statistics of a component that holds the rows of two
are their sum, less the prior that is counted twice; the other one returns to its prior. What a kind of
mixture has to say of this is `Components`.
"""

import functools
import itertools
from dataclasses import dataclass

import numpy as np
from scipy.special import xlogy

from sklearn_lrvb.mixture.e_step import e_step
from sklearn_lrvb.mixture.model import DegenerateComponentError, occupied
from sklearn_lrvb.mixture.responsibilities import expect, normalized

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
    posterior : posterior of a mixture, from which the fit continues
    """

    name: str
    posterior: object


@dataclass(frozen=True)
class Moves:
    """The rules by which a fit may make moves.

    Attributes
    ----------
    only_with_surplus : bool
        Whether moves wait until some component has so few rows that it may be one too many
        (`Components.has_surplus`). Without such a component, the fit is the same as without moves.
    searches : bool
        Whether rounds of splits and trial merges follow when the fit has reached an optimum (`search`).
    """

    only_with_surplus: bool = False
    searches: bool = False

    def may_act(self, posterior):
        """Whether moves are to be proposed from a state of the fit."""
        return not self.only_with_surplus or posterior.model.components(posterior).has_surplus

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
        self._model = fit.posterior.model
        self._statistics = self._model.components(fit.next_posterior)
        self._present = self._model.components(fit.posterior)
        self.divergence_saved = self._present.own_divergences - self._present.divergence_of_emptied

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
            without = self._present.emptied(component)
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
            statistics = self._model.components(posterior)
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
    posterior : posterior of a mixture
    groups : sequence of int sequences, components that may be merged
    deleted : int sequence (n_deleted,), components that may be deleted one by one

    Returns
    -------
    sums : AssignmentSums
    """
    frames = posterior.model.frames(posterior, rows)
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
