"""Fit and standard errors by everything that a user would otherwise take, beside ours.

Seconds are of the processor, on one thread, as a user would wait on an idle machine. Gibbs sampling and NUTS
sample the posterior that ours approximates; the bootstraps estimate how much a fit varies from sample to
sample of rows, which is near the posterior's sds where the model is right and rows are many. Errors of sds
are relative to those of the longest Gibbs chain, which is stored.
"""

from dataclasses import dataclass
from itertools import cycle
from operator import itemgetter

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from benchmarks.analysis.chains import sd_errors
from benchmarks.analysis.parameter_vectors import groups
from benchmarks.harness.figures import BLUE, GREEN, GREY, ORANGE, STYLE, saved
from benchmarks.harness.measuring import sizes
from benchmarks.harness.tables import ratio, size, table, text, text_of
from benchmarks.problems.clusters import PEERS

TITLE = "Peers"
_QUICKLY = {"n_replicates": 5, "n_effective": 20, "most_draws": 200, "n_warm_up": 100, "n_timed_fits": 2}
_FAMILIES = {"ours": BLUE, "bootstrap": ORANGE}  # colours; those of samplers are green
_MARKERS = "o^sDvPX*"  # of ways, so that they differ within a family too


def measure(settings):
    """A row for every way and problem."""
    from benchmarks.problems.near_flat_prior import NearFlatPrior
    from benchmarks.rivals.standard_errors.protocol import Effort, Task

    available = list(_available())
    effort = Effort(**_QUICKLY) if settings.quick else Effort()
    for problem in settings.problems(PEERS):
        X = problem.simulate()
        prior = NearFlatPrior.around(X, problem.n_components)
        task = Task(X, prior, prior.fitted(X), effort)
        truth = _sandwich(task) if settings.quick else _stored_truth(problem, X)
        for way in available:
            yield sizes(problem) | _row(problem, way, task, truth)


def _row(problem, way, task, truth):
    from benchmarks.rivals.standard_errors.ways import OURS

    found = way.standard_errors(task)
    ours = (
        found if way is OURS else OURS.standard_errors(task)
    )  # measured now, under the same load of the machine
    row = {
        "problem": f"{problem.name}: {way.name}",
        "way": way.name,
        "version": way.version(),
        "seconds": found.seconds,
        "ours_seconds": ours.seconds,
    }
    errors = {} if truth is None else _errors(found.sds, truth, task.optimum.means_.shape)
    return row | errors | found.columns


def _available():
    """Yield the ways whose packages are installed, and print how to get the others."""
    from benchmarks.rivals.standard_errors.ways import WAYS

    for way in WAYS:
        missing = way.missing()
        if missing:
            print(f"peers: {way.name} is left out: {missing}", flush=True)
        else:
            yield way


@dataclass(frozen=True)
class Truth:
    """Sds that are compared with.

    Attributes
    ----------
    sds : (D,), in the order of ``posterior_names_``
    sd_error : float, root mean square of their relative standard errors
    """

    sds: np.ndarray
    sd_error: float


def _stored_truth(problem, X):
    """The sds of the stored chain, None where there is none."""
    from benchmarks.rivals import gibbs_references

    reference = gibbs_references.stored().get(f"{problem.name}, {problem.seed}")
    if reference is None:
        print(
            f"peers: no chain of {problem.name} is stored, errors of sds are left out. Sample one by "
            f"python -m benchmarks.rivals.gibbs_references {problem.name}",
            flush=True,
        )
        return None
    reference.check(X)
    errors = sd_errors(reference.n_draws, reference.effective_sizes)
    return Truth(np.array(reference.sd), float(np.sqrt(np.mean(np.square(errors)))))


def _sandwich(task):
    """Sds from the scatter of the rows' influence, as no chain of so few rows is stored."""
    covariance = task.optimum.posterior(task.X, method="sandwich").covariance()
    return Truth(np.sqrt(np.diag(covariance)), (2 * len(task.X)) ** -0.5)


def _errors(sds, truth, shape):
    """Relative errors of the sds of every group: their median and largest size, and their mean."""
    relative = sds / truth.sds - 1
    columns = {"truth_sd_error": truth.sd_error}
    for group, part in (groups(*shape) | {"all": slice(None)}).items():
        columns[f"{group}_median_error"] = float(np.median(np.abs(relative[part])))
        columns[f"{group}_worst_error"] = float(np.abs(relative[part]).max())
        columns[f"{group}_mean_error"] = float(relative[part].mean())
    return columns


# What every way gives, and what it lacks or needs.
_WORDS = {
    "ours": (
        "posterior mean and covariance by linear response, of one mode",
        "skewness, heavy tails and other modes: few rows with much overlap; only Gaussian mixtures",
    ),
    "ours + importance sampling": (
        "draws of the exact posterior, weighted, and the evidence; says whether it can be relied on",
        "few rows with much overlap, where weights are uneven; other modes",
    ),
    "ours + Gibbs": (
        "draws of the exact posterior, all chains at once, whose length is known in advance",
        "other modes than that of the fit; weights of rows that are no whole numbers",
    ),
    "GaussianMixture + bootstrap": (
        "how the maximum of the likelihood varies from sample to sample of rows, right also where the "
        "model is wrong",
        "a posterior, a prior; refits, whose labels must be matched; influence of a row; "
        "components that a resample may lose",
    ),
    "GaussianMixture + bootstrap, tol 1e-6": (
        "the same from fits that are nearer to their optimum",
        "time, for more iterations in a refit; otherwise as above",
    ),
    "BayesianGaussianMixture + bootstrap": (
        "how the fit at its defaults varies from sample to sample of rows, early stops included",
        "a posterior's covariance (its own is mean field's, too small); the near-flat prior, as it is "
        "left at its defaults; otherwise as above",
    ),
    "mclust + bootstrap": (
        "how the maximum of the likelihood varies; every replicate starts at the fit, so labels stay; its "
        "tolerance is its default",
        "a posterior (its prior is for a mode only); standard errors without resampling; influence of a row",
    ),
    "Gibbs, bayesm": (
        "draws of the posterior, exact up to Monte Carlo error",
        "independent draws, the slower the more the components overlap; a guard against switched labels; "
        "influence of a row",
    ),
    "NUTS, numpyro": (
        "draws of the posterior, exact up to Monte Carlo error, under any prior with a density",
        "the assignments, which are summed out; a cheap draw: each takes several gradients of all rows; "
        "a guard against switched labels; influence of a row",
    ),
}
_GROUPS = {"log_weights": "log weights", "means": "means", "precisions": "precisions"}


def section(found):
    return f"""The table compares fits with standard errors of log weights, means and precisions, by
everything that one would otherwise take, on one thread. Seconds are of the processor, so that waiting for
other work does not count; on a busy machine short times still vary. Ours are the median of several fits in
the same run, all others are of a single run. Those of a chain are compilation, warm-up and 1000 effective
draws of the slowest parameter, without imports; those of our draws are the fit and 1000 effective ones; those
of a bootstrap are the fit and all refits. Errors are
of the standard deviations, relative to {_truth(found)}: their median size, largest size and signed mean, in
%.

{_times_and_errors(found)}

![Error of the standard deviations against time](peers.png)

* Gibbs sampling (rnmixGibbs of bayesm), NUTS and ours have the same nearly flat conjugate prior; the
  bootstraps take none, or their own.
* NUTS has the help of our fit: it starts at our optimum, in coordinates whitened by the mean-field posterior,
  and with a dense mass matrix where its warm-up is long enough to learn one.
* The reference has a Monte Carlo error of its own. An sd of B replicates has the relative error 1 / sqrt(2
  B). For a chain, B is the number of independent draws that are worth its least accurate squared deviations
  from the mean: for NUTS their effective size, which can be far below that of the parameter; for Gibbs
  sampling and the reference (root mean square) that of an autoregression of first order.
* A bootstrap shows how fits vary. Where iterations converge slowly, refits at default tolerances stop short
  of the optimum and vary too little. The refits at tol 1e-6 have at most 1000 iterations; mclust has its
  default tolerance.

{_chains(found)}

The next table says what each gives, and what it lacks or needs.

{_words(found)}

### A thousand effective draws

A posterior sampled until its slowest parameter has 1000 effective draws takes this many times as long as our
fit with all standard errors; the last column is the same without compilation and warm-up. On the smaller
problem the target of 1000 times is hard to reach, as bayesm and JAX are fast, and ours is mostly Python
there.

{_targets(found)}

### The exact posterior

The same draws from the exact posterior as ours, after the fit: 1000 effective ones, without compilation and
warm-up of the others, and with all that ours need. How much longer bayesm takes is judged where it was
measured on the same machine.

{_exact(found)}
"""


def _samplers(found):
    return [row for row in found if row.get("effective_size") is not None]


def _is_ours(row):
    return row["way"].startswith("ours")


def _exact(found):
    by_way = {(_problem(row), row["way"]): row for row in found}

    def over_ours(row):
        theirs = by_way.get((_problem(row), "Gibbs, bayesm"))
        if theirs is None or not _is_ours(row):
            return None
        return theirs["thousand_draws_seconds"] / row["thousand_draws_seconds"]

    return table(
        [
            *_PROBLEM,
            ("by", text("way", "{}")),
            ("draws", text("draws", "{:,.0f}")),
            ("effective draws", text("effective_size", "{:,.0f}")),
            ("1000 effective draws, s", text("thousand_draws_seconds")),
            ("bayesm takes times as long", text_of(over_ours)),
        ],
        _samplers(found),
    )


def _truth(found):
    if found[0]["mode"] == "quick":
        return "those by the sandwich covariance of our fit (quick mode: no chain of so few rows is stored)"
    return "those of the longest Gibbs chain"


def _problem(row):
    return row["problem"].split(":")[0]


_PROBLEM = (("problem", _problem), ("N, P, K", size))


_times_ours = ratio("seconds", "ours_seconds")


def _times_and_errors(found):
    return table(
        [
            *_PROBLEM,
            ("by", text("way", "{}")),
            ("version", text("version", "{}")),
            ("seconds", text("seconds")),
            ("over ours", lambda row: f"{_times_ours(row):,.3g}"),
            *((f"sds of {name}", _error(group)) for group, name in _GROUPS.items()),
        ],
        found,
    )


def _error(group):
    """Median, worst and mean signed error in %."""

    def cell(row):
        if row.get(f"{group}_median_error") is None:
            return ""
        shapes = {"median": "{:.1f}", "worst": "{:.1f}", "mean": "{:+.1f}"}
        return ", ".join(shape.format(100 * row[f"{group}_{name}_error"]) for name, shape in shapes.items())

    return cell


def _chains(found):
    return table(
        [
            *_PROBLEM,
            ("by", text("way", "{}")),
            ("refits or draws", lambda row: f"{row.get('replicates') or row['draws']:,.0f}"),
            ("refits not converged", text("not_converged", "{:.0f}")),
            ("effective draws", text("effective_size", "{:,.0f}")),
            ("effective draws of squares", text("effective_size_of_squares", "{:,.0f}")),
            ("Monte Carlo error of an sd", text("sd_error", "{:.1%}")),
            ("the reference's", text("truth_sd_error", "{:.1%}")),
            ("compilation, s", text("compile_seconds")),
            ("warm-up, s", text("warm_up_seconds")),
            ("1000 effective draws, s", text("thousand_draws_seconds")),
        ],
        [row for row in found if row.get("sd_error") is not None],
    )


def _words(found):
    ways = dict.fromkeys(row["way"] for row in found)
    rows = [(way, *_WORDS[way]) for way in ways if way in _WORDS]
    headers = ("", "gives", "lacks or needs")
    return table([(header, itemgetter(i)) for i, header in enumerate(headers)], rows)


def _targets(found):
    chains = [row for row in _samplers(found) if not _is_ours(row)]
    if not chains:
        return "No sampler was installed to be measured."
    return table(
        [
            *_PROBLEM,
            ("by", text("way", "{}")),
            ("ours, s", text("ours_seconds")),
            ("1000 effective draws, s", text("seconds")),
            ("times as long", text_of(_times_ours)),
            ("sampling alone", text_of(ratio("thousand_draws_seconds", "ours_seconds"))),
        ],
        chains,
    )


def draw(found, path):
    """Median errors against time, with lines to the largest errors, where a reference is known."""
    known = [row for row in found if row.get("all_median_error") is not None]
    problems = dict.fromkeys(row["problem"].split(":")[0] for row in known)
    markers = dict(zip(dict.fromkeys(row["way"] for row in known), cycle(_MARKERS), strict=False))
    n_panels = max(len(problems), 1)
    with plt.rc_context(STYLE):
        figure, panels = plt.subplots(
            1, n_panels, figsize=(0.6 + 4.2 * n_panels, 4.8), layout="constrained", squeeze=False
        )
        panels[0, 0].set_ylabel("error of the standard deviations: median, line to the largest")
        figure.supxlabel("seconds of the processor, fit and all standard errors", size=9)
        for axes, name in zip(panels[0], problems, strict=False):
            _panel(axes, [row for row in known if row["problem"].startswith(f"{name}:")], markers)
        handles, labels = panels[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=2 * n_panels, fontsize=8)
        saved(figure, path)


def _panel(axes, found, markers):
    axes.set_xscale("log")
    axes.set_yscale("log")
    for row in found:
        way = row["way"]
        colour = next((colour for name, colour in _FAMILIES.items() if name in way), GREEN)
        x, median, largest = row["seconds"], row["all_median_error"], row["all_worst_error"]
        axes.vlines(x, median, largest, color=colour, linewidth=1)
        axes.plot(x, median, markers[way], color=colour, markersize=7, label=way, alpha=0.8)
    own = found[0]["truth_sd_error"]
    axes.axhline(own, color=GREY, linewidth=1, linestyle="--", label="Monte Carlo error of the reference")
    axes.margins(x=0.1, y=0.1)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:g} %"))
    axes.yaxis.set_minor_locator(NullLocator())
    sizes = f"{found[0]['n_samples']:,.0f} x {found[0]['n_features']:.0f}"
    axes.set_title(f"{found[0]['problem'].split(':')[0]}: {sizes}, K = {found[0]['n_components']:.0f}")
