"""The search from the end of a fit: splits of components, and merges that lower the bound a little at first.

A split needs an empty component for its second half. Where there is none, it is combined with the merge of
two other components: the gains of a split and of a merge of other components add up. `splits` fits the halves
of one component, `component_statistics` evaluates merges, and `ascent` makes the moves proposed here.
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
from sklearn_lrvb.gaussian_mixture.fitting.initialization import SAMPLE_ROWS
from sklearn_lrvb.gaussian_mixture.fitting.moves import LEAST_GAIN, Move
from sklearn_lrvb.gaussian_mixture.fitting.splits import RowsOfComponents, splits
from sklearn_lrvb.gaussian_mixture.posterior.variational_posterior import occupied

# Largest fall of the lower bound by a merge, in nats, that a few sweeps are given to make up for.
_MAX_TRIAL_LOSS = 10.0
_MAX_TRIALS = 3  # Largest number of merges that are tried although they lower the bound.


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

        Where there are empty components, the best splits are made at once, one for each of them; then the
        best split alone. Where there are none, the best combination of a split with a merge is yielded.
        """
        candidates = self._candidates()
        empty = np.flatnonzero(~occupied(self._posterior.counts))
        if len(empty):
            gaining = self._gaining(candidates, empty[0])
            if self._posterior.structure.has_own_precisions and min(len(gaining), len(empty)) > 1:
                yield self._split(gaining[: len(empty)], empty)
            if gaining:
                yield self._split(gaining[:1], empty)
        else:
            yield from self._swaps(candidates)

    def trial_merges(self):
        """Yield merges that lower the bound only a little, the best first."""
        loses_little = (self._gains > -_MAX_TRIAL_LOSS) & (self._gains <= LEAST_GAIN)
        for pair in self._pairs[loses_little][:_MAX_TRIALS]:
            yield Move(
                f"merged components {pair[0]} and {pair[1]}", self._statistics.merged_posterior(pair[None])
            )

    def _candidates(self):
        """The splits of all components that can be split: list of Split."""
        rows_of_components = RowsOfComponents(self._few_rows(), self._fit.posterior)
        return splits(rows_of_components, self._posterior, np.flatnonzero(occupied(self._posterior.counts)))

    @property
    def is_of_a_sample(self):
        """Whether splits are found in a sample, so that their halves are not yet fitted to all rows."""
        return self._rows.n_samples > SAMPLE_ROWS

    def _few_rows(self):
        """The rows that halves are fitted to: all, or evenly spaced ones of the same total weight."""
        if not self.is_of_a_sample:
            return self._rows.in_memory()
        sample = self._rows.thinned(SAMPLE_ROWS)
        weight = self._rows.total_weight / SAMPLE_ROWS
        return replace(sample, sample_weight=np.full(SAMPLE_ROWS, weight))

    def _gaining(self, candidates, empty):
        """The splits that gain with their second half in an empty component, the best first."""
        gains = np.array(
            [self._gain(candidate, self._counts_after(candidate, empty)) for candidate in candidates]
        )
        return [candidates[i] for i in np.argsort(-gains, kind="stable") if gains[i] > LEAST_GAIN]

    def _gain(self, candidate, counts):
        """Gain of a split, given the counts (K,) after it and after any merge combined with it."""
        return candidate.gain + self._divergence_of_empty + self._statistics.gains_of_weights(counts)

    @cached_property
    def _divergence_of_empty(self):
        """The contribution to the divergence from the prior of the empty component that a split fills."""
        return divergence_of_emptied(self._posterior)

    def _counts_after(self, candidate, empty, counts=None):
        """Counts after a split whose second half takes the place of an empty component: (K,)."""
        counts = (self._posterior.counts if counts is None else counts).copy()
        # Halves of a sample of the rows may count more rows than the component has.
        moved = counts[candidate.component] * candidate.counts[1] / candidate.counts.sum()
        counts[candidate.component] -= moved
        counts[empty] += moved
        return counts

    def _split(self, splits, empty, posterior=None):
        """The move that makes some splits, each with an empty component for its second half.

        Components that share a precision are split one at a time.
        """
        posterior = self._posterior if posterior is None else posterior
        counts, centred_means = posterior.counts, posterior.centred_means.copy()
        covariance_cholesky = posterior.covariance_cholesky.copy()
        for made, second in zip(splits, empty, strict=False):
            counts = self._counts_after(made, second, counts)
            centred_means[[made.component, second]] = made.halves.centred_means
            if posterior.structure.has_own_precisions:
                covariance_cholesky[[made.component, second]] = made.halves.covariance_cholesky
            else:
                covariance_cholesky = made.halves.covariance_cholesky
        names = ", ".join(str(made.component) for made in splits)
        after = replace(
            posterior, counts=counts, centred_means=centred_means, covariance_cholesky=covariance_cholesky
        )
        return Move(f"split component{'s' * (len(splits) > 1)} {names}", after)

    def _swaps(self, candidates):
        """Yield the split of one component and the merge of two others that together gain most."""
        merges = []
        for pair, gain in zip(self._pairs, self._gains, strict=True):
            counts = self._statistics.counts_after(pair[None])
            merges.append((pair, counts, gain - self._statistics.gains_of_weights(counts)))
        best, swap = LEAST_GAIN, None
        for candidate, (pair, counts, gain_without_weights) in itertools.product(candidates, merges):
            if candidate.component in pair:
                continue
            combined_counts = self._counts_after(candidate, pair[1], counts)
            combined_gain = gain_without_weights + self._gain(candidate, combined_counts)
            if combined_gain > best:
                best, swap = combined_gain, (candidate, pair)
        if swap is not None:
            candidate, pair = swap
            move = self._split([candidate], [pair[1]], self._statistics.merged_posterior(pair[None]))
            yield Move(f"merged components {pair[0]} and {pair[1]}, {move.name}", move.posterior)
