"""How uncertain the log densities of rows are, and how the posterior responds to rows that come or go.

rho_k(x) is the expected log density of a row at x with label k, and H (D, L) has the columns h_k, the row's
features (`Coordinates.features`), of the K components and, if there is one, the noise component. Then

    V_rho = H' M^-1 H        (L, L): the LRVB covariance of rho_1(x), ..., rho_L(x),
    R^-1 M^-1 H q            (D,): the change of the sufficient statistics when a row of weight q_k is added
                             to component k, and all other assignments respond.

An entry of V_rho costs 2 F^2 flops and the second quantity 2 (K F)^2, with F features a component. Components
to which a row does not belong are skipped (``used``). `leave_one_out` uses both.
"""

import functools
from abc import ABC, abstractmethod

import numpy as np

from sklearn_lrvb.rows import Workload, untracked

# Number of labels and directions of a row for which systems are solved, about, by which blocks are cut: most
# rows belong to one component.
_DIRECTIONS_OF_A_ROW = 2


class RowStatistics:
    """What rows of one block add to the sufficient statistics, where no other row's assignment responds.

    Parameters
    ----------
    responses : ResponsesOfRows
    represented : rows as ``responses.coordinates`` represents them
    """

    def __init__(self, responses, represented):
        self._responses, self._posterior, self._represented = responses, responses.posterior, represented
        # Coordinates of the features of every label, and the features that were needed.
        self._places, self._kept = list(self._posterior.coefficients_of_labels), {}

    def _features(self, k, columns):
        """h_k of some of the rows, (F, n); not to be written to."""
        if k not in self._kept:
            self._kept[k] = self._responses.coordinates.features(self._represented, k)
        features = self._kept[k]
        return features if len(columns) == features.shape[1] else features.take(columns, axis=1)

    def counts(self, weights, columns):
        """Changes of the expected counts, with weights of some rows by label: (L, n) -> (L, n)."""
        return weights

    def statistics(self, coordinates, weights, columns):
        """Changes of the statistics at some coordinates, int array (c,), by the same weights: (c, n)."""
        positions = np.full(self._posterior.n_coefficients, -1)
        positions[coordinates] = np.arange(len(coordinates))
        changes = np.zeros((len(coordinates), len(columns)))
        for k, place in enumerate(self._places):
            asked = positions[place] >= 0
            if asked.any():
                changes[positions[place[asked]]] += weights[k] * self._features(k, columns)[asked]
        return changes


class RowResponses(RowStatistics):
    """The same where all assignments respond, and the covariances of log densities.

    They follow from the images M^-1 h of the rows' features: from the inverse M^-1, or solved for one by one.

    Parameters
    ----------
    responses, represented : as in `RowStatistics`
    used : bool array (L, n), whether a row may have a label at all
    directions : sequence of pairs of features (F, n) and their coordinates (F,), after those of the labels
    """

    def __init__(self, responses, represented, used, directions=()):
        super().__init__(responses, represented)
        for features, place in directions:
            self._kept[len(self._places)] = features
            self._places.append(place)
        self._used = self.by_direction(used)
        self._solutions = None if responses.inverse is not None else self._solved(responses.information)

    def _solved(self, information):
        """M^-1 h of every direction for the rows that have it: list of arrays (D, n)."""
        solutions = []
        for k, columns in enumerate(map(np.flatnonzero, self._used)):
            sources = np.zeros((len(information), columns.size))
            sources[self._places[k]] = self._features(k, columns)
            solutions.append(information.solve(sources) if columns.size else sources)
        return solutions

    def by_direction(self, by_label):
        """Values by label, and those of components again for each set of directions: (L, n) -> (m, n)."""
        n_components = self._posterior.n_components
        n_more = (len(self._places) - len(by_label)) // n_components
        return np.concatenate([by_label, *n_more * [by_label[:n_components]]])

    def _images(self, k, coordinates, columns):
        """(M^-1 h_k)[coordinates] of some rows, (len(coordinates), n)."""
        if self._solutions is not None:
            return self._solutions[k][np.ix_(coordinates, np.cumsum(self._used[k])[columns] - 1)]
        return self._responses.inverse[np.ix_(coordinates, self._places[k])] @ self._features(k, columns)

    def covariances(self):
        """V_rho, zero for labels that a row does not have, and of directions: (L or m, L or m, n)."""
        covariances = np.zeros((len(self._used), *self._used.shape))
        for k, used in enumerate(self._used):
            for l in range(k + 1):
                columns = np.flatnonzero(used & self._used[l])
                if columns.size:
                    images = self._images(k, self._places[l], columns)
                    covariances[k, l, columns] = np.einsum("fn,fn->n", self._features(l, columns), images)
                    covariances[l, k] = covariances[k, l]
        return covariances

    def by_features(self, coefficients, columns):
        """h_k . beta in every direction that some rows have, given beta by row: (D, n) -> (m, n)."""
        products = np.zeros((len(self._places), len(columns)))
        for k, place in enumerate(self._places):
            products[k] = np.einsum("fn,fn->n", self._features(k, columns), coefficients[place])
        return products * self._used[:, columns]

    def response(self, coordinates, weights, columns):
        """(M^-1 H q)[coordinates] of some of the rows, given their q (L or m, n): (len(coordinates), n)."""
        response = np.zeros((len(coordinates), len(columns)))
        for k, used in enumerate(self._used):
            within = np.flatnonzero(used[columns])
            if within.size:
                images = self._images(k, coordinates, columns[within])
                response[:, within] += weights[k, within] * images
        return response

    def counts(self, weights, columns):
        response = self.response(self._posterior.weight_coordinates, weights, columns)
        return self._posterior.count_response(self._posterior.own_intercepts(response.T)).T

    def statistics(self, coordinates, weights, columns):
        response = self.response(coordinates, weights, columns)
        return self._responses.complete_product(coordinates, response)


class ResponsesOfRows(ABC):
    """Responses of many rows, block by block, computed in the cheapest way.

    The inverse M^-1 is formed where it takes less time than to solve for every row and label. Otherwise one
    system is solved for every row and every label that it may have, unless kernels do without.

    Parameters
    ----------
    information : ObservedInformation
    posterior : posterior of a mixture
    n_rows : int, number of the rows
    by_kernels : bool, default=True
        Whether `covariances` is all that is asked for: a model may compute it by kernels, without M^-1.

    Attributes
    ----------
    posterior : posterior of a mixture
    coordinates : those of the posterior, for any rows
    inverse : array (D, D), M^-1, or None
    n_directions : int, of a row: L, and those of `directions`
    """

    def __init__(self, information, posterior, n_rows, by_kernels=True):
        self.posterior, self.coordinates = posterior, posterior.model.coordinates(posterior)
        self.n_directions = posterior.n_labels
        self.information = information
        self._by_kernels = by_kernels and information.has_kernels
        self.inverse = None if self._by_kernels else information.inverse_for(n_rows * posterior.n_labels)

    def of_rows(self, rows, function, shape, tracked=untracked):
        """``function(responses, block)`` of all blocks of some rows in memory, as `ArrayRows.each`.

        Solving for rows may itself take passes over the training rows. It is then done here, for as many rows
        at once as memory allows. Otherwise the function is applied in one pass over the rows.
        """
        function, workload = functools.partial(function, self), self._workload(rows)
        if workload is not None:
            return rows.each(function, shape, workload=workload, tracked=tracked)
        out = np.empty((rows.n_samples, *shape))
        for block in rows.blocks(8 * len(self.information) * _DIRECTIONS_OF_A_ROW, tracked):
            out[block.index] = function(block).T
        return out

    def _workload(self, rows):
        """Workload of a pass over the rows, or None where linear systems are solved for them."""
        if self.inverse is None:
            return None
        # Only the rows of a block that two components share take part in the products.
        n_features = len(self.posterior.coefficients_of_labels[0])
        return Workload(2 * n_features, product=n_features // 2)

    def without_rows(self, represented, used):
        """`RowResponses` of the rows of one block that are left out, one at a time."""
        return RowResponses(self, represented, used, self.directions(represented))

    def resting(self, represented):
        """The same where no other row's assignment responds: RowStatistics."""
        return RowStatistics(self, represented)

    def directions(self, represented):
        """Directions in which features vary given the label, as in `RowResponses`; there may be none."""
        return ()

    @abstractmethod
    def complete_product(self, coordinates, coefficients):
        """R^-1 beta at some coordinates besides the intercepts, given beta there: (c, n) -> (c, n)."""

    @abstractmethod
    def scores_at(self, expectation, statistics, left_out):
        """Scores of rows with the statistics moved by left-out rows and by the responses to them: (n,).

        NaN where there is no such posterior.

        Parameters
        ----------
        expectation : Expectation of the rows
        statistics : what `resting` or `without_rows` returns
        left_out : (L or m, n), weights of every row by label, and by `directions`
        """

    def covariances(self, represented, used):
        """V_rho of the rows of one block, zero for labels that a row does not have: (L, L, n)."""
        return RowResponses(self, represented, used).covariances()

    def variances(self, sources):
        """Posterior variances of linear functions J beta of the coefficients, given J' (D, n): (n,)."""
        images = self.information.solve(sources) if self.inverse is None else self.inverse @ sources
        return np.einsum("dn,dn->n", sources, images)
