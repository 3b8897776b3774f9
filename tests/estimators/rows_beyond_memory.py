"""Fits and questions in a process that may take less memory than X: ``python rows_beyond_memory.py WHERE``.

WHERE is the name of a file to write and map, or "cluster". `test_rows_beyond_memory` runs it.
"""

import contextlib
import re
import resource
import sys
from pathlib import Path

import numpy as np

from sklearn_lrvb import LRVBGaussianMixture

SHAPE = (1_000_000, 5)  # 40 MB in float64
ALLOWED = 35_000_000  # bytes beyond what the process has at the start
FEW_ROWS = 100_000  # whose influence takes 40 MB


def main(where):
    mixture = LRVBGaussianMixture(n_components=2, covariance_type="diag", random_state=0)
    with on_a_cluster() if where == "cluster" else mapped(where) as (X, largest):
        # Libraries take their own buffers at first use, of which OpenBLAS waits for its own for ever.
        mixture.fit(np.random.default_rng(0).normal(size=(1000, SHAPE[1]))).score(np.zeros((1, SHAPE[1])))
        limit_memory()
        mixture.fit(X)
        assert mixture.converged_
        for question in (mixture.leverage, mixture.predict_proba, mixture.predict):
            assert 0 < largest(question(X)) <= 1
        if where != "cluster":
            shape = (FEW_ROWS, 2, SHAPE[1], SHAPE[1])
            influence = np.lib.format.open_memmap(f"{where}.influence.npy", "w+", np.float64, shape)
            assert mixture.influence(X[:FEW_ROWS], out=influence) is influence
            assert influence[-1].any()


def limit_memory():
    """Allow so many bytes more, and see that X would not go into them."""
    taken = int(re.search(r"VmData:\s*(\d+) kB", Path("/proc/self/status").read_text())[1])
    resource.setrlimit(resource.RLIMIT_DATA, (1024 * taken + ALLOWED, resource.RLIM_INFINITY))
    with contextlib.suppress(MemoryError):
        np.ones(SHAPE)
        raise AssertionError("the limit does not keep X out of memory")


@contextlib.contextmanager
def mapped(file):
    """Rows in a file, and a function that finds the largest number of an array."""
    rng = np.random.default_rng(0)
    X = np.lib.format.open_memmap(file, "w+", np.float64, SHAPE)
    for start in range(0, len(X), 200_000):
        rows = X[start : start + 200_000]
        rows[:] = rng.normal(size=rows.shape) + 3.0 * rng.integers(2, size=(len(rows), 1))
    del X, rows
    yield np.load(file, mmap_mode="r"), np.max


@contextlib.contextmanager
def on_a_cluster():
    """Rows in the memory of another process, and a function that has it find the largest number."""
    import dask.array as da
    from distributed import Client, LocalCluster, wait

    rng, chunk_rows = da.random.default_rng(0), SHAPE[0] // 10
    X = rng.normal(size=SHAPE, chunks=(chunk_rows, -1))
    X = X + 3.0 * rng.integers(2, size=(SHAPE[0], 1), chunks=(chunk_rows, 1))
    with (
        LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster),
    ):
        X = X.persist()
        wait(X)
        yield X, lambda array: array.max().compute()


if __name__ == "__main__":
    main(sys.argv[1])
