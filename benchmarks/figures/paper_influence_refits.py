"""Influence by linear response against derivatives by refits."""

from matplotlib import pyplot as plt
from matplotlib.ticker import FuncFormatter

from figures.style import BLUE, GREEN, GREY, ORANGE, STYLE, saved

_GROUPS = {
    "log_weights": ("log weights", "D", ORANGE),
    "precisions": ("precisions", "s", GREEN),
    "means": ("means", "o", BLUE),
}
_LINEAR = 1.0  # root mean squares, up to which the axes are linear


def draw(found, path):
    """A panel for every data set: refits above linear response, on the identity line if they agree."""
    datasets = {}
    for row in found:
        datasets.setdefault(row["problem"].split(":")[0], {})[row["group"]] = row["points"]
    size = (0.6 + 3.3 * len(datasets), 4.0)
    with plt.rc_context(STYLE):
        figure, panels = plt.subplots(1, len(datasets), figsize=size, layout="constrained", squeeze=False)
        for axes, (dataset, by_group) in zip(panels[0], datasets.items(), strict=True):
            _panel(axes, by_group)
            axes.set_title(dataset, size=9)
        panels[0, 0].set_ylabel("derivative by refits")
        figure.supxlabel("influence by linear response, in root mean squares of its group", size=9)
        figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
        saved(figure, path)


def _panel(axes, by_group):
    reach = 1.3 * max(abs(point["lrvb"]) for points in by_group.values() for point in points)
    axes.plot([-reach, reach], [-reach, reach], color=GREY, linewidth=0.8, zorder=1)
    for group, (label, marker, colour) in _GROUPS.items():
        axes.plot(
            [point["lrvb"] for point in by_group[group]],
            [point["refitted"] for point in by_group[group]],
            marker,
            color=colour,
            markersize=4,
            markerfacecolor="none",
            markeredgewidth=0.7,
            label=label,
        )
    for scale in (axes.set_xscale, axes.set_yscale):
        scale("symlog", linthresh=_LINEAR)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_xlim(-reach, reach)
    axes.set_ylim(-reach, reach)
    axes.set_aspect("equal")
