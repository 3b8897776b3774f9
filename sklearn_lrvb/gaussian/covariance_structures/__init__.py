"""Covariance structures: everything that depends on the shape of the components' covariance matrices.

`structures` has the interface; `matrices` and `scales` have the types, which take `Wisharts` for q(Lambda)
and `random_factors` for draws. `features` are the functions of a row, with the places of their coefficients.
`full_pair` has what the missing information needs of components with a matrix each.
`tests/structure_check.py` tests whether the methods of a structure fit together.
"""

from sklearn_lrvb.gaussian.covariance_structures.matrices import FullCovariance, TiedCovariance
from sklearn_lrvb.gaussian.covariance_structures.scales import (
    DiagonalCovariance,
    SphericalCovariance,
    TiedDiagonalCovariance,
)
from sklearn_lrvb.gaussian.covariance_structures.structures import CovarianceStructure

COVARIANCE_STRUCTURES = {
    "full": FullCovariance,
    "tied": TiedCovariance,
    "diag": DiagonalCovariance,
    "spherical": SphericalCovariance,
    "tied_diag": TiedDiagonalCovariance,
}

__all__ = ["COVARIANCE_STRUCTURES", "CovarianceStructure"]
