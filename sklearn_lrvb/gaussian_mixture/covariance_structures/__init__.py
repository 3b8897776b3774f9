"""What the shape of the components' covariance matrices decides: one class a structure, one table."""

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
