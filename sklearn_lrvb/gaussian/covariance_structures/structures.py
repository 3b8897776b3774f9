"""Covariance structures: the interface, and the methods that all share.

*Conventions.* K components, P features (coordinates of rows; of a row's projection, if the structure has more
dimensions than features), S precision groups: the components of a group share one precision,
Lambda_s, and a group is one component or all of them (S = K or 1). Component k has its own coordinates,
y = W_k (x - m_k) with W_k' W_k = E Lambda_k, in which E Lambda is the identity. Rows come feature-major: a
block is (P, n), whitened (K, P, n). The log densities of a structure depend on y through a statistic s(y) of
degree two,

    full, tied: y y' (P, P)      diagonal, tied diagonal: y_p^2 (P,)      spherical: |y|^2 (1,)

summed within a group, with s(I) = E s(y) for y ~ N(0, I) its ``identity_statistic``. Maps between coordinates
and x (``covariance_cholesky``, ``whiteners``) have the statistic's shape: (S, P, P), or (S, P), (S, 1) where
they only scale. The Q unique numbers of a statistic are its entries. An entry that occurs in it c times is
multiplied by sqrt(c) in a vector, so that inner products of vectors are those of statistics.

The features of a row in component k are the Hermite polynomials of degree <= 2 (mathematics in
`information.observed_information`),

    h = (1, y, (s(y) - O_k)/a),        O_k = s(I) - reg_covar s(W_k W_k'),     a^2 = 2 power,

O_k being the identity statistic less the known noise on x, which enters every s(y) (`features`). Coefficients
beta, flat (..., D), represent the change d rho_k = beta . h_k of the log densities.

*Labels.* A row belongs to one of L labels: the K components, and the noise component if there is one, which
comes last. Its density is constant: its only feature is 1, so that there are L intercepts.

*Scales.* Where components have Student's t distribution, a row of component k has the scale u
(`posterior.tails`), and the features are

    h = (1, u y, (u (s(y) + reg_covar s(W_k W_k')) - s(I))/a, u, nu/2 (k(nu) + log u - u)),

the last one only where nu is fitted. Their coefficients come after the quadratic ones: K of the scales, and
one for every fitted nu.
"""

from abc import ABC, abstractmethod

import numpy as np

from sklearn_lrvb.gaussian.covariance_structures.features import (
    NORMAL_COMPONENTS,
    CoefficientLayout,
    Features,
    OptionalParts,
)

# Largest number of monomials for each component, by measurement, at which common coordinates save
# more than forming the monomials costs, where every component has a matrix of its own.
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
        The identity, in the shape of the statistic: the mean precision of a group in its whitened
        coordinates.
    entry_counts : ndarray of shape (Q,)
        How often each entry occurs in the statistic.
    wisharts : Wisharts
        The Wishart or gamma factors of the precisions.
    n_dimensions : int or None, default=None
        Dimension of the space in which the rows lie, if it is more than P: rows, means and precisions are
        then given by their projections onto a subspace of P dimensions (``fitting.row_span``).
    parts : OptionalParts

    Attributes
    ----------
    shares_precision, has_own_precisions : bool
        Whether all components share one precision, or every component has its own.
    is_in_scikit_learn : bool, whether scikit-learn's mixtures have this covariance type
    is_matrix, has_own_matrices : bool
        Whether the statistic keeps all products of features; and every component has its own precision, too.
    power : int
        The power of the Wishart factors' determinants in that of a precision.
    identity_statistic : ndarray
        s(I), in the shape of the statistic.
    prior_shape : tuple of int
        Shape of `covariance_prior`, and of a group's entry in an attribute.
    statistic_axes : tuple
        Index that gives the numbers of groups the trailing axes of a statistic, to broadcast with it.
    has_noise_component, has_scales, n_tails, n_labels
        As in `OptionalParts`; L.
    tails_shape : tuple of int
        Shape of degrees of freedom as an attribute: () or (K,).
    layout : CoefficientLayout
    features_type, features : subclass of Features, and the object of it
    n_groups, n_quadratic, n_component_features : int
        S, Q and F = 1 + P + Q; with scales F is larger by one or two.
    n_polynomials : int, 1 + P + Q
    n_monomials : int
        Number of monomials of degree <= 2 in coordinates that all components share: 1, v, and what s(v)
        has, or |v|^2 alone where all components share a precision.
    prefers_common_coordinates : bool
        Whether, for many rows, such coordinates cost less than those of each component.
    has_common_terms : bool
        Whether the terms that log densities leave out in such coordinates are common to all labels.
    size_of_pattern : int
        Largest size of what belongs to a pattern of missing values: a matrix of each group, else nothing.
    """

    shares_precision = False
    is_in_scikit_learn = True
    features_type = Features

    def __init__(
        self,
        n_components,
        n_features,
        identity,
        entry_counts,
        wisharts,
        n_dimensions=None,
        parts=NORMAL_COMPONENTS,
    ):
        n_components = int(n_components)  # A NumPy integer would overflow in counts of operations.
        self.n_components, self.n_features = n_components, n_features
        self.parts, self.n_quadratic = parts, len(entry_counts)
        self.layout = CoefficientLayout(
            n_components, n_features, self.n_quadratic, self.shares_precision, parts
        )
        self.n_labels, self.n_groups = self.layout.n_labels, self.layout.n_groups
        self.has_noise_component, self.has_scales = parts.has_noise_component, parts.has_scales
        self.n_tails, self.tails_shape = parts.n_tails, (n_components,) * parts.tails_by_component
        self.n_dimensions = n_features if n_dimensions is None else n_dimensions
        self.has_own_precisions, self.is_matrix = not self.shares_precision, identity.ndim == 2
        self.wisharts, self.power = wisharts, wisharts.power
        self.identity, self.identity_statistic = identity, self.power * identity
        self.prior_shape = identity.shape
        self.statistic_axes = (..., *[None] * identity.ndim)
        self.entry_counts, self.entry_weights = entry_counts, np.sqrt(entry_counts)
        self.n_polynomials = 1 + n_features + self.n_quadratic
        self.n_component_features = self.n_polynomials + self.has_scales + (self.n_tails > 0)
        self.n_monomials = 1 + n_features + (self.n_quadratic if self.has_own_precisions else 1)
        self.has_own_matrices = self.is_matrix and self.has_own_precisions
        largest = _MAX_MONOMIALS_PER_COMPONENT * n_components
        self.prefers_common_coordinates = not self.has_own_matrices or self.n_monomials <= largest
        self.has_common_terms = self.has_own_precisions or not (self.has_noise_component or self.has_scales)
        self.size_of_pattern = self.n_groups * identity.size if self.is_matrix else 0
        self.features = self.features_type(self)

    # The shapes in which users see arrays by precision group.

    def reported(self, by_group):
        """Arrays in the shape of the attribute: (..., S, ...) -> (..., *shape of the attribute)."""
        lead = by_group.shape[: by_group.ndim - 1 - self.identity.ndim]
        groups = () if self.shares_precision else (self.n_components,)
        return by_group.reshape((*lead, *groups, *self.prior_shape))

    def by_group(self, reported):
        """Inverse of `reported`."""
        n_own_axes = len(self.prior_shape) + self.has_own_precisions
        lead = reported.shape[: reported.ndim - n_own_axes]
        return reported.reshape(*lead, self.n_groups, *self.identity.shape)

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
        """Sums of weight s(y) in every group, weights of any sign.

        (K, P, n), (K, n) -> (S, ...); of rows in common coordinates, (1, P, n), (1, n) -> (1, ...).
        """

    @abstractmethod
    def curvature_products(self, curvature, whitened):
        """<B, s(y)> of every row: (S, ...), (K, P, n) -> (K, n)."""

    # Maps between coordinates.

    @abstractmethod
    def cholesky(self, covariances):
        """Factors L with L L' = covariance, NaN where it is singular to working precision, (n, ...)."""

    @abstractmethod
    def diagonal_factors(self, scale):
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
    def congruence(self, maps, statistics):
        """M s M', the statistic of the mapped vectors: (S, ...), (..., S, ...) -> (..., S, ...)."""

    @abstractmethod
    def average_cholesky(self, covariance_cholesky, shares):
        """Factor of the average covariance, computed without squaring: (S, ...), (S,) -> (1, ...)."""

    # Rows.

    @abstractmethod
    def whiten(self, whiteners, centred_means, with_one):
        """Rows, which stand after a row of ones, in every component's whitened coordinates.

        (S, ...), (K, P), (1 + P, n) -> (K, P, n)
        """

    @abstractmethod
    def whiten_into(self, whitener, center, block, rows):
        """Write rows in common coordinates: (1, ...), (P,), (P, n) into (P, n)."""

    @abstractmethod
    def pulled_back(self, whiteners, whitened):
        """W'y: (S, ...), (K, P, n) -> (K, n, P)."""

    @abstractmethod
    def squares_by_row(self, covariance_cholesky, vectors, noise):
        """Trace of (L L')^-1 (v v' + noise), each row with its own L: (n, ...), (P, n), (...) -> (n,)."""

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
        """The same structure for another number of components, without noise component or fitted nu."""
        return type(self)(n_components, self.n_features, OptionalParts(has_scales=self.has_scales))

    def projected(self, n_features):
        """The structure of the same model for rows that are projected onto a subspace of this size, or None.

        It is None where the model depends on the coordinates, or where projected rows would save little.
        """
        del n_features

    def flattened(self, statistics):
        """Vectors whose inner products are those of the statistics: (..., ...) -> (..., Q)."""
        return self.entries(statistics) * self.entry_weights

    def unique_entries(self, statistics):
        """Entries of all groups in one vector: (..., S, ...) -> (..., S Q)."""
        entries = self.entries(statistics)
        return entries.reshape(*entries.shape[:-2], -1)

    def from_unique_entries(self, entries):
        """Inverse of `unique_entries`."""
        lead = entries.shape[:-1]
        return self.from_entries(entries.reshape(*lead, self.n_groups, self.n_quadratic))

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

    def scatter(self, block):
        """Sum of x x' over the rows of a `RowBlock`, in the shape of a covariance: (...)."""
        return self.second_moments(block.rows[None], block.counts[None])[0] / self.power

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
        factors = covariance_cholesky
        pivots = factors.diagonal(axis1=-2, axis2=-1) if self.is_matrix else factors
        return 2.0 * self.power * np.log(pivots).sum(axis=-1)

    def is_positive_definite(self, covariance):
        """Whether one covariance is positive definite to working precision: (...) -> bool."""
        return not np.isnan(self.diagonal(self.cholesky(covariance[None]))).any()

    def scale_divergences(self, roots):
        """trace(R) - log|R| - trace(I) with R = M M' and M lower triangular: (S, ...) -> (S,).

        All terms that are added are non-negative: close to the identity they keep their digits.
        """
        terms = np.square(roots).reshape(len(roots), -1)
        on_diagonal = terms[:, :: 1 + self.n_features * self.is_matrix]
        logs = np.log(on_diagonal)
        on_diagonal -= 1.0
        on_diagonal -= logs
        return terms.sum(axis=1)

    def deviations(self, covariance_cholesky):
        """Standard deviations of the features, one each or one for all: (S, ...) -> (S, P or 1)."""
        rows = covariance_cholesky.reshape(*covariance_cholesky.shape[:2], -1)
        return np.sqrt(np.einsum("spq,spq->sp", rows, rows))

    def precision_trace(self, whiteners):
        """trace E Lambda, (S, ...) -> (S,)."""
        return self.power * np.square(whiteners).reshape(len(whiteners), -1).sum(axis=1)
