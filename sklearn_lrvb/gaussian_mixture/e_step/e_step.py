"""E-step over all rows, the hot loop of the fit; and an M-step where there is no posterior yet.

*Conventions.* Responsibilities are component-major, (K, n). Everything of size N x P lives one cache-sized
block at a time. A sweep, one E-step and the M-step from its moments, costs about 4 N K P^2 flops.
"""

import functools
from dataclasses import dataclass

import numpy as np
from scipy.sparse import issparse

from sklearn_lrvb.gaussian_mixture.e_step.certainty import POSSIBLE
from sklearn_lrvb.gaussian_mixture.e_step.common_frame import frames_of
from sklearn_lrvb.gaussian_mixture.e_step.own_frames import OwnFrames
from sklearn_lrvb.gaussian_mixture.e_step.pair_frame import PairFrame
from sklearn_lrvb.gaussian_mixture.e_step.responsibilities import expect
from sklearn_lrvb.gaussian_mixture.posterior.sufficient_statistics import Moments
from sklearn_lrvb.gaussian_mixture.posterior.variational_posterior import VariationalPosterior


@dataclass(frozen=True)
class EStepResult:
    """What one pass over the rows at q finds.

    Attributes
    ----------
    lower_bound : float, the ELBO at q and the responsibilities that are optimal for it
    moments : Moments, complete (prior included), in the frames of q
    n_alternatives : int, sum over the rows of the components they may belong to, without the most probable
    one n_ambiguous_pairs : int, sum over the rows of the pairs of components they may belong to
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
    # The pair frame infers one component's moments from the other's, so both must take part.
    frames = PairFrame.if_accurate(rows, posterior) if without is None else None
    frames = frames or frames_of(posterior)
    function = functools.partial(_sums_of_block, frames, without)
    moments, evidence, n_alternatives, n_pairs = rows.total(function, frames.numbers_per_row)
    return EStepResult(
        float(evidence - posterior.kl_divergence),
        posterior.with_prior(frames.in_own_frames(moments)),
        int(n_alternatives),
        int(n_pairs),
    )


def _sums_of_block(frames, without, block):
    """Moments, sum of the log normalizers, alternatives and ambiguous pairs of a block."""
    expectation = expect(frames, block, without)
    r = expectation.responsibilities
    n_alternatives, n_pairs = _ambiguity(r)
    moments = frames.moments(expectation.whitened, block.weighted(r))
    return moments, block.weighted(expectation.log_normalizer).sum(), n_alternatives, n_pairs


def _ambiguity(responsibilities):
    """Numbers of alternatives and of ambiguous pairs, as in `EStepResult`: (K, n) -> two floats."""
    n_components, n_rows = responsibilities.shape
    mask = (responsibilities > POSSIBLE).view(np.uint8)
    # Wider numbers would make these counts, which only foresee costs, a tenth of a sweep.
    possible = mask.sum(axis=0, dtype=np.min_scalar_type(n_components)).astype(np.float32)
    total = float(possible.sum())
    return total - n_rows, 0.5 * (float(possible @ possible) - total)


def posterior_from_responsibilities(rows, prior, responsibilities):
    """M-step from given responsibilities, where there is no q yet.

    It takes two passes: the components' means first, then moments about them, in units of the columns'
    spread.

    Parameters
    ----------
    rows : CentredRows
    prior : MixturePrior
    responsibilities : array or sparse array (n_samples, n_components)

    Returns
    -------
    posterior : VariationalPosterior

    Raises
    ------
    DegenerateComponentError
        Where a component is left without a proper posterior.
    """
    counts, sums, squares = rows.total(_means_of_block, along=responsibilities)
    centers = np.where(counts > 0, sums.T / np.where(counts > 0, counts, 1.0), 0.0).T
    scale = np.sqrt(squares / rows.total_weight)
    scale[scale == 0] = 1.0
    start = VariationalPosterior(prior, counts, centers, prior.structure.scaled_frames(scale))
    # Moments about each component's own mean keep their digits, however tight the component will turn out.
    frames = OwnFrames(start)
    function = functools.partial(_moments_of_block, frames)
    moments = rows.total(function, frames.numbers_per_row, along=responsibilities)
    return start.m_step(start.with_prior(frames.in_own_frames(moments)))


def _counted(block, responsibilities):
    """Responsibilities of a block's rows, each as often as the row counts: (n, K) -> (K, n)."""
    dense = responsibilities.toarray() if issparse(responsibilities) else responsibilities
    return block.weighted(np.ascontiguousarray(dense.T, dtype=np.float64))


def _means_of_block(block, responsibilities):
    """Expected counts, sums of the rows by component, and of their squares."""
    counted = _counted(block, responsibilities)
    return counted.sum(axis=1), counted @ block.rows.T, block.weighted(np.square(block.rows)).sum(axis=1)


def _moments_of_block(frames, block, responsibilities):
    return frames.moments(frames.whiten(block.rows), _counted(block, responsibilities))
