"""The linear response against the paper's dense formula and against refits."""

from dataclasses import replace

import numpy as np
import pytest
from catalogue import MODELS, fitted, mixture, model_id, overlapping, three_blobs
from dense_reference import DenseReference

from sklearn_lrvb.gaussian_mixture.response import missing_information, missing_information_product
from sklearn_lrvb.row_blocks import CentredRows

catalogue = pytest.mark.parametrize("model", MODELS, ids=model_id)


@pytest.mark.parametrize(
    "model", [model for model in MODELS if model["factorization"] == "independent"], ids=model_id
)
@pytest.mark.parametrize("n_components", [1, 2, 3])
def test_equals_the_papers_dense_formula(model, n_components):
    X = three_blobs(90, n_features=2)
    estimator = mixture(model, n_components).fit(X)
    expected = DenseReference(estimator, X).covariance()
    sd = np.sqrt(np.abs(np.diag(expected)))
    scale = np.outer(sd, sd) + (n_components == 1) * 1e-12  # one log weight has variance zero
    error = np.abs(estimator.posterior_covariance_ - expected) / scale
    assert error.max() < 1e-8


@catalogue
def test_mean_field_covariance_is_that_of_q(model):
    estimator = fitted(model)
    sd = np.sqrt(np.diag(estimator.get_posterior_covariance(method="mean_field")))
    nu, precision = estimator.degrees_of_freedom_, estimator.precisions_
    diagonal = np.einsum("kpp->kp", precision)
    wishart = (precision**2 + diagonal[:, :, None] * diagonal[:, None, :]) / nu[:, None, None]
    student = nu / (nu - 3) if model["factorization"] == "joint" else np.ones(2)
    means = np.einsum("kpp->kp", estimator.covariances_) * (student / estimator.mean_precision_)[:, None]
    upper = np.triu_indices(2)
    expected = np.concatenate([means.ravel(), *(block[upper] for block in wishart)])
    np.testing.assert_allclose(sd[2:] ** 2, expected, rtol=1e-10)


@catalogue
def test_lrvb_exceeds_mean_field_where_components_overlap(model):
    estimator = fitted(model)
    lrvb = estimator.get_posterior_covariance()
    mean_field = estimator.get_posterior_covariance(method="mean_field")
    slack = 1.0 + (model["factorization"] == "independent") / estimator.degrees_of_freedom_.min()
    assert np.linalg.eigvalsh(slack * lrvb - mean_field)[0] > -1e-9
    assert np.all(np.diag(lrvb) > 1.01 * np.diag(mean_field))


@catalogue
def test_covariance_is_symmetric_positive_and_agrees_with_its_parts(model):
    estimator = fitted(model)
    covariance = estimator.posterior_covariance_
    np.testing.assert_array_equal(covariance, covariance.T)
    assert np.linalg.eigvalsh(covariance / np.outer(*[estimator.posterior_std_] * 2))[0] > 0
    np.testing.assert_allclose(np.sqrt(np.diag(covariance)), estimator.posterior_std_, rtol=1e-12)
    reordered = estimator.get_posterior_covariance(["means", "log_weights"])
    order = np.r_[2:6, 0:2]
    np.testing.assert_allclose(reordered, covariance[np.ix_(order, order)], rtol=1e-12)
    np.testing.assert_allclose(estimator.means_std_.ravel(), estimator.posterior_std_[2:6], rtol=1e-12)
    upper = np.triu_indices(2)
    stacked = np.concatenate([sd[upper] for sd in estimator.precisions_std_])
    np.testing.assert_allclose(stacked, estimator.posterior_std_[6:], rtol=1e-12)
    np.testing.assert_array_equal(estimator.precisions_std_, estimator.precisions_std_.transpose(0, 2, 1))


@catalogue
def test_covariances_and_weights_follow_by_the_delta_method(model):
    estimator = fitted(model)
    lrvb = estimator.get_posterior_covariance(["precisions", "covariances", "log_weights", "weights"])
    step = 1e-6
    jacobian = []
    for k in range(2):
        for p, q in zip(*np.triu_indices(2), strict=True):
            moved = estimator.precisions_.copy()
            moved[k, p, q] += step
            moved[k, q, p] = moved[k, p, q]
            change = np.linalg.inv(moved) - np.linalg.inv(estimator.precisions_)
            jacobian.append(np.concatenate([block[np.triu_indices(2)] for block in change]) / step)
    delta = np.transpose(jacobian)
    np.testing.assert_allclose(
        lrvb[6:12, 6:12], delta @ lrvb[:6, :6] @ delta.T, rtol=1e-4, atol=1e-4 * lrvb[6:12, 6:12].max()
    )
    np.testing.assert_allclose(lrvb[-2:, -2:].sum(axis=0), 0, atol=1e-12)  # weights sum to one
    # pi_0 as a function of log pi; log pi itself is no function of pi alone, hence the tolerance
    weight = estimator.weights_[0] * estimator.weights_[1]
    contrast = np.array([weight, -weight])
    assert estimator.weights_std_[0] == pytest.approx(
        np.sqrt(contrast @ lrvb[12:14, 12:14] @ contrast), rel=0.02
    )


@pytest.mark.parametrize(
    "model",
    [model for model in MODELS if model["prior"] == "conjugate" and not model["reg_covar"]],
    ids=model_id,
)
def test_covariance_with_the_precisions_is_the_response_to_the_covariance_prior(model):
    # log p gains -dC_ij Lambda_k,ij (all k): an identity of E_q theta for either factorization
    X = overlapping()
    prior = np.cov(X.T)
    estimator = mixture(model, covariance_prior=prior).fit(X)
    covariance = estimator.posterior_covariance_
    step = 1e-3
    for (p, q), name in zip([(0, 0), (0, 1), (1, 1)], ["x0,x0", "x0,x1", "x1,x1"], strict=True):
        change = np.zeros((2, 2))
        change[p, q] = change[q, p] = step
        above, below = (
            mixture(model, covariance_prior=prior + s * change).fit(X).posterior_mean_ for s in (1, -1)
        )
        refit = (above - below) / (2 * step)
        columns = [list(estimator.posterior_names_).index(f"precision[{k},{name}]") for k in range(2)]
        predicted = -(0.5 if p == q else 1.0) * covariance[:, columns].sum(axis=1)
        np.testing.assert_array_less(np.abs(refit - predicted), 1e-5 * estimator.posterior_std_)


@pytest.mark.parametrize("factorization", ["joint", "independent"])
def test_covariance_with_the_log_weights_is_the_response_to_the_concentration(factorization):
    X, step = overlapping(), 1e-3
    model = {"factorization": factorization, "weight_concentration_prior_type": "dirichlet_distribution"}
    estimator = mixture(model, weight_concentration_prior=1.0).fit(X)
    above, below = (
        mixture(model, weight_concentration_prior=1.0 + s).fit(X).posterior_mean_ for s in (step, -step)
    )
    predicted = estimator.posterior_covariance_[:, :2].sum(axis=1)
    np.testing.assert_array_less(
        np.abs((above - below) / (2 * step) - predicted), 1e-5 * estimator.posterior_std_
    )


@pytest.mark.parametrize("n_components", [2, 3])
def test_missing_information_is_its_definition(n_components):
    X = three_blobs(150)
    estimator = mixture(MODELS[1], n_components).fit(X)
    posterior = estimator._uncertainty.map.posterior
    rows = CentredRows(X, estimator._uncertainty.map.origin)
    r = estimator.predict_proba(X)
    missing = 0.0
    for x, r_n in zip(rows.block(slice(0, len(X))).T, r, strict=True):
        y = np.einsum("kpq,kq->kp", posterior.whiteners, x - posterior.offsets)
        features = [
            posterior.structure.features(y_k[:, None], origin)[:, 0]
            for y_k, origin in zip(y, posterior.second_moment_origin, strict=True)
        ]
        covariance = np.diag(r_n) - np.outer(r_n, r_n)
        missing = missing + np.einsum("kl,kf,lg->kflg", covariance, features, features)
    fast = missing_information(rows, posterior)
    scale = np.abs(missing).max()
    np.testing.assert_allclose(fast, missing.reshape(fast.shape), atol=1e-12 * scale)
    vector = np.random.default_rng(0).normal(size=len(fast))
    product = missing_information_product(rows, posterior, vector)
    np.testing.assert_allclose(product, fast @ vector, atol=1e-11 * scale)


def test_certain_rows_are_skipped_without_a_trace():
    X = np.concatenate([overlapping(), overlapping() + [30.0, 0.0]])
    estimator = mixture(MODELS[0], 4).fit(X)
    posterior = estimator._uncertainty.map.posterior
    rows = CentredRows(X, estimator._uncertainty.map.origin)
    missing = missing_information(rows, posterior)
    vector = np.random.default_rng(0).normal(size=len(missing))
    np.testing.assert_allclose(
        missing @ vector, missing_information_product(rows, posterior, vector), atol=1e-10
    )


def test_outliers_count_by_their_features():
    # an outlier that is all but certain (r = 1e-13) and 1000 sd away, among rows of which most are certain
    X = np.concatenate([overlapping(), overlapping() + [-60.0, 0.0], [[-8.5, 1000.0]]])
    fit = mixture(MODELS[0]).fit(overlapping())._uncertainty.map
    two_disks = replace(
        fit.posterior,
        counts=np.array([240.0, 241.0]),
        offsets=np.array([[0.0, 0.0], [3.0, 0.0]]),
        roots=np.array([np.eye(2)] * 2),
    )
    rows = CentredRows(X, np.zeros(2))
    missing = missing_information(rows, two_disks)
    vector = np.random.default_rng(0).normal(size=len(missing))
    product = missing_information_product(rows, two_disks, vector)
    scale = 240 * np.abs(vector).max()
    np.testing.assert_allclose(missing @ vector, product, atol=1e-9 * scale)


def test_refuses_a_saddle():
    X = np.random.default_rng(0).normal(size=(200, 2))
    # one sweep from random responsibilities: two components on one cloud, not an optimum
    estimator = mixture({"prior": "flat"}, max_iter=1, init_params="random", solver="coordinate_ascent")
    with pytest.warns(UserWarning, match="did not converge"):
        estimator.fit(X)
    with pytest.raises(ValueError, match=r"smallest eigenvalue .* components 0 and 1.*raise max_iter"):
        estimator.posterior_covariance_
    with pytest.raises(ValueError, match="no strict local optimum"):
        estimator.means_std_
    with pytest.raises(ValueError, match="no strict local optimum"):
        estimator.influence(X)
    assert estimator.means_.shape == (2, 2)


def test_warns_far_from_the_optimum():
    estimator = mixture(MODELS[0], tol=1.0, solver="coordinate_ascent").fit(overlapping())
    assert estimator.newton_decrement_ > 0.1
    with pytest.warns(UserWarning, match="posterior standard deviations away from its optimum"):
        estimator.posterior_std_


def test_names():
    names = fitted(MODELS[0]).posterior_names_
    assert list(names[:4]) == ["log_weight[0]", "log_weight[1]", "mean[0,x0]", "mean[0,x1]"]
    assert list(names[6:9]) == ["precision[0,x0,x0]", "precision[0,x0,x1]", "precision[0,x1,x1]"]
    assert len(names) == 12
