"""Products with V of one factor, block diagonal over its members, that never form it as a whole.

*Conventions.* ``natural`` are the factor's natural parameters. V is that of its flat vector, (size, size).
"""

import numpy as np
from scipy import sparse

from sklearn_lrvb.row_blocks import batches

# Number of a member's statistics up to which its V is stored, instead of products computed by the family.
_STORED_UP_TO = 40


def covariance_product(factor, natural, columns, rows=None):
    """Rows of V times dense or sparse columns (size, m): dense or sparse like these, (n, m).

    V itself is formed for members with few statistics only.

    Parameters
    ----------
    rows : int ndarray of shape (n,), default=None
        Positions of the factor's flat vector. None means all, in order.
    """
    rows = slice(None) if rows is None else rows
    if factor.family.n_statistics <= _STORED_UP_TO:
        if sparse.issparse(columns):
            return sparse.csr_array(_sparse_covariance(factor, natural) @ columns)[rows]
        blocks = factor.covariance_blocks(natural)
        return (blocks @ columns.reshape(*blocks.shape[:2], -1)).reshape(columns.shape)[rows]
    n_rows = factor.size if isinstance(rows, slice) else len(rows)
    active, products = _products(factor, natural, columns, n_rows, lambda product: product[:, rows])
    if not sparse.issparse(columns):
        dense = np.zeros((n_rows, columns.shape[1]))
        dense[:, active] = products.T
        return dense
    indices = np.tile(active.astype(np.int32), n_rows)
    pointers = len(active) * np.arange(n_rows + 1)
    return sparse.csr_array((products.T.ravel(), indices, pointers), shape=(n_rows, columns.shape[1]))


def covariance_form(factor, natural, columns):
    """K' V K of dense or sparse columns K (size, m): a dense or sparse array (m, m)."""
    if factor.family.n_statistics <= _STORED_UP_TO:
        return columns.T @ covariance_product(factor, natural, columns)
    form = np.zeros(2 * (columns.shape[1],))
    active, products = _products(
        factor, natural, columns, columns.shape[1], lambda product: product @ columns
    )
    form[active] = products
    return form


def _sparse_covariance(factor, natural):
    blocks = factor.covariance_blocks(natural)
    n_blocks, size, _ = blocks.shape
    # Products with other sparse matrices are twice as fast row by row as in the format of blocks.
    columns = np.repeat(np.arange(n_blocks * size, dtype=np.int32).reshape(n_blocks, 1, size), size, axis=1)
    pointers = size * np.arange(n_blocks * size + 1)
    return sparse.csr_array((blocks.ravel(), columns.ravel(), pointers), shape=2 * (factor.size,))


def _products(factor, natural, columns, width, reduce):
    """Columns that are not zero, (n,), and a function of V times each of them: (n, width)."""
    columns, size = sparse.csc_array(columns), factor.family.n_statistics
    active = np.flatnonzero(np.diff(columns.indptr))
    reduced = np.empty((len(active), width))
    for chunk in batches(len(active), 4 * 8 * factor.size):
        vectors = columns[:, active[chunk]].toarray()
        product = np.empty((vectors.shape[1], factor.size))
        for member, own in enumerate(natural.reshape(-1, size)):
            part = slice(member * size, (member + 1) * size)
            product[:, part] = factor.family.covariance_product(own, vectors[part]).T
        reduced[chunk] = reduce(product)
    return active, reduced


def covariance_of(factor, natural, rows, columns):
    """V between statistics at positions of the flat vector, (len(rows), len(columns))."""
    units = np.ones(len(columns)), (columns, np.arange(len(columns)))
    matrix = sparse.csr_array(units, shape=(factor.size, len(columns)))
    return covariance_product(factor, natural, matrix, rows).toarray()
