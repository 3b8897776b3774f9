"""Parameters of a mixture of full components as vectors (D,) in the order of `posterior_names_`."""

import numpy as np
from scipy.optimize import linear_sum_assignment


def flat(log_weights, means, precisions):
    """Vectors (..., D) of log weights, means and unique precision entries.

    Parameters
    ----------
    log_weights : (..., K)
    means : (..., K, P)
    precisions : (..., K, P, P)
    """
    unique = precisions[(..., *np.triu_indices(means.shape[-1]))]
    parts = (log_weights, means, unique)
    return np.concatenate([part.reshape(*log_weights.shape[:-1], -1) for part in parts], axis=-1)


def split(draws, n_components, n_features):
    """Log weights (n, K), means (n, K, P) and precisions (n, K, P, P) of draws (n, D)."""
    bounds = np.cumsum([n_components, n_components * n_features])
    log_weights, means, unique = np.split(draws, bounds, axis=1)
    upper = np.triu_indices(n_features)
    precisions = np.empty((len(draws), n_components, n_features, n_features))
    unique = unique.reshape(len(draws), n_components, -1)
    precisions[:, :, upper[0], upper[1]] = precisions[:, :, upper[1], upper[0]] = unique
    return log_weights, means.reshape(len(draws), n_components, n_features), precisions


def groups(n_components, n_features):
    """{group: slice of the vector}."""
    stops = np.cumsum([n_components, n_components * n_features])
    return {
        "log_weights": slice(0, stops[0]),
        "means": slice(stops[0], stops[1]),
        "precisions": slice(stops[1], None),
    }


def matching(means, reference, precisions):
    """Which component matches which one of the reference, by least squared distance: (K,).

    Parameters
    ----------
    means, reference : (K, P)
    precisions : (K, P, P), of the reference, in which distances are measured
    """
    gaps = means[None] - reference[:, None]
    _, order = linear_sum_assignment(np.einsum("klp,kpq,klq->kl", gaps, precisions, gaps))
    return order
