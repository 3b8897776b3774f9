"""Posterior means and standard deviations under a learned prior by long Gibbs chains.

``python -m sampling.gibbs_references`` in tests/ writes them to learned_references.json, in some minutes.
"""

import json
from pathlib import Path

import numpy as np
from catalogue import posterior_of
from covariance_types import TYPES
from sampling import gibbs
from sampling.real_tables import table

from sklearn_lrvb import LRVBGaussianMixture

PATH = Path(__file__).parent / "learned_references.json"
CHAINS = {"n_chains": 48, "n_scans": 400, "n_warmup": 100}
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


def reference(name):
    """What is kept of the chains of a table: dict."""
    given, estimator = PROBLEMS[name]
    estimator = {"prior": "learned", "n_components": 2, **estimator}
    X = table(**given)[0]
    mixture = LRVBGaussianMixture(max_iter=1000, random_state=0, **estimator).fit(X)
    prior, covariance_type = posterior_of(mixture).prior, TYPES[mixture.covariance_type]
    model = gibbs.Model(
        X,
        mixture.n_components,
        covariance_type,
        mixture.weight_concentration_prior_type == "dirichlet_process",
        mixture.weight_concentration_prior_,
        mixture.mean_prior_,
        mixture.degrees_of_freedom_prior_,
        covariance_type.prior(np.cov(X.T)),
        np.broadcast_to(np.square(prior.noise_deviations), X.shape[1]),
    )
    draws = gibbs.sampled(model, mixture.predict(X), **CHAINS)
    names = [*mixture.posterior_names_, "mean_precision_prior"]
    mean, of_chains = draws.mean(axis=(0, 1)), draws.mean(axis=0)
    sd = draws.std(axis=(0, 1))
    error = of_chains.std(axis=0) / np.sqrt(len(of_chains)) / sd
    return {
        "name": name,
        "table": given,
        "estimator": estimator,
        "lower_bound": round(float(mixture.lower_bound_), 4),
        "may_not_converge": name in MAY_NOT_CONVERGE,
        "sd_tolerance": 0.1,
        "largest_error_of_a_mean": round(float(error.max()), 4),
        "parameters": {
            key: [float(f"{a:.6g}"), float(f"{b:.5g}")] for key, a, b in zip(names, mean, sd, strict=True)
        },
    }


if __name__ == "__main__":
    lines = [json.dumps(reference(name)) for name in PROBLEMS]
    PATH.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf8")
