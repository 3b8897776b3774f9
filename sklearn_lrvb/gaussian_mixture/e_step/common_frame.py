"""Rows in one frame that all components share, u = W (x - c), that of the components' average.

Log densities are linear in the monomials (1, u, s(u)), and moments are sums of them: one matrix product each
way, and (F, n) numbers a block. Digits are lost where components are far apart or much narrower than their
average: the frame is not used there. The interface of all frames is described in `own_frames`, the monomials
are in `common_monomials`.
"""

from functools import cached_property

import numpy as np

from sklearn_lrvb.gaussian_mixture.e_step.common_monomials import (
    has_few_rows,
    monomials_of,
    prefers_common_frame,
)
from sklearn_lrvb.gaussian_mixture.e_step.mixed_frames import MixedFrames
from sklearn_lrvb.gaussian_mixture.e_step.own_frames import OwnFrames
from sklearn_lrvb.gaussian_mixture.posterior.sufficient_statistics import Moments

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
