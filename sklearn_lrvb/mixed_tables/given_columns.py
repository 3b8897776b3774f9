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

from sklearn_lrvb.rows.tables import TIMES, unmasked

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
    kind : "numeric", "categorical", "binary" or None
        What it is taken for where the user does not say it. None: all values are missing, and the dtype does
        not tell.
    numbers : array (n_rows,) of real numbers, or None
    holes : bool array (n_rows,), where `numbers` are missing besides those that are NaN; or None
    codes : int array (n_rows,), places in `values`, -1 where missing; None where there are `numbers`
    values : list of different values, the categories
    is_declared : bool
        Whether the dtype lists the values that there can be, in their order.
    """

    name: str
    dtype: Any
    kind: str | None
    numbers: NDArray | None = None
    holes: NDArray | None = None
    codes: NDArray | None = None
    values: list | None = None
    is_declared: bool = False

    def kind_of_rows(self, counts):
        """Its kind if some rows alone count, bool array (n_rows,): other rows may hold words, or numbers."""
        if self.numbers is not None or self.is_declared:
            return self.kind
        used = np.unique(self.codes[counts & (self.codes >= 0)])
        return _kind_of_types({type(self.values[code]) for code in used})

    @property
    def is_missing(self):
        """Where there is no value, bool array (n_rows,)."""
        if self.numbers is None:
            return self.codes < 0
        is_nan = np.isnan(self.numbers)
        return is_nan if self.holes is None else is_nan | self.holes

    def coded(self):
        """Codes (n_rows,), -1 where missing, and the list of values that they stand for."""
        self._require_finite(self.as_floats())
        if self.numbers is None:
            return self.codes, self.values
        is_there, codes = ~self.is_missing, np.full(len(self.numbers), -1)
        # Whole numbers are not made floats, which do not tell large ones apart.
        values, codes[is_there] = np.unique(self.numbers[is_there], return_inverse=True)
        # Those with holes may come as floats. As categories they are called 1 and 2, not 1.0 and 2.0.
        if values.dtype.kind == "f":
            values = values.astype(np.float64)
            if np.all(is_whole(values)):
                values = values.astype(np.int64)
        return codes, values.tolist()

    def as_numbers(self, is_count):
        """Values as float64 array (n_rows,), NaN where missing; counts are checked to be such."""
        numbers = self.as_floats()
        self._refuse(
            np.isnan(numbers) & ~self.is_missing,
            "are no numbers",
            f"Convert the column to numbers, or let it be {{{self.name!r}: 'categorical'}}.",
        )
        self._require_finite(numbers)
        if is_count:
            self._refuse(
                (numbers < 0) | (np.abs(numbers - np.rint(numbers)) > 0),
                "are negative or no whole numbers, but counts are neither",
                f"Correct them, or let the column be {{{self.name!r}: 'numeric'}}.",
            )
        return numbers

    def as_floats(self):
        """Values as float64 array (n_rows,), NaN where they are missing or no numbers."""
        if self.numbers is None:
            return np.array([*map(_float_of, self.values), np.nan])[self.codes]
        return np.where(self.is_missing, np.nan, self.numbers.astype(np.float64))

    def _require_finite(self, numbers):
        self._refuse(
            np.abs(numbers, dtype=np.float64) > _LARGEST_SIZE,
            f"are infinite or larger than {_LARGEST_SIZE:g} in size",
            "Correct them, or replace them by NaN, which stands for a missing value.",
        )

    def _refuse(self, is_wrong, what, remedy):
        """Raise ValueError where values are wrong, which is a bool array (n_rows,)."""
        rows = np.flatnonzero(is_wrong)
        if len(rows):
            first = rows[0]
            value = self.values[self.codes[first]] if self.numbers is None else self.numbers[first].item()
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
    if letter in "bif" and not str(dtype).endswith("128"):  # NumPy has no whole numbers of 128 bits.
        numbers, holes = _real_numbers(column, letter)
        if letter != "b":
            return GivenColumn(name, dtype, "numeric", numbers, holes)
        codes = np.where(False if holes is None else holes, -1, numbers)
        return GivenColumn(name, dtype, "binary", codes=codes, values=[False, True], is_declared=True)
    if type(dtype).__name__ == "CategoricalDtype":  # of pandas
        codes, values = column.cat.codes.to_numpy(), column.cat.categories.tolist()
        return GivenColumn(name, dtype, "categorical", codes=codes, values=values, is_declared=True)
    if type(dtype).__name__ == "Enum":  # of polars
        codes, values = column.to_physical().cast(int).fill_null(-1).to_numpy(), list(dtype.categories)
        return GivenColumn(name, dtype, "categorical", codes=codes, values=values, is_declared=True)
    return _column_of_objects(column, name)


def is_whole(numbers):
    """Whether numbers are whole, and small enough for float64 to tell them apart."""
    return (numbers == np.rint(numbers)) & (np.abs(numbers) < LARGEST_WHOLE)


def letter_of(dtype):
    """What a dtype of any library holds, in NumPy's letters: "b", "i", "f", "c", "M" times, "O" others."""
    if hasattr(dtype, "is_temporal"):  # of polars
        letters = {"M": dtype.is_temporal(), "i": dtype.is_integer(), "f": dtype.is_numeric()}
        letters["b"] = str(dtype) == "Boolean"
        return next((letter for letter, holds in letters.items() if holds), "O")
    kind = getattr(dtype, "kind", "O")
    return {"u": "i", "m": "M"}.get(kind, kind if kind in "bifcM" else "O")


def _real_numbers(column, letter):
    """The numbers of a column whose dtype holds numbers or bools, and where it has none (`GivenColumn`)."""
    if isinstance(column, np.ndarray) or isinstance(column.dtype, np.dtype):
        return np.asarray(column), None
    if not hasattr(column, "iloc"):  # of polars, which turns whole numbers with nulls into floats
        if letter == "f":
            return column.cast(float).to_numpy(), None
        numbers = column if letter == "i" else column.cast(int)
        return numbers.fill_null(0).to_numpy(), column.is_null().to_numpy()
    if letter == "f":
        return column.to_numpy(np.float64, na_value=np.nan), None
    if not hasattr(column.dtype, "numpy_dtype"):  # of sparse columns
        return np.asarray(column.array), None
    missing = {"i": 0, "b": False}[letter]
    return column.to_numpy(column.dtype.numpy_dtype, na_value=missing), column.isna().to_numpy()


def _column_of_objects(column, name):
    """A column of strings or objects; its kind is that of the types of its values."""
    if isinstance(column, np.ndarray) and _NUMBERS_AND_NONE.issuperset(map(type, column)):
        with contextlib.suppress(OverflowError):
            numbers = column.astype(np.float64)  # None becomes NaN.
            if not (np.abs(numbers) >= LARGEST_WHOLE).any():
                kind = None if np.isnan(numbers).all() else "numeric"
                return GivenColumn(name, column.dtype, kind, numbers)
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
    types = {type(value) for value in values}
    _refuse_others(
        name,
        is_time=any(issubclass(kind, TIMES) for kind in types),
        is_complex=any(map(_is_complex, types)),
    )
    values = [value.item() if isinstance(value, np.generic) else value for value in values]
    return GivenColumn(name, column.dtype, _kind_of_types(types), codes=codes, values=values)


def _is_complex(kind):
    return issubclass(kind, Complex) and not issubclass(kind, Real)


def _float_of(value):
    """A number of any type as float, infinite where it is too large for one; NaN of anything else."""
    if not isinstance(value, Number) or _is_complex(type(value)):
        return np.nan
    try:
        return float(value)
    except OverflowError:
        return np.inf if value > 0 else -np.inf


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
