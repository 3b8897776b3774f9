"""All ways to standard errors that are compared, ours first."""

from dataclasses import dataclass
from statistics import median
from time import process_time

import numpy as np
from sklearn.mixture import BayesianGaussianMixture, GaussianMixture

import sklearn_lrvb
from benchmarks.harness.inside import exact_posterior
from benchmarks.rivals.standard_errors.bootstraps import Bootstrap, Mclust
from benchmarks.rivals.standard_errors.gibbs import Gibbs
from benchmarks.rivals.standard_errors.nuts import Nuts
from benchmarks.rivals.standard_errors.protocol import StandardErrors


@dataclass(frozen=True)
class Ours:
    """A fit of `LRVBGaussianMixture` and all its standard deviations, in the median time of several fits.

    Attributes
    ----------
    name : str
    factorization : {"joint", "independent"}
    """

    name: str
    factorization: str

    def missing(self):
        return ""

    def version(self):
        return f"sklearn-lrvb {sklearn_lrvb.__version__}"

    def standard_errors(self, task):
        seconds = []
        for _ in range(task.effort.n_timed_fits):
            begin = process_time()
            sds = task.prior.fitted(task.X, self.factorization).posterior_std_
            seconds.append(process_time() - begin)
        return StandardErrors(sds, median(seconds))


@dataclass(frozen=True)
class OursSampled:
    """A fit of `LRVBGaussianMixture`, and standard deviations of draws from the exact posterior.

    Attributes
    ----------
    name : str
    """

    name: str

    def missing(self):
        return ""

    def version(self):
        return f"sklearn-lrvb {sklearn_lrvb.__version__}"

    def standard_errors(self, task):
        begin = process_time()
        mixture = task.prior.fitted(task.X)
        fit_seconds, begin = process_time() - begin, process_time()
        posterior = exact_posterior(mixture, task.X, 0)
        covariance = mixture.posterior(method="exact", random_state=0).covariance()
        names = "weights", "means", "precisions"
        effective = float(min((posterior.draws.errors(name)[0] ** -2.0).min() for name in names))
        thousand = (process_time() - begin) * 1000 / effective
        columns = {
            "draws": len(posterior.draws),
            "effective_size": effective,
            "sd_error": float((2.0 * effective) ** -0.5),
            "thousand_draws_seconds": float(thousand),
        }
        return StandardErrors(np.sqrt(np.diag(covariance)), float(fit_seconds + thousand), columns)


OURS = Ours("ours", "joint")
WAYS = (
    OURS,
    Ours("ours, independent factors", "independent"),
    OursSampled("ours, exact"),
    Bootstrap("GaussianMixture + bootstrap", GaussianMixture),
    Bootstrap("GaussianMixture + bootstrap, tol 1e-6", GaussianMixture, {"tol": 1e-6, "max_iter": 1000}),
    Bootstrap("BayesianGaussianMixture + bootstrap", BayesianGaussianMixture),
    Mclust(),
    Gibbs(),
    Nuts(),
)
