"""InfluenceDisplay: how much each point, or a point at any place of the plane, moves a posterior mean."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from sklearn.utils._optional_dependencies import check_matplotlib_support
from sklearn.utils._set_output import _get_adapter_from_container
from sklearn.utils.validation import check_is_fitted

from sklearn_lrvb.displays.axes import given_or_new
from sklearn_lrvb.displays.parameter_entries import parameter_entry
from sklearn_lrvb.displays.selection import (
    checked_feature,
    checked_plane,
    coordinates,
    feature_names,
    is_list,
)
from sklearn_lrvb.gaussian_mixture.validation import check_perturbation

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from numpy.typing import ArrayLike, NDArray

    from sklearn_lrvb import LRVBGaussianMixture

# Influence has heavy tails: a colour scale up to the largest value would show nearly all others as zero.
_SCALE_QUANTILE = 0.95
_LABEL_BREAKS_ABOVE = 45  # A longer label of the colour bar takes two lines.
_LANDSCAPE_MARGIN = 0.08  # A landscape extends beyond the points by this fraction of their range.


class InfluenceDisplay:
    """Influence of points on the posterior mean of one parameter.

    The points lie in the plane of two features; their colour is the derivative of the parameter in the
    place or in the weight of the point. For mixtures of two features, the same derivative can be drawn over
    the whole plane. The colour scale is symmetric about zero and ends near the 95 % quantile of the points'
    absolute influence; arrows at the colour bar say that some values lie beyond its ends.

    Create it with :meth:`from_estimator`; the parameters are kept as attributes.

    Parameters
    ----------
    points : ndarray of shape (n_samples, 2)
        The points in the plane of the two features.

    influence : ndarray of shape (n_samples,)
        Influence of each point, in units of the parameter per unit of the feature (or per unit of weight).

    label : str
        Label of the colour bar, such as "d mean[0,x0] / d x0 of the point".

    xlabel, ylabel : str, default='x0', 'x1'
        Labels of the axes.

    xx0, xx1 : ndarray of shape (grid_resolution, grid_resolution), default=None
        Coordinates of a grid over the plane, as :func:`numpy.meshgrid` returns them.

    landscape : ndarray of shape (grid_resolution, grid_resolution), default=None
        Influence of a point at each place of the grid.

    Attributes
    ----------
    points_ : matplotlib PathCollection
        The points; those of the largest absolute influence are drawn last, on top.

    landscape_ : matplotlib QuadContourSet or None
        The filled contours, if there is a landscape.

    zero_line_ : matplotlib QuadContourSet or None
        The line on which the landscape is zero, if it has both signs.

    colorbar_ : matplotlib Colorbar
        The scale of the influence.

    ax_ : matplotlib Axes
        The axes drawn on.

    figure_ : matplotlib Figure
        Their figure.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_lrvb import LRVBGaussianMixture
    >>> from sklearn_lrvb.displays import InfluenceDisplay
    >>> X = np.random.default_rng(0).normal(size=(200, 2)) + np.repeat([[0, 0], [3, 1]], 100, axis=0)
    >>> mixture = LRVBGaussianMixture(n_components=2, random_state=0).fit(X)
    >>> display = InfluenceDisplay.from_estimator(mixture, X, kind="landscape", feature=1)
    >>> display.label
    'd mean[0,x1] / d x1 of the point'
    """

    def __init__(
        self,
        *,
        points: NDArray,
        influence: NDArray,
        label: str,
        xlabel: str = "x0",
        ylabel: str = "x1",
        xx0: NDArray | None = None,
        xx1: NDArray | None = None,
        landscape: NDArray | None = None,
    ) -> None:
        self.points = points
        self.influence = influence
        self.label = label
        self.xlabel = xlabel
        self.ylabel = ylabel
        self.xx0 = xx0
        self.xx1 = xx1
        self.landscape = landscape

    @classmethod
    def from_estimator(
        cls,
        estimator: LRVBGaussianMixture,
        X: ArrayLike,
        *,
        target: str = "means",
        component: int = 0,
        feature: int | tuple[int, int] = 0,
        kind: Literal["points", "landscape"] = "points",
        perturb: Literal["location", "weight"] = "location",
        along: int | None = None,
        features: tuple[int, int] = (0, 1),
        grid_resolution: int = 100,
        ax: Axes | None = None,
        vmax: float | None = None,
        cmap: str | Colormap = "coolwarm",
        scatter_kw: dict[str, Any] | None = None,
        contour_kw: dict[str, Any] | None = None,
    ) -> Self:
        """Compute and plot the influence on one parameter of a fitted mixture.

        Parameters
        ----------
        estimator : LRVBGaussianMixture
            A fitted mixture of at least two features.

        X : array-like of shape (n_samples, n_features)
            Any rows; each is treated as a training point of weight 1 that sits there.

        target : {'log_weights', 'weights', 'means', 'precisions', 'covariances'}, default='means'
            The attribute that has the parameter.

        component : int, default=0
            The parameter's component; ignored where all components share one precision matrix
            (``covariance_type='tied'``).

        feature : int or pair of int, default=0
            The parameter's feature. Of precisions and covariances an integer is the diagonal entry, and a
            pair any entry. Ignored for weights and for spherical precisions and covariances.

        kind : {'points', 'landscape'}, default='points'
            'points' colours the points by their influence. 'landscape' colours the plane, for mixtures of
            two features, and draws the points on it.

        perturb : {'location', 'weight'}, default='location'
            What changes about the point: where it is, or how often it counts.

        along : int, default=None
            With ``perturb="location"``, the feature along which the point moves. None means `feature`, or
            the first of the pair.

        features : pair of int, default=(0, 1)
            Columns that span the plot.

        grid_resolution : int, default=100
            Grid points along each feature of a landscape, at least 2.

        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure.

        vmax, cmap, scatter_kw, contour_kw
            As in :meth:`plot`.

        Returns
        -------
        display : InfluenceDisplay
            The display, drawn; its influence is in units of the parameter per unit of the feature (or per
            unit of weight).

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If `estimator` is not fitted.
        ValueError
            If an option is unknown or an index out of range, if a landscape is asked of a mixture that does
            not have two features, or if the fit is no strict optimum and so has no posterior covariance.
        """
        check_matplotlib_support(f"{cls.__name__}.from_estimator")
        check_is_fitted(estimator)
        if kind not in ("points", "landscape"):
            raise ValueError(f"kind must be 'points' or 'landscape', got {kind!r}.")
        n_features = estimator.n_features_in_
        names = feature_names(estimator)
        plane = checked_plane(features, names)
        if kind == "landscape" and n_features != 2:
            raise ValueError(
                f"kind='landscape' shows the influence function over a plane, but the mixture has "
                f"{n_features} features: use kind='points', or fit a mixture of two features."
            )
        influence_of, label = _influence_function(estimator, target, component, feature, perturb, along)
        display = cls(
            influence=influence_of(X),
            points=coordinates(X, plane),
            label=label,
            xlabel=names[plane[0]],
            ylabel=names[plane[1]],
        )
        if kind == "landscape":
            display.xx0, display.xx1 = _grid(display.points, grid_resolution)
            rows = np.column_stack([display.xx0.ravel(), display.xx1.ravel()])[:, np.argsort(plane)]
            display.landscape = influence_of(_like(X, rows)).reshape(display.xx0.shape)
        return display.plot(ax=ax, vmax=vmax, cmap=cmap, scatter_kw=scatter_kw, contour_kw=contour_kw)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        vmax: float | None = None,
        cmap: str | Colormap = "coolwarm",
        scatter_kw: dict[str, Any] | None = None,
        contour_kw: dict[str, Any] | None = None,
    ) -> Self:
        """Draw the influence again, on the same or other axes.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure.

        vmax : float, default=None
            End of the symmetric colour scale, positive, in units of the influence; rounded up to a round
            number. None means about the 95 % quantile of the points' absolute influence.

        cmap : str or matplotlib Colormap, default='coolwarm'
            Colours of the influence; a diverging map, whose middle is zero.

        scatter_kw, contour_kw : dict, default=None
            Keyword arguments of matplotlib's `scatter`, which draws the points, and of `contourf`, which
            draws a landscape.

        Returns
        -------
        display : InfluenceDisplay
            The display itself.

        Raises
        ------
        ValueError
            If `vmax` is not positive.
        """
        check_matplotlib_support(f"{type(self).__name__}.plot")
        if vmax is not None and not vmax > 0:
            raise ValueError(f"vmax must be positive, got {vmax!r}.")
        self.ax_ = given_or_new(ax)
        self.figure_ = self.ax_.figure
        self.landscape_ = self.zero_line_ = None
        ticks = _round_ticks(_largest_usual(self.influence) if vmax is None else vmax)
        if self.landscape is not None:
            self._draw_landscape(ticks, cmap, contour_kw or {})
        self._draw_points(ticks[-1], cmap, scatter_kw or {})
        self._draw_colorbar(ticks)
        self.ax_.set(xlabel=self.xlabel, ylabel=self.ylabel)
        return self

    def _draw_landscape(self, ticks, cmap, contour_kw):
        """Draw bands of colour around the ticks, so that zero is in the middle of one, and the zero line."""
        half = 0.5 * (ticks[1] - ticks[0])
        levels = np.append(ticks - half, ticks[-1] + half)
        style = {"levels": levels, "cmap": cmap, "extend": _beyond(self.landscape, levels[-1]), **contour_kw}
        grid = (self.xx0, self.xx1, self.landscape)
        self.landscape_ = self.ax_.contourf(*grid, **style)
        if self.landscape.min() < 0 < self.landscape.max():
            self.zero_line_ = self.ax_.contour(*grid, levels=[0.0], colors="black", linewidths=0.8)

    def _draw_points(self, limit, cmap, scatter_kw):
        """Draw the points in the colours of their influence; on a landscape, small and dark."""
        order = np.argsort(np.abs(self.influence), kind="stable")
        if self.landscape is None:
            style = {"c": self.influence[order], "cmap": cmap, "vmin": -limit, "vmax": limit}
            style |= {"s": 30, "edgecolors": "0.35", "linewidths": 0.5}
        else:
            style = {"s": 11, "color": "0.1", "edgecolors": "white", "linewidths": 0.5}
        self.points_ = self.ax_.scatter(*self.points[order].T, **{**style, **scatter_kw})

    def _draw_colorbar(self, ticks):
        """Draw the colour bar, with arrows on the sides where values lie beyond the scale."""
        if self.landscape is None:
            drawn, style = self.points_, {"extend": _beyond(self.influence, ticks[-1])}
        else:
            drawn, style = self.landscape_, {"ticks": ticks}
        label = (
            self.label if len(self.label) <= _LABEL_BREAKS_ABOVE else self.label.replace(" / d ", "\n/ d ")
        )
        self.colorbar_ = self.figure_.colorbar(drawn, ax=self.ax_, label=label, **style)


def _influence_function(estimator, target, component, feature, perturb, along):
    """The function from rows to the influence of each on one parameter, and its label."""
    index, name = parameter_entry(estimator, target, component, feature)
    check_perturbation(perturb)
    if perturb == "location":
        default = feature[0] if is_list(feature) else feature
        names = feature_names(estimator)
        along = checked_feature("along", default if along is None else along, names)
        label = f"d {name} / d {names[along]} of the point"
    elif along is not None:
        raise ValueError(f"along is where a point moves: leave it out with perturb='weight', got {along!r}.")
    else:
        label = f"d {name} / d weight of the point"

    def influence(rows):
        on_entry = estimator._influence_on(rows, target, index, perturb)
        return on_entry if along is None else on_entry[:, along]

    return influence, label


def _grid(points, resolution):
    """A grid over the range of the points and a margin, as `numpy.meshgrid` returns it."""
    if not resolution >= 2:
        raise ValueError(f"grid_resolution must be at least 2, got {resolution!r}.")
    low, high = points.min(axis=0), points.max(axis=0)
    margin = _LANDSCAPE_MARGIN * np.where(high > low, high - low, 1.0)
    return np.meshgrid(*np.linspace(low - margin, high + margin, resolution).T)


def _like(X, rows):
    """The rows as a data frame with the columns of X, if X is a data frame."""
    if not hasattr(X, "columns"):
        return rows
    return _get_adapter_from_container(X).create_container(rows, rows, columns=X.columns)


def _largest_usual(influence):
    """The absolute influence at which the colour scale ends, positive."""
    size = np.abs(influence)
    # The margin of 5 % keeps a plateau, such as 1 / N_k in a separate component, within the scale.
    return 1.05 * np.quantile(size, _SCALE_QUANTILE) or size.max() or 1.0


def _round_ticks(limit):
    """Round numbers, symmetric about zero and including it, up to ``limit`` or a little beyond."""
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(12, symmetric=True).tick_values(-limit, limit)


def _beyond(influence, limit):
    """On which sides values lie beyond the colour scale, in matplotlib's terms."""
    below, above = influence.min() < -limit, influence.max() > limit
    return {(False, False): "neither", (True, False): "min", (False, True): "max"}.get((below, above), "both")
