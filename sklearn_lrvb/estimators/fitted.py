"""The state of a fitted mixture that its methods use, and how its arrays say that they were replaced.

As in scikit-learn the public arrays decide. Those of a fit are read-only, so that a change is a replacement,
and *is* tells whether there was one. Error bars, which are about the fit, refuse then.
"""

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable
from numbers import Real
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from sklearn_lrvb.answers.uncertainty import FitCourse, InformationSource, PosteriorUncertainty
from sklearn_lrvb.caller_warnings import warn_caller
from sklearn_lrvb.estimators.callbacks import CallbackMethods
from sklearn_lrvb.mixture.model import occupied
from sklearn_lrvb.rows import given_rows

_Value = TypeVar("_Value")


class Fitted(ABC):
    """A mixture that predicts, as a fit has left it.

    Attributes
    ----------
    posterior : posterior of a mixture, or what takes its place for predictions
    origin : (P,), from where the posterior's positions are measured
    path : tuple of float, lower bounds of the fit, at its start and after every step
    targets : Targets at the posterior
    arrays : dict, the read-only arrays that the fit reports, by name
    model : dict, what is to be the same in mixtures whose lower bounds are compared, by parameter
    described_by : tuple of str, the estimator's attributes that describe it
    prior_numbers : dict, numbers or arrays of the prior by argument
    least_prior_factors : dict, by which arguments of the prior must be multiplied at least to be valid;
        zero, where there is none
    """

    posterior: Any
    origin: Any
    path: tuple
    targets: Any
    arrays: dict
    model: dict
    described_by: tuple
    prior_numbers: Any
    least_prior_factors: Any = MappingProxyType({})

    @abstractmethod
    def at(self, posterior, path):
        """The same mixture at another posterior, reached by a path: Fitted."""

    def replaced_in(self, estimator):
        """Names of the arrays of an estimator that are not those which the fit reported."""
        given = vars(estimator)
        return [name for name, value in self.arrays.items() if given.get(name) is not value]


class FittedState(CallbackMethods):
    """What methods of a mixture estimator ask about its fit. A subclass has the fitted attributes."""

    n_jobs: int | None
    max_iter: int
    tol: float
    solver: str
    n_features_in_: int
    converged_: bool
    n_iter_: int
    lower_bound_: float
    lower_bounds_: list[float]
    n_occupied_: int

    _last_uncertainty: PosteriorUncertainty
    # What is doubtful about the columns, and what to do: `fit` warns of it, and answers repeat it.
    _column_notes: tuple[str, ...] = ()
    _ways_to_a_fit = "Call fit."

    @property
    def _fitted(self) -> Any:
        """The mixture that the public arrays describe: `Fitted`."""
        return self._uncertainty.fitted

    @property
    def _feature_names(self):
        """Names of the features, list of str: those of the training data, or x0, x1 and so on."""
        numbered = [f"x{p}" for p in range(self.n_features_in_)]
        return [str(name) for name in getattr(self, "feature_names_in_", numbered)]

    @property
    def _uncertainty(self) -> PosteriorUncertainty:
        """Linear response at the last fit.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            There was no fit, or the fitted arrays are not those of the fit any more. A ValueError.
        """
        uncertainty = vars(self).get("_last_uncertainty")
        if uncertainty is None:
            check_is_fitted(self)
            raise NotFittedError(
                "Error bars, influence and draws belong to a fit, but the fitted attributes of this "
                f"estimator were set by hand. {self._ways_to_a_fit}"
            )
        replaced = uncertainty.fitted.replaced_in(self)
        if replaced:
            raise NotFittedError(
                f"Changed since the fit: {', '.join(replaced)}. Error bars, influence and draws are about "
                "the values that the fit reported. (a) Fit again. (b) Undo the change, by setting the array "
                "of the fit itself again, or make it in a copy (copy.deepcopy)."
            )
        return uncertainty

    def __copy__(self):
        """A shallow copy, which shares the training rows and the information with the original."""
        twin = type(self).__new__(type(self))
        vars(twin).update(vars(self))
        return twin

    def _attributes_of(self, features, fitted, rows, is_drawn, fit):
        """Every fitted attribute at a state of the fit, by name.

        Parameters
        ----------
        features : dict, attributes of the features
        fitted : Fitted
        rows : Rows, the training rows
        is_drawn : bool, whether starts were drawn at random
        fit : Fit
        """
        course = FitCourse(
            n_iter=fit.n_iter,
            converged=bool(fit.converged),
            max_iter=self.max_iter,
            tol=float(self.tol),
            solver=self.solver,
            is_drawn=is_drawn,
            stopped=fit.stopped,
        )
        source = InformationSource.of_fit(fitted, fit, rows, course)
        return {
            **features,
            "_last_uncertainty": PosteriorUncertainty(fitted, source),
            **fitted.arrays,
            "converged_": bool(fit.converged),
            "n_iter_": fit.n_iter,
            # NumPy floats, as in scikit-learn: they have the methods that callers use, such as `round`.
            "lower_bound_": np.float64(fit.lower_bound),
            "lower_bounds_": list(np.asarray(fit.path[1 + fit.n_before :], dtype=np.float64)),
            "n_occupied_": int(np.count_nonzero(occupied(fit.posterior.counts))),
        }

    def _warn_of_columns(self):
        if self._column_notes:
            warn_caller(" ".join(self._column_notes))

    def _given_rows(self, X, sample_weight, fitted):
        """Rows that a user has passed, as `rows.given_rows` makes them, in the frame of a mixture."""
        require_rows_first(X)
        return given_rows(self, X, sample_weight, fitted.origin)

    def _of_rows(self, method, rows, function, shape=()):
        """What `PosteriorUncertainty.of_rows` says of some rows, reported under a method's name."""
        uncertainty = self._uncertainty
        return self._tracked(method, lambda tracked: uncertainty.of_rows(rows, function, shape, tracked))

    def _given_again(self, X, sample_weight, fitted):
        """Training rows that a user may pass again; None where X is None."""
        if X is None and sample_weight is not None:
            raise ValueError("sample_weight goes with X: pass the training rows too.")
        return None if X is None else self._given_rows(X, sample_weight, fitted)

    def _training_rows(self, X, sample_weight, fitted):
        """The same, without those of weight zero."""
        given = self._given_again(X, sample_weight, fitted)
        return None if given is None else given.counted()


def require_rows_first(X):
    """Raise ValueError where a number, or names of targets, take the place of rows."""
    if isinstance(X, Real | str) or (isinstance(X, list | tuple) and any(isinstance(x, str) for x in X)):
        raise ValueError(
            f"The first argument is X, the rows, got {X!r}. Others go by name, such as target='means', "
            "n_draws=1000 or interval=0.95."
        )


def refused_as_missing(getter: Callable[[Any], _Value]) -> Callable[[Any], _Value]:
    """Make the getter of a property raise errors that are AttributeErrors too, besides what they are.

    ``hasattr`` is then False, and ``getattr`` with a default returns it, where the attribute cannot be
    computed. The errors keep their classes, attributes and messages. MemoryError is among them: a matrix that
    is too large is refused before any memory is asked for.

    Examples
    --------
    >>> from sklearn_lrvb.estimators.fitted import refused_as_missing
    >>> class Fit:
    ...     @property
    ...     @refused_as_missing
    ...     def std_(self):
    ...         raise ValueError("There is no optimum.")
    >>> print(getattr(Fit(), "std_", None))
    None
    """

    @functools.wraps(getter)
    def refusing(estimator: Any) -> _Value:
        try:
            return getter(estimator)
        except (AttributeError, ValueError, MemoryError) as error:
            refusal = _attribute_error(type(error), error.args, vars(error))
            # With a name, Python ends the message by asking whether a similar attribute was meant.
            refusal.name, refusal.obj = None, estimator
            raise refusal.with_traceback(error.__traceback__) from error.__cause__

    return refusing


def _attribute_error(kind: type, arguments: tuple, attributes: dict) -> AttributeError:
    """An error of a class, under its name, that is an AttributeError too."""
    error = _also_attribute_error(kind)(*arguments)
    vars(error).update(attributes)
    return error


@functools.cache
def _also_attribute_error(kind):
    """The class derived from a class of errors and from AttributeError, if the former is not one already."""
    if issubclass(kind, AttributeError):  # As NotFittedError is.
        return kind

    class Refusal(kind, AttributeError):
        # A pickle, as between processes, cannot find this class by its name, and so makes it again.
        def __reduce__(self):
            return _attribute_error, (kind, self.args, vars(self))

    Refusal.__doc__, Refusal.__module__ = kind.__doc__, kind.__module__
    Refusal.__name__, Refusal.__qualname__ = kind.__name__, kind.__qualname__
    return Refusal
