"""Experiments on speed: they run, are reported, and measure what they say."""

import ast
import pathlib

import numpy as np
import pytest

import sklearn_lrvb
from benchmarks.harness.clock import Clock, summary
from benchmarks.speed.profile import PASSES

LIBRARY = pathlib.Path(sklearn_lrvb.__file__).parent


@pytest.mark.filterwarnings("ignore:.* move the fit further than one step")
def test_every_experiment_is_on_the_page_with_its_figure(check_page):
    check_page("speed")


@pytest.mark.parametrize("name", PASSES)
def test_parts_of_a_pass_are_functions_of_the_library(name):
    for file, function in {pair for part in PASSES[name].parts.values() for pair in part}:
        trees = [ast.parse(path.read_text(encoding="utf8")) for path in LIBRARY.rglob(file)]
        defined = {
            node.name for tree in trees for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)
        }
        assert function in defined, f"{file} has no function {function}"


def test_every_part_of_a_pass_takes_some_of_its_time(measured):
    found = measured("profile")
    assert {row["pass"] for row in found} == set(PASSES)
    for row in found:
        parts = PASSES[row["pass"]].parts
        assert min(row[part] for part in parts) >= 0
        np.testing.assert_allclose(sum(row[part] for part in parts) + row["rest"], 1, rtol=1e-9)
        assert 0 < row["rest"] < 1
    for name, one_pass in PASSES.items():
        for part in one_pass.parts:
            assert max(row[part] for row in found if row["pass"] == name) > 0, part


def test_calls_are_timed_in_turn_and_short_ones_repeatedly():
    begun = []
    times = Clock(2, shortest=0.0).interleaved({name: lambda name=name: begun.append(name) for name in "ab"})
    assert begun == list("abab")
    assert [len(seconds) for seconds in times.values()] == [2, 2]
    assert summary({"a": [3.0, 1.0, 2.0]}) == {"a_seconds": 1.0, "a_median": 2.0}
    begun.clear()
    Clock(1, shortest=1e-3).interleaved({"a": lambda: begun.append("a")})
    assert len(begun) > 10


def test_both_sides_of_a_fit_are_on_one_path(measured):
    rows = [row for row in measured("fit") if row["covariance_type"] == "full"]
    assert rows
    for row in rows:
        assert row["plain_sweeps"] == row["theirs_sweeps"], row["problem"]
        assert row["newton_distance"] < 1e-3
