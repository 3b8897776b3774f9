"""Tables like those that users pass: data frames where they passed data frames, else arrays."""

import numpy as np


def table_like(X, values):
    """Values as a table of the kind of X, with its index and the names of its columns.

    Parameters
    ----------
    X : array-like or data frame (n_samples, n_features)
    values : array (n_samples, n_features)

    Returns
    -------
    table : data frame of X's class (pandas or polars), or the array itself
    """
    if not (hasattr(X, "columns") and isinstance(values, np.ndarray)):
        return values
    if hasattr(X, "iloc"):
        return type(X)(values, index=X.index, columns=X.columns)
    return type(X)(values, schema=list(X.columns))
