"""Draws of the parameters whose means and covariances are those of linear response.

All correlations of a draw are those of its coefficients beta ~ N(0, M^-1). A draw is a function of its
*responses* g = (l, u, B), which are linear in beta: logits of sticks, scaled means and changes of precisions.
Each response becomes a quantile of q's own family (a Gaussian copula):

* weights through their stick-breaking form. The logit l of a stick v ~ Beta(a, b) responds by J beta,
  and has the excess Cov_q(l) - J R J' of the general rule Cov(l) = Cov_q(l) + J (M^-1 - R) J'. It becomes the
  logit of a Beta(s a, s b) variable with this variance; s = 1 where no information is missing;
* precisions through Bartlett's factors L or as gamma variables (`random_factors`), in the frame where they
  are the identity on average;
* means given the precisions, mu = m + W^-1 L^-T S u, so that they have the tails of Student's t. The scale S
  is a diagonal matrix that makes the variances of mu those of linear response and of Student's excess.

Where no information is missing, as with one component without holes, S = I, and these are draws of the exact
posterior. Otherwise the means of means, and both moments of weights and precisions, have relative errors of
order 1/N_k.
"""

from functools import cached_property

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import polygamma

from sklearn_lrvb.exponential_families.quantiles import log_beta_quantile_pair
from sklearn_lrvb.gaussian_mixture.posterior_sampling.parameter_draws import ParameterDraws
from sklearn_lrvb.symmetric_matrices import gram_root

_LEAST_SQUARED_SCALE = 0.25  # Of means, where nearly all of their variance would be that of the precisions.
_NEWTON_STEPS = 30  # More steps than `beta_size` needs, because they converge quadratically.


def beta_size(a, b, logit_variance):
    """s for which the logit of a Beta(s a, s b) variable has a given variance: (n,), (n,), (n,) -> (n,).

    Newton's method for log variance as a function of log s, which is convex with a slope between -2 and -1:
    after the first step it converges from one side.
    """
    log_size = np.zeros_like(logit_variance)
    for _ in range(_NEWTON_STEPS):
        own_a, own_b = a * np.exp(log_size), b * np.exp(log_size)
        variance = polygamma(1, own_a) + polygamma(1, own_b)
        slope = (own_a * polygamma(2, own_a) + own_b * polygamma(2, own_b)) / variance
        log_size -= np.log(variance / logit_variance) / slope
    return np.exp(log_size)


class PosteriorCopula:
    """The distribution of weights, means and precisions that linear response describes.

    Parameters
    ----------
    targets : Targets
    information : ObservedInformation, positive definite
    """

    def __init__(self, targets, information):
        self._targets = targets
        self._posterior = targets.posterior
        self._information = information

    @property
    def _structure(self):
        return self._posterior.structure

    @property
    def n_breaks(self):
        """Number of breaks of the stick, B."""
        return len(self.logit_deviations)

    @property
    def n_responses(self):
        """Number of responses of a draw, B + K P + S Q: of free parameters."""
        return self.n_breaks + self._structure.n_coefficients - self._structure.n_components

    @property
    def n_normals(self):
        """Number of standard normal variables of a draw."""
        return self._structure.n_coefficients + self.n_breaks

    def responses(self, normals):
        """Responses of standard normal variables: (n, n_normals) -> (n, n_responses)."""
        for_coefficients, for_sticks = np.split(normals, [self._structure.n_coefficients], axis=1)
        coefficients = self._information.correlated(for_coefficients.T).T
        intercepts, others = np.split(coefficients, [self._structure.n_components], axis=1)
        logits = intercepts @ self.logit_jacobian + for_sticks @ self.logit_excess_root
        return np.hstack([logits, others])

    def split(self, responses):
        """Logits (n, B), scaled means (n, K, P) and changes of precisions (n, S, ...)."""
        structure = self._structure
        logits, others = np.split(responses, [self.n_breaks], axis=-1)
        no_intercepts = np.zeros((*others.shape[:-1], structure.n_components))
        _, linear, quadratic = structure.layout.split(np.concatenate([no_intercepts, others], axis=-1))
        return logits, linear, structure.own_precision_response(quadratic)

    def draws(self, responses):
        """The draws of some responses, (n, n_responses) -> ParameterDraws."""
        logits, linear, changes = self.split(responses)
        scaled_means = self.mean_scale * linear
        return ParameterDraws(*self._sticks_of(logits), self.random_factors.factors(changes), scaled_means)

    @cached_property
    def _deviations(self):
        """Standard deviations of the coefficients, (D,)."""
        return self._information.deviations

    # Means.

    @cached_property
    def mean_scale(self):
        """The diagonal of S, (K, P)."""
        posterior, structure = self._posterior, self._structure
        own = np.square(self._deviations[self._targets["means"].coordinates()])
        own = own.reshape(posterior.centred_means.shape)
        student = structure.precision_factors.mean_excess_factor(posterior.effective_degrees_of_freedom)
        student = structure.layout.per_component(student)[:, None]
        back = structure.transposed(self.random_factors.mean_square_map)
        needed = structure.transformed(back, own + student / posterior.mean_precision[:, None])
        # A variance that is infinite (an excess of 0) or mostly due to the tails says little about the bulk.
        describes_bulk = (student > 0.0) & (student < 1.0)
        return np.sqrt(np.where(describes_bulk, np.maximum(needed / own, _LEAST_SQUARED_SCALE), 1.0))

    # Weights.

    @property
    def _sticks(self):
        return self._posterior.prior.weights

    @cached_property
    def logit_jacobian(self):
        """J' = (V_pi + C)^-1 Cov(log pi, l), (K, number of breaks)."""
        return self._posterior.count_response(self._logit_covariance).T

    @property
    def _logit_covariance(self):
        return self._sticks.logit_covariance_with_log(self._posterior.counts)

    @cached_property
    def logit_excess_root(self):
        """Y with Y' Y = Cov_q(l) - J R J'."""
        half = solve_triangular(self._posterior.intercept_root, self._logit_covariance.T, lower=True)
        excess = np.diag(self._sticks.logit_variance(self._posterior.counts)) - half.T @ half
        return gram_root(excess) if len(excess) else excess  # A single component has no breaks.

    @cached_property
    def logit_deviations(self):
        """Standard deviations of the logits by linear response, one for every break of the stick."""
        root = self._information.covariance_root(self._targets["weights"].coordinates())
        explained = np.square(root @ self.logit_jacobian).sum(axis=0)
        return np.sqrt(explained + np.square(self.logit_excess_root).sum(axis=0))

    @cached_property
    def beta_parameters(self):
        """Parameters of the beta distributions of the sticks, a pair of (number of breaks,)."""
        stick, rest = self._sticks.sticks(self._posterior.counts)
        size = beta_size(stick, rest, np.square(self.logit_deviations))
        return size * stick, size * rest

    def _sticks_of(self, logits):
        """log v and log(1 - v) of logits, (n, B)."""
        return log_beta_quantile_pair(logits / self.logit_deviations, *self.beta_parameters)

    # Precisions.

    @cached_property
    def random_factors(self):
        """`RandomFactors` of the precisions."""
        return self._structure.random_factors_type(
            self._precision_deviations, self._posterior.effective_degrees_of_freedom
        )

    @cached_property
    def _precision_deviations(self):
        """Standard deviations of precisions in their own frames, (S, ...)."""
        structure, coordinates = self._posterior.structure, self._targets["precisions"].coordinates()
        deviations = self._deviations[coordinates].reshape(
            structure.layout.n_precision_groups, structure.n_quadratic
        )
        return np.abs(structure.own_precision_response(deviations))
