"""The nonparametric bootstrap: of scikit-learn's mixtures, and of R's mclust."""

from dataclasses import dataclass, field
from time import process_time

import numpy as np
import sklearn

from benchmarks.analysis.parameter_vectors import flat, matching
from benchmarks.rivals import rscript
from benchmarks.rivals.standard_errors.protocol import StandardErrors


@dataclass(frozen=True)
class Bootstrap:
    """Refits to rows drawn with replacement, whose components are matched to those of the fit to all rows.

    Attributes
    ----------
    name : str
    mixture : class of scikit-learn
    parameters : dict, arguments of the mixture that are not left at their defaults
    """

    name: str
    mixture: type
    parameters: dict = field(default_factory=dict)

    def missing(self):
        return ""

    def version(self):
        return f"scikit-learn {sklearn.__version__}"

    def standard_errors(self, task):
        rng = np.random.default_rng(0)
        begin = process_time()
        original = self._fitted(task.X, task, seed=0)
        order = matching(original.means_, task.optimum.means_, task.optimum.precisions_)
        labels = original.means_[order], original.precisions_[order]
        replicates, unfinished = [], 0
        for seed in range(1, task.effort.n_replicates + 1):
            drawn = task.X[rng.integers(len(task.X), size=len(task.X))]
            replicate = self._fitted(drawn, task, seed)
            replicates.append(_matched(replicate, *labels))
            unfinished += not replicate.converged_
        sds = np.std(replicates, axis=0, ddof=1)
        columns = {
            "replicates": len(replicates),
            "sd_error": (2 * len(replicates)) ** -0.5,
            "not_converged": unfinished,
        }
        return StandardErrors(sds, process_time() - begin, columns)

    def _fitted(self, X, task, seed):
        n_components = task.prior.n_components
        return self.mixture(n_components=n_components, random_state=seed, **self.parameters).fit(X)


def _matched(mixture, means, precisions):
    """Parameters (D,) of a mixture, with its components in the order of those that they match."""
    order = matching(mixture.means_, means, precisions)
    return flat(np.log(mixture.weights_[order]), mixture.means_[order], mixture.precisions_[order])


@dataclass(frozen=True)
class Mclust:
    """mclust's fit of ellipsoids of any shape ("VVV"), and its bootstrap, whose refits start there."""

    name = "mclust + bootstrap"

    def missing(self):
        return rscript.missing("mclust")

    def version(self):
        return f"mclust {rscript.versions('mclust')['mclust']}"

    def standard_errors(self, task):
        n_components, n_features = task.prior.n_components, task.X.shape[1]
        n_replicates = task.effort.n_replicates
        found = rscript.run("mclust_bootstrap.R", {"X": task.X}, (*task.X.shape, n_components, n_replicates))
        by_component = (n_components, n_replicates)  # R stores arrays by columns
        weights = found["weights"].reshape(by_component).T
        means = found["means"].reshape(n_components, n_features, n_replicates).transpose(2, 0, 1)
        covariances = found["covariances"].reshape(n_components, n_features, n_features, n_replicates)
        precisions = np.linalg.inv(covariances.transpose(3, 0, 1, 2))
        order = matching(means.mean(axis=0), task.optimum.means_, task.optimum.precisions_)
        replicates = flat(np.log(weights[:, order]), means[:, order], precisions[:, order])
        columns = {"replicates": n_replicates, "sd_error": (2 * n_replicates) ** -0.5}
        return StandardErrors(replicates.std(axis=0, ddof=1), float(found["seconds"][0]), columns)
