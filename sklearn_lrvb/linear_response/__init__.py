"""Linear response (Sections 3 to 5 of the paper): arrays in, arrays out, no model in sight."""

from sklearn_lrvb.linear_response.complete_information import CompleteInformation
from sklearn_lrvb.linear_response.covariance import linear_response_covariance
from sklearn_lrvb.linear_response.influence import linear_response_influence
from sklearn_lrvb.linear_response.observed_information import (
    DualInformation,
    IndefiniteInformationError,
    MatrixFactor,
    MatrixFreeInformation,
    PrimalInformation,
    sums_of_sweeps,
)
from sklearn_lrvb.linear_response.schur_complement import schur_linear_response_covariance
from sklearn_lrvb.linear_response.solver_costs import MAX_DENSE_SIZE, SolverCosts

__all__ = [
    "MAX_DENSE_SIZE",
    "CompleteInformation",
    "DualInformation",
    "IndefiniteInformationError",
    "MatrixFactor",
    "MatrixFreeInformation",
    "PrimalInformation",
    "SolverCosts",
    "linear_response_covariance",
    "linear_response_influence",
    "schur_linear_response_covariance",
    "sums_of_sweeps",
]
