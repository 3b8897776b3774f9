"""Densities of draws: the exact posterior's against scipy's, the copula's by its derivatives."""

import numpy as np
import pytest
from catalogue import WITHOUT_NOISE, half_of, models_in_turn
from sampling_problems import PROPER, problem

from sklearn_lrvb.gaussian.sampling.parameters import log_derivative_of_precisions

weighted_or_not = models_in_turn(PROPER, "weighted", [False, False, True])


def log_derivative_of_parameters(case, draws):
    """log|d (mu, Lambda) / d (u, T)|, (n,)."""
    posterior = case.sampler.posterior
    structure = posterior.structure
    whiteners = structure.layout.per_component(-structure.log_determinants(posterior.covariance_cholesky))
    factors = structure.log_determinants(draws.factors)
    factors = np.broadcast_to(factors, (len(draws), case.n_components))
    return log_derivative_of_precisions(posterior) - 0.5 * (whiteners.sum() + factors.sum(axis=1))


@weighted_or_not
def test_the_joint_density_is_scipys(model, weighted):
    case = problem(model, 3 if weighted else 2, weighted=weighted)
    draws = case.sampler.copula.draws(case.responses(4))
    expected = case.log_joint(draws) + log_derivative_of_parameters(case, draws)
    np.testing.assert_allclose(case.sampler.parameters(draws).log_joint(case.rows), expected, rtol=1e-10)


def parameters_of(draws):
    """theta = (logit v; u; unique entries of T; log nu) of draws, (n, d)."""
    squares = draws.factors * draws.factors
    if draws.factors.ndim == 4:
        row, column = np.tril_indices(draws.factors.shape[-1])
        squares = (draws.factors @ draws.factors.swapaxes(2, 3))[..., row, column]
    parts = (draws.log_stick - draws.log_rest, draws.scaled_means, squares, draws.log_tails)
    return np.hstack([part.reshape(len(draws), -1) for part in parts])


@weighted_or_not
def test_the_copulas_density_is_that_of_a_transformed_normal(model, weighted):
    case = problem(model, 3 if weighted else 2, weighted=weighted)
    sampler, responses = case.sampler, case.responses(3)
    covariance = np.cov(case.responses(20_000, seed=1).T)
    sigma = sampler.density.root @ sampler.density.root.T
    scale = np.sqrt(np.diag(sigma))
    np.testing.assert_allclose((covariance - sigma) / np.outer(scale, scale), 0, atol=0.05)
    n_responses = len(scale)
    derivatives = np.empty((3, n_responses, n_responses))
    for i, step in enumerate(np.diag(1e-5 * scale)):
        ends = [parameters_of(sampler.copula.draws(responses + sign * step)) for sign in (1, -1)]
        derivatives[:, i] = (ends[0] - ends[1]) / (2e-5 * scale[i])
    draws = sampler.copula.draws(responses)
    log_derivative = np.linalg.slogdet(derivatives)[1]
    squares = np.einsum("ni,ni->n", responses, np.linalg.solve(sigma, responses.T).T)
    log_normal = -0.5 * (squares + np.linalg.slogdet(2 * np.pi * sigma)[1])
    normals = sampler.density.normals(responses)
    np.testing.assert_allclose(sampler.density.responses(normals), responses, rtol=1e-9, atol=1e-12)
    found = sampler.density.log_density(normals, responses, draws)
    np.testing.assert_allclose(found, log_normal - log_derivative, atol=1e-5)


@pytest.mark.all_cases
@models_in_turn(PROPER, "n_components", [1, 2, 3])
def test_slopes_are_derivatives(model, n_components):
    case = problem(model, n_components, weighted=n_components != 2)
    sampler, rows = case.sampler, case.rows
    normals = sampler.density.normals(case.responses(3))
    log_ratios, slopes, draws = sampler.log_ratios_and_slopes(rows, normals)
    responses = sampler.density.responses(normals)
    expected = sampler.parameters(draws).log_joint(rows)
    expected = expected - sampler.density.log_density(normals, responses, draws)
    np.testing.assert_allclose(log_ratios, expected, rtol=1e-11)
    for i, step in enumerate(1e-4 * np.eye(normals.shape[1])):
        ends = [sampler.log_ratios_and_slopes(rows, moved)[0] for moved in (normals + step, normals - step)]
        np.testing.assert_allclose(slopes[:, i], (ends[0] - ends[1]) / 2e-4, atol=2e-6)


@models_in_turn(PROPER, "n_components", [1, 2, 3])
def test_responses_are_found_again_from_their_draws(model, n_components):
    case = problem(model, n_components)
    responses = case.responses(50)
    found = case.sampler.copula.responses_of(case.sampler.copula.draws(responses))
    scale = np.abs(responses).max(axis=0)
    np.testing.assert_allclose(found / scale, responses / scale, atol=1e-7)


@models_in_turn(half_of(WITHOUT_NOISE), "weighted", [False, True])  # Of normal components.
def test_one_components_copula_is_its_exact_posterior(model, weighted):
    case = problem(model, 1, 30, weighted)
    weights = case.sampler.importance(case.rows, 200, np.random.RandomState(0))[1]
    assert np.ptp(weights.log_ratios) < 1e-9
    assert weights.k_hat == 0
    assert weights.effective_draws == pytest.approx(200)
    if model["factorization"] == "joint":
        assert weights.log_evidence == pytest.approx(case.mixture.lower_bound_, abs=1e-9)
    else:
        assert 0 < weights.log_evidence - case.mixture.lower_bound_ < 0.1
