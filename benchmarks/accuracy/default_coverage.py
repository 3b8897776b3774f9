"""Do the intervals of the default table contain the truth where rows are few?

Tables of 150 rows have two or three clusters, all pairs equally far apart, in two to four columns. The
mixture and its table have their defaults: the prior is learned, and the table chooses its error bars.
Components are matched to the true ones by their means. A table is left out, and counted, if it lacks a
component, or if a mean is further from its own than half the distance of the centers. How often a table
says that it has not converged is counted too.
"""

import itertools
import warnings

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist, pdist

from benchmarks.harness.tables import grouped, table
from benchmarks.problems.populations import Scenario, equally_far

TITLE = "Coverage of the default table"
GROUPS = ("weight", "mean", "sd")
SETTINGS = tuple(
    Scenario(f"{K} clusters, {P} columns, {distance} sd", equally_far(K, P, distance), 150)
    for K, distance, P in itertools.product((2, 3), (3.0, 2.3), (2, 3, 4))
)
_DATA_SETS, _QUICK_DATA_SETS = 40, 1
_QUICK_STRIDE = 6


def measure(settings):
    """A row for every setting and group of parameters."""
    chosen = SETTINGS[::_QUICK_STRIDE] if settings.quick else SETTINGS
    for scenario in chosen:
        yield from _rows(scenario, _QUICK_DATA_SETS if settings.quick else _DATA_SETS)


def _rows(scenario, n_data_sets):
    hits, n_left_out, n_not_converged = {group: [] for group in GROUPS}, 0, 0
    for data_set in range(1, n_data_sets + 1):
        found, note = _hits(scenario, scenario.simulate(data_set))
        n_not_converged += "not converged" in note
        n_left_out += not found
        for group, is_in in found.items():
            hits[group].append(np.mean(is_in))
    for group, shares in hits.items():
        row = {
            "problem": f"{scenario.name}: {group}",
            "setting": scenario.name,
            "group": group,
            "n_samples": scenario.n_samples,
            "n_features": scenario.n_features,
            "n_components": scenario.n_components,
            "n_data_sets": n_data_sets,
            "left_out": n_left_out,
            "not_converged": n_not_converged,
        }
        if shares:
            row["coverage"] = float(np.mean(shares))
            row["coverage_se"] = float(np.std(shares) / np.sqrt(len(shares)))
        yield row


def _hits(scenario, X):
    """Which intervals contain the truth by group, empty where a table is left out; and the table's note."""
    from sklearn_lrvb import LRVBGaussianMixture

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mixture = LRVBGaussianMixture(n_components=scenario.n_components, random_state=0).fit(X)
        found = mixture.posterior().summary()
    truth = _truth(scenario.population, found["mean"])
    is_in = {group: [] for group in GROUPS if truth}
    for name, value in truth.items():
        is_in[name.split("[")[0]].append(found["lower"][name] < value < found["upper"][name])
    return is_in, found.attrs["note"]


def _truth(population, found):
    """True values by the names of a table's parameters; none where it has other components.

    Parameters
    ----------
    population : Population
    found : Series of estimates by name
    """
    K, P = population.means.shape
    names = np.array([[f"mean[{k},x{p}]" for p in range(P)] for k in range(K)])
    means = found.reindex(names.ravel()).to_numpy().reshape(K, P)
    if np.isnan(means).any():
        return {}
    distances = cdist(population.means, means)
    true, order = linear_sum_assignment(np.square(distances))
    if distances[true, order].max() > 0.5 * pdist(population.means).min():
        return {}
    sds = np.sqrt(np.diagonal(population.covariances, axis1=1, axis2=2))
    truth = {f"weight[{order[k]}]": population.weights[k] for k in range(K)}
    for k, p in np.ndindex(K, P):
        truth |= {f"mean[{order[k]},x{p}]": population.means[k, p], f"sd[{order[k]},x{p}]": sds[k, p]}
    return truth


def section(found):
    def cell(group):
        def text(rows):
            own = next(row for row in rows if row["group"] == group)
            if own.get("coverage") is None:
                return ""
            return f"{100 * own['coverage']:.0f} ± {100 * own['coverage_se']:.0f}"

        return text

    by_setting = grouped(found, lambda row: row["setting"])
    shown = table(
        [
            ("setting", lambda rows: rows[0]["setting"]),
            *((f"{group}s, %", cell(group)) for group in GROUPS),
            ("left out", lambda rows: f"{rows[0]['left_out']:.0f}"),
            ("not converged", lambda rows: f"{rows[0]['not_converged']:.0f}"),
        ],
        by_setting.values(),
    )
    n_data_sets = max(row["n_data_sets"] for row in found)
    return f"""Of {n_data_sets:.0f} tables of 150 rows for each setting, how many 95 % intervals of
the default table, `posterior().summary()`, contain the truth. ± is the Monte Carlo standard error over
tables. Left out are fits whose components are not near the true ones.

{shown}
"""
