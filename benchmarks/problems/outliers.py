"""Rows of three Gaussian clusters of one shape with outliers among them, and which rows these are."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from benchmarks.problems.populations import Population

OUTLIER = -1  # label of a row of no cluster
N_SAMPLES, N_CLUSTERS, N_TABLES = 600, 3, 4
N_FEATURES = (2, 5, 10, 20)
_FAR_APART, _NEAR = 12.0, 6.0  # the two nearest centers, in standard deviations
_SPREAD = 3.0  # of outliers about the center of all rows, in units of that of the rows
_FAR = 1000.0  # standard deviations


def _uniform(rng, rows, n_outliers):
    """Uniform over the box of the rows."""
    return rng.uniform(rows.min(axis=0), rows.max(axis=0), (n_outliers, rows.shape[1]))


def _wide(rng, rows, n_outliers):
    """Normal, with the mean of the rows and three times their spread."""
    root = np.linalg.cholesky(np.cov(rows, rowvar=False))
    return rows.mean(axis=0) + _SPREAD * rng.normal(size=(n_outliers, rows.shape[1])) @ root.T


def _far(rng, rows, n_outliers):
    """In random directions from the mean of the rows, a thousand of their standard deviations away."""
    directions = rng.normal(size=(n_outliers, rows.shape[1]))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    return rows.mean(axis=0) + _FAR * directions * rows.std(axis=0)


@dataclass(frozen=True)
class Outliers:
    """What is mixed into the rows of the clusters.

    Attributes
    ----------
    share : float, of all rows
    draw : callable (rng, rows of the clusters, n_outliers) -> (n_outliers, P)
    distance : float, between the centers of the two nearest clusters, in standard deviations
    """

    share: float
    draw: Callable = _uniform
    distance: float = _FAR_APART


KINDS = {
    "clean": Outliers(0.0),
    "20 % uniform": Outliers(0.2),
    "20 % uniform, clusters near": Outliers(0.2, distance=_NEAR),
    "2 % uniform": Outliers(0.02),
    "10 % at 3 times the spread": Outliers(0.1, _wide),
    "2 % at 1000 sd": Outliers(0.02, _far),
}


@dataclass(frozen=True)
class OutlierTable:
    """A table and what is true of it.

    Attributes
    ----------
    name : str
    kind : str, key of `KINDS`
    X : (N, P), in random order
    labels : (N,), the cluster of every row, or `OUTLIER`
    population : Population, of the other rows
    """

    name: str
    kind: str
    X: np.ndarray
    labels: np.ndarray
    population: Population

    @property
    def is_outlier(self):
        return self.labels == OUTLIER


def outlier_table(kind, n_features, data_set):
    """The table of this number; the same every time."""
    name = f"{kind}, P = {n_features}: table {data_set}"
    rng = np.random.default_rng([*name.encode()])
    from benchmarks.problems.surplus_problems import Clusters  # It needs scikit-learn.

    clusters = Clusters(N_SAMPLES, n_features, N_CLUSTERS, KINDS[kind].distance, shapes="tied")
    population = clusters.population(rng)
    n_outliers = round(KINDS[kind].share * N_SAMPLES)
    rows, labels = population.labelled(rng, N_SAMPLES - n_outliers)
    X = np.concatenate([rows, KINDS[kind].draw(rng, rows, n_outliers)])
    labels = np.concatenate([labels, np.full(n_outliers, OUTLIER)])
    order = rng.permutation(N_SAMPLES)
    return OutlierTable(name, kind, X[order], labels[order], population)


def outlier_tables(kinds=tuple(KINDS), n_features=N_FEATURES, n_tables=N_TABLES):
    """Tables of the kinds and numbers of features: yields `OutlierTable`."""
    for kind in kinds:
        for P in n_features:
            for data_set in range(n_tables):
                yield outlier_table(kind, P, data_set)
