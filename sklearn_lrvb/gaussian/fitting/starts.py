"""Starting responsibilities, under scikit-learn's names and from the same random numbers.

Sample weights count rows: k-means and its seeds are passed the weights, so that they are those of the rows
repeated, and random seeds are drawn with probabilities proportional to the weights. Where there are very many
rows, all starts are made from a sample of them, and responsibilities are functions of a block: they take no
memory, wherever the rows are. `ascent` runs the fits from these starts.

Rows with holes start as if they were complete: `Completion` is one normal distribution of all rows, by which
starts and default priors fill them. Its mean and covariance are estimates by the EM algorithm, for values
missing at random. Means of the values that are there would be biased where other columns decide which values
are missing, and covariances of pairs of columns need not make a positive definite matrix. While it is
estimated, the covariance is drawn towards the diagonal matrix of the columns' variances as by P rows more, so
that columns may be dependent or outnumber the rows. What is reported is not.
"""

import functools
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, cycle, islice

import numpy as np
from scipy.sparse import csr_array
from sklearn.cluster import KMeans, kmeans_plusplus

from sklearn_lrvb.gaussian.covariance_structures import COVARIANCE_STRUCTURES
from sklearn_lrvb.gaussian.e_step.frames import OwnFrames
from sklearn_lrvb.gaussian.posterior.mixture_prior import MixturePrior
from sklearn_lrvb.gaussian.posterior.variational_posterior import (
    VariationalPosterior,
)
from sklearn_lrvb.mixture.acceleration import Acceleration
from sklearn_lrvb.mixture.e_step import e_step
from sklearn_lrvb.mixture.model import DegenerateComponentError
from sklearn_lrvb.mixture.weight_priors import DirichletWeights
from sklearn_lrvb.rows import ArrayRows, openmp_threads

# Largest number of rows that starts are made from: more change the centers of k-means less than the first
# sweep does.
SAMPLE_ROWS = 2**17
# Number of products in an iteration of k-means below which threads cost more than they save.
_MIN_PRODUCTS_FOR_THREADS = 10**6
# Number of responsibilities up to which they are a dense array: 1 MiB.
_MAX_DENSE_RESPONSIBILITIES = 2**17
# Largest absolute value of float32 rows, and the reciprocal of the least, at which squares stay in range.
_LARGEST_SINGLE = 1e12
# Standard deviation, relative to the mean, below which a column is constant up to rounding.
_CONSTANT_BELOW = 10 * np.finfo(float).eps


@dataclass(frozen=True)
class StartKind:
    """How responsibilities to start from are made.

    Attributes
    ----------
    init_params : {"kmeans", "k-means++", "random", "random_from_data"}
    is_standardized : bool
        Whether distances are taken between columns in units of their standard deviations. For "random" they
        are not taken.
    seeds_alone : bool
        How "k-means++" and "random_from_data" use their seeds. If True, each component starts from its
        seed as its only row, and the prior, as in scikit-learn. If False, every row goes to the nearest
        seed.
    """

    init_params: str
    is_standardized: bool = False
    seeds_alone: bool = True


@dataclass(frozen=True)
class Starts:
    """The starts of a fit.

    Attributes
    ----------
    in_turn : list of callables (Ascent) -> Fit, the state before the first step
    once_more : one more such callable, for fits in which unwanted noise costs much; or None
    are_drawn : bool, whether the starts are drawn at random
    n_first : int, how many of them a fit with ``n_init=1`` has
    """

    in_turn: list
    once_more: object = None
    are_drawn: bool = False
    n_first: int = 1


STANDARDIZED_KMEANS = StartKind("kmeans", is_standardized=True)

# The starts of "kmeans" after the first two, in turn. k-means leads to the same few optima from whatever
# random numbers: ten starts of it found the best known optimum in 59 % of 34 fits to tables from books and in
# 84 % of 60 fits to simulated ones; ten that differ in kind found it in 94 % and all, at 1.1 times the cost.
_IN_TURN = (
    StartKind("k-means++", is_standardized=True),
    StartKind("random_from_data", is_standardized=True),
    StartKind("random_from_data", is_standardized=True, seeds_alone=False),
)


def kinds_of_starts(init_params, n_components, n_init):
    """The kinds of several starts, the first of which is what a single start is: list of StartKind.

    They differ where k-means is asked for, the default; other names are a choice of one kind.

    Parameters
    ----------
    init_params : {"kmeans", "k-means++", "random", "random_from_data"}
    n_components, n_init : int
    """
    first = StartKind(init_params)
    if init_params != "kmeans" or n_components == 1:
        return [first] * n_init
    return list(islice(chain([first, STANDARDIZED_KMEANS], cycle(_IN_TURN)), n_init))


def starting_responsibilities(rows, n_components, kind, random_state, is_flat, completion=None):
    """Responsibilities to start from.

    Parameters
    ----------
    rows : Rows, of positive weights where they have any
    n_components : int
    kind : StartKind
    random_state : RandomState
    is_flat : bool
        Whether the prior is flat. Then every row goes to the nearest seed, because without a proper prior one
        row gives a component no posterior.
    completion : Completion or None, default=None
        That of rows with holes, which start as if they were complete.

    Returns
    -------
    responsibilities : array or sparse array (n_samples, n_labels), or callable RowBlock -> (n, L)
        Sparse where most are zero; a function where there are more rows than `SAMPLE_ROWS`.
    """
    if kind.init_params == "random":
        return _random(rows, n_components, random_state)
    if kind.init_params == "kmeans" and n_components == 1:
        return _all_in_one
    units = _units_of(rows) if kind.is_standardized else None
    start = _StartingRows(rows, n_components, random_state, completion, units)
    if kind.init_params == "kmeans":
        return start.by_kmeans()
    return start.from_seeds(kind.init_params == "k-means++", kind.seeds_alone and not is_flat)


def _units_of(rows):
    """Standard deviations of the columns, infinite for those that are constant up to rounding: (P,)."""
    units = np.sqrt(rows.variances)
    units[units <= _CONSTANT_BELOW * np.abs(rows.origin)] = np.inf
    return units


def _random(rows, n_components, random_state):
    """Uniform random numbers, divided by their sum in every row."""
    if rows.n_samples > SAMPLE_ROWS:
        seed = random_state.randint(2**32, size=4, dtype=np.uint32)
        return RandomResponsibilities(seed, n_components)
    responsibilities = random_state.uniform(size=(rows.n_samples, n_components))
    return responsibilities / responsibilities.sum(axis=1, keepdims=True)


class _StartingRows:
    """Starts from all rows where they are few, otherwise from a sample; rows with holes are completed.

    Parameters
    ----------
    rows, n_components, random_state, completion : as in `starting_responsibilities`
    units : (P,), of the columns between which distances are taken; or None, for the columns as they are
    """

    def __init__(self, rows, n_components, random_state, completion, units=None):
        self._has_all = rows.n_samples <= SAMPLE_ROWS
        self._rows = rows.in_memory() if self._has_all else rows
        self._completion = completion
        if self._has_all and completion is not None:
            self._rows = completion.completed(self._rows)
        self._n_components = n_components
        self._random_state = random_state
        self._units = units

    def by_kmeans(self):
        """Rows in the clusters of k-means."""
        _, sample = self._sample()
        weights, X = sample.sample_weight, self._values(sample)
        kmeans = KMeans(n_clusters=self._n_components, n_init=1, random_state=self._random_state)
        if weights is not None:
            # KMeans scales its tolerance by the unweighted variances of X; repeated rows have the weighted
            # ones.
            mean = np.average(X, axis=0, weights=weights)
            variance = np.average(np.square(X - mean), axis=0, weights=weights).mean()
            unweighted = np.var(X, axis=0).mean()
            kmeans.set_params(tol=kmeans.tol * variance / unweighted if unweighted > 0 else 0.0)
        with openmp_threads(1 if X.size * self._n_components < _MIN_PRODUCTS_FOR_THREADS else None):
            kmeans.fit(X, sample_weight=weights)
        if self._has_all:
            return self._one_hot(kmeans.labels_)
        return self._nearest(kmeans.cluster_centers_)

    def from_seeds(self, by_kmeans_plusplus, seeds_alone):
        """Seeds as the only rows of their components, or every row in the component of the nearest seed."""
        index, sample = self._sample()
        weights, random_state = sample.sample_weight, self._random_state
        X = self._values(sample)
        if by_kmeans_plusplus:
            drawn = kmeans_plusplus(X, self._n_components, sample_weight=weights, random_state=random_state)[
                1
            ]
        else:
            probabilities = None if weights is None else weights / weights.sum()
            first = np.unique(index, return_index=True)[1]  # A sample may have a row several times.
            chosen = random_state.choice(len(first), self._n_components, replace=False, p=probabilities)
            drawn = first[chosen]
        if not seeds_alone:
            return self._nearest(X[drawn])
        return SeedRows(index[drawn])

    def _values(self, sample):
        """The columns between which distances are taken: as they are, or from the origin in units."""
        in_units = self._units is not None
        return _with_finite_squares((sample.X - self._rows.origin) / self._units if in_units else sample.X)

    def _sample(self):
        """The numbers of the rows that a start is made from, and the rows themselves: all, or a sample.

        The draws are those from the rows repeated by their weights.
        """
        rows, random_state = self._rows, self._random_state
        if self._has_all:
            return np.arange(rows.n_samples), rows
        index, sample = rows.at(np.sort(random_state.uniform(0.0, rows.total_weight, SAMPLE_ROWS)))
        if self._completion is not None:
            sample = self._completion.completed(sample)
        n_different = len(np.unique(index))
        if n_different >= self._n_components:
            return index, sample
        if rows.is_in_memory and self._completion is None:
            return np.arange(rows.n_samples), rows
        raise ValueError(
            f"Nearly all the weight is on {n_different} rows, from which {self._n_components} components "
            "cannot start. (a) Lower n_components. (b) Pass responsibilities as init_params."
        )

    def _nearest(self, values):
        """Responsibilities of one in the component of the nearest center, given (K, P) values."""
        if self._units is None:
            centers = NearestCenters(values - self._rows.origin)
        else:
            centers = NearestCenters(values, self._units)
        if self._has_all:
            return self._one_hot(self._rows.each(centers.labels, dtype=np.intp))
        return centers if self._completion is None else OfCompleted(self._completion.posterior, centers)

    def _one_hot(self, labels):
        """Responsibilities of one in the component that the label of a row names: (n_samples, n_components).

        They are sparse unless there are few of them, where sparse arrays take more time to make and to slice.
        """
        shape = len(labels), self._n_components
        if shape[0] * shape[1] <= _MAX_DENSE_RESPONSIBILITIES:
            return np.eye(self._n_components)[labels]
        return csr_array((np.ones(len(labels)), (np.arange(len(labels)), labels)), shape=shape)


def _with_finite_squares(X):
    """X, in float64 where squares of float32 would overflow or underflow."""
    if X.dtype == np.float32:
        largest = max(X.max(), -X.min())
        if not 1.0 / _LARGEST_SINGLE < largest < _LARGEST_SINGLE:
            return X.astype(np.float64)
    return X


# Responsibilities as functions of a block of rows: RowBlock -> (n, K).


def _all_in_one(block):
    """All rows belong to the only component."""
    return np.ones((block.n_rows, 1))


class NearestCenters:
    """A row belongs to the component of the nearest center.

    Parameters
    ----------
    centers : (K, P), measured from the rows' origin, in ``units``
    units : float, or one for every column, (P,)
    """

    def __init__(self, centers, units=1.0):
        self._centers = centers
        self._axes = centers / units

    def labels(self, block):
        """Index of the nearest center of every row, int array (n,)."""
        # |x - c|^2 without |x|^2; the rows are near the origin, so that no digits are lost.
        closeness = self._axes @ block.rows
        closeness -= 0.5 * np.square(self._centers).sum(axis=1)[:, None]
        return closeness.argmax(axis=0)

    def __call__(self, block):
        return np.eye(len(self._centers))[self.labels(block)]


class SeedRows:
    """Each component has one row, which counts once whatever its weight; other rows belong to none.

    Parameters
    ----------
    index : int array (K,), numbers of the rows
    """

    def __init__(self, index):
        self._index = index

    def __call__(self, block):
        responsibilities = np.zeros((block.n_rows, len(self._index)))
        rows, components = np.nonzero(block.numbers[:, None] == self._index)
        responsibilities[rows, components] = 1.0 / block.counts[rows]
        return responsibilities


class RandomResponsibilities:
    """Uniform random numbers, divided by their sum in every row.

    They depend on the seed and the number of the row alone, because the generator can start anywhere. So they
    are the same wherever the rows are, and in whatever order passes go through rows with holes.

    Parameters
    ----------
    seed : uint32 array (4,)
    n_components : int
    """

    _NUMBERS_AT_ONCE = 4  # The generator makes so many at a time.
    _LARGEST_GAP = 100  # Beyond more rows than this it starts anew, so that few numbers are made in vain.

    def __init__(self, seed, n_components):
        self._seed, self._n_components = seed, n_components

    def __call__(self, block):
        responsibilities = np.empty((block.n_rows, self._n_components))
        order, width = np.argsort(block.numbers), self._n_components
        is_far = np.diff(block.numbers[order]) > self._LARGEST_GAP
        for rows in np.split(order, np.flatnonzero(is_far) + 1):
            place = block.numbers[rows] - block.numbers[rows[0]]
            before, skipped = divmod(int(block.numbers[rows[0]]) * width, self._NUMBERS_AT_ONCE)
            generator = np.random.Philox(key=self._seed.view(np.uint64))
            generator.advance(before)
            made = np.random.Generator(generator).random(skipped + (place[-1] + 1) * width)
            responsibilities[rows] = made[skipped:].reshape(-1, width)[place]
        return responsibilities / responsibilities.sum(axis=1, keepdims=True)


# Steps end where a sweep would gain less than about so many nats a row, and at the latest after so many.
_LEAST_GAIN = 1e-7
_MAX_STEPS = 100

# Number of features beyond which a column is completed by its mean alone, where no covariances are asked for:
# completing it by all other columns takes up to P^3 flops for every pattern of holes and sweep. Where they
# are asked for, steps end at the larger gain, which saves a quarter of them: at 250 and 400 columns it moved
# covariances by less than 0.02 standard deviations.
_MAX_FEATURES = 200
_LEAST_GAIN_BEYOND = 1e-3

_MEAN_PRECISION = 1e-6  # Of the prior that draws the mean to that of the columns, in rows.
_ROUNDING = np.finfo(float).eps
_LEAST_VARIANCE = 1e-200  # Of a column of zeros, whose square root and reciprocal are still numbers.


class Completion:
    """One normal distribution of rows with holes, estimated by some passes when it is first asked for.

    Parameters
    ----------
    rows : Rows
    needs_matrix : bool, whether covariances of pairs of columns are asked for
    model : MixtureModel

    Attributes
    ----------
    posterior : VariationalPosterior of one component
    mean : (P,), measured from the rows' origin
    """

    def __init__(self, rows, needs_matrix, model):
        self._rows, self._needs_matrix, self._model = rows, needs_matrix, model

    @cached_property
    def posterior(self):
        is_wide = self._rows.n_features > _MAX_FEATURES
        covariance_type = "diag" if is_wide and not self._needs_matrix else "full"
        start = _columns_alone(self._rows, covariance_type, self._model)
        return _fitted(self._rows, start, _LEAST_GAIN_BEYOND if is_wide else _LEAST_GAIN)

    @property
    def mean(self):
        return self._mean_and_covariance[0]

    def covariance_in(self, structure):
        """The covariance (ddof = 1) in the shape of a structure: a matrix, variances, or their mean."""
        covariance = self._mean_and_covariance[1]
        if structure.is_matrix:
            return covariance
        variances = self.posterior.structure.diagonal(covariance)
        return structure.gram(structure.diagonal_factors(np.sqrt(variances)))[0]

    @cached_property
    def _mean_and_covariance(self):
        """The mean and the covariance, in the posterior's structure, by one more sweep without the prior."""
        rows, structure, frames = self._rows, self.posterior.structure, OwnFrames(self.posterior)
        moments = rows.total(functools.partial(_moments_of_block, frames), frames.workload)
        total, mean = rows.total_weight, moments.first / rows.total_weight
        scatter = moments.second - structure.sum_of_squares(mean, np.array([total]))
        maps = self.posterior.covariance_cholesky
        covariance = structure.congruence(maps, scatter / max(total - 1.0, _ROUNDING))[0]
        covariance = structure.from_entries(structure.entries(covariance))  # Exactly symmetric.
        # A column has one value only, up to its rounding: then no missing value of it varies either.
        constant = rows.variances <= np.square(_ROUNDING * rows.origin)
        covariance[constant] = covariance[..., constant] = 0.0
        return self.posterior.centred_means[0] + structure.transformed(maps, mean)[0], covariance

    def completed(self, rows):
        """Some rows without holes: ArrayRows; for as many rows as fit into memory."""
        X = rows.each(functools.partial(_completed_values, self.posterior), (rows.n_features,))
        X += rows.origin
        return ArrayRows(X, rows.origin, rows.n_jobs, rows.sample_weight, rows.first)


@dataclass(frozen=True)
class OfCompleted:
    """A function of a block of rows, applied to the block without holes.

    Attributes
    ----------
    posterior : VariationalPosterior of one component
    function : callable
    """

    posterior: VariationalPosterior
    function: object

    def __call__(self, block):
        return self.function(replace(block, rows=_completed_values(self.posterior, block), holes=None))


def _completed_values(posterior, block):
    """The rows of a block with their missing values filled by conditional means, (P, n)."""
    if block.holes is None:
        return block.rows
    values = OwnFrames(posterior).whiten(block).values[0]
    filled = posterior.structure.transformed(posterior.covariance_cholesky, values.T[:, None])[:, 0].T
    return np.where(block.seen > 0, block.rows, filled + posterior.centred_means[0][:, None])


def _columns_alone(rows, covariance_type, model):
    """The columns' means and variances, as a posterior."""
    n_features = rows.n_features
    variances = np.maximum(rows.variances, np.square(_ROUNDING * rows.origin))
    variances = np.maximum(variances, _LEAST_VARIANCE)
    structure = COVARIANCE_STRUCTURES[covariance_type](1, n_features)
    factors = structure.diagonal_factors(np.sqrt(variances))
    prior = MixturePrior(
        model=model,
        weights=DirichletWeights(1.0, 1),
        structure=structure,
        mean_precision=_MEAN_PRECISION,
        mean=np.zeros(n_features),
        degrees_of_freedom=float(n_features),
        covariance=n_features * structure.gram(factors)[0],
        independent=False,
        reg_covar=0.0,
        resolution=np.zeros(n_features),
    )
    return VariationalPosterior(prior, np.array([rows.total_weight]), np.zeros((1, n_features)), factors)


def _fitted(rows, posterior, least_gain):
    """The posterior at the end of accelerated sweeps, where one would gain less than that for every row."""
    acceleration, result = Acceleration(), e_step(rows, posterior)
    for _ in range(_MAX_STEPS):
        distance = posterior.distance(result.moments)
        if 0.5 * distance**2 < least_gain * rows.total_weight:
            break
        acceleration.record(distance)
        swept, lower_bound = posterior.m_step(result.moments), result.lower_bound
        try:
            proposed = acceleration.proposal(posterior, swept)
        except DegenerateComponentError:
            proposed = None
        posterior = swept if proposed is None else proposed
        result = e_step(rows, posterior)
        if proposed is not None and result.lower_bound >= lower_bound:
            acceleration.accept()
        elif proposed is not None:
            acceleration.reject()
            posterior, result = swept, e_step(rows, swept)
    return posterior


def _moments_of_block(frames, block):
    return frames.moments(frames.whiten(block), block.counts[None])
