"""The joint density of rows and parameters, which is the exact posterior's up to the evidence.

It is a density of the logits of the breaks of the stick, the scaled means and the precisions in the frames of
the fitted components, theta = (logit v; u; unique entries of T = L L'), as is that of the copula
(`copula_density`). The density of a break itself would lose digits next to zero. With tau and the complete
moments M1 and M2 (prior included) of the rows, weighted by their responsibilities under a draw,
its derivatives are

    in u      L' M1 - tau u
    in L      M1 u' - M2 L + kappa diag(1/L_ii),        kappa the exponent of |L|.
"""

import math

import numpy as np

from sklearn_lrvb.exponential_families.dirichlet import log_partition
from sklearn_lrvb.gaussian_mixture.posterior.variational_posterior import Moments
from sklearn_lrvb.gaussian_mixture.posterior_sampling.likelihood import (
    log_likelihood,
    log_likelihood_and_moments,
)

_LOG_2_PI = math.log(2.0 * math.pi)


def log_joint(rows, parameters):
    """log p(X, theta) of draws, (n,).

    Parameters
    ----------
    rows : CentredRows, the training rows
    parameters : DrawnParameters
    """
    return log_likelihood(rows, parameters) + log_prior(parameters)


def log_joint_and_slopes(rows, parameters):
    """log p(X, theta) of draws, and its derivatives.

    Returns
    -------
    values : (n,)
    of_log_stick, of_log_rest : (n, B), derivatives in log v and log(1 - v)
    of_scaled_means : (n, K, P), in u
    of_factors : (n, S, ...), in L; entries where L is zero have no meaning
    """
    sums, monomial_sums = log_likelihood_and_moments(rows, parameters)
    posterior, draws = parameters.posterior, parameters.draws
    structure, prior = posterior.structure, posterior.prior
    moments = complete_moments(posterior, monomial_sums)
    group_counts = structure.power * structure.layout.per_group(moments.counts)
    exponent = structure.expand(group_counts + _prior_exponent(prior))
    of_factors = structure.outer_products(moments.first, draws.scaled_means)
    of_factors -= structure.composed(moments.second, draws.factors)
    structure.diagonal(of_factors)[...] += _over_diagonal(structure, exponent, draws.factors)
    of_scaled_means = structure.transformed(structure.transposed(draws.factors), moments.first)
    of_scaled_means -= (prior.mean_precision + moments.counts)[..., None] * draws.scaled_means
    # Sums over rows of the components at a break, and of those behind it, besides the prior's exponents.
    n_breaks = draws.log_stick.shape[1]
    behind = np.cumsum(moments.counts[:, ::-1], axis=1)[:, ::-1] - moments.counts
    stick, rest = _prior_sticks(prior)
    return (
        sums + log_prior(parameters),
        moments.counts[:, :n_breaks] + stick,
        behind[:, :n_breaks] + rest,
        of_scaled_means,
        of_factors,
    )


def complete_moments(posterior, monomial_sums):
    """Moments of the components, prior included, from sums of the monomials (n, K, F): Moments."""
    structure = posterior.structure
    counts, first, entries = np.split(monomial_sums, [1, 1 + structure.n_features], axis=-1)
    second = structure.from_entries(entries)
    if structure.shares_precision:
        second = second.sum(axis=1, keepdims=True)
    return posterior.with_prior(Moments(counts[..., 0], first, second))


def log_prior(parameters):
    """log p(theta) of draws, (n,); a flat prior's density of means and precisions is 1."""
    posterior, draws = parameters.posterior, parameters.draws
    structure, prior = posterior.structure, posterior.prior
    stick, rest = _prior_sticks(prior)
    of_weights = stick * draws.log_stick + rest * draws.log_rest
    of_weights -= log_partition(np.stack([stick, rest], axis=-1))
    log_determinants = structure.log_determinants(draws.factors)  # of T
    of_frames = structure.log_determinants(posterior.covariance_cholesky)  # of (W' W)^-1
    if prior.flat:
        change = structure.layout.per_group(np.ones(structure.n_components)) * (of_frames - log_determinants)
        return of_weights.sum(axis=1) + (0.5 * change).sum(axis=1) + log_derivative_of_precisions(posterior)
    origins = structure.transformed(structure.transposed(draws.factors), posterior.whitened_prior_mean)
    squares = np.square(draws.scaled_means - origins).sum(axis=(1, 2))
    of_means = (
        0.5 * structure.n_components * structure.n_features * (math.log(prior.mean_precision) - _LOG_2_PI)
    )
    of_means = of_means - 0.5 * prior.mean_precision * squares
    axes = tuple(range(-structure.identity.ndim, 0))
    of_precisions = structure.precision_factors.log_density(
        prior.degrees_of_freedom,
        (structure.log_determinants(prior.covariance_cholesky) - of_frames) / structure.power,
        log_determinants,
        (structure.gram(draws.factors) * posterior.whitened_prior_scatter).sum(axis=axes),
    )
    return of_weights.sum(axis=1) + of_means + of_precisions.sum(axis=1)


def log_derivative_of_precisions(posterior):
    """log|d Lambda / d T| of the unique entries of Lambda = W' T W, summed over the groups: float."""
    structure = posterior.structure
    log_scales = np.log(structure.diagonal(posterior.whiteners)).sum()
    return (structure.precision_factors.block_size + 1) * log_scales


def _prior_exponent(prior):
    """Exponent of |L| in the prior, and in the derivative of the means in u."""
    factors = prior.structure.precision_factors
    if prior.flat:
        return -prior.structure.power * factors.n_means
    return prior.degrees_of_freedom - factors.block_size - 1.0


def _prior_sticks(prior):
    """Beta parameters of every break of the stick under the prior, a pair of (B,)."""
    return prior.weights.sticks(np.zeros(prior.structure.n_components))


def _over_diagonal(structure, exponent, factors):
    """The exponent over the diagonal of the factors, (n, S, P) or (n, S, Q)."""
    diagonal = structure.diagonal(factors)
    return np.broadcast_to(exponent.reshape(*exponent.shape[:2], 1), diagonal.shape) / diagonal
