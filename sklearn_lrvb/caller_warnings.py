"""Warnings that name the line of the user's code that led to them."""

import sys
import warnings

# The package's own frames, and those that scikit-learn's and Python's decorators put between them.
_INSIDE = ("sklearn_lrvb.", "functools", "sklearn.base", "sklearn.callback")


def warn_caller(message, category=UserWarning):
    """Warn, and attribute the warning to the first caller outside the package.

    Parameters
    ----------
    message : str
    category : type, default=UserWarning
    """
    frame, level = sys._getframe(), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(_INSIDE):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
