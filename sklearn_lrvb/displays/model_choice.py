"""ModelChoiceDisplay: lower bound, evidence and leave-one-out score against the number of components."""

from __future__ import annotations

import html
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field
from numbers import Integral
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy.special import gammaln
from sklearn.base import clone
from sklearn.utils import _safe_indexing
from sklearn.utils._optional_dependencies import check_matplotlib_support
from sklearn.utils.parallel import Parallel, delayed

from sklearn_lrvb.caller_warnings import warn_caller
from sklearn_lrvb.displays.axes import draw_legend, panel_grid, styled
from sklearn_lrvb.displays.selection import is_list
from sklearn_lrvb.gaussian_mixture.given_rows import require_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike, NDArray

    from sklearn_lrvb import LRVBGaussianMixture

_MOST_DIFFERENCES = 12  # Differences from the best are written at the points of up to this many fits.
_MOST_TICKS = 16

# Label of the line, and how it is drawn. Marker and line style say which is which in print.
_CRITERIA: dict[str, tuple[str, dict[str, Any]]] = {
    "lower_bound": ("lower bound", {"color": "#0072B2", "marker": "o", "linestyle": "solid"}),
    "evidence": ("log evidence", {"color": "#D55E00", "marker": "s", "linestyle": "dashed"}),
    "leave_one_out": ("leave-one-out", {"color": "#009E73", "marker": "D", "linestyle": "solid"}),
}
_RING: dict[str, Any] = {"marker": "o", "markersize": 12, "color": "black", "markerfacecolor": "none"}
_HOLLOW: dict[str, Any] = {"marker": "o", "color": "0.3", "markerfacecolor": "white"}
_CROSS: dict[str, Any] = {"marker": "x", "color": "black"}
# How cells of the HTML table are set.
_NUMBER = 'style="text-align: right; padding: 0.1em 0.7em"'
_REMARK = 'style="text-align: left; padding: 0.1em 0.7em"'
_PANELS = (("lower_bound", "evidence"), ("leave_one_out",))


class ModelChoiceDisplay:
    """Lower bound, log evidence and leave-one-out score against the number of components.

    All are in nats, and more is better. Next to each point is its difference from the best, which is ringed.
    Hollow points are fits that did not converge. A cross marks fits that are no strict optimum: they have no
    leave-one-out score, and the reason is in `notes`.

    Create it with :meth:`from_estimator`; the parameters are kept as attributes.

    Parameters
    ----------
    n_components : ndarray of shape (n_fits,)
        Numbers of components, K, rising.

    n_occupied : ndarray of shape (n_fits,)
        How many of them hold rows.

    scores : dict of str to ndarray of shape (n_fits,)
        Nats, by criterion ('lower_bound', 'evidence', 'leave_one_out'); NaN where there is none.

    leave_one_out_std_error : ndarray of shape (n_fits,), default=None
        Standard errors of the differences of the leave-one-out scores from the best of them, which has 0.

    converged, strict_optimum : ndarray of shape (n_fits,) of bool, default=None
        Whether each fit converged, and whether it ended in a strict optimum; None means that all did.

    notes : dict of int to list of str, default=None
        Warnings and errors of the fits, by the number of components.

    estimators : dict of int to LRVBGaussianMixture, default=None
        The fitted mixtures, by the number of components.

    Attributes
    ----------
    estimators_ : dict of int to LRVBGaussianMixture
        The fitted mixtures, by the number of components. Fits that failed are missing.

    best_ : dict of str to int
        The number of components with the highest score, by criterion.

    lines_ : dict of str to matplotlib Line2D
        The points, by criterion.

    error_bars_ : matplotlib LineCollection or None
        One standard error to both sides of the leave-one-out scores.

    legend_ : matplotlib Legend
        Above the panels where the figure's layout makes room for it, otherwise inside the first.

    axes_ : ndarray of matplotlib Axes, of shape (n_panels, 1)
        The panel of the lower bound and the evidence, and that of the leave-one-out score.

    ax_ : matplotlib Axes
        The axes drawn on: the panel itself, or the axes that hold the panels.

    figure_ : matplotlib Figure
        Their figure.

    Notes
    -----
    The lower bound of a fit bounds the log evidence, log p(X), with every constant. The fit describes one
    optimum. Where components are exchangeable, that is with Dirichlet weights, every optimum has copies that
    differ in the numbers of its components alone: of K components, k of which hold rows, K! / (K - k)! copies
    (K! where all hold rows). Together they have the lower bound of one plus the log of their number, provided
    that they hardly overlap. That is what is called log evidence here; where components do overlap it is too
    high, by at most this logarithm. With stick-breaking weights the order of components matters, there are no
    such copies, and the lower bound stands for the evidence.

    The leave-one-out score is the sum over rows of :meth:`LRVBGaussianMixture.loo_score_samples`, weighted by
    `sample_weight`. With d the n differences of two fits in single rows, the standard error of the difference
    of their sums is the standard deviation of d times the square root of n. Fits within a standard error or
    two of the best predict about as well.

    A fit may leave components empty (numbers in brackets on the axis). It then describes fewer clusters than
    it has components, and its score differs from that of the smaller fit through the prior of the weights
    alone. That depends on K: by default `weight_concentration_prior` is 1 / K.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_lrvb import LRVBGaussianMixture
    >>> from sklearn_lrvb.displays import ModelChoiceDisplay
    >>> X = np.random.default_rng(0).normal(size=(200, 2)) + np.repeat([[0, 0], [4, 1]], 100, axis=0)
    >>> mixture = LRVBGaussianMixture(
    ...     weight_concentration_prior_type="dirichlet_distribution", random_state=0
    ... )
    >>> display = ModelChoiceDisplay.from_estimator(mixture, X, n_components=range(1, 4))
    >>> display.best_
    {'lower_bound': 2, 'evidence': 2, 'leave_one_out': 2}
    >>> display.estimators_[2].means_.shape
    (2, 2)
    """

    def __init__(
        self,
        *,
        n_components: NDArray,
        n_occupied: NDArray,
        scores: dict[str, NDArray],
        leave_one_out_std_error: NDArray | None = None,
        converged: NDArray | None = None,
        strict_optimum: NDArray | None = None,
        notes: dict[int, list[str]] | None = None,
        estimators: dict[int, LRVBGaussianMixture] | None = None,
    ) -> None:
        self.n_components = n_components
        self.n_occupied = n_occupied
        self.scores = scores
        self.leave_one_out_std_error = leave_one_out_std_error
        self.converged = np.ones(len(n_components), dtype=bool) if converged is None else converged
        self.strict_optimum = (
            np.ones(len(n_components), dtype=bool) if strict_optimum is None else strict_optimum
        )
        self.notes = {} if notes is None else notes
        self.estimators_ = {} if estimators is None else estimators

    @classmethod
    def from_estimator(
        cls,
        estimator: LRVBGaussianMixture,
        X: ArrayLike,
        *,
        n_components: Iterable[int] = range(1, 9),
        criteria: Sequence[str] | None = None,
        sample_weight: ArrayLike | None = None,
        n_jobs: int | None = None,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Fit mixtures of several numbers of components, and plot how they compare.

        Parameters
        ----------
        estimator : LRVBGaussianMixture
            A mixture, fitted or not. Its clones are fitted, with all its parameters but `n_components`; it is
            left as it is. With an integer as `random_state` the result is reproducible, whatever `n_jobs`.

        X : array-like of shape (n_samples, n_features)
            Training rows.

        n_components : iterable of int, default=range(1, 9)
            The numbers of components to compare.

        criteria : sequence of {'lower_bound', 'evidence', 'leave_one_out'}, default=None
            What to compare. None means all that apply: 'evidence' needs exchangeable components
            (``weight_concentration_prior_type="dirichlet_distribution"``), and neither it nor 'lower_bound'
            compares fits under ``prior="flat"``, whose density is known up to a factor that depends on
            `n_components`.

        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts, as in :meth:`LRVBGaussianMixture.fit`.

        n_jobs : int or None, default=None
            Number of fits at a time, each in a process of its own; None is one, as in joblib. Each fit has
            the estimator's own `n_jobs` threads.

        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure. Several panels take the place of the axes.

        **kwargs : dict
            Keyword arguments of matplotlib's `plot`, which draws the points and lines.

        Returns
        -------
        display : ModelChoiceDisplay
            The display, drawn.

        Raises
        ------
        ValueError
            If `n_components` or `criteria` are invalid or do not go with the estimator, or if every fit
            fails.

        Warns
        -----
        UserWarning
            Once, where fits that converged or their leave-one-out scores warn; all messages are in `notes`.
            Fits that did not converge are marked in the figure and in the table, without a warning.
        """
        check_matplotlib_support(f"{cls.__name__}.from_estimator")
        require_table(X, cls.__name__)
        numbers = _checked_numbers(n_components, X)
        chosen = _checked_criteria(criteria, estimator)
        if not (isinstance(estimator.init_params, str) or callable(estimator.init_params)):
            raise ValueError(
                "init_params is an array, which starts fits of one n_components alone. Give the estimator a "
                "string or a callable."
            )
        fits = Parallel(n_jobs=n_jobs)(
            delayed(_fit)(clone(estimator).set_params(n_components=k), X, sample_weight, chosen)
            for k in numbers
        )
        if all(fit.error is not None for fit in fits):
            raise fits[0].error
        _warn_of(fits, numbers)
        display = cls(
            n_components=np.array(numbers),
            n_occupied=np.array([fit.n_occupied for fit in fits]),
            scores={criterion: np.array([fit.score(criterion) for fit in fits]) for criterion in chosen},
            leave_one_out_std_error=_std_errors(fits) if "leave_one_out" in chosen else None,
            converged=np.array([fit.converged for fit in fits]),
            strict_optimum=np.array([fit.strict_optimum for fit in fits]),
            notes={k: fit.notes for k, fit in zip(numbers, fits, strict=True) if fit.notes},
            estimators={k: f.estimator for k, f in zip(numbers, fits, strict=True) if f.error is None},
        )
        return display.plot(ax=ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Draw the comparison again, on the same or other axes.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure. Several panels take the place of the axes.

        **kwargs : dict
            Keyword arguments of matplotlib's `plot`, which draws the points and lines.

        Returns
        -------
        display : ModelChoiceDisplay
            The display itself.

        Raises
        ------
        ValueError
            If there are several panels, and `ax` has no place in a grid of subplots.
        """
        check_matplotlib_support(f"{type(self).__name__}.plot")
        panels = [[c for c in panel if c in self.scores] for panel in _PANELS]
        panels = [panel for panel in panels if panel]
        self.ax_, self.axes_, _ = panel_grid(ax, (len(panels), 1), (6.4, 0.6 + 2.6 * len(panels)))
        self.figure_ = self.ax_.figure
        self.lines_: dict[str, Any] = {}
        self.error_bars_ = None
        for panel, criteria in zip(self.axes_[:, 0], panels, strict=True):
            for criterion in criteria:
                self._draw_criterion(panel, criterion, kwargs)
            self._ring_best(panel, criteria)
            self._write_differences(panel, criteria[-1])
            self._cross_out(panel)
            self._label_panel(panel, criteria, is_last=panel is self.axes_[-1, 0])
        self.legend_ = self._draw_legend()
        return self

    @property
    def best_(self) -> dict[str, int]:
        """The number of components with the highest score, by criterion; without those that no fit has."""
        return {
            criterion: int(self.n_components[np.nanargmax(scores)])
            for criterion, scores in self.scores.items()
            if not np.isnan(scores).all()
        }

    def _draw_criterion(self, panel, criterion, kwargs):
        """Draw one line of points, hollow where the fit did not converge, with a ring about the best."""
        from matplotlib.lines import Line2D

        scores, (_, style) = self.scores[criterion], _CRITERIA[criterion]
        style = {"markersize": 5, "linewidth": 1.2, "label": self._label(criterion), **style}
        (line,) = panel.plot(self.n_components, scores, **styled(Line2D, style, kwargs))
        self.lines_[criterion] = line
        hollow = ~self.converged
        panel.plot(
            self.n_components[hollow],
            scores[hollow],
            linestyle="none",
            marker=line.get_marker(),
            markersize=line.get_markersize(),
            color=line.get_color(),
            markerfacecolor="white",
            zorder=line.get_zorder() + 0.1,
        )
        if criterion == "leave_one_out":
            error = self.leave_one_out_std_error
            ends = scores - error, scores + error
            self.error_bars_ = panel.vlines(self.n_components, *ends, color=line.get_color(), linewidth=1.2)

    def _ring_best(self, panel, criteria):
        """Draw a ring about the best by each criterion, but one for those that agree."""
        best = {self.best_[c]: self.scores[c] for c in criteria if c in self.best_}
        for k, scores in best.items():
            at = self.n_components == k
            panel.plot(self.n_components[at], scores[at], linestyle="none", **_RING)

    def _label(self, criterion):
        """The name of a criterion in the legend."""
        if criterion == "evidence":
            all_occupied = np.array_equal(self.n_occupied, self.n_components)
            return "log evidence: lower bound + log " + ("K!" if all_occupied else "of relabellings")
        return _CRITERIA[criterion][0]

    def _write_differences(self, panel, criterion):
        """Write how far each score of a criterion is below the best, in nats."""
        from matplotlib.patheffects import withStroke

        panel.margins(y=0.14)
        if len(self.n_components) > _MOST_DIFFERENCES or criterion not in self.best_:
            return
        scores = self.scores[criterion]
        tops = scores if criterion != "leave_one_out" else scores + self.leave_one_out_std_error
        for k, top, below in zip(self.n_components, tops, scores - np.nanmax(scores), strict=True):
            if below < 0:
                panel.annotate(
                    f"\N{MINUS SIGN}{-below:.{1 if below > -100 else 0}f}",
                    (k, top),
                    xytext=(0, 6),
                    textcoords="offset points",
                    ha="center",
                    fontsize="x-small",
                    color="0.2",
                    path_effects=[withStroke(linewidth=2, foreground="white")],
                )

    def _cross_out(self, panel):
        """Mark fits that are no strict optimum on the lower edge."""
        crossed = self.n_components[~self.strict_optimum]
        edge = panel.get_xaxis_transform()
        panel.plot(crossed, np.full(len(crossed), 0.04), transform=edge, linestyle="none", **_CROSS)

    def _draw_legend(self):
        """Draw one legend, above the panels where the figure's layout makes room for it."""
        from matplotlib.lines import Line2D

        handles = (
            [self.lines_[c] for c in self.lines_ if c != "leave_one_out"] if len(self.lines_) > 1 else []
        )
        marks = [("highest score", _RING)]
        marks += [("not converged", _HOLLOW)] * (not self.converged.all())
        marks += [("no strict optimum", _CROSS)] * (not self.strict_optimum.all())
        handles += [Line2D([], [], linestyle="none", label=label, **style) for label, style in marks]
        return draw_legend(self.axes_[0, 0], "above", 2, handles=handles, fontsize="small")

    def _label_panel(self, panel, criteria, is_last):
        """Label both axes; K on the last panel alone, with the number of components that hold rows."""
        name = "log evidence" if "evidence" in criteria else _CRITERIA[criteria[0]][0]
        unit = "nats" if criteria[0] != "leave_one_out" else "nats, \N{PLUS-MINUS SIGN} 1 standard error"
        panel.set_ylabel(f"{name}\n({unit})")
        panel.spines[["top", "right"]].set_visible(False)
        every = -(-len(self.n_components) // _MOST_TICKS)
        shown, occupied = self.n_components[::every], self.n_occupied[::every]
        labels = [f"{k}" if k == n else f"{k}\n({n})" for k, n in zip(shown, occupied, strict=True)]
        panel.set_xticks(shown, labels if is_last else [])
        if is_last:
            some_empty = np.any(occupied < shown)
            holding = " (in brackets: those that hold rows)" if some_empty else ""
            panel.set_xlabel(f"number of components K{holding}")

    # The table.

    def _table(self):
        """Header, and a row of text for every fit with the places of the best scores."""
        header = ["K", "occupied", *(_CRITERIA[criterion][0] for criterion in self.scores)]
        if self.leave_one_out_std_error is not None:
            header.append("difference")
        rows = []
        for i, k in enumerate(self.n_components.tolist()):
            best = {1 + j for j, c in enumerate(self.scores, 1) if self.best_.get(c) == k}
            cells = [f"{k}", f"{self.n_occupied[i]}"]
            cells += ["" if np.isnan(s[i]) else f"{s[i]:.1f}" for s in self.scores.values()]
            if self.leave_one_out_std_error is not None:
                cells.append(self._difference(i))
            rows.append((cells, best, self._remark(i)))
        return header, rows

    def _difference(self, i):
        """Difference of a leave-one-out score from the best, with its standard error."""
        scores = self.scores["leave_one_out"]
        if np.isnan(scores[i]):
            return ""
        return (
            f"{scores[i] - np.nanmax(scores):z.1f} \N{PLUS-MINUS SIGN} {self.leave_one_out_std_error[i]:.1f}"
        )

    def _remark(self, i):
        """What is the matter with a fit, in a few words."""
        k = int(self.n_components[i])
        if self.estimators_ and k not in self.estimators_:
            return "failed"
        remarks = ["not converged"] * (not self.converged[i])
        remarks += ["no strict optimum"] * (not self.strict_optimum[i])
        return ", ".join(remarks) or ("see notes" if k in self.notes else "")

    def __repr__(self) -> str:
        header, rows = self._table()
        marked = [[c + ("*" if j in best else " ") for j, c in enumerate(cells)] for cells, best, _ in rows]
        lines = [[name + " " for name in header], *marked]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        remarks = ["", *(remark for *_, remark in rows)]
        table = [
            "  ".join(
                [cell.rjust(width) for cell, width in zip(line, widths, strict=True)] + [remark]
            ).rstrip()
            for line, remark in zip(lines, remarks, strict=True)
        ]
        return "\n".join([f"{type(self).__name__} (nats; * best)", *table])

    def _repr_html_(self) -> str:
        header, rows = self._table()
        head = "".join(f"<th {_NUMBER}>{html.escape(name)}</th>" for name in header)
        body = []
        for cells, best, remark in rows:
            shown = [f"<b>{cell}</b>" if j in best else cell for j, cell in enumerate(cells)]
            numbers = "".join(f"<td {_NUMBER}>{cell}</td>" for cell in shown)
            body.append(numbers + (f"<td {_REMARK}>{html.escape(remark)}</td>" if remark else ""))
        return (
            f"<div><table><caption>{type(self).__name__}: scores in nats, the best in bold</caption>"
            f"<thead><tr>{head}</tr></thead><tbody>"
            + "".join(f"<tr>{row}</tr>" for row in body)
            + f"</tbody></table>{self._notes_html()}</div>"
        )

    def _notes_html(self):
        """The notes, folded away; empty without any."""
        items = [f"<li>K = {k}: {html.escape(note)}</li>" for k, own in self.notes.items() for note in own]
        return f"<details><summary>Notes</summary><ul>{''.join(items)}</ul></details>" if items else ""


@dataclass
class _Fit:
    """One fit, and what came of it.

    Attributes
    ----------
    estimator : LRVBGaussianMixture
    error : ValueError or None, why there is no fit
    strict_optimum : bool
    row_scores : (n_rows,) leave-one-out scores of the rows that count, or None
    weights : (n_rows,) how often they count, or the number 1
    notes, warned : list of str, all messages, and those that the user is warned of
    """

    estimator: LRVBGaussianMixture
    error: ValueError | None = None
    strict_optimum: bool = True
    row_scores: NDArray | None = None
    weights: Any = 1.0
    notes: list[str] = field(default_factory=list)
    warned: list[str] = field(default_factory=list)

    @property
    def n_occupied(self):
        """Number of components that hold rows; 0 where there is no fit."""
        return 0 if self.error is not None else self.estimator.n_occupied_

    @property
    def converged(self):
        """Whether there is a fit that converged."""
        return self.error is None and bool(self.estimator.converged_)

    def score(self, criterion):
        """Its score in nats, or NaN."""
        if self.error is not None:
            return np.nan
        if criterion == "leave_one_out":
            return np.nan if self.row_scores is None else np.sum(self.weights * self.row_scores)
        n_components, n_empty = self.estimator.n_components, self.estimator.n_components - self.n_occupied
        log_copies = gammaln(n_components + 1) - gammaln(n_empty + 1)
        return float(self.estimator.lower_bound_ + log_copies * (criterion == "evidence"))


def _fit(estimator, X, sample_weight, criteria):
    """Fit an estimator and score it: _Fit. Warnings are kept."""
    fit = _Fit(estimator)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            estimator.fit(X, sample_weight=sample_weight)
        except ValueError as error:
            fit.error, fit.strict_optimum = error, False
            fit.notes.append(str(error))
            return fit
        try:
            if "leave_one_out" in criteria:
                rows, weights = _counted(X, sample_weight)
                fit.row_scores = estimator.loo_score_samples(rows, weights)
                fit.weights = 1.0 if weights is None else weights
            else:
                _ = estimator.weights_std_  # Refused where the fit is no strict optimum.
        except ValueError as error:
            fit.strict_optimum = False
            fit.notes.append(str(error))
        except MemoryError as error:
            fit.notes.append(str(error))
    fit.notes += [str(warning.message) for warning in caught]
    if fit.converged:
        fit.warned = [str(warning.message) for warning in caught]
    return fit


def _counted(X, sample_weight):
    """The rows that count, and how often: those of weight zero may have no finite score."""
    if sample_weight is None:
        return X, None
    weights = np.asarray(sample_weight, dtype=np.float64)
    counted = np.flatnonzero(weights)
    return _safe_indexing(X, counted), weights[counted]


def _std_errors(fits):
    """Standard errors of the differences in leave-one-out scores from the best fit, (n_fits,)."""
    totals = np.array([fit.score("leave_one_out") for fit in fits])
    if np.isnan(totals).all():
        return np.full(len(fits), np.nan)
    best = fits[np.nanargmax(totals)].row_scores
    return np.array([_std_error(f.row_scores, best, f.weights) for f in fits])


def _std_error(scores, best, weights):
    """Standard error of a weighted sum of differences, the rows being a sample."""
    if scores is None:
        return np.nan
    differences, weights = scores - best, np.broadcast_to(weights, scores.shape)
    n_rows = weights.sum()
    deviations = differences - np.sum(weights * differences) / n_rows
    return np.sqrt(n_rows / max(n_rows - 1.0, 1.0) * np.sum(weights * np.square(deviations)))


def _warn_of(fits, numbers):
    """Warn once of all that converged fits warned of; those that did not converge are marked."""
    warned = [(k, fit.warned[0]) for k, fit in zip(numbers, fits, strict=True) if fit.warned]
    if warned:
        k, message = warned[0]
        which = ", ".join(str(number) for number, _ in warned)
        warn_caller(
            f"Fits with n_components = {which} warned, and the display's `notes` have all messages. The "
            f"first, of n_components = {k}: {message}"
        )


def _checked_numbers(n_components, X):
    """The numbers of components, rising, each once."""
    numbers = list(n_components) if isinstance(n_components, Iterable) else []
    if not numbers or not all(isinstance(k, Integral) and not isinstance(k, bool) and k > 0 for k in numbers):
        raise ValueError(
            f"n_components must list one or more positive integers, as range(1, 9), got {n_components!r}."
        )
    numbers = sorted({int(k) for k in numbers})
    n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
    if numbers[-1] > n_rows:
        raise ValueError(f"n_components goes up to {numbers[-1]}, more than the {n_rows} rows of X.")
    return numbers


def _checked_criteria(criteria, estimator):
    """The criteria to compare by, in the order in which they are drawn."""
    flat = estimator.prior == "flat"
    exchangeable = estimator.weight_concentration_prior_type == "dirichlet_distribution"
    refused = {}
    if flat:
        reason = (
            "prior='flat' is known up to a factor that depends on n_components: (a) use prior='conjugate'"
        )
        refused = dict.fromkeys(("lower_bound", "evidence"), f"{reason}; (b) compare by 'leave_one_out'")
    elif not exchangeable:
        refused["evidence"] = (
            "components are not exchangeable under stick-breaking weights: (a) compare by 'lower_bound'; (b) "
            "use weight_concentration_prior_type='dirichlet_distribution'"
        )
    if criteria is None:
        return [criterion for criterion in _CRITERIA if criterion not in refused]
    found = list(criteria) if is_list(criteria) else []
    if not found or any(criterion not in _CRITERIA for criterion in found):
        raise ValueError(f"criteria must list one or more of {', '.join(_CRITERIA)}, got {criteria!r}.")
    for criterion in found:
        if criterion in refused:
            raise ValueError(f"{criterion!r} is undefined, since {refused[criterion]}.")
    return [criterion for criterion in _CRITERIA if criterion in found]
