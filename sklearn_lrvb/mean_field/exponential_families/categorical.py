"""Categorical distribution of z in 0..K-1, with the indicator of every category as sufficient statistics."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp, softmax
from sklearn.utils import check_random_state

from sklearn_lrvb.mean_field.exponential_families.family import ExponentialFamily, Seed, require_count


@dataclass(frozen=True)
class Categorical(ExponentialFamily):
    """Categorical family of z in 0..K-1; statistic ``indicator`` (K,), one at z and zero elsewhere.

    The natural parameters are log probabilities up to a constant, along which V is singular.

    Parameters
    ----------
    n_categories : int
        K, at least 1.

    See Also
    --------
    ExponentialFamily : Shapes, errors and an example of every method.

    Examples
    --------
    >>> from sklearn_lrvb.mean_field.exponential_families import Categorical
    >>> family = Categorical(3)
    >>> natural = family.natural_parameters([0.5, 0.25, 0.25])
    >>> family.covariance(natural).round(4)
    array([[ 0.25  , -0.125 , -0.125 ],
           [-0.125 ,  0.1875, -0.0625],
           [-0.125 , -0.0625,  0.1875]])
    >>> family.statistics_of(2)
    array([0., 0., 1.])
    """

    n_categories: int

    def __post_init__(self) -> None:
        require_count("n_categories", self.n_categories)

    @property
    def statistics(self) -> dict[str, tuple[int, ...]]:
        """``indicator`` (K,) of the category."""
        return {"indicator": (self.n_categories,)}

    def natural_parameters(self, probabilities: ArrayLike) -> NDArray[np.float64]:
        """Natural parameters log p: (..., K) -> (..., K).

        A probability of 0 counts as the smallest normal number, the log of which is -708.

        Parameters
        ----------
        probabilities : array-like of shape (..., K)
            Non-negative; numbers proportional to probabilities are enough.

        Returns
        -------
        natural : ndarray of shape (..., K)
            Those of every copy.

        Raises
        ------
        ValueError
            A probability is negative or NaN.

        Examples
        --------
        >>> from sklearn_lrvb.mean_field.exponential_families import Categorical
        >>> natural = Categorical(3).natural_parameters([0.5, 0.25, 0.25])
        >>> Categorical(3).mean_parameters(natural).round(12)
        array([0.5 , 0.25, 0.25])
        """
        probabilities = np.asarray(probabilities, dtype=float)
        if not np.all(probabilities >= 0):
            raise ValueError(f"Probabilities must not be negative or NaN; got {np.min(probabilities):.4g}.")
        return np.log(np.maximum(probabilities, np.finfo(float).tiny))

    def means_around(self, value: ArrayLike) -> NDArray[np.float64]:
        """The probabilities given, scaled to a sum of one: (..., K) -> (..., K)."""
        return self.mean_parameters(self.natural_parameters(value))

    def log_partition(self, natural: ArrayLike) -> NDArray[np.float64] | np.float64:
        """Log of the sum of exp(eta): (..., K) -> (...)."""
        return logsumexp(np.asarray(natural, dtype=float), axis=-1)

    def mean_parameters(self, natural: ArrayLike) -> NDArray[np.float64]:
        """The probabilities p: (..., K) -> (..., K)."""
        return softmax(np.asarray(natural, dtype=float), axis=-1)

    def covariance(self, natural: ArrayLike) -> NDArray[np.float64]:
        """diag(p) - p p': (..., K) -> (..., K, K)."""
        probabilities = self.mean_parameters(natural)
        covariance = -probabilities[..., :, None] * probabilities[..., None, :]
        diagonal = np.einsum("...kk->...k", covariance)
        diagonal[...] = 0.0
        # The sum of p times the others keeps its digits where p is close to one, as 1 - p does not.
        diagonal[...] = -covariance.sum(axis=-1)
        return covariance

    def check_domain(self, natural: NDArray[np.float64]) -> None:
        """All finite natural parameters have a member."""

    def default_natural_parameters(self) -> NDArray[np.float64]:
        """Those of equal probabilities, (K,)."""
        return np.zeros(self.n_categories)

    def sample(self, natural: ArrayLike, n_draws: int, random_state: Seed = None) -> NDArray:
        """Draws of z, integers: natural parameters (..., K) -> (n_draws, ...)."""
        noise = check_random_state(random_state).gumbel(size=(n_draws, *np.shape(natural)))
        return np.argmax(np.asarray(natural, dtype=float) + noise, axis=-1)

    def statistics_of(self, value: ArrayLike) -> NDArray[np.float64]:
        """Indicators of categories: (...) -> (..., K)."""
        return (np.asarray(value)[..., None] == np.arange(self.n_categories)).astype(float)
