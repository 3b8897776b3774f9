"""What fits of rows with outliers start from: the core, the density of noise, and the rows far out.

All of it is made from the rows where they are few, and otherwise from a sample that depends on no random
numbers; rows with holes are completed. A row of weight w counts as w rows.

* The *core* is the central part of the rows: those nearest to the mean in the metric of the covariance, at
  first of all rows, then again and again of those kept before (concentration steps; Rousseeuw and Van
  Driessen 1999). Its mean and covariance serve where outliers would rule those of all rows, as for the
  default prior.
* The *density* of noise is one over a volume. It is larger than what the components cover, so that clean rows
  are not lost to noise.
* Rows *far out* have few others near them, in the metric of the core. With noise they start as noise. With
  heavy tails they start in the component of the nearest center, but are not among the rows that centers are
  made from: k-means would give a component to a few of them.

None of them depends on the coordinates: under x -> A x + b the volume changes by the factor |det A|, and the
same rows are far out.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import eigh, solve_triangular
from scipy.stats import chi2
from sklearn.neighbors import NearestNeighbors

from sklearn_lrvb.gaussian_mixture.fitting.enclosing_ellipsoid import (
    log_volume_of_ball,
    log_volume_of_enclosing_ellipsoid,
)
from sklearn_lrvb.gaussian_mixture.fitting.starts import (
    SAMPLE_ROWS,
    BesideNoise,
    Completion,
    NearestCenters,
    OfCompleted,
)
from sklearn_lrvb.row_blocks import ArrayRows
from sklearn_lrvb.symmetric_matrices import cholesky_factors, round_off, scaled_to_unit_diagonal, symmetrized

_CENTRAL = 0.75  # Share of the rows that is the core.
_MAX_STEPS = 100
_LEAST_GAIN = 1e-6  # Of the log determinant of the core's covariance, at which the steps end.
_EQUAL = 1e-9  # Relative difference below which distances are equal but for rounding.
# The normal distribution of the core has the density of noise at this quantile. With 0.99, noise took .3 to
# 1.2 % of clean rows from clusters of equal weight in 20 dimensions; with 0.999, at most .2 %.
_LEVEL = 0.999
# The other volume is at least so many times that of the rows' ellipsoid. The box around it is, from 4
# dimensions on. Below, noise took up to 9 % of one normal cluster with the box, and 1 % with this.
_LEAST_MARGIN = 2.0

# Rows far out have the farthest neighbours of this number, at most such a share of the rows. Rows of a small
# or wide cluster have far ones, too, but so have their neighbours: the distance is also so many times those
# of the neighbours from theirs. Gross outliers may be each other's neighbours: or it is so many times the
# median. Where clusters were unequal (of 600 rows, 60 in one twice as wide, or 20 in one), with up to 8 % of
# outliers, this took .3 to .4 of the smallest in 2 and 5 dimensions; the first condition alone, nearly all.
_NEIGHBOURS, _FAR_OUT = 10, 0.1
_LOCAL_RATIO, _GROSS_RATIO = 1.2, 10.0
_NEIGHBOUR_ROWS = 2**11  # Largest number of rows that are neighbours.
_FEW_ROWS = 2**13  # Largest number of rows whose neighbours are looked for.
# Number of dimensions up to which a tree finds them faster; in 10 and 14 it took 2 to 5 times as long.
_MOST_FOR_TREE = 4
_LEAST_DISTANCE = 1e-6  # Shorter ones, in standard deviations, may be rounding; so may relative differences.
_ROUNDING = np.finfo(float).eps


@dataclass(frozen=True)
class Core:
    """The central part of the rows.

    Attributes
    ----------
    mean : (P,), measured from the rows' origin
    covariance : (P, P), of all rows if they were normal; singular where columns are dependent
    sample : ArrayRows without holes, from which the core is made
    completion : Completion of rows with holes, or None
    whitener : (r, P), to coordinates in which the covariance is one, where r is its rank
    points : (n, r), the sample in coordinates in which all of its rows have mean zero and covariance one
    factor : (r, r), Cholesky factor of the core's covariance in these
    """

    mean: np.ndarray
    covariance: np.ndarray
    sample: ArrayRows
    completion: Completion | None
    whitener: np.ndarray
    points: np.ndarray
    factor: np.ndarray

    def covariance_in(self, structure):
        """The covariance in the shape of a structure: a matrix, variances, or their mean."""
        if structure.is_matrix:
            return self.covariance
        deviations = np.sqrt(np.diag(self.covariance))
        return structure.gram(structure.diagonal_factors(deviations))[0]


def core_of(rows, completion=None):
    """The central part of the rows: Core.

    Parameters
    ----------
    rows : Rows, of positive weights, measured from their mean
    completion : Completion of rows with holes, or None

    Raises
    ------
    ValueError
        Where there are too few rows for any to be farther out than others.
    """
    if rows.n_samples <= rows.n_features + 1:
        raise ValueError(
            f"X has {rows.n_samples} rows of {rows.n_features} features, too few to tell noise: of n rows in "
            "n - 1 or more dimensions each is as far out as any other. (a) Use noise=None. (b) Use fewer "
            "features, for example by sklearn.decomposition.PCA."
        )
    sample = rows.in_memory() if rows.n_samples <= SAMPLE_ROWS else rows.thinned(SAMPLE_ROWS)
    if completion is not None:
        sample = completion.completed(sample)
    values, weights = _values(sample), sample.sample_weight
    weights = np.ones(len(values)) if weights is None else weights
    mean, covariance = _weighted_moments(values, weights)
    constant = np.diag(covariance) <= np.square(_ROUNDING * sample.origin)
    covariance[constant] = covariance[:, constant] = 0.0
    axes, whitener = _axes_and_whitener(covariance)
    points = (values - mean) @ whitener.T
    center, factor = _central_part(points, weights)
    mean, whitener = mean + axes @ center, solve_triangular(factor, whitener, lower=True)
    axes = axes @ factor
    return Core(mean, symmetrized(axes @ axes.T), sample, completion, whitener, points, factor)


def _values(sample):
    """The rows of a sample, measured from their origin, (n, P)."""
    return sample.X - sample.origin


def _weighted_moments(points, weights):
    """Mean and covariance (ddof = 0) of points (n, r)."""
    mean = weights @ points / weights.sum()
    deviations = points - mean
    return mean, symmetrized((deviations.T * weights) @ deviations) / weights.sum()


def _axes_and_whitener(covariance):
    """Axes (P, r) with axes axes' = covariance of rank r, and a whitener (r, P), its left inverse."""
    correlations, scale = scaled_to_unit_diagonal(covariance)
    variances, directions = eigh(correlations)
    kept = variances > round_off(len(variances))
    directions, deviations = directions[:, kept], np.sqrt(variances[kept])
    return scale[:, None] * directions * deviations, (directions / deviations).T / scale


def _central_part(points, weights):
    """Mean (r,) of the central part of points (n, r), and a Cholesky factor of the covariance (r, r).

    All points have mean zero and covariance one, which are the result where the central part has no volume,
    as where most of the rows have the same value in a column.
    """
    n_dimensions = points.shape[1]
    whole = center, factor = np.zeros(n_dimensions), np.eye(n_dimensions)
    # The covariance of the central part of a normal distribution is smaller by this factor.
    shrinkage = chi2.cdf(chi2.ppf(_CENTRAL, n_dimensions), n_dimensions + 2) / _CENTRAL
    log_determinant = np.inf
    for _ in range(_MAX_STEPS):
        whitened = solve_triangular(factor, (points - center).T, lower=True)
        center, covariance = _weighted_moments(points, _nearest(np.square(whitened).sum(axis=0), weights))
        factor = cholesky_factors(covariance[None] / shrinkage)[0]
        if np.isnan(factor).any():
            return whole
        last, log_determinant = log_determinant, _log_determinant(factor)
        if last - log_determinant < _LEAST_GAIN:
            break
    return center, factor


def _log_determinant(factor):
    """log |L L'| of a Cholesky factor."""
    return 2.0 * np.log(np.diag(factor)).sum()


def _nearest(distances, weights):
    """How often points (n,) count among the nearest, which have a given share of the weight together.

    Points at one distance share alike, so that neither their order nor rounding matters.
    """
    order = np.argsort(distances)
    ascending = distances[order]
    starts = np.flatnonzero(np.diff(ascending, prepend=-np.inf) > _EQUAL * ascending)
    tied = np.add.reduceat(weights[order], starts)
    shares = np.clip((_CENTRAL * weights.sum() - (np.cumsum(tied) - tied)) / tied, 0.0, 1.0)
    kept = np.empty_like(weights)
    kept[order] = weights[order] * np.repeat(shares, np.diff(starts, append=len(order)))
    return kept


def default_log_density(core, structure, reg_covar):
    """log density of noise, -log V, where V is the smaller of two volumes.

    One is that of the box around the smallest ellipsoid that encloses all rows, or twice the ellipsoid; the
    smaller in few dimensions. The other is one over the normal density of the core at its quantile of 99.9 %;
    the smaller in many dimensions, where outliers blow the first one up. Directions in which the rows do not
    vary tell no noise.

    Parameters
    ----------
    core : Core
    structure : CovarianceStructure
        Both volumes are those of its covariances: of matrices, of variances, or of one variance.
    reg_covar : float, the known variance of noise on all values

    Raises
    ------
    ValueError
        Where rows without this noise fill no volume.
    """
    covariance = core.covariance_in(structure) + reg_covar * structure.identity
    if not structure.is_positive_definite(covariance):
        raise ValueError(
            f"X fills no volume over which noise can spread: some of its {structure.n_features} columns are "
            f"constant or linearly dependent, and reg_covar={reg_covar:g} is too small to mend it. (a) Drop "
            "such columns. (b) Raise reg_covar. (c) Pass the log density as noise."
        )
    # In units of the core's standard deviations.
    n_dimensions = len(core.factor) if structure.is_matrix else np.count_nonzero(np.diag(core.covariance))
    of_normal = 0.5 * (n_dimensions * np.log(2.0 * np.pi) + chi2.ppf(_LEVEL, n_dimensions))
    box = n_dimensions * np.log(2.0) - log_volume_of_ball(n_dimensions)
    margin = max(box, np.log(_LEAST_MARGIN))
    if structure.is_matrix:
        unit = 0.5 * _log_determinant(core.factor)
        of_rows = log_volume_of_enclosing_ellipsoid(core.points, of_normal - margin + unit) - unit
    else:
        of_rows = _log_volume_of_ranges(core, structure)
    units = 0.5 * structure.log_determinants(structure.cholesky(covariance[None]))[0]
    units += 0.5 * (structure.n_features - n_dimensions) * np.log(2.0 * np.pi)
    return -float(min(of_rows + margin, of_normal) + units)


def _log_volume_of_ranges(core, structure):
    """log volume of the ellipsoid whose axes are the columns' ranges, or of the ball that encloses all rows.

    It is measured in standard deviations of the core, in the directions in which the rows vary.
    """
    values = _values(core.sample) - core.mean
    variances = structure.diagonal(core.covariance_in(structure))
    if len(variances) == 1:
        radii, variances = np.sqrt(np.square(values).sum(axis=1).max()), np.repeat(variances, values.shape[1])
    else:
        radii, variances = 0.5 * np.ptp(values, axis=0)[variances > 0], variances[variances > 0]
    return np.log(radii / np.sqrt(variances)).sum() + log_volume_of_ball(len(variances))


class FarOutAtStart:
    """The rows far out, which starts are not made from.

    Parameters
    ----------
    core : Core of the rows
    spares_clusters : bool, default=True
        Whether rows that are no farther from others than these are from theirs do not count as far out.

    Attributes
    ----------
    are_noise : bool, whether they start as noise
    sample_rows : int, largest number of rows that a start may be made from
    """

    are_noise = False
    sample_rows = _FEW_ROWS

    def __init__(self, core, spares_clusters=True):
        self._core, self._far_out = core, far_out_of(core, spares_clusters)

    def kept(self, sample):
        """Which rows of a sample without holes are not far out, int array."""
        return np.flatnonzero(~sample.each(self._far_out, dtype=bool))

    def beside(self, responsibilities, centers, sample):
        """Responsibilities of all labels, given those of the components: they are the same."""
        return responsibilities


class NoiseAtStart(FarOutAtStart):
    """The rows that start as noise.

    Of few rows they are those far out. Of more rows only a sample is looked at: noise are those that are
    farther from the nearest starting center than all rows of the sample which are not far out.

    Parameters
    ----------
    rows : Rows that count
    core, spares_clusters : as of `FarOutAtStart`
    """

    are_noise = True

    def __init__(self, rows, core, spares_clusters):
        super().__init__(core, spares_clusters)
        self._are_few = rows.n_samples <= _FEW_ROWS
        if self._are_few:
            in_memory = rows.in_memory()
            if core.completion is not None:
                in_memory = core.completion.completed(in_memory)
            self._flags = in_memory.each(self._far_out, dtype=bool)

    def beside(self, responsibilities, centers, sample):
        """Responsibilities of components and noise: callable RowBlock -> (n, K + 1).

        Parameters
        ----------
        responsibilities : callable RowBlock -> (n, K), of the components
        centers : (m, P), measured from the rows' origin, or None for the mean of the core
        sample : ArrayRows without holes, the rows that the start is made from
        """
        if self._are_few:
            return BesideNoise(responsibilities, self._flags_of)
        core = self._core
        beyond = BeyondCenters.of(core.whitener, core.mean[None] if centers is None else centers, sample)
        if core.completion is not None:
            beyond = OfCompleted(core.completion.posterior, beyond)
        return BesideNoise(responsibilities, beyond)

    def _flags_of(self, block):
        return self._flags[block.numbers]


@dataclass(frozen=True)
class BeyondCenters:
    """Whether rows are beyond the radius of the nearest center: a function of a block of complete rows.

    Attributes
    ----------
    whitener : (r, P), to coordinates in which distances are taken
    nearest : NearestCenters in these
    centers : (m, r), in these
    radii : (m,)
    """

    whitener: np.ndarray
    nearest: NearestCenters
    centers: np.ndarray
    radii: np.ndarray

    @classmethod
    def of(cls, whitener, centers, sample):
        """With the radii that take in all rows of a sample, ArrayRows."""
        centers = centers @ whitener.T
        whole = cls(whitener, NearestCenters(centers), centers, np.zeros(len(centers)))
        distances = sample.each(whole.distances)
        labels = sample.each(whole.labels, dtype=np.intp)
        radii = np.zeros(len(centers))
        np.maximum.at(radii, labels, distances)
        return cls(whitener, whole.nearest, centers, radii)

    def _whitened(self, block):
        return replace(block, rows=self.whitener @ block.rows)

    def labels(self, block):
        """Index of the nearest center, int array (n,)."""
        return self.nearest.labels(self._whitened(block))

    def distances(self, block):
        """Distances from it, (n,)."""
        whitened = self._whitened(block)
        return np.linalg.norm(whitened.rows - self.centers[self.nearest.labels(whitened)].T, axis=0)

    def __call__(self, block):
        return self.distances(block) > self.radii[self.labels(block)]


def rules_of_far_out(rows, n_components, completion, core):
    """The rules of which rows starts are not made from, which take turns: list of FarOutAtStart or None.

    With noise there are two: one or the other finds the better fit where small clusters or many outliers
    are far out.

    Parameters
    ----------
    rows : Rows that count
    n_components : int
    completion : Completion of rows with holes, or None
    core : Core of the rows where there is noise, or None
    """
    if core is not None:
        return [NoiseAtStart(rows, core, spares_clusters) for spares_clusters in (True, False)]
    can_be_far_out = n_components > 1 and rows.n_samples > rows.n_features + 1 and np.any(rows.variances)
    return [FarOutAtStart(core_of(rows, completion))] if can_be_far_out else [None]


def far_out_of(core, spares_clusters=True):
    """Which complete rows are far out: callable RowBlock -> bool (n,), the same wherever the rows are.

    Parameters
    ----------
    core : Core
    spares_clusters : bool, as of `FarOutAtStart`
    """
    n_rows = min(int(np.ceil(core.sample.total_weight)), _NEIGHBOUR_ROWS)
    points = (_values(core.sample.thinned(n_rows)) - core.mean) @ core.whitener.T
    algorithm = "kd_tree" if points.shape[1] <= _MOST_FOR_TREE else "brute"
    neighbours = NearestNeighbors(n_neighbors=min(_NEIGHBOURS + 1, n_rows), algorithm=algorithm).fit(points)
    distances = neighbours.kneighbors(points)[0][:, -1]
    least = np.sort(distances)[int(np.ceil((1.0 - _FAR_OUT) * n_rows)) - 1]
    return FarOut(core.mean, core.whitener, neighbours, distances, least, spares_clusters)


@dataclass(frozen=True)
class FarOut:
    """Whether rows have few rows of a sample near them: a function of a block of complete rows.

    Attributes
    ----------
    mean, whitener : as of `Core`
    neighbours : NearestNeighbors among the m rows of the sample, each of which is its own nearest
    distances : (m,), from each of them to the last of its neighbours
    least : float, distances above which rows may be far out
    spares_clusters : bool
    """

    mean: np.ndarray
    whitener: np.ndarray
    neighbours: NearestNeighbors
    distances: np.ndarray
    least: float
    spares_clusters: bool

    def __call__(self, block):
        points = self.whitener @ (block.rows - self.mean[:, None])
        distances, index = self.neighbours.kneighbors(points.T)
        distances, local = distances[:, -1], np.median(self.distances[index], axis=1)
        is_far = distances > self.least * (1.0 + _LEAST_DISTANCE) + _LEAST_DISTANCE
        if not self.spares_clusters:
            return is_far
        is_alone = distances > _LOCAL_RATIO * local
        is_gross = distances > _GROSS_RATIO * np.median(self.distances)
        return is_far & (is_alone | is_gross)
