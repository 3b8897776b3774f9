"""Coverage again, with corrections: does the exact posterior contain the truth where linear response fails?

The settings are some of those of the coverage experiment in which error bars of linear response hold the
truth too rarely. The fit has the fixed prior, under which the exact posterior exists; the truth was not
drawn from that prior, which pulls the estimates of few rows towards the middle of the table. (`exactness` has
truths that were.) Intervals are the central 95 % ones of ``posterior``. Components are matched to the
true ones by their means; fits that lost a component or ended elsewhere are left out.
"""

import warnings
from collections import Counter

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist, pdist

from benchmarks.harness.tables import table, text
from benchmarks.problems.populations import PLACES_OF_FAILURE

TITLE = "Coverage with corrections"
TARGETS = ("log_weights", "means", "precisions")
METHODS = {"lrvb": "LRVB", "exact": "exact"}
_DATA_SETS, _QUICK_DATA_SETS = 100, 1
_QUICK_STRIDE = 2


def measure(settings):
    """A row for every method and target of every setting."""
    if settings.quick:
        for scenario in PLACES_OF_FAILURE[::_QUICK_STRIDE]:
            yield from _rows(scenario, _QUICK_DATA_SETS)
        return
    for scenario in PLACES_OF_FAILURE:
        yield from _rows(scenario, _DATA_SETS)


def _rows(scenario, n_data_sets):
    hits, left_out = {}, Counter()
    for data_set in range(1, n_data_sets + 1):
        found = _hits(scenario, scenario.simulate(data_set))
        if found is None:
            left_out["all"] += 1
            continue
        for key, value in found.items():
            hits.setdefault(key, []).append(value)
    for (method, target), by_data_set in hits.items():
        shares = np.mean(by_data_set, axis=1)
        yield {
            "problem": f"{scenario.name}: {method}, {target}",
            "setting": scenario.name,
            "method": method,
            "target": target,
            "n_samples": scenario.n_samples,
            "n_features": scenario.n_features,
            "n_components": scenario.n_components,
            "n_data_sets": n_data_sets,
            "left_out": left_out["all"],
            "coverage": float(shares.mean()),
            "coverage_se": float(shares.std() / np.sqrt(len(shares))),
        }


def _hits(scenario, X):
    """Which intervals contain the truth, by method and target; None for a fit that is left out."""
    from sklearn_lrvb import LRVBGaussianMixture
    from sklearn_lrvb.linear_response import IndefiniteInformationError

    population = scenario.population
    mixture = LRVBGaussianMixture(
        n_components=scenario.n_components, prior="fixed", reg_covar=0.0, max_iter=1000, random_state=0
    ).fit(X)
    distances = cdist(population.means, mixture.means_)
    true, order = linear_sum_assignment(np.square(distances))
    if distances[true, order].max() > 0.5 * pdist(population.means).min():
        return None
    place = np.argsort(order)  # of the true component for each of the fit
    entries = np.triu_indices(scenario.n_features)
    precisions = np.linalg.inv(population.covariances)[:, *entries]
    truth = {
        "log_weights": np.log(population.weights)[place],
        "means": population.means[place].ravel(),
        "precisions": precisions[place].ravel(),
    }
    found = {}
    for method in METHODS:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                summary = mixture.posterior(method=method, random_state=0).summary(list(TARGETS))
        except IndefiniteInformationError:
            return None
        sizes = np.cumsum([truth[target].size for target in TARGETS])[:-1]
        ends = [np.split(summary[end].to_numpy(), sizes) for end in ("lower", "upper")]
        for target, lower, upper in zip(TARGETS, *ends, strict=True):
            found[method, target] = (lower < truth[target]) & (truth[target] < upper)
    return found


def section(found):
    settings = list(dict.fromkeys(row["setting"] for row in found))
    by_key = {(row["setting"], row["target"], row["method"]): row for row in found}
    lines = [(setting, target) for setting in settings for target in TARGETS]

    def cell(method):
        def text_of(line):
            row = by_key[*line, method]
            return f"{100 * row['coverage']:.1f} ± {100 * row['coverage_se']:.1f}"

        return text_of

    shown = table(
        [
            ("setting", lambda line: line[0]),
            ("of", lambda line: line[1].replace("_", " ")),
            ("left out", lambda line: text("left_out", "{:.0f}")(by_key[*line, "lrvb"])),
            *((f"{name}, %", cell(method)) for method, name in METHODS.items()),
        ],
        lines,
    )
    n_data_sets = max(row["n_data_sets"] for row in found)
    return f"""Of {n_data_sets:.0f} data sets for each setting, how many 95 % intervals contain the truth,
under the fixed prior. ± is the Monte Carlo standard error over data sets.

{shown}

With 200 rows and two standard deviations between the clusters, intervals of weights and means by linear
response hold the truth in 88 to 89 % of the cases, exact ones in 95 to 97 %. At 2.6 standard deviations
precisions stay at 90 to 91 %, because the prior pulls few rows' covariances towards that of the whole table:
it is not the posterior's shape that they lack, and where the truth comes from the prior they do not (see the
calibration above). Three components in five features have enough rows for all three.
"""
