"""Where a fit of latent classes starts: every row goes to the nearest of K centers.

Distances are taken between rows that are made comparable: numbers are standardized, counts are standardized
square roots, and of a column with categories come indicators, less their means, that vary as much together as
one number does. A missing value is at the column's mean. The centers are those of k-means or of rows drawn at
random; with very many rows they are found in a sample.
"""

import functools
from dataclasses import dataclass
from itertools import cycle, islice

import numpy as np
from sklearn.cluster import KMeans, kmeans_plusplus

from sklearn_lrvb.family_mixture.frames import values_of
from sklearn_lrvb.mixed_tables.given_tables import distinct_rows
from sklearn_lrvb.mixed_tables.table import NUMBERS
from sklearn_lrvb.rows import Workload, openmp_threads

SAMPLE_ROWS = 2**14  # Largest number of rows in which centers are found, and starts are compared.
_IN_TURN = "kmeans", "k-means++", "random_from_data"


def kinds_of_starts(init_params, n_init):
    """The kinds of several starts: those of "kmeans" differ, other names are a choice of one kind."""
    if init_params != "kmeans":
        return [init_params] * n_init
    return list(islice(cycle(_IN_TURN), n_init))


@dataclass(frozen=True)
class Comparable:
    """Rows made comparable.

    Attributes
    ----------
    categories : list of (int, (C,) frequencies, float scale), of columns with categories by their place
    numbers : int array (m,), places of the other columns
    are_counts : bool array (m,)
    means, deviations : (m,), of the other columns as they are compared
    """

    categories: list
    numbers: np.ndarray
    are_counts: np.ndarray
    means: np.ndarray
    deviations: np.ndarray

    def __call__(self, values):
        """(P, n), NaN where missing -> (n, d)."""
        numbers = np.where(
            self.are_counts[:, None], np.sqrt(np.abs(values[self.numbers])), values[self.numbers]
        )
        numbers = np.nan_to_num((numbers - self.means[:, None]) / self.deviations[:, None])
        parts = [numbers]
        for place, shares, scale in self.categories:
            own = (values[place] == np.arange(len(shares))[:, None]) - shares[:, None]
            parts.append(scale * np.where(np.isnan(values[place]), 0.0, own))
        return np.concatenate(parts).T

    @classmethod
    def of(cls, values, weights, columns):
        """From a sample of the rows.

        Parameters
        ----------
        values : (P, n), NaN where missing
        weights : (n,)
        columns : sequence of Column of `table`
        """
        categories = []
        for place, column in enumerate(columns):
            if column.kind in ("categorical", "binary"):
                seen = ~np.isnan(values[place])
                codes, n = values[place][seen].astype(np.intp), len(column.categories)
                shares = np.bincount(codes, weights[seen], n) / max(weights[seen].sum(), 1e-300)
                varies = 1.0 - np.square(shares).sum()
                categories.append((place, shares, 1.0 / np.sqrt(varies) if varies > 0 else 0.0))
        numbers = [place for place, c in enumerate(columns) if c.kind in NUMBERS]
        numbers = np.array(numbers, dtype=np.intp)
        are_counts = np.array([columns[place].kind == "count" for place in numbers], dtype=bool)
        own = np.where(are_counts[:, None], np.sqrt(np.abs(values[numbers])), values[numbers])
        counted = weights * ~np.isnan(own)
        totals = np.maximum(counted.sum(axis=1), 1e-300)
        means = (counted * np.nan_to_num(own)).sum(axis=1) / totals
        squares = (counted * np.square(np.nan_to_num(own - means[:, None]))).sum(axis=1) / totals
        deviations = np.sqrt(squares)
        return cls(categories, numbers, are_counts, means, np.where(deviations > 0, deviations, 1.0))


class Starts:
    """Starting responsibilities of the classes.

    Parameters
    ----------
    rows : Rows, those that count
    columns : sequence of Column
    n_components : int
    """

    def __init__(self, rows, columns, n_components):
        if rows.n_samples > SAMPLE_ROWS:
            X, weights = rows.thinned(SAMPLE_ROWS).X, None
        else:
            sample = rows.in_memory()
            X, weights = sample.X, sample.sample_weight
        # Neither the order of the rows nor copies of them decide on what is drawn.
        X, weights = distinct_rows(np.asarray(X, dtype=np.float64), weights)
        values = X.T
        self._comparable = Comparable.of(values, weights, columns)
        self._sample, self._weights, self._n_components = self._comparable(values), weights, n_components

    def responsibilities(self, kind, random_state):
        """Responsibilities of a kind of start: callable RowBlock -> (n, K)."""
        return functools.partial(_nearest, self._comparable, self._centers(kind, random_state))

    def _centers(self, kind, random_state):
        n_components, sample = self._n_components, self._sample
        if kind == "kmeans" and len(sample) >= n_components:
            with openmp_threads(1):
                model = KMeans(n_components, n_init=1, random_state=random_state)
                return model.fit(sample, sample_weight=self._weights).cluster_centers_
        if kind == "k-means++" and len(sample) >= n_components:
            return kmeans_plusplus(
                sample, n_components, sample_weight=self._weights, random_state=random_state
            )[0]
        shares = self._weights / self._weights.sum()
        return sample[
            random_state.choice(len(sample), n_components, replace=len(sample) < n_components, p=shares)
        ]

    def workload(self):
        """What assigning the rows of a block takes: Workload."""
        return Workload(2 * self._sample.shape[1] + 2 * self._n_components, 0)


def _nearest(comparable, centers, block):
    """Indicators of the nearest center, (n, K)."""
    rows = comparable(values_of(block))
    distances = np.square(centers).sum(axis=1) - 2.0 * rows @ centers.T
    return (distances.argmin(axis=1)[:, None] == np.arange(len(centers))).astype(np.float64)
