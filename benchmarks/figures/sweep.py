"""How many times faster one sweep of ours is."""

import numpy as np
import targets
from matplotlib import pyplot as plt
from matplotlib.ticker import FuncFormatter, NullLocator

from figures.style import BLUE, GREEN, GREY, ORANGE, STYLE, by_problem, saved


def draw(found, path):
    """How many times faster one sweep of ours is, with its targets."""
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(figsize=(7.5, 1.2 + 0.45 * len(found)), layout="constrained")
        lines = np.arange(len(found))
        ratios = np.array([row["theirs_seconds"] / row["ours_seconds"] for row in found])
        axes.barh(lines, ratios - 1, left=1, height=0.5, color=BLUE, label="measured")
        for line, ratio in zip(lines, ratios, strict=True):
            axes.text(1.01, line, f"{ratio:.1f}x", transform=axes.get_yaxis_transform(), va="center")
        wanted = {
            line: targets.SWEEP[row["problem"]]
            for line, row in enumerate(found)
            if row["problem"] in targets.SWEEP
        }
        for name, colour in (("solid", ORANGE), ("aim", GREEN)):
            thresholds = [getattr(target, name) for target in wanted.values()]
            below, above = ([line + side for line in wanted] for side in (-0.36, 0.36))
            axes.vlines(thresholds, below, above, color=colour, linewidth=3, label=f"target: {name}")
        axes.axvline(1, color=GREY, linewidth=1)
        axes.set_xscale("log")
        furthest = max([*ratios, *(target.aim for target in wanted.values())])
        low, high = min(0.8, 0.9 * ratios.min()), 1.2 * furthest
        axes.set_xticks([tick for tick in (0.2, 0.5, 1, 2, 5, 10, 20, 50, 100) if low <= tick <= high])
        axes.set_xlim(low, high)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}x"))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_xlabel("time of one sweep: scikit-learn over ours")
        by_problem(axes, found)
        figure.legend(loc="outside upper center", ncols=3)
        saved(figure, path)
