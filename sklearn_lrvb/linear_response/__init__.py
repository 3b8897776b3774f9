"""Linear response of mixtures: the observed information, and what is solved with it.

A model gives the observed information as complete minus missing information, both in closed form
(`complete_information`, `observed_information`). `solvers` has the ways to solve with it, which scale to many
coefficients. The general way, from covariances and Hessians, is in `mean_field.linear_response`.
"""

from sklearn_lrvb.linear_response.observed_information import IndefiniteInformationError

__all__ = ["IndefiniteInformationError"]
