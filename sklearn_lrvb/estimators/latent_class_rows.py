"""Rows of latent classes: equal ones joined, new ones drawn, missing values filled, and what is doubtful."""

import functools

import numpy as np
from scipy.special import xlogy

from sklearn_lrvb.answers.single_values import ColumnNote, note_of_single_values, sample_of, single_values
from sklearn_lrvb.family_mixture.coordinates import values_of
from sklearn_lrvb.family_mixture.starts import distinct_rows
from sklearn_lrvb.mixture.e_step import expect
from sklearn_lrvb.rows.array_rows import rows_of_array

# Equal rows are joined where that leaves at most this share of them.
_WORTH_JOINING = 0.5
# Values count as overdispersed if their variance is so many times what it should be, and so many standard
# deviations beyond it.
_OVERDISPERSED, _DEVIATIONS = 3.0, 6.0


def joined_rows(rows, columns):
    """The rows, equal ones as one that counts more often, if these are many: a table of categories has few
    different rows.
    """
    if not rows.is_in_memory or not all(column.family.is_discrete for column in columns.columns):
        return rows
    X, weights = distinct_rows(rows.X, rows.sample_weight)
    if len(X) > _WORTH_JOINING * rows.n_samples:
        return rows
    return rows_of_array(X, rows.origin, rows.n_jobs, weights, is_incomplete=False)


def sampled_rows(posterior, counts, random_state):
    """Encoded rows at the posterior means, so many of each class, class by class: (n, P)."""
    families = posterior.prior.families
    rows = np.empty((int(counts.sum()), sum(family.n_columns for family in families)))
    for family, part in zip(families, posterior.parts, strict=True):
        by_class = zip(family.values(part), counts, strict=True)
        drawn = [family.drawn(random_state, values, int(n)) for values, n in by_class]
        rows[:, family.places] = np.concatenate(drawn, axis=1).T
    return rows


def overdispersion(rows, posterior):
    """Variances within classes over those that the family has for the mean, where far above: list of triples.

    A triple is the number of the column, the class, and the ratio.
    """
    found, prior = [], posterior.prior
    for family, part in zip(prior.families, posterior.parts, strict=True):
        if family.dispersion is None:
            continue
        means, variances, kurtosis = family.distribution(family.values(part)).stats("mvk")
        coordinates = posterior.model.coordinates(posterior)
        number, squares = rows.total(functools.partial(_squares, coordinates, family.places, means))
        number = np.maximum(number, 1.0)
        ratio = squares / variances / number
        # Values of the family have a ratio of 1 with this variance, kurtosis being that beyond the normal's.
        least = np.maximum(_OVERDISPERSED, 1.0 + _DEVIATIONS * np.sqrt((2.0 + kurtosis) / number))
        found += [(family.places[c], k, ratio[k, c]) for k, c in np.argwhere(ratio > least)]
    return found


def _squares(coordinates, places, means, block):
    """How many values of a block are in each class, and their squared distances from means: (2, K, c)."""
    values, r = values_of(block)[places], block.weighted(expect(coordinates, block).responsibilities)
    distances = np.nan_to_num(values - means[:, :, None])
    return np.stack([r @ ~np.isnan(values).T, np.einsum("kn,kcn->kc", r, np.square(distances))])


def notes_of_columns(rows, posterior, columns):
    """Which numeric columns have made classes by single values, and what to do about it: tuple of ColumnNote.

    Parameters
    ----------
    rows : Rows, the training rows
    posterior : ClassPosterior
    columns : TableColumns
    """
    deviations = np.full((posterior.n_components, len(columns.columns)), np.nan)
    for family, sums in zip(posterior.prior.families, posterior.parts, strict=True):
        if family.deviation_entry is not None:
            deviations[:, family.places] = family.values(sums)[..., family.deviation_entry]
    if np.isnan(deviations).all():
        return ()
    found = single_values(sample_of(rows), posterior, deviations)
    if not found:
        return ()
    name = columns.names[found[0].column]
    advice = (
        f"Say what such columns are: columns={{{name!r}: 'categorical'}} for answers and codes, 'count' for "
        "numbers of things, 'ignore' to leave them out. An amount that is often zero is better as "
        "two columns: whether it is zero, and the amount, missing where it is zero."
    )
    return note_of_single_values(found, columns.names), ColumnNote(advice)


def known_of_classes(coordinates, block):
    """Sum over a block's rows of log K less the entropy of their responsibilities, in nats."""
    r = expect(coordinates, block).responsibilities
    return block.weighted(np.maximum(xlogy(r, len(r) * r).sum(axis=0), 0.0)).sum()


def filled_rows(rows, posterior):
    """Rows with predictions of their missing values, (n, P), and how uncertain these are: zero elsewhere."""
    function = functools.partial(_filled, posterior.model.coordinates(posterior))
    both = rows.each(function, (2, rows.n_features))
    return both[:, 0], both[:, 1]


def _filled(coordinates, block):
    """(P, 2, n) of a block."""
    values, posterior = values_of(block), coordinates.posterior
    r, found = expect(coordinates, block).responsibilities, np.empty((*values.shape, 2))
    for family, part in zip(posterior.prior.families, posterior.parts, strict=True):
        found[family.places] = np.stack(family.filled(r, part), axis=-1)
    is_seen = ~np.isnan(values)
    found[is_seen, 0], found[is_seen, 1] = values[is_seen], 0.0
    return found.swapaxes(1, 2)
