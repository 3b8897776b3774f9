"""Where a fit of latent classes starts: every row goes to the nearest of K centers.

Distances are taken between rows that are made comparable: numbers are standardized on the scale on which
their family compares them, and of a column with categories come indicators, less their means, that vary as
much together as one number does. A missing value is at the column's mean. The centers are those of k-means or
of rows drawn at random; with very many rows they are found in a sample.
"""

import functools
from dataclasses import dataclass
from itertools import cycle, islice

import numpy as np
from sklearn.cluster import KMeans, kmeans_plusplus

from sklearn_lrvb.family_mixture.frames import values_of
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
    numbers : list of (int, callable (n,) -> (n,)), the other m columns and how their values are compared
    means, deviations : (m,), of these, as they are compared
    """

    categories: list
    numbers: list
    means: np.ndarray
    deviations: np.ndarray

    def __call__(self, values):
        """(P, n), NaN where missing -> (n, d)."""
        numbers = _compared(self.numbers, values)
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
        columns : sequence of Column, each with its family and its categories
        """
        categories, numbers = [], []
        for place, column in enumerate(columns):
            if column.family.holds_numbers:
                numbers.append((place, column.family.compared))
            else:
                seen = ~np.isnan(values[place])
                codes, n = values[place][seen].astype(np.intp), len(column.categories)
                shares = np.bincount(codes, weights[seen], n) / max(weights[seen].sum(), 1e-300)
                varies = 1.0 - np.square(shares).sum()
                categories.append((place, shares, 1.0 / np.sqrt(varies) if varies > 0 else 0.0))
        own = _compared(numbers, values)
        counted = weights * ~np.isnan(own)
        totals = np.maximum(counted.sum(axis=1), 1e-300)
        means = (counted * np.nan_to_num(own)).sum(axis=1) / totals
        squares = (counted * np.square(np.nan_to_num(own - means[:, None]))).sum(axis=1) / totals
        deviations = np.sqrt(squares)
        return cls(categories, numbers, means, np.where(deviations > 0, deviations, 1.0))


def _compared(numbers, values):
    """Numbers on the scales on which they are compared, (m, n), of values (P, n)."""
    return np.array([compared(values[place]) for place, compared in numbers]).reshape(-1, values.shape[1])


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


def distinct_rows(X, sample_weight):
    """The different rows of an array in their own order, and how often each counts: (m, P), (m,).

    Parameters
    ----------
    X : (n, P), NaN where missing
    sample_weight : (n,), or None for once each
    """
    order = np.lexsort(X.T)
    in_order = X[order]
    differs = (in_order[1:] != in_order[:-1]) & ~(np.isnan(in_order[1:]) & np.isnan(in_order[:-1]))
    starts = np.flatnonzero(np.append(True, differs.any(axis=1)))
    weights = np.ones(len(order)) if sample_weight is None else sample_weight[order]
    return in_order[starts], np.add.reduceat(weights, starts)
