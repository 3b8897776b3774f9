"""The registry, the stored rows, the pages made of them, and the commands."""

import dataclasses
import importlib
import pathlib
import pkgutil
import re
import shutil
import subprocess
import sys

import pytest

import benchmarks
from benchmarks.__main__ import main
from benchmarks.harness import inside
from benchmarks.harness.registry import EXPERIMENTS, PAGES
from benchmarks.harness.report import measured_rows, text, write
from benchmarks.harness.rows import append, newest

BENCHMARKS = pathlib.Path(benchmarks.__file__).parent
RESULTS = BENCHMARKS / "results"
FITTING = ("sklearn", "sklearn_lrvb", "numpyro", "jax")


def _python(*arguments):
    return subprocess.run([sys.executable, *arguments], cwd=BENCHMARKS.parent, capture_output=True, text=True)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_module_of_a_page_is_a_registered_experiment(page):
    package = importlib.import_module(f"benchmarks.{page.name}")
    modules = {module.name for module in pkgutil.iter_modules(package.__path__)}
    assert modules == {experiment.name for experiment in page.experiments}
    for experiment in page.experiments:
        assert EXPERIMENTS[experiment.name] is experiment
        assert callable(experiment.measure) and callable(experiment.section)
        assert experiment.title and experiment.summary.endswith((".", "?"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_stored_page_is_that_of_the_stored_rows(page):
    stored = (RESULTS / page.file).read_text(encoding="utf8")
    assert stored == text(page, measured_rows(page, RESULTS)), "run python -m benchmarks report"
    figures = re.findall(r"\]\((\w+\.png)\)", stored)
    assert sorted(figures) == sorted(f"{one.name}.png" for one in page.experiments if one.draw)
    assert all((RESULTS / figure).is_file() for figure in figures)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_within_a_page_lead_to_its_headings(page):
    stored = (RESULTS / page.file).read_text(encoding="utf8")
    headings = re.findall(r"^##+ (.*)$", stored, flags=re.MULTILINE)
    anchors = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
    links = re.findall(r"\]\(#([^)]*)\)", stored)
    assert len(links) >= len(page.experiments)
    assert set(links) <= anchors


def test_a_report_needs_no_library_that_fits():
    code = f"""
import sys
from pathlib import Path
sys.modules |= dict.fromkeys({FITTING})  # so that importing one of them is an error
from benchmarks.__main__ import main
from benchmarks.harness.registry import PAGES
from benchmarks.harness.report import measured_rows, text
for page in PAGES:
    print(len(text(page, measured_rows(page, Path({str(RESULTS)!r})))))
main([])
"""
    found = _python("-c", code)
    assert found.returncode == 0, found.stderr
    lengths = [len((RESULTS / page.file).read_text(encoding="utf8")) for page in PAGES]
    assert found.stdout.splitlines()[: len(PAGES)] == [str(length) for length in lengths]
    assert all(name in found.stdout for name in EXPERIMENTS)


def test_private_names_of_the_library_are_read_in_one_file():
    private = re.compile(r"\._uncertainty|sklearn_lrvb\.(gaussian_mixture|row_blocks|symmetric_matrices)")
    found = [path for path in BENCHMARKS.rglob("*.py") if private.search(path.read_text(encoding="utf8"))]
    assert found == [pathlib.Path(inside.__file__)]


def test_a_page_is_written_once_there_are_rows_of_it(tmp_path):
    page = dataclasses.replace(PAGES[0], title="Some")
    assert not write(page, tmp_path)
    assert not list(tmp_path.iterdir())
    shutil.copy(RESULTS / "start.csv", tmp_path)
    assert [experiment.name for experiment in write(page, tmp_path)] == ["start"]
    written = (tmp_path / page.file).read_text(encoding="utf8")
    assert written.startswith("# Some\n\n")
    assert "* mode full, cpu" in written
    assert written.count("\n## ") == 1
    assert "\n## Start\n" in written


def test_a_page_of_one_number_of_threads_has_every_problem_once(tmp_path):
    (scaling,) = (one for one in PAGES[-1].experiments if one.name == "paper_scaling")
    page = dataclasses.replace(PAGES[-1], experiments=(scaling,))
    on_one_thread = text(page, measured_rows(page, RESULTS))
    path = tmp_path / "paper_scaling.csv"
    shutil.copy(RESULTS / path.name, path)
    for row in newest(path):
        append(path, row | {"threads": 2})
    assert len(newest(path)) == 2 * len(newest(RESULTS / path.name))
    assert text(page, measured_rows(page, tmp_path)) == on_one_thread
    everything = dataclasses.replace(page, on_fewest_threads=False)
    assert "(2 threads)" in text(everything, measured_rows(everything, tmp_path))


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


def test_the_commands_measure_and_report(tmp_path, capsys):
    main(["run", "influence", "--quick", "--output", str(tmp_path)])
    assert capsys.readouterr().out.startswith("influence: problem plane, n_samples 400")
    report = _python("-m", "benchmarks", "report", "--output", tmp_path)
    assert report.returncode == 0, report.stderr
    assert "| plane | 400, 2, 2 |" in (tmp_path / "speed.md").read_text(encoding="utf8")
    assert f"no rows of sweep in {tmp_path}: python -m benchmarks run sweep" in report.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"influence.csv", "speed.md"}


def _error(capsys, *arguments):
    with pytest.raises(SystemExit) as exit:
        main([str(argument) for argument in arguments])
    assert exit.value.code == 2
    return capsys.readouterr().err


@pytest.mark.parametrize("option", ("--mnist", "--pca", "--published", "--published-simulations"))
def test_paths_that_are_not_there_are_told_before_anything_is_measured(option, tmp_path, capsys):
    told = _error(capsys, "run", "start", "--output", tmp_path, option, "nowhere.npz")
    assert f"{option}: there is no file nowhere.npz" in told
    assert not list(tmp_path.iterdir())


def test_an_unknown_experiment_is_told_with_the_nearest_ones(tmp_path, capsys):
    told = _error(capsys, "run", "covrage", "--output", tmp_path)
    assert "unknown experiment 'covrage'. Did you mean coverage" in told
    assert "`python -m benchmarks` lists all experiments" in told
    assert not list(tmp_path.iterdir())


def test_a_report_of_no_rows_says_how_to_measure_some(tmp_path, capsys):
    told = _error(capsys, "report", "--output", tmp_path)
    assert f"there are no rows in {tmp_path}. (a) Measure some" in told
    assert "(b) Name the folder" in told
    assert not list(tmp_path.iterdir())


def test_rows_of_another_version_are_told_by_the_column_that_they_lack(tmp_path, capsys):
    for row in newest(RESULTS / "start.csv"):
        del row["sweep_seconds"], row["n_features"]
        append(tmp_path / "start.csv", row)
    told = _error(capsys, "report", "--output", tmp_path)
    assert "start.csv has rows without 'n_features'" in told
    assert "python -m benchmarks run start" in told


def test_a_package_that_is_not_installed_is_told_with_how_to_get_it(monkeypatch, tmp_path, capsys):
    def lacking(settings):
        raise ModuleNotFoundError("No module named 'some'", name="some")

    monkeypatch.setattr(EXPERIMENTS["start"].module, "measure", lacking)
    told = _error(capsys, "run", "start", "--output", tmp_path)
    assert "the package some is not installed" in told
    assert "pip install -e '.[benchmark]'" in told
