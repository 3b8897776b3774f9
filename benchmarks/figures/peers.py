"""Error of standard deviations against time, a panel for every problem."""

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator
from matplotlib.transforms import Bbox

from figures.style import BLUE, GREEN, GREY, ORANGE, STYLE, saved

_FAMILIES = {"ours": BLUE, "bootstrap": ORANGE}  # and samplers
_MARKERS = {BLUE: "o", ORANGE: "s", GREEN: "D"}
_MARK = 7.0  # pixels around a point that no name may cover
# where a name may stand, the best first: how far up its line, and points from there to the name
_BESIDE_THE_MEDIAN = ((8, 0), (-8, 0), (0, -8), (8, -8), (-8, -8))
_BESIDE_THE_LINE = ((6, 0), (-6, 0), (0, 3))
_PLACES = (
    *((0.0, *place) for place in _BESIDE_THE_MEDIAN),
    *((share, *place) for share in (1.0, 0.5, 0.75, 0.25) for place in _BESIDE_THE_LINE),
)


def draw(found, path):
    """Median errors, with lines to the largest, where the truth is known."""
    known = [row for row in found if row.get("all_median_error") is not None]
    problems = dict.fromkeys(row["problem"].split(":")[0] for row in known)
    n_panels = max(len(problems), 1)
    with plt.rc_context(STYLE):
        figure, panels = plt.subplots(
            1, n_panels, figsize=(0.6 + 4.7 * n_panels, 4.6), layout="constrained", squeeze=False
        )
        panels[0, 0].set_ylabel("error of the standard deviations: median, line to the largest")
        figure.supxlabel("seconds of the processor, fit and all standard errors", size=9)
        here = [[row for row in known if row["problem"].startswith(f"{name}:")] for name in problems]
        for axes, some in zip(panels[0], here, strict=False):
            _points(axes, some)
        figure.canvas.draw()  # which settles the panels
        for axes, some in zip(panels[0], here, strict=False):
            _names(axes, some)
        saved(figure, path)


def _points(axes, found):
    axes.set_xscale("log")
    axes.set_yscale("log")
    for row in found:
        colour = next((colour for name, colour in _FAMILIES.items() if name in row["way"]), GREEN)
        x, median, largest = row["seconds"], row["all_median_error"], row["all_worst_error"]
        axes.vlines(x, median, largest, color=colour, linewidth=1)
        axes.plot(x, median, _MARKERS[colour], color=colour, markersize=7)
    first = found[0]
    own = first["truth_sd_error"]
    axes.axhline(own, color=GREY, linewidth=1, linestyle="--", zorder=1.9)
    axes.annotate(
        "Monte Carlo error of the truth",
        (0.16, own),
        (0, 3),
        xycoords=("axes fraction", "data"),
        textcoords="offset points",
        size=7.5,
        color=GREY,
    )
    seconds = [row["seconds"] for row in found]
    axes.set_xlim(min(seconds) / 2.5, max(seconds) * 16)  # with room for names
    axes.margins(y=0.15)
    sizes = f"{first['n_samples']:,.0f} x {first['n_features']:.0f}, K = {first['n_components']:.0f}"
    axes.set_title(f"{first['problem'].split(':')[0]}: {sizes}", size=9)
    for axis, shown in ((axes.xaxis, "{:g}".format), (axes.yaxis, _percent)):
        axis.set_major_formatter(FuncFormatter(lambda value, _, shown=shown: shown(value)))
        axis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))


def _percent(share):
    return f"{100 * share:.3g} %"


def _names(axes, found):
    """Each name beside its line, at the first place where nothing else is."""
    renderer = axes.figure.canvas.get_renderer()
    lines = [[(row["seconds"], row[f"all_{end}_error"]) for end in ("median", "worst")] for row in found]
    taken = [Bbox(axes.transData.transform(line)).padded(_MARK) for line in lines]
    taken += [line.get_window_extent(renderer) for line in axes.lines if line.get_linestyle() == "--"]
    taken += [text.get_window_extent(renderer) for text in axes.texts]
    for row, ((seconds, median), (_, largest)) in zip(found, lines, strict=True):
        for share, across, up in _PLACES:
            name = axes.annotate(
                row["way"].replace(" + ", "\n+ ").replace("BayesianG", "Bayesian-\nG"),
                (seconds, median * (largest / median) ** share),
                (across, up),
                textcoords="offset points",
                ha={-1: "right", 0: "center", 1: "left"}[np.sign(across)],
                va={-1: "top", 0: "center", 1: "bottom"}[np.sign(up)],
                size=8,
            )
            box = name.get_window_extent(renderer)
            inside = axes.bbox.contains(*box.min) and axes.bbox.contains(*box.max)
            if inside and not any(box.overlaps(other) for other in taken):
                break
            name.remove()
        else:
            axes.add_artist(name)  # at the last place, over what is there
        taken.append(box)
