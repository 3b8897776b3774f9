"""Moves between local optima: merges and deletions of components, and their best order.

Surplus components empty over hundreds of iterations, and neither plain nor accelerated iterations ever join
two components that share one cluster. A move does either at once. It proposes another q, and the fit
continues from there if the exact lower bound, by the next E-step, is higher than before. `ascent` makes the
moves proposed here; `search` proposes splits and trial merges at the end of a fit.

*Mathematics.* Let r be the responsibilities at q, and q' optimal for them. If a move turns r into r+, and q+
is optimal for r+, an iteration at q+ has a lower bound of at least L(r+) = L(r) + gain, and L(r) is at least
the bound of the iteration at q. So the iteration accepts every move whose gain is positive. An emptied
component returns to its prior; K does not change.

A deletion gives the rows of component k to the other labels in proportion to their responsibilities; its gain
is at least

    sum_n w_n log(1 - r_nk) + [KL_k - KL_empty] + log Z_w(N') - sum_l N'_l E log pi_l + KL_w,

with KL_k the contribution of component k to the divergence of q from the prior, KL_empty that of an empty
component, KL_w that of the weights, N'_k = 0 and
N'_l = N_l + sum_n w_n r_nk r_nl/(1 - r_nk) for the others. (The terms of the weights are compared with those
of the best q(pi) for the present counts, which any iteration gains.)

The gain of a merge follows from the lower bound as a function of the components' statistics,

    L(r) = log Z_w(N) + sum_k log Z(statistics of component k) + H(r) + constants,

with Z_w and Z the integrals over the weights and over the parameters of a component, in closed form by
conjugacy, and H(r) the entropy of the assignments. The statistics of a component that holds the rows of two
are their sum, less the prior that is counted twice; the other one returns to its prior. What a model has to
say of this is `Components`.
"""

import functools
import itertools
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.special import xlogy

from sklearn_lrvb.mixture.e_step import e_step, expect, normalized
from sklearn_lrvb.mixture.model import DegenerateComponentError, occupied

LEAST_GAIN = 1e-3  # Gain of the lower bound, in nats, above which a move is worth an iteration.
# Gain above which a change of the components' order is worth the iterations that follow it, up to 170.
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
            Whether iterations have nothing left to gain. Merges of many components are then proposed too.

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
    """

    def __init__(self, rows, fit):
        self._rows, self._fit = rows, fit
        self._model = fit.posterior.model
        self._components = self._model.components(fit.next_posterior)

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
        gains = self.deletion_gains(deleted, sums.log_kept, sums.taken_over)
        if gains.max() > LEAST_GAIN:
            component = int(deleted[gains.argmax()])
            without = self._model.components(self._fit.posterior).emptied(component)
            moments = e_step(self._rows, without, without=component).moments
            try:
                posterior = without.m_step(moments)
            except DegenerateComponentError:
                return
            yield Move(f"deleted component {component}", posterior)

    def _promising_pairs(self):
        """Pairs whose merge may gain, and their gains before entropy is subtracted.

        Pairs of two empty components are left out. Of many components most pairs are of this kind, and
        including them changed none of 324 fits with 8 to 60 components.
        """
        n_components = self._fit.posterior.n_components
        pairs = np.array(list(itertools.combinations(range(n_components), 2)))
        pairs = pairs[occupied(self._fit.next_posterior.counts)[pairs].any(axis=1)]
        pairs, gains = best_merges(self._components, pairs, _PAIRS_PER_COMPONENT * n_components)
        return pairs[gains > LEAST_GAIN], gains[gains > LEAST_GAIN]

    def _promising_deletions(self):
        """Components whose deletion may gain, by an estimate.

        It assumes that the rows' scores fall by one nat for every expected row of the component, the least
        possible, and that its rows go to the other labels in proportion to their counts.
        """
        counts = self._fit.e_step_result.moments.counts
        components = np.arange(self._fit.posterior.n_components)
        others = counts.sum() - counts[components]
        components = components[(others > 0) & (self._divergence_saved > counts[components])]
        own = counts[components]
        taken_over = counts * (own / others[components])[:, None]
        gains = self.deletion_gains(components, -own, taken_over)
        best = np.argsort(-gains, kind="stable")[:_MAX_DELETIONS]
        return components[best[gains[best] > LEAST_GAIN]]

    @cached_property
    def _divergence_saved(self):
        """Fall of the divergence of q from the prior when a component returns to its prior, (K,)."""
        present = self._model.components(self._fit.posterior)
        return present.own_divergences - present.divergence_of_emptied

    def deletion_gains(self, components, log_kept, taken_over):
        """Gains by deleting components one by one, relative to the gain that any iteration makes.

        Any iteration makes the gain of the best q(pi) for the present counts.

        Parameters
        ----------
        components : int array (n,)
        log_kept, taken_over : (n,) and (n, L), as in `AssignmentSums`
        """
        present = self._fit.e_step_result.moments.counts
        log_weights = self._fit.posterior.expectations.log_weights
        counts = present + taken_over
        counts[np.arange(len(components)), components] = 0.0
        weights = self._components.gains_of_weights(counts, present) - (counts - present) @ log_weights
        return log_kept + self._divergence_saved[components] + weights

    def _merges(self, pairs, gains, losses):
        """The disjoint merges that gain more than they lose of entropy, all at once, then the best alone."""
        net, chosen, taken = gains - losses, [], set()
        for i in np.argsort(-net, kind="stable"):
            if net[i] > LEAST_GAIN and taken.isdisjoint(pairs[i]):
                chosen.append(i)
                taken.update(pairs[i])
        proposed = [pairs[chosen[:1]]] if chosen else []
        if len(chosen) > 1:
            together = self._components.merge_gains(pairs[None, chosen])[0] - losses[chosen].sum()
            if together > net[chosen[0]]:
                proposed.insert(0, pairs[chosen])
        return [
            Move(
                f"merged components {', '.join(f'{k} and {l}' for k, l in merged)}",
                self._components.merged_posterior(merged),
            )
            for merged in proposed
        ]

    def collapses(self):
        """Yield the best state that is reached by merging two components at a time, if it gains.

        Even where merging any two components loses, merging three or all of them may gain. Components are
        merged one after the other, always the two that gain most or lose least, and the best of all stages is
        proposed. What is lost by then can hardly be more than all divergences from the prior, which is all
        that merges save.
        """
        components, gain, most = self._components, 0.0, self._divergence_saved.sum()
        stages = []  # The gain without entropy, what makes the posterior, and the groups merged.
        # By where their rows are.
        groups = {k: (k,) for k in np.flatnonzero(occupied(self._fit.next_posterior.counts))}
        if not 2 < len(groups) <= _MAX_COLLAPSED:
            return
        while len(groups) > 1:
            pairs = np.array(list(itertools.combinations(groups, 2)))
            best, gains = best_merges(components, pairs, 1)
            first, second = best[0]
            gain += gains[0]
            if not gain > -most:
                break
            groups[first] = groups.pop(first) + groups.pop(second)
            merged = functools.partial(components.merged_posterior, best)
            stages.append((gain, merged, [group for group in groups.values() if len(group) > 1]))
            if len(groups) > 1:
                components = self._model.components(merged())
        if not stages or max(gain for gain, _, _ in stages) <= LEAST_GAIN:
            return
        new = [groups[-1] for _, _, groups in stages]
        losses = assignment_sums(self._rows, self._fit.posterior, new, ()).entropy_losses
        loss_of = dict(zip(new, losses, strict=True))
        gains = [gain - sum(loss_of[group] for group in groups) for gain, _, groups in stages]
        _, merged, groups = stages[int(np.argmax(gains))]
        if max(gains) > LEAST_GAIN:
            names = "; ".join(", ".join(str(k) for k in sorted(group)) for group in groups)
            yield Move(f"merged components {names}", merged())

    def order(self):
        """Yield the posterior with its components in their best order if that gains enough."""
        posterior = self._fit.next_posterior
        weights, counts = posterior.prior.weights.of_components, posterior.counts
        order = weights.best_order(counts)
        after, before = weights.log_evidence(np.stack([counts[order], counts]))
        if after - before > _LEAST_GAIN_OF_ORDER:
            yield Move("sorted the components by their counts", posterior.reordered(order))


def best_merges(components, pairs, most):
    """The merges that gain most, without the entropy that is lost, and their gains: (n, 2), (n,).

    Parameters
    ----------
    components : Components
    pairs : int array (m, 2)
    most : int, largest number of them
    """
    gains = components.merge_gains(pairs)
    best = np.argsort(-gains, kind="stable")[:most]
    return pairs[best], gains[best]


class AssignmentSums(NamedTuple):
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
    coordinates = posterior.model.coordinates(posterior, rows)
    function = functools.partial(_sums_of_block, coordinates, groups, deleted)
    return AssignmentSums(*(coordinates.kept_rows or rows).total(function, coordinates.workload))


def _sums_of_block(coordinates, groups, deleted, block):
    """The attributes of `AssignmentSums`, summed over a block."""
    expectation = expect(coordinates, block)
    r, n_labels = expectation.responsibilities, len(expectation.responsibilities)
    own, entropy_losses = xlogy(r, r), np.zeros(len(groups))
    for i, group in enumerate(map(list, groups)):
        merged = r[group].sum(axis=0)
        entropy_losses[i] = block.weighted(xlogy(merged, merged) - own[group].sum(axis=0)).sum()
    log_kept, taken_over = np.zeros(len(deleted)), np.zeros((len(deleted), n_labels))
    for i, k in enumerate(deleted):
        others, log_normalizer = normalized(np.delete(expectation.log_densities, k, axis=0))
        log_kept[i] = block.weighted(log_normalizer - expectation.log_normalizer).sum()
        taken_over[i, np.arange(n_labels) != k] = block.weighted(others * r[k]).sum(axis=1)
    return entropy_losses, log_kept, taken_over
