"""The variational posterior q of a mixture of latent classes, a function of sums over the rows.

*Conventions.* S (K, W) are the expected sums of features over the rows of every class (`prior`); those
of the feature 1 are the counts N_k. q's natural parameters are those of the prior and S, and m (K, W) are q's
expectations of the statistics. An iteration is a map EM of S, and q is optimal where EM(S) = S. As a vector,
(D,) with D = K W, an array (K, W) has all classes of the first feature first: its first K entries are about
the weights.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack

from sklearn_lrvb.family_mixture.prior import ClassPrior
from sklearn_lrvb.linear_response.complete_information import CompleteInformation
from sklearn_lrvb.mixture.model import DegenerateComponentError
from sklearn_lrvb.symmetric_matrices import cholesky_equilibrated

_NEXT_TO_NOTHING = 1e-30  # Variance of the log weight of a single class, which would be zero.


@dataclass(frozen=True)
class Sums:
    """Expected sums of features over rows, (K, W)."""

    values: np.ndarray

    @property
    def counts(self):
        """(K,)"""
        return self.values[:, 0]

    def __add__(self, other):
        return Sums(self.values + other.values)

    def __sub__(self, other):
        return Sums(self.values - other.values)


class Expectations(NamedTuple):
    """E log pi, (K,)."""

    log_weights: np.ndarray


class Divergences(NamedTuple):
    """KL(q || prior) in nats: of the weights, of each class's parameters (K,), and of all."""

    weights: float
    classes: np.ndarray
    total: float


@dataclass(eq=False)
class ClassPosterior:
    """q, given the sums S; nothing of it changes.

    Parameters
    ----------
    prior : ClassPrior; where hyperparameters are learned, they become those that are optimal for S
    sums : (K, W), S
    has_optimal_prior : bool, default=False
        Whether they are that already, to the last digit.

    Attributes
    ----------
    counts, label_counts : (K,)
    n_components, n_labels : int, K
    n_coefficients : int, D
    products_per_row : int, multiplications that the log densities of a row take under one draw
    parts : list of (K, c, b), S and what learned hyperparameters add, by family
    has_scales : False, rows have labels alone
    is_known_alone : True, a single class has no labels that importance sampling may miss
    """

    prior: ClassPrior
    sums: np.ndarray
    has_optimal_prior: bool = False
    has_scales, is_known_alone = False, True

    def __post_init__(self):
        if self.prior.learned is not None and not self.has_optimal_prior:
            self.prior = self.prior.learned.given(self.prior, self.sums)
        self.model = self.prior.model
        self.counts = self.label_counts = self.sums[:, 0]
        self.n_components = self.n_labels = self.prior.n_components
        self.n_coefficients = self.products_per_row = self.sums.size
        self.parts = self.prior.split(self.sums + self.prior.offset)

    def __reduce__(self):
        return type(self), (self.prior, self.sums, True)

    @property
    def log_volume(self):
        """Twice the log of the integral over learned hyperparameters, which q holds at their mode."""
        information, _ = self.learned_information
        return float(np.log(2.0 * np.pi / information).sum())

    @property
    def coefficient_blocks(self):
        """Slices of the coefficients by what they are about, dict."""
        stop = self.n_components
        return {"intercept": slice(0, stop), "columns": slice(stop, self.n_coefficients)}

    @property
    def block_shapes(self):
        """Numbers of classes and of coefficients of each, by block, dict."""
        n_components, n_features = self.sums.shape
        return {"intercept": (n_components, 1), "columns": (n_components, n_features - 1)}

    @property
    def coefficients_of_labels(self):
        """Coordinates of the coefficients of every class, (K, W)."""
        return np.arange(self.n_coefficients).reshape(-1, self.n_components).T

    @property
    def described(self):
        """The size of the mixture in words."""
        return f"{self.n_components} classes with {self.prior.n_features} features"

    def n_coefficients_with(self, n_components):
        """D of a mixture of so many classes, an int."""
        return n_components * self.prior.n_features

    def reordered(self, order):
        """The same q with its classes in another order, int array (K,)."""
        return ClassPosterior(self.prior, self.sums[order])

    def padded(self, prior):
        """The same classes, and empty ones after them: as many as a prior has in all."""
        n_empty = prior.n_components - self.n_components
        return ClassPosterior(prior, np.pad(self.sums, ((0, n_empty), (0, 0))))

    # Expectations, and divergences from the prior.

    @cached_property
    def _of_weights(self):
        return self.prior.weights.expectations(self.counts)

    @property
    def expectations(self):
        """Expectations of the weights: Expectations."""
        return Expectations(self._of_weights[0])

    @cached_property
    def statistics(self):
        """m, (K, W); NaN of classes that have no q with these sums."""
        statistics = self.prior.expected(self.sums)
        statistics[:, 0] += self._of_weights[0]
        return statistics

    @cached_property
    def divergences(self):
        """Divergences of q from the prior: Divergences."""
        of_classes = np.einsum("kw,kw->k", self.sums[:, 1:], self.statistics[:, 1:])
        of_classes -= self.prior.log_evidence(self.sums)
        of_weights, prior = self._of_weights[1], self.prior
        total = of_weights + of_classes.sum()
        if prior.learned is not None:
            total -= prior.learned.log_density(prior.learned_values).sum()
        return Divergences(of_weights, of_classes, total)

    @cached_property
    def log_weight_covariance(self):
        """V_pi = Cov(log pi), (K, K)."""
        return self.prior.weights.covariance_of_log(self.counts)

    @property
    def intercept_excess(self):
        """Nothing but the weights decides on the intercepts: zeros, (K, K).

        A single class has the weight 1, which does not vary. For the sake of a root it varies by next to
        nothing.
        """
        return np.full_like(self.log_weight_covariance, _NEXT_TO_NOTHING * (self.n_components == 1))

    @cached_property
    def intercept_root(self):
        """Lower Cholesky factor of V_pi, and of the excess, (K, K)."""
        return cholesky_equilibrated(self.log_weight_covariance + self.intercept_excess)

    @property
    def weight_coordinates(self):
        """Coordinates of the coefficients that the expected counts depend on, int array (K,)."""
        return np.arange(self.n_components)

    def own_intercepts(self, coefficients):
        """Changes of the intercepts that change the counts: all of them."""
        return coefficients

    def count_response(self, intercepts):
        """V_pi^-1 b, the response of the counts to intercepts: (..., K) -> (..., K)."""
        flat = intercepts.reshape(-1, intercepts.shape[-1]).T
        solved = lapack.dpotrs(self.intercept_root, flat, lower=True)[0]
        return solved.T.reshape(intercepts.shape)

    def units_of_columns(self):
        """Sizes of the columns' values, by which rows are compared: (P,)."""
        families = self.prior.families
        units = np.ones(sum(family.n_columns for family in families))
        for family in families:
            units[family.places] = family.units
        return units

    # Vectors.

    def vector(self, array):
        """(K, W) -> (D,)."""
        return array.T.ravel()

    def array(self, vectors):
        """(n, D) -> (n, K, W), or (D,) -> (K, W)."""
        return vectors.reshape(*vectors.shape[:-1], -1, self.n_components).swapaxes(-1, -2)

    def coordinates(self, place, family):
        """Coordinates of the features of a family, by class and column: int array (K, c, b)."""
        index = np.arange(self.n_coefficients).reshape(-1, self.n_components)[place].T
        return index.reshape(self.n_components, family.n_columns, family.n_features)

    @cached_property
    def _roots(self):
        """Roots Q of the covariances of the statistics, Q Q', by family: list of (K, c, b, b)."""
        pairs = zip(self.prior.families, self.parts, strict=True)
        return [family.covariance_root(part) for family, part in pairs]

    @cached_property
    def complete_information(self):
        """R^-1, the information if the classes of the rows were known: CompleteInformation."""
        blocks = [(slice(self.n_components), self.intercept_root[None])]
        for family, place, root in zip(self.prior.families, self.prior.places, self._roots, strict=True):
            roots = root.reshape(-1, family.n_features, family.n_features)
            blocks.append((self.coordinates(place, family).ravel(), roots))
        return CompleteInformation(blocks)

    @cached_property
    def learned_information(self):
        """I of the learned hyperparameters, and their sources Q: (L,) and (D, L)."""
        prior = self.prior
        if prior.learned is None:
            return np.zeros(0), np.zeros((self.n_coefficients, 0))
        sources = np.repeat(prior.learned.sources(prior), self.n_components, axis=0)
        return prior.learned.information(prior), sources

    # The M-step, and differences and steps in the statistics: sums, and what learned hyperparameters add.

    def with_known_noise(self, sums):
        """Sums over rows, which nothing else is known besides."""
        return sums

    def with_prior(self, sums):
        """Sums over the rows, which are complete: the prior is added by every family itself."""
        return sums

    def m_step(self, sums):
        """The posterior with given sums over the rows, Sums.

        Raises
        ------
        DegenerateComponentError
            Where there is no such posterior: the sums are not those of any rows.
        """
        return self._checked(ClassPosterior(self.prior, sums.values))

    @staticmethod
    def _checked(posterior):
        is_proper = np.isfinite(posterior.statistics).all(axis=1)
        if not is_proper.all():
            which = int(is_proper.argmin())
            raise DegenerateComponentError(f"Class {which} has no proper posterior with these sums.")
        return posterior

    def residual(self, sums):
        """EM(S) - S, given the sums of the E-step at q: (D,)."""
        return self.vector(sums.values - self.sums)

    @staticmethod
    def residual_at(other, sums):
        """EM(S) - S of another posterior, whose coordinates are the same: (D,)."""
        return other.residual(sums)

    def difference(self, other):
        """Statistics of another posterior less those of this one, (D,)."""
        return self.vector(other.sums + other.prior.offset - self.sums - self.prior.offset)

    def after_step(self, change):
        """The posterior whose statistics differ by ``change``, (D,); counts do not fall below zero.

        Raises
        ------
        DegenerateComponentError
            Where there is no such posterior.
        """
        after, prior = self.sums + self.array(change), self.prior
        after[:, 0] = np.maximum(after[:, 0], 0.0)
        if prior.learned is not None:
            prior = prior.learned.given_statistics(prior, prior.expected(after))
            after += self.prior.offset - prior.offset
        return self._checked(ClassPosterior(prior, after))

    def distance(self, sums):
        """Length of EM(S) - S in mean-field standard deviations, given the sums of the E-step at q."""
        change = sums.values - self.sums
        squared = self.prior.weights.variance_of_log(self.counts, change[:, 0])
        for root, place in zip(self._roots, self.prior.places, strict=True):
            own = change[:, place].reshape(*root.shape[:2], 1, -1)
            squared += np.square(own @ root).sum()
        return float(np.sqrt(squared))
