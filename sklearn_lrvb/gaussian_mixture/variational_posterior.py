"""The variational posterior q(pi) prod_k q(mu_k, Lambda_k) and its moments.

*Conventions.* Shapes: K components, P features. Positions are measured from the origin of the
centred rows (`row_blocks`), so that nothing is lost for data far from zero. q is a function of the
expected counts N_k, the means m_k and the root of E(Lambda_k)^-1 = A_k / c_k alone; the update of a
sweep and the step of Newton's method both end in `VariationalPosterior.moved`.

Both factorizations share every moment but E log|Lambda| (the paper's q(mu) q(Lambda) has one more
degree of freedom in its Wishart factor than the joint q(mu, Lambda)).
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sklearn_lrvb.exponential_families import wishart
from sklearn_lrvb.exponential_families.symmetric import cholesky_equilibrated, cholesky_factor

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


@dataclass(frozen=True)
class Moments:
    """Weighted moments of rows in every component's frame.

    Attributes
    ----------
    counts : (K,), sums of weights
    first : (K, P), sums of weight y
    second : (K, P, P), sums of weight y y'
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
    degrees_of_freedom : float, nu0; P under the flat prior
    covariance : (P, P), C0, the inverse of the Wishart's scale; 0 under the flat prior
    independent : bool, q(mu) q(Lambda) (the paper) instead of q(mu, Lambda)
    reg_covar : float, variance of known noise on every coordinate of x
    """

    weights: object
    structure: object
    mean_precision: float
    mean: np.ndarray
    degrees_of_freedom: float
    covariance: np.ndarray
    independent: bool
    reg_covar: float

    @property
    def flat(self):
        """Improper, constant in mu, Lambda and log pi."""
        return self.mean_precision == 0

    @cached_property
    def log_det_covariance(self):
        """log|C0| of a proper prior."""
        return 2.0 * np.log(np.diag(cholesky_factor(self.covariance))).sum()


@dataclass(frozen=True)
class VariationalPosterior:
    """q, given the expected counts, the means and the components' frames.

    Attributes
    ----------
    prior : MixturePrior
    counts : (K,), N_k
    offsets : (K, P), m_k, measured from the origin
    roots : (K, P, P), lower Cholesky factors of E(Lambda_k)^-1
    """

    prior: MixturePrior
    counts: np.ndarray
    offsets: np.ndarray
    roots: np.ndarray

    @property
    def n_components(self):
        return len(self.counts)

    @property
    def n_features(self):
        return self.offsets.shape[1]

    @property
    def structure(self):
        return self.prior.structure

    @cached_property
    def whiteners(self):
        """W_k with y = W_k (x - m_k), W_k' W_k = E Lambda_k, (K, P, P)."""
        return self.structure.whiteners(self.roots)

    @cached_property
    def second_moment_origin(self):
        """O_k of the features (`covariance_structures`), (K, P, P)."""
        return self.structure.second_moment_origin(self.whiteners, self.prior.reg_covar)

    @cached_property
    def mean_precision(self):
        """tau_k, (K,)."""
        return self.prior.mean_precision + self.counts

    @cached_property
    def information(self):
        """c_k, with E Lambda_k = c_k A_k^-1, (K,)."""
        return self.structure.information(self.counts, self.prior.degrees_of_freedom)

    @cached_property
    def degrees_of_freedom(self):
        """nu_k of the Wishart factors, (K,)."""
        return self.structure.degrees_of_freedom(self.information, self.prior.independent)

    @cached_property
    def _log_det_inverse_scale(self):
        log_det = self.structure.log_determinants(self.roots)
        return log_det + self.n_features * np.log(self.degrees_of_freedom)

    @cached_property
    def expected_log_determinant(self):
        """E log|Lambda_k|, (K,)."""
        return wishart.expected_log_determinant(
            self.degrees_of_freedom, self._log_det_inverse_scale, self.n_features
        )

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
        """C_k: what log|Lambda_k| and tau_k add to the variance of an intercept, (K,)."""
        log_det_variance = self.structure.log_determinant_excess_variance(self.degrees_of_freedom)
        return 0.25 * log_det_variance + 0.5 * self.n_features / self.mean_precision**2

    @cached_property
    def intercept_root(self):
        """Lower Cholesky factor of V_pi + C, (K, K)."""
        return cholesky_equilibrated(self.log_weight_covariance + np.diag(self.intercept_excess))[0]

    @cached_property
    def log_density_constants(self):
        """rho_nk + |y_nk|^2/2, (K,): all of the log density that does not depend on x."""
        noise = self.prior.reg_covar * np.einsum("kpq,kpq->k", self.whiteners, self.whiteners)
        return (
            self.expected_log_weights
            + 0.5 * self.expected_log_determinant
            - 0.5 * self.n_features * (_LOG_2_PI + 1.0 / self.mean_precision)
            - 0.5 * noise
        )

    def _prior_in_frame(self):
        """Whitened distance m0 - m_k, (K, P), and W_k C0 W_k', (K, P, P)."""
        distance = np.einsum("kpq,kq->kp", self.whiteners, self.prior.mean - self.offsets)
        scatter = self.whiteners @ self.prior.covariance @ self.whiteners.transpose(0, 2, 1)
        return distance, scatter

    @cached_property
    def kl_divergence(self):
        """KL(q || prior) of weights, means and precisions; a flat prior's density counts as 1."""
        components = self._expected_log_density()
        if not self.prior.flat:
            components = components - self._expected_log_prior()
        return self.prior.weights.kl_divergence(self.counts) + components.sum()

    def _expected_log_density(self):
        """E_q log q(mu_k, Lambda_k), (K,)."""
        n_features = self.n_features
        log_det_mean_precision = (
            -self.structure.log_determinants(self.roots)
            if self.prior.independent
            else self.expected_log_determinant
        )
        means = 0.5 * n_features * (np.log(self.mean_precision) - _LOG_2_PI - 1.0) + (
            0.5 * log_det_mean_precision
        )
        precisions = wishart.expected_log_density(
            self.degrees_of_freedom,
            self._log_det_inverse_scale,
            self.expected_log_determinant,
            self.degrees_of_freedom * n_features,
            n_features,
        )
        return means + precisions

    def _expected_log_prior(self):
        """E_q log p(mu_k, Lambda_k), (K,)."""
        n_features, prior = self.n_features, self.prior
        distance, scatter = self._prior_in_frame()
        spread = n_features / self.mean_precision + np.einsum("kp,kp->k", distance, distance)
        means = 0.5 * n_features * (np.log(prior.mean_precision) - _LOG_2_PI) + 0.5 * (
            self.expected_log_determinant - prior.mean_precision * spread
        )
        precisions = wishart.expected_log_density(
            prior.degrees_of_freedom,
            prior.log_det_covariance,
            self.expected_log_determinant,
            np.einsum("kpp->k", scatter),
            n_features,
        )
        return means + precisions

    def with_prior(self, moments):
        """Moments of the data, completed by the known noise on x and by the prior."""
        distance, scatter = self._prior_in_frame()
        noise = np.eye(self.n_features) - self.second_moment_origin
        weight = self.prior.mean_precision
        outer = distance[:, :, None] * distance[:, None, :]
        return Moments(
            moments.counts,
            moments.first + weight * distance,
            moments.second + moments.counts[:, None, None] * noise + weight * outer + scatter,
        )

    def moved(self, moments):
        """The posterior whose complete moments (prior included) in this frame are given.

        Raises
        ------
        DegenerateComponentError
            Where a component is left without points under the flat prior, or its covariance is
            singular to working precision.
        """
        counts, prior = moments.counts, self.prior
        mean_precision = prior.mean_precision + counts
        empty = np.flatnonzero(~(counts >= (_EMPTY_COUNT if prior.flat else 0.0)))
        if empty.size:
            raise DegenerateComponentError(_empty_component_message(empty[0], counts, prior))
        shift = moments.first / mean_precision[:, None]
        scatter = moments.second - (mean_precision[:, None, None] * shift[:, :, None] * shift[:, None, :])
        information = self.structure.information(counts, prior.degrees_of_freedom)
        factors = np.empty_like(self.roots)
        for k, covariance in enumerate(scatter / information[:, None, None]):
            factor = cholesky_factor(covariance)
            if factor is None:
                raise DegenerateComponentError(
                    _singular_component_message(k, counts[k], self.n_features, prior)
                )
            factors[k] = factor
        return VariationalPosterior(
            prior,
            counts,
            self.offsets + np.einsum("kpq,kq->kp", self.roots, shift),
            self.roots @ factors,
        )


def _empty_component_message(component, counts, prior):
    return (
        f"Component {component} is empty (expected count {counts[component]:.3g} of "
        f"{counts.sum():.6g} points) and has no posterior under "
        f"prior={'flat' if prior.flat else 'conjugate'!r}. (a) Lower n_components (now "
        f"{len(counts)}). (b) Use prior='conjugate', where an empty component falls back to the "
        "prior. (c) Try another random_state, or raise n_init."
    )


def _singular_component_message(component, count, n_features, prior):
    remedy = " (b) Use prior='conjugate'." if prior.flat else ""
    return (
        f"{ILL_DEFINED_COVARIANCE} Here: the covariance of component"
        f" {component} (expected count {count:.3g}, {n_features} features) is singular "
        f"to working precision, with reg_covar={prior.reg_covar:g}. (a) Drop constant or "
        f"duplicated columns and repeated rows.{remedy}"
    )
