"""The search from the end of a fit: splits of components, and merges that lose a little at first.

A split needs an empty component for its second half. Where there is none, it goes together with the merge of
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
from sklearn_lrvb.gaussian_mixture.fitting.moves import LEAST_GAIN, Move, occupied
from sklearn_lrvb.gaussian_mixture.fitting.splits import RowsOfComponents, split

_LARGEST_LOSS = 10.0  # nats, of a merge that sweeps may make up for
_TRIALS = 3


class Search:
    """Proposals from one optimum.

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
        """The likeliest merges of occupied components, and their gains, the best first: (n, 2), (n,)."""
        components = np.flatnonzero(occupied(self._posterior.counts))
        pairs = np.array(list(itertools.combinations(components, 2)), dtype=int).reshape(-1, 2)
        gains = self._statistics.merge_gains(pairs)
        likely = np.argsort(-gains, kind="stable")[: 2 * len(components)]
        pairs, gains = pairs[likely], gains[likely]
        if len(pairs):
            sums = assignment_sums(self._rows, self._fit.posterior, pairs, np.zeros(0, dtype=int))
            gains = gains - sums.entropy_losses
        order = np.argsort(-gains, kind="stable")
        return pairs[order], gains[order]

    def splits(self):
        """Yield splits that gain: as many at once as there are empty components, else the best, or a swap."""
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
        near = (self._gains > -_LARGEST_LOSS) & (self._gains <= LEAST_GAIN)
        for pair in self._pairs[near][:_TRIALS]:
            yield Move(
                f"merged components {pair[0]} and {pair[1]}", self._statistics.merged_posterior(pair[None])
            )

    def _halves(self):
        """What splitting each component leads to, where it leads anywhere: list of Split."""
        held = RowsOfComponents(self._rows, self._fit.posterior)
        components = np.flatnonzero(occupied(self._posterior.counts))
        found = (split(held.of(k), self._posterior, int(k)) for k in components)
        return [halves for halves in found if halves is not None]

    def _gaining(self, halves, empty):
        """Those that gain with their second half in an empty component, the best first."""
        gains = np.array([self._gain(one, self._counts_after(one, empty)) for one in halves])
        return [halves[i] for i in np.argsort(-gains, kind="stable") if gains[i] > LEAST_GAIN]

    def _gain(self, halves, counts):
        """Gain of a split, given the counts (K,) that it and what goes with it lead to."""
        return halves.gain + self._divergence_of_empty + self._statistics.gains_of_weights(counts)

    @cached_property
    def _divergence_of_empty(self):
        """What the empty component that a split fills has added to the divergence from the prior."""
        return divergence_of_emptied(self._posterior)

    def _counts_after(self, halves, empty, counts=None):
        """Counts once the second half is in an empty component: (K,)."""
        counts = (self._posterior.counts if counts is None else counts).copy()
        counts[halves.component] -= halves.counts[1]
        counts[empty] += halves.counts[1]
        return counts

    def _split(self, splits, empty, posterior=None):
        """Some splits, each with an empty component for its second half; of a shared precision one alone."""
        posterior = self._posterior if posterior is None else posterior
        counts, centred_means, covariance_cholesky = (
            posterior.counts,
            posterior.centred_means.copy(),
            posterior.covariance_cholesky.copy(),
        )
        for one, group in zip(splits, empty, strict=False):
            counts = self._counts_after(one, group, counts)
            centred_means[[one.component, group]] = one.halves.centred_means
            if posterior.structure.has_own_precisions:
                covariance_cholesky[[one.component, group]] = one.halves.covariance_cholesky
            else:
                covariance_cholesky = one.halves.covariance_cholesky
        names = ", ".join(str(one.component) for one in splits)
        return Move(
            f"split component{'s' * (len(splits) > 1)} {names}",
            replace(
                posterior, counts=counts, centred_means=centred_means, covariance_cholesky=covariance_cholesky
            ),
        )

    def _swaps(self, halves):
        """Yield the split of one component and the merge of two others that together gain most."""
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
