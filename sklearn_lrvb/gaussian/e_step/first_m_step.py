"""The first M-step of a fit, from given responsibilities.

*Conventions.* Responsibilities are label-major, (L, n). Everything of size N x P lives one cache-sized
block at a time.
"""

import functools
from dataclasses import replace

import numpy as np
from scipy.sparse import issparse

from sklearn_lrvb.gaussian.e_step.coordinates import OwnCoordinates
from sklearn_lrvb.gaussian.posterior.variational_posterior import VariationalPosterior


def posterior_from_responsibilities(rows, prior, responsibilities, factors=None):
    """M-step from given responsibilities, for the start of a fit.

    It makes two passes over the rows: the first computes the components' means, the second the moments about
    them, in units of the columns' standard deviations or in the whitened coordinates of given covariances.

    Parameters
    ----------
    rows : Rows
    prior : MixturePrior
    responsibilities : array or sparse array (n_samples, n_labels), or callable RowBlock -> (n, L)
        Where there are those of the components alone, no row is of the noise component.
    factors : array (S, ...) or None, default=None
        Cholesky factors of covariances that are like those of the rows.

    Returns
    -------
    posterior : VariationalPosterior

    Raises
    ------
    DegenerateComponentError
        Where a component is left without a proper posterior.
    """
    given, along = (responsibilities, None) if callable(responsibilities) else (None, responsibilities)
    counts, seen, sums, squares = rows.total(
        functools.partial(_sums_of_values, prior.structure, given), along=along
    )
    centers = np.divide(sums, seen, out=np.zeros_like(sums), where=seen > 0)
    if factors is None:
        seen_by_any = np.asarray(rows.seen_weight)
        scale = np.sqrt(squares / np.where(seen_by_any > 0, seen_by_any, 1.0))
        if rows.has_missing:
            # The missing values of a constant column start with this variance, and lose a share
            # of it in every iteration.
            scale = np.where(scale > 0, scale, prior.deviations)
        scale[scale == 0] = 1.0
        factors = prior.structure.diagonal_factors(scale)
    of_components, of_noise_component = np.split(counts, [len(centers)])
    start = VariationalPosterior(
        prior, of_components, centers, factors, of_noise_component, tails=prior.tails
    )
    # Moments about each component's own mean keep their digits, however tight the component will turn out.
    own_coordinates = OwnCoordinates(start)
    function = functools.partial(_moments_of_block, own_coordinates, given)
    moments = rows.total(function, own_coordinates.workload, along=along)
    if prior.tails is not None:  # All scales start at one, and nu where it is.
        moments = replace(moments, scale_sums=of_components)
    return start.m_step(start.with_prior(moments))


def _sums_of_values(structure, given, block, along=None):
    """Sums that lead to the components' means: expected counts, and of the values that are there.

    Returns
    -------
    counts : (K,)
    seen : (K, P), expected numbers of values
    sums : (K, P), of the values
    squares : (P,), of all rows' squared values
    """
    weights, n_components = _weights(structure, given, block, along), structure.n_components
    counts, of_components = weights.sum(axis=1), weights[:n_components]
    if block.missing is None:
        seen = np.tile(counts[:n_components, None], len(block.rows))
    else:
        seen = of_components @ block.seen.T
    return counts, seen, of_components @ block.rows.T, block.weighted(np.square(block.rows)).sum(axis=1)


def _moments_of_block(coordinates, given, block, along=None):
    return coordinates.moments(
        coordinates.represented(block), _weights(coordinates.posterior.structure, given, block, along)
    )


def _weights(structure, given, block, along):
    """Responsibilities of a block's rows, computed or given along with it, as weights: (L, n)."""
    responsibilities = along if given is None else given(block)
    dense = responsibilities.toarray() if issparse(responsibilities) else responsibilities
    weights = block.weighted(np.ascontiguousarray(dense.T, dtype=np.float64))
    return np.pad(weights, ((0, structure.n_labels - len(weights)), (0, 0)))
