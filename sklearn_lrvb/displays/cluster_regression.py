"""CovariateEffectsDisplay and OutcomeDifferencesDisplay."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils._optional_dependencies import check_matplotlib_support

from sklearn_lrvb.cluster_regression.intervals import LogOdds, Quantities
from sklearn_lrvb.cluster_regression.results import CovariateEffects, OutcomeDifferences
from sklearn_lrvb.displays import drawing
from sklearn_lrvb.displays.results import ResultDisplay
from sklearn_lrvb.displays.selection import check_drawn, check_number_of_panels
from sklearn_lrvb.reports import require_interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_N_COLUMNS = 3  # Of panels.
_PANEL = 3.0, 2.6  # Inches.
_N_VALUES = 25  # Of a covariate, at which shares are computed.
_ENDS = 0.02, 0.98  # Quantiles of a covariate, between which shares are drawn.
_BAND: dict[str, Any] = {"alpha": 0.2, "linewidth": 0.0}
_BAR: dict[str, Any] = {"markersize": 5, "elinewidth": 1.5, "capsize": 0}


class _RegressionDisplay(ResultDisplay):
    """Panels of a regression on or of clusters. A subclass has `_panels` and `_draw`."""

    _remedies = "(a) Ask for fewer columns."
    _interval = 0.95
    _result: type

    def _panels(self) -> list[Any]:
        """What has a panel: list."""
        raise NotImplementedError

    def _draw(self, axes, panel, kwargs):
        """Draw a panel."""
        raise NotImplementedError

    def plot(self, ax: Axes | None = None, interval: float | None = None, **kwargs: Any) -> Self:
        """Draw the result again, on the same or other axes.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure. Several panels take the place of the axes.

        interval : float or None, default=None
            Probability of the intervals; None is as before, at first 0.95.

        **kwargs : dict
            Keyword arguments of matplotlib's `plot`, which draws lines and points.

        Returns
        -------
        display : instance of the class
            The display itself.

        Raises
        ------
        ValueError
            If the interval is none, or there are several panels, and `ax` has no place in a grid of subplots.
        """
        check_matplotlib_support(f"{type(self).__name__}.plot")
        if not isinstance(self.result, self._result):
            raise ValueError(
                f"{type(self).__name__} draws {self._result.__name__}, got {type(self.result).__name__}."
            )
        if interval is not None:
            require_interval(interval)
            self._interval = interval
        panels = self._panels()
        check_number_of_panels(len(panels), self._remedies)
        n_columns = min(_N_COLUMNS, len(panels))
        shape = -(-len(panels) // n_columns), n_columns
        grid = self._take(ax, shape, (_PANEL[0] * n_columns + 0.9, _PANEL[1] * shape[0]))
        self.lines_, self.axes_ = list[Any](), grid
        for place, axes in enumerate(grid.flat):
            if place >= len(panels):
                axes.set_visible(False)
                continue
            self._draw(axes, panels[place], kwargs)
            axes.spines[["top", "right"]].set_visible(False)
            axes.tick_params(labelsize="small")
        return self

    def _draw_points(self, axes, at, quantities, places, style, kwargs):
        """Draw some estimates with their intervals as bars."""
        value, (lower, upper) = quantities.values, quantities.interval(self._interval)
        gaps = np.maximum(np.stack([value - lower, upper - value]), 0.0)[:, places]
        style = style | {"linestyle": "none"} | _BAR | kwargs
        self.lines_.append(axes.errorbar(at, value[places], yerr=gaps, **style).lines[0])


class CovariateEffectsDisplay(_RegressionDisplay):
    """Shares of the clusters along every covariate, with bands of uncertainty.

    A panel for each covariate: the average share of every cluster if all rows had a value of it, and all else
    as it is. Of numbers it is drawn from the 2 % to the 98 % quantile, with a band; of categories as points
    with bars.

    Create it with :meth:`from_estimator`, or with :meth:`from_result` of what `covariate_effects` returned.

    Parameters
    ----------
    result : CovariateEffects
        The result of :meth:`~sklearn_lrvb.LRVBGaussianMixture.covariate_effects`; it is kept as `result`.

    Attributes
    ----------
    lines_ : list of matplotlib Line2D
        Lines and points, panel by panel and cluster by cluster.

    legend_ : matplotlib Legend
        Beside the first panel, or inside it.

    axes_ : ndarray of matplotlib Axes, of shape (n_rows, n_columns)
        The panels.

    ax_ : matplotlib Axes
        The axes drawn on: the panel itself, or the axes that hold the panels.

    figure_ : matplotlib Figure
        Their figure.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_lrvb import LRVBGaussianMixture
    >>> from sklearn_lrvb.displays import CovariateEffectsDisplay
    >>> generator = np.random.default_rng(0)
    >>> age = generator.uniform(20, 80, size=200)
    >>> X = (generator.uniform(size=200) < age / 100)[:, None] * 5.0 + generator.normal(size=(200, 2))
    >>> mixture = LRVBGaussianMixture(n_components=2, random_state=0).fit(X)
    >>> display = CovariateEffectsDisplay.from_estimator(mixture, X, age)
    >>> len(display.lines_)
    2
    """

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: ArrayLike,
        covariates: ArrayLike,
        *,
        interval: float = 0.95,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Ask a mixture what explains its clusters, and plot the answer.

        Parameters
        ----------
        estimator : LRVBGaussianMixture or LRVBLatentClassMixture
            A fitted mixture.

        X : array-like of shape (n_samples, n_features), Dask collection or source of batches
            The training rows.

        covariates : data frame, series or array-like with a row for every row of X
            As in :meth:`~sklearn_lrvb.LRVBGaussianMixture.covariate_effects`.

        interval : float, default=0.95
            Probability of the intervals.

        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure. Several panels take the place of the axes.

        **kwargs : dict
            Other arguments of the method, such as `groups` or `columns`.

        Returns
        -------
        display : CovariateEffectsDisplay
            The display, drawn.

        Raises
        ------
        ValueError
            As `covariate_effects`, or if the interval is none.
        """
        check_drawn(cls, estimator)
        return cls(result=estimator.covariate_effects(X, covariates, **kwargs)).plot(ax=ax, interval=interval)

    _result = CovariateEffects

    def _panels(self):
        return list(range(len(self.result.regressions[0].quantities.design.table.columns)))

    def _draw(self, axes, number, kwargs):
        (regression,) = self.result.regressions
        own, estimate = regression.quantities, regression.estimate
        values = own.design.table.values[:, number]
        column, levels = own.design.table.columns[number], own.design.levels(number)
        at = np.array(levels) if levels else np.linspace(*np.quantile(values, _ENDS), _N_VALUES)
        mean, covariance = estimate.of(own.shares_along(number, at))
        shares = Quantities([], mean, covariance, LogOdds(), estimate.freedom)
        lower, upper = shares.interval(self._interval)
        for rank, k in enumerate(self.result.clusters):
            some = slice(rank, None, len(self.result.clusters))
            style = drawing.series_style(rank) | {"label": f"cluster {k}"}
            if levels:
                offset = 0.3 * ((rank + 0.5) / len(self.result.clusters) - 0.5)
                self._draw_points(axes, np.arange(len(at)) + offset, shares, some, style, kwargs)
                continue
            self.lines_ += axes.plot(at, mean[some], **style | {"marker": None} | kwargs)
            axes.fill_between(at, lower[some], upper[some], color=style["color"], **_BAND)
        if levels:
            names = [drawing.wrapped(str(column.categories[int(level)]), 1.0) for level in levels]
            axes.set_xticks(range(len(at)), names)
            axes.set_xlim(-0.5, len(at) - 0.5)
        axes.set_ylim(0.0, 1.0)
        axes.set_xlabel(drawing.wrapped(column.name, _PANEL[0]), size="small")
        if number == 0:
            axes.set_ylabel("share of the cluster", size="small")
            self.legend_ = axes.legend(fontsize="x-small", frameon=False)


class OutcomeDifferencesDisplay(_RegressionDisplay):
    """Means of outcomes in every cluster, with intervals.

    A panel for each outcome, or for each category of one: its mean, or its share, in every cluster.

    Create it with :meth:`from_estimator`, or with :meth:`from_result` of what `outcome_differences` returned.

    Parameters
    ----------
    result : OutcomeDifferences
        The result of :meth:`~sklearn_lrvb.LRVBGaussianMixture.outcome_differences`; it is kept as `result`.

    Attributes
    ----------
    lines_ : list of matplotlib Line2D
        The points, panel by panel.

    axes_ : ndarray of matplotlib Axes, of shape (n_rows, n_columns)
        The panels.

    ax_ : matplotlib Axes
        The axes drawn on: the panel itself, or the axes that hold the panels.

    figure_ : matplotlib Figure
        Their figure.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_lrvb import LRVBGaussianMixture
    >>> from sklearn_lrvb.displays import OutcomeDifferencesDisplay
    >>> generator = np.random.default_rng(0)
    >>> cluster = np.repeat([0, 1], 100)
    >>> X = 5.0 * cluster[:, None] + generator.normal(size=(200, 2))
    >>> mixture = LRVBGaussianMixture(n_components=2, random_state=0).fit(X)
    >>> display = OutcomeDifferencesDisplay.from_estimator(mixture, X, cluster + generator.normal(size=200))
    >>> len(display.lines_)
    1
    """

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: ArrayLike,
        outcome: ArrayLike,
        *,
        interval: float = 0.95,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Ask a mixture in what its clusters differ, and plot the answer.

        Parameters
        ----------
        estimator : LRVBGaussianMixture or LRVBLatentClassMixture
            A fitted mixture.

        X : array-like of shape (n_samples, n_features), Dask collection or source of batches
            The training rows.

        outcome : data frame, series or array-like with a row for every row of X
            As in :meth:`~sklearn_lrvb.LRVBGaussianMixture.outcome_differences`.

        interval : float, default=0.95
            Probability of the intervals.

        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure. Several panels take the place of the axes.

        **kwargs : dict
            Other arguments of the method, such as `groups` or `columns`.

        Returns
        -------
        display : OutcomeDifferencesDisplay
            The display, drawn.

        Raises
        ------
        ValueError
            As `outcome_differences`, or if the interval is none.
        """
        check_drawn(cls, estimator)
        return cls(result=estimator.outcome_differences(X, outcome, **kwargs)).plot(ax=ax, interval=interval)

    _result = OutcomeDifferences

    def _panels(self):
        return [(own, number) for own in self.result.regressions for number in range(own.quantities.n_means)]

    def _draw(self, axes, panel, kwargs):
        regression, number = panel
        means, quantities = regression.of("means"), regression.quantities
        places = number + quantities.n_means * np.arange(len(quantities.labels))
        own = drawing.series_style(0)
        self._draw_points(axes, np.arange(len(places)), means, places, own, kwargs)
        axes.set_xticks(range(len(places)), [*map(str, quantities.labels)])
        axes.set_xlim(-0.5, len(places) - 0.5)
        axes.set_xlabel("cluster", size="small")
        if quantities.are_shares:
            axes.set_ylim(-0.03, 1.03)  # Points at the ends are whole.
        what = f"{'share' if quantities.are_shares else 'mean'} of {quantities.subjects[number]}"
        axes.set_ylabel(drawing.wrapped(what, _PANEL[1]), size="small")
