"""The examples run offline, without a warning, and save a figure."""

import pathlib
import runpy
import sys

import pytest

EXAMPLES = sorted((pathlib.Path(__file__).parent.parent / "examples").glob("*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example(path, tmp_path, monkeypatch, capsys):
    figure = tmp_path / "figure.png"
    monkeypatch.setattr(sys, "argv", [str(path), "--output", str(figure)])
    runpy.run_path(str(path), run_name="__main__")
    printed = capsys.readouterr()
    assert printed.err == ""
    assert "+-" in printed.out
    assert figure.stat().st_size > 20_000
