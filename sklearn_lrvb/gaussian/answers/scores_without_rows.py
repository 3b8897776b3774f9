"""Scores of rows of normal components at statistics without the rows themselves (`leave_one_out`)."""

import numpy as np

from sklearn_lrvb.gaussian.posterior.tails import student_log_densities
from sklearn_lrvb.gaussian.posterior.variational_posterior import log_normal_constant
from sklearn_lrvb.mixture.responsibilities import LEAST_RESPONSIBILITY_IN_SCORE, normalized
from sklearn_lrvb.rows import batches

_LOG_2_PI = np.log(2.0 * np.pi)

# Variance of a direction in a component's covariance without the row, relative to that with it, below which
# the covariance without the row is singular and its determinant is rounding.
_LEAST_VARIANCE = 1e-11


def scores_at(posterior, expectation, statistics, left_out):
    """Scores with the statistics moved by rows of weight ``left_out`` and by the responses to them: (n,).

    Parameters
    ----------
    expectation : Expectation of the rows, with their log densities
    statistics : NormalStatistics or NormalResponses of the rows
    left_out : (L or m, n)
    """
    r, structure = expectation.responsibilities, posterior.structure
    all_rows = np.arange(r.shape[1])
    counts = posterior.label_counts[:, None] + statistics.counts(left_out, all_rows)
    # An empty component falls back to its prior, if that is proper.
    counts = np.where(counts > 0.0, counts, np.nan if posterior.prior.flat else 0.0)
    log_weights = posterior.prior.weights.expected_log(counts.T).T
    changed = expectation.log_densities + log_weights - posterior.expectations.log_weights[:, None]
    nu = None if posterior.tails is None else _changed_nu(posterior, counts, statistics, left_out)
    for group in range(structure.n_groups):
        components = list(structure.components_of_group(group))
        columns = np.flatnonzero((r[components] > LEAST_RESPONSIBILITY_IN_SCORE).any(axis=0))
        for batch in batches(columns.size, 8 * structure.identity.size):
            some = columns[batch]
            sums = {l: statistics.moments(l, left_out[:, some], some) for l in components}
            index, rows = np.ix_(components, some), expectation.framed.selected(some)
            of_components = counts[: posterior.n_components, some]
            of_rows = None if nu is None else nu[index]
            log_densities = _log_densities(posterior, group, rows, of_components, sums, of_rows)
            changed[index] = log_weights[index] + log_densities
    return normalized(changed)[1]


def _changed_nu(posterior, counts, statistics, left_out):
    """Degrees of freedom with the statistics moved by every row, (K, n); counts are (L, n)."""
    tails, of_components = posterior.tails, counts[: posterior.n_components].T
    if not tails.n_fitted:
        return tails.optimal_nu(of_components, of_components).T
    changes = statistics.tails(left_out, np.arange(counts.shape[1]))
    sums = tails.sums_of(of_components, tails.feature_sums_of_q() + changes)
    return tails.optimal_nu(of_components, sums).T


def _log_densities(posterior, group, framed, counts, sums, nu):
    """Expected log densities without log weights, in a group with statistics for every row: (L, n).

    Parameters
    ----------
    framed : OwnRows
    counts : (K, n), changed expected counts
    sums : dict, component of the group -> changes of its other statistics, as `NormalStatistics.moments`
    nu : (components of the group, n), or None where rows have no scales
    """
    prior, structure = posterior.prior, posterior.structure
    factors = structure.wisharts
    effective_degrees_of_freedom = prior.degrees_of_freedom + structure.power * structure.per_group(counts.T)
    effective_degrees_of_freedom = effective_degrees_of_freedom[:, group]
    degrees_of_freedom = effective_degrees_of_freedom + prior.freedom_kept
    is_proper = factors.is_proper(effective_degrees_of_freedom, degrees_of_freedom)
    effective_degrees_of_freedom = np.where(is_proper, effective_degrees_of_freedom, np.nan)
    mean_precision = prior.mean_precision + _changed_mean_counts(posterior, counts, sums)
    shifts = {l: linear / own for own, (l, (linear, *_)) in zip(mean_precision, sums.items(), strict=True)}
    quadratic = next(iter(sums.values()))[1]  # All components of a group have the same.
    # The complete second moments of the group in its frame after the change.
    added = structure.per_group(counts.T - posterior.counts)[:, group]
    freedom_before = posterior.effective_degrees_of_freedom[group]
    per_identity = freedom_before / structure.power + added
    scatter = per_identity[structure.statistic_axes] * structure.identity_statistic
    scatter = scatter + structure.quadratic_sums(quadratic.T)
    for own, shift in zip(mean_precision, shifts.values(), strict=True):
        scatter -= own[structure.statistic_axes] * structure.statistic_by_row(shift)
    covariance_cholesky = structure.cholesky(scatter / effective_degrees_of_freedom[structure.statistic_axes])
    relative = structure.log_determinants(covariance_cholesky)
    pivots = np.square(structure.diagonal(covariance_cholesky))
    relative[pivots.min(axis=1) < _LEAST_VARIANCE] = np.nan
    log_det_covariances = relative + structure.log_determinants(posterior.covariance_cholesky)[group]
    expected_log_determinant = factors.expected_log_determinant(log_det_covariances, degrees_of_freedom)[0]
    vectors = [framed.values[l] - shift for l, shift in shifts.items()]
    n_seen, noise, volumes = structure.n_features, 0.0, 0.0
    if framed.hidden is None:
        squares = np.array(
            [
                structure.squares_by_row(covariance_cholesky, vector, posterior.noise[group])
                for vector in vectors
            ]
        )
    else:
        n_seen = n_seen - framed.hidden.n_hidden[framed.pattern]
        squares, noise, volumes = framed.hidden.changed_distances(
            group, framed.pattern, covariance_cholesky, vectors
        )
    if nu is None:
        constants = log_normal_constant(expected_log_determinant, mean_precision, structure.n_features)
        return constants + 0.5 * ((volumes - noise) - squares)
    distances = squares + noise + structure.n_features / mean_precision
    volumes = volumes - _LOG_2_PI * (structure.n_features - n_seen)
    return 0.5 * (expected_log_determinant + volumes) + student_log_densities(nu, distances, n_seen)


def _changed_mean_counts(posterior, counts, sums):
    """Numbers of rows that the means of some components are known from, (components, n)."""
    components = list(sums)
    if posterior.tails is None:
        return counts[components]
    changes = np.array([of_scales for _, _, of_scales in sums.values()])
    changed = posterior.scale_sums[components, None] + changes
    return np.where(changed > 0.0, changed, np.nan if posterior.prior.flat else 0.0)
