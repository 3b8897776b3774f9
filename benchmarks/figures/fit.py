"""Time to the same accuracy, and where scikit-learn's defaults stop."""

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.ticker import FuncFormatter

from figures.style import BLUE, GREEN, ORANGE, PURPLE, STYLE, by_problem, note, saved

_ABOVE, _BELOW = 6, -13  # points from a marker to its note


def draw(found, path):
    """Time to the same accuracy, and where scikit-learn's defaults stop."""
    found = [row for row in found if not row.get("note")]
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(figsize=(8, 1.2 + 0.48 * len(found)), layout="constrained")
        lines = np.arange(len(found))
        sides = {
            "theirs": ("scikit-learn, to 1e-3 sd", "D", ORANGE),
            "plain": ("our sweeps alone, to 1e-3 sd", "s", GREEN),
            "newton_near": ("ours, to 1e-3 sd", "o", BLUE),
            "newton": ("ours, converged", "|", BLUE),
            "default": ("scikit-learn's defaults stop, sd away", "x", PURPLE),
        }
        seconds = {side: [row[f"{side}_seconds"] for row in found] for side in sides}
        all_seconds = list(seconds.values())
        axes.hlines(lines, np.min(all_seconds, axis=0), np.max(all_seconds, axis=0), color="#DDDDDD")
        for side, (label, marker, colour) in sides.items():
            axes.plot(
                seconds[side], lines, marker, color=colour, label=label, markersize=7, markeredgewidth=1.5
            )
        for line, row in zip(lines, found, strict=True):
            note(axes, row["default_seconds"], line, _distance(row["default_distance"]), _ABOVE)
            for side in ("theirs", "plain"):
                if not row[f"{side}_reached"]:
                    note(axes, row[f"{side}_seconds"], line, "or more", _ABOVE)
                elif row[f"{side}_elsewhere"]:
                    note(axes, row[f"{side}_seconds"], line, "another optimum", _BELOW)
        axes.set_xscale("log")
        axes.margins(x=0.08)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.set_xlabel("seconds")
        by_problem(axes, found)
        figure.legend(loc="outside upper center", ncols=2)
        saved(figure, path)


def _distance(sds):
    if sds < 1e-3:
        return "<0.001"
    return f"{sds:.0f}" if sds >= 10 else f"{sds:.1g}"
