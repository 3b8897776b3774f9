"""Whether the prior matters, in one sentence: how far its hyperparameters would move the posterior means.

The derivatives are those of `prior_sensitivity`.
"""

import numpy as np

from sklearn_lrvb.gaussian_mixture.posterior.variational_posterior import occupied
from sklearn_lrvb.gaussian_mixture.uncertainty.prior_sensitivity import PriorResponse, in_units_of
from sklearn_lrvb.gaussian_mixture.uncertainty.targets import PARAMETERS

# The hyperparameters whose changes are compared.
DIRECTIONS = (
    "weight_concentration_prior",
    "mean_precision_prior",
    "degrees_of_freedom_prior",
    "covariance_prior",
    "mean_prior",
)
# Largest moves, in posterior standard deviations, and how the sentence describes smaller ones.
_READINGS = ((0.1, "hardly matters"), (1.0, "matters somewhat"))


def prior_reading(uncertainty, feature_names, names=PARAMETERS):
    """Whether the prior matters for the targets of these names, in one sentence.

    The measure is the largest move of any of their posterior means, to first order and in its standard
    deviations, where one hyperparameter is doubled (all entries of ``covariance_prior`` at once), or
    ``mean_prior`` is moved by a standard deviation of the covariance C0/nu0 in the direction that is worst
    for that posterior mean. Entries that the data do not inform are excluded: those of components without
    rows, whose posterior is the prior, and the weight of a single component.
    """
    if uncertainty.map.posterior.prior.flat:
        return "The prior is flat: there is nothing to choose."
    targets = [uncertainty.map[name] for name in names]
    labels = np.concatenate([target.labels(feature_names) for target in targets])
    informed = np.concatenate([occupied(target.informing_counts()) for target in targets])
    moves = prior_moves(uncertainty, names) * informed
    direction, entry = np.unravel_index(moves.argmax(), moves.shape)
    largest = moves[direction, entry]
    if largest == 0:
        return "The prior does not matter: to first order, it moves none of these posterior means."
    how_much = next((reading for below, reading in _READINGS if largest < below), "matters")
    return (
        f"The prior {how_much}: to first order, doubling a hyperparameter, or moving mean_prior by a "
        f"standard deviation of the prior's covariance, moves posterior means by up to {largest:.2g} "
        f"posterior standard deviations (most: {DIRECTIONS[direction]} moves {labels[entry]})."
    )


def prior_moves(uncertainty, names):
    """Sizes of the moves of `prior_reading` of every flat entry, in its standard deviations: (5, d).

    The rows are in the order of `DIRECTIONS`. An entry without a standard deviation moves by 0.
    """
    posterior = uncertainty.map.posterior
    response, prior = PriorResponse(posterior), posterior.prior
    doubled = np.log(2.0) * np.diag(
        [prior.weights.prior_concentration, prior.mean_precision, prior.degrees_of_freedom, 1.0]
    )
    deviations = _deviations_under(prior)
    n_features = len(deviations)
    scalars = np.concatenate([doubled, np.zeros((n_features, 4))])
    mean_changes = np.concatenate([np.zeros((4, n_features)), deviations])
    of_direction = np.minimum(np.arange(4 + n_features), 4)
    targets = [uncertainty.map[name] for name in names]
    squares = [np.zeros((5, target.size)) for target in targets]
    solutions = uncertainty.solutions(
        len(scalars), lambda batch: response.sources(scalars[batch], mean_changes[batch])
    )
    first = 0
    for coefficients in solutions:
        batch = slice(first, first + len(coefficients))
        first = batch.stop
        for target, own in zip(targets, squares, strict=True):
            moves = target.responses(coefficients) + response.beyond_coefficients(target, scalars[batch])
            np.add.at(own, of_direction[batch], np.square(moves))
    stds = np.concatenate([uncertainty.flat_std(name) for name in names])
    return in_units_of(stds, np.sqrt(np.hstack(squares)).T).T


def _deviations_under(prior):
    """Rows v with sum of v v' = C0/nu0, (P, P)."""
    structure = prior.structure
    cholesky = structure.cholesky((prior.covariance / prior.degrees_of_freedom)[None])
    return structure.transformed(cholesky, np.eye(structure.n_features)[:, None, :])[:, 0]
