"""Frames in which rows are represented: every component's own, or one that all components share.

A block of rows is represented in frames before anything is computed from it: it is *framed*. Both kinds of
frames have

* ``whiten``: a `RowBlock` as framed rows, `OwnRows` or monomials;
* ``log_densities`` of framed rows, rho (L, n), and their `Scales` where rows have any, else None; and
  ``with_scales``: framed rows that know their scales, where they need them;
* ``moments``: sums of weight times framed rows, for weights (L, n) of any sign, to be added over blocks, and
  ``in_own_frames``: the same sums as `Moments` in the components' own frames;
* ``polynomials``: changes of log densities in the components' own frames (`CovarianceStructure.polynomials`)
  as coefficients of framed rows, and ``changes``: their values (L, n), up to a term that all labels share; or
  ``derivatives_by_scale``, where rows have scales u: their derivatives in u, (K, n);
* ``workload``: the size of framed rows and of the temporary arrays made from them.

`OwnFrames` also have their ``posterior``; and for rows with holes ``changes_of_background``,
``hidden_changes`` and ``hidden_moments``.

In the components' own frames, y = W_k (x - m_k), every component is standard normal. They are accurate
whatever the components look like, and take (K, P, n) numbers a block. They alone represent rows with holes,
by their expectations (`hidden_directions`).

In the common frame, v = W (x - c), that of the components' average, log densities and polynomials are linear
in the J monomials 1, v, and those of degree two, and moments are sums of the monomials. Each takes one matrix
product, and the rows (J, n) numbers a block. Digits are lost where components are far apart or much narrower
than their average: the frame is not used there. It is not used either where components share one precision
and there is a background or rows have scales: then |v|^2 is not common to all labels.
"""

from dataclasses import dataclass, replace

import numpy as np

from sklearn_lrvb.gaussian.e_step.far_rows import of_far_rows
from sklearn_lrvb.gaussian.e_step.hidden_directions import HiddenDirections, hidden_directions
from sklearn_lrvb.gaussian.posterior.tails import ScaledWeights, Scales
from sklearn_lrvb.gaussian.posterior.variational_posterior import Moments
from sklearn_lrvb.mixture.model import Frames
from sklearn_lrvb.rows import Workload

# Largest factor by which a log density may amplify the rounding of v, divided by the number of features: log
# densities grow with that number. 2000 eps is less than the rounding of a lower bound, a sum over rows.
MAX_AMPLIFICATION = 2000.0

# Size of the rows in all components' own frames, n K P numbers, below which these frames take less time than
# preparing a common one, by measurement: where every component has a matrix of its own, and elsewhere.
_FEW_NUMBERS_OF_OWN_MATRICES = 50_000
_FEW_NUMBERS = 15_000


def frames_of(posterior, rows=None):
    """`CommonFrame` of a posterior where it is cheaper for the rows and accurate, else `OwnFrames`."""
    if rows is None:
        return OwnFrames(posterior)
    structure = posterior.structure
    n_numbers = rows.n_samples * structure.n_components * structure.n_features
    has_few_rows = n_numbers < (_FEW_NUMBERS_OF_OWN_MATRICES if structure.has_own_matrices else _FEW_NUMBERS)
    if rows.has_holes or has_few_rows or not (structure.prefers_common_frame and structure.has_common_terms):
        return OwnFrames(posterior)
    frame = CommonFrame(posterior)
    return frame if frame.amplification < MAX_AMPLIFICATION else OwnFrames(posterior)


def both_weights(weights):
    """Weights of the spread of hidden values, and of what is multiplied by scales: (L or K, n) each."""
    return (weights.counted, weights.scaled) if isinstance(weights, ScaledWeights) else (weights, weights)


@dataclass(frozen=True)
class OwnRows:
    """Rows in every component's own frame; of rows with holes, their expectations given the component.

    Attributes
    ----------
    values : (K, P, n)
    hidden : HiddenDirections, or None where the rows are complete
    pattern : int array (n,) or None, number of every row's pattern among those of ``hidden``
    scales : Scales, or None where rows have none
    """

    values: np.ndarray
    hidden: HiddenDirections | None = None
    pattern: np.ndarray | None = None
    scales: Scales | None = None

    @property
    def n_rows(self):
        return self.values.shape[2]

    def spread(self, k):
        """Entries of the hidden values' spread in component k, (Q, n); None where the rows are complete."""
        return None if self.hidden is None else self._by_row(self.hidden.spread, k)

    # The two parts of the spread where rows have scales, of which only the second is multiplied by them.

    def projections(self, k):
        """Entries of s(Pi) in component k, (Q, n); None where the rows are complete."""
        return None if self.hidden is None else self._by_row(self.hidden.projections, k)

    def hidden_noise(self, k):
        """Entries of reg_covar s(W_m W_m') in component k, (Q, n); None where the rows are complete."""
        return None if self.hidden is None else self._by_row(self.hidden.noise_entries, k)

    def _by_row(self, by_pattern, k):
        return np.take(by_pattern[self.hidden.structure.precision_group(k)], self.pattern, axis=1)

    def selected(self, index):
        """Some of the rows, int array."""
        pattern = None if self.pattern is None else self.pattern[index]
        scales = None if self.scales is None else self.scales.selected(index)
        return OwnRows(self.values.take(index, axis=2), self.hidden, pattern, scales)

    def squares(self):
        """The expectation of |y|^2, (K, n)."""
        squares = np.einsum("kpn,kpn->kn", self.values, self.values)
        return squares if self.hidden is None else squares + self.hidden.n_hidden[self.pattern]


def _scaled_features(posterior, framed, k):
    """The same of rows that have scales, in component k."""
    structure, scales = posterior.structure, framed.scales
    features = feature_slopes(posterior, framed, k)
    features *= scales.mean[k]
    features[0] = 1.0
    quadratic = features[1 + structure.n_features :][: structure.n_quadratic]
    quadratic -= structure.quadratic_features(structure.identity_statistic)[:, None]
    if framed.hidden is not None:
        quadratic += framed.projections(k) * structure.feature_scale[:, None]
    if structure.n_tails:
        features[-1] = posterior.tails.expected_feature(scales)[k]
    return features


def feature_slopes(posterior, framed, k):
    """Derivatives in u of the features' expectations given u, (F, n); 0 for the feature of nu."""
    structure = posterior.structure
    noise = posterior.noise[structure.precision_group(k)]
    slopes = np.zeros((structure.n_component_features, framed.n_rows))
    slopes[1 : 1 + structure.n_features] = framed.values[k]
    quadratic = slopes[1 + structure.n_features :][: structure.n_quadratic]
    quadratic[...] = structure.quadratic_entries(framed.values[k], -noise, np.arange(structure.n_quadratic))
    if framed.hidden is not None and posterior.reg_covar:
        quadratic -= framed.hidden_noise(k) * structure.feature_scale[:, None]
    slopes[1 + structure.n_features + structure.n_quadratic] = 1.0
    return slopes


def scale_directions(posterior, framed):
    """Directions in which the features of rows vary with their scales, given every component.

    The covariance given component k is direction direction', plus `rest` for the feature of nu.

    Returns
    -------
    directions : list of K arrays (F, n)
    rest : (K, n), (K, 1), or None where no nu is fitted
    """
    scales, tails, rest = framed.scales, posterior.tails, None
    deviations = np.sqrt(scales.variance)
    directions = [feature_slopes(posterior, framed, k) * own for k, own in enumerate(deviations)]
    if tails.n_fitted:
        along, rest = tails.along_scale(scales)
        for direction, own in zip(directions, along, strict=True):
            direction[-1] = own
    return directions, rest


class OwnFrames(Frames):
    """Every component's own frame, in which rows are `OwnRows`.

    Parameters
    ----------
    posterior : VariationalPosterior
    """

    def __init__(self, posterior):
        self.posterior = posterior
        self.workload = Workload(2 * posterior.centred_means.size, posterior.structure.size_of_pattern)

    def whiten(self, block):
        """OwnRows of a block."""
        posterior, structure = self.posterior, self.posterior.structure
        if block.n_rows == 1:
            # For one row, preparing a product by the general method costs more than the product.
            centred = block.rows[:, 0] - posterior.centred_means
            values = structure.transformed(posterior.whiteners, centred)[:, :, None]
        else:
            values = structure.whiten(posterior.whiteners, posterior.centred_means, block.rows)
        if block.holes is None:
            return OwnRows(values)
        hidden = hidden_directions(posterior, block.holes)
        values -= hidden.onto(values)
        return OwnRows(values, hidden, block.holes.pattern)

    def with_scales(self, framed, scales):
        """The rows together with their scales: OwnRows."""
        return replace(framed, scales=scales)

    def log_densities(self, framed):
        """rho, (L, n), and Scales or None."""
        constants, scales = self.posterior.expectations.density_constants[:, None], None
        densities, n_components = np.empty((len(constants), framed.values.shape[2])), len(framed.values)
        of_components, of_background = densities[:n_components], densities[n_components:]
        np.einsum("kpn,kpn->kn", framed.values, framed.values, out=of_components)
        if self.posterior.tails is None:
            of_components *= -0.5
        else:
            of_components[...], scales = self._scaled_log_densities(framed, of_components)
        of_components += constants[:n_components]
        of_background[...] = constants[n_components:]
        if framed.hidden is not None:
            if scales is None:
                of_components += np.take(framed.hidden.log_densities, framed.pattern, axis=1)
            of_background += self.changes_of_background(framed)
        return densities, scales

    def _scaled_log_densities(self, framed, squares):
        """Log densities without constants, (K, n), and Scales; the squares |y|^2, (K, n), are used up."""
        posterior, n_seen = self.posterior, framed.values.shape[1]
        squares += posterior.expectations.distance_constants[:, None]
        volumes = 0.0
        if framed.hidden is not None:
            hidden = framed.hidden
            n_seen = n_seen - np.take(hidden.n_hidden, framed.pattern)
            volumes = np.take(hidden.log_volumes_of_directions, framed.pattern, axis=1)
            squares -= np.take(hidden.noise_squares, framed.pattern, axis=1)
        densities, scales = posterior.tails.log_densities(squares, n_seen)
        densities += volumes
        return densities, scales

    def changes_of_background(self, framed):
        """What holes add to the log density of the background, (n,); zero where there is none."""
        background, hidden = self.posterior.background, framed.hidden
        if background is None:
            return 0.0
        return np.take(background.log_density_changes(hidden.structure, hidden.holes.hidden), framed.pattern)

    def moments(self, framed, weights):
        """Sums of weight (1, y, s(y)), with the spread of hidden values: Moments.

        Parameters
        ----------
        framed : OwnRows
        weights : (L, n), or ScaledWeights
        """
        if isinstance(weights, ScaledWeights):
            return self._scaled_moments(framed, weights)
        of_components = weights[: len(framed.values)]
        first = np.matmul(framed.values, of_components[:, :, None])[:, :, 0]
        second = self.posterior.structure.second_moments(framed.values, of_components)
        if framed.hidden is not None:
            second = second + framed.hidden.spread_sums(framed.hidden.by_group(of_components))
        return Moments(weights.sum(axis=1), first, second)

    def _scaled_moments(self, framed, weights):
        """The same of rows that have scales."""
        first = np.matmul(framed.values, weights.scaled[:, :, None])[:, :, 0]
        second = self.posterior.structure.second_moments(framed.values, weights.scaled)
        if framed.hidden is not None:
            hidden = framed.hidden
            of_values = hidden.by_group(weights.counted[: len(framed.values)])
            second = second + hidden.projection_sums(of_values)
            second = second - hidden.noise_sums(hidden.by_group(weights.scaled))
        counts, scale_sums = weights.counted.sum(axis=1), weights.scaled.sum(axis=1)
        return Moments(counts, first, second, scale_sums, weights.log_scale_sums)

    def polynomials(self, *polynomials):
        """The coefficients (L,), (K, P), (S, ...), and of scales (K,), unchanged."""
        return polynomials

    def changes(self, framed, polynomials):
        """a + b.y + B.s(y), (L, n)."""
        constant, linear, curvature = polynomials
        values = np.empty((len(constant), framed.values.shape[2]))
        of_components, of_background = np.split(values, [len(framed.values)])
        of_components[...] = self.posterior.structure.curvature_products(curvature, framed.values)
        of_components += np.einsum("kp,kpn->kn", linear, framed.values)
        of_components += constant[: len(framed.values), None]
        of_background[...] = constant[len(framed.values) :, None]
        if framed.hidden is not None:
            of_components += np.take(framed.hidden.values_of_spread(curvature), framed.pattern, axis=1)
        return values

    def derivatives_by_scale(self, framed, polynomials):
        """d (beta . h)/d u of rows that have scales, without the feature of nu: (K, n)."""
        _, linear, curvature, of_scales = polynomials
        values = self.posterior.structure.curvature_products(curvature, framed.values)
        values += np.einsum("kp,kpn->kn", linear, framed.values)
        values += of_scales[:, None]
        if framed.hidden is not None:
            values -= np.take(framed.hidden.values_of_noise(curvature), framed.pattern, axis=1)
        return values

    @property
    def round_off(self):
        """Round-off of the lower bound at most, relative to its size and the number of rows."""
        return (MAX_AMPLIFICATION + self.posterior.amplification) * np.finfo(float).eps

    def features(self, framed, k):
        """Expected features h of rows in component k, (F, n). The noise component has one, which is 1."""
        posterior, structure = self.posterior, self.posterior.structure
        if k == structure.n_components:
            return np.ones((1, framed.n_rows))
        if structure.has_scales:
            return _scaled_features(posterior, framed, k)
        origin = posterior.second_moment_origin[structure.precision_group(k)]
        return structure.component_features(framed.values[k], origin, framed.spread(k))

    def of_far_rows(self, block, far):
        return of_far_rows(self.posterior, block, far)

    def hidden_changes(self, framed, polynomials):
        """What hidden values add to changes of the log densities of rows that have scales, (K, n)."""
        hidden, curvature = framed.hidden, polynomials[2]
        values = hidden.values_of_spread(curvature) + hidden.values_of_noise(curvature)
        return np.take(values, framed.pattern, axis=1)

    def hidden_moments(self, framed, polynomials, weights):
        """Changes of the moments of rows with holes, as the distributions of their hidden values change.

        It is the covariance of (y, s(y)) with a + b.y + B.s(y) given the component, times weights (L, n) or
        ScaledWeights.
        """
        constant, linear, curvature, *of_scales = polynomials
        both = [own[: len(framed.values)] for own in both_weights(weights)]
        sums = framed.hidden.covariance_sums(framed.values, linear, curvature, *both)
        no_scales = 2 * [np.zeros(len(framed.values)) if of_scales else None]
        return Moments(np.zeros(len(constant)), *sums, *no_scales)


class CommonFrame(Frames):
    """One frame for all components, in which complete rows are their monomials, (J, n).

    Where every component has a precision of its own the monomials of degree two are the entries of s(v).
    Where all share one, it is the identity in the frame, and |v|^2 is all that log densities need.

    Parameters
    ----------
    posterior : VariationalPosterior

    Attributes
    ----------
    amplification : float
        Largest factor by which a log density amplifies the rounding of v, divided by P.
    """

    def __init__(self, posterior):
        structure = self._structure = posterior.structure
        # Where noise has all rows, no component has any.
        counts = posterior.counts if posterior.counts.any() else np.ones_like(posterior.counts)
        shares = counts / counts.sum()
        self._center = shares @ posterior.centred_means
        # The components' own frames have y = A_k (v - offset), the maps A_k being (S, ...).
        if structure.has_own_precisions:
            average = structure.average_cholesky(posterior.covariance_cholesky, shares)
            self._whitener = structure.whiteners(average)
            self._maps = structure.composed(posterior.whiteners, average)
        else:
            self._whitener, self._maps = posterior.whiteners, structure.identity[None]
        self._maps_back = structure.transposed(self._maps)
        self._offsets = structure.transformed(self._whitener, posterior.centred_means - self._center)
        # trace A_k' A_k / P is the mean square of the factors by which a component's frame is finer.
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

    def whiten(self, block):
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

    def in_own_frames(self, moments):
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
        constant, of_background = np.split(constant, [structure.n_components], axis=-1)
        curvature = structure.congruence(self._maps_back, curvature)
        slope = structure.transformed(self._maps_back, linear)
        bent = structure.transformed(curvature, self._offsets)
        constant = constant + np.einsum("kp,...kp->...k", self._offsets, bent - slope)
        if structure.has_own_precisions:
            quadratic = structure.entry_coefficients(curvature)
        else:  # All components share B.s(v).
            quadratic = np.zeros((*constant.shape, 1))
        of_components = np.concatenate([constant[..., None], slope - 2.0 * bent, quadratic], axis=-1)
        if not of_background.size:
            return of_components
        alone = np.zeros((*of_background.shape, structure.n_monomials))
        alone[..., 0] = of_background
        return np.concatenate([of_components, alone], axis=-2)

    def changes(self, monomials, polynomials):
        """a + b.y + B.s(y), up to what all components share, (L, n)."""
        return polynomials @ monomials

    def derivatives_by_scale(self, monomials, polynomials):
        """d (beta . h)/d u of rows that have scales, without the feature of nu: (K, n)."""
        return polynomials[1] @ monomials
