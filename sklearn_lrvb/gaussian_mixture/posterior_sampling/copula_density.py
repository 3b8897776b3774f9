"""The density of draws by linear response, as a Gaussian copula.

The responses g = (l, u, B) of a draw are normal, N(0, Sigma_g), with

    Sigma_g = G M^-1 G' + the excess of the logits,

G being linear. The parameters theta = (logit v; u; T) are smooth functions of g, so that their log density is
that of g less log|d theta / d g|, sums over sticks and pivots (`random_factors`). `log_joint` has the exact
posterior's density of the same parameters.
"""

import math

import numpy as np
from scipy.linalg import cho_solve, eigh, solve_triangular
from scipy.sparse.linalg import LinearOperator, eigsh

from sklearn_lrvb.exponential_families.dirichlet import log_partition
from sklearn_lrvb.symmetric_matrices import cholesky_equilibrated

_LOG_2_PI = math.log(2.0 * math.pi)
_LANCZOS_FROM_SIZE = 500  # Responses from which on Lanczos' method finds the largest inflations faster.
_LANCZOS_TOLERANCE = 1e-6  # Relative error of such a direction; that of its inflation is the square.


class CopulaDensity:
    """Density of the draws of a `PosteriorCopula`.

    Parameters
    ----------
    copula : PosteriorCopula
    posterior : VariationalPosterior
    covariance : (D, D), M^-1
    """

    def __init__(self, copula, posterior, covariance):
        self._copula = copula
        self._structure = structure = posterior.structure
        self.root = cholesky_equilibrated(_response_covariance(copula, structure, covariance))
        log_scale = np.log(structure.own_precision_scale).sum() * structure.layout.n_precision_groups
        log_scale += np.log(copula.mean_scale).sum()
        self._log_constant = -np.log(np.diag(self.root)).sum() - 0.5 * len(self.root) * _LOG_2_PI - log_scale

    def log_density(self, responses, draws):
        """Log density, (n,).

        Parameters
        ----------
        responses : (n, n_responses)
        draws : ParameterDraws, the copula's draws of these
        """
        logits, _, changes = self._copula.split(responses)
        squares = np.square(self.standardized(responses)).sum(axis=1)
        log_derivatives = self._log_derivatives(logits, draws).sum(axis=1)
        log_derivatives += self._copula.random_factors.log_derivatives(changes, draws.factors)
        return self._log_constant - 0.5 * squares - log_derivatives

    def standardized(self, responses):
        """Standard normal variables e with g = Root e: (n, n_responses) -> (n, n_responses)."""
        return solve_triangular(self.root, responses.T, lower=True).T

    def in_standard_deviations(self, slopes):
        """Root' of derivatives in g: derivatives in e, (n, n_responses)."""
        return slopes @ self.root

    def covariances_with(self, functionals):
        """Sigma_g a of linear functionals a' g: (d, n_responses) -> (d, n_responses)."""
        return (functionals @ self.root) @ self.root.T

    def precision_times(self, vectors):
        """Sigma_g^-1 of vectors: (n, n_responses) -> (n, n_responses)."""
        return cho_solve((self.root, True), vectors.T).T

    def inflations(self, deviations, n_directions):
        """Largest variances, in units of those of independent responses.

        Parameters
        ----------
        deviations : (n_responses,), standard deviations of these
        n_directions : int

        Returns
        -------
        inflations : (n_directions,), falling
        directions : (n_directions, n_responses), each of length one in standard deviations
        """
        scaled, size = self.root / deviations[:, None], len(deviations)
        if size < _LANCZOS_FROM_SIZE:
            largest = [max(0, size - n_directions), size - 1]
            inflations, directions = eigh(scaled.T @ scaled, subset_by_index=largest)
        else:
            squares = LinearOperator((size, size), matvec=lambda e: scaled.T @ (scaled @ e), dtype=float)
            start = np.random.default_rng(0).normal(size=size)
            inflations, directions = eigsh(squares, n_directions, v0=start, tol=_LANCZOS_TOLERANCE)
        return inflations[::-1], (self.root @ directions).T[::-1]

    def _log_derivatives(self, logits, draws):
        """log of the derivative of logit v in l, of every stick: (n, B)."""
        a, b = self._copula.beta_parameters
        log_density = a * draws.log_stick + b * draws.log_rest
        log_density -= log_partition(np.stack([a, b], axis=-1))
        deviations = self._copula.logit_deviations
        return -0.5 * (np.square(logits / deviations) + _LOG_2_PI) - np.log(deviations) - log_density

    def slopes_of_log_ratio(self, responses, draws, of_log_stick, of_log_rest, of_scaled_means, of_factors):
        """Derivatives in g of log p(X, theta(g)) - log of the copula's density: (n, n_responses).

        Parameters
        ----------
        responses : (n, n_responses)
        draws : ParameterDraws, the copula's draws of these
        of_log_stick, of_log_rest, of_scaled_means, of_factors : results of `log_joint_and_slopes`
        """
        copula, structure = self._copula, self._structure
        logits, _, changes = copula.split(responses)
        a, b = copula.beta_parameters
        log_derivatives = self._log_derivatives(logits, draws)
        # Those of the log derivatives are the normal's, less those of the logit's density.
        of_logits = (of_log_stick - a) * np.exp(log_derivatives + draws.log_rest)
        of_logits -= (of_log_rest - b) * np.exp(log_derivatives + draws.log_stick)
        of_logits -= logits / np.square(copula.logit_deviations)
        of_changes = copula.random_factors.slopes(changes, draws.factors, of_factors)
        of_quadratic = -structure.own_precision_scale * structure.entries(of_changes)
        of_linear = copula.mean_scale * of_scaled_means
        n_draws = len(responses)
        slopes = np.hstack([of_logits, of_linear.reshape(n_draws, -1), of_quadratic.reshape(n_draws, -1)])
        return slopes + self.precision_times(responses)


def _response_covariance(copula, structure, covariance):
    """Sigma_g, from M^-1."""
    n_components, jacobian = structure.n_components, copula.logit_jacobian
    own, mixed = covariance[:n_components, :n_components], covariance[:n_components, n_components:]
    of_logits = jacobian.T @ own @ jacobian + copula.logit_excess_root.T @ copula.logit_excess_root
    crossed = jacobian.T @ mixed
    return np.block([[of_logits, crossed], [crossed.T, covariance[n_components:, n_components:]]])
