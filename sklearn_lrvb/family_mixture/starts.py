"""Where a fit of latent classes starts: every row goes to the nearest of K centers.

Distances are taken between rows that are made comparable: numbers are standardized on the scale on which
their family compares them, and of a column with categories come indicators, less their means, that vary as
much together as one number does. A missing value is at the column's mean. The centers are those of k-means or
of rows drawn at random; with very many rows they are found in a sample.
"""

import functools
from itertools import cycle, islice
from types import SimpleNamespace

import numpy as np
from sklearn.cluster import kmeans_plusplus

from sklearn_lrvb.family_mixture.coordinates import values_of
from sklearn_lrvb.mixture.multi_start import k_means, nearest_centers

SAMPLE_ROWS = 2**14  # Largest number of rows in which centers are found, and starts are compared.
_IN_TURN = "kmeans", "k-means++", "random_from_data"


def kinds_of_starts(init_params, n_init):
    """The kinds of several starts: those of "kmeans" differ, other names are a choice of one kind."""
    if init_params != "kmeans":
        return [init_params] * n_init
    return list(islice(cycle(_IN_TURN), n_init))


def further_starts(posterior, rows, n_starts, random_state):
    """Yield responsibilities of several starts other than the first, callables RowBlock -> (n, K)."""
    by_place = {place: family for family in posterior.prior.families for place in family.places}
    families = [by_place[place] for place in sorted(by_place)]
    columns = [SimpleNamespace(family=own, categories=range(own.n_features)) for own in families]
    centers = StartingResponsibilities(rows, columns, posterior.n_components)
    for kind in kinds_of_starts("kmeans", 1 + n_starts)[1:]:
        yield centers.responsibilities(kind, random_state)


class Comparable:
    """How rows are made comparable, by a sample of them: (P, n) values, NaN where missing -> (n, d).

    Every column has some features, a number or an indicator of every category. Less their means, they vary
    as much together as one number of variance one does.

    Parameters
    ----------
    values : (P, n), NaN where missing
    weights : (n,)
    columns : sequence of Column, each with its family and its categories
    """

    def __init__(self, values, weights, columns):
        self._features, self._means, self._scales = [_features_of(column) for column in columns], [], []
        for features_of, own in zip(self._features, values, strict=True):
            features, counted = np.atleast_2d(features_of(own)), weights * ~np.isnan(own)
            total = max(counted.sum(), 1e-300)
            mean = np.nan_to_num(features) @ counted / total
            variance = (np.nan_to_num(np.square(features - mean[:, None])) @ counted).sum() / total
            self._means.append(mean[:, None])
            self._scales.append(1.0 / np.sqrt(variance) if variance > 0 else 0.0)

    def __call__(self, values):
        columns = zip(self._features, values, self._means, self._scales, strict=True)
        parts = [
            scale * (np.atleast_2d(features_of(own)) - mean) for features_of, own, mean, scale in columns
        ]
        return np.nan_to_num(np.concatenate(parts)).T


def _features_of(column):
    """The function that makes the features of a column of its values, NaN where missing.

    They are a number on the scale on which its family compares it, (n,) -> (n,), or indicators of categories,
    (n,) -> (c, n).
    """
    if column.family.holds_numbers:
        return column.family.compared
    return functools.partial(_indicators, len(column.categories))


def _indicators(n_categories, values):
    return np.where(np.isnan(values), np.nan, values == np.arange(n_categories)[:, None])


class StartingResponsibilities:
    """Starting responsibilities of the classes.

    Parameters
    ----------
    rows : Rows, of positive weight
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
        X, self._weights = distinct_rows(np.asarray(X, dtype=np.float64), weights)
        self._comparable, self._n_components = Comparable(X.T, self._weights, columns), n_components
        self._sample = self._comparable(X.T)

    def responsibilities(self, kind, random_state):
        """Responsibilities of a kind of start: callable RowBlock -> (n, K)."""
        sample, weights, n_components = self._sample, self._weights, self._n_components
        are_few = len(sample) < n_components
        if kind == "kmeans" and not are_few:
            centers = k_means(sample, n_components, weights, random_state).cluster_centers_
        elif kind == "k-means++" and not are_few:
            centers, _ = kmeans_plusplus(
                sample, n_components, sample_weight=weights, random_state=random_state
            )
        else:
            shares = weights / weights.sum()
            centers = sample[random_state.choice(len(sample), n_components, replace=are_few, p=shares)]
        return functools.partial(_by_nearest_center, self._comparable, centers)


def _by_nearest_center(comparable, centers, block):
    """A row belongs to the class of the nearest center, (n, K)."""
    return np.eye(len(centers))[nearest_centers(centers, centers @ comparable(values_of(block)).T)]


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
