"""Columns of which a user should hear: of one value, linear functions of others, more of them than rows of a
cluster, or of so few values that components shrink onto them.

They are looked for once a fit has ended, in a sample of its rows. What is suspected is confirmed by a pass
over all rows. So all containers and covariance types are served alike.
"""

import functools

import numpy as np
from scipy.linalg import lapack, solve_triangular

from sklearn_lrvb.answers.single_values import (
    LEAST_ROWS_OF_TABLE,
    SAMPLE_ROWS,
    ColumnNote,
    listed_first,
    note_of_single_values,
    sample_of,
    single_values,
)
from sklearn_lrvb.mixture.model import occupied

# Share of a column's variance that others leave open, up to which it may depend on them ...
_NEARLY_DEPENDENT = 1e-10

# ... and what rounding leaves open of one that does, relative to its values: of stored values, in units of
# float64 or float32, and of the coefficients. One row far out makes columns nearly dependent, never so much.
_ROUNDING, _ROUNDING_OF_COEFFICIENTS = 16, 1e-12

# Columns of a smaller standardized coefficient are not named: rounding leaves some that play no part.
_LEAST_LOADING = 1e-4

# Rows, at least, in which columns are compared, before all rows are asked; and of which values are looked at.
_ROWS_TO_SUSPECT, _ROWS_AT_FIRST = 1000, 64

# With diagonal covariances, products of more columns take longer than the fit, and are not looked at.
_MOST_COLUMNS = 500


def notes_of_columns(rows, fitted, names):
    """What is doubtful about the columns of a fit, and what to do about it: tuple of ColumnNote.

    Parameters
    ----------
    rows : Rows, the training rows, measured from their mean
    fitted : FittedGaussian
    names : sequence of str, (P,)
    """
    sample = sample_of(rows, max(SAMPLE_ROWS, 2 * rows.n_features))
    smallest, largest = rows.ranges()
    constant, dependent, notes = np.flatnonzero(smallest == largest), [], []
    if fitted.structure.is_matrix or rows.n_features <= _MOST_COLUMNS:
        dependent = _dependent_columns(rows, sample, constant)
    if len(constant):
        text = (
            f"Columns of X with one value: {_named(constant, names)}. They tell no clusters apart, and make "
            "the lower bound depend on reg_covar: drop them."
        )
        notes.append(ColumnNote(text, tuple(constant)))
    if dependent:
        told = [f"{names[column]!r} (of {_named(others, names)})" for column, others in dependent]
        text = (
            f"Columns of X that are linear functions of others: {listed_first(told)}. They say what "
            "the others say: what is seen in both counts twice, or depends on reg_covar. Drop them."
        )
        notes.append(ColumnNote(text, tuple(column for column, _ in dependent)))
    doubt = doubt_of_matrices(fitted, rows.total_weight)
    if doubt is not None:
        notes.append(ColumnNote(f"{doubt[0]} {doubt[1]}."))
    return (*notes, *_notes_of_few_values(rows, sample, fitted, names))


def doubt_of_matrices(fitted, n_rows):
    """What is wrong if covariance matrices have fewer rows than columns, and what helps: two str, or None.

    They are of the components of a fit, and of so many rows.
    """
    structure, counts = fitted.structure, fitted.posterior.counts
    n_matrices = max(1, np.count_nonzero(occupied(counts))) if structure.has_own_precisions else 1
    of_each = n_rows / n_matrices
    if fitted.posterior.prior.flat or not structure.is_matrix or of_each >= structure.n_features:
        return None
    others = "'tied' or 'diag'" if n_rows >= structure.n_features else "'diag'"
    return (
        f"A covariance matrix of {structure.n_features} columns has {of_each:.0f} rows on average: it is "
        "mostly what the prior says, and clusters may be joined or split.",
        f"Use covariance_type={others}, or fewer columns, for example by PCA in a pipeline",
    )


def _notes_of_few_values(rows, sample, fitted, names):
    """What is said of columns onto whose values components have shrunk, or can shrink: list of ColumnNote."""
    posterior, structure = fitted.posterior, fitted.structure
    covariances = fitted.arrays.get("scales_", fitted.arrays.get("covariances_"))
    variances = structure.layout.per_component(structure.diagonal(structure.by_group(covariances)))
    found, of_two_values = single_values(sample, posterior, np.sqrt(variances)), []
    # A variance that all columns share does not shrink with one of them.
    is_at_risk = posterior.n_components > 1 and variances.shape[1] == rows.n_features
    if is_at_risk and rows.total_weight >= LEAST_ROWS_OF_TABLE:
        shrunk = {one.column for one in found}
        of_two_values = [column for column in _columns_of_two_values(rows, sample) if column not in shrunk]
    if not found and not of_two_values:
        return []
    notes = []
    if found:
        notes.append(note_of_single_values(found, names))
    if of_two_values:
        text = (
            f"Columns of X with two values: {_named(of_two_values, names)}. Components can shrink onto one "
            "of the two values, and be taken for clusters that are not there."
        )
        notes.append(ColumnNote(text, tuple(of_two_values)))
    first = found[0].column if found else of_two_values[0]
    advice = (
        "(a) Leave columns of few values out. (b) Use LRVBLatentClassMixture, where they may be categories: "
        f"columns={{{names[first]!r}: 'categorical'}}."
    )
    return [*notes, ColumnNote(advice)]


def _named(columns, names):
    return listed_first([repr(names[column]) for column in columns])


def _dependent_columns(rows, sample, constant):
    """Columns that are linear functions of others, and of which: list of pairs (int, int array).

    Parameters
    ----------
    rows, sample : Rows and ArrayRows, all of them and a sample
    constant : int array, columns that are left out
    """
    X = sample.X[~np.isnan(sample.X).any(axis=1)] if sample.has_missing else sample.X
    X = X[:: max(1, len(X) // max(_ROWS_TO_SUSPECT, 2 * X.shape[1]))]
    if len(X) <= X.shape[1] + 1:
        return []  # Of so few rows the columns always depend on each other.
    means = X.mean(axis=0, dtype=np.float64)
    scales = np.sqrt(np.square(X - means).mean(axis=0))
    varying = np.setdiff1d(np.flatnonzero(scales), constant)
    if len(varying) < 2:
        return []
    standardized, scales = ((X - means) / np.where(scales > 0, scales, 1.0))[:, varying], scales[varying]
    correlation = standardized.T @ standardized / len(X)
    factor, order, rank, _ = lapack.dpstrf(correlation, tol=_NEARLY_DEPENDENT, lower=0)
    if rank == len(varying) or rank >= len(np.unique(X, axis=0)) - 1:
        return []
    order = order - 1
    loadings = solve_triangular(factor[:rank, :rank], factor[:rank, rank:])
    coefficients = loadings * scales[order[rank:]] / scales[order[:rank], None]
    kept, left = varying[order[:rank]], varying[order[rank:]]
    shift = means - rows.origin
    of_others = functools.partial(_left_open, kept, left, coefficients, shift, np.abs(rows.origin))
    left_open, sizes = np.sqrt(rows.total(of_others))
    rounding = _ROUNDING * np.finfo(rows.dtype).eps + _ROUNDING_OF_COEFFICIENTS
    return [
        (int(column), np.sort(kept[np.abs(loadings[:, place]) > _LEAST_LOADING]))
        for place, column in enumerate(left)
        if left_open[place] <= rounding * sizes[place]
    ]


def _left_open(kept, left, coefficients, shift, offsets, block):
    """Sums of squares of what some columns leave open of others, and of the values' sizes: (2, d).

    They are over complete rows.

    Parameters
    ----------
    kept, left : int array (m,) and (d,), the columns that explain, and those that are explained
    coefficients : (m, d), of the former
    shift, offsets : (P,), means of the sample from the rows' origin, and sizes of the values there
    block : RowBlock
    """
    weights = block.weighted(block.seen.min(axis=0))
    rows = block.rows - shift[:, None]
    sizes = np.abs(block.rows) + offsets[:, None]
    left_open = rows[left] - coefficients.T @ rows[kept]
    sizes = sizes[left] + np.abs(coefficients).T @ sizes[kept]
    return np.square([left_open, sizes]) @ weights


def _columns_of_two_values(rows, sample):
    """Numbers of the columns that have two different values: list of int."""
    few = sample.X[:_ROWS_AT_FIRST]  # They tell of most columns that they have more.
    suspected = [column for column in np.flatnonzero(_at_ends(few)) if _at_ends(sample.X[:, [column]])]
    smallest, largest = rows.ranges()
    suspected = [column for column in suspected if smallest[column] < largest[column]]
    if not suspected or rows.n_samples == sample.n_samples:
        return suspected
    others = rows.total(functools.partial(_between, smallest - rows.origin, largest - rows.origin))
    return [column for column in suspected if not others[column]]


def _at_ends(X):
    """Whether the values of columns, (n, P), NaN where missing, are all their smallest or largest: (P,)."""
    smallest, largest = np.fmin.reduce(X), np.fmax.reduce(X)
    is_between = (smallest < X) & (largest > X)  # NaN is not.
    return ~is_between.any(axis=0)


def _between(smallest, largest, block):
    """How many values of the columns are neither the smallest nor the largest, (P,)."""
    is_between = (block.rows > smallest[:, None]) & (block.rows < largest[:, None])
    return np.count_nonzero(is_between & (block.seen > 0), axis=1)
