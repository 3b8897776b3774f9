"""Regressions of and on clusters: known labels, refits, sums, equivariance, and rows anywhere."""

import copy
import pickle

import dask.array as da
import numpy as np
import pandas as pd
import polars as pl
import pytest
from catalogue import MODELS, few_of, fitted, mixture, model_id, overlapping, rows_of
from incomplete_rows import incomplete
from scipy.optimize import minimize
from scipy.special import logit, logsumexp
from scipy.stats import alexandergovern, binomtest, chi2, norm
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from sklearn_lrvb import LRVBGaussianMixture, LRVBLatentClassMixture
from sklearn_lrvb.answers.conclusions import Optimum

N = 240  # Rows of `overlapping`.
RNG = np.random.default_rng(3)
AGE = 50.0 + 10.0 * RNG.normal(size=N) + 4.0 * (overlapping()[:, 0] > 1)
SEX = RNG.choice(["f", "m"], N)
TABLE = pd.DataFrame({"age": AGE, "sex": SEX})
OUTCOMES = pd.DataFrame(
    {
        "height": 170.0 + 0.2 * AGE + 5.0 * RNG.normal(size=N),
        "smoker": RNG.choice(["no", "yes"], N),
        "visits": RNG.poisson(1.0 + (SEX == "m")),
        "grade": RNG.choice(["a", "b", "c"], N),
    }
)


def far_apart(n_rows=600, n_clusters=3, seed=0):
    """Clusters that are far apart, covariates on which they depend, and labels in the order of a fit."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({"age": rng.normal(40, 10, n_rows), "sex": rng.choice(["f", "m"], n_rows)})
    logits = np.outer((table["age"] - 40) / 10, [0, 1, -0.5]) + np.outer(table["sex"] == "m", [0, 0.5, 1])
    p = np.exp(logits[:, :n_clusters])
    labels = (rng.random(n_rows)[:, None] > np.cumsum(p / p.sum(axis=1, keepdims=True), axis=1)).sum(axis=1)
    X = 30.0 * labels[:, None] + rng.normal(size=(n_rows, 2))
    estimator = LRVBGaussianMixture(n_components=n_clusters, random_state=0, n_init=3).fit(X)
    return X, table, estimator, estimator.predict(X)


def design(table):
    return np.column_stack([np.ones(len(table)), table["age"], table["sex"] == "m"])


def effects_of(estimator, X=None, table=TABLE, **options):
    options = {"method": "lrvb", **options}
    return estimator.covariate_effects(overlapping() if X is None else X, table, **options)


def differences_of(estimator, X=None, outcome=OUTCOMES, **options):
    options = {"method": "lrvb", **options}
    return estimator.outcome_differences(overlapping() if X is None else X, outcome, **options)


def every_table(result):
    """All estimates with error bars."""
    kinds = list(result.regressions[0].kinds)
    return pd.concat([result.summary(kind) for kind in kinds])


def few_models():
    return [model for model in few_of(MODELS) if model["prior"] != "flat"][::2]


# Where labels are known.


def test_of_known_labels_it_is_a_multinomial_logistic_regression():
    X, table, estimator, labels = far_apart()
    W, K = design(table), 3
    scale = np.array([1.0, 10.0, 1.0])

    def loss(flat):
        logits = np.zeros((len(W), K))
        logits[:, 1:] = (W / scale) @ flat.reshape(2, 3).T
        return -(logits[np.arange(len(W)), labels] - logsumexp(logits, axis=1)).sum()

    best = minimize(loss, np.zeros(6), method="BFGS", options={"gtol": 1e-6})
    truth = (best.x.reshape(2, 3) / scale).ravel()
    p = np.exp(np.column_stack([np.zeros(len(W)), (W / scale) @ best.x.reshape(2, 3).T]))
    p /= p.sum(axis=1, keepdims=True)
    blocks = [[np.diag(p[:, a] * ((a == b) - p[:, b])) for b in (1, 2)] for a in (1, 2)]
    information = np.block([[W.T @ own @ W for own in row] for row in blocks])
    found = effects_of(estimator, X, table).summary("coefficients")
    deviations = np.sqrt(np.diag(np.linalg.inv(information)))
    # The weak prior moves estimates by a few hundredths of their standard deviations.
    assert np.abs((found["estimate"] - truth) / deviations).max() < 0.1
    np.testing.assert_allclose(found["sd"], deviations, rtol=0.02)


def test_of_known_labels_means_are_those_of_groups():
    X, _, estimator, labels = far_apart()
    rng = np.random.default_rng(1)
    outcome = pd.DataFrame(
        {
            "height": 170 + labels + rng.normal(size=len(X)) * (1 + labels),
            "ill": rng.random(len(X)) < 0.2 + 0.2 * labels,
            "visits": rng.poisson(1 + labels),
            "grade": rng.choice(["a", "b", "c"], len(X)),
        }
    )
    found = differences_of(estimator, X, outcome).summary("means")
    for k in range(3):
        own = outcome[labels == k]
        for name, values in (
            (f"mean[{k},height]", own["height"]),
            (f"mean[{k},ill=True]", own["ill"]),
            (f"mean[{k},visits]", own["visits"]),
            (f"mean[{k},grade=b]", own["grade"] == "b"),
        ):
            deviation = values.std() / np.sqrt(len(own))
            assert abs(found.loc[name, "estimate"] - values.mean()) < 0.1 * deviation
            np.testing.assert_allclose(found.loc[name, "sd"], deviation, rtol=0.02)


def test_of_known_labels_intervals_of_shares_are_those_of_wilson():
    X, _, estimator, labels = far_apart()
    ill = (np.arange(len(X)) % 9 == 0) & (labels < 2)  # None is ill in the last cluster.
    found = differences_of(estimator, X, pd.Series(ill, name="ill")).summary("means")
    for k in range(3):
        wilson = binomtest(int(ill[labels == k].sum()), int((labels == k).sum())).proportion_ci(
            0.95, "wilson"
        )
        own = found.loc[f"mean[{k},ill=True]"]
        np.testing.assert_allclose([own["lower"], own["upper"]], [wilson.low, wilson.high], atol=2e-3)


def test_of_known_labels_an_adjusted_outcome_is_a_regression():
    X, table, estimator, labels = far_apart()
    rng = np.random.default_rng(2)
    y = pd.Series(labels + 0.05 * table["age"] + rng.normal(size=len(X)), name="y")
    W = np.column_stack([*(labels == k for k in range(3)), table["age"], table["sex"] == "m"])
    inverse = np.linalg.inv(W.T @ W)
    beta = inverse @ W.T @ y.to_numpy()
    leverages = np.einsum("np,pr,nr->n", W, inverse, W)
    factors = np.square(y.to_numpy() - W @ beta) / (1.0 - leverages)  # HC2.
    deviations = np.sqrt(np.diag(inverse @ (W.T * factors) @ W @ inverse))
    found = differences_of(estimator, X, y, covariates=table)
    slopes, means = found.summary("slopes"), found.summary("means")["estimate"].to_numpy()
    assert (np.abs(slopes["estimate"] - beta[3:]) < 0.02 * deviations[3:]).all()
    np.testing.assert_allclose(slopes["sd"], deviations[3:], rtol=0.01)
    standardized = beta[:3] + beta[3] * table["age"].mean() + beta[4] * (table["sex"] == "m").mean()
    np.testing.assert_allclose(means, standardized, atol=0.001)


# Refits: the derivative in the weight of a row goes through both steps.


def derivative(estimator, result, name, row, X, step=1e-3):
    """Of an estimate in the weight of a row, by refits of both steps."""
    rows, conclusion, ends = rows_of(estimator, X), result.conclusion(name), []
    for sign in (1.0, -1.0):
        factors = np.ones(len(X))
        factors[row] += sign * step
        ends.append(conclusion.value([Optimum(estimator, rows).refitted(rows.reweighted(factors))]))
    return (ends[0] - ends[1]) / (2.0 * step)


@pytest.mark.parametrize("make", [effects_of, differences_of])
@pytest.mark.parametrize("model", few_models(), ids=model_id)
def test_influence_is_the_derivative_of_refits(model, make):
    estimator = mixture(model, tol=1e-12).fit(overlapping())
    result, row = make(estimator), 17
    for name in result.names[:: max(1, len(result.names) // 4)]:
        influence = result.influence(overlapping(), name=name)
        expected = derivative(estimator, result, name, row, overlapping())
        np.testing.assert_allclose(influence[row], expected, rtol=2e-6, atol=2e-6 * np.abs(influence).max())


@pytest.mark.parametrize("make", [effects_of, differences_of])
def test_influence_with_missing_values_is_the_derivative_of_refits(make):
    X = incomplete()
    estimator = mixture({"covariance_type": "full"}, tol=1e-12).fit(X)
    result = make(estimator, X, TABLE[: len(X)])
    for name in result.names[::4]:
        influence = result.influence(X, name=name)
        expected = derivative(estimator, result, name, 11, X)
        np.testing.assert_allclose(
            influence[11], expected, rtol=1e-6, atol=2e-6 * np.nanmax(np.abs(influence))
        )


def test_error_bars_of_groups_are_those_of_their_influence():
    estimator = fitted({"covariance_type": "full", "prior": "learned"})
    groups = RNG.integers(40, size=N)
    result, name = effects_of(estimator), "slope[1,age]"
    sums = np.bincount(groups, result.influence(overlapping(), name=name))
    expected = np.sqrt(40 / 39 * np.square(sums - sums.mean()).sum())
    by_groups = estimator.covariate_effects(overlapping(), TABLE, groups=groups)
    np.testing.assert_allclose(by_groups.summary("coefficients").loc[name, "sd"], expected, rtol=1e-8)


def test_p_values_of_groups_are_those_of_their_rows_counted_once():
    rng = np.random.default_rng(8)
    X = overlapping()
    table = pd.DataFrame({"age": X[:, 0] + 12.0 * rng.normal(size=N)})
    height = pd.Series(X[:, 0] + 12.0 * rng.normal(size=N), name="height")
    one = LRVBGaussianMixture(n_components=2, random_state=0).fit(X)
    four, groups = np.repeat(np.arange(N), 4), np.repeat(np.arange(N), 4)
    other = LRVBGaussianMixture(n_components=2, random_state=0).fit(X[four])
    for make in ("covariate_effects", "outcome_differences"):
        own = table if make == "covariate_effects" else height
        p = [
            next(iter(getattr(estimator, make)(rows, given, groups=labels).p_values.values()))
            for estimator, rows, given, labels in (
                (one, X, own, np.arange(N)),
                (other, X[four], own.iloc[four], groups),
            )
        ]
        assert 1e-6 < p[0] < 0.2
        assert np.log(p[1]) == pytest.approx(np.log(p[0]), rel=0.15)


def test_strata_take_away_what_varies_between_them():
    estimator = fitted({"covariance_type": "full", "prior": "learned"})
    groups, strata = np.arange(N), np.arange(N) % 2
    result, name = effects_of(estimator), "effect[1,age]"
    influence = result.influence(overlapping(), name=name)
    variance = sum(120 / 119 * np.square(own - own.mean()).sum() for own in (influence[::2], influence[1::2]))
    stratified = estimator.covariate_effects(overlapping(), TABLE, groups=groups, strata=strata)
    np.testing.assert_allclose(stratified.summary().loc[name, "sd"], np.sqrt(variance), rtol=1e-8)
    whole = {"strata_sizes": {0: 240, 1: 240}}  # Half of each was sampled.
    half = estimator.covariate_effects(overlapping(), TABLE, groups=groups, strata=strata, **whole)
    np.testing.assert_allclose(half.summary().loc[name, "sd"], np.sqrt(variance / 2), rtol=1e-8)


def test_influence_with_noise_is_the_derivative_of_refits():
    rng = np.random.default_rng(0)
    X = np.concatenate([overlapping(), rng.uniform(-8, 10, (40, 2))])
    estimator = mixture({"noise": True}, tol=1e-12).fit(X)
    table = pd.DataFrame({"age": rng.normal(size=len(X))})
    result = effects_of(estimator, X, table)
    assert estimator.predict_proba(X)[-40:, -1].mean() > 0.5
    for name in ("slope[1,age]", "effect[1,age]"):
        influence = result.influence(X, name=name)
        for row in (17, 250):
            expected = derivative(estimator, result, name, row, X)
            np.testing.assert_allclose(
                influence[row], expected, rtol=1e-5, atol=1e-5 * np.abs(influence).max()
            )


def test_rows_that_are_left_out_have_influence_through_the_clusters_alone():
    estimator = fitted({"covariance_type": "full", "prior": "learned"})
    table = TABLE.assign(age=TABLE["age"].where(np.arange(N) != 17))
    result = effects_of(estimator, table=table)
    influence = result.influence(overlapping(), name="slope[1,age]")[17]
    expected = derivative(estimator, result, "slope[1,age]", 17, overlapping())
    np.testing.assert_allclose(influence, expected, rtol=1e-5)


# Sums, references and units.


@pytest.fixture(scope="module")
def three():
    X = np.concatenate([overlapping(), overlapping()[:60] + [0, 6]])
    return X, LRVBGaussianMixture(n_components=3, random_state=0, tol=1e-10).fit(X)


def table_of(X, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame({"age": rng.normal(50, 10, len(X)), "town": rng.choice(["a", "b", "c"], len(X))})


def test_shares_sum_to_one_and_effects_to_zero(three):
    X, estimator = three
    result = effects_of(estimator, X, table_of(X))
    for kind, total in (("shares", 1.0), ("effects", 0.0)):
        sums = result.summary(kind)["estimate"].to_numpy().reshape(-1, 3).sum(axis=1)
        np.testing.assert_allclose(sums, total, atol=1e-10)


def test_uncertain_clusters_widen_intervals_of_shares():
    rng = np.random.default_rng(0)
    labels = np.arange(400) % 2
    X = 2.2 * labels[:, None] * [1, 0] + rng.normal(size=(400, 2))
    estimator = LRVBGaussianMixture(n_components=2, random_state=0, tol=1e-8).fit(X)
    smoker = pd.Series(rng.random(400) < np.where(labels, 0.8, 0.3), name="smoker")
    found = differences_of(estimator, X, smoker).summary("means")
    rows = estimator.predict_proba(X).sum(axis=0)
    value, sd = found["estimate"], found["sd"]
    for end in ("lower", "upper"):
        limit = found[end]
        # By Wilson's interval and what else varies, the variance at the limit is that of its share.
        variance = np.square(sd) + (limit * (1 - limit) - value * (1 - value)) / rows
        np.testing.assert_allclose(np.abs(limit - value) / np.sqrt(variance), norm.ppf(0.975), rtol=1e-3)
    assert (np.square(sd) > 1.1 * value * (1 - value) / rows).all()


def test_shares_of_an_outcome_sum_to_one(three):
    X, estimator = three
    for covariates in (None, table_of(X)[["age"]]):
        found = differences_of(estimator, X, table_of(X)["town"], covariates=covariates)
        sums = found.summary("means")["estimate"].to_numpy().reshape(3, 3).sum(axis=1)
        np.testing.assert_allclose(sums, 1.0)


def test_means_times_probabilities_sum_to_the_outcome(three):
    X, estimator = three
    y = pd.Series(170 + 5 * X[:, 0] + RNG.normal(size=len(X)), name="y")
    means = differences_of(estimator, X, y).summary("means")["estimate"].to_numpy()
    # The second step has shares of its own, which without covariates are nearly those of the fit.
    total = estimator.predict_proba(X).sum(axis=0) @ means
    assert total == pytest.approx(y.sum(), rel=1e-4)


def test_effects_are_differences_of_shares(three):
    X, estimator = three
    table = table_of(X)
    result = effects_of(estimator, X, table)
    shares, effects = result.summary("shares")["estimate"], result.summary("effects")["estimate"]
    for k in range(3):
        expected = shares[f"share[{k},town=b]"] - shares[f"share[{k},town=a]"]
        assert np.isclose(effects[f"effect[{k},town=b]"], expected)


def test_the_effect_of_a_number_is_the_average_slope_of_the_share(three):
    X, estimator = three
    table = table_of(X)
    result = effects_of(estimator, X, table)
    coefficients = result.summary("coefficients")["estimate"].to_numpy().reshape(2, -1)
    W = np.column_stack([np.ones(len(X)), table["age"], table["town"] == "b", table["town"] == "c"])
    logits = np.column_stack([np.zeros(len(X)), W @ coefficients.T])
    p = np.exp(logits - logsumexp(logits, axis=1, keepdims=True))
    slopes = np.append(0.0, coefficients[:, 1])
    expected = (p * (slopes - (p @ slopes)[:, None])).mean(axis=0)
    found = result.summary()["estimate"][[f"effect[{k},age]" for k in range(3)]]
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_intervals_of_shares_are_symmetric_in_log_odds(three):
    X, estimator = three
    shares = effects_of(estimator, X, table_of(X)).summary("shares", interval=0.9)
    value, sd = shares["estimate"], shares["sd"]
    half = norm.ppf(0.95) * sd / (value * (1 - value))
    np.testing.assert_allclose(logit(shares["lower"]), logit(value) - half)
    np.testing.assert_allclose(logit(shares["upper"]), logit(value) + half)


def test_the_reference_changes_only_coefficients(three):
    X, estimator = three
    table = table_of(X)
    first, other = (effects_of(estimator, X, table, reference=k) for k in (0, 2))
    for kind in ("effects", "shares"):
        pd.testing.assert_frame_equal(first.summary(kind), other.summary(kind), rtol=1e-6, atol=1e-9)
    slopes = first.summary("coefficients")["estimate"], other.summary("coefficients")["estimate"]
    assert np.isclose(slopes[0]["slope[2,age]"], -slopes[1]["slope[0,age]"], rtol=1e-6)
    assert first.p_values == pytest.approx(other.p_values, rel=1e-6)
    assert (first.reference, other.reference) == (0, 2)


def test_reference_levels_change_only_what_is_compared(three):
    X, estimator = three
    table = table_of(X)
    first, other = (effects_of(estimator, X, table, levels={"town": level}) for level in ("a", "c"))
    pd.testing.assert_frame_equal(
        first.summary("shares"), other.summary("shares").loc[first.summary("shares").index], rtol=1e-6
    )
    one, two = first.summary()["estimate"], other.summary()["estimate"]
    assert np.isclose(one["effect[1,town=c]"], -two["effect[1,town=a]"], rtol=1e-6)
    assert first.p_values == pytest.approx(other.p_values, rel=1e-6)


def test_units_of_covariates_and_rows_do_not_matter(three):
    X, estimator = three
    table = table_of(X)
    scaled = LRVBGaussianMixture(n_components=3, random_state=0, tol=1e-10).fit(1e3 * X - 7)
    one, other = (
        effects_of(estimator, X, table),
        effects_of(scaled, 1e3 * X - 7, table.assign(age=1e6 + 1e-3 * table["age"])),
    )
    pd.testing.assert_frame_equal(one.summary("shares"), other.summary("shares"), rtol=1e-5, atol=1e-7)
    slopes = one.summary("coefficients"), other.summary("coefficients")
    for name in ("estimate", "sd"):
        assert np.isclose(
            1e3 * slopes[0].loc["slope[2,age]", name], slopes[1].loc["slope[2,age]", name], rtol=1e-5
        )
    y = pd.Series(table["age"] + 3 * X[:, 0] ** 2, name="y")
    means = [differences_of(estimator, X, own).summary("differences") for own in (y, 1e4 + 1e-3 * y)]
    np.testing.assert_allclose(1e-3 * means[0].to_numpy(), means[1].to_numpy(), rtol=1e-5, atol=1e-9)


def test_weights_are_repeated_rows(three):
    X, _ = three
    weights = np.random.default_rng(4).integers(0, 3, len(X))
    table, repeated = table_of(X), np.repeat(np.arange(len(X)), weights)
    start = np.eye(3)[np.digitize(X[:, 0], [1.0, 3.0])]
    options = {"n_components": 3, "tol": 1e-11, "random_state": 0}
    one = LRVBGaussianMixture(**options, init_params=start).fit(X, sample_weight=weights)
    other = LRVBGaussianMixture(**options, init_params=start[repeated]).fit(X[repeated])
    for make, own in ((effects_of, table), (differences_of, table)):
        found = make(one, X, own, sample_weight=weights), make(other, X[repeated], own.iloc[repeated])
        pd.testing.assert_frame_equal(*map(every_table, found), rtol=1e-4, atol=1e-6)


def test_the_order_of_rows_does_not_matter(three):
    X, estimator = three
    table, order = table_of(X), np.random.default_rng(5).permutation(len(X))
    one, other = effects_of(estimator, X, table), effects_of(estimator, X[order], table.iloc[order])
    pd.testing.assert_frame_equal(every_table(one), every_table(other), rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize("make", [effects_of, differences_of])
@pytest.mark.parametrize("where", ["batches", "dask"])
def test_rows_may_be_anywhere(three, make, where):
    X, _ = three
    X, table = X.copy(), table_of(X)
    X[5], X[7, 1] = np.nan, np.nan
    parts = [X[:70], X[70:200], X[200:]] if where == "batches" else da.from_array(X, (101, 2))
    one, other = (
        LRVBGaussianMixture(n_components=3, random_state=0, tol=1e-11).fit(own) for own in (X, parts)
    )
    results = make(one, X, table), make(other, parts, table)
    pd.testing.assert_frame_equal(*map(every_table, results), rtol=1e-5, atol=1e-8)
    name = results[0].names[1]
    influence = results[0].influence(X, name=name), results[1].influence(parts, name=name)
    np.testing.assert_allclose(*influence, rtol=1e-5, atol=1e-9)
    assert np.isnan(influence[0][5]), "a row without a value does not count"
    groups = np.arange(len(X)) // 3
    sandwiches = (
        make(one, X, table, method="auto", groups=groups),
        make(other, parts, table, method="auto", groups=groups),
    )
    pd.testing.assert_frame_equal(*map(every_table, sandwiches), rtol=1e-5, atol=1e-8)


def test_tables_of_any_library_are_the_same(three):
    X, estimator = three
    table = table_of(X)
    expected = every_table(effects_of(estimator, X, table))
    in_polars = pl.DataFrame({name: table[name].tolist() for name in table})
    pd.testing.assert_frame_equal(every_table(effects_of(estimator, X, in_polars)), expected)
    ages = [
        effects_of(estimator, X, own).summary()
        for own in (table["age"], table["age"].to_numpy(), table[["age"]])
    ]
    for own in ages:
        np.testing.assert_allclose(own, ages[0])


def test_results_survive_a_pickle(three):
    X, estimator = three
    result = effects_of(pickle.loads(pickle.dumps(estimator)), X, table_of(X))
    pd.testing.assert_frame_equal(every_table(result), every_table(effects_of(estimator, X, table_of(X))))
    again = pickle.loads(pickle.dumps(result))
    assert again.verdict == result.verdict
    pd.testing.assert_frame_equal(every_table(again), every_table(result))


def test_classes_of_mixed_tables_have_both():
    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=300)
    age = 50 + 10 * labels + 10 * rng.normal(size=300)
    yes = rng.random((300, 5)) < np.where(labels, 0.85, 0.15)[:, None]
    X = pd.DataFrame(np.where(yes, "yes", "no"), columns=list("abcde"))
    estimator = LRVBLatentClassMixture(2, random_state=0).fit(X)
    first = estimator.tables_["a"].loc[0, "yes"] < 0.5  # Whether class 0 is that of label 0.
    result = effects_of(estimator, X, pd.DataFrame({"age": age})).summary("coefficients")
    slope = result.loc["slope[1,age]", "estimate"] * (1 if first else -1)
    assert abs(slope - 0.1) < 3 * result.loc["slope[1,age]", "sd"]
    joined = every_table(effects_of(estimator, X, pd.DataFrame({"age": age}), method="sandwich"))
    np.testing.assert_allclose(
        joined["estimate"], every_table(effects_of(estimator, X, pd.DataFrame({"age": age})))["estimate"]
    )


def test_uncertain_clusters_widen_error_bars_as_much_as_estimates_vary():
    rng = np.random.default_rng(0)
    age = rng.normal(size=3000)
    labels = rng.random(3000) < 1 / (1 + np.exp(-age))
    X = 2.6 * labels[:, None] * [1, 0] + rng.normal(size=(3000, 2))
    estimator = LRVBGaussianMixture(n_components=2, random_state=0, tol=1e-8).fit(X)
    table = pd.DataFrame({"age": age})
    by_response, sandwich = (
        effects_of(estimator, X, table, method=method) for method in ("lrvb", "sandwich")
    )
    one, other = (every_table(result) for result in (by_response, sandwich))
    np.testing.assert_allclose(one["sd"], other["sd"], rtol=0.12)
    known = np.sqrt(np.diag(by_response.regressions[0].step.maximum.covariance))  # As if clusters were.
    assert one.loc["intercept[1]", "sd"] > 1.5 * known[0]


# The exact posterior.


@pytest.mark.slow
def test_with_many_rows_the_exact_posterior_says_the_same():
    X, table, estimator, _ = far_apart(1500, 2)
    X = X / 8.0  # The clusters overlap.
    estimator = LRVBGaussianMixture(n_components=2, random_state=0).fit(X)
    by_response, exact = (effects_of(estimator, X, table, method=method) for method in ("lrvb", "exact"))
    one, other = by_response.summary("coefficients"), exact.summary("coefficients")
    assert np.abs((one["estimate"] - other["estimate"]) / one["sd"]).max() < 0.15
    np.testing.assert_allclose(one["sd"], other["sd"], rtol=0.1)


def test_of_known_labels_tests_are_ratios_of_likelihoods():
    X, table, estimator, labels = far_apart()
    p = effects_of(estimator, X, table).p_values

    def deviance(W):
        model = LogisticRegression(C=1e8, tol=1e-8, max_iter=10_000).fit(W, labels)
        return 2.0 * log_loss(labels, model.predict_proba(W), normalize=False)

    W = design(table)[:, 1:] / [10.0, 1.0]
    for name, other in (("age", 1), ("sex", 0)):
        assert p[name] == pytest.approx(chi2.sf(deviance(W[:, [other]]) - deviance(W), 2), rel=0.05)
    one = pd.Series(RNG.normal(size=len(X)) + 0.1 * labels, name="y")
    expected = alexandergovern(*(one[labels == k] for k in range(3))).pvalue  # Variances may differ.
    assert differences_of(estimator, X, one).p_values["y"] == pytest.approx(expected, rel=0.1)


def test_a_result_does_not_change_with_the_estimator_that_is_fitted_again(three):
    X, estimator = three
    table, own = table_of(X), copy.deepcopy(estimator)
    result = effects_of(own, X, table)
    before = every_table(result)
    own.fit(X[:100])
    pd.testing.assert_frame_equal(every_table(result), before)
    np.testing.assert_allclose(
        result.influence(X, name="slope[1,age]"),
        effects_of(estimator, X, table).influence(X, name="slope[1,age]"),
    )
