"""LRVBGaussianMixture: its parameters, fitting, prediction, and scikit-learn's contract."""

from __future__ import annotations

import copy
import functools
import itertools
from collections.abc import Sequence
from dataclasses import replace
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import _fit_context, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import BayesianGaussianMixture
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from sklearn_lrvb.caller_warnings import warn_caller
from sklearn_lrvb.estimators import attributes
from sklearn_lrvb.estimators.alternatives import GaussianKind
from sklearn_lrvb.estimators.arguments import (
    checked_number,
    checked_targets,
    holding,
    require_samples,
    table_like,
    warn_of_weights_as_y,
)
from sklearn_lrvb.estimators.base import FEATURES, BayesianMixture
from sklearn_lrvb.estimators.callbacks import Lines, PassReport, Progress, begun_task
from sklearn_lrvb.estimators.fitted import (
    FittedGaussian,
    arrays_to_sample,
    checked_array,
    density_arrays,
    mixture_of_arrays,
    model_of,
)
from sklearn_lrvb.estimators.gaussian_arguments import (
    check_rows,
    core_of_outlying_rows,
    given_responsibilities,
    needs_covariances,
    optional_parts,
    require_clusters,
    resolve_moves,
    resolve_prior,
)
from sklearn_lrvb.estimators.sklearn_conversion import (
    fitted_twin,
    parameters_of,
    posterior_of,
    require_fitted,
)
from sklearn_lrvb.gaussian.answers.doubtful_columns import notes_of_columns
from sklearn_lrvb.gaussian.answers.imputation import imputation_deviations, imputed
from sklearn_lrvb.gaussian.answers.prior_sensitivity import prior_sensitivity
from sklearn_lrvb.gaussian.covariance_structures import COVARIANCE_STRUCTURES
from sklearn_lrvb.gaussian.fitting.completion import Completion
from sklearn_lrvb.gaussian.fitting.far_out import rules_of_far_out
from sklearn_lrvb.gaussian.fitting.noise_cost import costly_noise
from sklearn_lrvb.gaussian.fitting.row_span import AscentInSpan, RowSpan
from sklearn_lrvb.gaussian.fitting.starts import (
    STANDARDIZED_KMEANS,
    Starts,
    kinds_of_starts,
    starting_responsibilities,
)
from sklearn_lrvb.gaussian.model import GAUSSIAN
from sklearn_lrvb.gaussian.sampling.missing_values import imputations
from sklearn_lrvb.mixture.ascent import Ascent
from sklearn_lrvb.mixture.model import DegenerateComponentError, occupied
from sklearn_lrvb.mixture.multi_start import MultiStart
from sklearn_lrvb.mixture.prediction import responsibilities_of_rows
from sklearn_lrvb.mixture.weight_priors import WEIGHT_PRIORS
from sklearn_lrvb.reports import dataset, required_pandas
from sklearn_lrvb.rows import blas_threads, given_rows, require_table
from sklearn_lrvb.sampling.likelihood import log_likelihood
from sklearn_lrvb.sampling.sampler import PosteriorSampler

if TYPE_CHECKING:
    import pandas as pd

_DEFAULT_REG_COVAR = 1e-6  # scikit-learn's
# Degrees of freedom that may be passed. With fewer, draws of Student's t are beyond all numbers that float64
# has, and with more it is normal to all digits.
_LEAST_TAILS, _MOST_TAILS = 0.1, 1e15
# Factors of arguments of another prior, under which `number_of_clusters` looks again: of given ones, and of
# the degrees of freedom where the covariance is learned.
_ANOTHER_PRIOR, _OTHER_FREEDOM = 0.1, 0.5
_MOST_NATS = 1e7  # Log density of noise, in size: 50,000 features with units of 1e70 do not make so many.


# A virtual subclass, so that isinstance holds where other packages ask for scikit-learn's class.
@BayesianGaussianMixture.register
class LRVBGaussianMixture(BayesianMixture):
    """Bayesian Gaussian mixture with calibrated uncertainty and influence.

    It takes the place of :class:`sklearn.mixture.BayesianGaussianMixture`: the same model, fitted by the same
    method (mean-field variational Bayes) to its optimum, under a prior that is learned by default. From the
    one fit it adds error bars of weights, means and covariances by linear response (LRVB), and the influence
    of every row.

    Parameters
    ----------
    n_components : int, default=1
        Number of mixture components, K; with surplus ones, `n_occupied_` counts those that hold rows.

    covariance_type : {'full', 'tied', 'diag', 'spherical', 'tied_diag'}, default='full'
        'full': each component has a covariance matrix; 'tied': all share one; 'diag': each has a variance for
        every feature; 'spherical': each has one variance; 'tied_diag': all share one for every feature.

    tol : float, default=1e-3
        The fit stops when no more than `tol` of the lower bound is still to be gained, in nats (units of
        natural log probability); with ``solver="coordinate_ascent"`` when the last iteration gained less.

    reg_covar : float, default=1e-6
        Variance of known noise on every coordinate, non-negative, in squared units of X. A fit warns where it
        hides the variation of a feature. If `covariance_prior` is learned, columns of few values have more.

    max_iter : int, default=100
        Largest number of steps.

    n_init : int, default=1
        Number of starts; the best fit is kept. More (12, say) find better fits. Of 'kmeans', those after the
        first are of several kinds (theory page "Fitting"). With `noise`, named starts are at least three.

    init_params : {'kmeans', 'k-means++', 'random', 'random_from_data'}, array-like of shape \
            (n_samples, n_components) or callable, default='kmeans'
        How the first responsibilities (probabilities of the components, by row) are made. An array, whose
        rows sum to one, is taken for them; with `noise` it may have one more column, the last. A callable
        makes them from ``(X, n_components, random_state)``, where X has no rows of weight zero, and missing
        values are filled in.

    weight_concentration_prior_type : {'dirichlet_process', 'dirichlet_distribution'}, \
            default='dirichlet_process'
        Stick-breaking or Dirichlet weights.

    weight_concentration_prior : float or None, default=None
        Concentration of the weights' prior, between 1e-70 and 1e70 (between 1e-12 and 1e12 for draws of the
        exact posterior); None means ``1 / n_components``.

    mean_precision_prior : float or None, default=None
        Number b0 of prior observations of the means, between 1e-70 and 1e15: the smaller, the farther apart
        are clusters. None: learned, with the prior Gamma(P / 2, rate P / 2); 1 if ``prior="fixed"``.

    mean_prior : array-like of shape (n_features,), default=None
        Prior mean m0 of the means; None means that of X; with `noise`, and with `tails` if a row is very far
        out, of its core, the central three quarters of the rows.

    degrees_of_freedom_prior : float or None, default=None
        Degrees of freedom nu0 of the Wishart priors, greater than ``n_features - 1``: how alike the
        covariances are. For variances it is positive. None: ``3 * n_features + 2``, or 5 for variances, where
        `covariance_prior` is learned; else ``n_features``.

    covariance_prior : float or array-like, default=None
        C0, in squared units of X: the inverse of the Wishart's scale matrix, of shape (n_features,
        n_features), for 'full' and 'tied'; twice the gamma's rate, of shape (n_features,) for 'diag' and
        'tied_diag', and a number for 'spherical'. Positive (definite). C0 / nu0 is a typical covariance of a
        component. None: learned, C0 / nu0 being expected to be the covariance S of X (see `mean_prior`). If
        ``prior="fixed"``, or if rows are no more than features (of matrices), C0 is S, with `reg_covar` added
        where it is singular; with `tails`, times 1 + max(nu0 / 2 - 1, 0) P / (nu + P), nu 3 where fitted.

    random_state : int, RandomState instance or None, default=None
        Seeds the starts and :meth:`sample`. Of more than 131,072 rows, k-means sees a sample of that many.

    warm_start : bool, default=False
        Whether to start from the fitted attributes, where there are some; `n_init` is then ignored.

    verbose, verbose_interval : int, default=None and 10
        1 prints starts, steps and the progress of methods that take long, every `verbose_interval` steps or
        blocks of rows; 2 also gains and times. None: one line at a terminal or in a notebook while a method
        takes long (not with ``SKLEARN_LRVB_PROGRESS=0`` in the environment).

    prior : {'learned', 'fixed', 'flat'}, default='learned'
        'learned': the fit finds `covariance_prior` and `mean_precision_prior`, how wide clusters are and how
        far apart; one that is passed is fixed. 'fixed': scikit-learn's, or numbers that are passed. 'flat':
        constant in log weights, means and precisions, as in the paper; the five arguments ending in `_prior`
        must be None, and `weight_concentration_prior_type` has no effect. (Guide "Which prior".)

    factorization : {'joint', 'independent'}, default='joint'
        q(mu_k, Lambda_k), as in scikit-learn, or q(mu_k) q(Lambda_k), as in the paper.

    solver : {'newton', 'coordinate_ascent'}, default='newton'
        'newton': accelerated iterations and Newton steps, to the optimum. 'coordinate_ascent': iterations
        alone, scikit-learn's algorithm and stopping rule.

    moves : {'auto', 'merge', 'search'} or None, default='auto'
        Moves between optima, each made only where it raises the lower bound. 'auto' merges or deletes
        components once one has too few rows, or, if `covariance_prior` is learned, where components have
        fewer than ``10 * n_features`` rows on average. 'merge' does not wait for that. 'search' also splits
        components, until nothing raises the bound; `max_iter` then holds for each ascent between two moves.
        They need ``solver="newton"``, a prior that is not flat and drawn starts: elsewhere 'auto' makes none,
        the others are a ValueError. (Guide "Other ways to choose the number of clusters".)

    noise : bool, float or None, default=None
        Whether rows may belong to no component, but to noise, whose density is the same everywhere. True
        takes one over the volume that the rows fill; a number between -1e7 and 1e7 is the logarithm of the
        density, per volume in units of X. :meth:`predict` labels such rows -1, :meth:`predict_proba` has one
        more column, the last. The weight of noise has the prior Beta(a, K a), a being
        `weight_concentration_prior`. Needs a prior that is not flat.

    tails : {'normal', 'student', 'student_by_component'} or float, default='normal'
        Distribution of a component's rows: normal, or Student's t. 'student' fits one number of degrees of
        freedom for all components, 'student_by_component' one for each (not for 'tied' and 'tied_diag'), with
        an exponential prior of mean 10; a number, from 0.1 to 1e15, is known. To compare bounds with other
        options, pass the same `mean_prior` and `covariance_prior`: the defaults differ.

    n_jobs : int or None, default=None
        Threads over blocks of rows; None is one. Results do not depend on it beyond round-off.

    Attributes
    ----------
    weights_ : ndarray of shape (n_components,)
        Posterior means of the weights, the shares of the components; with that of noise they sum to one.

    noise_weight_, noise_weight_std_, noise_log_density_, noise_concentration_ : float, the last (2,)
        With `noise`: its share and the error bar, its log density, which is taken as known, and the two beta
        parameters of the share.

    means_ : ndarray of shape (n_components, n_features)
        Posterior means of the component means.

    covariances_ : ndarray
        Inverses of `precisions_`; of Student's t, if all `tails_` exceed 2, times ``tails_ / (tails_ - 2)``.

    precisions_, precisions_cholesky_ : ndarray
        Posterior means of the precisions, of shape (n_components, n_features, n_features) for 'full',
        (n_features, n_features) for 'tied', (n_components, n_features) for 'diag', (n_components,) for
        'spherical', (n_features,) for 'tied_diag'; upper triangular U, ``precisions_ = U @ U.T``, or roots.

    scales_, tails_ : ndarray, and float or ndarray of shape (n_components,)
        Of Student's t components: scale matrices, the inverses of `precisions_`; and degrees of freedom.

    converged_, n_iter_, n_occupied_ : bool, int and int
        Whether `tol` was reached; steps of the best start; components with half a row or more.

    lower_bound_, lower_bounds_ : float, and list of float
        Lower bound on log p(X), the evidence, in nats; and after every step.

    weight_concentration_ : ndarray of shape (n_components,), or a pair of such
        Dirichlet concentration, or the two beta parameters of every stick.

    mean_precision_, degrees_of_freedom_ : ndarray of shape (n_components,), the second a float if shared
        Precision of each mean in units of its component's; degrees of freedom of its Wishart factor, or twice
        the shape of the gamma one.

    weight_concentration_prior_, mean_precision_prior_, mean_prior_, degrees_of_freedom_prior_, \
            covariance_prior_
        The prior in use; of what is learned, posterior means. A flat one is ``0, 0, zeros, nu0, zeros``.

    posterior_mean_, posterior_std_, posterior_covariance_ : ndarray of shape (D,), (D,) and (D, D)
        Of all parameters, by linear response (Equation 11 of the paper): log weights, means and unique
        precision entries (and fitted log `tails_`), named by `posterior_names_`.

    weights_std_, means_std_, covariances_std_, precisions_std_, scales_std_, tails_std_ : ndarray
        Error bars: posterior standard deviations, like the attribute.

    log_evidence_, labels_ : float, and ndarray of shape (n_samples,)
        log p(X) to second order: `lower_bound_` and what it misses; and ``predict`` of the training rows.

    n_features_in_, feature_names_in_ : int, and ndarray of shape (`n_features_in_`,)
        Number of features of the fit, and their names where all are strings.

    See Also
    --------
    sklearn.mixture.BayesianGaussianMixture : The same model without uncertainty.

    Notes
    -----
    * With ``prior="fixed"`` the fit differs from scikit-learn's in `reg_covar`, the constants of the bound,
      and the priors of 'tied', 'diag' and 'spherical'. (Guide "Coming from BayesianGaussianMixture".)
    * X may hold NaN where values are missing at random, in all methods. (Guide "Missing values".)
    * Wherever X is an argument, it may be a table, a memory map, a source of batches (a list, or a function
      that returns an iterator, of arrays or of pairs ``(rows, weights)``), or a Dask array or data frame. Of
      rows on Dask, results by row are lazy. (Guide "Rows that do not fit in memory".)
    * Until the matrix behind error bars is formed, X is kept by reference: a change in place is refused.
    * Fitted arrays are read-only. Where others are set in their place, predictions follow, and error bars
      refuse.
    * Where the fit is no strict local optimum error bars are refused, and the error says why. An error or an
      interrupt leaves the estimator as it was.

    References
    ----------
    R. Giordano and T. Broderick, arXiv:1502.07685.

    Examples
    --------
    Minutes from one eruption of a geyser to the next. How long are short and long waits, and how sure is it?

    >>> import numpy as np
    >>> from sklearn_lrvb import LRVBGaussianMixture
    >>> X = np.array([[79, 54, 74, 62, 85, 55, 88, 85, 51, 85,
    ...                54, 84, 78, 47, 83, 52, 62, 84, 52, 79]]).T  # minutes
    >>> mixture = LRVBGaussianMixture(n_components=2, random_state=0).fit(X)
    >>> print(mixture.means_.ravel().round(1), "+-", mixture.means_std_.ravel().round(1))
    [54.6 82. ] +- [1.8 1.4]
    >>> print(mixture.weights_.round(2), "+-", mixture.weights_std_.round(2))
    [0.48 0.52] +- [0.11 0.11]
    """

    _parameter_constraints: dict = {
        **BayesianMixture._parameter_constraints,
        "covariance_type": [StrOptions(set(COVARIANCE_STRUCTURES))],
        "reg_covar": [Interval(Real, 0.0, None, closed="left")],
        "init_params": [
            StrOptions({"kmeans", "random", "random_from_data", "k-means++"}),
            "array-like",
            callable,
        ],
        "weight_concentration_prior_type": [StrOptions(set(WEIGHT_PRIORS))],
        "weight_concentration_prior": [None, Interval(Real, 0.0, None, closed="neither")],
        "mean_precision_prior": [None, Interval(Real, 0.0, None, closed="neither")],
        "mean_prior": [None, "array-like"],
        "degrees_of_freedom_prior": [None, Interval(Real, 0.0, None, closed="neither")],
        "covariance_prior": [None, "array-like", Interval(Real, 0.0, None, closed="neither")],
        "warm_start": ["boolean"],
        "prior": [StrOptions({"learned", "fixed", "flat"})],
        "factorization": [StrOptions({"joint", "independent"})],
        "tails": [
            StrOptions({"normal", "student", "student_by_component"}),
            Interval(Real, _LEAST_TAILS, _MOST_TAILS, closed="both"),
        ],
        "noise": [None, "boolean", Interval(Real, -_MOST_NATS, _MOST_NATS, closed="both")],
    }

    def __init__(
        self,
        *,
        n_components=1,
        covariance_type="full",
        tol=1e-3,
        reg_covar=_DEFAULT_REG_COVAR,
        max_iter=100,
        n_init=1,
        init_params="kmeans",
        weight_concentration_prior_type="dirichlet_process",
        weight_concentration_prior=None,
        mean_precision_prior=None,
        mean_prior=None,
        degrees_of_freedom_prior=None,
        covariance_prior=None,
        random_state=None,
        warm_start=False,
        verbose=None,
        verbose_interval=10,
        prior="learned",
        factorization="joint",
        solver="newton",
        moves="auto",
        noise=None,
        tails="normal",
        n_jobs=None,
    ):
        self.n_components = n_components
        self.covariance_type = covariance_type
        self.tol = tol
        self.reg_covar = reg_covar
        self.max_iter = max_iter
        self.n_init = n_init
        self.init_params = init_params
        self.weight_concentration_prior_type = weight_concentration_prior_type
        self.weight_concentration_prior = weight_concentration_prior
        self.mean_precision_prior = mean_precision_prior
        self.mean_prior = mean_prior
        self.degrees_of_freedom_prior = degrees_of_freedom_prior
        self.covariance_prior = covariance_prior
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose
        self.verbose_interval = verbose_interval
        self.prior = prior
        self.factorization = factorization
        self.solver = solver
        self.moves = moves
        self.noise = noise
        self.tails = tails
        self.n_jobs = n_jobs

    # Fitted attributes that a fit sets ...
    weights_: NDArray[np.float64]
    noise_weight_: float
    noise_concentration_: NDArray[np.float64]
    noise_log_density_: float
    tails_: NDArray[np.float64] | float
    scales_: NDArray[np.float64]
    means_: NDArray[np.float64]
    covariances_: Any = attributes.MissingCovariances()
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
    _n_given: int | None  # The number of rows of the fit, where these were in memory.
    _fitted_class = FittedGaussian
    _kind_of_mixture = GaussianKind
    _ways_to_a_fit = "(a) Call fit. (b) Continue a scikit-learn fit with from_sklearn."

    # ... and those that are computed where they are read.
    labels_ = attributes.labels_
    posterior_mean_ = attributes.gaussian_posterior_mean_
    noise_weight_std_ = attributes.noise_weight_std_
    means_std_ = attributes.means_std_
    covariances_std_ = attributes.covariances_std_
    precisions_std_ = attributes.precisions_std_
    scales_std_ = attributes.scales_std_
    tails_std_ = attributes.tails_std_

    @property
    def _tails_target(self):
        """The target "tails", a ValueError where degrees of freedom are not fitted."""
        return self._uncertainty.targets["tails"]

    @property
    def _fitted(self) -> FittedGaussian:
        """The mixture that the public arrays describe: that of the last fit, or one that was set by hand."""
        uncertainty = vars(self).get("_last_uncertainty")
        if uncertainty is None:
            return mixture_of_arrays(self, model_of(self))
        last = uncertainty.fitted
        replaced = last.replaced_in(self)
        if replaced and not set(density_arrays(last.model)).isdisjoint(replaced):
            return mixture_of_arrays(self, last.model, last)
        return last

    # Fitting.

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: ArrayLike, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the variational posterior.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), Dask collection or source of batches
            Training rows, at least as many as components; float64 or float32, with NaN where a value is
            missing at random, or masked (``numpy.ma``). Rows need not fit in memory: the Notes of the class
            say how. Values of up to 1e70, and columns that are constant or vary by at least 1e-70: fourth
            powers of the units must not overflow.

        y : Ignored
            Present for API consistency by convention. Weights are no `y`: pass them as `sample_weight`, by
            name. A warning says so where `y` looks like weights.

        sample_weight : array-like of shape (n_samples,) or Dask collection, default=None
            How often each row counts, non-negative: weight 2 is the row twice, for the priors' defaults and
            the posterior alike; weight 0 is no row. Weights need not be whole numbers, but their sum is the
            number of rows that the posterior takes for observed: do not normalise it away. Under the same
            `random_state`, 'kmeans' and 'k-means++' start as from the repeated rows. 'random' and
            'random_from_data', and starts of `n_init` after the first, draw for the rows as given, so that
            they start elsewhere than from the repeated rows, and where there are several optima may end in
            another. Batches bring their own weights.

        Returns
        -------
        self : LRVBGaussianMixture
            The fitted estimator.

        Raises
        ------
        ValueError
            On bad input, such as a column of words or without any value; a prior outside its domain; a
            component without a proper posterior; or if rows that are not in memory change from one pass to
            another. The estimator is then as it was before the call.
        TypeError
            If a column holds dates, durations or other objects.
        RuntimeError
            If a Dask cluster is lost; the estimator is then as it was before the call.

        See Also
        --------
        fit_predict : Fit, and label the training rows.
        from_sklearn : Continue the fit of a BayesianGaussianMixture.

        Examples
        --------
        Minutes between eruptions of a geyser; then every distinct wait once, with its number as weight:

        >>> import numpy as np
        >>> from sklearn_lrvb import LRVBGaussianMixture
        >>> X = np.array([[79, 54, 74, 62, 85, 55, 88, 85, 51, 85,
        ...                54, 84, 78, 47, 83, 52, 62, 84, 52, 79]]).T  # minutes
        >>> mixture = LRVBGaussianMixture(n_components=2, random_state=0).fit(X)
        >>> print(mixture.means_.ravel().round(1), "+-", mixture.means_std_.ravel().round(1))
        [54.6 82. ] +- [1.8 1.4]
        >>> waits, times = np.unique(X, axis=0, return_counts=True)
        >>> counted = LRVBGaussianMixture(n_components=2, random_state=0).fit(waits, sample_weight=times)
        >>> repeated = np.repeat(waits, times, axis=0)  # X in another order
        >>> mixture = LRVBGaussianMixture(n_components=2, random_state=0).fit(repeated)
        >>> len(waits), len(X), np.allclose(counted.means_std_, mixture.means_std_)
        (13, 20, True)
        """
        self._fit(X, sample_weight, y)
        self._warn_of_columns()
        return self

    def fit_predict(
        self, X: ArrayLike, y: object = None, sample_weight: ArrayLike | None = None
    ) -> NDArray[np.intp]:
        """Fit, and return the most probable component of every training row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), Dask collection or source of batches
            Training rows, as in :meth:`fit`.

        y : Ignored
            Present for API consistency by convention. Weights are no `y`: pass them as `sample_weight`, by
            name. A warning says so where `y` looks like weights.

        sample_weight : array-like of shape (n_samples,) or Dask collection, default=None
            How often each row counts, as in :meth:`fit`.

        Returns
        -------
        labels : ndarray or Dask array of shape (n_samples,)
            The same as ``fit(X).predict(X)``.

        Raises
        ------
        ValueError
            As :meth:`fit`.

        See Also
        --------
        predict : Labels of any rows.
        predict_proba : How sure the labels are.

        Examples
        --------
        Short (0) and long (1) waits, in minutes, for eruptions of a geyser:

        >>> import numpy as np
        >>> from sklearn_lrvb import LRVBGaussianMixture
        >>> X = np.array([[79, 54, 74, 62, 85, 55, 88, 85, 51, 85,
        ...                54, 84, 78, 47, 83, 52, 62, 84, 52, 79]]).T  # minutes
        >>> LRVBGaussianMixture(n_components=2, random_state=0).fit_predict(X)
        array([1, 0, 1, 0, 1, 0, 1, 1, 0, 1, 0, 1, 1, 0, 1, 0, 0, 1, 0, 1])
        """
        return self.fit(X, y, sample_weight).predict(X)

    def _fit(self, X, sample_weight, y=None, initial_posterior=None, reset=True, optima=None):
        """Fit, from a given posterior or from the starts that the arguments ask for.

        Only a finished fit changes the estimator, at once: after an error or an interrupt it is as it was.

        Parameters
        ----------
        X, sample_weight, y : as in `fit`
        initial_posterior : callable (rows, prior) -> VariationalPosterior, or None
        reset : bool, whether the number and names of the features are taken from X
        optima : list or None, to which the optima of all starts are added, Fit
        """
        warn_of_weights_as_y(y, sample_weight)
        moves = resolve_moves(self) if initial_posterior is None else None
        named = copy.copy(self)  # It gets the number and names of the features.
        on_pass = PassReport() if (self.verbose or 0) > 1 else None
        with blas_threads(self.n_jobs):
            given = given_rows(named, X, sample_weight, reset=reset, on_pass=on_pass)
            features = {name: vars(named)[name] for name in FEATURES if name in vars(named)}
            features["_n_given"] = given.n_given if given.is_in_memory else None
            counted = given.counted()
            check_rows(counted, features.get("feature_names_in_"), self.n_components)
            rows = counted.around_mean()
            completion = Completion(rows, needs_covariances(self), GAUSSIAN) if rows.has_missing else None
            core = core_of_outlying_rows(self, rows, completion)
            prior = resolve_prior(self, rows, completion, core)
            starts = self._starts(initial_posterior, given, rows, prior, completion, core)
            span = RowSpan.if_smaller(rows, prior)
            if span is None:
                ascent = Ascent(rows.centred_once(), self.tol, self.max_iter)
            else:
                ascent = AscentInSpan(span.rows.centred_once(), self.tol, self.max_iter, span=span)

            def attributes_of(fit):
                fit = ascent.ended(fit)
                fitted = FittedGaussian(fit.posterior, rows.origin, model_of(self), fit.path)
                return self._attributes_of(features, fitted, rows, starts.are_drawn, fit)

            metadata = None if sample_weight is None else {"sample_weight": sample_weight}
            n_starts = len(starts.in_turn) + (starts.once_more is not None)
            with begun_task(self, "fit", n_starts, X=given.X, y=y, metadata=metadata) as task:
                max_steps = None if moves is not None and moves.searches else self.max_iter
                lines = Lines(self.verbose, self.verbose_interval)
                progress = Progress(lines, task, max_steps, attributes_of)
                reporting = replace(ascent, on_step=progress.step, moves=moves, on_move=progress.move)
                multi_start = MultiStart(reporting, self.solver == "newton", progress)
                best, cost = self._best_fit(multi_start, starts, rows)
                require_clusters(best.posterior)
                attributes = attributes_of(best)
                fitted = attributes["_last_uncertainty"].fitted
                attributes["_column_notes"] = notes_of_columns(rows, fitted, named._feature_names)
                if optima is not None:
                    optima.extend(map(ascent.ended, multi_start.optima.values()))
                if not rows.is_in_memory:  # They may be in files that are closed, or hold a cluster's memory.
                    attributes["_last_uncertainty"].source.release_rows(best.e_step_result)
                # What was fitted before goes, also what this fit does not have.
                kept = {name: value for name, value in vars(self).items() if not name.endswith("_")}
                self.__dict__ = {**kept, **attributes}
                task.end({})
        if not self.converged_ and self.max_iter > 0:
            message = (
                "A callback stopped the best performing initialization before it converged."
                if best.stopped
                else "Best performing initialization did not converge. Try different init parameters, or "
                "increase max_iter, tol, or check for degenerate data."
            )
            warn_caller(message, ConvergenceWarning)
        if cost is not None:
            warn_caller(cost.in_words(prior.structure, self._feature_names))

    def _starts(self, initial_posterior, given, rows, prior, completion, core):
        """The starts of a fit: callables (Ascent) -> Fit, the state before the first step.

        k-means takes distances in the columns' units: where scales differ much, the largest column decides.
        If a fit from one start then shows that `reg_covar` hides the variation of others (`_unwanted_noise`),
        one more start is made by k-means on standardized columns, which several starts have among them. Over
        480 such fits, of raw data sets and their resamples, it raised the bound by 107 nats on average;
        another seed, by 33.

        Parameters
        ----------
        initial_posterior : callable (rows, prior) -> VariationalPosterior; None for what the arguments say
        given : rows as the user has passed them (`given_rows`)
        rows : Rows, the rows of positive weight
        prior : MixturePrior
        completion : Completion of rows with missing values, or None
        core : Core of the rows where there may be outliers, or None

        Returns
        -------
        Starts
        """
        init_params, n_components = self.init_params, self.n_components
        if initial_posterior is not None:
            return Starts([lambda ascent: ascent.start_at(initial_posterior(rows, prior))])
        if self.warm_start and hasattr(self, "converged_"):
            return Starts([self._start_from_arrays(rows, prior)])
        if not (isinstance(init_params, str) or callable(init_params)):
            responsibilities = given_responsibilities(given, rows, init_params, prior.structure)
            return Starts([lambda ascent: ascent.start_from(responsibilities, prior)])

        is_named = isinstance(init_params, str)
        rules = [None]
        if is_named and core is not None:
            rules = rules_of_far_out(rows, n_components, core, prior.structure.parts.has_noise_component)

        def drawn(kind, aside, random_state, ascent):
            if aside is not None:
                return aside.start(ascent, prior, kind, random_state)
            if callable(kind):
                responsibilities = given_responsibilities(
                    given, rows, kind, prior.structure, random_state, completion
                )
            else:
                responsibilities = starting_responsibilities(
                    rows, n_components, kind, random_state, prior.flat, completion
                )
            return ascent.start_from(responsibilities, prior)

        random_state, n_first = check_random_state(self.random_state), len(rules)
        kinds = (
            kinds_of_starts(init_params, n_components, self.n_init)
            if is_named
            else [init_params] * self.n_init
        )
        further = STANDARDIZED_KMEANS if init_params == "kmeans" else kinds[0]
        kinds = [kinds[0], *[further] * (n_first - 1), *kinds[1 : 1 + max(self.n_init - n_first, 0)]]
        in_turn = zip(kinds, itertools.cycle(rules), strict=False)
        starts = [functools.partial(drawn, kind, aside, random_state) for kind, aside in in_turn]
        once_more = None
        if is_named and init_params == "kmeans" and n_components > 1 and self.n_init == 1:

            def once_more(ascent):
                return drawn(STANDARDIZED_KMEANS, rules[0], check_random_state(self.random_state), ascent)

        return Starts(starts, once_more, True, n_first)

    def _start_from_arrays(self, rows, prior):
        """The start at the fitted arrays: the last fit's q under the present prior.

        From arrays that were set by hand it is the M-step after an E-step at them, as in scikit-learn; so it
        is from a fit with other tails.
        """
        last = self._fitted
        posterior = last.posterior
        now = (self.n_components, rows.n_features, type(prior.structure))
        then = (posterior.n_components, posterior.n_features, type(last.structure))
        if now != then:
            raise ValueError(
                "warm_start=True continues the last fit, which had "
                f"{then[0]} components in {then[1]} features ({then[2].__name__}); now n_components={now[0]} "
                f"and X has {now[1]} features ({now[2].__name__}). Set warm_start=False, or fit a clone."
            )
        if optional_parts(vars(self), then[0]) != optional_parts(last.model, then[0]):
            raise ValueError(
                f"warm_start=True continues the last fit, which had noise={last.model['noise']!r} and "
                f"tails={last.model['tails']!r}; now noise={self.noise!r} and tails={self.tails!r}. Set "
                "warm_start=False, or fit a clone."
            )
        tails = posterior.tails if prior.structure.n_tails else prior.tails
        centred_means = posterior.centred_means + (last.origin - rows.origin)
        if last.path:
            under_prior = replace(posterior, prior=prior, centred_means=centred_means, tails=tails)
            return lambda ascent: ascent.start_at(under_prior, last.path)
        responsibilities = responsibilities_of_rows(rows, replace(posterior, centred_means=centred_means))
        return lambda ascent: ascent.start_from(responsibilities, prior)

    def _best_fit(self, multi_start, starts, rows):
        """The state with the highest lower bound over the starts, and what unwanted noise costs it or None.

        Parameters
        ----------
        multi_start : MultiStart
        starts : Starts
        rows : Rows
        """
        best = multi_start.ascent.ended(multi_start.best(starts.in_turn, n_first=starts.n_first))
        cost = self._unwanted_noise(rows, best.posterior)
        if cost is not None and starts.once_more is not None:
            best = multi_start.ascent.ended(
                multi_start.best_with(starts.once_more, "on standardized columns")
            )
            cost = self._unwanted_noise(rows, best.posterior)
        return best, cost

    def _unwanted_noise(self, rows, posterior):
        """What `reg_covar` costs, if that is much and nobody asked for it; otherwise None.

        Another value than the default was chosen, perhaps to smooth. It is taken for a mistake only where
        noise is more than the variance of whole features.
        """
        cost = costly_noise(rows, posterior)
        is_default = self.reg_covar == _DEFAULT_REG_COVAR
        return cost if cost is not None and (is_default or cost.exceeds_features) else None

    # What comparisons of fits ask for.

    _compared_with: ClassVar[dict[str, Any]] = BayesianMixture._compared_with | {
        "warm_start": False,
        "weight_concentration_prior_type": "dirichlet_distribution",
    }

    def _attributes_at(self, rows, fit):
        fitted = FittedGaussian(fit.posterior, rows.origin, model_of(self), fit.path)
        notes = notes_of_columns(rows, fitted, self._feature_names)
        return {**self._attributes_of({}, fitted, rows, False, fit), "_column_notes": notes}

    def _another_prior(self):
        learned, changed, words = self._fitted.learned, {}, []
        given = [name for name in ("covariance_prior", "mean_precision_prior") if name not in learned]
        if given:
            changed = {name: _ANOTHER_PRIOR * getattr(self, f"{name}_") for name in given}
            words.append(f"a tenth of {' and of '.join(given)}")
        if "covariance_prior" in learned:  # How alike the clusters are in shape is not learned.
            changed["degrees_of_freedom_prior"] = _OTHER_FREEDOM * self.degrees_of_freedom_prior_
            words.append("half of degrees_of_freedom_prior")
        return changed, ", ".join(words)

    def _undefined_criteria(self):
        if self.prior == "flat":
            reason = (
                "prior='flat' is known up to a factor that depends on n_components: (a) use "
                "prior='learned'; (b) compare by criteria=['leave_one_out']"
            )
            return {"probability": reason, "second_order": reason}
        is_dirichlet = self.weight_concentration_prior_type == "dirichlet_distribution"
        if is_dirichlet or self.weight_concentration_prior is None:  # By default weights become Dirichlet.
            return {}
        reason = (
            "with stick-breaking weights there are components beyond the K that are fitted, so that K is no "
            "number of clusters: (a) use weight_concentration_prior_type='dirichlet_distribution'; (b) "
            "compare by criteria=['second_order']"
        )
        return {"probability": reason}

    # The maximum of the likelihood, for aic and bic.

    def _likelihood(self, X, sample_weight):
        """As for every mixture, at the optimum under a flat prior that is next to the fit."""
        rows = self._given_rows(X, sample_weight, self._fitted).counted()
        self._uncertainty.source.check_training_rows(rows)
        posterior = self._without_prior(X, sample_weight)._fitted.posterior
        structure = posterior.structure
        parameters_class = posterior.model.parameters
        draw = parameters_class.draws_at(posterior, posterior)
        parameters = parameters_class(posterior, rows.origin, draw)
        n_free = posterior.n_labels - 1 + structure.n_components * structure.n_features
        n_free += structure.n_groups * structure.n_quadratic + structure.n_tails
        return float(log_likelihood(rows, parameters)[0]), n_free, rows.total_weight

    def _without_prior(self, X, sample_weight):
        """The fit of the components that hold rows under a flat prior, from where this fit ended."""
        posterior = self._fitted.posterior
        if posterior.structure.has_noise_component:
            raise ValueError(
                "aic and bic compare maxima of the likelihood, without the prior, and with noise there is "
                "none. Compare log_evidence_, or ask number_of_clusters."
            )
        held = occupied(posterior.counts)
        responsibilities = self.predict_proba(X)[:, held]
        responsibilities /= responsibilities.sum(axis=1, keepdims=True)
        flat = clone(self).set_params(
            **{name: None for name in self.get_params() if name.endswith("_prior")},
            prior="flat",
            n_components=int(np.count_nonzero(held)),
            init_params=responsibilities,
            moves=None,
            warm_start=False,
            verbose=0,
        )
        try:
            flat._fit(X, sample_weight)
        except DegenerateComponentError as error:
            raise ValueError(
                "aic and bic compare maxima of the likelihood, without the prior, and next to this fit there "
                "is none: a component is left with too few rows. (a) Lower n_components. (b) Compare "
                "log_evidence_, or ask number_of_clusters."
            ) from error
        return flat

    # From and to scikit-learn.

    @classmethod
    def from_sklearn(
        cls, bgm: BayesianGaussianMixture, X: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Continue the fit of a BayesianGaussianMixture to its optimum, and give it error bars.

        Parameters
        ----------
        bgm : sklearn.mixture.BayesianGaussianMixture
            Fitted, or an instance of a subclass. Its parameters are taken over, its fitted attributes are the
            start. Parameters that a subclass adds have no meaning here, and are left behind.

        X : array-like of shape (n_samples, n_features), Dask collection or source of batches
            The training rows of `bgm`. Of other rows the result is a fit to these, and a warning says so.

        sample_weight : array-like of shape (n_samples,) or Dask collection, default=None
            How often each row counts, as in :meth:`fit`.

        Returns
        -------
        mixture : LRVBGaussianMixture
            Fitted, with ``prior="fixed"``. Priors that `bgm` left at None are taken from X.

        Raises
        ------
        TypeError
            If `bgm` is no BayesianGaussianMixture of scikit-learn's.
        sklearn.exceptions.NotFittedError
            If it is not fitted, or lacks attributes of a fit.
        ValueError
            If its fitted attributes are not finite, do not fit its parameters, or describe no mixture; on bad
            input, as :meth:`fit`.

        Warns
        -----
        UserWarning
            If X has another number of rows, or another mean, than the rows that `bgm` was fitted to.

        See Also
        --------
        to_sklearn : The way back.
        fit : Fit from the start.

        Examples
        --------
        Error bars, in minutes, for a fit that you have:

        >>> import numpy as np
        >>> from sklearn.mixture import BayesianGaussianMixture
        >>> from sklearn_lrvb import LRVBGaussianMixture
        >>> X = np.array([[79, 54, 74, 62, 85, 55, 88, 85, 51, 85,
        ...                54, 84, 78, 47, 83, 52, 62, 84, 52, 79]]).T  # minutes
        >>> bgm = BayesianGaussianMixture(n_components=2, random_state=0).fit(X)
        >>> mixture = LRVBGaussianMixture.from_sklearn(bgm, X)
        >>> print(mixture.means_.ravel().round(1), "+-", mixture.means_std_.ravel().round(1))
        [56.2 81.1] +- [3.2 2.2]
        """
        if isinstance(bgm, LRVBGaussianMixture):
            raise TypeError(
                f"bgm must be scikit-learn's BayesianGaussianMixture, got {type(bgm).__name__}, which has "
                "error bars of its own. To continue its fit, set warm_start=True and call fit."
            )
        if not isinstance(bgm, BayesianGaussianMixture):
            raise TypeError(f"bgm must be a fitted BayesianGaussianMixture, got {type(bgm).__name__}.")
        require_fitted(bgm)
        mixture = cls()
        mixture.prior = "fixed"
        for name, value in parameters_of(bgm).items():
            setattr(mixture, name, value)
        mixture.n_features_in_ = np.atleast_2d(bgm.means_).shape[1]
        for name in FEATURES:
            if hasattr(bgm, name):
                setattr(mixture, name, getattr(bgm, name))
        mixture._fit(
            X,
            sample_weight,
            initial_posterior=lambda rows, prior: posterior_of(bgm, rows, prior),
            reset=False,
        )
        mixture._warn_of_columns()
        return mixture

    def to_sklearn(self) -> BayesianGaussianMixture:
        """A fitted BayesianGaussianMixture with this fit, for use without this package.

        Returns
        -------
        bgm : sklearn.mixture.BayesianGaussianMixture
            Predicts and scores the same. Its `degrees_of_freedom_` (of diagonal and spherical covariances)
            and `mean_precision_` (where `reg_covar` counts) are the numbers that make it do so. Its prior is
            fixed, at what was learned. That class has no flat prior and no weights of rows, and other priors
            of variances, so that fitting it again may lead to another fit. Centre data that
            lie far from zero: there scikit-learn's diagonal and spherical densities lose digits. Pass it rows
            of floats: from rows of integers it makes log densities that are integers.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            The estimator is not fitted.
        ValueError
            The fit has `noise`, `tails` or a `covariance_type` that scikit-learn does not have.

        See Also
        --------
        from_sklearn : The way back.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn_lrvb import LRVBGaussianMixture
        >>> X = np.array([[79, 54, 74, 62, 85, 55, 88, 85, 51, 85,
        ...                54, 84, 78, 47, 83, 52, 62, 84, 52, 79]]).T  # minutes
        >>> mixture = LRVBGaussianMixture(n_components=2, random_state=0).fit(X)
        >>> bgm = mixture.to_sklearn()
        >>> rows = X.astype(float)
        >>> type(bgm).__name__, np.allclose(bgm.predict_proba(rows), mixture.predict_proba(rows))
        ('BayesianGaussianMixture', True)
        """
        return fitted_twin(self, self._fitted)

    # The mixture.

    def sample(self, n_samples: int = 1) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
        """Draw rows from the mixture at `weights_`, `means_` and `covariances_` (`scales_` and `tails_`).

        With `noise` they are rows that are no noise, whose density has no end from which to draw.

        Parameters
        ----------
        n_samples : int, default=1
            Number of rows, at least one.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            Component by component, in units of the training rows.

        y : ndarray of shape (n_samples,)
            The component of every row.

        Raises
        ------
        ValueError
            `n_samples` is no whole number of at least one; or these attributes were set by hand to arrays
            that are not finite, do not go together, or are no weights or covariances.

        See Also
        --------
        posterior : Draws of the parameters rather than of rows.

        Examples
        --------
        New waits for a geyser, in minutes. Their average is the mean of the mixture:

        >>> import numpy as np
        >>> from sklearn_lrvb import LRVBGaussianMixture
        >>> X = np.array([[79, 54, 74, 62, 85, 55, 88, 85, 51, 85,
        ...                54, 84, 78, 47, 83, 52, 62, 84, 52, 79]]).T  # minutes
        >>> mixture = LRVBGaussianMixture(n_components=2, random_state=0).fit(X)
        >>> rows, components = mixture.sample(10_000)
        >>> rows.shape, components.shape
        ((10000, 1), (10000,))
        >>> print(f"{rows.mean():.0f} {mixture.weights_ @ mixture.means_[:, 0]:.0f}")
        69 69
        """
        structure = self._fitted.structure
        require_samples(n_samples)
        random_state = check_random_state(self.random_state)
        weights, means, covariances = arrays_to_sample(self, structure)
        counts = random_state.multinomial(n_samples, weights)
        components = zip(means, structure.layout.per_component(covariances), counts, strict=True)
        X = [structure.draw(random_state, mean, covariance, int(n)) for mean, covariance, n in components]
        rows, labels = np.vstack(X), np.repeat(np.arange(len(counts)), counts)
        if structure.has_scales:
            half = 0.5 * np.broadcast_to(checked_array(self, "tails_"), len(means))[labels]
            scales = random_state.standard_gamma(half) / half
            rows = means[labels] + (rows - means[labels]) / np.sqrt(scales)[:, None]
        return rows, labels

    def impute(
        self, X: ArrayLike, *, return_std: bool = False
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
        [[ 2.  53.5]
         [ 3.9 80. ]]
        >>> print(std.round(1))
        [[0.  5.2]
         [0.4 0. ]]
        """
        fitted = self._fitted
        rows = self._given_rows(X, None, fitted)
        values = imputed(rows, fitted.posterior)
        if not return_std:
            return table_like(X, values)
        uncertainty = self._uncertainty
        with self._tracked("impute") as tracked:
            std = uncertainty.of_rows(rows, imputation_deviations, (rows.n_features,), tracked)
        return table_like(X, values), table_like(X, std)

    def missing_information(
        self,
        X: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        target: str | Sequence[str] = ("weights", "means", "precisions"),
        min_count: float = 0.0,
    ) -> pd.DataFrame:
        """Share of the information on every parameter that is missing: to unknown labels and missing values.

        With `tails` the unknown scales of the rows are counted with the labels.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), Dask collection or source of batches
            The training rows.

        sample_weight : array-like of shape (n_samples,) or Dask collection, default=None
            The weights of X in the fit, where there were any.

        target : {'log_weights', 'weights', 'means', 'precisions', 'standard_deviations', 'correlations', \
                'covariances', 'scales', 'tails', 'log_tails', 'mean_precision_prior', \
                'covariance_prior', 'all'} or a list, \
                default=('weights', 'means', 'precisions')
            Which parameters, as of a :class:`Posterior`.

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
              and scales, also where there is one component), the second is what missing values add to that.

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
        posterior : The error bars themselves.

        Notes
        -----
        It is the fraction of missing information of multiple imputation, without imputations.

        Examples
        --------
        Lengths and widths of the petals of two kinds of irises. Many petals may be of either kind: half of
        the information on the kinds' shares is missing, and nearly as much of that on their means:

        >>> from sklearn.datasets import load_iris
        >>> from sklearn_lrvb import LRVBGaussianMixture
        >>> X = load_iris().data[50:, 2:]  # centimetres
        >>> mixture = LRVBGaussianMixture(n_components=2, random_state=0).fit(X)
        >>> shares = mixture.missing_information(X)["missing"]
        >>> shares[["weight[0]", "mean[0,x0]", "mean[0,x1]"]].round(2).tolist()
        [0.54, 0.44, 0.44]
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
        self, X: ArrayLike, *, n_imputations: int = 5, random_state: int | np.random.RandomState | None = None
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
        posterior : Draws of the parameters.

        Notes
        -----
        Every copy has its own draw of weights, means and precisions by linear response
        (:meth:`posterior` with ``method="lrvb"``). It then draws the component of every row and its
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
        with self._tracked("sample_imputations") as tracked:
            copies = imputations(rows, parameters, random_state, tracked)
        return [table_like(X, copy) for copy in copies] if hasattr(X, "columns") else copies

    def prior_sensitivity(
        self, target: str = "means", per_std: bool = False
    ) -> dict[str, NDArray[np.float64]]:
        """How much each hyperparameter moves each posterior mean: d E[target] / d hyperparameter.

        Parameters
        ----------
        target : {'log_weights', 'weights', 'means', 'precisions', 'standard_deviations', \
                'correlations', 'covariances', 'scales', 'tails', 'log_tails', 'mean_precision_prior', \
                'covariance_prior'}, default='means'
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

            Of what is learned, the derivatives are those in its prior expectation: 1 for
            'mean_precision_prior', and nu0 times the covariance of X for 'covariance_prior'.

            Exact derivatives of the fit, the response of the responsibilities included, without refitting. X,
            the densities of noise (also of rows with missing values, whose ratios follow from
            `covariance_prior`) and the other hyperparameters are held fixed, also where their defaults came
            from X; 'weight_concentration_prior' sets the prior of the weight of noise too. (Theory page
            "Influence", sensitivity to the prior.)

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
        posterior : Its table has a sentence on whether the prior matters.

        Examples
        --------
        If the prior expected waits for a geyser to be a minute longer, the means of the short and the long
        ones would be 0.02 and 0.01 minutes longer, 0.01 standard deviations each:

        >>> import numpy as np
        >>> from sklearn_lrvb import LRVBGaussianMixture
        >>> X = np.array([[79, 54, 74, 62, 85, 55, 88, 85, 51, 85,
        ...                54, 84, 78, 47, 83, 52, 62, 84, 52, 79]]).T  # minutes
        >>> mixture = LRVBGaussianMixture(n_components=2, random_state=0).fit(X)
        >>> mixture.prior_sensitivity()["mean_prior"].ravel().round(2)
        array([0.02, 0.01])
        >>> mixture.prior_sensitivity(per_std=True)["mean_prior"].ravel().round(2)
        array([0.01, 0.01])
        """
        return prior_sensitivity(self._uncertainty, target, per_std)

    def _posterior_dataset(self, draws):
        structure = self._fitted.structure
        by_component = () if structure.shares_precision else ("component",)
        of_precisions = (*by_component, *("feature", "other_feature")[: len(structure.prior_shape)])
        axes = {
            "weights": ("label",) if structure.has_noise_component else ("component",),
            "means": ("component", "feature"),
            "precisions": of_precisions,
            "covariances": of_precisions,
            "scales": of_precisions,
            "tails": ("component",) * len(structure.tails_shape),
        }
        coords = {"component": np.arange(structure.n_components), "feature": self._feature_names}
        if structure.has_noise_component:
            coords["label"] = [*map(str, coords["component"]), "noise"]
        if "other_feature" in of_precisions:
            coords["other_feature"] = self._feature_names
        return dataset({name: (axes[name], values) for name, values in draws.items()}, coords, True)
