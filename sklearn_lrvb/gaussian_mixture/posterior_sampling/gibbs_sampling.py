"""Gibbs sampling by data augmentation, of many chains at once.

A step assigns every row to a component at random, given the parameters, and draws the parameters given the
assignments, from the conjugate posterior of complete data. Its invariant distribution is the exact posterior.
The slowest linear function of the parameters keeps a share 1 - 1/lambda of its deviation in a step, where
lambda is the largest inflation of a variance by missing information: chains that start from nearly exact
draws need few steps, whose number follows from lambda at the fit. Convergence is not checked. Where the start
is far off and the posterior not Gaussian, the number is too small: for three components on the petals of the
irises it is 31, and draws still move until step 300.
"""

import math

import numpy as np

from sklearn_lrvb.gaussian_mixture.posterior_sampling.likelihood import moments_of_random_assignments
from sklearn_lrvb.gaussian_mixture.posterior_sampling.log_joint import complete_moments
from sklearn_lrvb.gaussian_mixture.posterior_sampling.parameter_draws import DrawnParameters, ParameterDraws

# Steps in units of the slowest function's relaxation time. Draws by unreliable importance weights are wrong
# by up to a standard deviation, of which five leave 0.7 %; those by reliable ones by some tenth of one, and
# those by nearly even ones by some hundredths.
_FROM_AFAR, _FROM_NEAR, _FROM_NEXT_TO_IT = 5.0, 3.0, 0.5
_EVEN_SHARE, _EVEN_K_HAT = 0.9, 0.5  # Effective share and tail shape of nearly even weights.


def check_whole_weights(rows):
    """Raise ValueError unless every row counts a whole number of times."""
    if rows.total(_distance_from_whole):
        raise ValueError(
            'correction="gibbs" assigns every row to a component as often as it counts: sample_weight must '
            'be whole numbers, but some are not. (a) correction="importance" takes any weights. (b) Round '
            "the weights."
        )


def _distance_from_whole(block):
    """Sum of the distances of the weights from whole numbers, a float; None where there are none."""
    weights = block.sample_weight
    return None if weights is None else float(np.abs(weights - np.round(weights)).sum())


def n_gibbs_steps(largest_inflation, weights):
    """Number of steps after which little of the start is left, if the posterior is nearly Gaussian.

    Parameters
    ----------
    largest_inflation : float, of a variance by missing information: the relaxation time in steps
    weights : ImportanceWeights of the start
    """
    times = _FROM_NEAR if weights.are_reliable else _FROM_AFAR
    if weights.k_hat <= _EVEN_K_HAT and weights.effective_draws >= _EVEN_SHARE * len(weights.log_ratios):
        times = _FROM_NEXT_TO_IT
    return math.ceil(times * largest_inflation)


def gibbs_chains(rows, posterior, origin, draws, n_steps, generator, tracked):
    """The last draws of chains that start from given ones: ParameterDraws.

    Parameters
    ----------
    rows : CentredRows, of whole weights
    posterior : VariationalPosterior, in whose frames the draws are
    origin : (P,)
    draws : ParameterDraws, one for every chain
    n_steps : int
    generator : numpy.random.Generator
    tracked : Tracked, through which the steps are gone
    """
    for _ in tracked(range(n_steps), n_steps):
        seed = int(generator.integers(2**63))
        sums = moments_of_random_assignments(rows, DrawnParameters(posterior, origin, draws), seed)
        draws = conditional_draws(posterior, complete_moments(posterior, sums), generator)
    return draws


def conditional_draws(posterior, moments, generator):
    """Draws of the parameters given the assignments of all rows: ParameterDraws.

    Parameters
    ----------
    posterior : VariationalPosterior, in whose frames the moments and the draws are
    moments : Moments of n draws, prior included
    generator : numpy.random.Generator
    """
    structure, prior = posterior.structure, posterior.prior
    log_stick, log_rest = _log_gammas(np.stack(prior.weights.sticks(moments.counts)), generator)
    log_total = np.logaddexp(log_stick, log_rest)
    mean_precision = prior.mean_precision + moments.counts
    means = moments.first / mean_precision[..., None]
    scatter = moments.second - structure.outer_products(moments.first, means)
    factors = structure.random_factors_type.wishart(
        generator, prior.effective_degrees_of_freedom(moments.counts), scatter
    )
    scaled_means = structure.transformed(structure.transposed(factors), means)
    scaled_means += generator.standard_normal(means.shape) / np.sqrt(mean_precision)[..., None]
    return ParameterDraws(log_stick - log_total, log_rest - log_total, factors, scaled_means)


def _log_gammas(shapes, generator):
    """Logarithms of gamma variables, also where these underflow: (...) -> (...)."""
    log_gammas = np.log(generator.standard_gamma(shapes + 1.0))
    return log_gammas + np.log1p(-generator.random(shapes.shape)) / shapes
