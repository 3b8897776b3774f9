"""What a posterior is asked for: entries of statistics, or of functions that a family derives from x.

*Conventions.* A derived function g of a factor's variable counts as a further statistic, of which the log
joint has no term. Its covariance with the statistics T under q is Cov(g, T); what T does not explain of it,
Cov(g) - Cov(g, T) V^+ Cov(T, g), is the same under linear response.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse
from scipy.linalg import solve_triangular

from sklearn_lrvb.distributions.special_functions import normal_quantile
from sklearn_lrvb.mean_field.factor import (
    Factor,
    covariance_of,
    covariance_product,
    entry_label,
    named_entry,
    with_copies,
)
from sklearn_lrvb.rows import batches
from sklearn_lrvb.symmetric_matrices import cholesky_equilibrated


@dataclass(frozen=True, eq=False)
class Quantity:
    """Entries of a factor's statistics, or of its derived functions.

    Attributes
    ----------
    name : str
        Of the factor.
    factor : Factor
    label : str
        "factor.statistic", or "factor" for all statistics.
    shape : tuple of int
        Of the entries, copies first.
    positions : int ndarray of shape (n,)
        In the factor's flat vector of statistics, or in that of derived functions, copy by copy.
    n_each : int
        Number of entries of a copy in this vector.
    moments : callable, natural parameters -> tuple, or None
        Of functions of the variable: their means, covariances with the statistics, and own covariances, as
        `ExponentialFamily.derived_moments` returns them. None for statistics.
    """

    name: str
    factor: Factor
    label: str
    shape: tuple[int, ...]
    positions: np.ndarray
    n_each: int
    moments: Callable | None = None

    @property
    def is_derived(self):
        """Whether the quantity is a function of the variable, and no statistic."""
        return self.moments is not None

    def labels(self):
        """Labels of the entries, such as "mu.value[0]": (n,)."""
        if self.label == self.name:
            return self.factor.labels(self.name)
        return np.array([entry_label(self.label, index) for index in np.ndindex(*self.shape)], dtype=object)

    def quantiles(self, normal, mean, deviation):
        """Quantiles at a standard normal number: (n,), nan where there is no standard deviation."""
        quantile = self.factor.family.quantiles.get(self.label.partition(".")[2], normal_quantile)
        quantiles = np.where(deviation == 0, mean, np.nan)
        known = np.isfinite(mean) & (deviation > 0) & np.isfinite(deviation)
        quantiles[known] = quantile(np.full(known.sum(), normal), mean[known], deviation[known])
        return quantiles

    def derived_means(self, natural):
        """Means under q of functions of the variable, (n,)."""
        return self.moments(natural)[0].reshape(-1)[self.positions]

    def variances(self, natural):
        """Variances under q, (n,)."""
        if not self.is_derived:
            return self.factor.family.variances(natural).reshape(-1)[self.positions]
        covariance = self.moments(natural)[2]
        return np.einsum("...dd->...d", covariance).reshape(-1)[self.positions]

    def covariance(self, natural, other):
        """Covariance under q with another quantity of the factor, (n, m)."""
        if not self.is_derived and not other.is_derived:
            return covariance_of(self.factor, natural, self.positions, other.positions)
        if self.is_derived and other.is_derived:
            return self._between(self.moments(natural)[2], other)
        if other.is_derived:
            return other.covariance(natural, self).T
        return self._rows_of_members(self.moments(natural)[1])[:, other.positions].toarray()

    def unexplained_covariance(self, natural, other):
        """The part of `covariance` that the statistics do not explain, (n, m)."""
        if not (self.is_derived and other.is_derived):
            return np.zeros((len(self.positions), len(other.positions)))
        _, cross, covariance = self.moments(natural)
        explained = _regression(self.factor, natural, cross) @ cross.swapaxes(-1, -2)
        return self._between(covariance - explained, other)

    def coefficients(self, natural):
        """The linear function of the statistics that explains the quantity best: sparse (n, size)."""
        if self.is_derived:
            return self._rows_of_members(_regression(self.factor, natural, self.moments(natural)[1]))
        entries = np.ones(len(self.positions)), (np.arange(len(self.positions)), self.positions)
        return sparse.csr_array(entries, shape=(len(self.positions), self.factor.size))

    def product(self, natural, columns):
        """Cov(quantity, T) times dense or sparse columns (size, m): dense or sparse like these, (n, m)."""
        if self.is_derived:
            return self._rows_of_members(self.moments(natural)[1]) @ columns
        return covariance_product(self.factor, natural, columns, self.positions)

    def of_copies(self, copies):
        """The entries of some copies along their first axis: their indices (n,), and the `Quantity`.

        Parameters
        ----------
        copies : slice
            slice(None) for a factor without copies.
        """
        if copies == slice(None):
            return np.arange(len(self.positions)), self
        n_each = self.n_each * self.factor.n_members // self.factor.lead[0]
        start, stop = copies.start * n_each, copies.stop * n_each
        indices = np.flatnonzero((start <= self.positions) & (self.positions < stop))
        factor = with_copies(self.factor, copies)
        return indices, replace(self, factor=factor, positions=self.positions[indices] - start)

    @property
    def _members(self):
        """Member, and number within it, of every entry."""
        return np.divmod(self.positions, self.n_each)

    def _rows_of_members(self, blocks):
        """Rows of a block diagonal matrix, from blocks (..., d, D) of all members: sparse (n, size)."""
        member, own = self._members
        n_statistics = self.factor.family.n_statistics
        rows = blocks.reshape(-1, *blocks.shape[-2:])[member, own]
        columns = member[:, None] * n_statistics + np.arange(n_statistics)
        pointers = n_statistics * np.arange(len(member) + 1)
        return sparse.csr_array(
            (rows.ravel(), columns.ravel(), pointers), shape=(len(member), self.factor.size)
        )

    def _between(self, blocks, other):
        """Entries of a block diagonal matrix, from blocks (..., d, d) of all members: (n, m)."""
        blocks = blocks.reshape(-1, *blocks.shape[-2:])
        (member, own), (other_member, others_own) = self._members, other._members
        entries = blocks[member[:, None], own[:, None], others_own]
        return np.where(member[:, None] == other_member, entries, 0.0)


def _regression(factor, natural, cross):
    """Cov(g, T) V^+ of every member: (..., d, D) -> (..., d, D)."""
    covariance = factor.family.covariance(natural)
    scale = np.sqrt(np.einsum("...dd->...d", covariance))
    scale = np.where(scale > 0, scale, 1.0)
    correlations = covariance / (scale[..., :, None] * scale[..., None, :])
    inverse = np.linalg.pinv(correlations, hermitian=True)
    return (cross / scale[..., None, :]) @ inverse / scale[..., None, :]


def own_covariances(quantities, natural, between):
    """Yield the blocks of a matrix over quantities that are not zero, some columns at a time.

    Parameters
    ----------
    quantities : list of Quantity
    natural : dict, name of the factor -> ndarray
    between : callable, (Quantity, natural parameters, Quantity) -> ndarray

    Yields
    ------
    rows, columns : slice
    block : ndarray
    """
    ends = np.cumsum([0, *(len(quantity.positions) for quantity in quantities)])
    parts = [slice(*ends[i : i + 2]) for i in range(len(quantities))]
    for part, quantity in zip(parts, quantities, strict=True):
        for other_part, other in zip(parts, quantities, strict=True):
            if quantity.name == other.name:
                for chunk in batches(len(other.positions), 8 * len(quantity.positions)):
                    columns = slice(other_part.start + chunk.start, other_part.start + chunk.stop)
                    some = replace(other, positions=other.positions[chunk])
                    yield part, columns, between(quantity, natural[quantity.name], some)


def resolve_quantity(text, factors, single=False):
    """The `Quantity` of "factor.statistic", "factor.derived function", or "factor" for all of its statistics.

    Parameters
    ----------
    text : str
    factors : dict, name -> Factor
    single : bool, default=False
        Whether "factor" stands for the only statistic of its family, and is refused where there are several.

    Raises
    ------
    ValueError
        There is none of this name.
    """
    if not isinstance(text, str):
        raise ValueError(
            "a statistic is named by a string, such as 'factor.statistic', and several by one argument each; "
            f"got {text!r}."
        )
    name, entry = named_entry(text, factors)
    factor, family = factors[name], factors[name].family
    if text == name and not single:
        return Quantity(name, factor, name, (factor.size,), np.arange(factor.size), family.n_statistics)
    label = f"{name}.{entry}"
    if entry in family.statistics:
        shape, positions = factor.statistic_shape(entry), factor.positions(entry)
        return Quantity(name, factor, label, shape, positions, family.n_statistics)
    if entry not in family.derived:
        known = ", ".join(f"{name}.{statistic}" for statistic in (*family.statistics, *family.derived))
        raise ValueError(f"{text!r} names no statistic of {type(family).__name__}; it has {known}.")
    positions = np.arange(factor.n_members * family.n_derived).reshape(factor.n_members, -1)
    positions = positions[:, family.derived_slices[entry]].ravel()
    shape = (*factor.lead, *family.derived[entry])
    return Quantity(name, factor, label, shape, positions, family.n_derived, family.derived_moments)


def coordinates(name, factor, natural):
    """The `Quantity` of the coordinates of a factor's variable, in which it may be any real numbers.

    Raises
    ------
    ValueError
        The family has none.
    """
    try:
        mean = factor.family.coordinate_moments(natural)[0]
    except NotImplementedError:
        raise ValueError(
            f"{name!r} has no draws by linear response: the family {factor.family} defines no coordinates. "
            f"Leave it out of names, or draw from q alone, method='mean_field'."
        ) from None
    positions, n_each = np.arange(mean.size), mean.shape[-1]
    return Quantity(name, factor, name, (mean.size,), positions, n_each, factor.family.coordinate_moments)


def correlated_draws(quantities, natural, draws, covariance):
    """Draws of the variables of some factors by linear response.

    Parameters
    ----------
    quantities : list of Quantity
        Coordinates of every factor.
    natural : dict, name -> ndarray
    draws : dict, name -> ndarray of shape (n_draws, copies..., shape of the variable)
        From q.
    covariance : ndarray of shape (d, d)
        Of all coordinates, by linear response.

    Returns
    -------
    drawn : dict, name -> ndarray
    coordinates : dict, name -> ndarray of shape (n_draws, copies..., c)
    deviations : ndarray of shape (n_draws, d)
        How far coordinates are from their means.
    """
    whitened = np.concatenate([_whitened(of, natural[of.name], draws[of.name]) for of in quantities], axis=1)
    root = cholesky_equilibrated(covariance)
    if root is None:
        raise ValueError(
            "The covariance of the draws is not positive definite: a factor has a variance of zero. Leave it "
            "out of names."
        )
    correlated, ends = whitened @ root.T, np.cumsum([0, *(len(of.positions) for of in quantities)])
    drawn, coordinates = {}, {}
    for quantity, start, end in zip(quantities, ends[:-1], ends[1:], strict=True):
        name, family = quantity.name, quantity.factor.family
        mean = quantity.derived_means(natural[name])
        own = (mean + correlated[:, start:end]).reshape(len(correlated), *quantity.factor.lead, -1)
        drawn[name], coordinates[name] = family.from_coordinates(natural[name], own), own
    return drawn, coordinates, correlated


def _whitened(quantity, natural, draws):
    """Coordinates of draws from q, member by member of unit covariance: (n_draws, n)."""
    mean, _, covariance = quantity.moments(natural)
    centred = quantity.factor.family.coordinates_of(natural, draws) - mean
    n_each = mean.shape[-1]
    centred = centred.reshape(len(draws), -1, n_each)
    for member, block in enumerate(covariance.reshape(-1, n_each, n_each)):
        root = np.linalg.cholesky(block)
        centred[:, member] = solve_triangular(root, centred[:, member].T, lower=True).T
    return centred.reshape(len(draws), -1)
