"""G, what not knowing the assignments loses: as a product, as a matrix, and as a factor.

    G = sum_n w_n [(r_nk delta_kl - r_nk r_nl) h_nk h_nl']_kl = sum_n B_n B_n'

with w_n how often row n counts. Rows whose assignment is certain carry none of it. Passes over the rows
give what the three solvers of `sklearn_lrvb.linear_response` need:

* `missing_information_product`: G v, the price of a sweep and a half, memory O(1) in the rows;
* `missing_information`: the matrix, one Gram matrix of weight r_k r_l >= 0 for every pair of components
  (`covariance_structures.pairs`); or, for few rows, `missing_information_from_features`, one product of the
  features of all components;
* `AmbiguousColumns`: the columns of B, few where few rows are uncertain, with their kernels.
"""

import functools
from dataclasses import replace
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array

from sklearn_lrvb.gaussian_mixture.e_step.e_step import (
    centred_on_average,
    complements,
    expect,
    normalized,
    sums_over_blocks,
)
from sklearn_lrvb.gaussian_mixture.e_step.frames import OwnFrames, frames_of
from sklearn_lrvb.row_blocks import rows_of_size, slices

# What is left out as certain has a trace below this in units of the complete information.
_NEGLIGIBLE_INFORMATION = 1e-12

_COMPACTED = 0.6  # share of a block's rows above which picking them costs more than it saves
_SAMPLED = 500  # rows by which it is judged how many are uncertain
_SLAB = 512  # columns of the kernel at once
_FEATURE_BYTES = 2**23  # of features formed at once, or kept


def change_of_log_densities(frames, posterior, coefficients):
    """beta_k . h_nk as coefficients in the frames: (D,)."""
    polynomials = posterior.structure.polynomials(coefficients, posterior.second_moment_origin)
    return frames.coefficients(*polynomials)


def features_of(posterior, moments):
    """Sums of weight h from those of (1, y, s(y)): (D,). The transpose of `change_of_log_densities`."""
    return posterior.structure.feature_moments(
        moments.counts, moments.first, moments.second, posterior.second_moment_origin
    )


def missing_information_product(rows, posterior, coefficients):
    """G times the columns of ``coefficients``, (D, m) -> (D, m): one pass over the rows."""

    frames = frames_of(posterior)
    changes = [change_of_log_densities(frames, posterior, column) for column in coefficients.T]

    def one_block(selected, block):
        seen = frames.whiten(block)
        r, _ = normalized(frames.log_densities(seen))
        weights = rows.weighted(r, selected)
        moments = []
        for change in changes:
            # d rho = beta . h, d r = V_z d rho, then the moments of d r
            moved = centred_on_average(frames.changes(seen, change), r)
            moved *= weights
            moments.append(frames.signed_moments(seen, moved))
        return moments

    totals = sums_over_blocks(rows.map(one_block, frames.block_rows))
    return np.stack(
        [features_of(posterior, frames.signed_in_own_frames(moments)) for moments in totals], axis=1
    )


def _information_of_rows(posterior, squared):
    """|T' h_nk|^2 from above, by |y_nk|^2: a row's features in units of the complete information, (K, n)."""
    structure = posterior.structure
    origin_norm = structure.norm(posterior.second_moment_origin)[:, None]
    intercepts = np.square(posterior.intercept_root).sum(axis=1)[:, None]
    return (
        intercepts
        + squared / posterior.mean_precision[:, None]
        + 0.5 * (squared + origin_norm) ** 2 / posterior.effective_degrees_of_freedom[:, None]
    )


def missing_information(rows, posterior):
    """G, (D, D): one pass over the rows, memory independent of their number.

    The flops for every pair of components and every row that is uncertain between them are the
    structure's ``pair_flops``.
    """
    structure = posterior.structure
    pairs = structure.pairs(posterior, functools.partial(_pairs_of_a_row, rows, posterior))
    missing = np.zeros(2 * (structure.n_coefficients,))
    for pair, moments in zip(pairs, _pair_moments(rows, posterior, pairs), strict=True):
        if moments is not None:
            pair.add_to(missing, moments)
    return missing


def missing_information_from_features(rows, posterior):
    """G, (D, D), by its definition: one product of the features of all components with themselves.

    It takes 2 (K F)^2 flops a row, with F features a component, and a few calls a block of rows, where
    `missing_information` takes many calls for every pair of components.
    """
    structure, frames = posterior.structure, OwnFrames(posterior)
    origins = structure.per_component(posterior.second_moment_origin)
    n_features = 1 + structure.n_features + structure.n_quadratic
    n_components = posterior.n_components

    def one_block(selected, block):
        whitened = frames.whiten(block)
        r, _ = normalized(frames.log_densities(whitened))
        h = np.stack([structure.component_features(*own) for own in zip(whitened, origins, strict=True)])
        within = np.matmul(h * rows.weighted(r * complements(r), selected)[:, None], h.transpose(0, 2, 1))
        h *= (r * np.sqrt(rows.weighted(np.ones(r.shape[1]), selected)))[:, None]
        stacked = h.reshape(-1, h.shape[2])
        return within, stacked @ stacked.T

    block_rows = rows_of_size(3 * n_components * n_features)
    within, between = sums_over_blocks(rows.map(one_block, block_rows))
    missing = np.negative(between, out=between)
    each = np.arange(n_components)
    by_component = missing.reshape(n_components, n_features, n_components, n_features)
    by_component[each, :, each] = within  # r (1 - r) to its last digit, where r - r^2 would cancel
    return _of_coefficients(structure, missing)


def _of_coefficients(structure, matrix):
    """Sum over what components share, from their features one after the other: (K F, K F) -> (D, D)."""
    places = [place for k in range(structure.n_components) for place in structure.coefficient_slices(k)]
    index = np.ix_(*2 * [np.concatenate([np.arange(place.start, place.stop) for place in places])])
    summed = np.zeros(2 * (structure.n_coefficients,))
    if structure.has_own_precisions:
        summed[index] = matrix
    else:
        np.add.at(summed, index, matrix)
    return summed


class _Ambiguity:
    """Which rows of a block are uncertain between which components, by what they add to G."""

    def __init__(self, rows, posterior):
        self.frames = frames_of(posterior)
        self._posterior = posterior
        self._negligible = _NEGLIGIBLE_INFORMATION / (rows.n_samples * posterior.n_components**2)

    def of_block(self, block):
        """Responsibilities and information of a centred block's rows, (K, n) each."""
        log_densities = self.frames.log_densities(self.frames.whiten(block))
        squared = 2.0 * (self._posterior.log_density_constants[:, None] - log_densities)
        information = _information_of_rows(self._posterior, squared)
        return normalized(log_densities)[0], information

    def counting(self, weights, information, k, l):
        """Where weights of one pair (n,) or of several (m, n) are not negligible."""
        return weights * (information[k] + information[l]) > self._negligible


def _pairs_of_a_row(rows, posterior):
    """How many pairs of components an uncertain row is uncertain between, the mean of some rows."""
    uncertainty = _Ambiguity(rows, posterior)
    some = replace(rows, X=rows.X[:: max(1, rows.n_samples // _SAMPLED)], weights=None)
    r, information = uncertainty.of_block(some.block(slice(0, some.n_samples)))
    k, l = np.triu_indices(posterior.n_components, 1)
    n_pairs = np.count_nonzero(uncertainty.counting(r[k] * r[l], information, k, l), axis=0)
    return n_pairs.sum() / max(1, np.count_nonzero(n_pairs))


def _pair_moments(rows, posterior, pairs):
    """Moments of weight r_k r_l of the pairs; None where no row is uncertain between any of them."""
    uncertainty = _Ambiguity(rows, posterior)

    def one_block(selected, block):
        r, information = uncertainty.of_block(block)
        counted = rows.weighted(r, selected)
        moments = []
        for pair in pairs:
            weights = counted[pair.k] * r[pair.l]
            counting = uncertainty.counting(weights, information, pair.k, pair.l)
            weights *= counting
            some = np.flatnonzero(counting if counting.ndim == 1 else counting.any(axis=0))
            if some.size > _COMPACTED * len(block[0]):
                moments.append(pair.moments(block, weights))
            elif some.size:
                moments.append(pair.moments(np.take(block, some, axis=1), np.take(weights, some, axis=-1)))
            else:
                moments.append(None)
        return moments

    # one product for all pairs: rows that stay in cache. One for each: more rows, worth its overhead
    totals = [None] * len(pairs)
    for parts in rows.map(one_block, uncertainty.frames.block_rows if len(pairs) == 1 else None):
        for number, part in enumerate(parts):
            if totals[number] is None:
                totals[number] = part
            elif part is not None:
                totals[number] += part
    return totals


class AmbiguousColumns:
    """B with G = B B': for every row up to K - 1 columns, those that are not negligible.

    Column (n, j) is a_nj,k h_nk in component k, where a_nj is column j of the Cholesky factor of
    w (diag(r) - r r'): the change of the assignment when component j is decided, those before it refused.

    Parameters
    ----------
    posterior : VariationalPosterior
    whitened : (K, P, n), uncertain rows in every component's frame
    row : int array (m,), the row of every column
    weights : (K, m), a of every column
    """

    def __init__(self, posterior, whitened, row, weights):
        self._posterior = posterior
        self._whitened = whitened
        self._row = row
        self.weights = weights

    @classmethod
    def of_rows(cls, rows, posterior):
        """One pass over the rows; memory K P for every uncertain one."""
        n_columns = max(1, posterior.n_components - 1)
        negligible = _NEGLIGIBLE_INFORMATION / (rows.n_samples * n_columns)

        def one_block(selected, block):
            expectation = expect(posterior, block)
            y, r = expectation.whitened, expectation.responsibilities
            squared = np.einsum("kpn,kpn->kn", y, y)
            # intercepts and shared precisions correlate: norms of parts bound that of the whole K times
            information = rows.weighted(
                posterior.n_components * _information_of_rows(posterior, squared), selected
            )
            share = np.einsum("kn,kn->n", r * complements(r), information)
            uncertain = np.flatnonzero(share > negligible)
            weights = _assignment_root(r[:, uncertain])
            trace = np.einsum("kjn,kn->jn", np.square(weights), information[:, uncertain])
            column, row = np.nonzero(trace > negligible)
            root = np.sqrt(rows.weighted(np.ones(len(r[0])), selected)[uncertain])
            kept, place = np.unique(row, return_inverse=True)
            return y[:, :, uncertain[kept]], place, weights[:, column, row] * root[row]

        whitened, row, weights = zip(*rows.map(one_block), strict=True)
        first = np.cumsum([0] + [part.shape[2] for part in whitened[:-1]])
        return cls(
            posterior,
            np.ascontiguousarray(np.concatenate(whitened, axis=2)),  # picking columns turned them round
            np.concatenate([part + start for part, start in zip(row, first, strict=True)]),
            np.concatenate(weights, axis=1),
        )

    def __len__(self):
        return len(self._row)

    def __getstate__(self):
        cached = {"_kept_features", "_rows_of_columns"}  # cheap to form again
        return {name: value for name, value in vars(self).items() if name not in cached}

    def to_arrays(self):
        """The arrays from which `from_arrays` rebuilds the columns: dict, str -> ndarray."""
        return {"whitened": self._whitened, "row": self._row, "weights": self.weights}

    @classmethod
    def from_arrays(cls, posterior, arrays):
        """Inverse of `to_arrays`, given the posterior."""
        return cls(posterior, arrays["whitened"], arrays["row"], arrays["weights"])

    @property
    def nbytes(self):
        """Size in bytes of the arrays."""
        return sum(array.nbytes for array in self.to_arrays().values())

    def kernel(self):
        """B' R B, (m, m), from inner products of rows alone."""
        posterior, structure = self._posterior, self._posterior.structure
        half = posterior.intercept_root.T @ self.weights
        kernel = half.T @ half
        for k in range(posterior.n_components):
            for l in structure.components_sharing_precision(k):
                self._add_component_kernel(kernel, k, l)
        return 0.5 * (kernel + kernel.T)

    def _add_component_kernel(self, kernel, k, l):
        """Add what features of component k and of component l, in the same group, have in common."""
        used, others = (np.flatnonzero(self.weights[component]) for component in (k, l))
        rows, other_rows = self._whitened[k][:, self._row[used]], self._whitened[l][:, self._row[others]]
        for start in range(0, used.size, _SLAB):
            slab = slice(start, start + _SLAB)
            products = self._feature_products(k, l, rows[:, slab], other_rows)
            products *= self.weights[k, used[slab], None]
            products *= self.weights[l, others]
            kernel[np.ix_(used[slab], others)] += products

    def _feature_products(self, k, l, rows, others):
        """h_k' R h_l behind the intercepts, components of one group: (P, n), (P, m) -> (n, m)."""
        posterior, structure = self._posterior, self._posterior.structure
        group = structure.precision_group(k)
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
        for l in self._posterior.structure.components_sharing_precision(k):
            products = self._feature_products(k, l, whitened, self._whitened[l])
            responses += self.weights[l][:, None] * products.T[self._row]
        return responses

    def responses(self, index):
        """B' R[:, index], (m, len(index))."""
        posterior, structure = self._posterior, self._posterior.structure
        index, parts = np.asarray(index), structure.coefficient_blocks()
        responses = np.zeros((len(self), len(index)))
        variance = 1.0 / structure.complete_information(
            posterior.mean_precision, posterior.effective_degrees_of_freedom
        )
        intercept = np.flatnonzero(index < parts["intercept"].stop)
        counts = posterior.intercept_root @ (posterior.intercept_root.T @ self.weights)
        responses[:, intercept] = counts[index[intercept]].T
        in_slot, entry = np.divmod(index - parts["quadratic"].start, structure.n_quadratic)
        component, feature = np.divmod(index - parts["linear"].start, structure.n_features)
        behind = index - parts["intercept"].stop  # place on the diagonal of R
        for k, weights in enumerate(self.weights):
            rows, group = self._whitened[k][:, self._row], structure.precision_group(k)
            linear = np.flatnonzero(component == k)
            responses[:, linear] += (rows[feature[linear]] * weights).T
            quadratic = np.flatnonzero(in_slot == group)
            origin = posterior.second_moment_origin[group]
            entries = structure.quadratic_entries(rows, origin, entry[quadratic])
            entries *= weights
            responses[:, quadratic] += entries.T
        diagonal = np.flatnonzero(behind >= 0)
        responses[:, diagonal] *= variance[behind[diagonal]]
        return responses

    def product(self, weights):
        """B weights: (m, c) -> (D, c)."""
        structure = self._posterior.structure
        product = np.zeros((structure.n_coefficients, weights.shape[1]))
        for k in range(structure.n_components):
            self._add_by_place(product, k, self.component_product(k, weights))
        return product

    def _add_by_place(self, coefficients, k, features):
        start = 0
        for place in self._posterior.structure.coefficient_slices(k):
            stop = start + place.stop - place.start
            coefficients[place] += features[start:stop]
            start = stop

    def component_product(self, k, weights):
        """What component k has of `product`: (m, c) -> (F, c)."""
        by_row = self._rows_of_columns[k] @ weights
        parts = zip(self._features[k], self._slabs, strict=True)
        return functools.reduce(np.add, (features @ by_row[some] for features, some in parts))

    def transposed_product(self, array):
        """B' array: (D, c) -> (m, c)."""
        product = np.zeros((len(self), array.shape[1]))
        for k, rows_of_columns in enumerate(self._rows_of_columns):
            own = np.concatenate([array[place] for place in self._posterior.structure.coefficient_slices(k)])
            by_row = np.concatenate([features.T @ own for features in self._features[k]])
            product += rows_of_columns.T @ by_row
        return product

    @cached_property
    def _rows_of_columns(self):
        """By component, the weight of every column at its row: K sparse arrays (n, m)."""
        shape = self._whitened.shape[2], len(self)
        place = self._row, np.arange(len(self))
        return [csr_array((weights, place), shape=shape) for weights in self.weights]

    @property
    def _slabs(self):
        """Rows whose features in all components are formed at once."""
        structure, n_rows = self._posterior.structure, self._whitened.shape[2]
        n_features = structure.n_components * (1 + structure.n_features + structure.n_quadratic)
        at_once = max(1, _FEATURE_BYTES // (8 * n_features))
        return slices(n_rows, at_once) or [slice(0, 0)]

    @property
    def _features(self):
        """By component, h_k of the uncertain rows, slab by slab (F, n): kept where they are one slab."""
        if len(self._slabs) > 1:
            return [self._slabs_of_features(k) for k in range(len(self.weights))]
        return self._kept_features

    @cached_property
    def _kept_features(self):
        return [list(self._slabs_of_features(k)) for k in range(len(self.weights))]

    def _slabs_of_features(self, k):
        structure = self._posterior.structure
        origin = self._posterior.second_moment_origin[structure.precision_group(k)]
        for some in self._slabs:
            yield structure.component_features(self._whitened[k][:, some], origin)


def _assignment_root(responsibilities):
    """Cholesky factor of diag(r) - r r', without its last column of zeros: (K, n) -> (K, K - 1, n)."""
    n_components, n_rows = responsibilities.shape
    # sums from the end: 1 - sums from the start would lose the digits of rows that are all but certain
    tails = np.cumsum(responsibilities[::-1], axis=0)[::-1]
    root = np.zeros((n_components, n_components - 1, n_rows))
    for j in range(n_components - 1):
        here, after, from_here = responsibilities[j], tails[j + 1], tails[j]
        alive = (after > 0) & (from_here > 0)
        scale = np.sqrt(np.divide(here * after, from_here, out=np.zeros(n_rows), where=alive))
        root[j, j] = scale
        share = np.divide(scale, after, out=np.zeros(n_rows), where=alive)
        root[j + 1 :, j] = -share * responsibilities[j + 1 :]
    return root
