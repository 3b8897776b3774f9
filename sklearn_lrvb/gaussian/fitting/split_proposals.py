"""Proposals to split a normal component (`mixture.search`).

A component is fitted to its rows as a mixture of two, under the same prior of means and precisions. Fitted
degrees of freedom stay as they are. For a precision that all components share, the prior of this fit is the
posterior given the rows of all other components: a Wishart distribution whose degrees of freedom are those of
the prior and the expected rows of the others, and whose inverse scale is C0 and what each of them adds to it.
"""

import functools
from dataclasses import replace

import numpy as np

from sklearn_lrvb.gaussian.e_step.coordinates import OwnCoordinates, posterior_from_responsibilities
from sklearn_lrvb.gaussian.posterior.variational_posterior import VariationalPosterior
from sklearn_lrvb.mixture.e_step import e_step
from sklearn_lrvb.mixture.model import SplitProposals
from sklearn_lrvb.mixture.weight_priors import DirichletWeights, StickBreakingWeights


class NormalSplitProposals(SplitProposals):
    """The small fits of one and of two normal components to the rows of one.

    Parameters
    ----------
    held : RowsOfComponents
    posterior : VariationalPosterior of all components, optimal for their responsibilities
    components : list of int, those that are split
    """

    def __init__(self, held, posterior, components):
        self._posterior, prior = posterior, posterior.prior
        self._priors = dict.fromkeys(components, prior)
        if not posterior.structure.has_own_precisions:
            alone = {k: _alone(held.of(k), posterior, k, prior) for k in components}
            for k in components:
                self._priors[k] = _given_others(prior, [alone[other] for other in components if other != k])

    def whole(self, rows, component):
        """The posterior of one component that holds all rows."""
        return _alone(rows, self._posterior, component, self._priors[component])

    def starts(self, rows, component, whole):
        """Yield starts of two components, from the rows on either side of an axis: callables."""
        prior = self._priors[component]
        prior_of_two = _prior_for(prior, 2, whole.tails)
        coordinates = np.repeat(whole.covariance_cholesky, prior_of_two.structure.n_groups, axis=0)
        for sides in _starting_sides(rows, self._posterior, component, prior):
            yield functools.partial(posterior_from_responsibilities, rows, prior_of_two, sides, coordinates)

    def cost(self, component):
        """What a component more costs, whose degrees of freedom are those of another one: a float."""
        tails = self._posterior.tails
        return 0.0 if tails is None else tails.negative_log_priors()[component]


def _given_others(prior, posteriors):
    """The prior of means and precisions, given the rows of other components: of each its posterior alone."""
    structure, count = prior.structure, sum(posterior.counts[0] for posterior in posteriors)
    scatters = (
        posterior.effective_degrees_of_freedom[0] * structure.gram(posterior.covariance_cholesky)[0]
        for posterior in posteriors
    )
    return replace(
        prior,
        degrees_of_freedom=float(prior.degrees_of_freedom + structure.power * count),
        covariance=prior.covariance + sum(scatter - prior.covariance for scatter in scatters),
        complement=prior.complement.given(count),
        learned=None,
    )


def _alone(rows, posterior, component, prior):
    """The posterior of one component that holds all rows: an iteration from its place in a mixture."""
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
    """The same prior for another number of components, with known tails of one, without noise."""
    structure = prior.structure.resized(n_components)
    is_sticks = isinstance(prior.weights.of_components, StickBreakingWeights)
    weights = DirichletWeights(1.0 if is_sticks else prior.weights.prior_concentration, n_components)
    tails = None if tails is None else tails.selected([0] * n_components)
    return replace(
        prior, structure=structure, weights=weights, noise_component=None, tails=tails, learned=None
    )


def _starting_sides(rows, posterior, component, prior):
    """Yield the rows on either side of their mean, along each of two axes: (n, 2).

    The first is the axis of largest variance in the whitened coordinates of the prior. It is arbitrary where
    the prior's covariance is that of these rows, which it is by default if they are all rows. The second is
    the axis along which the rows, in the component's own coordinates, have the smallest fourth moments: those
    of two clusters are small along the axis that joins them.
    """
    # A prior mean far from the rows would enlarge the component's covariance in its direction.
    own_coordinates = _alone(rows, posterior, component, replace(prior, mean=rows.means))
    prior_coordinates = replace(own_coordinates, covariance_cholesky=prior.covariance_cholesky)
    for whitening, power, place in ((prior_coordinates, 0, -1), (own_coordinates, 2, 0)):
        coordinates = OwnCoordinates(whitening)
        moments = rows.total(functools.partial(_even_moments_of_block, coordinates, power))
        axis = np.linalg.eigh(moments)[1][:, place]  # LAPACK's search for one fails where all are equal.
        sides = rows.each(functools.partial(_sides_of_block, coordinates, axis), dtype=bool)
        yield np.column_stack([sides, ~sides]).astype(float)


def _even_moments_of_block(coordinates, power, block):
    """Sum of weight |y|^power y y' in the whitened coordinates of the only component, (P, P)."""
    y = coordinates.represented(block).values[0]
    return (np.square(y).sum(axis=0) ** (power / 2) * block.weighted(y)) @ y.T


def _sides_of_block(coordinates, axis, block):
    return axis @ coordinates.represented(block).values[0] > 0
