"""Responsibilities, most probable components and scores of given rows under a posterior.

The estimator's ``predict_proba``, ``predict`` and ``score_samples`` return them. Rows that are not in memory
are in the components' own coordinates (`MixtureModel.coordinates`): others depend on what rows there are.
"""

import functools
import math

import numpy as np

from sklearn_lrvb.mixture.e_step import expect


def responsibilities_of_rows(rows, posterior):
    """Responsibilities, (n_samples, L)."""
    coordinates = _coordinates(rows, posterior)
    function = functools.partial(_responsibilities, coordinates)
    return rows.each(function, (posterior.n_labels,), workload=coordinates.workload)


def most_probable_components(rows, posterior):
    """Label of largest responsibility, -1 for the noise component: int array (n_samples,)."""
    coordinates = _coordinates(rows, posterior)
    function = functools.partial(_most_probable, coordinates, posterior.n_components)
    return rows.each(function, dtype=np.intp, workload=coordinates.workload)


def scores_of_rows(rows, posterior):
    """log sum_k exp(rho_nk) of every row, (n_samples,); minus infinity where that is beyond all numbers."""
    coordinates = _coordinates(rows, posterior)
    return rows.each(functools.partial(_scores, coordinates), workload=coordinates.workload)


def score_sums(rows, posterior):
    """Sum of the rows' scores, each as often as it counts, a float."""
    coordinates = _coordinates(rows, posterior)
    return rows.total(functools.partial(_score_sum, coordinates), coordinates.workload)


def _coordinates(rows, posterior):
    return posterior.model.coordinates(posterior, rows if rows.is_in_memory else None)


def _score_sum(coordinates, block):
    return block.weighted(_scores(coordinates, block)).sum()


def _scores(coordinates, block):
    return responsibilities_and_scores(coordinates, block)[1]


def _most_probable(coordinates, n_components, block):
    labels = responsibilities_and_scores(coordinates, block)[0].argmax(axis=0)
    labels[labels == n_components] = -1
    return labels


def _responsibilities(coordinates, block):
    return responsibilities_and_scores(coordinates, block)[0]


def responsibilities_and_scores(coordinates, block):
    """(L, n) and (n,), of rows that may be so far away that their squared distances overflow."""
    with np.errstate(over="ignore", invalid="ignore"):
        expectation = expect(coordinates, block)
        responsibilities, scores = expectation.responsibilities, expectation.log_normalizer
        if math.isfinite(scores.sum()):
            return responsibilities, scores
    far = np.flatnonzero(~np.isfinite(scores))  # The sum alone may have overflowed.
    responsibilities[:, far], scores[far] = coordinates.of_far_rows(block, far)
    return responsibilities, scores
