"""The prior of a mixture, with the values that `prior_arguments` derives from the data and the arguments."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sklearn_lrvb.gaussian_mixture.posterior.complement import NO_COMPLEMENT, Complement


@dataclass(frozen=True)
class MixturePrior:
    """The prior, the factorization of q and the known noise.

    Attributes
    ----------
    weights : weight prior (`weight_priors`)
    structure : covariance structure (`covariance_structures`)
    mean_precision : float, b0; 0 under the flat prior
    mean : (P,), m0, measured from the origin
    degrees_of_freedom : float, nu0; under the flat prior the value at which the density is constant
    covariance : C0 in the structure's shape, the inverse of the Wishart's scale; 0 under the flat prior
    independent : bool, q(mu) q(Lambda) (the paper) instead of q(mu, Lambda)
    reg_covar : float, variance of known noise on every coordinate of x
    resolution : (P,)
        Standard deviations that rounding of the rows gives to a constant column. Under the flat prior a
        component with smaller ones has collapsed. A proper prior bounds variances from below, and has zeros
        here. Only where rows are projected (`fitting.row_span`) are these needed to tell which coordinates
        hold rounding alone.
    complement : Complement, the directions that projected rows leave out
    ridge : float, what C0 has of `reg_covar`, because the covariance of the rows is singular: that or 0
    """

    weights: object
    structure: object
    mean_precision: float
    mean: np.ndarray
    degrees_of_freedom: float
    covariance: np.ndarray
    independent: bool
    reg_covar: float
    resolution: np.ndarray
    complement: Complement = NO_COMPLEMENT
    ridge: float = 0.0

    @property
    def flat(self):
        """Whether the prior is improper: constant in mu, Lambda and log pi."""
        return self.mean_precision == 0

    @property
    def is_projected(self):
        """Whether rows and means are projections onto a subspace."""
        return self.complement.n_directions > 0

    @cached_property
    def covariance_cholesky(self):
        """Lower factor of C0, of a proper prior, in the shape of one group's map: (1, ...)."""
        return self.structure.cholesky(self.covariance[None])

    @property
    def deviations(self):
        """Standard deviations of the features at the mean precision, (P,); zeros under the flat prior."""
        if self.flat:
            return np.zeros(len(self.mean))
        variances = self.structure.diagonal(self.covariance) / self.degrees_of_freedom
        return np.broadcast_to(np.sqrt(variances), self.mean.shape)

    def effective_degrees_of_freedom(self, counts):
        """c, with E Lambda = c A^-1, given expected counts: (..., K) -> (..., S)."""
        structure = self.structure
        group_counts = structure.layout.per_group(counts)
        return structure.precision_factors.effective_degrees_of_freedom(group_counts, self.degrees_of_freedom)
