"""Two components with full precisions in the frame where both are diagonal, at half the products of a sweep.

With the singular value decomposition W_2 W_1^-1 = U S V' the rows u = V'W_1 (x - m_1) have y_1 = V u and
y_2 = U (S u + g). One matrix product brings rows there, and one sums the second moments of the first
component. Those of the second component are the difference to the second moments of all rows, which are the
same in every sweep. The interface of all frames is described in `frames`. Linear response does not use
this one.
"""

import numpy as np

from sklearn_lrvb.gaussian_mixture.e_step.frames import MAX_AMPLIFICATION, prefers_common_frame
from sklearn_lrvb.gaussian_mixture.posterior.variational_posterior import Moments
from sklearn_lrvb.symmetric_matrices import symmetrized

# Number of rows per feature above which the singular value decomposition costs little beside a sweep.
_MIN_ROWS_PER_FEATURE = 64


def prefers_pair_frame(structure):
    """Whether there are two components with a covariance matrix each, and many features."""
    has_matrices = structure.is_matrix and structure.has_own_precisions
    return has_matrices and structure.n_components == 2 and not prefers_common_frame(structure)


class PairFrame:
    """Rows in the frame where two components are diagonal, as (1, u, u^2).

    Parameters
    ----------
    posterior : VariationalPosterior of two components
    total_scatter : TotalScatter
    order : (int, int)
        The component whose second moments are summed, and the one whose second moments are the rest.
    """

    def __init__(self, posterior, total_scatter, order):
        self._order = summed, rest = order
        self._center = posterior.centred_means[summed]
        summed_to_rest = posterior.whiteners[rest] @ posterior.covariance_cholesky[summed]
        self._rest_axes, self._stretch, axes = np.linalg.svd(summed_to_rest)
        self._summed_axes = axes.T
        self._whitener = axes @ posterior.whiteners[summed]
        gap = self._center - posterior.centred_means[rest]
        self._shift = self._rest_axes.T @ (posterior.whiteners[rest] @ gap)
        self._coefficients = self._polynomials(posterior.expectations.log_density_constants)
        self._scatter_of_all = total_scatter.whitened(self._whitener, self._center)
        self.numbers_per_row = 4 * posterior.n_features

    def _polynomials(self, constants):
        """The log densities' coefficients of (1, u, u^2), (2, 1 + 2 P)."""
        summed, rest = self._order
        stretch, shift = self._stretch, self._shift
        coefficients = np.zeros((2, 1 + 2 * len(shift)))
        coefficients[:, 0] = constants
        coefficients[summed, 1 + len(shift) :] = -0.5
        coefficients[rest] -= 0.5 * np.concatenate([[shift @ shift], 2.0 * stretch * shift, stretch**2])
        return coefficients

    @classmethod
    def if_accurate(cls, rows, posterior):
        """The frame, where it is cheaper than `OwnFrames` and keeps digits as they do; else None."""
        n_features = posterior.n_features
        if not prefers_pair_frame(posterior.structure) or rows.n_samples < _MIN_ROWS_PER_FEATURE * n_features:
            return None
        total_scatter = rows.total_scatter
        if total_scatter is None:
            return None
        rest = int(np.argmax(posterior.counts))
        if not _spread(posterior, rest, total_scatter) < MAX_AMPLIFICATION:
            rest = 1 - rest
            if not _spread(posterior, rest, total_scatter) < MAX_AMPLIFICATION:
                return None
        frame = cls(posterior, total_scatter, (1 - rest, rest))
        return frame if frame._keeps_digits() else None

    def _keeps_digits(self):
        is_near = self._shift @ self._shift < MAX_AMPLIFICATION * len(self._shift)
        return is_near and self._stretch[0] < MAX_AMPLIFICATION * self._stretch[-1]

    def whiten(self, block):
        """(1, u, u^2) of complete rows: RowBlock -> (1 + 2 P, n)."""
        rows = block.rows
        n_features, n_rows = rows.shape
        monomials = np.empty((1 + 2 * n_features, n_rows))
        monomials[0] = 1.0
        whitened = monomials[1 : 1 + n_features]
        np.matmul(self._whitener, rows, out=whitened)
        whitened -= (self._whitener @ self._center)[:, None]
        np.square(whitened, out=monomials[1 + n_features :])
        return monomials

    def log_densities(self, monomials):
        """rho, (2, n)."""
        return self._coefficients @ monomials

    def moments(self, monomials, weights):
        """Sums of weight (1, u), weights (2, n) >= 0, and of weight u u' for one component, (P, P)."""
        linear = monomials[: 1 + len(self._shift)]
        sums, rows = weights @ linear.T, linear[1:]
        scaled = weights[self._order[0]] * rows
        return Moments(sums[:, 0], sums[:, 1:], scaled @ rows.T)

    def in_own_frames(self, moments):
        """Sums of weight (1, y, y y'), weights those of `moments`, in every component's frame."""
        summed, rest = self._order
        counts, first = moments.counts, np.empty_like(moments.first)
        second = np.empty((2, *moments.second.shape))
        first[summed] = self._summed_axes @ moments.first[summed]
        second[summed] = self._summed_axes @ moments.second @ self._summed_axes.T

        mean = moments.first[rest] / (counts[rest] or 1.0)
        scatter = self._scatter_of_all - moments.second - counts[rest] * np.outer(mean, mean)
        rest_mean = self._stretch * mean + self._shift
        rest_second = self._stretch[:, None] * scatter * self._stretch
        rest_second += counts[rest] * np.outer(rest_mean, rest_mean)
        first[rest] = counts[rest] * (self._rest_axes @ rest_mean)
        second[rest] = self._rest_axes @ rest_second @ self._rest_axes.T
        return Moments(counts, first, symmetrized(second))


def _spread(posterior, k, total_scatter):
    """Mean square of all rows along a component's axes, divided by that component's share of the rows."""
    squared = np.trace(total_scatter.whitened(posterior.whiteners[k], posterior.centred_means[k]))
    least_count = 1e-9 * squared  # Floor the count, so that an empty component does not divide by zero.
    return squared / max(posterior.n_features * posterior.counts[k], least_count)
