"""Draws of the parameters of latent classes whose means and covariances are those of linear response.

All parameters of q are functions of scalars that are independent under q: logits of beta variables (the
sticks of the weights and of the probabilities of categories), logarithms of gamma variables (rates and
precisions), and normal variables (means given the precisions). By linear response the scalars g have the
covariance

    Sigma = J_S R^-1 M^-1 R^-1 J_S' + excess,        excess = Cov_q(g) - J_S R^-1 J_S',        J_S = d E_q g /
    d S.

Draws are a Gaussian copula: normal variables with this covariance, each of which becomes the quantile of the
family that its scalar has under q, with parameters that give it its variance in Sigma.

A learned hyperparameter u has one scalar more, log u less its value at the optimum, which is normal. With I
and Q of `learned_prior` its response is I^-1 Q' beta, and its excess I^-1.

*Conventions.* n draws; a draw has Q scalars: K - 1 of the weights first, then family by family those of every
class and column, and those of the learned hyperparameters.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import block_diag
from scipy.special import polygamma

from sklearn_lrvb.distributions.copula_margins import BetaVariables, GammaVariables
from sklearn_lrvb.families.scalars import log_sticks
from sklearn_lrvb.family_mixture.targets import changes_of
from sklearn_lrvb.sampling.draws import DrawArrays
from sklearn_lrvb.symmetric_matrices import gram_root

_LEAST_DEVIATION = 1e-8  # Of a scalar; posteriors have larger ones.


@dataclass(frozen=True)
class ClassDraws(DrawArrays):
    """Draws of all scalars, (n, Q)."""

    scalars: np.ndarray


class Scalars:
    """Where the scalars of a posterior are.

    Parameters
    ----------
    posterior : ClassPosterior

    Attributes
    ----------
    of_columns : int, where those of the learned hyperparameters begin
    size : int, Q
    """

    def __init__(self, posterior):
        self.posterior = posterior
        self._shapes = [
            (posterior.n_components, family.n_columns, len(family.scalar_kinds))
            for family in posterior.prior.families
        ]
        stops = posterior.n_components - 1 + np.cumsum([0, *map(np.prod, self._shapes)])
        self._places = list(map(slice, stops[:-1], stops[1:]))
        self.of_columns = int(stops[-1])
        self.size = self.of_columns + len(posterior.prior.learned_values)

    def split(self, scalars):
        """Those of the weights, (..., K - 1), and by family, from (..., Q).

        The latter is a list of triples: a family, its scalars (..., K, c, s), and its sums under q.
        """
        parts = [
            (family, scalars[..., place].reshape(*scalars.shape[:-1], *shape), sums)
            for (family, sums), place, shape in zip(self.families(), self._places, self._shapes, strict=True)
        ]
        return scalars[..., : self.posterior.n_components - 1], parts

    def learned(self, scalars):
        """Those of the learned hyperparameters: (..., Q) -> (..., L)."""
        return scalars[..., self.of_columns :]

    def joined(self, logits, parts, learned):
        """Inverse of `split` and `learned`, from the scalars alone."""
        n_axes = logits.ndim - 1
        flat = [part.reshape(*part.shape[:n_axes], -1) for part in parts]
        return np.concatenate([logits, *flat, learned], axis=-1)

    def families(self):
        """Pairs of a family and its sums under q."""
        return zip(self.posterior.prior.families, self.posterior.parts, strict=True)


class ClassCopula:
    """The distribution of the parameters that linear response describes; a draw's responses are its scalars'.

    Parameters
    ----------
    targets : Targets
    information : ObservedInformation, positive definite
    with_excess : bool, default=True
        Whether scalars have their excess: not those of estimates.

    Attributes
    ----------
    n_normals : int, number of standard normal variables of a draw
    root_is_lower : bool, whether `response_root` is lower triangular
    """

    root_is_lower = True

    def __init__(self, targets, information, with_excess=True):
        self._targets, self._information, self._with_excess = targets, information, with_excess
        self._posterior, self._scalars = targets.posterior, Scalars(targets.posterior)
        self.n_normals = self._posterior.n_coefficients + self._scalars.size
        kinds = [np.repeat("logit", self._posterior.n_components - 1)]
        parameters = [np.stack(self._weights.sticks(self._posterior.counts), axis=-1)]
        for family, sums in self._scalars.families():
            parameters.append(family.scalar_parameters(sums).reshape(-1, 2))
            kinds.append(np.tile(family.scalar_kinds, self._posterior.n_components * family.n_columns))
        self._learned_information, self._learned_sources = self._posterior.learned_information
        variances = 1.0 / self._learned_information
        parameters.append(np.stack([variances, np.zeros_like(variances)], axis=-1))
        kinds = np.concatenate([*kinds, np.repeat("normal", len(variances))])
        self._logits = np.flatnonzero(kinds == "logit")
        self._log_gammas = np.flatnonzero(kinds == "log_gamma")
        self._parameters = np.concatenate(parameters)  # Under q, (Q, 2).

    @property
    def _weights(self):
        return self._posterior.prior.weights

    @cached_property
    def _over_roots(self):
        """J_S Q^-T and J_S R^-1 with R = Q Q': of the weights (K - 1, K), and by family (K, c, s, b)."""
        _, (root,) = self._posterior.complete_information.blocks[0]
        pairs = [(self._weights.logit_covariance_with_log(self._posterior.counts), root)]
        pairs += [
            (family.scalar_jacobian(sums), family.covariance_root(sums))
            for family, sums in self._scalars.families()
        ]
        over_roots = []
        for jacobian, root in pairs:
            half = np.linalg.solve(root, jacobian.swapaxes(-1, -2))
            whole = np.linalg.solve(root.swapaxes(-1, -2), half)
            over_roots.append((half.swapaxes(-1, -2), whole.swapaxes(-1, -2)))
        return over_roots

    def _responses(self, coefficients):
        """J_S R^-1 beta of some beta: (D, m) -> (Q, m)."""
        prior = self._posterior.prior
        (_, to_logits), *others = self._over_roots
        parts = [to_logits @ coefficients[: self._posterior.n_components]]
        for family, place, (_, whole) in zip(prior.families, prior.places, others, strict=True):
            own = coefficients[self._posterior.coordinates(place, family)]  # (K, c, b, m)
            parts.append((whole @ own).reshape(-1, coefficients.shape[1]))
        parts.append(self._learned_sources.T @ coefficients / self._learned_information[:, None])
        return np.concatenate(parts)

    @cached_property
    def _excess_root(self):
        """Block diagonal Y with Y Y' = Cov_q(g) - J_S R^-1 J_S': (Q, Q)."""
        variances = self._parameters[:, 0].copy()
        variances[self._logits] = polygamma(1, self._parameters[self._logits]).sum(axis=1)
        variances[self._log_gammas] = polygamma(1, variances[self._log_gammas])
        logit_variances, parts = self._scalars.split(variances)
        blocks = []
        for variance, (half, _) in zip(
            [logit_variances, *(part for _, part, _ in parts)], self._over_roots, strict=True
        ):
            excess = variance[..., None] * np.eye(variance.shape[-1]) - half @ half.swapaxes(-1, -2)
            root = gram_root(excess).swapaxes(-1, -2)
            blocks += [root[index] for index in np.ndindex(root.shape[:-2])]
        blocks.append(np.diag(1.0 / np.sqrt(self._learned_information)))
        # Without blocks, as of one class of constant columns, block_diag would have a row.
        return block_diag(np.zeros((0, 0)), *blocks) * self._with_excess

    @cached_property
    def _variables(self):
        """The variables of logits and of log gammas, with the deviations of linear response."""
        n_coefficients, (first, second) = self._posterior.n_coefficients, self._parameters.T
        root = self._responses(self._information.covariance_root(np.arange(n_coefficients)).T)
        squares = np.square(root).sum(axis=1) + np.square(self._excess_root).sum(axis=1)
        deviations = np.maximum(np.sqrt(squares), _LEAST_DEVIATION)
        logits, gammas = self._logits, self._log_gammas
        return (
            BetaVariables.of_share(first[logits], second[logits], deviations[logits]),
            GammaVariables.of_mean(first[gammas] / second[gammas], deviations[gammas]),
        )

    def responses(self, normals):
        """Responses of standard normal variables: (n, n_normals) -> (n, Q)."""
        for_coefficients, for_excess = np.split(normals, [self._posterior.n_coefficients], axis=1)
        coefficients = self._information.correlated(for_coefficients.T)
        return self._responses(coefficients).T + for_excess @ self._excess_root.T

    def draws(self, responses):
        """The draws of some responses, (n, Q): ClassDraws."""
        scalars, (betas, gammas) = responses.copy(), self._variables
        log_stick, log_rest = betas.logs(responses[:, self._logits])
        scalars[:, self._logits] = log_stick - log_rest
        scalars[:, self._log_gammas] = np.log(gammas.values(responses[:, self._log_gammas]))
        return ClassDraws(scalars)

    draws_of_estimates = draws  # They vary as draws of parameters do.

    def of_components_with_rows(self):
        """This copula, which describes all components."""
        return self

    def responses_of(self, draws):
        """Inverse of `draws`: (n, Q)."""
        responses, (betas, gammas) = draws.scalars.copy(), self._variables
        responses[:, self._logits] = betas.normals(*log_sticks(draws.scalars[:, self._logits]))
        responses[:, self._log_gammas] = gammas.normals(np.exp(draws.scalars[:, self._log_gammas]))
        return responses

    # What the density of the draws is made of (`sampling.copula.CopulaDensity`).

    def response_root(self, root):
        """Root (Q, Q) with Root Root' = Sigma, lower triangular, from a root of M^-1, (D, D)."""
        rows = np.hstack([self._responses(root), self._excess_root])
        lower = np.linalg.qr(rows.T, mode="r").T
        return np.where(np.diag(lower) < 0.0, -lower, lower)

    def log_derivatives(self, responses, draws):
        """log|d scalars / d responses|, (n,)."""
        betas, gammas = self._variables
        logs = log_sticks(draws.scalars[:, self._logits])
        by_logit = betas.log_derivatives(responses[:, self._logits], *logs)
        values = np.exp(draws.scalars[:, self._log_gammas])
        by_gamma = gammas.log_derivatives(responses[:, self._log_gammas], values)
        return by_logit.sum(axis=1) + by_gamma.sum(axis=1)

    def slopes(self, responses, draws, slopes):
        """Derivatives in responses of f + log|d scalars / d responses|, from df / d scalars: (n, Q)."""
        by_response, (betas, gammas) = slopes.scalars.copy(), self._variables
        logits, log_gammas = self._logits, self._log_gammas
        by_logit, logs = by_response[:, logits], log_sticks(draws.scalars[:, logits])
        by_response[:, logits] = betas.slopes(responses[:, logits], *logs, by_logit, -by_logit)
        by_response[:, log_gammas] = gammas.slopes(
            responses[:, log_gammas], np.exp(draws.scalars[:, log_gammas]), by_response[:, log_gammas]
        )
        return by_response

    def first_order_changes(self, name, responses):
        """First-order changes of a flat target, by its name, under responses: (n, d)."""
        logits, parts = self._scalars.split(responses)
        stick, rest = self._parameters[: logits.shape[1]].T
        share = stick / (stick + rest)
        log_weights = self._weights.log_weights(logits * (1.0 - share), -logits * share)
        values = [family.first_order(part, sums) for family, part, sums in parts]
        return changes_of(self._targets[name], log_weights, values)
