"""Rows in memory, on disk, in batches and on Dask: passes, fits, the client's memory, and overhead."""

import contextlib
import tempfile
from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt

from benchmarks.harness import rows
from benchmarks.harness.figures import BLUE, GREEN, GREY, ORANGE, STYLE, saved
from benchmarks.harness.measuring import summary
from benchmarks.harness.tables import table, text, text_of
from benchmarks.problems.many_rows import N_COMPONENTS, N_FEATURES, many_rows

TITLE = "Rows anywhere"
_ROWS = (10**6, 10**7, 10**8)
_CHUNK_ROWS = 2_500_000  # 50 MB
_MOST_ROWS_OF_EVERY_FIT = 10**7  # Beyond, fits take minutes, and only two places are fitted.

_CHUNKS = (1, 10, 100, 1000)  # numbers of tiny chunks, for the overhead
_TINY_CHUNK_ROWS = 100
_QUICK_ROWS = 3000
_WORKERS_OF_A_BIG_CLUSTER, _ROWS_OF_A_BIG_CLUSTER, _TASKS_OF_A_BIG_CLUSTER = 100, 10**10, 2000


def measure(settings):
    """Rows of two kinds: a pass and a fit by number of rows and place; and overhead by number of chunks."""
    sizes = (_QUICK_ROWS,) if settings.quick else _ROWS
    for n_rows in sizes:
        yield from _places(n_rows, settings)
    yield from _overhead(settings)


# Where rows are.


def _places(n_rows, settings):
    """Yield a row for every place."""
    from benchmarks.rivals.libraries import Ours, Theirs

    ours, theirs = Ours(N_COMPONENTS), Theirs(N_COMPONENTS)
    chunk_rows = min(_CHUNK_ROWS, n_rows // 2)
    X = np.concatenate(list(many_rows(n_rows, chunk_rows)))
    state = ours.fit(X[: 10 * N_FEATURES * N_COMPONENTS], "kmeans", reg_covar=1e-6)
    array = ours.single_iteration(state, X)

    def row(place, rows, **others):
        times = {"pass": ours.single_iteration(state, rows), "array": array}
        found = _described(place, n_rows) | others
        found |= summary(settings.clock.interleaved(times))
        if n_rows <= _MOST_ROWS_OF_EVERY_FIT or place in ("array", "Dask, 2 workers"):
            found |= _fit(ours, rows, settings)
        return found

    yield row("array", X)
    if n_rows <= _MOST_ROWS_OF_EVERY_FIT:
        their_state = theirs.fit(X[:1000], "kmeans", max_iter=2)
        calls = {"pass": theirs.single_iteration(their_state, X), "array": array}
        times = summary(settings.clock.interleaved(calls))
        yield _described("array, scikit-learn", n_rows) | times
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / f"{number}.npy" for number in range(n_rows // chunk_rows)]
        for number, file in enumerate(files):
            np.save(file, X[number * chunk_rows : (number + 1) * chunk_rows])
        whole = Path(folder) / "X.npy"
        np.save(whole, X)
        yield row("memory map", np.load(whole, mmap_mode="r"))
        yield row("batches of memory maps", [np.load(file, mmap_mode="r") for file in files])
        for n_workers in (1,) if settings.quick else (1, 2):
            with _cluster(n_workers, settings) as persist:
                of_workers = f"{n_workers} worker{'s' * (n_workers > 1)}"
                chunks = persist(_dask_array(files, chunk_rows))
                yield row(f"Dask, {of_workers}", chunks, n_workers=n_workers)
                del chunks
                yield row(f"Dask, {of_workers}, stored", _dask_array(files, chunk_rows), n_workers=n_workers)


def _described(place, n_rows):
    """Columns of a row: what is measured."""
    return {"problem": f"{n_rows:,} rows, {place}", "kind": "place", "place": place, "n_samples": n_rows}


def _fit(ours, rows, settings):
    """Seconds and steps of a fit, and by how many bytes it raises the memory of this process."""
    from benchmarks.harness.memory import peak_memory

    fitted, peaks = [], []

    def fit():
        fitted.append(ours.fit(rows, "kmeans", reg_covar=1e-6))

    seconds = summary(settings.clock.once({"fit": lambda: peaks.append(peak_memory(fit))}))
    return seconds | {"steps": fitted[0].n_iter_, "megabytes": peaks[0] / 1e6}


def _dask_array(files, chunk_rows):
    """The rows of files as a Dask array with a chunk for every file."""
    import dask
    import dask.array as da

    shape = (chunk_rows, N_FEATURES)
    chunks = [da.from_delayed(dask.delayed(np.load)(file), shape, dtype=np.float32) for file in files]
    return da.concatenate(chunks)


@contextlib.contextmanager
def _cluster(n_workers, settings):
    """Worker processes of one thread each, as Dask's scheduler; the function that keeps chunks on them.

    In quick mode Dask works in this process.
    """
    import dask

    if settings.quick:
        with dask.config.set(scheduler="synchronous"):
            yield lambda array: array.persist()
        return
    import dask.array as da
    from distributed import Client, LocalCluster, wait

    with (
        LocalCluster(n_workers=n_workers, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):

        def persisted(array):
            """An array whose chunks are evenly spread, which is what a pass takes the time of."""
            workers = list(client.scheduler_info(n_workers=-1)["workers"])
            numbers = [part for part in np.array_split(range(array.numblocks[0]), n_workers) if len(part)]
            parts = [
                client.persist(array.blocks[part[0] : part[-1] + 1], workers=[worker])
                for part, worker in zip(numbers, workers, strict=False)
            ]
            array = da.concatenate(parts).persist()  # again, so that its tasks are the chunks alone
            wait(array)
            return array

        yield persisted


# Overhead.


def _overhead(settings):
    """Yield a row for every number of tiny chunks, taken one by one and in groups."""
    import dask.array as da

    from benchmarks.harness.inside import one_task_a_chunk
    from benchmarks.rivals.libraries import Ours

    ours, n_workers = Ours(N_COMPONENTS), 1 if settings.quick else 2
    first = next(many_rows(_TINY_CHUNK_ROWS, _TINY_CHUNK_ROWS))
    state = ours.fit(first, "kmeans", reg_covar=1e-6)
    with _cluster(n_workers, settings) as persist:
        for n_chunks in _CHUNKS[:2] if settings.quick else _CHUNKS:
            X = np.concatenate(list(many_rows(n_chunks * _TINY_CHUNK_ROWS, _TINY_CHUNK_ROWS)))
            chunks = persist(da.from_array(X, chunks=(_TINY_CHUNK_ROWS, N_FEATURES)))
            with one_task_a_chunk():
                alone = ours.single_iteration(state, chunks)
            calls = {"alone": alone, "grouped": ours.single_iteration(state, chunks)}
            yield {
                "problem": f"{n_chunks:,} tiny chunks",
                "kind": "overhead",
                "n_chunks": n_chunks,
                "n_workers": n_workers,
                **summary(settings.clock.interleaved(calls)),
            }


# The report.


def section(found):
    places = [row for row in found if row["kind"] == "place"]
    overhead = [row for row in found if row["kind"] == "overhead"]
    by_place = table(
        [
            ("problem", rows.label),
            ("a pass, s", text("pass_seconds")),
            ("times workers, over an array", text_of(_share)),
            ("a fit, s", text("fit_seconds")),
            ("its steps", text("steps", "{:.0f}")),
            ("memory of this process beyond, MB", text("megabytes", "{:.0f}")),
        ],
        places,
    )
    by_chunks = table(
        [
            ("problem", rows.label),
            ("a pass with a task for each, s", text("alone_seconds")),
            ("in groups of 8 MB, s", text("grouped_seconds")),
        ],
        overhead,
    )
    return f"""A pass is an E-step and an M-step over rows of {N_FEATURES} features in float32, with
{N_COMPONENTS} components; a fit is all passes of a default fit. "Array" is in memory; memory maps and
stored chunks are files, which the system keeps in memory as far as there is some to spare. Dask workers are
processes of one thread on the same machine, over which persisted chunks are spread evenly; stored ones are
read in every pass. The third column divides the time of a pass by that over the array, measured in turn
with it, and multiplies by the number of workers. The last column is by how much a fit raises the memory of
the process that calls it, without the rows.

{by_place}

Dask takes time for every task. Chunks of less than 8 MB are therefore taken together:

{by_chunks}

{_model(places, overhead)}

![Passes over rows anywhere](rows_anywhere.png)
"""


def _share(row):
    if row["place"] == "array":
        return None
    return row["pass_seconds"] / row["array_seconds"] * (row.get("n_workers") or 1)


def cost_of_a_pass(places, overhead):
    """Seconds a row on a worker, a task, and a pass, which these measurements say: three floats.

    A pass takes rows / workers times the first, plus tasks times the second, plus the third.
    """
    per_task, per_pass = np.polyfit(
        [row["n_chunks"] for row in overhead], [row["alone_seconds"] for row in overhead], 1
    )
    on_workers = [row for row in places if row["place"].startswith("Dask") and "stored" not in row["place"]]
    largest = max(on_workers, key=lambda row: (row["n_samples"], row["n_workers"]))
    n_tasks = largest["n_samples"] / _CHUNK_ROWS
    computing = largest["pass_seconds"] - per_pass - n_tasks * per_task
    return computing * largest["n_workers"] / largest["n_samples"], per_task, max(per_pass, 0.0)


def _model(places, overhead):
    """What the measurements say of a big cluster, in words."""
    if len(overhead) < 3:
        return ""
    per_row, per_task, per_pass = cost_of_a_pass(places, overhead)
    workers, rows, tasks = _WORKERS_OF_A_BIG_CLUSTER, _ROWS_OF_A_BIG_CLUSTER, _TASKS_OF_A_BIG_CLUSTER
    seconds = per_row * rows / workers + per_task * tasks + per_pass
    return f"""So a pass takes {1e9 * per_row:.0f} ns for every row of a worker, {1e3 * per_task:.1f} ms for
every task, and {1e3 * per_pass:.0f} ms. On paper, {rows:,} rows in {tasks:,} chunks on {workers} worker
processes take {per_row * rows / workers:.1f} s of computing and {per_task * tasks + per_pass:.1f} s of
overhead in a pass, and a fit of 25 passes {25 * seconds / 60:.1f} minutes. The network is not part of this: a
task returns some kilobytes."""


def draw(found, path):
    """Time of a pass by number of rows and place, and overhead by number of chunks."""
    places = [row for row in found if row["kind"] == "place"]
    overhead = [row for row in found if row["kind"] == "overhead"]
    styles = {
        "array, scikit-learn": (GREY, "s"),
        "array": (GREY, "o"),
        "memory map": (GREEN, "v"),
        "batches of memory maps": (GREEN, "^"),
        "Dask, 1 worker": (ORANGE, "D"),
        "Dask, 1 worker, stored": (ORANGE, "x"),
        "Dask, 2 workers": (BLUE, "D"),
        "Dask, 2 workers, stored": (BLUE, "x"),
    }
    with plt.rc_context(STYLE):
        figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
        for place, (color, marker) in styles.items():
            own = [row for row in places if row["place"] == place]
            n_samples = [row["n_samples"] for row in own]
            seconds = [row["pass_seconds"] for row in own]
            if own:
                left.plot(n_samples, seconds, marker=marker, color=color, label=place, fillstyle="none")
        left.set(xscale="log", yscale="log", xlabel="rows", ylabel="a pass, s")
        n_chunks = [row["n_chunks"] for row in overhead]
        lines = (("alone", BLUE, "a task for each"), ("grouped", ORANGE, "in groups of 8 MB"))
        for name, color, label in lines:
            right.plot(n_chunks, [row[f"{name}_seconds"] for row in overhead], "o-", color=color, label=label)
        right.set(xscale="log", yscale="log", xlabel="tiny chunks", ylabel="a pass, s")
        left.legend(fontsize="small")
        right.legend()
        saved(figure, path)
