"""Missing values of rows given those that are there: conditional means and standard deviations.

*Mathematics.* Given q, the missing values of a row are a mixture of normal distributions of weights r_k,

    x = m_k + W_k^-1 y,     y ~ N(yhat_k, Pi)                             (`e_step.hidden_directions`)

with mean xbar = sum_k r_k xhat_k and variance v by the law of total variance; the variances given the
component are those of Lambda^-1 rather than of E(Lambda)^-1. The parameters are uncertain, too. A change
d rho = beta . h of the log densities moves the mean by J beta, where J is the covariance of x with the
features h under q,

    J = sum_k r_k {(xhat_k - xbar) hbar_k' + W_k^-1 (Pi on y, Pi A_q yhat 2 on quadratic features q)},

so that the whole variance is v + J M^-1 J'.

*The background* has no distribution of hidden values. Rows are completed as if they belonged to one of the
components: r are the responsibilities of these, scaled to sum to one.

Where rows have scales u (`posterior.tails`), y ~ N(yhat, Pi/u) given u, so that the variances given the
component are E(1/u) = b/(a - 1) times as large, where a is more than one. J is the same, as the features have
u y and u s(y): the scales cancel.
"""

import functools

import numpy as np

from sklearn_lrvb.gaussian.e_step.frames import OwnFrames
from sklearn_lrvb.mixture.responsibilities import expect, expect_in_range, normalized
from sklearn_lrvb.rows import Holes, RowBlock, batches, untracked

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
    if not rows.has_holes:
        return rows.X.copy()
    frames = OwnFrames(posterior)
    function = functools.partial(_means_of_block, posterior, frames)
    values = rows.each(function, (rows.n_features,), workload=frames.workload, tracked=tracked)
    return filled(rows, values)


def filled(rows, values):
    """The rows with some values, measured from the origin, in place of missing ones: (n_samples, P)."""
    return np.where(np.isnan(rows.X), (values + rows.origin).astype(rows.dtype), rows.X)


def _means_of_block(posterior, frames, block):
    """Conditional means of a block's values, (P, n)."""
    if block.holes is None:
        return block.rows
    expectation = expect(frames, block)
    r = _of_components(posterior, expectation)
    return np.einsum("kn,kpn->pn", r, _coordinates(posterior, expectation.framed))


def _of_components(posterior, expectation):
    """Probabilities of the components, given that a row is not of the background: (K, n)."""
    if not posterior.structure.has_background:
        return expectation.responsibilities
    return normalized(expectation.log_densities[: posterior.structure.n_components])[0]


def _coordinates(posterior, framed):
    """xhat of every component, measured from the posterior's origin: OwnRows -> (K, P, n)."""
    roots = posterior.structure.whiteners(posterior.whiteners)
    return framed.hidden.mapped(roots, framed.values) + posterior.centred_means[:, :, None]


def imputation_deviations(responses, block):
    """Standard deviations of the missing values of a block, zero where a value is there: (P, n)."""
    deviations = np.zeros_like(block.rows)
    if block.holes is None:
        return deviations
    row, feature = np.nonzero(block.seen.T == 0)
    for some in batches(len(row), 8 * 4 * responses.posterior.structure.n_coefficients):
        variances, sources = variances_and_sources(responses.frames, block, row[some], feature[some])
        variances += np.maximum(responses.variances(sources), 0.0)
        deviations[feature[some], row[some]] = np.sqrt(variances)
    return deviations


def variances_and_sources(frames, block, row, feature):
    """v and J' of some missing values of a block.

    Parameters
    ----------
    frames : OwnFrames
    block : RowBlock with holes
    row, feature : int arrays (m,), where the values are; rows ascend

    Returns
    -------
    variances : (m,), given the posterior
    sources : (D, m)
    """
    posterior, structure = frames.posterior, frames.posterior.structure
    # The row of every value.
    used, pattern = np.unique(block.holes.pattern[row], return_inverse=True)
    holes = Holes(block.holes.hidden[used], pattern)
    expectation = expect_in_range(frames, RowBlock(block.rows[:, row], None, 0, block.numbers[row], holes))
    r, framed, each = _of_components(posterior, expectation), expectation.framed, np.arange(len(row))
    coordinates = _coordinates(posterior, framed)[:, feature, each]
    gaps = coordinates - np.einsum("km,km->m", r, coordinates)
    # Pi W^-T e of every value's coordinate e.
    unit_vectors = np.zeros(framed.values.shape)
    unit_vectors[:, feature, each] = 1.0
    roots = structure.transposed(structure.whiteners(posterior.whiteners))
    directions = framed.hidden.onto(framed.hidden.mapped(roots, unit_vectors))
    # The variance at the mean precision, times the ratio of the mean of the variance to it. That of n hidden
    # of P features is the inverse of the (n, n) block of a Wishart matrix of nu degrees of freedom, with mean
    # nu/(nu - n - 1) in units of that at its mean.
    freedom = structure.per_component(posterior.degrees_of_freedom)[:, None]
    n_hidden = framed.hidden.n_hidden[framed.pattern] if structure.is_matrix else 1.0
    ratios = freedom / np.maximum(freedom - 1.0 - n_hidden, freedom / _LARGEST_RATIO)
    within = ratios * np.einsum("kpm,kpm->km", directions, directions)
    if framed.scales is not None:
        within *= framed.scales.mean_of_reciprocal()
    variances = (r * (within + np.square(gaps))).sum(axis=0)
    sources = np.zeros((structure.n_coefficients, len(row)))
    for k, responsibilities in enumerate(r):
        covariances = gaps[k] * frames.features(framed, k)
        covariances[1 : 1 + structure.n_features] += directions[k]
        quadratic = covariances[1 + structure.n_features :][: structure.n_quadratic]
        quadratic += structure.mixed_features(framed.values[k], directions[k])
        sources[structure.coefficient_index[k]] += responsibilities * covariances
    return variances, sources
