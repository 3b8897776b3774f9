"""ComponentDisplay: the components in the plane of two features, with credible regions of their means."""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy.stats import chi2
from sklearn.utils._optional_dependencies import check_matplotlib_support
from sklearn.utils.validation import check_is_fitted

from sklearn_lrvb.displays.axes import COLORS, MARKERS, given_or_new
from sklearn_lrvb.displays.selection import checked_plane, coordinates, feature_names

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike, NDArray

    from sklearn_lrvb import LRVBGaussianMixture

_COMPONENT_RADIUS = 2.0  # The ellipse of a component is drawn at this many of its standard deviations.


class ComponentDisplay:
    """Components of a mixture in the plane of two features, with credible regions of their means.

    Thin lines are the components, at two standard deviations; filled ellipses are the regions in which
    their means lie with probability `level`, from the LRVB covariance. The legend has the weights with
    their posterior standard deviations. Components that are empty are left out.

    Create it with :meth:`from_estimator`; the parameters are kept as attributes.

    Parameters
    ----------
    means : ndarray of shape (n_components, 2)
        Posterior means of the components' means, in units of the two features.

    covariances : ndarray of shape (n_components, 2, 2)
        Covariance matrices of the components.

    mean_covariances : ndarray of shape (n_components, 2, 2)
        LRVB posterior covariance matrices of the components' means.

    weights, weights_std : ndarray of shape (n_components,)
        Posterior means and LRVB standard deviations of the weights.

    counts : ndarray of shape (n_components,)
        Expected number of training rows in every component.

    points : ndarray of shape (n_samples, 2), default=None
        Rows to draw.

    labels : ndarray of shape (n_samples,), default=None
        The most probable component of each row; needed with `points`.

    xlabel, ylabel : str, default='x0', 'x1'
        Labels of the axes.

    Attributes
    ----------
    points_ : list of matplotlib PathCollection
        The rows, one collection for each component that has some.

    components_ : dict of int to matplotlib PathPatch
        The ellipses of the components shown, by the component's number.

    credible_regions_ : dict of int to matplotlib PathPatch
        The credible regions of their means, by the component's number.

    legend_ : matplotlib Legend
        Beside the axes where the figure's layout makes room for it, otherwise inside them.

    ax_ : matplotlib Axes
        The axes drawn on.

    figure_ : matplotlib Figure
        Their figure.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_lrvb import LRVBGaussianMixture
    >>> from sklearn_lrvb.displays import ComponentDisplay
    >>> X = np.random.default_rng(0).normal(size=(200, 2)) + np.repeat([[0, 0], [4, 1]], 100, axis=0)
    >>> mixture = LRVBGaussianMixture(n_components=4, random_state=0).fit(X)
    >>> display = ComponentDisplay.from_estimator(mixture, X)
    >>> len(display.credible_regions_)
    2
    """

    def __init__(
        self,
        *,
        means: NDArray,
        covariances: NDArray,
        mean_covariances: NDArray,
        weights: NDArray,
        weights_std: NDArray,
        counts: NDArray,
        points: NDArray | None = None,
        labels: NDArray | None = None,
        xlabel: str = "x0",
        ylabel: str = "x1",
    ) -> None:
        self.means = means
        self.covariances = covariances
        self.mean_covariances = mean_covariances
        self.weights = weights
        self.weights_std = weights_std
        self.counts = counts
        self.points = points
        self.labels = labels
        self.xlabel = xlabel
        self.ylabel = ylabel

    @classmethod
    def from_estimator(
        cls,
        estimator: LRVBGaussianMixture,
        X: ArrayLike | None = None,
        *,
        features: tuple[int, int] = (0, 1),
        level: float = 0.95,
        min_count: float = 0.5,
        ax: Axes | None = None,
        scatter_kw: dict[str, Any] | None = None,
    ) -> Self:
        """Compute and plot the components of a fitted mixture.

        Parameters
        ----------
        estimator : LRVBGaussianMixture
            A fitted mixture of any covariance type, of at least two features.

        X : array-like of shape (n_samples, n_features), default=None
            Rows to draw in the colour of their most probable component.

        features : pair of int, default=(0, 1)
            Columns that span the plot. The ellipses are those of the marginal distributions of these two.

        level : float, default=0.95
            Posterior probability of the credible regions, between 0 and 1.

        min_count : float, default=0.5
            Components with fewer expected training rows than this are not drawn.

        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure.

        scatter_kw : dict, default=None
            Keyword arguments of matplotlib's `scatter`, which draws the rows.

        Returns
        -------
        display : ComponentDisplay
            The display, drawn.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If `estimator` is not fitted.
        ValueError
            If `features`, `level` or `X` are invalid, or the fit is no strict optimum and so has no posterior
            covariance.
        """
        check_matplotlib_support(f"{cls.__name__}.from_estimator")
        check_is_fitted(estimator)
        n_components, n_features = estimator.means_.shape
        plane = checked_plane(features, feature_names(estimator))
        labels = None if X is None else estimator.predict(X)
        covariance = estimator.get_posterior_covariance("means")
        covariance = covariance.reshape(n_components, n_features, n_components, n_features)
        own = np.einsum("kpkq->kpq", covariance)
        names = feature_names(estimator)
        display = cls(
            means=estimator.means_[:, plane],
            covariances=_component_covariances(estimator)[:, plane][:, :, plane],
            mean_covariances=own[:, plane][:, :, plane],
            weights=estimator.weights_,
            weights_std=estimator.weights_std_,
            counts=estimator.mean_precision_ - estimator.mean_precision_prior_,
            points=None if X is None else coordinates(X, plane),
            labels=labels,
            xlabel=str(names[plane[0]]),
            ylabel=str(names[plane[1]]),
        )
        return display.plot(ax=ax, level=level, min_count=min_count, scatter_kw=scatter_kw)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        level: float = 0.95,
        min_count: float = 0.5,
        scatter_kw: dict[str, Any] | None = None,
    ) -> Self:
        """Draw the components again, on the same or other axes.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure.

        level : float, default=0.95
            Posterior probability of the credible regions, between 0 and 1.

        min_count : float, default=0.5
            Components with fewer expected training rows than this are not drawn.

        scatter_kw : dict, default=None
            Keyword arguments of matplotlib's `scatter`, which draws the rows.

        Returns
        -------
        display : ComponentDisplay
            The display itself.

        Raises
        ------
        ValueError
            If `level` is not between 0 and 1.
        """
        check_matplotlib_support(f"{type(self).__name__}.plot")
        if not isinstance(level, Real) or not 0 < level < 1:
            raise ValueError(f"level must lie between 0 and 1, got {level!r}.")
        self.ax_ = given_or_new(ax)
        self.figure_ = self.ax_.figure
        empty = self.counts < min_count
        styles = _styles(empty)
        self._draw_points(styles, scatter_kw or {})
        self._draw_components(np.flatnonzero(~empty), styles, np.sqrt(chi2.ppf(level, df=2)))
        self.ax_.set(xlabel=self.xlabel, ylabel=self.ylabel)
        self.legend_ = self._draw_legend(styles, level)
        return self

    def _draw_points(self, styles, scatter_kw):
        """Draw the rows in the colours of their components."""
        self.points_ = []
        if self.points is None:
            return
        for component in np.unique(self.labels):
            style = {"s": 14, "alpha": 0.5, "linewidths": 0, **styles[component], **scatter_kw}
            self.points_.append(self.ax_.scatter(*self.points[self.labels == component].T, **style))

    def _draw_components(self, shown, styles, radius):
        """Draw the ellipses of the components, and those of their means at ``radius`` posterior sds."""
        self.components_, self.credible_regions_ = {}, {}
        for k in shown.tolist():
            color = styles[k]["color"]
            outline = {"fill": False, "edgecolor": color, "linewidth": 1.2, "zorder": 2}
            filled = {"facecolor": color, "edgecolor": "black", "linewidth": 0.8, "alpha": 0.9, "zorder": 3}
            component = _ellipse(self.means[k], self.covariances[k], _COMPONENT_RADIUS, **outline)
            region = _ellipse(self.means[k], self.mean_covariances[k], radius, **filled)
            self.components_[k] = self.ax_.add_patch(component)
            self.credible_regions_[k] = self.ax_.add_patch(region)
        self.ax_.autoscale_view()

    def _draw_legend(self, styles, level):
        """Draw the legend: each component's weight, and what the two kinds of ellipses are."""
        from matplotlib.lines import Line2D

        weights = [
            Line2D([], [], linestyle="none", **styles[k], label=self._weight_label(k))
            for k in self.components_
        ]
        outline = Line2D([], [], color="0.3", linewidth=1.2, label=f"{_COMPONENT_RADIUS:g} sd of a component")
        region = Line2D(
            [], [], linestyle="none", marker="o", markersize=8, color="0.5", markeredgecolor="black"
        )
        region.set_label(f"{100 * level:g} % region of its mean")
        beside = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0), "frameon": False}
        makes_room = self.figure_.get_layout_engine() is not None
        handles = [*weights, outline, region]
        return self.ax_.legend(handles=handles, **(beside if makes_room else {"loc": "best"}))

    def _weight_label(self, component):
        """The weight of a component with its standard deviation, as text."""
        weight, std = self.weights[component], self.weights_std[component]
        return f"{component}: weight {weight:.3f} ± {std:.3f}"


def _styles(empty):
    """Colour and marker of every component; empty components take theirs last."""
    ranks = np.argsort(np.argsort(empty, kind="stable"))
    return [{"color": COLORS[rank % len(COLORS)], "marker": MARKERS[rank % len(MARKERS)]} for rank in ranks]


def _ellipse(mean, covariance, radius, **style):
    """The ellipse at ``radius`` standard deviations of a bivariate normal distribution."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    circle = Path.unit_circle()
    vertices = mean + radius * circle.vertices @ _lower_root(covariance).T
    return PathPatch(Path(vertices, circle.codes), **style)


def _lower_root(covariance):
    """Cholesky factor, (2, 2), accurate for both features even if their units differ by many orders."""
    (variance, shared), (_, other) = covariance
    slope = shared / variance
    left = max(other - slope * shared, 0.0)  # Round-off can make this variance negative.
    return np.sqrt(variance) * np.array([[1.0, 0.0], [slope, np.sqrt(left / variance)]])


def _component_covariances(estimator):
    """`covariances_` of any covariance type as one matrix for each component, (K, P, P)."""
    n_components, n_features = estimator.means_.shape
    covariances = estimator.covariances_
    if estimator.covariance_type in ("full", "tied"):
        return np.broadcast_to(covariances, (n_components, n_features, n_features))
    by_feature = covariances.reshape(n_components, -1)  # A sphere has one variance for all features.
    return by_feature[:, :, None] * np.eye(n_features)
