"""What single rows do to the posterior, and how uncertain their log densities are.

*Influence functions* are mixtures of quadratics (Equation 14 of the paper, corrected, in closed form). Row j
of J M^-1 holds the coefficients of polynomials p_jk of degree 2 in y_k. They make the influence function of
target j

    f_j(x) = sum_k r_k(x) p_jk(y_k(x)),

whose value is the weight influence of a training point at x, d E[target_j] / d w, and whose gradient is its
location influence, d E[target_j] / d x. Both take about 3 K P^2 flops a target and row, and no N x D matrix.

Where rows have scales u (`posterior.tails`) what is expected of p_jk takes its place, which is

    c_0 + E u q(y) + c E phi,        q(y) = c_u + b.y + <B, s(y)>,

phi being the feature of nu. As q(u) moves with the squared distance of the row, E u has the gradient
-Var(u) W'y, E phi has -Cov(u, phi) W'y, and the log density -E u W'y.

The weight influence of a single row is J M^-1 g, where g stacks r_k h_k over the components, h_k being the
row's features there (`covariance_structures`). With fewer rows than targets, fewer linear systems are solved
this way.

*Responses of rows.* rho_k(x) is the expected log density of a row at x with label k, and H (D, L) has the
columns h_k, of the K components and, if there is one, the background. Then

    V_rho = H' M^-1 H        (L, L): the LRVB covariance of rho_1(x), ..., rho_L(x),
    R^-1 M^-1 H q            (D,): the change of the sufficient statistics when a row of weight q_k is added
                             to component k, and all other assignments respond.

An entry of V_rho costs 2 F^2 flops and the second quantity 2 (K F)^2, with F features a component. Where few
rows are ambiguous (`DualInformation`) both need kernels with these rows alone, and no feature is formed for
V_rho. Components to which a row does not belong are skipped (``used``). `leave_one_out` uses both.
"""

import functools
from functools import cached_property

import numpy as np
from scipy.linalg import cho_solve

from sklearn_lrvb.gaussian_mixture.e_step.frames import OwnFrames, expected_features, scale_directions
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
        constant, linear, curvature, *of_scales = structure.polynomials(
            coefficients, posterior.second_moment_origin
        )
        self._constant, self._linear, self._curvature = constant, linear, curvature
        self._of_tails = coefficients[:, structure.coefficient_blocks["tail"]]
        self._write_gradients = structure.gradients(posterior.whiteners, linear, curvature)
        starts = of_scales[0] if of_scales else constant
        self._polynomials = [
            structure.values(starts[:, k], linear[:, k], curvature[:, structure.precision_group(k)])
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
        for k, r in enumerate(expectation.responsibilities):
            total += r * self._values_in(k, expectation.framed)
        out[...] = total.T

    def _values_in(self, k, framed):
        """p_jk of rows with label k, (d, n), or (d, 1) where it is the same for all rows."""
        if k == len(self._polynomials):
            return self._constant[:, k:]
        if framed.scales is None:
            return self._polynomials[k](framed.values[k], framed.spread(k))
        values = framed.scales.mean[k] * self._slopes_in(k, framed) + self._constant[:, k, None]
        if framed.hidden is not None:
            structure = self._posterior.structure
            curvature = self._curvature[:, structure.precision_group(k)]
            values += structure.entry_coefficients(curvature) @ framed.projections(k)
        if self._of_tails.size:
            values += self._of_tail(k)[:, None] * self._posterior.tails.expected_feature(framed.scales)[k]
        return values

    def _slopes_in(self, k, framed):
        """q of rows that have scales, in component k: (d, n)."""
        noise = framed.hidden_noise(k)
        return self._polynomials[k](framed.values[k], None if noise is None else -noise)

    def _of_tail(self, k):
        """Coefficients of the feature of nu in component k, (d,)."""
        return self._of_tails[:, k if self._posterior.structure.n_tails > 1 else 0]

    def gradients(self, block, out):
        """Location influence of a block of n rows, written to (n, d, P); NaN where a value is missing."""
        expectation = expect_in_range(self._frames, block)
        r, framed = expectation.responsibilities, expectation.framed
        of_components = r[: len(framed.values)]
        scaled = of_components if framed.scales is None else of_components * framed.scales.mean
        if framed.hidden is None:
            self._write_gradients(scaled, framed.values, out)
        else:
            self._write_gradients_of_seen(scaled, framed, out)
        if framed.scales is not None:
            self._add_changes_of_scales(of_components, framed, out)
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
        pulled_back = posterior.structure.pulled_back(posterior.whiteners, framed.values)
        if framed.scales is not None:
            pulled_back *= framed.scales.mean[:, :, None]
        if posterior.structure.has_background:  # Its log density is the same everywhere.
            pulled_back = np.concatenate([pulled_back, np.zeros_like(pulled_back[:1])])
        moved = centred_on_average(pulled_back, r)
        moved *= -r[:, :, None]
        values = np.empty((len(r), framed.n_rows, self.n_functions))
        for k, own in enumerate(values):
            own[...] = self._values_in(k, framed).T
        _add_products(values, moved, out)

    def _add_changes_of_scales(self, r, framed, out):
        """Add sum_k r_k (q_jk dE u/dx + c dE phi/dx)."""
        posterior, scales = self._posterior, framed.scales
        moved = posterior.structure.pulled_back(posterior.whiteners, framed.values)
        moved *= -r[:, :, None]
        values = np.empty((len(r), framed.n_rows, self.n_functions))
        for k, own in enumerate(values):
            own[...] = (scales.variance[k] * self._slopes_in(k, framed)).T
            if self._of_tails.size:
                own += posterior.tails.covariances_with_scale(scales)[0][k][:, None] * self._of_tail(k)
        _add_products(values, moved, out)


def _add_products(values, moved, out):
    """Add sums over the labels of values times vectors: (L, n, d), (L, n, P) to (n, d, P)."""
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
        sources[structure.coefficients_of_labels[k]] += r * features
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
        self._places = list(posterior.structure.coefficients_of_labels)

    def _features(self, k, columns):
        """h_k of some of the rows, (F, n); not to be written to."""
        if k not in self._kept:
            self._kept[k] = expected_features(self._posterior, self._framed, k)
        features = self._kept[k]
        return features if len(columns) == features.shape[1] else features.take(columns, axis=1)

    def counts(self, weights, columns):
        """Changes of the expected counts, with weights of some rows by label: (L, n) -> (L, n)."""
        return weights

    def moments(self, l, weights, columns):
        """Changes of a component's other statistics in its frame, as of features.

        (P, n), (Q, n), and (n,) of scales, which is None where rows have none
        """
        structure = self._structure
        linear, quadratic = slice(1, 1 + structure.n_features), slice(1 + structure.n_features, None)
        quadratic = slice(quadratic.start, quadratic.start + structure.n_quadratic)
        of_group = sum(
            weights[k] * self._features(k, columns)[quadratic]
            for k in structure.components_sharing_precision(l)
        )
        own = self._features(l, columns)
        of_scales = weights[l] * own[quadratic.stop] if structure.has_scales else None
        return weights[l] * own[linear], of_group, of_scales

    def tails(self, weights, columns):
        """Changes of the sums of the features of fitted nu, (n, n_tails)."""
        components = range(self._posterior.n_components)
        by_component = [weights[k] * self._features(k, columns)[-1] for k in components]
        return self._posterior.tails.by_tail(np.stack(by_component, axis=1))


class BlockResponses(BlockStatistics):
    """The same where all assignments respond, and the covariances of log densities.

    They follow from the images M^-1 h of the rows' features: from the inverse M^-1, or solved for one by one.
    Where rows have scales, the directions in which features vary with them may come after the L labels.

    Parameters
    ----------
    posterior, framed : as in `BlockStatistics`
    used : bool array (L, n), whether a row may have a label at all
    information : ObservedInformation
    inverse : array (D, D) or None
    with_scales : bool, whether there are directions of scales
    """

    def __init__(self, posterior, framed, used, information, inverse, with_scales=False):
        super().__init__(posterior, framed)
        if with_scales:
            self._add_directions_of_scales()
        self._used, self._inverse = self.by_direction(used), inverse
        if inverse is None:
            self._solutions = np.zeros((len(self._used), len(information), used.shape[1]))
            for k, columns in enumerate(map(np.flatnonzero, self._used)):
                sources = np.zeros((len(information), columns.size))
                sources[self._places[k]] = self._features(k, columns)
                if columns.size:
                    self._solutions[k][:, columns] = information.solve(sources)

    def _add_directions_of_scales(self):
        directions, rest = scale_directions(self._posterior, self._framed)
        own = [] if rest is None else list(np.sqrt(np.broadcast_to(rest, self._framed.scales.mean.shape)))
        for features in (*directions, *(deviations[None] for deviations in own)):
            self._kept[len(self._places) + len(self._kept)] = features
        index = self._structure.coefficient_index
        self._places += [*index, *(index[:, -1:] if own else [])]

    def by_direction(self, by_label):
        """The values of labels, and after them those of the components for the directions: (L, n), (m, n)."""
        n_components = self._posterior.n_components
        n_more = (len(self._places) - len(by_label)) // n_components
        return np.concatenate([by_label, *n_more * [by_label[:n_components]]])

    def _images(self, k, coordinates, columns):
        """(M^-1 h_k)[coordinates] of some rows, (len(coordinates), n)."""
        if self._inverse is None:
            return self._solutions[k][np.ix_(coordinates, columns)]
        return self._inverse[np.ix_(coordinates, self._places[k])] @ self._features(k, columns)

    def covariances(self):
        """V_rho, zero for labels that a row does not have, and of directions: (L or m, L or m, n)."""
        covariances = np.zeros((len(self._used), *self._used.shape))
        for k, used in enumerate(self._used):
            for l in range(k + 1):
                columns = np.flatnonzero(used & self._used[l])
                if columns.size:
                    images = self._images(k, self._places[l], columns)
                    covariances[k, l, columns] = np.einsum("fn,fn->n", self._features(l, columns), images)
                    covariances[l, k] = covariances[k, l]
        return covariances

    def _response(self, coordinates, weights, columns):
        """(M^-1 H q)[coordinates] of some of the rows, given their q (L or m, n): (len(coordinates), n)."""
        response = np.zeros((len(coordinates), len(columns)))
        for k, used in enumerate(self._used):
            within = np.flatnonzero(used[columns])
            if within.size:
                images = self._images(k, coordinates, columns[within])
                response[:, within] += weights[k, within] * images
        return response

    def counts(self, weights, columns):
        response = self._response(np.arange(self._posterior.n_labels), weights, columns)
        return cho_solve((self._posterior.intercept_root, True), response)

    @cached_property
    def _complete_information(self):
        """Diagonal of R^-1 after the intercepts, (D - L,)."""
        return self._posterior.complete_information(self._posterior.effective_degrees_of_freedom)

    def _moved(self, coordinates, weights, columns):
        """Changes of statistics after the counts, from the responses of their coefficients."""
        response = self._response(coordinates, weights, columns)
        response *= self._complete_information[coordinates - self._posterior.n_labels, None]
        return response

    def moments(self, l, weights, columns):
        structure = self._structure
        moved = self._moved(structure.coefficient_index[l][1:], weights, columns)
        linear, quadratic, others = np.split(moved, np.cumsum([structure.n_features, structure.n_quadratic]))
        return linear, quadratic, others[0] if structure.has_scales else None

    def tails(self, weights, columns):
        block = self._structure.coefficient_blocks["tail"]
        return self._moved(np.arange(block.start, block.stop), weights, columns).T


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
        self._inverse = information.inverse_for(n_rows * posterior.n_labels)
        self._by_kernels = by_kernels and information.has_kernels and self._inverse is None

    def of_rows(self, rows, function, shape, tracked=untracked):
        """``function(responses, block)`` of all blocks of some rows in memory, as `ArrayRows.each`.

        Solving for rows may itself take passes over the training rows. It is then done here, for as many rows
        at once as memory allows. Otherwise the function is applied in one pass over the rows.
        """
        function = functools.partial(function, self)
        structure, n_labels = self.posterior.structure, self.posterior.n_labels
        n_of_scales = structure.has_scales + (structure.n_tails > 0)
        n_directions = n_labels + n_of_scales * structure.n_components
        if self._inverse is not None:
            # Only the rows of a block that two components share take part in the products.
            n_features = structure.n_component_features
            workload = Workload(2 * n_features, product=n_features // 2)
            return rows.each(function, shape, workload=workload, tracked=tracked)
        if self._by_kernels and not rows.has_holes:
            size = len(self._information.factor) + structure.n_features
            workload = Workload(n_labels * size, product=size)
            return rows.each(function, shape, workload=workload, tracked=tracked)
        out = np.empty((rows.n_samples, *shape))
        for block in rows.blocks(8 * len(self._information) * n_directions, tracked):
            out[block.index] = function(block).T
        return out

    def of_block(self, framed, used, with_scales=False):
        """`BlockResponses` of the rows of one block: OwnRows, bool array (L, n)."""
        return BlockResponses(self.posterior, framed, used, self._information, self._inverse, with_scales)

    def covariances(self, framed, used):
        """V_rho of the rows of one block, zero for labels that a row does not have: (L, L, n)."""
        information, posterior, structure = self._information, self.posterior, self.posterior.structure
        # Kernels are of rows, not of what is expected of rows with holes.
        if not self._by_kernels or framed.hidden is not None:
            return self.of_block(framed, used).covariances()
        # M^-1 = R + R B (I - B' R B)^-1 B' R.
        halves = np.zeros((len(used), len(information.factor), used.shape[1]))
        for k, columns in enumerate(map(np.flatnonzero, used)):
            if columns.size:
                own = framed.values[min(k, len(framed.values) - 1)]  # The background has none.
                kernels = information.factor.responses_to_rows(k, own[:, columns])
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
