"""The search from the end of a fit: splits of components, and merges that lower the bound a little at first.

A split needs an empty component for its second half. Where there is none, it is combined with the merge of
two other components: the gains of a split and of a merge of other components add up.
"""

import itertools
from dataclasses import replace
from functools import cached_property

import numpy as np

from sklearn_lrvb.gaussian_mixture.fitting.assignment_sums import assignment_sums
from sklearn_lrvb.gaussian_mixture.fitting.component_statistics import (
    ComponentStatistics,
    divergence_of_emptied,
)
from sklearn_lrvb.gaussian_mixture.fitting.moves import LEAST_GAIN, Move
from sklearn_lrvb.gaussian_mixture.fitting.splits import RowsOfComponents, split
from sklearn_lrvb.gaussian_mixture.posterior.occupied_components import occupied

_MAX_LOSS = 10.0  # nats that a merge may lose before a few sweeps make up for it
_TRIALS = 3  # merges on trial, the most promising ones


class Search:
    """The moves that the search proposes from one optimum.

    Parameters
    ----------
    rows : CentredRows
    fit : Fit
    """

    def __init__(self, rows, fit):
        self._rows, self._fit = rows, fit
        self._posterior = fit.next_posterior
        self._statistics = ComponentStatistics(self._posterior)
        self._pairs, self._gains = self._merges()

    def _merges(self):
        """The most promising merges of occupied components, and their gains, the best first: (n, 2), (n,)."""
        components = np.flatnonzero(occupied(self._posterior.counts))
        pairs = components[np.stack(np.triu_indices(len(components), 1), axis=1)]
        gains = self._statistics.merge_gains(pairs)
        likely = np.argsort(-gains, kind="stable")[: 2 * len(components)]
        pairs, gains = pairs[likely], gains[likely]
        if len(pairs):
            sums = assignment_sums(self._rows, self._fit.posterior, pairs, np.zeros(0, dtype=int))
            gains = gains - sums.entropy_losses
        order = np.argsort(-gains, kind="stable")
        return pairs[order], gains[order]

    def splits(self):
        """Yield splits that gain.

        Where there are empty components, these are as many splits at once as there are empty components, then
        the best one alone; where there are none, the best split that is combined with a merge.
        """
        halves = self._halves()
        empty = np.flatnonzero(~occupied(self._posterior.counts))
        if len(empty):
            gaining = self._gaining(halves, empty[0])
            if self._posterior.structure.has_own_precisions and min(len(gaining), len(empty)) > 1:
                yield self._split(gaining[: len(empty)], empty)
            if gaining:
                yield self._split(gaining[:1], empty)
        else:
            yield from self._swaps(halves)

    def trial_merges(self):
        """Yield merges that lose little, the best first."""
        near = (self._gains > -_MAX_LOSS) & (self._gains <= LEAST_GAIN)
        for pair in self._pairs[near][:_TRIALS]:
            yield Move(
                f"merged components {pair[0]} and {pair[1]}", self._statistics.merged_posterior(pair[None])
            )

    def _halves(self):
        """The splits of all components that can be split: list of Split."""
        held = RowsOfComponents(self._rows, self._fit.posterior)
        components = np.flatnonzero(occupied(self._posterior.counts))
        found = (split(held.of(k), self._posterior, int(k)) for k in components)
        return [halves for halves in found if halves is not None]

    def _gaining(self, halves, empty):
        """The splits that gain with their second half in an empty component, the best first."""
        gains = np.array([self._gain(one, self._counts_after(one, empty)) for one in halves])
        return [halves[i] for i in np.argsort(-gains, kind="stable") if gains[i] > LEAST_GAIN]

    def _gain(self, halves, counts):
        """Gain of a split, given the counts (K,) that it and a merge combined with it lead to."""
        return halves.gain + self._divergence_of_empty + self._statistics.gains_of_weights(counts)

    @cached_property
    def _divergence_of_empty(self):
        """The contribution to the divergence from the prior of the empty component that a split fills."""
        return divergence_of_emptied(self._posterior)

    def _counts_after(self, halves, empty, counts=None):
        """Counts once the second half is in an empty component: (K,)."""
        counts = (self._posterior.counts if counts is None else counts).copy()
        counts[halves.component] -= halves.counts[1]
        counts[empty] += halves.counts[1]
        return counts

    def _split(self, splits, empty, posterior=None):
        """The move that makes some splits, each with an empty component for its second half.

        Components that share a precision are split one at a time.
        """
        posterior = self._posterior if posterior is None else posterior
        counts, centred_means = posterior.counts, posterior.centred_means.copy()
        covariance_cholesky = posterior.covariance_cholesky.copy()
        for one, second in zip(splits, empty, strict=False):
            counts = self._counts_after(one, second, counts)
            centred_means[[one.component, second]] = one.halves.centred_means
            if posterior.structure.has_own_precisions:
                covariance_cholesky[[one.component, second]] = one.halves.covariance_cholesky
            else:
                covariance_cholesky = one.halves.covariance_cholesky
        names = ", ".join(str(one.component) for one in splits)
        after = replace(
            posterior, counts=counts, centred_means=centred_means, covariance_cholesky=covariance_cholesky
        )
        return Move(f"split component{'s' * (len(splits) > 1)} {names}", after)

    def _swaps(self, halves):
        """Yield the split of one component, with the merge of two others, that together gain most."""
        best, swap = LEAST_GAIN, None
        merges = list(zip(self._pairs, self._gains, strict=True))
        for one, (pair, gain) in itertools.product(halves, merges):
            if one.component in pair:
                continue
            merged = self._statistics.counts_after(pair[None])
            of_weights = self._statistics.gains_of_weights(merged)
            together = gain - of_weights + self._gain(one, self._counts_after(one, pair[1], merged))
            if together > best:
                best, swap = together, (one, pair)
        if swap is not None:
            one, pair = swap
            move = self._split([one], [pair[1]], self._statistics.merged_posterior(pair[None]))
            yield Move(f"merged components {pair[0]} and {pair[1]}, {move.name}", move.posterior)
