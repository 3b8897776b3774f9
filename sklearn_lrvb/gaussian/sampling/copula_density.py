"""The density of draws of normal components, in the coordinates in which they are standard normal.

The responses of a draw (`copula`) are normal, N(0, Sigma_g), with

    Sigma_g = G M^-1 G' + the excess of the logits,

G being linear. The parameters theta = (logit v; u; T) are smooth functions of the responses, so that their
log density is that of g less log|d theta / d g|, a sum over the breaks, as a density of logit v, and over
the pivots of the precisions (`random_factors`). `likelihood` has the exact posterior's density of the same
parameters.
"""

import math

import numpy as np

from sklearn_lrvb.distributions.dirichlet import log_partition
from sklearn_lrvb.sampling.copula import CopulaDensity

_LOG_2_PI = math.log(2.0 * math.pi)


class GaussianCopulaDensity(CopulaDensity):
    """Density of the draws of a `GaussianCopula`.

    Parameters
    ----------
    copula : GaussianCopula
    posterior : VariationalPosterior
    root_of_coefficients : (D, D), `ObservedInformation.root`

    Attributes
    ----------
    root : (n_responses, n_responses), upper triangular, with Root Root' = Sigma_g
    """

    def __init__(self, copula, posterior, root_of_coefficients):
        super().__init__(copula, _response_root(copula, posterior.n_labels, root_of_coefficients))
        self._structure = posterior.structure

    def _log_derivatives(self, responses, draws):
        structure, copula = self._structure, self._copula
        log_scale = np.log(structure.own_precision_scale).sum() * structure.n_groups
        of_sticks = self._log_derivatives_of_sticks(copula.logits(responses), draws).sum(axis=1)
        changes = copula.split(responses)[1]
        return log_scale + of_sticks + copula.random_factors.log_derivatives(changes, draws.factors)

    def _log_derivatives_of_sticks(self, logits, draws):
        """log of the derivative of logit v in l, of every stick: (n, B)."""
        a, b = self._copula.beta_parameters
        log_density = a * draws.log_stick + b * draws.log_rest
        log_density -= log_partition(np.stack([a, b], axis=-1))
        deviations = self._copula.logit_deviations
        return -0.5 * (np.square(logits / deviations) + _LOG_2_PI) - np.log(deviations) - log_density

    def _slopes(self, responses, draws, slopes):
        copula, structure = self._copula, self._structure
        logits = copula.logits(responses)
        a, b = copula.beta_parameters
        log_derivatives = self._log_derivatives_of_sticks(logits, draws)
        # Those of the log derivatives are the normal's, less those of the logit's density.
        of_logits = (slopes.log_stick - a) * np.exp(log_derivatives + draws.log_rest)
        of_logits -= (slopes.log_rest - b) * np.exp(log_derivatives + draws.log_stick)
        of_logits -= logits / np.square(copula.logit_deviations)
        changes = copula.split(responses)[1]
        of_changes = copula.random_factors.slopes(changes, draws.factors, slopes.factors)
        of_quadratic = -structure.own_precision_scale * structure.entries(of_changes)
        parts = (of_logits, slopes.scaled_means, of_quadratic, slopes.log_tails)
        return np.hstack([part.reshape(len(responses), -1) for part in parts])

    def _changes(self, name, responses):
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
