"""Responsibilities, most probable components and scores of given rows under a posterior.

The estimator's ``predict_proba``, ``predict`` and ``score_samples`` return them. They are always computed in
the components' own frames (`OwnFrames`), so that a row's results do not depend on how many others are asked
of, and keep their digits however far away the row is.
"""

import functools
import math

import numpy as np

from sklearn_lrvb.gaussian_mixture.e_step.frames import OwnFrames
from sklearn_lrvb.gaussian_mixture.e_step.hidden_directions import hidden_directions
from sklearn_lrvb.gaussian_mixture.e_step.responsibilities import expect, normalized


def responsibilities_of_rows(rows, posterior):
    """Responsibilities, (n_samples, K)."""
    frames = OwnFrames(posterior)
    function = functools.partial(_responsibilities, frames)
    return rows.each(function, (posterior.n_components,), workload=frames.workload)


def most_probable_components(rows, posterior):
    """Index of the component with the largest responsibility, int array (n_samples,)."""
    frames = OwnFrames(posterior)
    return rows.each(functools.partial(_most_probable, frames), dtype=np.intp, workload=frames.workload)


def scores_of_rows(rows, posterior):
    """log sum_k exp(rho_nk) of every row, (n_samples,); minus infinity where that is beyond all numbers."""
    frames = OwnFrames(posterior)
    return rows.each(functools.partial(_scores, frames), workload=frames.workload)


def score_sums(rows, posterior):
    """Sum of the rows' scores, each as often as it counts, a float."""
    frames = OwnFrames(posterior)
    return rows.total(functools.partial(_score_sum, frames), frames.workload)


def _score_sum(frames, block):
    return block.weighted(_scores(frames, block)).sum()


def _scores(frames, block):
    return _responsibilities_and_scores(frames, block)[1]


def _most_probable(frames, block):
    return _responsibilities_and_scores(frames, block)[0].argmax(axis=0)


def _responsibilities(frames, block):
    return _responsibilities_and_scores(frames, block)[0]


def _responsibilities_and_scores(frames, block):
    """(K, n) and (n,), of rows that may be so far away that their squared distances overflow."""
    with np.errstate(over="ignore", invalid="ignore"):
        expectation = expect(frames, block)
        responsibilities, scores = expectation.responsibilities, expectation.log_normalizer
        if math.isfinite(scores.sum()):
            return responsibilities, scores
    far = np.flatnonzero(~np.isfinite(scores))  # The sum alone may have overflowed.
    responsibilities[:, far], scores[far] = _of_far_rows(frames.posterior, block, far)
    return responsibilities, scores


def _of_far_rows(posterior, block, far):
    """Responsibilities (K, n) and scores (n,) of the rows of a block whose squares overflow.

    The rows are divided by their size before they are squared. Differences between the components' squared
    distances are multiplied by it again, where they may overflow to infinity.
    """
    structure, rows = posterior.structure, block.rows[:, far]
    size = np.abs(rows).max(axis=0)
    centres = structure.transformed(posterior.whiteners, posterior.centred_means)
    whitened = structure.whiten(posterior.whiteners, np.zeros_like(posterior.centred_means), rows / size)
    whitened = whitened - centres[:, :, None] / size
    constants = posterior.expectations.density_constants[:, None]
    if block.holes is not None:
        hidden = hidden_directions(posterior, block.holes.selected(far))
        whitened -= hidden.onto(whitened)
        constants = constants + hidden.holes.by_row(hidden.log_densities)
    squares = np.einsum("kpn,kpn->kn", whitened, whitened)
    least = squares.min(axis=0)
    with np.errstate(over="ignore"):
        beyond_least = 0.5 * size * (size * (squares - least))
        responsibilities, log_normalizer = normalized(constants - beyond_least)
        return responsibilities, log_normalizer - 0.5 * size * (size * least)
