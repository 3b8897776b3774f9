"""Responsibilities, most probable components and scores of given rows under a posterior.

The estimator's ``predict_proba``, ``predict`` and ``score_samples`` return them. They are always computed in
the components' own frames (`MixtureModel.frames`), so that a row's results do not depend on how many
others are asked of, and keep their digits however far away the row is.
"""

import functools
import math

import numpy as np

from sklearn_lrvb.mixture.responsibilities import expect


def responsibilities_of_rows(rows, posterior):
    """Responsibilities, (n_samples, L)."""
    frames = posterior.model.frames(posterior)
    function = functools.partial(_responsibilities, frames)
    return rows.each(function, (posterior.n_labels,), workload=frames.workload)


def most_probable_components(rows, posterior):
    """Label of largest responsibility, -1 for the background: int array (n_samples,)."""
    frames = posterior.model.frames(posterior)
    return rows.each(functools.partial(_most_probable, frames), dtype=np.intp, workload=frames.workload)


def scores_of_rows(rows, posterior):
    """log sum_k exp(rho_nk) of every row, (n_samples,); minus infinity where that is beyond all numbers."""
    frames = posterior.model.frames(posterior)
    return rows.each(functools.partial(_scores, frames), workload=frames.workload)


def score_sums(rows, posterior):
    """Sum of the rows' scores, each as often as it counts, a float."""
    frames = posterior.model.frames(posterior)
    return rows.total(functools.partial(_score_sum, frames), frames.workload)


def _score_sum(frames, block):
    return block.weighted(_scores(frames, block)).sum()


def _scores(frames, block):
    return _responsibilities_and_scores(frames, block)[1]


def _most_probable(frames, block):
    labels = _responsibilities_and_scores(frames, block)[0].argmax(axis=0)
    labels[labels == frames.posterior.n_components] = -1
    return labels


def _responsibilities(frames, block):
    return _responsibilities_and_scores(frames, block)[0]


def _responsibilities_and_scores(frames, block):
    """(L, n) and (n,), of rows that may be so far away that their squared distances overflow."""
    with np.errstate(over="ignore", invalid="ignore"):
        expectation = expect(frames, block)
        responsibilities, scores = expectation.responsibilities, expectation.log_normalizer
        if math.isfinite(scores.sum()):
            return responsibilities, scores
    far = np.flatnonzero(~np.isfinite(scores))  # The sum alone may have overflowed.
    responsibilities[:, far], scores[far] = frames.of_far_rows(block, far)
    return responsibilities, scores
