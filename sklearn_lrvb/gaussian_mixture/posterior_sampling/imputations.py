"""Completed copies of rows with holes: parameters, components and missing values are drawn, in this order.

Every copy has parameters of its own. What is estimated from the copies therefore varies as the posterior does
(multiple imputation).
"""

import numpy as np

from sklearn_lrvb.gaussian_mixture.posterior_sampling.drawn_frames import DrawnFrames, whitened_without_holes
from sklearn_lrvb.gaussian_mixture.posterior_sampling.random_assignments import exponentials
from sklearn_lrvb.row_blocks import untracked


def imputations(rows, parameters, random_state, tracked=untracked):
    """Copies of the rows with drawn values in place of missing ones, (n_draws, n_samples, P).

    Parameters
    ----------
    rows : ArrayRows
    parameters : DrawnParameters, whose posterior has the origin of the rows
    random_state : numpy.random.RandomState
    tracked : Tracked, through which the copies are gone
    """
    posterior, draws = parameters.posterior, parameters.draws
    copies = np.repeat(rows.X[None], len(draws), axis=0)
    if not rows.has_holes:
        return copies
    all_frames = DrawnFrames.of_draws(posterior, draws, parameters.log_weights)
    for copy, frames in zip(tracked(copies, len(copies)), all_frames, strict=True):
        uniforms = random_state.random_sample(rows.n_samples)
        normals = random_state.standard_normal(rows.X.shape)
        for block in rows.map(lambda block: block):
            if block.holes is not None:
                numbers = block.numbers - rows.first
                values = _drawn_values(posterior, frames, block, uniforms[numbers], normals[numbers].T)
                drawn = (values + rows.origin[:, None]).T.astype(copy.dtype)
                copy[numbers] = np.where(np.isnan(copy[numbers]), drawn, copy[numbers])
    return copies


def _drawn_values(posterior, frames, block, uniforms, normals):
    """The rows of a block with drawn hidden values, measured from the origin: (n,), (P, n) -> (P, n)."""
    rows = frames.whiten(whitened_without_holes(posterior, block), block.holes)
    densities, _ = exponentials(frames.log_densities(rows))
    bounds = np.cumsum(densities, axis=0)
    components = (uniforms * bounds[-1] >= bounds[:-1]).sum(axis=0)
    return frames.in_coordinates(frames.completed(rows, normals), components)
