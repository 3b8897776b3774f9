"""Fit and standard errors by everything that a user would otherwise take, beside ours.

Seconds are of the processor, on one thread: what a user waits for on a machine that is idle. Gibbs and NUTS
sample the posterior that ours approximates; the bootstraps estimate how much a fit varies from sample to
sample of rows, which is near the posterior's sds where the model is right and rows are many. Errors of sds
are against the longest Gibbs chain there is, the stored one.
"""

from dataclasses import dataclass

import gibbs_references
import monte_carlo
import numpy as np
from measuring import sizes
from near_flat_prior import NearFlatPrior
from parameter_vectors import groups
from problems import PEERS
from sklearn.mixture import BayesianGaussianMixture, GaussianMixture
from standard_errors.bootstrap import Bootstrap
from standard_errors.gibbs import Gibbs
from standard_errors.mclust import Mclust
from standard_errors.nuts import Nuts
from standard_errors.ours import Ours
from standard_errors.protocol import Effort, Task

OURS = Ours("ours", "joint")
WAYS = (
    OURS,
    Ours("ours, independent factors", "independent"),
    Bootstrap("GaussianMixture + bootstrap", GaussianMixture),
    Bootstrap("GaussianMixture + bootstrap, tol 1e-6", GaussianMixture, {"tol": 1e-6, "max_iter": 1000}),
    Bootstrap("BayesianGaussianMixture + bootstrap", BayesianGaussianMixture),
    Mclust(),
    Gibbs(),
    Nuts(),
)
_QUICKLY = Effort(n_replicates=5, n_effective=20, most_draws=200, n_warm_up=100)


def measure(settings):
    available = list(_available())
    effort = _QUICKLY if settings.quick else Effort()
    for problem in settings.problems(PEERS):
        X = problem.simulate()
        prior = NearFlatPrior.around(X, problem.n_components)
        task = Task(X, prior, prior.fitted(X), effort)
        truth = _sandwich(task) if settings.quick else _stored_truth(problem, X)
        for way in available:
            yield sizes(problem) | _row(problem, way, task, truth)


def _row(problem, way, task, truth):
    found = way.standard_errors(task)
    ours = found if way is OURS else OURS.standard_errors(task)  # now, as the machine now is
    row = {
        "problem": f"{problem.name}: {way.name}",
        "way": way.name,
        "version": way.version(),
        "seconds": found.seconds,
        "ours_seconds": ours.seconds,
    }
    errors = {} if truth is None else _errors(found.sds, truth, task.optimum.means_.shape)
    return row | errors | found.columns


def _available():
    """The ways whose packages are there; of the others is said how to get them."""
    for way in WAYS:
        missing = way.missing()
        if missing:
            print(f"peers: {way.name} is left out: {missing}", flush=True)
        else:
            yield way


@dataclass(frozen=True)
class Truth:
    """Sds of a sampled posterior.

    Attributes
    ----------
    sds : (D,), in the order of ``posterior_names_``
    sd_error : float, their relative standard error by chance, root mean square
    """

    sds: np.ndarray
    sd_error: float


def _stored_truth(problem, X):
    """Of the stored chain, None where there is none."""
    reference = gibbs_references.stored().get(f"{problem.name}, {problem.seed}")
    if reference is None:
        print(
            f"peers: no chain of {problem.name} is stored, errors of sds are left out: sample one by "
            f"gibbs_references.py {problem.name}",
            flush=True,
        )
        return None
    reference.check(X)
    errors = monte_carlo.sd_errors(reference.n_draws, reference.effective_sizes)
    return Truth(np.array(reference.sd), float(np.sqrt(np.mean(np.square(errors)))))


def _sandwich(task):
    """Sds from the scatter of the rows' influence, as there is no chain of so few rows."""
    covariance = task.optimum.get_posterior_covariance(method="sandwich", X=task.X)
    return Truth(np.sqrt(np.diag(covariance)), (2 * len(task.X)) ** -0.5)


def _errors(sds, truth, shape):
    """Relative errors of the sds of every group: their median and largest size, and their mean."""
    relative = sds / truth.sds - 1
    columns = {"truth_sd_error": truth.sd_error}
    for group, part in (groups(*shape) | {"all": slice(None)}).items():
        columns[f"{group}_median_error"] = float(np.median(np.abs(relative[part])))
        columns[f"{group}_worst_error"] = float(np.abs(relative[part]).max())
        columns[f"{group}_mean_error"] = float(relative[part].mean())
    return columns
