"""Numerical checks that the methods of a family agree with each other.

The derivatives are central differences extrapolated to step zero (Ridders' method), along one natural
parameter at a time. The first step is a tenth of the inverse of its statistic's standard deviation, or less
where the variance changes on a finer scale.
"""

from __future__ import annotations

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike

from sklearn_lrvb.mean_field.exponential_families.family import ExponentialFamily, NaturalParameterError

_N_STEPS = 7
_SHRINKAGE = 0.5
_EPS = np.finfo(float).eps


def check_family(
    family: ExponentialFamily,
    natural: ArrayLike,
    *,
    n_draws: int = 20_000,
    random_state: int | RandomState | None = 0,
    tolerance: float = 1e-6,
) -> None:
    """Check a family against the identities that `mean_field` relies on.

    Run it on a family of your own at several parameter values. It verifies that

    * the mean parameters are grad A and the covariance is hess A, by central differences and to their
      round-off;
    * the covariance is exactly symmetric and positive semidefinite;
    * `variances` and `location_deviations` are its diagonal and roots of it, and `covariance_product` is its
      product with vectors;
    * the means of derived functions are those of draws, and their covariances with the statistics are the
      derivatives of these means;
    * shapes fit, and copies along leading axes broadcast;
    * the default member is proper, and natural parameters that are not finite are rejected;
    * the statistics of draws have that mean and covariance.

    It cannot see a constant that is missing from A: compare exp(eta . T(x) - A(eta)) with a known density.

    Parameters
    ----------
    family : ExponentialFamily
        The family to check.
    natural : array-like of shape (D,)
        Natural parameters of a member.
    n_draws : int, default=20_000
        Number of draws whose statistics are compared, to five standard errors; at least 100, or 0 for none.
        Members with heavy tails may need 0, where that many draws do not show the moments.
    random_state : int, RandomState instance or None, default=0
        Seed of the draws.
    tolerance : float, default=1e-6
        Largest error of a mean parameter, relative to its size plus the statistic's standard deviation, and
        of a covariance, relative to the product of the two standard deviations.

    Raises
    ------
    AssertionError
        An identity fails. The error names it, the entry, and the size of the failure.
    ValueError
        ``n_draws`` is below 100 and not 0.
    NaturalParameterError
        ``natural`` is outside the domain of the family.

    See Also
    --------
    ExponentialFamily : How a family is subclassed.

    Examples
    --------
    Nothing happens where all identities hold. An error in a family is named, with its size:

    >>> from sklearn_lrvb.mean_field.exponential_families import Gamma, check_family
    >>> natural = Gamma().natural_parameters(shape=2.5, rate=0.1)
    >>> check_family(Gamma(), natural)
    >>> class Wrong(Gamma):
    ...     def mean_parameters(self, natural):
    ...         return 1.01 * super().mean_parameters(natural)
    >>> try:
    ...     check_family(Wrong(), natural)
    ... except AssertionError as error:
    ...     print(error)
    mean_parameters is not grad A: at value[0] it is 25.25, expected 25 (allowed difference 4.1e-05)
    """
    if n_draws != 0 and not n_draws >= 100:
        raise ValueError(f"n_draws={n_draws!r} must be 0 or at least 100, which a standard error needs.")
    natural = np.asarray(natural, dtype=float)
    _check_domain(family, natural)
    _check_shapes(family, natural)
    mean, covariance = family.mean_parameters(natural), family.covariance(natural)
    labels = _labels(family.slices)
    sd = _standard_deviations(covariance, labels, tolerance)
    derivatives, rounding = _derivatives(family, natural, sd)
    allowed = rounding + tolerance * np.vstack([np.abs(mean) + sd, np.outer(sd, sd)])
    _compare(mean, derivatives[0], allowed[0], "mean_parameters is not grad A", labels)
    identity = "covariance is not the Jacobian of mean_parameters"
    _compare(covariance, derivatives[1:], allowed[1:], identity, labels)
    _compare(family.variances(natural), sd**2, tolerance * sd**2, "variances are not those of V", labels)
    _check_covariance_product(family, natural, covariance, tolerance, labels)
    _check_location_deviations(family, natural, sd, tolerance)
    _check_copies(family, natural)
    if n_draws:
        _check_draws(family, natural, n_draws, random_state, labels)
    if family.derived:
        labels = _labels(family.derived_slices)
        functions = "derived_of", "derived_moments", family.derived_of, family.derived_moments
        _check_functions(family, natural, functions, labels, sd, (n_draws, random_state, tolerance))
    _check_coordinates(family, natural, n_draws, random_state, tolerance)


def _labels(slices):
    """Labels of the entries of a flat vector."""
    return [f"{name}[{i}]" for name, part in slices.items() for i in range(part.stop - part.start)]


def _check_domain(family, natural):
    family.check(natural)
    try:
        family.check(family.default_natural_parameters())
    except NaturalParameterError as error:
        raise AssertionError(f"default_natural_parameters is no member: {error}") from None
    for position in range(family.n_statistics):
        spoilt = natural.copy()
        spoilt[position] = np.nan
        try:
            family.check(spoilt)
        except NaturalParameterError:
            continue
        raise AssertionError(f"check accepts nan as natural parameter {position}")


def _check_shapes(family, natural):
    n = family.n_statistics
    default = np.asarray(family.default_natural_parameters())
    found_and_expected = {
        "default_natural_parameters": (default.shape, (n,)),
        "log_partition": (np.shape(family.log_partition(natural)), ()),
        "mean_parameters": (family.mean_parameters(natural).shape, (n,)),
        "covariance": (family.covariance(natural).shape, (n, n)),
        "statistics_of": (family.statistics_of(family.sample(default, 3, 0)).shape, (3, n)),
    }
    for method, (found, expected) in found_and_expected.items():
        if found != expected:
            raise AssertionError(
                f"{method} has shape {found}, expected {expected}: statistics are {family.statistics}"
            )


def _standard_deviations(covariance, labels, tolerance):
    """Roots of the diagonal of V, (D,), after checks that V is a covariance."""
    if not np.array_equal(covariance, covariance.T):
        raise AssertionError(
            f"covariance is not exactly symmetric: off by {np.abs(covariance - covariance.T).max():.1e}"
        )
    variance = np.diag(covariance)
    if not np.all(variance >= 0):
        worst = variance.argmin()
        raise AssertionError(f"covariance has a negative variance: {variance[worst]:.1e} of {labels[worst]}")
    sd = np.sqrt(variance)
    scale = np.where(sd > 0, sd, 1.0)
    smallest = np.linalg.eigvalsh(covariance / np.outer(scale, scale))[0]
    if not smallest >= -tolerance:
        raise AssertionError(
            f"covariance is not positive semidefinite: smallest eigenvalue {smallest:.1e} of the correlations"
        )
    return sd


def _check_location_deviations(family, natural, sd, tolerance):
    for name, found in family.location_deviations(natural).items():
        expected = sd[family.slices[name]].reshape(family.statistics[name])
        if np.shape(found) != expected.shape or not np.allclose(found, expected, rtol=tolerance, atol=0.0):
            raise AssertionError(f"location_deviations of {name!r} are {found}, expected {expected}")


def _check_covariance_product(family, natural, covariance, tolerance, labels):
    """V times all unit vectors together, and some alone: the product may leave out what is zero in all."""
    n = family.n_statistics
    sd = np.sqrt(np.diag(covariance))
    allowed = tolerance * np.outer(sd, sd)
    identity = "covariance_product is not the product with V"
    _compare(family.covariance_product(natural, np.eye(n)), covariance, allowed, identity, labels)
    for position in (0, n - 1):
        alone = family.covariance_product(natural, np.eye(n)[:, [position]])
        _compare(alone[:, 0], covariance[:, position], allowed[:, position], identity, labels)


def _check_coordinates(family, natural, n_draws, random_state, tolerance):
    """Coordinates, if the family has any: their inverse, and their moments."""
    draws = family.sample(natural, 5, random_state)
    try:
        coordinates = family.coordinates_of(natural, draws)
    except NotImplementedError:
        return
    if not np.allclose(family.from_coordinates(natural, coordinates), draws, rtol=1e-8):
        raise AssertionError("from_coordinates is not the inverse of coordinates_of")
    labels = [f"coordinate {i}" for i in range(coordinates.shape[-1])]

    def of_draws(value):
        return family.coordinates_of(natural, value)

    functions = "coordinates_of", "coordinate_moments", of_draws, family.coordinate_moments
    # Natural parameters choose the coordinates, so that the means are no function of them alone.
    unmoved = np.zeros(len(natural))
    _check_functions(family, natural, functions, labels, unmoved, (n_draws, random_state, tolerance))


def _check_functions(family, natural, functions, labels, sd, options):
    """E g (d,), that of draws, and Cov(g, T) (d, D), its derivative in the natural parameters.

    ``functions`` are the names of two methods, the function of draws, and that of the natural parameters
    which returns the moments. Derivatives are compared for the statistics with a positive ``sd``. ``options``
    are n_draws, random_state and tolerance.
    """
    n_draws, random_state, tolerance = options
    of_draws, of_moments, function, moments = functions
    mean, cross, covariance = moments(natural)
    shapes, n = (mean.shape, cross.shape, covariance.shape), len(labels)
    if shapes != ((n,), (n, len(natural)), (n, n)):
        raise AssertionError(f"{of_moments} has the shapes {shapes} for {n} functions")
    for position in np.flatnonzero(sd > 0):
        step = 1e-4 / sd[position] * np.eye(len(natural))[position]
        moved = np.array([moments(natural + sign * step)[0] for sign in (1, -1)])
        exists = np.isfinite(mean) & np.isfinite(moved).all(axis=0)
        found = cross[exists, position] / sd[position]
        expected = (moved[0, exists] - moved[1, exists]) / 2e-4
        allowed = tolerance * np.abs(expected) + (tolerance + _EPS / 1e-4) * np.abs(mean[exists])
        identity = f"{of_moments}: Cov(g, T) with statistic {position} is not the derivative of the mean"
        _compare(found, expected, allowed, identity, [labels[i] for i in np.flatnonzero(exists)])
    exists = np.isfinite(np.diag(covariance))
    if n_draws and exists.any():
        drawn = function(family.sample(natural, n_draws, random_state))[:, exists]
        allowed = 5 * np.sqrt(np.diag(covariance)[exists] / n_draws) + 1e-12 * np.abs(mean[exists])
        identity = f"the mean of {of_draws} draws is not that of {of_moments}"
        _compare(drawn.mean(axis=0), mean[exists], allowed, identity, labels)


def _derivatives(family, natural, sd):
    """Derivatives of A (first row) and of the mean parameters, and their round-off: (1 + D, D) each."""

    def log_partition_and_mean(point):
        return np.append(family.log_partition(point), family.mean_parameters(point))

    value = log_partition_and_mean(natural)
    derivatives, rounding = np.empty((2, len(value), len(natural)))
    for position, direction in enumerate(np.eye(len(natural))):
        step = 0.1 / sd[position] if sd[position] > 0 else 0.1
        while not all(_variance_holds(family, natural + s * step * direction, position, sd) for s in (-4, 4)):
            step *= 0.5
        derivatives[:, position] = _derivative(log_partition_and_mean, natural, step * direction) / step
        rounding[:, position] = 100 * _EPS * np.abs(value) / step
    return derivatives, rounding


def _variance_holds(family, natural, position, sd):
    """Whether a neighbour is in the domain and has its statistic's variance, within a factor of two."""
    try:
        family.check(natural)
    except NaturalParameterError:
        return False
    variance = sd[position] ** 2
    return 0.5 * variance <= family.covariance(natural)[position, position] <= 2 * variance


def _derivative(function, point, step):
    """Directional derivative along ``step``: for every output the extrapolation that changes least."""
    rows = []
    best, smallest_error = None, np.inf
    for k in range(_N_STEPS):
        size = _SHRINKAGE**k
        row = [(function(point + size * step) - function(point - size * step)) / (2 * size)]
        for j in range(k):
            gain = _SHRINKAGE ** (-2 * (j + 1))
            row.append((gain * row[j] - rows[-1][j]) / (gain - 1))
            error = np.maximum(np.abs(row[j + 1] - row[j]), np.abs(row[j + 1] - rows[-1][j]))
            better = error < smallest_error
            best = row[j + 1] if best is None else np.where(better, row[j + 1], best)
            smallest_error = np.where(better, error, smallest_error)
        rows.append(row)
    return best


def _compare(found, expected, allowed, identity, labels):
    """Raise where two arrays, (D,) or (D, D), differ by more than is allowed."""
    excess = np.abs(found - expected) - allowed
    if not np.all(excess <= 0):
        worst = np.unravel_index(np.argmax(np.where(np.isnan(excess), np.inf, excess)), found.shape)
        where = ", ".join(labels[i] for i in worst)
        raise AssertionError(
            f"{identity}: at {where} it is {found[worst]:.10g}, expected {expected[worst]:.10g} "
            f"(allowed difference {allowed[worst]:.1e})"
        )


def _check_copies(family, natural):
    """Copies along leading axes give what each member gives alone, to round-off."""
    default = np.asarray(family.default_natural_parameters(), dtype=float)
    copies = np.stack([np.stack([natural, default, natural]), np.stack([default, natural, default])])

    def product(natural):
        return family.covariance_product(natural, weights)

    weights = np.linspace(-1.0, 2.0, 2 * len(natural)).reshape(len(natural), 2)
    methods = (family.log_partition, family.mean_parameters, family.covariance, family.variances, product)
    for method in methods:
        for position in np.ndindex(2, 3):
            together, alone = method(copies), method(copies[position])
            if np.shape(together) != (2, 3, *np.shape(alone)):
                raise AssertionError(
                    f"{method.__name__} of copies (2, 3, {len(natural)}) has shape {np.shape(together)}"
                )
            if not np.allclose(together[position], alone, rtol=1e-12, atol=1e-12 * np.abs(alone).max()):
                raise AssertionError(f"{method.__name__} of copy {position} is not that of the member alone")
    draws = family.sample(copies, 4, 0)
    if draws.shape != (4, 2, 3, *family.sample(natural, 1, 0).shape[1:]):
        raise AssertionError(f"sample of copies (2, 3), 4 draws, has shape {draws.shape}")


def _check_draws(family, natural, n_draws, random_state, labels):
    """Mean and covariance of the statistics of draws, to five standard errors."""
    mean, covariance = family.mean_parameters(natural), family.covariance(natural)
    drawn = family.statistics_of(family.sample(natural, n_draws, random_state))
    centred = drawn - mean
    products = centred[:, :, None] * centred[:, None, :]
    # A statistic that is the same in all draws may vary with a probability of less than 1 in ``n_draws``.
    constant = np.any(np.ptp(drawn, axis=0) == 0)
    missed = 2 / n_draws * np.abs(mean).max() ** 2 if constant else 0.0
    mean_error = np.sqrt(np.diag(covariance) / n_draws)
    for found, expected, least_error, identity in (
        (drawn, mean, mean_error, "the mean of the statistics of draws is not mean_parameters"),
        (products, covariance, missed, "the covariance of the statistics of draws is not covariance"),
    ):
        error = np.maximum(found.std(axis=0) / np.sqrt(n_draws), least_error)
        rounding = 1e-12 * np.abs(found).max(axis=0)
        _compare(found.mean(axis=0), expected, 5 * error + rounding, identity, labels)
