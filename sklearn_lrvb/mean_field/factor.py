"""Factors of q, the positions of their statistics in flat vectors, and products with their V.

*Conventions.* The parameters of a factor are an array (D,), or (copies, D), where copies may be several axes.
The flat vector of a model runs factor by factor, then copy by copy, then through the family's statistics.
V of one factor is that of its flat vector, (size, size), block diagonal over the members, and is never formed
as a whole.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import prod

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from sklearn_lrvb.mean_field.arguments import numbers
from sklearn_lrvb.mean_field.exponential_families import ExponentialFamily
from sklearn_lrvb.mean_field.exponential_families.family import require_count
from sklearn_lrvb.rows import batches

# Number of a member's statistics up to which its V is stored, instead of products computed by the family.
_STORED_UP_TO = 40


@dataclass(frozen=True)
class Factor:
    """One factor of q: a member of a family, or several independent members.

    Parameters
    ----------
    family : ExponentialFamily
        The family of every member.
    copies : int or tuple of int, default=None
        Number of independent members. Their statistics then have a leading axis (copies, ...), or leading
        axes for a tuple such as (3, 4). None is one member, without that axis.
    weights : array-like of shape (copies...), default=None
        How many equal members each copy stands for, at least 0 and not necessarily whole; None is one. In
        the log joint every statistic of a copy counts that many times, and so does its entropy. Means and
        standard deviations are those of one member. Where a factor chooses components (``given="z"``),
        `MeanFieldModel` takes its weights from the likelihoods. Densities refuse factors of other families
        that have weights; a `Term` takes any.

    Raises
    ------
    ValueError
        ``family`` is no family, ``copies`` neither a whole number of at least 1 nor a tuple of these, or
        ``weights`` are negative, not finite, or of another shape.

    Examples
    --------
    >>> from sklearn_lrvb.mean_field.exponential_families import Categorical
    >>> from sklearn_lrvb.mean_field import Factor
    >>> factor = Factor(Categorical(3), copies=50)  # the indicators of 50 observations
    >>> factor.shape, factor.statistic_shape("indicator")
    ((50, 3), (50, 3))
    >>> Factor(Categorical(3), copies=(50, 2)).statistic_shape("indicator")
    (50, 2, 3)
    """

    family: ExponentialFamily
    copies: int | tuple[int, ...] | None = None
    weights: ArrayLike | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.family, ExponentialFamily):
            raise ValueError(
                f"A factor's family is an ExponentialFamily, such as Gamma(); got {self.family!r}."
            )
        for count in self.copies if isinstance(self.copies, tuple) else self.lead:
            require_count("A factor's copies", count)
        if self.weights is not None:
            object.__setattr__(self, "weights", case_weights(self.weights, self.lead))

    def __str__(self) -> str:
        copies = f"{' x '.join(map(str, self.lead))} " if self.lead else ""
        return f"{copies}{self.family}"

    @property
    def lead(self) -> tuple[int, ...]:
        """Leading axes of all arrays of the factor: () or (copies,), or the tuple of copies."""
        if self.copies is None:
            return ()
        return self.copies if isinstance(self.copies, tuple) else (self.copies,)

    @property
    def n_members(self) -> int:
        """Number of independent members, 1 where there are no copies."""
        return prod(self.lead)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of natural and mean parameters: (D,) or (copies, D)."""
        return (*self.lead, self.family.n_statistics)

    @property
    def size(self) -> int:
        """Number of statistics of all copies."""
        return prod(self.shape)

    def statistic_shape(self, statistic: str) -> tuple[int, ...]:
        """Shape of one statistic, the copies' axis first.

        Parameters
        ----------
        statistic : str
            Name of a statistic of the family.

        Returns
        -------
        shape : tuple of int
            (copies, ...), or without the first where there are no copies.

        Examples
        --------
        >>> from sklearn_lrvb.mean_field.exponential_families import MultivariateNormal
        >>> from sklearn_lrvb.mean_field import Factor
        >>> Factor(MultivariateNormal(2), copies=50).statistic_shape("outer")
        (50, 2, 2)
        """
        return (*self.lead, *self.family.statistics[statistic])

    def index(self, statistic: str) -> tuple[slice, ...]:
        """Index of one statistic in the factor's parameters, a slice for every axis.

        Parameters
        ----------
        statistic : str
            Name of a statistic of the family.

        Returns
        -------
        index : tuple of slice
            Into arrays of shape ``Factor.shape``.

        Examples
        --------
        >>> from sklearn_lrvb.mean_field.exponential_families import Gamma
        >>> from sklearn_lrvb.mean_field import Factor
        >>> Factor(Gamma(), copies=50).index("log")
        (slice(None, None, None), slice(1, 2, None))
        """
        return (*(slice(None) for _ in self.lead), self.family.slices[statistic])

    def entries(self, parameters: NDArray[np.float64], statistic: str) -> NDArray[np.float64]:
        """The entries of one statistic in its shape, copies first: a view of ``parameters``.

        Parameters
        ----------
        parameters : ndarray of shape (D,) or (copies, D)
            Natural or mean parameters of the factor.
        statistic : str
            Name of a statistic of the family.

        Returns
        -------
        entries : ndarray
            In the shape of :meth:`statistic_shape`.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn_lrvb.mean_field.exponential_families import Gamma
        >>> from sklearn_lrvb.mean_field import Factor
        >>> factor = Factor(Gamma(), copies=3)
        >>> means = factor.family.mean_parameters(Gamma().natural_parameters(shape=[1.0, 2.0, 3.0], rate=2.0))
        >>> factor.entries(means, "value")  # shape over rate
        array([0.5, 1. , 1.5])
        """
        return parameters[self.index(statistic)].reshape(self.statistic_shape(statistic))

    def positions(self, statistic: str) -> NDArray[np.intp]:
        """Positions of one statistic's entries in the factor's flat vector.

        Parameters
        ----------
        statistic : str
            Name of a statistic of the family.

        Returns
        -------
        positions : int ndarray of shape (n,)
            Of all copies, n being the number of the statistic's entries.

        Examples
        --------
        >>> from sklearn_lrvb.mean_field.exponential_families import Gamma
        >>> from sklearn_lrvb.mean_field import Factor
        >>> Factor(Gamma(), copies=3).positions("log")
        array([1, 3, 5])
        """
        positions = np.arange(self.size).reshape(self.shape)
        return positions[self.index(statistic)].ravel()

    def covariance_blocks(self, natural: NDArray[np.float64]) -> NDArray[np.float64]:
        """V of every copy: natural parameters in the factor's shape -> (1 or copies, D, D).

        Parameters
        ----------
        natural : ndarray of shape (D,) or (copies, D)
            Natural parameters of the factor.

        Returns
        -------
        blocks : ndarray of shape (1 or copies, D, D)
            In products of the units of the statistics.

        Examples
        --------
        >>> from sklearn_lrvb.mean_field.exponential_families import Gamma
        >>> from sklearn_lrvb.mean_field import Factor
        >>> natural = Gamma().natural_parameters(shape=[1.0, 2.0, 3.0], rate=2.0)
        >>> blocks = Factor(Gamma(), copies=3).covariance_blocks(natural)
        >>> blocks[:, 0, 0]  # variances, shape over squared rate
        array([0.25, 0.5 , 0.75])
        """
        return self.family.covariance(natural).reshape(-1, self.shape[-1], self.shape[-1])

    def counted(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Numbers of every copy times its weight; the array itself where copies have no weights.

        Parameters
        ----------
        values : ndarray of shape (copies..., ...)
            A number, or an array such as parameters, for every copy.

        Returns
        -------
        counted : ndarray of the same shape
            Sums over the members that each copy stands for.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn_lrvb.mean_field.exponential_families import Categorical
        >>> from sklearn_lrvb.mean_field import Factor
        >>> Factor(Categorical(2), copies=2, weights=[1.0, 3.0]).counted(np.array([[0.5, 0.5], [0.0, 1.0]]))
        array([[0.5, 0.5],
               [0. , 3. ]])
        """
        if self.weights is None:
            return values
        return values * np.reshape(self.weights, self.lead + (1,) * (values.ndim - len(self.lead)))

    def labels(self, name: str) -> NDArray[np.object_]:
        """Labels of the factor's flat vector, such as "mu.value[0]" or "z.indicator[3,1]": (size,).

        Parameters
        ----------
        name : str
            Name of the factor in its model.

        Returns
        -------
        labels : ndarray of str of shape (size,)
            "factor.statistic[indices]", the copies' index first.

        Examples
        --------
        >>> from sklearn_lrvb.mean_field.exponential_families import Gamma
        >>> from sklearn_lrvb.mean_field import Factor
        >>> Factor(Gamma(), copies=2).labels("tau").tolist()
        ['tau.value[0]', 'tau.log[0]', 'tau.value[1]', 'tau.log[1]']
        """
        labels = np.empty(self.size, dtype=object)
        for statistic in self.family.statistics:
            indices = np.ndindex(*self.statistic_shape(statistic))
            labels[self.positions(statistic)] = [entry_label(f"{name}.{statistic}", i) for i in indices]
        return labels


def named_factor(name, factors):
    """The factor of this name. A ValueError where there is none."""
    if not isinstance(name, str) or name not in factors:
        raise ValueError(f"there is no factor {name!r}; the factors are {', '.join(factors)}.")
    return factors[name]


def named_entry(text, factors):
    """The names in "factor.entry"; the entry of "factor" alone is the only statistic of its family, or none.

    A ValueError where there is no such factor.
    """
    name, dot, entry = text.partition(".")
    statistics = named_factor(name, factors).family.statistics
    return name, next(iter(statistics)) if not dot and len(statistics) == 1 else entry


def entry_label(name, index):
    """Label of one entry: "tau.value" for a scalar, "mu.value[0]" for an entry of an array."""
    return f"{name}[{','.join(map(str, index))}]" if index else name


def with_copies(factor, copies):
    """A factor with a slice of its copies along their first axis; the factor itself if it has no copies."""
    if not factor.lead:
        return factor
    weights = None if factor.weights is None else factor.weights[copies]
    return replace(factor, copies=(copies.stop - copies.start, *factor.lead[1:]), weights=weights)


def case_weights(weights, shape):
    """How many rows or members each of them counts as, an array of this shape; one without weights.

    Raises
    ------
    ValueError
        They are no such array of finite numbers of at least 0.
    """
    return np.ones(shape) if weights is None else numbers("weights", weights, shape=shape, least=0.0)


def covariance_product(factor, natural, columns, rows=None):
    """Rows of V times dense or sparse columns: (size, m) -> (n, m).

    V itself is formed for members with few statistics only. Of these, products with sparse columns are
    sparse.

    Parameters
    ----------
    rows : int ndarray of shape (n,), default=None
        Positions of the factor's flat vector. None means all, in order.
    """
    rows = slice(None) if rows is None else rows
    if factor.family.n_statistics > _STORED_UP_TO:
        n_rows = factor.size if isinstance(rows, slice) else len(rows)
        products = np.zeros((n_rows, columns.shape[1]))
        for some, product in _products(factor, natural, columns):
            products[:, some] = product[:, rows].T
        return products
    blocks = factor.covariance_blocks(natural)
    n_blocks, size, _ = blocks.shape
    if not sparse.issparse(columns):
        return (blocks @ columns.reshape(n_blocks, size, -1)).reshape(columns.shape)[rows]
    # Products with other sparse matrices are twice as fast row by row as in the format of blocks.
    members = np.arange(n_blocks * size, dtype=np.int32).reshape(n_blocks, 1, size)
    entries = blocks.ravel(), np.repeat(members, size, axis=1).ravel(), size * np.arange(n_blocks * size + 1)
    return sparse.csr_array(sparse.csr_array(entries, shape=2 * (factor.size,)) @ columns)[rows]


def covariance_form(factor, natural, columns):
    """K' V K of dense or sparse columns K (size, m): a dense or sparse array (m, m)."""
    if factor.family.n_statistics <= _STORED_UP_TO:
        return columns.T @ covariance_product(factor, natural, columns)
    form = np.zeros(2 * (columns.shape[1],))
    for some, product in _products(factor, natural, columns):
        form[some] = product @ columns
    return form


def _products(factor, natural, columns):
    """Yield positions of some columns that are not zero, (m,), and V times these, transposed: (m, size)."""
    columns, size = sparse.csc_array(columns), factor.family.n_statistics
    active = np.flatnonzero(np.diff(columns.indptr))
    for chunk in batches(len(active), 4 * 8 * factor.size):
        vectors = columns[:, active[chunk]].toarray()
        product = np.empty((vectors.shape[1], factor.size))
        for member, natural_of_member in enumerate(natural.reshape(-1, size)):
            part = slice(member * size, (member + 1) * size)
            product[:, part] = factor.family.covariance_product(natural_of_member, vectors[part]).T
        yield active[chunk], product


def covariance_of(factor, natural, rows, columns):
    """V between statistics at positions of the flat vector, (len(rows), len(columns))."""
    units = np.ones(len(columns)), (columns, np.arange(len(columns)))
    matrix = sparse.csr_array(units, shape=(factor.size, len(columns)))
    product = covariance_product(factor, natural, matrix, rows)
    return product.toarray() if sparse.issparse(product) else product
