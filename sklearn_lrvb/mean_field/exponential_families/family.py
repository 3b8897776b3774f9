"""The interface of an exponential family, on which `mean_field` builds.

*Conventions.* The density of x with respect to Lebesgue measure (counting measure for categories) is
exp(eta . T(x) - A(eta)). All constants are in A, so that a natural parameter is exactly the coefficient of
its statistic in a log density. The statistics T of one member are one flat vector of length D; leading axes
of eta (..., D) run over copies, that is over independent members of the family.

Statistics that are symmetric matrices are kept whole, P^2 entries each. A then depends on the symmetric part
of their natural parameter alone, and V is singular.
"""

from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from math import prod

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike, NDArray

from sklearn_lrvb.symmetric_matrices import cholesky_factors, scaled_to_unit_diagonal

Seed = int | RandomState | None
# Of functions of x: means (..., d), covariances with T (..., d, D) and with each other (..., d, d).
Moments = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]


class NaturalParameterError(ValueError):
    """Natural parameters outside the domain of a family.

    Parameters
    ----------
    message : str
        The violation and its size.
    statistic : str
        The statistic whose natural parameter is at fault.
    copy : tuple of int
        The first copy where it is; () where there is one member only.

    Attributes
    ----------
    statistic : str
        As given.
    copy : tuple of int
        As given.

    Examples
    --------
    >>> from sklearn_lrvb.mean_field.exponential_families import Gamma, NaturalParameterError
    >>> try:
    ...     Gamma().check(Gamma().natural_parameters(shape=[2.0, 3.0], rate=[1.0, -1.0]))
    ... except NaturalParameterError as error:
    ...     print(error)
    the rate -1 is not positive (copy 1)
    """

    def __init__(self, message: str, statistic: str, copy: tuple[int, ...]) -> None:
        copy = tuple(int(position) for position in copy)
        super().__init__(message, statistic, copy)  # A pickle passes these arguments on.
        self.statistic = statistic
        self.copy = copy

    def __str__(self) -> str:
        where = f" (copy {', '.join(map(str, self.copy))})" if self.copy else ""
        return f"{self.args[0]}{where}"


class ExponentialFamily(ABC):
    """Base class of the families (Section 2 and Equation 2 of the paper).

    A family of your own defines ``statistics`` and the abstract methods below; `check_family` verifies that
    they agree with each other. Everything broadcasts over leading axes of the natural parameters.

    Examples
    --------
    The exponential distribution of a positive number x, with natural parameter -rate:

    >>> import numpy as np
    >>> from sklearn.utils import check_random_state
    >>> from sklearn_lrvb.mean_field.exponential_families import (
    ...     ExponentialFamily,
    ...     NaturalParameterError,
    ...     check_family,
    ... )
    >>> class Exponential(ExponentialFamily):
    ...     statistics = {"value": ()}
    ...     def log_partition(self, natural):
    ...         return -np.log(-natural[..., 0])
    ...     def mean_parameters(self, natural):
    ...         return -1.0 / natural
    ...     def covariance(self, natural):
    ...         return natural[..., None] ** -2.0
    ...     def check_domain(self, natural):
    ...         if np.any(natural >= 0):
    ...             raise NaturalParameterError("the rate is not positive", "value", ())
    ...     def default_natural_parameters(self):
    ...         return np.array([-1.0])
    ...     def sample(self, natural, n_draws, random_state=None):
    ...         shape = (n_draws, *natural.shape[:-1])
    ...         return check_random_state(random_state).standard_exponential(shape) / -natural[..., 0]
    ...     def statistics_of(self, value):
    ...         return value[..., None]
    >>> check_family(Exponential(), np.array([-0.5]))
    """

    @property
    @abstractmethod
    def statistics(self) -> dict[str, tuple[int, ...]]:
        """Name and shape of every sufficient statistic, in the order of the flat vector."""

    @abstractmethod
    def log_partition(self, natural: ArrayLike) -> NDArray[np.float64] | np.float64:
        """Log partition function A(eta), with all constants: (..., D) -> (...).

        Parameters
        ----------
        natural : array-like of shape (..., D)
            Natural parameters eta inside the domain.

        Returns
        -------
        log_partition : ndarray of shape (...)
            In nats. ``eta @ T(x) - A(eta)`` is then the normalized log density.

        Examples
        --------
        Probability 0.8 in logs, from the normalizing constant of a categorical distribution:

        >>> import numpy as np
        >>> from sklearn_lrvb.mean_field.exponential_families import Categorical
        >>> natural = np.array([np.log(4.0), 0.0])  # odds of 4 to 1
        >>> print(f"{np.exp(natural[0] - Categorical(2).log_partition(natural)):.1f}")
        0.8
        """

    @abstractmethod
    def mean_parameters(self, natural: ArrayLike) -> NDArray[np.float64]:
        """Means of the statistics, m = E T(x) = grad A: (..., D) -> (..., D).

        Parameters
        ----------
        natural : array-like of shape (..., D)
            Natural parameters eta inside the domain.

        Returns
        -------
        mean : ndarray of shape (..., D)
            Means of the statistics, in their units.

        Examples
        --------
        The mean of a gamma variable is shape over rate:

        >>> from sklearn_lrvb.mean_field.exponential_families import Gamma
        >>> mean, mean_log = Gamma().mean_parameters(Gamma().natural_parameters(shape=3.0, rate=2.0))
        >>> print(mean)
        1.5
        """

    @abstractmethod
    def covariance(self, natural: ArrayLike) -> NDArray[np.float64]:
        """Covariance of the statistics, V = Cov T(x) = hess A, exactly symmetric: (..., D) -> (..., D, D).

        Parameters
        ----------
        natural : array-like of shape (..., D)
            Natural parameters eta inside the domain.

        Returns
        -------
        covariance : ndarray of shape (..., D, D)
            Of the statistics, in products of their units; singular where they are linearly dependent.

        Examples
        --------
        The variance of a gamma variable is shape over squared rate:

        >>> from sklearn_lrvb.mean_field.exponential_families import Gamma
        >>> print(Gamma().covariance(Gamma().natural_parameters(shape=3.0, rate=2.0))[0, 0])
        0.75
        """

    @abstractmethod
    def check_domain(self, natural: NDArray[np.float64]) -> None:
        """Raise `NaturalParameterError` where finite natural parameters (..., D) have no member.

        Parameters
        ----------
        natural : ndarray of shape (..., D)
            Finite numbers.

        Raises
        ------
        NaturalParameterError
            It names the violation, its size, and the first copy concerned. A ValueError.

        See Also
        --------
        ExponentialFamily.check : The same for any numbers, and what users call.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn_lrvb.mean_field.exponential_families import Gamma
        >>> Gamma().check_domain(np.array([2.0, 0.0]))  # minus the rate, and the shape less one
        Traceback (most recent call last):
            ...
        sklearn_lrvb.mean_field.exponential_families.family.NaturalParameterError: the rate -2 is not positive
        """

    @abstractmethod
    def default_natural_parameters(self) -> NDArray[np.float64]:
        """Natural parameters of a proper member, at which coordinate ascent may start: (D,).

        Returns
        -------
        natural : ndarray of shape (D,)
            Inside the domain.

        Examples
        --------
        Normal distributions start as the standard normal one, with E x = 0 and E x^2 = 1:

        >>> from sklearn_lrvb.mean_field.exponential_families import UnivariateNormal
        >>> family = UnivariateNormal()
        >>> family.mean_parameters(family.default_natural_parameters())
        array([0., 1.])
        """

    @abstractmethod
    def sample(self, natural: ArrayLike, n_draws: int, random_state: Seed = None) -> NDArray:
        """Draws of x itself: (n_draws, copies..., shape of x).

        Parameters
        ----------
        natural : array-like of shape (..., D)
            Natural parameters eta inside the domain.
        n_draws : int
            Number of draws of every copy.
        random_state : int, RandomState instance or None, default=None
            Seed of the draws; None uses numpy's global generator.

        Returns
        -------
        draws : ndarray of shape (n_draws, copies..., shape of x)
            Independent draws, in units of x.

        Examples
        --------
        Ten thousand draws of a gamma variable with mean 1.5:

        >>> from sklearn_lrvb.mean_field.exponential_families import Gamma
        >>> draws = Gamma().sample(Gamma().natural_parameters(shape=3.0, rate=2.0), 10_000, random_state=0)
        >>> print(f"{draws.mean():.1f}")
        1.5
        """

    @abstractmethod
    def statistics_of(self, value: ArrayLike) -> NDArray[np.float64]:
        """Sufficient statistics T(x), flat: (..., shape of x) -> (..., D).

        Parameters
        ----------
        value : array-like of shape (..., shape of x)
            Values of x inside its range.

        Returns
        -------
        statistics : ndarray of shape (..., D)
            In the order of ``statistics``.

        Examples
        --------
        Those of a number under a normal distribution are the number and its square:

        >>> from sklearn_lrvb.mean_field.exponential_families import UnivariateNormal
        >>> UnivariateNormal().statistics_of([3.0, -1.0])
        array([[ 3.,  9.],
               [-1.,  1.]])
        """

    @property
    def variable(self) -> str:
        """Name of x itself, by which a guess of it is given; by default that of the first statistic."""
        return next(iter(self.statistics))

    def means_around(self, value: ArrayLike) -> NDArray[np.float64]:
        """Mean parameters for a guess of the variable, at which coordinate ascent may start.

        Parameters
        ----------
        value : array-like of shape (..., shape of x)
            The guess, inside the range of x. For categories it is their probabilities (..., K).

        Returns
        -------
        means : ndarray of shape (..., D)
            By default the statistics of the guess, as if x were known.

        Examples
        --------
        >>> from sklearn_lrvb.mean_field.exponential_families import Categorical, UnivariateNormal
        >>> UnivariateNormal().means_around(3.0)
        array([3., 9.])
        >>> Categorical(2).means_around([0.8, 0.2])
        array([0.8, 0.2])
        """
        return self.statistics_of(value)

    def variances(self, natural: ArrayLike) -> NDArray[np.float64]:
        """Variances of the statistics, the diagonal of V: (..., D) -> (..., D).

        By default those of `covariance`; families with many statistics have them without that matrix.

        Parameters
        ----------
        natural : array-like of shape (..., D)
            Natural parameters eta inside the domain.

        Returns
        -------
        variances : ndarray of shape (..., D)
            In squared units of the statistics.

        Examples
        --------
        >>> from sklearn_lrvb.mean_field.exponential_families import Gamma
        >>> print(Gamma().variances(Gamma().natural_parameters(shape=3.0, rate=2.0))[0])
        0.75
        """
        return np.einsum("...dd->...d", self.covariance(natural))

    def covariance_product(self, natural: ArrayLike, vectors: ArrayLike) -> NDArray[np.float64]:
        """V times vectors: (..., D), (..., D, m) -> (..., D, m).

        By default with the matrix V itself; families with many statistics do without it.

        Parameters
        ----------
        natural : array-like of shape (..., D)
            Natural parameters eta inside the domain.
        vectors : array-like of shape (..., D, m)
            Columns, in the order of ``statistics``.

        Returns
        -------
        product : ndarray of shape (..., D, m)
            Changes of the mean parameters where the natural parameters change by the columns.

        Examples
        --------
        How the mean of a gamma variable changes where its rate grows:

        >>> from sklearn_lrvb.mean_field.exponential_families import Gamma
        >>> natural = Gamma().natural_parameters(shape=3.0, rate=2.0)
        >>> print(Gamma().covariance_product(natural, [[-1.0], [0.0]])[0, 0])
        -0.75
        """
        return self.covariance(natural) @ np.asarray(vectors, dtype=float)

    @property
    def derived(self) -> dict[str, tuple[int, ...]]:
        """Name and shape of functions of x beside its statistics whose moments are known; by default none."""
        return {}

    def derived_moments(self, natural: ArrayLike) -> Moments:
        """Moments of all derived functions g of x, flat in the order of `derived`, of length d.

        Parameters
        ----------
        natural : array-like of shape (..., D)
            Natural parameters eta inside the domain.

        Returns
        -------
        mean : ndarray of shape (..., d)
            E g, infinite where it does not exist.
        cross_covariance : ndarray of shape (..., d, D)
            Cov(g, T), the derivative of E g in the natural parameters; zero where E g is infinite.
        covariance : ndarray of shape (..., d, d)
            Cov(g), with infinite variances where they do not exist.

        Raises
        ------
        NotImplementedError
            The family has no derived functions.

        Examples
        --------
        The probabilities of a Dirichlet distribution, the statistics of which are their logs:

        >>> from sklearn_lrvb.mean_field.exponential_families import Dirichlet
        >>> mean, _, covariance = Dirichlet(2).derived_moments(Dirichlet(2).natural_parameters([3.0, 1.0]))
        >>> mean, covariance
        (array([0.75, 0.25]), array([[ 0.0375, -0.0375],
               [-0.0375,  0.0375]]))
        """
        raise self._without("derived functions")

    @property
    def quantiles(self) -> dict[str, Callable]:
        """Quantile function of every statistic and derived function with a restricted range, by name.

        From a standard normal variable, the mean and the standard deviation, as in `quantiles`; what is not
        among them has normal quantiles.
        """
        return {}

    def derived_of(self, value: ArrayLike) -> NDArray[np.float64]:
        """Derived functions of x, flat: (..., shape of x) -> (..., d).

        Parameters
        ----------
        value : array-like of shape (..., shape of x)
            Values of x inside its range.

        Returns
        -------
        derived : ndarray of shape (..., d)
            In the order of `derived`.

        Raises
        ------
        NotImplementedError
            The family has no derived functions.

        Examples
        --------
        Variance and standard deviation of a precision of 4:

        >>> from sklearn_lrvb.mean_field.exponential_families import Gamma
        >>> Gamma().derived_of(4.0)
        array([0.25, 0.5 ])
        """
        raise self._without("derived functions")

    def coordinates_of(self, natural: NDArray[np.float64], value: ArrayLike) -> NDArray[np.float64]:
        """Coordinates u of the variable that may be any real numbers: (..., shape of x) -> (..., c).

        Draws by linear response need them: draws of u from q get its covariance by a linear map, and are
        mapped back (`MeanFieldPosterior.sample`).

        Parameters
        ----------
        natural : ndarray of shape (copies..., D)
            Natural parameters, at which a family may choose its coordinates.
        value : array-like of shape (..., copies..., shape of x)
            Values of x inside its range.

        Returns
        -------
        coordinates : ndarray of shape (..., copies..., c)
            One to one with x.

        Raises
        ------
        NotImplementedError
            The family has no coordinates, as for categories.

        Examples
        --------
        A positive number has its log:

        >>> from sklearn_lrvb.mean_field.exponential_families import Gamma
        >>> natural = Gamma().natural_parameters(shape=3.0, rate=2.0)
        >>> Gamma().coordinates_of(natural, 1.0)
        array([0.])
        """
        raise self._without("coordinates that may be any real numbers")

    def from_coordinates(self, natural: NDArray[np.float64], coordinates: ArrayLike) -> NDArray[np.float64]:
        """The inverse of `coordinates_of`: (..., c) -> (..., shape of x).

        Parameters
        ----------
        natural : ndarray of shape (copies..., D)
            The same natural parameters.
        coordinates : array-like of shape (..., copies..., c)
            Any real numbers.

        Returns
        -------
        value : ndarray of shape (..., copies..., shape of x)
            Inside the range of x.

        Raises
        ------
        NotImplementedError
            As in `coordinates_of`.

        Examples
        --------
        >>> from sklearn_lrvb.mean_field.exponential_families import Beta
        >>> print(Beta().from_coordinates(Beta().natural_parameters(a=2.0, b=1.0), [0.0]))
        0.5
        """
        raise self._without("coordinates that may be any real numbers")

    def coordinate_moments(self, natural: ArrayLike) -> Moments:
        """Moments of the coordinates under q, in the form of `derived_moments`.

        Parameters
        ----------
        natural : array-like of shape (..., D)
            Natural parameters eta inside the domain.

        Returns
        -------
        mean : ndarray of shape (..., c)
            E u.
        cross_covariance : ndarray of shape (..., c, D)
            Cov(u, T), the derivative of E u in the natural parameters.
        covariance : ndarray of shape (..., c, c)
            Cov(u).

        Raises
        ------
        NotImplementedError
            As in `coordinates_of`.

        Examples
        --------
        Mean and variance of the log of a gamma variable:

        >>> from sklearn_lrvb.mean_field.exponential_families import Gamma
        >>> mean, _, variance = Gamma().coordinate_moments(Gamma().natural_parameters(shape=3.0, rate=2.0))
        >>> print(f"{mean[0]:.4f} {variance[0, 0]:.4f}")
        0.2296 0.3949
        """
        raise self._without("coordinates that may be any real numbers")

    def log_volume(self, coordinates: NDArray[np.float64]) -> NDArray[np.float64]:
        """``log |dx/du|`` at coordinates u, up to a constant: (..., c) -> (...).

        Parameters
        ----------
        coordinates : ndarray of shape (..., c)
            Any real numbers.

        Returns
        -------
        log_volume : ndarray of shape (...)
            What log densities of u have more than those of x.

        Raises
        ------
        NotImplementedError
            As in `coordinates_of`.

        Examples
        --------
        The coordinate of a positive number is its log, whose exponential has the derivative exp(u):

        >>> import numpy as np
        >>> from sklearn_lrvb.mean_field.exponential_families import Gamma
        >>> print(Gamma().log_volume(np.array([1.5])))
        1.5
        """
        raise self._without("volume of coordinates")

    def _without(self, what):
        """The error of a family that does not define an optional method."""
        return NotImplementedError(f"{type(self).__name__} has no {what}.")

    def _linear_coordinates(self, natural, matrix):
        """`coordinate_moments` of a linear function of the statistics, given by a matrix (c, D)."""
        cross_covariance = matrix @ self.covariance(natural)
        return self.mean_parameters(natural) @ matrix.T, cross_covariance, cross_covariance @ matrix.T

    def location_deviations(self, natural: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
        """Standard deviations of the statistics that are shifted with the data's origin; by default none.

        Raw moments of such a statistic lose digits where its mean is many of these from zero.

        Parameters
        ----------
        natural : ndarray of shape (..., D)
            Natural parameters eta inside the domain.

        Returns
        -------
        deviations : dict, name of the statistic -> ndarray of shape (..., shape of the statistic)
            In units of the statistic.

        Examples
        --------
        A normal variable has a location, a gamma variable has none:

        >>> from sklearn_lrvb.mean_field.exponential_families import Gamma, UnivariateNormal
        >>> natural = UnivariateNormal().natural_parameters(mean=70.0, precision=0.25)
        >>> UnivariateNormal().location_deviations(natural)
        {'value': array(2.)}
        >>> Gamma().location_deviations(Gamma().natural_parameters(shape=3.0, rate=2.0))
        {}
        """
        return {}

    @cached_property
    def n_statistics(self) -> int:
        """D, length of the flat vector."""
        return sum(prod(shape) for shape in self.statistics.values())

    @cached_property
    def slices(self) -> dict[str, slice]:
        """Slice of the flat vector of every statistic."""
        return _slices(self.statistics)

    @cached_property
    def n_derived(self) -> int:
        """d, length of the flat vector of derived functions."""
        return sum(prod(shape) for shape in self.derived.values())

    @cached_property
    def derived_slices(self) -> dict[str, slice]:
        """Slice of the flat vector of derived functions of every one."""
        return _slices(self.derived)

    @cached_property
    def owners(self) -> list[str]:
        """Name of the statistic that every entry of the flat vector belongs to, (D,)."""
        return [name for name, shape in self.statistics.items() for _ in range(prod(shape))]

    def pack(self, *entries: ArrayLike) -> NDArray[np.float64]:
        """One flat vector from the entries of every statistic; leading axes broadcast against each other.

        Parameters
        ----------
        *entries : array-like of shape (..., shape of the statistic)
            One for every statistic in the order of ``statistics``: natural parameters, mean parameters or
            statistics.

        Returns
        -------
        flat : ndarray of shape (..., D)
            The entries one after the other, matrices row by row.

        Raises
        ------
        ValueError
            The number of entries, or their last axes, are not those of the statistics.

        Examples
        --------
        >>> from sklearn_lrvb.mean_field.exponential_families import Gamma
        >>> shape, rate = 3.0, 0.5
        >>> Gamma().pack(-rate, shape - 1)
        array([-0.5,  2. ])
        """
        if len(entries) != len(self.statistics):
            raise ValueError(
                f"{type(self).__name__} packs {len(self.statistics)} arrays ({', '.join(self.statistics)}), "
                f"got {len(entries)}."
            )
        arrays = [np.asarray(entry, dtype=float) for entry in entries]
        leads = []
        for entry, (name, shape) in zip(arrays, self.statistics.items(), strict=True):
            n_leading = entry.ndim - len(shape)
            if n_leading < 0 or entry.shape[n_leading:] != shape:
                raise ValueError(
                    f"{type(self).__name__} packs {name!r} of shape {shape} after any leading axes; "
                    f"got shape {entry.shape}."
                )
            leads.append(entry.shape[:n_leading])
        lead = np.broadcast_shapes(*leads)
        flat = [
            np.broadcast_to(entry, (*lead, *shape)).reshape(*lead, -1)
            for entry, shape in zip(arrays, self.statistics.values(), strict=True)
        ]
        return np.concatenate(flat, axis=-1)

    def check(self, natural: ArrayLike) -> None:
        """Raise an error unless the natural parameters have a member of the family.

        Parameters
        ----------
        natural : array-like of shape (..., D)
            Natural parameters eta, or any other numbers.

        Raises
        ------
        NaturalParameterError
            It names the violation, its size, and the first copy concerned. A ValueError.
        ValueError
            The last axis is not D long.

        Examples
        --------
        >>> from sklearn_lrvb.mean_field.exponential_families import Gamma
        >>> Gamma().check(Gamma().natural_parameters(shape=3.0, rate=2.0))  # nothing is wrong
        >>> Gamma().check(Gamma().natural_parameters(shape=3.0, rate=-2.0))
        Traceback (most recent call last):
            ...
        sklearn_lrvb.mean_field.exponential_families.family.NaturalParameterError: the rate -2 is not positive
        """
        natural = np.asarray(natural, dtype=float)
        if natural.ndim == 0 or natural.shape[-1] != self.n_statistics:
            raise ValueError(
                f"{type(self).__name__} takes natural parameters (..., {self.n_statistics}), "
                f"got shape {natural.shape}."
            )
        refuse(natural, ~np.isfinite(natural), "the natural parameter {} is not finite", self.owners)
        self.check_domain(natural)


def _slices(shapes):
    """Slices of a flat vector of arrays of these shapes: dict."""
    slices, start = {}, 0
    for name, shape in shapes.items():
        slices[name] = slice(start, start + prod(shape))
        start += prod(shape)
    return slices


def require_count(what, value):
    """Raise a ValueError unless ``value`` is a whole number of at least 1; ``what`` names it."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < 1:
        raise ValueError(f"{what} must be a whole number of at least 1; got {value!r}.")


def refuse(values, wrong, message, statistics):
    """Raise `NaturalParameterError` at the first of the ``values`` that is ``wrong``, if there is one.

    Parameters
    ----------
    values, wrong : ndarrays of shape (..., n)
    message : str
        With {} for the value.
    statistics : list of str of length n
        The statistic that is at fault for every entry of the last axis.
    """
    if np.any(wrong):
        position = tuple(np.argwhere(wrong)[0])
        shown = message.format(f"{values[position] + 0.0:.4g}")  # + 0.0: no "-0"
        raise NaturalParameterError(shown, statistics[position[-1]], position[:-1])


def refuse_indefinite(matrices, what, statistic):
    """Raise `NaturalParameterError` where a matrix (..., P, P) is not positive definite, at the worst.

    Singular to working precision, in any units, counts as not positive definite (`symmetric_matrices`).
    """
    n_features = matrices.shape[-1]
    diagonal = np.einsum("...pp->...p", matrices)
    message = f"{what} is not positive definite: its diagonal holds {{}}"
    refuse(diagonal, ~(diagonal > 0), message, [statistic] * n_features)
    if np.isnan(cholesky_factors(matrices.reshape(-1, n_features, n_features))).any():
        correlations, _ = scaled_to_unit_diagonal(matrices)
        smallest = np.linalg.eigvalsh(correlations)[..., :1]
        message = (
            f"{what} is not positive definite to working precision: smallest eigenvalue {{}} once it is "
            "scaled to unit diagonal"
        )
        refuse(smallest, smallest == smallest.min(), message, [statistic])
