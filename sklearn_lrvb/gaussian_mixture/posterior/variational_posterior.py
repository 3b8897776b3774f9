"""The variational posterior q(pi) prod_k q(mu_k, Lambda_k) and its moments.

*Conventions.* Shapes: K components, P features. Positions are measured from the origin of the
centred rows (`row_blocks`), so that nothing is lost for data far from zero. q is a function of the
expected counts N_k, the means m_k and the covariance_cholesky of E(Lambda)^-1 = A/c alone; the update of a
sweep and the step of Newton's method both end in `VariationalPosterior.m_step`. Precisions and their
statistics come by group, one for each component or one for all (`covariance_structures`).

Both factorizations share every moment but E log|Lambda| (the paper's q(mu) q(Lambda) has more
degrees of freedom in its Wishart factor than the joint q(mu, Lambda)).
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from sklearn_lrvb.symmetric_matrices import cholesky_equilibrated

_LOG_2_PI = np.log(2.0 * np.pi)

# Expected count below which a component without a proper prior is empty: it starves by orders of magnitude
# a sweep (E log pi_k is about -1/N_k), so that the exact value does not matter.
_EMPTY_COUNT = 1e-6

# scikit-learn's words for a singular covariance; what follows them says which and why
ILL_DEFINED_COVARIANCE = (
    "Fitting the mixture model failed because some components have ill-defined empirical covariance "
    "(for instance caused by singleton or collapsed samples). Try to decrease the number of "
    "components, increase reg_covar, or scale the input data."
)


class DegenerateComponentError(ValueError):
    """A component has no proper posterior: empty, or its covariance is singular."""


def log_normal_constant(expected_log_determinant, mean_precision, n_features):
    """E log N(x; mu, Lambda^-1) but for -(x - m)' E(Lambda) (x - m)/2."""
    return 0.5 * (expected_log_determinant - n_features * (_LOG_2_PI + 1.0 / mean_precision))


@dataclass(frozen=True)
class Moments:
    """Weighted moments of rows in every component's frame.

    Attributes
    ----------
    counts : (K,), sums of weights
    first : (K, P), sums of weight y
    second : (S, ...), sums of weight s(y), y y' or what the structure keeps of it
    """

    counts: np.ndarray
    first: np.ndarray
    second: np.ndarray

    def __add__(self, other):
        return Moments(self.counts + other.counts, self.first + other.first, self.second + other.second)


@dataclass(frozen=True)
class MixturePrior:
    """The prior and the two modelling choices that act like one.

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
    resolution : (P,), standard deviations that the rows' rounding makes of a constant; below, a component
        has collapsed. Needed under the flat prior alone: a proper one keeps every variance from it
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


@dataclass(frozen=True)
class VariationalPosterior:
    """q, given the expected counts, the means and the components' frames.

    Attributes
    ----------
    prior : MixturePrior
    counts : (K,), N_k
    centred_means : (K, P), m_k, measured from the origin
    covariance_cholesky : (S, ...), roots of E(Lambda)^-1: lower Cholesky factors, or standard deviations
    """

    prior: MixturePrior
    counts: np.ndarray
    centred_means: np.ndarray
    covariance_cholesky: np.ndarray

    @property
    def n_components(self):
        return len(self.counts)

    @property
    def n_features(self):
        return self.centred_means.shape[1]

    @property
    def structure(self):
        return self.prior.structure

    @cached_property
    def whiteners(self):
        """W with y = W_k (x - m_k), W' W = E Lambda, (S, ...)."""
        return self.structure.whiteners(self.covariance_cholesky)

    @cached_property
    def second_moment_origin(self):
        """O of the features (`covariance_structures`), (S, ...)."""
        return self.structure.second_moment_origin(self.whiteners, self.prior.reg_covar)

    @cached_property
    def mean_precision(self):
        """tau_k, (K,)."""
        return self.prior.mean_precision + self.counts

    @cached_property
    def effective_degrees_of_freedom(self):
        """c, with E Lambda = c A^-1, (S,)."""
        return self.structure.effective_degrees_of_freedom(self.counts, self.prior.degrees_of_freedom)

    @cached_property
    def degrees_of_freedom(self):
        """nu of the Wishart factors, (S,)."""
        return self.structure.degrees_of_freedom(self.effective_degrees_of_freedom, self.prior.independent)

    @cached_property
    def _log_det_inverse_scale(self):
        return self.structure.log_det_inverse_scale(
            self.structure.log_determinants(self.covariance_cholesky), self.degrees_of_freedom
        )

    @cached_property
    def expected_log_determinant(self):
        """E log|Lambda|, (S,)."""
        return self.structure.expected_log_determinant(self.degrees_of_freedom, self._log_det_inverse_scale)

    @cached_property
    def expected_log_weights(self):
        """E log pi, (K,)."""
        return self.prior.weights.expected_log(self.counts)

    @cached_property
    def log_weight_covariance(self):
        """V_pi = Cov(log pi), (K, K)."""
        return self.prior.weights.covariance_of_log(self.counts)

    @cached_property
    def intercept_excess(self):
        """C: what log|Lambda| and tau_k add to the covariance of the intercepts, (K, K)."""
        structure = self.structure
        log_det_variance = structure.log_determinant_excess_variance(self.degrees_of_freedom)
        shared = structure.between_components(0.25 * log_det_variance)
        return shared + np.diag(0.5 * self.n_features / self.mean_precision**2)

    @cached_property
    def intercept_root(self):
        """Lower Cholesky factor of V_pi + C, (K, K)."""
        return cholesky_equilibrated(self.log_weight_covariance + self.intercept_excess)

    @cached_property
    def log_density_constants(self):
        """rho_nk + |y_nk|^2/2, (K,): all of the log density that does not depend on x."""
        noise = self.prior.reg_covar * self.structure.precision_trace(self.whiteners)
        constants = log_normal_constant(self.expected_log_determinant, self.mean_precision, self.n_features)
        return self.expected_log_weights + constants - 0.5 * noise

    @cached_property
    def whitened_prior_mean(self):
        """W_k (m0 - m_k), (K, P)."""
        return self.structure.transformed(self.whiteners, self.prior.mean - self.centred_means)

    @cached_property
    def whitened_prior_scatter(self):
        """s of C0 in the precision groups' frames, (S, ...)."""
        return self.structure.congruence(self.whiteners, self.prior.covariance)

    @cached_property
    def kl_divergence(self):
        """KL(q || prior) of weights, means and precisions; a flat prior's density counts as 1."""
        of_weights = self.prior.weights.kl_divergence(self.counts)
        return of_weights + self.mean_divergences.sum() + self.precision_divergences.sum()

    @cached_property
    def mean_divergences(self):
        """What the means add to `kl_divergence`, given the precisions: (K,)."""
        prior, structure = self.prior, self.structure
        log_determinant = (
            -structure.log_determinants(self.covariance_cholesky)
            if prior.independent
            else self.expected_log_determinant
        )
        densities = self._log_density_of_means(self.mean_precision, log_determinant, self.n_features)
        if prior.flat:
            return densities
        distance = self.whitened_prior_mean
        spread = self.n_features / self.mean_precision + np.einsum("kp,kp->k", distance, distance)
        return densities - self._log_density_of_means(
            prior.mean_precision, self.expected_log_determinant, prior.mean_precision * spread
        )

    def _log_density_of_means(self, mean_precision, log_determinant, spread):
        """E log N(mu_k; tau_k Lambda), (K,), given E log|Lambda| (S,) and E of the squares (K,)."""
        return 0.5 * (self.n_features * (np.log(mean_precision) - _LOG_2_PI) + log_determinant - spread)

    @cached_property
    def precision_divergences(self):
        """What the precisions add to `kl_divergence`, (S,)."""
        prior, structure = self.prior, self.structure
        densities = structure.expected_log_density(
            self.degrees_of_freedom,
            self._log_det_inverse_scale,
            self.expected_log_determinant,
            structure.expected_own_trace(self.degrees_of_freedom),
        )
        if prior.flat:
            return densities
        return densities - structure.expected_log_density(
            prior.degrees_of_freedom,
            prior.log_det_covariance,
            self.expected_log_determinant,
            structure.trace(self.whitened_prior_scatter),
        )

    def reordered(self, order):
        """The same q with its components in another order, int array (K,)."""
        covariance_cholesky = (
            self.covariance_cholesky[order] if self.structure.has_own_precisions else self.covariance_cholesky
        )
        return replace(
            self,
            counts=self.counts[order],
            centred_means=self.centred_means[order],
            covariance_cholesky=covariance_cholesky,
        )

    def with_prior(self, moments):
        """Moments of the data, completed by the known noise on x and by the prior."""
        structure, weight, distance = self.structure, self.prior.mean_precision, self.whitened_prior_mean
        noise = structure.identity_statistic - self.second_moment_origin
        prior = structure.sum_of_squares(distance, np.full(self.n_components, weight))
        prior += self.whitened_prior_scatter
        return Moments(
            moments.counts,
            moments.first + weight * distance,
            moments.second + structure.expand(structure.per_group(moments.counts)) * noise + prior,
        )

    def m_step(self, moments):
        """The posterior whose complete moments (prior included) in this frame are given.

        Raises
        ------
        DegenerateComponentError
            Where a component is left without points under the flat prior, or its covariance is
            singular to working precision.
        """
        counts, prior, structure = moments.counts, self.prior, self.structure
        mean_precision = prior.mean_precision + counts
        empty = np.flatnonzero(~(counts >= (_EMPTY_COUNT if prior.flat else 0.0)))
        if empty.size:
            raise DegenerateComponentError(_empty_component_message(empty[0], counts, prior))
        shift = moments.first / mean_precision[:, None]
        scatter = moments.second - structure.sum_of_squares(shift, mean_precision)
        effective_degrees_of_freedom = structure.effective_degrees_of_freedom(
            counts, prior.degrees_of_freedom
        )
        improper = np.flatnonzero(~structure.is_proper(effective_degrees_of_freedom, prior.independent))
        if improper.size:
            raise DegenerateComponentError(_improper_slot_message(improper[0], counts, prior))
        factors = structure.factors(scatter / structure.expand(effective_degrees_of_freedom))
        for group, factor in enumerate(factors):
            if factor is None:
                raise DegenerateComponentError(_singular_slot_message(group, counts, prior))
        covariance_cholesky = structure.composed(self.covariance_cholesky, np.stack(factors))
        collapsed = ~np.all(structure.deviations(covariance_cholesky) > prior.resolution, axis=1)
        if collapsed.any():
            raise DegenerateComponentError(_singular_slot_message(collapsed.argmax(), counts, prior))
        centred_means = self.centred_means + structure.transformed(self.covariance_cholesky, shift)
        return VariationalPosterior(prior, counts, centred_means, covariance_cholesky)


def _empty_component_message(component, counts, prior):
    return (
        f"Component {component} is empty (expected count {counts[component]:.3g} of "
        f"{counts.sum():.6g} points) and has no posterior under "
        f"prior={'flat' if prior.flat else 'conjugate'!r}. (a) Lower n_components (now "
        f"{len(counts)}). (b) Use prior='conjugate', where an empty component falls back to the "
        "prior. (c) Try another random_state, or raise n_init."
    )


def _owner(group, counts, structure):
    """Whose precision a group's is, in words."""
    owner = f"component {group}" if structure.n_precision_groups == len(counts) else "all components together"
    count = structure.per_group(counts)[group]
    return f"{owner} (expected count {count:.3g}, {structure.n_features} features)"


def _improper_slot_message(group, counts, prior):
    return (
        f"The precision of {_owner(group, counts, prior.structure)} has no proper posterior under "
        "prior='flat': there are too few points. (a) Lower n_components. (b) Use prior='conjugate'."
    )


def _singular_slot_message(group, counts, prior):
    remedy = " (b) Use prior='conjugate'." if prior.flat else ""
    return (
        f"{ILL_DEFINED_COVARIANCE} Here: the covariance of {_owner(group, counts, prior.structure)} is "
        f"singular to working precision, with reg_covar={prior.reg_covar:g}. (a) Drop constant or "
        f"duplicated columns, and repeated rows or rows of great weight.{remedy}"
    )
