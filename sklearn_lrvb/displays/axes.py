"""What all displays use: colours, markers, axes, and checks of the features that span them."""

from numbers import Integral

import numpy as np

# The palette of Okabe and Ito, which all kinds of colour vision can tell apart, without its yellow and black.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
MARKERS = ("o", "^", "s", "D", "v", "P", "X")  # Seven markers and six colours repeat with period 42.


def given_or_new(ax):
    """The given axes, or those of a new figure whose layout makes room for a legend beside them."""
    import matplotlib.pyplot as plt

    return plt.subplots(layout="constrained")[1] if ax is None else ax


def feature_names(estimator):
    """Names of the features, (P,): those of the training data, or x0, x1 and so on."""
    return getattr(estimator, "feature_names_in_", [f"x{p}" for p in range(estimator.n_features_in_)])


def is_index(value, size):
    """Whether the value is an integer from 0 to ``size - 1``."""
    return isinstance(value, Integral) and not isinstance(value, bool) and 0 <= value < size


def is_index_pair(value, size):
    """Whether the value is a pair of integers from 0 to ``size - 1``."""
    return isinstance(value, (tuple, list)) and len(value) == 2 and all(is_index(v, size) for v in value)


def checked_index(name, value, size):
    """The value, which must be an integer from 0 to ``size - 1``."""
    if not is_index(value, size):
        raise ValueError(f"{name} must be an integer from 0 to {size - 1}, got {value!r}.")
    return value


def checked_plane(features, n_features):
    """The two features that span the plot, as a list: two different columns of the training data."""
    if n_features < 2:
        raise ValueError("The plot takes two features, and the mixture was fitted to one.")
    if not is_index_pair(features, n_features) or features[0] == features[1]:
        raise ValueError(
            f"features must be two different columns of the {n_features} that the mixture was fitted to, as "
            f"integers from 0 to {n_features - 1}, got {features!r}."
        )
    return list(features)


def coordinates(X, plane):
    """The plane's two columns of rows that the mixture has validated, (n_samples, 2)."""
    return np.asarray(X, dtype=np.float64)[:, plane]
