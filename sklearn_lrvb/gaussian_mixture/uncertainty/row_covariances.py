"""Linear response for single rows: the covariance of their log densities, and what their weight moves.

*Conventions.* rho_k(x) is the expected log density of a row at x in component k; h_k(x) are its features
there (`covariance_structures`), as columns of H (D, K). Then

    T = H' M^-1 H            (K, K): the LRVB covariance of rho_1(x), ..., rho_K(x),
    R^-1 M^-1 H q            (D,): how the sufficient statistics move when a row of weight q_k appears in
                             component k, and all other assignments respond.

One number of T costs 2 F^2 flops and the second 2 (K F)^2, with F features a component; where few rows are
ambiguous (`DualInformation`) both cost kernels with these rows alone, and no feature is formed for T.
Components in which a row has no part are skipped (``used``).
"""

import functools

import numpy as np
from scipy.linalg import cho_solve


class _Rows:
    """Rows of one block and their features.

    Parameters
    ----------
    posterior : VariationalPosterior
    whitened : (K, P, n), rows in every component's frame
    used : bool array (K, n), where a row has a part in a component
    """

    def __init__(self, posterior, whitened, used):
        self._posterior = posterior
        self._structure = posterior.structure
        self._whitened = whitened
        self._used = used
        self._kept = {}

    def _rows(self, k, columns):
        return self._whitened[k][:, columns]

    def _features(self, k, columns):
        """h_k of some of the rows, (F, n); not to be written to."""
        if k not in self._kept:
            origin = self._posterior.second_moment_origin[self._structure.layout.precision_group(k)]
            self._kept[k] = self._structure.component_features(self._whitened[k], origin)
        features = self._kept[k]
        return features if len(columns) == features.shape[1] else features.take(columns, axis=1)


class _RowResponses(_Rows):
    """Rows of one block, whose images M^-1 h are known."""

    def _places(self, k):
        """Where a component's coefficients stand, int array (F,)."""
        return self._structure.layout.coefficient_index(k)

    def covariance(self, k, l, columns):
        """T_kl of some of the rows, (n,)."""
        return np.einsum("fn,fn->n", self._features(l, columns), self._images(k, self._places(l), columns))

    def covariances(self):
        """T, zero where a row has no part in one of the two: (K, K, n)."""
        covariances = np.zeros((len(self._used), *self._used.shape))
        for k, used in enumerate(self._used):
            for l in range(k + 1):
                columns = np.flatnonzero(used & self._used[l])
                if columns.size:
                    covariances[k, l, columns] = self.covariance(k, l, columns)
                    covariances[l, k] = covariances[k, l]
        return covariances

    def _response(self, places, weights, columns):
        """(M^-1 H q)[places] of some of the rows, given q (K, n) of them: (len(places), n)."""
        response = np.zeros((len(places), len(columns)))
        for k, used in enumerate(self._used):
            within = np.flatnonzero(used[columns])
            if within.size:
                images = self._images(k, places, columns[within])
                response[:, within] += weights[k, within] * images
        return response

    def counts(self, weights, columns):
        """Changes of the expected counts: (K, n), int array (n,) -> (K, n)."""
        response = self._response(np.arange(len(weights)), weights, columns)
        return cho_solve((self._posterior.intercept_root, True), response)

    def moments(self, l, weights, columns):
        """Changes of a component's other statistics in its frame, as of features: (P, n), (Q, n)."""
        structure, group = self._structure, self._structure.layout.precision_group(l)
        response = self._response(self._places(l)[1:], weights, columns)
        linear, quadratic = response[: structure.n_features], response[structure.n_features :]
        linear *= self._posterior.mean_precision[l]
        quadratic *= self._posterior.effective_degrees_of_freedom[group] / structure.power
        return linear, quadratic


class _ByInverse(_RowResponses):
    """M^-1 as a matrix."""

    def __init__(self, inverse, *rows):
        super().__init__(*rows)
        self._inverse = inverse

    def _images(self, k, places, columns):
        """(M^-1 h_k)[places], (len(places), n)."""
        return self._inverse[np.ix_(places, self._places(k))] @ self._features(k, columns)


class _BySolutions(_RowResponses):
    """M^-1 h, solved for every row and component."""

    def __init__(self, information, *rows):
        super().__init__(*rows)
        self._solutions = [self._solved(information, k) for k in range(len(self._used))]

    def _solved(self, information, k):
        solutions = np.zeros((len(information), self._used.shape[1]))
        columns = np.flatnonzero(self._used[k])
        if columns.size:
            sources = np.zeros((len(information), columns.size))
            sources[self._places(k)] = self._features(k, columns)
            solutions[:, columns] = information.solve(sources)
        return solutions

    def _images(self, k, places, columns):
        """(M^-1 h_k)[places], (len(places), n)."""
        return self._solutions[k][np.ix_(places, columns)]


class _ByKernels(_RowResponses):
    """M^-1 = R + R B (I - B' R B)^-1 B' R, few columns in B: kernels of the rows with the ambiguous ones."""

    def __init__(self, information, *rows):
        super().__init__(*rows)
        self._information = information
        self._halves = [self._half(k) for k in range(len(self._used))]

    def _half(self, k):
        """z, where z'z is the contribution of B to T_kk; zero where the row has no part: (m, n)."""
        halves = np.zeros((len(self._information.factor), self._used.shape[1]))
        columns = np.flatnonzero(self._used[k])
        if columns.size:
            kernels = self._information.factor.responses_to_rows(k, self._rows(k, columns))
            halves[:, columns] = self._information.half(kernels)
        return halves

    def covariance(self, k, l, columns):
        """T_kl of some of the rows, (n,)."""
        posterior, structure = self._posterior, self._structure
        rows, others, group = (
            self._rows(k, columns),
            self._rows(l, columns),
            structure.layout.precision_group(k),
        )
        covariance = np.einsum("mn,mn->n", self._halves[k][:, columns], self._halves[l][:, columns])
        covariance += posterior.intercept_root[k] @ posterior.intercept_root[l]
        if k == l:
            covariance += np.einsum("pn,pn->n", rows, rows) / posterior.mean_precision[k]
        if l in structure.layout.components_sharing_precision(k):
            products = structure.quadratic_products(rows, others, posterior.second_moment_origin[group])
            covariance += products * (structure.power / posterior.effective_degrees_of_freedom[group])
        return covariance

    def _reassigned(self, weights, columns):
        """(I - B' R B)^-1 B' R H q, how the ambiguous rows' assignments respond: (m, n)."""
        halves = sum(own * half[:, columns] for own, half in zip(weights, self._halves, strict=True))
        return self._information.half_transposed(halves)

    def counts(self, weights, columns):
        """Changes of the expected counts: (K, n), int array (n,) -> (K, n)."""
        return weights + self._information.factor.weights @ self._reassigned(weights, columns)

    def moments(self, l, weights, columns):
        """Changes of a component's other statistics in its frame, as of features: (P, n), (Q, n)."""
        structure, n_features = self._structure, self._structure.n_features
        reassigned = self._reassigned(weights, columns)
        quadratic = 0.0
        for k in structure.layout.components_sharing_precision(l):
            moved = weights[k] * self._features(k, columns)
            moved += self._information.factor.component_product(k, reassigned)
            quadratic += moved[1 + n_features :]
            if k == l:
                linear = moved[1 : 1 + n_features]
        return linear, quadratic


class WithoutResponse(_Rows):
    """Rows whose weight moves no other row's assignment (M = R)."""

    def counts(self, weights, columns):
        """Changes of the expected counts: (K, n), int array (n,) -> (K, n)."""
        return weights

    def moments(self, l, weights, columns):
        """Changes of a component's other statistics in its frame, as of features: (P, n), (Q, n)."""
        n_features = self._structure.n_features
        components_sharing_precision = self._structure.layout.components_sharing_precision(l)
        quadratic = sum(
            weights[k] * self._features(k, columns)[1 + n_features :] for k in components_sharing_precision
        )
        return weights[l] * self._rows(l, columns), quadratic


class ResponsesOfRows:
    """Responses of many rows, block by block, computed in the cheapest way.

    Parameters
    ----------
    information : ObservedInformation
    posterior : VariationalPosterior
    n_rows : int, number of the rows
    """

    def __init__(self, information, posterior, n_rows):
        self._posterior = posterior
        n_targets = n_rows * posterior.n_components
        self._way, self._known, self._size = information.response_route(n_targets, self)

    def by_kernels(self, information):
        """The responses' class, what it is made from, and the size of a row's share (`ResponseRoutes`)."""
        numbers = len(information.factor) + self._posterior.n_features
        return _ByKernels, information, {"numbers_per_row": self._posterior.n_components * numbers}

    def by_solutions(self, information):
        """The same where every row and component is solved for."""
        numbers = len(information) * self._posterior.n_components
        return _BySolutions, information, {"bytes_of_solutions": 8 * numbers}

    def by_inverse(self, inverse):
        """The same from the matrix M^-1."""
        structure = self._posterior.structure
        n_features = 1 + structure.n_features + structure.n_quadratic
        return _ByInverse, inverse, {"numbers_per_row": 2 * n_features}

    def concatenated(self, function, rows):
        """``function(responses, block)`` of all blocks of some rows, as `CentredRows.concatenated`.

        Solving for rows may itself take passes over the training rows, so it is done here, for as many rows
        at once as memory allows; otherwise, the function goes to where the rows are.
        """
        function = functools.partial(function, self)
        if "numbers_per_row" in self._size:
            return rows.concatenated(function, self._size["numbers_per_row"])
        blocks = rows.blocks(self._size["bytes_of_solutions"])
        return np.concatenate([function(block) for block in blocks], axis=-1)

    def of_block(self, whitened, used):
        """Responses of the rows of one block: (K, P, n), bool array (K, n)."""
        return self._way(self._known, self._posterior, whitened, used)
