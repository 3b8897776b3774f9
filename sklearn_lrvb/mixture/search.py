"""The search from the end of a fit: splits of components, and merges that lower the bound at first.

A split needs an empty component for its second part. Where there is none, it is combined with the merge of
two other components: the gains of a split and of a merge of other components add up (about, where they share
a precision). `ascent` makes the moves proposed here.

*Mathematics.* Let component k give the shares u and 1 - u of its responsibilities to two parts. All other
responsibilities stay. As a function of u, the lower bound is then that of a mixture of two components, fitted
to the rows counted w r_k times under the same prior of the components' parameters: a small fit of its own.
Its weights have a Dirichlet prior in place of the prior of all weights; `Search` counts the prior of all
weights afterwards, and with it the order of sticks. What a model has to say of this is `SplitProposals`.
"""

import functools
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sklearn_lrvb.mixture.e_step import e_step, expect
from sklearn_lrvb.mixture.model import DegenerateComponentError, occupied
from sklearn_lrvb.mixture.moves import LEAST_GAIN, Move, assignment_sums, best_merges

# Largest fall of the lower bound by a merge, in nats, that a few iterations are given to make up for.
_MAX_TRIAL_LOSS = 10.0
_MAX_TRIALS = 3  # Largest number of merges that are tried although they lower the bound.
_LEAST_RESPONSIBILITY = 1e-3  # Rows of smaller responsibility take no part in a component's split.
_LEAST_ROWS = 4.0  # Fewest expected rows of a component to split; either part must have half as many.
# Iterations that fit the parts before their lower bound is compared with that of the whole.
_ITERATIONS = 10


class Search:
    """The moves that the search proposes from one optimum.

    Parameters
    ----------
    rows : Rows
    fit : Fit

    Attributes
    ----------
    is_of_a_sample : bool
        Whether splits are found in a sample, so that their parts are not yet fitted to all rows.
    """

    def __init__(self, rows, fit):
        self._rows, self._fit, self._posterior = rows, fit, fit.next_posterior
        self._model = self._posterior.model
        self.is_of_a_sample = rows.n_samples > self._model.sample_rows
        self._components = self._model.components(self._posterior)
        self._occupied = np.flatnonzero(occupied(self._posterior.counts))
        # The most promising merges of occupied components and their gains, the best first: (n, 2), (n,).
        pairs = self._occupied[np.stack(np.triu_indices(len(self._occupied), 1), axis=1)]
        pairs, gains = best_merges(self._components, pairs, 2 * len(self._occupied))
        if len(pairs):
            gains = gains - assignment_sums(rows, fit.posterior, pairs, ()).entropy_losses
        order = np.argsort(-gains, kind="stable")
        self._pairs, self._gains = pairs[order], gains[order]

    def splits(self):
        """Yield splits that gain.

        Where there are empty components, the best splits are made at once, one for each of them; then the
        best split alone. Where there are none, the best combination of a split with a merge of two other
        components is yielded.
        """
        posterior, candidates = self._posterior, self.candidates()
        empty = np.flatnonzero(~occupied(posterior.counts))
        if not len(empty):
            gains = np.array([self.gains_of_swaps(split) for split in candidates])
            if gains.max(initial=-np.inf) > LEAST_GAIN:
                best, pair = np.unravel_index(gains.argmax(), gains.shape)
                first, second = self._pairs[pair]
                merged = self._components.merged_posterior(self._pairs[[pair]])
                move = self.after([candidates[best]], [second], merged)
                yield Move(f"merged components {first} and {second}, {move.name}", move.posterior)
            return
        gains = np.array([self.gain_of_split(split, empty[0]) for split in candidates])
        gaining = [candidates[i] for i in np.argsort(-gains, kind="stable") if gains[i] > LEAST_GAIN]
        if self._components.splits_add_up and min(len(gaining), len(empty)) > 1:
            yield self.after(gaining[: len(empty)], empty)
        if gaining:
            yield self.after(gaining[:1], empty)

    def candidates(self):
        """A split of every component that can be split, whether it gains or not: list of Split."""
        rows = sampled(self._rows, self._model.sample_rows).in_memory()
        return splits(RowsOfComponents(rows, self._fit.posterior), self._posterior, self._occupied)

    def trial_merges(self):
        """Yield merges that lower the bound at first, the best first.

        They are those that lose little. Where rows have scales, the gain at fixed scales is a poor guide, so
        that the best merge of every component is tried. Fitted degrees of freedom then start at a low value
        (`Components.on_trial`): only so does the merged component let go of rows far out.
        """
        if not self._posterior.has_scales:
            loses_little = (self._gains > -_MAX_TRIAL_LOSS) & (self._gains <= LEAST_GAIN)
            pairs = self._pairs[loses_little][:_MAX_TRIALS]
        elif not len(self._pairs):
            return
        else:
            holds = (self._pairs[:, :, None] == self._occupied).any(axis=1)  # (pairs, components)
            pairs = self._pairs[np.unique(holds[:, holds.any(axis=0)].argmax(axis=0))]
        for first, second in pairs:
            merged = self._components.merged_posterior(np.array([[first, second]]))
            merged = self._model.components(merged).on_trial(first)
            yield Move(f"merged components {first} and {second}", merged)

    def gain_of_split(self, split, empty):
        """Gain of a split whose second part takes the place of an empty component: a float."""
        present = self._posterior.label_counts
        counts = counts_after(split, empty, present[None])
        gain = split.gain + self._components.divergence_of_emptied
        return float(gain + self._components.gains_of_weights(counts, present)[0])

    def gains_of_swaps(self, split):
        """Gains of a split together with each of the merges, whose second component takes the second part.

        A merge of the component that is split has -inf: (number of merges,).
        """
        components, present = self._components, self._posterior.label_counts
        merged = components.counts_after(self._pairs[:, None])
        after = counts_after(split, self._pairs[:, 1], merged)
        # The gains of merges count the weights after them; the weights after both take their place.
        gains = self._gains - components.gains_of_weights(merged, present)
        gains += components.gains_of_weights(after, present)
        gains += split.gain + self._components.divergence_of_emptied
        return np.where((self._pairs == split.component).any(axis=1), -np.inf, gains)

    def after(self, splits, empty, posterior=None):
        """The move that makes some splits, each with an empty component for its second part.

        The gains of several splits add up only where `Components.splits_add_up`.
        """
        posterior = self._posterior if posterior is None else posterior
        for split, second in zip(splits, empty, strict=False):
            posterior = self._model.components(posterior).after_split(split, second)
        names = ", ".join(str(split.component) for split in splits)
        return Move(f"split component{'s' * (len(splits) > 1)} {names}", posterior)


def sampled(rows, most):
    """The rows, or so many of them, evenly spaced, that together count as much: Rows."""
    if rows.n_samples <= most:
        return rows
    return replace(rows.thinned(most), sample_weight=np.full(most, rows.total_weight / most))


def counts_after(split, empty, counts):
    """Counts after a split whose second part takes the place of an empty component: (n, L) -> (n, L).

    The empty component is one for all, or (n,).
    """
    counts = counts.copy()
    # Parts of a sample of the rows may count more rows than the component has.
    moved = counts[:, split.component] * split.parts.counts[1] / split.parts.counts.sum()
    counts[:, split.component] -= moved
    counts[np.arange(len(counts)), empty] += moved
    return counts


@dataclass(frozen=True)
class Split:
    """Two parts of a component.

    Attributes
    ----------
    component : int
    gain : float, of the lower bound, without what the weights add to it
    parts : posterior of two components
    """

    component: int
    gain: float
    parts: Any


def splits(held, posterior, components):
    """The better of the splits of every component, started from several pairs of sides.

    A component has none where it has too few rows, or where a part of every split loses its rows.

    Parameters
    ----------
    held : RowsOfComponents
    posterior : posterior of all components, optimal for their responsibilities
    components : int array, those that hold rows

    Returns
    -------
    splits : list of Split
    """
    components = [int(k) for k in components if held.are_enough(k)]
    proposals = posterior.model.split_proposals(held, posterior, components)
    best = (_best_split(held.of(k), proposals, k) for k in components)
    return [split for split in best if split is not None]


def _best_split(rows, proposals, component):
    """The best of the splits of one component, given its rows; or None."""
    try:
        whole = proposals.whole(rows, component)
        starts = list(proposals.starts(rows, component, whole))
    except DegenerateComponentError:
        return None
    best, highest = None, -np.inf
    for start in starts:
        parts = _fitted_parts(rows, start)
        bound = -np.inf if parts is None else _bound_without_weights(rows, parts)
        if bound > highest:
            best, highest = parts, bound
    if best is None:
        return None
    return Split(component, highest - _bound_without_weights(rows, whole) - proposals.cost(component), best)


def _fitted_parts(rows, start):
    """Two parts after a few iterations, or None where one of them empties. The start is a callable."""
    try:
        parts = start()
        for _ in range(_ITERATIONS):
            parts = parts.m_step(e_step(rows, parts).moments)
            if parts.counts.min() < 0.5 * _LEAST_ROWS:
                return None
    except DegenerateComponentError:
        return None
    return parts


def _bound_without_weights(rows, posterior):
    """The lower bound without the largest contribution that the weights can make to it, a float."""
    weight_contribution = posterior.prior.weights.log_evidence(posterior.counts)
    return float(e_step(rows, posterior).lower_bound - weight_contribution)


class RowsOfComponents:
    """The rows of each component, and their responsibilities in it: one pass over the rows.

    Parameters
    ----------
    rows : Rows
    posterior : posterior of a mixture
    """

    def __init__(self, rows, posterior):
        self._rows, coordinates = rows, posterior.model.coordinates(posterior)
        parts = rows.map(functools.partial(_rows_held, coordinates), coordinates.workload)
        self._component, self._row, self._weight = map(np.concatenate, zip(*parts, strict=True))

    def are_enough(self, component):
        """Whether there are enough rows of one component to split it."""
        weights = self._weight[self._component == component]
        return len(weights) >= 2 and weights.sum() >= _LEAST_ROWS

    def of(self, component):
        """The rows of one component, weighted by their responsibilities in it: Rows.

        Where these are at least half of all rows, no copy is made, and the others have weight zero.
        """
        held = self._component == component
        row, weights, n_samples = self._row[held], self._weight[held], self._rows.n_samples
        if 2 * len(row) < n_samples:
            return self._rows.selected(row, weights)
        all_weights = np.zeros(n_samples)
        all_weights[row] = weights
        return replace(self._rows, sample_weight=all_weights)


def _rows_held(coordinates, block):
    """Pairs of a component and one of its rows: the component, the index of the row, and its weight."""
    r = expect(coordinates, block).responsibilities[: coordinates.posterior.n_components]
    component, row = np.nonzero(r > _LEAST_RESPONSIBILITY)
    return component, block.numbers[row], block.weighted(r)[component, row]
