"""Weight priors: V_pi is the derivative of E log pi, and the stick-breaking map is linear."""

import dataclasses
import itertools

import numpy as np
import pytest
from scipy import stats
from scipy.special import digamma, logsumexp

from sklearn_lrvb.mixture.weight_priors import (
    WEIGHT_PRIORS,
    DirichletWeights,
    StickBreakingWeights,
    WeightsWithNoise,
)

COUNTS = np.array([30.0, 4.5, 0.2, 12.0])


def weights(name, n_components=4):
    return WEIGHT_PRIORS[name](0.4, n_components)


def differences(function, step=1e-5):
    """d function / d counts by central differences."""
    columns = [
        (function(COUNTS + step * direction) - function(COUNTS - step * direction)) / (2 * step)
        for direction in np.eye(len(COUNTS))
    ]
    return np.stack(columns, axis=1)


@pytest.mark.parametrize("name", WEIGHT_PRIORS)
def test_covariance_is_the_response_to_counts(name):
    prior = weights(name)
    covariance = prior.covariance_of_log(COUNTS)
    np.testing.assert_allclose(covariance, differences(prior.expected_log), rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(covariance, covariance.T, rtol=1e-14)
    assert np.linalg.eigvalsh(covariance)[0] > 0


@pytest.mark.parametrize("name", WEIGHT_PRIORS)
def test_mean_and_its_jacobian(name):
    prior = weights(name)
    assert prior.mean(COUNTS).sum() == pytest.approx(1.0, abs=1e-15)
    np.testing.assert_allclose(prior.mean_jacobian(COUNTS), differences(prior.mean), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", WEIGHT_PRIORS)
@pytest.mark.parametrize("n_components", [4, 1])
def test_sensitivities_are_derivatives_in_the_concentration(name, n_components):
    prior, step, counts = weights(name, n_components), 1e-5, COUNTS[:n_components]
    more, less = (dataclasses.replace(prior, prior_concentration=0.4 + h) for h in (step, -step))
    for mean, sensitivity in (
        ("expected_log", "expected_log_sensitivity"),
        ("expected_log_shares", "log_shares_sensitivity"),
        ("mean", "mean_sensitivity"),
    ):
        expected = (getattr(more, mean)(counts) - getattr(less, mean)(counts)) / (2 * step)
        np.testing.assert_allclose(getattr(prior, sensitivity)(counts), expected, rtol=1e-6, atol=1e-9)
    assert prior.mean_sensitivity(counts).sum() == pytest.approx(0.0, abs=1e-15)


@pytest.mark.parametrize("name", WEIGHT_PRIORS)
def test_covariance_of_logits_is_their_response_to_counts(name):
    # log pi is the sufficient statistic that goes with the counts
    prior = weights(name)

    def expected_logits(counts):
        stick, rest = prior.sticks(counts)
        return digamma(stick) - digamma(rest)

    covariance = prior.logit_covariance_with_log(COUNTS)
    np.testing.assert_allclose(covariance, differences(expected_logits), rtol=1e-6, atol=1e-9)
    # and what it explains of the logits' variance is not more than all of it
    explained = covariance @ np.linalg.solve(prior.covariance_of_log(COUNTS), covariance.T)
    assert np.linalg.eigvalsh(np.diag(prior.logit_variance(COUNTS)) - explained)[0] > -1e-12


def weights_of(prior, stick, rest):
    """Weights of sticks, scaled to sum to one."""
    pi = np.exp(prior.log_weights(np.log(stick), np.log(rest)))
    return pi / pi.sum(axis=-1, keepdims=True)


@pytest.mark.slow
@pytest.mark.parametrize("name", WEIGHT_PRIORS)
def test_sticks_make_the_weights(name):
    prior, rng = weights(name), np.random.default_rng(1)
    stick, rest = prior.sticks(COUNTS)
    pi = weights_of(prior, stick / (stick + rest), rest / (stick + rest))
    np.testing.assert_allclose(pi, prior.mean(COUNTS), rtol=1e-14)
    drawn = rng.beta(stick, rest, size=(100_000, len(stick)))
    pi = weights_of(prior, drawn, 1 - drawn)
    again = prior.log_sticks(prior.log_weights(np.log(drawn), np.log1p(-drawn)), np.log1p(-drawn).sum(axis=1))
    np.testing.assert_allclose(again, (np.log(drawn), np.log1p(-drawn)), rtol=1e-7, atol=1e-12)
    logit = np.log(drawn / (1 - drawn))
    np.testing.assert_allclose(logit.var(axis=0), prior.logit_variance(COUNTS), rtol=0.05)
    np.testing.assert_allclose(pi.sum(axis=1), 1, rtol=1e-14)
    np.testing.assert_allclose(pi.mean(axis=0), prior.mean(COUNTS), rtol=0.02)


@pytest.mark.parametrize("name", WEIGHT_PRIORS)
def test_moments_against_draws(name):
    prior, rng = weights(name), np.random.default_rng(0)
    n_draws = 200_000
    if name == "dirichlet_process":
        stick, rest = prior.concentration(COUNTS)
        v = rng.beta(stick, rest, size=(n_draws, len(COUNTS)))
        kept = np.concatenate([np.ones((n_draws, 1)), np.cumprod(1 - v, axis=1)[:, :-1]], axis=1)
        draws = v * kept
    else:
        draws = rng.dirichlet(prior.concentration(COUNTS), size=n_draws)
    log_draws = np.log(draws)
    noise = log_draws.std(axis=0) / np.sqrt(n_draws)
    assert np.all(np.abs(log_draws.mean(axis=0) - prior.expected_log(COUNTS)) < 5 * noise)
    sd = np.sqrt(np.diag(prior.covariance_of_log(COUNTS)))
    np.testing.assert_allclose(log_draws.std(axis=0), sd, rtol=0.03)
    mean = draws.mean(axis=0)
    np.testing.assert_allclose(mean / mean.sum(), prior.mean(COUNTS), rtol=0.01)


@pytest.mark.parametrize("name", WEIGHT_PRIORS)
def test_divergence_is_that_of_the_counts(name):
    # d KL / d counts = V_pi (alpha - alpha_0), and alpha - alpha_0 = counts in both families
    prior = weights(name)
    assert prior.expectations(np.zeros(4))[1] == pytest.approx(0.0, abs=1e-13)
    gradient = differences(lambda counts: np.atleast_1d(prior.expectations(counts)[1]))[0]
    np.testing.assert_allclose(gradient, prior.covariance_of_log(COUNTS) @ COUNTS, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("concentration", [0.5, 2.0, 1e3])
@pytest.mark.parametrize("noise", [False, True])
def test_log_shares_against_draws(concentration, noise):
    prior, rng = StickBreakingWeights(concentration, 3), np.random.default_rng(0)
    prior = WeightsWithNoise(prior) if noise else prior
    counts = np.array([30.0, 4.5, 8.0, 12.0])[: 3 + noise]
    stick, rest = prior.sticks(counts)
    v = rng.beta(stick, rest, size=(200_000, len(stick)))
    weights, shares = (of(np.log(v), np.log1p(-v)) for of in (prior.log_weights, prior.log_shares))
    np.testing.assert_allclose(np.exp(shares).sum(axis=1), 1, rtol=1e-12)
    error = shares.std(axis=0) / np.sqrt(len(v))
    assert np.all(np.abs(shares.mean(axis=0) - prior.expected_log_shares(counts)) < 4 * error)
    jacobian, size = prior.log_shares_jacobian(counts), len(counts)
    sampled = np.cov(shares.T, weights.T)[:size, size:]
    scale = np.sqrt(np.outer(np.diag(np.cov(shares.T)), np.diag(np.cov(weights.T))))
    np.testing.assert_allclose(jacobian / scale, sampled / scale, atol=0.02)
    step = 1e-4
    expected = [
        (prior.expected_log_shares(counts + h) - prior.expected_log_shares(counts - h)) / (2 * step)
        for h in step * np.eye(size)
    ]
    np.testing.assert_allclose(jacobian, np.transpose(expected), rtol=1e-6, atol=1e-9)


def test_log_shares_of_many_empty_components_are_numbers():
    prior = StickBreakingWeights(1e-12, 60)  # What is left is 1e-600 times what there is.
    counts = np.zeros(60)
    counts[0] = 10.0
    assert np.all(np.isfinite(prior.log_shares_jacobian(counts)))
    np.testing.assert_array_equal(prior.expected_log_shares(counts), prior.expected_log(counts))


@pytest.mark.parametrize("concentration", [0.3, 1.0, 1e6])
def test_one_components_share_is_one(concentration):
    prior, counts = StickBreakingWeights(concentration, 1), np.array([7.0])
    for found in (prior.expected_log_shares, prior.log_shares_jacobian, prior.log_shares_sensitivity):
        np.testing.assert_array_equal(found(counts), 0.0)


def test_one_component_has_weight_one():
    prior, counts = DirichletWeights(0.0, 1), np.array([7.0])
    assert prior.mean(counts) == 1.0
    assert prior.expected_log(counts) == 0.0
    assert prior.covariance_of_log(counts) == 0.0
    assert prior.mean_jacobian(counts) == 0.0
    assert prior.mean_sensitivity(counts) == 0.0


@pytest.mark.parametrize("name", WEIGHT_PRIORS)
def test_the_log_evidence_is_what_the_best_weights_reach(name):
    # max over q of E sum_k N_k log pi_k - KL(q || p), at q with the same counts
    prior = weights(name)
    reached = COUNTS @ prior.expected_log(COUNTS) - prior.expectations(COUNTS)[1]
    assert prior.log_evidence(COUNTS) == pytest.approx(reached, abs=1e-10)
    assert prior.log_evidence(np.zeros(4)) == pytest.approx(0.0, abs=1e-14)
    others = np.random.default_rng(0).uniform(0, 40, size=(50, 4))
    for counts in others:
        assert COUNTS @ prior.expected_log(counts) - prior.expectations(counts)[1] < reached


@pytest.mark.parametrize("name", WEIGHT_PRIORS)
@pytest.mark.parametrize("concentration", [1e-3, 0.4, 50.0])
def test_the_best_order_is_the_best_of_all(name, concentration):
    prior = WEIGHT_PRIORS[name](concentration, 5)
    counts = np.random.default_rng(0).uniform(0, 40, size=(20, 5))
    orders = np.array(list(itertools.permutations(range(5))))
    best = prior.log_evidence(counts[:, orders]).max(axis=1)
    in_order = np.take_along_axis(counts, prior.best_order(counts), axis=1)
    np.testing.assert_allclose(prior.log_evidence(in_order), best, rtol=1e-12)


IN_ALL_ORDERS = np.array([3.0, 11.0, 0.0, 6.0])
ORDERS = [list(order) for order in itertools.permutations(range(4))]


def moments_in_order(weights, counts):
    """E pi and E pi^2 given counts, the sticks being broken in the order of the components: (2, K)."""
    of_sticks = [stats.beta(stick, rest) for stick, rest in zip(*weights.sticks(counts), strict=True)]
    of_rests = [stats.beta(rest, stick) for stick, rest in zip(*weights.sticks(counts), strict=True)]
    return np.array(
        [
            np.cumprod([1.0, *(own.moment(power) for own in of_rests[:-1])])
            * [own.moment(power) for own in of_sticks]
            for power in (1, 2)
        ]
    )


@pytest.mark.parametrize("concentration", [0.3, 4.0])
def test_sticks_are_drawn_in_all_orders_by_their_probability(concentration):
    weights, n_draws = StickBreakingWeights(concentration, 4), 40_000
    log_evidences = np.array([weights.log_evidence(IN_ALL_ORDERS[order]) for order in ORDERS])
    expected = np.zeros((2, 4))
    for order, share in zip(ORDERS, np.exp(log_evidences - logsumexp(log_evidences)), strict=True):
        expected[:, order] += share * moments_in_order(weights, IN_ALL_ORDERS[order])
    rng = np.random.default_rng(0)
    drawn = np.exp(weights.log_weights(*weights.drawn(np.tile(IN_ALL_ORDERS, (n_draws, 1)), rng)))
    for values, mean in zip((drawn, np.square(drawn)), expected, strict=True):
        error = values.std(axis=0) / np.sqrt(n_draws)
        np.testing.assert_array_less(np.abs(values.mean(axis=0) - mean), 4.5 * error)


@pytest.mark.parametrize("noise", [False, True])
@pytest.mark.parametrize("concentration", [0.3, 4.0])
def test_the_log_symmetry_is_a_sum_over_all_orders(concentration, noise):
    sticks = StickBreakingWeights(concentration, 4)
    weights = WeightsWithNoise(sticks) if noise else sticks
    counts = np.append(IN_ALL_ORDERS, 5.0) if noise else IN_ALL_ORDERS
    log_stick, log_rest = weights.drawn(np.tile(counts, (5, 1)), np.random.default_rng(0))
    of_components = log_stick[:, noise:], log_rest[:, noise:]
    log_weights, log_left = sticks.log_weights(*of_components), of_components[1].sum(axis=1)

    def log_density(order):
        own_stick, own_rest = sticks.log_sticks(log_weights[:, order], log_left)
        of_sticks = stats.beta(1.0, concentration).logpdf(np.exp(own_stick)).sum(axis=1)
        return of_sticks - np.cumsum(own_rest, axis=1)[:, :-1].sum(axis=1)

    log_densities = np.array([log_density(order) for order in ORDERS])
    np.testing.assert_allclose(
        weights.log_symmetry(log_stick, log_rest), logsumexp(log_densities, axis=0) - log_densities[0]
    )
