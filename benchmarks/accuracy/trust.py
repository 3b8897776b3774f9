"""Is the line below the table right? A hundred posteriors, each also sampled by long chains.

For every case there are the verdict, and the largest errors in a table of weights, means and standard
deviations by linear response: of a standard deviation, relative, and of a mean, in standard deviations. So
there are those of the exact posterior as it is by itself, and of the limits of its 95 % intervals, in
standard deviations of a normal variable with the same interval; what it costs over the fit and its error
bars; and whether it says that it has converged. They are compared with other chains of the package, of
another seed and several times as many draws.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from time import process_time

import numpy as np
from matplotlib import pyplot as plt

from benchmarks.harness.figures import BLUE, GREEN, GREY, ORANGE, STYLE, saved
from benchmarks.harness.tables import table, text
from benchmarks.problems.clusters import Problem
from benchmarks.problems.populations import planes, three_in_five_features

TITLE = "When to trust linear response"
# Of the reference: of tables of few rows, where chains move slowly; of other tables; and of a quick run.
_MANY_DRAWS, _DRAWS, _QUICK_DRAWS = 30_000, 15_000, 100
_FEW_ROWS = 300
_SD_TOLERANCE, _MEAN_TOLERANCE, _LIMIT_TOLERANCE = 0.1, 0.2, 0.3
_DEVIATIONS_BETWEEN = 3.919928  # Limits of the 95 % interval of a standard normal variable.
_GOOD_BUT_EMPTY = "good, some components empty"
_STATES = ("good", _GOOD_BUT_EMPTY, "rough", "wrong")
_QUICK_CASES = slice(20, None, 60)


@dataclass(frozen=True)
class Case:
    """Rows, and the mixture that is fitted to them.

    Attributes
    ----------
    name : str
    simulate : callable, () -> X
    mixture : dict, parameters of the mixture
    """

    name: str
    simulate: Callable
    mixture: dict = field(default_factory=dict)


def cases():
    """All cases."""
    from benchmarks.problems.small_tables import SMALL_TABLES

    found = [
        Case(f"plane, {d} sd, {n} rows", planes("full", d, n), {"n_components": 2})
        for d in (1.5, 2.0, 2.6, 3.5, 5.0)
        for n in (60, 150, 500, 2000, 6000)
        if n < 6000 or d > 2.0
    ]
    found += [
        Case(f"{kind}, {d} sd, {n} rows", planes(kind, d, n), {"n_components": 2, "covariance_type": kind})
        for kind in ("tied", "diag", "spherical")
        for d in (2.0, 2.6, 3.5)
        for n in (150, 500, 2000)
    ]
    found += [
        Case(f"five features, {d} sd, {n} rows", three_in_five_features(d, n), {"n_components": 3})
        for d in (2.5, 3.0, 4.0)
        for n in (150, 600, 2000, 5000)
    ]
    found += [
        Case(f"ten features, {d} sd, {n} rows", Problem("", n, 10, 3, d).simulate, {"n_components": 3})
        for d in (4.0, 6.0)
        for n in (300, 1000, 3000)
    ]
    found += [
        Case(
            f"five components for two, {kind}, {d} sd, {n} rows",
            planes("full", d, n),
            {"n_components": 5, "covariance_type": kind},
        )
        for kind in ("full", "diag")
        for d in (3.0, 5.0)
        for n in (200, 1000)
    ]
    dirichlet = {"n_components": 2, "weight_concentration_prior_type": "dirichlet_distribution"}
    found += [
        Case(f"Dirichlet, {d} sd, {n} rows", planes("full", d, n), dirichlet)
        for d in (2.0, 2.6, 3.5)
        for n in (150, 500, 2000)
    ]
    found += [
        Case(f"one component, {n} rows", planes("full", 2.0, n), {"n_components": 1}) for n in (20, 200)
    ]
    tables = {one.name: one.rows for one in SMALL_TABLES}
    found += [
        Case(f"{name}, {k} components, {kind}", tables[name], {"n_components": k, "covariance_type": kind})
        for name, k, kind in (
            ("iris", 2, "full"),
            ("iris", 3, "tied"),
            ("iris", 3, "diag"),
            ("iris, 2 axes", 2, "full"),
            ("iris, 2 axes", 3, "full"),
            ("wine", 3, "diag"),
            ("wine", 3, "tied"),
            ("wine, 3 axes", 3, "full"),
            ("breast cancer, 5 axes", 2, "full"),
            ("breast cancer, 5 axes", 3, "diag"),
            ("iris, 2 axes", 2, "spherical"),
            ("wine, 3 axes", 3, "tied"),
            ("breast cancer, 5 axes", 2, "tied"),
            ("diabetes", 2, "diag"),
            ("digits, 8 axes", 5, "diag"),
            ("digits, 8 axes", 10, "spherical"),
        )
    ]
    return found


def measure(settings):
    """A row for every case."""
    for case in cases()[_QUICK_CASES if settings.quick else slice(None)]:
        yield _row(case, settings.quick)


def _row(case, is_quick):
    from benchmarks.harness.inside import occupied_parameters
    from sklearn_lrvb import LRVBGaussianMixture

    X = case.simulate()
    n_draws = _QUICK_DRAWS if is_quick else _MANY_DRAWS if len(X) <= _FEW_ROWS else _DRAWS
    begin = process_time()
    mixture = LRVBGaussianMixture(**{"max_iter": 1000, "random_state": 0, **case.mixture}).fit(X)
    lrvb = mixture.posterior(X, method="lrvb").summary()
    fit_seconds = process_time() - begin
    check = mixture.posterior_check(X, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # What has not converged is in the row.
        begin = process_time()
        exact = mixture.posterior(X, method="exact")
        found = exact.summary()
        exact_seconds = process_time() - begin
        reference = mixture.posterior(X, method="exact", n_draws=n_draws, random_state=1).summary()
    errors = {"lrvb": _errors(lrvb, reference), "exact": _errors(found, reference)}
    return {
        "problem": case.name,
        "n_samples": len(X),
        "n_features": X.shape[1],
        "n_components": mixture.n_components,
        "covariance_type": mixture.covariance_type,
        "n_occupied": mixture.n_occupied_,
        "n_parameters": len(lrvb),
        "mean_shift": float(np.abs(check.mean_shift[occupied_parameters(mixture)]).max()),
        "log_ratio_variance": check.log_ratio_variance,
        "state": check.state,
        **{f"{method}_{name}_error": own[name] for method, own in errors.items() for name in own},
        "has_converged": int("not converged" not in exact.note),
        "note": exact.note,
        "cost": exact_seconds / fit_seconds,
    }


def _errors(found, reference):
    """Largest errors of a table of standard deviations, relative, and of means and limits, in sd."""
    is_known = (reference["sd"] > 0) & np.isfinite(reference["sd"])  # The weight of one component is certain.
    found, reference = found[is_known], reference[is_known]
    unit = (reference["upper"] - reference["lower"]) / _DEVIATIONS_BETWEEN
    of_limits = [np.abs(found[limit] - reference[limit]) / unit for limit in ("lower", "upper")]
    return {
        "sd": float(np.abs(found["sd"] / reference["sd"] - 1.0).max()),
        "mean": float(np.abs((found["mean"] - reference["mean"]) / reference["sd"]).max()),
        "limit": float(max(own.max() for own in of_limits)),
    }


def _is_wrong(row):
    """Whether linear response is off by more than what is tolerated."""
    return row["lrvb_sd_error"] > _SD_TOLERANCE or row["lrvb_mean_error"] > _MEAN_TOLERANCE


def _state(row):
    """The state of linear response, apart where it is good only if empty components get no rows."""
    is_good_but_empty = row["state"] == "good" and row["n_occupied"] < row["n_components"]
    return _GOOD_BUT_EMPTY if is_good_but_empty else row["state"]


def section(found):
    by_state = [(state, [row for row in found if _state(row) == state]) for state in _STATES]
    outcomes = table(
        [
            ("state", lambda one: one[0]),
            ("cases", lambda one: len(one[1])),
            ("LRVB off", lambda one: sum(map(_is_wrong, one[1]))),
            ("sd of LRVB: median", lambda one: _middle(one[1], "lrvb_sd_error", "{:.0%}")),
            ("worst", lambda one: _largest(one[1], "lrvb_sd_error", "{:.0%}")),
            ("mean of LRVB: median", lambda one: _middle(one[1], "lrvb_mean_error", "{:.2f} sd")),
            ("worst", lambda one: _largest(one[1], "lrvb_mean_error", "{:.2f} sd")),
        ],
        by_state,
    )
    shown = table(
        [
            ("case", text("problem", "{}")),
            ("N", text("n_samples", "{:.0f}")),
            ("parameters", text("n_parameters", "{:.0f}")),
            ("occupied", lambda row: f"{row['n_occupied']:.0f} of {row['n_components']:.0f}"),
            ("mean shift", text("mean_shift", "{:.2f}")),
            ("variance", text("log_ratio_variance", "{:.2f}")),
            ("state", text("state", "{}")),
            ("LRVB: sd", text("lrvb_sd_error", "{:.0%}")),
            ("mean", text("lrvb_mean_error", "{:.2f}")),
            ("exact: sd", text("exact_sd_error", "{:.0%}")),
            ("mean", text("exact_mean_error", "{:.2f}")),
            ("limit", text("exact_limit_error", "{:.2f}")),
            ("converged", lambda row: "yes" if row["has_converged"] else "no"),
            ("cost", text("cost", "{:.0f}")),
        ],
        sorted(found, key=lambda row: row["mean_shift"]),
    )
    converged = [row for row in found if row["has_converged"]]
    costs = [row["cost"] for row in found]
    return f"""{len(found)} posteriors, from {min(row["n_samples"] for row in found):,.0f} to
{max(row["n_samples"] for row in found):,.0f} rows and with {min(row["n_parameters"] for row in found):.0f} to
{max(row["n_parameters"] for row in found):.0f} parameters: overlapping and separate clusters, all covariance
types, both weight priors, real tables, and more components than clusters. Linear response counts as off
where, in a table of weights, means and standard deviations, a standard deviation is wrong by more than
{_SD_TOLERANCE:.0%}, or a mean by more than {_MEAN_TOLERANCE} standard deviations; it is so in
{sum(map(_is_wrong, found))} cases. The errors are largest ones of many parameters, and have the noise of the
reference in them.

![The mean shift and the errors of linear response](trust.png)

{outcomes}

The exact posterior says in {len(found) - len(converged)} cases that it has not converged. Of the others, the
worst limit of a 95 % interval of a table is off by {_middle(converged, "exact_limit_error", "{:.2f} sd")} in
the median and by more than {_LIMIT_TOLERANCE} sd in
{sum(row["exact_limit_error"] > _LIMIT_TOLERANCE for row in converged)}, at most by
{_largest(converged, "exact_limit_error", "{:.2f} sd")}; the worst mean by
{_middle(converged, "exact_mean_error", "{:.2f} sd")} and at most by
{_largest(converged, "exact_mean_error", "{:.2f} sd")}; the worst standard deviation by
{_middle(converged, "exact_sd_error", "{:.0%}")} and at most by
{_largest(converged, "exact_sd_error", "{:.0%}")} (it may not exist where a component has few rows). It takes
{np.median(costs):.0f} times as long as the fit and its error bars in the median, and up to
{max(costs):.0f} times.

All cases, by their mean shift:

{shown}
"""


def _middle(rows, name, shape):
    return shape.format(np.median([row[name] for row in rows])) if rows else ""


def _largest(rows, name, shape):
    return shape.format(max(row[name] for row in rows)) if rows else ""


def draw(found, path):
    """The errors of linear response over the mean shift, by verdict.

    Parameters
    ----------
    found : list of rows, of one case each
    """
    styles = {"good": ("o", BLUE), "rough": ("s", GREEN), "wrong": ("D", ORANGE)}
    with plt.rc_context(STYLE):
        figure, panels = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
        for axes, (name, title, limit) in zip(
            panels,
            (
                ("lrvb_sd_error", "largest error of a standard deviation", _SD_TOLERANCE),
                ("lrvb_mean_error", "largest error of a mean, in sd", _MEAN_TOLERANCE),
            ),
            strict=True,
        ):
            for key, (marker, colour) in styles.items():
                here = [row for row in found if row["state"] == key]
                axes.plot(
                    [max(row["mean_shift"], 1e-3) for row in here],
                    [row[name] for row in here],
                    marker,
                    color=colour,
                    markersize=4,
                    alpha=0.8,
                    label=key,
                )
            axes.axhline(limit, color=GREY, linewidth=1)
            axes.set(xscale="log", yscale="log", xlabel="largest mean shift, in sd")
            axes.set_title(title, size=9)
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
        saved(figure, path)
