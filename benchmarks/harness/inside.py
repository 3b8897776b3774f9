"""Where the benchmarks reach below the library's public interface: no other file of theirs does.

Private attributes are read by the functions at the top. The rest calls functions of the library that a
fit is made of: one iteration, one solver of the information, one Newton step.
"""

from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from functools import cached_property, partial

import numpy as np

from sklearn_lrvb.estimators import gaussian_mixture
from sklearn_lrvb.gaussian.answers.targets import PARAMETERS, GaussianTargets
from sklearn_lrvb.gaussian.information.observed_information import GaussianInformation
from sklearn_lrvb.mixture.e_step import e_step
from sklearn_lrvb.mixture.model import DegenerateComponentError, occupied
from sklearn_lrvb.rows import ArrayRows, given_rows

__all__ = [
    "PARAMETERS",
    "DegenerateComponentError",
    "InformationPass",
    "RefitFromOptimum",
    "blocks_on_threads",
    "exact_posterior",
    "expecting",
    "least_product_for_threads",
    "lrvb_std",
    "mean_field_std",
    "newton_decrement",
    "occupied_parameters",
    "one_task_a_chunk",
    "single_iteration",
    "training_rows",
]


def _fitted(mixture):
    """The fitted state: its ``posterior``, and the ``origin`` from which it measures the rows."""
    return mixture._fitted


def newton_decrement(mixture):
    """Distance of a fit from its optimum, in posterior standard deviations."""
    return mixture._uncertainty.to_state()["decrement"]


def exact_posterior(mixture, X, seed):
    """The exact posterior of a fit: its draws, and whether these have converged."""
    return mixture.posterior(X, method="exact", random_state=seed)._answer.exact


@contextmanager
def expecting(covariance, shape, rate, freedom):
    """Context in which a learned prior does not depend on the rows, and has numbers of its own.

    They are those of `LearnedPrior`. C0 is expected to be nu0 times the covariance.
    """
    resolve_prior = gaussian_mixture.resolve_prior

    def resolved(*arguments):
        prior = resolve_prior(*arguments)
        numbers = {"covariance": covariance, "shape": shape, "rate": rate, "freedom": freedom}
        return replace(prior, learned=replace(prior.learned, **numbers))

    gaussian_mixture.resolve_prior = resolved
    try:
        yield
    finally:
        gaussian_mixture.resolve_prior = resolve_prior


def training_rows(mixture):
    """The rows of a small fit, which it still has."""
    return mixture._uncertainty.source.training_rows()


def occupied_parameters(mixture):
    """Which entries of `posterior_names_` belong to components that hold rows, bool (D,)."""
    return np.concatenate([occupied(target.counts()) for target in mixture._fitted.targets.theta])


def _coordinates_of_means(mixture):
    """The means as combinations of the unknowns of the observed information."""
    return mixture._fitted.targets["means"].coordinates()


def _factored_information(mixture):
    """The observed information at the optimum, whose ``newton_step`` takes a residual."""
    return mixture._uncertainty.source.information(1)


def lrvb_std(mixture, group):
    """LRVB standard deviations of "log_weights", "means" or "precisions", as `posterior_names_` orders them.

    `posterior_std_` has those of all groups at once, which costs more where there are many precisions.
    """
    return mixture._uncertainty.flat_std(group)


def mean_field_std(mixture, group):
    """Standard deviations of the mean-field posterior, in the same order."""
    return mixture._uncertainty.flat_std(group, mixture._uncertainty.of_mean_field)


def _uncached(posterior):
    """A copy of a posterior without what earlier iterations left in its cache."""
    return replace(posterior)


def least_product_for_threads():
    """Size of matrix products from which the library gives blocks of rows to threads."""
    from sklearn_lrvb.rows import array_rows

    return array_rows._LEAST_PRODUCT_FOR_THREADS


@contextmanager
def one_task_a_chunk():
    """Context in which a pass over a Dask array that is first made there takes every chunk by itself."""
    from sklearn_lrvb.rows import dask_rows

    grouped, dask_rows._GROUP_BYTES = dask_rows._GROUP_BYTES, 1
    try:
        yield
    finally:
        dask_rows._GROUP_BYTES = grouped


@contextmanager
def blocks_on_threads():
    """Context in which blocks of rows go to threads even where that is known not to pay."""
    from sklearn_lrvb.rows import array_rows

    least, array_rows._LEAST_PRODUCT_FOR_THREADS = array_rows._LEAST_PRODUCT_FOR_THREADS, 0
    try:
        yield
    finally:
        array_rows._LEAST_PRODUCT_FOR_THREADS = least


def single_iteration(mixture, X, n_jobs):
    """A callable that does one iteration from the fitted state: E-step, lower bound and M-step.

    Rows may be wherever `fit` takes them from.
    """
    fitted = _fitted(mixture)
    rows = given_rows(copy(mixture).set_params(n_jobs=n_jobs), X, origin=fitted.origin).counted()
    e_step(rows, fitted.posterior)  # sums over rows that a fit forms once, before its iterations

    def one_iteration():
        posterior = _uncached(fitted.posterior)
        return posterior.m_step(e_step(rows, posterior).moments)

    return one_iteration


class InformationPass:
    """The way from the rows of a fit to its observed information.

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
        fitted = _fitted(mixture)
        self._posterior = fitted.posterior
        self._rows = ArrayRows(X, fitted.origin, mixture.n_jobs)
        self._means = _coordinates_of_means(mixture)
        structure = self._posterior.structure
        self.n_unknowns = structure.layout.n_coefficients
        self.n_columns = mixture.n_components * (1 + X.shape[1] + structure.n_quadratic)

    @cached_property
    def _e_step(self):
        return e_step(self._rows, self._posterior)

    @property
    def n_alternatives(self):
        return self._e_step.n_alternatives

    def cheapest(self):
        """Name of the solver that the cost model takes for the standard deviations of all means."""
        costs = GaussianInformation(self._posterior).costs(self._rows, self._e_step)
        return costs.cheapest(len(self._means))

    def mean_std(self, solver):
        """Standard deviation of one mean, up to a factor, with all work from the rows on."""
        information = GaussianInformation(self._posterior).observed(self._rows, self._e_step, solver=solver)
        return information.covariance_root(self._means[:1])


class RefitFromOptimum:
    """Refits to changed rows by Newton's steps from an optimum, with the matrix that was factored there.

    Parameters
    ----------
    mixture : LRVBGaussianMixture, fitted to convergence
    """

    def __init__(self, mixture):
        fitted = _fitted(mixture)
        self._posterior, self._origin = fitted.posterior, fitted.origin
        self._information = _factored_information(mixture)
        self._n_jobs = mixture.n_jobs

    def steps(self, X):
        """Yield after every step its size in posterior standard deviations, and a function () -> means.

        The means are those of the posterior at the end of the step: {group: (d,)}.
        """
        rows = ArrayRows(X, self._origin, self._n_jobs)
        posterior = _uncached(self._posterior)
        while True:
            residual = posterior.residual(e_step(rows, posterior).moments)
            direction, distance, _ = self._information.newton_step(residual)
            posterior = posterior.after_step(direction)
            yield float(distance), partial(self._means, posterior)

    def _means(self, posterior):
        targets = GaussianTargets(posterior, self._origin)
        return {target.name: target.flat_value() for target in targets.theta}
