"""Is the verdict of ``posterior_check`` right? A hundred posteriors, each also sampled by long chains.

For every case there are the verdict and the largest errors of linear response over all parameters of occupied
components: of a standard deviation, relative, and of a mean, in standard deviations. So there are those of
the exact posterior as it is by itself, what it costs over the fit and its error bars, and whether it says
that it has converged. They are compared with other chains of the package, of another seed, that run for
several thousand draws more.
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
TARGETS = ("log_weights", "means", "precisions")
# Of the reference: of tables of few rows, where chains move slowly; of other tables; and of a quick run.
_MANY_DRAWS, _DRAWS, _QUICK_DRAWS = 20_000, 4000, 100
_FEW_ROWS = 300
_SD_TOLERANCE, _MEAN_TOLERANCE = 0.1, 0.2
_STATES = ("good", "rough", "wrong")
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
    from benchmarks.harness.inside import exact_posterior, occupied_parameters, training_rows
    from sklearn_lrvb import LRVBGaussianMixture

    X = case.simulate()
    n_draws = _QUICK_DRAWS if is_quick else _MANY_DRAWS if len(X) <= _FEW_ROWS else _DRAWS
    begin = process_time()
    mixture = LRVBGaussianMixture(
        **{"prior": "fixed", "max_iter": 1000, "random_state": 0, **case.mixture}
    ).fit(X)
    sds, known = mixture.posterior_std_, occupied_parameters(mixture)
    fit_seconds = process_time() - begin
    check = mixture.posterior_check(X, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # What has not converged is in the row.
        begin = process_time()
        exact = exact_posterior(mixture, X, 0)
        exact_seconds = process_time() - begin
        reference = exact_posterior(mixture, X, 1)
    means, deviations = _moments(exact.draws)
    errors_of_means = np.concatenate([exact.draws.errors(target)[0] for target in TARGETS])
    mean, sd = _moments(reference.at_least(n_draws, training_rows(mixture)).draws)

    def errors(of_means, of_sds):
        return (
            float(np.abs(of_sds / sd - 1.0)[known].max()),
            float((np.abs(of_means - mean) / sd)[known].max()),
        )

    lrvb, corrected = errors(mixture.posterior_mean_, sds), errors(means, deviations)
    return {
        "problem": case.name,
        "n_samples": len(X),
        "n_features": X.shape[1],
        "n_components": mixture.n_components,
        "covariance_type": mixture.covariance_type,
        "n_occupied": mixture.n_occupied_,
        "n_parameters": int(known.sum()),
        "mean_shift": float(np.abs(check.mean_shift[known]).max()),
        "log_ratio_variance": check.log_ratio_variance,
        "state": check.state,
        "lrvb_sd_error": lrvb[0],
        "lrvb_mean_error": lrvb[1],
        "exact_sd_error": corrected[0],
        "exact_mean_error": corrected[1],
        "effective_draws": float(errors_of_means[known].max() ** -2.0),
        "said_error": exact.largest_error,
        "has_converged": int(exact.has_converged),
        "share_away": exact.share_away,
        "cost": exact_seconds / fit_seconds,
    }


def _moments(draws):
    """Means and standard deviations of all parameters, (d,) each."""
    return (np.concatenate(own) for own in zip(*map(draws.moments, TARGETS), strict=True))


def _is_wrong(row, method):
    """Whether a method is off by more than what is tolerated."""
    return row[f"{method}_sd_error"] > _SD_TOLERANCE or row[f"{method}_mean_error"] > _MEAN_TOLERANCE


def section(found):
    by_state = [(state, [row for row in found if row["state"] == state]) for state in _STATES]
    outcomes = table(
        [
            ("state", lambda one: one[0]),
            ("cases", lambda one: len(one[1])),
            ("LRVB off", lambda one: sum(_is_wrong(row, "lrvb") for row in one[1])),
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
            ("effective draws", text("effective_draws", "{:.0f}")),
            ("converged", lambda row: "yes" if row["has_converged"] else "no"),
            ("elsewhere", text("share_away", "{:.1%}")),
            ("cost", text("cost", "{:.0f}")),
        ],
        sorted(found, key=lambda row: row["mean_shift"]),
    )
    converged = [row for row in found if row["has_converged"]]
    costs = [row["cost"] for row in found]
    return f"""{len(found)} posteriors, from {min(row["n_samples"] for row in found):,.0f} to
{max(row["n_samples"] for row in found):,.0f} rows and with {min(row["n_parameters"] for row in found):.0f} to
{max(row["n_parameters"] for row in found):.0f} parameters: overlapping and separate clusters, all covariance
types, both weight priors, real tables, and more components than clusters. A method counts as off where, among
all parameters of occupied components, a standard deviation is wrong by more than {_SD_TOLERANCE:.0%}, or a
mean by more than {_MEAN_TOLERANCE} standard deviations; linear response is so in
{sum(_is_wrong(row, "lrvb") for row in found)} cases. The errors are largest ones of many parameters, and have
the noise of the reference in them.

![The mean shift and the errors of linear response](trust.png)

{outcomes}

The exact posterior says in {len(found) - len(converged)} cases that it has not converged. Of the others it is
off in {sum(_is_wrong(row, "exact") for row in converged)}, at most by
{_largest(converged, "exact_sd_error", "{:.0%}")} and {_largest(converged, "exact_mean_error", "{:.2f} sd")}.
It takes {np.median(costs):.0f} times as long as the fit and its error bars in the median, and up to
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
