"""Error of standard deviations against time, a panel for every problem."""

from itertools import cycle

from matplotlib import pyplot as plt
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from figures.style import BLUE, GREEN, GREY, ORANGE, STYLE, saved

_FAMILIES = {"ours": BLUE, "bootstrap": ORANGE}  # and samplers
_MARKERS = "o^sDvPX*"  # of ways, so that they are told apart within a family too


def draw(found, path):
    """Median errors, with lines to the largest, where the truth is known."""
    known = [row for row in found if row.get("all_median_error") is not None]
    problems = dict.fromkeys(row["problem"].split(":")[0] for row in known)
    markers = dict(zip(dict.fromkeys(row["way"] for row in known), cycle(_MARKERS), strict=False))
    n_panels = max(len(problems), 1)
    with plt.rc_context(STYLE):
        figure, panels = plt.subplots(
            1, n_panels, figsize=(0.6 + 4.2 * n_panels, 4.8), layout="constrained", squeeze=False
        )
        panels[0, 0].set_ylabel("error of the standard deviations: median, line to the largest")
        figure.supxlabel("seconds of the processor, fit and all standard errors", size=9)
        for axes, name in zip(panels[0], problems, strict=False):
            _panel(axes, [row for row in known if row["problem"].startswith(f"{name}:")], markers)
        handles, labels = panels[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=2 * n_panels, fontsize=8)
        saved(figure, path)


def _panel(axes, found, markers):
    axes.set_xscale("log")
    axes.set_yscale("log")
    for row in found:
        way = row["way"]
        colour = next((colour for name, colour in _FAMILIES.items() if name in way), GREEN)
        x, median, largest = row["seconds"], row["all_median_error"], row["all_worst_error"]
        axes.vlines(x, median, largest, color=colour, linewidth=1)
        axes.plot(x, median, markers[way], color=colour, markersize=7, label=way, alpha=0.8)
    own = found[0]["truth_sd_error"]
    axes.axhline(own, color=GREY, linewidth=1, linestyle="--", label="Monte Carlo error of the truth")
    axes.margins(x=0.1, y=0.1)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:g} %"))
    axes.yaxis.set_minor_locator(NullLocator())
    sizes = f"{found[0]['n_samples']:,.0f} x {found[0]['n_features']:.0f}"
    axes.set_title(f"{found[0]['problem'].split(':')[0]}: {sizes}, K = {found[0]['n_components']:.0f}")
