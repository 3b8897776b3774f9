"""scikit-learn's contract, and BayesianGaussianMixture reproduced."""

import copy
import gc
import importlib.util
import pickle
import re
import tracemalloc
import weakref

import numpy as np
import pytest
from catalogue import (
    COVARIANCE_TYPES,
    INFORMATION,
    MODELS,
    SOLVERS,
    assert_equal_to_rounding,
    dense,
    few_of,
    fitted,
    formed_information,
    mixture,
    model_id,
    models_in_turn,
    newton_decrement,
    overlapping,
    scales_of,
    set_sizes,
    three_blobs,
    type_of,
    use_information,
)
from covariance_types import TYPES
from joblib import parallel_config
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.mixture import BayesianGaussianMixture
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from sklearn_lrvb import LRVBGaussianMixture

catalogue = pytest.mark.parametrize("model", few_of(MODELS), ids=model_id)
some_models = pytest.mark.parametrize("model", few_of(MODELS), ids=model_id)
WEIGHT_PRIORS = ("dirichlet_process", "dirichlet_distribution")
INIT_PARAMS = ("kmeans", "k-means++", "random", "random_from_data")


@parametrize_with_checks([LRVBGaussianMixture()])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning", "ignore:A covariance matrix of")
def test_scikit_learn_contract(estimator, check):
    check(estimator)


# Against BayesianGaussianMixture.


@pytest.mark.slow
@pytest.mark.parametrize("weights", WEIGHT_PRIORS)
@pytest.mark.parametrize("n_components", [1, 3])
def test_a_converged_bayesian_gaussian_mixture_is_reproduced(weights, n_components):
    X = load_iris().data
    shared = {"n_components": n_components, "weight_concentration_prior_type": weights, "random_state": 0}
    theirs = BayesianGaussianMixture(**shared, reg_covar=0, tol=1e-13, max_iter=20_000).fit(X)
    ours = LRVBGaussianMixture(**shared, reg_covar=0, prior="fixed").fit(X)
    for attribute in ("weights_", "means_", "covariances_", "mean_prior_", "covariance_prior_"):
        np.testing.assert_allclose(getattr(ours, attribute), getattr(theirs, attribute), atol=1e-7)
    for attribute in ("precisions_", "precisions_cholesky_", "degrees_of_freedom_", "mean_precision_"):
        np.testing.assert_allclose(getattr(ours, attribute), getattr(theirs, attribute), rtol=1e-5)
    np.testing.assert_allclose(ours.weight_concentration_, theirs.weight_concentration_, rtol=1e-5)
    for prior in ("weight_concentration_prior_", "mean_precision_prior_", "degrees_of_freedom_prior_"):
        assert getattr(ours, prior) == getattr(theirs, prior)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-5)
    np.testing.assert_allclose(ours.score_samples(X), theirs.score_samples(X), atol=1e-5)
    assert ours.score(X) == pytest.approx(theirs.score(X), abs=1e-7)


@pytest.mark.parametrize("init_params", INIT_PARAMS)
@pytest.mark.parametrize("weights", WEIGHT_PRIORS)
def test_starts_are_those_of_scikit_learn(init_params, weights):
    shared = {
        "n_components": 3,
        "init_params": init_params,
        "weight_concentration_prior_type": weights,
        "max_iter": 0,
        "random_state": 7,
    }
    X = three_blobs()
    ours = LRVBGaussianMixture(**shared, prior="fixed").fit(X)
    theirs = BayesianGaussianMixture(**shared).fit(X)
    for attribute in ("weights_", "means_", "covariances_", "degrees_of_freedom_"):
        np.testing.assert_allclose(getattr(ours, attribute), getattr(theirs, attribute), rtol=1e-9)


def test_every_parameter_of_bayesian_gaussian_mixture_is_taken_with_its_default():
    theirs = BayesianGaussianMixture().get_params()
    ours = LRVBGaussianMixture().get_params()
    assert theirs.pop("verbose") == 0  # Ours has a line for somebody who waits.
    assert ours.pop("verbose") is None
    assert {name: ours[name] for name in theirs} == theirs
    assert set(ours) - set(theirs) == {
        "prior",
        "factorization",
        "solver",
        "moves",
        "noise",
        "tails",
        "n_jobs",
    }


@pytest.mark.parametrize(
    "parameters",
    [
        {"n_components": 0},
        {"tol": -1.0},
        {"max_iter": -1},
        {"n_init": 0},
        {"reg_covar": -1.0},
        {"weight_concentration_prior_type": "gamma"},
        {"weight_concentration_prior": 0.0},
        {"mean_precision_prior": -2.0},
        {"degrees_of_freedom_prior": 1.0},
        {"random_state": "seed"},
        {"verbose": -1},
        {"verbose_interval": 0},
        {"warm_start": "yes"},
    ],
    ids=str,
)
def test_bad_parameters_are_refused_in_scikit_learns_words(parameters):
    errors = []
    for Mixture in (BayesianGaussianMixture, LRVBGaussianMixture):
        with pytest.raises(ValueError) as caught:
            Mixture(**parameters).fit(overlapping())
        # options are listed in the order of a set
        errors.append(
            re.sub(r"\{.*\}", lambda found: str(sorted(found[0][1:-1].split(", "))), str(caught.value))
        )
    theirs, ours = errors
    ours = ours.replace(" or None. Got -1", ". Got -1")  # verbose
    assert ours == theirs.replace("BayesianGaussianMixture", "LRVBGaussianMixture")


@pytest.mark.parametrize(
    "X",
    [
        np.ones((1, 2)),
        np.ones(5),
        np.ones((3, 2, 2)),
        np.where(overlapping() > 2, np.inf, 1.0),
        overlapping()[:2],
        np.ones((0, 2)),
    ],
    ids=["one row", "1-D", "3-D", "inf", "fewer rows than components", "no rows"],
)
def test_bad_data_are_refused_in_scikit_learns_words(X):
    errors = []
    for Mixture in (BayesianGaussianMixture, LRVBGaussianMixture):
        with pytest.raises(ValueError) as caught:
            Mixture(n_components=3).fit(X)
        errors.append(str(caught.value).replace(Mixture.__name__, "Mixture"))
    assert errors[0] == errors[1]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"covariance_type": "round"}, "covariance_type"),
        ({"prior": "jeffreys"}, "'prior' parameter"),
        ({"factorization": "none"}, "'factorization' parameter"),
        ({"solver": "lbfgs"}, "'solver' parameter"),
        ({"moves": "swap"}, "'moves' parameter"),
        ({"n_jobs": 1.5}, "'n_jobs' parameter"),
        ({"mean_prior": [0.0, 1.0, 2.0]}, r"^mean_prior .* shape \(2,\), .* but has the shape \(3,\)"),
        ({"mean_prior": ["0", "low"]}, "^mean_prior .* but: could not convert string to float: .*low"),
        ({"mean_prior": [0, 1j]}, "^mean_prior .* but: .*complex128"),
        ({"mean_prior": [0.0, np.nan]}, "mean_prior contains NaN"),
        ({"mean_prior": np.ma.masked_array([0.0, 1.0], mask=[True, False])}, "mean_prior contains NaN"),
        ({"covariance_prior": 1.5}, r"^covariance_prior .*matrix of shape \(2, 2\), .* has the shape \(\)"),
        ({"covariance_prior": np.eye(3)}, r"^covariance_prior .* but has the shape \(3, 3\)"),
        ({"covariance_prior": [[1, 0.5], [0.2, 1]]}, r"^covariance_prior .* 0.5 at \[0, 1\] and 0.2 at"),
        ({"covariance_prior": [[1, 0.5], [0.500004, 1]]}, r"^covariance_prior .* and 0.500004 at \[1, 0\]"),
        ({"covariance_prior": [[1e12, 0.5], [0.4, 1e-6]]}, r"^covariance_prior .* and 0.4 at \[1, 0\]"),
        ({"covariance_prior": -np.eye(2)}, "^covariance_prior .* but has the eigenvalue -1"),
        ({"covariance_prior": [[1, 0], [0]]}, "^covariance_prior .* but: .*inhomogeneous"),
        (
            {"covariance_type": "diag", "covariance_prior": [1, -2]},
            r"^covariance_prior .* variances of shape \(2,\), .*covariance_type='diag' .* but has -2",
        ),
        (
            {"covariance_type": "spherical", "covariance_prior": [[1, 2], [3]]},
            "^covariance_prior should be a positive number, .* but: .*inhomogeneous",
        ),
        (
            {"covariance_type": "spherical", "covariance_prior": [1, 1]},
            r"^covariance_prior should be a positive number, .* but has the shape \(2,\)",
        ),
        ({"prior": "flat", "mean_prior": [0, 0]}, "has no hyperparameters, but mean_prior is set"),
        (
            {"prior": "flat", "mean_precision_prior": 1, "degrees_of_freedom_prior": 3},
            "mean_precision_prior, degrees_of_freedom_prior are set: leave at None",
        ),
    ],
    ids=str,
)
def test_our_own_parameters_are_checked(parameters, message):
    with pytest.raises(ValueError, match=message):
        LRVBGaussianMixture(**parameters).fit(overlapping())


# Degenerate data.

CONSTANT_COLUMN = np.column_stack([overlapping(), np.full(240, 3.0)])
DUPLICATED_COLUMN = overlapping()[:, [0, 1, 0]]
DEGENERATE = {
    "constant column": CONSTANT_COLUMN,
    "duplicated column": DUPLICATED_COLUMN,
    "all rows equal": np.full((10, 2), 0.1),
    "two rows": overlapping()[:2],
}


@pytest.mark.parametrize("prior", ["learned", "flat"])
@pytest.mark.parametrize("name", DEGENERATE)
@pytest.mark.filterwarnings("ignore:Columns of X", "ignore:Components have shrunk")
def test_singular_data_are_fitted_with_known_noise_and_refused_without(name, prior):
    X = DEGENERATE[name]
    estimator = LRVBGaussianMixture(prior=prior, reg_covar=1e-4, random_state=0).fit(X)
    assert np.all(np.isfinite(estimator.posterior_std_))
    with pytest.raises(ValueError, match=r"ill-defined empirical covariance.*\(a\) Drop constant"):
        LRVBGaussianMixture(prior=prior, reg_covar=0, random_state=0).fit(X)


@pytest.mark.filterwarnings("ignore:Columns of X", "ignore:Components have shrunk")
def test_more_components_than_a_singular_covariance_can_hold():
    # the default covariance prior is singular: with the noise it is proper, also for empty components
    estimator = LRVBGaussianMixture(n_components=4, random_state=0, max_iter=500).fit(DUPLICATED_COLUMN)
    assert np.all(np.isfinite(estimator.covariances_))
    with pytest.raises(ValueError, match="column 2 constant"):
        LRVBGaussianMixture(n_components=4, reg_covar=0).fit(CONSTANT_COLUMN)


@pytest.mark.parametrize("prior", ["learned", "flat"])
def test_duplicated_rows(prior):
    X = np.repeat(overlapping()[:40], 5, axis=0)
    estimator = mixture({"prior": prior}).fit(X)
    assert estimator.converged_
    assert np.all(estimator.posterior_std_ > 0)


def test_an_empty_component_under_the_flat_prior_is_named():
    X = np.repeat([[0.0, 0.0], [1.0, 1.0]], 10, axis=0)
    with (
        pytest.warns(ConvergenceWarning, match="distinct clusters"),  # by k-means
        pytest.raises(ValueError, match=r"Component 2 is empty \(expected count 0 of 20 .*prior='flat'"),
    ):
        LRVBGaussianMixture(n_components=3, prior="flat", random_state=0).fit(X)


def test_a_component_on_too_few_rows_under_the_flat_prior_is_named():
    X = np.concatenate([overlapping(), [[1e3, 1e3], [1e3, 1e3 + 1]]])
    with pytest.raises(ValueError, match=r"component 1 \(expected count 2, 2 features\) is singular"):
        LRVBGaussianMixture(n_components=2, prior="flat", reg_covar=0, random_state=0).fit(X)


def test_one_failed_start_does_not_lose_the_others():
    X = overlapping()
    calls = []

    def failing_once(*arguments):
        calls.append(arguments)
        if len(calls) == 1:
            return np.eye(2)[np.zeros(len(X), dtype=int)]
        return original(*arguments)

    module = LRVBGaussianMixture.__dict__["_starts"].__globals__
    original = module["starting_responsibilities"]
    module["starting_responsibilities"] = failing_once
    try:
        estimator = mixture({"prior": "flat"}, n_init=2).fit(X)
    finally:
        module["starting_responsibilities"] = original
    assert len(calls) == 2
    assert estimator.converged_


BAD_REFITS = {
    "NaN": np.full((9, 2), np.nan),
    "one row": overlapping()[:1],
    "singular": overlapping()[:, [0, 0]],
    "singular, other features": DUPLICATED_COLUMN,
}


@pytest.mark.parametrize("bad", BAD_REFITS.values(), ids=BAD_REFITS)
def test_a_failed_refit_changes_nothing(bad):
    estimator = mixture({"prior": "flat", "reg_covar": 0.0}).fit(overlapping())
    before, names = dict(vars(estimator)), set(vars(estimator))
    expected = estimator.predict_proba(overlapping())
    with pytest.raises(ValueError):
        estimator.fit(bad)
    assert set(vars(estimator)) == names
    assert all(vars(estimator)[name] is before[name] for name in names)
    np.testing.assert_array_equal(estimator.predict_proba(overlapping()), expected)


def test_a_failed_first_fit_leaves_nothing():
    estimator = LRVBGaussianMixture(reg_covar=0)
    with pytest.raises(ValueError):
        estimator.fit(np.ones((5, 2)))
    assert set(vars(estimator)) == set(estimator.get_params())
    for attribute in ("posterior_covariance_", "means_std_", "posterior_names_"):
        with pytest.raises(NotFittedError):
            getattr(estimator, attribute)
    for method in (estimator.predict, estimator.influence, estimator.score):
        with pytest.raises(NotFittedError):
            method(overlapping())


# Equivariance.


@models_in_turn(few_of(MODELS), "shift", 2 * [1e3, -1e8])
def test_shift_equivariance(model, shift):
    moved_rows = overlapping() + shift
    X = moved_rows - shift  # what float64 leaves of the rows
    here, there = mixture(model).fit(X), mixture(model).fit(moved_rows)
    np.testing.assert_allclose(there.posterior_std_, here.posterior_std_, rtol=1e-9)
    np.testing.assert_allclose(there.means_ - shift, here.means_, atol=4e-16 * abs(shift) + 1e-10)
    np.testing.assert_allclose(there.influence(moved_rows), here.influence(X), rtol=1e-6, atol=1e-10)
    np.testing.assert_allclose(there.predict_proba(moved_rows), here.predict_proba(X), atol=1e-9)
    assert there.lower_bound_ == pytest.approx(here.lower_bound_, rel=1e-11)


@models_in_turn(few_of(MODELS), "scale", [1e-8, 1e8])
def test_scale_equivariance(model, scale):
    X = overlapping()
    scaled = {**model, "reg_covar": model["reg_covar"] * scale**2}
    here, there = fitted(model), mixture(scaled).fit(scale * X)
    np.testing.assert_allclose(there.means_std_, scale * here.means_std_, rtol=1e-9)
    np.testing.assert_allclose(there.weights_std_, here.weights_std_, rtol=1e-9)
    np.testing.assert_allclose(there.precisions_std_, here.precisions_std_ / scale**2, rtol=1e-9)
    np.testing.assert_allclose(there.covariances_std_, here.covariances_std_ * scale**2, rtol=1e-9)
    np.testing.assert_allclose(there.influence(scale * X), here.influence(X), rtol=1e-6, atol=1e-10)


@pytest.mark.parametrize("prior", ["learned", "flat"])
@pytest.mark.parametrize("factorization", ["joint", "independent"])
def test_affine_equivariance(prior, factorization):
    model = {"prior": prior, "factorization": factorization, "reg_covar": 0.0, "init_params": "random"}
    A, b = np.array([[1e8, 0.0], [3e-8, 1e-8]]), np.array([5e8, -2e-8])
    X = overlapping()
    here, there = mixture(model).fit(X), mixture(model).fit(X @ A.T + b)
    np.testing.assert_allclose(there.means_, here.means_ @ A.T + b, rtol=1e-7)
    covariance = here.posterior(method="lrvb").covariance("means")
    lift = np.kron(np.eye(2), A)
    expected = np.sqrt(np.diag(lift @ covariance @ lift.T)).reshape(2, 2)
    np.testing.assert_allclose(there.means_std_, expected, rtol=1e-7)


def blurred_start():
    """Responsibilities of two components for `overlapping()`: the truth and chance in equal parts."""
    chance = np.random.default_rng(0).dirichlet([1.0, 1.0], size=240)
    return 0.5 * chance + 0.5 * np.eye(2)[np.arange(240) // 160]


@some_models
def test_row_order_does_not_matter(model):
    X, start = overlapping(), blurred_start()
    order = np.random.default_rng(1).permutation(len(X))
    here = mixture(model, init_params=start).fit(X)
    there = mixture(model, init_params=start[order]).fit(X[order])
    assert there.lower_bound_ == pytest.approx(here.lower_bound_, rel=1e-12)
    np.testing.assert_allclose(there.posterior_mean_, here.posterior_mean_, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(there.posterior_std_, here.posterior_std_, rtol=1e-7)
    np.testing.assert_allclose(there.influence(X), here.influence(X), rtol=1e-6, atol=1e-8)


# sticks have an order: the first is broken off first
@pytest.mark.parametrize(
    "model", [m for m in MODELS if m["weight_concentration_prior_type"] != "dirichlet_process"], ids=model_id
)
def test_component_order_does_not_matter(model):
    X, start = overlapping(), blurred_start()
    here, there = (mixture(model, init_params=r).fit(X) for r in (start, start[:, ::-1]))
    assert there.lower_bound_ == pytest.approx(here.lower_bound_, rel=1e-12)
    np.testing.assert_allclose(there.predict_proba(X)[:, [1, 0]], here.predict_proba(X)[:, :2], atol=1e-8)
    for attribute in ("weights_", "means_", "precisions_", "covariances_"):
        for name in (attribute, attribute[:-1] + "_std_"):
            mine, other = getattr(here, name), getattr(there, name)
            if name[:4] not in ("prec", "cova") or not type_of(model).is_shared:
                other = other[::-1]
            np.testing.assert_allclose(other, mine, rtol=1e-6, atol=1e-8)


# Blocks, threads, kinds of arrays.


@models_in_turn(few_of(MODELS), "n_jobs", 2 * [1, 2])
def test_threads_and_block_sizes_do_not_change_the_answer(model, n_jobs, monkeypatch):
    X = overlapping()
    weights = np.random.default_rng(0).uniform(0.2, 3.0, size=len(X)) if model["reg_covar"] else None
    whole = fitted(model) if weights is None else mixture(model).fit(X, sample_weight=weights)
    influence = whole.influence(X)
    set_sizes(monkeypatch, most_rows=100)
    blocks = mixture(model, n_jobs=n_jobs).fit(X, sample_weight=weights)
    np.testing.assert_allclose(blocks.posterior_mean_, whole.posterior_mean_, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(blocks.posterior_std_, whole.posterior_std_, rtol=1e-8)
    np.testing.assert_allclose(blocks.influence(X), influence, rtol=1e-6, atol=1e-9)


@pytest.mark.slow
def test_the_number_of_threads_is_an_argument_or_joblibs(monkeypatch):
    set_sizes(monkeypatch, most_rows=100)
    threads = mixture({}, n_jobs=2).fit(overlapping())
    with parallel_config(backend="threading", n_jobs=2):
        configured = mixture({}).fit(overlapping())
    np.testing.assert_array_equal(threads.posterior_mean_, configured.posterior_mean_)


def test_memory_does_not_grow_with_the_rows():
    X = np.tile(three_blobs(3000, n_features=8), (40, 1))
    estimator = LRVBGaussianMixture(
        n_components=3, random_state=0, max_iter=3, init_params="random_from_data"
    )
    tracemalloc.start()
    with pytest.warns(ConvergenceWarning):
        estimator.fit(X)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    responsibilities = 8 * len(X) * 3
    assert peak < responsibilities + 16 * 2**20 < X.nbytes + responsibilities + 12 * 2**20


def test_float32_rows_are_accumulated_in_float64():
    X = (overlapping() + 100).astype(np.float32)
    single, double = fitted_to(X), fitted_to(X.astype(np.float64))
    np.testing.assert_allclose(single.posterior_std_, double.posterior_std_, rtol=1e-9)
    assert single.means_.dtype == np.float64


def fitted_to(X, **parameters):
    return mixture(MODELS[0], **parameters).fit(X)


def test_kinds_of_arrays(tmp_path):
    X = overlapping()
    expected = fitted_to(X).posterior_std_
    np.save(tmp_path / "X.npy", X)
    read_only = X.copy()
    read_only.setflags(write=False)
    kinds = [
        np.asfortranarray(X),
        X[::-1][::-1],
        X.tolist(),
        np.load(tmp_path / "X.npy", mmap_mode="r"),
        read_only,
    ]
    for kind in kinds:
        np.testing.assert_allclose(fitted_to(kind).posterior_std_, expected, rtol=1e-9)


def test_feature_names():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(overlapping(), columns=["length", "width"])
    estimator = fitted_to(frame)
    assert list(estimator.feature_names_in_) == ["length", "width"]
    assert estimator.posterior_names_[2] == "mean[0,length]"
    assert estimator.posterior_names_[7] == "precision[0,length,width]"
    with pytest.raises(ValueError, match="feature names should match"):
        estimator.influence(frame.rename(columns={"width": "depth"}))


# Life of an estimator.


@models_in_turn(few_of(MODELS), "solver", SOLVERS)
def test_pickles_and_copies_keep_the_uncertainty(model, solver):
    X = overlapping()
    estimator = mixture({**model, "solver": solver, "tol": 1e-6}).fit(X)
    for twin in (pickle.loads(pickle.dumps(estimator)), copy.deepcopy(estimator)):
        assert_equal_to_rounding(twin.posterior_covariance_, estimator.posterior_covariance_)
        assert_equal_to_rounding(twin.influence(X), estimator.influence(X))
        assert newton_decrement(twin) == pytest.approx(newton_decrement(estimator), rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("information", INFORMATION)
@pytest.mark.parametrize("are_many", [False, True])
def test_many_rows_are_let_go_once_the_matrix_is_formed(information, are_many, monkeypatch):
    use_information(information, monkeypatch)
    set_sizes(monkeypatch, kept_rows_bytes=overlapping().nbytes - are_many)
    X = overlapping()
    estimator, rows = fitted_to(X), weakref.ref(X)
    assert np.all(estimator.means_std_ > 0)
    del X
    gc.collect()
    assert (rows() is None) == (are_many and information != "matrix_free")


def test_pickles_do_not_carry_the_rows():
    X = three_blobs(20_000)
    estimator = mixture({**MODELS[0], "solver": "coordinate_ascent"}, 3, tol=1e-3).fit(X)
    assert len(pickle.dumps(estimator)) < X.nbytes / 4


def test_rows_changed_in_place_are_noticed():
    X = overlapping()
    estimator = mixture({**MODELS[0], "solver": "coordinate_ascent"}).fit(X)
    X[3] += 1.0
    with pytest.raises(ValueError, match="X was changed in place after fit"):
        estimator.posterior_std_
    twin = pickle.loads(pickle.dumps(estimator))
    with pytest.raises(ValueError, match="are not part of a pickled"):
        twin.posterior_std_


def test_too_large_a_system_says_how_large(monkeypatch):
    means_std = mixture(MODELS[0], 3).fit(three_blobs()).means_std_
    set_sizes(monkeypatch, dense_size=20)
    for solver in SOLVERS:
        estimator = mixture({**MODELS[0], "solver": solver}, 3, max_iter=5000).fit(three_blobs())
        assert estimator.converged_
        assert newton_decrement(estimator) < 1e-3
        np.testing.assert_allclose(estimator.means_std_, means_std, rtol=1e-4)
        with pytest.raises(MemoryError, match=r"3 components in 3 features has 30 unknowns.*PCA"):
            estimator.posterior_covariance_
        assert pickle.loads(pickle.dumps(estimator)).means_.shape == (3, 3)


@pytest.mark.parametrize("solver", SOLVERS)
def test_warm_start_continues(solver):
    X = overlapping()
    model = {**MODELS[0], "solver": solver}
    whole = mixture(model).fit(X)
    continued = mixture(model, warm_start=True, max_iter=2)
    with pytest.warns(ConvergenceWarning):
        continued.fit(X)
    first = continued.lower_bound_
    continued.set_params(max_iter=2000).fit(X)
    assert continued.lower_bound_ > first
    np.testing.assert_allclose(continued.posterior_mean_, whole.posterior_mean_, rtol=1e-4, atol=1e-4)
    again = clone(continued).fit(X).fit(X)
    assert again.n_iter_ <= 3


def test_warm_start_follows_shifted_rows():
    X = overlapping()
    estimator = fitted_to(X, warm_start=True)
    sd = estimator.posterior_std_.copy()
    estimator.fit(X + 0.5)
    assert estimator.converged_
    np.testing.assert_allclose(estimator.posterior_std_, sd, rtol=1e-6)


def test_warm_start_refuses_another_shape():
    estimator = fitted_to(overlapping(), warm_start=True)
    with pytest.raises(ValueError, match=r"had 2 components in 2 features.*; now n_components=3"):
        estimator.set_params(n_components=3).fit(overlapping())
    with pytest.raises(ValueError, match=r"X has 3 features.*Set warm_start=False"):
        estimator.set_params(n_components=2).fit(three_blobs())
    with pytest.raises(ValueError, match=r"2 features \(FullCovariance\); .* 2 features \(TiedCovariance\)"):
        estimator.set_params(covariance_type="tied").fit(overlapping())


@pytest.mark.slow
def test_random_state_reproduces_and_n_init_does_not_lose():
    X = three_blobs()
    model = {**MODELS[0], "init_params": "random"}
    one, same = (mixture(model, 3).fit(X) for _ in range(2))
    assert_equal_to_rounding(one.posterior_covariance_, same.posterior_covariance_)
    several = mixture(model, 3, n_init=4).fit(X)
    assert several.lower_bound_ >= one.lower_bound_ - 1e-9 * abs(one.lower_bound_)


@catalogue
def test_fit_predict_predicts(model):
    X = overlapping()
    estimator = mixture(model)
    np.testing.assert_array_equal(estimator.fit_predict(X), estimator.predict(X))
    labels = estimator.predict_proba(X).argmax(axis=1)
    np.testing.assert_array_equal(np.where(labels == 2, -1, labels), estimator.predict(X))
    np.testing.assert_allclose(estimator.predict_proba(X).sum(axis=1), 1, rtol=1e-14)
    precisions, scales = (dense(model, values) for values in (estimator.precisions_, scales_of(estimator)))
    np.testing.assert_allclose(precisions @ scales, [np.eye(2)] * 2, atol=1e-12)
    root = dense(model, estimator.precisions_cholesky_)
    np.testing.assert_array_equal(np.tril(root, -1), 0)
    np.testing.assert_allclose(root @ root.transpose(0, 2, 1), precisions, rtol=1e-12)


def test_sample_draws_from_the_fit():
    estimator = fitted_to(overlapping())
    X, labels = estimator.sample(50_000)
    assert X.shape == (50_000, 2)
    np.testing.assert_allclose(np.bincount(labels) / 50_000, estimator.weights_, atol=0.01)
    for k in range(2):
        np.testing.assert_allclose(X[labels == k].mean(axis=0), estimator.means_[k], atol=0.03)
        np.testing.assert_allclose(np.cov(X[labels == k].T), estimator.covariances_[k], atol=0.05)
    with pytest.raises(ValueError, match="at least one sample"):
        estimator.sample(0)


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_nothing_is_sampled_from_arrays_that_are_no_mixture(covariance_type):
    X = overlapping()
    estimator = LRVBGaussianMixture(n_components=2, covariance_type=covariance_type, random_state=0).fit(X)
    covariances = estimator.covariances_.copy()
    estimator.covariances_ = covariances * np.array([1.0, -1.0]).reshape(-1, *[1] * (covariances.ndim - 1))
    owner = "that of component 1"
    if TYPES[covariance_type].is_shared:
        owner, estimator.covariances_ = "the common one", covariances - 2.0 * np.diag(np.diag(covariances))
    with pytest.raises(ValueError, match=f"covariances_ must be positive definite, but {owner} has a neg"):
        estimator.sample()
    estimator.covariances_, weights = covariances, estimator.weights_
    estimator.weights_ = np.array([1.5, -0.5])
    with pytest.raises(ValueError, match=r"weights_ must not be negative, but component 1 has -0\.5"):
        estimator.sample()
    estimator.weights_ = 0.5 * weights
    with pytest.raises(ValueError, match=r"weights_ must sum to one, but sum to 0\.5"):
        estimator.sample()
    estimator.weights_ = weights.astype(np.float32)
    assert estimator.sample(3)[0].shape == (3, 2)


@pytest.mark.parametrize("solver", SOLVERS)
def test_verbose(solver, capsys):
    model = {**MODELS[0], "solver": solver, "tol": 1e-3}
    mixture(model, n_init=2, verbose=1, verbose_interval=1).fit(overlapping())
    brief = capsys.readouterr().out
    assert "Initialization 0\n  Iteration 1\n" in brief
    assert brief.count("Initialization converged.") == 2
    mixture(model, verbose=2, verbose_interval=3).fit(overlapping())
    long = capsys.readouterr().out
    assert "  Iteration 3\t time lapse" in long
    assert "ll change" in long
    assert "Initialization converged. time lapse" in long
    mixture(model).fit(overlapping())
    assert capsys.readouterr().out == ""


def test_callbacks_can_be_set_where_scikit_learn_has_them():
    has_callbacks = importlib.util.find_spec("sklearn.callback") is not None
    assert hasattr(LRVBGaussianMixture, "set_callbacks") == has_callbacks


@pytest.mark.slow
@pytest.mark.parametrize("verbose", [1, 2])
def test_iterations_are_printed_as_by_scikit_learn(verbose, capsys):
    # The numbers differ, since scikit-learn's bound is without constants, but nothing else.
    parameters = {"n_components": 2, "n_init": 3, "max_iter": 40, "reg_covar": 0.0, "random_state": 0}
    printed = []
    for peer in (
        BayesianGaussianMixture(init_params="random_from_data", verbose=verbose, **parameters),
        LRVBGaussianMixture(
            init_params="random_from_data", verbose=verbose, solver="coordinate_ascent", **parameters
        ),
    ):
        peer.fit(overlapping())
        printed.append(re.sub(r"-?\d+\.\d{5}", "NUMBER", capsys.readouterr().out).splitlines())
    assert printed[0] == printed[1]
    assert len(printed[0]) == 17


@pytest.mark.slow
def test_pipelines_and_searches():
    X = load_iris().data
    pipeline = make_pipeline(PCA(2), LRVBGaussianMixture(n_components=3, random_state=0)).fit(X)
    assert pipeline[-1].means_std_.shape == (3, 2)
    assert pipeline[-1].posterior_names_[3] == "mean[0,x0]"
    search = GridSearchCV(LRVBGaussianMixture(random_state=0), {"n_components": [1, 2, 3]}, cv=3)
    search.fit(X)
    assert search.best_estimator_.posterior_covariance_.shape[0] > 0


# What looking at an estimator must not do.


def test_displays_evaluate_nothing_and_never_fail():
    X = overlapping()
    estimator = mixture({"solver": "coordinate_ascent"}, max_iter=2, init_params="random")
    with pytest.warns(ConvergenceWarning):
        estimator.fit(X)
    for shown in (estimator, make_pipeline(estimator)):
        assert "means_" in shown._repr_html_() or "LRVBGaussianMixture" in repr(shown)
    names = dir(estimator)
    assert {"means_", "posterior_mean_", "posterior_names_", "predict"} <= set(names)
    assert "posterior_covariance_" in names
    assert formed_information(estimator) is None
    assert "means_" in dir(estimator)
    assert "means_" not in dir(LRVBGaussianMixture())


def test_kept_arrays_are_read_only():
    estimator = fitted_to(overlapping())
    for name in ("posterior_covariance_", "posterior_std_"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(estimator, name)[...] = 0


def test_a_given_prior_is_not_aliased():
    prior = np.eye(2)
    estimator = fitted_to(overlapping(), covariance_prior=prior)
    prior[...] = 9.0
    np.testing.assert_array_equal(estimator.covariance_prior_, np.eye(2))
    assert estimator.lower_bound_ == fitted_to(overlapping(), covariance_prior=np.eye(2)).lower_bound_


def test_verbose_says_that_a_start_failed(capsys):
    X = np.concatenate([overlapping(), [[1e3, 1e3], [1e3, 1e3 + 1]]])
    with pytest.raises(ValueError):
        mixture({"prior": "flat", "reg_covar": 0.0}, verbose=1).fit(X)
    assert "Initialization failed: " in capsys.readouterr().out


@pytest.mark.parametrize("weights", WEIGHT_PRIORS)
@pytest.mark.parametrize("concentration", [1e-4, 1e-8, 1e-12])
def test_tiny_concentrations_do_not_disturb_the_other_components(weights, concentration):
    X = np.random.default_rng(0).normal(size=(300, 2))
    X[100:] += 6
    model = {"weight_concentration_prior_type": weights, "weight_concentration_prior": concentration}
    two, four = mixture(model, 2).fit(X), mixture(model, 4).fit(X)
    kept = np.argsort(four.weights_)[-2:]
    assert np.sort(four.weights_)[1] < 1e-3  # two components are empty
    np.testing.assert_allclose(np.sort(four.weights_std_[kept]), np.sort(two.weights_std_), rtol=1e-3)


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("covariance_type", ["full", "tied"])
def test_rounding_in_a_given_covariance_prior_does_not_matter(covariance_type, unit):
    """Relative to the roots of the diagonal, in any units; what is more than rounding is refused."""
    X, units = overlapping() * [unit, 1.0], np.outer([unit, 1.0], [unit, 1.0])
    rounded = units * [[1.0, 0.6], [0.6 + 5e-7, 1.2]]
    model = {"covariance_type": covariance_type, "reg_covar": 0.0}
    one, other = (mixture(model, covariance_prior=C).fit(X) for C in (rounded, rounded.T))
    np.testing.assert_array_equal(one.posterior_mean_, other.posterior_mean_)
    np.testing.assert_array_equal(one.covariance_prior_, one.covariance_prior_.T)
    asymmetric = units * [[1.0, 0.6], [0.6 + 5e-6, 1.2]]
    with pytest.raises(ValueError, match=r"^covariance_prior should be .* at \[0, 1\] and .* at \[1, 0\]\."):
        mixture(model, covariance_prior=asymmetric).fit(X)


@pytest.mark.parametrize("one", [[2.0], (2.0,), [[2.0]], np.array(2.0), np.array([2.0]), np.float32(2.0), 2])
def test_one_number_may_come_in_a_list(one):
    X, model = overlapping(40), {"covariance_type": "spherical"}
    expected = mixture({**model, "covariance_prior": 2.0}).fit(X)
    given = mixture({**model, "covariance_prior": one}).fit(X)
    np.testing.assert_array_equal(given.means_, expected.means_)
    assert given.covariance_prior_ == 2.0
    twin = BayesianGaussianMixture(max_iter=500, covariance_prior=one, **model).fit(X)
    assert np.reshape(twin.covariance_prior_, ()) == given.covariance_prior_


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_priors_of_other_shapes_are_refused(covariance_type):
    X = overlapping(40)
    for shape in ((2, 2), (2,), (1, 2), (3,), (2, 2, 2)):
        estimator = mixture({"covariance_type": covariance_type, "covariance_prior": np.ones(shape)})
        if shape != TYPES[covariance_type].prior(np.eye(2)).shape:
            with pytest.raises(ValueError, match="but has the shape"):
                estimator.fit(X)
