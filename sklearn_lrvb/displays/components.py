"""ComponentDisplay: the components over some features, with credible regions of their means."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import chi2, norm, t

from sklearn_lrvb.displays import drawing, selection
from sklearn_lrvb.estimators.gaussian_mixture import LRVBGaussianMixture
from sklearn_lrvb.estimators.posterior import Posterior
from sklearn_lrvb.reports import require_interval
from sklearn_lrvb.rows import require_table
from sklearn_lrvb.rows.given_rows import checked_weights

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COMPONENT_RADIUS = 2.0  # The ellipse of a component is drawn at this many standard deviations or scales.
_MOST_FEATURES = 12  # More make the panels of a corner plot too small to read.
_NOISE: dict[str, Any] = {"marker": "x", "color": "0.55", "linestyle": "none"}
_REGION: dict[str, Any] = {"markersize": 8, "color": "0.5", "markeredgecolor": "black", "linestyle": "none"}
_TICK: dict[str, Any] = {"marker": "|", "markersize": 9, "color": "0.3", "linestyle": "none"}
_TEXT: dict[str, Any] = {"linestyle": "none"}  # Of entries of the legend that are words alone.
_NUMBER: dict[str, Any] = {"fontsize": "small", "fontweight": "bold", "zorder": 5}


@dataclass(kw_only=True, eq=False, repr=False)
class ComponentDisplay(drawing.Display):
    """Components of a mixture over one, two or more features, with credible regions of their means.

    In the plane of two features, thin lines are the components, at two standard deviations (of Student's t,
    whose standard deviation may be infinite, at two scales: twice the ellipse of its scale matrix); filled
    ellipses are the regions in which their means lie with probability `interval`, from the covariance of the
    posterior (:meth:`LRVBGaussianMixture.posterior`).
    Over one feature, lines are the densities of the components, normal or Student's t, times their weights,
    and that of the mixture; they are filled over the credible intervals of the means, and rows become a
    histogram. A corner plot of three and more features has a panel for every pair, and on its diagonal one
    for every feature.

    Each component has its number next to its mean, and a colour, a marker and a line style of its own. The
    legend has the weights with their standard deviations, those of the posterior's table, and says by what
    method they are. Components that are empty are left out. Rows that are noise are grey. A row of which one
    of the two values of a panel is missing is a tick at the panel's edge, at the value that is there; the
    legend counts these rows, and those without any of the values.

    Create it with :meth:`from_estimator`; the parameters are kept as attributes.

    Parameters
    ----------
    means : ndarray of shape (n_components, n_shown)
        Posterior means of the components' means, in units of the `n_shown` features that are shown.

    covariances : ndarray of shape (n_components, n_shown, n_shown)
        Covariance matrices of the components; where there are `tails`, their scale matrices.

    mean_covariances : ndarray of shape (n_components, n_shown, n_shown)
        Posterior covariance matrices of the components' means.

    weights, weights_std : ndarray of shape (n_components,) or (n_components + 1,)
        Posterior means and standard deviations of the weights, where there is noise that of noise last.

    counts : ndarray of shape (n_components,)
        Expected number of training rows in every component.

    points : ndarray of shape (n_samples, n_shown), default=None
        Rows to draw.

    labels : ndarray of shape (n_samples,), default=None
        The most probable component of each row, -1 for noise; needed with `points`.

    feature_names : list of str, default=None
        Names of the features, which label the axes; None means x0, x1 and so on.

    sample_weight : ndarray of shape (n_samples,), default=None
        Weights of the rows in histograms; None means once each.

    tails : ndarray of shape (n_components,), default=None
        Degrees of freedom of the components, if they are Student's t; None means that they are normal.

    note : str, default='Linear response.'
        What the error bars are and how good. The legend has the first words.

    Attributes
    ----------
    components_ : dict of int to matplotlib PathPatch or Line2D, or to a list of them
        The ellipses of the components shown, or their densities over one feature, by the component's number;
        of a corner plot a list with one for each panel, row by row.

    credible_regions_ : dict of int to matplotlib Patch, or to a list of them
        The credible regions of their means, likewise.

    numbers_ : dict of int to matplotlib Text, or to a list of them
        The components' numbers, likewise.

    points_ : list of matplotlib PathCollection
        The rows, one collection for noise and each component that have some, panel by panel.

    ticks_ : list of matplotlib PathCollection
        Rows at the edges of panels, since one of the two values is missing, panel by panel.

    histograms_ : list of matplotlib Polygon
        The rows over one feature, feature by feature.

    mixture_densities_ : list of matplotlib Line2D
        The densities of the components together over one feature, feature by feature.

    legend_ : matplotlib Legend
        Beside the axes where the figure's layout makes room for it, otherwise inside them; in the empty half
        of a corner plot.

    axes_ : ndarray of matplotlib Axes, of shape (n_shown, n_shown), or (1, 1) for up to two features
        The panels; None above the diagonal.

    ax_ : matplotlib Axes
        The axes drawn on: the panel itself, or the axes that hold the panels.

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
    >>> display
    ComponentDisplay: 2 of 4 components (0, 1) over x0 and x1; 200 rows
    """

    means: NDArray
    covariances: NDArray
    mean_covariances: NDArray
    weights: NDArray
    weights_std: NDArray
    counts: NDArray
    points: NDArray | None = None
    labels: NDArray | None = None
    feature_names: list[str] | None = None
    sample_weight: NDArray | None = None
    tails: NDArray | None = None
    note: str = "Linear response."

    def __post_init__(self) -> None:
        self.feature_names = self.feature_names or [f"x{p}" for p in range(self.means.shape[1])]

    @classmethod
    def from_estimator(
        cls,
        estimator: LRVBGaussianMixture,
        X: ArrayLike | None = None,
        *,
        features: Sequence[int | str] | None = None,
        interval: float = 0.95,
        components: Sequence[int] | None = None,
        min_count: float = 0.5,
        sample_weight: ArrayLike | None = None,
        posterior: Posterior | None = None,
        ax: Axes | None = None,
        scatter_kw: dict[str, Any] | None = None,
        hist_kw: dict[str, Any] | None = None,
    ) -> Self:
        """Compute and plot the components of a fitted mixture.

        Parameters
        ----------
        estimator : LRVBGaussianMixture
            A fitted mixture of any covariance type.

        X : array-like of shape (n_samples, n_features), default=None
            Rows to draw in the colour of their most probable component. Of millions, pass a sample.

        features : list of int or str, default=None
            The features to draw, by number or by name. Two span a plane, one has a histogram and densities,
            and three or more (up to 12) have a corner plot. Components are drawn by their marginal
            distributions. None means the first two, or the only one.

        interval : float, default=0.95
            Posterior probability of the credible regions, between 0 and 1.

        components : list of int, default=None
            The components to draw. None means all that hold rows.

        min_count : float, default=0.5
            Without `components`, those with fewer expected training rows than this are not drawn.

        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows in X, for histograms.

        posterior : Posterior, default=None
            Whose means and standard deviations are drawn; None is ``estimator.posterior()``.

        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure. The panels of a corner plot take the place of the axes.

        scatter_kw, hist_kw : dict, default=None
            Keyword arguments of matplotlib's `scatter` and `hist`, which draw the rows.

        Returns
        -------
        display : ComponentDisplay
            The display, drawn.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If `estimator` is not fitted.
        ValueError
            If `features`, `interval`, `components`, `min_count` or `X` are invalid, or the fit is no
            strict optimum and so has no posterior covariance.
        """
        selection.check_drawn(cls, estimator, LRVBGaussianMixture)
        require_interval(interval)
        counts, names = selection.expected_counts(estimator), estimator._feature_names
        selection.checked_components(components, counts, min_count)
        chosen = selection.checked_features(features, names)
        if len(chosen) > _MOST_FEATURES:
            raise ValueError(
                f"A corner plot of {len(chosen)} features has {len(chosen) * (len(chosen) + 1) // 2} panels, "
                f"too small to read: choose at most {_MOST_FEATURES}."
            )
        require_table(X, cls.__name__)
        if sample_weight is not None and X is None:
            raise ValueError("sample_weight goes with X: pass the rows too.")
        posterior = selection.checked_posterior(estimator, posterior)
        structure = estimator._fitted.structure
        means, mean_covariances = posterior._answer.means_of_components()
        weights = posterior._answer.margins_of(["weights"])("weights")
        matrices = estimator.scales_ if structure.has_scales else estimator.covariances_
        matrices = structure.layout.per_component(structure.by_group(matrices))
        if not structure.is_matrix:  # A sphere has one variance for all features.
            matrices = matrices[:, :, None] * np.eye(len(names))
        display = cls(
            means=means[:, chosen],
            covariances=matrices[:, chosen][:, :, chosen],
            mean_covariances=mean_covariances[:, chosen][:, :, chosen],
            weights=weights.mean,
            weights_std=weights.deviation,
            counts=counts,
            feature_names=[names[p] for p in chosen],
            tails=np.broadcast_to(estimator.tails_, len(counts)) if structure.has_scales else None,
            note=posterior.note,
        )
        if X is not None:
            display.labels = estimator.predict(X)
            display.points = selection.coordinates(estimator, X, chosen)
            display.sample_weight = checked_weights(sample_weight, display.labels)
        shown: dict[str, Any] = {"interval": interval, "components": components, "min_count": min_count}
        return display.plot(ax=ax, scatter_kw=scatter_kw, hist_kw=hist_kw, **shown)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        interval: float = 0.95,
        components: Sequence[int] | None = None,
        min_count: float = 0.5,
        scatter_kw: dict[str, Any] | None = None,
        hist_kw: dict[str, Any] | None = None,
    ) -> Self:
        """Draw the components again, on the same or other axes.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure. The panels of a corner plot take the place of the axes.

        interval : float, default=0.95
            Posterior probability of the credible regions, between 0 and 1.

        components : list of int, default=None
            The components to draw. None means all that hold rows.

        min_count : float, default=0.5
            Without `components`, those with fewer expected training rows than this are not drawn.

        scatter_kw, hist_kw : dict, default=None
            Keyword arguments of matplotlib's `scatter` and `hist`, which draw the rows.

        Returns
        -------
        display : ComponentDisplay
            The display itself.

        Raises
        ------
        ValueError
            If `interval`, `components` or `min_count` are invalid, or if a corner plot is to be drawn on an
            `ax` that has no place in a grid of subplots.
        """
        require_interval(interval)
        shown = selection.checked_components(components, self.counts, min_count)
        # Empty components take their colours last.
        ranks = np.argsort(np.argsort(self.counts < min_count, kind="stable"))
        styles = [drawing.series_style(rank) for rank in ranks]
        n_shown = self.means.shape[1]
        is_corner, inches = n_shown > 2, max(9.0, 1.3 * n_shown)
        shape, figsize = ((n_shown, n_shown), (inches, inches)) if is_corner else ((1, 1), (7.4, 4.8))
        self.axes_ = self._take(ax, shape, figsize)
        self.points_: list[Any] = []
        self.ticks_: list[Any] = []
        self.histograms_: list[Any] = []
        self.mixture_densities_: list[Any] = []
        drawn: dict[int, list] = {k: [] for k in shown}
        for place, panel in np.ndenumerate(self.axes_):
            row, column = place if is_corner else (n_shown - 1, 0)
            if column > row:
                panel.remove()
                self.axes_[place] = None
            elif column == row:
                self._draw_histogram(panel, row, hist_kw or {})
                self._draw_densities(panel, row, interval, styles, drawn)
            else:
                self._draw_rows(panel, [column, row], styles, scatter_kw or {})
                self._draw_ellipses(panel, [column, row], interval, styles, drawn)
        # Of a corner plot there is a list for each component.
        artists = {k: list(zip(*panels, strict=True)) for k, panels in drawn.items()}
        self.components_, self.credible_regions_, self.numbers_ = (
            {k: list(own[i]) if is_corner else own[i][0] for k, own in artists.items()} for i in range(3)
        )
        self._label_panels()
        self._draw_legend(shown, styles, interval)
        return self

    def _draw_rows(self, panel, plane, styles, scatter_kw):
        """Draw the rows in the plane of two features, by their components."""
        if self.points is None:
            return
        for k in np.unique(self.labels):
            look = _NOISE if k < 0 else styles[k]
            style = {"color": look["color"], "marker": look["marker"], "alpha": 0.5}
            style |= {"s": drawing.point_size(14.0, len(self.points)), "linewidth": 0.8 if k < 0 else 0}
            rows = self.points[self.labels == k][:, plane]
            points, ticks = drawing.scatter_rows(panel, rows, style, scatter_kw)
            self.points_.append(points)
            self.ticks_ += ticks

    def _draw_ellipses(self, panel, plane, interval, styles, drawn):
        """Draw components, regions of their means and numbers, and append all three to those drawn."""
        from matplotlib.patheffects import withStroke

        radius, square = np.sqrt(chi2.ppf(interval, df=2)), np.ix_(plane, plane)
        # The white rim keeps the line visible on points of its own colour.
        rim = [withStroke(linewidth=2.8, foreground="white", alpha=0.7)]
        for k in drawn:
            mean, color, dashes = self.means[k, plane], styles[k]["color"], styles[k]["linestyle"]
            outline = {"fill": False, "edgecolor": color, "linewidth": 1.2, "linestyle": dashes, "zorder": 2}
            filled = {"facecolor": color, "edgecolor": "black", "linewidth": 0.8, "alpha": 0.9, "zorder": 3}
            component = _ellipse(mean, self.covariances[k][square], _COMPONENT_RADIUS, **outline)
            component.set_path_effects(rim)
            region = _ellipse(mean, self.mean_covariances[k][square], radius, **filled)
            panel.add_patch(component)
            panel.add_patch(region)
            number = drawing.write_beside(panel, f"{k}", mean, (4, 4), **_NUMBER)
            drawn[k].append((component, region, number))
        panel.autoscale_view()

    def _draw_histogram(self, panel, feature, hist_kw):
        """Draw the rows' histogram over one feature."""
        is_seen = np.zeros(0, dtype=bool) if self.points is None else ~np.isnan(self.points[:, feature])
        if not is_seen.any():
            return
        weights = None if self.sample_weight is None else self.sample_weight[is_seen]
        # Rice's rule. Those that look at the scatter of the rows make billions of bins where one is far out.
        n_bins = min(math.ceil(2.0 * is_seen.sum() ** (1 / 3)), 60)
        style = {"bins": n_bins, "color": "0.85", "histtype": "stepfilled", "zorder": 0, **hist_kw}
        *_, drawn = panel.hist(self.points[is_seen, feature], density=True, weights=weights, **style)
        self.histograms_.append(drawn[0])

    def _draw_densities(self, panel, feature, interval, styles, drawn):
        """Draw densities over one feature, filled over the intervals of means, and append as in a plane."""
        shown, means = list(drawn), self.means[:, feature]
        deviations = np.sqrt(self.covariances[:, feature, feature])
        reach = means[shown] + 3.5 * deviations[shown] * np.array([[-1.0], [1.0]])
        covered = np.append(reach, [] if self.points is None else self.points[:, feature])
        low, high = np.nanmin(covered), np.nanmax(covered)
        low, high = low - 0.03 * (high - low), high + 0.03 * (high - low)
        # Densities are drawn over the whole range, and finely about every component.
        about = means[shown, None] + deviations[shown, None] * np.linspace(-4.0, 4.0, 81)
        grid = np.unique(np.append(np.linspace(low, high, 200), about))
        grid = grid[(low <= grid) & (grid <= high)]
        densities = self._densities(grid, feature)
        self.mixture_densities_ += panel.plot(grid, densities.sum(axis=0), color="black", linewidth=1.0)
        half_widths = np.sqrt(chi2.ppf(interval, df=1) * self.mean_covariances[:, feature, feature])
        for k in shown:
            color, dashes = styles[k]["color"], styles[k]["linestyle"]
            (component,) = panel.plot(
                grid, densities[k], linewidth=1.4, color=color, linestyle=dashes, zorder=3
            )
            within = means[k] + half_widths[k] * np.linspace(-1.0, 1.0, 41)
            under = self._densities(within, feature)[k]
            filled = {"facecolor": color, "edgecolor": "black", "linewidth": 0.5, "alpha": 0.5, "zorder": 1}
            corners = np.append(within, within[[-1, 0]]), np.append(under, [0.0, 0.0])
            (region,) = panel.fill(*corners, **filled)
            top = means[k], densities[k].max()
            drawn[k].append((component, region, drawing.write_beside(panel, f"{k}", top, (4, 4), **_NUMBER)))
        panel.set_xlim(low, high)
        panel.set_ylim(bottom=0.0)

    def _densities(self, grid, feature):
        """Densities of the components over one feature, times their weights: (n,) -> (K, n)."""
        places = self.means[:, feature, None], np.sqrt(self.covariances[:, feature, feature, None])
        own = norm.pdf(grid, *places) if self.tails is None else t.pdf(grid, self.tails[:, None], *places)
        return self.weights[: len(own), None] * own

    def _label_panels(self):
        """Label the axes; the panels of a corner plot get common axes, and the outer ones labels."""
        from matplotlib.ticker import MaxNLocator, NullLocator

        if self.axes_.size == 1:
            drawing.label_axes(self.ax_, *[*self.feature_names, "density"][:2])
            return
        width = drawing.inches(self.axes_[0, 0])[0]
        names = [drawing.wrapped(name, width) for name in self.feature_names]
        for (row, column), panel in np.ndenumerate(self.axes_):
            if panel is None:
                continue
            panel.set_xlim(self.axes_[column, column].get_xlim())
            panel.set_xlabel(names[column], fontsize="small")
            panel.xaxis.set_major_locator(MaxNLocator(3))
            panel.yaxis.set_major_locator(NullLocator())
            if column < row:
                panel.set_ylim(self.axes_[row, row].get_xlim())
                panel.set_ylabel(names[row], fontsize="small")
                panel.yaxis.set_major_locator(MaxNLocator(3))
            panel.tick_params(labelsize="small")
            panel.label_outer()

    def _draw_legend(self, shown, styles, interval):
        """Draw the legend: weights with error bars, what lines and areas are, rows with missing values."""
        n_features, has_noise = self.means.shape[1], len(self.weights) > len(self.means)
        entries = []
        for k in shown + [-1] * has_noise:
            name, look = ("noise", _NOISE) if k < 0 else (f"{k}", {"linewidth": 1.2, **styles[k]})
            entries.append((f"{name}: weight {self.weights[k]:.3f} ± {self.weights_std[k]:.3f}", look))
        note = re.split("[:.]", self.note)[0]
        entries.append((drawing.wrapped(f"± 1 sd. {note}", 2.3), _TEXT))
        if n_features > 1:
            unit = "sd of a component" if self.tails is None else "scales of a t component"
            entries.append((f"{_COMPONENT_RADIUS:g} {unit}", {"color": "0.3", "linewidth": 1.2}))
        if self.mixture_densities_:
            total = "density of the components" if has_noise else "density of the mixture"
            entries.append((total, {"color": "black", "linewidth": 1.0}))
        name, marker = ("interval", "s") if n_features == 1 else ("region", "o")
        entries.append((f"{100 * interval:g} % {name} of its mean", {**_REGION, "marker": marker}))
        if self.points is not None and np.isnan(self.points).any():
            n_missing, n_rows = np.isnan(self.points).sum(axis=1), len(self.points)
            n_whole, n_without = np.sum(n_missing == 0), np.sum(n_missing == n_features)
            which = {1: "a value", 2: "both values"}.get(n_features, "all values")
            entries.append((f"{n_whole} of {n_rows} rows have {which}", _TEXT))
            if n_whole + n_without < n_rows:
                n_ticks = n_rows - n_whole - n_without
                entries.append((f"{n_ticks} at the edge, where one\nof two values is missing", _TICK))
            if n_without:
                entries.append((f"{n_without} not drawn: no value", _TEXT))
        place = "beside"
        if n_features > 2:
            place = "corner"
            self.ax_.set_zorder(self.axes_[0, 0].get_zorder() + 1)  # Legible where there is too little room.
        handles = drawing.legend_handles(entries)
        self.legend_ = drawing.draw_legend(self.ax_, place, handles=handles, fontsize="small")

    def __repr__(self) -> str:
        shown = np.flatnonzero(self.counts >= 0.5).tolist()
        rows = "no rows" if self.points is None else f"{len(self.points)} rows"
        return (
            f"{type(self).__name__}: {len(shown)} of {len(self.counts)} components "
            f"({', '.join(map(str, shown))}) over {selection.in_words(self.feature_names)}; {rows}"
        )


def _ellipse(mean, covariance, radius, **style):
    """The ellipse at ``radius`` standard deviations of a bivariate normal distribution."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    # The Cholesky factor is accurate for both features even if their units differ by many orders.
    (variance, shared), (_, other) = covariance
    slope = shared / variance
    left = max(other - slope * shared, 0.0)  # Round-off can make this variance negative.
    root = np.sqrt(variance) * np.array([[1.0, 0.0], [slope, np.sqrt(left / variance)]])
    circle = Path.unit_circle()
    return PathPatch(Path(mean + radius * circle.vertices @ root.T, circle.codes), **style)
