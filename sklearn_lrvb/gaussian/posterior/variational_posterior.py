"""The variational posterior q(pi) prod_k q_k of weights, means and precisions: expectations, and M-step.

*Conventions.* K components, P features, S precision groups: one for each component, or one for all
(`covariance_structures`). Positions are measured from the origin of the centred rows (`rows`), so that
data far from zero lose no digits. q is a function of the expected counts N_k, the means m_k and the Cholesky
factors of E(Lambda)^-1 = A/c alone; iterations and Newton's method both end in `VariationalPosterior.m_step`.
Where there is a noise component (a constant density), its expected count is the last of the labels' counts,
(L,).

For each component q_k is joint, q(mu, Lambda), or independent, q(mu) q(Lambda), as in the paper. Their
expectations are the same except E log|Lambda|: the independent Wishart factor has more degrees of freedom.

*Sufficient statistics.* In the whitened coordinates of q, its own complete statistics are N_k, 0 and c
s(I)/power. An iteration is a map EM of the statistics, and q is optimal where EM(s) = s. Differences are
taken in the coordinates of the features h (`covariance_structures`), in which Newton's step is R^-1 M^-1
(EM(s) - s), R^-1 being the complete information and M the observed one (`information.observed_information`).
"""

import math
import operator
from dataclasses import dataclass, field, fields, replace
from functools import cached_property

import numpy as np
from scipy.linalg import lapack

from sklearn_lrvb.gaussian.posterior.degenerate_components import (
    empty_component_message,
    improper_precision_message,
    singular_covariance_message,
)
from sklearn_lrvb.gaussian.posterior.learned_prior import LearnedInformation
from sklearn_lrvb.gaussian.posterior.mixture_prior import MixturePrior
from sklearn_lrvb.gaussian.posterior.tails import StudentTails
from sklearn_lrvb.mixture.model import DegenerateComponentError
from sklearn_lrvb.symmetric_matrices import cholesky_equilibrated

_LOG_2_PI = np.log(2.0 * np.pi)

# Expected count below which a component is empty under the flat prior. By then its count falls by orders of
# magnitude in every iteration (E log pi_k is about -1/N_k), so that the exact value does not matter.
_EMPTY_COUNT = 1e-6

NO_COUNTS = np.zeros(0)  # Those of the noise component where there is none.


@dataclass
class Moments:
    """Weighted moments of rows in every component's whitened coordinates.

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


@dataclass
class Expectations:
    """Expectations under q that the log densities of rows are made of.

    Attributes
    ----------
    log_weights : (L,), E log pi
    log_det_precisions : (S,), E log|Lambda|
    log_det_covariances : (S,), log|E(Lambda)^-1|
    density_constants : (L,)
        rho_nk + |y_nk|^2/2, the part of the log density that does not depend on x; of the noise component,
        rho_n. Where rows have scales, E log pi + E log|Lambda|/2.
    distance_constants : (K,), what E (x - mu)' Lambda (x - mu) has besides |y|^2
    digammas, halves : (S,) and (S, ...), as in `Wisharts.expected_log_determinant`
    divergences : Divergences of a q from its prior
    """

    log_weights: np.ndarray
    log_det_precisions: np.ndarray
    log_det_covariances: np.ndarray
    density_constants: np.ndarray
    distance_constants: np.ndarray
    digammas: np.ndarray
    halves: np.ndarray
    divergences: Divergences | None = None

    @classmethod
    def of(cls, posterior, log_weights, log_det_covariances, noise_traces):
        """Expectations of q, or of arrays that were set by hand.

        Parameters
        ----------
        posterior : VariationalPosterior or HandSetDensities
        log_weights : (L,), E log pi
        log_det_covariances : (S,), log|E(Lambda)^-1|
        noise_traces : (S,), reg_covar trace E Lambda
        """
        structure = posterior.structure
        expected, digammas, halves = structure.wisharts.expected_log_determinant(
            log_det_covariances, posterior.degrees_of_freedom
        )
        distances = structure.n_dimensions / posterior.mean_precision + noise_traces
        of_normal = expected
        if not structure.has_scales:
            of_normal = expected - structure.n_dimensions * _LOG_2_PI - distances
        constants = log_weights[: structure.n_components] + 0.5 * of_normal
        if structure.has_noise_component:
            constants = np.append(constants, log_weights[-1] + posterior.noise_component.log_density)
        return cls(log_weights, expected, log_det_covariances, constants, distances, digammas, halves)


@dataclass(eq=False)
class VariationalPosterior:
    """q, given the expected counts, the means and the components' coordinates; nothing of it changes.

    One q is equal to itself alone, whatever the numbers of another.

    Parameters
    ----------
    prior : MixturePrior
    counts : (K,), N_k
    centred_means : (K, P), m_k, measured from the origin
    covariance_cholesky : (S, ...), lower Cholesky factors of E(Lambda)^-1, or its standard deviations
    noise_component_counts : (L - K,), expected rows of the noise component, if there is one
    scale_sums : (K,) or None, U_k, sums of the rows' expected scales where they have any
    tails : StudentTails of the scales, or None

    Attributes
    ----------
    model : MixtureModel, of the prior
    structure : CovarianceStructure, of the prior
    noise_component : NoiseComponent or None, of the prior
    has_scales : bool, whether there are tails
    n_components, n_features, n_labels, n_coefficients : int, K, P, L and D
    coefficient_blocks, block_shapes : dict, as in the structure
    label_counts : (L,)
    group_counts : (S,), expected counts of the precision groups
    mean_precision : (K,), tau_k
    effective_degrees_of_freedom : (S,), c, with E Lambda = c A^-1
    degrees_of_freedom : (S,), nu of the Wishart factors
    whiteners : (S, ...), W with y = W_k (x - m_k), W' W = E Lambda
    noise_maps : (S, ...), W times the standard deviations of the known noise on x
    known_noise : (S, ...), what the known noise on x adds to s(y) of a row
    whitened_prior_mean : (K, P), W_k (m0 - m_k)
    whitened_prior_root : (S, ...), of a proper prior
        M with M M' its C0 in the precision groups' whitened coordinates, lower triangular. C0 itself is not
        taken there: where it is nearly singular, its own rounding would count.
    second_moments_of_prior : (S, ...), what a proper prior adds to the second moments in these coordinates
    """

    prior: MixturePrior
    counts: np.ndarray
    centred_means: np.ndarray
    covariance_cholesky: np.ndarray
    noise_component_counts: np.ndarray = field(default_factory=lambda: NO_COUNTS)
    scale_sums: np.ndarray | None = None
    tails: StudentTails | None = None

    def __post_init__(self):
        prior, structure = self.prior, self.prior.structure
        self.model, self.structure = prior.model, structure
        self.noise_component, self.has_scales = prior.noise_component, self.tails is not None
        self.n_components, self.n_features = self.centred_means.shape
        self.n_labels, self.n_coefficients = structure.n_labels, structure.layout.n_coefficients
        self.coefficient_blocks, self.block_shapes = structure.layout.blocks, structure.layout.block_shapes
        self.label_counts = self.counts
        if structure.has_noise_component:
            self.label_counts = np.concatenate([self.counts, self.noise_component_counts])
        self.whiteners = structure.whiteners(self.covariance_cholesky)
        self.whitened_prior_mean = structure.transformed(self.whiteners, prior.mean - self.centred_means)
        if prior.learned is not None:
            prior = self.prior = prior.learned.given(prior, self)
        self.mean_precision = prior.mean_precision + self.mean_counts
        self.group_counts = structure.layout.per_group(self.counts)
        self.effective_degrees_of_freedom = prior.degrees_of_freedom + structure.power * self.group_counts
        self.degrees_of_freedom = self.effective_degrees_of_freedom + prior.freedom_kept
        self.noise_maps = self.whiteners * prior.noise_deviations
        self.known_noise = structure.power * structure.gram(self.noise_maps)
        if not prior.flat:
            self.whitened_prior_root = structure.composed(self.whiteners, prior.covariance_cholesky)
            of_means = structure.sum_of_squares(self.whitened_prior_mean, prior.mean_precisions)
            self.second_moments_of_prior = structure.gram(self.whitened_prior_root) + of_means

    def __reduce__(self):
        # Cached expectations are left out, because they are cheap to compute again.
        return type(self), tuple(getattr(self, each.name) for each in fields(self))

    @property
    def coefficients_of_labels(self):
        """Coordinates of every label's coefficients, a list of L int arrays."""
        return self.structure.layout.places_of_labels

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

    # Whitened coordinates.

    def units_of_columns(self):
        """Standard deviations of the features about the origin, (P,), by which rows are compared."""
        counts = self.counts[:, None]
        deviations = self.structure.layout.per_component(self.structure.deviations(self.covariance_cholesky))
        squares = np.square(deviations) + np.square(self.centred_means)
        return np.sqrt((counts * squares).sum(axis=0) / counts.sum())

    @property
    def amplification(self):
        """Largest factor by which whitening amplifies the rounding of a component's rows; at least one."""
        deviations = self.structure.deviations(self.covariance_cholesky)
        return self.structure.transformed(np.abs(self.whiteners), deviations).max()

    @cached_property
    def second_moment_origin(self):
        """O of the features (`covariance_structures`), (S, ...)."""
        return self.structure.identity_statistic - self.known_noise

    # Expectations, and divergences from the prior.

    @cached_property
    def complement_variance(self):
        """a/c, the eigenvalue of E(Lambda)^-1 in the directions that projected rows leave out, (S,)."""
        inverse_scale = self.prior.complement.inverse_scale(self.group_counts)
        return inverse_scale / self.effective_degrees_of_freedom

    @property
    def log_shares(self):
        """E log pi of weights that are scaled to sum to one, (L,)."""
        return self.prior.weights.expected_log_shares(self.label_counts)

    @cached_property
    def expectations(self):
        """Expectations of the weights and of the log densities, with the divergences: Expectations."""
        prior, structure, nu_0 = self.prior, self.structure, self.prior.degrees_of_freedom
        wisharts, n_dimensions, complement = structure.wisharts, structure.n_dimensions, prior.complement
        log_weights, of_weights = prior.weights.expectations(self.label_counts)
        log_det_covariances = structure.log_determinants(self.covariance_cholesky)
        noise_traces = structure.diagonal(self.known_noise).sum(axis=1)
        if prior.is_projected:
            log_det_covariances += complement.log_determinant(self.complement_variance)
            noise_traces += complement.noise_trace(self.complement_variance)
        expected = Expectations.of(self, log_weights, log_det_covariances, noise_traces)
        # E log|.| of the precision of mu_k in q, without P log tau_k. Under a proper prior it is E
        # log|Lambda|.
        in_q = -log_det_covariances if prior.independent else expected.log_det_precisions
        if prior.flat:
            means = 0.5 * (n_dimensions * (np.log(self.mean_precision) - _LOG_2_PI - 1.0) + in_q)
            precisions = wisharts.expected_log_density(
                self.degrees_of_freedom, log_det_covariances, expected.log_det_precisions
            )
        else:
            ratio = prior.mean_precision / self.mean_precision
            means = n_dimensions * (ratio - 1.0 - np.log(ratio))
            means += prior.mean_precision * np.square(self.whitened_prior_mean).sum(axis=1)
            if prior.independent:
                means += in_q - expected.log_det_precisions
            means *= 0.5
            of_scales = structure.scale_divergences(self.whitened_prior_root * (1.0 / math.sqrt(nu_0)))
            if prior.is_projected:
                of_scales += complement.scale_divergence(self.complement_variance, nu_0)
            precisions = wisharts.kl_divergence(expected.halves, expected.digammas, 0.5 * nu_0, of_scales)
        total = math.fsum([of_weights, *means.tolist(), *precisions.tolist()])
        if self.tails is not None:
            total += self.tails.negative_log_prior()
        if prior.learned is not None:
            total -= prior.learned.bound(prior)
        expected.divergences = Divergences(of_weights, means, precisions, total)
        return expected

    @property
    def divergences(self):
        """Divergences of weights, means and precisions from the prior: Divergences."""
        return self.expectations.divergences

    @property
    def described(self):
        """The size of the mixture in words."""
        return f"{self.n_components} components in {self.n_features} features"

    def n_coefficients_with(self, n_components):
        """D of a mixture of so many components of the same type, an int."""
        return self.structure.resized(n_components).layout.n_coefficients

    @property
    def is_known_alone(self):
        """Whether a single component has neither labels nor tails, which importance sampling may miss."""
        return not (self.structure.has_noise_component or self.structure.n_tails)

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
        excess = structure.layout.between_components(self._excess_of_groups)
        if not structure.has_scales:  # There it is the variance of the scales' coefficients.
            of_means = 0.5 * structure.n_dimensions / np.square(self.mean_precision)
            excess.flat[:: self.n_components + 1] += of_means
        return np.pad(excess, (0, 1)) if structure.has_noise_component else excess

    @cached_property
    def _excess_of_groups(self):
        """What log|Lambda| contributes to the covariance of the intercepts of a group's components, (S,)."""
        halves = self.expectations.halves
        variance = 0.25 * self.structure.wisharts.log_determinant_excess_variance(halves)
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
        parts = [self.structure.features.complete_information(self.mean_precision, quadratic_information)]
        if self.structure.n_tails:
            parts.append(self.tails.information(self.counts))
        if self.structure.parts.learns_mean_precision:
            parts.append([LearnedInformation(self).of_mean_precision])
        return np.concatenate(parts)

    @cached_property
    def weight_coordinates(self):
        """Coordinates of the coefficients that the expected counts depend on, int array (m,)."""
        all_coordinates, blocks = np.arange(self.n_coefficients), self.structure.layout.blocks
        return np.append(all_coordinates[blocks["intercept"]], all_coordinates[blocks["mean_precision"]])

    def own_intercepts(self, coefficients):
        """Changes of the intercepts less those by b0, which leave the counts: (..., m) -> (..., L)."""
        if not self.structure.parts.learns_mean_precision:
            return coefficients
        by_mean_precision = LearnedInformation(self).intercepts
        return coefficients[..., :-1] - coefficients[..., -1:] * by_mean_precision

    @cached_property
    def counts_by_mean_precision(self):
        """Response of the expected counts to the intercepts that a learned log b0 changes, (L,)."""
        return self.count_response(LearnedInformation(self).intercepts)

    def count_response(self, intercepts):
        """(V_pi + C)^-1 b, the response of the expected counts to intercepts: (..., L) -> (..., L)."""
        flat = intercepts.reshape(-1, intercepts.shape[-1]).T
        solved = lapack.dpotrs(self.intercept_root, flat, lower=True)[0]
        return solved.T.reshape(intercepts.shape)

    # The M-step, and differences and steps in the coordinates of the statistics.

    def with_known_noise(self, moments):
        """Moments of rows, completed by the known noise on x."""
        n_rows = self.structure.layout.per_group(moments.mean_counts(self.n_components))
        second = moments.second + n_rows[self.structure.statistic_axes] * self.known_noise
        return Moments(moments.counts, moments.first, second, moments.scale_sums, moments.log_scale_sums)

    def with_prior(self, moments):
        """Moments of the data, completed by the known noise on x and by the prior."""
        completed = self.with_known_noise(moments)
        if not self.prior.flat:
            completed.first = moments.first + self.prior.mean_precision * self.whitened_prior_mean
            completed.second += self.second_moments_of_prior
        return completed

    def padded(self, prior):
        """The same components, and empty ones after them: as many as a prior has in all.

        Parameters
        ----------
        prior : MixturePrior of as many components or more
        """
        n_empty = prior.structure.n_components - self.n_components
        factors = self.covariance_cholesky
        if prior.structure.has_own_precisions:
            # A learned C0 is the one that the components tell: it stays the optimum with empty ones.
            told = prior if prior.learned is None else self.prior
            of_prior = told.covariance_cholesky / np.sqrt(prior.degrees_of_freedom)
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
        """The posterior that the complete moments of the E-step at this one lead to.

        Complete moments hold the prior with this posterior's hyperparameters. Where these
        are learned, they change and the components follow.

        Raises
        ------
        DegenerateComponentError
            Where a component has no points or too few for a proper precision under the flat prior, or its
            covariance is singular to working precision.
        """
        return self._with_statistics(moments, self.prior.learned)

    def _with_statistics(self, moments, learned=None):
        """The posterior with these complete moments, or where its components follow what is learned."""
        prior, structure, tails = self.prior, self.structure, self.tails
        counts, mean_counts = moments.counts[: self.n_components], moments.mean_counts(self.n_components)
        if prior.flat:
            has_rows = (counts >= _EMPTY_COUNT) & (mean_counts >= _EMPTY_COUNT)
            _require(has_rows, empty_component_message, counts, prior)
        if moments.log_scale_sums is not None:
            tails = tails.updated(counts, moments.log_scale_sums)
        freedom = prior.degrees_of_freedom + structure.power * structure.layout.per_group(counts)
        if prior.flat:
            is_proper = structure.wisharts.is_proper(freedom, freedom + prior.freedom_kept)
            _require(is_proper, improper_precision_message, counts, prior)
        mean_precision = prior.mean_precision + mean_counts
        shift = moments.first / mean_precision[:, None]
        scatter = moments.second - structure.sum_of_squares(shift, mean_precision)
        if learned is not None:
            distances = self.whitened_prior_mean - shift
            distances, scatter = learned.followed(self, mean_counts, freedom, distances, scatter)
            shift = self.whitened_prior_mean - distances
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
            return structure.features.from_moments(
                moments.counts, moments.first, moments.second, self.second_moment_origin
            )
        of_tails = self.tails.feature_sums(moments.counts[: self.n_components], moments.log_scale_sums)
        return structure.features.from_moments(
            moments.counts,
            moments.first,
            self.with_known_noise(moments).second,
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
        return structure.features.from_moments(
            counts, moments.first, second, structure.identity_statistic, *of_scales
        )

    def difference(self, other):
        """Statistics of another posterior less those of this one, in the coordinates of this one: (D,)."""
        structure = self.structure
        shift = structure.transformed(self.whiteners, other.centred_means - self.centred_means)
        covariances = structure.gram(structure.composed(self.whiteners, other.covariance_cholesky))
        second = other.effective_degrees_of_freedom[structure.statistic_axes] * covariances
        mean_precision = self.prior.mean_precision + other.mean_counts  # Under the prior of this one.
        second = second + structure.sum_of_squares(shift, mean_precision)
        moments = Moments(other.label_counts, mean_precision[:, None] * shift, second)
        if self.tails is not None:
            sums = other.tails.sums_of(other.counts, other.tails.feature_sums_of_q())
            moments = replace(moments, scale_sums=other.scale_sums, log_scale_sums=sums)
        return self.residual(moments)

    def residual_at(self, other, moments):
        """EM(s) - s of another posterior, given its moments, in the coordinates of this one: (D,)."""
        structure, n_components, of_scales = self.structure, self.n_components, ()
        own = other.effective_degrees_of_freedom[structure.statistic_axes] * structure.identity
        maps = structure.composed(self.whiteners, other.covariance_cholesky)
        shifts = structure.transformed(self.whiteners, other.centred_means - self.centred_means)
        counts = moments.counts - other.label_counts
        by_shifts = (moments.mean_counts(n_components) - other.mean_counts)[:, None] * shifts
        first = structure.transformed(maps, moments.first) + by_shifts
        mixed = structure.outer_products(first - 0.5 * by_shifts, shifts)
        second = structure.congruence(maps, moments.second - own) + mixed + structure.transposed(mixed)
        if self.tails is not None:
            sums = other.tails.sums_of(other.counts, other.tails.feature_sums_of_q())
            of_tails = self.tails.feature_sums(counts[:n_components], moments.log_scale_sums - sums)
            of_scales = moments.scale_sums - other.scale_sums, of_tails
        return structure.features.from_moments(
            counts, first, second, structure.identity_statistic, *of_scales
        )

    def after_step(self, change):
        """The posterior whose statistics differ by ``change``, (D,); counts do not fall below zero.

        Raises
        ------
        DegenerateComponentError
            Where there is no such posterior.
        """
        structure = self.structure
        if structure.parts.learns_mean_precision:
            change = LearnedInformation(self).step_of_rows(change)
        own = self.effective_degrees_of_freedom[structure.statistic_axes] * structure.identity
        counts, first, second, of_scales, of_tails = structure.features.to_moments(change)
        moments = Moments(np.maximum(self.label_counts + counts, 0.0), first, own + second)
        if self.tails is not None:
            of_components = moments.counts[: self.n_components]
            sums = self.tails.sums_of(of_components, self.tails.feature_sums_of_q() + of_tails)
            scale_sums = np.maximum(self.scale_sums + of_scales, 0.0)
            moments = replace(moments, scale_sums=scale_sums, log_scale_sums=sums)
        return self._with_statistics(moments)

    def distance(self, moments):
        """Length of EM(s) - s in mean-field standard deviations, given the moments of the E-step at q."""
        structure, freedom = self.structure, self.effective_degrees_of_freedom
        counts = moments.counts - self.label_counts
        scales = counts[: self.n_components]
        of_groups = structure.layout.per_group(scales)
        expected = (freedom + structure.power * of_groups)[structure.statistic_axes] * structure.identity
        second = (moments.second - expected).reshape(len(freedom), -1)
        square = self.prior.weights.variance_of_log(self.label_counts, counts)
        square += self._excess_of_groups.dot(np.square(of_groups))
        square += (moments.first / self.mean_precision[:, None]).ravel().dot(moments.first.ravel())
        square += 0.5 * (second / freedom[:, None]).ravel().dot(second.ravel())
        if self.tails is not None:
            scales = moments.scale_sums - self.scale_sums
        if structure.n_tails:
            tails = self.tails.feature_sums(moments.counts[: self.n_components], moments.log_scale_sums)
            tails = tails - self.tails.feature_sums_of_q()
            square += (np.square(tails) / self.tails.information(self.counts)).sum()
        relative = scales / self.mean_precision
        square += 0.5 * structure.n_dimensions * relative.dot(relative)
        return math.sqrt(square)


def _require(is_proper, message, counts, prior):
    """Raise DegenerateComponentError for the first component or group that has no proper posterior."""
    if not is_proper.all():
        raise DegenerateComponentError(message(int(is_proper.argmin()), counts, prior))
