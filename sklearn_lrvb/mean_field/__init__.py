"""Mean-field variational Bayes for any conditionally conjugate model (Section 2 of the paper).

A model is a dict of named factors and a list of the multilinear terms of its log joint. Coordinate ascent,
the lower bound, V, H and the linear response covariance follow from these alone.
"""

from sklearn_lrvb.mean_field.delta_method import FunctionOfParameters
from sklearn_lrvb.mean_field.densities.density import Density
from sklearn_lrvb.mean_field.densities.likelihoods import (
    bernoulli_likelihood,
    categorical_likelihood,
    exponential_likelihood,
    poisson_likelihood,
)
from sklearn_lrvb.mean_field.densities.normal import (
    Linear,
    multivariate_normal_likelihood,
    normal_likelihood,
    normal_prior,
)
from sklearn_lrvb.mean_field.densities.priors import (
    beta_prior,
    categorical_prior,
    dirichlet_prior,
    gamma_prior,
    random_walk_prior,
    wishart_prior,
)
from sklearn_lrvb.mean_field.factor import Factor
from sklearn_lrvb.mean_field.model import MeanFieldModel
from sklearn_lrvb.mean_field.posterior import MeanFieldPosterior
from sklearn_lrvb.mean_field.posterior_check import MeanFieldCheck
from sklearn_lrvb.mean_field.term import Term

__all__ = [
    "Density",
    "Factor",
    "FunctionOfParameters",
    "Linear",
    "MeanFieldCheck",
    "MeanFieldModel",
    "MeanFieldPosterior",
    "Term",
    "bernoulli_likelihood",
    "beta_prior",
    "categorical_likelihood",
    "categorical_prior",
    "dirichlet_prior",
    "exponential_likelihood",
    "gamma_prior",
    "multivariate_normal_likelihood",
    "normal_likelihood",
    "normal_prior",
    "poisson_likelihood",
    "random_walk_prior",
    "wishart_prior",
]
