"""Covariance structures of matrices: "full" and "tied"."""

import numpy as np
from scipy.linalg import lapack

from sklearn_lrvb.distributions.wishart import Wisharts
from sklearn_lrvb.gaussian.covariance_structures.features import NORMAL_COMPONENTS, Features, OptionalParts
from sklearn_lrvb.gaussian.covariance_structures.random_factors import BartlettFactors
from sklearn_lrvb.gaussian.covariance_structures.structures import CovarianceStructure
from sklearn_lrvb.symmetric_matrices import (
    cholesky_factors,
    from_unique_entries,
    scaled_to_unit_diagonal,
    symmetrized,
    unique_entries,
    upper_triangle,
)

# Ratio of two columns' standard deviations below which the eigenvectors of a covariance keep all columns.
_MAX_RATIO_OF_UNITS = 1e4

# Distance of the components from the origin, of all together and in their own standard deviations, from which
# means are subtracted from the rows before these are whitened: a difference of whitened vectors would lose
# more than three digits.
_FAR = 1000.0


class MatrixFeatures(Features):
    """Features of matrices: some by formulas that form fewer products of features than all of them."""

    def some_quadratic(self, whitened, origin, index=slice(None)):
        """Some quadratic features of one component, without forming the others: int array (m,) -> (m, n)."""
        row, column = (coordinates[index] for coordinates in upper_triangle(self._structure.n_features))
        products = whitened[row] * whitened[column] - origin[row, column, None]
        products *= np.where(row == column, np.sqrt(0.5), 1.0)[:, None]
        return products

    def kernel(self, whitened, others, inner_products, origin):
        """Inner products of quadratic features: (P, n), (P, m), (n, m) -> (n, m)."""
        kernel = np.square(inner_products)
        kernel -= np.einsum("pn,pn->n", whitened, origin @ whitened)[:, None]
        kernel -= np.einsum("pn,pn->n", others, origin @ others)
        kernel += np.einsum("pq,pq->", origin, origin)
        kernel *= 0.5
        return kernel

    def products_by_row(self, whitened, others, origin):
        """Inner products of quadratic features, row by row: (P, n), (P, n), (P, P) -> (n,)."""
        products = np.square(np.einsum("pn,pn->n", whitened, others))
        products -= np.einsum("pn,pn->n", whitened, origin @ whitened)
        products -= np.einsum("pn,pn->n", others, origin @ others)
        return 0.5 * (products + np.einsum("pq,pq->", origin, origin))

    def congruences(self, maps):
        """As of every structure, from products of two entries of M: (n, P, P) -> (n, Q, Q)."""
        row, column = upper_triangle(self._structure.n_features)
        of_rows, of_columns = maps[:, row], maps[:, column]
        products = of_rows[:, :, row] * of_columns[:, :, column]
        products += of_rows[:, :, column] * of_columns[:, :, row]
        products *= self.scale
        products *= self.scale[:, None]
        return products

    def values(self, constant, linear, curvature):
        """As in every structure; a few functions are computed from b + B y, which is smaller than y y'."""
        n_functions, n_features = linear.shape
        if n_functions * n_features >= self._structure.n_quadratic:
            return super().values(constant, linear, curvature)
        slope_map = np.concatenate([linear[:, :, None], curvature], axis=2).reshape(-1, 1 + n_features)
        coefficients = self.entry_coefficients(curvature)

        def values_of_rows(rows, spread=None):
            with_one = np.concatenate([np.ones((1, rows.shape[1])), rows])
            slopes = (slope_map @ with_one).reshape(n_functions, n_features, -1)
            at_rows = np.einsum("dpn,pn->dn", slopes, rows) + constant[:, None]
            return at_rows if spread is None else at_rows + coefficients @ spread

        return values_of_rows

    def gradients(self, whiteners, linear, curvature):
        """As of every structure: linear (d, K, P), curvature (d, S, P, P)."""
        n_functions, n_features = len(linear), self._structure.n_features
        back = self._structure.transposed(whiteners)
        slope = self._structure.transformed(back, linear).transpose(1, 0, 2)  # (K, d, P)
        bent = np.broadcast_to(
            2.0 * back @ curvature, (n_functions, self._structure.n_components, n_features, n_features)
        ).transpose(1, 3, 0, 2)
        gradient_map = np.concatenate([slope[:, None], bent], axis=1)
        gradient_map = gradient_map.reshape(self._structure.n_components * (1 + n_features), -1)

        def gradients(weights, whitened, out):
            stacked = np.empty((len(weights), 1 + n_features, len(out)))
            stacked[:, 0] = weights
            np.multiply(weights[:, None], whitened, out=stacked[:, 1:])
            np.matmul(stacked.reshape(len(gradient_map), -1).T, gradient_map, out=out.reshape(len(out), -1))

        return gradients


class MatrixStructure(CovarianceStructure):
    """Precision matrices (P, P), or their restrictions to P of ``n_dimensions``."""

    features_type = MatrixFeatures
    random_factors_type = BartlettFactors

    def __init__(self, n_components, n_features, parts=NORMAL_COMPONENTS, n_dimensions=None):
        row, column = upper_triangle(n_features)
        super().__init__(
            n_components,
            n_features,
            np.eye(n_features),
            np.where(row == column, 1.0, 2.0),
            Wisharts(n_dimensions or n_features, n_means=n_components if self.shares_precision else 1),
            n_dimensions,
            parts,
        )

    def resized(self, n_components):
        """The same structure for another number of components, without noise component or fitted nu."""
        parts = OptionalParts(has_scales=self.has_scales)
        return type(self)(n_components, self.n_features, parts, self.n_dimensions)

    def projected(self, n_features):
        """The structure of the same model for rows that are projected onto a subspace of this size."""
        return type(self)(self.n_components, n_features, self.parts, self.n_dimensions)

    # Statistics.

    entries = staticmethod(unique_entries)  # Upper triangles, row by row.

    def from_entries(self, entries):
        """Inverse of `entries`: (..., Q) -> (..., P, P)."""
        return from_unique_entries(entries, self.n_features)

    def diagonal(self, statistics):
        """Diagonals, (..., P, P) -> (..., P)."""
        return np.einsum("...pp->...p", statistics)

    def write_entries(self, rows, entries):
        """Write y_p y_q, p <= q: (P, n) into (Q, n)."""
        start = 0
        for p, row in enumerate(rows):
            stop = start + len(rows) - p
            np.multiply(rows[p:], row, out=entries[start:stop])
            start = stop

    def statistic_by_row(self, vectors):
        """v v': (P, n) -> (n, P, P)."""
        return np.einsum("pn,qn->npq", vectors, vectors)

    def second_moments(self, whitened, weights):
        """Sums of weight y y' in every group: (K, P, n), (K, n) -> (S, P, P)."""
        if weights.min(initial=0.0) < 0.0:
            moments = symmetrized(np.matmul(weights[:, None, :] * whitened, whitened.transpose(0, 2, 1)))
        else:  # The product of an array with its own transpose takes half the flops.
            moments = self.gram(np.sqrt(weights)[:, None, :] * whitened)
        return moments if len(moments) == self.n_groups else moments.sum(axis=0, keepdims=True)

    def sum_of_squares(self, vectors, weights):
        """Sums of weight v v' within the groups, exactly symmetric: (K, P), (K,) -> (S, P, P)."""
        if self.shares_precision:
            return symmetrized(weights * vectors.T @ vectors)[None]
        return vectors[:, :, None] * vectors[:, None, :] * weights[:, None, None]

    def curvature_products(self, curvature, whitened):
        """y' B y: (S, P, P), (K, P, n) -> (K, n)."""
        return np.einsum("kpn,kpn->kn", np.matmul(curvature, whitened), whitened)

    # Maps.

    cholesky = staticmethod(cholesky_factors)

    def diagonal_factors(self, scale):
        """Diagonal matrices of the columns' scale, (P,) -> (S, P, P)."""
        return np.repeat(np.diag(scale)[None], self.n_groups, axis=0)

    def whiteners(self, covariance_cholesky):
        """Inverses of lower triangular matrices, (n, P, P)."""
        whiteners = np.empty_like(covariance_cholesky, order="C")
        for whitener, factor in zip(whiteners, covariance_cholesky, strict=True):
            # LAPACK sees the transposes, in its own memory order. Their zeros below the diagonal stay.
            whitener[...] = lapack.dtrtri(factor.T, lower=False)[0].T
        return whiteners

    def transposed(self, maps):
        """Transposed matrices, (n, P, P) -> (n, P, P)."""
        return maps.swapaxes(-1, -2)

    def composed(self, maps, others):
        """Matrix products, (n, P, P)."""
        return maps @ others

    def transformed(self, maps, vectors):
        """Every component's matrix times its vector: (S, P, P) or (n, S, P, P), (..., K, P) to the last."""
        if vectors.ndim == 2 or maps.ndim > 3:
            return np.matmul(maps, vectors[..., None])[..., 0]
        by_component = np.moveaxis(vectors, -2, 0)
        n_components, *lead, n_features = by_component.shape
        images = by_component.reshape(n_components, -1, n_features) @ maps.swapaxes(-1, -2)
        return np.moveaxis(images.reshape(n_components, *lead, n_features), 0, -2)

    def outer_products(self, vectors, others):
        """v w', summed in the groups: (..., K, P), (..., K, P) -> (..., S, P, P)."""
        if self.shares_precision:
            return (vectors.swapaxes(-1, -2) @ others)[..., None, :, :]
        return vectors[..., :, None] * others[..., None, :]

    def congruence(self, maps, statistics):
        """M s M': (S, P, P), (..., S, P, P) -> (..., S, P, P)."""
        return maps @ statistics @ maps.swapaxes(-1, -2)

    def gram(self, maps):
        """M M': (..., S, P, P) -> (..., S, P, P)."""
        # A product of one array with its transpose takes half the flops of others.
        return maps @ maps.swapaxes(-1, -2)

    def average_cholesky(self, covariance_cholesky, shares):
        """Lower factor of the average covariance by a QR decomposition: (S, P, P), (S,) -> (1, P, P)."""
        if len(covariance_cholesky) == 1:
            return covariance_cholesky
        stacked = np.sqrt(shares)[:, None, None] * self.transposed(covariance_cholesky)
        return np.linalg.qr(stacked.reshape(-1, self.n_features), mode="r").T[None]

    # Rows.

    def whiten(self, whiteners, centred_means, with_one):
        """Rows in every component's whitened coordinates: (S, P, P), (K, P), (1 + P, n) -> (K, P, n)."""
        shifts = -np.matmul(whiteners, centred_means[:, :, None])
        if np.abs(shifts).max() > _FAR:
            return whiteners @ (with_one[1:] - centred_means[:, :, None])
        if self.shares_precision:
            return (whiteners[0] @ with_one[1:])[None] + shifts
        maps = np.concatenate([shifts, whiteners], axis=2).reshape(-1, 1 + self.n_features)
        return (maps @ with_one).reshape(len(centred_means), self.n_features, -1)

    def whiten_into(self, whitener, center, block, rows):
        """Write rows in common coordinates: (1, P, P), (P,), (P, n) into (P, n)."""
        np.matmul(whitener[0], block, out=rows)
        rows -= (whitener[0] @ center)[:, None]

    def pulled_back(self, whiteners, whitened):
        """W'y: (K, P, n) -> (K, n, P)."""
        return whitened.transpose(0, 2, 1) @ whiteners

    def squares_by_row(self, covariance_cholesky, vectors, noise):
        """Trace of (L L')^-1 (v v' + noise): (n, P, P), (P, n), (P, P) -> (n,)."""
        if not noise.any():
            whitened = np.linalg.solve(covariance_cholesky, vectors.T[:, :, None])
            return np.square(whitened).sum(axis=(1, 2))
        whiteners = np.linalg.inv(covariance_cholesky)
        squares = np.square(whiteners @ vectors.T[:, :, None]).sum(axis=(1, 2))
        precisions = self.gram(self.transposed(whiteners))
        return squares + np.einsum("npq,pq->n", precisions, noise)

    # Random numbers and names.

    def draw(self, random_state, mean, covariance, n_rows):
        """Rows of one component, by the same random numbers as scikit-learn: (n_rows, P).

        Where the columns' units differ so much that the eigenvectors of the covariance would lose the small
        ones, those of the correlations are used instead.
        """
        correlations, scale = scaled_to_unit_diagonal(covariance)
        if scale.max() < _MAX_RATIO_OF_UNITS * scale.min():
            return random_state.multivariate_normal(mean, covariance, n_rows)
        return mean + scale * random_state.multivariate_normal(np.zeros_like(mean), correlations, n_rows)

    def entry_names(self, feature_names):
        """Names such as "x1,x2"."""
        rows, columns = upper_triangle(self.n_features)
        return [f"{feature_names[p]},{feature_names[q]}" for p, q in zip(rows, columns, strict=True)]


class FullCovariance(MatrixStructure):
    """Every component has a precision matrix of its own."""


class TiedCovariance(MatrixStructure):
    """All components share one precision matrix."""

    shares_precision = True
