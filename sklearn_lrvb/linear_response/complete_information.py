"""R^-1, the information that there would be if the latent variables were known."""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular


@dataclass(frozen=True)
class CompleteInformation:
    """R^-1, through a root T of R = T T': a dense block on a few coordinates, diagonal on the rest.

    Attributes
    ----------
    dense_index : int array (b,), coordinates that share a dense block
    dense_root : (b, b), root of R on those coordinates; lower triangular where it is to be solved with
    root : (D,), square root of R's diagonal; its entries at ``dense_index`` are not used
    """

    dense_index: np.ndarray
    dense_root: np.ndarray
    root: np.ndarray

    @classmethod
    def from_root(cls, root):
        """R = root root' as one dense block, (D, D)."""
        return cls(np.arange(len(root)), root, np.ones(len(root)))

    def __len__(self):
        return len(self.root)

    @property
    def deviations(self):
        """Root diagonal of R, (D,)."""
        deviations = self.root.copy()
        deviations[self.dense_index] = np.linalg.norm(self.dense_root, axis=1)
        return deviations

    def _scaled(self, array, dense):
        scaled = self.root[:, None] * array
        scaled[self.dense_index] = dense(array[self.dense_index])
        return scaled

    def times_root(self, array):
        """T array, (D, m)."""
        return self._scaled(array, lambda block: self.dense_root @ block)

    def times_root_transposed(self, array):
        """T' array, (D, m)."""
        return self._scaled(array, lambda block: self.dense_root.T @ block)

    def scale_in_place(self, matrix):
        """Turn a symmetric matrix (D, D) into T' matrix T, without another of its size."""
        dense = self.dense_index
        for view in (matrix, matrix.T):
            mixed = self.dense_root.T @ view[dense]
            view *= self.root[:, None]
            view[dense] = mixed

    def solve_root_transposed(self, array):
        """T^-T array, (D, m)."""
        scaled = array / self.root[:, None]
        scaled[self.dense_index] = solve_triangular(
            self.dense_root, array[self.dense_index], lower=True, trans="T"
        )
        return scaled

    def root_rows(self, index):
        """T[index]', (D, m): its columns are targets that are coordinates, scaled."""
        selected = np.zeros((len(self), len(index)))
        selected[index, np.arange(len(index))] = 1.0
        return self.times_root_transposed(selected)

    def covariance_root(self, index):
        """Y with Y' Y = R[index, index], without rows of zeros, (b + m, m)."""
        columns, slots = np.nonzero(np.asarray(index)[:, None] == self.dense_index)
        dense = np.zeros((len(self.dense_index), len(index)))
        dense[:, columns] = self.dense_root[slots].T
        diagonal = self.root[index]
        diagonal[columns] = 0.0
        return np.concatenate([dense, np.diag(diagonal)])
