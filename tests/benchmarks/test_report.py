"""The list of experiments, the stored rows, the pages made of them, and the commands."""

import pathlib
import pkgutil
import re
import shutil
import subprocess
import sys

import pytest

import benchmarks
from benchmarks.__main__ import main
from benchmarks.harness import experiments, inside
from benchmarks.harness.measuring import Clock, summary
from benchmarks.harness.rows import append, newest

BENCHMARKS = pathlib.Path(benchmarks.__file__).parent
RESULTS = BENCHMARKS / "results"


@pytest.mark.slow
@pytest.mark.parametrize("page", experiments.PAGES)
def test_every_module_of_a_page_is_an_experiment(page):
    names = experiments.PAGES[page][1].split()
    assert {module.name for module in pkgutil.iter_modules([str(BENCHMARKS / page)])} == set(names)
    for module in map(experiments.module, names):
        assert callable(module.measure) and callable(module.section)
        assert module.TITLE and module.__doc__.splitlines()[0].endswith((".", "?"))


@pytest.mark.slow
def test_the_stored_pages_are_those_of_the_stored_rows_without_a_library_that_fits(tmp_path):
    for rows in RESULTS.glob("*.csv"):
        shutil.copy(rows, tmp_path)
    code = f"""
import pathlib, sys
sys.modules |= dict.fromkeys(("sklearn", "sklearn_lrvb", "numpyro", "jax"))  # importing them is an error
from benchmarks.__main__ import main
from benchmarks.harness.report import report
report(pathlib.Path({str(tmp_path)!r}), draw=False)
main([])
"""
    found = subprocess.run(
        [sys.executable, "-c", code], cwd=BENCHMARKS.parent, capture_output=True, text=True
    )
    assert found.returncode == 0, found.stderr
    assert all(name in found.stdout for name in experiments.PAGE_OF)
    for page in experiments.PAGES:
        stored = (RESULTS / f"{page}.md").read_text(encoding="utf8")
        assert stored == (tmp_path / f"{page}.md").read_text(encoding="utf8"), (
            "run python -m benchmarks report"
        )
        assert all((RESULTS / figure).is_file() for figure in re.findall(r"\]\((\w+\.png)\)", stored))
        headings = re.findall(r"^##+ (.*)$", stored, flags=re.MULTILINE)
        anchors = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
        assert set(re.findall(r"\]\(#([^)]*)\)", stored)) <= anchors


def test_private_names_of_the_library_are_read_in_one_file():
    private = re.compile(r"\._uncertainty|sklearn_lrvb\.(gaussian|rows|symmetric_matrices)")
    found = {
        path.name for path in BENCHMARKS.rglob("*.py") if private.search(path.read_text(encoding="utf8"))
    }
    assert found == {pathlib.Path(inside.__file__).name, "ablations.py"}


def test_rows_come_back_as_they_were_last_measured_with_their_points(tmp_path):
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
    assert "points" not in none and "points" not in path.read_text(encoding="utf8")


def test_calls_are_timed_in_turn_and_short_ones_repeatedly():
    begun = []
    times = Clock(2, shortest=0.0).interleaved({name: lambda name=name: begun.append(name) for name in "ab"})
    assert begun == list("abab")
    assert [len(seconds) for seconds in times.values()] == [2, 2]
    assert summary({"a": [3.0, 1.0, 2.0]}) == {"a_seconds": 1.0, "a_median": 2.0}
    Clock(1, shortest=1e-3).interleaved({"a": lambda: begun.append("a")})
    assert begun.count("a") > 10


def test_the_commands_measure_and_report(tmp_path, capsys):
    main(["run", "influence", "--quick", "--output", str(tmp_path)])
    assert capsys.readouterr().out.startswith("influence: problem plane, n_samples 400")
    main(["report", "--output", str(tmp_path)])
    assert f"no rows of sweep in {tmp_path}: python -m benchmarks run sweep" in capsys.readouterr().err
    assert "| plane | 400, 2, 2 |" in (tmp_path / "speed.md").read_text(encoding="utf8")
    assert {path.name for path in tmp_path.iterdir()} == {"influence.csv", "speed.md"}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["run", "start", "--mnist", "nowhere.npz"], "--mnist: there is no file nowhere.npz"),
        (["run", "covrage"], "invalid choice: 'covrage' (choose from"),
    ],
)
def test_mistakes_are_told_before_anything_is_measured(arguments, told, tmp_path, capsys):
    with pytest.raises(SystemExit):
        main([*arguments, "--output", str(tmp_path)])
    assert told in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_rows_of_another_version_are_told_by_the_column_that_they_lack(tmp_path, capsys):
    for row in newest(RESULTS / "start.csv"):
        del row["sweep_seconds"], row["n_features"]
        append(tmp_path / "start.csv", row)
    with pytest.raises(SystemExit):
        main(["report", "--output", str(tmp_path)])
    assert "start.csv has rows without 'n_features'" in capsys.readouterr().err
