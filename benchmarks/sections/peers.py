"""Standard errors by everything that a user would otherwise take."""

from operator import itemgetter

import targets
from tables import judged, ratio, size, table, text, text_of

# of every way: what its numbers are, and what it lacks
_WORDS = {
    "ours": (
        "posterior mean and covariance by linear response, of one mode",
        "skewness, heavy tails and other modes: few rows with much overlap; only Gaussian mixtures",
    ),
    "GaussianMixture + bootstrap": (
        "how the maximum of the likelihood varies from sample to sample of rows, right also where the "
        "model is wrong",
        "a posterior, a prior; refits, whose labels must be matched; influence of a row; "
        "components that a resample may lose",
    ),
    "GaussianMixture + bootstrap, tol 1e-6": (
        "the same from fits that are nearer to their optimum",
        "time: more sweeps a refit; else as above",
    ),
    "BayesianGaussianMixture + bootstrap": (
        "how the fit at its defaults varies from sample to sample of rows, early stops included",
        "a posterior's covariance (its own is mean field's, too small); the near-flat prior, as it is "
        "left at its defaults; else as above",
    ),
    "mclust + bootstrap": (
        "how the maximum of the likelihood varies; every replicate starts at the fit, so labels stay; its "
        "tolerance is its default",
        "a posterior (its prior is for a mode only); standard errors but by resampling; influence of a row",
    ),
    "Gibbs, bayesm": (
        "draws of the posterior, exact but for Monte Carlo error",
        "independent draws, the slower the more the components overlap; a guard against switched labels; "
        "influence of a row",
    ),
    "NUTS, numpyro": (
        "draws of the posterior, exact but for Monte Carlo error, under any prior with a density",
        "the assignments, which are summed out; a cheap draw: each takes several gradients of all rows; "
        "a guard against switched labels; influence of a row",
    ),
}
_GROUPS = {"log_weights": "log weights", "means": "means", "precisions": "precisions"}


def section(found):
    return f"""## Peers

Fit and standard errors of log weights, means and precisions by everything that one would otherwise take, on
one thread. Seconds are of the processor, so that waiting for other work does not count, though on a busy
machine short times still vary; ours are the median of several fits in the same run, those of all others are
of a single run. Those of a chain are for compilation, warm-up and 1000 effective draws of the slowest
parameter, imports left out, those of a bootstrap for the fit and all refits. Errors are of the standard
deviations, relative to {_truth(found)}: their median size, largest size and signed mean, in %.

{_times_and_errors(found)}

![Error of the standard deviations against time](peers.png)

Gibbs (rnmixGibbs of bayesm), NUTS and ours share a nearly flat conjugate prior; the bootstraps take none, or
their own. NUTS has the help of our fit: it starts at our optimum, in coordinates whitened by the mean-field
posterior, with a dense mass matrix where its warm-up is long enough to learn one. The truth has a Monte Carlo
error of its own, and so has an sd of B replicates, 1 / sqrt(2 B). That of a chain is 1 / sqrt(2 B) too, B the
independent draws that its least accurate squared deviations from the mean are worth: for NUTS by their
effective size, which can be far below that of the parameter, for Gibbs and the truth (root mean square) as in
an autoregression of first order. The error of a bootstrap is also that of its fits: where sweeps creep,
refits at default tolerances stop short of the optimum. Those at tol 1e-6 have at most 1000 sweeps; mclust's
tolerance is its default.

{_chains(found)}

What each gives, and what it lacks or needs:

{_words(found)}

### A thousand effective draws

The target of targets: a posterior sampled until its slowest parameter has 1000 effective draws takes this
many times as long as our fit with all standard errors; beside it, the same without compilation and warm-up.

{_targets(found)}
"""


def _truth(found):
    if found[0]["mode"] == "quick":
        return "those by the sandwich covariance of our fit (quick: there is no chain of so few rows)"
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
            ("effective", text("effective_size", "{:,.0f}")),
            ("of squares", text("effective_size_of_squares", "{:,.0f}")),
            ("Monte Carlo error of an sd", text("sd_error", "{:.1%}")),
            ("the truth's", text("truth_sd_error", "{:.1%}")),
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
    chains = [row for row in found if row.get("effective_size") is not None]
    if not chains:
        return "No sampler was there to measure."
    return table(
        [
            *_PROBLEM,
            ("by", text("way", "{}")),
            ("ours, s", text("ours_seconds")),
            ("1000 effective draws, s", text("seconds")),
            *judged("times as long", _times_ours, lambda row: targets.PEERS.get(_problem(row))),
            ("sampling alone", text_of(ratio("thousand_draws_seconds", "ours_seconds"))),
        ],
        chains,
    )
