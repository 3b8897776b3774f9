"""Fits of several numbers of components, and how probable each number is: the search `number_of_clusters`.

For every K there are fits from many starts, and from splits of the best fit of K - 1. Those that end in
different optima are all kept, since each adds its part to the evidence (`sampling.number_evidence`). Where
P(K | X) is asked for, fits are without moves, so that K stays K, and under one prior for all K.

Where no numbers are given, and the largest one is probable, the next one is added to what is there
(`_Comparison.grow`), until it is improbable or the search has gone twice as far as it began with. The result
is `answers.number_of_clusters`.
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
from sklearn_lrvb.answers.number_of_clusters import CRITERIA, PROBABLE, NumberOfClusters
from sklearn_lrvb.caller_warnings import warn_caller
from sklearn_lrvb.estimators.arguments import checked_number
from sklearn_lrvb.estimators.base import BayesianMixture
from sklearn_lrvb.estimators.callbacks import untold_copy
from sklearn_lrvb.estimators.model_checking import departure_in_a_line
from sklearn_lrvb.linear_response import IndefiniteInformationError
from sklearn_lrvb.linear_response.observed_information import MAX_DENSE_SIZE
from sklearn_lrvb.mixture.model import occupied
from sklearn_lrvb.mixture.refit import refitted, with_one_more
from sklearn_lrvb.rows import is_source, require_table
from sklearn_lrvb.sampling.labels import log_copies_of
from sklearn_lrvb.sampling.number_evidence import NumberEvidence
from sklearn_lrvb.sampling.optimum_evidence import OptimumEvidence, optimum_evidence
from sklearn_lrvb.sampling.sampler import PosteriorSampler

_MOST_STEPS = 1000  # Least `max_iter` of the fits: an unfinished one has neither error bars nor evidence.
_LARGEST_AT_FIRST = 6  # Number in the first comparison where none are given, or the estimator's own.
_LEAST_DRAWS = 200  # Of importance sampling, which 100 effective draws make reliable.

# Local optima of several starts are the same where their lower bounds, in nats, and their counts, in roots of
# the number of rows, differ by less than these numbers. Optima further below the best one than the third add
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

    Mixtures of K = 1, 2, ... components are fitted from many starts. Their *evidence*, the probability of X,
    gives P(K | X), that of K; before X is seen, P(K) is in proportion to 1/K! (Poisson of mean 1, above 0).

    Parameters
    ----------
    estimator : LRVBGaussianMixture or LRVBLatentClassMixture
        Clones are fitted. For P(K | X) they have no moves and Dirichlet weights, and a
        ``weight_concentration_prior`` of None is 1. If it is fitted to X, with rows in all components, its
        optimum is taken in place of as many starts as it had.

    X : array-like of shape (n_samples, n_features), Dask collection or source of batches
        The rows.

    n_components : iterable of int or None, default=None
        The numbers K to compare. None is 1 to 6, or to the estimator's own `n_components` if that is larger;
        while the largest has a probability of 0.05 or more, the next one is added, up to twice as many.

    criteria : iterable of {'probability', 'second_order', 'leave_one_out'}, default=('probability',)
        What to compare by: P(K | X), the `log_evidence_` of the best fit (and log P(K)), or the sum of
        :meth:`~LRVBGaussianMixture.loo_score_samples` (rows in memory only). The last two serve any mixture.

    sample_weight : array-like of shape (n_samples,) or Dask collection, default=None
        How often each row counts, as in :meth:`LRVBGaussianMixture.fit`.

    n_init : int, default=12
        Starts for every K, if the estimator's own `n_init` is not larger.

    n_draws : int, default=1000
        Draws of importance sampling from each optimum, at least 200.

    another_prior : bool, default=True
        Whether P(K | X) is computed once more under another prior, for clusters that are less alike, or for
        smaller ones, further apart. The answer says which. It starts at the optima found, and takes as long.

    random_state : int, RandomState instance or None, default=None
        Seed of the draws; the starts have the estimator's.

    n_jobs : int or None, default=None
        How many K are fitted at a time, each in a process of its own; None is one, as in joblib.

    Returns
    -------
    result : NumberOfClusters
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
    P(K | X) depends much on the prior (theory page "The exact posterior"). By 1/K! the K! labellings of the
    same clusters count once. Under another P(K), P(K | X) is the softmax of `log_evidence` plus log P(K).

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
    if not isinstance(estimator, BayesianMixture):
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
    options = _Options(X, sample_weight, chosen, n_init, n_draws, seed, n_jobs)
    may_grow, has_another = may_grow and options.has_probability, another_prior and options.has_probability
    return _compared(estimator, numbers, options, may_grow, bool(has_another))


def _compared(estimator, numbers, options, may_grow, has_another):
    """The comparison of some numbers, and of larger ones if it may grow: NumberOfClusters.

    Parameters
    ----------
    estimator : estimator of a mixture
    numbers : int array, rising
    options : _Options
    may_grow, has_another : bool
        Whether larger numbers may be added, and whether there is a second comparison under another prior;
        both need P(K | X).
    """
    own, other, has_probability = _Comparison(estimator, options, numbers), None, options.has_probability

    def n_steps():
        """How many steps there are, as far as is known; more where larger numbers are added."""
        n_fits = int(own.numbers[-1]) if has_probability else len(numbers)
        # Fits, their scores, and chains; and looks at the largest number.
        return (1 + has_another) * (2 + has_probability) * n_fits + own.n_looks + may_grow

    def steps():
        nonlocal other
        yield from own.add(numbers)
        if may_grow:
            yield from own.grow()
        if has_another:
            changed, _ = own.fits[1].estimator._another_prior()
            # The optima under the estimator's own prior stand for all starts but one.
            quick = replace(options, criteria=("probability",), n_init=1)
            known = {k: [optimum.posterior for optimum in fit.optima] for k, fit in own.fits.items()}
            other = _Comparison(clone(estimator).set_params(**changed, n_init=1), quick, own.numbers, known)
            yield from other.add(own.numbers)

    with estimator._tracked("number_of_clusters") as tracked:
        for _ in tracked(steps(), n_steps if may_grow else n_steps()):
            pass
    result = own.result()
    if result.criteria[0] in result.best_:
        fit = result.estimators_[result.best]
        rows = fit._training_rows(options.X, options.sample_weight, fit._uncertainty.fitted)
        result = replace(result, departure=departure_in_a_line(fit, rows))
    if other is not None:
        result = replace(result, another_prior=other.result())
    warned = {k: messages[0] for k in own.numbers.tolist() if (messages := own.fits[k].warned)}
    if warned:  # Fits that did not converge are marked instead.
        first = min(warned)
        warn_caller(
            f"Fits with n_components = {', '.join(map(str, warned))} warned, and `notes` has "
            f"all messages. The first, of n_components = {first}: {warned[first]}"
        )
    return result


def _check_size(posterior, n_components):
    """Raise MemoryError where evidences of the largest number of components need too large a matrix.

    Parameters
    ----------
    posterior : posterior of a mixture of one component
    n_components : int
    """
    size = posterior.n_coefficients_with(n_components)
    if size > MAX_DENSE_SIZE:
        raise MemoryError(
            f"P(K | X) of up to {n_components} components needs a matrix of {size} unknowns; up to "
            f"{MAX_DENSE_SIZE} are solved. (a) {posterior.model.way_to_fewer_features}. (b) Ask for fewer "
            "components. (c) Compare leave-one-out scores, by criteria=['leave_one_out']."
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
    chosen = list(criteria) if isinstance(criteria, Iterable) and not isinstance(criteria, str) else []
    if not chosen or any(criterion not in CRITERIA for criterion in chosen):
        raise ValueError(f"criteria must list one or more of {', '.join(CRITERIA)}, got {criteria!r}.")
    for criterion, reason in estimator._undefined_criteria().items():
        if criterion in chosen:
            raise ValueError(f"{criterion!r} is undefined, since {reason}.")
    return tuple(criterion for criterion in CRITERIA if criterion in chosen)


@dataclass(frozen=True)
class _Options:
    """The arguments of `number_of_clusters` that all fits share."""

    X: Any
    sample_weight: Any
    criteria: tuple
    n_init: int
    n_draws: int
    seed: int
    n_jobs: int | None

    @property
    def has_probability(self):
        """Whether P(K | X) is asked for."""
        return "probability" in self.criteria

    def in_processes(self, function, arguments):
        """Yield the results of a function of several arguments, in as many processes as were asked for."""
        tasks = (delayed(function)(*own) for own in arguments)
        return Parallel(n_jobs=self.n_jobs, return_as="generator")(tasks)


class _Comparison:
    """Fits of numbers of components under one prior, and their evidences, to which others are added.

    Attributes
    ----------
    numbers : int array, those that are compared, rising
    fits : dict of _Fit, of all numbers that are needed: P(K | X) needs all smaller ones
    n_looks : int, how often a larger number was added
    """

    def __init__(self, estimator, options, numbers, known=None):
        self._estimator, self._options, self.numbers = estimator, options, numbers
        self.fits, self.n_looks, self._stopped = {}, 0, ""
        # Where P(K | X) is asked for: the training rows, the evidences, and posteriors by K that stand for
        # starts: those of another prior, or that of the estimator, if it was fitted to these rows.
        self._rows = self._evidence = None
        self._known = known or {}

    def add(self, numbers):
        """Fit further numbers of components, rising, and run their chains; yield after every step.

        It is an error if all of the numbers fail, or one component does.
        """
        options, has_probability = self._options, self._options.has_probability
        needed = range(len(self.fits) + 1, numbers[-1] + 1) if has_probability else numbers.tolist()
        if has_probability and not self.fits:
            yield from self._fit_from_starts([1])
            if self.fits[1].error is not None:
                raise self.fits[1].error
            fitted = self.fits[1].estimator._uncertainty.fitted
            self._rows = self.fits[1].estimator._training_rows(options.X, options.sample_weight, fitted)
            self._evidence = NumberEvidence(fitted.posterior, self._rows, options.seed)
            if not self._known:
                self._known = _known_posteriors(self._estimator, self.fits[1].estimator, options)
        if has_probability:
            _check_size(self.fits[1].estimator._uncertainty.fitted.posterior, needed[-1])
        yield from self._fit_from_starts([k for k in needed if k not in self.fits])
        errors = [self.fits[k].error for k in numbers.tolist()]
        if None not in errors:
            raise errors[0]
        whole = [fit for fit in self.fits.values() if fit.error is None]
        if has_probability:
            for smaller, fit in itertools.pairwise(whole):
                if fit.estimator.n_components in needed:
                    self._add_optima(fit, smaller)
        added = [(fit, self._rows, options) for fit in whole if fit.estimator.n_components in needed]
        for fit in options.in_processes(_scored, added):
            self.fits[fit.estimator.n_components] = fit
            yield
        for k in needed if has_probability else ():
            fit = self.fits[k]
            posterior = None if fit.error is not None else fit.estimator._uncertainty.fitted.posterior
            self._evidence.add(posterior, fit.evidences, fit.sampler_at)
            yield

    def _fit_from_starts(self, numbers):
        """Fit some numbers of components from all starts; yield after each."""
        estimator, options, candidates = self._estimator, self._options, []
        for k in numbers:
            # Readers are told of the fits as a whole; with verbose=2 of their steps as well.
            verbose = max((estimator.verbose or 0) - 1, 0)
            candidate = untold_copy(estimator, n_components=k, verbose=verbose)
            candidate.n_init = 1 if k == 1 else max(estimator.n_init, options.n_init)
            if k in self._known:
                candidate.n_init = max(candidate.n_init - estimator.n_init, 1)
            if options.has_probability:
                max_iter = max(estimator.max_iter, _MOST_STEPS)
                candidate.set_params(**estimator._compared_with, max_iter=max_iter)
                if estimator.weight_concentration_prior is None:
                    candidate.weight_concentration_prior = 1.0
            candidates.append((candidate, options))
        for fit in options.in_processes(_fit, candidates):
            self.fits[fit.estimator.n_components] = fit
            yield

    def _add_optima(self, fit, smaller):
        """Add the optima of ascents from the known fit, and from the best one with fewer components."""
        prior = fit.estimator._uncertainty.fitted.posterior.prior
        with fit.warnings_kept():
            for known in self._known.get(fit.estimator.n_components, ()):
                fit.optima.append(refitted(self._rows, known, prior))
            if smaller.optima:
                fit.optima.extend(with_one_more(self._rows, smaller.optima[0].posterior, prior))
            fit.optima = _different(fit.optima)
            if fit.optima and fit.optima[0].lower_bound > fit.estimator.lower_bound_ + _SAME_BOUND:
                fit.report(fit.optima[0], self._rows)

    def grow(self):
        """Add the next number while the largest one is probable; yield after every step."""
        farthest = 2 * int(self.numbers[-1])
        while self._evidence.of(self.numbers)["probability"][-1] >= PROBABLE:
            largest = int(self.numbers[-1])
            if largest == farthest:
                self._stopped = (
                    f"The search stopped at {largest}, twice as far as it began with: pass "
                    f"n_components=range(1, {2 * largest + 1}) to go on."
                )
                break
            self.numbers, self.n_looks = np.append(self.numbers, largest + 1), self.n_looks + 1
            yield
            try:
                yield from self.add(self.numbers[-1:])
            except (ValueError, MemoryError) as error:
                self.numbers = self.numbers[:-1]
                self._stopped = f"The search stopped at {largest}: {error}"
                break
        yield

    def result(self):
        """What is reported: NumberOfClusters."""
        fits, options = {k: self.fits[k] for k in self.numbers.tolist()}, self._options

        def reported(name, otherwise):
            """An attribute of the fits, with another value where there is no fit: (n_fits,)."""
            return np.array([getattr(fit.estimator, name, otherwise) for fit in fits.values()])

        scores, by_evidence, std_errors = {}, {}, None
        missed = _missed(self.fits, self.numbers)
        if self._evidence is not None:
            by_evidence = self._evidence.of(self.numbers)
            scores["probability"] = by_evidence.pop("probability")
            for k, fit in fits.items():
                optimum = self._evidence.optimum_of(k)
                if optimum is not None and fit.estimator.n_occupied_ < k:
                    fit.report(optimum, self._rows)
                    if "leave_one_out" in options.criteria:
                        with fit.warnings_kept():
                            fit.add_row_scores(options)
        scores["second_order"] = np.array([_second_order(fit) for fit in fits.values()])
        if "leave_one_out" in options.criteria:
            scores["leave_one_out"], std_errors = _leave_one_out([*fits.values()], _counted(options)[1])
        return NumberOfClusters(
            n_components=self.numbers,
            scores=scores,
            criteria=options.criteria,
            n_optima=np.array([len(fit.optima) for fit in fits.values()]),
            n_occupied=reported("n_occupied_", 0),
            converged=reported("converged_", False),
            strict_optimum=np.array([fit.strict_optimum for fit in fits.values()]),
            missed=missed,
            notes={k: fit.notes for k, fit in fits.items() if fit.notes},
            estimators_={k: fit.estimator for k, fit in fits.items() if fit.error is None},
            leave_one_out_std_error=std_errors,
            stopped=self._stopped,
            **by_evidence,
        )


@dataclass
class _Fit:
    """The fits of one number of components, and what came of them.

    Attributes
    ----------
    estimator : the best one
    error : ValueError or None, why there is no fit
    strict_optimum : bool
    optima : list of Fit, the different local optima, the best one first
    evidences : list of OptimumEvidence, of those all of whose components hold rows
    row_scores : (n_rows,) leave-one-out scores of the rows of positive weight, or NaN
    notes, warned : list of str, all messages, and those that the user is warned of
    """

    estimator: BaseEstimator
    error: ValueError | None = None
    strict_optimum: bool = False
    optima: list = field(default_factory=list)
    evidences: list[OptimumEvidence] = field(default_factory=list)
    row_scores: NDArray | float = np.nan
    notes: list[str] = field(default_factory=list)
    warned: list[str] = field(default_factory=list)

    @contextlib.contextmanager
    def warnings_kept(self):
        """Context in which warnings go to the notes."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield
        messages = [str(warning.message) for warning in caught]
        self.notes += messages
        self.warned += messages if getattr(self.estimator, "converged_", False) else []

    def report(self, optimum, rows):
        """Make another optimum, a Fit, the one that is reported."""
        in_order = self.estimator._in_order(optimum)
        self.estimator, self.strict_optimum = Optimum(self.estimator, rows, in_order).as_estimator(), True

    def sampler_at(self, optimum, rows):
        """Draws at an optimum, a Fit: PosteriorSampler."""
        return PosteriorSampler(Optimum(self.estimator, rows, optimum).as_estimator()._uncertainty, rows)

    def add_row_scores(self, options):
        """Add the leave-one-out scores of the rows of positive weight."""
        rows, weights = _counted(options)
        self.row_scores = self.estimator.loo_score_samples(rows, sample_weight=weights)


def _fit(estimator, options):
    """Fit an estimator from all starts: _Fit."""
    fit = _Fit(estimator)
    with fit.warnings_kept():
        try:
            estimator._fit(options.X, options.sample_weight, optima=fit.optima)
        except ValueError as error:
            fit.error = error
            fit.notes.append(str(error))
    fit.optima = _different(fit.optima)
    return fit


def _different(optima):
    """The different ones of some local optima, the best one first, without those that are far below it."""
    different = []
    # Of those that are the same the first is kept, not that which round-off favours.
    for optimum in optima:
        counts = np.sort(optimum.posterior.counts)
        near = _SAME_COUNTS * np.sqrt(counts.sum())
        is_known = any(
            abs(optimum.lower_bound - other.lower_bound) < _SAME_BOUND
            and np.abs(counts - np.sort(other.posterior.counts)).max() < near
            for other in different
        )
        if optimum.converged and not is_known:
            different.append(optimum)
    different.sort(key=attrgetter("lower_bound"), reverse=True)
    return [own for own in different if own.lower_bound > different[0].lower_bound - _FAR_BELOW]


def _known_posteriors(estimator, first, options):
    """The posterior of an estimator that is fitted to the same rows, with rows in all components: dict by K.

    It is empty where there is no such posterior.

    Parameters
    ----------
    estimator : estimator, fitted or not
    first : estimator, fitted to the rows with one component of the same model
    options : _Options
    """
    uncertainty = vars(estimator).get("_last_uncertainty")
    if uncertainty is None or not len(uncertainty.fitted.path):  # Arrays that were set by hand have no path.
        return {}
    fitted, model = uncertainty.fitted, first._uncertainty.fitted.model
    changed = {name for name, value in model.items() if fitted.model[name] != value}
    if changed - {"weight_concentration_prior_type"} or not occupied(fitted.posterior.counts).all():
        return {}
    try:
        rows = first._training_rows(options.X, options.sample_weight, fitted)
        uncertainty.source.check_training_rows(rows)
    except ValueError:
        return {}
    posterior = fitted.posterior
    return {posterior.n_components: [posterior]} if posterior.n_components > 1 else {}


def _scored(fit, rows, options):
    """The fits with what the criteria need: leave-one-out scores, and evidences, for which there are rows."""
    estimator, fit.strict_optimum = fit.estimator, True
    with fit.warnings_kept():
        try:
            if "leave_one_out" in options.criteria:
                fit.add_row_scores(options)
            _ = estimator.weights_std_  # Refused where the fit is no strict optimum.
        except (ValueError, MemoryError) as error:
            fit.strict_optimum = isinstance(error, MemoryError)
            fit.notes.append(str(error))
        if rows is None:
            return fit
        optima = [own for own in fit.optima if occupied(own.posterior.counts).all()]
        for number, optimum in enumerate(optima):
            sampler = fit.sampler_at(optimum, rows)
            others = [other.posterior for other in optima if other is not optimum]
            random_state = np.random.RandomState([options.seed, estimator.n_components, number])
            with contextlib.suppress(IndefiniteInformationError):  # A saddle.
                evidence = optimum_evidence(
                    optimum, sampler, sampler.checked_rows(rows), others, options.n_draws, random_state
                )
                if evidence is not None:
                    fit.evidences.append(evidence)
    return fit


def _second_order(fit):
    """log p(X | K) to second order by the best fit; NaN where it has none, or needs too large a matrix."""
    if fit.error is not None or not fit.strict_optimum:
        return np.nan
    with fit.warnings_kept():
        try:
            log_evidence = fit.estimator.log_evidence_
        except MemoryError as error:
            fit.notes.append(str(error))
            return np.nan
    return log_evidence + log_copies_of(fit.estimator._fitted.posterior)


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
        own_divergence, divergence = (
            each.divergences.total - each.divergences.weights for each in (posterior, padded)
        )
        reached = smaller.estimator.lower_bound_ + own_divergence - divergence
        reached += prior.weights.log_evidence(padded.label_counts)
        reached -= posterior.prior.weights.log_evidence(posterior.label_counts)
        if own.estimator.lower_bound_ < reached - _SAME_BOUND:
            missed[k] = float(reached - own.estimator.lower_bound_)
    return missed


def _counted(options):
    """The rows of positive weight, and how often they count; the others may have no finite score."""
    if options.sample_weight is None:
        return options.X, None
    weights = np.asarray(options.sample_weight, dtype=np.float64)
    counted = np.flatnonzero(weights)
    return _safe_indexing(options.X, counted), weights[counted]


def _leave_one_out(fits, weights):
    """Leave-one-out scores, and standard errors of their differences from the best: two of (n_fits,).

    Parameters
    ----------
    fits : list of _Fit
    weights : (n_rows,) how often the scored rows count, or None
    """
    n_scores = max(np.size(fit.row_scores) for fit in fits)
    row_scores = np.array([np.broadcast_to(fit.row_scores, n_scores) for fit in fits])
    weights = np.ones(n_scores) if weights is None else weights
    scores, n_rows = row_scores @ weights, weights.sum()
    if np.isnan(scores).all():
        return scores, scores.copy()
    # That of a weighted sum of differences, the rows being a sample.
    differences = row_scores - row_scores[np.nanargmax(scores)]
    deviations = differences - (differences @ weights)[:, None] / n_rows
    return scores, np.sqrt(n_rows / max(n_rows - 1.0, 1.0) * np.square(deviations) @ weights)
