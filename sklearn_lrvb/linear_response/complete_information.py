"""R^-1, the information that there would be if the latent variables were known.

The solvers of `observed_information` scale by its root.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular


@dataclass(frozen=True)
class CompleteInformation:
    """R^-1 through a root T of R = T T': a dense block on a few coordinates, diagonal on the others.

    Parameters
    ----------
    dense_index : int ndarray of shape (b,)
        Coordinates that share a dense block.
    dense_root : ndarray of shape (b, b)
        Root of R on those coordinates. :meth:`solve_root_transposed` needs it lower triangular.
    root : ndarray of shape (D,)
        Square root of the diagonal of R. Its entries at `dense_index` are not used.

    Attributes
    ----------
    dense_index, dense_root, root : ndarray
        As given.

    Examples
    --------
    Two correlated coordinates, and a third with variance 4:

    >>> import numpy as np
    >>> from sklearn_lrvb.linear_response import CompleteInformation
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

    @classmethod
    def from_root(cls, root: NDArray[np.float64]) -> "CompleteInformation":
        """R = root root' as one dense block, from a root of shape (D, D).

        Parameters
        ----------
        root : ndarray of shape (D, D)
            Any T with R = T T'; :meth:`solve_root_transposed` needs it lower triangular.

        Returns
        -------
        complete : CompleteInformation
            Of size D.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn_lrvb.linear_response import CompleteInformation
        >>> R = np.array([[1.0, 0.6], [0.6, 4.0]])
        >>> CompleteInformation.from_root(np.linalg.cholesky(R)).deviations.round(12)
        array([1., 2.])
        """
        return cls(np.arange(len(root)), root, np.ones(len(root)))

    def remaining(self, shares: NDArray[np.float64]) -> "CompleteInformation":
        """R^-1 of which a share remains in every coordinate.

        Parameters
        ----------
        shares : ndarray of shape (D,)
            Positive; one at `dense_index`.

        Returns
        -------
        remaining : CompleteInformation
            Its variances are those of R over the shares.

        Examples
        --------
        Half of the information about the third coordinate, whose variance was 4, is lost:

        >>> import numpy as np
        >>> from sklearn_lrvb.linear_response import CompleteInformation
        >>> block = np.linalg.cholesky([[1.0, 0.6], [0.6, 1.0]])
        >>> complete = CompleteInformation(np.array([0, 1]), block, np.array([1.0, 1.0, 2.0]))
        >>> complete.remaining(np.array([1.0, 1.0, 0.5])).deviations.round(3)
        array([1.   , 1.   , 2.828])
        """
        return CompleteInformation(self.dense_index, self.dense_root, self.root / np.sqrt(shares))

    def __len__(self) -> int:
        return len(self.root)

    @property
    def nbytes(self) -> int:
        """Total size of the arrays in bytes."""
        return self.dense_index.nbytes + self.dense_root.nbytes + self.root.nbytes

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

    def _scaled(self, array, dense):
        scaled = self.root[:, None] * array
        scaled[self._dense_place] = dense(array[self._dense_place])
        return scaled

    def times_root(self, array: NDArray[np.float64]) -> NDArray[np.float64]:
        """T array: (D, m) -> (D, m).

        Parameters
        ----------
        array : ndarray of shape (D, m)
            Columns in the scaled coordinates.

        Returns
        -------
        product : ndarray of shape (D, m)
            In the units of the coordinates.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn_lrvb.linear_response import CompleteInformation
        >>> complete = CompleteInformation.from_root(np.array([[1.0, 0.0], [0.5, 2.0]]))
        >>> complete.times_root(np.eye(2))
        array([[1. , 0. ],
               [0.5, 2. ]])
        """
        return self._scaled(array, lambda block: self.dense_root @ block)

    def times_root_transposed(self, array: NDArray[np.float64]) -> NDArray[np.float64]:
        """T' array: (D, m) -> (D, m).

        Parameters
        ----------
        array : ndarray of shape (D, m)
            Columns in one over the units of the coordinates.

        Returns
        -------
        product : ndarray of shape (D, m)
            Without unit.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn_lrvb.linear_response import CompleteInformation
        >>> complete = CompleteInformation.from_root(np.array([[1.0, 0.0], [0.5, 2.0]]))
        >>> complete.times_root_transposed(np.eye(2))
        array([[1. , 0.5],
               [0. , 2. ]])
        """
        return self._scaled(array, lambda block: self.dense_root.T @ block)

    def scale_in_place(self, matrix: NDArray[np.float64]) -> None:
        """Turn a symmetric matrix (D, D) into T' matrix T without a second matrix of its size.

        Parameters
        ----------
        matrix : ndarray of shape (D, D)
            Symmetric. It is overwritten.

        Examples
        --------
        R^-1 itself becomes the identity:

        >>> import numpy as np
        >>> from sklearn_lrvb.linear_response import CompleteInformation
        >>> T = np.array([[1.0, 0.0], [0.5, 2.0]])
        >>> matrix = np.linalg.inv(T @ T.T)
        >>> CompleteInformation.from_root(T).scale_in_place(matrix)
        >>> np.allclose(matrix, np.eye(2))
        True
        """
        dense = self.dense_index
        for view in (matrix, matrix.T):
            mixed = self.dense_root.T @ view[dense]
            view *= self.root[:, None]
            view[dense] = mixed

    def solve_root_transposed(self, array: NDArray[np.float64]) -> NDArray[np.float64]:
        """T^-T array: (D, m) -> (D, m).

        Parameters
        ----------
        array : ndarray of shape (D, m)
            Columns in the scaled coordinates.

        Returns
        -------
        solution : ndarray of shape (D, m)
            It takes :meth:`times_root_transposed` back.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn_lrvb.linear_response import CompleteInformation
        >>> complete = CompleteInformation.from_root(np.array([[1.0, 0.0], [0.5, 2.0]]))
        >>> complete.solve_root_transposed(complete.times_root_transposed(np.eye(2))).round(12)
        array([[1., 0.],
               [0., 1.]])
        """
        scaled = array / self.root[:, None]
        scaled[self.dense_index] = solve_triangular(
            self.dense_root, array[self.dense_index], lower=True, trans="T"
        )
        return scaled

    def root_rows(self, index: NDArray[np.intp]) -> NDArray[np.float64]:
        """T[index]' for an int array (m,): (D, m). Column j is T' times unit vector ``index[j]``.

        Parameters
        ----------
        index : int ndarray of shape (m,)
            Some of the coordinates.

        Returns
        -------
        rows : ndarray of shape (D, m)
            Those rows of T, as columns.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn_lrvb.linear_response import CompleteInformation
        >>> complete = CompleteInformation.from_root(np.array([[1.0, 0.0], [0.5, 2.0]]))
        >>> complete.root_rows(np.array([1]))
        array([[0.5],
               [2. ]])
        """
        selected = np.zeros((len(self), len(index)))
        selected[index, np.arange(len(index))] = 1.0
        return self.times_root_transposed(selected)

    def covariance_root(self, index: NDArray[np.intp]) -> NDArray[np.float64]:
        """Y with Y' Y = R[index, index] for an int array (m,), without the rows that are zero: (b + m, m).

        Parameters
        ----------
        index : int ndarray of shape (m,)
            Some of the coordinates.

        Returns
        -------
        root : ndarray of shape (b + m, m)
            In the units of the coordinates.

        Examples
        --------
        The variance of one of two coordinates with R = [[1, 0.5], [0.5, 4.25]]:

        >>> import numpy as np
        >>> from sklearn_lrvb.linear_response import CompleteInformation
        >>> complete = CompleteInformation.from_root(np.array([[1.0, 0.0], [0.5, 2.0]]))
        >>> root = complete.covariance_root(np.array([1]))
        >>> root.T @ root
        array([[4.25]])
        """
        columns, rows = np.nonzero(np.asarray(index)[:, None] == self.dense_index)
        dense = np.zeros((len(self.dense_index), len(index)))
        dense[:, columns] = self.dense_root[rows].T
        diagonal = self.root[index]
        diagonal[columns] = 0.0
        return np.concatenate([dense, np.diag(diagonal)])
