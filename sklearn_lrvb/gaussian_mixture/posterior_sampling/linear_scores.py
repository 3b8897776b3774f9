"""Linear response of the parameters to the responses g of a draw, and their standard scores."""

import numpy as np


class LinearScores:
    """First-order changes of targets under responses g, in standard deviations.

    Parameters
    ----------
    copula : PosteriorCopula
    density : CopulaDensity, of the same copula
    targets : Targets
    """

    def __init__(self, copula, density, targets):
        self._copula = copula
        self._density = density
        self._targets = targets

    def __call__(self, target, responses):
        """Scores of a flat target, standard normal under the copula: (n, n_responses) -> (n, d)."""
        scale = np.sqrt(np.square(self._changes(target, self._density.root.T)).sum(axis=0))
        return self._changes(target, responses) / np.where(scale > 0, scale, np.inf)

    def _changes(self, name, responses):
        """First-order changes of a flat target, (n, d)."""
        target, n_breaks = self._targets[name], self._copula.n_breaks
        if target.block == "intercept":
            return self._log_weight_changes(responses[:, :n_breaks]) @ target.log_weight_jacobian.T
        n_components = self._targets.posterior.n_components
        coefficients = np.hstack([np.zeros((len(responses), n_components)), responses[:, n_breaks:]])
        return target.responses(coefficients)

    def _log_weight_changes(self, logits):
        """Changes of log pi by those of the logits, (n, B) -> (n, K)."""
        a, b = self._copula.beta_parameters
        share = a / (a + b)
        return self._targets.posterior.prior.weights.log_weights(logits * (1.0 - share), -logits * share)
