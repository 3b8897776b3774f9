"""The variational posterior q(pi) prod_k q_k of weights, means and precisions: expectations, and M-step.

*Conventions.* K components, P features, S precision groups: one for each component, or one for all
(`covariance_structures`). Positions are measured from the origin of the centred rows (`rows`), so that
data far from zero lose no digits. q is a function of the expected counts N_k, the means m_k and the Cholesky
factors of E(Lambda)^-1 = A/c alone; sweeps and Newton's method both end in `VariationalPosterior.m_step`.
Where there is a background (the noise component, a constant density), its expected count is one of the
labels' counts, (L,), of which it is the last.

For each component q_k is joint, q(mu, Lambda), or independent, q(mu) q(Lambda), as in the paper. Their
expectations are the same except E log|Lambda|: the independent Wishart factor has more degrees of freedom.

*Sufficient statistics.* In the frames of q, its own complete statistics are N_k, 0 and c s(I)/power. A sweep
is a map EM of the statistics, and q is optimal where EM(s) = s. Differences are taken in the coordinates of
the features h (`covariance_structures`), in which Newton's step is R^-1 M^-1 (EM(s) - s), R^-1 being the
complete information and M the observed one (`information.observed_information`).
"""

import math
import operator
from dataclasses import dataclass, field, fields, replace
from functools import cached_property

import numpy as np
from scipy.linalg import cho_solve

from sklearn_lrvb.gaussian.posterior.degenerate_components import (
    empty_component_message,
    improper_precision_message,
    singular_covariance_message,
)
from sklearn_lrvb.gaussian.posterior.mixture_prior import MixturePrior
from sklearn_lrvb.gaussian.posterior.tails import StudentTails
from sklearn_lrvb.mixture.model import DegenerateComponentError
from sklearn_lrvb.symmetric_matrices import cholesky_equilibrated

_LOG_2_PI = np.log(2.0 * np.pi)

# Expected count below which a component is empty under the flat prior. By then its count falls by orders of
# magnitude in every sweep (E log pi_k is about -1/N_k), so that the exact value does not matter.
_EMPTY_COUNT = 1e-6

NO_COUNTS = np.zeros(0)  # Those of the background where there is none.


@dataclass
class Moments:
    """Weighted moments of rows in every component's frame.

    Attributes
    ----------
    counts : (L,), sums of weights
    first : (K, P), sums of weight times y
    second : (S, ...), sums of weight times s(y)
    scale_sums : (K,) or None
        Where rows have scales u, sums of weight times u; y and s(y) are then multiplied by u too.
    log_scale_sums : (K,) or None, sums of weight times (log u - u)
    """

    counts: np.ndarray
    first: np.ndarray
    second: np.ndarray
    scale_sums: np.ndarray | None = None
    log_scale_sums: np.ndarray | None = None

    def mean_counts(self, n_components):
        """Weights of the components' rows, times u where rows have scales, (K,)."""
        return self.counts[..., :n_components] if self.scale_sums is None else self.scale_sums

    def __add__(self, other):
        return self._with(other, operator.add)

    def __sub__(self, other):
        return self._with(other, operator.sub)

    def _with(self, other, combined):
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return Moments(*(None if own is None else combined(own, its) for own, its in pairs))


def log_normal_constant(expected_log_determinant, mean_precision, n_dimensions):
    """E log N(x; mu, Lambda^-1) without its term -(x - m)' E(Lambda) (x - m)/2."""
    return 0.5 * (expected_log_determinant - n_dimensions * (_LOG_2_PI + 1.0 / mean_precision))


@dataclass
class Expectations:
    """Expectations under q that the log densities of rows are made of.

    Attributes
    ----------
    log_weights : (L,), E log pi
    log_det_precisions : (S,), E log|Lambda|
    log_det_covariances : (S,), log|E(Lambda)^-1|
    density_constants : (L,)
        rho_nk + |y_nk|^2/2, the part of the log density that does not depend on x; of the background, rho_n.
        Where rows have scales, E log pi + E log|Lambda|/2.
    distance_constants : (K,), what E (x - mu)' Lambda (x - mu) has besides |y|^2
    digamma, log_det_inverse_scale : (S,), as in `Wisharts.expected_log_determinant`
    """

    log_weights: np.ndarray
    log_det_precisions: np.ndarray
    log_det_covariances: np.ndarray
    density_constants: np.ndarray
    distance_constants: np.ndarray
    digamma: np.ndarray
    log_det_inverse_scale: np.ndarray

    @classmethod
    def of(cls, posterior, log_weights, log_det_covariances, precision_trace):
        """Expectations of q, or of arrays that were set by hand.

        Parameters
        ----------
        posterior : VariationalPosterior or HandSetDensities
        log_weights : (L,), E log pi
        log_det_covariances : (S,), log|E(Lambda)^-1|
        precision_trace : (S,), trace E Lambda
        """
        structure = posterior.structure
        expected, digamma, log_det_inverse_scale = structure.wisharts.expected_log_determinant(
            log_det_covariances, posterior.degrees_of_freedom
        )
        of_normal = log_normal_constant(expected, posterior.mean_precision, structure.n_dimensions)
        distances = structure.n_dimensions / posterior.mean_precision + posterior.reg_covar * precision_trace
        constants = log_weights[: structure.n_components]
        if structure.has_scales:
            constants = constants + 0.5 * expected
        else:
            constants = constants + of_normal - 0.5 * (posterior.reg_covar * precision_trace)
        if structure.has_background:
            constants = np.append(constants, log_weights[-1] + posterior.background.log_density)
        return cls(
            log_weights, expected, log_det_covariances, constants, distances, digamma, log_det_inverse_scale
        )


@dataclass
class Divergences:
    """KL(q || prior) in nats, by what contributes to it; a flat prior's density counts as 1.

    Attributes
    ----------
    weights : float
    means : (K,), given the precisions
    precisions : (S,)
    total : float, the sum of all, and minus the log density of fitted degrees of freedom
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
    background_counts : (L - K,), expected rows of the background; none where there is no background
    scale_sums : (K,) or None, U_k, sums of the rows' expected scales where they have any
    tails : StudentTails of the scales, or None

    Attributes
    ----------
    model : MixtureModel, of the prior
    structure : CovarianceStructure, of the prior
    reg_covar : float, variance of known noise on every coordinate of x
    background : Background or None, of the prior
    has_scales : bool, whether there are tails
    n_components, n_features, n_labels, n_coefficients : int, K, P, L and D
    coefficient_blocks, block_shapes : dict, as in the structure
    label_counts : (L,)
    group_counts : (S,), expected counts of the precision groups
    mean_precision : (K,), tau_k
    effective_degrees_of_freedom : (S,), c, with E Lambda = c A^-1
    degrees_of_freedom : (S,), nu of the Wishart factors
    """

    prior: MixturePrior
    counts: np.ndarray
    centred_means: np.ndarray
    covariance_cholesky: np.ndarray
    background_counts: np.ndarray = field(default_factory=lambda: NO_COUNTS)
    scale_sums: np.ndarray | None = None
    tails: StudentTails | None = None

    def __post_init__(self):
        prior, structure = self.prior, self.prior.structure
        self.model, self.structure, self.reg_covar = prior.model, structure, prior.reg_covar
        self.background, self.has_scales = prior.background, self.tails is not None
        self.n_components, self.n_features = self.centred_means.shape
        self.n_labels, self.n_coefficients = structure.n_labels, structure.n_coefficients
        self.coefficient_blocks, self.block_shapes = structure.coefficient_blocks, structure.block_shapes
        self.label_counts = np.concatenate([self.counts, self.background_counts])
        self.mean_precision = prior.mean_precision + self.mean_counts
        self.group_counts = structure.per_group(self.counts)
        self.effective_degrees_of_freedom = prior.degrees_of_freedom + structure.power * self.group_counts
        self.degrees_of_freedom = self.effective_degrees_of_freedom + prior.freedom_kept

    def __reduce__(self):
        # Cached expectations are left out, because they are cheap to compute again.
        return type(self), tuple(getattr(self, each.name) for each in fields(self))

    @property
    def coefficients_of_labels(self):
        """Coordinates of every label's coefficients, a list of L int arrays."""
        return self.structure.coefficients_of_labels

    @property
    def mean_counts(self):
        """Numbers of rows that the means are known from: U_k, or N_k where rows have no scales, (K,)."""
        return self.counts if self.scale_sums is None else self.scale_sums

    def reordered(self, order):
        """The same q with its components in another order, int array (K,)."""
        groups = order if self.structure.has_own_precisions else slice(None)
        return replace(
            self,
            counts=self.counts[order],
            centred_means=self.centred_means[order],
            covariance_cholesky=self.covariance_cholesky[groups],
            scale_sums=None if self.scale_sums is None else self.scale_sums[order],
            tails=None if self.tails is None else replace(self.tails, nu=self.tails.nu[order]),
        )

    # Frames.

    @cached_property
    def whiteners(self):
        """W with y = W_k (x - m_k), W' W = E Lambda, (S, ...)."""
        return self.structure.whiteners(self.covariance_cholesky)

    def units_of_columns(self):
        """Standard deviations of the features about the origin, (P,), by which rows are compared."""
        counts = self.counts[:, None]
        deviations = self.structure.per_component(self.structure.deviations(self.covariance_cholesky))
        squares = np.square(deviations) + np.square(self.centred_means)
        return np.sqrt((counts * squares).sum(axis=0) / counts.sum())

    @property
    def amplification(self):
        """Largest factor by which whitening amplifies the rounding of a component's rows; at least one."""
        deviations = self.structure.deviations(self.covariance_cholesky)
        return self.structure.transformed(np.abs(self.whiteners), deviations).max()

    @cached_property
    def noise(self):
        """reg_covar s(W W'), what the known noise on x adds to s(y) of a row, (S, ...)."""
        return (self.reg_covar * self.structure.power) * self.structure.gram(self.whiteners)

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
        return self.prior.weights.expectations(self.label_counts)

    @property
    def log_shares(self):
        """E log pi of weights that are scaled to sum to one, (L,)."""
        return self.prior.weights.expected_log_shares(self.label_counts)

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
            means = n_dimensions * (np.log(ratio) - 1.0 + 1.0 / ratio)
            means += prior.mean_precision * squared_distances
            if prior.independent:
                means += in_q - expected.log_det_precisions
            means *= 0.5
            of_scales = structure.scale_divergences(self.whitened_prior_root * (1.0 / math.sqrt(nu_0)))
            if prior.is_projected:
                of_scales += prior.complement.scale_divergence(self.complement_variance, nu_0)
            precisions = factors.kl_divergence(nu, expected.digamma, nu_0, of_scales)
        of_weights = self._of_weights[1]
        total = of_weights + means.sum() + precisions.sum()
        if self.tails is not None:
            total += self.tails.negative_log_prior()
        return Divergences(of_weights, means, precisions, total)

    @property
    def described(self):
        """The size of the mixture in words."""
        return f"{self.n_components} components in {self.n_features} features"

    def n_coefficients_with(self, n_components):
        """D of a mixture of so many components of the same type, an int."""
        return self.structure.resized(n_components).n_coefficients

    @property
    def is_exact_alone(self):
        """Whether q of a single component is the exact posterior, so that the lower bound is the evidence."""
        return not (self.structure.has_background or self.structure.n_tails)

    @property
    def products_per_row(self):
        """About how many multiplications the log densities of a row take under one draw."""
        return self.n_components * self.structure.n_component_features

    @property
    def log_volume(self):
        """Twice the log of the integral over fitted log nu, of which q has the mode: to second order."""
        if not self.structure.n_tails:
            return 0.0
        return np.log(2.0 * np.pi / self.tails.information(self.counts)).sum()

    # The covariance of the log densities' intercepts, V_pi + C.

    @cached_property
    def log_weight_covariance(self):
        """V_pi = Cov(log pi), (L, L)."""
        return self.prior.weights.covariance_of_log(self.label_counts)

    @cached_property
    def intercept_excess(self):
        """C, the contribution of log|Lambda| and tau_k to the covariance of the intercepts, (L, L)."""
        structure = self.structure
        excess = structure.between_components(self._excess_of_groups)
        if not structure.has_scales:  # There it is the variance of the scales' coefficients.
            of_means = 0.5 * structure.n_dimensions / np.square(self.mean_precision)
            excess.flat[:: self.n_components + 1] += of_means
        return np.pad(excess, (0, 1)) if structure.has_background else excess

    @cached_property
    def _excess_of_groups(self):
        """What log|Lambda| contributes to the covariance of the intercepts of a group's components, (S,)."""
        variance = 0.25 * self.structure.wisharts.log_determinant_excess_variance(self.degrees_of_freedom)
        if self.prior.is_projected:
            variance += self.prior.complement.intercept_variance(
                self.complement_variance, self.effective_degrees_of_freedom
            )
        return variance

    @cached_property
    def intercept_root(self):
        """Lower Cholesky factor of V_pi + C, (L, L)."""
        return cholesky_equilibrated(self.log_weight_covariance + self.intercept_excess)

    def complete_information(self, quadratic_information):
        """Diagonal of R^-1 after the intercepts, given the precision groups' information (S,): (D - L,)."""
        diagonal = self.structure.complete_information(self.mean_precision, quadratic_information)
        if not self.structure.n_tails:
            return diagonal
        return np.concatenate([diagonal, self.tails.information(self.counts)])

    def count_response(self, intercepts):
        """(V_pi + C)^-1 b, the response of the expected counts to intercepts: (..., L) -> (..., L)."""
        flat = intercepts.reshape(-1, intercepts.shape[-1]).T
        return cho_solve((self.intercept_root, True), flat).T.reshape(intercepts.shape)

    # The M-step, and differences and steps in the coordinates of the statistics.

    def with_noise(self, moments):
        """Moments of rows, completed by the known noise on x."""
        if not self.reg_covar:
            return moments
        return replace(moments, second=moments.second + self._noise_of_rows(moments))

    def _noise_of_rows(self, moments):
        """What the known noise on x adds to the second moments of rows, (S, ...)."""
        n_rows = self.structure.per_group(moments.mean_counts(self.n_components))
        return n_rows[self.structure.statistic_axes] * self.noise

    @cached_property
    def second_moments_of_prior(self):
        """What the prior adds to the second moments in the precision groups' frames, (S, ...)."""
        if self.prior.flat:
            return np.zeros_like(self.covariance_cholesky)
        of_means = self.structure.sum_of_squares(self.whitened_prior_mean, self.prior.mean_precisions)
        return self.structure.gram(self.whitened_prior_root) + of_means

    def with_prior(self, moments):
        """Moments of the data, completed by the known noise on x and by the prior."""
        first = moments.first + self.prior.mean_precision * self.whitened_prior_mean
        second = moments.second + self.second_moments_of_prior
        if self.reg_covar:
            second += self._noise_of_rows(moments)
        return Moments(moments.counts, first, second, moments.scale_sums, moments.log_scale_sums)

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
        counts = np.append(self.counts, np.zeros(n_empty))
        after = replace(self, prior=prior, counts=counts, centred_means=means, covariance_cholesky=factors)
        if self.tails is None:
            return after
        scale_sums = np.append(self.scale_sums, np.zeros(n_empty))
        nu = np.append(self.tails.nu, np.repeat(self.tails.nu[-1:], n_empty))
        return replace(after, scale_sums=scale_sums, tails=replace(prior.tails, nu=nu))

    def m_step(self, moments):
        """The posterior whose complete moments (prior included) in the frames of this one are given.

        Raises
        ------
        DegenerateComponentError
            Where a component has no points or too few for a proper precision under the flat prior, or its
            covariance is singular to working precision.
        """
        prior, structure, tails = self.prior, self.structure, self.tails
        counts, mean_counts = moments.counts[: self.n_components], moments.mean_counts(self.n_components)
        if prior.flat:
            has_rows = (counts >= _EMPTY_COUNT) & (mean_counts >= _EMPTY_COUNT)
            _require(has_rows, empty_component_message, counts, prior)
        if moments.log_scale_sums is not None:
            tails = tails.updated(counts, moments.log_scale_sums)
        freedom = prior.degrees_of_freedom + structure.power * structure.per_group(counts)
        if prior.flat:
            is_proper = structure.wisharts.is_proper(freedom, freedom + prior.freedom_kept)
            _require(is_proper, improper_precision_message, counts, prior)
        mean_precision = prior.mean_precision + mean_counts
        shift = moments.first / mean_precision[:, None]
        scatter = moments.second - structure.sum_of_squares(shift, mean_precision)
        factors = structure.cholesky(scatter / freedom[structure.statistic_axes])
        # A failed factorization is NaN.
        is_definite = factors.reshape(len(factors), -1)[:, 0] > 0.0
        _require(is_definite, singular_covariance_message, counts, prior)
        covariance_cholesky = structure.composed(self.covariance_cholesky, factors)
        if prior.flat:
            varies = np.all(structure.deviations(covariance_cholesky) > prior.resolution, axis=1)
            _require(varies, singular_covariance_message, counts, prior)
        return VariationalPosterior(
            prior,
            counts,
            self.centred_means + structure.transformed(self.covariance_cholesky, shift),
            covariance_cholesky,
            moments.counts[self.n_components :].copy(),
            moments.scale_sums,
            tails,
        )

    def feature_moments(self, moments):
        """Sums of the features over rows, from their moments without noise and prior: (D,)."""
        structure = self.structure
        if self.tails is None:
            return structure.feature_moments(
                moments.counts, moments.first, moments.second, self.second_moment_origin
            )
        of_tails = self.tails.feature_sums(moments.counts[: self.n_components], moments.log_scale_sums)
        return structure.feature_moments(
            moments.counts,
            moments.first,
            self.with_noise(moments).second,
            structure.identity_statistic,
            moments.scale_sums,
            of_tails,
        )

    def residual(self, moments):
        """EM(s) - s, given the complete moments of the E-step at q: (D,)."""
        structure = self.structure
        own = self.effective_degrees_of_freedom[structure.statistic_axes] * structure.identity
        counts, second, of_scales = moments.counts - self.label_counts, moments.second - own, ()
        if self.tails is not None:
            of_components = moments.counts[: self.n_components]
            of_tails = self.tails.feature_sums(of_components, moments.log_scale_sums)
            of_scales = moments.scale_sums - self.scale_sums, of_tails - self.tails.feature_sums_of_q()
        return structure.feature_moments(
            counts, moments.first, second, structure.identity_statistic, *of_scales
        )

    def difference(self, other):
        """Statistics of another posterior less those of this one, in the frames of this one: (D,)."""
        structure = self.structure
        shift = structure.transformed(self.whiteners, other.centred_means - self.centred_means)
        covariances = structure.gram(structure.composed(self.whiteners, other.covariance_cholesky))
        second = other.effective_degrees_of_freedom[structure.statistic_axes] * covariances
        second = second + structure.sum_of_squares(shift, other.mean_precision)
        moments = Moments(other.label_counts, other.mean_precision[:, None] * shift, second)
        if self.tails is not None:
            sums = other.tails.sums_of(other.counts, other.tails.feature_sums_of_q())
            moments = replace(moments, scale_sums=other.scale_sums, log_scale_sums=sums)
        return self.residual(moments)

    def after_step(self, change):
        """The posterior whose statistics differ by ``change``, (D,); counts do not fall below zero.

        Raises
        ------
        DegenerateComponentError
            Where there is no such posterior.
        """
        structure = self.structure
        own = self.effective_degrees_of_freedom[structure.statistic_axes] * structure.identity
        counts, first, second, of_scales, of_tails = structure.moments(change)
        moments = Moments(np.maximum(self.label_counts + counts, 0.0), first, own + second)
        if self.tails is not None:
            of_components = moments.counts[: self.n_components]
            sums = self.tails.sums_of(of_components, self.tails.feature_sums_of_q() + of_tails)
            scale_sums = np.maximum(self.scale_sums + of_scales, 0.0)
            moments = replace(moments, scale_sums=scale_sums, log_scale_sums=sums)
        return self.m_step(moments)

    def distance(self, moments):
        """Length of EM(s) - s in mean-field standard deviations, given the moments of the E-step at q."""
        structure = self.structure
        counts = moments.counts - self.label_counts
        own_counts = scales = counts[: self.n_components]
        of_groups = structure.per_group(own_counts)
        freedom = self.effective_degrees_of_freedom[structure.statistic_axes]
        second = moments.second - freedom * structure.identity
        second -= of_groups[structure.statistic_axes] * structure.identity_statistic
        square = self.prior.weights.variance_of_log(self.label_counts, counts)
        square += self._excess_of_groups @ np.square(of_groups)
        square += (np.square(moments.first).sum(axis=1) / self.mean_precision).sum()
        square += 0.5 * (np.square(second) / freedom).sum()
        if self.tails is not None:
            scales = moments.scale_sums - self.scale_sums
        if structure.n_tails:
            tails = self.tails.feature_sums(moments.counts[: self.n_components], moments.log_scale_sums)
            tails = tails - self.tails.feature_sums_of_q()
            square += (np.square(tails) / self.tails.information(self.counts)).sum()
        square += 0.5 * structure.n_dimensions * np.square(scales / self.mean_precision).sum()
        return math.sqrt(square)


def _require(is_proper, message, counts, prior):
    """Raise DegenerateComponentError for the first component or group that has no proper posterior."""
    if not is_proper.all():
        raise DegenerateComponentError(message(int(is_proper.argmin()), counts, prior))
