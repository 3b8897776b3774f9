"""E-step and M-step over row blocks: the hot loop of the fit.

*Conventions.* Responsibilities are component-major, (K, n), so that their normalisation reduces over
the long axis. Everything of size N x P lives one cache-sized block at a time. One sweep costs
about 4 N K P^2 flops.
"""

import functools
import operator
from dataclasses import dataclass

import numpy as np
from scipy.sparse import issparse

from sklearn_lrvb.gaussian_mixture.e_step.frames import OwnFrames, frames_of
from sklearn_lrvb.gaussian_mixture.e_step.pair_frame import PairFrame
from sklearn_lrvb.gaussian_mixture.posterior.variational_posterior import Moments, VariationalPosterior

# Of a responsibility: numbers that underflow, here or in products of a few, take the processor up to forty
# times as long.
_LEAST_LOG = -230.0
_POSSIBLE = 1e-14  # responsibility below which a component is no alternative, for counting alone


def normalized(log_densities):
    """Responsibilities (K, n), in place of the log densities, and log sum_k exp(rho_nk), (n,).

    Responsibilities below 1e-100 are reported as that.
    """
    largest = log_densities.max(axis=0)
    log_densities -= largest
    if log_densities.min(initial=0.0) < _LEAST_LOG:
        np.maximum(log_densities, _LEAST_LOG, out=log_densities)
    responsibilities = np.exp(log_densities, out=log_densities)
    total = responsibilities.sum(axis=0)
    responsibilities *= 1.0 / total
    return responsibilities, largest + np.log(total)


@dataclass(frozen=True)
class Expectation:
    """E-step of one block: whitened rows (K, P, n), responsibilities (K, n), normaliser (n,)."""

    whitened: np.ndarray
    responsibilities: np.ndarray
    log_normalizer: np.ndarray


def expect(posterior, block):
    """E-step of a centred block (P, n) at the posterior q.

    log_normalizer is log sum_k exp(rho_nk), which `score_samples` reports.
    """
    frames = OwnFrames(posterior)
    whitened = frames.whiten(block)
    return Expectation(whitened, *normalized(frames.log_densities(whitened)))


def centred_on_average(changes, responsibilities):
    """d_k - sum_l r_l d_l, how log responsibilities follow log densities: (K, n, ...), (K, n) -> (K, n, ...).

    Averaged twice: a row that is all but certain keeps its digits.
    """
    relative = changes - np.einsum("kn,kn...->n...", responsibilities, changes)
    relative -= np.einsum("kn,kn...->n...", responsibilities, relative)
    return relative


def complements(responsibilities):
    """1 - r_k to the last digit, also where r_k is almost 1: (K, n) -> (K, n)."""
    others = np.zeros_like(responsibilities)
    others[1:] = np.cumsum(responsibilities[:-1], axis=0)
    others[:-1] += np.cumsum(responsibilities[:0:-1], axis=0)[::-1]
    return others


def sums_over_blocks(parts):
    """Sums of the entries of equally long sequences, one sequence held at a time."""
    return functools.reduce(lambda totals, part: [a + b for a, b in zip(totals, part, strict=True)], parts)


def _ambiguity(responsibilities):
    """Alternatives and ambiguous pairs of some rows, as in `EStepResult`: (K, n) -> two floats."""
    n_components, n_rows = responsibilities.shape
    mask = (responsibilities > _POSSIBLE).view(np.uint8)
    # numbers no wider than they must be: this is for counting alone, a tenth of a sweep otherwise
    possible = mask.sum(axis=0, dtype=np.min_scalar_type(n_components)).astype(np.float32)
    total = float(possible.sum())
    return total - n_rows, 0.5 * (float(possible @ possible) - total)


@dataclass(frozen=True)
class EStepResult:
    """What one pass over the rows at q finds.

    Attributes
    ----------
    lower_bound : float, the ELBO at q and the responsibilities that are optimal for it
    moments : Moments, complete (prior included), in the frames of q
    n_alternatives : int, components that rows may belong to beside their most probable one
    n_ambiguous_pairs : int, pairs of components that rows may belong to, summed over the rows
    """

    lower_bound: float
    moments: Moments
    n_alternatives: int
    n_ambiguous_pairs: int


def e_step(rows, posterior, without=None):
    """One pass: the ELBO at ``posterior`` and the moments of its M-step.

    Parameters
    ----------
    without : int or None, a component that no row may belong to
    """
    frames = PairFrame.if_accurate(rows, posterior) if without is None else None
    frames = frames or frames_of(posterior)

    def one_block(selected, block):
        seen = frames.whiten(block)
        log_densities = frames.log_densities(seen)
        if without is not None:
            log_densities[without] = -np.inf
        r, log_normalizer = normalized(log_densities)
        alternatives, pairs = _ambiguity(r)
        moments = frames.moments(seen, rows.weighted(r, selected))
        return moments, rows.weighted(log_normalizer, selected).sum(), alternatives, pairs

    moments, evidence, alternatives, pairs = sums_over_blocks(rows.map(one_block, frames.block_rows))
    return EStepResult(
        float(evidence - posterior.kl_divergence),
        posterior.with_prior(frames.in_own_frames(moments)),
        int(alternatives),
        int(pairs),
    )


def posterior_from_responsibilities(rows, prior, responsibilities):
    """M-step from given responsibilities (n_samples, n_components), dense or sparse, where there is no q yet.

    Two passes: the components' means first, then moments about them, in the scale of the columns.
    """

    def weights_of(selected):
        own = responsibilities[selected]
        dense = own.toarray() if issparse(own) else own
        return rows.weighted(np.ascontiguousarray(dense.T, dtype=np.float64), selected)

    def block_means(selected, block):
        weights = weights_of(selected)
        return weights.sum(axis=1), weights @ block.T, rows.weighted(np.square(block), selected).sum(axis=1)

    counts, sums, squares = sums_over_blocks(rows.map(block_means))
    centers = np.where(counts > 0, sums.T / np.where(counts > 0, counts, 1.0), 0.0).T
    scale = np.sqrt(squares / rows.total_weight)
    scale[scale == 0] = 1.0
    covariance_cholesky = prior.structure.scaled_frames(scale)
    start = VariationalPosterior(prior, counts, centers, covariance_cholesky)
    frames = OwnFrames(start)  # about each component's own mean, however tight it will turn out

    def block_moments(selected, block):
        return frames.moments(frames.whiten(block), weights_of(selected))

    total = functools.reduce(operator.add, rows.map(block_moments, frames.block_rows))
    return start.m_step(start.with_prior(frames.in_own_frames(total)))
