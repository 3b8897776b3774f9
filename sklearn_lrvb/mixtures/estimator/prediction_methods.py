"""Predictions and scores of rows: methods of mixture estimators."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_lrvb.mixtures.estimator.arguments import warn_of_weights_as_y
from sklearn_lrvb.mixtures.estimator.fitted import FittedState
from sklearn_lrvb.mixtures.prediction import (
    most_probable_components,
    responsibilities_of_rows,
    score_sums,
    scores_of_rows,
)
from sklearn_lrvb.mixtures.uncertainty.leave_one_out import leverages, responsibility_deviations


class PredictionMethods(FittedState):
    """Methods of mixture estimators that predict and score rows."""

    def predict(self, X: ArrayLike) -> NDArray[np.intp]:
        """Most probable component of every row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), Dask collection or source of batches
            Any rows; float64 or float32, with NaN where a value is missing.

        Returns
        -------
        labels : ndarray or Dask array of shape (n_samples,)
            Indices of components, from 0; -1 for noise.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            The estimator is not fitted.
        ValueError
            On bad input.

        See Also
        --------
        predict_proba : How sure the labels are.
        partition_posterior : Clusters of the training rows, where parameters are uncertain too.

        Examples
        --------
        Is a wait of 50 minutes, or one of 90, short (0) or long (1)?

        >>> import numpy as np
        >>> from sklearn_lrvb import LRVBGaussianMixture
        >>> X = np.array([[79, 54, 74, 62, 85, 55, 88, 85, 51, 85,
        ...                54, 84, 78, 47, 83, 52, 62, 84, 52, 79]]).T  # minutes
        >>> mixture = LRVBGaussianMixture(n_components=2, random_state=0).fit(X)
        >>> mixture.predict([[50], [90]])
        array([0, 1])
        """
        fitted = self._fitted
        return most_probable_components(self._given_rows(X, None, fitted), fitted.posterior)

    def predict_proba(
        self,
        X: ArrayLike,
        *,
        return_std: bool = False,
    ) -> NDArray[np.float64] | tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Probabilities of the components for every row: the responsibilities of the E-step.

        With `noise` the last column is the probability that the row is noise.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), Dask collection or source of batches
            Any rows; float64 or float32, with NaN where a value is missing.

        return_std : bool, default=False
            Whether to return posterior standard deviations too.

        Returns
        -------
        responsibilities : ndarray or Dask array of shape (n_samples, n_components), or with noise one more
            Each row sums to one.

        std : ndarray or Dask array of that shape
            Posterior standard deviation of each probability, because the parameters are uncertain: by linear
            response and the delta method (theory page "Influence", leverage). To first order, it may exceed
            one half where a probability is very uncertain. Only if `return_std`.

        Raises
        ------
        ValueError
            On bad input; or, with `return_std`, where the fit is no strict local optimum or fitted
            attributes were changed since.

        See Also
        --------
        predict : Most probable component.
        score_samples : How probable the rows are.

        Examples
        --------
        A wait of 50 minutes is short. One of 68 minutes may be either, and its probability is itself
        uncertain, because twenty rows leave open where the clusters end:

        >>> import numpy as np
        >>> from sklearn_lrvb import LRVBGaussianMixture
        >>> X = np.array([[79, 54, 74, 62, 85, 55, 88, 85, 51, 85,
        ...                54, 84, 78, 47, 83, 52, 62, 84, 52, 79]]).T  # minutes
        >>> mixture = LRVBGaussianMixture(n_components=2, random_state=0).fit(X)
        >>> responsibilities, std = mixture.predict_proba([[50], [68]], return_std=True)
        >>> print(responsibilities[:, 0].round(2), "+-", std[:, 0].round(2))
        [1.   0.64] +- [0.   0.29]
        """
        fitted = self._fitted
        rows = self._given_rows(X, None, fitted)
        responsibilities = responsibilities_of_rows(rows, fitted.posterior)
        if not return_std:
            return responsibilities
        shape = (fitted.posterior.n_labels,)
        return responsibilities, self._of_rows("predict_proba", rows, responsibility_deviations, shape)

    def _likelihood(self, X, sample_weight):
        """Log likelihood of rows, and the numbers of free parameters and of rows: three floats."""
        raise NotImplementedError

    def aic(self, X: ArrayLike, *, sample_weight: ArrayLike | None = None) -> float:
        """Akaike's information criterion, as of scikit-learn's `GaussianMixture`: the smaller, the better.

        -2 log L + 2 p, with p free parameters and L the likelihood at its maximum next to the fit, as in
        other programs: from the fit on one climbs without the prior. (Of Gaussian mixtures to the optimum
        under ``prior="flat"``, at which the criterion is a little larger.) Components without rows take no
        part. `lower_bound_` and `number_of_clusters` compare numbers of components with the prior.

        Parameters
        ----------
        X : array-like or table of shape (n_samples, n_features), Dask collection or source of batches
            The training rows.

        sample_weight : array-like of shape (n_samples,) or Dask collection, default=None
            Their weights in the fit.

        Returns
        -------
        aic : float

        Raises
        ------
        ValueError
            On bad input; with noise; or where the likelihood has no maximum, because a component falls to one
            row, or a standard deviation to zero.

        Examples
        --------
        Waits for a geyser, in minutes, fall into two clusters rather than one:

        >>> import numpy as np
        >>> from sklearn_lrvb import LRVBGaussianMixture
        >>> X = np.array([[79, 54, 74, 62, 85, 55, 88, 85, 51, 85,
        ...                54, 84, 78, 47, 83, 52, 62, 84, 52, 79]]).T  # minutes
        >>> one, two = (LRVBGaussianMixture(n_components=k, random_state=0).fit(X) for k in (1, 2))
        >>> print(f"{one.aic(X):.0f} {two.aic(X):.0f}")
        166 155
        """
        log_likelihood, n_free, _ = self._likelihood(X, sample_weight)
        return float(-2.0 * log_likelihood + 2.0 * n_free)

    def bic(self, X: ArrayLike, *, sample_weight: ArrayLike | None = None) -> float:
        """Schwarz' (Bayesian) information criterion, as of `GaussianMixture`: the smaller, the better.

        -2 log L + p log N. L and p are those of :meth:`aic`; N is the number of rows, or the sum of their
        weights.

        Parameters
        ----------
        X : array-like or table of shape (n_samples, n_features), Dask collection or source of batches
            The training rows.

        sample_weight : array-like of shape (n_samples,) or Dask collection, default=None
            Their weights in the fit.

        Returns
        -------
        bic : float

        Raises
        ------
        ValueError
            As :meth:`aic`.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn_lrvb import LRVBGaussianMixture
        >>> X = np.array([[79, 54, 74, 62, 85, 55, 88, 85, 51, 85,
        ...                54, 84, 78, 47, 83, 52, 62, 84, 52, 79]]).T  # minutes
        >>> one, two = (LRVBGaussianMixture(n_components=k, random_state=0).fit(X) for k in (1, 2))
        >>> print(f"{one.bic(X):.0f} {two.bic(X):.0f}")
        168 160
        """
        log_likelihood, n_free, n_rows = self._likelihood(X, sample_weight)
        return float(-2.0 * log_likelihood + np.log(n_rows) * n_free)

    def score_samples(
        self,
        X: ArrayLike,
        *,
        return_std: bool = False,
    ) -> NDArray[np.float64] | tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Log-likelihood of every row under the fit, as in scikit-learn.

        It is the logarithm of the sum over the components, and noise if there is any, of exp(expected log
        weight + expected log density). Of rows with missing values it is that of the values that are there.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), Dask collection or source of batches
            Any rows; float64 or float32, with NaN where a value is missing.

        return_std : bool, default=False
            Whether to return posterior standard deviations too.

        Returns
        -------
        log_likelihood : ndarray or Dask array of shape (n_samples,)
            In nats.

        std : ndarray or Dask array of shape (n_samples,)
            Posterior standard deviations of these, in nats, by linear response and the delta method: square
            roots of the :meth:`leverage`. Only if `return_std`.

        Raises
        ------
        ValueError
            On bad input; or, with `return_std`, where the fit is no strict local optimum or fitted
            attributes were changed since.

        See Also
        --------
        score : Their mean.
        loo_score_samples : Scores of training rows under the fit to the others.
        leverage : The squares of `std`.

        Examples
        --------
        A wait of 110 minutes is much less probable than one of 80; how much less is uncertain:

        >>> import numpy as np
        >>> from sklearn_lrvb import LRVBGaussianMixture
        >>> X = np.array([[79, 54, 74, 62, 85, 55, 88, 85, 51, 85,
        ...                54, 84, 78, 47, 83, 52, 62, 84, 52, 79]]).T  # minutes
        >>> mixture = LRVBGaussianMixture(n_components=2, random_state=0).fit(X)
        >>> log_likelihood, std = mixture.score_samples([[80], [110]], return_std=True)
        >>> print(log_likelihood.round(1), "+-", std.round(1))
        [ -3.6 -12.6] +- [0.3 3.9]
        """
        fitted = self._fitted
        rows = self._given_rows(X, None, fitted)
        scores = scores_of_rows(rows, fitted.posterior)
        if not return_std:
            return scores
        return scores, np.sqrt(self._of_rows("score_samples", rows, leverages))

    def score(self, X: ArrayLike, y: object = None, sample_weight: ArrayLike | None = None) -> float:
        """Mean of :meth:`score_samples`, weighted where weights are given, over rows that have a value.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), Dask collection or source of batches
            Any rows; float64 or float32, with NaN where a value is missing.

        y : Ignored
            Present for API consistency by convention. Weights are no `y`: pass them as `sample_weight`, by
            name. A warning says so where `y` looks like weights.

        sample_weight : array-like of shape (n_samples,) or Dask collection, default=None
            How often each row counts, non-negative.

        Returns
        -------
        log_likelihood : float
            In nats per row.

        Raises
        ------
        ValueError
            On bad input.

        See Also
        --------
        score_samples : The score of every row.
        loo_score_samples : Their mean is a fair score of the training rows.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn_lrvb import LRVBGaussianMixture
        >>> X = np.array([[79, 54, 74, 62, 85, 55, 88, 85, 51, 85,
        ...                54, 84, 78, 47, 83, 52, 62, 84, 52, 79]]).T  # minutes
        >>> mixture = LRVBGaussianMixture(n_components=2, random_state=0).fit(X)
        >>> print(f"{mixture.score(X):.2f} nats per row")
        -3.93 nats per row
        >>> np.isclose(mixture.score(X), mixture.score_samples(X).mean()).item()
        True
        """
        warn_of_weights_as_y(y, sample_weight)
        fitted = self._fitted
        # Rows of weight zero are left out: their scores may be minus infinity. So are rows without any value.
        rows = self._given_rows(X, sample_weight, fitted).counted()
        return score_sums(rows, fitted.posterior) / rows.total_weight
