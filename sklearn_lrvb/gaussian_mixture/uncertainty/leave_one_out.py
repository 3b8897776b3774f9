"""Scores of rows under the posterior of all other rows, without refitting.

Leaving out row n, of weight w, takes w r h from the sufficient statistics, and what is missing there from the
information, which becomes M + w H (diag r - r r') H'. One Newton step for the other rows therefore moves the
statistics by (Woodbury's identity)

    R^-1 M^-1 H q,        q = -w (I + w (diag r - r r') T)^-1 r,        T = H' M^-1 H,

and there the row is scored exactly, expected log weights, precisions and all. The step is of first order in
the statistics, where the bound is close to a quadratic; the score is far from linear in them (x' A^-1 x for a
row that is much of A itself). Exact for one component; some ten times closer to refits than score - w
leverage, which is of first order throughout.
"""

import numpy as np

from sklearn_lrvb.gaussian_mixture.e_step.e_step import normalized
from sklearn_lrvb.gaussian_mixture.e_step.frames import OwnFrames
from sklearn_lrvb.gaussian_mixture.posterior.variational_posterior import log_normal_constant
from sklearn_lrvb.gaussian_mixture.uncertainty.leverage import LEAST_SHARE
from sklearn_lrvb.gaussian_mixture.uncertainty.row_covariances import WithoutResponse

# Of a component's covariance, in units of what it was with the row: less is what rounding leaves of nothing.
_LEAST_LOG_DETERMINANT = np.log(1e-11)

_MOVED_BYTES = 2**24  # of covariances, one for every row of a block


def leave_one_out_scores(rows, posterior, responses):
    """Scores of the training rows, each under the posterior without it: (n_samples,).

    NaN where there is none: a component that is left without a proper posterior.

    Parameters
    ----------
    rows : CentredRows, the training rows
    posterior : VariationalPosterior
    responses : ResponsesOfRows
    """
    frames = OwnFrames(posterior)

    def one_block(selected, block):
        whitened = frames.whiten(block)
        log_densities = frames.log_densities(whitened)
        r, _ = normalized(log_densities.copy())
        counted = rows.weighted(np.ones(len(block[0])), selected)
        own = responses.of_block(whitened, _used(posterior, r))
        left_out = -counted * _own_response(r, counted, own.covariances())
        scores = _scores_at(posterior, whitened, log_densities, r, own, left_out)
        failed = np.flatnonzero(np.isnan(scores))
        if failed.size:
            # the others' response would leave no posterior: without it there is one wherever a refit has one
            whitened, log_densities, r = whitened[:, :, failed], log_densities[:, failed], r[:, failed]
            own = WithoutResponse(posterior, whitened, _used(posterior, r))
            left_out = -counted[failed] * r
            scores[failed] = _scores_at(posterior, whitened, log_densities, r, own, left_out)
        return scores

    block_rows = min(responses.block_rows, max(1, _MOVED_BYTES // (8 * posterior.structure.identity.size)))
    return np.concatenate(list(rows.map(one_block, block_rows)))


def _used(posterior, responsibilities):
    """Components whose statistics a row is part of, (K, n): those of a group together."""
    used = responsibilities > LEAST_SHARE
    if posterior.structure.n_precision_groups < posterior.n_components:
        used[...] = used.any(axis=0)
    return used


def _own_response(r, weights, covariances):
    """(I + w (diag r - r r') T)^-1 r: (K, n), (n,), (K, K, n) -> (K, n)."""
    by_row = covariances.transpose(2, 0, 1)
    r_by_row = r.T
    crossed = np.einsum("nk,nkl->nl", r_by_row, by_row)
    centred = r_by_row[:, :, None] * (by_row - crossed[:, None, :])
    system = np.eye(len(r)) + weights[:, None, None] * centred
    return np.linalg.solve(system, r_by_row[:, :, None])[:, :, 0].T


def _scores_at(posterior, whitened, log_densities, r, own, left_out):
    """Scores with the statistics moved by rows of weight ``left_out`` and by what responds to them: (n,).

    Parameters
    ----------
    own : responses of the block's rows
    left_out : (K, n)
    """
    counts = posterior.counts[:, None] + own.counts(left_out, np.arange(r.shape[1]))
    # under a proper prior an empty component falls back to it
    counts = np.where(counts > 0.0, counts, np.nan if posterior.prior.flat else 0.0)
    log_weights = posterior.prior.weights.expected_log(counts.T).T
    moved = log_densities + log_weights - posterior.expected_log_weights[:, None]
    for group in range(posterior.structure.n_precision_groups):
        components_sharing_precision = posterior.structure.components_sharing_precision(group)
        columns = np.flatnonzero((r[list(components_sharing_precision)] > LEAST_SHARE).any(axis=0))
        if columns.size:
            sums = {l: own.moments(l, left_out[:, columns], columns) for l in components_sharing_precision}
            rows = whitened[:, :, columns]
            moved[np.ix_(components_sharing_precision, columns)] = log_weights[
                np.ix_(components_sharing_precision, columns)
            ] + _log_densities(posterior, group, rows, counts[:, columns], sums)
    return normalized(moved)[1]


def _log_densities(posterior, group, whitened, counts, sums):
    """Expected log densities but for log weights, in a group whose statistics moved for every row: (L, n).

    Parameters
    ----------
    whitened : (K, P, n)
    counts : (K, n), moved
    sums : component -> changes of its other statistics (P, n), (Q, n); L components
    """
    prior, structure = posterior.prior, posterior.structure
    information = structure.effective_degrees_of_freedom(counts.T, prior.degrees_of_freedom)
    proper = structure.is_proper(information, prior.independent)[:, group]
    information = np.where(proper, information[:, group], np.nan)
    mean_precision = prior.mean_precision + counts
    shifts = {l: linear / mean_precision[l] for l, (linear, _) in sums.items()}
    quadratic = next(iter(sums.values()))[1]  # which the components of a group share
    scatter = _moved_second_moments(posterior, group, counts, quadratic)
    for l, shift in shifts.items():
        scatter -= structure.expand(mean_precision[l]) * structure.statistic_by_row(shift)
    covariance_cholesky = structure.cholesky_by_row(scatter / structure.expand(information))
    left = structure.log_determinants(covariance_cholesky)
    left[left < _LEAST_LOG_DETERMINANT] = np.nan
    log_determinants = left + structure.log_determinants(posterior.covariance_cholesky)[group]
    degrees_of_freedom = structure.degrees_of_freedom(information, prior.independent)
    expected_log_determinant = structure.expected_log_determinant(
        degrees_of_freedom, structure.log_det_inverse_scale(log_determinants, degrees_of_freedom)
    )
    noise = structure.identity_statistic - posterior.second_moment_origin[group]
    squares = [
        structure.squares_by_row(covariance_cholesky, whitened[l] - shift, noise)
        for l, shift in shifts.items()
    ]
    own_precision = mean_precision[list(shifts)]
    constants = log_normal_constant(expected_log_determinant, own_precision, structure.n_features)
    return constants - 0.5 * np.array(squares)


def _moved_second_moments(posterior, group, counts, quadratic):
    """Complete second moments of a group in its frame, moved: (K, n), (Q, n) -> (n, ...)."""
    structure = posterior.structure
    more = structure.per_group(counts.T - posterior.counts)[:, group]
    own = (
        structure.expand(posterior.effective_degrees_of_freedom[group] / structure.power + more)
        * structure.identity_statistic
    )
    return own + structure.quadratic_sums(quadratic.T)
