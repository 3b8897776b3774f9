"""What an exponential family knows: the protocol that `mean_field` builds on.

*Conventions.* The density of x with respect to Lebesgue measure (counting measure for categories) is
exp(eta . T(x) - A(eta)), every constant in A, so that a natural parameter is exactly the coefficient of its
statistic in a log density. The statistics T of one member are one flat vector of length D; leading axes of
eta (..., D) run over copies, that is over independent members of the family.

Statistics that are symmetric matrices are kept whole, P^2 entries each: A depends on the symmetric part of
their natural parameter alone, and V is singular.
"""

import numbers
from abc import ABC, abstractmethod
from functools import cached_property
from math import prod

import numpy as np


class NaturalParameterError(ValueError):
    """Natural parameters outside the family's domain.

    Attributes
    ----------
    statistic : str, the statistic whose natural parameter is at fault
    copy : tuple of int, the first copy where it is; () where there is one member only
    """

    def __init__(self, message, statistic, copy):
        copy = tuple(int(position) for position in copy)
        super().__init__(message, statistic, copy)  # what a pickle passes on
        self.statistic = statistic
        self.copy = copy

    def __str__(self):
        where = f" (copy {', '.join(map(str, self.copy))})" if self.copy else ""
        return f"{self.args[0]}{where}"


class ExponentialFamily(ABC):
    """Base class of the families (Section 2, Eq. variational_exp_def).

    A family of your own defines ``statistics`` and the abstract methods below; `check_family` proves that
    they agree with each other. Everything broadcasts over leading axes of the natural parameters.
    """

    @property
    @abstractmethod
    def statistics(self):
        """Name -> shape of every sufficient statistic, in the order of the flat vector: dict."""

    @abstractmethod
    def log_partition(self, natural):
        """A(eta), every constant included: (..., D) -> (...)."""

    @abstractmethod
    def mean_parameters(self, natural):
        """m = E T(x) = grad A: (..., D) -> (..., D)."""

    @abstractmethod
    def covariance(self, natural):
        """V = Cov T(x) = hess A, exactly symmetric: (..., D) -> (..., D, D)."""

    @abstractmethod
    def check_domain(self, natural):
        """Raise `NaturalParameterError` where finite natural parameters (..., D) have no member."""

    @abstractmethod
    def default_natural_parameters(self):
        """A proper member to start from: (D,)."""

    @abstractmethod
    def sample(self, natural, n_draws, random_state=None):
        """Draws of x itself: (n_draws, copies..., shape of x)."""

    @abstractmethod
    def statistics_of(self, value):
        """T(x), flat: (..., shape of x) -> (..., D)."""

    def location_deviations(self, natural):
        """Standard deviations of the statistics that move with the data's origin, as x does; by default none.

        Returns
        -------
        dict, statistic -> array (..., *shape)
        """
        return {}

    @cached_property
    def n_statistics(self):
        """D, length of the flat vector."""
        return sum(prod(shape) for shape in self.statistics.values())

    @cached_property
    def slices(self):
        """Name -> slice of the flat vector: dict."""
        slices, start = {}, 0
        for name, shape in self.statistics.items():
            slices[name] = slice(start, start + prod(shape))
            start += prod(shape)
        return slices

    @cached_property
    def owners(self):
        """Name of the statistic of every entry of the flat vector: list (D,)."""
        return [name for name, shape in self.statistics.items() for _ in range(prod(shape))]

    def unpack(self, flat):
        """The statistics' entries of a flat vector, in the order of ``statistics``.

        Parameters
        ----------
        flat : array (..., D), natural parameters, mean parameters or statistics

        Returns
        -------
        list of arrays (..., *shape), views
        """
        flat = np.asarray(flat, dtype=float)
        return [
            flat[..., self.slices[name]].reshape((*flat.shape[:-1], *shape))
            for name, shape in self.statistics.items()
        ]

    def pack(self, *entries):
        """Inverse of `unpack`; leading axes broadcast against each other.

        Parameters
        ----------
        *entries : arrays (..., *shape), one for every statistic in the order of ``statistics``

        Returns
        -------
        array (..., D)

        Raises
        ------
        ValueError
            Where the number of entries, or their last axes, are not those of the statistics.

        Examples
        --------
        >>> from sklearn_lrvb.exponential_families import Gamma
        >>> shape, rate = 3.0, 0.5
        >>> Gamma().pack(-rate, shape - 1)
        array([-0.5,  2. ])
        """
        if len(entries) != len(self.statistics):
            raise ValueError(
                f"{type(self).__name__} packs {len(self.statistics)} arrays ({', '.join(self.statistics)}), "
                f"got {len(entries)}."
            )
        entries = [np.asarray(entry, dtype=float) for entry in entries]
        leads = []
        for entry, (name, shape) in zip(entries, self.statistics.items(), strict=True):
            n_leading = entry.ndim - len(shape)
            if n_leading < 0 or entry.shape[n_leading:] != shape:
                raise ValueError(
                    f"{type(self).__name__} packs {name!r} of shape {shape}, leading axes before it; "
                    f"got shape {entry.shape}."
                )
            leads.append(entry.shape[:n_leading])
        lead = np.broadcast_shapes(*leads)
        flat = [
            np.broadcast_to(entry, (*lead, *shape)).reshape(*lead, -1)
            for entry, shape in zip(entries, self.statistics.values(), strict=True)
        ]
        return np.concatenate(flat, axis=-1)

    def check(self, natural):
        """Refuse natural parameters that have no member of the family.

        Parameters
        ----------
        natural : array (..., D)

        Raises
        ------
        NaturalParameterError
            Naming what is wrong, by how much, and the first copy where it is.
        ValueError
            Where the last axis is not D long.
        """
        natural = np.asarray(natural, dtype=float)
        if natural.ndim == 0 or natural.shape[-1] != self.n_statistics:
            raise ValueError(
                f"{type(self).__name__} takes natural parameters (..., {self.n_statistics}), "
                f"got shape {natural.shape}."
            )
        refuse(natural, ~np.isfinite(natural), "the natural parameter {} is not finite", self.owners)
        self.check_domain(natural)


def require_count(what, value):
    """Refuse what is not a whole number of at least 1."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < 1:
        raise ValueError(f"{what} must be a whole number of at least 1; got {value!r}.")


def refuse(values, wrong, message, statistics):
    """Raise `NaturalParameterError` at the first of the ``values`` that is ``wrong``.

    Parameters
    ----------
    values, wrong : arrays (..., n)
    message : str, with {} for the value
    statistics : list of str (n,), the statistic at fault for every entry of the last axis
    """
    if np.any(wrong):
        position = tuple(np.argwhere(wrong)[0])
        shown = message.format(f"{values[position] + 0.0:.4g}")  # + 0.0: no "-0"
        raise NaturalParameterError(shown, statistics[position[-1]], position[:-1])


def refuse_indefinite(matrices, what, statistic):
    """Raise `NaturalParameterError` where matrices (..., P, P) are not positive definite, at the worst.

    In any units: a pivot of the matrix scaled to unit diagonal is the share of a coordinate that those before
    it leave over, and is round-off below 10 P eps.
    """
    n_features = matrices.shape[-1]
    diagonal = np.einsum("...pp->...p", matrices)
    message = f"{what} is not positive definite: its diagonal holds {{}}"
    refuse(diagonal, ~(diagonal > 0), message, [statistic] * n_features)
    scale = np.sqrt(diagonal)
    correlations = matrices / scale[..., :, None] / scale[..., None, :]
    try:
        pivots = np.einsum("...pp->...p", np.linalg.cholesky(correlations))
        positive = np.all(pivots**2 >= 10 * n_features * np.finfo(float).eps)
    except np.linalg.LinAlgError:
        positive = False
    if not positive:
        smallest = np.linalg.eigvalsh(correlations)[..., :1]
        message = (
            f"{what} is not positive definite to working precision: smallest eigenvalue {{}} once it is "
            "scaled to unit diagonal"
        )
        refuse(smallest, smallest == smallest.min(), message, [statistic])
