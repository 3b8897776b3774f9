"""Both sides of every comparison behind one protocol, and the only file here that looks inside either.

A mixture stands for a state of a fit: `Rival.start` makes the first one from responsibilities, and
`Rival.advanced` returns the next ones and leaves its argument alone.
"""

import copy
import dataclasses
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from sklearn.cluster import KMeans
from sklearn.mixture import BayesianGaussianMixture

from sklearn_lrvb import LRVBGaussianMixture
from sklearn_lrvb.gaussian_mixture.e_step.e_step import e_step
from sklearn_lrvb.gaussian_mixture.information.observed_information import observed_information, solver_costs
from sklearn_lrvb.row_blocks import CentredRows

PARAMETERS = ("weights", "means", "precisions")


def kmeans_responsibilities(X, n_components):
    """Responsibilities, zero or one, by the best of ten k-means: (n_samples, n_components)."""
    labels = KMeans(n_components, n_init=10, random_state=0).fit(X).labels_
    return np.eye(n_components)[labels]


def parameters(mixture):
    """Posterior means of weights, means and precisions."""
    return {name: getattr(mixture, name + "_") for name in PARAMETERS}


def lrvb_std(mixture, group):
    """LRVB standard deviations of "log_weights", "means" or "precisions", as `posterior_names_` has them."""
    return mixture._uncertainty.flat_std(group)


def mean_field_std(mixture, group):
    """The same of q itself."""
    return mixture._uncertainty.flat_mean_field_std(group)


class Rival(Protocol):
    """What is measured of a library; no noise is assumed on X, so that "full" has one optimum for all."""

    name: str

    def fit(self, X, start, **settings):
        """A fit by the library's defaults or ``settings``; from "kmeans", or from responsibilities."""

    def start(self, X, responsibilities):
        """The state before the first sweep."""

    def sweeper(self, mixture, X):
        """A callable that does one sweep from the state: E-step, lower bound and M-step.

        What a fit does once before its sweeps is not part of it.
        """

    def advanced(self, mixture, X, n_sweeps):
        """The state ``n_sweeps`` on, ready to read `parameters`."""

    def lower_bound(self, mixture, X):
        """Lower bound of a state with every constant, in nats."""


@dataclass(frozen=True)
class Ours:
    """`LRVBGaussianMixture`."""

    n_components: int
    covariance_type: str = "full"
    n_jobs: int = 1
    name = "ours"

    def fit(self, X, start, reg_covar=0.0, **settings):
        return LRVBGaussianMixture(
            n_components=self.n_components,
            covariance_type=self.covariance_type,
            init_params=start,
            reg_covar=reg_covar,
            random_state=0,
            n_jobs=self.n_jobs,
            **settings,
        ).fit(X)

    def start(self, X, responsibilities):
        return self.fit(X, responsibilities, max_iter=0)

    def sweeper(self, mixture, X):
        state = mixture._fitted
        rows = CentredRows(X, state.origin, self.n_jobs)
        e_step(rows, state.posterior)  # which sums up the rows where it needs to

        def one_sweep():
            posterior = dataclasses.replace(state.posterior)  # without what earlier sweeps left in its cache
            return posterior.m_step(e_step(rows, posterior).moments)

        return one_sweep

    def advanced(self, mixture, X, n_sweeps):
        settings = {"solver": "coordinate_ascent", "max_iter": n_sweeps, "tol": 0.0, "warm_start": True}
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
        mixture.converged_, mixture.lower_bound_ = False, -np.inf  # what a warm start continues from
        return _readable(mixture)

    def sweeper(self, mixture, X):
        return lambda: self._swept(mixture, X)

    def _swept(self, mixture, X):
        moved = copy.copy(mixture)
        log_normalizer, log_responsibilities = moved._e_step(X)
        moved._m_step(X, log_responsibilities)
        moved._compute_lower_bound(log_responsibilities, log_normalizer)
        return moved

    def advanced(self, mixture, X, n_sweeps):
        for _ in range(n_sweeps):
            mixture = self._swept(mixture, X)
        return _readable(mixture)

    def lower_bound(self, mixture, X):
        """Ours at their state, as theirs lacks its constants."""
        still = copy.copy(mixture).set_params(max_iter=0)
        return LRVBGaussianMixture.from_sklearn(still, X).lower_bound_


def _readable(mixture):
    """A mixture of scikit-learn's with weights and precisions set, which its sweeps leave behind."""
    mixture._set_parameters(mixture._get_parameters())
    return mixture


class InformationPass:
    """What leads from the rows of a fit of ours to its observed information.

    Parameters
    ----------
    mixture : LRVBGaussianMixture, fitted
    X : (n_samples, n_features), its rows

    Attributes
    ----------
    n_unknowns : int, D
    n_alternatives : int, components that rows may belong to beside their most probable one
    n_columns : int, of the feature matrix, K(1 + P + Q) with Q precisions a component
    """

    def __init__(self, mixture, X):
        self._map = mixture._uncertainty.map
        self._posterior = self._map.posterior
        self._rows = CentredRows(X, self._map.origin, mixture.n_jobs)
        structure = self._posterior.structure
        self.n_unknowns = structure.n_coefficients
        self.n_columns = mixture.n_components * (1 + X.shape[1] + structure.n_quadratic)

    @cached_property
    def _swept(self):
        return e_step(self._rows, self._posterior)

    @property
    def n_alternatives(self):
        return self._swept.n_alternatives

    def cheapest(self):
        """What the cost model takes for the standard deviations of all means."""
        swept, n_means = self._swept, len(self._map.coordinates("means"))
        costs = solver_costs(
            self._rows.n_samples, self._posterior.structure, swept.n_alternatives, swept.n_ambiguous_pairs
        )
        return costs.cheapest(n_means)

    def mean_std(self, solver):
        """Standard deviation of one mean, up to a factor; all there is to do with the rows included."""
        information = observed_information(self._rows, self._posterior, self._swept, solver=solver)
        return information.covariance_root(self._map.coordinates("means")[:1])
