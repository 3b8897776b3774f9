"""The columns of B of complete rows, whose kernels need inner products of rows alone."""

import functools
from functools import cached_property

import numpy as np

from sklearn_lrvb.gaussian_mixture.e_step.frames import OwnFrames
from sklearn_lrvb.gaussian_mixture.e_step.responsibilities import expect
from sklearn_lrvb.gaussian_mixture.information.row_columns import (
    RowColumns,
    columns_of_block,
    joined,
    negligible_information,
)
from sklearn_lrvb.row_blocks import batches, slices

# Rows of the kernel that are formed at once: enough for a fast product, and few enough to stay in cache.
_KERNEL_ROWS_AT_ONCE = 512


class AmbiguousColumns(RowColumns):
    """The columns of complete rows: for every row up to K - 1, those that are not negligible.

    Parameters
    ----------
    posterior : VariationalPosterior
    whitened : (K, P, n), ambiguous rows in every component's frame
    row : int array (m,), the row of every column
    weights : (K, m), the vector a of every column
    """

    def __init__(self, posterior, whitened, row, weights):
        super().__init__(posterior, row, weights)
        self._whitened = whitened

    @classmethod
    def of_rows(cls, rows, posterior):
        """The columns at a posterior, by one pass over the rows.

        They take K P numbers for every ambiguous row.

        Parameters
        ----------
        rows : CentredRows, complete
        posterior : VariationalPosterior
        """
        frames = OwnFrames(posterior)
        negligible = negligible_information(rows, posterior)
        function = functools.partial(_columns_of_block, posterior, frames, negligible)
        whitened, row, weights = zip(*rows.gathered(function, frames.numbers_per_row), strict=True)
        return cls(
            posterior,
            # Indexing has left the rows in another memory order, which would slow products down.
            np.ascontiguousarray(np.concatenate(whitened, axis=2)),
            *joined(row, weights, [part.shape[2] for part in whitened]),
        )

    def to_arrays(self):
        return {"whitened": self._whitened, "row": self._row, "weights": self.weights}

    @classmethod
    def from_arrays(cls, posterior, arrays):
        """Inverse of `to_arrays`, given the posterior."""
        return cls(posterior, arrays["whitened"], arrays["row"], arrays["weights"])

    def kernel(self):
        """B' R B, (m, m), from inner products of rows alone."""
        posterior, structure = self._posterior, self._posterior.structure
        intercepts = posterior.intercept_root.T @ self.weights
        kernel = intercepts.T @ intercepts
        for k in range(posterior.n_components):
            for l in structure.layout.components_sharing_precision(k):
                self._add_component_kernel(kernel, k, l)
        return 0.5 * (kernel + kernel.T)

    def _add_component_kernel(self, kernel, k, l):
        """Add the products of the features of components k and l, which share a precision group."""
        used, others = (np.flatnonzero(self.weights[component]) for component in (k, l))
        rows, other_rows = self._whitened[k][:, self._row[used]], self._whitened[l][:, self._row[others]]
        for some in slices(used.size, _KERNEL_ROWS_AT_ONCE):
            products = self._feature_products(k, l, rows[:, some], other_rows)
            products *= self.weights[k, used[some], None]
            products *= self.weights[l, others]
            kernel[np.ix_(used[some], others)] += products

    def _feature_products(self, k, l, rows, others):
        """h_k' R h_l without the intercepts, of two components of one group: (P, n), (P, m) -> (n, m)."""
        posterior, structure = self._posterior, self._posterior.structure
        group = structure.layout.precision_group(k)
        inner_products = rows.T @ others
        products = structure.quadratic_kernel(
            rows, others, inner_products, posterior.second_moment_origin[group]
        )
        products *= structure.power / posterior.effective_degrees_of_freedom[group]
        if k == l:
            inner_products /= posterior.mean_precision[k]
            products += inner_products
        return products

    def responses_to_rows(self, k, whitened):
        """B' R h_k of other rows, in the frame of component k: (P, n) -> (m, n)."""
        root = self._posterior.intercept_root
        responses = np.repeat((root[k] @ (root.T @ self.weights))[:, None], whitened.shape[1], axis=1)
        for l in self._posterior.structure.layout.components_sharing_precision(k):
            products = self._feature_products(k, l, whitened, self._whitened[l])
            responses += self.weights[l][:, None] * products.T[self._row]
        return responses

    def responses(self, index):
        """B' R[:, index], (m, len(index))."""
        posterior, structure = self._posterior, self._posterior.structure
        index, blocks = np.asarray(index), structure.layout.coefficient_blocks
        responses = np.zeros((len(self), len(index)))
        variance = 1.0 / structure.complete_information(
            posterior.mean_precision, posterior.effective_degrees_of_freedom
        )
        intercept = np.flatnonzero(index < blocks["intercept"].stop)
        counts = posterior.intercept_root @ (posterior.intercept_root.T @ self.weights)
        responses[:, intercept] = counts[index[intercept]].T
        group_of_entry, entry = np.divmod(index - blocks["quadratic"].start, structure.n_quadratic)
        component, feature = np.divmod(index - blocks["linear"].start, structure.n_features)
        in_diagonal = index - blocks["intercept"].stop  # Position in the diagonal of R after the intercepts.
        for k, weights in enumerate(self.weights):
            rows, group = self._whitened[k][:, self._row], structure.layout.precision_group(k)
            linear = np.flatnonzero(component == k)
            responses[:, linear] += (rows[feature[linear]] * weights).T
            quadratic = np.flatnonzero(group_of_entry == group)
            origin = posterior.second_moment_origin[group]
            entries = structure.quadratic_entries(rows, origin, entry[quadratic])
            entries *= weights
            responses[:, quadratic] += entries.T
        diagonal = np.flatnonzero(in_diagonal >= 0)
        responses[:, diagonal] *= variance[in_diagonal[diagonal]]
        return responses

    @property
    def _n_rows(self):
        return self._whitened.shape[2]

    @property
    def _batches(self):
        structure, n_rows = self._posterior.structure, self._n_rows
        n_features = structure.n_components * (1 + structure.n_features + structure.n_quadratic)
        # Up to three temporary arrays of the same size are needed to form them.
        return batches(n_rows, 4 * 8 * n_features) or [slice(0, 0)]

    @property
    def _features(self):
        # They are kept if there is one batch.
        if len(self._batches) > 1:
            return [self._batches_of_features(k) for k in range(len(self.weights))]
        return self._kept_features

    @cached_property
    def _kept_features(self):
        return [list(self._batches_of_features(k)) for k in range(len(self.weights))]

    def _batches_of_features(self, k):
        structure = self._posterior.structure
        origin = self._posterior.second_moment_origin[structure.layout.precision_group(k)]
        for some in self._batches:
            yield structure.component_features(self._whitened[k][:, some], origin)


def _columns_of_block(posterior, frames, negligible, block):
    """Whitened ambiguous rows of a block (K, P, n), the row of each column (m,), and its weights (K, m)."""
    expectation = expect(frames, block)
    index, row, weights = columns_of_block(posterior, negligible, block, expectation)
    return expectation.whitened.values[:, :, index], row, weights
