"""Blocks of rows on one thread and on two: where threads pay, and where the library declines them."""

import numpy as np
from matplotlib import pyplot as plt

from benchmarks.harness import rows
from benchmarks.harness.figures import BLUE, GREEN, GREY, ORANGE, STYLE, saved
from benchmarks.harness.measuring import summary
from benchmarks.harness.tables import milliseconds, table, yes
from benchmarks.problems.many_rows import N_COMPONENTS, many_rows

TITLE = "Threads"
_ROWS = (10**5, 10**6, 10**7)
_FEATURES = (2, 5, 10, 25, 50, 100, 200)
_MOST_NUMBERS = 10**9  # of X, which takes 4 bytes each
_FEATURES_OF_LEVERAGE = (2, 5, 10, 25, 50)
_ROWS_OF_LEVERAGE = 10**4
_QUICK_ROWS = 6000
_CHUNK_ROWS = 1000
_FIRST_ROWS = 20_000  # to which the state of the iteration is fitted
_THREADS = 2
_WHAT = {"sweep": "an iteration", "leverage": "leverage"}


def measure(settings):
    """A row for every number of rows and features that fits in memory: iterations, then leverage."""
    for n_samples in (_QUICK_ROWS,) if settings.quick else _ROWS:
        for n_features in _FEATURES[:2] if settings.quick else _FEATURES:
            if n_samples * n_features <= _MOST_NUMBERS:
                yield _iteration(_rows(n_samples, n_features), settings)
    for n_features in _FEATURES_OF_LEVERAGE[:2] if settings.quick else _FEATURES_OF_LEVERAGE:
        yield _leverage(_rows(_QUICK_ROWS if settings.quick else _ROWS_OF_LEVERAGE, n_features), settings)


def _rows(n_samples, n_features):
    return np.concatenate(list(many_rows(n_samples, _CHUNK_ROWS, n_features)))


def _iteration(X, settings):
    from benchmarks.rivals.libraries import Ours

    state = Ours(N_COMPONENTS).fit(X[:_FIRST_ROWS], "kmeans", reg_covar=1e-6, max_iter=0)
    calls = [Ours(N_COMPONENTS, n_jobs=n_jobs).single_iteration(state, X) for n_jobs in (1, _THREADS)]
    return _row("sweep", X, X.shape[1], calls, settings)


def _leverage(X, settings):
    from sklearn_lrvb import LRVBGaussianMixture

    calls = []
    for n_jobs in (1, _THREADS):
        mixture = LRVBGaussianMixture(
            n_components=N_COMPONENTS, prior="fixed", n_jobs=n_jobs, random_state=0
        ).fit(X)
        mixture.leverage(X[:10])  # The matrix that it needs is formed once.
        calls.append(lambda mixture=mixture: mixture.leverage(X))
    n_moments = 1 + X.shape[1] + X.shape[1] * (X.shape[1] + 1) // 2
    return _row("leverage", X, n_moments // 2, calls, settings)


def _row(what, X, product_size, calls, settings):
    """A row of times of a call with one thread and with two."""
    from benchmarks.harness.inside import blocks_on_threads, least_product_for_threads

    with blocks_on_threads():
        times = summary(settings.clock.interleaved(dict(zip(("one", "two"), calls, strict=True))))
    return {
        "problem": f"{_WHAT[what]}, {len(X):,} rows of {X.shape[1]} features",
        "what": what,
        "n_samples": len(X),
        "n_features": X.shape[1],
        "n_components": N_COMPONENTS,
        **times,
        "taken": product_size >= least_product_for_threads(),
    }


def section(found):
    shown = table(
        [
            ("problem", rows.label),
            ("one thread, ms", milliseconds("one_seconds")),
            ("two threads, ms", milliseconds("two_seconds")),
            ("two over one", lambda row: f"{_ratio(row):.2f}"),
            ("threads are taken", yes("taken")),
        ],
        found,
    )
    return f"""An iteration over float32 rows, and the leverage of each, with {N_COMPONENTS} components and
"full" covariances, with `n_jobs=1` and with `n_jobs=2`; BLAS has one thread on both sides. Where matrices are
small, an iteration is made of many short NumPy calls, between which threads wait for the interpreter. There
`n_jobs` is not followed, as the last column says. Leverage, leave-one-out scores, influence and the matrix
behind the error bars multiply matrices of second moments, which are larger. Processes do not wait for each
other: see the next section.

{shown}

![Two threads over one](threads.png)
"""


def _ratio(row):
    return row["two_seconds"] / row["one_seconds"]


def draw(found, path):
    """Time on two threads over that on one, by the number of features; hollow where they are declined."""
    series = sorted({(row["what"] == "leverage", row["n_samples"]) for row in found})
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(figsize=(6.5, 3.8), layout="constrained")
        for (is_leverage, n_samples), colour in zip(series, (GREY, GREEN, BLUE, ORANGE), strict=False):
            what = "leverage" if is_leverage else "sweep"
            own = [row for row in found if (row["what"], row["n_samples"]) == (what, n_samples)]
            label = f"{_WHAT[what]}, {n_samples:,.0f} rows"
            axes.plot([row["n_features"] for row in own], list(map(_ratio, own)), color=colour, label=label)
            for row in own:
                face = colour if row["taken"] else "white"
                axes.plot(row["n_features"], _ratio(row), "o", color=colour, markerfacecolor=face)
        axes.axhline(1, color=GREY, linewidth=1)
        axes.set(xscale="log", xlabel="features", ylim=(0, None))
        axes.set_ylabel("two threads over one\n(hollow: declined)")
        ticks = sorted({row["n_features"] for row in found})
        axes.set_xticks(ticks, [f"{tick:.0f}" for tick in ticks])
        axes.minorticks_off()
        axes.legend(fontsize="small")
        saved(figure, path)
