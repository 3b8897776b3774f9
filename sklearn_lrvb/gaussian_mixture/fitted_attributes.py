"""The public arrays of a fitted mixture, and the private state that belongs to them.

`uncertainty.fitted` decides whether the arrays are still those of the fit.
"""

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from sklearn_lrvb.gaussian_mixture.callbacks import CallbackMethods
from sklearn_lrvb.gaussian_mixture.given_rows import given_rows
from sklearn_lrvb.gaussian_mixture.uncertainty.fitted import (
    DENSITY_ARRAYS,
    FittedMixture,
    HandSetMixture,
    model_of,
)
from sklearn_lrvb.gaussian_mixture.uncertainty.posterior_uncertainty import PosteriorUncertainty


class FittedAttributes(CallbackMethods):
    """Fitted attributes of `LRVBGaussianMixture`, documented there, and the state that its methods use."""

    n_jobs: int | None
    n_features_in_: int

    weights_: NDArray[np.float64]
    means_: NDArray[np.float64]
    covariances_: NDArray[np.float64]
    precisions_: NDArray[np.float64]
    precisions_cholesky_: NDArray[np.float64]
    weight_concentration_: NDArray[np.float64] | tuple[NDArray[np.float64], NDArray[np.float64]]
    mean_precision_: NDArray[np.float64]
    degrees_of_freedom_: NDArray[np.float64] | float
    weight_concentration_prior_: float
    mean_precision_prior_: float
    mean_prior_: NDArray[np.float64]
    degrees_of_freedom_prior_: float
    covariance_prior_: NDArray[np.float64] | float
    converged_: bool
    n_iter_: int
    lower_bound_: float
    lower_bounds_: list[float]
    n_occupied_: int

    _last_fit: FittedMixture
    _last_uncertainty: PosteriorUncertainty
    _set_by_hand: HandSetMixture  # Cached from one prediction to the next.

    @property
    def _fitted(self) -> FittedMixture | HandSetMixture:
        """The mixture that the public arrays describe: that of the last fit, or one that was set by hand."""
        last = vars(self).get("_last_fit")
        if last is not None and last.is_described_by(self):
            return last
        model = model_of(self) if last is None else last.model
        by_hand = vars(self).get("_set_by_hand")
        if by_hand is None or by_hand.model != model or not by_hand.is_described_by(self):
            check_is_fitted(self, DENSITY_ARRAYS)
            self._set_by_hand = by_hand = HandSetMixture(self, model)
        return by_hand

    @property
    def _uncertainty(self) -> PosteriorUncertainty:
        """Linear response at the last fit.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            There was no fit, or the fitted arrays are not those of the fit any more. A ValueError.
        """
        uncertainty = vars(self).get("_last_uncertainty")
        if uncertainty is None:
            check_is_fitted(self)
            raise NotFittedError(
                "Error bars, influence and draws belong to a fit, but the fitted attributes of this "
                "estimator were set by hand. (a) Call fit. (b) Continue a scikit-learn fit with from_sklearn."
            )
        changed = uncertainty.fitted.changed_arrays(self)
        if changed:
            raise NotFittedError(
                f"Changed since the fit: {', '.join(changed)}. Error bars, influence and draws are about "
                "the values that the fit reported. (a) Fit again. (b) Undo the change, or make it in a copy "
                "(copy.deepcopy)."
            )
        return uncertainty

    def _of_rows(self, method, rows, function, shape=()):
        """What `PosteriorUncertainty.of_rows` says of some rows, reported under a method's name."""
        uncertainty = self._uncertainty
        return self._reported(method, lambda tracked: uncertainty.of_rows(rows, function, shape, tracked))

    def _rows(self, X, fitted):
        """A user's rows, checked, and measured from the origin of a fitted mixture."""
        return given_rows(self, X).around(fitted.origin)

    def _training_rows(self, X, sample_weight, fitted):
        """Training rows that a user may pass again, as `_counted_rows`; None where they are left out."""
        if X is None and sample_weight is not None:
            raise ValueError("sample_weight goes with X: pass the training rows too.")
        return None if X is None else self._counted_rows(X, sample_weight, fitted)

    def _counted_rows(self, X, sample_weight, fitted):
        """Training rows that a user passes again, without those of weight zero."""
        return given_rows(self, X, sample_weight).counted_around(fitted.origin)
