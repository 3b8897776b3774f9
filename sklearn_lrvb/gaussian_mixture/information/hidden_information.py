"""The missing information of rows with holes, as a matrix: unknown labels and hidden values.

With hbar_k the features that are expected of a row in component k, and C_k their covariance given the
component, a row's share of G is

    [(r_k delta_kl - r_k r_l) hbar_k hbar_l']_kl + [r_k delta_kl C_k]
        = sum over pairs k < l of r_k r_l (hbar_k - hbar_l)(hbar_k - hbar_l)' + [r_k delta_kl C_k],

each hbar_k in its places in the vector of all coefficients. The first part is summed over the rows that are
ambiguous between two components. C_k is zero on the intercept. With y = yhat + e, e ~ N(0, Pi), and A_q the
matrix of a quadratic feature,

    (y, y)     Pi
    (y, q)     2 Pi A_q yhat
    (q, q')    4 yhat' A_q Pi A_q' yhat + 2 tr(A_q Pi A_q' Pi).

Sums of it over the rows of a pattern need only the pattern's moments n = sum r, s = sum r yhat and
S = sum r yhat yhat', and sums over patterns are products of matrices whose rows are patterns:

    n Pi,          2 Pi A_q s,          tr(A_q Pi A_q' (4 S + 2 n Pi)).
"""

import itertools

import numpy as np

from sklearn_lrvb.gaussian_mixture.e_step.own_frames import expected_features
from sklearn_lrvb.symmetric_matrices import upper_triangle


class PairsOfExpectations:
    """The first part of the sum, by pairs of components.

    Parameters
    ----------
    posterior : VariationalPosterior
    """

    def __init__(self, posterior):
        self._posterior, self._structure = posterior, posterior.structure

    def of_block(self, whitened, counted, responsibilities, counting):
        """The block's share of G, (D, D).

        Parameters
        ----------
        whitened : OwnRows
        counted, responsibilities : (K, n), responsibilities times weights, and without
        counting : callable (weights, k, l) -> bool (n,), which rows are ambiguous between two components
        """
        size = self._structure.n_coefficients
        missing = np.zeros((size, size))
        for k in range(len(counted)):
            for l in range(k):
                weights = counted[k] * responsibilities[l]
                some = np.flatnonzero(counting(weights, k, l))
                if some.size:
                    self._add_pair(missing, whitened.selected(some), np.sqrt(weights[some]), k, l)
        return missing

    def _add_pair(self, missing, whitened, root_weights, k, l):
        layout, n_linear = self._structure.layout, 1 + self._structure.n_features
        own, other = (expected_features(self._posterior, whitened, component) for component in (k, l))
        places, others = layout.coefficient_slices(k), layout.coefficient_slices(l)
        np.negative(other, out=other)
        if self._structure.shares_precision:
            own[n_linear:] += other[n_linear:]
            other, others = other[:n_linear], others[:2]
        difference = np.concatenate([own, other])
        difference *= root_weights
        gram = difference @ difference.T
        parts, start = [], 0
        for place in (*places, *others):
            stop = start + place.stop - place.start
            parts.append((place, slice(start, stop)))
            start = stop
        for (row, of_row), (column, of_column) in itertools.product(parts, parts):
            missing[row, column] += gram[of_row, of_column]


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
        """Sums over a block: of n Pi (K, Q), Pi s' (K, Q, P) and Pi (4 S + 2 n Pi)' (K, Q, Q)."""
        structure, hidden = self._structure, whitened.hidden
        holes = hidden.holes
        totals = ([], [], [])
        for k, (rows, weights) in enumerate(zip(whitened.values, counted, strict=True)):
            turns = hidden.projections[structure.layout.precision_group(k)]  # (Q, g)
            counts = holes.sums(weights)
            second = np.empty((structure.n_quadratic, len(weights)))
            structure.write_entries(rows, second)
            second *= 4.0 * weights
            curved = holes.sums(second) + 2.0 * counts * turns
            sums = turns @ counts, turns @ holes.sums(rows * weights).T, turns @ curved.T
            for total, own in zip(totals, sums, strict=True):
                total.append(own)
        return tuple(map(np.stack, totals))

    def add_to(self, missing, sums):
        """Add the second part to G, (D, D), given the sums over all blocks."""
        layout, position = self._structure.layout, self._position
        scale = self._structure.entry_weights / np.sqrt(8.0)
        rows, columns = self._row, self._column
        for k, (linear, mixed, curved) in enumerate(zip(*sums, strict=True)):
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
        diagonal = np.einsum("ii->i", missing)
        for k, (linear, quadratic) in enumerate(zip(*sums, strict=True)):
            _, own, of_group = self._structure.layout.coefficient_slices(k)
            diagonal[own] += linear
            diagonal[of_group] += quadratic
