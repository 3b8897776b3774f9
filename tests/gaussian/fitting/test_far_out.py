"""Noise is found from the default call: the rows that starts leave aside, and the fits that follow."""

from types import SimpleNamespace

import dask
import dask.array as da
import numpy as np
import pytest
from catalogue import mixture, prior_of, rows_around_mean

from sklearn_lrvb import LRVBGaussianMixture
from sklearn_lrvb.gaussian.fitting import core
from sklearn_lrvb.gaussian.fitting.core import core_of
from sklearn_lrvb.gaussian.fitting.far_out import rules_of_far_out
from sklearn_lrvb.gaussian.fitting.starts import STANDARDIZED_KMEANS

SETTINGS = {"noise": True, "random_state": 0}


def clump(seed=0, n_features=4):
    """One cluster of 60 rows, and 14 outliers that lie together; the label 1 is noise."""
    rng = np.random.default_rng(seed)
    outliers = rng.normal(size=n_features)
    outliers *= 30.0 / np.linalg.norm(outliers)
    X = np.concatenate(
        [rng.normal(size=(60, n_features)), outliers + 0.7 * rng.normal(size=(14, n_features))]
    )
    return X, np.repeat([0, 1], [60, 14])


def peaks(n_peaks, n_features, share, n_samples=800, seed=0):
    """Narrow clusters on an even background, the last label, in columns of different units."""
    rng = np.random.default_rng([seed, n_peaks, n_features])
    labels = np.arange(n_samples) % n_peaks
    labels[rng.random(n_samples) < share] = n_peaks
    centers = 0.15 + 0.7 * np.argsort(rng.random((n_features, n_peaks)), axis=1).T / max(n_peaks - 1, 1)
    X = centers[labels % n_peaks] + 0.02 * rng.normal(size=(n_samples, n_features))
    X[labels == n_peaks] = rng.random((np.sum(labels == n_peaks), n_features))
    return X * 10.0 ** np.arange(n_features), labels


def from_truth(X, labels, **options):
    n_labels = labels.max() + 1
    options = {"n_components": n_labels - 1, **SETTINGS, **options}
    return LRVBGaussianMixture(init_params=np.eye(n_labels)[labels], **options).fit(X)


def assert_found(fit, best, labels):
    assert fit.lower_bound_ > best.lower_bound_ - 1e-3
    assert abs(fit.noise_weight_ - np.mean(labels == labels.max())) < 0.05


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"tails": "student"}, {"covariance_type": "diag"}], ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_outliers_that_lie_together_are_noise(seed, options):
    X, labels = clump(seed)
    assert_found(LRVBGaussianMixture(**SETTINGS, **options).fit(X), from_truth(X, labels, **options), labels)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n_peaks", "n_features", "share", "options"),
    [
        (1, 1, 0.5, {}),
        (1, 1, 0.25, {"n_components": 2}),
        (1, 2, 0.7, {}),
        (2, 2, 0.5, {"weight_concentration_prior_type": "dirichlet_distribution"}),
        (3, 3, 0.4, {"covariance_type": "diag"}),
        (2, 3, 0.4, {"covariance_type": "tied", "tails": 5.0}),
        (4, 2, 0.3, {"n_init": 4}),
        (2, 5, 0.3, {"moves": "search"}),
    ],
)
def test_an_even_background_is_noise(n_peaks, n_features, share, options):
    X, labels = peaks(n_peaks, n_features, share)
    fit = LRVBGaussianMixture(**{"n_components": n_peaks, **SETTINGS, **options}).fit(X)
    alone = {
        name: value for name, value in options.items() if name not in ("n_init", "moves", "n_components")
    }
    assert_found(fit, from_truth(X, labels, **alone), labels)


@pytest.mark.slow
def test_missing_values_and_containers_do_not_hide_a_background():
    X, labels = peaks(2, 2, 0.4, n_samples=6000)  # More than starts are made from.
    X[np.arange(0, 6000, 7), np.arange(858) % 2] = np.nan
    settings = {"n_components": 2, **SETTINGS}
    fit = LRVBGaussianMixture(**settings).fit(X)
    assert_found(fit, from_truth(X, labels), labels)
    with dask.config.set(scheduler="synchronous"):
        chunks = LRVBGaussianMixture(**settings).fit(da.from_array(X, chunks=(2500, 2)))
    batches = LRVBGaussianMixture(**settings).fit([X[:1000], X[1000:]])
    for other in (chunks, batches):
        np.testing.assert_allclose(other.posterior_mean_, fit.posterior_mean_, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"n_init": 5}, {"moves": "search"}, {"moves": "search", "n_init": 4}])
def test_more_work_is_never_worse(options):
    for seed in range(3):
        X, _ = peaks(3, 2, 0.4, n_samples=300, seed=seed)
        for n_components in (2, 4):
            default = LRVBGaussianMixture(n_components=n_components, **SETTINGS).fit(X)
            more = LRVBGaussianMixture(n_components=n_components, **SETTINGS, **options).fit(X)
            assert more.lower_bound_ > default.lower_bound_ - 1e-3


@pytest.mark.parametrize(
    "shape",
    [(6, 3), *(pytest.param(shape, marks=pytest.mark.slow) for shape in [(8, 5), (7, 5), (12, 8), (40, 2)])],
)
def test_weights_are_copies_where_rows_are_few(shape):
    for seed in (0, 3, 12):
        rng = np.random.default_rng([seed, *shape])
        X, weights = rng.normal(size=shape), rng.integers(1, 5, size=shape[0])
        one = LRVBGaussianMixture(**SETTINGS).fit(X, sample_weight=weights)
        other = LRVBGaussianMixture(**SETTINGS).fit(np.repeat(X, weights, axis=0))
        for name in ("mean_prior_", "covariance_prior_", "noise_log_density_", "lower_bound_"):
            np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(one.posterior_mean_, other.posterior_mean_, rtol=1e-6, atol=1e-9)


def test_rows_without_clusters_are_refused_by_name():
    X = np.random.default_rng(0).random((1000, 3))
    with pytest.raises(ValueError, match=r"All rows are noise.*spread evenly over their range.*noise=None"):
        LRVBGaussianMixture(**SETTINGS).fit(X)


@pytest.mark.slow
def test_many_columns_are_told_of_the_prior():
    X = np.random.default_rng(1).normal(size=(300, 200))
    X[:150, :5] += 5.0
    of_two = {**SETTINGS, "n_components": 2, "covariance_type": "diag"}
    with pytest.raises(ValueError, match=r"All rows are noise.*\(c\).*pass.*covariance_prior=X\.shape\[1\]"):
        LRVBGaussianMixture(**{**of_two, "noise": -340.0}, prior="fixed").fit(X)
    prior = X.shape[1] * X.var(axis=0)
    for given in ({"prior": "fixed", "covariance_prior": prior}, {"prior": "learned"}):
        mixture = LRVBGaussianMixture(**of_two, **given).fit(X)
        np.testing.assert_allclose([*mixture.weights_, mixture.noise_weight_], [0.5, 0.5, 0.0], atol=0.01)


@pytest.mark.parametrize("is_weighted", [False, True])
def test_no_core_is_looked_for_among_too_few_rows(is_weighted, monkeypatch):
    made, whitener = [], core._whitener
    monkeypatch.setattr(core, "_whitener", lambda matrix: made.append(0) or whitener(matrix))
    X = np.random.default_rng(0).normal(size=(60, 40))
    rows = rows_around_mean(X, sample_weight=np.tile([1.0, 2.0], 30) if is_weighted else None)
    np.testing.assert_allclose(core_of(rows).covariance, np.cov(X.T, ddof=0, aweights=rows.sample_weight))
    assert len(made) <= 5


def test_the_rules_leave_aside_what_they_name():
    X, labels = clump()
    rows = rows_around_mean(X)
    far_out, sparser_half, with_cluster = rules_of_far_out(rows, 1, core_of(rows), are_noise=True)
    assert far_out.are_aside.mean() <= 0.1
    assert abs(sparser_half.are_aside.mean() - 0.5) < 0.03
    np.testing.assert_array_equal(with_cluster.are_aside, far_out.are_aside | (labels == 1))


def test_with_noise_rows_aside_start_as_noise():
    rows = rows_around_mean(clump()[0])
    prior = prior_of(mixture({"noise": True}, 1), rows)
    before_any_step = SimpleNamespace(start_from=lambda responsibilities, prior: responsibilities)
    for rule in rules_of_far_out(rows, 1, core_of(rows), are_noise=True):
        start = rule.start(before_any_step, prior, STANDARDIZED_KMEANS, np.random.RandomState(0))
        np.testing.assert_array_equal(start, np.column_stack([~rule.are_aside, rule.are_aside]))


def test_with_tails_rows_far_out_start_like_the_nearest_of_the_others():
    rng = np.random.default_rng(0)
    X = np.concatenate([[[-80.0, -80], [100, 100]], rng.normal(size=(50, 2)), rng.normal(size=(50, 2)) + 20])
    rows = rows_around_mean(X)
    (rule,) = rules_of_far_out(rows, 2, core_of(rows), are_noise=False)
    assert rule.are_aside[:2].all()
    assert 2 <= rule.nearest[0] < 52 <= rule.nearest[1] < 102
    points, kept = core_of(rows).whitened(rows), np.flatnonzero(~rule.are_aside)
    distances = np.linalg.norm(points[:2, None] - points[kept], axis=2)
    np.testing.assert_array_equal(rule.nearest[:2], kept[distances.argmin(axis=1)])
    np.testing.assert_array_equal(rule.nearest[~rule.are_aside], np.flatnonzero(~rule.are_aside))
    fit = mixture({"tails": "student"}, 2).fit(X)
    labels = fit.predict(X)
    assert labels[0] == labels[2] != labels[52] == labels[1]
