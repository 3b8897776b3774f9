"""Mixed tables: latent classes with error bars beside StepMix, and rows in memory, on disk and on Dask.

Seconds are of the processor, on one thread. Beside StepMix both sides run in turn in one process.
"""

import tempfile
from pathlib import Path
from time import process_time

import numpy as np

from benchmarks.harness.tables import ratio, table, text, text_of

TITLE = "Mixed tables"
_N_BOOTSTRAPS, _N_CLASSES = 20, 5
_ROWS_BESIDE, _ROWS_ALONE, _MANY_ROWS = 100_000, 100_000, 1_000_000
_QUICK_ROWS = 1000


def measure(settings):
    """Rows of three kinds: beside StepMix, alone, and by place."""
    from benchmarks.rivals.stepmix_bootstrap import is_installed

    with_stepmix = is_installed("mixed")
    yield _carcinoma(with_stepmix, settings)
    yield _numbers_and_categories(with_stepmix, _QUICK_ROWS if settings.quick else _ROWS_BESIDE)
    yield _alone(_QUICK_ROWS if settings.quick else _ROWS_ALONE)
    yield from _places(_QUICK_ROWS if settings.quick else _MANY_ROWS)


def _seconds(call):
    begin = process_time()
    call()
    return process_time() - begin


def _described(problem, kind, n_samples, n_features, n_classes):
    sizes = {"n_samples": n_samples, "n_features": n_features, "n_components": n_classes}
    return {"problem": problem, "kind": kind} | sizes


def _with_error_bars(X, n_classes, columns, n_init=10):
    """A fit with all error bars."""
    from sklearn_lrvb import LRVBLatentClassMixture

    mixture = LRVBLatentClassMixture(n_classes, columns=columns, n_init=n_init, random_state=0).fit(X)
    _ = mixture.posterior_std_, mixture.weights_std_
    return mixture


def _carcinoma(with_stepmix, settings):
    from benchmarks.problems.mixed_tables import small_table
    from benchmarks.rivals import stepmix_bootstrap

    X, kinds, n_classes = small_table("carcinoma_3")
    n_bootstraps = 2 if settings.quick else _N_BOOTSTRAPS
    row = _described(f"carcinoma, {n_bootstraps} bootstraps", "beside", *X.shape, n_classes)
    row |= {"ours_seconds": _seconds(lambda: _with_error_bars(X, n_classes, kinds))}
    if not with_stepmix:
        return row
    codes = X.astype(float)

    def theirs():
        model = stepmix_bootstrap.fitted(codes, n_classes, "binary", n_init=10)
        stepmix_bootstrap.bootstrapped(model, codes, n_bootstraps)

    return row | {"stepmix_seconds": _seconds(theirs)}


def _numbers_and_categories(with_stepmix, n_rows):
    import pandas as pd

    from benchmarks.problems.mixed_tables import many_rows
    from benchmarks.rivals import stepmix_bootstrap

    X, _ = many_rows(n_rows, _N_CLASSES)
    X = pd.DataFrame(X[:, :8], columns=[f"x{column}" for column in range(8)])
    numeric, categorical = list(X.columns[:4]), list(X.columns[4:])
    columns = dict.fromkeys(categorical, "categorical")
    row = _described("one start, StepMix without error bars", "beside", *X.shape, _N_CLASSES)
    row |= {"ours_seconds": _seconds(lambda: _with_error_bars(X, _N_CLASSES, columns, n_init=1))}
    if not with_stepmix:
        return row
    table, measurement = stepmix_bootstrap.descriptor(X, numeric, categorical)
    fit = _seconds(lambda: stepmix_bootstrap.fitted(table, _N_CLASSES, measurement))
    return row | {"stepmix_seconds": fit}


def _alone(n_rows):
    from benchmarks.harness.memory import peak_memory
    from benchmarks.problems.mixed_tables import many_rows

    X, kinds = many_rows(n_rows, _N_CLASSES)
    row = _described("ten starts", "alone", *X.shape, _N_CLASSES)
    return row | _fit(peak_memory, X, kinds)


def _fit(peak_memory, X, kinds):
    """Seconds of a fit with all error bars, its steps, and by how many megabytes it raises the memory."""
    fitted, peaks = [], []

    def fit():
        fitted.append(_with_error_bars(X, _N_CLASSES, kinds))

    seconds = _seconds(lambda: peaks.append(peak_memory(fit)))
    return {"ours_seconds": seconds, "steps": fitted[0].n_iter_, "megabytes": peaks[0] / 1e6}


def _places(n_rows):
    """Yield a row for every place of many rows."""
    import dask
    import pandas as pd

    from benchmarks.harness.memory import peak_memory
    from benchmarks.problems.mixed_tables import many_rows

    X, kinds = many_rows(n_rows, _N_CLASSES)
    names = [f"x{column}" for column in range(X.shape[1])]
    by_name = {names[column]: kind for column, kind in kinds.items()}
    n_parts = min(10, n_rows // 500)
    with tempfile.TemporaryDirectory() as folder, dask.config.set(scheduler="synchronous"):
        whole = Path(folder) / "X.npy"
        np.save(whole, X)
        on_disk = np.load(whole, mmap_mode="r")
        batches = np.array_split(on_disk, n_parts)
        places = {
            "array": (X, kinds),
            "memory map": (on_disk, kinds),
            "batches of a memory map": (batches, kinds),
        }
        try:
            import dask.dataframe as dd
        except ImportError as error:
            print(f"mixed: Dask data frames are left out: {error}", flush=True)
        else:
            parts = dd.from_pandas(pd.DataFrame(X, columns=names), npartitions=n_parts)
            places["Dask data frame"] = parts, by_name
        for place, (rows, columns) in places.items():
            row = _described(f"rows in: {place}", "place", *X.shape, _N_CLASSES)
            yield row | _fit(peak_memory, rows, columns)


def section(found):
    size = ("N, P, K", lambda row: ", ".join(f"{row[f'n_{of}']:,.0f}" for of in _SIZES))
    beside = table(
        [
            ("problem", lambda row: row["problem"]),
            size,
            ("ours with error bars, s", text("ours_seconds")),
            ("StepMix, s", text("stepmix_seconds")),
            ("StepMix over ours", text_of(ratio("stepmix_seconds", "ours_seconds"))),
        ],
        [row for row in found if row["kind"] == "beside"],
    )
    alone = table(
        [
            ("problem", lambda row: row["problem"].split(":")[0]),
            ("rows in", lambda row: row["problem"].split(": ")[1] if ":" in row["problem"] else "array"),
            size,
            ("fit with error bars, s", text("ours_seconds")),
            ("steps", text("steps", "{:.0f}")),
            ("memory beyond the rows, MB", text("megabytes", "{:.0f}")),
        ],
        [row for row in found if row["kind"] != "beside"],
    )
    return f"""Latent classes of tables with numbers and categories, and below with counts too, a twentieth of
the values missing. "Carcinoma" are 118 slides with seven answers; StepMix has ten starts there, in every
refit too, as ours has. Of the larger table StepMix makes one fit of one start, without error bars, for which
a bootstrap would take fifty times as long.

{beside}

A fit of ten starts with all error bars, by where the rows are. Of batches and Dask every part is encoded
anew in each pass.

{alone}
"""


_SIZES = ("samples", "features", "components")
