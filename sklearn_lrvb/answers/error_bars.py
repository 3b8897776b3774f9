"""What answers questions about the parameters: a posterior, or the variation from sample to sample.

*The posterior*, given the rows: `LinearResponse`, or `Exact` by draws. *Sampling variation*, how the
estimates vary from one sample of rows, or of groups of rows, to another: `IndependentRows` and `Sandwich`,
from the influence of rows and of groups, or `Bootstrap`, by refits. Each has a note, once it has answered,
that says what it is and what is doubtful about it.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import check_random_state

from sklearn_lrvb.answers.groups import groups_that_count, sampling_variation
from sklearn_lrvb.answers.leave_one_out import responsibility_deviations, score_deviations
from sklearn_lrvb.answers.margins import FamilyMargins, with_moments_that_exist
from sklearn_lrvb.answers.targets import NoCovarianceError, covariance, joint_coordinates, variance
from sklearn_lrvb.caller_warnings import warn_caller
from sklearn_lrvb.mixture.model import DegenerateComponentError, occupied
from sklearn_lrvb.mixture.refit import refitted
from sklearn_lrvb.rows import row_groups
from sklearn_lrvb.sampling.draws import DrawArrays
from sklearn_lrvb.sampling.exact import ExactPosterior, seconds_of_exact
from sklearn_lrvb.sampling.likelihood import deviations_of_rows, probabilities, scores
from sklearn_lrvb.sampling.posterior_check import checked_posterior
from sklearn_lrvb.sampling.sampler import PosteriorSampler

SAMPLING_METHODS = "sandwich", "bootstrap"  # Methods that are about the variation from sample to sample.
NO_GROUPS = (None, None, None)  # The groups, strata and sizes of strata that a user has not passed.
# What "auto" does without being asked: an exact posterior of about so many seconds, and a check of so many
# parameters, which factors a matrix and takes about a minute too.
_MOST_SECONDS, _MOST_PARAMETERS = 60.0, 9000
# Effective numbers of groups, in all and in a component, below which error bars of a sandwich are doubtful.
_FEW_GROUPS, _FEW_IN_A_COMPONENT = 50, 10
_LEAST_FREEDOM = 3  # The least whole number of degrees of freedom with which Student's t has a variance.
_N_RESAMPLES = 200  # Of the bootstrap: standard deviations are then known to 5 %.
# Draws of the exact posterior for deviations of predictions. Where a probability is nearly one in most draws
# and not in a few, as far from the clusters, the hundreds that are enough for the parameters are too few.
_DRAWS_FOR_ROWS = 1024


@dataclass(frozen=True)
class RowQuantity:
    """What is predicted of rows, by the ways to its standard deviations.

    Attributes
    ----------
    method : str, the estimator's method that predicts it
    deviations : callable (ResponsesOfRows, RowBlock), by linear response
    of_log_densities : callable, its values from log densities under draws (`deviations_of_rows`)
    """

    method: str
    deviations: Callable
    of_log_densities: Callable


PROBABILITIES = RowQuantity("predict_proba", responsibility_deviations, probabilities)
SCORES = RowQuantity("score_samples", score_deviations, scores)


@dataclass(eq=False)
class Answer(ABC):
    """What a question about the parameters is answered by.

    Attributes
    ----------
    mixture : estimator of a mixture
    rows : Rows, the training rows of positive weight, or None where they are not known
    """

    mixture: Any
    rows: Any
    name: ClassVar[str]

    def __post_init__(self):
        self.uncertainty = self.mixture._uncertainty

    @property
    @abstractmethod
    def note(self):
        """A line that says what it is, and how far to trust it; after a question was answered."""

    @abstractmethod
    def covariance(self, targets, n_draws):
        """Joint covariance of flat targets, by their names, (d, d).

        Parameters
        ----------
        targets : list of str
        n_draws : int or None, least number of draws, for answers by draws; None is their default
        """

    @abstractmethod
    def margins_of(self, targets, n_draws):
        """The function from the name of one of some targets to its means, deviations and intervals."""

    @abstractmethod
    def parameters(self, n_draws, random_state):
        """Draws: DrawnParameters."""


@dataclass(eq=False)
class LinearResponse(Answer):
    """The posterior by linear response, with a note on whether that is good."""

    name = "lrvb"
    verdict: str

    @property
    def note(self):
        return self.verdict

    @property
    def is_doubtful(self):
        """Whether there is an exact posterior, and no check that has called linear response good."""
        verdict = self.uncertainty.verdict
        is_good = verdict is not None and verdict.state == "good"
        return not is_good and PosteriorSampler(self.uncertainty).why_not_exact() is None

    def deviations_of_rows(self, rows, quantity, shape):
        """Posterior standard deviations of a `RowQuantity`, (n_given, *shape), by the delta method."""
        with self.mixture._tracked(quantity.method) as tracked:
            return self.uncertainty.of_rows(rows, quantity.deviations, shape, tracked)

    def covariance(self, targets, n_draws):
        return self.uncertainty.covariance(targets, "lrvb", self.rows)

    def margins_of(self, targets, n_draws):
        information = None if self.rows is None else self.uncertainty.information(targets, self.rows)
        return lambda name: self.uncertainty.margins(name, information)

    def parameters(self, n_draws, random_state):
        sampler = PosteriorSampler(self.uncertainty, self.rows)
        with self.mixture._tracked("sample_posterior") as tracked:
            return sampler.draws(n_draws, random_state, tracked)


@dataclass(eq=False)
class Exact(Answer):
    """The exact posterior, by the draws of an `ExactPosterior`."""

    name = "exact"
    exact: Any

    @property
    def note(self):
        return self.exact.note

    def _draws(self, n_draws):
        """All draws that were needed, and at least so many: ChainDraws."""
        with self.mixture._tracked("exact_posterior") as tracked:
            return self.exact.at_least(n_draws or 1, self.rows, tracked)

    def deviations_of_rows(self, rows, quantity, shape):
        """Posterior standard deviations of a `RowQuantity`, (n_given, *shape), over draws."""
        kept = len(self.exact.draws)
        n_draws = _DRAWS_FOR_ROWS if self.rows is not None else min(_DRAWS_FOR_ROWS, kept)
        parameters = self.parameters(n_draws, np.random.RandomState(0))
        with self.mixture._tracked(quantity.method) as tracked, self.uncertainty.source.threads():
            return deviations_of_rows(rows, parameters, quantity.of_log_densities, shape, tracked)

    def covariance(self, targets, n_draws):
        covariance = self._draws(n_draws).covariance(targets)
        parts = [self.uncertainty.targets[name] for name in targets]
        without = np.concatenate([~part.has_moments(self._least_rows)[1] for part in parts])
        covariance[without], covariance[:, without] = np.nan, np.nan
        covariance[without, without] = np.inf
        return covariance

    @property
    def _least_rows(self):
        """Rows of the components under draws with few, (n, K), less half a row: that of rounding."""
        return self.exact.few_counts - 0.5

    def margins_of(self, targets, n_draws):
        draws, known = self._draws(n_draws), self.uncertainty.targets
        return lambda name: with_moments_that_exist(draws.margins(name), known[name], self._least_rows)

    def parameters(self, n_draws, random_state):
        drawn = self._draws(n_draws).parameters
        some = random_state.permutation(len(drawn.draws))[:n_draws]
        return drawn.with_draws(drawn.draws[some])


class SamplingVariationAnswer(Answer):
    """How the estimates vary from one sample to another; a subclass says in what way, `_of_samples`."""

    @property
    def note(self):
        empty = np.flatnonzero(~occupied(self.uncertainty.fitted.posterior.counts))
        if not empty.size:
            return self._of_samples
        return (
            f"{self._of_samples} Components without rows: {', '.join(map(str, empty))}. Their estimates are "
            "the prior's, and hardly vary; min_count=0.5 leaves them out."
        )

    @property
    @abstractmethod
    def _of_samples(self):
        """The note, before the remark on components without rows."""


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

    def covariance(self, targets, n_draws):
        return self.uncertainty.covariance(targets, "sandwich", self.rows)

    def margins_of(self, targets, n_draws):
        return lambda name: _margins(
            self.uncertainty, name, np.sqrt(np.maximum(np.diag(self.covariance([name], None)), 0.0)), np.inf
        )

    def parameters(self, n_draws, random_state):
        raise ValueError(
            "method='sandwich' draws estimates from groups of rows: pass groups. Where every row is on its "
            "own, groups=range(len(X)) says so."
        )


@dataclass(eq=False)
class Sandwich(SamplingVariationAnswer):
    """How the estimates vary from one sample of groups to another, by the influence of the groups."""

    name = "sandwich"
    groups: Any

    def _variation(self, coordinates):
        """`SamplingVariation` at some coordinates of the coefficients."""
        self.uncertainty.source.require_size(len(coordinates), "The sandwich covariance")
        with self.mixture._tracked("sandwich") as tracked:
            self._last = sampling_variation(self.rows, self.uncertainty, self.groups, coordinates, tracked)
        return self._last

    @property
    def _of_samples(self):
        variation, effect = self._last, self._last.design_effect
        note = (
            f"Sandwich by {len(self.groups)} groups: design effect {effect:.2g}, so that error bars are "
            f"about {np.sqrt(effect):.1f} times those of independent rows."
        )
        least = int(variation.of_components.argmin())
        if variation.n_effective < _FEW_GROUPS:
            is_worth = f"worth {variation.n_effective:.0f} of equal size, "
            few = is_worth if len(self.groups) >= _FEW_GROUPS else ""
            few = f"With few groups ({few}fewer than {_FEW_GROUPS})"
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

    def covariance(self, targets, n_draws):
        coordinates = joint_coordinates(self._of(targets))
        return covariance(self._of(targets), coordinates, self._variation(coordinates), with_excess=False)

    def margins_of(self, targets, n_draws):
        variation = self._variation(joint_coordinates(self._of(targets)))

        def margins(name):
            deviations = np.sqrt(variance(self.uncertainty.targets[name], variation, with_excess=False))
            return _margins(self.uncertainty, name, deviations, self.groups.degrees_of_freedom)

        return margins

    def parameters(self, n_draws, random_state):
        """Draws of a multivariate Student's t, so that their quantiles are the limits of intervals."""
        fitted, source = self.uncertainty.fitted, self.uncertainty.source
        freedom = self.groups.degrees_of_freedom
        if freedom < _LEAST_FREEDOM:
            raise ValueError(
                f"{len(self.groups)} groups, less one for every stratum, leave {freedom} degree(s) of "
                f"freedom, and draws by Student's t have a variance from {_LEAST_FREEDOM} on. (a) "
                "Ask for intervals: posterior_summary. (b) method='bootstrap' draws by refits."
            )
        variation = self._variation(np.arange(source.size))
        model = fitted.posterior.model
        copula = model.copula(self.uncertainty.targets, variation, with_excess=False)
        normals = random_state.standard_normal((n_draws, copula.n_normals))
        normals *= np.sqrt(freedom / random_state.chisquare(freedom, n_draws))[:, None]
        draws = copula.draws_of_estimates(copula.responses(normals))
        return model.parameters(fitted.posterior, fitted.origin, draws)


@dataclass(eq=False)
class Bootstrap(SamplingVariationAnswer):
    """How the estimates vary from one sample of groups to another, by refits to resamples of the groups.

    In each stratum of n groups, n - 1 are drawn with replacement, and count n/(n - 1) times as often: so the
    variance is unbiased. If a share f of the stratum was sampled, the deviations of these weights from 1 are
    multiplied by sqrt(1 - f) (Rao, Wu and Yue, "Some recent work on resampling methods for complex surveys",
    1992).
    """

    name = "bootstrap"
    groups: Any
    random_state: Any

    @property
    def _of_samples(self):
        n_lost = self._n_asked - len(self._last)
        note = f"Bootstrap: {len(self._last)} refits to resamples of {len(self.groups)} groups."
        return f"{note} {n_lost} other refits did not converge, or lost a component." if n_lost else note

    def _refits(self, n_draws):
        """The posteriors of resamples: list of VariationalPosterior."""
        generator, posterior = check_random_state(self.random_state), self.uncertainty.fitted.posterior
        held = occupied(posterior.counts)
        self._last, self._n_asked = [], n_draws or _N_RESAMPLES
        with self.mixture._tracked("bootstrap") as tracked:
            for _ in tracked(range(self._n_asked), self._n_asked):
                factors = self.groups.resampled(generator)
                try:
                    fit = refitted(self.rows.reweighted(factors), posterior)
                except DegenerateComponentError:
                    continue
                if fit.converged and not np.any(held & ~occupied(fit.posterior.counts)):
                    self._last.append(fit.posterior)
        if not self._last:
            raise ValueError(
                f"None of {self._n_asked} refits to resamples of {len(self.groups)} groups can be used: each "
                "did not converge, or lost a component. (a) Lower n_components. (b) Use smaller groups, if "
                "their rows are independent."
            )
        return self._last

    def _values_of(self, n_draws):
        """The function from the name of a target to its flat entries in all resamples, (n, d)."""
        refits = []
        if n_draws != 1:
            kind, refits = type(self.uncertainty.targets), self._refits(n_draws)
            refits = [kind(posterior, self.rows.origin) for posterior in refits]
        if len(refits) < 2:
            raise ValueError(
                "Less than two refits to resamples have no variance: raise n_draws, to "
                f"{_N_RESAMPLES} for standard deviations within 5 %."
            )

        def values(name):
            try:
                return np.stack([of[name].flat_value() for of in refits])
            except NoCovarianceError:
                which = "In one or more refits to resamples a component"
                raise NoCovarianceError.of(which, "at most two") from None

        return values

    def covariance(self, targets, n_draws):
        values = np.concatenate(list(map(self._values_of(n_draws), targets)), axis=1)
        return np.atleast_2d(np.cov(values.T))

    def margins_of(self, targets, n_draws):
        values_of, freedom = self._values_of(n_draws), self.groups.degrees_of_freedom
        return lambda name: _margins(self.uncertainty, name, values_of(name).std(axis=0, ddof=1), freedom)

    def parameters(self, n_draws, random_state):
        fitted = self.uncertainty.fitted
        draws_at = fitted.posterior.model.parameters.draws_at
        draws = [draws_at(fitted.posterior, refit) for refit in self._refits(n_draws)]
        if len(draws) < n_draws:
            warn_caller(self.note)
        return fitted.posterior.model.parameters(
            fitted.posterior, fitted.origin, DrawArrays.concatenated(draws)
        )


def _margins(uncertainty, name, deviations, freedom):
    """Margins of estimates with some standard deviations: FamilyMargins."""
    target = uncertainty.targets[name]
    return FamilyMargins(target.flat_value(), deviations, target.families(), freedom)


def answer_of_posterior(mixture, method, rows, random_state):
    """What answers a question about the posterior: `LinearResponse` or `Exact`.

    Parameters
    ----------
    method : {"auto", "lrvb", "exact"}
    rows : Rows or None, the training rows of positive weight, if the caller has them; they are checked
    """
    uncertainty = mixture._uncertainty
    if rows is not None:
        uncertainty.source.check_training_rows(rows)
    if method == "lrvb":
        known = uncertainty.verdict
        note = "Linear response; posterior_check says how good it is." if known is None else known.sentence
        return LinearResponse(mixture, rows, note)
    known_rows = uncertainty.source.training_rows() if rows is None else rows
    sampler = PosteriorSampler(uncertainty, known_rows)
    if method == "auto":
        note = _note_of_linear_response(mixture, sampler, known_rows, random_state)
        if note is not None:
            return LinearResponse(mixture, rows, note)
    exact = _kept_exact(uncertainty, random_state)
    if exact is None:
        _require_rows(known_rows, method)
        sampler.checked_rows(known_rows)
        # Without a seed of the user's the fit has one: its answers are the same in every session.
        generator = check_random_state(0 if random_state is None else random_state)
        seed = int(generator.randint(2**63, dtype=np.uint64))
        state = _known_verdict(mixture, sampler, known_rows).state
        with mixture._tracked("exact_posterior") as tracked:
            exact = ExactPosterior(sampler, known_rows, seed, state, tracked)
        own_seed = random_state if isinstance(random_state, Integral) else None
        uncertainty.exact = (*uncertainty.exact[:1], (0 if random_state is None else own_seed, exact))
    if not exact.has_converged:
        warn_caller(exact.note)
    return Exact(mixture, known_rows, exact)


def answer_of_samples(mixture, method, given, random_state, design):
    """What answers a question about the variation from sample to sample: an `Answer`.

    Parameters
    ----------
    method : {"auto", "sandwich", "bootstrap"}
    given : Rows or None, the training rows that the user has passed again
    design : tuple, the groups, strata and sizes of strata that the user has passed
    """
    source, posterior = mixture._uncertainty.source, mixture._uncertainty.fitted.posterior
    given = source.training_rows() if given is None else given
    _require_rows(given, "sandwich" if method == "auto" else method)
    rows = given.counted()
    source.check_training_rows(rows)
    if method == "sandwich" and not are_given(design):
        return IndependentRows(mixture, rows)
    groups = groups_that_count(rows, posterior, row_groups(given, *design).along_counted(given, rows))
    if method == "bootstrap":
        return Bootstrap(mixture, rows, groups, random_state)
    return Sandwich(mixture, rows, groups)


def are_given(design):
    """Whether a user has passed groups, strata or their sizes: tuple."""
    return any(part is not None for part in design)


def verdict_of_linear_response(mixture):
    """What to say of error bars by linear response, and where to find those that the table has: str."""
    uncertainty = mixture._uncertainty
    rows = uncertainty.source.training_rows()
    note = _note_of_linear_response(mixture, PosteriorSampler(uncertainty, rows), rows, None)
    return note or f"{uncertainty.verdict.sentence} posterior_summary draws from the exact posterior."


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


def _note_of_linear_response(mixture, sampler, rows, random_state):
    """What to say of linear response where "auto" takes it; None where it takes the exact posterior."""
    uncertainty, n_parameters = mixture._uncertainty, len(mixture.posterior_mean_)
    is_known, reason = uncertainty.verdict is not None, sampler.why_not_exact()
    if reason is not None:
        return f"Linear response, not checked. {reason}"
    if rows is None and not is_known:
        return "Linear response, not checked: posterior_check(X), with the training rows, checks it."
    if n_parameters > _MOST_PARAMETERS and not is_known:
        return (
            f"Linear response, not checked: it has {n_parameters} parameters, and a check of more than "
            f"{_MOST_PARAMETERS} takes minutes. posterior_check(X) makes it."
        )
    verdict = _known_verdict(mixture, sampler, rows)
    if verdict.state == "good":
        return verdict.sentence
    if _kept_exact(uncertainty, random_state) is not None:
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


def _kept_exact(uncertainty, random_state):
    """The exact posterior of a seed, if it is kept; without a seed the first one. None if there is none.

    So what is asked without a seed has the same answer, whatever is asked with seeds in between.
    """
    kept = uncertainty.exact
    if isinstance(random_state, Integral):
        return next((exact for seed, exact in kept if seed == random_state), None)
    return kept[0][1] if random_state is None and kept else None


def _require_rows(rows, method):
    """Raise ValueError where a method needs the training rows, and they are None."""
    if rows is None:
        raise ValueError(
            f"method={method!r} needs the training rows: pass X. (Only up to 64 MiB of rows are kept in "
            "memory after a fit, and none in pickles. Predictions, whose X is other rows, take what "
            "posterior_summary(X) with the training rows and the same method has drawn before.)"
        )
