"""Frames in which rows are seen: every component's own, or one that all components share.

A block of rows is represented in frames before its log densities and moments are computed. All kinds of
frames have these methods and attributes:

* ``whiten`` returns the representation of a `RowBlock`;
* ``numbers_per_row`` is the size of the representation and of the temporary arrays made from it;
* ``log_densities`` computes rho (K, n) from the representation;
* ``moments`` computes sums of weight times the representation, to be added over blocks;
* ``in_own_frames`` transforms these sums to `Moments` in the components' own frames.

Linear response needs polynomials a + b.y + B.s(y) of the rows in the components'
own frames: ``coefficients`` transforms their coefficients to the frames, and ``changes`` evaluates them
there. It also needs moments under weights of any sign whose sum over the components is zero:
``signed_moments`` and ``signed_in_own_frames`` compute them, and ``hidden_moments`` what hidden values add.

In the components' own frames, y = W_k (x - m_k), each of them is the standard normal. They are accurate
whatever the components look like, and take (K, P, n) numbers a block. They alone represent rows with holes,
by what is expected of them (`hidden_directions`).

In the common frame, u = W (x - c), that of the components' average, log densities of all components are
linear in the monomials 1, u, and those of degree two, and moments are weighted sums of them: one matrix
product each way, and (F, n) numbers a block. Digits are lost where components are far apart or much narrower
than their average: the frame is not used there. Where every component has a precision of its own the
monomials of degree two are the entries of s(u); where all share one, the frame can be chosen so that |u|^2 is
all that the log densities need.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from sklearn_lrvb.gaussian_mixture.e_step.hidden_directions import (
    HiddenDirections,
    hidden_directions,
    numbers_of_pattern,
)
from sklearn_lrvb.gaussian_mixture.posterior.variational_posterior import Moments
from sklearn_lrvb.row_blocks import RowNumbers


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
        """The entries of E in component k, (Q, n); None where the rows are complete."""
        if self.hidden is None:
            return None
        group = self.hidden.structure.layout.precision_group(k)
        return np.take(self.hidden.spread[group], self.pattern, axis=1)

    def selected(self, index):
        """Some of the rows, int array."""
        pattern = None if self.pattern is None else self.pattern[index]
        return OwnRows(self.values.take(index, axis=2), self.hidden, pattern)

    def squares(self):
        """What is expected of |y|^2, (K, n)."""
        squares = np.einsum("kpn,kpn->kn", self.values, self.values)
        return squares if self.hidden is None else squares + self.hidden.n_hidden[self.pattern]


def expected_features(posterior, whitened, k):
    """The features h of `OwnRows` in component k, or what is expected of them: (F, n)."""
    structure = posterior.structure
    origin = posterior.second_moment_origin[structure.layout.precision_group(k)]
    return structure.component_features(whitened.values[k], origin, whitened.spread(k))


class OwnFrames:
    """Rows in every component's own frame, as frames (see above).

    Parameters
    ----------
    posterior : VariationalPosterior
    """

    def __init__(self, posterior):
        self._posterior = posterior
        self.numbers_per_row = RowNumbers(2 * posterior.centred_means.size, numbers_of_pattern(posterior))

    def whiten(self, block):
        """Whitened rows of a block: OwnRows."""
        values = self._whitened(block.rows)
        if block.holes is None:
            return OwnRows(values)
        hidden = hidden_directions(self._posterior, block.holes)
        values -= hidden.onto(values)
        return OwnRows(values, hidden, block.holes.pattern)

    def _whitened(self, rows):
        """(P, n) -> (K, P, n)."""
        posterior = self._posterior
        if rows.shape[1] == 1:
            # The general method prepares a product by two more passes over the whiteners: too slow for a row.
            centred = rows[:, 0] - posterior.centred_means
            return posterior.structure.transformed(posterior.whiteners, centred)[:, :, None]
        return posterior.structure.whiten(posterior.whiteners, posterior.centred_means, rows)

    def log_densities(self, whitened):
        """rho, (K, n)."""
        densities = np.einsum("kpn,kpn->kn", whitened.values, whitened.values)
        densities *= -0.5
        densities += self._posterior.expectations.log_density_constants[:, None]
        if whitened.hidden is not None:
            densities += whitened.hidden.log_densities_by_row(whitened.pattern)
        return densities

    def moments(self, whitened, weights):
        """Sums of weight (1, y, s(y)), weights (K, n) >= 0."""
        moments = Moments(
            weights.sum(axis=1),
            np.matmul(whitened.values, weights[:, :, None])[:, :, 0],
            self._posterior.structure.second_moments(whitened.values, weights),
        )
        return self._with_spread(moments, whitened.hidden, weights)

    def _with_spread(self, moments, hidden, weights):
        """Moments with the second moments E of hidden values added."""
        if hidden is None:
            return moments
        return replace(moments, second=moments.second + hidden.spread_sums(hidden.by_group(weights)))

    def in_own_frames(self, moments):
        """The moments unchanged."""
        return moments

    def coefficients(self, constant, linear, curvature):
        """The coefficients (K,), (K, P), (S, ...) unchanged."""
        return constant, linear, curvature

    def changes(self, whitened, coefficients):
        """a + b.y + B.s(y), (K, n)."""
        constant, linear, curvature = coefficients
        values = self._posterior.structure.curvature_products(curvature, whitened.values)
        values += np.einsum("kp,kpn->kn", linear, whitened.values)
        values += constant[:, None]
        if whitened.hidden is not None:
            values += np.take(whitened.hidden.values_of_spread(curvature), whitened.pattern, axis=1)
        return values

    def signed_moments(self, whitened, weights):
        """Sums of weight (1, y, s(y)), weights (K, n) of any sign."""
        moments = Moments(
            weights.sum(axis=1),
            np.einsum("kpn,kn->kp", whitened.values, weights),
            self._posterior.structure.signed_second_moments(whitened.values, weights),
        )
        return self._with_spread(moments, whitened.hidden, weights)

    def hidden_moments(self, whitened, coefficients, weights):
        """Changes of the moments as the distributions of hidden values change; None of complete rows.

        It is the covariance of (y, s(y)) with a + b.y + B.s(y) given the component, times weights (K, n).
        """
        hidden = whitened.hidden
        if hidden is None:
            return None
        _, linear, curvature = coefficients
        values = whitened.values
        moved = hidden.onto(linear[:, :, None] + 2.0 * hidden.mapped(curvature, values))
        moved *= weights[:, None]
        second = hidden.mixed_covariance(values, moved)
        second += hidden.curvature_covariance(curvature, hidden.by_group(weights))
        return Moments(np.zeros(len(values)), moved.sum(axis=2), second)

    def signed_in_own_frames(self, moments):
        """The moments unchanged."""
        return moments


class MixedFrames:
    """Some frames for complete blocks, and `OwnFrames` for blocks with holes.

    Parameters
    ----------
    complete : CommonFrame
    posterior : VariationalPosterior
    """

    def __init__(self, complete, posterior):
        self._both = complete, OwnFrames(posterior)
        self.numbers_per_row = max(frames.numbers_per_row for frames in self._both)

    def whiten(self, block):
        """The representation of a block in its frames."""
        return self._both[block.holes is not None].whiten(block)

    def _of(self, whitened):
        """The number of the frames of a representation, and these frames."""
        number = int(isinstance(whitened, OwnRows))
        return number, self._both[number]

    def _paired(self, whitened, name, *arguments):
        """What a method of the frames of a representation returns, as a pair with None."""
        number, frames = self._of(whitened)
        result = getattr(frames, name)(whitened, *arguments)
        return (None, result) if number else (result, None)

    def log_densities(self, whitened):
        """rho, (K, n)."""
        return self._of(whitened)[1].log_densities(whitened)

    def moments(self, whitened, weights):
        """Sums of weight times the representation, weights (K, n) >= 0."""
        return self._paired(whitened, "moments", weights)

    def in_own_frames(self, moments):
        """The same sums of y, in every component's frame."""
        return self._summed(moments, "in_own_frames")

    def _summed(self, moments, name):
        there = [
            getattr(frames, name)(part)
            for frames, part in zip(self._both, moments, strict=True)
            if part is not None
        ]
        return there[0] if len(there) == 1 else there[0] + there[1]

    def coefficients(self, constant, linear, curvature):
        """a + b.y + B.s(y) as coefficients in both frames."""
        return tuple(frames.coefficients(constant, linear, curvature) for frames in self._both)

    def changes(self, whitened, coefficients):
        """a + b.y + B.s(y), less what all components share, (K, n)."""
        number, frames = self._of(whitened)
        return frames.changes(whitened, coefficients[number])

    def signed_moments(self, whitened, weights):
        """Sums of weight times the representation, weights whose sum over the components is zero."""
        return self._paired(whitened, "signed_moments", weights)

    def signed_in_own_frames(self, moments):
        """The same sums of y, in every component's frame."""
        return self._summed(moments, "signed_in_own_frames")

    def hidden_moments(self, whitened, coefficients, weights):
        """Changes of the moments by those of the hidden values."""
        number, frames = self._of(whitened)
        return (None, frames.hidden_moments(whitened, coefficients[1], weights)) if number else None


# Largest number of monomials for each component, by measurement, at which forming them costs less than the
# common frame saves.
_MAX_MONOMIALS_PER_COMPONENT = 36

# Size of the rows in all components' own frames, n K P numbers, below which these frames take less time than
# preparing a common one, by measurement: where every component has a matrix of its own, and elsewhere.
_FEW_NUMBERS_OF_OWN_MATRICES = 50_000
_FEW_NUMBERS = 15_000


def _has_own_matrices(structure):
    return structure.is_matrix and structure.has_own_precisions


def has_few_rows(structure, n_samples):
    """Whether there are so few rows that preparing a common frame costs more than it saves."""
    n_numbers = n_samples * structure.n_components * structure.n_features
    return n_numbers < (_FEW_NUMBERS_OF_OWN_MATRICES if _has_own_matrices(structure) else _FEW_NUMBERS)


def prefers_common_frame(structure):
    """Whether one frame for all components costs less than a frame for each of them, for many rows."""
    if _has_own_matrices(structure):
        n_monomials = monomials_of(structure).n_monomials
        return n_monomials <= _MAX_MONOMIALS_PER_COMPONENT * structure.n_components
    return True


def monomials_of(structure):
    """The monomials that a structure needs."""
    return _OwnPrecisions(structure) if structure.has_own_precisions else _SharedPrecision(structure)


class _OwnPrecisions:
    """The monomials (1, u, entries of s(u)), for components with precisions of their own."""

    def __init__(self, structure):
        self._structure = structure
        self.n_monomials = structure.layout.n_component_features

    def of_rows(self, whitener, center, block):
        """Monomials of u = W (x - c): (1, ...), (P,), (P, n) -> (n_monomials, n)."""
        n_features = self._structure.n_features
        monomials = np.empty((self.n_monomials, block.shape[1]))
        monomials[0] = 1.0
        rows = monomials[1 : 1 + n_features]
        self._structure.whiten_into(whitener, center, block, rows)
        self._write_products(rows, monomials[1 + n_features :])
        return monomials

    def _write_products(self, rows, products):
        """Write the monomials of degree two, from (P, n)."""
        self._structure.write_entries(rows, products)

    def coefficients(self, curvature):
        """<B, s(u)> as coefficients of the monomials of degree two: (S, ...) -> (K, n_monomials - P - 1)."""
        return self._structure.entry_coefficients(curvature)

    def distinct_coefficients(self, curvature):
        """`coefficients`, up to a term that all components share."""
        return self.coefficients(curvature)

    def moments(self, monomials, weights):
        """Sums of weight times (1, u, s(u)): (n_monomials, n), (K, n) -> (K,), (K, P), entries (K, Q)."""
        sums = weights @ monomials.T
        linear = 1 + self._structure.n_features
        return sums[:, 0], sums[:, 1:linear], sums[:, linear:]

    def second_moments(self, second):
        """The last of `moments`, summed over all rows, as a statistic: (S, ...)."""
        return self._structure.from_entries(second)

    def signed_moments(self, monomials, weights):
        """`moments` for weights of any sign whose sum over the components is zero."""
        return self.moments(monomials, weights)


class _SharedPrecision(_OwnPrecisions):
    """The monomials (1, u, |u|^2), in the frame where the precision that all share is the identity."""

    def __init__(self, structure):
        super().__init__(structure)
        self.n_monomials = 2 + structure.n_features

    def _write_products(self, rows, products):
        np.einsum("pn,pn->n", rows, rows, out=products[0])

    def coefficients(self, curvature):
        """A coefficient of one for every component, since B is the identity: (K, 1)."""
        return np.ones((self._structure.n_components, 1))

    def distinct_coefficients(self, curvature):
        """Coefficients of zero, since all components share <B, s(u)>: (K, 1)."""
        return np.zeros((self._structure.n_components, 1))

    def moments(self, monomials, weights):
        """Sums of weight times (1, u, s(u)): (n_monomials, n), (K, n) -> (K,), (K, P), (1, ...)."""
        rows = monomials[1:-1]
        sums = weights @ monomials[:-1].T
        second = self._structure.second_moments(rows[None], weights.sum(axis=0)[None])
        return sums[:, 0], sums[:, 1:], second

    def second_moments(self, second):
        """The last of `moments`, which is a statistic: (1, ...)."""
        return second

    def signed_moments(self, monomials, weights):
        """`moments` for weights whose sum over the components is zero, so that the moments of s(u) cancel."""
        sums = weights @ monomials[:-1].T
        return sums[:, 0], sums[:, 1:], np.zeros((1, *self._structure.identity.shape))


# Largest factor by which a log density may amplify the rounding of u, relative to the number of features, as
# log densities are themselves: 2000 eps is less than the rounding of a lower bound that is summed over rows.
MAX_AMPLIFICATION = 2000.0


class CommonFrame:
    """Rows in the frame of the components' average, as monomials (1, u, s(u)).

    Parameters
    ----------
    posterior : VariationalPosterior
    """

    def __init__(self, posterior):
        self._posterior = posterior
        structure = self._structure = posterior.structure
        self._monomials = monomials_of(structure)
        shares = posterior.counts / posterior.counts.sum()
        self._center = shares @ posterior.centred_means
        # The maps A_k with y = A_k (u - offset); None where they are the identity.
        self._to_own_frames = None
        self._whitener = posterior.whiteners
        if structure.has_own_precisions:
            average = structure.average_cholesky(posterior.covariance_cholesky, shares)
            self._whitener = structure.whiteners(average)
            self._to_own_frames = structure.composed_triangles(posterior.whiteners, average)
        self._offsets = structure.transformed(self._whitener, posterior.centred_means - self._center)
        self.numbers_per_row = self._monomials.n_monomials + 2 * posterior.n_components

    @classmethod
    def if_accurate(cls, posterior):
        """The frame, where it is cheaper than `OwnFrames` and loses no digits; else None."""
        if not prefers_common_frame(posterior.structure):
            return None
        frame = cls(posterior)
        return frame if frame.amplification < MAX_AMPLIFICATION else None

    @cached_property
    def amplification(self):
        """Largest factor by which a log density amplifies the rounding of u, relative to P."""
        squared = np.einsum("kp,kp->k", self._offsets, self._offsets) / self._posterior.n_features
        return np.max(self._stretch() * (1.0 + squared))

    @property
    def n_monomials(self):
        return self._monomials.n_monomials

    def _stretch(self):
        """trace A_k' A_k / P, (S,): the mean square of the factors by which a component's frame is finer."""
        if self._to_own_frames is None:
            return np.ones(1)
        return self._structure.precision_trace(self._to_own_frames) / self._posterior.n_features

    def _mapped(self, vectors, back=False):
        """A_k v, or A_k' v: (K, P) -> (K, P)."""
        maps, structure = self._to_own_frames, self._structure
        if maps is None:
            return vectors
        return structure.transformed(structure.transposed(maps) if back else maps, vectors)

    def _congruent(self, statistics, back=False):
        """A_k s A_k', or A_k' s A_k: (..., S, ...) -> (..., S, ...)."""
        maps, structure = self._to_own_frames, self._structure
        if maps is None:
            return statistics
        return structure.congruence(structure.transposed(maps) if back else maps, statistics)

    def whiten(self, block):
        """Monomials of u of complete rows, RowBlock -> (F, n)."""
        return self._monomials.of_rows(self._whitener, self._center, block.rows)

    @cached_property
    def _coefficients(self):
        """Coefficients of the monomials in the log densities, (K, F)."""
        structure, posterior = self._structure, self._posterior
        shift = self._mapped(self._offsets)
        constants = posterior.expectations.log_density_constants - 0.5 * np.einsum("kp,kp->k", shift, shift)
        curvature = self._monomials.coefficients(self._congruent(structure.identity, back=True))
        return np.hstack([constants[:, None], self._mapped(shift, back=True), -0.5 * curvature])

    def log_densities(self, monomials):
        """rho, (K, n)."""
        return self._coefficients @ monomials

    def moments(self, monomials, weights):
        """Sums of weight (1, u, s(u)), weights (K, n)."""
        return Moments(*self._monomials.moments(monomials, weights))

    def in_own_frames(self, moments):
        """The same sums of y, in every component's frame."""
        structure, counts = self._structure, np.ascontiguousarray(moments.counts)
        means = moments.first / np.where(counts > 0, counts, 1.0)[:, None]
        gaps = means - self._offsets
        second = self._monomials.second_moments(moments.second)
        scatter = second - structure.sum_of_squares(means, counts)
        return Moments(
            counts,
            counts[:, None] * self._mapped(gaps),
            self._congruent(scatter + structure.sum_of_squares(gaps, counts)),
        )

    def coefficients(self, constant, linear, curvature):
        """a + b.y + B.s(y) as coefficients of the monomials, less what all components share: (K, F)."""
        structure = self._structure
        curvature = self._congruent(curvature, back=True)
        slope = self._mapped(linear, back=True)
        bent = structure.transformed(curvature, self._offsets)
        constant = constant + np.einsum("kp,kp->k", self._offsets, bent - slope)
        quadratic = self._monomials.distinct_coefficients(curvature)
        return np.hstack([constant[:, None], slope - 2.0 * bent, quadratic])

    def changes(self, monomials, coefficients):
        """a + b.y + B.s(y), less what all components share, (K, n)."""
        return coefficients @ monomials

    def signed_moments(self, monomials, weights):
        """Sums of weight (1, u, s(u)), weights (K, n) of any sign whose sum over the components is zero."""
        return Moments(*self._monomials.signed_moments(monomials, weights))

    def hidden_moments(self, monomials, coefficients, weights):
        """None, since the rows of this frame are complete."""
        del monomials, coefficients, weights

    def signed_in_own_frames(self, moments):
        """The same sums of y, in every component's frame."""
        structure, offsets = self._structure, self._offsets
        counts, first = moments.counts, moments.first
        # s(u - o) = s(u) - (a term linear in u, by polarization) + s(o). The two vectors of the polarization
        # are scaled to equal lengths, so that the smaller one is not lost to the rounding of the larger one.
        balance = np.sqrt(_ratio(np.linalg.norm(first, axis=1), np.linalg.norm(offsets, axis=1)))[:, None]
        sides = first / balance + balance * offsets, first / balance - balance * offsets
        halves = np.full_like(counts, 0.5)
        second = self._monomials.second_moments(moments.second) + structure.signed_second_moments(
            np.stack([*sides, offsets], axis=2), np.stack([-halves, halves, counts], axis=1)
        )
        return Moments(
            counts,
            self._mapped(first - counts[:, None] * offsets),
            self._congruent(second),
        )


def _ratio(lengths, others):
    """Ratio of two lengths, (K,); one where either is zero."""
    are_positive = (lengths > 0) & (others > 0)
    return np.divide(lengths, others, out=np.ones_like(lengths), where=are_positive)


def frames_of(posterior, rows):
    """`CommonFrame` of a posterior where it is cheaper for the rows and accurate, else `OwnFrames`.

    Where rows have holes, the blocks of those that do are in `OwnFrames`.
    """
    if has_few_rows(posterior.structure, rows.n_samples):
        return OwnFrames(posterior)
    frame = CommonFrame.if_accurate(posterior)
    if frame is None:
        return OwnFrames(posterior)
    return MixedFrames(frame, posterior) if rows.has_holes else frame
