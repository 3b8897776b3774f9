"""The density of draws of a Gaussian copula, as what is alike for mixtures of any kind.

The parameters theta of a draw are smooth functions of its *responses* g = Root e, which are normal. So their
log density is that of g less log|d theta / d g|.
"""

import math
from abc import ABC, abstractmethod

import numpy as np
from scipy.linalg import solve_triangular

from sklearn_lrvb.mixture.entries import Entries

_LOG_2_PI = math.log(2.0 * math.pi)


class CopulaDensity(ABC):
    """Density of the draws of a copula (`MixtureModel.copula`).

    Parameters
    ----------
    copula : copula, whose draws these are
    root : (n_responses, n_responses), triangular, with Root Root' the covariance of the responses
    is_lower : bool, default=False
        Whether the root is lower triangular.

    Attributes
    ----------
    root : as given
    """

    def __init__(self, copula, root, is_lower=False):
        self._copula, self.root, self._is_lower = copula, root, is_lower
        self._log_constant = -np.log(np.diag(root)).sum() - 0.5 * len(root) * _LOG_2_PI

    @abstractmethod
    def _log_derivatives(self, responses, draws):
        """log|d theta / d g|, (n,).

        Parameters
        ----------
        responses : (n, n_responses)
        draws : DrawArrays of the kind, the copula's draws of these
        """

    @abstractmethod
    def _slopes(self, responses, draws, slopes):
        """Derivatives in g of log p(X, theta) + log|d theta / d g|, (n, n_responses).

        Parameters
        ----------
        responses, draws : as in `_log_derivatives`
        slopes : DrawArrays of derivatives, of `MixtureModel.log_joint_and_slopes`
        """

    @abstractmethod
    def _changes(self, name, responses):
        """First-order changes of a flat target, by its name, under responses: (n, d)."""

    def log_density(self, normals, responses, draws):
        """Log density of draws, (n,), of standard normal e with their responses, (n, n_responses) each."""
        log_derivatives = self._log_derivatives(responses, draws)
        return self._log_constant - 0.5 * np.square(normals).sum(axis=1) - log_derivatives

    def slopes_of_log_ratio(self, normals, draws, slopes):
        """Derivatives in e of log p(X, theta) less the log density of the draws: (n, n_responses).

        Parameters
        ----------
        normals : (n, n_responses), e
        draws, slopes : as in `_slopes`
        """
        return self._slopes(self.responses(normals), draws, slopes) @ self.root + normals

    def responses(self, normals):
        """g = Root e of standard normal variables e: (n, n_responses) -> (n, n_responses)."""
        return normals @ self.root.T

    def normals(self, responses):
        """e of the responses Root e: (n, n_responses) -> (n, n_responses)."""
        if not len(self.root):  # Nothing is unknown, and older versions of SciPy refuse empty systems.
            return responses
        return solve_triangular(self.root, responses.T, lower=self._is_lower).T

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
