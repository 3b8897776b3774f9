"""Components without rows neither decide what the prior learns nor slow it down."""

import numpy as np
import pytest
from catalogue import COVARIANCE_TYPES

from sklearn_lrvb import LRVBGaussianMixture


def iterated(covariance_type, n_components, n_clusters):
    """A fit by plain iterations from the true clusters; its further components are empty."""
    labels = np.arange(100 * n_clusters) // 100
    X = 8.0 * np.eye(3)[labels] + np.random.default_rng(0).normal(size=(len(labels), 3))
    return LRVBGaussianMixture(
        n_components=n_components,
        covariance_type=covariance_type,
        weight_concentration_prior_type="dirichlet_distribution",
        weight_concentration_prior=1e-3,
        init_params=np.eye(n_components)[labels],
        solver="coordinate_ascent",
        max_iter=500,
        tol=1e-9,
    ).fit(X)


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
@pytest.mark.parametrize("n_clusters", [1, 3])
def test_empty_components_change_nothing_that_is_learned(covariance_type, n_clusters):
    alone, among = (iterated(covariance_type, n, n_clusters) for n in (n_clusters, n_clusters + 9))
    assert among.n_occupied_ == n_clusters
    scale = np.abs(alone.covariance_prior_).max()
    np.testing.assert_allclose(among.covariance_prior_, alone.covariance_prior_, atol=1e-4 * scale)
    assert among.mean_precision_prior_ == pytest.approx(alone.mean_precision_prior_, rel=1e-4)
    assert among.n_iter_ <= alone.n_iter_ + 5
    assert np.diff(among.lower_bounds_).min() > -1e-9


def equation(C0, X, n_components, nu):
    """The right-hand side of g' C0^-1 = A + sum of E Lambda, if one component has all rows: (P, P)."""
    n, n_features = X.shape
    S, scatter = np.cov(X.T), n * np.cov(X.T, bias=True)
    precisions = n_components * nu * np.linalg.inv(C0)
    precisions += (nu + n) * np.linalg.inv(C0 + scatter) - nu * np.linalg.inv(C0)
    return n_features / nu * np.linalg.inv(S) + precisions


@pytest.mark.parametrize("n_components", [1, 6])
def test_a_learned_covariance_solves_its_equation(n_components):
    X = np.random.default_rng(0).normal(size=(80, 3)) @ [[2.0, 1.0, 0.0], [0.0, 1.0, 0.3], [0.0, 0.0, 0.2]]
    fit = LRVBGaussianMixture(
        n_components=n_components,
        weight_concentration_prior=1e-3,
        init_params=np.eye(n_components)[np.zeros(len(X), dtype=int)],
        reg_covar=0.0,
        tol=1e-10,
        max_iter=500,
    ).fit(X)
    assert fit.n_occupied_ == 1
    nu, C0 = fit.degrees_of_freedom_prior_, fit.covariance_prior_
    right = equation(C0, X, n_components, nu)
    np.testing.assert_allclose(right @ C0, (3 + n_components * nu) * np.eye(3), atol=1e-4)
