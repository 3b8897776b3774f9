"""Influence functions of normal components, and responses to their rows (`mixtures.uncertainty`).

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

*Responses of rows.* Where few rows are ambiguous (`DualInformation`), V_rho needs kernels with these rows
alone, and no feature is formed for it. In 300 features these take a hundredth of the time.
"""

from functools import cached_property

import numpy as np

from sklearn_lrvb.answers.responses import BlockResponses, BlockStatistics, ResponsesOfRows
from sklearn_lrvb.gaussian.answers.scores_without_rows import scores_at
from sklearn_lrvb.gaussian.e_step.frames import OwnFrames, scale_directions
from sklearn_lrvb.mixture.responsibilities import (
    LEAST_RESPONSIVE_RESPONSIBILITY,
    centred_on_average,
    expect_in_range,
    expect_of_counted,
)
from sklearn_lrvb.rows import Workload, rows_in_cache, slices


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
        expectation = expect_of_counted(self._frames, block)
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


class NormalStatistics(BlockStatistics):
    """What rows of one block add to the sufficient statistics, as features, where nothing responds."""

    def moments(self, l, weights, columns):
        """Changes of a component's other statistics in its frame, as of features.

        (P, n), (Q, n), and (n,) of scales, which is None where rows have none
        """
        structure = self._posterior.structure
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


class NormalResponses(BlockResponses, NormalStatistics):
    """The same where all assignments respond, and the covariances of log densities.

    Where rows have scales, the directions in which features vary with them may come after the L labels.

    Parameters
    ----------
    frames : OwnFrames
    framed : OwnRows
    used : bool array (L, n), whether a row may have a label at all
    with_scales : bool, whether there are directions of scales
    """

    def __init__(self, frames, framed, used, information, inverse, with_scales):
        self._with_scales = with_scales
        super().__init__(frames, framed, used, information, inverse)

    def _add_directions(self):
        if not self._with_scales:
            return
        directions, rest = scale_directions(self._posterior, self._framed)
        own = [] if rest is None else list(np.sqrt(np.broadcast_to(rest, self._framed.scales.mean.shape)))
        for features in (*directions, *(deviations[None] for deviations in own)):
            self._kept[len(self._places) + len(self._kept)] = features
        index = self._posterior.structure.coefficient_index
        self._places += [*index, *(index[:, -1:] if own else [])]

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
        structure = self._posterior.structure
        moved = self._moved(structure.coefficient_index[l][1:], weights, columns)
        linear, quadratic, others = np.split(moved, np.cumsum([structure.n_features, structure.n_quadratic]))
        return linear, quadratic, others[0] if structure.has_scales else None

    def tails(self, weights, columns):
        block = self._posterior.structure.coefficient_blocks["tail"]
        return self._moved(np.arange(block.start, block.stop), weights, columns).T


class ResponsesOfNormalRows(ResponsesOfRows):
    """Responses of rows of normal components; parameters are those of `ResponsesOfRows`.

    Where M has the dual form, V_rho needs kernels of the rows with the columns of B only.
    """

    def __init__(self, information, posterior, n_rows, by_kernels=True):
        super().__init__(information, posterior, n_rows, by_kernels)
        structure = posterior.structure
        self.n_directions += (structure.has_scales + (structure.n_tails > 0)) * structure.n_components
        self._by_kernels = by_kernels and information.has_kernels and self._inverse is None

    def _workload(self, rows):
        if not self._by_kernels or rows.has_holes:
            return super()._workload(rows)
        size = len(self._information.factor) + self.posterior.n_features
        return Workload(self.posterior.n_labels * size, product=size)

    def of_block(self, framed, used, with_scales=False):
        return NormalResponses(self.frames, framed, used, self._information, self._inverse, with_scales)

    def resting(self, framed):
        return NormalStatistics(self.frames, framed)

    def scores_at(self, expectation, statistics, left_out):
        return scores_at(self.posterior, expectation, statistics, left_out)

    def without_rows(self, framed, used):
        structure = self.posterior.structure
        if structure.shares_precision:  # A row changes the scatter of all components.
            used[: structure.n_components] = used[: structure.n_components].any(axis=0)
        return self.of_block(framed, used, structure.has_scales)

    def covariances(self, framed, used):
        information, posterior, structure = self._information, self.posterior, self.posterior.structure
        # Kernels are of rows, not of what is expected of rows with holes.
        if not self._by_kernels or framed.hidden is not None:
            return super().covariances(framed, used)
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
