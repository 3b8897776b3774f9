"""The density of draws of a Gaussian copula, for mixtures of any model.

The parameters theta of a draw are smooth functions of its *responses* g = Root e, which are normal. So their
log density is that of g less log|d theta / d g|.
"""

import math

import numpy as np
from scipy.linalg import solve_triangular

from sklearn_lrvb.sampling.draws import Entries

_LOG_2_PI = math.log(2.0 * math.pi)


class CopulaDensity:
    """Density of the draws of a copula.

    Parameters
    ----------
    copula : of `MixtureModel.copula`, whose draws these are
    root_of_coefficients : (D, D), `ObservedInformation.root`

    Attributes
    ----------
    copula : as given
    root : (n_responses, n_responses), triangular, with Root Root' the covariance of the responses
    """

    def __init__(self, copula, root_of_coefficients):
        self.copula, self.root = copula, copula.response_root(root_of_coefficients)
        self._log_constant = -np.log(np.diag(self.root)).sum() - 0.5 * len(self.root) * _LOG_2_PI

    def log_density(self, normals, responses, draws):
        """Log density of draws, (n,), of standard normal e with their responses, (n, n_responses) each."""
        log_derivatives = self.copula.log_derivatives(responses, draws)
        return self._log_constant - 0.5 * np.square(normals).sum(axis=1) - log_derivatives

    def slopes_of_log_ratio(self, normals, draws, slopes):
        """Derivatives in e of log p(X, theta) less the log density of the draws: (n, n_responses).

        Parameters
        ----------
        normals : (n, n_responses), e
        draws : DrawArrays, the copula's draws of these
        slopes : DrawArrays of derivatives, of `DrawnParameters.log_joint_and_slopes`
        """
        return self.copula.slopes(self.responses(normals), draws, slopes) @ self.root + normals

    def responses(self, normals):
        """g = Root e of standard normal variables e: (n, n_responses) -> (n, n_responses)."""
        return normals @ self.root.T

    def normals(self, responses):
        """e of the responses Root e: (n, n_responses) -> (n, n_responses)."""
        if not len(self.root):  # Nothing is unknown, and older versions of SciPy refuse empty systems.
            return responses
        return solve_triangular(self.root, responses.T, lower=self.copula.root_is_lower).T

    def scores(self, target, responses):
        """First-order changes of a target, by its name, under responses, in standard deviations: (n, d).

        They are standard normal under the copula.
        """
        scale = self.deviations(target)
        return self._changes(target, responses) / np.where(scale > 0, scale, np.inf)

    def deviations(self, target):
        """Standard deviations to first order of a target, by its name: (d,)."""
        return np.sqrt(np.square(self._changes(target, self.root.T)).sum(axis=0))

    def _changes(self, target, responses):
        """First-order changes of a target, by its name or of `Entries`, (n, d)."""
        if not isinstance(target, Entries):
            return self.copula.first_order_changes(target, responses)
        return sum(sign * self._changes(name, responses)[:, [entry]] for name, entry, sign in target.terms)
