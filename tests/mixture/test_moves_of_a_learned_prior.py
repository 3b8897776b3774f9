"""Under a learned prior the default fit merges parts of clusters, and keeps the clusters."""

import numpy as np
import pytest
from catalogue import COVARIANCE_TYPES
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.metrics import adjusted_rand_score

from sklearn_lrvb import LRVBGaussianMixture


def clusters(n_samples, n_features, n_clusters, distance):
    """Rows and labels of round clusters, the nearest two of which are this far apart."""
    rng = np.random.default_rng(0)
    centers, labels = rng.normal(size=(n_clusters, n_features)), np.arange(n_samples) % n_clusters
    gaps = np.linalg.norm(centers[:, None] - centers, axis=2)[np.triu_indices(n_clusters, 1)]
    return distance / min(gaps, default=1.0) * centers[labels] + rng.normal(
        size=(n_samples, n_features)
    ), labels


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
@pytest.mark.parametrize(
    ("shape", "n_clusters", "n_components"),
    [((480, 10), 1, 5), ((200, 20), 3, 6), ((300, 5), 1, 8)],
)
def test_parts_of_clusters_are_merged(covariance_type, shape, n_clusters, n_components):
    X, labels = clusters(*shape, n_clusters, 7.0)
    model = LRVBGaussianMixture(
        n_components=n_components, covariance_type=covariance_type, max_iter=500, random_state=0
    )
    plain, default = (clone(model).set_params(moves=moves).fit(X) for moves in (None, "auto"))
    assert default.converged_
    assert default.n_occupied_ == n_clusters
    assert adjusted_rand_score(labels, default.predict(X)) > 0.97
    assert default.lower_bound_ > plain.lower_bound_ - 1e-3
    assert np.diff(default.lower_bounds_).min() > -1e-8


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:A covariance matrix of")
@pytest.mark.parametrize("n_init", [1, 10])
def test_clusters_that_differ_are_kept(n_init):
    iris = load_iris()
    fit = LRVBGaussianMixture(n_components=3, n_init=n_init, random_state=0).fit(iris.data)
    assert fit.n_occupied_ == 3
    assert adjusted_rand_score(iris.target, fit.predict(iris.data)) > 0.85
    for shape in ((150, 100), (150, 200), (90, 2)):
        X, labels = clusters(*shape, 3, 29.0)
        fit = LRVBGaussianMixture(n_components=3, n_init=n_init, random_state=0).fit(X)
        assert adjusted_rand_score(labels, fit.predict(X)) == 1.0


@pytest.mark.parametrize("n_samples", [190, 210])
def test_components_of_many_rows_are_left_alone(n_samples):
    """Where each of two components has ten rows a feature, nothing is tried before one of them empties."""
    X, _ = clusters(n_samples, 10, 1, 0.0)
    model = LRVBGaussianMixture(n_components=2, weight_concentration_prior=1.0, random_state=0)
    plain, default = (clone(model).set_params(moves=moves).fit(X) for moves in (None, "auto"))
    assert plain.n_occupied_ == 2
    assert default.n_occupied_ == (2 if n_samples > 200 else 1)
    assert (default.lower_bounds_ == plain.lower_bounds_) == (n_samples > 200)
