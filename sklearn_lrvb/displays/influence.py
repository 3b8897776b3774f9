"""InfluenceDisplay: how much each point, or a point at any place of the plane, moves a posterior mean."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from sklearn_lrvb.displays.axes import (
    given_or_new,
    label_axes,
    no_formula,
    panel_width,
    point_size,
    scatter_rows,
    wrapped,
    write_beside,
)
from sklearn_lrvb.displays.selection import (
    check_drawn,
    checked_feature,
    checked_features,
    coordinates,
    in_words,
    is_list,
    parameter_entry,
    row_names,
)
from sklearn_lrvb.estimators.arguments import check_perturbation, table_like
from sklearn_lrvb.estimators.gaussian_mixture import LRVBGaussianMixture
from sklearn_lrvb.rows import require_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from numpy.typing import ArrayLike, NDArray

# Influence has heavy tails: a colour scale up to the largest value would show nearly all others as zero.
_SCALE_QUANTILE = 0.95
_LABEL_INCHES = 3.2  # Longer labels of the colour bar are broken.
_LANDSCAPE_MARGIN = 0.08  # A landscape extends beyond the points by this fraction of their range.
_MOST_EDGED = 2000  # More points have no dark edges, which would hide their colours.
_MOST_NAMED = 5  # The rows of the largest influence are named.
_SMALL_PRINT = (6.0, 10.0)  # Width of a character and height of a line of names of rows, in points.
# Where the name of a row stands, from its point: the first place that is free.
_SIDES = [(x, y, ha, va) for x, ha in ((5, "left"), (-5, "right")) for y, va in ((5, "bottom"), (-5, "top"))]


@dataclass(kw_only=True, eq=False, repr=False)
class InfluenceDisplay:
    """Influence of points on the posterior mean of one parameter.

    The points lie in the plane of two features; their colour is the derivative of the parameter in the
    place of the point, that is the change per unit of a feature, or in its weight, that is the change if the
    row counts once more. For mixtures of two features, the same derivative can be drawn over
    the whole plane. Over one feature, the derivative is the y axis.

    The rows of the largest absolute influence, five at most, have their names: their labels in the index of a
    pandas data frame, otherwise their numbers. The title lists them with their influence. A row of which one
    of the two values is missing is at the edge, at the value that is there.

    The colour scale is symmetric about zero and ends near the 95 % quantile of the points' absolute
    influence; arrows at the colour bar say that some values lie beyond its ends. The sign is also legible
    without colours: points of positive influence are triangles that point up, those of negative influence
    point down, and contour lines of negative influence are dashed.

    Create it with :meth:`from_estimator`; the parameters are kept as attributes.

    Parameters
    ----------
    points : ndarray of shape (n_samples, 2) or (n_samples, 1)
        The points in the plane of the two features, or over one; NaN where a value is missing.

    influence : ndarray of shape (n_samples,)
        Influence of each point, in units of the parameter per unit of the feature (or per unit of weight).

    label : str
        Label of the colour bar, such as "change of mean[0,x0] per unit of x0".

    xlabel, ylabel : str, default='x0', 'x1'
        Labels of the axes.

    xx0, xx1 : ndarray of shape (grid_resolution, grid_resolution), default=None
        Coordinates of a grid over the plane, as :func:`numpy.meshgrid` returns them. Over one feature `xx0`
        has shape (grid_resolution,), and there is no `xx1`.

    landscape : ndarray of the shape of `xx0`, default=None
        Influence of a point at each place of the grid.

    row_names : list of str, default=None
        Names of the points; None means their numbers.

    n_left_out : int, default=0
        Number of rows that have no place in the picture or no influence, because values are missing.

    Attributes
    ----------
    points_ : matplotlib PathCollection
        The points; those of the largest absolute influence are drawn last, on top.

    ticks_ : list of matplotlib PathCollection
        Points at the edges, since one of their two values is missing.

    names_ : dict of str to matplotlib Text
        The names of the points of the largest absolute influence, the largest first.

    landscape_ : matplotlib QuadContourSet or Line2D, or None
        The filled contours, or the line over one feature, if there is a landscape.

    zero_line_ : matplotlib QuadContourSet or Line2D, or None
        The line on which the landscape is zero, if it has both signs; over one feature always.

    colorbar_ : matplotlib Colorbar or None
        The scale of the influence; None over one feature, where the y axis is the scale.

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
    >>> display
    InfluenceDisplay: change of mean[0,x1] per unit of x1; 200 points and a landscape over x0 and x1
    """

    points: NDArray
    influence: NDArray
    label: str
    xlabel: str = "x0"
    ylabel: str = "x1"
    xx0: NDArray | None = None
    xx1: NDArray | None = None
    landscape: NDArray | None = None
    row_names: list[str] | None = None
    n_left_out: int = 0

    @classmethod
    def from_estimator(
        cls,
        estimator: LRVBGaussianMixture,
        X: ArrayLike,
        *,
        target: str = "means",
        component: int | Literal["noise"] = 0,
        feature: int | str | tuple[int | str, int | str] = 0,
        kind: Literal["points", "landscape"] = "points",
        perturb: Literal["location", "weight"] = "location",
        along: int | str | None = None,
        features: Sequence[int | str] | None = None,
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
            A fitted mixture.

        X : array-like of shape (n_samples, n_features)
            Any rows; each is treated as a training point of weight 1 that sits there.

        target : {'log_weights', 'weights', 'means', 'precisions', 'standard_deviations', \
                'correlations', 'covariances', 'scales', 'tails', 'log_tails'}, default='means'
            The attribute that has the parameter.

        component : int or 'noise', default=0
            The parameter's component; ignored where all components share one precision matrix
            (``covariance_type='tied'``). 'noise' is for the weight of noise.

        feature : int, str or pair of such, default=0
            The parameter's feature, by number or by name. Of precisions and covariances one feature stands
            for the diagonal entry, and a pair for any. Ignored for weights and for spherical precisions and
            covariances.

        kind : {'points', 'landscape'}, default='points'
            'points' colours the points by their influence. 'landscape' shows the influence of a point at any
            place, for mixtures of two features by colours of the plane, and of one by a line; and the points.

        perturb : {'location', 'weight'}, default='location'
            What changes about the point: where it is, or how often it counts.

        along : int or str, default=None
            With ``perturb="location"``, the feature along which the point moves, by number or by name. None
            means `feature`, or the first of the pair.

        features : list of int or str, default=None
            The two features that span the plot, by number or by name, or one, over which the influence is the
            y axis. None means the first two, or the only one.

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
            If an option is unknown or an index out of range, if a landscape is asked of a mixture of more
            than two features or over one of two, or if the fit is no strict optimum and so has no posterior
            covariance.
        """
        check_drawn(cls, estimator, LRVBGaussianMixture)
        if kind not in ("points", "landscape"):
            raise ValueError(f"kind must be 'points' or 'landscape', got {kind!r}.")
        names = estimator._feature_names
        chosen = checked_features(range(min(2, len(names))) if features is None else features, names, 2)
        if kind == "landscape" and len(chosen) < len(names):
            raise ValueError(
                f"kind='landscape' shows the influence function over all features, at most two, but the "
                f"mixture has {len(names)} features and {len(chosen)} of them span the plot: use "
                "kind='points', or fit a mixture of two features."
            )
        if not isinstance(grid_resolution, Integral) or grid_resolution < 2:
            raise ValueError(f"grid_resolution must be an integer, at least 2, got {grid_resolution!r}.")
        require_table(X, cls.__name__)
        influence_of, label = _influence_function(estimator, target, component, feature, perturb, along)
        influence, points = influence_of(X), coordinates(estimator, X, chosen)
        # A point without both values has no place in a plane, and none moves along a feature that is missing.
        has_place = ~np.isnan(points).all(axis=1) | (len(chosen) == 1)
        is_shown = has_place & ~np.isnan(influence)
        if np.isnan(points[is_shown]).all(axis=0).any():
            raise ValueError("No row of X has values of all features that span the plot: choose others.")
        xlabel, ylabel = [*(names[p] for p in chosen), label][:2]
        display = cls(
            points=points[is_shown],
            influence=influence[is_shown],
            label=label,
            xlabel=xlabel,
            ylabel=ylabel,
            row_names=row_names(X, is_shown),
            n_left_out=int(np.sum(~is_shown)),
        )
        if kind == "landscape":
            low, high = np.nanmin(display.points, axis=0), np.nanmax(display.points, axis=0)
            margin = _LANDSCAPE_MARGIN * np.where(high > low, high - low, 1.0)
            places = np.meshgrid(*np.linspace(low - margin, high + margin, grid_resolution).T)
            rows = np.column_stack([axis.ravel() for axis in places])[:, np.argsort(chosen)]
            landscape = influence_of(table_like(X, rows, keeps_index=False))
            display.landscape = landscape.reshape(places[0].shape)
            display.xx0, display.xx1 = [*places, None][:2]
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
            If `vmax` is not positive and finite.
        """
        if vmax is not None and not (isinstance(vmax, Real) and 0 < vmax < np.inf):
            raise ValueError(f"vmax must be positive and finite, got {vmax!r}.")
        from matplotlib.ticker import MaxNLocator

        self.ax_ = given_or_new(ax)
        self.figure_ = self.ax_.figure
        self.landscape_ = self.zero_line_ = self.colorbar_ = None
        scatter_kw, contour_kw = scatter_kw or {}, contour_kw or {}
        if vmax is None:
            size = np.abs(self.influence)
            # The margin of 5 % keeps a plateau, such as 1 / N_k in a separate component, within the scale.
            vmax = 1.05 * np.quantile(size, _SCALE_QUANTILE) or size.max() or 1.0
        ticks = MaxNLocator(12, symmetric=True).tick_values(-vmax, vmax)
        places, labels = self.points, [self.xlabel, self.ylabel]
        if self.points.shape[1] == 1:  # The influence itself is the y axis.
            places, labels = np.column_stack([self.points, self.influence]), [self.xlabel, self.label]
            self.zero_line_ = self.ax_.axhline(0.0, color="black", linewidth=0.8, zorder=0)
            if self.landscape is not None:
                (self.landscape_,) = self.ax_.plot(self.xx0, self.landscape, color="0.5", linewidth=1.2)
        elif self.landscape is not None:
            self._draw_landscape(ticks, cmap, contour_kw)
        self._draw_points(places, ticks[-1], cmap, scatter_kw)
        if self.points.shape[1] == 2:
            self._draw_colorbar(ticks, scatter_kw)
        label_axes(self.ax_, *labels)
        self._name_points(places)
        return self

    def __repr__(self) -> str:
        drawn = "points" if self.landscape is None else "points and a landscape"
        features = [self.xlabel, self.ylabel][: self.points.shape[1]]
        where = f"{len(self.points)} {drawn} over {in_words(features)}"
        return f"{type(self).__name__}: {self.label}; {where}"

    def _draw_landscape(self, ticks, cmap, contour_kw):
        """Draw bands of colour around the ticks, so that zero is in the middle of one, and the zero line."""
        half = 0.5 * (ticks[1] - ticks[0])
        levels = np.append(ticks - half, ticks[-1] + half)
        style = {"levels": levels, "cmap": cmap, "extend": _beyond(self.landscape, levels[-1]), **contour_kw}
        grid = (self.xx0, self.xx1, self.landscape)
        self.landscape_ = self.ax_.contourf(*grid, **style)
        # Thin lines between the bands, dashed where the influence is negative, show the sign in print.
        edges = levels[(levels > self.landscape.min()) & (levels < self.landscape.max())]
        if edges.size:
            self.ax_.contour(*grid, levels=edges, colors="0.35", linewidths=0.6, negative_linestyles="dashed")
        if self.landscape.min() < 0 < self.landscape.max():
            self.zero_line_ = self.ax_.contour(*grid, levels=[0.0], colors="black", linewidths=0.8)

    def _draw_points(self, places, limit, cmap, scatter_kw):
        """Draw the points in the colours of their influence; on a landscape, small and dark."""
        from matplotlib.markers import MarkerStyle

        order, n_points = np.argsort(np.abs(self.influence), kind="stable"), len(places)
        if self.landscape is None:
            style = {"c": self.influence[order], "cmap": cmap, "vmin": -limit, "vmax": limit}
            edge = 0.5 if n_points <= _MOST_EDGED else 0.0
            style |= {"s": point_size(30.0, n_points), "edgecolor": "0.35", "linewidth": edge}
        else:
            style = {"s": 11, "color": "0.1", "edgecolor": "white", "linewidth": 0.5}
        self.points_, self.ticks_ = scatter_rows(self.ax_, places[order], style, scatter_kw)
        if self._shows_sign(scatter_kw):
            markers = MarkerStyle("^"), MarkerStyle("v")
            up, down = (one.get_path().transformed(one.get_transform()) for one in markers)
            signs = self.influence[order][~np.isnan(places[order]).any(axis=1)] < 0
            self.points_.set_paths([down if is_below else up for is_below in signs.tolist()])

    def _name_points(self, places):
        """Name the points of the largest influence, where there is room, and list them in the title."""
        size = np.abs(self.influence)
        leading = np.argsort(-size, kind="stable")[:_MOST_NAMED]
        leading = leading[size[leading] > 0.0].tolist()
        names = [str(k) if self.row_names is None else self.row_names[k] for k in leading]
        self.names_, taken = {}, []
        self.ax_.autoscale_view()
        for name, place in zip(names, places[leading], strict=True):
            box = None if np.isnan(place).any() else self._free_box(name, place, taken)
            if box is not None:
                taken.append(box)
        values = [f"{self.influence[k]:.2g}".replace("-", "\N{MINUS SIGN}") for k in leading]
        listed = ", ".join(f"{name} ({value})" for name, value in zip(names, values, strict=True))
        lines = [f"largest influence: {listed}"] if values else []
        n_ticks = int(np.isnan(self.points).any(axis=1).sum())
        if n_ticks or self.n_left_out:
            lines.append(f"a value is missing: {n_ticks} at the edge, {self.n_left_out} not drawn")
        inches = panel_width(self.ax_)
        self.ax_.set_title("\n".join(wrapped(line, inches) for line in lines), fontsize="small")

    def _free_box(self, name, place, taken):
        """Write a name beside a point, on the first side that is free: its box in points, or None."""
        unit = 72.0 / self.figure_.dpi
        at, edges = self.ax_.transData.transform(place) * unit, self.ax_.bbox.get_points() * unit
        extent = np.array([len(name) * _SMALL_PRINT[0], _SMALL_PRINT[1]])
        for *offset, ha, va in _SIDES:
            low = at + offset - extent * [ha == "right", va == "top"]
            is_inside = np.all(low >= edges[0]) and np.all(low + extent <= edges[1])
            if is_inside and all(np.any((low > end) | (low + extent < start)) for start, end in taken):
                style = {"ha": ha, "va": va, "fontsize": "small", "zorder": 6}
                self.names_[name] = write_beside(self.ax_, no_formula(name), place, offset, **style)
                return low, low + extent
        return None

    def _shows_sign(self, scatter_kw):
        """Whether the points' markers show the sign of their influence."""
        return self.points.shape[1] == 2 and self.landscape is None and "marker" not in scatter_kw

    def _draw_colorbar(self, ticks, scatter_kw):
        """Draw the colour bar, with arrows on the sides where values lie beyond the scale."""
        drawn, style = self.landscape_, {"ticks": ticks}
        if self.landscape is None:
            drawn, style = self.points_, {"extend": _beyond(self.influence, ticks[-1])}
        label = wrapped(self.label, _LABEL_INCHES)
        self.colorbar_ = self.figure_.colorbar(drawn, ax=self.ax_, label=label, **style)
        if self._shows_sign(scatter_kw):
            signs = "$\\blacktriangle$ positive\n$\\blacktriangledown$ negative"
            below = 20 if self.colorbar_.extend in ("min", "both") else 4  # An arrow may be in the way.
            self.colorbar_.ax.set_xlabel(signs, fontsize="small", labelpad=below)


def _influence_function(estimator, target, component, feature, perturb, along):
    """The function from rows to the influence of each on one parameter, and its label."""
    index, name = parameter_entry(estimator, target, component, feature)
    check_perturbation(perturb)
    if perturb == "location":
        default = next(iter(feature)) if is_list(feature) else feature
        names = estimator._feature_names
        along = checked_feature("along", default if along is None else along, names)
        label = f"change of {name} per unit of {names[along]}"
    elif along is not None:
        raise ValueError(f"along is where a point moves: leave it out with perturb='weight', got {along!r}.")
    else:
        label = f"change of {name} per copy of the row"

    def influence(rows):
        on_entry = estimator._influence_on(rows, target, index, perturb)
        return on_entry if along is None else on_entry[:, along]

    return influence, label


def _beyond(influence, limit):
    """On which sides values lie beyond the colour scale, in matplotlib's terms."""
    beyond = bool(influence.min() < -limit), bool(influence.max() > limit)
    return {(True, True): "both", (True, False): "min", (False, True): "max"}.get(beyond, "neither")
