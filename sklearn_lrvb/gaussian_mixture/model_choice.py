"""Fits of several numbers of components, and the scores by which they are compared.

`ModelChoiceDisplay` draws what `model_choice` finds.
"""

import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field
from numbers import Integral

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln
from sklearn.base import BaseEstimator, clone
from sklearn.utils import _safe_indexing
from sklearn.utils.parallel import Parallel, delayed

from sklearn_lrvb.caller_warnings import warn_caller

CRITERIA = ("lower_bound", "all_labellings", "leave_one_out")


def model_choice(estimator, X, n_components, criteria, sample_weight, n_jobs):
    """Fit clones of a mixture with several numbers of components, and score them.

    Parameters
    ----------
    estimator : LRVBGaussianMixture
    X : array-like of shape (n_samples, n_features), in memory
    n_components : iterable of int
    criteria : sequence of `CRITERIA` or None for all that apply
    sample_weight : array-like of shape (n_samples,) or None
    n_jobs : int or None, fits at a time

    Returns
    -------
    found : dict, the parameters of `ModelChoiceDisplay`
    """
    numbers, criteria = _checked_numbers(n_components, X), _checked_criteria(criteria, estimator)
    if not (isinstance(estimator.init_params, str) or callable(estimator.init_params)):
        raise ValueError(
            "init_params is an array, which starts fits of one n_components alone. Give the estimator a "
            "string or a callable."
        )
    leaves_out = "leave_one_out" in criteria
    fits = Parallel(n_jobs=n_jobs)(
        delayed(_fit)(clone(estimator).set_params(n_components=k), X, sample_weight, leaves_out)
        for k in numbers.tolist()
    )
    if all(fit.error is not None for fit in fits):
        raise fits[0].error
    by_number = dict(zip(numbers.tolist(), fits, strict=True))
    _warn_of(by_number)
    n_occupied, bounds = np.array([fit.n_occupied for fit in fits]), np.array([fit.bound for fit in fits])
    log_copies = gammaln(numbers + 1) - gammaln(numbers - n_occupied + 1)
    loo_scores, std_errors = _leave_one_out(fits)
    scores = {"lower_bound": bounds, "all_labellings": bounds + log_copies, "leave_one_out": loo_scores}
    return {
        "n_components": numbers,
        "n_occupied": n_occupied,
        "scores": {criterion: scores[criterion] for criterion in criteria},
        "leave_one_out_std_error": std_errors if leaves_out else None,
        "converged": np.array([fit.converged for fit in fits]),
        "strict_optimum": np.array([fit.strict_optimum for fit in fits]),
        "notes": {k: fit.notes for k, fit in by_number.items() if fit.notes},
        "estimators": {k: fit.estimator for k, fit in by_number.items() if fit.error is None},
    }


def _checked_numbers(n_components, X):
    """The numbers of components, rising, each once: int array."""
    numbers = list(n_components) if isinstance(n_components, Iterable) else []
    if not numbers or not all(isinstance(k, Integral) and not isinstance(k, bool) and k > 0 for k in numbers):
        raise ValueError(
            f"n_components must list one or more positive integers, as range(1, 9), got {n_components!r}."
        )
    n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
    if max(numbers) > n_rows:
        raise ValueError(f"n_components goes up to {max(numbers)}, more than the {n_rows} rows of X.")
    return np.unique(numbers)


def _checked_criteria(criteria, estimator):
    """The criteria to compare by, in the order in which they are drawn."""
    undefined = _undefined_criteria(estimator)
    if criteria is None:
        return [criterion for criterion in CRITERIA if criterion not in undefined]
    found = list(criteria) if isinstance(criteria, Iterable) and not isinstance(criteria, str) else []
    if not found or any(criterion not in CRITERIA for criterion in found):
        raise ValueError(f"criteria must list one or more of {', '.join(CRITERIA)}, got {criteria!r}.")
    for criterion in found:
        if criterion in undefined:
            raise ValueError(f"{criterion!r} is undefined, since {undefined[criterion]}.")
    return [criterion for criterion in CRITERIA if criterion in found]


def _undefined_criteria(estimator):
    """The criteria that do not compare fits of an estimator, and why: dict of str."""
    if estimator.prior == "flat":
        reason = (
            "prior='flat' is known up to a factor that depends on n_components: (a) use prior='conjugate'; "
            "(b) compare by 'leave_one_out'"
        )
        return {"lower_bound": reason, "all_labellings": reason}
    if estimator.weight_concentration_prior_type == "dirichlet_distribution":
        return {}
    reason = (
        "components are not exchangeable under stick-breaking weights: (a) compare by 'lower_bound'; (b) "
        "use weight_concentration_prior_type='dirichlet_distribution'"
    )
    return {"all_labellings": reason}


@dataclass
class _Fit:
    """One fit, and what came of it.

    Attributes
    ----------
    estimator : LRVBGaussianMixture
    error : ValueError or None, why there is no fit
    n_occupied : int, components that hold rows
    bound : float, `lower_bound_`, or NaN
    converged, strict_optimum : bool
    row_scores : (n_rows,) leave-one-out scores of the rows that count, or NaN
    weights : (n_rows,) how often they count, or the number 1
    notes, warned : list of str, all messages, and those that the user is warned of
    """

    estimator: BaseEstimator
    error: ValueError | None = None
    n_occupied: int = 0
    bound: float = np.nan
    converged: bool = False
    strict_optimum: bool = False
    row_scores: NDArray | float = np.nan
    weights: NDArray | float = 1.0
    notes: list[str] = field(default_factory=list)
    warned: list[str] = field(default_factory=list)


def _fit(estimator, X, sample_weight, leaves_out):
    """Fit an estimator, and leave out its rows one by one if asked for: _Fit. Warnings are kept."""
    fit = _Fit(estimator)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            estimator.fit(X, sample_weight=sample_weight)
        except ValueError as error:
            fit.error = error
            fit.notes.append(str(error))
            return fit
        fit.n_occupied, fit.bound = estimator.n_occupied_, estimator.lower_bound_
        fit.converged, fit.strict_optimum = bool(estimator.converged_), True
        try:
            if leaves_out:
                rows, weights = _counted(X, sample_weight)
                fit.row_scores = estimator.loo_score_samples(rows, weights)
                fit.weights = 1.0 if weights is None else weights
            else:
                _ = estimator.weights_std_  # Refused where the fit is no strict optimum.
        except (ValueError, MemoryError) as error:
            fit.strict_optimum = isinstance(error, MemoryError)
            fit.notes.append(str(error))
    messages = [str(warning.message) for warning in caught]
    fit.notes += messages
    fit.warned = messages if fit.converged else []
    return fit


def _counted(X, sample_weight):
    """The rows that count, and how often: those of weight zero may have no finite score."""
    if sample_weight is None:
        return X, None
    weights = np.asarray(sample_weight, dtype=np.float64)
    counted = np.flatnonzero(weights)
    return _safe_indexing(X, counted), weights[counted]


def _warn_of(fits):
    """Warn once of all that converged fits warned of; those that did not converge are marked."""
    warned = {k: fit.warned[0] for k, fit in fits.items() if fit.warned}
    if warned:
        first = min(warned)
        warn_caller(
            f"Fits with n_components = {', '.join(map(str, warned))} warned, and the display's `notes` have "
            f"all messages. The first, of n_components = {first}: {warned[first]}"
        )


def _leave_one_out(fits):
    """Leave-one-out scores, and standard errors of their differences from the best: two of (n_fits,)."""
    scores = np.array([np.sum(fit.weights * fit.row_scores) for fit in fits])
    if np.isnan(scores).all():
        return scores, scores.copy()
    best, std_errors = fits[np.nanargmax(scores)].row_scores, []
    for fit in fits:
        # That of a weighted sum of differences, the rows being a sample.
        differences = fit.row_scores - best
        weights = np.broadcast_to(fit.weights, differences.shape)
        n_rows = weights.sum()
        deviations = differences - np.sum(weights * differences) / n_rows
        variance = n_rows / max(n_rows - 1.0, 1.0) * np.sum(weights * np.square(deviations))
        std_errors.append(np.sqrt(variance))
    return scores, np.array(std_errors)
