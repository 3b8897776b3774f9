"""One entry of a posterior mean: where it stands in the estimator's attribute, and what it is called."""

from sklearn_lrvb.displays.axes import checked_index, feature_names, is_index_pair
from sklearn_lrvb.gaussian_mixture.validation import check_target

_OF_MATRICES = ("precisions", "covariances")


def parameter_entry(estimator, target, component, feature):
    """Index into the attribute, and name as in `posterior_names_`: ((0, 1), "mean[0,x1]").

    Parameters
    ----------
    feature : int; of precisions and covariances that diagonal entry, or a pair for any
    """
    check_target(target)
    n_components, n_features = estimator.means_.shape
    checked_index("component", component, n_components)
    row, column = _row_and_column(target, feature, n_features)
    shared = False
    if target in _OF_MATRICES:
        within = _within_matrix(estimator.covariance_type, row, column)
        shared = estimator.covariance_type == "tied"
    else:
        within = (row,) if target == "means" else ()
    owner = () if shared else (component,)
    names = feature_names(estimator)
    return (*owner, *within), f"{target[:-1]}[{','.join(map(str, (*owner, *(names[p] for p in within))))}]"


def _row_and_column(target, feature, n_features):
    """Row and column in the upper triangle, whose entries have the names."""
    if not isinstance(feature, (tuple, list)):
        return [checked_index("feature", feature, n_features)] * 2
    if target not in _OF_MATRICES:
        raise ValueError(f"feature must be one integer for target={target!r}, got {feature!r}.")
    if not is_index_pair(feature, n_features):
        raise ValueError(
            f"feature must be an integer from 0 to {n_features - 1} or a pair of such, got {feature!r}."
        )
    return sorted(feature)


def _within_matrix(covariance_type, row, column):
    """Features by which the entry of a precision or covariance is found."""
    if covariance_type in ("full", "tied"):
        return (row, column)
    if row != column:
        raise ValueError(
            f"covariance_type={covariance_type!r} has no entries off the diagonal: feature must be one "
            f"integer, got {(row, column)!r}."
        )
    return (row,) if covariance_type == "diag" else ()
