"""Categorical distribution of z in 0..K-1, sufficient statistics the indicator of every category.

The natural parameters are log probabilities up to a constant: V is singular along it.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp, softmax
from sklearn.utils import check_random_state

from sklearn_lrvb.exponential_families.family import ExponentialFamily, require_count


@dataclass(frozen=True)
class Categorical(ExponentialFamily):
    """Categorical family; statistic ``indicator`` (K,), one at z and zero elsewhere.

    Parameters
    ----------
    n_categories : int, K
    """

    n_categories: int

    def __post_init__(self):
        require_count("n_categories", self.n_categories)

    @property
    def statistics(self):
        """``indicator`` of every category."""
        return {"indicator": (self.n_categories,)}

    def natural_parameters(self, probabilities):
        """log p: (..., K) -> (..., K); p = 0 becomes the smallest normal number, of log -708.

        Raises
        ------
        ValueError
            Where a probability is negative or nan.
        """
        probabilities = np.asarray(probabilities, dtype=float)
        if not np.all(probabilities >= 0):
            raise ValueError(f"Probabilities are not negative; got {np.min(probabilities):.4g}.")
        return np.log(np.maximum(probabilities, np.finfo(float).tiny))

    def log_partition(self, natural):
        """Log of the sum of exp(eta)."""
        return logsumexp(np.asarray(natural, dtype=float), axis=-1)

    def mean_parameters(self, natural):
        """The probabilities p."""
        return softmax(np.asarray(natural, dtype=float), axis=-1)

    def covariance(self, natural):
        """diag(p) - p p'."""
        probabilities = self.mean_parameters(natural)
        covariance = -probabilities[..., :, None] * probabilities[..., None, :]
        diagonal = np.einsum("...kk->...k", covariance)
        diagonal[...] = 0.0
        # p (1 - p) as a sum keeps its digits where p is all but one
        diagonal[...] = -covariance.sum(axis=-1)
        return covariance

    def check_domain(self, natural):
        """Any finite natural parameters will do."""

    def default_natural_parameters(self):
        """Equal probabilities."""
        return np.zeros(self.n_categories)

    def sample(self, natural, n_draws, random_state=None):
        """Draws of z, integers: (n_draws, ...)."""
        noise = check_random_state(random_state).gumbel(size=(n_draws, *np.shape(natural)))
        return np.argmax(np.asarray(natural, dtype=float) + noise, axis=-1)

    def statistics_of(self, value):
        """Indicators: (...) -> (..., K)."""
        return (np.asarray(value)[..., None] == np.arange(self.n_categories)).astype(float)
