"""The exact posterior: chains against sums over all assignments, and against importance sampling."""

import itertools

import numpy as np
import pytest
from catalogue import (
    COVARIANCE_TYPES,
    WEIGHT_PRIORS,
    few_of,
    mixture,
    models_in_turn,
    overlapping,
    set_sizes,
    types_in_turn,
    uncertainty_of,
)
from covariance_types import TYPES
from sampling_problems import (
    NORMAL,
    PROPER,
    THETA,
    Problem,
    log_evidence,
    mean_of_the_mixture,
    model_id,
    problem,
)
from scipy import stats
from scipy.special import logsumexp

from sklearn_lrvb import LRVBGaussianMixture
from sklearn_lrvb.sampling import labels
from sklearn_lrvb.sampling.chains import N_CHAINS, Scans, start_of_chains
from sklearn_lrvb.sampling.exact import ExactPosterior
from sklearn_lrvb.sampling.importance import ImportanceWeights
from sklearn_lrvb.sampling.labels import are_in_order, evidence_of_all_copies

proper = pytest.mark.parametrize("model", few_of(PROPER), ids=model_id)
normal = pytest.mark.parametrize("model", few_of(NORMAL), ids=model_id)


def ten_rows(separation):
    """Six rows around 0 and four around a place nearby, (10, 1)."""
    rng = np.random.default_rng(3)
    return np.concatenate([rng.normal(size=(6, 1)), separation + rng.normal(size=(4, 1))])


def prior_of_ten_rows(covariance_type, separation):
    return {
        "covariance_prior": TYPES[covariance_type].prior(np.array([[2.0]])),
        "mean_prior": [0.4 * separation],
        "degrees_of_freedom_prior": 3.0,
        "mean_precision_prior": 0.1,
        "weight_concentration_prior": 1.5,
    }


@pytest.mark.parametrize(
    ("separation", "noise", "learned"),
    [(12.0, 0.05, ()), (20.0, 0.0, ()), (12.0, 0.05, ("mean_precision_prior",))],
)
@pytest.mark.parametrize("weights", WEIGHT_PRIORS)
@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_the_evidence_is_the_sum_over_all_assignments(separation, covariance_type, weights, noise, learned):
    given = prior_of_ten_rows(covariance_type, separation)
    model = {
        "covariance_type": covariance_type,
        "weight_concentration_prior_type": weights,
        "reg_covar": noise,
        **{name: value for name, value in given.items() if name not in learned},
    }
    case = Problem(model, 2, ten_rows(separation))
    draws, sampled = case.sampler.importance(case.rows, 8000, np.random.RandomState(0))
    total, error = evidence_of_all_copies(draws, sampled, are_in_order(draws))
    expected = log_evidence(case.mixture, case.X)
    assert error < 0.03
    assert total == pytest.approx(expected, abs=0.01 + 4 * error)
    assert case.mixture.lower_bound_ < sampled.log_evidence_bound + 4 * sampled.log_evidence_bound_error
    assert sampled.log_evidence_bound < sampled.log_evidence + 0.01


@pytest.mark.slow
@pytest.mark.parametrize("weights", WEIGHT_PRIORS)
@pytest.mark.parametrize(
    ("n_components", "covariance_type", "concentration"),
    [(2, "spherical", 20.0), (2, "full", 5.0), (3, "diag", 20.0)],
)
def test_components_that_overlap_are_not_counted_twice(n_components, covariance_type, concentration, weights):
    # all rows in one cloud: draws of the fit's order reach the others
    model = {
        "prior": "fixed",
        "covariance_type": covariance_type,
        "weight_concentration_prior_type": weights,
        "weight_concentration_prior": concentration,
        "reg_covar": 0.0,
        "moves": None,
    }
    X = np.random.default_rng(0).normal(size=(8, 1))
    estimator = mixture(model, n_components).fit(X)
    check = estimator.posterior_check(X, n_draws=8000, random_state=2)
    # Weights with heavy tails are themselves off by a few hundredths.
    slack = 0.05 if check.k_hat <= 0.7 else 0.25
    expected = log_evidence(estimator, X)
    assert check.log_evidence == pytest.approx(expected, abs=slack + 2 * check.log_evidence_error)


NEARLY_EMPTY = {"weight_concentration_prior": 1e-3, "mean_precision_prior": 1.0}
EQUAL = {"weight_concentration_prior": 50.0, "mean_precision_prior": 1e3, "degrees_of_freedom_prior": 1e3}


@pytest.mark.parametrize("prior", ["learned", "fixed"])
@pytest.mark.parametrize(
    ("n_components", "model"),
    [(2, NEARLY_EMPTY), (3, EQUAL)],
    ids=["an empty component", "equal components"],
)
def test_every_labelling_is_counted_once(n_components, model, prior):
    # An empty component may be drawn anywhere. Equal ones give no reason to prefer any order.
    X = np.random.default_rng(0).normal(size=(8, 1))
    model = {
        **model,
        "prior": prior,
        "covariance_type": "tied",
        "weight_concentration_prior_type": WEIGHT_PRIORS[1],
    }
    estimator = mixture(model, n_components).fit(X)
    check = estimator.posterior_check(X, n_draws=20_000, random_state=5)
    expected = log_evidence(estimator, X)
    assert check.log_evidence == pytest.approx(expected, abs=0.005 + 3 * check.log_evidence_error)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("covariance_type", "weights", "noise"),
    types_in_turn(WEIGHT_PRIORS, (0.0, 0.05, 0.05, 0.0)),
)
def test_chains_have_the_mean_of_the_sum_over_all_assignments(covariance_type, weights, noise):
    # Near each other, so that chains visit all modes; the function does not depend on labels.
    model = {
        "covariance_type": covariance_type,
        "weight_concentration_prior_type": weights,
        "reg_covar": noise,
        **prior_of_ten_rows(covariance_type, 1.0),
    }
    case = Problem(model, 2, ten_rows(1.0))
    scans, by_scan = Scans(case.sampler, case.rows, 0, 1), []
    draws, _ = start_of_chains(case.sampler, case.rows, N_CHAINS, np.random.RandomState(0))
    for number in range(1, 61):
        (*_, draws), _ = scans.scan(draws, number)
        parameters = case.sampler.parameters(draws)
        by_scan.append((np.exp(parameters.log_weights) * parameters.means[:, :, 0]).sum(axis=1))
    values = np.array(by_scan[20:])
    expected = mean_of_the_mixture(case.mixture, case.X)
    # Means whose component is empty have the heavy tails of the prior, with weights near zero.
    assert values.mean() == pytest.approx(expected, abs=4.5 * values.mean(axis=0).std() / np.sqrt(N_CHAINS))


def test_trajectories_have_at_most_24_steps():
    case = problem(PROPER[0], 2, 100)
    scans = Scans(case.sampler, case.rows, 0, 1)
    for change, n_steps in ((1000.0, 24.0), (-1000.0, 1.0)):
        scans.add_steps(change)
        assert scans.n_steps == n_steps


@proper
def test_trajectories_run_backwards(model):
    # the same steps from the end with the momenta reversed lead to the start
    case = problem(model, 2, 100)
    scans, rng = Scans(case.sampler, case.rows, 0, 1), np.random.default_rng(1)
    draws, _ = start_of_chains(case.sampler, case.rows, N_CHAINS, np.random.RandomState(0))
    chains, has_coordinates = scans.chains_at(scans.scan(draws, 1)[0][-1])
    assert has_coordinates.mean() > 0.9
    momenta, angle = rng.standard_normal(chains.normals.shape), rng.uniform(0.1, 0.5, (N_CHAINS, 1))
    moved, ends = scans.moved(chains, momenta, angle, 3)
    back, starts = scans.moved(moved, -ends, angle, 3)
    known = np.isfinite(moved.log_ratios)
    assert known.mean() > 0.9
    np.testing.assert_allclose(back.normals[known], chains.normals[known], atol=1e-6)
    np.testing.assert_allclose(-starts[known], momenta[known], atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(("covariance_type", "weights"), types_in_turn(WEIGHT_PRIORS))
def test_the_evidence_is_that_of_bridge_sampling(covariance_type, weights):
    # Meng and Wong (1996): from draws of both distributions, by iteration
    model = {"covariance_type": covariance_type, "weight_concentration_prior_type": weights}
    case = Problem(model, 2, overlapping(300))
    _, sampled = case.sampler.importance(case.rows, 2000, np.random.RandomState(0))
    scans, of_scans = Scans(case.sampler, case.rows, 1, 1), []
    draws, _ = start_of_chains(case.sampler, case.rows, N_CHAINS, np.random.RandomState(0))
    for number in range(1, 41):
        (*_, draws), _ = scans.scan(draws, number)
        of_scans.append(scans.chains_at(draws)[0].log_ratios)
    of_exact = np.concatenate(of_scans[8:])
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
        found, _ = evidence_of_all_copies(draws, ImportanceWeights(np.zeros(50)), are_in_order(draws))
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


@normal
def test_importance_sampling_agrees_where_it_is_exact(model):
    case = problem(model, 2, 500)
    parameters, sampled = case.sampler.importance(case.rows, 4000, np.random.RandomState(0))
    assert sampled.effective_draws > 3000
    exact = ExactPosterior(case.sampler, case.rows, 1)
    assert exact.has_converged
    for target in THETA:
        values, (means, deviations) = parameters.flat(target), exact.draws.moments(target)
        other_means = sampled.weights @ values
        others = np.sqrt(sampled.weights @ np.square(values - other_means))
        error = np.hypot(1 / np.sqrt(3000), exact.draws.errors(target)[0].max())
        assert error < 0.1
        np.testing.assert_allclose((means - other_means) / others, 0, atol=4 * error)
        np.testing.assert_allclose(deviations / others, 1, atol=0.15)
        ends = exact.draws.quantiles(target, [0.1, 0.9])
        order = np.argsort(values, axis=0)
        sums = np.cumsum(sampled.weights[order], axis=0)
        for probability, end in zip((0.1, 0.9), ends, strict=True):
            place = (sums < probability).sum(axis=0)
            other = np.sort(values, axis=0)[place, np.arange(values.shape[1])]
            np.testing.assert_allclose((end - other) / others, 0, atol=0.3)


@normal
def test_one_components_posterior_is_that_of_linear_response(model):
    # which is exact
    case = problem(model, 1, 30)
    exact, uncertainty = (
        ExactPosterior(case.sampler, case.rows, 0),
        uncertainty_of(case.mixture),
    )
    assert exact.has_converged
    assert exact.share_away == 0
    for target in ("means", "precisions"):
        means, deviations = exact.draws.moments(target)
        sd = uncertainty.flat_std(target)
        np.testing.assert_allclose((means - uncertainty.targets[target].flat_value()) / sd, 0, atol=0.15)
        np.testing.assert_allclose(deviations / sd, 1, atol=0.25)


@pytest.mark.slow
def test_what_the_draws_say_of_their_errors_is_right():
    case, results = problem(PROPER[0], 2, 300), []
    for seed in range(12):
        draws = ExactPosterior(case.sampler, case.rows, seed).draws
        of_limits = np.concatenate(draws.margins("means").interval(0.95))
        results.append([np.tile(draws.moments("means")[0], 2), of_limits, *np.tile(draws.errors("means"), 2)])
    means, limits, of_means, of_limits, of_tails = np.array(results).transpose(1, 0, 2)
    unit = (limits[:, len(limits[0]) // 2 :] - limits[:, : len(limits[0]) // 2]).mean(axis=0) / 3.92
    for values, said in ((means, of_means), (limits, of_limits)):
        seen = values.std(axis=0, ddof=1) / np.tile(unit, 2)
        # of both limits the larger error is told
        assert 0.5 * said.mean() < seen.mean() < 1.3 * said.mean()
    assert np.all(of_tails >= of_limits)
    assert of_tails.mean() < 1.7 * of_limits.mean()


@pytest.mark.slow
def test_limits_in_long_tails_are_known_worse():
    # Twenty waits between eruptions of a geyser, in minutes, which may be of one cluster.
    waits = [79, 54, 74, 62, 85, 55, 88, 85, 51, 85, 54, 84, 78, 47, 83, 52, 62, 84, 52, 79]
    estimator = LRVBGaussianMixture(n_components=2, random_state=0).fit(np.array(waits)[:, None])
    posteriors = [estimator.posterior(method="exact", random_state=seed) for seed in range(8)]
    tables = [posterior.summary("means").loc["mean[1,x0]"] for posterior in posteriors]
    unit = np.mean([table["upper"] - table["lower"] for table in tables]) / 3.92
    seen = np.std([table["lower"] for table in tables], ddof=1) / unit
    said = np.mean(
        [float(posterior.note.split("long tails to ")[1].split(" sd")[0]) for posterior in posteriors]
    )
    assert seen > 0.3
    assert 0.4 * seen < said < 2.0 * seen


def moved_by_gibbs(case, draws):
    """Means of the parameters of draws after thirty further Gibbs steps."""
    sampler, generator = case.sampler, np.random.default_rng(2)
    for seed in range(30):
        draws, _ = sampler.parameters(draws).given_random_assignments(case.rows, seed, generator)
    parameters, _ = labels.in_mode(sampler.parameters(draws), sampler.uncertainty)
    return np.concatenate([parameters.flat(target).mean(axis=0) for target in THETA])


@pytest.mark.slow
@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_further_gibbs_steps_do_not_move_the_draws(covariance_type, monkeypatch):
    set_sizes(monkeypatch, error_of_limits=0.08)
    case = Problem({"covariance_type": covariance_type}, 2, overlapping(100))
    exact = ExactPosterior(case.sampler, case.rows, 1)
    mean, sd = map(np.concatenate, zip(*map(exact.draws.moments, THETA), strict=True))
    draws = exact.draws.parameters.draws
    draws = draws[np.linspace(0, len(draws) - 1, 800).astype(int)]
    np.testing.assert_allclose((moved_by_gibbs(case, draws) - mean) / sd, 0, atol=0.22)
    if TYPES[covariance_type].is_matrix:
        # draws by linear response do move: the test can fail
        draws = case.sampler.draws(400, np.random.RandomState(0))
        start = np.concatenate([draws.flat(target).mean(axis=0) for target in THETA])
        assert np.abs((moved_by_gibbs(case, draws.draws) - start) / sd).max() > 0.22


@normal
def test_parameters_given_assignments_are_those_of_complete_data(model):
    # one component: all rows are assigned, and the posterior is known
    case = problem(model, 1, 30)
    n_draws = 4000
    start = case.sampler.draws(n_draws, np.random.RandomState(1))
    draws, counts = start.given_random_assignments(case.rows, 0, np.random.default_rng(0))
    np.testing.assert_array_equal(counts, 30.0)
    drawn = case.sampler.parameters(draws)
    exact = case.sampler.draws(n_draws, np.random.RandomState(0))  # of one component
    for target in THETA:
        for one, other in zip(drawn.flat(target).T, exact.flat(target).T, strict=True):
            if np.ptp(other) > 0:
                assert stats.ks_2samp(one, other).pvalue > 1e-4


@pytest.mark.slow
@pytest.mark.parametrize(
    ("covariance_type", "weights", "prior"),
    types_in_turn(WEIGHT_PRIORS, ("fixed", "learned", "learned", "fixed")),
)
def test_whole_weights_are_repeated_rows(covariance_type, weights, prior):
    model = {
        "covariance_type": covariance_type,
        "prior": prior,
        "weight_concentration_prior_type": weights,
        "reg_covar": 0.0,
    }
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
        draws = ExactPosterior(case.sampler, case.rows, 1).draws
        moments.append([np.concatenate(own) for own in zip(*map(draws.moments, THETA), strict=True)])
    (mean, sd), (other_mean, other_sd) = moments
    np.testing.assert_allclose((mean - other_mean) / sd, 0, atol=0.5)
    np.testing.assert_allclose(sd / other_sd, 1, atol=0.35)


@pytest.mark.slow
@pytest.mark.parametrize("model", PROPER[::5], ids=model_id)
def test_blocks_batches_and_threads_do_not_show(model, monkeypatch):
    case = problem(model, 2, 100)
    set_sizes(monkeypatch, seconds_of_chains=0)

    def draws(rows):
        return ExactPosterior(case.sampler, rows, 2).draws.parameters.reported()

    whole = draws(case.rows)
    set_sizes(monkeypatch, most_rows=23, batch_bytes=2**17, numbers_per_row=40, product_for_threads=1)
    alone, threads = (
        draws(case.rows.__class__(case.rows.X, case.rows.origin, n_jobs)) for n_jobs in (None, 2)
    )
    for target, values in whole.items():
        np.testing.assert_allclose(alone[target], values, rtol=1e-6, atol=1e-8)
        np.testing.assert_array_equal(threads[target], alone[target])


@pytest.mark.slow
def test_memory_holds_no_table_of_rows_and_draws():
    import tracemalloc

    case = problem(PROPER[0], 2, 20_000)
    case.sampler.density  # the matrix of all parameters
    tracemalloc.start()
    case.sampler.importance(case.rows, 2000, np.random.RandomState(0))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 60 * 2**20  # the table would take 320 MB


@models_in_turn(few_of(PROPER), "n_components", [2, 3])
def test_exchanged_components_get_their_numbers_back(model, n_components):
    case = problem(model, n_components, 500)
    parameters = case.sampler.draws(40, np.random.RandomState(0))
    rng = np.random.default_rng(1)
    orders = np.array([rng.permutation(n_components) for _ in range(40)])
    exchanged = parameters.with_draws(parameters.reordered(orders))
    by_component = np.take_along_axis(parameters.means, orders[:, :, None], axis=1)
    np.testing.assert_allclose(exchanged.means, by_component, atol=1e-9)
    found, _ = labels.closest_orders(exchanged, exchanged.posterior, np.ones(n_components, dtype=bool))
    back = parameters.with_draws(exchanged.reordered(found))
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
    found, _ = labels.closest_orders(parameters, parameters.posterior, np.ones(3, dtype=bool))
    np.testing.assert_array_equal(found, expected)


def test_scores_of_weights_rise_with_the_weights_drawn():
    case = problem(PROPER[0], 3, 200)
    copula = case.sampler.copula
    responses = copula.responses(np.random.default_rng(0).normal(size=(2000, copula.n_normals)))
    drawn = case.sampler.parameters(copula.draws(responses)).flat("weights")
    scores = case.sampler.density.scores("weights", responses)
    for k in range(2):  # the third component is empty
        assert np.corrcoef(scores[:, k], drawn[:, k])[0, 1] > 0.99


def three_clusters():
    """Thirty rows around each of three places on a line, (90, 2)."""
    X = np.random.default_rng(0).normal(size=(90, 2))
    X[:, 0] += np.repeat([0.0, 8.0, 30.0], 30)
    return X


def at_a_poor_optimum(weights):
    """A fit of three components, of which one has two clusters, and two share the third."""
    start = np.eye(3)[np.repeat([0, 1, 2], [60, 15, 15])]
    start[60:] = start[np.lexsort([three_clusters()[60:, 1]]) + 60]
    model = {"weight_concentration_prior_type": weights, "init_params": start, "moves": None}
    return Problem(model, 3, three_clusters())


@pytest.mark.parametrize("weights", WEIGHT_PRIORS)
def test_chains_start_at_better_optima_than_the_fit_and_the_note_says_so(weights):
    poor = at_a_poor_optimum(weights)
    best = mixture({"weight_concentration_prior_type": weights, "n_init": 5}, 3).fit(poor.X)
    exact = ExactPosterior(poor.sampler, poor.rows, 0)
    assert exact.gain == pytest.approx(best.lower_bound_ - poor.mixture.lower_bound_, rel=1e-3)
    assert f"another start has a lower bound {exact.gain:.0f} nats higher" in exact.note
    means = np.sort(exact.draws.parameters.means[:, :, 0], axis=1).mean(axis=0)
    np.testing.assert_allclose(means, np.sort(best.means_[:, 0]), atol=0.3)


def test_more_draws_go_on_with_the_chains_and_change_the_note(monkeypatch):
    set_sizes(monkeypatch, seconds_of_chains=0)
    case = Problem({}, 2, three_clusters())
    exact, other = (ExactPosterior(case.sampler, case.rows, 3) for _ in range(2))
    note, error, n_draws = exact.note, exact.largest_error, len(exact.draws)
    assert other.note == note
    with pytest.raises(ValueError, match="need the training rows: pass X, or ask for fewer"):
        exact.at_least(4 * n_draws, None)
    more = exact.at_least(4 * n_draws, case.rows)
    assert len(more.draws) >= 4 * n_draws
    assert more.largest_error < error and more.note != note
    # the same questions have the same answers
    assert exact.at_least(n_draws, None) is exact and exact.at_least(4 * n_draws, None) is more
    again = other.at_least(4 * n_draws, case.rows).draws.parameters
    np.testing.assert_array_equal(again.means, more.draws.parameters.means)


def test_chains_out_of_time_say_what_is_known(monkeypatch):
    set_sizes(monkeypatch, seconds_of_chains=0, largest_error=1e-3)
    case = problem(PROPER[0], 2, 60)
    exact = ExactPosterior(case.sampler, case.rows, 0)
    assert not exact.has_converged
    assert exact.note.startswith("Exact posterior, not converged: limits of 95 % intervals are known to ")
    for name in ("weights", "means", "standard deviations"):
        assert f"sd ({name})" in exact.note
    assert f"n_draws={4 * len(exact.draws)}" in exact.note
