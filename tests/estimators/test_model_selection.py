"""Inside scikit-learn's machinery: pipelines, searches, workers, files, frames and all kinds of arrays."""

import copy
import functools
import pickle
from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import pytest
from catalogue import COVARIANCE_TYPES, assert_equal_to_rounding, three_blobs
from joblib import Parallel, delayed, parallel_config
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.mixture import BayesianGaussianMixture
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    cross_val_predict,
    cross_val_score,
    cross_validate,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils import estimator_html_repr

from sklearn_lrvb import LRVBGaussianMixture

every_type = pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)

X = load_iris().data[50:]  # the two species that overlap
FOLDS = list(KFold(3, shuffle=True, random_state=0).split(X))


def mixture(covariance_type="full", n_components=2, **parameters):
    return LRVBGaussianMixture(
        n_components=n_components, covariance_type=covariance_type, random_state=0, max_iter=500, **parameters
    )


@functools.cache
def fitted(covariance_type="full", solver="newton"):
    """Fitted to X; shared between tests, so not to be changed."""
    return mixture(covariance_type, solver=solver, tol=1e-6).fit(X)


def assert_same(one, other, rows=X):
    """Equal to rounding, the uncertainty included."""
    for call in ("predict", "predict_proba", "score_samples", "influence"):
        assert_equal_to_rounding(getattr(one, call)(rows), getattr(other, call)(rows))
    for name in ("lower_bound_", "means_", "covariances_", "posterior_mean_", "posterior_covariance_"):
        assert_equal_to_rounding(getattr(one, name), getattr(other, name), err_msg=name)
    np.testing.assert_array_equal(one.posterior_names_, other.posterior_names_)


# Pipelines.


@every_type
def test_a_pipeline_is_its_steps_one_after_the_other(covariance_type):
    pipeline = make_pipeline(StandardScaler(), PCA(2), mixture(covariance_type)).fit(X)
    Z = make_pipeline(StandardScaler(), PCA(2)).fit_transform(X)
    direct = mixture(covariance_type).fit(Z)
    assert_same(pipeline[-1], direct, Z)
    for call in ("predict", "predict_proba", "score_samples"):
        np.testing.assert_array_equal(getattr(pipeline, call)(X), getattr(direct, call)(Z))
    assert pipeline.score(X) == direct.score(Z)
    labels = make_pipeline(StandardScaler(), PCA(2), mixture(covariance_type)).fit_predict(X)
    np.testing.assert_array_equal(labels, direct.predict(Z))
    assert pipeline[:1].fit_transform(X).shape == X.shape


@pytest.mark.filterwarnings("ignore:Columns of X with two values", "ignore:Components have shrunk")
def test_a_column_transformer_feeds_a_mixture():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["a", "b", "c", "d"])
    frame["kind"] = np.where(X[:, 3] > 1.7, "wide", "narrow")
    frame["ignored"] = "x"
    columns = ColumnTransformer(
        [
            ("scaled", StandardScaler(), ["d", "a"]),
            ("kind", OneHotEncoder(drop="first", sparse_output=False), ["kind"]),
        ]
    )
    pipeline = make_pipeline(columns, mixture(reg_covar=1e-2)).fit(frame)
    Z = clone(columns).fit_transform(frame)
    assert_same(pipeline[-1], mixture(reg_covar=1e-2).fit(Z), Z)
    np.testing.assert_array_equal(pipeline.predict(frame[frame.columns[::-1]]), pipeline.predict(frame))
    named = make_pipeline(clone(columns), mixture(reg_covar=1e-2)).set_output(transform="pandas").fit(frame)
    assert named[-1].posterior_names_[2] == "mean[0,scaled__d]"
    np.testing.assert_array_equal(named.predict(frame), pipeline.predict(frame))


@pytest.mark.parametrize("container", ["pandas", "polars"])
def test_set_output_names_the_parameters_and_changes_nothing_else(container):
    pytest.importorskip(container)
    plain = make_pipeline(PCA(2), mixture()).fit(X)
    named = make_pipeline(PCA(2), mixture()).set_output(transform=container).fit(X)
    assert list(named[-1].feature_names_in_) == ["pca0", "pca1"]
    assert named[-1].posterior_names_[2] == "mean[0,pca0]"
    assert plain[-1].posterior_names_[2] == "mean[0,x0]"
    for call in ("predict", "predict_proba", "score_samples"):
        np.testing.assert_allclose(getattr(named, call)(X), getattr(plain, call)(X), rtol=1e-10)
    np.testing.assert_allclose(named[-1].posterior_std_, plain[-1].posterior_std_, rtol=1e-8)


# Searches and cross-validation.


@pytest.mark.slow
@every_type
def test_cross_validation_is_a_loop(covariance_type):
    estimator, expected, labels = mixture(covariance_type), [], np.empty(len(X), dtype=int)
    for train, test in FOLDS:
        fold = clone(estimator).fit(X[train])
        expected.append(fold.score_samples(X[test]).mean())
        labels[test] = fold.predict(X[test])
    scores = cross_val_score(estimator, X, cv=FOLDS)
    np.testing.assert_allclose(scores, expected, rtol=1e-12)
    assert len(set(scores)) == 3
    np.testing.assert_array_equal(cross_val_predict(estimator, X, cv=FOLDS), labels)
    assert set(vars(estimator)) == set(estimator.get_params())


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_estimators_come_back_from_workers_whole(backend):
    with parallel_config(backend=backend, n_jobs=2):
        found = cross_validate(mixture(n_jobs=2), X, cv=FOLDS, return_estimator=True)
    for (train, test), estimator, score in zip(FOLDS, found["estimator"], found["test_score"], strict=True):
        expected = mixture(n_jobs=2).fit(X[train])
        np.testing.assert_allclose(estimator.posterior_mean_, expected.posterior_mean_, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(estimator.posterior_std_, expected.posterior_std_, rtol=1e-9)
        np.testing.assert_allclose(estimator.influence(X), expected.influence(X), rtol=1e-6, atol=1e-9)
        assert score == pytest.approx(expected.score(X[test]), rel=1e-10)


GRID = {"n_components": [1, 3], "covariance_type": list(COVARIANCE_TYPES)}


@functools.cache
def searched(backend):
    """A search whose mixtures ask for two threads each."""
    with parallel_config(backend=backend, n_jobs=1 if backend == "sequential" else 2):
        return GridSearchCV(mixture(n_jobs=2), GRID, cv=FOLDS, error_score="raise").fit(X)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_a_search_in_parallel_is_the_serial_one(backend):
    serial, parallel = searched("sequential"), searched(backend)
    for name in ("mean_test_score", "std_test_score"):
        np.testing.assert_allclose(parallel.cv_results_[name], serial.cv_results_[name], rtol=1e-8)
    assert parallel.best_params_ == serial.best_params_
    np.testing.assert_array_equal(parallel.predict(X), serial.predict(X))


@pytest.mark.slow
def test_a_search_scores_by_score_and_refits_the_best():
    search = searched("sequential")
    results = search.cv_results_
    assert len(results["params"]) == 2 * len(COVARIANCE_TYPES)
    for params, score in zip(results["params"], results["mean_test_score"], strict=True):
        expected = cross_val_score(mixture(n_jobs=2).set_params(**params), X, cv=FOLDS)
        assert score == pytest.approx(expected.mean(), rel=1e-12)
    assert search.best_params_ == results["params"][np.argmax(results["mean_test_score"])]
    best = mixture(n_jobs=2).set_params(**search.best_params_).fit(X)
    assert_same(search.best_estimator_, best)
    assert search.score(X) == best.score(X)


@pytest.mark.slow
def test_a_search_over_a_pipeline_reaches_every_parameter():
    pipeline = make_pipeline(PCA(2), mixture(n_components=2))
    grid = {
        "pca__n_components": [1, 2],
        "lrvbgaussianmixture__weight_concentration_prior": [0.1, 10.0],
        "lrvbgaussianmixture__factorization": ["joint", "independent"],
    }
    search = GridSearchCV(pipeline, grid, cv=FOLDS, error_score="raise").fit(X)
    assert len(np.unique(search.cv_results_["mean_test_score"])) == 8
    expected = clone(pipeline).set_params(**search.best_params_).fit(X)
    np.testing.assert_array_equal(search.predict(X), expected.predict(X))


def _twin(estimator):
    fit = clone(estimator).fit(X)
    return fit, fit.posterior_covariance_, fit.influence(X)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_workers_fit_clones_at_the_same_time(backend):
    estimators = [mixture(covariance_type, n_jobs=2) for covariance_type in COVARIANCE_TYPES]
    with parallel_config(backend=backend, n_jobs=2):
        found = Parallel()(delayed(_twin)(estimator) for estimator in estimators)
    for estimator, (fit, covariance, influence) in zip(estimators, found, strict=True):
        expected = clone(estimator).fit(X)
        np.testing.assert_allclose(fit.means_, expected.means_, rtol=1e-9)
        sd = expected.posterior_std_
        np.testing.assert_allclose(
            covariance / np.outer(sd, sd), expected.posterior_covariance_ / np.outer(sd, sd), atol=1e-8
        )
        np.testing.assert_allclose(influence, expected.influence(X), rtol=1e-6, atol=1e-9)
        np.testing.assert_array_equal(fit.predict(X), expected.predict(X))


def test_one_estimator_serves_several_threads():
    estimator, expected = (
        mixture(solver="coordinate_ascent", tol=1e-6).fit(X),
        fitted(solver="coordinate_ascent"),
    )
    asked = ["posterior_covariance_", "means_std_", "weights_std_", "posterior_std_"] * 2
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda name: getattr(estimator, name), asked))
        shares = list(pool.map(estimator.predict_proba, [X] * 8))
    for name, value in zip(asked, found, strict=True):
        np.testing.assert_allclose(value, getattr(expected, name), rtol=1e-9, atol=1e-12)
    for share in shares:
        np.testing.assert_array_equal(share, expected.predict_proba(X))


# Parameters.


def by_petals(rows, n_components, random_state):
    scores = np.exp(-0.5 * (rows[:, 2:3] - np.linspace(4.3, 5.5, n_components)) ** 2)
    return scores / scores.sum(axis=1, keepdims=True)


STARTS = {"array": by_petals(X, 2, None), "callable": by_petals}


@pytest.mark.slow
@pytest.mark.parametrize("start", STARTS)
def test_parameters_go_round(start):
    given = STARTS[start]
    estimator = mixture(init_params=given, mean_prior=X.mean(axis=0), covariance_prior=np.cov(X.T))
    assert estimator.get_params()["init_params"] is given
    twin = clone(estimator)
    assert set(vars(twin)) == set(estimator.get_params())
    for name, value in estimator.get_params().items():
        if isinstance(value, np.ndarray):
            np.testing.assert_array_equal(getattr(twin, name), value)
            assert getattr(twin, name) is not value
        else:
            assert getattr(twin, name) == value
    assert_same(twin.fit(X), clone(estimator).fit(X))
    assert estimator.set_params(init_params="random", prior="flat") is estimator
    assert (estimator.init_params, estimator.prior) == ("random", "flat")
    rebuilt = LRVBGaussianMixture(**twin.get_params())
    assert_same(rebuilt.fit(X), twin)


def test_fit_changes_no_parameter():
    estimator = mixture(init_params=STARTS["array"].copy(), mean_prior=[6.3, 2.9, 4.9, 1.7])
    before = copy.deepcopy(estimator.get_params())
    estimator.fit(X)
    after = estimator.get_params()
    assert after.keys() == before.keys()
    assert all(np.array_equal(after[name], before[name]) for name in before)


@pytest.mark.slow
def test_starts_in_cross_validation():
    # a callable makes a start for every fold, an array is one for given rows, which no moves leave
    shared = {"moves": None}
    model = mixture(init_params=by_petals, **shared)
    scores = cross_val_score(model, X, cv=FOLDS, error_score="raise", n_jobs=2)
    expected = [
        mixture(init_params=by_petals(X[train], 2, None), **shared).fit(X[train]).score(X[test])
        for train, test in FOLDS
    ]
    np.testing.assert_allclose(scores, expected, rtol=1e-9)
    with pytest.raises(ValueError, match=r"\(100, 2\)"):
        cross_val_score(mixture(init_params=STARTS["array"]), X, cv=FOLDS, error_score="raise")


BAD_STARTS = {
    "too few rows": (STARTS["array"][:-1], r"\(100, 2\)"),
    "too many components": (np.full((100, 3), 1 / 3), r"\(100, 2\)"),
    "1-D": (np.ones(100), r"\(100, 2\)"),
    "NaN": (np.where(X[:, :1] > 7, np.nan, STARTS["array"]), r"NaN"),
    "infinite": (np.where(X[:, :1] > 7, np.inf, STARTS["array"]), r"infinity"),
    "negative": (STARTS["array"] + [[0.5, -0.5]], r"negative"),
    "sums to two": (2 * STARTS["array"], r"sum to one"),
}


class Returning:
    def __init__(self, responsibilities):
        self.responsibilities = responsibilities

    def __call__(self, rows, n_components, random_state):
        return self.responsibilities


@pytest.mark.slow
@pytest.mark.parametrize(("responsibilities", "message"), BAD_STARTS.values(), ids=BAD_STARTS)
@pytest.mark.parametrize("make", [np.asarray, Returning], ids=["array", "callable"])
def test_bad_starts_are_refused_and_change_nothing(responsibilities, message, make):
    estimator = mixture().fit(X).set_params(init_params=make(responsibilities))
    before = dict(vars(estimator))
    with pytest.raises(ValueError, match=message):
        estimator.fit(X[:, :3])
    assert vars(estimator).keys() == before.keys()
    assert all(vars(estimator)[name] is value for name, value in before.items())


def test_a_callable_is_called_for_every_start():
    calls = []

    def noted(rows, n_components, random_state):
        calls.append((rows, n_components, random_state.uniform()))
        return by_petals(rows, n_components, random_state)

    mixture(init_params=noted, n_init=3).fit(X)
    assert [n_components for _, n_components, _ in calls] == [2, 2, 2]
    np.testing.assert_array_equal([draw for *_, draw in calls], np.random.RandomState(0).uniform(size=3))
    np.testing.assert_array_equal(calls[0][0], X)
    assert_same(mixture(init_params=by_petals).fit(X), mixture(init_params=STARTS["array"]).fit(X))


@pytest.mark.slow
def test_unfitted_and_fitted_are_shown():
    estimator = mixture("tied", n_components=2, prior="flat")
    expected = (
        "LRVBGaussianMixture(covariance_type='tied', max_iter=500, n_components=2,\n"
        "                    prior='flat', random_state=0)"
    )
    assert repr(estimator) == str(estimator) == expected
    assert repr(LRVBGaussianMixture()) == "LRVBGaussianMixture()"
    assert "init_params=array([[" in repr(mixture(init_params=STARTS["array"]))
    for make in (lambda e: e, lambda e: make_pipeline(PCA(2), e)):
        shown = make(estimator)
        assert "LRVBGaussianMixture" in estimator_html_repr(shown)
        assert "<span>Not fitted</span>" in estimator_html_repr(shown)
        shown.fit(X)
        for html in (estimator_html_repr(shown), shown._repr_html_()):
            assert "<span>Fitted</span>" in html
        estimator = clone(estimator)
    assert repr(fitted("tied")) == repr(clone(fitted("tied")))


# Files.


def mapped(estimator, path):
    joblib.dump(estimator, path / "mixture.joblib")
    return joblib.load(path / "mixture.joblib", mmap_mode="r")


def out_of_band(estimator, path):
    buffers = []
    stored = pickle.dumps(estimator, protocol=5, buffer_callback=buffers.append)
    return pickle.loads(stored, buffers=[buffer.raw().tobytes() for buffer in buffers])


def compressed(estimator, path):
    joblib.dump(estimator, path / "mixture.gz", compress=3)
    return joblib.load(path / "mixture.gz")


WAYS = {
    "pickle": lambda estimator, path: pickle.loads(pickle.dumps(estimator)),
    "oldest pickle": lambda estimator, path: pickle.loads(pickle.dumps(estimator, protocol=2)),
    "out of band": out_of_band,
    "copy": lambda estimator, path: copy.copy(estimator),
    "deepcopy": lambda estimator, path: copy.deepcopy(estimator),
    "joblib": compressed,
    "memory-mapped": mapped,
}


@pytest.mark.parametrize(
    ("covariance_type", "solver"), [*((s, "newton") for s in COVARIANCE_TYPES), ("full", "coordinate_ascent")]
)
@pytest.mark.parametrize("way", WAYS)
def test_a_stored_mixture_is_the_same(covariance_type, solver, way, tmp_path):
    # not the shared one: it is stored before anything was asked of it
    estimator = mixture(covariance_type, solver=solver, tol=1e-6).fit(X)
    twin = WAYS[way](estimator, tmp_path)
    assert_same(twin, estimator)
    for target in ("weights", "means", "precisions", "covariances"):
        assert_equal_to_rounding(getattr(twin, f"{target}_std_"), getattr(estimator, f"{target}_std_"))
    np.testing.assert_array_equal(twin.sample(5)[0], estimator.sample(5)[0])
    assert clone(twin).get_params() == estimator.get_params()


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_a_stored_mixture_may_be_fitted_again(way, tmp_path):
    estimator = mixture(warm_start=True, tol=1e-9).fit(X)
    covariance = estimator.posterior_covariance_.copy()
    twin = WAYS[way](estimator, tmp_path).fit(X)
    assert twin.n_iter_ <= 3
    np.testing.assert_allclose(twin.means_, estimator.means_, rtol=1e-8)
    np.testing.assert_array_equal(estimator.posterior_covariance_, covariance)
    twin.set_params(warm_start=False).fit(X[:, :2])
    assert twin.means_.shape == (2, 2)
    assert estimator.predict(X).shape == (100,)


# Whitened coordinates.


def frame_of(container, names, rows):
    module = pytest.importorskip(container)
    if container == "pandas":
        return module.DataFrame(rows, columns=names)
    return module.DataFrame({name: rows[:, p] for p, name in enumerate(names)})


NAMES = ["sepal length", "sepal width", "petal length", "petal width"]


@pytest.mark.parametrize("container", ["pandas", "polars"])
def test_names_are_kept_and_checked(container):
    frame = frame_of(container, NAMES, X)
    estimator = mixture().fit(frame)
    np.testing.assert_array_equal(estimator.feature_names_in_, NAMES)
    assert estimator.posterior_names_[2] == "mean[0,sepal length]"
    np.testing.assert_array_equal(estimator.predict(frame), fitted().predict(X))
    turned = frame_of(container, NAMES[::-1], X[:, ::-1])
    renamed = frame_of(container, [*NAMES[:3], "petal depth"], X)
    methods = ("predict", "predict_proba", "score_samples", "score", "influence")
    for call in methods:
        with pytest.raises(ValueError, match="Feature names must be in the same order"):
            getattr(estimator, call)(turned)
        with pytest.raises(ValueError, match=r"(?s)unseen at fit time:\n- petal depth"):
            getattr(estimator, call)(renamed)
        with pytest.warns(UserWarning, match="X does not have valid feature names"):
            getattr(estimator, call)(X)
    with pytest.warns(UserWarning, match="X has feature names, but"):
        fitted().predict(frame)
    assert not hasattr(estimator.fit(X), "feature_names_in_")
    assert estimator.posterior_names_[2] == "mean[0,x0]"


@pytest.mark.slow
@pytest.mark.parametrize("container", ["pandas", "polars"])
def test_frames_are_arrays_with_names(container):
    frame = frame_of(container, NAMES, X)
    estimator = mixture().fit(frame)
    expected = mixture().fit(X)
    np.testing.assert_allclose(estimator.posterior_std_, expected.posterior_std_, rtol=1e-9)
    np.testing.assert_allclose(estimator.influence(frame), expected.influence(X), rtol=1e-6, atol=1e-9)
    assert estimator.score(frame) == pytest.approx(expected.score(X), rel=1e-12)
    scores = cross_val_score(mixture(), frame, cv=FOLDS)
    np.testing.assert_allclose(scores, cross_val_score(mixture(), X, cv=FOLDS), rtol=1e-9)


# Arrays.

WHOLE = np.round(8 * three_blobs(150, n_features=2)).astype(np.int64)  # of few digits: exact in every type


def read_only(rows, path):
    rows = rows.astype(np.float64)
    rows.setflags(write=False)
    return rows


def memory_mapped(rows, path):
    np.save(path / "rows.npy", rows.astype(np.float64))
    return np.load(path / "rows.npy", mmap_mode="r")


def strided(rows, path):
    wide = np.full((2 * len(rows), 3 * rows.shape[1]), np.nan)
    wide[::2, ::3] = rows
    return wide[::2, ::3]


KINDS = {
    "read-only": read_only,
    "memory-mapped": memory_mapped,
    "strided": strided,
    "Fortran order": lambda rows, path: np.asfortranarray(rows.astype(np.float64)),
    "backwards": lambda rows, path: rows[::-1].astype(np.float64)[::-1],
    "float32": lambda rows, path: rows.astype(np.float32),
    "float16": lambda rows, path: rows.astype(np.float16),
    "big-endian": lambda rows, path: rows.astype(">f8"),
    "int64": lambda rows, path: rows,
    "int8": lambda rows, path: rows.astype(np.int8),
    "object": lambda rows, path: rows.astype(object),
    "lists": lambda rows, path: rows.tolist(),
    "tuples": lambda rows, path: tuple(map(tuple, rows.tolist())),
}


@functools.cache
def whole(covariance_type):
    return mixture(covariance_type, 2).fit(WHOLE.astype(np.float64))


@pytest.mark.parametrize("covariance_type", ["full", "spherical"])
@pytest.mark.parametrize("kind", KINDS)
def test_kinds_of_rows(covariance_type, kind, tmp_path):
    rows, expected, plain = KINDS[kind](WHOLE, tmp_path), whole(covariance_type), WHOLE.astype(np.float64)
    estimator = mixture(covariance_type, 2).fit(rows)
    assert all(getattr(estimator, name).dtype == np.float64 for name in ("means_", "posterior_std_"))
    np.testing.assert_allclose(estimator.posterior_mean_, expected.posterior_mean_, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(estimator.posterior_std_, expected.posterior_std_, rtol=1e-8)
    for call in ("predict", "predict_proba", "score_samples", "influence"):
        np.testing.assert_allclose(
            getattr(expected, call)(rows), getattr(expected, call)(plain), rtol=1e-10, atol=1e-14
        )
    assert expected.score(rows) == pytest.approx(expected.score(plain), rel=1e-12)
    np.testing.assert_array_equal(mixture(covariance_type, 2).fit_predict(rows), expected.predict(plain))


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csr_matrix, sparse.coo_array, sparse.csc_array])
def test_sparse_rows_are_refused_as_by_scikit_learn(kind):
    messages = []
    for estimator in (BayesianGaussianMixture(), LRVBGaussianMixture()):
        estimator.fit(X)
        for call in (estimator.fit, estimator.fit_predict, estimator.predict, estimator.score):
            with pytest.raises(TypeError) as caught:
                call(kind(X))
            messages.append(str(caught.value))
    assert messages[:4] == messages[4:]
    assert "Sparse data was passed" in messages[0]
    assert fitted().__sklearn_tags__().input_tags.sparse is False
