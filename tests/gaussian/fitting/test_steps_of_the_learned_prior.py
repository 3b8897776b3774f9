"""What the prior learns: components without rows do not decide it, and no component slows it down."""

from dataclasses import replace

import numpy as np
import pytest
from catalogue import COVARIANCE_TYPES, posterior_of, rows_of

from sklearn_lrvb import LRVBGaussianMixture
from sklearn_lrvb.mixture.e_step import e_step
from sklearn_lrvb.mixture.model import DegenerateComponentError


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
    assert (np.diff(among.lower_bounds_) > -1e-9).all()


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_few_iterations_are_needed_where_labels_are_certain(covariance_type):
    rng, labels = np.random.default_rng(0), np.arange(200) // 50
    X = rng.normal(size=(200, 12))
    X[np.arange(200), labels] += 14.0
    model = {"covariance_type": covariance_type, "solver": "coordinate_ascent", "tol": 1e-8}
    fit = LRVBGaussianMixture(n_components=4, init_params=np.eye(4)[labels], **model).fit(X)
    # Where components follow b0 and C0 by iterations alone: 11, and 5 to 10.
    assert fit.n_iter_ <= (7 if covariance_type == "full" else 5)


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_starts_of_one_row_for_each_component_join_no_clusters(covariance_type):
    X = np.random.default_rng(0).normal(size=(120, 2)) + np.repeat([[0, 0], [6, 0], [0, 6]], 40, axis=0)
    mixture = LRVBGaussianMixture(
        n_components=6, covariance_type=covariance_type, init_params="random_from_data", moves=None
    )
    assert all(mixture.set_params(random_state=seed).fit(X).n_occupied_ >= 3 for seed in range(12))


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_a_singular_covariance_is_told_as_such(covariance_type):
    X = np.random.default_rng(0).normal(size=(40, 3))
    mixture = LRVBGaussianMixture(n_components=2, covariance_type=covariance_type, random_state=0).fit(X)
    posterior = posterior_of(mixture)
    moments = e_step(rows_of(mixture, X), posterior).moments
    with pytest.raises(DegenerateComponentError):
        posterior.m_step(replace(moments, second=0.0 * moments.second))


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
