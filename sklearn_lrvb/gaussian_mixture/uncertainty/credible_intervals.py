"""Central credible intervals from means and standard deviations, within each parameter's range.

Every interval is that of a distribution with the parameter's mean and standard deviation, of the family that
q itself has for it, or nearly so: weights beta, minus log weights and diagonal entries of precisions gamma,
of covariances inverse gamma, means and entries off the diagonal normal.
"""

import numpy as np
from scipy.special import ndtri

from sklearn_lrvb.exponential_families.quantiles import (
    beta_quantile,
    gamma_quantile,
    inverse_gamma_quantile,
    negative_gamma_quantile,
    normal_quantile,
)

# of the entries that have a range; those off a diagonal have none
_QUANTILES = {
    "weights": beta_quantile,
    "log_weights": negative_gamma_quantile,
    "means": normal_quantile,
    "precisions": gamma_quantile,
    "covariances": inverse_gamma_quantile,
}


def credible_interval(target, mean, deviation, on_diagonal, probability):
    """Ends of the central intervals of a flat target: (d,), (d,), bool (d,) -> (d,), (d,).

    A parameter without a standard deviation has its mean for both ends.
    """
    z = -ndtri(0.5 * (1.0 - probability))
    ends = np.repeat(mean[None], 2, axis=0)
    for where, quantile in ((on_diagonal, _QUANTILES[target]), (~on_diagonal, normal_quantile)):
        uncertain = where & (deviation > 0)
        ends[:, uncertain] = quantile(np.array([[-z], [z]]), mean[uncertain], deviation[uncertain])
    return ends[0], ends[1]
