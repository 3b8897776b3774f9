"""Monomials of rows in one frame that all components share: 1, u, and those of degree two.

Log densities of all components are linear in the monomials, and moments are weighted sums of them. Where
every component has a precision of its own the monomials of degree two are the entries of s(u); where all
share one, the frame can be chosen so that |u|^2 is all that the log densities need.
"""

import numpy as np

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
