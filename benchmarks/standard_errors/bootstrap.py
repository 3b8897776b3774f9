"""The nonparametric bootstrap of scikit-learn's mixtures."""

from dataclasses import dataclass, field
from time import process_time

import numpy as np
import sklearn
from parameter_vectors import flat

from standard_errors.matching import matching
from standard_errors.protocol import StandardErrors


@dataclass(frozen=True)
class Bootstrap:
    """Refits to rows drawn with replacement, labelled as the components of the fit to all rows.

    Attributes
    ----------
    name : str
    mixture : class of scikit-learn's
    parameters : dict, those of the mixture that are not left at their defaults
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
            replicates.append(labelled_as(replicate, *labels))
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


def labelled_as(mixture, means, precisions):
    """Parameters (D,) of a mixture, its components in the order of those that they match."""
    order = matching(mixture.means_, means, precisions)
    return flat(np.log(mixture.weights_[order]), mixture.means_[order], mixture.precisions_[order])
