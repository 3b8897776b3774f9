"""ModelCheckDisplay: distances of rows by component, and histograms of the columns that depart."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import bdtrik, betaincinv, ndtr, ndtri

from sklearn_lrvb.answers.model_tests import LEVEL
from sklearn_lrvb.displays import drawing
from sklearn_lrvb.displays.results import ResultDisplay
from sklearn_lrvb.displays.selection import check_drawn

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_N_COLUMNS = 4  # Of panels.
_LEAST_BINS, _MOST_BINS, _ROWS_OF_A_BIN = 5, 20, 15
_BAND: dict[str, Any] = {"color": "0.85", "linewidth": 0.0, "zorder": 0}
_EXPECTED: dict[str, Any] = {"color": "0.5", "linewidth": 1.0, "zorder": 1}
_PANEL = 2.4  # Inches.


class ModelCheckDisplay(ResultDisplay):
    """Where the model does not fit: distances of rows from their component, and columns.

    The first panel has, for every component, the squared distances of its rows from its centre, as normal
    scores against those that are expected. If the model holds, points are on the grey line, and nearly all in
    the grey band around it (it is that of the largest component); heavy tails and outliers rise above it
    at the right. Latent classes have no such panel.

    The other panels are histograms of columns: of the probability, under the model, of a value below that of
    the row (the probability integral transform). If the model holds they are flat, and nearly all bars end in
    the grey band. Bars are high on both sides where tails are long, in the middle where they are short, and
    on one side where a column is skew. The columns that depart most come first; each is drawn for the
    component, or for all rows, where it departs most. Those that depart are orange, the others blue.

    Create it with :meth:`from_estimator`, or with :meth:`from_result` of what `model_check` returned.

    Parameters
    ----------
    result : ModelCheck
        The result of :meth:`~sklearn_lrvb.LRVBGaussianMixture.model_check`; it is kept as `result`.

    Attributes
    ----------
    lines_ : list of matplotlib Line2D
        The points of the components.

    bars_ : list of matplotlib BarContainer
        The histograms.

    axes_ : ndarray of matplotlib Axes or None, of shape (n_rows, n_columns)
        The panels, None where there is none.

    ax_ : matplotlib Axes
        The axes drawn on: the panel itself, or the axes that hold the panels.

    figure_ : matplotlib Figure
        Their figure.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_lrvb import LRVBGaussianMixture
    >>> from sklearn_lrvb.displays import ModelCheckDisplay
    >>> X = np.random.default_rng(0).standard_t(3, size=(300, 2))
    >>> mixture = LRVBGaussianMixture(random_state=0).fit(X)
    >>> display = ModelCheckDisplay.from_estimator(mixture, X)
    >>> len(display.bars_)
    2
    """

    _max_columns = 11

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        random_state: int | np.random.RandomState | None = None,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Check whether a mixture fits, and plot it.

        Parameters
        ----------
        estimator : LRVBGaussianMixture or LRVBLatentClassMixture
            A fitted mixture.

        X : array-like of shape (n_samples, n_features), Dask collection or source of batches
            The training rows.

        sample_weight, groups, random_state
            As in :meth:`~sklearn_lrvb.LRVBGaussianMixture.model_check`.

        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure. Several panels take the place of the axes.

        **kwargs : dict
            As in :meth:`plot`.

        Returns
        -------
        display : ModelCheckDisplay
            The display, drawn.

        Raises
        ------
        ValueError
            As `model_check`.
        """
        check_drawn(cls, estimator)
        result = estimator.model_check(
            X, sample_weight=sample_weight, groups=groups, random_state=random_state
        )
        return cls(result=result).plot(ax=ax, **kwargs)

    def plot(self, ax: Axes | None = None, max_columns: int | None = None, **kwargs: Any) -> Self:
        """Draw the check again, on the same or other axes.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure. Several panels take the place of the axes.

        max_columns : int or None, default=None
            Histograms at most; None means as many as were drawn before, at first 11.

        **kwargs : dict
            Keyword arguments of matplotlib's `bar`, which draws the histograms.

        Returns
        -------
        display : ModelCheckDisplay
            The display itself.

        Raises
        ------
        ValueError
            If there are several panels, and `ax` has no place in a grid of subplots; or if there is nothing
            to draw, because all columns are categories.
        """
        examination = self.result.examination
        if max_columns is not None and (not isinstance(max_columns, Integral) or max_columns < 0):
            raise ValueError(f"max_columns must be a number of columns, 0 or more, got {max_columns!r}.")
        self._max_columns = self._max_columns if max_columns is None else max_columns
        shown = self._columns(self._max_columns)
        has_distances = not np.isnan(examination.scores.distances).all()
        n_panels = has_distances + len(shown)
        if n_panels == 0:
            raise ValueError(
                "Categories have neither distances nor histograms: the tests between pairs of columns are in "
                "model_check(X).summary()."
            )
        n_columns = min(_N_COLUMNS, n_panels)
        shape = -(-n_panels // n_columns), n_columns
        panels = self._take(ax, shape, (0.4 + _PANEL * n_columns, 0.3 + _PANEL * shape[0]))
        self.lines_, self.bars_ = list[Any](), list[Any]()
        places = iter(panels.flat)
        if has_distances:
            self._draw_distances(next(places))
        for column, component, departs in shown:
            self._draw_histogram(next(places), column, component, departs, kwargs)
        self.axes_ = panels
        for panel in places:
            panel.set_visible(False)
        for panel in panels.flat:
            panel.spines[["top", "right"]].set_visible(False)
            panel.tick_params(labelsize="small")
        return self

    def _columns(self, most):
        """Columns, where each departs most, and whether it departs, the worst first: list of triples."""
        examination, place = self.result.examination, {}
        for own in self.result.repeated:
            if own.is_gross:
                place.setdefault(own.column, (own.column, own.component, True))
        for test in examination.tests:
            if len(test.columns) == 1:
                departs = examination.p_adjusted(test) < LEVEL
                place.setdefault(test.columns[0], (test.columns[0], test.component, departs))
        return list(place.values())[:most]

    def _draw_distances(self, panel):
        """Normal scores of distances by component, against those expected."""
        examination = self.result.examination
        components = np.unique(examination.labels[examination.labels >= 0])
        for rank, k in enumerate(components):
            scores = examination.scores.distances[examination.labels == k]
            scores = np.sort(scores[~np.isnan(scores)])
            if not len(scores):
                continue
            expected = ndtri((np.arange(len(scores)) + 0.5) / len(scores))
            style = drawing.series_style(rank) | {"linestyle": "none", "label": f"component {k}"}
            self.lines_ += panel.plot(expected, scores, **style, markersize=2.5, zorder=2)
        longest = max(len(line.get_xdata()) for line in self.lines_)
        order = np.arange(1, longest + 1)
        limits = [ndtri(betaincinv(order, longest + 1 - order, tail)) for tail in (0.025, 0.975)]
        middle = ndtri((order - 0.5) / longest)
        panel.fill_between(middle, *limits, **_BAND)
        panel.plot(middle, middle, **_EXPECTED)
        panel.set_xlabel("expected score", size="small")
        panel.set_ylabel("score of the distance", size="small")
        if 1 < len(components) <= len(drawing.COLORS):
            panel.legend(fontsize="x-small", frameon=False, loc="upper left", handletextpad=0.0)

    def _draw_histogram(self, panel, column, component, departs, kwargs):
        """The histogram of a column, in a component or of all rows."""
        examination = self.result.examination
        scores = examination.scores.overall[:, column]
        if component is not None:
            scores = examination.scores.in_component[examination.labels == component, column]
        values = ndtr(scores[~np.isnan(scores)])
        n_bins = int(np.clip(len(values) // _ROWS_OF_A_BIN, _LEAST_BINS, _MOST_BINS))
        counts, edges = np.histogram(values, n_bins, (0.0, 1.0))
        limits = [bdtrik(tail, len(values), 1.0 / n_bins) for tail in (0.025, 0.975)]
        panel.axhspan(max(limits[0], 0.0), limits[1] + 1.0, **_BAND)
        panel.axhline(len(values) / n_bins, **_EXPECTED)
        style = {"color": drawing.COLORS[1 if departs else 0], "alpha": 0.8, "width": 0.9 / n_bins, **kwargs}
        self.bars_.append(panel.bar(0.5 * (edges[:-1] + edges[1:]), counts, **style, zorder=2))
        name, width = self.result.names[column], drawing.inches(panel)[0]
        where = "" if component is None else f" in component {component}"
        panel.set_title(drawing.wrapped(f"{name}{where}", width), size="small")
        panel.set(xlim=(0.0, 1.0), xticks=[0.0, 0.5, 1.0])
        panel.set_xlabel("probability of less", size="small")
        panel.set_ylabel("rows", size="small")
