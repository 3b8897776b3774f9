"""How a block of rows is seen when its log densities and moments are computed: the arithmetic of a sweep.

* `OwnFrames`: every component in its frame, y = W_k (x - m_k), where it is the standard normal. Accurate
  whatever the components look like; (K, P, n) numbers a block.
* `CommonFrame`: all components in one, u = W (x - c), that of their average. Log densities are linear
  in the monomials of u, and moments are sums of them: one matrix product each way, (F, n) numbers a block.
  Digits are lost where components are far apart or much narrower than their average; it is not used there.

Both hand blocks to ``seen``; what that returns leads to ``log_densities`` (K, n), and with weights to
``moments``, whose sums over blocks go through ``in_own_frames``. In linear response, polynomials
a + b.y + B.s(y) of the rows in the components' frames go through ``coefficients`` to ``changes`` (K, n), and
weights of any sign, which cancel over the components, through ``signed_moments`` to ``signed_in_own_frames``.
"""

from functools import cached_property

import numpy as np

from sklearn_lrvb.gaussian_mixture.posterior.variational_posterior import Moments
from sklearn_lrvb.row_blocks import rows_of_size

# What rounding of u may grow by in a log density: 2000 eps is less than a bound summed over rows has itself.
AMPLIFICATION = 2000.0
LEAST_ROWS = 512  # of a block, for products that are worth their overhead


class OwnFrames:
    """Rows in every component's frame.

    Parameters
    ----------
    posterior : VariationalPosterior
    """

    def __init__(self, posterior):
        self._posterior = posterior
        self.block_rows = rows_of_size(2 * posterior.centred_means.size, LEAST_ROWS)

    def whiten(self, block):
        """Whitened rows, (P, n) -> (K, P, n)."""
        posterior = self._posterior
        return posterior.structure.whiten(posterior.whiteners, posterior.centred_means, block)

    def log_densities(self, whitened):
        """rho, (K, n)."""
        densities = np.einsum("kpn,kpn->kn", whitened, whitened)
        densities *= -0.5
        densities += self._posterior.log_density_constants[:, None]
        return densities

    def moments(self, whitened, weights):
        """Sums of weight (1, y, s(y)), weights (K, n) >= 0."""
        return Moments(
            weights.sum(axis=1),
            np.matmul(whitened, weights[:, :, None])[:, :, 0],
            self._posterior.structure.second_moments(whitened, weights),
        )

    def in_own_frames(self, moments):
        """As they are."""
        return moments

    def coefficients(self, constant, linear, curvature):
        """As they are: (K,), (K, P), (S, ...)."""
        return constant, linear, curvature

    def changes(self, whitened, coefficients):
        """a + b.y + B.s(y), (K, n)."""
        constant, linear, curvature = coefficients
        values = self._posterior.structure.curvature_products(curvature, whitened)
        values += np.einsum("kp,kpn->kn", linear, whitened)
        values += constant[:, None]
        return values

    def signed_moments(self, whitened, weights):
        """Sums of weight (1, y, s(y)), weights (K, n) of any sign."""
        return Moments(
            weights.sum(axis=1),
            np.einsum("kpn,kn->kp", whitened, weights),
            self._posterior.structure.signed_second_moments(whitened, weights),
        )

    def signed_in_own_frames(self, moments):
        """As they are."""
        return moments


class CommonFrame:
    """Rows in the frame of the components' average, as monomials (1, u, s(u)).

    Parameters
    ----------
    posterior : VariationalPosterior
    """

    def __init__(self, posterior):
        self._posterior = posterior
        structure = self._structure = posterior.structure
        shares = posterior.counts / posterior.counts.sum()
        root = structure.average_cholesky(posterior.covariance_cholesky, structure.per_group(shares))
        self._whitener = structure.whiteners(root)
        self._center = shares @ posterior.centred_means
        self._turns = structure.composed(posterior.whiteners, root)  # from u to y, but for a shift
        self._offsets = structure.transformed(self._whitener, posterior.centred_means - self._center)
        self.block_rows = rows_of_size(structure.n_monomials + 2 * posterior.n_components, LEAST_ROWS)

    @classmethod
    def if_accurate(cls, posterior):
        """The frame where it is cheaper than `OwnFrames` and loses no digits, else None."""
        if not posterior.structure.prefers_common_frame:
            return None
        frame = cls(posterior)
        squared = np.einsum("kp,kp->k", frame._offsets, frame._offsets) / posterior.n_features
        stretch = posterior.structure.precision_trace(frame._turns)
        return frame if np.all(stretch * (1.0 + squared) < AMPLIFICATION) else None

    def whiten(self, block):
        """Monomials of u, (P, n) -> (F, n)."""
        return self._structure.monomials(self._whitener, self._center, block)

    @cached_property
    def _coefficients(self):
        """What monomials count for in the log densities, (K, F)."""
        structure, posterior = self._structure, self._posterior
        shift = structure.transformed(self._turns, self._offsets)
        back = structure.transposed(self._turns)
        constants = posterior.log_density_constants - 0.5 * np.einsum("kp,kp->k", shift, shift)
        curvature = structure.monomial_coefficients(structure.congruence(back, structure.identity))
        return np.hstack([constants[:, None], structure.transformed(back, shift), -0.5 * curvature])

    def log_densities(self, monomials):
        """rho, (K, n)."""
        return self._coefficients @ monomials

    def moments(self, monomials, weights):
        """Sums of weight (1, u, s(u)), weights (K, n)."""
        return Moments(*self._structure.monomial_moments(monomials, weights))

    def in_own_frames(self, moments):
        """The same sums of y, in every component's frame."""
        structure, counts = self._structure, np.ascontiguousarray(moments.counts)
        means = moments.first / np.where(counts > 0, counts, 1.0)[:, None]
        gaps = means - self._offsets
        second = structure.monomial_second_moments(moments.second)
        scatter = second - structure.sum_of_squares(means, counts)
        return Moments(
            counts,
            counts[:, None] * structure.transformed(self._turns, gaps),
            structure.congruence(self._turns, scatter + structure.sum_of_squares(gaps, counts)),
        )

    def coefficients(self, constant, linear, curvature):
        """a + b.y + B.s(y) as coefficients of the monomials, but for what all components share: (K, F)."""
        structure = self._structure
        back = structure.transposed(self._turns)
        curvature = structure.congruence(back, curvature)
        slope = structure.transformed(back, linear)
        bent = structure.transformed(curvature, self._offsets)
        constant = constant + np.einsum("kp,kp->k", self._offsets, bent - slope)
        return np.hstack([constant[:, None], slope - 2.0 * bent, structure.distinct_coefficients(curvature)])

    def changes(self, monomials, coefficients):
        """a + b.y + B.s(y), but for what all components share, (K, n)."""
        return coefficients @ monomials

    def signed_moments(self, monomials, weights):
        """Sums of weight (1, u, s(u)), weights (K, n) of any sign whose sum over the components is zero."""
        return Moments(*self._structure.signed_monomial_moments(monomials, weights))

    def signed_in_own_frames(self, moments):
        """The same sums of y, in every component's frame."""
        structure, (counts, first, centred_means) = (
            self._structure,
            (moments.counts, moments.first, self._offsets),
        )
        # s(u - o) = s(u) - (what is linear in u, by its polar form) + s(o)
        balance = np.sqrt(_ratio(np.linalg.norm(first, axis=1), np.linalg.norm(centred_means, axis=1)))[
            :, None
        ]
        sides = first / balance + balance * centred_means, first / balance - balance * centred_means
        halves = np.full_like(counts, 0.5)
        second = structure.monomial_second_moments(moments.second) + structure.signed_second_moments(
            np.stack([*sides, centred_means], axis=2), np.stack([-halves, halves, counts], axis=1)
        )
        return Moments(
            counts,
            structure.transformed(self._turns, first - counts[:, None] * centred_means),
            structure.congruence(self._turns, second),
        )


def _ratio(lengths, others):
    """Of two lengths, (K,); one where either is zero."""
    known = (lengths > 0) & (others > 0)
    return np.divide(lengths, others, out=np.ones_like(lengths), where=known)


def frames_of(posterior):
    """The way to see rows that is cheapest and accurate."""
    return CommonFrame.if_accurate(posterior) or OwnFrames(posterior)
