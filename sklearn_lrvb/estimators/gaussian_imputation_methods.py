"""Missing values given those that are there: methods of `LRVBGaussianMixture`.

They check their arguments here (`arguments`) and compute in `uncertainty` and `posterior_sampling`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from sklearn_lrvb.estimators.arguments import checked_number, checked_targets, holding, table_like
from sklearn_lrvb.estimators.gaussian_fitted import FittedAttributes
from sklearn_lrvb.gaussian.answers.imputation import imputation_deviations, imputed
from sklearn_lrvb.gaussian.sampling.likelihood import imputations
from sklearn_lrvb.reports import required_pandas
from sklearn_lrvb.rows import require_table
from sklearn_lrvb.sampling.sampler import PosteriorSampler

if TYPE_CHECKING:
    import pandas as pd


class ImputationMethods(FittedAttributes):
    """Methods of `LRVBGaussianMixture` about missing values."""

    def impute(
        self,
        X: ArrayLike,
        *,
        return_std: bool = False,
    ) -> NDArray[np.floating] | tuple[NDArray[np.floating], NDArray[np.float64]]:
        """Fill missing values by their posterior means, given the values of the row that are there.

        Rows that are noise are filled as if they belonged to the components.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), Dask collection or source of batches
            Any rows, with NaN where a value is missing.

        return_std : bool, default=False
            Whether to return standard deviations too.

        Returns
        -------
        imputed : ndarray, data frame or Dask array of shape (n_samples, n_features)
            X with its missing values filled, in its units; a data frame where X is one in memory.

        std : ndarray, data frame or Dask array of shape (n_samples, n_features)
            Posterior standard deviations of the missing values, which are uncertain because the row's
            component is, because components are wide, and because the parameters are uncertain; zero where a
            value is there. Only if `return_std`.

        Raises
        ------
        ValueError
            On bad input; or, with `return_std`, where the fit is no strict local optimum or fitted
            attributes were changed since.

        See Also
        --------
        sample_imputations : Completed copies, for whatever is computed from them.
        MixtureImputer : The same as a transformer.

        Notes
        -----
        Means are too smooth to compute anything from but means: the filled values vary less than true ones
        would. Noise has no distribution of missing values: with noise, rows are filled as if they belonged to
        the clusters, in proportion to their probabilities. (Theory page "Missing values".)

        Examples
        --------
        Minutes that an eruption of a geyser lasted, and minutes until the next one. How long to wait after
        one of two minutes, and how long did the one before a wait of 80 minutes last?

        >>> import numpy as np
        >>> from sklearn_lrvb import LRVBGaussianMixture
        >>> lasted = [3.6, 1.8, 3.3, 2.3, 4.5, 2.9, 4.7, 3.6, 2.0, 4.4, 1.8, 3.9, 4.2, 1.8, 4.7]
        >>> waited = [79, 54, 74, 62, 85, 55, 88, 85, 51, 85, 54, 84, 78, 47, 83]
        >>> X = np.column_stack([lasted, waited])
        >>> mixture = LRVBGaussianMixture(n_components=2, random_state=0).fit(X)
        >>> imputed, std = mixture.impute([[2.0, np.nan], [np.nan, 80.0]], return_std=True)
        >>> print(imputed.round(1))
        [[ 2.  53.4]
         [ 3.9 80. ]]
        >>> print(std.round(1))
        [[0.  5.9]
         [0.4 0. ]]
        """
        fitted = self._fitted
        rows = self._given_rows(X, None, fitted)
        values = imputed(rows, fitted.posterior)
        if not return_std:
            return table_like(X, values)
        std = self._of_rows("impute", rows, imputation_deviations, (rows.n_features,))
        return table_like(X, values), table_like(X, std)

    def missing_information(
        self,
        X: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        target: str | Sequence[str] = ("weights", "means", "precisions"),
        min_count: float = 0.0,
    ) -> pd.DataFrame:
        """Share of the information on every parameter that is missing: to unknown labels, and to holes in X.

        With `tails` the unknown scales of the rows are counted with the labels.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), Dask collection or source of batches
            The training rows.

        sample_weight : array-like of shape (n_samples,) or Dask collection, default=None
            The weights of X in the fit, where there were any.

        target : {'log_weights', 'weights', 'means', 'precisions', 'standard_deviations', 'correlations', \
                'covariances', 'scales', 'tails', 'log_tails', 'all'} or a list, \
                default=('weights', 'means', 'precisions')
            Which parameters, as in :meth:`posterior_summary`.

        min_count : float, default=0.0
            Parameters of components with fewer expected rows are left out.

        Returns
        -------
        shares : pandas.DataFrame
            A row for every parameter, by names as in `posterior_names_`, and the columns

            * missing: 1 - V_c / V, with V the posterior variance by linear response and V_c what it would be
              if the component (with `tails` also the scale) of every row and all values were known: 0.2 says
              that error bars are as wide as those from complete data with a fifth fewer rows.
            * to_labels, to_holes: its two parts. The first is lost to labels alone (with `tails` to labels
              and scales, also where there is one component), the second is what holes add to that.

        Raises
        ------
        ImportError
            pandas is not installed.
        ValueError
            Unknown target, `min_count` outside its range, X that is not what was fitted, fitted arrays that
            were changed since the fit, or a fit that is no strict local optimum.
        MemoryError
            The system is too large; the message names the size and the way out.

        See Also
        --------
        posterior_summary : The error bars themselves.

        Notes
        -----
        It is the fraction of missing information of multiple imputation, without imputations.

        Examples
        --------
        Twenty waiting times for a geyser, in minutes. The clusters of a few rows are in doubt. More
        information is lost on the clusters' variances than on their means:

        >>> import numpy as np
        >>> from sklearn_lrvb import LRVBGaussianMixture
        >>> X = np.array([[79, 54, 74, 62, 85, 55, 88, 85, 51, 85,
        ...                54, 84, 78, 47, 83, 52, 62, 84, 52, 79]]).T  # minutes
        >>> mixture = LRVBGaussianMixture(n_components=2, random_state=0).fit(X)
        >>> shares = mixture.missing_information(X)["missing"]
        >>> print(", ".join(f"{name} {share:.2f}" for name, share in shares.items() if "[1" in name))
        weight[1] 0.08, mean[1,x0] 0.06, precision[1,x0,x0] 0.16
        """
        uncertainty = self._uncertainty
        names = checked_targets(target, uncertainty.targets.table, uncertainty.targets.parameters)
        holding(uncertainty.targets.posterior.counts, min_count)
        pd = required_pandas("missing_information")
        rows = self._given_rows(X, sample_weight, uncertainty.fitted).counted()
        parts = []
        for name, (missing, to_holes) in zip(names, uncertainty.missing_shares(names, rows), strict=True):
            columns = {"missing": missing, "to_labels": missing - to_holes, "to_holes": to_holes}
            held = uncertainty.targets[name].counts() >= min_count
            parts.append(pd.DataFrame(columns, uncertainty.targets[name].labels(self._feature_names))[held])
        return pd.concat(parts)

    def sample_imputations(
        self,
        X: ArrayLike,
        *,
        n_imputations: int = 5,
        random_state: int | np.random.RandomState | None = None,
    ) -> NDArray[np.floating] | list:
        """Completed copies of X, whose missing values are drawn from their posterior.

        Compute what you want to know from every copy. The average is the estimate, and the spread between
        copies is what the missing values add to its error (Rubin's rules of multiple imputation).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Any rows, in memory, with NaN where a value is missing.

        n_imputations : int, default=5
            Number of copies, at least one.

        random_state : int, RandomState instance or None, default=None
            Seed of the draws; None uses numpy's global generator. The estimator's own `random_state` is not
            used.

        Returns
        -------
        copies : ndarray of shape (n_imputations, n_samples, n_features), or list of data frames
            In the units of X; a list of data frames where X is one.

        Raises
        ------
        ValueError
            `n_imputations` is not a positive integer; X is not in memory, or is bad input; fitted arrays were
            changed since the fit, or the fit is no strict local optimum.
        MemoryError
            The system is too large; the message names the size and the way out.

        See Also
        --------
        impute : Means and standard deviations of the missing values.
        sample_posterior : Draws of the parameters.

        Notes
        -----
        Every copy has its own draw of weights, means and precisions by linear response
        (:meth:`sample_posterior` with ``method="lrvb"``). It then draws the component of every row and its
        missing values given the parameters: the imputations are proper. With noise, the component is drawn as
        if no row were noise, which has no distribution of missing values.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn_lrvb import LRVBGaussianMixture
        >>> X = np.array([[79, 54, 74, 62, 85, 55, 88, 85, 51, 85,
        ...                54, 84, 78, 47, 83, 52, 62, 84, 52, 79]]).T  # minutes
        >>> mixture = LRVBGaussianMixture(n_components=2, random_state=0).fit(X)
        >>> copies = mixture.sample_imputations([[79.0], [np.nan]], n_imputations=1000, random_state=0)
        >>> copies.shape, copies[:, 0].std().item()
        ((1000, 2, 1), 0.0)
        """
        require_table(X, "sample_imputations, which makes several copies of it,")
        sampler = PosteriorSampler(self._uncertainty)
        n_imputations = checked_number(n_imputations, "n_imputations", "imputation")
        rows = self._given_rows(X, None, sampler.fitted)
        random_state = check_random_state(random_state)
        parameters = sampler.draws(n_imputations, random_state)
        copies = self._tracked(
            "sample_imputations", lambda tracked: imputations(rows, parameters, random_state, tracked)
        )
        return [table_like(X, copy) for copy in copies] if hasattr(X, "columns") else copies
