"""The examples run offline, without a warning, and save a figure."""

import pathlib
import subprocess
import sys

import pytest

EXAMPLES = sorted((pathlib.Path(__file__).parent.parent / "examples").glob("*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example(path, tmp_path):
    command = [sys.executable, "-W", "error", str(path), "--output", str(tmp_path / "figure.png")]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert "posterior standard deviation" in run.stdout
    assert (tmp_path / "figure.png").stat().st_size > 20_000
