"""The dual solver where hyperparameters are learned: not knowing them loses information, as labels do.

*Mathematics.* With all labels known, the scaled system T' M T, where R = T T', is

    S_0 = [ I - A A'   -s ]        A : X -> sqrt(2/g') T' s(F_k X F_k'),  for C0
          [   -s'       1 ]        s = T' q / sqrt(R^-1 of log b0),       for b0

in the notation of `LearnedInformation` (s(.) are quadratic statistics, s is a vector, and c_k the effective
degrees of freedom of group k). The last coordinate is that of b0. A has a column for each of the Q quadratic
features of a group, P (P + 1)/2 of a matrix. A product with

    A'A : X -> sum_k Z_k X Z_k / (g' c_k),        Z_k = F_k' F_k = L' E(Lambda_k) L,

takes 4 K P^3 flops. Its largest eigenvalue is at most that of sum_k Z_k^2/(g' c_k), which is below one at the
optimum of C0: there Z_k is below c_k, and the sum of the Z_k below g'. So H = I - A'A is positive definite.
Up to a hundred columns it is factored; beyond that, conjugate gradients solve with it in five to twenty
products. With sigma = 1 - s' (I + A H^-1 A') s,

    S_0^-1 = [ I + A H^-1 A'  0 ] + w w',        w = ( (I + A H^-1 A') s, 1 ) / sqrt(sigma).
             [       0        0 ]

If all labels are certain, this is the inverse. Otherwise the rows' columns B are added as for given
hyperparameters, with R_0 = T S_0^-1 T' in place of R, which takes one solution with H for every column of B.
"""

from functools import cached_property

import numpy as np
from scipy.linalg import lapack

from sklearn_lrvb.gaussian.posterior.learned_prior import LearnedInformation
from sklearn_lrvb.linear_response.observed_information import MAX_DENSE_SIZE
from sklearn_lrvb.linear_response.solvers import (
    DualInformation,
    MatrixFreeInformation,
    PrimalInformation,
    conjugate_gradients,
)
from sklearn_lrvb.rows import batches
from sklearn_lrvb.symmetric_matrices import gram_root

# Largest size Q of H that is factored: 0.2 GB, and a second of work, as much as some hundred solutions by
# conjugate gradients take.
MOST_FACTORED = 5050
_TOLERANCE, _MOST_PRODUCTS = 1e-12, 1000  # Of conjugate gradients with H.
# The primal solver is used if at least this share of all coordinates are quadratic ones whose covariance is
# asked for.
_PRIMAL_FROM_SHARE = 1 / 2


class LearnedPriorInformation(DualInformation):
    """M from the columns B of rows without missing values, where hyperparameters are learned.

    Parameters
    ----------
    complete : CompleteInformation
    columns : RowColumns, of rows without missing values
    posterior : VariationalPosterior, with learned hyperparameters

    Attributes
    ----------
    has_definite_rest : bool
        Whether S_0 has been proved to be positive definite, as it is at the optimum of C0. If not, nothing
        but `by_other_solver` may be used.
    """

    def __init__(self, complete, columns, posterior):
        super().__init__(complete, columns)
        structure = self._structure = posterior.structure
        is_factored = not structure.parts.learns_covariance or structure.n_quadratic <= MOST_FACTORED
        self.has_kernels, self.has_determinant = is_factored, len(complete) <= MAX_DENSE_SIZE
        self._learned, self._origins = LearnedInformation(posterior), posterior.second_moment_origin
        blocks, deviations = structure.layout.blocks, complete.deviations
        self._of_b0, self._quadratic = blocks["mean_precision"], blocks["quadratic"]
        self._deviations = deviations[self._quadratic, None]
        self._scale = np.sqrt(2.0 / self._learned.own_freedom)
        roots = structure.transposed(posterior.whitened_prior_root)
        freedom = posterior.effective_degrees_of_freedom
        divisors = np.sqrt(self._learned.own_freedom * freedom)[structure.statistic_axes]
        self._precisions = structure.gram(roots) / divisors
        self._maps = posterior.whitened_prior_root
        self.has_definite_rest = self._is_definite_for_covariance()
        if not self.has_definite_rest:
            return
        # w, (D, 1), or (D, 0) where b0 is given.
        border = complete.times_root_transposed(self._learned.source[:, None]) * deviations[self._of_b0]
        image = border.copy()
        image[self._quadratic] += self._of_covariance(self._solved_for_covariance(border))
        sigma = 1.0 - np.einsum("dj,dj->j", border, image)
        image[self._of_b0] = 1.0
        self._border = image / np.sqrt(np.maximum(sigma, np.finfo(float).tiny))
        self.has_definite_rest = bool(np.all(sigma > 0.0))
        self._maps_of_rows = np.sqrt(0.5 * self._scale / freedom)[structure.statistic_axes] * roots
        self._add_columns()

    def _add_columns(self):
        """Subtract B' (R_0 - R) B from I - B' R B, and keep w' T' B and H^-1 A' T' B."""
        n_columns = len(self._matrix)
        self._border_of_columns = self._columns_times(self._border).T
        self._covariance_of_columns = np.zeros((self._structure.n_quadratic, n_columns))
        self._matrix -= self._border_of_columns.T @ self._border_of_columns
        if not self._structure.parts.learns_covariance:
            return
        for part in batches(n_columns, 8 * 8 * self._structure.identity.size):
            images = self._as_coordinates(self.factor.statistics(self._maps_of_rows, part))
            self._covariance_of_columns[:, part] = self._solved(images)
            before = self._covariance_of_columns[:, : part.stop]
            self._matrix[part, : part.stop] -= images.T @ before  # Only the lower triangle is used.

    def _is_definite_for_covariance(self):
        """Whether the bound on the eigenvalues of A'A proves that H is positive definite."""
        if not self._structure.parts.learns_covariance:
            return True
        bound = self._structure.gram(self._precisions).sum(axis=0)
        return self._structure.is_positive_definite(self._structure.identity - bound)

    # Products with A and H. Each of the m columns of a (Q, m) array is a change of C0: its unique entries,
    # those off the diagonal times the root of two, so that inner products are those of matrices.

    def _as_coordinates(self, covariances):
        """(m, ...) -> (Q, m)."""
        structure = self._structure
        return structure.flattened(covariances).reshape(-1, structure.n_quadratic).T

    def _as_covariances(self, changes):
        """(Q, m) -> (m, 1, ...)."""
        return self._structure.from_entries(changes.T / self._structure.entry_weights)[:, None]

    def _for_covariance(self, scaled):
        """A' scaled: (D, m) -> (Q, m)."""
        changes = self._learned.gathered(self._deviations * scaled[self._quadratic])
        return self._scale * self._as_coordinates(changes)

    def _of_covariance(self, changes):
        """A times changes, on its quadratic coordinates (the others are zero): (Q, m) -> (S Q, m)."""
        if not (self._structure.parts.learns_covariance and changes.shape[1]):
            return 0.0
        return self._scale * self._deviations * self._learned.spread(self._as_covariances(changes))

    def _columns_for(self, places):
        """Columns of A' T' for some quadratic coordinates, int array (n,), where H is factored: (Q, n).

        In the coordinates of the features T is diagonal, with entries sqrt(power/c_k), and A is T times the
        features' congruence by F_k over sqrt(power g').
        """
        structure, columns = self._structure, np.empty((self._structure.n_quadratic, len(places)))
        groups, entries = np.divmod(places, structure.n_quadratic)
        for group in np.unique(groups):
            own = groups == group
            maps = structure.features.congruences(self._maps[group][None])[0]
            columns[:, own] = maps[entries[own]].T
        variances = np.square(self._deviations[places, 0])
        return columns * (variances / np.sqrt(structure.power * self._learned.own_freedom))

    @cached_property
    def _factor(self):
        """Lower factor of H, (Q, Q), or None where it is too large."""
        structure = self._structure
        if not self.has_kernels:
            return None
        system = np.eye(structure.n_quadratic)
        for precision in self._precisions:
            system -= structure.features.congruences(precision[None])[0]
        return np.linalg.cholesky(system)

    def _times_h(self, changes):
        covariances = self._as_covariances(changes)
        product = covariances.copy()
        for precision in self._precisions:
            product -= self._structure.congruence(precision[None], covariances)
        return self._as_coordinates(product)

    def _solved(self, changes):
        """H^-1 changes."""
        if self._factor is None:
            return conjugate_gradients(self._times_h, changes, _TOLERANCE, _MOST_PRODUCTS)[0]
        return lapack.dpotrs(self._factor.T, changes, lower=False)[0]

    def _solved_for_covariance(self, scaled):
        """H^-1 A' scaled: (D, m) -> (Q, m)."""
        if not (self._structure.parts.learns_covariance and scaled[self._quadratic].any()):
            return np.zeros((self._structure.n_quadratic, scaled.shape[1]))
        return self._solved(self._for_covariance(scaled))

    # The dual solver with R_0 in place of R.

    def _with_labels(self, scaled, for_covariance):
        """S_0^-1 scaled, given H^-1 A' scaled: (D, m), (Q, m) -> (D, m)."""
        solution = self._border @ (self._border.T @ scaled)
        scaled = scaled.copy()
        scaled[self._of_b0] = 0.0
        scaled[self._quadratic] += self._of_covariance(for_covariance)
        return scaled + solution

    def _solve_scaled(self, scaled):
        for_covariance = self._solved_for_covariance(scaled)
        solution = self._with_labels(scaled, for_covariance)
        if not len(self._matrix):
            return solution
        weights = self._solve_both(self._columns_times(solution))
        for_covariance = for_covariance + self._covariance_of_columns @ weights
        return self._with_labels(scaled + self._times_columns(weights), for_covariance)

    @property
    def half_size(self):
        """As of the dual solver."""
        n_covariances = self._structure.n_quadratic * self._structure.parts.learns_covariance
        return len(self._matrix) + self._border.shape[1] + n_covariances

    def half_of_rows(self, label, rows):
        """As of the dual solver. The rows of z are those of b0, of C0 and of unknown labels."""
        self.require_positive_definite()
        structure, layout = self._structure, self._structure.layout
        of_labels, features = self.factor.responses_to_rows(label, rows), np.ones((1, rows.shape[1]))
        of_covariance = np.zeros((structure.n_quadratic * structure.parts.learns_covariance, rows.shape[1]))
        if label < structure.n_components:  # A row of the noise component tells nothing of C0.
            group = slice(layout.group_of(label), layout.group_of(label) + 1)
            origin, maps = self._origins[group], self._maps_of_rows[group]
            features = structure.features.of_component(rows, origin[0])
            if len(of_covariance):
                vectors = structure.transformed(maps, rows.T[:, None])[:, 0]
                statistics = structure.statistic_by_row(vectors.T) - structure.congruence(maps, origin)
                images = self._as_coordinates(statistics)
                of_labels += self._covariance_of_columns.T @ images
                of_covariance = lapack.dtrtrs(self._factor.T, images, lower=False, trans=1)[0]
        of_b0 = self.complete.times_root(self._border)[layout.places_of_labels[label]].T @ features
        of_labels += self._border_of_columns.T @ of_b0
        return np.concatenate([of_b0, of_covariance, self._solve_lower(of_labels)])

    def inverse_for(self, n_targets):
        """M^-1 where it takes less time than to solve for so many targets, and is not too large; or None."""
        structure, size, n_columns = self._structure, len(self), len(self._matrix)
        of_target = 4 * size * n_columns + 2 * n_columns**2 + 4 * structure.n_quadratic**2
        of_target += 8 * structure.n_groups * structure.n_features**3 * structure.is_matrix
        is_formed = size**3 < n_targets * of_target and size <= MAX_DENSE_SIZE
        return self.by_other_solver.inverse_for(max(n_targets, size)) if is_formed else None

    def _covariance_root(self, index):
        first, stop, _ = self._quadratic.indices(len(self))
        places = np.flatnonzero((index >= first) & (index < stop))
        if _PRIMAL_FROM_SHARE * len(self) <= len(places) and len(self) <= MAX_DENSE_SIZE:
            return self.by_other_solver.covariance_root(index)
        known = self.complete.covariance_root(index)
        known[:, np.isin(index, np.arange(len(self))[self._of_b0])] = 0.0
        border = self.complete.times_root(self._border)[index].T
        responses = self.factor.responses(index) + self._border_of_columns.T @ border
        parts = [known, border]
        if self._structure.parts.learns_covariance and places.size:
            root, of_columns = self._root_for_covariance(index[places] - first)
            responses[:, places] += of_columns
            parts.append(np.zeros((len(root), len(index))))
            parts[-1][:, places] = root
        return np.concatenate([*parts, self._solve_lower(responses)])

    def _root_for_covariance(self, places):
        """Y with Y'Y = T A H^-1 A' T' on some quadratic coordinates, (m, n); and B' T A H^-1 A' T' there."""
        if self._factor is not None:
            columns = self._columns_for(places)
            root = lapack.dtrtrs(self._factor.T, columns, lower=False, trans=1)[0]
            return root, self._covariance_of_columns.T @ columns
        gram, of_columns = np.empty((len(places), len(places))), np.empty((len(self._matrix), len(places)))
        for part in batches(len(places), 8 * 4 * len(self)):
            units = np.zeros((len(self), len(places[part])))
            deviations = self._deviations[places[part], 0]
            units[places[part] + self._quadratic.start, np.arange(units.shape[1])] = deviations
            columns = self._for_covariance(units)
            gram[:, part] = (self._deviations * self._of_covariance(self._solved(columns)))[places]
            of_columns[:, part] = self._covariance_of_columns.T @ columns
        return gram_root(gram), of_columns

    # What the other solvers do, which need G itself.

    def _missing_product(self, coefficients):
        """G coefficients: (D, m) -> (D, m)."""
        of_rows = self.factor.product(self.factor.transposed_product(coefficients))
        return of_rows + self._learned.product(coefficients)

    def _scaled_product(self, array):
        return array - self.complete.times_root_transposed(
            self._missing_product(self.complete.times_root(array))
        )

    @cached_property
    def by_other_solver(self):
        """The same information by the primal solver, or the matrix-free one where that is too large."""
        if len(self) > MAX_DENSE_SIZE:
            return MatrixFreeInformation(self.complete, self._missing_product)
        columns = self.factor.product(np.eye(len(self._matrix)))
        missing = columns @ columns.T
        self._learned.add_to(missing)
        return PrimalInformation(self.complete, missing)

    def smallest_eigenvalue(self):
        """As of every solver."""
        return self.by_other_solver.smallest_eigenvalue()

    @property
    def log_determinant(self):
        """As of every solver that factors a matrix."""
        return self.by_other_solver.log_determinant

    @property
    def root(self):
        """As of every solver."""
        return self.by_other_solver.root

    def _scaled_system(self):
        return self.by_other_solver._scaled_system()

    def _inverse_root_times(self, scaled):
        return self.by_other_solver._inverse_root_times(scaled)
