"""Conclusions from a fit: numbers that are compared with a threshold, and how every row moves them.

A conclusion is an entry of the parameters or a difference of two, an end of its credible interval, any
function of the fitted mixture, or the difference of two log evidences. Each says its value at an `Optimum`,
and its derivatives in the weights of rows (`RowEffects`): the gradient in the coefficients (one linear system
makes it the influence of rows), and in the lower bound, whose derivatives are the rows' scores.
"""

import copy
import functools
from abc import ABC, abstractmethod
from functools import cached_property

import numpy as np
from scipy.special import ndtri

from sklearn_lrvb.answers.row_effects import RowEffects
from sklearn_lrvb.answers.targets import named_entries, variance
from sklearn_lrvb.answers.uncertainty import InformationSource, PosteriorUncertainty
from sklearn_lrvb.mixture.refit import refitted
from sklearn_lrvb.reports import require_interval

# Steps of central differences: of the coefficients in mean-field standard deviations, and of the lower bound
# in nats. A function that varies on the scale of one of them is then off by a relative 1e-6, its curvature,
# and by its rounding times 1000.
_STEP = 1e-3


class ConclusionError(ValueError):
    """The user's function raises an error, or returns no finite number."""


class Optimum:
    """An optimum for some rows, under the prior of the fit.

    Parameters
    ----------
    estimator : estimator of a mixture, fitted
    rows : Rows, as often as they count in the optimum
    fit : Fit or None, the optimum; None is that of the estimator

    Attributes
    ----------
    fitted : Fitted
    lower_bound : float
    """

    def __init__(self, estimator, rows, fit=None):
        self.estimator, self.rows, self.fit = estimator, rows, fit
        self.fitted = estimator._uncertainty.fitted
        if fit is not None:
            self.fitted = self.fitted.at(fit.posterior, fit.path)
        self.posterior, self.lower_bound = self.fitted.posterior, float(self.fitted.path[-1])

    @cached_property
    def information(self):
        """The observed information, positive definite, or IndefiniteInformationError."""
        if self.fit is None:
            return self.estimator._uncertainty.source.information(1, rows=self.rows)
        information = self.fit.with_information(self.rows).information
        information.require_positive_definite()
        return information

    @cached_property
    def log_evidence(self):
        """log p(X) to second order, of one labelling; refused where this is no strict optimum."""
        mixture = self.estimator if self.fit is None else self.as_estimator()
        return mixture.log_evidence_

    def refitted(self, rows):
        """The optimum for the same rows with other weights, by an ascent from here."""
        return Optimum(self.estimator, rows, refitted(rows, self.posterior))

    def as_estimator(self):
        """A fitted copy of the estimator, with error bars."""
        twin = copy.copy(self.estimator)
        vars(twin).update(self.estimator._attributes_at(self.rows, self.fit))
        if not self.rows.is_in_memory:
            twin._uncertainty.source.release_rows(self.fit.e_step_result)
        return twin


class Conclusion(ABC):
    """A number that is compared with a threshold, at the optima of one mixture or of two.

    Attributes
    ----------
    text : str, what the number is
    """

    text: str

    @abstractmethod
    def value(self, optima):
        """The number, a float."""

    @abstractmethod
    def effects(self, optima):
        """Its derivatives in the weights of rows: RowEffects."""


class EstimateConclusion(Conclusion):
    """An estimate with a standard deviation, or an end of its central credible interval.

    The variance itself responds to a row by about f^2 - 2 variance / N, as it does for the mean of a normal
    sample. A refit has its own error bar, which decides.

    A subclass has the three methods below.

    Parameters
    ----------
    text : str, what is estimated
    interval : float or None, the probability of the interval
    side : float, 1 for the upper end, -1 for the lower end
    """

    def __init__(self, text, interval=None, side=0.0):
        self._length, self.text = 0.0, text
        if interval is not None:
            self._length = side * ndtri(0.5 + 0.5 * interval)
            end = "upper" if side > 0 else "lower"
            self.text = f"the {end} end of the {100 * interval:g} % interval of {text}"

    @abstractmethod
    def _estimate(self, optimum):
        """The estimate at an optimum: float."""

    @abstractmethod
    def _variance(self, optimum):
        """Its posterior variance by linear response: float."""

    @abstractmethod
    def _influence(self, optimum):
        """Its derivative in the weights of rows, as influence functions with one function."""

    def value(self, optima):
        value = self._estimate(optima[0])
        return value + float(self._length * np.sqrt(self._variance(optima[0]))) if self._length else value

    def effects(self, optima):
        functions = self._influence(optima[0])
        variance = self._variance(optima[0]) if self._length else 0.0
        if not variance > 0.0:  # The weight of a single component is certain.
            return RowEffects(functions)
        per_variance = 0.5 * self._length / np.sqrt(variance)
        offset = -2.0 * per_variance * variance / optima[0].rows.total_weight
        return RowEffects(functions, bend=per_variance, offset=offset)


class NamedConclusion(EstimateConclusion):
    """An entry of the parameters, or the difference of two.

    Parameters
    ----------
    entries : Entries
    interval, side : as in `EstimateConclusion`
    """

    def __init__(self, entries, interval=None, side=0.0):
        super().__init__(entries.text, interval, side)
        self._entries = entries

    def _estimate(self, optimum):
        return float(optimum.fitted.targets[self._entries].flat_value()[0])

    def _influence(self, optimum):
        return _influence(
            optimum, optimum.fitted.targets[self._entries].transposed_responses(np.ones((1, 1)))
        )

    def _variance(self, optimum):
        return float(variance(optimum.fitted.targets[self._entries], optimum.information)[0])


class FunctionConclusion(Conclusion):
    """What a user's function makes of the fitted mixture.

    Parameters
    ----------
    function : callable (estimator) -> float
    """

    def __init__(self, function):
        self._function = function
        name = getattr(function, "__name__", type(function).__name__)
        self.text = "the conclusion" if name == "<lambda>" else name

    def value(self, optima):
        return self._at(optima[0])

    def effects(self, optima):
        optimum, complete = optima[0], optima[0].information.complete
        gradient = np.empty((len(complete), 1))
        for number in range(len(complete)):
            unit = np.eye(1, len(complete), number).T
            gradient[number] = self._slope(optimum, complete.solve_root_transposed(unit)[:, 0], 0.0)
        slope = self._slope(optimum, np.zeros(len(complete)), 1.0)
        functions = _influence(optimum, complete.solve_root_transposed(gradient))
        return RowEffects(functions, scores=((slope, optimum.posterior),) if slope else ())

    def _slope(self, optimum, change, of_bound):
        """The derivative along a change of the coefficients (D,) and of the lower bound."""
        above, below = (self._at(optimum, step * change, step * of_bound) for step in (_STEP, -_STEP))
        return (above - below) / (2.0 * _STEP)

    def _at(self, optimum, change=None, of_bound=0.0):
        """The value after a change of the coefficients (D,) and of the lower bound."""
        fitted, twin = optimum.fitted, copy.copy(optimum.estimator)
        if change is not None:
            fitted = fitted.at(fitted.posterior.after_step(change), fitted.path)
        source = InformationSource(fitted, None, None, twin.n_jobs, None, None)
        vars(twin).update(fitted.arrays, lower_bound_=np.float64(optimum.lower_bound + of_bound))
        twin._last_uncertainty = PosteriorUncertainty(fitted, source)
        try:
            value = self._function(twin)
        except Exception as error:
            raise ConclusionError(
                f"conclusion(mixture) raised {type(error).__name__}: {str(error).rstrip('.')}. (It is called "
                f"with copies of the fitted mixture that have other {', '.join(fitted.described_by)} and "
                "lower_bound_, but no error bars: for these pass the name of a parameter, and "
                "interval=0.95.)"
            ) from error
        number = np.asarray(value)
        if number.ndim or number.dtype.kind not in "biuf" or not np.isfinite(number):
            raise ConclusionError(f"conclusion(mixture) must be one finite number, got {value!r}.")
        return float(value)


class RivalConclusion(Conclusion):
    """The log evidence of a mixture less that of another one, to second order.

    Lower bounds of different numbers of components do not compare. But what rows do to them is close to what
    they do to the evidences, and is known exactly.

    Parameters
    ----------
    own, other : estimators of mixtures, both fitted
    """

    def __init__(self, own, other):
        own, other = (mixture._uncertainty.fitted.posterior.n_components for mixture in (own, other))
        self.text = f"the log evidence of {own} less that of {other} components"

    def value(self, optima):
        return optima[0].log_evidence - optima[1].log_evidence

    def effects(self, optima):
        # Both fits measure rows from the same origin, so that one pass scores them by both.
        return RowEffects(scores=((1.0, optima[0].posterior), (-1.0, optima[1].posterior)))


def check_rival(estimator, rival, interval):
    """Raise ValueError unless a mixture has another number of components under the same prior.

    Parameters
    ----------
    estimator : estimator of a mixture, fitted
    rival : object
    interval : object, which has no meaning with a rival
    """
    if interval is not None:
        raise ValueError("interval goes with the name of a parameter, and not with a rival.")
    if not isinstance(rival, type(estimator)):
        raise ValueError(f"rival must be a fitted {type(estimator).__name__}, got {rival!r}.")
    fitted, others = estimator._uncertainty.fitted, rival._uncertainty.fitted
    if others.model != fitted.model:
        name = next(name for name in fitted.model if fitted.model[name] != others.model[name])
        raise ValueError(
            f"rival has {name}={others.model[name]!r}, but the mixture {fitted.model[name]!r}: their "
            "evidences are of different models. Fit rival with the same parameters, all but n_components."
        )
    if fitted.posterior.prior.flat:
        raise ValueError(
            "prior='flat' is known up to a factor that depends on n_components, so that evidences do not "
            "compare. Use prior='learned'."
        )
    if len(others.posterior.counts) == len(fitted.posterior.counts):
        raise ValueError(
            f"rival has n_components={len(others.posterior.counts)} too: fit it with another n_components."
        )
    for name, own in fitted.hyperparameters.items():
        its, is_learned = others.hyperparameters[name], name in fitted.learned
        alike = is_learned == (name in others.learned) and np.allclose(own, its, rtol=1e-9, atol=0.0)
        if name == "weight_concentration_prior":  # By default it sums to one over the components.
            sums = (own * len(fitted.posterior.counts), its * len(others.posterior.counts))
            alike |= np.allclose(*sums, rtol=1e-9, atol=0.0)
        if not alike:
            raise ValueError(f"rival has another {name}_ than the mixture: fit both under the same prior.")


def _are_of_one_fit(one, other):
    """Whether two mixtures are the same, or copies or pickles of one fit."""
    fits = one._uncertainty.fitted, other._uncertainty.fitted
    return fits[0].path == fits[1].path and all(
        np.array_equal(value, fits[1].arrays[name]) for name, value in fits[0].arrays.items()
    )


def _influence(optimum, gradient):
    """The influence of rows on a number with a given gradient in the coefficients (D, 1)."""
    model, coefficients = optimum.posterior.model, optimum.information.solve(gradient).T
    return model.influence_functions(optimum.posterior, coefficients)


def checked_conclusion(estimator, conclusion, threshold, interval, effects=None):
    """The conclusion that a user's function or name stands for: Conclusion.

    Parameters
    ----------
    estimator : estimator of a mixture, fitted
    conclusion : callable or str
    threshold : float
    interval : float or None
    effects : ClusterRegression or None, to whose estimates a name then belongs

    Raises
    ------
    ValueError
        On any other conclusion, an unknown name, or an interval that is none.
    """
    if interval is not None:
        require_interval(interval)
    if effects is not None and not _are_of_one_fit(effects.mixture, estimator):
        raise ValueError(
            "effects are of another fit: ask this mixture for covariate_effects, and pass those."
        )
    if callable(conclusion):
        if effects is not None:
            raise ValueError("effects go with the name of an estimate, but conclusion is a function.")
        if interval is not None:
            raise ValueError("interval goes with the name of a parameter, but conclusion is a function.")
        return FunctionConclusion(conclusion)
    if not isinstance(conclusion, str):
        raise ValueError(
            "conclusion must be the name of a parameter, such as 'weight[0]' or 'mean[1,x0] - mean[0,x0]', "
            f"or a function of the fitted mixture that returns a number; got {conclusion!r}."
        )
    if effects is None:
        entries = named_entries(conclusion, estimator._uncertainty.targets, estimator._feature_names)
        of_estimate = functools.partial(NamedConclusion, entries)
    else:
        of_estimate = functools.partial(effects.conclusion, conclusion)
    middle = of_estimate()
    if interval is None:
        return middle
    # The end that faces the threshold.
    side = -1.0 if middle.value([Optimum(estimator, None)]) > threshold else 1.0
    return of_estimate(interval, side)
