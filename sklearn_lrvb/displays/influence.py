"""InfluenceDisplay: how much each point, or a point at any place of the plane, moves a posterior mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_lrvb.answers.influence import influence_of_rows
from sklearn_lrvb.displays import drawing, selection
from sklearn_lrvb.estimators.arguments import check_perturbation, table_like
from sklearn_lrvb.estimators.gaussian_mixture import LRVBGaussianMixture
from sklearn_lrvb.rows import require_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap

_MOST_NAMED = 5  # The rows of the largest influence are named.
# Where the name of a row stands, from its point: the first place that is free.
_SIDES = [(x, y, ha, va) for x, ha in ((5, "left"), (-5, "right")) for y, va in ((5, "bottom"), (-5, "top"))]


@dataclass(kw_only=True, eq=False, repr=False)
class InfluenceDisplay(drawing.Display):
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
                'correlations', 'covariances', 'scales', 'tails', 'log_tails', 'mean_precision_prior', \
                'covariance_prior'}, default='means'
            The attribute that has the parameter.

        component : int or 'noise', default=0
            The parameter's component; ignored where all components share one precision matrix
            (``covariance_type`` 'tied' or 'tied_diag'). 'noise' is for the weight of noise.

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
        selection.check_drawn(cls, estimator, LRVBGaussianMixture)
        if kind not in ("points", "landscape"):
            raise ValueError(f"kind must be 'points' or 'landscape', got {kind!r}.")
        names = estimator._feature_names
        chosen = selection.checked_features(features, names, 2)
        if kind == "landscape" and len(chosen) < len(names):
            raise ValueError(
                f"kind='landscape' shows the influence function over all features, at most two, but the "
                f"mixture has {len(names)} features and {len(chosen)} of them span the plot: use "
                "kind='points', or fit a mixture of two features."
            )
        if not isinstance(grid_resolution, Integral) or grid_resolution < 2:
            raise ValueError(f"grid_resolution must be an integer, at least 2, got {grid_resolution!r}.")
        require_table(X, cls.__name__)
        index, name = selection.parameter_entry(estimator, target, component, feature)
        check_perturbation(perturb)
        label = f"change of {name} per copy of the row"
        if perturb == "location":
            default = next(iter(feature)) if selection.is_list(feature) else feature
            along = selection.checked_feature("along", default if along is None else along, names)
            label = f"change of {name} per unit of {names[along]}"
        elif along is not None:
            raise ValueError(
                f"along is where a point moves: leave it out with perturb='weight', got {along!r}."
            )

        uncertainty = estimator._uncertainty
        combination = np.zeros((1, uncertainty.targets[target].size))
        combination[0, uncertainty.targets[target].flat_indices()[index]] = 1.0

        def influence_of(rows):
            rows = estimator._given_rows(rows, None, uncertainty.fitted)
            with estimator._tracked("influence") as tracked:
                functions = uncertainty.influence_functions(target, combination, tracked=tracked)
                on_entry = influence_of_rows(rows, functions, perturb, np.array(0), tracked=tracked)
            return on_entry if along is None else on_entry[:, along]

        influence, points = influence_of(X), selection.coordinates(estimator, X, chosen)
        # A point without both values has no place in a plane, and none moves along a feature that is missing.
        has_place = ~np.isnan(points).all(axis=1) | (len(chosen) == 1)
        is_shown = has_place & ~np.isnan(influence)
        points = points[is_shown]
        if np.isnan(points).all(axis=0).any():
            raise ValueError("No row of X has values of all features that span the plot: choose others.")
        row_labels = X.index if hasattr(X, "iloc") else range(len(is_shown))
        display = cls(
            points=points,
            influence=influence[is_shown],
            label=label,
            xlabel=names[chosen[0]],
            ylabel=names[chosen[1]] if len(chosen) == 2 else label,
            row_names=[str(row_labels[k]) for k in np.flatnonzero(is_shown)],
            n_left_out=int(np.sum(~is_shown)),
        )
        if kind == "landscape":
            low, high = np.nanmin(points, axis=0), np.nanmax(points, axis=0)
            margin = 0.08 * np.where(high > low, high - low, 1.0)
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

        self._take(ax)
        self.landscape_ = self.zero_line_ = self.colorbar_ = None
        if vmax is None:
            size = np.abs(self.influence)
            # Tails are heavy: up to the largest value, nearly all others would be shown as zero.
            # The margin of 5 % keeps a plateau, such as 1 / N_k in a separate component, within the scale.
            vmax = 1.05 * np.quantile(size, 0.95) or size.max() or 1.0
        ticks = MaxNLocator(12, symmetric=True).tick_values(-vmax, vmax)
        if self.points.shape[1] == 1:  # The influence itself is the y axis.
            places, ylabel = np.column_stack([self.points, self.influence]), self.label
            self.zero_line_ = self.ax_.axhline(0.0, color="black", linewidth=0.8, zorder=0)
            if self.landscape is not None:
                (self.landscape_,) = self.ax_.plot(self.xx0, self.landscape, color="0.5", linewidth=1.2)
        else:
            places, ylabel = self.points, self.ylabel
            if self.landscape is not None:
                self._draw_landscape(ticks, cmap, contour_kw or {})
        self._draw_points(places, ticks, cmap, scatter_kw or {})
        drawing.label_axes(self.ax_, self.xlabel, ylabel)
        self._name_points(places)
        return self

    def __repr__(self) -> str:
        drawn = "points" if self.landscape is None else "points and a landscape"
        features = [self.xlabel, self.ylabel][: self.points.shape[1]]
        where = f"{len(self.points)} {drawn} over {selection.in_words(features)}"
        return f"{type(self).__name__}: {self.label}; {where}"

    def _draw_landscape(self, ticks, cmap, contour_kw):
        """Draw bands of colour around the ticks, so that zero is in the middle of one, and the zero line."""
        half = 0.5 * (ticks[1] - ticks[0])
        levels = np.append(ticks - half, ticks[-1] + half)
        style = {"levels": levels, "cmap": cmap, "extend": _beyond(self.landscape, levels[-1]), **contour_kw}
        grid, low, high = (self.xx0, self.xx1, self.landscape), self.landscape.min(), self.landscape.max()
        self.landscape_ = self.ax_.contourf(*grid, **style)
        # Thin lines between the bands, dashed where the influence is negative, show the sign in print.
        edges = levels[(levels > low) & (levels < high)]
        if edges.size:
            self.ax_.contour(*grid, levels=edges, colors="0.35", linewidths=0.6, negative_linestyles="dashed")
        if low < 0 < high:
            self.zero_line_ = self.ax_.contour(*grid, levels=[0.0], colors="black", linewidths=0.8)

    def _draw_points(self, places, ticks, cmap, scatter_kw):
        """Draw the points in the colours of their influence, or on a landscape small and dark; colour bar."""
        from matplotlib.markers import MarkerStyle

        order, n_points = np.argsort(np.abs(self.influence), kind="stable"), len(places)
        places, influence = places[order], self.influence[order]
        style = {"s": 11, "color": "0.1", "edgecolor": "white", "linewidth": 0.5}
        if self.landscape is None:
            edge = 0.5 if n_points <= 2000 else 0.0  # Dark edges of many would hide their colours.
            style = {"s": drawing.point_size(30.0, n_points), "edgecolor": "0.35", "linewidth": edge}
            style |= {"c": influence, "cmap": cmap, "vmin": ticks[0], "vmax": ticks[-1]}
        self.points_, self.ticks_ = drawing.scatter_rows(self.ax_, places, style, scatter_kw)
        if self.points.shape[1] == 1:
            return
        scale, options = self.landscape_, {"ticks": ticks}
        if self.landscape is None:
            scale, options = self.points_, {"extend": _beyond(influence, ticks[-1])}
        label = drawing.wrapped(self.label, 3.2)
        self.colorbar_ = self.figure_.colorbar(scale, ax=self.ax_, label=label, **options)
        if self.landscape is None and "marker" not in scatter_kw:
            markers = MarkerStyle("^"), MarkerStyle("v")
            up, down = (one.get_path().transformed(one.get_transform()) for one in markers)
            is_negative = influence[~np.isnan(places).any(axis=1)] < 0
            self.points_.set_paths([down if below else up for below in is_negative.tolist()])
            signs = "$\\blacktriangle$ positive\n$\\blacktriangledown$ negative"
            below = 20 if self.colorbar_.extend in ("min", "both") else 4  # An arrow may be in the way.
            self.colorbar_.ax.set_xlabel(signs, fontsize="small", labelpad=below)

    def _name_points(self, places):
        """Name the points of the largest influence, where there is room, and list them in the title."""
        size = np.abs(self.influence)
        leading = [k for k in np.argsort(-size, kind="stable")[:_MOST_NAMED].tolist() if size[k] > 0.0]
        self.names_, taken, listed = {}, [], []
        self.ax_.autoscale_view()
        for k in leading:
            name = str(k) if self.row_names is None else self.row_names[k]
            value = f"{self.influence[k]:.2g}".replace("-", "\N{MINUS SIGN}")
            listed.append(f"{name} ({value})")
            if not np.isnan(places[k]).any():
                self._write_name(name, places[k], taken)
        lines = [f"largest influence: {', '.join(listed)}"] if listed else []
        n_ticks = int(np.isnan(self.points).any(axis=1).sum())
        if n_ticks or self.n_left_out:
            lines.append(f"a value is missing: {n_ticks} at the edge, {self.n_left_out} not drawn")
        width = drawing.inches(self.ax_)[0]
        self.ax_.set_title("\n".join(drawing.wrapped(line, width) for line in lines), fontsize="small")

    def _write_name(self, name, place, taken):
        """Write a name beside a point, on the first side that is free, and add its box to those taken."""
        axes = self.ax_.bbox
        for *offset, ha, va in _SIDES:
            style = {"ha": ha, "va": va, "fontsize": "small", "zorder": 6}
            text = drawing.write_beside(self.ax_, drawing.no_formula(name), place, offset, **style)
            box = text.get_window_extent()
            if not box.count_overlaps(taken) and np.all(box.min >= axes.min) and np.all(box.max <= axes.max):
                taken.append(box)
                self.names_[name] = text
                return
            text.remove()


def _beyond(influence, limit):
    """On which sides values lie beyond the colour scale, in matplotlib's terms."""
    sides = [["neither", "max"], ["min", "both"]]
    return sides[int(influence.min() < -limit)][int(influence.max() > limit)]
