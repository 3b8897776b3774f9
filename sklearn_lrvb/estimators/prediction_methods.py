"""Predictions and scores of rows: methods of mixture estimators."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_lrvb.answers.leave_one_out import responsibility_deviations, score_deviations
from sklearn_lrvb.caller_warnings import warn_caller
from sklearn_lrvb.estimators.answers import LinearResponse, RowQuantity
from sklearn_lrvb.estimators.arguments import checked_method, warn_of_weights_as_y
from sklearn_lrvb.estimators.sampling_methods import SamplingMethods
from sklearn_lrvb.mixture.prediction import (
    most_probable_components,
    responsibilities_of_rows,
    score_sums,
    scores_of_rows,
)
from sklearn_lrvb.sampling import likelihood

_PROBABILITIES = RowQuantity("predict_proba", responsibility_deviations, likelihood.probabilities)
_SCORES = RowQuantity("score_samples", score_deviations, likelihood.scores)


class PredictionMethods(SamplingMethods):
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
        method: str = "auto",
    ) -> NDArray[np.float64] | tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Probabilities of the components for every row: the responsibilities of the E-step.

        With `noise` the last column is the probability that the row is noise.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), Dask collection or source of batches
            Any rows; float64 or float32, with NaN where a value is missing.

        return_std : bool, default=False
            Whether to return posterior standard deviations too.

        method : {'auto', 'lrvb', 'exact'}, default='auto'
            How standard deviations are computed. 'lrvb': by linear response, at once. 'exact': over draws of
            the exact posterior. 'auto': as :meth:`posterior_summary`, the first where a check calls it good,
            else the second, unless that takes more than about a minute. Check and draws are kept.

        Returns
        -------
        responsibilities : ndarray or Dask array of shape (n_samples, n_components), or with noise one more
            Each row sums to one.

        std : ndarray or Dask array of that shape
            Posterior standard deviation of each probability, because the parameters are uncertain: over
            draws, or by linear response and the delta method (theory page "Influence", leverage). To first
            order, it may exceed one half where a probability is very uncertain. Only if `return_std`.

        Raises
        ------
        ValueError
            On bad input; or, with `return_std`, where the fit is no strict local optimum or fitted
            attributes were changed since.

        Warns
        -----
        UserWarning
            With ``method="auto"``, standard deviations are by linear response, and it is not known to be
            good: a fit without its training rows (:meth:`sample_posterior`) cannot check it.

        See Also
        --------
        predict : Most probable component.
        score_samples : How probable the rows are.

        Examples
        --------
        A petal of 3 cm belongs to the larger of two kinds of irises. One of 2.6 cm may be of either, and its
        probability is itself uncertain, because the rows leave open where the clusters end:

        >>> from sklearn.datasets import load_iris
        >>> from sklearn_lrvb import LRVBGaussianMixture
        >>> X = load_iris().data[:, 2:3]  # centimetres
        >>> mixture = LRVBGaussianMixture(n_components=2, random_state=0).fit(X)
        >>> responsibilities, std = mixture.predict_proba([[3.0], [2.6]], return_std=True)
        >>> print(responsibilities[:, 0].round(2), "+-", std[:, 0].round(2))
        [0.96 0.37] +- [0.04 0.2 ]
        """
        fitted, method = self._fitted, checked_method(method)
        rows = self._given_rows(X, None, fitted)
        responsibilities = responsibilities_of_rows(rows, fitted.posterior)
        if not return_std:
            return responsibilities
        shape = (fitted.posterior.n_labels,)
        return responsibilities, self._deviations_of_rows(_PROBABILITIES, rows, method, shape)

    def _deviations_of_rows(self, quantity, rows, method, shape=()):
        """Posterior standard deviations of a `RowQuantity`, by what answers questions about parameters."""
        answer = self._answer(method)
        if method == "auto" and isinstance(answer, LinearResponse) and answer.is_doubtful:
            warn_caller(
                f"{quantity.method}: the standard deviations are by linear response. {answer.note} "
                "(method='lrvb' takes it as it is, without this warning.)"
            )
        return answer.deviations_of_rows(rows, quantity, shape)

    def _likelihood(self, X, sample_weight):
        """Log likelihood of rows, and the numbers of free parameters and of rows: three floats."""
        raise NotImplementedError

    def _likelihood_of_fit(self, X, sample_weight):
        """The same of the training rows, a ValueError where X are others."""
        rows = self._given_rows(X, sample_weight, self._fitted).counted()
        self._uncertainty.source.check_training_rows(rows)
        return self._likelihood(X, sample_weight)

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
            On bad input; if X is not what the mixture was fitted to; with noise; or where the likelihood has
            no maximum, because a component falls to one row, or a standard deviation to zero.

        Examples
        --------
        Waits for a geyser, in minutes, fall into two clusters rather than one:

        >>> import numpy as np
        >>> from sklearn_lrvb import LRVBGaussianMixture
        >>> X = np.array([[79, 54, 74, 62, 85, 55, 88, 85, 51, 85,
        ...                54, 84, 78, 47, 83, 52, 62, 84, 52, 79]]).T  # minutes
        >>> one, two = (LRVBGaussianMixture(n_components=k, random_state=0).fit(X) for k in (1, 2))
        >>> print(f"{one.aic(X):.0f} {two.aic(X):.0f}")
        168 152
        """
        log_likelihood, n_free, _ = self._likelihood_of_fit(X, sample_weight)
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
        170 157
        """
        log_likelihood, n_free, n_rows = self._likelihood_of_fit(X, sample_weight)
        return float(-2.0 * log_likelihood + np.log(n_rows) * n_free)

    def score_samples(
        self,
        X: ArrayLike,
        *,
        return_std: bool = False,
        method: str = "auto",
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

        method : {'auto', 'lrvb', 'exact'}, default='auto'
            How standard deviations are computed, as in :meth:`predict_proba`.

        Returns
        -------
        log_likelihood : ndarray or Dask array of shape (n_samples,)
            In nats.

        std : ndarray or Dask array of shape (n_samples,)
            Posterior standard deviations of these, in nats: over draws, or by linear response and the delta
            method, square roots of the :meth:`leverage`. Only if `return_std`.

        Raises
        ------
        ValueError
            On bad input; or, with `return_std`, where the fit is no strict local optimum or fitted
            attributes were changed since.

        Warns
        -----
        UserWarning
            As :meth:`predict_proba`.

        See Also
        --------
        score : Their mean.
        loo_score_samples : Scores of training rows under the fit to the others.
        leverage : The squares of `std` by linear response.

        Examples
        --------
        A petal of 9 cm is much less probable than one of 5; how much less is uncertain:

        >>> from sklearn.datasets import load_iris
        >>> from sklearn_lrvb import LRVBGaussianMixture
        >>> X = load_iris().data[:, 2:3]  # centimetres
        >>> mixture = LRVBGaussianMixture(n_components=2, random_state=0).fit(X)
        >>> log_likelihood, std = mixture.score_samples([[5.0], [9.0]], return_std=True)
        >>> print(log_likelihood.round(1), "+-", std.round(1))
        [ -1.2 -13. ] +- [0.1 1.7]
        """
        fitted, method = self._fitted, checked_method(method)
        rows = self._given_rows(X, None, fitted)
        scores = scores_of_rows(rows, fitted.posterior)
        if not return_std:
            return scores
        return scores, self._deviations_of_rows(_SCORES, rows, method)

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
