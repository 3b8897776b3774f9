"""DecidingRowsDisplay: a conclusion against the number of rows that are left out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from sklearn_lrvb.displays.axes import (
    COLORS,
    ResultDisplay,
    draw_legend,
    given_or_new,
    label_axes,
    styled,
    write_beside,
)
from sklearn_lrvb.displays.selection import check_drawn

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike

    from sklearn_lrvb import LRVBGaussianMixture

_REFITS: dict[str, Any] = {"color": COLORS[0], "marker": "o", "markersize": 5, "linestyle": "none"}
_FIRST_ORDER: dict[str, Any] = {"color": COLORS[1], "linewidth": 1.2, "linestyle": "dashed"}
_RING: dict[str, Any] = {"marker": "o", "markersize": 13, "color": "black", "markerfacecolor": "none"}


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
    ...     mixture, X, "mean[0,x0] - mean[1,x0]", threshold=3.2
    ... )
    >>> len(display.result.rows)
    12
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
        check_drawn(cls, estimator)
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
        self.ax_ = ax = given_or_new(ax)
        self.figure_ = ax.figure
        self.threshold_ = ax.axhline(result.threshold, color="0.5", linewidth=1.2, label="threshold")
        predicted = result.first_order_path
        shown = {**_FIRST_ORDER, "label": "predicted"}
        self.first_order_ = ax.plot(np.arange(len(predicted)), predicted, **shown)[0]
        n_left_out, values = np.vstack([[0.0, result.value], result.path]).T
        style = styled(Line2D, {**_REFITS, "label": "refits"}, kwargs)
        self.points_ = ax.plot(n_left_out, values, **style)[0]
        self.ring_ = None
        if result.found:
            place, side = (result.n_left_out, result.confirmed), np.sign(result.threshold - result.value)
            self.ring_ = ax.plot(*place, linestyle="none", **_RING)[0]
            style = {"ha": "center", "va": "bottom" if side > 0 else "top"}
            unit = result.unit if result.n_left_out > 1 else result.unit[:-1]
            write_beside(ax, f"{result.n_left_out} {unit}", place, (0, 13 * side), **style)
        ax.margins(0.06, 0.16)
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        ax.spines[["top", "right"]].set_visible(False)
        of = result.n_rows if result.groups is None else result.n_groups
        label_axes(ax, f"{result.unit} left out, of {of}", result.conclusion)
        self.legend_ = draw_legend(ax, "above", 3, fontsize="small")
        return self
