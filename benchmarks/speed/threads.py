"""Blocks of rows on one thread and on two: where threads pay, and where the library declines them."""

import numpy as np
from matplotlib import pyplot as plt

from benchmarks.harness.clock import summary
from benchmarks.harness.figures import BLUE, GREEN, GREY, STYLE, saved
from benchmarks.harness.tables import milliseconds, ratio, table, text, yes
from benchmarks.problems.many_rows import N_COMPONENTS, many_rows

TITLE = "Threads"
_ROWS = (10**5, 10**6, 10**7)
_FEATURES = (2, 5, 10, 25, 50, 100, 200)
_MOST_NUMBERS = 10**9  # of X, which takes 4 bytes each
_QUICK_ROWS = 6000
_CHUNK_ROWS = 1000
_FIRST_ROWS = 20_000  # to which the state of the sweep is fitted
_THREADS = 2


def measure(settings):
    """A row for every number of rows and features that fits in memory."""
    for n_samples in (_QUICK_ROWS,) if settings.quick else _ROWS:
        for n_features in _FEATURES[:2] if settings.quick else _FEATURES:
            if n_samples * n_features <= _MOST_NUMBERS:
                yield _row(n_samples, n_features, settings)


def _row(n_samples, n_features, settings):
    from benchmarks.harness.inside import blocks_on_threads, least_features_for_threads
    from benchmarks.rivals.libraries import Ours

    X = np.concatenate(list(many_rows(n_samples, _CHUNK_ROWS, n_features)))
    state = Ours(N_COMPONENTS).fit(X[:_FIRST_ROWS], "kmeans", reg_covar=1e-6, max_iter=1)
    calls = {
        "one": Ours(N_COMPONENTS).sweeper(state, X),
        "two": Ours(N_COMPONENTS, n_jobs=_THREADS).sweeper(state, X),
    }
    with blocks_on_threads():
        times = summary(settings.clock.interleaved(calls))
    return {
        "problem": f"{n_samples:,} rows of {n_features}",
        "n_samples": n_samples,
        "n_features": n_features,
        "n_components": N_COMPONENTS,
        **times,
        "taken": n_features >= least_features_for_threads(),
    }


def section(found):
    shown = table(
        [
            ("rows", text("n_samples", "{:,.0f}")),
            ("features", text("n_features", "{:.0f}")),
            ("one thread, ms", milliseconds("one_seconds")),
            ("two threads, ms", milliseconds("two_seconds")),
            ("two over one", _ratio),
            ("threads are taken", yes("taken")),
        ],
        found,
    )
    return f"""A sweep over float32 rows with {N_COMPONENTS} components and "full" covariances, with
`n_jobs=1` and with `n_jobs=2`, where BLAS has one thread on both sides. Where features are few, a sweep is
made of many short NumPy calls, between which threads wait for the interpreter; there `n_jobs` is not
followed, as the last column says. Processes do not wait for each other: see the next section.

{shown}

![Two threads over one](threads.png)
"""


def _ratio(row):
    return f"{ratio('two_seconds', 'one_seconds')(row):.2f}"


def draw(found, path):
    """Time on two threads over that on one, by the number of features."""
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(figsize=(6.5, 3.6), layout="constrained")
        colours = (GREY, GREEN, BLUE)
        for n_samples, colour in zip(sorted({row["n_samples"] for row in found}), colours, strict=False):
            own = [row for row in found if row["n_samples"] == n_samples]
            ratios = [row["two_seconds"] / row["one_seconds"] for row in own]
            features = [row["n_features"] for row in own]
            axes.plot(features, ratios, "o-", color=colour, label=f"{n_samples:,} rows")
        declined = [row["n_features"] for row in found if not row["taken"]]
        taken = [row["n_features"] for row in found if row["taken"]]
        if declined and taken:
            edge = np.sqrt(max(declined) * min(taken))
            axes.axvspan(min(declined) / 1.2, edge, color=GREY, alpha=0.15, label="threads are declined")
        axes.axhline(1, color=GREY, linewidth=1)
        axes.set(xscale="log", xlabel="features", ylabel="a sweep: two threads over one", ylim=(0, None))
        ticks = sorted({row["n_features"] for row in found})
        axes.set_xticks(ticks, [str(tick) for tick in ticks])
        axes.minorticks_off()
        axes.legend()
        saved(figure, path)
