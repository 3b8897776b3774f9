"""Entries of the estimator's attributes: where they are, and what they are called."""

import numpy as np

from sklearn_lrvb.displays.selection import (
    checked_feature,
    checked_index,
    checked_pair,
    feature_names,
    is_list,
)


def parameter_entry(estimator, target, component, feature):
    """Index into the attribute, and name as in `posterior_names_`: ((0, 1), "mean[0,x1]").

    Parameters
    ----------
    estimator : LRVBGaussianMixture, fitted
    target : str
    component : int
    feature : int, str or pair of such
        Of precisions and covariances one feature stands for the diagonal entry, and a pair for any.

    Raises
    ------
    ValueError
        There is no such target, component or feature, or no such entry off the diagonal.
    """
    target = estimator._uncertainty.map[target]
    names = feature_names(estimator)
    checked_index("component", component, len(estimator.means_))
    flat_index = target.flat_index(component, *row_and_column(target, feature, names))
    index = np.argwhere(target.flat_indices() == flat_index)[0]  # in the upper triangle of a matrix
    return tuple(index.tolist()), target.labels(names)[flat_index]


def row_and_column(target, feature, names):
    """The numbers of an entry's two features, in the order of the upper triangle."""
    if not is_list(feature):
        return [checked_feature("feature", feature, names)] * 2
    if target.n_feature_axes < 2:
        raise ValueError(f"feature must be one feature for target={target.name!r}, got {feature!r}.")
    return sorted(checked_pair("feature", feature, names))


def all_entries(target, n_features):
    """Rows and columns of all entries of a component that the target has: list of pairs."""
    if target.n_feature_axes == 2 and not target.on_diagonal().all():
        return list(zip(*np.triu_indices(n_features), strict=True))
    return [(p, p) for p in range(n_features if target.n_feature_axes else 1)]
