"""What single rows do to the posterior, and how uncertain their log densities are.

*Influence functions* are mixtures of quadratics (Equation 14 of the paper, corrected, in closed form). Row j
of J M^-1 holds the coefficients of polynomials p_jk of degree 2 in y_k. They make the influence function of
target j

    f_j(x) = sum_k r_k(x) p_jk(y_k(x)),

whose value is the weight influence of a training point at x, d E[target_j] / d w, and whose gradient is its
location influence, d E[target_j] / d x. Both take about 3 K P^2 flops a target and row, and no N x D matrix.

The weight influence of a single row is J M^-1 g, where g stacks r_k h_k over the components, h_k being the
row's features there (`covariance_structures`). With fewer rows than targets, fewer linear systems are solved
this way.

*Responses of rows.* rho_k(x) is the expected log density of a row at x in component k, and H (D, K) has the
columns h_k. Then

    T = H' M^-1 H            (K, K): the LRVB covariance of rho_1(x), ..., rho_K(x),
    R^-1 M^-1 H q            (D,): the change of the sufficient statistics when a row of weight q_k is added
                             to component k, and all other assignments respond.

An entry of T costs 2 F^2 flops and the second quantity 2 (K F)^2, with F features a component. Where few rows
are ambiguous (`DualInformation`) both need kernels with these rows alone, and no feature is formed for T.
Components to which a row does not belong are skipped (``used``). `leave_one_out` uses both.
"""

import functools

import numpy as np
from scipy.linalg import cho_solve

from sklearn_lrvb.gaussian_mixture.e_step.frames import OwnFrames, expected_features
from sklearn_lrvb.gaussian_mixture.e_step.responsibilities import (
    LEAST_RESPONSIVE_RESPONSIBILITY,
    centred_on_average,
    expect,
)
from sklearn_lrvb.row_blocks import RowNumbers, rows_of_size, slices, untracked

# Least log-likelihood of such rows. Their uncertainty grows by its square, which is then still a number, with
# a margin for the factors before it.
_LEAST_SCORE = -1e140


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
        self.numbers = RowNumbers(numbers, of_product=structure.n_quadratic)

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
        if ambiguous.size == len(out):  # Without copies: half of the time in two dimensions.
            self._add_reassignment(r, whitened, out)
        elif ambiguous.size:
            part = out[ambiguous]
            self._add_reassignment(r[:, ambiguous], whitened.selected(ambiguous), part)
            out[ambiguous] = part
        if whitened.hidden is not None:
            out[np.broadcast_to((block.seen == 0).T[:, None], out.shape)] = np.nan

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
        values = np.empty((len(r), whitened.n_rows, self.n_functions))
        for k, polynomials in enumerate(self._polynomials):
            values[k] = polynomials(whitened.values[k], whitened.spread(k)).T
        moved, values = moved.transpose(1, 0, 2), values.transpose(1, 2, 0)
        # The products of few rows at a time stay in cache.
        for few in slices(len(out), rows_of_size(2 * out[0].size, least=1)):
            out[few] += values[few] @ moved[few]


def influence_of_rows(rows, batches, perturb, entries, out=None, tracked=untracked):
    """The influence of every row, (n_samples, *shape of entries), with a last axis (P,) for "location".

    Parameters
    ----------
    rows : ArrayRows
    batches : iterable of InfluenceFunctions
    perturb : {"location", "weight"}
    entries : int array, number of the function that every position of the result reports
    out : array for the result, or None
    tracked : Tracked, through which the blocks of rows are gone
    """
    axes = (rows.n_features,) if perturb == "location" else ()
    if out is None:
        out = np.empty((rows.n_samples, *entries.shape, *axes))
    flat = out.reshape(len(out), entries.size, *axes)
    entries, first = entries.ravel(), 0
    is_direct = out.dtype == np.float64 and np.array_equal(entries, np.arange(entries.size))
    for functions in batches:
        last = first + functions.n_functions
        write = functions.gradients if perturb == "location" else functions.values
        if is_direct:  # Half of the time, of the influence of locations on means.
            rows.write(write, flat[:, first:last], functions.numbers, tracked)
        else:
            positions = np.flatnonzero((entries >= first) & (entries < last))
            numbers = entries[positions] - first
            write = functools.partial(_write_entries, write, functions.n_functions, positions, numbers)
            rows.write(write, flat, functions.numbers, tracked)
        first = last
    return out


def _write_entries(write, n_functions, positions, numbers, block, out):
    """Write functions to the positions that report them: twice in symmetric matrices, or in float32."""
    written = np.empty((block.n_rows, n_functions, *out.shape[2:]))
    write(block, written)
    out[:, positions] = written[:, numbers]


def weight_influence_of_few_rows(rows, uncertainty, target, entries, out, tracked=untracked):
    """`influence_of_rows` for "weight", from one linear system for every row.

    With fewer rows than targets this is faster: for one row and 702 covariances, 25 times.

    Parameters
    ----------
    rows : ArrayRows
    uncertainty : PosteriorUncertainty
    target : Target
    entries, out, tracked : as in `influence_of_rows`
    """
    information = uncertainty.source.information(rows.n_samples)
    # Solving may itself pass over the training rows in threads, so that it cannot run inside a pass over
    # these. The sources and solutions of a row take D numbers each.
    for block in rows.blocks(2 * 8 * uncertainty.source.size, tracked):
        with uncertainty.source.threads():
            solved = information.solve(_sources_of_weights(uncertainty.fitted.posterior, block))
            out[block.numbers] = target.responses(solved.T)[:, entries]
    return out


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
    batches : iterable of InfluenceFunctions; n_targets in all
    """
    if rows.is_in_memory and rows.n_samples < posterior.structure.n_coefficients:
        influence = influence_of_rows(rows, batches, "weight", np.arange(n_targets))
        sums, squares = rows.total(_products_of_influence, n_targets, along=influence)
    else:
        batches = list(batches)
        function = functools.partial(_products_of_block, batches, n_targets)
        sums, squares = rows.total(function, batches[0].numbers)
    covariance = squares - np.outer(sums, sums) / rows.total_weight
    return 0.5 * (covariance + covariance.T)


def _products_of_block(batches, n_targets, block):
    """The same as `_products_of_influence`, computed from the influence functions."""
    influence, start = np.empty((block.n_rows, n_targets)), 0
    for functions in batches:
        stop = start + functions.n_functions
        functions.values(block, influence[:, start:stop])
        start = stop
    return _products_of_influence(block, influence)


def _products_of_influence(block, influence):
    """Sums over a block's rows of w f and of w f f', given their influence f: (n, d) -> (d,), (d, d)."""
    weighted = block.weighted(influence.T)
    return weighted.sum(axis=1), weighted @ influence


class _Rows:
    """Rows of one block and their features.

    Parameters
    ----------
    posterior : VariationalPosterior
    whitened : OwnRows
    used : bool array (K, n), whether a row belongs to a component at all
    """

    def __init__(self, posterior, whitened, used):
        self._posterior = posterior
        self._structure = posterior.structure
        self._whitened = whitened
        self._used = used
        self._kept = {}

    def _rows(self, k, columns):
        return self._whitened.values[k][:, columns]

    def _features(self, k, columns):
        """h_k of some of the rows, (F, n); not to be written to."""
        if k not in self._kept:
            self._kept[k] = expected_features(self._posterior, self._whitened, k)
        features = self._kept[k]
        return features if len(columns) == features.shape[1] else features.take(columns, axis=1)


class _RowResponses(_Rows):
    """Rows of one block, with the images M^-1 h of their features."""

    def _coordinates(self, k):
        """Coordinates of a component's coefficients, int array (F,)."""
        return self._structure.layout.coefficient_index(k)

    def covariance(self, k, l, columns):
        """T_kl of some of the rows, (n,)."""
        return np.einsum(
            "fn,fn->n", self._features(l, columns), self._images(k, self._coordinates(l), columns)
        )

    def covariances(self):
        """T, zero for components to which a row does not belong: (K, K, n)."""
        covariances = np.zeros((len(self._used), *self._used.shape))
        for k, used in enumerate(self._used):
            for l in range(k + 1):
                columns = np.flatnonzero(used & self._used[l])
                if columns.size:
                    covariances[k, l, columns] = self.covariance(k, l, columns)
                    covariances[l, k] = covariances[k, l]
        return covariances

    def _response(self, coordinates, weights, columns):
        """(M^-1 H q)[coordinates] of some of the rows, given their q (K, n): (len(coordinates), n)."""
        response = np.zeros((len(coordinates), len(columns)))
        for k, used in enumerate(self._used):
            within = np.flatnonzero(used[columns])
            if within.size:
                images = self._images(k, coordinates, columns[within])
                response[:, within] += weights[k, within] * images
        return response

    def counts(self, weights, columns):
        """Changes of the expected counts: (K, n), int array (n,) -> (K, n)."""
        response = self._response(np.arange(len(weights)), weights, columns)
        return cho_solve((self._posterior.intercept_root, True), response)

    def moments(self, l, weights, columns):
        """Changes of a component's other statistics in its frame, as of features: (P, n), (Q, n)."""
        structure, group = self._structure, self._structure.layout.precision_group(l)
        response = self._response(self._coordinates(l)[1:], weights, columns)
        linear, quadratic = response[: structure.n_features], response[structure.n_features :]
        linear *= self._posterior.mean_precision[l]
        quadratic *= self._posterior.effective_degrees_of_freedom[group] / structure.power
        return linear, quadratic


class _ByInverse(_RowResponses):
    """Responses from the matrix M^-1."""

    def __init__(self, inverse, *rows):
        super().__init__(*rows)
        self._inverse = inverse

    def _images(self, k, coordinates, columns):
        """(M^-1 h_k)[coordinates], (len(coordinates), n)."""
        return self._inverse[np.ix_(coordinates, self._coordinates(k))] @ self._features(k, columns)


class _BySolutions(_RowResponses):
    """Responses from M^-1 h, solved for every row and component."""

    def __init__(self, information, *rows):
        super().__init__(*rows)
        self._solutions = [self._solved(information, k) for k in range(len(self._used))]

    def _solved(self, information, k):
        solutions = np.zeros((len(information), self._used.shape[1]))
        columns = np.flatnonzero(self._used[k])
        if columns.size:
            sources = np.zeros((len(information), columns.size))
            sources[self._coordinates(k)] = self._features(k, columns)
            solutions[:, columns] = information.solve(sources)
        return solutions

    def _images(self, k, coordinates, columns):
        """(M^-1 h_k)[coordinates], (len(coordinates), n)."""
        return self._solutions[k][np.ix_(coordinates, columns)]


class _ByKernels(_RowResponses):
    """Responses from M^-1 = R + R B (I - B' R B)^-1 B' R, by kernels of the rows with the columns of B."""

    def __init__(self, information, *rows):
        super().__init__(*rows)
        self._information = information
        self._halves = [self._half(k) for k in range(len(self._used))]

    def _half(self, k):
        """z with z'z the contribution of B to T_kk; zero for rows that do not belong to k: (m, n)."""
        halves = np.zeros((len(self._information.factor), self._used.shape[1]))
        columns = np.flatnonzero(self._used[k])
        if columns.size:
            kernels = self._information.factor.responses_to_rows(k, self._rows(k, columns))
            halves[:, columns] = self._information.half(kernels)
        return halves

    def covariance(self, k, l, columns):
        """T_kl of some of the rows, (n,)."""
        posterior, structure = self._posterior, self._structure
        rows, others, group = (
            self._rows(k, columns),
            self._rows(l, columns),
            structure.layout.precision_group(k),
        )
        covariance = np.einsum("mn,mn->n", self._halves[k][:, columns], self._halves[l][:, columns])
        covariance += posterior.intercept_root[k] @ posterior.intercept_root[l]
        if k == l:
            covariance += np.einsum("pn,pn->n", rows, rows) / posterior.mean_precision[k]
        if l in structure.layout.components_sharing_precision(k):
            products = structure.quadratic_products(rows, others, posterior.second_moment_origin[group])
            covariance += products * (structure.power / posterior.effective_degrees_of_freedom[group])
        return covariance

    def _reassigned(self, weights, columns):
        """(I - B' R B)^-1 B' R H q, the response of the ambiguous rows' assignments: (m, n)."""
        halves = sum(own * half[:, columns] for own, half in zip(weights, self._halves, strict=True))
        return self._information.half_transposed(halves)

    def counts(self, weights, columns):
        """Changes of the expected counts: (K, n), int array (n,) -> (K, n)."""
        return weights + self._information.factor.weights @ self._reassigned(weights, columns)

    def moments(self, l, weights, columns):
        """Changes of a component's other statistics in its frame, as of features: (P, n), (Q, n)."""
        structure, n_features = self._structure, self._structure.n_features
        reassigned = self._reassigned(weights, columns)
        quadratic = 0.0
        for k in structure.layout.components_sharing_precision(l):
            change = weights[k] * self._features(k, columns)
            change += self._information.factor.component_product(k, reassigned)
            quadratic += change[1 + n_features :]
            if k == l:
                linear = change[1 : 1 + n_features]
        return linear, quadratic


class WithoutResponse(_Rows):
    """Responses where no other row's assignment responds (M^-1 = R)."""

    def counts(self, weights, columns):
        """Changes of the expected counts: (K, n), int array (n,) -> (K, n)."""
        return weights

    def moments(self, l, weights, columns):
        """Changes of a component's other statistics in its frame, as of features: (P, n), (Q, n)."""
        n_features = self._structure.n_features
        components_sharing_precision = self._structure.layout.components_sharing_precision(l)
        quadratic = sum(
            weights[k] * self._features(k, columns)[1 + n_features :] for k in components_sharing_precision
        )
        return weights[l] * self._rows(l, columns), quadratic


class ResponsesOfRows:
    """Responses of many rows, block by block, computed in the cheapest way.

    Parameters
    ----------
    information : ObservedInformation
    posterior : VariationalPosterior
    n_rows : int, number of the rows
    """

    def __init__(self, information, posterior, n_rows):
        self._posterior = posterior
        n_targets = n_rows * posterior.n_components
        self._response_class, self._source, self._numbers = information.response_route(n_targets, self)

    def by_kernels(self, information):
        """The class of the responses, its first argument, and its `RowNumbers` (`ResponseRoutes`)."""
        size = len(information.factor) + self._posterior.n_features
        return _ByKernels, information, RowNumbers(self._posterior.n_components * size, of_product=size)

    def by_solutions(self, information):
        """The same where every row and component is solved for."""
        return _BySolutions, information, None

    def by_inverse(self, inverse):
        """The same from the matrix M^-1."""
        structure = self._posterior.structure
        n_features = 1 + structure.n_features + structure.n_quadratic
        # Only the rows of a block that two components share take part in the products.
        return _ByInverse, inverse, RowNumbers(2 * n_features, of_product=n_features // 2)

    def concatenated(self, function, rows, tracked=untracked):
        """``function(responses, block)`` of all blocks of some rows, as `ArrayRows.concatenated`.

        Solving for rows may itself take passes over the training rows. It is then done here, for as many rows
        at once as memory allows. Otherwise the function is applied in one pass over the rows.
        """
        function = functools.partial(function, self)
        if self._numbers is not None:
            return rows.concatenated(function, self._numbers, tracked)
        whole = None
        for block in rows.blocks(8 * len(self._source) * self._posterior.n_components, tracked):
            part = function(block)
            if whole is None:
                whole = np.empty((rows.n_samples, *part.shape[:-1]))
            whole[block.numbers] = part.T
        return whole

    def variances(self, sources):
        """Posterior variances of linear functions J beta of the coefficients, given J' (D, n): (n,)."""
        if self._response_class is _ByInverse:
            return np.einsum("dn,dn->n", sources, self._source @ sources)
        return np.einsum("dn,dn->n", sources, self._source.solve(sources))

    def of_block(self, whitened, used):
        """Responses of the rows of one block: OwnRows, bool array (K, n)."""
        kind = self._response_class
        if kind is _ByKernels and whitened.hidden is not None:
            kind = _BySolutions  # Kernels are of rows, not of what is expected of rows with holes.
        return kind(self._source, self._posterior, whitened, used)


def expect_in_range(frames, block):
    """The E-step of one block, `Expectation`.

    Parameters
    ----------
    frames : OwnFrames
    block : RowBlock

    Raises
    ------
    ValueError
        A row is so far from all components that squares of its log-likelihood overflow.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        expectation = expect(frames, block)
    beyond = np.flatnonzero(~(expectation.log_normalizer > _LEAST_SCORE))
    if beyond.size:
        largest = np.abs(block.rows[:, beyond[0]]).max()
        raise ValueError(
            f"Row {block.numbers[beyond[0]]} of X is {largest:.1e} away from the centre of the fit in one of "
            f"its features, and its log-likelihood is below {_LEAST_SCORE:.0e}: error bars and influence, "
            "which grow by the square of that, cannot be computed. (a) Correct the value. (b) Leave the row "
            "out; predict, predict_proba and score_samples without return_std take it."
        )
    return expectation
