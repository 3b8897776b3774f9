"""Influence functions: mixtures of quadratics (Eq. influence_score as corrected, in closed form).

Row j of J M^-1 holds the coefficients of polynomials p_jk of degree 2 in y_k. They give target j the
influence function

    f_j(x) = sum_k r_k(x) p_jk(y_k(x)),

whose value is the weight influence of a training point at x, d E[target_j] / d w, and whose gradient is its
location influence, d E[target_j] / d x. About 4 K P^2 flops a target and row; no N x D matrix.
"""

import collections

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
        self._values = [
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
            self._add_reassignment(r[:, uncertain], whitened[:, :, uncertain], part)
            out[uncertain] = part
        return out

    def _add_reassignment(self, r, whitened, out):
        """Add sum_k p_jk dr_k/dx, with dr_k/dx = r_k (d rho_k - sum_l r_l d rho_l), d rho_k/dx = -W'y_k."""
        posterior = self.posterior
        moved = centred_on_average(posterior.structure.pulled_back(posterior.whiteners, whitened), r)
        moved *= -r[:, :, None]
        values = np.empty((len(r), len(out), self.n_functions))  # p_jk
        for own, of_rows, rows in zip(values, self._values, whitened, strict=True):
            own[...] = of_rows(rows).T
        moved, values = moved.transpose(1, 0, 2), values.transpose(1, 2, 0)
        for few in slices(len(out), rows_of_size(2 * out[0].size, least=1)):  # their products stay in cache
            out[few] += values[few] @ moved[few]


def location_influence(rows, posterior, batches, n_targets):
    """d E[target_j] / d x_n for every row: (n_samples, n_targets, P).

    Parameters
    ----------
    rows : CentredRows
    batches : iterable of arrays (d, D), rows of J M^-1; n_targets in all
    """
    influence = np.empty((rows.n_samples, n_targets, rows.n_features))

    def write(functions, block, where):
        functions.gradients(block, out=influence[where])

    _over_blocks(rows, posterior, batches, write)
    return influence


def influence_norms(rows, posterior, batches, n_targets):
    """Norms of `location_influence` over the features, without it: (n_samples, n_targets)."""
    norms = np.empty((rows.n_samples, n_targets))

    def write(functions, block, where):
        norms[where] = np.linalg.norm(functions.gradients(block), axis=2)

    _over_blocks(rows, posterior, batches, write)
    return norms


def _over_blocks(rows, posterior, batches, write):
    """Call ``write(functions, block, (rows, targets))`` for every batch and block, in any order."""
    first = 0
    for coefficients in batches:
        functions = InfluenceFunctions(posterior, coefficients)
        targets = slice(first, first + functions.n_functions)
        first = targets.stop
        blocks = rows.map(
            lambda selected, block, f=functions, t=targets: write(f, block, (selected, t)),
            functions.block_rows,
        )
        collections.deque(blocks, maxlen=0)  # consumed for what it writes
