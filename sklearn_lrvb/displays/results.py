"""Displays of results: ModelChoiceDisplay, PartitionDisplay and DecidingRowsDisplay."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils._optional_dependencies import check_matplotlib_support

from sklearn_lrvb.answers.number_of_clusters import CRITERIA
from sklearn_lrvb.displays import drawing, selection
from sklearn_lrvb.estimators.number_search import number_of_clusters

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from sklearn_lrvb import LRVBGaussianMixture


# Marker and hatching say which is which in print.
_LINES: dict[str, dict[str, Any]] = {
    "second_order": {"color": drawing.COLORS[0], "marker": "o"},
    "leave_one_out": {"color": drawing.COLORS[2], "marker": "D"},
}
_UNITS = {"second_order": "nats", "leave_one_out": "nats, \N{PLUS-MINUS SIGN} 1 standard error"}
_RING: dict[str, Any] = {"marker": "o", "markersize": 12, "color": "black", "markerfacecolor": "none"}
_TRIANGLE: dict[str, Any] = {**_RING, "marker": "^", "markersize": 10}
_MATRIX: dict[str, Any] = {"cmap": "Blues", "vmin": 0.0, "vmax": 1.0, "interpolation": "nearest"}
_REFITS: dict[str, Any] = {"color": drawing.COLORS[0], "marker": "o", "markersize": 5, "linestyle": "none"}
_FIRST_ORDER: dict[str, Any] = {"color": drawing.COLORS[1], "linewidth": 1.2, "linestyle": "dashed"}


class ResultDisplay(drawing.Display):
    """A display of one result, which is kept as `result` and has a `verdict`. A subclass has `plot`."""

    def __init__(self, *, result: Any) -> None:
        self.result = result

    @classmethod
    def from_result(cls, result: Any, *, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Plot a result that is there already.

        Parameters
        ----------
        result : object
            What the method returned that is named under *Parameters* of the class.

        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure. Several panels take the place of the axes.

        **kwargs : dict
            As in :meth:`plot`.

        Returns
        -------
        display : instance of the class
            The display, drawn.
        """
        check_matplotlib_support(f"{cls.__name__}.from_result")
        return cls(result=result).plot(ax=ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Draw the result on some axes, or on a new figure."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__}: {self.result.verdict}"


class ModelChoiceDisplay(ResultDisplay):
    """How probable every number of clusters is, and other scores of each.

    A panel for each criterion: bars are P(K | X) with one standard error, and beside them, hatched, what it
    is under another prior. Lines are log evidences to second order and leave-one-out scores, in nats, of
    which more is better; next to each point is its difference from the highest. The best number, of log
    evidences with their prior, is ringed. Hollow points are fits that did not converge. A cross marks fits
    that are no strict optimum, which have neither error bars nor scores; a triangle fits that end below the
    next smaller one with an empty component added.

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
        size = 6.4, 0.6 + 2.6 * len(criteria)
        self.axes_ = self._take(ax, (len(criteria), 1), size)
        self.lines_: dict[str, Any] = {}
        self.bars_ = self.other_bars_ = self.error_bars_ = None
        every, in_legend = -(-len(result.n_components) // 16), dict[str, Any]()  # At most 16 ticks.
        shown, occupied = result.n_components[::every], result.n_occupied[::every]
        for panel, criterion in zip(self.axes_[:, 0], criteria, strict=True):
            if criterion == "probability":
                self._draw_bars(panel, bar_kw or {})
            else:
                self._draw_scores(panel, criterion, kwargs)
            panel.set_xticks(shown, [])
            panel.spines[["top", "right"]].set_visible(False)
            handles, labels = panel.get_legend_handles_labels()
            in_legend |= dict(zip(labels, handles, strict=True))
        held = [f"{k}" if k == n else f"{k}\n({n or 'failed'})" for k, n in zip(shown, occupied, strict=True)]
        panel.set_xticks(shown, held)
        holding = "\n(in brackets: those of the best fit that hold rows)" if np.any(occupied < shown) else ""
        panel.set_xlabel(f"number of components K{holding}")
        top, handles = self.axes_[0, 0], list(in_legend.values())
        n_columns = 2 if drawing.inches(top)[0] > 4.5 else 1
        self.legend_ = drawing.draw_legend(top, "above", n_columns, handles=handles, fontsize="small")
        return self

    def _draw_bars(self, panel, bar_kw):
        """Draw the probabilities, and beside them those under another prior."""
        from matplotlib.patches import Rectangle

        other = self.result.another_prior
        width, shift = (0.8, 0.0) if other is None else (0.4, 0.2)

        def draw(result, shift, style):
            shares, errors = result.scores["probability"], result.probability_errors
            within = np.minimum([errors, errors], [shares, 1.0 - shares])  # Error bars end at 0 and 1.
            style = {"yerr": within, "ecolor": "0.3", "capsize": 2.0, **style}
            return panel.bar(result.n_components + shift, shares, width, **style)

        style = {"color": drawing.COLORS[0], "label": "_" if other is None else "the prior in use"}
        self.bars_ = draw(self.result, -shift, drawing.styled(Rectangle, style, bar_kw))
        if other is not None:
            style = {"color": "w", "edgecolor": drawing.COLORS[1], "hatch": "////", "label": "other prior"}
            self.other_bars_ = draw(other, shift, style)
        ylabel = f"{CRITERIA['probability']}\n(\N{PLUS-MINUS SIGN} 1 standard error)"
        panel.set(ylabel=ylabel, ylim=(0.0, 1.0))

    def _draw_scores(self, panel, criterion, kwargs):
        """Draw a line of points, marks of the best and of what went wrong, and differences from the best."""
        from matplotlib.lines import Line2D

        result, scores, places = self.result, self.result.scores[criterion], self.result.n_components
        style = drawing.styled(Line2D, {"markersize": 5, "linewidth": 1.2, **_LINES[criterion]}, kwargs)
        self.lines_[criterion] = panel.plot(places, scores, **style)[0]
        tops, best = scores, result.best_.get(criterion)
        if criterion == "leave_one_out":
            bottoms, tops = scores + np.outer([-1.0, 1.0], result.leave_one_out_std_error)
            self.error_bars_ = panel.vlines(places, bottoms, tops, color=style["color"], linewidth=1.2)
        # Fits that are no strict optimum may have no score: their crosses are at the edge.
        at_edge = {"transform": panel.get_xaxis_transform(), "marker": "x", "color": "black"}
        hollow = {**style, "markerfacecolor": "white", "zorder": 2.1}
        marks = [
            ("best number", places == best, scores, _RING),
            ("not converged", ~result.converged, scores, hollow),
            ("no strict optimum", ~result.strict_optimum, np.full(len(places), 0.04), at_edge),
            ("better one missed", np.isin(places, [*result.missed]), scores, _TRIANGLE),
        ]
        for label, own, heights, look in marks:
            if own.any():
                panel.plot(places[own], heights[own], **{**look, "linestyle": "none", "label": label})
        panel.set_ylabel(f"{CRITERIA[criterion]}\n({_UNITS[criterion]})")
        panel.margins(y=0.14)
        if best is None or len(places) > 12:  # There is no room for differences.
            return
        for k, top, difference in zip(places, tops, np.nanmax(scores) - scores, strict=True):
            if difference > 0:
                text = f"\N{MINUS SIGN}{difference:.{1 if difference < 100 else 0}f}"
                small = {"ha": "center", "fontsize": "x-small", "color": "0.2"}
                drawing.write_beside(panel, text, (k, top), (0, 6), **small)


class PartitionDisplay(ResultDisplay):
    """How probable it is that rows belong together: the co-clustering matrix, with rows in clusters.

    Lines divide the rows into the clusters of the partition that stands for the posterior. A square on the
    diagonal is a cluster; it is dark where its rows are together in nearly all draws. Within a cluster the
    most certain rows come first. A dark place outside of the squares shows rows of two clusters that may
    belong together.

    Create it with :meth:`from_estimator`, or with :meth:`from_result` of a result that is there already.

    Parameters
    ----------
    result : PartitionPosterior
        The result of :meth:`LRVBGaussianMixture.partition_posterior`; it is kept as `result`.

    Attributes
    ----------
    image_ : matplotlib AxesImage
        The matrix.

    rows_ : ndarray of int
        Numbers of the rows of X in the order of the matrix; of more than 300 rows with draws, every so many.

    boundaries_ : list of matplotlib Line2D
        The lines between clusters, vertical and horizontal ones in turn.

    colorbar_ : matplotlib Colorbar
        Beside the matrix.

    ax_ : matplotlib Axes
        The axes drawn on.

    figure_ : matplotlib Figure
        Their figure.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn_lrvb import LRVBGaussianMixture
    >>> from sklearn_lrvb.displays import PartitionDisplay
    >>> X = load_iris().data[:, 2:]  # length and width of 150 petals
    >>> mixture = LRVBGaussianMixture(n_components=2, random_state=0).fit(X)
    >>> display = PartitionDisplay.from_estimator(mixture, X, random_state=0)
    >>> display.result.cluster_sizes
    array([100,  50])
    """

    @classmethod
    def from_estimator(
        cls,
        estimator: LRVBGaussianMixture,
        X: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        n_draws: int = 400,
        method: str = "auto",
        max_rows: int = 1000,
        random_state: int | np.random.RandomState | None = None,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Compute the posterior of the partition, and plot it.

        Parameters
        ----------
        estimator : LRVBGaussianMixture
            A fitted mixture.

        X : array-like of shape (n_samples, n_features), Dask collection or source of batches
            The training rows.

        sample_weight, n_draws, method, max_rows, random_state
            As in :meth:`LRVBGaussianMixture.partition_posterior`.

        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure.

        **kwargs : dict
            Keyword arguments of matplotlib's `imshow`, which draws the matrix.

        Returns
        -------
        display : PartitionDisplay
            The display, drawn.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If `estimator` is not fitted.
        ValueError
            As :meth:`LRVBGaussianMixture.partition_posterior`.
        """
        selection.check_drawn(cls, estimator)
        result = estimator.partition_posterior(
            X,
            sample_weight=sample_weight,
            n_draws=n_draws,
            method=method,
            max_rows=max_rows,
            random_state=random_state,
        )
        return cls(result=result).plot(ax=ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Draw the matrix again, on the same or other axes.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure.

        **kwargs : dict
            Keyword arguments of matplotlib's `imshow`, which draws the matrix.

        Returns
        -------
        display : PartitionDisplay
            The display itself.
        """
        from matplotlib.image import AxesImage

        result = self.result
        labels = result.sampled_labels
        order = np.lexsort((-result.sampled_certainty, labels, labels < 0))  # Noise comes last.
        order = order[:: -(-len(order) // 300)]  # More are not told apart in a figure of usual size.
        self.rows_, labels = result.sampled_rows[order], labels[order]
        ax = self._take(ax)[0, 0]
        style = drawing.styled(AxesImage, _MATRIX, kwargs)
        self.image_ = ax.imshow(result.coclustering(self.rows_), **style)
        edges = np.concatenate([[0], np.flatnonzero(np.diff(labels)) + 1, [len(labels)]])
        self.boundaries_: list[Any] = []
        for edge in edges[1:-1] - 0.5:
            self.boundaries_ += [
                draw(edge, color="black", linewidth=0.8) for draw in (ax.axvline, ax.axhline)
            ]
        has_room = np.diff(edges) >= 0.04 * len(labels)  # For the number of a cluster.
        middles, names = (edges[:-1] + edges[1:] - 1) / 2.0, labels[edges[:-1]]
        ticks = middles[has_room], ["noise" if k < 0 else k for k in names[has_room].tolist()]
        ax.set_xticks(*ticks)
        ax.set_yticks(*ticks)
        ax.tick_params(length=0)
        drawing.label_axes(ax, f"rows by cluster, {len(labels)} of {result.n_rows}", "rows by cluster")
        self.colorbar_ = ax.figure.colorbar(self.image_, ax=ax, label="probability to be together")
        return self


class DecidingRowsDisplay(ResultDisplay):
    """A conclusion against the number of rows that are left out, by first order and in refits.

    The dashed line is the prediction of influence from the fit to all rows. The points are refits, in which
    rows were left out a few at a time, and then put back where that was not needed. The conclusion changes
    where they reach the threshold, the grey line; a ring marks the answer.

    Create it with :meth:`from_estimator`, or with :meth:`from_result` of a search that was made already.

    Parameters
    ----------
    result : DecidingRows
        The result of :meth:`LRVBGaussianMixture.deciding_rows`; it is kept as `result`.

    Attributes
    ----------
    points_ : matplotlib Line2D
        The refits, that of all rows first.

    first_order_ : matplotlib Line2D
        The prediction.

    threshold_ : matplotlib Line2D
        The threshold.

    ring_ : matplotlib Line2D or None
        About the answer, where one was found.

    legend_ : matplotlib Legend
        Above the axes where the figure's layout makes room for it, otherwise inside.

    ax_ : matplotlib Axes
        The axes drawn on.

    figure_ : matplotlib Figure
        Their figure.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn_lrvb import LRVBGaussianMixture
    >>> from sklearn_lrvb.displays import DecidingRowsDisplay
    >>> X = load_iris().data[:, 2:]  # length and width of 150 petals
    >>> mixture = LRVBGaussianMixture(n_components=2, random_state=0).fit(X)
    >>> display = DecidingRowsDisplay.from_estimator(
    ...     mixture, X, "mean[0,x0] - mean[1,x0]", threshold=3.3
    ... )
    >>> len(display.result.rows)
    9
    """

    @classmethod
    def from_estimator(
        cls,
        estimator: LRVBGaussianMixture,
        X: ArrayLike,
        conclusion: str | Callable[[Any], float] | None = None,
        *,
        threshold: float = 0.0,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        interval: float | None = None,
        rival: LRVBGaussianMixture | None = None,
        max_share: float = 0.1,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Search for the rows that decide a conclusion, and plot the search.

        Parameters
        ----------
        estimator : LRVBGaussianMixture
            A fitted mixture.

        X : array-like of shape (n_samples, n_features), Dask collection or source of batches
            The training rows.

        conclusion, threshold, sample_weight, groups, interval, rival, max_share
            As in :meth:`LRVBGaussianMixture.deciding_rows`.

        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure.

        **kwargs : dict
            Keyword arguments of matplotlib's `plot`, which draws the refits.

        Returns
        -------
        display : DecidingRowsDisplay
            The display, drawn.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If `estimator` is not fitted.
        ValueError
            As :meth:`LRVBGaussianMixture.deciding_rows`.
        """
        selection.check_drawn(cls, estimator)
        result = estimator.deciding_rows(
            X,
            conclusion=conclusion,
            threshold=threshold,
            sample_weight=sample_weight,
            groups=groups,
            interval=interval,
            rival=rival,
            max_share=max_share,
        )
        return cls(result=result).plot(ax=ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Draw the search again, on the same or other axes.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure.

        **kwargs : dict
            Keyword arguments of matplotlib's `plot`, which draws the refits.

        Returns
        -------
        display : DecidingRowsDisplay
            The display itself.
        """
        from matplotlib.lines import Line2D
        from matplotlib.ticker import MaxNLocator

        result = self.result
        ax = self._take(ax)[0, 0]
        self.threshold_ = ax.axhline(result.threshold, color="0.5", linewidth=1.2, label="threshold")
        self.first_order_ = ax.plot(result.first_order_path, label="predicted", **_FIRST_ORDER)[0]
        style = drawing.styled(Line2D, {**_REFITS, "label": "refits"}, kwargs)
        self.points_ = ax.plot(*np.vstack([[0.0, result.value], result.path]).T, **style)[0]
        self.ring_ = None
        if result.found:
            place, side = (result.n_left_out, result.confirmed), np.sign(result.threshold - result.value)
            self.ring_ = ax.plot(*place, **{**_RING, "markersize": 13, "linestyle": "none"})[0]
            unit = result.unit if result.n_left_out > 1 else result.unit[:-1]
            aligned = {"ha": "center", "va": "bottom" if side > 0 else "top"}
            drawing.write_beside(ax, f"{result.n_left_out} {unit}", place, (0, 13 * side), **aligned)
        ax.margins(0.06, 0.16)
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        ax.spines[["top", "right"]].set_visible(False)
        n_units = result.n_rows if result.groups is None else result.n_groups
        drawing.label_axes(ax, f"{result.unit} left out, of {n_units}", result.conclusion)
        self.legend_ = drawing.draw_legend(ax, "above", ncols=3, fontsize="small")
        return self
