"""What merging classes, or emptying one, does to the lower bound: functions of the classes' sums alone.

Sums over the rows add up, so that the class that holds the rows of classes k and l has S_k + S_l; the other
one returns to its prior, S = 0. `mixture.moves` has the terms of the gains that are about assignments.
"""

from sklearn_lrvb.family_mixture.posterior import ClassPosterior
from sklearn_lrvb.mixture.model import Components


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
        sums[components, 1:] = 0.0
        return ClassPosterior(self._posterior.prior, sums)

    def after_split(self, split, second):
        posterior, parts = self._posterior, split.parts
        sums = posterior.sums.copy()
        # Two parts of a sample of the rows may count more rows than the class has.
        share = posterior.counts[split.component] / parts.counts.sum()
        sums[[split.component, second]] = share * parts.sums
        return ClassPosterior(posterior.prior, sums)
