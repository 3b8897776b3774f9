"""Rows that would not fit into the memory of the process that asks for a fit."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent / "rows_beyond_memory.py"

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits of memory are those of Linux")


@pytest.mark.slow
@pytest.mark.parametrize("where", ["file", "cluster"])
def test_neither_x_nor_a_row_for_each_row_is_ever_in_memory(where, tmp_path):
    argument = "cluster" if where == "cluster" else tmp_path / "X.npy"
    one_thread = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # Each would have buffers of its own.
    command = [sys.executable, "-W", "error", SCRIPT, argument]
    subprocess.run(command, check=True, cwd=tmp_path, env=os.environ | one_thread, timeout=120)
