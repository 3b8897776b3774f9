"""Complete and observed information of the mixture, and steps of its sufficient statistics.

A perturbation of the posterior moves the log densities of a row by d rho_k = beta_k . h_k, with the features
h of `covariance_structures`, and beta solves (R^-1 - G) beta = source, where

    R^-1 : (V_pi + C)^-1 on the L intercepts, tau_k on y, c/power on the quadratic features,
           C : (Var log|Lambda| - its part explained by Lambda)/4 between the components of a group, and
               P/(2 tau_k^2) on the diagonal,
    G    : `missing_information`.

This is Equation 11 of the paper with E[mu mu'] and log|Lambda| eliminated by hand, which leaves half the
unknowns and a condition number of order one. The solvers are those of `sklearn_lrvb.linear_response`.

*Costs* of passes over the rows and of the solvers are in units of a flop of a large matrix product.
Everything that runs at another speed is counted as the number of such flops that would take as long:
elementwise arithmetic, products of few rows, and Python's overhead. They decide which solver is chosen
and when Newton's method takes over, never what a solver returns.
"""

import functools

import numpy as np

from sklearn_lrvb.gaussian.information.columns import RowColumns
from sklearn_lrvb.gaussian.information.learned_prior_information import (
    MOST_FACTORED,
    LearnedPriorInformation,
)
from sklearn_lrvb.gaussian.information.missing_information import (
    by_pairs,
    from_monomials,
    from_own_coordinates,
    missing_information,
    missing_information_product,
)
from sklearn_lrvb.gaussian.posterior.learned_prior import LearnedInformation
from sklearn_lrvb.linear_response.complete_information import CompleteInformation
from sklearn_lrvb.linear_response.observed_information import MAX_DENSE_SIZE, PACKED_SYSTEM, SolverCosts
from sklearn_lrvb.linear_response.solvers import (
    DualInformation,
    MatrixFreeInformation,
    PrimalInformation,
    information_from_arrays,
)
from sklearn_lrvb.mixture.model import MixtureInformation
from sklearn_lrvb.symmetric_matrices import round_off

# Cost of a pass in the components' own coordinates, for each row and component. All costs of passes were
# measured on 77 models, from 150 to 20,000 rows, 1 to 300 features and 2 to 10 components.
_FLOPS_PER_FEATURE = 150
_FLOPS_PER_ROW = 200
_SLOWDOWN_OF_OWN_COORDINATES = 1.5

# Cost of a pass in the common coordinates, for each row. Monomials are used once for each component.
_FLOPS_TO_FORM_A_MONOMIAL = 100
_FLOPS_TO_USE_A_MONOMIAL = 7
_FLOPS_PER_RESPONSIBILITY = 200

# Passes over rows with missing values: the cost for each of their patterns and precision groups, and of a row
# relative to that of a complete one.
_FLOPS_PER_PATTERN = 1e5
_SLOWDOWN_BY_MISSING_VALUES = 2.5

# Overhead of a pass and of the M-step that makes it an iteration, whatever the number of rows.
_FLOPS_PER_PASS, _FLOPS_PER_M_STEP = 3e6, 2e6
_PASSES_PER_PRODUCT = 1.5  # A product with the missing information evaluates polynomials and sums them again.

# Overhead of a matrix, its factor and a step with it: of the missing information, and of the kernel.
_FLOPS_PER_MATRIX, _FLOPS_PER_KERNEL = 1.2e7, 4e7
# Number of columns for each alternative of a row to its most probable component: 1.0 to 1.4 in most fits.
_COLUMNS_PER_ALTERNATIVE = 1.25
# Cost of an entry of the kernel for one pair of components, measured from 150 to 1,200 columns: some ten
# elementwise operations on arrays that do not stay in cache.
_FLOPS_PER_KERNEL_ENTRY = 500
# What a learned C0 adds: products with it, of matrices and of entries, and how many a solution takes, by
# conjugate gradients or by a factor, whose matrix has entries to form.
_FLOPS_PER_LEARNED_ENTRY, _PRODUCTS_OF_GRADIENTS, _PRODUCTS_WITH_FACTOR = 200, 20, 3
_FLOPS_PER_FACTORED_ENTRY = 500
_NO_COLUMNS = 10**9  # Where rows with missing values have no columns: more than any solver can take.

# Cost of the missing information as a matrix. Entries are those of matrices formed and scaled. Products of
# few rows or columns are slower than large ones; of a symmetric product, half is computed.
_FLOPS_PER_ENTRY = 30
_SLOWDOWN_OF_SMALL_PRODUCTS, _SLOWDOWN_OF_FULL_PAIRS, _SLOWDOWN_OF_MONOMIALS = 2.0, 1.2, 0.7
_FLOPS_TO_COUNT_A_MONOMIAL, _FLOPS_TO_MAP_A_MONOMIAL, _FLOPS_PER_MAP = 40, 4e3, 5e6
_FLOPS_PER_AMBIGUOUS_ROW, _FLOPS_PER_ROW_OF_PAIR = 12_000, 3000
_FLOPS_PER_BLOCK, _FLOPS_PER_FULL_PAIR = 1e6, 8e6
# For a pair's F features a component: flops that map monomials to features, in units of F P^3, and entries
# that are formed on the way, in units of F^2.
_FLOPS_TO_MAP_A_PAIR, _ENTRIES_OF_A_PAIR = 40, 5


def _pass_costs(rows, structure):
    """Costs of a pass over the rows: in own coordinates, and as `coordinates_of` is expected to choose.

    The second is the cost in the common coordinates where the structure prefers it and no value is missing.
    """
    n_components, n_features = structure.n_components, structure.n_features
    per_row = _FLOPS_PER_FEATURE * n_features + _FLOPS_PER_ROW
    if structure.is_matrix:
        n_products = 2 + 2 / n_components if structure.shares_precision else 4
        per_row += n_products * n_features**2
    own = _SLOWDOWN_OF_OWN_COORDINATES * rows.n_samples * n_components * per_row
    if rows.has_missing:
        own = _SLOWDOWN_BY_MISSING_VALUES * own + _FLOPS_PER_PATTERN * rows.n_patterns * structure.n_groups
    own += _FLOPS_PER_PASS
    if rows.has_missing or not structure.prefers_common_coordinates:
        return own, own
    per_monomial = _FLOPS_TO_FORM_A_MONOMIAL + _FLOPS_TO_USE_A_MONOMIAL * n_components
    per_row = structure.n_monomials * per_monomial + _FLOPS_PER_RESPONSIBILITY * n_components
    return own, rows.n_samples * per_row + _FLOPS_PER_PASS


def _costs_of_matrix(rows, structure, n_pair_rows, passes):
    """Costs of the ways to form the missing information: dict by function. ``passes`` are `_pass_costs`."""
    n_components, n_component_features = structure.n_components, structure.n_component_features
    n_pairs = n_components * (n_components - 1) // 2
    if structure.shares_precision:
        per_row = 2 * (n_component_features + 1 + structure.n_features) ** 2
    else:  # A block of two components, and its part of the blocks of each.
        per_row = 2 * (1 + 1 / max(1, n_components - 1)) * n_component_features**2
    to_form = 2 * _FLOPS_PER_ENTRY * n_component_features
    in_own, in_cheaper = passes
    costs = {
        from_own_coordinates: in_own
        + n_pair_rows * (_SLOWDOWN_OF_SMALL_PRODUCTS * per_row + to_form + _FLOPS_PER_AMBIGUOUS_ROW)
        + n_pairs * _FLOPS_PER_BLOCK
    }
    if structure.has_scales:  # All rows take part in a product for each component.
        per_row = _SLOWDOWN_OF_SMALL_PRODUCTS * n_component_features**2 + 2 * to_form
        costs[from_own_coordinates] += rows.n_samples * n_components * per_row
    elif structure.has_own_matrices:
        to_map = _FLOPS_TO_MAP_A_PAIR * n_component_features * structure.n_features**3
        per_pair = _FLOPS_PER_FULL_PAIR + _SLOWDOWN_OF_SMALL_PRODUCTS * to_map
        per_pair += _ENTRIES_OF_A_PAIR * _FLOPS_PER_ENTRY * n_component_features**2
        per_pair_row = _SLOWDOWN_OF_FULL_PAIRS * n_component_features**2 + to_form + _FLOPS_PER_ROW_OF_PAIR
        costs[by_pairs] = in_own + n_pair_rows * per_pair_row + n_pairs * per_pair
    if rows.has_missing:
        n_curved = structure.n_quadratic**2 if structure.is_matrix else 0
        of_patterns = 2 * rows.n_patterns * structure.n_groups * n_curved
        return {way: cost + of_patterns for way, cost in costs.items()}
    if structure.prefers_common_coordinates and not structure.has_scales:
        size = structure.n_labels * structure.n_monomials
        per_row = 2 * _SLOWDOWN_OF_MONOMIALS * size**2 + _FLOPS_TO_COUNT_A_MONOMIAL * size
        maps = _FLOPS_PER_MAP + _FLOPS_TO_MAP_A_MONOMIAL * n_component_features * size
        maps += 2 * structure.layout.n_coefficients * size * (structure.layout.n_coefficients + size)
        costs[from_monomials] = in_cheaper + rows.n_samples * per_row + maps
    return costs


class GaussianInformation(MixtureInformation):
    """The informations at a posterior of normal components (paper, Equation 11)."""

    @property
    def complete(self):
        return self._inverse_covariance(self.posterior.effective_degrees_of_freedom)

    @property
    def of_complete_rows(self):
        """As of every mixture. What learned hyperparameters add to G stays."""
        if self.posterior.prior.learned is None:
            return self.complete
        product, size = LearnedInformation(self.posterior).product, self.posterior.n_coefficients
        if size > MAX_DENSE_SIZE:
            return MatrixFreeInformation(self.complete, product)
        return PrimalInformation(self.complete, product(np.eye(size)))

    def _of_learned_prior(self, columns):
        """M from the columns of rows, where hyperparameters are learned."""
        information = LearnedPriorInformation(self.complete, columns, self.posterior)
        return information if information.has_definite_rest else information.by_other_solver

    @property
    def mean_field(self):
        """R^-1 with q's own degrees of freedom: the inverse covariance of the coefficients under q.

        A learned b0 is independent of the weights there: intercepts have its part besides their own.
        """
        posterior = self.posterior
        under_q = self._inverse_covariance(posterior.degrees_of_freedom)
        if not posterior.structure.parts.learns_mean_precision:
            return under_q
        (_, intercept_root), (_, others) = under_q.blocks
        learned, root = LearnedInformation(posterior), np.pad(intercept_root[0], (0, 1))
        root[:, -1] = np.append(learned.intercepts, 1.0) * learned.deviation_under_q
        middle = slice(posterior.n_labels, posterior.n_coefficients - 1)
        return CompleteInformation([(posterior.weight_coordinates, root[None]), (middle, others[:-1])])

    def _inverse_covariance(self, quadratic_information):
        """R^-1, given the information of the precision groups, (S,)."""
        n_labels = self.posterior.n_labels
        diagonal = self.posterior.complete_information(quadratic_information)
        of_intercepts = slice(n_labels), self.posterior.intercept_root[None]
        of_others = slice(n_labels, n_labels + len(diagonal)), 1.0 / np.sqrt(diagonal)[:, None, None]
        return CompleteInformation([of_intercepts, of_others])

    def observed(self, rows, result, n_targets=1, solver=None, missing_values=True):
        """As of every mixture. Rows that miss values have no "dual" solver for precision matrices or for a
        learned prior, nor have rows with scales: all lose information, however certain their labels are.
        """
        posterior, structure = self.posterior, self.posterior.structure
        chosen = solver or self.costs(rows, result).cheapest(n_targets)
        is_learned = posterior.prior.learned is not None
        if chosen == "dual" and (structure.has_scales or (is_learned and rows.has_missing)):
            reason = (
                "Student's t components have no dual solver: every row loses information by its unknown scale"
                if structure.has_scales
                else "prior='learned' has no dual solver where values are missing"
            )
            raise ValueError(f"{reason}. Use solver='primal' or 'matrix_free'.")
        complete = self.complete
        if chosen == "dual":
            columns = RowColumns.of_rows(rows, posterior, missing_values)
            if is_learned:
                return self._of_learned_prior(columns)
            if columns.shares is None or columns.shares.min() > round_off(len(complete)):
                return DualInformation(complete, columns, columns.shares)
            # M is not positive definite, which the other solvers can say more of.
            chosen = "primal" if len(complete) <= MAX_DENSE_SIZE else "matrix_free"
        if chosen == "primal":
            passes = _pass_costs(rows, structure)
            costs = _costs_of_matrix(rows, structure, result.n_ambiguous_pairs, passes)
            ways = sorted(costs, key=costs.__getitem__)
            missing = missing_information(rows, posterior, ways, missing_values)
            if is_learned:
                LearnedInformation(posterior).add_to(missing)
            return PrimalInformation(complete, missing)
        product = functools.partial(
            missing_information_product, rows, posterior, missing_values=missing_values
        )
        if is_learned:
            of_rows, of_prior = product, LearnedInformation(posterior).product

            def product(coefficients):
                return of_rows(coefficients) + of_prior(coefficients)

        return MatrixFreeInformation(complete, product)

    def from_arrays(self, arrays):
        columns = functools.partial(RowColumns.from_arrays, self.posterior)
        if self.posterior.prior.learned is not None and PACKED_SYSTEM not in arrays:
            return self._of_learned_prior(columns(arrays))
        return information_from_arrays(self.complete, arrays, columns)

    def missing(self, rows):
        return missing_information(rows, self.posterior, [from_own_coordinates])

    def missing_columns(self, rows):
        """A root of G with few columns: RowColumns; None where missing values or scales take away more."""
        is_simple = not (rows.has_missing or self.posterior.has_scales)
        return RowColumns.of_rows(rows, self.posterior) if is_simple else None

    def costs(self, rows, result):
        structure = self.posterior.structure
        n_components = structure.n_components
        n_columns = int(_COLUMNS_PER_ALTERNATIVE * result.n_alternatives)
        is_learned = structure.parts.has_learned_prior
        has_none = rows.has_missing and (structure.is_matrix or is_learned)
        if has_none or structure.has_scales:
            n_columns = _NO_COLUMNS
        n_kernels = n_components**2 if structure.shares_precision else n_components
        per_kernel_entry = 2 * structure.n_features + _FLOPS_PER_KERNEL_ENTRY
        kernel = n_kernels * n_columns**2 * per_kernel_entry + _FLOPS_PER_KERNEL
        of_learned = of_solution = 0.0
        if structure.parts.learns_covariance:
            size, n_groups = structure.n_quadratic, structure.n_groups
            of_learned = _FLOPS_PER_LEARNED_ENTRY * n_groups * size
            of_learned += 4 * n_groups * structure.n_features**3 * structure.is_matrix
            of_solution = _PRODUCTS_OF_GRADIENTS * of_learned
            if size <= MOST_FACTORED:
                of_solution = _PRODUCTS_WITH_FACTOR * of_learned + 4 * size**2
                kernel += size**3 / 3 + _FLOPS_PER_FACTORED_ENTRY * n_groups * size**2
            kernel += (1 + n_columns) * of_solution + _FLOPS_PER_KERNEL
        passes = _pass_costs(rows, structure)
        of_matrix = min(_costs_of_matrix(rows, structure, result.n_ambiguous_pairs, passes).values())
        return SolverCosts(
            n_coefficients=structure.layout.n_coefficients,
            n_columns=n_columns,
            gram=of_matrix + _FLOPS_PER_ENTRY * structure.layout.n_coefficients**2 + _FLOPS_PER_MATRIX,
            kernel=kernel + passes[0],
            product=_PASSES_PER_PRODUCT * passes[1] + 2 * of_learned,
            iteration=passes[1] + _FLOPS_PER_M_STEP,
            n_numbers_per_column=n_components * structure.n_features,
            dual_solution=of_solution,
        )
