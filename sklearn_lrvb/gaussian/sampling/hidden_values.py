"""What rows with holes hide, under many draws of the parameters at once.

*Mathematics.* In the frame of the fitted component k, y = W_k (x - m_k), hidden values move a row along
directions Q, orthonormal columns that span those of W_k that belong to them (`e_step.hidden_directions`). A
row is yhat + Q e, with yhat from what it shows and Q' yhat = 0. In the frame of a draw, L'y - u, the
directions are L'Q = Z R, with Z orthonormal and R triangular, and

    log density of what is seen = [that of a complete row at yhat] + |t|^2/2 - log|R| + (hidden volume),
    e given what is seen        = R^-1 (t + z),        t = Z'(u - L' yhat),        z ~ N(0, I).

Q depends on the pattern of holes alone, and Z and R on pattern and draw, but on no row. So log densities and
moments of complete rows at yhat, which are one matrix product for all draws (`likelihood`), are corrected by
products of the draws and rows of a pattern. Patterns with equally many holes and nearly equally many rows are
computed together: one pattern of many rows, and many patterns of one row, are both few operations on large
arrays. The background, a constant density, has no distribution of hidden values: all is about components.

*Conventions.* d draws, n rows of a block, g patterns computed together with m holes and r rows each, K
components, P features, S precision groups, F monomials (1, y, s(y)) of a row.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np


def hidden_values(posterior, draws, rows, noise):
    """What the rows of a block hide, under draws: HiddenValues; the parameters are those of the class."""
    kind = HiddenVectors if posterior.structure.is_matrix else HiddenNumbers
    return kind(posterior, draws, rows, noise)


def workload_per_pattern_and_draw(posterior):
    """About how many numbers are made of a pattern of holes and a draw: maps by group, sums by component."""
    n_components, n_features = posterior.centred_means.shape
    sums = n_components * n_features**2 if posterior.structure.is_matrix else 1
    return 2 * posterior.structure.size_of_pattern + sums


def noise_by_feature(posterior, draws):
    """reg_covar times the diagonal of the draws' precisions, (S, d, P)."""
    structure = posterior.structure
    maps = structure.composed(structure.transposed(draws.factors), posterior.whiteners)
    squares = np.square(maps).sum(axis=-2) if structure.is_matrix else np.square(maps)
    by_group = posterior.reg_covar * squares.swapaxes(0, 1)
    return np.broadcast_to(by_group, (*by_group.shape[:2], structure.n_features))


class HiddenValues(ABC):
    """What the rows of a block hide, under draws.

    Parameters
    ----------
    posterior : VariationalPosterior, in whose frames the draws are
    draws : ParameterDraws
    rows : OwnRows, with holes
    noise : (S, d, P), `noise_by_feature` of the draws

    Attributes
    ----------
    n_components : int, K
    """

    def __init__(self, posterior, draws, rows, noise):
        self.n_components = posterior.n_components
        self._structure, self._directions, self._noise = posterior.structure, rows.hidden, noise
        self._holes = rows.hidden.holes
        self._scaled_means = draws.scaled_means.swapaxes(0, 1)  # (K, d, P)

    def add_log_densities(self, log_densities):
        """Turn log densities of complete rows at yhat into those of what is seen, (K, d, n)."""
        # The noise is on what is seen, and that of all features has been taken off.
        of_noise = 0.5 * self._noise @ self._holes.hidden.T
        of_patterns = self._directions.log_volumes[:, None] + of_noise
        log_densities += self._holes.by_row(of_patterns)
        self._add_log_integrals(log_densities)

    @property
    def n_hidden(self):
        """Number of hidden values of every row, (n,)."""
        return self._holes.by_row(self._directions.n_hidden)

    def add_squares(self, log_densities):
        """Add to minus half the squared distances at yhat what is seen of them, (K, d, n).

        Returns
        -------
        log_volumes : (K, d, n), what the log densities of what is seen have besides, for their determinants
        """
        log_densities += self._holes.by_row(0.5 * self._noise @ self._holes.hidden.T)
        volumes = self._holes.by_row(self._directions.log_volumes_of_directions)[:, None]
        volumes = np.array(np.broadcast_to(volumes, log_densities.shape))
        self._add_log_integrals(log_densities, volumes)
        return volumes

    def expected_sums(self, weights, scaled):
        """What sums of weight (1, y, s(y)) have more than those at yhat, weights (K, d, n): (d, K, F).

        Hidden values are taken at their expectation given what is seen, squares included. The known noise on
        hidden features is taken off again. Where rows have scales, all but the hidden values' own variance is
        multiplied by them, and has the weights ``scaled``.
        """
        return self._monomial_sums(scaled, *self._expected_moments(weights, scaled))

    def drawn_sums(self, weights, normals):
        """The same, with hidden values drawn by standard normal numbers (d, P, n), zero where one is seen."""
        return self._monomial_sums(weights, *self._drawn_moments(weights, normals))

    def _monomial_sums(self, weights, first, second):
        structure, counts = self._structure, self._holes.sums(weights).swapaxes(0, 1)
        quadratic = 1 + structure.n_features
        sums = np.zeros((*counts.shape[:2], structure.n_polynomials))
        sums[..., 1:quadratic] = first
        sums[..., quadratic:] = structure.entries(second - self._directions.noise_sums(counts))
        return sums

    @abstractmethod
    def displacements(self, normals):
        """Q e with hidden values drawn by standard normal numbers (d, P, n): (K, d, P, n)."""

    @abstractmethod
    def _add_log_integrals(self, log_densities, volumes=None):
        """Add |t|^2/2 - log|R|; the latter to other arrays, if they are given."""

    @abstractmethod
    def _expected_moments(self, weights, scaled):
        """What sums of weight (y, s(y)) have more than those at yhat: (d, K, P), (d, K, ...)."""

    @abstractmethod
    def _drawn_moments(self, weights, normals):
        """The same of drawn hidden values."""


@dataclass(frozen=True)
class AlikePatterns:
    """Patterns with equally many holes and nearly equally many rows, under draws.

    Rows of shorter patterns are filled up with copies of their last row.

    Attributes
    ----------
    axes : (S, g, P, m), Q
    columns : int array (g, m), the hidden features
    index : int array (g, r), the rows in the block
    is_no_copy : bool (g, r)
    rows : (K, g, P, r), yhat
    triangles : (S, g, d, m, m), R
    offsets : (K, g, d, m, r), t
    """

    axes: np.ndarray
    columns: np.ndarray
    index: np.ndarray
    is_no_copy: np.ndarray
    rows: np.ndarray
    triangles: np.ndarray
    offsets: np.ndarray

    @cached_property
    def inverses(self):
        """R^-1, (S, g, d, m, m)."""
        return np.linalg.inv(self.triangles)

    def own(self, by_row):
        """What belongs to the rows of a block, with zeros for copies: (..., n) -> (..., g, r)."""
        return by_row[..., self.index] * self.is_no_copy

    def drawn(self, normals):
        """e by standard normal numbers: (d, P, n) -> (K, g, d, m, r)."""
        own = normals[:, self.columns[:, :, None], self.index[:, None, :]]
        return self.inverses @ (self.offsets + own.swapaxes(0, 1))


class HiddenVectors(HiddenValues):
    """Hidden values where precisions are matrices."""

    def __init__(self, posterior, draws, rows, noise):
        super().__init__(posterior, draws, rows, noise)
        factors = self._structure.transposed(draws.factors)
        self._maps = np.ascontiguousarray(factors.swapaxes(0, 1))  # L', (S, d, P, P)
        self._alike = [
            self._under_draws(axes[:, own], patterns.start + own, rows)
            for patterns, axes, _ in self._directions.factors
            for own in _of_similar_lengths(self._holes.lengths[patterns])
        ]

    def _under_draws(self, axes, patterns, rows):
        """`AlikePatterns`, int array of patterns."""
        n_groups, n_patterns, n_features, n_hidden = axes.shape
        n_draws, lengths = self._maps.shape[1], self._holes.lengths[patterns][:, None]
        place = np.arange(lengths.max())
        index = self._holes.starts[patterns][:, None] + np.minimum(place, lengths - 1)
        own = np.ascontiguousarray(rows.values[:, :, index].swapaxes(1, 2))
        turned = self._maps.reshape(n_groups, 1, n_draws * n_features, n_features) @ axes
        directions, triangles = np.linalg.qr(
            turned.reshape(n_groups, n_patterns, n_draws, n_features, n_hidden)
        )
        back = directions.swapaxes(-1, -2)
        slopes = (back @ self._maps[:, None]).reshape(n_groups, n_patterns, n_draws * n_hidden, n_features)
        offsets = (slopes @ own).reshape(*own.shape[:2], n_draws, n_hidden, -1)
        offsets = np.subtract(back @ self._scaled_means[:, None, :, :, None], offsets, out=offsets)
        columns = np.nonzero(self._holes.hidden[patterns])[1].reshape(n_patterns, n_hidden)
        return AlikePatterns(axes, columns, index, place < lengths, own, triangles, offsets)

    def displacements(self, normals):
        n_draws, n_features, n_rows = normals.shape
        moved = np.empty((len(self._scaled_means), n_draws, n_features, n_rows))
        for alike in self._alike:
            own = alike.axes[:, :, None] @ alike.drawn(normals)
            moved[..., alike.index] = own.transpose(0, 2, 3, 1, 4)
        return moved

    def _add_log_integrals(self, log_densities, volumes=None):
        for alike in self._alike:
            pivots = np.abs(np.einsum("sgdmm->sgdm", alike.triangles))
            integrals = 0.5 * np.einsum("kgdmr,kgdmr->kgdr", alike.offsets, alike.offsets)
            log_pivots = np.log(pivots).sum(axis=-1)[..., None]
            if volumes is None:
                integrals -= log_pivots
            else:
                own = np.broadcast_to(log_pivots, integrals.shape)
                volumes[..., alike.index] -= own.swapaxes(1, 2)
            # A copy repeats the sum of its row: += with an index adds to a row once.
            log_densities[..., alike.index] += integrals.swapaxes(1, 2)

    def _expected_moments(self, weights, scaled):
        parts = []
        for alike in self._alike:
            own = alike.own(weights).swapaxes(1, 2)
            spread = alike.inverses @ alike.inverses.swapaxes(-1, -2)
            spread = spread * own.sum(axis=-1)[..., None, None]
            own = own if scaled is weights else alike.own(scaled).swapaxes(1, 2)
            parts.append(_moments(alike, own, alike.inverses @ alike.offsets, spread))
        return _summed(parts)

    def _drawn_moments(self, weights, normals):
        return _summed(
            [
                _moments(alike, alike.own(weights).swapaxes(1, 2), alike.drawn(normals), 0.0)
                for alike in self._alike
            ]
        )


def _of_similar_lengths(lengths):
    """Places of numbers of rows that are similar: list of int arrays; twice as many are not similar."""
    half = np.maximum(2 ** (np.frexp(lengths)[1] - 2.0), 1.0).astype(int)  # Half the power of two below.
    rounded = -(-lengths // half) * half
    return [np.flatnonzero(rounded == length) for length in np.unique(rounded)]


def _moments(alike, weights, moved, spread):
    """What sums of weight (y, y y'/2) have more than those at yhat; y y' is not made symmetric.

    Parameters
    ----------
    alike : AlikePatterns
    weights : (K, g, d, r)
    moved : (K, g, d, m, r), e
    spread : (K, g, d, m, m) or 0, what sums of weight e e' have more than those of ``moved``

    Returns
    -------
    first : (K, d, P)
    half_second : (K, d, P, P)
    """
    weighted = moved * weights[..., None, :]
    n_components, n_patterns, n_draws, n_hidden, n_rows = weighted.shape
    n_features = alike.rows.shape[2]
    squares = weighted @ moved.swapaxes(-1, -2) + spread
    # Sums of weight e (yhat + Q e/2)', (K, g, d m, P).
    sums = weighted.reshape(n_components, n_patterns, -1, n_rows) @ alike.rows.swapaxes(-1, -2)
    sums += 0.5 * squares.reshape(n_components, n_patterns, -1, n_hidden) @ alike.axes.swapaxes(-1, -2)
    by_draw = sums.reshape(n_components, n_patterns, n_draws, n_hidden, n_features).transpose(0, 2, 4, 1, 3)
    # All patterns are one product.
    axes = alike.axes.transpose(0, 1, 3, 2).reshape(len(alike.axes), -1, n_features)
    half_second = by_draw.reshape(n_components, n_draws * n_features, -1) @ axes
    first = weighted.sum(axis=-1).swapaxes(1, 2).reshape(n_components, n_draws, -1) @ axes
    return first, half_second.reshape(n_components, n_draws, n_features, n_features)


def _summed(parts):
    """Sums of y and y y' of all patterns, draws first: (d, K, P), (d, K, P, P)."""
    first, half_second = (sum(own).swapaxes(0, 1) for own in zip(*parts, strict=True))
    return first, half_second + half_second.swapaxes(-1, -2)


class HiddenNumbers(HiddenValues):
    """Hidden values where precisions are numbers: Q are unit vectors, and e = (u + z)/L."""

    def __init__(self, posterior, draws, rows, noise):
        super().__init__(posterior, draws, rows, noise)
        roots = draws.factors.swapaxes(0, 1)
        self._roots = np.broadcast_to(roots, self._scaled_means.shape)  # L, (K, d, P)

    def displacements(self, normals):
        hidden = self._holes.by_row(self._holes.hidden.T)
        return hidden * (self._scaled_means[..., None] + normals) / self._roots[..., None]

    def _add_log_integrals(self, log_densities, volumes=None):
        squares, log_roots = 0.5 * np.square(self._scaled_means), np.log(self._roots)
        by_feature = squares - log_roots if volumes is None else squares
        log_densities += self._holes.by_row(by_feature @ self._holes.hidden.T)
        if volumes is not None:
            volumes -= self._holes.by_row(log_roots @ self._holes.hidden.T)

    def _expected_moments(self, weights, scaled):
        squares = self._counts(weights)
        counts = squares if scaled is weights else self._counts(scaled)
        return self._moments(counts, np.zeros_like(counts), squares)

    def _drawn_moments(self, weights, normals):
        by_draw = weights.swapaxes(0, 1)
        sums, squares = (by_draw @ of_rows.swapaxes(1, 2) for of_rows in (normals, np.square(normals)))
        return self._moments(self._counts(weights), sums.swapaxes(0, 1), squares.swapaxes(0, 1))

    def _counts(self, weights):
        """Sums of the weights of the rows that hide a feature, (K, d, P)."""
        return self._holes.sums(weights) @ self._holes.hidden

    def _moments(self, counts, sums, squares):
        """Moments of (u + z)/L, from sums of weight (1, z, z^2) for every hidden feature, (K, d, P)."""
        means, roots = self._scaled_means, self._roots
        first = (means * counts + sums) / roots
        scaled = (np.square(means) * counts + 2.0 * means * sums + squares) / roots
        # Of every component by itself, also where components share a precision: hence the axis of one vector.
        second = self._structure.outer_products(scaled[:, :, None], 1.0 / roots[:, :, None])[:, :, 0]
        return first.swapaxes(0, 1), second.swapaxes(0, 1)
