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

import numpy as np

from sklearn_lrvb.answers.influence import InfluenceFunctions
from sklearn_lrvb.answers.responses import ResponsesOfRows
from sklearn_lrvb.gaussian.answers.scores_without_rows import scores_at
from sklearn_lrvb.gaussian.e_step.coordinates import scale_directions
from sklearn_lrvb.mixture.e_step import LEAST_RESPONSIVE_RESPONSIBILITY, centred_on_average, expect_in_range
from sklearn_lrvb.rows import Workload, rows_in_cache, slices


class NormalInfluenceFunctions(InfluenceFunctions):
    """f_j for the rows j of ``coefficients``.

    Parameters
    ----------
    posterior : VariationalPosterior
    coefficients : (d, D), rows of J M^-1
    """

    def __init__(self, posterior, coefficients):
        super().__init__(posterior, coefficients)
        structure = posterior.structure
        constant, linear, curvature, *scale_constants = structure.features.polynomials(
            coefficients, posterior.second_moment_origin
        )
        self._constant, self._linear, self._curvature = constant, linear, curvature
        self._tail_coefficients = coefficients[:, structure.layout.blocks["tail"]]
        self._write_gradients = structure.features.gradients(posterior.whiteners, linear, curvature)
        starts = scale_constants[0] if scale_constants else constant
        self._polynomials = [
            structure.features.values(starts[:, k], linear[:, k], curvature[:, structure.layout.group_of(k)])
            for k in range(posterior.n_components)
        ]
        # A row's second moments, or the values in all components.
        per_row = max(structure.n_quadratic, constant.size)
        self.workload = Workload(per_row, product=structure.n_quadratic)

    def values_of_label(self, k, whitened):
        if k == len(self._polynomials):  # The noise component.
            return self._constant[:, k:]
        if whitened.scales is None:
            return self._polynomials[k](whitened.values[k], whitened.spread(k))
        values = whitened.scales.mean[k] * self._slopes(k, whitened) + self._constant[:, k, None]
        if whitened.directions is not None:
            structure = self._posterior.structure
            curvature = self._curvature[:, structure.layout.group_of(k)]
            values += structure.features.entry_coefficients(curvature) @ whitened.projections(k)
        if self._tail_coefficients.size:
            features = self._posterior.tails.expected_feature(whitened.scales)[k]
            values += self._tail_coefficient(k)[:, None] * features
        return values

    def _slopes(self, k, whitened):
        """q of rows that have scales, in component k: (d, n)."""
        noise = whitened.noise_of_missing_values(k)
        return self._polynomials[k](whitened.values[k], None if noise is None else -noise)

    def _tail_coefficient(self, k):
        """Coefficients of the feature of nu in component k, (d,)."""
        return self._tail_coefficients[:, k if self._posterior.structure.n_tails > 1 else 0]

    def gradients(self, block, out):
        expectation = expect_in_range(self._coordinates, block)
        r, whitened = expectation.responsibilities, expectation.represented
        probabilities = r[: len(whitened.values)]
        scaled = probabilities if whitened.scales is None else probabilities * whitened.scales.mean
        if whitened.directions is None:
            self._write_gradients(scaled, whitened.values, out)
        else:
            self._write_gradients_of_seen(scaled, whitened, out)
        is_responsive = np.count_nonzero(r > LEAST_RESPONSIVE_RESPONSIBILITY, axis=0) > 1
        # Without copies: half of the time in two dimensions.
        if whitened.scales is not None or is_responsive.all():
            self._add_changes_of_weights(r, whitened, out)
        elif is_responsive.any():
            some = np.flatnonzero(is_responsive)
            part = out[some]
            self._add_changes_of_weights(r[:, some], whitened.selected(some), part)
            out[some] = part
        if whitened.directions is not None:
            out[np.broadcast_to((block.seen == 0).T[:, None], out.shape)] = np.nan

    def _write_gradients_of_seen(self, r, whitened, out):
        """Sums over components of r W'(I - Pi)(b + 2 B y) of rows with missing values, written to (n, d, P).

        Only what is seen moves the expectation of y, along the directions that no missing value makes up for.
        """
        posterior, directions = self._posterior, whitened.directions
        for number, (linear, curvature) in enumerate(zip(self._linear, self._curvature, strict=True)):
            slopes = linear[:, :, None] + 2.0 * directions.mapped(curvature, whitened.values)
            slopes -= directions.onto(slopes)
            slopes *= r[:, None]
            out[:, number] = posterior.structure.pulled_back(posterior.whiteners, slopes).sum(axis=0)

    def _add_changes_of_weights(self, r, whitened, out):
        """Add what changes of the responsibilities and of the scales do.

        With d rho_k/dx = -E u_k W'y_k they are

            sum_k p_jk dr_k/dx = sum_k p_jk r_k (d rho_k - sum_l r_l d rho_l),
            sum_k r_k (q_jk dE u_k/dx + c dE phi_k/dx) = -sum_k r_k (q_jk Var u_k + c Cov(u_k, phi_k)) W'y_k.
        """
        posterior, scales, n_components = self._posterior, whitened.scales, len(whitened.values)
        directions = posterior.structure.pulled_back(posterior.whiteners, whitened.values)
        slopes = np.zeros((len(r), *directions.shape[1:]))  # The noise component's density is constant.
        np.negative(directions, out=slopes[:n_components])
        if scales is not None:
            slopes[:n_components] *= scales.mean[:, :, None]
        slopes = centred_on_average(slopes, r)
        slopes *= r[:, :, None]
        if scales is not None:
            slopes = np.concatenate([slopes, -r[:n_components, :, None] * directions])
        values = np.empty((len(slopes), whitened.n_rows, self.n_functions))
        for k in range(len(r)):
            values[k] = self.values_of_label(k, whitened).T
        for k, own in enumerate(values[len(r) :]):
            own[...] = (scales.variance[k] * self._slopes(k, whitened)).T
            if self._tail_coefficients.size:
                covariances = posterior.tails.covariances_with_scale(scales)[0][k]
                own += covariances[:, None] * self._tail_coefficient(k)
        values, slopes = values.transpose(1, 2, 0), slopes.transpose(1, 0, 2)
        # The products of few rows at a time stay in cache.
        for few in slices(len(out), rows_in_cache(2 * out[0].size, least=1)):
            out[few] += values[few] @ slopes[few]


class ResponsesOfNormalRows(ResponsesOfRows):
    """Responses of rows of normal components; parameters are those of `ResponsesOfRows`.

    Where M has the dual form, V_rho needs kernels of the rows with the columns of B only.
    """

    def __init__(self, information, posterior, n_rows, by_kernels=True):
        super().__init__(information, posterior, n_rows, by_kernels)
        structure = posterior.structure
        self.n_directions += (structure.has_scales + (structure.n_tails > 0)) * structure.n_components

    def _workload(self, rows):
        if not self._by_kernels or rows.has_missing:
            return super()._workload(rows)
        size = self.information.half_size + self.posterior.n_features
        return Workload(self.posterior.n_labels * size, product=size)

    def without_rows(self, whitened, used):
        structure = self.posterior.structure
        if structure.shares_precision:  # A row changes the scatter of all components.
            used[: structure.n_components] = used[: structure.n_components].any(axis=0)
        return super().without_rows(whitened, used)

    def directions(self, whitened):
        """Those in which features vary with the scales, of all components, and then those of nu alone."""
        if whitened.scales is None:
            return ()
        index = self.posterior.structure.layout.places_of_components
        directions, rest = scale_directions(self.posterior, whitened)
        pairs = list(zip(directions, index, strict=True))
        if rest is not None:
            deviations = np.sqrt(np.broadcast_to(rest, whitened.scales.mean.shape))
            pairs += zip(deviations[:, None], index[:, -1:], strict=True)
        return pairs

    def complete_product(self, coordinates, coefficients):
        posterior = self.posterior
        diagonal = posterior.complete_information(posterior.effective_degrees_of_freedom)
        return coefficients * diagonal[coordinates - posterior.n_labels, None]

    def scores_at(self, expectation, statistics, left_out):
        return scores_at(self.posterior, expectation, statistics, left_out)

    def covariances(self, whitened, used):
        information, posterior, structure = self.information, self.posterior, self.posterior.structure
        # Kernels are of rows, not of what is expected of rows with missing values.
        if not self._by_kernels or whitened.directions is not None:
            return super().covariances(whitened, used)
        covariances, halves = np.zeros((len(used), *used.shape)), []
        for k, columns in enumerate(map(np.flatnonzero, used)):
            own = whitened.values[min(k, len(whitened.values) - 1)]  # The noise component has none.
            halves.append(np.zeros((information.half_size, used.shape[1])))
            if columns.size:
                halves[k][:, columns] = information.half_of_rows(k, own[:, columns])
            for l in range(k + 1):
                both = np.flatnonzero(used[k] & used[l])
                covariances[k, l, both] = np.einsum("mn,mn->n", halves[k][:, both], halves[l][:, both])
                covariances[l, k] = covariances[k, l]
        covariances += (posterior.intercept_root @ posterior.intercept_root.T)[:, :, None]
        for k, rows in enumerate(whitened.values):
            covariances[k, k] += np.einsum("pn,pn->n", rows, rows) / posterior.mean_precision[k]
            group = structure.layout.group_of(k)
            variance = structure.power / posterior.effective_degrees_of_freedom[group]
            for l in structure.layout.members(group):
                origin = posterior.second_moment_origin[group]
                products = structure.features.products_by_row(rows, whitened.values[l], origin)
                covariances[k, l] += variance * products
        return covariances * (used[:, None] & used)
