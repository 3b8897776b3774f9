"""What answers questions about uncertainty: a posterior, or the variation from sample to sample.

*The posterior*, given the rows: `LinearResponse`, or `Exact` by draws. *Sampling variation*, how the
estimates vary from one sample of rows, or of groups of rows, to another: `IndependentRows` and `Sandwich`,
from the influence of rows and of groups, or `Bootstrap`, by refits. Each has a note, once it has answered,
that says what it is and what is doubtful about it.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import check_random_state

from sklearn_lrvb.answers.groups import sampling_variation
from sklearn_lrvb.answers.margins import FamilyMargins, with_moments_that_exist
from sklearn_lrvb.answers.targets import (
    NoCovarianceError,
    covariance,
    joint_coordinates,
    variance,
)
from sklearn_lrvb.caller_warnings import warn_caller
from sklearn_lrvb.estimators.arguments import checked_number
from sklearn_lrvb.mixture.model import DegenerateComponentError, occupied
from sklearn_lrvb.mixture.refit import refitted
from sklearn_lrvb.sampling.draws import DrawArrays
from sklearn_lrvb.sampling.likelihood import deviations_of_rows
from sklearn_lrvb.sampling.sampler import PosteriorSampler

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


@dataclass(eq=False)
class Answer(ABC):
    """What a question about the parameters is answered by.

    Attributes
    ----------
    mixture : estimator of a mixture
    rows : Rows, the training rows that count, or None where they are not known
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
        return self.mixture._of_rows(quantity.method, rows, quantity.deviations, shape)

    def covariance(self, targets, n_draws):
        return self.uncertainty.covariance(targets, "lrvb", self.rows)

    def margins_of(self, targets, n_draws):
        information = None if self.rows is None else self.uncertainty.information(targets, self.rows)
        return lambda name: self.uncertainty.margins(name, information)

    def parameters(self, n_draws, random_state):
        draws = PosteriorSampler(self.uncertainty, self.rows).draws
        return self.mixture._tracked(
            "sample_posterior", lambda tracked: draws(n_draws, random_state, tracked)
        )


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
        n_draws = 1 if n_draws is None else checked_number(n_draws)
        return self.mixture._tracked(
            "exact_posterior", lambda tracked: self.exact.at_least(n_draws, self.rows, tracked)
        )

    def deviations_of_rows(self, rows, quantity, shape):
        """Posterior standard deviations of a `RowQuantity`, (n_given, *shape), over draws."""
        kept = len(self.exact.draws)
        n_draws = _DRAWS_FOR_ROWS if self.rows is not None else min(_DRAWS_FOR_ROWS, kept)
        parameters = self.parameters(n_draws, np.random.RandomState(0))

        def deviations(tracked):
            with self.uncertainty.source.threads():
                return deviations_of_rows(rows, parameters, quantity.of_log_densities, shape, tracked)

        return self.mixture._tracked(quantity.method, deviations)

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
        self._last = self.mixture._tracked(
            "sandwich",
            lambda tracked: sampling_variation(
                self.rows, self.uncertainty, self.groups, coordinates, tracked
            ),
        )
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
        """Draws of a multivariate Student's t, so that their quantiles are the ends of intervals."""
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
        draws = model.draws_of_estimates(copula, copula.responses(normals))
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
        self._last, self._n_asked = [], _N_RESAMPLES if n_draws is None else checked_number(n_draws)

        def question(tracked):
            for _ in tracked(range(self._n_asked), self._n_asked):
                factors = self.groups.resampled(generator)
                try:
                    fit = refitted(self.rows.reweighted(factors), posterior)
                except DegenerateComponentError:
                    continue
                if fit.converged and not np.any(held & ~occupied(fit.posterior.counts)):
                    self._last.append(fit.posterior)

        self.mixture._tracked("bootstrap", question)
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
        if n_draws is None or checked_number(n_draws) > 1:
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
        draws_at = fitted.posterior.model.draws_at
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
