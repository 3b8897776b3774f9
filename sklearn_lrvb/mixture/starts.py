"""Where clusters may begin: the centers of k-means, and the center that is nearest to a row."""

import numpy as np
from sklearn.cluster import KMeans

from sklearn_lrvb.rows import openmp_threads

# Number of products in an iteration of k-means below which threads cost more than they save.
_MIN_PRODUCTS_FOR_THREADS = 10**6


def k_means(X, n_components, sample_weight, random_state):
    """Clusters of k-means, from one start: KMeans, fitted.

    Weights count rows. `KMeans` scales its tolerance by the unweighted variances of X; repeated rows have the
    weighted ones.

    Parameters
    ----------
    X : (n, d)
    n_components : int
    sample_weight : (n,) or None
    random_state : RandomState
    """
    kmeans = KMeans(n_clusters=n_components, n_init=1, random_state=random_state)
    if sample_weight is not None:
        mean = np.average(X, axis=0, weights=sample_weight)
        variance = np.average(np.square(X - mean), axis=0, weights=sample_weight).mean()
        unweighted = np.var(X, axis=0).mean()
        kmeans.set_params(tol=kmeans.tol * variance / unweighted if unweighted > 0 else 0.0)
    with openmp_threads(1 if X.size * n_components < _MIN_PRODUCTS_FOR_THREADS else None):
        return kmeans.fit(X, sample_weight=sample_weight)


def nearest_centers(centers, products):
    """The center that is nearest to each of some rows, given products of centers and rows: int array (n,).

    |x - c|^2 is compared without |x|^2. So that no digits are lost, rows are near the origin.

    Parameters
    ----------
    centers : (K, d)
    products : (K, n), which are changed
    """
    products -= 0.5 * np.square(centers).sum(axis=1)[:, None]
    return products.argmax(axis=0)
