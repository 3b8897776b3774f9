"""Is the verdict of ``posterior_check`` right? A hundred posteriors, each also sampled by many Gibbs chains.

For every case there are the verdict, with and without draws, and the largest errors of linear response and of
importance sampling over all parameters of occupied components: of a standard deviation, relative, and of a
mean, in standard deviations. They are compared with 800 to 4,000 chains of the package's Gibbs sampler, fewer
where a posterior costs more. Its own standard errors are 1 to 3 % and 0.02 to 0.04 standard deviations for
each parameter, so that the largest error of many parameters is 2 to 7 % where nothing is wrong. Draws that
left for another mode are left out, and counted.
"""

import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from matplotlib import pyplot as plt

from benchmarks.harness.figures import BLUE, GREEN, GREY, ORANGE, STYLE, saved
from benchmarks.harness.tables import table, text
from benchmarks.problems.clusters import Problem
from benchmarks.problems.populations import planes, three_in_five_features

TITLE = "When to trust linear response"
TARGETS = ("log_weights", "means", "precisions")
_DRAWS = 4000
_LEAST_CHAINS = 800
_ASSIGNMENTS = 4e8  # Rows that are assigned by all chains together, in units of the root of the features.
_SD_TOLERANCE, _MEAN_TOLERANCE = 0.1, 0.2
_NAMES = {"lrvb": "trust LRVB", "importance": "use importance sampling", "gibbs": "use Gibbs"}

# The same in quick mode.
_QUICK_STRIDE = 26
_QUICK_DRAWS = 100


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
    for case in cases()[:: _QUICK_STRIDE if settings.quick else 1]:
        yield _row(case, _QUICK_DRAWS if settings.quick else _DRAWS)


def _row(case, n_draws):
    from benchmarks.harness.inside import (
        departed_draws,
        gibbs_draws,
        largest_inflation,
        occupied_parameters,
    )
    from sklearn_lrvb import LRVBGaussianMixture

    X = case.simulate()
    mixture = LRVBGaussianMixture(max_iter=1000, random_state=0, **case.mixture).fit(X)
    check, drawn = (mixture.posterior_check(X, None, n, 0) for n in (0, n_draws))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Unreliable weights and other modes are in the row.
        inflation = largest_inflation(mixture)
        cost = len(X) * 5 * inflation * X.shape[1] ** 0.5
        n_chains = int(np.clip(_ASSIGNMENTS / cost, min(n_draws, _LEAST_CHAINS), n_draws))
        draws = gibbs_draws(mixture, X, n_chains, random_state=1)
    here = ~departed_draws(mixture, draws)
    parameters = np.hstack([draws.flat(target) for target in TARGETS])[here]
    known = occupied_parameters(mixture)
    mean, sd = parameters.mean(axis=0), parameters.std(axis=0)

    def errors(means, sds):
        return (
            float(np.abs(sds / sd - 1.0)[known].max()),
            float((np.abs(means - mean) / sd)[known].max()),
        )

    lrvb, importance = errors(mixture.posterior_mean_, mixture.posterior_std_), errors(drawn.mean, drawn.std)
    return {
        "problem": case.name,
        "n_samples": len(X),
        "n_features": X.shape[1],
        "n_components": mixture.n_components,
        "covariance_type": mixture.covariance_type,
        "n_occupied": mixture.n_occupied_,
        "n_parameters": len(known),
        "inflation": float(inflation),
        "asymmetry": check.asymmetry,
        "mean_shift": float(np.abs(check.mean_shift[known]).max()),
        "recommendation": check.recommendation,
        "recommendation_with_draws": drawn.recommendation,
        "k_hat": drawn.k_hat,
        "effective_share": drawn.effective_draws / n_draws,
        "evidence_over_bound": drawn.log_evidence_bound - mixture.lower_bound_,
        "n_chains": len(here),
        "departed": int((~here).sum()),
        "lrvb_sd_error": lrvb[0],
        "lrvb_mean_error": lrvb[1],
        "importance_sd_error": importance[0],
        "importance_mean_error": importance[1],
    }


def _is_wrong(row, method):
    """Whether a method is off by more than what is tolerated."""
    return row[f"{method}_sd_error"] > _SD_TOLERANCE or row[f"{method}_mean_error"] > _MEAN_TOLERANCE


def section(found):
    outcomes = table(
        [
            ("verdict", lambda one: one[0]),
            ("cases", lambda one: len(one[1])),
            ("LRVB off", lambda one: sum(_is_wrong(row, "lrvb") for row in one[1])),
            ("worst sd of LRVB", lambda one: _largest(one[1], "lrvb_sd_error", "{:.0%}")),
            ("worst mean of LRVB", lambda one: _largest(one[1], "lrvb_mean_error", "{:.2f} sd")),
            ("importance sampling off", lambda one: sum(_is_wrong(row, "importance") for row in one[1])),
            ("its worst sd", lambda one: _largest(one[1], "importance_sd_error", "{:.0%}")),
            ("its worst mean", lambda one: _largest(one[1], "importance_mean_error", "{:.2f} sd")),
        ],
        [
            (f"{name}{when}", [row for row in found if row[column] == key])
            for column, when in (
                ("recommendation", ", without draws"),
                ("recommendation_with_draws", ", with 4,000 draws"),
            )
            for key, name in _NAMES.items()
        ],
    )
    in_vain = [row for row in found if row["recommendation"] != "lrvb" and not _is_wrong(row, "lrvb")]
    counts = Counter(row["recommendation"] for row in in_vain)
    shown = table(
        [
            ("case", text("problem", "{}")),
            ("N", text("n_samples", "{:.0f}")),
            ("parameters", text("n_parameters", "{:.0f}")),
            ("occupied", lambda row: f"{row['n_occupied']:.0f} of {row['n_components']:.0f}"),
            ("asymmetry", text("asymmetry", "{:.2f}")),
            ("mean shift", text("mean_shift", "{:.2f}")),
            ("k hat", text("k_hat", "{:.2f}")),
            ("effective", text("effective_share", "{:.0%}")),
            ("verdict", text("recommendation", "{}")),
            ("with draws", text("recommendation_with_draws", "{}")),
            ("LRVB: sd", text("lrvb_sd_error", "{:.0%}")),
            ("mean", text("lrvb_mean_error", "{:.2f}")),
            ("importance: sd", text("importance_sd_error", "{:.0%}")),
            ("mean", text("importance_mean_error", "{:.2f}")),
            ("left", lambda row: f"{row['departed']:.0f} of {row['n_chains']:.0f}"),
        ],
        sorted(found, key=lambda row: row["mean_shift"]),
    )
    n_wrong = sum(_is_wrong(row, "lrvb") for row in found)
    bounds = np.array([row["evidence_over_bound"] for row in found])
    return f"""{len(found)} posteriors, from {min(row["n_samples"] for row in found):,.0f} to
{max(row["n_samples"] for row in found):,.0f} rows and with {min(row["n_parameters"] for row in found):.0f} to
{max(row["n_parameters"] for row in found):.0f} parameters: overlapping and separate clusters, all covariance
types, both weight priors, real tables, and more components than clusters. A method counts as off where, among
all parameters of occupied components, a standard deviation is wrong by more than {_SD_TOLERANCE:.0%}, or a
mean by more than {_MEAN_TOLERANCE} standard deviations; linear response is so in {n_wrong} cases.

![The mean shift and the errors of linear response](trust.png)

{outcomes}

A correction was asked for in vain, without draws, in {len(in_vain)} of {len(found) - n_wrong} cases in which
linear response is right: importance sampling in {counts["importance"]}, Gibbs in {counts["gibbs"]}.

The bound on the evidence by draws of linear response lies {np.median(bounds):.1f} nats above the ELBO in the
median, and up to {bounds.max():.0f}.

All cases, by their mean shift:

{shown}
"""


def _largest(rows, name, shape):
    return shape.format(max(row[name] for row in rows)) if rows else ""


def draw(found, path):
    """The errors of linear response over the mean shift, by verdict.

    Parameters
    ----------
    found : list of rows, of one case each
    """
    styles = {"lrvb": ("o", BLUE), "importance": ("s", GREEN), "gibbs": ("D", ORANGE)}
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
                here = [row for row in found if row["recommendation"] == key]
                axes.plot(
                    [max(row["mean_shift"], 1e-3) for row in here],
                    [row[name] for row in here],
                    marker,
                    color=colour,
                    markersize=4,
                    alpha=0.8,
                    label=_NAMES[key],
                )
            axes.axhline(limit, color=GREY, linewidth=1)
            axes.set(xscale="log", yscale="log", xlabel="largest mean shift, in sd")
            axes.set_title(title, size=9)
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
        saved(figure, path)
