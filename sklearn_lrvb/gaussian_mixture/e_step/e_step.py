"""E-step over all rows, the hot loop of the fit; and the first M-step, from given responsibilities.

*Conventions.* Responsibilities are component-major, (K, n). Everything of size N x P lives one cache-sized
block at a time. A sweep, one E-step and the M-step from its moments, costs about 4 N K P^2 flops.
"""

import functools
from dataclasses import dataclass

import numpy as np
from scipy.sparse import issparse

from sklearn_lrvb.gaussian_mixture.e_step.frames import OwnFrames, frames_of
from sklearn_lrvb.gaussian_mixture.e_step.responsibilities import LEAST_POSSIBLE_RESPONSIBILITY, expect
from sklearn_lrvb.gaussian_mixture.posterior.variational_posterior import Moments, VariationalPosterior


@dataclass(frozen=True)
class EStepResult:
    """The result of one pass over the rows at q.

    Attributes
    ----------
    lower_bound : float, the ELBO at q and the responsibilities that are optimal for it
    moments : Moments, complete (prior included), in the frames of q
    n_alternatives : int
        Number of components that a row may belong to besides the most probable one, summed over the rows.
    n_ambiguous_pairs : int
        Number of pairs of components that a row may belong to, summed over the rows.
    """

    lower_bound: float
    moments: Moments
    n_alternatives: int
    n_ambiguous_pairs: int


def e_step(rows, posterior, without=None):
    """One pass over the rows: the ELBO at ``posterior`` and the moments of its M-step.

    Parameters
    ----------
    rows : CentredRows
    posterior : VariationalPosterior
    without : int or None, a component that no row may belong to

    Returns
    -------
    result : EStepResult
    """
    frames = frames_of(posterior, rows)
    function = functools.partial(_sums_of_block, frames, without)
    moments, evidence, n_alternatives, n_pairs = rows.total(function, frames.numbers_per_row)
    return EStepResult(
        float(evidence - posterior.divergences.total),
        posterior.with_prior(frames.in_own_frames(moments)),
        int(n_alternatives),
        int(n_pairs),
    )


def _sums_of_block(frames, without, block):
    """Moments, sum of the log normalizers, and numbers of alternatives and ambiguous pairs of a block."""
    expectation = expect(frames, block, without)
    r = expectation.responsibilities
    n_alternatives, n_pairs = _ambiguity(r)
    moments = frames.moments(expectation.whitened, block.weighted(r))
    return moments, block.weighted(expectation.log_normalizer).sum(), n_alternatives, n_pairs


def _ambiguity(responsibilities):
    """Numbers of alternatives and of ambiguous pairs, as in `EStepResult`: (K, n) -> two floats."""
    n_components, n_rows = responsibilities.shape
    mask = (responsibilities > LEAST_POSSIBLE_RESPONSIBILITY).view(np.uint8)
    # With wider numbers these counts, which serve the cost model alone, would take a tenth of a sweep.
    possible = mask.sum(axis=0, dtype=np.min_scalar_type(n_components)).astype(np.float32)
    total = float(possible.sum())
    return total - n_rows, 0.5 * (float(possible @ possible) - total)


def posterior_from_responsibilities(rows, prior, responsibilities, frames=None):
    """M-step from given responsibilities, for the start of a fit.

    It makes two passes over the rows: the first computes the components' means, the second the moments about
    them, in units of the columns' standard deviations or in given frames.

    Parameters
    ----------
    rows : CentredRows
    prior : MixturePrior
    responsibilities : array or sparse array (n_samples, n_components), or callable RowBlock -> (n, K)
    frames : array (S, ...) or None, default=None
        Factors of covariances that are like those of the rows.

    Returns
    -------
    posterior : VariationalPosterior

    Raises
    ------
    DegenerateComponentError
        Where a component is left without a proper posterior.
    """
    counts, complete_counts, seen, sums, squares = _total_given(responsibilities, rows, _means_of_block)
    if seen is None:
        seen = counts
    elif complete_counts is not None:
        seen = seen + complete_counts
    centers = np.where(seen > 0, sums.T / np.where(seen > 0, seen, 1.0), 0.0).T
    if frames is None:
        seen = np.asarray(rows.seen_weight)
        scale = np.sqrt(squares / np.where(seen > 0, seen, 1.0))
        if rows.has_holes:
            # The hidden values of a constant column begin with this variance, and lose a share of it a sweep.
            scale = np.where(scale > 0, scale, prior.deviations)
        scale[scale == 0] = 1.0
        frames = prior.structure.scaled_frames(scale)
    start = VariationalPosterior(prior, counts, centers, frames)
    # Moments about each component's own mean keep their digits, however tight the component will turn out.
    own_frames = OwnFrames(start)
    function = functools.partial(_moments_of_block, own_frames)
    moments = _total_given(responsibilities, rows, function, own_frames.numbers_per_row)
    return start.m_step(start.with_prior(own_frames.in_own_frames(moments)))


def _total_given(responsibilities, rows, function, numbers_per_row=None):
    """Sum of ``function(block, responsibilities of its rows)`` over all blocks."""
    if callable(responsibilities):
        return rows.total(
            functools.partial(_with_responsibilities, function, responsibilities), numbers_per_row
        )
    return rows.total(function, numbers_per_row, along=responsibilities)


def _with_responsibilities(function, responsibilities, block):
    return function(block, responsibilities(block))


def _counted(block, responsibilities):
    """Responsibilities of a block's rows times their sample weights: (n, K) -> (K, n)."""
    dense = responsibilities.toarray() if issparse(responsibilities) else responsibilities
    return block.weighted(np.ascontiguousarray(dense.T, dtype=np.float64))


def _means_of_block(block, responsibilities):
    """Sums over a block's rows that lead to the components' means.

    Returns
    -------
    counts : (K,), expected
    complete : (K,), the same of complete rows; None of others
    seen : (P, K), of incomplete rows, how many show a feature; None of complete rows
    sums : (K, P), of the rows' values, by component
    squares : (P,), sums of all rows' squared values
    """
    counted = _counted(block, responsibilities)
    counts, sums = counted.sum(axis=1), counted @ block.rows.T
    complete, seen = (counts.copy(), None) if block.holes is None else (None, block.seen @ counted.T)
    return counts, complete, seen, sums, block.weighted(np.square(block.rows)).sum(axis=1)


def _moments_of_block(frames, block, responsibilities):
    return frames.moments(frames.whiten(block), _counted(block, responsibilities))
