"""What the shape of the components' covariance matrices decides: one class a structure, one table."""

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
