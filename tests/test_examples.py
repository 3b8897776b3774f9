"""The examples run offline, without a warning, and print; those that draw save a figure."""

import pathlib
import runpy
import sys

import pytest
from matplotlib import pyplot as plt

EXAMPLES = sorted((pathlib.Path(__file__).parent.parent / "examples").glob("*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example(path, tmp_path, monkeypatch, capsys):
    figure = tmp_path / "figure.png"
    draws = "--output" in path.read_text(encoding="utf8")
    assert draws == path.stem.startswith("plot_")
    plt.close(
        "all"
    )  # Figures of tests before would be closed by the example, with a warning of old versions.
    monkeypatch.setattr(sys, "argv", [str(path), *(["--output", str(figure)] if draws else [])])
    runpy.run_path(str(path), run_name="__main__")
    printed = capsys.readouterr()
    assert printed.err == ""
    assert "+-" in printed.out
    if draws:
        assert figure.stat().st_size > 20_000


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_opens_with_the_question_it_answers(path):
    title = path.read_text(encoding="utf8").splitlines()[2]
    assert title.endswith("?")
