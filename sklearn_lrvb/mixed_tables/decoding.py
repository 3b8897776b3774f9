"""Tables in the user's library: of codes and numbers, such as drawn rows, and with missing values filled.

Values that are there stay what they are, bit by bit. Columns have the dtype that they had where it can hold
their values. Whole numbers with missing ones become floats if they are filled with means that are not whole,
and if floats tell them apart.
"""

from numbers import Number

import numpy as np

from sklearn_lrvb.mixed_tables.given_columns import (
    LARGEST_WHOLE,
    container_of,
    given_column,
    given_table,
    letter_of,
)


def decoded_table(columns, array):
    """An array (n, P) of codes and numbers, NaN where missing, as a table like the training one.

    Whole numbers stay such where all are whole and none is missing, or the dtype has missing ones.

    Returns
    -------
    table : DataFrame of pandas or polars, or array of floats, of objects where categories are no numbers
    """
    pairs = list(zip(columns.columns, array.T, strict=True))
    if columns.container == "pandas":
        import pandas as pd

        table = pd.concat([_pandas_series(*pair) for pair in pairs], axis=1)
        table.columns = pd.Index(columns.labels)
        return table
    if columns.container == "polars":
        import polars as pl

        made = [_polars_series(*pair) for pair in pairs]
        return pl.DataFrame(dict(zip(columns.labels, made, strict=True)))
    table = np.empty(np.shape(array), dtype=object)
    for k, (column, values) in enumerate(pairs):
        table[:, k] = values if column.family.holds_numbers else _labelled(column, values, np.nan)
    labels = [label for column in columns.columns for label in column.categories]
    return table.astype(np.float64) if all(isinstance(label, Number) for label in labels) else table


def _pandas_series(column, values):
    """Codes or numbers (n,) of a column as Series of the dtype that it had, where that can hold them."""
    import pandas as pd

    dtype, letter = column.dtype, letter_of(column.dtype)
    can_miss = letter in "fO" or not isinstance(dtype, np.dtype) or not np.isnan(values).any()
    if hasattr(dtype, "ordered") and not column.family.holds_numbers:
        return pd.Series(pd.Categorical.from_codes(_whole(values), dtype=dtype))
    if not column.family.holds_numbers:
        series = pd.Series(_labelled(column, values, np.nan), dtype=object)
        return series if dtype is None or not can_miss else series.astype(dtype)
    if letter == "i" and can_miss and _are_whole(values):
        # Draws of small counts may be larger than a small dtype holds.
        return pd.Series(values).astype("int64" if isinstance(dtype, np.dtype) else "Int64")
    return pd.Series(values).astype(dtype if letter == "f" else np.float64)


def _polars_series(column, values):
    """Codes or numbers (n,) of a column as Series of the dtype that it had, where that can hold them."""
    import polars as pl

    dtype, letter = column.dtype, letter_of(column.dtype)
    if not column.family.holds_numbers:
        return pl.Series(_labelled(column, values, None).tolist(), dtype=dtype, strict=False)
    if letter != "f":
        dtype = pl.Int64 if letter == "i" and _are_whole(values) else pl.Float64
    return pl.Series(values, nan_to_null=True).cast(dtype)


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
        fillings.append(own[where] if column.family.holds_numbers else _labelled(column, own[where], None))
    places, container = [column.place for column in columns.columns], container_of(table)
    if container == "array":
        completed = _array_filled(table[:, places], is_missing, fillings)
        is_made = getattr(X, "dtype", np.dtype(float)).kind != "O"  # Of lists, or of a masked array.
        return _without_objects(completed) if is_made else completed, is_missing
    completed = table.iloc[:, places].copy() if container == "pandas" else table[:, places]
    for k, (column, values) in enumerate(zip(given, fillings, strict=True)):
        if len(values) and container == "pandas":
            completed.isetitem(k, _pandas_filled(completed.iloc[:, k], column, values))
        elif len(values):
            completed.replace_column(k, _polars_filled(completed.to_series(k), column, values))
    return completed, is_missing


def _pandas_filled(series, given, values):
    """A Series with numbers or categories (m,) where it has no values."""
    import pandas as pd

    if letter_of(series.dtype) == "i" and values.dtype != object:
        values = _as_whole(given, values)
        series = series.astype("Float64") if values.dtype.kind == "f" else series
    try:
        # Of pandas' own dtypes. A categorical one may lack the category, and a sparse column cannot be set.
        array = series.to_numpy(copy=True) if isinstance(series.dtype, np.dtype) else series.array.copy()
        array[given.is_missing] = values
    except (TypeError, ValueError):
        array = np.array(series)
        array = array if array.dtype.kind == values.dtype.kind else array.astype(object)
        array[given.is_missing] = values
    return pd.Series(array, series.index, array.dtype, series.name)


def _polars_filled(series, given, values):
    """A Series with numbers or categories (m,) where it has no values."""
    import polars as pl

    dtype, letter = series.dtype, letter_of(series.dtype)
    if letter == "i" and values.dtype != object:
        values = _as_whole(given, values)
        dtype = pl.Float64 if values.dtype.kind == "f" else dtype
    elif letter == "f":
        values = pl.Series(values.tolist()).cast(dtype).to_list()  # Decimals take no floats.
    objects = np.fromiter(series.to_list(), object, len(series))
    objects[given.is_missing] = values
    is_listed = not given.is_declared or set(given.values).issuperset(objects)
    return pl.Series(series.name, objects.tolist(), dtype=dtype if is_listed else pl.String)


def _array_filled(table, is_missing, fillings):
    if not all(isinstance(value, Number) for values in fillings for value in values):
        table = table.astype(object)
    for k, values in enumerate(fillings):
        table[is_missing[:, k], k] = values
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


def _labelled(column, codes, missing):
    """Categories of codes (n,), where NaN is missing, as array of objects."""
    labels = np.fromiter([*column.categories, missing], object, len(column.categories) + 1)
    return labels[_whole(codes)]


def _whole(codes):
    """Codes (n,) as integers, -1 where they are NaN."""
    return np.where(np.isnan(codes), -1, codes).astype(np.int64)


def _are_whole(values):
    seen = values[~np.isnan(values)]
    return np.array_equal(seen, np.rint(seen))
