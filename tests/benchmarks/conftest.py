"""Quick runs of the experiments, each done once in a session and only if a test asks for it."""

import functools

import pytest

from benchmarks.harness import experiments, report, rows
from benchmarks.harness.measuring import Settings, run

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
        run([name], Settings(quick=True), results)
        return rows.newest(results / f"{name}.csv")

    return measure


@pytest.fixture(scope="session")
def check_page(results, measured):
    """Function (name of a page) that checks its experiments for rows, a section and a figure."""

    def check(page):
        names = experiments.PAGES[page][1].split()
        found = {name: measured(name) for name in names}
        report.report(results)
        text = (results / f"{page}.md").read_text(encoding="utf8")
        for name in names:
            module = experiments.module(name)
            section = text.split(f"## {module.TITLE}\n")[1].split("\n## ")[0]
            assert found[name] and all(row["mode"] == "quick" and row["blas"] for row in found[name]), name
            assert "| --- |" in section
            if name not in _WITHOUT_PROBLEMS:
                problems = {row["problem"].split(":")[0] for row in found[name]}
                assert all(f"| {problem} |" in section for problem in problems), name
            figure = results / f"{name}.png"
            assert hasattr(module, "draw") == figure.exists() == (f"]({figure.name})" in section)
            assert not figure.exists() or figure.stat().st_size > 10_000

    return check
