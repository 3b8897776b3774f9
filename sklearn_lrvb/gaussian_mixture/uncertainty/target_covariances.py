"""Covariances of targets: J M^-1 J' plus the excess Cov_q - J R J' (`targets`).

The information M may be any object with ``covariance_root(coordinates)``, an array Y of shape (n, m) with
Y' Y = M^-1 at these coordinates: the observed information for linear response, the complete information with
q's own degrees of freedom for mean-field theory.
"""

import itertools

import numpy as np


def distinct_coordinates(targets):
    """Coordinates of the coefficients on which some targets depend, each once: int array (m,)."""
    return np.unique(np.concatenate([target.coordinates() for target in targets]))


def covariance(targets, information):
    """Joint covariance of targets' flat entries, one target after the other: (d, d), exactly symmetric."""
    distinct = distinct_coordinates(targets)
    root = information.covariance_root(distinct)
    columns = [np.searchsorted(distinct, target.coordinates()) for target in targets]
    responses = [target.respond(root[:, own]) for target, own in zip(targets, columns, strict=True)]
    responses = np.concatenate(responses, axis=1)
    joint = responses.T @ responses
    stops = np.cumsum([target.size for target in targets])
    own = [slice(stop - target.size, stop) for stop, target in zip(stops, targets, strict=True)]
    for i, j in itertools.combinations_with_replacement(range(len(targets)), 2):
        excess = targets[i].excess_with(targets[j])
        if i == j:
            joint[own[i], own[i]] += 0.5 * (excess + np.transpose(excess))
        else:
            joint[own[i], own[j]] += excess
            joint[own[j], own[i]] += np.transpose(excess)
    return joint


def n_coordinates_at_once(target):
    """How many coordinates `variance` asks a root for, at most."""
    return len(target.coordinates(target.unit_batches()[0]))


def variance(target, information):
    """Diagonal of `covariance` for one target, without the matrix, (d,)."""
    variances = []
    for units in target.unit_batches():
        root = information.covariance_root(target.coordinates(units))
        batches = target.response_batches(root, units)
        variances.append(sum(np.square(responses).sum(axis=0) for responses in batches))
    return np.concatenate(variances) + target.excess_variance()
