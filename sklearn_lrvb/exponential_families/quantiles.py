"""Quantile functions of families with a restricted range, as functions of a standard normal variable.

A quantile at Phi(z) is taken from the tail that z is in, so that neither tail loses digits. Everything
broadcasts; means and standard deviations are positive unless something else is said.
"""

import numpy as np
from scipy.special import betainccinv, betaincinv, gammainccinv, gammaincinv, ndtr

# From here on an expansion around the normal limit is exact to round-off, where the inverses lose digits.
_LARGE_GAMMA_SHAPE = 1e5
_LARGE_BETA_SHAPE = 1e8
_SMALLEST_GAMMA = 1e-100  # in units of the mean: its reciprocal and its square stay finite
_SMALLEST_BETA_SIZE = 1e-6  # a + b of a beta variable that is as good as 0 or 1
_LARGEST_RATIO = 1e100  # of a mean to its standard deviation: its square is still a number


def _in_its_tail(normal, lower, upper, *parameters):
    """lower(..., Phi(z)) for z < 0, upper(..., 1 - Phi(z)) for the others, one-dimensional."""
    quantiles, below = np.empty_like(normal), normal < 0
    for where, inverse in ((below, lower), (~below, upper)):
        quantiles[where] = inverse(*(own[where] for own in parameters), ndtr(-np.abs(normal[where])))
    return quantiles


def normal_quantile(normal, mean, deviation):
    """mean + deviation z, any mean."""
    return mean + deviation * normal


def gamma_quantile(normal, mean, deviation):
    """Of the gamma variable of this mean and standard deviation; ends at 1e-100 of the mean."""
    normal, mean, ratio = np.broadcast_arrays(normal, mean, np.minimum(mean / deviation, _LARGEST_RATIO))
    quantiles = np.empty(normal.shape)  # in units of the mean
    large = ratio**2 >= _LARGE_GAMMA_SHAPE
    quantiles[large] = _large_gamma(normal[large], ratio[large])
    z, shape = normal[~large], ratio[~large] ** 2
    quantiles[~large] = _in_its_tail(z, gammaincinv, gammainccinv, shape) / shape
    return mean * np.maximum(quantiles, _SMALLEST_GAMMA)


def _large_gamma(z, ratio):
    """Cornish and Fisher's expansion, mean 1 and standard deviation 1/ratio."""
    series = z + (z**2 - 1) / (3 * ratio) + (z**3 - 7 * z) / (36 * ratio**2)
    series -= (3 * z**4 + 7 * z**2 - 16) / (810 * ratio**3)
    return 1.0 + series / ratio


def negative_gamma_quantile(normal, mean, deviation):
    """Of a variable whose negative is gamma; the mean is negative."""
    return -gamma_quantile(np.negative(normal), np.negative(mean), deviation)


def inverse_gamma_quantile(normal, mean, deviation):
    """Of a variable whose reciprocal is gamma, with shape 2 + (mean/deviation)^2."""
    shape = 2.0 + np.minimum(mean / deviation, _LARGEST_RATIO) ** 2
    return mean * (1.0 - 1.0 / shape) / gamma_quantile(np.negative(normal), 1.0, 1.0 / np.sqrt(shape))


def beta_quantile(normal, mean, deviation):
    """Of the beta variable of this mean, in [0, 1], and standard deviation.

    Where no beta variable varies as much, of one that is 0 or 1 with nearly all its probability.
    """
    mean = np.clip(mean, np.finfo(float).tiny, 1.0 - np.finfo(float).epsneg)
    ratio = np.minimum(np.sqrt(mean * (1.0 - mean)) / deviation, _LARGEST_RATIO)
    size = np.maximum(ratio**2 - 1.0, _SMALLEST_BETA_SIZE)
    return beta_quantiles(normal, mean * size, (1.0 - mean) * size)[0]


def beta_quantiles(normal, a, b):
    """Of v ~ Beta(a, b), and what it leaves over, 1 - v, each with all its digits."""
    normal, a, b = np.broadcast_arrays(normal, a, b)
    stick, rest = np.empty(normal.shape), np.empty(normal.shape)
    large = np.minimum(a, b) >= _LARGE_BETA_SHAPE
    stick[large], rest[large] = _large_beta(normal[large], a[large], b[large])
    z, a, b = normal[~large], a[~large], b[~large]
    stick[~large] = _in_its_tail(z, betaincinv, betainccinv, a, b)
    # P(1 - V <= 1 - v) = P(V >= v)
    rest[~large] = _in_its_tail(z, betainccinv, betaincinv, b, a)
    return stick, rest


def _large_beta(z, a, b):
    """Cornish and Fisher's expansion of v and 1 - v."""
    size = a + b
    mean, complement = a / size, b / size
    product, difference = mean * complement, complement - mean
    skewness = 2.0 * difference / np.sqrt(product * size)
    excess = 6.0 * (difference**2 - product) / (product * size)
    series = z + skewness * (z**2 - 1) / 6
    series += excess * (z**3 - 3 * z) / 24 - skewness**2 * (2 * z**3 - 5 * z) / 36
    change = np.sqrt(product / (size + 1.0)) * series
    return mean + change, complement - change
