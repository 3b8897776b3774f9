"""The columns of a table of pandas, polars or NumPy, in one of two forms: numbers, or codes of values.

A value is missing where it is NaN, None, pandas' NA or NaT, null of polars, or masked.
"""

from dataclasses import dataclass
from numbers import Complex, Number, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils import check_array

from sklearn_lrvb.row_blocks.tables import TIMES, unmasked

# Squares of larger numbers, summed over rows, come near the largest float64. No measurement is as large.
_LARGEST_SIZE = 1e100
# From here on, float64 does not tell whole numbers apart.
_LARGEST_WHOLE = 2**53
# Objects that NumPy makes numbers of at once, many times as fast as one by one.
_NUMBERS_AND_NONE = {float, int, np.float64, np.int64, type(None)}


@dataclass(frozen=True)
class GivenColumn:
    """The values of one column: numbers, or codes of values.

    Attributes
    ----------
    name : str
    dtype : of NumPy, pandas or polars
    kind : "numeric", "categorical", "binary" or None
        What it is taken for where the user does not say it. None: all values are missing, and the dtype does
        not tell.
    numbers : array (n_rows,) of real numbers, NaN where missing; or None
    codes : int array (n_rows,), places in `values`, -1 where missing; None where there are `numbers`
    values : list of different values, the categories
    is_declared : bool
        Whether the dtype lists the values that there can be, in their order.
    """

    name: str
    dtype: Any
    kind: str | None
    numbers: NDArray | None = None
    codes: NDArray | None = None
    values: list | None = None
    is_declared: bool = False

    def coded(self):
        """Codes (n_rows,), -1 where missing, and the list of values that they stand for."""
        if self.numbers is None:
            return self.codes, self.values
        self._require_finite(self.numbers)
        values, codes = np.unique(self.numbers, return_inverse=True)
        if values.dtype.kind == "f":
            n_values = np.count_nonzero(~np.isnan(values))  # NaN is the last.
            codes, values = np.where(codes < n_values, codes, -1), values[:n_values]
            # Whole numbers with holes come as floats. As categories they are called 1 and 2, not 1.0 and 2.0.
            if np.all((values == np.rint(values)) & (np.abs(values) < _LARGEST_WHOLE)):
                values = values.astype(np.int64)
        return codes, values.tolist()

    def as_numbers(self, is_count):
        """Values as float64 array (n_rows,), NaN where missing; counts are checked to be such."""
        numbers = self._numbers_of_values() if self.numbers is None else self.numbers.astype(np.float64)
        self._require_finite(numbers)
        if is_count:
            self._refuse(
                (numbers < 0) | (np.abs(numbers - np.rint(numbers)) > 0),
                "are negative or no whole numbers, but counts are neither",
                f"Correct them, or let the column be {{{self.name!r}: 'numeric'}}.",
            )
        return numbers

    def _numbers_of_values(self):
        is_number = np.array([isinstance(value, Number) for value in self.values] + [True])
        self._refuse(
            ~is_number[self.codes],
            "are no numbers",
            f"Convert the column to numbers, or let it be {{{self.name!r}: 'categorical'}}.",
        )
        # A value of the dtype that no row has may still be a word.
        numbers = [float(value) if isinstance(value, Number) else np.nan for value in self.values]
        return np.array([*numbers, np.nan])[self.codes]

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
        is_masked_bool = isinstance(X, np.ma.MaskedArray) and X.dtype == bool
        X = unmasked(X.astype(object) if is_masked_bool else X)
        table = np.asarray(X, dtype=None if hasattr(X, "__array__") else object)
    # scikit-learn would convert a frame: it gets another table of this shape.
    is_table = len(getattr(table, "shape", ())) == 2
    stands_for_it = np.broadcast_to(0.0, table.shape) if is_table else X
    check_array(stands_for_it, dtype=None, ensure_all_finite=False, ensure_min_samples=0)
    return table


def given_column(table, place, name):
    """One column of what `given_table` returns, as `GivenColumn`.

    Raises
    ------
    ValueError
        Where values are dates, durations, complex or not hashable.
    """
    column = table.iloc[:, place] if hasattr(table, "iloc") else table[:, place]
    dtype, letter = column.dtype, letter_of(column.dtype)
    _refuse_others(name, is_time=letter == "M", is_complex=letter == "c")
    if letter in "bif":
        numbers = _real_numbers(column, letter)
        if letter != "b":
            return GivenColumn(name, dtype, "numeric", numbers)
        codes = np.nan_to_num(numbers.astype(np.float64), nan=-1.0).astype(np.int64)
        return GivenColumn(name, dtype, "binary", None, codes, [False, True], is_declared=True)
    if type(dtype).__name__ == "CategoricalDtype":  # of pandas
        codes, values = column.cat.codes.to_numpy(), column.cat.categories.tolist()
        return GivenColumn(name, dtype, "categorical", None, codes, values, is_declared=True)
    if type(dtype).__name__ == "Enum":  # of polars
        codes = column.to_physical().cast(int).fill_null(-1).to_numpy()
        return GivenColumn(name, dtype, "categorical", None, codes, list(dtype.categories), is_declared=True)
    return _column_of_objects(column, name)


def letter_of(dtype):
    """What a dtype of any library holds, in NumPy's letters: "b", "i", "f", "c", "M" times, "O" others."""
    if hasattr(dtype, "is_temporal"):  # of polars
        letters = {"M": dtype.is_temporal(), "i": dtype.is_integer(), "f": dtype.is_numeric()}
        letters["b"] = str(dtype) == "Boolean"
        return next((letter for letter, holds in letters.items() if holds), "O")
    kind = getattr(dtype, "kind", "O")
    return {"u": "i", "m": "M"}.get(kind, kind if kind in "bifcM" else "O")


def _real_numbers(column, letter):
    """The numbers of a column whose dtype holds numbers or bools, with NaN where missing."""
    if isinstance(column, np.ndarray):
        return column
    if not hasattr(column, "iloc"):  # of polars, which turns whole numbers with nulls into floats
        return (column if letter == "i" else column.cast(float)).to_numpy()
    if isinstance(column.dtype, np.dtype):
        return column.to_numpy()
    return column.to_numpy(np.float64, na_value=np.nan)


def _column_of_objects(column, name):
    """A column of strings or objects; its kind is that of the types of its values."""
    if isinstance(column, np.ndarray) and _NUMBERS_AND_NONE.issuperset(map(type, column)):
        numbers = column.astype(np.float64)  # None becomes NaN.
        return GivenColumn(name, column.dtype, None if np.isnan(numbers).all() else "numeric", numbers)
    try:
        codes, values = _factorized(column)
    except TypeError as error:
        raise ValueError(
            f"Column {name!r} of X holds objects that cannot be categories: {error}. Convert them to strings "
            f"or numbers, or leave the column out by {{{name!r}: 'ignore'}}."
        ) from error
    types = {type(value) for value in values}
    _refuse_others(
        name,
        is_time=any(issubclass(kind, TIMES) for kind in types),
        is_complex=any(issubclass(kind, Complex) and not issubclass(kind, Real) for kind in types),
    )
    values = [value.item() if isinstance(value, np.generic) else value for value in values]
    return GivenColumn(name, column.dtype, _kind_of_types(types), None, codes, values)


def _kind_of_types(types):
    """What values of some types are taken for; None where there are none."""
    if not types:
        return None
    if types <= {bool, np.bool_}:
        return "binary"
    return "numeric" if all(issubclass(kind, Number) for kind in types) else "categorical"


def _factorized(column):
    """Codes (n_rows,) of objects, -1 where missing, and the list of different values as they appear."""
    if hasattr(column, "factorize"):  # of pandas
        codes, values = column.factorize()
        return codes, values.tolist()
    objects = column.tolist() if isinstance(column, np.ndarray) else column.to_list()
    distinct = dict.fromkeys(objects)
    values = [value for value in distinct if not _is_missing(value)]
    code = dict.fromkeys(distinct, -1) | {value: number for number, value in enumerate(values)}
    return np.fromiter(map(code.__getitem__, objects), np.int64, len(objects)), values


def _is_missing(value):
    return value is None or type(value).__name__ == "NAType" or bool(value != value)


def _refuse_others(name, is_time, is_complex):
    """Raise ValueError where values of a column are neither real numbers nor categories."""
    if is_complex:
        raise ValueError(
            f"Complex data not supported: column {name!r} of X is complex. Pass its real and imaginary parts "
            "as columns of their own."
        )
    if is_time:
        raise ValueError(
            f"Column {name!r} of X holds dates or durations, whose numbers depend on how they are stored. "
            "Convert them to numbers of a unit of your choice, such as days since a first day, or leave the "
            f"column out by {{{name!r}: 'ignore'}}."
        )
