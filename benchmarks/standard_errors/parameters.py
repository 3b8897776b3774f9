"""The parameters that all report, as vectors (D,) in the order of `posterior_names_`, and matching labels."""

import numpy as np
from scipy.optimize import linear_sum_assignment


def flat(log_weights, means, precisions):
    """Vectors of log weights, means and unique precision entries.

    Parameters
    ----------
    log_weights : (..., K)
    means : (..., K, P)
    precisions : (..., K, P, P)
    """
    unique = precisions[(..., *np.triu_indices(means.shape[-1]))]
    parts = (log_weights, means, unique)
    return np.concatenate([part.reshape(*log_weights.shape[:-1], -1) for part in parts], axis=-1)


def groups(n_components, n_features):
    """{group: slice of the vector}."""
    stops = np.cumsum([n_components, n_components * n_features])
    return {
        "log_weights": slice(0, stops[0]),
        "means": slice(stops[0], stops[1]),
        "precisions": slice(stops[1], None),
    }


def matching(means, reference, precisions):
    """Which component is which of the reference, by least squared distance: (K,).

    Parameters
    ----------
    means, reference : (K, P)
    precisions : (K, P, P), of the reference, in which distances are measured
    """
    gaps = means[None] - reference[:, None]
    _, order = linear_sum_assignment(np.einsum("klp,kpq,klq->kl", gaps, precisions, gaps))
    return order
