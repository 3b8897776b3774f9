"""How far the sds of a chain are off."""

import numpy as np


def sd_errors(n_draws, effective_sizes):
    """Relative standard errors of the sds of normal draws that follow an autoregression of first order.

    Where the correlation of a draw and the next is r, the mean of n draws is worth that of
    n (1 - r) / (1 + r) independent ones; their sd, as squares have r^2, that of n (1 - r^2) / (1 + r^2).

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
