"""Proposals to split a class (`mixture.search`).

The rows of a class are parted along the first principal axes of the rows made comparable (`starts`). In a
class of one cluster columns are independent, so that no axis stands out. Where a class holds two clusters,
the first axis joins them.
"""

import functools

import numpy as np

from sklearn_lrvb.family_mixture.coordinates import posterior_from_responsibilities
from sklearn_lrvb.family_mixture.prior import ClassPrior
from sklearn_lrvb.family_mixture.starts import Comparable
from sklearn_lrvb.mixture.model import SplitProposals
from sklearn_lrvb.mixture.weight_priors import DirichletWeights

_N_AXES = 2  # Axes along which a class is parted, one after the other.
_MIDDLE = 1e-9  # Rows whose place on an axis is less than this share of the largest are all on one side.


class ClassSplitProposals(SplitProposals):
    """The small fits of one and of two classes to the rows of one.

    Parameters
    ----------
    held : RowsOfComponents
    posterior : ClassPosterior
    components : list of int
    """

    def __init__(self, held, posterior, components):
        prior = posterior.prior
        weights = (DirichletWeights(prior.weights.prior_concentration, n) for n in (1, 2))
        self._of_one, self._of_two = (
            ClassPrior(prior.model, own, prior.families, prior.columns) for own in weights
        )

    def whole(self, rows, component):
        """The posterior of one class that holds all rows."""
        return posterior_from_responsibilities(rows, self._of_one, np.ones((rows.n_samples, 1)))

    def starts(self, rows, component, whole):
        """Yield starts of two classes, from the rows on either side of some axes: callables."""
        values = rows.X.T
        weights = np.ones(rows.n_samples) if rows.sample_weight is None else rows.sample_weight
        comparable = Comparable(values, weights, self._of_two.columns)(values)
        axes = np.linalg.eigh((comparable.T * weights) @ comparable)[1][:, ::-1]
        for places in (comparable @ axes[:, :_N_AXES]).T:
            # An axis has no sign of its own. By the third moment the order of the rows does not matter.
            if weights @ places**3 < 0.0:
                places = -places
            side = places > _MIDDLE * np.abs(places).max()
            sides = np.column_stack([side, ~side]).astype(np.float64)
            yield functools.partial(posterior_from_responsibilities, rows, self._of_two, sides)
