"""How all displays draw: colours, markers and line styles, axes, grids of panels, ticks, rows, legends."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils._optional_dependencies import check_matplotlib_support

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# The palette of Okabe and Ito, which all kinds of colour vision can tell apart, without its yellow and black.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
MARKERS = ("o", "^", "s", "D", "v", "P", "X")  # Seven markers and six colours repeat with period 42.
LINE_STYLES = ("solid", "dashed", "dotted", "dashdot")  # Of the first six colours, of the next six, ...

_LEGEND_PLACES = {
    "beside": {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0), "frameon": False},
    "above": {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0), "frameon": False},
}

_CHARACTERS_PER_INCH = 14.0  # Of the small print that labels panels.
_LEAST_CHARACTERS = 16  # Of a line, where a narrower one would break words.
_MOST_TICKS = 4  # Of a small panel.
_PLAIN_DIGITS = (-3, 5)  # Powers of ten between which tick labels are written out.
_GAP = 0.8  # Between rows of panels with labels, in units of the average height of a row.
_TICK_AREA = 50  # Square points, of ticks at the edges that stand for rows.
_CROWD = 1000  # Rows from which on points are drawn smaller, so that they do not cover each other.
# Full-size labels are larger than small print, and a legend or colour bar takes some of the axes' width.
_LABEL_SHARES = (0.6, 0.85)


class ResultDisplay:
    """A display of one result, which is kept as `result` and has a `verdict`. A subclass has `plot`."""

    def __init__(self, *, result: Any) -> None:
        self.result = result

    @classmethod
    def from_result(cls, result: Any, *, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Plot a result that is there already.

        Parameters
        ----------
        result : object
            What the method returned that is named under *Parameters* of the class.

        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure. Several panels take the place of the axes.

        **kwargs : dict
            As in :meth:`plot`.

        Returns
        -------
        display : instance of the class
            The display, drawn.
        """
        check_matplotlib_support(f"{cls.__name__}.from_result")
        return cls(result=result).plot(ax=ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Draw the result on some axes, or on a new figure."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__}: {self.result.verdict}"


def given_or_new(ax):
    """The given axes, or those of a new figure whose layout makes room for a legend beside them."""
    return panel_grid(ax, (1, 1), None)[0]


def panel_grid(ax, shape, figsize, strip=0.0, heights=None):
    """Axes that hold a grid of panels, and the panels: an object array of that shape.

    The third thing returned are empty axes above the panels, for their legend, or None: beside or above a
    panel, a legend that is wider would push the columns apart.

    Parameters
    ----------
    ax : Axes or None, the axes that give their place to the grid; None makes a new figure
    shape : pair of int, rows and columns; a grid of one panel is the axes themselves
    figsize : pair of float, inches of a new figure
    strip : float, inches of the empty axes above several panels; 0 for none
    heights : list of float or None, inches of the rows of panels; None means that all have the same
    """
    check_matplotlib_support("The plot of a display")
    import matplotlib.pyplot as plt

    if ax is None:
        ax = plt.figure(figsize=figsize, layout="constrained").add_subplot()
    panels = np.full(shape, ax, dtype=object)
    if panels.size == 1:
        return ax, panels, None
    place = ax.get_subplotspec()
    if place is None:
        raise ValueError(
            f"ax was placed by hand, and {panels.size} panels cannot take its place. (a) Make it by "
            "plt.subplots() or figure.add_subplot(). (b) Leave ax out, for a new figure."
        )
    for_panels = max(strip, ax.get_window_extent().height / ax.figure.dpi - strip)
    shares = np.ones(shape[0]) if heights is None else np.array(heights)
    heights = [strip] * (strip > 0) + (for_panels * shares / shares.sum()).tolist()
    # Where no layout makes room for labels, gaps do.
    gap = _GAP if ax.figure.get_layout_engine() is None and strip > 0 else None
    grid = place.subgridspec(len(heights), shape[1], height_ratios=heights, hspace=gap)
    for row, column in np.ndindex(*shape):
        panels[row, column] = ax.figure.add_subplot(grid[len(heights) - shape[0] + row, column])
    above = None
    if strip > 0:
        above = ax.figure.add_subplot(grid[0, :])
        above.set_axis_off()
    ax.set_axis_off()
    return ax, panels, above


def panel_width(panel):
    """Width of the axes in inches, before the layout makes room for labels."""
    return panel.get_window_extent().width / panel.figure.dpi


def wrapped(name, inches):
    """A text in lines of about this length, broken at blanks and underscores, its dollar signs escaped."""
    length = max(_LEAST_CHARACTERS, int(inches * _CHARACTERS_PER_INCH))
    # Lines are broken at blanks: for that time a zero-width space and a blank stand for an underscore.
    spaced = name.replace("_", "\u200b ").splitlines()
    broken = [line for part in spaced for line in textwrap.wrap(part, length, break_on_hyphens=False)]
    return no_formula("\n".join(line.replace("\u200b ", "_").replace("\u200b", "_") for line in broken))


def no_formula(text):
    """A text whose dollar signs are drawn as they are; matplotlib could not draw an invalid formula."""
    return text.replace("$", r"\$")


def label_values(panel, label, inches):
    """Label the x axis of a small panel, with so many ticks as have room beside each other.

    A power of ten that all tick labels share goes into the label: where matplotlib writes it, it would be on
    top of the label, or of the next panel.

    Parameters
    ----------
    panel : Axes, with its limits
    label : str
    inches : float, width of the panel
    """
    from matplotlib.ticker import MaxNLocator, ScalarFormatter

    formatter = ScalarFormatter(useOffset=False)
    formatter.set_powerlimits(_PLAIN_DIGITS)
    panel.xaxis.set_major_formatter(formatter)
    low, high = panel.get_xlim()
    for n_ticks in range(_MOST_TICKS, 0, -1):
        locator = MaxNLocator(n_ticks, steps=[1, 2, 2.5, 5, 10])
        ticks = [tick for tick in locator.tick_values(low, high) if low <= tick <= high]
        width = sum(len(text) + 2 for text in formatter.format_ticks(ticks))
        if len(ticks) < 2 or width <= inches * _CHARACTERS_PER_INCH:
            break
    panel.xaxis.set_major_locator(locator)
    panel.xaxis.offsetText.set_visible(False)
    power = formatter.get_offset()
    panel.tick_params(labelsize="small")
    panel.set_xlabel(
        wrapped(label, inches) + f"\n(\N{MULTIPLICATION SIGN} {power})" * bool(power), size="small"
    )


def label_axes(ax, xlabel, ylabel):
    """Label the axes, in several lines where the labels are longer than the axes."""
    width, height = ax.get_window_extent().size / ax.figure.dpi
    x_share, y_share = _LABEL_SHARES
    ax.set(xlabel=wrapped(xlabel, x_share * width), ylabel=wrapped(ylabel, y_share * height))


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
        of_rows = {k: v[own] for k, v in style.items() if isinstance(v, np.ndarray) and len(v) == len(own)}
        # Zero, in the place of a missing value, is the edge in coordinates of the axes.
        return ax.scatter(*np.nan_to_num(points[own]).T, **{**style, **of_rows, **look})

    whole, ticks = draw(~is_missing.any(axis=1)), []
    look = {"clip_on": False}
    if "c" not in style:  # Colours of values need an area.
        style = {k: v for k, v in style.items() if k not in ("edgecolor", "facecolor")}
        look = {"s": _TICK_AREA, "linewidth": 1.0}
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
    """The area of points of so many rows, that of a few being `size`: many are drawn smaller."""
    return max(1.5, size * min(1.0, (_CROWD / max(n_rows, 1)) ** 0.5))


def draw_legend(ax, place, ncols=1, **options):
    """Draw the legend beside or above axes where the figure's layout makes room for it, otherwise inside."""
    makes_room = ax.figure.get_layout_engine() is not None
    outside = {**_LEGEND_PLACES[place], "ncols": ncols}
    return ax.legend(**(outside if makes_room else {"loc": "best"}), **options)
