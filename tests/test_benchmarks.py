"""The benchmarks run, and their report shows every one of them."""

import csv
import os
import pathlib
import subprocess
import sys

import pytest
from experiments import profile

PARTS = {name: one_pass.parts for name, one_pass in profile.PASSES.items()}
ROOT = pathlib.Path(__file__).parent.parent
SECTIONS = {
    "sweep": "One sweep",
    "fit": "Fit",
    "start": "Start",
    "information": "Covariance",
    "influence": "Influence",
    "growth": "Growth",
    "profile": "Profile",
}
FIGURES = ("sweep.png", "fit.png", "growth.png")


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
