"""Linear response of the mixture: complete and observed information in whitened coordinates.

A perturbation of the posterior moves the log responsibilities by d rho_k = beta_k . h_k with the features
h of `covariance_structures`, and beta solves (R^-1 - G) beta = source, where

    R^-1 : (V_pi + C)^-1 on the K intercepts, tau_k on y, c_k on svec(y y' - O)/sqrt 2,
           C_k = (Var log|Lambda_k| - 2P/nu_k)/4 + P/(2 tau_k^2),
    G    : `missing_information`.

It is Eq. nuisance_lrvb_est with E[mu mu'] and log|Lambda| eliminated by hand: half the unknowns, and a
condition number of order one. Coefficients are arrays (K, F), flat where a matrix acts on them.
"""

import functools

import numpy as np

from sklearn_lrvb.gaussian_mixture.missing_information import (
    UncertainColumns,
    missing_information,
    missing_information_product,
)
from sklearn_lrvb.gaussian_mixture.quartic_moments import quartic_moments
from sklearn_lrvb.gaussian_mixture.variational_posterior import Moments
from sklearn_lrvb.linear_response import (
    CompleteInformation,
    DualInformation,
    MatrixFreeInformation,
    PrimalInformation,
    SolverCosts,
)

# A sweep's arithmetic by element runs slower than matrix products: flops it counts for.
_FLOPS_PER_FEATURE = 60
_FLOPS_PER_ROW = 200
_FLOPS_PER_ENTRY = 30  # of a matrix that is formed and scaled


def complete_information(posterior, quadratic_information=None):
    """R^-1 (Eq. nuisance_lrvb_est without latent variables).

    Parameters
    ----------
    quadratic_information : (K,), default c_k
        nu_k instead gives q's own covariance.
    """
    if quadratic_information is None:
        quadratic_information = posterior.information
    n_coefficients = posterior.structure.n_coefficients
    root = np.ones((posterior.n_components, n_coefficients))
    root[:, 1:] = 1.0 / np.sqrt(
        posterior.structure.complete_information(posterior.mean_precision, quadratic_information)
    )
    return CompleteInformation(
        np.arange(posterior.n_components) * n_coefficients,
        posterior.intercept_root,
        root.ravel(),
    )


def sweep_cost(n_samples, posterior):
    """Price of one pass of E-step and M-step, in flops of a matrix product."""
    n_components, n_features = posterior.offsets.shape
    per_row = 4 * n_features**2 + _FLOPS_PER_FEATURE * n_features + _FLOPS_PER_ROW
    return 1.5 * n_samples * n_components * per_row


def solver_costs(n_samples, posterior, n_columns, n_pair_rows):
    """What the solvers of the observed information cost, in flops of a matrix product.

    Parameters
    ----------
    n_columns : int, of `UncertainColumns`: alternatives, as a sweep counts them
    n_pair_rows : int, uncertain pairs, as a sweep counts them
    """
    n_components, n_features = posterior.offsets.shape
    n_coefficients = posterior.structure.n_coefficients
    size, one_sweep = n_components * n_coefficients, sweep_cost(n_samples, posterior)
    n_pairs = n_components * (n_components - 1) // 2
    per_row = quartic_moments(n_features).flops_per_row + _FLOPS_PER_ENTRY * n_coefficients
    in_frames = 40 * n_coefficients * n_features**3 + 5 * _FLOPS_PER_ENTRY * n_coefficients**2
    return SolverCosts(
        n_coefficients=size,
        n_columns=n_columns,
        gram=one_sweep + n_pair_rows * per_row + n_pairs * in_frames + _FLOPS_PER_ENTRY * size**2,
        kernel=one_sweep + n_components * n_columns**2 * (2 * n_features + _FLOPS_PER_ENTRY),
        product=1.5 * one_sweep,
    )


def observed_information(rows, posterior, swept, n_targets=1, solver=None):
    """M = R^-1 - G at the posterior, with the cheapest solver for ``n_targets`` solutions.

    Parameters
    ----------
    swept : Sweep at the posterior
    solver : {"primal", "dual", "matrix_free"} or None
        Overrules the cost model (`solver_costs`).

    Returns
    -------
    information : ObservedInformation of size K F; "matrix_free" holds on to the rows
    """
    costs = solver_costs(rows.n_samples, posterior, swept.n_alternatives, swept.n_uncertain_pairs)
    chosen = solver or costs.cheapest(n_targets)
    complete = complete_information(posterior)
    if chosen == "dual":
        columns = UncertainColumns.of_rows(rows, posterior)
        costs = solver_costs(rows.n_samples, posterior, len(columns), swept.n_uncertain_pairs)
        chosen = solver or costs.cheapest(n_targets)
        if chosen == "dual":
            return DualInformation(complete, columns)
    if chosen == "primal":
        return PrimalInformation(complete, missing_information(rows, posterior))
    return MatrixFreeInformation(complete, functools.partial(missing_information_product, rows, posterior))


def _own_moments(posterior):
    """Complete moments of q in its own frames: N_k, 0, c_k I."""
    identity = np.eye(posterior.n_features)
    return Moments(
        posterior.counts,
        np.zeros_like(posterior.offsets),
        posterior.information[:, None, None] * identity,
    )


def sweep_residual(posterior, moments):
    """EM(s) - s in the coordinates of beta, (K F,): zero at a fixed point of the sweep."""
    own = _own_moments(posterior)
    return posterior.structure.feature_moments(
        moments.counts - own.counts,
        moments.first - own.first,
        moments.second - own.second,
        np.eye(posterior.n_features),
    ).ravel()


def step(posterior, coefficients):
    """The posterior whose sufficient statistics are moved by ``coefficients``, (K F,)."""
    change = Moments(*posterior.structure.moments(coefficients.reshape(posterior.n_components, -1)))
    return posterior.moved(_own_moments(posterior) + change)
