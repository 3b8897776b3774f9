"""Experiments on accuracy: they run, are reported, and compare what they say."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from catalogue import unique
from scipy.spatial.distance import cdist
from sklearn.mixture import BayesianGaussianMixture

from benchmarks.accuracy import cluster_regression, coverage, heavy_tails, model_check, outliers, priors
from benchmarks.accuracy.cluster_regression.fits import summed_up
from benchmarks.accuracy.surplus import fits, section
from benchmarks.harness.rows import newest
from benchmarks.problems.explained_clusters import DESIGNS, LatentClasses
from benchmarks.problems.heavy_tails import HeavyTails
from benchmarks.problems.model_departures import DEPARTURES
from benchmarks.problems.outliers import outlier_table
from benchmarks.problems.populations import SCENARIOS
from sklearn_lrvb import LRVBGaussianMixture


@pytest.mark.slow
def test_every_experiment_is_on_the_page_with_its_figure(check_page):
    check_page("accuracy")


@pytest.mark.slow
def test_leave_one_out_scores_are_nearer_to_refits_than_the_others(measured):
    for row in measured("leave_one_out"):
        assert row["loo_mean_error"] < row["first_order_mean_error"] < row["seen_mean_error"]
        assert row["seen_error_of_sum"] == 1.0


@pytest.mark.slow
def test_linear_response_of_latent_classes_is_nearer_to_long_chains_than_mean_field(measured):
    for row in measured("latent_classes"):
        for part in ("weights", "columns"):
            assert row[f"exact_{part}"] < row[f"lrvb_{part}"] < row[f"mean_field_{part}"]


@pytest.mark.parametrize("kind", ("dirichlet_process", "dirichlet_distribution"))
@pytest.mark.parametrize("library", (LRVBGaussianMixture, BayesianGaussianMixture))
def test_expected_counts_are_of_all_rows(library, kind):
    X = np.random.default_rng(0).normal(size=(50, 2)) + np.repeat([[0.0], [20.0]], 25, axis=0)
    arguments = {"n_components": 2, "weight_concentration_prior_type": kind, "random_state": 0}
    mixture = library(**arguments).fit(X)
    np.testing.assert_allclose(fits.expected_counts(mixture), [25, 25], rtol=1e-6)
    assert fits.n_occupied(mixture) == 2


@pytest.mark.slow
def test_a_fit_that_continues_from_scikit_learn_does_not_end_lower(measured):
    rows = measured("surplus")
    assert {row["set"] for row in rows} == {"known", "fresh", "ctgan"}
    both = [row for row in rows if row.get("theirs_bound") is not None]
    assert both
    for row in both:
        assert row["theirs_continued_bound"] >= row["theirs_bound"] - 1e-9 * abs(row["theirs_bound"])


@pytest.mark.slow
def test_the_section_on_surplus_components_counts_fits_that_end_lower(measured):
    rows = [row | {"mode": "full"} for row in measured("surplus")]
    bounds = {f"{side}_bound": 0.0 for side in ("plain", "auto", "merge", "search", "restarts", "theirs")}
    rows = [row | bounds | {"plain_default_bound": 0.0} for row in rows]
    known = sum(row["set"] == "known" for row in rows)
    assert f"| 0 / {known} / 0 |" in section(rows)
    text = section([rows[0] | {"auto_bound": -3.0}, rows[1] | {"auto_bound": 0.02}, *rows[2:]])
    assert f"| 1 / {known - 2} / 1, worst -3 |" in text


@pytest.mark.slow
def test_coverage_has_every_method_and_group_and_says_what_it_left_out(measured):
    rows = measured("coverage")
    settings = {row["setting"] for row in rows}
    assert len(rows) == 12 * len(settings)
    assert {row["misspecified"] is None for row in rows} == {True, False}
    for row in rows:
        assert 0 <= row["coverage"] <= 1
        assert row["sd_over_truth"] > 0
        assert row["left_out"] == sum(row[reason] for reason in coverage.REASONS)


def _scenario(name):
    return next(scenario for scenario in SCENARIOS if scenario.name == name)


@pytest.mark.slow
@pytest.mark.parametrize("name", ("five features", "tied", "diagonal", "spherical"))
def test_errors_and_sds_of_coverage_are_of_the_same_parameters(name):
    scenario = _scenario(name)
    X, truth = scenario.simulate(1), coverage.true_parameters(scenario, 0)
    compared = coverage.compared(scenario, X, truth)
    model = {"covariance_type": scenario.covariance_type, "prior": "flat", "reg_covar": 0.0}
    mixture = LRVBGaussianMixture(n_components=scenario.n_components, random_state=0, **model).fit(X)
    order = cdist(truth["means"], mixture.means_).argmin(axis=1)
    own = {"means": mixture.means_[order].ravel()}
    own_std = {"means": mixture.means_std_[order].ravel()}
    for group in ("precisions", "covariances"):
        values, stds = getattr(mixture, f"{group}_"), getattr(mixture, f"{group}_std_")
        by_component = slice(None) if name == "tied" else order
        own[group], own_std[group] = (unique(model, matrices[by_component]) for matrices in (values, stds))
    own["log_weights"] = mixture.posterior_mean_[order]
    own_std["log_weights"] = mixture.posterior_std_[order]
    for group in coverage.GROUPS:
        found = (compared["error"][group] + truth[group]).ravel()
        np.testing.assert_allclose(found, own[group], rtol=1e-9, atol=1e-12, err_msg=group)
        np.testing.assert_allclose(compared["lrvb"][group].ravel(), own_std[group], rtol=1e-6, err_msg=group)


@pytest.mark.parametrize("name", ("five features", "tied"))
def test_coverage_does_not_depend_on_the_order_of_components(name):
    scenario = _scenario(name)
    X, truth = scenario.simulate(1), coverage.true_parameters(scenario, 0)
    backwards = np.arange(scenario.n_components)[::-1]
    other = coverage.compared(scenario, X, coverage.ordered(truth, backwards))
    for kind, groups in coverage.compared(scenario, X, truth).items():
        for group, values in coverage.ordered(groups, backwards).items():
            np.testing.assert_array_equal(other[kind][group], values, err_msg=f"{kind}, {group}")


@pytest.mark.slow
def test_a_pseudo_truth_is_the_truth_where_the_model_is_right():
    scenario = _scenario("3.5 sd")
    truth = coverage.true_parameters(scenario, 0)
    found = coverage.true_parameters(dataclasses.replace(scenario, wrong="nothing"), 100_000)
    order = cdist(truth["means"], found["means"]).argmin(axis=1)
    for group, values in coverage.ordered(found, order).items():
        np.testing.assert_allclose(values, truth[group], atol=0.05, err_msg=group)


@pytest.mark.slow
def test_noise_moves_means_less_than_outliers_do(measured):
    by_setting = {}
    for row in measured("outliers"):
        by_setting.setdefault(row["setting"], {})[row["method"]] = row
    for methods in by_setting.values():
        assert methods["clean"]["shift"] == 0.0
        assert methods["clean"]["found"] == methods["clean"]["n_outliers"]
        assert methods["plain"]["found"] == methods["theirs"]["found"] == 0
        assert set(outliers.METHODS) == set(methods)
    contaminated = by_setting["20 % uniform, P = 2"]
    assert contaminated["noise"]["shift"] < 0.5 * contaminated["plain"]["shift"]
    assert contaminated["noise"]["agreement"] > contaminated["plain"]["agreement"]
    assert by_setting["clean, P = 2"]["noise"]["lost"] == 0


def test_shifts_of_means_do_not_depend_on_the_order_of_components_or_on_units():
    table = outlier_table("clean", 2, 0)
    clean, _ = outliers._clean(table)
    moved = clean.means_[::-1] + 2.0 * clean.means_std_[::-1]
    assert outliers._shifts(clean, moved) == pytest.approx({"shift": 2.0, "farthest": 2.0})
    scaled = LRVBGaussianMixture(
        **outliers._ARGUMENTS, prior="fixed", init_params=clean.predict_proba(table.X)
    ).fit(10 * table.X)
    assert outliers._shifts(scaled, 10 * moved) == pytest.approx({"shift": 2.0, "farthest": 2.0}, rel=1e-4)


@pytest.mark.slow
def test_heavy_tails_have_every_method_and_group(measured):
    rows = measured("heavy_tails")
    found = {(row["method"], row["group"]) for row in rows}
    of_all = {
        (method, group) for method in heavy_tails.METHODS for group in ("weights", "means", "covariances")
    }
    assert found == of_all | {("student", "scales")}
    for row in rows:
        assert 0 <= row["coverage"] <= 1
    rmse = {(row["method"], row["group"]): row["rmse"] for row in rows}
    assert rmse["student", "covariances"] < rmse["normal", "covariances"]


def test_errors_of_heavy_tails_are_of_the_same_parameters_as_their_sds():
    problem = HeavyTails(5.0, 8.0, n_components=3)
    X, truth = problem.simulate(0), heavy_tails._truth(problem)
    mixture = heavy_tails._fitted(problem, X, {"tails": "student"})
    order = cdist(truth["means"], mixture.means_).argmin(axis=1)
    found = heavy_tails._compared(mixture, X, "lrvb", problem, truth)
    entries = np.triu_indices(2)
    values = {"weights": mixture.weights_, "means": mixture.means_}
    sds = {"weights": mixture.weights_std_, "means": mixture.means_std_}
    values["covariances"] = mixture.covariances_[:, *entries]
    sds["covariances"] = mixture.covariances_std_[:, *entries]
    for group, own in values.items():
        errors, own_sds = found[group]
        np.testing.assert_allclose(errors, own[order].ravel() - truth[group].ravel())
        np.testing.assert_allclose(own_sds, sds[group][order].ravel())


@pytest.mark.slow
def test_a_check_of_the_model_is_asked_about_every_setting(measured):
    by_setting = {row["setting"]: row for row in measured("model_check")}
    assert set(by_setting) == {*model_check.FITTING, *DEPARTURES}
    for name in ("one cluster missed", "a column of zeros and ones", 'correlation 0.4 under "diag"'):
        row = by_setting[name]
        assert row["named"] == row["right"] and row["has_better_model"] and not row["fits"]
    for name in model_check.FITTING:
        row = by_setting[name]
        for kind in model_check._TESTS:
            counts = [row[f"{kind}_{column}"] for column in ("tests", 0.05, 0.01, 0.001)]
            assert counts == sorted(counts, reverse=True)
        assert row["skewness_tests"] == row["tails_tests"]


def _row_of_a_check(setting, **columns):
    """A row as the section reads it, of a table whose mixture fits."""
    counts = {f"{kind}_{column}": 1 for kind in model_check._TESTS for column in ("tests", 0.05, 0.01, 0.001)}
    row = {"setting": setting, "n_samples": 100, "n_components": 2, "n_occupied": 2, "covariance_type": None}
    found = {
        "p_value": 0.5,
        "fits": True,
        "named": None,
        "has_better_start": False,
        "has_better_model": False,
    }
    return row | counts | found | {"fit_seconds": 1.0, "check_seconds": 1.0} | columns


def test_the_section_on_the_check_of_the_model_counts_what_is_accused_and_named():
    accused = {"p_value": 0.01, "fits": False, "has_better_start": True, "n_samples": 300}
    rows = [_row_of_a_check(setting) for setting in model_check.FITTING for _ in range(3)]
    rows += [_row_of_a_check("latent classes", **accused)]
    named = {"p_value": 1e-9, "fits": False, "right": "outliers", "has_better_model": True}
    rows += [_row_of_a_check("5 % outliers", **named, named=kind) for kind in ("outliers", "heavy tails")]
    text = model_check.section(rows)
    assert "| latent classes | 4 | 25.0 +- 23.6 % | 0.0 +- 23.1 % | 100.0 +- 47.1 % |  |" in text
    assert "| latent classes | 1 | 1 | 0 | 0 |" in text
    assert "| 5 % outliers | outliers | 2 | 100 | 100 | 50 | heavy tails 1 |" in text


@pytest.mark.slow
def test_what_explains_clusters_is_asked_of_every_kind_of_table(measured):
    parts = {}
    for row in measured("cluster_regression"):
        parts.setdefault(row["part"], []).append(row)
    settings = {(row["design"], row["question"], row["n_samples"]) for row in parts["simulated"]}
    assert settings == {(design.name, design.question, design.n_samples) for design in DESIGNS}
    for row in parts["simulated"]:
        assert row["ours_tables"] + row["n_empty"] + row["n_refused"] == row["n_tables"] == 1
        assert abs(row["ours_bias_0"]) < 1 and row["ours_coverage_0"] in (0.0, 1.0)
        assert not row["by_draws"] or row["method"] == "auto"
    assert any(row["by_draws"] for row in parts["simulated"])
    assert {row["design"] for row in parts["bootstrap"]} == {"iris", "wine", "breast cancer"}
    for row in parts["bootstrap"]:
        assert row["left_out"] < row["n_resamples"] and row["bootstrap_1"] > 0
    assert parts["times"][0]["outcome_seconds"] > 0


def _row_of_answers(question, **answers):
    """A row as the section reads it, of two Gaussian clusters that are answered in some ways."""
    truth = np.array([1.0]) if question == "covariate" else np.array([0.0, 0.5])
    sizes = {"n_samples": 300, "separation": 3.0, "n_components": 2, "n_tables": 5, "n_empty": 1}
    row = {"part": "simulated", "design": "two Gaussian clusters", "question": question} | sizes
    row |= {"method": "auto", "by_draws": 4, "n_refused": 0, "labels_tables": 0}
    for way, estimates in answers.items():
        found = [(own, 0.2 + 0 * own, own - 0.3, own + 0.3) for own in estimates]
        row |= summed_up(way, found, truth)
    return row


def test_the_section_on_what_explains_clusters_has_biases_and_coverages():
    slopes = [np.array([value]) for value in (1.1, 1.2, 0.8, 1.5)]
    means = [np.array([0.1, 0.5]), np.array([-0.1, 1.5])]
    rows = [
        _row_of_answers("covariate", ours=slopes, labels=slopes[:3], proba=slopes[3:]),
        _row_of_answers("skewed outcome", ours=means, proba=means[:1]),
    ]
    numbers = {f"{way}_{place}": 2.0 for way in ("estimates", "lrvb", "sandwich") for place in (0, 1)}
    table = {"design": "iris", "of_rows": "petals", "of_given": "sepals", "kind": "means"}
    sizes = {"n_samples": 150, "n_components": 2, "n_resamples": 200, "left_out": 1}
    bootstrap = {"bootstrap_0": 1.0, "bootstrap_1": 4.0, "direct_p_value": 1e-9}
    rows.append({"part": "bootstrap"} | table | sizes | numbers | bootstrap)
    times = {f"{name}_seconds": 1.0 for name in ("covariates", "outcome", "adjusted")}
    times |= {"fit_seconds": 2.0, "n_features": 10}
    rows.append({"part": "times", "design": "clusters", "n_samples": 1000} | times)
    text = cluster_regression.section(rows)
    sd = 0.2 / np.std([1.1, 1.2, 0.8, 1.5], ddof=1)
    assert f"clusters | 300 | 3.0 | 5 | 1 | +0.15 | 75 | {sd:.2f} | +0.03 | 100 | +0.50 | 0 |" in text
    assert "| 300 | 3.0 | 5 | 3 | 0.00, +0.50 | 100, 50 | 1.41, 0.28 |  |  | +0.10, 0.00 | 100, 100 |" in text
    assert "in\n8 of 6 tables" in text
    assert "StepMix was not installed" in text
    assert "| means: 2, 2 | 1, 4 | 2.00, 0.50 | 2.00, 0.50 | 1 | < 0.001 |" in text
    assert "| clusters | 1,000, 10 | 2 | 1 (0.5) | 1 (0.5) | 1 (0.5) |" in text


def test_simulated_classes_are_those_of_stepmix():
    datasets = pytest.importorskip("stepmix.datasets")
    X, w, labels = datasets.data_bakk_covariate(20_000, 0.8, random_state=0)
    own = LatentClasses("covariate", 20_000, 0.8).table(0)
    for k in range(3):
        ours, theirs = own.labels == k, labels == k
        np.testing.assert_allclose(
            own.X[ours].astype(int).to_numpy().mean(axis=0), X[theirs].mean(axis=0), atol=0.03
        )
        counts = [np.bincount(values.astype(int), minlength=6) for values in (own.given[ours], w[theirs, 0])]
        np.testing.assert_allclose(*counts, atol=300)
    X, y, labels = datasets.data_bakk_response(20_000, 0.8, random_state=0)
    own = LatentClasses("outcome", 20_000, 0.8).table(0)
    for k in range(3):
        ours, theirs = own.given[own.labels == k], y[labels == k, 0]
        np.testing.assert_allclose([ours.mean(), ours.std()], [theirs.mean(), theirs.std()], atol=0.06)


def test_the_guide_has_the_figures_of_the_learned_prior():
    found = newest(Path(priors.__file__).parents[1] / "results" / "priors.csv")
    guide = " ".join((Path(__file__).parents[2] / "docs" / "guide" / "prior.md").read_text("utf8").split())
    kinds = {"real": "real ones", "texts": "of texts", "drawn": "drawn ones"}
    for kind, words in kinds.items():
        own = [row for row in found if row["kind"] == kind]
        means = [
            f"{np.mean([row[f'{prior}_one_ari'] for row in own]):.2f}, "
            f"{np.mean([row[f'{prior}_ten_ari'] for row in own]):.2f}"
            for prior in ("bgm", "fixed", "learned")
        ]
        assert f"| {len(own)} {words} | {' | '.join(means)} |" in guide
    assert f"fits {len(found)} tables" in guide
    assert f"denser by {priors.gain(found).mean():.2f} nats" in guide
    assert f"in {priors.lost(found, 'learned')} tables of these {len(found)}" in guide
    assert f"with the fixed prior in {priors.lost(found, 'fixed')} and" in guide
    assert f"takes {np.median(priors.ratios(found)):.2f} times as long" in guide


@pytest.mark.slow
def test_a_learned_prior_finds_the_species_of_iris(measured):
    (iris,) = (row for row in measured("priors") if row["problem"] == "iris")
    assert iris["learned_ten_ari"] > iris["fixed_ten_ari"]
    assert iris["learned_ten_held"] > iris["fixed_ten_held"]
    assert iris["learned_ten_occupied"] == iris["n_groups"]
