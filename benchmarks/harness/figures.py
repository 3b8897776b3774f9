"""How all figures look, and what they share."""

import matplotlib
from matplotlib import pyplot as plt

from benchmarks.harness import rows

matplotlib.use("Agg")

# Colour-blind readers can tell these colours apart (Okabe and Ito).
BLUE, ORANGE, GREEN, PURPLE, GREY = "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#666666"
VERMILION, SKY_BLUE, BLACK = "#D55E00", "#56B4E9", "#000000"
STYLE = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#E5E5E5",
    "axes.axisbelow": True,
    "legend.frameon": False,
}


def saved(figure, path):
    """Save a figure and close it."""
    figure.savefig(path, dpi=150)
    plt.close(figure)


def _label(row):
    sizes = f"{row['n_samples']:,.0f} x {row['n_features']:.0f}, K = {row['n_components']:.0f}"
    return f"{rows.label(row)}\n{sizes}"


def by_problem(axes, found):
    """Label the y axis with one line for each row, from the top."""
    axes.set_yticks(range(len(found)), [_label(row) for row in found])
    axes.set_ylim(len(found) - 0.45, -0.55)
    axes.grid(False, axis="y")
    axes.tick_params(axis="y", length=0)


def note(axes, x, y, text, offset):
    """Write a few words ``offset`` points above a marker at (x, y)."""
    axes.annotate(text, (x, y), (0, offset), textcoords="offset points", ha="center", size=7.5, color=GREY)
