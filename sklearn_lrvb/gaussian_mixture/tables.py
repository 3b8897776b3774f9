"""Tables like those that users pass: data frames where they passed data frames, else arrays."""

import numpy as np
from sklearn.utils._set_output import _get_adapter_from_container


def table_like(X, values, keeps_index=True):
    """Values as a table of the kind of X, with the names of its columns.

    Parameters
    ----------
    X : array-like or data frame (n_rows, n_features)
    values : array (n, n_features), or a lazy one, which is returned as it is
    keeps_index : bool, default=True
        Whether the rows are those of X, and have its index.

    Returns
    -------
    table : data frame of X's kind (pandas or polars), or the array itself
    """
    if not (hasattr(X, "columns") and isinstance(values, np.ndarray)):
        return values
    adapter = _get_adapter_from_container(X)
    return adapter.create_container(values, X if keeps_index else values, columns=X.columns)
