"""Forest plots: tables of means and intervals of several series, in rows of panels, with one legend above."""

from typing import NamedTuple

import numpy as np

from sklearn_lrvb.displays import drawing

_LINE_INCHES = 0.16  # Height of a further line of the legend, and of a name.
_MOST_IN_A_LINE = 5  # Of the legend.


class Panel(NamedTuple):
    """One panel of a forest plot: a table of means and intervals, with n rows.

    Attributes
    ----------
    name : str, for its title; of a column of rows, or "" for none
    values : list of n str, names of the rows from top to bottom, such as categories
    numbers : ndarray of shape (3, n_series, n), means, lower and upper limits of the intervals
    quantity : str, what the numbers are, in words
    limits : pair of float, of the axis; None means that the numbers decide
    separation : float or None, share of the uncertainty about the class that the column alone removes
    """

    name: str
    values: list[str]
    numbers: np.ndarray
    quantity: str
    limits: tuple[float, float] | None = None
    separation: float | None = None

    def title(self):
        """The name, and how well the column separates several series."""
        is_alone = self.separation is None or self.numbers.shape[1] == 1
        return self.name if is_alone else f"{self.name} ({100 * self.separation:.0f} %)"


class ForestDisplay(drawing.Display):
    """A display that is a forest plot.

    A subclass may say how large panels are, and what all their rows are: panels beside each other then have
    the names of rows once.
    """

    _panel_width, _least_height = 3.2, 0.35  # Inches of a panel with its labels, and of one without them.
    _most_columns, _row_label = 3, ""

    def _draw_panels(self, ax, panels, series, title, kwargs):
        """Draw panels and a legend: for every panel a list of LineCollection and Line2D, a pair a series.

        Parameters
        ----------
        ax : Axes or None, as in `_take`
        panels : list of Panel
        series : list of tuples: a name, keyword arguments of `hlines` for intervals and of `plot` for means
        title : str, of the legend
        kwargs : dict of keyword arguments of `hlines`, the user's
        """
        from matplotlib.collections import LineCollection

        several, n_columns = len(panels) > 1, len(panels)
        if len(panels) > 3:  # They do not fit into one row.
            n_columns = min(self._most_columns, int(np.ceil(len(panels) ** 0.5)))
        width = max(4.8, self._panel_width * n_columns) if several else 6.4
        width = width if ax is None else drawing.inches(ax)[0]
        names_width = 0.84 * width / n_columns  # Names of rows take some of a panel's width.
        above = [drawing.wrapped(panel.title(), 0.8 * names_width) for panel in panels]  # In larger print.
        place = "strip" if several else "beside" if above[0] else "above"
        title = drawing.wrapped(title, 2.0 if place == "beside" else width)

        n_lines = title.count("\n") + (len(series) - 1) // _MOST_IN_A_LINE + any(above)
        strip, row_height = 0.36 + _LINE_INCHES * n_lines, 0.05 + 0.1 * len(series)
        in_rows = [panels[k : k + n_columns] for k in range(0, len(panels), n_columns)]
        heights = [max(self._least_height, row_height * max(len(p.values) for p in row)) for row in in_rows]
        n_lines = max(text.count("\n") + bool(text) for text in above)
        n_lines += max(drawing.wrapped(panel.quantity, names_width).count("\n") for panel in panels)
        height = (
            strip + sum(heights) + (0.55 + _LINE_INCHES * n_lines) * len(heights)
        )  # With labels of ticks.
        if ax is not None:  # Panels share what the legend leaves.
            scale = max(strip, drawing.inches(ax)[1] - strip) / sum(heights)
            heights = [scale * inches for inches in heights]
        heights = [strip, *heights] if several else heights
        grid = self._take(ax, (len(heights), n_columns), (width, height), heights)
        self.axes_ = grid[int(several) :]

        series = [(name, drawing.styled(LineCollection, line, kwargs), point) for name, line, point in series]
        drawn = []
        for k, (panel, text) in enumerate(zip(panels, above, strict=True)):
            axes = self.axes_.flat[k]
            drawn.append(_draw_panel(axes, panel, series))
            leads = k % n_columns == 0 or panel.values != panels[k - 1].values or not self._row_label
            names = [drawing.wrapped(name, 1.1) for name in panel.values] if leads else []
            axes.set_yticks(range(len(panel.values)), names, fontsize="small")
            axes.set_ylabel(self._row_label if len(names) > 1 else "", fontsize="small")
            axes.grid(axis="y" if self._row_label else "x", color="0.9", linewidth=0.8)
            axes.set_title(text, fontsize="medium", loc="left")
            drawing.label_values(axes, panel.quantity, names_width)
        for k in range(len(panels), self.axes_.size):
            self.axes_.flat[k].remove()
            self.axes_.flat[k] = None
        self.legend_ = _draw_legend(grid[0], series, title, place)
        return drawn


def _draw_panel(axes, panel, series):
    """Draw means and intervals of all series in one panel: list of pairs, LineCollection and Line2D."""
    limits, drawn = panel.limits, []
    if limits is None and np.isinf(panel.numbers[1:]).any():  # Intervals without end reach the edge.
        finite = panel.numbers[np.isfinite(panel.numbers)]
        low, high = (finite.min(), finite.max()) if finite.size else (0.0, 1.0)
        margin = 0.1 * (high - low) or 1.0
        limits = low - margin, high + margin
    # About a row, series are within 0.6 of the distance between rows.
    offsets = 0.6 * ((np.arange(len(series)) + 0.5) / len(series) - 0.5)
    for offset, (_, line, point), (mean, *ends) in zip(
        offsets, series, panel.numbers.swapaxes(0, 1), strict=True
    ):
        at, ends = np.arange(len(mean)) + offset, ends if limits is None else np.clip(ends, *limits)
        lines = axes.hlines(at, *ends, **line)
        (points,) = axes.plot(mean, at, linestyle="none", zorder=3, **point)
        drawn.append((lines, points))
    if limits is not None:
        axes.set_xlim(limits)
    axes.set(ylim=(len(panel.values) - 0.5, -0.5), axisbelow=True)
    axes.tick_params(axis="y", length=0)
    axes.spines[["top", "right", "left"]].set_visible(False)
    return drawn


def _draw_legend(first_row, series, title, place):
    """Draw the legend of the series beside or above the only panel, or in the strip above several."""
    keys = ("color", "linewidth", "linestyle")
    looks = [(name, point | {key: line[key] for key in keys if key in line}) for name, line, point in series]
    handles, n_columns = drawing.legend_handles(looks), min(len(looks), _MOST_IN_A_LINE)
    options = {"title": title, "alignment": "left", "fontsize": "small", "title_fontsize": "small"}
    n_columns = 1 if place == "beside" else n_columns
    legend = drawing.draw_legend(first_row[0], place, n_columns, handles=handles, **options)
    if place == "strip":
        legend.set_in_layout(False)  # Its axes have the height that it needs.
        for axes in first_row:
            axes.set_axis_off()
    return legend
