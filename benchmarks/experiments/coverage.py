"""Do intervals hold the truth as often as they say? Three sds of one fit, over many data sets.

The intervals are posterior mean +- 1.96 sd, the sds those of linear response, of mean field and of the
sandwich. Beside the share of them that holds the truth stands the sharper measure: the mean sd over the sd
that the posterior means themselves have from data set to data set.

Where the model is wrong, the truth is the pseudo-true parameter: the optimum of the same fit to a million
rows under a flat prior. Its own error is the sd of a million rows, some 0.045 of that of 2,000, which takes
less than 0.1 % off the coverage.

Components are matched to the true ones by their means. A fit is left out, and counted, if it lost a
component (under a flat prior an empty one has no posterior), did not converge, is no strict optimum (its
covariance is refused), or landed elsewhere: some mean lies further from its true one than half of the way
between the two nearest true ones.
"""

from collections import Counter

import numpy as np
from calibration import bias, coverage, largest_share, sd_ratio
from populations import SCENARIOS
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist, pdist

from sklearn_lrvb import LRVBGaussianMixture
from sklearn_lrvb.gaussian_mixture.posterior.variational_posterior import DegenerateComponentError
from sklearn_lrvb.linear_response import IndefiniteInformationError

GROUPS = ("log_weights", "means", "precisions", "covariances")
METHODS = ("lrvb", "mean_field", "sandwich")
REASONS = ("component_lost", "not_converged", "no_strict_optimum", "elsewhere")
_DATA_SETS = 300
_REFERENCE_ROWS = 1_000_000
_REFERENCE = 0  # the number of the data set that stands for the population
_MOST_STEPS = 1000

# in quick mode
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
    """The mixture from k-means; no noise is assumed on X, so that only the prior parts it from the truth."""
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
    """Which component is which true one, (K,)."""
    distances = cdist(true_means, means)
    true, order = linear_sum_assignment(np.square(distances))
    if distances[true, order].max() > 0.5 * pdist(true_means).min():
        raise LeftOutError("elsewhere")
    return order


# Groups are dicts of arrays (units, width); units are components, or the one matrix that all share.


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
    sds = np.sqrt(np.diag(mixture.get_posterior_covariance(list(GROUPS), method=method, X=X)))
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
