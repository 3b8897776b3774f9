"""The two ways to see rows agree, the cheap one knows where it may not be used, and neither copies X."""

import numpy as np
import pytest
from catalogue import (
    COVARIANCE_TYPES,
    MODELS,
    complete_rows,
    fitted,
    mixture,
    model_id,
    overlapping,
    peak_memory,
    posterior_of,
    rows_of,
    set_sizes,
    three_blobs,
    type_of,
)

from sklearn_lrvb import LRVBGaussianMixture
from sklearn_lrvb.gaussian.e_step.coordinates import CommonCoordinates, OwnCoordinates, coordinates_of
from sklearn_lrvb.mixture.e_step import centred_on_average, e_step, expect, normalized
from sklearn_lrvb.rows import ArrayRows

every_type = pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)


def state(model, X, n_components=2, **parameters):
    """The posterior of a fit, and X as it sees it."""
    estimator = mixture(model, n_components, **parameters).fit(X)
    return posterior_of(estimator), rows_of(estimator, X)


def seen_by(coordinates, block):
    """Log densities, and the moments of the responsibilities that follow, in own coordinates."""
    seen = expect(coordinates, block)
    moments = coordinates.moments(seen.represented, seen.weights(seen.responsibilities))
    return seen.log_densities, coordinates.in_own_coordinates(moments)


def has_common_coordinates(model):
    """Whether what these coordinates leave out where a precision is shared is common to all labels."""
    return not (type_of(model).is_shared and ("noise" in model or "tails" in model))


@pytest.mark.parametrize("model", [*filter(has_common_coordinates, MODELS)], ids=model_id)
def test_both_ways_agree(model):
    posterior, rows = state(model, three_blobs(), 3)
    block = rows.block(slice(0, 300))
    (own, moments), (common, same) = (
        seen_by(way(posterior), block) for way in (OwnCoordinates, CommonCoordinates)
    )
    np.testing.assert_allclose(common, own, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(same.counts, moments.counts, rtol=1e-11)
    np.testing.assert_allclose(same.first, moments.first, atol=1e-9)
    np.testing.assert_allclose(same.second, moments.second, rtol=1e-10, atol=1e-9)
    if "tails" in model:
        np.testing.assert_allclose(same.scale_sums, moments.scale_sums, rtol=1e-11)
        np.testing.assert_allclose(same.log_scale_sums, moments.log_scale_sums, rtol=1e-10, atol=1e-9)


@every_type
def test_both_ways_agree_about_changes(covariance_type):
    # of the log densities, up to what all components share, and of the moments that follow
    posterior, rows = state({"covariance_type": covariance_type}, three_blobs(), 3)
    block, structure = rows.block(slice(0, 300)), posterior.structure
    betas = np.random.default_rng(0).normal(size=(2, structure.layout.n_coefficients))
    polynomials = [structure.features.polynomials(beta, posterior.second_moment_origin) for beta in betas]
    found = {}
    for way in (OwnCoordinates, CommonCoordinates):
        coordinates = way(posterior)
        seen = coordinates.represented(block)
        r = expect(coordinates, block).responsibilities
        of_both = [coordinates.changes(seen, coordinates.polynomials(*parts)) for parts in polynomials]
        changes = [centred_on_average(change, r) for change in of_both]
        moments = coordinates.in_own_coordinates(coordinates.moments(seen, r * changes[0]))
        found[way] = [*changes, moments.counts, moments.first, moments.second]
    for own, common in zip(*found.values(), strict=True):
        np.testing.assert_allclose(common, own, atol=1e-10 * np.abs(own).max())
    common = CommonCoordinates(posterior)
    at_once = structure.features.polynomials(betas, posterior.second_moment_origin)
    one_by_one = [common.polynomials(*parts) for parts in polynomials]
    np.testing.assert_allclose(common.polynomials(*at_once), one_by_one, rtol=1e-12, atol=1e-12)


@every_type
def test_a_component_without_rows_is_seen_alike(covariance_type):
    model = {"covariance_type": covariance_type}
    posterior, rows = state(model, overlapping(), 3, init_params=np.eye(3)[np.arange(240) // 160], max_iter=0)
    assert posterior.counts[2] == 0
    block = rows.block(slice(0, 240))
    (own, moments), (common, same) = (
        seen_by(way(posterior), block) for way in (OwnCoordinates, CommonCoordinates)
    )
    np.testing.assert_allclose(common, own, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(same.second, moments.second, rtol=1e-10, atol=1e-9)


@every_type
def test_common_coordinates_are_left_where_they_would_lose_digits(covariance_type):
    rng = np.random.default_rng(0)
    near, far = rng.normal(size=(300, 2)), rng.normal(size=(300, 2)) + 3e4
    start = np.eye(2)[np.arange(600) // 300]
    model = {"covariance_type": covariance_type, "prior": "flat"}
    posterior, _ = state(model, np.concatenate([near, far]), init_params=start)
    assert isinstance(coordinates_of(posterior, complete_rows(10**6)), OwnCoordinates)
    posterior, _ = state(model, np.concatenate([near, near + 4]))
    assert isinstance(coordinates_of(posterior, complete_rows(10**6)), CommonCoordinates)
    assert isinstance(coordinates_of(posterior, complete_rows(600)), OwnCoordinates)


@every_type
def test_far_components_keep_their_digits(covariance_type):
    # 1e6 standard deviations apart: each is seen as if it were alone
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(300, 2)), rng.normal(size=(300, 2)) + 2.0**20])
    prior = {"prior": "flat", "covariance_type": covariance_type}
    both = mixture(prior, init_params=np.eye(2)[np.arange(600) // 300]).fit(X)
    for k, part in enumerate((X[:300], X[300:])):
        np.testing.assert_allclose(both.means_[k], part.mean(axis=0), rtol=1e-14, atol=1e-9)
    if covariance_type == "full":
        residuals = X[300:] - X[300:].mean(axis=0)
        np.testing.assert_allclose(both.covariances_[1], residuals.T @ residuals / 300, rtol=0.03)


def test_tied_components_on_nearly_dependent_columns_gain():
    # the root of an average covariance, were it squared first, would have no digits left
    rng = np.random.default_rng(0)
    first = rng.normal(size=300) + np.repeat([0, 3], 150)
    X = np.column_stack([first, first + 1e-6 * rng.normal(size=300)])
    model = {"covariance_type": "tied", "prior": "flat", "reg_covar": 0.0}
    model["init_params"] = np.repeat([[0.9, 0.1], [0.1, 0.9]], 150, axis=0)
    estimator = mixture(model, tol=1e-3, max_iter=300).fit(X)
    assert np.diff(estimator.lower_bounds_).min() > -1e-7
    turned = X @ [[1.0, -1e6], [0.0, 1e6]]
    apart = mixture(model, tol=1e-3, max_iter=300).fit(turned)
    np.testing.assert_allclose(estimator.weights_, apart.weights_, rtol=1e-6)


@every_type
def test_tight_clusters_start_with_all_their_digits(covariance_type):
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(3, 2))
    X = (centers[:, None] + 3e-9 * rng.normal(size=(3, 100, 2))).reshape(-1, 2)
    model = {"covariance_type": covariance_type, "prior": "flat", "reg_covar": 0.0}
    estimator = mixture(model, 3, tol=1e-3).fit(X)
    assert estimator.converged_
    np.testing.assert_allclose(np.sort(estimator.weights_), 1 / 3, rtol=1e-9)
    scales = np.sqrt(
        np.linalg.eigvalsh(
            posterior_of(estimator).structure.dense(
                posterior_of(estimator).structure.by_group(estimator.covariances_)
            )
        )
    )
    np.testing.assert_allclose(scales, 3e-9, rtol=0.3)


def test_many_features_and_few_components_take_their_own_coordinates():
    posterior, _ = state(
        {}, np.random.default_rng(0).normal(size=(200, 12)) + 3 * np.eye(2, 12)[[0, 1] * 100]
    )
    assert isinstance(coordinates_of(posterior, complete_rows(10**6)), OwnCoordinates)


# Blocks.


@every_type
@pytest.mark.parametrize("n_features", [3, 12])
def test_blocks_and_threads_change_nothing(covariance_type, n_features, monkeypatch):
    X = three_blobs(1500, n_features)
    posterior, rows = state({"covariance_type": covariance_type}, X, 3)
    whole = e_step(rows, posterior)
    set_sizes(monkeypatch, least_rows=7, block_bytes=2**13)
    small = e_step(rows, posterior)
    assert small.lower_bound == pytest.approx(whole.lower_bound, rel=1e-13)
    assert small.n_alternatives == whole.n_alternatives
    assert small.n_ambiguous_pairs == whole.n_ambiguous_pairs
    for name in ("counts", "first", "second"):
        one, other = getattr(small.moments, name), getattr(whole.moments, name)
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-9)
    threaded = e_step(ArrayRows(X, rows.origin, n_jobs=2), posterior)
    assert threaded.lower_bound == pytest.approx(small.lower_bound, rel=1e-14)
    np.testing.assert_allclose(threaded.moments.second, small.moments.second, rtol=1e-12, atol=1e-10)


@pytest.mark.slow
@every_type
@pytest.mark.parametrize("n_features", [3, 12])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_an_iteration_makes_nothing_of_the_size_of_the_data(covariance_type, n_features, dtype):
    posterior, rows = state({"covariance_type": covariance_type}, three_blobs(600, n_features), 3)
    X = np.tile(three_blobs(600, n_features), (200, 1)).astype(dtype)
    large = ArrayRows(X, rows.origin)
    peak = peak_memory(lambda: e_step(large, posterior))
    assert peak < 8e6
    again = ArrayRows(np.tile(X, (2, 1)), rows.origin)
    assert peak_memory(lambda: e_step(again, posterior)) < 1.1 * peak


@pytest.mark.slow
@pytest.mark.parametrize("n_features", [2, 10])
def test_the_memory_of_a_fit_does_not_grow_with_the_rows(n_features, monkeypatch):
    set_sizes(monkeypatch, sample_rows=2**13)  # of a start, which is held in memory
    estimator = LRVBGaussianMixture(n_components=3, random_state=0)
    few, many = (np.tile(three_blobs(400, n_features), (n, 1)) for n in (100, 400))
    assert peak_memory(lambda: estimator.fit(many)) < 1.1 * peak_memory(lambda: estimator.fit(few))


def test_labels_of_one_pass_agree_with_densities():
    X = overlapping()
    estimator = fitted(MODELS[0])
    proba = estimator.predict_proba(X)
    posterior = posterior_of(estimator)
    block = rows_of(estimator, X).block(slice(0, len(X)))
    densities, _ = seen_by(CommonCoordinates(posterior), block)
    np.testing.assert_allclose(normalized(densities)[0].T, proba, atol=1e-12)
