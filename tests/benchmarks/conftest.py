"""Quick runs of the experiments, each done once in a session and only if a test asks for it."""

import functools

import pytest

from benchmarks.harness import rows
from benchmarks.harness.registry import PAGES, experiment
from benchmarks.harness.report import write
from benchmarks.harness.run import run
from benchmarks.harness.settings import Settings

# The tables of these experiments have exponents and pooled errors instead of a line for every problem.
_WITHOUT_PROBLEMS = ("growth", "paper_covariance")


@pytest.fixture(scope="session")
def results(tmp_path_factory):
    """The folder of the rows, pages and figures."""
    return tmp_path_factory.mktemp("results")


@pytest.fixture(scope="session")
def measured(results):
    """Function: name of an experiment -> its rows in quick mode, as the report reads them."""

    @functools.cache
    def measure(name):
        run([experiment(name)], Settings(quick=True), results)
        return rows.newest(results / f"{name}.csv")

    return measure


@pytest.fixture(scope="session")
def reported(results, measured):
    """Function: name of a page -> its text, after the page and its figures have been written."""

    @functools.cache
    def report(name):
        page = next(page for page in PAGES if page.name == name)
        for one in page.experiments:
            measured(one.name)
        write(page, results)
        return (results / page.file).read_text(encoding="utf8")

    return report


@pytest.fixture(scope="session")
def check_page(results, measured, reported):
    """Function (name of a page) that checks its experiments for rows, a section and a figure."""

    def check(name):
        page = next(page for page in PAGES if page.name == name)
        for one in page.experiments:
            found = measured(one.name)
            section = reported(name).split(f"## {one.title}\n")[1].split("\n## ")[0]
            assert found, one.name
            assert all(row["mode"] == "quick" and row["blas"] for row in found)
            assert "| --- |" in section
            if one.name not in _WITHOUT_PROBLEMS:
                problems = {row["problem"].split(":")[0] for row in found}
                assert all(f"| {problem} |" in section for problem in problems), one.name
            figure = results / f"{one.name}.png"
            assert (one.draw is not None) == figure.exists() == (f"]({figure.name})" in section)
            assert one.draw is None or figure.stat().st_size > 10_000

    return check
