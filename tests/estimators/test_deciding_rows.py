"""The fewest rows that change a conclusion: derivatives, refits, brute force, rows that hide each other."""

import functools
import itertools
import pickle

import dask
import dask.array as da
import numpy as np
import pandas as pd
import pytest
from catalogue import (
    MODELS,
    few_of,
    fitted,
    learning_as,
    mixture,
    model_id,
    models_in_turn,
    overlapping,
    posterior_of,
    rows_of,
)

from sklearn_lrvb import LRVBGaussianMixture
from sklearn_lrvb.answers.conclusions import Optimum, RivalConclusion, checked_conclusion
from sklearn_lrvb.answers.row_effects import RankedRows

X = overlapping()
APART = "mean[1,x0] - mean[0,x0]"
EXCHANGEABLE = {"weight_concentration_prior_type": "dirichlet_distribution"}
CLUMP = 8


def of_attributes(estimator):
    """A function of everything that a conclusion may look at."""
    covariances, precisions = np.ravel(estimator.covariances_), np.ravel(estimator.precisions_)
    return estimator.means_[0, 0] * covariances[0] + np.log(estimator.weights_[1]) + precisions[-1]


def of_bound(estimator):
    return 2.0 * estimator.lower_bound_ + estimator.means_[0, 1]


def more_in_first(estimator):
    return estimator.weights_[0] - estimator.weights_[1]


# First order.


def effects_and_differences(conclusion, optima, numbers, step=1e-3):
    """Effects of some rows by first order, and as differences of refits in their weights."""
    effects = np.concatenate(optima[0].rows.map(conclusion.effects(optima)))[numbers]
    differences = []
    for number in numbers:
        factors = np.ones(len(X))
        ends = []
        for factors[number] in (1.0 + step, 1.0 - step):
            rows = optima[0].rows.reweighted(factors)
            ends.append(conclusion.value([optimum.refitted(rows) for optimum in optima]))
        differences.append((ends[0] - ends[1]) / (2.0 * step))
    return effects, np.array(differences)


CONCLUSIONS = {
    "weight": "weight[0]",
    "apart": APART,
    "two targets": "log_weight[1] - mean[0,x1]",
    "covariance": None,
    "of attributes": of_attributes,
    "of bound": of_bound,
}


@models_in_turn(MODELS[::3], "name", CONCLUSIONS)
def test_effects_are_differences_of_refits(model, name):
    estimator = fitted(model)
    conclusion = CONCLUSIONS[name] or estimator._uncertainty.targets["covariances"].labels(["x0", "x1"])[0]
    number = checked_conclusion(estimator, conclusion, 0.0, None)
    optima = [Optimum(estimator, rows_of(estimator, X))]
    effects, differences = effects_and_differences(number, optima, [3, 150])
    np.testing.assert_allclose(effects, differences, rtol=1e-5, atol=1e-9 * abs(number.value(optima)))


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS[:3], ids=model_id)
def test_effects_on_rivals_are_those_on_their_lower_bounds(model):
    class LowerBounds(RivalConclusion):
        def value(self, optima):
            return optima[0].lower_bound - optima[1].lower_bound

    pair = [fitted(model), mixture(model, 3, init_params="k-means++").fit(X)]
    optima = [Optimum(estimator, rows_of(estimator, X)) for estimator in pair]
    effects, differences = effects_and_differences(LowerBounds(*pair), optima, [3, 150])
    np.testing.assert_allclose(effects, differences, rtol=1e-5)
    of_evidence = RivalConclusion(*pair)
    assert of_evidence.value(optima) == pair[0].log_evidence_ - pair[1].log_evidence_
    _, differences = effects_and_differences(of_evidence, optima, [3, 150])
    np.testing.assert_allclose(effects, differences, atol=0.2)


@pytest.mark.slow
@pytest.mark.parametrize(("n_components", "name", "error"), [(1, "mean[0,x1]", 0.02), (2, APART, 0.3)])
def test_effects_on_the_end_of_an_interval_have_those_on_its_error_bar(n_components, name, error):
    rows = X + np.repeat([[0.0, 0.0], [4.0, 0.0]], [160, 80], axis=0)  # Rough where they overlap.
    estimator = mixture({"prior": "flat"}, n_components).fit(rows)
    optima, numbers = [Optimum(estimator, rows_of(estimator, rows))], np.arange(0, len(X), 12)
    of_end, of_middle = (checked_conclusion(estimator, name, -9.0, interval) for interval in (0.95, None))
    effects, differences = effects_and_differences(of_end, optima, numbers)
    without = np.concatenate(optima[0].rows.map(of_middle.effects(optima)))[numbers]
    of_error_bar = differences - without
    np.testing.assert_allclose(effects - without, of_error_bar, atol=error * np.abs(of_error_bar).max())


def test_the_end_of_an_interval_is_that_of_linear_response():
    estimator = fitted({})
    means = estimator.posterior(method="lrvb").covariance("means")
    sd = np.sqrt(means[0, 0] + means[2, 2] - 2.0 * means[0, 2])
    apart = estimator.means_[1, 0] - estimator.means_[0, 0]
    found = estimator.deciding_rows(X, conclusion=APART, threshold=0.5, interval=0.95, max_share=0.01)
    assert found.conclusion == f"the lower end of the 95 % interval of {APART}"
    np.testing.assert_allclose(found.value, apart - 1.959963984540054 * sd)
    above = estimator.deciding_rows(X, conclusion=APART, threshold=9.0, interval=0.95, max_share=0.01)
    np.testing.assert_allclose(above.value, apart + 1.959963984540054 * sd)


# What is found.


def refitted_without(estimator, rows, X=X, weights=None):
    """A fit to the other rows, under the prior of the fit and from its responsibilities."""
    kept = np.setdiff1d(np.arange(len(X)), rows)
    parameters = estimator.get_params()
    parameters["init_params"] = estimator.predict_proba(X)[kept]
    names = {
        "flat": (),
        "learned": ("mean_prior",),
        "fixed": ("mean_prior", "covariance_prior", "degrees_of_freedom_prior", "mean_precision_prior"),
    }[estimator.prior]
    parameters |= {name: getattr(estimator, f"{name}_") for name in names}
    if estimator.noise:
        parameters["noise"] = estimator.noise_log_density_
    return learning_as(posterior_of(estimator).prior)(**parameters).fit(
        X[kept], sample_weight=None if weights is None else weights[kept]
    )


@pytest.mark.slow
@pytest.mark.parametrize("model", few_of(MODELS)[::2], ids=model_id)
def test_a_fit_without_the_rows_confirms_it(model):
    estimator = fitted(model)
    before = pickle.dumps(
        {name: vars(estimator)[name] for name in ("means_", "lower_bound_", "covariances_")}
    )
    threshold = estimator.weights_[0] - np.sign(0.5 - 0.0) * 0.02
    found = estimator.deciding_rows(X, conclusion="weight[0]", threshold=threshold)
    assert found.found and not found.is_mode and not found.failure
    again = refitted_without(estimator, found.rows)
    np.testing.assert_allclose(found.confirmed, again.weights_[0], atol=1e-6)
    assert found.value == estimator.weights_[0] > threshold >= found.confirmed
    np.testing.assert_allclose(found.refit.means_, again.means_, atol=1e-5)
    np.testing.assert_allclose(found.refit.posterior_std_, again.posterior_std_, rtol=1e-4)
    assert found.share == len(found.rows) / len(X) <= 0.1
    assert found.first_order_rows == len(found.first_order_path) - 1
    np.testing.assert_allclose(found.path[-1], (len(found.rows), found.confirmed))
    # By falling effect, of which the first so many sum to the prediction.
    effects = estimator.influence(X, target="weights", perturb="weight")[:, 0]
    assert np.all(np.diff(effects[found.rows]) <= 1e-12)
    np.testing.assert_allclose(found.predicted, found.value - effects[found.rows].sum(), atol=1e-9)
    assert (
        pickle.dumps({name: vars(estimator)[name] for name in ("means_", "lower_bound_", "covariances_")})
        == before
    )


@pytest.mark.parametrize(
    ("n_components", "conclusion", "threshold"),
    [
        (1, "covariance[0,x0,x1]", 0.0),
        (1, "mean[0,x0]", 1.5),
        (2, more_in_first, 0.1),
        (2, "mean[1,x1]", 0.4),
    ],
    ids=["covariance", "mean", "weights", "mean of one of two"],
)
def test_brute_force_finds_no_set_smaller_by_two(n_components, conclusion, threshold):
    rows = np.random.default_rng(3).normal(size=(12, 2)) + np.repeat([[0, 0], [5, 0.8]], [7, 5], axis=0)
    estimator = mixture(EXCHANGEABLE, n_components).fit(rows)
    found = estimator.deciding_rows(rows, conclusion=conclusion, threshold=threshold, max_share=0.5)
    assert found.found and len(found.rows) <= 4
    base = Optimum(estimator, rows_of(estimator, rows))
    number = checked_conclusion(estimator, conclusion, threshold, None)

    def changes(left_out):
        factors = np.ones(len(rows))
        factors[list(left_out)] = 0.0
        return (number.value([base.refitted(base.rows.reweighted(factors))]) - threshold) * (
            found.value - threshold
        ) <= 0.0

    assert changes(found.rows)
    smaller = (itertools.combinations(range(len(rows)), n) for n in range(1, len(found.rows) - 1))
    assert not any(changes(left_out) for left_out in itertools.chain.from_iterable(smaller))


def with_a_clump(seed, n=100, slope=-0.4, far=10.0):
    """Rows of one slope, and a clump of identical far ones that turns it and whose rows hide each other."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    return np.concatenate([np.column_stack([x, slope * x + rng.normal(size=n)]), np.full((CLUMP, 2), far)])


@pytest.mark.parametrize("seed", range(3))
def test_rows_that_hide_each_other_are_found(seed):
    rows = with_a_clump(seed)
    estimator = mixture({}, 1).fit(rows)
    found = estimator.deciding_rows(rows, conclusion="covariance[0,x0,x1]")
    assert found.value > 0 > found.confirmed and found.found
    assert found.first_order_rows is None  # To first order no tenth of the rows is enough.
    assert len(found.rows) <= CLUMP and found.rows.min() >= len(rows) - CLUMP


def test_another_optimum_is_told_from_rows():
    rng = np.random.default_rng(30)
    rows = np.concatenate([rng.normal(size=(30, 1)), rng.normal(size=(15, 1)) * 0.5 + 1.5])
    start = {
        **EXCHANGEABLE,
        "prior": "fixed",
        "weight_concentration_prior": 1.0,
        "init_params": "random_from_data",
        "moves": None,
    }
    estimator = mixture(start).set_params(random_state=30).fit(rows)
    found = estimator.deciding_rows(
        rows, conclusion=lambda fit: fit.covariances_[0, 0, 0] - fit.covariances_[1, 0, 0]
    )
    assert found.is_mode and not found.found and found.confirmed < 0 < found.value
    better = mixture({**start, "moves": "search"}).set_params(random_state=30).fit(rows)
    np.testing.assert_allclose(found.mode_gain, better.lower_bound_ - estimator.lower_bound_, atol=1e-5)
    assert "Not rows but another optimum" in repr(found) and "moves='search'" in found.verdict


def test_a_better_optimum_on_the_way_is_said():
    rows, start = (
        overlapping(40, seed=3),
        {"prior": "fixed", "init_params": "random_from_data", "moves": None},
    )
    start |= EXCHANGEABLE
    estimator = mixture(start).set_params(random_state=3).fit(rows)
    found = estimator.deciding_rows(rows, conclusion="mean[1,x1]", max_share=0.15)
    assert found.found
    again = mixture(start, init_params=found.refit.predict_proba(rows), tol=1e-9).fit(rows)
    np.testing.assert_allclose(found.mode_gain, again.lower_bound_ - estimator.lower_bound_, atol=1e-5)
    assert found.mode_gain > 1.0 and "another optimum of all rows is 2.7 nats higher" in found.verdict


@pytest.mark.slow
def test_rows_that_are_not_needed_are_put_back():
    rows = overlapping(150, seed=5)
    estimator = mixture(EXCHANGEABLE).fit(rows)
    found = estimator.deciding_rows(rows, conclusion=more_in_first)
    assert found.found and found.path[:, 0].max() > len(found.rows) == found.path[-1, 0]


@pytest.mark.slow
def test_none_of_few_rows_can_be_put_back():
    rows = overlapping(40, seed=7)
    estimator = mixture(EXCHANGEABLE).fit(rows)
    found = estimator.deciding_rows(rows, conclusion="mean[1,x1]", max_share=0.2)
    assert found.found and len(found.rows) > 1
    for row in found.rows:
        without_others = refitted_without(estimator, np.setdiff1d(found.rows, row), rows)
        assert without_others.means_[1, 1] * found.value > 0.0 > found.confirmed * found.value


def test_a_row_without_which_there_is_no_fit_is_passed_over():
    rows = np.append(np.random.default_rng(0).normal(size=40), 9.0)[:, None]
    estimator = mixture({}, 1).fit(rows)

    def mean_while_the_far_row_is_there(fit):
        if fit.covariances_[0, 0, 0] < 0.7 * estimator.covariances_[0, 0, 0]:
            raise KeyError("it is gone")
        return fit.means_[0, 0]

    threshold = estimator.means_[0, 0] - 0.1
    assert 40 in estimator.deciding_rows(rows, conclusion="mean[0,x0]", threshold=threshold).rows
    found = estimator.deciding_rows(rows, conclusion=mean_while_the_far_row_is_there, threshold=threshold)
    assert found.found and 40 not in found.rows and not found.failure


def test_a_refit_that_does_not_arrive_is_no_answer(monkeypatch):
    monkeypatch.setattr("sklearn_lrvb.mixture.refit._MOST_STEPS", 1)
    estimator = fitted({})
    found = estimator.deciding_rows(X, conclusion="weight[0]", threshold=estimator.weights_[0] - 0.02)
    assert not found.found and found.failure == "the refit did not converge." and found.n_refits > 10


@pytest.mark.slow
def test_which_of_two_numbers_of_components():
    one, two = (mixture(EXCHANGEABLE, k).fit(X) for k in (1, 2))
    difference = two.log_evidence_ - one.log_evidence_
    found = two.deciding_rows(X, rival=one, threshold=difference - 5.0)
    assert found.found
    np.testing.assert_allclose(found.value, difference)
    without = [refitted_without(estimator, found.rows).log_evidence_ for estimator in (two, one)]
    np.testing.assert_allclose(found.confirmed, without[0] - without[1], atol=1e-4)
    other_way = one.deciding_rows(X, rival=two, threshold=5.0 - difference)
    np.testing.assert_array_equal(other_way.rows, found.rows)


def test_where_none_is_found_it_says_so():
    estimator = fitted({})
    found = estimator.deciding_rows(X, conclusion=APART, threshold=-5.0, max_share=0.02)
    assert not found.found and not found.is_mode and found.first_order_rows is None
    assert found.share <= 0.02 and found.refit is not None
    assert found.verdict.startswith("No rows found that decide whether") and "no proof" in found.verdict
    nothing = estimator.deciding_rows(X, conclusion=lambda fit: 1.0)
    assert not len(nothing.rows) and nothing.refit is None and nothing.confirmed == 1.0
    assert (
        nothing.verdict
        == "No rows found that decide whether the conclusion is above 0: to first order none that max_share "
        "allows moves it to 0."
    )
    assert (
        "none that max_share allows" in estimator.deciding_rows(X, conclusion=APART, max_share=0.004).verdict
    )


@pytest.mark.slow
def test_what_no_rows_can_change_takes_no_endless_search(monkeypatch):
    monkeypatch.setattr("sklearn_lrvb.answers.deciding_rows.MOST_REFITS", 40)
    estimator = fitted(EXCHANGEABLE)
    found = estimator.deciding_rows(X, conclusion=lambda fit: max(fit.weights_), threshold=0.5, max_share=0.9)
    assert not found.found and found.n_refits == 40 and "40 refits were not enough" in found.verdict


def test_where_a_refit_fails_it_says_so():
    rows = np.concatenate(
        [np.random.default_rng(0).normal(size=(40, 2)), [[9, 9], [9.5, 9], [9, 9.5], [9.2, 9.3]]]
    )
    estimator = mixture({"prior": "flat"}).fit(rows)
    small = int(estimator.weights_.argmin())
    found = estimator.deciding_rows(rows, conclusion=f"weight[{small}]", threshold=0.001)
    assert not found.found and "has no posterior" in found.failure
    assert found.failure in found.verdict

    def fails_elsewhere(fit):
        if fit.weights_[0] < estimator.weights_[0] - 0.01:
            raise KeyError("no such cluster")
        return fit.weights_[0]

    estimator = fitted({})
    found = estimator.deciding_rows(X, conclusion=fails_elsewhere, threshold=estimator.weights_[0] - 0.03)
    assert not found.found and "raised KeyError: 'no such cluster'" in found.failure
    assert len(found.rows) > 0 and found.confirmed >= estimator.weights_[0] - 0.01


# Rows anywhere, weights, groups.


def same(one, other):
    np.testing.assert_array_equal(one.rows, other.rows)
    np.testing.assert_allclose(one.confirmed, other.confirmed, rtol=1e-9)
    np.testing.assert_allclose(one.predicted, other.predicted, rtol=1e-9)
    assert one.found == other.found and one.n_rows == other.n_rows and one.share == other.share
    if one.groups is not None:
        np.testing.assert_array_equal(one.groups, other.groups)


@pytest.mark.slow
@pytest.mark.parametrize("with_groups", [False, True])
def test_arrays_batches_dask_and_threads_find_the_same(with_groups):
    rows, weights = X.copy(), np.tile([1.0, 2.0, 0.0, 1.0], 60)
    rows[5] = np.nan  # A row without any value.
    rows[9, 0] = np.nan
    estimator = mixture(EXCHANGEABLE, reg_covar=0.05).fit(rows, sample_weight=weights)
    groups = np.arange(240) // 3 if with_groups else None
    ask = functools.partial(
        estimator.deciding_rows,
        conclusion=APART,
        threshold=estimator.means_[1, 0] - estimator.means_[0, 0] - 0.1,
    )
    found = ask(rows, sample_weight=weights, groups=groups)
    assert found.found and weights[found.rows].all() and 5 not in found.rows
    without = np.isin(np.arange(240), found.rows, invert=True) * weights
    start = np.where(np.isnan(rows).all(axis=1)[:, None], 0.5, estimator.predict_proba(X))
    held = {"init_params": start, "mean_prior": estimator.mean_prior_}
    kind = learning_as(posterior_of(estimator).prior)
    again = kind(**estimator.get_params() | held).fit(rows, sample_weight=without)
    np.testing.assert_allclose(np.diff(again.means_[:, 0])[0], found.confirmed, atol=1e-6)
    parts = [(rows[:50], weights[:50]), (rows[50:], weights[50:])]
    same(found, ask(parts, groups=groups))
    with dask.config.set(scheduler="synchronous"):
        chunked, weighed = da.from_array(rows, chunks=(70, 2)), da.from_array(weights, chunks=70)
        same(found, ask(chunked, sample_weight=weighed, groups=groups))
        if with_groups:
            same(found, ask(chunked, sample_weight=weighed, groups=da.from_array(groups, chunks=70)))
    estimator.n_jobs = 2
    same(found, ask(rows, sample_weight=weights, groups=groups))


@pytest.mark.parametrize(("enough", "most_weight"), [(3.0, 90.0), (30.0, 9.0)])
def test_ranks_do_not_depend_on_how_rows_are_divided(enough, most_weight):
    rng = np.random.default_rng(0)
    for _ in range(20):
        numbers, weights = np.arange(40), rng.choice([1.0, 3.0, 7.0], 40)
        effects = rng.integers(-2, 6, 40) / 8 + 1e-14 * rng.normal(size=40)  # Equal ones differ by rounding.
        limits = enough, most_weight
        whole = RankedRows.of(numbers, effects, weights, *limits)
        parts = [RankedRows.of(numbers[k::3], effects[k::3], weights[k::3], *limits) for k in (2, 0, 1)]
        divided = parts[0] + parts[1] + parts[2]
        for name in ("numbers", "effects", "weights"):
            np.testing.assert_array_equal(getattr(divided, name), getattr(whole, name))
        assert np.all(np.diff(whole.effects) <= 0)
        assert np.all(np.diff(whole.numbers)[np.diff(whole.effects) == 0] > 0)
        assert whole.effects[:-1].sum() < enough and whole.weights[:-1].sum() < most_weight
        assert whole.allowed().weights.sum() <= most_weight


def test_many_rows_take_few_refits(monkeypatch):
    monkeypatch.setattr("sklearn_lrvb.answers.deciding_rows._MANY_ROWS", 100)
    estimator = fitted({})
    apart = estimator.means_[1, 0] - estimator.means_[0, 0]
    found = estimator.deciding_rows(X, conclusion=APART, threshold=apart - 0.15)
    assert found.found and len(found.path) <= 3 < found.first_order_rows


@pytest.mark.slow
def test_a_weight_is_so_many_rows():
    weights = np.tile([3.0, 1.0], 120)
    estimator = mixture(EXCHANGEABLE).fit(X, sample_weight=weights)
    copies = np.repeat(np.arange(len(X)), weights.astype(int))
    threshold = estimator.weights_[0] - 0.03
    found = estimator.deciding_rows(X, conclusion="weight[0]", threshold=threshold, sample_weight=weights)
    assert found.found and found.share == weights[found.rows].sum() / weights.sum()
    # Copies of a row as one group: the weighted row.
    repeated = mixture(EXCHANGEABLE, init_params=estimator.predict_proba(X[copies])).fit(X[copies])
    by_group = repeated.deciding_rows(X[copies], conclusion="weight[0]", threshold=threshold, groups=copies)
    np.testing.assert_array_equal(by_group.groups, found.rows)
    np.testing.assert_allclose(by_group.confirmed, found.confirmed, atol=1e-6)


def test_whole_groups_are_left_out():
    names = np.array([f"patient {k:02d}" for k in np.random.default_rng(0).permutation(240) // 6])
    estimator = fitted({})
    found = estimator.deciding_rows(
        X, conclusion="weight[0]", threshold=estimator.weights_[0] - 0.02, groups=names
    )
    assert found.found and found.n_groups == 40
    np.testing.assert_array_equal(found.rows, np.flatnonzero(np.isin(names, found.groups)))
    np.testing.assert_allclose(
        found.confirmed, refitted_without(estimator, found.rows).weights_[0], atol=1e-6
    )
    assert f"{len(found.groups)} of 40 groups" in found.verdict


@pytest.mark.slow
@pytest.mark.parametrize("form", ["missing", "float32", "frame"])
def test_every_table_that_a_fit_takes(form):
    rows = X.copy()
    if form == "missing":
        rows[np.random.default_rng(0).random(X.shape) < 0.15] = np.nan
    rows = {"float32": rows.astype(np.float32), "frame": pd.DataFrame(X, columns=["a - b", "c"])}.get(
        form, rows
    )
    name = "mean[1,a - b] - mean[0,a - b]" if form == "frame" else APART
    estimator = mixture({}).fit(rows)
    apart = estimator.means_[1, 0] - estimator.means_[0, 0]
    found = estimator.deciding_rows(rows, conclusion=name, threshold=apart - 0.1)
    assert found.found and found.conclusion == name
    np.testing.assert_allclose(found.confirmed, np.diff(found.refit.means_[:, 0])[0], atol=1e-9)


@pytest.mark.slow
def test_units_and_origin_do_not_matter():
    estimator = fitted({"prior": "flat"})
    moved = mixture({"prior": "flat"}, init_params=estimator.predict_proba(X)).fit(1e3 * X + 1e5)
    apart = estimator.means_[1, 0] - estimator.means_[0, 0]
    found = estimator.deciding_rows(X, conclusion=APART, threshold=apart - 0.2)
    again = moved.deciding_rows(1e3 * X + 1e5, conclusion=APART, threshold=1e3 * (apart - 0.2))
    np.testing.assert_array_equal(again.rows, found.rows)
    np.testing.assert_allclose(again.confirmed, 1e3 * found.confirmed, rtol=1e-5)


# The result, and bad input.


def test_the_result_can_be_shown_and_pickled(capsys):
    estimator = mixture({}, verbose=1).fit(X)
    capsys.readouterr()
    found = estimator.deciding_rows(X, conclusion="weight[0]", threshold=estimator.weights_[0] - 0.01)
    assert capsys.readouterr().out.startswith("deciding_rows\n")
    assert f"{len(found.rows)} of 240 rows" in repr(found) and "refitted" in repr(found)
    assert "<b>" in found._repr_html_() and found.verdict.split(":")[0] in found._repr_html_()
    same(pickle.loads(pickle.dumps(found)), found)
    assert (
        found.refit.posterior(X, sample_weight=np.isin(np.arange(240), found.rows, invert=True))
        .summary()
        .size
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, r"\(a\) Pass a conclusion, such as .* Not both"),
        (
            {"conclusion": "weight[0]", "rival": LRVBGaussianMixture()},
            r"\(a\) Pass a conclusion, such as .* Not both",
        ),
        ({"conclusion": 3.0}, "must be the name of a parameter"),
        (
            {"conclusion": "weight[2]"},
            r"'weight\[2\]' names no parameter. Did you mean weight\[1\], weight\[0\]",
        ),
        ({"conclusion": "mean[0,x0] - mean[3,x0]"}, r"'mean\[3,x0\]' names no parameter"),
        ({"conclusion": lambda fit: np.nan}, "must be one finite number, got nan"),
        ({"conclusion": lambda fit: fit.means_}, "must be one finite number, got array"),
        ({"conclusion": lambda fit: fit.means_std_}, "raised .*no error bars"),
        ({"conclusion": lambda fit: np.array("high")}, "must be one finite number, got array"),
        ({"conclusion": of_bound, "interval": 0.9}, "interval goes with the name"),
        ({"conclusion": APART, "interval": 1.0}, "interval must be a probability"),
        ({"conclusion": APART, "threshold": np.inf}, "threshold must be a finite number"),
        ({"conclusion": APART, "max_share": 0.0}, "max_share must be above 0"),
        ({"conclusion": lambda fit: 0.0}, "is the threshold"),
        ({"conclusion": APART, "groups": np.arange(5)}, "groups has 5 labels, but X has 240 rows"),
        ({"rival": LRVBGaussianMixture()}, "not fitted"),
        ({"rival": "K + 1"}, "rival must be a fitted LRVBGaussianMixture"),
        ({"conclusion": APART, "max_share": 1}, "max_share must be above 0 and below 1, got 1"),
    ],
    ids=range(18),
)
def test_bad_input_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        fitted({}).deciding_rows(X, **options)


def test_rivals_that_do_not_compare_are_refused():
    estimator = fitted({})
    refused = {
        "n_components=2 too": mixture({}).fit(X),
        "covariance_type='diag'": mixture({"covariance_type": "diag"}, 3).fit(X),
        "another weight_concentration_prior_": mixture({"weight_concentration_prior": 3.0}, 3).fit(X),
        "another mean_prior_": mixture({"mean_prior": [1.0, 1.0]}, 3).fit(X),
        "another mean_precision_prior_": mixture({"mean_precision_prior": 1.0}, 3).fit(X),
        "another covariance_prior_": mixture({"mean_prior": estimator.mean_prior_}, 1).fit(X[:-1]),
        # Other rows of the same mean and covariance.
        "X is not what the mixture was fitted to": mixture({}, 1).fit(2.0 * X.mean(axis=0) - X),
    }
    for message, rival in refused.items():
        with pytest.raises(ValueError, match=message):
            estimator.deciding_rows(X, rival=rival)
    with pytest.raises(ValueError, match="interval goes with the name"):
        estimator.deciding_rows(X, rival=refused["n_components=2 too"], interval=0.95)
    flat = [mixture({"prior": "flat"}, k).fit(X) for k in (1, 2)]
    with pytest.raises(ValueError, match="known up to a factor"):
        flat[0].deciding_rows(X, rival=flat[1])
    with pytest.raises(ValueError, match="X is not what the mixture was fitted to"):
        estimator.deciding_rows(X[:-1], conclusion=APART)
