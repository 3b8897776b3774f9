"""The observed information of a mixture of latent classes, and what it costs.

A perturbation of the posterior moves the expected statistics m of class k by beta_k, and so the log densities
of a row with features F by beta_k.F. With responsibilities r and weights w of the rows, the missing
information is

    G_kl = -sum_n w r_k r_l F F'  for k != l,        G_kk = - sum over l != k of G_kl,

and M = R^-1 - G. Rows that can be of one class alone take no part. Learned hyperparameters add Q I^-1 Q' to G
of all rows (`learned_prior`).
"""

import functools
import itertools

import numpy as np
from scipy import sparse

from sklearn_lrvb.family_mixture.coordinates import ClassCoordinates
from sklearn_lrvb.linear_response.observed_information import SolverCosts
from sklearn_lrvb.linear_response.solvers import MatrixFreeInformation, PrimalInformation
from sklearn_lrvb.mixture.e_step import NEGLIGIBLE_INFORMATION, centred_on_average, expect
from sklearn_lrvb.mixture.model import MixtureInformation
from sklearn_lrvb.rows import Workload

# Costs in units of a flop of a large matrix product: of a number of a row in an iteration, of an entry of a
# matrix that is formed and scaled, and the overhead of a pass and of a matrix.
_FLOPS_PER_NUMBER, _FLOPS_PER_ENTRY = 60, 60
_FLOPS_PER_PASS, _FLOPS_PER_MATRIX = 4e6, 1e7
_FLOPS_TO_WEIGHT = 15  # A number of a row that is selected and weighted.
# An entry of a product of sparse features takes as long as so many flops; in dense form they take one.
_FLOPS_PER_SPARSE_ENTRY = 60


def _is_sparse(posterior):
    """Whether products of features are faster in sparse form."""
    return _FLOPS_PER_SPARSE_ENTRY * posterior.prior.n_entries**2 < posterior.prior.n_features**2


def _products_of_block(coordinates, negligible, is_sparse, block):
    """Sums of w r_k r_l F F' over a block for all pairs of classes: (pairs, W, W)."""
    expectation = expect(coordinates, block)
    r, features = expectation.responsibilities, expectation.represented.features
    counted, posterior = block.weighted(r), coordinates.posterior
    n_labels, n_features = len(r), len(features)
    # An upper bound of F' R_k F, the size of rows' features relative to R^-1: (K, n).
    information = np.square(posterior.array(posterior.complete_information.deviations) @ np.abs(features))
    products = np.zeros((n_labels * (n_labels - 1) // 2, n_features, n_features))
    for product, (k, l) in zip(products, itertools.combinations(range(n_labels), 2), strict=True):
        weights = counted[k] * r[l]
        some = np.flatnonzero(weights * (information[k] + information[l]) > negligible)
        if not some.size:
            continue
        rooted = features[:, some] * np.sqrt(weights[some])
        if is_sparse:
            stored = sparse.csr_array(rooted)
            product += (stored @ stored.T).toarray()
        else:
            product += rooted @ rooted.T
    return products


def missing_information_product(rows, posterior, coefficients):
    """G times some vectors: (D, m) -> (D, m), by one pass over the rows."""
    n_features, m = posterior.prior.n_features, coefficients.shape[1]
    function = functools.partial(_product_of_block, ClassCoordinates(posterior), coefficients)
    return rows.total(function, Workload(2 * n_features + 3 * posterior.n_labels * m, 0, n_features))


def _product_of_block(coordinates, coefficients, block):
    expectation = expect(coordinates, block)
    r, features = expectation.responsibilities, expectation.represented.features
    m = coefficients.shape[1]
    by_label = coefficients.reshape(len(features), len(r), m).transpose(1, 2, 0)  # (K, m, W)
    moved = centred_on_average((by_label @ features).transpose(0, 2, 1), r)  # (K, n, m)
    moved *= block.weighted(r)[:, :, None]
    return (features @ moved).transpose(1, 0, 2).reshape(-1, m)


class FamilyInformation(MixtureInformation):
    """The informations at a posterior of classes."""

    @property
    def complete(self):
        return self.posterior.complete_information

    def observed(self, rows, result, n_targets=1, solver=None, missing_values=True):
        """As of every mixture. Missing values take away no information besides that of labels."""
        chosen = solver or self.costs(rows, result).cheapest(n_targets)
        information, sources = self.posterior.learned_information
        root = sources / np.sqrt(information)
        if chosen == "primal":
            return PrimalInformation(self.complete, self.missing(rows) + root @ root.T)

        def product(coefficients):
            missing = missing_information_product(rows, self.posterior, coefficients)
            return missing + root @ (root.T @ coefficients)

        return MatrixFreeInformation(self.complete, product)

    def missing(self, rows):
        """G, (D, D), by one pass over the rows, in memory that does not depend on their number."""
        posterior, (n_labels, n_features) = self.posterior, self.posterior.sums.shape
        negligible = NEGLIGIBLE_INFORMATION / (rows.n_samples * max(1, n_labels * (n_labels - 1) // 2))
        coordinates = ClassCoordinates(posterior, rows)
        function = functools.partial(_products_of_block, coordinates, negligible, _is_sparse(posterior))
        products = (coordinates.kept_rows or rows).total(function, Workload(3 * n_features, 0, n_features))
        missing = np.zeros((n_features, n_labels, n_features, n_labels))
        for (k, l), product in zip(itertools.combinations(range(n_labels), 2), products, strict=True):
            missing[:, k, :, l] = missing[:, l, :, k] = -product
            missing[:, k, :, k] += product
            missing[:, l, :, l] += product
        return missing.reshape(posterior.n_coefficients, -1)

    def costs(self, rows, result):
        n_labels, n_features = self.posterior.sums.shape
        of_pair = n_features**2 + _FLOPS_TO_WEIGHT * n_features
        if _is_sparse(self.posterior):
            of_pair = _FLOPS_PER_SPARSE_ENTRY * self.posterior.prior.n_entries**2
        per_row = _FLOPS_PER_NUMBER * (n_features + n_labels) + 4 * n_features * n_labels
        iteration = rows.n_samples * per_row + _FLOPS_PER_PASS
        gram = iteration + of_pair * result.n_ambiguous_pairs
        return SolverCosts(
            n_coefficients=self.posterior.n_coefficients,
            n_columns=10**9,  # There is no dual solver.
            gram=gram + _FLOPS_PER_ENTRY * self.posterior.n_coefficients**2 + _FLOPS_PER_MATRIX,
            kernel=np.inf,
            product=2.0 * iteration,
            iteration=iteration,
        )
