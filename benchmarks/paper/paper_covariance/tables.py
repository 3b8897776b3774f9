"""Section on posterior covariances against Gibbs sampling."""

import numpy as np

from benchmarks.harness.tables import grouped, spread, table
from benchmarks.problems.near_flat_prior import CONCENTRATION, MEAN_PRECISION, SCALE
from benchmarks.rivals import bayesm

LEAST_EFFECTIVE_SIZE = 500  # of a parameter; the paper leaves out chains with less
METHODS = {"lrvb": "LRVB", "joint": "LRVB, joint", "mean_field": "mean field"}
_BEYOND_CHANCE = 1.5  # times the chains' own error, as there are few errors and they are correlated
GROUPS = ("log_weights", "means", "precisions")
COUNTS = {
    "n_chains": "chains",
    "n_switched": "switched labels",
    "n_short": f"effective size below {LEAST_EFFECTIVE_SIZE}",
}


def usable(row):
    """Whether a row's chain is long enough and did not switch labels."""
    return row["n_chains"] > (row["n_switched"] or 0) + row["n_short"]


def section(found):
    groups = grouped(found, lambda row: row["group"])
    of_sds = [_pooled(group, name, rows) for group, rows in groups.items() for name in GROUPS]
    of_correlations = [_pooled(group, "correlations", rows) for group, rows in groups.items()]
    of_chains = [_pooled(group, "means", rows) for group, rows in groups.items()]
    return f"""The tables compare standard deviations of the posterior by LRVB and by mean field with Gibbs
sampling by `rnmixGibbs` of R's bayesm, the paper's sampler. "paper" stands for the paper's simulations:
10,000 rows of two Gaussians in the plane, with weights 3/7 and 4/7, means (0, 0) and (1, 1), and precisions
diag(9, 4) and diag(6.36, 2.83). In the other settings components are further apart or closer, or there are
fewer rows or more features.

The first table has relative errors of the sds: their root mean square (rms), from the best to the worst of
log weights, means and precisions, and the largest error.

{_summary(of_sds)}

Where rows are many, the sds of LRVB agree with those of the chains up to the error of the chains, and those
of mean field are far too small. This ends where posteriors stop looking Gaussian: with few rows for each
parameter and much overlap they are skew and have heavy tails. A linear response falls short there, as any
quadratic approximation does, and posterior means too are up to {_largest_bias(found)} sd from those of the
chains.

![LRVB and mean-field standard deviations against Gibbs sampling](paper_covariance.png)

The prior is exactly the same on both sides, and nearly flat: weights Dirichlet({CONCENTRATION:g}, ...),
precisions Wishart with P degrees of freedom and inverse scale {SCALE:g} times the features' variances, means
normal about the mean of X with {MEAN_PRECISION:g} times the component's precision. Chains start at the labels
of our fit, with {bayesm.BURN_IN} draws of burn-in. Chains are left out if some draws have the components in
another order, or if any parameter has an effective size (coda's) of less than {LEAST_EFFECTIVE_SIZE}.

The next table has the same errors for every group of parameters. "LRVB" has the paper's factors; "LRVB,
joint" has the default factorization, in which mean field keeps each mean together with its precision. The sds
of the chains have an error of their own, known from their length and effective sizes (as of normal draws,
each correlated with the next; an upper bound where the length is not published): even the right sd would have
an rms of that size.

{_sds(of_sds)}

{_falls_short(of_sds)}

The next table has differences of correlations between parameters from those of the chains, which have errors
of 0.02 to 0.03 themselves at 1000 effective draws.

{_correlations(of_correlations)}

Seconds of the chains are of the processor, on the day they were sampled. Chains are stored, and sampled again
only where R is installed and `--stored-chains` is not given.

{_chains(of_chains)}
"""


def _summary(lines):
    known = grouped([line for line in lines if line["n_kept"]], lambda line: line["label"])
    return table(
        [
            ("data", lambda here: _named(here[0])),
            ("chains", lambda here: here[0]["n_kept_chains"]),
            ("Gibbs' own error, rms", lambda here: spread([line["chain_error"] for line in here], "{:.1%}")),
            *((f"{name}: rms, worst", _range_of(method)) for method, name in METHODS.items()),
        ],
        known.values(),
    )


def _range_of(method):
    """Range of the rms errors over the groups of parameters, and the largest error."""

    def cell(here):
        if f"{method}_rms" not in here[0]:
            return ""
        largest = max(line[f"{method}_largest"] for line in here)
        return f"{spread([line[f'{method}_rms'] for line in here], '{:.1%}')}, {largest:.1%}"

    return cell


def _largest_bias(found):
    """Largest distance of a posterior mean from that of a usable chain, in sds."""
    distances = [row["largest_bias"] for row in found if usable(row) and row.get("largest_bias") is not None]
    return f"{max(distances, default=0.0):.1f}"


def _sds(lines):
    return table(
        [
            ("data", _named),
            ("of", lambda line: line["name"].replace("_", " ")),
            ("Gibbs' own error, rms", _own_error),
            *((f"{name}: rms, worst (mean)", _errors(method)) for method, name in METHODS.items()),
        ],
        [line for line in lines if line["n_kept"]],
    )


def _correlations(lines):
    return table(
        [
            ("data", _named),
            *((f"{name}: rms, worst", _differences(method)) for method, name in METHODS.items()),
        ],
        [line for line in lines if line["n_kept"]],
    )


def _chains(lines):
    return table(
        [
            ("data", _named),
            *((header, lambda line, count=count: line[count]) for count, header in COUNTS.items()),
            ("draws, median", lambda line: line["draws"]),
            ("least effective size, median", lambda line: f"{line['effective_size']:,.0f}"),
            ("Gibbs, s per 1000 effective draws", lambda line: line["gibbs_seconds"]),
            ("ours, ms: fit and covariance", lambda line: line["our_milliseconds"]),
            ("largest distance of posterior means, sd", lambda line: line["bias"]),
            ("sampled by", lambda line: line["versions"]),
        ],
        lines,
    )


def _named(line):
    return line["label"]


def _falls_short(lines):
    """A sentence about where LRVB's error exceeds that of the chains; empty if no chain is usable."""
    known = [line for line in lines if line["n_kept"]]
    if not known:
        return ""
    short = {}
    for line in known:
        if line["lrvb_rms"] > _BEYOND_CHANCE * line["chain_error"]:
            short.setdefault(line["group"], []).append(line["name"].replace("_", " "))
    measure = f"more than {_BEYOND_CHANCE:g} times that of the chains"
    if not short:
        return f"LRVB's rms error is nowhere {measure}."
    parts = "; ".join(f"{group} ({', '.join(names)})" for group, names in short.items())
    return (
        f"LRVB's rms error is {measure} in: {parts}. "
        "There it falls short, unless this is chance in few chains."
    )


def _pooled(group, name, rows):
    """Errors of one group of parameters over the usable chains of one kind of data."""
    kept = [row for row in rows if usable(row)]
    line = {
        "group": group,
        "label": _label(group, rows[0]),
        "name": name,
        "n_kept": len(kept),
        "n_kept_chains": _n_usable_chains(kept),
        **{count: _counted(rows, count) for count in COUNTS},
        "effective_size": float(np.median([row["effective_size"] for row in rows])),
        "draws": _median(rows, "n_draws", "{:,.0f}"),
        "gibbs_seconds": _median(rows, "gibbs_seconds_per_1000", "{:.3g}"),
        "our_milliseconds": _median(rows, "ours_seconds", "{:.3g}", 1e3),
        "bias": "",
        "versions": "; ".join(dict.fromkeys(row["gibbs_versions"] or "" for row in rows)),
    }
    if not kept:
        return line
    if name in GROUPS:
        line["chain_error"] = _root_mean_square([row[f"gibbs_{name}_error"] for row in kept])
    if kept[0].get("largest_bias") is not None:
        line["bias"] = f"{max(row['largest_bias'] for row in kept):.2f}"
    pools = {"rms": _root_mean_square, "largest": np.max, "mean": np.mean}
    for method in METHODS:
        for statistic, pool in pools.items():
            column = f"{method}_{name}_{statistic}_error"
            if kept[0].get(column) is not None:
                line[f"{method}_{statistic}"] = float(pool([row[column] for row in kept]))
    return line


def _root_mean_square(values):
    return float(np.sqrt(np.mean(np.square(values))))


def _n_usable_chains(kept):
    """Chains of the kept rows without those that are too short."""
    return f"{sum(row['n_chains'] - (row['n_switched'] or 0) - row['n_short'] for row in kept):.0f}"


def _counted(rows, name):
    """The sum of a count over the rows that have it, "not known" if none has."""
    counts = [row[name] for row in rows if row.get(name) is not None]
    return f"{sum(counts):.0f}" if counts else "not known"


def _own_error(line):
    bound = "at most " if line["group"] == "published" else ""
    return f"{bound}{line['chain_error']:.1%}"


def _label(group, row):
    if group == "published":
        return "the authors' simulations, as published"
    return f"{group} ({row['n_samples']:,.0f} x {row['n_features']:.0f}, K = {row['n_components']:.0f})"


def _median(rows, name, shape, factor=1.0):
    values = [factor * row[name] for row in rows if row.get(name) is not None]
    return shape.format(np.median(values)) if values else ""


def _errors(method):
    def cell(line):
        if f"{method}_rms" not in line:
            return ""
        return "{:.1%}, {:.1%} ({:+.1%})".format(*(line[f"{method}_{s}"] for s in ("rms", "largest", "mean")))

    return cell


def _differences(method):
    def cell(line):
        if f"{method}_rms" not in line:
            return ""
        return f"{line[f'{method}_rms']:.3f}, {line[f'{method}_largest']:.3f}"

    return cell
