"""Completed copies of rows with holes: parameters, components and missing values are drawn, in this order.

Every copy has parameters of its own. What is estimated from the copies therefore varies as the posterior does
(multiple imputation).
"""

import numpy as np

from sklearn_lrvb.gaussian_mixture.posterior_sampling.likelihood import LikelihoodOfDraws
from sklearn_lrvb.gaussian_mixture.posterior_sampling.random_assignments import assigned_once, exponentials
from sklearn_lrvb.row_blocks import batches, untracked

_ARRAYS_PER_COPY = 4  # Number of arrays of the size of the rows that exist at once.


def imputations(rows, parameters, random_state, tracked=untracked):
    """Copies of the rows with drawn values in place of missing ones, (n_draws, n_samples, P).

    Parameters
    ----------
    rows : ArrayRows
    parameters : DrawnParameters, whose posterior has the origin of the rows
    random_state : numpy.random.RandomState
    tracked : Tracked, through which batches of the copies are gone
    """
    copies = np.repeat(rows.X[None], len(parameters.draws), axis=0)
    if not rows.has_holes:
        return copies
    places = batches(len(copies), 8 * _ARRAYS_PER_COPY * rows.X.size)
    for batch in tracked(places, len(places)):
        # Every copy uses its own consecutive random numbers, so that the size of batches does not matter.
        numbers = [
            (random_state.random_sample(rows.n_samples), random_state.standard_normal(rows.X.shape))
            for _ in copies[batch]
        ]
        uniforms, normals = map(np.stack, zip(*numbers, strict=True))
        completed = _Completed(parameters.posterior, parameters.draws[batch], parameters.log_weights[batch])
        for block in rows.map(lambda block: block, completed.numbers_per_row):
            if block.holes is not None:
                numbers = block.numbers - rows.first
                drawn = completed(block, uniforms[:, numbers], normals[:, numbers].swapaxes(1, 2))
                own = copies[batch, numbers]
                drawn = (drawn + rows.origin[:, None]).swapaxes(1, 2)
                copies[batch, numbers] = np.where(np.isnan(own), drawn.astype(own.dtype), own)
    return copies


class _Completed(LikelihoodOfDraws):
    """The rows of a block with drawn hidden values, measured from the origin, (n_draws, P, n)."""

    def __call__(self, block, uniforms, normals):
        """Draw components and hidden values.

        Parameters
        ----------
        block : RowBlock, with holes
        uniforms : (n_draws, n), by which components are drawn
        normals : (n_draws, P, n), standard normal numbers by which values are drawn
        """
        parts = []
        for batch, rows, log_densities in self.in_batches(block):
            assigned = assigned_once(exponentials(log_densities)[0], uniforms[batch])
            parts.append(self._in_coordinates(rows.completed(normals[batch]), assigned))
        return np.concatenate(parts)

    def _in_coordinates(self, whitened, assigned):
        """Rows in the frame of the component to which each is assigned: (K, d, P, n), (K, d, n)."""
        posterior = self._posterior
        maps = posterior.structure.dense(posterior.covariance_cholesky)
        coordinates = maps[:, None] @ whitened + posterior.centred_means[:, None, :, None]
        return np.einsum("kdn,kdpn->dpn", assigned, coordinates)
