"""Leverage of rows, and posterior standard deviations of their scores and responsibilities.

All are quadratic forms in T, the LRVB covariance of a row's log densities rho (`row_covariances`). The score
log sum_k exp rho_k has the gradient r in them, so that its variance is r' T r, the leverage. Responsibility k
has the gradient r_k (e_k - r).
"""

import functools

import numpy as np

from sklearn_lrvb.gaussian_mixture.e_step.frames import OwnFrames
from sklearn_lrvb.gaussian_mixture.e_step.responsibilities import (
    LEAST_RESPONSIBILITY_IN_SCORE,
    LEAST_RESPONSIVE_RESPONSIBILITY,
    complements,
)
from sklearn_lrvb.gaussian_mixture.uncertainty.rows_in_range import expect_in_range
from sklearn_lrvb.row_blocks import untracked


def leverages(rows, posterior, responses, tracked=untracked):
    """(r h)' M^-1 (r h) of every row, the derivative of its score in its own weight: (n_samples,).

    Parameters
    ----------
    rows : CentredRows
    posterior : VariationalPosterior
    responses : ResponsesOfRows
    tracked : Tracked, through which the blocks of rows are gone
    """
    return responses.concatenated(functools.partial(_leverages_of_block, OwnFrames(posterior)), rows, tracked)


def responsibility_deviations(rows, posterior, responses, tracked=untracked):
    """Posterior standard deviations of the responsibilities, (n_samples, K).

    Parameters
    ----------
    rows : CentredRows
    posterior : VariationalPosterior
    responses : ResponsesOfRows
    tracked : Tracked, through which the blocks of rows are gone
    """
    return responses.concatenated(
        functools.partial(_deviations_of_block, OwnFrames(posterior)), rows, tracked
    )


def _leverages_of_block(frames, responses, block):
    expectation = expect_in_range(frames, block)
    r = expectation.responsibilities
    covariances = responses.of_block(expectation.whitened, r > LEAST_RESPONSIBILITY_IN_SCORE).covariances()
    return np.maximum(np.einsum("kn,kln,ln->n", r, covariances, r), 0.0)


def _deviations_of_block(frames, responses, block):
    expectation = expect_in_range(frames, block)
    r = expectation.responsibilities
    covariances = responses.of_block(expectation.whitened, r > LEAST_RESPONSIVE_RESPONSIBILITY).covariances()
    # Row k is e_k - r, whose diagonal would cancel in a subtraction.
    gradients = np.repeat(-r.T[:, None, :], len(r), axis=1)
    np.einsum("nkk->nk", gradients)[...] = complements(r).T
    variances = np.einsum("nkl,nkl->kn", gradients @ covariances.transpose(2, 0, 1), gradients)
    return r * np.sqrt(np.maximum(variances, 0.0))
