"""Small tables of every type of column, and the mixtures of latent classes that are fitted to them."""

import functools
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.special import gammaln

from sklearn_lrvb import LRVBLatentClassMixture


@dataclass(frozen=True, eq=False)
class Problem:
    """A table and how it is fitted.

    Attributes
    ----------
    X : DataFrame
    columns : "auto" or dict
    n_components : int, K
    sample_weight : array (n_samples,) or None
    prior : "fixed" or "learned"
    """

    X: Any
    columns: Any
    n_components: int
    sample_weight: Any = None
    prior: str = "fixed"

    @property
    def start(self):
        """Starting probabilities of the classes, (n_samples, K), which are a row's own."""
        return np.random.default_rng(3).dirichlet(np.full(self.n_components, 0.5), len(self.X))

    def take(self, rows):
        """The same with some of the rows, in another order or repeated, and their starts: Problem, start."""
        weights = None if self.sample_weight is None else self.sample_weight[rows]
        X = self.X.iloc[rows].reset_index(drop=True)
        return replace(self, X=X, sample_weight=weights), self.start[rows]


# Every kind, of rows in two classes.


def _classes(rng, n_rows):
    return rng.random(n_rows) < 0.6


def _chosen(rng, names, first, second, classes):
    """Categories of rows, with other probabilities in either class."""
    stops = np.where(classes[:, None], np.cumsum(first), np.cumsum(second))
    return np.array(names, dtype=object)[(rng.random((len(classes), 1)) > stops[:, :-1]).sum(axis=1)]


def categories(n_rows=90, seed=0):
    """Columns of two, three and four categories."""
    rng = np.random.default_rng(seed)
    classes = _classes(rng, n_rows)
    return pd.DataFrame(
        {
            "smokes": _chosen(rng, ["no", "yes"], [0.9, 0.1], [0.2, 0.8], classes),
            "sport": _chosen(rng, ["none", "some", "much"], [0.1, 0.3, 0.6], [0.7, 0.2, 0.1], classes),
            "town": _chosen(rng, list("abcd"), [0.4, 0.3, 0.2, 0.1], [0.1, 0.2, 0.1, 0.6], classes),
            "retired": rng.random(n_rows) < np.where(classes, 0.1, 0.7),
        }
    )


def numbers(n_rows=80, seed=1):
    """Two columns in different units."""
    rng = np.random.default_rng(seed)
    classes = _classes(rng, n_rows)
    height = rng.normal(np.where(classes, 165.0, 178.0), np.where(classes, 6.0, 8.0))
    return pd.DataFrame({"height": height, "load": 1e-3 * rng.normal(np.where(classes, 1.0, -1.2), 0.8)})


def counts(n_rows=80, seed=2):
    """Two columns of counts."""
    rng = np.random.default_rng(seed)
    classes = _classes(rng, n_rows)
    visits, calls = rng.poisson(np.where(classes, 2.0, 9.0)), rng.poisson(np.where(classes, 5.0, 1.5))
    return pd.DataFrame({"visits": visits, "calls": calls})


def durations(n_rows=80, seed=3):
    """Two columns of durations in different units, with missing values."""
    rng = np.random.default_rng(seed)
    classes = _classes(rng, n_rows)
    wait = rng.exponential(np.where(classes, 0.5, 6.0))
    table = pd.DataFrame({"wait": wait, "stay": 1e4 * rng.exponential(np.where(classes, 9.0, 1.0))})
    return table.mask(rng.random(table.shape) < 0.12)


def mixed(n_rows=100, seed=4):
    """Columns of every type, with missing values; rows 3 and 4 have one value, row 5 has none."""
    rng = np.random.default_rng(seed)
    classes = _classes(rng, n_rows)
    table = pd.DataFrame(
        {
            "sport": _chosen(rng, ["none", "some", "much"], [0.1, 0.3, 0.6], [0.6, 0.2, 0.2], classes),
            "height": rng.normal(np.where(classes, 165.0, 178.0), 7.0),
            "smokes": _chosen(rng, ["no", "yes"], [0.9, 0.1], [0.3, 0.7], classes),
            "visits": rng.poisson(np.where(classes, 2.0, 8.0)).astype(float),
            "load": rng.normal(np.where(classes, 1.0, -0.5), 1.0),
        }
    )
    missing = rng.random(table.shape) < 0.12
    missing[3:6] = True
    missing[3, 1] = missing[4, 0] = False
    return table.mask(missing)


COUNTS = {"visits": "count"}
WEIGHTS = np.random.default_rng(5).choice([0.0, 0.5, 1.0, 2.25], 100, p=[0.1, 0.3, 0.3, 0.3])
PROBLEMS = {
    "categories": Problem(categories(), "auto", 2),
    "numbers": Problem(numbers(), "auto", 2),
    "counts": Problem(counts(), {("visits", "calls"): "count"}, 2),
    "durations": Problem(durations(), {("wait", "stay"): "duration"}, 2),
    "mixed": Problem(mixed(), COUNTS, 2),
    "weights": Problem(mixed(), COUNTS, 2, WEIGHTS),
    "one class": Problem(mixed(), COUNTS, 1),
    "surplus": Problem(mixed(), COUNTS, 4),
    "learned": Problem(mixed(), COUNTS, 2, WEIGHTS, "learned"),
    "learned, one class": Problem(mixed(), COUNTS, 1, None, "learned"),
    "learned, surplus": Problem(mixed(), COUNTS, 4, None, "learned"),
}
SEVERAL = [name for name in PROBLEMS if "one class" not in name and "surplus" not in name]


def mixture(problem, **parameters):
    """The unfitted mixture of a problem, which converges to round-off from the problem's own start."""
    given = {"columns": problem.columns, "init_params": problem.start, "tol": 1e-12, "random_state": 0}
    given["prior"] = problem.prior
    return LRVBLatentClassMixture(problem.n_components, **{**given, **parameters})


def refitted(problem, **parameters):
    """The mixture of a problem, fitted."""
    return mixture(problem, **parameters).fit(problem.X, sample_weight=problem.sample_weight)


@functools.cache
def fitted(name):
    """The fit of a problem of the catalogue; shared between tests, so not to be changed."""
    return refitted(PROBLEMS[name])


# The tables in numbers, for formulas of the tests' own.


# Features (f_0, f_1) of values and the rest of their log density, of columns with a rate:
# f_0 log(rate) - f_1 rate + rest.
RATES = {
    "count": lambda y: (y, np.ones_like(y), -gammaln(y + 1.0)),
    "duration": lambda y: (np.ones_like(y), y, np.zeros_like(y)),
}
KINDS = {"visits": "count", "calls": "count", "wait": "duration", "stay": "duration"}


def kinds_of(X):
    """The type of every column of numbers of the catalogue, or the number of categories, by its name."""

    def kind(column):
        return KINDS.get(column.name, "numeric") if column.dtype.kind in "if" else column.nunique()

    return {name: kind(X[name]) for name in X}


def codes_of(X):
    """A table as float array of numbers and codes of categories, NaN where missing."""
    coded = X.apply(lambda column: column if column.dtype.kind in "if" else pd.Categorical(column).codes)
    return coded.astype(float).mask(X.isna()).to_numpy()


def weights_of(problem):
    """How often every row counts, zero of rows without any value: (n_samples,)."""
    weights = np.ones(len(problem.X)) if problem.sample_weight is None else problem.sample_weight
    return np.where(problem.X.notna().any(axis=1), weights, 0.0)


def in_polars(X):
    """A data frame of pandas as one of polars; polars' own conversion needs pyarrow for missing words."""
    return pl.DataFrame({name: [None if pd.isna(v) else v for v in X[name].tolist()] for name in X})


# What tests need of the inside of a fit: named here and nowhere else.


def posterior_of(estimator):
    """The posterior q of a fit."""
    return estimator._fitted.posterior


def refitted_with(estimator, problem, weights, **parameters):
    """The fit of a problem with other weights of the rows, under the prior that a fit of it has."""
    with pytest.MonkeyPatch.context() as patch:
        prior = posterior_of(estimator).prior
        patch.setattr("sklearn_lrvb.estimators.latent_class_mixture.resolve_prior", lambda *_: prior)
        start = estimator.predict_proba(problem.X)
        given = {"init_params": start, "tol": 1e-14, "moves": None, **parameters}
        return refitted(replace(problem, sample_weight=weights), **given)


def refitted_given(estimator, problem, values):
    """The fit of a problem with given values of the numbers that a fit of it has learned."""
    with pytest.MonkeyPatch.context() as patch:
        prior = posterior_of(estimator).prior
        held = prior.with_learned(np.asarray(values)).held(prior.weights)
        patch.setattr("sklearn_lrvb.estimators.latent_class_mixture.resolve_prior", lambda *_: held)
        return refitted(problem, init_params=estimator.predict_proba(problem.X), tol=1e-14, moves=None)


def tables_of(estimator):
    """What describes the classes, by the name of the column: dict of arrays (K, values)."""
    return {name: table.to_numpy() for name, table in estimator.tables_.items()}


def assert_same_fit(one, other, tolerance=1e-8, bound=True):
    """Fits have the same bound, weights and tables."""
    if bound:
        np.testing.assert_allclose(one.lower_bound_, other.lower_bound_, rtol=tolerance)
    np.testing.assert_allclose(one.weights_, other.weights_, rtol=tolerance, atol=tolerance)
    tables, others = tables_of(one), tables_of(other)
    assert tables.keys() == others.keys()
    for name, table in tables.items():
        np.testing.assert_allclose(table, others[name], rtol=tolerance, atol=tolerance, err_msg=name)


def assert_same_scores(one, other, X, others_X=None, tolerance=1e-8):
    """Fits say the same of rows."""
    others_X = X if others_X is None else others_X
    for method in ("predict_proba", "score_samples"):
        found, expected = getattr(one, method)(X), getattr(other, method)(others_X)
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance, err_msg=method)
