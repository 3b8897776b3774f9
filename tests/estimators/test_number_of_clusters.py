"""How probable every number of clusters is: against sums over all partitions, and by what must not matter."""

import pickle
import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from catalogue import mixture, overlapping, set_sizes
from exact_evidence import (
    LearnedPrior,
    Prior,
    clusters,
    learned_log_evidence_by_number,
    log_evidence_by_number,
    log_evidence_by_occupied,
    number_probabilities,
)
from joblib import parallel_config
from scipy.special import gammaln, logsumexp
from sklearn.mixture import BayesianGaussianMixture

from benchmarks.problems.prior_tables import PRIOR, prior_table
from benchmarks.rivals.number_references import stored
from sklearn_lrvb import LRVBGaussianMixture, number_of_clusters
from sklearn_lrvb.estimators import number_search as model_choice

DIRICHLET = {"weight_concentration_prior_type": "dirichlet_distribution"}
X = overlapping(60)


def compared(rows=X, model=DIRICHLET, n_sweeps=90, **options):
    """A quick comparison of up to three clusters, by few sweeps and without another prior."""
    quick = {
        "n_components": [1, 2, 3],
        "n_init": 2,
        "n_draws": 200,
        "another_prior": False,
        "random_state": 0,
    }
    with pytest.MonkeyPatch.context() as patch:
        set_sizes(patch, sweeps_of_numbers=n_sweeps)
        return number_of_clusters(mixture(model), rows, **{**quick, **options})


@pytest.fixture(scope="module")
def found():
    """A comparison; shared, so not to be changed."""
    return compared()


@pytest.fixture(scope="module")
def of_two():
    """A comparison of one and two clusters; not to be changed."""
    return compared(n_components=[1, 2])


# Against sums over all partitions of eight or nine rows.


@pytest.mark.slow
@pytest.mark.parametrize(
    ("covariance_type", "n_features", "distance"),
    [("full", 1, 1.5), ("full", 2, 2.5), ("tied", 2, 2.5), ("diag", 2, 1.5), ("spherical", 2, 2.5)],
)
def test_probabilities_are_those_of_sums_over_all_partitions(covariance_type, n_features, distance):
    prior, rows = Prior(covariance_type, n_features), clusters(8, n_features, distance)
    exact = log_evidence_by_number(rows, prior, 3)
    result = number_of_clusters(
        prior.fit(rows, 2), rows, n_components=[1, 2, 3], n_init=6, another_prior=False, random_state=0
    )
    assert np.all(np.abs(result.log_evidence - exact) < 0.05 + 3.0 * result.log_evidence_error)
    # Seen: up to 0.03.
    assert 0.5 * np.abs(result.scores["probability"] - number_probabilities(exact)).sum() < 0.05


@pytest.mark.slow
def test_occupied_clusters_are_those_of_sums_over_all_partitions():
    prior, rows = Prior("full", 2), clusters(9, 2, 2.5)
    result = number_of_clusters(
        prior.fit(rows, 2), rows, n_components=[3], n_init=6, another_prior=False, random_state=0
    )
    by_occupied = log_evidence_by_occupied(rows, prior, 3)
    # p(X | 3) sums E_t W(3, t)/W(t, t): what is not of three clusters is of fewer.
    share_of_three = np.exp(by_occupied[2] - log_evidence_by_number(rows, prior, 3)[2])
    assert result.occupied.sum() == pytest.approx(1.0)
    assert result.occupied[2] == pytest.approx(share_of_three, abs=0.03)


def scaled(prior, name, step):
    """Priors in which an argument, or its expectation, is larger and smaller by a step of its logarithm."""
    fields = {
        "weight_concentration_prior": "concentration",
        "mean_precision_prior": "mean_precision",
        "degrees_of_freedom_prior": "degrees_of_freedom",
        "covariance_prior": "scale",
    }
    own = fields[name]
    return [replace(prior, **{own: factor * getattr(prior, own)}) for factor in np.exp([step, -step])]


@pytest.mark.parametrize("covariance_type", [pytest.param("full", marks=pytest.mark.slow), "spherical"])
def test_prior_slopes_are_derivatives_of_the_evidence(covariance_type):
    prior, rows = Prior(covariance_type, 2), clusters(9, 2, 2.5)
    result = number_of_clusters(
        prior.fit(rows, 2), rows, n_components=[1, 2, 3], n_init=6, another_prior=False, random_state=0
    )

    for name, slopes in result.prior_slopes.items():
        ends = [log_evidence_by_number(rows, other, 3) for other in scaled(prior, name, 0.01)]
        exact = (ends[0] - ends[1]) / 0.02
        np.testing.assert_allclose(slopes, exact, atol=0.4, err_msg=name)  # Monte Carlo


# Under a learned prior: sums over all partitions, and over a grid of the two hyperparameters.


@pytest.mark.parametrize(
    ("covariance_type", "n_features"), [("full", 1), pytest.param("spherical", 2, marks=pytest.mark.slow)]
)
def test_under_a_learned_prior_probabilities_and_slopes_are_exact(covariance_type, n_features):
    rows = clusters(7, n_features, 2.5)
    prior = LearnedPrior.of(covariance_type, rows)
    exact = learned_log_evidence_by_number(rows, prior, 3)
    result = number_of_clusters(
        mixture(prior.arguments), rows, n_components=[1, 2, 3], n_init=6, another_prior=False, random_state=0
    )
    assert np.all(np.abs(result.log_evidence - exact) < 0.03 + 3.0 * result.log_evidence_error)
    assert 0.5 * np.abs(result.scores["probability"] - number_probabilities(exact)).sum() < 0.05
    assert result.log_evidence[0] == pytest.approx(exact[0], abs=0.02)
    for name, slopes in result.prior_slopes.items():
        ends = [learned_log_evidence_by_number(rows, other, 3) for other in scaled(prior, name, 0.01)]
        np.testing.assert_allclose(slopes, (ends[0] - ends[1]) / 0.02, atol=0.1, err_msg=name)


def test_probabilities_and_their_errors_count_labellings_once(found, of_two):
    for result in (found, of_two):
        np.testing.assert_allclose(
            result.scores["probability"], number_probabilities(result.log_evidence), rtol=1e-9
        )
        # K clusters that hold rows have the prior P(K), and so have those of fewer.
        assert result.occupied @ np.ones(len(result.occupied)) == pytest.approx(1.0)
    # Of two numbers, to first order.
    product, error = np.prod(of_two.scores["probability"]), np.linalg.norm(of_two.log_evidence_error)
    np.testing.assert_allclose(of_two.probability_errors, product * error, rtol=0.1)


def test_the_best_number_by_second_order_has_the_same_prior(found):
    for scores, best in (([0.0, 0.6, 1.7], 1), ([0.0, 0.8, 1.7], 2), ([0.0, 0.8, 2.0], 3)):
        own = {"second_order": np.array(scores)}
        result = replace(found, criteria=("second_order",), scores=own)
        assert result.best_ == {"second_order": best}
        assert " by second order and P(K)." in result.verdict
        assert [line.split()[0] for line in repr(result).split("\n") if "*" in line] == [f"{best}"]


def test_numbers_have_no_prior_with_sticks_whose_labellings_are_not_counted():
    sticks = LRVBGaussianMixture(weight_concentration_prior=0.1, random_state=0)
    options = {"n_components": [1, 2, 3], "criteria": ["second_order"], "n_init": 1, "random_state": 0}
    result = number_of_clusters(sticks, np.random.default_rng(1).normal(size=(60, 1)), **options)
    scores = np.array([0.0, 0.2, 0.4])  # By which one component would be the best under 1/K!.
    result = replace(result, scores={"second_order": scores})
    assert result.best == 3
    assert result.verdict.startswith("3 components by second order.")
    assert "P(K)" not in repr(result)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [5, 11])  # Importance sampling is unreliable for several K.
def test_errors_count_what_importance_sampling_misses(seed):
    rows, _ = prior_table(seed)
    result = number_of_clusters(
        mixture({"reg_covar": 0.0, **PRIOR.arguments}),
        rows,
        n_components=range(1, 6),
        n_init=4,
        another_prior=False,
        random_state=0,
    )
    assert np.sum(result.k_hat > 0.8) >= 2
    reference = stored()[f"prior, {seed}"]
    errors = np.hypot(result.probability_errors, reference.errors[:5])
    assert np.all(np.abs(result.scores["probability"] - reference.probabilities(5)) < 0.01 + 2.0 * errors)
    assert result.probability_errors.max() < 0.06


# Numbers that are not given.


FAR = np.concatenate([X[:20] + 40.0 * k for k in range(3)])


@pytest.fixture
def few_at_first(monkeypatch):
    """Without numbers, the first comparison is of one and two; returns numbers and starts of all fits."""
    fitted, fit = [], model_choice._fit

    def counted(estimator, common):
        fitted.append((estimator.n_components, estimator.n_init))
        return fit(estimator, common)

    monkeypatch.setattr(model_choice, "_LARGEST_AT_FIRST", 2)
    monkeypatch.setattr(model_choice, "_fit", counted)
    return fitted


@pytest.mark.slow
def test_the_search_goes_on_until_the_largest_number_is_improbable(few_at_first, monkeypatch):
    monkeypatch.setattr(model_choice, "_LARGEST_AT_FIRST", 3)
    grown = compared(FAR, n_components=None, n_sweeps=60, another_prior=True)
    numbers = grown.n_components.tolist()
    assert grown.best == 3
    assert grown.stopped == ""
    assert grown.probabilities[numbers[-1]] < 0.05 <= grown.probabilities[numbers[-2]]
    # Every number is fitted once under each prior, and the answer is that of all of them from the beginning.
    assert [k for k, _ in few_at_first] == numbers + numbers
    given = compared(FAR, n_components=numbers, n_sweeps=60, another_prior=True)
    for one, other in ((grown, given), (grown.another_prior, given.another_prior)):
        np.testing.assert_array_equal(one.scores["probability"], other.scores["probability"])
        np.testing.assert_array_equal(one.probability_errors, other.probability_errors)
    assert repr(grown) == repr(given)


@pytest.mark.slow
def test_the_search_stops_at_twice_its_beginning_and_says_so(few_at_first):
    rows = np.concatenate([FAR, FAR + [0.0, 300.0]])
    model = {**DIRICHLET, "covariance_prior": np.eye(2), "mean_precision_prior": 1e-4}
    result = compared(rows, model, n_components=None, n_sweeps=60, n_init=1)
    assert result.n_components.tolist() == [1, 2, 3, 4]
    assert result.verdict.startswith("At least 4 clusters: the largest number compared is the most probable")
    assert "The search stopped at 4, twice as far as it began with" in result.verdict
    assert "with probability" not in result.verdict
    partition = result.partition_posterior(rows, n_draws=20, random_state=0)
    assert "The most probable number of components is at least 4" in partition.verdict


def no_start_for_three(X, n_components, random_state):
    if n_components == 3:
        raise ValueError("There is no start for three.")
    return np.eye(n_components)[np.arange(len(X)) // 20 % n_components]


def test_the_largest_number_that_has_a_fit_is_no_answer():
    prior = {"covariance_prior": np.eye(2), "mean_precision_prior": 1e-4}
    model = {**DIRICHLET, **prior, "init_params": no_start_for_three}
    verdict = compared(FAR, model, n_components=[1, 2, 3], n_sweeps=60).verdict
    assert verdict.startswith("At least 2 clusters: the largest number compared is the most probable")
    assert "There is no fit of 3: see notes." in verdict


@pytest.mark.slow
def test_the_search_stops_where_there_is_no_further_fit(few_at_first):
    model = {**DIRICHLET, "init_params": no_start_for_three}
    result = compared(FAR, model, n_components=None, n_sweeps=60)
    assert result.n_components.tolist() == list(result.estimators_) == [1, 2]
    assert "The search stopped at 2: There is no start for three." in result.verdict


@pytest.mark.slow
def test_the_search_stops_where_the_matrix_of_the_next_fit_would_be_too_large(few_at_first, monkeypatch):
    monkeypatch.setattr(model_choice, "MAX_DENSE_SIZE", 12)
    result = compared(FAR, n_components=None, n_sweeps=60)
    assert result.n_components.tolist() == [1, 2]
    assert "The search stopped at 2: P(K | X) of up to 3 components needs a matrix of 18" in result.verdict


@pytest.mark.slow
def test_the_first_range_is_up_to_the_estimators_own_number():
    for n_components, largest in ((1, 6), (7, 7)):
        estimator = mixture(DIRICHLET, n_components)
        options = {"criteria": ["second_order"], "n_init": 1}
        assert number_of_clusters(estimator, X, **options).n_components.tolist() == [*range(1, largest + 1)]
    assert number_of_clusters(estimator, X[:5], **options).n_components.tolist() == [1, 2, 3, 4, 5]


@pytest.mark.slow
def test_a_fit_to_the_same_rows_is_not_made_again(few_at_first, monkeypatch):
    ascents, refitted = [], model_choice.refitted
    monkeypatch.setattr(model_choice, "refitted", lambda *given: ascents.append(given) or refitted(*given))
    rows, quick = FAR[:40], {"n_components": [1, 2], "n_draws": 200, "another_prior": False}
    fitted = mixture({"n_init": 12}, 2).fit(rows)  # Of broken sticks; those of the comparison are Dirichlet.
    result = number_of_clusters(fitted, rows, **quick)
    assert few_at_first == [(1, 1), (2, 1)]
    assert len(ascents) == 1
    new = number_of_clusters(mixture({"n_init": 12}), rows, **quick)
    assert few_at_first[2:] == [(1, 1), (2, 12)]
    assert result.scores["second_order"][1] == pytest.approx(new.scores["second_order"][1], abs=0.01)
    # Nobody ascents from a fit to other rows, or of another model.
    number_of_clusters(fitted, rows + 1.0, **quick)
    number_of_clusters(fitted.set_params(covariance_type="tied"), rows, **quick)
    assert len(ascents) == 1
    assert few_at_first[4:] == [(1, 1), (2, 12)] * 2


# Numbers whose fit has rows in fewer components.


@pytest.mark.slow
def test_the_fit_that_is_reported_has_as_many_clusters_as_are_probable():
    # The lower bound of two clusters is below that of one and an empty component, but not their evidence.
    rows = np.random.default_rng(1).normal(size=(60, 2)) + np.repeat([[2.0, 0.0], [0.0, 0.0]], 30, axis=0)
    model = {**DIRICHLET, "prior": "fixed", "weight_concentration_prior": 1.0}
    result = compared(rows, model, n_components=[1, 2], n_init=4, criteria=["probability", "leave_one_out"])
    fit, alone = result.estimators_[2], np.eye(2)[np.zeros(60, dtype=int)]
    assert fit.lower_bound_ < mixture({**model, "init_params": alone}, 2).fit(rows).lower_bound_
    assert fit.n_occupied_ == result.n_occupied[1] == 2
    assert result.scores["second_order"][1] == pytest.approx(fit.log_evidence_ + np.log(2.0))
    assert result.scores["leave_one_out"][1] == pytest.approx(fit.loo_score_samples(rows).sum(), rel=1e-9)
    assert fit.weights_std_.shape == (2,)


@pytest.mark.slow
def test_the_sentence_says_what_a_number_means_without_a_fit(found):
    best = found.best
    held = np.eye(3)[best - 1]
    fewer = replace(found, n_occupied=np.full(3, best - 1), occupied=held)
    told = (
        f"No fit has rows in all {best} components, the best one in {best - 1}: {best} clusters are known by"
    )
    assert told in fewer.verdict
    assert "fewer in the fit" in repr(fewer)
    undrawn = replace(fewer, _draws=dict.fromkeys(found.n_components.tolist(), (None, None)))
    assert "clusters is a guess" in undrawn.verdict
    other = replace(found, occupied=np.roll(held, 1))
    assert f"The number of clusters that hold rows is most probably {best % 3 + 1} " in other.verdict


# What must not matter.


@pytest.mark.slow
def test_the_same_seed_gives_the_same_numbers(of_two):
    with parallel_config("threading"):
        again = compared(n_components=[1, 2], n_jobs=2)
    np.testing.assert_allclose(again.log_evidence, of_two.log_evidence, rtol=1e-9)
    assert compared(n_components=[1, 2], random_state=1).log_evidence[1] != of_two.log_evidence[1]


@pytest.mark.slow
def test_units_and_place_of_the_rows_do_not_matter():
    model, numbers = {**DIRICHLET, "reg_covar": 0.0}, [1, 2]
    moved = compared(1e3 * X + 1e4, model, n_components=numbers)
    still = compared(model=model, n_components=numbers)
    np.testing.assert_allclose(moved.scores["probability"], still.scores["probability"], atol=1e-6)


@pytest.mark.slow
def test_rows_in_batches_and_on_dask_are_those_of_the_table(of_two):
    batches = [X[:25], X[25:]]
    for rows in (batches, da.from_array(X, chunks=(25, 2)), pd.DataFrame(X)):
        result = compared(rows, n_components=[1, 2])
        np.testing.assert_allclose(result.scores["probability"], of_two.scores["probability"], atol=1e-6)


@pytest.mark.slow
def test_a_fit_without_names_of_columns_is_known_again_without_a_warning(monkeypatch):
    ascents, refitted = [], model_choice.refitted
    monkeypatch.setattr(model_choice, "refitted", lambda *given: ascents.append(given) or refitted(*given))
    estimator = mixture(DIRICHLET).fit(X)
    columns = [f"c{p}" for p in range(X.shape[1])]
    number_of_clusters(
        estimator, pd.DataFrame(X, columns=columns), n_components=[1, 2], n_draws=200, another_prior=False
    )
    assert [posterior.n_components for _, posterior, _ in ascents] == [2]


def test_the_number_of_rows_need_not_be_known_before():
    quick = {"n_components": [1, 2], "criteria": ["second_order"], "n_init": 1}
    frame = dd.from_pandas(pd.DataFrame(X), npartitions=2)
    bounds = [compared(rows, **quick).scores["second_order"] for rows in (X, frame)]
    np.testing.assert_allclose(bounds[1], bounds[0], rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "distance"), [(5, 4.0), (9, 4.0)])  # Of three no optimum, and a small one.
def test_without_chains_little_is_known_of_numbers_without_a_good_optimum(seed, distance):
    rows = np.random.default_rng(seed).normal(size=(40, 2)) + np.repeat([[distance], [0.0]], 20, axis=0)
    whole = compared(rows, n_init=3, n_sweeps=240)
    broken = compared(rows, n_init=3, sample_weight=np.full(40, 1.000001))
    assert broken.k_hat[2] > 0.7
    gaps = np.abs(whole.scores["probability"] - broken.scores["probability"])
    assert np.all(gaps < 2.0 * np.hypot(whole.probability_errors, broken.probability_errors))
    assert np.abs(whole.log_evidence - broken.log_evidence).max() > 0.5


@pytest.mark.slow
def test_unreliable_importance_sampling_of_one_cluster_is_mended_by_chains():
    incomplete = X.copy()
    incomplete[1:, 0] = np.nan
    first, second = (compared(incomplete, n_components=[1], random_state=seed) for seed in (0, 1))
    assert first.k_hat[0] > 0.7
    assert first.log_evidence_error[0] < 0.5
    error = np.hypot(first.log_evidence_error, second.log_evidence_error)
    assert np.all(np.abs(first.log_evidence - second.log_evidence) < 3.0 * error)
    # There are no chains where rows do not count a whole number of times.
    assert (
        compared(incomplete, n_components=[1], sample_weight=np.full(60, 1.0001)).log_evidence_error[0] >= 1.9
    )


@pytest.mark.slow
def test_rows_that_count_twice_are_two_rows():
    weights = np.where(np.arange(len(X)) < 10, 2.0, 1.0)
    twice = np.concatenate([X, X[:10]])
    weighted, copied = (
        compared(rows, n_components=[1, 2], sample_weight=own) for rows, own in ((X, weights), (twice, None))
    )
    bounds = [result.scores["second_order"][1] for result in (weighted, copied)]
    assert bounds[0] == pytest.approx(bounds[1], abs=1e-6)
    errors = np.hypot(weighted.probability_errors, copied.probability_errors)
    gaps = np.abs(weighted.scores["probability"] - copied.scores["probability"])
    assert np.all(gaps < 0.02 + 2.0 * errors)


@pytest.mark.slow
def test_rows_with_missing_values_and_broken_weights_are_compared():
    incomplete = X.copy()
    incomplete[::7, 0] = np.nan
    assert compared(incomplete, n_components=[1, 2]).best in (1, 2)
    # no chains: rows are not assigned
    result = compared(sample_weight=np.linspace(0.5, 1.5, len(X)), n_components=[1, 2])
    assert np.all(np.isfinite(result.log_evidence))


@pytest.mark.slow
def test_numbers_between_others_use_the_smaller_ones_too(found):
    some = compared(n_components=[3, 2])
    assert some.n_components.tolist() == [2, 3]
    odds = found.scores["probability"][1:] / found.scores["probability"][1:].sum()
    np.testing.assert_allclose(some.scores["probability"], odds, rtol=1e-9)


@pytest.mark.parametrize("prior", ["learned", "fixed"])
def test_the_estimator_is_left_as_it_is_and_its_arguments_hold(prior):
    model = {"covariance_type": "diag", "weight_concentration_prior": 0.5, "prior": prior}
    estimator = mixture({**DIRICHLET, **model})
    result = number_of_clusters(estimator, X, n_components=[1, 2], n_init=2, n_draws=200, random_state=0)
    assert not hasattr(estimator, "means_")
    assert list(result.estimators_) == [1, 2]
    for k, fit in result.estimators_.items():
        assert fit.n_components == k
        assert fit.covariance_type == "diag"
        assert fit.weight_concentration_prior_ == 0.5
        assert fit.weights_std_.shape == (k,)
    other = result.another_prior.estimators_[2]
    if prior == "learned":
        assert "Under another prior (half of degrees_of_freedom_prior): " in result.verdict
        assert other.degrees_of_freedom_prior_ == 0.5 * fit.degrees_of_freedom_prior_
        assert other.mean_precision_prior_ != pytest.approx(fit.mean_precision_prior_)
    else:
        assert (
            "Under another prior (a tenth of covariance_prior and of mean_precision_prior): "
            in result.verdict
        )
        assert other.mean_precision_prior_ == pytest.approx(0.1 * fit.mean_precision_prior_)
        np.testing.assert_allclose(other.covariance_prior_, 0.1 * fit.covariance_prior_)
    assert result.another_prior.another_prior is None


def test_the_default_concentration_is_held_at_one(found):
    assert {fit.weight_concentration_prior_ for fit in found.estimators_.values()} == {1.0}


def test_pickles_are_the_same(found):
    again = pickle.loads(pickle.dumps(found))
    assert repr(again) == repr(found)
    np.testing.assert_array_equal(again.estimators_[2].means_, found.estimators_[2].means_)


# Other criteria, and fits in trouble.


@pytest.fixture(scope="module")
def by_scores():
    """Bounds and leave-one-out scores of weighted rows, with empty components; not to be changed."""
    weights = np.random.default_rng(0).integers(1, 3, len(X)).astype(float)
    model = {**DIRICHLET, "moves": "merge"}
    result = compared(
        model=model,
        n_components=[3, 1, 2],
        criteria=["leave_one_out", "second_order"],
        n_init=1,
        sample_weight=weights,
    )
    return model, weights, result


@pytest.mark.slow
def test_scores_are_those_of_the_fits(by_scores):
    model, weights, result = by_scores
    assert result.log_evidence is result.reliable is None
    assert result.probabilities == {}
    assert list(result.estimators_) == result.n_components.tolist() == [1, 2, 3]
    for i, (k, fit) in enumerate(result.estimators_.items()):
        again = mixture(model, n_components=k).fit(X, sample_weight=weights)
        copies = gammaln(k + 1.0) - gammaln(k + 1.0 - fit.n_occupied_)
        assert result.scores["second_order"][i] == fit.log_evidence_ + copies
        assert fit.log_evidence_ == pytest.approx(again.log_evidence_, rel=1e-12)
        scores = again.loo_score_samples(X, sample_weight=weights)
        assert result.scores["leave_one_out"][i] == pytest.approx(weights @ scores, rel=1e-12)
        assert result.n_occupied[i] == again.n_occupied_
    assert np.any(result.n_occupied < result.n_components)


@pytest.mark.slow
def test_the_standard_error_is_that_of_a_sum_over_rows(by_scores):
    _, weights, result = by_scores
    rows = {k: fit.loo_score_samples(X, sample_weight=weights) for k, fit in result.estimators_.items()}
    best = result.best_["leave_one_out"]
    for k, error in zip(result.n_components.tolist(), result.leave_one_out_std_error, strict=True):
        differences = np.repeat(rows[k] - rows[best], weights.astype(int))
        expected = np.sqrt(len(differences)) * np.std(differences, ddof=1)
        assert error == pytest.approx(expected, rel=1e-9, abs=1e-12)


def coincident(X, n_components, random_state):
    """Responsibilities of components that coincide: a saddle, which coordinate ascent does not leave."""
    return np.full((len(X), n_components), 1.0 / n_components)


def test_fits_in_trouble_are_marked_and_noted():
    def start(X, n_components, random_state):
        two = n_components == 2
        return coincident(X, 2, None) if two else random_state.dirichlet(np.ones(n_components), len(X))

    model = {**DIRICHLET, "init_params": start, "solver": "coordinate_ascent", "max_iter": 20}
    result = compared(model=model, criteria=["second_order", "leave_one_out"], n_init=1)
    assert result.converged.tolist() == [True, True, False]
    assert result.strict_optimum[:2].tolist() == [True, False]
    for scores in result.scores.values():
        np.testing.assert_array_equal(np.isnan(scores), ~result.strict_optimum)
    assert any("no strict local optimum" in note for note in result.notes[2])
    assert any("did not converge" in note for note in result.notes[3])
    page = ET.fromstring(result._repr_html_())
    shown = [item.text for item in page.iter("li")]
    assert shown == [f"K = {k}: {note}" for k, notes in result.notes.items() for note in notes]
    assert repr(result).count("no strict optimum") == np.sum(~result.strict_optimum)
    assert repr(result).count("not converged") == 1


@pytest.mark.slow
def test_a_fit_that_fails_is_missing_unless_all_do():
    def start(X, n_components, random_state):
        if n_components == 2:
            raise ValueError("There is no start for two.")
        return np.eye(n_components)[np.arange(len(X)) % n_components]

    for criteria in (["second_order"], ["probability"]):
        model = {**DIRICHLET, "init_params": start}
        result = compared(model=model, criteria=criteria, n_init=1)
        assert list(result.estimators_) == [1, 3]
        assert np.isnan(result.scores["second_order"]).tolist() == [False, True, False]
        assert result.notes[2] == ["There is no start for two."]
        assert repr(result).count("failed") == 1
    for name in ("probability_errors", "log_evidence", "k_hat"):
        assert np.isnan(getattr(result, name)).tolist() == [False, True, False]
    assert np.isnan(result.scores["probability"]).tolist() == [False, True, False]
    assert np.nansum(result.scores["probability"]) == pytest.approx(1.0)
    assert result.verdict.endswith("There is no fit of 2: see notes.")
    assert result.reliable is not None
    assert result.partition_posterior(X, n_draws=50, random_state=0).labels.shape == X.shape[:1]
    for criteria in (["second_order"], ["probability"]):
        with pytest.raises(ValueError, match="There is no start for two"):
            compared(model=model, criteria=criteria, n_components=[2], n_init=1)


@pytest.mark.slow
def test_empty_components_with_independent_factors_are_no_missed_fits():
    model = {**DIRICHLET, "factorization": "independent", "weight_concentration_prior": 1.0}
    for covariance_type in ("full", "tied"):
        own = {**model, "covariance_type": covariance_type}
        result = compared(model=own, criteria=["second_order"], n_components=range(1, 6), n_init=1)
        assert np.sum(result.n_occupied < result.n_components) > 1
        for k, gap in result.missed.items():  # A better one is there.
            padded = np.hstack([result.estimators_[k - 1].predict_proba(X), np.zeros((len(X), 1))])
            better = mixture(own, k, init_params=padded).fit(X)
            assert better.lower_bound_ > result.estimators_[k].lower_bound_ + gap - 1e-6
        assert len(result.missed) < 2


def test_fits_without_a_score_have_no_best_one():
    model = {**DIRICHLET, "init_params": coincident, "solver": "coordinate_ascent", "max_iter": 2}
    result = compared(model=model, criteria=["leave_one_out"], n_components=[2], n_init=1)
    assert result.verdict == "No fit has a value of leave-one-out: see notes."
    with pytest.raises(ValueError, match="No fit has a value of leave-one-out"):
        _ = result.best


def test_a_fit_that_ends_below_a_smaller_one_is_named():
    rows = np.concatenate([X, X + 40.0])

    def start(X, n_components, random_state):  # of three components it is left before it has got anywhere
        right = np.eye(n_components)[(X[:, 0] > 20.0).astype(int) % n_components]
        return right if n_components < 3 else random_state.dirichlet(np.ones(3), len(X))

    model = {
        **DIRICHLET,
        "init_params": start,
        "weight_concentration_prior": 1.0,
        "moves": None,
        "max_iter": 6,
    }
    result = compared(rows, model, n_init=1, criteria=["second_order"])
    assert list(result.missed) == [3]
    assert f"Better fits were missed (K = 3 by {result.missed[3]:.1f} nats): raise n_init." in result.verdict
    assert repr(result).count("better one missed") == 1
    # What an empty component adds to the bound of two is known.
    two = result.estimators_[2]
    padded = np.hstack([two.predict_proba(rows), np.zeros((len(rows), 1))])
    bound = mixture({**model, "init_params": padded, "max_iter": 100}, n_components=3).fit(rows).lower_bound_
    assert result.missed[3] == pytest.approx(bound - result.estimators_[3].lower_bound_, abs=1e-8)


def test_the_table_and_the_page_carry_the_numbers(found):
    lines = repr(found).split("\n")
    header = next(i for i, line in enumerate(lines) if line.lstrip().startswith("K "))
    names = re.split(r"\s{2,}", lines[header].strip())
    assert names == ["K", "P(K)", "P(K | X)", "log evidence", "second order", "occupied"]
    page = ET.fromstring(found._repr_html_())
    rows = [["".join(cell.itertext()) for cell in row] for row in page.find("table").find("tbody")]
    for row, k, share, second_order in zip(
        rows, found.n_components, found.scores["probability"], found.scores["second_order"], strict=True
    ):
        assert row[:3] == [f"{k}", ["", "0.600", "0.300", "0.100"][k], f"{share:.3f}"]  # 1/K! over its sum.
        assert row[4] == f"{second_order:.1f}"
    assert sum(bool(row.findall(".//b")) for row in page.find("table").find("tbody")) >= 1
    undecided = "Undecided: " if found.scores["probability"].max() < 0.5 else ""
    at_least = f"{'at' if undecided else 'At'} least " if found.best == max(found.n_components) else ""
    assert found.verdict.startswith(f"{undecided}{at_least}{found.best} cluster")


def test_the_sentence_says_which_number_of_the_prior_decides(found):
    result = found
    log_joint = np.log(result.scores["probability"])
    gaps, best = log_joint.max() - log_joint, log_joint.argmax()
    name, factor, other = re.search(
        r"(\d+) would be about as probable if (?:the expectation of )?(\w+) were ([\d.]+) times",
        result.verdict,
    ).group(2, 3, 1)
    other = int(other) - 1
    slopes = result.prior_slopes[name]
    assert gaps[other] == pytest.approx(np.log(float(factor)) * (slopes[other] - slopes[best]), rel=0.1)


def test_the_sentence_does_not_name_a_prior_that_is_none(found):
    """Degrees of freedom are 8 of two columns, and must be above 1: less than an eighth are too few."""
    others = np.where(found.n_components == found.best, 0.0, 1.0)
    slopes = {"degrees_of_freedom_prior": -others, "mean_precision_prior": 0.8 * others}
    for gap, name in ((2.0, "degrees_of_freedom_prior"), (2.2, "the expectation of mean_precision_prior")):
        before = np.cumsum(np.log(found.n_components))  # - log P(K), so that the gap is that of the odds.
        result = replace(found, log_evidence=before - gap * others, prior_slopes=slopes)
        assert f"if {name} were" in result.verdict


def test_the_sentence_tells_nothing_about_the_prior_without_draws(found):
    unknown = {name: np.full(3, np.nan) for name in found.prior_slopes}
    verdict = replace(found, prior_slopes=unknown).verdict
    assert "as probable if" not in verdict


def test_the_sentence_tells_how_sure_the_other_prior_is(found):
    for share, error, says in (
        (0.9, 0.0, "2 with probability 0.90."),
        (0.4, 0.2, "undecided, 2 with probability 0.40 (rough)."),
    ):
        shares = {"probability": np.array([0.5 * (1.0 - share), share, 0.5 * (1.0 - share)])}
        other = replace(found, scores=shares, probability_errors=np.full(3, error))
        verdict = replace(found, another_prior=other).verdict
        assert f"(half of degrees_of_freedom_prior): {says}" in verdict


@pytest.mark.slow
def test_one_number_has_no_probability_to_tell():
    verdict = compared(n_components=[2]).verdict
    assert verdict == "2 was the only number asked for: ask for others."


@pytest.mark.slow
def test_the_largest_number_asked_for_is_no_answer():
    rows = np.concatenate([X, X + 40.0])
    result, alone = (compared(rows, n_components=numbers) for numbers in ([1, 2], [2]))
    for verdict in (result.verdict, result.partition_posterior(rows, n_draws=20).verdict):
        assert "2 was the largest number compared: ask for more, by n_components=range(1, 5)." in verdict
    for verdict in (alone.verdict, alone.partition_posterior(rows, n_draws=20).verdict):
        assert "2 was the only number asked for: ask for others." in verdict


@pytest.mark.slow
def test_warnings_of_converged_fits_are_gathered_into_one():
    with pytest.warns(UserWarning, match="n_components = 1, 2 warned") as caught:
        result = number_of_clusters(
            LRVBGaussianMixture(**DIRICHLET, random_state=0), 1e-4 * X, n_components=[1, 2], n_init=1
        )
    assert result.another_prior.notes[1][0][:60] == result.notes[1][0][:60]
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert result.notes[1][0] in str(caught[0].message)
    assert "see notes" in repr(result)


@pytest.mark.slow
def test_rows_of_weight_zero_have_no_part():
    rows, weights = np.vstack([X, [1e300, 0.0]]), np.append(np.ones(len(X)), 0.0)
    both = ["probability", "leave_one_out"]
    quick = {"criteria": both, "n_components": [1, 2]}
    with_zero, without = compared(rows, sample_weight=weights, **quick), compared(**quick)
    for criterion in both:
        np.testing.assert_allclose(with_zero.scores[criterion], without.scores[criterion], rtol=1e-6)


# Bad input.


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"n_components": 3},
            r"n_components must list one or more positive integers, as range\(1, 7\), got 3",
        ),
        ({"n_components": []}, "n_components must list"),
        ({"n_components": [0, 1]}, "n_components must list"),
        ({"n_components": [True]}, "n_components must list"),
        ({"n_components": [61]}, "n_components goes up to 61, more than the 60 rows of X"),
        ({"criteria": ["bic"]}, "criteria must list one or more of probability, second_order, leave_one_out"),
        ({"criteria": "probability"}, "criteria must list"),
        ({"criteria": []}, "criteria must list"),
        ({"n_init": 0}, "n_init"),
        ({"n_draws": 20}, "n_draws=20 are too few"),
        (
            {"model": {"weight_concentration_prior": 0.3}},
            "'probability' is undefined, since with stick-breaking weights",
        ),
        ({"model": {"prior": "flat"}}, "'probability' is undefined, since prior='flat'"),
        ({"model": {"prior": "flat"}, "criteria": ["second_order"]}, "'second_order' is undefined"),
        ({"model": {**DIRICHLET, "init_params": np.eye(60, 2)}}, "init_params is an array"),
        (
            {"model": {**DIRICHLET, "weight_concentration_prior": 1e-20}},
            "weight_concentration_prior is 1e-20",
        ),
        ({"rows": [X], "criteria": ["leave_one_out"]}, "takes rows in memory"),
        ({"sample_weight": np.ones(3)}, "sample_weight"),
        ({"model": {**DIRICHLET, "max_iter": -1}}, "The 'max_iter' parameter of LRVBGaussianMixture"),
        ({"model": {**DIRICHLET, "n_init": "3"}}, "The 'n_init' parameter of LRVBGaussianMixture"),
        ({"rows": X[None]}, "Found array with dim 3"),
        ({"rows": X[:0]}, "Found array with 0 sample"),
    ],
)
def test_bad_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        compared(**options)


def test_other_estimators_are_refused():
    with pytest.raises(
        ValueError,
        match="or an LRVBLatentClassMixture, got BayesianGaussianMixture",
    ):
        number_of_clusters(BayesianGaussianMixture(), X)


def test_too_many_features_are_refused_after_one_fit():
    wide = np.random.default_rng(0).normal(size=(12, 120))
    with pytest.raises(MemoryError, match="of up to 2 components needs a matrix of 14762 unknowns"):
        compared(wide, n_components=[1, 2])


def test_numbers_of_components_come_from_any_iterable():
    result = compared(n_components=(k for k in (2, 1, 2)), criteria=["second_order"], model={})
    assert result.n_components.tolist() == [1, 2]


def test_evidences_of_the_numbers_add_up_from_those_of_occupied_ones():
    # The identity that everything rests on, by sums over all partitions.
    from sklearn_lrvb.sampling.number_evidence import log_prior_factor

    prior, rows = Prior("full", 1), clusters(7, 1, 2.0)
    by_occupied, numbers = log_evidence_by_occupied(rows, prior, 4), np.arange(1, 5)
    parts = by_occupied - log_prior_factor(numbers, numbers, prior.concentration, 7)
    added = logsumexp(parts + log_prior_factor(numbers[:, None], numbers, prior.concentration, 7), axis=1)
    np.testing.assert_allclose(added, log_evidence_by_number(rows, prior, 4), rtol=1e-10)


# Which rows are together, averaged over the numbers of clusters.


@pytest.mark.slow
def test_partitions_are_averaged_by_the_probabilities(found):
    partition = found.partition_posterior(X, n_draws=300, random_state=0)
    numbers = partition.n_clusters_frequencies
    for t, share in enumerate(found.occupied, 1):
        assert numbers.get(t, 0.0) == pytest.approx(share, abs=0.08)
    at_least = "at least " if found.best == max(found.n_components) else ""
    assert f"The most probable number of components is {at_least}{found.best}" in partition.verdict
    # Rows of clusters far apart are never together, whatever the number of clusters.
    far = np.concatenate([X, X + 60.0])
    result = compared(far)
    together = result.partition_posterior([far[:70], far[70:]], random_state=0).coclustering([0, 1, 60, 61])
    assert np.all(together[:2, 2:] < 0.01)
    again = pickle.loads(pickle.dumps(result)).partition_posterior(far, random_state=0)
    np.testing.assert_array_equal(again.coclustering([0, 1, 60, 61]), together)


def test_partitions_are_of_the_rows_that_were_compared(found, by_scores):
    with pytest.raises(ValueError, match="X is not what the mixture was fitted to"):
        found.partition_posterior(X + 1.0)
    with pytest.raises(ValueError, match="There are no draws to average"):
        by_scores[2].partition_posterior(X)
    with pytest.raises(ValueError, match="pass X"):
        found.partition_posterior(None)
    undrawn = replace(found, _draws=dict.fromkeys(found.n_components.tolist(), (None, None)))
    with pytest.raises(ValueError, match="There are no draws to average"):
        undrawn.partition_posterior(X)
