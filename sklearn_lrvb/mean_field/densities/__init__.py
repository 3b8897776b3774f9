"""Log densities of a model by name: priors and likelihoods that stand for their terms."""

from sklearn_lrvb.mean_field.densities.density import Density, terms_of, with_weights
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

__all__ = [
    "Density",
    "Linear",
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
    "terms_of",
    "wishart_prior",
    "with_weights",
]
