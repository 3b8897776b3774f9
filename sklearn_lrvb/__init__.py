"""Bayesian mixtures, of Gaussian clusters and of latent classes, with error bars by linear response."""

# They tell posteriors of their kind of mixture.
import sklearn_lrvb.gaussian_mixture.model
import sklearn_lrvb.latent_class.model  # noqa: F401
from sklearn_lrvb.gaussian_mixture.cross_validation import one_standard_error
from sklearn_lrvb.gaussian_mixture.estimator import LRVBGaussianMixture
from sklearn_lrvb.gaussian_mixture.imputer import MixtureImputer
from sklearn_lrvb.latent_class.estimator import LRVBLatentClassMixture
from sklearn_lrvb.mixtures.conclusions.model_choice import number_of_clusters

__version__ = "0.2.0"

__all__ = [
    "LRVBGaussianMixture",
    "LRVBLatentClassMixture",
    "MixtureImputer",
    "number_of_clusters",
    "one_standard_error",
]
