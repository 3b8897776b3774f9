"""Influence functions: mixtures of quadratics (Eq. influence_score as corrected, in closed form).

Row j of J M^-1 holds the coefficients of polynomials p_jk of degree 2 in y_k. They give target j the
influence function

    f_j(x) = sum_k r_k(x) p_jk(y_k(x)),

whose value is the weight influence of a training point at x, d E[target_j] / d w, and whose gradient is its
location influence, d E[target_j] / d x. About 4 K P^2 flops a target and row; no N x D matrix.
"""

import numpy as np

from sklearn_lrvb.gaussian_mixture.sweep import centred_on_average, expect
from sklearn_lrvb.row_blocks import rows_of_size

# Where the other components' responsibilities sum to less, assignments do not respond: no feature is
# large enough to make it count.
_CERTAIN = 1e-30


class InfluenceFunctions:
    """f_j for the rows j of ``coefficients``.

    Parameters
    ----------
    posterior : VariationalPosterior
    coefficients : (d, D), rows of J M^-1
    """

    def __init__(self, posterior, coefficients):
        self.posterior = posterior
        structure = posterior.structure
        self._constant, self._linear, self._curvature = structure.polynomials(
            coefficients, posterior.second_moment_origin
        )
        # of p_jk alone, at fixed responsibilities
        self._gradients = structure.gradients(posterior.whiteners, self._linear, self._curvature)

    def _polynomials(self, k, rows_k):
        """p_jk of whitened rows (n, P): (n, d)."""
        structure = self.posterior.structure
        values = structure.curvature_values(self._curvature[:, structure.slot(k)], rows_k)
        values += rows_k @ self._linear[:, k].T
        values += self._constant[:, k]
        return values

    def gradients(self, block):
        """Location influence of a centred block (P, n): (n, d, P)."""
        expectation = expect(self.posterior, block)
        r = expectation.responsibilities
        whitened = np.ascontiguousarray(expectation.whitened.transpose(0, 2, 1))
        n_rows = r.shape[1]
        gradients = self._gradients(r, whitened)
        # d r_k/dx = r_k (d rho_k - sum_l r_l d rho_l), d rho_k/dx = -W' y_k
        slopes = centred_on_average(
            -self.posterior.structure.pulled_back(self.posterior.whiteners, whitened), r
        )
        others = r.copy()
        others[r.argmax(axis=0), np.arange(n_rows)] = 0.0
        uncertain = np.flatnonzero(others.sum(axis=0) > _CERTAIN)
        if uncertain.size:
            values = np.stack(
                [self._polynomials(k, rows_k[uncertain]) for k, rows_k in enumerate(whitened)],
                axis=-1,
            )
            moved = (r[:, uncertain, None] * slopes[:, uncertain]).transpose(1, 0, 2)
            gradients[uncertain] += values @ moved
        return gradients


def location_influence(rows, posterior, batches, n_targets, reduce=lambda gradients: gradients):
    """d E[target_j] / d x_n for every row: (n_samples, n_targets, *rest of ``reduce``).

    Parameters
    ----------
    rows : CentredRows
    batches : iterable of arrays (d, D), rows of J M^-1; n_targets in all
    reduce : callable (n, d, P) -> (n, d, *rest), applied block by block
    """
    output, first = None, 0
    for coefficients in batches:
        functions = InfluenceFunctions(posterior, coefficients)
        last = first + len(coefficients)
        # a block of gradients is as large as a block of X, as many times over as there are targets
        block_rows = rows_of_size(2 * rows.n_features * max(1, len(coefficients) // 8))
        start = 0
        for part in rows.map(lambda _, block, f=functions: reduce(f.gradients(block)), block_rows):
            if output is None:
                output = np.empty((rows.n_samples, n_targets, *part.shape[2:]))
            output[start : start + len(part), first:last] = part
            start += len(part)
        first = last
    return output
