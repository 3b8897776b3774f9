"""Rows with missing values, and fits to them that tests share."""

import functools

import numpy as np
from catalogue import learning_as, mixture, posterior_of, three_blobs


@functools.cache
def incomplete(n_samples=120, n_features=3, share=0.2, seed=0):
    """Rows of three overlapping clusters with missing values, never all of a row: (n, n_features)."""
    rng = np.random.default_rng(seed)
    X = three_blobs(n_samples, n_features)
    is_missing = rng.random(X.shape) < share
    is_missing[is_missing.all(axis=1), 0] = False
    X[is_missing] = np.nan
    X.setflags(write=False)
    return X


@functools.cache
def _fitted(items, n_components):
    return mixture(dict(items), n_components).fit(incomplete())


def fitted(model, n_components=2):
    """The model fitted to `incomplete()`; shared between tests, so not to be changed."""
    return _fitted(tuple(model.items()), n_components)


def held_prior(estimator):
    """The constructor's arguments that hold the prior of a fit, if it has one, and the density of noise."""
    prior = posterior_of(estimator).prior
    if prior.flat:
        return {}
    held = {"mean_prior": estimator.mean_prior_}
    if not prior.structure.parts.learns_covariance:
        held["covariance_prior"] = estimator.covariance_prior_
    return held | ({"noise": estimator.noise_log_density_} if estimator.noise else {})


def refitted(estimator, X=None, sample_weight=None, **parameters):
    """The optimum near that of a fit, for other rows, weights or parameters, under the same prior."""
    start = estimator.predict_proba(incomplete())
    start = start / start.sum(axis=1, keepdims=True)
    held = {"init_params": start, "tol": 1e-12, **held_prior(estimator)}
    kind = learning_as(posterior_of(estimator).prior)
    other = kind(**{**estimator.get_params(), **held, **parameters})
    return other.fit(incomplete() if X is None else X, sample_weight=sample_weight)
