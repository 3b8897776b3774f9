"""Draws of the parameters whose means and covariances are those of linear response.

All correlations of a draw are those of its coefficients beta ~ N(0, M^-1). A draw is a function of its
*responses* g = (l, u, B), which are linear in beta: logits of sticks, scaled means and changes of precisions.
Each response becomes a quantile of q's own family (a Gaussian copula):

* weights through their stick-breaking form. The logit l of a break v ~ Beta(a, b) responds by J beta, and has
  the excess Cov_q(l) - J R J' of the general rule Cov(l) = Cov_q(l) + J (M^-1 - R) J'. It becomes the logit
  of a Beta(s a, s b) variable with this variance; s = 1 where no information is missing;
* precisions through Bartlett's factors L or as gamma variables (`random_factors`), in the frame where they
  are the identity on average;
* means given the precisions, mu = m + W^-1 L^-T u, so that they have the tails of Student's t.

Where no information is missing, as with one component without holes, these are draws of the exact posterior.
Otherwise the means of means, and both moments of weights and precisions, have relative errors of
order 1/N_k.

*The parameters* that draws stand for are in the frames of the fitted components. *Conventions.* n draws, K
components and as many labels, or one more with a background, P features, S precision groups, B breaks of the
stick (`weight_priors`). In the frame y = W_k (x - m_k) of the fitted component, a draw's precision is T_k =
L_k L_k', and its mean is d_k, given as u_k = L_k' d_k. Under a vague precision d_k is large and L_k' d_k of
order one: a product of the two would lose digits. Arrays that hold a number for every label are (n, L).
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.linalg import solve_triangular

from sklearn_lrvb.answers.targets import variance
from sklearn_lrvb.distributions.special_functions import (
    beta_size,
    log_beta_quantile_pair,
    normal_of_log_beta,
)
from sklearn_lrvb.sampling.draws import DrawArrays
from sklearn_lrvb.symmetric_matrices import gram_root

# Least standard deviation of a response. Posteriors have larger ones; estimates have none where all groups
# are alike, or where all groups of the population are here.
LEAST_DEVIATION = 1e-8


@dataclass(frozen=True)
class ParameterDraws(DrawArrays):
    """Draws of weights, means and precisions.

    Attributes
    ----------
    log_stick, log_rest : (n, B), log v and log(1 - v)
    factors : (n, S, ...), L, upper triangular or the square roots of numbers
    scaled_means : (n, K, P), u
    log_tails : (n, number of fitted degrees of freedom), log nu
    """

    log_stick: np.ndarray
    log_rest: np.ndarray
    factors: np.ndarray
    scaled_means: np.ndarray
    log_tails: np.ndarray


class GaussianCopula:
    """The distribution of weights, means and precisions that linear response describes.

    A draw has B + K P + S Q responses, and log nu of fitted degrees of freedom.

    Parameters
    ----------
    targets : Targets
    information : ObservedInformation, positive definite; or SamplingVariation, for draws of estimates
    with_excess : bool, default=True
        Whether logits have their excess: not those of estimates.

    Attributes
    ----------
    n_breaks : int, number of breaks of the stick, B
    n_normals : int, number of standard normal variables of a draw
    logit_jacobian : (L, B), J' = (V_pi + C)^-1 Cov(log pi, l)
    """

    def __init__(self, targets, information, with_excess=True):
        self.targets, self._with_excess = targets, with_excess
        self._posterior, self._information = targets.posterior, information
        self._sticks = self._posterior.prior.weights
        self._logit_covariance = self._sticks.logit_covariance_with_log(self._posterior.label_counts)
        self.n_breaks = len(self._logit_covariance)
        self.n_normals = self._posterior.n_coefficients + self.n_breaks
        self.logit_jacobian = self._posterior.count_response(self._logit_covariance).T
        self._structure = targets.posterior.structure

    @cached_property
    def drawn(self):
        """Coordinates of the coefficients that are responses: all but those of intercepts and scales."""
        blocks = self._structure.coefficient_blocks
        is_drawn = np.ones(self._posterior.n_coefficients, dtype=bool)
        is_drawn[blocks["intercept"]] = is_drawn[blocks["scale"]] = False
        return np.flatnonzero(is_drawn)

    def split(self, responses):
        """Scaled means (n, K, P) and changes of precisions (n, S, ...)."""
        structure = self._structure
        _, linear, quadratic = structure.split(self.coefficients(responses))
        return linear, structure.own_precision_response(quadratic)

    @property
    def _log_tails(self):
        """log nu of the fit, (number of fitted degrees of freedom,)."""
        tails = self._posterior.tails
        return np.zeros(0) if tails is None else np.log(tails.fitted)

    def draws(self, responses):
        """The draws of some responses, (n, n_responses) -> ParameterDraws."""
        linear, changes = self.split(responses)
        normals = self.logits(responses) / self.logit_deviations
        log_stick, log_rest = log_beta_quantile_pair(normals, *self.beta_parameters)
        log_tails = self._log_tails + responses[:, responses.shape[1] - self._structure.n_tails :]
        return ParameterDraws(log_stick, log_rest, self.random_factors.factors(changes), linear, log_tails)

    def draws_of_estimates(self, responses):
        """Draws of estimates: means are linear in the coefficients, where `draws` depend on precisions."""
        draws, structure = self.draws(responses), self.targets.posterior.structure
        changes = self.split(responses)[0]
        scaled_means = structure.transformed(structure.transposed(draws.factors), changes)
        return replace(draws, scaled_means=scaled_means)

    def responses_of(self, draws):
        """The responses of some draws, the inverse of `draws`: (n, n_responses)."""
        structure, n_draws = self._structure, len(draws)
        quadratic = -structure.entries(self.random_factors.changes(draws.factors))
        quadratic /= structure.own_precision_scale
        normals = normal_of_log_beta(draws.log_stick, draws.log_rest, *self.beta_parameters)
        log_tails = draws.log_tails - self._log_tails
        parts = (normals * self.logit_deviations, draws.scaled_means, quadratic, log_tails)
        return np.hstack([part.reshape(n_draws, -1) for part in parts])

    def responses(self, normals):
        """Responses of standard normal variables: (n, n_normals) -> (n, n_responses)."""
        for_coefficients, for_sticks = np.split(normals, [self._posterior.n_coefficients], axis=1)
        coefficients = self._information.correlated(for_coefficients.T).T
        intercepts, others = coefficients[:, : self._posterior.n_labels], coefficients[:, self.drawn]
        logits = intercepts @ self.logit_jacobian + for_sticks @ self.logit_excess_root
        return np.hstack([logits, others])

    def coefficients(self, responses):
        """The coefficients that are responses, and zeros for the others: (..., n_responses) -> (..., D)."""
        coefficients = np.zeros((*responses.shape[:-1], self._posterior.n_coefficients))
        coefficients[..., self.drawn] = responses[..., self.n_breaks :]
        return coefficients

    def logits(self, responses):
        """Logits of the breaks, (..., B)."""
        return responses[..., : self.n_breaks]

    @cached_property
    def logit_excess_root(self):
        """Y with Y' Y = Cov_q(l) - J R J'."""
        half = solve_triangular(self._posterior.intercept_root, self._logit_covariance.T, lower=True)
        excess = np.diag(self._sticks.logit_variance(self._posterior.label_counts)) - half.T @ half
        excess *= self._with_excess
        return gram_root(excess)

    @cached_property
    def logit_deviations(self):
        """Standard deviations of the logits by linear response, one for every break of the stick."""
        root = self._information.covariance_root(self.targets["weights"].coordinates())
        explained = np.square(root @ self.logit_jacobian).sum(axis=0)
        deviations = np.sqrt(explained + np.square(self.logit_excess_root).sum(axis=0))
        return np.maximum(deviations, LEAST_DEVIATION)

    @cached_property
    def beta_parameters(self):
        """Parameters of the beta distributions of the sticks, a pair of (number of breaks,)."""
        stick, rest = self._sticks.sticks(self._posterior.label_counts)
        size = beta_size(stick, rest, np.square(self.logit_deviations))
        return size * stick, size * rest

    @cached_property
    def random_factors(self):
        """`RandomFactors` of the precisions, by their standard deviations in their own frames."""
        structure = self._structure
        variances = self.targets["scales" if structure.has_scales else "covariances"]
        deviations = self._information.deviations[self.targets["precisions"].coordinates()]
        deviations = np.maximum(deviations, LEAST_DEVIATION)
        deviations = deviations.reshape(structure.n_groups, structure.n_quadratic)
        of_features = variances.on_diagonal()
        relative = np.sqrt(variance(variances, self._information)[of_features])
        relative /= variances.flat_value()[of_features]
        return structure.random_factors_type(
            np.abs(structure.own_precision_response(deviations)),
            self._posterior.effective_degrees_of_freedom,
            np.square(relative).reshape(structure.n_groups, -1),
        )
