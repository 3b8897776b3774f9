"""The nonparametric bootstrap of R's mclust."""

from dataclasses import dataclass

import numpy as np
import rscript
from parameter_vectors import flat

from standard_errors.matching import matching
from standard_errors.protocol import StandardErrors


@dataclass(frozen=True)
class Mclust:
    """Mclust of ellipsoids of any shape ("VVV"), and MclustBootstrap, which starts at its fit."""

    name = "mclust + bootstrap"

    def missing(self):
        return rscript.missing("mclust")

    def version(self):
        return f"mclust {rscript.versions('mclust')['mclust']}"

    def standard_errors(self, task):
        n_components, n_features = task.prior.n_components, task.X.shape[1]
        n_replicates = task.effort.n_replicates
        found = rscript.run("mclust_bootstrap.R", {"X": task.X}, (*task.X.shape, n_components, n_replicates))
        by_component = (n_components, n_replicates)  # R's arrays run by columns
        weights = found["weights"].reshape(by_component).T
        means = found["means"].reshape(n_components, n_features, n_replicates).transpose(2, 0, 1)
        covariances = found["covariances"].reshape(n_components, n_features, n_features, n_replicates)
        precisions = np.linalg.inv(covariances.transpose(3, 0, 1, 2))
        order = matching(means.mean(axis=0), task.optimum.means_, task.optimum.precisions_)
        replicates = flat(np.log(weights[:, order]), means[:, order], precisions[:, order])
        columns = {"replicates": n_replicates, "sd_error": (2 * n_replicates) ** -0.5}
        return StandardErrors(replicates.std(axis=0, ddof=1), float(found["seconds"][0]), columns)
