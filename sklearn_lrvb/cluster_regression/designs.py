"""Tables of covariates and of outcomes as numbers: design matrices with names, in scaled units.

*Conventions.* n rows, C columns of a table; P columns of a design matrix, of which the first is one.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from sklearn_lrvb.mixed_tables.table import described_part
from sklearn_lrvb.rows import is_dask, is_source

# Share of the variance of a column of the design that the others must leave unexplained, at least.
_LEAST_UNEXPLAINED = 1e-10
_FIRST = 100  # Rows by which most columns are told apart.
_MOST_LEVELS = 50  # Categories of a column: more are names of rows.


@dataclass(frozen=True)
class GivenTable:
    """A table of covariates or outcomes, along the rows of X.

    Attributes
    ----------
    columns : tuple of `mixed_tables.table.Column`
    values : (n, C), numbers, and codes of categories; NaN where missing
    """

    columns: tuple
    values: np.ndarray

    @property
    def names(self):
        return [column.name for column in self.columns]

    @property
    def is_complete(self):
        """Which rows have a value in every column, bool array (n,)."""
        return ~np.isnan(self.values).any(axis=1)

    def along(self, which):
        """Some of the rows, bool array (n,)."""
        return GivenTable(self.columns, self.values[which])


def table_of(table, owner):
    """What a user passes as covariates or outcomes, as a table in memory: data frame or array of two axes."""
    table = table.compute() if is_dask(table) else table
    _require_one_table(table, owner)
    if hasattr(table, "columns"):
        return table
    if hasattr(table, "to_frame"):  # A series, of which arrays are made where it has no name.
        if getattr(table, "name", None) not in (None, ""):
            return table.to_frame()
        table = table.to_numpy()
    if isinstance(table, np.ma.MaskedArray):
        return table.reshape(len(table), -1)
    if np.ndim(table) == 1:
        return np.asarray(table, dtype=None if hasattr(table, "__array__") else object)[:, None]
    return table


def _require_one_table(table, owner):
    """Raise ValueError unless it is one data frame, series, array or list, and no list of parts."""
    is_list = isinstance(table, list | tuple)
    if is_source(table) or (is_list and any(hasattr(own, "shape") and np.ndim(own) for own in table)):
        raise ValueError(
            f"{owner} must be in memory, one table with a row for every row of X, also where X is in batches."
        )
    if not is_list and not any(hasattr(table, name) for name in ("columns", "to_frame", "__array__")):
        raise ValueError(f"{owner} must be a data frame, a series or an array, got {type(table).__name__}.")


def array_names(owner, n_columns):
    """Names of the columns of an array of covariates or outcomes: list of str."""
    one = owner.removesuffix("s")
    return [one] if n_columns == 1 else [f"{one}{number}" for number in range(n_columns)]


def given_table(table, columns, n_rows, owner):
    """What a user passes as covariates or outcomes: GivenTable.

    Parameters
    ----------
    table : data frame or array-like of two axes, with a row for every row of X
    columns : "auto" or dict, the types of columns, as `LRVBLatentClassMixture` takes them
    n_rows : int, of X
    owner : {"covariates", "outcome"}, the argument's name in messages

    Raises
    ------
    ValueError
        On a wrong number of rows, and columns that are neither numbers nor categories.
    """
    try:
        described = described_part(table, columns)
        values = described.encoded(table)
    except ValueError as error:
        raise ValueError(
            str(error).replace(" of X", f" of {owner}").replace("X has", f"{owner} has")
        ) from None
    if len(values) != n_rows:
        raise ValueError(
            f"{owner} has {len(values)} rows, but X has {n_rows}: pass one for every row of X, in the same "
            "order."
        )
    columns = described.columns
    if not hasattr(table, "columns"):  # Names are those of the argument, and not those that X may have.
        names = zip(columns, array_names(owner, len(columns)), strict=True)
        columns = tuple(replace(own, name=name) for own, name in names)
    return GivenTable(columns, values)


def require_levels(column, values, owner):
    """Raise ValueError where a column is constant in the rows that take part, or has too many categories.

    Parameters
    ----------
    column : `mixed_tables.table.Column`
    values : (n,), of rows without a missing value
    owner : {"covariates", "outcome"}
    """
    seen = np.unique(values)
    if len(seen) < 2:
        raise ValueError(
            f"Column {column.name!r} of {owner} is constant in the {len(values)} rows that take part, and so "
            "says nothing about clusters: leave it out."
        )
    if not column.holds_numbers and len(seen) > _MOST_LEVELS:
        raise ValueError(
            f"Column {column.name!r} of {owner} has {len(seen)} categories; up to {_MOST_LEVELS} are taken. "
            f"Join categories, or say columns={{{column.name!r}: 'numeric'}} if they are numbers."
        )


@dataclass(frozen=True)
class DesignColumn:
    """A column of the design matrix.

    Attributes
    ----------
    name : str, that of the covariate, or "sex=male" for a category
    covariate : int, the number of its column in the table
    level : float or None, the code of the category; None of numbers
    centre, scale : float, the matrix has (value - centre) / scale
    """

    name: str
    covariate: int
    level: float | None
    centre: float = 0.0
    scale: float = 1.0

    def values(self, table):
        """The column of a table of covariates, (n, C) -> (n,)."""
        own = table[:, self.covariate]
        return ((own if self.level is None else own == self.level) - self.centre) / self.scale


@dataclass(frozen=True)
class Design:
    """How covariates make up a design matrix, of which the first column is one and others have mean zero.

    Attributes
    ----------
    table : GivenTable, of all rows; without columns where there are no covariates
    columns : tuple of DesignColumn, without the first
    references : tuple of float or None, code of every covariate's reference level; None of numbers
    """

    table: GivenTable
    columns: tuple
    references: tuple

    @property
    def size(self):
        """P."""
        return 1 + len(self.columns)

    def matrix(self, values):
        """The design matrix of a table of covariates, (n, C) -> (n, P)."""
        return np.stack([np.ones(len(values)), *(column.values(values) for column in self.columns)], axis=1)

    @cached_property
    def to_units(self):
        """Coefficients in units of the covariates from those of the matrix: (P, P), of the same predictor."""
        change = np.eye(self.size)
        for place, column in enumerate(self.columns, 1):
            change[place, place] = 1.0 / column.scale
            change[0, place] = -column.centre / column.scale
        return change

    def levels(self, covariate):
        """Codes of a covariate's categories that occur, the reference first: list, empty of numbers."""
        own = [column.level for column in self.columns if column.covariate == covariate]
        return [] if self.references[covariate] is None else [self.references[covariate], *own]

    def level_name(self, covariate, level):
        """Such as "sex=male"."""
        column = self.table.columns[covariate]
        return f"{column.name}={column.categories[int(level)]}"

    def with_value(self, matrix, covariate, value):
        """A design matrix with all rows at a value or level of a covariate, (n, P) -> (n, P)."""
        changed = matrix.copy()
        for place, column in enumerate(self.columns, 1):
            if column.covariate == covariate:
                own = value if column.level is None else float(value == column.level)
                changed[:, place] = (own - column.centre) / column.scale
        return changed

    def moved(self, matrix, covariate, deviations):
        """The same with the numbers of a covariate moved by so many standard deviations."""
        changed = matrix.copy()
        changed[:, 1 + self._place_of(covariate)] += deviations
        return changed

    def _place_of(self, covariate):
        """The place of a covariate's first column: int."""
        return next(place for place, column in enumerate(self.columns) if column.covariate == covariate)

    def scale_of(self, covariate):
        """Standard deviation of a covariate of numbers: float."""
        return self.columns[self._place_of(covariate)].scale


def design_of(table, weights, levels):
    """The design of a table of covariates: Design.

    Parameters
    ----------
    table : GivenTable, of rows without a missing value
    weights : (n,), how often rows count
    levels : dict, reference levels by the names of columns; the first category else

    Raises
    ------
    ValueError
        On unknown levels, and columns that are constant, or combinations of the others, in these rows.
    """
    for column, own in zip(table.columns, table.values.T, strict=True):
        require_levels(column, own, "covariates")
    references = tuple(
        _reference(column, own, levels) for column, own in zip(table.columns, table.values.T, strict=True)
    )
    unknown = [name for name in levels if name not in table.names]
    if unknown:
        raise ValueError(
            f"levels names the column {unknown[0]!r}, but covariates has {', '.join(table.names)}."
        )
    columns = []
    for number, (column, reference) in enumerate(zip(table.columns, references, strict=True)):
        if reference is None:
            columns.append(DesignColumn(column.name, number, None))
            continue
        for level in np.unique(table.values[:, number]):
            if level != reference:
                name = f"{column.name}={column.categories[int(level)]}"
                columns.append(DesignColumn(name, number, float(level)))
    scaled = []
    for column in columns:
        own = column.values(table.values)
        centre = float(np.average(own, weights=weights))
        scale = float(np.sqrt(np.average(np.square(own - centre), weights=weights)))
        if not scale > 1e-12 * np.abs(own).max(initial=0.0):
            raise ValueError(
                f"{column.name!r} of covariates varies too little for its size, in the rows that have all "
                "values: subtract a constant, or leave it out."
            )
        scaled.append(DesignColumn(column.name, column.covariate, column.level, centre, scale))
    design = Design(table, tuple(scaled), references)
    _refuse_collinear(design, weights)
    return design


def _reference(column, values, levels):
    """Code of the reference level of a column, None of numbers: the first that occurs, or the user's."""
    if column.holds_numbers:
        if column.name in levels:
            raise ValueError(f"levels has a reference of {column.name!r}, but that is a column of numbers.")
        return None
    seen = np.unique(values)
    if column.name not in levels:
        return float(seen[0])
    wanted = levels[column.name]
    names = [column.categories[int(code)] for code in seen]
    if wanted not in names:
        raise ValueError(
            f"levels says that the reference of {column.name!r} is {wanted!r}, but its categories are "
            f"{', '.join(map(repr, names))}."
        )
    return float(seen[names.index(wanted)])


def _refuse_collinear(design, weights):
    """Raise ValueError where a column of the design is a linear combination of those before it."""
    matrix = design.matrix(design.table.values)[:, 1:]
    moments = (matrix * weights[:, None]).T @ matrix / weights.sum()
    for place, column in enumerate(design.columns):
        before = moments[:place, place]
        explained = before @ np.linalg.lstsq(moments[:place, :place], before, rcond=None)[0]
        if moments[place, place] - explained < _LEAST_UNEXPLAINED:
            raise ValueError(
                f"{column.name!r} of covariates is a linear combination of those before it, so that their "
                "effects cannot be told apart: leave one of them out."
            )


def no_covariates(n_rows):
    """The design of an intercept alone: Design."""
    return Design(GivenTable((), np.empty((n_rows, 0))), (), ())


def refuse_columns_of(rows, feature_names, given, owner):
    """Raise ValueError where a column is one of X: by its name, or by its values in memory.

    Parameters
    ----------
    rows : Rows, all that were given
    feature_names : array of str or None, names of the columns of X if it has any
    given : GivenTable
    owner : str
    """
    why = (
        "Clusters are defined by the columns of X, so that these can neither explain them nor be explained: "
        f"leave it out of {owner}, or fit without it."
    )
    shared = [name for name in given.names if feature_names is not None and name in feature_names]
    if shared:
        raise ValueError(f"{shared[0]!r} is a column of X and of {owner}. {why}")
    if not rows.is_in_memory:
        return
    for column, own in zip(given.columns, given.values.T, strict=True):
        for place, values in enumerate(rows.X.T):
            if _are_same(values[:_FIRST], own[:_FIRST]) and _are_same(values, own):
                raise ValueError(
                    f"Column {column.name!r} of {owner} has the values of column {place} of X. {why}"
                )


def _are_same(values, others):
    """Whether two columns have the same values, also if one was stored in float32."""
    return np.array_equal(values, others.astype(values.dtype), equal_nan=True)
