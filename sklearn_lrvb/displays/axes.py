"""How all displays draw: colours, markers and line styles, axes, grids of panels, legends."""

import textwrap

import numpy as np

# The palette of Okabe and Ito, which all kinds of colour vision can tell apart, without its yellow and black.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
MARKERS = ("o", "^", "s", "D", "v", "P", "X")  # Seven markers and six colours repeat with period 42.
LINE_STYLES = ("solid", "dashed", "dotted", "dashdot")  # Of the first six colours, of the next six, ...

_CHARACTERS_PER_INCH = 14.0  # Of the small print that labels panels.


def given_or_new(ax):
    """The given axes, or those of a new figure whose layout makes room for a legend beside them."""
    import matplotlib.pyplot as plt

    return plt.subplots(layout="constrained")[1] if ax is None else ax


def panel_grid(ax, shape, figsize):
    """Axes that hold a grid of panels, and the panels: an object array of that shape.

    Parameters
    ----------
    ax : Axes or None, the axes that give their place to the grid; None makes a new figure
    shape : pair of int, rows and columns; a grid of one panel is the axes themselves
    figsize : pair of float, inches of a new figure
    """
    import matplotlib.pyplot as plt

    if ax is None:
        ax = plt.figure(figsize=figsize, layout="constrained").add_subplot()
    panels = np.full(shape, ax, dtype=object)
    if panels.size == 1:
        return ax, panels
    place = ax.get_subplotspec()
    if place is None:
        raise ValueError(
            f"ax was placed by hand, and {panels.size} panels cannot take its place. (a) Make it by "
            "plt.subplots() or figure.add_subplot(). (b) Leave ax out, for a new figure."
        )
    grid = place.subgridspec(*shape)
    for index in np.ndindex(*shape):
        panels[index] = ax.figure.add_subplot(grid[index])
    ax.set_axis_off()
    return ax, panels


def panel_width(panel):
    """Width of the axes in inches, before the layout makes room for labels."""
    return panel.get_window_extent().width / panel.figure.dpi


def wrapped(name, inches):
    """A feature's name in lines of about this length, also where it has underscores for blanks."""
    broken = textwrap.wrap(name.replace("_", "_\u200b "), max(12, int(inches * _CHARACTERS_PER_INCH)))
    return "\n".join(line.replace("_\u200b ", "_").replace("_\u200b", "_") for line in broken)


def draw_legend(ax, **options):
    """Draw the legend of axes: beside them where the figure's layout makes room for it, otherwise inside."""
    beside = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0), "frameon": False}
    makes_room = ax.figure.get_layout_engine() is not None
    return ax.legend(**{**(beside if makes_room else {"loc": "best"}), **options})
