"""Rows so far away that their squares overflow have valid probabilities, and scores that are numbers."""

import copy

import numpy as np
import pytest
from catalogue import (
    COVARIANCE_TYPES,
    MODELS,
    WITHOUT_NOISE,
    few_of,
    fitted,
    half_of,
    mixture,
    model_id,
    three_blobs,
)

catalogue = pytest.mark.parametrize("model", few_of(MODELS), ids=model_id)
X = three_blobs(90, n_features=2)
FAR = np.array([[1e155, 1e155], [-1e160, 3.0], [0.0, 1e300], [1.7e308, -1.7e308]])


def hand_set(estimator):
    """A copy whose means were moved by hand, so that no posterior of a fit predicts."""
    moved = copy.deepcopy(estimator)
    moved.means_ = moved.means_ + 0.1
    return moved


@pytest.mark.all_cases
@catalogue
def test_far_rows_have_probabilities_and_scores(model):
    for estimator in (fitted(model), hand_set(fitted(model))):
        rows = np.concatenate([FAR[:2], X[:5], FAR[2:]])
        shares, scores = estimator.predict_proba(rows), estimator.score_samples(rows)
        np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-12)
        assert np.all(shares >= 0)
        labels, far = shares.argmax(axis=1), [0, 1, -2, -1]
        if "tails" in model:  # Their densities fall so slowly that logarithms are small numbers.
            assert np.all(np.isfinite(scores))
        elif estimator.noise:
            labels[labels == 2] = -1
            np.testing.assert_array_equal(labels[far], -1)
            np.testing.assert_allclose(scores[far], scores[0], rtol=1e-15)
            assert estimator.noise_log_density_ - 10 < scores[0] < estimator.noise_log_density_
        else:
            np.testing.assert_array_equal(scores[far], -np.inf)
            assert estimator.score(rows) == -np.inf
        np.testing.assert_array_equal(estimator.predict(rows), labels)
        np.testing.assert_array_equal(scores[2:7], estimator.score_samples(X[:5]))
        np.testing.assert_array_equal(shares[2:7], estimator.predict_proba(X[:5]))


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_far_rows_do_not_matter_to_the_blocks_and_threads(n_jobs):
    estimator = mixture({"covariance_type": "full"}).fit(X).set_params(n_jobs=n_jobs)
    rows = np.tile(X, (700, 1))
    rows[::1000] = FAR[0]
    shares = estimator.predict_proba(rows)
    np.testing.assert_allclose(shares[1:90], estimator.predict_proba(X)[1:90], rtol=1e-10)
    np.testing.assert_array_equal(shares[::1000], np.broadcast_to(estimator.predict_proba(FAR[:1]), (63, 2)))


@pytest.mark.parametrize("covariance_type", ["full", "diag", "spherical"])
def test_the_far_formula_agrees_where_squares_are_still_numbers(covariance_type):
    # Far out along a direction the component that is widest there takes all, at any distance.
    estimator = mixture({"covariance_type": covariance_type}, 3).fit(X)
    turns = np.linspace(0, 2 * np.pi, 20, endpoint=False)
    directions = np.stack([np.cos(turns), np.sin(turns)], axis=1)
    near, far = estimator.predict_proba(1e100 * directions), estimator.predict_proba(1e200 * directions)
    np.testing.assert_allclose(far, near, atol=1e-12)
    # Just inside and just outside of the range of squares.
    at = 10.0 ** np.arange(150, 156)[:, None] * directions[0]
    scores = estimator.score_samples(at)
    inside = np.isfinite(scores)
    assert 0 < inside.sum() < len(at)
    np.testing.assert_allclose(scores[inside] / scores[0], 100.0 ** np.arange(inside.sum()), rtol=1e-9)


@pytest.mark.parametrize("model", half_of(WITHOUT_NOISE), ids=model_id)
def test_scores_near_the_end_of_the_range_may_add_up_to_more(model):
    estimator = fitted(model)
    rows = np.tile([[2e153, 3e153]], (3000, 1))
    scores = estimator.score_samples(rows)
    assert np.all(np.isfinite(scores))
    with np.errstate(over="ignore"):
        assert np.isinf(scores.sum())
    np.testing.assert_allclose(scores, estimator.score_samples(rows[:1])[0], rtol=1e-12)


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_a_far_row_of_weight_zero_does_not_score(covariance_type):
    estimator = fitted({**MODELS[0], "covariance_type": covariance_type})
    rows, weights = np.concatenate([FAR[:1], X]), np.arange(91.0)
    expected = np.average(estimator.score_samples(X), weights=weights[1:])
    assert estimator.score(rows, sample_weight=weights) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("noise", [None, True])
@pytest.mark.parametrize("covariance_type", ["full", "diag", "spherical", "tied"])
def test_many_rows_are_predicted_as_single_ones(covariance_type, noise):
    """Many rows are in coordinates that all components share, unless they are too far away for these."""
    estimator = mixture({"covariance_type": covariance_type, "noise": noise}, 3).fit(
        three_blobs(400, n_features=2)
    )
    turns = np.linspace(0, 2 * np.pi, 400, endpoint=False)
    directions = np.stack([np.cos(turns), np.sin(turns)], axis=1)
    rows = np.concatenate([size * directions for size in 10.0 ** np.arange(-1, 9)])
    rows = np.repeat(rows, 5, axis=0)
    some = np.arange(0, len(rows), 977)
    for each in (estimator, hand_set(estimator)):
        shares, scores = each.predict_proba(rows), each.score_samples(rows)
        one_by_one = [each.predict_proba(rows[[i]])[0] for i in some]
        np.testing.assert_allclose(shares[some], one_by_one, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(scores[some], [each.score_samples(rows[[i]])[0] for i in some], rtol=1e-9)
        np.testing.assert_array_equal(each.predict(rows[some]), each.predict(rows)[some])


@catalogue
def test_uncertainty_of_far_rows_is_refused_by_name(model):
    estimator = fitted(model)
    rows = np.concatenate([X[:3], [[1e80, 0.0]], FAR])
    for ask in (
        lambda: estimator.posterior(method="lrvb").predict_proba(rows),
        lambda: estimator.posterior(method="lrvb").score_samples(rows),
        lambda: estimator.leverage(rows),
        lambda: estimator.influence(rows),
        lambda: estimator.influence(rows, target="precisions", perturb="weight"),
    ):
        which = r"Row 4 of X is 1\.0e\+155" if "tails" in model else r"Row 3 of X is 1\.0e\+80"
        with pytest.raises(ValueError, match=rf"{which} away .*\(a\).*\(b\)"):
            ask()
    # What is near enough has finite answers.
    rows = np.array([[1e60, 0.0], [0.0, -1e60]])
    for answer in (
        *estimator.posterior(method="lrvb").predict_proba(rows),
        *estimator.posterior(method="lrvb").score_samples(rows),
    ):
        assert np.all(np.isfinite(answer))
    assert np.all(np.isfinite(estimator.influence(rows)))
