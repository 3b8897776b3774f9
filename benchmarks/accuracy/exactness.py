"""Simulation-based calibration: parameters drawn from the prior, rows from them, and the rank of the truth.

Where draws come from the exact posterior, the rank of the true value of any function of the parameters among
them is uniform over data sets that are drawn from the prior (Talts, Betancourt, Simpson, Vehtari and Gelman
2018). The functions do not depend on the numbers of the components: weights, means and log precisions of the
components in the order of their first means, the log likelihood of the rows, the share of the noise, and the
degrees of freedom.

The prior is that of the fit, and is set by hand: means spread over some four standard deviations of a
component, so that most data sets have clusters that overlap a little and some that overlap much. There are a
prior whose hyperparameters are given, and one whose spread of the means and typical covariance are drawn for
every data set and learned. With few rows there are broken sticks, noise, tails, and noise with tails. Data
sets are left out in which the fit does not keep both components: such a posterior has a mode that neither
linear response nor the chains start from. So are, before the fit, those with a row outside of the box of the
noise, or without noise at a hundred standard deviations: what depends on the rows alone leaves ranks uniform.
"""

import warnings
from contextlib import nullcontext
from dataclasses import dataclass

import numpy as np
from matplotlib import pyplot as plt
from scipy import stats
from scipy.special import betaln, gammaln, log_softmax

from benchmarks.harness.figures import BLUE, GREY, ORANGE, STYLE, saved
from benchmarks.harness.tables import table

TITLE = "Simulation-based calibration"
METHODS = {"lrvb": "LRVB", "exact": "exact"}
_FUNCTIONS = ("left weight", "left mean", "right mean", "left log precision", "right log precision", "fit")
_DRAWS = 199
_FEATURES = 2
_CONCENTRATION, _STICKS = 3.0, 1.0  # Of Dirichlet weights, and of broken sticks.
_SHARED = {
    "weight_concentration_prior": _CONCENTRATION,
    "weight_concentration_prior_type": "dirichlet_distribution",
    "mean_prior": np.zeros(_FEATURES),
    "degrees_of_freedom_prior": 8.0,
    "reg_covar": 0.0,
}
_GIVEN = {"mean_precision_prior": 0.06, "covariance_prior": 8.0 * np.eye(_FEATURES)}
_FIXED = {**_SHARED, **_GIVEN, "prior": "fixed"}
# Of learned hyperparameters, whose expectations are those that are given otherwise.
_HYPERPRIOR = {"covariance": np.eye(_FEATURES), "shape": 4.0, "rate": 4.0 / 0.06, "freedom": 8.0}
_BOX, _LARGEST = 12.0, 100.0  # Largest size of a row's values, with noise, which fills that box, and without.
_NOISE = {"noise": -_FEATURES * np.log(2.0 * _BOX)}
_TAILS = {"tails": "student"}
_MEAN_TAILS = 10.0  # Of the exponential prior of the degrees of freedom.
_N_BINS = 40  # Of ranks, for the picture; the test has ten.


@dataclass(frozen=True)
class Setting:
    """A prior, and how many data sets of how many rows are drawn from it.

    Attributes
    ----------
    name, words : str
    arguments : dict, of the mixture
    n_data_sets, n_rows : int
    """

    name: str
    words: str
    arguments: dict
    n_data_sets: int = 200
    n_rows: int = 50

    @property
    def functions(self):
        """Names of the functions of the parameters."""
        of_noise = ("noise",) * ("noise" in self.arguments)
        return (*_FUNCTIONS, *of_noise, *("degrees of freedom",) * ("tails" in self.arguments))

    def problem(self, method, function):
        """Name of a row."""
        return f"{function}: {method}" + f", {self.name}" * (self.name != "fixed prior")


LEARNED, *_ = SETTINGS = (
    Setting("learned prior", "Of a learned prior", {**_SHARED, "prior": "learned"}, 600, 100),
    Setting("fixed prior", "Of given hyperparameters", _FIXED, 600, 100),
    Setting(
        "sticks",
        "Of broken sticks, and 50 rows,",
        _FIXED
        | {"weight_concentration_prior_type": "dirichlet_process", "weight_concentration_prior": _STICKS},
    ),
    Setting("noise", "Of noise, and 50 rows,", _FIXED | _NOISE),
    Setting("tails", "Of Student's t, and 50 rows,", _FIXED | _TAILS),
    Setting("noise and tails", "Of noise and Student's t, and 50 rows,", _FIXED | _NOISE | _TAILS),
)


def measure(settings):
    """A row for every setting, method and function, with the numbers of data sets by rank."""
    for setting in SETTINGS:
        yield from _counted(setting, 3 if settings.quick else setting.n_data_sets)


def _counted(setting, n_data_sets):
    """The rows of one setting."""
    n_left_out = 0
    ranks = {(method, function): [] for method in METHODS for function in setting.functions}
    for data_set in range(n_data_sets):
        found = _ranks(data_set, setting)
        n_left_out += not found
        for key, rank in found.items():
            ranks[key].append(rank)
    for (method, function), own in ranks.items():
        counts = np.histogram(own, _N_BINS, (0, _DRAWS + 1))[0]
        yield {
            "problem": setting.problem(method, function),
            "method": method,
            "function": function,
            "n_draws": _DRAWS,
            "left_out": n_left_out,
            **{_bin(place): int(count) for place, count in enumerate(counts)},
        }


def _bin(place):
    """Name of the column with the number of data sets whose rank is in a bin."""
    return f"ranks_{place:02d}"


def simulated(data_set, setting):
    """Parameters drawn from a prior, and rows: a dict of arrays with an axis of one draw, and X."""
    rng = np.random.default_rng([17, data_set])
    while True:
        truth, X = _drawn(rng, setting)
        if np.abs(X).max() < (_BOX if "noise" in setting.arguments else _LARGEST):
            return {name: np.asarray(value)[None] for name, value in truth.items()}, X


def _drawn(rng, setting):
    """Parameters and rows, which may be too large."""
    arguments, n_rows = setting.arguments, setting.n_rows
    nu, (b, C) = _SHARED["degrees_of_freedom_prior"], _GIVEN.values()
    if arguments["prior"] == "learned":
        b = rng.gamma(_HYPERPRIOR["shape"], 1.0 / _HYPERPRIOR["rate"])
        C = stats.wishart(_HYPERPRIOR["freedom"], C / _HYPERPRIOR["freedom"]).rvs(random_state=rng)
    weights, labels = _weights_and_labels(rng, arguments, n_rows)
    precisions = stats.wishart(nu, np.linalg.inv(C)).rvs(2, random_state=rng)
    noise = rng.normal(size=(2, _FEATURES, 1))
    means = _SHARED["mean_prior"] + (np.linalg.cholesky(np.linalg.inv(b * precisions)) @ noise)[..., 0]
    truth = {"weights": weights, "means": means, "precisions": precisions}
    X = rng.normal(size=(n_rows, _FEATURES))
    if "tails" in arguments:
        truth["tails"] = rng.exponential(_MEAN_TAILS)
        X /= np.sqrt(rng.gamma(0.5 * truth["tails"], 2.0 / truth["tails"], size=(n_rows, 1)))
    roots = np.linalg.cholesky(np.linalg.inv(precisions))
    X = means[labels % 2] + np.einsum("npq,nq->np", roots[labels % 2], X)
    is_noise = labels == 2
    X[is_noise] = rng.uniform(-_BOX, _BOX, size=(is_noise.sum(), _FEATURES))
    return truth, X


def _weights_and_labels(rng, arguments, n_rows):
    """Weights of the two components, with that of noise last, and labels of the rows."""
    if arguments["weight_concentration_prior_type"] == "dirichlet_process":
        return _broken_sticks(rng, n_rows)
    weights = rng.dirichlet([_CONCENTRATION, _CONCENTRATION])
    if "noise" in arguments:
        share = rng.beta(_CONCENTRATION, 2.0 * _CONCENTRATION)
        weights = np.append((1.0 - share) * weights, share)
    return weights, rng.choice(len(weights), size=n_rows, p=weights)


def _broken_sticks(rng, n_rows):
    """Weights and labels, given that no row is in what two breaks leave: labels first, then the breaks."""
    first = np.arange(n_rows + 1)
    second = n_rows - first
    log_shares = -gammaln(first + 1.0) - gammaln(second + 1.0)
    log_shares += betaln(1.0 + first, _STICKS + second) + betaln(1.0 + second, _STICKS)
    n_first = rng.choice(first, p=np.exp(log_softmax(log_shares)))
    break_1, break_2 = rng.beta(
        [1.0 + n_first, 1.0 + n_rows - n_first], [_STICKS + n_rows - n_first, _STICKS]
    )
    weights = np.array([break_1, (1.0 - break_1) * break_2])
    return weights / weights.sum(), np.repeat([0, 1], [n_first, n_rows - n_first])


def _ranks(data_set, setting):
    """Ranks of the truth by method and function: dict; empty for a fit that is left out."""
    from benchmarks.harness.inside import expecting
    from sklearn_lrvb import LRVBGaussianMixture

    truth, X = simulated(data_set, setting)
    mixture = LRVBGaussianMixture(
        n_components=2, n_init=3, max_iter=1000, random_state=0, **setting.arguments
    )
    with expecting(**_HYPERPRIOR) if setting is LEARNED else nullcontext(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Noise may be denser than the rows show.
        mixture.fit(X)
    if mixture.n_occupied_ < 2 or not mixture.converged_:
        return {}
    true, found = functions(truth, X)[0], {}
    for method in METHODS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # Other random numbers for every data set: the same ones would err in the same way in all of them.
            draws = mixture.posterior(X, random_state=data_set, method=method).sample(_DRAWS)
        ranks = (functions(draws, X) < true).sum(axis=0)
        found |= {
            (method, function): int(rank) for function, rank in zip(setting.functions, ranks, strict=True)
        }
    return found


def functions(draws, X):
    """`Setting.functions` of draws of the parameters, (n_draws, number of functions)."""
    order = np.argsort(draws["means"][:, :, 0], axis=1)
    weights = np.take_along_axis(draws["weights"][:, :2], order, axis=1)
    means = np.take_along_axis(draws["means"][:, :, 0], order, axis=1)
    log_determinants = np.linalg.slogdet(draws["precisions"])[1]
    log_precisions = np.take_along_axis(log_determinants, order, axis=1)
    gaps = X[None, None] - draws["means"][:, :, None]
    squares = np.einsum("skni,skij,sknj->skn", gaps, draws["precisions"], gaps)
    log_terms = (np.log(draws["weights"][:, :2]) + 0.5 * log_determinants)[:, :, None]
    if "tails" in draws:
        log_terms = log_terms + _log_student(draws["tails"][:, None, None], squares)
    else:
        log_terms = log_terms - 0.5 * squares - 0.5 * _FEATURES * np.log(2.0 * np.pi)
    log_terms = list(log_terms.swapaxes(0, 1))
    log_noise = np.log(draws["weights"][:, 2:])  # With noise one column, else none.
    log_terms += [log_noise + _NOISE["noise"]] * log_noise.shape[1]
    fit = np.logaddexp.reduce(np.broadcast_arrays(*log_terms)).sum(axis=1)
    of_tails = [np.log(draws["tails"])] if "tails" in draws else []
    return np.column_stack([weights[:, 0], means, log_precisions, fit, log_noise, *of_tails])


def _log_student(nu, squares):
    """Log density of Student's t without the log determinant."""
    half, rise = 0.5 * nu, 0.5 * _FEATURES
    constant = gammaln(half + rise) - gammaln(half) - rise * np.log(nu * np.pi)
    return constant - (half + rise) * np.log1p(squares / nu)


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
    parts = "\n".join(_part(setting, by_name) for setting in SETTINGS)
    return f"""Parameters are drawn from the prior, {LEARNED.n_rows} rows from them, and the rank of the truth
among {_DRAWS} draws is counted. The tables have the p-value of a chi-square test that ranks are uniform, and
the share of data sets whose truth is within the central 95 % of the draws. The picture is of the learned
prior.

![Ranks of the truth](exactness.png)

{parts}
Draws by linear response hold the truth too seldom where they are too narrow: it is below or above nearly all
of them too often. Ranks by the exact posterior are uniform as far as this many data sets can tell.
"""


def _part(setting, by_name):
    """The table of one setting, from all rows by name."""
    by_key = {(m, f): by_name[setting.problem(m, f)] for m in METHODS for f in setting.functions}
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
    covered = [100 * _coverage(by_key["lrvb", function]) for function in setting.functions]
    return f"""{setting.words} there are {n_data_sets:.0f} data sets; {n_left_out:.0f} more were left out,
whose fit keeps one component or does not converge. Chance makes a share {error:.1f} % uncertain. Draws by
linear response hold the truth in {min(covered):.0f} to {max(covered):.0f} % of the cases.

{table(columns, setting.functions)}
"""


def draw(found, path):
    """Distribution of the ranks less the uniform one, with the band in which chance keeps 95 % of them.

    Parameters
    ----------
    found : list of rows, of one setting, method and function each
    """
    by_name = {row["problem"]: row for row in found}
    grid = np.linspace(0, 1, _N_BINS + 1)
    with plt.rc_context(STYLE):
        figure, panels = plt.subplots(2, 3, figsize=(9, 5), layout="constrained", sharex=True, sharey=True)
        for axes, function in zip(panels.flat, _FUNCTIONS, strict=True):
            for method, colour in zip(METHODS, (BLUE, ORANGE), strict=True):
                counts = _counts(by_name[LEARNED.problem(method, function)])
                below = np.concatenate([[0], np.cumsum(counts) / counts.sum()])
                axes.plot(grid, below - grid, color=colour, label=METHODS[method])
            band = 1.96 * np.sqrt(grid * (1 - grid) / counts.sum())
            axes.fill_between(grid, -band, band, color=GREY, alpha=0.25, linewidth=0)
            axes.set_title(function, size=9)
        figure.supxlabel("rank of the truth among the draws, as a share", size=9)
        figure.supylabel("share of data sets below, less that share", size=9)
        figure.legend(*axes.get_legend_handles_labels(), loc="outside upper center", ncols=3)
        saved(figure, path)
