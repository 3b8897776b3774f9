"""The fit of latent classes: what it must be equal to, whatever the way to it."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from catalogue import set_sizes
from latent_class import catalogue, mean_field_twin
from latent_class.catalogue import (
    PROBLEMS,
    RATES,
    SEVERAL,
    assert_same_fit,
    assert_same_scores,
    codes_of,
    fitted,
    kinds_of,
    mixture,
    refitted,
    tables_of,
    weights_of,
)
from scipy import stats
from scipy.special import digamma, gammaln, logsumexp, softmax

from sklearn_lrvb.mean_field.exponential_families import check_family

MIXED = ["mixed", "weights", "surplus"]
ROWS = np.random.default_rng(0).permutation(100)


def started(problem, start, **parameters):
    """The fit of a problem from given probabilities of the classes."""
    return refitted(problem, init_params=start, **parameters)


def every(problem):
    return np.arange(len(problem.X))


# Rows.


@pytest.mark.parametrize("name", PROBLEMS)
def test_whole_weights_are_copies(name):
    problem = replace(PROBLEMS[name], sample_weight=None)
    weights = np.random.default_rng(1).integers(0, 4, len(problem.X)).astype(float)
    copies, start = problem.take(np.repeat(every(problem), weights.astype(int)))
    weighted, copied = refitted(replace(problem, sample_weight=weights)), started(copies, start)
    assert_same_fit(weighted, copied)
    assert_same_scores(weighted, copied, problem.X)
    np.testing.assert_allclose(
        weighted.score(problem.X, sample_weight=weights), copied.score(copies.X), rtol=1e-8
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", PROBLEMS)
def test_rows_of_weight_zero_are_no_rows(name):
    problem = PROBLEMS[name]
    weights = np.ones(len(problem.X)) if problem.sample_weight is None else problem.sample_weight
    weights = np.where(ROWS[: len(weights)] % 4 == 0, 0.0, weights)
    problem = replace(problem, sample_weight=weights)
    left, start = problem.take(np.flatnonzero(weights))
    assert_same_fit(refitted(problem), started(left, start))


def test_categories_of_rows_of_weight_zero_are_unknown():
    problem = PROBLEMS["categories"]
    kept = problem.X["town"] != "d"
    left, start = problem.take(np.flatnonzero(kept))
    problem = replace(problem, sample_weight=kept.to_numpy(float))
    message = f"'d' of column 'town' in {np.count_nonzero(~kept)} row"
    fit = refitted(problem, unknown="error")  # Rows that are not there have no unknown categories.
    assert_same_fit(fit, started(left, start))
    with pytest.raises(ValueError, match=message):
        fit.predict(problem.X)
    with pytest.warns(UserWarning, match=message):
        labels = fit.set_params(unknown="missing").predict(problem.X)
    np.testing.assert_array_equal(fit.labels_, labels)
    score = fit.score(problem.X, sample_weight=problem.sample_weight)
    np.testing.assert_allclose(score, fit.score(left.X), rtol=1e-12)


@pytest.mark.slow
def test_categories_of_rows_of_weight_zero_are_unknown_in_batches():
    problem = PROBLEMS["categories"]
    kept = (problem.X["town"] != "d").to_numpy()
    problem, alike = replace(problem, sample_weight=1.0 * kept), {"init_params": "kmeans", "n_init": 1}
    fit = mixture(problem, unknown="error", **alike).fit(list(parts_of(problem, True)))
    assert_same_fit(fit, mixture(problem, **alike).fit(problem.X[kept]))


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_order_of_rows_does_not_matter(name):
    problem = PROBLEMS[name]
    order = np.argsort(ROWS[: len(problem.X)])
    shuffled, start = problem.take(order)
    fit = started(shuffled, start)
    assert_same_fit(fit, fitted(name))
    np.testing.assert_array_equal(fit.labels_, fitted(name).labels_[order])


def test_equal_rows_may_be_joined(monkeypatch):
    incomplete = PROBLEMS["mixed"]
    for problem in (
        PROBLEMS["categories"],
        replace(incomplete, X=incomplete.X[["sport", "smokes", "visits"]]),
    ):
        fits = []
        for share in (0.0, 1.0):
            monkeypatch.setattr("sklearn_lrvb.estimators.latent_class_rows._WORTH_JOINING", share)
            fits.append(refitted(problem))
        assert_same_fit(*fits)
        np.testing.assert_array_equal(fits[0].labels_, fits[1].labels_)
        assert len(fits[0].labels_) == len(problem.X)


KEPT_BYTES = "sklearn_lrvb.family_mixture.coordinates._KEPT_BYTES"


@pytest.mark.parametrize("name", ["categories", "weights"])
def test_features_that_are_kept_are_those_of_every_pass(name, monkeypatch):
    set_sizes(monkeypatch, most_rows=16, least_rows=8)
    kept = refitted(PROBLEMS[name])
    monkeypatch.setattr(KEPT_BYTES, 0)
    assert_same_fit(kept, refitted(PROBLEMS[name]), 1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("name", PROBLEMS)
def test_blocks_and_threads_do_not_matter(name, n_jobs, monkeypatch):
    set_sizes(monkeypatch, most_rows=16, least_rows=8)
    monkeypatch.setattr(KEPT_BYTES, 0)  # There are no threads where blocks are kept.
    fit, problem = refitted(PROBLEMS[name], n_jobs=n_jobs), PROBLEMS[name]
    assert_same_fit(fit, fitted(name), 1e-10)
    assert_same_scores(fit, fitted(name), problem.X, tolerance=1e-9)


@pytest.mark.slow
def test_random_starts_are_those_of_the_seed():
    for name in ("categories", "mixed"):
        problem = PROBLEMS[name]
        fits = [refitted(problem, init_params="kmeans", n_init=4, random_state=seed) for seed in (7, 7)]
        assert fits[0].lower_bounds_ == fits[1].lower_bounds_
        np.testing.assert_array_equal(*(fit.predict_proba(problem.X) for fit in fits))


@pytest.mark.slow
@pytest.mark.parametrize("name", SEVERAL)
def test_starts_of_many_rows_are_compared_on_a_sample(name, monkeypatch):
    for module in ("estimators.latent_class_mixture", "family_mixture.starts"):
        monkeypatch.setattr(f"sklearn_lrvb.{module}.SAMPLE_ROWS", 40)
    problem = PROBLEMS[name]
    given = {"init_params": "kmeans", "n_init": 3}
    assert_same_fit(refitted(problem, **given), fitted(name))
    batches = list(parts_of(problem, problem.sample_weight is not None))
    assert_same_fit(mixture(problem, **given).fit(batches), fitted(name))


# Columns.


@pytest.mark.slow
@pytest.mark.parametrize("name", PROBLEMS)
def test_the_order_of_columns_does_not_matter(name):
    problem = PROBLEMS[name]
    X = problem.X[problem.X.columns[::-1]]
    fit = refitted(replace(problem, X=X))
    assert_same_fit(fit, fitted(name))
    assert_same_scores(fit, fitted(name), X, problem.X)


@pytest.mark.parametrize("name", ["numbers", *MIXED])
def test_units_of_numbers_change_scores_by_a_constant_alone(name):
    problem, scale = PROBLEMS[name], {"height": -1e-5, "load": 1e6}
    X = problem.X.assign(height=scale["height"] * problem.X["height"] + 3.0)
    X["load"] = scale["load"] * problem.X["load"] - 5e6
    fit, before = refitted(replace(problem, X=X)), fitted(name)
    change = sum(np.log(np.abs(factor)) * X[key].notna() for key, factor in scale.items())
    np.testing.assert_allclose(fit.predict_proba(X), before.predict_proba(problem.X), atol=1e-8)
    np.testing.assert_allclose(
        fit.score_samples(X), before.score_samples(problem.X) - change, rtol=1e-8, atol=1e-8
    )
    # A row without values does not count, and has no unit.
    weights = 1.0 if problem.sample_weight is None else problem.sample_weight
    np.testing.assert_allclose(fit.lower_bound_, before.lower_bound_ - np.sum(weights * change), rtol=1e-8)
    (mean, sd), (mean_before, sd_before) = (tables_of(f)["height"].T for f in (fit, before))
    np.testing.assert_allclose(mean, scale["height"] * mean_before + 3.0, rtol=1e-8)
    np.testing.assert_allclose(sd, np.abs(scale["height"]) * sd_before, rtol=1e-8)


# The bound, and the optimum.


@pytest.mark.slow
@pytest.mark.parametrize("solver", ["newton", "coordinate_ascent"])
@pytest.mark.parametrize("name", PROBLEMS)
def test_the_bound_never_falls(name, solver):
    problem = PROBLEMS[name]
    given = {"solver": solver, "tol": 1e-9}
    for fit in (refitted(problem, **given), refitted(problem, init_params="kmeans", n_init=3, **given)):
        bounds = np.array(fit.lower_bounds_)
        assert fit.converged_ and len(bounds) == fit.n_iter_ and bounds[-1] == fit.lower_bound_
        assert (np.diff(bounds) > -1e-12 * np.abs(bounds[1:])).all()


@pytest.mark.parametrize("name", PROBLEMS)
def test_iterations_alone_end_at_the_same_optimum(name):
    iterations = refitted(PROBLEMS[name], solver="coordinate_ascent", tol=1e-12, max_iter=5000)
    assert_same_fit(iterations, fitted(name), 1e-5, bound=False)
    np.testing.assert_allclose(iterations.lower_bound_, fitted(name).lower_bound_, rtol=1e-11)


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_optimum_is_a_fixed_point_of_the_m_step(name):
    fit, problem = fitted(name), PROBLEMS[name]
    assert_same_fit(started(problem, fit.predict_proba(problem.X), max_iter=0), fit)


def test_the_normal_gamma_family_of_these_tests_is_one():
    for parameters in [(0.3, 1.2, 2.0, 0.7), (20.0, -3.0, 40.0, 11.0)]:
        check_family(
            mean_field_twin.NormalGamma(), mean_field_twin.NormalGamma.natural_parameters(*parameters)
        )


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_fit_is_that_of_the_model_by_its_densities(name):
    problem, fit = PROBLEMS[name], fitted(name)
    kinds, twin = kinds_of(problem.X), mean_field_twin.twin_of(name)
    # Logarithms of learned numbers have the log densities log u - u.
    log_density = np.sum(np.log(fit.learned_prior_["value"]) - fit.learned_prior_["value"])
    np.testing.assert_allclose(fit.lower_bound_, twin.lower_bound + log_density, rtol=1e-10)
    np.testing.assert_allclose(fit.weights_, twin.mean("pi.probability"), atol=1e-8)
    for column, table in tables_of(fit).items():
        if kinds[column] == "numeric":
            precision = twin.mean(f"{column}.precision")
            mean = twin.mean(f"{column}.product") / precision
            seen = problem.X[column].notna().to_numpy(float) * weights_of(problem)
            shape = 1.0 + 0.5 * seen @ fit.predict_proba(problem.X)
            of_sd = np.exp(gammaln(shape - 0.5) - gammaln(shape)) * np.sqrt(shape / precision)
            expected = np.stack([mean, of_sd], axis=1)
        elif kinds[column] in RATES:
            expected = twin.mean(f"{column}.value")[:, None]
        else:
            expected = twin.mean(f"{column}.probability")
        np.testing.assert_allclose(table, expected, rtol=1e-7, err_msg=column)


# Closed forms.


@pytest.mark.parametrize("name", MIXED)
def test_a_row_without_values_has_the_probabilities_of_the_weights(name):
    problem, fit = PROBLEMS[name], fitted(name)
    weights = np.ones(100) if problem.sample_weight is None else problem.sample_weight
    total = weights[problem.X.notna().any(axis=1)].sum() + 1.0  # The concentrations of the prior sum to one.
    log_weights = digamma(total * fit.weights_) - digamma(total)
    empty = problem.X.iloc[[5]]
    assert empty.isna().all(axis=None)
    np.testing.assert_allclose(fit.predict_proba(empty)[0], softmax(log_weights), atol=1e-12)
    np.testing.assert_allclose(fit.score_samples(empty), logsumexp(log_weights), rtol=1e-12)


def test_the_bound_of_one_class_is_the_exact_evidence():
    # By the densities of the values one after the other, each given those before it.
    X, log_evidence = catalogue.mixed(), 0.0
    for column, dtype in X.dtypes.items():
        y = X[column].dropna().to_numpy()
        if dtype.kind != "f":
            kinds, codes = np.unique(y, return_inverse=True)
            before = [np.count_nonzero(codes[:n] == codes[n]) for n in range(len(y))]
            log_evidence += np.log((1.0 + np.array(before)) / (len(kinds) + np.arange(len(y)))).sum()
            continue
        past = np.concatenate([[0.0], np.cumsum(y)[:-1]])
        n = np.arange(len(y))
        if column == "visits":
            shape, rate = 1.0 + past, 1.0 / y.mean() + n
            log_evidence += stats.nbinom.logpmf(y, shape, rate / (1.0 + rate)).sum()
            continue
        kappa = 0.1 + n
        mean = (0.1 * y.mean() + past) / kappa
        # Every value adds its squared distance from the mean before it.
        rises = np.concatenate([[0.0], (0.5 * kappa / (kappa + 1.0) * (y - mean) ** 2)[:-1]])
        shape, rate = 1.0 + 0.5 * n, 0.5 * y.var() + np.cumsum(rises)
        scale = np.sqrt(rate * (kappa + 1.0) / (shape * kappa))
        log_evidence += stats.t.logpdf(y, 2.0 * shape, mean, scale).sum()
    np.testing.assert_allclose(fitted("one class").lower_bound_, log_evidence, rtol=1e-11)


def test_one_class_is_the_closed_form():
    fit, X = fitted("one class"), catalogue.mixed()
    tables, scores = tables_of(fit), np.zeros(len(X))
    for column in ("sport", "smokes"):
        number = 1.0 + X[column].value_counts().sort_index()
        np.testing.assert_allclose(tables[column][0], number / number.sum(), rtol=1e-12)
        scores += X[column].map(digamma(number) - digamma(number.sum())).fillna(0.0).to_numpy()
    y = X["visits"].to_numpy()
    shape, rate = 1.0 + np.nansum(y), 1.0 / np.nanmean(y) + np.count_nonzero(~np.isnan(y))
    np.testing.assert_allclose(tables["visits"], [[shape / rate]], rtol=1e-12)
    scores += np.nan_to_num(y * (digamma(shape) - np.log(rate)) - shape / rate - gammaln(y + 1.0))
    for column in ("height", "load"):
        y, n = X[column].to_numpy(), X[column].count()
        mean, rate, shape = np.nanmean(y), 0.5 * (1 + n) * np.nanvar(y), 1.0 + 0.5 * n
        sd = np.sqrt(rate) * np.exp(gammaln(shape - 0.5) - gammaln(shape))  # E tau^-1/2
        np.testing.assert_allclose(tables[column], [[mean, sd]], rtol=1e-12)
        log_density = digamma(shape) - np.log(rate) - np.log(2 * np.pi) - 1 / (0.1 + n)
        scores += np.nan_to_num(0.5 * (log_density - shape / rate * (y - mean) ** 2))
    np.testing.assert_allclose(fit.score_samples(X), scores, rtol=1e-11, atol=1e-11)
    np.testing.assert_array_equal(fit.predict_proba(X), np.ones((100, 1)))
    assert fit.weights_ == 1.0 and fit.n_occupied_ == 1


# Kinds of tables.


FORMS = {
    "pandas": lambda X: X,
    "pandas' own dtypes": lambda X: X.astype({"sport": "string", "smokes": "category", "height": "Float64"}),
    "polars": catalogue.in_polars,
    "objects": lambda X: X.to_numpy(object),
    "lists": lambda X: X.to_numpy(object).tolist(),
    "codes": codes_of,
}


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_all_forms_of_a_table_give_the_same_fit(form):
    problem = PROBLEMS["weights"]
    X = FORMS[form](problem.X)
    names = list(problem.X)
    by_place = {names.index("visits"): "count"}
    if form == "codes":
        by_place[(names.index("sport"), names.index("smokes"))] = "categorical"
    fit = mixture(problem, columns=by_place).fit(X, sample_weight=problem.sample_weight)
    expected = fitted("weights")
    np.testing.assert_allclose(fit.lower_bound_, expected.lower_bound_, rtol=1e-12)
    np.testing.assert_allclose(fit.weights_, expected.weights_, rtol=1e-12)
    np.testing.assert_array_equal(fit.labels_, expected.labels_)
    assert_same_scores(fit, expected, X, problem.X, 1e-10)
    for found, table in zip(tables_of(fit).values(), tables_of(expected).values(), strict=True):
        np.testing.assert_allclose(found, table, rtol=1e-10)
    assert fit.n_features_in_ == 5
    assert hasattr(fit, "feature_names_in_") == (form not in ("objects", "lists", "codes"))


def parts_of(problem, weighted):
    """Batches of a problem of different lengths, one of them empty, as pairs with weights or alone."""
    places = np.split(every(problem), [30, 30, 31, 70])
    for rows in places:
        batch = problem.X.iloc[rows]
        yield (batch, problem.sample_weight[rows]) if weighted else batch


SOURCES = {"list": list, "callable": lambda batches: lambda kept=list(batches): iter(kept)}


@pytest.mark.slow
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("name", SEVERAL)
def test_batches_are_the_table(name, source):
    problem = PROBLEMS[name]
    started_alike = {"init_params": "kmeans", "n_init": 1}
    whole = refitted(problem, **started_alike)
    batches = SOURCES[source](parts_of(problem, problem.sample_weight is not None))
    fit = mixture(problem, **started_alike).fit(batches)
    assert_same_fit(fit, whole)
    assert not hasattr(fit, "labels_")
    plain = SOURCES[source](parts_of(problem, False))
    assert_same_scores(fit, whole, plain, problem.X)
    np.testing.assert_array_equal(fit.predict(plain), whole.predict(problem.X))
    np.testing.assert_allclose(
        fit.score(batches), whole.score(problem.X, sample_weight=problem.sample_weight), rtol=1e-8
    )


@pytest.mark.slow
def test_batches_may_lack_values_and_weight():
    problem = PROBLEMS["mixed"]
    weights = np.where(every(problem) < 20, 0.0, 1.0)
    X = problem.X.assign(sport=problem.X["sport"].mask(every(problem) >= 80))
    lacking = X[80:].astype({"sport": float})  # As files are read whose column is empty.
    alike = {"init_params": "kmeans", "n_init": 1}
    fit = mixture(problem, **alike).fit([(X[:20], weights[:20]), (X[20:80], weights[20:80]), lacking])
    assert_same_fit(fit, mixture(problem, **alike).fit(X, sample_weight=weights))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["numbers", "counts", "durations", "mixed"])
@pytest.mark.parametrize("of_second", [2.0, 0.5])
def test_batches_of_weight_one_come_before_others(name, of_second):
    problem = PROBLEMS[name]
    weights = np.where(every(problem) < 30, 1.0, of_second)
    alike = {"init_params": "kmeans", "n_init": 1}
    fit = mixture(problem, **alike).fit(list(parts_of(replace(problem, sample_weight=weights), True)))
    assert_same_fit(fit, mixture(problem, **alike).fit(problem.X, sample_weight=weights))


@pytest.mark.slow
@pytest.mark.parametrize("form", ["frame", "array"])
@pytest.mark.parametrize("name", ["mixed", "weights"])
def test_dask_collections_are_the_table(name, form):
    dask = pytest.importorskip("dask")
    frames, arrays = pytest.importorskip("dask.dataframe"), pytest.importorskip("dask.array")
    problem = PROBLEMS[name]
    columns, X = problem.columns, problem.X
    if form == "array":
        columns, X = {3: "count", (0, 2): "categorical"}, codes_of(X)
    weights = problem.sample_weight
    is_frame = form == "frame"
    of_dask = frames.from_pandas(X, npartitions=3) if is_frame else arrays.from_array(X, chunks=(40, 5))
    if weights is not None:
        weights = arrays.from_array(
            weights, chunks=(tuple(map(len, of_dask.partitions)),) if is_frame else 40
        )
    alike = {"columns": columns, "init_params": "kmeans", "n_init": 1}
    whole = mixture(problem, **alike).fit(X, sample_weight=problem.sample_weight)
    with dask.config.set(scheduler="synchronous"):
        fit = mixture(problem, **alike).fit(of_dask, sample_weight=weights)
        assert_same_fit(fit, whole)
        for method in ("predict_proba", "score_samples"):
            found, expected = getattr(fit, method)(of_dask), getattr(whole, method)(X)
            np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-8, atol=1e-8)


@pytest.mark.slow
def test_chunks_may_be_empty_or_have_some_of_the_columns_or_no_weight():
    dask = pytest.importorskip("dask")
    frames, arrays = pytest.importorskip("dask.dataframe"), pytest.importorskip("dask.array")
    problem = PROBLEMS["mixed"]
    alike = {"init_params": "kmeans", "n_init": 1}
    with dask.config.set(scheduler="synchronous"):
        collection = frames.from_pandas(problem.X, npartitions=4)
        second = collection.divisions[1]
        emptied = collection.map_partitions(lambda part: part[: 0 if part.index[0] == second else None])
        left = problem.X.drop(index=range(second, collection.divisions[2]))
        fit = mixture(problem, **alike).fit(emptied)
        assert_same_fit(fit, mixture(problem, **alike).fit(left))
        # Of the array no row of one category has a weight.
        X = codes_of(problem.X)
        weights = np.where(X[:, 0] == 0, 0.0, 1.0)
        alike["columns"] = {3: "count", (0, 2): "categorical"}
        in_chunks, their_weights = (arrays.from_array(rows, chunks=30) for rows in (X, weights))
        in_chunks = in_chunks.rechunk((30, 2))
        fit = mixture(problem, unknown="error", **alike).fit(in_chunks, sample_weight=their_weights)
        assert_same_fit(fit, mixture(problem, **alike).fit(X[weights > 0]))


# The estimator as an object.


@pytest.mark.parametrize("name", ["categories", "weights", "learned"])
def test_a_pickle_predicts_the_same(name):
    problem, fit = PROBLEMS[name], fitted(name)
    copy = pickle.loads(pickle.dumps(fit))
    assert_same_fit(copy, fit, 0.0)
    for method in ("predict", "predict_proba", "score_samples", "score"):
        np.testing.assert_array_equal(getattr(copy, method)(problem.X), getattr(fit, method)(problem.X))


class Interrupted:
    """Batches of which a pass is interrupted."""

    def __init__(self, batches, number):
        self.batches, self.left = list(batches), number

    def __call__(self):
        for batch in self.batches:
            self.left -= 1
            if not self.left:
                raise KeyboardInterrupt
            yield batch


@pytest.mark.slow
@pytest.mark.parametrize("number", [1, 2, 5, 9, 13, 30])
def test_an_interrupted_fit_leaves_the_estimator_as_it_was(number):
    problem = PROBLEMS["mixed"]
    fit, new = refitted(PROBLEMS["numbers"], init_params="kmeans"), mixture(problem, init_params="kmeans")
    for estimator in (fit.set_params(columns=problem.columns), new):
        before = dict(vars(estimator))
        with pytest.raises(KeyboardInterrupt):
            estimator.fit(Interrupted(parts_of(problem, False), number))
        assert vars(estimator).keys() == before.keys()
        assert all(vars(estimator)[key] is value for key, value in before.items())


@pytest.mark.slow
def test_a_new_fit_forgets_the_last_one():
    estimator = mixture(PROBLEMS["mixed"], init_params="kmeans", n_init=2)
    estimator.fit(PROBLEMS["mixed"].X)
    estimator.fit(list(parts_of(PROBLEMS["mixed"], False)))
    assert not hasattr(estimator, "labels_")
    estimator.set_params(columns="auto").fit(PROBLEMS["numbers"].X.to_numpy())
    assert estimator.n_features_in_ == 2 and not hasattr(estimator, "feature_names_in_")
    assert tables_of(estimator).keys() == {"x0", "x1"}
