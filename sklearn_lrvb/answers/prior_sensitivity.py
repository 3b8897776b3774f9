"""Whether the prior matters, in one sentence, from derivatives in its hyperparameters without refitting."""

import numpy as np

from sklearn_lrvb.mixture.model import occupied
from sklearn_lrvb.rows import batches

# Largest moves, in posterior standard deviations, and how the sentence describes smaller ones.
_READINGS = ((0.1, "hardly matters"), (1.0, "matters somewhat"))


def in_units_of(std, values):
    """Values (d, ...) over the standard deviations (d,), and 0 where these are 0."""
    std = np.broadcast_to(std.reshape(-1, *[1] * (values.ndim - 1)), values.shape)
    return np.divide(values, std, out=np.zeros(values.shape), where=std > 0)


def prior_reading(uncertainty, feature_names, names, stds):
    """Whether the prior matters for the targets of these names, in one sentence.

    The measure is the largest move of any of their posterior means, to first order and over its standard
    deviation in the table (``stds``, (d,)), where one hyperparameter is moved
    (`MixtureModel.changes_of_prior`). Entries that the data do not inform are excluded: those of components
    without rows, whose posterior is the prior, and the weight of a single component.
    """
    posterior = uncertainty.fitted.posterior
    if posterior.prior.flat:
        return "The prior is flat: there is nothing to choose."
    targets = [uncertainty.targets[name] for name in names]
    labels = np.concatenate([target.labels(feature_names) for target in targets])
    informed = np.concatenate([occupied(target.counts()) for target in targets])
    if posterior.n_labels > 1 and not informed.any():
        return "The prior matters: these are about components without rows, whose posterior is the prior."
    moves = prior_changes(uncertainty, names, stds) * informed
    direction, entry = np.unravel_index(moves.argmax(), moves.shape)
    largest = moves[direction, entry]
    is_unmeasured = bool(np.isinf(stds[informed]).any())
    if largest == 0 and is_unmeasured:
        return "The prior may matter: how much cannot be told in sd, which is infinite."
    if largest == 0:
        return "The prior does not matter: small changes of it move none of these estimates."
    prior = posterior.model.changes_of_prior(posterior)
    how_much = next((reading for below, reading in _READINGS if largest < below), "matters")
    return (
        f"The prior {how_much}: with {prior.in_words[direction]}, {labels[entry]} would move by about "
        f"{largest:.2g} sd, the most that any hyperparameter moves any estimate"
        f"{' whose sd is finite' if is_unmeasured else ''}."
    )


def prior_changes(uncertainty, names, stds):
    """Sizes of the moves behind `prior_reading`, of every flat entry, in its standard deviation: (m, d).

    The rows are the hyperparameters (`MixtureModel.changes_of_prior`). An entry without a standard deviation
    moves by 0.
    """
    posterior = uncertainty.fitted.posterior
    prior = posterior.model.changes_of_prior(posterior)
    targets = [uncertainty.targets[name] for name in names]
    squares = [np.zeros((len(prior.names), target.size)) for target in targets]
    for some, responses in _responses(uncertainty, targets, names, prior):
        for target, response, sums in zip(targets, responses, squares, strict=True):
            moves = response + target.beyond_coefficients(prior, some)
            np.add.at(sums, prior.direction[some], np.square(moves))
    return in_units_of(stds, np.sqrt(np.hstack(squares)).T).T


def _responses(uncertainty, targets, names, prior):
    """Yield changes of the prior, slices, and their effects through the coefficients: lists of (n, d).

    A system is solved for every change or, if these are fewer, for every entry.
    """
    n_changes, last = len(prior.direction), 0
    if sum(target.size for target in targets) < n_changes:
        of_entries = [np.concatenate(list(uncertainty.coefficients(name))) for name in names]
        for some in batches(n_changes, 8 * of_entries[0].shape[1]):
            sources = prior.sources(some)
            yield some, [(rows @ sources).T for rows in of_entries]
        return
    for coefficients in uncertainty.solutions(n_changes, prior.sources):
        first, last = last, last + len(coefficients)
        yield slice(first, last), [target.responses(coefficients) for target in targets]
