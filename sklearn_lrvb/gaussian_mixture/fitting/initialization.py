"""Starting responsibilities, by scikit-learn's names and from the same random numbers.

Weights count rows, so a weighted start is one from the rows repeated: k-means and its seeds as
scikit-learn draws them there, random seeds with chances proportional to the weights. Of very many rows
k-means sees a sample.
"""

import numpy as np
from scipy.sparse import csr_array
from sklearn.cluster import KMeans, kmeans_plusplus
from sklearn.metrics import pairwise_distances_argmin
from sklearn.utils import check_array

from sklearn_lrvb.row_blocks import openmp_threads, rows_of_size, slices

KMEANS_ROWS = 2**17  # that k-means sees at most: more change the centers less than the first sweep does
_WORTH_THREADS = (
    10**6
)  # numbers that k-means computes an iteration, below which threads cost more than they do
_SUM_TOLERANCE = 1e-5  # of responsibilities in float32


def _drawn(random_state, n_draws, n_samples, weights):
    """Rows drawn with replacement, with chances proportional to the weights, in order: int array (n_draws,).

    The same as drawn from the rows repeated by their weights.
    """
    ends = np.arange(1.0, n_samples + 1.0) if weights is None else np.cumsum(weights)
    places = np.sort(random_state.uniform(0.0, ends[-1], n_draws))
    return np.minimum(np.searchsorted(ends, places, side="right"), n_samples - 1)


def _kmeans(X, n_components, random_state, weights):
    """Labels by k-means; of many rows those of the nearest center, with centers from a sample of them."""
    if len(X) > KMEANS_ROWS:
        drawn = _drawn(random_state, KMEANS_ROWS, len(X), weights)
        if len(np.unique(drawn)) >= n_components:  # but for a few rows of nearly all the weight
            centers = _kmeans_of_all(X[drawn], n_components, random_state, None).cluster_centers_
            return _nearest(X, centers)
    return _kmeans_of_all(X, n_components, random_state, weights).labels_


def _nearest(X, centers):
    """Number of the nearest center of every row, int array (n_samples,)."""
    # distances by squares lose their digits far from the origin
    middle = centers.mean(axis=0)
    blocks = slices(len(X), rows_of_size(2 * X.shape[1]))
    return np.concatenate([pairwise_distances_argmin(X[rows] - middle, centers - middle) for rows in blocks])


def _kmeans_of_all(X, n_components, random_state, weights):
    kmeans = KMeans(n_clusters=n_components, n_init=1, random_state=random_state)
    if weights is not None:
        # KMeans measures its tolerance in variances of X without weights
        mean = np.average(X, axis=0, weights=weights)
        variance = np.average(np.square(X - mean), axis=0, weights=weights).mean()
        without = np.var(X, axis=0).mean()
        kmeans.set_params(tol=kmeans.tol * variance / without if without > 0 else 0.0)
    threads = 1 if X.size * n_components < _WORTH_THREADS else None
    with openmp_threads(threads):
        return kmeans.fit(X, sample_weight=weights)


def _random(X, n_components, random_state):
    responsibilities = random_state.uniform(size=(len(X), n_components))
    return responsibilities / responsibilities.sum(axis=1, keepdims=True)


def _random_seeds(X, n_components, random_state, weights):
    chances = None if weights is None else weights / weights.sum()
    return random_state.choice(len(X), size=n_components, replace=False, p=chances)


def _kmeans_plusplus_seeds(X, n_components, random_state, weights):
    return kmeans_plusplus(X, n_components, sample_weight=weights, random_state=random_state)[1]


def _one_hot(n_samples, rows, components, n_components):
    """Responsibilities of one on (row, component), sparse; rows in order, or all zero elsewhere."""
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


def starting_responsibilities(X, n_components, init_params, random_state, seeds_alone, weights=None):
    """Responsibilities to start from, (n_samples, n_components); sparse where most are zero.

    Parameters
    ----------
    X : array (n_samples, n_features)
    init_params : {"kmeans", "k-means++", "random", "random_from_data"} or callable (X, n_components, \
            random_state) -> responsibilities
    random_state : RandomState
    seeds_alone : bool
        What "k-means++" and "random_from_data" do with their seeds: True, each component starts from
        one point at its seed and the prior, as in scikit-learn; False, every row goes to the nearest
        seed (the limit of the former, and all that can be done without a proper prior).
    weights : (n_samples,) or None, how often each row counts, positive
    """
    if callable(init_params):
        made = init_params(X, n_components, random_state)
        return checked_responsibilities(made, len(X), n_components, "What init_params returns")
    everything = np.arange(len(X))
    if init_params == "kmeans":
        labels = _kmeans(X, n_components, random_state, weights)
        return _one_hot(len(X), everything, labels, n_components)
    if init_params == "random":
        return _random(X, n_components, random_state)
    draw = {"random_from_data": _random_seeds, "k-means++": _kmeans_plusplus_seeds}[init_params]
    seeds = draw(X, n_components, random_state, weights)
    if seeds_alone:
        responsibilities = _one_hot(len(X), seeds, np.arange(n_components), n_components)
        return (
            responsibilities if weights is None else responsibilities.multiply(1.0 / weights[:, None]).tocsr()
        )
    return _one_hot(len(X), everything, _nearest(X, X[seeds]), n_components)
