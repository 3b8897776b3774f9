"""Beta distribution of a probability v, sufficient statistics log v and log(1 - v).

Natural parameters (a - 1, b - 1).
"""

from dataclasses import dataclass, field

import numpy as np

from sklearn_lrvb.exponential_families.dirichlet import Dirichlet


@dataclass(frozen=True)
class Beta(Dirichlet):
    """Beta family; statistics ``log`` log v () and ``log_complement`` log(1 - v) ().

    The Dirichlet distribution of (v, 1 - v), of which v alone is the variable.
    """

    n_categories: int = field(default=2, init=False, repr=False)

    @property
    def statistics(self):
        """``log`` log v, ``log_complement`` log(1 - v)."""
        return {"log": (), "log_complement": ()}

    def natural_parameters(self, a, b):
        """(a - 1, b - 1): (...), (...) -> (..., 2)."""
        return self.pack(np.subtract(a, 1.0), np.subtract(b, 1.0))

    def sample(self, natural, n_draws, random_state=None):
        """Draws of v: (n_draws, ...)."""
        return super().sample(natural, n_draws, random_state)[..., 0]

    def statistics_of(self, value):
        """(log v, log(1 - v)): (...) -> (..., 2)."""
        return np.stack([np.log(value), np.log1p(-np.asarray(value))], axis=-1)
