"""Our library and scikit-learn's behind one protocol.

A mixture stands for a state of a fit: `Rival.start` makes the first one from responsibilities, and
`Rival.advanced` returns the next ones and leaves its argument alone. `Theirs` calls private methods of
scikit-learn's `BayesianGaussianMixture`, which has no public way to do one iteration.
"""

import copy
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from sklearn.cluster import KMeans
from sklearn.mixture import BayesianGaussianMixture

from benchmarks.harness import inside
from sklearn_lrvb import LRVBGaussianMixture


def kmeans_responsibilities(X, n_components):
    """Responsibilities, zero or one, by the best of ten k-means: (n_samples, n_components)."""
    labels = KMeans(n_components, n_init=10, random_state=0).fit(X).labels_
    return np.eye(n_components)[labels]


class Rival(Protocol):
    """What is measured of a library.

    The prior is scikit-learn's, and no noise is assumed on X, so that "full" has one optimum for all.
    """

    name: str

    def fit(self, X, start, **settings):
        """A fit by the library's defaults or ``settings``, from "kmeans" or from responsibilities."""

    def start(self, X, responsibilities):
        """The state before the first iteration."""

    def single_iteration(self, mixture, X):
        """A callable that does one iteration from the state: E-step, lower bound and M-step.

        What a fit does once before its iterations is not part of it.
        """

    def advanced(self, mixture, X, n_iterations):
        """The state after ``n_iterations`` more iterations, with its parameters set."""

    def lower_bound(self, mixture, X):
        """Lower bound of a state with every constant, in nats."""


@dataclass(frozen=True)
class Ours:
    """`LRVBGaussianMixture`."""

    n_components: int
    covariance_type: str = "full"
    n_jobs: int = 1
    name = "ours"

    def fit(self, X, start, reg_covar=0.0, prior="fixed", **settings):
        return LRVBGaussianMixture(
            n_components=self.n_components,
            covariance_type=self.covariance_type,
            prior=prior,
            init_params=start,
            reg_covar=reg_covar,
            random_state=0,
            n_jobs=self.n_jobs,
            **settings,
        ).fit(X)

    def start(self, X, responsibilities):
        return self.fit(X, responsibilities, max_iter=0)

    def single_iteration(self, mixture, X):
        return inside.single_iteration(mixture, X, self.n_jobs)

    def advanced(self, mixture, X, n_iterations):
        settings = {"solver": "coordinate_ascent", "max_iter": n_iterations, "tol": 0.0, "warm_start": True}
        return copy.copy(mixture).set_params(**settings).fit(X)

    def lower_bound(self, mixture, X):
        return mixture.lower_bound_


@dataclass(frozen=True)
class Theirs:
    """scikit-learn's `BayesianGaussianMixture`."""

    n_components: int
    covariance_type: str = "full"
    name = "scikit-learn"

    def _mixture(self, **settings):
        return BayesianGaussianMixture(
            n_components=self.n_components,
            covariance_type=self.covariance_type,
            reg_covar=0.0,
            random_state=0,
            **settings,
        )

    def fit(self, X, start, **settings):
        if isinstance(start, str):
            return self._mixture(init_params=start, **settings).fit(X)
        return self.start(X, start).set_params(warm_start=True, **settings).fit(X)

    def start(self, X, responsibilities):
        mixture = self._mixture()
        mixture._check_parameters(X)
        mixture._initialize(X, responsibilities)
        mixture.converged_, mixture.lower_bound_ = False, -np.inf  # a warm start reads both
        return _with_parameters(mixture)

    def single_iteration(self, mixture, X):
        return lambda: self._iterated(mixture, X)

    def _iterated(self, mixture, X):
        moved = copy.copy(mixture)
        log_normalizer, log_responsibilities = moved._e_step(X)
        moved._m_step(X, log_responsibilities)
        moved._compute_lower_bound(log_responsibilities, log_normalizer)
        return moved

    def advanced(self, mixture, X, n_iterations):
        for _ in range(n_iterations):
            mixture = self._iterated(mixture, X)
        return _with_parameters(mixture)

    def lower_bound(self, mixture, X):
        """Our bound at their state, as theirs lacks constants."""
        still = copy.copy(mixture).set_params(max_iter=0)
        return LRVBGaussianMixture.from_sklearn(still, X).lower_bound_


def _with_parameters(mixture):
    """scikit-learn's mixture with weights and precisions set, which its iterations do not keep up to date."""
    mixture._set_parameters(mixture._get_parameters())
    return mixture
