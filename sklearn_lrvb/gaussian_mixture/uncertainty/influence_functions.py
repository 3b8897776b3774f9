"""Influence functions: mixtures of quadratics (Equation 14 of the paper, corrected, in closed form).

Row j of J M^-1 holds the coefficients of polynomials p_jk of degree 2 in y_k. They make the influence
function of target j

    f_j(x) = sum_k r_k(x) p_jk(y_k(x)),

whose value is the weight influence of a training point at x, d E[target_j] / d w, and whose gradient is its
location influence, d E[target_j] / d x. Both take about 3 K P^2 flops a target and row, and no N x D matrix.

The weight influence of a single row is J M^-1 g, where g stacks r_k h_k over the components, h_k being the
row's features there (`covariance_structures`). With fewer rows than targets, fewer linear systems are solved
this way.
"""

import functools

import numpy as np

from sklearn_lrvb.gaussian_mixture.e_step.frames import OwnFrames, expected_features
from sklearn_lrvb.gaussian_mixture.e_step.responsibilities import (
    LEAST_RESPONSIVE_RESPONSIBILITY,
    centred_on_average,
)
from sklearn_lrvb.gaussian_mixture.uncertainty.rows_in_range import expect_in_range
from sklearn_lrvb.row_blocks import rows_of_size, slices, untracked


class InfluenceFunctions:
    """f_j for the rows j of ``coefficients``.

    Parameters
    ----------
    posterior : VariationalPosterior
    coefficients : (d, D), rows of J M^-1
    """

    def __init__(self, posterior, coefficients):
        self._posterior, self._coefficients = posterior, coefficients
        self._frames = OwnFrames(posterior)
        structure = posterior.structure
        constant, linear, curvature = structure.polynomials(coefficients, posterior.second_moment_origin)
        self._linear, self._curvature = linear, curvature
        self._write_gradients = structure.gradients(posterior.whiteners, linear, curvature)
        self._polynomials = [
            structure.values(constant[:, k], linear[:, k], curvature[:, structure.layout.precision_group(k)])
            for k in range(posterior.n_components)
        ]
        self.n_functions = len(coefficients)
        # A row's second moments, or the values in all components.
        numbers = max(structure.n_quadratic, constant.size)
        self.work = {"numbers_per_row": numbers, "product_size": structure.n_quadratic}

    def __reduce__(self):
        # The polynomials and maps are larger than the coefficients, and quick to compute again.
        return type(self), (self._posterior, self._coefficients)

    def values(self, block, out):
        """Weight influence of a block of n rows, written to (n, d)."""
        expectation = expect_in_range(self._frames, block)
        total = np.zeros((self.n_functions, len(out)))
        rows = expectation.whitened
        for k, (polynomials, r) in enumerate(
            zip(self._polynomials, expectation.responsibilities, strict=True)
        ):
            total += r * polynomials(rows.values[k], rows.spread(k))
        out[...] = total.T

    def gradients(self, block, out):
        """Location influence of a block of n rows, written to (n, d, P); NaN where a value is missing."""
        expectation = expect_in_range(self._frames, block)
        r, whitened = expectation.responsibilities, expectation.whitened
        if whitened.hidden is None:
            self._write_gradients(r, whitened.values, out)
        else:
            self._write_gradients_of_seen(r, whitened, out)
        ambiguous = np.flatnonzero(np.count_nonzero(r > LEAST_RESPONSIVE_RESPONSIBILITY, axis=0) > 1)
        if ambiguous.size == len(out):
            self._add_reassignment(r, whitened, out)
        elif ambiguous.size:
            part = out[ambiguous]
            self._add_reassignment(r.take(ambiguous, axis=1), whitened.selected(ambiguous), part)
            out[ambiguous] = part
        if whitened.hidden is not None:
            out[np.broadcast_to((block.seen == 0).T[:, None], out.shape)] = np.nan

    def gradient_norms(self, block, out):
        """Norms of `gradients` over the features, written to (n, d)."""
        gradients = np.empty((*out.shape, len(block.rows)))
        self.gradients(block, gradients)
        if block.holes is not None:
            gradients[np.isnan(gradients)] = 0.0
        out[...] = np.linalg.norm(gradients, axis=2)

    def _write_gradients_of_seen(self, r, whitened, out):
        """Sums over components of r W'(I - Pi)(b + 2 B y) of rows with holes, written to (n, d, P).

        Only what is seen moves the expectation of y, along the directions that no hidden value makes up for.
        """
        posterior, hidden = self._posterior, whitened.hidden
        for number, (linear, curvature) in enumerate(zip(self._linear, self._curvature, strict=True)):
            slopes = linear[:, :, None] + 2.0 * hidden.mapped(curvature, whitened.values)
            slopes -= hidden.onto(slopes)
            slopes *= r[:, None]
            out[:, number] = posterior.structure.pulled_back(posterior.whiteners, slopes).sum(axis=0)

    def _add_reassignment(self, r, whitened, out):
        """Add sum_k p_jk dr_k/dx, with dr_k/dx = r_k (d rho_k - sum_l r_l d rho_l), d rho_k/dx = -W'y_k."""
        posterior = self._posterior
        moved = centred_on_average(posterior.structure.pulled_back(posterior.whiteners, whitened.values), r)
        moved *= -r[:, :, None]
        moved, values = moved.transpose(1, 0, 2), self._values(whitened).transpose(1, 2, 0)
        # The products of few rows at a time stay in cache.
        for few in slices(len(out), rows_of_size(2 * out[0].size, least=1)):
            out[few] += values[few] @ moved[few]

    def _values(self, whitened):
        """p_jk of `OwnRows`: (K, n, d)."""
        values = np.empty((len(whitened.values), whitened.n_rows, self.n_functions))
        for k, (own, polynomials) in enumerate(zip(values, self._polynomials, strict=True)):
            own[...] = polynomials(whitened.values[k], whitened.spread(k)).T
        return values


def write_influence(rows, posterior, batches, part, out, entries=None, tracked=untracked):
    """Fill (n_samples, ...) with what influence functions say of every row, batch by batch, block by block.

    Parameters
    ----------
    rows : CentredRows
    posterior : VariationalPosterior
    batches : iterable of arrays (d, D), rows of J M^-1
    part : method of `InfluenceFunctions` that writes the values of a block to (n, d, ...)
    out : array (n_samples, ...) whose middle axes are those of ``entries``
    entries : int array, default=None
        Index of the function that every position of the output reports. None is all functions in order.
    tracked : Tracked, through which the blocks of rows are gone
    """
    entries = np.arange(out.shape[1]) if entries is None else entries
    flat = out.reshape(len(out), entries.size, *out.shape[1 + entries.ndim :])
    one_by_one = np.array_equal(entries.ravel(), np.arange(entries.size))
    first = 0
    for coefficients in batches:
        functions = InfluenceFunctions(posterior, coefficients)
        last = first + len(coefficients)
        if one_by_one and out.dtype == np.float64:
            write = functools.partial(part, functions)
            rows.write(write, flat[:, first:last], tracked=tracked, **functions.work)
        else:
            positions = np.flatnonzero((entries.ravel() >= first) & (entries.ravel() < last))
            own = entries.ravel()[positions] - first
            write = functools.partial(_write_spread, part, functions, positions, own)
            rows.write(write, flat, tracked=tracked, **functions.work)
        first = last


def influence_of_rows(rows, posterior, batches, part, shape, entries=None, tracked=untracked):
    """What influence functions say of every row, (n_samples, *shape).

    Parameters
    ----------
    rows : ArrayRows
    posterior, batches, part, entries, tracked : as in `write_influence`
    shape : tuple of int, of the result for one row
    """
    out = np.empty((rows.n_samples, *shape))
    write_influence(rows, posterior, batches, part, out, entries, tracked)
    return out


def _write_spread(part, functions, positions, entries, block, out):
    """Write entries that are reported twice, or rounded, to their positions."""
    written = np.empty((block.n_rows, functions.n_functions, *out.shape[2:]))
    part(functions, block, written)
    out[:, positions] = written[:, entries]


def write_weight_influence_of_few_rows(rows, uncertainty, target, out, entries, tracked=untracked):
    """As `write_influence` with `InfluenceFunctions.values`, from one linear system for every row.

    Parameters
    ----------
    rows : CentredRows
    uncertainty : PosteriorUncertainty
    target : Target
    out : array (n_samples, *shape of ``entries``)
    entries : int array, index of the flat entry that every position of the output reports
    tracked : Tracked, through which the blocks of rows are gone
    """
    information = uncertainty.source.information(rows.n_samples)
    # Solving may itself pass over the training rows in threads, so that it cannot run inside a pass over
    # these. The sources and solutions of a row take D numbers each.
    for block in rows.blocks(2 * 8 * uncertainty.source.size, tracked):
        with uncertainty.source.threads():
            solved = information.solve(_sources_of_weights(uncertainty.fitted.posterior, block))
            out[block.numbers] = target.responses(solved.T)[:, entries]


def _sources_of_weights(posterior, block):
    """g of all rows of a block: (D, n)."""
    structure = posterior.structure
    expectation = expect_in_range(OwnFrames(posterior), block)
    sources = np.zeros((structure.n_coefficients, block.n_rows))
    for k, r in enumerate(expectation.responsibilities):
        features = expected_features(posterior, expectation.whitened, k)
        sources[structure.layout.coefficient_index(k)] += r * features
    return sources


def robust_covariance(rows, posterior, batches, n_targets):
    """Sum over rows of w (d theta/d w - mean)(same)', the infinitesimal jackknife: (d, d).

    The influence of all rows, or all influence functions, are in memory at once, whichever is smaller.

    Parameters
    ----------
    rows : CentredRows, the training rows
    posterior : VariationalPosterior
    batches : iterable of arrays (d, D), rows of J M^-1; n_targets in all
    """
    if rows.is_in_memory and rows.n_samples < posterior.structure.n_coefficients:
        influence = np.empty((rows.n_samples, n_targets))
        write_influence(rows, posterior, batches, InfluenceFunctions.values, influence)
        sums, squares = rows.total(_products_of_influence, n_targets, along=influence)
    else:
        functions = [InfluenceFunctions(posterior, coefficients) for coefficients in batches]
        sums, squares = rows.total(
            functools.partial(_products_of_block, functions, n_targets), **functions[0].work
        )
    covariance = squares - np.outer(sums, sums) / rows.total_weight
    return 0.5 * (covariance + covariance.T)


def _products_of_block(functions, n_targets, block):
    """The same as `_products_of_influence`, computed from the influence functions."""
    influence, start = np.empty((block.n_rows, n_targets)), 0
    for batch in functions:
        stop = start + batch.n_functions
        batch.values(block, influence[:, start:stop])
        start = stop
    return _products_of_influence(block, influence)


def _products_of_influence(block, influence):
    """Sums over a block's rows of w f and of w f f', given their influence f: (n, d) -> (d,), (d, d)."""
    weighted = block.weighted(influence.T)
    return weighted.sum(axis=1), weighted @ influence
