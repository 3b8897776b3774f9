"""Influence functions: mixtures of quadratics (Eq. influence_score as corrected, in closed form).

Row j of J M^-1 holds the coefficients of polynomials p_jk of degree 2 in y_k. They give target j the
influence function

    f_j(x) = sum_k r_k(x) p_jk(y_k(x)),

whose value is the weight influence of a training point at x, d E[target_j] / d w, and whose gradient is its
location influence, d E[target_j] / d x. About 3 K P^2 flops a target and row; no N x D matrix.
"""

import functools

import numpy as np

from sklearn_lrvb.gaussian_mixture.e_step.e_step import centred_on_average, expect, sums_over_blocks
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
            structure.values(constant[:, k], linear[:, k], curvature[:, structure.precision_group(k)])
            for k in range(posterior.n_components)
        ]
        self.n_functions = len(coefficients)
        # whose second moments, and values in all components, stay in cache
        self.block_rows = rows_of_size(max(structure.n_quadratic, constant.size))

    def values(self, block, out):
        """Weight influence of a centred block (P, n), written to (n, d)."""
        expectation = expect(self.posterior, block)
        total = np.zeros((self.n_functions, len(out)))
        parts = zip(self._polynomials, expectation.responsibilities, expectation.whitened, strict=True)
        for polynomials, r, rows in parts:
            total += r * polynomials(rows)
        out[...] = total.T

    def gradients(self, block, out):
        """Location influence of a centred block (P, n), written to (n, d, P)."""
        expectation = expect(self.posterior, block)
        r, whitened = expectation.responsibilities, expectation.whitened
        self._write_gradients(r, whitened, out)
        uncertain = np.flatnonzero(np.count_nonzero(r > _CERTAIN, axis=0) > 1)
        if uncertain.size == len(out):
            self._add_reassignment(r, whitened, out)
        elif uncertain.size:
            part = out[uncertain]
            self._add_reassignment(r.take(uncertain, axis=1), whitened.take(uncertain, axis=2), part)
            out[uncertain] = part

    def gradient_norms(self, block, out):
        """Norms of `gradients` over the features, written to (n, d)."""
        gradients = np.empty((*out.shape, len(block)))
        self.gradients(block, gradients)
        out[...] = np.linalg.norm(gradients, axis=2)

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


def write_influence(rows, posterior, batches, part, out, entries=None):
    """Fill (n_samples, ...) with what influence functions say of every row, batch by batch, block by block.

    Parameters
    ----------
    rows : CentredRows
    batches : iterable of arrays (d, D), rows of J M^-1
    part : method of `InfluenceFunctions` that writes the part of a block to (n, d, ...)
    out : array (n_samples, ...) whose middle axes are those of ``entries``
    entries : int array, which function every place of the output is of; None for one after the other
    """
    entries = np.arange(out.shape[1]) if entries is None else entries
    flat = out.reshape(len(out), entries.size, *out.shape[1 + entries.ndim :])
    one_by_one = np.array_equal(entries.ravel(), np.arange(entries.size))
    first = 0
    for coefficients in batches:
        functions = InfluenceFunctions(posterior, coefficients)
        last = first + len(coefficients)
        if one_by_one and out.dtype == np.float64:
            write = functools.partial(_write_directly, part, functions, flat[:, first:last])
        else:
            places = np.flatnonzero((entries.ravel() >= first) & (entries.ravel() < last))
            write = functools.partial(
                _write_spread, part, functions, flat, places, entries.ravel()[places] - first
            )
        for _ in rows.map(write, functions.block_rows):
            pass
        first = last


def _write_directly(part, functions, out, selected, block):
    part(functions, block, out[selected])


def _write_spread(part, functions, out, places, entries, selected, block):
    """Entries that are reported twice, or rounded."""
    written = np.empty((block.shape[1], functions.n_functions, *out.shape[2:]))
    part(functions, block, written)
    out[selected, places] = written[:, entries]


def robust_covariance(rows, posterior, batches, n_targets):
    """Sum over rows of w (d theta/d w - mean)(same)', the infinitesimal jackknife: (d, d).

    The influence of all rows, or all influence functions, are held at once, whichever are fewer numbers.

    Parameters
    ----------
    rows : CentredRows, the training rows
    batches : iterable of arrays (d, D), rows of J M^-1; n_targets in all
    """
    if rows.n_samples < posterior.structure.n_coefficients:
        influence = np.empty((rows.n_samples, n_targets))
        write_influence(rows, posterior, batches, InfluenceFunctions.values, influence)
        sums, squares = _weighted_products(rows, influence, slice(None))
    else:
        functions = [InfluenceFunctions(posterior, coefficients) for coefficients in batches]
        stops = np.cumsum([0] + [part.n_functions for part in functions])

        def one_block(selected, block):
            influence = np.empty((block.shape[1], n_targets))
            for start, stop, part in zip(stops, stops[1:], functions, strict=False):
                part.values(block, influence[:, start:stop])
            return _weighted_products(rows, influence, selected)

        sums, squares = sums_over_blocks(rows.map(one_block, functions[0].block_rows))
    covariance = squares - np.outer(sums, sums) / rows.total_weight
    return 0.5 * (covariance + covariance.T)


def _weighted_products(rows, influence, selected):
    """Sums over rows of w f and of w f f', of some rows' influence f: (n, d) -> (d,), (d, d)."""
    weighted = rows.weighted(influence.T, selected)
    return weighted.sum(axis=1), weighted @ influence
