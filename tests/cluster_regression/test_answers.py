"""What is said of regressions on clusters and refused; direct effects, rows that decide, displays."""

import pickle

import numpy as np
import pandas as pd
import pytest
from catalogue import fitted, overlapping
from matplotlib import pyplot as plt
from scipy.stats import binomtest, chi2, chi2_contingency

from sklearn_lrvb import LRVBGaussianMixture, LRVBLatentClassMixture
from sklearn_lrvb.displays import CovariateEffectsDisplay, OutcomeDifferencesDisplay

X = overlapping()
N = len(X)
RNG = np.random.default_rng(0)
AGE = pd.DataFrame({"age": RNG.normal(50, 10, N)})
FULL = {"covariance_type": "full", "prior": "learned"}


@pytest.fixture(scope="module")
def estimator():
    return fitted(FULL)


def blobs(n_rows=300, distance=6.0, seed=0):
    rng = np.random.default_rng(seed)
    labels = np.arange(n_rows) % 2
    rows = distance * labels[:, None] + rng.normal(size=(n_rows, 2))
    return rows, labels, LRVBGaussianMixture(n_components=2, random_state=0).fit(rows), rng


def of_label(estimator, rows, labels):
    """The number of the cluster that has the rows of label 1."""
    return int(np.bincount(estimator.predict(rows[labels == 1])).argmax())


# What is said.


def test_the_verdict_names_the_surest_effect():
    rows, labels, estimator, rng = blobs()
    table = pd.DataFrame({"age": 3.0 * labels + 3.0 * rng.normal(size=300), "luck": rng.normal(size=300)})
    effects = estimator.covariate_effects(rows, table, method="lrvb")
    assert "depends on age (p < 0.001)" in effects.verdict
    assert "luck" not in effects.verdict
    assert effects.p_values["luck"] > 0.05 > effects.p_values["age"]
    assert effects.verdict in effects._repr_html_().replace("&lt;", "<")
    assert "age (p < 0.001)" in repr(effects)
    differences = estimator.outcome_differences(rows, table, method="lrvb")
    one = of_label(estimator, rows, labels)
    sign = "+" if one == 1 else "-"
    assert f"Surest: mean[1,age] - mean[0,age] is {sign}" in differences.verdict


def test_the_verdict_names_the_level_that_is_compared_with():
    rows, labels, estimator, rng = blobs()
    sex = pd.DataFrame({"sex": np.where(labels + rng.normal(size=300) > 0.5, "m", "f")})
    verdict = estimator.covariate_effects(rows, sex, method="lrvb").verdict
    assert "if all rows are sex=m rather than sex=f" in verdict
    other = estimator.covariate_effects(rows, sex, method="lrvb", levels={"sex": "m"})
    assert "if all rows are sex=f rather than sex=m" in other.verdict


def test_only_what_is_sure_by_all_tests_together_is_told():
    rows, _, estimator, _ = blobs()
    for seed in range(200):
        luck = pd.DataFrame(np.random.default_rng(seed).normal(size=(300, 8))).add_prefix("luck")
        effects = estimator.covariate_effects(rows, luck, method="lrvb")
        if 0.05 / 8 < min(effects.p_values.values()) < 0.05:
            break
    assert effects.verdict.startswith("No covariate is known")


def test_nothing_is_said_where_nothing_is_known():
    rows, _, estimator, rng = blobs()
    luck = rng.normal(size=300)
    assert estimator.covariate_effects(rows, luck, method="lrvb").verdict.startswith("No covariate is known")
    differences = estimator.outcome_differences(rows, luck, method="lrvb")
    assert differences.verdict.startswith("Clusters are not known to differ")


def test_p_values_are_uniform_without_an_effect():
    rows, _, estimator, rng = blobs(100)
    p = [
        next(iter(result.p_values.values()))
        for _ in range(60)
        for values in [rng.normal(size=100)]
        for result in (
            estimator.covariate_effects(rows, values, method="lrvb"),
            estimator.outcome_differences(rows, values, method="lrvb"),
        )
    ]
    # Of 120 p-values, 60 are below one half, give or take 5.5; the pairs are nearly the same test.
    assert 60 - 4 * 8 < np.sum(np.array(p) < 0.5) < 60 + 4 * 8
    assert np.sum(np.array(p) < 0.05) < 18


def test_a_covariate_that_separates_clusters_has_a_bounded_slope_and_a_note():
    rows, labels, estimator, _ = blobs()
    effects = estimator.covariate_effects(
        rows, pd.DataFrame({"age": labels * 10.0}), columns={"age": "numeric"}
    )
    assert "The rows alone do not bound slope[1,age]" in effects.note
    slope = effects.summary("coefficients").loc["slope[1,age]"]
    assert 0.5 < abs(slope["estimate"]) < 5.0  # The rows alone would have it infinite.
    share = effects.summary("shares").loc["share[1]"]
    assert 0.49 < share["estimate"] < 0.51


def test_an_outcome_that_all_rows_of_a_cluster_have_keeps_its_share_between_zero_and_one():
    rows, labels, estimator, rng = blobs()
    ill = pd.Series(np.where(labels, "yes", rng.choice(["no", "yes"], 300)), name="ill")
    differences = estimator.outcome_differences(rows, ill, method="lrvb")
    shares = differences.summary()
    assert shares.loc[f"mean[{of_label(estimator, rows, labels)},ill=yes]", "estimate"] > 0.97
    assert ((shares["lower"] > 0) & (shares["lower"] < 0.98)).all()
    assert (shares["upper"] <= 1).all()
    assert (shares["sd"] > 1e-3).all()


def test_rows_without_a_covariate_are_left_out_and_counted(estimator):
    table = AGE.assign(sex=RNG.choice(["f", "m"], N))
    table.loc[:9, "age"], table.loc[20:22, "sex"] = np.nan, None
    effects = estimator.covariate_effects(X, table, method="lrvb")
    assert (effects.n_rows, effects.n_left_out) == (N - 13, 13)
    assert "13 row(s) lack a covariate or an outcome" in effects.note
    # The clusters stay those of all rows, and the regression is that of the others.
    weights = np.ones(N)
    weights[[*range(10), 20, 21, 22]] = 0.0
    kept = weights > 0
    influence = effects.influence(X, name="slope[1,age]")
    assert np.isfinite(influence).all()
    whole = estimator.covariate_effects(
        X, table.assign(age=table["age"].fillna(50), sex=table["sex"].fillna("f"))
    )
    assert abs(influence[kept]).max() < 10 * abs(whole.influence(X, name="slope[1,age]")).max()


def test_few_rows_in_a_cluster_are_told():
    rng = np.random.default_rng(0)
    rows = np.concatenate([rng.normal(size=(200, 2)), 20 + rng.normal(size=(8, 2))])
    estimator = LRVBGaussianMixture(n_components=2, random_state=0).fit(rows)
    effects = estimator.covariate_effects(rows, rng.normal(size=208), method="lrvb")
    assert "has 8 rows for 2 coefficient(s)" in effects.note
    table = pd.DataFrame(rng.normal(size=(208, 3)), columns=list("abc"))
    differences = estimator.outcome_differences(rows, table, method="lrvb")
    assert differences.note.count("has 8 rows for 1 coefficient(s)") == 1  # Not once for every outcome.


def test_noise_has_a_share_that_does_not_depend_on_covariates():
    rng = np.random.default_rng(0)
    rows, labels, _, _ = blobs()
    rows = np.concatenate([rows, rng.uniform(-20, 30, (30, 2))])
    estimator = LRVBGaussianMixture(n_components=2, noise=True, random_state=0).fit(rows)
    age = np.append(labels, rng.integers(2, size=30)) + rng.normal(size=330)
    effects = estimator.covariate_effects(rows, age, method="lrvb")
    assert "Noise is taken not to depend on covariates" in effects.note
    shares = effects.summary("shares")["estimate"]
    assert shares.sum() == pytest.approx(1.0)  # Of the clusters, among rows that are no noise.
    outcome = estimator.outcome_differences(rows, age, method="lrvb")
    assert "mean[noise,outcome]" in outcome.summary().index
    assert not any("noise" in name for name in outcome.summary("differences").index)


def test_a_level_whose_rows_are_all_in_one_cluster_is_known_to_have_an_effect():
    rows, labels, estimator, rng = blobs(1000)
    rare = pd.DataFrame({"rare": (labels == 1) & (rng.random(1000) < 0.06)})
    effects = estimator.covariate_effects(rows, rare, method="lrvb")
    assert effects.p_values["rare"] < 1e-6  # Wald's test of the slope alone would have p = 0.2.
    assert "rare=True rather than rare=False" in effects.verdict
    assert "slope[1,rare=True]" in effects.note


def test_few_groups_make_no_p_values_that_are_too_small():
    rng, p = np.random.default_rng(0), []
    rows, _, estimator, _ = blobs(240)
    for _ in range(40):
        groups = np.repeat(np.arange(12), 20)
        table = pd.DataFrame(rng.choice(list("abcde"), 240), columns=["level"])
        effects = estimator.covariate_effects(rows, table, groups=rng.permutation(groups))
        p.append(effects.p_values["level"])
    assert np.mean(np.array(p) < 0.05) < 0.2
    table["other"] = rng.choice(list("abcde"), 240)
    four = estimator.covariate_effects(rows, table, groups=np.arange(240) % 4)
    assert np.isnan(list(four.p_values.values())).all()
    assert four.verdict.startswith("No covariate is known")
    assert "groups are too few" in repr(four)


def test_results_hold_no_rows_of_x():
    rows, _, estimator, rng = blobs(3000)
    effects = estimator.covariate_effects(rows, rng.normal(size=3000), method="lrvb")
    assert all(step.rows.rows is None for own in effects.regressions for step in (own.step, own.reported))
    assert np.isfinite(effects.influence(rows, name="effect[1,covariate]")).all()


def test_a_share_of_clusters_that_overlap_stays_between_zero_and_one():
    outside = 0
    for seed in range(8):
        rows, labels, estimator, rng = blobs(300, 2.6, seed)
        rare = pd.Series(np.where(labels * rng.random(300) > 0.7, "yes", "no"), name="rare")
        if estimator.n_occupied_ == 2:
            differences = estimator.outcome_differences(rows, rare, method="lrvb")
            shares = differences.summary()[["estimate", "lower", "upper"]].to_numpy()
            assert ((shares >= 0) & (shares <= 1)).all()
            assert (np.diff(shares[:, 1:]) > 0).all()
            outside += (differences.regressions[0].step.coefficients[:, 0] < -0.15).sum()
            means, difference = shares[:2, 0], differences.summary("differences")["estimate"].item()
            assert difference == pytest.approx(means[1] - means[0])
    assert outside


def test_means_of_any_distribution_are_right():
    z = []
    for seed in range(40):
        rows, labels, estimator, rng = blobs(400, 2.6, seed)
        if estimator.n_occupied_ < 2:
            continue
        truth = np.array([1.0, 3.0])
        order = [1 - of_label(estimator, rows, labels), of_label(estimator, rows, labels)]
        table = pd.DataFrame(
            {
                "income": truth[labels] * rng.gamma(0.5, 2.0, size=400),
                "visits": rng.poisson(truth[labels] * rng.gamma(1.0, 1.0, 400)),
            }
        )
        means = estimator.outcome_differences(rows, table, method="lrvb").summary()
        own = [means.loc[[f"mean[{k},{name}]" for k in order]] for name in table]
        z += [((each["estimate"] - truth) / each["sd"]).to_numpy() for each in own]
    assert len(z) > 50
    # By a normal or Poisson distribution in every cluster they are off by several standard deviations.
    assert np.abs(np.mean(z, axis=0)).max() < 0.6
    assert 0.8 < np.std(z) < 1.4


def test_outcomes_of_any_distribution_are_rarely_said_to_differ_where_they_do_not():
    p = []
    for seed in range(25):
        rows, _, estimator, rng = blobs(400, 2.6, seed)
        if estimator.n_occupied_ < 2:
            continue
        table = pd.DataFrame(
            {"income": np.exp(rng.normal(size=400)), "visits": rng.negative_binomial(1, 0.3, 400)}
        )
        differences = estimator.outcome_differences(rows, table, columns={"visits": "count"}, method="lrvb")
        p.append(list(differences.p_values.values()))
    assert len(p) > 15
    assert np.mean(np.array(p) < 0.05) < 0.15


def test_an_outcome_is_regressed_on_probabilities_by_least_squares():
    rows, labels, estimator, rng = blobs(300, 2.6)
    y = 0.2 * labels + rng.normal(size=300)
    r = estimator.predict_proba(rows)
    coefficients = np.linalg.lstsq(r, y, rcond=None)[0]
    inverse = np.linalg.inv(r.T @ r)
    covariance = inverse @ (r.T * np.square(y - r @ coefficients)) @ r @ inverse
    contrast = np.array([-1.0, 1.0])
    expected = chi2.sf((contrast @ coefficients) ** 2 / (contrast @ covariance @ contrast), 1)
    found = estimator.outcome_differences(rows, y, method="lrvb")
    # The second step has shares of its own, which are not quite those of the fit.
    np.testing.assert_allclose(found.summary()["estimate"], coefficients, atol=0.01)
    assert found.p_values["outcome"] == pytest.approx(expected, rel=0.1)


def test_draws_without_a_cluster_are_not_used():
    rng = np.random.default_rng(6)
    age = rng.normal(size=300)
    labels = rng.random(300) < 1 / (1 + np.exp(-age))
    rows = rng.normal(size=(300, 3)) + labels[:, None] * 2.5 / np.sqrt(3)
    estimator = LRVBGaussianMixture(n_components=2, random_state=0, n_init=3).fit(rows)
    effects = estimator.covariate_effects(rows, pd.DataFrame({"age": age}))
    assert "in most draws of the exact posterior a cluster has next to no rows" in effects.note
    shares = effects.summary("shares")["estimate"]
    assert 0.3 < shares["share[0]"] < 0.7
    assert effects.p_values["age"] < 1e-3


@pytest.mark.parametrize("rare", ["a rare one", "rare"])  # The reference level, or another.
def test_a_level_of_one_row_makes_no_headline(rare):
    rows, labels, estimator, rng = blobs()
    level = np.where(rng.random(300) < 0.5 + 0.15 * (2 * labels - 1), "c", "b").astype(object)
    level[0] = rare
    table = pd.DataFrame({"c": level, "age": labels + rng.normal(size=300)})
    effects = estimator.covariate_effects(rows, table, method="lrvb")
    assert f"Level 'c={rare}' has 1 row(s)" in effects.note
    assert "rare" not in effects.verdict


def test_whole_numbers_that_may_be_codes_are_told(estimator):
    effects = estimator.covariate_effects(X, pd.DataFrame({"region": RNG.integers(1, 5, N)}), method="lrvb")
    assert "Taken for numbers: 'region'" in effects.note


def test_columns_that_the_mixture_ignores_may_be_covariates():
    rng = np.random.default_rng(0)
    labels = np.arange(200) % 2
    yes = rng.random((200, 5)) < np.where(labels, 0.85, 0.15)[:, None]
    table = pd.DataFrame(np.where(yes, "yes", "no"), columns=list("abcde")).assign(age=rng.normal(size=200))
    classes = LRVBLatentClassMixture(2, columns={"age": "ignore"}, random_state=0).fit(table)
    assert classes.covariate_effects(table, table[["age"]], method="lrvb").n_rows == 200


def test_rows_in_another_order_are_refused_by_influence(estimator):
    effects = estimator.covariate_effects(X, AGE, method="lrvb")
    with pytest.raises(ValueError, match="in another order"):
        effects.influence(X[::-1], name="slope[1,age]")
    with pytest.raises(ValueError, match="in another order"):
        estimator.deciding_rows(X[::-1], conclusion="slope[1,age]", effects=effects, threshold=0.0)


# Direct effects.


def test_every_outcome_is_tested_for_direct_effects_given_itself():
    rows, labels, estimator, rng = blobs(500, 2.5)
    both = pd.DataFrame({"luck": rng.normal(size=500), "good": 3.0 * labels + rng.normal(size=500)})
    for outcomes in (both, both[["good", "luck"]]):
        assert estimator.outcome_differences(rows, outcomes, method="lrvb").direct_effects[0].p_value > 0.01


def test_direct_effects_know_that_rows_belong_together():
    rng, p = np.random.default_rng(1), []
    for _ in range(12):
        groups = np.repeat(np.arange(40), 15)
        labels = rng.integers(2, size=600)
        rows = 6.0 * labels[:, None] + rng.normal(size=(600, 2)) + rng.normal(size=(40, 2))[groups]
        estimator = LRVBGaussianMixture(n_components=2, random_state=0).fit(rows)
        town = rng.normal(size=40)[groups]
        p.append(estimator.covariate_effects(rows, town, groups=groups).direct_effects[0].p_value)
    assert np.sum(np.array(p) < 0.05) <= 4  # Without groups it is found in most of them.


@pytest.mark.parametrize("share", [0.5, 0.15])
def test_direct_effects_know_that_clusters_are_uncertain(share):
    p = []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        labels = rng.random(600) < share
        rows = np.outer(labels, [2.5, 0.0]) + rng.normal(size=(600, 2))
        mixture = LRVBGaussianMixture(n_components=2, covariance_type="tied", random_state=0).fit(rows)
        if mixture.n_occupied_ == 2:
            y = 4.0 * labels + 0.3 * rng.normal(size=600)
            p += [own.p_value for own in mixture.outcome_differences(rows, y, method="lrvb").direct_effects]
    assert len(p) > 40
    assert np.mean(np.array(p) < 0.1) < 0.2  # As if they were certain, it would be 0.4 to 0.7.


def test_direct_effects_of_groups_and_samples_are_rarely_found_where_there_are_none():
    p = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        groups = rng.integers(120, size=12_000)
        labels = rng.random(12_000) < 0.3
        rows = (
            np.outer(labels, [2.5, 0.0])
            + rng.normal(size=(12_000, 2))
            + rng.normal(size=(120, 2))[groups] / 4
        )
        y = 4.0 * labels + 0.3 * rng.normal(size=12_000)
        y[rng.random(12_000) < 0.5] = np.nan
        mixture = LRVBGaussianMixture(n_components=2, covariance_type="tied", random_state=0).fit(rows)
        found = mixture.outcome_differences(rows, y, groups=groups).direct_effects
        p += [own.p_value for own in found]
    assert np.mean(np.array(p) < 0.1) < 0.25


def test_shares_of_a_small_cluster_are_tested_as_by_pearson():
    ill = np.arange(300) % 5 == 0
    for small in (8, 60):
        labels = np.arange(300) >= 300 - small
        rows = np.random.default_rng(0).normal(size=(300, 2)) + 40.0 * labels[:, None]
        estimator = LRVBGaussianMixture(n_components=2, random_state=0).fit(rows)
        own = np.where(labels, False, ill)  # None is ill in the small cluster.
        table = np.array([[own[labels == k].sum(), (~own)[labels == k].sum()] for k in (0, 1)])
        expected = chi2_contingency(table, correction=False).pvalue
        for options in ({"method": "lrvb"}, {"method": "sandwich"}):
            differences = estimator.outcome_differences(rows, pd.Series(own, name="ill"), **options)
            assert np.log(differences.p_values["ill"]) == pytest.approx(np.log(expected), rel=0.2)
            limits = differences.summary("differences")[["lower", "upper"]].to_numpy().ravel()
            assert (np.prod(limits) < 0) == (expected > 0.05)


def explained(rows, labels, direct, seed=0):
    """Clusters, a covariate on which they depend, and how much it moves the first column besides."""
    rng = np.random.default_rng(seed)
    age = labels + rng.normal(size=len(rows))
    rows = rows.copy()
    rows[:, 0] += direct * (age - age.mean())
    estimator = LRVBGaussianMixture(n_components=2, random_state=0).fit(rows)
    return estimator, rows, pd.DataFrame({"age": age})


def test_a_direct_effect_is_found_and_named():
    rows, labels, *_ = blobs(distance=4.0)
    for direct in (0.5, 0.0):
        estimator, moved, table = explained(rows, labels, direct)
        for answer in (estimator.covariate_effects, estimator.outcome_differences):
            result = answer(moved, table, method="lrvb")
            assert (result.direct_effects[0].p_value < 0.01) == bool(direct)
            assert ("'age' and column 'x0' of X go together" in result.note) == bool(direct)


def test_of_known_labels_the_direct_effect_is_a_correlation_within_clusters():
    rows, labels, *_ = blobs(distance=40.0)
    estimator, moved, table = explained(rows, labels, 0.5)
    effect = estimator.covariate_effects(moved, table, method="lrvb").direct_effects[0]
    residuals = [
        np.concatenate([values[labels == k] - values[labels == k].mean() for k in (0, 1)])
        for values in (moved[:, 0], table["age"].to_numpy())
    ]
    assert effect.size == pytest.approx(np.corrcoef(residuals)[0, 1], rel=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("distance", [2.5, 6.0])
def test_direct_effects_that_are_not_there_are_rarely_found(distance):
    p = []
    for seed in range(100):
        rows, labels, *_ = blobs(400, distance, seed)
        estimator, moved, table = explained(rows, labels, 0.0, seed)
        if estimator.n_occupied_ == 2:
            p.append(estimator.covariate_effects(moved, table, method="lrvb").direct_effects[0].p_value)
    assert len(p) > 50
    assert np.mean(np.array(p) < 0.05) < 0.05 + 3 * np.sqrt(0.05 * 0.95 / len(p))


def test_direct_effects_of_categories_are_found():
    rng = np.random.default_rng(0)
    labels, age = np.arange(400) % 2, rng.normal(size=400)
    p = np.where(labels, 0.85, 0.15)[:, None] * np.ones((1, 6))
    p[:, 0] = np.clip(p[:, 0] + 0.3 * np.tanh(age), 0.02, 0.98)
    rows = pd.DataFrame(np.where(rng.random((400, 6)) < p, "yes", "no"), columns=list("abcdef"))
    rows.iloc[3, 0] = None
    estimator = LRVBLatentClassMixture(2, random_state=0).fit(rows)
    effect = estimator.covariate_effects(rows, pd.DataFrame({"age": age}), method="lrvb").direct_effects[0]
    assert (effect.column, effect.other) == ("a", "age")
    assert effect.p_value < 0.01


def test_types_of_columns_are_of_either_table(estimator):
    covariates = AGE.assign(ward=RNG.integers(3, size=N))
    outcomes = pd.DataFrame({"visits": RNG.poisson(2, N), "grade": RNG.integers(4, size=N)})
    kinds = {("ward", "grade"): "categorical", "visits": "count"}
    found = estimator.outcome_differences(X, outcomes, covariates=covariates, columns=kinds, method="lrvb")
    assert "mean[1,grade=3]" in found.names and "slope[visits,ward=2]" in found.names
    durations = estimator.outcome_differences(X, AGE, columns={"age": "duration"}, method="lrvb")
    plain = estimator.outcome_differences(X, AGE, method="lrvb")
    pd.testing.assert_frame_equal(durations.summary(), plain.summary())
    array = estimator.outcome_differences(X, outcomes.to_numpy(), columns={0: "count"}, method="lrvb")
    assert "mean[1,outcome0]" in array.names


# Rows that decide.


def test_rows_that_decide_a_slope_are_confirmed_by_a_fit_without_them():
    rows, labels, _, rng = blobs(120, 3.5)
    age = pd.DataFrame({"age": labels * 0.6 + rng.normal(size=120)})
    estimator = LRVBGaussianMixture(n_components=2, random_state=0, tol=1e-10).fit(rows)
    effects = estimator.covariate_effects(rows, age, method="lrvb")
    name = "slope[1,age]"
    value = effects.summary("coefficients").loc[name, "estimate"]
    deciding = estimator.deciding_rows(rows, conclusion=name, effects=effects, threshold=0.5 * value)
    assert deciding.found and deciding.value == pytest.approx(value)
    kept = np.setdiff1d(np.arange(120), deciding.rows)
    again = deciding.refit.covariate_effects(
        rows, age, sample_weight=np.isin(np.arange(120), kept).astype(float), method="lrvb"
    )
    # The weak prior is in units of the covariates of all rows, or of those that are left.
    found = again.summary("coefficients").loc[name, "estimate"]
    assert found == pytest.approx(deciding.confirmed, rel=5e-3)
    by_groups = estimator.deciding_rows(
        rows, conclusion=name, effects=effects, threshold=0.5 * value, groups=np.arange(120) // 2
    )
    assert by_groups.found and by_groups.unit == "groups"


def test_direct_effects_of_many_categories_are_rarely_found_where_there_are_none():
    rng, p = np.random.default_rng(0), []
    labels = rng.integers(2, size=400)
    table = pd.DataFrame(
        {name: np.where(rng.random(400) < 0.85, labels, 1 - labels).astype(str) for name in "abcd"}
    )
    for n_levels in (3, 12):
        table["many"] = rng.integers(n_levels, size=400).astype(str)
        classes = LRVBLatentClassMixture(2, random_state=0).fit(table)
        for _ in range(20):
            outcome = pd.Series(rng.integers(n_levels, size=400).astype(str), name="y")
            p.append(classes.outcome_differences(table, outcome, method="lrvb").direct_effects[0].p_value)
    assert np.mean(np.array(p) < 0.1) < 0.25


def test_by_the_sandwich_the_scale_of_weights_does_not_matter():
    rows, labels, _, rng = blobs(300, 3.0)
    table = pd.DataFrame({"number": labels + rng.normal(size=300), "level": rng.choice(["a", "b"], 300)})
    found = []
    for weight in (3.0, 30.0):
        weights = weight * (1.0 + np.arange(300) % 2)
        estimator = LRVBGaussianMixture(n_components=2, random_state=0).fit(rows, sample_weight=weights)
        found.append(estimator.outcome_differences(rows, table, sample_weight=weights, method="sandwich"))
    np.testing.assert_allclose(*[own.summary() for own in found], rtol=0.05)
    for number in range(2):
        one, other = (own.direct_effects[number].p_value for own in found)
        assert one == pytest.approx(other, rel=0.1)


def test_a_finite_population_shortens_intervals():
    rows, labels, estimator, rng = blobs(300, 6.0)
    table = pd.DataFrame({"number": labels + rng.normal(size=300), "level": rng.choice(["a", "b"], 300)})
    lengths = []
    for size in (1e9, 400, 300):
        strata = {"strata": np.zeros(300, dtype=int), "strata_sizes": {0: size}}
        differences = estimator.outcome_differences(rows, table, groups=np.arange(300), **strata)
        tables = [differences.summary(kind) for kind in ("means", "differences")]
        lengths.append(np.concatenate([own["upper"] - own["lower"] for own in tables]))
    np.testing.assert_allclose(lengths[1], np.sqrt(1 - 300 / 400) * lengths[0], rtol=0.02)
    np.testing.assert_allclose(lengths[2], 0.0, atol=1e-6)
    assert set(differences.p_values.values()) == {0.0}


def test_a_share_of_groups_is_as_sure_as_the_groups():
    groups, ill = np.repeat(np.arange(40), 10), np.repeat(np.arange(40) < 4, 10)
    labels = np.arange(400) >= 200  # None is ill in the second cluster.
    rows = np.random.default_rng(0).normal(size=(400, 2)) + 40.0 * labels[:, None]
    estimator = LRVBGaussianMixture(n_components=2, random_state=0).fit(rows)
    differences = estimator.outcome_differences(rows, pd.Series(ill, name="ill"), groups=groups)
    for label, number in ((0, 4), (1, 0)):
        own = of_label(estimator, rows, labels == label)
        wilson = binomtest(number, 20).proportion_ci(0.95, "wilson")
        limits = differences.summary().loc[f"mean[{own},ill=True]", ["lower", "upper"]].to_numpy(float)
        np.testing.assert_allclose(limits, [wilson.low, wilson.high], atol=0.05)


def test_rows_that_are_left_out_are_counted_by_outcome(estimator):
    table = pd.DataFrame({"one": RNG.normal(size=N), "other": RNG.normal(size=N)})
    table.loc[:9, "one"], table.loc[:29, "other"] = np.nan, np.nan
    differences = estimator.outcome_differences(X, table, method="lrvb")
    assert "are left out: 10 of 'one', 30 of 'other'" in differences.note
    assert (differences.n_rows, differences.n_left_out) == (N - 30, 30)
    assert f"{N - 30} to {N - 10}; 30 left out" in repr(differences)


@pytest.mark.parametrize("interval", [None, 0.95])
def test_rows_that_decide_a_difference_of_means(interval):
    rows, labels, _, rng = blobs(150, 3.0)
    y = 0.5 * labels + np.exp(rng.normal(size=150))
    estimator = LRVBGaussianMixture(n_components=2, random_state=0, tol=1e-10).fit(rows)
    differences, name = (
        estimator.outcome_differences(rows, y, method="lrvb"),
        "mean[1,outcome] - mean[0,outcome]",
    )
    deciding = estimator.deciding_rows(
        rows, conclusion=name, effects=differences, interval=interval, threshold=0.0
    )
    weights = np.ones(150)
    weights[deciding.rows] = 0.0
    again = deciding.refit.outcome_differences(rows, y, sample_weight=weights, method="lrvb")
    found = again.summary("differences").loc[name, "estimate" if interval is None else "lower"]
    # The weak prior is in units of all rows, or of those that are left.
    assert deciding.found and found == pytest.approx(deciding.confirmed, abs=1e-4)


def test_rows_that_decide_an_interval(estimator):
    age = pd.DataFrame({"age": X[:, 0] ** 2 + 2 * RNG.normal(size=N)})
    effects = estimator.covariate_effects(X, age, method="lrvb")
    lower = effects.summary("coefficients").loc["slope[1,age]", "lower"]
    deciding = estimator.deciding_rows(
        X, conclusion="slope[1,age]", effects=effects, interval=0.95, threshold=lower - 0.02
    )
    assert deciding.value == pytest.approx(lower, rel=1e-6)
    assert "lower end of the 95 % interval of slope[1,age]" in deciding.conclusion


def test_effects_of_another_fit_are_refused(estimator):
    effects = estimator.covariate_effects(X, AGE, method="lrvb")
    other = LRVBGaussianMixture(n_components=2, random_state=0).fit(X)
    with pytest.raises(ValueError, match="effects are of another fit"):
        other.deciding_rows(X, conclusion="slope[1,age]", effects=effects)
    with pytest.raises(ValueError, match="names no estimate"):
        estimator.deciding_rows(X, conclusion="slope[7,age]", effects=effects)
    by_groups = estimator.covariate_effects(X, AGE, groups=np.arange(N) // 4)
    for result, name in ((by_groups, "slope[1,age]"), (effects, "share[1]")):
        with pytest.raises(ValueError, match="not by linear response, or not symmetric"):
            estimator.deciding_rows(X, conclusion=name, effects=result, interval=0.95)
    copies = pickle.loads(pickle.dumps((estimator, effects)))
    assert copies[0].deciding_rows(X, conclusion="share[1]", effects=copies[1], threshold=0.9).n_refits > 0
    with pytest.raises(ValueError, match="effects go with the name"):
        estimator.deciding_rows(X, conclusion=lambda m: m.weights_[0], effects=effects)
    with pytest.raises(ValueError, match="effects must be what"):
        estimator.deciding_rows(X, conclusion="slope[1,age]", effects=3)


# What is refused.


@pytest.mark.parametrize(
    ("covariates", "message"),
    [
        (AGE[:5], "covariates has 5 rows, but X has 240"),
        (AGE.assign(one=1.0), "Column 'one' of covariates is constant"),
        (AGE.assign(double=2 * AGE["age"] + 3), "'double' of covariates is a linear combination"),
        (pd.DataFrame({"id": [f"r{n}" for n in range(N)]}), "has 240 categories; up to 50"),
        (pd.DataFrame({"a": X[:, 1]}), "Column 'a' of covariates has the values of column 1 of X"),
        (AGE.assign(age=np.nan), "0 of 240 rows have values of all covariates"),
        (pd.DataFrame({"day": pd.date_range("2020", periods=N)}), "of covariates holds dates"),
        ([AGE.to_numpy()[:100], AGE.to_numpy()[100:]], "covariates must be in memory"),
    ],
)
def test_covariates_that_say_nothing_are_refused_by_name(estimator, covariates, message):
    with pytest.raises(ValueError, match=message):
        estimator.covariate_effects(X, covariates, method="lrvb")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"reference": 5}, r"reference must be the number of a cluster that holds rows \(0, 1\), got 5"),
        ({"levels": {"sex": "x"}}, "the reference of 'sex' is 'x', but its categories are 'f', 'm'"),
        ({"levels": {"town": "x"}}, "levels names the column 'town', but covariates has age, sex"),
        ({"levels": {"age": 3}}, "a reference of 'age', but that is a column of numbers"),
        ({"columns": {"town": "count"}}, "A type is given for column 'town'"),
        ({"method": "mean_field"}, "method must be 'auto', 'lrvb', 'exact' or 'sandwich'"),
        ({"groups": np.zeros(N), "method": "auto"}, "at least two"),
        ({"groups": np.arange(N)}, "takes rows as independent"),
    ],
)
def test_bad_options_are_refused(estimator, options, message):
    table = AGE.assign(sex=RNG.choice(["f", "m"], N))
    with pytest.raises(ValueError, match=message):
        estimator.covariate_effects(X, table, **{"method": "lrvb", **options})


def test_other_rows_one_cluster_and_columns_of_x_are_refused(estimator):
    with pytest.raises(ValueError, match="X is not what the mixture was fitted to"):
        estimator.covariate_effects(X + 1, AGE)
    with pytest.raises(ValueError, match="pass X"):
        estimator.covariate_effects(None, AGE)
    with pytest.raises(ValueError, match="All rows are in one cluster"):
        LRVBGaussianMixture().fit(X).covariate_effects(X, AGE)
    frame = pd.DataFrame(X, columns=["a", "b"])
    named = LRVBGaussianMixture(n_components=2, random_state=0).fit(frame)
    with pytest.raises(ValueError, match="'b' is a column of X and of outcome"):
        named.outcome_differences(frame, AGE.assign(b=3 * X[:, 1] + RNG.normal(size=N)))
    with pytest.raises(ValueError, match="'age' is a column of outcome and of covariates"):
        named.outcome_differences(frame, AGE, covariates=AGE)
    with pytest.raises(
        ValueError, match=r"kind must be one of 'effects', 'shares', 'coefficients', got 'means'"
    ):
        named.covariate_effects(frame, AGE, method="lrvb").summary("means")
    with pytest.raises(ValueError, match="without a rival"):
        named.deciding_rows(frame, effects=named.covariate_effects(frame, AGE), rival=named)
    with pytest.raises(ValueError, match="'sex' of covariates is constant in the 239 rows that take part"):
        sex = np.where(np.arange(N) == 3, "m", "f")
        age = np.where(np.arange(N) == 3, np.nan, AGE["age"])
        named.covariate_effects(frame, pd.DataFrame({"age": age, "sex": sex}))
    with pytest.raises(ValueError, match="levels are those of covariates"):
        named.outcome_differences(frame, AGE, levels={"sex": "m"})


# Pictures.


def test_a_covariate_has_a_line_and_a_band_for_every_cluster(estimator):
    table = AGE.assign(sex=RNG.choice(["f", "m"], N))
    effects = estimator.covariate_effects(X, table, method="lrvb")
    display = CovariateEffectsDisplay.from_result(effects)
    assert len(display.lines_) == 4
    shares = np.array([line.get_ydata() for line in display.lines_[:2]])
    np.testing.assert_allclose(shares.sum(axis=0), 1.0)
    of_sex = effects.summary("shares").loc[["share[0,sex=f]", "share[0,sex=m]"], "estimate"]
    np.testing.assert_allclose(display.lines_[2].get_ydata(), of_sex)
    plt.close("all")


def test_an_outcome_has_a_panel_for_every_category(estimator):
    outcomes = AGE.assign(grade=RNG.choice(["a", "b", "c"], N), ill=RNG.random(N) < 0.3)
    differences = estimator.outcome_differences(X, outcomes, method="lrvb")
    display = OutcomeDifferencesDisplay.from_result(differences, interval=0.5)
    assert len(display.lines_) == 1 + 3 + 1
    means = differences.summary().loc[["mean[0,age]", "mean[1,age]"], "estimate"]
    np.testing.assert_allclose(display.lines_[0].get_ydata(), means)
    plt.close("all")
