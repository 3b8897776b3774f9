"""Evidences of numbers of components: importance sampling, chains, bridges, and what joins them."""

from dataclasses import replace

import numpy as np
import pytest
from catalogue import COVARIANCE_TYPES, mixture, posterior_of, rows_of
from exact_evidence import Prior, clusters, log_evidence_by_number, log_evidence_by_occupied
from scipy.special import logsumexp

from sklearn_lrvb import number_of_clusters
from sklearn_lrvb.answers.conclusions import Optimum
from sklearn_lrvb.mixture.refit import refitted
from sklearn_lrvb.sampling.number_evidence import Visits, joined, log_prior_factor, run
from sklearn_lrvb.sampling.optimum_evidence import bridged, evidence_by_bridge, optimum_evidence
from sklearn_lrvb.sampling.sampler import PosteriorSampler


def evidence_at(mixture, rows, others=(), n_draws=2000):
    """`optimum_evidence` at the optimum of a mixture."""
    training = mixture._training_rows(rows, None, mixture._uncertainty.fitted)
    sampler = PosteriorSampler(mixture._uncertainty, training)
    return optimum_evidence(None, sampler, training, list(others), n_draws, np.random.RandomState(0))


def test_importance_sampling_finds_the_evidence_of_clusters_far_apart():
    prior, rows = Prior("full", 1), clusters(9, 1, 12.0)
    found = evidence_at(prior.fit(rows, 2), rows)
    assert found.log_evidence == pytest.approx(log_evidence_by_occupied(rows, prior, 2)[1], abs=0.15)
    assert found.weights.sum() == pytest.approx(1.0)


def test_relabellings_that_overlap_are_not_counted_twice():
    # Counted as 2! copies, each with all draws, this would be 0.3 nats or more above the exact evidence.
    prior, rows = Prior("full", 2), clusters(9, 2, 1.5)
    assert (
        evidence_at(prior.fit(rows, 2), rows).log_evidence
        < log_evidence_by_occupied(rows, prior, 2)[1] + 0.15
    )


def test_optima_that_overlap_share_their_draws():
    # Half of the draws are nearer to an optimum that is moved by next to nothing.
    prior, rows = Prior("full", 2), clusters(30, 2, 8.0)
    mixture = prior.fit(rows, 2)
    posterior = mixture._uncertainty.fitted.posterior
    moved = replace(posterior, centred_means=posterior.centred_means + 1e-4)
    alone, shared = evidence_at(mixture, rows), evidence_at(mixture, rows, [moved])
    assert alone.log_evidence - shared.log_evidence == pytest.approx(np.log(2.0), abs=0.15)


@pytest.mark.parametrize("added", [0.0, 1e-7])
def test_without_chains_importance_sampling_decides(added):
    # One optimum is all that there is; or a weight is no whole number, and rows are not assigned at random.
    prior, rows = Prior("full", 1), clusters(9, 1, 12.0)
    broken = np.ones(9)
    broken[0] += added
    result = number_of_clusters(
        prior.fit(rows, 2),
        rows,
        n_components=[1, 2],
        sample_weight=broken,
        another_prior=False,
        random_state=0,
    )
    exact = log_evidence_by_number(rows, prior, 2)
    np.testing.assert_allclose(result.log_evidence, exact, atol=0.3)
    assert result.log_evidence_error[1] >= 0.25  # it cannot know what it has missed


def test_chains_visit_as_often_as_partitions_are_probable():
    prior, rows = Prior("diag", 1), clusters(9, 1, 2.0)
    mixture = prior.fit(rows, 3)
    fitted = mixture._uncertainty.fitted
    training = mixture._training_rows(rows, None, fitted)
    counts, parameters, n_occupied = run(
        fitted.posterior, fitted.origin, training, [fitted.posterior] * 32, 0
    )
    by_occupied, numbers = log_evidence_by_occupied(rows, prior, 3), np.arange(1, 4)
    parts = by_occupied - log_prior_factor(numbers, numbers, prior.concentration, 9)
    exact = parts + log_prior_factor(3, numbers, prior.concentration, 9)
    (visits,) = Visits.of(counts)
    assert visits.numbers.tolist() == [1, 2, 3]
    np.testing.assert_allclose(visits.shares, np.exp(exact - logsumexp(exact)), atol=0.05)
    assert len(parameters.draws) == len(n_occupied)
    assert 32 < visits.n_effective <= counts[..., 0].size


def test_exact_visits_give_the_parts_back():
    # The first part is known; chains that have visited exactly as often as they should tell the others.
    parts, numbers = np.array([-3.0, -1.0, 0.5]), np.arange(1, 4)
    visits = {}
    for k in (2, 3):
        log_shares = parts[:k] + log_prior_factor(k, numbers[:k], 1.0, 20)
        visits[k] = [Visits(numbers[:k], np.exp(log_shares - logsumexp(log_shares)), 1e4)]
    anchors, errors = np.array([-3.0, 5.0, -8.0]), np.array([1e-6, 5.0, 5.0])
    found, covariance = joined(anchors, errors, visits, 1.0, 20)
    np.testing.assert_allclose(found, parts, atol=0.01)
    assert np.all(np.sqrt(np.diag(covariance)) < 0.1)


def test_visits_that_contradict_the_anchors_make_errors_larger():
    numbers, anchors, errors = np.array([1, 2]), np.array([0.0, 0.0]), np.array([1e-6, 0.1])
    deviations = []
    for gap in (0.0, 3.0):  # Nats by which the visits differ.
        log_shares = np.array([0.0, gap]) + log_prior_factor(2, numbers, 1.0, 20)
        visits = {2: [Visits(numbers, np.exp(log_shares - logsumexp(log_shares)), 50.0)]}
        found, covariance = joined(anchors, errors, visits, 1.0, 20)
        deviations.append(np.sqrt(covariance[1, 1]))
    assert deviations[0] < 0.1
    assert deviations[1] > 0.3
    assert abs(found[1]) < 3.0 * deviations[1]
    assert abs(found[1] - gap) < 10.0 * deviations[1]


def test_without_visits_the_anchors_stand():
    anchors, errors = np.array([-3.0, 5.0]), np.array([0.1, 0.3])
    found, covariance = joined(anchors, errors, {}, 1.0, 20)
    np.testing.assert_array_equal(found, anchors)
    np.testing.assert_allclose(covariance, np.diag(np.square(errors)))


def test_chains_that_never_change_tell_nothing():
    counts = np.tile([5.0, 4.0, 0.0], (80, 32, 1))
    assert Visits.of(counts) == []
    # Nor do those that keep the number with which they start, whatever the shares of the starts.
    counts[:, ::4, 2] = 1.0
    assert Visits.of(counts) == []
    # Chains that change, but stay in different modes, tell little: half of them have a cluster of eight.
    counts[:, ::2] = [8.0, 1.0, 0.0]
    counts[np.random.default_rng(0).random((80, 32)) < 0.5, 1:] = [[0.5, 0.5]]
    (visits,) = Visits.of(counts)
    assert visits.numbers.tolist() == [2, 3]
    assert visits.n_effective < 10


def test_what_lies_beyond_a_barrier_is_not_called_improbable():
    # Three and four clusters in turn, and never two, from where no chain started.
    counts = np.tile([5.0, 4.0, 3.0, 0.0], (80, 32, 1))
    counts[np.random.default_rng(0).random((80, 32)) < 0.3, 3] = 1.0
    (visits,) = Visits.of(counts)
    assert visits.numbers.tolist() == [3, 4]
    assert visits.shares[1] == pytest.approx(0.3, abs=0.05)
    assert visits.n_effective > 500
    anchors, errors = np.array([0.0, 4.0, 5.0, 9.0]), np.array([1e-6, 0.3, 0.3, 5.0])
    found, covariance = joined(anchors, errors, {4: [visits]}, 1.0, 20)
    np.testing.assert_allclose(found[:3], anchors[:3], atol=0.05)
    np.testing.assert_allclose(np.sqrt(np.diag(covariance)), [1e-6, 0.3, 0.3, 0.3], atol=0.1)


# Bridge sampling.


def test_a_bridge_finds_the_constant_of_a_wider_normal_distribution():
    # The target is exp(2.5) N(0, 3^2), the proposal N(0, 1): the importance weights have no variance.
    rng = np.random.default_rng(0)
    chains = np.repeat(np.arange(32), 20)
    proposed, target = rng.standard_normal(2000), 3.0 * rng.standard_normal(len(chains))

    def log_ratios(x):
        return 2.5 - np.log(3.0) - 0.5 * np.square(x / 3.0) + 0.5 * np.square(x)

    found, error = bridged(log_ratios(proposed), log_ratios(target), chains)
    assert error < 0.1
    assert found == pytest.approx(2.5, abs=3.0 * error)
    # Half of the mass where the proposal has none, and draws of it that do not count.
    beyond, _ = bridged(
        np.append(log_ratios(proposed), np.full(2000, -np.inf)),
        np.append(log_ratios(target), np.full(len(chains), np.inf)),
        np.tile(chains, 2),
    )
    assert beyond == pytest.approx(found, abs=0.05)
    # Chains that differ tell less than their number of draws.
    shifted = target + 3.0 * rng.standard_normal(32)[chains]
    assert bridged(log_ratios(proposed), log_ratios(shifted), chains)[1] > 1.5 * error
    for nowhere in ((np.full(9, -np.inf), target), (log_ratios(proposed), np.full(len(chains), np.inf))):
        assert bridged(*nowhere, chains)[1] == np.inf
    assert bridged(log_ratios(proposed), log_ratios(target), np.zeros(len(chains), int))[1] == np.inf


@pytest.mark.slow
@pytest.mark.parametrize("covariance_type", ["full", "diag"])
def test_a_bridge_finds_the_evidence_where_importance_sampling_does_not(covariance_type):
    prior, rows = Prior(covariance_type, 2), clusters(9, 2, 2.0)
    mixture = prior.fit(rows, 2)
    fitted = mixture._uncertainty.fitted
    training = mixture._training_rows(rows, None, fitted)
    sampler = PosteriorSampler(mixture._uncertainty, training)
    by_draws = evidence_at(mixture, rows)
    exact = log_evidence_by_occupied(rows, prior, 2)[1]
    assert by_draws.log_evidence < exact - 0.4
    _, parameters, n_occupied = run(fitted.posterior, fitted.origin, training, [fitted.posterior] * 32, 0)
    held = np.flatnonzero(n_occupied == 2)
    found, error = evidence_by_bridge(
        sampler, training, by_draws, parameters.with_draws(parameters.draws[held]), held % 32
    )
    assert error < 0.1
    assert abs(found - exact) < 3.0 * error


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_slopes_in_what_remains_of_a_learned_prior_are_those_of_refits(covariance_type):
    """Clusters far apart, of which the evidence to second order is nearly exact."""
    X = np.concatenate([clusters(30, 2, 0.0), clusters(20, 2, 0.0) + 15.0])
    model = {"covariance_type": covariance_type, "prior": "learned", "weight_concentration_prior": 1.0}
    model["weight_concentration_prior_type"] = "dirichlet_distribution"
    estimator = mixture(model).fit(X)
    rows, posterior = rows_of(estimator, X), posterior_of(estimator)
    prior, learned = posterior.prior, posterior.prior.learned
    sampler = PosteriorSampler(estimator._uncertainty, rows)
    parameters, sampled = sampler.importance(rows, 2000, np.random.RandomState(0))

    def log_evidences(factor):
        changed = [
            {"weights": prior.weights.with_concentration(factor * prior.weights.prior_concentration)},
            {"learned": replace(learned, rate=learned.rate / factor)},
            {"degrees_of_freedom": factor * prior.degrees_of_freedom},
            {"learned": replace(learned, covariance=factor * learned.covariance)},
        ]
        fits = [refitted(rows, posterior, replace(prior, **own)) for own in changed]
        return np.array([Optimum(estimator, rows, fit).log_evidence for fit in fits])

    expected = (log_evidences(np.exp(0.05)) - log_evidences(np.exp(-0.05))) / 0.1
    np.testing.assert_allclose(sampled.weights @ parameters.prior_slopes(), expected, atol=0.02)
