"""New rows of latent classes, and what other programs report of rows."""

import functools

import numpy as np
from scipy.special import logsumexp, xlogy

from sklearn_lrvb.latent_class.draws import Scalars
from sklearn_lrvb.latent_class.frames import values_of
from sklearn_lrvb.mixtures.responsibilities import expect


def sampled_rows(posterior, counts, random_state):
    """Encoded rows at the posterior means, so many of each class, class by class: (n, P)."""
    families = posterior.prior.families
    rows = np.empty((int(counts.sum()), sum(family.n_columns for family in families)))
    for family, part in zip(families, posterior.parts, strict=True):
        by_class = zip(family.values(part), counts, strict=True)
        drawn = [family.drawn(random_state, values, int(n)) for values, n in by_class]
        rows[:, family.places] = np.concatenate(drawn, axis=1).T
    return rows


def log_likelihood_at_means(rows, posterior):
    """Log likelihood of rows at the posterior means of weights and of what describes the classes, a float."""
    prior, scalars = posterior.prior, Scalars(posterior)
    pairs = zip(prior.families, posterior.parts, strict=True)
    at_means = [family.scalars_at(family.values(part)[None], part) for family, part in pairs]
    statistics = scalars.statistics(scalars.joined(np.zeros((1, posterior.n_components - 1)), at_means))[0]
    statistics[:, 0] = np.log(prior.weights.mean(posterior.counts))
    return float(rows.total(functools.partial(_log_likelihood, prior, statistics)))


def _log_likelihood(prior, statistics, block):
    values = values_of(block)
    return logsumexp(statistics @ prior.features(values) + prior.log_base(values), axis=0) @ block.counts


def entropies(frames, block):
    """Sum of the entropies of a block's responsibilities, in nats."""
    r = expect(frames, block).responsibilities
    return -block.weighted(xlogy(r, r)).sum()


def filled_rows(rows, posterior):
    """Rows with predictions of their missing values, (n, P), and how uncertain these are: zero elsewhere."""
    function = functools.partial(_filled, posterior.model.own_frames(posterior))
    both = rows.each(function, (2, rows.n_features))
    return both[:, 0], both[:, 1]


def _filled(frames, block):
    """(P, 2, n) of a block."""
    values, posterior = values_of(block), frames.posterior
    r, found = expect(frames, block).responsibilities, np.empty((*values.shape, 2))
    for family, part in zip(posterior.prior.families, posterior.parts, strict=True):
        found[family.places] = np.stack(family.filled(r, part), axis=-1)
    is_seen = ~np.isnan(values)
    found[is_seen, 0], found[is_seen, 1] = values[is_seen], 0.0
    return found.swapaxes(1, 2)
