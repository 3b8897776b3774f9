"""Rows in every component's own frame, y = W_k (x - m_k), where the component is the standard normal.

*Frames.* What a block of rows is turned into before its log densities and moments are computed is the
business of its frames. All kinds of frames (this one, `common_frame`, `pair_frame`) offer

* ``whiten``: the representation of a block (P, n), of ``numbers_per_row`` numbers with what is made of it;
* ``log_densities``: rho (K, n), from there;
* ``moments``: sums of weight times the representation, to be added over blocks, and ``in_own_frames``, which
  takes these sums to `Moments` in the components' own frames.

Linear response, for which `PairFrame` is not used, needs polynomials a + b.y + B.s(y) of the rows in the
components' own frames: ``coefficients`` takes them to the frames and ``changes`` evaluates them there.
Weights of any sign, which cancel over the components, go through ``signed_moments`` to
``signed_in_own_frames``.

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
            # What is prepared for a block passes over the whiteners twice more, which a single row feels.
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
        """The moments as they are."""
        return moments

    def coefficients(self, constant, linear, curvature):
        """The coefficients (K,), (K, P), (S, ...) as they are."""
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
        """The moments as they are."""
        return moments
