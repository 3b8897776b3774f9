"""The `MixturePrior` that results from the constructor's arguments and the data.

Defaults are scikit-learn's. Error messages name the arguments.
"""

import functools

import numpy as np
from sklearn.utils import check_array

from sklearn_lrvb.gaussian_mixture.covariance_structures import COVARIANCE_STRUCTURES
from sklearn_lrvb.gaussian_mixture.posterior.degenerate_components import ILL_DEFINED_COVARIANCE
from sklearn_lrvb.gaussian_mixture.posterior.mixture_prior import MixturePrior
from sklearn_lrvb.gaussian_mixture.posterior.weight_priors import WEIGHT_PRIORS, DirichletWeights
from sklearn_lrvb.gaussian_mixture.value_range import (
    LARGEST_VALUE,
    check_argument,
    check_number,
    check_smallest,
    check_total_weight,
)
from sklearn_lrvb.row_blocks.tables import unmasked
from sklearn_lrvb.symmetric_matrices import asymmetric_entry, symmetrized

PRIOR_ARGUMENTS = (
    "weight_concentration_prior",
    "mean_precision_prior",
    "mean_prior",
    "degrees_of_freedom_prior",
    "covariance_prior",
)

# Ranges of arguments without units. Their reciprocals and squares are added to numbers of order one; a prior
# mean that counts as more than 1e15 rows leaves no digits of the scatter around it.
_RANGES = {
    "weight_concentration_prior": (1.0 / LARGEST_VALUE, LARGEST_VALUE),
    "mean_precision_prior": (1.0 / LARGEST_VALUE, 1e15),
    "degrees_of_freedom_prior": (0.0, LARGEST_VALUE),
}

# Relative rounding error of a row's entries: a few operations, of half a unit in the last place each.
_ROUNDING = 4 * np.finfo(float).eps


def _given_numbers(name, value, shape, wanted):
    """An argument as float64 array of finite numbers, a copy; `wanted` says in words what it should be."""
    try:
        given = unmasked(np.asanyarray(value))
        numbers = given.astype(np.float64, casting="unsafe" if given.dtype.kind in "OU" else "same_kind")
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} should be {wanted}, but: {error}.") from error
    if shape == () and numbers.size == 1:  # scikit-learn also takes [2.0] for 2.0.
        numbers = numbers.reshape(shape)
    if numbers.shape != shape:
        raise ValueError(f"{name} should be {wanted}, but has the shape {numbers.shape}.")
    return check_array(np.atleast_1d(numbers), ensure_2d=False, input_name=name)


def _given_mean(mean_prior, n_features):
    """`mean_prior`, checked: (P,)."""
    wanted = f"an array of shape {(n_features,)}, a number for every column of X"
    mean = _given_numbers("mean_prior", mean_prior, (n_features,), wanted)
    check_argument("mean_prior", np.abs(mean).max())
    return mean


def _given_degrees_of_freedom(degrees_of_freedom, n_features):
    """`degrees_of_freedom_prior`, checked."""
    if not degrees_of_freedom > n_features - 1:
        raise ValueError(
            "The parameter 'degrees_of_freedom_prior' should be greater than "
            f"{n_features - 1}, but got {degrees_of_freedom:.3f}."
        )
    return degrees_of_freedom


def _given_covariance(covariance_prior, structure, covariance_type):
    """`covariance_prior` in the structure's shape, checked and exactly symmetric."""
    shape = structure.prior_shape
    kind = (
        "a positive number",
        f"an array of positive variances of shape {shape}",
        f"a positive definite covariance matrix of shape {shape}",
    )[len(shape)]
    wanted = f"{kind}, as covariance_type={covariance_type!r} asks for"
    covariance = _given_numbers("covariance_prior", covariance_prior, shape, wanted)
    problem = None
    if len(shape) == 2:
        asymmetric = asymmetric_entry(covariance)
        if asymmetric is not None:
            i, j = asymmetric
            problem = f"{covariance[i, j]:g} at [{i}, {j}] and {covariance[j, i]:g} at [{j}, {i}]"
        covariance = symmetrized(covariance)  # Rounding may have made the triangles differ.
    if problem is None and not structure.is_positive_definite(covariance):
        least = covariance.min() if len(shape) < 2 else np.linalg.eigvalsh(covariance)[0]
        problem = f"{'the eigenvalue ' * (len(shape) == 2)}{least:.3g}"
    if problem is not None:
        raise ValueError(f"covariance_prior should be {wanted}, but has {problem}.")
    deviations = np.sqrt(structure.diagonal(covariance))
    check_argument("The root of covariance_prior", deviations.max(), deviations.min())
    return covariance


def _resolution(rows):
    """Standard deviation that rounding alone gives to a constant column, (P,)."""
    check_smallest(rows, rows.variances)
    return _ROUNDING * np.sqrt(rows.variances + np.square(rows.origin))


def _scatter_of_block(structure, block):
    """Sum of w x x' over a block's rows, in the structure's shape."""
    return structure.scatter(block.rows, block.sample_weight)


def _empirical_covariance(rows, structure, reg_covar, completion):
    """Covariance of X (ddof = 1) in the structure's shape, and what was added to it where it is singular."""
    if not rows.total_weight > 1:
        raise ValueError(
            f"sample_weight sums to {rows.total_weight:g}: weights are frequencies, and the default "
            "covariance_prior, the covariance of X, needs more than one row in all. (a) Scale the weights so "
            "that they count rows. (b) Pass a covariance_prior."
        )

    def diagonal(covariance):
        return np.diag(covariance) if covariance.ndim == 2 else covariance

    if completion is None:
        covariance = rows.total(functools.partial(_scatter_of_block, structure)) / (rows.total_weight - 1)
    else:
        covariance = completion.covariance_in(structure)
    check_smallest(rows, diagonal(covariance))
    # The variance that rounding alone gives to a constant column.
    squares = np.square(rows.origin) if structure.is_matrix else structure.scatter(rows.origin[:, None], None)
    constant = np.flatnonzero(diagonal(covariance) <= np.square(_ROUNDING) * squares)
    has_too_few_rows = structure.is_matrix and rows.n_samples <= rows.n_features
    is_singular = constant.size or has_too_few_rows or not structure.is_positive_definite(covariance)
    if not is_singular:
        return covariance, 0.0
    noisy = covariance + reg_covar * structure.identity
    if structure.is_positive_definite(noisy):
        return noisy, reg_covar
    reason = (
        f"column {', '.join(map(str, constant[:5]))} constant"
        if constant.size
        else f"its {rows.n_features} columns are linearly dependent in its {rows.n_samples} rows"
    )
    raise ValueError(
        f"{ILL_DEFINED_COVARIANCE} Here: the default covariance_prior, the covariance of X, is singular "
        f"({reason}), and reg_covar={reg_covar:g} is too small to mend it. (a) Drop constant or "
        "duplicated columns. (b) Raise reg_covar. (c) Pass a positive definite covariance_prior."
    )


def _pairs_seen_in_block(block):
    """How often two columns are seen together, (P, P)."""
    return block.weighted(block.seen) @ block.seen.T


def _require_pairs_of_columns(rows):
    """Raise ValueError where two columns never have values in the same row."""
    apart = np.argwhere(np.triu(rows.total(_pairs_seen_in_block) == 0))
    if len(apart):
        others = f", nor {len(apart) - 1} other pairs" if len(apart) > 1 else ""
        raise ValueError(
            f"Columns {apart[0][0]} and {apart[0][1]} of X never have values in the same row{others}: under "
            "prior='flat' nothing is known of their correlation given the other columns, and their precision "
            "has no posterior. (a) Use prior='conjugate'. (b) Use covariance_type='diag'. (c) Drop one of "
            "them."
        )


def needs_covariances(estimator):
    """Whether the prior of an estimator follows from the covariances of all pairs of columns of X."""
    is_default = estimator.prior == "conjugate" and estimator.covariance_prior is None
    return is_default and estimator.covariance_type in ("full", "tied")


def resolve_prior(estimator, rows, completion=None):
    """The prior that follows from an estimator's arguments and the data.

    Parameters
    ----------
    estimator : LRVBGaussianMixture
    rows : CentredRows
    completion : Completion or None, default=None
        That of rows with holes, whose mean and covariance are then the defaults.

    Returns
    -------
    MixturePrior

    Raises
    ------
    ValueError
        Where an argument is outside its domain, has the wrong shape, or contradicts ``prior="flat"``.
    """
    n_components, n_features = estimator.n_components, rows.n_features
    check_total_weight(rows.total_weight)
    check_argument("The root of reg_covar", np.sqrt(float(estimator.reg_covar)))
    structure = COVARIANCE_STRUCTURES[estimator.covariance_type](n_components, n_features)
    choices = {
        "structure": structure,
        "independent": estimator.factorization == "independent",
        "reg_covar": float(estimator.reg_covar),
    }
    given = {name: getattr(estimator, name) for name in PRIOR_ARGUMENTS}
    if estimator.prior == "flat":
        set_anyway = [name for name, value in given.items() if value is not None]
        if set_anyway:
            raise ValueError(
                f"prior='flat' has no hyperparameters, but {', '.join(set_anyway)} "
                f"{'is' if len(set_anyway) == 1 else 'are'} set: leave at None, or use "
                "prior='conjugate'."
            )
        if structure.is_matrix and rows.has_holes:
            _require_pairs_of_columns(rows)
        return MixturePrior(
            weights=DirichletWeights(0.0, n_components),
            mean_precision=0.0,
            mean=np.zeros(n_features),
            degrees_of_freedom=structure.precision_factors.flat_degrees_of_freedom,
            covariance=np.zeros_like(structure.identity),
            resolution=_resolution(rows),
            **choices,
        )
    for name, limits in _RANGES.items():
        if given[name] is not None:
            check_number(name, given[name], *limits)
    concentration = given["weight_concentration_prior"]
    mean, covariance = given["mean_prior"], given["covariance_prior"]
    default_mean = np.zeros(n_features) if completion is None else completion.mean
    degrees_of_freedom, mean_precision = (
        given["degrees_of_freedom_prior"],
        given["mean_precision_prior"],
    )
    if covariance is None:
        covariance, ridge = _empirical_covariance(rows, structure, float(estimator.reg_covar), completion)
    else:
        covariance, ridge = _given_covariance(covariance, structure, estimator.covariance_type), 0.0
    return MixturePrior(
        weights=WEIGHT_PRIORS[estimator.weight_concentration_prior_type](
            1.0 / n_components if concentration is None else concentration, n_components
        ),
        mean_precision=1.0 if mean_precision is None else mean_precision,
        mean=default_mean if mean is None else _given_mean(mean, n_features) - rows.origin,
        degrees_of_freedom=(
            n_features
            if degrees_of_freedom is None
            else _given_degrees_of_freedom(degrees_of_freedom, n_features)
        ),
        covariance=covariance,
        resolution=np.zeros(n_features),
        ridge=ridge,
        **choices,
    )
