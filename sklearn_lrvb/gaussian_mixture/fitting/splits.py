"""Splits of components: two halves fitted to the rows of one, while all others stay as they are.

*Mathematics.* Let component k give the shares u and 1 - u of its responsibilities to two halves. All other
responsibilities stay. As a function of u, the lower bound is then that of a mixture of two components, fitted
to the rows counted w r_k times under the same prior of means and precisions: a small fit of its own. Its
weights have a Dirichlet prior in place of the prior of all weights; `search` accounts for the order of the
sticks afterwards. For a precision that all components share, the prior of this fit is the posterior given the
rows of all other components: a Wishart distribution whose degrees of freedom are those of the prior and the
expected rows of the others, and whose inverse scale is C0 and what each of them adds to it.
"""

import functools
import itertools
from dataclasses import dataclass, replace

import numpy as np

from sklearn_lrvb.gaussian_mixture.e_step.e_step import e_step, posterior_from_responsibilities
from sklearn_lrvb.gaussian_mixture.e_step.frames import OwnFrames
from sklearn_lrvb.gaussian_mixture.e_step.responsibilities import expect
from sklearn_lrvb.gaussian_mixture.posterior.degenerate_components import DegenerateComponentError
from sklearn_lrvb.gaussian_mixture.posterior.variational_posterior import VariationalPosterior
from sklearn_lrvb.gaussian_mixture.posterior.weight_priors import DirichletWeights, StickBreakingWeights

_LEAST_RESPONSIBILITY = 1e-3  # Rows of smaller responsibility take no part in a component's split.
_LEAST_ROWS = 4.0  # Fewest expected rows of a component to split; either half must have half as many.
_SWEEPS = 10  # Sweeps that fit the halves before their lower bound is compared with that of the whole.


@dataclass(frozen=True)
class Split:
    """Two halves of a component.

    Attributes
    ----------
    component : int
    gain : float, of the lower bound, without what the weights add to it
    counts : (2,), expected counts of the halves
    halves : VariationalPosterior of two components
    """

    component: int
    gain: float
    counts: np.ndarray
    halves: VariationalPosterior


class RowsOfComponents:
    """The rows of each component, and their responsibilities in it: one pass over the rows.

    Parameters
    ----------
    rows : CentredRows
    posterior : VariationalPosterior
    """

    def __init__(self, rows, posterior):
        self._rows, frames = rows, OwnFrames(posterior)
        parts = rows.gathered(functools.partial(_rows_held, frames), frames.numbers_per_row)
        self._component, self._row, self._weight = map(np.concatenate, zip(*parts, strict=True))

    def are_enough(self, component):
        """Whether there are enough rows of one component to split it."""
        weights = self._weight[self._component == component]
        return len(weights) >= 2 and weights.sum() >= _LEAST_ROWS

    def of(self, component):
        """The rows of one component, weighted by their responsibilities in it: CentredRows.

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
    r = expect(frames, block).responsibilities
    component, row = np.nonzero(r > _LEAST_RESPONSIBILITY)
    return component, block.numbers[row], block.weighted(r)[component, row]


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


def _split(rows, posterior, component, prior):
    """The better of two splits of one component, given the prior of its rows; or None."""
    try:
        whole = _alone(rows, posterior, component, prior)
        starts = list(_starting_sides(rows, posterior, component, prior))
    except DegenerateComponentError:
        return None
    fitted = (_fitted_halves(rows, _prior_for(prior, 2), sides, whole) for sides in starts)
    found = [(_bound_without_weights(rows, halves), halves) for halves in fitted if halves is not None]
    if not found:
        return None
    bound, halves = max(found, key=lambda pair: pair[0])
    return Split(component, bound - _bound_without_weights(rows, whole), halves.counts, halves)


def _fitted_halves(rows, prior, sides, whole):
    """Two components fitted by a few sweeps from given sides (n, 2), or None where one of them empties."""
    frames = np.repeat(whole.covariance_cholesky, prior.structure.layout.n_precision_groups, axis=0)
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
    return [
        _prior_given(prior, counts[others].sum(), sum(itertools.compress(added, others)))
        for others in ~np.eye(len(components), dtype=bool)
    ]


def _prior_given(prior, count, scatter):
    """The prior of a shared precision, given so many rows and what they add to C0."""
    return replace(
        prior,
        degrees_of_freedom=float(prior.degrees_of_freedom + prior.structure.power * count),
        covariance=prior.covariance + scatter,
        complement=prior.complement.given(count),
    )


def _alone(rows, posterior, component, prior):
    """The posterior of one component that holds all rows, after a sweep from where it is in another one."""
    groups = [component] if posterior.structure.has_own_precisions else [0]
    start = replace(
        posterior,
        prior=_prior_for(prior, 1),
        counts=np.array([rows.total_weight]),
        centred_means=posterior.centred_means[[component]],
        covariance_cholesky=posterior.covariance_cholesky[groups],
    )
    return start.m_step(e_step(rows, start).moments)


def _prior_for(prior, n_components):
    """The same prior for another number of components."""
    structure = prior.structure.resized(n_components)
    is_sticks = isinstance(prior.weights, StickBreakingWeights)
    concentration = 1.0 if is_sticks else prior.weights.prior_concentration
    return replace(prior, structure=structure, weights=DirichletWeights(concentration, n_components))


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
    variances, _ = _even_moments(rows, prior_frame)
    yield _sides(rows, prior_frame, _eigenvector(variances, len(variances) - 1))
    _, fourth_moments = _even_moments(rows, own_frame)
    yield _sides(rows, own_frame, _eigenvector(fourth_moments, 0))


def _even_moments(rows, posterior):
    """Sums of weight y y' and of weight |y|^2 y y' in the frame of the only component, (P, P) each."""
    return rows.total(functools.partial(_even_moments_of_block, OwnFrames(posterior)))


def _even_moments_of_block(frames, block):
    y = frames.whiten(block).values[0]
    weighted = block.weighted(y)
    return weighted @ y.T, (np.square(y).sum(axis=0) * weighted) @ y.T


def _eigenvector(matrix, number):
    """The eigenvector of the eigenvalue with this index in ascending order: (P,)."""
    # LAPACK's search for one eigenvector fails where all eigenvalues are equal.
    return np.linalg.eigh(matrix)[1][:, number]


def _sides(rows, posterior, axis):
    """Responsibilities of one by the side of their mean on which rows lie along an axis, (n, 2).

    The axis is given in the frame of the only component.
    """
    sides = rows.concatenated(functools.partial(_sides_of_block, OwnFrames(posterior), axis))
    return np.column_stack([sides, ~sides]).astype(float)


def _sides_of_block(frames, axis, block):
    return axis @ frames.whiten(block).values[0] > 0
