"""Draws of the parameters whose means and covariances are those of linear response.

All correlations of a draw are those of its coefficients beta ~ N(0, M^-1). A draw is a function of its
*responses* g = (l, u, B), which are linear in beta: logits of sticks, scaled means and changes of precisions.
Each response becomes a quantile of q's own family (a Gaussian copula):

* weights through their stick-breaking form. The logit l of a break v ~ Beta(a, b) responds by J beta, and has
  the excess Cov_q(l) - J R J' of the general rule Cov(l) = Cov_q(l) + J (M^-1 - R) J'. It becomes the logit
  of a Beta(s a, s b) variable with this variance; s = 1 where no information is missing;
* precisions through Bartlett's factors L or as gamma variables (`random_factors`), in the whitened
  coordinates where they are the identity on average;
* means given the precisions, mu = m + W^-1 L^-T u, so that they have the tails of Student's t.

Where no information is missing, as with one component without missing values, these are draws of the exact
posterior. Otherwise the means of means, and both moments of weights and precisions, have relative errors of
order 1/N_k.

*The parameters* that draws stand for are in the whitened coordinates of the fitted components. *Conventions.*
n draws, K components and as many labels, or one more with noise, P features, S precision groups, B breaks of
the stick (`weight_priors`). In the whitened coordinates y = W_k (x - m_k) of the fitted component, a draw's
precision is T_k = L_k L_k', and its mean is d_k, given as u_k = L_k' d_k. Under a vague precision d_k is
large and L_k' d_k of order one: a product of the two would lose digits. Arrays that hold a number for every
label are (n, L).
"""

import copy
import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.linalg import solve_triangular

from sklearn_lrvb.answers.targets import variance
from sklearn_lrvb.distributions.copula_margins import BetaVariables
from sklearn_lrvb.gaussian.sampling.hyperparameters import without_rows
from sklearn_lrvb.sampling.draws import DrawArrays
from sklearn_lrvb.symmetric_matrices import gram_root

# Least standard deviation of a response. Posteriors have larger ones; estimates have none where all groups
# are alike, or where all groups of the population are here.
_LEAST_DEVIATION = 1e-8


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
    n_normals : int, number of standard normal variables of a draw
    root_is_lower : bool, whether `response_root` is lower triangular
    """

    root_is_lower = False

    def __init__(self, targets, information, with_excess=True):
        posterior = targets.posterior
        self._targets, self._information, self._with_excess = targets, information, with_excess
        self._posterior, self._structure = posterior, posterior.structure
        self._logit_covariance = posterior.prior.weights.logit_covariance_with_log(posterior.label_counts)
        self._n_breaks = len(self._logit_covariance)
        self.n_normals = posterior.n_coefficients + self._n_breaks
        # J' = (V_pi + C)^-1 Cov(log pi, l), (L, B).
        per_intercept = posterior.count_response(self._logit_covariance).T
        self._weight_coordinates = posterior.weight_coordinates
        self._logit_jacobian = posterior.own_intercepts(np.eye(len(self._weight_coordinates))) @ per_intercept
        tails, blocks = posterior.tails, self._structure.layout.blocks
        self._fitted_log_tails = np.zeros(0) if tails is None else np.log(tails.fitted)
        # Coordinates of the coefficients that are responses: all but those of intercepts, scales and log b0.
        is_response = np.ones(posterior.n_coefficients, dtype=bool)
        is_response[blocks["scale"]] = is_response[self._weight_coordinates] = False
        self._coordinates = np.flatnonzero(is_response)
        self._own = slice(None)  # Of all responses, and of the groups of precisions.
        self._groups = np.ones(self._structure.n_groups, dtype=bool)

    def of_components_with_rows(self):
        """The distribution of draws without means, precisions and nu of components that hold no rows.

        Their draws are arbitrary. Where all components are described, it is this copula itself.
        """
        left_out, layout = without_rows(self._posterior), self._structure.layout
        if not left_out.any():
            return self
        part = copy.copy(self)
        part._groups = layout.per_group(~left_out) > 0
        is_own = np.ones(self._posterior.n_coefficients, dtype=bool)
        _, linear, quadratic = layout.split(is_own)
        linear[left_out] = quadratic[~part._groups] = False
        if self._structure.tails_shape:
            is_own[layout.blocks["tail"]] = ~left_out
        is_own = is_own[self._coordinates]
        part._coordinates = self._coordinates[is_own]
        part._own = np.concatenate([np.ones(self._n_breaks, dtype=bool), is_own])
        return part

    # Draws, as functions of their responses.

    def responses(self, normals):
        """Responses of standard normal variables: (n, n_normals) -> (n, n_responses)."""
        for_coefficients, for_excess = np.split(normals, [self._posterior.n_coefficients], axis=1)
        coefficients = self._information.correlated(for_coefficients.T).T
        intercepts = coefficients[:, self._weight_coordinates]
        logits = intercepts @ self._logit_jacobian + for_excess @ self._logit_excess_root
        return np.hstack([logits, coefficients[:, self._coordinates]])

    def draws(self, responses):
        """The draws of some responses, (n, n_responses) -> ParameterDraws."""
        logits, scaled_means, changes, log_tails = self._split(responses)
        log_stick, log_rest = self.breaks.logs(logits)
        factors = self._random_factors.factors(changes)
        return ParameterDraws(log_stick, log_rest, factors, scaled_means, self._fitted_log_tails + log_tails)

    def draws_of_estimates(self, responses):
        """Draws of estimates: means are linear in the coefficients, where `draws` depend on precisions."""
        draws, structure = self.draws(responses), self._structure
        scaled_means = structure.transformed(structure.transposed(draws.factors), draws.scaled_means)
        return replace(draws, scaled_means=scaled_means)

    def responses_of(self, draws):
        """The responses of some draws, the inverse of `draws`: (n, n_responses)."""
        logits = self.breaks.normals(draws.log_stick, draws.log_rest)
        quadratic = -self._structure.entries(self._random_factors.changes(draws.factors))
        quadratic /= self._structure.features.precision_scale
        log_tails = draws.log_tails - self._fitted_log_tails
        return _joined(logits, draws.scaled_means, quadratic, log_tails)[:, self._own]

    def _split(self, responses):
        """Logits (n, B), scaled means (n, K, P), changes of precisions (n, S, ...) and of log nu (n, ...)."""
        structure = self._structure
        coefficients = self._coefficients(responses)
        _, linear, quadratic = structure.layout.split(coefficients)
        log_tails = coefficients[:, structure.layout.blocks["tail"]]
        precisions = structure.features.own_precision_response(quadratic)
        return responses[:, : self._n_breaks], linear, precisions, log_tails

    def _coefficients(self, responses):
        """The coefficients that are responses, and zeros for the others: (n, n_responses) -> (n, D)."""
        coefficients = np.zeros((len(responses), self._posterior.n_coefficients))
        coefficients[:, self._coordinates] = responses[:, self._n_breaks :]
        return coefficients

    # The distributions of single responses, and of what they become.

    @cached_property
    def _logit_excess_root(self):
        """Y with Y' Y = Cov_q(l) - J R J'."""
        half = solve_triangular(self._posterior.intercept_root, self._logit_covariance.T, lower=True)
        variances = self._posterior.prior.weights.logit_variance(self._posterior.label_counts)
        return gram_root((np.diag(variances) - half.T @ half) * self._with_excess)

    @cached_property
    def breaks(self):
        """The breaks of the stick, with the variances of their logits by linear response: BetaVariables."""
        root = self._information.covariance_root(self._targets["weights"].coordinates())
        variances = np.square(root @ self._logit_jacobian).sum(axis=0)
        variances += np.square(self._logit_excess_root).sum(axis=0)
        stick, rest = self._posterior.prior.weights.sticks(self._posterior.label_counts)
        return BetaVariables.of_share(stick, rest, np.maximum(np.sqrt(variances), _LEAST_DEVIATION))

    @cached_property
    def _random_factors(self):
        """`RandomFactors` of the precisions, by their standard deviations in their own coordinates."""
        structure = self._structure
        deviations = self._information.deviations[self._targets["precisions"].coordinates()]
        deviations = np.maximum(deviations, _LEAST_DEVIATION)
        deviations = deviations.reshape(structure.n_groups, structure.n_quadratic)
        variances = self._targets["scales" if structure.has_scales else "covariances"]
        diagonal = variances.on_diagonal()
        relative = np.sqrt(variance(variances, self._information)[diagonal])
        relative /= variances.flat_value()[diagonal]
        return structure.random_factors_type(
            np.abs(structure.features.own_precision_response(deviations)),
            self._posterior.effective_degrees_of_freedom,
            np.square(relative).reshape(structure.n_groups, -1),
        )

    # What the density of the draws is made of (`sampling.copula.CopulaDensity`).

    def response_root(self, root):
        """Root with Root Root' = Sigma_g, from A with A A' = M^-1, both upper triangular.

        A is upper triangular, and the L intercepts come first: they depend on all standard normal variables,
        the other coefficients on those after the first L. So only the covariance of the logits given the
        others, (B, B), has to be factored. A learned b0, the last coefficient, is no response, but the others
        depend on its variable: this column is rotated into their triangle.
        """
        n_labels, kept, n_breaks = self._posterior.n_labels, self._coordinates, self._n_breaks
        rows = np.vstack([self._logit_jacobian.T @ root[self._weight_coordinates], root[kept]])
        learns_b0 = self._structure.parts.learns_mean_precision
        if len(kept) < len(root) - n_labels - learns_b0:  # Without other coefficients nothing is triangular.
            excess = np.zeros((len(rows), n_breaks))
            excess[:n_breaks] = self._logit_excess_root.T
            return _upper_root(np.hstack([rows, excess]))
        others, of_logits = rows[:, n_labels : n_labels + len(kept)], [self._logit_excess_root.T]
        if learns_b0:
            others = np.asfortranarray(others)
            of_logits.append(_rotated_into(others, rows[:, -1].copy(), n_breaks)[:, None])
        given_others = _upper_root(np.hstack([rows[:n_breaks, :n_labels], *of_logits]))
        below = np.zeros((len(kept), n_breaks))
        return np.hstack([np.vstack([given_others, below]), others])

    def log_derivatives(self, responses, draws):
        """log|d theta / d g|, (n,)."""
        logits, _, changes, _ = self._split(responses)
        by_break = self.breaks.log_derivatives(logits, draws.log_stick, draws.log_rest)
        by_group = self._random_factors.log_derivatives(changes, draws.factors)
        by_group = by_group + np.log(self._structure.features.precision_scale).sum()
        return by_break.sum(axis=1) + by_group[:, self._groups].sum(axis=1)

    def slopes(self, responses, draws, slopes):
        """Derivatives in g of f + log|d theta / d g|, (n, n_responses), from those of f in theta."""
        structure = self._structure
        logits, _, changes, _ = self._split(responses)
        by_break = self.breaks.slopes(
            logits, draws.log_stick, draws.log_rest, slopes.log_stick, slopes.log_rest
        )
        by_change = self._random_factors.slopes(changes, draws.factors, slopes.factors)
        by_quadratic = -structure.features.precision_scale * structure.entries(by_change)
        return _joined(by_break, slopes.scaled_means, by_quadratic, slopes.log_tails)[:, self._own]

    def first_order_changes(self, name, responses):
        """First-order changes of a flat target, by its name, under responses: (n, d)."""
        target = self._targets[name]
        if target.block != "intercept":
            return target.responses(self._coefficients(responses))
        logits, share = responses[:, : self._n_breaks], self.breaks.a / (self.breaks.a + self.breaks.b)
        weights = self._posterior.prior.weights
        log_weights = weights.log_weights(logits * (1.0 - share), -logits * share)
        return log_weights @ target.log_weight_jacobian.T


def _joined(*parts):
    """One row for every draw: parts (n, ...) -> (n, n_responses)."""
    return np.hstack([part.reshape(len(part), -1) for part in parts])


def _upper_root(rows):
    """The upper triangular U with U U' = A A' and a positive diagonal: (m, n) -> (m, m)."""
    # The rows in reverse order have a lower triangular root: reversed in turn, it is upper triangular.
    root = np.linalg.qr(rows[::-1].T, mode="r")[::-1, ::-1].T
    return np.where(np.diag(root) < 0.0, -root, root)


def _rotated_into(rows, column, n_above):
    """Rotate [A, c] into [A_+, d], so that A_+ A_+' + d d' = A A' + c c'; return d, (n_above,).

    Below the first rows d is zero, and A and A_+ are upper triangular: Givens rotations move the entries of c
    into the diagonal, from the last to the first.

    Parameters
    ----------
    rows : (n_above + m, m), A, column by column in memory, which becomes A_+
    column : (n_above + m,), c, which is overwritten
    n_above : int
    """
    for i in reversed(range(rows.shape[1])):
        stop = n_above + i + 1
        own, pivot, entry = rows[:stop, i].copy(), rows[stop - 1, i], column[stop - 1]
        length = math.hypot(pivot, entry)
        rows[:stop, i] = (pivot / length) * own + (entry / length) * column[:stop]
        column[:stop] = (pivot / length) * column[:stop] - (entry / length) * own
    return column[:n_above]
