"""PosteriorStdDisplay: posterior standard deviations by linear response (LRVB) and by mean field."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from sklearn_lrvb.displays.axes import COLORS, MARKERS, draw_legend, given_or_new, styled
from sklearn_lrvb.displays.selection import check_drawn, in_words
from sklearn_lrvb.estimators.arguments import checked_targets
from sklearn_lrvb.gaussian.answers.targets import TARGETS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.collections import PathCollection
    from numpy.typing import ArrayLike, NDArray

    from sklearn_lrvb import LRVBGaussianMixture, LRVBLatentClassMixture

_MINIMUM_AXIS_RATIO = 5.0  # The upper end of an axis is at least this many times its lower end.
_PLAIN_TICKS_BELOW = 300.0  # Axes of a smaller ratio have ticks at 1, 2 and 5 times powers of ten.


@dataclass(kw_only=True, eq=False, repr=False)
class PosteriorStdDisplay:
    """Posterior standard deviations by LRVB against those by mean field.

    Each point is a parameter, on logarithmic axes with the diagonal. The x axis has the LRVB standard
    deviation, the y axis that of mean field. With a `reference`, such as a Gibbs sampler's standard
    deviations, the x axis has the reference and the y axis both methods, LRVB by filled and mean field by
    hollow markers. A point below the diagonal is a standard deviation that is too small. With ``ratio=True``
    the y axis has the ratio to the x axis, and the line is at one.

    Create it with :meth:`from_estimator`; the parameters are kept as attributes.

    Parameters
    ----------
    lrvb_std, mean_field_std : ndarray of shape (d,)
        Standard deviations, in units of the parameters.

    targets : ndarray of shape (d,) of str
        The attribute that each parameter belongs to, such as "means".

    reference_std : ndarray of shape (d,), default=None
        Standard deviations to compare both with, in the same units.

    Attributes
    ----------
    mean_field_points_ : dict of str to matplotlib PathCollection
        The points of mean field, by the name of the attribute.

    lrvb_points_ : dict of str to matplotlib PathCollection
        The points of LRVB, by the name of the attribute; empty without a reference.

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
    >>> X = np.random.default_rng(0).normal(size=(200, 2)) + np.repeat([[0, 0], [3, 1]], 100, axis=0)
    >>> mixture = LRVBGaussianMixture(n_components=2, random_state=0).fit(X)
    >>> display = PosteriorStdDisplay.from_estimator(mixture, target=["means", "log_weights"])
    >>> display
    PosteriorStdDisplay: standard deviations of 4 means and 2 log weights by LRVB and mean field
    """

    lrvb_std: NDArray
    mean_field_std: NDArray
    targets: NDArray
    reference_std: NDArray | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: LRVBGaussianMixture | LRVBLatentClassMixture,
        X: ArrayLike | None = None,
        *,
        target: str | Sequence[str] = "all",
        reference: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        ratio: bool = False,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Compute and plot the standard deviations of a fitted mixture.

        Parameters
        ----------
        estimator : LRVBGaussianMixture or LRVBLatentClassMixture
            A fitted mixture.

        X : array-like of shape (n_samples, n_features), default=None
            The training rows. Only needed if the estimator no longer has what the covariance needs; see
            :meth:`LRVBGaussianMixture.get_posterior_covariance`.

        target : {'log_weights', 'weights', 'means', 'precisions', 'standard_deviations', 'correlations', \
                'covariances', 'scales', 'tails', 'log_tails', 'tables', 'all'} or a list, default='all'
            The parameters to draw; 'all' stands for those of `posterior_names_`.

        reference : array-like of shape (d,), default=None
            Standard deviations from another method, such as a Gibbs sampler, in the order of
            ``get_posterior_covariance(target)``; that of the default is `posterior_names_`.

        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows in X, if the fit had weights.

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
            If the target is unknown, if X is not what the mixture was fitted to, if the reference has another
            length, or if the fit is no strict optimum and so has no posterior covariance.
        """
        check_drawn(cls, estimator)
        uncertainty = estimator._uncertainty
        targets = uncertainty.targets
        chosen = checked_targets(target, targets.table, targets.parameters)
        rows = estimator._training_rows(X, sample_weight, uncertainty.fitted)
        information = None if rows is None else uncertainty.information(chosen, rows)
        lrvb = [uncertainty.flat_std(name, information) for name in chosen]
        mean_field = [uncertainty.flat_std(name, uncertainty.of_mean_field) for name in chosen]
        lrvb_std = np.concatenate(lrvb)
        reference_std = None if reference is None else np.asarray(reference, dtype=np.float64)
        if reference_std is not None and reference_std.shape != lrvb_std.shape:
            raise ValueError(
                f"reference must have one standard deviation for each of the {len(lrvb_std)} "
                f"parameters of target={target!r}, got an array of shape {reference_std.shape}."
            )
        display = cls(
            lrvb_std=lrvb_std,
            mean_field_std=np.concatenate(mean_field),
            targets=np.repeat(chosen, [len(part) for part in lrvb]),
            reference_std=reference_std,
        )
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
        self.ax_ = given_or_new(ax)
        self.figure_ = self.ax_.figure
        self.lrvb_points_: dict[str, PathCollection] = {}
        self.mean_field_points_: dict[str, PathCollection] = {}
        x = self.lrvb_std if self.reference_std is None else self.reference_std
        each = np.stack([x, self.lrvb_std, self.mean_field_std])
        shown = np.all((each > 0) & np.isfinite(each), axis=0)
        self._draw_line(x[shown] if ratio else each[:, shown], ratio)
        for target in dict.fromkeys(self.targets[shown].tolist()):
            own = shown & (self.targets == target)
            unit = x[own] if ratio else 1.0
            of_target = self.lrvb_std[own] / unit, self.mean_field_std[own] / unit
            on_top = {"zorder": 2.0 - own.mean()}  # Many points are not to hide a few.
            self._draw_target(target, x[own], *of_target, {**on_top, **kwargs})
        of_what = "LRVB" if self.reference_std is None else "reference"
        by_what = "mean-field standard deviation" if self.reference_std is None else "standard deviation"
        ylabel = f"{by_what} / {of_what}" if ratio else by_what
        self.ax_.set(xlabel=f"{of_what} standard deviation", ylabel=ylabel)
        handles = self.ax_.get_legend_handles_labels()[0]  # Without any, matplotlib would look and warn.
        if ratio:
            self.legend_ = draw_legend(self.ax_, "beside", handles=handles)
        else:  # Few points are above the line.
            self.legend_ = self.ax_.legend(handles=handles, loc="upper left", frameon=False)
        return self

    def __repr__(self) -> str:
        counts = [f"{np.sum(self.targets == t)} {t.replace('_', ' ')}" for t in dict.fromkeys(self.targets)]
        methods = ["LRVB", "mean field", *["a reference"] * (self.reference_std is not None)]
        return f"{type(self).__name__}: standard deviations of {in_words(counts)} by {in_words(methods)}"

    def _draw_line(self, values, ratio):
        """Set logarithmic axes around the values, and draw the line on which methods agree."""
        limits = _limits(values) if values.size else (0.1, 10.0)
        if ratio:
            self.ax_.set(xscale="log", xlim=limits)
            self.diagonal_ = self.ax_.axhline(1.0, color="0.4", linewidth=1, zorder=0)
            return
        self.ax_.set(xscale="log", yscale="log", xlim=limits, ylim=limits, aspect="equal")
        if limits[1] < _PLAIN_TICKS_BELOW * limits[0]:
            _label_short_axes(self.ax_)
        (self.diagonal_,) = self.ax_.plot(limits, limits, color="0.4", linewidth=1, zorder=0)

    def _draw_target(self, target, x, lrvb_std, mean_field_std, kwargs):
        """The points of one kind of parameters."""
        from matplotlib.collections import PathCollection

        place, name = [*TARGETS, "tables"].index(target), target.replace("_", " ")
        marker, color = MARKERS[place % len(MARKERS)], COLORS[place % len(COLORS)]
        style = {"s": 26, "marker": marker, "color": color, "alpha": 0.85}
        style = styled(PathCollection, style, kwargs)
        if self.reference_std is None:
            self.mean_field_points_[target] = self.ax_.scatter(x, mean_field_std, label=name, **style)
            return
        hollow = {**style, "facecolor": "none", "label": f"{name}, mean-field"}
        self.lrvb_points_[target] = self.ax_.scatter(x, lrvb_std, label=f"{name}, LRVB", **style)
        self.mean_field_points_[target] = self.ax_.scatter(x, mean_field_std, **hollow)


def _limits(values):
    """Ends of a logarithmic axis with a margin around the values."""
    low, high = np.log(values.min()), np.log(values.max())
    margin = max(0.1, 0.05 * (high - low), 0.5 * (np.log(_MINIMUM_AXIS_RATIO) - (high - low)))
    return float(np.exp(low - margin)), float(np.exp(high + margin))


def _label_short_axes(ax):
    """Label 1, 2 and 5 times powers of ten: powers of ten alone are too few on a short axis."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axis.set_minor_formatter(NullFormatter())
