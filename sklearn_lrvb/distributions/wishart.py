"""Wishart distribution of a precision matrix Lambda (P, P), with nu > P - 1 degrees of freedom.

Its density is proportional to |Lambda|^((nu - P - 1)/2) exp(-trace(A Lambda)/2) with the inverse scale A, and
E Lambda = nu A^-1. The functions take nu and log|A|, all that they need of A.

`Wisharts` has the precisions of a mixture. The precision Lambda of a group of components consists of
``n_blocks`` independent Wishart matrices of size ``block_size``, and |Lambda| is the product of their
determinants to the ``power``: one matrix of size P ("full", "tied"); P numbers ("diag", "tied_diag"; a
Wishart matrix of size 1 is a gamma variable with shape nu/2); one number whose P-th power is |Lambda|
("spherical").
"""

import functools
import math
from dataclasses import dataclass

import numpy as np
from scipy.special import digamma, gammaln, zeta

from sklearn_lrvb.distributions.special_functions import CANCELS_FROM, log_gamma_rise

_LOG_2, _LOG_PI = math.log(2.0), math.log(math.pi)


@functools.lru_cache(maxsize=64)
def _range(n_features):
    """0, ..., P - 1 as floats, (P,)."""
    return np.arange(float(n_features))


def half_degrees_of_freedom(degrees_of_freedom, n_features):
    """(nu - i)/2 for i = 0..P-1: (...) -> (..., P)."""
    return 0.5 * (np.asarray(degrees_of_freedom)[..., None] - _range(n_features))


def log_partition(degrees_of_freedom, log_det_inverse_scale, n_features):
    """nu/2 (P log 2 - log|A|) + log Gamma_P(nu/2), from nu (...) and log|A| (...): (...).

    It is the log of the integral of |Lambda|^((nu - P - 1)/2) exp(-trace(A Lambda)/2) over the positive
    definite matrices.
    """
    nu = np.asarray(degrees_of_freedom, dtype=float)
    log_gamma = gammaln(half_degrees_of_freedom(nu, n_features)).sum(axis=-1)
    log_gamma += 0.25 * n_features * (n_features - 1) * _LOG_PI
    return 0.5 * nu * (n_features * _LOG_2 - log_det_inverse_scale) + log_gamma


def expected_log_determinant(degrees_of_freedom, log_det_inverse_scale, n_features):
    """E log|Lambda|, the mean parameter of log|Lambda|, from nu (...) and log|A| (...): (...)."""
    digammas = digamma(half_degrees_of_freedom(degrees_of_freedom, n_features)).sum(axis=-1)
    return digammas + n_features * _LOG_2 - log_det_inverse_scale


@functools.lru_cache(maxsize=64)
def _log_gamma(half, n_features):
    """Sum of log Gamma at nu/2, (nu - 1)/2, ..., a float: log Gamma_P(nu/2) without its constant."""
    return gammaln(half_degrees_of_freedom(2.0 * half, n_features)).sum()


def log_determinant_excess_variance(halves):
    """Var log|Lambda| - 2 P/nu, its variance around the regression on Lambda.

    It is a function of `half_degrees_of_freedom`: (..., P) -> (...).
    """
    return zeta(2.0, halves).sum(axis=-1) - halves.shape[-1] / halves[..., 0]


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
        digammas : (S,), derivative of log Gamma_P(nu/2) in nu/2, for one block
        halves : (S, block_size), the arguments of its gamma functions
        """
        halves = half_degrees_of_freedom(degrees_of_freedom, self.block_size)
        digammas = digamma(halves).sum(axis=-1)
        of_unit_scale = self.n_blocks * digammas - self._size * np.log(halves[..., 0])
        return self.power * of_unit_scale - log_det_covariances, digammas, halves

    def log_determinant_excess_variance(self, halves):
        """The part of Var log|Lambda| that Lambda does not explain linearly."""
        return self.power**2 * self.n_blocks * log_determinant_excess_variance(halves)

    def log_density(self, degrees_of_freedom, log_det_inverse_scale, log_determinant, trace):
        """Log density of the Wishart factors, or its mean: log|Lambda| and trace(A Lambda) enter linearly."""
        of_block = log_partition(degrees_of_freedom, log_det_inverse_scale / self.n_blocks, self.block_size)
        exponent = (degrees_of_freedom - self.block_size - 1) * log_determinant / self.power
        return 0.5 * (exponent - trace) - self.n_blocks * of_block

    def expected_log_density(self, degrees_of_freedom, log_det_covariances, expected_log_determinant):
        """E log density of the Wishart factors, given log|E(Lambda)^-1|."""
        log_det_inverse_scale = log_det_covariances / self.power + self._size * np.log(degrees_of_freedom)
        trace = self._size * degrees_of_freedom
        return self.log_density(degrees_of_freedom, log_det_inverse_scale, expected_log_determinant, trace)

    def kl_divergence(self, halves, digammas, prior_half, scale_divergence):
        """KL divergence of the Wishart factors from those of the prior, (S,).

        All its terms are rounded relative to nu - nu0.

        Parameters
        ----------
        halves, digammas : as from `expected_log_determinant`
        prior_half : float, nu0/2
        scale_divergence : (S,)
            Sum over the blocks of trace(R) - log|R| - size, with R = E Lambda C0/nu0, which is the identity
            where the means agree.
        """
        rise = halves[..., 0] - prior_half
        if prior_half < CANCELS_FROM:
            log_gammas = gammaln(halves).sum(axis=-1) - _log_gamma(prior_half, self.block_size)
        else:
            starts = half_degrees_of_freedom(2.0 * prior_half, self.block_size)
            log_gammas = log_gamma_rise(starts, rise[..., None]).sum(axis=-1)
        growth = prior_half * (scale_divergence + self._size * np.log1p(rise / prior_half))
        return growth + rise * (self.n_blocks * digammas - self._size) - self.n_blocks * log_gammas

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
        log_evidence = self.n_blocks * log_partition(
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
