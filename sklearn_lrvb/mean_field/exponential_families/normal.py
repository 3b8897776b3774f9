"""Normal distributions: of a vector x (P,), with the statistics x and x x', and of a number."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from sklearn_lrvb.mean_field.exponential_families.family import (
    ExponentialFamily,
    Moments,
    Seed,
    refuse_indefinite,
    require_count,
)
from sklearn_lrvb.mean_field.exponential_families.matrices import (
    from_root,
    inverse_root,
    log_determinant_of_triangular,
    symmetric_kronecker_square,
)
from sklearn_lrvb.symmetric_matrices import symmetrized


class NormalFamily(ExponentialFamily):
    """Normal families of a vector x, which is their first statistic."""

    def coordinates_of(self, natural: NDArray[np.float64], value: ArrayLike) -> NDArray[np.float64]:
        """x itself."""
        return np.asarray(value, dtype=float)

    def from_coordinates(self, natural: NDArray[np.float64], coordinates: ArrayLike) -> NDArray[np.float64]:
        """x itself."""
        return np.asarray(coordinates, dtype=float)

    def log_volume(self, coordinates: NDArray[np.float64]) -> NDArray[np.float64]:
        """Zero: u is x itself."""
        return np.zeros(coordinates.shape[:-1])

    def coordinate_moments(self, natural: ArrayLike) -> Moments:
        """Those of x."""
        return self._linear_coordinates(natural, np.eye(self.slices["value"].stop, self.n_statistics))


_LOG_2_PI = np.log(2.0 * np.pi)

_FEW_ROWS = 0.25  # Share of the rows of a symmetric matrix up to which products leave out those of zeros.


def _times_both_sides(covariance, matrices, products):
    """2 S A S for symmetric matrices A (..., m, P, P) and S (..., 1, P, P), into ``products``."""
    used = np.any(matrices != 0.0, axis=-1)
    if covariance.ndim > 3 or used.sum(axis=-1).max() > _FEW_ROWS * used.shape[-1]:
        np.matmul(2.0 * covariance @ matrices, covariance, out=products)
        return
    for matrix, rows, product in zip(matrices, used, products, strict=True):
        columns = covariance[0][:, rows]
        np.matmul(2.0 * columns @ matrix[np.ix_(rows, rows)], columns.T, out=product)


@dataclass(frozen=True)
class MultivariateNormal(NormalFamily):
    """Multivariate normal family of x; statistics ``value`` x (P,) and ``outer`` x x' (P, P).

    Natural parameters (Lambda m, -Lambda/2) with the mean m and the precision Lambda.

    Parameters
    ----------
    n_features : int
        P, at least 1.

    See Also
    --------
    ExponentialFamily : Shapes, errors and an example of every method.

    Examples
    --------
    >>> from sklearn_lrvb.mean_field.exponential_families import MultivariateNormal
    >>> family = MultivariateNormal(2)
    >>> natural = family.natural_parameters(mean=[1.0, 0.0], precision=[[4.0, 0.0], [0.0, 1.0]])
    >>> natural  # P + P^2 numbers
    array([ 4. ,  0. , -2. , -0. , -0. , -0.5])
    >>> family.mean_parameters(natural)  # m, and m m' + Lambda^-1
    array([1.  , 0.  , 1.25, 0.  , 0.  , 1.  ])
    """

    n_features: int

    def __post_init__(self) -> None:
        require_count("n_features", self.n_features)

    @property
    def statistics(self) -> dict[str, tuple[int, ...]]:
        """``value`` x (P,) and ``outer`` x x' (P, P)."""
        return {"value": (self.n_features,), "outer": (self.n_features, self.n_features)}

    def natural_parameters(self, mean: ArrayLike, precision: ArrayLike) -> NDArray[np.float64]:
        """Natural parameters (Lambda m, -Lambda/2), flat: (..., P), (..., P, P) -> (..., P + P^2).

        Parameters
        ----------
        mean : array-like of shape (..., P)
            Mean m, in units of x.
        precision : array-like of shape (..., P, P)
            Lambda, the inverse of the covariance matrix, symmetric positive definite.

        Returns
        -------
        natural : ndarray of shape (..., P + P^2)
            Those of every copy.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn_lrvb.mean_field.exponential_families import MultivariateNormal
        >>> MultivariateNormal(2).natural_parameters(mean=[1.0, 3.0], precision=np.diag([4.0, 2.0]))
        array([ 4.,  6., -2., -0., -0., -1.])
        """
        mean, precision = np.asarray(mean, dtype=float), np.asarray(precision, dtype=float)
        flat = np.einsum("...pq,...q->...p", precision, mean), -0.5 * precision
        return self.pack(*flat)

    def _split(self, natural):
        """Lambda m (..., P) and Lambda (..., P, P)."""
        n_features = self.n_features
        natural = np.asarray(natural, dtype=float)
        outer = natural[..., n_features:].reshape(*natural.shape[:-1], n_features, n_features)
        return natural[..., :n_features], -2.0 * symmetrized(outer)

    def _frame(self, natural):
        """R upper triangular with R R' = Lambda^-1, and e with m = R e."""
        precision_mean, precision = self._split(natural)
        root = inverse_root(precision)
        return root, np.einsum("...pq,...p->...q", root, precision_mean)

    def log_partition(self, natural: ArrayLike) -> NDArray[np.float64] | np.float64:
        """m' Lambda m / 2 - log|Lambda| / 2 + P/2 log(2 pi): (..., D) -> (...)."""
        root, scaled_mean = self._frame(natural)
        half_log_det = log_determinant_of_triangular(root)
        return 0.5 * np.square(scaled_mean).sum(axis=-1) + half_log_det + 0.5 * self.n_features * _LOG_2_PI

    def _moments(self, natural):
        """m, and R."""
        root, scaled_mean = self._frame(natural)
        return np.einsum("...pq,...q->...p", root, scaled_mean), root

    def mean_parameters(self, natural: ArrayLike) -> NDArray[np.float64]:
        """m, and m m' + Lambda^-1."""
        mean, root = self._moments(natural)
        second = mean[..., :, None] * mean[..., None, :] + from_root(root)
        return np.concatenate([mean, second.reshape(*mean.shape[:-1], -1)], axis=-1)

    def covariance(self, natural: ArrayLike) -> NDArray[np.float64]:
        """With x = m + R e: the part linear in e, and the part quadratic in e, which do not correlate."""
        mean, root = self._moments(natural)
        n_features, lead = self.n_features, mean.shape[:-1]
        linear = mean[..., :, None, None] * root[..., None, :, :]
        linear = (linear + linear.swapaxes(-3, -2)).reshape(*lead, n_features**2, n_features)
        linear = np.concatenate([root, linear], axis=-2)
        covariance = from_root(linear)
        variance = from_root(root)
        covariance[..., n_features:, n_features:] += symmetric_kronecker_square(variance)
        return covariance

    def variances(self, natural: ArrayLike) -> NDArray[np.float64]:
        """S_ii of x_i, and S_ii S_jj + S_ij^2 + m_i^2 S_jj + m_j^2 S_ii + 2 m_i m_j S_ij of x_i x_j."""
        mean, root = self._moments(natural)
        covariance = from_root(root)
        variance = np.einsum("...pp->...p", covariance)
        rows, columns = variance[..., :, None], variance[..., None, :]
        squares = mean**2
        outer = (
            rows * columns + covariance**2 + squares[..., :, None] * columns + rows * squares[..., None, :]
        )
        outer += 2.0 * mean[..., :, None] * mean[..., None, :] * covariance
        return np.concatenate([variance, outer.reshape(*mean.shape[:-1], -1)], axis=-1)

    def covariance_product(self, natural: ArrayLike, vectors: ArrayLike) -> NDArray[np.float64]:
        """Covariances with h = b' x + x' A x.

        With c = b + 2 A m, Cov(x, h) = S c and Cov(x x', h) = m c' S + S c m' + 2 S A S. It takes P^3 steps a
        column instead of P^4, and P^2 where A has few rows that are not zero.
        """
        mean, root = self._moments(natural)
        n_features, lead = self.n_features, mean.shape[:-1]
        covariance = from_root(root)[..., None, :, :]
        columns = np.moveaxis(np.asarray(vectors, dtype=float), -1, -2)
        linear, quadratic = columns[..., :n_features], columns[..., n_features:]
        products = np.empty(np.broadcast_shapes(columns.shape, (*lead, 1, 1)))
        outer = products[..., n_features:].reshape(*products.shape[:-1], n_features, n_features)
        if np.any(quadratic):
            quadratic = quadratic.reshape(*columns.shape[:-1], n_features, n_features)
            quadratic = symmetrized(quadratic)
            linear = linear + 2.0 * np.einsum("...mpq,...q->...mp", quadratic, mean)
            _times_both_sides(covariance, quadratic, outer)
        else:
            outer[...] = 0.0
        response = np.einsum("...pq,...mq->...mp", covariance[..., 0, :, :], linear)
        outer += mean[..., None, :, None] * response[..., None, :]
        outer += response[..., :, None] * mean[..., None, None, :]
        products[..., :n_features] = response
        return np.moveaxis(products, -2, -1)

    def check_domain(self, natural: NDArray[np.float64]) -> None:
        """The precision must be positive definite."""
        _, precision = self._split(natural)
        _, statistic = self.statistics
        refuse_indefinite(precision, "the precision", statistic)

    def default_natural_parameters(self) -> NDArray[np.float64]:
        """Those of the standard normal distribution, (D,)."""
        return np.concatenate([np.zeros(self.n_features), -0.5 * np.eye(self.n_features).ravel()])

    def location_deviations(self, natural: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
        """Standard deviations of x, the roots of the diagonal of Lambda^-1, under the name of x."""
        statistic, shape = next(iter(self.statistics.items()))
        deviations = np.linalg.norm(self._frame(natural)[0], axis=-1)
        return {statistic: deviations.reshape((*deviations.shape[:-1], *shape))}

    def sample(self, natural: ArrayLike, n_draws: int, random_state: Seed = None) -> NDArray:
        """Draws of x: natural parameters (..., D) -> (n_draws, ..., P)."""
        mean, root = self._moments(natural)
        noise = check_random_state(random_state).normal(size=(n_draws, *mean.shape))
        return mean + np.einsum("...pq,...q->...p", root, noise)

    def statistics_of(self, value: ArrayLike) -> NDArray[np.float64]:
        """(x, x x'), flat: (..., P) -> (..., D)."""
        value = np.asarray(value, dtype=float)
        outer = value[..., :, None] * value[..., None, :]
        return np.concatenate([value, outer.reshape(*value.shape[:-1], -1)], axis=-1)


@dataclass(frozen=True)
class UnivariateNormal(MultivariateNormal):
    """Normal family of a number x; statistics ``value`` x () and ``square`` x^2 ().

    It is the multivariate normal of one feature, without the feature's axes. Natural parameters
    (lambda m, -lambda/2) with the mean m and the precision lambda.

    See Also
    --------
    ExponentialFamily : Shapes, errors and an example of every method.

    Examples
    --------
    >>> from sklearn_lrvb.mean_field.exponential_families import UnivariateNormal
    >>> natural = UnivariateNormal().natural_parameters(mean=3.0, precision=4.0)
    >>> UnivariateNormal().mean_parameters(natural)  # E x, E x^2
    array([3.  , 9.25])
    >>> UnivariateNormal().covariance(natural)
    array([[0.25 , 1.5  ],
           [1.5  , 9.125]])
    """

    n_features: int = field(default=1, init=False, repr=False)

    @property
    def statistics(self) -> dict[str, tuple[int, ...]]:
        """Scalars ``value`` x and ``square`` x^2."""
        return {"value": (), "square": ()}

    def natural_parameters(self, mean: ArrayLike, precision: ArrayLike) -> NDArray[np.float64]:
        """Natural parameters (lambda m, -lambda/2), which broadcast: (...), (...) -> (..., 2).

        Parameters
        ----------
        mean : array-like of shape (...)
            Mean m, in units of x.
        precision : array-like of shape (...)
            Precision lambda, one over the variance, positive.

        Returns
        -------
        natural : ndarray of shape (..., 2)
            Those of every copy.

        Examples
        --------
        >>> from sklearn_lrvb.mean_field.exponential_families import UnivariateNormal
        >>> UnivariateNormal().natural_parameters(mean=3.0, precision=4.0)
        array([12., -2.])
        """
        return self.pack(np.multiply(precision, mean), np.multiply(-0.5, precision))

    def coordinates_of(self, natural: NDArray[np.float64], value: ArrayLike) -> NDArray[np.float64]:
        """x itself: (...) -> (..., 1)."""
        return (np.asarray(value, dtype=float))[..., None]

    def from_coordinates(self, natural: NDArray[np.float64], coordinates: ArrayLike) -> NDArray[np.float64]:
        """x itself: (..., 1) -> (...)."""
        return np.asarray(coordinates, dtype=float)[..., 0]

    def sample(self, natural: ArrayLike, n_draws: int, random_state: Seed = None) -> NDArray:
        """Draws of x: natural parameters (..., 2) -> (n_draws, ...)."""
        return super().sample(natural, n_draws, random_state)[..., 0]

    def statistics_of(self, value: ArrayLike) -> NDArray[np.float64]:
        """(x, x^2): (...) -> (..., 2)."""
        return super().statistics_of(np.expand_dims(value, -1))
