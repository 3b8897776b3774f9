"""The interface of a covariance structure, and the methods that all structures share.

*Conventions.* K components, P features (coordinates of rows; of a row's projection, if the structure has more
dimensions than features), S precision groups: the components of a group share one precision,
Lambda_s, and a group is one component or all of them (S = K or 1). Component k has its own frame,
y = W_k (x - m_k) with W_k' W_k = E Lambda_k, in which E Lambda is the identity. Rows come feature-major: a
block is (P, n), whitened (K, P, n). The log densities of a structure depend on y through a statistic s(y) of
degree two,

    full, tied: y y' (P, P)      diagonal: y_p^2 (P,)      spherical: |y|^2 (1,)

summed within a group, with s(I) = E s(y) for y ~ N(0, I) its ``identity_statistic``. Maps between frames
and x (``covariance_cholesky``, ``whiteners``) have the statistic's shape: (S, P, P), or (S, P), (S, 1) where
they only scale. The Q unique numbers of a statistic are its entries. An entry that occurs in it c times is
multiplied by sqrt(c) in a vector, so that inner products of vectors are those of statistics.

The features of a row in component k are the Hermite polynomials of degree <= 2 (mathematics in
`information.observed_information`),

    h = (1, y, (s(y) - O_k)/a),        O_k = s(I) - reg_covar s(W_k W_k'),     a^2 = 2 power,

O_k being the identity statistic less the known noise on x, which enters every s(y). Coefficients beta, flat
(..., D), represent the change d rho_k = beta . h_k of the log densities. K intercepts come first in them,
then (K, P) linear coefficients, then (S, Q) quadratic ones.
"""

from abc import ABC, abstractmethod
from functools import cached_property

import numpy as np

# Largest number of monomials for each component, by measurement, at which forming them costs less than a
# frame that all components share saves, where every component has a matrix of its own.
_MAX_MONOMIALS_PER_COMPONENT = 36


class CovarianceStructure(ABC):
    """Base class of covariance structures: computations that depend on the shape of the covariance matrices.

    A subclass passes its constants to ``__init__`` and implements the abstract methods;
    `check_covariance_structure` in `tests/structure_check.py` tests that they fit together.

    Parameters
    ----------
    n_components, n_features : int
        K and P.
    identity : ndarray
        A precision in its own frame, in the shape of the statistic.
    entry_counts : ndarray of shape (Q,)
        How often each entry occurs in the statistic.
    wisharts : Wisharts
        The Wishart or gamma factors of the precisions.
    n_dimensions : int or None, default=None
        Dimension of the space in which the rows lie, if it is more than P: rows, means and precisions are
        then given by their projections onto a subspace of P dimensions (``fitting.row_span``).

    Attributes
    ----------
    shares_precision, has_own_precisions : bool
        Whether all components share one precision, or every component has its own.
    is_matrix : bool
        Whether the statistic keeps all products of features.
    power : int
        The power of the Wishart factors' determinants in that of a precision.
    identity_statistic : ndarray
        s(I), in the shape of the statistic.
    prior_shape : tuple of int
        Shape of `covariance_prior`, and of a group's entry in an attribute.
    statistic_axes : tuple
        Index that gives the numbers of groups the trailing axes of a statistic, to broadcast with it.
    n_groups, n_quadratic, n_component_features, n_coefficients : int
        S, Q, F = 1 + P + Q and D = K + K P + S Q.
    n_monomials : int
        Number of monomials of degree <= 2 in a frame that all components share: 1, the coordinates u, and
        what s(u) has, or |u|^2 alone where all components share a precision.
    prefers_common_frame : bool
        Whether, for many rows, such a frame costs less than a frame for each component.
    numbers_of_pattern : int
        Largest number of numbers that belong to a pattern of holes: a matrix of each group, else nothing.
    coefficient_blocks : dict, str -> slice
        Slices of D with all intercepts, linear and quadratic coefficients, in this order. The linear ones are
        (K, P), the quadratic ones (S, Q).
    """

    shares_precision = False

    def __init__(self, n_components, n_features, identity, entry_counts, wisharts, n_dimensions=None):
        self.n_components, self.n_features = n_components, n_features
        self.n_dimensions = n_features if n_dimensions is None else n_dimensions
        self.has_own_precisions, self.is_matrix = not self.shares_precision, identity.ndim == 2
        self.wisharts, self.power = wisharts, wisharts.power
        self.identity, self.identity_statistic = identity, self.power * identity
        self.prior_shape = identity.shape
        self.statistic_axes = (..., *[None] * identity.ndim)
        self._entry_counts, self.entry_weights = entry_counts, np.sqrt(entry_counts)
        self._feature_norm = np.sqrt(2.0 * self.power)  # The norm a of the quadratic features.
        self._feature_scale = self.entry_weights / self._feature_norm
        self.n_groups = 1 if self.shares_precision else n_components
        self.n_quadratic = len(entry_counts)
        self.n_component_features = 1 + n_features + self.n_quadratic
        linear, quadratic = n_components, n_components * (1 + n_features)
        self.n_coefficients = quadratic + self.n_groups * self.n_quadratic
        self.n_monomials = 1 + n_features + (self.n_quadratic if self.has_own_precisions else 1)
        has_own_matrices = self.is_matrix and self.has_own_precisions
        largest = _MAX_MONOMIALS_PER_COMPONENT * n_components
        self.prefers_common_frame = not has_own_matrices or self.n_monomials <= largest
        self.numbers_of_pattern = self.n_groups * identity.size if self.is_matrix else 0
        self.coefficient_blocks = {
            "intercept": slice(0, linear),
            "linear": slice(linear, quadratic),
            "quadratic": slice(quadratic, self.n_coefficients),
        }

    # Precision groups.

    def precision_group(self, component):
        """Index of the group of a component."""
        return 0 if self.shares_precision else component

    def components_sharing_precision(self, component):
        """Components in the same group as a component, itself included."""
        return range(self.n_components) if self.shares_precision else (component,)

    def per_group(self, by_component):
        """Sums over the components of every group: (..., K) -> (..., S)."""
        return by_component.sum(axis=-1, keepdims=True) if self.shares_precision else by_component

    def per_component(self, by_group):
        """The entry of every component's group: (S, ...) -> (K, ...), without a copy."""
        return np.broadcast_to(by_group, (self.n_components, *by_group.shape[1:]))

    def between_components(self, by_group):
        """Covariance matrix of variables that the components of a group share: (S,) -> (K, K)."""
        if self.shares_precision:
            return np.full((self.n_components, self.n_components), by_group[0])
        return np.diag(by_group)

    # The vector of coefficients.

    def coefficient_slices(self, component):
        """Slices of D with a component's intercept, linear and quadratic coefficients."""
        linear = self.coefficient_blocks["linear"].start + component * self.n_features
        quadratic = self.coefficient_blocks["quadratic"].start
        quadratic += self.precision_group(component) * self.n_quadratic
        return (
            slice(component, component + 1),
            slice(linear, linear + self.n_features),
            slice(quadratic, quadratic + self.n_quadratic),
        )

    @cached_property
    def coefficient_index(self):
        """Coordinates of every component's coefficients, int array (K, F)."""
        intercepts, linear, quadratic = self.split(np.arange(self.n_coefficients))
        return np.hstack([intercepts[:, None], linear, self.per_component(quadratic)])

    def ordered(self, matrix):
        """A matrix of the components' own features, one component after the other, in the order of D."""
        order = np.argsort(self.coefficient_index, axis=None)
        return matrix[order][:, order]

    def split(self, coefficients):
        """Views of the three blocks: (..., D) -> (..., K), (..., K, P), (..., S, Q)."""
        lead, blocks = coefficients.shape[:-1], self.coefficient_blocks
        return (
            coefficients[..., blocks["intercept"]],
            coefficients[..., blocks["linear"]].reshape(*lead, self.n_components, self.n_features),
            coefficients[..., blocks["quadratic"]].reshape(*lead, self.n_groups, self.n_quadratic),
        )

    # The shapes in which users see arrays by precision group.

    def reported(self, by_group):
        """Arrays in the shape of the attribute: (..., S, ...) -> (..., *shape of the attribute)."""
        lead = by_group.shape[: by_group.ndim - 1 - self.identity.ndim]
        groups = () if self.shares_precision else (self.n_components,)
        return by_group.reshape(*lead, *groups, *self.prior_shape)

    def by_group(self, reported):
        """Inverse of `reported`."""
        n_own_axes = len(self.prior_shape) + self.has_own_precisions
        lead = reported.shape[: reported.ndim - n_own_axes]
        return reported.reshape(*lead, self.n_groups, *self.identity.shape)

    def reported_number(self, by_group):
        """A number for every group in the shape of the attribute: (S,) -> (K,), or a float if shared."""
        return by_group[0] if self.shares_precision else by_group.copy()

    def entry_labels(self, feature_names):
        """Labels of all groups' unique entries, such as "0,x1,x2", given the names of the features."""
        names = self.entry_names(feature_names)
        if self.shares_precision:
            return names
        return [f"{k},{name}" if name else f"{k}" for k in range(self.n_components) for name in names]

    # Statistics: symmetric matrices (P, P), or their diagonals, or their traces.

    @abstractmethod
    def entries(self, statistics):
        """Unique numbers of statistics: (..., ...) -> (..., Q)."""

    @abstractmethod
    def from_entries(self, entries):
        """Inverse of `entries`."""

    @abstractmethod
    def diagonal(self, statistics):
        """Diagonals of statistics or maps: (..., ...) -> (..., P), or (..., 1) where it is one number."""

    @abstractmethod
    def write_entries(self, rows, entries):
        """Write the entries of s(y) of every row: (P, n) into (Q, n)."""

    @abstractmethod
    def second_moments(self, whitened, weights):
        """Sums of weight s(y) in every group, weights of any sign: (K, P, n), (K, n) -> (S, ...)."""

    @abstractmethod
    def curvature_products(self, curvature, whitened):
        """<B, s(y)> of every row: (S, ...), (K, P, n) -> (K, n)."""

    # Maps between frames.

    @abstractmethod
    def cholesky(self, covariances):
        """Factors L with L L' = covariance, NaN where it is singular to working precision, (n, ...)."""

    @abstractmethod
    def scaled_frames(self, scale):
        """Factors of diagonal covariances, from the columns' standard deviations: (P,) -> (S, ...)."""

    @abstractmethod
    def whiteners(self, covariance_cholesky):
        """Inverse maps, W with W L = I: (n, ...) -> (n, ...)."""

    @abstractmethod
    def transposed(self, maps):
        """Transposed maps, (n, ...) -> (n, ...)."""

    @abstractmethod
    def composed(self, maps, others):
        """Products of maps, the second applied first: (n, ...), (n, ...) -> (n, ...)."""

    @abstractmethod
    def transformed(self, maps, vectors):
        """Each component's map of its vector: (S, ...) or (n, S, ...), (..., K, P) -> (..., K, P)."""

    @abstractmethod
    def triangular(self, maps):
        """Lower triangular L with positive diagonal and L L' = M M', (n, ...) -> (n, ...)."""

    @abstractmethod
    def congruence(self, maps, statistics):
        """M s M', the statistic of the mapped vectors: (S, ...), (..., S, ...) -> (..., S, ...)."""

    @abstractmethod
    def average_cholesky(self, covariance_cholesky, shares):
        """Factor of the average covariance, computed without squaring: (S, ...), (S,) -> (1, ...)."""

    # Rows.

    @abstractmethod
    def whiten(self, whiteners, centred_means, block):
        """Rows in every component's frame: (S, ...), (K, P), (P, n) -> (K, P, n)."""

    @abstractmethod
    def whiten_into(self, whitener, center, block, rows):
        """Write rows in one frame: (1, ...), (P,), (P, n) into (P, n)."""

    @abstractmethod
    def pulled_back(self, whiteners, whitened):
        """W'y: (S, ...), (K, P, n) -> (K, n, P)."""

    @abstractmethod
    def squares_by_row(self, covariance_cholesky, vectors, noise):
        """Trace of (L L')^-1 (v v' + noise), each row with its own L: (n, ...), (P, n), (...) -> (n,)."""

    @abstractmethod
    def gradients(self, whiteners, linear, curvature):
        """Sums over components of weight W'(b + 2 B y), for many functions.

        Parameters
        ----------
        linear : (d, K, P)
        curvature : (d, S, ...)

        Returns
        -------
        callable, weights (K, n), whitened rows (K, P, n), written to (n, d, P)
        """

    # Random numbers and names.

    @abstractmethod
    def draw(self, random_state, mean, covariance, n_rows):
        """Rows of one component, by the same random numbers as scikit-learn: (n_rows, P)."""

    @property
    @abstractmethod
    def random_factors_type(self):
        """Class of factors of random precisions (`random_factors`)."""

    @abstractmethod
    def entry_names(self, feature_names):
        """Names of the entries of one group, such as "x1,x2": list of Q."""

    # Statistics, by the methods above.

    def resized(self, n_components):
        """The same structure for another number of components."""
        return type(self)(n_components, self.n_features)

    def projected(self, n_features):
        """The structure of the same model for rows that are projected onto a subspace of this size, or None.

        It is None where the model depends on the coordinates, or where projected rows would save little.
        """
        del n_features

    def flattened(self, statistics):
        """Vectors whose inner products are those of the statistics: (..., ...) -> (..., Q)."""
        return self.entries(statistics) * self.entry_weights

    def unflattened(self, vectors):
        """Inverse of `flattened`."""
        return self.from_entries(vectors / self.entry_weights)

    def unique_entries(self, statistics):
        """Entries of all groups in one vector: (..., S, ...) -> (..., S Q)."""
        entries = self.entries(statistics)
        return entries.reshape(*entries.shape[:-2], -1)

    def from_unique_entries(self, entries):
        """Inverse of `unique_entries`."""
        lead = entries.shape[:-1]
        return self.from_entries(entries.reshape(*lead, self.n_groups, self.n_quadratic))

    def norm(self, statistics):
        """Frobenius norms: (..., ...) -> (...)."""
        return np.linalg.norm(self.flattened(statistics), axis=-1)

    def dense(self, by_group):
        """Every component's matrix: (S, ...) -> (K, P, P)."""
        unit_vectors = np.broadcast_to(
            np.eye(self.n_features)[:, None], (self.n_features, self.n_components, self.n_features)
        )
        return self.transformed(by_group, unit_vectors).transpose(1, 2, 0)

    def statistic_by_row(self, vectors):
        """s(v) of every row: (P, n) -> (n, ...)."""
        entries = np.empty((self.n_quadratic, vectors.shape[1]))
        self.write_entries(vectors, entries)
        return self.from_entries(entries.T)

    def sum_of_squares(self, vectors, weights):
        """Sums of weight s(v) within the groups, weights >= 0: (K, P), (K,) -> (S, ...)."""
        return self.second_moments(vectors[:, :, None], weights[:, None])

    def scatter(self, block, weights):
        """Sum of weight x x' in the shape of a covariance: (P, n), (n,) or None -> (...)."""
        weights = np.ones(block.shape[1]) if weights is None else weights
        return self.second_moments(block[None], weights[None])[0] / self.power

    def outer_products(self, vectors, others):
        """The statistic of v w', not symmetric, summed in the groups: (..., K, P) twice -> (..., S, ...)."""
        products = vectors * others
        if self.n_quadratic < self.n_features:
            products = products.sum(axis=-1, keepdims=True)
        return products.sum(axis=-2, keepdims=True) if self.shares_precision else products

    # Maps, by the methods above.

    def gram(self, maps):
        """M M', the congruence of the identity: (..., S, ...) -> (..., S, ...)."""
        return self.congruence(maps, self.identity)

    def log_determinants(self, covariance_cholesky):
        """Log determinants of L L', (n, ...) -> (n,)."""
        return 2.0 * self.power * np.log(self.diagonal(covariance_cholesky)).sum(axis=-1)

    def is_positive_definite(self, covariance):
        """Whether one covariance is positive definite to working precision: (...) -> bool."""
        return not np.isnan(self.diagonal(self.cholesky(covariance[None]))).any()

    def scale_divergences(self, roots):
        """trace(R) - log|R| - trace(I) with R = M M' and M lower triangular: (S, ...) -> (S,).

        All terms that are added are non-negative: close to the identity they keep their digits.
        """
        squares = np.square(self.diagonal(roots))
        return (squares - 1.0 - np.log(squares)).sum(axis=-1)

    def deviations(self, covariance_cholesky):
        """Standard deviations of the features, one each or one for all: (S, ...) -> (S, P or 1)."""
        rows = covariance_cholesky.reshape(*covariance_cholesky.shape[:2], -1)
        return np.sqrt(np.einsum("spq,spq->sp", rows, rows))

    def precision_trace(self, whiteners):
        """trace E Lambda, (S, ...) -> (S,)."""
        flat = whiteners.reshape(len(whiteners), -1)
        return self.power * np.einsum("si,si->s", flat, flat)

    # Features and their coefficients.

    def entry_coefficients(self, curvature):
        """<B, s(y)> as coefficients of the entries of s(y): (..., ...) -> (..., Q)."""
        return self._entry_counts * self.entries(curvature)

    def quadratic_entries(self, whitened, origin, index):
        """Some quadratic features of one component: (P, n), (...), int array (m,) -> (m, n)."""
        entries = np.empty((self.n_quadratic, whitened.shape[1]))
        self.write_entries(whitened, entries)
        entries -= self.entries(origin)[:, None]
        entries *= self._feature_scale[:, None]
        return entries[index]

    def component_features(self, whitened, origin, spread=None):
        """h of rows in one component's frame: (P, n), (...) -> (F, n).

        What is expected of the rows' s(y) may differ from that of ``whitened``, by ``spread`` (Q, n).
        """
        quadratic = self.quadratic_entries(whitened, origin, np.arange(self.n_quadratic))
        if spread is not None:
            quadratic += spread * self._feature_scale[:, None]
        return np.concatenate([np.ones((1, whitened.shape[1])), whitened, quadratic])

    def mixed_features(self, vectors, others):
        """The quadratic features of v w' + w v', row by row: (P, n), (P, n) -> (Q, n)."""
        entries = np.empty((2, self.n_quadratic, vectors.shape[1]))
        # By polarization of equally long vectors, so that no digits are lost.
        lengths = [np.linalg.norm(rows, axis=0) for rows in (vectors, others)]
        balance = np.sqrt(np.divide(*lengths, out=np.ones_like(lengths[0]), where=lengths[1] > 0))
        balance[balance == 0] = 1.0
        self.write_entries(vectors / balance + others * balance, entries[0])
        self.write_entries(vectors / balance - others * balance, entries[1])
        return (entries[0] - entries[1]) * (0.5 * self._feature_scale)[:, None]

    def quadratic_kernel(self, whitened, others, inner_products, origin):
        """Inner products of quadratic features, given those of the rows: (P, n), (P, m), (n, m) -> (n, m)."""
        all_entries = np.arange(self.n_quadratic)
        features = [self.quadratic_entries(rows, origin, all_entries) for rows in (whitened, others)]
        return features[0].T @ features[1]

    def quadratic_products(self, whitened, others, origin):
        """Inner products of quadratic features, row by row: (P, n), (P, n), (...) -> (n,)."""
        all_entries = np.arange(self.n_quadratic)
        features = [self.quadratic_entries(rows, origin, all_entries) for rows in (whitened, others)]
        return np.einsum("qn,qn->n", *features)

    def quadratic_features(self, sums):
        """(s - O)/a, given s - O: (S, ...) -> (S, Q)."""
        return self.entries(sums) * self._feature_scale

    def quadratic_sums(self, features):
        """Inverse of `quadratic_features`: (..., Q) -> (..., ...)."""
        return self.from_entries(features / self._feature_scale)

    def feature_moments(self, counts, first, second, origin):
        """Sums of h: moments about the frames -> (D,). The transpose of `polynomials`."""
        centred = second - self.per_group(counts)[self.statistic_axes] * origin
        return np.concatenate([counts, first.ravel(), self.quadratic_features(centred).ravel()])

    def moments(self, coefficients):
        """Inverse of `feature_moments` for O = s(I): (D,) -> counts, first, second."""
        counts, first, quadratic = self.split(coefficients)
        origin = self.per_group(counts)[self.statistic_axes] * self.identity_statistic
        return counts, first, self.quadratic_sums(quadratic) + origin

    def polynomials(self, coefficients, origin):
        """beta . h as a + b.y + <B, s(y)>: (..., D) -> (..., K), (..., K, P), (..., S, ...)."""
        intercepts, linear, quadratic = self.split(coefficients)
        curvature = self.unflattened(quadratic) / self._feature_norm
        axes = tuple(range(-self.identity.ndim, 0))
        return intercepts - (curvature * origin).sum(axis=axes), linear, curvature

    def values(self, constant, linear, curvature):
        """a + b.y + <B, s(y)> in one component, for many functions.

        Parameters
        ----------
        constant : (d,)
        linear : (d, P)
        curvature : (d, ...)

        Returns
        -------
        callable, whitened rows (P, n), and what is added to the entries of s(y), (Q, n) or None -> (d, n)
        """
        polynomials = np.hstack([constant[:, None], linear, self.entry_coefficients(curvature)])
        quadratic = 1 + self.n_features

        def values(rows, spread=None):
            monomials = np.empty((polynomials.shape[1], rows.shape[1]))
            monomials[0] = 1.0
            monomials[1:quadratic] = rows
            self.write_entries(rows, monomials[quadratic:])
            if spread is not None:
                monomials[quadratic:] += spread
            return polynomials @ monomials

        return values

    def complete_information(self, mean_precision, effective_degrees_of_freedom):
        """Diagonal of R^-1 after the intercepts: tau on y, c/power on the quadratic features, (D - K,)."""
        return np.concatenate(
            [
                np.repeat(mean_precision, self.n_features),
                np.repeat(effective_degrees_of_freedom / self.power, self.n_quadratic),
            ]
        )

    # Responses of precisions and covariances to the quadratic coefficients.

    @property
    def own_precision_scale(self):
        """Size of the response of each entry of a precision to its coefficient, (Q,)."""
        return self._feature_norm / self.power / self.entry_weights

    def own_precision_response(self, quadratic):
        """d Lambda in its own frame, -a/power B: (..., S, Q) -> (..., S, ...)."""
        return -self._feature_norm / self.power * self.unflattened(quadratic)

    def precision_response(self, quadratic, whiteners):
        """d Lambda = -a/power W' B W: (..., S, Q) -> (..., S, ...)."""
        return self.congruence(self.transposed(whiteners), self.own_precision_response(quadratic))

    def covariance_response(self, quadratic, covariance_cholesky):
        """d Lambda^-1 = a/power W^-1 B W^-T: (..., S, Q) -> (..., S, ...)."""
        scale = self._feature_norm / self.power
        return scale * self.congruence(covariance_cholesky, self.unflattened(quadratic))
