"""What a user passes to a mixture of latent classes, checked and resolved."""

import functools

import numpy as np
from sklearn.utils import check_array

from sklearn_lrvb.family_mixture.coordinates import values_of
from sklearn_lrvb.family_mixture.learned_prior import LearnedPrior
from sklearn_lrvb.family_mixture.model import FAMILY_MIXTURE
from sklearn_lrvb.family_mixture.prior import ClassPrior
from sklearn_lrvb.mixture.weight_priors import DirichletWeights, require_countable

# Hyperparameters where they are not given. Of those that are learned they are the means, and their gamma
# distribution has the shape 1.
_DEFAULTS = {
    "category_concentration_prior": 1.0,
    "mean_precision_prior": 0.1,
    "degrees_of_freedom_prior": 2.0,
    "variance_prior": 1.0,
    "rate_shape_prior": 1.0,
}
_LEARNED = "category_concentration_prior", "rate_shape_prior"
_SHAPE_OF_LEARNED = 1.0

_ROUNDING = 1e-5  # Largest error of the sum of probabilities that a user passes, in float32.


def resolve_prior(estimator, rows, columns):
    """The prior of a fit: ClassPrior.

    Parameters
    ----------
    estimator : LRVBLatentClassMixture
    rows : Rows, those that count, encoded
    columns : tuple of Column, what they are
    """
    n_components = estimator.n_components
    concentration = estimator.weight_concentration_prior
    if concentration is None:
        concentration = 1.0 / n_components
    families, is_learned = _families(estimator, rows, columns), estimator.prior == "learned"
    learned = [name for name in _LEARNED if is_learned and getattr(estimator, name) is None]
    if any(family.directions.keys() & learned for family in families):
        sums = rows.total(functools.partial(_sums_of_features, families))
        families = [
            family.centred(own) if family.directions.keys() & learned else family
            for family, own in zip(families, sums, strict=True)
        ]
    weights = DirichletWeights(float(concentration), n_components)
    prior = LearnedPrior.of_families(families, learned, _SHAPE_OF_LEARNED)
    return ClassPrior(FAMILY_MIXTURE, weights, families, columns, prior)


def _families(estimator, rows, columns):
    """The families of the columns, with hyperparameters as given, or else the defaults: list."""
    places = {}  # By family and number of categories.
    for place, column in enumerate(columns):
        places.setdefault((column.family, len(column.categories)), []).append(place)
    (means, deviations), families = column_moments(rows), []
    for family, n_categories in sorted(places, key=lambda own: (own[0].__name__, own[1])):
        some = places[family, n_categories]
        given = [(name, getattr(estimator, name)) for name in family.hyperparameters]
        values = [_DEFAULTS[name] if own is None else own for name, own in given]
        families.append(
            family.of_columns(some, means[some], deviations[some], rows.total_weight, n_categories, *values)
        )
    return families


def column_moments(rows):
    """Means and standard deviations of the columns' values, 1 where a column is constant: (P,) each."""
    seen, sums = rows.total(functools.partial(_sums, None))
    means = sums / np.maximum(seen, 1e-300)
    _, squares = rows.total(functools.partial(_sums, means))
    deviations = np.sqrt(squares / np.maximum(seen, 1e-300))
    rounding = 10 * np.finfo(float).eps * np.abs(means)
    return means, np.where(deviations > rounding, deviations, 1.0)


def _sums(means, block):
    """How many values there are in each column, and the sums of them, or of their squares about means."""
    values = values_of(block)
    seen = ~np.isnan(values)
    terms = values if means is None else np.square(values - means[:, None])
    return block.weighted(seen).sum(axis=1), block.weighted(np.where(seen, terms, 0.0)).sum(axis=1)


def _sums_of_features(families, block):
    """Sums of the features of a block's rows, by family: list of (1, c, b)."""
    values = values_of(block)
    features = [family.features(values[family.places]) for family in families]
    return [block.weighted(own).sum(axis=-1)[None] for own in features]


def require_classes(rows, n_components):
    """Raise ValueError where there are fewer rows than classes, or more than can be counted."""
    require_countable(rows)
    if rows.n_samples < n_components:
        raise ValueError(
            f"Expected n_samples >= n_components, but got n_components = {n_components}, "
            f"n_samples = {rows.n_samples}"
        )


def given_responsibilities(init_params, n_components, kept):
    """Responsibilities that a user has passed, of the rows of positive weight: (n, K).

    Parameters
    ----------
    init_params : array-like of shape (n_samples, K)
    n_components : int, K
    kept : bool array (n_samples,), the rows of positive weight

    Raises
    ------
    ValueError
        Where they have another shape, are no probabilities, or do not sum to one.
    """
    given = check_array(init_params, dtype=np.float64, input_name="init_params")
    if given.shape != (len(kept), n_components):
        raise ValueError(
            f"init_params must have a row for each of the {len(kept)} rows of X and a column for each of the "
            f"{n_components} classes, but has shape {given.shape}."
        )
    off = np.abs(given.sum(axis=1) - 1.0)
    if given.min() < 0.0 or off.max() > _ROUNDING:
        row = int(np.argmax(np.maximum(off, -given.min(axis=1))))
        raise ValueError(
            "init_params must hold probabilities that sum to one in every row, but row "
            f"{row} is {given[row].tolist()}."
        )
    return given[kept]
