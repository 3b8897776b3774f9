"""Bayesian Gaussian mixtures with calibrated uncertainty and influence, by linear response."""

from sklearn_lrvb.gaussian_mixture.estimator import LRVBGaussianMixture

__version__ = "0.1.0"

__all__ = ["LRVBGaussianMixture"]
