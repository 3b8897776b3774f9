"""Scores without a row's whole group: against refits without it, and Newton's step for the others."""

import numpy as np
import pytest
from catalogue import (
    COVARIANCE_TYPES,
    INFORMATION,
    MODELS,
    WITHOUT_NOISE,
    assert_same_left_out,
    few_of,
    learning_as,
    mixture,
    model_id,
    models_in_turn,
    overlapping,
    posterior_of,
    rows_of,
    set_sizes,
    solvers_of,
    three_blobs,
    uncertainty_of,
    use_information,
)
from incomplete_rows import incomplete
from sklearn.datasets import load_iris

from sklearn_lrvb.answers import deletion
from sklearn_lrvb.answers.leave_group_out import scores_without_group
from sklearn_lrvb.gaussian.information.observed_information import GaussianInformation
from sklearn_lrvb.mixture import refit
from sklearn_lrvb.mixture.e_step import e_step
from sklearn_lrvb.mixture.prediction import scores_of_rows

HELD = {
    "flat": (),
    "learned": ("weight_concentration", "mean"),
    "fixed": ("weight_concentration", "mean_precision", "mean", "degrees_of_freedom", "covariance"),
}


def refitted(estimator, rows, groups, names=None, weights=None):
    """Scores of rows by fits to all other groups under the same prior; NaN beyond the named groups."""
    held = {f"{name}_prior": getattr(estimator, f"{name}_prior_") for name in HELD[estimator.prior]}
    kind = learning_as(posterior_of(estimator).prior)
    start, scores = estimator.predict_proba(rows), np.full(len(rows), np.nan)
    for name in np.unique(groups) if names is None else names:
        others = groups != name
        without = kind(**{**estimator.get_params(), **held, "init_params": start[others]})
        without.fit(rows[others], sample_weight=None if weights is None else weights[others])
        scores[~others] = without.score_samples(rows[~others])
    return scores


def error(found, truth):
    """Root mean square of the differences from refits, in nats a row, where there are any."""
    return np.sqrt(np.nanmean((found - truth) ** 2))


def without_refits(monkeypatch):
    """Have one step do for all rows and groups, without a warning."""
    monkeypatch.setattr(deletion, "WORTH_MORE_STEPS", np.inf)
    monkeypatch.setattr(deletion, "ROUGH", np.inf)


def patients(n_groups, n_each, seed, by_row=False, distance=3.0):
    """Rows of patients whose level varies, of two clusters to which patients belong, or every row does."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(n_groups), n_each)
    labels = rng.random(len(groups)) < 0.4 if by_row else (np.arange(n_groups) % 5 < 2)[groups]
    levels = 0.6 * rng.normal(size=(n_groups, 2))[groups]
    return rng.normal(size=(len(groups), 2)) + levels + distance * labels[:, None] * [1.0, 0.0], groups


SETTINGS = {
    "by patient": patients(16, 20, seed=0),
    "by row": patients(16, 20, seed=1, by_row=True, distance=2.2),
    "few large groups": patients(8, 50, seed=2),
    "irises": (load_iris().data, np.repeat(np.arange(15), 10)),
}


@pytest.mark.slow
@pytest.mark.parametrize("setting", SETTINGS)
def test_scores_are_those_of_refits(setting, monkeypatch):
    rows, groups = SETTINGS[setting]
    estimator = mixture({}, n_components=3 if setting == "irises" else 2).fit(rows)
    truth = refitted(estimator, rows, groups)
    assert error(estimator.loo_score_samples(rows, groups=groups), truth) < 0.01
    without_refits(monkeypatch)
    one_step, by_row = (estimator.loo_score_samples(rows, groups=given) for given in (groups, None))
    assert error(one_step, truth) < error(by_row, truth)


def newton_scores(estimator, rows, left_out):
    """Scores of some rows after Newton's step for all others, by their own observed information."""
    posterior = posterior_of(estimator)
    others = rows.selected(~left_out, None if rows.sample_weight is None else rows.sample_weight[~left_out])
    result = e_step(others, posterior)
    information = GaussianInformation(posterior).observed(others, result, solver="primal")
    step = information.newton_step(posterior.residual(result.moments)).step
    return scores_of_rows(rows.selected(left_out), posterior.after_step(step))


@models_in_turn(few_of(MODELS), "kind", ["few rows", "many rows", "missing", "weights"])
def test_the_step_is_newtons_for_the_other_rows(model, kind):
    X = incomplete() if kind == "missing" else three_blobs(120)
    weights = np.random.default_rng(0).uniform(0.2, 2.0, size=120) if kind == "weights" else None
    estimator = mixture(model).fit(X, sample_weight=weights)
    rows, left_out = rows_of(estimator, X, weights), np.zeros(120, dtype=bool)
    # A group of more rows than there are unknowns is left out by a matrix of these.
    left_out[3 : 50 if kind == "many rows" else 12] = True
    found, _ = scores_without_group(
        rows.chosen(np.flatnonzero(left_out)), posterior_of(estimator), information_of_all(estimator)
    )
    np.testing.assert_allclose(found, newton_scores(estimator, rows, left_out), rtol=1e-6)


def information_of_all(estimator):
    """The observed information of a fit, for all its unknowns."""
    source = uncertainty_of(estimator).source
    return source.information(source.size)


@models_in_turn(few_of(WITHOUT_NOISE), "n_features", [1, 3])
def test_of_one_component_they_are_exact(model, n_features):
    rows, groups = three_blobs(40, 3)[:, :n_features], np.arange(40) % 7
    weights = np.random.default_rng(0).uniform(0.3, 2.0, size=40)
    estimator = mixture(model, n_components=1).fit(rows, sample_weight=weights)
    truth = refitted(estimator, rows, groups, [0, 3], weights)
    left_out = np.flatnonzero(np.isfinite(truth))
    found = estimator.loo_score_samples(rows, sample_weight=weights, groups=groups)
    np.testing.assert_allclose(found[left_out], truth[left_out], rtol=1e-9, atol=1e-9)


@models_in_turn(few_of(MODELS), "solver", INFORMATION)
def test_groups_of_one_row_are_rows(model, solver, monkeypatch):
    use_information(solver if solver in solvers_of(model) else "primal", monkeypatch)
    without_refits(monkeypatch)
    X, weights = overlapping(36), np.random.default_rng(0).integers(0, 3, size=36).astype(float)
    estimator = mixture(model).fit(X, sample_weight=weights)
    names = np.random.default_rng(1).permutation(36)
    expected = estimator.loo_score_samples(X, sample_weight=weights)
    found = estimator.loo_score_samples(X, sample_weight=weights, groups=names)
    if model["prior"] == "learned":  # It is that of the moved statistics for groups, to first order for rows.
        change = np.abs(expected - estimator.score_samples(X))
        np.testing.assert_array_less(np.abs(found - expected), 0.02 * change + 1e-8)
    else:
        np.testing.assert_allclose(found, expected, rtol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_they_depend_on_neither_batches_nor_threads_nor_names(covariance_type, monkeypatch):
    X, rng = np.concatenate([incomplete(60), np.full((3, 3), np.nan)]), np.random.default_rng(0)
    weights, groups = rng.integers(0, 3, size=63).astype(float), rng.integers(0, 7, size=63)
    groups[groups == 6] = 62  # One group has rows of no weight, or no value, alone.
    weights[groups == 62] = 0.0
    estimator = mixture({"covariance_type": covariance_type}).fit(X, sample_weight=weights)
    if covariance_type != "full":  # Refits take long.
        without_refits(monkeypatch)
    whole = estimator.loo_score_samples(X, sample_weight=weights, groups=groups)
    unmoved = groups == 62
    np.testing.assert_allclose(whole[unmoved], estimator.score_samples(X)[unmoved], rtol=1e-12)
    renamed = np.array([f"patient {17 * name % 127}" for name in groups])
    assert_same_left_out(estimator.loo_score_samples(X, sample_weight=weights, groups=renamed), whole)
    order = rng.permutation(63)
    permuted = estimator.loo_score_samples(X[order], sample_weight=weights[order], groups=groups[order])
    assert_same_left_out(permuted, whole[order])
    set_sizes(monkeypatch, most_rows=17, batch_bytes=8 * 3 * 25)  # Three turns bring all groups to memory.
    batches = [(X[some], weights[some]) for some in (slice(0, 30), slice(30, 33), slice(33, 63))]
    assert_same_left_out(estimator.loo_score_samples(batches, groups=groups), whole)
    assert_same_left_out(
        estimator.set_params(n_jobs=2).loo_score_samples(X, sample_weight=weights, groups=groups), whole
    )


@pytest.mark.slow
@pytest.mark.parametrize("model", few_of(MODELS)[::3], ids=model_id)
def test_weights_count_like_copies(model):
    X, rng = overlapping(80), np.random.default_rng(3)
    weights, groups = rng.integers(1, 4, size=80), rng.integers(0, 6, size=80)
    estimator = mixture(model).fit(X, sample_weight=weights)
    held = {f"{name}_prior": getattr(estimator, f"{name}_prior_") for name in HELD[model["prior"]]}
    kind = learning_as(posterior_of(estimator).prior)
    start = estimator.predict_proba(X)
    copies = np.repeat(np.arange(80), weights)
    other = kind(**{**estimator.get_params(), **held, "init_params": start[copies]}).fit(X[copies])
    found = other.loo_score_samples(X[copies], groups=groups[copies])
    expected = estimator.loo_score_samples(X, sample_weight=weights, groups=groups)[copies]
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_rows_that_do_not_count_are_scored_without_their_group(monkeypatch):
    without_refits(monkeypatch)
    X, groups = np.concatenate([three_blobs(30), np.full((1, 3), np.nan)]), np.arange(31) % 5
    weights = (np.arange(31) > 2).astype(float)
    estimator = mixture({"prior": "fixed"}, n_components=1).fit(X, sample_weight=weights)
    truth = refitted(estimator, X, groups, weights=weights)
    np.testing.assert_allclose(
        estimator.loo_score_samples(X, sample_weight=weights, groups=groups), truth, rtol=1e-9
    )


@pytest.mark.parametrize("in_batches", [False, True])
def test_a_group_that_is_a_component_is_refitted(in_batches):
    X = np.concatenate([overlapping(60), np.random.default_rng(0).normal(size=(5, 2)) + 30.0])
    groups = np.concatenate([np.arange(60) % 10, np.full(5, 10)])
    start = np.eye(2)[(groups == 10).astype(int)]
    estimator = mixture({"init_params": start}).fit(X)
    truth = refitted(estimator, X, groups, [10])[60:]
    given = [X[:62], X[62:]] if in_batches else X
    np.testing.assert_allclose(estimator.loo_score_samples(given, groups=groups)[60:], truth, atol=1e-3)


@pytest.mark.filterwarnings("ignore:A covariance matrix of")
@pytest.mark.parametrize("covariance_type", ["full", "tied"])
def test_scores_with_more_features_than_rows_are_those_of_refits(covariance_type):
    X, groups = np.random.default_rng(0).normal(size=(12, 60)) * 5.0, np.arange(12) % 4
    X[:6, :10] += 20.0
    estimator = mixture({"covariance_type": covariance_type}).fit(X)
    truth = refitted(estimator, X, groups)
    np.testing.assert_allclose(estimator.loo_score_samples(X, groups=groups), truth, rtol=1e-6)


def test_groups_that_cannot_be_left_out_are_named():
    X = np.concatenate([overlapping(60), np.random.default_rng(0).normal(size=(5, 2)) + 30.0])
    groups = np.array([f"ward {row % 6}" for row in range(60)] + ["distant"] * 5)
    start = np.eye(2)[(groups == "distant").astype(int)]
    estimator = mixture({"prior": "flat", "init_params": start}).fit(X)
    with pytest.warns(UserWarning, match="1 of 7 groups cannot be left out .the first is group distant.:"):
        scores = estimator.loo_score_samples(X, groups=groups)
    np.testing.assert_array_equal(np.isnan(scores), groups == "distant")


@pytest.mark.slow
def test_a_group_is_refitted_where_one_step_leads_to_no_posterior(monkeypatch):
    X, groups = np.random.default_rng(34).normal(size=(30, 2)), np.arange(30) // 3
    estimator = mixture({"prior": "flat"}).fit(X)
    truth = refitted(estimator, X, groups, [0])[:3]
    np.testing.assert_allclose(estimator.loo_score_samples(X, groups=groups)[:3], truth, atol=1e-3)
    monkeypatch.setattr(deletion, "_LEAST_REFITS", 0)
    set_sizes(monkeypatch, rows_of_refits=0)
    with pytest.warns(UserWarning, match="move the fit further"):  # Without the other rows' response.
        assert error(estimator.loo_score_samples(X, groups=groups)[:3], truth) > 0.1


def test_groups_that_move_the_fit_furthest_are_refitted_first(monkeypatch):
    X, groups = SETTINGS["few large groups"]
    estimator = mixture({}).fit(X)
    monkeypatch.setattr(deletion, "_LEAST_REFITS", 0)
    set_sizes(monkeypatch, rows_of_refits=0)
    with pytest.warns(UserWarning, match="1 of 8 groups move the fit further .*the first is group 3.,"):
        estimator.loo_score_samples(X, groups=groups)
    monkeypatch.setattr(deletion, "_LEAST_REFITS", 1)
    estimator.loo_score_samples(X, groups=groups)


@pytest.mark.slow
def test_groups_whose_refit_does_not_arrive_are_named(monkeypatch):
    X = np.random.default_rng(47).normal(size=(30, 2))  # Without row 8 a covariance collapses.
    estimator = mixture({"prior": "flat"}).fit(X)
    with pytest.warns(UserWarning, match="1 of 30 groups move the fit further .*the first is group 8.,"):
        assert np.all(np.isfinite(estimator.loo_score_samples(X, groups=np.arange(30))))
    monkeypatch.setattr(refit, "_MOST_STEPS", 1)
    X, groups = SETTINGS["few large groups"]
    with pytest.warns(UserWarning, match="of 8 groups move the fit further"):
        mixture({}).fit(X).loo_score_samples(X, groups=groups)


def test_bad_groups_are_refused():
    X, groups = overlapping(60), np.arange(60) % 6
    estimator = mixture({}).fit(X)
    for wrong, message in (
        (np.zeros(60), "All rows of X are of one group"),
        (groups[:-1], "groups has 59 labels, but X has 60 rows"),
        (np.where(groups == 1, np.nan, groups), "groups has 10 missing labels, the first at row 1"),
    ):
        with pytest.raises(ValueError, match=message):
            estimator.loo_score_samples(X, groups=wrong)
    with pytest.raises(ValueError, match="X is not what the mixture was fitted to"):
        estimator.loo_score_samples(X[6:], groups=groups[6:])
    array = pytest.importorskip("dask.array")
    with pytest.raises(ValueError, match="groups needs rows in memory or in batches"):
        estimator.loo_score_samples(array.from_array(X, chunks=20), groups=groups)
