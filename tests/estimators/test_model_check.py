"""Does the model fit: classical tests, what is named, what it gains, and the line below tables."""

import pickle

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from catalogue import MODELS, few_of, fitted, mixture, model_id, overlapping
from incomplete_rows import incomplete
from scipy.special import ndtr
from scipy.stats import chi2, chi2_contingency, f_oneway, kurtosistest, skewtest
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning

from sklearn_lrvb import LRVBGaussianMixture, LRVBLatentClassMixture, number_of_clusters

CORRELATED = np.array([[1.0, 0.5], [0.5, 1.0]])


def one(n_rows=200, n_features=2, seed=0):
    return np.random.default_rng(seed).normal(size=(n_rows, n_features))


def clusters(n_rows=500, n_features=2, seed=0):
    """Three clusters of correlated columns that are far apart, and the cluster of every row."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(3, size=n_rows)
    centers = 6.0 * np.array([[0, 0], [1, 0.2], [0.3, 1]])
    X = rng.multivariate_normal([0, 0], CORRELATED, n_rows)
    others = rng.normal(size=(n_rows, n_features - 2))
    return np.hstack([X + centers[labels], others]), labels


def checked(X, n_components=1, weights=None, check=None, **model):
    estimator = LRVBGaussianMixture(n_components=n_components, random_state=0, **model)
    return estimator.fit(X, sample_weight=weights).model_check(X, sample_weight=weights, **(check or {}))


def p_of(check, kind, columns, component=0):
    table = check.summary()
    is_own = (table["kind"] == kind) & (table["columns"] == columns)
    if component is not None:
        is_own &= table["component"] == component
    (p_value,) = table.loc[is_own, "p_value"]
    return p_value


# Where the labels are known, the tests are the classical ones.


def test_columns_of_one_component_have_the_tests_of_normality():
    X = one()
    check, far_out = checked(X), checked(X**3)
    for column, values in zip(("x0", "x1"), X.T, strict=True):
        assert np.isclose(p_of(check, "skewness", column), skewtest(values).pvalue, rtol=1e-6)
        assert np.isclose(p_of(check, "tails", column), kurtosistest(values).pvalue, rtol=1e-6)
        # Beyond two standard deviations the transformation of the kurtosis promises too much.
        assert np.isclose(p_of(far_out, "skewness", column), skewtest(values**3).pvalue, rtol=1e-6)
        assert 1e-3 > p_of(far_out, "tails", column) > kurtosistest(values**3).pvalue


def test_columns_of_separate_components_have_them_too():
    X, labels = clusters()
    X += 20.0 * labels[:, None]
    check = checked(X, 3)
    order = np.argsort([X[check.examination.labels == k].mean() for k in range(3)])
    for k, own in zip(order, np.argsort([X[labels == k].mean() for k in range(3)]), strict=True):
        assert np.isclose(p_of(check, "skewness", "x1", k), skewtest(X[labels == own, 1]).pvalue, rtol=1e-6)


def test_correlations_have_the_test_of_fisher():
    X = one(100, 2, seed=3)
    z = np.arctanh(np.corrcoef(X.T)[0, 1]) * np.sqrt(97)
    check = checked(X, covariance_type="diag")
    assert np.isclose(p_of(check, "dependence", "x0, x1"), chi2.sf(z**2, 1), rtol=1e-6)


def test_components_that_have_their_own_correlations_are_not_tested_for_them():
    kinds = checked(one()).summary()["kind"]
    assert set(kinds) == {"skewness", "tails", "distances", "outliers"}


def survey(n_rows=300, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "a": rng.choice(list("xyz"), n_rows),
            "b": rng.choice(["yes", "no"], n_rows),
            "height": rng.normal(170, 10, n_rows),
            "visits": rng.poisson(3, n_rows),
        }
    )


def of_classes(X, n_components=1, **columns):
    return LRVBLatentClassMixture(n_components=n_components, columns=columns or "auto", random_state=0).fit(X)


def test_categories_have_the_tests_of_pearson_and_of_variance():
    X = survey().drop(columns="visits")
    check = of_classes(X).model_check(X)
    counts, n = pd.crosstab(X["a"], X["b"]), len(X)
    statistic = chi2_contingency(counts, correction=False)
    expected = chi2.sf(statistic.statistic * (n - 1) / n, statistic.dof)
    assert np.isclose(p_of(check, "dependence", "a, b"), expected, rtol=1e-6)
    groups = [own["height"] for _, own in X.groupby("a")]
    ratio = f_oneway(*groups).statistic * 2 / (n - 3)  # Of the variance between groups to that within.
    expected = chi2.sf((n - 1) * ratio / (1 + ratio), 2)
    assert np.isclose(p_of(check, "dependence", "a, height"), expected, rtol=1e-6)


def test_missing_values_leave_the_tests_of_what_is_there():
    X = one(300) ** 3
    X[::3, 0] = np.nan
    check = checked(X)
    assert np.isclose(p_of(check, "skewness", "x0"), skewtest(X[~np.isnan(X[:, 0]), 0]).pvalue, rtol=1e-6)
    table = survey().drop(columns="visits")
    table.loc[::3, "a"] = None
    seen = table[table["a"].notna()]
    statistic = chi2_contingency(pd.crosstab(seen["a"], seen["b"]), correction=False)
    p_value = p_of(of_classes(table).model_check(table), "dependence", "a, b")
    assert np.isclose(p_value, chi2.sf(statistic.statistic, statistic.dof), rtol=0.1)


@pytest.mark.parametrize("share_missing", [0.0, 0.3])
def test_distances_are_those_of_the_values_that_are_there(share_missing):
    rng = np.random.default_rng(0)
    covariance = 0.5 * np.eye(3) + 0.5
    X = rng.multivariate_normal(np.zeros(3), covariance, 3000)
    X[rng.random(X.shape) < share_missing] = np.nan
    X = X[~np.isnan(X).all(axis=1)]
    scores = checked(X).examination.scores.distances
    expected = []
    for row in X:
        seen = ~np.isnan(row)
        square = row[seen] @ np.linalg.solve(covariance[np.ix_(seen, seen)], row[seen])
        expected.append(chi2.cdf(square, seen.sum()))
    assert np.abs(ndtr(scores) - expected).max() < 0.1  # The covariance is fitted, and drawn.


def test_counts_and_durations_are_tested_for_their_variance():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"visits": rng.negative_binomial(2, 0.3, 400), "wait": rng.gamma(4.0, size=400)})
    check = of_classes(X, visits="count", wait="duration").model_check(X)
    sizes = check.summary().query("kind == 'variance'").set_index("columns")["size"]
    assert sizes["visits"] > 1.5 and sizes["wait"] < 0.7
    assert not check.fits


# Calibration.


@pytest.mark.slow
def test_p_values_are_uniform_if_the_model_holds():
    of_tests, of_all = [], []
    for seed in range(120):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(90, 2)) + 3.0 * rng.integers(2, size=90)[:, None]
        check = checked(X, 2, covariance_type="diag")
        of_tests += check.summary()["p_value"].tolist()
        of_all.append(check.p_value)
    of_tests = np.array(of_tests)
    assert 0.02 < np.mean(of_tests < 0.05) < 0.06
    assert np.mean(of_tests < 0.01) < 0.015
    assert np.mean(np.array(of_all) < 0.05) < 0.08  # 0.05, and two standard errors of 120 tables.


# What does not matter.


def p_values_of(check):
    table = check.summary().sort_values(["kind", "columns", "component"])
    return table["p_value"].to_numpy()


@pytest.mark.slow
def test_units_do_not_matter():
    X, _ = clusters(300)
    expected = p_values_of(checked(X, 3, covariance_type="diag"))
    scaled = checked(1e4 * X * [1.0, 1e-3] + [5.0, 1e3], 3, covariance_type="diag", reg_covar=0.0)
    np.testing.assert_allclose(p_values_of(scaled), expected, rtol=1e-3)


@pytest.mark.slow
def test_names_and_containers_do_not_matter():
    X, _ = clusters(6000)
    expected = checked(X, 3)
    assert (expected.n_rows, expected.n_given) == (5000, 6000)
    parts = [X[:2500], X[2500:]]
    for rows in (parts, lambda: iter(parts), da.from_array(X, chunks=(2500, 2)), pd.DataFrame(X)):
        estimator = LRVBGaussianMixture(n_components=3, random_state=0, init_params="random_from_data")
        fit = estimator.fit(rows)
        same = LRVBGaussianMixture(n_components=3, random_state=0, init_params="random_from_data").fit(X)
        found, wanted = fit.model_check(rows), same.model_check(X)
        np.testing.assert_allclose(p_values_of(found), p_values_of(wanted), rtol=1e-4)
        assert "5000 of 6000 rows" in repr(found)


@pytest.mark.slow
def test_whole_weights_are_repeated_rows_and_weights_of_zero_none():
    X, _ = clusters(200)
    weights = np.random.default_rng(0).integers(0, 3, 200)
    repeated = np.repeat(X, weights, axis=0)
    fit = LRVBGaussianMixture(n_components=3, random_state=0).fit(X, sample_weight=weights)
    same = LRVBGaussianMixture(n_components=3, random_state=0).fit(repeated)
    found, expected = fit.model_check(X, sample_weight=weights), same.model_check(repeated)
    assert found.n_rows == weights.sum()
    np.testing.assert_allclose(p_values_of(found), p_values_of(expected), rtol=1e-4)


def test_other_weights_are_worth_fewer_rows():
    X, _ = clusters(300)
    weights = np.random.default_rng(0).random(300)
    assert checked(X, 3, weights).n_rows == round(weights.sum())  # What the fit takes them for.
    check = checked(X, 3, 4.0 * weights)
    assert check.n_rows == round(weights.sum() ** 2 / np.square(weights).sum())


def test_values_are_repeated_if_groups_share_them():
    rng = np.random.default_rng(0)
    site = np.repeat(np.arange(20), 50)
    X = pd.DataFrame({"a": rng.normal(size=1000), "level": rng.normal(size=1000).round(1)})
    X["level"] = X.groupby(site)["level"].transform("first")
    X["rare"] = (rng.random(1000) < 0.02).astype(float)
    with pytest.warns(UserWarning, match="values"):
        fit = LRVBGaussianMixture(n_components=2, random_state=0).fit(X)
    for seed in range(5):  # Nearly all groups have the same value of "rare".
        check = fit.model_check(X, groups=site, random_state=seed)
        assert not any(own.kind == "few values" and own.column == 1 for own in check.repeated)


def test_groups_count_as_one_row():
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(60, 2)), 20, axis=0) + 0.1 * rng.normal(size=(1200, 2))
    patient = np.repeat(np.arange(60), 20)
    fit = LRVBGaussianMixture(covariance_type="diag", random_state=0).fit(X)
    assert fit.model_check(X).p_value < 1e-4
    assert fit.model_check(X, groups=patient).p_value > 0.05
    alone = fit.model_check(X, groups=range(1200))
    np.testing.assert_allclose(p_values_of(alone), p_values_of(fit.model_check(X)), rtol=1e-9)


@pytest.mark.slow
def test_it_is_the_same_again_in_a_pickle_and_with_threads():
    X, _ = clusters(300)
    fit = LRVBGaussianMixture(n_components=3, random_state=0, covariance_type="diag").fit(X)
    check = fit.model_check(X)
    threads = fit.set_params(n_jobs=2).model_check(X)
    again = pickle.loads(pickle.dumps(fit)).model_check(X, random_state=0)
    for other in (pickle.loads(pickle.dumps(check)), threads, again):
        np.testing.assert_allclose(p_values_of(other), p_values_of(check), rtol=1e-9)
        assert other.verdict == check.verdict


@pytest.mark.parametrize("model", few_of(MODELS), ids=model_id)
def test_every_model_is_checked(model):
    for X in (overlapping(), incomplete()):
        estimator = mixture(model).fit(X)
        before = estimator.lower_bound_
        check = estimator.model_check(X)
        assert 0.0 <= check.p_value <= 1.0
        assert len(check.examination.tests) > 5
        assert estimator.lower_bound_ == before


def test_surplus_and_few_rows_are_checked():
    X, _ = clusters(200)
    assert checked(X, 6).fits
    assert checked(X[:9], 2).p_value > 0.0
    assert len(checked(X[:9], 2).examination.tests) == 1  # That of outliers.


# What is named.


def log_normal(rng, n_rows):
    X = rng.normal(size=(n_rows, 2)) + 6.0 * rng.integers(2, size=n_rows)[:, None]
    X[:, 0] = np.exp(0.5 * X[:, 0])
    return X


def with_outliers(rng, n_rows):
    X, _ = clusters(n_rows)
    X[: n_rows // 20] = rng.uniform(-15, 15, size=(n_rows // 20, 2))
    return X


def of_student(rng, n_rows):
    return rng.standard_t(4, size=(n_rows, 2)) + 8.0 * rng.integers(2, size=n_rows)[:, None]


DEPARTURES = {
    "heavy tails": (of_student, 2, {}, "tails='student'"),
    "outliers": (with_outliers, 3, {}, "noise=True"),
    "skewness": (log_normal, 2, {}, "logarithm of 'x0'"),
    "more components": (lambda rng, n: clusters(n)[0], 2, {}, "n_components=3"),
    "covariances": (lambda rng, n: clusters(n)[0], 3, {"covariance_type": "diag"}, "covariance_type='tied'"),
}


@pytest.mark.parametrize(
    "kind",
    [kind if kind == "covariances" else pytest.param(kind, marks=pytest.mark.slow) for kind in DEPARTURES],
)
def test_a_departure_is_named_as_that_and_not_as_another(kind):
    simulated, n_components, model, advice = DEPARTURES[kind]
    check = checked(simulated(np.random.default_rng(0), 500), n_components, **model)
    assert not check.fits
    first = next(remedy for remedy in check.remedies if remedy.kind != "start")
    assert first.kind == kind and advice in first.advice and first.gain > 10
    assert first.sentence in check.verdict


@pytest.mark.parametrize("n_outliers", [0, 30])
def test_a_better_start_is_told_first_and_examined_in_place_of_the_fit(n_outliers):
    X, labels = clusters(300)
    halves = X[:, 1] > X[labels == 0, 1].mean()  # Two components share a cluster, and one has two.
    X = np.concatenate([X, np.random.default_rng(1).uniform(-40, 40, (n_outliers, 2))])
    bad = np.eye(3)[np.append(np.where(labels == 0, halves, 2), np.zeros(n_outliers, dtype=int))]
    model = {"n_components": 3, "moves": None, "random_state": 0}
    fit = LRVBGaussianMixture(init_params=bad, **model).fit(X)
    check = fit.model_check(X)
    assert fit.n_occupied_ == 3
    start, *others = check.remedies
    assert start.kind == "start"
    if n_outliers:  # Gains add up.
        noisy = LRVBGaussianMixture(noise=True, **model).fit(X)
        assert others[0].kind == "outliers"
        assert np.isclose(start.gain + others[0].gain, noisy.log_evidence_ - fit.log_evidence_, atol=0.2)
    else:
        best = LRVBGaussianMixture(n_init=5, **model).fit(X)
        assert np.isclose(start.gain, best.log_evidence_ - fit.log_evidence_, atol=0.2)
        assert not others and "Nothing departs from that one." in check.verdict


def test_columns_of_few_values_are_named():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(clusters(400)[0], columns=["a", "b"]).assign(smoker=rng.integers(0, 2, 400))
    with pytest.warns(UserWarning, match="single values of 'smoker'"):
        fit = LRVBGaussianMixture(n_components=3, random_state=0).fit(X)
    check = fit.model_check(X)
    assert check.verdict.startswith("The model does not fit. Column 'smoker' has 2 values")
    assert {remedy.kind for remedy in check.remedies} == {"few values"}
    assert any("'smoker' as 'categorical'" in remedy.advice for remedy in check.remedies)


def rain(rng, n_rows=600):
    X, _ = clusters(n_rows)
    wet = np.exp(rng.normal(size=n_rows)) * (rng.random(n_rows) < 0.5)
    return pd.DataFrame({"warmth": X[:, 0], "wind": X[:, 1], "rain": wet})


def test_spikes_are_named():
    X = rain(np.random.default_rng(0))
    check = checked(X, 3)
    assert "is a spike in column 'rain'" in check.verdict and "Split column 'rain' in two" in check.verdict
    assert np.isnan(check.remedies[0].gain)


def test_rounding_is_no_departure():
    X, _ = clusters(400)
    assert checked(X.round(1), 3).fits
    coarse = checked(X.round(0), 3)
    assert {own.kind for own in coarse.repeated} == {"coarse"}
    assert not any(own.is_gross for own in coarse.repeated)
    setosa = checked(load_iris().data, 3).repeated  # Of 50 widths in tenths of a centimetre 29 are 0.2.
    assert [(own.kind, own.column) for own in setosa] == [("coarse", 3)]


def test_a_few_zeros_among_continuous_values_are_a_spike_and_no_grid():
    X = one(600) + 5.0
    X[:48, 0] = 0.0
    with pytest.warns(UserWarning, match="single values"):
        repeated = checked(X, 2).repeated
    assert [(own.kind, own.column, own.value) for own in repeated] == [("spike", 0, 0.0)]


@pytest.mark.filterwarnings("ignore:Components have shrunk")
@pytest.mark.parametrize("others", [[], [39.0, 41.0], [39.0, 41.0, 39.0, 40.0]])
def test_a_few_equal_rows_are_no_spike(others):
    values = [40.0] * 10 + others
    X = np.concatenate([one(300), [40.0, 5.0] + one(len(values))])
    X[300:, 0] = values
    check = checked(X, 2)
    assert (check.examination.labels[300:] == 1).all()
    assert not any(own.kind == "spike" for own in check.repeated)


def test_outlying_rows_have_their_numbers():
    X = one(400)
    X[[7, 250]] = [[6.0, -6.0], [-5.0, 7.0]]
    weights = np.ones(400)
    weights[:5] = 0.0
    assert checked(X, weights=weights).outlying_rows.tolist() == [7, 250]


@pytest.mark.slow
def test_latent_classes_say_what_is_missing():
    rng = np.random.default_rng(0)
    classes = rng.integers(2, size=600)
    X = pd.DataFrame({f"q{j}": rng.random(600) < np.where(classes, 0.9, 0.15) for j in range(5)})
    few = of_classes(X, 1).model_check(X)
    assert few.remedies[0].kind == "more components" and few.remedies[0].gain > 100
    assert of_classes(X, 2).model_check(X).fits
    X["visits"] = rng.negative_binomial(1, 0.2, 600)
    with pytest.warns(UserWarning, match="variance of column 'visits'"):
        fit = of_classes(X, 2, visits="count")
    wide = fit.model_check(X)
    assert "let the square root of 'visits' be 'numeric'" in [remedy.advice for remedy in wide.remedies]


@pytest.mark.slow
def test_dependent_numbers_in_a_class_lead_to_the_gaussian_mixture():
    X = pd.DataFrame(clusters(500)[0], columns=["a", "b"])
    best = of_classes(X, 3).model_check(X).remedies[0]
    assert best.kind == "covariances" and "LRVBGaussianMixture" in best.advice and best.gain > 10


# What it gains.


def gain_of(check, *advice):
    (gain,) = [own.gain for own in check.remedies if all(part in own.advice for part in advice)]
    return gain


def log_evidence(X, **model):
    return LRVBGaussianMixture(random_state=0, **model).fit(X).log_evidence_


def test_gains_are_differences_of_log_evidences():
    X = np.exp(np.random.default_rng(0).multivariate_normal([0, 0], CORRELATED, 300))
    check = checked(X, covariance_type="diag")
    own = log_evidence(X, covariance_type="diag")
    full = log_evidence(X, covariance_type="full")
    assert np.isclose(gain_of(check, "covariance_type='full'"), full - own, atol=1e-3)
    log_derivative = -np.log(X).sum()
    of_logs = log_evidence(np.log(X), covariance_type="diag") + log_derivative
    assert np.isclose(gain_of(check, "logarithm of", "'x0'", "'x1'"), of_logs - own, atol=0.01)
    student = log_evidence(X, covariance_type="diag", tails="student")
    assert np.isclose(gain_of(check, "tails='student'"), student - own, atol=0.01)


@pytest.mark.parametrize("weights", ["dirichlet_process", "dirichlet_distribution"])
def test_models_without_evidence_are_compared_by_their_bounds(weights, monkeypatch):
    X, _ = clusters(300)
    prior = {"weight_concentration_prior_type": weights, "random_state": 0}
    own, other = (LRVBGaussianMixture(n_components=k, **prior).fit(X) for k in (2, 3))
    sizes = [fit._uncertainty.fitted.posterior.n_coefficients for fit in (own, other)]
    expected = other.lower_bound_ - own.lower_bound_, other.log_evidence_ - own.log_evidence_
    gains = [gain_of(own.model_check(X), "n_components=3")]
    monkeypatch.setattr("sklearn_lrvb.estimators.remedies.MOST_UNKNOWNS", sizes[0])
    gains.insert(0, gain_of(own.model_check(X), "n_components=3"))
    np.testing.assert_allclose(gains, expected, atol=0.01)  # P(2) is 3 P(3), and there are 3 orders for each.


def logs_of(remedy, X):
    return eval(remedy.formulas[0].replace("'x0'", "X[:, 0]"), {"log": np.log, "X": X})


def test_a_logarithm_has_a_value_for_every_row():
    rng = np.random.default_rng(1)
    for sign, offset in ((1.0, 1000.0), (1.0, -7.0), (1.0, 5e9 + 0.9), (-1.0, 1013.0)):
        X = one(400)
        X[:, 0] = offset + sign * rng.lognormal(size=400)
        (remedy,) = [own for own in checked(X).remedies if own.kind == "skewness"]
        assert remedy.is_model and remedy.gain > 100
        assert remedy.formulas[0][4:-1] in remedy.advice
        logs = logs_of(remedy, X)
        gain = log_evidence(np.column_stack([logs, X[:, 1]])) - logs.sum() - log_evidence(X)
        gain -= 0.5 * np.log(400)  # The origin is a parameter.
        assert np.isclose(gain, remedy.gain, atol=1.0)  # The origin is rounded.
    X[:6, 0] = [1043.0, 1048.0, 1054.0, 1057.0, 1059.0, 1065.0]  # Noise needs logarithms, too.
    for remedy in checked(X, noise=True).remedies:
        assert remedy.kind != "skewness" or not remedy.is_model or remedy.gain < 50
    X = np.column_stack([rng.lognormal(size=12_000), rng.normal(size=12_000)])
    X[17, 0] = -0.5  # Not in the sample, perhaps.
    remedies = [own for own in checked(X).remedies if own.kind == "skewness" and own.is_model]
    assert remedies and np.isfinite(logs_of(remedies[0], X)).all()


def test_a_column_of_few_values_is_compared_by_uniform_noise():
    rng = np.random.default_rng(0)
    X = (rng.random((300, 1)) < 0.3) * 2.0
    noisy = X + rng.uniform(-1, 1, X.shape)
    of_values = log_evidence(noisy) + 300 * np.log(2.0)  # As wide as the gap.
    classes = LRVBLatentClassMixture(n_components=1, columns={0: "categorical"}, random_state=0).fit(X)
    gain = gain_of(checked(X), "as 'categorical'")
    assert np.isclose(gain, classes.log_evidence_ - of_values, atol=10.0)


def test_few_values_gain_the_same_whatever_the_prior_of_the_weights():
    X, labels = clusters(400)
    X = np.column_stack([X, np.random.default_rng(0).random(400) < 0.2 + 0.3 * labels])
    gains = []
    for weights in ("dirichlet_process", "dirichlet_distribution"):
        with pytest.warns(UserWarning, match="values"):
            check = checked(X, 3, weight_concentration_prior_type=weights)
        gains.append(gain_of(check, "as 'categorical'"))
    assert np.isclose(*gains, atol=0.5)


def test_a_flat_prior_has_no_evidence_and_gives_way_to_a_learned_one():
    X = np.random.default_rng(0).multivariate_normal([0, 0], CORRELATED, 300)
    check = checked(X, covariance_type="diag", prior="flat")
    expected = log_evidence(X, covariance_type="full") - log_evidence(X, covariance_type="diag")
    assert np.isclose(gain_of(check, "covariance_type='full'"), expected, atol=1e-3)


def test_matrices_of_fewer_rows_than_columns_are_not_compared_by_evidences():
    X = np.random.default_rng(0).normal(size=(40, 60)) ** 3
    with pytest.warns(UserWarning, match="rows on average"):
        check = checked(X)
    assert "has 40 rows on average" in check.verdict
    assert "Use covariance_type='diag', or fewer columns" in check.verdict
    assert np.isnan([own.gain for own in check.remedies]).all()
    X = np.random.default_rng(0).normal(size=(1000, 12)) ** 3
    check = checked(X, check={"groups": np.arange(1000) // 100})  # Ten groups are too few.
    assert check.remedies == () and "rows on average" not in check.verdict


@pytest.mark.parametrize("moves", ["search", "merge", None])
def test_a_search_does_not_hide_other_models(moves):
    X = of_student(np.random.default_rng(0), 600)
    expected, found = (checked(X, 2, moves=own) for own in ("auto", moves))
    gain = gain_of(found, "student")
    assert gain > 30 and np.isclose(gain, gain_of(expected, "student"), atol=0.1)


def test_a_fit_that_did_not_converge_is_told_first():
    X, _ = clusters(300)
    start = {"init_params": np.random.default_rng(0).dirichlet(np.ones(3), 300), "max_iter": 1, "moves": None}
    with pytest.warns(ConvergenceWarning):
        check = checked(X, 3, **start)
    assert "The fit did not converge, and there is a better one." in check.verdict
    assert check.remedies[0].advice == "fit with n_init=12 and max_iter=500"


def test_nothing_is_fitted_where_the_model_fits():
    check = checked(*[clusters(400)[0]], 3)
    assert check.fits and check.remedies == ()
    assert check.verdict.startswith("Nothing speaks against the model")


# What is said.


def test_the_display_has_verdict_departures_and_gains():
    X = of_student(np.random.default_rng(0), 300)
    check = checked(X, 2)
    for text in (repr(check), check._repr_html_()):
        assert "Departures:" in text and "Other models:" in text and "log evidence gains" in text
    table = check.summary()
    assert len(check.examination.departures) == (table["p_adjusted"] < 0.05).sum() < len(table)
    assert table["p_value"].is_monotonic_increasing
    np.testing.assert_allclose(table["p_adjusted"], np.minimum(table["p_value"] * len(table), 1.0))


def test_gross_departures_are_told_below_tables_and_in_verdicts():
    X = pd.DataFrame(np.exp(one(300)), columns=["income", "age"])
    fit = LRVBGaussianMixture(random_state=0).fit(X)
    expected = "The model does not fit: Column 'age' is skew in component 0"
    assert expected in fit.posterior().summary().attrs["columns"]
    assert expected not in pickle.loads(pickle.dumps(fit)).posterior().summary().attrs["columns"]
    assert expected in pickle.loads(pickle.dumps(fit)).posterior(X).summary().attrs["columns"]
    few = {"n_components": [1], "n_init": 1, "n_draws": 200, "another_prior": False, "random_state": 0}
    assert expected in number_of_clusters(LRVBGaussianMixture(), X, **few).verdict
    assert fitted({}).posterior().summary().attrs["columns"] == ""
    assert "does not fit" not in number_of_clusters(LRVBGaussianMixture(), one(300), **few).verdict


def test_what_a_warning_has_said_is_not_said_again():
    X = pd.DataFrame(load_iris().data[:, :2], columns=["a", "b"]).assign(kind=load_iris().target % 2)
    with pytest.warns(UserWarning, match="two values|single values"):
        fit = LRVBGaussianMixture(n_components=2, random_state=0).fit(X)
    assert "does not fit" not in fit.posterior(method="lrvb").summary().attrs["columns"]
    # Another column, whose name is a word of the warning.
    X = pd.DataFrame({"kind": np.arange(400) % 2, "categorical": np.exp(3.0 * one(400)[:, 0])})
    with pytest.warns(UserWarning, match="'kind': 'categorical'"):
        fit = LRVBGaussianMixture(n_components=2, random_state=0).fit(X)
    assert "'categorical' is skew" in fit.posterior(method="lrvb").summary().attrs["columns"]


def test_bad_input_is_refused():
    X, _ = clusters(100)
    fit = LRVBGaussianMixture(n_components=3, random_state=0).fit(X)
    with pytest.raises(ValueError, match="model_check needs the training rows"):
        fit.model_check(None)
    with pytest.raises(ValueError, match="not what the mixture was fitted to"):
        fit.model_check(X[:50])
    with pytest.raises(ValueError, match="groups"):
        fit.model_check(X, groups=range(7))


@pytest.mark.slow
def test_groups_of_a_model_that_does_not_fit():
    rng = np.random.default_rng(0)
    X = np.exp(np.repeat(rng.normal(size=(150, 2)), 3, axis=0) + 0.1 * rng.normal(size=(450, 2)))
    patient = np.repeat(np.arange(150), 3)
    fit = LRVBGaussianMixture(random_state=0).fit(X)
    check = fit.model_check(X, groups=patient)
    whole = gain_of(fit.model_check(X), "logarithm of", "'x0'", "'x1'")
    assert gain_of(check, "logarithm of", "'x0'", "'x1'") < 0.5 * whole  # A third of the rows count.


# What is easily got wrong.


def accused(simulated, fit, n_tables=25, **check):
    tables = [simulated(np.random.default_rng(seed)) for seed in range(n_tables)]
    return sum(not fit(X).model_check(X, **check).fits for X in tables)


@pytest.mark.slow
@pytest.mark.parametrize("shares", [[0.98, 0.02], [0.4, 0.3, 0.15, 0.08, 0.04, 0.02, 0.01]])
def test_rare_categories_do_not_depend_on_each_other(shares):
    def simulated(rng):
        names = list("abcdefg")[: len(shares)]
        return pd.DataFrame({f"c{j}": rng.choice(names, 300, p=shares) for j in range(8)})

    assert accused(simulated, of_classes) <= 4


@pytest.mark.slow
def test_groups_of_latent_classes_are_not_accused():
    def simulated(rng):
        centers = 8.0 * (np.arange(60) % 2)
        X = np.repeat(rng.normal(size=(60, 3)) + centers[:, None], 6, axis=0)
        return pd.DataFrame(X, columns=["a", "b", "c"])

    def fit(X):
        return of_classes(X, 2)

    assert accused(simulated, fit, groups=np.repeat(np.arange(60), 6)) <= 4


def test_ignored_columns_and_rows_without_values_keep_their_places():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"id": range(200), "wait": rng.exponential(size=200), "other": rng.normal(size=200)})
    check = of_classes(table, id="ignore", wait="numeric").model_check(table)
    assert check.remedies[0].kind == "skewness" and check.remedies[0].columns == ("wait",)
    X = one(300)
    X[:50], X[200] = np.nan, 30.0
    for rows in (X, da.from_array(X, chunks=(60, 2)), [X[:120], X[120:]]):
        assert checked(rows).outlying_rows.tolist() == [200]


@pytest.mark.slow
def test_what_is_set_after_the_fit_changes_nothing():
    X = np.exp(clusters(200)[0] / 6.0)
    fit = LRVBGaussianMixture(n_components=2, random_state=0).fit(X)
    expected = repr(fit.model_check(X))
    fit.set_params(tails="student", noise=True, covariance_type="diag", n_components=5, prior="flat")
    assert repr(fit.model_check(X)) == expected


@pytest.mark.slow
def test_skew_columns_that_were_centred_are_told_from_clusters():
    X = np.exp(0.6 * one(300))
    for rows in ((X - X.mean(axis=0)) / X.std(axis=0), -X):
        best = checked(rows).remedies[0]
        assert best.kind == "skewness" and "before they were centred" in best.advice


@pytest.mark.slow
def test_samples_have_rows_of_all_kinds():
    rng = np.random.default_rng(0)
    X = np.empty((12_000, 1))
    X[0::2], X[1::2] = rng.gamma(1.5, size=(6000, 1)) + 12.0, rng.normal(size=(6000, 1))
    check = checked(X, 2)
    assert 2300 < (check.examination.labels == check.examination.labels[0]).sum() < 2700


@pytest.mark.slow
def test_a_ring_is_no_noise():
    rng = np.random.default_rng(0)
    angles = rng.uniform(0, 2 * np.pi, 400)
    ring = 3.0 * np.column_stack([np.cos(angles), np.sin(angles)]) + 0.2 * rng.normal(size=(400, 2))
    assert "outliers" not in {remedy.kind for remedy in checked(ring).remedies}


def test_too_few_groups_are_told():
    check = checked(one(40), check={"groups": np.arange(40) // 10})
    assert check.n_rows == 4
    assert check.verdict.startswith("Too little to tell")


def test_the_generator_of_numpy_stays_where_it_is():
    X = np.exp(one(100))
    fit = LRVBGaussianMixture().fit(X)
    before = np.random.get_state()[2]
    fit.model_check(X)
    assert np.random.get_state()[2] == before
