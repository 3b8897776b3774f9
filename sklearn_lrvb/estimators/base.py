"""BayesianMixture: the methods and fitted attributes that all mixture estimators have.

They check their arguments here (`arguments`), and compute in the room `answers` from the state of the fit, a
`PosteriorUncertainty`.
"""

from __future__ import annotations

import contextlib
import copy
import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral, Real
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

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
    NO_GROUPS,
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
from sklearn_lrvb.answers.partitions import (
    PartitionPosterior,
    check_sizes,
    note_of_number,
    number_of_rows,
    partition_posterior,
)
from sklearn_lrvb.answers.prior_sensitivity import prior_reading
from sklearn_lrvb.answers.row_effects import SingleRows, WholeGroups
from sklearn_lrvb.answers.targets import NoCovarianceError, named_entries
from sklearn_lrvb.answers.uncertainty import FitCourse, InformationSource, PosteriorUncertainty, read_only
from sklearn_lrvb.caller_warnings import warn_caller
from sklearn_lrvb.estimators import attributes
from sklearn_lrvb.estimators.arguments import (
    check_perturbation,
    checked_method,
    checked_number,
    checked_output,
    checked_targets,
    holding,
    require_rows_first,
    warn_of_weights_as_y,
)
from sklearn_lrvb.estimators.attributes import ComputedAttribute
from sklearn_lrvb.estimators.callbacks import CallbackSupportMixin, somebody_waits, told_of
from sklearn_lrvb.mixture.model import occupied
from sklearn_lrvb.mixture.prediction import (
    most_probable_components,
    responsibilities_of_rows,
    score_sums,
    scores_of_rows,
)
from sklearn_lrvb.reports import datasets_of_rows, in_arviz, require_arviz, require_interval, required_pandas
from sklearn_lrvb.rows import Tracked, blas_threads, given_rows, require_table, row_groups, untracked
from sklearn_lrvb.sampling.posterior_check import LEAST_DRAWS, PosteriorCheck
from sklearn_lrvb.sampling.sampler import PosteriorSampler

if TYPE_CHECKING:
    import arviz
    import pandas as pd
    import xarray as xr

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
    _column_notes : tuple of str
        What is doubtful about the columns, and what to do: `fit` warns of it, and answers repeat it.
    _fitted_class : type
        That of the mixture in which a fit ends, a `Fitted`.
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
    _column_notes: tuple[str, ...] = ()
    _fitted_class: ClassVar[type[Fitted]]
    _ways_to_a_fit = "Call fit."
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
            warn_caller(" ".join(self._column_notes))

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
        """The same, without those of weight zero."""
        given = self._given_again(X, sample_weight, fitted)
        return None if given is None else given.counted()

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
        self, X: ArrayLike, *, return_std: bool = False, method: str = "auto"
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
        fitted, method = self._fitted, checked_method(method)
        rows = self._given_rows(X, None, fitted)
        responsibilities = responsibilities_of_rows(rows, fitted.posterior)
        if not return_std:
            return responsibilities
        shape = (fitted.posterior.n_labels,)
        return responsibilities, self._deviations_of_rows(PROBABILITIES, rows, method, shape)

    def _deviations_of_rows(self, quantity, rows, method, shape=()):
        """Posterior standard deviations of a `RowQuantity`, by what answers questions about parameters."""
        answer = self._answer(method)
        if method == "auto" and isinstance(answer, LinearResponse) and answer.is_doubtful:
            warn_caller(
                f"{quantity.method}: the standard deviations are by linear response. {answer.note} "
                "(method='lrvb' takes it as it is, without this warning.)"
            )
        return answer.deviations_of_rows(rows, quantity, shape)

    def score_samples(
        self, X: ArrayLike, *, return_std: bool = False, method: str = "auto"
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
        [ -1.1 -14.1] +- [0.1 1.8]
        """
        fitted, method = self._fitted, checked_method(method)
        rows = self._given_rows(X, None, fitted)
        scores = scores_of_rows(rows, fitted.posterior)
        if not return_std:
            return scores
        return scores, self._deviations_of_rows(SCORES, rows, method)

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

    def _answer(self, method="auto", X=None, sample_weight=None, random_state=None, design=NO_GROUPS):
        """What answers a question about the parameters: an `Answer` of `answers.error_bars`.

        Parameters
        ----------
        design : tuple, the groups, strata and sizes of strata that the user has passed
        """
        is_grouped = are_given(design)
        method = checked_method(method, *["mean_field"] * is_grouped, *SAMPLING_METHODS)
        if is_grouped and method not in ("auto", *SAMPLING_METHODS):
            raise ValueError(
                f"method={method!r} takes rows as independent, and groups say that they are not: use "
                "method='sandwich' (the default with groups) or method='bootstrap', or leave groups out."
            )
        fitted = self._uncertainty.fitted
        if is_grouped or method in SAMPLING_METHODS:
            given = self._given_again(X, sample_weight, fitted)
            return answer_of_samples(self, method, given, random_state, design)
        rows = self._training_rows(X, sample_weight, fitted)
        return answer_of_posterior(self, method, rows, random_state)

    def posterior_summary(
        self,
        X: ArrayLike | None = None,
        *,
        target: str | Sequence[str] | None = None,
        interval: float = 0.95,
        min_count: float = 0.5,
        method: str = "auto",
        sample_weight: ArrayLike | None = None,
        n_draws: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        groups: ArrayLike | None = None,
        strata: ArrayLike | None = None,
        strata_sizes: Mapping | float | None = None,
    ) -> pd.DataFrame:
        """Means, standard deviations and credible intervals of the parameters, as a table.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), Dask collection or source of batches, default=None
            The training rows, for all but 'lrvb'. A fit to up to 64 MiB of rows in memory still has them.

        target : {'log_weights', 'weights', 'means', 'precisions', 'standard_deviations', 'correlations', \
                'covariances', 'scales', 'tails', 'log_tails', 'mean_precision_prior', \
                'covariance_prior', 'tables', 'all'} or a list, default=None
            Which parameters, in this order; of matrices the unique entries. 'all' is `posterior_names_`; None
            is weights, means, standard deviations, fitted tails and tables. Also the name of an entry, such
            as "mean[0,x1]", or of a difference, "mean[0,x1] - mean[1,x1]".

        interval : float, default=0.95
            Probability of the central credible interval, above 0 and below 1.

        min_count : float, default=0.5
            Components with fewer expected rows are left out; 0 shows all.

        method : {'auto', 'lrvb', 'exact', 'sandwich', 'bootstrap'}, default='auto'
            'lrvb': linear response. 'exact': the exact posterior. 'auto': the first where it is good, else
            the second (:meth:`sample_posterior`). With `groups`, 'sandwich' (then also 'auto') and
            'bootstrap' give standard errors and confidence intervals, by Student's t with as many degrees of
            freedom as groups, less one for every stratum (:meth:`get_posterior_covariance`).

        sample_weight : array-like of shape (n_samples,) or Dask collection, default=None
            The weights of X in the fit, where there were any.

        n_draws, random_state, groups, strata, strata_sizes : default=None
            Number and seed of draws or resamples; which rows go together (:meth:`get_posterior_covariance`).

        Returns
        -------
        summary : pandas.DataFrame
            A row for every parameter, by names such as "weight[0]" and "covariance[0,x0,x1]", and the
            columns, all but the ratio in units of the parameter:

            * mean, sd: posterior mean and standard deviation (with few rows the mean of a covariance is above
              `covariances_`); by 'sandwich' and 'bootstrap', the estimate and its standard error.
            * mean_field_sd: the standard deviation under q itself; ratio: sd over this one.
            * lower, upper: limits of the central interval, within the parameter's range.

            It is displayed rounded; its numbers have all digits. ``summary.attrs`` has what is said above and
            below: "fit" describes the fit, "note" says how good the table is, "prior" whether the prior
            matters, "columns" which columns mislead. (Theory page "Error bars of the mixture".) With too few
            rows sd is inf, a mean that does not exist inf or NaN, and "median" a column. Student's t with two
            degrees of freedom or fewer has no sds; by 'lrvb' intervals then have no upper end.

        Raises
        ------
        ImportError
            pandas is not installed.
        ValueError
            Unknown target or method, number outside its range, covariances that do not exist, X that is
            missing or not what was fitted, arrays changed since the fit, or a fit that is no strict optimum.
        MemoryError
            The system is too large; the message names the size and the way out.

        See Also
        --------
        get_posterior_covariance : Covariances between parameters.
        sample_posterior : Draws, for functions of the parameters.

        Examples
        --------
        Mean lengths of the petals of two kinds of irises:

        >>> from sklearn.datasets import load_iris
        >>> from sklearn_lrvb import LRVBGaussianMixture
        >>> X = load_iris().data[:, 2:3]  # centimetres
        >>> mixture = LRVBGaussianMixture(n_components=2, random_state=0).fit(X)
        >>> summary = mixture.posterior_summary(target="means")
        >>> summary["mean"].round(1).tolist(), summary["sd"].round(2).tolist()
        ([4.9, 1.5], [0.08, 0.03])
        >>> print(summary.attrs["note"])
        Linear response is good: sds within 10 %, means within 0.2 sd.
        """
        uncertainty = self._uncertainty
        known, counts = uncertainty.targets, uncertainty.fitted.posterior.counts
        targets = self._checked_targets(known.reported if target is None else target)
        require_interval(interval)
        holding(counts, min_count)
        pd = required_pandas("posterior_summary")
        from sklearn_lrvb.reports.posterior_summary import (
            MEDIAN,
            PosteriorSummary,
            summary_rows,
            without_moments,
        )

        n_draws = None if n_draws is None else checked_number(n_draws)
        targets, left_out = _of_possible_size(uncertainty, targets, target is None)
        answer = self._answer(method, X, sample_weight, random_state, (groups, strata, strata_sizes))
        margins_of = answer.margins_of(targets, n_draws)
        mean_field_information, tables, reported = uncertainty.of_mean_field, {}, []
        for name in targets:
            try:
                margins = margins_of(name)
                mean_field = uncertainty.margins(name, mean_field_information)
            except NoCovarianceError as error:
                if target is not None:
                    raise
                left_out += f" Standard deviations are left out. {error}"
                continue
            labels, limits = known[name].labels(self._feature_names), margins.interval(interval)
            rows = summary_rows(labels, margins.mean, margins.deviation, mean_field.deviation, limits)
            kept = known[name].is_reported(min_count)
            tables[name] = rows[kept]
            reported.append((margins, kept))
        summary = PosteriorSummary(pd.concat(tables.values()))
        if not np.isfinite(summary["sd"]).all():
            medians = [margins.interval(0.0)[0][kept] for margins, kept in reported]
            summary[MEDIAN] = np.concatenate(medians)
        summary.attrs["fit"] = f"{_fit_in_a_line(self, min_count)} Error bars by method={answer.name!r}."
        summary.attrs["note"] = answer.note + left_out + without_moments(summary)
        sds = np.concatenate([margins.deviation for margins, _ in reported])
        summary.attrs["prior"] = prior_reading(uncertainty, self._feature_names, list(tables), sds)
        summary.attrs["columns"] = " ".join(self._column_notes)
        return summary

    def _checked_targets(self, target):
        """What a user's target stands for: list of str, and of Entries."""
        known = self._uncertainty.targets
        entries = functools.partial(named_entries, targets=known, feature_names=self._feature_names)
        return checked_targets(target, known.table, known.parameters, entries)

    def get_posterior_covariance(
        self,
        X: ArrayLike | None = None,
        *,
        target: str | Sequence[str] = "all",
        method: str = "auto",
        sample_weight: ArrayLike | None = None,
        n_draws: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        groups: ArrayLike | None = None,
        strata: ArrayLike | None = None,
        strata_sizes: Mapping | float | None = None,
    ) -> NDArray[np.float64]:
        """Posterior covariance of some of the parameters.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), Dask collection or source of batches, default=None
            The training rows, for all but 'lrvb' and 'mean_field', unless the fit still has them
            (:meth:`sample_posterior`); also where a pickle was too large to carry the matrix behind error
            bars.

        target : {'log_weights', 'weights', 'means', 'precisions', 'standard_deviations', 'correlations', \
                'covariances', 'scales', 'tails', 'log_tails', 'mean_precision_prior', \
                'covariance_prior', 'tables', 'all'} or a list, default='all'
            'all' is those of `posterior_names_`; latent classes have 'tables' beside weights. Of matrices the
            unique entries, in that order; or names of entries and differences (:meth:`posterior_summary`).

        method : {'auto', 'lrvb', 'exact', 'mean_field', 'sandwich', 'bootstrap'}, default='auto'
            'lrvb': linear response (paper, Equation 11). 'exact': the exact posterior, by draws. 'auto': the
            first where it is good, and the second where not, as in :meth:`sample_posterior`; with `groups`
            'sandwich'. 'mean_field': the covariance of q itself, in which components and kinds of parameters
            are independent. 'sandwich': how the estimates vary from one sample of rows, or of `groups`, to
            another, whatever their distribution, by the squares of their weight influences (the infinitesimal
            jackknife; with groups the cluster-robust CR1). 'bootstrap': the same, by refits to resamples.

        sample_weight : array-like of shape (n_samples,) or Dask collection, default=None
            The weights of X in the fit, where there were any.

        n_draws : int, default=None
            Number of draws of the exact posterior, at least, or of resamples; None is as many draws as it
            takes to converge, or 200 resamples.

        random_state : int, RandomState instance or None, default=None
            Seed of these; None takes draws of the posterior that were made before, if there are any.

        groups : array-like of shape (n_samples,) or Dask collection, default=None
            Labels that say which rows belong together, such as patients: at least two groups, better fifty.
            (Guide "My rows belong together".) Without groups, a weight of 3 counts as three rows; for survey
            weights of single persons pass ``range(len(X))``.

        strata, strata_sizes : default=None
            Of a survey: the stratum of every row; and a mapping from each stratum to the number of its groups
            in the population (without `strata` one number), for the finite population correction. Without
            `groups` every row is a group of its own.

        Returns
        -------
        covariance : ndarray of shape (d, d)
            Symmetric, in products of the targets' units.

        Raises
        ------
        ValueError
            Unknown target or method; fitted arrays that were changed since the fit; X that is needed
            and missing, or not what was fitted; or a fit that is no strict local optimum.
        MemoryError
            The system is too large; the message names the size and the way out.

        See Also
        --------
        posterior_summary : Standard deviations and intervals as a table.
        sample_posterior : Draws from this posterior.

        Examples
        --------
        Covariance of the mean widths of the petals of two kinds of irises, in squared millimetres. Mean field
        takes the kind of every petal as known; linear response adds what the doubtful ones contribute:

        >>> from sklearn.datasets import load_iris
        >>> from sklearn_lrvb import LRVBGaussianMixture
        >>> X = 10.0 * load_iris().data[50:, 3:]  # millimetres
        >>> mixture = LRVBGaussianMixture(n_components=2, random_state=0).fit(X)
        >>> mixture.get_posterior_covariance(target="means", method="lrvb").round(2)
        array([[0.46, 0.19],
               [0.19, 0.25]])
        >>> mixture.get_posterior_covariance(target="means", method="mean_field").round(2)
        array([[0.15, 0.  ],
               [0.  , 0.09]])
        """
        targets = self._checked_targets(target)
        design = groups, strata, strata_sizes
        method = checked_method(method, "mean_field", *SAMPLING_METHODS)
        n_draws = None if n_draws is None else checked_number(n_draws)
        if method == "mean_field" and not are_given(design):
            rows = self._training_rows(X, sample_weight, self._uncertainty.fitted)
            return self._uncertainty.covariance(targets, "mean_field", rows)
        answer = self._answer(method, X, sample_weight, random_state, design)
        return answer.covariance(targets, n_draws)

    def sample_posterior(
        self,
        X: ArrayLike | None = None,
        *,
        n_draws: int = 1,
        random_state: int | np.random.RandomState | None = None,
        method: str = "auto",
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        strata: ArrayLike | None = None,
        strata_sizes: Mapping | float | None = None,
    ) -> dict[str, NDArray[np.float64]]:
        """Draws of the parameters: by linear response where that is good, and exact where not.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), Dask collection or source of batches, default=None
            The training rows, for all but 'lrvb'. A fit to up to 64 MiB of rows in memory still has them.

        n_draws : int, default=1
            Number of draws, at least one.

        random_state : int, RandomState instance or None, default=None
            Seed of the draws, not the estimator's own; chains of the exact posterior have one if it is None.

        method : {'auto', 'lrvb', 'exact', 'sandwich', 'bootstrap'}, default='auto'
            'lrvb': linear response. 'exact': the exact posterior, by Markov chains that run until the slowest
            parameter has enough independent draws, which takes ten to a hundred times as long as the fit.
            'sandwich' and 'bootstrap': not the posterior, but estimates as they vary from one sample of
            `groups` to another, by the influence of the groups or by a refit for every draw. 'auto':
            'sandwich' with `groups`; without, 'lrvb' where :meth:`posterior_check` calls it good or X is not
            known, and else 'exact', unless it takes more than about a minute.

        sample_weight : array-like of shape (n_samples,) or Dask collection, default=None
            The weights of X in the fit, where there were any.

        groups, strata, strata_sizes : default=None
            Which rows belong together, as in :meth:`get_posterior_covariance`.

        Returns
        -------
        draws : dict of ndarray
            "weights", which sum to one, that of noise last; "means", in units of X; "precisions" and
            "covariances", each other's inverses; with a first axis of n_draws. Of Student's t these inverses
            are "scales", "covariances" nu/(nu - 2) times as large, and fitted nu are "tails".

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
            The chains have not converged; or some resamples are left out, so that draws are fewer.

        See Also
        --------
        posterior_summary : Intervals of every parameter.
        sample : Draws of rows rather than of parameters.

        Notes
        -----
        By linear response, weights and precisions come from the families of q, with its variances and
        correlations, and means from normal distributions given the precisions.

        The exact posterior has other modes, one for every order of the components at least. Draws get the
        order of the fit back; chains that leave for quite another mode are left out, if the others suffice.
        These draws are kept: the second question costs nothing. (Theory page "The exact posterior".)

        Examples
        --------
        By how many minutes are long waits for a geyser longer than short ones? Any function of the
        parameters has a posterior:

        >>> import numpy as np
        >>> from sklearn_lrvb import LRVBGaussianMixture
        >>> X = np.array([[79, 54, 74, 62, 85, 55, 88, 85, 51, 85,
        ...                54, 84, 78, 47, 83, 52, 62, 84, 52, 79]]).T  # minutes
        >>> mixture = LRVBGaussianMixture(n_components=2, random_state=0).fit(X)
        >>> means = mixture.sample_posterior(n_draws=4000, random_state=0, method="lrvb")["means"]
        >>> longer = means[:, 1, 0] - means[:, 0, 0]
        >>> print(f"{longer.mean():.0f} +- {longer.std():.0f}")
        27 +- 2
        """
        n_draws = checked_number(n_draws)
        answer = self._answer(method, X, sample_weight, random_state, (groups, strata, strata_sizes))
        return answer.parameters(n_draws, check_random_state(random_state)).reported()

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
            Seed of the draws, as in :meth:`sample_posterior`.

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
        sample_posterior : Draws, exact where that is needed.
        posterior_summary : A table of error bars, exact where that is needed.

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
        return check_of_posterior(self, sampler, rows, int(n_draws), check_random_state(random_state))

    def to_arviz(
        self,
        X: ArrayLike | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        n_draws: int = 1000,
        random_state: int | np.random.RandomState | None = None,
        method: str = "auto",
        groups: ArrayLike | None = None,
        strata: ArrayLike | None = None,
        strata_sizes: Mapping | float | None = None,
    ) -> xr.DataTree | arviz.InferenceData:
        """Draws of the posterior, and the log likelihood of every training row, for ArviZ.

        Its plots, tables and comparisons of models then work as for a model that was sampled.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), default=None
            The training rows, for the log likelihood by row that ``loo`` of ArviZ needs. None leaves the
            groups about rows out.

        sample_weight : array-like of shape (n_samples,), default=None
            The weights of X in the fit, where there were any.

        n_draws : int, default=1000
            Number of draws, those of :meth:`sample_posterior`, in one chain.

        random_state : int, RandomState instance or None, default=None
            Seed of the draws, as in :meth:`sample_posterior`.

        method : {'auto', 'lrvb', 'exact', 'sandwich', 'bootstrap'}, default='auto'
            Which draws, as in :meth:`sample_posterior`.

        groups, strata, strata_sizes : default=None
            Which rows belong together, as in :meth:`get_posterior_covariance`.

        Returns
        -------
        data : xarray.DataTree or arviz.InferenceData
            A DataTree for ArviZ 1.0 and later, where arviz-base is installed; otherwise the InferenceData of
            arviz 0.x. The groups, each variable with the dimensions chain (of length one) and draw in front:

            * posterior: "weights" (component; with noise label, which has "0", "1", ..., "noise"); "means"
              (component, feature); "precisions", "covariances" and, of heavy tails, "scales" with the axes of
              the attribute, named component, feature and other_feature; fitted "tails" (component where each
              has its own).
            * log_likelihood: "X" (row), in nats. Rows of weight zero are left out.
            * observed_data: "X" (row, feature); constant_data: "sample_weight" (row), where it was given.

        Raises
        ------
        ImportError
            No ArviZ is installed.
        ValueError
            `n_draws` is not a positive integer, X is not what the mixture was fitted to, fitted arrays were
            changed since the fit, or the fit is no strict local optimum.
        MemoryError
            The system is too large, or the log likelihood takes more than 4 GiB; the message names the size
            and the way out.

        See Also
        --------
        sample_posterior : The same draws as arrays.
        loo_score_samples : Leave-one-out scores without draws.

        Notes
        -----
        A row of weight w counts as w rows, which ``loo`` leaves out together. It differs from
        :meth:`loo_score_samples` by the order of ``leverage(X)``: the logarithm of an average over draws, in
        place of a density at averages. (Theory page "Influence", leave-one-out scores.) Leave components
        without rows, whose draws are the prior's, out of plots:
        ``data.posterior.sel(component=mixture.weights_.argsort()[::-1][:mixture.n_occupied_])``.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from sklearn_lrvb import LRVBGaussianMixture
        >>> X = load_iris(as_frame=True).data
        >>> mixture = LRVBGaussianMixture(n_components=3, random_state=0).fit(X)
        >>> data = mixture.to_arviz(X, random_state=0)  # doctest: +SKIP
        >>> dict(data.posterior["means"].sizes)  # doctest: +SKIP
        {'chain': 1, 'draw': 1000, 'component': 3, 'feature': 4}
        >>> means = data.posterior["means"].sel(component=0, feature="petal width (cm)")  # doctest: +SKIP
        """
        sampler = PosteriorSampler(self._uncertainty)
        n_draws = checked_number(n_draws)
        checked_method(method, *SAMPLING_METHODS)
        require_arviz()
        fitted = sampler.fitted
        if X is not None:
            require_table(X, "to_arviz, which gives the log likelihood of every row under every draw,")
            given = self._given_rows(X, sample_weight, fitted)
            rows, numbers = given.counted(), np.flatnonzero(given.which_count())
            sampler.require_log_likelihood(n_draws, rows)
        answer = self._answer(method, X, sample_weight, random_state, (groups, strata, strata_sizes))
        parameters = answer.parameters(n_draws, check_random_state(random_state))
        datasets = {"posterior": self._posterior_dataset(parameters.reported())}
        if X is not None:
            log_likelihood = sampler.log_likelihood(rows, parameters)
            names = self._feature_names
            datasets |= datasets_of_rows(log_likelihood, rows.X, rows.sample_weight, numbers, names)
        return in_arviz(datasets)

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
            How parameters are drawn, as in :meth:`sample_posterior`.

        max_rows : int, default=1000
            Most rows from which clusters are found: a random sample, if there are more. All others are placed
            in these clusters, by a pass.

        random_state : int, RandomState instance or None, default=None
            Seed of the draws and of the search, not the estimator's own.

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
        sample_posterior : The draws of the parameters.

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
            answer = answer_of_posterior(self, method, rows, random_state)
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
        if X is None:
            raise ValueError("partition_posterior needs the training rows: pass X.")
        given = self._given_rows(X, sample_weight, uncertainty.fitted)
        rows = given.counted()
        uncertainty.source.check_training_rows(rows)
        check_sizes(uncertainty.fitted.posterior, n_draws, max_rows, number_of_rows(rows))
        generator = check_random_state(random_state)
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
            ``posterior_summary(target=...)``, such as "weight[0]", for the value in the fit; a difference of
            two, such as "mean[1,x0] - mean[0,x0]"; or a smooth function of the fitted mixture (of
            `predict_proba`, not of `predict`) that returns a number. It is called with copies of the mixture
            that have other `weights_`, `means_`, `covariances_`, `precisions_` (or `tables_`) and
            `lower_bound_`. They predict, without error bars.

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

        rival : fitted estimator of the same kind, default=None
            In place of a conclusion: a fit to the same rows with another number of components. The conclusion
            is which has the higher `log_evidence_`, of one labelling each. With Dirichlet weights that is the
            more probable one if P(K) is in proportion to 1/K! before, as in `number_of_clusters`.

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
                "'weight[0] - weight[1]'; names are those of the rows of posterior_summary(target=...). "
                "(b) Pass rival=, a fit with another n_components. Not both."
            )
        if rival is None:
            mixtures, number = [self], checked_conclusion(self, conclusion, threshold, interval)
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
            derivatives of the fit (Equation 14 of the paper, corrected), without refitting. The influence of
            the location of a missing value is NaN. Minus the weight influence is the effect of deleting the
            row, to first order (one-step deletion). The prior is held fixed, also where its defaults came
            from X.

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
        >>> _, std = mixture.score_samples(X, return_std=True, method="lrvb")
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
        to all rows towards the fit without the row is accurate enough. Where it may not be, the mixture is
        fitted again without the row, unless X is a Dask collection. With a few hundred rows and clusters that
        overlap, that takes up to some seconds.

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


def _of_possible_size(uncertainty, targets, is_default):
    """The targets, without those of the default table that need too large a matrix; and a note, str."""
    try:
        uncertainty.require_sizes(targets)
    except MemoryError as error:
        kept = [name for name in targets if name in ("weights", "means")]
        if not is_default or kept == targets:
            raise
        uncertainty.require_sizes(kept)
        left_out = " and ".join(name.replace("_", " ") for name in targets if name not in kept)
        return kept, f" Left out: {left_out}. {error}"
    return targets, ""


def _fit_in_a_line(mixture, min_count):
    """The fit in a line: rows, components and whether they are left out, convergence and bound; str."""
    posterior = mixture._uncertainty.fitted.posterior
    held = np.count_nonzero(posterior.counts >= min_count)
    components = f"{len(posterior.counts)} component{'s' * (len(posterior.counts) > 1)}"
    if held < len(posterior.counts):
        others = "no rows" if min_count <= 0.5 else f"fewer than {min_count:g} rows"
        components = f"{held} of {components} (the others hold {others}; min_count=0 shows them)"
    end = "converged after" if mixture.converged_ else "did not converge in"
    return (
        f"{posterior.label_counts.sum():.10g} rows, {components}. The fit {end} {mixture.n_iter_} "
        f"iteration{'s' * (mixture.n_iter_ != 1)}, lower bound {mixture.lower_bound_:.2f}."
    )
