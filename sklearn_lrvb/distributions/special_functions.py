"""Quantile functions of normal, gamma, inverse gamma and beta variables; and the log gamma function.

*Log gamma*: differences of its values are computed without the parts that cancel.

*Quantiles.* The probability is given by a standard normal variable z, and a quantile is computed from the
tail that z is in, so that neither tail loses digits. Except for `beta_quantile_pair` the functions take the
mean and the standard deviation of the variable instead of its shapes. All arguments broadcast; means and
standard deviations are positive unless the function says otherwise.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import (
    betainc,
    betaincc,
    betainccinv,
    betaincinv,
    betaln,
    gammainc,
    gammaincc,
    gammainccinv,
    gammaincinv,
    gammaln,
    log_ndtr,
    ndtr,
    ndtri,
    ndtri_exp,
    polygamma,
)

_STIRLING_FROM = 16.0  # Argument from which five terms of Stirling's series are exact to round-off.

# Argument from which log gamma functions are not subtracted from each other. Below it their own rounding,
# which stays when they cancel, is at most 1e-13. Default priors of fewer than 200 features stay below it.
CANCELS_FROM = 100.0


_LARGEST_CORRELATION = 1.0 - 2.0**-53  # Of which the inverse hyperbolic tangent is finite.


def stirling_remainder(x):
    """log Gamma(x) - (x - 1/2) log x + x - log(2 pi)/2."""
    small, large = np.minimum(x, _STIRLING_FROM), np.maximum(x, _STIRLING_FROM)
    exact = gammaln(small) - (small - 0.5) * np.log(small) + small - 0.5 * np.log(2.0 * np.pi)
    z = large**-2.0
    series = (1 / 12 - z * (1 / 360 - z * (1 / 1260 - z * (1 / 1680 - z / 1188)))) / large
    return np.where(x < _STIRLING_FROM, exact, series)


def log_gamma_rise(start, rise):
    """log Gamma(start + rise) - log Gamma(start): (...), (...) -> (...).

    The error is relative to the result, beside that of the log gamma functions below ``CANCELS_FROM``.

    Parameters
    ----------
    start : array (...), positive
    rise : array (...), above ``-start``
    """
    end = start + rise
    if start.max(initial=0.0) < CANCELS_FROM:
        return gammaln(end) - gammaln(start)
    leading = (start - 0.5) * np.log1p(rise / start) + rise * (np.log(end) - 1.0)
    return leading + stirling_remainder(end) - stirling_remainder(start)


# Shapes from which an expansion around the normal limit is exact to round-off, where the inverses of the
# incomplete gamma and beta functions lose digits.
_LARGE_GAMMA_SHAPE = 1e5
_LARGE_BETA_SHAPE = 1e8
SMALLEST_GAMMA = 1e-100  # Least quantile in units of the mean; its reciprocal and its square are finite.
_SMALLEST_BETA_SIZE = 1e-6  # Least a + b; such a beta variable is almost surely next to 0 or 1.
_TINY_BETA = 1e-200  # Beta variables below this are computed by the leading term of their distribution.
_LARGEST_RATIO = 1e100  # Largest ratio of a mean to its standard deviation; its square is finite.


def _in_its_tail(normal, lower, upper, *parameters):
    """lower(*parameters, Phi(z)) where z < 0 and upper(*parameters, 1 - Phi(z)) elsewhere: all (n,)."""
    quantiles, below = np.empty_like(normal), normal < 0
    for where, inverse in ((below, lower), (~below, upper)):
        quantiles[where] = inverse(*(own[where] for own in parameters), ndtr(-np.abs(normal[where])))
    return quantiles


def normal_quantile(normal: ArrayLike, mean: ArrayLike, deviation: ArrayLike) -> NDArray[np.float64]:
    """Quantile of a normal variable, mean + deviation * z; the mean may have any sign.

    Parameters
    ----------
    normal : array-like
        Standard normal variable z: the quantile is that of the probability Phi(z).
    mean, deviation : array-like
        Mean and standard deviation of the variable.

    Returns
    -------
    quantiles : ndarray
        In the broadcast shape.

    Examples
    --------
    >>> from sklearn_lrvb.distributions.special_functions import normal_quantile
    >>> print(normal_quantile(1.0, mean=3.0, deviation=0.5))
    3.5
    """
    return np.asarray(mean) + np.multiply(deviation, normal)


def log_normal_quantile(normal, mean, deviation):
    """Quantiles of variables whose logarithm is normal, with these standard deviations to first order.

    Parameters
    ----------
    normal : standard normal quantiles at the probabilities
    mean, deviation : their medians, and standard deviations, (d,)
    """
    return mean * np.exp(normal * (deviation / mean))


def correlation_quantile(normal, mean, deviation):
    """Quantiles of correlations by Fisher's transformation, under which they are taken to be normal.

    Parameters
    ----------
    normal : standard normal quantiles at the probabilities
    mean, deviation : their values and standard deviations, (d,)
    """
    slope = 1.0 - np.square(mean)
    scaled = np.divide(deviation, slope, out=np.zeros_like(deviation), where=slope > 0)
    return np.tanh(np.arctanh(np.clip(mean, -_LARGEST_CORRELATION, _LARGEST_CORRELATION)) + normal * scaled)


def gamma_quantile(normal: ArrayLike, mean: ArrayLike, deviation: ArrayLike) -> NDArray[np.float64]:
    """Quantile of the gamma variable with a given mean and standard deviation; at least 1e-100 of the mean.

    Parameters and returns as in `normal_quantile`.

    Examples
    --------
    >>> from sklearn_lrvb.distributions.special_functions import gamma_quantile
    >>> gamma_quantile([-2.0, 0.0, 2.0], mean=3.0, deviation=1.2).round(4)
    array([1.1047, 2.8416, 5.8432])
    """
    ratio = np.minimum(np.divide(mean, deviation), _LARGEST_RATIO)
    normal, mean, ratio = np.broadcast_arrays(normal, mean, ratio)
    quantiles = np.empty(normal.shape)  # in units of the mean
    large = ratio**2 >= _LARGE_GAMMA_SHAPE
    quantiles[large] = _large_gamma(normal[large], ratio[large])
    z, shape = normal[~large], ratio[~large] ** 2
    quantiles[~large] = _in_its_tail(z, gammaincinv, gammainccinv, shape) / shape
    return mean * np.maximum(quantiles, SMALLEST_GAMMA)


def _large_gamma(z, ratio):
    """Cornish and Fisher's expansion for mean 1 and standard deviation 1/ratio."""
    series = z + (z**2 - 1) / (3 * ratio) + (z**3 - 7 * z) / (36 * ratio**2)
    series -= (3 * z**4 + 7 * z**2 - 16) / (810 * ratio**3)
    return 1.0 + series / ratio


def negative_gamma_quantile(normal: ArrayLike, mean: ArrayLike, deviation: ArrayLike) -> NDArray[np.float64]:
    """Quantile of a variable whose negative is a gamma variable; the mean is negative.

    Parameters and returns as in `normal_quantile`.

    Examples
    --------
    >>> from sklearn_lrvb.distributions.special_functions import negative_gamma_quantile
    >>> negative_gamma_quantile([-2.0, 0.0, 2.0], mean=-3.0, deviation=1.2).round(4)
    array([-5.8432, -2.8416, -1.1047])
    """
    return -gamma_quantile(np.negative(normal), np.negative(mean), deviation)


def inverse_gamma_quantile(normal: ArrayLike, shape: ArrayLike, scale: ArrayLike) -> NDArray[np.float64]:
    """Quantile of an inverse gamma variable, whose reciprocal is a gamma variable of this shape.

    It is given by its shape and scale, because its mean and standard deviation need not exist.

    Parameters
    ----------
    normal : array-like
        Standard normal variable z: the quantile is that of the probability Phi(z).
    shape : array-like
        Positive.
    scale : array-like
        Rate of the reciprocal, non-negative; zero is the variable that is always zero.

    Returns
    -------
    quantiles : ndarray
        In the broadcast shape.

    Examples
    --------
    >>> from sklearn_lrvb.distributions.special_functions import inverse_gamma_quantile
    >>> inverse_gamma_quantile([-2.0, 0.0, 2.0], shape=27.0, scale=78.0).round(4)
    array([2.0335, 2.9249, 4.4226])
    """
    reciprocal = gamma_quantile(np.negative(normal), shape, np.sqrt(shape))
    return np.divide(scale, reciprocal)


def reciprocal_gamma_quantile(
    normal: ArrayLike, mean: ArrayLike, deviation: ArrayLike
) -> NDArray[np.float64]:
    """Quantiles of the reciprocal of a gamma variable with the mean 1/``mean``, a variance for example.

    The relative standard deviation of the gamma variable is ``deviation / mean``. Parameters and returns as
    in `normal_quantile`.

    Examples
    --------
    >>> from sklearn_lrvb.distributions.special_functions import reciprocal_gamma_quantile
    >>> reciprocal_gamma_quantile([-2.0, 0.0, 2.0], mean=3.0, deviation=0.6).round(4)
    array([2.0854, 3.0404, 4.6787])
    """
    mean = np.asarray(mean, dtype=np.float64)
    return 1.0 / gamma_quantile(np.negative(normal), 1.0 / mean, deviation / np.square(mean))


def beta_quantile(normal: ArrayLike, mean: ArrayLike, deviation: ArrayLike) -> NDArray[np.float64]:
    """Quantile of the beta variable with a given mean in [0, 1] and standard deviation.

    Where the standard deviation exceeds that of every beta variable with this mean, the variable is 0 or 1
    with nearly all its probability. Parameters and returns as in `normal_quantile`.

    Examples
    --------
    >>> from sklearn_lrvb.distributions.special_functions import beta_quantile
    >>> beta_quantile([-2.0, 0.0, 2.0], mean=0.3, deviation=0.12).round(4)
    array([0.095 , 0.2899, 0.5633])
    """
    mean = np.clip(mean, np.finfo(float).tiny, 1.0 - np.finfo(float).epsneg)
    ratio = np.minimum(np.sqrt(mean * (1.0 - mean)) / deviation, _LARGEST_RATIO)
    size = np.maximum(ratio**2 - 1.0, _SMALLEST_BETA_SIZE)
    return beta_quantile_pair(normal, mean * size, (1.0 - mean) * size)[0]


def beta_quantile_pair(
    normal: ArrayLike, a: ArrayLike, b: ArrayLike
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Quantile v of a Beta(a, b) variable and its complement 1 - v, each to full relative precision.

    Parameters
    ----------
    normal : array-like
        Standard normal variable z: the quantile is that of the probability Phi(z).
    a, b : array-like
        Shapes of the beta distribution, positive.

    Returns
    -------
    quantiles, complements : ndarray
        In the broadcast shape.

    Examples
    --------
    >>> from sklearn_lrvb.distributions.special_functions import beta_quantile_pair
    >>> v, complement = beta_quantile_pair(0.0, a=1e-3, b=1.0)  # the median of v is 2^-1000
    >>> print(f"{v:.2e} {complement}")
    9.33e-302 1.0
    """
    normal, a, b = np.broadcast_arrays(normal, a, b)
    quantiles, complements = np.empty(normal.shape), np.empty(normal.shape)
    large = np.minimum(a, b) >= _LARGE_BETA_SHAPE
    quantiles[large], complements[large] = _large_beta(normal[large], a[large], b[large])
    z, a, b = normal[~large], a[~large], b[~large]
    quantiles[~large] = _in_its_tail(z, betaincinv, betainccinv, a, b)
    # P(1 - V <= 1 - v) = P(V >= v), so that the two tails change places.
    complements[~large] = _in_its_tail(z, betainccinv, betaincinv, b, a)
    return quantiles, complements


def log_beta_quantile_pair(
    normal: ArrayLike, a: ArrayLike, b: ArrayLike
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Logarithms of a beta quantile and of its complement, also where the numbers underflow.

    Parameters
    ----------
    normal, a, b : array-like
        As in `beta_quantile_pair`.

    Returns
    -------
    log_quantiles, log_complements : ndarray
        In the broadcast shape.

    Examples
    --------
    >>> from sklearn_lrvb.distributions.special_functions import log_beta_quantile_pair
    >>> log_v, log_complement = log_beta_quantile_pair(0.0, a=1e-4, b=1.0)  # the median of v is 2^-10000
    >>> print(f"{log_v / np.log(2.0):.1f} {log_complement}")
    -10000.0 0.0
    """
    normal, a, b = np.broadcast_arrays(normal, a, b)
    logs = []
    for quantiles, z, own, other in zip(
        beta_quantile_pair(normal, a, b), (normal, -normal), (a, b), (b, a), strict=True
    ):
        # The distribution function of a tiny v is v^a / (a B(a, b)), up to a relative error of v.
        tiny = quantiles < _TINY_BETA
        log_quantiles = np.array(np.log(np.where(tiny, 1.0, quantiles)))
        z, own, other = z[tiny], own[tiny], other[tiny]
        log_quantiles[tiny] = (log_ndtr(z) + np.log(own) + betaln(own, other)) / own
        logs.append(log_quantiles)
    return logs[0], logs[1]


def _large_beta(z, a, b):
    """Cornish and Fisher's expansion of v and of 1 - v."""
    size = a + b
    mean, complement = a / size, b / size
    product, difference = mean * complement, complement - mean
    skewness = 2.0 * difference / np.sqrt(product * size)
    excess = 6.0 * (difference**2 - product) / (product * size)
    series = z + skewness * (z**2 - 1) / 6
    series += excess * (z**3 - 3 * z) / 24 - skewness**2 * (2 * z**3 - 5 * z) / 36
    change = np.sqrt(product / (size + 1.0)) * series
    return mean + change, complement - change


def normal_of_gamma(quantile: ArrayLike, mean: ArrayLike, deviation: ArrayLike) -> NDArray[np.float64]:
    """The standard normal variable of which this is the `gamma_quantile`.

    Parameters
    ----------
    quantile : array-like
        Positive.
    mean, deviation : array-like
        Mean and standard deviation of the gamma variable.

    Returns
    -------
    normal : ndarray
        In the broadcast shape.

    Examples
    --------
    >>> from sklearn_lrvb.distributions.special_functions import normal_of_gamma
    >>> normal_of_gamma([1.1047, 4.1, 5.8432], mean=3.0, deviation=1.2).round(2)
    array([-2.  ,  0.95,  2.  ])
    """
    shape = np.square(np.minimum(np.divide(mean, deviation), _LARGEST_RATIO))
    scaled = np.divide(quantile, mean) * shape
    return _from_nearer_tail(gammainc(shape, scaled), gammaincc(shape, scaled))


def normal_of_log_beta(
    log_quantile: ArrayLike, log_complement: ArrayLike, a: ArrayLike, b: ArrayLike
) -> NDArray[np.float64]:
    """The standard normal variable of which these are the `log_beta_quantile_pair`.

    Parameters
    ----------
    log_quantile, log_complement : array-like
        Logarithms of v and of 1 - v.
    a, b : array-like
        Shapes of the beta distribution, positive.

    Returns
    -------
    normal : ndarray
        In the broadcast shape.

    Examples
    --------
    >>> from sklearn_lrvb.distributions.special_functions import normal_of_log_beta
    >>> print(normal_of_log_beta(-1000.0 * np.log(2.0), 0.0, a=1e-3, b=1.0).round(6) + 0.0)
    0.0
    """
    log_quantile, log_complement, a, b = np.broadcast_arrays(log_quantile, log_complement, a, b)
    v, rest = np.exp(log_quantile), np.exp(log_complement)
    # Each tail from the smaller of v and 1 - v, which has all its digits.
    lower = np.where(v < rest, betainc(a, b, v), betaincc(b, a, rest))
    upper = np.where(v < rest, betaincc(a, b, v), betainc(b, a, rest))
    normal = _from_nearer_tail(lower, upper)
    for sign, log_own, own, other in ((1.0, log_quantile, a, b), (-1.0, log_complement, b, a)):
        tiny = log_own < np.log(_TINY_BETA)
        log_probability = own[tiny] * log_own[tiny] - np.log(own[tiny]) - betaln(own[tiny], other[tiny])
        normal[tiny] = sign * ndtri_exp(np.minimum(log_probability, 0.0))
    return normal


def _from_nearer_tail(lower, upper):
    """Quantile of the standard normal distribution, from the probabilities on both sides."""
    return np.where(lower < upper, ndtri(lower), -ndtri(upper))


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


def log_gamma_draws(shapes, generator):
    """Logarithms of drawn gamma variables of rate one, also where these underflow: (...) -> (...)."""
    log_gammas = np.log(generator.standard_gamma(shapes + 1.0))
    return log_gammas + np.log1p(-generator.random(shapes.shape)) / shapes
