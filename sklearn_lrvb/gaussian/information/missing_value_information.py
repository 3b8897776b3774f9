"""The information that missing values take away, as a matrix.

Rows with missing values add [r_k delta_kl C_k] to G, besides what unknown labels do (`missing_information`).
C_k is the covariance of a row's features in component k given the component. It is zero on the intercept.
With y = yhat + e, e ~ N(0, Pi), and A_q the matrix of a quadratic feature,

    (y, y)     Pi
    (y, q)     2 Pi A_q yhat
    (q, q')    4 yhat' A_q Pi A_q' yhat + 2 tr(A_q Pi A_q' Pi).

Sums of it over the rows of a pattern need only the pattern's moments n = sum r, s = sum r yhat and
S = sum r yhat yhat', and sums over patterns are products of matrices whose rows are patterns:

    n Pi,          2 Pi A_q s,          tr(A_q Pi A_q' (4 S + 2 n Pi)).
"""

import numpy as np

from sklearn_lrvb.gaussian.e_step.coordinates import both_weights
from sklearn_lrvb.symmetric_matrices import upper_triangle


class MissingValueMatrixInformation:
    """The information of missing values for precision matrices; K P^4/2 flops a pattern.

    Parameters
    ----------
    structure : MatrixStructure
    """

    def __init__(self, structure):
        self._structure = structure
        self._row, self._column = upper_triangle(structure.n_features)
        position = structure.from_entries(np.arange(structure.n_quadratic, dtype=float)).astype(np.intp)
        self._position = position  # Of entry (p, q) in the triangle, (P, P).

    def of_block(self, whitened, weights):
        """Sums over a block: of n Pi (K, Q), Pi s' (K, Q, P) and, by group, Pi (4 S + 2 n Pi)' (S, Q, Q).

        The weights of the rows are (K, n), or ScaledWeights: n, s and S are then sums of the scaled ones,
        except in the last term.
        """
        structure, directions = self._structure, whitened.directions
        counted, scaled = both_weights(weights)
        missing, n_entries = directions.missing, structure.n_quadratic
        linear = np.empty((len(counted), n_entries))
        mixed = np.empty((len(counted), n_entries, structure.n_features))
        curved = np.empty((len(directions.projections), n_entries, n_entries))
        for group, turns in enumerate(directions.projections):  # (Q, g)
            twice = np.zeros_like(turns)
            for k in structure.layout.members(group):
                rows = whitened.values[k]
                np.matmul(turns, missing.sums(scaled[k]), out=linear[k])
                np.matmul(turns, missing.sums(rows * scaled[k]).T, out=mixed[k])
                second = np.empty((n_entries, whitened.n_rows))
                structure.write_entries(rows, second)
                second *= 4.0 * scaled[k]
                twice += missing.sums(second) + 2.0 * missing.sums(counted[k]) * turns
            np.matmul(turns, twice.T, out=curved[group])
        return linear, mixed, curved

    def add_to(self, missing, sums):
        """Add it to G, (D, D), given the sums over all blocks."""
        structure, position = self._structure, self._position
        scale = structure.entry_weights / np.sqrt(8.0)
        rows, columns = self._row, self._column
        for group, curved in enumerate(sums[2]):
            for k in structure.layout.members(group):
                linear, mixed = sums[0][k], sums[1][k]
                _, own, quadratic = structure.layout.slices_of(k)
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


class MissingValueScaleInformation:
    """The information of missing values for precisions that are numbers, where C is diagonal.

    Parameters
    ----------
    structure : ScaleStructure
    """

    def __init__(self, structure):
        self._structure = structure

    def of_block(self, whitened, weights):
        """Sums over a block of the diagonals of C, given weights as above: (K, P) and (K, Q)."""
        directions = whitened.directions
        counts, scale_sums = (directions.missing.sums(own) for own in both_weights(weights))
        quadratic = counts @ directions.projections[0].T / self._structure.power
        return scale_sums @ directions.missing.is_missing, quadratic

    def add_to(self, missing, sums):
        """Add it to G, (D, D), given the sums over all blocks."""
        np.einsum("ii->i", missing)[...] += self.diagonal(sums)

    def diagonal(self, sums):
        """The diagonal of it, (D,), given the sums over all blocks; None for no rows with missing values."""
        diagonal = np.zeros(self._structure.layout.n_coefficients)
        for k, (linear, quadratic) in enumerate(zip(*sums or ((), ()), strict=True)):
            _, own, of_group = self._structure.layout.slices_of(k)
            diagonal[own] += linear
            diagonal[of_group] += quadratic
        return diagonal
