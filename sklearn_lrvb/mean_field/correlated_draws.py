"""Draws with the covariance of linear response, from draws of q.

*Conventions.* In the coordinates u of every variable, which may be any real numbers, a draw of q is mapped to
E u + B (u - E u), where B C B' is the covariance of u by linear response and C that under q. Shapes of
distributions, such as their skewness, and ranges are those of q; correlations between factors are added.
"""

import numpy as np
from scipy.linalg import solve_triangular

from sklearn_lrvb.symmetric_matrices import cholesky_equilibrated


def correlated_draws(quantities, natural, draws, covariance):
    """Draws of the variables of some factors: dict, name -> ndarray.

    Parameters
    ----------
    quantities : list of Quantity
        Coordinates of every factor.
    natural : dict, name -> ndarray
    draws : dict, name -> ndarray of shape (n_draws, copies..., shape of the variable)
        From q.
    covariance : ndarray of shape (d, d)
        Of all coordinates, by linear response.
    """
    whitened = np.concatenate([_whitened(of, natural[of.name], draws[of.name]) for of in quantities], axis=1)
    root = cholesky_equilibrated(covariance)
    if root is None:
        raise ValueError(
            "The covariance of the draws is not positive definite: a factor has a variance of zero. Leave it "
            "out of names."
        )
    correlated, ends = whitened @ root.T, np.cumsum([0, *(len(of.positions) for of in quantities)])
    drawn = {}
    for quantity, start, end in zip(quantities, ends[:-1], ends[1:], strict=True):
        name, family = quantity.name, quantity.factor.family
        mean = quantity.derived_means(natural[name])
        coordinates = (mean + correlated[:, start:end]).reshape(len(correlated), *quantity.factor.lead, -1)
        drawn[name] = family.from_coordinates(natural[name], coordinates)
    return drawn


def _whitened(quantity, natural, draws):
    """Coordinates of draws from q, member by member of unit covariance: (n_draws, n)."""
    mean, _, covariance = quantity.moments(natural)
    centred = quantity.factor.family.coordinates_of(natural, draws) - mean
    n_each = mean.shape[-1]
    centred = centred.reshape(len(draws), -1, n_each)
    for member, block in enumerate(covariance.reshape(-1, n_each, n_each)):
        root = np.linalg.cholesky(block)
        centred[:, member] = solve_triangular(root, centred[:, member].T, lower=True).T
    return centred.reshape(len(draws), -1)
