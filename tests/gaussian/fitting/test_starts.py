"""Starts: what each promises."""

import numpy as np
import pytest
from catalogue import overlapping, rows_around_mean, set_sizes, three_blobs
from sklearn.metrics import pairwise_distances

from sklearn_lrvb import LRVBGaussianMixture
from sklearn_lrvb.gaussian.fitting import starts
from sklearn_lrvb.gaussian.fitting.completion import Completion
from sklearn_lrvb.gaussian.fitting.starts import (
    STANDARDIZED_KMEANS,
    StartKind,
    kinds_of_starts,
    starting_responsibilities,
)
from sklearn_lrvb.rows import ArrayRows

X = three_blobs()


def start(kind, is_flat=False, seed=0, weights=None, X=X):
    rows = rows_around_mean(X, None, weights)
    kind = StartKind(kind) if isinstance(kind, str) else kind
    made = starting_responsibilities(rows, 3, kind, np.random.RandomState(seed), is_flat)
    return rows.each(lambda block: made(block).T, (3,)) if callable(made) else made


@pytest.mark.parametrize("init_params", ["kmeans", "random"])
def test_every_row_is_assigned(init_params):
    responsibilities = start(init_params)
    assert responsibilities.shape == (300, 3)
    np.testing.assert_allclose(responsibilities.sum(axis=1), 1, rtol=1e-14)
    assert responsibilities.sum(axis=0).min() > 0


@pytest.mark.parametrize("init_params", ["k-means++", "random_from_data"])
def test_seeds_alone_or_with_their_neighbourhoods(init_params):
    alone, filled = start(init_params), start(init_params, is_flat=True)
    np.testing.assert_array_equal(alone.sum(axis=0), 1)
    seeds = alone.argmax(axis=0)
    assert len(set(seeds)) == 3
    nearest = pairwise_distances(X, X[seeds]).argmin(axis=1)
    np.testing.assert_array_equal(filled, np.eye(3)[nearest])


@pytest.mark.parametrize("init_params", ["kmeans", "k-means++", "random", "random_from_data"])
def test_random_state_decides(init_params):
    np.testing.assert_array_equal(start(init_params), start(init_params))
    if init_params != "kmeans":
        assert not np.array_equal(start(init_params), start(init_params, seed=1))


def test_a_warm_start_needs_no_start():
    rows, labels = overlapping(), np.arange(240) // 160
    estimator = LRVBGaussianMixture(n_components=2, init_params=np.eye(2)[labels], warm_start=True)
    estimator.fit(rows)
    more = np.concatenate([rows, rows[:50]])
    assert estimator.fit(more).converged_
    with pytest.raises(ValueError, match=r"init_params must have one row for every row of X.*\(290, 2\)"):
        estimator.set_params(warm_start=False).fit(more)


# The kinds of further starts.

KINDS = kinds_of_starts("kmeans", 3, 5)


@pytest.mark.parametrize("kind", KINDS[1:], ids=str)
@pytest.mark.parametrize("is_flat", [False, True])
def test_further_starts_do_not_depend_on_units(kind, is_flat):
    expected = start(kind, is_flat)
    in_units, widened = X * [1e6, 1e-3, 1.0] + [1e8, 2.0, 0.0], np.column_stack([X, np.full(300, 0.1)])
    np.testing.assert_array_equal(start(kind, is_flat, X=in_units), expected)
    np.testing.assert_array_equal(start(kind, is_flat, X=widened), expected)


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("is_flat", [False, True])
def test_every_kind_starts_from_a_sample_of_many_rows(kind, is_flat, monkeypatch):
    weights = np.random.default_rng(0).uniform(0.5, 2.0, size=300)
    whole = start(kind, is_flat, weights=weights)
    set_sizes(monkeypatch, sample_rows=200)
    sampled = start(kind, is_flat, weights=weights)
    for made in (whole, sampled):
        is_alone = kind.init_params != "kmeans" and kind.seeds_alone and not is_flat
        counts = weights @ made if is_alone else made.sum(axis=1)
        np.testing.assert_allclose(counts, 1.0, rtol=1e-14)
        assert (weights @ made).min() > 0


# Many rows: k-means of a sample.


def test_kmeans_of_many_rows_assigns_all_to_the_nearest_center(monkeypatch):
    set_sizes(monkeypatch, sample_rows=100)
    responsibilities = start("kmeans")
    labels = responsibilities.argmax(axis=1)
    np.testing.assert_array_equal(responsibilities.sum(axis=1), 1)
    centers = np.array([X[labels == k].mean(axis=0) for k in range(3)])
    # centers of a third of the rows: near those of all, which few rows tell apart
    agree = pairwise_distances(X, centers).argmin(axis=1) == labels
    assert agree.mean() > 0.9
    np.testing.assert_array_equal(start("kmeans"), responsibilities)
    assert not np.array_equal(start("kmeans", seed=1), responsibilities)


def test_a_sample_by_weight_is_one_of_the_repeated_rows():
    weights = np.random.default_rng(0).integers(1, 5, size=50).astype(float)
    rows = np.repeat(np.arange(50), weights.astype(int))
    weighted = ArrayRows(np.zeros((50, 1)), np.zeros(1), sample_weight=weights)
    positions = np.sort(np.random.default_rng(0).uniform(0.0, weights.sum(), 1000))
    drawn, _ = weighted.at(positions)
    repeated, _ = weighted.selected(rows).at(positions)
    np.testing.assert_array_equal(drawn, rows[repeated])
    expected = 1000 * weights / weights.sum()
    np.testing.assert_allclose(np.bincount(drawn, minlength=50), expected, atol=5 * np.sqrt(expected.max()))


def test_a_fit_from_a_sample_is_the_fit(monkeypatch):
    rows = overlapping(1000)
    shared = {
        "n_components": 2,
        "random_state": 0,
        "weight_concentration_prior_type": "dirichlet_distribution",
    }
    whole = LRVBGaussianMixture(**shared).fit(rows)
    set_sizes(monkeypatch, sample_rows=300)
    sampled = LRVBGaussianMixture(**shared).fit(rows)
    np.testing.assert_allclose(np.sort(sampled.weights_), np.sort(whole.weights_), rtol=1e-7)


def test_rows_far_from_the_origin_go_to_the_nearest_center():
    centers = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    near = np.repeat(centers, 50, axis=0) + 0.1 * np.random.default_rng(0).normal(size=(150, 2))
    rows = rows_around_mean(near + 1e9)
    from_origin = centers + 1e9 - rows.origin
    labels = rows.each(lambda block: starts.labels_of_block(from_origin, 1.0, block), dtype=np.intp)
    np.testing.assert_array_equal(labels, np.repeat(np.arange(3), 50))


def test_a_row_of_nearly_all_the_weight_does_not_starve_the_sample(monkeypatch):
    set_sizes(monkeypatch, sample_rows=100)
    weights = np.ones(300)
    weights[7] = 1e9
    for kind in ("kmeans", STANDARDIZED_KMEANS):
        assert start(kind, weights=weights, X=overlapping(300)).sum(axis=0).min() > 0


def test_missing_values_are_filled_only_where_a_start_or_the_prior_asks_for_it(monkeypatch):
    def unwanted(completion):
        raise AssertionError("no value is asked for")

    monkeypatch.setattr(Completion, "posterior", property(unwanted))
    X = overlapping()
    X[::7, 0] = np.nan
    LRVBGaussianMixture(n_components=2, prior="flat", init_params="random", random_state=0).fit(X)
    priors = {"mean_prior": [0.0, 0.0], "covariance_prior": np.eye(2)}
    LRVBGaussianMixture(n_components=2, init_params=np.eye(2)[np.arange(len(X)) % 2], **priors).fit(X)
    with pytest.raises(AssertionError, match="no value is asked for"):
        LRVBGaussianMixture(n_components=2, init_params="random", random_state=0).fit(X)
