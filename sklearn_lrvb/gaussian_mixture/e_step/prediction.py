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
    """Responsibilities, (n_samples, L)."""
    frames = OwnFrames(posterior)
    function = functools.partial(_responsibilities, frames)
    return rows.each(function, (posterior.structure.n_labels,), workload=frames.workload)


def most_probable_components(rows, posterior):
    """Label of largest responsibility, -1 for the background: int array (n_samples,)."""
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
    responsibilities[:, far], scores[far] = _of_far_rows(frames.posterior, block, far)
    return responsibilities, scores


def _of_far_rows(posterior, block, far):
    """Responsibilities (L, n) and scores (n,) of the rows of a block whose squares overflow.

    If components are normal, all belong to the background, if there is one. Otherwise the rows are divided by
    their size before they are squared. Differences between the components' squared distances are multiplied
    by its square again, where they may overflow to infinity; logarithms of distances do not.
    """
    structure, rows = posterior.structure, block.rows[:, far]
    if structure.has_background and posterior.tails is None:
        scores = np.full(len(far), posterior.expectations.density_constants[-1])
        if block.holes is not None:
            holes = block.holes.selected(far)
            scores += holes.by_row(posterior.background.log_density_changes(structure, holes.hidden))
        return np.repeat(np.eye(structure.n_labels)[-1:].T, len(far), axis=1), scores
    size = np.abs(rows).max(axis=0)
    centres = structure.transformed(posterior.whiteners, posterior.centred_means)
    whitened = structure.whiten(posterior.whiteners, np.zeros_like(posterior.centred_means), rows / size)
    whitened = whitened - centres[:, :, None] / size
    constants = posterior.expectations.density_constants[:, None]
    hidden = None if block.holes is None else hidden_directions(posterior, block.holes.selected(far))
    if hidden is not None:
        whitened -= hidden.onto(whitened)
    squares = np.einsum("kpn,kpn->kn", whitened, whitened)
    if posterior.tails is not None:
        return normalized(_far_densities_with_scales(posterior, constants, squares, size, hidden))
    if hidden is not None:
        constants = constants + hidden.holes.by_row(hidden.log_densities)
    least = squares.min(axis=0)
    with np.errstate(over="ignore"):
        beyond_least = 0.5 * size * (size * (squares - least))
        responsibilities, log_normalizer = normalized(constants - beyond_least)
        return responsibilities, log_normalizer - 0.5 * size * (size * least)


def _far_densities_with_scales(posterior, constants, squares, size, hidden):
    """Log densities (L, n) of far rows that have scales, given squared distances over the squared size."""
    n_seen, n_components = posterior.n_features, posterior.n_components
    densities = np.repeat(constants, len(size), axis=1)
    if hidden is not None:
        holes = hidden.holes
        n_seen = n_seen - holes.by_row(hidden.n_hidden)
        densities[:n_components] += holes.by_row(hidden.log_volumes_of_directions)
        if posterior.structure.has_background:
            changes = posterior.background.log_density_changes(posterior.structure, holes.hidden)
            densities[n_components:] += holes.by_row(changes)
    log_distances = np.log(squares) + 2.0 * np.log(size)
    densities[:n_components] += posterior.tails.log_densities_far_away(log_distances, n_seen)
    return densities
