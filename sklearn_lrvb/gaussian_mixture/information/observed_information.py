"""Linear response of the mixture: complete and observed information in whitened coordinates.

A perturbation of the posterior moves the log responsibilities by d rho_k = beta_k . h_k with the features
h of `covariance_structures`, and beta solves (R^-1 - G) beta = source, where

    R^-1 : (V_pi + C)^-1 on the K intercepts, tau_k on y, c/power on the quadratic features,
           C : (Var log|Lambda| - what Lambda explains of it)/4 between the components of a group, and
               P/(2 tau_k^2) on the diagonal,
    G    : `missing_information`.

It is Eq. nuisance_lrvb_est with E[mu mu'] and log|Lambda| eliminated by hand: half the unknowns, and a
condition number of order one.
"""

import functools
from dataclasses import replace

import numpy as np

from sklearn_lrvb.gaussian_mixture.information.missing_information import (
    AmbiguousColumns,
    missing_information,
    missing_information_from_features,
    missing_information_product,
)
from sklearn_lrvb.gaussian_mixture.posterior.variational_posterior import Moments
from sklearn_lrvb.linear_response import (
    CompleteInformation,
    DualInformation,
    MatrixFreeInformation,
    PrimalInformation,
    SolverCosts,
)

# Arithmetic by element, and what Python does around it, are slower than matrix products: flops it counts for.
_FLOPS_PER_FEATURE = 200
_FLOPS_PER_ROW = 200
_FLOPS_PER_MONOMIAL = 80, 15  # to form it, and for every component to use it
_FLOPS_PER_RESPONSIBILITY = 500
_FLOPS_PER_ENTRY = 30  # of a matrix that is formed and scaled
_FLOPS_PER_SWEEP = 6e7
_PAIR_FRAME = 0.75  # of a pass in the components' own frames
_FLOPS_PER_PAIR = 2e7
_FLOPS_PER_PAIR_ROW = 3000
_THIN = 2.0  # times that products with few rows or columns take what large ones would
# The same of one product of the features of all components, measured from 150 to 20,000 rows.
_THIN_PRODUCT_OF_FEATURES = 5.0
_FLOPS_PER_PRODUCT_OF_FEATURES = 2e7


def complete_information(posterior, quadratic_information=None):
    """R^-1 (Eq. nuisance_lrvb_est without latent variables).

    Parameters
    ----------
    quadratic_information : (S,), default c
        nu instead gives q's own covariance.
    """
    if quadratic_information is None:
        quadratic_information = posterior.effective_degrees_of_freedom
    n_components = posterior.n_components
    diagonal = posterior.structure.complete_information(posterior.mean_precision, quadratic_information)
    root = np.concatenate([np.ones(n_components), 1.0 / np.sqrt(diagonal)])
    return CompleteInformation(np.arange(n_components), posterior.intercept_root, root)


def _pass_cost(n_samples, structure):
    """Price of one pass over the rows in the components' own frames, in flops of a matrix product."""
    per_row = structure.sweep_flops + _FLOPS_PER_FEATURE * structure.n_features + _FLOPS_PER_ROW
    return 1.5 * n_samples * structure.n_components * per_row


def sweep_cost(n_samples, structure):
    """Price of a sweep, in flops of a matrix product."""
    if structure.prefers_pair_frame:
        return _PAIR_FRAME * _pass_cost(n_samples, structure) + _FLOPS_PER_SWEEP
    return _cheapest_pass_cost(n_samples, structure)


def _cheapest_pass_cost(n_samples, structure):
    """Price of one pass in the components' own frames or in one that all share."""
    n_components = structure.n_components
    if not structure.prefers_common_frame:
        return _pass_cost(n_samples, structure) + _FLOPS_PER_SWEEP
    to_form, to_use = _FLOPS_PER_MONOMIAL
    per_row = structure.n_monomials * (to_form + to_use * n_components)
    return n_samples * (per_row + _FLOPS_PER_RESPONSIBILITY * n_components) + _FLOPS_PER_SWEEP


def solver_costs(n_samples, structure, n_columns, n_pair_rows):
    """What the solvers of the observed information cost, in flops of a matrix product.

    Parameters
    ----------
    n_columns : int, of `AmbiguousColumns`: alternatives, as a sweep counts them
    n_pair_rows : int, uncertain pairs, as a sweep counts them
    """
    n_components, n_features = structure.n_components, structure.n_features
    one_pass = _pass_cost(n_samples, structure) + _FLOPS_PER_SWEEP
    n_kernels = sum(len(structure.components_sharing_precision(k)) for k in range(n_components))
    return SolverCosts(
        n_coefficients=structure.n_coefficients,
        n_columns=n_columns,
        gram=min(
            _cost_by_pairs(n_samples, structure, n_pair_rows), _cost_from_features(n_samples, structure)
        ),
        kernel=one_pass + n_kernels * n_columns**2 * (2 * n_features + _FLOPS_PER_ENTRY),
        product=1.5 * _cheapest_pass_cost(n_samples, structure),
    )


def _cost_by_pairs(n_samples, structure, n_pair_rows):
    """Price of the missing information, accumulated by pairs of components."""
    n_pairs = structure.n_components * (structure.n_components - 1) // 2
    n_features_of_row = 1 + structure.n_features + structure.n_quadratic
    per_row, per_pair = (_THIN * flops for flops in structure.pair_flops)
    per_row += _FLOPS_PER_PAIR_ROW + 2 * _FLOPS_PER_ENTRY * n_features_of_row
    per_pair += _FLOPS_PER_PAIR + 5 * _FLOPS_PER_ENTRY * n_features_of_row**2
    one_pass = _pass_cost(n_samples, structure) + _FLOPS_PER_SWEEP
    return (
        one_pass + n_pair_rows * per_row + n_pairs * per_pair + _FLOPS_PER_ENTRY * structure.n_coefficients**2
    )


def _cost_from_features(n_samples, structure):
    """Price of the missing information as one product of the features of all components."""
    size = structure.n_components * (1 + structure.n_features + structure.n_quadratic)
    per_row = _THIN_PRODUCT_OF_FEATURES * 2 * size**2 + _FLOPS_PER_FEATURE * size
    one_pass = _pass_cost(n_samples, structure) + _FLOPS_PER_SWEEP
    return one_pass + n_samples * per_row + _FLOPS_PER_PRODUCT_OF_FEATURES + _FLOPS_PER_ENTRY * size**2


def observed_information(rows, posterior, result, n_targets=1, solver=None):
    """M = R^-1 - G at the posterior, with the cheapest solver for ``n_targets`` solutions.

    Parameters
    ----------
    e_step_result : EStepResult at the posterior
    solver : {"primal", "dual", "matrix_free"} or None
        Overrules the cost model (`solver_costs`).

    Returns
    -------
    information : ObservedInformation of size D; "matrix_free" holds on to the rows
    """
    structure, n_pair_rows = posterior.structure, result.n_ambiguous_pairs
    costs = solver_costs(rows.n_samples, structure, result.n_alternatives, n_pair_rows)
    chosen = solver or costs.cheapest(n_targets)
    complete = complete_information(posterior)
    if chosen == "dual":
        columns = AmbiguousColumns.of_rows(rows, posterior)
        costs = solver_costs(rows.n_samples, structure, len(columns), n_pair_rows)
        chosen = solver or costs.cheapest(n_targets)
        if chosen == "dual":
            return DualInformation(complete, columns)
    if chosen == "primal":
        by_pairs = _cost_by_pairs(rows.n_samples, structure, n_pair_rows)
        is_small = _cost_from_features(rows.n_samples, structure) < by_pairs
        formed = missing_information_from_features if is_small else missing_information
        return PrimalInformation(complete, formed(rows, posterior))
    return MatrixFreeInformation(complete, functools.partial(missing_information_product, rows, posterior))


def _own_moments(posterior):
    """Complete moments of q in its own frames: N_k, 0, c s(I)/power."""
    structure = posterior.structure
    return Moments(
        posterior.counts,
        np.zeros_like(posterior.centred_means),
        structure.expand(posterior.effective_degrees_of_freedom / structure.power)
        * structure.identity_statistic,
    )


def sweep_residual(posterior, moments):
    """EM(s) - s in the coordinates of beta, (D,): zero at a fixed point of the sweep."""
    own = _own_moments(posterior)
    return posterior.structure.feature_moments(
        moments.counts - own.counts,
        moments.first - own.first,
        moments.second - own.second,
        posterior.structure.identity_statistic,
    )


def statistics_from(frame, posterior):
    """Sufficient statistics of a posterior less those of ``frame``, seen from there, (D,)."""
    structure = posterior.structure
    shift = structure.transformed(frame.whiteners, posterior.centred_means - frame.centred_means)
    relative = structure.composed(frame.whiteners, posterior.covariance_cholesky)
    scatter = structure.expand(posterior.effective_degrees_of_freedom) * structure.congruence(
        relative, structure.identity
    )
    own = _own_moments(frame)
    return structure.feature_moments(
        posterior.counts - own.counts,
        posterior.mean_precision[:, None] * shift,
        scatter + structure.sum_of_squares(shift, posterior.mean_precision) - own.second,
        structure.identity_statistic,
    )


def step(posterior, coefficients):
    """The posterior whose sufficient statistics are moved by ``coefficients``, (D,); counts end at zero."""
    change = Moments(*posterior.structure.moments(coefficients))
    moved = _own_moments(posterior) + change
    return posterior.m_step(replace(moved, counts=np.maximum(moved.counts, 0.0)))
