"""Do intervals contain the truth where clusters have the tails of Student's t?

Data sets of `problems.heavy_tails` are fitted by normal components, with the sds of linear response and of
the sandwich, and by Student's t components with fitted degrees of freedom. The truth is that of the clusters,
so a normal mixture is held to their covariances, nu/(nu - 2) times the scale matrices. Intervals are the
posterior mean +- 1.96 sd. Components are matched to the true ones by their means; a fit is left out, and
counted, if a mean is further from its own than half the distance of the centers, or if it has no error bars.
"""

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from benchmarks.analysis.calibration import coverage, sd_ratio
from benchmarks.harness.tables import grouped, table
from benchmarks.problems.heavy_tails import HEAVY_TAILS, HeavyTails

TITLE = "Heavy tails"
METHODS = {
    "normal": ("normal, LRVB", {}, "lrvb"),
    "sandwich": ("normal, sandwich", {}, "sandwich"),
    "student": ('`tails="student"`', {"tails": "student"}, "lrvb"),
}
GROUPS = ("weights", "means", "covariances", "scales")
_ERRORS = (("means", "normal"), ("means", "student"), ("covariances", "normal"), ("covariances", "student"))
# These have many data sets, the others of `HEAVY_TAILS` few.
_MAIN = (HeavyTails(5.0, 3.0), HeavyTails(5.0, 6.0))
_DATA_SETS, _FEW_DATA_SETS, _QUICK_DATA_SETS = 100, 20, 3


def measure(settings):
    """A row for every problem, method and group of parameters."""
    if settings.quick:
        yield from _rows(_MAIN[1], _QUICK_DATA_SETS)
        return
    for problem in HEAVY_TAILS:
        yield from _rows(problem, _DATA_SETS if problem in _MAIN else _FEW_DATA_SETS)


def _rows(problem, n_data_sets):
    truth = _truth(problem)
    found, left_out = {}, dict.fromkeys(METHODS, 0)
    for data_set in range(n_data_sets):
        X, mixtures = problem.simulate(data_set), {}
        for method, (_, arguments, kind) in METHODS.items():
            key = tuple(arguments.items())
            if key not in mixtures:
                mixtures[key] = _fitted(problem, X, arguments)
            compared = _compared(mixtures[key], X, kind, problem, truth)
            left_out[method] += compared is None
            for group, values in (compared or {}).items():
                found.setdefault((method, group), []).append(values)
    for (method, group), values in found.items():
        errors, sds = np.array(values).swapaxes(0, 1)
        yield {
            "problem": f"{problem.name}: {group}, {method}",
            "setting": problem.name,
            "method": method,
            "group": group,
            "n_samples": problem.n_samples,
            "n_features": problem.n_features,
            "n_components": problem.n_components,
            "degrees_of_freedom": problem.degrees_of_freedom,
            "distance": problem.distance,
            "n_data_sets": n_data_sets,
            "left_out": left_out[method],
            "rmse": float(np.sqrt(np.mean(np.square(errors)))),
        } | _statistics(errors, sds)


def _statistics(errors, sds):
    if len(errors) < 2:
        return {}
    share, share_error = coverage(errors, sds)
    return {
        "coverage": share,
        "coverage_se": share_error,
        "sd_over_truth": sd_ratio(errors, sds)[0],
    }


def _fitted(problem, X, arguments):
    from sklearn_lrvb import LRVBGaussianMixture

    return LRVBGaussianMixture(
        n_components=problem.n_components,
        prior="fixed",
        weight_concentration_prior_type="dirichlet_distribution",
        reg_covar=0.0,
        max_iter=1000,
        random_state=0,
        **arguments,
    ).fit(X)


def _truth(problem):
    """Parameters of the clusters by group: {group: (K, d)}."""
    population, entries = problem.population, np.triu_indices(problem.n_features)
    return {
        "weights": population.weights[:, None],
        "means": population.means,
        "covariances": population.covariances[:, *entries],
        "scales": problem.scales[:, *entries],
    }


def _compared(mixture, X, kind, problem, truth):
    """Errors and sds of the parameters by group, {group: (two arrays (K d,))}; None for a fit left out."""
    from sklearn_lrvb.linear_response import IndefiniteInformationError

    distances = cdist(truth["means"], mixture.means_)
    true, order = linear_sum_assignment(np.square(distances))
    if distances[true, order].max() > 0.5 * problem.distance:
        return None
    values = _estimates(mixture, problem)
    try:
        covariance = mixture.posterior(X, method=kind).covariance(list(values))
    except IndefiniteInformationError:
        return None
    sizes = np.cumsum([own.size for own in values.values()])
    sds = np.split(np.sqrt(np.diag(covariance)), sizes[:-1])
    return {
        group: ((own[order] - truth[group]).ravel(), sd.reshape(own.shape)[order].ravel())
        for (group, own), sd in zip(values.items(), sds, strict=True)
    }


def _estimates(mixture, problem):
    """Posterior means by group, {group: (K, d)}; covariances need nu above two, and scales are those of t."""
    entries = np.triu_indices(problem.n_features)
    found = {"weights": mixture.weights_[:, None], "means": mixture.means_}
    for group in ("covariances", "scales"):
        if hasattr(mixture, f"{group}_"):
            found[group] = getattr(mixture, f"{group}_")[:, *entries]
    return found


def section(found):
    def cell(group, method):
        """Coverage of a group by a method, in percent."""

        def text(rows):
            own = [row for row in rows if (row["group"], row["method"]) == (group, method)]
            return f"{100 * own[0]['coverage']:.0f}" if own else ""

        return text

    by_setting = grouped(found, lambda row: row["setting"])
    columns = [
        (f"{group}, {name}", cell(group, method))
        for group in GROUPS
        for method, (name, _, _) in METHODS.items()
        if group != "scales" or method == "student"
    ]
    shown = table(
        [
            ("problem", lambda rows: rows[0]["setting"]),
            ("data sets", lambda rows: f"{rows[0]['n_data_sets']:.0f}"),
            *columns,
            ("left out", _left_out),
        ],
        by_setting.values(),
    )
    errors = table(
        [
            ("problem", lambda rows: rows[0]["setting"]),
            *((f"{group}, {METHODS[method][0]}", _error(group, method)) for group, method in _ERRORS),
        ],
        by_setting.values(),
    )
    return f"""How many 95 % intervals contain the truth, in percent. Data sets have 1,000 rows. The centers
are 3 or 6 units apart, where the scale of a cluster is about one. The true covariances are nu/(nu - 2) times
the scale matrices. Left out are fits, by method, whose means are not those of the clusters or that have no
error bars.

{shown}

Root mean square errors of the estimates:

{errors}
"""


def _left_out(rows):
    """Fits that are left out, of every method."""
    by_method = {row["method"]: row["left_out"] for row in rows}
    return ", ".join(f"{by_method[method]:.0f}" for method in METHODS if method in by_method)


def _error(group, method):
    def text(rows):
        own = [row["rmse"] for row in rows if (row["group"], row["method"]) == (group, method)]
        return f"{own[0]:.3g}" if own else ""

    return text
