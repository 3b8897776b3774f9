"""Starting responsibilities, by scikit-learn's names and from the same random numbers.

Sample weights count rows, so a weighted start is one from the rows repeated: k-means and its seeds as
scikit-learn draws them there, random seeds with probabilities proportional to the weights. Where there are
very many rows, k-means sees a sample of them.
"""

import functools

import numpy as np
from scipy.sparse import csr_array
from sklearn.cluster import KMeans, kmeans_plusplus
from sklearn.metrics import pairwise_distances_argmin
from sklearn.utils import check_array

from sklearn_lrvb.row_blocks import openmp_threads

# Rows that k-means sees at most: more change the centers less than the first sweep does.
KMEANS_ROWS = 2**17

# Numbers that k-means computes in an iteration below which threads cost more than they save.
_WORTH_THREADS = 10**6

_SUM_TOLERANCE = 1e-5  # of a user's responsibilities, which may be in float32


def _drawn(random_state, n_draws, rows):
    """Rows drawn with replacement, their probabilities proportional to weights, in order: int (n_draws,).

    The draws are those from the rows repeated by their weights.
    """
    weights = rows.sample_weight
    ends = np.arange(1.0, rows.n_samples + 1.0) if weights is None else np.cumsum(weights)
    places = np.sort(random_state.uniform(0.0, ends[-1], n_draws))
    return np.minimum(np.searchsorted(ends, places, side="right"), rows.n_samples - 1)


def _kmeans(rows, n_components, random_state):
    """Labels by k-means; of many rows, by the nearest center, with centers from a sample of them."""
    if rows.n_samples > KMEANS_ROWS:
        drawn = _drawn(random_state, KMEANS_ROWS, rows)
        # The sample has too few different rows only where a few rows have nearly all the weight.
        if len(np.unique(drawn)) >= n_components:
            centers = _kmeans_of_all(rows.X[drawn], n_components, random_state, None).cluster_centers_
            return _nearest(rows, centers)
    return _kmeans_of_all(rows.X, n_components, random_state, rows.sample_weight).labels_


def _nearest(rows, centers):
    """Number of the nearest center of every row, int array (n_samples,)."""
    # Distances are computed from squares, which would lose their digits far from the origin.
    return rows.concatenated(functools.partial(_nearest_of_block, centers - rows.origin))


def _nearest_of_block(centers, block):
    return pairwise_distances_argmin(block.rows.T, centers)


def _kmeans_of_all(X, n_components, random_state, weights):
    kmeans = KMeans(n_clusters=n_components, n_init=1, random_state=random_state)
    if weights is not None:
        # KMeans takes its tolerance in units of the variances of X without weights.
        mean = np.average(X, axis=0, weights=weights)
        variance = np.average(np.square(X - mean), axis=0, weights=weights).mean()
        without = np.var(X, axis=0).mean()
        kmeans.set_params(tol=kmeans.tol * variance / without if without > 0 else 0.0)
    threads = 1 if X.size * n_components < _WORTH_THREADS else None
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
    return kmeans_plusplus(rows.X, n_components, sample_weight=weights, random_state=random_state)[1]


def _one_hot(n_samples, rows, components, n_components):
    """Responsibilities of one on every (row, component), zero elsewhere: sparse (n_samples, n_components)."""
    ones = np.ones(len(rows))
    return csr_array((ones, (rows, components)), shape=(n_samples, n_components))


def checked_responsibilities(responsibilities, n_samples, n_components, source):
    """A user's responsibilities as a float array, (n_samples, n_components).

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
        What "k-means++" and "random_from_data" do with their seeds: True, each component starts from
        one point at its seed and the prior, as in scikit-learn; False, every row goes to the nearest
        seed (the limit of the former, and all that can be done without a proper prior).

    Raises
    ------
    ValueError
        Where a callable returns no responsibilities (`checked_responsibilities`).
    """
    n_samples = rows.n_samples
    if callable(init_params):
        made = init_params(rows.X, n_components, random_state)
        return checked_responsibilities(made, n_samples, n_components, "What init_params returns")
    everything = np.arange(n_samples)
    if init_params == "kmeans":
        labels = _kmeans(rows, n_components, random_state)
        return _one_hot(n_samples, everything, labels, n_components)
    if init_params == "random":
        return _random(rows, n_components, random_state)
    draw = {"random_from_data": _random_seeds, "k-means++": _kmeans_plusplus_seeds}[init_params]
    seeds = draw(rows, n_components, random_state)
    if not seeds_alone:
        labels = _nearest(rows, rows.X[seeds])
        return _one_hot(n_samples, everything, labels, n_components)
    responsibilities = _one_hot(n_samples, seeds, np.arange(n_components), n_components)
    if rows.sample_weight is None:
        return responsibilities
    return responsibilities.multiply(1.0 / rows.sample_weight[:, None]).tocsr()  # Each seed counts once.
