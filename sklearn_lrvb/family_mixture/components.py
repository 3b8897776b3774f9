"""What merging, emptying or splitting classes does to the lower bound, and proposals to split one.

Sums over the rows add up, so that the class that holds the rows of classes k and l has S_k + S_l. The other
one is left without rows, S = 0, so that its q is the prior. `mixture.moves` has the terms of the gains that
are about assignments.

The rows of a class are parted (`mixture.search`) along the first principal axes of the rows made comparable
(`starts`). In a class of one cluster columns are independent, so that no axis stands out. Where a class holds
two clusters, the first axis joins them.
"""

import functools

import numpy as np

from sklearn_lrvb.family_mixture.coordinates import posterior_from_responsibilities
from sklearn_lrvb.family_mixture.posterior import ClassPosterior
from sklearn_lrvb.family_mixture.starts import Comparable
from sklearn_lrvb.mixture.model import Components, SplitProposals
from sklearn_lrvb.mixture.weight_priors import DirichletWeights

_N_AXES = 2  # Axes along which a class is parted, one after the other.
# Rows nearer to the middle of an axis than this share of the farthest row go to one side, so that rounding
# does not part them.
_MIDDLE = 1e-9


class ClassComponents(Components):
    """The classes of a posterior, by their sums.

    Parameters
    ----------
    posterior : ClassPosterior
    """

    @property
    def own_divergences(self):
        return self._posterior.divergences.classes

    def merge_gains(self, merges):
        prior, sums = self._posterior.prior, self._posterior.sums
        log_evidence = prior.log_evidence(sums)
        merges = merges if merges.ndim == 3 else merges[:, None]
        together = prior.log_evidence(sums[merges].sum(axis=2))
        gains = (together - log_evidence[merges].sum(axis=2)).sum(axis=1)
        return gains + self.gains_of_weights(self.counts_after(merges), self._posterior.counts)

    def merged_posterior(self, pairs):
        """q where the first class of every disjoint pair has the rows of both; the second is at its prior."""
        sums, (first, second) = self._posterior.sums.copy(), pairs.T
        sums[first] += sums[second]
        sums[second] = 0.0
        return ClassPosterior(self._posterior.prior, sums)

    def emptied(self, components):
        sums = self._posterior.sums.copy()
        sums[components, 1:] = 0.0  # The counts, in column 0, stay (`Components.emptied`).
        return ClassPosterior(self._posterior.prior, sums)

    def after_split(self, split, second):
        posterior, parts = self._posterior, split.parts
        sums = posterior.sums.copy()
        # Two parts of a sample of the rows may count more rows than the class has.
        share = posterior.counts[split.component] / parts.counts.sum()
        sums[[split.component, second]] = share * parts.sums
        return ClassPosterior(posterior.prior, sums)


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
        self._prior_of_one, self._prior_of_two = map(prior.held, weights)

    def whole(self, rows, component):
        """The posterior of one class that holds all rows."""
        return posterior_from_responsibilities(rows, self._prior_of_one, np.ones((rows.n_samples, 1)))

    def starts(self, rows, component, whole):
        """Yield starts of two classes, from the rows on either side of some axes: callables."""
        values = rows.X.T
        weights = np.ones(rows.n_samples) if rows.sample_weight is None else rows.sample_weight
        comparable = Comparable(values, weights, self._prior_of_two.columns)(values)
        axes = np.linalg.eigh((comparable.T * weights) @ comparable)[1][:, ::-1]
        for places in (comparable @ axes[:, :_N_AXES]).T:
            # An axis has no sign of its own. By the third moment the order of the rows does not matter.
            if weights @ places**3 < 0.0:
                places = -places
            side = places > _MIDDLE * np.abs(places).max()
            sides = np.column_stack([side, ~side]).astype(np.float64)
            yield functools.partial(posterior_from_responsibilities, rows, self._prior_of_two, sides)
