"""Weights of rows: a weight of two is the row twice, of zero no row, and all between is smooth."""

import copy
import functools

import catalogue
import dask.array as da
import numpy as np
import pandas as pd
import pytest
from catalogue import (
    COVARIANCE_TYPES,
    INFORMATION,
    SOLVERS,
    WITH_NOISE,
    WITH_TAILS,
    WITHOUT_NOISE,
    assert_equal_to_rounding,
    few_of,
    mixture,
    models_in_turn,
    overlapping,
    set_sizes,
    three_blobs,
    use_information,
)
from covariance_types import TYPES
from joblib import parallel_config
from sklearn import config_context
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning, UnsetMetadataPassedError
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, cross_validate
from sklearn.pipeline import make_pipeline

from sklearn_lrvb import LRVBGaussianMixture, LRVBLatentClassMixture, MixtureImputer

MODELS = [model for model in (*few_of(WITHOUT_NOISE + WITH_TAILS), *WITH_NOISE) if model["reg_covar"]]
every_model = pytest.mark.parametrize("model", MODELS, ids=catalogue.model_id)
every_type = pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)

X = three_blobs(90, n_features=2)
X.setflags(write=False)
WHOLE = np.random.default_rng(0).integers(0, 4, size=90)
BROKEN = np.random.default_rng(1).choice([0.0, 0.25, 0.5, 1.0, 1.75, 3.5], size=90)


def start(n_components):
    """Responsibilities that lean towards the clusters of X."""
    return 0.8 * np.eye(n_components)[np.arange(90) % 3 % n_components] + 0.2 / n_components


def given_prior(covariance_type):
    """Hyperparameters that leave nothing to be taken from the data."""
    scale = np.array([[1.0, 0.2], [0.2, 0.6]])
    return {
        "weight_concentration_prior": 0.7,
        "mean_precision_prior": 0.5,
        "mean_prior": [0.2, -0.1],
        "degrees_of_freedom_prior": 4.5,
        "covariance_prior": TYPES[covariance_type].prior(scale),
    }


def with_given_prior(model):
    """The model with nothing left to be taken from the data: refits then differ by the rows alone."""
    if model["prior"] == "flat":
        return model
    return catalogue.with_fixed_noise({**model, **given_prior(model["covariance_type"])}, X)


def weighted(model, sample_weight, n_components=3, rows=X, **parameters):
    started = {"init_params": start(n_components), **parameters}
    return mixture(model, n_components, **started).fit(rows, sample_weight=sample_weight)


@functools.cache
def _fitted(number, given):
    return weighted(with_given_prior(MODELS[number]) if given else MODELS[number], BROKEN)


def fitted(model, given=False):
    """The model fitted to X with broken weights; shared between tests, so not to be changed."""
    return _fitted(MODELS.index(model), given)


def assert_same_posterior(one, other, rtol=1e-8):
    """Equal to ``rtol`` posterior standard deviations."""
    sd = other.posterior_std_ + 1e-12  # one component's log weight has none
    np.testing.assert_array_less(np.abs(one.posterior_mean_ - other.posterior_mean_) / sd, rtol)
    error = np.abs(one.posterior_covariance_ - other.posterior_covariance_)
    np.testing.assert_array_less(error / np.outer(sd, sd), rtol)
    assert one.lower_bound_ == pytest.approx(other.lower_bound_, rel=1e-11)
    for name in ("weights_", "mean_precision_", "degrees_of_freedom_", "mean_prior_", "covariance_prior_"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=rtol, atol=1e-12)


def assert_identical(one, other, rows=X):
    """Equal to rounding in all that a fit leaves."""
    public = [name for name in vars(other) if name.endswith("_") and not name.startswith("_")]
    assert {"means_", "lower_bounds_", "covariance_prior_"} <= set(public)
    for name in (*public, "posterior_mean_", "posterior_covariance_"):
        assert_equal_to_rounding(getattr(one, name), getattr(other, name), err_msg=name)
    assert_equal_to_rounding(one.influence(rows), other.influence(rows))
    assert_equal_to_rounding(one.score_samples(rows), other.score_samples(rows))


# Whole weights are repetitions.


@models_in_turn(MODELS, "way", [("newton", 1), ("newton", 3), ("coordinate_ascent", 2)])
def test_whole_weights_are_repetitions(model, way):
    solver, n_components = way
    # iterations end where a gain falls below tol: far from its round-off, lest it decides when
    model = {**model, "solver": solver, "tol": 1e-9 if solver == "newton" else 1e-6}
    counted = weighted(model, WHOLE, n_components)
    repeated = mixture(model, n_components, init_params=np.repeat(start(n_components), WHOLE, axis=0))
    repeated.fit(np.repeat(X, WHOLE, axis=0))
    if solver == "coordinate_ascent":
        assert counted.n_iter_ == repeated.n_iter_
    assert_same_posterior(counted, repeated)
    np.testing.assert_allclose(counted.influence(X), repeated.influence(X), rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(
        counted.score(X, sample_weight=WHOLE), repeated.score(np.repeat(X, WHOLE, axis=0)), rtol=1e-10
    )


@every_type
@pytest.mark.parametrize("init_params", ["kmeans", "k-means++"])
@pytest.mark.parametrize("seed", range(4))
def test_starts_count_weights_as_repetitions(covariance_type, init_params, seed):
    model = {"covariance_type": covariance_type, "init_params": init_params}
    estimator = mixture(model, 3, max_iter=0).set_params(random_state=seed)
    counted = clone(estimator).fit(X, sample_weight=WHOLE)
    repeated = clone(estimator).fit(np.repeat(X, WHOLE, axis=0))
    for name in ("weights_", "means_", "covariances_", "degrees_of_freedom_", "mean_precision_"):
        np.testing.assert_allclose(getattr(counted, name), getattr(repeated, name), rtol=1e-9)


@pytest.mark.parametrize("init_params", ["random", "random_from_data"])
def test_random_starts_are_drawn_for_the_rows_as_given(init_params):
    # As documented under sample_weight.
    estimator = mixture({"init_params": init_params}, 3, max_iter=0).set_params(random_state=1)
    counted = clone(estimator).fit(X, sample_weight=1 + WHOLE)
    repeated = clone(estimator).fit(np.repeat(X, 1 + WHOLE, axis=0))
    assert not np.allclose(counted.means_, repeated.means_, rtol=1e-3)
    if init_params == "random":
        shares = np.random.RandomState(1).uniform(size=(90, 3))
        given = estimator.set_params(init_params=shares / shares.sum(axis=1, keepdims=True))
        expected = clone(given).fit(X, sample_weight=1 + WHOLE)
        np.testing.assert_allclose(counted.means_, expected.means_, rtol=1e-12)


def test_default_priors_are_those_of_the_repeated_rows():
    repeated = np.repeat(X, WHOLE, axis=0)
    for name, covariance_type in TYPES.items():
        model = {"covariance_type": name, "prior": "fixed"}
        estimator = mixture(model, max_iter=0).fit(X, sample_weight=WHOLE)
        np.testing.assert_allclose(estimator.mean_prior_, repeated.mean(axis=0), rtol=1e-12)
        expected = covariance_type.prior(np.cov(repeated.T))
        np.testing.assert_allclose(estimator.covariance_prior_, expected, rtol=1e-12)


@every_type
@pytest.mark.parametrize("information", INFORMATION)
def test_every_solver_of_the_information_counts_weights(covariance_type, information, monkeypatch):
    use_information(information, monkeypatch)
    model = {"covariance_type": covariance_type, "prior": "learned"}
    repeated = mixture(model, 3, init_params=np.repeat(start(3), WHOLE, axis=0))
    assert_same_posterior(weighted(model, WHOLE), repeated.fit(np.repeat(X, WHOLE, axis=0)), rtol=1e-7)


# One and zero.


@every_type
@pytest.mark.parametrize("init_params", ["kmeans", "k-means++", "random", "random_from_data"])
def test_no_weights_are_ones(covariance_type, init_params):
    estimator = mixture({"covariance_type": covariance_type, "init_params": init_params}, tol=1e-3)
    assert_identical(clone(estimator).fit(X, sample_weight=np.ones(90)), estimator.fit(X))
    assert estimator.score(X, sample_weight=np.ones(90)) == pytest.approx(estimator.score(X), rel=1e-14)


def leaning(rows, n_components, random_state):
    """Responsibilities of given rows alone, with some noise."""
    draws = random_state.uniform(size=(len(rows), n_components))
    scores = np.exp(rows[:, :1] * np.arange(n_components)) * (1 + draws)
    return scores / scores.sum(axis=1, keepdims=True)


@every_type
@pytest.mark.parametrize(
    "init_params", ["kmeans", "k-means++", "random", "random_from_data", "array", "callable"]
)
def test_rows_of_weight_zero_are_absent(covariance_type, init_params):
    kept = BROKEN > 0
    rows = X + 1e6 * ~kept[:, None] * np.random.default_rng(2).normal(size=X.shape)
    everywhere, alone = {"array": (start(2), start(2)[kept]), "callable": (leaning, leaning)}.get(
        init_params, (init_params, init_params)
    )
    here = mixture({"covariance_type": covariance_type, "init_params": everywhere}, tol=1e-3)
    there = mixture({"covariance_type": covariance_type, "init_params": alone}, tol=1e-3)
    there.fit(rows[kept], sample_weight=BROKEN[kept])
    labels = here.fit_predict(rows, sample_weight=BROKEN)
    assert_identical(here, there)
    np.testing.assert_array_equal(labels, there.predict(rows))


def test_rows_of_weight_zero_do_not_make_up_the_numbers():
    errors = []
    some = np.isin(np.arange(90), [4, 30]).astype(float)
    for rows, weights in ((X, some), (X[some > 0], None)):
        with pytest.raises(ValueError) as caught:
            LRVBGaussianMixture(n_components=3).fit(rows, sample_weight=weights)
        errors.append(str(caught.value))
    assert (
        errors[0] == errors[1] == "Expected n_samples >= n_components but got n_components = 3, n_samples = 2"
    )


# Anything between: derivatives by refitting.


@every_model
def test_a_weight_moves_the_bound_by_the_rows_score(model):
    # the envelope theorem: where q is optimal, of the bound only sum w_n log Z_n depends on w_n
    estimator, step = fitted(model, given=True), 1e-3
    row = np.flatnonzero(BROKEN)[20]
    change = step * (np.arange(90) == row)
    above, below = (weighted(with_given_prior(model), BROKEN + s * change).lower_bound_ for s in (1, -1))
    expected = estimator.score_samples(X)[row]
    assert (above - below) / (2 * step) == pytest.approx(expected, rel=1e-5)


@every_model
def test_a_moved_row_counts_by_its_weight(model):
    # influence is that of weight one
    estimator, direction, step = fitted(model, given=True), np.array([0.6, -0.8]), 1e-4
    row = np.flatnonzero(BROKEN == 3.5)[0]
    change = step * np.outer(np.arange(90) == row, direction)
    above, below = (weighted(with_given_prior(model), BROKEN, rows=X + s * change).means_ for s in (1, -1))
    influence = estimator.influence(X[[row]])[0] @ direction
    assert np.abs(influence).max() > 1e-3
    np.testing.assert_allclose((above - below) / (2 * step), 3.5 * influence, rtol=1e-4, atol=1e-6)


@every_model
def test_the_posterior_is_smooth_where_weights_are_whole(model):
    # three equidistant weights of one row, around one or from none on
    sd, step, by = fitted(model, given=True).posterior_std_, 1e-3, (-1, 0, 1)
    weights = np.where(np.arange(90) == 7, 1.0, BROKEN)
    if model["factorization"] == "joint":
        weights[7], by = 0.0, (0, 1, 2)
    first, middle, last = (
        weighted(with_given_prior(model), weights + b * step * (np.arange(90) == 7)).posterior_mean_ / sd
        for b in by
    )
    slope = np.abs(last - first).max()
    assert slope > 1e-5
    np.testing.assert_array_less(np.abs(first - 2 * middle + last), 1e-2 * slope)


@every_model
def test_a_weight_may_be_split_between_copies(model):
    share = np.random.default_rng(3).uniform(size=90)
    pieces = np.concatenate([share * BROKEN, (1 - share) * BROKEN])
    twice = mixture(model, 3, init_params=np.tile(start(3), (2, 1)))
    twice.fit(np.tile(X, (2, 1)), sample_weight=pieces)
    assert_same_posterior(twice, fitted(model))


# Large and small totals.


def closed_form(covariance_type, sample_weight, prior):
    """Posterior of one component: its mean, tau, c and, in the shape of the covariance, A."""
    b0, m0, nu0 = prior["mean_precision_prior"], prior["mean_prior"], prior["degrees_of_freedom_prior"]
    count = sample_weight.sum()
    mean = (sample_weight @ X + b0 * np.asarray(m0)) / (count + b0)
    offsets = X - mean
    scatter = (sample_weight[:, None] * offsets).T @ offsets + b0 * np.outer(mean - m0, mean - m0)
    c = nu0 + TYPES[covariance_type].power(2) * count
    return mean, count + b0, c, TYPES[covariance_type].statistic(scatter) + prior["covariance_prior"]


@every_type
@pytest.mark.parametrize("sample_weight", [BROKEN, 0.1 * BROKEN, BROKEN + 1e6 * (np.arange(90) == 3)])
def test_one_component_is_the_closed_form_of_the_weighted_rows(covariance_type, sample_weight):
    prior = given_prior(covariance_type)
    model = {"covariance_type": covariance_type, "reg_covar": 0.0, **prior}
    estimator = mixture(model, 1).fit(X, sample_weight=sample_weight)
    mean, tau, c, A = closed_form(covariance_type, sample_weight, prior)
    np.testing.assert_allclose(estimator.means_[0], mean, rtol=1e-10)
    np.testing.assert_allclose(np.squeeze(estimator.covariances_), A / c, rtol=1e-9)
    np.testing.assert_allclose(estimator.mean_precision_, tau, rtol=1e-12)
    np.testing.assert_allclose(estimator.degrees_of_freedom_, c, rtol=1e-12)
    variance = np.diag(A) if A.ndim == 2 else np.broadcast_to(A, 2)
    student = TYPES[covariance_type].block_size(2) + 1  # c - P - 1, or c - 2 of independent precisions
    np.testing.assert_allclose(estimator.means_std_[0] ** 2, variance / (tau * (c - student)), rtol=1e-9)


@every_type
@pytest.mark.filterwarnings("ignore:Components have shrunk", "ignore:reg_covar")
def test_one_huge_weight_is_many_large_ones(covariance_type):
    model = {"covariance_type": covariance_type}
    huge = np.where(np.arange(90) == 3, 1e6, 1.0)
    rows = np.concatenate([X, np.tile(X[[3]], (999, 1))])
    large = np.where((np.arange(1089) == 3) | (np.arange(1089) >= 90), 1e3, 1.0)
    one = weighted(model, huge)
    # The optimum, since the paths of the two fits from elsewhere depend on what the cost model makes of them.
    responsibilities = one.predict_proba(rows)
    many = mixture(model, 3, init_params=responsibilities).fit(rows, sample_weight=large)
    assert_same_posterior(one, many, rtol=1e-5)
    assert np.all(np.isfinite(mixture(model, 3).fit(X, sample_weight=huge).posterior_std_))


@every_type
def test_weights_and_prior_scaled_alike_scale_the_covariance(covariance_type):
    # of one component; under independent factors no Student t stands in the way
    prior, factor = given_prior(covariance_type), 7.5
    scaled = {
        **prior,
        "covariance_prior": factor * prior["covariance_prior"],
        "mean_precision_prior": factor * prior["mean_precision_prior"],
        "degrees_of_freedom_prior": factor * prior["degrees_of_freedom_prior"],
    }
    model = {"covariance_type": covariance_type, "factorization": "independent", "reg_covar": 0.0}
    one = mixture({**model, **prior}, 1).fit(X, sample_weight=BROKEN)
    more = mixture({**model, **scaled}, 1).fit(X, sample_weight=factor * BROKEN)
    components = slice(1, None)  # behind the log weight
    np.testing.assert_allclose(more.posterior_mean_[components], one.posterior_mean_[components], rtol=1e-10)
    np.testing.assert_allclose(
        factor * more.posterior_covariance_[components, components],
        one.posterior_covariance_[components, components],
        rtol=1e-9,
        atol=1e-14,
    )


# but for the weight of noise that has no rows, and for degrees of freedom that rise as the rows are normal
@pytest.mark.parametrize(
    "model",
    [m for m in MODELS if "noise" not in m and m.get("tails", 4.0) == 4.0],
    ids=catalogue.model_id,
)
def test_large_weights_forget_the_prior(model):
    large, larger = (weighted(model, factor * BROKEN) for factor in (1e5, 4e5))
    np.testing.assert_allclose(larger.posterior_mean_, large.posterior_mean_, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(2 * larger.posterior_std_, large.posterior_std_, rtol=1e-4)


FEWER_THAN_ROWS = (
    r"sample_weight sums to \S+ over \d+ rows.* error bars come out \S+ times too wide. \(a\) Scale"
)


def containers(rows, weights):
    """The arguments of a fit to the same rows in memory, in batches and on Dask."""
    return {
        "array": (rows, weights),
        "batches": ([(rows[:40], weights[:40]), (rows[40:], weights[40:])], None),
        "dask": (da.from_array(rows, chunks=(40, 2)), da.from_array(weights, chunks=40)),
    }


@pytest.mark.parametrize("rounding", [0.0, 1e-15, -1e-7], ids=["to one", "above", "below"])
@pytest.mark.parametrize("container", ["array", "batches", "dask"])
def test_weights_that_sum_to_one_are_refused(container, rounding):
    rows, sample_weight = containers(X, np.full(90, (1.0 + rounding) / 90))[container]
    of_classes = da.from_array(X, chunks=(40, 2)).to_dask_dataframe() if container == "dask" else rows
    for estimator, X_given in (
        (LRVBGaussianMixture(n_components=2), rows),
        (LRVBGaussianMixture(**given_prior("full")), rows),
        (LRVBLatentClassMixture(2), of_classes),
    ):
        with pytest.raises(ValueError, match=FEWER_THAN_ROWS):
            estimator.fit(X_given, sample_weight=sample_weight)
        assert not hasattr(estimator, "weights_")


@pytest.mark.parametrize("container", ["array", "batches", "dask"])
def test_weights_far_below_one_are_told(container):
    rows, sample_weight = containers(X, 0.05 * np.ones(90))[container]
    with pytest.warns(UserWarning, match="sample_weight sums to 4.5 over 90 rows.* 4.5 times too wide"):
        LRVBGaussianMixture().fit(rows, sample_weight=sample_weight)
    with pytest.warns(UserWarning, match=FEWER_THAN_ROWS):
        LRVBLatentClassMixture(1).fit(X, sample_weight=0.05 * np.ones(90))


def test_small_weights_of_most_rows_are_none_of_this():
    # Those of the rows of other clusters, and of a row that is put in for a derivative.
    weights = np.where(np.arange(90) < 6, 1.0, 1e-5)
    LRVBGaussianMixture().fit(X, sample_weight=weights)
    LRVBLatentClassMixture(1).fit(X, sample_weight=weights)


# What is passed, and what is refused.


def test_kinds_of_weights():
    pandas = pytest.importorskip("pandas")
    model = {"covariance_type": "full"}
    for weights, kinds in (
        (BROKEN, (np.float32, list, lambda w: pandas.Series(w, index=np.arange(90)[::-1]))),
        (WHOLE, (np.int8, np.float64, list, pandas.Series)),
    ):
        expected = weighted(model, weights)
        for kind in kinds:
            given = weights.astype(kind) if isinstance(kind, type) and kind is not list else kind(weights)
            assert_identical(weighted(model, given), expected)
    single = weighted(model, BROKEN, rows=X.astype(np.float32))
    double = weighted(model, BROKEN, rows=X.astype(np.float32).astype(np.float64))
    assert_same_posterior(single, double)


def test_weights_are_neither_changed_nor_needed_afterwards():
    weights = BROKEN.copy()
    estimator = weighted({"solver": "coordinate_ascent"}, weights)
    np.testing.assert_array_equal(weights, BROKEN)
    weights[:] = 1.0
    expected = weighted({"solver": "coordinate_ascent"}, BROKEN)
    assert_equal_to_rounding(estimator.posterior_covariance_, expected.posterior_covariance_)


BAD = {
    "negative": (
        np.where(np.arange(90) == 5, -1.0, 1.0),
        r"Negative values in data passed to `sample_weight`",
    ),
    "NaN": (np.where(np.arange(90) == 5, np.nan, 1.0), r"Input sample_weight contains NaN"),
    "infinite": (np.where(np.arange(90) == 5, np.inf, 1.0), r"Input sample_weight contains infinity"),
    "zeros": (np.zeros(90), r"Sample weights must contain at least one non-zero number"),
    "short": (np.ones(89), r"sample_weight\.shape == \(89,\), expected \(90,\)"),
    "two columns": (np.ones((90, 2)), r"Sample weights must be 1D array or scalar"),
    "words": (["much"] * 90, r"could not convert string to float"),
}


@pytest.mark.slow
@pytest.mark.parametrize("weights, message", BAD.values(), ids=BAD)
@pytest.mark.parametrize("method", ["fit", "fit_predict", "score"])
def test_bad_weights_are_refused_and_change_nothing(weights, message, method):
    estimator = weighted(MODELS[0], None)
    before = dict(vars(estimator))
    with pytest.raises(ValueError, match=message):
        getattr(estimator, method)(X, sample_weight=weights)
    assert vars(estimator).keys() == before.keys()
    assert all(vars(estimator)[name] is before[name] for name in before)
    unfitted = LRVBGaussianMixture()
    if method != "score":
        with pytest.raises(ValueError, match=message):
            getattr(unfitted, method)(X, sample_weight=weights)
        assert set(vars(unfitted)) == set(unfitted.get_params())


@every_type
def test_score_is_the_weighted_mean(covariance_type):
    estimator = weighted({"covariance_type": covariance_type}, None)
    scores = estimator.score_samples(X)
    assert estimator.score(X, sample_weight=BROKEN) == pytest.approx(
        np.average(scores, weights=BROKEN), rel=1e-12
    )
    assert estimator.score(X, None, BROKEN) == estimator.score(X, sample_weight=BROKEN)
    assert estimator.score(X) == pytest.approx(scores.mean(), rel=1e-12)
    assert estimator.score(X, sample_weight=1e-9 * BROKEN) == pytest.approx(
        estimator.score(X, sample_weight=BROKEN), rel=1e-12
    )


@every_type
def test_fit_predict_is_fit_and_predict(covariance_type):
    model = {"covariance_type": covariance_type}
    estimator = mixture(model, 3)
    labels = estimator.fit_predict(X, sample_weight=BROKEN)
    assert_identical(estimator, mixture(model, 3).fit(X, sample_weight=BROKEN))
    np.testing.assert_array_equal(labels, estimator.predict(X))


@pytest.mark.parametrize("solver", SOLVERS)
def test_warm_start_goes_on_under_other_weights(solver):
    model = {"covariance_type": "full", "solver": solver}
    estimator = weighted(model, None, warm_start=True)
    unmoved = copy.deepcopy(estimator).set_params(max_iter=0).fit(X, sample_weight=BROKEN)
    for name in ("means_", "covariances_"):
        np.testing.assert_allclose(getattr(unmoved, name), getattr(estimator, name), rtol=1e-10)
    estimator.fit(X, sample_weight=BROKEN)
    cold = weighted(model, BROKEN)
    assert estimator.lower_bound_ == pytest.approx(cold.lower_bound_, abs=1e-6)
    np.testing.assert_allclose(estimator.means_, cold.means_, atol=1e-3)
    with pytest.warns(ConvergenceWarning):
        weighted(model, WHOLE, max_iter=1)
    assert estimator.fit(X, sample_weight=BROKEN).n_iter_ <= 3


# Order, blocks, threads.


@every_model
def test_rows_and_their_weights_may_come_in_any_order(model):
    order = np.random.default_rng(4).permutation(90)
    shuffled = mixture(model, 3, init_params=start(3)[order]).fit(X[order], sample_weight=BROKEN[order])
    assert_same_posterior(shuffled, fitted(model))


@pytest.mark.slow
@every_type
@pytest.mark.parametrize("solver", SOLVERS)
def test_weights_follow_their_rows_into_blocks_and_threads(covariance_type, solver, monkeypatch):
    rows, weights = three_blobs(600, n_features=2), np.resize(BROKEN, 600)
    model = {"covariance_type": covariance_type, "solver": solver, "tol": 1e-6}
    whole = mixture(model, 3).fit(rows, sample_weight=weights)
    set_sizes(monkeypatch, most_rows=128, least_rows=128)
    for n_jobs in (None, 2):
        blocks = mixture(model, 3, n_jobs=n_jobs).fit(rows, sample_weight=weights)
        assert_same_posterior(blocks, whole, rtol=1e-7)
        np.testing.assert_allclose(blocks.influence(rows), whole.influence(rows), rtol=1e-6, atol=1e-9)
        assert blocks.score(rows, sample_weight=weights) == pytest.approx(
            whole.score(rows, sample_weight=weights), rel=1e-10
        )


# Metadata routing.


@pytest.fixture
def routing():
    with config_context(enable_metadata_routing=True):
        yield


def requesting(**parameters):
    estimator = mixture({"covariance_type": "full"}, **parameters)
    return estimator.set_fit_request(sample_weight=True).set_score_request(sample_weight=True)


@pytest.mark.usefixtures("routing")
def test_weights_are_routed_through_a_pipeline():
    pipeline = make_pipeline(PCA(2), requesting()).fit(X, sample_weight=BROKEN)
    Z = PCA(2).fit_transform(X)
    direct = mixture({"covariance_type": "full"}).fit(Z, sample_weight=BROKEN)
    assert_identical(pipeline[-1], direct, Z)
    assert pipeline.score(X, sample_weight=BROKEN) == direct.score(Z, sample_weight=BROKEN)
    assert pipeline.score(X) == direct.score(Z)
    labels = make_pipeline(PCA(2), requesting()).fit_predict(X, sample_weight=BROKEN)
    np.testing.assert_array_equal(labels, direct.predict(Z))


@pytest.mark.usefixtures("routing")
def test_weights_are_routed_only_on_request():
    for pipeline, routed in (
        (make_pipeline(PCA(2), mixture({}).set_fit_request(sample_weight=False)), {"prop": BROKEN}),
        (make_pipeline(PCA(2), mixture({})), {"sample_weight": BROKEN}),
    ):
        with pytest.raises((UnsetMetadataPassedError, TypeError), match=r"sample_weight|prop"):
            pipeline.fit(X, **routed)


def folds():
    return list(KFold(3, shuffle=True, random_state=0).split(X))


@pytest.mark.usefixtures("routing")
def test_weights_are_routed_by_cross_validation():
    found = cross_validate(requesting(), X, cv=folds(), params={"sample_weight": BROKEN})["test_score"]
    expected = []
    for train, test in folds():
        estimator = mixture({"covariance_type": "full"}).fit(X[train], sample_weight=BROKEN[train])
        expected.append(estimator.score(X[test], sample_weight=BROKEN[test]))
    np.testing.assert_array_equal(found, expected)
    unweighted = cross_validate(requesting(), X, cv=folds(), params={})["test_score"]
    assert np.all(np.abs(unweighted - found) > 1e-6)


@pytest.mark.slow
@pytest.mark.usefixtures("routing")
def test_weights_are_routed_by_a_search():
    grid = {"n_components": [1, 2, 3]}
    with parallel_config(backend="threading", n_jobs=2):
        search = GridSearchCV(requesting(), grid, cv=folds()).fit(X, sample_weight=BROKEN)
    for n_components, score in zip(grid["n_components"], search.cv_results_["mean_test_score"], strict=True):
        estimator = requesting().set_params(n_components=n_components)
        expected = cross_validate(estimator, X, cv=folds(), params={"sample_weight": BROKEN})["test_score"]
        assert score == pytest.approx(expected.mean(), rel=1e-12)
    best = mixture({"covariance_type": "full"}, search.best_params_["n_components"])
    assert_identical(search.best_estimator_, best.fit(X, sample_weight=BROKEN))
    assert search.score(X, sample_weight=BROKEN) == pytest.approx(
        best.score(X, sample_weight=BROKEN), rel=1e-12
    )


@pytest.mark.usefixtures("routing")
def test_groups_and_weights_are_routed_by_cross_validation_together():
    groups = np.arange(len(X)) // 5
    given = {"sample_weight": BROKEN, "groups": groups}
    found = cross_validate(requesting(), X, cv=GroupKFold(3), params=given)["test_score"]
    splits = list(GroupKFold(3).split(X, groups=groups))
    assert all(set(groups[train]).isdisjoint(groups[test]) for train, test in splits)
    params = {"sample_weight": BROKEN}
    expected = cross_validate(requesting(), X, cv=splits, params=params)["test_score"]
    np.testing.assert_array_equal(found, expected)


# Weights in the place of y.


@pytest.mark.parametrize("table", [np.asarray, list, pd.Series], ids=["array", "list", "series"])
def test_weights_in_the_place_of_y_are_told(table):
    X, weights = overlapping(), table(np.random.default_rng(0).uniform(0, 2, 240))
    estimator = mixture({"tol": 1e-3})
    for ask in (estimator.fit, estimator.fit_predict, estimator.score):
        with pytest.warns(UserWarning, match=r"y is ignored.*sample_weight=\.\.\."):
            ask(X, weights)
    assert estimator.fit(X, weights, sample_weight=weights).score(X, weights, sample_weight=weights) < 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "y",
    [
        None,
        np.arange(240) % 2,
        (np.arange(240) % 2).astype(float),
        np.where(np.arange(240) % 2, "a", "b"),
        np.random.default_rng(0).normal(size=240),
        np.full(240, np.nan),
        np.where(np.arange(240) == 7, np.inf, 0.5),
        np.full((240, 2), 0.5),
        [[1.5], [2.5, 3.5]],
        da.full(240, 0.5),
    ],
    ids=[
        "none",
        "labels",
        "labels as floats",
        "words",
        "targets",
        "NaN",
        "infinite",
        "a table",
        "ragged",
        "on Dask",
    ],
)
def test_any_other_y_is_ignored(y):
    X = overlapping()
    estimator = mixture({"tol": 1e-3}).fit(X, y)
    np.testing.assert_array_equal(estimator.means_, mixture({"tol": 1e-3}).fit(X).means_)
    assert estimator.score(X, y) == estimator.score(X)


def test_an_imputer_before_a_regression_does_not_take_its_targets_for_weights():
    prices = 1.5 + np.abs(overlapping()[:, 1])
    pipeline = make_pipeline(MixtureImputer(random_state=0), LinearRegression())
    found = pipeline.fit(overlapping(), prices).predict(overlapping())  # No value is missing.
    expected = LinearRegression().fit(overlapping(), prices).predict(overlapping())
    np.testing.assert_allclose(found, expected, rtol=1e-12)
