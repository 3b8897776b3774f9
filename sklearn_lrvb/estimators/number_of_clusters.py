"""Fits of several numbers of components, and how probable each number is: `number_of_clusters`.

For every K there are fits from many starts, and from splits of the best fit of K - 1. Those that end in
different optima are all kept, since each adds its part to the evidence (`posterior_sampling.occupied`). Where
P(K | X) is asked for, fits are without moves, so that K stays K, and under one prior for all K.

Where no numbers are given, and the largest one is probable, the next one is added to what is there
(`_Comparison`), until it is improbable or the search has gone twice as far as it began with.
"""

from __future__ import annotations

import contextlib
import itertools
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from numbers import Integral
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.parallel import Parallel, delayed

from sklearn_lrvb.answers.conclusions import Optimum
from sklearn_lrvb.answers.number_evidence import NumberEvidence
from sklearn_lrvb.answers.number_of_clusters import CRITERIA, PROBABLE, NumberOfClusters
from sklearn_lrvb.caller_warnings import warn_caller
from sklearn_lrvb.estimators.arguments import checked_number
from sklearn_lrvb.estimators.conclusion_methods import ConclusionMethods
from sklearn_lrvb.linear_response import IndefiniteInformationError
from sklearn_lrvb.linear_response.observed_information import MAX_DENSE_SIZE
from sklearn_lrvb.mixture.model import occupied
from sklearn_lrvb.mixture.refit import climbed, with_one_more
from sklearn_lrvb.rows import is_source, require_table
from sklearn_lrvb.sampling.exact import distance_from_whole
from sklearn_lrvb.sampling.occupied import OptimumEvidence, optimum_evidence
from sklearn_lrvb.sampling.sampler import PosteriorSampler

_MOST_STEPS = 1000  # Least `max_iter` of the fits: an unfinished one has neither error bars nor evidence.
_LARGEST_AT_FIRST = 6  # Number in the first comparison where none are given, or the estimator's own.
_LEAST_DRAWS = 200  # Of importance sampling, which 100 effective draws make reliable.

# Ends of starts are the same optimum where their lower bounds, in nats, and their counts, in roots of the
# number of rows, differ by less than these numbers. Optima further below the best one than the third add
# nothing.
_SAME_BOUND, _SAME_COUNTS, _FAR_BELOW = 0.01, 0.05, 15.0


def number_of_clusters(
    estimator: Any,
    X: ArrayLike,
    *,
    n_components: Iterable[int] | None = None,
    criteria: Iterable[str] = ("probability",),
    sample_weight: ArrayLike | None = None,
    n_init: int = 12,
    n_draws: int = 1000,
    another_prior: bool = True,
    random_state: int | np.random.RandomState | None = None,
    n_jobs: int | None = None,
) -> NumberOfClusters:
    """How many clusters there are, and how probable every number is.

    Mixtures of K = 1, 2, ... components are fitted from many starts. The *evidence* of each, the probability
    of X under it, gives the posterior probability of K, P(K | X).

    Parameters
    ----------
    estimator : LRVBGaussianMixture or LRVBLatentClassMixture
        Clones are fitted. For P(K | X) they have no moves and Dirichlet weights, and a
        ``weight_concentration_prior`` of None is 1. If it is fitted to X, with rows in all components, its
        optimum is taken in place of as many starts as it had.

    X : array-like of shape (n_samples, n_features), Dask collection or source of batches
        The rows.

    n_components : iterable of int or None, default=None
        The numbers K to compare, all equally probable before X is seen. None is 1 to 6, or to the estimator's
        own `n_components` if that is larger; while the largest has a probability of 0.05 or more, the next
        one is added, up to twice as many. Nothing is computed again.

    criteria : iterable of {'probability', 'lower_bound', 'leave_one_out'}, default=('probability',)
        What to compare by: P(K | X), the lower bound of the log evidence, or the sum of
        :meth:`~LRVBGaussianMixture.loo_score_samples` (rows in memory only). The last two serve any mixture.

    sample_weight : array-like of shape (n_samples,) or Dask collection, default=None
        How often each row counts, as in :meth:`LRVBGaussianMixture.fit`.

    n_init : int, default=12
        Starts for every K, if the estimator's own `n_init` is not larger.

    n_draws : int, default=1000
        Draws of importance sampling from each optimum, at least 200.

    another_prior : bool, default=True
        Whether P(K | X) is computed once more under another prior, for smaller clusters, further apart (of
        categories, for probabilities nearer 0 and 1); the answer says which. It doubles the time.

    random_state : int, RandomState instance or None, default=None
        Seed of the draws; the starts have the estimator's.

    n_jobs : int or None, default=None
        How many K are fitted at a time, each in a process of its own; None is one, as in joblib.

    Returns
    -------
    found : NumberOfClusters
        Its display is a few sentences and a table. `estimators_` has the fits.

    Raises
    ------
    ValueError
        An argument is invalid or does not go with the estimator; bad input; every fit fails.

    Warns
    -----
    UserWarning
        Once, where fits under the estimator's own prior or their scores warn; all messages are in `notes`.

    See Also
    --------
    sklearn_lrvb.displays.ModelChoiceDisplay : Draws the result, which has `partition_posterior`, too.

    Notes
    -----
    P(K | X) depends much on the prior (theory page "The exact posterior"). At least one cluster is assumed.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_lrvb import LRVBGaussianMixture, number_of_clusters
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> X[:30] += [5, 1]  # two clusters
    >>> mixture = LRVBGaussianMixture(random_state=0)
    >>> number_of_clusters(mixture, X, n_components=[1, 2, 3], random_state=0).best
    2
    """
    if not isinstance(estimator, ConclusionMethods):
        raise ValueError(
            "estimator must be an LRVBGaussianMixture or an LRVBLatentClassMixture, got "
            f"{type(estimator).__name__}."
        )
    estimator._validate_params()
    chosen, may_grow = _checked_criteria(criteria, estimator), n_components is None
    if may_grow:
        n_components = range(1, max(_LARGEST_AT_FIRST, estimator.n_components) + 1)
    numbers = _checked_numbers(n_components, X, may_grow)
    n_init, n_draws = checked_number(n_init, "n_init", "start"), checked_number(n_draws)
    if n_draws < _LEAST_DRAWS:
        raise ValueError(
            f"n_draws={n_draws} are too few for importance sampling: pass {_LEAST_DRAWS} or more."
        )
    if not (isinstance(estimator.init_params, str) or callable(estimator.init_params)):
        raise ValueError(
            "init_params is an array, which starts fits of one n_components alone. Give the estimator a "
            "string or a callable."
        )
    if "leave_one_out" in chosen:
        require_table(X, "criteria=['leave_one_out']")
    seed = int(check_random_state(random_state).randint(2**31))
    common = _Common(X, sample_weight, chosen, n_init, n_draws, seed, n_jobs)
    has_another = bool(another_prior) and "probability" in chosen
    search = _Search(estimator, numbers, common, may_grow and "probability" in chosen, has_another)

    def answer(tracked):
        n_steps = search.n_steps if search.may_grow else search.n_steps()
        for _ in tracked(search.steps(), n_steps):
            pass
        return search.found

    found = estimator._tracked("number_of_clusters", answer)
    _warn_of({k: search.own.fits[k] for k in found.n_components.tolist()})
    return found


@dataclass(frozen=True)
class _Common:
    """The arguments of `number_of_clusters` that all fits share."""

    X: Any
    sample_weight: Any
    criteria: tuple
    n_init: int
    n_draws: int
    seed: int
    n_jobs: int | None


class _Search:
    """The comparison of some numbers of components, of larger ones if it may grow, under one prior or two.

    Attributes
    ----------
    may_grow : bool, whether larger numbers may be added
    own : _Comparison, under the estimator's prior
    found : NumberOfClusters, after all steps
    """

    def __init__(self, estimator, numbers, common, may_grow, has_another):
        self._estimator, self._common, self._has_another = estimator, common, has_another
        self._numbers, self._farthest, self.may_grow = numbers, 2 * int(numbers[-1]), may_grow
        self.own, self._stopped, self._n_looks = _Comparison(estimator, common), "", int(may_grow)

    def n_steps(self):
        """How many steps there are, as far as is known; more where larger numbers are added."""
        has_probability = "probability" in self._common.criteria
        n_fits = self._numbers[-1] if has_probability else len(self._numbers)
        # Fits, their scores, and chains; and looks at the largest number.
        return (1 + self._has_another) * (2 + has_probability) * int(n_fits) + self._n_looks

    def steps(self):
        """Yield after every step."""
        yield from self.own.add(self._numbers)
        if self.may_grow:
            yield from self._larger_numbers()
        self.found = replace(self.own.result(self._numbers), stopped=self._stopped)
        if self._has_another:
            fit = next(iter(self.found.estimators_.values()))
            other = clone(self._estimator).set_params(**fit._another_prior()[0])
            comparison = _Comparison(other, replace(self._common, criteria=("probability",)))
            yield from comparison.add(self._numbers)
            self.found = replace(self.found, another_prior=comparison.result(self._numbers))

    def _larger_numbers(self):
        """Steps that add the next number while the largest one is probable."""
        while self.own.share_of_largest(self._numbers) >= PROBABLE:
            largest = int(self._numbers[-1])
            if largest == self._farthest:
                self._stopped = (
                    f"The search stopped at {largest}, twice as far as it began with: pass "
                    f"n_components=range(1, {2 * largest + 1}) to go on."
                )
                break
            self._numbers, self._n_looks = np.append(self._numbers, largest + 1), self._n_looks + 1
            yield
            try:
                yield from self.own.add(self._numbers[-1:])
            except (ValueError, MemoryError) as error:
                self._numbers = self._numbers[:-1]
                self._stopped = f"The search stopped at {largest}: {error}"
                break
        yield


class _Comparison:
    """Fits of numbers of components under one prior, and their evidences, to which others are added.

    Attributes
    ----------
    fits : dict of _Fit, of all numbers that are needed: P(K | X) needs all smaller ones
    """

    def __init__(self, estimator, common):
        self._estimator, self._common = estimator, common
        self._has_probability = "probability" in common.criteria
        self.fits, self._evidence = {}, None
        self._known, self._n_known = None, 0  # Where the estimator was fitted to the same rows.

    def add(self, numbers):
        """Fit further numbers of components, rising, and run their chains; yield after every step."""
        needed = [*range(len(self.fits) + 1, numbers[-1] + 1)] if self._has_probability else numbers.tolist()
        if self.fits:
            _check_size(self.fits[1].estimator._uncertainty.fitted.posterior, needed[-1])
        added = yield from self._fitted(needed, numbers)
        self.fits |= added
        if not self._has_probability:
            return
        if self._evidence is None:
            self._evidence = NumberEvidence(added)
        else:
            self._evidence.add(added)
        for k in added:
            self._evidence.run(k, self._common.seed)
            yield

    def _fitted(self, needed, numbers):
        """Steps; returns the fits of the numbers that are needed: dict of _Fit.

        It is an error if all of the numbers that were asked for fail, or one component does.
        """
        common, fits = self._common, {}
        for some in ([1], needed[1:]) if needed[0] == 1 else (needed,):
            candidates = [self._candidate(k) for k in some]
            for fit in _in_processes(_fit, [(candidate, common) for candidate in candidates], common):
                fits[fit.estimator.n_components] = fit
                yield
            if self._has_probability and some == [1]:
                self._check_first(fits[1], needed[-1])
        failed = [fits[k].error for k in numbers.tolist() if fits[k].error is not None]
        if len(failed) == len(numbers):
            raise failed[0]
        whole = [fit for fit in fits.values() if fit.error is None]
        if self._has_probability:
            before = [fit for fit in self.fits.values() if fit.error is None][-1:]
            for smaller, fit in itertools.pairwise(before + whole):
                if fit.estimator.n_components == self._n_known:
                    _add_climb(fit, self._known, common)
                _add_splits(fit, smaller, common)
        for fit in _in_processes(_scored, [(fit, common) for fit in whole], common):
            fits[fit.estimator.n_components] = fit
            yield
        return fits

    def _candidate(self, k):
        """A clone of the estimator with K components, ready to be fitted."""
        estimator, common = self._estimator, self._common
        candidate = clone(estimator).set_params(n_components=k)
        # Callbacks and readers are told of the fits as a whole; with verbose=2 of their steps as well.
        vars(candidate).pop("_skl_callbacks", None)
        candidate.verbose = max((estimator.verbose or 0) - 1, 0)
        candidate.n_init = 1 if k == 1 else max(estimator.n_init, common.n_init)
        if k == self._n_known:
            candidate.n_init = max(candidate.n_init - estimator.n_init, 1)
        if self._has_probability:
            candidate.set_params(**estimator._compared_with, max_iter=max(estimator.max_iter, _MOST_STEPS))
            if estimator.weight_concentration_prior is None:
                candidate.weight_concentration_prior = 1.0
        return candidate

    def _check_first(self, fit, largest):
        """Raise an error where there are no evidences; else look for a known fit, of the same model."""
        if fit.error is not None:
            raise fit.error
        _check_size(fit.estimator._uncertainty.fitted.posterior, largest)
        self._known = _known_posterior(self._estimator, fit, self._common)
        self._n_known = 0 if self._known is None else self._known.n_components

    def share_of_largest(self, numbers):
        """P(K | X) of the largest of some numbers, all of whose chains were run, or 0 where it has no fit."""
        return float(np.nan_to_num(self._evidence.of(numbers)["probability"][-1]))

    def result(self, numbers):
        """What is reported of some numbers: NumberOfClusters."""
        fits, common, evidence = self.fits, self._common, self._evidence
        told, scores, by_evidence, std_errors = {k: fits[k] for k in numbers.tolist()}, {}, {}, None
        scores["lower_bound"] = np.array([fit.told("lower_bound_", np.nan) for fit in told.values()])
        missed = _missed(fits, numbers)
        if evidence is not None:
            by_evidence = evidence.of(numbers)
            scores["probability"] = by_evidence.pop("probability")
            for k, fit in told.items():
                optimum = evidence.optimum_of(k)
                if optimum is not None and fit.estimator.n_occupied_ < k:
                    _report(fit, optimum, common)
        if "leave_one_out" in common.criteria:
            scores["leave_one_out"], std_errors = _leave_one_out([*told.values()])
        return NumberOfClusters(
            n_components=numbers,
            scores=scores,
            criteria=common.criteria,
            n_optima=np.array([len(fit.ends) for fit in told.values()]),
            n_occupied=np.array([fit.told("n_occupied_", 0) for fit in told.values()]),
            converged=np.array([fit.told("converged_", False) for fit in told.values()]),
            strict_optimum=np.array([fit.strict_optimum for fit in told.values()]),
            missed=missed,
            notes={k: fit.notes for k, fit in told.items() if fit.notes},
            estimators_={k: fit.estimator for k, fit in told.items() if fit.error is None},
            leave_one_out_std_error=std_errors,
            **by_evidence,
        )


def _check_size(posterior, n_components):
    """Raise MemoryError where evidences of the largest number of components need too large a matrix.

    Parameters
    ----------
    posterior : posterior of a mixture of one component
    n_components : int
    """
    size = posterior.model.n_coefficients(posterior, n_components)
    if size > MAX_DENSE_SIZE:
        raise MemoryError(
            f"P(K | X) of up to {n_components} components needs a matrix of {size} unknowns; up to "
            f"{MAX_DENSE_SIZE} are solved. (a) {posterior.model.way_to_fewer_features}. (b) Ask for fewer "
            "components. (c) Compare lower bounds, by criteria=['lower_bound']."
        )


def _checked_numbers(n_components, X, may_grow):
    """The numbers of components, rising, each once: int array; up to that of the rows, if it may grow."""
    numbers = list(n_components) if isinstance(n_components, Iterable) else []
    if not numbers or not all(isinstance(k, Integral) and not isinstance(k, bool) and k > 0 for k in numbers):
        raise ValueError(
            f"n_components must list one or more positive integers, as range(1, 7), got {n_components!r}."
        )
    # Rows of sources and of Dask's frames are counted when they are read.
    shape = () if is_source(X) else getattr(X, "shape", None) or np.shape(X)
    if len(shape) == 2 and isinstance(shape[0], Integral) and 0 < shape[0] < max(numbers):
        if may_grow:
            return np.arange(1, shape[0] + 1)
        raise ValueError(
            f"n_components goes up to {max(numbers)}, more than the {shape[0]} rows of X. Ask for "
            f"{shape[0]} at most."
        )
    return np.unique(numbers)


def _checked_criteria(criteria, estimator):
    """The criteria to compare by, in the order in which they are drawn."""
    found = list(criteria) if isinstance(criteria, Iterable) and not isinstance(criteria, str) else []
    if not found or any(criterion not in CRITERIA for criterion in found):
        raise ValueError(f"criteria must list one or more of {', '.join(CRITERIA)}, got {criteria!r}.")
    undefined = estimator._undefined_criteria()
    for criterion in found:
        if criterion in undefined:
            raise ValueError(f"{criterion!r} is undefined, since {undefined[criterion]}.")
    return tuple(criterion for criterion in CRITERIA if criterion in found)


@dataclass
class _Fit:
    """The fits of one number of components, and what came of them.

    Attributes
    ----------
    estimator : the best one
    error : ValueError or None, why there is no fit
    strict_optimum : bool
    ends : list of Fit, the different optima, the best one first
    optima : list of Fit, those all of whose components hold rows, and that have an evidence
    evidences : list of OptimumEvidence, of these
    rows : Rows, the training rows; None where there is no fit, or no evidence was asked for
    row_scores : (n_rows,) leave-one-out scores of the rows that count, or NaN
    weights : (n_rows,) how often they count, or the number 1
    notes, warned : list of str, all messages, and those that the user is warned of
    """

    estimator: BaseEstimator
    error: ValueError | None = None
    strict_optimum: bool = False
    ends: list = field(default_factory=list)
    optima: list = field(default_factory=list)
    evidences: list[OptimumEvidence] = field(default_factory=list)
    rows: Any = None
    row_scores: NDArray | float = np.nan
    weights: NDArray | float = 1.0
    notes: list[str] = field(default_factory=list)
    warned: list[str] = field(default_factory=list)

    def told(self, name, otherwise):
        """An attribute of the best fit, or another value where there is no fit."""
        return otherwise if self.error is not None else getattr(self.estimator, name)

    @contextlib.contextmanager
    def warnings_kept(self):
        """Context in which warnings go to the notes."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield
        messages = [str(warning.message) for warning in caught]
        self.notes += messages
        self.warned += messages if self.told("converged_", False) else []


def _in_processes(function, arguments, common):
    """Yield the results of a function of several arguments, in as many processes as were asked for."""
    return Parallel(n_jobs=common.n_jobs, return_as="generator")(delayed(function)(*own) for own in arguments)


def _fit(estimator, common):
    """Fit an estimator from all starts: _Fit."""
    fit, ends = _Fit(estimator), []
    with fit.warnings_kept():
        try:
            estimator._validate_params()
            estimator._fit(common.X, common.sample_weight, ends=ends)
        except ValueError as error:
            fit.error = error
            fit.notes.append(str(error))
    fit.ends = _different(ends)
    return fit


def _different(ends):
    """The ends that are different optima, the best one first, without those that are far below it."""
    found = []
    # Of those that end in the same optimum the first is kept, not that which round-off favours.
    for end in ends:
        counts = np.sort(end.posterior.counts)
        near = _SAME_COUNTS * np.sqrt(counts.sum())
        is_known = any(
            abs(end.lower_bound - other.lower_bound) < _SAME_BOUND
            and np.abs(counts - np.sort(other.posterior.counts)).max() < near
            for other in found
        )
        if end.converged and not is_known:
            found.append(end)
    found.sort(key=attrgetter("lower_bound"), reverse=True)
    return [end for end in found if end.lower_bound > found[0].lower_bound - _FAR_BELOW]


def _known_posterior(estimator, first, common):
    """The posterior of an estimator that is fitted to the same rows, with rows in all components, or None.

    Parameters
    ----------
    estimator : estimator, fitted or not
    first : _Fit, of one component of the same model
    common : _Common
    """
    uncertainty = vars(estimator).get("_last_uncertainty")
    if uncertainty is None or not len(uncertainty.fitted.path):  # Arrays that were set by hand have no path.
        return None
    fitted, model = uncertainty.fitted, first.estimator._uncertainty.fitted.model
    changed = {name for name, value in model.items() if fitted.model[name] != value}
    if changed - {"weight_concentration_prior_type"} or not occupied(fitted.posterior.counts).all():
        return None
    try:
        uncertainty.source.check_training_rows(
            first.estimator._training_rows(common.X, common.sample_weight, fitted)
        )
    except ValueError:
        return None
    return fitted.posterior if fitted.posterior.n_components > 1 else None


def _add_climb(fit, posterior, common):
    """Add the optimum that is climbed to from a posterior of as many components."""
    fitted = fit.estimator._uncertainty.fitted
    rows = fit.estimator._training_rows(common.X, common.sample_weight, fitted)
    _add_ends(fit, rows, [climbed(rows, posterior, fitted.posterior.prior)])


def _add_splits(fit, smaller, common):
    """Add the ends of climbs from splits of the best fit with fewer components; a better one is the best."""
    if not smaller.ends:
        return
    fitted = fit.estimator._uncertainty.fitted
    rows = fit.estimator._training_rows(common.X, common.sample_weight, fitted)
    _add_ends(fit, rows, with_one_more(rows, smaller.ends[0].posterior, fitted.posterior.prior))


def _add_ends(fit, rows, ends):
    """Add the ends of further climbs; a better one is the best."""
    estimator = fit.estimator
    with fit.warnings_kept():
        fit.ends = _different([*fit.ends, *ends])
        best = fit.ends[0] if fit.ends else None
        if best is not None and best.lower_bound > estimator.lower_bound_ + _SAME_BOUND:
            fit.estimator = Optimum(estimator, rows, estimator._in_order(best), rows).as_estimator()


def _report(fit, optimum, common):
    """Make another optimum, a Fit, the one that is reported."""
    estimator = fit.estimator
    fit.estimator = Optimum(estimator, fit.rows, estimator._in_order(optimum), fit.rows).as_estimator()
    fit.strict_optimum = True
    if "leave_one_out" in common.criteria:
        with fit.warnings_kept():
            _add_row_scores(fit, common)


def _add_row_scores(fit, common):
    """Add the leave-one-out scores of the rows that count."""
    rows, weights = _counted(common.X, common.sample_weight)
    fit.row_scores = fit.estimator.loo_score_samples(rows, sample_weight=weights)
    fit.weights = 1.0 if weights is None else weights


def _scored(fit, common):
    """The fits with what the criteria need: leave-one-out scores, and evidences."""
    estimator, fit.strict_optimum = fit.estimator, True
    with fit.warnings_kept():
        try:
            if "leave_one_out" in common.criteria:
                _add_row_scores(fit, common)
            _ = estimator.weights_std_  # Refused where the fit is no strict optimum.
        except (ValueError, MemoryError) as error:
            fit.strict_optimum = isinstance(error, MemoryError)
            fit.notes.append(str(error))
        if "probability" in common.criteria:
            _add_evidences(fit, common)
    return fit


def _add_evidences(fit, common):
    """Add the evidences of the optima all of whose components hold rows."""
    estimator = fit.estimator
    rows = estimator._training_rows(common.X, common.sample_weight, estimator._uncertainty.fitted)
    fit.rows, is_whole = rows, not rows.total(distance_from_whole)
    ends = [end for end in fit.ends if occupied(end.posterior.counts).all()]
    posteriors = [end.posterior for end in ends]
    for number, end in enumerate(ends):
        twin = Optimum(estimator, rows, end, rows).as_estimator()
        sampler = PosteriorSampler(twin._uncertainty, rows)
        others = posteriors[:number] + posteriors[number + 1 :]
        random_state = np.random.RandomState([common.seed, estimator.n_components, number])
        try:
            found = optimum_evidence(
                sampler, sampler.checked_rows(rows), others, common.n_draws, random_state, is_whole
            )
        except IndefiniteInformationError:  # A saddle.
            continue
        if found is not None:
            fit.optima.append(end)
            fit.evidences.append(found)


def _missed(fits, numbers):
    """By how many nats fits end below the next smaller one with an empty component added: dict."""
    missed = {}
    for k in numbers.tolist():
        smaller, own = fits.get(k - 1), fits[k]
        if smaller is None or smaller.error is not None or own.error is not None:
            continue
        posterior, prior = smaller.estimator._fitted.posterior, own.estimator._fitted.posterior.prior
        if prior.flat:
            continue
        padded = posterior.padded(prior)
        reached = smaller.estimator.lower_bound_ - posterior.model.divergence_of_padding(posterior, padded)
        reached += prior.weights.log_evidence(padded.label_counts)
        reached -= posterior.prior.weights.log_evidence(posterior.label_counts)
        if own.estimator.lower_bound_ < reached - _SAME_BOUND:
            missed[k] = float(reached - own.estimator.lower_bound_)
    return missed


def _counted(X, sample_weight):
    """The rows that count, and how often: those of weight zero may have no finite score."""
    if sample_weight is None:
        return X, None
    weights = np.asarray(sample_weight, dtype=np.float64)
    counted = np.flatnonzero(weights)
    return _safe_indexing(X, counted), weights[counted]


def _warn_of(fits):
    """Warn once of all that converged fits warned of; those that did not converge are marked."""
    warned = {k: fit.warned[0] for k, fit in fits.items() if fit.warned}
    if warned:
        first = min(warned)
        warn_caller(
            f"Fits with n_components = {', '.join(map(str, warned))} warned, and `notes` has "
            f"all messages. The first, of n_components = {first}: {warned[first]}"
        )


def _leave_one_out(fits):
    """Leave-one-out scores, and standard errors of their differences from the best: two of (n_fits,)."""
    scores = np.array([np.sum(fit.weights * fit.row_scores) for fit in fits])
    if np.isnan(scores).all():
        return scores, scores.copy()
    best, std_errors = fits[np.nanargmax(scores)].row_scores, []
    for fit in fits:
        # That of a weighted sum of differences, the rows being a sample.
        differences = fit.row_scores - best
        weights = np.broadcast_to(fit.weights, differences.shape)
        n_rows = weights.sum()
        deviations = differences - np.sum(weights * differences) / n_rows
        variance = n_rows / max(n_rows - 1.0, 1.0) * np.sum(weights * np.square(deviations))
        std_errors.append(np.sqrt(variance))
    return scores, np.array(std_errors)
