"""Tables of what is reported, by the columns of the user's table."""

import numpy as np

from sklearn_lrvb.reports import required_pandas


def tables_by_column(columns, target, values):
    """A data frame for every column: dict by its name.

    Parameters
    ----------
    columns : TableColumns
    target : Tables
    values : (K, entries), in its order
    """
    pd = required_pandas("tables_")
    places, found = target.columns_of_entries()[:, 0], {}
    labels = np.array(target.labels_of_entries(), dtype=object)
    for place, column in enumerate(columns.columns):
        own = places == place
        frame = pd.DataFrame(values[:, own], columns=pd.Index(labels[own], name=column.name))
        frame.index.name = "class"
        found[column.name] = frame
    return found


def described_columns(columns):
    """What the columns are: data frame of types and categories, with notes among its attributes."""
    pd = required_pandas("columns_")
    frame = pd.DataFrame(
        {
            "kind": [column.kind for column in columns.columns],
            "categories": [list(column.categories) for column in columns.columns],
        },
        index=pd.Index(columns.names, name="column"),
    )
    frame.attrs["notes"] = list(columns.notes)
    return frame
