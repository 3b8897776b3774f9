"""The directions in which no row and no mean differs from the origin: one number describes all of them.

*Mathematics.* Where there are more dimensions than rows, a fit works with the projections of rows, means and
precisions onto a subspace that holds all rows (`fitting.row_span`). On the d directions orthogonal to it, the
prior's C0 is e I and the rows have no scatter, so that the inverse scale of the precision of a group with N
expected rows is

    a I,    a = e + reg_covar N.

E(Lambda)^-1 is block diagonal, with a/c I in the complement, which adds d log(a/c) to log|E(Lambda)^-1| and d
terms to every other sum over directions. The complement has no parameters of its own: given the prior, it is
a function of the expected counts. Through them it adds to the variance of the log densities' intercepts (C in
`information.observed_information`). In each of the d directions the quadratic feature is the same number,
-(1 - reg_covar c/a)/sqrt(2), for all rows, and its coefficient has the variance 1/c. Together they act like
an independent shift of the intercept, with the variance

    d (1 - reg_covar c/a)^2 / (2 c).
"""

from dataclasses import dataclass, replace

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

    def precision_trace(self, variance):
        """trace E Lambda in these directions, given a/c."""
        return self.n_directions / variance

    def intercept_variance(self, variance, effective_degrees_of_freedom):
        """Contribution to the variance of the intercepts, given a/c and c."""
        slope = 1.0 - self.reg_covar / variance
        return 0.5 * self.n_directions * slope**2 / effective_degrees_of_freedom


NO_COMPLEMENT = Complement()  # Rows that are not projected have this one.
