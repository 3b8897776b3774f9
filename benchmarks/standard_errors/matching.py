"""Which component of one fit is which of another."""

import numpy as np
from scipy.optimize import linear_sum_assignment


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
