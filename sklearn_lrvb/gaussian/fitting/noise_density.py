"""The density of noise: one over a volume that the rows fill.

The volume exceeds what the components cover, so that few clean rows become noise. It changes with the units
of the columns as a volume does. With covariances of pairs of columns it hardly depends on rotations of X:
only the box around the rows does, where it is smaller than the ellipsoid around them.
"""

import numpy as np
from scipy.linalg import solve_triangular
from scipy.stats import chi2

from sklearn_lrvb.gaussian.fitting.core import counts_of, values_of, weighted_moments
from sklearn_lrvb.gaussian.fitting.enclosing_ellipsoid import log_volume_of_enclosing_ellipsoid
from sklearn_lrvb.symmetric_matrices import cholesky_factors

# Quantile of the distance from the core's mean at which the core's normal density is that of noise. With
# 0.995, noise took a tenth of a small cluster that is twice as wide as the others in 10 dimensions.
_LEVEL = 0.997
# Nats by which the volume exceeds that of the box or the ellipsoid. A normal component that takes the place
# of noise in a box loses 0.18 nats a row and column, so that more would lose the noise; without any, noise
# took up to 4 % of 100 to 1000 clean rows.
_MARGIN = 0.05


def default_log_density(core, structure, reg_covar):
    """log density of noise, -log V, where V is the smallest of three volumes, and more where rows are few.

    The first is the box of the columns' ranges, the second the smallest ellipsoid that encloses all rows.
    They decide in few dimensions. The third is one over the normal density of the core at its quantile of
    99.7 %. It decides in many, where outliers blow up the others.

    A volume that is taken from n rows fits them better than one that is known. With d numbers for its place
    and shape it is larger by the factor exp(d (1 + log n) / n), which costs noise as many nats as components
    pay for theirs; and twice for the box or the ellipsoid, which the outermost rows alone decide. Without,
    noise took a tenth of 20 to 50 clean rows, and with it 1 %.

    Parameters
    ----------
    core : Core
    structure : CovarianceStructure
        The volumes are those of its covariances: of matrices, of variances (no ellipsoid), or of one variance
        (a cube).
    reg_covar : float, the known variance of an error in all values

    Raises
    ------
    ValueError
        Where the rows fill no volume, and `reg_covar` is too small to make one.
    """
    covariance = core.covariance_in(structure) + reg_covar * structure.identity
    if not structure.is_positive_definite(covariance):
        raise ValueError(
            f"X fills no volume over which noise can spread: some of its {structure.n_features} columns are "
            f"constant or linearly dependent, and reg_covar={reg_covar:g} is too small to mend it. (a) Drop "
            "such columns. (b) Raise reg_covar. (c) Pass the log density as noise."
        )
    n_rows, n_features = core.sample.total_weight, structure.n_features
    n_dimensions = len(core.whitener) if structure.is_matrix else np.count_nonzero(np.diag(core.covariance))
    # Volumes are logarithms, in units of the core, and in directions in which rows do not vary, of the error.
    units = 0.5 * structure.log_determinants(structure.cholesky(covariance[None]))[0]
    units += 0.5 * (n_features - n_dimensions) * np.log(2.0 * np.pi)
    core_volume = units + 0.5 * (n_dimensions * np.log(2.0 * np.pi) + chi2.ppf(_LEVEL, n_dimensions))
    row_volume = _log_volume_of_box(core, structure.diagonal(covariance), reg_covar)
    if structure.is_matrix:
        enough = min(row_volume, core_volume) - units
        row_volume = min(row_volume, units + _log_volume_of_ellipsoid(core, reg_covar, enough))
    row_volume += _log_growth_of_ranges(core) + _MARGIN
    n_shape = n_dimensions * (n_dimensions + 1) / 2
    if not structure.is_matrix:
        n_shape = np.count_nonzero(structure.diagonal(core.covariance_in(structure)))
    price = (n_dimensions + n_shape) * (1.0 + np.log(n_rows)) / n_rows
    return -float(min(row_volume + price, core_volume) + price)


def _log_volume_of_box(core, variances, reg_covar):
    """log volume of the box of the columns' ranges, or of the cube of the largest for one variance.

    An error in all values makes a side longer, up to one over the density of an error alone. That is the side
    of a constant column, in which components vary by that variance.
    """
    sides = np.sqrt(np.square(np.ptp(values_of(core.sample), axis=0)) + 2.0 * np.pi * reg_covar)
    if len(variances) == 1:
        sides[:] = sides.max()
    varies = np.diag(core.covariance) > 0
    return np.log(np.where(varies, sides, np.sqrt(2.0 * np.pi * variances))).sum()


def _log_growth_of_ranges(core):
    """By how much the columns are wider than the ranges of their values: log of a factor.

    If m values are spread evenly, their range times (m + 1) / (m - 1) is an unbiased estimate. It is little
    more than the range, except for columns of few different values, each of which stands for an interval.
    """
    n_values = np.array([len(np.unique(column)) for column in core.sample.X.T])
    n_values = n_values[n_values > 1]
    return np.log((n_values + 1) / (n_values - 1)).sum()


def _log_volume_of_ellipsoid(core, reg_covar, enough):
    """log volume of the smallest ellipsoid around all rows, in units of the core, or more than is enough.

    The error in all values makes it larger by what it adds to the covariance of the rows.
    """
    points = core.whitened(core.sample)
    covariance = weighted_moments(points, counts_of(core.sample))[1]
    factor = cholesky_factors(covariance[None])[0]
    if np.isnan(factor).any():  # Outliers are so far that they leave no digits for the others.
        return np.inf
    unit = np.log(np.diag(factor)).sum()
    error = reg_covar * core.whitener @ core.whitener.T
    growth = 0.5 * np.linalg.slogdet(covariance + error)[1] - unit
    growth -= 0.5 * np.linalg.slogdet(np.eye(len(error)) + error)[1]
    points = solve_triangular(factor, points.T, lower=True).T
    return log_volume_of_enclosing_ellipsoid(points, enough - unit - growth) + unit + growth
