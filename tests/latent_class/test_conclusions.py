"""How many classes there are, which rows belong together, and which decide.

Against sums over all partitions of the rows, refits, and by what must not matter.
"""

import pickle
from dataclasses import dataclass, replace

import dask.dataframe as dd
import matplotlib
import numpy as np
import pytest
from catalogue import set_sizes
from exact_evidence import number_probabilities
from latent_class.catalogue import (
    PROBLEMS,
    RATES,
    WEIGHTS,
    categories,
    codes_of,
    durations,
    fitted,
    in_polars,
    kinds_of,
    mixed,
    refitted_with,
)
from scipy.special import gammaln, logsumexp, softmax

from sklearn_lrvb import LRVBGaussianMixture, LRVBLatentClassMixture, number_of_clusters
from sklearn_lrvb.displays import (
    ClassProfilesDisplay,
    ComponentDisplay,
    DecidingRowsDisplay,
    InfluenceDisplay,
    ModelChoiceDisplay,
    PartitionDisplay,
    PosteriorIntervalDisplay,
    PosteriorStdDisplay,
)

matplotlib.use("agg")

# Small tables have few rows for each category.
pytestmark = [
    pytest.mark.filterwarnings("ignore:More categories than a tenth:UserWarning"),
    pytest.mark.filterwarnings("ignore:Fits with n_components .* More categories:UserWarning"),
]

# Eight rows of every type of column, with missing values: they have 4,140 partitions.
SMALL = mixed(40, seed=8).iloc[[6, 7, 9, 10, 11, 12, 14, 15]].reset_index(drop=True)
COUNTED = {"visits": "count"}


@dataclass(frozen=True)
class Numbers:
    """The hyperparameters, by the names of the arguments."""

    weight_concentration_prior: float = 1.2
    category_concentration_prior: float = 0.7
    mean_precision_prior: float = 0.3
    degrees_of_freedom_prior: float = 2.5
    variance_prior: float = 0.8
    rate_shape_prior: float = 1.4

    def mixture(self, **parameters):
        given = {"columns": "auto", "random_state": 0, **parameters}
        return LRVBLatentClassMixture(**vars(self), **given)


def log_evidence_of_set(values, kinds, numbers, moments):
    """log p of some rows, all of one class, column by column: values (n, P), moments (2, P)."""
    total = 0.0
    for y, kind, mean, deviation in zip(values.T, kinds, *moments, strict=True):
        y = y[~np.isnan(y)]
        n = len(y)
        if kind == "numeric":
            kappa, a, b = (
                numbers.mean_precision_prior,
                0.5 * numbers.degrees_of_freedom_prior,
                0.5 * numbers.variance_prior,
            )
            x = (y - mean) / deviation
            rate = b + 0.5 * (np.square(x).sum() - x.sum() ** 2 / (kappa + n))
            total += gammaln(a + 0.5 * n) - gammaln(a) + a * np.log(b) - (a + 0.5 * n) * np.log(rate)
            total += 0.5 * np.log(kappa / (kappa + n)) - n * (0.5 * np.log(2 * np.pi) + np.log(deviation))
        elif kind in RATES:
            of_log, of_rate, rest = (part.sum() for part in RATES[kind](y))
            guess = np.divide(*RATES[kind](mean)[:2])
            a, b = numbers.rate_shape_prior, numbers.rate_shape_prior / guess
            total += gammaln(a + of_log) - gammaln(a) + a * np.log(b) - (a + of_log) * np.log(b + of_rate)
            total += rest
        else:
            alpha, held = numbers.category_concentration_prior, np.bincount(y.astype(int), minlength=kind)
            total += gammaln(kind * alpha) - gammaln(kind * alpha + n)
            total += (gammaln(alpha + held) - gammaln(alpha)).sum()
    return total


def partitions(n_rows, most):
    """All partitions of rows into at most so many sets: int arrays (n_rows,)."""
    if n_rows == 0:
        yield np.empty(0, dtype=int)
        return
    for smaller in partitions(n_rows - 1, most):
        n_sets = smaller.max(initial=-1) + 1
        for own in range(min(n_sets + 1, most)):
            yield np.append(smaller, own)


def log_joint_by_partition(X, numbers, most):
    """All partitions, (n, N), the numbers of their sets, and log p(X | partition)."""
    values, kinds = codes_of(X), list(kinds_of(X).values())
    # A category may have been seen in another row only.
    moments = np.nanmean(values, axis=0), np.nanstd(values, axis=0)
    known = {}

    def of_set(rows):
        key = tuple(rows)
        if key not in known:
            known[key] = log_evidence_of_set(values[list(key)], kinds, numbers, moments)
        return known[key]

    found = np.array(list(partitions(len(values), most)))
    n_sets = found.max(axis=1) + 1
    logs = [
        sum(of_set(np.flatnonzero(own == k)) for k in range(n)) for own, n in zip(found, n_sets, strict=True)
    ]
    return found, n_sets, np.array(logs)


def log_weights_of(found, n_sets, concentration, n_components):
    """log of the probability of partitions under K components, -inf where they have too few."""
    n_rows = found.shape[1]
    sizes = np.stack([(found == k).sum(axis=1) for k in range(n_sets.max())], axis=1)
    own = np.where(sizes > 0, gammaln(concentration + sizes) - gammaln(concentration), 0.0).sum(axis=1)
    total = n_components * concentration
    empty = np.maximum(n_components - n_sets, 0)
    ways = gammaln(n_components + 1.0) - gammaln(empty + 1.0)
    return np.where(n_sets <= n_components, ways + own + gammaln(total) - gammaln(total + n_rows), -np.inf)


def exact_log_evidence(X, numbers, most):
    """log p(X | K) of K = 1, ..., most."""
    found, n_sets, logs = log_joint_by_partition(X, numbers, most)
    return np.array(
        [
            logsumexp(logs + log_weights_of(found, n_sets, numbers.weight_concentration_prior, k))
            for k in range(1, most + 1)
        ]
    )


def compared(rows, numbers=Numbers(), n_sweeps=240, columns="auto", **options):
    """A comparison of up to three classes, without another prior."""
    given = {"n_components": [1, 2, 3], "n_init": 6, "another_prior": False, "random_state": 0, **options}
    with pytest.MonkeyPatch.context() as patch:
        set_sizes(patch, sweeps_of_numbers=n_sweeps)
        return number_of_clusters(numbers.mixture(columns=columns), rows, **given)


@pytest.fixture(scope="module")
def of_small():
    """The comparison of the small table; shared, so not to be changed."""
    return compared(SMALL, columns=COUNTED)


# How many classes.


@pytest.mark.slow
def test_probabilities_are_those_of_sums_over_all_partitions(of_small):
    exact = exact_log_evidence(SMALL, Numbers(), 3)
    assert np.all(np.abs(of_small.log_evidence - exact) < 0.05 + 3.0 * of_small.log_evidence_error)
    assert 0.5 * np.abs(of_small.scores["probability"] - number_probabilities(exact)).sum() < 0.05
    # A single class is solved exactly.
    assert of_small.log_evidence[0] == pytest.approx(exact[0], abs=1e-9)


def test_probabilities_are_those_of_sums_with_durations_too():
    X = durations(8)
    found = compared(X, columns={("wait", "stay"): "duration"})
    exact = exact_log_evidence(X, Numbers(), 3)
    assert np.all(np.abs(found.log_evidence - exact) < 0.05 + 3.0 * found.log_evidence_error)
    assert found.prior_slopes.keys() == {"weight_concentration_prior", "rate_shape_prior"}


def test_probabilities_with_a_learned_number_are_integrals_over_it():
    X = durations(8)
    found = compared(X, replace(Numbers(), rate_shape_prior=None), columns={("wait", "stay"): "duration"})
    logs = np.linspace(-5.0, 3.5, 30)
    given = [exact_log_evidence(X, replace(Numbers(), rate_shape_prior=u), 3) for u in np.exp(logs)]
    densities = np.array(given) + (logs - np.exp(logs))[:, None]
    exact = logsumexp(densities, axis=0) + np.log(logs[1] - logs[0])
    assert np.all(np.abs(found.log_evidence - exact) < 0.05 + 3.0 * found.log_evidence_error)
    # The slope in the logarithm of the mean of the number, which is one.
    slopes = np.exp(logs) @ softmax(densities, axis=0) - 1.0
    np.testing.assert_allclose(found.prior_slopes["rate_shape_prior"], slopes, atol=0.15)


def test_prior_slopes_are_derivatives_of_the_evidence(of_small):
    # All types of columns have their numbers there.
    assert of_small.prior_slopes.keys() == vars(Numbers()).keys()
    for name, slopes in of_small.prior_slopes.items():
        ends = []
        for factor in (np.exp(0.01), np.exp(-0.01)):
            other = replace(Numbers(), **{name: factor * getattr(Numbers(), name)})
            ends.append(exact_log_evidence(SMALL, other, 3))
        exact = (ends[0] - ends[1]) / 0.02
        np.testing.assert_allclose(slopes, exact, atol=0.12 + 0.03 * np.abs(exact).max(), err_msg=name)


def test_another_prior_changes_the_numbers_of_the_columns_there_are():
    options = {"n_components": [1, 2], "n_init": 2, "n_draws": 200, "another_prior": True}
    of_categories = compared(categories(30), n_sweeps=30, **options)
    words = "Under another prior (half of category_concentration_prior)"
    assert words in of_categories.verdict
    other = replace(Numbers(), category_concentration_prior=0.35)
    alone = compared(categories(30), other, n_sweeps=30, **(options | {"another_prior": False}))
    np.testing.assert_array_equal(of_categories.another_prior.log_evidence, alone.log_evidence)
    # What is learned stays so.
    learning = replace(Numbers(), category_concentration_prior=None)
    learned = compared(categories(30), learning, n_sweeps=30, **options)
    assert "Under another prior (half of weight_concentration_prior)" in learned.verdict
    other = replace(learning, weight_concentration_prior=0.5 * learning.weight_concentration_prior)
    alone = compared(categories(30), other, n_sweeps=30, **(options | {"another_prior": False}))
    np.testing.assert_array_equal(learned.another_prior.log_evidence, alone.log_evidence)
    assert "a tenth of mean_precision_prior and of variance_prior, half of" in (
        compared(SMALL, n_sweeps=30, columns=COUNTED, **options).verdict
    )


@pytest.mark.slow
def test_the_default_concentration_is_one_for_every_number():
    found = number_of_clusters(
        LRVBLatentClassMixture(random_state=0), categories(), n_components=[2], another_prior=False
    )
    prior = found.estimators_[2].get_params()["weight_concentration_prior"]
    assert prior == 1.0


@pytest.mark.slow
@pytest.mark.parametrize("has_missing", [False, True])
@pytest.mark.parametrize("form", ["polars", "batches", "dask", "copies"])
def test_rows_may_be_anywhere_and_weights_are_copies(form, has_missing):
    X, columns = (mixed(40), COUNTED) if has_missing else (categories(40), "auto")
    quick = {"n_components": [1, 2], "n_init": 2, "n_draws": 200, "n_sweeps": 30, "columns": columns}
    expected = compared(X, **quick)
    if form == "copies":
        # Chains have other random numbers, so that only what importance sampling knows is the same.
        weights = np.random.default_rng(0).integers(1, 4, len(X))
        expected = compared(X.iloc[np.repeat(np.arange(len(X)), weights)].reset_index(drop=True), **quick)
        found = compared(X, sample_weight=weights, **quick)
        np.testing.assert_allclose(found.scores["second_order"], expected.scores["second_order"], rtol=1e-7)
        gap = np.abs(found.log_evidence - expected.log_evidence)
        assert np.all(gap <= 3.0 * np.hypot(found.log_evidence_error, expected.log_evidence_error) + 1e-9)
        return
    rows = {
        "polars": lambda: in_polars(X),
        "batches": lambda: [X.iloc[:13], X.iloc[13:]],
        "dask": lambda: dd.from_pandas(X, npartitions=3),
    }[form]()
    found = compared(rows, **quick)
    np.testing.assert_allclose(found.log_evidence, expected.log_evidence, rtol=1e-6)


@pytest.mark.slow
def test_other_criteria_are_those_of_the_fits():
    X = mixed()
    found = number_of_clusters(
        LRVBLatentClassMixture(columns=COUNTED, random_state=0),
        X,
        n_components=[1, 2],
        criteria=["second_order", "leave_one_out"],
        sample_weight=WEIGHTS,
    )
    for place, k in enumerate(found.n_components.tolist()):
        fit = found.estimators_[k]
        assert found.scores["second_order"][place] == pytest.approx(
            fit.log_evidence_ + np.log(k)
        )  # k! orders
        some = WEIGHTS > 0
        scores = fit.loo_score_samples(X[some], sample_weight=WEIGHTS[some])
        assert found.scores["leave_one_out"][place] == pytest.approx(np.sum(WEIGHTS[some] * scores))


# Which rows belong together.


@pytest.mark.slow
def test_exact_partitions_are_those_of_the_sum_over_all():
    numbers = Numbers()
    fit = numbers.mixture(n_components=2, columns=COUNTED).fit(SMALL)
    found, n_sets, logs = log_joint_by_partition(SMALL, numbers, 2)
    shares = softmax(logs + log_weights_of(found, n_sets, numbers.weight_concentration_prior, 2))
    together = np.einsum("s,sn,sm->nm", shares, found, found)
    together += np.einsum("s,sn,sm->nm", shares, 1 - found, 1 - found)
    answer = fit.partition_posterior(SMALL, n_draws=4000, method="exact", random_state=0)
    np.testing.assert_allclose(answer.coclustering(answer.sampled_rows), together, atol=0.06)


@pytest.mark.slow
def test_partitions_are_of_the_rows_wherever_they_are():
    for name in ("categories", "mixed"):
        problem, fit = PROBLEMS[name], fitted(name)
        options = {"n_draws": 100, "method": "lrvb", "random_state": 0}
        expected = fit.partition_posterior(problem.X, **options)
        batches = [problem.X.iloc[:30], problem.X.iloc[30:]]
        # Rows with missing values in parts have other random numbers.
        error = 0.15 if name == "mixed" else 1e-9
        for rows in (in_polars(problem.X), batches, dd.from_pandas(problem.X, npartitions=3)):
            found = fit.partition_posterior(rows, **options)
            labels, affinity = (
                own.compute() if hasattr(own, "compute") else own for own in (found.labels, found.affinity)
            )
            assert np.mean(labels == expected.labels) >= (0.95 if name == "mixed" else 1.0)
            np.testing.assert_allclose(affinity, expected.affinity, atol=error)
    beyond = fit.partition_posterior(problem.X, max_rows=60, **options)
    assert beyond.is_sample
    assert np.mean(beyond.labels == expected.labels) > 0.9


@pytest.mark.slow
def test_partitions_of_a_comparison_average_over_the_numbers(of_small):
    answer = of_small.partition_posterior(SMALL, random_state=0)
    numbers = answer.n_clusters_frequencies
    assert len(numbers) > 1
    occupied = {t + 1: share for t, share in enumerate(of_small.occupied)}
    for number, share in numbers.items():
        assert share == pytest.approx(occupied[number], abs=0.12)


# Which rows decide.


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mixed", "weights", "categories"])
def test_a_fit_without_the_rows_confirms_it(name):
    problem, fit = PROBLEMS[name], fitted(name)
    entry = fit.posterior(method="lrvb").summary("tables").index[0]
    value = fit.posterior(method="lrvb").summary("tables")["mean"].iloc[0]
    found = fit.deciding_rows(
        problem.X,
        conclusion=entry,
        threshold=value * 1.02,
        sample_weight=problem.sample_weight,
        max_share=0.4,
    )
    assert found.found
    weights = np.ones(len(problem.X)) if problem.sample_weight is None else problem.sample_weight.copy()
    weights[found.rows] = 0.0
    refit = refitted_with(fit, problem, weights)
    again = refit.posterior(method="lrvb").summary("tables")["mean"].iloc[0]
    assert again == pytest.approx(found.confirmed, rel=1e-5)
    assert (again > value * 1.02) and value < value * 1.02
    # The first-order prediction is the sum of the influence of the rows that go.
    moved = fit.influence(problem.X, target="tables")[:, 0, 0] * (
        1.0 if problem.sample_weight is None else problem.sample_weight
    )
    assert found.predicted == pytest.approx(value - moved[found.rows].sum(), rel=1e-6)


@pytest.mark.slow
def test_functions_intervals_groups_and_rivals():
    X = categories()
    fit = LRVBLatentClassMixture(n_components=2, random_state=0).fit(X)
    gap = float(fit.weights_[0] - fit.weights_[1])
    by_name = fit.deciding_rows(X, conclusion="weight[0] - weight[1]", threshold=gap - 0.05)
    by_function = fit.deciding_rows(
        X, conclusion=lambda mixture: mixture.weights_[0] - mixture.weights_[1], threshold=gap - 0.05
    )
    np.testing.assert_array_equal(by_name.rows, by_function.rows)
    of_table = fit.deciding_rows(
        X,
        conclusion=lambda mixture: mixture.tables_["smokes"].loc[0, "yes"],
        threshold=fit.tables_["smokes"].loc[0, "yes"] - 0.01,
    )
    assert of_table.found
    end = fit.deciding_rows(
        X, conclusion="weight[0]", threshold=fit.weights_[0] - 2.2 * fit.weights_std_[0], interval=0.95
    )
    assert "lower end of the 95 % interval" in end.conclusion
    pairs = np.repeat(np.arange(len(X) // 2), 2)
    by_pairs = fit.deciding_rows(X, conclusion="weight[0] - weight[1]", threshold=gap - 0.05, groups=pairs)
    assert len(by_pairs.rows) == 2 * len(by_pairs.groups)
    rival = LRVBLatentClassMixture(n_components=1, weight_concentration_prior=0.5).fit(X)
    ahead = fit.log_evidence_ - rival.log_evidence_
    against = (
        LRVBLatentClassMixture(n_components=2, weight_concentration_prior=0.5, random_state=0)
        .fit(X)
        .deciding_rows(X, rival=rival, threshold=ahead - 2.0)
    )
    assert against.found
    assert pickle.loads(pickle.dumps(against)).verdict == against.verdict


def test_rivals_that_do_not_compare_are_refused():
    X = categories()
    fit = LRVBLatentClassMixture(n_components=2, random_state=0).fit(X)
    other_columns = LRVBLatentClassMixture(n_components=1, columns={"town": "ignore"}).fit(X)
    with pytest.raises(ValueError, match="rival has columns="):
        fit.deciding_rows(X, rival=other_columns)
    given = LRVBLatentClassMixture(n_components=1, category_concentration_prior=2.0).fit(X)
    with pytest.raises(ValueError, match=r"rival has learned_prior=\(\), but the mixture"):
        fit.deciding_rows(X, rival=given)
    another = LRVBLatentClassMixture(n_components=2, category_concentration_prior=1.0, random_state=0).fit(X)
    with pytest.raises(ValueError, match="another category_concentration_prior_ than"):
        another.deciding_rows(X, rival=given)
    with pytest.raises(ValueError, match="must be a fitted LRVBLatentClassMixture"):
        fit.deciding_rows(X, rival=LRVBGaussianMixture().fit(np.zeros((3, 1)) + np.arange(3)[:, None]))
    with pytest.raises(ValueError, match=r"names no parameter. Did you mean probability\[0,smokes=no\]"):
        fit.deciding_rows(X, conclusion="probability[0,smokes=No]")


# Pictures.


@pytest.mark.slow
def test_the_displays_draw_latent_classes(of_small):
    fit = fitted("mixed")
    X = PROBLEMS["mixed"].X
    shown = ModelChoiceDisplay.from_result(of_small)
    assert len(shown.bars_) == 3
    partition = PartitionDisplay.from_estimator(fit, X, n_draws=20, method="lrvb", random_state=0)
    assert len(partition.rows_) == X.notna().any(axis=1).sum()
    deciding = DecidingRowsDisplay.from_estimator(fit, X, "weight[0]", threshold=fit.weights_[0] - 0.05)
    assert deciding.result.found
    posterior, target = fit.posterior(method="lrvb"), ["weights", "tables"]
    drawn = PosteriorStdDisplay.from_estimator(fit, posterior, target=target)
    np.testing.assert_allclose(drawn.std, posterior.summary(target)["sd"])


@pytest.mark.parametrize("display", [ComponentDisplay, InfluenceDisplay, PosteriorIntervalDisplay])
def test_displays_of_normal_components_refuse_classes(display):
    with pytest.raises(ValueError, match="draws LRVBGaussianMixture, got LRVBLatentClassMixture"):
        display.from_estimator(fitted("mixed"), PROBLEMS["mixed"].X)


def test_profiles_refuse_normal_components():
    fit = LRVBGaussianMixture().fit(np.arange(6.0)[:, None])
    with pytest.raises(ValueError, match="draws LRVBLatentClassMixture, got LRVBGaussianMixture"):
        ClassProfilesDisplay.from_estimator(fit)
