"""The order of the coefficients in a vector of all of them, and the components that share a precision.

*Conventions.* K components, P features, S precision groups of components that share one precision (S = K or
1), Q quadratic coefficients of a group. A coefficient vector of size D = K + K P + S Q holds first K
intercepts, then (K, P) linear coefficients, then (S, Q) quadratic ones.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np


@dataclass(frozen=True)
class CoefficientLayout:
    """Order of the coefficients, and groups of components.

    Parameters
    ----------
    n_components : int, K
    n_features : int, P
    n_quadratic : int, Q
    shares_precision : bool, whether all components form one precision group instead of one group each
    """

    n_components: int
    n_features: int
    n_quadratic: int
    shares_precision: bool

    # Precision groups.

    @property
    def n_precision_groups(self):
        """Number of precision groups, S."""
        return 1 if self.shares_precision else self.n_components

    def precision_group(self, component):
        """Index of the group of a component."""
        return 0 if self.shares_precision else component

    def components_of_group(self, group):
        """Components of a precision group."""
        return range(self.n_components) if self.shares_precision else (group,)

    def components_sharing_precision(self, component):
        """Components in the same group as a component, itself included."""
        return self.components_of_group(self.precision_group(component))

    def per_group(self, by_component):
        """Sums over the components of every group: (..., K) -> (..., S)."""
        return by_component.sum(axis=-1, keepdims=True) if self.shares_precision else by_component

    def per_component(self, by_group):
        """The entry of every component's group: (S, ...) -> (K, ...), without a copy."""
        return np.broadcast_to(by_group, (self.n_components, *by_group.shape[1:]))

    def between_components(self, by_group):
        """Covariance matrix of variables that the components of a group share: (S,) -> (K, K)."""
        if self.shares_precision:
            return np.full((self.n_components, self.n_components), by_group[0])
        return np.diag(by_group)

    # The coefficient vector.

    @cached_property
    def n_coefficients(self):
        """Number of coefficients, D."""
        return self.n_components * (1 + self.n_features) + self.n_precision_groups * self.n_quadratic

    @property
    def n_component_features(self):
        """Number of coefficients that one component depends on, F = 1 + P + Q."""
        return 1 + self.n_features + self.n_quadratic

    @cached_property
    def coefficient_blocks(self):
        """Slices of D with the intercepts, the linear and the quadratic coefficients: dict by name."""
        linear = self.n_components
        quadratic = linear + self.n_components * self.n_features
        return {
            "intercept": slice(0, linear),
            "linear": slice(linear, quadratic),
            "quadratic": slice(quadratic, self.n_coefficients),
        }

    def coefficient_slices(self, component):
        """Slices of D with a component's intercept, linear and quadratic coefficients."""
        blocks, group = self.coefficient_blocks, self.precision_group(component)
        linear = blocks["linear"].start + component * self.n_features
        quadratic = blocks["quadratic"].start + group * self.n_quadratic
        return (
            slice(component, component + 1),
            slice(linear, linear + self.n_features),
            slice(quadratic, quadratic + self.n_quadratic),
        )

    def coefficient_index(self, component):
        """Coordinates of a component's coefficients, int array (F,)."""
        slices = self.coefficient_slices(component)
        return np.concatenate([np.arange(block.start, block.stop) for block in slices])

    def ordered(self, matrix):
        """A matrix of the components' own features, one component after the other, in the order of D."""
        order = np.argsort(np.concatenate([self.coefficient_index(k) for k in range(self.n_components)]))
        return matrix[order][:, order]

    def split(self, coefficients):
        """Views of the three blocks: (..., D) -> (..., K), (..., K, P), (..., S, Q)."""
        lead = coefficients.shape[:-1]
        intercepts, linear, quadratic = (
            coefficients[..., block] for block in self.coefficient_blocks.values()
        )
        return (
            intercepts,
            linear.reshape(*lead, self.n_components, self.n_features),
            quadratic.reshape(*lead, self.n_precision_groups, self.n_quadratic),
        )
