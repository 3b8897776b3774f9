"""The benchmarks run, and their report shows every one of them."""

import csv
import dataclasses
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
from calibration import bias, largest_share, sd_ratio
from calibration import coverage as share_covered
from catalogue import unique
from experiments import coverage, profile
from populations import SCENARIOS
from scipy.spatial.distance import cdist
from scipy.special import ndtr

from sklearn_lrvb import LRVBGaussianMixture

PARTS = {name: one_pass.parts for name, one_pass in profile.PASSES.items()}
ROOT = pathlib.Path(__file__).parent.parent
SECTIONS = {
    "sweep": "One sweep",
    "fit": "Fit",
    "start": "Start",
    "information": "Covariance",
    "influence": "Influence",
    "diagnostics": "Diagnostics",
    "leave_one_out": "Leave one out",
    "growth": "Growth",
    "profile": "Profile",
    "coverage": "Coverage",
}
FIGURES = ("sweep.png", "fit.png", "growth.png", "coverage.png")


def _run(script, *arguments):
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, ROOT / "benchmarks" / script, *arguments]
    finished = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert finished.returncode == 0, finished.stderr


def _rows(path):
    with path.open(newline="", encoding="utf8") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    _run("run.py", "all", "--quick", "--output", folder)
    _run("report.py", "--output", folder)
    return folder


def test_every_experiment_writes_rows(results):
    for name in SECTIONS:
        rows = _rows(results / f"{name}.csv")
        assert rows
        assert all(row["mode"] == "quick" and row["blas"] for row in rows)


def test_the_report_has_every_table_and_figure(results):
    report = (results / "report.md").read_text(encoding="utf8")
    for name, title in SECTIONS.items():
        section = report.split(f"## {title}\n")[1].split("\n## ")[0]
        assert "| --- |" in section
        if name != "growth":  # its table has exponents
            problems = {row["problem"].split(":")[0] for row in _rows(results / f"{name}.csv")}
            assert all(f"| {problem} |" in section for problem in problems)
    for name in FIGURES:
        assert f"]({name})" in report
        assert (results / name).stat().st_size > 10_000


def test_parts_of_a_pass_make_most_of_it(results):
    rows = _rows(results / "profile.csv")
    assert {row["pass"] for row in rows} >= {"a sweep", "a fit", "the matrix", "influence on the means"}
    for row in rows:
        shares = [float(value) for name, value in row.items() if name in PARTS[row["pass"]]]
        assert min(shares) >= 0
        assert 0.1 < sum(shares) <= 1


def test_both_sides_of_a_fit_are_on_one_path(results):
    rows = [row for row in _rows(results / "fit.csv") if row["covariance_type"] == "full"]
    assert rows
    for row in rows:
        assert row["plain_sweeps"] == row["theirs_sweeps"], row["problem"]
        assert float(row["newton_distance"]) < 1e-3


def test_coverage_has_every_method_and_group_and_says_what_it_left_out(results):
    rows = _rows(results / "coverage.csv")
    settings = {row["setting"] for row in rows}
    assert len(rows) == 12 * len(settings)
    assert {row["misspecified"] != "" for row in rows} == {True, False}
    for row in rows:
        assert 0 <= float(row["coverage"]) <= 1
        assert float(row["sd_over_truth"]) > 0
        assert int(row["left_out"]) == sum(int(row[reason]) for reason in coverage.REASONS)


def test_intervals_of_a_normal_mean_hold_it_as_often_as_the_normal_distribution_says():
    rng = np.random.default_rng(0)
    errors = rng.normal(scale=[1.0, 0.01, 100.0], size=(20_000, 3))
    claimed = np.broadcast_to([1.0, 0.01, 100.0], errors.shape)
    for factor in (1.0, 0.7, 1.3):
        share, se = share_covered(errors, factor * claimed)
        expected = 2 * ndtr(1.959964 * factor) - 1
        assert abs(share - expected) < 4 * se
        np.testing.assert_allclose(se, np.sqrt(expected * (1 - expected) / errors.size), rtol=0.05)
        ratio, se = sd_ratio(errors, factor * claimed)
        assert abs(ratio - factor) < 4 * se
        np.testing.assert_allclose(se, factor / np.sqrt(2 * errors.size), rtol=0.05)


def test_statistics_of_coverage_know_that_parameters_of_a_data_set_depend_on_each_other():
    rng = np.random.default_rng(0)
    errors, sds = rng.normal(size=(300, 1)), rng.uniform(0.5, 1.5, size=(300, 1))
    for statistic in (share_covered, sd_ratio):
        repeated = statistic(np.repeat(errors, 7, axis=1), np.repeat(sds, 7, axis=1))
        np.testing.assert_allclose(repeated, statistic(errors, sds), rtol=1e-12)


def test_the_error_of_a_ratio_of_sds_is_that_of_the_ratio_over_many_studies():
    rng = np.random.default_rng(0)
    errors = 1.0 + rng.normal(size=(1000, 400, 1))
    sds = np.exp(0.3 * rng.normal(size=errors.shape) - 0.2 * errors)  # varying with the estimate
    found = np.array([sd_ratio(*study) for study in zip(errors, sds, strict=True)])
    np.testing.assert_allclose(found[:, 1].mean(), found[:, 0].std(ddof=1), rtol=0.1)


def test_bias_is_in_sds_of_the_estimates():
    errors = np.array([[1.0, 10.0], [-1.0, -10.0], [1.0, 10.0], [-1.0, -10.0]])
    sds = errors.std(axis=0, ddof=1)
    np.testing.assert_allclose(bias(errors + 0.3 * sds), 0.3, rtol=1e-12)


def _scenario(name):
    return next(scenario for scenario in SCENARIOS if scenario.name == name)


def test_the_largest_share_is_that_of_the_data_set_that_is_off():
    errors = np.zeros((50, 2))
    errors[:, 0] = np.resize([1.0, -1.0], 50)
    np.testing.assert_allclose(largest_share(errors[:, :1]), 1 / 50, rtol=1e-12)
    errors[7, 1] = -3.0
    np.testing.assert_allclose(largest_share(errors), 1 - 1 / 50, rtol=1e-12)


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


def test_a_pseudo_truth_is_the_truth_where_the_model_is_right():
    scenario = _scenario("3.5 sd")
    truth = coverage.true_parameters(scenario, 0)
    found = coverage.true_parameters(dataclasses.replace(scenario, wrong="nothing"), 100_000)
    order = cdist(truth["means"], found["means"]).argmin(axis=1)
    for group, values in coverage.ordered(found, order).items():
        np.testing.assert_allclose(values, truth[group], atol=0.05, err_msg=group)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_rows_of_a_population_have_its_moments(scenario):
    population = scenario.population
    X = population.draw(scenario.generator(0), 200_000)
    mean = population.weights @ population.means
    gaps = population.means - mean
    covariance = np.einsum("k,kpq->pq", population.weights, population.covariances + _outer(gaps))
    np.testing.assert_allclose(X.mean(axis=0), mean, atol=0.02)
    np.testing.assert_allclose(np.cov(X.T), covariance, atol=0.06)
    assert len(scenario.simulate(1)) == scenario.n_samples
    assert not np.array_equal(scenario.simulate(1), scenario.simulate(2))
    np.testing.assert_array_equal(scenario.simulate(1), scenario.simulate(1))


def _outer(vectors):
    return vectors[:, :, None] * vectors[:, None, :]
