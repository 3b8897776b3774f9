"""A user's table with its missing values filled. Values that are there stay what they are, bit by bit.

Columns keep their dtype where it can hold what they are filled with. Whole numbers with holes become floats
if they are filled with means that are not whole, and if floats tell them apart.
"""

from numbers import Number

import numpy as np

from sklearn_lrvb.mixed_tables.given_columns import LARGEST_WHOLE, given_column, given_table, letter_of
from sklearn_lrvb.mixed_tables.table import NUMBERS, container_of


def completed_table(columns, X, filled):
    """A table without ignored columns and without missing values, and where values were missing.

    Parameters
    ----------
    columns : TableColumns
    X : table of these columns, in memory
    filled : (n, P), encoded values to fill it with; NaN nowhere

    Returns
    -------
    table : like X
    is_missing : bool (n, P)
    """
    table = given_table(X)
    given = [given_column(table, column.place, column.name) for column in columns.columns]
    is_missing = np.stack([column.is_missing for column in given], axis=1)
    fillings = []
    for column, own, where in zip(columns.columns, filled.T, is_missing.T, strict=True):
        values = own[where]
        fillings.append(values if column.kind in NUMBERS else column.labelled(values, None))
    places = [column.place for column in columns.columns]
    fill = {"pandas": _pandas_filled, "polars": _polars_filled, "array": _array_filled}[container_of(table)]
    completed = fill(table, places, given, fillings)
    is_made = isinstance(completed, np.ndarray) and getattr(X, "dtype", np.dtype(float)).kind != "O"
    return _without_objects(completed) if is_made else completed, is_missing


def _pandas_filled(table, places, given, fillings):
    table = table.iloc[:, places].copy()
    for k, (column, values) in enumerate(zip(given, fillings, strict=True)):
        if len(values):
            table.isetitem(k, _series_filled(table.iloc[:, k], column, values))
    return table


def _series_filled(series, given, values):
    import pandas as pd

    where = given.is_missing
    if letter_of(series.dtype) == "i" and values.dtype != object:
        values = _as_whole(given, values)
        series = series.astype("Float64") if values.dtype.kind == "f" else series
    try:
        # Of pandas' own dtypes. A categorical one may lack the category, and a sparse column cannot be set.
        array = series.to_numpy(copy=True) if isinstance(series.dtype, np.dtype) else series.array.copy()
        array[where] = values
    except (TypeError, ValueError):
        array = np.array(series)
        array = array if array.dtype.kind == values.dtype.kind else array.astype(object)
        array[where] = values
    return pd.Series(array, series.index, array.dtype, series.name)


def _polars_filled(table, places, given, fillings):
    import polars as pl

    completed = []
    for place, column, values in zip(places, given, fillings, strict=True):
        series = table.to_series(place)
        if len(values):
            dtype = series.dtype
            if letter_of(dtype) == "i" and values.dtype != object:
                values = _as_whole(column, values)
                dtype = pl.Float64 if values.dtype.kind == "f" else dtype
            elif letter_of(dtype) == "f":
                values = pl.Series(values.tolist()).cast(dtype).to_list()  # Decimals take no floats.
            objects = np.fromiter(series.to_list(), object, len(series))
            objects[column.is_missing] = values
            is_listed = type(dtype).__name__ != "Enum" or set(dtype.categories).issuperset(objects)
            series = pl.Series(series.name, objects.tolist(), dtype=dtype if is_listed else pl.String)
        completed.append(series)
    return pl.DataFrame(completed)


def _array_filled(table, places, given, fillings):
    table = table[:, places]  # a copy
    if not all(isinstance(value, Number) for values in fillings for value in values):
        table = table.astype(object)
    for k, (column, values) in enumerate(zip(given, fillings, strict=True)):
        table[column.is_missing, k] = values
    return table


def _as_whole(given, values):
    """Means (m,) for a column of whole numbers; whole ones if all are, or if floats merge what it has."""
    rounded = np.rint(values)
    tells_apart = np.fmax.reduce(np.abs(given.as_floats()), initial=0.0) < LARGEST_WHOLE
    return values if tells_apart and not np.array_equal(rounded, values) else rounded.astype(np.int64)


def _without_objects(table):
    """An array that has been made of lists, or of a masked array: as floats, if they hold all its values."""
    is_number = all(isinstance(value, Number) for value in table.ravel())
    if table.dtype != object or not is_number or not np.all(np.abs(table) < LARGEST_WHOLE):
        return table
    return table.astype(np.float64)
