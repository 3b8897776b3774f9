"""The posterior of parameters by several methods: PosteriorIntervalDisplay and PosteriorStdDisplay."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_lrvb.displays import drawing, selection
from sklearn_lrvb.displays.forest import ForestDisplay, Panel
from sklearn_lrvb.estimators.arguments import checked_targets
from sklearn_lrvb.estimators.gaussian_mixture import LRVBGaussianMixture
from sklearn_lrvb.estimators.posterior import Posterior
from sklearn_lrvb.gaussian.answers.targets import PARAMETERS, TARGETS
from sklearn_lrvb.reports import require_interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from sklearn_lrvb import LRVBLatentClassMixture


# Label; colour, width and dashes of the interval; marker, size and filling of the mean. Methods can be told
# apart without colours, in print.
_METHODS: dict[str, tuple[str, str, float, Any, str, float, str]] = {
    "lrvb": ("LRVB", "#0072B2", 2.6, "solid", "o", 4.5, "#0072B2"),
    "mean_field": ("mean field", "#D55E00", 1.2, (0, (4, 1.5)), "o", 3.6, "white"),
    "exact": ("exact", "#009E73", 2.6, "solid", "s", 3.8, "#009E73"),
    "sandwich": ("sandwich", "#CC79A7", 2.6, "solid", "D", 3.8, "#CC79A7"),
    "bootstrap": ("bootstrap", "#56B4E9", 1.8, (0, (1, 1)), "v", 4.2, "#56B4E9"),
    "reference": ("reference", "black", 1.0, "solid", "|", 5.0, "black"),
}


@dataclass(kw_only=True, eq=False, repr=False)
class PosteriorIntervalDisplay(ForestDisplay):
    """Credible intervals of parameters, by a posterior and by mean field: a forest plot.

    There is a panel for every feature (for every entry of matrices, and one for all weights), with its own
    scale in units of the parameter, and in it a row for every component: the posterior mean as a dot, on a
    thick line that is the interval, and beneath it the interval by mean field, thin and dashed. The first is
    that of the posterior's table (:meth:`LRVBGaussianMixture.posterior`), by linear response where that is
    good, and exact where not: the legend says which. Components that hold no rows are left out; their
    intervals are those of the prior.

    Create it with :meth:`from_estimator`; the parameters are kept as attributes.

    Parameters
    ----------
    lower, upper : dict of str to ndarray of shape (d,)
        Limits of the intervals, by method ('lrvb', 'exact', 'sandwich', 'bootstrap', 'mean_field',
        'reference'), in units of the parameters. Lines of infinite ones end at the edge of the panel.

    mean : dict of str to ndarray of shape (d,)
        Posterior means, by method. Infinite or NaN ones, as of covariances of components with too few rows,
        are not drawn.

    names : ndarray of shape (d,) of str
        Names of the parameters, as in the index of the table, such as "mean[0,x1]".

    panels : ndarray of shape (d,) of str
        The panel of each parameter, which is its label: a feature, such as "x1", or of several targets "mean
        of x1".

    components : ndarray of shape (d,) of str
        The row of each parameter: the number of its component, "all" where components share it, or "noise".

    interval : float, default=0.95
        Probability of the intervals.

    title : str, default=''
        What the intervals are of, such as "means", for the legend.

    note : str, default=''
        How good they are, as below the table.

    Attributes
    ----------
    intervals_ : dict of str to list of matplotlib LineCollection
        The intervals, by method, one collection for each panel.

    points_ : dict of str to list of matplotlib Line2D
        The posterior means, by method, one line of markers for each panel.

    legend_ : matplotlib Legend
        Above several panels; above one where the figure's layout makes room for it, otherwise inside.

    axes_ : ndarray of matplotlib Axes, of shape (n_rows, n_columns)
        The panels; None where the last row is not full.

    ax_ : matplotlib Axes
        The axes drawn on: the panel itself, or the axes that hold the panels.

    figure_ : matplotlib Figure
        Their figure.

    See Also
    --------
    PosteriorStdDisplay : Standard deviations of all parameters in one panel.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_lrvb import LRVBGaussianMixture
    >>> from sklearn_lrvb.displays import PosteriorIntervalDisplay
    >>> X = np.random.default_rng(0).normal(size=(600, 2)) + np.repeat([[0, 0], [5, 1]], 300, axis=0)
    >>> mixture = LRVBGaussianMixture(n_components=2, random_state=0).fit(X)
    >>> display = PosteriorIntervalDisplay.from_estimator(mixture, target="means")
    >>> display
    PosteriorIntervalDisplay: 95 % intervals of means by LRVB and mean field; 2 panels, 4 parameters. Linear \
response is good: sds within 10 %, means within 0.2 sd.
    >>> bool(np.all(display.upper["mean_field"] < display.upper["lrvb"]))
    True
    """

    _panel_width, _least_height = 1.75, 0.72
    _most_columns, _row_label = 5, "component"

    lower: dict[str, NDArray]
    upper: dict[str, NDArray]
    mean: dict[str, NDArray]
    names: NDArray
    panels: NDArray
    components: NDArray
    interval: float = 0.95
    title: str = ""
    note: str = ""

    @classmethod
    def from_estimator(
        cls,
        estimator: LRVBGaussianMixture,
        posterior: Posterior | Sequence[Posterior] | None = None,
        *,
        target: str | Sequence[str] = "means",
        interval: float = 0.95,
        components: Sequence[int] | None = None,
        features: Sequence[int | str | tuple[int | str, int | str]] | None = None,
        min_count: float = 0.5,
        reference: ArrayLike | None = None,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Compute and plot credible intervals of a fitted mixture.

        Parameters
        ----------
        estimator : LRVBGaussianMixture
            A fitted mixture.

        posterior : Posterior, or a list of such, default=None
            Whose intervals are drawn, and beneath them those by mean field; of a list those alone, of
            different methods, from top to bottom. None is ``estimator.posterior()``.

        target : {'log_weights', 'weights', 'means', 'precisions', 'standard_deviations', 'correlations', \
                'covariances', 'scales', 'tails', 'log_tails', 'mean_precision_prior', \
                'covariance_prior', 'all'} or a list, default='means'
            The parameters to draw; 'all' stands for log weights, means, precisions and fitted log tails.

        interval : float, default=0.95
            Probability of the central credible intervals, between 0 and 1.

        components : list of int, default=None
            The components to draw, from top to bottom. None means all that hold rows, and noise.

        features : list of int, str or pairs of such, default=None
            The features to draw, by number or by name. Of precisions and covariances one feature stands for
            the diagonal entry, and a pair for any. None means all entries. Ignored for weights, and for
            spherical precisions and covariances.

        min_count : float, default=0.5
            Without `components`, those with fewer expected training rows than this are not drawn.

        reference : array-like of shape (d, 2), default=None
            Lower and upper limits by another method, such as a Gibbs sampler, drawn beneath the others: in
            the order of the posterior's ``summary(target)``, whatever is selected.

        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure. Several panels take the place of the axes.

        **kwargs : dict
            Keyword arguments of matplotlib's `hlines`, which draws the intervals.

        Returns
        -------
        display : PosteriorIntervalDisplay
            The display, drawn.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If `estimator` is not fitted.
        ValueError
            If an option is unknown or out of range, if more than 100 panels were needed, or if the fit is no
            strict optimum and so has no posterior covariance.
        """
        selection.check_drawn(cls, estimator, LRVBGaussianMixture)
        names = checked_targets(target, TARGETS, PARAMETERS)
        require_interval(interval)
        uncertainty = estimator._uncertainty
        targets = [uncertainty.targets[name] for name in names]
        entries = selection.chosen_entries(estimator, targets, components, features, min_count)
        labels = np.concatenate([one.labels(estimator._feature_names) for one in targets])
        places = list(entries)
        lower, upper, mean = {}, {}, {}
        if reference is not None:
            shape, what = (len(labels), 2), "a lower and an upper end"
            given = _checked_reference(reference, shape, what, target)[places]
        posteriors = _checked_posteriors(estimator, posterior)
        for one in posteriors:
            used, margins_of = one.method, one._answer.margins_of(names)
            margins = [margins_of(name) for name in names]
            mean[used] = np.concatenate([margin.mean for margin in margins])[places]
            limits = np.concatenate([margin.interval(interval) for margin in margins], axis=1)
            lower[used], upper[used] = limits[:, places]
        if reference is not None:
            lower["reference"], upper["reference"] = given.T
            mean["reference"] = np.full(len(given), np.nan)
        rows, panels = np.array(list(entries.values())).T
        display = cls(
            lower=lower,
            upper=upper,
            mean=mean,
            names=labels[places],
            panels=panels,
            components=rows,
            interval=float(interval),
            title=", ".join(names).replace("_", " "),
            note=" ".join(one.note for one in posteriors if one.method != "mean_field"),
        )
        return display.plot(ax=ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Draw the intervals again, on the same or other axes.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure. Several panels take the place of the axes.

        **kwargs : dict
            Keyword arguments of matplotlib's `hlines`, which draws the intervals.

        Returns
        -------
        display : PosteriorIntervalDisplay
            The display itself.

        Raises
        ------
        ValueError
            If there are several panels, and `ax` has no place in a grid of subplots.
        """
        series, panels = [], []
        for method in self.lower:
            name, color, width, dashes, marker, size, filling = _METHODS[method]
            point = {"marker": marker, "markersize": size, "color": color, "markerfacecolor": filling}
            series.append((name, {"color": color, "linewidth": width, "linestyle": dashes}, point))
        numbers = np.array([[part[m] for m in self.lower] for part in (self.mean, self.lower, self.upper)])
        for label in dict.fromkeys(self.panels.tolist()):
            own = self.panels == label
            panels.append(Panel("", self.components[own].tolist(), numbers[:, :, own], label))
        of_what = f" of {self.title}" if len(panels) > 1 and self.title else ""
        title = f"{100 * self.interval:g} % intervals{of_what}{'. ' * bool(self.note)}{self.note}"
        title = textwrap.shorten(title, 230, placeholder=" ...")
        drawn = self._draw_panels(ax, panels, series, title, kwargs)
        by_method = dict(zip(self.lower, zip(*drawn, strict=True), strict=True))
        self.intervals_ = {method: [lines for lines, _ in own] for method, own in by_method.items()}
        self.points_ = {method: [points for _, points in own] for method, own in by_method.items()}
        return self

    def __repr__(self) -> str:
        methods = " and ".join(_METHODS[method][0] for method in self.lower)
        n_panels = len(set(self.panels.tolist()))
        return (
            f"{type(self).__name__}: {100 * self.interval:g} % intervals of {self.title} by {methods}; "
            f"{n_panels} panel{'s' * (n_panels > 1)}, {len(self.names)} parameters"
            f"{'. ' * bool(self.note)}{self.note}"
        )


@dataclass(kw_only=True, eq=False, repr=False)
class PosteriorStdDisplay(drawing.Display):
    """Standard deviations of a posterior against those by mean field.

    Each point is a parameter, on logarithmic axes with the diagonal. The x axis has the posterior's standard
    deviation (:meth:`LRVBGaussianMixture.posterior`), by linear response ("LRVB") or exact, the y axis that
    of mean field. With a `reference`, such as a Gibbs sampler's standard deviations, the x axis has the
    reference and the y axis both, the posterior by filled and mean field by hollow markers. A point below the
    diagonal is a standard deviation that is too small. With ``ratio=True`` the y axis has the ratio to the x
    axis, and the line is at one.

    Create it with :meth:`from_estimator`; the parameters are kept as attributes.

    Parameters
    ----------
    std, mean_field_std : ndarray of shape (d,)
        Standard deviations, in units of the parameters.

    targets : ndarray of shape (d,) of str
        The attribute that each parameter belongs to, such as "means".

    reference_std : ndarray of shape (d,), default=None
        Standard deviations to compare both with, in the same units.

    method : str, default='lrvb'
        The posterior's method.

    note : str, default=''
        How good it is, as below its table.

    Attributes
    ----------
    mean_field_points_ : dict of str to matplotlib PathCollection
        The points of mean field, by the name of the attribute.

    points_ : dict of str to matplotlib PathCollection
        The points of the posterior, by the name of the attribute; empty without a reference.

    diagonal_ : matplotlib Line2D
        The line of equal standard deviations.

    legend_ : matplotlib Legend
        Inside the axes, above the diagonal; beside them with ``ratio=True``.

    ax_ : matplotlib Axes
        The axes drawn on.

    figure_ : matplotlib Figure
        Their figure.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_lrvb import LRVBGaussianMixture
    >>> from sklearn_lrvb.displays import PosteriorStdDisplay
    >>> X = np.random.default_rng(0).normal(size=(600, 2)) + np.repeat([[0, 0], [5, 1]], 300, axis=0)
    >>> mixture = LRVBGaussianMixture(n_components=2, random_state=0).fit(X)
    >>> display = PosteriorStdDisplay.from_estimator(mixture, target=["means", "log_weights"])
    >>> display
    PosteriorStdDisplay: standard deviations of 4 means and 2 log weights by LRVB and mean field. Linear \
response is good: sds within 10 %, means within 0.2 sd.
    """

    std: NDArray
    mean_field_std: NDArray
    targets: NDArray
    reference_std: NDArray | None = None
    method: str = "lrvb"
    note: str = ""

    @classmethod
    def from_estimator(
        cls,
        estimator: LRVBGaussianMixture | LRVBLatentClassMixture,
        posterior: Posterior | None = None,
        *,
        target: str | Sequence[str] = "all",
        reference: ArrayLike | None = None,
        ratio: bool = False,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Compute and plot the standard deviations of a fitted mixture.

        Parameters
        ----------
        estimator : LRVBGaussianMixture or LRVBLatentClassMixture
            A fitted mixture.

        posterior : Posterior, default=None
            Whose standard deviations are drawn; None is ``estimator.posterior()``.

        target : {'log_weights', 'weights', 'means', 'precisions', 'standard_deviations', 'correlations', \
                'covariances', 'scales', 'tails', 'log_tails', 'mean_precision_prior', \
                'covariance_prior', 'tables', 'all'} or a list, default='all'
            The parameters to draw; 'all' stands for those of `posterior_names_`.

        reference : array-like of shape (d,), default=None
            Standard deviations from another method, such as a Gibbs sampler, in the order of
            the posterior's ``covariance(target)``; that of the default is `posterior_names_`.

        ratio : bool, default=False
            Whether the y axis has ratios to the x axis, in place of standard deviations. They can be read
            where units differ by orders of magnitude, as those of columns that were not scaled.

        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure.

        **kwargs : dict
            Keyword arguments of matplotlib's `scatter`.

        Returns
        -------
        display : PosteriorStdDisplay
            The display, drawn.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If `estimator` is not fitted.
        ValueError
            If the target is unknown, if the reference has another length, or if the fit is no strict optimum
            and so has no posterior covariance.
        """
        selection.check_drawn(cls, estimator)
        uncertainty = estimator._uncertainty
        targets = uncertainty.targets
        chosen = checked_targets(target, targets.table, targets.parameters)
        posterior = selection.checked_posterior(estimator, posterior)
        margins_of = posterior._answer.margins_of(chosen)
        std = [margins_of(name).deviation for name in chosen]
        mean_field = [uncertainty.margins(name, uncertainty.of_mean_field).deviation for name in chosen]
        sizes = [len(part) for part in std]
        display = cls(
            std=np.concatenate(std),
            mean_field_std=np.concatenate(mean_field),
            targets=np.repeat(chosen, sizes),
            method=posterior.method,
            note=posterior.note,
        )
        if reference is not None:
            shape, what = (sum(sizes),), "one standard deviation"
            display.reference_std = _checked_reference(reference, shape, what, target)
        return display.plot(ax=ax, ratio=ratio, **kwargs)

    def plot(self, ax: Axes | None = None, *, ratio: bool = False, **kwargs: Any) -> Self:
        """Draw the standard deviations again, on the same or other axes.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure.

        ratio : bool, default=False
            Whether the y axis has ratios to the x axis, in place of standard deviations.

        **kwargs : dict
            Keyword arguments of matplotlib's `scatter`.

        Returns
        -------
        display : PosteriorStdDisplay
            The display itself. Standard deviations of zero, such as that of the log weight of a single
            component, and those that are not finite cannot be shown on logarithmic axes and are left out.
        """
        from matplotlib.collections import PathCollection

        ax = self._take(ax)[0, 0]
        self.points_: dict[str, Any] = {}
        self.mean_field_points_: dict[str, Any] = {}
        method = _METHODS[self.method][0]
        x_name, y_name = method, "mean-field standard deviation"
        each = np.stack([self.std, self.std, self.mean_field_std])
        if self.reference_std is not None:
            each[0], x_name, y_name = self.reference_std, "reference", "standard deviation"
        shown = np.all((each > 0) & np.isfinite(each), axis=0)
        self._draw_line(each[0, shown] if ratio else each[:, shown], ratio)
        for target in dict.fromkeys(self.targets[shown].tolist()):
            own, name = shown & (self.targets == target), target.replace("_", " ")
            x, std, mean_field = each[:, own]
            unit = x if ratio else 1.0
            look = drawing.series_style([*TARGETS, "tables"].index(target))
            style = {"s": 26, "marker": look["marker"], "color": look["color"], "alpha": 0.85}
            style["zorder"] = 2.0 - own.mean()  # Many points are not to hide a few.
            style = drawing.styled(PathCollection, style, kwargs)
            if self.reference_std is not None:
                self.points_[target] = ax.scatter(x, std / unit, label=f"{name}, {method}", **style)
                style["facecolor"], name = "none", f"{name}, mean-field"
            self.mean_field_points_[target] = ax.scatter(x, mean_field / unit, label=name, **style)
        ax.set(xlabel=f"{x_name} standard deviation", ylabel=y_name + f" / {x_name}" * ratio)
        handles = ax.get_legend_handles_labels()[0]  # Without any, matplotlib would look and warn.
        # Few standard deviations are above the diagonal, where there is room.
        self.legend_ = drawing.draw_legend(ax, "beside" if ratio else "inside", handles=handles)
        return self

    def __repr__(self) -> str:
        counts = [f"{np.sum(self.targets == t)} {t.replace('_', ' ')}" for t in dict.fromkeys(self.targets)]
        of_reference = ["a reference"] * (self.reference_std is not None)
        methods = [_METHODS[self.method][0], "mean field", *of_reference]
        of_what, by_what = selection.in_words(counts), selection.in_words(methods)
        return (
            f"{type(self).__name__}: standard deviations of {of_what} by {by_what}"
            f"{'. ' * bool(self.note)}{self.note}"
        )

    def _draw_line(self, values, ratio):
        """Set logarithmic axes around the values, and draw the line on which methods agree."""
        from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

        ax, limits = self.ax_, (0.1, 10.0)
        if values.size:
            low, high = np.log(values.min()), np.log(values.max())
            margin = max(0.1, 0.05 * (high - low), 0.5 * (np.log(5.0) - (high - low)))  # To a ratio of five.
            limits = float(np.exp(low - margin)), float(np.exp(high + margin))
        if ratio:
            ax.set(xscale="log", xlim=limits)
            self.diagonal_ = ax.axhline(1.0, color="0.4", linewidth=1, zorder=0)
            return
        ax.set(xscale="log", yscale="log", xlim=limits, ylim=limits, aspect="equal")
        (self.diagonal_,) = ax.plot(limits, limits, color="0.4", linewidth=1, zorder=0)
        if limits[1] < 300.0 * limits[0]:  # Powers of ten alone are too few on a short axis.
            for axis in (ax.xaxis, ax.yaxis):
                axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
                axis.set_major_formatter(StrMethodFormatter("{x:g}"))
                axis.set_minor_formatter(NullFormatter())


def _checked_posteriors(estimator, posterior):
    """The posteriors to draw, list.

    Parameters
    ----------
    posterior : Posterior, or a list of these, or None, what the user passed
    """
    if selection.is_list(posterior):
        posteriors = [selection.checked_posterior(estimator, one) for one in posterior]
    else:
        posteriors = [selection.checked_posterior(estimator, posterior)]
        if posteriors[0].method != "mean_field":
            posteriors.append(estimator.posterior(method="mean_field"))
    methods = [one.method for one in posteriors]
    if not methods or len(set(methods)) < len(methods):
        raise ValueError(f"posterior must list one or more posteriors by different methods, got {methods}.")
    return posteriors


def _checked_reference(reference, shape, what, target):
    """Numbers of another method as an array, which has a row for each parameter of the target.

    Raises
    ------
    ValueError
        They have another shape.
    """
    numbers = np.asarray(reference, dtype=np.float64)
    if numbers.shape != shape:
        shaped = f", shape {shape}" if len(shape) > 1 else ""
        raise ValueError(
            f"reference must have {what} for each of the {shape[0]} parameters of target={target!r}{shaped}, "
            f"got an array of shape {numbers.shape}."
        )
    return numbers
