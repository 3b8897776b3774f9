"""Columns of B with G = B B', the missing information of unknown labels: few, where few rows are ambiguous.

They are the low-rank factor with which `sklearn_lrvb.linear_response.DualInformation` solves. Complete rows
have `AmbiguousColumns`, whose kernels need inner products of rows alone, and tables with holes
`ExpectedColumns`. `missing_information` computes G by other
means, where many rows are ambiguous.
"""

import functools
from abc import ABC, abstractmethod
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array

from sklearn_lrvb.gaussian_mixture.e_step.frames import OwnFrames
from sklearn_lrvb.gaussian_mixture.e_step.responsibilities import NEGLIGIBLE_INFORMATION, complements, expect
from sklearn_lrvb.gaussian_mixture.information.missing_information import information_of_rows
from sklearn_lrvb.row_blocks import batches, slices


class RowColumns(ABC):
    """B with G = B B': columns that belong to rows.

    Column (n, j) is a_nj,k h_nk in component k, where a_nj is column j of the Cholesky factor of
    w (diag(r) - r r'): the change of the assignment when component j is chosen or excluded, given that those
    before j are excluded.

    Parameters
    ----------
    posterior : VariationalPosterior
    row : int array (m,), the row of every column
    weights : (K, m), the vector a of every column
    """

    def __init__(self, posterior, row, weights):
        self._posterior = posterior
        self._row = row
        self.weights = weights

    def __len__(self):
        return len(self._row)

    def __getstate__(self):
        cached = {"_kept_features", "_rows_of_columns", "_rest"}  # These are cheap to form again.
        return {name: value for name, value in vars(self).items() if name not in cached}

    @property
    def nbytes(self):
        """Size in bytes of the arrays."""
        return sum(array.nbytes for array in self.to_arrays().values())

    @abstractmethod
    def to_arrays(self):
        """The arrays from which `from_arrays` rebuilds the columns: dict, str -> ndarray."""

    @property
    @abstractmethod
    def _n_rows(self):
        """Number of rows that have columns."""

    @property
    @abstractmethod
    def _features(self):
        """For each component, h_k of these rows, in batches: (F, n) each."""

    @property
    @abstractmethod
    def _batches(self):
        """The slices of the rows that these batches are."""

    def product(self, weights):
        """B weights: (m, c) -> (D, c)."""
        structure = self._posterior.structure
        product = np.zeros((structure.n_coefficients, weights.shape[1]))
        for k in range(structure.n_components):
            self._add_to_coefficients(product, k, self.component_product(k, weights))
        return product

    def _add_to_coefficients(self, coefficients, k, features):
        """Add the rows of component k, (F, c), to the coefficients that they belong to, (D, c)."""
        start = 0
        for own in self._posterior.structure.layout.coefficient_slices(k):
            stop = start + own.stop - own.start
            coefficients[own] += features[start:stop]
            start = stop

    def component_product(self, k, weights):
        """The rows of `product` that belong to component k: (m, c) -> (F, c)."""
        by_row = self._rows_of_columns[k] @ weights
        batches_of_features = zip(self._features[k], self._batches, strict=True)
        return functools.reduce(np.add, (features @ by_row[some] for features, some in batches_of_features))

    def transposed_product(self, array):
        """B' array: (D, c) -> (m, c)."""
        product = np.zeros((len(self), array.shape[1]))
        for k, rows_of_columns in enumerate(self._rows_of_columns):
            own = array[self._posterior.structure.layout.coefficient_index(k)]
            by_row = np.concatenate([features.T @ own for features in self._features[k]])
            product += rows_of_columns.T @ by_row
        return product

    @cached_property
    def _rows_of_columns(self):
        """For each component, the weight of every column at its row: K sparse arrays (n, m)."""
        shape = self._n_rows, len(self)
        positions = self._row, np.arange(len(self))
        return [csr_array((weights, positions), shape=shape) for weights in self.weights]


def negligible_information(rows, posterior):
    """Information of a column below which it may be left out: all that are left out are so together."""
    return NEGLIGIBLE_INFORMATION / (rows.n_samples * max(1, posterior.n_components - 1))


def columns_of_block(posterior, negligible, block, expectation):
    """The columns of a block's rows that are not negligible.

    Parameters
    ----------
    posterior : VariationalPosterior
    negligible : float, as from `negligible_information`
    block : RowBlock
    expectation : Expectation, of the block in `OwnFrames`

    Returns
    -------
    index : int array (n,), the block's rows that have columns
    row : int array (m,), the row of every column, as a position in ``index``
    weights : (K, m), the vector a of every column
    """
    r, squared = expectation.responsibilities, expectation.whitened.squares()
    # Intercepts and shared precisions correlate. So the squared norm of a row's features is bounded by K
    # times the sum of the squared norms in the K components.
    information = block.weighted(posterior.n_components * information_of_rows(posterior, squared))
    ambiguous = np.flatnonzero(np.einsum("kn,kn->n", r * complements(r), information) > negligible)
    weights = _assignment_cholesky(r[:, ambiguous])
    trace = np.einsum("kjn,kn->jn", np.square(weights), information[:, ambiguous])
    column, row = np.nonzero(trace > negligible)
    kept, row_of_column = np.unique(row, return_inverse=True)
    root_counts = np.sqrt(block.counts[ambiguous])
    return ambiguous[kept], row_of_column, weights[:, column, row] * root_counts[row]


def joined(row, weights, n_rows):
    """The rows of all columns and their weights, from those of the blocks, of which each has so many rows."""
    first = np.cumsum([0, *n_rows[:-1]])
    return np.concatenate([part + start for part, start in zip(row, first, strict=True)]), np.concatenate(
        weights, axis=1
    )


def _assignment_cholesky(responsibilities):
    """Cholesky factor of diag(r) - r r', without its last column of zeros: (K, n) -> (K, K - 1, n)."""
    n_components, n_rows = responsibilities.shape
    # Sum from the end: 1 minus a sum from the start would cancel for rows of almost certain assignment.
    tails = np.cumsum(responsibilities[::-1], axis=0)[::-1]
    cholesky = np.zeros((n_components, n_components - 1, n_rows))
    for j in range(n_components - 1):
        here, after, from_here = responsibilities[j], tails[j + 1], tails[j]
        is_positive = (after > 0) & (from_here > 0)
        scale = np.sqrt(np.divide(here * after, from_here, out=np.zeros(n_rows), where=is_positive))
        cholesky[j, j] = scale
        ratio = np.divide(scale, after, out=np.zeros(n_rows), where=is_positive)
        cholesky[j + 1 :, j] = -ratio * responsibilities[j + 1 :]
    return cholesky


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
        whitened, row, weights = zip(*rows.map(function, frames.numbers_per_row), strict=True)
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
