"""What a chain of draws is worth: the errors of its standard deviations, and whether it switched labels."""

import numpy as np
from scipy.optimize import linear_sum_assignment

from benchmarks.analysis.parameter_vectors import split


def sd_errors(n_draws, effective_sizes):
    """Relative standard errors of the sds of normal draws that follow an autoregression of first order.

    Where the correlation of a draw and the next is r, the mean of n draws is as accurate as that of n (1 - r)
    / (1 + r) independent ones. Their squares have the correlation r^2, so that the sd is as accurate as that
    of n (1 - r^2) / (1 + r^2) independent draws.

    Parameters
    ----------
    n_draws : int
    effective_sizes : array-like (D,), those of the means

    Returns
    -------
    (D,)
    """
    lasting = n_draws / np.asarray(effective_sizes, dtype=float)
    correlation = (lasting - 1) / (lasting + 1)
    squares = n_draws * (1 - correlation**2) / (1 + correlation**2)
    return 1 / np.sqrt(2 * squares)


def n_switched(draws, X, labels, n_components):
    """Number of draws whose components are nearer to those of the labels in another order.

    Nearness is the relative entropy of a component's rows, by their share, mean and covariance, to a drawn
    component, so that units do not matter. A component that loses its rows without crossing another is not
    noticed here; such a chain mixes badly, which its effective size shows.

    Parameters
    ----------
    draws : (n_draws, D), log weights, means and unique precisions
    X : (n_samples, n_features)
    labels : (n_samples,), the component of every row, in the order that the draws should have
    n_components : int, K
    """
    require_rows(labels, n_components, X.shape[1])
    rows = [X[labels == k] for k in range(n_components)]
    weights = np.array([len(one) / len(X) for one in rows])
    log_weights, means, precisions = split(draws, n_components, X.shape[1])
    gaps = np.array([one.mean(axis=0) for one in rows])[:, None] - means[:, None]  # (n_draws, K, K, P)
    covariances = np.array([np.cov(one.T, bias=True) for one in rows])
    squares = np.einsum("njkp,nkpq,njkq->njk", gaps, precisions, gaps, optimize=True)
    traces = np.einsum("jpq,nkpq->njk", covariances, precisions, optimize=True)
    log_densities = log_weights + 0.5 * np.linalg.slogdet(precisions)[1]
    costs = weights[:, None] * (0.5 * (squares + traces) - log_densities[:, None])
    in_order = np.arange(n_components)
    ambiguous = np.flatnonzero((costs.argmin(axis=2) != in_order).any(axis=1))
    return sum((linear_sum_assignment(costs[draw])[1] != in_order).any() for draw in ambiguous)


def require_rows(labels, n_components, n_features):
    """Raise a ValueError unless every component has rows enough for a covariance.

    Parameters
    ----------
    labels : (n_samples,) of int, from 0
    n_components, n_features : int
    """
    counts = np.bincount(labels, minlength=n_components)
    if counts.min() <= n_features:
        raise ValueError(
            f"Component {counts.argmin()} has {counts.min()} rows by the labels, too few for a covariance in "
            f"{n_features} features, so that its draws cannot be recognised. Give labels of a fit in which "
            f"every component has at least {n_features + 1} rows."
        )
