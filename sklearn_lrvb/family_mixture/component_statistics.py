"""What merging classes, or emptying one, does to the lower bound: functions of the classes' sums alone.

Sums over the rows add up, so that the class that holds the rows of classes k and l has S_k + S_l; the other
one returns to its prior, S = 0. `mixtures.moves` has the terms of the gains that are about assignments.
"""

import numpy as np

from sklearn_lrvb.family_mixture.posterior import ClassPosterior


class ComponentStatistics:
    """Gains of the lower bound by merges, from the sums of a posterior.

    Parameters
    ----------
    posterior : ClassPosterior
    """

    def __init__(self, posterior):
        self._posterior, self._prior = posterior, posterior.prior
        self._log_evidence = self._prior.log_evidence(posterior.sums)

    def merge_gains(self, merges):
        """Gain of each merge, without the entropy of the assignments that is lost.

        Parameters
        ----------
        merges : int array (n, 2), or (n, m, 2) for as many disjoint merges at once

        Returns
        -------
        gains : (n,)
        """
        merges = merges if merges.ndim == 3 else merges[:, None]
        together = self._prior.log_evidence(self._posterior.sums[merges].sum(axis=2))
        gains = (together - self._log_evidence[merges].sum(axis=2)).sum(axis=1)
        return gains + self.gains_of_weights(self.counts_after(merges), self._posterior.counts)

    def counts_after(self, merges):
        """Counts of the classes after disjoint merges, (n, m, 2) -> (n, K)."""
        after = np.repeat(self._posterior.counts[None], len(merges), axis=0)
        rows, (first, second) = np.arange(len(merges))[:, None], np.moveaxis(merges, -1, 0)
        after[rows, first] += after[rows, second]
        after[rows, second] = 0.0
        return after

    def gains_of_weights(self, counts, present):
        """Changes of the evidence of the weights from present counts to others: (..., K) -> (...)."""
        weights = self._prior.weights
        return weights.log_evidence(counts) - weights.log_evidence(present)

    def merged_posterior(self, pairs):
        """q where the first class of every disjoint pair has the rows of both; the second is at its prior."""
        sums, (first, second) = self._posterior.sums.copy(), pairs.T
        sums[first] += sums[second]
        sums[second] = 0.0
        return ClassPosterior(self._prior, sums)


def emptied(posterior, classes):
    """q with the parameters of some classes at their prior, and the counts as they were."""
    sums = posterior.sums.copy()
    sums[classes, 1:] = 0.0
    return ClassPosterior(posterior.prior, sums)
