"""Simulation-based calibration: parameters drawn from the prior, rows from them, and the rank of the truth.

Where draws come from the exact posterior, the rank of the true value of any function of the parameters among
them is uniform over data sets that are drawn from the prior (Talts, Betancourt, Simpson, Vehtari and Gelman
2018). The functions do not depend on the numbers of the components: weights, means and log precisions of the
components in the order of their first means, and the log likelihood of the rows.

The prior is that of the fit, and is set by hand: means spread over some four standard deviations of a
component, so that most data sets have clusters that overlap a little and some that overlap much. There are a
prior whose hyperparameters are given, and one whose spread of the means and typical covariance are drawn for
every data set and learned. Data sets are left out in which the fit does not keep both components: such a
posterior has a mode that neither linear response nor the chains start from.
"""

import warnings
from contextlib import nullcontext

import numpy as np
from matplotlib import pyplot as plt
from scipy import stats

from benchmarks.harness.figures import BLUE, GREY, ORANGE, STYLE, saved
from benchmarks.harness.tables import table

TITLE = "Simulation-based calibration"
METHODS = {"lrvb": "LRVB", "exact": "exact"}
FUNCTIONS = ("left weight", "left mean", "right mean", "left log precision", "right log precision", "fit")
_DATA_SETS, _QUICK_DATA_SETS = 600, 1
_DRAWS = 199
_ROWS = 100
_FEATURES = 2
_SHARED = {
    "weight_concentration_prior": 3.0,
    "weight_concentration_prior_type": "dirichlet_distribution",
    "mean_prior": np.zeros(_FEATURES),
    "degrees_of_freedom_prior": 8.0,
    "reg_covar": 0.0,
}
_GIVEN = {"mean_precision_prior": 0.06, "covariance_prior": 8.0 * np.eye(_FEATURES)}
PRIORS = {"fixed": {**_SHARED, **_GIVEN, "prior": "fixed"}, "learned": {**_SHARED, "prior": "learned"}}
# Of learned hyperparameters, whose expectations are those that are given otherwise.
_HYPERPRIOR = {"covariance": np.eye(_FEATURES), "shape": 4.0, "rate": 4.0 / 0.06, "freedom": 8.0}
_N_BINS = 40  # Of ranks, for the picture; the test has ten.


def measure(settings):
    """A row for every prior, method and function, with the numbers of data sets by rank."""
    for prior in PRIORS:
        yield from _counted(prior, _QUICK_DATA_SETS if settings.quick else _DATA_SETS)


def _counted(prior, n_data_sets):
    """The rows of one prior."""
    n_left_out = 0
    ranks = {(method, function): [] for method in METHODS for function in FUNCTIONS}
    for data_set in range(n_data_sets):
        found = _ranks(data_set, prior)
        n_left_out += not found
        for key, rank in found.items():
            ranks[key].append(rank)
    for (method, function), own in ranks.items():
        counts = np.histogram(own, _N_BINS, (0, _DRAWS + 1))[0]
        yield {
            "problem": _problem(prior, method, function),
            "method": method,
            "function": function,
            "n_draws": _DRAWS,
            "left_out": n_left_out,
            **{_bin(place): int(count) for place, count in enumerate(counts)},
        }


def _problem(prior, method, function):
    """Name of a row."""
    return f"{function}: {method}" + ", learned prior" * (prior == "learned")


def _bin(place):
    """Name of the column with the number of data sets whose rank is in a bin."""
    return f"ranks_{place:02d}"


def simulated(data_set, prior="fixed"):
    """Parameters drawn from a prior, and rows: a dict of arrays with an axis of one draw, and X."""
    rng = np.random.default_rng([17, data_set])
    concentration = _SHARED["weight_concentration_prior"]
    weights = rng.dirichlet([concentration, concentration])
    nu, (b, C) = _SHARED["degrees_of_freedom_prior"], _GIVEN.values()
    if prior == "learned":
        b = rng.gamma(_HYPERPRIOR["shape"], 1.0 / _HYPERPRIOR["rate"])
        C = stats.wishart(_HYPERPRIOR["freedom"], C / _HYPERPRIOR["freedom"]).rvs(random_state=rng)
    precisions = stats.wishart(nu, np.linalg.inv(C)).rvs(2, random_state=rng)
    means = np.array(
        [
            rng.multivariate_normal(_SHARED["mean_prior"], np.linalg.inv(b * precision))
            for precision in precisions
        ]
    )
    labels = rng.choice(2, size=_ROWS, p=weights)
    roots = np.linalg.cholesky(np.linalg.inv(precisions))
    X = means[labels] + np.einsum("npq,nq->np", roots[labels], rng.normal(size=(_ROWS, _FEATURES)))
    return {"weights": weights[None], "means": means[None], "precisions": precisions[None]}, X


def _ranks(data_set, prior):
    """Ranks of the truth by method and function: dict; empty for a fit that is left out."""
    from benchmarks.harness.inside import expecting
    from sklearn_lrvb import LRVBGaussianMixture

    truth, X = simulated(data_set, prior)
    mixture = LRVBGaussianMixture(n_components=2, n_init=3, max_iter=1000, random_state=0, **PRIORS[prior])
    with expecting(**_HYPERPRIOR) if prior == "learned" else nullcontext():
        mixture.fit(X)
    if mixture.n_occupied_ < 2 or not mixture.converged_:
        return {}
    true, found = functions(truth, X)[0], {}
    for method in METHODS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # Other random numbers for every data set: the same ones would err in the same way in all of them.
            draws = mixture.sample_posterior(n_draws=_DRAWS, random_state=data_set, method=method, X=X)
        ranks = (functions(draws, X) < true).sum(axis=0)
        found |= {(method, function): int(rank) for function, rank in zip(FUNCTIONS, ranks, strict=True)}
    return found


def functions(draws, X):
    """`FUNCTIONS` of draws of the parameters, (n_draws, number of functions)."""
    order = np.argsort(draws["means"][:, :, 0], axis=1)
    weights = np.take_along_axis(draws["weights"], order, axis=1)
    means = np.take_along_axis(draws["means"][:, :, 0], order, axis=1)
    log_precisions = np.take_along_axis(np.linalg.slogdet(draws["precisions"])[1], order, axis=1)
    gaps = X[None, None] - draws["means"][:, :, None]
    squares = np.einsum("skni,skij,sknj->skn", gaps, draws["precisions"], gaps)
    log_terms = np.log(draws["weights"])[:, :, None] - 0.5 * squares
    log_terms += 0.5 * np.linalg.slogdet(draws["precisions"])[1][:, :, None]
    fit = np.logaddexp(*log_terms.transpose(1, 0, 2)).sum(axis=1)
    return np.column_stack([weights[:, 0], means, log_precisions, fit])


def _counts(row):
    """Numbers of data sets by rank, (bins,)."""
    return np.array([row[_bin(place)] for place in range(_N_BINS)])


def _p_value(row):
    """Of a chi-square test that ranks are uniform, with ten bins."""
    return stats.chisquare(_counts(row).reshape(10, -1).sum(axis=1)).pvalue


def _coverage(row):
    """Share of data sets whose truth is within the central 95 % of the draws."""
    counts = _counts(row)
    return counts[1:-1].sum() / counts.sum()  # A bin has 2.5 % of the ranks.


def section(found):
    by_name = {row["problem"]: row for row in found}
    parts = []
    for prior, words in (("learned", "Of a learned prior"), ("fixed", "Of given hyperparameters")):
        rows = {(m, f): by_name[_problem(prior, m, f)] for m in METHODS for f in FUNCTIONS}
        parts.append(_part(rows, words))
    return f"""Parameters are drawn from the prior, {_ROWS} rows from them, and the rank of the truth among
{_DRAWS} draws is counted. The tables have the p-value of a chi-square test that ranks are uniform, and the
share of data sets whose truth is within the central 95 % of the draws. The picture is of the learned prior.

![Ranks of the truth](exactness.png)

{parts[0]}
{parts[1]}
Draws by linear response hold the truth too seldom where they are too narrow: it is below or above nearly all
of them too often. Ranks by the exact posterior are uniform as far as this many data sets can tell.
"""


def _part(by_key, words):
    """The table of one prior, from its rows by method and function."""
    one = next(iter(by_key.values()))
    n_data_sets, n_left_out = _counts(one).sum(), one["left_out"]
    columns = [("function", lambda function: function)]
    for method, name in METHODS.items():
        columns += [
            (f"{name}: p", lambda function, method=method: f"{_p_value(by_key[method, function]):.2g}"),
            (
                f"{name}: in 95 %",
                lambda function, method=method: f"{100 * _coverage(by_key[method, function]):.1f}",
            ),
        ]
    error = 100 * np.sqrt(0.05 * 0.95 / n_data_sets)
    covered = [100 * _coverage(by_key["lrvb", function]) for function in FUNCTIONS]
    return f"""{words} there are {n_data_sets:.0f} data sets; {n_left_out:.0f} more were left out, whose fit
keeps one component or does not converge. Chance makes a share {error:.1f} % uncertain. Draws by linear
response hold the truth in {min(covered):.0f} to {max(covered):.0f} % of the cases.

{table(columns, FUNCTIONS)}
"""


def draw(found, path):
    """Distribution of the ranks less the uniform one, with the band in which chance keeps 95 % of them.

    Parameters
    ----------
    found : list of rows, of one prior, method and function each
    """
    by_name = {row["problem"]: row for row in found}
    grid = np.linspace(0, 1, _N_BINS + 1)
    with plt.rc_context(STYLE):
        figure, panels = plt.subplots(2, 3, figsize=(9, 5), layout="constrained", sharex=True, sharey=True)
        for axes, function in zip(panels.flat, FUNCTIONS, strict=True):
            for method, colour in zip(METHODS, (BLUE, ORANGE), strict=True):
                counts = _counts(by_name[_problem("learned", method, function)])
                below = np.concatenate([[0], np.cumsum(counts) / counts.sum()])
                axes.plot(grid, below - grid, color=colour, label=METHODS[method])
            band = 1.96 * np.sqrt(grid * (1 - grid) / counts.sum())
            axes.fill_between(grid, -band, band, color=GREY, alpha=0.25, linewidth=0)
            axes.set_title(function, size=9)
        figure.supxlabel("rank of the truth among the draws, as a share", size=9)
        figure.supylabel("share of data sets below, less that share", size=9)
        figure.legend(*axes.get_legend_handles_labels(), loc="outside upper center", ncols=3)
        saved(figure, path)
