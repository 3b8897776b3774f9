"""What a fit of latent classes leaves: the posterior, what the columns are, and arrays."""

import numpy as np

from sklearn_lrvb.answers.uncertainty import read_only
from sklearn_lrvb.estimators.fitted import Fitted
from sklearn_lrvb.family_mixture.targets import ClassTargets


class FittedClasses(Fitted):
    """The mixture in which a fit ended.

    Parameters
    ----------
    posterior : ClassPosterior
    columns : TableColumns
    path : sequence of float, default=()
        Lower bounds of the fit, at its start and after every step.
    arrays : dict or None, default=None
        The read-only arrays that the fit reports, by name; None computes them.

    Attributes
    ----------
    origin : (P,), zeros: rows are measured as they are
    targets : ClassTargets
    """

    described_by = "weights_", "tables_"

    def __init__(self, posterior, columns, path=(), arrays=None):
        self.posterior, self.columns, self.path = posterior, columns, tuple(path)
        self.origin = np.zeros(len(columns.columns))
        self.targets = ClassTargets(posterior, self.origin)
        self.arrays = arrays or {"weights_": read_only(self.targets["weights"].value())}

    def at(self, posterior, path):
        return FittedClasses(posterior, self.columns, path)

    @property
    def model(self):
        described = [(column.name, column.kind, column.categories) for column in self.columns.columns]
        return {"columns": described}

    @property
    def prior_numbers(self):
        prior = self.posterior.prior
        return {name: prior.number(name) for name in prior.numbers}
