"""ClassProfilesDisplay: what describes each latent class, column by column."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils._optional_dependencies import check_matplotlib_support

from sklearn_lrvb.displays.axes import (
    COLORS,
    MARKERS,
    MOST_PANELS,
    draw_legend,
    panel_grid,
    panel_width,
    styled,
    wrapped,
)
from sklearn_lrvb.displays.selection import check_kind
from sklearn_lrvb.latent_class.estimator import LRVBLatentClassMixture
from sklearn_lrvb.mixtures.model import occupied

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_PANELS_IN_A_ROW = 4
_PANEL_INCHES = (2.6, 2.0)
_LEGEND_INCHES = 0.35
_SPREAD = 0.6  # Of the classes' markers around a category, in units of the distance between categories.
_MOST_CHARACTERS_UPRIGHT = 20  # Of all names of a column's categories; longer ones are written at an angle.

_MARKER: dict[str, Any] = {"markersize": 5, "linestyle": "none", "capsize": 2.5, "elinewidth": 1.2}


class ClassProfilesDisplay:
    """The profiles of latent classes: a panel for every column, a marker for every class, with intervals.

    A column with categories has the probability of each of them; of two categories, that of the second alone.
    A column of numbers has the means of the classes, a column of counts their rates. Vertical lines are
    credible intervals: where those of two classes do not overlap, the classes differ in that column.

    Create it with :meth:`from_estimator`.

    Parameters
    ----------
    panels : list of (str, list of str, ndarray of shape (3, n_classes, n_values))
        Name of the column, names of its values, and means and ends of the intervals of every class.

    classes : list of str
        Names of the classes.

    Attributes
    ----------
    errorbars_ : list of list of matplotlib ErrorbarContainer
        By panel and class.

    ax_ : matplotlib Axes
        The only panel, or the axes whose place the panels take.

    axes_ : ndarray of matplotlib Axes
        The panels.

    figure_ : matplotlib Figure
        Their figure.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn_lrvb import LRVBLatentClassMixture
    >>> from sklearn_lrvb.displays import ClassProfilesDisplay
    >>> answers = pd.DataFrame({
    ...     "smokes": ["no", "no", "yes", "no", "yes", "yes", "no", "yes", "no", "no", "yes", "no"],
    ...     "age": [23, 31, 58, 27, 49, 61, 35, 55, 29, 33, None, 26],
    ... })
    >>> classes = LRVBLatentClassMixture(n_components=2, random_state=0).fit(answers)
    >>> display = ClassProfilesDisplay.from_estimator(classes)
    >>> [name for name, _, _ in display.panels]
    ['smokes', 'age']
    """

    def __init__(self, *, panels: list, classes: list[str]) -> None:
        self.panels, self.classes = panels, classes

    @classmethod
    def from_estimator(
        cls,
        estimator: LRVBLatentClassMixture,
        *,
        columns: list[str] | None = None,
        interval: float = 0.95,
        method: str = "auto",
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Compute the profiles of the classes that hold rows, and plot them.

        Parameters
        ----------
        estimator : LRVBLatentClassMixture
            A fitted mixture.

        columns : list of str, default=None
            Names of the columns to draw, in this order; None draws all.

        interval : float, default=0.95
            Probability of the credible intervals.

        method : {'auto', 'lrvb', 'exact'}, default='auto'
            As in :meth:`LRVBLatentClassMixture.posterior_summary`.

        ax : matplotlib Axes, default=None
            The axes whose place the panels take; None makes a new figure.

        **kwargs : dict
            Keyword arguments of matplotlib's `errorbar`.

        Returns
        -------
        display : ClassProfilesDisplay
            The display, drawn.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If `estimator` is not fitted.
        ValueError
            A column is not there, or there are no error bars.
        """
        check_matplotlib_support(f"{cls.__name__}.from_estimator")
        check_kind(cls, estimator, LRVBLatentClassMixture)
        tables, panels, start = estimator.tables_, {}, 0
        chosen = _checked_columns(columns, list(tables))
        summary = estimator.posterior_summary(target="tables", interval=interval, min_count=0, method=method)
        numbers = summary[["mean", "lower", "upper"]].to_numpy(dtype=np.float64)
        n_classes = len(estimator.weights_)
        by_class = numbers.reshape(n_classes, -1, 3).transpose(2, 0, 1)
        held = np.flatnonzero(occupied(estimator._fitted.posterior.counts))
        for name, table in tables.items():
            values, kind = [str(value) for value in table.columns], estimator.columns_.loc[name, "kind"]
            own = by_class[:, held, start : start + len(values)]
            start += len(values)
            kept = slice(1, 2) if kind == "binary" else slice(0, 1) if kind == "numeric" else slice(None)
            panels[name] = (name, values[kept], own[:, :, kept])
        classes = [f"class {k} ({100 * estimator.weights_[k]:.0f} %)" for k in held]
        return cls(panels=[panels[name] for name in chosen], classes=classes).plot(ax=ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Draw the profiles again, on the same or other axes.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            The axes whose place the panels take; None makes a new figure.

        **kwargs : dict
            Keyword arguments of matplotlib's `errorbar`.

        Returns
        -------
        display : ClassProfilesDisplay
            The display itself.
        """
        check_matplotlib_support(f"{type(self).__name__}.plot")
        n_columns = min(_MOST_PANELS_IN_A_ROW, len(self.panels))
        n_rows = -(-len(self.panels) // n_columns)
        figsize = _PANEL_INCHES[0] * max(n_columns, 2), _PANEL_INCHES[1] * n_rows + _LEGEND_INCHES
        ax, axes, above = panel_grid(ax, (n_rows, n_columns), figsize, _LEGEND_INCHES)
        self.ax_, self.figure_, self.axes_, self.errorbars_ = ax, ax.figure, axes, []
        for panel, (name, values, numbers) in zip(axes.flat, self.panels, strict=False):
            self.errorbars_.append(self._draw(panel, values, numbers, kwargs))
            panel.set_title(wrapped(str(name), panel_width(panel)), fontsize="medium")
        for panel in axes.flat[len(self.panels) :]:
            panel.set_axis_off()
        if above is None:
            draw_legend(axes.flat[0], "above", ncols=2)
        else:
            handles = self.errorbars_[0]
            above.legend(handles, self.classes, loc="center", ncols=len(self.classes), frameon=False)
        return self

    def _draw(self, panel, values, numbers, kwargs):
        """Draw the classes of one column: list of ErrorbarContainer."""
        from matplotlib.lines import Line2D

        places, drawn = np.arange(len(values)), []
        offsets = _SPREAD * (np.arange(len(self.classes)) - 0.5 * (len(self.classes) - 1)) / len(self.classes)
        for k, (label, offset) in enumerate(zip(self.classes, offsets, strict=True)):
            mean, lower, upper = numbers[:, k]
            look = {"color": COLORS[k % len(COLORS)], "marker": MARKERS[k % len(MARKERS)], **_MARKER}
            given = {**look, **styled(Line2D, {}, kwargs)} if kwargs else look
            errors = np.maximum([mean - lower, upper - mean], 0.0)
            drawn.append(panel.errorbar(places + offset, mean, errors, label=label, **given))
        is_upright = sum(map(len, values)) <= _MOST_CHARACTERS_UPRIGHT
        rotation = {} if is_upright else {"rotation": 45, "ha": "right"}
        panel.set_xticks(places, [value.replace("$", r"\$") for value in values], **rotation)
        panel.set_xlim(-0.5, len(values) - 0.5)
        panel.tick_params(axis="x", length=0)
        panel.grid(axis="y", alpha=0.3)
        return drawn

    def __repr__(self) -> str:
        return f"{type(self).__name__}: {len(self.classes)} classes, {len(self.panels)} columns"


def _checked_columns(columns, names):
    """The columns to draw, list of their names.

    Parameters
    ----------
    columns : object, what the user passed; None for all
    names : list of the names of all columns

    Raises
    ------
    ValueError
        Where they are no list, one is not there, or there are none or too many.
    """
    if isinstance(columns, str) or (columns is not None and not len(columns)):
        raise ValueError(f"columns must be a list of names of columns, or None for all, got {columns!r}.")
    chosen = names if columns is None else list(columns)
    unknown = [name for name in chosen if name not in names]
    if unknown:
        raise ValueError(f"There is no column {unknown[0]!r}; the columns are {', '.join(map(str, names))}.")
    if len(chosen) > MOST_PANELS:
        raise ValueError(
            f"The plot would have {len(chosen)} panels, one for each column, and {MOST_PANELS} are the most "
            "that can be read: choose some by columns=[...]."
        )
    return chosen
