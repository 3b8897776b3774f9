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

    V_rho = H' M^-1 H        (K, K): the LRVB covariance of rho_1(x), ..., rho_K(x),
    R^-1 M^-1 H q            (D,): the change of the sufficient statistics when a row of weight q_k is added
                             to component k, and all other assignments respond.

An entry of V_rho costs 2 F^2 flops and the second quantity 2 (K F)^2, with F features a component. Where few
rows are ambiguous (`DualInformation`) both need kernels with these rows alone, and no feature is formed for
V_rho. Components to which a row does not belong are skipped (``used``). `leave_one_out` uses both.
"""

import functools

import numpy as np
from scipy.linalg import cho_solve

from sklearn_lrvb.gaussian_mixture.e_step.frames import OwnFrames, expected_features
from sklearn_lrvb.gaussian_mixture.e_step.responsibilities import (
    LEAST_RESPONSIVE_RESPONSIBILITY,
    centred_on_average,
    expect_in_range,
)
from sklearn_lrvb.row_blocks import Workload, rows_in_cache, slices, untracked


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
            structure.values(constant[:, k], linear[:, k], curvature[:, structure.precision_group(k)])
            for k in range(posterior.n_components)
        ]
        self.n_functions = len(coefficients)
        # A row's second moments, or the values in all components.
        per_row = max(structure.n_quadratic, constant.size)
        self.workload = Workload(per_row, product=structure.n_quadratic)

    def __reduce__(self):
        # The polynomials and maps are larger than the coefficients, and quick to compute again.
        return type(self), (self._posterior, self._coefficients)

    def values(self, block, out):
        """Weight influence of a block of n rows, written to (n, d)."""
        expectation = expect_in_range(self._frames, block)
        total = np.zeros((self.n_functions, len(out)))
        rows = expectation.framed
        for k, (polynomials, r) in enumerate(
            zip(self._polynomials, expectation.responsibilities, strict=True)
        ):
            total += r * polynomials(rows.values[k], rows.spread(k))
        out[...] = total.T

    def gradients(self, block, out):
        """Location influence of a block of n rows, written to (n, d, P); NaN where a value is missing."""
        expectation = expect_in_range(self._frames, block)
        r, framed = expectation.responsibilities, expectation.framed
        if framed.hidden is None:
            self._write_gradients(r, framed.values, out)
        else:
            self._write_gradients_of_seen(r, framed, out)
        ambiguous = np.flatnonzero(np.count_nonzero(r > LEAST_RESPONSIVE_RESPONSIBILITY, axis=0) > 1)
        if ambiguous.size == len(out):  # Without copies: half of the time in two dimensions.
            self._add_reassignment(r, framed, out)
        elif ambiguous.size:
            part = out[ambiguous]
            self._add_reassignment(r[:, ambiguous], framed.selected(ambiguous), part)
            out[ambiguous] = part
        if framed.hidden is not None:
            out[np.broadcast_to((block.seen == 0).T[:, None], out.shape)] = np.nan

    def _write_gradients_of_seen(self, r, framed, out):
        """Sums over components of r W'(I - Pi)(b + 2 B y) of rows with holes, written to (n, d, P).

        Only what is seen moves the expectation of y, along the directions that no hidden value makes up for.
        """
        posterior, hidden = self._posterior, framed.hidden
        for number, (linear, curvature) in enumerate(zip(self._linear, self._curvature, strict=True)):
            slopes = linear[:, :, None] + 2.0 * hidden.mapped(curvature, framed.values)
            slopes -= hidden.onto(slopes)
            slopes *= r[:, None]
            out[:, number] = posterior.structure.pulled_back(posterior.whiteners, slopes).sum(axis=0)

    def _add_reassignment(self, r, framed, out):
        """Add sum_k p_jk dr_k/dx, with dr_k/dx = r_k (d rho_k - sum_l r_l d rho_l), d rho_k/dx = -W'y_k."""
        posterior = self._posterior
        moved = centred_on_average(posterior.structure.pulled_back(posterior.whiteners, framed.values), r)
        moved *= -r[:, :, None]
        values = np.empty((len(r), framed.n_rows, self.n_functions))
        for k, polynomials in enumerate(self._polynomials):
            values[k] = polynomials(framed.values[k], framed.spread(k)).T
        moved, values = moved.transpose(1, 0, 2), values.transpose(1, 2, 0)
        # The products of few rows at a time stay in cache.
        for few in slices(len(out), rows_in_cache(2 * out[0].size, least=1)):
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
            rows.write(write, flat[:, first:last], functions.workload, tracked)
        else:
            positions = np.flatnonzero((entries >= first) & (entries < last))
            reported = entries[positions] - first
            write = functools.partial(_write_entries, write, functions.n_functions, positions, reported)
            rows.write(write, flat, functions.workload, tracked)
        first = last
    return out


def _write_entries(write, n_functions, positions, reported, block, out):
    """Write functions to the positions that report them: twice in symmetric matrices, or in float32."""
    written = np.empty((block.n_rows, n_functions, *out.shape[2:]))
    write(block, written)
    out[:, positions] = written[:, reported]


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
    information, frames = (
        uncertainty.source.information(rows.n_samples),
        OwnFrames(uncertainty.fitted.posterior),
    )
    # Solving may itself pass over the training rows in threads, so that it cannot run inside a pass over
    # these. The sources and solutions of a row take D numbers each.
    for block in rows.blocks(2 * 8 * uncertainty.source.size, tracked):
        with uncertainty.source.threads():
            solved = information.solve(sources_of_weights(frames, block))
            out[block.index] = target.responses(solved.T)[:, entries]
    return out


def sources_of_weights(frames, block):
    """g of all rows of a block, given the `OwnFrames` of a posterior: (D, n)."""
    posterior, structure = frames.posterior, frames.posterior.structure
    expectation = expect_in_range(frames, block)
    sources = np.zeros((structure.n_coefficients, block.n_rows))
    for k, r in enumerate(expectation.responsibilities):
        features = expected_features(posterior, expectation.framed, k)
        sources[structure.coefficient_index[k]] += r * features
    return sources


def robust_covariance(rows, posterior, batches, n_targets):
    """Sum over rows of w (d theta/d w - mean)(same)', the infinitesimal jackknife: (d, d).

    The influence of all rows, or all influence functions, are in memory at once, whichever is smaller.

    Parameters
    ----------
    rows : Rows, the training rows
    posterior : VariationalPosterior
    batches : iterable of InfluenceFunctions; n_targets in all
    """
    if rows.is_in_memory and rows.n_samples < posterior.structure.n_coefficients:
        influence = influence_of_rows(rows, batches, "weight", np.arange(n_targets))
        sums, squares = rows.total(_products_of_influence, Workload(n_targets), influence)
    else:
        batches = list(batches)
        function = functools.partial(_products_of_block, batches, n_targets)
        sums, squares = rows.total(function, batches[0].workload)
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


class BlockStatistics:
    """What rows of one block add to the sufficient statistics, where no other row's assignment responds.

    Parameters
    ----------
    posterior : VariationalPosterior
    framed : OwnRows
    """

    def __init__(self, posterior, framed):
        self._posterior, self._structure = posterior, posterior.structure
        self._framed, self._kept = framed, {}

    def _features(self, k, columns):
        """h_k of some of the rows, (F, n); not to be written to."""
        if k not in self._kept:
            self._kept[k] = expected_features(self._posterior, self._framed, k)
        features = self._kept[k]
        return features if len(columns) == features.shape[1] else features.take(columns, axis=1)

    def counts(self, weights, columns):
        """Changes of the expected counts, with weights of some rows in the components: (K, n) -> (K, n)."""
        return weights

    def moments(self, l, weights, columns):
        """Changes of a component's other statistics in its frame, as of features: (P, n), (Q, n)."""
        n_linear = 1 + self._structure.n_features
        quadratic = sum(
            weights[k] * self._features(k, columns)[n_linear:]
            for k in self._structure.components_sharing_precision(l)
        )
        return weights[l] * self._features(l, columns)[1:n_linear], quadratic


class BlockResponses(BlockStatistics):
    """The same where all assignments respond, and the covariances of log densities.

    They follow from the images M^-1 h of the rows' features: from the inverse M^-1, or solved for one by one.

    Parameters
    ----------
    posterior, framed : as in `BlockStatistics`
    used : bool array (K, n), whether a row belongs to a component at all
    information : ObservedInformation
    inverse : array (D, D) or None
    """

    def __init__(self, posterior, framed, used, information, inverse):
        super().__init__(posterior, framed)
        self._used, self._inverse = used, inverse
        if inverse is None:
            self._solutions = np.zeros((len(used), len(information), used.shape[1]))
            for k, columns in enumerate(map(np.flatnonzero, used)):
                sources = np.zeros((len(information), columns.size))
                sources[self._structure.coefficient_index[k]] = self._features(k, columns)
                if columns.size:
                    self._solutions[k][:, columns] = information.solve(sources)

    def _images(self, k, coordinates, columns):
        """(M^-1 h_k)[coordinates] of some rows, (len(coordinates), n)."""
        if self._inverse is None:
            return self._solutions[k][np.ix_(coordinates, columns)]
        own = self._structure.coefficient_index[k]
        return self._inverse[np.ix_(coordinates, own)] @ self._features(k, columns)

    def covariances(self):
        """V_rho, zero for components to which a row does not belong: (K, K, n)."""
        covariances = np.zeros((len(self._used), *self._used.shape))
        for k, used in enumerate(self._used):
            for l in range(k + 1):
                columns = np.flatnonzero(used & self._used[l])
                if columns.size:
                    images = self._images(k, self._structure.coefficient_index[l], columns)
                    covariances[k, l, columns] = np.einsum("fn,fn->n", self._features(l, columns), images)
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
        response = self._response(np.arange(len(weights)), weights, columns)
        return cho_solve((self._posterior.intercept_root, True), response)

    def moments(self, l, weights, columns):
        structure, group = self._structure, self._structure.precision_group(l)
        response = self._response(self._structure.coefficient_index[l][1:], weights, columns)
        linear, quadratic = response[: structure.n_features], response[structure.n_features :]
        linear *= self._posterior.mean_precision[l]
        quadratic *= self._posterior.effective_degrees_of_freedom[group] / structure.power
        return linear, quadratic


class ResponsesOfRows:
    """Responses of many rows, block by block, computed in the cheapest way.

    For as many rows as unknowns the inverse M^-1 is formed. Of fewer, one system is solved for every row and
    component; but where M has the dual form, V_rho needs kernels of the rows with the columns of B only. In
    300 features these take a hundredth of the time.

    Parameters
    ----------
    information : ObservedInformation
    posterior : VariationalPosterior
    n_rows : int, number of the rows
    by_kernels : bool, default=True
        Whether `covariances` is all that is asked for.

    Attributes
    ----------
    posterior : VariationalPosterior
    frames : OwnFrames
    """

    def __init__(self, information, posterior, n_rows, by_kernels=True):
        self.posterior, self.frames = posterior, OwnFrames(posterior)
        self._information = information
        self._inverse = information.inverse_for(n_rows * posterior.n_components)
        self._by_kernels = by_kernels and information.has_kernels and self._inverse is None

    def of_rows(self, rows, function, shape, tracked=untracked):
        """``function(responses, block)`` of all blocks of some rows in memory, as `ArrayRows.each`.

        Solving for rows may itself take passes over the training rows. It is then done here, for as many rows
        at once as memory allows. Otherwise the function is applied in one pass over the rows.
        """
        function = functools.partial(function, self)
        structure, n_components = self.posterior.structure, self.posterior.n_components
        if self._inverse is not None:
            # Only the rows of a block that two components share take part in the products.
            n_features = structure.n_component_features
            workload = Workload(2 * n_features, product=n_features // 2)
            return rows.each(function, shape, workload=workload, tracked=tracked)
        if self._by_kernels and not rows.has_holes:
            size = len(self._information.factor) + structure.n_features
            workload = Workload(n_components * size, product=size)
            return rows.each(function, shape, workload=workload, tracked=tracked)
        out = np.empty((rows.n_samples, *shape))
        for block in rows.blocks(8 * len(self._information) * n_components, tracked):
            out[block.index] = function(block).T
        return out

    def of_block(self, framed, used):
        """`BlockResponses` of the rows of one block: OwnRows, bool array (K, n)."""
        return BlockResponses(self.posterior, framed, used, self._information, self._inverse)

    def covariances(self, framed, used):
        """V_rho of the rows of one block, zero for components to which a row does not belong: (K, K, n)."""
        information, posterior, structure = self._information, self.posterior, self.posterior.structure
        # Kernels are of rows, not of what is expected of rows with holes.
        if not self._by_kernels or framed.hidden is not None:
            return self.of_block(framed, used).covariances()
        # M^-1 = R + R B (I - B' R B)^-1 B' R.
        halves = np.zeros((len(used), len(information.factor), used.shape[1]))
        for k, columns in enumerate(map(np.flatnonzero, used)):
            if columns.size:
                kernels = information.factor.responses_to_rows(k, framed.values[k][:, columns])
                halves[k][:, columns] = information.half(kernels)
        covariances = np.einsum("kmn,lmn->kln", halves, halves)
        covariances += (posterior.intercept_root @ posterior.intercept_root.T)[:, :, None]
        for k, rows in enumerate(framed.values):
            covariances[k, k] += np.einsum("pn,pn->n", rows, rows) / posterior.mean_precision[k]
            group = structure.precision_group(k)
            variance = structure.power / posterior.effective_degrees_of_freedom[group]
            for l in structure.components_sharing_precision(k):
                origin = posterior.second_moment_origin[group]
                covariances[k, l] += variance * structure.quadratic_products(rows, framed.values[l], origin)
        return covariances * (used[:, None] & used)

    def variances(self, sources):
        """Posterior variances of linear functions J beta of the coefficients, given J' (D, n): (n,)."""
        images = self._information.solve(sources) if self._inverse is None else self._inverse @ sources
        return np.einsum("dn,dn->n", sources, images)
