"""Draws of the posterior, log likelihoods and rows in the containers of ArviZ.

xarray, which every ArviZ brings, is imported where it is used: it is not among the library's dependencies.
"""

import numpy as np

from sklearn_lrvb.reports import dataset

# Axes of one precision or covariance, by their number.
_AXES_OF_ONE = ((), ("feature",), ("feature", "other_feature"))


def posterior_groups(draws, structure, feature_names):
    """The group of the posterior: dict of xarray.Dataset.

    Parameters
    ----------
    draws : dict of ndarray (n_draws, *shape of the attribute)
    structure : CovarianceStructure
    feature_names : sequence of str
    """
    by_component = () if structure.shares_precision else ("component",)
    of_precisions = (*by_component, *_AXES_OF_ONE[len(structure.prior_shape)])
    axes = {
        "weights": ("component",),
        "means": ("component", "feature"),
        "precisions": of_precisions,
        "covariances": of_precisions,
    }
    coords = {"component": np.arange(structure.n_components), "feature": list(feature_names)}
    if "other_feature" in of_precisions:
        coords["other_feature"] = list(feature_names)
    return {
        "posterior": dataset({name: (axes[name], values) for name, values in draws.items()}, coords, True)
    }


def row_groups(log_likelihood, X, sample_weight, row_numbers, feature_names):
    """The groups about rows: dict of xarray.Dataset.

    Parameters
    ----------
    log_likelihood : (n_draws, n_rows)
    X : (n_rows, n_features)
    sample_weight : (n_rows,) or None
    row_numbers : int array (n_rows,), their places in the user's X
    feature_names : sequence of str
    """
    of_rows = {"row": row_numbers}
    groups = {
        "log_likelihood": dataset({"X": (("row",), log_likelihood)}, of_rows, True),
        "observed_data": dataset({"X": (("row", "feature"), X)}, {**of_rows, "feature": list(feature_names)}),
    }
    if sample_weight is not None:
        groups["constant_data"] = dataset({"sample_weight": (("row",), sample_weight)}, of_rows)
    return groups
