"""One iteration, ours beside scikit-learn's: its time, its share of the limit by flops, its peak memory."""

import sys

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.ticker import FuncFormatter, NullLocator

from benchmarks.harness.figures import BLUE, GREY, STYLE, by_problem, saved
from benchmarks.harness.measuring import sizes, summary
from benchmarks.harness.memory import extra_memory
from benchmarks.harness.tables import SIZES, milliseconds, ratio, table, text, text_of
from benchmarks.problems.clusters import ITERATION

TITLE = "One iteration"
_FIRST_ROWS = 10_000  # rows to which the state of the iteration is fitted
_ITERATIONS_BEFORE = 5


def flops(n_samples, n_features, n_components):
    """Multiplications and additions that no iteration can avoid: 4 N K P^2."""
    return 4 * n_samples * n_components * n_features**2


def measure(settings):
    """A row for every problem: times and, on one thread under Linux, memory.

    In quick mode only our own memory is measured, on the first problem.
    """
    from benchmarks.rivals.libraries import Ours, Theirs

    for number, problem in enumerate(settings.problems(ITERATION)):
        X = problem.simulate()
        row = sizes(problem) | _times(X, problem, settings)
        if sys.platform == "linux" and settings.threads == 1 and not (settings.quick and number):
            row |= _memory("ours", X, Ours(problem.n_components))
            if not settings.quick:
                row |= _memory("theirs", X, Theirs(problem.n_components))
                row |= _memory("ours_float32", X.astype(np.float32), Ours(problem.n_components))
            row["megabytes"] = X.nbytes / 1e6
        yield row


def _times(X, problem, settings):
    from benchmarks.rivals.libraries import Ours, Theirs, kmeans_responsibilities

    ours, theirs = Ours(problem.n_components, n_jobs=settings.threads), Theirs(problem.n_components)
    first = X[:_FIRST_ROWS]
    start = kmeans_responsibilities(first, problem.n_components)
    our_state, their_state = (
        rival.advanced(rival.start(first, start), first, _ITERATIONS_BEFORE) for rival in (ours, theirs)
    )
    single = X.astype(np.float32)
    row = summary(
        settings.clock.interleaved(
            {
                "ours": ours.single_iteration(our_state, X),
                "theirs": theirs.single_iteration(their_state, X),
                "ours_float32": ours.single_iteration(our_state, single),
            }
        )
    )
    work = flops(*X.shape, problem.n_components)
    row["gflops"] = work / row["ours_seconds"] / 1e9
    row["product_gflops"] = settings.product_rate / 1e9
    row["share_of_limit"] = work / row["ours_seconds"] / settings.product_rate
    return row


def _memory(name, X, rival):
    return {f"{name}_{what}_memory": multiple for what, multiple in extra_memory(X, rival).items()}


def section(found):
    speed = table(
        [
            *SIZES,
            ("ours, ms", milliseconds("ours_seconds")),
            ("scikit-learn, ms", milliseconds("theirs_seconds")),
            ("times faster", text_of(ratio("theirs_seconds", "ours_seconds"))),
            ("ours, Gflop/s", text("gflops")),
            ("share of the flop limit", text("share_of_limit", "{:.2%}")),
            ("ours on float32 rows, ms", milliseconds("ours_float32_seconds")),
        ],
        found,
    )
    memory = table(
        [
            *SIZES,
            ("X, MB", text("megabytes")),
            ("iteration, ours", text("ours_sweep_memory")),
            ("iteration, ours, float32", text("ours_float32_sweep_memory")),
            ("iteration, scikit-learn", text("theirs_sweep_memory")),
            ("fit, ours", text("ours_fit_memory")),
            ("fit, ours, float32", text("ours_float32_fit_memory")),
            ("fit, scikit-learn", text("theirs_fit_memory")),
        ],
        [row for row in found if row.get("megabytes") is not None],
    )
    return f"""One iteration does an E-step, an M-step and an evaluation of the lower bound. Both libraries
make the same update, from the same state. The flop limit is the time of 4 N K P^2 operations at the speed of
a large matrix product.

{speed}

![Speed of one iteration](sweep.png)

The next table has the peak memory beyond X, in multiples of X (in the columns of float32, of the float32 X):
of one iteration, and of a fit of two iterations from k-means. Each side runs in a process of its own on one
thread. Blocks of rows take some 16 MB.

{memory}
"""


def draw(found, path):
    """How many times faster one iteration of ours is."""
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(figsize=(7.5, 1.2 + 0.45 * len(found)), layout="constrained")
        lines = np.arange(len(found))
        ratios = np.array([row["theirs_seconds"] / row["ours_seconds"] for row in found])
        axes.barh(lines, ratios - 1, left=1, height=0.5, color=BLUE)
        for line, ratio in zip(lines, ratios, strict=True):
            axes.text(1.01, line, f"{ratio:.1f}x", transform=axes.get_yaxis_transform(), va="center")
        axes.axvline(1, color=GREY, linewidth=1)
        axes.set_xscale("log")
        low, high = min(0.8, 0.9 * ratios.min()), 1.2 * ratios.max()
        axes.set_xticks([tick for tick in (0.2, 0.5, 1, 2, 5, 10, 20, 50, 100) if low <= tick <= high])
        axes.set_xlim(low, high)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}x"))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_xlabel("time of one iteration: scikit-learn over ours")
        by_problem(axes, found)
        saved(figure, path)
