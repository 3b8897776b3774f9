"""Normal distribution of a chain x_0, ..., x_T-1, in which neighbours alone depend on each other.

*Conventions.* The precision matrix is tridiagonal, Lambda = L diag(D) L' with ones on the diagonal of L and
l_t below it; S = Lambda^-1. All copies are one long chain with zeros between them, for which a few recursions
along the chain (as in a Kalman filter and smoother) give all that is needed of S: its diagonal and the
entries beside it, in a number of steps proportional to T.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import lapack
from sklearn.utils import check_random_state

from sklearn_lrvb.mean_field.exponential_families.family import Seed, refuse, require_count
from sklearn_lrvb.mean_field.exponential_families.normal import NormalFamily
from sklearn_lrvb.symmetric_matrices import round_off, symmetrized

_LOG_2_PI = np.log(2.0 * np.pi)


@dataclass(frozen=True)
class GaussianChain(NormalFamily):
    """Normal family of a chain x with a tridiagonal precision matrix, as in state space models.

    Statistics ``value`` x_t (T,), ``square`` x_t^2 (T,) and ``product`` x_t x_t+1 (T-1,). Natural parameters
    (Lambda m, -d/2, -e) with the mean m, the diagonal d of the precision matrix Lambda, and the entries e
    beside it. It keeps the dependence between neighbours that a factor for every x_t would lose.

    Parameters
    ----------
    n_steps : int
        T, at least 2.

    See Also
    --------
    ExponentialFamily : Shapes, errors and an example of every method.
    MultivariateNormal : With a precision matrix of any form.

    Examples
    --------
    >>> from sklearn_lrvb.mean_field.exponential_families import GaussianChain
    >>> family = GaussianChain(3)
    >>> natural = family.natural_parameters([0.0, 1.0, 2.0], diagonal=[1.0, 2.0, 2.0], beside=[-1.0, -1.0])
    >>> value, square, product = (family.mean_parameters(natural)[part] for part in family.slices.values())
    >>> (square - value**2).round(12)  # variances
    array([3., 2., 1.])
    >>> (product - value[:-1] * value[1:]).round(12)  # covariances of neighbours
    array([2., 1.])
    """

    n_steps: int

    def __post_init__(self) -> None:
        require_count("n_steps", self.n_steps)
        if self.n_steps < 2:
            raise ValueError("A chain has n_steps of at least 2; a single step is a UnivariateNormal().")

    @property
    def statistics(self) -> dict[str, tuple[int, ...]]:
        """``value`` x_t (T,), ``square`` x_t^2 (T,) and ``product`` x_t x_t+1 (T-1,)."""
        return {"value": (self.n_steps,), "square": (self.n_steps,), "product": (self.n_steps - 1,)}

    def natural_parameters(
        self, mean: ArrayLike, diagonal: ArrayLike, beside: ArrayLike
    ) -> NDArray[np.float64]:
        """Natural parameters (Lambda m, -d/2, -e), flat: (..., T), (..., T), (..., T-1) -> (..., 3 T - 1).

        Parameters
        ----------
        mean : array-like of shape (..., T)
            Mean m, in units of x.
        diagonal : array-like of shape (..., T)
            Diagonal d of the precision matrix.
        beside : array-like of shape (..., T-1)
            Its entries e beside the diagonal; negative where neighbours are alike.

        Returns
        -------
        natural : ndarray of shape (..., 3 T - 1)
            Those of every copy.

        Examples
        --------
        >>> from sklearn_lrvb.mean_field.exponential_families import GaussianChain
        >>> GaussianChain(2).natural_parameters(mean=[1.0, 1.0], diagonal=[2.0, 2.0], beside=[-1.0])
        array([ 1.,  1., -1., -1.,  1.])
        """
        mean, diagonal, beside = (np.asarray(given, dtype=float) for given in (mean, diagonal, beside))
        return self.pack(_tridiagonal_product(diagonal, beside, mean), -0.5 * diagonal, -beside)

    def _split(self, natural):
        """Lambda m (..., T), d (..., T) and e (..., T-1)."""
        natural = np.asarray(natural, dtype=float)
        n = self.n_steps
        return natural[..., :n], -2.0 * natural[..., n : 2 * n], -natural[..., 2 * n :]

    def _chain(self, natural):
        """All copies as one `_Chain`, and the leading axes."""
        linear, diagonal, beside = self._split(natural)
        return _Chain(linear, diagonal, beside), linear.shape[:-1]

    def log_partition(self, natural: ArrayLike) -> NDArray[np.float64] | np.float64:
        """m' Lambda m / 2 - log|Lambda| / 2 + T/2 log(2 pi): (..., D) -> (...)."""
        chain, lead = self._chain(natural)
        terms = chain.linear * chain.mean - np.log(chain.pivots) + _LOG_2_PI
        return 0.5 * terms.reshape(*lead, self.n_steps).sum(axis=-1)

    def mean_parameters(self, natural: ArrayLike) -> NDArray[np.float64]:
        """m_t, m_t^2 + S_tt, and m_t m_t+1 + S_t,t+1."""
        chain, lead = self._chain(natural)
        square = chain.mean**2 + chain.variance
        product = chain.mean[:-1] * chain.mean[1:] + chain.beside_variance
        return self._flat(lead, chain.mean, square, product)

    def _flat(self, lead, value, square, product):
        """Statistics of all copies (n, ...), the products with one fewer, as arrays (..., lead, D)."""
        # A product after every copy's last step is left out.
        product = np.concatenate([product, product[-1:]])
        parts = [np.moveaxis(part, 0, -1) for part in (value, square, product)]
        parts = [part.reshape(*part.shape[:-1], *lead, self.n_steps) for part in parts]
        return np.concatenate([*parts[:2], parts[2][..., :-1]], axis=-1)

    def covariance(self, natural: ArrayLike) -> NDArray[np.float64]:
        """Those of a normal distribution, from the whole matrix S of every copy: (..., D) -> (..., D, D)."""
        linear, diagonal, beside = self._split(natural)
        lead, n = linear.shape[:-1], self.n_steps
        covariance = np.empty((*lead, self.n_statistics, self.n_statistics))
        for copy in np.ndindex(*lead):
            chain = _Chain(linear[copy], diagonal[copy], beside[copy])
            covariance[copy] = _covariance(chain.mean, symmetrized(chain.solve(np.eye(n))))
        return covariance

    def variances(self, natural: ArrayLike) -> NDArray[np.float64]:
        """S_tt of x_t, 2 S_tt^2 + 4 m_t^2 S_tt of x_t^2, and alike of x_t x_t+1."""
        chain, lead = self._chain(natural)
        mean, variance, beside = chain.mean, chain.variance, chain.beside_variance
        square = 2.0 * variance**2 + 4.0 * mean**2 * variance
        product = variance[:-1] * variance[1:] + beside**2 + 2.0 * mean[:-1] * mean[1:] * beside
        product += mean[:-1] ** 2 * variance[1:] + mean[1:] ** 2 * variance[:-1]
        return self._flat(lead, variance, square, product)

    def covariance_product(self, natural: ArrayLike, vectors: ArrayLike) -> NDArray[np.float64]:
        """Covariances with h = b' x + x' A x, A tridiagonal.

        With c = b + 2 A m, they are S c for x, and the band of m c' S + S c m' + 2 S A S for its products;
        that of 2 S A S is the derivative of the recursions for S as Lambda changes by -2 A. It takes a number
        of steps proportional to T for every column.
        """
        chain, lead = self._chain(natural)
        vectors = np.asarray(vectors, dtype=float)
        vectors = np.broadcast_to(vectors, (*lead, *vectors.shape[-2:]))
        n, n_columns = self.n_steps, vectors.shape[-1]
        linear, square, product = (
            vectors[..., part, :].reshape(-1, n_columns)
            for part in (slice(0, n), slice(n, 2 * n), np.r_[2 * n : 3 * n - 1, 3 * n - 2])
        )
        product = product[:-1] * (chain.is_inside[:, None])
        mean = chain.mean[:, None]
        response = linear + 2.0 * square * mean
        response[:-1] += product * mean[1:]
        response[1:] += product * mean[:-1]
        response = chain.solve(response)
        of_square, of_product = chain.band_derivative(-2.0 * square, -product)
        of_square = of_square + 2.0 * mean * response
        of_product = of_product + mean[:-1] * response[1:] + mean[1:] * response[:-1]
        return np.moveaxis(self._flat(lead, response, of_square, of_product), 0, -1)

    def check_domain(self, natural: NDArray[np.float64]) -> None:
        """The precision matrix must be positive definite."""
        _, diagonal, beside = self._split(natural)
        message = "the precision matrix is not positive definite: its diagonal holds {}"
        refuse(diagonal, ~(diagonal > 0), message, ["square"] * self.n_steps)
        pivots, _, failed = lapack.dpttrf(diagonal.ravel(), _joined(beside))
        if not failed and np.all(pivots >= round_off(1) * diagonal.ravel()):
            return
        smallest = self._smallest_pivots(diagonal, beside)[..., None]
        message = "the precision matrix is not positive definite to working precision: smallest pivot {}"
        refuse(smallest, ~(smallest >= round_off(1)), message, ["product"])

    def _smallest_pivots(self, diagonal, beside):
        """Smallest D_t / d_t of every copy, or the first that is not positive: (...)."""
        pivot = diagonal[..., 0]
        smallest = np.ones(pivot.shape)
        for step in range(1, self.n_steps):
            pivot = diagonal[..., step] - beside[..., step - 1] ** 2 / pivot
            share = pivot / diagonal[..., step]
            smallest = np.where(smallest > 0, np.minimum(smallest, share), smallest)
            pivot = np.where(smallest > 0, pivot, 1.0)
        return smallest

    def default_natural_parameters(self) -> NDArray[np.float64]:
        """Those of independent standard normal steps, (D,)."""
        n = self.n_steps
        return np.concatenate([np.zeros(n), np.full(n, -0.5), np.zeros(n - 1)])

    def location_deviations(self, natural: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
        """Standard deviations of x_t, the roots of S_tt."""
        chain, lead = self._chain(natural)
        return {"value": np.sqrt(chain.variance).reshape(*lead, self.n_steps)}

    def sample(self, natural: ArrayLike, n_draws: int, random_state: Seed = None) -> NDArray:
        """Draws of x, from its end to its beginning: natural parameters (..., D) -> (n_draws, ..., T)."""
        chain, lead = self._chain(natural)
        noise = check_random_state(random_state).normal(size=(n_draws, len(chain.mean)))
        return (chain.mean + chain.coloured(noise.T).T).reshape(n_draws, *lead, self.n_steps)

    def statistics_of(self, value: ArrayLike) -> NDArray[np.float64]:
        """(x_t, x_t^2, x_t x_t+1), flat: (..., T) -> (..., 3 T - 1)."""
        value = np.asarray(value, dtype=float)
        return np.concatenate([value, value**2, value[..., :-1] * value[..., 1:]], axis=-1)


class _Chain:
    """Chains one after the other, with no dependence between them.

    Attributes
    ----------
    linear, mean, pivots, variance : ndarrays of shape (n,)
        Lambda m, m, D, and the diagonal of S, over all steps of all chains.
    beside_variance : ndarray of shape (n - 1,)
        Entries of S beside its diagonal.
    is_inside : bool ndarray of shape (n - 1,)
        Whether a step and the next one belong to one chain.
    """

    def __init__(self, linear, diagonal, beside):
        self.linear = linear.ravel()
        self.is_inside = np.arange(1, self.linear.size) % linear.shape[-1] != 0
        self.pivots, self._below, failed = lapack.dpttrf(diagonal.ravel(), _joined(beside))
        if failed:
            raise np.linalg.LinAlgError(f"The precision matrix is not positive definite (step {failed}).")
        self.mean = self.solve(self.linear[:, None])[:, 0]
        self.variance = self._backwards((1.0 / self.pivots)[:, None])[:, 0]
        self.beside_variance = -self._below * self.variance[1:]

    def solve(self, right):
        """S times columns: (n, m) -> (n, m)."""
        return lapack.dpttrs(self.pivots, self._below, right)[0]

    def _backwards(self, right, factor=None):
        """s with s_t = right_t + factor_t s_t+1, where the factor is l_t^2 by default: (n, m) -> (n, m)."""
        factor = self._below**2 if factor is None else factor
        ones, zeros = np.ones(len(self.pivots)), np.zeros(len(factor))
        return lapack.dgtsv(zeros, ones, -factor, right)[3]

    def _forwards(self, right):
        """s with s_t+1 = right_t+1 + l_t^2 s_t: (n, m) -> (n, m)."""
        ones, zeros = np.ones(len(self.pivots)), np.zeros(len(self._below))
        return lapack.dgtsv(-(self._below**2), ones, zeros, right)[3]

    def band_derivative(self, diagonal, beside):
        """Changes of the band of S where the diagonal of Lambda and the entries beside it change.

        Parameters
        ----------
        diagonal, beside : ndarrays of shapes (n, m) and (n - 1, m)

        Returns
        -------
        variance, beside_variance : ndarrays of the same shapes
        """
        below, pivots, next_variance = self._below[:, None], self.pivots[:, None], self.variance[1:, None]
        of_pivots = diagonal.copy()
        of_pivots[1:] -= 2.0 * below * beside
        of_pivots = self._forwards(of_pivots)
        of_below = (beside - below * of_pivots[:-1]) / pivots[:-1]
        of_variance = -of_pivots / pivots**2
        of_variance[:-1] += 2.0 * below * next_variance * of_below
        of_variance = self._backwards(of_variance)
        return of_variance, -of_below * next_variance - below * of_variance[1:]

    def coloured(self, noise):
        """L'^-1 D^-1/2 times standard normal columns, which have the covariance S: (n, m) -> (n, m)."""
        return self._backwards(noise / np.sqrt(self.pivots)[:, None], -self._below)


def _joined(beside):
    """Entries beside the diagonal of all copies, with zeros between copies: (..., T-1) -> (n - 1,)."""
    n_steps = beside.shape[-1] + 1
    joined = np.zeros((beside.size // (n_steps - 1), n_steps))
    joined[:, :-1] = beside.reshape(-1, n_steps - 1)
    return joined.ravel()[:-1]


def _tridiagonal_product(diagonal, beside, vector):
    """Lambda times a vector: (..., T), (..., T-1), (..., T) -> (..., T)."""
    product = diagonal * vector
    product[..., :-1] += beside * vector[..., 1:]
    product[..., 1:] += beside * vector[..., :-1]
    return product


def _covariance(mean, covariance):
    """V of (x_t, x_t^2, x_t x_t+1) from the mean (T,) and the covariance matrix (T, T) of x."""
    n = len(mean)
    first = np.concatenate([np.arange(n), np.arange(n - 1)])
    second = np.concatenate([np.arange(n), np.arange(1, n)])
    of_first, of_second = covariance[:, first], covariance[:, second]
    linear = of_first * mean[second] + of_second * mean[first]
    rows = [(first, second), (second, first)]
    products = sum(of_first[i] * of_second[j] + mean[i][:, None] * linear[j] for i, j in rows)
    whole = np.empty(2 * (n + len(first),))
    whole[:n, :n] = covariance
    whole[:n, n:], whole[n:, :n] = linear, linear.T
    whole[n:, n:] = symmetrized(products)
    return whole
