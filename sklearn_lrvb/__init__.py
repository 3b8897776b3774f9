"""Bayesian Gaussian mixtures with calibrated uncertainty and influence, by linear response."""

from sklearn_lrvb.gaussian_mixture.cross_validation import one_standard_error
from sklearn_lrvb.gaussian_mixture.estimator import LRVBGaussianMixture
from sklearn_lrvb.gaussian_mixture.imputer import MixtureImputer
from sklearn_lrvb.gaussian_mixture.model_choice import number_of_clusters

__version__ = "0.2.0"

__all__ = ["LRVBGaussianMixture", "MixtureImputer", "number_of_clusters", "one_standard_error"]
