"""E-step over all rows, the hot loop of the fit.

*Conventions.* Responsibilities are label-major, (L, n). Everything of size N x P lives one cache-sized
block at a time. A sweep is one E-step and the M-step from its moments.
"""

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from sklearn_lrvb.mixture.responsibilities import LEAST_POSSIBLE_RESPONSIBILITY, expect


@dataclass(frozen=True)
class EStepResult:
    """The result of one pass over the rows at q.

    Attributes
    ----------
    lower_bound : float, the ELBO at q and the responsibilities that are optimal for it
    moments : moments of the rows, complete (prior included), in the frames of q; `MixtureModel` says of what
    n_alternatives : int
        Number of labels that a row may have besides the most probable one, summed over the rows.
    n_ambiguous_pairs : int
        Number of pairs of labels that a row may have, summed over the rows.
    """

    lower_bound: float
    moments: Any
    n_alternatives: int
    n_ambiguous_pairs: int


def e_step(rows, posterior, without=None):
    """One pass over the rows: the ELBO at ``posterior`` and the moments of its M-step.

    Parameters
    ----------
    rows : Rows
    posterior : posterior of a mixture
    without : int or None, a component that no row may belong to

    Returns
    -------
    result : EStepResult
    """
    divergence = posterior.divergences.total
    frames = posterior.model.frames(posterior, rows)
    function = functools.partial(_sums_of_block, frames, without)
    moments, evidence, n_alternatives, n_pairs = rows.total(function, frames.workload)
    moments = posterior.with_prior(frames.in_own_frames(moments))
    return EStepResult(float(evidence - divergence), moments, int(n_alternatives), int(n_pairs))


def _sums_of_block(frames, without, block):
    """Moments, sum of the log normalizers, and numbers of alternatives and ambiguous pairs of a block."""
    expectation = expect(frames, block, without)
    r = expectation.responsibilities
    moments = frames.moments(expectation.framed, expectation.weights(block.weighted(r)))
    # These counts serve the cost model; and where no row has an alternative, a fixed point of the sweeps is
    # taken for an optimum (`ascent`). In wider numbers they would take a tenth of a sweep.
    is_possible = (r > LEAST_POSSIBLE_RESPONSIBILITY).view(np.uint8)
    possible = is_possible.sum(axis=0, dtype=np.min_scalar_type(len(r))).astype(np.float32)
    n_possible = float(possible.sum())
    n_pairs = 0.5 * (float(possible @ possible) - n_possible)
    return moments, block.weighted(expectation.log_normalizer).sum(), n_possible - block.n_rows, n_pairs
