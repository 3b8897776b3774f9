"""What a user passes, checked and resolved: weights, the prior, and the arguments of the methods.

*The range of values.* A fit is equivariant in the units of the columns, but what it reports is not: variances
of covariances and of precisions are fourth powers of the unit and of its reciprocal. So values beyond the
range are refused rather than scaled inside.

*The prior.* `resolve_prior` makes the `MixturePrior` from the constructor's arguments and the data.
Hyperparameters that are neither given nor learned are scikit-learn's, and error messages name the arguments.

*The fit.* `resolve_moves` tells which moves the arguments allow, and `given_responsibilities` makes
an array of the responsibilities that a user passes to start from.
"""

from dataclasses import replace

import numpy as np
from sklearn.utils import check_array

from sklearn_lrvb.caller_warnings import warn_caller
from sklearn_lrvb.gaussian.covariance_structures import COVARIANCE_STRUCTURES
from sklearn_lrvb.gaussian.covariance_structures.features import OptionalParts
from sklearn_lrvb.gaussian.fitting.core import core_of, has_core
from sklearn_lrvb.gaussian.fitting.noise_density import default_log_density
from sklearn_lrvb.gaussian.fitting.rounding import rounding_of
from sklearn_lrvb.gaussian.model import GAUSSIAN
from sklearn_lrvb.gaussian.posterior.degenerate_components import ILL_DEFINED_COVARIANCE
from sklearn_lrvb.gaussian.posterior.learned_prior import LearnedPrior
from sklearn_lrvb.gaussian.posterior.mixture_prior import MixturePrior
from sklearn_lrvb.gaussian.posterior.noise_component import NoiseComponent
from sklearn_lrvb.gaussian.posterior.tails import NU_AT_START, StudentTails
from sklearn_lrvb.mixture.model import occupied
from sklearn_lrvb.mixture.moves import Moves
from sklearn_lrvb.mixture.weight_priors import (
    WEIGHT_PRIORS,
    DirichletWeights,
    WeightsWithNoise,
    require_countable,
)
from sklearn_lrvb.rows import RowBlock, is_dask
from sklearn_lrvb.rows.given_rows import named, unmasked
from sklearn_lrvb.symmetric_matrices import asymmetric_entry, symmetrized

# Largest absolute value of X, and reciprocal of the smallest extent of a column. Fourth powers, and sums of
# them over rows of any weight, are then far from the ends of float64.
LARGEST_VALUE = 1e70

_REMEDY = "Change its unit: multiply it by a constant, or use sklearn.preprocessing.StandardScaler."

_MOST_HEAVY = 100.0  # Degrees of freedom up to which default priors and starts allow for rows far out.

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

# Nats above the default log density of noise that may be passed without a warning. The default is just below
# the density of rows that are spread evenly over their range, and one that is higher takes clean rows.
_MOST_ABOVE_DEFAULT = 0.3


def check_rows(rows, names, n_components):
    """Raise ValueError where a column has no value, or values that are too large, or rows are too few.

    Rows are counted by their weights, too.

    Parameters
    ----------
    rows : Rows of positive weight
    names : array of str or None, of the columns
    n_components : int, least number of rows
    """
    require_countable(rows)
    X = rows.X
    if rows.has_missing:
        empty = np.flatnonzero(rows.seen_weight == 0)
        if empty.size:
            raise ValueError(
                f"X has {empty.size} column(s) without any value in the rows of positive weight: "
                f"{named(empty, names)}. Drop them: nothing can be said about them."
            )
    if rows.has_missing or not rows.is_in_memory:
        X = np.stack(rows.ranges())
    if X.dtype != np.float32 and max(X.max(), -X.min()) > LARGEST_VALUE:  # float32 ends at 3e38.
        largest = np.maximum(X.max(axis=0), -X.min(axis=0))
        column = int(largest.argmax())
        raise ValueError(
            f"Column {column} of X has values of up to {largest[column]:.3g} in size, beyond "
            f"{LARGEST_VALUE:g}: variances or their error bars would overflow. (a) {_REMEDY} (b) Drop it "
            "where it is constant."
        )
    if rows.n_samples < n_components:
        raise ValueError(
            "Expected n_samples >= n_components but got n_components = "
            f"{n_components}, n_samples = {rows.n_samples}"
        )


def check_smallest(rows, variances):
    """Raise ValueError where a column that is not constant varies too little.

    Parameters
    ----------
    rows : Rows
    variances : array, of the columns or of all together; squares may have underflowed in them
    """
    if variances.min() >= LARGEST_VALUE**-2:
        return
    smallest, largest = rows.ranges()
    extent = np.asarray(largest, dtype=float) - smallest
    is_constant = extent <= 4 * np.finfo(float).eps * np.abs(rows.origin)
    column = int(np.where(is_constant, np.inf, extent).argmin())
    if not is_constant[column] and extent[column] < 1.0 / LARGEST_VALUE:
        raise ValueError(
            f"Column {column} of X varies by {extent[column]:.3g} only, less than {1.0 / LARGEST_VALUE:g}: "
            f"precisions or their error bars would overflow. (a) {_REMEDY} (b) Drop it."
        )


def check_argument(name, largest, smallest=None):
    """Raise ValueError where a parameter of the fit is too large or too small.

    Parameters
    ----------
    name : str
    largest : float, its largest size in units of X
    smallest : float or None, its smallest such size
    """
    if largest > LARGEST_VALUE:
        raise ValueError(
            f"{name} is {largest:.3g} in units of X, beyond {LARGEST_VALUE:g}: change these units."
        )
    if smallest is not None and smallest < 1.0 / LARGEST_VALUE:
        raise ValueError(
            f"{name} is {smallest:.3g} in units of X, less than {1.0 / LARGEST_VALUE:g}: change these units."
        )


def has_noise(noise):
    """Whether the argument `noise` asks for a noise component."""
    return noise is not None and not (isinstance(noise, bool | np.bool_) and not noise)


def optional_parts(model, n_components):
    """The parts of a mixture that arguments ask for, dict by name: OptionalParts."""
    tails = model["tails"]
    n_tails = {"student": 1, "student_by_component": n_components}.get(tails, 0)
    by_component = tails == "student_by_component"
    return OptionalParts(has_noise(model["noise"]), tails != "normal", n_tails, by_component)


def resolve_tails(tails, parts, n_components, covariance_type):
    """Degrees of freedom that are given, or from which they are fitted: StudentTails or None."""
    if not parts.has_scales:
        return None
    if isinstance(tails, bool | np.bool_):
        raise ValueError(
            f"tails={tails} does not say how heavy tails are. (a) Use tails='student', which fits that. (b) "
            "Pass the degrees of freedom, for example tails=4."
        )
    if parts.n_tails > 1 and COVARIANCE_STRUCTURES[covariance_type].shares_precision:
        raise ValueError(
            "tails='student_by_component' gives every component its own degrees of freedom, and so its own "
            f"covariance, but covariance_type={covariance_type!r} asks for one that all share. (a) Use "
            "tails='student'. (b) Use covariance_type='full'."
        )
    nu = NU_AT_START if parts.n_tails else float(tails)
    return StudentTails(np.full(n_components, nu), parts.n_tails)


def core_of_outlying_rows(estimator, rows, completion):
    """The core of the rows, where an estimator asks for noise or heavy tails; otherwise None.

    Default priors and starts are made from it: outliers would rule those of all rows.

    Raises
    ------
    ValueError
        Where there can be no noise.
    """
    if not has_noise(estimator.noise):
        tails = estimator.tails
        are_heavy = tails != "normal" if isinstance(tails, str) else tails <= _MOST_HEAVY
        return core_of(rows, completion) if are_heavy and has_core(rows) else None
    if estimator.prior == "flat":
        raise ValueError(
            f"noise={estimator.noise!r} needs a proper prior: under prior='flat' a component that loses "
            "its rows to noise has no posterior. (a) Use prior='learned'. (b) Use noise=None."
        )
    if not np.any(rows.variances):
        raise ValueError(
            f"noise={estimator.noise!r} needs rows that differ, but all {rows.n_samples} rows of X are the "
            "same: none is farther out than others. Use noise=None."
        )
    return core_of(rows, completion)


def needs_covariances(estimator):
    """Whether the prior of an estimator follows from the covariances of all pairs of columns of X."""
    is_default = estimator.prior != "flat" and estimator.covariance_prior is None
    return is_default and COVARIANCE_STRUCTURES[estimator.covariance_type](1, 1).is_matrix


def resolve_prior(estimator, rows, completion=None, core=None):
    """The prior that follows from an estimator's arguments and the data.

    Parameters
    ----------
    estimator : LRVBGaussianMixture
    rows : Rows
    completion : Completion or None, default=None
        That of rows with missing values, whose mean and covariance are then the defaults.
    core : Core or None, default=None
        Of rows that may have outliers. Its mean and covariance are the defaults with noise, and with tails
        where some rows are so far out that they would rule those of all rows.

    Returns
    -------
    MixturePrior

    Raises
    ------
    ValueError
        Where an argument is outside its domain, has the wrong shape, or contradicts ``prior="flat"``.
    """
    n_components, n_features = int(estimator.n_components), rows.n_features
    reg_covar = float(estimator.reg_covar)
    check_argument("The root of reg_covar", np.sqrt(reg_covar))
    structure = _structure(estimator, rows)
    if estimator.prior == "flat":
        return _flat_prior(estimator, structure, rows)
    parts = structure.parts
    concentration = _given_number(estimator, "weight_concentration_prior", 1.0 / n_components)
    mean_precision = _given_number(estimator, "mean_precision_prior", 1.0)
    degrees_of_freedom = _given_number(estimator, "degrees_of_freedom_prior", n_features)
    least = structure.wisharts.block_size - 1
    if not degrees_of_freedom > least:
        raise ValueError(
            "The parameter 'degrees_of_freedom_prior' should be greater than "
            f"{least}, but got {degrees_of_freedom:.3f}."
        )
    robust = core if core is not None and (parts.has_noise_component or core.is_far_exceeded) else None
    if estimator.mean_prior is None:
        mean = np.zeros(n_features) if completion is None else completion.mean
        mean = mean if robust is None else robust.mean
    else:
        wanted = f"an array of shape {(n_features,)}, a number for every column of X"
        given = _given_numbers("mean_prior", estimator.mean_prior, (n_features,), wanted)
        check_argument("mean_prior", np.abs(given).max())
        mean = given - rows.origin
    tails = resolve_tails(estimator.tails, parts, n_components, estimator.covariance_type)
    if estimator.covariance_prior is None:
        covariance, ridge = _empirical_covariance(rows, structure, reg_covar, robust or completion)
        is_typical = tails is None or parts.learns_covariance
        n_rows = 1.0 if is_typical else _rows_of_default_prior(degrees_of_freedom, tails, n_features)
        covariance, ridge = n_rows * covariance, n_rows * ridge
    else:
        covariance, ridge = _given_covariance(estimator, structure), 0.0
    weights = WEIGHT_PRIORS[estimator.weight_concentration_prior_type](concentration, n_components)
    noise_component = None
    if parts.has_noise_component:
        log_density = _log_density_of_noise(estimator.noise, core, structure, reg_covar)
        noise_component = NoiseComponent(log_density, covariance)
        weights = WeightsWithNoise(weights)
    if parts.learns_covariance and estimator.degrees_of_freedom_prior is None:
        degrees_of_freedom = 3.0 * structure.wisharts.block_size + 2.0
    return MixturePrior(
        learned=LearnedPrior.of_structure(structure, covariance) if parts.has_learned_prior else None,
        rounding=rounding_of(rows) if parts.learns_covariance else None,
        model=GAUSSIAN,
        weights=weights,
        structure=structure,
        mean_precision=mean_precision,
        mean=mean,
        degrees_of_freedom=degrees_of_freedom,
        covariance=covariance,
        independent=estimator.factorization == "independent",
        reg_covar=reg_covar,
        resolution=np.zeros(n_features),
        ridge=ridge,
        tails=tails,
        noise_component=noise_component,
    )


def _structure(estimator, rows):
    """The covariance structure of an estimator, which knows what of the prior is learned."""
    n_components, n_features = int(estimator.n_components), rows.n_features
    parts = optional_parts(vars(estimator), n_components)
    structure = COVARIANCE_STRUCTURES[estimator.covariance_type](n_components, n_features, parts)
    if estimator.prior != "learned":
        return structure
    # Fewer rows than features do not tell what a covariance matrix typically is.
    has_rows = not structure.is_matrix or rows.total_weight > n_features
    learned = replace(
        parts,
        learns_mean_precision=estimator.mean_precision_prior is None,
        learns_covariance=estimator.covariance_prior is None and has_rows,
    )
    return type(structure)(n_components, n_features, learned)


def _rows_of_default_prior(degrees_of_freedom, tails, n_features):
    """The number of rows with the covariance of X that the default `covariance_prior` of tails stands for.

    With normal components it is one, as in scikit-learn, though the prior counts as nu_0 rows. So the prior
    expects covariances of C / nu_0, which the data correct: every row tells P / 2 about the log of a scale.
    With nu degrees of freedom it tells only the share nu / (nu + P) of that, and in many columns the prior
    would decide: for 3000 rows of t_5 in three clusters and 50 columns, nu was 0.7 by fit, and scales were
    a fourteenth of the true ones. Under a prior that counts as nu_0 / 2 rows, and so expects half the
    covariance of X, nu is 5.2. Of several such multiples it has the highest bounds.
    """
    share_of_prior = n_features / (tails.nu.mean() + n_features)
    return 1.0 + max(0.5 * degrees_of_freedom - 1.0, 0.0) * share_of_prior


def _log_density_of_noise(noise, core, structure, reg_covar):
    """What the user has passed, or the default for the rows: float."""
    is_given = not isinstance(noise, bool | np.bool_)
    try:
        default = default_log_density(core, structure, reg_covar)
    except ValueError:
        if not is_given:
            raise
        return float(noise)
    if is_given and noise > default + _MOST_ABOVE_DEFAULT:
        warn_caller(
            f"noise={noise:g} is {noise - default:.3g} above the log density of noise that is spread over "
            f"the range of these rows, {default:.4g}: rows of clusters may be counted as noise. (a) Pass a "
            "lower log density. (b) If you know that noise fills a smaller volume, filter this warning out."
        )
    return float(noise) if is_given else default


def _flat_prior(estimator, structure, rows):
    """The flat prior: MixturePrior.

    Raises
    ------
    ValueError
        Where other arguments contradict it, or two columns never have values in the same row.
    """
    given = [name for name in PRIOR_ARGUMENTS if getattr(estimator, name) is not None]
    if given:
        raise ValueError(
            f"prior='flat' has no hyperparameters, but {', '.join(given)} "
            f"{'is' if len(given) == 1 else 'are'} set: leave at None, or use prior='fixed'."
        )
    if structure.is_matrix and rows.has_missing:
        apart = np.argwhere(np.triu(rows.total(_pairs_seen_in_block) == 0))
        if len(apart):
            others = f", nor {len(apart) - 1} other pairs" if len(apart) > 1 else ""
            raise ValueError(
                f"Columns {apart[0][0]} and {apart[0][1]} of X never have values in the same row{others}: "
                "under prior='flat' nothing is known of their correlation given the other columns, and their "
                "precision has no posterior. (a) Use prior='learned'. (b) Use covariance_type='diag'. (c) "
                "Drop one of them."
            )
    check_smallest(rows, rows.variances)
    return MixturePrior(
        model=GAUSSIAN,
        weights=DirichletWeights(0.0, structure.n_components),
        structure=structure,
        mean_precision=0.0,
        mean=np.zeros(structure.n_features),
        degrees_of_freedom=structure.wisharts.flat_degrees_of_freedom,
        covariance=np.zeros_like(structure.identity),
        independent=estimator.factorization == "independent",
        reg_covar=float(estimator.reg_covar),
        resolution=_ROUNDING * np.sqrt(rows.variances + np.square(rows.origin)),
        tails=resolve_tails(
            estimator.tails, structure.parts, structure.n_components, estimator.covariance_type
        ),
    )


def _pairs_seen_in_block(block):
    """How often two columns are seen together, (P, P)."""
    return block.weighted(block.seen) @ block.seen.T


def _given_number(estimator, name, default):
    """An argument without units, which must be in the range in which digits are left; None is the default."""
    value, (least, most) = getattr(estimator, name), _RANGES[name]
    if value is None:
        return default
    if not least <= value <= most:
        raise ValueError(
            f"{name} is {value:.3g}; it must be between {least:g} and {most:g}, because numbers that depend "
            "on it would overflow or lose all digits. Less extreme values have the same effect."
        )
    return value


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


def _given_covariance(estimator, structure):
    """`covariance_prior` in the structure's shape, checked and exactly symmetric."""
    shape = structure.prior_shape
    kind = (
        "a positive number",
        f"an array of positive variances of shape {shape}",
        f"a positive definite covariance matrix of shape {shape}",
    )[len(shape)]
    wanted = f"{kind}, as covariance_type={estimator.covariance_type!r} asks for"
    given = _given_numbers("covariance_prior", estimator.covariance_prior, shape, wanted)
    covariance = symmetrized(given) if structure.is_matrix else given  # Rounding may differ in the triangles.
    asymmetric = asymmetric_entry(given) if structure.is_matrix else None
    if asymmetric is not None:
        i, j = asymmetric
        problem = f"{given[i, j]:g} at [{i}, {j}] and {given[j, i]:g} at [{j}, {i}]"
    elif structure.is_positive_definite(covariance):
        deviations = np.sqrt(structure.diagonal(covariance))
        check_argument("The root of covariance_prior", deviations.max(), deviations.min())
        return covariance
    elif structure.is_matrix:
        problem = f"the eigenvalue {np.linalg.eigvalsh(covariance)[0]:.3g}"
    else:
        problem = f"{covariance.min():.3g}"
    raise ValueError(f"covariance_prior should be {wanted}, but has {problem}.")


def _empirical_covariance(rows, structure, reg_covar, estimated):
    """Covariance of X (ddof = 1) in the structure's shape, and what was added to it where it is singular.

    It is that of the `Core` or the `Completion` ``estimated``, where there is one.
    """
    if estimated is None:
        covariance = rows.total(structure.scatter) / (rows.total_weight - 1)
    else:
        covariance = estimated.covariance_in(structure)
    variances = structure.diagonal(covariance)
    check_smallest(rows, variances)
    # The variance that rounding alone gives to a constant column.
    squares = structure.diagonal(structure.scatter(RowBlock(rows.origin[:, None])))
    constant = np.flatnonzero(variances <= np.square(_ROUNDING) * squares)
    has_too_few_rows = structure.is_matrix and rows.n_samples <= rows.n_features
    if not (constant.size or has_too_few_rows) and structure.is_positive_definite(covariance):
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


def resolve_moves(estimator):
    """The moves that an estimator's arguments allow, or None.

    Parameters
    ----------
    estimator : LRVBGaussianMixture

    Returns
    -------
    moves : Moves or None

    Raises
    ------
    ValueError
        Where ``moves="merge"`` or ``moves="search"`` is given and the solver, the prior or the start rules
        moves out. With ``moves="auto"`` there are then no moves.
    """
    if estimator.moves is None:
        return None
    obstacle = _obstacle(estimator)
    if obstacle is None:
        return Moves(only_with_surplus=estimator.moves == "auto", searches=estimator.moves == "search")
    if estimator.moves == "auto":
        return None
    reason, remedy = obstacle
    raise ValueError(
        f"moves={estimator.moves!r} cannot be made: {reason}. (a) {remedy}. (b) Use moves='auto', which "
        "makes moves only where they can be made."
    )


def _obstacle(estimator):
    """The reason why there can be no moves, and its remedy; None where there can be moves."""
    if estimator.solver != "newton":
        return f"solver={estimator.solver!r} makes plain iterations alone", "Use solver='newton'"
    if estimator.prior == "flat":
        return "an empty component has no posterior under prior='flat'", "Use prior='learned'"
    if not (isinstance(estimator.init_params, str) or callable(estimator.init_params)):
        return (
            "init_params is an array of responsibilities, whose columns fix the order of the components",
            "Pass the name of an initialization, or a callable",
        )
    if estimator.warm_start and (estimator.moves != "auto" or hasattr(estimator, "converged_")):
        return (
            "warm_start=True keeps the components of one fit in their places in the next",
            "Use warm_start=False",
        )
    return None


# Tolerance for the sums of a user's responsibilities, which may be in float32.
_SUM_TOLERANCE = 1e-5


def given_responsibilities(given, rows, init_params, structure, random_state=None, completion=None):
    """Responsibilities that a user has passed, or that a user's function makes: array (n_samples, K or L).

    A function gets arrays without the rows that do not count and without missing values, but rows in parts as
    they are given. An array on Dask stays there.

    Parameters
    ----------
    given, rows : Rows, those that the user has passed, and those that count
    init_params : array-like with a row for every given row, or callable
    structure : CovarianceStructure
    random_state : of the fit
    completion : Completion of rows with missing values; else None
    """
    n_components = structure.n_components
    made, source = init_params, "init_params"
    if callable(init_params):
        source = "What init_params returns"
        if given.is_in_memory:
            complete = rows if completion is None else completion.completed(rows)
            made = init_params(complete.X, n_components, random_state)
            return checked_responsibilities(made, rows.n_samples, structure, source)
        made = init_params(given.X, n_components, random_state)
    if rows.is_lazy and is_dask(made):
        return checked_dask_responsibilities(made, rows, structure, source)
    checked = checked_responsibilities(made, given.n_given, structure, source)
    return checked[given.which_count()] if rows.is_in_memory else checked


def checked_responsibilities(responsibilities, n_samples, structure, source):
    """A user's responsibilities as a float array, (n_samples, K or L).

    Parameters
    ----------
    responsibilities : array-like
    n_samples : int
    structure : CovarianceStructure
    source : str, their name at the start of an error message

    Raises
    ------
    ValueError
        Where they are not finite, of another shape, negative, or do not sum to one in every row.
    """
    checked = check_array(
        responsibilities, dtype=[np.float64, np.float32], ensure_2d=False, input_name=source
    )
    _require_shape(checked.shape, n_samples, structure, source)
    if checked.min() < 0:
        row = np.unravel_index(checked.argmin(), checked.shape)[0]
        raise ValueError(f"{source} must not be negative; row {row} has {checked.min():.3g}.")
    sums = checked.sum(axis=1, dtype=np.float64)
    worst = np.argmax(np.abs(sums - 1.0))
    if abs(sums[worst] - 1.0) > _SUM_TOLERANCE:
        raise ValueError(
            f"{source} must sum to one in every row; row {worst} sums to {sums[worst]:.6g}. Divide every row "
            "by its sum."
        )
    return checked


def _require_shape(shape, n_samples, structure, source):
    """Raise ValueError where a user's responsibilities have no such shape; that of noise may be left out."""
    shapes = [(n_samples, n_columns) for n_columns in range(structure.n_components, structure.n_labels + 1)]
    known = tuple(n_samples if np.isnan(length) else length for length in shape)  # Dask may not know lengths.
    if known not in shapes:
        of_noise = " (and perhaps a last one for noise)" if len(shapes) > 1 else ""
        raise ValueError(
            f"{source} must have one row for every row of X and one column for every component{of_noise}, "
            f"shape {' or '.join(map(str, shapes))}, but has {shape}."
        )


def checked_dask_responsibilities(responsibilities, rows, structure, source):
    """A user's responsibilities as a Dask array, checked by a pass: dask.array.Array (n_samples, K or L).

    Parameters
    ----------
    responsibilities : dask collection, chunked as X or in chunks of known lengths
    rows : DaskRows
    structure, source : as in `checked_responsibilities`
    """
    if hasattr(responsibilities, "to_dask_array"):
        responsibilities = responsibilities.to_dask_array()
    shape = responsibilities.shape
    _require_shape(shape, int(rows.survey.lengths.sum()), structure, source)
    n_chunks = len(rows.survey.lengths)
    if np.isnan(shape[0]) and responsibilities.numblocks != (n_chunks, 1):
        raise ValueError(
            f"{source} has {responsibilities.numblocks} chunks (along rows, along columns) of unknown "
            f"lengths, but X has {(n_chunks, 1)}: both must be partitioned in the same way."
        )
    n_bad = rows.total(_n_bad_responsibilities, along=responsibilities)
    if n_bad:
        raise ValueError(
            f"{source} must be finite, not negative, and sum to one in every row, but {n_bad} rows do not."
        )
    return responsibilities


def _n_bad_responsibilities(block, responsibilities):
    """Number of rows whose responsibilities are no probabilities."""
    sums = responsibilities.sum(axis=1, dtype=np.float64)
    return int(np.count_nonzero(~((responsibilities.min(axis=1) >= 0) & (np.abs(sums - 1) < _SUM_TOLERANCE))))


def require_clusters(posterior):
    """Raise ValueError where noise has all rows, and no component holds any."""
    structure = posterior.structure
    if structure.has_noise_component and not occupied(posterior.counts).any():
        of_many_columns = (
            " (c) With many columns for few rows the default covariance_prior is narrow: pass a larger one, "
            "covariance_prior=X.shape[1] * X.var(axis=0)."
        )
        raise ValueError(
            f"All rows are noise: its log density of {posterior.noise_component.log_density:.4g} is higher "
            "than that of any cluster, and no component holds rows. Rows that are spread evenly over their "
            "range have no clusters. (a) Pass a lower log density as noise, below this number. (b) Use "
            "noise=None." + of_many_columns * (not structure.is_matrix and len(structure.prior_shape) == 1)
        )
