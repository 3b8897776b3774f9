"""Products of sparse matrices that may have many entries."""

import numpy as np
from scipy import sparse

from sklearn_lrvb.row_blocks import batches

_DENSE_FROM = 0.2  # Share of entries that are not zero from which a product of matrices is computed densely.


def sparse_product(left, right):
    """left' right of sparse arrays (n, l), (n, m): a sparse array, computed densely where it is dense."""
    left, right = sparse.csr_array(left), sparse.csr_array(right)
    if not left.nnz:
        return sparse.csr_array((left.shape[1], right.shape[1]))
    rows = np.flatnonzero(np.diff(left.indptr))
    of_left, of_right = (np.flatnonzero(np.bincount(array.indices)) for array in (left, right))
    if left.nnz < _DENSE_FROM * len(rows) * len(of_left):
        return left.T @ right
    product = np.zeros((len(of_left), len(of_right)))
    for chunk in batches(len(rows), 8 * (len(of_left) + len(of_right))):
        own = rows[chunk]
        product += left[own][:, of_left].toarray().T @ right[own][:, of_right].toarray()
    indices = np.tile(of_right.astype(np.int32), len(of_left))
    counts = np.zeros(left.shape[1] + 1, dtype=np.int64)
    counts[1 + of_left] = len(of_right)
    return sparse.csr_array(
        (product.ravel(), indices, np.cumsum(counts)), shape=(left.shape[1], right.shape[1])
    )
