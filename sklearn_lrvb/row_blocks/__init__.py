"""Passes over the rows of X, wherever these are: in an array, in batches, or in a Dask collection.

`centred_rows` says what can be asked of rows, and no file outside this folder knows how they are stored.
`blocks` has what functions of a block get, `threads` limits the threads of numerical libraries.
"""

from sklearn_lrvb.row_blocks.array_rows import ArrayRows
from sklearn_lrvb.row_blocks.blocks import (
    RowBlock,
    Tracked,
    batches,
    rows_of_size,
    slices,
    sum_of_rows,
    untracked,
)
from sklearn_lrvb.row_blocks.centred_rows import CentredRows, TotalScatter
from sklearn_lrvb.row_blocks.threads import blas_threads, openmp_threads

__all__ = [
    "ArrayRows",
    "CentredRows",
    "RowBlock",
    "TotalScatter",
    "Tracked",
    "batches",
    "blas_threads",
    "openmp_threads",
    "rows_of_size",
    "slices",
    "sum_of_rows",
    "untracked",
]
