"""Whitened coordinates of rows: every component's own, or common ones that all components share.

A block of rows is whitened before anything is computed from it. Both kinds of coordinates have

* ``represented``: a `RowBlock` as whitened rows, `OwnRows` or monomials;
* ``log_densities`` of whitened rows, rho (L, n), and their `Scales` where rows have any, else None; and
  ``with_scales``: whitened rows that know their scales, where they need them;
* ``moments``: sums of weight times whitened rows, for weights (L, n) of any sign, to be added over blocks,
  and ``in_own_coordinates``: the same sums as `Moments` in the components' own coordinates;
* ``polynomials``: changes of log densities in the components' own coordinates
  (`Features.polynomials`) as coefficients of whitened rows, and ``changes``: their values (L, n),
  up to a term that all labels share; or ``derivatives_by_scale``, where rows have scales u: their derivatives
  in u, (K, n);
* ``workload``: the size of whitened rows and of the temporary arrays made from them.

`OwnCoordinates` also has a ``posterior``; and for rows with missing values
``changes_of_noise_component``, ``changes_by_missing_values`` and ``moments_by_missing_values``.

In the components' own coordinates, y = W_k (x - m_k), every component is standard normal. They are accurate
whatever the components look like, and take (K, P, n) numbers a block. They alone represent rows with missing
values, by their expectations (`missing_directions`).

In the common coordinates, v = W (x - c), those of the components' average, log densities and polynomials are
linear in the J monomials 1, v, and those of degree two, and moments are sums of the monomials. Each takes one
matrix product, and the rows (J, n) numbers a block. Digits are lost where components are far apart or much
narrower than their average: they are not used there. They are not used either where components share one
precision and there is a noise component or rows have scales: then |v|^2 is not common to all labels.
"""

import functools
from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import issparse

from sklearn_lrvb.gaussian.e_step.far_rows import of_far_rows
from sklearn_lrvb.gaussian.e_step.missing_directions import MissingDirections, missing_directions
from sklearn_lrvb.gaussian.posterior.tails import ScaledWeights, Scales
from sklearn_lrvb.gaussian.posterior.variational_posterior import Moments, VariationalPosterior
from sklearn_lrvb.mixture.model import Coordinates
from sklearn_lrvb.mixture.prediction import responsibilities_and_scores
from sklearn_lrvb.rows import Workload

# Largest factor by which a log density may amplify the rounding of v, divided by the number of features: log
# densities grow with that number. 2000 eps is less than the rounding of a lower bound, a sum over rows.
MAX_AMPLIFICATION = 2000.0

# Size of the rows in all components' own coordinates, n K P numbers, below which these coordinates take less
# time than preparing common ones, by measurement: where every component has a matrix of its own, and
# elsewhere.
_FEW_NUMBERS_OF_OWN_MATRICES = 50_000
_FEW_NUMBERS = 15_000


def coordinates_of(posterior, rows=None):
    """`CommonCoordinates` of a posterior where they are cheaper and accurate, else `OwnCoordinates`."""
    if rows is None or posterior.counts is None:  # Densities that were set by hand have no counts.
        return OwnCoordinates(posterior)
    structure = posterior.structure
    n_numbers = rows.n_samples * structure.n_components * structure.n_features
    has_few_rows = n_numbers < (_FEW_NUMBERS_OF_OWN_MATRICES if structure.has_own_matrices else _FEW_NUMBERS)
    if (
        rows.has_missing
        or has_few_rows
        or not (structure.prefers_common_coordinates and structure.has_common_terms)
    ):
        return OwnCoordinates(posterior)
    coordinates = CommonCoordinates(posterior)
    return coordinates if coordinates.amplification < MAX_AMPLIFICATION else OwnCoordinates(posterior)


def both_weights(weights):
    """Weights of the spread of missing values, and of what is multiplied by scales: (L or K, n) each."""
    return (weights.counted, weights.scaled) if isinstance(weights, ScaledWeights) else (weights, weights)


@dataclass
class OwnRows:
    """Rows in every component's own coordinates; of incomplete rows, their expectations given the component.

    Nothing of it changes.

    Attributes
    ----------
    values : (K, P, n)
    directions : MissingDirections, or None where the rows are complete
    pattern : int array (n,) or None, number of every row's pattern among those of ``directions``
    scales : Scales, or None where rows have none
    """

    values: np.ndarray
    directions: MissingDirections | None = None
    pattern: np.ndarray | None = None
    scales: Scales | None = None

    @property
    def n_rows(self):
        return self.values.shape[2]

    def spread(self, k):
        """Entries of the missing values' spread in component k, (Q, n); None where the rows are complete."""
        return None if self.directions is None else self._by_row(self.directions.spread, k)

    # The two parts of the spread where rows have scales, of which only the second is multiplied by them.

    def projections(self, k):
        """Entries of s(Pi) in component k, (Q, n); None where the rows are complete."""
        return None if self.directions is None else self._by_row(self.directions.projections, k)

    def noise_of_missing_values(self, k):
        """Entries of the known noise on missing values in component k, (Q, n); None for complete rows."""
        return None if self.directions is None else self.projections(k) - self.spread(k)

    def _by_row(self, by_pattern, k):
        return np.take(by_pattern[self.directions.structure.layout.group_of(k)], self.pattern, axis=1)

    def selected(self, index):
        """Some of the rows, int array."""
        pattern = None if self.pattern is None else self.pattern[index]
        scales = None if self.scales is None else self.scales.selected(index)
        return OwnRows(self.values.take(index, axis=2), self.directions, pattern, scales)

    def squares(self):
        """The expectation of |y|^2, (K, n)."""
        squares = np.einsum("kpn,kpn->kn", self.values, self.values)
        return squares if self.directions is None else squares + self.directions.n_missing[self.pattern]


def _scaled_features(posterior, whitened, k):
    """The same of rows that have scales, in component k."""
    structure, scales = posterior.structure, whitened.scales
    features = feature_slopes(posterior, whitened, k)
    features *= scales.mean[k]
    features[0] = 1.0
    quadratic = features[1 + structure.n_features :][: structure.n_quadratic]
    quadratic -= structure.features.from_sums(structure.identity_statistic)[:, None]
    if whitened.directions is not None:
        quadratic += whitened.projections(k) * structure.features.scale[:, None]
    if structure.n_tails:
        features[-1] = posterior.tails.expected_feature(scales)[k]
    return features


def feature_slopes(posterior, whitened, k):
    """Derivatives in u of the features' expectations given u, (F, n); 0 for the feature of nu."""
    structure = posterior.structure
    noise = posterior.known_noise[structure.layout.group_of(k)]
    slopes = np.zeros((structure.n_component_features, whitened.n_rows))
    slopes[1 : 1 + structure.n_features] = whitened.values[k]
    quadratic = slopes[1 + structure.n_features :][: structure.n_quadratic]
    quadratic[...] = structure.features.some_quadratic(whitened.values[k], -noise)
    if whitened.directions is not None and posterior.noise_maps.any():
        quadratic -= whitened.noise_of_missing_values(k) * structure.features.scale[:, None]
    slopes[1 + structure.n_features + structure.n_quadratic] = 1.0
    return slopes


def scale_directions(posterior, whitened):
    """Directions in which the features of rows vary with their scales, given every component.

    The covariance given component k is direction direction', plus `rest` for the feature of nu.

    Returns
    -------
    directions : list of K arrays (F, n)
    rest : (K, n), (K, 1), or None where no nu is fitted
    """
    scales, tails, rest = whitened.scales, posterior.tails, None
    deviations = np.sqrt(scales.variance)
    directions = [feature_slopes(posterior, whitened, k) * own for k, own in enumerate(deviations)]
    if tails.n_fitted:
        along, rest = tails.along_scale(scales)
        for direction, own in zip(directions, along, strict=True):
            direction[-1] = own
    return directions, rest


class OwnCoordinates(Coordinates):
    """Every component's own coordinates, in which rows are `OwnRows`.

    Parameters
    ----------
    posterior : VariationalPosterior
    """

    def __init__(self, posterior):
        self.posterior = posterior
        self.workload = Workload(2 * posterior.centred_means.size, posterior.structure.size_of_pattern)

    def represented(self, block):
        """OwnRows of a block."""
        posterior, structure = self.posterior, self.posterior.structure
        if block.n_rows == 1:
            # For one row, preparing a product by the general method costs more than the product.
            centred = block.rows[:, 0] - posterior.centred_means
            values = structure.transformed(posterior.whiteners, centred)[:, :, None]
        else:
            values = structure.whiten(posterior.whiteners, posterior.centred_means, block.with_one)
        if block.missing is None:
            return OwnRows(values)
        directions = missing_directions(posterior, block.missing)
        values -= directions.onto(values)
        return OwnRows(values, directions, block.missing.pattern)

    def with_scales(self, whitened, scales):
        """The rows together with their scales: OwnRows."""
        return replace(whitened, scales=scales)

    def log_densities(self, whitened):
        """rho, (L, n), and Scales or None."""
        posterior, scales, n_components = self.posterior, None, len(whitened.values)
        densities = np.einsum("kpn,kpn->kn", whitened.values, whitened.values)
        if posterior.tails is None:
            densities *= -0.5
            if whitened.directions is not None:
                densities += np.take(whitened.directions.log_densities, whitened.pattern, axis=1)
        else:
            densities, scales = self._scaled_log_densities(whitened, densities)
        constants = posterior.expectations.density_constants[:, None]
        densities += constants[:n_components]
        if posterior.noise_component is None:
            return densities, scales
        of_noise_component = np.full((1, whitened.n_rows), constants[-1])
        if whitened.directions is not None:
            of_noise_component += self.changes_of_noise_component(whitened)
        return np.concatenate([densities, of_noise_component]), scales

    def _scaled_log_densities(self, whitened, squares):
        """Log densities without constants, (K, n), and Scales; the squares |y|^2, (K, n), are used up."""
        posterior, n_seen = self.posterior, whitened.values.shape[1]
        squares += posterior.expectations.distance_constants[:, None]
        volumes = 0.0
        if whitened.directions is not None:
            directions = whitened.directions
            n_seen = n_seen - np.take(directions.n_missing, whitened.pattern)
            volumes = np.take(directions.log_volumes_of_directions, whitened.pattern, axis=1)
            squares -= np.take(directions.noise_squares, whitened.pattern, axis=1)
        densities, scales = posterior.tails.log_densities(squares, n_seen)
        densities += volumes
        return densities, scales

    def changes_of_noise_component(self, whitened):
        """What missing values add to the log density of the noise component, (n,); zero without one."""
        noise_component, directions = self.posterior.noise_component, whitened.directions
        if noise_component is None:
            return 0.0
        return np.take(
            noise_component.log_density_changes(directions.structure, directions.missing.is_missing),
            whitened.pattern,
        )

    def moments(self, whitened, weights):
        """Sums of weight (1, y, s(y)), with the spread of missing values: Moments.

        Parameters
        ----------
        whitened : OwnRows
        weights : (L, n), or ScaledWeights
        """
        if isinstance(weights, ScaledWeights):
            return self._scaled_moments(whitened, weights)
        of_components = weights[: len(whitened.values)]
        first = np.matmul(whitened.values, of_components[:, :, None])[:, :, 0]
        second = self.posterior.structure.second_moments(whitened.values, of_components)
        if whitened.directions is not None:
            second = second + whitened.directions.spread_sums(whitened.directions.by_group(of_components))
        return Moments(weights.sum(axis=1), first, second)

    def _scaled_moments(self, whitened, weights):
        """The same of rows that have scales."""
        first = np.matmul(whitened.values, weights.scaled[:, :, None])[:, :, 0]
        second = self.posterior.structure.second_moments(whitened.values, weights.scaled)
        if whitened.directions is not None:
            directions = whitened.directions
            of_values = directions.by_group(weights.counted[: len(whitened.values)])
            of_noise = of_values - directions.by_group(weights.scaled)
            second = second + directions.spread_sums(of_values) + directions.noise_sums(of_noise)
        counts, scale_sums = weights.counted.sum(axis=1), weights.scaled.sum(axis=1)
        return Moments(counts, first, second, scale_sums, weights.log_scale_sums)

    def polynomials(self, *polynomials):
        """The coefficients (L,), (K, P), (S, ...), and of scales (K,), unchanged."""
        return polynomials

    def changes(self, whitened, polynomials):
        """a + b.y + B.s(y), (L, n)."""
        constant, linear, curvature = polynomials
        values = np.empty((len(constant), whitened.values.shape[2]))
        of_components, of_noise_component = np.split(values, [len(whitened.values)])
        of_components[...] = self.posterior.structure.curvature_products(curvature, whitened.values)
        of_components += np.einsum("kp,kpn->kn", linear, whitened.values)
        of_components += constant[: len(whitened.values), None]
        of_noise_component[...] = constant[len(whitened.values) :, None]
        if whitened.directions is not None:
            of_components += np.take(
                whitened.directions.values_of_spread(curvature), whitened.pattern, axis=1
            )
        return values

    def derivatives_by_scale(self, whitened, polynomials):
        """d (beta . h)/d u of rows that have scales, without the feature of nu: (K, n)."""
        _, linear, curvature, of_scales = polynomials
        values = self.posterior.structure.curvature_products(curvature, whitened.values)
        values += np.einsum("kp,kpn->kn", linear, whitened.values)
        values += of_scales[:, None]
        if whitened.directions is not None:
            values -= np.take(whitened.directions.values_of_noise(curvature), whitened.pattern, axis=1)
        return values

    @property
    def round_off(self):
        """Round-off of the lower bound at most, relative to its size and the number of rows."""
        return (MAX_AMPLIFICATION + self.posterior.amplification) * np.finfo(float).eps

    def features(self, whitened, k):
        """Expected features h of rows in component k, (F, n). The noise component has one, which is 1."""
        posterior, structure = self.posterior, self.posterior.structure
        if k == structure.n_components:
            return np.ones((1, whitened.n_rows))
        if structure.has_scales:
            return _scaled_features(posterior, whitened, k)
        origin = posterior.second_moment_origin[structure.layout.group_of(k)]
        return structure.features.of_component(whitened.values[k], origin, whitened.spread(k))

    def of_far_rows(self, block, far):
        return of_far_rows(self.posterior, block, far)

    def changes_by_missing_values(self, whitened, polynomials):
        """What missing values add to changes of the log densities of rows that have scales, (K, n)."""
        directions, curvature = whitened.directions, polynomials[2]
        values = directions.values_of_spread(curvature) + directions.values_of_noise(curvature)
        return np.take(values, whitened.pattern, axis=1)

    def moments_by_missing_values(self, whitened, polynomials, weights):
        """Changes of the moments of incomplete rows, as the distributions of their missing values change.

        It is the covariance of (y, s(y)) with a + b.y + B.s(y) given the component, times weights (L, n) or
        ScaledWeights.
        """
        constant, linear, curvature, *of_scales = polynomials
        both = [own[: len(whitened.values)] for own in both_weights(weights)]
        sums = whitened.directions.covariance_sums(whitened.values, linear, curvature, *both)
        no_scales = 2 * [np.zeros(len(whitened.values)) if of_scales else None]
        return Moments(np.zeros(len(constant)), *sums, *no_scales)


class CommonCoordinates(Coordinates):
    """Coordinates that all components share, in which a complete row is represented by J monomials.

    Where every component has a precision of its own the monomials of degree two are the entries of s(v).
    Where all share one, it is the identity in these coordinates, and |v|^2 is all that log densities need.

    Parameters
    ----------
    posterior : VariationalPosterior

    Attributes
    ----------
    amplification : float
        Largest factor by which a log density amplifies the rounding of v, divided by P.
    """

    def __init__(self, posterior):
        self._posterior, structure = posterior, posterior.structure
        self._structure = structure
        # Where the noise component has all rows, no other has any.
        counts = posterior.counts if posterior.counts.any() else np.ones_like(posterior.counts)
        shares = counts / counts.sum()
        self._center = shares @ posterior.centred_means
        # The components' own coordinates have y = A_k (v - offset), the maps A_k being (S, ...).
        if structure.has_own_precisions:
            average = structure.average_cholesky(posterior.covariance_cholesky, shares)
            self._whitener = structure.whiteners(average)
            self._maps = structure.composed(posterior.whiteners, average)
        else:
            self._whitener, self._maps = posterior.whiteners, structure.identity[None]
        self._maps_back = structure.transposed(self._maps)
        self._offsets = structure.transformed(self._whitener, posterior.centred_means - self._center)
        # trace A_k' A_k / P is the mean square of the factors by which a component's coordinates are finer.
        squared_offsets = np.einsum("kp,kp->k", self._offsets, self._offsets)
        finer = structure.precision_trace(self._maps) / structure.n_features
        self.amplification = np.max(finer * (1.0 + squared_offsets / structure.n_features))
        self.workload = Workload(structure.n_monomials + 2 * structure.n_labels)
        half_squares = np.broadcast_to(-0.5 * structure.identity, self._maps.shape)
        self._expectations, self._tails = posterior.expectations, posterior.tails
        constants = self._expectations.density_constants
        if self._tails is not None:  # With scales, log densities are functions of the distances.
            constants = -0.5 * self._expectations.distance_constants
        self._log_densities = self._of_labels(constants, np.zeros_like(self._offsets), half_squares)
        if structure.shares_precision:
            self._log_densities[:, -1] = -0.5

    def represented(self, block):
        """Monomials of a block's complete rows, (J, n)."""
        linear = 1 + self._structure.n_features
        monomials = np.empty((self._structure.n_monomials, block.n_rows))
        monomials[0], rows = 1.0, monomials[1:linear]
        self._structure.whiten_into(self._whitener, self._center, block.rows, rows)
        if self._structure.has_own_precisions:
            self._structure.write_entries(rows, monomials[linear:])
        else:
            np.einsum("pn,pn->n", rows, rows, out=monomials[linear])
        return monomials

    def of_far_rows(self, block, far):
        return responsibilities_and_scores(OwnCoordinates(self._posterior), block.selected(far))

    def log_densities(self, monomials):
        """rho, (L, n), and Scales or None."""
        if self._tails is None:
            return self._log_densities @ monomials, None
        minus_half = self._log_densities @ monomials  # Of the distances.
        of_components, scales = self._tails.log_densities(-2.0 * minus_half, self._structure.n_features)
        constants = self._expectations.density_constants[:, None]
        densities = np.empty((len(constants), of_components.shape[1]))
        np.add(of_components, constants[: len(of_components)], out=densities[: len(of_components)])
        densities[len(of_components) :] = constants[len(of_components) :]
        return densities, scales

    def moments(self, monomials, weights):
        """Sums of weight times the monomials, (L, J), and others; None for those that are not needed.

        Parameters
        ----------
        monomials : (J, n)
        weights : (L, n), or ScaledWeights

        Returns
        -------
        sums : (L, J), or (K, J) of ScaledWeights
        second : (1, ...), of s(v), where all components share a precision
        counts, log_scale_sums : (L,) and (K,), of ScaledWeights
        """
        if isinstance(weights, ScaledWeights):
            sums, second, _, _ = self.moments(monomials, weights.scaled)
            return sums, second, weights.counted.sum(axis=1), weights.log_scale_sums
        second = None
        if self._structure.shares_precision:
            second = self._structure.second_moments(monomials[None, 1:-1], weights.sum(axis=0)[None])
        return weights @ monomials.T, second, None, None

    def in_own_coordinates(self, moments):
        """The sums of `moments` over all rows as `Moments`."""
        structure, (sums, second, counts, log_scale_sums) = self._structure, moments
        of_components = sums[: structure.n_components]
        of_ones, first, entries = np.split(of_components, [1, 1 + structure.n_features], axis=1)
        of_ones = of_ones[:, 0]
        # s(v - o) = s(v) - (v o' + o v') + s(o), or what the statistic has of that.
        mixed = structure.outer_products(first, self._offsets)
        about_offsets = structure.from_entries(entries) if second is None else second
        about_offsets = about_offsets - mixed - structure.transposed(mixed)
        about_offsets += structure.sum_of_squares(self._offsets, of_ones)
        return Moments(
            np.ascontiguousarray(sums[:, 0]) if counts is None else counts,
            structure.transformed(self._maps, first - of_ones[:, None] * self._offsets),
            structure.congruence(self._maps, about_offsets),
            None if counts is None else of_ones,
            log_scale_sums,
        )

    def polynomials(self, constant, linear, curvature, *of_scales):
        """Changes of log densities, up to what all labels share, as coefficients of the monomials.

        (..., L), (..., K, P), (..., S, ...) -> (..., L, J); with scales the constants (..., L), and the
        coefficients (..., K, J) of what is multiplied by u.
        """
        if of_scales:
            return constant, self._of_labels(*of_scales, linear, curvature)
        return self._of_labels(constant, linear, curvature)

    def _of_labels(self, constant, linear, curvature):
        """a + b.y + B.s(y) as coefficients of the monomials."""
        structure = self._structure
        constant, of_noise_component = np.split(constant, [structure.n_components], axis=-1)
        curvature = structure.congruence(self._maps_back, curvature)
        slope = structure.transformed(self._maps_back, linear)
        bent = structure.transformed(curvature, self._offsets)
        constant = constant + np.einsum("kp,...kp->...k", self._offsets, bent - slope)
        if structure.has_own_precisions:
            quadratic = structure.features.entry_coefficients(curvature)
        else:  # All components share B.s(v).
            quadratic = np.zeros((*constant.shape, 1))
        of_components = np.concatenate([constant[..., None], slope - 2.0 * bent, quadratic], axis=-1)
        if not of_noise_component.size:
            return of_components
        alone = np.zeros((*of_noise_component.shape, structure.n_monomials))
        alone[..., 0] = of_noise_component
        return np.concatenate([of_components, alone], axis=-2)

    def changes(self, monomials, polynomials):
        """a + b.y + B.s(y), up to what all components share, (L, n)."""
        return polynomials @ monomials

    def derivatives_by_scale(self, monomials, polynomials):
        """d (beta . h)/d u of rows that have scales, without the feature of nu: (K, n)."""
        return polynomials[1] @ monomials


def posterior_from_responsibilities(rows, prior, responsibilities, factors=None):
    """M-step from given responsibilities, for the start of a fit.

    It makes two passes over the rows: the first computes the components' means, the second the moments about
    them, in units of the columns' standard deviations or in the whitened coordinates of given covariances.

    Parameters
    ----------
    rows : Rows
    prior : MixturePrior
    responsibilities : array or sparse array (n_samples, n_labels), or callable RowBlock -> (n, L)
        Where there are those of the components alone, no row is of the noise component.
    factors : array (S, ...) or None, default=None
        Cholesky factors of covariances that are like those of the rows.

    Returns
    -------
    posterior : VariationalPosterior

    Raises
    ------
    DegenerateComponentError
        Where a component is left without a proper posterior.
    """
    given, along = (responsibilities, None) if callable(responsibilities) else (None, responsibilities)
    counts, seen, sums, squares = rows.total(
        functools.partial(_sums_of_values, prior.structure, given), along=along
    )
    centers = np.divide(sums, seen, out=np.zeros_like(sums), where=seen > 0)
    if factors is None:
        seen_by_any = np.asarray(rows.seen_weight)
        scale = np.sqrt(squares / np.where(seen_by_any > 0, seen_by_any, 1.0))
        if rows.has_missing:
            # The missing values of a constant column start with this variance, and lose a share
            # of it in every iteration.
            scale = np.where(scale > 0, scale, prior.deviations)
        scale[scale == 0] = 1.0
        factors = prior.structure.diagonal_factors(scale)
    of_components, of_noise_component = np.split(counts, [len(centers)])
    # The factors are no state of q from which hyperparameters could be learned.
    initial = replace(prior, learned=None)
    start = VariationalPosterior(
        initial, of_components, centers, factors, of_noise_component, tails=prior.tails
    )
    # Moments about each component's own mean keep their digits, however tight the component will turn out.
    own_coordinates = OwnCoordinates(start)
    function = functools.partial(_moments_of_block, own_coordinates, given)
    moments = rows.total(function, own_coordinates.workload, along=along)
    if prior.tails is not None:  # All scales start at one, and nu where it is.
        moments = replace(moments, scale_sums=of_components)
    return replace(start.m_step(start.with_prior(moments)), prior=prior)


def _sums_of_values(structure, given, block, along=None):
    """Sums that lead to the components' means: expected counts, and of the values that are there.

    Returns
    -------
    counts : (K,)
    seen : (K, P), expected numbers of values
    sums : (K, P), of the values
    squares : (P,), of all rows' squared values
    """
    weights, n_components = _weights(structure, given, block, along), structure.n_components
    counts, of_components = weights.sum(axis=1), weights[:n_components]
    if block.missing is None:
        seen = np.tile(counts[:n_components, None], len(block.rows))
    else:
        seen = of_components @ block.seen.T
    return counts, seen, of_components @ block.rows.T, block.weighted(np.square(block.rows)).sum(axis=1)


def _moments_of_block(coordinates, given, block, along=None):
    return coordinates.moments(
        coordinates.represented(block), _weights(coordinates.posterior.structure, given, block, along)
    )


def _weights(structure, given, block, along):
    """Responsibilities of a block's rows, computed or given along with it, as weights: (L, n)."""
    responsibilities = along if given is None else given(block)
    dense = responsibilities.toarray() if issparse(responsibilities) else responsibilities
    weights = block.weighted(np.ascontiguousarray(dense.T, dtype=np.float64))
    is_whole = len(weights) == structure.n_labels
    return weights if is_whole else np.pad(weights, ((0, structure.n_labels - len(weights)), (0, 0)))
