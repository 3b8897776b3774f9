"""Covariance structures: everything that depends on the shape of the components' covariance matrices.

`base` declares the interface; `matrices` and `scales` implement it, with the help of `wisharts` for
q(Lambda), of `random_factors` for draws and of `full_pair` for the missing information.
`tests/structure_check.py` tests whether the methods of a structure fit together.
"""

from sklearn_lrvb.gaussian_mixture.covariance_structures.base import CovarianceStructure
from sklearn_lrvb.gaussian_mixture.covariance_structures.matrices import FullCovariance, TiedCovariance
from sklearn_lrvb.gaussian_mixture.covariance_structures.scales import (
    DiagonalCovariance,
    SphericalCovariance,
)

COVARIANCE_STRUCTURES = {
    "full": FullCovariance,
    "tied": TiedCovariance,
    "diag": DiagonalCovariance,
    "spherical": SphericalCovariance,
}

__all__ = ["COVARIANCE_STRUCTURES", "CovarianceStructure"]
