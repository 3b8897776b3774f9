"""The prior of a mixture, once the data and the user's arguments are known."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np


@dataclass(frozen=True)
class MixturePrior:
    """The prior, and the two modelling choices that act like a part of it.

    Attributes
    ----------
    weights : weight prior (`weight_priors`)
    structure : covariance structure (`covariance_structures`)
    mean_precision : float, b0; 0 under the flat prior
    mean : (P,), m0, measured from the origin
    degrees_of_freedom : float, nu0; under the flat prior what makes the density constant
    covariance : C0 in the structure's shape, the inverse of the Wishart's scale; 0 under the flat prior
    independent : bool, q(mu) q(Lambda) (the paper) instead of q(mu, Lambda)
    reg_covar : float, variance of known noise on every coordinate of x
    resolution : (P,), the standard deviations that rounding of the rows gives to a constant column; a
        component with smaller ones has collapsed. Zero under a proper prior, which keeps variances above it
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

    @property
    def flat(self):
        """Improper, constant in mu, Lambda and log pi."""
        return self.mean_precision == 0

    @cached_property
    def log_det_covariance(self):
        """Sum of log|C0| over a group's blocks, of a proper prior."""
        return self.structure.prior_log_determinant(self.covariance)

    def effective_degrees_of_freedom(self, counts):
        """c, with E Lambda = c A^-1, given expected counts: (..., K) -> (..., S)."""
        structure = self.structure
        group_counts = structure.layout.per_group(counts)
        return structure.precision_factors.effective_degrees_of_freedom(group_counts, self.degrees_of_freedom)
