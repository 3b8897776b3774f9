"""Covariance structures: the interface with the methods that all share, then matrices, then scales.

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

O_k being the identity statistic less the known noise on x, which enters every s(y). Coefficients beta, flat
(..., D), represent the change d rho_k = beta . h_k of the log densities. The intercepts come first in them,
then (K, P) linear coefficients, then (S, Q) quadratic ones.

*Labels.* A row belongs to one of L labels: the K components, and the noise component if there is one, which
comes last. Its density is constant: its only
feature is 1, so that there are L intercepts.

*Scales.* Where components have Student's t distribution, a row of component k has the scale u
(`posterior.tails`), and the features are

    h = (1, u y, (u (s(y) + reg_covar s(W_k W_k')) - s(I))/a, u, nu/2 (k(nu) + log u - u)),

the last one only where nu is fitted. Their coefficients come after the quadratic ones: K of the scales, and
one for every fitted nu.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import lapack

from sklearn_lrvb.distributions.wishart import Wisharts
from sklearn_lrvb.gaussian.covariance_structures.random_factors import BartlettFactors, GammaFactors
from sklearn_lrvb.symmetric_matrices import (
    cholesky_factors,
    from_unique_entries,
    scaled_to_unit_diagonal,
    symmetrized,
    unique_entries,
    upper_triangle,
)

# Largest number of monomials for each component, by measurement, at which common coordinates save
# more than forming the monomials costs, where every component has a matrix of its own.
_MAX_MONOMIALS_PER_COMPONENT = 36


@dataclass(frozen=True)
class OptionalParts:
    """What a mixture may have besides normal components.

    Attributes
    ----------
    has_noise_component : bool, whether rows may belong to the noise component
    has_scales : bool, whether rows have scales
    n_tails : int, number of fitted degrees of freedom of the scales: none, one for all components, or K
    tails_by_component : bool, whether every component has its own; if K = 1, they are reported as an array
    """

    has_noise_component: bool = False
    has_scales: bool = False
    n_tails: int = 0
    tails_by_component: bool = False


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
    n_groups, n_quadratic, n_component_features, n_coefficients : int
        S, Q, F = 1 + P + Q and D = L + K P + S Q; with scales F is larger by one or two, D by K and n_tails.
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
    coefficient_blocks : dict, str -> slice
        Slices of D with all intercepts, linear and quadratic coefficients, those of the scales and of the
        tails, in this order. The linear ones are (K, P), the quadratic ones (S, Q).
    block_shapes : dict, str -> tuple of int
        Numbers of units in a block, and of the coefficients of each.
    """

    shares_precision = False
    is_in_scikit_learn = True

    def __init__(
        self,
        n_components,
        n_features,
        identity,
        entry_counts,
        wisharts,
        n_dimensions=None,
        parts=OptionalParts(),
    ):
        n_components = int(n_components)  # A NumPy integer would overflow in counts of operations.
        self.n_components, self.n_features = n_components, n_features
        self.parts, self.n_labels = parts, n_components + parts.has_noise_component
        self.has_noise_component, self.has_scales = parts.has_noise_component, parts.has_scales
        self.n_tails, self.tails_shape = parts.n_tails, (n_components,) * parts.tails_by_component
        self.n_dimensions = n_features if n_dimensions is None else n_dimensions
        self.has_own_precisions, self.is_matrix = not self.shares_precision, identity.ndim == 2
        self.wisharts, self.power = wisharts, wisharts.power
        self.identity, self.identity_statistic = identity, self.power * identity
        self.prior_shape = identity.shape
        self.statistic_axes = (..., *[None] * identity.ndim)
        self._entry_counts, self.entry_weights = entry_counts, np.sqrt(entry_counts)
        self.feature_scale = self.entry_weights / np.sqrt(2.0 * self.power)  # From entries to features.
        self.n_groups = 1 if self.shares_precision else n_components
        self.n_quadratic = len(entry_counts)
        self.n_polynomials = 1 + n_features + self.n_quadratic
        self.n_component_features = self.n_polynomials + self.has_scales + (self.n_tails > 0)
        linear, quadratic = self.n_labels, self.n_labels + n_components * n_features
        scale = quadratic + self.n_groups * self.n_quadratic
        tail = scale + n_components * self.has_scales
        self.n_coefficients = tail + self.n_tails
        self.n_monomials = 1 + n_features + (self.n_quadratic if self.has_own_precisions else 1)
        self.has_own_matrices = self.is_matrix and self.has_own_precisions
        largest = _MAX_MONOMIALS_PER_COMPONENT * n_components
        self.prefers_common_coordinates = not self.has_own_matrices or self.n_monomials <= largest
        self.has_common_terms = self.has_own_precisions or not (self.has_noise_component or self.has_scales)
        self.size_of_pattern = self.n_groups * identity.size if self.is_matrix else 0
        self.block_shapes = {
            "intercept": (self.n_labels, 1),
            "linear": (n_components, n_features),
            "quadratic": (self.n_groups, self.n_quadratic),
            "tail": (self.n_tails, 1),
        }
        self.coefficient_blocks = {
            "intercept": slice(0, linear),
            "linear": slice(linear, quadratic),
            "quadratic": slice(quadratic, scale),
            "scale": slice(scale, tail),
            "tail": slice(tail, self.n_coefficients),
        }

    # Precision groups.

    def precision_group(self, component):
        """Index of the group of a component."""
        return 0 if self.shares_precision else component

    def components_sharing_precision(self, component):
        """Components in the same group as a component, itself included."""
        return self.components_of_group(self.precision_group(component))

    def components_of_group(self, group):
        """The components of a group."""
        return range(self.n_components) if self.shares_precision else (group,)

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
        coordinates = np.arange(self.n_coefficients)
        intercepts, linear, quadratic = self.split(coordinates)
        columns = [intercepts[: self.n_components, None], linear, self.per_component(quadratic)]
        if self.has_scales:
            columns.append(coordinates[self.coefficient_blocks["scale"], None])
        if self.n_tails:
            columns.append(self.per_component(coordinates[self.coefficient_blocks["tail"], None]))
        return np.hstack(columns)

    @cached_property
    def feature_places(self):
        """Where the features of components with precisions of their own are: pairs of slices, of F and of D.

        A fitted nu that all components share has no pair.
        """
        widths = {
            "intercept": 1,
            "linear": self.n_features,
            "quadratic": self.n_quadratic,
            "scale": int(self.has_scales),
            "tail": int(self.n_tails == self.n_components),
        }
        places, first = [], 0
        for name, width in widths.items():
            start = self.coefficient_blocks[name].start
            places.append((slice(first, first + width), slice(start, start + self.n_components * width)))
            first += width
        return places

    @cached_property
    def coefficients_of_labels(self):
        """Coordinates of every label's coefficients: L int arrays, (F,) for components, (1,) else."""
        return [*self.coefficient_index, *np.arange(self.n_components, self.n_labels)[:, None]]

    def split(self, coefficients):
        """Views of the three blocks: (..., D) -> (..., L), (..., K, P), (..., S, Q)."""
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
        return by_group.reshape((*lead, *groups, *self.prior_shape))

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

    # Features and their coefficients.

    def entry_coefficients(self, curvature):
        """<B, s(y)> as coefficients of the entries of s(y): (..., ...) -> (..., Q)."""
        return self._entry_counts * self.entries(curvature)

    def quadratic_entries(self, whitened, origin, index):
        """Some quadratic features of one component: (P, n), (...), int array (m,) -> (m, n)."""
        entries = np.empty((self.n_quadratic, whitened.shape[1]))
        self.write_entries(whitened, entries)
        entries -= self.entries(origin)[:, None]
        entries *= self.feature_scale[:, None]
        return entries[index]

    def component_features(self, whitened, origin, spread=None):
        """h of rows in one component's coordinates: (P, n), (...) -> (F, n).

        What is expected of the rows' s(y) may differ from that of ``whitened``, by ``spread`` (Q, n).
        """
        features = np.empty((self.n_polynomials, whitened.shape[1]))
        features[0], quadratic = 1.0, features[1 + self.n_features :]
        features[1 : 1 + self.n_features] = whitened
        self.write_entries(whitened, quadratic)
        quadratic -= self.entries(origin)[:, None]
        if spread is not None:
            quadratic += spread
        quadratic *= self.feature_scale[:, None]
        return features

    def mixed_features(self, vectors, others):
        """The quadratic features of v w' + w v', row by row: (P, n), (P, n) -> (Q, n)."""
        entries = np.empty((2, self.n_quadratic, vectors.shape[1]))
        # By polarization of equally long vectors, so that no digits are lost.
        lengths = [np.linalg.norm(rows, axis=0) for rows in (vectors, others)]
        balance = np.sqrt(np.divide(*lengths, out=np.ones_like(lengths[0]), where=lengths[1] > 0))
        balance[balance == 0] = 1.0
        self.write_entries(vectors / balance + others * balance, entries[0])
        self.write_entries(vectors / balance - others * balance, entries[1])
        return (entries[0] - entries[1]) * (0.5 * self.feature_scale)[:, None]

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
        return self.entries(sums) * self.feature_scale

    def quadratic_sums(self, features):
        """Inverse of `quadratic_features`: (..., Q) -> (..., ...)."""
        return self.from_entries(features / self.feature_scale)

    def feature_moments(self, counts, first, second, origin, *of_scales):
        """Sums of h: moments in the whitened coordinates -> (D,). The transpose of `polynomials`.

        Parameters
        ----------
        counts : (L,)
        first : (K, P)
        second, origin : (S, ...)
        of_scales : (K,) and (n_tails,), sums of u and of the features of fitted nu, where there are scales
        """
        of_components = self.per_group(counts[: self.n_components])
        centred = second - of_components[self.statistic_axes] * origin
        of_normal = np.concatenate([counts, first.ravel(), self.quadratic_features(centred).ravel()])
        return np.concatenate([of_normal, *of_scales]) if of_scales else of_normal

    def moments(self, coefficients):
        """Inverse of `feature_moments` for O = s(I): (D,) -> counts, first, second, of the scales, of nu."""
        counts, first, quadratic = self.split(coefficients)
        of_components = self.per_group(counts[: self.n_components])
        origin = of_components[self.statistic_axes] * self.identity_statistic
        of_scales = [coefficients[self.coefficient_blocks[name]] for name in ("scale", "tail")]
        return counts, first, self.quadratic_sums(quadratic) + origin, *of_scales

    def polynomials(self, coefficients, origin):
        """beta . h as a + b.y + <B, s(y)>: (..., D) -> (..., L), (..., K, P), (..., S, ...).

        The noise component's is a alone, the last one. Where there are scales, the coefficients of u in a
        come after these, (..., K): beta . h is then a + u (a_u + b.y + <B, s(y)>) and the feature of nu.
        """
        intercepts, linear, quadratic = self.split(coefficients)
        curvature = self.quadratic_sums(quadratic) / (2.0 * self.power)
        constants, axes = intercepts.copy(), tuple(range(-self.identity.ndim, 0))
        if not self.has_scales:
            constants[..., : self.n_components] -= (curvature * origin).sum(axis=axes)
            return constants, linear, curvature
        constants[..., : self.n_components] -= (curvature * self.identity_statistic).sum(axis=axes)
        of_noise = (curvature * (self.identity_statistic - origin)).sum(axis=axes)
        of_scales = coefficients[..., self.coefficient_blocks["scale"]] + of_noise
        return constants, linear, curvature, of_scales

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

        def values_of_rows(rows, spread=None):
            monomials = np.empty((polynomials.shape[1], rows.shape[1]))
            monomials[0] = 1.0
            monomials[1:quadratic] = rows
            self.write_entries(rows, monomials[quadratic:])
            if spread is not None:
                monomials[quadratic:] += spread
            return polynomials @ monomials

        return values_of_rows

    def complete_information(self, mean_precision, effective_degrees_of_freedom):
        """Diagonal of R^-1 after the intercepts: tau on y, c/power on the quadratic features.

        2 tau^2/P on the scales, where there are any; fitted nu are left out.
        """
        diagonal = [
            np.repeat(mean_precision, self.n_features),
            np.repeat(effective_degrees_of_freedom / self.power, self.n_quadratic),
        ]
        if self.has_scales:
            diagonal.append(2.0 / self.n_dimensions * np.square(mean_precision))
        return np.concatenate(diagonal)

    # Responses of precisions and covariances to the quadratic coefficients.

    @property
    def own_precision_scale(self):
        """Size of the response of each entry of a precision to its coefficient, (Q,)."""
        return 1.0 / (self.power * self.feature_scale)

    def own_precision_response(self, quadratic):
        """d Lambda in its own coordinates, -a/power B: (..., S, Q) -> (..., S, ...)."""
        return -self.quadratic_sums(quadratic) / self.power

    def precision_response(self, quadratic, whiteners):
        """d Lambda = -a/power W' B W: (..., S, Q) -> (..., S, ...)."""
        return self.congruence(self.transposed(whiteners), self.own_precision_response(quadratic))

    def covariance_response(self, quadratic, covariance_cholesky):
        """d Lambda^-1 = a/power W^-1 B W^-T: (..., S, Q) -> (..., S, ...)."""
        return self.congruence(covariance_cholesky, self.quadratic_sums(quadratic) / self.power)


# Ratio of two columns' standard deviations below which the eigenvectors of a covariance keep all columns.
_MAX_RATIO_OF_UNITS = 1e4

# Distance of the components from the origin, of all together and in their own standard deviations, from which
# means are subtracted from the rows before these are whitened: a difference of whitened vectors would lose
# more than three digits.
_FAR = 1000.0


class MatrixStructure(CovarianceStructure):
    """Precision matrices (P, P), or their restrictions to P of ``n_dimensions``."""

    random_factors_type = BartlettFactors

    def __init__(self, n_components, n_features, parts=OptionalParts(), n_dimensions=None):
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

    # Features.

    def quadratic_entries(self, whitened, origin, index):
        """Some quadratic features of one component, without forming the others: int array (m,) -> (m, n)."""
        row, column = (coordinates[index] for coordinates in upper_triangle(self.n_features))
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

    # Influence functions: values and gradients of a + b.y + y'B y.

    def values(self, constant, linear, curvature):
        """As in every structure; a few functions are computed from b + B y, which is smaller than y y'."""
        n_functions, n_features = linear.shape
        if n_functions * n_features >= self.n_quadratic:
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


class ScaleStructure(CovarianceStructure):
    """Precisions are numbers, Q of them for a component: one for every feature or one for all."""

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
        """B.s(y): (K, Q), (K, P, n) -> (K, n)."""
        return np.matmul(curvature[:, None, :], self.statistic(whitened))[:, 0]

    # Maps, which scale the features.

    def cholesky(self, covariances):
        """Standard deviations, all NaN where one of the variances is not positive: (n, Q)."""
        is_positive = np.all(covariances > 0, axis=-1, keepdims=True)
        return np.sqrt(np.where(is_positive, covariances, np.nan))

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
        """Every component's scaled vector: (K, Q), (..., K, P) -> (..., K, P)."""
        return maps * vectors

    def congruence(self, maps, statistics):
        """Statistics of scaled vectors: (K, Q), (..., K, Q) -> (..., K, Q)."""
        return np.square(maps) * statistics

    def average_cholesky(self, covariance_cholesky, shares):
        """Square root of the average variance: (K, Q), (K,) -> (1, Q)."""
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

    # Random numbers.

    def draw(self, random_state, mean, variance, n_rows):
        """Rows of one component, by the same random numbers as scikit-learn: (n_rows, P)."""
        return mean + random_state.standard_normal(size=(n_rows, self.n_features)) * np.sqrt(variance)


class DiagonalCovariance(ScaleStructure):
    """Every component has a precision for every feature; within a component, features are independent."""

    def __init__(self, n_components, n_features, parts=OptionalParts()):
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

    def __init__(self, n_components, n_features, parts=OptionalParts()):
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
