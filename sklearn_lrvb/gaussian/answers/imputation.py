"""Missing values of rows given those that are there: conditional means and standard deviations.

*Mathematics.* Given q, the missing values of a row are a mixture of normal distributions of weights r_k,

    x = m_k + W_k^-1 y,     y ~ N(yhat_k, Pi)                             (`e_step.missing_directions`)

with mean xbar = sum_k r_k xhat_k and variance v by the law of total variance; the variances given the
component are those of Lambda^-1 rather than of E(Lambda)^-1. The parameters are uncertain, too. A change
d rho = beta . h of the log densities moves the mean by J beta, where J is the covariance of x with the
features h under q,

    J = sum_k r_k {(xhat_k - xbar) hbar_k' + W_k^-1 (Pi on y, Pi A_q yhat 2 on quadratic features q)},

so that the whole variance is v + J M^-1 J'.

*The noise component* has no distribution of missing values. Rows are completed as if they belonged to one of
the other components: r are the responsibilities of these, scaled to sum to one.

Where rows have scales u (`posterior.tails`), y ~ N(yhat, Pi/u) given u, so that the variances given the
component are E(1/u) = b/(a - 1) times as large, where a is more than one. J is the same, as the features have
u y and u s(y): the scales cancel.
"""

import functools

import numpy as np

from sklearn_lrvb.gaussian.e_step.coordinates import OwnCoordinates
from sklearn_lrvb.mixture.e_step import expect, expect_in_range, normalized
from sklearn_lrvb.rows import MissingValues, RowBlock, batches, untracked

# Largest ratio of the mean of a conditional variance to the conditional variance at the mean precision. It is
# infinite for components of fewer rows than features.
_LARGEST_RATIO = 2.0


def imputed(rows, posterior):
    """The rows with conditional means in place of missing values, (n_samples, P), of their own type.

    Parameters
    ----------
    rows : Rows
    posterior : VariationalPosterior or HandSetDensities
    """
    return rows.by_array(functools.partial(_imputed, posterior), (rows.n_features,), rows.dtype)


def _imputed(posterior, rows, tracked=untracked):
    if not rows.has_missing:
        return rows.X.copy()
    coordinates = OwnCoordinates(posterior)
    function = functools.partial(_means_of_block, posterior, coordinates)
    values = rows.each(function, (rows.n_features,), workload=coordinates.workload, tracked=tracked)
    return filled(rows, values)


def filled(rows, values):
    """The rows with some values, measured from the origin, in place of missing ones: (n_samples, P)."""
    return np.where(np.isnan(rows.X), (values + rows.origin).astype(rows.dtype), rows.X)


def _means_of_block(posterior, coordinates, block):
    """Conditional means of a block's values, (P, n)."""
    if block.missing is None:
        return block.rows
    expectation = expect(coordinates, block)
    r = _component_probabilities(posterior, expectation)
    return np.einsum("kn,kpn->pn", r, _expected_values(posterior, expectation.represented))


def _component_probabilities(posterior, expectation):
    """Probabilities of the components, given that a row is no noise: (K, n)."""
    if not posterior.structure.has_noise_component:
        return expectation.responsibilities
    return normalized(expectation.log_densities[: posterior.structure.n_components])[0]


def _expected_values(posterior, whitened):
    """xhat of every component, measured from the posterior's origin: OwnRows -> (K, P, n)."""
    roots = posterior.structure.whiteners(posterior.whiteners)
    return whitened.directions.mapped(roots, whitened.values) + posterior.centred_means[:, :, None]


def imputation_deviations(responses, block):
    """Standard deviations of the missing values of a block, zero where a value is there: (P, n)."""
    deviations = np.zeros_like(block.rows)
    if block.missing is None:
        return deviations
    row, feature = np.nonzero(block.seen.T == 0)
    for some in batches(len(row), 8 * 4 * responses.posterior.structure.layout.n_coefficients):
        variances, sources = variances_and_sources(responses.coordinates, block, row[some], feature[some])
        variances += np.maximum(responses.variances(sources), 0.0)
        deviations[feature[some], row[some]] = np.sqrt(variances)
    return deviations


def variances_and_sources(coordinates, block, row, feature):
    """v and J' of some missing values of a block.

    Parameters
    ----------
    coordinates : OwnCoordinates
    block : RowBlock with missing values
    row, feature : int arrays (m,), where the values are; rows ascend

    Returns
    -------
    variances : (m,), given the posterior
    sources : (D, m)
    """
    posterior, structure = coordinates.posterior, coordinates.posterior.structure
    # The row of every value.
    used, pattern = np.unique(block.missing.pattern[row], return_inverse=True)
    missing = MissingValues(block.missing.is_missing[used], pattern)
    expectation = expect_in_range(
        coordinates, RowBlock(block.rows[:, row], None, 0, block.numbers[row], missing)
    )
    r = _component_probabilities(posterior, expectation)
    whitened, each = expectation.represented, np.arange(len(row))
    expected = _expected_values(posterior, whitened)[:, feature, each]
    gaps = expected - np.einsum("km,km->m", r, expected)
    # Pi W^-T e of every value's coordinate e.
    unit_vectors = np.zeros(whitened.values.shape)
    unit_vectors[:, feature, each] = 1.0
    roots = structure.transposed(structure.whiteners(posterior.whiteners))
    directions = whitened.directions.onto(whitened.directions.mapped(roots, unit_vectors))
    # The variance at the mean precision, times the ratio of the mean of the variance to it. That of n missing
    # of P features is the inverse of the (n, n) block of a Wishart matrix of nu degrees of freedom, with mean
    # nu/(nu - n - 1) in units of that at its mean.
    freedom = structure.layout.per_component(posterior.degrees_of_freedom)[:, None]
    n_missing = whitened.directions.n_missing[whitened.pattern] if structure.is_matrix else 1.0
    ratios = freedom / np.maximum(freedom - 1.0 - n_missing, freedom / _LARGEST_RATIO)
    within = ratios * np.einsum("kpm,kpm->km", directions, directions)
    if whitened.scales is not None:
        within *= whitened.scales.mean_of_reciprocal()
    variances = (r * (within + np.square(gaps))).sum(axis=0)
    sources = np.zeros((structure.layout.n_coefficients, len(row)))
    for k, responsibilities in enumerate(r):
        covariances = gaps[k] * coordinates.features(whitened, k)
        covariances[1 : 1 + structure.n_features] += directions[k]
        quadratic = covariances[1 + structure.n_features :][: structure.n_quadratic]
        quadratic += structure.features.of_cross_products(whitened.values[k], directions[k])
        sources[structure.layout.places_of_components[k]] += responsibilities * covariances
    return variances, sources
