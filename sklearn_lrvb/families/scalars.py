"""Independent scalars behind the parameters: logits of beta variables, and logarithms of gamma variables.

Probabilities p have them by breaking a stick: p_c = v_c (1 - v_1) ... (1 - v_(c-1)). Under a Dirichlet
distribution the v_c are independent beta variables.
"""

import numpy as np
from scipy.special import digamma, expit, gammaln, zeta

from sklearn_lrvb.distributions.dirichlet import log_density_of_logit
from sklearn_lrvb.distributions.special_functions import log_gamma_draws

# Above these the series below have all digits, and the differences lose some.
_LARGE_SHAPE, _SHAPE_OF_ROOTS = 1e3, 30.0


def sticks(concentration):
    """Parameters of the beta variables v_c of a Dirichlet distribution: (..., C) -> (..., C - 1, 2)."""
    after = np.cumsum(concentration[..., ::-1], axis=-1)[..., ::-1]
    return np.stack([concentration[..., :-1], after[..., 1:]], axis=-1)


def along_sticks(of_stick, of_rest):
    """Sums that log p is of log v and log(1 - v): (..., C - 1) twice -> (..., C)."""
    summed = np.zeros((*of_stick.shape[:-1], of_stick.shape[-1] + 1))
    summed[..., :-1] = of_stick
    summed[..., 1:] += np.cumsum(of_rest, axis=-1)
    return summed


def log_sticks(logits):
    """log v and log(1 - v) of sticks with given logits: (...) -> (...) twice."""
    return -np.logaddexp(0.0, -logits), -np.logaddexp(0.0, logits)


def log_probabilities(logits):
    """log p of sticks with given logits: (..., C - 1) -> (..., C)."""
    return along_sticks(*log_sticks(logits))


def stick_logits(log_probabilities):
    """Logits of the sticks of some probabilities, from their logarithms: (..., C) -> (..., C - 1)."""
    after = np.logaddexp.accumulate(log_probabilities[..., ::-1], axis=-1)[..., ::-1]
    return log_probabilities[..., :-1] - after[..., 1:]


def stick_slopes(logits, slopes):
    """Slopes in log p, (..., C), as slopes in the logits, (..., C - 1)."""
    later = np.cumsum(slopes[..., ::-1], axis=-1)[..., ::-1][..., 1:]
    return expit(-logits) * slopes[..., :-1] - expit(logits) * later


def log_logit_density(logits, parameters):
    """Log density of logits of beta variables, summed by draw: (n, ...) -> (n,); and its slopes, (n, ...).

    Parameters
    ----------
    parameters : (..., 2), those of the beta variables
    """
    a, b = np.moveaxis(np.asarray(parameters), -1, 0)
    log_density = log_density_of_logit(*log_sticks(logits), a, b)
    return _by_draw(log_density), a * expit(-logits) - b * expit(logits)


def log_gamma_density(logs, parameters):
    """Log density of log gamma variables, summed by draw: (n, ...) -> (n,); and its slopes, (n, ...).

    Parameters
    ----------
    parameters : (..., 2), shapes and rates
    """
    shape, rate = np.moveaxis(np.asarray(parameters), -1, 0)
    scaled = rate * np.exp(logs)
    log_density = shape * np.log(rate) + shape * logs - scaled - gammaln(shape)
    return _by_draw(log_density), shape - scaled


def _by_draw(values):
    return values.reshape(len(values), -1).sum(axis=1)


def drawn_log_gammas(parameters, generator):
    """Logarithms of gamma variables, by shape and rate: (..., 2) -> (...)."""
    return log_gamma_draws(parameters[..., 0], generator) - np.log(parameters[..., 1])


def drawn_logits(parameters, generator):
    """Logits of beta variables: (..., 2) -> (...)."""
    log_gammas = log_gamma_draws(parameters, generator)
    return log_gammas[..., 0] - log_gammas[..., 1]


# By the kind of a scalar. Normal ones depend on others, and their family knows how.
LOG_DENSITIES = {"logit": log_logit_density, "log_gamma": log_gamma_density}
DRAWN = {"logit": drawn_logits, "log_gamma": drawn_log_gammas}


def trigamma_excess(shape):
    """Trigamma(x) - 1/x, the variance of a log gamma variable less its linear part's: (...)."""
    inverse = 1.0 / shape
    series = inverse**2 * (0.5 + inverse * (1.0 / 6.0 - inverse**2 / 30.0))
    return np.where(shape > _LARGE_SHAPE, series, zeta(2.0, shape) - inverse)


def inverse_root_moments(shape):
    """Of tau^-1/2, tau a gamma variable of rate one: log of its mean, slope of that, variance; (...) each.

    The mean exists where the shape exceeds 1/2, and the variance where it exceeds one. Elsewhere they are
    those of the first order about the mean of tau.
    """
    has_mean, has_variance = shape > 0.5, shape > 1.0
    safe, middle = np.where(has_mean, shape, 1.0), np.maximum(shape, _SHAPE_OF_ROOTS) - 0.75
    inverse = middle**-2.0
    series = inverse * (-1 / 64 + inverse * (5 / 2048 + inverse * (-61 / 49152 + inverse * (1385 / 1048576))))
    is_large = shape > _SHAPE_OF_ROOTS
    near = gammaln(safe - 0.5) - gammaln(safe)
    log_mean = np.where(is_large, series - 0.5 * np.log(middle), near)
    slope = digamma(safe - 0.5) - digamma(safe)
    # E tau^-1 is 1/(shape - 1).
    log_ratio = np.where(is_large, -np.log1p(-0.25 / middle) - 2.0 * series, 0.0)
    log_ratio -= np.where(is_large, 0.0, np.log(np.where(has_variance, shape - 1.0, 1.0)) + 2.0 * near)
    variance = np.where(has_variance, np.exp(2.0 * log_mean) * np.expm1(log_ratio), 0.25 / np.square(shape))
    first_order = -0.5 * np.log(shape), -0.5 / shape
    return np.where(has_mean, log_mean, first_order[0]), np.where(has_mean, slope, first_order[1]), variance


def mixed_moments(responsibilities, means, variances):
    """Mean and standard deviation of mixtures of distributions: (K, n), (K, c), (K, c) -> (c, n), (c, n)."""
    mean = means.T @ responsibilities
    distances = np.square(means[:, :, None] - mean)
    variance = variances.T @ responsibilities + np.einsum("kn,kcn->cn", responsibilities, distances)
    return mean, np.sqrt(variance)
