"""Passes over the rows of X, wherever these are: in an array, in batches, or in a Dask collection.

`Rows` says what can be asked of rows. Passes over them are the same for everyone who asks, however the
rows are stored. `is_in_memory` and `is_lazy` are for the few who have a cheaper way for rows in memory.
`blocks` has what functions of a block get; `given_rows` checks what a user passes; `threads` limits the
threads of numerical libraries.
"""

from sklearn_lrvb.rows.array_rows import ArrayRows, rows_of_array
from sklearn_lrvb.rows.blocks import (
    MissingValues,
    RowBlock,
    Tracked,
    Workload,
    added,
    batches,
    rows_in_batch,
    rows_in_cache,
    slices,
    untracked,
)
from sklearn_lrvb.rows.given_rows import given_rows, is_dask, is_source, require_table
from sklearn_lrvb.rows.grouping import RowGroups, row_groups
from sklearn_lrvb.rows.threads import blas_threads, openmp_threads

__all__ = [
    "ArrayRows",
    "MissingValues",
    "RowBlock",
    "RowGroups",
    "Tracked",
    "Workload",
    "added",
    "batches",
    "blas_threads",
    "given_rows",
    "is_dask",
    "is_source",
    "openmp_threads",
    "require_table",
    "row_groups",
    "rows_in_batch",
    "rows_in_cache",
    "rows_of_array",
    "slices",
    "untracked",
]
