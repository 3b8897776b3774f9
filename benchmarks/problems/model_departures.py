"""Tables for a check of the model: of mixtures that fit, and with one known departure from the mixture."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from benchmarks.problems.populations import Population, heavy_noise

N_DEPARTING = 500  # rows of a table with a departure
KINDS = ("numeric", "categorical", "binary", "count", "duration")
_SHARES_OF_KINDS = (0.25, 0.3, 0.25, 0.1, 0.1)  # of the columns of a random table of latent classes
_LEAST_ROWS, _MOST_ROWS = 60, 5000  # of tables that fit; their logarithm is uniform
_MOST_FEATURES, _MOST_COMPONENTS = 12, 4
_SPREADS = 1.5, 5.0  # of the centers of tables that fit, in standard deviations of a cluster or so
_LEAST_PROBABILITY = 0.1  # of all categories of a column together, so that none is absent
_LETTERS = np.array([*"abcde"])

# Clusters with a departure are so far apart that their number is beyond doubt, and vary together in pairs.
_SPREAD, _LEAST_DISTANCE, _CORRELATION = 4.0, 4.5, 0.3
_LOG_SD = 0.6  # of the log-normal cluster, whose skewness is 2.3
_SHARE_OF_OUTLIERS, _BEYOND = 0.05, 4.0  # The box of outliers is so much wider than the rows on every side.
_SHARE_OF_ZEROS = 0.5
_SHARES_OF_ONES = np.array([0.2, 0.7, 0.5])  # by cluster
_LEFT_OUT_CORRELATION = 0.4
_COLUMNS_OF_CLASSES = ("numeric", "numeric", "categorical", "categorical", "binary", "binary", "count")
_SHARE_OF_COPIES = 0.6  # rows in which one binary column has the value of the other
_SIZE_OF_COUNTS = 2.0  # A negative binomial count of mean m has the variance m + m^2 / 2.


@dataclass(frozen=True)
class CheckedTable:
    """Rows, and the mixture whose fit to them is checked.

    Attributes
    ----------
    X : (N, P) array; a DataFrame for latent classes
    arguments : dict, of the estimator
    has_classes : bool, whether the estimator is that of latent classes, or else of Gaussian mixtures
    """

    X: Any
    arguments: dict
    has_classes: bool = False

    def estimator(self, **arguments):
        """The unfitted estimator."""
        from sklearn_lrvb import LRVBGaussianMixture, LRVBLatentClassMixture

        estimator = LRVBLatentClassMixture if self.has_classes else LRVBGaussianMixture
        return estimator(**self.arguments, **arguments)

    def resampled(self, number):
        """As many rows, in random order, of the mixture that is fitted to these: CheckedTable."""
        # The seed is another one for every table, so that their rows are independent.
        rows, _ = self.estimator(random_state=number).fit(self.X).sample(len(self.X))
        order = np.random.default_rng(number).permutation(len(rows))
        if self.has_classes:
            return replace(self, X=rows.iloc[order].reset_index(drop=True))
        return replace(self, X=rows[order])


def gaussian_table(number):
    """Rows of a Gaussian mixture, which was fitted to random clusters; the same every time: CheckedTable."""
    rng = np.random.default_rng([*b"Gaussian", number])
    N, K, P = _n_rows(rng), rng.integers(1, _MOST_COMPONENTS + 1), rng.integers(1, _MOST_FEATURES + 1)
    # Covariances are those of a few normal rows, that is, random and well-conditioned.
    covariances = [np.atleast_2d(np.cov(rng.normal(size=(P, P + 8)))) for _ in range(K)]
    population = Population(
        weights=rng.dirichlet(np.full(K, 4.0)),
        means=rng.uniform(*_SPREADS) * rng.normal(size=(K, P)),
        roots=np.linalg.cholesky(covariances).transpose(0, 2, 1),
    )
    kind = rng.choice(["full", "tied", "diag", "spherical"])
    arguments = {"n_components": int(K), "covariance_type": str(kind)}
    return CheckedTable(population.draw(rng, N), arguments).resampled(number)


def class_table(number):
    """Rows of latent classes, which were fitted to random columns; the same every time: CheckedTable."""
    rng = np.random.default_rng([*b"classes", number])
    N, K, P = _n_rows(rng), rng.integers(1, _MOST_COMPONENTS + 1), rng.integers(2, 9)
    kinds = rng.choice(KINDS, P, p=_SHARES_OF_KINDS)
    return _classes(rng, kinds, _labels(rng, N, K, 5.0), K).resampled(number)


def _n_rows(rng):
    return int(np.exp(rng.uniform(np.log(_LEAST_ROWS), np.log(_MOST_ROWS))))


def _labels(rng, n_rows, n_components, concentration):
    """Components of rows, whose weights are the more equal the larger the concentration is."""
    return rng.choice(n_components, n_rows, p=rng.dirichlet(np.full(n_components, concentration)))


def _classes(rng, kinds, labels, n_components):
    """A table with columns of these kinds, c0, c1 and so on, given the classes of its rows: CheckedTable."""
    import pandas as pd

    columns = {f"c{place}": _column(rng, kind, labels) for place, kind in enumerate(kinds)}
    read_as = {
        name: "categorical" if kind == "binary" else str(kind)
        for name, kind in zip(columns, kinds, strict=True)
    }
    arguments = {"n_components": int(n_components), "columns": read_as}
    return CheckedTable(pd.DataFrame(columns), arguments, has_classes=True)


def _column(rng, kind, labels):
    """Random values, whose distribution differs between the classes: (N,)."""
    N, K = len(labels), labels.max() + 1
    centers = rng.normal(size=K)
    if kind == "numeric":
        return rng.normal(2.0 * centers[labels])
    if kind == "count":
        return rng.poisson(np.exp(1.0 + centers)[labels])
    if kind == "duration":
        return rng.exponential(np.exp(centers)[labels])
    n_categories = 2 if kind == "binary" else rng.integers(3, len(_LETTERS) + 1)
    shares = rng.dirichlet(np.full(n_categories, 0.8), K)
    shares = (1.0 - _LEAST_PROBABILITY) * shares + _LEAST_PROBABILITY / n_categories
    stops = np.cumsum(shares, axis=1)[:, :-1]
    return _LETTERS[(rng.random((N, 1)) > stops[labels]).sum(axis=1)]


def _clusters(rng, correlation=_CORRELATION):
    """Two or three clusters in two to four columns, of unit variances and one correlation: Population."""
    K, P = rng.integers(2, 4), rng.integers(2, 5)
    means = np.zeros((K, P))
    while np.linalg.norm(means[:, None] - means, axis=2)[~np.eye(K, dtype=bool)].min() < _LEAST_DISTANCE:
        means = _SPREAD * rng.normal(size=(K, P))
    root = np.linalg.cholesky(np.full((P, P), correlation) + (1.0 - correlation) * np.eye(P)).T
    return Population(rng.dirichlet(np.full(K, 10.0)), means, np.array([root] * K))


def _gaussian(X, n_components, covariance_type="full"):
    return CheckedTable(X, {"n_components": int(n_components), "covariance_type": covariance_type})


def _heavy_tails(rng):
    population = replace(_clusters(rng), noise=partial(heavy_noise, degrees_of_freedom=4))
    return _gaussian(population.draw(rng, N_DEPARTING), len(population.weights))


def _log_normal(rng):
    """The first column of one cluster is log-normal."""
    population = _clusters(rng)
    X, labels = population.labelled(rng, N_DEPARTING)
    mean, own = population.means[0, 0], labels == 0
    X[own, 0] = mean + np.exp(_LOG_SD * (X[own, 0] - mean)) - np.exp(0.5 * _LOG_SD**2)
    return _gaussian(X, len(population.weights))


def _outliers(rng):
    """Some rows are uniform over a box that is wider than the others."""
    population = _clusters(rng)
    X = population.draw(rng, N_DEPARTING)
    is_outlier = rng.random(N_DEPARTING) < _SHARE_OF_OUTLIERS
    low, high = X.min(axis=0) - _BEYOND, X.max(axis=0) + _BEYOND
    X[is_outlier] = rng.uniform(low, high, (is_outlier.sum(), X.shape[1]))
    return _gaussian(X, len(population.weights))


def _zeros_and_ones(rng):
    """One column more, of zeros and ones."""
    population = _clusters(rng)
    X, labels = population.labelled(rng, N_DEPARTING)
    ones = rng.random(N_DEPARTING) < _SHARES_OF_ONES[labels]
    return _gaussian(np.column_stack([X, ones]), len(population.weights))


def _half_zeros(rng):
    """One column more, of zeros and log-normal values."""
    population = _clusters(rng)
    is_zero = rng.random(N_DEPARTING) < _SHARE_OF_ZEROS
    column = np.where(is_zero, 0.0, rng.lognormal(size=N_DEPARTING))
    X = np.column_stack([population.draw(rng, N_DEPARTING), column])
    return _gaussian(X, len(population.weights))


def _missed_cluster(rng):
    population = _clusters(rng)
    return _gaussian(population.draw(rng, N_DEPARTING), len(population.weights) - 1)


def _left_out_correlation(rng):
    population = _clusters(rng, _LEFT_OUT_CORRELATION)
    return _gaussian(population.draw(rng, N_DEPARTING), len(population.weights), "diag")


def _two_or_three_classes(rng):
    """Columns of all kinds but durations, and the class of every row."""
    K = rng.integers(2, 4)
    labels = _labels(rng, N_DEPARTING, K, 10.0)
    return _classes(rng, _COLUMNS_OF_CLASSES, labels, K), labels


def _overdispersed(rng):
    """The count is negative binomial."""
    table, labels = _two_or_three_classes(rng)
    means = np.exp(1.0 + rng.normal(size=labels.max() + 1))[labels]
    counts = rng.poisson(means * rng.gamma(_SIZE_OF_COUNTS, 1.0 / _SIZE_OF_COUNTS, N_DEPARTING))
    return replace(table, X=table.X.assign(c6=counts))


def _dependent(rng):
    """In some rows, the second binary column has the value of the first."""
    table, _ = _two_or_three_classes(rng)
    is_copy = rng.random(N_DEPARTING) < _SHARE_OF_COPIES
    return replace(table, X=table.X.assign(c5=table.X["c5"].mask(is_copy, table.X["c4"])))


def _missed_class(rng):
    table, labels = _two_or_three_classes(rng)
    return replace(table, arguments=table.arguments | {"n_components": int(labels.max())})


@dataclass(frozen=True)
class Departure:
    """Something that a mixture does not describe.

    Attributes
    ----------
    kind : str, that of the remedy that is right
    draw : callable (rng) -> CheckedTable
    """

    kind: str
    draw: Callable

    def table(self, number):
        """The table of this number; the same every time: CheckedTable."""
        return self.draw(np.random.default_rng([*self.draw.__name__.encode(), number]))


DEPARTURES = {
    "tails of t with 4 degrees of freedom": Departure("heavy tails", _heavy_tails),
    "a log-normal cluster": Departure("skewness", _log_normal),
    "5 % outliers": Departure("outliers", _outliers),
    "a column of zeros and ones": Departure("few values", _zeros_and_ones),
    "a column that is zero in half of the rows": Departure("spike", _half_zeros),
    "one cluster missed": Departure("more components", _missed_cluster),
    'correlation 0.4 under "diag"': Departure("covariances", _left_out_correlation),
    "classes, counts with too much variance": Departure("dispersion", _overdispersed),
    "classes, two binary columns that depend": Departure("more components", _dependent),
    "classes, one class missed": Departure("more components", _missed_class),
}
