"""Normal distribution of a number x, sufficient statistics x and x^2."""

from dataclasses import dataclass, field

import numpy as np

from sklearn_lrvb.exponential_families.multivariate_normal import MultivariateNormal


@dataclass(frozen=True)
class UnivariateNormal(MultivariateNormal):
    """Normal family; statistics ``value`` () and ``square`` ().

    The multivariate normal of one feature, without the feature's axes. Natural parameters
    (lambda m, -lambda/2) with mean m and precision lambda.
    """

    n_features: int = field(default=1, init=False, repr=False)

    @property
    def statistics(self):
        """``value`` x, ``square`` x^2."""
        return {"value": (), "square": ()}

    def natural_parameters(self, mean, precision):
        """(lambda m, -lambda/2): (...), (...) -> (..., 2)."""
        return self.pack(np.multiply(precision, mean), np.multiply(-0.5, precision))

    def sample(self, natural, n_draws, random_state=None):
        """Draws of x: (n_draws, ...)."""
        return super().sample(natural, n_draws, random_state)[..., 0]

    def statistics_of(self, value):
        """(x, x^2): (...) -> (..., 2)."""
        return super().statistics_of(np.expand_dims(value, -1))
