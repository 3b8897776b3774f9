"""Attributes that are computed when they are read, and may be refused."""

import functools
from collections.abc import Callable
from typing import Any, TypeVar

_Value = TypeVar("_Value")


def refused_as_missing(getter: Callable[[Any], _Value]) -> Callable[[Any], _Value]:
    """Make the getter of a property raise errors that are AttributeErrors too, besides what they are.

    ``hasattr`` is then False, and ``getattr`` with a default returns it, where the attribute cannot be
    computed. The errors keep their classes, attributes and messages. MemoryError is among them: a matrix that
    is too large is refused before any memory is asked for.

    Examples
    --------
    >>> from sklearn_lrvb.gaussian_mixture.computed_attributes import refused_as_missing
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
            # NotFittedErrors already are AttributeErrors.
            refusal = (
                error
                if isinstance(error, AttributeError)
                else _attribute_error(type(error), error.args, vars(error))
            )
            # With a name, Python ends the message by asking whether a similar attribute was meant.
            refusal.name, refusal.obj = None, estimator
            raise refusal.with_traceback(error.__traceback__) from error.__cause__

    return refusing


def _attribute_error(kind: type, arguments: tuple, attributes: dict) -> AttributeError:
    """An error of a class derived from a given one and from AttributeError."""
    error = _also_attribute_error(kind)(*arguments)
    vars(error).update(attributes)
    return error


@functools.cache
def _also_attribute_error(kind):
    """The class derived from a class of errors and from AttributeError, under the former's name."""
    # A pickle, as between processes, cannot find this class by its name, and so makes it again.
    namespace = {
        "__doc__": kind.__doc__,
        "__module__": kind.__module__,
        "__qualname__": kind.__qualname__,
        "__reduce__": lambda error: (_attribute_error, (kind, error.args, vars(error))),
    }
    return type(kind.__name__, (kind, AttributeError), namespace)
