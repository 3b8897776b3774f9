"""Are standard deviations as large as the errors? Statistics over repeated data sets.

Estimates of one data set depend on each other, data sets do not: all standard errors of the statistics are
those of means over data sets.
"""

import numpy as np

_HALF_WIDTH = 1.959963984540054  # standard deviations, of a normal 95 % interval


def coverage(errors, sds):
    """Share of 95 % intervals that contain the truth, and its Monte Carlo standard error.

    Parameters
    ----------
    errors : (n_data_sets, d), estimate less truth
    sds : (n_data_sets, d), as they are claimed
    """
    return _mean_and_error((np.abs(errors) <= _HALF_WIDTH * sds).mean(axis=1))


def sd_ratio(errors, sds):
    """Mean claimed sd over the sd of the errors, averaged over the estimates, and its standard error.

    The standard error is that of the ratio's linearization at the means of both.

    Parameters
    ----------
    errors, sds : (n_data_sets, d)
    """
    squares = np.square(errors - errors.mean(axis=0))
    variances = squares.sum(axis=0) / (len(errors) - 1)
    ratios = sds.mean(axis=0) / np.sqrt(variances)
    linearized = sds / np.sqrt(variances) - 0.5 * ratios * (squares / variances - 1.0)
    return ratios.mean(), _mean_and_error(linearized.mean(axis=1))[1]


def bias(errors):
    """Root mean square over the estimates of the mean error, in sds of the errors.

    Parameters
    ----------
    errors : (n_data_sets, d)
    """
    return np.sqrt(np.mean(np.square(errors.mean(axis=0) / errors.std(axis=0, ddof=1))))


def largest_share(errors):
    """Largest share of a single data set in the variance of an estimate.

    Where it is near one, the sd of the errors and the ratio to it describe that data set alone.

    Parameters
    ----------
    errors : (n_data_sets, d)
    """
    squares = np.square(errors - errors.mean(axis=0))
    return (squares.max(axis=0) / squares.sum(axis=0)).max()


def _mean_and_error(values):
    """Mean over data sets and its standard error, of values (n_data_sets,)."""
    return values.mean(), values.std(ddof=1) / np.sqrt(len(values))
