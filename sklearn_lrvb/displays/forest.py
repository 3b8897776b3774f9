"""Forest plots: means and intervals of several kinds, in rows of panels, with one legend above."""

from typing import Any, NamedTuple

import numpy as np

from sklearn_lrvb.displays.axes import draw_legend, label_values, panel_grid, panel_width, styled, wrapped

_MOST_IN_ONE_ROW = 3  # Of up to so many panels.
_ENTRY_INCHES, _KIND_INCHES = 0.05, 0.1  # Height of a row of a panel, and of each kind of intervals in it.
_LEAST_INCHES = 0.35  # Height of a panel, without labels.
_BETWEEN_INCHES = 0.55  # Between rows of panels, for tick labels and names.
_LINE_INCHES = 0.16  # Of a further line of a name.
_LEGEND_INCHES = 0.45
_ONE_PANEL_INCHES, _LEAST_WIDTH_INCHES = 6.4, 4.8
_NAMES_SHARE = 0.84  # Of a panel's width is for names of its axis; names of its rows take some.
_ROW_NAME_INCHES = 1.1  # Longer names of rows are broken.
_BESIDE_INCHES = 2.0  # Of a legend beside the only panel.
_MOST_KINDS_IN_A_LINE = 5
_SPREAD = 0.6  # Of the kinds about a row, in units of the distance between rows.
_INFINITE_MARGIN = 0.1  # How far intervals without end are drawn beyond all else, in units of its width.


class Kind(NamedTuple):
    """A kind of intervals: what it is called, and how interval and mean are drawn."""

    name: str
    line: dict[str, Any]
    point: dict[str, Any]


class Panel(NamedTuple):
    """One panel of a forest plot, with n entries.

    Attributes
    ----------
    label, title : str, what the numbers are, and what is above the panel
    rows : list of str, names from top to bottom
    at : (n,) int, the row of each entry
    numbers : (kinds, 3, n), means, lower and upper ends
    limits : pair of float, ends of the axis; None means that the intervals decide
    """

    label: str
    title: str
    rows: list[str]
    at: np.ndarray
    numbers: np.ndarray
    limits: tuple[float, float] | None = None


class Forest(NamedTuple):
    """What a forest plot shows, and how large.

    Attributes
    ----------
    panels, kinds : list of Panel, list of Kind
    title : str, of the legend
    panel_inches : float, width of a panel with its labels
    most_columns : int, of panels
    row_label : str, what all rows are; panels beside each other then have their names once. "" for nothing
    """

    panels: list[Panel]
    kinds: list[Kind]
    title: str
    panel_inches: float
    most_columns: int
    row_label: str = ""

    def draw(self, ax, kwargs):
        """Draw the panels, and a legend above them.

        Parameters
        ----------
        ax : Axes or None, as in `panel_grid`
        kwargs : dict of keyword arguments of `hlines`

        Returns
        -------
        attributes : dict, what the display keeps: `ax_`, `figure_`, `axes_`, `legend_`
        drawn : list for every panel of a pair for every kind: LineCollection, Line2D
        """
        n_panels = len(self.panels)
        n_columns = min(self.most_columns, int(np.ceil(n_panels**0.5)))
        n_columns = n_panels if n_panels <= _MOST_IN_ONE_ROW else n_columns
        width = max(_LEAST_WIDTH_INCHES, self.panel_inches * n_columns) if n_panels > 1 else _ONE_PANEL_INCHES
        width = width if ax is None else panel_width(ax)
        inches = _NAMES_SHARE * width / n_columns
        in_rows = [self.panels[k : k + n_columns] for k in range(0, n_panels, n_columns)]
        of_row = _ENTRY_INCHES + _KIND_INCHES * len(self.kinds)
        least = max(_LEAST_INCHES, 0.08 * len(self.row_label))
        heights = [max(least, of_row * max(len(panel.rows) for panel in row)) for row in in_rows]
        n_lines = sum(max(_n_lines(panel, inches) for panel in row) for row in in_rows)
        is_beside = n_panels == 1 and self.panels[0].title
        title = wrapped(self.title, _BESIDE_INCHES if is_beside else width)
        in_legend = title.count("\n") + (len(self.kinds) - 1) // _MOST_KINDS_IN_A_LINE
        has_titles = any(panel.title for panel in self.panels)
        strip = _LEGEND_INCHES + _LINE_INCHES * (in_legend + has_titles)
        height = strip + sum(heights) + _BETWEEN_INCHES * len(in_rows) + _LINE_INCHES * n_lines
        ax, axes, above = panel_grid(ax, (len(in_rows), n_columns), (width, height), strip, heights)
        drawn = []
        for place, panel in enumerate(self.panels):
            leads = place % n_columns == 0 or panel.rows != self.panels[place - 1].rows
            drawn.append(self._draw_panel(axes.flat[place], panel, kwargs))
            self._label_panel(axes.flat[place], panel, inches, leads or not self.row_label)
        for place in range(n_panels, axes.size):
            axes.flat[place].remove()
            axes.flat[place] = None
        legend = self._draw_legend(ax, above, title, kwargs)
        return {"ax_": ax, "figure_": ax.figure, "axes_": axes, "legend_": legend}, drawn

    def _draw_panel(self, ax, panel, kwargs):
        """Draw the intervals and the means of all kinds in one panel: list of pairs."""
        from matplotlib.collections import LineCollection

        left, right = panel.limits or _ends(panel.numbers)
        offsets = _SPREAD * (np.arange(len(self.kinds)) - 0.5 * (len(self.kinds) - 1)) / len(self.kinds)
        drawn = []
        for kind, offset, (mean, *ends) in zip(self.kinds, offsets, panel.numbers, strict=True):
            style = styled(LineCollection, kind.line, kwargs)
            lines = ax.hlines(panel.at + offset, *np.clip(ends, left, right), **style)
            points = ax.plot(mean, panel.at + offset, linestyle="none", zorder=3, **kind.point)
            drawn.append((lines, points[0]))
        for name, end in (("left", left), ("right", right)):
            if np.isfinite(end):
                ax.set_xlim(**{name: end})
        return drawn

    def _label_panel(self, ax, panel, inches, has_names):
        """Label the axis of a panel, and its rows where they are not those of the panel beside it."""
        names = [wrapped(name, _ROW_NAME_INCHES) for name in panel.rows]
        ax.set_ylim(len(panel.rows) - 0.5, -0.5)
        ax.set_yticks(range(len(names)), names if has_names else [], fontsize="small")
        ax.grid(axis="y" if self.row_label else "x", color="0.9", linewidth=0.8)
        ax.tick_params(axis="y", length=0)
        ax.set_axisbelow(True)
        ax.spines[["top", "right", "left"]].set_visible(False)
        if has_names and len(panel.rows) > 1:
            ax.set_ylabel(self.row_label, fontsize="small")
        if panel.title:
            ax.set_title(_title(panel, inches), fontsize="medium", loc="left")
        label_values(ax, panel.label, inches)

    def _draw_legend(self, ax, above, title, kwargs):
        """Draw the legend of the kinds above the panels."""
        from matplotlib.collections import LineCollection
        from matplotlib.lines import Line2D

        handles = []
        for kind in self.kinds:
            style = styled(LineCollection, kind.line, kwargs)
            own = kind.point | {name: style[name] for name in kind.line}
            handles.append(Line2D([], [], label=kind.name, **own))
        options = {"title": title, "alignment": "left", "fontsize": "small", "title_fontsize": "small"}
        n_columns = min(len(handles), _MOST_KINDS_IN_A_LINE)
        if above is None:
            where = ("beside", 1) if self.panels[0].title else ("above", n_columns)
            return draw_legend(ax, *where, handles=handles, **options)
        place = {"loc": "upper left", "frameon": False, "ncols": n_columns, "borderaxespad": 0.0}
        legend = above.legend(handles=handles, **place, **options)
        legend.set_in_layout(False)  # Its axes have the height that it needs.
        return legend


def _title(panel, inches):
    """The title of a panel in lines; its print is larger than that of names."""
    return wrapped(panel.title, 0.8 * inches)


def _n_lines(panel, inches):
    """Lines of the names of a panel, beyond the first below it."""
    above = _title(panel, inches).count("\n") + 1 if panel.title else 0
    return wrapped(panel.label, inches).count("\n") + above


def _ends(numbers):
    """Ends of a panel on sides of infinite intervals, (kinds, 3, n); else infinity."""
    finite = numbers[np.isfinite(numbers)]
    if not finite.size:
        return -np.inf, np.inf
    margin = _INFINITE_MARGIN * np.ptp(finite) or 1.0
    left = finite.min() - margin if np.isneginf(numbers[:, 1]).any() else -np.inf
    return left, finite.max() + margin if np.isposinf(numbers[:, 2]).any() else np.inf
