"""The hyperparameters in exact draws: given ones, and learned ones, which are integrated out.

*Mathematics.* Given draws of the means and precisions the learned hyperparameters (`posterior.learned_prior`)
have closed conditional distributions,

    b0 ~ Gamma(s', r + Q/2),    Q = sum_k (mu_k - m0)' Lambda_k (mu_k - m0),
    C0 ~ Wishart(g', H^-1),     H = A + sum of Lambda over the groups,

so that p(mu, Lambda) has the ratio of their normalizing constants to those of the hyperprior. Its slopes are
those for given hyperparameters, at their conditional means (Fisher's identity). An iteration of Gibbs
sampling draws them given the rest, and keeps the rest alone.

*Components without rows* follow their prior given the other components. Under learned hyperparameters they
depend on each other through b0 and C0, and have heavy tails together: Gaussian copulas fit badly. Importance
sampling therefore draws b0 and C0 given the other components, and components without rows given b0 and C0.
The density of these is p(mu, Lambda) of all components over that of the others: it cancels in the ratio.
"""

import math
from dataclasses import replace
from functools import cached_property

import numpy as np

from sklearn_lrvb.distributions.wishart import log_partition
from sklearn_lrvb.gaussian.posterior.tails import log_nu_from_prior
from sklearn_lrvb.mixture.model import occupied

_LOG_2_PI = math.log(2.0 * math.pi)


def without_rows(posterior):
    """Components that importance sampling draws from their prior given the others: bool (K,).

    Under given hyperparameters there are none: the copula describes every component by itself.
    """
    return ~occupied(posterior.counts) & (posterior.prior.learned is not None)


class GivenHyperparameters:
    """The hyperparameters b0 and C0: the same for all draws, or one pair for each.

    Parameters
    ----------
    posterior : VariationalPosterior
    mean_precision : float, or (n, 1, 1)
    scatter : ndarray of shape (S, ...) or (n, S, ...), C0 in whitened coordinates
    """

    def __init__(self, posterior, mean_precision, scatter):
        self._posterior = posterior
        self.mean_precision, self.scatter = mean_precision, scatter

    def completed(self, moments):
        """Moments of the rows, completed by the known noise and by the prior."""
        posterior, structure = self._posterior, self._posterior.structure
        completed = posterior.with_known_noise(moments)
        distance = posterior.whitened_prior_mean
        completed.first = moments.first + self.mean_precision * distance
        squares = structure.sum_of_squares(distance, np.ones(len(distance)))
        weights = np.reshape(self.mean_precision, (-1, *[1] * squares.ndim))  # (n or 1, 1, ...)
        completed.second = completed.second + self.scatter + weights * squares
        return completed


class HyperparametersOfDraws:
    """b0 and C0 given draws of means and precisions.

    Parameters
    ----------
    posterior : VariationalPosterior, in whose coordinates the draws are
    draws : ParameterDraws
    components : bool (K,), those of which means and precisions are given
    """

    def __init__(self, posterior, draws, components):
        self._posterior, self._prior, self._draws = posterior, posterior.prior, draws
        self._structure, self._learned = posterior.structure, posterior.prior.learned
        self._components, self._groups = components, posterior.structure.layout.per_group(components) > 0

    @cached_property
    def _squares(self):
        """Q, (n,)."""
        structure, draws = self._structure, self._draws
        means = structure.transformed(
            structure.transposed(draws.factors), self._posterior.whitened_prior_mean
        )
        return np.square(draws.scaled_means - means)[:, self._components].sum(axis=(1, 2))

    @cached_property
    def _inverse_scale(self):
        """H, (n, ...), with its factor."""
        structure = self._structure
        roots = structure.composed(structure.transposed(self._posterior.whiteners), self._draws.factors)
        prior = self._learned.inverse_scale(self._prior.degrees_of_freedom)
        inverse_scale = structure.gram(roots)[:, self._groups].sum(axis=1) + prior
        return inverse_scale, structure.cholesky(inverse_scale)

    @property
    def _freedom(self):
        return self._learned.own_freedom(int(self._groups.sum()), self._prior.degrees_of_freedom)

    @property
    def _n_means(self):
        return int(self._components.sum()) * self._structure.n_features

    @property
    def _shape(self):
        return self._learned.shape + 0.5 * self._n_means

    @property
    def _given_scatter(self):
        """C0 in the whitened coordinates of every group where it is given, (S, ...); 0 under a flat prior."""
        return 0.0 if self._prior.flat else self._structure.gram(self._posterior.whitened_prior_root)

    def expected(self):
        """Their conditional means: GivenHyperparameters."""
        posterior, learned, structure = self._posterior, self._learned, self._structure
        b, scatter = self._prior.mean_precision, self._given_scatter
        if structure.parts.learns_mean_precision:
            b = (self._shape / (learned.rate + 0.5 * self._squares))[:, None, None]
        if structure.parts.learns_covariance:
            roots = structure.transposed(structure.whiteners(self._inverse_scale[1]))
            scatter = self._freedom * self._in_coordinates(roots)
        return GivenHyperparameters(posterior, b, scatter)

    def drawn(self, generator):
        """Draws from their conditional distributions: GivenHyperparameters."""
        posterior, structure = self._posterior, self._structure
        b, scatter = self._prior.mean_precision, self._given_scatter
        if structure.parts.learns_mean_precision:
            b = self.drawn_mean_precisions(generator)[:, None, None]
        if structure.parts.learns_covariance:
            scatter = self._in_coordinates(self.drawn_covariance_roots(generator))
        return GivenHyperparameters(posterior, b, scatter)

    def drawn_mean_precisions(self, generator):
        """Draws of b0, where it is learned, (n,)."""
        gammas = generator.standard_gamma(self._shape, len(self._squares))
        return gammas / (self._learned.rate + 0.5 * self._squares)

    def drawn_covariance_roots(self, generator):
        """R with R R' a draw of C0, where it is learned, (n, ...)."""
        inverse_scale = self._inverse_scale[0][:, None]
        freedom = np.full((len(inverse_scale), 1), self._freedom)
        return self._structure.random_factors_type.wishart(generator, freedom, inverse_scale)[:, 0]

    def _in_coordinates(self, roots):
        """R R' in the whitened coordinates of every group: (n, ...) -> (n, S, ...)."""
        return self._structure.gram(self._structure.composed(self._posterior.whiteners, roots[:, None]))

    def with_other_components(self, generator):
        """The draws, with components of which none is given drawn from their prior: ParameterDraws."""
        structure, draws = self._structure, self._draws
        others, groups, drawn = ~self._components, ~self._groups, self.drawn(generator)
        factors, scaled_means = draws.factors.copy(), draws.scaled_means.copy()
        scatter = np.broadcast_to(drawn.scatter, factors.shape)[:, groups]
        freedom = np.full(scatter.shape[:2], self._prior.degrees_of_freedom)
        factors[:, groups] = structure.random_factors_type.wishart(generator, freedom, scatter)
        means = structure.transformed(structure.transposed(factors), self._posterior.whitened_prior_mean)
        noise = generator.standard_normal(means.shape) / np.sqrt(drawn.mean_precision)
        scaled_means[:, others] = (means + noise)[:, others]
        log_tails = draws.log_tails.copy()
        if structure.tails_shape:
            log_tails[:, others] = log_nu_from_prior(generator, (len(draws), others.sum()))
        return replace(draws, factors=factors, scaled_means=scaled_means, log_tails=log_tails)

    def log_density(self):
        """log p of the scaled means u and of the precisions in whitened coordinates, (n,)."""
        return self._of_means() + self._of_precisions()

    def _of_means(self):
        n_means = self._n_means
        if not self._structure.parts.learns_mean_precision:
            b = self._prior.mean_precision
            return 0.5 * n_means * (math.log(b) - _LOG_2_PI) - 0.5 * b * self._squares
        s, r = self._learned.shape, self._learned.rate
        constant = math.lgamma(self._shape) - math.lgamma(s) + s * math.log(r) - 0.5 * n_means * _LOG_2_PI
        return constant - self._shape * np.log(r + 0.5 * self._squares)

    def _of_precisions(self):
        posterior, prior, structure = self._posterior, self._prior, self._structure
        wisharts, factors, groups = structure.wisharts, self._draws.factors[:, self._groups], self._groups
        log_determinants = structure.log_determinants(factors)  # of T
        frames = structure.log_determinants(posterior.covariance_cholesky)[groups]  # of (W' W)^-1
        if not structure.parts.learns_covariance:
            axes = tuple(range(-structure.identity.ndim, 0))
            by_group = wisharts.log_density(
                prior.degrees_of_freedom,
                (structure.log_determinants(prior.covariance_cholesky) - frames) / structure.power,
                log_determinants,
                (structure.gram(factors) * self._given_scatter[groups]).sum(axis=axes),
            )
            return by_group.sum(axis=1)
        # The density for C0 = I without its trace term, times the integral over C0.
        by_group = wisharts.log_density(
            prior.degrees_of_freedom, -frames / structure.power, log_determinants, 0.0
        )
        of_rows = self._log_partition(self._freedom, self._inverse_scale[1])
        return by_group.sum(axis=1) + of_rows - self._log_partition_of_prior()

    def _log_partition(self, freedom, factor):
        structure, wisharts = self._structure, self._structure.wisharts
        log_det = structure.log_determinants(factor) / structure.power / wisharts.n_blocks
        return wisharts.n_blocks * log_partition(freedom, log_det, wisharts.block_size)

    def _log_partition_of_prior(self):
        inverse_scale = self._learned.inverse_scale(self._prior.degrees_of_freedom)
        return self._log_partition(self._learned.freedom, self._structure.cholesky(inverse_scale))
