"""Complete and observed information of the mixture, and steps of its sufficient statistics.

A perturbation of the posterior moves the log densities of a row by d rho_k = beta_k . h_k, with the features
h of `covariance_structures`, and beta solves (R^-1 - G) beta = source, where

    R^-1 : (V_pi + C)^-1 on the K intercepts, tau_k on y, c/power on the quadratic features,
           C : (Var log|Lambda| - its part explained by Lambda)/4 between the components of a group, and
               P/(2 tau_k^2) on the diagonal,
    G    : `missing_information`.

This is Equation 11 of the paper with E[mu mu'] and log|Lambda| eliminated by hand, which leaves half the
unknowns and a condition number of order one. The solvers are those of `sklearn_lrvb.linear_response`.

*Costs* of passes over the rows and of the solvers are in units of a flop of a large matrix product.
Everything that runs at another speed is counted as the number of such flops that would take as long:
elementwise arithmetic, products of few rows, and Python's overhead. They decide which solver is
chosen and when Newton's method takes over, never what a solver returns.
"""

import functools

import numpy as np

from sklearn_lrvb.gaussian_mixture.e_step.frames import (
    has_few_rows,
    n_monomials,
    prefers_common_frame,
)
from sklearn_lrvb.gaussian_mixture.information.columns import AmbiguousColumns
from sklearn_lrvb.gaussian_mixture.information.expected_columns import ExpectedColumns
from sklearn_lrvb.gaussian_mixture.information.missing_information import (
    missing_information,
    missing_information_from_features,
    missing_information_product,
)
from sklearn_lrvb.linear_response.complete_information import CompleteInformation
from sklearn_lrvb.linear_response.observed_information import SolverCosts
from sklearn_lrvb.linear_response.solvers import DualInformation, MatrixFreeInformation, PrimalInformation
from sklearn_lrvb.symmetric_matrices import round_off


def complete_information(posterior, quadratic_information=None):
    """R^-1 (paper, Equation 11 without latent variables).

    Parameters
    ----------
    posterior : VariationalPosterior
    quadratic_information : (S,), default c
        Information of the precision groups. With the degrees of freedom nu in place of c, R is the covariance
        of q itself.
    """
    if quadratic_information is None:
        quadratic_information = posterior.effective_degrees_of_freedom
    n_components = posterior.n_components
    diagonal = posterior.structure.complete_information(posterior.mean_precision, quadratic_information)
    root = np.concatenate([np.ones(n_components), 1.0 / np.sqrt(diagonal)])
    return CompleteInformation(np.arange(n_components), posterior.intercept_root, root)


def observed_information(rows, posterior, e_step_result, n_targets=1, solver=None, hidden_values=True):
    """M = R^-1 - G at the posterior, with the cheapest solver for ``n_targets`` solutions.

    Parameters
    ----------
    rows : CentredRows
    posterior : VariationalPosterior
    e_step_result : EStepResult at the posterior
    n_targets : int, number of right-hand sides that will be solved for
    solver : {"primal", "dual", "matrix_free"} or None
        Overrules the cost model. Rows with holes have no "dual" for precision matrices.
    hidden_values : bool, default=True
        Whether G has the information that holes hide, besides that of unknown labels.

    Returns
    -------
    information : ObservedInformation of size D; with "matrix_free" it keeps a reference to the rows
    """
    structure, n_pair_rows = posterior.structure, e_step_result.n_ambiguous_pairs
    costs = estimated_costs(rows, structure, e_step_result)
    chosen = solver or costs.cheapest(n_targets)
    complete = complete_information(posterior)
    if chosen == "dual":
        columns, remaining = _columns(rows, posterior, complete, hidden_values)
        # The first choice estimated the number of columns by the alternatives. Now it is known: choose again.
        costs = solver_costs(rows, structure, len(columns), n_pair_rows)
        chosen = solver or costs.cheapest(n_targets)
        if chosen == "dual" and (remaining is None or remaining.min() > round_off(len(remaining))):
            return DualInformation(complete, columns, remaining)
        if chosen == "dual":  # Then M is not positive definite, which the other solvers can say more of.
            chosen = "primal" if "primal" in costs.costs(n_targets) else "matrix_free"
    if chosen == "primal":
        by_features = features_are_cheaper(rows.n_samples, structure, n_pair_rows)
        if by_features:
            missing = missing_information_from_features(rows, posterior, hidden_values)
        else:
            missing = missing_information(rows, posterior, hidden_values)
        return PrimalInformation(complete, missing)
    product = functools.partial(missing_information_product, rows, posterior, hidden_values=hidden_values)
    return MatrixFreeInformation(complete, product)


def _columns(rows, posterior, complete, hidden_values):
    """The factor B of the dual solver, and the shares of R^-1 that hidden values leave; None for all."""
    if not rows.has_holes:
        return AmbiguousColumns.of_rows(rows, posterior), None
    columns = ExpectedColumns.of_rows(rows, posterior, complete, hidden_values)
    return columns, columns.shares


# Cost of a pass in the components' own frames, for each row and component. All costs of passes were measured
# on 77 models, from 150 to 20,000 rows, 1 to 300 features and 2 to 10 components.
_FLOPS_PER_FEATURE = 150
_FLOPS_PER_ROW = 200

# Cost of a pass in the common frame, for each row. Monomials are used once for each component.
_FLOPS_TO_FORM_A_MONOMIAL = 100
_FLOPS_TO_USE_A_MONOMIAL = 7
_FLOPS_PER_RESPONSIBILITY = 200

# Overhead of a pass and of the M-step that makes it a sweep, whatever the number of rows.
_FLOPS_PER_PASS, _FLOPS_PER_M_STEP = 3e6, 2e6
_PASSES_PER_PRODUCT = 1.5  # A product with the missing information evaluates polynomials and sums them again.

# Overhead of a matrix, its factor and a step with it: of the missing information, and of the kernel.
_FLOPS_PER_MATRIX, _FLOPS_PER_KERNEL = 1.2e7, 4e7
# Number of columns for each alternative of a row to its most probable component: 1.0 to 1.4 in most fits.
_COLUMNS_PER_ALTERNATIVE = 1.25

# Cost of the missing information by pairs of components; the entries are those of matrices formed and scaled.
_FLOPS_PER_ENTRY = 30
_FLOPS_PER_PAIR = 8e6
_FLOPS_PER_PAIR_ROW = 3000
_SLOWDOWN_OF_PAIR_PRODUCTS = 2.0  # Products of few rows or columns are slower by this factor than large ones.

# Cost of the missing information from the features of all components, measured from 150 to 20,000 rows: in
# their own frames, and in one that all share, where half of the symmetric product is computed.
_SLOWDOWN_OF_FEATURE_PRODUCTS, _SLOWDOWN_IN_COMMON_FRAME = 2.0, 0.7
_FLOPS_PER_FEATURE_PRODUCT = 2e6
_FLOPS_TO_FORM_A_FEATURE, _FLOPS_TO_COUNT_A_MONOMIAL = 400, 40

# Cost of an entry of the kernel for one pair of components, measured from 150 to 1,200 columns: some ten
# elementwise operations on arrays that do not stay in cache.
_FLOPS_PER_KERNEL_ENTRY = 500

# Passes over rows with holes: the cost for each of their patterns and precision groups, and of a row relative
# to that of a complete one.
_FLOPS_PER_PATTERN = 1e5
_SLOWDOWN_BY_HOLES = 2.5
_NO_COLUMNS = 10**9


def sweep_cost(rows, structure):
    """Cost of a sweep."""
    if rows.has_holes:
        one_pass = _cost_with_holes(rows, structure)
    else:
        one_pass = _cheapest_pass_cost(rows.n_samples, structure)
    return one_pass + _FLOPS_PER_M_STEP


def estimated_costs(rows, structure, e_step_result):
    """`solver_costs` before the columns are known, from the result of an E-step."""
    n_columns = int(_COLUMNS_PER_ALTERNATIVE * e_step_result.n_alternatives)
    return solver_costs(rows, structure, n_columns, e_step_result.n_ambiguous_pairs)


def solver_costs(rows, structure, n_columns, n_pair_rows):
    """Costs of the solvers of the observed information.

    Rows with holes have no columns where precisions are matrices: their number is then one that no solver
    can take.

    Parameters
    ----------
    rows : CentredRows
    structure : CovarianceStructure
    n_columns : int
        Number of columns (`RowColumns`).
    n_pair_rows : int
        Number of pairs that rows are ambiguous between, the E-step's ``n_ambiguous_pairs``.

    Returns
    -------
    costs : SolverCosts
    """
    if rows.has_holes:
        one_pass = _cost_with_holes(rows, structure)
        gram = _gram_cost_with_holes(rows, structure, n_pair_rows) + one_pass + _FLOPS_PER_MATRIX
        product = _PASSES_PER_PRODUCT * one_pass
        columns, kernel = _NO_COLUMNS, gram
        if not structure.is_matrix:
            flops = 2 * structure.layout.n_component_features + _FLOPS_PER_ENTRY
            columns, kernel = n_columns, one_pass + structure.n_components * n_columns**2 * flops
        return SolverCosts(structure.n_coefficients, columns, gram, kernel, product)
    n_samples, n_components = rows.n_samples, structure.n_components
    n_kernels = sum(len(structure.layout.components_sharing_precision(k)) for k in range(n_components))
    per_kernel_entry = 2 * structure.n_features + _FLOPS_PER_KERNEL_ENTRY
    one_pass = _own_frames_cost(n_samples, structure) + _FLOPS_PER_PASS
    by_pairs = _cost_by_pairs(n_samples, structure, n_pair_rows)
    return SolverCosts(
        n_coefficients=structure.n_coefficients,
        n_columns=n_columns,
        gram=min(by_pairs, _cost_from_features(n_samples, structure)) + _FLOPS_PER_MATRIX,
        kernel=one_pass + n_kernels * n_columns**2 * per_kernel_entry + _FLOPS_PER_KERNEL,
        product=_PASSES_PER_PRODUCT * _cheapest_pass_cost(n_samples, structure),
    )


def _cost_with_holes(rows, structure):
    """Cost of a pass over rows with holes, without that of an M-step."""
    of_patterns = _FLOPS_PER_PATTERN * rows.n_patterns * structure.layout.n_precision_groups
    of_rows = _SLOWDOWN_BY_HOLES * _own_frames_cost(rows.n_samples, structure)
    return of_rows + of_patterns + _FLOPS_PER_PASS


def _gram_cost_with_holes(rows, structure, n_pair_rows):
    """Cost of the missing information of rows with holes, beyond that of a pass."""
    n_features = structure.layout.n_component_features
    if structure.shares_precision:
        per_pair = 2 * (n_features + 1 + structure.n_features) ** 2
    else:  # A block of two components, and its part of the blocks of each.
        per_pair = 2 * (1 + 1 / max(1, structure.n_components - 1)) * n_features**2
    of_pairs = n_pair_rows * _SLOWDOWN_OF_PAIR_PRODUCTS * per_pair
    of_patterns = rows.n_patterns * structure.layout.n_precision_groups * 2 * structure.n_quadratic**2
    return of_pairs + of_patterns * structure.is_matrix + _FLOPS_PER_ENTRY * structure.n_coefficients**2


def features_are_cheaper(n_samples, structure, n_pair_rows):
    """Whether the missing information is cheaper from the features of all components than by pairs."""
    by_pairs = _cost_by_pairs(n_samples, structure, n_pair_rows)
    return _cost_from_features(n_samples, structure) < by_pairs


def _sweep_flops(structure):
    """Flops of the matrix products for one component and row in a sweep."""
    if not structure.is_matrix:
        return 0
    n_products = 2 + 2 / structure.n_components if structure.shares_precision else 4
    return n_products * structure.n_features**2


def _own_frames_cost(n_samples, structure):
    """Cost of a pass in the components' own frames, without the overhead of any pass."""
    per_row = _sweep_flops(structure) + _FLOPS_PER_FEATURE * structure.n_features + _FLOPS_PER_ROW
    return 1.5 * n_samples * structure.n_components * per_row


def _cheapest_pass_cost(n_samples, structure):
    """Cost of a pass in the components' own frames or in one that all share."""
    n_components = structure.n_components
    if not prefers_common_frame(structure):
        return _own_frames_cost(n_samples, structure) + _FLOPS_PER_PASS
    per_monomial = _FLOPS_TO_FORM_A_MONOMIAL + _FLOPS_TO_USE_A_MONOMIAL * n_components
    per_row = n_monomials(structure) * per_monomial + _FLOPS_PER_RESPONSIBILITY * n_components
    return n_samples * per_row + _FLOPS_PER_PASS


def _cost_by_pairs(n_samples, structure, n_pair_rows):
    """Cost of the missing information by pairs of components."""
    n_pairs = structure.n_components * (structure.n_components - 1) // 2
    n_features_of_row = 1 + structure.n_features + structure.n_quadratic
    per_row, per_pair = (_SLOWDOWN_OF_PAIR_PRODUCTS * flops for flops in structure.pair_type.flops(structure))
    per_row += _FLOPS_PER_PAIR_ROW + 2 * _FLOPS_PER_ENTRY * n_features_of_row
    per_pair += _FLOPS_PER_PAIR + 5 * _FLOPS_PER_ENTRY * n_features_of_row**2
    one_pass = _own_frames_cost(n_samples, structure) + _FLOPS_PER_PASS
    return (
        one_pass + n_pair_rows * per_row + n_pairs * per_pair + _FLOPS_PER_ENTRY * structure.n_coefficients**2
    )


def _cost_from_features(n_samples, structure):
    """Cost of the missing information as one product of the features of all components."""
    n_quadratic = 0 if structure.shares_precision else structure.n_quadratic
    size = structure.n_components * (1 + structure.n_features + n_quadratic)
    slowdown, to_form = _SLOWDOWN_OF_FEATURE_PRODUCTS, _FLOPS_TO_FORM_A_FEATURE
    one_pass = _own_frames_cost(n_samples, structure) + _FLOPS_PER_PASS
    if prefers_common_frame(structure) and not has_few_rows(structure, n_samples):
        slowdown, to_form = _SLOWDOWN_IN_COMMON_FRAME, _FLOPS_TO_COUNT_A_MONOMIAL
        one_pass = _cheapest_pass_cost(n_samples, structure)
    return (
        one_pass
        + n_samples * (slowdown * 2 * size**2 + to_form * size)
        + _FLOPS_PER_FEATURE_PRODUCT
        + _FLOPS_PER_ENTRY * max(size, structure.n_coefficients) ** 2
    )
