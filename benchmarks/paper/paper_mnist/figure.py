"""Figure of standard deviations against published ones, and of times beside the paper's."""

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.ticker import (
    FixedLocator,
    FuncFormatter,
    MaxNLocator,
    MultipleLocator,
    NullLocator,
    PercentFormatter,
)

from benchmarks.harness.figures import BLUE, GREEN, GREY, ORANGE, PURPLE, STYLE, by_problem, saved
from benchmarks.paper import PAPER_INFLUENCE_SECONDS, PAPER_REFIT_SECONDS

_METHODS = {
    "mean_field_over_gibbs": ("mean field", "s", ORANGE),
    "lrvb_over_gibbs": ("LRVB", "o", BLUE),
}
_TIMES = {
    "fit": ("k-means and fit", "o", BLUE),
    "covariance": ("all standard deviations", "s", GREEN),
    "influence": ("influence of all points on all means and log weights", "^", ORANGE),
    "precisions_influence": ("the same on all precisions", "v", PURPLE),
}


def draw(found, path):
    """Panels of standard deviations, if they were compared, above a panel of times."""
    fits = [row for row in found if row.get("fit_seconds") is not None]
    groups = [row for row in found if row.get("points")]
    heights = [4.9] * bool(groups) + [1.6 + 0.42 * len(fits)]
    with plt.rc_context(STYLE):
        figure = plt.figure(figsize=(9.5, sum(heights)), layout="constrained")
        parts = figure.subfigures(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0]
        if groups:
            _standard_deviations(parts[0], groups)
        _times(parts[-1], fits)
        saved(figure, path)


def _standard_deviations(figure, groups):
    """Two panels for every group: sds against those of Gibbs sampling, and relative differences."""
    panels = figure.subplots(2, len(groups), sharex="col", height_ratios=[1.4, 1], squeeze=False)
    for (above, below), row in zip(panels.T, groups, strict=True):
        below.sharey(panels[1, 0])
        names = ("lrvb", *_METHODS)
        values = {name: np.array([point[name] for point in row["points"]]) for name in names}
        gibbs = values["lrvb"] / values["lrvb_over_gibbs"]
        band = below.axhspan(-2 * row["noise"], 2 * row["noise"], color="#DDDDDD", linewidth=0, zorder=0)
        for method, (label, marker, colour) in _METHODS.items():
            style = {"color": colour, "s": 14, "marker": marker, "linewidths": 0, "alpha": 0.7}
            above.scatter(gibbs, gibbs * values[method], label=label, **style)
            below.scatter(gibbs, values[method] - 1, **style)
        ends = [gibbs.min(), gibbs.max()]
        above.plot(ends, ends, color=GREY, linewidth=0.8, label="equal")
        below.axhline(0, color=GREY, linewidth=0.8)
        above.set(xscale="log", yscale="log", title=f"{len(gibbs)} {row['group'].replace('_', ' ')}")
        for axis in (above.xaxis, above.yaxis):
            _round_ticks(axis)
        below.set_xlabel("published Gibbs sd")
    panels[0, 0].set_ylabel("sd")
    panels[1, 0].set_ylabel("relative difference")
    panels[1, 0].yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    panels[1, 0].yaxis.set_major_locator(MultipleLocator(0.1))
    handles, labels = panels[0, 0].get_legend_handles_labels()
    labels.append("within two Monte Carlo errors of the Gibbs sd (median)")
    figure.legend([*handles, band], labels, loc="outside upper center", ncols=4)


def _round_ticks(axis):
    """Put few round numbers along a logarithmic axis that spans less than a decade."""
    low, high = axis.get_view_interval()
    ticks = [
        tick for tick in MaxNLocator(3, steps=[1, 2, 5, 10]).tick_values(low, high) if low <= tick <= high
    ]
    axis.set_major_locator(FixedLocator(ticks))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_locator(NullLocator())


def _times(figure, fits):
    """A line for every fit, with the paper's times as vertical lines."""
    axes = figure.subplots()
    lines = np.arange(len(fits))
    for name, (label, marker, colour) in _TIMES.items():
        seconds = [row.get(f"{name}_seconds") or np.nan for row in fits]
        axes.plot(seconds, lines, marker, color=colour, label=label, markersize=6, markeredgewidth=1.5)
    for seconds, label in (
        (PAPER_INFLUENCE_SECONDS, "the paper's\ninfluence"),
        (PAPER_REFIT_SECONDS, "the paper's refits\nof five points"),
    ):
        axes.axvline(seconds, color="black", linewidth=1, linestyle="--")
        axes.annotate(
            label, (seconds, 1), (0, 3), axes.get_xaxis_transform(), "offset points", ha="center", size=8
        )
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_xlabel("seconds")
    by_problem(axes, fits)
    figure.legend(loc="outside lower center", ncols=3)
