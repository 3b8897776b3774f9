"""PosteriorIntervalDisplay: credible intervals by LRVB, mean field and sampling, a forest plot."""

from __future__ import annotations

import functools
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from sklearn_lrvb.displays.forest import Forest, Kind, Panel
from sklearn_lrvb.displays.selection import (
    all_entries,
    check_drawn,
    check_number_of_panels,
    checked_components,
    expected_counts,
    has_noise_entry,
    is_list,
    row_and_column,
)
from sklearn_lrvb.estimators.arguments import checked_method, checked_targets
from sklearn_lrvb.estimators.gaussian_mixture import LRVBGaussianMixture
from sklearn_lrvb.estimators.sampling_methods import NO_GROUPS, OF_SAMPLES
from sklearn_lrvb.gaussian.answers.targets import PARAMETERS, TARGETS
from sklearn_lrvb.reports import require_interval

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.collections import LineCollection
    from matplotlib.lines import Line2D
    from numpy.typing import ArrayLike, NDArray

_MOST_COLUMNS, _PANEL_INCHES = 5, 1.75
_MOST_CHARACTERS = 230  # Of what the legend says of the intervals.
_FEWER = (
    "(a) Choose some by features=[...]; for matrices a feature stands for its diagonal entry, and a pair for "
    "the entry off the diagonal. (b) Draw fewer targets."
)
_SHARED = "all"  # The row of entries that all components share.

# Label; colour, width and dashes of the interval; marker and size of the mean. Not colours alone tell methods
# apart, for print.
_METHODS: dict[str, tuple[str, str, float, Any, str, float]] = {
    "lrvb": ("LRVB", "#0072B2", 2.6, "solid", "o", 4.5),
    "mean_field": ("mean field", "#D55E00", 1.2, (0, (4, 1.5)), "o", 3.6),
    "exact": ("exact", "#009E73", 2.6, "solid", "s", 3.8),
    "sandwich": ("sandwich", "#CC79A7", 2.6, "solid", "D", 3.8),
    "bootstrap": ("bootstrap", "#56B4E9", 1.8, (0, (1, 1)), "v", 4.2),
    "reference": ("reference", "black", 1.0, "solid", "|", 5.0),
}


@dataclass(kw_only=True, eq=False, repr=False)
class PosteriorIntervalDisplay:
    """Credible intervals of parameters, by LRVB and by mean field: a forest plot.

    There is a panel for every feature (for every entry of matrices, and one for all weights), with its own
    scale in units of the parameter, and in it a row for every component: the posterior mean as a dot, on a
    thick line that is the interval, and beneath it the interval by mean field, thin and dashed. The first is
    by linear response where that is good, and of the exact posterior where not: the legend says
    which. The ends are those of :meth:`LRVBGaussianMixture.posterior_summary`. Components that hold no rows
    are left out; their intervals are those of the prior.

    Create it with :meth:`from_estimator`; the parameters are kept as attributes.

    Parameters
    ----------
    lower, upper : dict of str to ndarray of shape (d,)
        Ends of the intervals, by method ('lrvb', 'exact', 'sandwich', 'bootstrap', 'mean_field',
        'reference'), in units of the parameters. Lines of infinite ones end at the edge of the panel.

    mean : dict of str to ndarray of shape (d,)
        Posterior means, by method. Infinite or NaN ones, as of covariances of components with too few rows,
        are not drawn.

    names : ndarray of shape (d,) of str
        Names of the parameters, as in the index of `posterior_summary`, such as "mean[0,x1]".

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
        How good they are, as in the table of `posterior_summary`.

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
        X: ArrayLike | None = None,
        *,
        target: str | Sequence[str] = "means",
        interval: float = 0.95,
        methods: Sequence[str] = ("auto", "mean_field"),
        components: Sequence[int] | None = None,
        features: Sequence[int | str | tuple[int | str, int | str]] | None = None,
        min_count: float = 0.5,
        reference: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        n_draws: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        groups: ArrayLike | None = None,
        strata: ArrayLike | None = None,
        strata_sizes: Mapping | float | None = None,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Compute and plot credible intervals of a fitted mixture.

        Parameters
        ----------
        estimator : LRVBGaussianMixture
            A fitted mixture.

        X : array-like of shape (n_samples, n_features), default=None
            The training rows, for the exact posterior. A fit to up to 64 MiB of rows in memory still has
            them.

        target : {'log_weights', 'weights', 'means', 'precisions', 'standard_deviations', 'correlations', \
                'covariances', 'scales', 'tails', 'log_tails', 'all'} or a list, default='means'
            The parameters to draw; 'all' stands for log weights, means, precisions and fitted log tails.

        interval : float, default=0.95
            Probability of the central credible intervals, between 0 and 1.

        methods : sequence of {'auto', 'lrvb', 'exact', 'mean_field', 'sandwich', 'bootstrap'}, \
                default=('auto', 'mean_field')
            Whose intervals are drawn, from top to bottom, as in
            :meth:`LRVBGaussianMixture.posterior_summary`: 'auto' is 'lrvb' where that is good, 'exact' where
            not, and 'sandwich' with `groups`.

        components : list of int, default=None
            The components to draw, from top to bottom. None means all that hold rows, and noise.

        features : list of int, str or pairs of such, default=None
            The features to draw, by number or by name. Of precisions and covariances one feature stands for
            the diagonal entry, and a pair for any. None means all entries. Ignored for weights, and for
            spherical precisions and covariances.

        min_count : float, default=0.5
            Without `components`, those with fewer expected training rows than this are not drawn.

        reference : array-like of shape (d, 2), default=None
            Lower and upper ends by another method, such as a Gibbs sampler, drawn beneath the others: in the
            order of ``posterior_summary(target=target)``, whatever is selected.

        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows in X, if the fit had weights.

        n_draws : int, default=None
            Number of draws of the exact posterior, at least, or of resamples; None is as many draws as it
            takes to converge, or 200 resamples.

        random_state : int, RandomState instance or None, default=None
            Seed of these.

        groups, strata, strata_sizes : default=None
            Which rows belong together, as in :meth:`LRVBGaussianMixture.get_posterior_covariance`. They are
            for 'auto', 'sandwich' and 'bootstrap', whose intervals are then confidence intervals; 'lrvb' and
            'exact' beside them take rows as independent.

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
        check_drawn(cls, estimator, LRVBGaussianMixture)
        targets = checked_targets(target, TARGETS, PARAMETERS)
        require_interval(interval)
        chosen = checked_components(components, expected_counts(estimator), min_count)
        methods = _checked_methods(methods)
        of_targets = [estimator._uncertainty.targets[name] for name in targets]
        is_alone, features_named = len(targets) == 1, estimator._feature_names
        entries = [_entries(of, estimator, chosen, features, is_alone) for of in of_targets]
        if components is None:
            _add_noise(entries, of_targets)
        rows, panels = np.array([shown for own in entries for shown in own.values()]).T
        check_number_of_panels(len(set(panels.tolist())), _FEWER)
        ends = None if reference is None else _checked_reference(reference, of_targets, entries, target)
        lower, upper, mean, notes = {}, {}, {}, []
        for method in methods:
            if method == "mean_field":
                uncertainty, used = estimator._uncertainty, method
                margins_of = functools.partial(uncertainty.margins, information=uncertainty.of_mean_field)
            else:
                # Intervals of the posterior may stand beside those by groups.
                design = NO_GROUPS if method in ("lrvb", "exact") else (groups, strata, strata_sizes)
                answer = estimator._answer(method, X, sample_weight, random_state, design)
                margins_of, used = answer.margins_of(targets, n_draws), answer.name
                notes.append(answer.note)
            found = []
            for name, own in zip(targets, entries, strict=True):
                margins = margins_of(name)
                found.append(np.stack([*margins.interval(interval), margins.mean])[:, list(own)])
            lower[used], upper[used], mean[used] = np.concatenate(found, axis=1)
        if ends is not None:
            lower["reference"], upper["reference"] = ends
            mean["reference"] = np.full(len(ends[0]), np.nan)
        names = [
            np.array(of.labels(features_named))[list(own)]
            for of, own in zip(of_targets, entries, strict=True)
        ]
        display = cls(
            lower=lower,
            upper=upper,
            mean=mean,
            names=np.concatenate(names),
            panels=panels,
            components=rows,
            interval=float(interval),
            title=", ".join(t.replace("_", " ") for t in targets),
            note=" ".join(dict.fromkeys(notes)),
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
        kinds = [_kind(method) for method in self.lower]
        numbers = np.array([[self.mean[m], self.lower[m], self.upper[m]] for m in self.lower])
        panels = []
        for label in dict.fromkeys(self.panels.tolist()):
            own = self.panels == label
            rows = list(dict.fromkeys(self.components[own].tolist()))
            at = np.array([rows.index(row) for row in self.components[own].tolist()])
            panels.append(Panel(label, "", rows, at, numbers[:, :, own]))
        of_what = f" of {self.title}" if len(panels) > 1 and self.title else ""
        title = f"{100 * self.interval:g} % intervals{of_what}{'. ' * bool(self.note)}{self.note}"
        title = textwrap.shorten(title, _MOST_CHARACTERS, placeholder=" ...")
        forest = Forest(panels, kinds, title, _PANEL_INCHES, _MOST_COLUMNS, "component")
        attributes, drawn = forest.draw(ax, kwargs)
        vars(self).update(attributes)
        self.intervals_: dict[str, list[LineCollection]] = {}
        self.points_: dict[str, list[Line2D]] = {}
        for method, of_panels in zip(self.lower, zip(*drawn, strict=True), strict=True):
            self.intervals_[method], self.points_[method] = map(list, zip(*of_panels, strict=True))
        return self

    def __repr__(self) -> str:
        methods = " and ".join(_METHODS[method][0] for method in self.lower)
        n_panels = len(set(self.panels.tolist()))
        return (
            f"{type(self).__name__}: {100 * self.interval:g} % intervals of {self.title} by {methods}; "
            f"{n_panels} panel{'s' * (n_panels > 1)}, {len(self.names)} parameters"
            f"{'. ' * bool(self.note)}{self.note}"
        )


def _kind(method):
    """What a method is called, and how its intervals and means are drawn."""
    name, color, width, dashes, marker, size = _METHODS[method]
    face = "white" if method == "mean_field" else color
    point = {"marker": marker, "markersize": size, "color": color, "markerfacecolor": face}
    return Kind(name, {"color": color, "linewidth": width, "linestyle": dashes}, point)


def _entries(target, estimator, components, features, is_alone):
    """The entries of a target that are shown: dict of positions in its flat form to (row, panel), str.

    A row is a component. A panel is named by the features of its entries, and by the target too, unless this
    is alone and several panels are under a title that names it.
    """
    n_components, n_features = estimator.means_.shape
    names, places = estimator._feature_names, all_entries(target, n_features)
    if features is not None and target.n_feature_axes:
        if not is_list(features) or not len(features):
            raise ValueError(f"features must be a list of features, or None for all, got {features!r}.")
        places = dict.fromkeys(tuple(row_and_column(target, feature, names)) for feature in features)
    check_number_of_panels(len(places), _FEWER)
    has_features = target.size > target.n_units or (n_features == 1 and target.n_feature_axes)
    entry_name, found = target.entry_name.replace("_", " "), {}
    for row, column in places:
        label = names[row] if row == column else f"{names[row]}, {names[column]}"
        if not has_features:
            label = entry_name
        elif not is_alone or len(places) == 1:
            label = f"{entry_name} of {label}"
        for k in components:
            component = _SHARED if target.n_units < n_components else str(k)
            found[target.flat_index(k, row, column)] = component, label
    return found


def _add_noise(entries, of_targets):
    """Add the entries of noise to those of targets that have some, in the same panels: changes the dicts."""
    for found, target in zip(entries, of_targets, strict=True):
        if has_noise_entry(target):
            *_, (_, label) = found.values()
            found[target.size - 1] = "noise", label


def _checked_methods(methods):
    """The methods, where there are some, all known and different."""
    if not is_list(methods) or not len(methods) or len(set(methods)) < len(methods):
        raise ValueError(f"methods must list one or more different methods, got {methods!r}.")
    return [checked_method(method, "mean_field", *OF_SAMPLES) for method in methods]


def _checked_reference(reference, of_targets, entries, target):
    """Lower and upper ends of the reference's intervals for the entries shown."""
    ends = np.asarray(reference, dtype=np.float64)
    starts = np.cumsum([0, *(of.size for of in of_targets)])
    if ends.shape != (starts[-1], 2):
        raise ValueError(
            f"reference must have a lower and an upper end for each of the {starts[-1]} parameters of "
            f"target={target!r}, shape {(int(starts[-1]), 2)}, got an array of shape {ends.shape}."
        )
    shown = [start + entry for start, own in zip(starts[:-1], entries, strict=True) for entry in own]
    return ends[shown].T
