"""Peak memory of one iteration and of a whole fit, each side in a process of its own (one thread, Linux)."""

import ctypes
import gc
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

_TOP = Path(__file__).parents[2]  # from which a new process imports `benchmarks`
_FIRST_ROWS = 2_000  # to which the state before the measured iteration is fitted


def extra_memory(X, rival):
    """Peak memory beyond X, in bytes of X: of one iteration, and of two iterations from k-means.

    Parameters
    ----------
    X : (n_samples, n_features)
    rival : Ours or Theirs

    Returns
    -------
    {"iteration": float, "fit": float}
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "X.npy"
        np.save(path, X)
        command = [sys.executable, "-m", "benchmarks.harness.memory", path]
        command += [type(rival).__name__, str(rival.n_components)]
        found = subprocess.run(command, cwd=_TOP, capture_output=True, text=True)
    if found.returncode != 0:
        raise RuntimeError(
            f"The process that measures the memory of {rival.name} failed: {found.stderr.strip()}"
        )
    return {name: peak / X.nbytes for name, peak in json.loads(found.stdout).items()}


def _measured(path, class_name, n_components):
    from benchmarks.rivals import libraries

    X, rival = np.load(path), getattr(libraries, class_name)(n_components)
    state = rival.fit(X[:_FIRST_ROWS], "kmeans", max_iter=2)
    return {
        "sweep": peak_memory(lambda: rival.single_iteration(state, X)()),
        "fit": peak_memory(lambda: rival.fit(X, "kmeans", max_iter=2)),
    }


def peak_memory(call):
    """Bytes by which a call raises the memory of this process at its peak (Linux).

    `resource.getrusage` does not answer this, as a process inherits the peak of the one that started it.
    """
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # What was freed before must not serve the call.
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak
    before = _status("VmRSS")
    call()
    return _status("VmHWM") - before


def _status(field):
    return 1024 * int(re.search(rf"{field}:\s*(\d+) kB", Path("/proc/self/status").read_text())[1])


if __name__ == "__main__":
    from threadpoolctl import threadpool_limits

    path, class_name, n_components = sys.argv[1:]
    with threadpool_limits(1, user_api="blas"):
        print(json.dumps(_measured(path, class_name, int(n_components))))
