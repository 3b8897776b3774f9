"""Central credible intervals from means and standard deviations, within each parameter's range.

Every interval is that of a distribution with the parameter's mean and standard deviation. Its family is the
one that q itself has for the parameter, or one close to it (`Target.quantile`): weights are beta, minus log
weights and the diagonal entries of precisions gamma, those of covariances inverse gamma, and means and all
entries off a diagonal normal.
"""

import numpy as np
from scipy.special import ndtri

from sklearn_lrvb.exponential_families.quantiles import normal_quantile


def credible_interval(quantile, mean, deviation, on_diagonal, probability):
    """Ends of the central intervals of a flat target, (d,) each; both the mean where the deviation is zero.

    Parameters
    ----------
    quantile : function of `exponential_families.quantiles`
    mean, deviation : (d,), standard deviation
    on_diagonal : bool (d,), the entries whose family is that of ``quantile``; the others are normal
    probability : float, between 0 and 1
    """
    z = -ndtri(0.5 * (1.0 - probability))
    ends = np.repeat(mean[None], 2, axis=0)
    for where, family in ((on_diagonal, quantile), (~on_diagonal, normal_quantile)):
        uncertain = where & (deviation > 0)
        ends[:, uncertain] = family(np.array([[-z], [z]]), mean[uncertain], deviation[uncertain])
    return ends[0], ends[1]
