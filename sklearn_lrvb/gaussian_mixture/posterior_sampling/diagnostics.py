"""How far the exact posterior is from linear response, for the price of a few sweeps.

Linear response is a quadratic approximation of the log posterior. *Asymmetry* looks at its cubic and quartic
parts along the directions in which most information is missing; the *mean shift* is what they move the means
by.
"""

import numpy as np

from sklearn_lrvb.gaussian_mixture.posterior_sampling.log_joint import log_joint_and_slopes

_N_DIRECTIONS = 5  # Directions of largest inflation that are looked at.
_DISTANCE = 2.0  # How far, in standard deviations.
_N_PAIRS = 32  # Pairs of antithetic draws from which the mean shift is computed.


def asymmetries(sampler, rows):
    """Drops of the log posterior on both sides, over those of a quadratic, less one: (directions, 2).

    Parameters
    ----------
    sampler : PosteriorSampler
    rows : CentredRows, the training rows
    """
    _, directions = sampler.inflations(_N_DIRECTIONS)
    steps = _DISTANCE * np.concatenate([directions, -directions])
    responses = np.concatenate([np.zeros((1, steps.shape[1])), steps])
    # The density in the standard normal coordinates of the copula: a drop of distance^2/2 where it is right.
    log_ratios = sampler.log_ratios(rows, responses, sampler.copula.draws(responses))
    drops = (log_ratios[0] - log_ratios[1:]) / (0.5 * _DISTANCE**2)
    return drops.reshape(2, -1).T


def mean_shifts(sampler, rows, random_state, targets):
    """First-order errors of the means by linear response, in its standard deviations, and Monte Carlo errors.

    Let r be the log ratio of the posterior and the copula, a function of the standard normal e. By Stein's
    identity the mean of e under the posterior is, to first order in r, the mean of dr/de under the copula.

    Parameters
    ----------
    sampler : PosteriorSampler
    rows : CentredRows, the training rows
    random_state : numpy.random.RandomState
    targets : sequence of str

    Returns
    -------
    shifts, errors : (d,), of the flat targets
    log_ratios : (2 pairs,), log p(X, theta) less the log density of the draws
    """
    normals = random_state.standard_normal((_N_PAIRS, sampler.copula.n_normals))
    half = sampler.copula.responses(normals)
    responses = np.concatenate([half, -half])
    draws = sampler.copula.draws(responses)
    log_joint, *slopes = log_joint_and_slopes(rows, sampler.parameters(draws))
    log_ratios = log_joint - sampler.density.log_density(responses, draws)
    slopes = sampler.density.slopes_of_log_ratio(responses, draws, *slopes)
    by_pair = sampler.density.covariances_with(0.5 * (slopes[:_N_PAIRS] + slopes[_N_PAIRS:]))
    scores = np.concatenate([sampler.scores(target, by_pair) for target in targets], axis=1)
    return scores.mean(axis=0), scores.std(axis=0, ddof=1) / np.sqrt(_N_PAIRS), log_ratios
