"""Covariance structures: everything that depends on the shape of the components' covariance matrices.

`base` declares the interface; `matrices` and `scales` implement it, with the help of `bartlett` for random
matrices and of `pairs` and `quartic_moments` for the missing information. `coefficient_layout`,
`precision_factors` and `reporting` are parts of every structure. `structure_check` tests a structure.
"""

from sklearn_lrvb.gaussian_mixture.covariance_structures.base import CovarianceStructure
from sklearn_lrvb.gaussian_mixture.covariance_structures.matrices import FullCovariance, TiedCovariance
from sklearn_lrvb.gaussian_mixture.covariance_structures.scales import (
    DiagonalCovariance,
    SphericalCovariance,
)
from sklearn_lrvb.gaussian_mixture.covariance_structures.structure_check import check_covariance_structure

COVARIANCE_STRUCTURES = {
    "full": FullCovariance,
    "tied": TiedCovariance,
    "diag": DiagonalCovariance,
    "spherical": SphericalCovariance,
}

__all__ = ["COVARIANCE_STRUCTURES", "CovarianceStructure", "check_covariance_structure"]
