"""Effects of rows and of the prior on the posterior: methods of `LRVBGaussianMixture` alone.

They check their arguments here (`arguments`) and compute in `uncertainty`.
"""

from collections.abc import Callable
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_lrvb.gaussian_mixture.conclusions import (
    Optimum,
    RivalConclusion,
    check_rival,
    checked_conclusion,
)
from sklearn_lrvb.gaussian_mixture.deciding_rows import MOST_REFITS, DecidingRows, GreedySearch
from sklearn_lrvb.gaussian_mixture.fitted import FittedAttributes
from sklearn_lrvb.gaussian_mixture.uncertainty.prior_sensitivity import prior_sensitivity
from sklearn_lrvb.mixtures.estimator.influence_methods import InfluenceMethods
from sklearn_lrvb.mixtures.uncertainty.row_effects import SingleRows, WholeGroups
from sklearn_lrvb.row_blocks import blas_threads, row_groups


class GaussianInfluenceMethods(InfluenceMethods, FittedAttributes):
    """Methods of `LRVBGaussianMixture` about the influence of rows and of the prior."""

    def deciding_rows(
        self,
        X: ArrayLike,
        conclusion: str | Callable[[Any], float] | None = None,
        threshold: float = 0.0,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        interval: float | None = None,
        rival: Any = None,
        max_share: float = 0.1,
    ) -> DecidingRows:
        """The fewest rows without which a conclusion changes, as far as a search finds them.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), Dask collection or source of batches
            The training rows.

        conclusion : str or callable, default=None
            The number that is compared with the threshold: a name of ``posterior_summary().index``, such as
            "weight[0]", for the value in the fit; a difference of two, such as "mean[1,x0] - mean[0,x0]"; or
            a smooth function of the fitted mixture (of `predict_proba`, not of `predict`) that returns a
            number. It is called with copies of the mixture that have other `weights_`, `means_`,
            `covariances_`, `precisions_` and `lower_bound_`. They predict, but have no error bars.

        threshold : float, default=0.0
            The conclusion is that the number is on the side of the threshold where it is in the fit.

        sample_weight : array-like of shape (n_samples,) or Dask collection, default=None
            The weights of X in the fit, where there were any. A row is left out with all its weight.

        groups : array-like of shape (n_samples,) or Dask collection, default=None
            Labels of rows that belong together, such as patients. Whole groups are then left out, and the
            search is for the fewest groups.

        interval : float, default=None
            With a name: probability of a credible interval, the estimate plus or minus standard deviations by
            linear response. (Those of `posterior_summary` may be skewed, and so differ a little.) The
            conclusion is that it excludes the threshold, or that it contains it.

        rival : LRVBGaussianMixture, default=None
            In place of a conclusion: a fit to the same rows with another number of components. The conclusion
            is which has the higher lower bound, of one labelling each. (With Dirichlet weights
            ``threshold=log(L! / K!)`` compares all labellings of K with those of L components of the rival.)

        max_share : float, default=0.1
            Largest share of the rows that may be left out, by weight, below 1.

        Returns
        -------
        deciding : DecidingRows
            Displayed as a sentence and numbers. Every step of the search is confirmed by a refit under the
            prior of the fit. A smaller set may exist; and if none is found, there may still be one.

        Raises
        ------
        ValueError
            On bad input, an unknown name, a function that fails or returns no finite number, a number that
            equals the threshold, a rival with another prior or other arguments, X that is not what the
            mixture was fitted to, fitted arrays that were changed since, or a fit that is no strict local
            optimum.

        See Also
        --------
        influence : What every row does to a parameter, to first order.
        leverage : How much the whole fit depends on a row.

        Examples
        --------
        More than half of the waits for a geyser are long. Without how many rows is that not so? One:

        >>> import numpy as np
        >>> from sklearn_lrvb import LRVBGaussianMixture
        >>> X = np.array([[79, 54, 74, 62, 85, 55, 88, 85, 51, 85,
        ...                54, 84, 78, 47, 83, 52, 62, 84, 52, 79]]).T  # minutes
        >>> mixture = LRVBGaussianMixture(n_components=2, random_state=0).fit(X)
        >>> mixture.deciding_rows(X, "weight[1] - weight[0]")
        DecidingRows: 1 of 20 rows (5 %) decides whether weight[1] - weight[0] is above 0:
          without that row it is -0.012, with all rows 0.037.
          rows                     6
          with all rows            0.037
          without them, predicted  -0.0093
          without them, refitted   -0.012
          enough by first order    1
          refits                   2
        """
        _ = self._uncertainty  # It must have been fitted.
        if not isinstance(threshold, Real) or not np.isfinite(threshold):
            raise ValueError(f"threshold must be a finite number, got {threshold!r}.")
        if not isinstance(max_share, Real) or not 0.0 < max_share < 1.0:
            raise ValueError(f"max_share must be above 0 and below 1, got {max_share!r}.")
        if (conclusion is None) == (rival is None):
            raise ValueError("Pass a conclusion, or a rival mixture with another n_components, and not both.")
        if rival is None:
            mixtures, number = [self], checked_conclusion(self, conclusion, threshold, interval)
        else:
            check_rival(self, rival, interval)
            mixtures, number = [self, rival], RivalConclusion(self, rival)
        with blas_threads(self.n_jobs):
            given, *others = (
                mixture._given_rows(X, sample_weight, mixture._uncertainty.fitted) for mixture in mixtures
            )
            together, optima = None if groups is None else row_groups(given, groups), []
            for mixture, own in zip(mixtures, (given, *others), strict=True):
                optima.append(Optimum(mixture, own.counted()))
                mixture._uncertainty.source.check_training_rows(optima[-1].rows)
            rows, which = optima[0].rows, np.flatnonzero(given.which_count())
            units = SingleRows(rows, which) if together is None else WholeGroups(rows, which, together)
            search = GreedySearch(number, optima, float(threshold), units, max_share)

            def question(tracked):
                for _ in tracked(search.steps(), MOST_REFITS):
                    pass
                return search.result()

            return self._tracked("deciding_rows", question)

    def prior_sensitivity(
        self, target: str = "means", per_std: bool = False
    ) -> dict[str, NDArray[np.float64]]:
        """How much each hyperparameter moves each posterior mean: d E[target] / d hyperparameter.

        Parameters
        ----------
        target : {'log_weights', 'weights', 'means', 'precisions', 'covariances', 'scales', 'tails', \
                'log_tails'}, default='means'
            Which parameters are moved; for 'covariances' the attribute `covariances_`. With `tails` also
            'scales', and 'tails' and 'log_tails' where they are fitted.

        per_std : bool, default=False
            Whether to divide by the posterior standard deviation of the entry. Where that is zero, as for the
            weight of a single component, the derivative is zero too, and zero is reported.

        Returns
        -------
        sensitivity : dict of ndarray
            In units of the target (or of its standard deviation) per unit of the hyperparameter:

            * 'weight_concentration_prior', 'mean_precision_prior', 'degrees_of_freedom_prior', each of the
              shape of the attribute, of weights and log weights (n_components,), with `noise` one more, whose
              last entry is for noise;
            * 'mean_prior', with one more axis of length n_features;
            * 'covariance_prior', with the axes of `covariance_prior_` after those of the attribute: for
              matrices the symmetric gradient, so that a small symmetric change of `covariance_prior` moves
              an entry by the sum of the gradient times the change.

            Exact derivatives of the fit, the response of the responsibilities included, without refitting. X,
            the densities of noise (also of rows with holes, whose ratios follow from `covariance_prior`)
            and the other hyperparameters are held fixed, also where their defaults came from X;
            'weight_concentration_prior' sets the prior of the weight of noise too. (Theory page "Influence",
            sensitivity to the prior.)

        Raises
        ------
        ValueError
            Unknown target, ``prior="flat"``, fitted arrays that were changed since the fit, or a fit that is
            no strict local optimum.
        MemoryError
            The derivatives in `covariance_prior` would take more than 1.6 GB.

        See Also
        --------
        influence : The same question about rows.
        posterior_summary : A sentence on whether the prior matters.

        Examples
        --------
        If the prior expected waits for a geyser to be a minute longer, the means of the short and the long
        ones would be 0.20 and 0.12 minutes longer, 0.06 standard deviations each:

        >>> import numpy as np
        >>> from sklearn_lrvb import LRVBGaussianMixture
        >>> X = np.array([[79, 54, 74, 62, 85, 55, 88, 85, 51, 85,
        ...                54, 84, 78, 47, 83, 52, 62, 84, 52, 79]]).T  # minutes
        >>> mixture = LRVBGaussianMixture(n_components=2, random_state=0).fit(X)
        >>> mixture.prior_sensitivity()["mean_prior"].ravel().round(2)
        array([0.2 , 0.12])
        >>> mixture.prior_sensitivity(per_std=True)["mean_prior"].ravel().round(2)
        array([0.06, 0.06])
        """
        return prior_sensitivity(self._uncertainty, target, per_std)
