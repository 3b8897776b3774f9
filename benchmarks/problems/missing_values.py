"""Tables with missing values: values removed at random by known mechanisms."""

import numpy as np


def completely_at_random(X, share, rng):
    """X with a share of its values missing, whatever they are (MCAR)."""
    return _with_missing(X, rng.random(X.shape) < share)


def by_first_column(X, share, rng):
    """X with a share of all columns but the first missing, the more so the larger the first (MAR).

    The chance grows with the square of the row's rank in the first column, from 0 to three times the share.
    """
    rank = np.argsort(np.argsort(X[:, 0])) / len(X)
    is_missing = rng.random(X.shape) < 3.0 * share * np.square(rank)[:, None]
    is_missing[:, 0] = False
    return _with_missing(X, is_missing)


def _with_missing(X, is_missing):
    """X with NaN where it is missing; a row keeps at least its first value."""
    is_missing[is_missing.all(axis=1), 0] = False
    return np.where(is_missing, np.nan, X)


MECHANISMS = {"MCAR": completely_at_random, "MAR": by_first_column}
