"""Linear response for single rows: the covariance of their log densities, and the effects of their weight.

*Conventions.* rho_k(x) is the expected log density of a row at x in component k; h_k(x) are its features
there (`covariance_structures`), as columns of H (D, K). Then

    T = H' M^-1 H            (K, K): the LRVB covariance of rho_1(x), ..., rho_K(x),
    R^-1 M^-1 H q            (D,): the change of the sufficient statistics when a row of weight q_k is added
                             to component k, and all other assignments respond.

An entry of T costs 2 F^2 flops and the second quantity 2 (K F)^2, with F features a component. Where few rows
are ambiguous (`DualInformation`) both need kernels with these rows alone, and no feature is formed for T.
Components to which a row does not belong are skipped (``used``). `leverage` and `leave_one_out` use both.
"""

import functools

import numpy as np
from scipy.linalg import cho_solve

from sklearn_lrvb.gaussian_mixture.e_step.frames import expected_features
from sklearn_lrvb.row_blocks import untracked


class _Rows:
    """Rows of one block and their features.

    Parameters
    ----------
    posterior : VariationalPosterior
    whitened : OwnRows
    used : bool array (K, n), whether a row belongs to a component at all
    """

    def __init__(self, posterior, whitened, used):
        self._posterior = posterior
        self._structure = posterior.structure
        self._whitened = whitened
        self._used = used
        self._kept = {}

    def _rows(self, k, columns):
        return self._whitened.values[k][:, columns]

    def _features(self, k, columns):
        """h_k of some of the rows, (F, n); not to be written to."""
        if k not in self._kept:
            self._kept[k] = expected_features(self._posterior, self._whitened, k)
        features = self._kept[k]
        return features if len(columns) == features.shape[1] else features.take(columns, axis=1)


class _RowResponses(_Rows):
    """Rows of one block, with the images M^-1 h of their features."""

    def _coordinates(self, k):
        """Coordinates of a component's coefficients, int array (F,)."""
        return self._structure.layout.coefficient_index(k)

    def covariance(self, k, l, columns):
        """T_kl of some of the rows, (n,)."""
        return np.einsum(
            "fn,fn->n", self._features(l, columns), self._images(k, self._coordinates(l), columns)
        )

    def covariances(self):
        """T, zero for components to which a row does not belong: (K, K, n)."""
        covariances = np.zeros((len(self._used), *self._used.shape))
        for k, used in enumerate(self._used):
            for l in range(k + 1):
                columns = np.flatnonzero(used & self._used[l])
                if columns.size:
                    covariances[k, l, columns] = self.covariance(k, l, columns)
                    covariances[l, k] = covariances[k, l]
        return covariances

    def _response(self, coordinates, weights, columns):
        """(M^-1 H q)[coordinates] of some of the rows, given their q (K, n): (len(coordinates), n)."""
        response = np.zeros((len(coordinates), len(columns)))
        for k, used in enumerate(self._used):
            within = np.flatnonzero(used[columns])
            if within.size:
                images = self._images(k, coordinates, columns[within])
                response[:, within] += weights[k, within] * images
        return response

    def counts(self, weights, columns):
        """Changes of the expected counts: (K, n), int array (n,) -> (K, n)."""
        response = self._response(np.arange(len(weights)), weights, columns)
        return cho_solve((self._posterior.intercept_root, True), response)

    def moments(self, l, weights, columns):
        """Changes of a component's other statistics in its frame, as of features: (P, n), (Q, n)."""
        structure, group = self._structure, self._structure.layout.precision_group(l)
        response = self._response(self._coordinates(l)[1:], weights, columns)
        linear, quadratic = response[: structure.n_features], response[structure.n_features :]
        linear *= self._posterior.mean_precision[l]
        quadratic *= self._posterior.effective_degrees_of_freedom[group] / structure.power
        return linear, quadratic


class _ByInverse(_RowResponses):
    """Responses from the matrix M^-1."""

    def __init__(self, inverse, *rows):
        super().__init__(*rows)
        self._inverse = inverse

    def _images(self, k, coordinates, columns):
        """(M^-1 h_k)[coordinates], (len(coordinates), n)."""
        return self._inverse[np.ix_(coordinates, self._coordinates(k))] @ self._features(k, columns)


class _BySolutions(_RowResponses):
    """Responses from M^-1 h, solved for every row and component."""

    def __init__(self, information, *rows):
        super().__init__(*rows)
        self._solutions = [self._solved(information, k) for k in range(len(self._used))]

    def _solved(self, information, k):
        solutions = np.zeros((len(information), self._used.shape[1]))
        columns = np.flatnonzero(self._used[k])
        if columns.size:
            sources = np.zeros((len(information), columns.size))
            sources[self._coordinates(k)] = self._features(k, columns)
            solutions[:, columns] = information.solve(sources)
        return solutions

    def _images(self, k, coordinates, columns):
        """(M^-1 h_k)[coordinates], (len(coordinates), n)."""
        return self._solutions[k][np.ix_(coordinates, columns)]


class _ByKernels(_RowResponses):
    """Responses from M^-1 = R + R B (I - B' R B)^-1 B' R, by kernels of the rows with the columns of B."""

    def __init__(self, information, *rows):
        super().__init__(*rows)
        self._information = information
        self._halves = [self._half(k) for k in range(len(self._used))]

    def _half(self, k):
        """z with z'z the contribution of B to T_kk; zero for rows that do not belong to k: (m, n)."""
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
        """(I - B' R B)^-1 B' R H q, the response of the ambiguous rows' assignments: (m, n)."""
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
            change = weights[k] * self._features(k, columns)
            change += self._information.factor.component_product(k, reassigned)
            quadratic += change[1 + n_features :]
            if k == l:
                linear = change[1 : 1 + n_features]
        return linear, quadratic


class WithoutResponse(_Rows):
    """Responses where no other row's assignment responds (M^-1 = R)."""

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
        self._response_class, self._source, self._work = information.response_route(n_targets, self)

    def by_kernels(self, information):
        """The class of the responses, its first argument, and the work for a row (`ResponseRoutes`)."""
        size = len(information.factor) + self._posterior.n_features
        work = {"numbers_per_row": self._posterior.n_components * size, "product_size": size}
        return _ByKernels, information, work

    def by_solutions(self, information):
        """The same where every row and component is solved for."""
        numbers = len(information) * self._posterior.n_components
        return _BySolutions, information, {"bytes_of_solutions": 8 * numbers}

    def by_inverse(self, inverse):
        """The same from the matrix M^-1."""
        structure = self._posterior.structure
        n_features = 1 + structure.n_features + structure.n_quadratic
        # Only the rows of a block that two components share take part in the products.
        return _ByInverse, inverse, {"numbers_per_row": 2 * n_features, "product_size": n_features // 2}

    def concatenated(self, function, rows, tracked=untracked):
        """``function(responses, block)`` of all blocks of some rows, as `ArrayRows.concatenated`.

        Solving for rows may itself take passes over the training rows. It is then done here, for as many rows
        at once as memory allows. Otherwise the function is applied in one pass over the rows.
        """
        function = functools.partial(function, self)
        if "numbers_per_row" in self._work:
            return rows.concatenated(function, tracked=tracked, **self._work)
        whole = None
        for block in rows.blocks(self._work["bytes_of_solutions"], tracked):
            part = function(block)
            if whole is None:
                whole = np.empty((rows.n_samples, *part.shape[:-1]))
            whole[block.numbers] = part.T
        return whole

    def variances(self, sources):
        """Posterior variances of linear functions J beta of the coefficients, given J' (D, n): (n,)."""
        if self._response_class is _ByInverse:
            return np.einsum("dn,dn->n", sources, self._source @ sources)
        return np.einsum("dn,dn->n", sources, self._source.solve(sources))

    def of_block(self, whitened, used):
        """Responses of the rows of one block: OwnRows, bool array (K, n)."""
        kind = self._response_class
        if kind is _ByKernels and whitened.hidden is not None:
            kind = _BySolutions  # Kernels are of rows, not of what is expected of rows with holes.
        return kind(self._source, self._posterior, whitened, used)
