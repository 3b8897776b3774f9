"""Draws of the posterior, by linear response and exact: methods of mixture estimators.

They check their arguments here (`arguments`) and compute in `posterior_sampling`.
"""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from sklearn_lrvb.answers.groups import groups_that_count
from sklearn_lrvb.caller_warnings import warn_caller
from sklearn_lrvb.estimators.answers import (
    Bootstrap,
    Exact,
    IndependentRows,
    LinearResponse,
    Sandwich,
)
from sklearn_lrvb.estimators.arguments import checked_method, checked_number
from sklearn_lrvb.estimators.fitted import FittedState
from sklearn_lrvb.reports import dataset, in_arviz, require_arviz
from sklearn_lrvb.rows import require_table, row_groups
from sklearn_lrvb.sampling.exact import ExactPosterior, seconds_of_exact
from sklearn_lrvb.sampling.posterior_check import (
    LEAST_DRAWS,
    PosteriorCheck,
    checked_posterior,
)
from sklearn_lrvb.sampling.sampler import PosteriorSampler

if TYPE_CHECKING:
    import arviz
    import xarray as xr


# What "auto" does without being asked: an exact posterior of about so many seconds, and a check of so many
# parameters, which factors a matrix and takes about a minute too.
_MOST_SECONDS, _MOST_PARAMETERS = 60.0, 9000

OF_SAMPLES = "sandwich", "bootstrap"  # Methods that are about the variation from sample to sample.

# The groups, strata and sizes of strata that a user has not passed.
NO_GROUPS = (None, None, None)


class SamplingMethods(FittedState):
    """Methods of a mixture estimator about draws of its posterior. A subclass has `_posterior_dataset`."""

    def _posterior_dataset(self, draws):
        """Draws of the parameters for ArviZ, from arrays by name with draws first: xarray.Dataset."""
        raise NotImplementedError

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
        25 +- 4
        """
        n_draws = checked_number(n_draws)
        answer = self._answer(method, X, sample_weight, random_state, (groups, strata, strata_sizes))
        return answer.parameters(n_draws, check_random_state(random_state)).reported()

    def _answer(self, method="auto", X=None, sample_weight=None, random_state=None, groups=NO_GROUPS):
        """What answers a question about the parameters: Answer.

        Parameters
        ----------
        groups : tuple, the groups, strata and sizes of strata that the user has passed
        """
        if method in OF_SAMPLES or are_given(groups):
            return self._answer_of_samples(method, X, sample_weight, random_state, groups)
        method = checked_method(method, *OF_SAMPLES)
        rows = self._training_rows(X, sample_weight, self._uncertainty.fitted)
        return self._answer_of_posterior(method, rows, random_state)

    def _answer_of_posterior(self, method, rows, random_state):
        """What answers a question about the posterior, given the training rows that count or None: Answer."""
        uncertainty = self._uncertainty
        if rows is not None:
            uncertainty.source.check_training_rows(rows)
        if method == "lrvb":
            known = uncertainty.verdict
            note = (
                "Linear response; posterior_check says how good it is." if known is None else known.sentence
            )
            return LinearResponse(self, rows, note)
        known_rows = uncertainty.source.training_rows() if rows is None else rows
        sampler = PosteriorSampler(uncertainty, known_rows)
        if method == "exact":
            if self._kept_exact(random_state) is None:
                require_rows(known_rows, method)
                sampler.checked_rows(known_rows)
            return self._exact(sampler, known_rows, random_state)
        note = self._note_of_linear_response(sampler, known_rows, random_state)
        return LinearResponse(self, rows, note) if note else self._exact(sampler, known_rows, random_state)

    def _answer_of_samples(self, method, X, sample_weight, random_state, groups):
        """What answers a question about the variation from sample to sample: Answer."""
        if checked_method(method, "mean_field", *OF_SAMPLES) not in ("auto", *OF_SAMPLES):
            raise ValueError(
                f"method={method!r} takes rows as independent, and groups say that they are not: use "
                "method='sandwich' (the default with groups) or method='bootstrap', or leave groups out."
            )
        source, fitted = self._uncertainty.source, self._uncertainty.fitted
        given = self._given_again(X, sample_weight, fitted)
        given = source.training_rows() if given is None else given
        require_rows(given, "sandwich" if method == "auto" else method)
        rows = given.counted()
        source.check_training_rows(rows)
        if method == "sandwich" and not are_given(groups):
            return IndependentRows(self, rows)
        along = row_groups(given, *groups).along_counted(given, rows)
        found = groups_that_count(rows, fitted.posterior, along)
        if method == "bootstrap":
            return Bootstrap(self, rows, found, random_state)
        return Sandwich(self, rows, found)

    def _note_of_linear_response(self, sampler, rows, random_state):
        """What to say of linear response where "auto" takes it; None where it takes the exact posterior."""
        n_parameters, is_known = sampler.posterior.n_coefficients, self._uncertainty.verdict is not None
        reason = sampler.why_not_exact()
        if reason is not None:
            return f"Linear response, not checked. {reason}"
        if rows is None and not is_known:
            return "Linear response, not checked: posterior_check(X), with the training rows, checks it."
        if n_parameters > _MOST_PARAMETERS and not is_known:
            return (
                f"Linear response, not checked: it has {n_parameters} parameters, and a check of more than "
                f"{_MOST_PARAMETERS} takes minutes. posterior_check(X) makes it."
            )
        verdict = self._known_verdict(sampler, rows)
        if verdict.state == "good":
            return verdict.sentence
        if self._kept_exact(random_state) is not None:
            return None
        if rows is None:
            return (
                f"{verdict.sentence} The exact posterior needs the training rows: posterior_summary(X), with "
                "these, computes it."
            )
        seconds = seconds_of_exact(sampler.posterior, rows.n_samples, verdict.state)
        if seconds > _MOST_SECONDS:
            return (
                f"{verdict.sentence} The exact posterior would take about {seconds / 60.0:.0f} "
                'minutes: ask for it by method="exact".'
            )
        return None

    def _verdict_of_linear_response(self):
        """What to say of error bars by linear response, and where to find those that the table has: str."""
        rows = self._uncertainty.source.training_rows()
        note = self._note_of_linear_response(PosteriorSampler(self._uncertainty, rows), rows, None)
        return (
            note or f"{self._uncertainty.verdict.sentence} posterior_summary draws from the exact posterior."
        )

    def _exact(self, sampler, rows, random_state):
        """The exact posterior, computed or kept: Answer."""
        found = self._kept_exact(random_state)
        if found is None:
            # Without a seed of the user's the fit has one: its answers are the same in every session.
            generator = check_random_state(0 if random_state is None else random_state)
            seed = int(generator.randint(2**63, dtype=np.uint64))
            state = self._known_verdict(sampler, rows).state
            found = self._tracked(
                "exact_posterior", lambda tracked: ExactPosterior(sampler, rows, seed, state, tracked)
            )
            own_seed = random_state if isinstance(random_state, Integral) else None
            first = self._uncertainty.exact[:1]
            self._uncertainty.exact = (*first, (0 if random_state is None else own_seed, found))
        if not found.has_converged:
            warn_caller(found.note)
        return Exact(self, rows, found)

    def _kept_exact(self, random_state):
        """The exact posterior of a seed, if it is kept; without a seed the first one. None if there is none.

        So what is asked without a seed has the same answer, whatever is asked with seeds in between.
        """
        kept = self._uncertainty.exact
        if isinstance(random_state, Integral):
            return next((found for seed, found in kept if seed == random_state), None)
        return kept[0][1] if random_state is None and kept else None

    def _known_verdict(self, sampler, rows):
        """The `Verdict` of the fit's check, made once."""
        if self._uncertainty.verdict is None:
            self._uncertainty.verdict = self._check(sampler, rows, 0, np.random.RandomState(0)).decided
        return self._uncertainty.verdict

    def _check(self, sampler, rows, n_draws, random_state):
        return self._tracked(
            "posterior_check",
            lambda tracked: checked_posterior(
                sampler, rows, n_draws, random_state, self.posterior_names_, tracked
            ),
        )

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
        Twenty waits for a geyser do not say much: the posterior is skew.

        >>> import numpy as np
        >>> from sklearn_lrvb import LRVBGaussianMixture
        >>> X = np.array([[79, 54, 74, 62, 85, 55, 88, 85, 51, 85,
        ...                54, 84, 78, 47, 83, 52, 62, 84, 52, 79]]).T  # minutes
        >>> mixture = LRVBGaussianMixture(n_components=2, random_state=0).fit(X)
        >>> mixture.posterior_check(X, random_state=0).state
        'wrong'
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
        check = self._check(sampler, rows, int(n_draws), check_random_state(random_state))
        if uncertainty.verdict is None:  # The first one decides, so that answers do not change.
            uncertainty.verdict = check.decided
        return check

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
        checked_method(method, *OF_SAMPLES)
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
            datasets |= _row_groups(log_likelihood, rows.X, rows.sample_weight, numbers, self._feature_names)
        return in_arviz(datasets)


def are_given(groups):
    """Whether a user has passed groups, strata or their sizes: tuple."""
    return any(part is not None for part in groups)


def require_rows(rows, method):
    """Raise ValueError where a method needs the training rows, and they are None."""
    if rows is None:
        raise ValueError(
            f"method={method!r} needs the training rows: pass X. (Only up to 64 MiB of rows are kept in "
            "memory after a fit, and none in pickles. Predictions, whose X is other rows, take what "
            "posterior_summary(X) with the training rows and the same method has drawn before.)"
        )


def _row_groups(log_likelihood, X, sample_weight, row_numbers, feature_names):
    """The groups about rows for ArviZ: dict of xarray.Dataset.

    Parameters
    ----------
    log_likelihood : (n_draws, n_rows)
    X : (n_rows, n_features)
    sample_weight : (n_rows,) or None
    row_numbers : int array (n_rows,), their places in the user's X
    feature_names : sequence of str
    """
    of_rows = {"row": row_numbers}
    groups = {
        "log_likelihood": dataset({"X": (("row",), log_likelihood)}, of_rows, True),
        "observed_data": dataset({"X": (("row", "feature"), X)}, {**of_rows, "feature": feature_names}),
    }
    if sample_weight is not None:
        groups["constant_data"] = dataset({"sample_weight": (("row",), sample_weight)}, of_rows)
    return groups
