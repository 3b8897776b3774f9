"""Rows in every component's own frame, y = W_k (x - m_k), where the component is the standard normal.

*Frames.* A block of rows is represented in frames before its log densities and moments are computed. All
kinds of frames (this one, `common_frame`, `pair_frame`, `mixed_frames`) have these methods and attributes:

* ``whiten`` returns the representation of a `RowBlock`;
* ``numbers_per_row`` is the size of the representation and of the temporary arrays made from it;
* ``log_densities`` computes rho (K, n) from the representation;
* ``moments`` computes sums of weight times the representation, to be added over blocks;
* ``in_own_frames`` transforms these sums to `Moments` in the components' own frames.

Linear response does not use `PairFrame`. It needs polynomials a + b.y + B.s(y) of the rows in the components'
own frames: ``coefficients`` transforms their coefficients to the frames, and ``changes`` evaluates them
there. It also needs moments under weights of any sign whose sum over the components is zero:
``signed_moments`` and ``signed_in_own_frames`` compute them, and ``hidden_moments`` what hidden values add.

The components' own frames are accurate whatever the components look like, and take (K, P, n) numbers a block.
They alone represent rows with holes, by what is expected of them (`hidden_directions`).
"""

from dataclasses import dataclass, replace

import numpy as np

from sklearn_lrvb.gaussian_mixture.e_step.hidden_directions import (
    HiddenDirections,
    hidden_directions,
    numbers_of_pattern,
)
from sklearn_lrvb.gaussian_mixture.posterior.sufficient_statistics import Moments
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
