"""Draws whose means and covariances are those of linear response, for mixtures of any kind: their weights.

All correlations of a draw are those of its coefficients beta ~ N(0, M^-1). A draw is a function of its
*responses* g, which are linear in beta: logits l of the breaks of a stick, and coefficients of the
components. Each response becomes a quantile of q's own family (a Gaussian copula). A kind of mixture says
how, but for the weights: the logit l of a break v ~ Beta(a, b) responds by J beta, and has the excess
Cov_q(l) - J R J' of the general rule Cov(l) = Cov_q(l) + J (M^-1 - R) J'. It becomes the logit of a
Beta(s a, s b) variable with this variance; s = 1 where no information is missing.

*Their density.* The responses of a draw are normal, N(0, Sigma_g), with

    Sigma_g = G M^-1 G' + the excess of the logits,

G being linear. The parameters theta are smooth functions of g, so that their log density is that of g less
log|d theta / d g|, a sum over the breaks, as a density of logit v, and over the components.

*Conventions.* n draws, L labels, D coefficients, the first L of which are intercepts; B breaks of the stick.
"""

import math
from abc import ABC, abstractmethod
from functools import cached_property

import numpy as np
from scipy.linalg import solve_triangular

from sklearn_lrvb.distributions.dirichlet import log_partition
from sklearn_lrvb.distributions.special_functions import (
    beta_size,
    log_beta_quantile_pair,
    normal_of_log_beta,
)
from sklearn_lrvb.mixture.entries import Entries
from sklearn_lrvb.symmetric_matrices import gram_root

# Least standard deviation of a response. Posteriors have larger ones; estimates have none where all groups
# are alike, or where all groups of the population are here.
LEAST_DEVIATION = 1e-8


class PosteriorCopula(ABC):
    """The distribution of parameters that linear response describes.

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
    log_scale : float, what `log_derivatives` has besides for all draws
    """

    log_scale = 0.0

    def __init__(self, targets, information, with_excess=True):
        self.targets, self._with_excess = targets, with_excess
        self._posterior, self._information = targets.posterior, information
        self._sticks = self._posterior.prior.weights
        self._logit_covariance = self._sticks.logit_covariance_with_log(self._posterior.label_counts)
        self.n_breaks = len(self._logit_covariance)
        self.n_normals = self._posterior.n_coefficients + self.n_breaks
        self.logit_jacobian = self._posterior.count_response(self._logit_covariance).T

    @property
    @abstractmethod
    def drawn(self):
        """Coordinates of the coefficients that are responses: none of those of intercepts."""

    @abstractmethod
    def draws(self, responses):
        """The draws of some responses, (n, n_responses) -> DrawArrays of the kind."""

    @abstractmethod
    def responses_of(self, draws):
        """The responses of some draws, the inverse of `draws`: (n, n_responses)."""

    @abstractmethod
    def log_derivatives(self, responses, draws):
        """log|d theta / d g| of the parameters of components, without `log_scale`: (n,).

        Parameters
        ----------
        responses : (n, n_responses)
        draws : DrawArrays of the kind, the draws of these
        """

    @abstractmethod
    def slopes(self, responses, draws, slopes):
        """Derivatives of log p(X, theta) + log|d theta / d g| in the responses that are coefficients.

        Parameters
        ----------
        responses, draws : as in `log_derivatives`
        slopes : DrawArrays of derivatives, of `MixtureModel.log_joint_and_slopes`

        Returns
        -------
        slopes : (n, n_responses - B)
        """

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

    def log_sticks(self, responses):
        """log v and log(1 - v) of the breaks, a pair of (n, B)."""
        return log_beta_quantile_pair(self.logits(responses) / self.logit_deviations, *self.beta_parameters)

    def logits_of(self, draws):
        """The logits of the breaks of draws, the inverse of `log_sticks`: (n, B)."""
        normals = normal_of_log_beta(draws.log_stick, draws.log_rest, *self.beta_parameters)
        return normals * self.logit_deviations

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


_LOG_2_PI = math.log(2.0 * math.pi)


class CopulaDensity:
    """Density of the draws of a `PosteriorCopula`.

    Parameters
    ----------
    copula : PosteriorCopula
    posterior : posterior
    root_of_coefficients : (D, D), `ObservedInformation.root`

    Attributes
    ----------
    root : (n_responses, n_responses), upper triangular, with Root Root' = Sigma_g
    """

    def __init__(self, copula, posterior, root_of_coefficients):
        self._copula = copula
        self.root = _response_root(copula, posterior.n_labels, root_of_coefficients)
        log_constant = -np.log(np.diag(self.root)).sum() - 0.5 * len(self.root) * _LOG_2_PI
        self._log_constant = log_constant - copula.log_scale

    def log_density(self, normals, responses, draws):
        """Log density, (n,).

        Parameters
        ----------
        normals : (n, n_responses), standard normal e
        responses : (n, n_responses), of `responses` at e
        draws : DrawArrays of the kind, the copula's draws of these
        """
        log_derivatives = self._log_derivatives(self._copula.logits(responses), draws).sum(axis=1)
        log_derivatives += self._copula.log_derivatives(responses, draws)
        return self._log_constant - 0.5 * np.square(normals).sum(axis=1) - log_derivatives

    def responses(self, normals):
        """g = Root e of standard normal variables e: (n, n_responses) -> (n, n_responses)."""
        return normals @ self.root.T

    def normals(self, responses):
        """e of the responses Root e: (n, n_responses) -> (n, n_responses)."""
        return solve_triangular(self.root, responses.T).T

    def _log_derivatives(self, logits, draws):
        """log of the derivative of logit v in l, of every stick: (n, B)."""
        a, b = self._copula.beta_parameters
        log_density = a * draws.log_stick + b * draws.log_rest
        log_density -= log_partition(np.stack([a, b], axis=-1))
        deviations = self._copula.logit_deviations
        return -0.5 * (np.square(logits / deviations) + _LOG_2_PI) - np.log(deviations) - log_density

    def slopes_of_log_ratio(self, normals, draws, slopes):
        """Derivatives in e of log p(X, theta) less the log density of the draws: (n, n_responses).

        Parameters
        ----------
        normals : (n, n_responses), e
        draws : DrawArrays of the kind, the copula's draws of these
        slopes : DrawArrays of derivatives, of `MixtureModel.log_joint_and_slopes`
        """
        copula, responses = self._copula, self.responses(normals)
        logits = copula.logits(responses)
        a, b = copula.beta_parameters
        log_derivatives = self._log_derivatives(logits, draws)
        # Those of the log derivatives are the normal's, less those of the logit's density.
        of_logits = (slopes.log_stick - a) * np.exp(log_derivatives + draws.log_rest)
        of_logits -= (slopes.log_rest - b) * np.exp(log_derivatives + draws.log_stick)
        of_logits -= logits / np.square(copula.logit_deviations)
        of_components = copula.slopes(responses, draws, slopes)
        return np.hstack([of_logits, of_components]) @ self.root + normals

    def scores(self, target, responses):
        """First-order changes of a target, by its name, under responses, in standard deviations: (n, d).

        They are standard normal under the copula.
        """
        scale = np.sqrt(np.square(self._moves(target, self.root.T)).sum(axis=0))
        return self._moves(target, responses) / np.where(scale > 0, scale, np.inf)

    def _moves(self, target, responses):
        """First-order changes of a target, by its name or of `Entries`, (n, d)."""
        if not isinstance(target, Entries):
            return self._changes(target, responses)
        return sum(sign * self._changes(name, responses)[:, [entry]] for name, entry, sign in target.terms)

    def _changes(self, name, responses):
        """First-order changes of a flat target, (n, d)."""
        copula, target = self._copula, self._copula.targets[name]
        logits = copula.logits(responses)
        if target.block == "intercept":
            a, b = copula.beta_parameters
            share = a / (a + b)
            weights = copula.targets.posterior.prior.weights
            changes = weights.log_weights(logits * (1.0 - share), -logits * share)
            return changes @ target.log_weight_jacobian.T
        return target.responses(copula.coefficients(responses))


def _response_root(copula, n_labels, root):
    """Root with Root Root' = Sigma_g, upper triangular.

    The rows of A, A A' = M^-1, are those of intercepts, which depend on all standard normal variables, and of
    other coefficients, which depend on the variables after the first L. Given the latter, the logits have a
    covariance of their own, which is small.
    """
    if len(copula.drawn) < len(root) - n_labels:  # Scales are left out: their rows make others triangular.
        of_responses = np.vstack([copula.logit_jacobian.T @ root[:n_labels], root[copula.drawn]])
        excess = np.zeros((len(of_responses), len(copula.logit_excess_root)))
        excess[: copula.n_breaks] = copula.logit_excess_root.T
        return _upper_root(np.hstack([of_responses, excess]))
    of_intercepts, others = root[:n_labels], root[n_labels:, n_labels:]
    of_logits = copula.logit_jacobian.T @ of_intercepts
    given_others = np.hstack([of_logits[:, :n_labels], copula.logit_excess_root.T])
    own = _upper_root(given_others)
    below = np.zeros((len(others), len(own)))
    return np.block([[own, of_logits[:, n_labels:]], [below, others]])


def _upper_root(rows):
    """The upper triangular U with U U' = A A' and a positive diagonal: (m, n) -> (m, m)."""
    # The triangular factor of the columns in the other order is lower triangular.
    root = np.linalg.qr(rows[::-1].T, mode="r")[::-1, ::-1].T
    return np.where(np.diag(root) < 0.0, -root, root)
