"""The prior of a mixture, with the values that `arguments` derives from the data and the arguments.

*Mathematics of the complement.* Where there are more dimensions than rows, a fit works with the projections
of rows, means and precisions onto a subspace that holds all rows (`fitting.row_span`). On the d directions
orthogonal to it, the prior's C0 is e I and the rows have no scatter, so that the inverse scale of the
precision of a group with N expected rows is

    a I,    a = e + reg_covar N.

E(Lambda)^-1 is block diagonal, with a/c I in the complement, which adds d log(a/c) to log|E(Lambda)^-1| and d
terms to every other sum over directions. The complement has no parameters of its own: given the prior, it is
a function of the expected counts. Through them it adds to the variance of the log densities' intercepts (C in
`information.observed_information`). In each of the d directions the quadratic feature is the same number,
-(1 - reg_covar c/a)/sqrt(2), for all rows, and its coefficient has the variance 1/c. Together they act like
an independent shift of the intercept, with the variance

    d (1 - reg_covar c/a)^2 / (2 c).
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np


@dataclass(frozen=True)
class Complement:
    """The orthogonal complement of a subspace that holds all rows and means.

    Arrays hold a number for every precision group, (..., S).

    Attributes
    ----------
    n_directions : int, d; 0 where the rows are not projected
    prior_variance : float, e, the eigenvalue of C0 in all these directions
    reg_covar : float, variance of known noise on every coordinate of x
    """

    n_directions: int = 0
    prior_variance: float = 1.0
    reg_covar: float = 0.0

    def inverse_scale(self, counts):
        """a, given the expected counts of the groups."""
        return self.prior_variance + self.reg_covar * counts

    def given(self, count):
        """The complement of the prior that results from an update by rows of this expected count."""
        return replace(self, prior_variance=self.inverse_scale(count))

    def scale_divergence(self, variance, prior_degrees_of_freedom):
        """trace(R) - log|R| - d in these directions, with R = E Lambda C0/nu0, given a/c and nu0."""
        ratio = self.prior_variance / (prior_degrees_of_freedom * variance)
        return self.n_directions * (ratio - 1.0 - np.log(ratio))

    def log_determinant(self, variance):
        """log|E(Lambda)^-1| in these directions, given a/c."""
        return self.n_directions * np.log(variance)

    def noise_trace(self, variance):
        """reg_covar trace E Lambda in these directions, given a/c."""
        return self.reg_covar * self.n_directions / variance

    def intercept_variance(self, variance, effective_degrees_of_freedom):
        """Contribution to the variance of the intercepts, given a/c and c."""
        slope = 1.0 - self.reg_covar / variance
        return 0.5 * self.n_directions * slope**2 / effective_degrees_of_freedom


NO_COMPLEMENT = Complement()  # Rows that are not projected have this one.


@dataclass
class MixturePrior:
    """The prior, the factorization of q and the known noise; nothing of it changes.

    Parameters
    ----------
    model : MixtureModel
    weights : weight prior (`weight_priors`)
    structure : covariance structure (`covariance_structures`)
    mean_precision : float, b0; 0 under the flat prior
    mean : (P,), m0, measured from the origin
    degrees_of_freedom : float, nu0; under the flat prior the value at which the density is constant
    covariance : C0 in the structure's shape, the inverse of the Wishart's scale; 0 under the flat prior
    independent : bool, q(mu) q(Lambda) (the paper) instead of q(mu, Lambda)
    reg_covar : float, variance of known noise on every coordinate of x
    rounding : (P,) or None, variances of further noise, where values of columns are rounded
    resolution : (P,)
        Standard deviations that rounding of the rows gives to a constant column. Under the flat prior a
        component with smaller ones has collapsed. A proper prior bounds variances from below, and has zeros
        here. Only where rows are projected (`fitting.row_span`) are these needed to tell which coordinates
        hold rounding alone.
    complement : Complement, the directions that projected rows leave out
    ridge : float, what C0 has of `reg_covar`, because the covariance of the rows is singular: that or 0
    noise_component : NoiseComponent or None
    tails : StudentTails or None
        Of rows with scales: the degrees of freedom, or those that a fit starts from.
    learned : LearnedPrior or None
        Where b0 and C0 are learned. They are then those that are optimal for a q, or those a fit starts from.

    Attributes
    ----------
    hyperparameters : tuple of str, their names
    flat : bool, whether the prior is improper: constant in mu, Lambda and log pi
    is_projected : bool, whether rows and means are projections onto a subspace
    mean_precisions : (K,), b0 of every component
    noise_deviations : float, (P,) or (1,), standard deviations of the known noise
    variances_of_rounding : float, (P,) or (1,), those of its variances that are not `reg_covar`
    freedom_kept : int, nu - c: what independent factors of the means leave to the Wishart factors, or 0
    """

    hyperparameters: ClassVar[tuple[str, ...]] = (
        "weight_concentration_prior",
        "mean_precision_prior",
        "degrees_of_freedom_prior",
        "covariance_prior",
    )

    model: object
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
    noise_component: object = None
    tails: object = None
    learned: object = None
    rounding: np.ndarray | None = None

    def __post_init__(self):
        self.flat = self.mean_precision == 0
        self.noise_deviations, self.variances_of_rounding = math.sqrt(self.reg_covar), 0.0
        if self.rounding is not None:  # One precision for all features sees the mean of their variances.
            by_feature = self.structure.prior_shape != ()
            self.variances_of_rounding = self.rounding if by_feature else self.rounding.mean(keepdims=True)
            self.noise_deviations = np.sqrt(self.reg_covar + self.variances_of_rounding)
        self.is_projected = self.complement.n_directions > 0
        self.mean_precisions = np.full(self.structure.n_components, self.mean_precision)
        self.freedom_kept = self.structure.wisharts.freedom_of_means if self.independent else 0

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
