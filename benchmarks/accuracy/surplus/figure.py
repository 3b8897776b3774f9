"""Figure of fits with more components than clusters: steps, lower bounds and occupied components."""

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.ticker import FuncFormatter, PercentFormatter

from benchmarks.accuracy.surplus.tables import (
    DEFAULT_STEPS,
    NAMES,
    SAME_BOUND,
    gains,
    having,
    surplus,
    values,
)
from benchmarks.harness.figures import BLACK, BLUE, GREY, ORANGE, PURPLE, STYLE, VERMILION, saved

# Colour, dashes and hatching of the bars of every side.
_STYLES = {
    "plain": (BLACK, "-", ""),
    "auto": (BLUE, "--", "////"),
    "merge": (ORANGE, "-.", ""),
    "search": (VERMILION, ":", "...."),
    "restarts": (PURPLE, (0, (5, 1, 1, 1, 1, 1)), ""),
}
_SIDES = ("plain", "auto", "merge", "search")
# Groups of bars: least and largest number of occupied components beyond the number of clusters.
_BEYOND = {
    "fewer": (-np.inf, -1),
    "equal": (0, 0),
    "1": (1, 1),
    "2": (2, 2),
    "3-5": (3, 5),
    "≥ 6": (6, np.inf),
}


def draw(found, path):
    """Three panels over the known and the fresh problems."""
    found = [row for row in found if row["set"] != "ctgan"]
    with plt.rc_context(STYLE):
        figure, panels = plt.subplots(1, 3, figsize=(12, 4.2), layout="constrained")
        _steps(panels[0], found)
        _bounds(panels[1], found)
        _occupied(panels[2], found)
        labels = [NAMES[side] for side in _STYLES]
        figure.legend(_handles(), labels, loc="outside upper center", ncols=len(labels), handlelength=4)
        saved(figure, path)


def _handles():
    """A line for each side in the legend."""
    return [
        plt.Line2D([], [], color=colour, linestyle=dashes, linewidth=2)
        for colour, dashes, _ in _STYLES.values()
    ]


def _steps(axes, found):
    """Share of fits that have converged within a number of steps."""
    axes.axvline(DEFAULT_STEPS, color=GREY, linewidth=1)
    for side in _SIDES:
        colour, dashes, _ = _STYLES[side]
        steps = np.sort(values(found, f"{side}_steps"))
        share = np.arange(1, len(steps) + 1) / len(steps)
        axes.step(steps, share, where="post", color=colour, linestyle=dashes, linewidth=2)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    axes.set_xlabel(f"steps (line: the default max_iter={DEFAULT_STEPS})")
    axes.set_ylabel("share of fits that took at most so many")


def _bounds(axes, found):
    """Differences of the lower bound from that of the fit without moves, in order."""
    axes.axhline(0, color=BLACK, linewidth=2)
    for side in ("auto", "merge", "search", "restarts"):
        colour, dashes, _ = _STYLES[side]
        differences = np.sort(gains(found, side, "plain"))
        share = (np.arange(len(differences)) + 0.5) / len(differences)
        axes.plot(share, differences, color=colour, linestyle=dashes, linewidth=2)
    axes.set_yscale("symlog", linthresh=SAME_BOUND)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_major_formatter(PercentFormatter(1.0))
    axes.set_xlabel("share of fits, from the lowest to the highest")
    axes.set_ylabel(f"lower bound beyond that of {NAMES['plain']}, nats")


def _occupied(axes, found):
    """How often there are more occupied components than clusters, and how many more."""
    width = 0.8 / len(_SIDES)
    for i, side in enumerate(_SIDES):
        colour, _, hatch = _STYLES[side]
        beyond = surplus(having(found, "n_clusters"), side)
        shares = [np.mean((beyond >= low) & (beyond <= high)) for low, high in _BEYOND.values()]
        places = np.arange(len(shares)) + (i - (len(_SIDES) - 1) / 2) * width
        axes.bar(
            places,
            shares,
            width,
            color=colour,
            hatch=hatch,
            edgecolor="white",
            linewidth=0,
            label=NAMES[side],
        )
    axes.set_xticks(range(len(_BEYOND)), _BEYOND)
    axes.tick_params(axis="x", length=0)
    axes.grid(False, axis="x")
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    axes.set_xlabel("occupied components beyond the clusters")
    axes.set_ylabel("share of fits")
    axes.legend(loc="upper right")
