"""Frames in which rows are represented: every component's own, or one that all components share.

A block of rows is represented in frames before anything is computed from it: it is *framed*. Both kinds of
frames have

* ``whiten``: a `RowBlock` as framed rows, `OwnRows` or monomials;
* ``log_densities`` of framed rows, rho (K, n);
* ``moments``: sums of weight times framed rows, for weights (K, n) of any sign, to be added over blocks, and
  ``in_own_frames``: the same sums as `Moments` in the components' own frames;
* ``polynomials``: a + b.y + B.s(y) in the components' own frames as coefficients of framed rows, and
  ``changes``: the values (K, n) of such polynomials, up to a term that all components share;
* ``workload``: the size of framed rows and of the temporary arrays made from them.

`OwnFrames` have two more: their ``posterior``, and ``hidden_moments`` for rows with holes.

In the components' own frames, y = W_k (x - m_k), each of them is the standard normal. They are accurate
whatever the components look like, and take (K, P, n) numbers a block. They alone represent rows with holes,
by what is expected of them (`hidden_directions`).

In the common frame, u = W (x - c), that of the components' average, log densities and polynomials are linear
in the monomials 1, u, and those of degree two, and moments are sums of these: one matrix product each way,
and (F, n) numbers a block. Digits are lost where components are far apart or much narrower than their
average: the frame is not used there.
"""

from dataclasses import dataclass

import numpy as np

from sklearn_lrvb.gaussian_mixture.e_step.hidden_directions import HiddenDirections, hidden_directions
from sklearn_lrvb.gaussian_mixture.posterior.variational_posterior import Moments
from sklearn_lrvb.row_blocks import Workload

# Largest factor by which a log density may amplify the rounding of u, relative to the number of features, as
# log densities are themselves: 2000 eps is less than the rounding of a lower bound that is summed over rows.
MAX_AMPLIFICATION = 2000.0

# Size of the rows in all components' own frames, n K P numbers, below which these frames take less time than
# preparing a common one, by measurement: where every component has a matrix of its own, and elsewhere.
_FEW_NUMBERS_OF_OWN_MATRICES = 50_000
_FEW_NUMBERS = 15_000


def frames_of(posterior, rows):
    """`CommonFrame` of a posterior where it is cheaper for the rows and accurate, else `OwnFrames`."""
    structure = posterior.structure
    n_numbers = rows.n_samples * structure.n_components * structure.n_features
    has_few_rows = n_numbers < (_FEW_NUMBERS_OF_OWN_MATRICES if structure.has_own_matrices else _FEW_NUMBERS)
    if rows.has_holes or has_few_rows or not structure.prefers_common_frame:
        return OwnFrames(posterior)
    frame = CommonFrame(posterior)
    return frame if frame.amplification < MAX_AMPLIFICATION else OwnFrames(posterior)


@dataclass(frozen=True)
class OwnRows:
    """Rows in every component's own frame; of rows with holes, their expectations given the component.

    Attributes
    ----------
    values : (K, P, n)
    hidden : HiddenDirections, or None where the rows are complete
    pattern : int array (n,) or None, number of every row's pattern among those of ``hidden``
    """

    values: np.ndarray
    hidden: HiddenDirections | None = None
    pattern: np.ndarray | None = None

    @property
    def n_rows(self):
        return self.values.shape[2]

    def spread(self, k):
        """Entries of the hidden values' spread in component k, (Q, n); None where the rows are complete."""
        if self.hidden is None:
            return None
        group = self.hidden.structure.precision_group(k)
        return np.take(self.hidden.spread[group], self.pattern, axis=1)

    def selected(self, index):
        """Some of the rows, int array."""
        pattern = None if self.pattern is None else self.pattern[index]
        return OwnRows(self.values.take(index, axis=2), self.hidden, pattern)

    def squares(self):
        """What is expected of |y|^2, (K, n)."""
        squares = np.einsum("kpn,kpn->kn", self.values, self.values)
        return squares if self.hidden is None else squares + self.hidden.n_hidden[self.pattern]


def expected_features(posterior, framed, k):
    """The features h of `OwnRows` in component k, or what is expected of them: (F, n)."""
    structure = posterior.structure
    origin = posterior.second_moment_origin[structure.precision_group(k)]
    return structure.component_features(framed.values[k], origin, framed.spread(k))


class OwnFrames:
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
            # The general method prepares a product by two more passes over the whiteners: too slow for a row.
            centred = block.rows[:, 0] - posterior.centred_means
            values = structure.transformed(posterior.whiteners, centred)[:, :, None]
        else:
            values = structure.whiten(posterior.whiteners, posterior.centred_means, block.rows)
        if block.holes is None:
            return OwnRows(values)
        hidden = hidden_directions(posterior, block.holes)
        values -= hidden.onto(values)
        return OwnRows(values, hidden, block.holes.pattern)

    def log_densities(self, framed):
        """rho, (K, n)."""
        densities = np.einsum("kpn,kpn->kn", framed.values, framed.values)
        densities *= -0.5
        densities += self.posterior.expectations.density_constants[:, None]
        if framed.hidden is not None:
            densities += np.take(framed.hidden.log_densities, framed.pattern, axis=1)
        return densities

    def moments(self, framed, weights):
        """Sums of weight (1, y, s(y)), with the spread of hidden values: weights (K, n) -> Moments."""
        first = np.matmul(framed.values, weights[:, :, None])[:, :, 0]
        second = self.posterior.structure.second_moments(framed.values, weights)
        if framed.hidden is not None:
            second = second + framed.hidden.spread_sums(framed.hidden.by_group(weights))
        return Moments(weights.sum(axis=1), first, second)

    def in_own_frames(self, moments):
        """The moments unchanged."""
        return moments

    def polynomials(self, constant, linear, curvature):
        """The coefficients (K,), (K, P), (S, ...) unchanged."""
        return constant, linear, curvature

    def changes(self, framed, polynomials):
        """a + b.y + B.s(y), (K, n)."""
        constant, linear, curvature = polynomials
        values = self.posterior.structure.curvature_products(curvature, framed.values)
        values += np.einsum("kp,kpn->kn", linear, framed.values)
        values += constant[:, None]
        if framed.hidden is not None:
            values += np.take(framed.hidden.values_of_spread(curvature), framed.pattern, axis=1)
        return values

    def hidden_moments(self, framed, polynomials, weights):
        """Changes of the moments of rows with holes, as the distributions of their hidden values change.

        It is the covariance of (y, s(y)) with a + b.y + B.s(y) given the component, times weights (K, n).
        """
        _, linear, curvature = polynomials
        sums = framed.hidden.covariance_sums(framed.values, linear, curvature, weights)
        return Moments(np.zeros(len(weights)), *sums)


class CommonFrame:
    """One frame for all components, in which complete rows are their monomials, (F, n).

    Where every component has a precision of its own the monomials of degree two are the entries of s(u).
    Where all share one, it is the identity in the frame, and |u|^2 is all that log densities need.

    Parameters
    ----------
    posterior : VariationalPosterior

    Attributes
    ----------
    amplification : float
        Largest factor by which a log density amplifies the rounding of u, relative to P.
    """

    def __init__(self, posterior):
        structure = self._structure = posterior.structure
        shares = posterior.counts / posterior.counts.sum()
        self._center = shares @ posterior.centred_means
        # The components' own frames have y = A_k (u - offset), the maps A_k being (S, ...).
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
        self.workload = Workload(structure.n_monomials + 2 * structure.n_components)
        half_squares = np.broadcast_to(-0.5 * structure.identity, self._maps.shape)
        constants = posterior.expectations.density_constants
        self._log_densities = self.polynomials(constants, np.zeros_like(self._offsets), half_squares)
        if structure.shares_precision:
            self._log_densities[:, -1] = -0.5

    def whiten(self, block):
        """Monomials of a block's complete rows, (F, n)."""
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
        """rho, (K, n)."""
        return self._log_densities @ monomials

    def moments(self, monomials, weights):
        """Sums of weight times the monomials, (K, F); and where all share a precision, of s(u), (1, ...)."""
        if self._structure.has_own_precisions:
            return weights @ monomials.T, None
        second = self._structure.second_moments(monomials[None, 1:-1], weights.sum(axis=0)[None])
        return weights @ monomials.T, second

    def in_own_frames(self, moments):
        """The sums of `moments` over all rows as `Moments`."""
        structure, (sums, second) = self._structure, moments
        counts, first, entries = np.split(sums, [1, 1 + structure.n_features], axis=1)
        counts = counts[:, 0]
        # s(u - o) = s(u) - (u o' + o u') + s(o), or what the statistic has of that.
        mixed = structure.outer_products(first, self._offsets)
        about_offsets = structure.from_entries(entries) if second is None else second
        about_offsets = about_offsets - mixed - structure.transposed(mixed)
        about_offsets += structure.sum_of_squares(self._offsets, counts)
        return Moments(
            np.ascontiguousarray(counts),
            structure.transformed(self._maps, first - counts[:, None] * self._offsets),
            structure.congruence(self._maps, about_offsets),
        )

    def polynomials(self, constant, linear, curvature):
        """a + b.y + B.s(y), up to what all components share, as coefficients of the monomials.

        (..., K), (..., K, P), (..., S, ...) -> (..., K, F)
        """
        structure = self._structure
        curvature = structure.congruence(self._maps_back, curvature)
        slope = structure.transformed(self._maps_back, linear)
        bent = structure.transformed(curvature, self._offsets)
        constant = constant + np.einsum("kp,...kp->...k", self._offsets, bent - slope)
        if structure.has_own_precisions:
            quadratic = structure.entry_coefficients(curvature)
        else:  # All components share B.s(u).
            quadratic = np.zeros((*constant.shape, 1))
        return np.concatenate([constant[..., None], slope - 2.0 * bent, quadratic], axis=-1)

    def changes(self, monomials, polynomials):
        """a + b.y + B.s(y), up to what all components share, (K, n)."""
        return polynomials @ monomials
