"""Responsibilities, most probable components and scores of given rows under a posterior.

The estimator's ``predict_proba``, ``predict`` and ``score_samples`` return them.
"""

import functools

from sklearn_lrvb.gaussian_mixture.e_step.own_frames import OwnFrames
from sklearn_lrvb.gaussian_mixture.e_step.responsibilities import expect


def responsibilities_of_rows(rows, posterior):
    """Responsibilities, (K, n_samples)."""
    return _predicted(rows, posterior, _responsibilities)


def most_probable_components(rows, posterior):
    """Index of the component with the largest responsibility, int array (n_samples,)."""
    return _predicted(rows, posterior, _most_probable)


def scores_of_rows(rows, posterior):
    """log sum_k exp(rho_nk) of every row, (n_samples,)."""
    return _predicted(rows, posterior, _scores)


def _predicted(rows, posterior, function):
    frames = OwnFrames(posterior)
    return rows.concatenated(functools.partial(function, frames), frames.numbers_per_row)


def _responsibilities(frames, block):
    return expect(frames, block).responsibilities


def _most_probable(frames, block):
    return expect(frames, block).responsibilities.argmax(axis=0)


def _scores(frames, block):
    return expect(frames, block).log_normalizer
