"""ModelChoiceDisplay: lower bounds and leave-one-out score against the number of components."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils._optional_dependencies import check_matplotlib_support

from sklearn_lrvb.displays.axes import draw_legend, panel_grid, styled, write_beside
from sklearn_lrvb.gaussian_mixture.model_choice import model_choice
from sklearn_lrvb.row_blocks import require_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike, NDArray

    from sklearn_lrvb import LRVBGaussianMixture

_MOST_DIFFERENCES = 12  # Differences from the best are written at the points of up to this many fits.
_MOST_TICKS = 16

# Name, and how the line is drawn. Marker and line style say which is which in print.
_CRITERIA: dict[str, tuple[str, dict[str, Any]]] = {
    "lower_bound": ("lower bound", {"color": "#0072B2", "marker": "o", "linestyle": "solid"}),
    "all_labellings": ("all labellings", {"color": "#D55E00", "marker": "s", "linestyle": "dashed"}),
    "leave_one_out": ("leave-one-out", {"color": "#009E73", "marker": "D", "linestyle": "solid"}),
}
_PANELS = {"lower bound": ("lower_bound", "all_labellings"), "leave-one-out": ("leave_one_out",)}
_RING: dict[str, Any] = {"marker": "o", "markersize": 12, "color": "black", "markerfacecolor": "none"}
_HOLLOW: dict[str, Any] = {"marker": "o", "color": "0.3", "markerfacecolor": "white"}
_CROSS: dict[str, Any] = {"marker": "x", "color": "black"}
# How cells of the HTML table are set.
_NUMBER = 'style="text-align: right; padding: 0.1em 0.7em"'
_REMARK = 'style="text-align: left; padding: 0.1em 0.7em"'


class ModelChoiceDisplay:
    """Lower bounds and leave-one-out score against the number of components.

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
        Nats, by criterion ('lower_bound', 'all_labellings', 'leave_one_out'); NaN where there is none.

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
        The panel of the lower bounds, and that of the leave-one-out score.

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
    that they hardly overlap: the score 'all_labellings'. Where components do overlap it is too high, by at
    most this logarithm. With stick-breaking weights the order of components matters, there are no such
    copies, and the lower bound stands for the evidence.

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
    {'lower_bound': 2, 'all_labellings': 2, 'leave_one_out': 2}
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

        criteria : sequence of {'lower_bound', 'all_labellings', 'leave_one_out'}, default=None
            What to compare. None means all that apply: 'all_labellings' needs exchangeable components
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
        found = model_choice(estimator, X, n_components, criteria, sample_weight, n_jobs)
        return cls(**found).plot(ax=ax, **kwargs)

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
        chosen = {name: [c for c in criteria if c in self.scores] for name, criteria in _PANELS.items()}
        chosen = {name: criteria for name, criteria in chosen.items() if criteria}
        self.ax_, self.axes_, _ = panel_grid(ax, (len(chosen), 1), (6.4, 0.6 + 2.6 * len(chosen)))
        self.figure_ = self.ax_.figure
        self.lines_: dict[str, Any] = {}
        self.error_bars_ = None
        for panel, (name, criteria) in zip(self.axes_[:, 0], chosen.items(), strict=True):
            self._draw_panel(panel, name, criteria, kwargs)
        every = -(-len(self.n_components) // _MOST_TICKS)
        shown, occupied = self.n_components[::every], self.n_occupied[::every]
        for panel in self.axes_[:-1, 0]:
            panel.set_xticks(shown, [])
        labels = [f"{k}" if k == n else f"{k}\n({n})" for k, n in zip(shown, occupied, strict=True)]
        self.axes_[-1, 0].set_xticks(shown, labels)
        holding = " (in brackets: those that hold rows)" if np.any(occupied < shown) else ""
        self.axes_[-1, 0].set_xlabel(f"number of components K{holding}")
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

    def _draw_panel(self, panel, name, criteria, kwargs):
        """Draw some criteria, rings about the best, and crosses at fits that are no strict optimum."""
        for criterion in criteria:
            self._draw_criterion(panel, criterion, kwargs)
        # One ring is enough where criteria agree.
        for k, criterion in {self.best_[c]: c for c in criteria if c in self.best_}.items():
            panel.plot(k, self.scores[criterion][self.n_components == k], linestyle="none", **_RING)
        self._write_differences(panel, criteria[-1])
        crossed = self.n_components[~self.strict_optimum]
        edge = {"transform": panel.get_xaxis_transform(), "linestyle": "none"}
        panel.plot(crossed, np.full(len(crossed), 0.04), **edge, **_CROSS)
        unit = "nats, \N{PLUS-MINUS SIGN} 1 standard error" if "leave_one_out" in criteria else "nats"
        panel.set_ylabel(f"{name}\n({unit})")
        panel.spines[["top", "right"]].set_visible(False)

    def _draw_criterion(self, panel, criterion, kwargs):
        """Draw a line of points, hollow where the fit did not converge, and error bars if there are some."""
        from matplotlib.lines import Line2D

        scores, (label, style) = self.scores[criterion], _CRITERIA[criterion]
        if criterion == "all_labellings":
            all_hold_rows = np.array_equal(self.n_occupied, self.n_components)
            label += ": lower bound + log " + ("K!" if all_hold_rows else "of relabellings")
        style = styled(Line2D, {"markersize": 5, "linewidth": 1.2, "label": label, **style}, kwargs)
        (line,) = panel.plot(self.n_components, scores, **style)
        self.lines_[criterion] = line
        (hollow,) = panel.plot(self.n_components[~self.converged], scores[~self.converged])
        hollow.update_from(line)
        hollow.set(linestyle="none", markerfacecolor="white", label="_", zorder=line.get_zorder() + 0.1)
        if criterion == "leave_one_out":
            error = self.leave_one_out_std_error
            ends = scores - error, scores + error
            self.error_bars_ = panel.vlines(self.n_components, *ends, color=line.get_color(), linewidth=1.2)

    def _write_differences(self, panel, criterion):
        """Write how far each score of a criterion is below the best, in nats."""
        panel.margins(y=0.14)
        if len(self.n_components) > _MOST_DIFFERENCES or criterion not in self.best_:
            return
        scores = self.scores[criterion]
        tops = scores if criterion != "leave_one_out" else scores + self.leave_one_out_std_error
        for k, top, below in zip(self.n_components, tops, scores - np.nanmax(scores), strict=True):
            if below < 0:
                text = f"\N{MINUS SIGN}{-below:.{1 if below > -100 else 0}f}"
                style = {"ha": "center", "fontsize": "x-small", "color": "0.2"}
                write_beside(panel, text, (k, top), (0, 6), **style)

    def _draw_legend(self):
        """Draw one legend, above the panels where the figure's layout makes room for it."""
        from matplotlib.lines import Line2D

        bounds = [line for criterion, line in self.lines_.items() if criterion != "leave_one_out"]
        marks = [("highest score", _RING)]
        marks += [("not converged", _HOLLOW)] * (not self.converged.all())
        marks += [("no strict optimum", _CROSS)] * (not self.strict_optimum.all())
        handles = bounds if len(self.lines_) > 1 else []
        handles += [Line2D([], [], linestyle="none", label=label, **style) for label, style in marks]
        return draw_legend(self.axes_[0, 0], "above", 2, handles=handles, fontsize="small")

    # The table.

    def _table(self):
        """Header, and for every fit its cells, the places of the best scores, and a remark."""
        header = ["K", "occupied", *(_CRITERIA[criterion][0] for criterion in self.scores)]
        scores = [*self.scores.values()]
        cells = [[f"{k}", f"{n}"] for k, n in zip(self.n_components, self.n_occupied, strict=True)]
        for row, numbers in zip(cells, zip(*scores, strict=True), strict=True):
            row += ["" if np.isnan(score) else f"{score:.1f}" for score in numbers]
        if self.leave_one_out_std_error is not None:
            header.append("difference")
            below = self.scores["leave_one_out"] - np.fmax.reduce(self.scores["leave_one_out"])  # NaN if all.
            for row, number, error in zip(cells, below, self.leave_one_out_std_error, strict=True):
                row.append("" if np.isnan(number) else f"{number:z.1f} \N{PLUS-MINUS SIGN} {error:.1f}")
        rows = []
        for i, k in enumerate(self.n_components.tolist()):
            best = {2 + j for j, criterion in enumerate(self.scores) if self.best_.get(criterion) == k}
            remarks = ["not converged"] * (not self.converged[i])
            remarks += ["no strict optimum"] * (not self.strict_optimum[i])
            remarks = remarks or ["see notes"] * (k in self.notes)
            has_failed = self.estimators_ and k not in self.estimators_
            rows.append((cells[i], best, "failed" if has_failed else ", ".join(remarks)))
        return header, rows

    def __repr__(self) -> str:
        header, rows = self._table()
        lines = [([name + " " for name in header], "")]
        for cells, best, remark in rows:
            lines.append(([cell + ("*" if j in best else " ") for j, cell in enumerate(cells)], remark))
        widths = [max(map(len, column)) for column in zip(*(cells for cells, _ in lines), strict=True)]
        table = ["  ".join([*map(str.rjust, cells, widths), remark]).rstrip() for cells, remark in lines]
        return "\n".join([f"{type(self).__name__} (nats; * best)", *table])

    def _repr_html_(self) -> str:
        header, rows = self._table()
        head = "".join(f"<th {_NUMBER}>{html.escape(name)}</th>" for name in header)
        body = ""
        for cells, best, remark in rows:
            shown = [f"<b>{cell}</b>" if j in best else cell for j, cell in enumerate(cells)]
            numbers = "".join(f"<td {_NUMBER}>{cell}</td>" for cell in shown)
            said = f"<td {_REMARK}>{html.escape(remark)}</td>" if remark else ""
            body += f"<tr>{numbers}{said}</tr>"
        notes = "".join(
            f"<li>K = {k}: {html.escape(note)}</li>" for k, own in self.notes.items() for note in own
        )
        folded = f"<details><summary>Notes</summary><ul>{notes}</ul></details>" if notes else ""
        return (
            f"<div><table><caption>{type(self).__name__}: scores in nats, the best in bold</caption>"
            f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{folded}</div>"
        )
