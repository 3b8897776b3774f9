"""How all displays draw: colours, markers and line styles, axes, grids of panels, legends."""

import textwrap

import numpy as np

# The palette of Okabe and Ito, which all kinds of colour vision can tell apart, without its yellow and black.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
MARKERS = ("o", "^", "s", "D", "v", "P", "X")  # Seven markers and six colours repeat with period 42.
MOST_PANELS = 100  # More are too small to read on any page, and take matplotlib a minute.
LINE_STYLES = ("solid", "dashed", "dotted", "dashdot")  # Of the first six colours, of the next six, ...

_LEGEND_PLACES = {
    "beside": {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0), "frameon": False},
    "above": {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0), "frameon": False},
}

_CHARACTERS_PER_INCH = 14.0  # Of the small print that labels panels.
# Full-size labels are larger than small print, and a legend or colour bar takes some of the axes' width.
_LABEL_SHARES = (0.6, 0.85)


def given_or_new(ax):
    """The given axes, or those of a new figure whose layout makes room for a legend beside them."""
    import matplotlib.pyplot as plt

    return plt.subplots(layout="constrained")[1] if ax is None else ax


def panel_grid(ax, shape, figsize, strip=0.0):
    """Axes that hold a grid of panels, and the panels: an object array of that shape.

    The third thing returned are empty axes above the panels, for their legend, or None: beside or above a
    panel, a legend that is wider would push the columns apart.

    Parameters
    ----------
    ax : Axes or None, the axes that give their place to the grid; None makes a new figure
    shape : pair of int, rows and columns; a grid of one panel is the axes themselves
    figsize : pair of float, inches of a new figure
    strip : float, inches of the empty axes above several panels; 0 for none
    """
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
    heights = [strip] * (strip > 0) + [for_panels / shape[0]] * shape[0]
    grid = place.subgridspec(len(heights), shape[1], height_ratios=heights)
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
    """A feature's name in lines of about this length, also where it has underscores for blanks.

    Its dollar signs are escaped: they are no formulas, and matplotlib could not draw what is no valid one.
    """
    length = max(12, int(inches * _CHARACTERS_PER_INCH))
    # Lines are broken at blanks: for that time a zero-width space and a blank stand for an underscore.
    spaced = name.replace("_", "\u200b ").splitlines()
    broken = [line for part in spaced for line in textwrap.wrap(part, length)]
    joined = "\n".join(line.replace("\u200b ", "_").replace("\u200b", "_") for line in broken)
    return joined.replace("$", r"\$")


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


def draw_legend(ax, place, ncols=1, **options):
    """Draw the legend beside or above axes where the figure's layout makes room for it, otherwise inside."""
    makes_room = ax.figure.get_layout_engine() is not None
    outside = {**_LEGEND_PLACES[place], "ncols": ncols}
    return ax.legend(**(outside if makes_room else {"loc": "best"}), **options)
