"""Tables with holes: values hidden at random, by mechanisms that are known because we hid them."""

import numpy as np


def completely_at_random(X, share, rng):
    """X with a share of its values hidden, whatever they are (MCAR)."""
    return _hidden(X, rng.random(X.shape) < share)


def by_first_column(X, share, rng):
    """X with a share of all columns but the first hidden, the more so the larger the first (MAR).

    The chance grows with the square of the row's rank in the first column, from 0 to three times the share.
    """
    rank = np.argsort(np.argsort(X[:, 0])) / len(X)
    is_hidden = rng.random(X.shape) < 3.0 * share * np.square(rank)[:, None]
    is_hidden[:, 0] = False
    return _hidden(X, is_hidden)


def _hidden(X, is_hidden):
    """X with NaN where it is hidden; a row keeps at least its first value."""
    is_hidden[is_hidden.all(axis=1), 0] = False
    return np.where(is_hidden, np.nan, X)


MECHANISMS = {"MCAR": completely_at_random, "MAR": by_first_column}
