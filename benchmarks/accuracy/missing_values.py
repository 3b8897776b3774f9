"""Missing values in X: means of clusters, their error bars, labels and filled values, beside imputers.

Three clusters of known means in four features; values are missing completely at random (MCAR), or more often
where the first column is large (MAR). Every method ends in a fit of the same mixture: to the rows as they
are, to rows that an imputer has filled, to the complete rows alone, or to the rows before any value was
removed. Chained equations fill several tables by draws, whose fits are pooled by Rubin's rules. Clusters are
matched to the true ones by their means; fits that lost one are left out.
"""

import warnings

import numpy as np
from matplotlib import pyplot as plt
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist, pdist
from scipy.stats import t as student_t

from benchmarks.harness.figures import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    SKY_BLUE,
    STYLE,
    VERMILION,
    saved,
)
from benchmarks.harness.tables import grouped, table
from benchmarks.problems.missing_values import MECHANISMS
from benchmarks.problems.populations import Population

TITLE = "Missing values in X"
_ROWS = 500
_SETTINGS = (("MCAR", 0.1), ("MCAR", 0.2), ("MCAR", 0.4), ("MAR", 0.2))
_DATA_SETS, _QUICK_DATA_SETS = 200, 1
_DRAWS, _QUICK_DRAWS = 100, 10
_TABLES = 5  # Of chained equations, the default of R's mice.
METHODS = {
    "model": "missing values in the model",
    "simple": "SimpleImputer",
    "neighbours": "KNNImputer",
    "iterative": "IterativeImputer",
    "chained": f"IterativeImputer, {_TABLES} draws pooled",
    "complete rows": "complete rows alone",
    "before": "complete table",
}
_COLOURS = dict(zip(METHODS, (BLUE, ORANGE, GREEN, PURPLE, SKY_BLUE, VERMILION, GREY), strict=True))


def _population():
    rng = np.random.default_rng(3)
    means = np.array([[0.0, 0.0, 0.0, 0.0], [3.0, 2.0, 0.0, -1.0], [-1.0, 3.0, 2.5, 1.5]])
    axes = np.linalg.qr(rng.standard_normal((3, 4, 4)))[0]
    return Population(np.array([0.45, 0.33, 0.22]), means, np.array([1.6, 1.0, 0.7, 0.4])[:, None] * axes)


POPULATION = _population()


def measure(settings):
    """A row for every method of every setting."""
    n_data_sets = _QUICK_DATA_SETS if settings.quick else _DATA_SETS
    n_draws = _QUICK_DRAWS if settings.quick else _DRAWS
    for mechanism, share in _SETTINGS[:1] if settings.quick else _SETTINGS:
        found = {method: [] for method in METHODS}
        for data_set in range(n_data_sets):
            X, labels, incomplete = _data_set(mechanism, share, data_set)
            for method in METHODS:
                found[method].append(_result(method, X, labels, incomplete, n_draws))
        for method, results in found.items():
            yield {"setting": f"{mechanism}, {100 * share:.0f} %", "n_data_sets": n_data_sets} | _row(
                mechanism, share, method, results
            )


def _data_set(mechanism, share, data_set):
    """Rows, their labels, and the rows with missing values."""
    rng = np.random.default_rng([data_set, int(1000 * share), len(mechanism)])
    labels = rng.choice(3, size=_ROWS, p=POPULATION.weights)
    noise = rng.standard_normal((_ROWS, 4))
    X = POPULATION.means[labels] + np.einsum("np,npq->nq", noise, POPULATION.roots[labels])
    return X, labels, MECHANISMS[mechanism](X, share, rng)


def _filled(method, X, incomplete):
    """The tables that a method fits, a list: several only where their fits are to be pooled."""
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401
    from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer

    if method in ("model", "before"):
        return [incomplete if method == "model" else X]
    if method == "complete rows":
        return [incomplete[~np.isnan(incomplete).any(axis=1)]]
    if method == "chained":
        imputers = [IterativeImputer(sample_posterior=True, random_state=seed) for seed in range(_TABLES)]
    else:
        imputers = [
            {
                "simple": SimpleImputer(),
                "neighbours": KNNImputer(),
                "iterative": IterativeImputer(random_state=0),
            }[method]
        ]
    return [imputer.fit_transform(incomplete) for imputer in imputers]


def _result(method, X, labels, incomplete, n_draws):
    """Errors and hits of one method on one data set: dict; None for a fit that is left out."""
    from sklearn.metrics import adjusted_rand_score

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tables = _filled(method, X, incomplete)
        fits = [_matched_fit(rows) for rows in tables]
    if None in fits:
        return None
    mixture = fits[0][0]
    means, half_widths = _pooled(
        np.stack([mixture.means_[order] for mixture, order in fits]),
        np.stack([mixture.means_std_[order] for mixture, order in fits]),
    )
    errors = means - POPULATION.means
    named = [incomplete] if method == "complete rows" else tables
    shares = [fit.predict_proba(rows)[:, order] for (fit, order), rows in zip(fits, named, strict=True)]
    is_missing = np.isnan(incomplete)
    result = {
        "squared_error": np.square(errors).mean(),
        "coverage": (np.abs(errors) < half_widths).mean(),
        "ari": adjusted_rand_score(labels, np.mean(shares, axis=0).argmax(axis=1)),
    }
    if method in ("complete rows", "before"):
        return result
    values, deviations = (
        mixture.impute(incomplete, return_std=True) if method == "model" else (np.mean(tables, axis=0), None)
    )
    result["imputation_error"] = np.square((values - X)[is_missing]).mean()
    if method == "model":
        result["imputed_coverage"] = (np.abs(values - X) < 1.96 * deviations)[is_missing].mean()
        copies = mixture.sample_imputations(incomplete, n_imputations=n_draws, random_state=0)[:, is_missing]
        lower, upper = np.quantile(copies, [0.025, 0.975], axis=0)
        result["drawn_coverage"] = ((lower < X[is_missing]) & (X[is_missing] < upper)).mean()
    return result


def _matched_fit(rows):
    """A fit with error bars, and its component for every true cluster; None where one was not found."""
    from sklearn_lrvb import LRVBGaussianMixture

    mixture = LRVBGaussianMixture(
        n_components=3, prior="fixed", reg_covar=0.0, max_iter=500, random_state=0, n_init=3
    )
    try:
        mixture.fit(rows)
        mixture.means_std_  # noqa: B018  A fit without error bars is left out, too.
    except ValueError:
        return None
    distances = cdist(POPULATION.means, mixture.means_)
    true, order = linear_sum_assignment(np.square(distances))
    is_found = distances[true, order].max() <= 0.5 * pdist(POPULATION.means).min()
    return (mixture, order) if is_found else None


def _pooled(estimates, deviations):
    """Estimates and half widths of their 95 % intervals, by Rubin's rules where there are several tables."""
    n_tables, within = len(estimates), np.square(deviations).mean(axis=0)
    if n_tables == 1:
        return estimates[0], 1.96 * np.sqrt(within)
    between = (1.0 + 1.0 / n_tables) * estimates.var(axis=0, ddof=1)
    freedom = (n_tables - 1) * np.square(1.0 + within / between)
    return estimates.mean(axis=0), student_t.ppf(0.975, freedom) * np.sqrt(within + between)


def _row(mechanism, share, method, results):
    kept = [result for result in results if result is not None]
    row = {
        "problem": f"{mechanism}, {100 * share:.0f} %: {method}",
        "method": method,
        "n_samples": _ROWS,
        "n_features": 4,
        "n_components": 3,
        "left_out": len(results) - len(kept),
    }
    if kept:
        row |= {name: float(np.mean([result[name] for result in kept])) for name in kept[0]}
        row["coverage_se"] = float(np.std([result["coverage"] for result in kept]) / np.sqrt(len(kept)))
    return row


def section(found):
    settings = grouped(found, lambda row: row["setting"])

    def cell(name, shape):
        return lambda row: "" if row.get(name) is None else shape(row[name])

    def percent(value):
        return f"{100 * value:.1f}"

    def root(value):
        return f"{np.sqrt(value):.3f}"

    def coverage(row):
        if row.get("coverage") is None:
            return ""
        return f"{100 * row['coverage']:.1f} ± {100 * row['coverage_se']:.1f}"

    shown = table(
        [
            ("missing", lambda row: row["setting"]),
            ("method", lambda row: METHODS[row["method"]]),
            ("left out", cell("left_out", "{:.0f}".format)),
            ("error of means", cell("squared_error", root)),
            ("means in 95 %", coverage),
            ("ARI of labels", cell("ari", "{:.3f}".format)),
            ("error of filled values", cell("imputation_error", root)),
            ("filled values in 95 %", cell("imputed_coverage", percent)),
            ("drawn values in 95 %", cell("drawn_coverage", percent)),
        ],
        [row for rows in settings.values() for row in rows],
    )
    n_data_sets = max(row["n_data_sets"] for row in found)
    return f"""{n_data_sets:.0f} data sets of {_ROWS} rows for each setting. Errors are root mean squares, in
units of X, in which clusters have standard deviations of 0.4 to 1.6. The last two columns say how many
missing values are within 1.96 of the standard deviations that ``impute`` returns, and within the central
95 % of {_DRAWS} draws of ``sample_imputations``, where so many draws of the truth's own distribution
have 93.1 %.

![Means of clusters from incomplete rows](missing_values.png)

{shown}

An imputer that does not know the clusters pulls them towards each other, and error bars that take its guesses
for data are too small: the intervals miss the true means. Five tables of draws, fitted and pooled, and
complete rows alone both have honest error bars where values are missing completely at random, but wide
ones, and means that are 1.2 to 2.5 times as far off as in the model. Where the first column decides, their
intervals miss the means as well. In the model, error bars are those of what is known.
"""


def draw(found, path):
    """Error of the means, and share of intervals that contain them, by method and setting."""
    settings = grouped(found, lambda row: row["setting"])
    with plt.rc_context(STYLE):
        figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
        for number, rows in enumerate(settings.values()):
            for row in (row for row in rows if row.get("coverage") is not None):
                place = number + 0.1 * (list(METHODS).index(row["method"]) - 3.0)
                style = {"color": _COLOURS[row["method"]], "markersize": 6}
                label = {"label": METHODS[row["method"]]} if number == 0 else {}
                left.plot(place, np.sqrt(row["squared_error"]), "o", **style, **label)
                right.plot(place, 100 * row["coverage"], "o", **style)
        right.axhline(95, color=BLACK, linewidth=0.8, linestyle=":")
        left.set_ylim(0)
        left.set_title("error of the means (rms)", size=9)
        right.set_title("95 % intervals that contain the true mean, %", size=9)
        for axes in (left, right):
            axes.set_xticks(range(len(settings)), list(settings))
            axes.grid(False, axis="x")
        figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=4)
        saved(figure, path)
