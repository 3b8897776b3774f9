"""Structures whose precisions are matrices with Wishart factors: full and tied."""

import numpy as np
from scipy.linalg import lapack

from sklearn_lrvb.gaussian_mixture.covariance_structures.bartlett import bartlett_factors
from sklearn_lrvb.gaussian_mixture.covariance_structures.base import CovarianceStructure
from sklearn_lrvb.gaussian_mixture.covariance_structures.pairs import AllFullPairs, FullPair, TiedPair
from sklearn_lrvb.gaussian_mixture.covariance_structures.quartic_moments import quartic_moments
from sklearn_lrvb.symmetric_matrices import (
    cholesky_factor,
    cholesky_factors,
    from_unique_entries,
    smat,
    svec,
    symmetrized,
    unique_entries,
    upper_triangle,
)

# Monomials of a row that are formed for every component, and still cost less than the component's own frame.
_MONOMIALS_PER_COMPONENT = 36
_SQUARED_AT_HALF_THE_FLOPS = 64  # features from which a product of one array with itself is the faster one


class MatrixStructure(CovarianceStructure):
    """Precision matrices (P, P)."""

    def __init__(self, n_components, n_features):
        super().__init__(n_components, n_features)
        self.block = n_features
        self.n_quadratic = n_features * (n_features + 1) // 2
        self.identity_statistic = self.identity = np.eye(n_features)

    # Statistics and maps.

    def flattened(self, matrices):
        """svec: (..., P, P) -> (..., Q)."""
        return svec(matrices)

    def unflattened(self, vectors):
        """smat: (..., Q) -> (..., P, P)."""
        return smat(vectors, self.n_features)

    def transposed(self, maps):
        """(S, P, P) -> (S, P, P)."""
        return maps.swapaxes(-1, -2)

    def transformed(self, maps, vectors):
        """Every component's map of its vector: (S, P, P), (..., K, P) -> (..., K, P)."""
        if vectors.ndim == 2:
            return np.matmul(maps, vectors[:, :, None])[:, :, 0]
        by_component = np.moveaxis(vectors, -2, 0)
        n_components, *lead, n_features = by_component.shape
        images = by_component.reshape(n_components, -1, n_features) @ self.transposed(maps)
        return np.moveaxis(images.reshape(n_components, *lead, n_features), 0, -2)

    def congruence(self, maps, matrices):
        """M s M': (S, P, P), (..., S, P, P) -> (..., S, P, P)."""
        return maps @ matrices @ self.transposed(maps)

    def trace(self, matrices):
        """(S, P, P) -> (S,)."""
        return np.einsum("spp->s", matrices)

    def norm(self, matrices):
        """Root sum of squares, (S, P, P) -> (S,)."""
        return np.sqrt(np.einsum("spq,spq->s", matrices, matrices))

    # Frames.

    def scaled_frames(self, scale):
        """Roots that stretch by the columns' scale, (P,) -> (S, P, P)."""
        return np.repeat(np.diag(scale)[None], self.n_precision_groups, axis=0)

    def cholesky(self, covariances):
        """Lower Cholesky factors of positive definite matrices, (S, P, P)."""
        return np.linalg.cholesky(covariances)

    def whiteners(self, covariance_cholesky):
        """W with W root = I, where the root is the Cholesky factor of E(Lambda)^-1."""
        whiteners = np.empty_like(covariance_cholesky, order="C")
        for whitener, root in zip(whiteners, covariance_cholesky, strict=True):
            whitener[...] = lapack.dtrtri(root, lower=True)[0]  # leaves the zeros above
        return whiteners

    def log_determinants(self, covariance_cholesky):
        """log|E(Lambda)^-1|, (S,)."""
        return 2.0 * np.log(np.einsum("spp->sp", covariance_cholesky)).sum(axis=1)

    def factors(self, covariances):
        """Lower Cholesky factors; None where a matrix is singular to working precision."""
        return cholesky_factors(covariances)

    def composed(self, covariance_cholesky, factors):
        """Roots of root factor factor' root', (S, P, P)."""
        return covariance_cholesky @ factors

    def deviations(self, covariance_cholesky):
        """Standard deviations of the features, (S, P)."""
        return np.sqrt(np.einsum("spq,spq->sp", covariance_cholesky, covariance_cholesky))

    def precision_trace(self, whiteners):
        """trace E Lambda, (S,)."""
        return np.einsum("spq,spq->s", whiteners, whiteners)

    def average_cholesky(self, covariance_cholesky, shares):
        """Lower root of the average of root root', without squaring: (S, P, P), (S,) -> (1, P, P)."""
        if len(covariance_cholesky) == 1:
            return covariance_cholesky
        stacked = np.sqrt(shares)[:, None, None] * self.transposed(covariance_cholesky)
        return np.linalg.qr(stacked.reshape(-1, self.n_features), mode="r").T[None]

    def move_into(self, whitener, center, block, rows):
        """Write rows in one frame: (1, P, P), (P,), (P, n) into (P, n)."""
        np.matmul(whitener[0], block, out=rows)
        rows -= (whitener[0] @ center)[:, None]

    def signed_second_moments(self, whitened, weights):
        """Sums of weight y y' in every group: (K, P, n), (K, n) -> (S, P, P)."""
        moments = np.matmul(weights[:, None, :] * whitened, whitened.transpose(0, 2, 1))
        moments = symmetrized(moments)
        return moments if len(moments) == self.n_precision_groups else moments.sum(axis=0, keepdims=True)

    # A precision for every row.

    def statistic_by_row(self, vectors):
        """v v': (P, n) -> (n, P, P)."""
        return np.einsum("pn,qn->npq", vectors, vectors)

    def cholesky_by_row(self, covariances):
        """Lower Cholesky factors, NaN where a matrix is singular to working precision: (n, P, P)."""
        nothing = np.full(covariances.shape[1:], np.nan)
        return np.array([nothing if root is None else root for root in cholesky_factors(covariances)])

    def squares_by_row(self, covariance_cholesky, vectors, noise):
        """Trace of (root root')^-1 (v v' + noise): (n, P, P), (P, n), (P, P) -> (n,)."""
        right = vectors.T[:, :, None]
        if not noise.any():
            return np.square(np.linalg.solve(covariance_cholesky, right)).sum(axis=(1, 2))
        identities = np.broadcast_to(np.eye(self.n_features), covariance_cholesky.shape)
        whitened = np.linalg.solve(covariance_cholesky, np.concatenate([right, identities], axis=2))
        inverses = whitened[:, :, 1:]
        traces = np.einsum("npq,npq->n", inverses @ noise, inverses)
        return np.square(whitened[:, :, 0]).sum(axis=1) + traces

    # Features.

    def curvature_products(self, curvature, whitened):
        """y' B y: (S, P, P), (K, P, n) -> (K, n)."""
        return np.einsum("kpn,kpn->kn", np.matmul(curvature, whitened), whitened)

    def quadratic_entries(self, whitened, origin, entries):
        """Some quadratic features of one component: (P, n), (P, P), int array (m,) -> (m, n)."""
        row, column = (part[entries] for part in upper_triangle(self.n_features))
        products = whitened[row] * whitened[column] - origin[row, column, None]
        products *= np.where(row == column, np.sqrt(0.5), 1.0)[:, None]
        return products

    def quadratic_kernel(self, whitened, others, inner_products, origin):
        """Inner products of quadratic features: (P, n), (P, m), (n, m) -> (n, m)."""
        kernel = np.square(inner_products)
        kernel -= np.einsum("pn,pn->n", whitened, origin @ whitened)[:, None]
        kernel -= np.einsum("pn,pn->n", others, origin @ others)
        kernel += np.einsum("pq,pq->", origin, origin)
        kernel *= 0.5
        return kernel

    def quadratic_products(self, whitened, others, origin):
        """Inner products of quadratic features, row by row: (P, n), (P, n), (P, P) -> (n,)."""
        products = np.square(np.einsum("pn,pn->n", whitened, others))
        products -= np.einsum("pn,pn->n", whitened, origin @ whitened)
        products -= np.einsum("pn,pn->n", others, origin @ others)
        return 0.5 * (products + np.einsum("pq,pq->", origin, origin))

    def write_entries(self, rows, entries):
        """Write y_p y_q, p <= q: (P, n) into (Q, n)."""
        start = 0
        for p, row in enumerate(rows):
            stop = start + len(rows) - p
            np.multiply(rows[p:], row, out=entries[start:stop])
            start = stop

    def entry_coefficients(self, curvature):
        """y' B y as coefficients of the entries: (..., P, P) -> (..., Q)."""
        row, column = upper_triangle(self.n_features)
        return np.where(row == column, 1.0, 2.0) * unique_entries(curvature)

    # Influence functions: values and gradients of a + b.y + y'B y.

    def values(self, constant, linear, curvature):
        """As in every structure, but of few functions by b + B y, which are fewer numbers than y y'."""
        n_functions, n_features = linear.shape
        if n_functions * n_features >= self.n_quadratic:
            return super().values(constant, linear, curvature)
        slope_map = np.concatenate([linear[:, :, None], curvature], axis=2).reshape(-1, 1 + n_features)

        def values(rows):
            with_one = np.concatenate([np.ones((1, rows.shape[1])), rows])
            slopes = (slope_map @ with_one).reshape(n_functions, n_features, -1)
            return np.einsum("dpn,pn->dn", slopes, rows) + constant[:, None]

        return values

    def gradients(self, whiteners, linear, curvature):
        """Sums over components of weight W'(b + 2 B y), for many functions.

        Parameters
        ----------
        linear : (d, K, P)
        curvature : (d, S, P, P)

        Returns
        -------
        callable, weights (K, n), whitened rows (K, P, n), written to (n, d, P)
        """
        n_functions, n_features = len(linear), self.n_features
        back = self.transposed(whiteners)
        slope = self.transformed(back, linear).transpose(1, 0, 2)  # (K, d, P)
        bent = np.broadcast_to(
            2.0 * back @ curvature, (n_functions, self.n_components, n_features, n_features)
        ).transpose(1, 3, 0, 2)
        gradient_map = np.concatenate([slope[:, None], bent], axis=1)
        gradient_map = gradient_map.reshape(self.n_components * (1 + n_features), -1)

        def gradients(weights, whitened, out):
            stacked = np.empty((len(weights), 1 + n_features, len(out)))
            stacked[:, 0] = weights
            np.multiply(weights[:, None], whitened, out=stacked[:, 1:])
            np.matmul(stacked.reshape(len(gradient_map), -1).T, gradient_map, out=out.reshape(len(out), -1))

        return gradients

    def pulled_back(self, whiteners, whitened):
        """W'y: (K, P, n) -> (K, n, P)."""
        return whitened.transpose(0, 2, 1) @ whiteners

    # The prior and what is reported.

    def scatter(self, block, weights):
        """Sum of weight x x', of which `default_prior` makes a prior: (P, n), (n,) or None -> (P, P)."""
        weighted = block if weights is None else weights * block
        return weighted @ block.T

    def prior_log_determinant(self, covariance):
        """Sum of log|C0| over the blocks, or None where C0 is not positive definite."""
        factor = cholesky_factor(covariance)
        return None if factor is None else 2.0 * np.log(np.diag(factor)).sum()

    def dense(self, by_group):
        """Every component's matrix: (S, P, P) -> (K, P, P)."""
        return self.per_component(by_group)

    def draw(self, random_state, mean, covariance, n_rows):
        """Rows of one component, by the same random numbers as scikit-learn: (n_rows, P)."""
        return random_state.multivariate_normal(mean, covariance, n_rows)

    def random_factors(self, changes, deviations, degrees_of_freedom):
        """Roots of random precisions in their own frames (`bartlett_factors`), (n, S, P, P)."""
        return bartlett_factors(changes, deviations, degrees_of_freedom)

    def unique_entries(self, matrices):
        """What of a precision array is reported once: (..., S, P, P) -> (..., S Q)."""
        entries = unique_entries(matrices)
        return entries.reshape(*entries.shape[:-2], -1)

    def from_unique_entries(self, entries):
        """Inverse of `unique_entries`: (..., S Q) -> (..., S, P, P)."""
        by_group = entries.reshape(*entries.shape[:-1], self.n_precision_groups, self.n_quadratic)
        return from_unique_entries(by_group, self.n_features)

    def _entry_labels(self, feature_names):
        rows, columns = upper_triangle(self.n_features)
        return [f"{feature_names[p]},{feature_names[q]}" for p, q in zip(rows, columns, strict=True)]

    @property
    def prior_shape(self):
        """Shape of `covariance_prior`."""
        return (self.n_features, self.n_features)


class FullCovariance(MatrixStructure):
    """Every component has a precision matrix of its own."""

    def whiten(self, whiteners, centred_means, block):
        """Rows in every component's frame: (P, n) -> (K, P, n), one product for all."""
        shifts = self.transformed(whiteners, centred_means)
        maps = np.concatenate([-shifts[:, :, None], whiteners], axis=2).reshape(-1, 1 + self.n_features)
        with_one = np.concatenate([np.ones((1, block.shape[1])), block])
        return (maps @ with_one).reshape(len(centred_means), self.n_features, -1)

    def second_moments(self, whitened, weights):
        """`signed_second_moments` for weights >= 0."""
        moments = np.empty((len(whitened), self.n_features, self.n_features))
        scaled = np.empty(whitened.shape[1:])
        if self.n_features < _SQUARED_AT_HALF_THE_FLOPS:
            for rows, own, moment in zip(whitened, weights, moments, strict=True):
                np.multiply(own, rows, out=scaled)
                np.matmul(scaled, rows.T, out=moment)
            return symmetrized(moments)
        for rows, own, moment in zip(whitened, np.sqrt(weights), moments, strict=True):
            np.multiply(own, rows, out=scaled)
            np.matmul(scaled, scaled.T, out=moment)  # one array twice
        return moments

    # A row has P^2/2 monomials, and K P numbers in the components' own frames.

    @property
    def prefers_common_frame(self):
        """Whether forming the monomials costs less than it saves (measured)."""
        return self.n_monomials <= _MONOMIALS_PER_COMPONENT * self.n_components

    @property
    def prefers_pair_frame(self):
        """Whether there are two components with many monomials."""
        return self.n_components == 2 and not self.prefers_common_frame

    def monomial_second_moments(self, second):
        """Sums of u u': (K, Q) -> (K, P, P)."""
        return from_unique_entries(second, self.n_features)

    def pairs(self, posterior, pairs_of_a_row):
        """All pairs in one frame where that is cheaper and loses no digits, else one by one."""
        together = AllFullPairs.if_accurate(posterior, pairs_of_a_row)
        return super().pairs(posterior, pairs_of_a_row) if together is None else [together]

    def pair(self, posterior, k, l):
        """The two components' share of the missing information."""
        return FullPair(posterior, k, l)

    @property
    def sweep_flops(self):
        """Matrix products of one component and row in a sweep."""
        return 4 * self.n_features**2

    @property
    def pair_flops(self):
        """Per uncertain row, and per pair."""
        n_features, n_monomials = self.n_features, 1 + self.n_features + self.n_quadratic
        return quartic_moments(n_features).flops_per_row, 40 * n_monomials * n_features**3

    def reported(self, by_group):
        """In the shape of the attribute: (..., K, P, P)."""
        return by_group

    def by_group(self, reported):
        """Inverse of `reported`."""
        return reported

    def entry_labels(self, feature_names):
        """Labels of the unique entries: "0,x1,x2"."""
        own = self._entry_labels(feature_names)
        return [f"{k},{label}" for k in range(self.n_components) for label in own]


class TiedCovariance(MatrixStructure):
    """All components share one precision matrix."""

    @property
    def n_precision_groups(self):
        """One."""
        return 1

    def whiten(self, whiteners, centred_means, block):
        """Rows in every component's frame: (P, n) -> (K, P, n)."""
        return (whiteners[0] @ block)[None] - self.transformed(whiteners, centred_means)[:, :, None]

    def second_moments(self, whitened, weights):
        """`signed_second_moments` for weights >= 0, exactly symmetric."""
        moments = np.zeros((1, self.n_features, self.n_features))
        for scaled in np.sqrt(weights)[:, None, :] * whitened:
            moments[0] += scaled @ scaled.T  # one array twice: half the flops
        return moments

    # The shared u' B u is one monomial, and the sum of u u' over the components the rows' own.

    @property
    def n_monomials(self):
        """F, numbers that `monomials` makes of a row."""
        return 2 + self.n_features

    def add_products(self, rows, products):
        """Write |u|^2, B being the identity in the common frame: (P, n) into (1, n)."""
        np.einsum("pn,pn->n", rows, rows, out=products[0])

    def monomial_coefficients(self, curvature):
        """One for every component: (K, 1)."""
        return np.ones((self.n_components, 1))

    def monomial_moments(self, monomials, weights):
        """Sums of weight (1, u, u u'): (F, n), (K, n) -> (K,), (K, P), (1, P, P)."""
        rows = monomials[1:-1]
        sums = weights @ monomials[:-1].T
        scaled = np.sqrt(weights.sum(axis=0)) * rows
        return sums[:, 0], sums[:, 1:], (scaled @ scaled.T)[None]

    def distinct_coefficients(self, curvature):
        """None, u' B u being the same for all: (K, 1) of zeros."""
        return np.zeros((self.n_components, 1))

    def signed_monomial_moments(self, monomials, weights):
        """Those of u u' cancel: (F, n), (K, n) -> (K,), (K, P), (1, P, P) of zeros."""
        sums = weights @ monomials[:-1].T
        return sums[:, 0], sums[:, 1:], np.zeros((1, self.n_features, self.n_features))

    def pair(self, posterior, k, l):
        """The two components' share of the missing information."""
        return TiedPair(posterior, k, l)

    @property
    def sweep_flops(self):
        """Matrix products of one component and row in a sweep."""
        return (2 + 2 / self.n_components) * self.n_features**2

    @property
    def pair_flops(self):
        """Per uncertain row, and per pair."""
        return (1 + self.n_features) ** 2, 4 * self.n_quadratic**2 * self.n_features

    def reported(self, by_group):
        """In the shape of the attribute: (..., P, P)."""
        return by_group[..., 0, :, :]

    def by_group(self, reported):
        """Inverse of `reported`: (P, P) -> (1, P, P)."""
        return reported[None]

    def reported_number(self, by_group):
        """One number in all: (1,) -> float."""
        return float(by_group[0])

    def entry_labels(self, feature_names):
        """Labels of the unique entries: "x1,x2"."""
        return self._entry_labels(feature_names)
