"""Starting responsibilities, under scikit-learn's names and from the same random numbers.

Sample weights count rows: k-means and its seeds are passed the weights, so that they are those of the rows
repeated, and random seeds are drawn with probabilities proportional to the weights. Where there are very many
rows, k-means is run on a sample of them. `restarts` runs the fits from these starts.
"""

import functools

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.cluster import KMeans, kmeans_plusplus
from sklearn.metrics import pairwise_distances_argmin
from sklearn.utils import check_array

from sklearn_lrvb.row_blocks import openmp_threads

# Largest number of rows that k-means is run on: more change the centers less than the first sweep does.
KMEANS_ROWS = 2**17

# Number of products in an iteration of k-means below which threads cost more than they save.
_MIN_PRODUCTS_FOR_THREADS = 10**6

# Number of responsibilities up to which they are a dense array: 1 MiB.
_MAX_DENSE_RESPONSIBILITIES = 2**17

# Largest absolute value of float32 rows, and the reciprocal of the least, at which squares stay in range.
_LARGEST_SINGLE = 1e12

# Standard deviation, relative to the mean, below which a column is constant up to rounding.
_CONSTANT_BELOW = 10 * np.finfo(float).eps

# Tolerance for the sums of a user's responsibilities, which may be in float32.
_SUM_TOLERANCE = 1e-5


def _drawn_rows(random_state, n_draws, rows):
    """Rows drawn with replacement, their probabilities proportional to weights, in order: int (n_draws,).

    The draws are those from the rows repeated by their weights.
    """
    weights = rows.sample_weight
    ends = np.arange(1.0, rows.n_samples + 1.0) if weights is None else np.cumsum(weights)
    positions = np.sort(random_state.uniform(0.0, ends[-1], n_draws))
    return np.minimum(np.searchsorted(ends, positions, side="right"), rows.n_samples - 1)


def _kmeans(rows, n_components, random_state):
    """Labels by k-means; where there are many rows, those of the nearest centers found in a sample."""
    if n_components == 1:
        return np.zeros(rows.n_samples, dtype=int)
    sample, weights = _rows_for_kmeans(rows, n_components, random_state)
    kmeans = _fitted_kmeans(sample, n_components, random_state, weights)
    return kmeans.labels_ if sample is rows.X else _nearest(rows, kmeans.cluster_centers_ - rows.origin)


def _rows_for_kmeans(rows, n_components, random_state):
    """The rows that k-means is run on, and their weights: all, or a sample where there are many."""
    if rows.n_samples > KMEANS_ROWS:
        drawn = _drawn_rows(random_state, KMEANS_ROWS, rows)
        # The sample has too few different rows only where a few rows have nearly all the weight.
        if len(np.unique(drawn)) >= n_components:
            return rows.X[drawn], None
    return rows.X, rows.sample_weight


def standardized_kmeans(rows, n_components, random_state):
    """Responsibilities by k-means on the columns in units of their standard deviations.

    Parameters
    ----------
    rows : CentredRows, of positive weights where they have any
    n_components : int
    random_state : RandomState

    Returns
    -------
    responsibilities : array or sparse array (n_samples, n_components)
    """
    units = np.sqrt(rows.variances)
    units[units <= _CONSTANT_BELOW * np.abs(rows.origin)] = np.inf
    sample, weights = _rows_for_kmeans(rows, n_components, random_state)
    kmeans = _fitted_kmeans((sample - rows.origin) / units, n_components, random_state, weights)
    labels = _nearest(rows, kmeans.cluster_centers_, units)
    return _one_hot(rows.n_samples, np.arange(rows.n_samples), labels, n_components)


def _nearest(rows, centers, units=1.0):
    """Index of the nearest center of every row, int array (n_samples,).

    Parameters
    ----------
    rows : CentredRows
    centers : (K, P), measured from the rows' origin, in ``units``
    units : float, or one for every column, (P,)
    """
    return rows.concatenated(functools.partial(_nearest_of_block, centers, units))


def _nearest_of_block(centers, units, block):
    # Distances are computed from squares, which would lose digits far from the origin.
    return pairwise_distances_argmin(block.rows.T / units, centers)


def _with_finite_squares(X):
    """X, in float64 where squares of float32 would overflow or underflow."""
    if X.dtype == np.float32:
        largest = max(X.max(), -X.min())
        if not 1.0 / _LARGEST_SINGLE < largest < _LARGEST_SINGLE:
            return X.astype(np.float64)
    return X


def _fitted_kmeans(X, n_components, random_state, weights):
    X = _with_finite_squares(X)
    kmeans = KMeans(n_clusters=n_components, n_init=1, random_state=random_state)
    if weights is not None:
        # KMeans scales its tolerance by the unweighted variances of X; repeated rows have the weighted ones.
        mean = np.average(X, axis=0, weights=weights)
        variance = np.average(np.square(X - mean), axis=0, weights=weights).mean()
        unweighted = np.var(X, axis=0).mean()
        kmeans.set_params(tol=kmeans.tol * variance / unweighted if unweighted > 0 else 0.0)
    threads = 1 if X.size * n_components < _MIN_PRODUCTS_FOR_THREADS else None
    with openmp_threads(threads):
        return kmeans.fit(X, sample_weight=weights)


def _random(rows, n_components, random_state):
    responsibilities = random_state.uniform(size=(rows.n_samples, n_components))
    return responsibilities / responsibilities.sum(axis=1, keepdims=True)


def _random_seeds(rows, n_components, random_state):
    weights = rows.sample_weight
    probabilities = None if weights is None else weights / weights.sum()
    return random_state.choice(rows.n_samples, size=n_components, replace=False, p=probabilities)


def _kmeans_plusplus_seeds(rows, n_components, random_state):
    weights = rows.sample_weight
    return kmeans_plusplus(
        _with_finite_squares(rows.X), n_components, sample_weight=weights, random_state=random_state
    )[1]


def _one_hot(n_samples, rows, components, n_components):
    """Responsibilities of one on every (row, component), zero elsewhere: (n_samples, n_components).

    They are sparse unless there are few of them, where sparse arrays take more time to make and to slice.
    """
    if n_samples * n_components <= _MAX_DENSE_RESPONSIBILITIES:
        responsibilities = np.zeros((n_samples, n_components))
        responsibilities[rows, components] = 1.0
        return responsibilities
    ones = np.ones(len(rows))
    return csr_array((ones, (rows, components)), shape=(n_samples, n_components))


def checked_responsibilities(responsibilities, n_samples, n_components, source):
    """A user's responsibilities as a float array, (n_samples, n_components).

    Parameters
    ----------
    responsibilities : array-like
    n_samples, n_components : int, the shape that they must have
    source : str, their name at the start of an error message

    Raises
    ------
    ValueError
        Where they are not finite, of another shape, negative, or do not sum to one in every row.
    """
    checked = check_array(
        responsibilities, dtype=[np.float64, np.float32], ensure_2d=False, input_name=source
    )
    if checked.shape != (n_samples, n_components):
        raise ValueError(
            f"{source} must have one row for every row of X and one column for every component, shape "
            f"{(n_samples, n_components)}, but has {checked.shape}."
        )
    if checked.min() < 0:
        row = np.unravel_index(checked.argmin(), checked.shape)[0]
        raise ValueError(f"{source} must not be negative; row {row} has {checked.min():.3g}.")
    sums = checked.sum(axis=1, dtype=np.float64)
    worst = np.argmax(np.abs(sums - 1.0))
    if abs(sums[worst] - 1.0) > _SUM_TOLERANCE:
        raise ValueError(
            f"{source} must sum to one in every row; row {worst} sums to {sums[worst]:.6g}. Divide every row "
            "by its sum."
        )
    return checked


def starting_responsibilities(rows, n_components, init_params, random_state, seeds_alone):
    """Responsibilities to start from, (n_samples, n_components); sparse where most are zero.

    Parameters
    ----------
    rows : CentredRows, of positive weights where they have any
    n_components : int
    init_params : {"kmeans", "k-means++", "random", "random_from_data"} or callable (X, n_components, \
            random_state) -> responsibilities
    random_state : RandomState
    seeds_alone : bool
        How "k-means++" and "random_from_data" use their seeds. If True, each component starts from its
        seed as its only row, and the prior, as in scikit-learn. If False, every row goes to the nearest
        seed, because without a proper prior one row gives a component no posterior.

    Raises
    ------
    ValueError
        Where a callable returns invalid responsibilities (`checked_responsibilities`).
    """
    n_samples = rows.n_samples
    if callable(init_params):
        made = init_params(rows.X, n_components, random_state)
        return checked_responsibilities(made, n_samples, n_components, "What init_params returns")
    all_rows = np.arange(n_samples)
    if init_params == "kmeans":
        labels = _kmeans(rows, n_components, random_state)
        return _one_hot(n_samples, all_rows, labels, n_components)
    if init_params == "random":
        return _random(rows, n_components, random_state)
    draw = {"random_from_data": _random_seeds, "k-means++": _kmeans_plusplus_seeds}[init_params]
    seeds = draw(rows, n_components, random_state)
    if not seeds_alone:
        labels = _nearest(rows, rows.X[seeds] - rows.origin)
        return _one_hot(n_samples, all_rows, labels, n_components)
    responsibilities = _one_hot(n_samples, seeds, np.arange(n_components), n_components)
    if rows.sample_weight is None:
        return responsibilities
    once = 1.0 / rows.sample_weight[:, None]  # Times its weight, each seed then counts as one row.
    return responsibilities.multiply(once).tocsr() if issparse(responsibilities) else responsibilities * once
