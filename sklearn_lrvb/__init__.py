"""Bayesian mixtures, of Gaussian clusters and of latent classes, with error bars by linear response."""

from sklearn_lrvb.estimators.cross_validation import one_standard_error
from sklearn_lrvb.estimators.gaussian_mixture import LRVBGaussianMixture
from sklearn_lrvb.estimators.imputer import MixtureImputer
from sklearn_lrvb.estimators.latent_class_mixture import LRVBLatentClassMixture
from sklearn_lrvb.estimators.number_search import number_of_clusters

__version__ = "0.2.0"

__all__ = [
    "LRVBGaussianMixture",
    "LRVBLatentClassMixture",
    "MixtureImputer",
    "number_of_clusters",
    "one_standard_error",
]
