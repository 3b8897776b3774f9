"""Scores of rows of normal components at statistics without the rows themselves (`leave_one_out`)."""

import numpy as np

from sklearn_lrvb.gaussian.posterior.learned_prior import LearnedInformation
from sklearn_lrvb.gaussian.posterior.tails import student_log_densities
from sklearn_lrvb.mixture.e_step import LEAST_RESPONSIBILITY_IN_SCORE, normalized
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
    statistics : RowStatistics or RowResponses of the rows
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
    of_prior = _changed_mean_precision_of_prior(posterior, statistics, left_out)
    for group in range(structure.n_groups):
        components = list(structure.layout.members(group))
        columns = np.flatnonzero((r[components] > LEAST_RESPONSIBILITY_IN_SCORE).any(axis=0))
        for batch in batches(columns.size, 8 * structure.identity.size):
            some = columns[batch]
            places = (structure.layout.places_of_components[k][1:] for k in components)
            changes = np.stack([statistics.statistics(place, left_out[:, some], some) for place in places])
            index, rows = np.ix_(components, some), expectation.represented.selected(some)
            hyperparameters = of_prior[some], None if nu is None else nu[index]
            log_densities = _log_densities(posterior, group, rows, counts[:, some], changes, hyperparameters)
            changed[index] = log_weights[index] + log_densities
    return normalized(changed)[1]


def _changed_nu(posterior, counts, statistics, left_out):
    """Degrees of freedom with the statistics moved by every row, (K, n); counts are (L, n)."""
    tails, component_counts = posterior.tails, counts[: posterior.n_components].T
    if not tails.n_fitted:
        return tails.optimal_nu(component_counts, component_counts).T
    block = posterior.structure.layout.blocks["tail"]
    coordinates, columns = np.arange(block.start, block.stop), np.arange(counts.shape[1])
    changes = statistics.statistics(coordinates, left_out, columns)
    sums = tails.sums_of(component_counts, tails.feature_sums_of_q() + changes.T)
    return tails.optimal_nu(component_counts, sums).T


def _changed_mean_precision_of_prior(posterior, statistics, left_out):
    """b0 with the statistics moved by every row, (n,). With scales, their sums have its change."""
    columns, parts = np.arange(left_out.shape[1]), posterior.structure.parts
    changes = np.zeros(len(columns))
    if parts.learns_mean_precision and not parts.has_scales:
        coordinate = np.arange(posterior.n_coefficients)[posterior.coefficient_blocks["mean_precision"]]
        changes = statistics.statistics(coordinate, left_out, columns)[0]
        changes = changes / LearnedInformation(posterior).of_mean_precision
    return posterior.prior.mean_precision * np.exp(changes)


def _log_densities(posterior, group, whitened, counts, changes, hyperparameters):
    """Expected log densities without log weights, in a group with statistics for every row: (m, n).

    Parameters
    ----------
    whitened : OwnRows
    counts : (L, n), changed expected counts
    changes : (m, F - 1, n), of the other statistics of the m components of the group, as of features
    hyperparameters : changed b0, (n,), and nu, (m, n) or None where rows have no scales
    """
    mean_precision, nu = hyperparameters
    structure, n_features = posterior.structure, posterior.n_features
    components = list(structure.layout.members(group))
    mean_precision = mean_precision + _changed_mean_counts(posterior, components, counts, changes)
    shifts = changes[:, :n_features] / mean_precision[:, None]
    covariance_cholesky, expected_log_determinant = _changed_covariance(
        posterior, group, counts, changes, mean_precision, shifts
    )
    vectors = whitened.values[components] - shifts
    n_seen, noise, volumes = n_features, 0.0, 0.0
    if whitened.directions is None:
        own_noise = posterior.known_noise[group]
        squares = [structure.squares_by_row(covariance_cholesky, vector, own_noise) for vector in vectors]
        squares = np.array(squares)
    else:
        n_seen = n_features - whitened.directions.n_missing[whitened.pattern]
        squares, noise, volumes = whitened.directions.changed_distances(
            group, whitened.pattern, covariance_cholesky, vectors
        )
    if nu is None:
        constants = expected_log_determinant - n_features * (_LOG_2_PI + 1.0 / mean_precision)
        return 0.5 * (constants + ((volumes - noise) - squares))
    distances = squares + noise + n_features / mean_precision
    volumes = volumes - _LOG_2_PI * (n_features - n_seen)
    return 0.5 * (expected_log_determinant + volumes) + student_log_densities(nu, distances, n_seen)


def _changed_mean_counts(posterior, components, counts, changes):
    """Numbers of rows that the means of some components are known from, (m, n)."""
    if posterior.tails is None:
        return counts[components]
    place = posterior.structure.n_features + posterior.structure.n_quadratic
    sums = posterior.scale_sums[components, None] + changes[:, place]
    return np.where(sums > 0.0, sums, np.nan if posterior.prior.flat else 0.0)


def _changed_covariance(posterior, group, counts, changes, mean_precision, shifts):
    """Changed factors of E(Lambda)^-1, whitened as before the change, and E log|Lambda|: (n, ...), (n,).

    NaN where there is no proper posterior.

    Parameters
    ----------
    group, counts, changes : as in `_log_densities`
    mean_precision : (m, n), tau after the change
    shifts : (m, P, n), of the means
    """
    prior, structure, axes = posterior.prior, posterior.structure, posterior.structure.statistic_axes
    counts = counts[: posterior.n_components].T
    group_counts = structure.layout.per_group(counts)[:, group]
    effective_degrees_of_freedom = prior.degrees_of_freedom + structure.power * group_counts
    degrees_of_freedom = effective_degrees_of_freedom + prior.freedom_kept
    is_proper = structure.wisharts.is_proper(effective_degrees_of_freedom, degrees_of_freedom)
    effective_degrees_of_freedom = np.where(is_proper, effective_degrees_of_freedom, np.nan)
    # The complete second moments, of which all components of the group have the same changes.
    freedom_before = posterior.effective_degrees_of_freedom[group]
    added = structure.layout.per_group(counts - posterior.counts)[:, group]
    per_identity = freedom_before / structure.power + added
    quadratic = changes[0, structure.n_features :][: structure.n_quadratic]
    scatter = per_identity[axes] * structure.identity_statistic + structure.features.to_sums(quadratic.T)
    for own, shift in zip(mean_precision, shifts, strict=True):
        scatter -= own[axes] * structure.statistic_by_row(shift)
    covariance_cholesky = structure.cholesky(scatter / effective_degrees_of_freedom[axes])
    relative = structure.log_determinants(covariance_cholesky)
    pivots = np.square(structure.diagonal(covariance_cholesky))
    relative[pivots.min(axis=1) < _LEAST_VARIANCE] = np.nan
    log_det_covariances = relative + structure.log_determinants(posterior.covariance_cholesky)[group]
    expected = structure.wisharts.expected_log_determinant(log_det_covariances, degrees_of_freedom)[0]
    return covariance_cholesky, expected
