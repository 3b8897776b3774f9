"""Shapes in which users see arrays by precision group, and names of their unique entries."""

from dataclasses import dataclass

from sklearn_lrvb.gaussian_mixture.covariance_structures.coefficient_layout import CoefficientLayout


@dataclass(frozen=True)
class Reporting:
    """Conversion of arrays by precision group to the shapes of the fitted attributes, and back.

    Parameters
    ----------
    layout : CoefficientLayout
    group_shape : tuple of int, shape of one group's statistic or map inside the package
    prior_shape : tuple of int, shape of `covariance_prior`, and of one group's entry in an attribute
    """

    layout: CoefficientLayout
    group_shape: tuple
    prior_shape: tuple

    def _lead(self, array, n_own_axes):
        return array.shape[: array.ndim - n_own_axes]

    @property
    def _attribute_shape(self):
        by_component = () if self.layout.shares_precision else (self.layout.n_components,)
        return (*by_component, *self.prior_shape)

    def reported(self, by_group):
        """Arrays in the shape of the attribute: (..., S, *group_shape) -> (..., *shape of the attribute)."""
        return by_group.reshape(*self._lead(by_group, 1 + len(self.group_shape)), *self._attribute_shape)

    def by_group(self, reported):
        """Inverse of `reported`."""
        lead = self._lead(reported, len(self._attribute_shape))
        return reported.reshape(*lead, self.layout.n_precision_groups, *self.group_shape)

    def reported_number(self, by_group):
        """A number for every group in the shape of the attribute: (S,) -> (K,), or a float if shared."""
        return by_group[0] if self.layout.shares_precision else by_group.copy()

    def entry_labels(self, entry_names):
        """Labels of all groups' unique entries ("0,x1,x2"), given the names within a group ("x1,x2")."""
        if self.layout.shares_precision:
            return list(entry_names)
        components = range(self.layout.n_components)
        return [f"{k},{name}" if name else f"{k}" for k in components for name in entry_names]
