"""Covariance structures of numbers, which scale the features: "diag", "tied_diag" and "spherical"."""

from abc import abstractmethod

import numpy as np

from sklearn_lrvb.distributions.wishart import Wisharts
from sklearn_lrvb.gaussian.covariance_structures.features import NORMAL_COMPONENTS, Features
from sklearn_lrvb.gaussian.covariance_structures.random_factors import GammaFactors
from sklearn_lrvb.gaussian.covariance_structures.structures import CovarianceStructure


class ScaleFeatures(Features):
    """Features of scales: the quadratic ones are squares."""

    def gradients(self, whiteners, linear, curvature):
        """As of every structure: linear (d, K, P), curvature (d, K, Q)."""
        slope = (whiteners * linear).transpose(2, 1, 0)  # (P, K, d)
        bent = np.broadcast_to(2.0 * whiteners * curvature, linear.shape).transpose(2, 1, 0)
        gradient_map = np.concatenate([slope, bent], axis=1)

        def gradients(weights, whitened, out):
            flat = np.broadcast_to(weights[:, None], whitened.shape)
            stacked = np.concatenate([flat, weights[:, None] * whitened])
            out[...] = np.matmul(stacked.transpose(1, 2, 0), gradient_map).transpose(1, 2, 0)

        return gradients


class ScaleStructure(CovarianceStructure):
    """Precisions are numbers, Q of them for a component: one for every feature or one for all."""

    features_type = ScaleFeatures
    random_factors_type = GammaFactors

    @abstractmethod
    def statistic(self, vectors):
        """s(y) of rows: (..., P, n) -> (..., Q, n)."""

    # Statistics, which are their own entries.

    def entries(self, statistics):
        """The statistics unchanged, (..., Q)."""
        return statistics

    def from_entries(self, entries):
        """The entries unchanged, (..., Q)."""
        return entries

    def diagonal(self, statistics):
        """The statistics unchanged, (..., Q)."""
        return statistics

    def write_entries(self, rows, entries):
        """Write s(y): (P, n) into (Q, n)."""
        entries[...] = self.statistic(rows)

    def second_moments(self, whitened, weights):
        """Sums of weight s(y), weights of any sign: (K, P, n), (K, n) -> (K, Q)."""
        return np.matmul(self.statistic(whitened), weights[:, :, None])[:, :, 0]

    def curvature_products(self, curvature, whitened):
        """B.s(y): (S, Q), (K, P, n) -> (K, n)."""
        return np.matmul(curvature[:, None, :], self.statistic(whitened))[:, 0]

    # Maps, which scale the features.

    def cholesky(self, covariances):
        """Standard deviations, all NaN where one of the variances is not positive: (n, Q)."""
        is_positive = covariances > 0
        if is_positive.all():
            return np.sqrt(covariances)
        return np.sqrt(np.where(is_positive.all(axis=-1, keepdims=True), covariances, np.nan))

    def whiteners(self, covariance_cholesky):
        """Reciprocals of the standard deviations, (n, Q)."""
        return 1.0 / covariance_cholesky

    def transposed(self, maps):
        """The maps unchanged, (n, Q)."""
        return maps

    def composed(self, maps, others):
        """Products of factors, (n, Q)."""
        return maps * others

    def transformed(self, maps, vectors):
        """Every component's scaled vector: (S, Q), (..., K, P) -> (..., K, P)."""
        return maps * vectors

    def congruence(self, maps, statistics):
        """Statistics of scaled vectors: (S, Q), (..., S, Q) -> (..., S, Q)."""
        return np.square(maps) * statistics

    def average_cholesky(self, covariance_cholesky, shares):
        """Square root of the average variance: (S, Q), (S,) -> (1, Q)."""
        return np.sqrt(shares @ np.square(covariance_cholesky))[None]

    # Rows.

    def whiten(self, whiteners, centred_means, with_one):
        """Rows in every component's whitened coordinates: (1 + P, n) -> (K, P, n)."""
        whitened = with_one[1:] - centred_means[:, :, None]
        whitened *= whiteners[:, :, None]
        return whitened

    def whiten_into(self, whitener, center, block, rows):
        """Write rows in common coordinates: (1, Q), (P,), (P, n) into (P, n)."""
        np.subtract(block, center[:, None], out=rows)
        rows *= whitener[0][:, None]

    def pulled_back(self, whiteners, whitened):
        """W'y: (K, P, n) -> (K, n, P)."""
        return np.multiply(whitened.transpose(0, 2, 1), whiteners[:, None, :], order="C")

    def squares_by_row(self, covariance_cholesky, vectors, noise):
        """Trace of (L L')^-1 (v v' + noise): (n, Q), (P, n), (Q,) -> (n,)."""
        return ((self.statistic_by_row(vectors) + noise) / np.square(covariance_cholesky)).sum(axis=1)

    # Random numbers.

    def draw(self, random_state, mean, variance, n_rows):
        """Rows of one component, by the same random numbers as scikit-learn: (n_rows, P)."""
        return mean + random_state.standard_normal(size=(n_rows, self.n_features)) * np.sqrt(variance)


class DiagonalCovariance(ScaleStructure):
    """Every component has a precision for every feature; within a component, features are independent."""

    def __init__(self, n_components, n_features, parts=NORMAL_COMPONENTS):
        super().__init__(
            n_components,
            n_features,
            np.ones(n_features),
            np.ones(n_features),
            Wisharts(1, n_blocks=n_features, n_means=n_components if self.shares_precision else 1),
            parts=parts,
        )

    def statistic(self, vectors):
        """s(y) = (y_p^2): (..., P, n) -> (..., P, n)."""
        return np.square(vectors)

    def diagonal_factors(self, scale):
        """The columns' standard deviations, (P,) -> (K, P)."""
        return np.repeat(scale[None], self.n_groups, axis=0)

    def entry_names(self, feature_names):
        """Names of the features."""
        return list(feature_names)


class TiedDiagonalCovariance(DiagonalCovariance):
    """All components share one precision for every feature."""

    shares_precision = True
    is_in_scikit_learn = False

    def second_moments(self, whitened, weights):
        """Sums of weight s(y) over all components: (K, P, n), (K, n) -> (1, P)."""
        return super().second_moments(whitened, weights).sum(axis=0, keepdims=True)


class SphericalCovariance(ScaleStructure):
    """Every component has one precision, the same in every direction."""

    def __init__(self, n_components, n_features, parts=NORMAL_COMPONENTS):
        super().__init__(
            n_components,
            n_features,
            np.ones(1),
            np.ones(1),
            Wisharts(1, power=n_features, n_means=n_components if self.shares_precision else 1),
            parts=parts,
        )
        self.prior_shape = ()

    def statistic(self, vectors):
        """s(y) = |y|^2: (..., P, n) -> (..., 1, n)."""
        return np.einsum("...pn,...pn->...n", vectors, vectors)[..., None, :]

    def diagonal_factors(self, scale):
        """The columns' root mean variance, (P,) -> (K, 1)."""
        return np.full((self.n_groups, 1), np.sqrt(np.mean(np.square(scale))))

    def entry_names(self, feature_names):
        """One empty name: the entry belongs to no feature."""
        return [""]
