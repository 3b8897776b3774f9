"""Checks of what users pass, shared by the estimator's methods."""

import numpy as np
from sklearn.utils.validation import _check_sample_weight

from sklearn_lrvb.gaussian_mixture.uncertainty.targets import PARAMETERS, TARGETS, target_class


def checked_weights(sample_weight, X):
    """Weights as a float64 array, finite, non-negative and not all zero; None stays None."""
    if sample_weight is None:
        return None
    weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    if not weights.any():
        raise ValueError("Sample weights must contain at least one non-zero number.")
    return weights


def checked_counts(sample_weight, X):
    """Which rows count, None for all, and how often each of them does, None for once."""
    weights = checked_weights(sample_weight, X)
    if weights is None:
        return None, None
    kept = weights > 0
    weights = weights[kept]
    return None if kept.all() else kept, None if np.all(weights == 1) else weights


def check_target(target):
    """Raise ValueError unless there is a target of this name."""
    target_class(target)


def check_perturbation(perturb):
    """Raise ValueError unless it is what `influence` can change of a row."""
    if not isinstance(perturb, str) or perturb not in ("location", "weight"):
        raise ValueError(f"perturb must be 'location' or 'weight', got {perturb!r}.")


def checked_output(out, shape, X):
    """An array to write results to, as it is."""
    if not isinstance(out, np.ndarray) or out.dtype not in (np.float64, np.float32):
        raise ValueError(f"out must be an ndarray of float64 or float32, got {_described(out)}.")
    if out.shape != shape or not out.flags.c_contiguous or not out.flags.writeable:
        raise ValueError(
            f"out must have shape {shape}, and be C-contiguous and writeable; got {_described(out)}."
        )
    if np.may_share_memory(out, X):
        raise ValueError("out shares memory with X, which is read while it is written: pass another.")
    return out


def _described(array):
    if not isinstance(array, np.ndarray):
        return type(array).__name__
    kept = [f"shape {array.shape}", f"dtype {array.dtype}"]
    kept += ["C-contiguous"] * array.flags.c_contiguous + ["read-only"] * (not array.flags.writeable)
    return ", ".join(kept)


def checked_targets(target):
    """The targets that one name, 'all' or a list of them stands for."""
    named = list(target) if isinstance(target, (list, tuple)) else [target]
    if not named:
        raise ValueError(f"target is empty: name one or more of {', '.join(TARGETS)}.")
    names = [name for t in named for name in (PARAMETERS if isinstance(t, str) and t == "all" else (t,))]
    for name in names:
        target_class(name, also=("all",))
    return names
