"""Clusters with outliers among them: how far do these move the means, and which rows are found?

The tables of `problems.outliers` have three Gaussian clusters and rows that belong to none. What a method
finds in all rows is compared with our fit to the rows of the clusters alone, which starts from their true
labels. Means are in the sds of that fit, so that a shift of one is as large as its error bar. All others
start by themselves, from five starts (mclust from one).
"""

import time

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from benchmarks.harness.tables import grouped, table
from benchmarks.problems.outliers import KINDS, N_CLUSTERS, N_FEATURES, N_TABLES, OUTLIER, outlier_tables

TITLE = "Outliers"
METHODS = {
    "clean": "ours, without the outliers",
    "plain": "ours",
    "noise": "ours, `noise=True`",
    "mclust": "mclust with noise",
    "theirs": "BayesianGaussianMixture",
    "hdbscan": "HDBSCAN",
}
_WITHOUT_SHIFT = ("clean", "hdbscan")
_COVERED = {"clean": "without the outliers", "plain": "ours", "noise": "`noise=True`"}
_FINDERS = {"noise": "`noise=True`", "mclust": "mclust", "hdbscan": "HDBSCAN"}
_LABELLERS = {"plain": "ours"} | _FINDERS
_STARTS = 5
_SMALLEST_CLUSTER = 25  # rows, of HDBSCAN; our clusters have 150 or so
_QUICK = {"kinds": ("clean", "20 % uniform"), "n_features": (2,), "n_tables": 1}
_FULL = {"kinds": tuple(KINDS), "n_features": N_FEATURES, "n_tables": N_TABLES}
_TWO_SIDED = 1.96
_ARGUMENTS = {
    "n_components": N_CLUSTERS,
    "weight_concentration_prior_type": "dirichlet_distribution",
    "max_iter": 1000,
    "random_state": 0,
}


def measure(settings):
    """A row for every table and method."""
    from benchmarks.rivals.noise_references import stored

    references = stored()
    for own in outlier_tables(**_QUICK if settings.quick else _FULL):
        reference = references.get(own.name)
        if reference is not None:
            reference.check(own.X)
        clean, seconds = _clean(own)
        fits = {"clean": {"mixture": clean, "labels": np.full(len(own.X), OUTLIER), "seconds": seconds}}
        fits["clean"]["labels"][~own.is_outlier] = clean.predict(own.X[~own.is_outlier])
        fits |= {"plain": _ours(own), "noise": _ours(own, noise=True), "theirs": _theirs(own)}
        fits |= {"hdbscan": _hdbscan(own)}
        for method, fit in fits.items():
            yield _names(own, method) | _compared(own, clean, **fit)
        if reference is not None:
            yield _names(own, "mclust") | _of_mclust(own, clean, reference)


def _names(own, method):
    """Columns of a row: which table, and what was fitted."""
    setting = own.name.split(":")[0]
    n_samples, n_features = own.X.shape
    return {
        "problem": f"{own.name}, {method}",
        "setting": setting,
        "kind": own.kind,
        "method": method,
        "n_samples": n_samples,
        "n_features": n_features,
        "n_components": N_CLUSTERS,
        "n_outliers": int(own.is_outlier.sum()),
    }


def _fitted(mixture, X):
    """What is compared of a mixture: the fit, its labels, and the seconds of the processor."""
    before = time.process_time()
    mixture.fit(X)
    seconds = time.process_time() - before
    return {"mixture": mixture, "labels": mixture.predict(X), "seconds": seconds}


def _clean(own):
    """Our fit to the rows of the clusters, from their labels, and its seconds."""
    from sklearn_lrvb import LRVBGaussianMixture

    responsibilities = np.eye(N_CLUSTERS)[own.labels[~own.is_outlier]]
    mixture = LRVBGaussianMixture(**_ARGUMENTS, prior="fixed", init_params=responsibilities)
    found = _fitted(mixture, own.X[~own.is_outlier])
    return found["mixture"], found["seconds"]


def _ours(own, **noise):
    from sklearn_lrvb import LRVBGaussianMixture

    return _fitted(LRVBGaussianMixture(**_ARGUMENTS, prior="fixed", n_init=_STARTS, **noise), own.X)


def _theirs(own):
    from sklearn.mixture import BayesianGaussianMixture

    return _fitted(BayesianGaussianMixture(**_ARGUMENTS, n_init=_STARTS), own.X)


def _hdbscan(own):
    """Labels of HDBSCAN, which has no parameters; -1 for noise."""
    from sklearn.cluster import HDBSCAN

    before = time.process_time()
    labels = HDBSCAN(min_cluster_size=_SMALLEST_CLUSTER, copy=True).fit_predict(own.X)
    return {"labels": labels, "seconds": time.process_time() - before}


def _compared(own, clean, labels, seconds, mixture=None):
    """Columns of a row: what a method found."""
    from sklearn.metrics import adjusted_rand_score

    is_noise = labels == OUTLIER
    row = {
        "found": int(np.sum(is_noise & own.is_outlier)),
        "lost": int(np.sum(is_noise & ~own.is_outlier)),
        "agreement": float(adjusted_rand_score(own.labels, labels)),
        "seconds": seconds,
    }
    if mixture is None:
        return row
    weight = getattr(mixture, "noise_weight_", None)
    row |= _shifts(clean, mixture.means_) | {"noise_weight": None if weight is None else float(weight)}
    if hasattr(mixture, "means_std_"):
        errors = mixture.means_[_matching(own.population.means, mixture.means_)] - own.population.means
        stds = mixture.means_std_[_matching(own.population.means, mixture.means_)]
        row["coverage"] = float(np.mean(np.abs(errors) < _TWO_SIDED * stds))
    return row


def _of_mclust(own, clean, reference):
    """Columns of a row: what mclust found."""
    names = ("found", "lost", "agreement", "seconds", "noise_weight")
    return {name: getattr(reference, name) for name in names} | _shifts(clean, np.array(reference.means))


def _shifts(clean, means):
    """How far means (K, P) are from the clean fit's, in its sds: root mean square, and the farthest."""
    shifts = (means[_matching(clean.means_, means)] - clean.means_) / clean.means_std_
    return {"shift": float(np.sqrt(np.mean(np.square(shifts)))), "farthest": float(np.abs(shifts).max())}


def _matching(true, means):
    """Which of the means is nearest to which true one, (K,)."""
    return linear_sum_assignment(np.square(cdist(true, means)))[1]


def section(found):
    by_setting = grouped(found, lambda row: row["setting"])
    shifts = table(
        [
            ("problem", lambda rows: rows[0]["setting"]),
            *((METHODS[method], _shift_cell(method)) for method in METHODS if method not in _WITHOUT_SHIFT),
            *((f"coverage, {name}, %", _coverage_cell(method)) for method, name in _COVERED.items()),
        ],
        by_setting.values(),
    )
    labels = table(
        [
            ("problem", lambda rows: rows[0]["setting"]),
            *((f"found, {name}, %", _share_cell(method, "found")) for method, name in _FINDERS.items()),
            *((f"lost, {name}, %", _share_cell(method, "lost")) for method, name in _FINDERS.items()),
            *((f"ARI, {name}", _median_cell(method, "agreement")) for method, name in _LABELLERS.items()),
            ("weight of noise", _median_cell("noise", "noise_weight", "{:.3f}")),
        ],
        by_setting.values(),
    )
    of_methods = grouped(found, lambda row: row["method"])
    times = table(
        [
            ("fit", lambda method: METHODS[method]),
            ("s", lambda method: f"{np.median([row['seconds'] for row in of_methods[method]]):.2g}"),
        ],
        [method for method in METHODS if method in of_methods],
    )
    return f"""Three clusters in 600 rows, some of which are outliers: uniform over the box of the others,
normal with three times their spread, or a thousand standard deviations away. The first table has how far the
means are from those of our fit without the outliers, in its sds: the root mean square over the means, its
median over the tables and the largest. Coverage is of the true means by 95 % intervals.

{shifts}

![Shifts of means](outliers.png)

Which rows are labelled as noise: the outliers that are found and the rows of clusters that are lost, in all
tables together, and the adjusted Rand index of the labels, noise being one (median).

{labels}

Median times of the processor; mclust has one start, the other mixtures five.

{times}
"""


def _values(rows, method, name):
    """A column of the rows of one method, without those that lack it."""
    return [row[name] for row in rows if row["method"] == method and row.get(name) is not None]


def _shift_cell(method):
    def cell(rows):
        shifts = _values(rows, method, "shift")
        return f"{np.median(shifts):.2f}, {max(shifts):.2f}" if shifts else ""

    return cell


def _coverage_cell(method):
    return lambda rows: f"{100 * np.mean(_values(rows, method, 'coverage')):.0f}"


def _median_cell(method, name, shape="{:.2f}"):
    def cell(rows):
        values = _values(rows, method, name)
        return shape.format(np.median(values)) if values else ""

    return cell


def _share_cell(method, name):
    """Outliers that are found, or other rows that are lost, in percent of all that there are."""

    def cell(rows):
        own = [row for row in rows if row["method"] == method]
        outliers = sum(row["n_outliers"] for row in own)
        total = outliers if name == "found" else sum(row["n_samples"] for row in own) - outliers
        return f"{100 * sum(row[name] for row in own) / total:.1f}" if total else ""

    return cell


def draw(found, path):
    """Shifts of the means against the number of features: a panel for every kind of outliers."""
    from matplotlib import pyplot as plt

    from benchmarks.harness import figures

    kinds = grouped(found, lambda row: row["kind"])
    styles = {
        "plain": (figures.GREY, "o"),
        "theirs": (figures.PURPLE, "s"),
        "mclust": (figures.ORANGE, "D"),
        "noise": (figures.BLUE, "o"),
    }
    with plt.rc_context(figures.STYLE):
        size = (2.4 * len(kinds) + 1.0, 3.2)
        drawn, panels = plt.subplots(
            1, len(kinds), figsize=size, layout="constrained", sharey=True, squeeze=False
        )
        for axes, (kind, rows) in zip(panels[0], kinds.items(), strict=True):
            of_features = grouped(rows, lambda row: row["n_features"])
            for method, (color, marker) in styles.items():
                medians = [np.median(_values(own, method, "shift") or np.nan) for own in of_features.values()]
                style = {"color": color, "marker": marker, "markersize": 4, "label": METHODS[method]}
                axes.plot(range(len(of_features)), medians, **style)
            axes.set(title=kind, xlabel="features")
            axes.set_yscale("symlog", linthresh=0.1)
            axes.set_xticks(range(len(of_features)), [f"{n:.0f}" for n in of_features])
        panels[0, 0].set(ylabel="shift of means, sd", ylim=0)
        panels[0, 0].legend(fontsize=7)
        figures.saved(drawn, path)
