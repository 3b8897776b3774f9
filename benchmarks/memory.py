"""Peak memory of one sweep and of a whole fit, each side in a process of its own (one thread, Linux)."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from measuring import peak_memory
from rivals import Ours, Theirs
from threadpoolctl import threadpool_limits

_FIRST_ROWS = 2_000  # that the state to sweep at is fitted to
_RIVALS = {rival.name: rival for rival in (Ours, Theirs)}


def extra_memory(X, rival):
    """Peak memory beyond X, in bytes of X: of one sweep, and of two iterations from k-means."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "X.npy"
        np.save(path, X)
        command = [sys.executable, __file__, path, rival.name, str(rival.n_components)]
        found = subprocess.run(command, check=True, capture_output=True, text=True)
    return {name: peak / X.nbytes for name, peak in json.loads(found.stdout).items()}


def _measured(path, name, n_components):
    X, rival = np.load(path), _RIVALS[name](n_components)
    state = rival.fit(X[:_FIRST_ROWS], "kmeans", max_iter=2)
    return {
        "sweep": peak_memory(lambda: rival.sweeper(state, X)()),
        "fit": peak_memory(lambda: rival.fit(X, "kmeans", max_iter=2)),
    }


if __name__ == "__main__":
    path, name, n_components = sys.argv[1:]
    with threadpool_limits(1, user_api="blas"):
        print(json.dumps(_measured(path, name, int(n_components))))
