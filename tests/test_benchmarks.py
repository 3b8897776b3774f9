"""The benchmarks run, and their report shows every one of them."""

import csv
import dataclasses
import os
import pathlib
import shutil
import subprocess
import sys
import urllib.error

from benchmarks.problems import digits
from benchmarks.analysis import growth_curves
import numpy as np
from benchmarks.problems import paper_mixtures
import pytest
from benchmarks.analysis.calibration import bias, largest_share, sd_ratio
from benchmarks.analysis.calibration import coverage as share_covered
from catalogue import unique
from experiments import coverage, paper_mnist, profile, surplus
from benchmarks.paper.paper_influence_refits import representatives
from figures.paper_mnist import draw as draw_paper_mnist
from benchmarks.analysis.growth_curves import curves
from matplotlib import pyplot as plt
from benchmarks.harness.settings import Settings
from benchmarks.problems.populations import SCENARIOS
from benchmarks.analysis.published_posterior import comparison, same_table
from report import FIGURES, PAGES, write
from benchmarks.harness.rows import append, newest
from run import EXPERIMENTS
from scipy.spatial.distance import cdist
from scipy.special import ndtr
from sections import paper_influence_distribution, paper_influence_landscape, paper_influence_refits
from benchmarks.paper.paper_mnist import section as paper_mnist_section
from benchmarks.accuracy.surplus import section as surplus_section
from sklearn.mixture import BayesianGaussianMixture
from sklearn.utils import Bunch
from benchmarks.problems.surplus_problems import COLUMNS, KNOWN, Clusters, random_problems

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
    "surplus": "More components than clusters",
    "growth": "Growth",
    "profile": "Profile",
    "coverage": "Coverage",
    "paper_mnist": "Zeros and ones of MNIST",
    "paper_covariance": "Covariance (Section 6.3)",
    "paper_scaling": "Scaling (Section 6.4)",
    "paper_influence_refits": "Influence against refits",
    "paper_influence_landscape": "Landscape of influence",
    "paper_influence_distribution": "Influence of digits",
    "peers": "Peers",
}


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
    text_of = {
        name: (results / page.file).read_text(encoding="utf8") for page in PAGES for name in page.experiments
    }
    for name, title in SECTIONS.items():
        section = text_of[name].split(f"## {title}\n")[1].split("\n## ")[0]
        assert "| --- |" in section
        if name not in ("growth", "paper_covariance"):  # whose tables have exponents, and pooled errors
            problems = {row["problem"].split(":")[0] for row in _rows(results / f"{name}.csv")}
            assert all(f"| {problem} |" in section for problem in problems)
    for name in FIGURES:
        assert f"]({name}.png)" in text_of[name]
        assert (results / f"{name}.png").stat().st_size > 10_000


def test_every_experiment_is_on_one_page():
    on_pages = [name for page in PAGES for name in page.experiments]
    assert sorted(on_pages) == sorted(EXPERIMENTS) == sorted(SECTIONS)
    assert set(FIGURES) <= set(SECTIONS)


def test_a_page_is_written_once_there_are_rows_of_it(results, tmp_path):
    page = dataclasses.replace(PAGES[0], file="some.md", title="Some")
    assert not write(page, tmp_path)
    assert not list(tmp_path.iterdir())
    shutil.copy(results / "start.csv", tmp_path)
    assert write(page, tmp_path)
    text = (tmp_path / "some.md").read_text(encoding="utf8")
    assert text.startswith("# Some\n\n* mode quick, cpu")
    assert text.count("\n## ") == 1
    assert "\n## Start\n" in text


def _growing_rows():
    """Two passes that follow power laws after a fixed cost, the slow one at fewer sizes."""
    for n_samples in (10.0, 100.0, 1e3, 1e4):
        row = {"grows": "n_samples", "n_samples": n_samples, "threads": 1.0, "flops": 3 * n_samples**2}
        row["fast"] = 1e-6 * max(n_samples, 100.0) ** 1.5
        row["slow"] = 1e-6 * n_samples**2 if n_samples < 1e3 else None
        row["once"] = 1.0 if n_samples == 10 else None
        yield row
        yield row | {"threads": 2.0, "fast": 5.0}


GROWING_PASSES = {"fast pass": ("fast", "flops"), "slow pass": ("slow", None), "one point": ("once", None)}


def test_curves_find_the_exponents_of_power_laws_on_the_fewest_threads():
    found = curves(list(_growing_rows())[::-1], ("n_samples", "n_features"), GROWING_PASSES)
    fast, slow = found
    assert (fast.what, slow.what) == ("fast pass", "slow pass")
    np.testing.assert_array_equal(fast.sizes, [10, 100, 1e3, 1e4])
    np.testing.assert_array_equal(slow.sizes, [10, 100])
    np.testing.assert_allclose([fast.exponent, fast.flops_exponent, slow.exponent], [1.5, 2.0, 2.0])
    assert slow.flops_exponent is None
    np.testing.assert_allclose(slow.fitted, [slow.sizes, slow.seconds])


def test_a_figure_tells_any_number_of_curves_apart(monkeypatch, tmp_path):
    fast, slow = curves(list(_growing_rows()), ("n_samples",), GROWING_PASSES)
    many = [dataclasses.replace((fast, slow)[i % 2], what=f"pass {i}") for i in range(12)]
    drawn = []
    monkeypatch.setattr(figures.curves, "saved", lambda figure, path: drawn.append(figure))
    figures.curves.draw(many, {"n_samples": "rows N", "n_features": "features P"}, tmp_path / "many.png")
    panel, empty = drawn[0].axes
    lines = [line for line in panel.lines if line.get_label().startswith("pass ")]
    assert len({(line.get_color(), line.get_marker()) for line in lines}) == len(many)
    for line, curve in zip(lines, many, strict=True):
        np.testing.assert_array_equal(line.get_xydata().T, [curve.sizes, curve.seconds])
    assert not empty.lines
    assert "fewer than two sizes" in empty.texts[0].get_text()
    plt.close(drawn[0])


def _stored_digits(folder):
    """A file of ten digits, and what is in it."""
    rng = np.random.default_rng(0)
    stored = {f"X_{part}": rng.integers(256, size=(5, 784), dtype=np.uint8) for part in ("train", "test")}
    stored |= {f"y_{part}": np.array([0, 1, 1, 0, 1], dtype=np.uint8) for part in ("train", "test")}
    np.savez(folder / "digits.npz", **stored)
    return folder / "digits.npz", stored


def test_features_of_the_paper_are_of_pixels_read_as_signed_bytes(tmp_path, capsys):
    path, stored = _stored_digits(tmp_path)
    found = digits.zeros_and_ones(path, quick=True)
    assert path.name in capsys.readouterr().out
    np.testing.assert_array_equal(found.test, stored["X_test"])
    np.testing.assert_array_equal(found.test_labels, [0, 1, 1, 0, 1])
    np.savez(tmp_path / "pca.npz", pixel_mean=np.arange(784.0), components=np.eye(784)[:25])
    for features, part in zip(
        digits.paper_features(found, tmp_path / "pca.npz"), ("train", "test"), strict=True
    ):
        pixels = stored[f"X_{part}"][:, :25].astype(float)
        np.testing.assert_array_equal(features, np.where(pixels > 127, pixels - 256, pixels) - np.arange(25))


def test_digits_other_than_zeros_and_ones_are_refused_by_their_labels(tmp_path):
    path, stored = _stored_digits(tmp_path)
    np.savez(path, **(stored | {"y_test": np.array([0, 1, 7, 3, 7])}))
    with pytest.raises(ValueError, match=r"digits.npz: y_test has the labels 0, 1, 3, 7;"):
        digits.zeros_and_ones(path)


def test_mnist_of_any_source_has_the_features_of_the_paper(tmp_path, monkeypatch):
    path, _ = _stored_digits(tmp_path)
    openml = digits.zeros_and_ones(path)
    monkeypatch.setattr(paper_mixtures, "zeros_and_ones", lambda path, quick: openml)
    monkeypatch.setattr(paper_mixtures, "_of_digits", lambda name, *others: name)
    np.savez(tmp_path / "pca.npz", pixel_mean=np.zeros(784), components=np.eye(784)[:25])
    settings = Settings(quick=True, threads=1, repeats=1, pca=tmp_path / "pca.npz")
    assert next(paper_mixtures.digits(settings)) == "MNIST, the paper's features"


def test_digits_of_other_sizes_have_no_features_of_the_paper(tmp_path):
    np.savez(tmp_path / "pca.npz", pixel_mean=np.zeros(784), components=np.eye(784)[:25])
    with pytest.raises(ValueError, match=r"projects 784 pixels, but these digits have 64 .*--mnist"):
        digits.paper_features(digits.zeros_and_ones(None, quick=True), tmp_path / "pca.npz")


def test_without_a_network_the_digits_are_small_and_it_is_said(monkeypatch, capsys):
    def unreachable(*arguments, **settings):
        raise urllib.error.URLError("no route")

    monkeypatch.setattr(digits, "fetch_openml", unreachable)
    found = digits.zeros_and_ones(None)
    printed = capsys.readouterr().out
    assert "no route" in printed
    assert "load_digits" in printed
    assert (found.train.shape[1], found.train.min(), found.train.max()) == (64, 0.0, 255.0)
    assert set(found.train_labels) == set(found.test_labels) == {0, 1}
    quickly = digits.zeros_and_ones(None, quick=True)
    assert "no route" not in capsys.readouterr().out
    np.testing.assert_array_equal(found.test, quickly.test)


def test_the_first_rows_of_openml_train(monkeypatch):
    labels = np.resize(np.arange(10), 70_000)
    data = Bunch(data=np.arange(70_000)[:, None], target=labels.astype(str))
    monkeypatch.setattr(digits, "fetch_openml", lambda *arguments, **settings: data)
    found = digits.zeros_and_ones(None)
    np.testing.assert_array_equal(found.train[:4, 0], [0, 1, 10, 11])
    np.testing.assert_array_equal(found.test[:4, 0], [60_000, 60_001, 60_010, 60_011])
    assert (len(found.train), len(found.test)) == (12_000, 2_000)
    np.testing.assert_array_equal(found.test_labels, found.test[:, 0] % 10)


def test_influence_is_the_derivative_that_refits_find(results):
    rows = _rows(results / "paper_influence_refits.csv")
    groups = {}
    for row in rows:
        groups.setdefault(row["problem"].split(":")[0], set()).add(row["group"])
        assert float(row["largest_difference"]) < 1e-4, row["problem"]
        assert float(row["distance_from_fit"]) < 1e-6, row["problem"]
        assert int(row["refits"]) == 4 * int(row["moved"]) * int(row["n_features"])
    assert list(groups.values()) == [{"log_weights", "means", "precisions"}] * 2
    assert {row["moved"] for row in rows} == {"10", "5"}


def test_two_ways_to_an_influence_are_told_apart_where_they_differ(results):
    rows = newest(results / "paper_influence_refits.csv")
    assert "cannot be told apart" in paper_influence_refits.section(rows)
    differing = paper_influence_refits.section([*rows, rows[0] | {"largest_difference": 0.02}])
    assert "the two differ: the largest of all differences is 2e-02" in differing


def test_what_is_seen_of_an_influence_waits_for_all_its_rows(results):
    landscape = [row | {"mode": "full"} for row in newest(results / "paper_influence_landscape.csv")]
    assert "What the paper says" in paper_influence_landscape.section(landscape)
    assert "What the paper says" not in paper_influence_landscape.section(landscape[:8])
    pair = newest(results / "paper_influence_distribution.csv")[:2]
    assert "The paper, on its features" in paper_influence_distribution.section(pair)
    assert "The paper, on its features" not in paper_influence_distribution.section(pair[:1])


def test_digits_to_move_are_different_ones_from_certain_to_doubtful():
    log_odds = np.array([0.1, 30.0, -0.1, 14.0, 2.2, -16.0, 1.9])
    assert list(representatives(log_odds)) == [5, 2, 0, 6, 3]


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


def test_surplus_problems_are_many_and_have_names_of_their_own():
    assert len({problem.data_set for problem in KNOWN}) >= 33
    assert len({problem.name for problem in KNOWN}) == len(KNOWN) >= 73
    assert {2, 30} <= {problem.n_components for problem in KNOWN} <= set(range(2, 31))
    assert len({problem.weight_concentration_prior_type for problem in KNOWN}) == 2
    assert len({problem.covariance_type for problem in KNOWN}) == 4
    assert len(COLUMNS) == 10


def test_rows_of_surplus_problems_are_the_same_every_time():
    for problem in {problem.data_set: problem for problem in (*KNOWN, *COLUMNS)}.values():
        X = problem.simulate()
        assert X.ndim == 2
        assert np.isfinite(X).all()
        np.testing.assert_array_equal(X, problem.simulate())
        assert len(problem.scaled(60).simulate()) == 60


def test_random_surplus_problems_have_more_components_than_clusters_and_the_right_model():
    first, again, other = random_problems(0), random_problems(0), random_problems(1)
    assert len(first) == 60
    assert [problem.name for problem in first] == [problem.name for problem in again]
    np.testing.assert_array_equal(first[7].simulate(), again[7].simulate())
    for problem in (*first, *other):
        assert 1 <= problem.n_clusters < problem.n_components <= 30


def test_a_model_is_right_for_clusters_of_its_shapes():
    right = {
        "equal": {"full", "tied", "diag", "spherical"},
        "full": {"full"},
        "tied": {"full", "tied"},
        "diag": {"full", "diag"},
        "spherical": {"full", "diag", "spherical"},
    }
    for shapes, types in right.items():
        clusters = Clusters(100, 3, 4, 5.0, shapes=shapes)
        assert {name for name in right["equal"] if clusters.fits(name)} == types
        population = clusters.population(np.random.default_rng(0))
        gaps = cdist(population.means, population.means)
        np.testing.assert_allclose(gaps[gaps > 0].min(), 5.0)
        covariances = population.covariances
        is_diagonal = not np.any(covariances * (1 - np.eye(3)))
        assert is_diagonal == ("diag" in types)
        assert np.array_equal(covariances, covariances[:1].repeat(4, axis=0)) == ("tied" in types)


@pytest.mark.parametrize("kind", ("dirichlet_process", "dirichlet_distribution"))
@pytest.mark.parametrize("library", (LRVBGaussianMixture, BayesianGaussianMixture))
def test_expected_counts_are_of_all_rows(library, kind):
    X = np.random.default_rng(0).normal(size=(50, 2)) + np.repeat([[0.0], [20.0]], 25, axis=0)
    arguments = {"n_components": 2, "weight_concentration_prior_type": kind, "random_state": 0}
    mixture = library(**arguments).fit(X)
    np.testing.assert_allclose(surplus.expected_counts(mixture), [25, 25], rtol=1e-6)
    assert surplus.n_occupied(mixture) == 2


def test_a_fit_that_continues_from_scikit_learn_does_not_end_lower(results):
    rows = newest(results / "surplus.csv")
    assert {row["set"] for row in rows} == {"known", "fresh", "ctgan"}
    both = [row for row in rows if row.get("theirs_bound") is not None]
    assert both
    for row in both:
        assert row["theirs_continued_bound"] >= row["theirs_bound"] - 1e-9 * abs(row["theirs_bound"])


def test_the_section_on_surplus_components_counts_fits_that_end_lower(results):
    rows = [row | {"mode": "full"} for row in newest(results / "surplus.csv")]
    bounds = {f"{side}_bound": 0.0 for side in ("plain", "auto", "merge", "search", "restarts", "theirs")}
    rows = [row | bounds | {"plain_default_bound": 0.0} for row in rows]
    known = sum(row["set"] == "known" for row in rows)
    assert f"| 0 / {known} / 0 |" in surplus_section(rows)
    text = surplus_section([rows[0] | {"auto_bound": -3.0}, rows[1] | {"auto_bound": 0.02}, *rows[2:]])
    assert f"| 1 / {known - 2} / 1, worst -3 |" in text
    line = next(line for line in text.splitlines() if "lower bound than scikit-learn's" in line)
    assert [cell.strip() for cell in line.split("|")[2:5]] == ["1", "≤ 0", "missed"]


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


def test_digits_are_wrong_where_they_are_not_of_their_components_majority():
    components = np.repeat([0, 0, 1, 1], [90, 10, 7, 93])
    labels = np.repeat([1, 0, 1, 0], [90, 10, 7, 93])
    table = paper_mnist.label_table(components, labels)
    np.testing.assert_array_equal(table, [[10, 90], [93, 7]])
    assert paper_mnist.error_rate(table) == (10 + 7) / 200


def test_two_components_may_have_the_same_majority():
    assert paper_mnist.error_rate(np.array([[30, 10], [55, 5]])) == (10 + 5) / 100
    assert paper_mnist.error_rate(np.array([[0, 0], [55, 5]])) == 5 / 60  # one of them is empty


NOISE = 0.02  # of the fabricated Gibbs sampler


@pytest.fixture(scope="module")
def published():
    """A fit, and a publication of it: backwards, Gibbs sds 3 % below ours and off by `NOISE`."""
    X = _scenario("3.5 sd").simulate(0)
    model = {"prior": "flat", "factorization": "independent", "reg_covar": 0.0}
    mixture = LRVBGaussianMixture(n_components=2, random_state=0, **model).fit(X)
    kinds = {"log_weight": "log_pi", "mean": "mu", "precision": "Lambda"}
    names = []
    for name in mixture.posterior_names_[::-1]:
        kind, place = name.split("[")
        names.append(f"{kinds[kind]}[{1 - int(place[0])}{place[1:].replace('x', '')}")
    mean, sd = mixture.posterior_mean_[::-1], mixture.posterior_std_[::-1]
    mean_field = np.sqrt(np.diag(mixture.get_posterior_covariance(method="mean_field")))[::-1]
    columns = {
        "params": np.array(names),
        "mfvb_mean": mean,
        "gibbs_mean": mean + 0.5 * sd / 1.03,
        "lrvb_sd": sd,
        "mfvb_sd": mean_field,
        "gibbs_sd": sd / 1.03,
        "gibbs_ess": np.full(len(sd), 0.5 / NOISE**2),
        "test_table": np.array([[5, 1], [2, 7]]),
    }
    return mixture, columns


def test_a_published_posterior_is_compared_parameter_by_parameter(published):
    mixture, columns = published
    found = list(comparison(columns, mixture))
    assert [row["n_parameters"] for row in found] == [2, 4, 6]
    for row in found:
        for gap in ("lrvb_from_published", "mean_field_from_published", "mean_from_published"):
            assert row[gap] < 1e-8, (row["problem"], gap)
        for name in ("median", "worst", "mean"):
            np.testing.assert_allclose(row[f"lrvb_{name}_error"], 0.03, rtol=1e-6)
        np.testing.assert_allclose([row["noise"], row["lrvb_rms_in_noise"]], [NOISE, 1.5], rtol=1e-6)
        np.testing.assert_allclose(row["mean_worst_error"], 0.5, rtol=1e-6)
        assert (row["lrvb_within_noise"], row["least_effective_size"]) == (1.0, 0.5 / NOISE**2)
        ratios = [float(point["lrvb_over_gibbs"]) for point in row["points"]]
        np.testing.assert_allclose(ratios, 1.03, rtol=1e-3)
    halved = columns | {"gibbs_ess": columns["gibbs_ess"] * np.where(np.arange(12) == 0, 1.0, 0.5)}
    noise = NOISE * np.sqrt(1.25)  # half the draws: r = 1/3, whose squares are worth 0.8 of them
    np.testing.assert_allclose([row["noise"] for row in comparison(halved, mixture)], noise, rtol=1e-6)
    assert same_table(columns, np.array([[1, 7], [5, 2]]))
    assert not same_table(columns, np.array([[5, 1], [2, 7]]))


def test_the_published_posterior_is_in_its_section_and_figure(published, results, tmp_path):
    mixture, columns = published
    fits = newest(results / "paper_mnist.csv")
    for row in comparison(columns, mixture):
        append(tmp_path / "some.csv", row | {"same_test_table": True, "mode": "quick", "threads": 1})
    found = [*fits, *newest(tmp_path / "some.csv")]
    text = paper_mnist_section(found)
    assert text.count("| published means |") == 2
    assert "is equal to ours" in text.replace("\n", " ")
    assert "LRVB's errors of no group; mean field's errors of" in text
    draw_paper_mnist(found, tmp_path / "some.png")
    height, width, _ = plt.imread(tmp_path / "some.png").shape
    without, _, _ = plt.imread(results / "paper_mnist.png").shape
    assert height > without + 0.3 * width


def test_points_come_back_with_their_row_as_it_was_last_measured(tmp_path):
    path = tmp_path / "some.csv"
    row = {"problem": "one", "threads": 1, "mode": "full", "number": 1}
    append(path, row | {"points": [{"x": 1}, {"x": 2}]})
    append(path, row | {"problem": "other", "points": [{"y": "9"}]})
    append(path, row | {"problem": "none"})
    append(path, row | {"mode": "quick", "points": [{"x": 7}]})
    append(path, row | {"number": 2, "points": [{"x": 3}, {"x": 4}, {"x": 5}]})
    one, other, none = newest(path)
    assert (one["number"], [point["x"] for point in one["points"]]) == (2, [3, 4, 5])
    assert [point["y"] for point in other["points"]] == [9]
    assert "points" not in none
    assert "points" not in path.read_text(encoding="utf8")
    append(path, row | {"number": 3, "points": []})
    assert "points" not in newest(path)[0]


def test_a_page_of_one_number_of_threads_has_every_problem_once(results, tmp_path):
    name = "paper_scaling"
    alone = dataclasses.replace(PAGES[-1], experiments={name: PAGES[-1].experiments[name]})
    for row in newest(results / f"{name}.csv"):
        append(tmp_path / f"{name}.csv", row)
    assert write(alone, tmp_path)
    on_one_thread = (tmp_path / alone.file).read_text(encoding="utf8")
    for row in newest(results / f"{name}.csv"):
        append(tmp_path / f"{name}.csv", row | {"threads": 2})
    assert write(alone, tmp_path)
    assert (tmp_path / alone.file).read_text(encoding="utf8") == on_one_thread


def test_paths_that_are_not_there_are_told_before_anything_is_measured(tmp_path):
    for option in ("--mnist", "--pca", "--published", "--published-simulations"):
        command = [sys.executable, ROOT / "benchmarks" / "run.py", "start", "--quick", "--output", tmp_path]
        found = subprocess.run([*command, option, "nowhere.npz"], capture_output=True, text=True)
        assert found.returncode == 2
        assert f"{option}: there is no file nowhere.npz" in found.stderr
    assert not list(tmp_path.iterdir())
