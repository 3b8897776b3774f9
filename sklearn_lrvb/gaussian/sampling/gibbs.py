"""Draws of the parameters given rows that are assigned at random: what a sweep of Gibbs sampling takes."""

from dataclasses import replace

import numpy as np

from sklearn_lrvb.gaussian.posterior.tails import log_prior_of
from sklearn_lrvb.gaussian.sampling.copula import ParameterDraws
from sklearn_lrvb.gaussian.sampling.likelihood import complete_moments
from sklearn_lrvb.sampling.likelihood import log_likelihood, moments_of_random_assignments
from sklearn_lrvb.sampling.sticks import drawn_sticks

# Standard deviations of proposed steps of log nu. Every proposal has one between them, at random: the
# posterior's is one of a few hundredths with many rows of heavy tails, and near one with few or normal rows.
_LEAST_STEP, _LARGEST_STEP = 0.05, 1.0


def draws_given_random_assignments(rows, parameters, seed, generator):
    """A sweep: rows assigned at random given draws, and draws given these: ParameterDraws, counts (n, L).

    log nu stays.

    Parameters
    ----------
    rows : Rows, each of which counts a whole number of times
    parameters : GaussianParameters, of n draws
    seed : int, of the assignments
    generator : numpy.random.Generator, of the parameters
    """
    posterior = parameters.posterior
    moments = complete_moments(posterior, moments_of_random_assignments(rows, parameters, seed))
    return conditional_draws(posterior, moments, parameters.draws.log_tails, generator), moments.counts


def conditional_draws(posterior, moments, log_tails, generator):
    """Draws of the parameters given the assignments of all rows, their scales, and log nu: ParameterDraws.

    Parameters
    ----------
    posterior : VariationalPosterior, in whose frames the moments and the draws are
    moments : Moments of n draws; first and second moments include the prior, counts (n, L) do not
    log_tails : (n, number of fitted degrees of freedom), which stay
    generator : numpy.random.Generator
    """
    structure, prior = posterior.structure, posterior.prior
    sticks = drawn_sticks(posterior, moments.counts, generator)
    counts = moments.counts[:, : structure.n_components]
    mean_counts = counts if moments.scale_sums is None else moments.scale_sums
    mean_precision = prior.mean_precision + mean_counts
    means = moments.first / mean_precision[..., None]
    scatter = moments.second - structure.outer_products(moments.first, means)
    freedom = prior.degrees_of_freedom + structure.power * structure.per_group(counts)
    factors = structure.random_factors_type.wishart(generator, freedom, scatter)
    scaled_means = structure.transformed(structure.transposed(factors), means)
    scaled_means += generator.standard_normal(means.shape) / np.sqrt(mean_precision)[..., None]
    return ParameterDraws(*sticks, factors, scaled_means, log_tails)


def draws_with_moved_tails(rows, parameters, generator):
    """Draws after a step of Metropolis' algorithm in log nu, given the other parameters: ParameterDraws."""
    draws = parameters.draws
    if not draws.log_tails.shape[1]:
        return draws
    sizes = np.exp(generator.uniform(np.log(_LEAST_STEP), np.log(_LARGEST_STEP), (len(draws), 1)))
    steps = sizes * generator.standard_normal(draws.log_tails.shape)
    proposed = replace(draws, log_tails=draws.log_tails + steps)
    both = parameters.with_draws(ParameterDraws.concatenated([draws, proposed]))
    log_joints = log_likelihood(rows, both) + log_prior_of(both.draws.log_tails)[0]
    now, then = np.split(log_joints, 2)
    accepted = np.flatnonzero(np.log1p(-generator.random(len(now))) < then - now)
    return draws.replaced(accepted, proposed[accepted])
