"""Leave-one-out scores against refits without each row, and their exact special cases."""

import warnings

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
    type_of,
    types_in_turn,
    use_information,
    with_fixed_prior,
)
from incomplete_rows import held_prior, incomplete

from sklearn_lrvb import LRVBGaussianMixture
from sklearn_lrvb.mixture import refit as nearby
from sklearn_lrvb.mixture.prediction import scores_of_rows

some_models = pytest.mark.parametrize("model", few_of(MODELS), ids=model_id)
X = overlapping()


def refitted(model, estimator, rows, left_out, weights=None):
    """Scores of rows by refits without each of them, from the same responsibilities.

    With noise and few rows another start may end higher, as the refit by which scores are computed does.
    """
    start, scores = estimator.predict_proba(rows), []
    for row in left_out:
        kept, starts = np.arange(len(rows)) != row, [*["kmeans"] * bool(model.get("noise"))]
        refits = [
            mixture({**model, "init_params": s}, estimator.n_components) for s in (start[kept], *starts)
        ]
        for refit in refits:
            refit.fit(rows[kept], sample_weight=None if weights is None else weights[kept])
        best = max(refits, key=lambda refit: refit.lower_bound_)
        scores.append(best.score_samples(rows[[row]])[0])
    return np.array(scores)


@some_models
def test_scores_are_close_to_refits_and_closer_than_first_order(model, monkeypatch):
    # only the rows that move the fit the farthest are refitted
    set_sizes(monkeypatch, rows_of_refits=0, least_refits=6)
    model = with_fixed_prior(model)
    estimator = mixture(model).fit(X)
    left_out = np.concatenate([[0, 120], np.argsort(-estimator.leverage(X))[:2]])
    truth = refitted(model, estimator, X, left_out)
    scores, leverage = estimator.score_samples(X)[left_out], estimator.leverage(X)[left_out]
    error = np.abs(estimator.loo_score_samples(X)[left_out] - truth)
    first_order = np.abs(scores - leverage - truth)
    np.testing.assert_array_less(error, 0.02 + 0.15 * leverage)
    if "tails" in model and model["tails"] == 4.0:  # There the first order is as good.
        assert error.mean() < 0.02 * np.abs(scores - truth).mean()
    else:
        assert error.mean() < 0.25 * first_order.mean()
    # a row that is noise among few others changes much that is not linear
    assert first_order.mean() < (0.6 if model.get("noise") else 0.2) * np.abs(scores - truth).mean()


@models_in_turn(few_of(WITHOUT_NOISE), "n_features", [1, 3])
def test_of_one_component_they_are_exact(model, n_features):
    rows = three_blobs(30, 3)[:, :n_features]
    prior = {
        "mean_prior": np.ones(n_features),
        "covariance_prior": type_of(model).prior(2.0 * np.eye(n_features)),
    }
    model = model if model["prior"] == "flat" else {**model, **prior}
    weights = np.random.default_rng(0).uniform(0.3, 2.0, size=30)
    estimator = mixture(model, n_components=1).fit(rows, sample_weight=weights)
    left_out = np.arange(0, 30, 6)
    truth = refitted(model, estimator, rows, left_out, weights)
    found = estimator.loo_score_samples(rows, sample_weight=weights)[left_out]
    np.testing.assert_allclose(found, truth, rtol=1e-9, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_their_sum_is_that_of_refits(covariance_type):
    # what models are chosen by
    rows = three_blobs(150)
    model = with_fixed_prior({"covariance_type": covariance_type}, rows)
    estimator = mixture(model, n_components=3).fit(rows)
    left_out = np.arange(0, 150, 10)
    truth = refitted(model, estimator, rows, left_out).sum()
    optimism = estimator.score_samples(rows)[left_out].sum() - truth
    found = estimator.loo_score_samples(rows)[left_out].sum()
    assert abs(found - truth) < 0.1 * optimism


def test_a_row_is_left_out_with_all_its_weight():
    model = with_fixed_prior({"covariance_type": "full"})
    weights = np.random.default_rng(1).integers(0, 4, size=len(X)).astype(float)
    estimator = mixture(model).fit(X, sample_weight=weights)
    scores = estimator.loo_score_samples(X, sample_weight=weights)
    counted = np.flatnonzero(weights)[::20]
    truth = refitted(model, estimator, X, counted, weights)
    without = estimator.score_samples(X) - weights * estimator.leverage(X)
    assert np.abs(scores[counted] - truth).mean() < 0.2 * np.abs(without[counted] - truth).mean()
    uncounted = weights == 0
    np.testing.assert_allclose(scores[uncounted], estimator.score_samples(X)[uncounted], rtol=1e-12)


@models_in_turn(few_of(MODELS), "solver", INFORMATION)
def test_solvers_agree(model, solver, monkeypatch):
    set_sizes(monkeypatch, rows_of_refits=0, least_refits=6)
    rows = X[::4]
    expected = mixture(model).fit(rows).loo_score_samples(rows)
    use_information(solver if solver in solvers_of(model) else "primal", monkeypatch)
    # Refits start with Newton's step, which is inexact without a matrix, and end near their optimum.
    atol = 2e-3 if solver == "matrix_free" else 0.0
    np.testing.assert_allclose(
        mixture(model).fit(rows).loo_score_samples(rows), expected, rtol=1e-7, atol=atol
    )


@pytest.mark.parametrize(
    ("covariance_type", "solver", "prior"),
    types_in_turn(("primal", "dual", "dual", "primal"), ("learned", "fixed", "fixed", "learned")),
)
def test_scores_depend_on_neither_blocks_nor_threads(covariance_type, solver, prior, monkeypatch):
    use_information(solver, monkeypatch)
    rows = three_blobs(60)
    estimator = mixture({"covariance_type": covariance_type, "prior": prior}, n_components=2).fit(rows)
    whole = estimator.loo_score_samples(rows)
    set_sizes(monkeypatch, most_rows=17)
    for n_jobs in (1, 2):
        assert_same_left_out(estimator.set_params(n_jobs=n_jobs).loo_score_samples(rows), whole)


@pytest.mark.parametrize(("prior", "atol"), [("fixed", 1e-3), ("learned", 0.03)])
def test_a_row_that_is_a_component_by_itself(prior, atol):
    # Newton's step is of no use there: the component falls back to its prior, as in a refit. A prior that is
    # learned follows, and the row is at 350 nats.
    rows = np.concatenate([X, [[30.0, 30.0]]])
    model = with_fixed_prior({"covariance_type": "full", "prior": prior}, X)
    start = np.zeros((len(rows), 2))
    start[:-1, 0] = start[-1, 1] = 1.0
    estimator = mixture({**model, "init_params": start}).fit(rows)
    assert estimator.predict(rows)[-1] == 1 and np.all(estimator.predict(X) == 0)
    truth = refitted(model, estimator, rows, [len(rows) - 1])
    np.testing.assert_allclose(estimator.loo_score_samples(rows)[-1], truth[0], rtol=0, atol=atol)


def rows_with_missing_values(n_samples, n_features, distance=0.0):
    """Rows of which the first half is at a distance from the others, without three values in ten."""
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(n_samples, n_features)) @ (np.eye(n_features) + 0.5)
    rows[: n_samples // 2] += distance
    rows[rng.random(rows.shape) < 0.3] = np.nan
    return rows[~np.isnan(rows).all(axis=1)]


def assert_that_rows_move_as_in_refits(model, n_components, rows):
    """The scores of the two rows that move the fit the farthest, in memory and in batches."""
    estimator = mixture(model, n_components).fit(rows)
    prior = {**held_prior(estimator), "kind": learning_as(posterior_of(estimator).prior)}
    without = estimator.loo_score_samples(rows)
    left_out = np.argsort(without - estimator.score_samples(rows))[:2]
    truth = refitted({**model, **prior}, estimator, rows, left_out)
    in_batches = estimator.loo_score_samples([rows[:10], rows[10:]])[left_out]
    np.testing.assert_allclose(without[left_out], truth, atol=0.03)
    np.testing.assert_allclose(in_batches, truth, atol=0.03)


def test_a_row_with_missing_values_moves_far_and_is_refitted():
    assert_that_rows_move_as_in_refits({"reg_covar": 0.05}, 1, rows_with_missing_values(12, 3))


@pytest.mark.slow
@models_in_turn([model for model in MODELS if model["prior"] != "flat"][::5], "n_components", [1, 2])
def test_rows_with_missing_values_move_far_and_are_refitted(model, n_components):
    assert_that_rows_move_as_in_refits(
        model, n_components, rows_with_missing_values(30, 5, 6.0 * (n_components - 1))
    )


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_the_order_of_components_far_apart_does_not_matter(covariance_type):
    # a row of one of them changes what all share
    rows, labels = three_blobs(40), np.arange(40) % 2
    rows[labels == 1] += 50.0
    model = {"covariance_type": covariance_type, "weight_concentration_prior_type": "dirichlet_distribution"}
    one, other = (
        mixture({**model, "init_params": np.eye(2)[start]}).fit(rows).loo_score_samples(rows)
        for start in (labels, 1 - labels)
    )
    np.testing.assert_allclose(one, other, rtol=1e-9)


@pytest.mark.slow
def test_a_row_is_refitted_where_one_step_leads_to_no_posterior():
    # Without this row the covariance of a component would not be positive definite after Newton's step.
    rows = np.random.default_rng(34).normal(size=(30, 2))
    estimator = mixture({"prior": "flat"}).fit(rows)
    without = estimator.loo_score_samples(rows)
    row = np.argmax(estimator.score_samples(rows) - without)
    truth = refitted({"prior": "flat"}, estimator, rows, [row])
    assert len(rows) * estimator.weights_.min() > 10.0  # No component hangs on the row alone.
    np.testing.assert_allclose(without[row], truth[0], atol=0.05)


def near_refit(estimator, training, row):
    """Score of a row at the optimum for all others that is next to that for all: (1,)."""
    fit = nearby.refitted(training.reweighted(np.arange(training.n_samples) != row), posterior_of(estimator))
    return scores_of_rows(training.chosen([row]), fit.posterior)


@models_in_turn(few_of(MODELS), "kind", ["whole", "missing", "weights"])
def test_rows_that_move_the_fit_have_the_scores_of_refits(model, kind):
    rows = incomplete(60) if kind == "missing" else overlapping(60)
    weights = np.random.default_rng(0).uniform(0.2, 2.0, size=60) if kind == "weights" else None
    estimator = mixture(model).fit(rows, sample_weight=weights)
    training = rows_of(estimator, rows, weights)
    found = estimator.loo_score_samples(rows, sample_weight=weights)
    for row in np.argsort(found - estimator.score_samples(rows))[:4]:
        np.testing.assert_allclose(found[[row]], near_refit(estimator, training, row), atol=0.01)


@pytest.mark.slow
def test_rows_whose_steps_do_not_settle_are_refitted(monkeypatch):
    # A covariance prior of nearly nothing lets covariances collapse as rows are left out.
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(12, 6)) @ (np.eye(6) + 0.5)
    rows[rng.random(rows.shape) < 0.3] = np.nan
    estimator = mixture({"covariance_prior": 1e-3 * np.eye(6)}, n_components=1).fit(rows)
    training, scores = rows_of(estimator, rows), estimator.loo_score_samples(rows)
    for row in (0, 8, 9):
        np.testing.assert_allclose(scores[[row]], near_refit(estimator, training, row), rtol=1e-6)
    monkeypatch.setattr(nearby, "_MOST_STEPS", 1)
    with pytest.warns(UserWarning, match="of 12 rows move the fit further than one step leads"):
        assert np.all(np.isfinite(estimator.loo_score_samples(rows)))


def test_rows_that_cannot_be_left_out_are_said_to_be_so():
    # three rows in the plane are as few as determine a covariance
    rng = np.random.default_rng(0)
    rows = np.concatenate([rng.normal(size=(50, 2)), rng.normal(size=(3, 2)) + 100.0])
    start = np.zeros((53, 2))
    start[:50, 0] = start[50:, 1] = 1.0
    estimator = mixture({"prior": "flat", "reg_covar": 0.0, "init_params": start}).fit(rows)
    with pytest.warns(UserWarning, match="3 of 53 rows cannot be left out .the first is row 50."):
        scores = estimator.loo_score_samples(rows)
    np.testing.assert_array_equal(np.flatnonzero(np.isnan(scores)), [50, 51, 52])


def test_rows_other_than_those_of_the_fit_are_refused():
    estimator = mixture(MODELS[0]).fit(X)
    with pytest.raises(ValueError, match="X is not what the mixture was fitted to"):
        estimator.loo_score_samples(X[:-1])
    with pytest.raises(ValueError, match="X is not what the mixture was fitted to"):
        estimator.loo_score_samples(X, sample_weight=np.full(len(X), 2.0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        estimator.loo_score_samples(X.tolist())


@pytest.mark.filterwarnings("ignore:A covariance matrix of")
@pytest.mark.parametrize("covariance_type", ["full", "tied"])
@pytest.mark.parametrize(("prior", "atol"), [("fixed", 1e-4), ("learned", 0.05)])
def test_scores_with_more_features_than_rows_are_those_of_refits(covariance_type, prior, atol):
    """The noise of the row that is left out goes from very many directions, which makes none singular."""
    X = np.random.default_rng(0).normal(size=(8, 120)) * 5.0
    X[:4, :10] += 20.0
    model = {"n_components": 2, "covariance_type": covariance_type, "prior": prior}
    fit = LRVBGaussianMixture(**model, random_state=0).fit(X)
    names = ("mean_prior", "covariance_prior", "degrees_of_freedom_prior", "weight_concentration_prior")
    held = {name: getattr(fit, f"{name}_") for name in names}
    starts = fit.predict_proba(X)
    refits = [
        LRVBGaussianMixture(**model, **held, init_params=np.delete(starts, row, axis=0))
        .fit(np.delete(X, row, axis=0))
        .score_samples(X[[row]])[0]
        for row in (0, 5)
    ]
    by_group = fit.loo_score_samples(X, groups=np.arange(8))
    np.testing.assert_allclose(by_group[[0, 5]], refits, rtol=1e-8)
    # Of rows the refits end near the optimum, in posterior standard deviations of 120 columns.
    np.testing.assert_allclose(fit.loo_score_samples(X)[[0, 5]], refits, rtol=0, atol=atol)
