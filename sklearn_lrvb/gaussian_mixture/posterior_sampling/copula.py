"""Draws of the parameters whose means and covariances are those of linear response.

All correlations of a draw are those of its coefficients beta ~ N(0, M^-1). A draw is a function of its
*responses* g = (l, u, B), which are linear in beta: logits of sticks, scaled means and changes of precisions.
Each response becomes a quantile of q's own family (a Gaussian copula):

* weights through their stick-breaking form. The logit l of a stick v ~ Beta(a, b) responds by J beta,
  and has the excess Cov_q(l) - J R J' of the general rule Cov(l) = Cov_q(l) + J (M^-1 - R) J'. It becomes the
  logit of a Beta(s a, s b) variable with this variance; s = 1 where no information is missing;
* precisions through Bartlett's factors L or as gamma variables (`random_factors`), in the frame where they
  are the identity on average;
* means given the precisions, mu = m + W^-1 L^-T u, so that they have the tails of Student's t.

Where no information is missing, as with one component without holes, these are draws of the exact posterior.
Otherwise the means of means, and both moments of weights and precisions, have relative errors of
order 1/N_k.

*Their density.* The responses g = (l, u, B) of a draw are normal, N(0, Sigma_g), with

    Sigma_g = G M^-1 G' + the excess of the logits,

G being linear. The parameters theta = (logit v; u; T) are smooth functions of g, so that their log density is
that of g less log|d theta / d g|, sums over sticks and pivots (`random_factors`). `likelihood` has the exact
posterior's density of the same parameters.

*The parameters* that draws stand for are in the frames of the fitted components. *Conventions.* n draws, K
components and as many labels, or one more with a background, P features, S precision groups, B breaks of the
stick (`weight_priors`). In the frame y = W_k (x - m_k) of the fitted component, a draw's precision is T_k =
L_k L_k', and its mean is d_k, given as u_k = L_k' d_k. Under a vague precision d_k is large and L_k' d_k of
order one: a product of the two would lose digits. Arrays that hold a number for every label are (n, L).
"""

import math
from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import polygamma

from sklearn_lrvb.exponential_families.dirichlet import log_partition
from sklearn_lrvb.exponential_families.special_functions import log_beta_quantile_pair, normal_of_log_beta
from sklearn_lrvb.gaussian_mixture.uncertainty.targets import variance
from sklearn_lrvb.symmetric_matrices import gram_root


class DrawArrays:
    """Base of dataclasses of arrays, or of other such dataclasses, whose first axis is that of draws."""

    def __getitem__(self, index):
        return type(self)(*(getattr(self, field.name)[index] for field in fields(self)))

    def replaced(self, index, others):
        """A copy in which the draws at ``index``, an int array, are ``others``."""
        return type(self)(
            *(_replaced(getattr(self, own.name), index, getattr(others, own.name)) for own in fields(self))
        )


def _replaced(own, index, others):
    if isinstance(own, DrawArrays):
        return own.replaced(index, others)
    own = own.copy()
    own[index] = others
    return own


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

    def __len__(self):
        return len(self.factors)

    @classmethod
    def concatenated(cls, parts):
        """All draws of some parts."""
        return cls(*(np.concatenate([getattr(own, field.name) for own in parts]) for field in fields(cls)))


class DrawnParameters:
    """The parameters that draws stand for.

    Parameters
    ----------
    posterior : VariationalPosterior, in whose frames the draws are
    origin : (P,), from where the posterior's positions are measured
    draws : ParameterDraws
    """

    def __init__(self, posterior, origin, draws):
        self.posterior = posterior
        self.origin = origin
        self.draws = draws
        self._structure = posterior.structure

    @cached_property
    def log_weights(self):
        """log pi of all labels; the weights need not sum to one: (n, L)."""
        return self.posterior.prior.weights.log_weights(self.draws.log_stick, self.draws.log_rest)

    @property
    def log_shares(self):
        """log pi of weights that are scaled to sum to one: (n, L)."""
        return self.posterior.prior.weights.log_shares(self.draws.log_stick, self.draws.log_rest)

    @property
    def weights(self):
        """pi, scaled to sum to one: (n, L)."""
        return np.exp(self.log_shares)

    @cached_property
    def _inverse_factors(self):
        factors = self._structure.transposed(self.draws.factors)
        return self._structure.whiteners(factors.reshape(-1, *factors.shape[2:])).reshape(factors.shape)

    @property
    def means(self):
        """mu = m + W^-1 L^-T u, (n, K, P)."""
        structure, posterior = self._structure, self.posterior
        in_frames = structure.transformed(self._inverse_factors, self.draws.scaled_means)
        return (
            self.origin
            + posterior.centred_means
            + structure.transformed(posterior.covariance_cholesky, in_frames)
        )

    @property
    def precisions(self):
        """Lambda = W' T W, in the shape of the attribute."""
        structure = self._structure
        return self._squared(
            structure.composed(structure.transposed(self.posterior.whiteners), self.draws.factors)
        )

    @property
    def scales(self):
        """Lambda^-1, in the shape of the attribute."""
        structure = self._structure
        return self._squared(structure.composed(self.posterior.covariance_cholesky, self._inverse_factors))

    @property
    def covariances(self):
        """The same, times nu/(nu - 2) where nu is finite; infinite where it is at most two."""
        scales, structure = self.scales, self._structure
        if self.posterior.tails is None:
            return scales
        nu = self.degrees_of_freedom[:, : structure.n_groups]
        factors = np.divide(nu, nu - 2.0, out=np.full(nu.shape, np.inf), where=nu > 2.0)
        return structure.reported(factors[structure.statistic_axes] * structure.by_group(scales))

    @property
    def degrees_of_freedom(self):
        """nu of all components, where they have Student's t distribution: (n, K)."""
        return self.posterior.tails.by_component(np.exp(self.draws.log_tails))

    @property
    def log_tails(self):
        """log nu, in the shape of the attribute."""
        log_tails = self.draws.log_tails
        return log_tails if self._structure.tails_shape else log_tails[:, 0]

    @property
    def tails(self):
        """nu, in the shape of the attribute."""
        return np.exp(self.log_tails)

    def _squared(self, factors):
        """The matrices L L' of factors L, exactly symmetric: (n, S, ...) -> (n, *shape of the attribute)."""
        structure = self._structure
        squares = structure.gram(factors)
        return structure.reported(structure.from_unique_entries(structure.unique_entries(squares)))

    def reported(self):
        """Draws in the shapes of the estimator's attributes, by target: dict of ndarray.

        Covariances are left out where known degrees of freedom are at most two, so that none is finite.
        """
        structure, names = self._structure, ["weights", "means", "precisions"]
        tails = self.posterior.tails
        if tails is None or tails.n_fitted or tails.nu.min() > 2.0:
            names.append("covariances")
        names += ["scales"] * structure.has_scales + ["tails"] * (structure.n_tails > 0)
        return {name: getattr(self, name) for name in names}

    def flat(self, target):
        """A target, by its name (`targets`), with every entry once: (n, d)."""
        values = self.log_weights if target == "log_weights" else getattr(self, target)
        if target not in ("precisions", "covariances", "scales"):
            return values.reshape(len(values), -1)
        structure = self._structure
        return structure.unique_entries(structure.by_group(values))


def draws_at(posterior, other):
    """The parameters that another posterior reports, as one draw in the frames of the first one."""
    structure, weights = posterior.structure, posterior.prior.weights
    log_weights = np.log(weights.mean(other.label_counts))[None]
    # What no component of a broken stick has is part of the last one's weight.
    log_stick, log_rest = weights.log_sticks(log_weights, np.full(1, -np.inf))
    roots = structure.composed(other.whiteners, posterior.covariance_cholesky)
    factors = structure.transposed(roots)
    shifts = structure.transformed(posterior.whiteners, other.centred_means - posterior.centred_means)
    scaled_means = structure.transformed(roots, shifts)
    log_tails = np.zeros((1, 0)) if other.tails is None else np.log(other.tails.fitted)[None]
    return ParameterDraws(log_stick, log_rest, factors[None], scaled_means[None], log_tails)


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


# Least standard deviation of a logit or of a precision in its own frame. Posteriors have larger ones;
# estimates have none where all groups are alike, or where all groups of the population are here.
_LEAST_DEVIATION = 1e-8


class PosteriorCopula:
    """The distribution of weights, means and precisions that linear response describes.

    Parameters
    ----------
    targets : Targets
    information : ObservedInformation, positive definite; or SamplingVariation, for draws of estimates
    with_excess : bool, default=True
        Whether logits have their excess: not those of estimates.

    Attributes
    ----------
    n_breaks : int, number of breaks of the stick, B
    n_normals : int, number of standard normal variables of a draw; its responses are B + K P + S Q
    logit_jacobian : (L, B), J' = (V_pi + C)^-1 Cov(log pi, l)
    """

    def __init__(self, targets, information, with_excess=True):
        self.targets, self._with_excess = targets, with_excess
        self._posterior, self._structure = targets.posterior, targets.posterior.structure
        self._information = information
        self._sticks = self._posterior.prior.weights
        self._logit_covariance = self._sticks.logit_covariance_with_log(self._posterior.label_counts)
        self.n_breaks = len(self._logit_covariance)
        self.n_normals = self._structure.n_coefficients + self.n_breaks
        self.logit_jacobian = self._posterior.count_response(self._logit_covariance).T

    def responses(self, normals):
        """Responses of standard normal variables: (n, n_normals) -> (n, n_responses)."""
        for_coefficients, for_sticks = np.split(normals, [self._structure.n_coefficients], axis=1)
        coefficients = self._information.correlated(for_coefficients.T).T
        intercepts, others = coefficients[:, : self._structure.n_labels], coefficients[:, self.drawn]
        logits = intercepts @ self.logit_jacobian + for_sticks @ self.logit_excess_root
        return np.hstack([logits, others])

    @cached_property
    def drawn(self):
        """Coordinates of the coefficients that are responses: all but those of intercepts and scales."""
        blocks = self._structure.coefficient_blocks
        is_drawn = np.ones(self._structure.n_coefficients, dtype=bool)
        is_drawn[blocks["intercept"]] = is_drawn[blocks["scale"]] = False
        return np.flatnonzero(is_drawn)

    def coefficients(self, responses):
        """The coefficients that are responses, and zeros for the others: (..., n_responses) -> (..., D)."""
        coefficients = np.zeros((*responses.shape[:-1], self._structure.n_coefficients))
        coefficients[..., self.drawn] = responses[..., self.n_breaks :]
        return coefficients

    def split(self, responses):
        """Logits (n, B), scaled means (n, K, P) and changes of precisions (n, S, ...)."""
        structure, logits = self._structure, responses[..., : self.n_breaks]
        _, linear, quadratic = structure.split(self.coefficients(responses))
        return logits, linear, structure.own_precision_response(quadratic)

    @property
    def _log_tails(self):
        """log nu of the fit, (number of fitted degrees of freedom,)."""
        tails = self._posterior.tails
        return np.zeros(0) if tails is None else np.log(tails.fitted)

    def draws(self, responses):
        """The draws of some responses, (n, n_responses) -> ParameterDraws."""
        logits, linear, changes = self.split(responses)
        log_sticks = log_beta_quantile_pair(logits / self.logit_deviations, *self.beta_parameters)
        log_tails = self._log_tails + responses[:, responses.shape[1] - self._structure.n_tails :]
        return ParameterDraws(*log_sticks, self.random_factors.factors(changes), linear, log_tails)

    def responses_of(self, draws):
        """The responses of some draws, the inverse of `draws`: (n, n_responses)."""
        structure, n_draws = self._structure, len(draws)
        normals = normal_of_log_beta(draws.log_stick, draws.log_rest, *self.beta_parameters)
        quadratic = -structure.entries(self.random_factors.changes(draws.factors))
        quadratic /= structure.own_precision_scale
        log_tails = draws.log_tails - self._log_tails
        parts = (normals * self.logit_deviations, draws.scaled_means, quadratic, log_tails)
        return np.hstack([part.reshape(n_draws, -1) for part in parts])

    # Weights.

    @cached_property
    def logit_excess_root(self):
        """Y with Y' Y = Cov_q(l) - J R J'."""
        half = solve_triangular(self._posterior.intercept_root, self._logit_covariance.T, lower=True)
        excess = np.diag(self._sticks.logit_variance(self._posterior.label_counts)) - half.T @ half
        excess *= self._with_excess
        return gram_root(excess) if len(excess) else excess  # A single label has no breaks.

    @cached_property
    def logit_deviations(self):
        """Standard deviations of the logits by linear response, one for every break of the stick."""
        root = self._information.covariance_root(self.targets["weights"].coordinates())
        explained = np.square(root @ self.logit_jacobian).sum(axis=0)
        deviations = np.sqrt(explained + np.square(self.logit_excess_root).sum(axis=0))
        return np.maximum(deviations, _LEAST_DEVIATION)

    @cached_property
    def beta_parameters(self):
        """Parameters of the beta distributions of the sticks, a pair of (number of breaks,)."""
        stick, rest = self._sticks.sticks(self._posterior.label_counts)
        size = beta_size(stick, rest, np.square(self.logit_deviations))
        return size * stick, size * rest

    # Precisions.

    @cached_property
    def random_factors(self):
        """`RandomFactors` of the precisions, by their standard deviations in their own frames."""
        structure = self._structure
        variances = self.targets["scales" if structure.has_scales else "covariances"]
        deviations = self._information.deviations[self.targets["precisions"].coordinates()]
        deviations = np.maximum(deviations, _LEAST_DEVIATION)
        deviations = deviations.reshape(structure.n_groups, structure.n_quadratic)
        of_features = variances.on_diagonal()
        relative = np.sqrt(variance(variances, self._information)[of_features])
        relative /= variances.flat_value()[of_features]
        return structure.random_factors_type(
            np.abs(structure.own_precision_response(deviations)),
            self._posterior.effective_degrees_of_freedom,
            np.square(relative).reshape(structure.n_groups, -1),
        )


_LOG_2_PI = math.log(2.0 * math.pi)


class CopulaDensity:
    """Density of the draws of a `PosteriorCopula`.

    Parameters
    ----------
    copula : PosteriorCopula
    posterior : VariationalPosterior
    root_of_coefficients : (D, D), `ObservedInformation.root`

    Attributes
    ----------
    root : (n_responses, n_responses), upper triangular, with Root Root' = Sigma_g
    """

    def __init__(self, copula, posterior, root_of_coefficients):
        self._copula = copula
        self._structure = structure = posterior.structure
        self.root = _response_root(copula, structure.n_labels, root_of_coefficients)
        self._n_tails = structure.n_tails
        log_scale = np.log(structure.own_precision_scale).sum() * structure.n_groups
        self._log_constant = -np.log(np.diag(self.root)).sum() - 0.5 * len(self.root) * _LOG_2_PI - log_scale

    def log_density(self, normals, responses, draws):
        """Log density, (n,).

        Parameters
        ----------
        normals : (n, n_responses), standard normal e
        responses : (n, n_responses), of `responses` at e
        draws : ParameterDraws, the copula's draws of these
        """
        logits, _, changes = self._copula.split(responses)
        log_derivatives = self._log_derivatives(logits, draws).sum(axis=1)
        log_derivatives += self._copula.random_factors.log_derivatives(changes, draws.factors)
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
        draws : ParameterDraws, the copula's draws of these
        slopes : ParameterDraws of derivatives, of `log_joint_and_slopes`
        """
        copula, structure = self._copula, self._structure
        logits, _, changes = copula.split(self.responses(normals))
        a, b = copula.beta_parameters
        log_derivatives = self._log_derivatives(logits, draws)
        # Those of the log derivatives are the normal's, less those of the logit's density.
        of_logits = (slopes.log_stick - a) * np.exp(log_derivatives + draws.log_rest)
        of_logits -= (slopes.log_rest - b) * np.exp(log_derivatives + draws.log_stick)
        of_logits -= logits / np.square(copula.logit_deviations)
        of_changes = copula.random_factors.slopes(changes, draws.factors, slopes.factors)
        of_quadratic = -structure.own_precision_scale * structure.entries(of_changes)
        parts = (of_logits, slopes.scaled_means, of_quadratic, slopes.log_tails)
        return np.hstack([part.reshape(len(normals), -1) for part in parts]) @ self.root + normals

    def scores(self, target, responses):
        """First-order changes of a target, by its name, under responses, in standard deviations: (n, d).

        They are standard normal under the copula.
        """
        scale = np.sqrt(np.square(self._changes(target, self.root.T)).sum(axis=0))
        return self._changes(target, responses) / np.where(scale > 0, scale, np.inf)

    def _changes(self, name, responses):
        """First-order changes of a flat target, (n, d)."""
        copula, target = self._copula, self._copula.targets[name]
        logits = responses[:, : copula.n_breaks]
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
