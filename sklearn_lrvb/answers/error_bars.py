"""What answers questions about the parameters: a posterior, or the variation from sample to sample.

*The posterior*, given the rows: `LinearResponse`, `MeanField`, or `Exact` by draws. *Sampling variation*, how
the estimates vary from one sample of rows, or of groups of rows, to another: `IndependentRows` and
`Sandwich`, from the influence of rows and of groups, or `Bootstrap`, by refits. Each has a note that says
what it is and what is doubtful about it. `estimators.posterior.Posterior` asks them for users.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from sklearn_lrvb.answers.groups import groups_that_count, sampling_variation
from sklearn_lrvb.answers.leave_one_out import responsibility_deviations, score_deviations
from sklearn_lrvb.answers.margins import FamilyMargins, with_moments_that_exist
from sklearn_lrvb.answers.targets import NoCovarianceError, covariance, joint_coordinates, variance
from sklearn_lrvb.caller_warnings import warn_caller
from sklearn_lrvb.mixture.model import LEAST_COUNT, DegenerateComponentError, occupied
from sklearn_lrvb.mixture.prediction import responsibilities_of_rows, scores_of_rows
from sklearn_lrvb.mixture.refit import refitted
from sklearn_lrvb.rows import row_groups
from sklearn_lrvb.sampling.draws import DrawArrays
from sklearn_lrvb.sampling.exact import ExactPosterior, seconds_of_exact
from sklearn_lrvb.sampling.likelihood import deviations_of_rows, probabilities, scores
from sklearn_lrvb.sampling.posterior_check import checked_posterior
from sklearn_lrvb.sampling.sampler import PosteriorSampler

SAMPLING_METHODS = "sandwich", "bootstrap"  # Methods that are about the variation from sample to sample.
# What "auto" does without being asked: an exact posterior, or a bootstrap, of about so many seconds, and a
# check of so many parameters, which factors a matrix and takes about a minute too.
_MOST_SECONDS, _MOST_SECONDS_OF_BOOTSTRAP, _MOST_PARAMETERS = 20.0, 10.0, 9000
# Effective numbers of groups, in all and in a component, below which error bars of a sandwich are doubtful.
FEW_GROUPS, _FEW_IN_A_COMPONENT = 50, 10
_LEAST_FREEDOM = 3  # The least whole number of degrees of freedom with which Student's t has a variance.
_N_RESAMPLES = 200  # Of the bootstrap: standard deviations are then known to 5 %.
# About how long a refit takes on one core: of few rows, and more by the products of a pass over the rows.
_SECONDS_OF_REFIT, _SECONDS_A_PRODUCT = 0.015, 5e-8
# Draws of the exact posterior for deviations of predictions. Where a probability is nearly one in most draws
# and not in a few, as far from the clusters, the hundreds that are enough for the parameters are too few.
_DRAWS_FOR_ROWS = 2048
_FAR_FROM_FIT = 1.0  # Standard deviations from the fit, above which a posterior mean is told.


@dataclass(frozen=True)
class RowQuantity:
    """What is predicted of rows, by the ways to its standard deviations.

    Attributes
    ----------
    method : str, the estimator's method that predicts it
    values : callable (Rows, posterior), what it is in the fit
    deviations : callable (ResponsesOfRows, RowBlock), by linear response
    of_log_densities : callable, its values from log densities under draws (`deviations_of_rows`)
    """

    method: str
    values: Callable
    deviations: Callable
    of_log_densities: Callable


PROBABILITIES = RowQuantity(
    "predict_proba", responsibilities_of_rows, responsibility_deviations, probabilities
)
SCORES = RowQuantity("score_samples", scores_of_rows, score_deviations, scores)


@dataclass(eq=False)
class Answer(ABC):
    """What a question about the parameters is answered by.

    Attributes
    ----------
    mixture : estimator of a mixture
    rows : Rows, the training rows of positive weight, or None where they are not known
    name : str, the method
    note : str, a line that says what it is, and how far to trust it
    """

    mixture: Any
    rows: Any
    name: ClassVar[str]

    def __post_init__(self):
        self.uncertainty = self.mixture._uncertainty

    @abstractmethod
    def covariance(self, targets):
        """Joint covariance of flat targets, by their names, (d, d)."""

    @abstractmethod
    def margins_of(self, targets):
        """The function from the name of one of some targets to its means, deviations and intervals."""

    @abstractmethod
    def parameters(self, n_draws, generator):
        """Draws: DrawnParameters."""

    def _as_it_exists(self, covariance, targets, counts):
        """A covariance of targets, given expected rows (n, K): inf, and NaN beside, where there is none."""
        parts = [self.uncertainty.targets[name] for name in targets]
        without = np.concatenate([~part.has_moments(counts)[1] for part in parts])
        covariance[without], covariance[:, without] = np.nan, np.nan
        covariance[without, without] = np.inf
        return covariance

    def of_rows(self, rows, quantity):
        """A `RowQuantity` in the fit, and its posterior standard deviations."""
        values = quantity.values(rows, self.uncertainty.fitted.posterior)
        return values, self._deviations_of_rows(rows, quantity, values.shape[1:])

    def _deviations_of_rows(self, rows, quantity, shape):
        """Posterior standard deviations of a `RowQuantity`, (n_given, *shape)."""
        raise ValueError(f"method={self.name!r} has no standard deviations of {quantity.method}; 'lrvb' has.")

    def means_of_components(self):
        """Posterior means of the components' means, (K, P), and their covariances, (K, P, P)."""
        shape = self.uncertainty.targets["means"].shape
        joint = self.covariance(["means"]).reshape(*shape, *shape)
        return self.margins_of(["means"])("means").mean.reshape(shape), np.einsum("kpkq->kpq", joint)


@dataclass(eq=False)
class LinearResponse(Answer):
    """The posterior by linear response, with a note on whether that is good."""

    name = "lrvb"
    note: str

    @property
    def is_doubtful(self):
        """Whether there is an exact posterior, and no check that has called linear response good."""
        verdict = self.uncertainty.verdict
        is_good = verdict is not None and verdict.state == "good"
        return not is_good and PosteriorSampler(self.uncertainty).why_not_exact() is None

    def _deviations_of_rows(self, rows, quantity, shape):
        """By the delta method."""
        with self.mixture._tracked(quantity.method) as tracked:
            return self.uncertainty.of_rows(rows, quantity.deviations, shape, tracked)

    def covariance(self, targets):
        covariance = self.uncertainty.covariance(targets, self.name, self.rows)
        return self._as_it_exists(covariance, targets, self.uncertainty.fitted.posterior.counts[None])

    def _information(self, targets):
        """What the margins of some targets are computed from."""
        return None if self.rows is None else self.uncertainty.information(targets, self.rows)

    def margins_of(self, targets):
        information = self._information(targets)
        return lambda name: self.uncertainty.margins(name, information)

    def means_of_components(self):
        """The same, without the covariances between components."""
        means = self.uncertainty.targets["means"]
        information = self._information(["means"]) or self.uncertainty.information(["means"])
        with self.uncertainty.source.threads():
            return means.value(), means.covariances_of_components(information)

    def parameters(self, n_draws, generator):
        sampler = PosteriorSampler(self.uncertainty, self.rows)
        with self.mixture._tracked("sample") as tracked:
            return sampler.draws(n_draws, generator, tracked)


class MeanField(LinearResponse):
    """The variational posterior q itself."""

    name = "mean_field"
    is_doubtful = False

    def _information(self, targets):
        return self.uncertainty.of_mean_field

    def parameters(self, n_draws, generator):
        raise ValueError("method='mean_field' is not drawn from: take method='lrvb', or 'exact'.")

    _deviations_of_rows = Answer._deviations_of_rows


class Exact(Answer):
    """The exact posterior, by the draws of an `ExactPosterior`, and so many at least.

    Attributes
    ----------
    draws : ChainDraws
    """

    name = "exact"

    def __init__(self, mixture, rows, exact, n_draws):
        super().__init__(mixture, rows)
        self.exact = self._at_least(exact, n_draws or 1)
        self.draws = self.exact.draws
        self.note = " ".join(filter(None, [self.exact.note, self._distance_from_fit()]))

    def _at_least(self, exact, n_draws):
        if n_draws > len(exact.draws) and self.rows is not None:
            self.uncertainty.source.check_training_rows(self.rows)
        with self.mixture._tracked("exact_posterior") as tracked:
            return exact.at_least(n_draws, self.rows, tracked)

    def _distance_from_fit(self):
        """A sentence on how far posterior means are from the fit; empty where they are close."""
        furthest, where = _FAR_FROM_FIT, ""
        for name in self.uncertainty.targets.reported_names[:2]:  # Weights, and means or tables.
            target, margins = self.uncertainty.targets[name], self.margins_of([name])(name)
            gaps = np.abs(margins.mean - target.flat_value())
            known = target.is_reported(LEAST_COUNT) & (margins.deviation > 0) & np.isfinite(margins.deviation)
            distances = np.divide(gaps, margins.deviation, out=np.zeros_like(gaps), where=known)
            if distances.max() > furthest:
                furthest = distances.max()
                where = target.labels(self.mixture._feature_names)[distances.argmax()]
        distance = f"up to {furthest:.1f} sd ({where}) from posterior means"
        way = "." if self.exact.is_fit_poor else ": n_init=12 and moves='search' look for a better one."
        return f"weights_ and predict are of the fit, which is {distance}{way}" if where else ""

    def _deviations_of_rows(self, rows, quantity, shape):
        """Over draws."""
        n_draws = _DRAWS_FOR_ROWS if self.rows is not None else min(_DRAWS_FOR_ROWS, len(self.draws))
        parameters = self.parameters(n_draws, np.random.RandomState(0))
        with self.mixture._tracked(quantity.method) as tracked, self.uncertainty.source.threads():
            return deviations_of_rows(rows, parameters, quantity.of_log_densities, shape, tracked)

    def covariance(self, targets):
        return self._as_it_exists(self.draws.covariance(targets), targets, self._least_rows)

    @property
    def _least_rows(self):
        """Rows of the components under draws with few, (n, K), less half a row: that of rounding."""
        return self.exact.few_counts - 0.5

    def margins_of(self, targets):
        known = self.uncertainty.targets
        return lambda name: with_moments_that_exist(self.draws.margins(name), known[name], self._least_rows)

    def means_of_components(self):
        """The same over draws, also where there are no moments."""
        shape = self.uncertainty.targets["means"].shape
        joint = self.draws.covariance(["means"]).reshape(*shape, *shape)
        return self.draws.margins("means").mean.reshape(shape), np.einsum("kpkq->kpq", joint)

    def parameters(self, n_draws, generator):
        drawn = self._at_least(self.exact, n_draws).draws.parameters
        some = generator.permutation(len(drawn.draws))[:n_draws]
        return drawn.with_draws(drawn.draws[some])


class SamplingVariationAnswer(Answer):
    """How the estimates vary from one sample to another; a subclass says in what way, `_of_samples`."""

    @property
    def note(self):
        parts, verdict = [self._of_samples], self.uncertainty.verdict
        if self.name == "sandwich" and verdict is not None and verdict.state != "good":
            parts.append(f"It is by linear response too. {verdict.sentence} method='bootstrap' refits.")
        empty = np.flatnonzero(~occupied(self.uncertainty.fitted.posterior.counts))
        if empty.size:
            parts.append(
                f"Components without rows: {', '.join(map(str, empty))}. Their estimates are the prior's, "
                "and hardly vary; min_count=0.5 leaves them out."
            )
        return " ".join(parts)

    @property
    @abstractmethod
    def _of_samples(self):
        """The note, before remarks on linear response and on components without rows."""


@dataclass(eq=False)
class IndependentRows(SamplingVariationAnswer):
    """How the estimates vary from one sample of independent rows to another: the sandwich."""

    name = "sandwich"

    @property
    def _of_samples(self):
        return (
            "Sandwich: how estimates vary from one sample of independent rows to another, whatever their "
            "distribution; a weight counts as so many rows. groups= tells which rows belong together."
        )

    def covariance(self, targets):
        return self.uncertainty.covariance(targets, "sandwich", self.rows)

    def margins_of(self, targets):
        return lambda name: _margins(
            self.uncertainty, name, np.sqrt(np.maximum(np.diag(self.covariance([name])), 0.0)), np.inf
        )

    def parameters(self, n_draws, generator):
        raise ValueError(
            "method='sandwich' draws estimates from groups of rows: pass groups. Where every row is on its "
            "own, groups=range(len(X)) says so."
        )


@dataclass(eq=False)
class Sandwich(SamplingVariationAnswer):
    """How the estimates vary from one sample of groups to another, by the influence of the groups."""

    name = "sandwich"
    groups: Any
    _last = None  # The last `SamplingVariation`.

    def _variation(self, coordinates):
        """`SamplingVariation` at some coordinates of the coefficients."""
        self.uncertainty.source.require_size(len(coordinates), "The sandwich covariance")
        with self.mixture._tracked("sandwich") as tracked:
            self._last = sampling_variation(self.rows, self.uncertainty, self.groups, coordinates, tracked)
        return self._last

    @property
    def _of_samples(self):
        # What is said is the same at all coordinates.
        variation = self._last or self._variation(np.zeros(1, dtype=np.intp))
        effect = variation.design_effect
        note = (
            f"Sandwich by {len(self.groups)} groups: design effect {effect:.2g}, so that error bars are "
            f"about {np.sqrt(effect):.1f} times those of independent rows."
        )
        least = int(variation.of_components.argmin())
        if variation.n_effective < FEW_GROUPS:
            is_worth = f"worth {variation.n_effective:.0f} of equal size, "
            few = is_worth if len(self.groups) >= FEW_GROUPS else ""
            few = f"With few groups ({few}fewer than {FEW_GROUPS})"
        elif variation.of_components[least] < _FEW_IN_A_COMPONENT:
            is_worth = f"{variation.of_components[least]:.0f} groups of equal size"
            few = f"The rows of component {least} are worth those of {is_worth}: its"
        else:
            return note
        return (
            f"{note} {few} intervals are too short, those of covariances most; method='bootstrap' is safer."
        )

    def _of(self, targets):
        return [self.uncertainty.targets[name] for name in targets]

    def covariance(self, targets):
        coordinates = joint_coordinates(self._of(targets))
        return covariance(self._of(targets), coordinates, self._variation(coordinates), with_excess=False)

    def margins_of(self, targets):
        variation = self._variation(joint_coordinates(self._of(targets)))

        def margins(name):
            deviations = np.sqrt(variance(self.uncertainty.targets[name], variation, with_excess=False))
            return _margins(self.uncertainty, name, deviations, self.groups.degrees_of_freedom)

        return margins

    def parameters(self, n_draws, generator):
        """Draws of a multivariate Student's t, so that their quantiles are the limits of intervals."""
        fitted, source = self.uncertainty.fitted, self.uncertainty.source
        freedom = self.groups.degrees_of_freedom
        if freedom < _LEAST_FREEDOM:
            raise ValueError(
                f"{len(self.groups)} groups, less one for every stratum, leave {freedom} degree(s) of "
                f"freedom, and draws by Student's t have a variance from {_LEAST_FREEDOM} on. (a) "
                "Ask for intervals: summary. (b) method='bootstrap' draws by refits."
            )
        variation = self._variation(np.arange(source.size))
        model = fitted.posterior.model
        copula = model.copula(self.uncertainty.targets, variation, with_excess=False)
        normals = generator.standard_normal((n_draws, copula.n_normals))
        normals *= np.sqrt(freedom / generator.chisquare(freedom, n_draws))[:, None]
        draws = copula.draws_of_estimates(copula.responses(normals))
        return model.parameters(fitted.posterior, fitted.origin, draws)


class Bootstrap(SamplingVariationAnswer):
    """How the estimates vary from one sample of groups to another, by refits to resamples of the groups.

    In each stratum of n groups, n - 1 are drawn with replacement, and count n/(n - 1) times as often: so the
    variance is unbiased. If a share f of the stratum was sampled, the deviations of these weights from 1 are
    multiplied by sqrt(1 - f) (Rao, Wu and Yue, "Some recent work on resampling methods for complex surveys",
    1992).
    """

    name = "bootstrap"

    def __init__(self, mixture, rows, groups, seed, n_draws):
        super().__init__(mixture, rows)
        self.groups, self._n_asked = groups, n_draws or _N_RESAMPLES
        self._refits = list(self._refitted(np.random.RandomState(seed)))
        if not self._refits:
            raise ValueError(
                f"None of {self._n_asked} refits to resamples of {len(groups)} groups can be used: each did "
                "not converge, or lost a component. (a) Lower n_components. (b) Use smaller groups, if their "
                "rows are independent."
            )

    @property
    def _of_samples(self):
        n_lost = self._n_asked - len(self._refits)
        note = f"Bootstrap: {len(self._refits)} refits to resamples of {len(self.groups)} groups."
        return f"{note} {n_lost} other refits did not converge, or lost a component." if n_lost else note

    def _refitted(self, generator):
        """Yield the posteriors of resamples that can be used: VariationalPosterior."""
        posterior = self.uncertainty.fitted.posterior
        held = occupied(posterior.counts)
        with self.mixture._tracked("bootstrap") as tracked:
            for _ in tracked(range(self._n_asked), self._n_asked):
                factors = self.groups.resampled(generator)
                try:
                    fit = refitted(self.rows.reweighted(factors), posterior)
                except DegenerateComponentError:
                    continue
                if fit.converged and not np.any(held & ~occupied(fit.posterior.counts)):
                    yield fit.posterior

    @cached_property
    def _targets(self):
        """The targets of all refits, list."""
        if len(self._refits) < 2:
            raise ValueError(
                "Less than two refits to resamples have no variance: raise n_draws, to "
                f"{_N_RESAMPLES} for standard deviations within 5 %."
            )
        return [type(self.uncertainty.targets)(refit, self.rows.origin) for refit in self._refits]

    def _values(self, name):
        """The flat entries of a target in all resamples, (n, d)."""
        try:
            return np.stack([targets[name].flat_value() for targets in self._targets])
        except NoCovarianceError:
            which = "In one or more refits to resamples a component"
            raise NoCovarianceError.of(which, "at most two") from None

    def covariance(self, targets):
        values = np.concatenate(list(map(self._values, targets)), axis=1)
        return np.atleast_2d(np.cov(values.T))

    def margins_of(self, targets):
        freedom = self.groups.degrees_of_freedom
        return lambda name: _margins(self.uncertainty, name, self._values(name).std(axis=0, ddof=1), freedom)

    def parameters(self, n_draws, generator):
        """The first resamples."""
        if n_draws > self._n_asked:
            raise ValueError(
                f"{self._n_asked} resamples have no {n_draws} draws. (a) Ask for fewer. (b) Pass n_draws="
                f"{n_draws} to posterior. (c) method='sandwich' has as many as you like."
            )
        fitted = self.uncertainty.fitted
        draws_at = fitted.posterior.model.parameters.draws_at
        draws = [draws_at(fitted.posterior, refit) for refit in self._refits[:n_draws]]
        if len(draws) < n_draws:
            warn_caller(self.note)
        return fitted.posterior.model.parameters(
            fitted.posterior, fitted.origin, DrawArrays.concatenated(draws)
        )


def _margins(uncertainty, name, deviations, freedom):
    """Margins of estimates with some standard deviations: FamilyMargins."""
    target = uncertainty.targets[name]
    return FamilyMargins(target.flat_value(), deviations, target.families(), freedom)


def answer_of_posterior(mixture, method, rows, seed, n_draws=None):
    """What answers a question about the posterior: `LinearResponse`, `MeanField` or `Exact`.

    Parameters
    ----------
    method : {"auto", "lrvb", "mean_field", "exact"}
    rows : Rows or None, the training rows of positive weight, if the caller has them; they are checked
    seed : int or None, of chains; None takes those that were made first, if there are any
    n_draws : int or None, the least number of exact draws
    """
    uncertainty = mixture._uncertainty
    if rows is not None:
        uncertainty.source.check_training_rows(rows)
    if method == "mean_field":
        return MeanField(mixture, rows, "Mean field: q itself, under which components are independent.")
    if method == "lrvb":
        known, reason = uncertainty.verdict, PosteriorSampler(uncertainty).why_not_exact()
        note = (
            "Linear response; posterior_check says how good it is."
            if reason is None
            else _not_checked(reason)
        )
        return LinearResponse(mixture, rows, note if known is None else known.sentence)
    known_rows = uncertainty.source.training_rows() if rows is None else rows
    sampler = PosteriorSampler(uncertainty, known_rows)
    if method == "auto":
        note = _note_of_linear_response(mixture, sampler, known_rows, seed)
        if note is not None:
            return LinearResponse(mixture, rows, note)
    exact = _kept_exact(uncertainty, seed)
    if exact is None:
        _require_rows(known_rows, method)
        sampler.checked_rows(known_rows)
        # Without a seed of the user's the fit has one: its answers are the same in every session.
        generator = np.random.RandomState(seed or 0)
        of_chains = int(generator.randint(2**63, dtype=np.uint64))
        with mixture._tracked("exact_posterior") as tracked:
            exact = ExactPosterior(sampler, known_rows, of_chains, tracked)
        uncertainty.exact = (*uncertainty.exact[:1], (seed or 0, exact))
        if not exact.has_converged:
            warn_caller(exact.note)
    return Exact(mixture, known_rows, exact, n_draws)


def answer_of_samples(mixture, method, given, seed, design, n_draws):
    """What answers a question about the variation from sample to sample: an `Answer`.

    Parameters
    ----------
    method : {"auto", "sandwich", "bootstrap"}
    given : Rows or None, the training rows that the user has passed again
    seed : int or None, of resamples
    design : tuple, the groups, strata and sizes of strata that the user has passed
    n_draws : int or None, the number of resamples
    """
    source, posterior = mixture._uncertainty.source, mixture._uncertainty.fitted.posterior
    given = source.training_rows() if given is None else given
    _require_rows(given, "sandwich" if method == "auto" else method)
    rows = given.counted()
    source.check_training_rows(rows)
    if method == "sandwich" and not are_given(design):
        return IndependentRows(mixture, rows)
    groups = groups_that_count(rows, posterior, row_groups(given, *design).along_counted(given, rows))
    if method == "bootstrap" or (method == "auto" and _takes_bootstrap(mixture, rows, n_draws)):
        return Bootstrap(mixture, rows, groups, seed or 0, n_draws)
    return Sandwich(mixture, rows, groups)


def _takes_bootstrap(mixture, rows, n_draws):
    """Whether refits take the place of linear response: where that is not good, and they are quick."""
    verdict = _verdict_or_reason(mixture, PosteriorSampler(mixture._uncertainty, rows), rows)
    if isinstance(verdict, str) or verdict.state == "good":
        return False
    products = rows.n_samples * mixture._uncertainty.fitted.posterior.products_per_row
    seconds = (n_draws or _N_RESAMPLES) * (_SECONDS_OF_REFIT + _SECONDS_A_PRODUCT * products)
    return seconds <= _MOST_SECONDS_OF_BOOTSTRAP


def are_given(design):
    """Whether a user has passed groups, strata or their sizes: tuple."""
    return any(part is not None for part in design)


def check_of_posterior(mixture, sampler, rows, n_draws, random_state):
    """How good linear response is: PosteriorCheck. The first one decides, so that answers do not change."""
    names, uncertainty = mixture.posterior_names_, mixture._uncertainty
    with mixture._tracked("posterior_check") as tracked:
        check = checked_posterior(sampler, rows, n_draws, random_state, names, tracked)
    if uncertainty.verdict is None:
        uncertainty.verdict = check.decided
    return check


def _known_verdict(mixture, sampler, rows):
    """The `Verdict` of the fit's check, made once."""
    if mixture._uncertainty.verdict is None:
        check_of_posterior(mixture, sampler, rows, 0, np.random.RandomState(0))
    return mixture._uncertainty.verdict


def _not_checked(reason):
    return f"Linear response, not checked. {reason}"


def _verdict_or_reason(mixture, sampler, rows):
    """The `Verdict` of the fit's check, or why there is none without being asked for: str."""
    uncertainty, n_parameters = mixture._uncertainty, len(mixture.posterior_mean_)
    reason = sampler.why_not_exact()
    if reason is not None:
        return _not_checked(reason)
    if uncertainty.verdict is None and rows is None:
        return "Linear response, not checked: posterior_check(X), with the training rows, checks it."
    if uncertainty.verdict is None and n_parameters > _MOST_PARAMETERS:
        return (
            f"Linear response, not checked: it has {n_parameters} parameters, and a check of more than "
            f"{_MOST_PARAMETERS} takes minutes. posterior_check(X) makes it."
        )
    return _known_verdict(mixture, sampler, rows)


def _note_of_linear_response(mixture, sampler, rows, seed):
    """What to say of linear response where "auto" takes it; None where it takes the exact posterior."""
    verdict = _verdict_or_reason(mixture, sampler, rows)
    if isinstance(verdict, str):
        return verdict
    if verdict.is_enough:
        return verdict.sentence
    if _kept_exact(mixture._uncertainty, seed) is not None:
        return None
    if rows is None:
        return (
            f"{verdict.sentence} The exact posterior needs the training rows: posterior(X), with these, "
            "computes it."
        )
    seconds = seconds_of_exact(sampler.posterior, rows)
    if seconds > _MOST_SECONDS:
        return (
            f"{verdict.sentence} The exact posterior would take {seconds:.0f} seconds or "
            'more: ask for it by method="exact".'
        )
    return None


def _kept_exact(uncertainty, seed):
    """The exact posterior of a seed, if it is kept; without a seed the first one. None if there is none.

    So what is asked without a seed has the same answer, whatever is asked with seeds in between.
    """
    kept = uncertainty.exact
    if seed is None:
        return kept[0][1] if kept else None
    return next((exact for own, exact in kept if own == seed), None)


def _require_rows(rows, method):
    """Raise ValueError where a method needs the training rows, and they are None."""
    if rows is None:
        raise ValueError(
            f"method={method!r} needs the training rows: pass X. (Only up to 64 MiB of rows are kept in "
            "memory after a fit, and none in pickles. Predictions, whose X is other rows, are those of "
            "posterior(X) with the training rows.)"
        )
