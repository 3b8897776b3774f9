"""P(K | X) by chains of partitions: against sums over all of them, and the stored references."""

import numpy as np
import pytest
from exact_evidence import Prior, clusters, log_evidence_by_number, number_probabilities
from scipy.special import softmax

from benchmarks.analysis.partition_chains import PartitionChains, log_number_weights
from benchmarks.problems.prior_tables import ConjugatePrior, prior_table
from benchmarks.rivals import number_references

STORED = number_references.stored()
DRAWN = {name: int(name.split()[1]) for name in STORED if name.startswith("prior")}


def nine_rows(n_features, concentration):
    """Nine rows of two clusters, the prior of the chains, and log p(X | K) for K = 1, ..., 6."""
    prior, X = Prior("full", n_features, concentration=concentration), clusters(9, n_features, distance=2.5)
    of_chains = ConjugatePrior(
        prior.mean, prior.covariance, prior.mean_precision, prior.degrees_of_freedom, concentration
    )
    return X, of_chains, log_evidence_by_number(X, prior, 6)


@pytest.mark.slow
@pytest.mark.parametrize(("n_features", "concentration"), [(1, 1.0), (2, 0.5)])
def test_chains_agree_with_the_sum_over_all_partitions(n_features, concentration):
    X, prior, log_evidence = nine_rows(n_features, concentration)
    exact = number_probabilities(log_evidence)
    (reference,) = number_references.sampled(["nine"], X[None], prior, n_chains=256, n_sweeps=160)
    np.testing.assert_allclose(reference.probabilities(), exact, atol=0.01)
    np.testing.assert_allclose(reference.probabilities(4), exact[:4] / exact[:4].sum(), atol=0.01)
    assert (np.abs(reference.probabilities() - exact) < 4 * np.array(reference.errors)).all()
    assert max(reference.errors) < 0.01


@pytest.mark.slow
def test_chains_with_one_number_of_components_agree_too():
    # p(X | K)/p(X | 4) is the mean of W(K, t)/W(4, t)
    X, prior, log_evidence = nine_rows(2, 1.0)
    log_weights = log_number_weights(4, len(X), 1.0)
    chains = PartitionChains(X[None], prior, log_weights[3], 256, np.random.default_rng(0))
    occupied = chains.occupied_draws(160, 40)
    ratios = np.exp(log_weights - log_weights[3])[:, occupied - 1].mean(axis=(1, 2))
    np.testing.assert_allclose(ratios / ratios.sum(), softmax(log_evidence[:4]), atol=0.015)


def test_every_table_is_stored_and_its_chains_agree():
    assert set(STORED) == set(number_references.NAMES)
    for reference in STORED.values():
        assert reference.probabilities().sum() == pytest.approx(1.0)
        assert reference.distance < 0.04, reference.name
        assert max(reference.errors) < 0.02, reference.name


def test_references_are_those_of_the_rows():
    for name, seed in DRAWN.items():
        STORED[name].check(prior_table(seed)[0])
    with pytest.raises(ValueError, match=r"sampled for 100 rows of sum .*number_references 'prior, 0'"):
        STORED["prior, 0"].check(prior_table(1)[0])


def test_numbers_drawn_from_the_prior_are_as_probable_as_the_references_say():
    # of tables drawn from the prior, the mean of P(true K) is that of sum P(K)^2
    probabilities = np.array([STORED[name].probabilities(5) for name in DRAWN])
    true = np.array([prior_table(seed)[1] for seed in DRAWN.values()])
    difference = probabilities[np.arange(len(true)), true - 1] - np.square(probabilities).sum(axis=1)
    assert abs(difference.mean()) < 3 * difference.std(ddof=1) / np.sqrt(len(true))
