"""Leverage of rows, and posterior standard deviations of their scores and responsibilities.

All are quadratic forms in T, the LRVB covariance of a row's log densities rho (`row_responses`): the score
log sum_k exp rho_k has the gradient r in them, so that its variance is r' T r, the leverage; responsibility k
has the gradient r_k (e_k - r).
"""

import numpy as np

from sklearn_lrvb.gaussian_mixture.e_step.e_step import complements, expect

# Where a component has less responsibility it adds nothing to a score that float64 could tell ...
LEAST_SHARE = 1e-15
# ... and what is below this is reported to have no spread.
_LEAST_RESPONSIBILITY = 1e-30


def leverages(rows, posterior, responses):
    """(r h)' M^-1 (r h) of every row, its own score's derivative in its weight: (n_samples,).

    Parameters
    ----------
    rows : CentredRows
    posterior : VariationalPosterior
    responses : ResponsesOfRows
    """

    def one_block(_, block):
        expectation = expect(posterior, block)
        r = expectation.responsibilities
        own = responses.of_block(expectation.whitened, r > LEAST_SHARE)
        return np.maximum(np.einsum("kn,kln,ln->n", r, own.covariances(), r), 0.0)

    return np.concatenate(list(rows.map(one_block, responses.block_rows)))


def responsibility_deviations(rows, posterior, responses):
    """Standard deviations of the responsibilities, (K, n_samples)."""

    def one_block(_, block):
        expectation = expect(posterior, block)
        r = expectation.responsibilities
        covariances = responses.of_block(expectation.whitened, r > _LEAST_RESPONSIBILITY).covariances()
        gradients = np.repeat(-r.T[:, None, :], len(r), axis=1)  # row k is e_k - r, its digits kept
        np.einsum("nkk->nk", gradients)[...] = complements(r).T
        variances = np.einsum("nkl,nkl->kn", gradients @ covariances.transpose(2, 0, 1), gradients)
        return r * np.sqrt(np.maximum(variances, 0.0))

    return np.concatenate(list(rows.map(one_block, responses.block_rows)), axis=1)
