"""R^-1, the information that there would be if the latent variables were known.

The solvers of `observed_information` scale by its root.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class CompleteInformation:
    """R^-1 through a root T of R = T T' that is block diagonal.

    Parameters
    ----------
    blocks : sequence of pairs of an int ndarray of shape (m b,) or a slice, and an ndarray of shape (m, b, b)
        The coordinates of m blocks of one size, block after block, and a root of R on each of them. Every
        coordinate is in one block; those that are independent of all others are blocks of size one. A slice
        takes no copies.

    Examples
    --------
    Two correlated coordinates, and a third with variance 4:

    >>> import numpy as np
    >>> from sklearn_lrvb.linear_response.complete_information import CompleteInformation
    >>> complete = CompleteInformation([(np.array([2, 0]), np.array([[[1.0, 0.0], [0.6, 0.8]]])),
    ...                                 (np.array([1]), np.array([[[2.0]]]))])
    >>> complete.deviations
    array([1., 2., 1.])
    >>> complete.times_root(complete.times_root_transposed(np.eye(3)))  # R
    array([[1. , 0. , 0.6],
           [0. , 4. , 0. ],
           [0.6, 0. , 1. ]])
    """

    blocks: Sequence[tuple[NDArray[np.intp] | slice, NDArray[np.float64]]]

    def __len__(self) -> int:
        size = 0
        for _, roots in self.blocks:
            size += roots.shape[0] * roots.shape[1]
        return size

    @property
    def deviations(self) -> NDArray[np.float64]:
        """Mean-field standard deviations: roots of the diagonal of R, (D,)."""
        deviations = np.empty(len(self))
        for place, roots in self.blocks:
            deviations[place] = np.linalg.norm(roots, axis=2).ravel()
        return deviations

    def times_root(self, array: NDArray[np.float64]) -> NDArray[np.float64]:
        """T array: (D, m) -> (D, m), from the scaled coordinates to their units."""
        return self._mapped(array, transposed=False)

    def times_root_transposed(self, array: NDArray[np.float64]) -> NDArray[np.float64]:
        """T' array: (D, m) -> (D, m), from one over the units of the coordinates to the scaled ones."""
        return self._mapped(array, transposed=True)

    def solve_root_transposed(self, array: NDArray[np.float64]) -> NDArray[np.float64]:
        """T^-T array: (D, m) -> (D, m), which takes :meth:`times_root_transposed` back."""
        return self._mapped(array, transposed=True, solves=True)

    def solve(self, array: NDArray[np.float64]) -> NDArray[np.float64]:
        """R^-1 array: (D, m) -> (D, m)."""
        return self.solve_root_transposed(self._mapped(array, transposed=False, solves=True))

    def _mapped(self, array, transposed, solves=False):
        """T array, or T^-1 array where it ``solves``, with T' in place of T where it is ``transposed``."""
        result = np.empty(array.shape)
        for place, roots in self.blocks:
            roots = roots.swapaxes(1, 2) if transposed else roots
            part = array[place]
            blocks = part.reshape(*roots.shape[:2], array.shape[1])
            if roots.shape[1] == 1:
                blocks = blocks / roots if solves else roots * blocks
            else:
                blocks = np.linalg.solve(roots, blocks) if solves else roots @ blocks
            result[place] = blocks.reshape(part.shape)
        return result

    def times_root_in_place(self, array: NDArray[np.float64], transposed: bool = False) -> None:
        """Turn an array (D, m) into T array, or T' array, without a second one of its size."""
        for place, roots in self.blocks:
            if roots.shape[1] == 1:
                array[place] *= roots[:, 0]
            else:
                part, roots = array[place], roots.swapaxes(1, 2) if transposed else roots
                product = roots @ part.reshape(*roots.shape[:2], array.shape[1])
                array[place] = product.reshape(part.shape)

    def remaining(self, shares: NDArray[np.float64]) -> "CompleteInformation":
        """R^-1 of which a positive share remains in every coordinate, one in blocks of several: (D,)."""
        return CompleteInformation(
            [
                (place, roots / np.sqrt(shares[place]).reshape(*roots.shape[:2], 1))
                for place, roots in self.blocks
            ]
        )

    def root_rows(self, index: NDArray[np.intp]) -> NDArray[np.float64]:
        """T[index]' for an int array (m,): (D, m). Column j is T' times unit vector ``index[j]``."""
        selected = np.zeros((len(self), len(index)))
        selected[index, np.arange(len(index))] = 1.0
        return self.times_root_transposed(selected)

    def covariance_root(self, index: NDArray[np.intp]) -> NDArray[np.float64]:
        """Y with Y' Y = R[index, index] for an int array (m,): T[index]' without blocks that are zero."""
        parts = []
        for place, roots in self.blocks:
            size = roots.shape[1]
            places = np.full(len(self), -1)
            places[place] = np.arange(roots.shape[0] * size)
            columns = np.flatnonzero(places[index] >= 0)
            block, row = np.divmod(places[index][columns], size)
            used, number = np.unique(block, return_inverse=True)
            part = np.zeros((len(used), size, len(index)))
            part[number, :, columns] = roots[block, row]
            parts.append(part.reshape(-1, len(index)))
        return np.concatenate(parts)
