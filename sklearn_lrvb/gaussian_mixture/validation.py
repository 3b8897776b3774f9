"""Checks of the arguments that users pass to the estimator's methods."""

from numbers import Integral, Real

import numpy as np
from sklearn.utils.validation import _check_sample_weight

from sklearn_lrvb.gaussian_mixture.uncertainty.targets import PARAMETERS, TARGETS, target_class
from sklearn_lrvb.row_blocks.parts import counted
from sklearn_lrvb.row_blocks.tables import refuse_masked

CORRECTIONS = ("importance", "gibbs")


def checked_weights(sample_weight, X):
    """Sample weights as a float64 array, finite, non-negative and not all zero; None stays None.

    Parameters
    ----------
    sample_weight : array-like of shape (n_samples,) or None
    X : array of shape (n_samples, ...), whose rows they weight

    Raises
    ------
    ValueError
        Where a weight is masked, not finite or negative, or all are zero.
    """
    if sample_weight is None:
        return None
    refuse_masked(sample_weight)
    weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    if not weights.any():
        raise ValueError("Sample weights must contain at least one non-zero number.")
    return weights


def checked_counts(sample_weight, X, has_holes=False):
    """The rows of positive weight that have a value, and their weights.

    Parameters
    ----------
    sample_weight, X : as in `checked_weights`
    has_holes : bool, whether values of X may be missing

    Returns
    -------
    kept : bool array of shape (n_samples,), or None for all rows
    weights : float64 array of shape (number of kept rows,), or None for once each
    """
    given = checked_weights(sample_weight, X)
    kept, weights = counted(X, given, has_holes)
    if kept is not None and not kept.any():
        which = "" if given is None else " of positive weight"
        raise ValueError(f"X has no value: it contains NaN alone in all {len(X)} rows{which}.")
    return kept, weights


def checked_number(value, name="n_draws", unit="draw"):
    """A number of draws, or of something else, as an int; a ValueError unless it is a positive integer."""
    if not isinstance(value, Integral) or value < 1:
        raise ValueError(
            f"Invalid value for {name!r}: {value!r}. It must be an integer, and at least one {unit}."
        )
    return int(value)


def check_correction(correction):
    """Raise ValueError unless this is a correction of linear response."""
    if correction is not None and correction not in CORRECTIONS:
        raise ValueError(f"correction must be None, 'importance' or 'gibbs', got {correction!r}.")


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


def check_target(target):
    """Raise ValueError unless there is a target of this name."""
    target_class(target)


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


def checked_targets(target):
    """The targets that one name, 'all' or a list of such stands for: list of str.

    Raises
    ------
    ValueError
        Where there is none, or one is unknown.
    """
    named = list(target) if isinstance(target, (list, tuple)) else [target]
    if not named:
        raise ValueError(f"target is empty: name one or more of {', '.join(TARGETS)}.")
    names = [name for t in named for name in (PARAMETERS if isinstance(t, str) and t == "all" else (t,))]
    for name in names:
        target_class(name, also=("all",))
    return names
