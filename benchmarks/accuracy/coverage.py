"""Do intervals contain the truth as often as they say? Three sds of one fit, over many data sets.

The intervals are the posterior mean +- 1.96 sd, with the sds of linear response, of mean field and of the
sandwich. Beside the share of intervals that contain the truth stands a sharper measure: the mean sd over the
sd that the posterior means themselves have from data set to data set.

Where the model is wrong, the truth is the pseudo-true parameter: the optimum of the same fit to a million
rows under a flat prior. Its own error is the sd of a million rows, some 0.045 of that of 2,000, which changes
the coverage by less than 0.1 %.

Components are matched to the true ones by their means. A fit is left out, and counted, if it lost a component
(under a flat prior an empty one has no posterior), did not converge, is not at a strict optimum (its
covariance is refused), or ended elsewhere: some mean is further from its true one than half the distance of
the two nearest true ones.
"""

from collections import Counter

import numpy as np
from matplotlib import pyplot as plt
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist, pdist

from benchmarks.analysis.calibration import bias, coverage, largest_share, sd_ratio
from benchmarks.harness.figures import BLUE, GREEN, GREY, ORANGE, STYLE, saved
from benchmarks.harness.tables import grouped, size, spread, table, text
from benchmarks.problems.populations import SCENARIOS

TITLE = "Coverage"
GROUPS = ("log_weights", "means", "precisions", "covariances")
METHODS = {"lrvb": "LRVB", "mean_field": "mean field", "sandwich": "sandwich"}
REASONS = ("component_lost", "not_converged", "no_strict_optimum", "elsewhere")
_DATA_SETS = 300
_REFERENCE_ROWS = 1_000_000
_REFERENCE = 0  # number of the data set that stands for the population
_MOST_STEPS = 1000
_NOMINAL = 95  # % of intervals that should contain the truth
_ONE_DATA_SET = 0.5  # share of the variance beyond which a ratio of sds describes one data set

# The same in quick mode.
_QUICK_STRIDE = 4
_QUICK_DATA_SETS = 10
_QUICK_REFERENCE_ROWS = 20_000


class LeftOutError(Exception):
    """A fit that cannot be compared; its argument is one of `REASONS`."""


def measure(settings):
    """A row for every group and method of every scenario."""
    stride, n_data_sets = (_QUICK_STRIDE, _QUICK_DATA_SETS) if settings.quick else (1, _DATA_SETS)
    reference_rows = _QUICK_REFERENCE_ROWS if settings.quick else _REFERENCE_ROWS
    for scenario in SCENARIOS[::stride]:
        yield from _rows(scenario, n_data_sets, reference_rows)


def _rows(scenario, n_data_sets, reference_rows):
    truth = true_parameters(scenario, reference_rows)
    found, left_out = [], Counter()
    for data_set in range(1, n_data_sets + 1):
        try:
            found.append(compared(scenario, scenario.simulate(data_set), truth))
        except LeftOutError as reason:
            left_out[reason.args[0]] += 1
    common = {
        "n_samples": scenario.n_samples,
        "n_features": scenario.n_features,
        "n_components": scenario.n_components,
        "covariance_type": scenario.covariance_type,
        "prior": scenario.prior,
        "misspecified": scenario.wrong,
        "n_data_sets": n_data_sets,
        "left_out": left_out.total(),
        **{reason: left_out[reason] for reason in REASONS},
    }
    for group in GROUPS:
        errors = np.array([one["error"][group].ravel() for one in found])
        for method in METHODS:
            sds = np.array([one[method][group].ravel() for one in found])
            names = {"problem": f"{scenario.name}: {group}, {method}", "setting": scenario.name}
            yield names | common | {"group": group, "method": method} | _statistics(errors, sds)


def _statistics(errors, sds):
    share, share_error = coverage(errors, sds)
    ratio, ratio_error = sd_ratio(errors, sds)
    return {
        "coverage": share,
        "coverage_se": share_error,
        "sd_over_truth": ratio,
        "sd_over_truth_se": ratio_error,
        "bias": bias(errors),
        "largest_share": largest_share(errors),
    }


def compared(scenario, X, truth):
    """{"error" or method: groups} of one data set, with components in the order of the truth."""
    from sklearn_lrvb.linear_response import IndefiniteInformationError

    mixture = _fit(scenario, X, scenario.prior)
    estimates = _estimates(scenario, mixture)
    order = _matching(estimates["means"], truth["means"])
    try:
        sds = {method: _sds(mixture, X, method, estimates) for method in METHODS}
    except IndefiniteInformationError:
        raise LeftOutError("no_strict_optimum") from None
    matched = ordered(estimates, order)
    errors = {group: matched[group] - truth[group] for group in GROUPS}
    return {"error": errors} | {method: ordered(groups, order) for method, groups in sds.items()}


def _fit(scenario, X, prior):
    """The mixture from k-means. No noise is assumed on X, so that the prior alone biases it."""
    from benchmarks.harness.inside import DegenerateComponentError
    from sklearn_lrvb import LRVBGaussianMixture

    mixture = LRVBGaussianMixture(
        n_components=scenario.n_components,
        covariance_type=scenario.covariance_type,
        prior=prior,
        reg_covar=0.0,
        max_iter=_MOST_STEPS,
        random_state=0,
    )
    try:
        mixture.fit(X)
    except DegenerateComponentError:
        raise LeftOutError("component_lost") from None
    if not mixture.converged_:
        raise LeftOutError("not_converged")
    return mixture


def _matching(means, true_means):
    """Which component matches which true one, (K,)."""
    distances = cdist(true_means, means)
    true, order = linear_sum_assignment(np.square(distances))
    if distances[true, order].max() > 0.5 * pdist(true_means).min():
        raise LeftOutError("elsewhere")
    return order


# Groups are dicts of arrays (units, width). A unit is a component, or the one matrix that they share.


def _grouped(scenario, log_weights, means, precisions, covariances):
    """Groups of the parameters, given matrices in the shape of the attributes."""
    return {
        "log_weights": log_weights[:, None],
        "means": means,
        "precisions": _unique_entries(scenario, precisions),
        "covariances": _unique_entries(scenario, covariances),
    }


def _unique_entries(scenario, matrices):
    if scenario.covariance_type in ("full", "tied"):
        matrices = matrices[(..., *np.triu_indices(scenario.n_features))]
    return matrices.reshape(1 if scenario.covariance_type == "tied" else scenario.n_components, -1)


def ordered(groups, order):
    """Groups with their components in another order."""
    return {group: part[order] if len(part) == len(order) else part for group, part in groups.items()}


def _estimates(scenario, mixture):
    """Groups of the posterior means."""
    log_weights = mixture.posterior_mean_[: scenario.n_components]
    return _grouped(scenario, log_weights, mixture.means_, mixture.precisions_, mixture.covariances_)


def _sds(mixture, X, method, estimates):
    """Groups of the posterior standard deviations, in the shapes of the estimates."""
    sds = np.sqrt(np.diag(mixture.posterior(X, method=method).covariance(list(GROUPS))))
    stops = np.cumsum([estimates[group].size for group in GROUPS])
    parts = np.split(sds, stops[:-1])
    return {group: part.reshape(estimates[group].shape) for group, part in zip(GROUPS, parts, strict=True)}


def true_parameters(scenario, reference_rows):
    """Groups of the population's parameters, or of the pseudo-true ones where the model is wrong."""
    population = scenario.population
    if scenario.wrong:
        X = population.draw(scenario.generator(_REFERENCE), reference_rows)
        return _estimates(scenario, _fit(scenario, X, "flat"))
    covariances = scenario.reported(population.covariances)
    precisions = scenario.reported(np.linalg.inv(population.covariances))
    return _grouped(scenario, np.log(population.weights), population.means, precisions, covariances)


def section(found):
    settings = table(
        [
            ("setting", text("setting", "{}")),
            ("N, P, K", size),
            ("fit", lambda row: f"{row['covariance_type']}, {row['prior']}"),
            ("what is wrong", text("misspecified", "{}")),
            ("data sets", text("n_data_sets", "{:.0f}")),
            ("left out", text("left_out", "{:.0f}")),
            *((reason.replace("_", " "), text(reason, "{:.0f}")) for reason in REASONS),
        ],
        list({row["setting"]: row for row in found}.values()),
    )
    shown = table(
        [
            ("setting", text("setting", "{}")),
            ("of", lambda row: row["group"].replace("_", " ")),
            *((f"{name}, %", _percent(f"{method}_coverage")) for method, name in METHODS.items()),
            *((f"{name}: sd", _over_truth(f"{method}_sd_over_truth")) for method, name in METHODS.items()),
            ("bias", text("bias", "{:.2f}")),
        ],
        _methods_beside_each_other(found),
    )
    n_data_sets = spread([row["n_data_sets"] for row in found])
    return f"""The table has the results of {n_data_sets} simulated data sets for each setting: how
many 95 % intervals (posterior mean and 1.96 sd to either side) contain the truth, from the worst to the best
of log weights, means, precisions and covariances. In parentheses is the mean sd over the true one, which is
the sd of the posterior means from data set to data set.

{_summary(found)}

![Coverage](coverage.png)

* Where the model is right and rows are many, the sds of LRVB are nearly the true ones, for all four
  covariance types. They are a little too small, beyond chance, with three components in five features, where
  there are 32 rows for each parameter. Mean field's are far too small as soon as components overlap.
* With 200 rows and much overlap this ends. There the sandwich is little better than LRVB, as the estimates
  are no longer normal: some fits shrink a component onto a few rows, and then the sd of its precision means
  nothing. Such groups, in which one data set makes more than half of the true variance of an estimate, are
  left out of the ratios above.
* With the fixed prior the sds are about right even with 200 rows, but the prior moves the estimates (see
  the bias below), which costs coverage too.
* Under a wrong model the truth is what the same fit finds in a million rows. With heavy tails or skew noise
  LRVB still covers weights and means nearly as often as it should, but its sds of precisions and covariances
  are too small. The sandwich corrects these sds; under heavy tails it is still 10 % too small, because its
  fourth moments are poorly estimated. It needs independent rows, as LRVB does: where every row is there
  twice, both are too small by the root of two.

The next table has the same for every group of parameters. ± is the Monte Carlo standard error over data sets,
as the parameters of one data set depend on each other. "Bias" is the root mean square over a group of the
mean error in true sds, of which chance makes one over the root of the number of data sets. Numbers in
parentheses belong to groups in which one data set makes more than half of the true variance of an estimate:
the ratio then says nothing, the coverage still does.

{shown}

Where the model is wrong, the truth has an error of its own, some 0.045 of an sd of 2,000 rows, which changes
the coverage by less than 0.1 %. The distances in the names are those of the two centers along the first axis.
Fits are left out that lost a component, did not converge, are not at a strict optimum (their covariance is
refused), or ended elsewhere: with a mean further from its own than half the distance of the two nearest true
ones.

{settings}
"""


def _summary(found):
    """A line for every setting, with the range of coverage and of ratios over the groups of parameters."""
    return table(
        [
            ("setting", lambda rows: _setting(rows[0])),
            ("what is wrong", lambda rows: rows[0]["misspecified"] or ""),
            *((name, _range_of(method)) for method, name in METHODS.items()),
        ],
        grouped(found, lambda row: row["setting"]).values(),
    )


def _setting(row):
    """Number of rows and name of a setting, whose name may begin with that number."""
    n_rows = f"{row['n_samples']:,.0f} rows"
    return f"{n_rows}: {row['setting'].removeprefix(f'{n_rows}, ')}"


def _range_of(method):
    def cell(rows):
        own = [row for row in rows if row["method"] == method]
        shares = spread([100 * row["coverage"] for row in own])
        ratios = [row["sd_over_truth"] for row in own if row["largest_share"] <= _ONE_DATA_SET]
        return f"{shares} % ({spread(ratios, '{:.2f}')})" if ratios else f"{shares} %"

    return cell


def _methods_beside_each_other(found):
    """One row for every setting and group, with the methods' numbers in columns of their own."""
    measured = ("coverage", "coverage_se", "sd_over_truth", "sd_over_truth_se")
    merged = {}
    for row in found:
        beside = merged.setdefault((row["setting"], row["group"]), dict(row))
        beside.update({f"{row['method']}_{name}": row[name] for name in measured})
    return list(merged.values())


def _percent(name):
    return lambda row: f"{100 * row[name]:.1f} ± {100 * row[name + '_se']:.1f}"


def _over_truth(name):
    """A ratio of sds, in parentheses where one data set makes most of the true variance."""

    def cell(row):
        shown = f"{row[name]:.2f} ± {row[name + '_se']:.2f}"
        return f"({shown})" if row["largest_share"] > _ONE_DATA_SET else shown

    return cell


def draw(found, path):
    """Share of intervals that contain the truth: a panel for every group, a line for every setting.

    Parameters
    ----------
    found : list of rows, of one setting, group and method each
    """
    groups = dict.fromkeys(row["group"] for row in found)
    lines, labels = _lines_under_headings(found)
    with plt.rc_context(STYLE):
        size = (10, 1.2 + 0.36 * len(labels))
        figure, panels = plt.subplots(
            1, len(groups), figsize=size, layout="constrained", sharex=True, sharey=True
        )
        for axes, group in zip(panels, groups, strict=True):
            axes.axvline(_NOMINAL, color=GREY, linewidth=1)
            axes.hlines(list(lines.values()), 0, 100, color="#F5F5F5", linewidth=20, zorder=0)
            styles = zip(METHODS, "osD", (BLUE, ORANGE, GREEN), (-0.24, 0, 0.24), strict=True)
            for method, marker, colour, offset in styles:
                here = [row for row in found if (row["group"], row["method"]) == (group, method)]
                axes.errorbar(
                    [100 * row["coverage"] for row in here],
                    [lines[row["setting"]] + offset for row in here],
                    xerr=[200 * row["coverage_se"] for row in here],
                    fmt=marker,
                    color=colour,
                    markersize=4,
                    linewidth=1,
                    label=METHODS[method],
                )
            axes.set_title(group.replace("_", " "), size=9)
            axes.grid(False, axis="y")
            axes.tick_params(axis="y", length=0)
        panels[0].set_yticks(range(len(labels)), labels)
        panels[0].set_ylim(len(labels) - 0.4, -0.6)
        least = min(100 * (row["coverage"] - 2 * row["coverage_se"]) for row in found)
        panels[0].set_xlim(max(0, 10 * (least // 10)), 101)
        panels[0].set_xticks([tick for tick in (0, 20, 40, 60, 80) if tick >= least - 10] + [_NOMINAL])
        for label in panels[0].get_yticklabels():
            label.set_fontweight("normal" if label.get_text() in lines else "bold")
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
        figure.supxlabel(
            "% of 95 % intervals that contain the truth, ± 2 Monte Carlo standard errors", size=9
        )
        saved(figure, path)


def _lines_under_headings(found):
    """The line of every setting, and the labels of all lines from the top: settings and headings."""
    lines, labels, last = {}, [], None
    for row in found:
        wrong = ", the model is wrong" if row["misspecified"] else ""
        heading = f"{row['n_samples']:,.0f} rows{wrong}"
        if heading != last:
            labels.append(heading)
            last = heading
        if row["setting"] not in lines:
            lines[row["setting"]] = len(labels)
            labels.append(row["setting"])
    return lines, labels
