"""The core: the central part of rows that may have outliers.

The core has the rows that are nearest to the mean in the metric of the covariance, at first of all rows, then
again and again of those kept before (concentration steps; Rousseeuw and Van Driessen 1999). Its mean and
covariance serve where outliers would rule those of all rows: as default prior, and as the metric in which
rows are far out. It is made from the rows where they are few, and otherwise from a sample that depends on no
random numbers; missing values are completed. A row of weight w counts as w rows.
"""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh
from scipy.stats import chi2

from sklearn_lrvb.gaussian.fitting.completion import Completion, covariance_in
from sklearn_lrvb.gaussian.fitting.starts import SAMPLE_ROWS
from sklearn_lrvb.rows import ArrayRows
from sklearn_lrvb.symmetric_matrices import round_off, scaled_to_unit_diagonal, symmetrized

# Share of the rows that is the core: the first with as many dimensions as all rows. More than three quarters
# of the rows may have the same value in a column.
_CENTRAL = (0.75, 0.9, 0.975, 1.0)
_MAX_STEPS = 100
_LEAST_GAIN = 1e-6  # Of the log determinant of the core's covariance, at which the steps end.
_EQUAL = 1e-9  # Distances that differ by a smaller part of themselves count as equal.
# Ratio of variances above which default priors of heavy tails are those of the core. It takes one row of 200
# at 80 standard deviations, or a fifth of the rows in a cluster that is 14 from the others.
_FAR_EXCEEDED = 30.0
_ROUNDING = np.finfo(float).eps


@dataclass(frozen=True)
class Core:
    """The central part of the rows.

    Attributes
    ----------
    mean : (P,), measured from the rows' origin
    covariance : (P, P), of the core, enlarged to that of all rows of a normal distribution; singular where
        columns are dependent
    sample : ArrayRows without missing values, from which the core is made
    completion : Completion of rows with missing values, or None
    whitener : (r, P), to coordinates in which the covariance is one, where r is its rank
    """

    mean: np.ndarray
    covariance: np.ndarray
    sample: ArrayRows
    completion: Completion | None
    whitener: np.ndarray

    def whitened(self, rows):
        """Complete rows from the mean, in coordinates in which the covariance is one: ArrayRows -> (n, r)."""
        return (values_of(rows) - self.mean) @ self.whitener.T

    @property
    def is_far_exceeded(self):
        """Whether the variance of all rows is far larger than that of the core in some direction."""
        _, covariance = weighted_moments(self.whitened(self.sample), counts_of(self.sample))
        return np.linalg.eigvalsh(covariance)[-1] > _FAR_EXCEEDED

    def covariance_in(self, structure):
        """The covariance in the shape of a structure: a matrix, variances, or their mean."""
        return covariance_in(structure, self.covariance)


def core_of(rows, completion=None):
    """The central part of the rows: Core.

    Parameters
    ----------
    rows : Rows, of positive weights, measured from their mean
    completion : Completion of rows with missing values, or None

    Raises
    ------
    ValueError
        Where there are too few rows for any to be farther out than others.
    """
    if not has_core(rows):
        weights = "" if rows.total_weight == rows.n_samples else f" (a total weight of {rows.total_weight:g})"
        raise ValueError(
            f"X has {rows.n_samples} rows{weights} of {rows.n_features} features, too few to tell noise: of "
            "n rows in n - 1 or more dimensions each is as far out as any other. (a) Use noise=None. (b) Use "
            "fewer features, for example by sklearn.decomposition.PCA."
        )
    sample = rows.in_memory() if rows.n_samples <= SAMPLE_ROWS else rows.thinned(SAMPLE_ROWS)
    if completion is not None:
        sample = completion.completed(sample)
    weights = counts_of(sample)
    # Up to this, a variance is that of rounding, of a constant column or among rows of one value in it.
    rounding = np.square(_ROUNDING) * (np.square(sample.origin) + 100.0 * sample.variances)
    for share in _CENTRAL:
        central = _central_part(values_of(sample), weights, rounding, share)
        if central is not None:
            break
    mean, covariance = central
    return Core(mean, covariance, sample, completion, _whitener(covariance))


def has_core(rows):
    """Whether there are rows enough for some to be farther out than others."""
    return rows.total_weight > rows.n_features + 1 and bool(np.any(rows.variances))


def values_of(sample):
    """The rows of a sample, measured from their origin, (n, P)."""
    return sample.X - sample.origin


def counts_of(sample):
    """How often each row of a sample counts, (n,)."""
    return np.ones(sample.n_samples) if sample.sample_weight is None else sample.sample_weight


def _central_part(values, weights, rounding, share):
    """Mean (P,) of the central part of values (n, P), and its covariance, enlarged to that of all if normal.

    Distances are measured anew from the values in every step: far outliers would take all digits from
    coordinates in which they have variance one. None where the central part has fewer dimensions than the
    values, as where many rows have the same value in a column, or less than two different rows for each: the
    rows that are left out would then seem to be far out. Rows differ that are not equally far.
    """
    nearest, most, log_determinant, n_different = weights, 0, np.inf, 0
    for _ in range(_MAX_STEPS):
        mean, covariance = weighted_moments(values, nearest)
        constant = np.diag(covariance) <= rounding
        covariance[constant] = covariance[:, constant] = 0.0
        whitener = _whitener(covariance)
        n_dimensions, most = len(whitener), max(most, len(whitener))
        if share < 1.0 and _most_rows(weights, share) < 2 * most:
            return None  # As it would be after many steps, each of which takes P^3 flops.
        if nearest is not weights:
            covariance /= chi2.cdf(chi2.ppf(share, n_dimensions), n_dimensions + 2) / share
        lengths = np.abs(np.diag(np.linalg.qr(whitener.T, mode="r")))
        last, log_determinant = log_determinant, -2.0 * np.log(lengths).sum()
        if share == 1.0 or (n_dimensions == most and abs(last - log_determinant) < _LEAST_GAIN):
            break
        distances = np.square((values - mean) @ whitener.T).sum(axis=1)
        nearest, n_different = _nearest(distances, weights, share)
    are_few = share < 1.0 and n_different < 2 * most
    return None if n_dimensions < most or are_few else (mean, covariance)


def _most_rows(weights, share):
    """The largest number of rows that a share of the total weight can be on."""
    return np.searchsorted(np.cumsum(np.sort(weights)), share * weights.sum()) + 1


def weighted_moments(values, weights):
    """Mean and covariance (ddof = 0) of values (n, r)."""
    mean = weights @ values / weights.sum()
    deviations = values - mean
    return mean, symmetrized((deviations.T * weights) @ deviations) / weights.sum()


def _whitener(covariance):
    """A matrix (r, P) to coordinates in which a covariance (P, P) of rank r is one."""
    correlations, scale = scaled_to_unit_diagonal(covariance)
    variances, directions = eigh(correlations)
    kept = variances > round_off(len(variances))
    return (directions[:, kept] / np.sqrt(variances[kept])).T / scale


def _nearest(distances, weights, share):
    """Weights (n,) of the points that are nearest, a share of the total weight, and zero for the others.

    Points at one distance share alike, so that neither their order nor rounding matters. The number of
    distances of those that are nearest is returned too.
    """
    order = np.argsort(distances)
    ascending = distances[order]
    starts = np.flatnonzero(np.diff(ascending, prepend=-np.inf) > _EQUAL * ascending)
    tied = np.add.reduceat(weights[order], starts)
    shares = np.clip((share * weights.sum() - (np.cumsum(tied) - tied)) / tied, 0.0, 1.0)
    kept = np.empty_like(weights)
    kept[order] = weights[order] * np.repeat(shares, np.diff(starts, append=len(order)))
    return kept, np.count_nonzero(shares)
