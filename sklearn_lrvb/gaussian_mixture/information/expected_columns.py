"""The columns of B where rows have holes, and what remains of the complete information beside them.

Where precisions are numbers, hidden values take a diagonal C from R^-1 (`hidden_information`). The features
of rows with holes are their expectations, and R is that of what C leaves, R^-1 - C.
"""

import functools
from functools import cached_property

import numpy as np

from sklearn_lrvb.gaussian_mixture.e_step.frames import OwnFrames, expected_features
from sklearn_lrvb.gaussian_mixture.e_step.responsibilities import expect
from sklearn_lrvb.gaussian_mixture.information.columns import (
    RowColumns,
    columns_of_block,
    joined,
    negligible_information,
)
from sklearn_lrvb.gaussian_mixture.information.hidden_information import HiddenScaleInformation
from sklearn_lrvb.row_blocks import added


class ExpectedColumns(RowColumns):
    """The columns by their features, which are as few as the entries of a row where precisions are numbers.

    Parameters
    ----------
    posterior : VariationalPosterior, of a `ScaleStructure`
    complete : CompleteInformation, R^-1
    shares : (D,), shares of R^-1 that hidden values leave
    features : (K, F, n), what is expected of the features of ambiguous rows
    row : int array (m,), the row of every column
    weights : (K, m), the vector a of every column
    """

    def __init__(self, posterior, complete, shares, features, row, weights):
        super().__init__(posterior, row, weights)
        self.shares = shares
        self._complete = complete
        self._expected = features

    @classmethod
    def of_rows(cls, rows, posterior, complete, hidden_values=True):
        """The columns at a posterior, by one pass over the rows.

        They take K F numbers for every ambiguous row.

        Parameters
        ----------
        rows : CentredRows
        posterior : VariationalPosterior
        complete : CompleteInformation
        hidden_values : bool, default=True
            Whether hidden values take information. If not, all shares are one.
        """
        frames, hidden = OwnFrames(posterior), HiddenScaleInformation(posterior.structure)
        function = functools.partial(
            _columns_of_block, posterior, frames, hidden, negligible_information(rows, posterior)
        )
        features, row, weights, sums = zip(*rows.map(function, frames.numbers_per_row), strict=True)
        taken = hidden.diagonal(functools.reduce(added, sums)) if hidden_values else 0.0
        return cls(
            posterior,
            complete,
            1.0 - np.square(complete.root) * taken,
            np.concatenate(features, axis=2),
            *joined(row, weights, [part.shape[2] for part in features]),
        )

    @cached_property
    def _rest(self):
        """R^-1 - C."""
        return self._complete.remaining(self.shares)

    def to_arrays(self):
        return {"features": self._expected, "row": self._row, "weights": self.weights}

    @classmethod
    def from_arrays(cls, posterior, complete, shares, arrays):
        """Inverse of `to_arrays`, given the rest."""
        return cls(posterior, complete, shares, arrays["features"], arrays["row"], arrays["weights"])

    @property
    def _n_rows(self):
        return self._expected.shape[2]

    @property
    def _batches(self):
        return [slice(0, self._n_rows)]

    @property
    def _features(self):
        return [[features] for features in self._expected]

    def kernel(self):
        """B' R B, (m, m)."""
        intercepts = self._posterior.intercept_root.T @ self.weights
        kernel = intercepts.T @ intercepts
        for k, features in enumerate(self._expected):
            scaled = features[1:] * self._rest.root[self._coordinates(k), None]
            of_columns = scaled @ self._rows_of_columns[k]
            kernel += of_columns.T @ of_columns
        return kernel

    def _coordinates(self, k):
        """The coefficients of a component after its intercept, int array (F - 1,)."""
        return self._posterior.structure.layout.coefficient_index(k)[1:]

    def responses(self, index):
        """B' R[:, index], (m, len(index))."""
        index, root = np.asarray(index), self._posterior.intercept_root
        responses = np.zeros((len(self), len(index)))
        intercept = np.flatnonzero(index < len(root))
        responses[:, intercept] = (root[index[intercept]] @ (root.T @ self.weights)).T
        for k, features in enumerate(self._expected):
            place = np.full(len(self._rest), -1)
            place[self._coordinates(k)] = np.arange(1, len(features))
            own = np.flatnonzero(place[index] > 0)
            variances = np.square(self._rest.root[index[own]])
            responses[:, own] = self._rows_of_columns[k].T @ (features[place[index[own]]].T * variances)
        return responses


def _columns_of_block(posterior, frames, hidden, negligible, block):
    """Expected features of a block's ambiguous rows (K, F, n), their columns, and sums of hidden values."""
    expectation = expect(frames, block)
    index, row, weights = columns_of_block(posterior, negligible, block, expectation)
    some = expectation.whitened.selected(index)
    features = [expected_features(posterior, some, k) for k in range(posterior.n_components)]
    counted = block.weighted(expectation.responsibilities)
    sums = None if block.holes is None else hidden.of_block(expectation.whitened, counted)
    return np.stack(features), row, weights, sums
