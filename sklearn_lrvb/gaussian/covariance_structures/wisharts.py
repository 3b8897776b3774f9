"""The posterior of a group's precision, as a function of expected counts and one log determinant.

Every group's precision Lambda consists of ``n_blocks`` independent Wishart matrices of size ``block_size``,
and |Lambda| is the product of their determinants to the ``power``: one matrix of size P ("full", "tied"); P
numbers ("diag", "tied_diag"; a Wishart matrix of size 1 is a gamma variable with shape nu/2); one number
whose P-th power is |Lambda| ("spherical"). The formulas of one Wishart distribution are in
`distributions.wishart`.
"""

import math
from dataclasses import dataclass

import numpy as np

from sklearn_lrvb.distributions import wishart

_LOG_2 = math.log(2.0)


@dataclass
class Wisharts:
    """Wishart factors of the precisions of all groups; nothing of it changes.

    Arrays hold a number for every group, (S,), or for every row and group, (n, S).

    Parameters
    ----------
    block_size, n_blocks, power : int, the composition of |Lambda| from Wishart determinants
    n_means : int, number of components of a group

    Attributes
    ----------
    freedom_of_means : int, degrees of freedom that the means of a group take from a joint factor
    """

    block_size: int
    n_blocks: int = 1
    power: int = 1
    n_means: int = 1

    def __post_init__(self):
        self._size = self.block_size * self.n_blocks
        self.freedom_of_means = self.power * self.n_means

    @property
    def flat_degrees_of_freedom(self):
        """nu0 of the improper prior that is constant in means and precisions."""
        return float(self.block_size + 1 - self.freedom_of_means)

    def is_proper(self, effective_degrees_of_freedom, degrees_of_freedom):
        """Whether the Wishart factors exist, given c and nu: array of bool."""
        return (effective_degrees_of_freedom > 0) & (degrees_of_freedom > self.block_size - 1)

    def expected_log_determinant(self, log_det_covariances, degrees_of_freedom):
        """E log|Lambda|, given log|E(Lambda)^-1| and nu.

        Returns
        -------
        expected : (S,)
        digamma : (S,), derivative of log Gamma_P(nu/2) in nu/2, for one block
        log_det_inverse_scale : (S,), sum of log|A| over the blocks
        """
        digamma = wishart.multivariate_digamma(degrees_of_freedom, self.block_size)
        log_det_inverse_scale = log_det_covariances / self.power + self._size * np.log(degrees_of_freedom)
        expected = self.power * (self.n_blocks * digamma + self._size * _LOG_2 - log_det_inverse_scale)
        return expected, digamma, log_det_inverse_scale

    def log_determinant_excess_variance(self, degrees_of_freedom):
        """The part of Var log|Lambda| that Lambda does not explain linearly."""
        of_block = wishart.log_determinant_excess_variance(degrees_of_freedom, self.block_size)
        return self.power**2 * self.n_blocks * of_block

    def log_density(self, degrees_of_freedom, log_det_inverse_scale, log_determinant, trace):
        """Log density of the Wishart factors, or its mean: log|Lambda| and trace(A Lambda) enter linearly."""
        log_partition = self.n_blocks * wishart.log_partition(
            degrees_of_freedom, log_det_inverse_scale / self.n_blocks, self.block_size
        )
        exponent = (degrees_of_freedom - self.block_size - 1) * log_determinant / self.power
        return 0.5 * (exponent - trace) - log_partition

    def expected_log_density(self, degrees_of_freedom, log_det_inverse_scale, expected_log_determinant):
        """E log density of the Wishart factors."""
        return self.log_density(
            degrees_of_freedom,
            log_det_inverse_scale,
            expected_log_determinant,
            self._size * degrees_of_freedom,
        )

    def kl_divergence(self, degrees_of_freedom, digamma, prior_degrees_of_freedom, scale_divergence):
        """KL divergence of the Wishart factors from those of the prior, (S,).

        Parameters
        ----------
        degrees_of_freedom : (S,), nu
        digamma : (S,), of nu, as in `expected_log_determinant`
        prior_degrees_of_freedom : float, nu0
        scale_divergence : (S,)
            Sum over the blocks of trace(R) - log|R| - size, with R = E Lambda C0/nu0.
        """
        return self.n_blocks * wishart.kl_divergence(
            degrees_of_freedom,
            digamma,
            prior_degrees_of_freedom,
            scale_divergence / self.n_blocks,
            self.block_size,
        )

    def log_evidence(self, effective_degrees_of_freedom, log_det_scatter, independent):
        """Contribution of the precisions to the lower bound, maximized over q.

        It is given up to constants that depend on the sum of c alone. For independent factors it includes the
        entropies of the means' normal factors.

        Parameters
        ----------
        effective_degrees_of_freedom : array, c
        log_det_scatter : array, log|A| summed over the blocks, with A = c E(Lambda)^-1
        independent : bool, q(mu) q(Lambda) instead of q(mu, Lambda)
        """
        degrees_of_freedom = effective_degrees_of_freedom + (self.freedom_of_means if independent else 0)
        # The inverse scale of the Wishart factor is A nu/c, so that its mean is E Lambda = c A^-1.
        log_det_scaled = log_det_scatter + self._size * np.log(
            degrees_of_freedom / effective_degrees_of_freedom
        )
        log_evidence = self.n_blocks * wishart.log_partition(
            degrees_of_freedom, log_det_scaled / self.n_blocks, self.block_size
        )
        if not independent:
            return log_evidence
        of_means = log_det_scatter - self._size * np.log(effective_degrees_of_freedom)
        return log_evidence + 0.5 * self.freedom_of_means * of_means

    def mean_excess_factor(self, effective_degrees_of_freedom):
        """Excess of the Student t in Cov(mu) under joint factors, in units of E Sigma/tau.

        It is reported as zero where the variance is infinite (c <= block_size + 1).
        """
        beyond = effective_degrees_of_freedom - (self.block_size + 1)
        return np.divide(self.block_size + 1, beyond, out=np.zeros_like(beyond), where=beyond > 0)
