"""Section on what explains clusters, and what they explain."""

from functools import partial

import numpy as np

from benchmarks.harness.tables import grouped, spread, table, text
from benchmarks.problems.explained_clusters import (
    COVARIATES,
    FEW_ROWS,
    OUTCOME,
    SKEWED,
    GaussianClusters,
    LatentClasses,
)

SIMULATED, BOOTSTRAP, TIMES = "simulated", "bootstrap", "times"  # Parts of the experiment, by rows.
_WAYS = {"ours": "two steps", "labels": "`predict`", "proba": "`predict_proba`"}


def section(found):
    parts = grouped(found, lambda row: row["part"])
    simulated = parts[SIMULATED]
    n_answered, n_labelled = (_total(simulated, f"{way}_tables") for way in ("ours", "labels"))
    by_auto = _total([row for row in simulated if row["method"] == "auto"], "ours_tables")
    return f"""`covariate_effects` regresses clusters on covariates, and `outcome_differences` has the means
of outcomes in clusters. Both take two steps: clusters are those of the fit, and their error bars are part of
those of the answer. Beside them is what is often done instead: a multinomial logistic regression, or means,
of the labels by `predict`, or of all clusters with weights by `predict_proba`. Their standard deviations are
those of observed labels. Fits to latent classes have five starts and `moves=None`, which keeps all three
classes: their number is known. Fits to Gaussian clusters have the default arguments, and one start.

Coverage is the share of 95 % intervals that hold the truth. From line to line of the first three tables,
it is {_coverages(simulated, "ours")} % by two steps, {_coverages(simulated, "labels")} % by `predict`, and
{_coverages(simulated, "proba")} % by `predict_proba`. The largest bias of a slope or mean is
{_worst(simulated, "ours")} by two steps, {_worst(simulated, "labels")} by `predict`, and
{_worst(simulated, "proba")} by `predict_proba`.

How the tables were made: three latent classes have six binary columns (Bakk, Oberski and Vermunt 2014; Bakk
and Kuha 2018). The separation is the probability of the likelier value of each column. The two Gaussian
clusters have three columns of variance one. The separation is the distance of their means, and their fits
have `covariance_type="tied"`. Clusters are matched to the true ones. Tables are left out if their fit has an
empty cluster ({_total(simulated, "n_empty")} of {_total(simulated, "n_tables")} tables), or if the library
does not answer ({_total(simulated, "n_refused")}). In {n_answered - n_labelled} of the others, a cluster has
too few labels for `predict` to be taken. Up to {FEW_ROWS} rows,
the method is "auto", which draws from the exact posterior where linear response is not good enough: in
{_total(simulated, "by_draws")} of {by_auto} tables. With more rows, it is "lrvb".

### Covariates

The slopes of classes B and C against A are {_listed(LatentClasses.slopes[1:])}, and that of the two Gaussian
clusters is {_listed(GaussianClusters.slopes[1:])}. Columns have the bias of each slope, and the coverage in
per cent. "sd" is the mean standard deviation by two steps, over the standard deviation of the estimates.

{_of_simulated(simulated, COVARIATES)}

### Outcomes

The means of the outcome are {_listed(LatentClasses.means)} in classes A, B and C, and
{_listed(GaussianClusters.means)} in the Gaussian clusters. Its variance is one in each. In the first table it
is normal in each, in the second exponential, less its mean: nothing is assumed of its distribution.

{_of_simulated(simulated, OUTCOME)}

{_of_simulated(simulated, SKEWED)}

The Monte Carlo standard error of a coverage of 95 % is {_errors_of_coverage(simulated)} %.

### StepMix

{_of_stepmix(simulated)}

### Both steps bootstrapped

Real tables of scikit-learn. The standard deviations of an answer are compared with those over refits of both
steps to resampled rows. There are {_numbers(parts[BOOTSTRAP], "n_resamples")} refits, each from the first fit
on, so that the standard deviations of the bootstrap are themselves known to
{100 / np.sqrt(2 * parts[BOOTSTRAP][0]["n_resamples"]):.0f} %. Clusters are those of a full Gaussian mixture,
and matched to those of the first fit by their means. Columns have a number for every slope, effect or mean.
A refit is left out if it has an empty cluster, or no answer. The last column is the p-value of the
assumption that covariates and outcomes tell about the columns of X through the clusters only. If it is below
0.05, the note of the answer says what departs from it.

{_of_bootstraps(parts[BOOTSTRAP])}

### Times

Seconds of the processor, on one thread. Every question is the first to a new fit, so that its time has all
that error bars need.

{_of_times(parts[TIMES])}
"""


# Numbers of rows.


def _total(rows, column):
    return int(sum(row[column] for row in rows))


def _of_all(row, column):
    """A row's numbers of all quantities: array, empty where there are none."""
    names = (f"{column}_{place}" for place in range(int(row["n_components"])))
    return np.array([row[name] for name in names if row.get(name) is not None])


def _coverages(simulated, way):
    """Least and largest coverage of lines, in per cent: str."""
    found = [_of_all(row, f"{way}_coverage") for row in simulated]
    return spread([100 * own.mean() for own in found if own.size])


def _worst(simulated, way):
    """The largest absolute bias of any quantity in any line: str."""
    biases = [_of_all(row, f"{way}_bias") for row in simulated]
    return f"{max(np.abs(bias).max() for bias in biases if bias.size):.2f}"


def _errors_of_coverage(simulated):
    """Of the numbers of tables that are not left out: str."""
    counts = [row["ours_tables"] for row in simulated]
    return spread([100 * np.sqrt(0.05 * 0.95 / count) for count in counts if count], "{:.1f}")


def _numbers(rows, column):
    return spread([row[column] for row in rows])


# Cells.


def _listed(values, shape="{:g}"):
    """Numbers as text, with commas; zeros have no sign."""
    texts = (shape.format(value) for value in values)
    return ", ".join(one if float(one) else one.lstrip("+-") for one in texts)


def _of_simulated(simulated, question):
    """Table of biases and coverages of one question."""

    def listed(column, shape, factor=1):
        return lambda row: _listed(factor * _of_all(row, column), shape)

    ways = [
        column
        for way, name in _WAYS.items()
        for column in (
            (f"{name}: bias", listed(f"{way}_bias", "{:+.2f}")),
            ("coverage, %", listed(f"{way}_coverage", "{:.0f}", 100)),
        )
    ]
    return table(
        [
            ("clusters", text("design", "{}")),
            ("N", text("n_samples", "{:,.0f}")),
            ("separation", text("separation", "{:.1f}")),
            ("tables", text("n_tables", "{:.0f}")),
            ("left out", lambda row: f"{row['n_tables'] - row['ours_tables']:.0f}"),
            *ways[:2],
            ("sd", listed("ours_sd_ratio", "{:.2f}")),
            *ways[2:],
        ],
        [row for row in simulated if row["question"] == question],
    )


def _of_stepmix(simulated):
    """The text and the table of the tables of which StepMix was asked too."""
    asked = [row for row in simulated if row.get("stepmix_held") is not None]
    if not asked:
        return "StepMix was not installed."
    own = asked[0]

    def held(way):
        return lambda row: f"{row[f'{way}_held']:.0f} of {row['beside_intervals']:.0f}"

    shown = table(
        [
            ("question", text("question", "{}")),
            ("tables", text("beside_tables", "{:.0f}")),
            ("ours: fit, s", text("ours_fit_seconds", "{:.2g}")),
            ("answer, s", text("ours_answer_seconds", "{:.2g}")),
            ("intervals that hold the truth", held("ours")),
            ("StepMix: fit, s", text("stepmix_fit_seconds", "{:.2g}")),
            ("bootstrap, s", text("stepmix_answer_seconds", "{:.2g}")),
            ("its intervals that hold the truth", held("stepmix")),
            ("its sds over ours", text("sds_over_ours", "{:.2f}")),
        ],
        asked,
    )
    return f"""StepMix estimates the same two steps by maximum likelihood, and has error bars by its
bootstrap alone: {own["stepmix_repetitions"]:.0f} refits of both steps. Its fits have ten starts, and its
refits one, which may end at another optimum. The first tables of three latent classes with
{own["n_samples"]:,.0f} rows and a separation of {own["separation"]:.1f} were given to both. Its intervals are
the estimate plus and minus 1.96 standard deviations. Seconds are medians, of the processor; ratios of
standard deviations are medians, too.

{shown}"""


def _of_bootstraps(rows):
    def values(way, row):
        return _listed(_of_all(row, way), "{:.3g}")

    def ratio(way, row):
        return _listed(_of_all(row, way) / _of_all(row, "bootstrap"), "{:.2f}")

    def p_value(row):
        if row.get("direct_p_value") is None:
            return ""
        return "< 0.001" if row["direct_p_value"] < 0.001 else f"{row['direct_p_value']:.2g}"

    return table(
        [
            ("table", lambda row: row["design"]),
            ("N", text("n_samples", "{:.0f}")),
            ("X", lambda row: row["of_rows"]),
            ("covariate or outcome", lambda row: row["of_given"]),
            ("estimates", lambda row: f"{row['kind']}: {values('estimates', row)}"),
            ("sd of the bootstrap", partial(values, "bootstrap")),
            ('"lrvb" over it', partial(ratio, "lrvb")),
            ('"sandwich" over it', partial(ratio, "sandwich")),
            ("left out", text("left_out", "{:.0f}")),
            ("p of the assumption", p_value),
        ],
        rows,
    )


def _of_times(rows):
    def over_fit(column):
        return lambda row: f"{row[column]:.2g} ({row[column] / row['fit_seconds']:.1f})"

    return table(
        [
            ("rows", lambda row: row["design"]),
            ("N, P", lambda row: f"{row['n_samples']:,.0f}, {row['n_features']:.0f}"),
            ("fit, s", text("fit_seconds", "{:.2g}")),
            ("three covariates, s (over the fit)", over_fit("covariates_seconds")),
            ("one outcome, s (over the fit)", over_fit("outcome_seconds")),
            ("adjusted for the three, s (over the fit)", over_fit("adjusted_seconds")),
        ],
        rows,
    )
