"""Exponential families (Section 2 of the paper).

*Conventions.* A family is defined by its log partition function A(eta). Its mean parameters are grad A, and
the covariance V of its sufficient statistics is hess A. Arrays broadcast over leading axes.

`special_functions` has the quantile functions of the families of numbers with a restricted range, and the log
gamma function without what cancels between normalizing constants.
"""

from sklearn_lrvb.mean_field.exponential_families.beta import Beta
from sklearn_lrvb.mean_field.exponential_families.categorical import Categorical
from sklearn_lrvb.mean_field.exponential_families.dirichlet import Dirichlet
from sklearn_lrvb.mean_field.exponential_families.family import ExponentialFamily, NaturalParameterError
from sklearn_lrvb.mean_field.exponential_families.family_check import check_family
from sklearn_lrvb.mean_field.exponential_families.gamma import Gamma
from sklearn_lrvb.mean_field.exponential_families.gaussian_chain import GaussianChain
from sklearn_lrvb.mean_field.exponential_families.normal import MultivariateNormal, UnivariateNormal
from sklearn_lrvb.mean_field.exponential_families.wishart import Wishart

__all__ = [
    "Beta",
    "Categorical",
    "Dirichlet",
    "ExponentialFamily",
    "Gamma",
    "GaussianChain",
    "MultivariateNormal",
    "NaturalParameterError",
    "UnivariateNormal",
    "Wishart",
    "check_family",
]
