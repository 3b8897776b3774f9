"""Section on what explains clusters, and what they explain."""

from functools import partial

import numpy as np

from benchmarks.harness.tables import grouped, spread, table, text
from benchmarks.problems.explained_clusters import (
    COVARIATES,
    FEW_ROWS,
    OUTCOME,
    GaussianClusters,
    LatentClasses,
)

SIMULATED, BOOTSTRAP, TIMES = "simulated", "bootstrap", "times"  # Parts of the experiment, by rows.
_DRAWS = "auto"  # The method that may draw from the exact posterior.
_WAYS = {"ours": "two steps", "labels": "`predict`", "proba": "`predict_proba`"}
_TRUTH = {
    (kind.name, question): kind.slopes[1:] if question == COVARIATES else kind.means
    for kind in (LatentClasses, GaussianClusters)
    for question in (COVARIATES, OUTCOME)
}


def section(found):
    parts = grouped(found, lambda row: row["part"])
    simulated = parts[SIMULATED]
    answered = [row for row in simulated if _estimates(row, "ours") is not None]
    by_auto = [row for row in answered if row["method"] == _DRAWS]
    by_draws = sum(row["by_draws"] for row in by_auto)
    n_empty = sum(row["n_occupied"] < row["n_components"] for row in simulated)
    n_refused = len(simulated) - len(answered) - n_empty
    without_labels = sum(_estimates(row, "labels") is None for row in answered)
    return f"""`covariate_effects` regresses clusters on covariates, and `outcome_differences` has the means
of outcomes in clusters. Both take two steps: clusters are those of the fit, and their error bars are part of
those of the answer. Beside them is what is often done instead: a multinomial logistic regression, or means,
of the labels by `predict`, or of all clusters with weights by `predict_proba`. Their standard deviations are
those of observed labels. Fits to latent classes have five starts and `moves=None`, which keeps all three
classes: their number is known. Fits to Gaussian clusters have the default arguments, and one start.

Coverage is the share of 95 % intervals that hold the truth. From one line of the first two tables to another,
it is {_coverages(simulated, "ours")} % by two steps, {_coverages(simulated, "labels")} % by `predict`, and
{_coverages(simulated, "proba")} % by `predict_proba`. The largest bias of a slope or mean is
{_worst(simulated, "ours")} by two steps, {_worst(simulated, "labels")} by `predict`, and
{_worst(simulated, "proba")} by `predict_proba`.

How the tables were made: three latent classes have six binary columns (Bakk, Oberski and Vermunt 2014; Bakk
and Kuha 2018). The separation is the probability of the likelier value of each column. The two Gaussian
clusters have three columns of variance one. The separation is the distance of their means, and their fits
have `covariance_type="tied"`. Clusters are matched to the true ones. Tables are left out if their fit has an
empty cluster ({n_empty} of {len(simulated)} tables), or if the library does not answer ({n_refused}). In
{without_labels} of the others, a cluster has too few labels for `predict` to be taken. Up to {FEW_ROWS} rows,
the method is "auto", which draws from the exact posterior where linear response is not good enough: in
{by_draws} of {len(by_auto)} tables. With more rows, it is "lrvb".

### Covariates

The slopes of classes B and C against A are {_listed(LatentClasses.slopes[1:])}, and that of the two Gaussian
clusters is {_listed(GaussianClusters.slopes[1:])}. Columns have the bias of each slope, and the coverage in
per cent. "sd" is the mean standard deviation by two steps, over the standard deviation of the estimates.

{_of_simulated(simulated, COVARIATES)}

### Outcomes

The means of the outcome are {_listed(LatentClasses.means)} in classes A, B and C, and
{_listed(GaussianClusters.means)} in the Gaussian clusters. Its variance is one in each.

{_of_simulated(simulated, OUTCOME)}

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


def _estimates(row, way, column=""):
    """A row's numbers of all quantities by one way: array, or None where there are none."""
    places = [f"{way}{column}_{place}" for place in range(len(_TRUTH[row["design"], row["question"]]))]
    if row.get(places[0]) is None:
        return None
    return np.array([row[place] for place in places], dtype=float)


def _all(rows, way, column=""):
    """The numbers of all rows that have them, (rows, quantities)."""
    found = (_estimates(row, way, column) for row in rows)
    return np.array([own for own in found if own is not None])


def _bias(rows, way):
    """Mean of the estimates minus the truth, of every quantity; empty where there are none."""
    values = _all(rows, way)
    if not len(values):
        return values
    return values.mean(axis=0) - np.array(_TRUTH[rows[0]["design"], rows[0]["question"]])


def _coverage(rows, way):
    """Share of intervals that hold the truth, of every quantity, in per cent; empty where there are none."""
    covers = _all(rows, way, "_covers")
    return 100 * covers.mean(axis=0) if len(covers) else covers


def _settings(simulated):
    """Rows by setting: the design, the question, number of rows and separation."""
    names = ("design", "question", "n_samples", "separation")
    return grouped(simulated, lambda row: tuple(row[name] for name in names))


def _coverages(simulated, way):
    """Least and largest coverage of settings, in per cent: str."""
    found = [_coverage(rows, way) for rows in _settings(simulated).values()]
    return spread([own.mean() for own in found if own.size])


def _worst(simulated, way):
    """The largest absolute bias of any quantity in any setting: str."""
    biases = [_bias(rows, way) for rows in _settings(simulated).values()]
    return f"{max(np.abs(bias).max() for bias in biases if bias.size):.2f}"


def _errors_of_coverage(simulated):
    """Of the numbers of tables that are not left out: str."""
    counts = [len(_all(rows, "ours")) for rows in _settings(simulated).values()]
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
    settings = {
        names: rows for names, rows in _settings(simulated).items() if rows[0]["question"] == question
    }

    def bias(way):
        return lambda rows: _listed(_bias(rows, way), "{:+.2f}")

    def coverage(way):
        return lambda rows: _listed(_coverage(rows, way), "{:.0f}")

    ways = [
        column
        for way, name in _WAYS.items()
        for column in ((f"{name}: bias", bias(way)), ("coverage, %", coverage(way)))
    ]
    return table(
        [
            ("clusters", lambda rows: rows[0]["design"]),
            ("N", lambda rows: f"{rows[0]['n_samples']:,.0f}"),
            ("separation", lambda rows: f"{rows[0]['separation']:.1f}"),
            ("tables", len),
            ("left out", lambda rows: len(rows) - len(_all(rows, "ours"))),
            *ways[:2],
            ("sd", _ratio_of_sds),
            *ways[2:],
        ],
        settings.values(),
    )


def _ratio_of_sds(rows):
    """Mean standard deviation over that of the estimates, of every quantity; empty for one table."""
    estimates = _all(rows, "ours")
    if len(estimates) < 2:
        return ""
    return _listed(_all(rows, "ours", "_sd").mean(axis=0) / estimates.std(axis=0, ddof=1), "{:.2f}")


def _of_stepmix(simulated):
    """The text and the table of the tables of which StepMix was asked too."""
    asked = [
        row for row in simulated if row.get("stepmix_0") is not None and _estimates(row, "ours") is not None
    ]
    if not asked:
        return "StepMix was not installed."
    own = asked[0]

    def held(way):
        def count(rows):
            covers = _all(rows, way, "_covers")
            return f"{covers.sum():.0f} of {covers.size}"

        return count

    def median(column):
        return lambda rows: f"{np.median([row[column] for row in rows]):.2g}"

    def over_ours(rows):
        return f"{np.median(_all(rows, 'stepmix', '_sd') / _all(rows, 'ours', '_sd')):.2f}"

    shown = table(
        [
            ("question", lambda rows: rows[0]["question"]),
            ("tables", len),
            ("ours: fit, s", median("fit_seconds")),
            ("answer, s", median("answer_seconds")),
            ("intervals that hold the truth", held("ours")),
            ("StepMix: fit, s", median("stepmix_fit_seconds")),
            ("bootstrap, s", median("stepmix_bootstrap_seconds")),
            ("its intervals that hold the truth", held("stepmix")),
            ("its sds over ours", over_ours),
        ],
        grouped(asked, lambda row: row["question"]).values(),
    )
    return f"""StepMix estimates the same two steps by maximum likelihood, and has error bars by its
bootstrap alone: {own["stepmix_repetitions"]:.0f} refits of both steps. Its fits have ten starts, and its
refits one, which may end at another optimum. The first tables of three latent classes with
{own["n_samples"]:,.0f} rows and a separation of {own["separation"]:.1f} were given to both. Its intervals are
the estimate plus and minus 1.96 standard deviations. Seconds are medians, of the processor; ratios of
standard deviations are medians, too.

{shown}"""


def _values(row, way):
    """Numbers of all quantities of a real table: array."""
    names = (f"{way}_{place}" for place in range(int(row["n_components"])))
    return np.array([row[name] for name in names if row.get(name) is not None])


def _of_bootstraps(rows):
    def values(way, row):
        return _listed(_values(row, way), "{:.3g}")

    def ratio(way, row):
        return _listed(_values(row, way) / _values(row, "bootstrap"), "{:.2f}")

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
        ],
        rows,
    )
