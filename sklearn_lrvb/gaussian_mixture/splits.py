"""Splits of components: two halves fitted to the rows of one, all others staying as they are.

*Mathematics.* Let component k give the shares u and 1 - u of its responsibilities to two halves. All other
responsibilities stay, so the lower bound depends on u as that of a mixture of two components, fitted to the
rows counted w r_k times under the same prior of means and precisions: a small fit of its own. Its weights
have a Dirichlet prior that stands for what the halves' counts change; the order of sticks is accounted for
afterwards. A precision that all components share has there the prior that the rows of all other components
make of it: Wishart with c - N_k degrees of freedom, its inverse scale A less the scatter of the rows of
component k.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import eigh

from sklearn_lrvb.gaussian_mixture.frames import OwnFrames
from sklearn_lrvb.gaussian_mixture.sweep import normalized, posterior_from_responsibilities, sweep
from sklearn_lrvb.gaussian_mixture.variational_posterior import (
    DegenerateComponentError,
    VariationalPosterior,
)
from sklearn_lrvb.gaussian_mixture.weight_priors import DirichletWeights, StickBreakingWeights

_LEAST_SHARE = 1e-3  # responsibility from which a row takes part
_LEAST_ROWS = 4.0  # of a component that is split, and half as many of either half
_SWEEPS = 10


@dataclass(frozen=True)
class Split:
    """Two halves of a component.

    Attributes
    ----------
    component : int
    gain : float, of the lower bound, the part of the weights not included
    counts : (2,), expected counts of the halves
    halves : VariationalPosterior of two components
    """

    component: int
    gain: float
    counts: np.ndarray
    halves: VariationalPosterior


class RowsOfComponents:
    """Which rows each component holds, and with which shares: one pass over the rows.

    Parameters
    ----------
    rows : CentredRows
    posterior : VariationalPosterior
    """

    def __init__(self, rows, posterior):
        self._rows, frames = rows, OwnFrames(posterior)

        def one_block(selected, block):
            r, _ = normalized(frames.log_densities(frames.seen(block)))
            component, row = np.nonzero(r > _LEAST_SHARE)
            return component, row + selected.start, rows.weighted(r, selected)[component, row]

        parts = zip(*rows.map(one_block, frames.block_rows), strict=True)
        self._component, self._row, self._weight = (np.concatenate(part) for part in parts)

    def of(self, component):
        """The rows of one component, counted by their shares in it: CentredRows.

        Of more than half of all rows no copy is made: the others are counted zero times.
        """
        held = self._component == component
        row, weights, X = self._row[held], self._weight[held], self._rows.X
        if 2 * len(row) < len(X):
            return replace(self._rows, X=X[row], weights=weights)
        of_all = np.zeros(len(X))
        of_all[row] = weights
        return replace(self._rows, weights=of_all)


def split(rows, posterior, component):
    """The best split of one component found from halves along its principal axis, or None.

    Parameters
    ----------
    rows : CentredRows, those of the component (`RowsOfComponents`)
    posterior : VariationalPosterior of all components, optimal for their responsibilities
    """
    if rows.n_samples < 2 or rows.total_weight < _LEAST_ROWS:
        return None
    try:
        return _split(rows, posterior, component)
    except DegenerateComponentError:
        return None


def _split(rows, posterior, component):
    prior = _prior_of_rows(rows, posterior, component)
    whole = _of_one_component(rows, prior)
    halves = posterior_from_responsibilities(rows, _prior_of(prior, 2), _along_principal_axis(rows, whole))
    for _ in range(_SWEEPS):
        halves = halves.moved(sweep(rows, halves).moments)
        if halves.counts.min() < 0.5 * _LEAST_ROWS:
            return None
    of_halves = sweep(rows, halves).lower_bound - halves.prior.weights.log_evidence(halves.counts)
    of_whole = sweep(rows, whole).lower_bound - whole.prior.weights.log_evidence(whole.counts)
    return Split(component, float(of_halves - of_whole), halves.counts, halves)


def _prior_of_rows(rows, posterior, component):
    """The prior of means and precisions that stands for all rows but those of one component."""
    prior, structure = posterior.prior, posterior.structure
    if structure.has_own_precisions:
        return prior
    # What these rows alone add to C0 is what they add to the scatter of all.
    alone = _of_one_component(rows, prior)
    of_all, of_these = (
        q.information[0] * structure.congruence(q.roots, structure.one)[0] for q in (posterior, alone)
    )
    return replace(
        prior,
        degrees_of_freedom=float(posterior.information[0] - structure.power * rows.total_weight),
        covariance=of_all - of_these + prior.covariance,
    )


def _of_one_component(rows, prior):
    """The posterior of one component that holds all rows."""
    return posterior_from_responsibilities(rows, _prior_of(prior, 1), np.ones((rows.n_samples, 1)))


def _prior_of(prior, n_components):
    """The same prior for another number of components."""
    structure = type(prior.structure)(n_components, prior.structure.n_features)
    is_sticks = isinstance(prior.weights, StickBreakingWeights)
    concentration = 1.0 if is_sticks else prior.weights.prior_concentration
    return replace(prior, structure=structure, weights=DirichletWeights(concentration, n_components))


def _along_principal_axis(rows, whole):
    """Rows on either side of the mean, along their axis of largest variance in the prior's frame: (n, 2)."""
    prior_frame = replace(whole, roots=whole.structure.roots(whole.prior.covariance[None]))
    frames = OwnFrames(prior_frame)

    def seen(block):
        return frames.seen(block)[0]

    def second_moments(selected, block):
        y = seen(block)
        return rows.weighted(y, selected) @ y.T

    total = sum(rows.map(second_moments, frames.block_rows))
    axis = eigh(total, subset_by_index=[len(total) - 1] * 2)[1][:, 0]
    sides = np.concatenate(list(rows.map(lambda _, block: axis @ seen(block) > 0, frames.block_rows)))
    return np.column_stack([sides, ~sides]).astype(float)
