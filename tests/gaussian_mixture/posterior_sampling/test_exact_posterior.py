"""Importance and Gibbs sampling: against sums over all assignments, and against each other."""

import itertools

import numpy as np
import pytest
from catalogue import (
    COVARIANCE_TYPES,
    WEIGHT_PRIORS,
    mixture,
    models_in_turn,
    overlapping,
    set_sizes,
    uncertainty_of,
)
from sampling_problems import PROPER, THETA, Problem, log_evidence, mean_of_the_mixture, model_id, problem
from scipy import stats
from scipy.special import logsumexp

from sklearn_lrvb.gaussian_mixture.posterior.variational_posterior import Moments
from sklearn_lrvb.gaussian_mixture.posterior_sampling import labels
from sklearn_lrvb.gaussian_mixture.posterior_sampling.copula import DrawnParameters
from sklearn_lrvb.gaussian_mixture.posterior_sampling.importance import (
    ImportanceWeights,
    WeightedDraws,
)
from sklearn_lrvb.gaussian_mixture.posterior_sampling.labels import evidence_of_all_copies
from sklearn_lrvb.gaussian_mixture.posterior_sampling.sampler import (
    conditional_draws,
    gibbs_chains,
)
from sklearn_lrvb.row_blocks import untracked

proper = pytest.mark.parametrize("model", PROPER, ids=model_id)


def ten_rows(separation):
    """Six rows around 0 and four around a place nearby, (10, 1)."""
    rng = np.random.default_rng(3)
    return np.concatenate([rng.normal(size=(6, 1)), separation + rng.normal(size=(4, 1))])


def prior_of_ten_rows(covariance_type, separation):
    scale = {"full": [[2.0]], "tied": [[2.0]], "diag": [2.0], "spherical": 2.0}[covariance_type]
    return {
        "covariance_prior": scale,
        "mean_prior": [0.4 * separation],
        "degrees_of_freedom_prior": 3.0,
        "mean_precision_prior": 0.1,
        "weight_concentration_prior": 1.5,
    }


@pytest.mark.parametrize(("separation", "noise"), [(12.0, 0.05), (20.0, 0.0)])
@pytest.mark.parametrize("weights", WEIGHT_PRIORS)
@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_the_evidence_is_the_sum_over_all_assignments(separation, covariance_type, weights, noise):
    model = {
        "covariance_type": covariance_type,
        "weight_concentration_prior_type": weights,
        "reg_covar": noise,
        **prior_of_ten_rows(covariance_type, separation),
    }
    case = Problem(model, 2, ten_rows(separation))
    draws, sampled = case.sampler.importance(case.rows, 8000, np.random.RandomState(0))
    total, error = evidence_of_all_copies(draws.parameters, sampled)
    expected = log_evidence(case.mixture, case.X)
    assert error < 0.03
    assert total == pytest.approx(expected, abs=0.01 + 4 * error)
    assert case.mixture.lower_bound_ < sampled.log_evidence_bound + 4 * sampled.log_evidence_bound_error
    assert sampled.log_evidence_bound < sampled.log_evidence + 0.01


@pytest.mark.parametrize("weights", WEIGHT_PRIORS)
@pytest.mark.parametrize(
    ("n_components", "covariance_type", "concentration"),
    [(2, "spherical", 20.0), (2, "full", 5.0), (3, "diag", 20.0)],
)
def test_components_that_overlap_are_not_counted_twice(n_components, covariance_type, concentration, weights):
    # all rows in one cloud: draws of the fit's order reach the others
    model = {
        "covariance_type": covariance_type,
        "weight_concentration_prior_type": weights,
        "weight_concentration_prior": concentration,
        "reg_covar": 0.0,
        "moves": None,
    }
    X = np.random.default_rng(0).normal(size=(8, 1))
    estimator = mixture(model, n_components).fit(X)
    check = estimator.posterior_check(X, n_draws=8000, random_state=0)
    # Weights with heavy tails are themselves off by a few hundredths.
    slack = 0.05 if check.k_hat <= 0.7 else 0.25
    expected = log_evidence(estimator, X)
    assert check.log_evidence == pytest.approx(expected, abs=slack + 2 * check.log_evidence_error)


EQUAL = {"weight_concentration_prior": 50.0, "mean_precision_prior": 1e3, "degrees_of_freedom_prior": 1e3}


@pytest.mark.parametrize(
    ("n_components", "model"),
    [(2, {"weight_concentration_prior": 1e-3}), (3, EQUAL)],
    ids=["an empty component", "equal components"],
)
def test_every_labelling_is_counted_once(n_components, model):
    # An empty component may be drawn anywhere. Equal ones give no reason to prefer any order.
    X = np.random.default_rng(0).normal(size=(8, 1))
    model = {**model, "covariance_type": "tied", "weight_concentration_prior_type": WEIGHT_PRIORS[1]}
    estimator = mixture(model, n_components).fit(X)
    check = estimator.posterior_check(X, n_draws=20_000, random_state=0)
    expected = log_evidence(estimator, X)
    assert check.log_evidence == pytest.approx(expected, abs=0.005 + 3 * check.log_evidence_error)


@pytest.mark.parametrize(
    ("covariance_type", "weights", "noise"),
    [
        (covariance_type, weights, noise)
        for covariance_type in COVARIANCE_TYPES
        for weights, noise in zip(WEIGHT_PRIORS, (0.0, 0.05), strict=True)
    ],
)
def test_gibbs_chains_have_the_mean_of_the_sum_over_all_assignments(covariance_type, weights, noise):
    # Near each other, so that chains visit all modes; the function does not depend on labels.
    model = {
        "covariance_type": covariance_type,
        "weight_concentration_prior_type": weights,
        "reg_covar": noise,
        **prior_of_ten_rows(covariance_type, 1.0),
    }
    case = Problem(model, 2, ten_rows(1.0))
    start = case.sampler.draws(2000, np.random.RandomState(0))
    parameters = gibbs_chains(case.rows, start, 40, np.random.default_rng(0), untracked)
    values = (np.exp(parameters.log_weights) * parameters.means[:, :, 0]).sum(axis=1)
    expected = mean_of_the_mixture(case.mixture, case.X)
    # Means whose component is empty have the heavy tails of the prior, with weights near zero.
    assert values.mean() == pytest.approx(expected, abs=4.5 * values.std() / np.sqrt(2000))
    biased = (np.exp(start.log_weights) * start.means[:, :, 0]).sum(axis=1)
    assert values.std() < 10 * biased.std()


def responses_of(case, draws):
    """The responses that a copula makes given draws of."""
    copula, structure = case.sampler.copula, case.sampler.posterior.structure
    a, b = copula.beta_parameters
    logits = stats.norm.ppf(stats.beta(a, b).cdf(np.exp(draws.log_stick))) * copula.logit_deviations
    factors = copula.random_factors
    if structure.is_matrix:
        variables, scale = factors._pivots, np.sqrt(factors._scale)[:, :, None]
        changes = np.tril(draws.factors, -1) / scale
        changes = changes + changes.swapaxes(2, 3)
        pivots = np.square(structure.diagonal(draws.factors))
    else:
        variables, changes = factors._variables, np.zeros_like(draws.factors)
        pivots = np.square(draws.factors)
    shape = np.square(variables.mean / variables.deviation)
    gamma = stats.gamma(shape, scale=variables.mean / shape)
    structure.diagonal(changes)[...] = variables.scale * stats.norm.ppf(gamma.cdf(pivots))
    quadratic = -structure.entries(changes) / structure.own_precision_scale
    n_draws = len(draws)
    return np.hstack([logits, draws.scaled_means.reshape(n_draws, -1), quadratic.reshape(n_draws, -1)])


@pytest.mark.parametrize(
    ("covariance_type", "weights"), list(zip(COVARIANCE_TYPES, 2 * WEIGHT_PRIORS, strict=True))
)
def test_the_evidence_is_that_of_bridge_sampling(covariance_type, weights):
    # Meng and Wong (1996): from draws of both distributions, by iteration
    model = {"covariance_type": covariance_type, "weight_concentration_prior_type": weights}
    case = Problem(model, 2, overlapping(300))
    weighted, sampled = case.sampler.importance(case.rows, 2000, np.random.RandomState(0))
    own = weighted.parameters.draws
    np.testing.assert_allclose(
        case.sampler.copula.draws(responses_of(case, own)).factors, own.factors, rtol=1e-6
    )
    exact = case.sampler.gibbs(case.rows, 2000, np.random.RandomState(1)).draws
    exact = exact[np.isfinite(responses_of(case, exact)).all(axis=1)]
    of_exact = case.sampler.log_ratios(case.rows, responses_of(case, exact), exact)
    of_copula, evidence = sampled.log_ratios, sampled.log_evidence
    for _ in range(50):
        above = logsumexp(of_copula - np.logaddexp(of_copula, evidence)) - np.log(len(of_copula))
        below = logsumexp(-np.logaddexp(of_exact, evidence)) - np.log(len(of_exact))
        evidence = above - below
    assert sampled.log_evidence == pytest.approx(evidence, abs=0.03 + 4 / np.sqrt(sampled.effective_draws))


def test_relabelled_copies_are_counted_once():
    # three components, one of which is empty: six orders, of which pairs are the same copy
    X = np.concatenate([overlapping(40), overlapping(40) + [30.0, 0.0]])
    r = np.zeros((80, 3))
    r[:40, 0] = r[40:, 1] = 1
    for weights in WEIGHT_PRIORS:
        model = {"weight_concentration_prior_type": weights, "init_params": r, "reg_covar": 0.0}
        case = Problem({"covariance_type": "diag", **model}, 3, X)
        draws = case.sampler.draws(50, np.random.RandomState(0))
        found, _ = evidence_of_all_copies(draws, ImportanceWeights(np.zeros(50)))
        if weights == "dirichlet_distribution":
            assert found == pytest.approx(np.log(6))
            continue
        pi = np.exp(draws.log_weights)
        left = np.exp(draws.draws.log_rest.sum(axis=1))

        def density(order, pi=pi, left=left):
            tails = np.cumsum(np.column_stack([left, pi[:, order[::-1]]]), axis=1)[:, 1:]
            return 1 / tails.prod(axis=1)

        # The third, empty component may come in any place.
        orders = itertools.permutations(range(3))
        ratios = sum(density(list(order)) for order in orders) / density([0, 1, 2])
        assert found == pytest.approx(np.log(ratios.mean()))


@pytest.mark.parametrize("model", PROPER[::3], ids=model_id)
def test_both_ways_agree_where_both_are_exact(model):
    case = problem(model, 2, 500)
    weighted, sampled = case.sampler.importance(case.rows, 4000, np.random.RandomState(0))
    assert sampled.effective_draws > 3000
    gibbs = WeightedDraws(case.sampler.gibbs(case.rows, 800, np.random.RandomState(1)), np.full(800, 1 / 800))
    for target in THETA:
        means, deviations = weighted.moments(target)
        others, own = gibbs.moments(target)
        np.testing.assert_allclose((means - others) / own, 0, atol=5 / np.sqrt(800))
        np.testing.assert_allclose(deviations / own, 1, atol=5 / np.sqrt(1600))
        ends = [draws.quantiles(target, [0.1, 0.9]) for draws in (weighted, gibbs)]
        np.testing.assert_allclose((ends[0] - ends[1]) / own, 0, atol=0.3)


@proper
def test_parameters_given_assignments_are_those_of_complete_data(model):
    # one component: all rows are assigned, and the posterior is known
    case = problem(model, 1, 30)
    posterior = case.sampler.posterior
    structure = posterior.structure
    n_draws = 4000
    counts = np.full((n_draws, 1), 30.0)
    own = posterior.with_prior(
        Moments(
            np.full(1, 30.0),
            np.zeros((1, 2)),
            structure.second_moments(
                structure.whiten(posterior.whiteners, posterior.centred_means, (case.X - case.rows.origin).T),
                np.ones((1, 30)),
            ),
        )
    )
    first = structure.whiten(posterior.whiteners, posterior.centred_means, (case.X - case.rows.origin).T).sum(
        axis=2
    )
    moments = Moments(
        counts,
        np.repeat((own.first + first)[None], n_draws, axis=0),
        np.repeat(own.second[None], n_draws, axis=0),
    )
    drawn = case.sampler.parameters(conditional_draws(posterior, moments, np.random.default_rng(0)))
    exact = case.sampler.draws(n_draws, np.random.RandomState(0))  # of one component
    for target in THETA:
        for one, other in zip(drawn.flat(target).T, exact.flat(target).T, strict=True):
            if np.ptp(other) > 0:
                assert stats.ks_2samp(one, other).pvalue > 1e-4


@pytest.mark.filterwarnings("ignore:.* have left for another mode")
@pytest.mark.parametrize(
    ("covariance_type", "weights"), list(zip(COVARIANCE_TYPES, 2 * WEIGHT_PRIORS, strict=True))
)
def test_whole_weights_are_repeated_rows(covariance_type, weights):
    model = {"covariance_type": covariance_type, "weight_concentration_prior_type": weights, "reg_covar": 0.0}
    times = np.random.default_rng(0).integers(0, 4, 60)
    X = overlapping(60)
    weighted = Problem(model, 2, X, times.astype(float))
    repeated = Problem(
        {**model, "init_params": weighted.mixture.predict_proba(np.repeat(X, times, axis=0))},
        2,
        np.repeat(X, times, axis=0),
    )
    ratios = [
        case.sampler.importance(case.rows, 50, np.random.RandomState(0))[1].log_ratios
        for case in (weighted, repeated)
    ]
    np.testing.assert_allclose(ratios[0], ratios[1], atol=1e-5)
    moments = []
    for case in (weighted, repeated):
        draws = WeightedDraws(
            case.sampler.gibbs(case.rows, 600, np.random.RandomState(1)), np.full(600, 1 / 600)
        )
        moments.append([np.concatenate(own) for own in zip(*map(draws.moments, THETA), strict=True)])
    (mean, sd), (other_mean, other_sd) = moments
    np.testing.assert_allclose((mean - other_mean) / sd, 0, atol=5 * np.sqrt(2 / 600))
    np.testing.assert_allclose(sd / other_sd, 1, atol=0.3)


@pytest.mark.filterwarnings(
    "ignore:Importance sampling is not reliable", "ignore:.* have left for another mode"
)
@models_in_turn(PROPER[::3], "method", ["importance", "gibbs"])
def test_blocks_batches_and_threads_do_not_show(model, method, monkeypatch):
    case = problem(model, 2, 100)
    draw = {"importance": case.sampler.resampled, "gibbs": case.sampler.gibbs}[method]
    set_sizes(monkeypatch, proposals=500)
    whole = draw(case.rows, 50, np.random.RandomState(2)).reported()
    set_sizes(monkeypatch, most_rows=23, batch_bytes=2**17, numbers_per_row=40)
    for n_jobs in (None, 2):
        set_sizes(monkeypatch, product_for_threads=1)
        rows = case.rows.__class__(case.rows.X, case.rows.origin, n_jobs)
        again = draw(rows, 50, np.random.RandomState(2)).reported()
        for target, values in whole.items():
            np.testing.assert_allclose(again[target], values, rtol=1e-7, atol=1e-9)


def test_memory_holds_no_table_of_rows_and_draws():
    import tracemalloc

    case = problem(PROPER[0], 2, 20_000)
    case.sampler.density  # the matrix of all parameters
    tracemalloc.start()
    case.sampler.importance(case.rows, 2000, np.random.RandomState(0))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 60 * 2**20  # the table would take 320 MB


@models_in_turn(PROPER, "n_components", [2, 3, 2])
def test_exchanged_components_get_their_numbers_back(model, n_components):
    case = problem(model, n_components, 500)
    parameters = case.sampler.draws(40, np.random.RandomState(0))
    rng = np.random.default_rng(1)
    orders = np.array([rng.permutation(n_components) for _ in range(40)])
    exchanged = DrawnParameters(
        parameters.posterior, parameters.origin, labels._reordered(parameters, orders)
    )
    by_component = np.take_along_axis(parameters.means, orders[:, :, None], axis=1)
    np.testing.assert_allclose(exchanged.means, by_component, atol=1e-9)
    is_same = (orders == np.arange(n_components)).all(axis=1)
    back = labels.relabelled(exchanged, ~is_same)
    for target in (*THETA, "weights", "covariances"):
        np.testing.assert_allclose(back.flat(target), parameters.flat(target), rtol=1e-7, atol=1e-8)


def test_components_are_numbered_by_the_divergence_of_whole_components():
    # of few rows, so that places and weights tell different things
    case = problem(next(model for model in PROPER if model["covariance_type"] == "full"), 3, 30)
    parameters = case.sampler.draws(500, np.random.RandomState(0))
    posterior = parameters.posterior
    gaps = parameters.means[:, None] - (parameters.origin + posterior.centred_means)[:, None]
    scatters = posterior.covariance_cholesky @ posterior.covariance_cholesky.transpose(0, 2, 1)
    scatters = scatters[:, None] + gaps[..., None] * gaps[..., None, :]
    costs = np.einsum("nlpq,nklpq->nkl", parameters.precisions, scatters)
    costs -= np.linalg.slogdet(parameters.precisions)[1][:, None] + 2.0 * parameters.log_weights[:, None]
    costs *= (posterior.counts / posterior.counts.sum())[:, None]
    orders = np.array(list(itertools.permutations(range(3))))
    expected = orders[costs[:, np.arange(3), orders].sum(axis=2).argmin(axis=1)]
    np.testing.assert_array_equal(labels.closest_orders(parameters, np.ones(3, dtype=bool)), expected)


def test_the_median_of_equal_weights_is_that_of_the_draws():
    case = problem(PROPER[0], 2, 200)
    parameters = case.sampler.draws(201, np.random.RandomState(0))
    (median,) = WeightedDraws(parameters, np.full(201, 1 / 201)).quantiles("means", [0.5])
    np.testing.assert_allclose(median, np.median(parameters.flat("means"), axis=0), rtol=1e-9)


def test_scores_of_weights_rise_with_the_weights_drawn():
    case = problem(PROPER[0], 3, 200)
    copula = case.sampler.copula
    responses = copula.responses(np.random.default_rng(0).normal(size=(2000, copula.n_normals)))
    drawn = case.sampler.parameters(copula.draws(responses)).flat("weights")
    scores = case.sampler.density.scores("weights", responses)
    for k in range(2):  # the third component is empty
        assert np.corrcoef(scores[:, k], drawn[:, k])[0, 1] > 0.99


def test_resampled_draws_have_the_weighted_moments():
    case = problem(PROPER[0], 2, 200)
    weighted, sampled = case.sampler.importance(case.rows, 20_000, np.random.RandomState(0))
    index = sampled.resampled(5000, np.random.RandomState(1))
    counts = np.bincount(index, minlength=20_000)
    assert np.all(np.abs(counts - 5000 * sampled.weights) < 1)
    drawn = weighted.parameters.draws[index]
    means = case.sampler.parameters(drawn).flat("means")
    expected, sd = weighted.moments("means")
    np.testing.assert_allclose((means.mean(axis=0) - expected) / sd, 0, atol=0.05)


def test_calibration_takes_the_noise_of_equal_weights():
    case = problem(PROPER[0], 1, 200)
    draws, _ = case.sampler.importance(case.rows, 2000, np.random.RandomState(0))
    equal = WeightedDraws(draws.parameters, np.full(2000, 1 / 2000))
    for target in ("means", "precisions"):
        exact, sd = (
            uncertainty_of(case.mixture).targets[target].flat_value(),
            uncertainty_of(case.mixture).flat_std(target),
        )
        errors = [np.abs(own.moments(target)[0] - exact).max() / sd.max() for own in (draws, equal)]
        assert errors[0] < 0.2 * errors[1]
        errors = [np.abs(own.moments(target)[1] / sd - 1).max() for own in (draws, equal)]
        assert errors[0] < 0.5 * errors[1]
