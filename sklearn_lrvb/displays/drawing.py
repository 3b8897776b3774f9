"""How all displays draw: colours, markers and line styles, axes, grids of panels, ticks, rows, legends."""

import textwrap

import numpy as np
from sklearn.utils._optional_dependencies import check_matplotlib_support

# The palette of Okabe and Ito, which all kinds of colour vision can tell apart, without its yellow and black.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
MARKERS = ("o", "^", "s", "D", "v", "P", "X")
_LINE_STYLES = ("solid", "dashed", "dotted", "dashdot")  # Of the first six colours, of the next six, ...

_LEGEND_PLACES = {
    "beside": {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0), "frameon": False},
    "above": {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0), "frameon": False},
    "inside": {"loc": "upper left", "frameon": False},
    "corner": {"loc": "upper right", "edgecolor": "none"},
    "strip": {"loc": "upper left", "borderaxespad": 0.0, "frameon": False},
}

_CHARACTERS_PER_INCH = 14.0  # Of the small print that labels panels.


class Display:
    """A display, which is drawn on `ax_`, of `figure_`."""

    def _take(self, ax, shape=(1, 1), figsize=None, heights=None):
        """Set `ax_` and `figure_`, and make a grid of panels there: object array of that shape.

        Parameters
        ----------
        ax : Axes or None, the axes that give their place to the grid; None makes a new figure, whose layout
            makes room for a legend beside them
        shape : pair of int, rows and columns; a grid of one panel is the axes themselves
        figsize : pair of float, inches of a new figure
        heights : list of float, of the rows of panels in relation to each other; None: all are equal
        """
        check_matplotlib_support("The plot of a display")
        import matplotlib.pyplot as plt

        if ax is None:
            ax = plt.figure(figsize=figsize, layout="constrained").add_subplot()
        self.ax_, self.figure_ = ax, ax.figure
        panels = np.full(shape, ax, dtype=object)
        if panels.size == 1:
            return panels
        place = ax.get_subplotspec()
        if place is None:
            raise ValueError(
                f"ax was placed by hand, and {panels.size} panels cannot take its place. (a) Make it by "
                "plt.subplots() or figure.add_subplot(). (b) Leave ax out, for a new figure."
            )
        # Where no layout makes room for labels, gaps do, in units of the average height of a row.
        gap = 0.8 if heights is not None and ax.figure.get_layout_engine() is None else None
        grid = place.subgridspec(*shape, height_ratios=heights, hspace=gap)
        for row, column in np.ndindex(*shape):
            panels[row, column] = ax.figure.add_subplot(grid[row, column])
        ax.set_axis_off()
        return panels


def inches(ax):
    """Width and height of axes in inches, before the layout makes room for labels."""
    return ax.get_window_extent().size / ax.figure.dpi


def wrapped(name, inches):
    """A text in lines of about this length, broken at blanks and underscores, its dollar signs escaped."""
    length = max(16, int(inches * _CHARACTERS_PER_INCH))  # A narrower line would break words.
    # Lines are broken at blanks: for that time a zero-width space and a blank stand for an underscore.
    spaced = name.replace("_", "\u200b ").splitlines()
    broken = [line for part in spaced for line in textwrap.wrap(part, length, break_on_hyphens=False)]
    return no_formula("\n".join(line.replace("\u200b ", "_").replace("\u200b", "_") for line in broken))


def no_formula(text):
    """A text whose dollar signs are drawn as they are; matplotlib could not draw an invalid formula."""
    return text.replace("$", r"\$")


def label_values(panel, label, width):
    """Label the x axis of a small panel, with so many ticks as have room beside each other.

    A power of ten that all tick labels share goes into the label: where matplotlib writes it, it would be on
    top of the label, or of the next panel.

    Parameters
    ----------
    panel : Axes, with its limits
    label : str
    width : float, inches of the panel
    """
    from matplotlib.ticker import MaxNLocator, ScalarFormatter

    formatter = ScalarFormatter(useOffset=False)
    formatter.set_powerlimits((-3, 5))
    panel.xaxis.set_major_formatter(formatter)
    low, high = panel.get_xlim()
    for n_ticks in range(4, 0, -1):
        locator = MaxNLocator(n_ticks, steps=[1, 2, 2.5, 5, 10])
        ticks = [tick for tick in locator.tick_values(low, high) if low <= tick <= high]
        n_characters = sum(len(text) + 2 for text in formatter.format_ticks(ticks))
        if len(ticks) < 2 or n_characters <= width * _CHARACTERS_PER_INCH:
            break
    panel.xaxis.set_major_locator(locator)
    panel.xaxis.offsetText.set_visible(False)
    panel.tick_params(labelsize="small")
    power = formatter.get_offset()
    shared = f"\n(\N{MULTIPLICATION SIGN} {power})" if power else ""
    panel.set_xlabel(wrapped(label, width) + shared, size="small")


def label_axes(ax, xlabel, ylabel):
    """Label the axes, in several lines where the labels are longer than the axes."""
    # Full-size labels are larger than small print, and a legend or colour bar takes some of the width.
    width, height = [0.6, 0.85] * inches(ax)
    ax.set(xlabel=wrapped(xlabel, width), ylabel=wrapped(ylabel, height))


def write_beside(ax, text, place, offset, **style):
    """Write small text at an offset in points from a place, legible on whatever is drawn there: Text."""
    from matplotlib.patheffects import withStroke

    outlined = {"path_effects": [withStroke(linewidth=2.5, foreground="white")], **style}
    return ax.annotate(text, place, xytext=offset, textcoords="offset points", **outlined)


def styled(artist, default, given):
    """Keyword arguments of an artist: the user's, and the display's own where the user has none.

    Names are the full ones, "linewidth" for "lw" or "linewidths": matplotlib refuses two names of one thing.

    Parameters
    ----------
    artist : type of matplotlib Artist
    default, given : dict of keyword arguments, the display's and the user's
    """
    from matplotlib.cbook import normalize_kwargs

    default, given = normalize_kwargs(default, artist), normalize_kwargs(given, artist)
    if "colors" in given:
        given["color"] = given.pop("colors")
    if "c" in given:  # It is scatter's own, and may hold values for a colour map.
        default.pop("color", None)
    return {**default, **given}


def scatter_rows(ax, points, style, given):
    """Draw rows in a plane, and at its edges, as ticks or in colours, those of which one value is missing.

    Parameters
    ----------
    points : (n, 2), NaN where values are missing; rows without both are not drawn
    style : dict of keyword arguments of `scatter`; those that are arrays have a value for each row
    given : dict, the user's, which go before

    Returns
    -------
    whole : PathCollection, the rows with both values
    ticks : list of PathCollection, at the lower edge and at the left one, where there are such rows
    """
    from matplotlib.collections import PathCollection
    from matplotlib.markers import TICKRIGHT, TICKUP

    style, is_missing = styled(PathCollection, style, given), np.isnan(points)

    def draw(own, **look):
        by_row = {k: v[own] for k, v in style.items() if isinstance(v, np.ndarray) and len(v) == len(own)}
        # Zero, in the place of a missing value, is the edge in coordinates of the axes.
        return ax.scatter(*np.nan_to_num(points[own]).T, **{**style, **by_row, **look})

    whole, ticks = draw(~is_missing.any(axis=1)), []
    look = {"clip_on": False}
    if "c" not in style:  # Colours of values need an area.
        style = {k: v for k, v in style.items() if k not in ("edgecolor", "facecolor")}
        look = {"s": 50, "linewidth": 1.0}  # Of ticks.
    edges = (1, TICKUP, ax.get_xaxis_transform()), (0, TICKRIGHT, ax.get_yaxis_transform())
    for axis, marker, frame in edges:
        own = is_missing[:, axis] & ~is_missing[:, 1 - axis]
        if own.any():
            limits = ax.dataLim.frozen()
            shape = {} if "c" in style else {"marker": marker}
            ticks.append(draw(own, transform=frame, **look, **shape))
            ax.dataLim.set(limits)  # matplotlib would take the edge for a value.
            ax.update_datalim(np.nan_to_num(points[own]), updatex=axis == 1, updatey=axis == 0)
    return whole, ticks


def point_size(size, n_rows):
    """The area of points of so many rows: more than 1000 are smaller than `size`, not to cover each other."""
    return max(1.5, size * min(1.0, (1000 / max(n_rows, 1)) ** 0.5))


def series_style(rank):
    """Colour, marker and line style of one of several series; they repeat together after 168."""
    return {
        "color": COLORS[rank % len(COLORS)],
        "marker": MARKERS[rank % len(MARKERS)],
        "linestyle": _LINE_STYLES[rank // len(COLORS) % len(_LINE_STYLES)],
    }


def legend_handles(entries):
    """Lines for a legend, from pairs of a label and a dict of keyword arguments of `Line2D`."""
    from matplotlib.lines import Line2D

    return [Line2D([], [], label=label, **style) for label, style in entries]


def draw_legend(ax, place, ncols=1, **options):
    """Draw a legend at one of the places above, but inside the axes where no layout makes room for it."""
    if place not in ("beside", "above") or ax.figure.get_layout_engine() is not None:
        options |= {**_LEGEND_PLACES[place], "ncols": ncols}
    return ax.legend(**options)
