"""A transformer that fills missing values by a Gaussian mixture."""

from __future__ import annotations

import functools
import warnings
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin, _fit_context, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.impute import MissingIndicator
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import HasMethods, MissingValues
from sklearn.utils.validation import (
    _check_feature_names_in,
    assert_all_finite,
    check_is_fitted,
    validate_data,
)

from sklearn_lrvb.estimators.gaussian_mixture import LRVBGaussianMixture
from sklearn_lrvb.rows import rows_of_array
from sklearn_lrvb.rows.given_rows import as_numbers, checked_weights

# Of the default mixture, an upper bound under its prior. Its precision is shared: on most real tables
# (`benchmarks.accuracy.imputation`), filled values then had smaller errors than with a precision for each
# component.
_N_COMPONENTS = 5
_MAX_ITER = 500  # Columns that predict each other well take hundreds of steps, and are filled better then.

# Weights of the default prior of the precision, in rows for every column. Where there are two rows for every
# column, values that an estimate fills which is not drawn to uncorrelated columns are worse than means.
_SHRINKAGES = (1 / 16, 1 / 4, 1.0, 4.0)
_STEPS_TO_COMPARE = 10  # Of the fits by which one is chosen, whose bounds then hardly change.


class MixtureImputer(TransformerMixin, BaseEstimator):
    """Fill missing values by a Bayesian Gaussian mixture, in the place of KNNImputer or IterativeImputer.

    A mixture is fitted to all that is there, and every missing value is filled by its mean given the values
    of its row that are there: a regression on the other columns, and on the cluster that they speak for.

    Parameters
    ----------
    mixture : LRVBGaussianMixture or None, default=None
        The mixture to fit, which is cloned. None takes up to five clusters of their own means, whose number
        the fit chooses, with one regression on the other columns that all share ("tied"). The prior of its
        precision draws it towards uncorrelated columns, with a weight of 1/16, 1/4, one or four rows for
        every column: the one that makes the lower bound of a single component largest. With a mixture of
        ``covariance_type="full"`` each cluster has a regression of its own, which pays where clusters have
        many rows and different shapes.

    missing_values : float, default=nan
        The number that stands for a missing value.

    sample_posterior : bool, default=False
        Whether to fill in a draw in place of the mean: of parameters, component and value, in this order.
        Transforming several times then gives proper multiple imputations.

    random_state : int, RandomState instance or None, default=None
        Seed of the draws, and of the default mixture.

    add_indicator : bool, default=False
        Whether to append a column of zeros and ones for every column that had missing values in :meth:`fit`.

    keep_empty_features : bool, default=False
        What becomes of columns without any value in :meth:`fit`: dropped, or filled with zeros.

    Attributes
    ----------
    mixture_ : LRVBGaussianMixture
        The fitted mixture, of the columns that have values: with error bars and all.
    indicator_ : sklearn.impute.MissingIndicator or None
        Which columns get an indicator; None without `add_indicator`.
    random_state_ : numpy.random.RandomState
        The generator of draws, which goes on from one :meth:`transform` to the next.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of str
        Their names, where X has any.

    See Also
    --------
    LRVBGaussianMixture.impute : Means with standard deviations.
    LRVBGaussianMixture.sample_imputations : Several completed copies at once.

    Notes
    -----
    Values have to be missing at random. Standardize columns first, as for KNNImputer (scikit-learn's scalers
    pass missing values through). Statistics of filled columns are biased, as with every single imputation: to
    estimate from rows with missing values, fit the mixture to them as they are. (Guide "Missing values".)

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_lrvb import MixtureImputer
    >>> X = np.array([[1.0, 2.1], [2.0, 3.9], [3.0, 6.2], [4.0, np.nan], [5.0, 9.9], [np.nan, 12.1]])
    >>> MixtureImputer(random_state=0).fit_transform(X).round(1)
    array([[ 1. ,  2.1],
           [ 2. ,  3.9],
           [ 3. ,  6.2],
           [ 4. ,  8.2],
           [ 5. ,  9.9],
           [ 5.8, 12.1]])
    """

    _parameter_constraints: dict = {
        "mixture": [None, HasMethods(["fit", "impute", "sample_imputations"])],
        "missing_values": [MissingValues(numeric_only=True)],
        "sample_posterior": ["boolean"],
        "random_state": ["random_state"],
        "add_indicator": ["boolean"],
        "keep_empty_features": ["boolean"],
    }

    def __init__(
        self,
        mixture=None,
        *,
        missing_values=np.nan,
        sample_posterior=False,
        random_state=None,
        add_indicator=False,
        keep_empty_features=False,
    ):
        self.mixture = mixture
        self.missing_values = missing_values
        self.sample_posterior = sample_posterior
        self.random_state = random_state
        self.add_indicator = add_indicator
        self.keep_empty_features = keep_empty_features

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: ArrayLike, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the mixture.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, in memory.

        y : Ignored
            Present for API consistency by convention. Weights are no `y`: pass them as `sample_weight`, by
            name.

        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts.

        Returns
        -------
        self : MixtureImputer
            The fitted imputer.

        Raises
        ------
        ValueError
            On bad input, as `fit` of the mixture.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn_lrvb import MixtureImputer
        >>> imputer = MixtureImputer(random_state=0).fit([[1.0, 2.1], [2.0, 3.9], [3.0, np.nan], [4.0, 8.0]])
        >>> imputer.mixture_.n_components
        4
        """
        rows, is_missing = self._checked(X, reset=True)
        has_values = ~is_missing.all(axis=0)
        columns = rows[:, has_values]
        if self.mixture is None:
            mixture = _default_mixture(columns, sample_weight, self.random_state)
        else:
            mixture = clone(self.mixture)
        if has_values.any():
            mixture._validate_params()
            mixture._fit(
                columns, sample_weight
            )  # Not `fit`, which warns of columns that mislead about clusters.
        self.indicator_ = None
        if self.add_indicator:
            gaps = np.where(is_missing, np.nan, 0.0)
            self.indicator_ = MissingIndicator(error_on_new=False).fit(gaps)
        self.random_state_ = check_random_state(self.random_state)
        self.mixture_, self._has_values = mixture, has_values
        return self

    def transform(self, X: ArrayLike) -> NDArray[np.floating]:
        """Fill the missing values.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Any rows, in memory. A row without any value gets the mean of the mixture.

        Returns
        -------
        X : ndarray or data frame of shape (n_samples, n_features_out)
            Float64 or float32, as X. A column that has a missing value here and had none in :meth:`fit` is
            filled, too.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            The imputer is not fitted.
        ValueError
            On bad input.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn_lrvb import MixtureImputer
        >>> X = [[1.0, 2.1], [2.0, 3.9], [3.0, 6.2], [4.0, 8.0], [5.0, 9.9]]
        >>> MixtureImputer(random_state=0).fit(X).transform([[6.0, np.nan]]).round(1)
        array([[ 6. , 11.8]])
        """
        check_is_fitted(self)
        rows, is_missing = self._checked(X, reset=False)
        filled = rows[:, self._has_values]
        if filled.shape[1] and np.isnan(filled).any():
            if self.sample_posterior:
                filled = self.mixture_.sample_imputations(
                    filled, n_imputations=1, random_state=self.random_state_
                )[0]
            else:
                filled = self.mixture_.impute(filled)
        if self.keep_empty_features:
            values = np.zeros_like(rows)
            values[:, self._has_values] = filled
            filled = values
        if self.indicator_ is None:
            return filled
        return np.hstack([filled, self.indicator_.transform(np.where(is_missing, np.nan, 0.0))])

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[np.object_]:
        """Names of the columns of :meth:`transform`.

        Parameters
        ----------
        input_features : array-like of str or None, default=None
            Names of the columns of X; None takes those seen in :meth:`fit`, or x0, x1, ...

        Returns
        -------
        feature_names_out : ndarray of str
            Those of indicators begin with ``"missingindicator_"``.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn_lrvb import MixtureImputer
        >>> imputer = MixtureImputer(add_indicator=True, random_state=0)
        >>> imputer.fit([[1.0, 2.1], [2.0, 3.9], [3.0, np.nan], [4.0, 8.0]]).get_feature_names_out()
        array(['x0', 'x1', 'missingindicator_x1'], dtype=object)
        """
        check_is_fitted(self)
        names = _check_feature_names_in(self, input_features)
        kept = names if self.keep_empty_features else names[self._has_values]
        if self.indicator_ is None:
            return kept
        return np.concatenate([kept, self.indicator_.get_feature_names_out(names)])

    def _checked(self, X, reset):
        """X as array of floats with NaN where a value is missing, and where that is: bool array."""
        # A user's marker of missing values may be any number, but then NaN is a mistake.
        marked_by_nan = np.isnan(self.missing_values)
        check = functools.partial(
            validate_data,
            self,
            dtype=[np.float64, np.float32],
            ensure_all_finite=False,
            reset=reset,
            copy=not marked_by_nan,
        )
        rows = as_numbers(X, check, self.missing_values)
        assert_all_finite(rows, allow_nan=marked_by_nan, estimator_name=type(self).__name__, input_name="X")
        is_missing = np.isnan(rows) if marked_by_nan else rows == self.missing_values
        if not marked_by_nan:
            rows[is_missing] = np.nan
        return rows, is_missing

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = bool(np.isnan(self.missing_values))
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _default_mixture(columns, sample_weight, random_state):
    """The mixture to fit where none is given, under the prior that suits a single component best."""
    parameters = {"covariance_type": "tied", "reg_covar": 0.0, "prior": "fixed"}
    n_rows, n_columns = columns.shape
    prior = {}
    if columns.size:
        rows = rows_of_array(columns, None, sample_weight=checked_weights(sample_weight, columns)).counted()
        n_rows = rows.n_samples
        with np.errstate(over="ignore", invalid="ignore"):  # The fit refuses such columns, by name.
            rows = rows.around_mean()
            # A column with a single value varies by its rounding.
            variances = np.maximum(rows.variances, np.square(np.finfo(float).eps * rows.origin))
        # A column of zeros has no unit: any other column's is as good.
        least = np.square(np.finfo(float).eps) * (variances.max() or 1.0)
        variances = np.where(variances > 0, variances, least)
        priors = [
            {
                "covariance_prior": np.diag(share * n_columns * variances),
                "degrees_of_freedom_prior": (1.0 + share) * n_columns,
            }
            for share in _SHRINKAGES
        ]

        def bound(prior):
            single = LRVBGaussianMixture(max_iter=_STEPS_TO_COMPARE, **parameters, **prior)
            single._fit(columns, sample_weight)
            return single.lower_bound_

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            prior = max(priors, key=bound)
    return LRVBGaussianMixture(
        n_components=min(_N_COMPONENTS, n_rows),
        max_iter=_MAX_ITER,
        moves="merge",
        random_state=random_state,
        **parameters,
        **prior,
    )
