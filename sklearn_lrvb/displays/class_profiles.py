"""ClassProfilesDisplay: what describes each latent class, column by column."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from scipy.stats import entropy, norm, poisson
from sklearn.utils._optional_dependencies import check_matplotlib_support

from sklearn_lrvb.displays.axes import (
    COLORS,
    MARKERS,
    MOST_PANELS,
    draw_legend,
    label_values,
    panel_grid,
    panel_width,
    styled,
    wrapped,
)
from sklearn_lrvb.displays.selection import check_kind
from sklearn_lrvb.latent_class.estimator import LRVBLatentClassMixture
from sklearn_lrvb.mixtures.model import occupied
from sklearn_lrvb.reports import require_interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

_MOST_PANELS_IN_A_ROW = 3
_PANEL_INCHES = 3.2  # Width of a panel with its labels.
_VALUE_INCHES, _CLASS_INCHES = 0.1, 0.11  # Height of a category, and of each class in it.
_BETWEEN_INCHES, _LINE_INCHES = 0.65, 0.16  # Between rows of panels, and for a line of a name.
_LEGEND_INCHES = 0.6
_MOST_CLASSES_IN_A_LINE = 5
_SPREAD = 0.7  # Of the classes' markers about a category, in units of the distance between categories.
_TITLE_SHARE = 0.8  # Titles are larger than small print.
_LEGEND_BESIDE_INCHES = 2.3
_NAME_INCHES = 1.1  # Longer names of categories are broken.
_REACH = 2.0  # Standard deviations of the column to both sides of its mean, on the axis of numbers.

_MARKER: dict[str, Any] = {"markersize": 4.5, "linestyle": "none", "capsize": 2.0, "elinewidth": 1.2}


class Profile(NamedTuple):
    """What one column says of the classes: a panel of :class:`ClassProfilesDisplay`.

    Attributes
    ----------
    name : str, of the column
    values : list of str, categories, or one empty name
    numbers : ndarray of shape (3, n_classes, n_values), means and ends of the intervals
    quantity : str, what the numbers are, in words
    limits : pair of float, ends of the axis
    separation : float, share of the uncertainty about the class that the column alone removes
    """

    name: str
    values: list[str]
    numbers: NDArray
    quantity: str
    limits: tuple[float, float]
    separation: float


class ClassProfilesDisplay:
    """The profiles of latent classes: a panel for every column, a marker for every class, with intervals.

    A column with categories has the probability of each of them, on an axis from 0 to 1; of two categories,
    that of the second alone. A column of numbers has the means of the classes, and a column of counts their
    rates, on an axis that reaches two standard deviations of the column to both sides of its mean, as the
    mixture has them. So panels can be compared: what is far apart on the page differs much. Lines are
    credible intervals: where those of two classes do not overlap, the classes differ in that column.

    Columns come in the order in which they separate the classes. In brackets is by how much: the mutual
    information between the column and the class under the fitted mixture, in per cent of the entropy of the
    class. It is 100 where the column alone tells the class of every row, and 0 where all classes have the
    same distribution of it.

    Create it with :meth:`from_estimator`.

    Parameters
    ----------
    panels : list of Profile
        Of every column its `name`, the names of its `values`, means and ends of intervals as `numbers` of
        shape (3, n_classes, n_values), the `quantity` that they are, the `limits` of the axis, and the
        `separation` of the classes, from 0 to 1.

    classes : list of str
        Names of the classes.

    note : str, default=''
        What the intervals are, for the legend.

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
    >>> [(panel.name, panel.quantity) for panel in display.panels]
    [('age', 'mean'), ('smokes', 'probability')]
    """

    def __init__(self, *, panels: list[Profile], classes: list[str], note: str = "") -> None:
        self.panels, self.classes, self.note = panels, classes, note

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
            Names of the columns to draw, in this order; None draws all, those first that separate the classes
            most.

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
        require_interval(interval)
        tables, kinds = estimator.tables_, estimator.columns_["kind"]
        chosen = _checked_columns(columns, list(tables))
        answer = estimator._answer(method)
        margins = answer.margins_of(["tables"], None)("tables")
        numbers = np.stack([margins.mean, *margins.interval(interval)])
        numbers = numbers.reshape(3, len(estimator.weights_), -1)
        held = np.flatnonzero(occupied(estimator._fitted.posterior.counts))
        shares = estimator.weights_[held] / estimator.weights_[held].sum()
        ends, panels = np.cumsum([table.shape[1] for table in tables.values()]), {}
        for (name, table), end in zip(tables.items(), ends, strict=True):
            own = numbers[:, held, end - table.shape[1] : end]
            panels[name] = _profile(name, kinds[name], table.iloc[held], own, shares)
        if columns is None:
            chosen = sorted(chosen, key=lambda name: -panels[name].separation)
        by = {"lrvb": "linear response", "exact": "draws from the exact posterior"}[answer.name]
        return cls(
            panels=[panels[name] for name in chosen],
            classes=[f"class {k} ({100 * estimator.weights_[k]:.0f} %)" for k in held],
            note=f"{100 * interval:g} % intervals by {by}",
        ).plot(ax=ax, **kwargs)

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
        n_columns = min(_MOST_PANELS_IN_A_ROW, len(self.panels))
        n_rows = -(-len(self.panels) // n_columns)
        in_rows = [self.panels[row * n_columns : (row + 1) * n_columns] for row in range(n_rows)]
        of_value = _VALUE_INCHES + _CLASS_INCHES * len(self.classes)
        heights = [0.2 + of_value * max(len(panel.values) for panel in row) for row in in_rows]
        lines = [max(self._title(panel, _PANEL_INCHES).count("\n") for panel in row) for row in in_rows]
        width = _PANEL_INCHES * max(n_columns, 2)
        title = wrapped(self._legend_title(), width if len(self.panels) > 1 else _LEGEND_BESIDE_INCHES)
        n_lines = title.count("\n") + (len(self.classes) - 1) // _MOST_CLASSES_IN_A_LINE
        strip = _LEGEND_INCHES + _LINE_INCHES * n_lines
        figsize = width, strip + sum(heights) + sum(_BETWEEN_INCHES + _LINE_INCHES * n for n in lines)
        ax, axes, above = panel_grid(ax, (n_rows, n_columns), figsize, strip, heights)
        self.ax_, self.figure_, self.axes_, self.errorbars_ = ax, ax.figure, axes, []
        for panel, profile in zip(axes.flat, self.panels, strict=False):
            self.errorbars_.append(self._draw(panel, profile, kwargs))
        for panel in axes.flat[len(self.panels) :]:
            panel.set_axis_off()
        options = {"fontsize": "small", "title": title, "title_fontsize": "small", "alignment": "left"}
        if above is None:
            draw_legend(axes.flat[0], "beside", **options)
        else:
            options |= {"ncols": min(len(self.classes), _MOST_CLASSES_IN_A_LINE), "loc": "upper left"}
            legend = above.legend(self.errorbars_[0], self.classes, frameon=False, **options)
            legend.set_in_layout(False)  # Its axes have the height that it needs.
        return self

    def _draw(self, panel, profile, kwargs):
        """Draw the classes of one column: list of ErrorbarContainer."""
        from matplotlib.lines import Line2D

        places, drawn, width = np.arange(len(profile.values)), [], panel_width(panel)
        n_classes = len(self.classes)
        offsets = _SPREAD * (np.arange(n_classes) - 0.5 * (n_classes - 1)) / n_classes
        for k, (label, offset) in enumerate(zip(self.classes, offsets, strict=True)):
            mean, lower, upper = profile.numbers[:, k]
            look = {"color": COLORS[k % len(COLORS)], "marker": MARKERS[k % len(MARKERS)], **_MARKER}
            given = {**look, **styled(Line2D, {}, kwargs)} if kwargs else look
            errors = np.maximum([mean - lower, upper - mean], 0.0)
            drawn.append(panel.errorbar(mean, places + offset, xerr=errors, label=label, **given))
        names = [wrapped(value, _NAME_INCHES) for value in profile.values]
        panel.set_yticks(places, names, fontsize="small")
        panel.set(ylim=(len(places) - 0.5, -0.5), xlim=profile.limits)
        panel.set_title(self._title(profile, width), fontsize="medium", loc="left")
        panel.tick_params(axis="y", length=0)
        panel.grid(axis="x", alpha=0.3)
        panel.spines[["top", "right"]].set_visible(False)
        label_values(panel, profile.quantity, width)
        return drawn

    def _title(self, profile, inches):
        """The name of the column, and how far it separates several classes."""
        share = f" ({100 * profile.separation:.0f} %)" * (len(self.classes) > 1)
        return wrapped(f"{profile.name}{share}", _TITLE_SHARE * inches)

    def _legend_title(self):
        """What the intervals are, and what is in brackets."""
        separates = "; in brackets: how much of the uncertainty about the class the column alone removes"
        return self.note + separates * (len(self.classes) > 1)

    def __repr__(self) -> str:
        n_classes, n_columns = len(self.classes), len(self.panels)
        return (
            f"{type(self).__name__}: {n_classes} class{'es' * (n_classes > 1)}, "
            f"{n_columns} column{'s' * (n_columns > 1)}"
        )


def _profile(name, kind, table, numbers, shares):
    """What one column says of some classes: Profile.

    Parameters
    ----------
    name, kind : str, of the column
    table : data frame of the column's estimates, a row for each of K classes
    numbers : (3, K, n_values), means and ends of intervals of these
    shares : (K,), weights of the classes, which sum to one
    """
    estimates = table.to_numpy(np.float64)
    if kind not in ("numeric", "count"):
        kept = slice(1, 2) if kind == "binary" else slice(None)
        values, numbers = [str(value) for value in table.columns[kept]], numbers[:, :, kept]
        return Profile(
            str(name), values, numbers, "probability", (-0.02, 1.02), _separation(estimates, shares)
        )
    means, variances = estimates[:, 0], estimates[:, 1] ** 2 if kind == "numeric" else estimates[:, 0]
    deviations = np.sqrt(variances)
    points = np.unique(means + deviations * np.linspace(-6.0, 6.0, 241)[:, None])[:, None]
    distribution = norm(means, deviations) if kind == "numeric" else poisson(means)
    below = np.vstack([0.0 * means, distribution.cdf(points), 0.0 * means + 1.0])
    mean = shares @ means
    reach = _REACH * np.sqrt(shares @ (variances + (means - mean) ** 2))
    numbers = numbers[:, :, :1]
    seen = numbers[np.isfinite(numbers)]
    least, quantity = (-np.inf, "mean") if kind == "numeric" else (0.0, "rate")
    low, high = min(max(mean - reach, least), *seen), max(mean + reach, *seen)
    separation = _separation(np.diff(below, axis=0).T, shares)
    return Profile(str(name), [""], numbers, quantity, (low, high), separation)


def _separation(probabilities, shares):
    """Mutual information between a column and the class, in units of the entropy of the class.

    Parameters
    ----------
    probabilities : (K, n), of the values of the column, or of cells that hold them, in every class
    shares : (K,), weights of the classes, which sum to one
    """
    information = entropy(shares @ probabilities) - shares @ entropy(probabilities, axis=1)
    return float(np.clip(information / entropy(shares), 0.0, 1.0)) if len(shares) > 1 else 0.0


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
