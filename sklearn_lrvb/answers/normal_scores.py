"""Tests of whether a mixture fits, by normal scores of rows under draws of the posterior.

Draw parameters from the posterior, and given these a label for every row. If the model holds, parameters,
labels and rows together have the joint distribution of the model. So within a component the values of the
rows are independent draws of its density at the drawn parameters, and their *normal scores*, the normal
quantiles of their probability integral transforms, are standard normal: tests need no correction for the
fitted parameters (V. E. Johnson, "Bayesian model assessment using pivotal quantities", Bayesian Analysis 2
(2007), 719-734). So classical tests of normality hold. Skewness and kurtosis do not even depend on
the location and the scale of the scores.

A test has one z for every draw, standard normal if the model holds. Over the draws z varies with the variance
V, since parameters and labels are uncertain; its mean over many draws has the variance 1 - V. p-values are of
this mean. In place of V there is a lower confidence limit, so that they are too large rather than too small.

*Conventions.* K components, P columns, n rows, M draws.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import chdtr, chdtrc, chdtri, log_ndtr, ndtr, ndtri

LEAST_ROWS = 20  # Of a component in a draw, with which its skewness and kurtosis are tested.
_LEAST_VARIANCE = 0.5  # Of the mean of z, so that an error of V close to one cannot make p tiny.
_NO_VARIANCE = 1e-20  # Of scores that are equal, which have neither skewness nor kurtosis: NaN.
# Beyond |z| = 2 the transformation of the kurtosis gives a z that is too large. The part beyond two is
# reduced by 28 % for short tails, and by 9 % for long ones: the most that was needed in millions of samples
# of 20 to 1,500 normal values.
_EXCESS_OF_Z = 0.28, 0.09
_LARGEST_SCORE = 37.0  # Normal scores beyond have no probability.


@dataclass(frozen=True)
class RowScores:
    """Normal scores of rows under one draw; NaN where a value is missing or has none, and of noise.

    Attributes
    ----------
    in_component : (n, P), of the values in the component of the row
    overall : (n, P), of the values in the whole mixture
    distances : (n,), of the squared distances from the component's centre
    correlations : (P, P), which the model takes all components to have, or None where they have their own
    """

    in_component: np.ndarray
    overall: np.ndarray
    distances: np.ndarray
    correlations: np.ndarray | None


def normal_scores(below, above):
    """Normal quantiles of probabilities, given also those of the other side: (...), (...) -> (...)."""
    with np.errstate(divide="ignore"):
        scores = np.where(below < above, ndtri(below), -ndtri(above))
    return np.clip(scores, -_LARGEST_SCORE, _LARGEST_SCORE)


def moments_of_columns(scores):
    """Numbers of values n, variances, skewness, kurtosis of columns, without NaN: (n, P) -> four of (P,)."""
    n = (~np.isnan(scores)).sum(axis=0)
    centred = np.nan_to_num(scores - np.nansum(scores, axis=0) / np.maximum(n, 1))
    squares = np.square(centred)
    second = squares.sum(axis=0) / np.maximum(n, 1)
    third, fourth = (np.einsum("np,np->p", squares, own) / np.maximum(n, 1) for own in (centred, squares))
    scale = np.where(second > _NO_VARIANCE, second, np.nan)
    return n, second * n / np.maximum(n - 1, 1), third / scale**1.5, fourth / scale**2


def z_of_skewness(skewness, n):
    """Of samples of a normal variable: R. B. D'Agostino, Biometrika 57 (1970), 679-681."""
    n = np.maximum(n, 8.0)
    y = skewness * np.sqrt((n + 1) * (n + 3) / (6 * (n - 2)))
    fourth = 3 * (n**2 + 27 * n - 70) * (n + 1) * (n + 3) / ((n - 2) * (n + 5) * (n + 7) * (n + 9))
    square = np.sqrt(2 * (fourth - 1)) - 1
    return np.arcsinh(y * np.sqrt((square - 1) / 2)) / np.sqrt(0.5 * np.log(square))


def z_of_kurtosis(kurtosis, n):
    """Of samples of a normal variable: F. J. Anscombe and W. J. Glynn, Biometrika 70 (1983), 227-234.

    Beyond two it is corrected.
    """
    n = np.maximum(n, 8.0)
    mean = 3 * (n - 1) / (n + 1)
    variance = 24 * n * (n - 2) * (n - 3) / ((n + 1) ** 2 * (n + 3) * (n + 5))
    x = (kurtosis - mean) / np.sqrt(variance)
    skewness = 6 * (n**2 - 5 * n + 2) / ((n + 7) * (n + 9))
    skewness *= np.sqrt(6 * (n + 3) * (n + 5) / (n * (n - 2) * (n - 3)))
    freedom = 6 + 8 / skewness * (2 / skewness + np.sqrt(1 + 4 / skewness**2))
    root = np.cbrt((1 - 2 / freedom) / np.maximum(1 + x * np.sqrt(2 / (freedom - 4)), 1e-3))
    z = np.clip((1 - 2 / (9 * freedom) - root) / np.sqrt(2 / (9 * freedom)), -_LARGEST_SCORE, None)
    beyond = np.maximum(np.abs(z) - 2.0, 0.0)
    return np.sign(z) * (np.abs(z) - beyond * np.where(z < 0.0, *_EXCESS_OF_Z))


def z_of_variance(variance, n):
    """Of the variance of n standard normal values around their mean, (...)."""
    freedom = np.maximum(n - 1.0, 1.0)
    return normal_scores(chdtr(freedom, freedom * variance), chdtrc(freedom, freedom * variance))


def z_of_squares(squares, freedom):
    """One-sided z of sums of so many squares of standard normal values, (...)."""
    return normal_scores(chdtr(freedom, squares), chdtrc(freedom, squares))


def z_of_largest(scores):
    """One-sided z of the largest of some normal scores, NaN left out: float, NaN where there are none."""
    scores = scores[~np.isnan(scores)]
    if not len(scores):
        return np.nan
    log_below = len(scores) * log_ndtr(scores.max())
    return float(normal_scores(np.exp(log_below), -np.expm1(log_below)))


def p_values(z, is_one_sided=False):
    """p-values from the z of M draws, (M, ...) with NaN where a test was not made: (...).

    They are NaN where fewer than half of the draws have a z.
    """
    n_made, n_draws = (~np.isnan(z)).sum(axis=0), len(z)
    mean = np.nansum(z, axis=0) / np.maximum(n_made, 1)
    deviations = np.where(np.isnan(z), 0.0, z - mean)
    freedom = np.maximum(n_made - 1.0, 1.0)
    between = np.square(deviations).sum(axis=0) / freedom
    least = between * freedom / chdtri(freedom, 0.05)  # With 95 % confidence V is larger.
    variance = np.maximum(1.0 - least, _LEAST_VARIANCE) + between / np.maximum(n_made, 1)
    if n_draws == 1:
        variance = np.ones_like(mean)
    scaled = mean / np.sqrt(variance)
    p = ndtr(-scaled) if is_one_sided else 2.0 * ndtr(-np.abs(scaled))
    return np.where(n_made >= 0.5 * n_draws, p, np.nan)
