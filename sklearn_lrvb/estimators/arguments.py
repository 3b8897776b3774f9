"""What users pass to the methods of any mixture, checked."""

from numbers import Integral, Real

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils._set_output import _get_adapter_from_container

from sklearn_lrvb.answers.targets import target_class
from sklearn_lrvb.caller_warnings import warn_caller
from sklearn_lrvb.rows import is_dask


def warn_of_weights_as_y(y, sample_weight):
    """Warn where y, which is ignored, holds numbers that may have been meant as weights.

    Labels are whole numbers or words. Targets of a regression are no reason to call the mixture with y, but
    look like weights where none is negative.

    Parameters
    ----------
    y, sample_weight : what the user has passed
    """
    if sample_weight is not None or y is None or is_dask(y):
        return
    try:
        values = np.asarray(y)
    except ValueError:  # It is no array.
        return
    if values.ndim != 1 or values.dtype.kind != "f":
        return
    if np.all((values >= 0) & (values < np.inf)) and np.any(values % 1 > 0):
        warn_caller(
            "y is ignored, but holds non-negative numbers that are no labels. If they are weights of the "
            "rows, pass them by name: sample_weight=... If not, leave y out."
        )


def require_rows_first(X):
    """Raise ValueError where a number, or names of targets, take the place of rows."""
    if isinstance(X, Real | str) or (isinstance(X, list | tuple) and any(isinstance(x, str) for x in X)):
        raise ValueError(
            f"The first argument is X, the rows, got {X!r}. Others go by name, such as target='means', "
            "n_draws=1000 or interval=0.95."
        )


def checked_number(value, name="n_draws", unit="draw"):
    """A number of draws, or of something else, as an int; a ValueError unless it is a positive integer."""
    if not isinstance(value, Integral) or value < 1:
        raise ValueError(
            f"Invalid value for {name!r}: {value!r}. It must be an integer, and at least one {unit}."
        )
    return int(value)


def require_samples(n_samples):
    """Raise ValueError, as scikit-learn does, unless this is a number of rows to draw."""
    if not isinstance(n_samples, Integral) or n_samples < 1:
        raise ValueError(
            f"Invalid value for 'n_samples': {n_samples!r} . The sampling requires at least one sample, "
            "and a whole number of them."
        )


def checked_method(method, *others):
    """The method for error bars, "auto", "lrvb", "exact" or one of others.

    Raises
    ------
    ValueError
        Where it is none of them.
    """
    choices = ("auto", "lrvb", "exact", *others)
    if method not in choices:
        listed = ", ".join(map(repr, choices[:-1]))
        raise ValueError(f"method must be {listed} or {choices[-1]!r}, got {method!r}.")
    return method


def checked_seed(random_state):
    """The seed of draws that a user has chosen: int, or None for the one of all answers."""
    if random_state is None or isinstance(random_state, Integral):
        return random_state
    return int(check_random_state(random_state).randint(2**31))


def holding(counts, min_count):
    """Which components have at least so many expected rows, of which there must be one.

    Parameters
    ----------
    counts : float array of shape (n_components,), expected rows
    min_count : object, what the user passed

    Returns
    -------
    bool array of shape (n_components,)
    """
    if isinstance(min_count, bool) or not isinstance(min_count, Real) or not min_count >= 0:
        raise ValueError(f"min_count must be a number of rows, at least 0, got {min_count!r}.")
    held = counts >= min_count
    if not held.any():
        raise ValueError(
            f"No component has {min_count:g} expected rows, the largest has {counts.max():.1f}: lower "
            "min_count."
        )
    return held


def checked_targets(target, table, parameters, entries=None):
    """The targets that one name, 'all' or a list of such stands for: list.

    Parameters
    ----------
    target : object, what the user passed
    table : dict of the classes of targets by their names
    parameters : tuple of str, what 'all' stands for
    entries : callable (str) -> Entries, or None
        What makes of the name of an entry, such as "weight[0]", or of a difference; None where none is
        possible.

    Returns
    -------
    targets : list of str, and of Entries

    Raises
    ------
    ValueError
        Where there is none, or one is unknown.
    """
    # Arrays of names are those of `posterior_names_` and of the index of a table.
    is_list = isinstance(target, (list, tuple)) or getattr(target, "ndim", 0) == 1
    named, targets = list(target) if is_list else [target], []
    if not named:
        raise ValueError(f"target is empty: name one or more of {', '.join(table)}.")
    for name in named:
        if isinstance(name, str) and name == "all":
            targets += parameters
        elif entries is not None and isinstance(name, str) and "[" in name:
            targets.append(entries(name))
        else:
            target_class(table, name, also=("all", *["an entry such as 'weight[0]'"] * (entries is not None)))
            targets.append(name)
    return targets


def check_perturbation(perturb):
    """Raise ValueError unless this names a perturbation of `influence`."""
    if not isinstance(perturb, str) or perturb not in ("location", "weight"):
        raise ValueError(f"perturb must be 'location' or 'weight', got {perturb!r}.")


def checked_output(out, shape, X=None):
    """A user's array for results, checked.

    Parameters
    ----------
    out : object
    shape : tuple of int, the shape of the results
    X : array or None, the rows, which are read while results are written

    Raises
    ------
    ValueError
        Unless it is a C-contiguous, writeable array of float64 or float32 with that shape, apart from X.
    """
    if not isinstance(out, np.ndarray) or out.dtype not in (np.float64, np.float32):
        raise ValueError(f"out must be an ndarray of float64 or float32, got {_described(out)}.")
    if out.shape != shape or not out.flags.c_contiguous or not out.flags.writeable:
        raise ValueError(
            f"out must have shape {shape}, and be C-contiguous and writeable; got {_described(out)}."
        )
    if X is not None and np.may_share_memory(out, X):
        raise ValueError("out shares memory with X, which is read while out is written. Pass another array.")
    return out


def _described(array):
    """The type and layout of an array in words, for error messages."""
    if not isinstance(array, np.ndarray):
        return type(array).__name__
    properties = [f"shape {array.shape}", f"dtype {array.dtype}"]
    properties += ["C-contiguous"] * array.flags.c_contiguous + ["read-only"] * (not array.flags.writeable)
    return ", ".join(properties)


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
