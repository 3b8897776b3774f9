"""The missing information of rows with holes, as a matrix: unknown labels and hidden values.

With hbar_k the features that are expected of a row in component k, and C_k their covariance given the
component, a row's share of G is

    [(r_k delta_kl - r_k r_l) hbar_k hbar_l']_kl + [r_k delta_kl C_k]
        = sum over pairs k < l of r_k r_l (hbar_k - hbar_l)(hbar_k - hbar_l)' + [r_k delta_kl C_k],

each hbar_k in its places in the vector of all coefficients. The first part is summed over the rows that are
ambiguous between two components: both forms, by blocks and by pairs, leave out the same. C_k is zero on the
intercept. With y = yhat + e, e ~ N(0, Pi), and A_q the matrix of a quadratic feature,

    (y, y)     Pi
    (y, q)     2 Pi A_q yhat
    (q, q')    4 yhat' A_q Pi A_q' yhat + 2 tr(A_q Pi A_q' Pi).

Sums of it over the rows of a pattern need only the pattern's moments n = sum r, s = sum r yhat and
S = sum r yhat yhat', and sums over patterns are products of matrices whose rows are patterns:

    n Pi,          2 Pi A_q s,          tr(A_q Pi A_q' (4 S + 2 n Pi)).
"""

import itertools

import numpy as np

from sklearn_lrvb.gaussian_mixture.e_step.frames import expected_features
from sklearn_lrvb.symmetric_matrices import upper_triangle


class LabelInformation:
    """The first part of the sum.

    Where components have precisions of their own, it is summed by its blocks of components. Those of one
    precision share coefficients, in which blocks would cancel: there it is summed by pairs of components.

    Parameters
    ----------
    posterior : VariationalPosterior
    """

    def __init__(self, posterior):
        self._posterior, self._structure = posterior, posterior.structure

    def of_block(self, whitened, counted, responsibilities, counting):
        """The block's share of G, (D, D), with the coefficients in the order of `in_coefficients`.

        Parameters
        ----------
        whitened : OwnRows
        counted, responsibilities : (K, n), responsibilities times weights, and without
        counting : callable (weights, k, l) -> bool (n,), which rows are ambiguous between two components
        """
        pairs = []
        for k in range(len(counted)):
            for l in range(k):
                weights = counted[k] * responsibilities[l]
                some = np.flatnonzero(counting(weights, k, l))
                if some.size:
                    pairs.append((k, l, some, weights[some]))
        missing = np.zeros(2 * (self._structure.n_coefficients,))
        if self._structure.shares_precision:
            for k, l, some, weights in pairs:
                self._add_pair(missing, whitened.selected(some), np.sqrt(weights), k, l)
        elif pairs:
            self._add_products(missing, whitened, pairs)
        return missing

    def _add_products(self, missing, whitened, pairs):
        n_components, n_features = self._structure.n_components, self._structure.layout.n_component_features
        by_component = missing.reshape(2 * (n_components, n_features))
        ambiguous = np.unique(np.concatenate([some for _, _, some, _ in pairs]))
        rows = whitened.selected(ambiguous)
        features = [expected_features(self._posterior, rows, k) for k in range(n_components)]
        within = np.zeros((n_components, len(ambiguous)))
        for k, l, some, weights in pairs:
            place = np.searchsorted(ambiguous, some)
            within[k, place] += weights
            within[l, place] += weights
            product = (features[k][:, place] * weights) @ features[l][:, place].T
            by_component[k, :, l] -= product
            by_component[l, :, k] -= product.T
        for k, weights in enumerate(within):
            place = np.flatnonzero(weights)
            rooted = features[k][:, place] * np.sqrt(weights[place])
            by_component[k, :, k] += rooted @ rooted.T

    def _add_pair(self, missing, whitened, root_weights, k, l):
        layout, n_linear = self._structure.layout, 1 + self._structure.n_features
        own, other = (expected_features(self._posterior, whitened, component) for component in (k, l))
        own[n_linear:] -= other[n_linear:]
        difference = np.concatenate([own, -other[:n_linear]])
        difference *= root_weights
        gram = difference @ difference.T
        places, others = layout.coefficient_slices(k), layout.coefficient_slices(l)[:2]
        parts, start = [], 0
        for place in (*places, *others):
            stop = start + place.stop - place.start
            parts.append((place, slice(start, stop)))
            start = stop
        for (row, of_row), (column, of_column) in itertools.product(parts, parts):
            missing[row, column] += gram[of_row, of_column]

    def in_coefficients(self, missing):
        """The sum of the blocks' shares, (D, D), in the order of the coefficients."""
        if self._structure.shares_precision:
            return missing
        # Reordering has left another memory order, which would slow products down.
        return np.ascontiguousarray(self._structure.layout.ordered(missing))


class HiddenMatrixInformation:
    """The second part of the sum, for precision matrices; K P^4/2 flops a pattern.

    Parameters
    ----------
    structure : MatrixStructure
    """

    def __init__(self, structure):
        self._structure = structure
        self._row, self._column = upper_triangle(structure.n_features)
        position = structure.from_entries(np.arange(structure.n_quadratic, dtype=float)).astype(np.intp)
        self._position = position  # Of entry (p, q) in the triangle, (P, P).

    def of_block(self, whitened, counted):
        """Sums over a block: of n Pi (K, Q), Pi s' (K, Q, P) and, by group, Pi (4 S + 2 n Pi)' (S, Q, Q)."""
        structure, hidden = self._structure, whitened.hidden
        holes, layout, n_entries = hidden.holes, self._structure.layout, structure.n_quadratic
        linear = np.empty((len(counted), n_entries))
        mixed = np.empty((len(counted), n_entries, structure.n_features))
        curved = np.empty((len(hidden.projections), n_entries, n_entries))
        for group, turns in enumerate(hidden.projections):  # (Q, g)
            twice = np.zeros_like(turns)
            for k in layout.components_of_group(group):
                rows, weights = whitened.values[k], counted[k]
                counts = holes.sums(weights)
                np.matmul(turns, counts, out=linear[k])
                np.matmul(turns, holes.sums(rows * weights).T, out=mixed[k])
                second = np.empty((n_entries, len(weights)))
                structure.write_entries(rows, second)
                second *= 4.0 * weights
                twice += holes.sums(second) + 2.0 * counts * turns
            np.matmul(turns, twice.T, out=curved[group])
        return linear, mixed, curved

    def add_to(self, missing, sums):
        """Add the second part to G, (D, D), given the sums over all blocks."""
        layout, position = self._structure.layout, self._position
        scale = self._structure.entry_weights / np.sqrt(8.0)
        rows, columns = self._row, self._column
        for group, curved in enumerate(sums[2]):
            for k in layout.components_of_group(group):
                linear, mixed = sums[0][k], sums[1][k]
                _, own, quadratic = layout.coefficient_slices(k)
                missing[own, own] += linear[position]
                crossed = mixed[position[:, rows], columns] + mixed[position[:, columns], rows]
                crossed *= 2.0 * scale
                missing[own, quadratic] += crossed
                missing[quadratic, own] += crossed.T
            products = np.zeros((len(rows), len(rows)))
            for first, second in ((rows, columns), (columns, rows)):
                for third, fourth in ((rows, columns), (columns, rows)):
                    # tr(A Pi A' X) with A of (a, b) and A' of (c, d) has Pi_bc X_da and its exchanges.
                    products += curved[position[np.ix_(second, third)], position[np.ix_(first, fourth)]]
            products *= scale[:, None] * scale
            missing[quadratic, quadratic] += 0.5 * (products + products.T)


class HiddenScaleInformation:
    """The second part of the sum, for precisions that are numbers, where C is diagonal.

    Parameters
    ----------
    structure : ScaleStructure
    """

    def __init__(self, structure):
        self._structure = structure

    def of_block(self, whitened, counted):
        """Sums over a block of the diagonals of C: (K, P) and (K, Q)."""
        hidden = whitened.hidden
        counts = hidden.holes.sums(counted)
        return counts @ hidden.holes.hidden, counts @ hidden.projections[0].T / self._structure.power

    def add_to(self, missing, sums):
        """Add the second part to G, (D, D), given the sums over all blocks."""
        np.einsum("ii->i", missing)[...] += self.diagonal(sums)

    def diagonal(self, sums):
        """The second part of G, (D,), given the sums over all blocks; None for no rows with holes."""
        diagonal = np.zeros(self._structure.n_coefficients)
        for k, (linear, quadratic) in enumerate(zip(*sums or ((), ()), strict=True)):
            _, own, of_group = self._structure.layout.coefficient_slices(k)
            diagonal[own] += linear
            diagonal[of_group] += quadratic
        return diagonal
