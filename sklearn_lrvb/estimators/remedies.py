"""Other models for rows that a mixture does not fit, and what they gain: fits to the same rows.

Gains are differences of the log evidence, to second order. If another start of the same model is better, it
is examined in place of the mixture, and the others are compared with it. Where a model has transformed
columns, the logarithm of the transformation's derivative is added; where it has more components, that of
P(K). So all gains compare, but for those of densities that the package does not have: they are rough, and
rank three nats lower. A column of few values has no density. Uniform noise as wide as the smallest gap
between values gives it one (*dequantisation*), whose evidence is a lower bound on that of the values.
"""

import contextlib
import warnings
from dataclasses import replace
from functools import cached_property

import numpy as np

from sklearn_lrvb.answers.conclusions import Optimum
from sklearn_lrvb.answers.model_check import LEAST_GAIN, Remedy
from sklearn_lrvb.estimators.alternatives import as_new, listed, logarithm_of
from sklearn_lrvb.estimators.other_densities import (
    gain_of_log_normal,
    gain_of_negative_binomial,
    values_in_components,
)
from sklearn_lrvb.mixture.model import occupied
from sklearn_lrvb.mixture.refit import with_one_more
from sklearn_lrvb.mixture.weight_priors import DirichletWeights
from sklearn_lrvb.sampling.labels import log_copies
from sklearn_lrvb.sampling.number_evidence import log_number_prior

_MOST_UNKNOWNS = 3000  # Of a posterior whose evidence is computed beyond the lower bound.
_MOST_NOISE = 0.5  # Share of rows that may belong to no component.
_SPLITS = 3  # Components that are split for a model of one component more.
_STARTS, _OTHER_SEED = 5, 20_071  # Of starts that show whether another one is better; nobody has this seed.


def remedies(mixture, X, is_fitted_to_all, examination, examine, tracked):
    """What other models gain over a mixture, the best one first: list of Remedy.

    Parameters
    ----------
    mixture : estimator of a mixture, fitted
    X : (n, P), the rows that were examined, encoded; those that were chosen are fitted
    is_fitted_to_all : bool, whether these are all training rows, so that the mixture need not be fitted again
    examination : Examination
    examine : callable, which makes the examination of these rows under another mixture and its training rows
    tracked : Tracked, which reports the progress through the alternatives
    """
    kind, names = mixture._kind_of_mixture(mixture), mixture._feature_names
    chosen = X[examination.chosen]  # Evidences take rows as independent.
    if examination.gross:  # Densities have no limit beside a spike, and their evidences mean nothing.
        return _of_repeated_values(kind, chosen, examination.gross, names)
    fits, tried = _Fits(kind, chosen, is_fitted_to_all), []
    if fits.base is None:  # These rows cannot be fitted.
        return []
    if kind.unfitted.n_components > 1:
        start, gain = kind.another_start(), fits.gain_of_start()
        tried.append((start, gain))
        if gain >= LEAST_GAIN:
            examination = examine(fits.base._uncertainty, fits.training_rows(fits.base))
            if not examination.departures:
                start = replace(start, problem=f"{start.problem} Nothing departs from that one.")
                return [_remedy(start, gain, names)]
    alternatives = kind.alternatives(fits.base, examination, X, names)
    for alternative in tracked(alternatives, len(alternatives)):
        tried.append((alternative, fits.gain(alternative)))
    tried = _with_best_logarithm(tried, fits, names)
    found = [_remedy(alternative, gain, names) for alternative, gain in tried if np.isfinite(gain)]
    of_logarithm = max((own.gain for own in found if own.kind == "skewness"), default=0.0)
    return sorted(found + _other_densities(examination, X, kind, names, of_logarithm), key=_rank)


def _remedy(alternative, gain, names):
    changed = [own.column for own in alternative.logarithms] + list(alternative.roots)
    columns = tuple(names[column] for column in changed)
    return Remedy(alternative.kind, alternative.problem, alternative.advice, gain, columns)


def _with_best_logarithm(tried, fits, names):
    """Alternatives and gains, with the best set alone of columns whose logarithm is taken: list of pairs.

    Besides each column and all of them there is the set of those that gain by themselves.
    """
    logarithms = [pair for pair in tried if pair[0].kind == "skewness"]
    if not logarithms:
        return tried
    alone = [own.logarithms[0] for own, gain in logarithms if len(own.logarithms) == 1 and gain > 0]
    if 1 < len(alone) < max(len(own.logarithms) for own, _ in logarithms):
        together = replace(logarithm_of(alone, names, logarithms[0][0].params), starts_anew=True)
        logarithms.append((together, fits.gain(together)))
    best = max(logarithms, key=lambda pair: pair[1])
    return [pair for pair in tried if pair[0].kind != "skewness"] + [best]


def _rank(remedy):
    """The smaller, the earlier: first a better start, where the others begin; then by gain."""
    is_better_start = remedy.kind == "start" and remedy.is_better
    return not is_better_start, LEAST_GAIN * (not remedy.is_model) - remedy.gain


@contextlib.contextmanager
def _silent():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


class _Fits:
    """A mixture and alternatives, fitted to the same rows.

    Parameters
    ----------
    kind : KindOfMixture
    X : (n, P), encoded
    is_fitted_to_all : bool, whether its mixture is fitted to these rows
    """

    def __init__(self, kind, X, is_fitted_to_all):
        self._X, self._kind = X, kind
        self._labels, self.base = kind.probabilities(X), kind.mixture
        if not is_fitted_to_all or not kind.is_same:
            self.base = self._from_labels({}, X)

    @classmethod
    def of_noisy(cls, kind, X, noisy):
        """The same of rows with noise, from the labels without it, or from own starts if those are better."""
        fits = cls(kind, X, True)
        bases = [fits._from_labels({}, noisy), fits._fitted(as_new(kind.unfitted), noisy)]
        fits.base = max(
            (own for own in bases if own is not None), key=lambda own: own.lower_bound_, default=None
        )
        return fits

    @cached_property
    def _log_evidence(self):
        with _silent():
            return None if self.base is None else _log_evidence(self.base)

    def _from_labels(self, params, X):
        """A fit that starts at the labels of the mixture."""
        start = {"init_params": self._labels, "n_init": 1}
        return self._fitted(as_new(self._kind.unfitted, **params, **start), X)

    def _fitted(self, candidate, X):
        """A candidate, fitted to encoded rows; None where that is not possible."""
        with _silent(), contextlib.suppress(ValueError, MemoryError):
            return candidate.fit(self._kind.table_of(X))
        return None

    def gain(self, alternative):
        """In nats; minus infinity where there is no fit."""
        X, log_derivative = alternative.transformed(self._X)
        with _silent():
            fits = [own for own in self._candidates(alternative, X) if own is not None]
            if alternative.kind == "outliers":  # Where most rows are noise, there are no clusters.
                fits = [own for own in fits if own.noise_weight_ < _MOST_NOISE]
            evidences = [_log_evidence(own) for own in fits]
        if not evidences:
            return -np.inf
        return max(evidences) + log_derivative - self._log_evidence

    def gain_of_start(self):
        """That of other starts of the same model. If they are better, others are compared with them."""
        starts = {"n_init": _STARTS, "random_state": _OTHER_SEED}
        candidate = self._fitted(as_new(self._kind.unfitted, **starts), self._X)
        if candidate is None:
            return -np.inf
        with _silent():
            evidence = _log_evidence(candidate)
        gain = evidence - self._log_evidence
        if gain >= LEAST_GAIN:
            self.base, self._log_evidence = candidate, evidence
            self._labels = candidate.predict_proba(self._kind.table_of(self._X))
        return gain

    def gain_of_table(self, estimator, X, log_volume):
        """That of an estimator of rows whose values have a mass rather than a density, or None."""
        fit = self._fitted(estimator, X)
        if fit is None or self._log_evidence is None:
            return None
        with _silent():
            return _log_evidence(fit) - self._log_evidence - log_volume

    def training_rows(self, candidate):
        """The rows that a candidate is fitted to: Rows."""
        return candidate._training_rows(self._kind.table_of(self._X), None, candidate._uncertainty.fitted)

    def _candidates(self, alternative, X):
        """Yield fits, from the mixture's own components where they can be a start."""
        params = alternative.params
        if alternative.estimator is not None:
            yield self._fitted(as_new(alternative.estimator), X)
        elif "n_components" in params:
            from_starts = self._fitted(as_new(self._kind.unfitted, **params), X)
            yield from_starts
            if from_starts is not None:
                yield self._with_one_more(from_starts)
        else:
            yield self._from_labels(params, X)
            if alternative.starts_anew:
                yield self._fitted(as_new(self._kind.unfitted, **params), X)

    def _with_one_more(self, candidate):
        """The best mixture that a split of a component of the present one leads to."""
        fitted, rows = candidate._uncertainty.fitted, self.training_rows(candidate)
        optima = with_one_more(rows, self.base._uncertainty.fitted.posterior, fitted.posterior.prior, _SPLITS)
        best = max(optima, key=lambda own: own.lower_bound)
        if best.lower_bound > candidate.lower_bound_:
            return Optimum(candidate, rows, candidate._in_order(best)).as_estimator()
        return None


def _log_evidence(mixture):
    """log p(X) + log P(K), to second order, or by the lower bound of large posteriors: float."""
    posterior = mixture._uncertainty.fitted.posterior
    is_dirichlet = isinstance(posterior.prior.weights.of_components, DirichletWeights)
    copies = log_copies(posterior.counts) if is_dirichlet else 0.0
    evidence = mixture.lower_bound_
    if posterior.n_coefficients <= _MOST_UNKNOWNS:
        with contextlib.suppress(ValueError, MemoryError):
            evidence = mixture.log_evidence_
    return float(evidence) + copies + log_number_prior(np.count_nonzero(occupied(posterior.counts)))


def _other_densities(examination, X, kind, names, of_logarithm):
    """What densities that the package does not have would gain in the columns that they fit: list of Remedy.

    They are a log-normal one in place of a normal one, and a negative binomial count in place of a Poisson
    one, in columns that are skew, or vary too much. There is one at most of each: for the column that gains
    most.

    Parameters
    ----------
    examination : Examination
    X : (n, P), encoded
    kind : KindOfMixture
    names : list of str
    of_logarithm : float, gain of logarithms, which are preferred if they gain half as much as their density
    """
    gains = {"skewness": {}, "variance": {}}
    for test in examination.departures:
        column = test.columns[0] if test.columns else None
        is_skew = test.kind == "skewness" and examination.is_normal[column]
        is_wide = test.kind == "variance" and kind.is_count(column) and test.size > 1.0
        if (is_skew or is_wide) and column not in gains[test.kind]:
            parts = values_in_components(X, examination.labels, column)
            of_part = gain_of_log_normal if is_skew else gain_of_negative_binomial
            gains[test.kind][column] = sum(map(of_part, parts)), test
    made, densities = [], {"skewness": "log-normal", "variance": "negative binomial"}
    for of_kind, own in gains.items():
        if own:
            column = max(own, key=lambda place: own[place][0])
            gain, test = own[column]
            if of_kind == "skewness" and of_logarithm > 0.5 * gain:
                continue
            advice = (
                f"components that overlap in {names[column]!r} may be one cluster (a {densities[of_kind]} "
                f"component would gain {gain:.0f} nats, but the package has none)"
            )
            of_kind = "dispersion" if of_kind == "variance" else of_kind
            made.append(Remedy(of_kind, test.sentence(names), advice, gain, (names[column],), False))
    return made


def _of_repeated_values(kind, X, gross, names):
    """What to do about columns of few values, and about spikes: list of Remedy."""
    found, few = [], [own.column for own in gross if own.kind == "few values"]
    if few:
        is_one, which = len(few) == 1, listed([repr(names[column]) for column in few])
        problem = (
            f"Column{'s' * (not is_one)} {which} {'has' if is_one else 'have'} few values, and "
            f"{'is' if is_one else 'are'} not normal."
        )
        of_columns = tuple(names[column] for column in few)
        noisy, log_volume = _dequantised(X, few)
        fits = _Fits.of_noisy(kind, X, noisy)
        for column_kind in ("categorical", "count"):  # Counts are non-negative, else there is no fit.
            estimator, advice = kind.with_columns(few, column_kind, names)
            gain = fits.gain_of_table(estimator, X, log_volume)
            if gain is not None:
                found.append(Remedy("few values", problem, advice, gain, of_columns))
        found.sort(key=lambda own: -own.gain)
        found.append(
            Remedy(
                "few values",
                problem,
                f"leave {which} out of the fit, and compare clusters with it afterwards",
                np.nan,
                of_columns,
            )
        )
        if len(found) > 1 and not found[0].gain > 0:
            found.insert(0, found.pop())
    for own in gross:
        if own.kind == "spike":
            name = names[own.column]
            advice = (
                f"split column {name!r} in two, whether it is {own.value:.6g}, and its value where it is not "
                "(missing elsewhere), in an LRVBLatentClassMixture"
            )
            found.append(Remedy("spike", own.sentence(names), advice, np.nan, (name,)))
    return found


def _dequantised(X, columns):
    """Rows with uniform noise as wide as the smallest gap on some columns, and the sum of the log widths."""
    X, generator, log_volume = X.astype(np.float64), np.random.RandomState(0), 0.0
    for column in columns:
        values = X[:, column]
        width = np.diff(np.unique(values[~np.isnan(values)])).min()
        X[:, column] = values + width * (generator.random_sample(len(values)) - 0.5)
        log_volume += np.count_nonzero(~np.isnan(values)) * np.log(width)
    return X, log_volume
