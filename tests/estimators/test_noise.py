"""The noise component, as users meet it: labels, counts, units, bad input."""

import copy
import re

import dask.array as da
import numpy as np
import pytest
from catalogue import WITH_NOISE, fitted, mixture, model_id, models_in_turn, overlapping, three_blobs, type_of
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

every_model = pytest.mark.parametrize("model", WITH_NOISE, ids=model_id)
FULL = WITH_NOISE[0]


def with_outliers(n_samples=200, n_outliers=15, n_features=3, seed=0):
    """Three clusters, and rows at random far around them, which come last."""
    outliers = np.random.default_rng(seed).uniform(-25.0, 25.0, size=(n_outliers, n_features))
    return np.concatenate([three_blobs(n_samples, n_features), outliers])


X = with_outliers()
IS_OUTLIER = np.arange(len(X)) >= 200


@pytest.mark.parametrize("noise", [False, np.False_])
def test_false_is_none(noise):
    without, other = (mixture({}, 3, noise=value).fit(X) for value in (None, noise))
    np.testing.assert_array_equal(other.posterior_mean_, without.posterior_mean_)
    assert not hasattr(other, "noise_weight_")
    with pytest.raises(AttributeError, match="belongs to a fit with noise: pass noise=True"):
        other.noise_weight_std_


@pytest.mark.slow
@every_model
def test_true_is_the_density_that_it_finds(model):
    by_default, again = mixture(model, 3).fit(X), mixture({**model, "noise": np.True_}, 3).fit(X)
    by_number = mixture({**model, "noise": by_default.noise_log_density_}, 3).fit(X)
    for other in (again, by_number):
        np.testing.assert_array_equal(other.posterior_mean_, by_default.posterior_mean_)
        assert other.noise_log_density_ == by_default.noise_log_density_


@every_model
def test_outliers_are_noise_and_counted_by_its_weight(model):
    estimator = mixture(model, 3).fit(X)
    labels, responsibilities = estimator.predict(X), estimator.predict_proba(X)
    assert np.mean(labels[IS_OUTLIER] == -1) > 0.8
    assert np.mean(labels[~IS_OUTLIER] == -1) < 0.02
    assert responsibilities.shape == (len(X), 4)
    np.testing.assert_allclose(responsibilities.sum(axis=1), 1.0, rtol=1e-12)
    assert estimator.noise_weight_ + estimator.weights_.sum() == pytest.approx(1.0, rel=1e-12)
    # a beta variable, whose parameters are those of the prior and the expected rows
    first, second = estimator.noise_concentration_
    alpha, expected = estimator.weight_concentration_prior_, responsibilities.sum(axis=0)
    assert first == pytest.approx(alpha + expected[-1], rel=1e-6)
    assert second == pytest.approx(3 * alpha + expected[:-1].sum(), rel=1e-6)
    assert estimator.noise_weight_ == pytest.approx(first / (first + second), rel=1e-12)
    assert 0.01 < estimator.noise_weight_std_ < 0.05
    assert len(estimator.weights_std_) == estimator.n_occupied_ == 3


def test_outliers_move_the_means_far_less_than_without_noise():
    clean = mixture({}, 3).fit(X[~IS_OUTLIER])
    # the clusters in the same order, and outliers in any of them, or as noise
    anywhere, as_noise = np.full((IS_OUTLIER.sum(), 3), 1 / 3), np.tile(np.eye(4)[3], (IS_OUTLIER.sum(), 1))
    of_clean = clean.predict_proba(X[~IS_OUTLIER])
    starts = {
        None: np.vstack([of_clean, anywhere]),
        True: np.vstack([np.pad(of_clean, ((0, 0), (0, 1))), as_noise]),
    }
    fits = [mixture({}, 3, noise=noise, init_params=start) for noise, start in starts.items()]
    moves = [np.abs((fit.fit(X).means_ - clean.means_) / clean.means_std_) for fit in fits]
    assert moves[1].max() < 1.0 < 3.0 < moves[0].max()


@models_in_turn(WITH_NOISE, "missing", [False, True])
def test_units_and_place_of_the_columns_do_not_matter(model, missing):
    scale, shift = np.array([1e-3, 1.0, 1e4]), np.array([5.0, -3.0, 1e5])
    if type_of(model).n_axes == 0:
        scale = np.full(3, 1e4)
    rows = np.where(np.random.default_rng(1).random(X.shape) < 0.1, np.nan, X) if missing else X
    model = {**model, "reg_covar": 0.0, "init_params": mixture(model, 3).fit(X).predict_proba(X)}
    one, other = mixture(model, 3).fit(rows), mixture(model, 3).fit(rows * scale + shift)
    np.testing.assert_allclose(other.means_, one.means_ * scale + shift, rtol=1e-7, atol=1e-7 * scale.min())
    change = -np.log(scale).sum()
    assert other.noise_log_density_ == pytest.approx(one.noise_log_density_ + change, abs=1e-5)
    np.testing.assert_allclose(other.predict_proba(rows * scale + shift), one.predict_proba(rows), atol=1e-6)
    assert other.noise_weight_std_ == pytest.approx(one.noise_weight_std_, rel=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("model", WITH_NOISE[:4], ids=model_id)
def test_no_coordinates_are_preferred(model):
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0] @ np.diag([1.0, 3.0, 0.2])
    model = {**model, "reg_covar": 0.0, "init_params": mixture(model, 3).fit(X).predict_proba(X)}
    one, other = mixture(model, 3).fit(X), mixture(model, 3).fit(X @ turn)
    change = -np.linalg.slogdet(turn)[1]
    assert other.noise_log_density_ == pytest.approx(one.noise_log_density_ + change, abs=1e-5)
    np.testing.assert_allclose(other.predict_proba(X @ turn), one.predict_proba(X), atol=1e-6)


@pytest.mark.slow
def test_given_responsibilities_may_leave_noise_out():
    start = np.eye(3)[np.arange(len(X)) % 3]
    with_column = np.hstack([start, np.zeros((len(X), 1))])
    asked = [start, with_column, lambda X, n_components, random_state: start]
    fits = [mixture(FULL, 3, init_params=given, moves=None).fit(X) for given in asked]
    fits += [
        mixture(FULL, 3, init_params=da.from_array(given, chunks=(80, -1))).fit(
            da.from_array(X, chunks=(80, 3))
        )
        for given in (start, with_column)
    ]
    for fit in fits[1:]:
        np.testing.assert_allclose(fit.posterior_mean_, fits[0].posterior_mean_, rtol=1e-8)
    with pytest.raises(ValueError, match=r"last one for noise\), shape \(215, 3\) or \(215, 4\)"):
        mixture(FULL, 3, init_params=np.full((215, 5), 0.2)).fit(X)


def test_rows_of_noise_are_filled_as_if_they_belonged_to_the_components():
    estimator = mixture(FULL, 1).fit(overlapping())
    mean, covariance = estimator.means_[0], estimator.covariances_[0]
    rows = np.array([[2.0, np.nan], [1e4, np.nan]])
    assert estimator.predict_proba(rows)[1, -1] == pytest.approx(1.0)
    filled, std = estimator.impute(rows, return_std=True)
    expected = mean[1] + covariance[0, 1] / covariance[0, 0] * (rows[:, 0] - mean[0])
    np.testing.assert_allclose(filled[:, 1], expected, rtol=1e-12)
    assert np.all(std[:, 1] > 0)


@every_model
def test_samples_are_rows_of_the_components(model):
    estimator = mixture(model, 3).fit(X)
    rows, labels = estimator.sample(4000)
    assert rows.shape == (4000, 3)
    shares = np.bincount(labels, minlength=3) / 4000
    np.testing.assert_allclose(shares, estimator.weights_ / (1.0 - estimator.noise_weight_), atol=0.03)
    with pytest.raises(ValueError, match="weights_ and noise_weight_ must sum to one"):
        changed = copy.deepcopy(estimator)
        changed.noise_weight_ = 0.9
        changed.sample()


def test_samples_of_one_component_do_not_depend_on_how_its_weight_is_rounded():
    for seed in range(12):
        estimator = mixture(FULL, 1).fit(np.random.default_rng(seed).normal(size=(60, 3)))
        assert np.array_equal(estimator.sample(5)[1], np.zeros(5))


@pytest.mark.slow
def test_its_weight_decides_by_name():
    estimator = mixture(FULL, 3).fit(X)
    found = estimator.deciding_rows(X, conclusion="weight[noise]", threshold=estimator.noise_weight_ - 0.01)
    assert found.conclusion == "weight[noise]"
    np.testing.assert_array_equal(estimator.predict(X[found.rows]), -1)
    by_function = estimator.deciding_rows(
        X, conclusion=lambda mixture: mixture.noise_weight_, threshold=estimator.noise_weight_ - 0.01
    )
    np.testing.assert_array_equal(by_function.rows, found.rows)


@pytest.mark.slow
def test_cross_validation_tells_noise_from_none():
    search = GridSearchCV(mixture({}, 3, tol=1e-3), {"noise": [None, True]}, cv=3).fit(
        np.random.default_rng(0).permutation(X)
    )
    assert search.best_params_ == {"noise": True}


def test_a_warm_start_continues_with_the_same_noise():
    estimator = mixture(FULL, 3, warm_start=True).fit(X)
    bound = estimator.lower_bound_
    assert estimator.fit(X).n_iter_ == 1
    assert estimator.lower_bound_ == pytest.approx(bound, rel=1e-12)
    with pytest.raises(ValueError, match=r"the last fit, which had noise=True and .*; now noise=None"):
        estimator.set_params(noise=None).fit(X)


def test_what_it_looks_like():
    estimator = fitted(FULL)
    assert "noise=True" in repr(estimator)
    assert "noise" in estimator._repr_html_()
    summary = estimator.posterior(method="lrvb").summary("weights")
    assert list(summary.index) == ["weight[0]", "weight[1]", "weight[noise]"]
    assert summary.loc["weight[noise]", "mean"] == estimator.noise_weight_
    assert summary.loc["weight[noise]", "sd"] == pytest.approx(estimator.noise_weight_std_, rel=1e-12)


# Bad input.


@pytest.mark.parametrize("noise", [np.nan, np.inf, -np.inf, 1e308, -1.1e7, "auto", [1.0]])
def test_noise_that_is_no_log_density_is_refused(noise):
    with pytest.raises(ValueError, match="The 'noise' parameter of LRVBGaussianMixture must be"):
        mixture({}, noise=noise).fit(X)


def test_noise_needs_a_proper_prior():
    with pytest.raises(ValueError, match=r"noise=-9\.0 needs a proper prior.*\(a\).*\(b\)"):
        mixture({"prior": "flat"}, noise=-9.0).fit(X)


@pytest.mark.slow
def test_a_density_that_would_take_rows_of_the_clusters_warns_with_the_number():
    log_density = mixture(FULL, 3).fit(X).noise_log_density_
    with pytest.warns(UserWarning, match=re.escape("is 1.5 above the log density of noise")):
        mixture(FULL, 3, noise=log_density + 1.5).fit(X)
    mixture(FULL, 3, noise=log_density - 1.5).fit(X)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:noise=.* is .* above the log density of noise")
@pytest.mark.parametrize("noise", [50, 1e7])
def test_noise_that_takes_all_rows_is_refused_and_leaves_the_mixture_as_it_was(noise):
    estimator = mixture(FULL, 3).fit(X)
    before = estimator.means_
    with pytest.raises(
        ValueError, match=r"All rows are noise: its log density of (50|1e\+07) .*\(a\).*\(b\)"
    ):
        estimator.set_params(noise=noise).fit(X)
    assert estimator.means_ is before


@pytest.mark.parametrize("rows", [X[:4], np.ones((50, 3))], ids=["few", "all the same"])
def test_rows_of_which_none_can_be_far_out_are_refused(rows):
    with pytest.raises(
        ValueError, match=r"(4 rows of 3 features, too few|50 rows of X are the same).*noise=None"
    ):
        mixture(FULL, 1).fit(rows)


def test_too_many_components_for_what_is_left_are_refused():
    with pytest.raises(
        ValueError, match=r"rows are left for 215 components to start from.*\(a\).*\(b\).*\(c\)"
    ):
        mixture(FULL, 215).fit(X)


def test_arrays_set_by_hand_are_checked():
    estimator = mixture(FULL, 3).fit(X)
    twin = clone(estimator)
    for name in ("weight_concentration_", "mean_precision_", "means_", "degrees_of_freedom_"):
        setattr(twin, name, getattr(estimator, name))
    twin.precisions_cholesky_, twin.n_features_in_ = estimator.precisions_cholesky_, 3
    twin.covariance_prior_, twin.noise_log_density_ = (
        estimator.covariance_prior_,
        estimator.noise_log_density_,
    )
    twin.noise_concentration_ = np.array([1.0, -2.0])
    with pytest.raises(ValueError, match="noise_concentration_: it must be above 0"):
        twin.predict(X)
    twin.noise_concentration_ = estimator.noise_concentration_
    np.testing.assert_array_equal(twin.predict(X), estimator.predict(X))
