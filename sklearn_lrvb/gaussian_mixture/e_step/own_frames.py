"""Rows in every component's own frame, y = W_k (x - m_k), where the component is the standard normal.

*Frames.* A block of rows is represented in frames before its log densities and moments are computed. All
kinds of frames (this one, `common_frame`, `pair_frame`) have these methods and attributes:

* ``whiten`` returns the representation of a block (P, n);
* ``numbers_per_row`` is the size of the representation and of the temporary arrays made from it;
* ``log_densities`` computes rho (K, n) from the representation;
* ``moments`` computes sums of weight times the representation, to be added over blocks;
* ``in_own_frames`` transforms these sums to `Moments` in the components' own frames.

Linear response does not use `PairFrame`. It needs polynomials a + b.y + B.s(y) of the rows in the components'
own frames: ``coefficients`` transforms their coefficients to the frames, and ``changes`` evaluates them
there. It also needs moments under weights of any sign whose sum over the components is zero:
``signed_moments`` and ``signed_in_own_frames`` compute them.

The components' own frames are accurate whatever the components look like, and take (K, P, n) numbers a block.
"""

import numpy as np

from sklearn_lrvb.gaussian_mixture.posterior.sufficient_statistics import Moments


class OwnFrames:
    """Rows in every component's own frame, as frames (see above).

    Parameters
    ----------
    posterior : VariationalPosterior
    """

    def __init__(self, posterior):
        self._posterior = posterior
        self.numbers_per_row = 2 * posterior.centred_means.size

    def whiten(self, rows):
        """Whitened rows, (P, n) -> (K, P, n)."""
        posterior = self._posterior
        if rows.shape[1] == 1:
            # The general method prepares a product by two more passes over the whiteners: too slow for a row.
            centred = rows[:, 0] - posterior.centred_means
            return posterior.structure.transformed(posterior.whiteners, centred)[:, :, None]
        return posterior.structure.whiten(posterior.whiteners, posterior.centred_means, rows)

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
        """The moments unchanged."""
        return moments

    def coefficients(self, constant, linear, curvature):
        """The coefficients (K,), (K, P), (S, ...) unchanged."""
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
        """The moments unchanged."""
        return moments
