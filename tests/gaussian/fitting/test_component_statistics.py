"""The closed form of what merges change, against the lower bound computed at both ends."""

import dataclasses
import itertools

import numpy as np
import pytest
from catalogue import (
    MOST_MODELS,
    mixture,
    model_id,
    models_in_turn,
    n_labels,
    overlapping,
    posterior_of,
    prior_of,
    rows_around_mean,
    rows_of,
    three_blobs,
    type_of,
)
from scipy.special import xlogy

from sklearn_lrvb.gaussian.e_step.coordinates import OwnCoordinates, posterior_from_responsibilities
from sklearn_lrvb.gaussian.fitting.component_statistics import (
    ComponentStatistics,
)
from sklearn_lrvb.mixture.e_step import e_step, expect

# with scales, gains of merges are lower bounds alone
PROPER = [model for model in MOST_MODELS if model["prior"] != "flat" and "tails" not in model]
catalogue = pytest.mark.parametrize("model", PROPER, ids=model_id)
K = 5


def rows_and_prior(model, weighted=False, X=None, **settings):
    X = three_blobs(120) if X is None else X
    weights = np.random.default_rng(3).uniform(0.2, 3.0, len(X)) if weighted else None
    rows = rows_around_mean(X, None, weights)
    return rows, prior_of(mixture(model, K, **settings), rows)


def responsibilities(model=None):
    return np.random.default_rng(4).dirichlet(np.full(n_labels(model or {}, K), 0.5), 120)


def weights_of(rows):
    return rows.block(slice(0, rows.n_samples)).counts


def entropy(rows, r):
    return -(weights_of(rows)[:, None] * xlogy(r, r)).sum()


def optimal(rows, prior, r):
    """The q that is optimal for responsibilities; M-steps and what is learned of the prior take turns."""
    posterior, block = posterior_from_responsibilities(rows, prior, r), rows.block(slice(0, rows.n_samples))
    r = np.pad(r, ((0, 0), (0, posterior.n_labels - r.shape[1])))  # None is noise.
    for _ in range(0 if prior.learned is None else 60):
        coordinates = OwnCoordinates(posterior)
        expectation = expect(coordinates, block)
        moments = coordinates.moments(expectation.represented, expectation.weights(block.weighted(r.T)))
        posterior = posterior.m_step(posterior.with_prior(moments))
    return posterior


def lower_bound(rows, prior, r):
    """The ELBO at responsibilities and the q that is optimal for them, the weights in their best order."""
    posterior = optimal(rows, prior, r)
    coordinates = OwnCoordinates(posterior)
    log_densities = expect(coordinates, rows.block(slice(0, rows.n_samples))).log_densities.T
    bound = (
        (weights_of(rows)[:, None] * r * log_densities).sum() + entropy(rows, r) - posterior.divergences.total
    )
    counts, weights = posterior.label_counts, prior.weights
    in_order = weights.log_evidence(counts[weights.best_order(counts)])
    return bound + in_order - weights.log_evidence(counts), posterior


def merged(r, pairs):
    r = r.copy()
    for k, l in pairs:
        r[:, k] += r[:, l]
        r[:, l] = 0.0
    return r


@pytest.mark.all_cases
@models_in_turn(PROPER, "rows_and_mean", [(False, None), (True, None), (True, (2.0, -1.0, 0.5))])
def test_gains_of_merges_are_changes_of_the_lower_bound(model, rows_and_mean):
    weighted, mean_prior = rows_and_mean
    rows, prior = rows_and_prior(model, weighted, mean_prior=mean_prior)
    r = responsibilities(model)
    before, posterior = lower_bound(rows, prior, r)
    statistics = ComponentStatistics(posterior)
    pairs = np.array(list(itertools.combinations(range(K), 2)))
    merges = [pair[None] for pair in pairs] + [np.array([[0, 3], [4, 1]])]
    gains = [*statistics.merge_gains(pairs), *statistics.merge_gains(merges[-1][None])]
    for merge, gain in zip(merges, gains, strict=True):
        afterwards = merged(r, merge)
        after, best = lower_bound(rows, prior, afterwards)
        lost = entropy(rows, r) - entropy(rows, afterwards)
        if prior.learned is not None:  # The hyperparameters have more to gain.
            assert gain - lost < after - before + 1e-9
            continue
        assert gain - lost == pytest.approx(after - before, abs=1e-9)
        found = statistics.merged_posterior(merge)
        np.testing.assert_allclose(found.label_counts, best.label_counts, atol=1e-10)
        assert e_step(rows, found).lower_bound == pytest.approx(e_step(rows, best).lower_bound, abs=1e-9)


@catalogue
def test_gains_do_not_depend_on_units(model):
    scale = np.array([1e-6, 1e-6, 1e-6] if type_of(model).n_axes == 0 else [1e-6, 1.0, 1e5])
    pairs = np.array(list(itertools.combinations(range(K), 2)))
    gains = []
    for units in (np.ones(3), scale):
        exact = {**model, "reg_covar": 0.0}
        rows, prior = rows_and_prior(exact, X=units * three_blobs(120) + 1e3 * units)
        posterior = posterior_from_responsibilities(rows, prior, responsibilities())
        gains.append(ComponentStatistics(posterior).merge_gains(pairs))
    np.testing.assert_allclose(*gains, rtol=1e-8, atol=1e-8)


@catalogue
def test_an_emptied_component_is_what_no_rows_make_of_it(model):
    rows, prior = rows_and_prior(model)
    without = responsibilities()
    without[:, 1] += without[:, 2]
    without[:, 2] = 0.0
    posterior = optimal(rows, prior, without)
    components = ComponentStatistics(posterior)
    found = components.emptied(2)
    np.testing.assert_allclose(found.centred_means, posterior.centred_means, atol=1e-12)
    np.testing.assert_allclose(
        found.covariance_cholesky, posterior.covariance_cholesky, rtol=1e-10, atol=1e-12
    )
    assert components.own_divergences[2] == pytest.approx(components.divergence_of_emptied, abs=1e-10)
    if model["factorization"] == "joint":
        assert components.divergence_of_emptied == 0.0
    else:
        assert components.divergence_of_emptied > 0.01


@catalogue
def test_divergences_of_parts_add_up(model):
    rows, prior = rows_and_prior(model)
    posterior = posterior_from_responsibilities(rows, prior, responsibilities())
    of_weights = posterior.divergences.weights
    parts = posterior.divergences.means.sum() + posterior.divergences.precisions.sum()
    if prior.learned is not None:
        parts -= prior.learned.bound(posterior.prior)
    assert posterior.divergences.total == pytest.approx(of_weights + parts, rel=1e-14)
    assert posterior.divergences.means.min() >= 0
    assert posterior.divergences.precisions.min() >= 0


def test_reordering_changes_places_and_nothing_else():
    rows, prior = rows_and_prior({**PROPER[0], "weight_concentration_prior_type": "dirichlet_distribution"})
    posterior = posterior_from_responsibilities(rows, prior, responsibilities())
    order = np.array([3, 0, 4, 1, 2])
    reordered = posterior.reordered(order)
    expected = posterior_from_responsibilities(rows, prior, responsibilities()[:, order])
    for field in dataclasses.fields(reordered):
        if field.name not in ("prior", "scale_sums", "tails"):
            np.testing.assert_allclose(
                getattr(reordered, field.name), getattr(expected, field.name), rtol=1e-12
            )
    assert e_step(rows, reordered).lower_bound == pytest.approx(e_step(rows, posterior).lower_bound, abs=1e-9)


@pytest.mark.parametrize("tails", ["normal", "student", "student_by_component", 4.0])
@pytest.mark.parametrize("factorization", ["joint", "independent"])
def test_padding_costs_what_the_empty_component_adds_to_the_divergence(tails, factorization):
    """The bound at a padded posterior, with no row in its last component, is that of the fit less this."""
    X = overlapping()
    one = mixture({"tails": tails, "factorization": factorization}, 1).fit(X)
    two = mixture({"tails": tails, "factorization": factorization}, 2).fit(X)
    rows, posterior = rows_of(one, X), posterior_of(one)
    padded = posterior.padded(posterior_of(two).prior)
    cost = padded.divergences.total - padded.divergences.weights
    cost -= posterior.divergences.total - posterior.divergences.weights
    alone = one.lower_bound_ - len(X) * posterior.expectations.log_weights[0] + posterior.divergences.weights
    of_padded = e_step(rows, padded, without=1).lower_bound + padded.divergences.weights
    assert of_padded - len(X) * padded.expectations.log_weights[0] == pytest.approx(alone - cost, rel=1e-12)
