"""Covariances of targets: J M^-1 J' plus the excess Cov_q - J R J' (`targets`).

The information M may be any object with ``covariance_root(coordinates)``, an array Y of shape (n, m) with
Y' Y = M^-1 at these coordinates: the observed information for linear response, the complete information with
q's own degrees of freedom for mean-field theory.
"""

import itertools

import numpy as np

from sklearn_lrvb.symmetric_matrices import symmetrized

_COORDINATES_AT_ONCE = 4096  # Those of the root that `variance` holds in memory: 128 MB if it is square.


def n_coordinates(targets):
    """Number of coordinates of the root that `covariance` needs."""
    return sum({target.block: target.n_coordinates for target in targets}.values())


def covariance(targets, information):
    """Joint covariance of the flat entries of all targets, in their order: (d, d), exactly symmetric."""
    blocks = {target.block: target.coordinates() for target in targets}
    root = information.covariance_root(np.concatenate(list(blocks.values())))
    stops = np.cumsum([len(coordinates) for coordinates in blocks.values()])
    root_of = dict(zip(blocks, np.split(root, stops[:-1], axis=1), strict=True))
    responses = np.concatenate([target.unit_responses(root_of[target.block]) for target in targets], axis=1)
    joint = responses.T @ responses
    stops = np.cumsum([target.size for target in targets])
    own = [slice(stop - target.size, stop) for stop, target in zip(stops, targets, strict=True)]
    for i, j in itertools.combinations_with_replacement(range(len(targets)), 2):
        excess = targets[i].excess_with(targets[j])
        if not np.any(excess):
            continue
        if i == j:
            joint[own[i], own[i]] += symmetrized(excess)
        else:
            joint[own[i], own[j]] += excess
            joint[own[j], own[i]] += excess.T
    return joint


def component_covariances(means, information):
    """Joint covariance of each component's mean, (K, P, P): the diagonal blocks of `covariance` alone."""
    blocks = []
    for k in range(means.n_units):
        own = slice(k, k + 1)
        responses = means.unit_responses(information.covariance_root(means.coordinates(own)), own)
        blocks.append(responses.T @ responses)
    return np.array(blocks) + means.excess_of_components()


def unit_batches(target):
    """Slices of the target's units whose coordinates of the root are in memory at once."""
    return target.unit_batches(_COORDINATES_AT_ONCE)


def n_coordinates_at_once(target):
    """Largest number of coordinates of a root that `variance` needs."""
    return len(target.coordinates(unit_batches(target)[0]))


def variance(target, information):
    """Diagonal of `covariance` for one target, without the matrix, (d,)."""
    variances = []
    for units in unit_batches(target):
        root = information.covariance_root(target.coordinates(units))
        batches = target.response_batches(root, units)
        variances.append(sum(np.square(responses).sum(axis=0) for responses in batches))
    # The excess is a difference, which may round to less than zero where a weight is certain to all digits.
    return np.maximum(np.concatenate(variances) + target.excess_variance(), 0.0)
