"""Other models for rows that a mixture does not fit, and what they gain: fits to the same rows.

A gain is the log evidence of another model, less that of the reference fit. The reference is the fit of the
user, or one from other starts, if that is better by three nats; then it is examined in place of the user's.
Where a model has transformed columns, the logarithm of the transformation's derivative is added. Where one of
two fits has no evidence, their lower bounds are compared. Gains of densities that the package does not have
are rough, and rank three nats lower.

A column of few values has no density. Uniform noise as wide as the smallest gap between values gives it one
(*dequantisation*), whose evidence is a lower bound on that of the values.
"""

import contextlib
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from sklearn_lrvb.answers.conclusions import Optimum
from sklearn_lrvb.answers.model_check import LEAST_GAIN, Remedy
from sklearn_lrvb.answers.model_tests import MOST_UNKNOWNS
from sklearn_lrvb.answers.single_values import listed_first
from sklearn_lrvb.estimators.alternatives import logarithm_of
from sklearn_lrvb.estimators.callbacks import untold_copy
from sklearn_lrvb.estimators.other_densities import (
    gain_of_log_normal,
    gain_of_negative_binomial,
    values_in_components,
)
from sklearn_lrvb.mixture.model import occupied
from sklearn_lrvb.mixture.refit import with_one_more
from sklearn_lrvb.mixture.weight_priors import DirichletWeights
from sklearn_lrvb.sampling.labels import log_copies_of
from sklearn_lrvb.sampling.number_evidence import log_number_prior

_MOST_NOISE = 0.5  # Share of rows that may belong to no component.
_SPLITS = 3  # Components that are split for a model of one component more.
_OTHER_STARTS, _OTHER_SEED = 5, 20_071  # That show whether the fit is the best one; an unusual seed.


def remedies(kind, X, is_fitted_to_all, examination, examine, tracked):
    """What other models gain over a mixture, the best one first: list of Remedy.

    Parameters
    ----------
    kind : KindOfMixture
    X : (n, P), the rows that were examined, encoded; of groups the chosen rows are fitted, one of each
    is_fitted_to_all : bool, whether these are all training rows, so that the mixture need not be fitted again
    examination : Examination
    examine : callable, which makes the examination of these rows under another mixture and its training rows
    tracked : Tracked, which reports the progress through the alternatives
    """
    mixture, names = kind.mixture, kind.mixture._feature_names
    chosen = X[examination.chosen]  # Evidences take rows as independent.
    if examination.gross:  # Densities have no limit beside a spike, and their evidences mean nothing.
        return _of_repeated_values(kind, chosen, examination.gross, names)
    fitted = mixture._uncertainty.fitted
    doubt = kind.doubt(fitted, fitted.posterior.counts.sum())
    if doubt is not None:
        return [Remedy("covariances", *doubt, np.nan)]
    fits, tried = _Fits(kind, chosen, kind.mixture if is_fitted_to_all and kind.is_same else None), []
    if fits.base is None or kind.doubt(fitted, len(chosen)) is not None:  # Too few rows are examined.
        return []
    if kind.unfitted.n_components > 1 or not mixture.converged_:
        start, other = kind.another_start(), fits.from_other_starts()
        gain = fits.gain_of(other)
        if gain >= LEAST_GAIN and not mixture.converged_:  # More steps come first.
            return [_remedy(start, gain, names)]
        if gain >= LEAST_GAIN:
            of_other = examine(other._uncertainty, fits.training_rows(other))
            if of_other.gross:  # It has shrunk onto a value, and its evidence means nothing.
                gain = -np.inf
            elif not of_other.departures:
                start = replace(start, problem=f"{start.problem} Nothing departs from that one.")
                return [_remedy(start, gain, names)]
            else:
                examination = of_other
                fits.refer_to(other)
        tried.append((start, gain))
    alternatives = kind.alternatives(fits.base, examination, X, names)
    for alternative in tracked(alternatives, len(alternatives)):
        tried.append((alternative, fits.gain(alternative)))
    tried = _with_best_logarithm(tried, fits, names)
    found = [_remedy(alternative, gain, names) for alternative, gain in tried if np.isfinite(gain)]
    of_logarithm = max((own.gain for own in found if own.kind == "skewness"), default=0.0)
    return sorted(found + _of_other_densities(examination, X, kind, names, of_logarithm), key=_rank)


def _remedy(alternative, gain, names):
    formulas = {own.column: f"log({own.in_words(names[own.column])})" for own in alternative.logarithms}
    formulas |= {column: f"sqrt({names[column]!r})" for column in alternative.roots}
    columns = tuple(names[column] for column in formulas)
    words = alternative.kind, alternative.problem, alternative.advice
    return Remedy(*words, gain, columns, tuple(formulas.values()))


def _with_best_logarithm(tried, fits, names):
    """Alternatives and gains, with one alternative of logarithms, the best: list of pairs.

    Besides the logarithm of each column, and those of all, there are the ones that gain by themselves.
    """
    logarithms = [pair for pair in tried if pair[0].kind == "skewness"]
    if not logarithms:
        return tried
    alone = {}  # By column: gains rise, so that a better logarithm replaces a worse one.
    for own, gain in sorted(logarithms, key=lambda pair: pair[1]):
        if len(own.logarithms) == 1 and gain > 0:
            alone[own.logarithms[0].column] = own.logarithms[0]
    alone = tuple(alone.values())
    if len(alone) > 1 and all(set(alone) != set(own.logarithms) for own, _ in logarithms):
        together = logarithm_of(alone, names, logarithms[0][0].params, starts_anew=True)
        logarithms.append((together, fits.gain(together)))
    best = max(logarithms, key=lambda pair: pair[1])
    return [pair for pair in tried if pair[0].kind != "skewness"] + [best]


def _rank(remedy):
    """The smaller, the earlier: first a better start, where the others begin; then by gain."""
    is_better_start = remedy.kind == "start" and remedy.is_better
    return not is_better_start, LEAST_GAIN * (not remedy.is_model) - remedy.gain


class _Evidence(NamedTuple):
    """log p(X) of a fit, by its lower bound and to second order; the latter NaN if unknown.

    With Dirichlet weights log P(K) is added, and all orders of the components count. Sticks have one order,
    and say themselves how probable more components are.
    """

    lower_bound: float
    second_order: float

    @classmethod
    def of(cls, mixture):
        posterior, second_order = mixture._uncertainty.fitted.posterior, np.nan
        if posterior.n_coefficients <= MOST_UNKNOWNS:
            with contextlib.suppress(ValueError, MemoryError):
                second_order = mixture.log_evidence_
        added = log_copies_of(posterior)
        if isinstance(posterior.prior.weights.of_components, DirichletWeights):
            added += log_number_prior(np.count_nonzero(occupied(posterior.counts)))
        return cls(mixture.lower_bound_ + added, second_order + added)

    def over(self, other):
        """The difference in nats, float: to second order if both are known, else of the lower bounds."""
        gain = self.second_order - other.second_order
        return float(self.lower_bound - other.lower_bound if np.isnan(gain) else gain)


class _Fits:
    """A reference fit and alternatives, fitted to the same rows.

    Parameters
    ----------
    kind : KindOfMixture
    X : (n, P), encoded
    base : estimator of a mixture that is fitted to these rows; None makes one that starts at the labels of
        the user's mixture
    """

    def __init__(self, kind, X, base):
        self._X, self._kind, self._labels = X, kind, kind.probabilities(X)
        self.base = self._from_labels({}, X) if base is None else base

    @classmethod
    def of_dequantised(cls, kind, X, dequantised):
        """With a fit to dequantised rows as the reference, from the labels of X or from other starts."""
        fits, params = cls(kind, X, kind.mixture), kind.weights_of_classes
        fits.base = _best([fits._from_labels(params, dequantised), fits._with(params, dequantised)])
        return fits

    @cached_property
    def _evidence(self):
        return _Evidence.of(self.base)

    def _from_labels(self, params, X):
        """A fit that starts at the labels of the mixture."""
        return self._with(params | self._kind.from_labels(self._labels), X)

    def _with(self, params, X):
        """A fit of the mixture with other parameters, which starts by itself unless they say where."""
        return self._fitted(untold_copy(self._kind.unfitted, **params), X)

    def _fitted(self, candidate, X):
        """A candidate, fitted to encoded rows; None where that is not possible."""
        with contextlib.suppress(ValueError, MemoryError):
            return candidate.fit(self._kind.table_of(X))
        return None

    def gain(self, alternative):
        """In nats; minus infinity where there is no fit."""
        X, log_derivative = alternative.transformed(self._X)
        fits = [own for own in self._candidates(alternative, X) if own is not None]
        if alternative.kind == "outliers":  # Where most rows are noise, there are no clusters.
            fits = [own for own in fits if own.noise_weight_ < _MOST_NOISE]
        return max(map(self.gain_of, fits), default=-np.inf) + log_derivative

    def gain_of(self, fit):
        """That of a fit over the reference; minus infinity if it is None."""
        return -np.inf if fit is None else _Evidence.of(fit).over(self._evidence)

    def from_other_starts(self):
        """The same model from other starts, or after more steps: estimator, or None."""
        found = [self._with({"n_init": _OTHER_STARTS, "random_state": _OTHER_SEED}, self._X)]
        if not self.base.converged_:
            found.append(self._from_labels({"max_iter": self._kind.more_steps}, self._X))
        return _best(found)

    def refer_to(self, fit):
        """Compare others with a fit, and start them at its labels."""
        self.base, self._evidence = fit, _Evidence.of(fit)
        self._labels = fit.predict_proba(self._kind.table_of(self._X))

    def gain_of_discrete(self, estimator, X, log_volume):
        """That of an estimator with probabilities for discrete columns; minus infinity without a fit."""
        return -np.inf if self.base is None else self.gain_of(self._fitted(estimator, X)) - log_volume

    def training_rows(self, candidate):
        """The rows that a candidate is fitted to: Rows."""
        return candidate._training_rows(self._kind.table_of(self._X), None, candidate._uncertainty.fitted)

    def _candidates(self, alternative, X):
        """Yield fits, from the mixture's own components where they can be a start."""
        params = alternative.params
        if alternative.estimator is not None:
            yield self._fitted(alternative.estimator, X)
        elif "n_components" in params:
            from_starts = self._with(params, X)
            yield from_starts
            if from_starts is not None:
                yield self._with_one_more(from_starts)
        else:
            yield self._from_labels(params, X)
            if alternative.starts_anew:
                yield self._with(params, X)

    def _with_one_more(self, candidate):
        """The best mixture that a split of a component of the present one leads to."""
        fitted, rows = candidate._uncertainty.fitted, self.training_rows(candidate)
        optima = with_one_more(rows, self.base._uncertainty.fitted.posterior, fitted.posterior.prior, _SPLITS)
        best = max(optima, key=lambda own: own.lower_bound)
        if best.lower_bound > candidate.lower_bound_:
            return Optimum(candidate, rows, candidate._in_order(best)).as_estimator()
        return None


def _best(fits):
    """That of the largest lower bound: estimator, or None if all are None."""
    made = [own for own in fits if own is not None]
    return max(made, key=lambda own: own.lower_bound_, default=None)


def _of_other_densities(examination, X, kind, names, of_logarithm):
    """What densities that the package does not have would gain in the columns that they fit: list of Remedy.

    They are a log-normal one in place of a normal one, in a skew column, and a negative binomial count in
    place of a Poisson one, in a column that varies too much.

    Parameters
    ----------
    examination : Examination
    X : (n, P), encoded
    kind : KindOfMixture
    names : list of str
    of_logarithm : float, gain of the best logarithm; a log-normal density has to gain twice as much
    """
    found = []
    skew = examination.by_column("skewness", lambda test: examination.is_normal[test.columns[0]])
    wide = examination.by_column("variance", lambda test: test.size > 1.0 and kind.is_count(test.columns[0]))
    for of_kind, density, tests, gain_in in (
        ("skewness", "log-normal", skew, gain_of_log_normal),
        ("dispersion", "negative binomial", wide, gain_of_negative_binomial),
    ):
        if not tests:
            continue
        parts = {column: values_in_components(X, examination.labels, column) for column in tests}
        gains = {column: sum(map(gain_in, own)) for column, own in parts.items()}
        column = max(gains, key=gains.get)
        if gains[column] > 2.0 * (of_logarithm if of_kind == "skewness" else 0.0):
            name, gain = names[column], gains[column]
            advice = (
                f"components that overlap in {name!r} may be one cluster (a {density} component would gain "
                f"{gain:.0f} nats, but the package has none)"
            )
            found.append(
                Remedy(of_kind, tests[column].sentence(names), advice, gain, (name,), is_model=False)
            )
    return found


def _of_repeated_values(kind, X, gross, names):
    """What to do about columns of few values, and about spikes: list of Remedy."""
    few = [own for own in gross if own.kind == "few values"]
    found = _of_few_values(kind, X, few, names) if few else []
    for own in gross:
        if own.kind == "spike":
            name = names[own.column]
            advice = (
                f"split column {name!r} in two, whether it is {own.value:.6g}, and its value where it is not "
                "(missing elsewhere), in an LRVBLatentClassMixture"
            )
            found.append(Remedy("spike", own.sentence(names), advice, np.nan, (name,)))
    return found


def _of_few_values(kind, X, few, names):
    """What to do about columns of few values: categories or counts, if they gain; or leaving them out."""
    problem, few, found = few[0].sentence(names), [own.column for own in few], []
    columns = tuple(names[column] for column in few)
    which = listed_first([repr(name) for name in columns])
    dequantised, log_volume = _dequantised(X, few)
    fits = _Fits.of_dequantised(kind, X, dequantised)
    for column_kind in ("categorical", "count"):  # Counts are non-negative, else there is no fit.
        estimator, advice = kind.with_columns(few, column_kind, names)
        gain = fits.gain_of_discrete(estimator, X, log_volume)
        if np.isfinite(gain):
            found.append(Remedy("few values", problem, advice, gain, columns))
    advice = f"leave {which} out of the fit, and compare clusters with it afterwards"
    left_out = Remedy("few values", problem, advice, np.nan, columns)
    found.sort(key=lambda remedy: -remedy.gain)
    return [*found, left_out] if found and found[0].is_better else [left_out, *found]


def _dequantised(X, columns):
    """Rows with uniform noise as wide as the smallest gap on some columns, and the sum of the log widths."""
    X, generator, log_volume = X.astype(np.float64), np.random.RandomState(0), 0.0
    for column in columns:
        values = X[:, column]
        width = np.diff(np.unique(values[~np.isnan(values)])).min()
        X[:, column] = values + width * (generator.random_sample(len(values)) - 0.5)
        log_volume += np.count_nonzero(~np.isnan(values)) * np.log(width)
    return X, log_volume
