"""What rows and the prior do to latent classes: against refits, the twin model and closed forms."""

from dataclasses import replace

import numpy as np
import pytest
from catalogue import assert_equal_to_rounding, set_sizes
from latent_class import mean_field_twin
from latent_class.catalogue import (
    PROBLEMS,
    RATES,
    codes_of,
    fitted,
    kinds_of,
    refitted,
    refitted_with,
    weights_of,
)
from scipy.special import polygamma, softmax

from sklearn_lrvb.answers.prior_sensitivity import prior_changes
from sklearn_lrvb.answers.targets import named_entries

SEVERAL = ["categories", "durations", "mixed", "weights", "learned"]
TARGETS = ("log_weights", "weights", "tables")


def own_weights(problem):
    """The weights of a problem's rows, also of those without any value."""
    return np.ones(len(problem.X)) if problem.sample_weight is None else problem.sample_weight


def estimates(fit, target):
    """Posterior means of a target, in the shape of its influence."""
    return fit.posterior(method="lrvb").summary(target)["mean"].to_numpy().reshape(len(fit.weights_), -1)


def slope(problem, fit, function, rows, h=1e-3):
    """d function(fit) / d weight of some rows together, by refits with the prior held fixed."""
    weights = own_weights(problem)
    towards = np.where(np.isin(np.arange(len(weights)), rows), h, 0.0)
    if weights[rows].min() >= h:
        after, before = (function(refitted_with(fit, problem, weights + sign * towards)) for sign in (1, -1))
        return (after - before) / (2 * h)
    # At a weight of zero there is one side only.
    once, twice = (function(refitted_with(fit, problem, weights + times * towards)) for times in (1, 2))
    return (4 * once - twice - 3 * function(refitted_with(fit, problem, weights))) / (2 * h)


# Influence.


@pytest.mark.slow
@pytest.mark.parametrize("name", SEVERAL)
def test_influence_is_the_slope_of_refits(name):
    problem, fit = PROBLEMS[name], fitted(name)
    influence = {target: fit.influence(problem.X, target=target) for target in TARGETS}
    rows = [0, 7, 40] if name != "weights" else [*np.flatnonzero(problem.sample_weight == 0)[:1], 0, 2]
    for row in rows:
        for target in TARGETS:
            moves = slope(problem, fit, lambda refit, t=target: estimates(refit, t), [row])
            found = influence[target][row].reshape(moves.shape)
            sd = fit.posterior(method="lrvb").summary(target)["sd"].to_numpy().reshape(moves.shape)
            np.testing.assert_allclose(found / sd, moves / sd, rtol=0, atol=1e-5)


def test_shapes_and_order_are_those_of_the_tables():
    problem, fit = PROBLEMS["mixed"], fitted("mixed")
    assert fit.influence(problem.X, target="weights").shape == (100, 2)
    of_tables = fit.influence(problem.X)
    assert of_tables.shape == (100, 2, 10)
    # Row 4 has a height and nothing else.
    only = problem.X.iloc[[4]]
    alone = fit.influence(only)
    assert_equal_to_rounding(alone, of_tables[[4]])
    np.testing.assert_allclose(fit.influence(problem.X, target="weights").sum(axis=1), 0.0, atol=1e-14)
    for start, stop in ((0, 3), (5, 7)):  # Probabilities sum to one.
        np.testing.assert_allclose(of_tables[:, :, start:stop].sum(axis=2), 0.0, atol=1e-14)


def test_one_class_moves_by_its_closed_form():
    problem, fit = PROBLEMS["one class"], fitted("one class")
    influence = fit.influence(problem.X)[:, 0]
    y = problem.X["visits"].to_numpy()
    shape, rate = 1.0 + np.nansum(y), 1.0 / np.nanmean(y) + np.count_nonzero(~np.isnan(y))
    np.testing.assert_allclose(influence[:, 7], np.nan_to_num((y - shape / rate) / rate), atol=1e-12)
    number = 1.0 + problem.X["sport"].value_counts().sort_index().to_numpy()
    codes = codes_of(problem.X)[:, 0]
    seen = ~np.isnan(codes)
    moves = ((codes[:, None] == np.arange(3)) - number / number.sum()) / number.sum()
    np.testing.assert_allclose(influence[:, :3], np.where(seen[:, None], moves, 0.0), atol=1e-12)
    y = problem.X["height"].to_numpy()
    moves = (y - np.nanmean(y)) / (0.1 + np.count_nonzero(~np.isnan(y)))
    np.testing.assert_allclose(influence[:, 3], np.nan_to_num(moves), atol=1e-10)


def test_influence_goes_where_it_is_asked_to():
    problem, fit = PROBLEMS["mixed"], fitted("mixed")
    expected = fit.influence(problem.X)
    for dtype, tolerance in ((np.float64, 1e-11), (np.float32, 1e-5)):
        out = np.full(expected.shape, np.nan, dtype)
        assert fit.influence(problem.X, out=out) is out
        np.testing.assert_allclose(out, expected, rtol=tolerance, atol=tolerance * np.abs(expected).max())
    batches = [problem.X.iloc[:30], problem.X.iloc[30:]]
    out = np.empty_like(expected)
    fit.influence(batches, out=out)
    np.testing.assert_allclose(out, expected, rtol=1e-9, atol=1e-11)
    with pytest.raises(ValueError, match=r"out must have shape \(100, 2, 10\)"):
        fit.influence(problem.X, out=np.empty((100, 2)))


def test_there_is_no_location_of_a_row():
    fit, X = fitted("mixed"), PROBLEMS["mixed"].X
    with pytest.raises(ValueError, match="use perturb='weight'"):
        fit.influence(X, perturb="location")
    with pytest.raises(ValueError, match="target"):
        fit.influence(X, target="means")


@pytest.mark.slow
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_blocks_and_threads_do_not_matter(n_jobs, monkeypatch):
    problem = PROBLEMS["mixed"]
    questions = {
        "influence": lambda fit: fit.influence(problem.X),
        "leverage": lambda fit: fit.leverage(problem.X),
        "predict_proba": lambda fit: fit.posterior(method="lrvb").predict_proba(problem.X)[1],
        "loo_score_samples": lambda fit: fit.loo_score_samples(problem.X),
    }
    expected = {name: question(fitted("mixed")) for name, question in questions.items()}
    set_sizes(monkeypatch, most_rows=16, least_rows=8)
    fit = refitted(problem, n_jobs=n_jobs)
    for name, question in questions.items():
        np.testing.assert_allclose(question(fit), expected[name], rtol=1e-6, atol=1e-8, err_msg=name)


# Groups.


@pytest.mark.parametrize("name", ["mixed", "weights"])
def test_groups_move_the_fit_as_their_rows_together(name):
    problem, fit = PROBLEMS[name], fitted(name)
    weights, groups = own_weights(problem), np.arange(100) % 7
    given = {"groups": groups, "sample_weight": problem.sample_weight}
    # A row without any value does not count in the fit.
    weighted = weights_of(problem)[:, None, None] * fit.influence(problem.X)
    expected = [weighted[groups == group].sum(axis=0) for group in range(7)]
    np.testing.assert_allclose(fit.influence(problem.X, **given), expected, rtol=1e-9, atol=1e-12)
    # Leverage: if the weights of all rows of a group grow in proportion.
    some, h = groups == 3, 1e-4
    ends = []
    for factor in (1 + h, 1 - h):
        refit = refitted_with(fit, problem, np.where(some, factor, 1.0) * weights)
        ends.append(weights[some] @ refit.score_samples(problem.X[some]))
    np.testing.assert_allclose(fit.leverage(problem.X, **given)[3], (ends[0] - ends[1]) / (2 * h), rtol=1e-5)


def test_rows_as_groups_are_rows():
    problem, fit = PROBLEMS["mixed"], fitted("mixed")
    alone = np.arange(100)
    kept = np.flatnonzero(weights_of(problem))
    for method in ("influence", "leverage"):
        found = getattr(fit, method)(problem.X, groups=alone)
        np.testing.assert_allclose(found[kept], getattr(fit, method)(problem.X)[kept], rtol=1e-9, atol=1e-12)


# Leverage, and the spread of what is said of rows.


@pytest.mark.slow
@pytest.mark.parametrize("name", SEVERAL)
def test_leverage_is_the_slope_of_a_rows_own_score(name):
    problem, fit = PROBLEMS[name], fitted(name)
    leverage = fit.leverage(problem.X)
    for row in (0, 2, 41):
        own = problem.X.iloc[[row]]
        expected = slope(problem, fit, lambda refit, own=own: refit.score_samples(own)[0], [row])
        np.testing.assert_allclose(leverage[row], expected, rtol=1e-5)
    scores, std = fit.posterior(method="lrvb").score_samples(problem.X)
    np.testing.assert_array_equal(scores, fit.score_samples(problem.X))
    np.testing.assert_allclose(std**2, leverage, rtol=1e-12)


def test_leverages_of_one_class_add_up_to_its_free_probabilities():
    problem = replace(PROBLEMS["categories"], n_components=1)
    fit = refitted(problem, init_params="kmeans")
    expected = np.zeros(90)
    for column in problem.X:
        codes = np.unique(problem.X[column], return_inverse=True)[1]
        number = 1.0 + np.bincount(codes)
        expected += polygamma(1, number)[codes] - polygamma(1, number.sum())
    leverage = fit.leverage(problem.X)
    np.testing.assert_allclose(leverage, expected, rtol=1e-12)
    many = refitted(replace(problem, sample_weight=np.full(90, 1e6)), init_params="kmeans")
    np.testing.assert_allclose(1e6 * many.leverage(problem.X).sum(), 1 + 2 + 3 + 1, rtol=1e-5)


def densities(problem, rows):
    """The statistics of the twin and the expected log densities of rows by class as a function of them."""
    statistics, features = ["pi.log"], []
    for (column, kind), codes in zip(kinds_of(problem.X).items(), codes_of(problem.X).T, strict=True):
        y = codes[rows]
        seen, y = (~np.isnan(y)).astype(float), np.nan_to_num(y)
        if kind == "numeric":
            statistics += [f"{column}.{key}" for key in ("log", "precision", "product", "square")]
            features += [0.5 * seen, -0.5 * y**2, y, -0.5 * seen]
        elif kind in RATES:
            of_log, of_rate, _ = RATES[kind](y)
            statistics += [f"{column}.log", f"{column}.value"]
            features += [seen * of_log, -seen * of_rate]
        else:
            statistics.append(f"{column}.log")
            features.append((codes[rows, None] == np.arange(kind)).astype(float))

    def log_densities(of_weights, *means):
        of_columns = (
            feature @ mean.T if feature.ndim == 2 else np.outer(feature, mean)
            for feature, mean in zip(features, means, strict=True)
        )
        return of_weights + sum(of_columns)

    return statistics, log_densities


def linear_map(function, arguments):
    """The matrix of a linear function of several arrays, (..., number of all their entries)."""
    columns = []
    for place, argument in enumerate(arguments):
        for entry in np.ndindex(argument.shape):
            unit = [np.zeros(other.shape) for other in arguments]
            unit[place][entry] = 1.0
            columns.append(function(*unit))
    return np.stack(columns, axis=-1)


@pytest.mark.parametrize("name", [name for name in SEVERAL if PROBLEMS[name].prior == "fixed"])
def test_spreads_of_predictions_are_those_of_the_twin_by_the_delta_method(name):
    problem, fit, rows = PROBLEMS[name], fitted(name), np.array([0, 4, 17, 60])
    statistics, log_densities = densities(problem, rows)
    twin = mean_field_twin.twin_of(name)
    means = [twin.mean(statistic) for statistic in statistics]
    matrix, covariance = linear_map(log_densities, means), twin.covariance(*statistics)
    r = softmax(log_densities(*means), axis=1)
    X = problem.X.iloc[rows]
    found, std = fit.posterior(method="lrvb").predict_proba(X)
    np.testing.assert_array_equal(found, fit.predict_proba(X))
    np.testing.assert_allclose(found, r, rtol=1e-7)
    gradients = r[:, :, None] * (matrix - np.einsum("nk,nks->ns", r, matrix)[:, None])
    variances = np.einsum("nks,st,nkt->nk", gradients, covariance, gradients)
    np.testing.assert_allclose(std, np.sqrt(variances), rtol=1e-6)
    gradients = np.einsum("nk,nks->ns", r, matrix)
    variances = np.einsum("ns,st,nt->n", gradients, covariance, gradients)
    np.testing.assert_allclose(
        fit.posterior(method="lrvb").score_samples(X)[1], np.sqrt(variances), rtol=1e-6
    )


# Rows left out.


def scores_by_refits(problem, fit, groups):
    """Scores of rows under fits without each group of them, int arrays: list of arrays."""
    found = []
    for group in groups:
        weights = own_weights(problem).copy()
        weights[group] = 0.0
        found.append(refitted_with(fit, problem, weights).score_samples(problem.X.iloc[group]))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", SEVERAL)
def test_scores_without_a_row_are_those_of_refits(name):
    problem, fit = PROBLEMS[name], fitted(name)
    weights = own_weights(problem)
    leverage = np.where(weights_of(problem) > 0, weights * fit.leverage(problem.X), 0.0)
    rows = np.unique([0, 7, 50, *np.argsort(-leverage)[:6]])
    found = fit.loo_score_samples(problem.X, sample_weight=problem.sample_weight)
    truth = np.concatenate(scores_by_refits(problem, fit, rows[:, None]))
    np.testing.assert_allclose(found[rows], truth, rtol=0, atol=0.01)
    # To first order, scores are off by more.
    rough = np.abs(fit.score_samples(problem.X) - leverage)[rows]
    assert np.abs(found[rows] - truth).max() < 0.2 * np.abs(rough - truth).max()


def test_scores_of_one_class_without_a_row_are_exact():
    problem, fit = PROBLEMS["one class"], fitted("one class")
    rows = np.array([0, 1, 3, 60])
    truth = np.concatenate(scores_by_refits(problem, fit, rows[:, None]))
    np.testing.assert_allclose(fit.loo_score_samples(problem.X)[rows], truth, rtol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mixed", "weights"])
def test_scores_without_a_group_are_those_of_refits(name):
    problem, fit, groups = PROBLEMS[name], fitted(name), np.arange(100) // 5
    found = fit.loo_score_samples(problem.X, sample_weight=problem.sample_weight, groups=groups)
    some = [np.flatnonzero(groups == group) for group in (0, 8, 13)]
    for group, truth in zip(some, scores_by_refits(problem, fit, some), strict=True):
        np.testing.assert_allclose(found[group], truth, rtol=0, atol=0.01)


def test_other_rows_are_not_those_of_the_fit():
    problem, fit = PROBLEMS["mixed"], fitted("mixed")
    changed = problem.X.copy()
    changed.loc[8, "height"] += 1.0
    with pytest.raises(ValueError, match="differ from those of the fit"):
        fit.loo_score_samples(changed)


# The prior.


@pytest.mark.parametrize("name", [pytest.param("mixed", marks=pytest.mark.slow), "weights"])
def test_prior_sensitivity_is_the_slope_of_refits(name):
    problem = PROBLEMS[name]
    numbers = {
        "weight_concentration_prior": 0.4,
        "category_concentration_prior": 1.2,
        "mean_precision_prior": 0.3,
        "degrees_of_freedom_prior": 2.5,
        "variance_prior": 0.8,
        "rate_shape_prior": 1.5,
    }
    fit = refitted(problem, **numbers)
    start, h = fit.predict_proba(problem.X), 1e-4
    found = {target: fit.prior_sensitivity(target) for target in TARGETS}
    assert all(moves.keys() == numbers.keys() for moves in found.values())
    deviations = {t: fit.posterior(method="lrvb").summary(t)["sd"].to_numpy() for t in TARGETS}
    for number, value in numbers.items():
        ends = [
            refitted(problem, init_params=start, tol=1e-14, **{**numbers, number: value + change})
            for change in (h, -h)
        ]
        for target in TARGETS:
            after, before = (estimates(end, target) for end in ends)
            sd = deviations[target].reshape(after.shape)
            moves = found[target][number].reshape(after.shape)
            np.testing.assert_allclose(moves / sd, (after - before) / (2 * h) / sd, rtol=0, atol=1e-6)
            per_std = fit.prior_sensitivity(target, per_std=True)[number].reshape(after.shape)
            np.testing.assert_allclose(per_std, moves / sd, rtol=1e-9, atol=1e-12)


def test_numbers_that_no_column_has_are_left_out():
    assert fitted("categories").prior_sensitivity().keys() == {
        "weight_concentration_prior",
        "category_concentration_prior",
    }


def test_the_prior_moves_a_named_entry_as_it_moves_the_entry_among_all():
    uncertainty = fitted("mixed")._uncertainty
    targets = uncertainty.targets
    whole = prior_changes(uncertainty, ["tables"], uncertainty.flat_std("tables"))
    for entry, label in enumerate(targets["tables"].labels([])):
        name = named_entries(label, targets, [])
        own = prior_changes(uncertainty, [name], uncertainty.flat_std(name))
        np.testing.assert_allclose(own[:, 0], whole[:, entry], rtol=1e-9, atol=1e-12, err_msg=label)
