"""Effects of rows on the posterior: methods of mixture estimators.

They check their arguments here (`arguments`) and compute in `mixtures.uncertainty`.
"""

from __future__ import annotations

import contextlib
import functools

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_lrvb.answers.deletion import refitted_score, single_row_blocks
from sklearn_lrvb.answers.groups import influence_of_groups, leverages_of_groups
from sklearn_lrvb.answers.influence import influence_of_rows, weight_influence_of_few_rows
from sklearn_lrvb.answers.leave_group_out import scores_without_group
from sklearn_lrvb.answers.leave_one_out import (
    ROUGH,
    WORTH_A_REFIT,
    changes_by_response,
    leverages,
    one_steps,
    scores_of_one_step,
)
from sklearn_lrvb.caller_warnings import warn_caller
from sklearn_lrvb.estimators.arguments import check_perturbation, checked_output
from sklearn_lrvb.estimators.fitted import FittedState
from sklearn_lrvb.mixture.e_step import e_step
from sklearn_lrvb.mixture.model import DegenerateComponentError
from sklearn_lrvb.mixture.prediction import scores_of_rows
from sklearn_lrvb.mixture.refit import refitted
from sklearn_lrvb.rows import row_groups

# Most refits that one call makes: so many that their sweeps go through this many rows at a time, but at least
# the second number, however many rows there are.
_ROWS_OF_REFITS, _LEAST_REFITS = 200_000, 25


class InfluenceMethods(FittedState):
    """Methods of mixture estimators about the influence of rows."""

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
                'correlations', 'covariances', 'scales', 'tails', 'log_tails'}, default='means'
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
            one more, whose last entry is for noise; 'location' has the last axis, of the coordinates of the
            row. In units of the target, per unit of X ('location') or per row ('weight'): exact derivatives
            of the fit (Equation 14 of the paper, corrected), without refitting. The influence of the location
            of a missing value is NaN. Minus the weight influence is the effect of deleting the row, to first
            order (one-step deletion). The prior is held fixed, also where its defaults came from X.

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
        Without the longest wait for a geyser, 88 minutes, the mean of the long waits would be 0.6 minutes
        shorter. If that wait was a minute longer than noted, the mean is 0.08 minutes longer:

        >>> import numpy as np
        >>> from sklearn_lrvb import LRVBGaussianMixture
        >>> X = np.array([[79, 54, 74, 62, 85, 55, 88, 85, 51, 85,
        ...                54, 84, 78, 47, 83, 52, 62, 84, 52, 79]]).T  # minutes
        >>> mixture = LRVBGaussianMixture(n_components=2, random_state=0).fit(X)
        >>> -mixture.influence([[88]], perturb="weight")[0, 1].round(1)
        array([-0.6])
        >>> mixture.influence([[88]])[0, 1].round(2)
        array([[0.08]])
        """
        uncertainty = self._uncertainty
        check_perturbation(perturb)
        of_target = uncertainty.targets[target]
        entries = of_target.flat_indices()
        if groups is not None or sample_weight is not None:
            if perturb != "weight" or out is not None:
                raise ValueError("groups and sample_weight go with perturb='weight', and without out.")
            of_groups = functools.partial(influence_of_groups, target=of_target)
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

        def question(tracked):
            if perturb == "weight" and rows.n_samples < of_target.size:
                return weight_influence_of_few_rows(rows, uncertainty, of_target, entries, out, tracked)
            functions = uncertainty.influence_functions(target, tracked=tracked)
            return influence_of_rows(rows, functions, perturb, entries, out, tracked)

        return self._tracked("influence", question)

    def _influence_on(self, X, target, index, perturb):
        """`influence` of rows in memory on the entry at one index of the attribute: (n_samples, ...)."""
        uncertainty = self._uncertainty
        rows, of_target = self._given_rows(X, None, uncertainty.fitted), uncertainty.targets[target]
        combination = np.zeros((1, of_target.size))
        combination[0, of_target.flat_indices()[index]] = 1.0

        def question(tracked):
            functions = uncertainty.influence_functions(target, combination, tracked=tracked)
            return influence_of_rows(rows, functions, perturb, np.array(0), tracked=tracked)

        return self._tracked("influence", question)

    def _of_groups(self, method, function, X, sample_weight, groups):
        """``function(rows, uncertainty, groups=..., tracked=...)`` of rows that count, under a name."""
        if groups is None:
            raise ValueError("sample_weight goes with groups, whose rows it weights: pass groups.")
        uncertainty = self._uncertainty
        given = self._given_rows(X, sample_weight, uncertainty.fitted)
        rows = given.counted()
        found = row_groups(given, groups).along_counted(given, rows)
        return self._tracked(
            method, lambda tracked: function(rows, uncertainty, groups=found, tracked=tracked)
        )

    def leverage(
        self,
        X: ArrayLike,
        *,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
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
        Which of the waits for a geyser does the fit lean on most? The shortest, 47 minutes:

        >>> import numpy as np
        >>> from sklearn_lrvb import LRVBGaussianMixture
        >>> X = np.array([[79, 54, 74, 62, 85, 55, 88, 85, 51, 85,
        ...                54, 84, 78, 47, 83, 52, 62, 84, 52, 79]]).T  # minutes
        >>> mixture = LRVBGaussianMixture(n_components=2, random_state=0).fit(X)
        >>> leverage = mixture.leverage(X)
        >>> X[leverage.argmax()]
        array([47])
        >>> _, std = mixture.score_samples(X, return_std=True, method="lrvb")
        >>> np.allclose(leverage, std**2)
        True
        """
        uncertainty = self._uncertainty
        if groups is not None or sample_weight is not None:
            return self._of_groups("leverage", leverages_of_groups, X, sample_weight, groups)
        return self._of_rows("leverage", self._given_rows(X, None, uncertainty.fitted), leverages)

    def loo_score_samples(
        self,
        X: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
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
        one does, by 0.2 nats a row:

        >>> import numpy as np
        >>> from sklearn_lrvb import LRVBGaussianMixture
        >>> X = np.array([[79, 54, 74, 62, 85, 55, 88, 85, 51, 85,
        ...                54, 84, 78, 47, 83, 52, 62, 84, 52, 79]]).T  # minutes
        >>> mixture = LRVBGaussianMixture(n_components=2, random_state=0).fit(X)
        >>> one = LRVBGaussianMixture().fit(X)
        >>> print(f"{mixture.loo_score_samples(X).mean() - one.loo_score_samples(X).mean():.2f}")
        0.20
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

        def question(tracked):
            uncertainty.source.check_training_rows(counted)
            if left_out is not None:
                return _without_groups(rows, counted, left_out, uncertainty, tracked)
            steps = uncertainty.of_rows(rows, one_steps, (3,), tracked, by_kernels=False)
            if rows.is_lazy:
                scores = scores_of_one_step(steps)
                # One pass for both questions, which keeps a byte for every row.
                found = np.asarray(np.isnan(scores) + 2 * (changes_by_response(steps) > ROUGH), np.int8)
                return scores, np.flatnonzero(found == 1), np.flatnonzero(found == 2)
            return _with_refits(steps, rows, counted, uncertainty, tracked)

        scores, without_score, rough = self._tracked("loo_score_samples", question)
        messages = (
            "cannot be left out ({first}): a component has no proper posterior without them, and their score "
            "is NaN. (a) Use prior='conjugate'. (b) Lower n_components.",
            "move the fit further than one step leads ({first}), and their score is rough. (a) Refit without "
            "them, and score them. (b) Lower n_components.",
        )
        for numbers, message in zip((without_score, rough), messages, strict=True):
            if numbers.size:
                unit, names = ("row", range(rows.n_given)) if left_out is None else ("group", left_out.names)
                which = message.format(first=f"the first is {unit} {names[numbers[0]]}")
                warn_caller(f"{numbers.size} of {len(names)} {unit}s {which}")
        return scores


def _with_refits(steps, rows, counted, uncertainty, tracked):
    """Leave-one-out scores, refitted where one step may be too far.

    Parameters
    ----------
    steps : (n_samples, 3), `one_steps`
    rows, counted : Rows, all rows, and those that count
    uncertainty : PosteriorUncertainty
    tracked : Tracked, through which the refits are gone

    Returns
    -------
    scores : (n_samples,)
    without_score, rough : int arrays, numbers of the rows that have no score, and a rough one
    """
    scores, changes = scores_of_one_step(steps), changes_by_response(steps)
    does_count = rows.which_count()
    changes[~does_count] = 0.0  # Rows that do not count are not left out.
    far, is_rough = _worth_refits(changes, rows.n_samples), changes > ROUGH
    if far.size:
        posterior, source = uncertainty.fitted.posterior, uncertainty.source
        at_optimum, information = e_step(counted, posterior), source.information(source.size)
        places = np.searchsorted(np.flatnonzero(does_count), far)
        blocks = single_row_blocks(counted, places)
        for number, place in zip(far, tracked(places, far.size), strict=True):
            score = refitted_score(counted, posterior, at_optimum, information, blocks[int(place)])
            if np.isfinite(score):
                scores[number], is_rough[number] = score, False
    return scores, np.flatnonzero(np.isnan(scores)), np.flatnonzero(is_rough)


def _without_groups(rows, counted, groups, uncertainty, tracked):
    """Scores of the rows of every group without the group, refitted where one step may be too far.

    Parameters
    ----------
    rows, counted, uncertainty, tracked : as in `_with_refits`
    groups : RowGroups of all rows

    Returns
    -------
    scores : (n_given,)
    without_score, rough : int arrays, places of the groups that have no scores, and rough ones
    """
    posterior, source = uncertainty.fitted.posterior, uncertainty.source
    information = source.information(min(source.size, rows.n_samples * posterior.n_labels))
    scores, changes = np.empty(rows.n_given), np.empty(len(groups))
    with source.threads():
        for number, (index, group) in enumerate(tracked(groups.each(rows), len(groups))):
            scores[index], changes[number] = scores_without_group(group, posterior, information)
    far, is_rough = _worth_refits(changes, rows.n_samples), changes > ROUGH
    along = groups.along_counted(rows, counted)
    for number in tracked(far, far.size):
        others, index = counted.reweighted(along.codes != number), np.flatnonzero(groups.codes == number)
        with contextlib.suppress(DegenerateComponentError):
            fit = refitted(others, posterior)
            if fit.converged:
                scores[index], is_rough[number] = scores_of_rows(rows.chosen(index), fit.posterior), False
    return scores, np.flatnonzero(np.isnan(changes)), np.flatnonzero(is_rough)


def _worth_refits(changes, n_rows):
    """Which rows or groups are refitted: those of the largest changes, as many as there is time for.

    Parameters
    ----------
    changes : (n,), in nats; NaN where there is no score
    n_rows : int, of all rows
    """
    far = np.flatnonzero(changes > WORTH_A_REFIT)
    far = far[np.argsort(-changes[far], kind="stable")]
    return far[: max(_LEAST_REFITS, _ROWS_OF_REFITS // n_rows)]
