"""ClassProfilesDisplay: what describes each latent class, column by column."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from scipy.stats import entropy, norm, poisson

from sklearn_lrvb.displays.axes import COLORS, MARKERS
from sklearn_lrvb.displays.forest import Forest, Kind, Panel
from sklearn_lrvb.displays.selection import check_drawn, check_number_of_panels
from sklearn_lrvb.estimators.latent_class_mixture import LRVBLatentClassMixture
from sklearn_lrvb.mixture.model import occupied
from sklearn_lrvb.reports import require_interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

_MOST_COLUMNS, _PANEL_INCHES = 3, 3.2
_REACH = 2.0  # Standard deviations of the column to both sides of its mean, on the axis of numbers.


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
    same distribution of it. It is an estimate, without an error bar, and somewhat too large with few rows.

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
        What the intervals are and how good, for the legend.

    Attributes
    ----------
    intervals_ : list of list of matplotlib LineCollection
        By panel and class.

    points_ : list of list of matplotlib Line2D
        The means, likewise.

    legend_ : matplotlib Legend
        Above the panels.

    ax_ : matplotlib Axes
        The only panel, or the axes whose place the panels take.

    axes_ : ndarray of matplotlib Axes
        The panels; None where the last row is not full.

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
            Keyword arguments of matplotlib's `hlines`, which draws the intervals.

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
        check_drawn(cls, estimator, LRVBLatentClassMixture)
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
        return cls(
            panels=[panels[name] for name in chosen],
            classes=[f"class {k} ({100 * estimator.weights_[k]:.0f} %)" for k in held],
            note=f"{100 * interval:g} % intervals. {answer.note}",
        ).plot(ax=ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Draw the profiles again, on the same or other axes.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            The axes whose place the panels take; None makes a new figure.

        **kwargs : dict
            Keyword arguments of matplotlib's `hlines`, which draws the intervals.

        Returns
        -------
        display : ClassProfilesDisplay
            The display itself.
        """
        several, kinds = len(self.classes) > 1, []
        for k, name in enumerate(self.classes):
            color, marker = COLORS[k % len(COLORS)], MARKERS[k % len(MARKERS)]
            point = {"color": color, "marker": marker, "markersize": 4.5}
            kinds.append(Kind(name, {"color": color, "linewidth": 1.3}, point))
        panels = []
        for profile in self.panels:
            title = f"{profile.name} ({100 * profile.separation:.0f} %)" if several else profile.name
            at, numbers = np.arange(len(profile.values)), profile.numbers.swapaxes(0, 1)
            panels.append(Panel(profile.quantity, title, profile.values, at, numbers, profile.limits))
        separates = " In brackets: how much of the uncertainty about the class the column alone removes."
        forest = Forest(panels, kinds, self.note + separates * several, _PANEL_INCHES, _MOST_COLUMNS)
        attributes, drawn = forest.draw(ax, kwargs)
        vars(self).update(attributes)
        self.intervals_ = [[lines for lines, _ in panel] for panel in drawn]
        self.points_ = [[points for _, points in panel] for panel in drawn]
        return self

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
    check_number_of_panels(len(chosen), "Choose some by columns=[...].")
    return chosen
