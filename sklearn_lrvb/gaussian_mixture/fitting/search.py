"""The search from the end of a fit: splits of components, and merges that lower the bound at first.

A split needs an empty component for its second half. Where there is none, it is combined with the merge of
two other components: the gains of a split and of a merge of other components add up. `ascent` makes the moves
proposed here.

*Mathematics.* Let component k give the shares u and 1 - u of its responsibilities to two halves. All other
responsibilities stay. As a function of u, the lower bound is then that of a mixture of two components, fitted
to the rows counted w r_k times under the same prior of means and precisions: a small fit of its own. Its
weights have a Dirichlet prior in place of the prior of all weights; `Search` accounts for the order of the
sticks afterwards. Fitted degrees of freedom stay as they are. For a precision that all components share,
the prior of this fit is the posterior given the rows of all other components: a Wishart distribution whose
degrees of freedom are those of the prior and the expected rows of the others, and whose inverse scale is C0
and what each of them adds to it.
"""

import functools
import itertools
from dataclasses import dataclass, replace

import numpy as np

from sklearn_lrvb.gaussian_mixture.e_step.first_m_step import posterior_from_responsibilities
from sklearn_lrvb.gaussian_mixture.e_step.frames import OwnFrames
from sklearn_lrvb.gaussian_mixture.fitting.component_statistics import (
    ComponentStatistics,
    divergence_of_emptied,
)
from sklearn_lrvb.gaussian_mixture.fitting.starts import SAMPLE_ROWS
from sklearn_lrvb.gaussian_mixture.posterior.variational_posterior import VariationalPosterior
from sklearn_lrvb.mixtures.e_step import e_step
from sklearn_lrvb.mixtures.model import DegenerateComponentError, occupied
from sklearn_lrvb.mixtures.moves import LEAST_GAIN, Move, assignment_sums
from sklearn_lrvb.mixtures.responsibilities import expect
from sklearn_lrvb.mixtures.weight_priors import DirichletWeights, StickBreakingWeights

# Largest fall of the lower bound by a merge, in nats, that a few sweeps are given to make up for.
_MAX_TRIAL_LOSS = 10.0
_MAX_TRIALS = 3  # Largest number of merges that are tried although they lower the bound.
_LEAST_RESPONSIBILITY = 1e-3  # Rows of smaller responsibility take no part in a component's split.
_LEAST_ROWS = 4.0  # Fewest expected rows of a component to split; either half must have half as many.
_SWEEPS = 10  # Sweeps that fit the halves before their lower bound is compared with that of the whole.


class Search:
    """The moves that the search proposes from one optimum.

    Parameters
    ----------
    rows : Rows
    fit : Fit

    Attributes
    ----------
    is_of_a_sample : bool
        Whether splits are found in a sample, so that their halves are not yet fitted to all rows.
    """

    def __init__(self, rows, fit):
        self._rows, self._fit, self._posterior = rows, fit, fit.next_posterior
        self.is_of_a_sample = rows.n_samples > SAMPLE_ROWS
        self._statistics = ComponentStatistics(self._posterior)
        self._occupied = np.flatnonzero(occupied(self._posterior.counts))
        # The most promising merges of occupied components and their gains, the best first: (n, 2), (n,).
        pairs = self._occupied[np.stack(np.triu_indices(len(self._occupied), 1), axis=1)]
        gains = self._statistics.merge_gains(pairs)
        likely = np.argsort(-gains, kind="stable")[: 2 * len(self._occupied)]
        pairs, gains = pairs[likely], gains[likely]
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
                merged = self._statistics.merged_posterior(self._pairs[[pair]])
                move = self.after([candidates[best]], [second], merged)
                yield Move(f"merged components {first} and {second}, {move.name}", move.posterior)
            return
        gains = np.array([self.gain_of_split(split, empty[0]) for split in candidates])
        gaining = [candidates[i] for i in np.argsort(-gains, kind="stable") if gains[i] > LEAST_GAIN]
        if posterior.structure.has_own_precisions and min(len(gaining), len(empty)) > 1:
            yield self.after(gaining[: len(empty)], empty)
        if gaining:
            yield self.after(gaining[:1], empty)

    def candidates(self):
        """A split of every component that can be split, whether it gains or not: list of Split."""
        if self.is_of_a_sample:  # Evenly spaced rows of the same total weight.
            weights = np.full(SAMPLE_ROWS, self._rows.total_weight / SAMPLE_ROWS)
            rows = replace(self._rows.thinned(SAMPLE_ROWS), sample_weight=weights)
        else:
            rows = self._rows.in_memory()
        return splits(RowsOfComponents(rows, self._fit.posterior), self._posterior, self._occupied)

    def trial_merges(self):
        """Yield merges that lower the bound at first, the best first.

        They are those that lose little. Where rows have scales, they are the best one of every component:
        what these lose while the scales stay says little. A component gives back what rows far out it has
        taken from another only where degrees of freedom are low, so that fitted ones begin there.
        """
        if self._posterior.tails is None:
            loses_little = (self._gains > -_MAX_TRIAL_LOSS) & (self._gains <= LEAST_GAIN)
            pairs = self._pairs[loses_little][:_MAX_TRIALS]
        elif not len(self._pairs):
            return
        else:
            holds = (self._pairs[:, :, None] == self._occupied).any(axis=1)  # (pairs, components)
            pairs = self._pairs[np.unique(holds[:, holds.any(axis=0)].argmax(axis=0))]
        for first, second in pairs:
            merged = self._statistics.merged_posterior(np.array([[first, second]]))
            if merged.tails is not None:
                merged = replace(merged, tails=merged.tails.heavier(first))
            yield Move(f"merged components {first} and {second}", merged)

    def gain_of_split(self, split, empty):
        """Gain of a split whose second half takes the place of an empty component: a float."""
        present = self._posterior.label_counts
        counts = _counts_after(split, empty, present[None])
        gain = split.gain + divergence_of_emptied(self._posterior)
        return float(gain + self._statistics.gains_of_weights(counts, present)[0])

    def gains_of_swaps(self, split):
        """Gains of a split together with each of the merges, whose second component takes the second half.

        A merge of the component that is split has -inf: (number of merges,).
        """
        statistics, present = self._statistics, self._posterior.label_counts
        merged = statistics.counts_after(self._pairs[:, None])
        after = _counts_after(split, self._pairs[:, 1], merged)
        # The gains of merges count the weights after them; the weights after both take their place.
        gains = self._gains - statistics.gains_of_weights(merged, present)
        gains += statistics.gains_of_weights(after, present)
        gains += split.gain + divergence_of_emptied(self._posterior)
        return np.where((self._pairs == split.component).any(axis=1), -np.inf, gains)

    def after(self, splits, empty, posterior=None):
        """The move that makes some splits, each with an empty component for its second half.

        Components that share a precision are split one at a time.
        """
        posterior = self._posterior if posterior is None else posterior
        counts, centred_means = posterior.counts[None], posterior.centred_means.copy()
        covariance_cholesky = posterior.covariance_cholesky.copy()
        scale_sums, tails = posterior.scale_sums, posterior.tails
        for split, second in zip(splits, empty, strict=False):
            counts = _counts_after(split, second, counts)
            if tails is not None:
                scale_sums = _scale_sums_after(split, second, scale_sums)
                tails = tails.replaced(second, tails.nu[split.component])
            centred_means[[split.component, second]] = split.halves.centred_means
            if posterior.structure.has_own_precisions:
                covariance_cholesky[[split.component, second]] = split.halves.covariance_cholesky
            else:
                covariance_cholesky = split.halves.covariance_cholesky
        names = ", ".join(str(split.component) for split in splits)
        after = replace(
            posterior,
            counts=counts[0],
            centred_means=centred_means,
            covariance_cholesky=covariance_cholesky,
            scale_sums=scale_sums,
            tails=tails,
        )
        return Move(f"split component{'s' * (len(splits) > 1)} {names}", after)


def _counts_after(split, empty, counts):
    """Counts after a split whose second half takes the place of an empty component: (n, L) -> (n, L).

    The empty component is one for all, or (n,).
    """
    counts = counts.copy()
    # Halves of a sample of the rows may count more rows than the component has.
    moved = counts[:, split.component] * split.halves.counts[1] / split.halves.counts.sum()
    counts[:, split.component] -= moved
    counts[np.arange(len(counts)), empty] += moved
    return counts


def _scale_sums_after(split, empty, scale_sums):
    """Sums of the scales after a split whose second half takes the place of an empty component: (K,)."""
    after, of_halves = scale_sums.copy(), split.halves.scale_sums
    after[[split.component, empty]] = after[split.component] * of_halves / of_halves.sum()
    return after


@dataclass(frozen=True)
class Split:
    """Two halves of a component.

    Attributes
    ----------
    component : int
    gain : float, of the lower bound, without what the weights add to it
    halves : VariationalPosterior of two components
    """

    component: int
    gain: float
    halves: VariationalPosterior


def splits(rows, posterior, components):
    """The better of two splits of every component, started from halves along different axes.

    A component has none where it has too few rows, or where a half of either split loses its rows.

    Parameters
    ----------
    rows : RowsOfComponents
    posterior : VariationalPosterior of all components, optimal for their responsibilities
    components : int array, those that hold rows

    Returns
    -------
    splits : list of Split
    """
    components = [k for k in components if rows.are_enough(k)]
    priors = _priors_of_rows(rows, posterior, components)
    found = (
        _split(rows.of(k), posterior, int(k), prior) for k, prior in zip(components, priors, strict=True)
    )
    return [split for split in found if split is not None]


class RowsOfComponents:
    """The rows of each component, and their responsibilities in it: one pass over the rows.

    Parameters
    ----------
    rows : Rows
    posterior : VariationalPosterior
    """

    def __init__(self, rows, posterior):
        self._rows, frames = rows, OwnFrames(posterior)
        parts = rows.map(functools.partial(_rows_held, frames), frames.workload)
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


def _rows_held(frames, block):
    """Pairs of a component and one of its rows: the component, the index of the row, and its weight."""
    r = expect(frames, block).responsibilities[: frames.posterior.n_components]
    component, row = np.nonzero(r > _LEAST_RESPONSIBILITY)
    return component, block.numbers[row], block.weighted(r)[component, row]


def _priors_of_rows(rows, posterior, components):
    """The priors of means and precisions, given all rows except those of one component: one for each."""
    prior, structure = posterior.prior, posterior.structure
    if structure.has_own_precisions:
        return [prior] * len(components)
    alone = [_alone(rows.of(k), posterior, k, prior) for k in components]
    counts = np.array([q.counts[0] for q in alone])
    added = [
        q.effective_degrees_of_freedom[0] * structure.gram(q.covariance_cholesky)[0] - prior.covariance
        for q in alone
    ]
    priors = []
    for others in ~np.eye(len(components), dtype=bool):
        count = counts[others].sum()
        priors.append(
            replace(
                prior,
                degrees_of_freedom=float(prior.degrees_of_freedom + structure.power * count),
                covariance=prior.covariance + sum(itertools.compress(added, others)),
                complement=prior.complement.given(count),
            )
        )
    return priors


def _split(rows, posterior, component, prior):
    """The better of two splits of one component, given the prior of its rows; or None."""
    own_tails = 0.0
    if posterior.tails is not None:
        own_tails = posterior.tails.negative_log_priors()[component]
    try:
        whole = _alone(rows, posterior, component, prior)
        starts = list(_starting_sides(rows, posterior, component, prior))
    except DegenerateComponentError:
        return None
    found = []
    for sides in starts:
        halves = _fitted_halves(rows, _prior_for(prior, 2, whole.tails), sides, whole)
        if halves is not None:
            found.append((_bound_without_weights(rows, halves), halves))
    if not found:
        return None
    bound, halves = max(found, key=lambda pair: pair[0])
    return Split(component, bound - _bound_without_weights(rows, whole) - own_tails, halves)


def _alone(rows, posterior, component, prior):
    """The posterior of one component that holds all rows, after a sweep from where it is in another one."""
    groups = [component] if posterior.structure.has_own_precisions else [0]
    tails, scale_sums = posterior.tails, None
    if tails is not None:
        tails, scale_sums = tails.selected([component]), posterior.scale_sums[[component]]
    start = VariationalPosterior(
        prior=_prior_for(prior, 1, tails),
        counts=np.array([rows.total_weight]),
        centred_means=posterior.centred_means[[component]],
        covariance_cholesky=posterior.covariance_cholesky[groups],
        scale_sums=scale_sums,
        tails=tails,
    )
    return start.m_step(e_step(rows, start).moments)


def _prior_for(prior, n_components, tails):
    """The same prior for another number of components, with known tails of one, without background."""
    structure = prior.structure.resized(n_components)
    is_sticks = isinstance(prior.weights.of_components, StickBreakingWeights)
    weights = DirichletWeights(1.0 if is_sticks else prior.weights.prior_concentration, n_components)
    tails = None if tails is None else tails.selected([0] * n_components)
    return replace(prior, structure=structure, weights=weights, background=None, tails=tails)


def _starting_sides(rows, posterior, component, prior):
    """Yield the rows on either side of their mean, along each of two axes: (n, 2).

    The first is the axis of largest variance in the frame of the prior. It is arbitrary where the prior's
    covariance is that of these rows, which it is by default if they are all rows. The second is the axis
    along which the rows, in the component's own frame, have the smallest fourth moments: those of two
    clusters are small along the axis that joins them.
    """
    # A prior mean far from the rows would enlarge the component's covariance in its direction.
    own_frame = _alone(rows, posterior, component, replace(prior, mean=rows.means))
    prior_frame = replace(own_frame, covariance_cholesky=prior.covariance_cholesky)
    for frame, power, place in ((prior_frame, 0, -1), (own_frame, 2, 0)):
        frames = OwnFrames(frame)
        moments = rows.total(functools.partial(_even_moments_of_block, frames, power))
        axis = np.linalg.eigh(moments)[1][:, place]  # LAPACK's search for one fails where all are equal.
        sides = rows.each(functools.partial(_sides_of_block, frames, axis), dtype=bool)
        yield np.column_stack([sides, ~sides]).astype(float)


def _even_moments_of_block(frames, power, block):
    """Sum of weight |y|^power y y' in the frame of the only component, (P, P)."""
    y = frames.whiten(block).values[0]
    return (np.square(y).sum(axis=0) ** (power / 2) * block.weighted(y)) @ y.T


def _sides_of_block(frames, axis, block):
    return axis @ frames.whiten(block).values[0] > 0


def _fitted_halves(rows, prior, sides, whole):
    """Two components fitted by a few sweeps from given sides (n, 2), or None where one of them empties."""
    frames = np.repeat(whole.covariance_cholesky, prior.structure.n_groups, axis=0)
    try:
        halves = posterior_from_responsibilities(rows, prior, sides, frames)
        for _ in range(_SWEEPS):
            halves = halves.m_step(e_step(rows, halves).moments)
            if halves.counts.min() < 0.5 * _LEAST_ROWS:
                return None
    except DegenerateComponentError:
        return None
    return halves


def _bound_without_weights(rows, posterior):
    """The lower bound without the largest contribution that the weights can make to it, a float."""
    weight_contribution = posterior.prior.weights.log_evidence(posterior.counts)
    return float(e_step(rows, posterior).lower_bound - weight_contribution)
