"""Gamma distribution of a positive number x, sufficient statistics x and log x.

Natural parameters (-rate, shape - 1).
"""

from dataclasses import dataclass, field

import numpy as np

from sklearn_lrvb.exponential_families.family import refuse
from sklearn_lrvb.exponential_families.wishart import Wishart


@dataclass(frozen=True)
class Gamma(Wishart):
    """Gamma family; statistics ``value`` x () and ``log`` log x ().

    The Wishart distribution of one feature without the feature's axes: shape nu/2, rate A/2.
    """

    n_features: int = field(default=1, init=False, repr=False)

    @property
    def statistics(self):
        """``value`` x, ``log`` log x."""
        return {"value": (), "log": ()}

    def natural_parameters(self, shape, rate):
        """(-rate, shape - 1): (...), (...) -> (..., 2)."""
        return self.pack(np.negative(rate), np.subtract(shape, 1.0))

    def check_domain(self, natural):
        """Shape and rate must be positive."""
        rate, shape = -natural[..., :1], 1.0 + natural[..., 1:]
        refuse(rate, ~(rate > 0), "the rate {} is not positive", ["value"])
        refuse(shape, ~(shape > 0), "the shape {} is not positive", ["log"])

    def sample(self, natural, n_draws, random_state=None):
        """Draws of x: (n_draws, ...)."""
        return super().sample(natural, n_draws, random_state)[..., 0, 0]

    def statistics_of(self, value):
        """(x, log x): (...) -> (..., 2)."""
        value = np.asarray(value, dtype=float)
        return np.stack([value, np.log(value)], axis=-1)
