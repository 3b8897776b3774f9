"""The posterior of a group's precision, as a function of expected counts and one log determinant.

Every group's precision Lambda consists of ``n_blocks`` independent Wishart matrices of size ``block_size``,
and |Lambda| is the product of their determinants to the ``power``: one matrix of size P ("full", "tied"); P
numbers ("diag"; a Wishart matrix of size 1 is a gamma variable with shape nu/2); one number whose P-th power
is |Lambda| ("spherical"). The formulas of one Wishart distribution are in `exponential_families.wishart`.
"""

import math
from dataclasses import dataclass

import numpy as np

from sklearn_lrvb.exponential_families import wishart

_LOG_2 = math.log(2.0)


@dataclass(frozen=True)
class PrecisionFactors:
    """Wishart factors of the precisions of all groups.

    Arrays hold a number for every group, (S,), or for every row and group, (n, S).

    Parameters
    ----------
    block_size, n_blocks, power : int, the composition of |Lambda| from Wishart determinants
    n_means : int, number of components of a group
    """

    block_size: int
    n_blocks: int
    power: int
    n_means: int

    @property
    def _size(self):
        return self.block_size * self.n_blocks

    @property
    def _freedom_of_means(self):
        """Degrees of freedom that the means of a group take from a joint factor."""
        return self.power * self.n_means

    @property
    def flat_degrees_of_freedom(self):
        """nu0 of the improper prior that is constant in means and precisions."""
        return float(self.block_size + 1 - self._freedom_of_means)

    @property
    def constant_degrees_of_freedom(self):
        """Degrees of freedom at which the Wishart densities are constant in the precisions alone."""
        return float(self.block_size + 1)

    def effective_degrees_of_freedom(self, group_counts, prior_degrees_of_freedom):
        """c, with E Lambda = c A^-1: (..., S) -> (..., S)."""
        return prior_degrees_of_freedom + self.power * group_counts

    def degrees_of_freedom(self, effective_degrees_of_freedom, independent):
        """Wishart degrees of freedom nu, given c."""
        return effective_degrees_of_freedom + (self._freedom_of_means if independent else 0)

    def is_proper(self, effective_degrees_of_freedom, independent):
        """Whether the Wishart factors exist, given c: array of bool."""
        degrees_of_freedom = self.degrees_of_freedom(effective_degrees_of_freedom, independent)
        return (effective_degrees_of_freedom > 0) & (degrees_of_freedom > self.block_size - 1)

    def log_det_inverse_scale(self, log_determinants, degrees_of_freedom):
        """Sum of log|A| over the blocks, from log|E(Lambda)^-1|."""
        return log_determinants / self.power + self._size * np.log(degrees_of_freedom)

    def expected_log_determinant(self, degrees_of_freedom, log_det_inverse_scale):
        """E log|Lambda|."""
        of_block = wishart.expected_log_determinant(
            degrees_of_freedom, log_det_inverse_scale / self.n_blocks, self.block_size
        )
        return self.power * self.n_blocks * of_block

    def log_determinant_excess_variance(self, degrees_of_freedom):
        """The part of Var log|Lambda| that Lambda does not explain linearly."""
        of_block = wishart.log_determinant_excess_variance(degrees_of_freedom, self.block_size)
        return self.power**2 * self.n_blocks * of_block

    def log_partition(self, degrees_of_freedom, log_det_inverse_scale):
        """Log of the normalizing constant of the Wishart factors, summed over the blocks."""
        return self.n_blocks * wishart.log_partition(
            degrees_of_freedom, log_det_inverse_scale / self.n_blocks, self.block_size
        )

    def expectations(
        self, degrees_of_freedom, log_determinants, prior_degrees_of_freedom, prior_log_partition
    ):
        """E log|Lambda|, and the KL divergence of the Wishart factors from their prior, (S,) each.

        The divergence is without the term E trace(C0 Lambda)/2. The terms that are proportional to nu and to
        log|A| cancel in it, and are left out from the start.

        Parameters
        ----------
        degrees_of_freedom : (S,), nu
        log_determinants : (S,), log|E(Lambda)^-1|
        prior_degrees_of_freedom : float, nu0
        prior_log_partition : float, `log_partition` of the prior
        """
        log_gamma, digamma = wishart.log_gamma_and_digamma(degrees_of_freedom, self.block_size)
        log_det_inverse_scale = self.log_det_inverse_scale(log_determinants, degrees_of_freedom)
        expected = self.n_blocks * digamma + self._size * _LOG_2 - log_det_inverse_scale
        divergence = (
            0.5 * degrees_of_freedom * (self.n_blocks * digamma - self._size)
            - 0.5 * prior_degrees_of_freedom * expected
            - self.n_blocks * log_gamma
            + prior_log_partition
        )
        return self.power * expected, divergence

    def log_evidence(self, effective_degrees_of_freedom, log_determinants, independent):
        """Contribution of the precisions to the lower bound, maximized over q.

        It is given up to constants that depend on the sum of c alone. For independent factors it includes the
        entropies of the means' normal factors.

        Parameters
        ----------
        effective_degrees_of_freedom : array, c
        log_determinants : array, log|A| summed over the blocks
        independent : bool, q(mu) q(Lambda) instead of q(mu, Lambda)
        """
        degrees_of_freedom = self.degrees_of_freedom(effective_degrees_of_freedom, independent)
        # The inverse scale of the Wishart factor is A nu/c, so that its mean is E Lambda = c A^-1.
        log_det_scaled = log_determinants + self._size * np.log(
            degrees_of_freedom / effective_degrees_of_freedom
        )
        log_evidence = self.n_blocks * wishart.log_partition(
            degrees_of_freedom, log_det_scaled / self.n_blocks, self.block_size
        )
        if not independent:
            return log_evidence
        of_means = log_determinants - self._size * np.log(effective_degrees_of_freedom)
        return log_evidence + 0.5 * self._freedom_of_means * of_means

    def mean_excess_factor(self, effective_degrees_of_freedom):
        """Excess of the Student t in Cov(mu) under joint factors, in units of E Sigma/tau.

        It is reported as zero where the variance is infinite (c <= block_size + 1).
        """
        beyond = effective_degrees_of_freedom - (self.block_size + 1)
        return np.divide(self.block_size + 1, beyond, out=np.zeros_like(beyond), where=beyond > 0)
