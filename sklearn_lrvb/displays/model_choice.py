"""ModelChoiceDisplay: how probable every number of clusters is, and other scores of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils._optional_dependencies import check_matplotlib_support

from sklearn_lrvb.answers.number_of_clusters import CRITERIA
from sklearn_lrvb.displays.axes import (
    COLORS,
    ResultDisplay,
    draw_legend,
    panel_grid,
    panel_width,
    styled,
    write_beside,
)
from sklearn_lrvb.estimators.number_of_clusters import number_of_clusters

if TYPE_CHECKING:
    from collections.abc import Iterable

    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike

    from sklearn_lrvb import LRVBGaussianMixture

_MOST_DIFFERENCES = 12  # Differences from the best are written at the points of up to this many fits.
_MOST_TICKS = 16
_WIDE = 4.5  # Inches of a panel from which on its legend has two columns.

# How bars and lines are drawn. Marker and hatching say which is which in print.
_BARS: dict[str, Any] = {"color": COLORS[0], "ecolor": "0.3", "capsize": 2.0, "label": "the prior in use"}
_OTHER_BARS: dict[str, Any] = {
    "color": "white",
    "edgecolor": COLORS[1],
    "hatch": "////",
    "ecolor": "0.3",
    "capsize": 2.0,
    "label": "covariance_prior and\nmean_precision_prior a tenth",
}
_LINES: dict[str, dict[str, Any]] = {
    "lower_bound": {"color": COLORS[0], "marker": "o"},
    "leave_one_out": {"color": COLORS[2], "marker": "D"},
}
_UNITS = {"lower_bound": "nats", "leave_one_out": "nats, \N{PLUS-MINUS SIGN} 1 standard error"}
_RING: dict[str, Any] = {"marker": "o", "markersize": 12, "color": "black", "markerfacecolor": "none"}
_HOLLOW: dict[str, Any] = {"marker": "o", "color": "0.3", "markerfacecolor": "white"}
_CROSS: dict[str, Any] = {"marker": "x", "color": "black"}
_ARROW: dict[str, Any] = {"marker": "^", "color": "black", "markerfacecolor": "none", "markersize": 10}


class ModelChoiceDisplay(ResultDisplay):
    """How probable every number of clusters is, and other scores of each.

    A panel for each criterion: bars are P(K | X) with one standard error, and beside them, hatched, what it
    is under another prior. Lines are lower bounds and leave-one-out scores, in nats, of which more is better;
    next to each point is its difference from the best, which is ringed. Hollow points are fits that did not
    converge. A cross marks fits that are no strict optimum, which have neither error bars nor a
    leave-one-out score; a triangle fits that end below the next smaller one with an empty component added.

    Create it with :meth:`from_estimator`, or with :meth:`from_result` of what `number_of_clusters` returned.

    Parameters
    ----------
    result : NumberOfClusters
        The result of :func:`~sklearn_lrvb.number_of_clusters`; it is kept as `result`.

    Attributes
    ----------
    bars_ : matplotlib BarContainer or None
        The probabilities.

    other_bars_ : matplotlib BarContainer or None
        Those under another prior.

    lines_ : dict of str to matplotlib Line2D
        The points, by criterion.

    error_bars_ : matplotlib LineCollection or None
        One standard error to both sides of the leave-one-out scores.

    legend_ : matplotlib Legend
        Above the panels where the figure's layout makes room for it, otherwise inside the first.

    axes_ : ndarray of matplotlib Axes, of shape (n_panels, 1)
        The panels.

    ax_ : matplotlib Axes
        The axes drawn on: the panel itself, or the axes that hold the panels.

    figure_ : matplotlib Figure
        Their figure.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_lrvb import LRVBGaussianMixture
    >>> from sklearn_lrvb.displays import ModelChoiceDisplay
    >>> X = np.random.default_rng(0).normal(size=(60, 2)) + np.repeat([[0, 0], [5, 1]], 30, axis=0)
    >>> mixture = LRVBGaussianMixture(
    ...     weight_concentration_prior_type="dirichlet_distribution", random_state=0
    ... )
    >>> display = ModelChoiceDisplay.from_estimator(mixture, X, n_components=[1, 2, 3])
    >>> display.result.best
    2
    """

    @classmethod
    def from_estimator(
        cls,
        estimator: LRVBGaussianMixture,
        X: ArrayLike,
        *,
        n_components: Iterable[int] | None = None,
        criteria: Iterable[str] = ("probability",),
        sample_weight: ArrayLike | None = None,
        n_init: int = 12,
        n_draws: int = 1000,
        another_prior: bool = True,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        ax: Axes | None = None,
        bar_kw: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> Self:
        """Compare numbers of clusters, and plot how they compare.

        Parameters
        ----------
        estimator : LRVBGaussianMixture
            A mixture, fitted or not; it is left as it is.

        X : array-like of shape (n_samples, n_features), Dask collection or source of batches
            The rows.

        n_components, criteria, sample_weight, n_init, n_draws, another_prior, random_state, n_jobs
            As in :func:`~sklearn_lrvb.number_of_clusters`.

        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure. Several panels take the place of the axes.

        bar_kw : dict, default=None
            Keyword arguments of matplotlib's `bar`, which draws the probabilities.

        **kwargs : dict
            Keyword arguments of matplotlib's `plot`, which draws the points and lines.

        Returns
        -------
        display : ModelChoiceDisplay
            The display, drawn.

        Raises
        ------
        ValueError
            As :func:`~sklearn_lrvb.number_of_clusters`.
        """
        check_matplotlib_support(f"{cls.__name__}.from_estimator")
        result = number_of_clusters(
            estimator,
            X,
            n_components=n_components,
            criteria=criteria,
            sample_weight=sample_weight,
            n_init=n_init,
            n_draws=n_draws,
            another_prior=another_prior,
            random_state=random_state,
            n_jobs=n_jobs,
        )
        return cls(result=result).plot(ax=ax, bar_kw=bar_kw, **kwargs)

    def plot(self, ax: Axes | None = None, bar_kw: dict[str, Any] | None = None, **kwargs: Any) -> Self:
        """Draw the comparison again, on the same or other axes.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure. Several panels take the place of the axes.

        bar_kw : dict, default=None
            Keyword arguments of matplotlib's `bar`, which draws the probabilities.

        **kwargs : dict
            Keyword arguments of matplotlib's `plot`, which draws the points and lines.

        Returns
        -------
        display : ModelChoiceDisplay
            The display itself.

        Raises
        ------
        ValueError
            If there are several panels, and `ax` has no place in a grid of subplots.
        """
        result, criteria = self.result, self.result.criteria
        self.ax_, self.axes_, _ = panel_grid(ax, (len(criteria), 1), (6.4, 0.6 + 2.6 * len(criteria)))
        self.figure_ = self.ax_.figure
        self.lines_: dict[str, Any] = {}
        self.bars_ = self.other_bars_ = self.error_bars_ = None
        for panel, criterion in zip(self.axes_[:, 0], criteria, strict=True):
            if criterion == "probability":
                self._draw_bars(panel, bar_kw or {})
            else:
                self._draw_panel(panel, criterion, kwargs)
            panel.spines[["top", "right"]].set_visible(False)
        every = -(-len(result.n_components) // _MOST_TICKS)
        shown, occupied = result.n_components[::every], result.n_occupied[::every]
        for panel in self.axes_[:-1, 0]:
            panel.set_xticks(shown, [])
        held = [f"{n}" if n else "failed" for n in occupied]
        labels = [
            f"{k}" if k == n else f"{k}\n({own})" for k, n, own in zip(shown, occupied, held, strict=True)
        ]
        self.axes_[-1, 0].set_xticks(shown, labels)
        holding = "\n(in brackets: those of the best fit that hold rows)" if np.any(occupied < shown) else ""
        self.axes_[-1, 0].set_xlabel(f"number of components K{holding}")
        self.legend_ = self._draw_legend()
        return self

    def _draw_bars(self, panel, bar_kw):
        """Draw the probabilities, and beside them those under another prior."""
        from matplotlib.patches import Rectangle

        result, other = self.result, self.result.another_prior
        shown = [(result, styled(Rectangle, _BARS, bar_kw))] + [(other, _OTHER_BARS)] * (other is not None)
        width, bars = 0.8 / len(shown), []
        for k, (one, style) in enumerate(shown):
            shares, errors = one.scores["probability"], one.probability_errors
            within = np.minimum([errors, errors], [shares, 1.0 - shares])  # Error bars end at 0 and 1.
            places = result.n_components + (k - 0.5 * (len(shown) - 1)) * width
            bars.append(panel.bar(places, shares, width, yerr=within, **style))
        self.bars_, self.other_bars_ = [*bars, None][:2]
        ylabel = f"{CRITERIA['probability']}\n(\N{PLUS-MINUS SIGN} 1 standard error)"
        panel.set(ylabel=ylabel, ylim=(0.0, 1.0))

    def _draw_panel(self, panel, criterion, kwargs):
        """Draw a line of points, a ring about the best, and crosses at fits that are no strict optimum."""
        result, scores = self.result, self.result.scores[criterion]
        self._draw_line(panel, criterion, kwargs)
        if criterion in result.best_:
            best = result.n_components == result.best_[criterion]
            panel.plot(result.n_components[best], scores[best], linestyle="none", **_RING)
            self._write_differences(panel, criterion)
        missed = np.isin(result.n_components, [*result.missed])
        panel.plot(result.n_components[missed], scores[missed], linestyle="none", **_ARROW)
        crossed = result.n_components[~result.strict_optimum]
        edge = {"transform": panel.get_xaxis_transform(), "linestyle": "none"}
        panel.plot(crossed, np.full(len(crossed), 0.04), **edge, **_CROSS)
        panel.set_ylabel(f"{CRITERIA[criterion]}\n({_UNITS[criterion]})")

    def _draw_line(self, panel, criterion, kwargs):
        """Draw a line of points, hollow where the fit did not converge, and error bars if there are some."""
        from matplotlib.lines import Line2D

        result, scores = self.result, self.result.scores[criterion]
        style = {"markersize": 5, "linewidth": 1.2, **_LINES[criterion]}
        style = styled(Line2D, {**style, "label": CRITERIA[criterion]}, kwargs)
        (line,) = panel.plot(result.n_components, scores, **style)
        self.lines_[criterion] = line
        (hollow,) = panel.plot(result.n_components[~result.converged], scores[~result.converged])
        hollow.update_from(line)
        hollow.set(linestyle="none", markerfacecolor="white", label="_", zorder=line.get_zorder() + 0.1)
        if criterion == "leave_one_out":
            error = result.leave_one_out_std_error
            ends = scores - error, scores + error
            self.error_bars_ = panel.vlines(result.n_components, *ends, color=line.get_color(), linewidth=1.2)

    def _write_differences(self, panel, criterion):
        """Write how far each score of a criterion is below the best, in nats."""
        result, scores = self.result, self.result.scores[criterion]
        panel.margins(y=0.14)
        if len(result.n_components) > _MOST_DIFFERENCES:
            return
        tops = scores if criterion != "leave_one_out" else scores + result.leave_one_out_std_error
        for k, top, below in zip(result.n_components, tops, scores - np.nanmax(scores), strict=True):
            if below < 0:
                text = f"\N{MINUS SIGN}{-below:.{1 if below > -100 else 0}f}"
                style = {"ha": "center", "fontsize": "x-small", "color": "0.2"}
                write_beside(panel, text, (k, top), (0, 6), **style)

    def _draw_legend(self):
        """Draw one legend, above the panels where the figure's layout makes room for it."""
        from matplotlib.lines import Line2D

        handles = [] if self.other_bars_ is None else [self.bars_, self.other_bars_]
        marks = [("highest score", _RING)] * bool(self.lines_)
        if self.lines_:  # Bars have no marks.
            marks += [("not converged", _HOLLOW)] * (not self.result.converged.all())
            marks += [("no strict optimum", _CROSS)] * (not self.result.strict_optimum.all())
            marks += [("better one missed", _ARROW)] * bool(self.result.missed)
        handles += [Line2D([], [], linestyle="none", label=label, **style) for label, style in marks]
        n_columns = 2 if panel_width(self.axes_[0, 0]) > _WIDE else 1
        return draw_legend(self.axes_[0, 0], "above", n_columns, handles=handles, fontsize="small")
