"""Did a chain swap the labels of its components?"""

import numpy as np
from parameter_vectors import split
from scipy.optimize import linear_sum_assignment


def n_switched(draws, X, labels, n_components):
    """Number of draws whose components are nearer to those of the labels in another order.

    Nearness is the relative entropy of a component's rows, by their share, mean and covariance, to a drawn
    component, so that units do not matter. A component that loses its rows without crossing another is not
    seen; it mixes badly, which the effective size shows.

    Parameters
    ----------
    draws : (n_draws, D), log weights, means and unique precisions
    X : (n_samples, n_features)
    labels : (n_samples,), the components that the draws are to be
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
    doubtful = np.flatnonzero((costs.argmin(axis=2) != in_order).any(axis=1))
    return sum((linear_sum_assignment(costs[draw])[1] != in_order).any() for draw in doubtful)


def require_rows(labels, n_components, n_features):
    """Raise an error unless every component has rows enough to be known by."""
    counts = np.bincount(labels, minlength=n_components)
    if counts.min() <= n_features:
        raise ValueError(
            f"Component {counts.argmin()} has {counts.min()} rows by the labels, too few for a covariance in "
            f"{n_features} features: there is nothing to tell its draws by."
        )
