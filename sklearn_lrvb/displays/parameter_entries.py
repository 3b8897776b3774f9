"""One entry of a posterior mean: where it is in the estimator's attribute, and what it is called."""

import numpy as np

from sklearn_lrvb.displays.axes import checked_index, feature_names, is_index_pair


def parameter_entry(estimator, target, component, feature):
    """Index into the attribute, and name as in `posterior_names_`: ((0, 1), "mean[0,x1]").

    Parameters
    ----------
    estimator : LRVBGaussianMixture, fitted
    target : str
    component : int
    feature : int or pair of int
        Of precisions and covariances an integer stands for the diagonal entry, and a pair for any.

    Raises
    ------
    ValueError
        There is no such target, component or feature, or no such entry off the diagonal.
    """
    target = estimator._uncertainty.map[target]
    n_components, n_features = estimator.means_.shape
    checked_index("component", component, n_components)
    flat_index = target.flat_index(component, *_row_and_column(target, feature, n_features))
    index = np.argwhere(target.flat_indices() == flat_index)[0]  # in the upper triangle of a matrix
    return tuple(index.tolist()), target.labels(feature_names(estimator))[flat_index]


def _row_and_column(target, feature, n_features):
    """The two features of an entry, in the order of the upper triangle."""
    if not isinstance(feature, (tuple, list)):
        return [checked_index("feature", feature, n_features)] * 2
    if target.n_feature_axes < 2:
        raise ValueError(f"feature must be one integer for target={target.name!r}, got {feature!r}.")
    if not is_index_pair(feature, n_features):
        raise ValueError(
            f"feature must be an integer from 0 to {n_features - 1} or a pair of such, got {feature!r}."
        )
    return sorted(feature)
