"""Tables with columns of several types as one float64 array, and back.

`described` learns from the training table what its columns are: `TableColumns`. They turn tables like it into
arrays with one number a value: categories become their codes 0, 1, ..., counts and numbers stay, and NaN
stands where a value is missing. `decoded` makes tables of such arrays.

A table in batches is described batch by batch: the sum of `described_part` of each, then `checked`.

Conventions: n rows, P columns that are modelled, out of those that the table has.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Number
from typing import Any

import numpy as np
from sklearn.utils.validation import _get_feature_names

from sklearn_lrvb.caller_warnings import warn_caller
from sklearn_lrvb.families import FAMILIES
from sklearn_lrvb.mixed_tables.decoding import decoded_table
from sklearn_lrvb.mixed_tables.given_columns import (
    LARGEST_WHOLE,
    container_of,
    given_column,
    given_table,
    is_whole,
)
from sklearn_lrvb.mixed_tables.spellings import notes_of_spellings

# Columns of up to so many different whole numbers may be counts or codes: the user is told, where the table
# has at least so many rows for each of them. In fewer rows measurements have few values, too.
_FEW_VALUES, _ROWS_OF_FEW_VALUES = 10, 5
# Fewer rows a category say next to nothing about its probability in each of some classes.
_LEAST_ROWS_OF_CATEGORY = 10


@dataclass(frozen=True)
class Column:
    """What is known of a column.

    Attributes
    ----------
    name : str
    place : int, which column of the table it is
    given_kind : str or None, the type that the user says, a name in `FAMILIES`
    looks_numeric : bool, whether all values are numbers, and not only categories
    declared : tuple or None, the categories if the dtype lists them
    dtype : of NumPy, pandas or polars; None where batches differ
    n_values : float, how many values are not missing: the sum of their rows' weights
    seen : frozenset or None
        Categories that occur, or numbers; None where more than ten numbers do.
    """

    name: str
    place: int
    given_kind: str | None
    looks_numeric: bool
    declared: tuple | None
    dtype: Any
    n_values: float
    seen: frozenset | None

    @cached_property
    def holds_numbers(self):
        """Whether values are numbers; else they are categories.

        Two different numbers of which nobody has said what they are are categories: a normal distribution
        would shrink onto one of them, in a class of its own.
        """
        if self.given_kind is not None:
            return FAMILIES[self.given_kind].holds_numbers
        has_two = self.seen is not None and len(self.seen) == 2
        # Larger numbers may be more than two.
        return self.looks_numeric and not (has_two and max(map(abs, self.seen)) < LARGEST_WHOLE)

    @cached_property
    def categories(self):
        """What the codes stand for: tuple, empty of numbers."""
        if self.holds_numbers:
            return ()
        if self.declared is not None:
            return self.declared
        are_bools = all(isinstance(value, bool) for value in self.seen)
        if self.seen and self.seen <= {0, 1} and (are_bools or self.given_kind == "binary"):
            # Where all say no, some could have said yes.
            return (False, True) if are_bools else (0, 1)
        if self.looks_numeric and self.given_kind is None:
            return _ordered({int(value) if is_whole(value) else value for value in self.seen})
        return _ordered(self.seen)

    @cached_property
    def kind(self):
        """The type of the column, a name in `FAMILIES`; that of any two categories is "binary"."""
        if self.holds_numbers:
            return self.given_kind or "numeric"
        return "binary" if len(self.categories) == 2 else "categorical"

    @property
    def family(self):
        """The family of the column, a class."""
        return FAMILIES[self.kind]

    @property
    def may_be_codes(self):
        """Whether numbers of which nobody has said what they are may be counts or codes of categories."""
        is_guessed = self.given_kind is None and self.holds_numbers
        if not is_guessed or self.seen is None or len(self.seen) < 2:
            return False
        repeats = self.n_values >= _ROWS_OF_FEW_VALUES * len(self.seen)
        return repeats and all(value == round(value) for value in self.seen)

    def __add__(self, other):
        """The column of two batches of rows. One that has no values is as the other."""
        if self.name != other.name:
            raise ValueError(
                f"Column {self.place} is {self.name!r} in one batch and {other.name!r} in another. The "
                "columns of all batches must be the same, in the same order."
            )
        told = {own.looks_numeric for own in (self, other) if own.n_values or own.declared is not None}
        if len(told) == 2 and self.given_kind is None:
            words = ["numeric" if own.looks_numeric else own.kind for own in (self, other)]
            raise ValueError(
                f"Column {self.name!r} is {words[0]} in one batch and {words[1]} in another. Say what it is, "
                f"for example {{{self.name!r}: 'categorical'}}."
            )
        declared = None
        if self.declared is not None and other.declared is not None:
            declared = tuple(dict.fromkeys(self.declared + other.declared))
        seen = None if self.seen is None or other.seen is None else self.seen | other.seen
        both = replace(
            self,
            looks_numeric=told == {True},
            declared=declared,
            dtype=self.dtype if self.dtype == other.dtype else None,
            n_values=self.n_values + other.n_values,
            seen=seen,
        )
        has_many = both.holds_numbers and seen is not None and len(seen) > _FEW_VALUES
        return replace(both, seen=None) if has_many else both


@dataclass(frozen=True)
class TableColumns:
    """The columns of a table, and the way to an array and back.

    Attributes
    ----------
    columns : tuple of Column, of those that are modelled
    n_given : int, number of columns of the table
    n_rows : int, number of its rows of positive weight
    container : "pandas", "polars" or "array", what `decoded` returns
    labels : tuple, what the data frame calls the columns that are modelled
    """

    columns: tuple[Column, ...]
    n_given: int
    n_rows: int
    container: str
    labels: tuple

    @property
    def names(self):
        """Names of the columns that are modelled: tuple of str."""
        return tuple(column.name for column in self.columns)

    @property
    def notes(self):
        """What is doubtful about the columns, of which a fit warns: tuple of sentences."""
        doubtful, notes = [column.name for column in self.columns if column.may_be_codes], ()
        if doubtful:
            notes = (
                f"Columns of X with at most {_FEW_VALUES} different whole numbers are taken for "
                f"measurements: {_listed(doubtful)}. Classes can shrink onto single values, and so be found "
                f"where there are none. Say what the columns are: columns={{{doubtful[0]!r}: 'categorical'}} "
                "for answers and codes, 'count' for numbers of things, 'numeric' for measurements.",
            )
        return (*notes, *notes_of_spellings(self.columns, self.container))

    def __add__(self, other):
        """The columns of two batches of one table.

        Raises
        ------
        ValueError
            Where their columns differ in number, name or type.
        """
        if len(self.columns) != len(other.columns) or self.n_given != other.n_given:
            raise ValueError(f"One batch has {self.n_given} columns, and another {other.n_given}.")
        columns = tuple(a + b for a, b in zip(self.columns, other.columns, strict=True))
        self._require_labels(other.container, other.labels)
        return replace(self, columns=columns, n_rows=self.n_rows + other.n_rows)

    def _require_labels(self, container, labels):
        """Raise ValueError where another data frame has other labels; names are checked by scikit-learn."""
        if container == self.container and tuple(labels) != self.labels:
            raise ValueError(
                f"The columns of X are {_listed(labels)}, but those of the training table, or of the first "
                f"batch, are {_listed(self.labels)}. Pass the same columns in the same order."
            )

    def checked(self):
        """The columns, if every one can be modelled; warns of those that say little, or may be misread.

        Raises
        ------
        ValueError
            Where there are no rows, or a column has no values, or more than two although it is said to be
            binary.
        """
        if not self.n_rows:
            raise ValueError(
                f"Found array with 0 sample(s) (shape=(0, {self.n_given})) while a minimum of 1 is required. "
                "Rows of weight zero do not count."
            )
        empty = [column.name for column in self.columns if not column.n_values]
        if empty:
            raise ValueError(
                f"All values are missing in {len(empty)} column(s) of X ({self.n_rows} rows of positive "
                f"weight): {_listed(empty)}. Drop them, or leave them out, as in {{{empty[0]!r}: 'ignore'}}."
            )
        for column in self.columns:
            if column.given_kind == "binary" and len(column.categories) > 2:
                raise ValueError(
                    f"Column {column.name!r} of X is to be binary, but has {len(column.categories)} values: "
                    f"{_listed(column.categories)}. Correct them, or let it be {{{column.name!r}: "
                    "'categorical'}."
                )
        self._warn()
        return self

    def _warn(self):
        if self.notes:
            warn_caller(" ".join(self.notes))
        constant = [c.name for c in self.columns if c.seen is not None and len(c.seen) == 1]
        if constant:
            warn_caller(
                f"Columns of X with one value, which tell no classes apart: {_listed(constant)}. They may be "
                f"left out, as in {{{constant[0]!r}: 'ignore'}}."
            )
        many = [
            f"{c.name!r} has {len(c.categories)} in {round(c.n_values)} rows"
            for c in self.columns
            if len(c.categories) > 2
            and len(c.seen) > 1
            and len(c.categories) * _LEAST_ROWS_OF_CATEGORY > c.n_values
        ]
        if many:
            warn_caller(
                f"More categories than a tenth of the rows: column {', '.join(many[:5])}"
                f"{', ...' * (len(many) > 5)}. Most of what the classes say of them is the prior. Join rare "
                "categories; if they are numbers, let the column be 'numeric' or 'count'; if each is of one "
                "row, 'ignore' it."
            )

    def encoded(self, X, unknown="missing", counts=True):
        """A table as float64 array (n, P): codes of categories, numbers and counts, NaN where missing.

        Parameters
        ----------
        X : table of the same columns in the same order
        unknown : "missing" or "error", default="missing"
            What becomes of categories that the training table did not have: missing, with a warning, or a
            ValueError.
        counts : bool array (n,), or bool for all rows, default=True
            Which rows count. In the others such categories are missing without a word.

        Raises
        ------
        ValueError
            Where a column has values that its kind cannot take; it is named.
        """
        table = given_table(X)
        if table.shape[1] != self.n_given:
            raise ValueError(f"X has {table.shape[1]} columns, but the training table had {self.n_given}.")
        if hasattr(table, "columns"):
            labels = list(table.columns)
            self._require_labels(container_of(table), [labels[column.place] for column in self.columns])
        array = np.empty((table.shape[0], len(self.columns)))
        unseen = []
        for k, column in enumerate(self.columns):
            given = given_column(table, column.place, column.name)
            if column.family.holds_numbers:
                array[:, k] = given.as_numbers(column.family)
            else:
                array[:, k], others = _codes(column, given, counts)
                unseen += others
        if unseen:
            _report_unseen(unseen, is_error=unknown == "error")
        return array

    def decoded(self, array):
        """An array (n, P) of codes and numbers as a table like the training one (`decoded_table`)."""
        return decoded_table(self, array)


# Learning.


def described(X, kinds="auto", sample_weight=None):
    """What the columns of a training table are.

    Parameters
    ----------
    X : pandas or polars data frame, or array-like of shape (n, n_given)
    kinds : "auto" or dict, default="auto"
        "auto": columns of two values are binary, others of floats and integers numeric, all others
        categorical. Objects are numbers if all of a column are. A dict says otherwise of some
        columns. Its keys are names, positions, tuples of them, or callables that get the data frame and
        return them, such as scikit-learn's `make_column_selector`; its values are "numeric", "categorical",
        "binary", "count" or "ignore". Later ones overrule earlier ones.
    sample_weight : float64 array (n,) or None, as `checked_weights` returns it
        Rows of weight zero are checked, but do not count.

    Returns
    -------
    columns : TableColumns

    Raises
    ------
    ValueError
        On values or kinds that cannot be; it names the column.

    Warns
    -----
    UserWarning
        Of columns with one value, of numbers that may be codes, and of categories that are more than a tenth
        of the rows.
    """
    return described_part(X, kinds, sample_weight).checked()


def described_part(X, kinds="auto", sample_weight=None):
    """What one batch of a table tells of its columns, as `described` does, but not `checked`."""
    names, table = _names(X), given_table(X)
    if names is None:
        names = [f"x{place}" for place in range(table.shape[1])]
    labels = list(getattr(table, "columns", names))
    given_kinds = _resolved(kinds, X, names, labels)
    places = [place for place in range(len(names)) if given_kinds.get(place) != "ignore"]
    if not places:
        raise ValueError(f"All {len(names)} columns of X are ignored. Leave one at least to be modelled.")
    weights = np.ones(table.shape[0]) if sample_weight is None else sample_weight
    columns = tuple(
        _learned(given_column(table, place, names[place]), place, given_kinds.get(place), weights)
        for place in places
    )
    n_rows = int(np.count_nonzero(weights))
    of_modelled = tuple(labels[place] for place in places)
    return TableColumns(columns, len(names), n_rows, container_of(table), of_modelled)


def _names(X):
    """Names of columns as list of str, or None where X has none that scikit-learn takes."""
    labels = list(X.columns) if hasattr(X, "iloc") and hasattr(X, "columns") else []
    repeated = [label for label in dict.fromkeys(labels) if labels.count(label) > 1]
    if repeated:
        raise ValueError(f"Several columns of X have the same name: {_listed(repeated)}. Rename them.")
    names = _get_feature_names(X)
    return None if names is None else [str(name) for name in names]


def _learned(given, place, given_kind, weights):
    """What a given column tells in rows of some weights (n,), as Column."""
    looks_numeric = given.looks_numeric(weights > 0)
    family = FAMILIES[given_kind or ("numeric" if looks_numeric else "categorical")]
    if family.holds_numbers:
        numbers = given.as_numbers(family)
        counts = (weights > 0) & ~np.isnan(numbers)
        n_values, seen = float(weights[counts].sum()), _few_values(numbers[counts])
    else:
        codes, values = given.coded()
        n_rows = np.bincount(codes[codes >= 0], weights[codes >= 0], minlength=len(values))
        n_values = float(n_rows.sum())
        seen = frozenset(value for value, n in zip(values, n_rows, strict=True) if n > 0)
    declared = tuple(given.values) if given.is_declared else None
    return Column(given.name, place, given_kind, looks_numeric, declared, given.dtype, n_values, seen)


def _few_values(numbers):
    """The different numbers as frozenset, or None where there are more than a few."""
    for some in (numbers[:1000], numbers):  # The first ones mostly tell, without sorting all.
        distinct = np.unique(some)
        if len(distinct) > _FEW_VALUES:
            return None
    return frozenset(distinct.tolist())


def _ordered(values):
    """Values as categories in order of type and value: tuple. Numbers are one type."""
    types = {value: "" if isinstance(value, Number) else type(value).__name__ for value in values}
    by_name = sorted(values, key=lambda value: (types[value], repr(value)))
    try:
        return tuple(sorted(by_name, key=lambda value: (types[value], value)))
    except TypeError:  # Objects without an order.
        return tuple(by_name)


def _listed(things):
    """The first five of some things, for a message."""
    things = list(things)
    return ", ".join(repr(thing) for thing in things[:5]) + ", ..." * (len(things) > 5)


# The kinds that a user says.


def _resolved(kinds, X, names, labels):
    """Kinds by place, of the columns of which the user says them: dict.

    Parameters
    ----------
    kinds : "auto" or dict
    X : what the user has passed
    names : list of str, what the columns are called here
    labels : list, what a data frame calls them; names where it is none

    Raises
    ------
    ValueError
        On other kinds than there are, and on columns that are not there.
    """
    if isinstance(kinds, str) and kinds == "auto":
        return {}
    if not isinstance(kinds, dict):
        raise ValueError(
            f"The types of columns must be 'auto' or a dict such as {{{names[0]!r}: 'categorical'}}, got "
            f"{kinds!r}."
        )
    by_place = {}
    for key, kind in kinds.items():
        if kind not in (*FAMILIES, "ignore"):
            listed = ", ".join(map(repr, (*FAMILIES, "ignore")))
            raise ValueError(f"The type of column(s) {key!r} must be one of {listed}, got {kind!r}.")
        chosen = key(X) if callable(key) else key
        is_one = isinstance(chosen, (str, int, np.integer)) or (
            isinstance(chosen, tuple) and chosen in labels
        )
        for one in [chosen] if is_one else chosen:
            by_place[_place(one, names, labels)] = kind
    return by_place


def _place(key, names, labels):
    """The place of a column that is given by its name or label, or by its position.

    Where a data frame has numbers for labels, a number is a label, as everywhere in pandas and as selectors
    return it; only where they are 0, 1, 2, ... may it count from the end.
    """
    for own in (labels, names):
        if key in own:
            return own.index(key)
    has_numbers = any(isinstance(label, (int, np.integer)) for label in labels)
    is_position = isinstance(key, (int, np.integer)) and -len(names) <= key < len(names)
    if is_position and (not has_numbers or labels == list(range(len(labels)))):
        return int(key) % len(names)
    raise ValueError(
        f"A type is given for column {key!r}, but X has no such column. Its {len(names)} columns are "
        f"{_listed(labels)}."
    )


# Encoding.


def _codes(column, given, counts):
    """Codes of a given column among the categories of the fit, as float array (n,), NaN where missing.

    Also what it has besides, in rows of positive weight: list of (name, value, number of rows, first row).
    """
    codes, values = given.coded()
    code_of = {category: float(code) for code, category in enumerate(column.categories)}
    array = np.array([code_of.get(value, np.nan) for value in values] + [np.nan])[codes]
    rows = np.flatnonzero(np.isnan(array) & (codes >= 0) & counts)
    unseen, first, n_rows = np.unique(codes[rows], return_index=True, return_counts=True)
    others = zip(unseen, n_rows, rows[first], strict=True)
    return array, [(column.name, values[code], n, row) for code, n, row in others]


def _report_unseen(unseen, is_error):
    """Warn of categories that the training table did not have, or raise ValueError."""
    listed = "; ".join(
        f"{value!r} of column {name!r} in {n} row(s), the first is row {row}"
        for name, value, n, row in unseen[:5]
    )
    found = f"Categories of X that the training table did not have ({len(unseen)}): {listed}"
    found += "; ..." * (len(unseen) > 5)
    if is_error:
        raise ValueError(
            f"{found}. (a) Pass unknown='missing', and they count as missing. (b) Fit again, with a "
            "categorical dtype that lists all categories, or with rows that have them."
        )
    warn_caller(f"{found}. They count as missing; unknown='error' refuses them.")
