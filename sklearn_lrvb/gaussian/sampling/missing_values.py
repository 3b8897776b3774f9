"""Missing values of rows, under many draws of the parameters at once.

*Mathematics.* In the whitened coordinates of the fitted component k, y = W_k (x - m_k), missing values move a
row along directions Q, orthonormal columns that span those of W_k that belong to them
(`e_step.missing_directions`). A row is yhat + Q e, with yhat from what is seen and Q' yhat = 0. In the
whitened coordinates of a draw, L'y - u, the directions are L'Q = Z R, with Z orthonormal and R triangular,
and

    log density of what is seen = [that of a complete row at yhat] + |t|^2/2 - log|R| + (log volume),
    e given what is seen        = R^-1 (t + z),        t = Z'(u - L' yhat),        z ~ N(0, I).

Q depends on the pattern of missing values alone, and Z and R on pattern and draw, but on no row. So log
densities and moments of complete rows at yhat, which are one matrix product for all draws (`likelihood`), are
corrected by products of the draws and rows of a pattern. Patterns with equally many missing values and nearly
equally many rows are computed together: one pattern of many rows, and many patterns of one row, are both few
operations on large arrays. The noise component, a constant density, has no distribution of missing values:
all is about components.

*Completed copies* of rows: parameters, components and missing values are drawn, in this order. Every copy has
parameters of its own. What is estimated from the copies therefore varies as the posterior does (multiple
imputation). Rows are completed as if they belonged to one of the components, also where some may be noise.

*Conventions.* d draws, n rows of a block, g patterns computed together with m missing values and r rows each,
K components, P features, S precision groups, F monomials (1, y, s(y)) of a row.
"""

from abc import ABC, abstractmethod
from functools import cached_property

import numpy as np

from sklearn_lrvb.gaussian.sampling.row_scales import N_UNIFORMS_OF_GAMMA
from sklearn_lrvb.rows import batches, untracked
from sklearn_lrvb.sampling.random_assignments import assigned_once, exponentials

_LOG_2_PI = np.log(2.0 * np.pi)
_ARRAYS_PER_COPY = 4  # Number of arrays of the size of the rows that exist at once.


def missing_values(posterior, draws, rows):
    """The missing values of the rows of a block, under draws: MissingValuesUnderDraws."""
    if posterior.structure.is_matrix:
        return MissingVectors(posterior, draws, rows)
    return MissingNumbers(posterior, draws, rows)


def workload_per_pattern_and_draw(posterior):
    """About how many numbers are made of a pattern and a draw: maps by group, sums by component."""
    n_components, n_features = posterior.centred_means.shape
    sums = n_components * n_features**2 if posterior.structure.is_matrix else 1
    return 2 * posterior.structure.size_of_pattern + sums


class MissingValuesUnderDraws(ABC):
    """The missing values of the rows of a block, under draws.

    Parameters
    ----------
    posterior : VariationalPosterior, in whose whitened coordinates the draws are
    draws : ParameterDraws
    rows : OwnRows, with missing values

    Attributes
    ----------
    n_missing : (n,), number of missing values of every row
    """

    def __init__(self, posterior, draws, rows):
        self._structure, self._directions = posterior.structure, rows.directions
        self._missing = rows.directions.missing
        self._scaled_means = draws.scaled_means.swapaxes(0, 1)  # (K, d, P)
        self.n_missing = self._missing.by_row(self._directions.n_missing)
        # The noise's variances times the diagonal of the draws' precisions, (S, d, P).
        maps = self._structure.composed(self._structure.transposed(draws.factors), posterior.noise_maps)
        noise = np.square(maps).sum(axis=-2) if self._structure.is_matrix else np.square(maps)
        noise = noise.swapaxes(0, 1)
        self._noise = np.broadcast_to(noise, (*noise.shape[:2], self._structure.n_features))

    def add_log_densities(self, log_densities):
        """Turn log densities of complete rows at yhat into those of what is seen, (K, d, n)."""
        constants = 0.5 * _LOG_2_PI * self._directions.n_missing
        self.add_squares(log_densities, self._volumes_by_pattern + constants)

    def add_squares(self, log_densities, by_pattern=0.0):
        """Add to minus half the squared distances of complete rows at yhat what is seen of them, (K, d, n).

        Other terms may be added too, a number for every pattern and draw: (S, d, number of patterns).
        """
        # The noise is on what is seen, and that of all features has been taken off.
        by_pattern = by_pattern + 0.5 * self._noise @ self._missing.is_missing.T
        log_densities += self._missing.by_row(by_pattern)
        self._add_integrals(log_densities)

    def log_volumes(self):
        """What log densities of what is seen have besides squares, without log 2 pi: (S or K, d, n)."""
        return self._missing.by_row(self._volumes_by_pattern)

    @property
    def _volumes_by_pattern(self):
        return self._directions.log_volumes_of_directions[:, None] - self._log_pivots()

    def expected_sums(self, weights, scaled):
        """What sums of weight (1, y, s(y)) have more than those at yhat, weights (K, d, n): (d, K, F).

        Missing values are taken at their expectation given what is seen, squares included. The known noise on
        missing features is taken off again. Where rows have scales, all but the missing values' own variance
        is multiplied by them, and has the weights ``scaled``.
        """
        first, second = self._expected_moments(self._missing.sums(weights), scaled)
        return self._monomial_sums(scaled, first, second)

    def drawn_sums(self, weights, normals):
        """The same, with missing values drawn by normal numbers (d, P, n), zero where one is seen."""
        return self._monomial_sums(weights, *self._drawn_moments(weights, normals))

    def _monomial_sums(self, weights, first, second):
        structure, counts = self._structure, self._missing.sums(weights).swapaxes(0, 1)
        quadratic = 1 + structure.n_features
        sums = np.zeros((*counts.shape[:2], structure.n_polynomials))
        sums[..., 1:quadratic] = first
        sums[..., quadratic:] = structure.entries(second - self._directions.noise_sums(counts))
        return sums

    @abstractmethod
    def displacements(self, normals):
        """Q e with missing values drawn by standard normal numbers (d, P, n): (K, d, P, n)."""

    @abstractmethod
    def _add_integrals(self, log_densities):
        """Add |t|^2/2, (K, d, n)."""

    @abstractmethod
    def _log_pivots(self):
        """log|R| of every pattern and draw, (S or K, d, number of patterns)."""

    @abstractmethod
    def _expected_moments(self, counts, scaled):
        """What sums of (y, s(y)) have more than those at yhat: (d, K, P), (d, K, ...).

        Parameters
        ----------
        counts : (K, d, number of patterns), sums of weights, those of the missing values' own variance
        scaled : (K, d, n), weights of all else
        """

    @abstractmethod
    def _drawn_moments(self, weights, normals):
        """The same of drawn missing values, with weights (K, d, n)."""


class AlikePatterns:
    """Patterns with equally many missing values and nearly equally many rows, under draws.

    Rows of shorter patterns are filled up with copies of their last row.

    Parameters
    ----------
    patterns : int array (g,), their numbers
    axes : (S, g, P, m), Q
    missing : MissingValues, of all patterns of the block
    values : (K, P, n), yhat of all rows of the block
    maps : (S, d, P, P), L'
    scaled_means : (K, d, P), u

    Attributes
    ----------
    patterns, axes : as given
    index : int array (g, r), the rows in the block
    triangles : (S, g, d, m, m), R
    offsets : (K, g, d, m, r), t
    """

    def __init__(self, patterns, axes, missing, values, maps, scaled_means):
        n_groups, n_patterns, n_features, n_missing = axes.shape
        n_draws, lengths = maps.shape[1], missing.lengths[patterns][:, None]
        place = np.arange(lengths.max())
        self.patterns, self.axes = patterns, axes
        self.index = missing.starts[patterns][:, None] + np.minimum(place, lengths - 1)
        self._is_no_copy = place < lengths
        self._columns = np.nonzero(missing.is_missing[patterns])[1].reshape(n_patterns, n_missing)
        self._rows = np.ascontiguousarray(values[:, :, self.index].swapaxes(1, 2))  # (K, g, P, r)
        moved = maps.reshape(n_groups, 1, n_draws * n_features, n_features) @ axes
        moved = moved.reshape(n_groups, n_patterns, n_draws, n_features, n_missing)
        directions, self.triangles = np.linalg.qr(moved)
        # Precisions that underflow leave a row without a density.
        self.triangles[(np.einsum("...mm->...m", self.triangles) == 0.0).any(axis=-1)] = np.nan
        back = directions.swapaxes(-1, -2)
        slopes = (back @ maps[:, None]).reshape(n_groups, n_patterns, n_draws * n_missing, n_features)
        offsets = (slopes @ self._rows).reshape(len(values), n_patterns, n_draws, n_missing, -1)
        self.offsets = np.subtract(back @ scaled_means[:, None, :, :, None], offsets, out=offsets)

    @cached_property
    def inverses(self):
        """R^-1, (S, g, d, m, m)."""
        return np.linalg.inv(self.triangles)

    def drawn(self, normals):
        """e by standard normal numbers: (d, P, n) -> (K, g, d, m, r)."""
        own = normals[:, self._columns[:, :, None], self.index[:, None, :]]
        return self.inverses @ (self.offsets + own.swapaxes(0, 1))

    def moments(self, weights, moved, spread):
        """What sums of weight (y, y y'/2) have more than those at yhat; y y' is not made symmetric.

        Parameters
        ----------
        weights : (K, d, n), of all rows of the block
        moved : (K, g, d, m, r), e
        spread : (K, g, d, m, m) or 0, what sums of weight e e' have more than those of ``moved``

        Returns
        -------
        first : (K, d, P)
        half_second : (K, d, P, P)
        """
        own_weights = (weights[..., self.index] * self._is_no_copy).swapaxes(1, 2)
        weighted = moved * own_weights[..., None, :]
        n_components, n_patterns, n_draws, n_missing, n_rows = weighted.shape
        n_features = self._rows.shape[2]
        squares = weighted @ moved.swapaxes(-1, -2) + spread
        # Sums of weight e (yhat + Q e/2)', (K, g, d m, P).
        sums = weighted.reshape(n_components, n_patterns, -1, n_rows) @ self._rows.swapaxes(-1, -2)
        sums += 0.5 * squares.reshape(n_components, n_patterns, -1, n_missing) @ self.axes.swapaxes(-1, -2)
        by_draw = sums.reshape(n_components, n_patterns, n_draws, n_missing, n_features)
        by_draw = by_draw.transpose(0, 2, 4, 1, 3)
        # All patterns are one product.
        axes = self.axes.transpose(0, 1, 3, 2).reshape(len(self.axes), -1, n_features)
        half_second = by_draw.reshape(n_components, n_draws * n_features, -1) @ axes
        first = weighted.sum(axis=-1).swapaxes(1, 2).reshape(n_components, n_draws, -1) @ axes
        return first, half_second.reshape(n_components, n_draws, n_features, n_features)


class MissingVectors(MissingValuesUnderDraws):
    """Missing values where precisions are matrices."""

    def __init__(self, posterior, draws, rows):
        super().__init__(posterior, draws, rows)
        maps = np.ascontiguousarray(self._structure.transposed(draws.factors).swapaxes(0, 1))  # L'
        self._alike = [
            AlikePatterns(
                patterns.start + some, axes[:, some], self._missing, rows.values, maps, self._scaled_means
            )
            for patterns, axes, _ in self._directions.factors
            for some in _of_similar_lengths(self._missing.lengths[patterns])
        ]

    def displacements(self, normals):
        n_draws, n_features, n_rows = normals.shape
        moved = np.empty((len(self._scaled_means), n_draws, n_features, n_rows))
        for alike in self._alike:
            displacements = alike.axes[:, :, None] @ alike.drawn(normals)
            moved[..., alike.index] = displacements.transpose(0, 2, 3, 1, 4)
        return moved

    def _add_integrals(self, log_densities):
        for alike in self._alike:
            integrals = 0.5 * np.einsum("kgdmr,kgdmr->kgdr", alike.offsets, alike.offsets)
            # A copy repeats the sum of its row: += with an index adds to a row once.
            log_densities[..., alike.index] += integrals.swapaxes(1, 2)

    def _log_pivots(self):
        log_pivots = np.empty((*self._noise.shape[:2], len(self._missing.is_missing)))
        for alike in self._alike:
            pivots = np.abs(np.einsum("sgdmm->sdgm", alike.triangles))
            log_pivots[..., alike.patterns] = np.log(pivots).sum(axis=-1)
        return log_pivots

    def _expected_moments(self, counts, scaled):
        parts = []
        for alike in self._alike:
            own_counts = counts[..., alike.patterns].swapaxes(1, 2)[..., None, None]
            spread = alike.inverses @ alike.inverses.swapaxes(-1, -2) * own_counts
            parts.append(alike.moments(scaled, alike.inverses @ alike.offsets, spread))
        return _summed(parts)

    def _drawn_moments(self, weights, normals):
        return _summed([alike.moments(weights, alike.drawn(normals), 0.0) for alike in self._alike])


def _of_similar_lengths(lengths):
    """Places of numbers of rows that are similar: list of int arrays; twice as many are not similar."""
    half = np.maximum(2 ** (np.frexp(lengths)[1] - 2.0), 1.0).astype(int)  # Half the power of two below.
    rounded = -(-lengths // half) * half
    return [np.flatnonzero(rounded == length) for length in np.unique(rounded)]


def _summed(parts):
    """Sums of y and y y' of all patterns, draws first: (d, K, P), (d, K, P, P)."""
    first, half_second = (sum(own).swapaxes(0, 1) for own in zip(*parts, strict=True))
    return first, half_second + half_second.swapaxes(-1, -2)


class MissingNumbers(MissingValuesUnderDraws):
    """Missing values where precisions are numbers: Q are unit vectors, and e = (u + z)/L."""

    def __init__(self, posterior, draws, rows):
        super().__init__(posterior, draws, rows)
        self._roots = np.broadcast_to(draws.factors.swapaxes(0, 1), self._scaled_means.shape)  # L, (K, d, P)

    def displacements(self, normals):
        is_missing = self._missing.by_row(self._missing.is_missing.T)
        return is_missing * (self._scaled_means[..., None] + normals) / self._roots[..., None]

    def _add_integrals(self, log_densities):
        log_densities += self._missing.by_row(
            0.5 * np.square(self._scaled_means) @ self._missing.is_missing.T
        )

    def _log_pivots(self):
        return np.log(self._roots) @ self._missing.is_missing.T

    def _expected_moments(self, counts, scaled):
        scaled_counts = self._missing.sums(scaled) @ self._missing.is_missing
        return self._moments(scaled_counts, np.zeros_like(scaled_counts), counts @ self._missing.is_missing)

    def _drawn_moments(self, weights, normals):
        by_draw = weights.swapaxes(0, 1)
        sums, squares = (by_draw @ of_rows.swapaxes(1, 2) for of_rows in (normals, np.square(normals)))
        counts = self._missing.sums(weights) @ self._missing.is_missing
        return self._moments(counts, sums.swapaxes(0, 1), squares.swapaxes(0, 1))

    def _moments(self, counts, sums, squares):
        """Moments of (u + z)/L, from sums of weight (1, z, z^2) for every missing feature, (K, d, P)."""
        means, roots = self._scaled_means, self._roots
        first = (means * counts + sums) / roots
        scaled = (np.square(means) * counts + 2.0 * means * sums + squares) / roots
        # Of every component by itself, also where components share a precision: hence the axis of one vector.
        second = self._structure.outer_products(scaled[:, :, None], 1.0 / roots[:, :, None])[:, :, 0]
        return first.swapaxes(0, 1), second.swapaxes(0, 1)


def imputations(rows, parameters, random_state, tracked=untracked):
    """Copies of the rows with drawn values in place of missing ones, (n_draws, n_samples, P).

    Parameters
    ----------
    rows : ArrayRows
    parameters : GaussianParameters, whose posterior has the origin of the rows
    random_state : numpy.random.RandomState
    tracked : Tracked, through which batches of the copies are gone
    """
    copies = np.repeat(rows.X[None], len(parameters.draws), axis=0)
    if not rows.has_missing:
        return copies
    n_uniforms = 1 + N_UNIFORMS_OF_GAMMA * (parameters.posterior.tails is not None)
    places = batches(len(copies), 8 * _ARRAYS_PER_COPY * rows.X.size)
    for batch in tracked(places, len(places)):
        own = parameters.with_draws(parameters.draws[batch])
        likelihood = own.likelihood(own.log_weights)
        uniforms = np.empty((n_uniforms, len(own.draws), rows.n_samples))
        normals = np.empty((len(own.draws), *rows.X.shape))
        # Every copy uses its own consecutive random numbers, so that the size of batches does not matter.
        for copy in range(len(normals)):
            uniforms[:, copy] = random_state.random_sample((n_uniforms, rows.n_samples))
            normals[copy] = random_state.standard_normal(rows.X.shape)
        for block in rows.map(lambda block: block, likelihood.workload):
            if block.missing is not None:
                numbers = block.numbers - rows.first
                completed = _completed(
                    own.posterior,
                    likelihood,
                    block,
                    uniforms[:, :, numbers],
                    normals[:, numbers].swapaxes(1, 2),
                )
                completed = (completed + rows.origin[:, None]).swapaxes(1, 2).astype(copies.dtype)
                given = copies[batch, numbers]
                copies[batch, numbers] = np.where(np.isnan(given), completed, given)
    return copies


def _completed(posterior, likelihood, block, uniforms, normals):
    """Rows with drawn missing values, measured from the origin: (n_draws, P, n).

    Parameters
    ----------
    posterior : VariationalPosterior
    likelihood : GaussianLikelihood of its draws
    block : RowBlock, with missing values
    uniforms : (1, n_draws, n), by which components are drawn; four of them where scales are drawn too
    normals : (n_draws, P, n), standard normal numbers by which values are drawn
    """
    n_components, n_features = posterior.centred_means.shape
    maps, parts = posterior.structure.dense(posterior.covariance_cholesky), []
    for batch, rows, log_densities in likelihood.in_batches(block):
        assigned = assigned_once(exponentials(log_densities[:n_components])[0], uniforms[0, batch])
        own_normals = normals[batch]
        if rows.scales is not None:
            own_normals = own_normals / np.sqrt(rows.scales.drawn(assigned, uniforms[1:, batch]))[:, None]
        expected = rows.monomials[:n_components, None, 1 : 1 + n_features]
        coordinates = maps[:, None] @ (expected + rows.missing.displacements(own_normals))
        coordinates += posterior.centred_means[:, None, :, None]
        parts.append(np.einsum("kdn,kdpn->dpn", assigned, coordinates))
    return np.concatenate(parts)
