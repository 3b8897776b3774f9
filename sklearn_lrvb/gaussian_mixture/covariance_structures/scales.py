"""Structures whose precisions are numbers with gamma factors: diagonal and spherical."""

import numpy as np

from sklearn_lrvb.exponential_families.quantiles import gamma_quantile
from sklearn_lrvb.gaussian_mixture.covariance_structures.base import CovarianceStructure
from sklearn_lrvb.gaussian_mixture.covariance_structures.pairs import ScalePair


class ScaleStructure(CovarianceStructure):
    """Precisions are numbers, one for every feature or one for all."""

    block = 1

    # Statistics and maps.

    def flattened(self, sums):
        """(..., Q) as it is."""
        return sums

    def unflattened(self, vectors):
        """(..., Q) as it is."""
        return vectors

    def transposed(self, maps):
        """(K, Q) as it is."""
        return maps

    def transformed(self, maps, vectors):
        """Every component's map of its vector: (K, Q), (..., K, P) -> (..., K, P)."""
        return maps * vectors

    def congruence(self, maps, sums):
        """s of stretched vectors, from s: (K, Q), (..., K, Q) -> (..., K, Q)."""
        return np.square(maps) * sums

    def trace(self, sums):
        """(K, Q) -> (K,)."""
        return sums.sum(axis=1)

    def norm(self, sums):
        """Root sum of squares, (K, Q) -> (K,)."""
        return np.sqrt(np.square(sums).sum(axis=1))

    # Frames.

    def cholesky(self, variances):
        """Standard deviations, (K, Q)."""
        return np.sqrt(variances)

    def whiteners(self, covariance_cholesky):
        """Reciprocals of the standard deviations."""
        return 1.0 / covariance_cholesky

    def log_determinants(self, covariance_cholesky):
        """log|E(Lambda)^-1|, (K,)."""
        return 2.0 * self.power * np.log(covariance_cholesky).sum(axis=1)

    def factors(self, variances):
        """Square roots; None where a variance is not positive."""
        return [np.sqrt(own) if np.all(own > 0) else None for own in variances]

    def composed(self, covariance_cholesky, factors):
        """Standard deviations, (K, Q)."""
        return covariance_cholesky * factors

    def deviations(self, covariance_cholesky):
        """Standard deviations of the features, or of all of them, (K, Q)."""
        return covariance_cholesky

    def precision_trace(self, whiteners):
        """trace E Lambda, (K,)."""
        return self.power * np.square(whiteners).sum(axis=1)

    def whiten(self, whiteners, centred_means, block):
        """Rows in every component's frame: (P, n) -> (K, P, n)."""
        whitened = block - centred_means[:, :, None]
        whitened *= whiteners[:, :, None]
        return whitened

    def average_cholesky(self, covariance_cholesky, shares):
        """Root of the average of the variances: (K, Q), (K,) -> (1, Q)."""
        return np.sqrt(shares @ np.square(covariance_cholesky))[None]

    def move_into(self, whitener, center, block, rows):
        """Write rows in one frame: (1, Q), (P,), (P, n) into (P, n)."""
        np.subtract(block, center[:, None], out=rows)
        rows *= whitener[0][:, None]

    def second_moments(self, whitened, weights):
        """Sums of weight s(y): (K, P, n), (K, n) -> (K, Q)."""
        return self.signed_second_moments(whitened, weights)

    def signed_second_moments(self, whitened, weights):
        """Sums of weight s(y), weights of any sign: (K, P, n), (K, n) -> (K, Q)."""
        return np.matmul(self.statistic(whitened), weights[:, :, None])[:, :, 0]

    # A precision for every row.

    def statistic_by_row(self, vectors):
        """s(v): (P, n) -> (n, Q)."""
        return self.statistic(vectors).T

    def cholesky_by_row(self, variances):
        """Standard deviations, NaN where a variance is not positive: (n, Q)."""
        return np.sqrt(np.where(variances > 0, variances, np.nan))

    def squares_by_row(self, covariance_cholesky, vectors, noise):
        """Trace of (root root')^-1 (v v' + noise): (n, Q), (P, n), (Q,) -> (n,)."""
        return ((self.statistic_by_row(vectors) + noise) / np.square(covariance_cholesky)).sum(axis=1)

    # Features.

    def curvature_products(self, curvature, whitened):
        """B.s(y): (K, Q), (K, P, n) -> (K, n)."""
        return np.matmul(curvature[:, None, :], self.statistic(whitened))[:, 0]

    def quadratic_entries(self, whitened, origin, entries):
        """Some quadratic features of one component: (P, n), (Q,), int array (m,) -> (m, n)."""
        return (self.statistic(whitened)[entries] - origin[entries, None]) / self._feature_norm

    def quadratic_kernel(self, whitened, others, inner_products, origin):
        """Inner products of quadratic features: (P, n), (P, m), unused -> (n, m)."""
        everything = np.arange(self.n_quadratic)
        one, other = (self.quadratic_entries(rows, origin, everything) for rows in (whitened, others))
        return one.T @ other

    def quadratic_products(self, whitened, others, origin):
        """Inner products of quadratic features, row by row: (P, n), (P, n), (Q,) -> (n,)."""
        everything = np.arange(self.n_quadratic)
        one, other = (self.quadratic_entries(rows, origin, everything) for rows in (whitened, others))
        return np.einsum("qn,qn->n", one, other)

    def write_entries(self, rows, entries):
        """Write s(y): (P, n) into (Q, n)."""
        entries[...] = self.statistic(rows)

    def entry_coefficients(self, curvature):
        """As they are, (..., Q)."""
        return curvature

    # Influence functions: gradients of a + b.y + B.s(y).

    def gradients(self, whiteners, linear, curvature):
        """Sums over components of weight W'(b + 2 B y), for many functions.

        Parameters
        ----------
        linear : (d, K, P)
        curvature : (d, K, Q)

        Returns
        -------
        callable, weights (K, n), whitened rows (K, P, n), written to (n, d, P)
        """
        slope = (whiteners * linear).transpose(2, 1, 0)  # (P, K, d)
        bent = np.broadcast_to(2.0 * whiteners * curvature, linear.shape).transpose(2, 1, 0)
        gradient_map = np.concatenate([slope, bent], axis=1)

        def gradients(weights, whitened, out):
            flat = np.broadcast_to(weights[:, None], whitened.shape)
            stacked = np.concatenate([flat, weights[:, None] * whitened])
            out[...] = np.matmul(stacked.transpose(1, 2, 0), gradient_map).transpose(1, 2, 0)

        return gradients

    def pulled_back(self, whiteners, whitened):
        """W'y: (K, P, n) -> (K, n, P)."""
        return np.multiply(whitened.transpose(0, 2, 1), whiteners[:, None, :], order="C")

    # The missing information.

    def pair(self, posterior, k, l):
        """The two components' share of the missing information."""
        return ScalePair(posterior, k, l)

    @property
    def sweep_flops(self):
        """Matrix products of one component and row in a sweep."""
        return 0

    @property
    def pair_flops(self):
        """Per uncertain row, and per pair."""
        n_monomials = 1 + self.n_features + self.n_quadratic
        return n_monomials**2, 10 * n_monomials**3

    # The prior and what is reported.

    def scatter(self, block, weights):
        """Sum of weight times squares, of which `default_prior` makes a prior: (P, n) -> (Q,)."""
        squares = self.statistic(block) / self.power
        return squares.sum(axis=1) if weights is None else squares @ weights

    def prior_log_determinant(self, covariance):
        """Sum of log C0, or None where C0 is not positive."""
        return np.log(covariance).sum() if np.all(covariance > 0) else None

    def dense(self, by_group):
        """Every component's matrix: (K, Q) -> (K, P, P)."""
        return by_group[:, :, None] * np.eye(self.n_features)

    def draw(self, random_state, mean, variance, n_rows):
        """Rows of one component, by the same random numbers as scikit-learn: (n_rows, P)."""
        return mean + random_state.standard_normal(size=(n_rows, self.n_features)) * np.sqrt(variance)

    def random_factors(self, changes, deviations, degrees_of_freedom):
        """Roots of random precisions in their own frames, gamma variables with mean 1.

        Parameters
        ----------
        changes : (n, K, Q), normal with mean 0 and standard deviations ``deviations`` (K, Q)
        degrees_of_freedom : (K,), not needed

        Returns
        -------
        factors : (n, K, Q)
        """
        return np.sqrt(gamma_quantile(changes / deviations, 1.0, deviations))

    def unique_entries(self, numbers):
        """What of a precision array is reported once: (..., K, Q) -> (..., K Q)."""
        return numbers.reshape(*numbers.shape[:-2], -1)

    def from_unique_entries(self, entries):
        """Inverse of `unique_entries`: (..., K Q) -> (..., K, Q)."""
        return entries.reshape(*entries.shape[:-1], self.n_components, self.n_quadratic)


class DiagonalCovariance(ScaleStructure):
    """Every component has a precision for every feature, features being independent within it."""

    def __init__(self, n_components, n_features):
        super().__init__(n_components, n_features)
        self.n_blocks = self.n_quadratic = n_features
        self.identity_statistic = self.identity = np.ones(n_features)

    def statistic(self, vectors):
        """s(y) = (y_p^2): (..., P, n) -> (..., P, n)."""
        return np.square(vectors)

    def scaled_frames(self, scale):
        """Roots that stretch by the columns' scale, (P,) -> (K, P)."""
        return np.repeat(scale[None], self.n_components, axis=0)

    def monomial_map(self, turn, shift, origin):
        """From (1, z, z^2) to the features of y = turn z + shift, (F, F)."""
        nothing = np.zeros((len(turn), len(turn)))
        linear = np.hstack([shift[:, None], np.diag(turn), nothing])
        quadratic = np.hstack(
            [(np.square(shift) - origin)[:, None], np.diag(2.0 * turn * shift), np.diag(np.square(turn))]
        )
        intercept = np.eye(1, linear.shape[1])
        return np.vstack([intercept, linear, quadratic / self._feature_norm])

    def reported(self, by_group):
        """In the shape of the attribute: (..., K, P)."""
        return by_group

    def by_group(self, reported):
        """Inverse of `reported`."""
        return reported

    def entry_labels(self, feature_names):
        """Labels of the entries: "0,x1"."""
        return [f"{k},{name}" for k in range(self.n_components) for name in feature_names]

    @property
    def prior_shape(self):
        """Shape of `covariance_prior`."""
        return (self.n_features,)


class SphericalCovariance(ScaleStructure):
    """Every component has one precision, the same in every direction."""

    n_quadratic = 1

    def __init__(self, n_components, n_features):
        super().__init__(n_components, n_features)
        self.power = n_features
        self.identity_statistic, self.identity = np.array([float(n_features)]), np.ones(1)

    def statistic(self, vectors):
        """s(y) = |y|^2: (..., P, n) -> (..., 1, n)."""
        return np.einsum("...pn,...pn->...n", vectors, vectors)[..., None, :]

    def scaled_frames(self, scale):
        """Roots that stretch by the columns' common scale, (P,) -> (K, 1)."""
        return np.full((self.n_components, 1), np.sqrt(np.mean(np.square(scale))))

    def monomial_map(self, turn, shift, origin):
        """From (1, z, |z|^2) to the features of y = turn z + shift, (F, F)."""
        linear = np.hstack([shift[:, None], turn * np.eye(len(shift)), np.zeros((len(shift), 1))])
        quadratic = np.concatenate([shift @ shift - origin, 2.0 * turn * shift, np.square(turn)])
        return np.vstack([np.eye(1, linear.shape[1]), linear, quadratic / self._feature_norm])

    def reported(self, by_group):
        """In the shape of the attribute: (..., K)."""
        return by_group[..., 0]

    def by_group(self, reported):
        """Inverse of `reported`: (K,) -> (K, 1)."""
        return reported[:, None]

    def entry_labels(self, feature_names):
        """Labels of the entries: "0"."""
        return [f"{k}" for k in range(self.n_components)]

    @property
    def prior_shape(self):
        """Shape of `covariance_prior`."""
        return ()
