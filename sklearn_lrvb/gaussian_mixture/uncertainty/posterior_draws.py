"""Draws of the parameters whose means and covariances are those of linear response.

All correlations of a draw are those of its coefficients beta ~ N(0, M^-1). Means respond to them linearly,
plus an independent normal variable for the excess of the Student t. Weights and precisions are bounded: their
standardized response to beta is transformed to a quantile of q's own family (a Gaussian copula):

* weights through their stick-breaking form. The logit l of a stick v ~ Beta(a, b) responds by J beta,
  and has the excess Cov_q(l) - J R J' of the general rule Cov(l) = Cov_q(l) + J (M^-1 - R) J'. It becomes the
  logit of a Beta(s a, s b) variable with this variance; s = 1 where no information is missing;
* precisions through Bartlett's factors (`bartlett`) or as gamma variables, in the frame where they are the
  identity on average.

The first two moments of means are exact; those of weights and precisions have relative errors of order 1/N_k.
"""

from functools import cached_property

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import polygamma

from sklearn_lrvb.exponential_families.quantiles import beta_quantile_pair
from sklearn_lrvb.row_blocks import batches, slices, untracked
from sklearn_lrvb.symmetric_matrices import gram_root

_ARRAYS_PER_DRAW = 16  # Number of arrays of the size of the coefficients that exist at once.
_VARIANCES_AT_ONCE = 512  # Number of variances of precisions that are computed at once.
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


class PosteriorDraws:
    """Random weights, means, precisions and covariances.

    Parameters
    ----------
    targets : Targets
    information : ObservedInformation, positive definite
    """

    def __init__(self, targets, information):
        self._targets = targets
        self._posterior = targets.posterior
        self._information = information

    def draw(self, n_draws, random_state, tracked=untracked):
        """Random parameters, by target.

        Every draw uses its own consecutive random numbers, so that the size of batches does not matter.

        Parameters
        ----------
        n_draws : int
        random_state : numpy.random.RandomState
        tracked : Tracked, through which the batches of draws are gone

        Returns
        -------
        draws : dict of ndarray (n_draws, *shape of the attribute)
            Its keys are "weights", "means", "precisions" and "covariances".
        """
        structure = self._posterior.structure
        stops = np.cumsum([structure.n_coefficients, self._posterior.centred_means.size])
        n_normals = stops[-1] + len(self._logit_variance)
        targets = ("weights", "means", "precisions", "covariances")
        correlated = self._correlation(n_draws)
        draws = {target: np.empty((n_draws, *self._targets[target].value().shape)) for target in targets}
        places = batches(n_draws, 8 * _ARRAYS_PER_DRAW * n_normals)
        for batch in tracked(places, len(places)):
            normals = random_state.standard_normal((batch.stop - batch.start, n_normals))
            for_coefficients, for_means, for_sticks = np.split(normals, stops, axis=1)
            intercepts, linear, quadratic = structure.layout.split(correlated(for_coefficients))
            draws["weights"][batch] = self._weights(intercepts, for_sticks)
            draws["means"][batch] = self._means(linear, for_means)
            draws["precisions"][batch], draws["covariances"][batch] = self._precisions(quadratic)
        return draws

    def _correlation(self, n_draws):
        """Callable that makes draws of beta from normals, (n, D) -> (n, D), by a matrix if draws are many."""
        size = self._posterior.structure.n_coefficients
        if size > n_draws:
            return lambda normals: self._information.correlated(np.ascontiguousarray(normals.T)).T
        root = self._information.correlated(np.eye(size))
        return lambda normals: normals @ root.T

    def _means(self, linear, normals):
        """Means from linear coefficients (n, K, P), and normals (n, K P) for the excess: (n, K, P)."""
        means = self._targets["means"]
        scale = np.sqrt(means.excess_scale)[:, None]
        change = linear + scale * normals.reshape(linear.shape)
        return means.value() + means.shaped(means.response(change))

    # Weights.

    @property
    def _sticks(self):
        return self._posterior.prior.weights

    @cached_property
    def _logit_jacobian(self):
        """J' = (V_pi + C)^-1 Cov(log pi, l), (K, number of breaks)."""
        return self._posterior.count_response(self._logit_covariance).T

    @property
    def _logit_covariance(self):
        return self._sticks.logit_covariance_with_log(self._posterior.counts)

    @cached_property
    def _logit_excess_root(self):
        """Y with Y' Y = Cov_q(l) - J R J'."""
        half = solve_triangular(self._posterior.intercept_root, self._logit_covariance.T, lower=True)
        excess = np.diag(self._sticks.logit_variance(self._posterior.counts)) - half.T @ half
        return gram_root(excess) if len(excess) else excess  # A single component has no breaks.

    @cached_property
    def _logit_variance(self):
        """Variances of the logits by linear response, one for every break of the stick."""
        root = self._information.covariance_root(self._targets["weights"].coordinates())
        explained = np.square(root @ self._logit_jacobian).sum(axis=0)
        return explained + np.square(self._logit_excess_root).sum(axis=0)

    @cached_property
    def _beta_parameters(self):
        """Parameters of the beta distributions of the sticks, a pair of (number of breaks,)."""
        stick, rest = self._sticks.sticks(self._posterior.counts)
        size = beta_size(stick, rest, self._logit_variance)
        return size * stick, size * rest

    def _weights(self, intercepts, normals):
        """Weights from intercepts (n, K), and normals (n, number of breaks) for the excess: (n, K)."""
        logits = intercepts @ self._logit_jacobian + normals @ self._logit_excess_root
        sticks = beta_quantile_pair(logits / np.sqrt(self._logit_variance), *self._beta_parameters)
        return self._sticks.from_sticks(*sticks)

    # Precisions.

    @cached_property
    def _precision_deviations(self):
        """Standard deviations of precisions in their own frames, (S, ...)."""
        structure, coordinates = self._posterior.structure, self._targets["precisions"].coordinates()
        squares = [
            np.square(self._information.covariance_root(coordinates[some])).sum(axis=0)
            for some in slices(len(coordinates), _VARIANCES_AT_ONCE)
        ]
        deviations = np.sqrt(np.concatenate(squares)).reshape(
            structure.layout.n_precision_groups, structure.n_quadratic
        )
        return np.abs(structure.own_precision_response(deviations))

    def _precisions(self, quadratic):
        """Precisions and covariances from quadratic coefficients: (n, S, Q) -> a pair of arrays."""
        posterior, structure = self._posterior, self._posterior.structure
        factors = structure.random_factors(
            structure.own_precision_response(quadratic),
            self._precision_deviations,
            posterior.degrees_of_freedom,
        )
        inverses = structure.whiteners(factors.reshape(-1, *factors.shape[2:])).reshape(factors.shape)
        factors_of_both = (
            structure.composed(structure.transposed(posterior.whiteners), factors),
            structure.composed(posterior.covariance_cholesky, structure.transposed(inverses)),
        )
        return tuple(structure.reporting.reported(self._squared(own)) for own in factors_of_both)

    def _squared(self, factors):
        """The matrices L L' of factors L, exactly symmetric: (n, S, ...) -> (n, S, ...)."""
        structure = self._posterior.structure
        squares = structure.gram(factors)
        return structure.from_unique_entries(structure.unique_entries(squares))
