"""ClassProfilesDisplay: what describes each latent class, column by column."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy.stats import entropy

from sklearn_lrvb.displays import drawing, selection
from sklearn_lrvb.displays.forest import ForestDisplay, Panel
from sklearn_lrvb.estimators.latent_class_mixture import LRVBLatentClassMixture
from sklearn_lrvb.estimators.posterior import Posterior
from sklearn_lrvb.mixture.model import occupied
from sklearn_lrvb.reports import require_interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class ClassProfilesDisplay(ForestDisplay):
    """The profiles of latent classes: a panel for every column, a marker for every class, with intervals.

    A column with categories has the probability of each of them, on an axis from 0 to 1; of two categories,
    that of the second alone. A column of numbers has the means of the classes, and a column of counts their
    rates, on an axis that reaches two standard deviations of the column to both sides of its mean, as the
    mixture has them. So panels can be compared: what is far apart on the page differs much. A column of
    durations has their rates, which are no durations, on an axis from 0. Lines are credible intervals: where
    those of two classes do not overlap, the classes differ in that column.

    Columns come in the order in which they separate the classes. In brackets is by how much: the mutual
    information between the column and the class under the fitted mixture, in per cent of the entropy of the
    class. It is 100 where the column alone tells the class of every row, and 0 where all classes have the
    same distribution of it. It is an estimate, without an error bar, and somewhat too large with few rows.

    Create it with :meth:`from_estimator`.

    Parameters
    ----------
    panels : list of Panel
        Of every column its `name`, the names of its `values`, means and limits of intervals as `numbers` of
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

    def __init__(self, *, panels: list[Panel], classes: list[str], note: str = "") -> None:
        self.panels, self.classes, self.note = panels, classes, note

    @classmethod
    def from_estimator(
        cls,
        estimator: LRVBLatentClassMixture,
        posterior: Posterior | None = None,
        *,
        columns: list[str] | None = None,
        interval: float = 0.95,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Compute the profiles of the classes that hold rows, and plot them.

        Parameters
        ----------
        estimator : LRVBLatentClassMixture
            A fitted mixture.

        posterior : Posterior, default=None
            Whose means and intervals are drawn; None is ``estimator.posterior()``.

        columns : list of str, default=None
            Names of the columns to draw, in this order; None draws all, those first that separate the classes
            most.

        interval : float, default=0.95
            Probability of the credible intervals.

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
        selection.check_drawn(cls, estimator, LRVBLatentClassMixture)
        require_interval(interval)
        tables, fitted = estimator.tables_, estimator._fitted
        families = {place: family for family in fitted.posterior.prior.families for place in family.places}
        chosen = _checked_columns(columns, list(tables))
        posterior = selection.checked_posterior(estimator, posterior)
        margins_of = posterior._answer.margins_of(["weights", "tables"])
        margins, weights = margins_of("tables"), margins_of("weights").mean
        numbers = np.stack([margins.mean, *margins.interval(interval)])
        numbers = numbers.reshape(3, len(estimator.weights_), -1)
        held = np.flatnonzero(occupied(fitted.posterior.counts))
        shares = estimator.weights_[held] / estimator.weights_[held].sum()
        start, panels = 0, {}
        for place, (name, table) in enumerate(tables.items()):
            own, start = numbers[:, held, start : start + table.shape[1]], start + table.shape[1]
            panels[name] = _profile(str(name), families[place], table.iloc[held], own, shares)
        if columns is None:
            chosen = sorted(chosen, key=lambda name: -panels[name].separation)
        return cls(
            panels=[panels[name] for name in chosen],
            classes=[f"class {k} ({100 * weights[k]:.0f} %)" for k in held],
            note=f"{100 * interval:g} % intervals. {posterior.note}",
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
        series = []
        for k, name in enumerate(self.classes):
            look = drawing.series_style(k)
            line = {"color": look["color"], "linewidth": 1.3}
            series.append((name, line, {**line, "marker": look["marker"], "markersize": 4.5}))
        separates = " In brackets: how much of the uncertainty about the class the column alone removes."
        title = self.note + separates * (len(series) > 1)
        drawn = self._draw_panels(ax, self.panels, series, title, kwargs)
        self.intervals_ = [[lines for lines, _ in panel] for panel in drawn]
        self.points_ = [[points for _, points in panel] for panel in drawn]
        return self

    def __repr__(self) -> str:
        n_classes, n_columns = len(self.classes), len(self.panels)
        return (
            f"{type(self).__name__}: {n_classes} class{'es' * (n_classes > 1)}, "
            f"{n_columns} column{'s' * (n_columns > 1)}"
        )


def _profile(name, family, table, numbers, shares):
    """What one column says of some classes: Panel.

    Parameters
    ----------
    name : str, of the column
    family : ColumnFamily, of the column
    table : data frame of the column's estimates, a row for each of K classes
    numbers : (3, K, n_values), means and limits of intervals of these
    shares : (K,), weights of the classes, which sum to one
    """
    estimates = table.to_numpy(np.float64)
    if not family.holds_numbers:
        kept = slice(1, 2) if table.shape[1] == 2 else slice(None)
        values, separation = [str(value) for value in table.columns[kept]], _separation(estimates, shares)
        return Panel(name, values, numbers[:, :, kept], "probability", (-0.02, 1.02), separation)
    distribution = family.distribution(estimates)
    means, deviations = distribution.mean(), distribution.std()
    # The separation by cells between points that are close where any class has its values.
    points = np.unique(means + deviations * np.linspace(-6.0, 6.0, 241)[:, None])[:, None]
    cells = np.diff(distribution.cdf(points), axis=0, prepend=0.0, append=1.0).T
    # The axis reaches two standard deviations of the column to both sides of its mean.
    numbers, mean = numbers[:, :, :1], shares @ means
    reach = 2.0 * np.sqrt(shares @ (deviations**2 + (means - mean) ** 2))
    low, high = max(mean - reach, distribution.support()[0].min()), mean + reach
    if not np.allclose(means, estimates[:, 0]):  # Rates of durations have other units than these.
        low = high = 0.0
    seen = numbers[np.isfinite(numbers)]
    limits = min(low, *seen), max(high, *seen)
    return Panel(name, [""], numbers, next(iter(family.estimates)), limits, _separation(cells, shares))


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
    selection.check_number_of_panels(len(chosen), "Choose some by columns=[...].")
    return chosen
