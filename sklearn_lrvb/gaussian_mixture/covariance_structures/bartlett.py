"""Bartlett's decomposition of a Wishart matrix, with the moments of linear response in place of a Wishart's.

A matrix T with E T = I is L L', L lower triangular. If T is a Wishart matrix with nu degrees of freedom,
divided by nu, then the entries of L are independent,

    L_ij ~ N(0, 1/nu) for j < i,        L_ii^2 ~ chi^2_{nu - i} / nu,      i = 0, 1, ...

Linear response gives a normal change B of T, with variances s_ij. To first order L_ij is B_ij for j < i, and
L_ii^2 makes up the rest of T_ii, which is to have mean 1 and variance s_ii: a gamma variable with

    mean 1 - sum_{j<i} s_ij,        variance s_ii - 2 sum_{j<i} s_ij^2,

which is chi^2_{nu - i}/nu at a Wishart's own s_ij = 1/nu, s_ii = 2/nu.
"""

import numpy as np

from sklearn_lrvb.exponential_families.quantiles import gamma_quantile

# Least mean of a pivot L_ii^2, relative to its mean under Bartlett's own decomposition.
_LEAST_RELATIVE_PIVOT = 0.5
# Least pivot, relative to the squares left of it: below it L L' is singular to working precision.
_SMALLEST_PIVOT = 1e-12


def bartlett_factors(changes, deviations, degrees_of_freedom):
    """Factors L of random matrices T = L L' that have nearly the mean I and these standard deviations.

    Parameters
    ----------
    changes : (n, S, P, P), symmetric, normal with mean 0
    deviations : (S, P, P), their standard deviations
    degrees_of_freedom : (S,), nu

    Returns
    -------
    factors : (n, S, P, P), lower triangular with a positive diagonal

    Notes
    -----
    With few points the squares left of the diagonal can account for nearly all of a diagonal entry's mean or
    variance. The row is then scaled down, so that L_ii^2 keeps at least half of its mean under a Wishart
    distribution, (nu - i)/nu. The mean I and the variances on the diagonal are not changed by this; the
    variances off the diagonal become too small.
    """
    variances = np.square(deviations)
    diagonal, below = np.einsum("spp->sp", variances), np.tril(variances, -1)
    scale = _row_scale(diagonal, below, degrees_of_freedom)
    below *= scale[:, :, None]
    pivots = gamma_quantile(
        np.einsum("nspp->nsp", changes) / np.sqrt(diagonal),
        1.0 - below.sum(axis=2),
        np.sqrt(diagonal - 2.0 * np.square(below).sum(axis=2)),
    )
    factors = np.tril(changes, -1) * np.sqrt(scale)[:, :, None]
    row_squares = np.einsum("nspq,nspq->nsp", factors, factors)
    np.einsum("nspp->nsp", factors)[...] = np.sqrt(np.maximum(pivots, _SMALLEST_PIVOT * row_squares))
    return factors


def _row_scale(diagonal, below, degrees_of_freedom):
    """Factor of the variances left of the diagonal, row by row, (S, P): 1 except with few points."""
    row = np.arange(diagonal.shape[1])
    largest = 1.0 - _LEAST_RELATIVE_PIVOT * (1.0 - row / degrees_of_freedom[:, None])
    scale = np.ones_like(diagonal)
    first, rest = below.sum(axis=2)[:, 1:], 2.0 * np.square(below).sum(axis=2)[:, 1:]
    of_mean = largest[:, 1:] / first
    of_variance = np.sqrt(largest[:, 1:] * diagonal[:, 1:] / rest)
    scale[:, 1:] = np.minimum(1.0, np.minimum(of_mean, of_variance))
    return scale
