"""Influence functions: mixtures of quadratics (Eq. influence_score as corrected, in closed form).

Row j of J M^-1 holds the coefficients of polynomials p_jk of degree 2 in y_k. They give target j the
influence function

    f_j(x) = sum_k r_k(x) p_jk(y_k(x)),

whose value is the weight influence of a training point at x, d E[target_j] / d w, and whose gradient is its
location influence, d E[target_j] / d x. About 3 K P^2 flops a target and row; no N x D matrix.
"""

import numpy as np

from sklearn_lrvb.gaussian_mixture.sweep import centred_on_average, expect
from sklearn_lrvb.row_blocks import rows_of_size, slices

# Where all components but one have less responsibility, assignments do not respond: no feature is large
# enough to make it count.
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
        constant, linear, curvature = structure.polynomials(coefficients, posterior.second_moment_origin)
        self._write_gradients = structure.gradients(posterior.whiteners, linear, curvature)
        self._polynomials = [
            structure.values(constant[:, k], linear[:, k], curvature[:, structure.slot(k)])
            for k in range(posterior.n_components)
        ]
        self.n_functions = len(coefficients)
        # whose second moments, and values in all components, stay in cache
        self.block_rows = rows_of_size(max(structure.n_quadratic, constant.size))

    def gradients(self, block, out=None):
        """Location influence of a centred block (P, n): (n, d, P), written to ``out`` if given."""
        expectation = expect(self.posterior, block)
        r, whitened = expectation.responsibilities, expectation.whitened
        if out is None:
            out = np.empty((block.shape[1], self.n_functions, len(block)))
        self._write_gradients(r, whitened, out)
        uncertain = np.flatnonzero(np.count_nonzero(r > _CERTAIN, axis=0) > 1)
        if uncertain.size == len(out):
            self._add_reassignment(r, whitened, out)
        elif uncertain.size:
            part = out[uncertain]
            self._add_reassignment(r.take(uncertain, axis=1), whitened.take(uncertain, axis=2), part)
            out[uncertain] = part
        return out

    def _add_reassignment(self, r, whitened, out):
        """Add sum_k p_jk dr_k/dx, with dr_k/dx = r_k (d rho_k - sum_l r_l d rho_l), d rho_k/dx = -W'y_k."""
        posterior = self.posterior
        moved = centred_on_average(posterior.structure.pulled_back(posterior.whiteners, whitened), r)
        moved *= -r[:, :, None]
        moved, values = moved.transpose(1, 0, 2), self._values(whitened).transpose(1, 2, 0)
        for few in slices(len(out), rows_of_size(2 * out[0].size, least=1)):  # their products stay in cache
            out[few] += values[few] @ moved[few]

    def _values(self, whitened):
        """p_jk of whitened rows (K, P, n): (K, n, d)."""
        values = np.empty((len(whitened), whitened.shape[2], self.n_functions))
        for own, polynomials, rows in zip(values, self._polynomials, whitened, strict=True):
            own[...] = polynomials(rows).T
        return values


def location_influence(rows, posterior, batches, n_targets):
    """d E[target_j] / d x_n for every row: (n_samples, n_targets, P).

    Parameters
    ----------
    rows : CentredRows
    batches : iterable of arrays (d, D), rows of J M^-1; n_targets in all
    """
    influence = np.empty((rows.n_samples, n_targets, rows.n_features))
    _write(influence, rows, posterior, batches, InfluenceFunctions.gradients)
    return influence


def influence_norms(rows, posterior, batches, n_targets):
    """Norms of `location_influence` over the features, without it: (n_samples, n_targets)."""

    def block_norms(functions, block, out):
        out[...] = np.linalg.norm(functions.gradients(block), axis=2)

    norms = np.empty((rows.n_samples, n_targets))
    _write(norms, rows, posterior, batches, block_norms)
    return norms


def _write(output, rows, posterior, batches, write_block):
    """Fill (n_samples, n_targets, ...) by ``write_block(functions, block, part of the output)``."""
    first = 0
    for coefficients in batches:
        functions = InfluenceFunctions(posterior, coefficients)
        last = first + len(coefficients)
        _write_batch(output[:, first:last], rows, functions, write_block)
        first = last


def _write_batch(output, rows, functions, write_block):
    """`_write` for the functions of one batch."""

    def one_block(selected, block):
        write_block(functions, block, output[selected])

    for _ in rows.map(one_block, functions.block_rows):
        pass
