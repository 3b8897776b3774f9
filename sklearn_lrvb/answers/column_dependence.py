"""Dependence of columns within components, beyond what the model says: one test for a pair of columns.

Two numbers are tested by the correlation of their normal scores in a component, by Fisher's transformation;
two columns of categories by Pearson's statistic of their table; and a number with categories by an analysis
of variance. All these are squares of products of *bases*, orthonormal columns that span the centred scores,
or the centred indicators of categories. The sum over the components has a chi-squared distribution.

*Conventions.* H components, p columns, n rows of a component.
"""

import numpy as np

from sklearn_lrvb.answers.normal_scores import LEAST_ROWS, z_of_squares

_MOST_COLUMNS = 100  # Between which dependence is tested: pairs are half the square of their number.
_LARGEST = 1.0 - 1e-6  # Correlation.
# Rows that are expected in a cell of a table of two columns, at least: rarer categories are joined.
_LEAST_EXPECTED = 5.0


def tested_columns(n_columns):
    """The columns between which dependence is tested, evenly spaced if there are more: int array (p,)."""
    return np.unique(np.linspace(0, n_columns - 1, min(n_columns, _MOST_COLUMNS)).astype(np.intp))


def dependence(scores, labels, components, X, n_categories):
    """One-sided z of every pair of tested columns, (p, p), NaN but above the diagonal; and what is in it.

    The latter are the statistics of the components, and sizes: correlations of two numbers less those of the
    model, else Cramer's V; two of (H, p, p).

    Parameters
    ----------
    scores : RowScores
    labels : int array (n,)
    components : int array (H,)
    X : (n, P), encoded
    n_categories : int array (P,), zero of numbers
    """
    columns = tested_columns(X.shape[1])
    n_columns = len(columns)
    found = np.full((2, len(components), n_columns, n_columns), np.nan)
    z = np.full((n_columns, n_columns), np.nan)
    if scores.correlations is None or n_columns < 2:
        return z, found
    expected = scores.correlations[np.ix_(columns, columns)]
    squares, freedom = np.zeros((2, n_columns, n_columns))
    for place, k in enumerate(components):
        own = labels == k
        if own.sum() < LEAST_ROWS:
            continue
        parts = scores.in_component[np.ix_(own, columns)], X[np.ix_(own, columns)]
        statistics, own_freedom, sizes = _in_component(*parts, n_categories[columns], expected)
        squares, freedom = squares + statistics, freedom + own_freedom
        found[:, place] = statistics, sizes
    above = np.triu(freedom > 0, 1)
    z[above] = z_of_squares(squares[above], freedom[above])
    return z, found


def _in_component(scores, X, n_categories, expected):
    """Statistics, their degrees of freedom, and sizes, NaN without a test: three of (p, p).

    Parameters
    ----------
    scores, X : (n, p)
    n_categories : int array (p,)
    expected : (p, p), correlations
    """
    bases = [_basis(*own) for own in zip(scores.T, X.T, n_categories, strict=True)]
    ranks = np.array([basis.shape[1] for basis in bases])
    seen = np.where(n_categories > 0, ~np.isnan(X), ~np.isnan(scores)).astype(np.float64)
    both, n_seen = seen.T @ seen, seen.sum(axis=0)
    starts, joined = np.cumsum(ranks) - ranks, np.concatenate(bases, axis=1)
    products = joined.T @ joined
    # Bases are of all rows that have a value, and products of those that have both.
    scale = np.outer(n_seen, n_seen) / np.maximum(both, 1.0) ** 2
    r_squared = scale * _sums_of_blocks(np.square(products), starts)
    is_number = np.logical_and.outer(n_categories == 0, n_categories == 0)
    r = np.sign(_sums_of_blocks(products, starts)) * np.sqrt(np.minimum(r_squared, _LARGEST))
    gaps = np.arctanh(r) - np.arctanh(np.minimum(expected, _LARGEST))
    statistics = np.where(is_number, np.square(gaps) * (both - 3.0), r_squared * (both - 1.0))
    sizes = np.where(is_number, r - expected, np.sqrt(r_squared / np.minimum.outer(ranks, ranks)))
    varies = np.add.reduceat(np.square(joined).sum(axis=0), starts) > 0.5
    is_tested = (both >= LEAST_ROWS) & np.logical_and.outer(varies, varies)
    freedom = np.where(is_number, 1, np.outer(ranks, ranks))
    return is_tested * statistics, is_tested * freedom, np.where(is_tested, sizes, np.nan)


def _sums_of_blocks(matrix, starts):
    return np.add.reduceat(np.add.reduceat(matrix, starts, axis=0), starts, axis=1)


def _basis(scores, values, n_categories):
    """The basis of a column, (n, rank); zero where a value is missing, or where nothing varies enough."""
    if n_categories == 0:
        centred = np.nan_to_num(scores - np.nansum(scores) / max(np.count_nonzero(~np.isnan(scores)), 1))
        length = np.sqrt(centred @ centred)
        return (centred / length if length > 0 else centred)[:, None]
    seen = ~np.isnan(values)
    found, counts = np.unique(values[seen], return_counts=True)
    least = np.sqrt(_LEAST_EXPECTED * seen.sum())
    indicators = (values[:, None] == found[counts.argsort()]).astype(np.float64)
    while indicators.shape[1] > 1 and indicators[:, 0].sum() < least:  # The rarest joins the next one.
        indicators[:, 1] += indicators[:, 0]
        indicators = indicators[:, 1:]
        indicators = indicators[:, indicators.sum(axis=0).argsort()]
    if indicators.shape[1] < 2:
        return np.zeros((len(values), 1))
    centred = np.where(seen[:, None], indicators - indicators[seen].mean(axis=0), 0.0)
    # The indicators sum to one, so that one of them is no part of the basis.
    return np.linalg.svd(centred, full_matrices=False)[0][:, :-1]
