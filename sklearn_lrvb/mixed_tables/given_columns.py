"""The columns of a table of pandas, polars or NumPy, in one of two forms: numbers, or codes of values.

A value is missing where it is NaN, None, pandas' NA or NaT, null of polars, or masked.
"""

import contextlib
from dataclasses import dataclass
from numbers import Complex, Number, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils import check_array

from sklearn_lrvb.rows.given_rows import TIMES, unmasked

# Squares of larger numbers, summed over rows, come near the largest float64. No measurement is as large.
_LARGEST_SIZE = 1e100
# From here on, float64 does not tell whole numbers apart.
LARGEST_WHOLE = 2**53
# Objects that NumPy makes numbers of at once, many times as fast as one by one.
_NUMBERS_AND_NONE = {float, int, np.float64, np.int64, type(None)}


@dataclass(frozen=True)
class GivenColumn:
    """The values of one column: numbers, or codes of values.

    Attributes
    ----------
    name : str
    dtype : of NumPy, pandas or polars
    numbers : array (n_rows,) of real numbers, NaN where missing; or None
    codes : int array (n_rows,), places in `values`, -1 where missing; None where there are `numbers`
    values : list of different values, the categories
    is_declared : bool
        Whether the dtype lists the values that there can be, in their order.
    """

    name: str
    dtype: Any
    numbers: NDArray | None = None
    codes: NDArray | None = None
    values: list | None = None
    is_declared: bool = False

    def looks_numeric(self, counts):
        """Whether it is taken for numbers where the user does not say what it is.

        Some rows alone count, bool array (n_rows,): other rows may hold words.
        """
        if self.numbers is not None or self.is_declared:
            return not self.is_declared
        used = np.unique(self.codes[counts & (self.codes >= 0)])
        types = {type(self.values[code]) for code in used}
        return not types <= {bool, np.bool_} and all(issubclass(own, Number) for own in types)

    @property
    def is_missing(self):
        """Where there is no value, bool array (n_rows,)."""
        return self.codes < 0 if self.numbers is None else np.isnan(self.numbers)

    def coded(self):
        """Codes (n_rows,), -1 where missing, and the list of values that they stand for."""
        self._require_finite(self.as_floats())
        if self.numbers is None:
            return self.codes, self.values
        is_there, codes = ~self.is_missing, np.full(len(self.numbers), -1)
        values, codes[is_there] = np.unique(self.numbers[is_there], return_inverse=True)
        # Whole numbers with missing ones may come as floats. As categories they are 1 and 2, not 1.0 and 2.0.
        if values.dtype.kind == "f":
            values = values.astype(np.float64)
            if np.all(is_whole(values)):
                values = values.astype(np.int64)
        return codes, values.tolist()

    def as_numbers(self, family):
        """Values as float64 array (n_rows,), NaN where missing; columns of the family can have them all."""
        numbers = self.as_floats()
        self._refuse(
            np.isnan(numbers) & ~self.is_missing,
            "are no numbers",
            f"Convert the column to numbers, or let it be {{{self.name!r}: 'categorical'}}.",
        )
        self._require_finite(numbers)
        self._refuse(
            family.is_wrong(numbers),
            family.what_is_wrong,
            f"Correct them, or let the column be {{{self.name!r}: 'numeric'}}.",
        )
        return numbers

    def as_floats(self):
        """Values as float64 array (n_rows,), NaN where they are missing or no numbers."""
        if self.numbers is None:
            return np.array([*map(_float_of, self.values), np.nan])[self.codes]
        return self.numbers.astype(np.float64)

    def _require_finite(self, numbers):
        self._refuse(
            np.abs(numbers) > _LARGEST_SIZE,
            f"are infinite or larger than {_LARGEST_SIZE:g} in size",
            "Correct them, or replace them by NaN, which stands for a missing value.",
        )

    def _refuse(self, is_wrong, what, remedy):
        """Raise ValueError where values are wrong, which is a bool array (n_rows,)."""
        rows = np.flatnonzero(is_wrong)
        if len(rows):
            first = rows[0]
            value = self.values[self.codes[first]] if self.numbers is None else self.numbers[first].item()
            value = int(value) if letter_of(self.dtype) == "i" else value
            value = _float_of(value) if np.isinf(_float_of(value)) else value
            raise ValueError(
                f"{len(rows)} value(s) of column {self.name!r} of X {what}. The first is {value!r} in row "
                f"{first}. {remedy}"
            )


def given_table(X):
    """A user's table: a data frame of pandas or polars as it is, anything else as array of two axes.

    Raises
    ------
    ValueError, TypeError
        scikit-learn's own, where X is no table, has no columns, or is sparse.
    """
    if hasattr(X, "iloc") or type(X).__module__.startswith("polars"):
        table = X
    elif issparse(X):
        table = check_array(X)  # It says that dense rows are needed, and how to get them.
    else:
        # Neither bools nor large whole numbers have floats of their own, which would hold NaN.
        is_whole = isinstance(X, np.ma.MaskedArray) and X.dtype.kind in "biu"
        X = unmasked(X.astype(object) if is_whole else X)
        if type(X).__module__.startswith("pyarrow"):  # By itself it makes floats of whole numbers with nulls.
            columns = [np.fromiter(column.to_pylist(), object, X.num_rows) for column in X.columns]
            X = np.stack(columns, axis=1) if columns else X
        table = np.asarray(X, dtype=None if hasattr(X, "__array__") else object)
    # scikit-learn would convert a frame: it gets another table of this shape.
    is_table = len(getattr(table, "shape", ())) == 2
    stands_for_it = np.broadcast_to(0.0, table.shape) if is_table else X
    check_array(stands_for_it, dtype=None, ensure_all_finite=False, ensure_min_samples=0)
    return table


def container_of(table):
    """The library of what `given_table` returns: "pandas", "polars" or "array"."""
    return "polars" if hasattr(table, "get_columns") else "pandas" if hasattr(table, "iloc") else "array"


def given_column(table, place, name):
    """One column of what `given_table` returns, as `GivenColumn`.

    Raises
    ------
    ValueError
        Where values are dates, durations, complex or not hashable.
    """
    column = table.iloc[:, place] if hasattr(table, "iloc") else table[:, place]
    dtype, letter = column.dtype, letter_of(column.dtype)
    if letter in "if" and isinstance(dtype, np.dtype):
        return GivenColumn(name, dtype, np.asarray(column))
    numbers = _numbers_and_missing(column, letter)
    # Floats would not tell large whole numbers apart.
    if numbers is not None and (letter == "f" or not (np.abs(numbers) >= LARGEST_WHOLE).any()):
        return GivenColumn(name, dtype, numbers)
    if type(dtype).__name__ == "CategoricalDtype":  # of pandas
        codes, values = column.cat.codes.to_numpy(), column.cat.categories.tolist()
        return GivenColumn(name, dtype, codes=codes, values=values, is_declared=True)
    if type(dtype).__name__ == "Enum":  # of polars
        codes, values = column.to_physical().cast(int).fill_null(-1).to_numpy(), list(dtype.categories)
        return GivenColumn(name, dtype, codes=codes, values=values, is_declared=True)
    try:
        codes, values = _factorized(column)
    except (
        TypeError,
        NotImplementedError,
        OverflowError,
    ) as error:  # The latter of Arrow, and of old pandas.
        raise ValueError(
            f"Column {name!r} of X holds objects that cannot be categories: {error}. Convert them to strings "
            f"or numbers, or leave the column out by {{{name!r}: 'ignore'}}."
        ) from error
    types = set(map(type, values))
    if any(map(_is_complex, types)):
        raise ValueError(
            f"Complex data not supported: column {name!r} of X is complex. Pass its real and imaginary parts "
            "as columns of their own."
        )
    if letter == "M" or any(issubclass(own, TIMES) for own in types):
        raise ValueError(
            f"Column {name!r} of X holds dates or durations, whose numbers depend on how they are stored. "
            "Convert them to numbers of a unit of your choice, such as days since a first day, or leave the "
            f"column out by {{{name!r}: 'ignore'}}."
        )
    values = [value.item() if isinstance(value, np.generic) else value for value in values]
    return GivenColumn(name, dtype, codes=codes, values=values)


def _numbers_and_missing(column, letter):
    """A column of numbers and missing values as floats (n_rows,), None if it holds others."""
    if letter in "if":
        return (
            column.to_numpy(float, na_value=np.nan)
            if hasattr(column, "iloc")
            else column.cast(float).to_numpy()
        )
    if isinstance(column, np.ndarray) and _NUMBERS_AND_NONE.issuperset(map(type, column)):
        with contextlib.suppress(OverflowError):
            return column.astype(np.float64)  # None becomes NaN.
    return None


def _factorized(column):
    """Codes (n_rows,) of objects, -1 where missing, and the list of different values as they appear."""
    if hasattr(column, "factorize"):  # of pandas
        codes, values = column.factorize()
        return codes, values.tolist()
    objects = column.tolist() if isinstance(column, np.ndarray) else column.to_list()
    distinct = dict.fromkeys(objects)
    values = [value for value in distinct if not _is_missing(value)]
    code_of = dict.fromkeys(distinct, -1) | {value: code for code, value in enumerate(values)}
    return np.fromiter(map(code_of.__getitem__, objects), np.int64, len(objects)), values


def is_whole(numbers):
    """Whether numbers are whole, and small enough for float64 to tell them apart."""
    return (numbers == np.rint(numbers)) & (np.abs(numbers) < LARGEST_WHOLE)


def letter_of(dtype):
    """What a dtype of any library holds, in NumPy's letters: "i", "f", "M" times, "b" bools, "O" others."""
    if hasattr(dtype, "is_temporal"):  # of polars
        letters = {"M": dtype.is_temporal(), "i": dtype.is_integer(), "f": dtype.is_numeric()}
        return next((letter for letter, holds in letters.items() if holds), "O")
    letters = {"i": "i", "u": "i", "f": "f", "M": "M", "m": "M", "b": "b"}
    return letters.get(getattr(dtype, "kind", "O"), "O")


def _is_complex(type_of_value):
    return issubclass(type_of_value, Complex) and not issubclass(type_of_value, Real)


def _float_of(value):
    """A number of any type as float, infinite where it is too large for one; NaN of anything else."""
    if not isinstance(value, Number) or _is_complex(type(value)):
        return np.nan
    try:
        return float(value)
    except OverflowError:
        return np.inf if value > 0 else -np.inf


def _is_missing(value):
    return value is None or type(value).__name__ == "NAType" or bool(value != value)
