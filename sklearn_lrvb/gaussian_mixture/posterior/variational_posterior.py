"""The variational posterior q(pi) prod_k q_k of weights, means and precisions: expectations, and M-step.

*Conventions.* K components, P features, S precision groups: one for each component, or one for all
(`covariance_structures`). Positions are measured from the origin of the centred rows (`row_blocks`), so that
data far from zero lose no digits. q is a function of the expected counts N_k, the means m_k and the Cholesky
factors of E(Lambda)^-1 = A/c alone; sweeps and Newton's method both end in `VariationalPosterior.m_step`.

For each component q_k is joint, q(mu, Lambda), or independent, q(mu) q(Lambda), as in the paper. Their
expectations are the same except E log|Lambda|: the independent Wishart factor has more degrees of freedom.

*Sufficient statistics.* In the frames of q, its own complete statistics are N_k, 0 and c s(I)/power. A sweep
is a map EM of the statistics, and q is optimal where EM(s) = s. Differences are taken in the coordinates of
the features h (`covariance_structures`), in which Newton's step is R^-1 M^-1 (EM(s) - s), R^-1 being the
complete information and M the observed one (`information.observed_information`).
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.linalg import cho_solve

from sklearn_lrvb.gaussian_mixture.posterior.degenerate_components import (
    DegenerateComponentError,
    empty_component_message,
    improper_precision_message,
    singular_covariance_message,
)
from sklearn_lrvb.gaussian_mixture.posterior.mixture_prior import MixturePrior
from sklearn_lrvb.symmetric_matrices import cholesky_equilibrated

_LOG_2_PI = np.log(2.0 * np.pi)

# Expected count below which a component is empty under the flat prior. By then its count falls by orders of
# magnitude in every sweep (E log pi_k is about -1/N_k), so that the exact value does not matter.
_EMPTY_COUNT = 1e-6

# Expected number of rows below which a component counts as empty elsewhere.
_LEAST_COUNT = 0.5


def occupied(counts):
    """Which components hold rows: expected counts (...) -> bool (...)."""
    return counts >= _LEAST_COUNT


@dataclass(frozen=True)
class Moments:
    """Weighted moments of rows in every component's frame.

    Attributes
    ----------
    counts : (K,), sums of weights
    first : (K, P), sums of weight times y
    second : (S, ...), sums of weight times s(y)
    """

    counts: np.ndarray
    first: np.ndarray
    second: np.ndarray

    def __add__(self, other):
        return Moments(self.counts + other.counts, self.first + other.first, self.second + other.second)

    def __sub__(self, other):
        return Moments(self.counts - other.counts, self.first - other.first, self.second - other.second)


def log_normal_constant(expected_log_determinant, mean_precision, n_dimensions):
    """E log N(x; mu, Lambda^-1) without its term -(x - m)' E(Lambda) (x - m)/2."""
    return 0.5 * (expected_log_determinant - n_dimensions * (_LOG_2_PI + 1.0 / mean_precision))


@dataclass(frozen=True)
class Expectations:
    """Expectations under q that the log densities of rows are made of.

    Attributes
    ----------
    log_weights : (K,), E log pi
    log_det_precisions : (S,), E log|Lambda|
    log_det_covariances : (S,), log|E(Lambda)^-1|
    density_constants : (K,), rho_nk + |y_nk|^2/2, the part of the log density that does not depend on x
    digamma, log_det_inverse_scale : (S,), as in `Wisharts.expected_log_determinant`
    """

    log_weights: np.ndarray
    log_det_precisions: np.ndarray
    log_det_covariances: np.ndarray
    density_constants: np.ndarray
    digamma: np.ndarray
    log_det_inverse_scale: np.ndarray

    @classmethod
    def of(cls, posterior, log_weights, log_det_covariances, precision_trace):
        """Expectations of q, or of arrays that were set by hand.

        Parameters
        ----------
        posterior : VariationalPosterior or HandSetDensities
        log_weights : (K,), E log pi
        log_det_covariances : (S,), log|E(Lambda)^-1|
        precision_trace : (S,), trace E Lambda
        """
        structure = posterior.structure
        expected, digamma, log_det_inverse_scale = structure.wisharts.expected_log_determinant(
            log_det_covariances, posterior.degrees_of_freedom
        )
        of_normal = log_normal_constant(expected, posterior.mean_precision, structure.n_dimensions)
        constants = log_weights + of_normal - 0.5 * (posterior.reg_covar * precision_trace)
        return cls(log_weights, expected, log_det_covariances, constants, digamma, log_det_inverse_scale)


@dataclass(frozen=True)
class Divergences:
    """KL(q || prior) in nats, by what contributes to it; a flat prior's density counts as 1.

    Attributes
    ----------
    weights : float
    means : (K,), given the precisions
    precisions : (S,)
    total : float, the sum of all
    """

    weights: float
    means: np.ndarray
    precisions: np.ndarray
    total: float


@dataclass(eq=False)
class VariationalPosterior:
    """q, given the expected counts, the means and the components' frames; nothing of it changes.

    One q is equal to itself alone, whatever the numbers of another.

    Parameters
    ----------
    prior : MixturePrior
    counts : (K,), N_k
    centred_means : (K, P), m_k, measured from the origin
    covariance_cholesky : (S, ...), lower Cholesky factors of E(Lambda)^-1, or its standard deviations

    Attributes
    ----------
    structure : CovarianceStructure, of the prior
    reg_covar : float, variance of known noise on every coordinate of x
    n_components, n_features : int, K and P
    group_counts : (S,), expected counts of the precision groups
    mean_precision : (K,), tau_k
    effective_degrees_of_freedom : (S,), c, with E Lambda = c A^-1
    degrees_of_freedom : (S,), nu of the Wishart factors
    """

    prior: MixturePrior
    counts: np.ndarray
    centred_means: np.ndarray
    covariance_cholesky: np.ndarray

    def __post_init__(self):
        prior, structure = self.prior, self.prior.structure
        self.structure, self.reg_covar = structure, prior.reg_covar
        self.n_components, self.n_features = self.centred_means.shape
        self.mean_precision = prior.mean_precision + self.counts
        self.group_counts = structure.per_group(self.counts)
        self.effective_degrees_of_freedom = prior.degrees_of_freedom + structure.power * self.group_counts
        self.degrees_of_freedom = self.effective_degrees_of_freedom + prior.freedom_kept

    def __reduce__(self):
        # Cached expectations are left out, because they are cheap to compute again.
        return type(self), (self.prior, self.counts, self.centred_means, self.covariance_cholesky)

    def reordered(self, order):
        """The same q with its components in another order, int array (K,)."""
        groups = order if self.structure.has_own_precisions else slice(None)
        return replace(
            self,
            counts=self.counts[order],
            centred_means=self.centred_means[order],
            covariance_cholesky=self.covariance_cholesky[groups],
        )

    # Frames.

    @cached_property
    def whiteners(self):
        """W with y = W_k (x - m_k), W' W = E Lambda, (S, ...)."""
        return self.structure.whiteners(self.covariance_cholesky)

    @property
    def amplification(self):
        """Largest factor by which whitening amplifies the rounding of a component's rows; at least one."""
        deviations = self.structure.deviations(self.covariance_cholesky)
        return self.structure.transformed(np.abs(self.whiteners), deviations).max()

    @cached_property
    def noise(self):
        """reg_covar s(W W'), what the known noise on x adds to s(y) of a row, (S, ...)."""
        return self.reg_covar * self.structure.power * self.structure.gram(self.whiteners)

    @cached_property
    def second_moment_origin(self):
        """O of the features (`covariance_structures`), (S, ...)."""
        return self.structure.identity_statistic - self.noise

    @cached_property
    def whitened_prior_mean(self):
        """W_k (m0 - m_k), (K, P)."""
        return self.structure.transformed(self.whiteners, self.prior.mean - self.centred_means)

    @cached_property
    def whitened_prior_root(self):
        """M with M M' the prior's C0 in the precision groups' frames, lower triangular, (S, ...).

        C0 itself is not taken there: where it is nearly singular, its own rounding would count.
        """
        return self.structure.composed(self.whiteners, self.prior.covariance_cholesky)

    # Expectations, and divergences from the prior.

    @cached_property
    def complement_variance(self):
        """a/c, the eigenvalue of E(Lambda)^-1 in the directions that projected rows leave out, (S,)."""
        inverse_scale = self.prior.complement.inverse_scale(self.group_counts)
        return inverse_scale / self.effective_degrees_of_freedom

    @cached_property
    def _of_weights(self):
        """E log pi, and the divergence of q(pi) from the prior."""
        return self.prior.weights.expectations(self.counts)

    @cached_property
    def expectations(self):
        """Expectations of the weights and of the log densities: Expectations."""
        log_det_covariances = self.structure.log_determinants(self.covariance_cholesky)
        precision_trace = self.structure.precision_trace(self.whiteners)
        if self.prior.is_projected:
            log_det_covariances += self.prior.complement.log_determinant(self.complement_variance)
            precision_trace += self.prior.complement.precision_trace(self.complement_variance)
        return Expectations.of(self, self._of_weights[0], log_det_covariances, precision_trace)

    @cached_property
    def divergences(self):
        """Divergences of weights, means and precisions from the prior: Divergences."""
        prior, structure, expected = self.prior, self.structure, self.expectations
        factors, n_dimensions = structure.wisharts, structure.n_dimensions
        nu, nu_0 = self.degrees_of_freedom, prior.degrees_of_freedom
        # E log|.| of the precision of mu_k in q, without P log tau_k. Under a proper prior it is E
        # log|Lambda|.
        in_q = -expected.log_det_covariances if prior.independent else expected.log_det_precisions
        if prior.flat:
            means = 0.5 * (n_dimensions * (np.log(self.mean_precision) - _LOG_2_PI - 1.0) + in_q)
            precisions = factors.expected_log_density(
                nu, expected.log_det_inverse_scale, expected.log_det_precisions
            )
        else:
            ratio = self.mean_precision / prior.mean_precision
            squared_distances = np.einsum("kp,kp->k", self.whitened_prior_mean, self.whitened_prior_mean)
            means = n_dimensions / ratio + prior.mean_precision * squared_distances
            of_determinants = in_q - expected.log_det_precisions
            means = 0.5 * (n_dimensions * (np.log(ratio) - 1.0) + of_determinants + means)
            of_scales = structure.scale_divergences(self.whitened_prior_root / np.sqrt(nu_0))
            if prior.is_projected:
                of_scales += prior.complement.scale_divergence(self.complement_variance, nu_0)
            precisions = factors.kl_divergence(nu, expected.digamma, nu_0, of_scales)
        of_weights = self._of_weights[1]
        return Divergences(of_weights, means, precisions, of_weights + means.sum() + precisions.sum())

    # The covariance of the log densities' intercepts, V_pi + C.

    @cached_property
    def log_weight_covariance(self):
        """V_pi = Cov(log pi), (K, K)."""
        return self.prior.weights.covariance_of_log(self.counts)

    @cached_property
    def intercept_excess(self):
        """C, the contribution of log|Lambda| and tau_k to the covariance of the intercepts, (K, K)."""
        structure = self.structure
        variance = 0.25 * structure.wisharts.log_determinant_excess_variance(self.degrees_of_freedom)
        if self.prior.is_projected:
            variance += self.prior.complement.intercept_variance(
                self.complement_variance, self.effective_degrees_of_freedom
            )
        shared = structure.between_components(variance)
        np.einsum("kk->k", shared)[...] += 0.5 * structure.n_dimensions / np.square(self.mean_precision)
        return shared

    @cached_property
    def intercept_root(self):
        """Lower Cholesky factor of V_pi + C, (K, K)."""
        return cholesky_equilibrated(self.log_weight_covariance + self.intercept_excess)

    def count_response(self, intercepts):
        """(V_pi + C)^-1 b, the response of the expected counts to intercepts: (..., K) -> (..., K)."""
        flat = intercepts.reshape(-1, intercepts.shape[-1]).T
        return cho_solve((self.intercept_root, True), flat).T.reshape(intercepts.shape)

    # The M-step, and differences and steps in the coordinates of the statistics.

    def with_noise(self, moments):
        """Moments of rows, completed by the known noise on x."""
        if not self.reg_covar:
            return moments
        n_rows = self.structure.per_group(moments.counts)[self.structure.statistic_axes]
        return Moments(moments.counts, moments.first, moments.second + n_rows * self.noise)

    @cached_property
    def second_moments_of_prior(self):
        """What the prior adds to the second moments in the precision groups' frames, (S, ...)."""
        if self.prior.flat:
            return np.zeros_like(self.covariance_cholesky)
        weights = np.full(self.n_components, self.prior.mean_precision)
        of_means = self.structure.sum_of_squares(self.whitened_prior_mean, weights)
        return self.structure.gram(self.whitened_prior_root) + of_means

    def with_prior(self, moments):
        """Moments of the data, completed by the known noise on x and by the prior."""
        of_rows = self.with_noise(moments)
        first = of_rows.first + self.prior.mean_precision * self.whitened_prior_mean
        return Moments(of_rows.counts, first, of_rows.second + self.second_moments_of_prior)

    def padded(self, prior):
        """The same components, and empty ones after them: as many as a prior has in all.

        Parameters
        ----------
        prior : MixturePrior of as many components or more
        """
        n_empty = prior.structure.n_components - self.n_components
        factors = self.covariance_cholesky
        if prior.structure.has_own_precisions:
            of_prior = prior.covariance_cholesky / np.sqrt(prior.degrees_of_freedom)
            factors = np.concatenate([factors, np.repeat(of_prior, n_empty, axis=0)])
        means = np.concatenate([self.centred_means, np.tile(prior.mean, (n_empty, 1))])
        return VariationalPosterior(prior, np.append(self.counts, np.zeros(n_empty)), means, factors)

    def m_step(self, moments):
        """The posterior whose complete moments (prior included) in the frames of this one are given.

        Raises
        ------
        DegenerateComponentError
            Where a component has no points or too few for a proper precision under the flat prior, or its
            covariance is singular to working precision.
        """
        counts, prior, structure = moments.counts, self.prior, self.structure
        _refuse(~(counts >= (_EMPTY_COUNT if prior.flat else 0.0)), empty_component_message, counts, prior)
        # What follows from the counts alone is here as it is after the step.
        after = replace(self, counts=counts)
        if prior.flat:
            nu = after.degrees_of_freedom
            is_proper = structure.wisharts.is_proper(after.effective_degrees_of_freedom, nu)
            _refuse(~is_proper, improper_precision_message, counts, prior)
        shift = moments.first / after.mean_precision[:, None]
        scatter = moments.second - structure.sum_of_squares(shift, after.mean_precision)
        freedom = after.effective_degrees_of_freedom[structure.statistic_axes]
        factors = structure.cholesky(scatter / freedom)
        # A failed factorization is NaN.
        _refuse(np.isnan(factors.reshape(len(factors), -1)[:, 0]), singular_covariance_message, counts, prior)
        covariance_cholesky = structure.composed(self.covariance_cholesky, factors)
        if prior.flat:
            varies = np.all(structure.deviations(covariance_cholesky) > prior.resolution, axis=1)
            _refuse(~varies, singular_covariance_message, counts, prior)
        centred_means = self.centred_means + structure.transformed(self.covariance_cholesky, shift)
        return replace(after, centred_means=centred_means, covariance_cholesky=covariance_cholesky)

    def residual(self, moments):
        """EM(s) - s, given the complete moments of the E-step at q: (D,)."""
        structure = self.structure
        own = self.effective_degrees_of_freedom[structure.statistic_axes] * structure.identity
        counts, second = moments.counts - self.counts, moments.second - own
        return structure.feature_moments(counts, moments.first, second, structure.identity_statistic)

    def difference(self, other):
        """Statistics of another posterior less those of this one, in the frames of this one: (D,)."""
        structure = self.structure
        shift = structure.transformed(self.whiteners, other.centred_means - self.centred_means)
        covariances = structure.gram(structure.composed(self.whiteners, other.covariance_cholesky))
        second = other.effective_degrees_of_freedom[structure.statistic_axes] * covariances
        second = second + structure.sum_of_squares(shift, other.mean_precision)
        return self.residual(Moments(other.counts, other.mean_precision[:, None] * shift, second))

    def after_step(self, change):
        """The posterior whose statistics differ by ``change``, (D,); counts do not fall below zero.

        Raises
        ------
        DegenerateComponentError
            Where there is no such posterior.
        """
        structure = self.structure
        own = self.effective_degrees_of_freedom[structure.statistic_axes] * structure.identity
        counts, first, second = structure.moments(change)
        return self.m_step(Moments(np.maximum(self.counts + counts, 0.0), first, own + second))

    def deviation(self, change):
        """Length of a change of the statistics (D,), in mean-field standard deviations."""
        of_counts, others = change[: self.n_components], change[self.n_components :]
        information = self.structure.complete_information(
            self.mean_precision, self.effective_degrees_of_freedom
        )
        variance = of_counts @ (self.log_weight_covariance + self.intercept_excess) @ of_counts
        return float(np.sqrt(variance + (np.square(others) / information).sum()))


def _refuse(is_degenerate, message, counts, prior):
    """Raise DegenerateComponentError for the first component or group that has no proper posterior."""
    if is_degenerate.any():
        raise DegenerateComponentError(message(int(is_degenerate.argmax()), counts, prior))
