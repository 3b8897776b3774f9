"""R^-1, the information that there would be if the latent variables were known.

The solvers of `observed_information` scale by its root.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve, solve_triangular


@dataclass(frozen=True)
class CompleteInformation:
    """R^-1 through a root T of R = T T': a dense block on a few coordinates, diagonal on the others.

    Parameters
    ----------
    dense_index : int ndarray of shape (b,)
        Coordinates that share a dense block.
    dense_root : ndarray of shape (b, b)
        Root of R on those coordinates, lower triangular.
    root : ndarray of shape (D,)
        Square root of the diagonal of R. Its entries at `dense_index` are not used.

    Examples
    --------
    Two correlated coordinates, and a third with variance 4:

    >>> import numpy as np
    >>> from sklearn_lrvb.linear_response.complete_information import CompleteInformation
    >>> block = np.linalg.cholesky([[1.0, 0.6], [0.6, 1.0]])
    >>> complete = CompleteInformation(np.array([0, 1]), block, np.array([1.0, 1.0, 2.0]))
    >>> complete.deviations
    array([1., 1., 2.])
    >>> complete.times_root(complete.times_root_transposed(np.eye(3)))  # R
    array([[1. , 0.6, 0. ],
           [0.6, 1. , 0. ],
           [0. , 0. , 4. ]])
    """

    dense_index: NDArray[np.intp]
    dense_root: NDArray[np.float64]
    root: NDArray[np.float64]

    def remaining(self, shares: NDArray[np.float64]) -> "CompleteInformation":
        """R^-1 of which a share, positive and one at `dense_index`, remains in every coordinate: (D,)."""
        return CompleteInformation(self.dense_index, self.dense_root, self.root / np.sqrt(shares))

    def __len__(self) -> int:
        return len(self.root)

    @property
    def deviations(self) -> NDArray[np.float64]:
        """Mean-field standard deviations: roots of the diagonal of R, (D,)."""
        deviations = self.root.copy()
        deviations[self.dense_index] = np.linalg.norm(self.dense_root, axis=1)
        return deviations

    @cached_property
    def _dense_place(self):
        """``dense_index``, as a slice where its coordinates are consecutive: indexing then takes no copy."""
        index = self.dense_index
        if len(index) and (index[1:] - index[:-1] == 1).all():
            return slice(int(index[0]), int(index[-1]) + 1)
        return index

    def times_root(self, array: NDArray[np.float64]) -> NDArray[np.float64]:
        """T array: (D, m) -> (D, m), from the scaled coordinates to their units."""
        product = self.root[:, None] * array
        product[self._dense_place] = self.dense_root @ array[self._dense_place]
        return product

    def times_root_transposed(self, array: NDArray[np.float64]) -> NDArray[np.float64]:
        """T' array: (D, m) -> (D, m), from one over the units of the coordinates to the scaled ones."""
        product = self.root[:, None] * array
        product[self._dense_place] = self.dense_root.T @ array[self._dense_place]
        return product

    def solve_root_transposed(self, array: NDArray[np.float64]) -> NDArray[np.float64]:
        """T^-T array: (D, m) -> (D, m), which takes :meth:`times_root_transposed` back."""
        solution = array / self.root[:, None]
        solution[self.dense_index] = solve_triangular(
            self.dense_root, array[self.dense_index], lower=True, trans="T"
        )
        return solution

    def solve(self, array: NDArray[np.float64]) -> NDArray[np.float64]:
        """R^-1 array: (D, m) -> (D, m)."""
        solution = array / np.square(self.root)[:, None]
        solution[self.dense_index] = cho_solve((self.dense_root, True), array[self.dense_index])
        return solution

    def scale_in_place(self, matrix: NDArray[np.float64]) -> None:
        """Turn a symmetric matrix (D, D) into T' matrix T without a second matrix of its size."""
        dense = self.dense_index
        for view in (matrix, matrix.T):
            mixed = self.dense_root.T @ view[dense]
            view *= self.root[:, None]
            view[dense] = mixed

    def root_rows(self, index: NDArray[np.intp]) -> NDArray[np.float64]:
        """T[index]' for an int array (m,): (D, m). Column j is T' times unit vector ``index[j]``."""
        selected = np.zeros((len(self), len(index)))
        selected[index, np.arange(len(index))] = 1.0
        return self.times_root_transposed(selected)

    def covariance_root(self, index: NDArray[np.intp]) -> NDArray[np.float64]:
        """Y with Y' Y = R[index, index] for an int array (m,), without the rows that are zero: (b + m, m)."""
        columns, rows = np.nonzero(np.asarray(index)[:, None] == self.dense_index)
        dense = np.zeros((len(self.dense_index), len(index)))
        dense[:, columns] = self.dense_root[rows].T
        diagonal = self.root[index]
        diagonal[columns] = 0.0
        return np.concatenate([dense, np.diag(diagonal)])


@dataclass(frozen=True)
class BlockInformation:
    """R^-1 through a root of R with many small blocks: the same answers as of `CompleteInformation`.

    Parameters
    ----------
    blocks : sequence of pairs of an int ndarray of shape (m, b) and an ndarray of shape (m, b, b)
        The coordinates of m blocks of one size, and a root of R on each of them. Every coordinate is in one
        block.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_lrvb.linear_response.complete_information import BlockInformation
    >>> complete = BlockInformation([(np.array([[2, 0]]), np.array([[[1.0, 0.0], [0.6, 0.8]]])),
    ...                              (np.array([[1]]), np.array([[[2.0]]]))])
    >>> complete.times_root(complete.times_root_transposed(np.eye(3)))  # R
    array([[1. , 0. , 0.6],
           [0. , 4. , 0. ],
           [0.6, 0. , 1. ]])
    """

    blocks: Sequence[tuple[NDArray[np.intp], NDArray[np.float64]]]

    def __len__(self) -> int:
        return sum(index.size for index, _ in self.blocks)

    @property
    def deviations(self) -> NDArray[np.float64]:
        """Mean-field standard deviations: roots of the diagonal of R, (D,)."""
        deviations = np.empty(len(self))
        for index, roots in self.blocks:
            deviations[index] = np.linalg.norm(roots, axis=2)
        return deviations

    def times_root(self, array: NDArray[np.float64]) -> NDArray[np.float64]:
        """T array: (D, m) -> (D, m), from the scaled coordinates to their units."""
        product = np.empty(array.shape)
        for index, roots in self.blocks:
            product[index] = roots @ array[index]
        return product

    def times_root_transposed(self, array: NDArray[np.float64]) -> NDArray[np.float64]:
        """T' array: (D, m) -> (D, m), from one over the units of the coordinates to the scaled ones."""
        product = np.empty(array.shape)
        for index, roots in self.blocks:
            product[index] = roots.swapaxes(1, 2) @ array[index]
        return product

    def solve_root_transposed(self, array: NDArray[np.float64]) -> NDArray[np.float64]:
        """T^-T array: (D, m) -> (D, m), which takes :meth:`times_root_transposed` back."""
        solution = np.empty(array.shape)
        for index, roots in self.blocks:
            solution[index] = np.linalg.solve(roots.swapaxes(1, 2), array[index])
        return solution

    def solve(self, array: NDArray[np.float64]) -> NDArray[np.float64]:
        """R^-1 array: (D, m) -> (D, m)."""
        solution = np.empty(array.shape)
        for index, roots in self.blocks:
            half = np.linalg.solve(roots, array[index])
            solution[index] = np.linalg.solve(roots.swapaxes(1, 2), half)
        return solution

    def scale_in_place(self, matrix: NDArray[np.float64]) -> None:
        """Turn a symmetric matrix (D, D) into T' matrix T."""
        for view in (matrix, matrix.T):
            view[...] = self.times_root_transposed(view)

    def root_rows(self, index: NDArray[np.intp]) -> NDArray[np.float64]:
        """T[index]' for an int array (m,): (D, m). Column j is T' times unit vector ``index[j]``."""
        selected = np.zeros((len(self), len(index)))
        selected[index, np.arange(len(index))] = 1.0
        return self.times_root_transposed(selected)

    def covariance_root(self, index: NDArray[np.intp]) -> NDArray[np.float64]:
        """Y with Y' Y = R[index, index] for an int array (m,): (D, m)."""
        return self.root_rows(index)
