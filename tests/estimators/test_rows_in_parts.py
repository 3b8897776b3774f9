"""Rows in batches and on Dask give what one array gives, and nothing is done twice or early."""

import functools
import pickle
import warnings

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from catalogue import (
    COVARIANCE_TYPES,
    assert_same_left_out,
    mixture,
    overlapping,
    rows_of,
    set_sizes,
    three_blobs,
    uncertainty_of,
)
from covariance_types import TYPES
from dask.callbacks import Callback
from sklearn.base import clone
from sklearn.mixture import BayesianGaussianMixture

from sklearn_lrvb import LRVBGaussianMixture
from sklearn_lrvb.answers.leave_one_out import one_steps, scores_of_one_step
from sklearn_lrvb.rows import dask_rows, given_rows
from sklearn_lrvb.rows.parts import ChangedRowsError

# Passes of a source besides those of the steps: a look at the columns, the first pass, the default prior, the
# values that columns have, the rows for the start, two of the first M-step, its E-step, and at the end the
# sums by which the rows are known again, the information, and a sample that shows what the columns are.
PASSES_OF_SETUP = 11

# Uneven, empty and tiny chunks of 300 rows.
LENGTHS = (0, 101, 1, 0, 0, 2, 150, 46)


@pytest.fixture(autouse=True)
def _in_this_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture(autouse=True)
def _few_refits(monkeypatch):
    # as of very many rows, of which the 25 that move the fit the furthest are left out by a refit
    set_sizes(monkeypatch, rows_of_refits=0)


@pytest.fixture
def starts_from_samples(monkeypatch):
    """Have 300 rows count as very many."""
    set_sizes(monkeypatch, sample_rows=120)


def divided(rows, lengths=LENGTHS):
    """Consecutive parts of an array."""
    ends = np.cumsum(lengths)
    return [rows[end - length : end] for end, length in zip(ends, lengths, strict=True)]


def chunked(rows, lengths=LENGTHS):
    """An array with chunks of given lengths."""
    chunks = (tuple(lengths), *((n,) for n in rows.shape[1:]))
    return da.concatenate([da.from_array(part, chunks=-1) for part in divided(rows, lengths)]).rechunk(chunks)


def of_unknown_lengths(rows, lengths=LENGTHS):
    """The same array, of whose chunks Dask does not know how many rows they have."""
    array = chunked(rows, lengths).copy()
    array._chunks = ((np.nan,) * len(lengths), *array.chunks[1:])
    return array


def partitioned(rows, lengths=LENGTHS):
    """A data frame or series with partitions of given lengths."""
    names = list("abcdefg")[: rows.shape[-1]]
    own = pd.Series if rows.ndim == 1 else functools.partial(pd.DataFrame, columns=names)
    tables = [own(part) for part in divided(rows, lengths)]
    return dd.from_map(lambda number: tables[number], range(len(tables)), meta=tables[0])


class Source:
    """Batches that count how often they are gone through."""

    def __init__(self, X, weights=None, lengths=LENGTHS):
        self.parts = divided(X, lengths)
        if weights is not None:
            self.parts = list(zip(self.parts, divided(weights, lengths), strict=True))
        self.n_begun = 0

    def __iter__(self):
        self.n_begun += 1
        return iter(self.parts)


def rows_as(form, X, weights=None):
    """Rows and weights in some form: X, and keywords with the weights."""
    if form == "batches":
        return Source(X, weights), {}
    make = {"array": chunked, "frame": partitioned}[form]
    return make(X), {} if weights is None else {"sample_weight": make(weights)}


# Of a frame the lengths of the chunks are not known.
PRIORS = "learned", "flat"
FORMS = {"learned": ("array", "batches"), "flat": ("frame", "batches")}


# The same numbers.


def assert_same_fit(fit, reference, tolerance=1e-9):
    """Equal to a share of the posterior standard deviations."""
    difference = np.abs(fit.posterior_mean_ - reference.posterior_mean_)
    assert np.all(difference <= tolerance * reference.posterior_std_)
    for name in ("weights", "means", "covariances"):
        difference = np.abs(getattr(fit, f"{name}_") - getattr(reference, f"{name}_"))
        assert np.all(difference <= tolerance * getattr(reference, f"{name}_std_")), name
    np.testing.assert_allclose(fit.posterior_std_, reference.posterior_std_, rtol=100 * tolerance)
    assert fit.lower_bound_ == pytest.approx(reference.lower_bound_, rel=1e-12)
    assert (fit.converged_, fit.n_occupied_) == (reference.converged_, reference.n_occupied_)


ROW_WISE = {
    "predict": lambda fit, X: fit.predict(X),
    "predict_proba": lambda fit, X: fit.posterior(method="lrvb").predict_proba(X),
    "score_samples": lambda fit, X: fit.posterior(method="lrvb").score_samples(X),
    "influence of places": lambda fit, X: fit.influence(X, target="covariances"),
    "influence of weights": lambda fit, X: fit.influence(X, target="means", perturb="weight"),
    "leverage": lambda fit, X: fit.leverage(X),
}


def assert_same_answers(fit, reference, X, weights, given, given_weights):
    """All methods about rows, asked of one fit about rows in parts, and of the other about an array."""
    answers = {name: ask(fit, given) for name, ask in ROW_WISE.items()}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".* move the fit further than one step leads")
        answers["leave-one-out"] = fit.loo_score_samples(given, **given_weights)
    (computed,) = dask.compute(answers)
    for name, ask in ROW_WISE.items():
        assert_same_rows(computed[name], ask(reference, X), name)
    left_out = computed["leave-one-out"]
    if dask.is_dask_collection(given):  # There nothing is refitted.
        rows = rows_of(reference, X, weights)
        steps = uncertainty_of(reference).of_rows(rows, one_steps, (3,), by_kernels=False)
        without = scores_of_one_step(steps)
        assert_same_rows(left_out, without, "leave-one-out")
    else:
        assert_same_left_out(left_out, reference.loo_score_samples(X, sample_weight=weights))
    assert fit.score(given, **given_weights) == pytest.approx(
        reference.score(X, sample_weight=weights), rel=1e-11
    )
    one, other = (
        estimator.posterior(rows, method="sandwich", **keywords).covariance("means")
        for estimator, rows, keywords in (
            (fit, given, given_weights),
            (reference, X, {"sample_weight": weights}),
        )
    )
    scale = np.sqrt(np.diag(other))
    np.testing.assert_allclose(one / np.outer(scale, scale), other / np.outer(scale, scale), atol=1e-8)


def assert_same_rows(found, expected, name):
    if isinstance(expected, tuple):
        for one, other in zip(found, expected, strict=True):
            assert_same_rows(one, other, name)
        return
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype), name
    largest = np.nanmax(np.abs(expected))
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-8 * largest, err_msg=name)


WEIGHTS = np.random.default_rng(3).integers(0, 3, 300).astype(float)  # A third of them are zero.
RESPONSIBILITIES = np.random.default_rng(4).dirichlet(np.ones(3), 300)


def by_first_column(X, n_components, random_state):
    """Responsibilities by a user's function, which gets the rows in the form in which they were given."""
    if isinstance(X, Source):
        X = np.concatenate([part[0] if isinstance(part, tuple) else part for part in X.parts])
    if isinstance(X, np.ndarray):
        return np.eye(n_components)[(X[:, 0] > 0).astype(int) + (X[:, 1] > 0.8)]
    chunks = (X.chunks[0], (n_components,))
    return X.map_blocks(by_first_column, n_components, None, dtype=float, chunks=chunks)


# Every option is in some fit: model, whether rows are weighted, and whether starts are from samples.
SETTINGS = {
    ("full", "learned"): ({"moves": "auto"}, True, True),
    ("full", "flat"): ({"init_params": "k-means++", "reg_covar": 0.05, "n_components": 2}, False, True),
    ("tied", "learned"): (
        {
            "init_params": "random",
            "weight_concentration_prior_type": "dirichlet_distribution",
            "factorization": "independent",
            "n_init": 2,
        },
        True,
        True,
    ),
    ("tied", "flat"): ({"init_params": "random_from_data"}, False, True),
    ("diag", "learned"): ({"moves": "search", "n_components": 5}, True, True),
    ("diag", "flat"): ({"init_params": RESPONSIBILITIES, "factorization": "independent"}, True, False),
    ("spherical", "learned"): ({"init_params": by_first_column, "moves": "merge"}, False, False),
    ("spherical", "flat"): ({"solver": "coordinate_ascent", "max_iter": 60, "tol": 1e-3}, True, False),
}
SETTINGS |= {(kind, prior): SETTINGS["diag", prior] for kind in COVARIANCE_TYPES[4:] for prior in PRIORS}


@functools.cache
def reference_fit(covariance_type, prior, dtype):
    """The fit of a setting to an array."""
    _, is_weighted, _ = SETTINGS[covariance_type, prior]
    X = three_blobs().astype(dtype)
    fit = estimator_of(covariance_type, prior).fit(X, sample_weight=WEIGHTS if is_weighted else None)
    return X, fit


def estimator_of(covariance_type, prior):
    model = {"covariance_type": covariance_type, "prior": prior, "n_components": 3}
    return LRVBGaussianMixture(
        random_state=0, **{"tol": 1e-9, "max_iter": 500, **model, **SETTINGS[covariance_type, prior][0]}
    )


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.* move the fit further than one step")
@pytest.mark.parametrize(
    ("covariance_type", "prior", "form"),
    [(kind, prior, form) for kind in COVARIANCE_TYPES for prior in PRIORS for form in FORMS[prior]],
)
def test_parts_give_what_the_array_gives(covariance_type, prior, form, request):
    _, is_weighted, are_many = SETTINGS[covariance_type, prior]
    if are_many:
        request.getfixturevalue("starts_from_samples")
    dtype = np.float32 if TYPES[covariance_type].n_axes == 0 else np.float64
    X, reference = reference_fit(covariance_type, prior, dtype)
    weights = WEIGHTS if is_weighted else None
    given, keywords = rows_as(form, X, weights)
    fit = estimator_of(covariance_type, prior).fit(given, **keywords)
    assert_same_fit(fit, reference)
    # of each setting about rows of one form: answers do not depend on where a fit has started
    if form == FORMS[prior][covariance_type in ("tied", "diag")]:
        assert_same_answers(fit, reference, X, weights, given, keywords)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Best performing initialization did not converge")
@pytest.mark.parametrize("form", ["array", "batches"])
def test_random_starts_of_many_rows_with_missing_values(form, starts_from_samples):
    X = three_blobs()
    X[np.random.default_rng(5).random(X.shape) < 0.2] = np.nan
    start = mixture({"init_params": "random", "max_iter": 0}, 3)
    of_array, of_parts = (clone(start).fit(given).means_ for given in (X, rows_as(form, X)[0]))
    np.testing.assert_allclose(of_parts, of_array, rtol=1e-12, atol=1e-12)


# Rows without any value.

EMPTY = np.r_[0, 101, 102, 103, 104, 200]  # The first one, all of three short chunks, and one in a long one.


def with_empty_rows(share_missing=0.0):
    X = three_blobs()
    X[np.random.default_rng(5).random(X.shape) < share_missing] = np.nan
    X[EMPTY] = np.nan
    return X


@functools.cache
def fit_beside_empty_rows(covariance_type, prior, share_missing):
    """An array with rows without any value, and the fit to it."""
    model = {"covariance_type": covariance_type, "prior": prior, "reg_covar": 1e-4}
    X = with_empty_rows(share_missing)
    X.setflags(write=False)
    return X, mixture(model).fit(X)


@pytest.mark.parametrize("share_missing", [0.0, 0.1])
@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_rows_without_any_value_count_nothing_in_an_array(covariance_type, prior, share_missing):
    X, fit = fit_beside_empty_rows(covariance_type, prior, share_missing)
    others = np.delete(X, EMPTY, axis=0)
    assert_same_fit(fit, clone(fit).fit(others))
    assert fit.score(X) == pytest.approx(fit.score(others), rel=1e-12)
    assert np.isnan(fit.influence(X)[EMPTY]).all()


# Every form is there with two covariance types and both priors.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("covariance_type", "form", "prior"),
    [
        (covariance_type, form, PRIORS[(i + j) // 2 % 2])
        for i, covariance_type in enumerate(COVARIANCE_TYPES)
        for j, form in enumerate(("memory map", "batches", "array", "frame"))
        if i % 2 == j % 2
    ],
)
def test_rows_without_any_value_count_nothing_in_any_form(covariance_type, form, prior, tmp_path):
    X, reference = fit_beside_empty_rows(covariance_type, prior, 0.1 if form == "frame" else 0.0)
    if form == "memory map":
        np.save(tmp_path / "rows.npy", X)
        given = np.load(tmp_path / "rows.npy", mmap_mode="r")
    else:
        given = rows_as(form, X)[0]
    fit = clone(reference).fit(given)
    assert_same_fit(fit, reference)
    assert_same_answers(fit, reference, X, None, given, {})
    imputed, std = dask.compute(*fit.impute(given, return_std=True))
    for found, expected in zip((imputed, std), reference.impute(X, return_std=True), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-8)


# Chunks of all kinds.


@functools.cache
def array_fit():
    return mixture({}, 3).fit(three_blobs())


@pytest.mark.slow
@pytest.mark.parametrize(
    "lengths",
    [(300,), (1,) * 60 + (240,), (299, 0, 1), (0, 300), (0,) * 40 + (150, 150) + (0,) * 40],
    ids=["one", "many of one row", "a last row", "a first one without rows", "most without rows"],
)
def test_chunks_of_any_lengths(lengths):
    X = three_blobs()
    for given in (chunked(X, lengths), Source(X, lengths=lengths)):
        assert_same_fit(mixture({}, 3).fit(given), array_fit())
        labels = array_fit().predict(given)
        assert labels.dtype == np.intp
        np.testing.assert_array_equal(labels, array_fit().predict(X))


@pytest.mark.slow
def test_many_small_chunks_are_taken_together():
    X = chunked(three_blobs(), (1,) * 300)
    rows, counted = given_rows(mixture({}, 1), X.persist(), reset=True), Tasks()
    with counted:
        assert rows.n_samples == 300
    assert counted.of("_of_group") == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "dtype", [int, bool, np.float16, np.float32, object], ids=["int", "bool", "float16", "float32", "object"]
)
@pytest.mark.filterwarnings("ignore:Columns of X", "ignore:Components have shrunk")
def test_numbers_of_any_type(dtype):
    X = 3.0 * three_blobs()
    X = X > 1.0 if dtype is bool else X
    X = X.astype(dtype)
    reference = mixture({}, 2).fit(X)
    for given in (chunked(X), Source(X)):
        assert_same_fit(mixture({}, 2).fit(given), reference)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["Float64", "Float32", "Int64", "boolean"])
@pytest.mark.filterwarnings("ignore:Columns of X", "ignore:Components have shrunk")
def test_nullable_columns_of_a_frame(dtype):
    numbers = {"Int64": np.round(3.0 * three_blobs()), "boolean": three_blobs() > 0}
    frame = pd.DataFrame(numbers.get(dtype, three_blobs()), columns=list("abc")).astype(dtype)
    reference = mixture({}, 2).fit(frame)
    fit = mixture({}, 2).fit(dd.from_pandas(frame, npartitions=3))
    assert_same_fit(fit, reference)
    assert_same_fit(mixture({}, 2).fit([frame[:100], frame[100:]]), reference)
    assert list(fit.feature_names_in_) == list("abc")
    if dtype != "boolean":
        frame.iloc[250, 2] = pd.NA
        reference = mixture({}, 2).fit(frame)
        assert_same_fit(reference, mixture({}, 2).fit(frame.astype(float).to_numpy()))
        assert_same_fit(mixture({}, 2).fit(dd.from_pandas(frame, npartitions=3)), reference)
        assert_same_fit(mixture({}, 2).fit([frame[:100], frame[100:]]), reference)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["frame", "batches"])
def test_names_are_those_of_the_columns_and_other_names_are_refused(kind):
    frame = pd.DataFrame(three_blobs(), columns=list("abc"))

    def given(columns):
        table = frame.set_axis(list(columns), axis=1)
        return dd.from_pandas(table, npartitions=3) if kind == "frame" else [table[:100], table[100:]]

    fit = mixture({}, 3).fit(given("abc"))
    assert list(fit.feature_names_in_) == list("abc")
    assert fit.posterior_names_[3] == "mean[0,a]"
    for columns in ("abz", "bac"):
        with pytest.raises(ValueError, match="feature names"):
            fit.predict(given(columns))
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        fit.predict(chunked(three_blobs()) if kind == "frame" else [three_blobs()])


def test_words_among_the_columns_are_named():
    frame = pd.DataFrame(three_blobs(), columns=list("abc")).assign(kind="x", size="large")
    with pytest.raises(ValueError, match=r"Column\(s\) 3 \('kind'\), 4 \('size'\) of X are no numbers"):
        mixture({}, 2).fit(dd.from_pandas(frame, npartitions=2))


# What a fit starts from.


@pytest.mark.slow
@pytest.mark.parametrize("form", ["array", "frame", "batches"])
def test_a_warm_start_goes_on_from_the_last_fit(form):
    X = three_blobs()
    given, _ = rows_as(form, X)
    fits = [mixture({"warm_start": True, "max_iter": 2}, 3) for _ in range(2)]
    for fit, rows in zip(fits, (given, X), strict=True):
        with pytest.warns(UserWarning, match="did not converge"):
            fit.fit(rows)
        fit.set_params(max_iter=500).fit(rows)
    assert_same_fit(*fits)
    again = fits[0].lower_bound_
    fits[0].fit(given)
    assert (fits[0].lower_bound_, fits[0].n_iter_) == (pytest.approx(again, rel=1e-14), 1)


@pytest.mark.slow
def test_a_warm_start_from_arrays_that_were_set_by_hand():
    X = three_blobs()
    fits = [mixture({"warm_start": True}, 3).fit(X) for _ in range(2)]
    for fit, rows in zip(fits, (chunked(X), X), strict=True):
        fit.means_ = fit.means_ + 0.1
        fit.fit(rows)
    assert_same_fit(*fits)


@pytest.mark.slow
def test_a_fit_of_scikit_learn_is_continued():
    X = three_blobs()
    bgm = BayesianGaussianMixture(n_components=3, random_state=0, max_iter=300).fit(X)
    fits = []
    for form in ("array", "batches"):
        given, keywords = rows_as(form, X, WEIGHTS)
        with pytest.warns(UserWarning, match="X is not what bgm was fitted to"):
            fits.append(LRVBGaussianMixture.from_sklearn(bgm, given, **keywords))
    assert_same_fit(*fits, 1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("lengths", [LENGTHS, (150, 150)], ids=["chunks of X", "other chunks"])
def test_responsibilities_on_dask(lengths):
    X = three_blobs()
    reference = mixture({"init_params": RESPONSIBILITIES}, 3).fit(X, sample_weight=WEIGHTS)
    given = chunked(RESPONSIBILITIES, lengths)
    given = da.concatenate([given[:, :1], given[:, 1:]], axis=1)
    fit = mixture({"init_params": given}, 3).fit(chunked(X), sample_weight=chunked(WEIGHTS))
    assert_same_fit(fit, reference)
    if lengths is LENGTHS:
        fit = mixture({"init_params": of_unknown_lengths(RESPONSIBILITIES)}, 3)
        assert_same_fit(fit.fit(chunked(X), sample_weight=chunked(WEIGHTS)), reference)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("responsibilities", "message"),
    [
        (chunked(RESPONSIBILITIES[:, :2]), r"shape \(300, 3\), but has \(300, 2\)"),
        (chunked(2.0 * RESPONSIBILITIES), "300 rows do not"),
        (chunked(np.where(np.arange(300)[:, None] == 7, np.nan, RESPONSIBILITIES)), "1 rows do not"),
        (of_unknown_lengths(RESPONSIBILITIES, (0, 100, 1, 0, 0, 2, 150, 47)), "100, but|100: both must be"),
        (of_unknown_lengths(RESPONSIBILITIES, (150, 150)), r"\(2, 1\) chunks .* both must be"),
        (of_unknown_lengths(np.tile(RESPONSIBILITIES, (2, 1)), (*LENGTHS, 300)), "both must be partitioned"),
        (RESPONSIBILITIES[:-1], r"shape \(300, 3\), but has \(299, 3\)"),
    ],
    ids=[
        *("too few components", "too much", "NaN", "other chunks", "fewer chunks", "more chunks"),
        "too few rows",
    ],
)
@pytest.mark.parametrize("weighted", [False, True])
def test_responsibilities_that_do_not_go_with_the_rows(responsibilities, message, weighted):
    weights = chunked(WEIGHTS) if weighted else None
    with pytest.raises(ValueError, match=message if not weighted else message + r"|\d+ rows do not"):
        mixture({"init_params": responsibilities}, 3).fit(chunked(three_blobs()), sample_weight=weights)


@pytest.mark.filterwarnings("ignore:A covariance matrix of")
@pytest.mark.parametrize("form", ["array", "batches"])
def test_fewer_rows_than_features(form):
    X = np.random.default_rng(0).normal(size=(8, 20))
    weights = np.array([1.0, 2.0, 0.0, 1.0, 1.0, 3.0, 1.0, 0.0])
    responsibilities = np.eye(2)[np.arange(8) % 2]
    for init_params in ("kmeans", responsibilities):
        fits = [mixture({"init_params": init_params}, 2) for _ in range(2)]
        given, keywords = (
            (Source(X, weights, (3, 5)), {})
            if form == "batches"
            else (chunked(X, (3, 0, 5)), {"sample_weight": chunked(weights, (3, 0, 5))})
        )
        fits[0].fit(given, **keywords)
        fits[1].fit(X, sample_weight=weights)
        assert_same_fit(*fits, tolerance=1e-8)


# Weights.


@pytest.mark.slow
@pytest.mark.parametrize(
    "weights",
    [WEIGHTS, list(WEIGHTS), pd.Series(WEIGHTS), chunked(WEIGHTS), chunked(WEIGHTS.astype(int), (150, 150))],
    ids=["array", "list", "series", "chunks of X", "other chunks"],
)
def test_weights_in_any_form(weights):
    X = three_blobs()
    reference = mixture({}, 2).fit(X, sample_weight=WEIGHTS)
    assert_same_fit(mixture({}, 2).fit(chunked(X), sample_weight=weights), reference)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.ones(299), r"shape \(299,\), but X has 300 rows"),
        (chunked(WEIGHTS)[:-1], "299 rows, but X has 300"),
        (da.ones((300, 1)), "1 dimension, but has 2"),
        (of_unknown_lengths(WEIGHTS, (150, 150)), "2 chunks of unknown length, but X has 8"),
    ],
    ids=["array", "Dask array", "two dimensions", "partitions"],
)
def test_weights_that_do_not_go_with_the_rows(weights, message):
    with pytest.raises(ValueError, match=message):
        mixture({}, 2).fit(chunked(three_blobs()), sample_weight=weights)


def test_weights_of_a_frame_must_be_partitioned_as_it_is():
    with pytest.raises(ValueError, match="lengths of the chunks of X are not known"):
        mixture({}, 2).fit(partitioned(three_blobs()), sample_weight=WEIGHTS)


def test_weights_of_batches_go_with_them():
    with pytest.raises(ValueError, match="pairs"):
        mixture({}, 2).fit(Source(three_blobs()), sample_weight=WEIGHTS)
    X = three_blobs()
    with pytest.raises(ValueError, match=r"Batch 1 of X: its weights have shape \(3,\), but it has 200 rows"):
        mixture({}, 2).fit([(X[:100], np.ones(100)), (X[100:], np.ones(3))])


# The first pass.


@pytest.mark.slow
@pytest.mark.parametrize("form", ["array", "frame", "batches"])
@pytest.mark.parametrize(("value", "what"), [(np.inf, "infinity"), (-np.inf, "infinity")])
def test_a_value_that_is_no_number_is_named_with_its_place(form, value, what):
    X = three_blobs()
    X[260, 1] = value
    given, _ = rows_as(form, X)
    estimator, fit = mixture({}, 3), mixture({}, 3).fit(rows_as(form, three_blobs())[0])
    part = "batch" if form == "batches" else "chunk"
    with pytest.raises(ValueError, match=f"{what} in column 1 at row 6 of {part} 7, which is row 260 of X"):
        estimator.fit(given)
    assert not hasattr(estimator, "n_features_in_")
    with pytest.raises(ValueError, match=f"{what} in column 1 at row 6 of"):
        np.asarray(fit.score_samples(given))


@pytest.mark.parametrize("form", ["array", "batches"])
def test_a_row_too_far_for_influence_is_named_with_its_place(form):
    X = three_blobs()
    X[260] = 1e75
    with pytest.raises(ValueError, match=r"Row 260 of X is 1\.0e\+75 away"):
        np.asarray(array_fit().influence(rows_as(form, X)[0]))


@pytest.mark.parametrize("value", [-1.0, np.nan, np.inf])
@pytest.mark.parametrize("form", ["array", "batches"])
def test_a_weight_that_is_no_number_of_rows(value, form):
    weights = np.where(np.arange(300) == 260, value, 1.0)
    given, keywords = rows_as(form, three_blobs(), weights)
    with pytest.raises(ValueError, match=f"sample_weight is {value:g}, .* at row 6 of .* row 260 of X"):
        mixture({}, 3).fit(given, **keywords)


@pytest.mark.parametrize("form", ["array", "batches"])
@pytest.mark.parametrize(
    ("change", "parameters", "message"),
    [
        (lambda X: np.where(np.arange(300)[:, None] == 299, 1e200, X), {}, r"up to 1e\+200 .* beyond 1e\+70"),
        (lambda X: X * np.where(np.arange(300)[:, None] % 2, -1e305, 1e305), {}, "beyond 1e"),
        (lambda X: np.column_stack([X, np.ones(300)]), {"reg_covar": 0.0}, "column 3 constant"),
        (lambda X: X * [1.0, 1e-80, 1.0], {}, "Column 1 of X varies by"),
    ],
    ids=["too large", "all too large", "constant", "too small"],
)
def test_values_out_of_range(form, change, parameters, message):
    X = change(three_blobs())
    for given in (rows_as(form, X)[0], X):
        with pytest.raises(ValueError, match=message):
            mixture(parameters, 2).fit(given)


@pytest.mark.parametrize("form", ["array", "batches"])
def test_too_few_rows(form):
    X = three_blobs()

    def given(n, weights=None):
        return (
            rows_as(form, X[:n], weights)
            if n == 300
            else ((Source(X[:n], weights, (n,)), {}) if form == "batches" else (chunked(X[:n], (n,)), {}))
        )

    fit = array_fit()
    for n, message in ((0, r"Found array with 0 sample\(s\)"), (1, "minimum of 2"), (2, "n_components = 3")):
        with pytest.raises(ValueError, match=message):
            mixture({}, 3).fit(given(n)[0])
    with pytest.raises(ValueError, match=r"Found array with 0 sample\(s\)"):
        fit.score(given(0)[0])
    rows, keywords = given(300, np.zeros(300))
    for question in (mixture({}, 3).fit, fit.score):
        with pytest.raises(ValueError, match="at least one non-zero number"):
            question(rows, **keywords)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda X: da.from_array(X, chunks=(100, 1)), "columns of X are in 3 chunks"),
        (lambda X: chunked(X)[:, 0], "2 dimensions"),
        (lambda X: chunked(X)[:, :0], r"0 feature\(s\)"),
        (lambda X: partitioned(X)[[]], r"0 feature\(s\)"),
        (lambda X: partitioned(X)["a"], "Dask Series"),
        (lambda X: chunked(X) + 1j, "Complex"),
        (lambda X: chunked(X)[:, :2], "X has 2 features, but LRVBGaussianMixture is expecting 3"),
    ],
)
def test_collections_that_are_no_table_of_numbers(make, message):
    given = make(three_blobs())
    with pytest.raises(ValueError, match=message):
        array_fit().predict(given)


# Lazy results.


class Tasks(Callback):
    """Counts the tasks that schedulers in this process run, by the function that they call."""

    def __init__(self):
        self._names = []
        super().__init__(pretask=self._note)

    def _note(self, key, dsk, state):
        self._names.append(str(dsk[key]))

    def of(self, name):
        return sum(name in task for task in self._names)

    @property
    def n_tasks(self):
        return len(self._names)


def test_results_with_a_row_for_each_row_are_lazy():
    X = three_blobs()
    counted, fit = Tasks(), array_fit()
    with counted:
        given = of_unknown_lengths(X).map_blocks(np.copy, dtype=X.dtype)
        answers = [ask(fit, given) for ask in ROW_WISE.values()]
        known = [ask(fit, chunked(X)) for ask in ROW_WISE.values()]
        assert counted.n_tasks == 0
    for ask, answer, of_known in zip(ROW_WISE.values(), answers, known, strict=True):
        expected = ask(fit, X)
        for one, two, numbers in zip(*map(as_tuple, (answer, of_known, expected)), strict=True):
            assert isinstance(one, da.Array)
            assert one.dtype == two.dtype == numbers.dtype
            assert two.chunks == (LENGTHS, *((n,) for n in numbers.shape[1:]))
            assert one.numblocks == two.numblocks
            assert np.isnan(one.chunks[0]).all()
            assert one[:, None].ndim == numbers.ndim + 1


def as_tuple(answer):
    return answer if isinstance(answer, tuple) else (answer,)


@pytest.mark.slow
def test_labels_of_the_training_rows_are_lazy():
    X = three_blobs()
    labels = mixture({}, 3).fit_predict(chunked(X), sample_weight=chunked(WEIGHTS))
    assert isinstance(labels, da.Array)
    expected = mixture({}, 3).fit_predict(X, sample_weight=WEIGHTS)
    np.testing.assert_array_equal(labels, expected)


def test_results_of_two_fits_are_not_mixed_up():
    """Dask takes tasks of the same name for the same."""
    X = three_blobs()
    fits = [mixture({}, k).fit(X) for k in (2, 3)]
    answers = dask.compute([fit.score_samples(chunked(X)) for fit in fits])[0]
    for fit, scores in zip(fits, answers, strict=True):
        np.testing.assert_allclose(scores, fit.score_samples(X), rtol=1e-12)


def test_the_influence_on_dask_is_not_written_to_an_array():
    with pytest.raises(ValueError, match="result is lazy"):
        array_fit().influence(chunked(three_blobs()), out=np.empty((300, 3, 3, 3)))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_influence_of_batches_is_written_to_a_file(dtype, tmp_path):
    X = three_blobs()
    out = np.memmap(tmp_path / "out", dtype, "w+", shape=(300, 3, 3, 3))
    assert array_fit().influence(Source(X), out=out) is out
    rtol = 1e-5 if dtype == np.float32 else 1e-10
    np.testing.assert_allclose(out, array_fit().influence(X), rtol=rtol, atol=1e-9)
    with pytest.raises(ValueError, match=r"out must have shape \(300, 3, 3, 3\)"):
        array_fit().influence(Source(X), out=out[1:])


# The same every time.


@pytest.mark.slow
def test_a_fit_is_the_same_bit_by_bit_whatever_the_scheduler():
    X = chunked(three_blobs())
    fits = []
    for settings in ({"scheduler": "synchronous"}, {"scheduler": "threads", "num_workers": 3}):
        for _ in range(2):
            with dask.config.set(settings):
                fits.append(mixture({}, 3).fit(X))
    for fit in fits[1:]:
        assert fit.lower_bounds_ == fits[0].lower_bounds_
        assert fit.posterior_std_.tobytes() == fits[0].posterior_std_.tobytes()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("init_params", "moves"),
    [
        ("kmeans", "search"),
        ("k-means++", "merge"),
        ("random", "auto"),
        ("random_from_data", None),
    ],
)
def test_nothing_that_travels_is_of_the_size_of_the_rows(
    init_params, moves, starts_from_samples, monkeypatch
):
    sizes, delayed = [], dask_rows.Delayed

    def measured(key, tasks):
        sizes.extend(
            len(pickle.dumps(task)) for name, task in tasks.items() if name[0].startswith("lrvb-pass")
        )
        return delayed(key, tasks)

    monkeypatch.setattr(dask_rows, "Delayed", measured)
    X = np.concatenate(40 * [three_blobs()])
    X = da.from_array(X + 0.01 * np.random.default_rng(0).normal(size=X.shape), chunks=(1000, -1))
    mixture({"init_params": init_params, "moves": moves}, 3).fit(X)
    assert 100 < max(sizes) < X.nbytes / 10


@pytest.mark.slow
def test_a_fit_keeps_no_rows():
    """Neither a file that may be closed, nor chunks that take memory on workers."""
    for given in (chunked(three_blobs()), Source(three_blobs())):
        fit = mixture({}, 3).fit(given)
        assert fit._last_uncertainty.source._rows is None


def test_rows_given_again_are_compared_and_no_more():
    source = Source(three_blobs())
    fit = mixture({}, 3).fit(source)
    begun = source.n_begun
    np.testing.assert_allclose(fit.predict(source), fit.predict(three_blobs()))
    of_question = source.n_begun - begun
    fit.posterior(source, method="lrvb").covariance("means")
    # Rows of positive weight are surveyed first, then compared with those of the fit.
    assert source.n_begun - begun - of_question == of_question + 1


# Rows that change.


class Changing(Source):
    """A source that is another one from some pass on."""

    def __init__(self, X, change, first):
        super().__init__(X)
        self._change, self._first = change, first

    def __iter__(self):
        parts = list(super().__iter__())
        return iter(self._change(parts) if self.n_begun >= self._first else parts)


def changed_last(parts, change):
    return [*parts[:-1], change(parts[-1])]


CHANGES = {
    "one number": lambda part: part + np.where(np.arange(part.size).reshape(part.shape) == 7, 1e-9, 0.0),
    "signs": lambda part: part * [1.0, -1.0, 1.0],
    "units": lambda part: 2.0 * part,
    "one row less": lambda part: part[:-1],
    "one row of zeros more": lambda part: np.vstack([part, np.zeros(3)]),
}


@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("first", [3, 9])
def test_rows_that_change_are_noticed(change, first):
    X = three_blobs()
    estimator = mixture({}, 2).fit(X)
    before = dict(vars(estimator))
    source = Changing(X, functools.partial(changed_last, change=change), first)
    with pytest.raises(ChangedRowsError, match="changed between two passes over it, first in batch 7"):
        estimator.fit(source)
    assert source.n_begun == first
    assert vars(estimator).keys() == before.keys()
    assert all(vars(estimator)[name] is before[name] for name in before)
    assert estimator.posterior_std_.shape == (20,)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda parts: parts[:-1], "only 7 of the 8 batches"),
        (lambda parts: parts * 2, "more than the 8 batches"),
    ],
    ids=["fewer", "more"],
)
def test_a_number_of_batches_that_changes_is_noticed(change, message):
    with pytest.raises(ChangedRowsError, match=message):
        mixture({}, 2).fit(Changing(three_blobs(), change, 4))


def test_a_dask_array_that_changes_is_noticed():
    n_made = []

    def made(block, block_info=None):
        if block_info[0]["chunk-location"][0] == 6:
            n_made.append(None)
            return block + 1e-9 * (len(n_made) > 4)
        return block

    X = chunked(three_blobs()).map_blocks(made, dtype=float)
    estimator = mixture({}, 3)
    with pytest.raises(ChangedRowsError, match="first in chunk 6"):
        estimator.fit(X)
    assert len(n_made) == 5
    assert not hasattr(estimator, "means_")


# Batches.


def test_one_pass_over_the_batches_an_iteration():
    X = three_blobs()
    source = Source(X)
    fit = mixture({"moves": None, "solver": "coordinate_ascent", "tol": 1e-3}, 3).fit(source)
    assert source.n_begun == fit.n_iter_ + PASSES_OF_SETUP
    for question in (fit.predict, fit.score_samples, fit.influence, fit.leverage):
        before = source.n_begun
        question(source)
        assert source.n_begun == before + 2


@pytest.mark.slow
@pytest.mark.parametrize(
    "source",
    [
        lambda X: lambda: (part for part in divided(X)),
        lambda X: divided(X),
        lambda X: tuple(divided(X)),
        lambda X: Source(X),
        lambda X: [pd.DataFrame(part) for part in divided(X)],
        lambda X: lambda: iter([part.tolist() for part in divided(X) if len(part)]),
    ],
    ids=["function", "list", "tuple", "object", "frames", "lists of numbers"],
)
def test_sources_of_batches(source):
    X = three_blobs()
    given = source(X)
    assert_same_fit(mixture({}, 3).fit(given), array_fit())
    np.testing.assert_array_equal(array_fit().predict(given), array_fit().predict(X))


def test_batches_in_files(tmp_path):
    X = three_blobs().astype(np.float32)
    files = []
    for number, part in enumerate(divided(X, (100, 120, 80))):
        np.save(tmp_path / f"{number}.npy", part)
        files.append(np.load(tmp_path / f"{number}.npy", mmap_mode="r"))
    assert_same_fit(mixture({}, 3).fit(files), mixture({}, 3).fit(X))


@pytest.mark.parametrize(
    "table", [list, tuple, lambda rows: [tuple(row) for row in rows]], ids=["lists", "tuple", "tuples"]
)
def test_lists_of_rows_are_tables(table):
    X = overlapping(60)
    np.testing.assert_array_equal(
        mixture({}, 2).fit_predict(table(X.tolist())), mixture({}, 2).fit_predict(X)
    )
    with pytest.raises(ValueError, match="Expected 2D array, got 1D array"):
        mixture({}, 2).fit(list(X[:, 0]))


@pytest.mark.parametrize(
    "once", [lambda X: (part for part in [X]), lambda X: iter([X])], ids=["generator", "iterator"]
)
def test_what_can_be_gone_through_once_is_refused_with_advice(once):
    for question in (mixture({}, 2).fit, array_fit().predict):
        with pytest.raises(ValueError, match=r"once only.*\(a\) Pass a function that starts it anew"):
            question(once(three_blobs()))


@pytest.mark.parametrize(
    ("later", "message"),
    [
        (
            lambda frame: frame[["b", "a", "c"]],
            "Batch 1 of X has the columns b, a, c, but batch 0 has a, b, c",
        ),
        (lambda frame: frame[["a", "b"]].to_numpy(), "Batch 1 of X has 2 columns, but batch 0 has 3"),
        (lambda frame: frame["a"].to_numpy(), "Batch 1 of X: Expected 2D array, got 1D array"),
        (lambda frame: frame.assign(a="x"), "Batch 1 of X: could not convert string"),
    ],
    ids=["order", "number", "dimensions", "words"],
)
def test_batches_that_do_not_go_together(later, message):
    frame = pd.DataFrame(three_blobs(), columns=list("abc"))
    for question in (mixture({}, 2).fit, mixture({}, 2).fit(frame).predict):
        with pytest.raises(ValueError, match=message):
            question([frame, later(frame)])


def test_a_source_without_batches():
    with pytest.raises(ValueError, match="yields no batch"):
        mixture({}, 2).fit(lambda: iter([]))


def test_passes_are_told(capsys):
    source = Source(three_blobs())
    mixture({"verbose": 2, "moves": None}, 2).fit(source)
    printed = capsys.readouterr().out
    # The first batch is looked at before, for the columns.
    assert printed.count("over X\t time lapse") == source.n_begun - 1
    assert f"Pass {source.n_begun - 1} over X" in printed


@pytest.mark.slow
@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_leave_one_out_scores_of_few_rows_with_missing_values_on_dask(covariance_type):
    # So few rows that solving for each takes less than an inverse.
    X = three_blobs(60)
    X[::7, 1] = np.nan
    estimator = mixture({"covariance_type": covariance_type}, n_components=1).fit(X)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".* move the fit further than one step leads")
        scores = np.asarray(estimator.loo_score_samples(da.from_array(X, chunks=(25, 3))))
    np.testing.assert_allclose(scores, estimator.loo_score_samples(X), atol=0.05)
