"""BayesianMixture: the methods and fitted attributes that all mixture estimators have.

They check their arguments here (`arguments`), and compute in the room `answers` from the state of the fit, a
`PosteriorUncertainty`.
"""

from __future__ import annotations

import contextlib
import copy
import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from numbers import Integral, Real
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from sklearn_lrvb.answers.conclusions import Optimum, RivalConclusion, check_rival, checked_conclusion
from sklearn_lrvb.answers.deciding_rows import MOST_REFITS, DecidingRows, GreedySearch
from sklearn_lrvb.answers.deletion import scores_without_groups, scores_without_rows
from sklearn_lrvb.answers.error_bars import (
    PROBABILITIES,
    SAMPLING_METHODS,
    SCORES,
    LinearResponse,
    answer_of_posterior,
    answer_of_samples,
    are_given,
    check_of_posterior,
)
from sklearn_lrvb.answers.groups import influence_of_groups, leverages_of_groups
from sklearn_lrvb.answers.influence import influence_of_rows, weight_influence_of_few_rows
from sklearn_lrvb.answers.leave_one_out import leverages
from sklearn_lrvb.answers.model_check import ModelCheck
from sklearn_lrvb.answers.partitions import (
    PartitionPosterior,
    check_sizes,
    note_of_number,
    number_of_rows,
    partition_posterior,
)
from sklearn_lrvb.answers.row_effects import SingleRows, WholeGroups
from sklearn_lrvb.answers.single_values import ColumnNote
from sklearn_lrvb.answers.uncertainty import FitCourse, InformationSource, PosteriorUncertainty, read_only
from sklearn_lrvb.caller_warnings import warn_caller
from sklearn_lrvb.cluster_regression.results import ClusterRegression, CovariateEffects, OutcomeDifferences
from sklearn_lrvb.estimators import attributes
from sklearn_lrvb.estimators.alternatives import KindOfMixture
from sklearn_lrvb.estimators.arguments import (
    check_perturbation,
    checked_method,
    checked_number,
    checked_output,
    checked_seed,
    require_rows_first,
    warn_of_weights_as_y,
)
from sklearn_lrvb.estimators.attributes import ComputedAttribute
from sklearn_lrvb.estimators.callbacks import CallbackSupportMixin, somebody_waits, told_of
from sklearn_lrvb.estimators.explaining import Choices, ClusterRegressions
from sklearn_lrvb.estimators.model_checking import checked_model
from sklearn_lrvb.estimators.posterior import Posterior
from sklearn_lrvb.mixture.model import occupied
from sklearn_lrvb.mixture.prediction import (
    most_probable_components,
    score_sums,
)
from sklearn_lrvb.rows import Tracked, blas_threads, given_rows, row_groups, untracked
from sklearn_lrvb.sampling.posterior_check import LEAST_DRAWS, PosteriorCheck
from sklearn_lrvb.sampling.sampler import PosteriorSampler

FEATURES = ("n_features_in_", "feature_names_in_")  # Attributes that `validate_data` sets.


class Fitted(ABC):
    """A mixture that predicts, as a fit has left it.

    Attributes
    ----------
    posterior : posterior of a mixture, or what takes its place for predictions
    origin : (P,), from where the posterior's positions are measured
    path : tuple of float, lower bounds of the fit, at its start and after every step
    targets : Targets at the posterior
    arrays : dict, the read-only arrays that the fit reports, by name
    model : dict, what is to be the same in mixtures whose lower bounds are compared, by parameter
    described_by : tuple of str, the estimator's attributes that describe it
    hyperparameters : dict, numbers or arrays of the prior by argument; of learned ones, their expectation
    learned : dict, the expectations of those that are learned
    least_prior_factors : dict, by which arguments of the prior must be multiplied at least to be valid;
        zero, where there is none
    """

    posterior: Any
    origin: Any
    path: tuple
    targets: Any
    arrays: dict
    model: dict
    described_by: tuple
    hyperparameters: Any
    learned: Any = MappingProxyType({})
    least_prior_factors: Any = MappingProxyType({})

    @property
    def n_categories(self):
        """Number of categories of every column, zero of numbers: int array (P,)."""
        return np.zeros(len(self.origin), dtype=np.intp)

    @abstractmethod
    def at(self, posterior, path):
        """The same mixture at another posterior, reached by a path: Fitted."""

    @abstractmethod
    def to_state(self):
        """What `from_state` needs, besides the arrays, to rebuild this from a pickle."""

    @classmethod
    @abstractmethod
    def from_state(cls, state, arrays):
        """The mixture that `to_state` described, given its arrays."""

    def replaced_in(self, estimator):
        """Names of the arrays of an estimator that are not those which the fit reported."""
        given = vars(estimator)
        return [name for name, value in self.arrays.items() if given.get(name) is not value]


class BayesianMixture(CallbackSupportMixin, DensityMixin, BaseEstimator):
    """A Bayesian mixture with error bars and influence. A subclass fits it, and says what its components are.

    Besides `fit`, `fit_predict` and `sample` a subclass has

    * ``_fit(X, sample_weight, y=None, *, optima=None)``, which adds the optima that it reaches to a list;
    * ``_attributes_at(rows, fit)``, the fitted attributes at another optimum of the same model, of Rows;
    * ``_another_prior()``, parameters of another prior, for clusters that differ more; and what is other, in
      words;
    * ``_likelihood(X, sample_weight)``, the maximum of the log likelihood next to the fit, and the numbers of
      free parameters and of rows;
    * ``_posterior_dataset(draws)``, draws of the parameters, by name, as xarray.Dataset.

    Attributes
    ----------
    _last_uncertainty : PosteriorUncertainty
        The last fit, and linear response at it.
    _column_notes : tuple of ColumnNote
        What is doubtful about the columns, and what to do: `fit` warns of it, and answers repeat it.
    _fitted_class : type
        That of the mixture in which a fit ends, a `Fitted`.
    _kind_of_mixture : type
        What `model_check` asks of the class of an estimator, a `KindOfMixture`.
    """

    _parameter_constraints: dict = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0.0, None, closed="left")],
        "max_iter": [Interval(Integral, 0, None, closed="left")],
        "solver": [StrOptions({"newton", "coordinate_ascent"})],
        "moves": [StrOptions({"auto", "merge", "search"}), None],
        "random_state": ["random_state"],
        "verbose": ["verbose", None],
        "verbose_interval": [Interval(Integral, 1, None, closed="left")],
        "n_jobs": [None, Integral],
    }

    n_jobs: int | None
    max_iter: int
    tol: float
    solver: str
    verbose: int | None
    n_features_in_: int
    converged_: bool
    n_iter_: int
    lower_bound_: float
    lower_bounds_: list[float]
    n_occupied_: int
    _last_uncertainty: PosteriorUncertainty
    _column_notes: tuple[ColumnNote, ...] = ()
    _fitted_class: ClassVar[type[Fitted]]
    _kind_of_mixture: ClassVar[type[KindOfMixture]]
    _ways_to_a_fit = "Call fit."
    _display_of_intervals = "PosteriorIntervalDisplay"
    # Parameters of the fits of which P(K | X) is asked: no component is emptied by a move.
    _compared_with: ClassVar[dict[str, Any]] = {"moves": None, "solver": "newton"}

    # Attributes that are computed where they are read.
    posterior_mean_ = attributes.posterior_mean_
    log_evidence_ = attributes.log_evidence_
    posterior_covariance_ = attributes.posterior_covariance_
    posterior_std_ = attributes.posterior_std_
    posterior_names_ = attributes.posterior_names_
    weights_std_ = attributes.weights_std_

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    # The state of the fit.

    @property
    def _fitted(self) -> Any:
        """The mixture that the public arrays describe: `Fitted`."""
        return self._uncertainty.fitted

    @property
    def _feature_names(self):
        """Names of the features, list of str: those of the training data, or x0, x1 and so on."""
        numbered = [f"x{p}" for p in range(self.n_features_in_)]
        return [str(name) for name in getattr(self, "feature_names_in_", numbered)]

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
                f"estimator were set by hand. {self._ways_to_a_fit}"
            )
        replaced = uncertainty.fitted.replaced_in(self)
        if replaced:
            raise NotFittedError(
                f"Changed since the fit: {', '.join(replaced)}. Error bars, influence and draws are about "
                "the values that the fit reported. (a) Fit again. (b) Undo the change, by setting the array "
                "of the fit itself again, or make it in a copy (copy.deepcopy)."
            )
        return uncertainty

    def __copy__(self):
        """A shallow copy, which shares the training rows and the information with the original."""
        twin = type(self).__new__(type(self))
        vars(twin).update(vars(self))
        return twin

    def __getstate__(self):
        """Parameters, fitted attributes, and the state that error bars need, without the training rows."""
        state = dict(super().__getstate__())
        uncertainty = state.pop("_last_uncertainty", None)
        if uncertainty is not None:
            fitted = uncertainty.fitted
            # Arrays of the fit that are still there are attributes; those replaced by hand are kept besides.
            replaced = {name: fitted.arrays[name] for name in fitted.replaced_in(self)}
            state["_fit_state"] = {
                "fitted": fitted.to_state(),
                "arrays": list(fitted.arrays),
                "replaced": replaced,
                "uncertainty": uncertainty.to_state(),
            }
        return state

    def __setstate__(self, state):
        state = dict(state)
        fit_state = state.pop("_fit_state", None)
        super().__setstate__(state)
        if fit_state is not None:
            arrays = {**vars(self), **fit_state["replaced"]}
            # A pickle forgets that arrays are read-only.
            arrays = {name: read_only(arrays[name]) for name in fit_state["arrays"]}
            fitted = self._fitted_class.from_state(fit_state["fitted"], arrays)
            self._last_uncertainty = PosteriorUncertainty.from_state(fit_state["uncertainty"], fitted)

    def _attributes_of(self, features, fitted, rows, is_drawn, fit):
        """Every fitted attribute at a state of the fit, by name.

        Parameters
        ----------
        features : dict, attributes of the features
        fitted : Fitted
        rows : Rows, the training rows
        is_drawn : bool, whether starts were drawn at random
        fit : Fit
        """
        course = FitCourse(
            n_iter=fit.n_iter,
            converged=bool(fit.converged),
            max_iter=self.max_iter,
            tol=float(self.tol),
            solver=self.solver,
            is_drawn=is_drawn,
            stopped=fit.stopped,
        )
        source = InformationSource.of_fit(fitted, fit, rows, course)
        return {
            **features,
            "_last_uncertainty": PosteriorUncertainty(fitted, source),
            **fitted.arrays,
            "converged_": bool(fit.converged),
            "n_iter_": fit.n_iter,
            # NumPy floats, as in scikit-learn: they have the methods that callers use, such as `round`.
            "lower_bound_": np.float64(fit.lower_bound),
            "lower_bounds_": list(np.asarray(fit.path[1 + fit.n_before :], dtype=np.float64)),
            "n_occupied_": int(np.count_nonzero(occupied(fit.posterior.counts))),
        }

    def _warn_of_columns(self):
        if self._column_notes:
            warn_caller(" ".join(note.text for note in self._column_notes))

    def _given_rows(self, X, sample_weight, fitted):
        """Rows that a user has passed (`rows.given_rows`), measured from the origin of a mixture."""
        require_rows_first(X)
        return given_rows(self, X, sample_weight, fitted.origin)

    def _given_again(self, X, sample_weight, fitted):
        """Training rows that a user may pass again; None where X is None."""
        if X is None and sample_weight is not None:
            raise ValueError("sample_weight goes with X: pass the training rows too.")
        return None if X is None else self._given_rows(X, sample_weight, fitted)

    def _training_rows(self, X, sample_weight, fitted):
        """The same, as a fit goes through them."""
        given = self._given_again(X, sample_weight, fitted)
        return None if given is None else self._counted_rows(given, fitted)

    def _counted_rows(self, given, fitted):
        """Rows without those of weight zero."""
        return given.counted()

    def _tracked(self, name: str) -> contextlib.AbstractContextManager[Tracked]:
        """A context in which a question may take long: its progress is reported as that of a fit.

        It gives ``tracked(items, n_items)``, by which the question goes through the items of its loops; the
        number is a callable where it may rise on the way. A question that a callback asks during a fit is not
        reported to callbacks: they show the fit then.

        Parameters
        ----------
        name : str, the method that the user called
        """
        are_called = bool(vars(self).get("_skl_callbacks")) and "_callback_fit_ctx" not in vars(self)
        if are_called or self.verbose or (self.verbose is None and somebody_waits()):
            return told_of(self, name, are_called=are_called)
        return contextlib.nullcontext(untracked)

    def __dir__(self):
        # BaseEstimator's dir() evaluates all attributes, some of which take long. Others cannot be read
        # without a fit, or with arrays of wrong shapes.
        names, are_hidden = [], "_hides_computed" in vars(self)
        for name in object.__dir__(self):
            attribute = getattr(type(self), name, None)
            exists_with = attribute.exists_with if isinstance(attribute, ComputedAttribute) else None
            if are_hidden and exists_with:
                continue
            with contextlib.suppress(AttributeError, ValueError):
                for needed in ("_uncertainty", exists_with) if exists_with else (name,):
                    getattr(self, needed)
                names.append(name)
        return names

    def _get_fitted_attr_html(self, doc_link=""):
        # The HTML display of scikit-learn shows the values of all names of dir().
        shown = copy.copy(self)
        vars(shown)["_hides_computed"] = True
        return super(BayesianMixture, shown)._get_fitted_attr_html(doc_link)

    # Predictions and scores of rows.

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
        self, X: ArrayLike, *, return_std: bool = False
    ) -> NDArray[np.float64] | tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Probabilities of the components for every row: the responsibilities of the E-step.

        With `noise` the last column is the probability that the row is noise.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), Dask collection or source of batches
            Any rows; float64 or float32, with NaN where a value is missing.

        return_std : bool, default=False
            Whether to return standard deviations too: those of ``posterior()``, by linear response where a
            check calls it good, and over exact draws where not. ``posterior(method="lrvb").predict_proba(X)``
            has them at once.

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
            Standard deviations are by linear response, and it is not known to be good: a fit without its
            training rows (:meth:`posterior`) cannot check it.

        See Also
        --------
        predict : Most probable component.
        score_samples : How probable the rows are.

        Examples
        --------
        A petal of 3 cm belongs to the larger of two kinds of irises. One of 2.2 cm may be of either, and its
        probability is itself uncertain, because the rows leave open where the clusters end:

        >>> from sklearn.datasets import load_iris
        >>> from sklearn_lrvb import LRVBGaussianMixture
        >>> X = load_iris().data[:, 2:3]  # centimetres
        >>> mixture = LRVBGaussianMixture(n_components=2, random_state=0).fit(X)
        >>> responsibilities, std = mixture.predict_proba([[3.0], [2.2]], return_std=True)
        >>> print(responsibilities[:, 0].round(2), "+-", std[:, 0].round(2))
        [1.   0.77] +- [0.   0.32]
        """
        return self._of_rows(PROBABILITIES, X, return_std)

    def _of_rows(self, quantity, X, return_std):
        """A `RowQuantity`, and where `return_std` its standard deviations under the fit's posterior."""
        rows = self._given_rows(X, None, self._fitted)
        if not return_std:
            return quantity.values(rows, self._fitted.posterior)
        answer = answer_of_posterior(self, "auto", None, None)
        if isinstance(answer, LinearResponse) and answer.is_doubtful:
            warn_caller(
                f"{quantity.method}: the standard deviations are by linear response. {answer.note} "
                f'(posterior(method="lrvb").{quantity.method}(X) takes it as it is, without this warning.)'
            )
        return answer.of_rows(rows, quantity)

    def score_samples(
        self, X: ArrayLike, *, return_std: bool = False
    ) -> NDArray[np.float64] | tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Log-likelihood of every row under the fit, as in scikit-learn.

        It is the logarithm of the sum over the components, and noise if there is any, of exp(expected log
        weight + expected log density). Of rows with missing values it is that of the values that are there.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), Dask collection or source of batches
            Any rows; float64 or float32, with NaN where a value is missing.

        return_std : bool, default=False
            Whether to return standard deviations too, as in :meth:`predict_proba`.

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
        [ -1.1 -14.1] +- [0.1 1.8]
        """
        return self._of_rows(SCORES, X, return_std)

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
        -3.69 nats per row
        >>> np.isclose(mixture.score(X), mixture.score_samples(X).mean()).item()
        True
        """
        warn_of_weights_as_y(y, sample_weight)
        fitted = self._fitted
        # Rows of weight zero are left out: their scores may be minus infinity. So are rows without any value.
        rows = self._given_rows(X, sample_weight, fitted).counted()
        return score_sums(rows, fitted.posterior) / rows.total_weight

    def aic(self, X: ArrayLike, *, sample_weight: ArrayLike | None = None) -> float:
        """Akaike's information criterion, as of scikit-learn's `GaussianMixture`: the smaller, the better.

        -2 log L + 2 p, with p free parameters and L the likelihood at its maximum next to the fit, as in
        other programs: from the fit on one ascends without the prior. (Of Gaussian mixtures to the optimum
        under ``prior="flat"``, at which the criterion is a little larger.) Components without rows take no
        part. `log_evidence_` and `number_of_clusters` compare numbers of components with the prior.

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
        170 157
        """
        log_likelihood, n_free, n_rows = self._likelihood(X, sample_weight)
        return float(-2.0 * log_likelihood + np.log(n_rows) * n_free)

    # Posterior uncertainty.

    def posterior(
        self,
        X: ArrayLike | None = None,
        *,
        method: str = "auto",
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        strata: ArrayLike | None = None,
        strata_sizes: Mapping | float | None = None,
        n_draws: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> Posterior:
        """What is known about the parameters: tables with error bars, covariances, draws, pictures.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), Dask collection or source of batches, default=None
            The training rows, for all methods but 'lrvb' and 'mean_field'. A fit to up to 64 MiB of rows in
            memory still has them, a pickle of it has not.

        method : {'auto', 'lrvb', 'exact', 'mean_field', 'sandwich', 'bootstrap'}, default='auto'
            * 'lrvb': linear response (paper, Equation 11), at once.
            * 'exact': the exact posterior, by Markov chains that run until limits of 95 % intervals are known
              to 0.1 standard deviations, or for about fifteen seconds, or longer where rows are many.
            * 'mean_field': q itself, in which components and kinds of parameters are independent.
            * 'sandwich': not the posterior, but how the estimates vary from one sample of rows, or of
              `groups`, to another, whatever their distribution, by the squares of their weight influences
              (the infinitesimal jackknife; with groups the cluster-robust CR1).
            * 'bootstrap': the same, by refits to resamples.
            * 'auto': 'lrvb' where :meth:`posterior_check`, which is then asked, calls it good, and else
              'exact', unless X is not known or it takes more than twenty seconds. With `groups`, 'sandwich'
              where linear response is good, or refits would take more than some ten seconds, and else
              'bootstrap'.

        sample_weight : array-like of shape (n_samples,) or Dask collection, default=None
            The weights of X in the fit, where there were any.

        groups : array-like of shape (n_samples,) or Dask collection, default=None
            Labels that say which rows belong together, such as patients: at least two groups, better fifty.
            (Guide "My rows belong together".) Without groups, a weight of 3 counts as three rows; for survey
            weights of single persons pass ``range(len(X))``.

        strata, strata_sizes : default=None
            Of a survey: the stratum of every row; and a mapping from each stratum to the number of its groups
            in the population (without `strata` one number), for the finite population correction. Without
            `groups` every row is a group of its own.

        n_draws : int, default=None
            Number of draws of the exact posterior, at least, or of resamples; None is as many draws as it
            takes to converge, or 200 resamples.

        random_state : int, RandomState instance or None, default=None
            Seed of chains, resamples and draws, not the estimator's own. None is 0, and takes chains of this
            fit that were run before.

        Returns
        -------
        posterior : Posterior
            Its `summary`, `covariance`, `std`, `sample`, `predict_proba`, `score_samples`, `to_arviz` and
            `plot` are described there. Chains are kept with the fit: a second posterior costs nothing.

        Raises
        ------
        ValueError
            Bad arguments; X is missing or not what was fitted; fitted arrays were changed since the fit; the
            fit is no strict local optimum, or there is no exact posterior (:meth:`posterior_check`).
        MemoryError
            The system is too large; the message names the size and the way out.

        Warns
        -----
        UserWarning
            The chains have not converged.

        Notes
        -----
        The exact posterior has other modes, one for every order of the components at least. Draws get the
        order of the fit back. (Theory page "The exact posterior".)

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from sklearn_lrvb import LRVBGaussianMixture
        >>> X = load_iris().data[:, 2:3]  # centimetres
        >>> mixture = LRVBGaussianMixture(n_components=2, random_state=0).fit(X)
        >>> mixture.posterior().summary("means")["sd"].round(2).tolist()
        [0.08, 0.03]
        """
        mixture, design = copy.copy(self), (groups, strata, strata_sizes)
        is_grouped = are_given(design)
        method = checked_method(method, "mean_field", *SAMPLING_METHODS)
        if is_grouped and method not in ("auto", *SAMPLING_METHODS):
            raise ValueError(
                f"method={method!r} takes rows as independent, and groups say that they are not: use "
                "method='sandwich' or method='bootstrap', or leave groups out."
            )
        given = self._given_again(X, sample_weight, self._fitted)
        n_draws, seed = None if n_draws is None else checked_number(n_draws), checked_seed(random_state)
        if is_grouped or method in SAMPLING_METHODS:
            answer = answer_of_samples(mixture, method, given, seed, design, n_draws)
        else:
            rows = None if given is None else self._counted_rows(given, self._fitted)
            answer = answer_of_posterior(mixture, method, rows, seed, n_draws)
        return Posterior(answer, given, seed or 0)

    def posterior_check(
        self,
        X: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        n_draws: int = 0,
        random_state: int | np.random.RandomState | None = None,
    ) -> PosteriorCheck:
        """How good the error bars of linear response are: good, rough or wrong.

        Linear response is a quadratic approximation of the log posterior. Where few rows or much overlap make
        the posterior skew, its error bars are too small. This looks at the exact posterior, for the price of
        a few passes over the rows. The method "auto" of other questions asks it by itself.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), Dask collection or source of batches
            The training rows.

        sample_weight : array-like of shape (n_samples,) or Dask collection, default=None
            The weights of X in the fit, where there were any.

        n_draws : int, default=0
            Number of draws of importance sampling; 0 does without. From 100 on there are a closer bound on
            the evidence and its estimate; 4000 are enough as a rule.

        random_state : int, RandomState instance or None, default=None
            Seed of the draws; None is 0.

        Returns
        -------
        check : PosteriorCheck
            Its display is a sentence and the numbers behind it. Its attributes are `state`, `verdict`,
            `recommendation`, `mean_shift`, `mean_shift_error`, `log_ratio_variance`, `names`; with draws
            `log_evidence_bound`, `log_evidence`, `log_evidence_error`, `k_hat`, `effective_draws` and
            `reliable`.

        Raises
        ------
        ValueError
            X is not what the mixture was fitted to; `n_draws` is neither 0 nor an integer of at least 100;
            there is no exact posterior (``prior="flat"`` with several components); fitted arrays were changed
            since the fit, or the fit is no strict local optimum.
        MemoryError
            The system is too large; the message names the size and the way out.

        See Also
        --------
        posterior : Error bars, exact where that is needed.

        Notes
        -----
        Modes of the exact posterior that linear response does not reach are not seen. (Theory page "The exact
        posterior".)

        Examples
        --------
        Twenty waits for a geyser do not say much: linear response is rough.

        >>> import numpy as np
        >>> from sklearn_lrvb import LRVBGaussianMixture
        >>> X = np.array([[79, 54, 74, 62, 85, 55, 88, 85, 51, 85,
        ...                54, 84, 78, 47, 83, 52, 62, 84, 52, 79]]).T  # minutes
        >>> mixture = LRVBGaussianMixture(n_components=2, random_state=0).fit(X)
        >>> mixture.posterior_check(X, random_state=0).state
        'rough'
        """
        if X is None:
            raise ValueError("posterior_check needs the training rows: pass X.")
        uncertainty = self._uncertainty
        rows = self._training_rows(X, sample_weight, uncertainty.fitted)
        sampler = PosteriorSampler(uncertainty, rows)
        sampler.checked_rows(rows)
        if n_draws != 0 and checked_number(n_draws) < LEAST_DRAWS:
            raise ValueError(
                f"n_draws={n_draws} are too few for importance sampling, whose diagnostics need "
                f"{LEAST_DRAWS} or more. (a) Ask for 4000. (b) n_draws=0 checks without."
            )
        generator = check_random_state(0 if random_state is None else random_state)
        return check_of_posterior(self, sampler, rows, int(n_draws), generator)

    def model_check(
        self,
        X: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> ModelCheck:
        """Does the model fit the rows, and what to do if it does not.

        Columns are tested for skewness and tails, over all rows and by component; distances of rows from
        their component, for outliers; and pairs of columns, for dependence that the model leaves out. Counts
        and durations are tested for dispersion. Where something departs from the model, other models that the
        package has are fitted, and compared by their evidence.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), Dask collection or source of batches
            The training rows. Of more than 5000 (fewer where there are many columns) a sample is examined,
            and of more than 100 columns the pairs of 100.

        sample_weight : array-like of shape (n_samples,) or Dask collection, default=None
            The weights of X in the fit, where there were any. Whole numbers say how often a row counts; other
            weights are worth fewer rows.

        groups : array-like of shape (n_samples,) or Dask collection, default=None
            Labels that say which rows belong together, such as patients: one row of each counts.

        random_state : int, RandomState instance or None, default=None
            Seed of the draws; None is 0.

        Returns
        -------
        check : ModelCheck
            Its display is a verdict, what departs from the model, and what other models gain. `summary()` is
            a table of all tests, and `ModelCheckDisplay` draws it.

        Raises
        ------
        ValueError
            On bad input, X that is not what the mixture was fitted to, or fitted arrays that were changed
            since the fit.

        See Also
        --------
        posterior_check : Whether error bars are right, if the model fits.
        number_of_clusters : How many components there are.

        Notes
        -----
        If the model holds, p-values are about uniform: they take into account that it was fitted to the same
        rows. (Theory page "Does the model fit?".) About 5 % of the mixtures that fit are said not to.

        Examples
        --------
        Two columns that vary together, taken for independent within a cluster:

        >>> import numpy as np
        >>> from sklearn_lrvb import LRVBGaussianMixture
        >>> X = np.random.default_rng(0).multivariate_normal([0, 0], [[1, 0.6], [0.6, 1]], size=200)
        >>> mixture = LRVBGaussianMixture(covariance_type="diag").fit(X)
        >>> mixture.model_check(X).remedies[0].advice
        "fit with covariance_type='full'"
        """
        given = self._question_rows(X, sample_weight, "model_check")
        generator = check_random_state(0 if random_state is None else random_state)
        return checked_model(self, given, groups, generator)

    # What explains the clusters, and what they explain.

    def covariate_effects(
        self,
        X: ArrayLike,
        covariates: ArrayLike,
        *,
        reference: int | None = None,
        levels: Mapping[str, Any] | None = None,
        columns: str | dict = "auto",
        sample_weight: ArrayLike | None = None,
        method: str = "auto",
        groups: ArrayLike | None = None,
        strata: ArrayLike | None = None,
        strata_sizes: Mapping | float | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> CovariateEffects:
        """What makes it likelier that a row is in one cluster than in another: a regression on covariates.

        A multinomial logistic regression of the cluster, which is not known but probable (latent class
        regression). A regression on `predict` or `predict_proba` finds effects that are too small. The
        clusters stay those of X (the two-step method).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), Dask collection or source of batches
            The training rows.

        covariates : data frame, series or array-like of shape (n_samples, n_covariates)
            Columns of numbers and of categories, in memory, a row for every row of X. Rows with a missing
            value are left out. No column may be one of X.

        reference : int, default=None
            The cluster with which coefficients compare the others. None is the first that holds rows.

        levels : dict, default=None
            The reference level of categorical covariates, by their names, if it is not the first.

        columns : "auto" or dict, default="auto"
            Types of the covariates, as in :class:`LRVBLatentClassMixture`: numbers are "numeric", unless
            there are only two, and others "categorical".

        sample_weight : array-like of shape (n_samples,) or Dask collection, default=None
            The weights of X in the fit, where there were any.

        method : {'auto', 'lrvb', 'exact', 'sandwich'}, default='auto'
            Where error bars come from, as in :meth:`posterior`; 'sandwich' is how estimates vary from one
            sample of rows, or of `groups`, to another. All are given the covariates of the rows.

        groups, strata, strata_sizes : default=None
            As in :meth:`posterior`: which rows belong together. Error bars are then by the sandwich.

        random_state : int, RandomState instance or None, default=None
            Seed of draws; None is 0.

        Returns
        -------
        effects : CovariateEffects
            Its display is a sentence and average effects; `summary` has tables of effects, of shares of
            clusters by level, and of coefficients. (Theory page "What explains the clusters".)

        Raises
        ------
        ValueError
            On bad input, a covariate that is constant, a combination of others or a column of X, X that is
            not what the mixture was fitted to, arrays changed since the fit, a fit that is no strict local
            optimum, or a single cluster.

        See Also
        --------
        outcome_differences : In what else clusters differ.
        deciding_rows : The fewest rows without which an effect changes, by its argument `effects`.

        Examples
        --------
        Do geysers wait longer after long eruptions? Clusters are of waits alone:

        >>> import numpy as np
        >>> from sklearn_lrvb import LRVBGaussianMixture
        >>> waits = np.array([79, 54, 74, 62, 85, 55, 88, 85, 51, 85,
        ...                   54, 84, 78, 47, 83, 52, 62, 84, 52, 79])  # minutes
        >>> was_long = np.array([1, 0, 1, 0, 1, 0, 1, 1, 0, 1, 0, 1, 0, 0, 1, 0, 0, 1, 0, 1])
        >>> X = waits[:, None]
        >>> mixture = LRVBGaussianMixture(n_components=2, random_state=0).fit(X)
        >>> effects = mixture.covariate_effects(X, was_long, method="lrvb")
        >>> effects.summary("shares").loc["share[1,covariate=1]", "estimate"].round(1).item()
        1.0
        """
        seed = checked_seed(random_state)
        choices = Choices(
            columns, levels, checked_method(method, "sandwich"), (groups, strata, strata_sizes), seed
        )
        steps = ClusterRegressions(
            self, self._question_rows(X, sample_weight, "covariate_effects"), choices, reference
        )
        (table,) = steps.tables(covariates=covariates)
        with steps.uncertainty.source.threads():
            return steps.result(CovariateEffects, steps.of_covariates(table), table)

    def outcome_differences(
        self,
        X: ArrayLike,
        outcome: ArrayLike,
        *,
        covariates: ArrayLike | None = None,
        levels: Mapping[str, Any] | None = None,
        columns: str | dict = "auto",
        sample_weight: ArrayLike | None = None,
        method: str = "auto",
        groups: ArrayLike | None = None,
        strata: ArrayLike | None = None,
        strata_sizes: Mapping | float | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> OutcomeDifferences:
        """In what else clusters differ: means of outcomes in each, differences, and a test of each outcome.

        The mean of an outcome in each cluster, although the clusters of rows are only probable (distal
        outcomes). Means by `predict`, or weighted by `predict_proba`, are too close to each other. Here the
        outcome is regressed on the probabilities by least squares, whatever its distribution; the clusters
        stay those of X (the two-step method).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), Dask collection or source of batches
            The training rows.

        outcome : data frame, series or array-like of shape (n_samples,) or (n_samples, n_outcomes)
            One column or several, each of which is taken by itself. Numbers have means; categories (yes and
            no, or more) have shares.

        covariates : data frame, series or array-like of shape (n_samples, n_covariates), default=None
            For which outcomes are adjusted: they act on the outcome, linearly and alike in all clusters, and
            on the cluster itself.

        levels, columns : default=None and "auto"
            Of covariates and outcomes, as in :meth:`covariate_effects`: ``columns={"ward": "categorical"}``.
            Measurements, counts and durations are all numbers here.

        sample_weight, method, groups, strata, strata_sizes, random_state
            As in :meth:`covariate_effects`.

        Returns
        -------
        differences : OutcomeDifferences
            Its display is a sentence and the means; `summary` has tables of means and of differences.

        Raises
        ------
        ValueError
            As :meth:`covariate_effects`.

        See Also
        --------
        covariate_effects : What makes a cluster likelier.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn_lrvb import LRVBGaussianMixture
        >>> waits = np.array([79, 54, 74, 62, 85, 55, 88, 85, 51, 85,
        ...                   54, 84, 78, 47, 83, 52, 62, 84, 52, 79])  # minutes
        >>> heights = np.where(waits > 70, 45, 38) + np.arange(20) % 3  # metres
        >>> X = waits[:, None]
        >>> mixture = LRVBGaussianMixture(n_components=2, random_state=0).fit(X)
        >>> differences = mixture.outcome_differences(X, heights, method="lrvb")
        >>> differences.summary()["estimate"].round().tolist()
        [39.0, 46.0]
        """
        seed = checked_seed(random_state)
        choices = Choices(
            columns, levels, checked_method(method, "sandwich"), (groups, strata, strata_sizes), seed
        )
        steps = ClusterRegressions(
            self, self._question_rows(X, sample_weight, "outcome_differences"), choices
        )
        others = {} if covariates is None else {"covariates": covariates}
        outcomes, adjusting = (*steps.tables(outcome=outcome, **others), None)[:2]
        with steps.uncertainty.source.threads():
            regressions = steps.of_outcomes(outcomes, adjusting)
            return steps.result(OutcomeDifferences, regressions, adjusting, outcomes)

    def _question_rows(self, X, sample_weight, method):
        """The training rows as the user passes them to a method that needs them: Rows."""
        if X is None:
            raise ValueError(f"{method} needs the training rows: pass X.")
        return self._given_rows(X, sample_weight, self._uncertainty.fitted)

    # Conclusions.

    def _in_order(self, fit):
        """The state of a fit with its components in the order in which a fit reports them: Fit."""
        return fit

    def _undefined_criteria(self):
        """The criteria of `number_of_clusters` that do not compare fits, and why: dict of str."""
        return {}

    def partition_posterior(
        self,
        X: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        n_draws: int = 400,
        method: str = "auto",
        max_rows: int = 1000,
        random_state: int | np.random.RandomState | None = None,
    ) -> PartitionPosterior:
        """Which rows belong together, and how sure that is: the posterior of their partition into clusters.

        `predict` says which component is the most probable for each row, as if the parameters were known.
        Here they are drawn from their posterior, and all rows are assigned anew in each draw. What counts is
        which rows are together, so that nothing depends on how components are numbered.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), Dask collection or source of batches
            The training rows.

        sample_weight : array-like of shape (n_samples,) or Dask collection, default=None
            The weights of X in the fit, where there were any. A row that counts w times is w rows of the
            partition; with weights that are no whole numbers, rows are sampled in proportion to them. Rows of
            weight zero are placed in the clusters of the others.

        n_draws : int, default=400
            Number of draws, at least two.

        method : {'auto', 'lrvb', 'exact'}, default='auto'
            How parameters are drawn, as in :meth:`posterior`: 'auto' from the posterior of the table.

        max_rows : int, default=1000
            Most rows from which clusters are found: a random sample, if there are more. All others are placed
            in these clusters, by a pass.

        random_state : int, RandomState instance or None, default=None
            Seed of the choice of draws and of the search, not the estimator's own; None is 0.

        Returns
        -------
        partition : PartitionPosterior
            Displayed as a sentence and numbers; its attributes are described there. Among them are the
            `labels` of one partition that stands for the posterior, the `certainty` of every row and the
            `stability` of every cluster. Of rows on Dask, what has a value for every row is lazy.

        Raises
        ------
        ValueError
            Bad arguments; X is missing or not what was fitted; fitted arrays were changed since the fit; the
            fit is no strict local optimum, or there is no exact posterior (:meth:`posterior_check`).
        MemoryError
            The draws, or the system, are too large; the message names the size and the way out.

        See Also
        --------
        predict : The most probable component of each row.
        predict_proba : Probabilities of the components, at the estimates.
        posterior : The draws of the parameters.

        Notes
        -----
        The partition has the smallest mean *variation of information* to the draws that a search finds. The
        number of components is that of the fit; `number_of_clusters` says how probable it is, and its result
        has this method too, averaged over the numbers. With noise, rows that are noise are one set in each
        draw; in the result they have the label -1, as in `predict`. (Theory page "Partitions".)

        Examples
        --------
        Short and long waits for a geyser. Least certain is the cluster of the wait of 74 minutes:

        >>> import numpy as np
        >>> from sklearn_lrvb import LRVBGaussianMixture
        >>> X = np.array([[79, 54, 74, 62, 85, 55, 88, 85, 51, 85,
        ...                54, 84, 78, 47, 83, 52, 62, 84, 52, 79]]).T  # minutes
        >>> mixture = LRVBGaussianMixture(n_components=2, random_state=0).fit(X)
        >>> found = mixture.partition_posterior(X, method="lrvb", random_state=0)
        >>> found.labels
        array([0, 1, 0, 1, 0, 1, 0, 0, 1, 0, 1, 0, 0, 1, 0, 1, 1, 0, 1, 0])
        >>> X[found.certainty.argmin()], found.certainty.min().round(2).item()
        (array([74]), 0.97)
        """
        method = checked_method(method)

        def drawn(rows, n_draws, generator):
            answer = answer_of_posterior(self, method, rows, None)
            note = note_of_number(self._uncertainty.fitted)
            return [answer.parameters(n_draws, generator)], answer.note, note

        return self._partition_posterior(X, sample_weight, n_draws, max_rows, random_state, drawn)

    def _partition_posterior(self, X, sample_weight, n_draws, max_rows, random_state, drawn):
        """The posterior of the partition: PartitionPosterior.

        Parameters
        ----------
        drawn : callable (Rows, int, RandomState) -> list of DrawnParameters, and two notes on them
            Makes the draws. It is called once everything else is known to be right.
        """
        n_draws, max_rows = checked_number(n_draws), checked_number(max_rows, "max_rows", "row")
        if n_draws < 2:
            raise ValueError("n_draws=1 says nothing about how partitions vary: pass 2 or more, such as 400.")
        uncertainty = self._uncertainty
        given = self._question_rows(X, sample_weight, "partition_posterior")
        rows = given.counted()
        uncertainty.source.check_training_rows(rows)
        check_sizes(uncertainty.fitted.posterior, n_draws, max_rows, number_of_rows(rows))
        generator = check_random_state(0 if random_state is None else random_state)
        sources, *notes = drawn(rows, n_draws, generator)
        with uncertainty.source.threads(), self._tracked("partition_posterior") as tracked:
            return partition_posterior(sources, given, max_rows, generator, notes, tracked)

    def deciding_rows(
        self,
        X: ArrayLike,
        *,
        conclusion: str | Callable[[Any], float] | None = None,
        threshold: float = 0.0,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        interval: float | None = None,
        effects: ClusterRegression | None = None,
        rival: Any = None,
        max_share: float = 0.1,
    ) -> DecidingRows:
        """The fewest rows without which a conclusion changes, as far as a search finds them.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), Dask collection or source of batches
            The training rows.

        conclusion : str or callable, default=None
            The number that is compared with the threshold: the name of a row of
            ``posterior().summary(...)``, such as "weight[0]", for the value in the fit; a difference of
            two, such as "mean[1,x0] - mean[0,x0]"; or a smooth function of the fitted mixture (of
            `predict_proba`, not of `predict`) that returns a number. It is called with copies of the mixture
            that predict, but have no error bars.

        threshold : float, default=0.0
            The conclusion is that the number is on the side of the threshold where it is in the fit.

        sample_weight : array-like of shape (n_samples,) or Dask collection, default=None
            The weights of X in the fit, where there were any. A row is left out with all its weight.

        groups : array-like of shape (n_samples,) or Dask collection, default=None
            Labels of rows that belong together, such as patients. Whole groups are then left out, and the
            search is for the fewest groups.

        interval : float, default=None
            With a name: probability of a credible interval, the estimate plus or minus standard deviations by
            linear response. (Those of `posterior` may be skewed, and so differ a little.) The
            conclusion is that it excludes the threshold, or that it contains it.

        effects : CovariateEffects or OutcomeDifferences, default=None
            An answer about this fit: the conclusion is then one of its `names`, such as "slope[1,age]".

        rival : fitted estimator of the same kind, default=None
            In place of a conclusion: a fit to the same rows with another number of components. The conclusion
            is which has the higher `log_evidence_`, of one labelling each (theory page "Partitions").

        max_share : float, default=0.1
            Largest share of the rows that may be left out, by weight, below 1.

        Returns
        -------
        deciding : DecidingRows
            Displayed as a sentence and numbers. Steps of the search are confirmed by refits under the prior
            of the fit. A smaller set may exist; and if none is found, there may still be one.

        Raises
        ------
        ValueError
            On bad input, an unknown name, a function that fails or returns no finite number, a number that
            equals the threshold, a rival with another prior or other arguments, X that is not what the
            mixture was fitted to, arrays changed since, or a fit that is no strict local optimum.

        See Also
        --------
        influence : What every row does to a parameter, to first order.
        leverage : How much the whole fit depends on a row.

        Examples
        --------
        More than half of the waits for a geyser are long. Without how many rows is that not so? Two:

        >>> import numpy as np
        >>> from sklearn_lrvb import LRVBGaussianMixture
        >>> X = np.array([[79, 54, 74, 62, 85, 55, 88, 85, 51, 85,
        ...                54, 84, 78, 47, 83, 52, 62, 84, 52, 79]]).T  # minutes
        >>> mixture = LRVBGaussianMixture(n_components=2, random_state=0).fit(X)
        >>> mixture.deciding_rows(X, conclusion="weight[1] - weight[0]")
        DecidingRows: 2 of 20 rows (10 %) decide whether weight[1] - weight[0] is above 0:
          without them it is -0.050, with all rows 0.049.
          rows                     12, 0
          with all rows            0.049
          without them, predicted  -0.041
          without them, refitted   -0.050
          enough by first order    2
          refits                   5
        """
        _ = self._uncertainty  # It must have been fitted.
        if not isinstance(threshold, Real) or not np.isfinite(threshold):
            raise ValueError(f"threshold must be a finite number, got {threshold!r}.")
        if not isinstance(max_share, Real) or not 0.0 < max_share < 1.0:
            raise ValueError(f"max_share must be above 0 and below 1, got {max_share!r}.")
        if (conclusion is None) == (rival is None):
            raise ValueError(
                "deciding_rows needs one thing that is to change. (a) Pass a conclusion, such as "
                "'weight[0] - weight[1]'; names are those of the rows of posterior().summary(...). "
                "(b) Pass rival=, a fit with another n_components. Not both."
            )
        if effects is not None and (rival is not None or not isinstance(effects, ClusterRegression)):
            raise ValueError(
                "effects must be what covariate_effects or outcome_differences returned, and goes with the "
                f"name of a conclusion and without a rival; got {effects!r}."
            )
        if rival is None:
            mixtures, number = [self], checked_conclusion(self, conclusion, threshold, interval, effects)
        else:
            check_rival(self, rival, interval)
            mixtures, number = [self, rival], RivalConclusion(self, rival)
        with blas_threads(self.n_jobs):
            given = [own._given_rows(X, sample_weight, own._uncertainty.fitted) for own in mixtures]
            optima = [Optimum(own, rows.counted()) for own, rows in zip(mixtures, given, strict=True)]
            rows, which = optima[0].rows, np.flatnonzero(given[0].which_count())
            if groups is None:
                units = SingleRows(rows, which)
            else:
                units = WholeGroups(rows, which, row_groups(given[0], groups))
            for optimum in optima:
                optimum.estimator._uncertainty.source.check_training_rows(optimum.rows)
            search = GreedySearch(number, optima, float(threshold), units, max_share)

            with self._tracked("deciding_rows") as tracked:
                for _ in tracked(search.steps(), MOST_REFITS):
                    pass
            return search.result()

    # Influence of rows.

    def influence(
        self,
        X: ArrayLike,
        *,
        target: str = "means",
        perturb: str = "location",
        out: NDArray[np.floating] | None = None,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> NDArray[np.floating]:
        """How much each row moves each posterior mean: d E[target] / d x_n, or d E[target] / d w_n.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), Dask collection or source of batches
            Any rows; each is treated as a training point of weight 1 that sits there.

        target : {'log_weights', 'weights', 'means', 'precisions', 'standard_deviations', \
                'correlations', 'covariances', 'scales', 'tails', 'log_tails', 'mean_precision_prior', \
                'covariance_prior'}, default='means'
            Which parameters are moved; for 'covariances' the attribute `covariances_`. With `tails` also
            'scales', and 'tails' and 'log_tails' where they are fitted.

        perturb : {'location', 'weight'}, default='location'
            What changes about the row: where it is, or how often it counts.

        out : ndarray, default=None
            Where to write the result, block by block: a C-contiguous array of its shape, of float64 or
            float32, that shares no memory with X; for example a :class:`numpy.memmap`. None makes one. Not
            with Dask, where the result is lazy.

        groups : array-like of shape (n_samples,) or Dask collection, default=None
            Labels that say which rows belong together, with ``perturb="weight"``. The result is then the
            influence of every group, the weighted sum of that of its rows: of shape (n_groups, ...), in the
            order of ``numpy.unique(groups)``.

        sample_weight : array-like of shape (n_samples,) or Dask collection, default=None
            Weights of the rows in the fit, where there were any; only with `groups`.

        Returns
        -------
        influence : ndarray or Dask array of shape (n_samples, ..., n_features) or (n_samples, ...)
            The dots are the shape of the attribute, of weights and log weights (n_components,), with `noise`
            one more, whose last entry is for noise; 'location' has one axis more, the last, of the features
            of the row. In units of the target, per unit of X ('location') or per row ('weight'): exact
            derivatives of the fit (Equation 14 of the paper, corrected), also where the posterior is not by
            linear response. The influence of the location of a missing value is NaN. Minus the weight
            influence is the effect of deleting the row, to first order (one-step deletion). The prior is held
            fixed, also where its defaults came from X.

        Raises
        ------
        ValueError
            On bad input, an unknown target or perturbation, an `out` that does not fit, fitted arrays that
            were changed since the fit, or a fit that is no strict local optimum.

        See Also
        --------
        deciding_rows : The fewest rows without which a conclusion changes.
        leverage : How much a row moves the whole fit.
        prior_sensitivity : The same question about the prior.

        Examples
        --------
        Without the longest wait for a geyser, 88 minutes, the mean of the long waits would be 0.5 minutes
        shorter. If that wait was a minute longer than noted, the mean is 0.08 minutes longer:

        >>> import numpy as np
        >>> from sklearn_lrvb import LRVBGaussianMixture
        >>> X = np.array([[79, 54, 74, 62, 85, 55, 88, 85, 51, 85,
        ...                54, 84, 78, 47, 83, 52, 62, 84, 52, 79]]).T  # minutes
        >>> mixture = LRVBGaussianMixture(n_components=2, random_state=0).fit(X)
        >>> -mixture.influence([[88]], perturb="weight")[0, 1].round(1)
        array([-0.5])
        >>> mixture.influence([[88]])[0, 1].round(2)
        array([[0.08]])
        """
        uncertainty = self._uncertainty
        check_perturbation(perturb)
        moved = uncertainty.targets[target]
        entries = moved.flat_indices()
        if groups is not None or sample_weight is not None:
            if perturb != "weight" or out is not None:
                raise ValueError("groups and sample_weight go with perturb='weight', and without out.")
            of_groups = functools.partial(influence_of_groups, target=moved)
            return self._of_groups("influence", of_groups, X, sample_weight, groups)[:, entries]
        rows = self._given_rows(X, None, uncertainty.fitted)
        shape = (*entries.shape, self.n_features_in_) if perturb == "location" else entries.shape
        if out is not None and rows.is_lazy:
            raise ValueError(
                "out is for rows in memory or in batches. Of rows on Dask the result is lazy: leave out, and "
                "store it, for example with dask.array.to_zarr or result.store."
            )
        if not rows.is_in_memory:
            functions = list(uncertainty.influence_functions(target))
            each = functools.partial(influence_of_rows, batches=functions, perturb=perturb, entries=entries)
            if out is None:
                return rows.by_array(each, shape)
            return rows.by_array_into(checked_output(out, (rows.n_given, *shape)), each)
        shape = rows.n_samples, *shape
        out = np.empty(shape) if out is None else checked_output(out, shape, rows.X)
        with self._tracked("influence") as tracked:
            if perturb == "weight" and rows.n_samples < moved.size:
                return weight_influence_of_few_rows(rows, uncertainty, moved, entries, out, tracked)
            functions = uncertainty.influence_functions(target, tracked=tracked)
            return influence_of_rows(rows, functions, perturb, entries, out, tracked)

    def _of_groups(self, method, function, X, sample_weight, groups):
        """``function(rows, uncertainty, groups=..., tracked=...)`` of rows of positive weight, by name."""
        if groups is None:
            raise ValueError("sample_weight goes with groups, whose rows it weights: pass groups.")
        uncertainty = self._uncertainty
        given = self._given_rows(X, sample_weight, uncertainty.fitted)
        rows = given.counted()
        along = row_groups(given, groups).along_counted(given, rows)
        with self._tracked(method) as tracked:
            return function(rows, uncertainty, groups=along, tracked=tracked)

    def leverage(
        self, X: ArrayLike, *, groups: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> NDArray[np.float64]:
        """How much each row raises its own score; divided by the number of parameters, Cook's distance.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), Dask collection or source of batches
            Any rows; each is treated as a training point of weight 1 that sits there.

        groups : array-like of shape (n_samples,) or Dask collection, default=None
            Labels that say which rows belong together. The result is then the leverage of every group, of
            shape (n_groups,), in the order of ``numpy.unique(groups)``: the derivative of the sum of the
            scores of its rows, if the weights of all of them grow in proportion.

        sample_weight : array-like of shape (n_samples,) or Dask collection, default=None
            Weights of the rows in the fit, where there were any; only with `groups`.

        Returns
        -------
        leverage : ndarray or Dask array of shape (n_samples,)
            In nats, non-negative: the derivative of the row's score (:meth:`score_samples`) in its weight.
            Over training rows it sums to about the number of parameters that the data determine. Cook's
            distance is leverage over the number of parameters. ``score_samples(X) - leverage(X)`` is, to
            first order, the leave-one-out score (:meth:`loo_score_samples` is closer). Leverage is also the
            posterior variance of the row's score. The theory page "Influence" derives all of this.

        Raises
        ------
        ValueError
            On bad input, fitted arrays that were changed since the fit, or a fit that is no strict local
            optimum.

        See Also
        --------
        loo_score_samples : Scores without the row.
        influence : The effect of a row on every parameter.
        score_samples : The score of which this is the posterior variance.

        Examples
        --------
        Which of the waits for a geyser does the fit lean on most? The shortest of the long ones, 74 minutes:

        >>> import numpy as np
        >>> from sklearn_lrvb import LRVBGaussianMixture
        >>> X = np.array([[79, 54, 74, 62, 85, 55, 88, 85, 51, 85,
        ...                54, 84, 78, 47, 83, 52, 62, 84, 52, 79]]).T  # minutes
        >>> mixture = LRVBGaussianMixture(n_components=2, random_state=0).fit(X)
        >>> leverage = mixture.leverage(X)
        >>> X[leverage.argmax()]
        array([74])
        >>> _, std = mixture.posterior(method="lrvb").score_samples(X)
        >>> np.allclose(leverage, std**2)
        True
        """
        uncertainty = self._uncertainty
        if groups is not None or sample_weight is not None:
            return self._of_groups("leverage", leverages_of_groups, X, sample_weight, groups)
        rows = self._given_rows(X, None, uncertainty.fitted)
        with self._tracked("leverage") as tracked:
            return uncertainty.of_rows(rows, leverages, tracked=tracked)

    def loo_score_samples(
        self, X: ArrayLike, *, sample_weight: ArrayLike | None = None, groups: ArrayLike | None = None
    ) -> NDArray[np.float64]:
        """Score of every training row under the fit to all other rows, or to the rows of all other groups.

        The mean is the leave-one-out cross-validated score, by which numbers of components can be compared.
        The priors are held fixed, also where their defaults came from X. For most rows one step from the fit
        to all rows towards the fit without the row is accurate enough. Where it may not be, more steps are
        made, and where these do not arrive the mixture is fitted again without the row, unless X is a Dask
        collection.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), Dask collection or source of batches
            The training rows.

        sample_weight : array-like of shape (n_samples,) or Dask collection, default=None
            The weights of X in the fit, where there were any. A row is left out with all its weight; one of
            no weight is not left out.

        groups : array-like of shape (n_samples,), default=None
            Labels of rows that belong together, such as patients. Each row is then scored under the fit to
            the rows of all other groups: the mean says how well the rows of a new patient are predicted. Not
            where X is a Dask collection.

        Returns
        -------
        log_likelihood : ndarray or Dask array of shape (n_samples,)
            In nats, one for each row, with `groups` too. The one step is Newton's, and the row is scored
            where it ends: exact for one component without missing values. (Theory page "Influence",
            leave-one-out scores.)

        Raises
        ------
        ValueError
            On bad input, fewer than two groups, X that is not what the mixture was fitted to, fitted arrays
            that were changed since the fit, or a fit that is no strict local optimum.

        Warns
        -----
        UserWarning
            Under ``prior="flat"`` a component may consist of so few rows that it has no proper posterior
            without one of them, or without a group; the score is then NaN. Scores are rough where a refit is
            needed, but did not converge, or was not made: because too many rows or groups need one, or
            because X is a Dask collection.

        See Also
        --------
        leverage : To first order, by how much these are below `score_samples`.
        score_samples : Scores under the fit to all rows.

        Examples
        --------
        Do the waits for a geyser fall into two clusters? Two predict a wait that was left out better than
        one does, by 0.3 nats a row:

        >>> import numpy as np
        >>> from sklearn_lrvb import LRVBGaussianMixture
        >>> X = np.array([[79, 54, 74, 62, 85, 55, 88, 85, 51, 85,
        ...                54, 84, 78, 47, 83, 52, 62, 84, 52, 79]]).T  # minutes
        >>> mixture = LRVBGaussianMixture(n_components=2, random_state=0).fit(X)
        >>> one = LRVBGaussianMixture().fit(X)
        >>> print(f"{mixture.loo_score_samples(X).mean() - one.loo_score_samples(X).mean():.1f}")
        0.3
        """
        uncertainty = self._uncertainty
        rows = self._given_rows(X, sample_weight, uncertainty.fitted)
        if groups is not None and rows.is_lazy:
            raise ValueError(
                "groups needs rows in memory or in batches, but X is on Dask. (a) Pass a function that "
                "yields the computed partitions one by one, and groups in memory. (b) Pass no groups, for "
                "scores without each row."
            )
        left_out = None if groups is None else row_groups(rows, groups)
        if left_out is not None and len(left_out) == 1:
            raise ValueError(
                "All rows of X are of one group, and nothing is left without it: pass more groups."
            )
        counted = rows.counted()
        uncertainty.source.check_training_rows(counted)
        with self._tracked("loo_score_samples") as tracked:
            scores, without_score, rough = (
                scores_without_rows(rows, counted, uncertainty, tracked)
                if left_out is None
                else scores_without_groups(rows, counted, left_out, uncertainty, tracked)
            )
        messages = (
            "cannot be left out ({first}): a component has no proper posterior without them, and their score "
            "is NaN. (a) Use prior='learned'. (b) Lower n_components.",
            "move the fit further than one step leads ({first}), and their score is rough. (a) Refit without "
            "them, and score them. (b) Lower n_components.",
        )
        for numbers, message in zip((without_score, rough), messages, strict=True):
            if numbers.size:
                unit, names = ("row", range(rows.n_given)) if left_out is None else ("group", left_out.names)
                which = message.format(first=f"the first is {unit} {names[numbers[0]]}")
                warn_caller(f"{numbers.size} of {len(names)} {unit}s {which}")
        return scores
