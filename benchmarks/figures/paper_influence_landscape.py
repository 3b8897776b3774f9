"""Influence of every point's first coordinate on that of a mean, where the point is."""

import numpy as np
from matplotlib import pyplot as plt

from figures.style import BLACK, STYLE, saved

_SHARE_IN_SCALE = 98  # % of the points; the colours of the others are the darkest


def draw(found, path):
    """A panel for every overlap, with a diverging colour scale of its own, symmetric about zero."""
    overlaps = {}
    for row in found:
        overlaps.setdefault(row["overlap"], []).append(row)
    size = (0.3 + 3.6 * len(overlaps), 4.2)
    with plt.rc_context(STYLE | {"axes.grid": False}):
        figure, panels = plt.subplots(1, len(overlaps), figsize=size, layout="constrained", squeeze=False)
        for axes, (overlap, here) in zip(panels[0], overlaps.items(), strict=True):
            coloured = _scatter(axes, [point for row in here for point in row.get("points", [])])
            for k in (0, 1):
                mean = here[0][f"mean_{k}_x"], here[0][f"mean_{k}_y"]
                axes.plot(*mean, "X", color=BLACK, markersize=11, markeredgecolor="white")
            axes.set_title(overlap, size=9)
            axes.set_xlabel("first coordinate, $x_{n1}$")
            axes.set_aspect("equal")
            bar = figure.colorbar(coloured, ax=axes, location="bottom", shrink=0.85, extend="both")
            bar.set_label(r"influence of $x_{n1}$ on the upper right $\mu_1$, times its rows", size=8)
        panels[0, 0].set_ylabel("second coordinate, $x_{n2}$")
        saved(figure, path)


def _scatter(axes, points):
    """Points coloured by their influence, the strongest on top."""
    points = sorted(points, key=lambda point: abs(point["influence"]))
    x, y, influence = (np.array([point[name] for point in points]) for name in ("x", "y", "influence"))
    reach = np.percentile(np.abs(influence), _SHARE_IN_SCALE)
    return axes.scatter(
        x,
        y,
        c=influence,
        cmap="RdBu_r",
        vmin=-reach,
        vmax=reach,
        s=11,
        edgecolors="#888888",
        linewidths=0.2,
    )
