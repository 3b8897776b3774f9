"""Features of rows, which are quadratic polynomials, and the layout of their coefficients in one vector.

*Conventions.* The K components fall into S precision groups: a group is one component, or all of them share
one precision (S = K or 1). A vector of coefficients, flat (..., D), holds L intercepts, (K, P) linear
coefficients, (S, Q) quadratic ones, where rows have scales K of the scales and one for every fitted number of
degrees of freedom, and one of a learned log b0. L counts the labels of rows: the components and, last, the
noise component. The features h, their number F, and s(y), O and a are those of `structures`; tau and c belong
to the posterior.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np


@dataclass(frozen=True)
class OptionalParts:
    """What a mixture may have besides normal components.

    Attributes
    ----------
    has_noise_component : bool, whether rows may belong to the noise component
    has_scales : bool, whether rows have scales
    n_tails : int, number of fitted degrees of freedom of the scales: none, one for all components, or K
    tails_by_component : bool, whether every component has its own; K = 1 is then reported as an array, too
    learns_mean_precision, learns_covariance : bool, whether b0 is learned, and C0
    """

    has_noise_component: bool = False
    has_scales: bool = False
    n_tails: int = 0
    tails_by_component: bool = False
    learns_mean_precision: bool = False
    learns_covariance: bool = False

    @property
    def has_learned_prior(self):
        """Whether something of the prior is learned."""
        return self.learns_mean_precision or self.learns_covariance


NORMAL_COMPONENTS = OptionalParts()


class CoefficientLayout:
    """Precision groups, and the places of intercepts, linear and quadratic coefficients in one vector.

    Parameters
    ----------
    n_components, n_features, n_quadratic : int
        K, P and Q, the number of quadratic features of a component.
    shares_precision : bool
        Whether all components are one precision group.
    parts : OptionalParts

    Attributes
    ----------
    n_groups, n_labels, n_coefficients : int
        S, L and D = L + K P + S Q; with scales D is larger by K and n_tails, and by 1 if b0 is learned.
    blocks : dict, str -> slice
        Slices of D with all intercepts, linear and quadratic coefficients, those of the scales, of the tails
        and of a learned log b0, in this order. The linear ones are (K, P), the quadratic ones (S, Q).
    block_shapes : dict, str -> tuple of int
        Units of a block, and coefficients of each unit, of all blocks but the scales'.
    """

    def __init__(self, n_components, n_features, n_quadratic, shares_precision, parts):
        self.n_components, self.n_features, self.n_quadratic = n_components, n_features, n_quadratic
        self.shares_precision, self._parts = shares_precision, parts
        self.n_groups = 1 if shares_precision else n_components
        self.n_labels = n_components + parts.has_noise_component
        linear, quadratic = self.n_labels, self.n_labels + n_components * n_features
        scale = quadratic + self.n_groups * n_quadratic
        tail = scale + n_components * parts.has_scales
        b0 = tail + parts.n_tails
        self.n_coefficients = b0 + parts.learns_mean_precision
        self.block_shapes = {
            "intercept": (self.n_labels, 1),
            "linear": (n_components, n_features),
            "quadratic": (self.n_groups, n_quadratic),
            "tail": (parts.n_tails, 1),
            "mean_precision": (int(parts.learns_mean_precision), 1),
        }
        self.blocks = {
            "intercept": slice(0, linear),
            "linear": slice(linear, quadratic),
            "quadratic": slice(quadratic, scale),
            "scale": slice(scale, tail),
            "tail": slice(tail, b0),
            "mean_precision": slice(b0, self.n_coefficients),
        }

    # Precision groups.

    def group_of(self, component):
        """Index of the group of a component."""
        return 0 if self.shares_precision else component

    def members(self, group):
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

    def reported_numbers(self, by_group):
        """A number for every group as users see it: (S,) -> (K,), or a float if shared."""
        return by_group[0] if self.shares_precision else by_group.copy()

    # The vector of coefficients.

    def split(self, coefficients):
        """Views of intercepts, linear and quadratic ones: (..., D) -> (..., L), (..., K, P), (..., S, Q)."""
        lead, blocks = coefficients.shape[:-1], self.blocks
        return (
            coefficients[..., blocks["intercept"]],
            coefficients[..., blocks["linear"]].reshape(*lead, self.n_components, self.n_features),
            coefficients[..., blocks["quadratic"]].reshape(*lead, self.n_groups, self.n_quadratic),
        )

    def slices_of(self, component):
        """Slices of D with a component's intercept, linear and quadratic coefficients."""
        linear = self.blocks["linear"].start + component * self.n_features
        quadratic = self.blocks["quadratic"].start + self.group_of(component) * self.n_quadratic
        return (
            slice(component, component + 1),
            slice(linear, linear + self.n_features),
            slice(quadratic, quadratic + self.n_quadratic),
        )

    @cached_property
    def places_of_components(self):
        """Coordinates of every component's coefficients, int array (K, F)."""
        coordinates = np.arange(self.n_coefficients)
        intercepts, linear, quadratic = self.split(coordinates)
        columns = [intercepts[: self.n_components, None], linear, self.per_component(quadratic)]
        if self._parts.has_scales:
            columns.append(coordinates[self.blocks["scale"], None])
        if self._parts.n_tails:
            columns.append(self.per_component(coordinates[self.blocks["tail"], None]))
        return np.hstack(columns)

    @cached_property
    def places_of_labels(self):
        """Coordinates of every label's coefficients: L int arrays, (F,) for components, (1,) else."""
        return [*self.places_of_components, *np.arange(self.n_components, self.n_labels)[:, None]]

    @cached_property
    def feature_places(self):
        """Where the features of components with precisions of their own are: pairs of slices, of F and of D.

        A fitted nu that all components share has no pair.
        """
        widths = {
            "intercept": 1,
            "linear": self.n_features,
            "quadratic": self.n_quadratic,
            "scale": int(self._parts.has_scales),
            "tail": int(self._parts.n_tails == self.n_components),
        }
        places, first = [], 0
        for name, width in widths.items():
            start = self.blocks[name].start
            places.append((slice(first, first + width), slice(start, start + self.n_components * width)))
            first += width
        return places


class Features(ABC):
    """The Hermite polynomials h of a covariance structure (`structures`), and sums of them.

    Parameters
    ----------
    structure : CovarianceStructure

    Attributes
    ----------
    scale : ndarray of shape (Q,)
        Factors of the entries of s(y) in the quadratic features.
    """

    def __init__(self, structure):
        self._structure, self._layout = structure, structure.layout
        self.scale = structure.entry_weights / np.sqrt(2.0 * structure.power)

    # Features of rows.

    def of_component(self, whitened, origin, spread=None):
        """h of rows in one component's coordinates: (P, n), (...) -> (F, n).

        ``spread`` (Q, n) is added to the entries of s(y): the variance of missing values.
        """
        features = np.empty((self._structure.n_polynomials, whitened.shape[1]))
        features[0], quadratic = 1.0, features[1 + self._structure.n_features :]
        features[1 : 1 + self._structure.n_features] = whitened
        self._structure.write_entries(whitened, quadratic)
        quadratic -= self._structure.entries(origin)[:, None]
        if spread is not None:
            quadratic += spread
        quadratic *= self.scale[:, None]
        return features

    def some_quadratic(self, whitened, origin, index=slice(None)):
        """Some quadratic features of one component, or all: (P, n), (...), int array (m,) -> (m, n)."""
        entries = np.empty((self._structure.n_quadratic, whitened.shape[1]))
        self._structure.write_entries(whitened, entries)
        entries -= self._structure.entries(origin)[:, None]
        entries *= self.scale[:, None]
        return entries[index]

    def of_cross_products(self, vectors, others):
        """The quadratic features of v w' + w v', row by row: (P, n), (P, n) -> (Q, n)."""
        entries = np.empty((2, self._structure.n_quadratic, vectors.shape[1]))
        # By polarization of equally long vectors, so that no digits are lost.
        lengths = [np.linalg.norm(rows, axis=0) for rows in (vectors, others)]
        balance = np.sqrt(np.divide(*lengths, out=np.ones_like(lengths[0]), where=lengths[1] > 0))
        balance[balance == 0] = 1.0
        self._structure.write_entries(vectors / balance + others * balance, entries[0])
        self._structure.write_entries(vectors / balance - others * balance, entries[1])
        return (entries[0] - entries[1]) * (0.5 * self.scale)[:, None]

    def kernel(self, whitened, others, inner_products, origin):
        """Inner products of quadratic features, given those of the rows: (P, n), (P, m), (n, m) -> (n, m)."""
        return self.some_quadratic(whitened, origin).T @ self.some_quadratic(others, origin)

    def products_by_row(self, whitened, others, origin):
        """Inner products of quadratic features, row by row: (P, n), (P, n), (...) -> (n,)."""
        features = (self.some_quadratic(rows, origin) for rows in (whitened, others))
        return np.einsum("qn,qn->n", *features)

    def from_sums(self, sums):
        """Quadratic features (s - O)/a from the differences s - O: (S, ...) -> (S, Q)."""
        return self._structure.entries(sums) * self.scale

    def to_sums(self, features):
        """Inverse of `from_sums`: (..., Q) -> (..., ...)."""
        return self._structure.from_entries(features / self.scale)

    def from_moments(self, counts, first, second, origin, *of_scales):
        """Sums of the features h over rows, from their moments: (D,). It is the adjoint of `polynomials`.

        Parameters
        ----------
        counts : (L,)
        first : (K, P)
        second, origin : (S, ...)
        of_scales : (K,) and (n_tails,), sums of u and of the features of fitted nu, where there are scales
        """
        of_components = self._layout.per_group(counts[: self._structure.n_components])
        centred = second - of_components[self._structure.statistic_axes] * origin
        of_normal = np.concatenate([counts, first.ravel(), self.from_sums(centred).ravel()])
        if len(of_normal) == self._layout.n_coefficients:
            return of_normal
        of_mean_precision = np.zeros(self._layout.block_shapes["mean_precision"][0])
        return np.concatenate([of_normal, *of_scales, of_mean_precision])

    def to_moments(self, coefficients):
        """Inverse of `from_moments` for O = s(I): (D,) -> counts, first, second, of the scales, of nu."""
        counts, first, quadratic = self._layout.split(coefficients)
        of_components = self._layout.per_group(counts[: self._structure.n_components])
        origin = of_components[self._structure.statistic_axes] * self._structure.identity_statistic
        of_scales = [coefficients[self._layout.blocks[name]] for name in ("scale", "tail")]
        return counts, first, self.to_sums(quadratic) + origin, *of_scales

    def congruences(self, maps):
        """M B M' as matrices that take features of B to features: (n, ...) -> (n, Q, Q)."""
        basis = self.to_sums(np.eye(self._structure.n_quadratic))
        images = self._structure.congruence(maps[:, None], basis)
        return self.from_sums(images).swapaxes(-1, -2)

    def entry_coefficients(self, curvature):
        """<B, s(y)> as coefficients of the entries of s(y): (..., ...) -> (..., Q)."""
        return self._structure.entry_counts * self._structure.entries(curvature)

    def polynomials(self, coefficients, origin):
        """beta . h as a + b.y + <B, s(y)>: (..., D) -> (..., L), (..., K, P), (..., S, ...).

        The noise component's is a alone, the last one. With scales there is a fourth array a_u, (..., K):
        beta . h is then a + u (a_u + b.y + <B, s(y)>), plus the term of nu.
        """
        structure, (intercepts, linear, quadratic) = self._structure, self._layout.split(coefficients)
        curvature = self.to_sums(quadratic) / (2.0 * structure.power)
        constants, axes = intercepts.copy(), tuple(range(-structure.identity.ndim, 0))
        of_components = constants[..., : structure.n_components]
        if not structure.has_scales:
            of_components -= (curvature * origin).sum(axis=axes)
            return constants, linear, curvature
        of_components -= (curvature * structure.identity_statistic).sum(axis=axes)
        of_known_noise = (curvature * (structure.identity_statistic - origin)).sum(axis=axes)
        of_scales = coefficients[..., self._layout.blocks["scale"]] + of_known_noise
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
        quadratic = 1 + self._structure.n_features

        def values_of_rows(rows, spread=None):
            monomials = np.empty((polynomials.shape[1], rows.shape[1]))
            monomials[0] = 1.0
            monomials[1:quadratic] = rows
            self._structure.write_entries(rows, monomials[quadratic:])
            if spread is not None:
                monomials[quadratic:] += spread
            return polynomials @ monomials

        return values_of_rows

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

    def complete_information(self, mean_precision, effective_degrees_of_freedom):
        """Diagonal of R^-1 after the intercepts: tau on y, c/power on the quadratic features.

        Then 2 tau^2/P on the scales, if there are any. Coefficients of fitted nu are not included.
        """
        diagonal = [
            np.repeat(mean_precision, self._structure.n_features),
            np.repeat(effective_degrees_of_freedom / self._structure.power, self._structure.n_quadratic),
        ]
        if self._structure.has_scales:
            diagonal.append(2.0 / self._structure.n_dimensions * np.square(mean_precision))
        return np.concatenate(diagonal)

    @property
    def precision_scale(self):
        """Size of the response of each entry of a precision to its coefficient, (Q,)."""
        return 1.0 / (self._structure.power * self.scale)

    def own_precision_response(self, quadratic):
        """d Lambda in its own coordinates, -a/power B: (..., S, Q) -> (..., S, ...)."""
        return -self.to_sums(quadratic) / self._structure.power

    def precision_response(self, quadratic, whiteners):
        """d Lambda = -a/power W' B W: (..., S, Q) -> (..., S, ...)."""
        return self._structure.congruence(
            self._structure.transposed(whiteners), self.own_precision_response(quadratic)
        )

    def covariance_response(self, quadratic, covariance_cholesky):
        """d Lambda^-1 = a/power W^-1 B W^-T: (..., S, Q) -> (..., S, ...)."""
        return self._structure.congruence(
            covariance_cholesky, self.to_sums(quadratic) / self._structure.power
        )
