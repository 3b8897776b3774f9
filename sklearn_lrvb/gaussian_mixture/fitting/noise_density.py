"""What fits of rows with outliers start from: the core, the density of noise, and the rows far out.

All of it is made from the rows where they are few, and otherwise from a sample that depends on no random
numbers; rows with holes are completed. A row of weight w counts as w rows.

* The *core* is the central part of the rows: those nearest to the mean in the metric of the covariance, at
  first of all rows, then again and again of those kept before (concentration steps; Rousseeuw and Van
  Driessen 1999). Its mean and covariance serve where outliers would rule those of all rows, as for the
  default prior.
* The *density* of noise is one over a volume. The volume exceeds what the components cover, so that few clean
  rows become noise.
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

# Share of the rows that is the core: the first with as many dimensions as all rows. More than three quarters
# of the rows may have the same value in a column.
_CENTRAL = (0.75, 0.9, 0.975, 1.0)
_MAX_STEPS = 100
_LEAST_GAIN = 1e-6  # Of the log determinant of the core's covariance, at which the steps end.
_EQUAL = 1e-9  # Distances that differ by a smaller part of themselves count as equal.
# Quantile of the distance from the core's mean at which the core's normal density is that of noise. With
# 0.995, noise took a tenth of a small cluster that is twice as wide as the others in 10 dimensions.
_LEVEL = 0.997
# Least ratio of the first volume to that of the rows' ellipsoid; the box around it is larger from 4
# dimensions on. Below, noise took up to 9 % of the rows of one normal cluster with the box, and 1 % with
# twice the volume.
_LEAST_MARGIN = 2.0

# A row is far out if its tenth neighbour is farther than those of 90 % of the rows, and either 1.2 times as
# far as is usual among its neighbours, so that small or wide clusters are spared, or 10 times the median
# distance, as of gross outliers that are neighbours of each other. Where clusters were unequal (of 600 rows,
# 60 in one twice as wide, or 20 in one), with up to 8 % of outliers, 30 to 40 % of the rows of the smallest
# cluster were far out in 2 and 5 dimensions; by the first condition alone, nearly all.
_NEIGHBOURS, _FAR_OUT = 10, 0.1
_LOCAL_RATIO, _GROSS_RATIO = 1.2, 10.0
_NEIGHBOUR_ROWS = 2**11  # Largest number of rows that are neighbours.
_FEW_ROWS = 2**12  # Largest number of rows whose neighbours are looked for.
# Number of dimensions up to which a tree finds them faster; in 10 and 14 it took 2 to 5 times as long.
_MOST_FOR_TREE = 4
_LEAST_DISTANCE = 1e-6  # Shorter distances, in standard deviations, or relative differences may be rounding.
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
    sample : ArrayRows without holes, from which the core is made
    completion : Completion of rows with holes, or None
    whitener : (r, P), to coordinates in which the covariance is one, where r is its rank
    """

    mean: np.ndarray
    covariance: np.ndarray
    sample: ArrayRows
    completion: Completion | None
    whitener: np.ndarray

    @property
    def points(self):
        """The sample, measured from the mean, in coordinates in which the covariance is one: (n, r)."""
        return (_values(self.sample) - self.mean) @ self.whitener.T

    @property
    def is_far_exceeded(self):
        """Whether the variance of all rows is far larger than that of the core in some direction."""
        weights = self.sample.sample_weight
        weights = np.ones(self.sample.n_samples) if weights is None else weights
        return np.linalg.eigvalsh(_weighted_moments(self.points, weights)[1])[-1] > _FAR_EXCEEDED

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
    weights = np.ones(len(sample.X)) if sample.sample_weight is None else sample.sample_weight
    # Up to this, a variance is that of rounding, of a constant column or among rows of one value in it.
    rounding = np.square(_ROUNDING) * (np.square(sample.origin) + 100.0 * sample.variances)
    for share in _CENTRAL:
        found = _central_part(_values(sample), weights, rounding, share)
        if found is not None:
            break
    return Core(found[0], found[1], sample, completion, _whitener(found[1]))


def has_core(rows):
    """Whether there are rows enough for some to be farther out than others."""
    return rows.total_weight > rows.n_features + 1 and bool(np.any(rows.variances))


def _values(sample):
    """The rows of a sample, measured from their origin, (n, P)."""
    return sample.X - sample.origin


def _central_part(values, weights, rounding, share):
    """Mean (P,) of the central part of values (n, P), and its covariance, enlarged to that of all if normal.

    Distances are measured anew from the values in every step: far outliers would take all digits from
    coordinates in which they have variance one. None where the central part has fewer dimensions than the
    values, as where many rows have the same value in a column, or less than two rows for each: the rows that
    are left out would then seem to be far out.
    """
    nearest, most, log_determinant = weights, 0, np.inf
    for _ in range(_MAX_STEPS):
        mean, covariance = _weighted_moments(values, nearest)
        constant = np.diag(covariance) <= rounding
        covariance[constant] = covariance[:, constant] = 0.0
        whitener = _whitener(covariance)
        n_dimensions, most = len(whitener), max(most, len(whitener))
        if nearest is not weights:
            covariance /= chi2.cdf(chi2.ppf(share, n_dimensions), n_dimensions + 2) / share
        lengths = np.abs(np.diag(np.linalg.qr(whitener.T, mode="r")))
        last, log_determinant = log_determinant, -2.0 * np.log(lengths).sum()
        if share == 1.0 or (n_dimensions == most and abs(last - log_determinant) < _LEAST_GAIN):
            break
        distances = np.square((values - mean) @ whitener.T).sum(axis=1)
        nearest = _nearest(distances, weights, share)
    are_few = share < 1.0 and share * weights.sum() < 2 * most
    return None if n_dimensions < most or are_few else (mean, covariance)


def _weighted_moments(values, weights):
    """Mean and covariance (ddof = 0) of values (n, r)."""
    mean = weights @ values / weights.sum()
    deviations = values - mean
    return mean, symmetrized((deviations.T * weights) @ deviations) / weights.sum()


def _whitener(covariance):
    """A matrix (r, P) to coordinates in which a covariance (P, P) of rank r is one."""
    factor = cholesky_factors(covariance[None])[0]
    if not np.isnan(factor).any():
        return solve_triangular(factor, np.eye(len(factor)), lower=True)
    correlations, scale = scaled_to_unit_diagonal(covariance)
    variances, directions = eigh(correlations)
    kept = variances > round_off(len(variances))
    return (directions[:, kept] / np.sqrt(variances[kept])).T / scale


def _nearest(distances, weights, share):
    """Weights (n,) of the points that are nearest, a share of the total weight, and zero for the others.

    Points at one distance share alike, so that neither their order nor rounding matters.
    """
    order = np.argsort(distances)
    ascending = distances[order]
    starts = np.flatnonzero(np.diff(ascending, prepend=-np.inf) > _EQUAL * ascending)
    tied = np.add.reduceat(weights[order], starts)
    shares = np.clip((share * weights.sum() - (np.cumsum(tied) - tied)) / tied, 0.0, 1.0)
    kept = np.empty_like(weights)
    kept[order] = weights[order] * np.repeat(shares, np.diff(starts, append=len(order)))
    return kept


def default_log_density(core, structure, reg_covar):
    """log density of noise, -log V, where V is the smaller of two volumes, and more where rows are few.

    The first is that of the box around the smallest ellipsoid that encloses all rows, or twice that of the
    ellipsoid if this is larger. It decides in few dimensions. The second is one over the normal density of
    the core at its quantile of 99.9 %. It decides in many, where outliers blow up the first. Directions in
    which the rows do not vary multiply both by the same factor.

    A volume that is taken from n rows fits them better than one that is known. With d numbers for its place
    and shape it is larger by the factor exp(d (1 + log n) / n), which costs noise as many nats as components
    pay for theirs. Without, noise took half of 20 clean rows in 3 dimensions, and with it 2 %.

    Parameters
    ----------
    core : Core
    structure : CovarianceStructure
        Both volumes are those of its covariances: of matrices, of variances, or of one variance.
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
    # In units of the core's standard deviations.
    n_dimensions = len(core.whitener) if structure.is_matrix else np.count_nonzero(np.diag(core.covariance))
    of_normal = 0.5 * (n_dimensions * np.log(2.0 * np.pi) + chi2.ppf(_LEVEL, n_dimensions))
    box = n_dimensions * np.log(2.0) - log_volume_of_ball(n_dimensions)
    margin = max(box, np.log(_LEAST_MARGIN))
    if structure.is_matrix:
        of_rows = _log_volume_of_ellipsoid(core, of_normal - margin)
    else:
        of_rows = _log_volume_of_ranges(core, structure, n_dimensions)
    units = 0.5 * structure.log_determinants(structure.cholesky(covariance[None]))[0]
    units += 0.5 * (structure.n_features - n_dimensions) * np.log(2.0 * np.pi)
    n_variances = np.count_nonzero(structure.diagonal(core.covariance_in(structure)))
    n_shape = n_dimensions * (n_dimensions + 1) / 2 if structure.is_matrix else n_variances
    n_rows = core.sample.total_weight
    price = (n_dimensions + n_shape) * (1.0 + np.log(n_rows)) / n_rows
    return -float(min(of_rows + margin, of_normal) + price + units)


def _log_volume_of_ellipsoid(core, enough):
    """log volume of the smallest ellipsoid around all rows, in standard deviations of the core, or enough."""
    points = core.points
    factor = cholesky_factors(np.atleast_2d(np.cov(points.T, ddof=0))[None])[0]
    if np.isnan(factor).any():  # Outliers are so far that they leave no digits for the others.
        return np.inf
    unit = np.log(np.diag(factor)).sum()
    points = solve_triangular(factor, points.T, lower=True).T
    return log_volume_of_enclosing_ellipsoid(points, enough - unit) + unit


def _log_volume_of_ranges(core, structure, n_dimensions):
    """log volume of the ellipsoid whose axes are the columns' ranges, or of a ball that encloses all rows.

    The ball, for one variance of all columns, has the mean of the core as its center. The volume is measured
    in standard deviations of the core, in the dimensions in which the rows vary.
    """
    values = _values(core.sample) - core.mean
    variances = structure.diagonal(core.covariance_in(structure))
    if len(variances) < values.shape[1]:
        radii, variances = np.sqrt(np.square(values).sum(axis=1).max()), np.repeat(variances, n_dimensions)
    else:
        radii, variances = 0.5 * np.ptp(values, axis=0)[variances > 0], variances[variances > 0]
    return np.log(radii / np.sqrt(variances)).sum() + log_volume_of_ball(n_dimensions)


class FarOutAtStart:
    """The rows far out, which starts are not made from.

    Parameters
    ----------
    far_out : FarOut
    rows : Rows that count
    completion : Completion of rows with holes, or None

    Attributes
    ----------
    are_noise : bool, whether they start as noise
    sample_rows : int, largest number of rows that a start may be made from
    """

    are_noise = False
    sample_rows = _FEW_ROWS

    def __init__(self, far_out, rows, completion):
        self._far_out, self._flags = far_out, None
        if rows.n_samples <= self.sample_rows:
            complete = rows.in_memory() if completion is None else completion.completed(rows.in_memory())
            self._flags = complete.each(far_out, dtype=bool)

    def kept(self, sample):
        """Which rows of a sample without holes are not far out, int array; few rows are all in the sample."""
        flags = sample.each(self._far_out, dtype=bool) if self._flags is None else self._flags
        return np.flatnonzero(~flags)

    def beside(self, responsibilities, centers, sample):
        """Responsibilities of all labels, given those of the components: they are the same."""
        return responsibilities


class NoiseAtStart(FarOutAtStart):
    """The rows that start as noise.

    Of few rows they are those far out. Of more rows only a sample is looked at: noise are those that are
    farther from the nearest starting center than all rows of the sample that are nearest to it and not far
    out.

    Parameters
    ----------
    far_out : FarOut
    rows : Rows that count
    core : Core of the rows
    """

    are_noise = True

    def __init__(self, far_out, rows, core):
        super().__init__(far_out, rows, core.completion)
        self._core = core

    def beside(self, responsibilities, centers, sample):
        """Responsibilities of components and noise: callable RowBlock -> (n, K + 1).

        Parameters
        ----------
        responsibilities : callable RowBlock -> (n, K), of the components
        centers : (m, P), measured from the rows' origin, or None for the mean of the core
        sample : ArrayRows without holes, the rows that the start is made from
        """
        if self._flags is not None:
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


def rules_of_far_out(rows, n_components, core, are_noise):
    """The rules of which rows starts are not made from, which take turns: list of FarOutAtStart or None.

    With noise there are two: one or the other finds the better fit where small clusters or many outliers
    are far out.

    Parameters
    ----------
    rows : Rows that count
    n_components : int
    core : Core of the rows
    are_noise : bool, whether rows far out start as noise
    """
    if are_noise:
        spares = far_out_of(core)
        takes_all = replace(spares, spares_clusters=False)
        return [NoiseAtStart(far_out, rows, core) for far_out in (spares, takes_all)]
    if n_components == 1:
        return [None]
    return [FarOutAtStart(far_out_of(core), rows, core.completion)]


def far_out_of(core):
    """Which complete rows are far out, where small and wide clusters are spared: FarOut.

    It does not depend on how the rows are stored.

    Parameters
    ----------
    core : Core
    """
    n_rows = min(int(np.ceil(core.sample.total_weight)), _NEIGHBOUR_ROWS)
    points = (_values(core.sample.thinned(n_rows)) - core.mean) @ core.whitener.T
    algorithm = "kd_tree" if points.shape[1] <= _MOST_FOR_TREE else "brute"
    neighbours = NearestNeighbors(n_neighbors=min(_NEIGHBOURS + 1, n_rows), algorithm=algorithm).fit(points)
    distances = neighbours.kneighbors(points)[0][:, -1]
    least = np.sort(distances)[int(np.ceil((1.0 - _FAR_OUT) * n_rows)) - 1]
    return FarOut(core.mean, core.whitener, neighbours, distances, least)


@dataclass(frozen=True)
class FarOut:
    """Whether rows have few rows of a sample near them: a function of a block of complete rows.

    Attributes
    ----------
    mean, whitener : as of `Core`
    neighbours : NearestNeighbors among the m rows of the sample, each of which is its own nearest
    distances : (m,), from each of them to the last of its neighbours
    least : float, distances above which rows may be far out
    spares_clusters : bool, whether the distance must also be unusual among the neighbours, or gross
    """

    mean: np.ndarray
    whitener: np.ndarray
    neighbours: NearestNeighbors
    distances: np.ndarray
    least: float
    spares_clusters: bool = True

    def __call__(self, block):
        points = self.whitener @ (block.rows - self.mean[:, None])
        distances, index = self.neighbours.kneighbors(points.T)
        # A row of the sample is its own nearest. Others have one neighbour too many.
        last = np.where(distances[:, 0] > _LEAST_DISTANCE, distances[:, -2], distances[:, -1])
        distances, local = last, np.median(self.distances[index], axis=1)
        is_far = distances > self.least * (1.0 + _LEAST_DISTANCE) + _LEAST_DISTANCE
        if not self.spares_clusters:
            return is_far
        is_alone = distances > _LOCAL_RATIO * local
        is_gross = distances > _GROSS_RATIO * np.median(self.distances)
        return is_far & (is_alone | is_gross)
