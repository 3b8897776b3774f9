"""Columns of B with G = B B', the missing information of unknown labels: few, where few rows are ambiguous.

They are the low-rank factor with which the dual solver of `sklearn_lrvb.linear_response` solves. Where
precisions are numbers, missing values take a diagonal C from R^-1 besides (`missing_value_information`). The
features of rows with missing values are then their expectations, and R is that of what C leaves, R^-1 - C.
"""

import functools
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array

from sklearn_lrvb.gaussian.e_step.coordinates import OwnCoordinates
from sklearn_lrvb.gaussian.information.missing_information import information_of_rows
from sklearn_lrvb.gaussian.information.missing_value_information import MissingValueScaleInformation
from sklearn_lrvb.linear_response.solvers import REMAINING
from sklearn_lrvb.mixture.e_step import NEGLIGIBLE_INFORMATION, complements, expect
from sklearn_lrvb.rows import added, batches, slices

# Rows of the kernel that are formed at once: enough for a fast product, and few enough to stay in cache.
_KERNEL_ROWS_AT_ONCE = 512
_KEPT_BYTES = 2**27  # Features of the rows are kept if they take no more memory.


class RowColumns:
    """B with G = B B': for every row up to L - 1 columns, those that are not negligible.

    Column (n, j) is a_nj,k h_nk in component k, where a_nj is column j of the Cholesky factor of
    w (diag(r) - r r'): the change of the assignment when component j is chosen or excluded, given that those
    before j are excluded.

    Parameters
    ----------
    posterior : VariationalPosterior
    whitened : (K, P, n), ambiguous rows in every component's whitened coordinates
    row : int array (m,), the row of every column
    weights : (L, m), the vector a of every column
    spread : (K, Q, n), the entries of the missing values' spread in every component; None for complete rows
    shares : (D,), shares of R^-1 that missing values leave; None for all
    """

    def __init__(self, posterior, whitened, row, weights, spread=None, shares=None):
        self._posterior = posterior
        self._whitened, self._row, self.weights = whitened, row, weights
        self._spread, self.shares = spread, shares

    @classmethod
    def of_rows(cls, rows, posterior, missing_values=True):
        """The columns at a posterior, by one pass over the rows.

        They take K P numbers for every ambiguous row.

        Parameters
        ----------
        rows : Rows; complete, unless precisions are numbers
        posterior : VariationalPosterior
        missing_values : bool, default=True
            Whether missing values take information. If not, all shares are one.
        """
        coordinates = OwnCoordinates(posterior)
        # All columns that are left out are negligible together.
        negligible = NEGLIGIBLE_INFORMATION / (rows.n_samples * max(1, posterior.n_labels - 1))
        function = functools.partial(_columns_of_block, coordinates, rows.has_missing, negligible)
        whitened, spread, row, weights, sums = zip(*rows.map(function, coordinates.workload), strict=True)
        first = np.cumsum([0, *(part.shape[2] for part in whitened[:-1])])
        shares = None
        if rows.has_missing:
            spread, shares = np.concatenate(spread, axis=2), np.ones(posterior.n_coefficients)
            if missing_values:
                information = MissingValueScaleInformation(posterior.structure)
                taken = information.diagonal(functools.reduce(added, sums))[posterior.n_labels :]
                shares[posterior.n_labels :] -= taken / _complete_information(posterior)
        return cls(
            posterior,
            # Indexing has left the rows in another memory order, which would slow products down.
            np.ascontiguousarray(np.concatenate(whitened, axis=2)),
            np.concatenate([part + start for part, start in zip(row, first, strict=True)]),
            np.concatenate(weights, axis=1),
            spread if rows.has_missing else None,
            shares,
        )

    def __len__(self):
        return len(self._row)

    def __getstate__(self):
        # These are cheap to form again.
        cached = {"_kept_features", "_rows_of_columns", "_variances", "_columns"}
        return {name: value for name, value in vars(self).items() if name not in cached}

    def to_arrays(self):
        """The arrays from which `from_arrays` rebuilds the columns, except the shares: dict by name."""
        arrays = {"whitened": self._whitened, "row": self._row, "weights": self.weights}
        return arrays if self._spread is None else arrays | {"spread": self._spread}

    @classmethod
    def from_arrays(cls, posterior, arrays):
        """Inverse of `to_arrays`, given the posterior; the shares, if any, are there under `REMAINING`."""
        own = (arrays[name] for name in ("whitened", "row", "weights"))
        return cls(posterior, *own, arrays.get("spread"), arrays.get(REMAINING))

    # Products, from the features of the rows.

    def product(self, weights):
        """B weights: (m, c) -> (D, c)."""
        structure = self._posterior.structure
        product = np.zeros((structure.layout.n_coefficients, weights.shape[1]))
        for k, own in enumerate(structure.layout.places_of_labels):
            by_row = self._rows_of_columns[k] @ weights
            parts = (features @ by_row[some] for some, features in self._features(k))
            product[own] += functools.reduce(np.add, parts)
        return product

    def transposed_product(self, array):
        """B' array: (D, c) -> (m, c)."""
        product = np.zeros((len(self), array.shape[1]))
        for k, rows_of_columns in enumerate(self._rows_of_columns):
            own = array[self._posterior.structure.layout.places_of_labels[k]]
            by_row = np.concatenate([features.T @ own for _, features in self._features(k)])
            product += rows_of_columns.T @ by_row
        return product

    @cached_property
    def _rows_of_columns(self):
        """For each label, the weight of every column at its row: L sparse arrays (n, m)."""
        shape = self._whitened.shape[2], len(self)
        positions = self._row, np.arange(len(self))
        return [csr_array((weights, positions), shape=shape) for weights in self.weights]

    def _features(self, k):
        """Batches of the rows and their features with label k, (F, n) each; one that is kept if small."""
        n_features, n_rows = self._posterior.structure.n_component_features, self._whitened.shape[2]
        if 8 * n_rows * self._posterior.n_labels * n_features <= _KEPT_BYTES:
            return [(slice(n_rows), self._kept_features[k])]
        # Up to three temporary arrays of the same size are needed to form them.
        return ((batch, self._features_of(k, batch)) for batch in batches(n_rows, 4 * 8 * n_features))

    @cached_property
    def _kept_features(self):
        return [self._features_of(k, slice(None)) for k in range(len(self.weights))]

    def _features_of(self, k, some):
        if k == self._posterior.n_components:  # The noise component.
            return np.ones((1, self._whitened[0][0, some].size))
        spread = None if self._spread is None else self._spread[k][:, some]
        rows = self._whitened[k][:, some]
        return self._posterior.structure.features.of_component(rows, self._origin(k), spread)

    def _origin(self, k):
        return self._posterior.second_moment_origin[self._posterior.structure.layout.group_of(k)]

    def statistics(self, maps, some):
        """Sums over the components of a (s(V y) - V O V') of some columns: V (S, ...) -> (m, ...)."""
        structure = self._posterior.structure
        vectors = structure.transformed(maps, np.moveaxis(self._whitened, 2, 0)[self._row[some]])
        origins = structure.congruence(maps, self._posterior.second_moment_origin)
        sums = np.zeros((len(vectors), *structure.identity.shape))
        for k, weights in enumerate(self.weights[: structure.n_components, some]):
            statistics = structure.statistic_by_row(vectors[:, k].T)
            statistics -= origins[structure.layout.group_of(k)]
            sums += weights[structure.statistic_axes] * statistics
        return sums

    # Products with R.

    @cached_property
    def _variances(self):
        """The diagonal of R after the intercepts, (D - L,)."""
        complete = _complete_information(self._posterior)
        return 1.0 / (complete if self.shares is None else complete * self.shares[-len(complete) :])

    def kernel(self):
        """B' R B, (m, m); for precision matrices from inner products of rows alone."""
        structure, intercepts = self._posterior.structure, self._posterior.intercept_root.T @ self.weights
        kernel = intercepts.T @ intercepts
        if not structure.is_matrix:
            root = np.sqrt(self._variances)[:, None] * self._columns[structure.n_labels :]
            return kernel + root.T @ root
        for k in range(structure.n_components):
            for l in structure.layout.members(structure.layout.group_of(k)):
                used, others = (np.flatnonzero(self.weights[component]) for component in (k, l))
                rows = self._whitened[k][:, self._row[used]]
                other_rows = self._whitened[l][:, self._row[others]]
                for some in slices(used.size, _KERNEL_ROWS_AT_ONCE):
                    products = self._feature_products(k, l, rows[:, some], other_rows)
                    products *= self.weights[k, used[some], None]
                    products *= self.weights[l, others]
                    kernel[np.ix_(used[some], others)] += products
        return 0.5 * (kernel + kernel.T)

    @cached_property
    def _columns(self):
        """B, (D, m), of structures with few features."""
        structure = self._posterior.structure
        columns = np.zeros((structure.layout.n_coefficients, len(self)))
        for k, rows_of_columns in enumerate(self._rows_of_columns):
            own = self._features_of(k, slice(None)) @ rows_of_columns
            columns[structure.layout.places_of_labels[k]] += own
        return columns

    def _feature_products(self, k, l, rows, others):
        """h_k' R h_l without the intercepts, of two components of one group: (P, n), (P, m) -> (n, m)."""
        posterior, structure = self._posterior, self._posterior.structure
        inner_products = rows.T @ others
        products = structure.features.kernel(rows, others, inner_products, self._origin(k))
        group = structure.layout.group_of(k)
        products *= structure.power / posterior.effective_degrees_of_freedom[group]
        if k == l:
            inner_products /= posterior.mean_precision[k]
            products += inner_products
        return products

    def responses_to_rows(self, k, whitened):
        """B' R h_k of other rows, in the coordinates of component k; all rows complete: (P, n) -> (m, n).

        The noise component has no coordinates of its own.
        """
        root = self._posterior.intercept_root
        responses = np.repeat((root[k] @ (root.T @ self.weights))[:, None], whitened.shape[1], axis=1)
        if k == self._posterior.n_components:
            return responses
        layout = self._posterior.structure.layout
        for l in layout.members(layout.group_of(k)):
            products = self._feature_products(k, l, whitened, self._whitened[l])
            responses += self.weights[l][:, None] * products.T[self._row]
        return responses

    def responses(self, index):
        """B' R[:, index], (m, len(index))."""
        structure, root, index = self._posterior.structure, self._posterior.intercept_root, np.asarray(index)
        n_labels = structure.n_labels
        responses = np.zeros((len(self), len(index)))
        intercept, others = np.flatnonzero(index < n_labels), np.flatnonzero(index >= n_labels)
        responses[:, intercept] = (root[index[intercept]] @ (root.T @ self.weights)).T
        if not structure.is_matrix:
            responses[:, others] = self._columns[index[others]].T
        else:  # A few of the many features of a component.
            blocks = structure.layout.blocks
            group_of_entry, entry = np.divmod(index - blocks["quadratic"].start, structure.n_quadratic)
            component, feature = np.divmod(index - blocks["linear"].start, structure.n_features)
            for k, weights in enumerate(self.weights[: structure.n_components]):
                rows = self._whitened[k][:, self._row]
                linear = np.flatnonzero(component == k)
                responses[:, linear] += (rows[feature[linear]] * weights).T
                quadratic = np.flatnonzero(group_of_entry == structure.layout.group_of(k))
                entries = structure.features.some_quadratic(rows, self._origin(k), entry[quadratic])
                responses[:, quadratic] += (entries * weights).T
        responses[:, others] *= self._variances[index[others] - n_labels]
        return responses


def _complete_information(posterior):
    """The diagonal of R^-1 after the intercepts, if no values are missing: (D - L,)."""
    return posterior.complete_information(posterior.effective_degrees_of_freedom)


def _columns_of_block(coordinates, has_missing, negligible, block):
    """The columns of a block's rows that are not negligible, and sums for missing values.

    Returns
    -------
    whitened, spread : (K, P, n) and (K, Q, n), of rows that have columns; no spread of complete rows
    row : int array (m,), the row of every column among these
    weights : (L, m), the vector a of every column
    sums : of `MissingValueScaleInformation`, or None for complete rows
    """
    expectation, posterior = expect(coordinates, block), coordinates.posterior
    whitened, r, structure = expectation.represented, expectation.responsibilities, posterior.structure
    # Intercepts and shared precisions correlate. So the squared norm of a row's features is bounded by K
    # times the sum of the squared norms in the K components.
    bound = posterior.n_labels * information_of_rows(posterior, whitened)
    information = block.weighted(bound)
    ambiguous = np.flatnonzero(np.einsum("kn,kn->n", r * complements(r), information) > negligible)
    weights = _assignment_cholesky(r[:, ambiguous])
    trace = np.einsum("kjn,kn->jn", np.square(weights), information[:, ambiguous])
    column, row = np.nonzero(trace > negligible)
    kept, row_of_column = np.unique(row, return_inverse=True)
    weights = weights[:, column, row] * np.sqrt(block.counts[ambiguous])[row]
    some, spread, sums = whitened.selected(ambiguous[kept]), None, None
    if has_missing:
        spread = np.zeros((posterior.n_components, structure.n_quadratic, len(kept)))
        if block.missing is not None:
            spread[...] = [some.spread(k) for k in range(posterior.n_components)]
            counted = block.weighted(r[: posterior.n_components])
            sums = MissingValueScaleInformation(structure).of_block(whitened, counted)
    return some.values, spread, row_of_column, weights, sums


def _assignment_cholesky(responsibilities):
    """Cholesky factor of diag(r) - r r', without its last column of zeros: (L, n) -> (L, L - 1, n)."""
    n_labels, n_rows = responsibilities.shape
    # Sum from the end: 1 minus a sum from the start would cancel for rows of almost certain assignment.
    tails = np.cumsum(responsibilities[::-1], axis=0)[::-1]
    cholesky = np.zeros((n_labels, n_labels - 1, n_rows))
    for j in range(n_labels - 1):
        here, after, from_here = responsibilities[j], tails[j + 1], tails[j]
        is_positive = (after > 0) & (from_here > 0)
        scale = np.sqrt(np.divide(here * after, from_here, out=np.zeros(n_rows), where=is_positive))
        cholesky[j, j] = scale
        ratio = np.divide(scale, after, out=np.zeros(n_rows), where=is_positive)
        cholesky[j + 1 :, j] = -ratio * responsibilities[j + 1 :]
    return cholesky
