"""Complete and observed information of the mixture, and steps of its sufficient statistics.

A perturbation of the posterior moves the log densities of a row by d rho_k = beta_k . h_k, with the features
h of `covariance_structures`, and beta solves (R^-1 - G) beta = source, where

    R^-1 : (V_pi + C)^-1 on the K intercepts, tau_k on y, c/power on the quadratic features,
           C : (Var log|Lambda| - its part explained by Lambda)/4 between the components of a group, and
               P/(2 tau_k^2) on the diagonal,
    G    : `missing_information`.

This is Equation 11 of the paper with E[mu mu'] and log|Lambda| eliminated by hand, which leaves half the
unknowns and a condition number of order one. The solvers are those of `sklearn_lrvb.linear_response`.
"""

import functools

import numpy as np

from sklearn_lrvb.gaussian_mixture.information.ambiguous_columns import AmbiguousColumns
from sklearn_lrvb.gaussian_mixture.information.cost_model import (
    estimated_costs,
    features_are_cheaper,
    solver_costs,
)
from sklearn_lrvb.gaussian_mixture.information.expected_columns import ExpectedColumns
from sklearn_lrvb.gaussian_mixture.information.missing_information import (
    missing_information,
    missing_information_from_features,
    missing_information_product,
)
from sklearn_lrvb.linear_response import (
    CompleteInformation,
    DualInformation,
    MatrixFreeInformation,
    PrimalInformation,
)
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
        Overrules the cost model (`cost_model`). Rows with holes have no "dual" for precision matrices.
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
