"""Numbers that users give, as arrays. Errors name the argument, what is wrong, by how much, and where."""

import numpy as np

from sklearn_lrvb.mean_field.exponential_families.family import refuse_indefinite
from sklearn_lrvb.symmetric_matrices import asymmetric_entry, symmetrized


def floats(what, given, remedy=""):
    """Real numbers as an array of floats, finite or not.

    Parameters
    ----------
    what, given, remedy
        As in `numbers`.

    Raises
    ------
    ValueError
        They are masked, or no real numbers.
    """
    if np.ma.is_masked(given):
        raise ValueError(f"{what} is masked{_where(np.ma.getmaskarray(given))}. {remedy}".rstrip())
    try:
        # NumPy would take real parts of complex numbers, and days or seconds of dates.
        if np.asarray(given).dtype.kind in "cmM":
            raise TypeError
        return np.asarray(given, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"{what} must be real numbers; got {given!r}.") from None


def numbers(what, given, shape=None, *, above=-np.inf, least=-np.inf, whole=False, remedy=""):
    """Finite numbers as an array of floats.

    Parameters
    ----------
    what : str
        The name of the argument.
    given : array-like
    shape : tuple of int, default=None
        The only shape that is allowed; None allows all that have entries.
    above, least : float
        Each number is larger than the one, and at least the other.
    whole : bool, default=False
        Whether they are whole numbers.
    remedy : str, default=""
        What to do about wrong numbers, a sentence.

    Raises
    ------
    ValueError
        They are no such numbers.
    """
    array = floats(what, given, remedy)
    if array.size == 0 or (shape is not None and array.shape != shape):
        expected = "at least one number" if shape is None else f"the shape {shape}"
        raise ValueError(f"{what} has the shape {array.shape}, expected {expected}.")
    is_right = np.isfinite(array) & (array > above) & (array >= least)
    if whole:
        is_right &= array == np.round(array)
    if not np.all(is_right):
        wrong, first = _where(~is_right), array[~is_right][0]
        message = f"{what} must be {_wanted(above, least, whole)}; got {first:.6g}{wrong}."
        raise ValueError(f"{message} {remedy}".rstrip())
    return array


def _where(wrong):
    """The position of the first wrong entry of an array, and how many are wrong; nothing for a number."""
    if not wrong.ndim:
        return ""
    position = ", ".join(map(str, np.argwhere(wrong)[0]))
    return f" at {position} ({np.count_nonzero(wrong)} of {wrong.size} entries)"


def _wanted(above, least, whole):
    kind = "whole" if whole else "finite"
    if above > -np.inf:
        return f"{kind} and above {above:g}"
    return f"{kind} and at least {least:g}" if least > -np.inf else kind


def broadcast(what, given, shape, **limits):
    """`numbers` as an array of this shape, to which they broadcast."""
    array = numbers(what, given, **limits)
    try:
        return np.broadcast_to(array, shape)
    except ValueError:
        raise ValueError(f"{what} has the shape {array.shape}, which does not fit {shape}.") from None


def positive_definite(what, given, n_features):
    """Symmetric positive definite matrices (..., P, P), as an array."""
    matrices = numbers(what, given)
    square = n_features, n_features
    if matrices.shape[-2:] != square:
        raise ValueError(f"{what} has the shape {matrices.shape}, expected matrices {square}.")
    asymmetric = asymmetric_entry(matrices)
    if asymmetric is not None:
        *copy, row, column = asymmetric
        first, second = matrices[(*copy, row, column)], matrices[(*copy, column, row)]
        where = f" of matrix {', '.join(map(str, copy))}" if copy else ""
        raise ValueError(
            f"{what} is not symmetric: entry ({row}, {column}){where} is {first:.6g}, and entry ({column}, "
            f"{row}) is {second:.6g}."
        )
    matrices = symmetrized(matrices)
    refuse_indefinite(matrices, what, what)
    return matrices
