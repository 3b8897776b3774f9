"""The directions in which missing values move a row in the components' coordinates, pattern by pattern.

*Mathematics.* A row shows some of its features, others are missing. In the whitened coordinates of component
k, y = W_k (x - m_k), missing values move y along the columns W_m of W_k that belong to them. What q says of a
row is one quadratic form in the whole x, so that integrating the missing values out is the orthogonal
projection Pi on the span of W_m:

    q(y | z = k) = N((I - Pi) y, Pi),       y with any numbers in place of the missing values,
    rho_nk       + P_m/2 log 2 pi - log|W_m' W_m|/2,

and the expected statistic is s((I - Pi) y) + s(Pi). The known noise is on what is seen. Let V be W times
its standard deviations. The sums over all rows have it added for whole rows
(`VariationalPosterior.with_prior`), so that incomplete rows add

    spread = s(Pi) - s(V_m V_m')     to s,     trace(V_m V_m')/2     to rho.

*Conventions.* g patterns among the rows of a block (`rows.MissingValues`), K components, S precision groups,
Q entries of a statistic. Arrays by pattern have the patterns on their last axis.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sklearn_lrvb.rows import MissingValues, slices

_LOG_2_PI = math.log(2.0 * math.pi)

# Rows of a pattern from which on projecting them by a matrix product of their own costs less than projecting
# the rows of many patterns together, vector by vector.
_ROWS_OF_A_PRODUCT = 48

_NUMBERS_AT_ONCE = 2**18  # Of the vectors that are projected on, by row: they stay in cache.


def missing_directions(posterior, missing):
    """The directions that belong to the missing values of a block, in the coordinates of a posterior.

    Parameters
    ----------
    posterior : VariationalPosterior or HandSetDensities
    missing : MissingValues
    """
    kind = MissingMatrixDirections if posterior.structure.is_matrix else MissingScaleDirections
    return kind(posterior.structure, posterior.whiteners, posterior.noise_maps, missing)


@dataclass(frozen=True)
class MissingDirections(ABC):
    """The directions that belong to the missing values of a block.

    Attributes
    ----------
    structure : CovarianceStructure
    whiteners : (S, ...), W
    noise_maps : (S, ...), V, which is W times the standard deviations of known noise on what is seen
    missing : MissingValues
    """

    structure: object
    whiteners: np.ndarray
    noise_maps: np.ndarray
    missing: MissingValues

    @property
    def n_missing(self):
        """P_m of every pattern, (g,)."""
        return self._is_missing.sum(axis=0)

    @cached_property
    def _is_missing(self):
        """Ones where a feature is missing in a pattern, zeros elsewhere, (P, g)."""
        return self.missing.is_missing.T.astype(np.float64)

    @cached_property
    def log_densities(self):
        """What the rows of a pattern have more in rho than complete rows, (S, g)."""
        return self.log_volumes + 0.5 * self.noise_squares

    @cached_property
    def log_volumes(self):
        """Logarithm of the integral of exp(-|y|^2/2) over the missing values, if Pi y moves alone: (S, g)."""
        return 0.5 * (_LOG_2_PI * self.n_missing - self._log_determinants)

    # The parts of these and of the spread where rows have scales u: y is multiplied by u, and s(Pi) is not.

    @property
    def log_volumes_of_directions(self):
        """-log|W_m' W_m|/2, (S, g)."""
        return -0.5 * self._log_determinants

    @cached_property
    def noise_squares(self):
        """trace(V_m V_m'), (S, g)."""
        return self._squares_of(self.noise_maps) @ self._is_missing

    @abstractmethod
    def values_of_noise(self, curvature):
        """<B, s(V_m V_m')>: (S, ...) -> (S, g)."""

    @abstractmethod
    def _squares_of(self, maps):
        """Squared lengths of the columns of maps, (S, ...) -> (S, P)."""

    @property
    @abstractmethod
    def _log_determinants(self):
        """log|W_m' W_m|, (S, g)."""

    @abstractmethod
    def onto(self, vectors):
        """Pi v of the rows' vectors: (K, P, n) -> (K, P, n)."""

    @abstractmethod
    def mapped(self, maps, vectors):
        """M v of the rows' vectors: (S, ...), (K, P, n) -> (K, P, n)."""

    @property
    @abstractmethod
    def projections(self):
        """The entries of s(Pi), (S, Q, g)."""

    @property
    @abstractmethod
    def spread(self):
        """The entries of the spread, what missing values add to s: (S, Q, g)."""

    @abstractmethod
    def spread_sums(self, weights):
        """Sum over the patterns of weight times spread: (S, g) -> (S, ...)."""

    @abstractmethod
    def noise_sums(self, weights):
        """Sum over the patterns of weight s(V_m V_m'): (..., S or K, g) -> (..., S or K, ...)."""

    @abstractmethod
    def values_of_spread(self, curvature):
        """<B, spread>: (S, ...) -> (S, g)."""

    @abstractmethod
    def covariance_sums(self, values, linear, curvature, weights, scaled):
        """Sums over the rows of weight Cov(y, b.y + <B, s(y)>) and weight Cov(s(y), b.y + <B, s(y)>).

        Parameters
        ----------
        values : (K, P, n), what is expected of y
        linear : (K, P), b
        curvature : (S, ...), B
        weights : (K, n)
        scaled : (K, n), the same times u, if rows have scales and all is multiplied by them

        Returns
        -------
        first : (K, P)
        second : (S, ...)
        """

    @abstractmethod
    def changed_distances(self, group, pattern, cholesky, vectors):
        """Squared distances of rows in a group whose precision has changed, and volumes of missing values.

        Parameters
        ----------
        group : int
        pattern : int array (n,), the rows' patterns
        cholesky : (n, ...), factors L of each row's own E(Lambda)^-1, in the coordinates of the group
        vectors : list of (P, n), y - shift of some components

        Returns
        -------
        squares : (len(vectors), n), v' v
        noise : (n,), of what is seen
        volumes : (n,), twice `log_volumes`
        """

    def by_group(self, weights):
        """Sums over the rows of every pattern and the components of every group: (K, n) -> (S, g)."""
        sums = self.missing.sums(weights)
        return sums.sum(axis=0, keepdims=True) if self.structure.shares_precision else sums


class MissingMatrixDirections(MissingDirections):
    """Directions in the whitened coordinates of precision matrices: W_m = Q R, Pi = Q Q'."""

    def _squares_of(self, maps):
        return np.square(maps).sum(axis=1)

    @cached_property
    def factors(self):
        """Patterns with equally many missing values: list of (slice, Q (S, g, P, m), log|R'R| (S, g))."""
        n_missing, factors = self.missing.is_missing.sum(axis=1), []
        edges = np.flatnonzero(np.diff(n_missing)) + 1
        for start, stop in zip([0, *edges], [*edges, len(n_missing)], strict=True):
            columns = np.nonzero(self.missing.is_missing[start:stop])[1].reshape(stop - start, -1)
            directions = self.whiteners[:, :, columns].transpose(0, 2, 1, 3)
            axes, triangles = np.linalg.qr(directions)
            lengths = np.abs(np.einsum("sgmm->sgm", triangles))
            factors.append((slice(start, stop), axes, 2.0 * np.log(lengths).sum(axis=-1)))
        return factors

    @cached_property
    def _log_determinants(self):
        return np.concatenate([log_determinants for _, _, log_determinants in self.factors], axis=1)

    def onto(self, vectors):
        projected, starts = np.empty_like(vectors), [*self.missing.starts, vectors.shape[2]]
        for patterns, axes, _ in self.factors:
            n_patterns, first, last = axes.shape[1], starts[patterns.start], starts[patterns.stop]
            if last - first >= _ROWS_OF_A_PRODUCT * n_patterns:
                for number in range(n_patterns):
                    own, turn = slice(*starts[patterns.start + number :][:2]), axes[:, number]
                    projected[:, :, own] = turn @ (turn.transpose(0, 2, 1) @ vectors[:, :, own])
            else:
                self._project_together(vectors, projected, axes, patterns.start, slice(first, last))
        return projected

    def _project_together(self, vectors, projected, axes, first_pattern, rows):
        """Write Pi v of the rows of many patterns with equally many missing values."""
        by_pattern = axes.transpose(0, 3, 2, 1)  # (S, m, P, g)
        at_once = max(1, _NUMBERS_AT_ONCE // by_pattern[..., 0].size)
        for some in slices(rows.stop - rows.start, at_once):
            own = slice(rows.start + some.start, rows.start + some.stop)
            turns = np.take(by_pattern, self.missing.pattern[own] - first_pattern, axis=3)
            part, total = vectors[:, :, own], 0.0
            for number in range(turns.shape[1]):
                turn = np.broadcast_to(turns[:, number], part.shape)
                total = total + turn * np.einsum("kpn,kpn->kn", turn, part)[:, None]
            projected[:, :, own] = total

    def mapped(self, maps, vectors):
        return np.matmul(maps, vectors)

    @cached_property
    def projections(self):
        return np.concatenate([self._entries(axes, axes) for _, axes, _ in self.factors], axis=2)

    @cached_property
    def spread(self):
        if not self.noise_maps.any():
            return self.projections
        maps = self.noise_maps[:, None]
        return self.projections - self._entries(maps * self._is_missing.T[:, None], maps)

    def _entries(self, maps, others):
        """The entries of products A B', pattern by pattern: (S, g or 1, P, m) twice -> (S, Q, g)."""
        return self.structure.entries(maps @ others.transpose(0, 1, 3, 2)).transpose(0, 2, 1)

    def noise_sums(self, weights):
        by_feature = weights @ self._is_missing.T
        return (self.noise_maps * by_feature[..., None, :]) @ self.noise_maps.transpose(0, 2, 1)

    def spread_sums(self, weights):
        total = np.zeros_like(self.whiteners)
        for patterns, axes, _ in self.factors:
            total += _summed_products(axes * weights[:, patterns, None, None], axes)
        return 0.5 * (total + total.transpose(0, 2, 1)) - self.noise_sums(weights)

    def values_of_noise(self, curvature):
        along_columns = np.einsum(
            "spq,spr,srq->sq", self.noise_maps, curvature, self.noise_maps, optimize=True
        )
        return along_columns @ self._is_missing

    def values_of_spread(self, curvature):
        values = -self.values_of_noise(curvature)
        for patterns, axes, _ in self.factors:
            values[:, patterns] += np.einsum("sgpm,sgpm->sg", axes, curvature[:, None] @ axes)
        return values

    def covariance_sums(self, values, linear, curvature, weights, scaled):
        moved = scaled[:, None] * self.onto(linear[:, :, None] + 2.0 * self.mapped(curvature, values))
        total = values @ moved.transpose(0, 2, 1)
        if self.structure.shares_precision:
            total = total.sum(axis=0, keepdims=True)
        of_patterns = self.by_group(weights)
        for patterns, axes, _ in self.factors:
            inner = axes.transpose(0, 1, 3, 2) @ (curvature[:, None] @ axes)
            inner *= of_patterns[:, patterns, None, None]
            total += _summed_products(axes @ inner, axes)
        return moved.sum(axis=2), total + total.transpose(0, 2, 1)

    def changed_distances(self, group, pattern, cholesky, vectors):
        squares, (noise, volumes) = np.empty((len(vectors), len(pattern))), np.empty((2, len(pattern)))
        stacked = np.stack(vectors, axis=2).transpose(1, 0, 2)  # (n, P, number of vectors)
        is_missing = self._is_missing.T[pattern] > 0
        n_missing = is_missing.sum(axis=1)
        for number in np.unique(n_missing):
            some = np.flatnonzero(n_missing == number)
            maps = np.linalg.inv(cholesky[some])
            columns = np.nonzero(is_missing[some])[1].reshape(len(some), -1)
            turned = maps @ self.whiteners[group]
            along = np.take_along_axis(turned, columns[:, None, :], axis=2)
            axes, triangles = np.linalg.qr(along)
            values = maps @ stacked[some]
            values -= axes @ (axes.transpose(0, 2, 1) @ values)
            lengths = np.abs(np.einsum("nmm->nm", triangles))
            noisy = (maps @ self.noise_maps[group]) * ~is_missing[some, None, :]
            noise[some] = np.square(noisy).sum(axis=(1, 2))
            volumes[some] = _LOG_2_PI * number - 2.0 * np.log(lengths).sum(axis=1)
            squares[:, some] = np.square(values).sum(axis=1).T
        return squares, noise, volumes


def _summed_products(maps, others):
    """Sums over the patterns of products A B': (S, g, P, m) twice -> (S, P, P)."""
    n_groups, n_patterns, n_features, n_missing = maps.shape
    left = maps.transpose(0, 2, 1, 3).reshape(n_groups, n_features, n_patterns * n_missing)
    return left @ others.transpose(0, 1, 3, 2).reshape(n_groups, n_patterns * n_missing, n_features)


class MissingScaleDirections(MissingDirections):
    """Directions in the coordinates of precisions that are numbers: the missing coordinates themselves."""

    def _squares_of(self, maps):
        return np.broadcast_to(np.square(maps), (len(maps), len(self._is_missing)))

    @cached_property
    def _log_determinants(self):
        return np.log(self._squares_of(self.whiteners)) @ self._is_missing

    @cached_property
    def _entries(self):
        """The entries of s(Pi), which all components share: (Q, g)."""
        return (
            self._is_missing if self.structure.n_quadratic == len(self._is_missing) else self.n_missing[None]
        )

    @property
    def projections(self):
        return np.broadcast_to(self._entries, (len(self.whiteners), *self._entries.shape))

    @cached_property
    def _noise(self):
        """V^2, (S, Q)."""
        return np.square(self.noise_maps)

    def onto(self, vectors):
        return vectors * self.missing.by_row(self._is_missing)

    def mapped(self, maps, vectors):
        return maps[:, :, None] * vectors

    @cached_property
    def spread(self):
        return (1.0 - self._noise)[:, :, None] * self._entries

    def spread_sums(self, weights):
        return (1.0 - self._noise) * (weights @ self._entries.T)

    def noise_sums(self, weights):
        return self._noise * (weights @ self._entries.T)

    def values_of_noise(self, curvature):
        return (curvature * self._noise) @ self._entries

    def values_of_spread(self, curvature):
        return (curvature * (1.0 - self._noise)) @ self._entries

    def covariance_sums(self, values, linear, curvature, weights, scaled):
        # What is expected of a row is zero along the directions of its missing values, so that s(y) moves
        # with B alone.
        slopes = self.onto(linear[:, :, None] + 2.0 * self.mapped(curvature, values))
        first = np.einsum("kpn,kn->kp", slopes, scaled)
        return first, 2.0 * curvature * (self.by_group(weights) @ self._entries.T)

    def changed_distances(self, group, pattern, cholesky, vectors):
        is_missing = self._is_missing.T[pattern]
        seen, log_squares = 1.0 - is_missing, 2.0 * np.log(self.whiteners[group] / cholesky)
        noise = (seen * np.square(self.noise_maps[group] / cholesky)).sum(axis=1)
        squares = [(seen * np.square(rows.T / cholesky)).sum(axis=1) for rows in vectors]
        return np.stack(squares), noise, (is_missing * (_LOG_2_PI - log_squares)).sum(axis=1)
